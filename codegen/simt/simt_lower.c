/* Laid-out tile IR to one thread's LLVM IR: kernels, control flow, and which op is lowered where.
 *
 * The function is built without parameters, as slots are found on the way; each slot is a
 * placeholder in the prologue until the end, when the blocks move to the real function. The
 * prologue holds what every op may use: slots, thread numbers, the thread's part of coordinates,
 * the program's place on the grid. All control flow is uniform, so a tile carried by a loop is one
 * phi per register. */
#include <string.h>

#include "codegen/simt/simt_access.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/kept_offsets.h"
#include "passes/analysis/picked.h"

/* ---- values ---- */

LLVMValueRef *tl_simt_regs(TlSimt *g, const TlValue *v)
{
    TL_ASSERT(g->regs[v->id], "tile %u of '%s' has no registers yet", v->id, g->fn->name);
    tl_simt_read(g, v, -1); /* a TRANS of a tile that has been read since: renames */
    return g->regs[v->id];
}

LLVMValueRef *tl_simt_define(TlSimt *g, const TlValue *v)
{
    TL_ASSERT(v->type->layout, "tile %u of '%s' has no layout", v->id, g->fn->name);
    int64_t n = tl_layout_registers(v->type->layout);
    return g->regs[v->id] = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
}

/* ---- control flow ---- */

/* All ops but the terminator. */
static void lower_block(TlSimt *g, TlBlock *block);

static void lower_for(TlSimt *g, TlOp *op)
{
    TlBlock *body = op->regions[0];
    LLVMValueRef lo = tl_gen_scalar(&g->gen, tl_in(op, 0)),
                 step = tl_gen_scalar(&g->gen, tl_in(op, 2));
    LLVMValueRef n = tl_gen_trip_count(&g->gen, op, lo, tl_gen_scalar(&g->gen, tl_in(op, 1)), step);
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(g->b), head = tl_gen_block(&g->gen, "for"),
                      inside = tl_gen_block(&g->gen, "body"), exit = tl_gen_block(&g->gen, "end");
    LLVMTypeRef count = LLVMTypeOf(lo) == g->i64 ? g->i64 : g->i32; /* iterations of i32 fit u32 */
    n = LLVMBuildIntCast2(g->b, n, count, 0, "");
    LLVMValueRef zero = LLVMConstInt(count, 0, 0), trips = n;
    bool one_warp = tl_attr_flag(op, TL_ATTR_ONE_WARP);
    if (one_warp)
        n = LLVMBuildSelect(g->b, tl_simt_is_first_warp(g), n, zero, "");
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    LLVMValueRef i = LLVMBuildPhi(g->b, count, "trip");
    bool down = !body->args[0]->uses; /* iterations that are left: one value lives, not two */
    LLVMAddIncoming(i, down ? &n : &zero, &entry, 1);
    TlSimtCarried *phis = tl_simt_carry(g, op->nout, body->args + 1);
    tl_simt_carry_from(g, op, 3, op->nout, phis, entry);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntNE, i, down ? zero : n, ""), inside, exit);
    LLVMPositionBuilderAtEnd(g->b, inside);
    tl_simt_take_carried(g, op->nout, phis, body->args + 1); /* LLVM turns loops of short heads */
    LLVMValueRef k = LLVMBuildIntCast2(g->b, i, LLVMTypeOf(lo), 0, "");
    g->scalar[body->args[0]->id] = LLVMBuildAdd(g->b, lo, LLVMBuildMul(g->b, k, step, ""), "");
    g->one_warp = one_warp;
    lower_block(g, body);
    g->one_warp = false; /* such a loop is in no other one */
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    tl_simt_carry_from(g, body->last, 0, op->nout, phis, latch);
    LLVMValueRef next = LLVMBuildAdd(g->b, i, LLVMConstInt(count, down ? UINT64_MAX : 1, 0), "");
    LLVMAddIncoming(i, &next, &latch, 1);
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, exit);
    tl_simt_take_carried(g, op->nout, phis, op->out);
    if (one_warp)
        tl_simt_tensor_passed(g, op, LLVMBuildICmp(g->b, LLVMIntNE, trips, zero, ""));
}

static void lower_while(TlSimt *g, TlOp *op)
{
    TlBlock *before = op->regions[0], *after = op->regions[1];
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(g->b), head = tl_gen_block(&g->gen, "while"),
                      inside = tl_gen_block(&g->gen, "body"), exit = tl_gen_block(&g->gen, "end");
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, head);
    TlSimtCarried *phis = tl_simt_carry(g, before->nargs, before->args);
    tl_simt_carry_from(g, op, 0, op->nin, phis, entry);
    tl_simt_take_carried(g, before->nargs, phis, before->args);
    lower_block(g, before);
    for (uint32_t m = 0; m < op->nout; m++) {
        LLVMValueRef *x = tl_simt_values(g, tl_in(before->last, m + 1));
        tl_simt_set_values(g, op->out[m], x);
        tl_simt_set_values(g, after->args[m], x);
    }
    LLVMBuildCondBr(g->b, tl_gen_scalar(&g->gen, tl_in(before->last, 0)), inside, exit);
    LLVMPositionBuilderAtEnd(g->b, inside);
    lower_block(g, after);
    tl_simt_carry_from(g, after->last, 0, before->nargs, phis, LLVMGetInsertBlock(g->b));
    LLVMBuildBr(g->b, head);
    LLVMPositionBuilderAtEnd(g->b, exit);
}

/* Registers of a thread: a producer needs few, which the others get. Nothing where all have the
 * most that a thread can have anyway. */
static void set_registers(TlSimt *g, bool consumers)
{
    /* Registers of a multiprocessor; setmaxnreg takes multiples of UNIT. Of a thread: the fewest,
     * those of a producer beside many groups, the most. Warps of a group. */
    enum { FILE = 64 * 1024, UNIT = 8, FEW = 24, SOME = 32, MOST_EACH = 240, WARPS = 4 };
    uint32_t groups = (1u << g->warp_bits) / WARPS, few = groups > 2 ? SOME : FEW,
             all = FILE / g->code->threads / UNIT * UNIT;
    uint32_t many = (all * (groups + 1) - few) / groups / UNIT * UNIT;
    if (all > MOST_EACH)
        return;
    LLVMValueRef args[] = {tl_simt_i32(g, !consumers         ? few
                                          : many > MOST_EACH ? MOST_EACH
                                                             : many),
                           tl_simt_i32(g, consumers)};
    tl_simt_leaf(g, TL_LEAF_REGISTERS, 2, args);
}

/* Region 1 is for the first warps, region 0 for one thread of the first of the others. */
static void lower_roles(TlSimt *g, TlOp *op)
{
    LLVMBasicBlockRef more = tl_gen_block(&g->gen, "producers"),
                      warp = tl_gen_block(&g->gen, "warp"), one = tl_gen_block(&g->gen, "producer"),
                      rest = tl_gen_block(&g->gen, "consumers"),
                      join = tl_gen_block(&g->gen, "over");
    LLVMValueRef number = tl_simt_uniform_warp(g), first = tl_simt_i32(g, 1u << g->warp_bits);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntUGE, number, first, ""), more, rest);
    LLVMPositionBuilderAtEnd(g->b, more);
    set_registers(g, false);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, number, first, ""), warp, join);
    LLVMPositionBuilderAtEnd(g->b, warp);
    LLVMBuildCondBr(g->b, tl_simt_leaf(g, TL_LEAF_ELECT, 0, NULL), one, join);
    LLVMPositionBuilderAtEnd(g->b, one);
    g->role = TL_SIMT_PRODUCER;
    lower_block(g, op->regions[0]);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, rest);
    g->role = TL_SIMT_CONSUMERS;
    set_registers(g, true);
    lower_block(g, op->regions[1]);
    LLVMBuildBr(g->b, join);
    g->role = TL_SIMT_ALL;
    LLVMPositionBuilderAtEnd(g->b, join);
}

static void lower_if(TlSimt *g, TlOp *op)
{
    LLVMBasicBlockRef arms[2] = {tl_gen_block(&g->gen, "then"), tl_gen_block(&g->gen, "else")},
                      join = tl_gen_block(&g->gen, "join"), ends[2];
    LLVMBuildCondBr(g->b, tl_gen_scalar(&g->gen, tl_in(op, 0)), arms[0], arms[1]);
    for (int r = 0; r < 2; r++) {
        LLVMPositionBuilderAtEnd(g->b, arms[r]);
        lower_block(g, op->regions[r]);
        ends[r] = LLVMGetInsertBlock(g->b);
        LLVMBuildBr(g->b, join);
    }
    LLVMPositionBuilderAtEnd(g->b, join);
    TlSimtCarried *phis = tl_simt_carry(g, op->nout, op->out);
    for (int r = 0; r < 2; r++)
        tl_simt_carry_from(g, op->regions[r]->last, 0, op->nout, phis, ends[r]);
    tl_simt_take_carried(g, op->nout, phis, op->out);
}

void tl_simt_user_combine(TlSimt *g, const TlOp *op, uint32_t n, LLVMValueRef *a, LLVMValueRef *b,
                          LLVMValueRef *out)
{
    TlBlock *body = op->regions[0];
    for (uint32_t i = 0; i < n; i++) {
        g->scalar[body->args[i]->id] = a[i];
        g->scalar[body->args[n + i]->id] = b[i];
    }
    lower_block(g, body);
    for (uint32_t i = 0; i < n; i++)
        out[i] = tl_gen_scalar(&g->gen, tl_in(body->last, i));
}

/* ---- the program's place on the grid ---- */

/* A leaf that returns an index below `end`; LLVM gets the range. */
static LLVMValueRef bounded_index(TlSimt *g, tl_leaf leaf, uint32_t end)
{
    LLVMValueRef x = tl_simt_leaf(g, leaf, 0, NULL);
    unsigned kind = LLVMGetEnumAttributeKindForName("range", 5);
    uint64_t lower = 0, upper = end;
    LLVMAddCallSiteAttribute(x, LLVMAttributeReturnIndex,
                             LLVMCreateConstantRangeAttribute(g->c, kind, 32, &lower, &upper));
    return x;
}

/* Everything fits 32 bits: a launch has fewer than 2^31 programs. */
static LLVMValueRef extent_of_grid(TlSimt *g, uint32_t axis)
{
    return LLVMBuildTrunc(g->b, tl_gen_slot(&g->gen, TILE_SLOT_NPID, 0, axis), g->i32, "");
}

static LLVMValueRef started(TlSimt *g)
{
    return LLVMBuildTrunc(g->b, tl_gen_slot(&g->gen, TILE_SLOT_BLOCKS, 0, 0), g->i32, "");
}

/* x / extent of the axis, x below 2^31: by a product and a shift, as GPUs divide in twenty
 * instructions. */
static LLVMValueRef over_extent(TlSimt *g, LLVMValueRef x, uint32_t axis)
{
    LLVMBuilderRef b = g->b;
    LLVMValueRef by = tl_gen_slot(&g->gen, TILE_SLOT_BY_NPID, 0, axis),
                 shift = LLVMBuildLShr(b, by, tl_gen_int(&g->gen, 32), "");
    LLVMValueRef args[2] = {x, LLVMBuildTrunc(b, by, g->i32, "")};
    LLVMValueRef product = tl_simt_leaf(g, TL_LEAF_MUL_WIDE_U, 2, args);
    return LLVMBuildTrunc(b, LLVMBuildLShr(b, product, shift, ""), g->i32, "");
}

/* Programs of a cluster start one after another. Where they follow each other along another axis
 * than the first, the order is that of clusters: this axis has as many as its extent over the size
 * (tl_launch_pid has the same arithmetic). */
static bool is_crossed(const TlSimt *g, uint32_t axis)
{
    return axis && axis == g->crossed_axis;
}

static LLVMValueRef size_of_cluster(TlSimt *g)
{
    return tl_simt_leaf(g, TL_LEAF_CLUSTER_SIZE, 0, NULL);
}

/* The axis in the order of starting. */
static LLVMValueRef length_of(TlSimt *g, uint32_t axis)
{
    LLVMValueRef n = extent_of_grid(g, axis);
    return is_crossed(g, axis) ? LLVMBuildUDiv(g->b, n, size_of_cluster(g), "") : n;
}

static LLVMValueRef over_length(TlSimt *g, LLVMValueRef x, uint32_t axis)
{
    return is_crossed(g, axis) ? LLVMBuildUDiv(g->b, x, length_of(g, axis), "")
                               : over_extent(g, x, axis);
}

/* x modulo the axis' length. */
static LLVMValueRef rest_of_length(TlSimt *g, LLVMValueRef x, uint32_t axis)
{
    LLVMValueRef over = over_length(g, x, axis);
    if (is_crossed(g, axis))
        return LLVMBuildSub(g->b, x, LLVMBuildMul(g->b, over, length_of(g, axis), ""), "");
    LLVMValueRef minus = tl_gen_slot(&g->gen, TILE_SLOT_MINUS_NPID, 0, axis);
    minus = LLVMBuildTrunc(g->b, minus, g->i32, "");
    return LLVMBuildAdd(g->b, x, LLVMBuildMul(g->b, over, minus, ""), "");
}

/* Axes 0 and 1 in grouped order (tl_launch_pid has the same arithmetic). A group over the axis'
 * extent is one as long as the axis. */
static LLVMValueRef grouped(TlSimt *g, LLVMValueRef linear, uint32_t axis, LLVMValueRef plain)
{
    LLVMBuilderRef b = g->b;
    LLVMValueRef n0 = length_of(g, 0), n1 = length_of(g, 1), one = tl_simt_i32(g, 1);
    LLVMValueRef group = LLVMBuildTrunc(b, tl_gen_slot(&g->gen, TILE_SLOT_GROUP, 0, 0), g->i32, "");
    LLVMValueRef some = LLVMBuildICmp(b, LLVMIntSGT, group, tl_simt_i32(g, 0), "");
    group = LLVMBuildSelect(b, some, group, one, "");
    group = tl_gen_pick(&g->gen, LLVMIntSLT, n0, group, n0, group);
    LLVMValueRef below = LLVMBuildMul(b, over_length(g, over_length(g, linear, 0), 1),
                                      LLVMBuildMul(b, n0, n1, ""), "");
    LLVMValueRef plane = LLVMBuildSub(b, linear, below, "");
    LLVMValueRef size = LLVMBuildMul(b, group, n1, ""), band = LLVMBuildUDiv(b, plane, size, "");
    LLVMValueRef base = LLVMBuildMul(b, band, group, ""), left = LLVMBuildSub(b, n0, base, "");
    LLVMValueRef width = tl_gen_pick(&g->gen, LLVMIntSLT, left, group, left, group);
    LLVMValueRef within = LLVMBuildSub(b, plane, LLVMBuildMul(b, band, size, ""), "");
    LLVMValueRef x = axis == 0 ? LLVMBuildAdd(b, base, LLVMBuildURem(b, within, width, ""), "")
                               : LLVMBuildUDiv(b, within, width, "");
    return LLVMBuildSelect(b, some, x, plain, "");
}

static bool is_told(const TlOp *op)
{
    return op->opcode == TL_OP_PRINT || op->opcode == TL_OP_ASSERT || op->opcode == TL_OP_ASSUME;
}

/* Are neighbours to share a die, and its cache? Products do, as programs read the same rows and
 * columns. No program may be able to tell, or print, which started first. */
static bool by_dies(const TlSimt *g)
{
    bool dot = false;
    for (const TlOp *op = g->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (is_told(op))
            return false;
        dot |= op->opcode == TL_OP_DOT;
    }
    return g->options->target->dies > 1 && dot && !tl_fn_may_wait(g->fn);
}

/* The number of this program (tl_launch_pid has the same arithmetic). */
static LLVMValueRef program_number(TlSimt *g)
{
    LLVMBuilderRef b = g->b;
    LLVMValueRef x = bounded_index(g, TL_LEAF_CTAID, 1u << 31);
    uint32_t dies = (uint32_t)g->options->target->dies;
    if (!by_dies(g))
        return x;
    LLVMValueRef slot = tl_gen_slot(&g->gen, TILE_SLOT_DIES, dies, 0),
                 each = LLVMBuildTrunc(b, slot, g->i32, ""),
                 more = LLVMBuildTrunc(b, LLVMBuildLShr(b, slot, tl_gen_int(&g->gen, 32), ""),
                                       g->i32, "");
    LLVMValueRef die = LLVMBuildAnd(b, x, tl_simt_i32(g, dies - 1), ""),
                 nth = LLVMBuildLShr(b, x, tl_simt_i32(g, (uint32_t)__builtin_ctz(dies)), "");
    more = tl_gen_pick(&g->gen, LLVMIntSLT, die, more, die, more);
    return LLVMBuildAdd(b, LLVMBuildAdd(b, LLVMBuildMul(b, die, each, ""), more, ""), nth, "");
}

/* Of this program, or of the one with the number that the op takes. */
static LLVMValueRef pid(TlSimt *g, const TlOp *op, uint32_t axis)
{
    const TlKernelInfo *info = g->fn->info;
    uint32_t ngrid = info ? (uint32_t)info->grid.len : 0;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    if (op->nin == 0)
        LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(g->prologue));
    LLVMValueRef linear = op->nin ? tl_gen_scalar(&g->gen, tl_in(op, 0)) : program_number(g),
                 member = NULL, x;
    if (g->crossed_axis) {
        member = LLVMBuildURem(g->b, linear, size_of_cluster(g), "");
        linear = LLVMBuildUDiv(g->b, linear, size_of_cluster(g), "");
    }
    x = linear;
    for (uint32_t i = 0; i < axis; i++)
        x = over_length(g, x, i);
    bool is_last = info && info->promise.grid && axis + 1 == ngrid; /* the grid is the clause's */
    if (!is_last)
        x = rest_of_length(g, x, axis);
    if (info && info->group >= 0 && axis < 2)
        x = grouped(g, linear, axis, x);
    if (is_crossed(g, axis))
        x = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, x, size_of_cluster(g), ""), member, "");
    LLVMPositionBuilderAtEnd(g->b, here);
    tl_gen_set_loc(&g->gen, g->loc);
    return x;
}

/* ---- ops on elements ---- */

static LLVMValueRef element(TlSimt *g, const TlOp *op, LLVMValueRef *in)
{
    if (op->opcode != TL_OP_PTR_ADD)
        return tl_gen_elementwise(&g->gen, op, in);
    const TlValue *offset = tl_in(op, 1);
    return tl_gen_address(&g->gen, tl_in(op, 0)->type->dtype, in[0],
                          tl_gen_to_i64(&g->gen, offset, in[1]));
}

/* Halves of words that come from words are put together at once: LLVM has a register for each until
 * what takes them does that. */
static void pair_halves(TlSimt *g, const TlOp *op, LLVMValueRef *regs)
{
    enum { WORD = 32, HALF = 16 };
    const TlType *t = op->out[0]->type;
    TlType elem = {.kind = TL_TILE, .dtype = t->dtype};
    if (op->opcode != TL_OP_CAST || !t->rank || tl_dtype_bits(t->dtype) != HALF ||
        tl_dtype_bits(tl_in(op, 0)->type->dtype) != WORD ||
        !g->options->target->family->by_llvm)
        return;
    for (int64_t r = 0; r + 1 < tl_simt_count(op->out[0]); r += 2)
        tl_simt_unpack(g, &elem, tl_simt_pack(g, &elem, 2, regs + r), 2, regs + r);
}

/* The axis along which v counts from *first on, whatever its other coordinates are; -1: none. */
static int counted_axis(const TlValue *v, int64_t *first)
{
    for (int d = 0; d < v->type->rank; d++)
        if (tl_counts_along(v, d, first))
            return d;
    return -1;
}

/* Which coordinates are, or are not, a number that all elements share: each register compares the
 * number less the thread's part with a constant, so that no register holds a coordinate. */
static bool lower_place_test(TlSimt *g, const TlOp *op)
{
    enum { FEWEST = 4 }; /* registers */
    TlValue *v = op->out[0];
    if ((op->opcode != TL_OP_EQ && op->opcode != TL_OP_NE) || tl_simt_count(v) < FEWEST)
        return false;
    int64_t first;
    const TlValue *x = tl_in(op, 0);
    const TlOp *spread = tl_in(op, 1)->def;
    int axis = counted_axis(x, &first);
    if (axis < 0 || !spread || spread->opcode != TL_OP_BROADCAST || tl_in(spread, 0)->type->rank)
        return false;
    LLVMValueRef number = LLVMBuildSub(g->b, tl_gen_scalar(&g->gen, tl_in(spread, 0)),
                                       tl_simt_i32(g, (uint32_t)first), ""),
                 thread = NULL, rest = NULL, *out = tl_simt_define(g, v);
    for (int64_t r = 0; r < tl_simt_count(v); r++) {
        TlSimtCoord c = tl_simt_split_coord(g, x->type->layout, r, axis);
        rest = c.thread == thread ? rest : LLVMBuildSub(g->b, number, c.thread, "");
        thread = c.thread;
        out[r] = LLVMBuildICmp(g->b, op->opcode == TL_OP_EQ ? LLVMIntEQ : LLVMIntNE, rest,
                               tl_simt_i32(g, (uint32_t)c.constant), "");
    }
    return true;
}

/* Operands of n registers from r on, as vectors of n where n is over 1. */
static void operands_of(TlSimt *g, const TlOp *op, int64_t r, int n, LLVMValueRef *out)
{
    TL_ASSERT(op->nin <= 3, "%u operands", op->nin);
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *x = tl_in(op, i);
        LLVMValueRef *regs = x->type->rank ? tl_simt_regs(g, x) + r : NULL, v = NULL;
        for (int k = 0; k < n && n > 1; k++) {
            LLVMValueRef e = regs ? regs[k] : tl_gen_scalar(&g->gen, x);
            v = v ? v : LLVMGetPoison(LLVMVectorType(LLVMTypeOf(e), (unsigned)n));
            v = LLVMBuildInsertElement(g->b, v, e, tl_simt_i32(g, (uint32_t)k), "");
        }
        out[i] = n > 1 ? v : regs ? regs[0] : tl_gen_scalar(&g->gen, x);
    }
}

/* Do all users take the elements apart again? */
static bool is_only_widened(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (u->user->opcode != TL_OP_CAST)
            return false;
    return true;
}

/* f16 operands of f32: an instruction takes them as they are, but not for two at a time. */
static bool takes_halves(const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlOp *def = tl_in(op, i)->def;
        if (def && def->opcode == TL_OP_CAST && tl_in(def, 0)->type->dtype == TL_F16)
            return true;
    }
    return false;
}

static bool is_sum_or_product(const TlOp *op)
{
    return op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB || op->opcode == TL_OP_MUL;
}

/* Is it done with two registers at a time? Sums and products, and f16 that they are computed of:
 * LLVM puts two of them together only if they are built so. (ptxas does by itself, of f16, but
 * takes apart first what came in pairs.) */
static bool is_in_pairs(const TlSimt *g, const TlOp *op)
{
    const TlTarget *target = g->options->target;
    const TlValue *v = op->out[0], *x = tl_in(op, 0);
    bool by_llvm = target->family->by_llvm;
    if (v->type->rank == 0 || g->fn->ring || tl_simt_count(v) % 2)
        return false;
    if (v->type->dtype == TL_F32)
        return target->can & TL_CAN_PAIRS &&
               (is_sum_or_product(op) ||
                (op->opcode == TL_OP_FMA && !(by_llvm && takes_halves(op))));
    if (!by_llvm && is_sum_or_product(op) && tl_simt_is_of_nibbles(v))
        return true;
    if (!by_llvm || v->type->dtype != TL_F16 || is_only_widened(v))
        return false;
    return is_sum_or_product(op) || (op->opcode == TL_OP_CAST && tl_is_int(x->type->dtype) &&
                                     tl_dtype_bits(x->type->dtype) <= 8);
}

static void lower_elementwise(TlSimt *g, TlOp *op)
{
    if (lower_place_test(g, op) || tl_simt_cast_small(g, op) || tl_simt_subtract_small(g, op) ||
        tl_simt_spread_exp2(g, op))
        return;
    TlValue *v = op->out[0];
    int64_t n = tl_simt_count(v);
    int each = is_in_pairs(g, op) ? 2 : 1;
    LLVMValueRef in[3], *out = v->type->rank ? tl_simt_define(g, v) : &g->scalar[v->id];
    for (int64_t r = 0; r < n; r += each) {
        operands_of(g, op, r, each, in);
        LLVMValueRef x = element(g, op, in);
        for (int k = 0; k < each; k++)
            out[r + k] =
                each > 1 ? LLVMBuildExtractElement(g->b, x, tl_simt_i32(g, (uint32_t)k), "") : x;
    }
    pair_halves(g, op, out);
}

static void lower_const(TlSimt *g, TlOp *op)
{
    TlValue *v = op->out[0];
    LLVMValueRef c = tl_gen_const(&g->gen, v->type, tl_attr(op, TL_ATTR_VALUE)->u.bits, 1);
    int64_t n = tl_simt_count(v);
    LLVMValueRef *out = v->type->rank ? tl_simt_define(g, v) : &g->scalar[v->id];
    for (int64_t r = 0; r < n; r++)
        out[r] = c;
}

static void lower_iota(TlSimt *g, TlOp *op)
{
    TlValue *v = op->out[0];
    LLVMValueRef *out = tl_simt_define(g, v);
    for (int64_t r = 0; r < tl_simt_count(v); r++)
        out[r] = LLVMBuildIntCast2(g->b, tl_simt_coord(g, v->type->layout, r, 0),
                                   tl_gen_elem_type(&g->gen, v->type), 0, "");
}

/* ---- ops that rename elements ---- */

/* The result's axis that each operand axis is; -1: always coordinate 0. */
static void axes_of_operand(const TlOp *op, int *dims)
{
    const TlType *in = tl_in(op, 0)->type;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    for (int d = 0; d < in->rank; d++) {
        if (op->opcode == TL_OP_EXPAND)
            dims[d] = d < axis ? d : d + 1;
        else
            dims[d] = in->shape[d] == 1 ? -1 : d;
    }
    for (int d = 0; op->opcode == TL_OP_TRANS && d < in->rank; d++)
        dims[tl_attr(op, TL_ATTR_PERM)->u.ints[d]] = d;
}

static void lower_renaming(TlSimt *g, TlOp *op)
{
    const TlValue *x = tl_in(op, 0);
    TlValue *v = op->out[0];
    int dims[TL_MAX_RANK];
    axes_of_operand(op, dims);
    if (tl_simt_trans_later(g, op, dims))
        return;
    LLVMValueRef *out = tl_simt_define(g, v);
    for (int64_t r = 0; r < tl_simt_count(v); r++)
        out[r] =
            x->type->rank
                ? tl_simt_regs(g, x)[tl_simt_match(g, x->type->layout, v->type->layout, r, dims)]
                : tl_gen_scalar(&g->gen, x);
}

static void lower_reshape(TlSimt *g, TlOp *op)
{
    const TlValue *x = tl_in(op, 0);
    TlValue *v = op->out[0];
    LLVMValueRef *from = tl_simt_values(g, x),
                 *out = v->type->rank ? tl_simt_define(g, v) : &g->scalar[v->id];
    for (int64_t r = 0; r < tl_simt_count(v); r++) {
        int64_t s = 0;
        if (x->type->rank && v->type->rank)
            s = tl_layout_reshape_source(x->type, v->type, r);
        out[r] = from[s < 0 ? 0 : s]; /* padding may hold anything */
    }
}

/* ---- ops ---- */

static void lower_op(TlSimt *g, TlOp *op)
{
    uint32_t axis = (uint32_t)tl_attr_int(op, TL_ATTR_AXIS, 0);
    switch (op->opcode) {
    case TL_OP_FOR: lower_for(g, op); return;
    case TL_OP_WHILE: lower_while(g, op); return;
    case TL_OP_IF: lower_if(g, op); return;
    case TL_OP_ROLES: lower_roles(g, op); return;
    case TL_OP_YIELD:
    case TL_OP_CONDITION: return;
    case TL_OP_RETURN: LLVMBuildRetVoid(g->b); return;
    case TL_OP_BARRIER: tl_simt_barrier(g); return;
    case TL_OP_PID: g->scalar[op->out[0]->id] = pid(g, op, axis); return;
    case TL_OP_BLOCK:
        g->scalar[op->out[0]->id] = bounded_index(g, TL_LEAF_CTAID, 1u << 31);
        return;
    case TL_OP_NBLOCKS: g->scalar[op->out[0]->id] = started(g); return;
    case TL_OP_NPID: g->scalar[op->out[0]->id] = extent_of_grid(g, axis); return;
    case TL_OP_CONST: lower_const(g, op); return;
    case TL_OP_IOTA: lower_iota(g, op); return;
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND:
    case TL_OP_TRANS: lower_renaming(g, op); return;
    case TL_OP_RESHAPE: lower_reshape(g, op); return;
    case TL_OP_REGROUP: tl_simt_regroup(g, op); return;
    case TL_OP_REDUCE: tl_simt_reduce(g, op); return;
    case TL_OP_SCAN: tl_simt_scan(g, op); return;
    case TL_OP_DOT: tl_attr(op, TL_ATTR_MMA) ? tl_simt_mma(g, op) : tl_simt_dot(g, op); return;
    case TL_OP_GATHER: tl_simt_gather(g, op); return;
    case TL_OP_HISTOGRAM: tl_simt_histogram(g, op); return;
    case TL_OP_CONVERT: tl_simt_convert(g, op); return;
    case TL_OP_VIEW:
    case TL_OP_SUB_VIEW: tl_gen_lower_view(&g->gen, op); return;
    case TL_OP_EXTENT:
    case TL_OP_STRIDE:
    case TL_OP_VIEW_PTR: g->scalar[op->out[0]->id] = tl_gen_of_view(&g->gen, op); return;
    case TL_OP_LOAD: tl_simt_load(g, op); return;
    case TL_OP_STORE: tl_simt_store(g, op); return;
    case TL_OP_INSIDE: tl_simt_inside(g, op); return;
    case TL_OP_ATOMIC_RMW:
    case TL_OP_ATOMIC_CAS:
    case TL_OP_ATOMIC_LOAD:
    case TL_OP_ATOMIC_STORE: tl_simt_atomic(g, op); return;
    case TL_OP_PRINT: tl_simt_print(g, op); return;
    case TL_OP_ASSUME:
        if (!g->options->check)
            return;
        /* fall through */
    case TL_OP_ASSERT: tl_simt_assert(g, op); return;
#define OP(...)
#define ELEM(ID, ...) case TL_OP_##ID:
#include "ir/ops.def"
        op->opcode == TL_OP_ASM ? tl_simt_asm(g, op) : lower_elementwise(g, op);
        return;
    case TL_OP_ALLOC: return;
    case TL_OP_PUT: tl_simt_put(g, op); return;
    case TL_OP_GET: tl_simt_get(g, op); return;
    case TL_OP_READ: tl_simt_read_late(g, op); return;
    case TL_OP_COPY:
        tl_is_bulk_copy(op) ? tl_simt_begin_bulk(g, op) : tl_simt_copy(g, op);
        return;
    case TL_OP_COMMIT:
    case TL_OP_WAIT: tl_simt_wait(g, op); return;
    case TL_OP_READY: g->tensor ? tl_simt_tensor_ready(g, op) : tl_simt_ready(g, op); return;
    case TL_OP_DOT_ASYNC:
        g->tensor ? tl_simt_tensor_dot(g, op) : tl_simt_dot_async(g, op);
        return;
    case TL_OP_AWAIT: g->tensor ? tl_simt_tensor_await(g, op) : tl_simt_await(g, op); return;
    case TL_OP_RESCALE: tl_simt_tensor_rescale(g, op); return;
    case TL_OP_TENSOR: tl_simt_tensor(g, op); return;
    case TL_OP_TENSOR_END: tl_simt_tensor_end(g, op); return;
    case TL_OP_FENCE: tl_simt_fence(g); return;
    case TL_OP_MBAR: tl_simt_mbar(g, op); return;
    case TL_OP_EXPECT: tl_simt_begin_bulk(g, op); return;
    case TL_OP_ARRIVE: tl_simt_arrive(g, op); return;
    case TL_OP_MBAR_WAIT:
        tl_attr_flag(op, TL_ATTR_ONE) ? tl_simt_begin_bulk(g, op) : tl_simt_mbar_wait(g, op);
        return;
    case TL_OP_MBAR_END: tl_simt_mbar_end(g, op); return;
    case TL_OP_BULK_STORE: tl_simt_bulk_store(g, op); return;
    case TL_OP_STORE_WAIT: tl_simt_store_wait(g, op); return;
    case TL_OP_MEET: tl_simt_leaf(g, TL_LEAF_MEET, 0, NULL); return;
    case TL_OP_PING_PONG_WAIT:
    case TL_OP_PING_PONG_ARRIVE: tl_simt_turn(g, op); return;
    case TL_OP_COUNT: break;
    }
    TL_UNREACHABLE("op %d", (int)op->opcode);
}

/* What follows from the thread's number, in this block. */
static void start_thread(TlSimt *g)
{
    LLVMValueRef tid = g->thread.tid;
    g->thread.lane = LLVMBuildAnd(g->b, tid, tl_simt_i32(g, (1u << g->lane_bits) - 1), "lane");
    g->thread.warp = LLVMBuildLShr(g->b, tid, tl_simt_i32(g, (uint32_t)g->lane_bits), "warp");
    g->thread.block = LLVMGetInsertBlock(g->b);
    g->thread.parts = TL_NEW(g->arena, TlMap);
    tl_map_init(g->thread.parts, g->arena);
}

/* The thread's number once more, which neither LLVM nor ptxas knows to be the same: what follows
 * from it is computed again, and not kept meanwhile. */
static void number_again(TlSimt *g)
{
    static const char TEXT[] =
        "{ .reg .b32 t; mov.b32 t, %lanemask_lt; shr.u32 t, t, 31; or.b32 $0, $1, t; }";
    static const char OPERANDS[] = "=r,r";
    LLVMTypeRef type = LLVMFunctionType(g->i32, &g->i32, 1, 0);
    LLVMValueRef text = LLVMGetInlineAsm(type, TEXT, strlen(TEXT), OPERANDS, strlen(OPERANDS), 1,
                                         0, LLVMInlineAsmDialectATT, 0);
    LLVMBasicBlockRef next = tl_gen_block(&g->gen, "again");
    uint32_t bits = (1u << tl_ceil_log2(g->code->threads)) - 1;
    if (!g->options->emulate && !g->options->target->family->by_llvm) {
        LLVMValueRef tid = LLVMBuildCall2(g->b, type, text, &g->thread.tid, 1, "");
        g->thread.tid = LLVMBuildAnd(g->b, tid, tl_simt_i32(g, bits), "");
    }
    start_thread(g);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
}

/* Is it an op in front of which a kernel that is short of registers computes again where threads
 * are? */
static bool is_sparing(const TlSimt *g, const TlOp *op)
{
    bool accesses = tl_op_info(op->opcode)->flags & (F_READ | F_WRITE | F_BUF_READ | F_BUF_WRITE) ||
                    op->opcode == TL_OP_DOT || op->opcode == TL_OP_CONVERT;
    switch (g->fn->body->sparing) {
    case TL_SPARING_NOT: return false;
    case TL_SPARING_IN_LOOPS: return accesses && tl_enclosing_loop(op);
    case TL_SPARING_BEHIND_LOOPS: return op->prev && tl_is_loop(op->prev);
    }
    TL_UNREACHABLE("sparing %d", (int)g->fn->body->sparing);
}

static void lower_block(TlSimt *g, TlBlock *block)
{
    TlLoc outer = g->loc;
    TlSimtThread thread = g->thread;
    for (TlOp *op = block->first; op; op = op->next) {
        g->loc = op->loc;
        tl_gen_set_loc(&g->gen, op->loc);
        if (is_sparing(g, op))
            number_again(g);
        lower_op(g, op);
    }
    g->thread = thread;
    g->loc = outer;
    tl_gen_set_loc(&g->gen, outer);
}

/* ---- kernels ---- */

enum { TL_PRODUCER_WARPS = 4 }; /* registers are given to four warps at a time */

/* A placeholder for a slot's value until finish_function, which nothing folds. */
static LLVMValueRef load_slot(TlGen *gen, uint32_t n, tile_slot_kind kind)
{
    TlSimt *g = (TlSimt *)gen; /* gen is its first member */
    (void)n;
    LLVMTypeRef type = kind == TILE_SLOT_POINTER ? g->ptr
                       : kind == TILE_SLOT_MAP   ? LLVMPointerTypeInContext(g->c, 0)
                                                 : g->i64;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMValueRef before = LLVMGetBasicBlockTerminator(g->prologue),
                 first = LLVMGetFirstInstruction(g->prologue);
    LLVMPositionBuilderBefore(g->b, first ? first : before);
    LLVMValueRef x = LLVMBuildFreeze(g->b, LLVMGetPoison(type), "slot");
    if (here == g->prologue)
        LLVMPositionBuilderBefore(g->b, before);
    else
        LLVMPositionBuilderAtEnd(g->b, here);
    tl_gen_set_loc(gen, g->loc);
    return x;
}

static void begin_function(TlSimt *g)
{
    LLVMTypeRef type = LLVMFunctionType(g->void_, NULL, 0, 0);
    g->function = LLVMAddFunction(g->l->module, "tl.body", type);
    g->prologue = tl_gen_block(&g->gen, "entry");
    LLVMBasicBlockRef start = tl_gen_block(&g->gen, "start");
    LLVMPositionBuilderAtEnd(g->b, g->prologue);
    g->thread.tid = bounded_index(g, TL_LEAF_TID, g->code->threads);
    start_thread(g);
    g->first_warp = g->thread.warp;
    LLVMBuildBr(g->b, start);
    LLVMPositionBuilderAtEnd(g->b, start);
}

/* An extent that is not stated as i64. */
static bool is_short_extent(const TlSimt *g, const tile_image_slot *slot)
{
    return slot->kind == TILE_SLOT_EXTENT &&
           !g->fn->info->params.data[slot->param].extent[slot->axis].is_i64;
}

/* Moves the body to a function whose parameters are the slots. */
static void finish_function(TlSimt *g, const char *symbol)
{
    uint32_t n = (uint32_t)g->slot.len;
    LLVMTypeRef *params = TL_NEW_ARRAY(g->arena, LLVMTypeRef, n + 1);
    for (uint32_t i = 0; i < n; i++)
        params[i] = LLVMTypeOf(g->slot.data[i]);
    LLVMValueRef body = g->function;
    g->function = LLVMAddFunction(g->l->module, symbol, LLVMFunctionType(g->void_, params, n, 0));
    for (LLVMBasicBlockRef b; (b = LLVMGetFirstBasicBlock(body));) {
        LLVMRemoveBasicBlockFromParent(b);
        LLVMAppendExistingBasicBlock(g->function, b);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (g->slots.data[i].kind == TILE_SLOT_MAP && !g->options->emulate)
            tl_llvm_set_byval(g->l, g->function, i, TL_MAP_BYTES, TL_MAP_ALIGNMENT);
        if (g->halved && is_short_extent(g, &g->slots.data[i]))
            tl_llvm_set_range(g->l, g->function, i, (uint64_t)INT32_MAX + 1);
        LLVMReplaceAllUsesWith(g->slot.data[i], LLVMGetParam(g->function, i));
        LLVMInstructionEraseFromParent(g->slot.data[i]);
    }
    LLVMDeleteFunction(body);
}

static uint32_t shared_bytes(const TlSimt *g)
{
    uint32_t most = 0;
    for (const TlOp *op = g->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        int64_t at = tl_attr_int(op, TL_ATTR_SHARED, -1);
        if (at < 0)
            continue;
        uint32_t bytes = tl_makes_buffer(op) ? (uint32_t)tl_buf_bytes(op->out[0]->type)
                                : tl_op_shared_bytes(g->arena, op);
        uint32_t end = (uint32_t)at + bytes;
        most = end > most ? end : most;
    }
    return most;
}

static bool has_two_flows(const TlFn *fn)
{
    const TlOp *op = fn->body->last->prev;
    while (op && op->opcode == TL_OP_MEET)
        op = op->prev;
    return op && op->opcode == TL_OP_ROLES;
}

static bool is_of_pair(const TlOp *op)
{
    return op->opcode == TL_OP_TENSOR && tl_attr_flag(op, TL_ATTR_PAIR);
}

/* Programs that a copy, or a product, is for; 0: all are each program's own. */
static uint32_t cluster_of(const TlFn *fn)
{
    uint32_t n = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_COPY && tl_attr(op, TL_ATTR_CLUSTER))
            n = (uint32_t)tl_attr_int(op, TL_ATTR_CLUSTER, 0);
        else if (is_of_pair(op))
            n = 2;
    TL_ASSERT(!n || (fn->info && fn->info->cluster == (int32_t)n),
              "'%s' copies for %u programs, but has no such cluster", fn->name, n);
    return n;
}

bool tl_simt_lower(TlLlvm *l, const TlCodegenOptions *options, TlArena *arena, const TlFn *fn,
                   const char *symbol, TlKernelCode *code)
{
    if (!tl_gen_is_supported(&fn->module->ctx->diags, fn,
                             options->emulate ? "the emulator" : "GPUs", !options->emulate))
        return false;
    TlSimt g = {.options = options, .code = code};
    tl_gen_init(&g.gen, l, fn, arena);
    g.ptr = LLVMPointerTypeInContext(g.c, 1);
    g.load_slot = load_slot;
    g.fmod = tl_simt_fmod;
    g.own = tl_simt_own;
    g.to_bf16 = tl_simt_to_bf16;
    g.to_int = tl_simt_to_int;
    g.halves = true;
    g.words = !options->target->family->by_llvm;
    g.axis = tl_axis_info(fn, arena);
    g.halved = options->target->family->scalar_base ? g.axis : NULL;
    g.keeps_offsets = options->target->family->by_llvm || !tl_offsets_not_kept(fn, g.axis);
    g.regs = TL_NEW_ARRAY(arena, LLVMValueRef *, fn->nvalues + 1);
    g.reads = TL_NEW_ARRAY(arena, struct TlSimtRead *, fn->nvalues + 1);
    code->fn = fn;
    code->symbol = symbol;
    code->flags = options->check ? TILE_KERNEL_CHECKED : 0;
    code->warps = fn->body->warps ? (uint32_t)fn->body->warps : 1;
    g.lane_bits = tl_ceil_log2((uint32_t)options->target->lanes);
    g.warp_bits = tl_ceil_log2(code->warps);
    code->two_flows = has_two_flows(fn);
    code->cluster = cluster_of(fn);
    g.crossed_axis = code->cluster ? (uint32_t)fn->info->cluster_axis : 0;
    if (code->two_flows)
        code->warps += TL_PRODUCER_WARPS;
    code->threads = code->warps * (uint32_t)options->target->lanes;
    g.loc = fn->loc;
    tl_gen_debug_begin(&g.gen);
    begin_function(&g);
    tl_gen_params(&g.gen);
    lower_block(&g, fn->body);
    finish_function(&g, symbol);
    tl_gen_debug_end(&g.gen);
    code->slots = g.slots;
    code->shared_bytes = shared_bytes(&g);
    if (code->shared_bytes > TL_CLUSTER_SHARED && !tl_simt_tensor_is_pair(&g))
        code->cluster = 0;
    if (tl_simt_tensor_is_pair(&g))
        code->flags |= TILE_KERNEL_PAIRS;
    return !g.failed;
}
