/* one-warp: loops in which only the first warp has anything to do.
 *
 *     for %k ... {                                   for %k ... {one_warp}
 *       mbar_wait %full, %slot, %p {products}
 *       dot_async %a, %slot, %b, %slot, %acc
 *       mbar_wait %free, ... {one}
 *       copy %A, ..., %a, ..., %full, ...
 *       arrive %free, %slot {products}
 *     }
 *     await %acc                                     await %acc
 *
 * It begins bulk copies and products into tensor memory, and waits for both. The other warps would
 * go round with it, in time taken from it, to wait behind the loop, where sums are awaited: they go
 * there at once.
 *
 *  1. ops     each one of the first warp's, or scalar; products, of which none is awaited
 *  2. values  what the loop gives but sums is used by such ops alone, as other warps have what it
 *             begins with: slots and parities that a loop around it carries on
 *
 * Runs behind synchronize: barriers in the loop would be for all warps. */
#include "passes/pass.h"

typedef struct Looks {
    TlArena *arena;
    TlMap seen; /* values that are asked about already */
} Looks;

/* ---- 1. ops ---- */

/* Does no other warp do anything for it? */
static bool is_of_first(const TlOp *op)
{
    bool products = tl_attr_flag(op, TL_ATTR_PRODUCTS) &&
                    (op->opcode == TL_OP_MBAR_WAIT || op->opcode == TL_OP_ARRIVE);
    return products || tl_begins_bulk(op) ||
           (op->opcode == TL_OP_DOT_ASYNC && op->out[0]->type->kind == TL_TENSOR);
}

static bool is_scalar(const TlOp *op)
{
    bool scalar = tl_op_is_pure(op) && !op->nregions && op->opcode != TL_OP_DOT_ASYNC;
    for (uint32_t i = 0; i < op->nout; i++)
        scalar &= op->out[i]->type->rank == 0;
    return scalar;
}

static bool has_such_ops(const TlOp *loop)
{
    bool multiplies = false;
    for (const TlOp *op = loop->regions[0]->first; op; op = op->next) {
        if (!is_of_first(op) && !is_scalar(op) && op->opcode != TL_OP_YIELD)
            return false;
        multiplies |= op->opcode == TL_OP_DOT_ASYNC;
    }
    return multiplies;
}

/* ---- 2. values ---- */

static bool is_for_first(Looks *l, const TlValue *v);

/* Of a value that goes on as one that a loop carries. */
static bool is_carried_for_first(Looks *l, const TlOp *loop, uint32_t i)
{
    return is_for_first(l, loop->out[i]) && is_for_first(l, loop->regions[0]->args[i + 1]);
}

static bool is_use_for_first(Looks *l, const TlUse *u)
{
    const TlOp *op = u->user, *around = op->block->parent;
    bool begins = op->opcode == TL_OP_FOR, yields = op->opcode == TL_OP_YIELD;
    uint32_t inits = begins ? 3 : 0;
    if (yields && (!around || around->opcode != TL_OP_FOR))
        return false;
    for (uint32_t i = 0; i < op->nin && (begins || yields); i++)
        if (tl_in(op, i) == u->value &&
            (i < inits || !is_carried_for_first(l, begins ? op : around, i - inits)))
            return false;
    if (begins || yields || is_of_first(op))
        return true;
    for (uint32_t i = 0; i < op->nout && is_scalar(op); i++)
        if (!is_for_first(l, op->out[i]))
            return false;
    return is_scalar(op);
}

static bool is_for_first(Looks *l, const TlValue *v)
{
    if (tl_map_get(&l->seen, v->id, NULL))
        return true;
    tl_map_put(&l->seen, v->id, 1);
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!is_use_for_first(l, u))
            return false;
    return true;
}

/* Sums are there for all, when they are awaited, if each trip has begun a product onto them. */
static bool has_such_results(TlArena *arena, const TlOp *loop)
{
    Looks l = {.arena = arena, .seen = {.arena = arena}};
    for (uint32_t i = 0; i < loop->nout; i++) {
        const TlOp *next = tl_in(loop->regions[0]->last, i)->def;
        bool sums = loop->out[i]->type->kind == TL_TENSOR;
        if (sums ? !next || next->opcode != TL_OP_DOT_ASYNC : !is_for_first(&l, loop->out[i]))
            return false;
    }
    return true;
}

TlPassResult tl_pass_one_warp(TlFn *fn, TlPassCtx *px)
{
    bool any = false;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_FOR || !has_such_ops(op) || !has_such_results(px->scratch, op))
            continue;
        tl_attr_set(fn, op, (TlAttr){.id = TL_ATTR_ONE_WARP, .u.i = 1});
        any = true;
    }
    return any ? TL_CHANGED : TL_SAME;
}
