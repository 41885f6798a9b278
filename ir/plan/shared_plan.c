/* Scratch of ops in shared memory, as their plans require it. */
#include "ir/plan/shared_plan.h"
#include "ir/plan/dot_plan.h"
#include "ir/plan/mma.h"
#include "ir/plan/reduce_plan.h"
#include "ir/plan/scan_plan.h"
#include "ir/plan/table_plan.h"

uint32_t tl_op_room(const TlOp *op, uint32_t most)
{
    const TlAttr *scratch = tl_attr(op, TL_ATTR_SHARED);
    return scratch && scratch->n ? scratch->n : most;
}

bool tl_op_goes_in_parts(const TlOp *op)
{
    return tl_op_room(op, 0) != 0;
}

void tl_op_set_room(TlFn *fn, TlOp *op, uint32_t bytes)
{
    TlAttr scratch = {
        .id = TL_ATTR_SHARED, .n = bytes, .u.i = tl_attr_int(op, TL_ATTR_SHARED, -1)};
    if (bytes || scratch.u.i >= 0)
        tl_attr_set(fn, op, scratch);
    else
        tl_attr_remove(op, TL_ATTR_SHARED);
}

TlConvert *tl_op_convert_plan(TlArena *arena, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_CONVERT, "%s is no conversion", tl_op_info(op->opcode)->text);
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    return tl_convert_plan(arena, to, from->layout, to->layout, tl_op_room(op, TL_SHARED_BUDGET),
                           tl_op_goes_in_parts(op) ? TL_CONVERT_FIT : 0);
}

/* A conversion planned before; types are interned, with their layouts. */
typedef struct Known {
    const TlType *from, *to;
    int64_t room;
    uint32_t bytes;
} Known;

static uint32_t convert_bytes(TlArena *arena, const TlOp *op)
{
    TlCtx *ctx = op->block->fn->module->ctx;
    const TlType *types[2] = {tl_in(op, 0)->type, op->out[0]->type};
    int64_t room = tl_op_room(op, 0);
    uint64_t key = tl_hash(types, sizeof types, (uint64_t)room), found;
    for (; tl_map_get(&ctx->convert_bytes, key, &found); key++) {
        const Known *k = (const Known *)(uintptr_t)found;
        if (k->from == types[0] && k->to == types[1] && k->room == room)
            return k->bytes;
    }
    const TlConvert *c = tl_op_convert_plan(arena, op);
    Known *k = TL_NEW(&ctx->perm, Known);
    *k = (Known){types[0], types[1], room, c->kind == TL_CONVERT_SHARED ? c->bytes : 0};
    tl_map_put(&ctx->convert_bytes, key, (uint64_t)(uintptr_t)k);
    return k->bytes;
}

uint32_t tl_atomic_part(const TlOp *op)
{
    const TlType *t = op->out[0]->type;
    uint32_t elem = (uint32_t)tl_dtype_bytes(t->dtype), all = (uint32_t)tl_type_elems(t);
    uint32_t part = tl_op_room(op, UINT32_MAX) / elem;
    return part == 0 ? 1 : part < all ? part : all;
}

/* The thread that performed the atomic passes the results on: all elements, if some thread has only
 * a copy. */
static uint32_t atomic_bytes(const TlOp *op)
{
    enum { LEAST_BYTES = 4 }; /* of an element: a word */
    if (op->nout == 0 || !op->out[0]->uses)
        return 0;
    const TlType *t = op->out[0]->type;
    uint32_t elem = (uint32_t)tl_dtype_bytes(t->dtype);
    if (t->rank > 0) {
        uint32_t copies[TL_LAYOUT_MAX_IN], threads = 0;
        tl_layout_free_masks(t->layout, copies);
        for (int i = 0; i < t->layout->nin; i++)
            threads |= t->layout->in[i] == TL_IN_REG ? 0 : copies[i];
        if (!threads)
            return 0;
    }
    return tl_atomic_part(op) * elem < LEAST_BYTES ? LEAST_BYTES : tl_atomic_part(op) * elem;
}

uint32_t tl_op_shared_bytes(TlArena *arena, const TlOp *op)
{
    if (op->opcode == TL_OP_CONVERT)
        return convert_bytes(arena, op);
    if (op->opcode == TL_OP_REDUCE)
        return tl_reduce_plan(arena, op)->bytes;
    if (op->opcode == TL_OP_SCAN)
        return tl_scan_plan(arena, op, false)->bytes;
    if (op->opcode == TL_OP_GATHER || op->opcode == TL_OP_HISTOGRAM || op->opcode == TL_OP_REGROUP)
        return tl_table_plan(op).bytes;
    if (op->opcode == TL_OP_DOT) /* with scales: only an instruction does it, lowering says so */
        return tl_mma_of(op) || op->nin > TL_MMA_SA ? 0 : tl_dot_plan(arena, op)->bytes;
    if (tl_op_info(op->opcode)->flags & F_ATOMIC)
        return atomic_bytes(op);
    return 0;
}

uint32_t tl_op_whole_bytes(TlArena *arena, const TlOp *op)
{
    TlOp whole = *op;
    whole.attrs = TL_NEW_ARRAY(arena, TlAttr, op->nattrs + 1);
    whole.nattrs = 0;
    for (uint32_t i = 0; i < op->nattrs; i++)
        if (op->attrs[i].id != TL_ATTR_SHARED)
            whole.attrs[whole.nattrs++] = op->attrs[i];
    return tl_op_shared_bytes(arena, &whole);
}
