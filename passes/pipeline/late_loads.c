/* late-loads: what a loop's iteration loads into registers for the next one, it loads when nobody
 * needs the registers of its own any more.
 *
 *     for %i (%now, ...) {                       for %i (%now, ...) {
 *       %next = load %D, %i + 1                    %s = dot %k, %q
 *       %s = dot %k, %q                            %d = sub %s, %now
 *       %d = sub %s, %now                  =>      %next = load %D, %i + 1
 *       %w = dot %d, %q                            %w = dot %d, %q
 *       yield %next, ...                           yield %next, ...
 *     }                                          }
 *
 * pipeline begins such loads first of all. Then both iterations' values are alive at once, and at
 * the end of each a thread moves every register of the one to that of the other.
 *
 *  1. Where: loads of the body, or the branch that has them with and without tests, whose results
 *     nothing but the yield takes. Nothing in the loop writes memory.
 *  2. The place is behind the last op that takes a value which they replace, and behind the next
 *     product or put, which takes what is computed of it. The latency is still hidden if a matrix
 *     product is done between it and the first op of the next iteration that takes a value. If not,
 *     it is before that product, behind an op that LLVM leaves where it is, as it sinks what is
 *     pure over a branch; but not in loops of one product, before which registers are fullest. Else
 *     the loads stay. */
#include "ir/plan/mma.h"
#include "ir/remark.h"
#include "ir/rewrite.h"
#include "passes/pass.h"

typedef struct Late {
    const TlOp *loop;
    TlBlock *body;
    TlOp *first, *last; /* of the body's ops that take what the loads replace */
} Late;

/* ---- 1. where ---- */

static bool only_loads(const TlOp *op)
{
    if (op->opcode == TL_OP_LOAD)
        return true;
    if (op->opcode != TL_OP_IF || !op->nout)
        return false;
    for (const TlOp *in = tl_walk_next(op, op); in; in = tl_walk_next(in, op))
        if (in->opcode != TL_OP_LOAD && in->opcode != TL_OP_YIELD && !tl_op_is_pure(in))
            return false;
    return true;
}

/* The loop's carried value that is the result next time; NULL: something else takes it. */
static const TlValue *replaced(const Late *l, const TlValue *result)
{
    const TlUse *u = result->uses;
    if (!u || u->next || u->user != l->body->last)
        return NULL;
    for (uint32_t i = 0; i < l->body->last->nin; i++)
        if (tl_in(l->body->last, i) == result)
            return l->body->args[i + 1];
    return NULL;
}

static bool is_before(const TlOp *a, const TlOp *b)
{
    while (a && a != b)
        a = a->next;
    return a != NULL;
}

/* The op of the body that the user is, or that it is in. */
static TlOp *in_body(const Late *l, TlOp *user)
{
    while (user->block != l->body)
        user = user->block->parent;
    return user;
}

static bool find_users(Late *l, const TlOp *loads)
{
    l->first = l->last = NULL;
    for (uint32_t i = 0; i < loads->nout; i++) {
        const TlValue *now = replaced(l, loads->out[i]);
        if (!now)
            return false;
        for (const TlUse *u = now->uses; u; u = u->next) {
            TlOp *op = in_body(l, u->user);
            l->first = !l->first || is_before(op, l->first) ? op : l->first;
            l->last = !l->last || is_before(l->last, op) ? op : l->last;
        }
    }
    return l->last && l->last != l->body->last;
}

/* ---- 2. the place ---- */

/* Whose multiply-adds LLVM moves loads in front of. */
static bool is_multiply_adds(const TlOp *op)
{
    return op->opcode == TL_OP_DOT && op->out[0]->type->layout && !tl_mma_of(op);
}

/* A product that is done when it is over: threads did it, or they await it. */
static bool is_product(const TlOp *op)
{
    return (op->opcode == TL_OP_DOT && !is_multiply_adds(op)) || op->opcode == TL_OP_AWAIT;
}

static bool takes_results(const TlOp *op)
{
    return is_product(op) || op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_PUT;
}

static bool is_fixed(const TlOp *op)
{
    return !tl_op_is_pure(op) || op->opcode == TL_OP_DOT;
}

/* The first from the last user on of which that is true; NULL: none. */
static TlOp *first_of(const Late *l, bool (*is)(const TlOp *op))
{
    TlOp *op = l->last;
    while (op != l->body->last && !is(op))
        op = op->next;
    return op == l->body->last ? NULL : op;
}

/* From the place to the end, and from the start to the first op that takes a value. */
static bool has_time(const Late *l, const TlOp *place)
{
    bool any = false;
    for (const TlOp *op = place->next; op; op = op->next)
        any |= is_product(op);
    for (const TlOp *op = l->body->first; op != l->first; op = op->next)
        any |= is_product(op);
    return any;
}

static bool has_products(const Late *l)
{
    int n = 0;
    for (const TlOp *op = l->body->first; op; op = op->next)
        n += is_product(op);
    return n > 1;
}

/* The last of those that they come behind; NULL: they stay. */
static TlOp *place_behind(const Late *l)
{
    TlOp *place = first_of(l, takes_results);
    if (place && has_time(l, place))
        return place;
    place = has_products(l) ? first_of(l, is_fixed) : NULL;
    return place && has_time(l, place) ? place : NULL;
}

static bool move_loads(TlFn *fn, const TlOp *loop)
{
    Late l = {.loop = loop, .body = loop->regions[0]};
    bool any = false;
    for (TlOp *op = l.body->first, *next; op; op = next) {
        next = op->next;
        if (!only_loads(op) || !find_users(&l, op) || !is_before(op, l.last))
            continue;
        TlOp *place = place_behind(&l);
        if (!place)
            continue;
        tl_op_move_before(op, place->next);
        tl_remark(fn, op, TL_REMARK_LATE, 1);
        any = true;
    }
    return any;
}

TlPassResult tl_pass_late_loads(TlFn *fn, TlPassCtx *px)
{
    bool any = false;
    (void)px;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && !(tl_op_effects(op) & (F_WRITE | F_ATOMIC)))
            any |= move_loads(fn, op);
    return any ? TL_CHANGED : TL_SAME;
}
