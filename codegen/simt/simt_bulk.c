/* Barriers that count what arrives (MBAR), and bulk copies: boxes of a tensor map, which the
 * runtime makes of a view, go to a slot of a buffer, or from there to memory, begun by one thread.
 *
 * The slot's layout is the image of ir/plan/stage_layout.h: panels of rows of at most 128 bytes. A
 * box is a panel, or as much of it as 256 rows.
 *
 * What all programs of a cluster read, each of them brings a part of to all. The code is that of
 * any cluster: of as many as the copy says, or of this program alone, which begins all parts. What
 * a pair of programs multiplies together, each brings to its own memory, and the barrier of the
 * first counts it. */
#include "codegen/simt/simt.h"
#include "ir/plan/bulk.h"
#include "ir/plan/staged.h"

/* ---- barriers ---- */

static LLVMValueRef is_first_thread(TlSimt *g)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, g->thread.tid, tl_simt_i32(g, 0), "");
}

/* The byte offset of a slot in shared memory. */
static LLVMValueRef offset_of(TlSimt *g, const TlValue *buf, const TlValue *slot)
{
    int64_t at = tl_attr_int(buf->def, TL_ATTR_SHARED, -1);
    uint32_t bytes = (uint32_t)tl_buf_slot_bytes(buf->type);
    TL_ASSERT(at >= 0, "a buffer without a place");
    LLVMValueRef start = tl_simt_i32(g, (uint32_t)at);
    if (buf->type->slots == 1)
        return start;
    LLVMValueRef n = LLVMBuildNUWMul(g->b, tl_gen_scalar(&g->gen, slot), tl_simt_i32(g, bytes), "");
    return LLVMBuildNUWAdd(g->b, n, start, "");
}

/* ---- clusters ---- */

/* Programs that run together; 1: this one only. */
static LLVMValueRef cluster_size(TlSimt *g)
{
    return tl_simt_leaf(g, TL_LEAF_CLUSTER_SIZE, 0, NULL);
}

/* Does this program begin the part? */
static LLVMValueRef is_own_part(TlSimt *g, uint32_t part)
{
    LLVMValueRef rank = tl_simt_leaf(g, TL_LEAF_CLUSTER_RANK, 0, NULL), one = tl_simt_i32(g, 1),
                 alone = LLVMBuildICmp(g->b, LLVMIntEQ, cluster_size(g), one, "");
    return LLVMBuildOr(
        g->b, alone, LLVMBuildICmp(g->b, LLVMIntEQ, rank, tl_simt_i32(g, part), ""), "");
}

/* A bit for each program. */
static LLVMValueRef all_programs(TlSimt *g)
{
    LLVMValueRef one = tl_simt_i32(g, 1);
    return LLVMBuildSub(g->b, LLVMBuildShl(g->b, one, cluster_size(g), ""), one, "");
}

/* ---- making and ending them ---- */

static LLVMValueRef offset_of_slot(TlSimt *g, const TlValue *buf, int32_t slot)
{
    int64_t at = tl_attr_int(buf->def, TL_ATTR_SHARED, -1);
    return tl_simt_i32(g, (uint32_t)(at + slot * (int64_t)tl_buf_slot_bytes(buf->type)));
}

static bool is_next_to(const TlOp *op, TlOpcode opcode)
{
    return op && op->opcode == opcode;
}

/* Does the cluster meet behind what is made here? */
static bool is_before_meeting(const TlOp *op)
{
    do
        op = op->next;
    while (op && op->opcode == TL_OP_ALLOC);
    return op && (op->opcode == TL_OP_MEET ||
                  (op->opcode == TL_OP_TENSOR && tl_attr_flag(op, TL_ATTR_PAIR)));
}

/* Barriers next to each other are made together. What was in their bytes, synchronize knows. */
void tl_simt_mbar(TlSimt *g, TlOp *op)
{
    const TlValue *buf = op->out[0];
    LLVMValueRef arrivals = tl_simt_i32(g, (uint32_t)tl_attr_int(op, TL_ATTR_ARRIVALS, 1));
    if (tl_attr(op, TL_ATTR_CLUSTER))
        arrivals = LLVMBuildMul(g->b, arrivals, cluster_size(g), "");
    for (int32_t i = 0; i < buf->type->slots; i++) {
        LLVMValueRef args[] = {is_first_thread(g), offset_of_slot(g, buf, i), arrivals};
        tl_simt_leaf(g, TL_LEAF_MBAR_INIT, 3, args);
    }
    if (!is_next_to(op->next, TL_OP_MBAR) && !is_before_meeting(op))
        tl_simt_barrier(g);
}

void tl_simt_mbar_end(TlSimt *g, TlOp *op)
{
    const TlValue *buf = tl_in(op, 0);
    if (!is_next_to(op->prev, TL_OP_MBAR_END) && !is_next_to(op->prev, TL_OP_MEET))
        tl_simt_barrier(g); /* all have waited */
    for (int32_t i = 0; i < buf->type->slots; i++) {
        LLVMValueRef args[] = {is_first_thread(g), offset_of_slot(g, buf, i)};
        tl_simt_leaf(g, TL_LEAF_MBAR_END, 2, args);
    }
}

static LLVMValueRef always(TlSimt *g)
{
    return LLVMConstInt(g->i1, 1, 0);
}

/* Of a pair, the first program does. */
static void expect(TlSimt *g, const TlOp *op, LLVMValueRef pred)
{
    if (tl_attr_flag(op, TL_ATTR_PAIR))
        pred = LLVMBuildAnd(g->b, pred, tl_simt_is_first_of_pair(g), "");
    LLVMValueRef args[] = {pred, offset_of(g, tl_in(op, 0), tl_in(op, 1)),
                           tl_simt_i32(g, (uint32_t)tl_attr_int(op, TL_ATTR_BYTES, 0))};
    tl_simt_leaf(g, TL_LEAF_MBAR_EXPECT, 3, args);
}

/* One lane of each warp, for each program of the cluster whose barrier waits for it. */
void tl_simt_arrive(TlSimt *g, TlOp *op)
{
    if (tl_attr_flag(op, TL_ATTR_PRODUCTS)) {
        TL_ASSERT(tl_attr_flag(op, TL_ATTR_PAIR) == tl_simt_tensor_is_pair(g),
                  "'%s': products arrive for another number of programs", g->fn->name);
        tl_simt_tensor_arrive(g, offset_of(g, tl_in(op, 0), tl_in(op, 1)));
        return;
    }
    bool everywhere = tl_attr(tl_in(op, 0)->def, TL_ATTR_CLUSTER) != NULL;
    LLVMValueRef pred = everywhere
                            ? LLVMBuildICmp(g->b, LLVMIntULT, g->thread.lane, cluster_size(g), "")
                            : tl_simt_leaf(g, TL_LEAF_ELECT, 0, NULL);
    if (tl_attr_flag(op, TL_ATTR_MASK))
        pred = LLVMBuildAnd(g->b, pred, tl_gen_scalar(&g->gen, tl_in(op, 2)), "");
    LLVMValueRef args[] = {pred, offset_of(g, tl_in(op, 0), tl_in(op, 1)), g->thread.lane};
    if (everywhere)
        tl_simt_leaf(g, TL_LEAF_MBAR_ARRIVE_AT, 3, args);
    else
        tl_simt_leaf(g, TL_LEAF_MBAR_ARRIVE, 2, args);
}

void tl_simt_mbar_wait(TlSimt *g, const TlOp *op)
{
    LLVMValueRef args[] = {offset_of(g, tl_in(op, 0), tl_in(op, 1)),
                           tl_gen_scalar(&g->gen, tl_in(op, 2))};
    if (tl_attr_flag(op, TL_ATTR_PRODUCTS))
        tl_simt_tensor_wait(g, args);
    else
        tl_simt_leaf(g, TL_LEAF_MBAR_WAIT, 2, args);
}

/* ---- copies ---- */

static LLVMValueRef map_of(TlSimt *g, const TlPlace *p, const TlBulk *bulk)
{
    return tl_gen_map_slot(&g->gen, tl_bulk_param(p)->index, bulk);
}

/* Is one of the view's axes empty? */
static LLVMValueRef is_empty(TlSimt *g, const TlPlace *p)
{
    LLVMValueRef any = NULL;
    for (uint32_t i = 0; i < p->naxes; i++) {
        LLVMValueRef extent = tl_gen_view(&g->gen, p->base)->extent[i];
        LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntSLE, extent, tl_gen_int(&g->gen, 0), "");
        any = any ? LLVMBuildOr(g->b, any, none, "") : none;
    }
    return any;
}

/* An axis along which the copy does not move from iteration to iteration, if there is one. */
static uint32_t still_axis(const TlOp *op, const TlPlace *p)
{
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlValue *index = p->index[i].value;
        if ((index->def ? index->def->block : index->block) != op->block)
            return i;
    }
    return 0;
}

/* The start along an axis of the view. Where the view is empty, nothing is inside; the map has one
 * element then: `still` says so. */
static LLVMValueRef coordinate(TlSimt *g, const TlPlace *p, uint32_t axis, int32_t more,
                               uint32_t still)
{
    enum { FAR = 0x7fff0000 };
    const TlValue *index = p->index[axis].value;
    LLVMValueRef at = LLVMBuildIntCast2(g->b, tl_gen_scalar(&g->gen, index), g->i32,
                                        tl_is_signed(index->type->dtype), "");
    if (more)
        at = LLVMBuildAdd(g->b, at, tl_simt_i32(g, (uint32_t)more), "");
    if (axis != still)
        return at;
    return LLVMBuildSelect(g->b, is_empty(g, p), tl_simt_i32(g, FAR), at, "");
}

/* Where this program's half of the tile begins. */
static LLVMValueRef start_of_half(TlSimt *g, const TlBulk *bulk)
{
    LLVMValueRef rank = tl_simt_leaf(g, TL_LEAF_CLUSTER_RANK, 0, NULL);
    return LLVMBuildMul(g->b, rank, tl_simt_i32(g, (uint32_t)bulk->half), "");
}

/* Of a box: as many as the view has axes. */
static void put_coordinates(TlSimt *g, const TlPlace *p, const TlBulk *bulk, const TlBulkBox *box,
                            uint32_t still, LLVMValueRef *out)
{
    for (int k = 0; k < bulk->rank; k++) {
        uint32_t axis = bulk->axes[k];
        int32_t more = axis == bulk->row ? box->column : axis == bulk->other ? box->row : 0;
        out[k] = coordinate(g, p, axis, more, still);
        if (axis + 1 == bulk->halved)
            out[k] = LLVMBuildAdd(g->b, out[k], start_of_half(g, bulk), "");
    }
}

static void copy(TlSimt *g, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    TlBulk bulk;
    bool known = tl_bulk_plan(g->arena, op, p.buf->type, &bulk);
    TL_ASSERT(known, "'%s' has a bulk copy that no box makes", g->fn->name);
    LLVMValueRef map = map_of(g, &p, &bulk), to = offset_of(g, p.buf, p.slot),
                 bar = offset_of(g, p.bar, p.bar_slot);
    uint32_t programs = (uint32_t)tl_attr_int(op, TL_ATTR_CLUSTER, 1);
    uint32_t still = still_axis(op, &p);
    bool all = programs > 1, pair = tl_attr_flag(op, TL_ATTR_PAIR);
    tl_leaf leaf = pair ? TL_LEAF_BULK_PAIR_1 : all ? TL_LEAF_BULK_ALL_1 : TL_LEAF_BULK_1;
    g->param = (int)tl_bulk_param(&p)->index;
    for (uint32_t i = 0; i < bulk.boxes.len; i++) {
        const TlBulkBox *box = &bulk.boxes.data[i];
        LLVMValueRef args[5 + TL_BULK_MAX_RANK] = {
            all ? is_own_part(g, i * programs / bulk.boxes.len) : always(g), map,
            LLVMBuildAdd(g->b, to, tl_simt_i32(g, box->offset), ""), bar};
        unsigned n = 4;
        if (all)
            args[n++] = all_programs(g);
        put_coordinates(g, &p, &bulk, box, still, args + n);
        tl_simt_leaf(g, (tl_leaf)((int)leaf + bulk.rank - 1), n + (unsigned)bulk.rank, args);
    }
}

/* ---- what one thread begins ---- */

static bool is_of_one(const TlOp *op)
{
    return op && tl_begins_bulk(op);
}

static const TlValue *mask_of(const TlOp *op)
{
    if (op->opcode == TL_OP_COPY)
        return tl_op_place(op).mask;
    return tl_attr_flag(op, TL_ATTR_MASK) ? tl_in(op, op->nin - 1) : NULL;
}

/* In the branch of a thread are no branches, or predicates, of programs: ptxas needs none for it
 * then. */
static bool is_behind(const TlOp *op)
{
    return op->opcode == TL_OP_EXPECT && tl_attr_flag(op, TL_ATTR_PAIR);
}

static void begin_each(TlSimt *g, const TlOp *op, const TlValue *mask)
{
    TlLoc outer = g->loc;
    for (; is_of_one(op) && mask_of(op) == mask; op = op->next) {
        g->loc = op->loc;
        if (op->opcode == TL_OP_COPY)
            copy(g, op);
        else if (op->opcode == TL_OP_MBAR_WAIT)
            tl_simt_mbar_wait(g, op);
        else if (!is_behind(op))
            expect(g, op, always(g));
    }
    g->loc = outer;
}

static void expect_behind(TlSimt *g, const TlOp *op, const TlValue *mask, LLVMValueRef pred)
{
    for (; is_of_one(op) && mask_of(op) == mask; op = op->next)
        if (is_behind(op))
            expect(g, op, pred);
}

/* There is one thread only. */
static void begin_alone(TlSimt *g, const TlOp *first, const TlValue *mask)
{
    if (!mask) {
        begin_each(g, first, mask);
        expect_behind(g, first, mask, always(g));
        return;
    }
    LLVMBasicBlockRef some = tl_gen_block(&g->gen, "bulk"), join = tl_gen_block(&g->gen, "begun");
    LLVMBuildCondBr(g->b, tl_gen_scalar(&g->gen, mask), some, join);
    LLVMPositionBuilderAtEnd(g->b, some);
    begin_each(g, first, mask);
    expect_behind(g, first, mask, always(g));
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* Those next to each other, with one mask, are begun in one branch: other warps pass it by. A
 * phase, which comes first, the whole warp waits for, so that it stays together. */
void tl_simt_begin_bulk(TlSimt *g, TlOp *first)
{
    const TlValue *mask = mask_of(first);
    if (is_of_one(first->prev) && mask_of(first->prev) == mask)
        return; /* begun */
    if (g->role == TL_SIMT_PRODUCER) {
        begin_alone(g, first, mask);
        return;
    }
    LLVMValueRef cond = tl_simt_is_first_warp(g);
    if (mask)
        cond = LLVMBuildAnd(g->b, cond, tl_gen_scalar(&g->gen, mask), "");
    LLVMBasicBlockRef warp = tl_gen_block(&g->gen, "first"), some = tl_gen_block(&g->gen, "bulk"),
                      behind = tl_gen_block(&g->gen, "behind"),
                      join = tl_gen_block(&g->gen, "begun");
    LLVMBuildCondBr(g->b, cond, warp, join);
    LLVMPositionBuilderAtEnd(g->b, warp);
    const TlOp *op = first;
    for (; op->opcode == TL_OP_MBAR_WAIT; op = op->next)
        tl_simt_mbar_wait(g, op);
    LLVMValueRef elected = tl_simt_leaf(g, TL_LEAF_ELECT, 0, NULL);
    LLVMBuildCondBr(g->b, elected, some, behind);
    LLVMPositionBuilderAtEnd(g->b, some);
    begin_each(g, op, mask);
    LLVMBuildBr(g->b, behind);
    LLVMPositionBuilderAtEnd(g->b, behind);
    expect_behind(g, op, mask, elected);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* ---- stores ---- */

static void store(TlSimt *g, const TlOp *op)
{
    enum { FIXED = 3 };
    TlPlace p = tl_op_place(op);
    TlBulk bulk;
    bool known = tl_bulk_plan(g->arena, op, p.buf->type, &bulk);
    TL_ASSERT(known, "'%s' has a bulk store that no box makes", g->fn->name);
    LLVMValueRef map = map_of(g, &p, &bulk), from = offset_of(g, p.buf, p.slot);
    g->param = (int)tl_bulk_param(&p)->index;
    for (uint32_t i = 0; i < bulk.boxes.len; i++) {
        const TlBulkBox *box = &bulk.boxes.data[i];
        LLVMValueRef at = LLVMBuildAdd(g->b, from, tl_simt_i32(g, box->offset), ""),
                     args[FIXED + TL_BULK_MAX_RANK] = {always(g), map, at};
        put_coordinates(g, &p, &bulk, box, still_axis(op, &p), args + FIXED);
        tl_simt_leaf(g, (tl_leaf)(TL_LEAF_BULK_STORE_1 + bulk.rank - 1),
                     FIXED + (unsigned)bulk.rank, args);
    }
}

/* Always by the same thread, which alone can wait for it: the one that elect chooses of warp 0. */
void tl_simt_bulk_store(TlSimt *g, const TlOp *op)
{
    TL_ASSERT(g->role != TL_SIMT_PRODUCER, "'%s': who begins copies stores a tile", g->fn->name);
    LLVMBasicBlockRef warp = tl_gen_block(&g->gen, "first"), some = tl_gen_block(&g->gen, "bulk"),
                      join = tl_gen_block(&g->gen, "begun");
    LLVMValueRef first =
        LLVMBuildICmp(g->b, LLVMIntEQ, tl_simt_uniform_warp(g), tl_simt_i32(g, 0), "");
    LLVMBuildCondBr(g->b, first, warp, join);
    LLVMPositionBuilderAtEnd(g->b, warp);
    LLVMBuildCondBr(g->b, tl_simt_leaf(g, TL_LEAF_ELECT, 0, NULL), some, join);
    LLVMPositionBuilderAtEnd(g->b, some);
    store(g, op);
    tl_simt_leaf(g, TL_LEAF_BULK_COMMIT, 0, NULL);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* All threads wait for what they have begun: but one, for nothing. */
void tl_simt_store_wait(TlSimt *g, const TlOp *op)
{
    LLVMValueRef args[] = {tl_simt_i32(g, 0), tl_simt_i32(g, tl_attr_flag(op, TL_ATTR_WRITTEN))};
    tl_simt_leaf(g, TL_LEAF_BULK_WAIT, 2, args);
}
