/* Lowering of gather, histogram and regroup: operand 0 goes through a table in shared memory
 * (ir/plan/table_plan.h).
 *
 *     for each round
 *         barrier, unless it is the first; write the elements of the round; barrier
 *         gather, regroup: each register whose element is in the round reads it
 *         histogram: each bin counts its values, one after the other, or adds their weights,
 *                    which go through a second table
 *
 * A histogram that adds has its bins as the table, which starts as zeros:
 *
 *         each value adds to its bin, or to its thread's spare word if it is no bin of the round;
 *         barrier; each register reads its bin
 */
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/table_plan.h"

enum { ACCESS_WORDS = 4 };

typedef struct Table {
    TlSimt *g;
    const TlOp *op;
    TlTablePlan p;
    uint32_t scratch;
    TlType type;         /* scalar of the elements in the table */
    const TlType *tile;  /* operand 0; bins that are added to */
    LLVMValueRef *value; /* its registers, in the type of the elements; zeros of bins */
    LLVMValueRef owner;
} Table;

/* Of the op's table, or of the one of a histogram's weights. */
static Table weights_of(const Table *t)
{
    TL_ASSERT(t->op->nin > 1 && t->p.weight_bytes, "a histogram without weights");
    Table w = *t;
    const TlValue *v = tl_in(t->op, 1);
    w.tile = v->type;
    w.type = (TlType){.kind = TL_TILE, .dtype = v->type->dtype};
    w.value = tl_simt_regs(t->g, v);
    w.owner = tl_simt_is_owner(t->g, v->type->layout);
    w.scratch += t->p.weights;
    w.p.elem_bytes = t->p.weight_bytes;
    w.p.vec_bits = t->p.weight_vec_bits;
    w.p.weight_bytes = 0;
    return w;
}

static LLVMValueRef u32(const Table *t, uint32_t x)
{
    return tl_simt_i32(t->g, x);
}

static LLVMValueRef *zeros(TlSimt *g, const TlType *tile)
{
    int64_t n = tl_layout_registers(tile->layout);
    LLVMValueRef *value = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
    for (int64_t r = 0; r < n; r++)
        value[r] = LLVMConstNull(tl_gen_elem_type(&g->gen, tile));
    return value;
}

static Table table_of(TlSimt *g, const TlOp *op)
{
    Table t = {.g = g, .op = op, .p = tl_table_plan(op), .scratch = tl_simt_scratch(op)};
    t.tile = t.p.adds ? op->out[0]->type : tl_in(op, 0)->type;
    t.type = (TlType){.kind = TL_TILE, .dtype = t.tile->dtype, .ptr = t.tile->ptr};
    t.value = t.p.adds ? zeros(g, t.tile) : tl_simt_regs(g, tl_in(op, 0));
    t.owner = tl_simt_is_owner(g, t.tile->layout);
    return t;
}

/* i1: is element number x in the round that begins with `first`? */
static LLVMValueRef in_round(const Table *t, LLVMValueRef x, LLVMValueRef first)
{
    x = LLVMBuildSub(t->g->b, x, first, "");
    return LLVMBuildICmp(t->g->b, LLVMIntULT, x, u32(t, t->p.count), "");
}

/* Address of element number x, which is in the round. */
static LLVMValueRef address(const Table *t, LLVMValueRef x, LLVMValueRef first)
{
    x = LLVMBuildSub(t->g->b, x, first, "");
    LLVMValueRef at = LLVMBuildMul(t->g->b, x, u32(t, t->p.elem_bytes), "");
    return LLVMBuildAdd(t->g->b, at, u32(t, t->scratch), "");
}

/* The number of register `reg`'s element where axis d counts `stride[d]`, without what lies along
 * `skip`. */
static LLVMValueRef number(const Table *t, const TlLayout *l, const uint32_t *stride, int64_t reg,
                           int skip)
{
    LLVMBuilderRef b = t->g->b;
    LLVMValueRef sum = u32(t, 0);
    uint32_t constant = 0;
    for (int d = 0; d < l->nout; d++) {
        if (d == skip)
            continue;
        TlSimtCoord x = tl_simt_split_coord(t->g, l, reg, d);
        sum = LLVMBuildAdd(b, sum, LLVMBuildMul(b, x.thread, u32(t, stride[d]), ""), "");
        constant += (uint32_t)x.constant * stride[d];
    }
    return LLVMBuildAdd(b, sum, u32(t, constant), "");
}

/* ---- rounds ---- */

static void write_elements(const Table *t, LLVMValueRef first)
{
    const TlLayout *l = t->tile->layout;
    int64_t n = tl_layout_registers(l);
    int vec = 1 << t->p.vec_bits;
    for (int64_t r = 0; r < n; r += vec) {
        LLVMValueRef x = number(t, l, t->p.stride, r, -1);
        LLVMValueRef pred = tl_simt_both(t->g, t->owner, tl_simt_is_inside(t->g, t->tile, r));
        if (t->p.nrounds > 1)
            pred = tl_simt_both(t->g, pred, in_round(t, x, first));
        tl_simt_shared_store(t->g, &t->type, address(t, x, first), pred, vec, t->value + r);
    }
}

/* The word that this thread's values add to if they are no bins. */
static LLVMValueRef spare_word(const Table *t)
{
    LLVMValueRef at = LLVMBuildMul(t->g->b, t->g->thread.tid, u32(t, t->p.elem_bytes), "");
    return LLVMBuildAdd(t->g->b, at, u32(t, t->scratch + t->p.spare), "");
}

static void clear_spare_word(const Table *t)
{
    LLVMValueRef zero = LLVMConstNull(tl_gen_elem_type(&t->g->gen, t->tile));
    tl_simt_shared_store(t->g, &t->type, spare_word(t), NULL, 1, &zero);
}

static void write_round(const Table *t, LLVMValueRef first)
{
    write_elements(t, first);
    if (t->p.spare_bytes)
        clear_spare_word(t);
    if (t->p.weight_bytes) {
        Table w = weights_of(t);
        write_elements(&w, first);
    }
    tl_simt_barrier(t->g);
}

/* A reading step of a round: it turns n values into n others. */
typedef void ReadRound(const Table *t, LLVMValueRef first, void *user, LLVMValueRef *values);

/* Several rounds are a loop that carries the values:
 *
 *     head: first = 0, count, ...; if (first > 0) barrier
 *     body: write, barrier, read
 */
static void all_rounds(const Table *t, ReadRound *read, void *user, int64_t n, LLVMValueRef *values)
{
    TlSimt *g = t->g;
    LLVMBuilderRef b = g->b;
    LLVMValueRef zero = u32(t, 0);
    if (t->p.nrounds == 1) {
        write_round(t, zero);
        read(t, zero, user, values);
        return;
    }
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(b), head = tl_gen_block(&g->gen, "round"),
                      between = tl_gen_block(&g->gen, "between"),
                      body = tl_gen_block(&g->gen, "write"), end = tl_gen_block(&g->gen, "rounds");
    LLVMValueRef *phis = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    LLVMValueRef first = LLVMBuildPhi(b, g->i32, "first");
    LLVMAddIncoming(first, &zero, &entry, 1);
    for (int64_t i = 0; i < n; i++) {
        phis[i] = LLVMBuildPhi(b, LLVMTypeOf(values[i]), "");
        LLVMAddIncoming(phis[i], &values[i], &entry, 1);
        values[i] = phis[i];
    }
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntEQ, first, zero, ""), body, between);
    LLVMPositionBuilderAtEnd(b, between);
    tl_simt_barrier(g);
    LLVMBuildBr(b, body);
    LLVMPositionBuilderAtEnd(b, body);
    write_round(t, first);
    read(t, first, user, values);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(b);
    LLVMValueRef next = LLVMBuildAdd(b, first, u32(t, t->p.count), "");
    LLVMAddIncoming(first, &next, &latch, 1);
    for (int64_t i = 0; i < n; i++)
        LLVMAddIncoming(phis[i], &values[i], &latch, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, u32(t, t->p.elems), ""), head, end);
    LLVMPositionBuilderAtEnd(b, end);
}

/* ---- gather ---- */

typedef struct Gather {
    int64_t n;
    LLVMValueRef *number, *inside; /* by register of the result; inside: NULL is true */
} Gather;

static Gather gather_of(const Table *t, const TlLayout *l)
{
    Gather x = {.n = tl_layout_registers(l)};
    x.number = TL_NEW_ARRAY(t->g->arena, LLVMValueRef, x.n);
    x.inside = TL_NEW_ARRAY(t->g->arena, LLVMValueRef, x.n);
    return x;
}

/* Is an index of 32 bits that is in a round inside of the axis, too? In a tile of one axis, whose
 * elements fill all rounds. */
static bool rounds_are_exact(const Table *t)
{
    return t->tile->rank == 1 && t->p.elems % t->p.count == 0;
}

/* Register `reg` of the index as an i32, and whether it is inside of the axis (i1; NULL: where a
 * round has it, it is). */
static LLVMValueRef index_of(const Table *t, int64_t reg, uint32_t extent, LLVMValueRef *out_inside)
{
    TlSimt *g = t->g;
    const TlValue *index = tl_in(t->op, 1);
    LLVMValueRef x = tl_simt_regs(g, index)[reg], limit;
    bool is_wide = tl_dtype_bits(index->type->dtype) > 32;
    if (!is_wide)
        x = LLVMBuildIntCast2(g->b, x, g->i32, tl_is_signed(index->type->dtype), "");
    limit = LLVMConstInt(LLVMTypeOf(x), extent, 0);
    bool is_implied = !is_wide && rounds_are_exact(t);
    *out_inside = is_implied ? NULL : LLVMBuildICmp(g->b, LLVMIntULT, x, limit, "");
    return is_wide ? LLVMBuildTrunc(g->b, x, g->i32, "") : x;
}

/* Elements in another round, outside, or padding read element 0 of this round instead. */
static void gather_round(const Table *t, LLVMValueRef first, void *user, LLVMValueRef *values)
{
    LLVMBuilderRef b = t->g->b;
    const Gather *x = user;
    for (int64_t r = 0; r < x->n; r++) {
        LLVMValueRef v, ok = tl_simt_both(t->g, x->inside[r], in_round(t, x->number[r], first));
        LLVMValueRef at = address(t, x->number[r], first);
        at = LLVMBuildSelect(b, ok, at, u32(t, t->scratch), "");
        tl_simt_shared_load(t->g, &t->type, at, 1, &v);
        values[r] = LLVMBuildSelect(b, ok, v, values[r], "");
    }
}

static void gather_all(const Table *t, Gather *x)
{
    TlSimt *g = t->g;
    LLVMValueRef *out = tl_simt_define(g, t->op->out[0]);
    for (int64_t r = 0; r < x->n; r++)
        out[r] = LLVMConstNull(tl_gen_elem_type(&g->gen, t->op->out[0]->type));
    all_rounds(t, gather_round, x, x->n, out);
}

void tl_simt_gather(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_GATHER && op->nin == 2, "%s is no gather",
              tl_op_info(op->opcode)->text);
    Table t = table_of(g, op);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    const TlLayout *l = op->out[0]->type->layout;
    Gather x = gather_of(&t, l);
    for (int64_t r = 0; r < x.n; r++) {
        LLVMValueRef i = index_of(&t, r, (uint32_t)t.tile->shape[axis], &x.inside[r]);
        i = LLVMBuildMul(g->b, i, u32(&t, t.p.stride[axis]), "");
        x.number[r] = LLVMBuildAdd(g->b, i, number(&t, l, t.p.stride, r, axis), "");
    }
    gather_all(&t, &x);
}

/* Each register reads the element of its own row-major number. */
void tl_simt_regroup(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_REGROUP, "%s regroups nothing", tl_op_info(op->opcode)->text);
    Table t = table_of(g, op);
    const TlType *type = op->out[0]->type;
    uint32_t stride[TL_MAX_RANK], elems = 1;
    for (int d = type->rank - 1; d >= 0; d--) {
        stride[d] = elems;
        elems *= (uint32_t)type->shape[d];
    }
    Gather x = gather_of(&t, type->layout);
    for (int64_t r = 0; r < x.n; r++) {
        x.number[r] = number(&t, type->layout, stride, r, -1);
        x.inside[r] = tl_simt_is_inside(g, type, r);
    }
    gather_all(&t, &x);
}

/* ---- histogram ---- */

/* sum + weight, or 1, where the value is the register's bin */
static LLVMValueRef add_where(const Table *t, LLVMValueRef is, LLVMValueRef sum,
                              LLVMValueRef weight)
{
    TlSimt *g = t->g;
    TlDtype d = t->op->out[0]->type->dtype;
    if (!weight)
        return LLVMBuildAdd(g->b, sum, LLVMBuildZExt(g->b, is, g->i32, ""), "");
    LLVMValueRef more = tl_gen_combine(&g->gen, TL_COMBINE_ADD, d, sum, weight);
    return LLVMBuildSelect(g->b, is, more, sum, "");
}

/* for x = 0, n, ... below the round's end: counts go up where one of values x .. x + n - 1 is the
 * register's bin */
static void count_round(const Table *t, LLVMValueRef first, void *user, LLVMValueRef *values)
{
    TlSimt *g = t->g;
    LLVMBuilderRef b = g->b;
    const TlLayout *l = t->op->out[0]->type->layout;
    int64_t nbins = tl_layout_registers(l);
    int n = (int)t->p.counted_at_once;
    LLVMValueRef v[4], weight[4] = {NULL, NULL, NULL, NULL}, zero = u32(t, 0);
    LLVMValueRef left = LLVMBuildSub(b, u32(t, t->p.elems), first, "");
    LLVMValueRef end =
        tl_gen_pick(&g->gen, LLVMIntULT, left, u32(t, t->p.count), left, u32(t, t->p.count));
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(b), body = tl_gen_block(&g->gen, "count"),
                      after = tl_gen_block(&g->gen, "counted");
    (void)user;
    LLVMBuildBr(b, body);
    LLVMPositionBuilderAtEnd(b, body);
    LLVMValueRef x = LLVMBuildPhi(b, g->i32, "x");
    LLVMAddIncoming(x, &zero, &entry, 1);
    LLVMValueRef *phis = TL_NEW_ARRAY(g->arena, LLVMValueRef, nbins);
    for (int64_t r = 0; r < nbins; r++) {
        phis[r] = LLVMBuildPhi(b, LLVMTypeOf(values[r]), "");
        LLVMAddIncoming(phis[r], &values[r], &entry, 1);
        values[r] = phis[r];
    }
    tl_simt_shared_load(g, &t->type, address(t, x, zero), n, v);
    if (t->p.weight_bytes) {
        Table w = weights_of(t);
        tl_simt_shared_load(g, &w.type, address(&w, x, zero), n, weight);
    }
    for (int64_t r = 0; r < nbins; r++)
        for (int e = 0; e < n; e++) {
            LLVMValueRef is = LLVMBuildICmp(b, LLVMIntEQ, v[e], tl_simt_coord(g, l, r, 0), "");
            values[r] = add_where(t, is, values[r], weight[e]);
        }
    LLVMValueRef next = LLVMBuildAdd(b, x, u32(t, (uint32_t)n), "");
    LLVMAddIncoming(x, &next, &body, 1);
    for (int64_t r = 0; r < nbins; r++)
        LLVMAddIncoming(phis[r], &values[r], &body, 1);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, next, end, ""), body, after);
    LLVMPositionBuilderAtEnd(b, after);
}

/* Registers that hold the same element as one before them add nothing. */
static bool is_copy(const TlLayout *l, int64_t reg)
{
    uint32_t same[TL_LAYOUT_MAX_IN] = {0};
    int in = tl_layout_in_index(l, TL_IN_REG);
    tl_layout_free_masks(l, same);
    return in >= 0 && (uint32_t)reg & ((1u << l->in_bits[in]) - 1) & same[in];
}

static void add_values(const Table *t, LLVMValueRef first)
{
    TlSimt *g = t->g;
    const TlType *type = tl_in(t->op, 0)->type;
    LLVMValueRef *value = tl_simt_regs(g, tl_in(t->op, 0)),
                 *weight = t->op->nin > 1 ? tl_simt_regs(g, tl_in(t->op, 1)) : NULL,
                 owner = tl_simt_is_owner(g, type->layout), spare = spare_word(t);
    for (int64_t r = 0; r < tl_layout_registers(type->layout); r++) {
        if (is_copy(type->layout, r))
            continue;
        LLVMValueRef is_bin = LLVMBuildICmp(g->b, LLVMIntULT, value[r], u32(t, t->p.elems), ""),
                     adds = tl_simt_both(g, owner, tl_simt_is_inside(g, type, r));
        adds = tl_simt_both(g, adds, is_bin);
        if (t->p.nrounds > 1)
            adds = tl_simt_both(g, adds, in_round(t, value[r], first));
        LLVMValueRef at = LLVMBuildSelect(g->b, adds, address(t, value[r], first), spare, ""),
                     args[3] = {at, LLVMConstInt(g->i1, 1, 0), weight ? weight[r] : u32(t, 1)};
        tl_simt_leaf(g, TL_LEAF_ADDS, 3, args);
    }
}

/* Registers outside of the tile and bins of other rounds read the first bin instead. */
static void add_round(const Table *t, LLVMValueRef first, void *user, LLVMValueRef *values)
{
    TlSimt *g = t->g;
    const TlLayout *l = t->tile->layout;
    int vec = 1 << t->p.vec_bits;
    (void)user;
    add_values(t, first);
    tl_simt_barrier(g);
    for (int64_t r = 0; r < tl_layout_registers(l); r += vec) {
        LLVMValueRef bin[ACCESS_WORDS], x = number(t, l, t->p.stride, r, -1),
                     ok = tl_simt_is_inside(g, t->tile, r), at = address(t, x, first);
        if (t->p.nrounds > 1)
            ok = tl_simt_both(g, ok, in_round(t, x, first));
        if (ok)
            at = LLVMBuildSelect(g->b, ok, at, u32(t, t->scratch), "");
        tl_simt_shared_load(g, &t->type, at, vec, bin);
        for (int i = 0; i < vec; i++)
            values[r + i] = t->p.nrounds > 1
                                ? LLVMBuildSelect(g->b, ok, bin[i], values[r + i], "")
                                : bin[i];
    }
}

void tl_simt_histogram(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_HISTOGRAM, "%s counts nothing", tl_op_info(op->opcode)->text);
    Table t = table_of(g, op);
    int64_t n = tl_layout_registers(op->out[0]->type->layout);
    LLVMValueRef *out = tl_simt_define(g, op->out[0]);
    for (int64_t r = 0; r < n; r++)
        out[r] = LLVMConstNull(tl_gen_elem_type(&g->gen, op->out[0]->type));
    all_rounds(&t, t.p.adds ? add_round : count_round, NULL, n, out);
}
