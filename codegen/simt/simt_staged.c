/* Buffers of shared memory: put, get, copy, after the plans of ir/plan/staged_plan.h.
 *
 * The place of an access is what is linear in the thread, XORed with a constant, plus the slot,
 * plus constants: one value for each constant that meets the thread's bits (the rows that a swizzle
 * turns), one add for the slot, the rest is in the instruction.
 *
 * A copy is made as its op says (order-reads): by cp.async, of `async` bytes each, or by loads and
 * stores at once. */
#include <string.h>

#include "codegen/leaf/leaves.h"
#include "codegen/simt/simt_access.h"
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/mma.h"
#include "ir/plan/staged_plan.h"

/* A slot of a buffer and this thread's offsets in it. */
typedef struct Slot {
    TlSimt *g;
    const TlType *buf;
    const TlBufPlan *plan;
    uint32_t at;        /* the buffer's place in shared memory */
    LLVMValueRef start; /* i32: of the slot, in the buffer; NULL: it is the first */
    TlSimtLinear inner, far[TL_LAYOUT_MAX_OUT];
} Slot;

/* ---- places ---- */

static LLVMValueRef slot_start(TlSimt *g, const TlValue *buf, const TlValue *number)
{
    LLVMValueRef n = tl_gen_scalar(&g->gen, number);
    if (buf->type->slots == 1 || (LLVMIsAConstantInt(n) && LLVMConstIntGetZExtValue(n) == 0))
        return NULL;
    uint32_t bytes = (uint32_t)tl_buf_slot_bytes(buf->type);
    return LLVMBuildNUWMul(g->b, n, tl_simt_i32(g, bytes), "");
}

static Slot slot_of(TlSimt *g, const TlValue *buf, const TlValue *number, const TlBufPlan *plan)
{
    int64_t at = tl_attr_int(tl_buf_alloc(buf), TL_ATTR_SHARED, -1);
    TL_ASSERT(at >= 0, "a buffer without a place");
    Slot s = {.g = g, .buf = buf->type, .plan = plan, .at = (uint32_t)at};
    s.start = slot_start(g, buf, number);
    s.inner = tl_simt_linear(g, &plan->inner, g->lane_bits, g->warp_bits, 1);
    for (int k = 0; k < plan->nfar; k++)
        s.far[k] = tl_simt_linear(g, &plan->far[k].thread, g->lane_bits, g->warp_bits, 1);
    return s;
}

/* Adds two offsets: both are small and not negative. */
static LLVMValueRef plus(TlSimt *g, LLVMValueRef a, LLVMValueRef b)
{
    if (!a || !b)
        return a ? a : b;
    LLVMValueRef sum = LLVMBuildNUWAdd(g->b, a, b, "");
    if (LLVMIsAInstruction(sum))
        LLVMSetNSW(sum, 1);
    return sum;
}

/* Counted from the slot's start. */
static LLVMValueRef offset_in_slot(const Slot *s, const TlBufAccess *a)
{
    TlSimt *g = s->g;
    uint32_t mixed = a->inner & s->inner.bits, rest = s->at + a->outer + a->inner - mixed;
    LLVMValueRef at = NULL;
    if (s->inner.bits) {
        at = s->inner.thread;
        if (mixed)
            at = LLVMBuildXor(g->b, at, tl_simt_i32(g, mixed), "");
    }
    for (int k = 0; k < s->plan->nfar; k++) {
        LLVMValueRef chunk = LLVMBuildXor(g->b, s->far[k].thread, tl_simt_i32(g, a->far_at[k]), "");
        at = plus(g, at, LLVMBuildNUWMul(g->b, chunk, tl_simt_i32(g, s->plan->far[k].stride), ""));
    }
    return rest || !at ? plus(g, at, tl_simt_i32(g, rest)) : at;
}

static LLVMValueRef offset_of(const Slot *s, const TlBufAccess *a)
{
    return plus(s->g, offset_in_slot(s, a), s->start);
}

static LLVMValueRef start_of(const Slot *s)
{
    return s->start ? s->start : tl_simt_i32(s->g, 0);
}

/* ---- put ---- */

/* i1: is the register's element in the buffer? NULL: always. */
static LLVMValueRef is_in_buffer(const Slot *s, const TlType *tile, const TlBufAccess *a)
{
    TlType covered = *tile;
    if (!a->guarded)
        return NULL;
    for (int d = 0; d < tile->rank; d++)
        covered.shape[d] = tl_layout_extent(s->buf->layout, d);
    return tl_simt_is_inside(s->g, &covered, a->regs[0]);
}

static void put_registers(const Slot *s, const TlType *tile, LLVMValueRef *regs)
{
    TlSimt *g = s->g;
    LLVMValueRef owner = tl_simt_is_owner(g, tile->layout), x[16];
    TlType elem = {.kind = TL_TILE, .dtype = s->buf->dtype};
    for (uint32_t i = 0; i < s->plan->naccesses; i++) {
        const TlBufAccess *a = &s->plan->accesses[i];
        for (uint32_t e = 0; e < s->plan->nregs; e++)
            x[e] = regs[a->regs[e]];
        LLVMValueRef pred = tl_simt_both(g, owner, is_in_buffer(s, tile, a));
        tl_simt_shared_store(g, &elem, offset_of(s, a), pred, (int)s->plan->nregs, x);
    }
}

static const TlBufPlan *plan_of_put(TlSimt *g, const TlType *tile, const TlType *buf)
{
    enum { ANY = 16 };
    return tl_buf_plan(g->arena, tile, buf, ANY, tl_leaf_puts(g->options->target));
}

static tl_leaf storing_leaf(const TlBufPlan *p)
{
    tl_leaf first = p->kind == TL_BUF_MATRIX     ? TL_LEAF_STSM_1
                    : p->kind == TL_BUF_MATRIX_8 ? TL_LEAF_STSM_8_1
                                                 : TL_LEAF_STSM_T_1;
    return (tl_leaf)((int)first + p->words / 2); /* 1, 2, 4 */
}
_Static_assert(TL_LEAF_STSM_4 == TL_LEAF_STSM_1 + 2 && TL_LEAF_STSM_T_4 == TL_LEAF_STSM_T_1 + 2 &&
                   TL_LEAF_STSM_8_4 == TL_LEAF_STSM_8_1 + 2,
               "one, two, four matrices");

static void put_matrices(const Slot *s, LLVMValueRef *regs)
{
    enum { FIXED = 2, MOST_WORDS = 4 }; /* operands of a leaf: slot and offset, a word a matrix */
    TlSimt *g = s->g;
    TlType elem = {.kind = TL_TILE, .dtype = s->buf->dtype};
    int words = s->plan->words, in_word = (int)s->plan->nregs / words;
    for (uint32_t i = 0; i < s->plan->naccesses; i++) {
        const TlBufAccess *a = &s->plan->accesses[i];
        LLVMValueRef args[FIXED + MOST_WORDS] = {start_of(s), offset_in_slot(s, a)}, x[MOST_WORDS];
        for (int w = 0; w < words; w++) {
            for (int e = 0; e < in_word; e++)
                x[e] = regs[a->regs[w * in_word + e]];
            LLVMValueRef word = tl_simt_pack(g, &elem, in_word, x);
            args[FIXED + w] = LLVMBuildBitCast(g->b, word, g->i32, "");
        }
        tl_simt_leaf(g, storing_leaf(s->plan), FIXED + (unsigned)words, args);
    }
}

void tl_simt_put(TlSimt *g, TlOp *op)
{
    const TlValue *buf = tl_in(op, 0), *tile = tl_in(op, 2);
    Slot s = slot_of(g, buf, tl_in(op, 1), plan_of_put(g, tile->type, buf->type));
    if (s.plan->kind == TL_BUF_VECTOR)
        put_registers(&s, tile->type, tl_simt_regs(g, tile));
    else
        put_matrices(&s, tl_simt_regs(g, tile));
}

/* ---- get ---- */

/* Elements past the end are read at the beginning of the slot, which exists. */
static LLVMValueRef guarded_offset(const Slot *s, const TlType *tile, const TlBufAccess *a)
{
    TlSimt *g = s->g;
    LLVMValueRef at = offset_of(s, a);
    LLVMValueRef inside = a->guarded ? tl_simt_is_inside(g, tile, a->regs[0]) : NULL;
    if (!inside)
        return at;
    LLVMValueRef first = plus(g, s->start, tl_simt_i32(g, s->at));
    return LLVMBuildSelect(g->b, inside, at, first, "");
}

static tl_leaf matrix_leaf(const TlBufPlan *p)
{
    tl_leaf first = p->kind == TL_BUF_MATRIX ? TL_LEAF_LDSM_1 : TL_LEAF_LDSM_T_1;
    if (p->kind == TL_BUF_MATRIX_8)
        return p->words == 2 ? TL_LEAF_LDSM_8_1 : TL_LEAF_LDSM_8_2; /* two words a matrix */
    return (tl_leaf)((int)first + p->words / 2); /* 1, 2, 4 */
}
_Static_assert(TL_LEAF_LDSM_4 == TL_LEAF_LDSM_1 + 2 && TL_LEAF_LDSM_T_4 == TL_LEAF_LDSM_T_1 + 2,
               "one, two, four matrices");

static LLVMValueRef get_matrix(const Slot *s, const TlBufAccess *a)
{
    LLVMValueRef at[] = {start_of(s), offset_in_slot(s, a)};
    return tl_simt_leaf(s->g, matrix_leaf(s->plan), 2, at);
}

static LLVMValueRef get_columns(const Slot *s, const TlBufAccess *a)
{
    uint32_t bits = 8 * (uint32_t)tl_dtype_bytes(s->buf->dtype);
    LLVMValueRef at = offset_of(s, a);
    return tl_simt_leaf(s->g, tl_leaf_of_size(TL_LEAF_FAMILY_LDS_T, bits), 1, &at);
}

static void get_matrices(const Slot *s, const TlBufAccess *a, const TlType *elem, LLVMValueRef *x)
{
    TlSimt *g = s->g;
    int words = s->plan->words, in_word = (int)s->plan->nregs / words;
    LLVMValueRef all = s->plan->kind == TL_BUF_COLUMNS ? get_columns(s, a) : get_matrix(s, a);
    for (int w = 0; w < words; w++) {
        LLVMValueRef word = all;
        if (words > 1)
            word = LLVMBuildExtractElement(g->b, all, tl_simt_i32(g, (uint32_t)w), "");
        tl_simt_unpack(g, elem, word, in_word, x + w * in_word);
    }
}

/* A GET under way, or a TRANS of one. */
typedef struct TlSimtRead {
    const TlValue *tile;
    const TlValue *of; /* the operand of TRANS, whose registers are at `from`; else NULL */
    int64_t *from;
    Slot slot;
    TlType elem;
    TlLoc loc;
    uint32_t left, *access_of; /* accesses to come; by register */
    bool *done;                /* by access */
} Read;

static bool read_access(TlSimt *g, Read *r, uint32_t i)
{
    const TlBufPlan *p = r->slot.plan;
    const TlBufAccess *a = &p->accesses[i];
    LLVMValueRef x[16];
    if (r->done[i])
        return false;
    TlLoc outer = g->loc;
    g->loc = r->loc;
    if (p->kind == TL_BUF_VECTOR)
        tl_simt_shared_load(g, &r->elem, guarded_offset(&r->slot, r->tile->type, a), (int)p->nregs,
                            x);
    else
        get_matrices(&r->slot, a, &r->elem, x);
    for (uint32_t e = 0; e < p->nregs; e++)
        g->regs[r->tile->id][a->regs[e]] = x[e];
    g->loc = outer;
    r->done[i] = true;
    if (--r->left == 0)
        g->reads[r->tile->id] = NULL;
    return true;
}

static bool read_of_other(TlSimt *g, Read *r, int64_t reg)
{
    int64_t first = reg < 0 ? 0 : reg, end = reg < 0 ? tl_simt_count(r->tile) : reg + 1;
    bool any = false;
    for (int64_t i = first; i < end; i++) {
        any |= tl_simt_read(g, r->of, r->from[i]);
        g->regs[r->tile->id][i] = g->regs[r->of->id][r->from[i]];
    }
    if (reg < 0)
        g->reads[r->tile->id] = NULL;
    return any;
}

bool tl_simt_read(TlSimt *g, const TlValue *v, int64_t reg)
{
    Read *r = g->reads[v->id];
    bool any = false;
    if (!r)
        return false;
    if (r->of)
        return read_of_other(g, r, reg);
    if (reg >= 0)
        return read_access(g, r, r->access_of[reg]);
    for (uint32_t i = 0, n = r->slot.plan->naccesses; i < n; i++)
        any |= read_access(g, r, i);
    return any;
}

bool tl_simt_is_unread(TlSimt *g, const TlValue *v, int64_t reg)
{
    const Read *r = g->reads[v->id];
    if (r && r->of)
        return tl_simt_is_unread(g, r->of, r->from[reg]);
    return r && !r->done[r->access_of[reg]];
}

bool tl_simt_trans_later(TlSimt *g, const TlOp *op, const int *dims)
{
    const TlValue *x = tl_in(op, 0), *tile = op->out[0];
    if (op->opcode != TL_OP_TRANS || !g->reads[x->id])
        return false;
    Read *r = TL_NEW(g->arena, Read);
    *r = (Read){.tile = tile, .of = x, .loc = op->loc};
    r->from = TL_NEW_ARRAY(g->arena, int64_t, tl_simt_count(tile));
    for (int64_t i = 0; i < tl_simt_count(tile); i++)
        r->from[i] = tl_simt_match(g, x->type->layout, tile->type->layout, i, dims);
    tl_simt_define(g, tile);
    g->reads[tile->id] = r;
    return true;
}

void tl_simt_read_late(TlSimt *g, TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *tile = tl_in(op, i);
        if (!tl_attr(op, TL_ATTR_LATE))
            tl_simt_read(g, tile, -1);
        for (const TlUse *u = tile->uses; u && g->reads[tile->id]; u = u->next)
            if (tl_mma_of(u->user))
                tl_simt_mma_read_first(g, u->user);
    }
}

void tl_simt_get(TlSimt *g, TlOp *op)
{
    enum { ANY = 16 };
    const TlValue *buf = tl_in(op, 0), *tile = op->out[0];
    const TlBufPlan *p = tl_buf_plan(g->arena, tile->type, buf->type, ANY,
                                     tl_leaf_gets(g->options->target));
    Read *r = TL_NEW(g->arena, Read);
    *r = (Read){.tile = tile,
                .slot = slot_of(g, buf, tl_in(op, 1), p),
                .elem = {.kind = TL_TILE, .dtype = buf->type->dtype},
                .loc = op->loc,
                .left = p->naccesses};
    r->done = TL_NEW_ARRAY(g->arena, bool, p->naccesses + 1);
    r->access_of = TL_NEW_ARRAY(g->arena, uint32_t, tl_layout_registers(tile->type->layout));
    for (uint32_t i = 0; i < p->naccesses; i++)
        for (uint32_t e = 0; e < p->nregs; e++)
            r->access_of[p->accesses[i].regs[e]] = i;
    tl_simt_define(g, tile);
    g->reads[tile->id] = p->naccesses ? r : NULL;
    if (!tl_attr(op, TL_ATTR_LATE))
        tl_simt_read(g, tile, -1);
}

/* ---- copy ---- */

/* A copy by cp.async, about to begin. */
typedef struct Copy {
    TlSimtAccess from;
    Slot to;
    TlLoc loc;
    int32_t param;
    LLVMValueRef owner;
    bool is_row; /* a warp's are a row: `to` is where its first lane's go */
} Copy;

/* By a base and 32 bits, if that reaches it: a row that is inside, and that every thread begins.
 * True: it has begun. Of another one, *address is made so, and no thread keeps 64 bits for it from
 * trip to trip. */
static bool begin_near(Copy *c, const TlBufAccess *a, bool all, LLVMValueRef *address)
{
    TlSimt *g = c->to.g;
    TlSimtAccess from = c->from;
    LLVMValueRef x[TL_BUFFER_OPERANDS];
    if (g->options->target->can & TL_CAN_FILL || !tl_simt_buffer_inside(g, &from))
        return false;
    tl_simt_buffer_operands(g, &from, a->regs[0], NULL, NULL, x);
    LLVMValueRef args[] = {x[0], x[2], start_of(&c->to), offset_in_slot(&c->to, a), x[5], x[6]};
    if (all && c->is_row) {
        tl_simt_leaf(g, TL_LEAF_CP_ROW_NEAR, 6, args);
        return true;
    }
    *address = x[0];
    for (int i = 5; i < TL_BUFFER_OPERANDS; i++) {
        LLVMValueRef bytes = LLVMBuildZExt(g->b, x[i], g->i64, "");
        *address = LLVMBuildGEP2(g->b, g->i8, *address, &bytes, 1, "");
    }
    return false;
}

static void begin_access(Copy *c, const TlBufAccess *a)
{
    TlSimt *g = c->to.g;
    int64_t r = a->regs[0];
    uint64_t bytes = tl_gen_elem_bytes(&c->from.elem) * c->to.plan->nregs;
    LLVMValueRef pred = tl_simt_both(g, c->owner, is_in_buffer(&c->to, c->from.type, a)),
                 address = tl_simt_access_address(g, &c->from, r),
                 inside = tl_simt_access_pred(g, &c->from, r);
    inside = tl_simt_access_ask(g, &c->from, inside, address, bytes);
    if (begin_near(c, a, !pred && !inside, &address))
        return;
    LLVMValueRef args[6] = {tl_simt_pred_or_true(g, pred),
                            start_of(&c->to),
                            offset_in_slot(&c->to, a),
                            address,
                            tl_simt_pred_or_true(g, inside),
                            tl_simt_access_hints(g, c->from.op)};
    tl_leaf leaf = c->is_row     ? TL_LEAF_CP_ROW
                   : bytes == 16 ? TL_LEAF_CP_ASYNC_16
                   : bytes == 8  ? TL_LEAF_CP_ASYNC_8
                                 : TL_LEAF_CP_ASYNC_4;
    tl_simt_leaf(g, leaf, 6, args);
}

static void begin_copies(TlSimt *g, Copy *copies, uint32_t n, bool all_inside)
{
    for (uint32_t k = 0; k < n; k++) {
        Copy *c = &copies[k];
        g->loc = c->loc;
        g->param = c->param;
        tl_gen_set_loc(&g->gen, c->loc);
        if (!all_inside && c->from.moving)
            tl_simt_access_move(g, &c->from);
        c->from.inside = all_inside ? c->from.whole : 0;
        for (uint32_t i = 0; i < c->to.plan->naccesses; i++)
            begin_access(c, &c->to.plan->accesses[i]);
    }
}

static void copy_at_once(TlSimt *g, TlOp *op)
{
    TlSimtAccess from;
    tl_simt_access_begin(g, op, &from);
    tl_simt_access_promise(g, &from);
    LLVMValueRef *regs = TL_NEW_ARRAY(g->arena, LLVMValueRef, from.nregs);
    const TlPlace *p = &from.place;
    tl_simt_load_registers(g, &from, regs);
    Slot s = slot_of(g, p->buf, p->slot, tl_copy_plan(g->arena, op));
    put_registers(&s, from.type, regs);
}

/* The place of a warp's first lane, from the warp's number, which all of its lanes share. */
static void keep_warp_alone(Slot *s)
{
    TlSimt *g = s->g;
    LLVMValueRef warp = g->thread.warp;
    g->thread.warp = tl_simt_uniform_warp(g);
    s->inner = tl_simt_linear(g, &s->plan->inner, 0, g->warp_bits, 1);
    for (int k = 0; k < s->plan->nfar; k++)
        s->far[k] = tl_simt_linear(g, &s->plan->far[k].thread, 0, g->warp_bits, 1);
    g->thread.warp = warp;
}

static void prepare_copy(TlSimt *g, TlOp *op, Copy *c)
{
    TlSimtAccess *from = &c->from;
    g->loc = op->loc;
    tl_gen_set_loc(&g->gen, op->loc);
    tl_simt_access_begin(g, op, from);
    tl_simt_access_promise(g, from);
    c->to = slot_of(g, from->place.buf, from->place.slot, tl_copy_plan(g->arena, op));
    c->owner = tl_simt_is_owner(g, from->layout);
    c->is_row = !(g->options->target->can & TL_CAN_COPY_EACH);
    if (c->is_row)
        keep_warp_alone(&c->to);
    c->loc = op->loc;
    c->param = g->param;
}

/* i1: are the tiles in bounds along the axes that `whole` lists? NULL: it lists none. The other
 * tests are made here, for use in both branches. */
static LLVMValueRef are_inside(TlSimt *g, Copy *copies, uint32_t n)
{
    LLVMValueRef all = NULL;
    for (uint32_t k = 0; k < n; k++) {
        Copy *c = &copies[k];
        c->from.inside = c->from.whole;
        for (uint32_t i = 0; i < c->to.plan->naccesses; i++)
            tl_simt_access_inside(g, &c->from, c->to.plan->accesses[i].regs[0]);
        all = tl_simt_both(g, all, tl_simt_access_all_inside(g, &c->from));
    }
    return all;
}

static bool is_async(const TlOp *op)
{
    return op && op->opcode == TL_OP_COPY && tl_attr(op, TL_ATTR_ASYNC);
}

/* Adjacent asynchronous copies, made ready. */
static Copy *prepare_copies(TlSimt *g, TlOp *first, uint32_t *n)
{
    uint32_t most = 0;
    for (TlOp *o = first; is_async(o); o = o->next)
        most++;
    Copy *copies = TL_NEW_ARRAY(g->arena, Copy, most);
    for (TlOp *o = first; is_async(o); o = o->next)
        prepare_copy(g, o, &copies[(*n)++]);
    return copies;
}

/* Copies of which the next product begins some between its instructions. */
typedef struct TlSimtSpread {
    Copy *copies;
    uint32_t n, access, begun, all; /* copies; the access that is next, of the first of them */
} Spread;

static void spread_copies(TlSimt *g, TlOp *first)
{
    Spread *s = TL_NEW(g->arena, Spread);
    *s = (Spread){0};
    s->copies = prepare_copies(g, first, &s->n);
    for (uint32_t i = 0; i < s->n; i++)
        s->all += s->copies[i].to.plan->naccesses;
    g->spread = s;
}

static void begin_next(TlSimt *g, Spread *s)
{
    TlLoc outer = g->loc;
    g->loc = s->copies->loc;
    g->param = s->copies->param;
    begin_access(s->copies, &s->copies->to.plan->accesses[s->access]);
    g->loc = outer;
    s->begun++;
    if (++s->access == s->copies->to.plan->naccesses) {
        s->access = 0;
        s->copies++;
    }
}

void tl_simt_begin_spread(TlSimt *g, uint32_t done, uint32_t of)
{
    Spread *s = g->spread;
    while (s && s->begun < (uint64_t)s->all * done / of)
        begin_next(g, s);
    if (s && s->begun == s->all)
        g->spread = NULL;
}

/* Adjacent asynchronous copies start together: if all of them are in bounds along the axes that
 * `whole` lists, without tests along these axes. At the end of a view, everything is computed
 * again: if the two branches shared addresses, ptxas would merge them into one, with each copy
 * twice, under predicates. */
static void begin_together(TlSimt *g, TlOp *first)
{
    uint32_t n = 0;
    Copy *copies = prepare_copies(g, first, &n);
    LLVMValueRef inside = are_inside(g, copies, n);
    if (!inside) {
        begin_copies(g, copies, n, false);
        return;
    }
    LLVMBasicBlockRef whole = tl_gen_block(&g->gen, "whole"), part = tl_gen_block(&g->gen, "part"),
                      join = tl_gen_block(&g->gen, "begun");
    LLVMBuildCondBr(g->b, inside, whole, part);
    for (int k = 0; k < 2; k++) {
        LLVMPositionBuilderAtEnd(g->b, k ? part : whole);
        begin_copies(g, copies, n, k == 0);
        LLVMBuildBr(g->b, join);
    }
    LLVMPositionBuilderAtEnd(g->b, join);
}

static bool has_async(TlSimt *g, const TlOp *op)
{
    const TlTarget *target = g->options->target;
    if (target->can & TL_CAN_COPY)
        return true;
    tl_diag(&g->fn->module->ctx->diags, op->loc, TL_E0700,
            tl_format(g->arena, "asynchronous copies on %s", target->name));
    g->failed = true;
    return false;
}

void tl_simt_copy(TlSimt *g, TlOp *op)
{
    if (!is_async(op))
        copy_at_once(g, op);
    else if (!has_async(g, op) || is_async(op->prev))
        return;
    else if (tl_copy_is_spread(op))
        spread_copies(g, op);
    else
        begin_together(g, op);
}

void tl_simt_wait(TlSimt *g, TlOp *op)
{
    LLVMValueRef pending = tl_simt_i32(g, (uint32_t)tl_attr_int(op, TL_ATTR_PENDING, 0));
    if (!(g->options->target->can & TL_CAN_COPY))
        return; /* copies are done at once */
    if (op->opcode == TL_OP_COMMIT)
        tl_simt_leaf(g, TL_LEAF_CP_COMMIT, 0, NULL);
    else
        tl_simt_leaf(g, TL_LEAF_CP_WAIT, 1, &pending);
}
