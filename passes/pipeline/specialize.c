/* specialize: a warp of its own begins the bulk copies of loops for which pipeline has chosen that
 * (pipeline_flows.c), the kernel's warps do the rest.
 *
 *     %f = mbar;  %e = mbar                    %f = mbar;  %e = mbar
 *     for ... {                                roles {
 *       mbar_wait %e, %slot, ... {one}           for ... {
 *       copy ..., %f                               mbar_wait %e, %slot, ... {one}
 *       expect %f                                  copy ..., %f
 *       mbar_wait %f, %slot, ...          =>       expect %f
 *       %u = dot_async ...                       }
 *       await                                  } {
 *       arrive %e                                for ... {
 *     }                                            mbar_wait %f, %slot
 *     store ...                                    %u = dot_async ...
 *                                                  await
 *                                                  arrive %e
 *                                                }
 *                                                store ...
 *                                              }
 *
 *  1. Where: all copies to shared memory are bulk copies, what they and the loops around them are
 *     computed from is scalar and pure (producer.h), and barriers are made before everything else.
 *     pipeline has asked the same, and let each iteration begin its own copies: as one flow, that
 *     waits for what it has just begun; as two, the first runs ahead as far as free slots let it,
 *     into the next tile of a loop around it, too. What waits for what is said by the barriers that
 *     count, so the two need no order besides.
 *  2. Region 0 gets, once more, what begins copies, the loops and branches around it with the
 *     carried values that it needs, and what these are computed from. Region 1 is the body without
 *     it. Programs of a cluster meet before and behind both.
 *
 * With the second flow gone from them, the kernel's warps never wait for each other in the loop. */
#include "passes/analysis/facts.h"
#include "passes/analysis/producer.h"
#include "passes/analysis/shared_life.h"
#include "passes/pass.h"

typedef struct Specialize {
    TlFn *fn;
    TlArena *arena;
    TlProducer producer;
} Specialize;

/* ---- 1. where ---- */

/* What only the thread does that begins copies. */
static bool begins(const void *user, const TlOp *op)
{
    (void)user;
    return tl_begins_bulk(op);
}

static bool is_asked_for(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && tl_attr_int(op, TL_ATTR_SPECIALIZE, 0) > 0)
            return true;
    return false;
}

static bool is_possible(const TlFn *fn, const TlMachine *machine)
{
    bool bulk = false;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool other = (op->opcode == TL_OP_COPY && !tl_is_bulk_copy(op)) ||
                     op->opcode == TL_OP_ROLES ||
                     (op->opcode == TL_OP_MBAR && op->block != fn->body);
        if (other)
            return false;
        bulk |= begins(NULL, op);
    }
    return bulk && machine->roles && tl_producer_fits(fn, machine->lanes);
}

/* Is it there for the whole kernel, when the flows are two? */
static bool is_kept_throughout(const TlOp *op)
{
    if (op->opcode == TL_OP_MBAR || op->opcode == TL_OP_TENSOR)
        return true;
    for (const TlUse *u = op->opcode == TL_OP_ALLOC ? op->out[0]->uses : NULL; u; u = u->next)
        if (u->user->opcode == TL_OP_COPY)
            return true;
    return false;
}

/* With what is there for the whole kernel, all else must fit at any time. */
static bool has_room(const TlFn *fn, TlPassCtx *px)
{
    TlPositions order;
    tl_positions_init(&order, fn, px->scratch);
    TlSharedLives lives = tl_shared_lives(&order, fn, px->scratch);
    uint64_t throughout = 0, most = 0;
    for (uint32_t i = 0; i < lives.len; i++) {
        const TlSharedLife *life = &lives.data[i];
        uint64_t together = 0;
        if (is_kept_throughout(life->op)) {
            throughout += life->bytes;
            continue;
        }
        for (uint32_t k = 0; k < lives.len; k++) {
            const TlSharedLife *other = &lives.data[k];
            if (other->first <= life->first && life->first <= other->last &&
                !is_kept_throughout(other->op))
                together += other->bytes;
        }
        most = together > most ? together : most;
    }
    return throughout + most <= (uint64_t)px->machine->shared_bytes;
}

/* ---- 2. region 0 ---- */

static void copy_block(Specialize *s, const TlBlock *from, TlBuilder *b, TlMap *map);

/* Ends a copied region with those of the yielded values whose results are wanted. */
static void copy_yield(Specialize *s, const TlOp *yield, TlValue *const *results, TlBuilder *b,
                       TlMap *map)
{
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, yield->nin + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < yield->nin; i++)
        if (tl_producer_wants(&s->producer, results[i]))
            in[n++] = tl_mapped(map, tl_in(yield, i));
    tl_yield(b, TL_OP_YIELD, n, in);
}

static TlOp *copy_head(Specialize *s, const TlOp *op, uint32_t fixed, TlBuilder *b, TlMap *map)
{
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin + 1);
    const TlType **types = TL_NEW_ARRAY(s->arena, const TlType *, op->nout + 1);
    uint32_t n = 0, nout = 0;
    for (uint32_t i = 0; i < fixed; i++)
        in[n++] = tl_mapped(map, tl_in(op, i));
    for (uint32_t i = 0; i < op->nout; i++) {
        if (!tl_producer_wants(&s->producer, op->out[i]))
            continue;
        types[nout++] = op->out[i]->type;
        if (op->opcode == TL_OP_FOR)
            in[n++] = tl_mapped(map, tl_in(op, i + 3));
    }
    b->loc = op->loc;
    TlOp *made = tl_op_like(b, op, n, in, nout, types);
    for (uint32_t i = 0, k = 0; i < op->nout; i++)
        if (tl_producer_wants(&s->producer, op->out[i]))
            tl_map_put_ptr(map, op->out[i], made->out[k++]);
    return made;
}

static void copy_for(Specialize *s, const TlOp *op, TlBuilder *b, TlMap *map)
{
    TlOp *made = copy_head(s, op, 3, b, map);
    const TlBlock *old = op->regions[0];
    TlBlock *body = made->regions[0];
    for (uint32_t i = 0; i < old->nargs; i++)
        if (i == 0 || tl_producer_wants(&s->producer, op->out[i - 1]))
            tl_map_put_ptr(map, old->args[i],
                           tl_block_arg(body, old->args[i]->type, old->args[i]->name));
    TlBuilder inner = {.fn = s->fn, .block = body, .loc = op->loc};
    copy_block(s, old, &inner, map);
    copy_yield(s, old->last, op->out, &inner, map);
}

static void copy_if(Specialize *s, const TlOp *op, TlBuilder *b, TlMap *map)
{
    TlOp *made = copy_head(s, op, 1, b, map);
    for (int r = 0; r < 2; r++) {
        TlBuilder inner = {.fn = s->fn, .block = made->regions[r], .loc = op->loc};
        copy_block(s, op->regions[r], &inner, map);
        copy_yield(s, op->regions[r]->last, op->out, &inner, map);
    }
}

/* All that is kept but the terminator. */
static void copy_block(Specialize *s, const TlBlock *from, TlBuilder *b, TlMap *map)
{
    for (const TlOp *op = from->first; op; op = op->next) {
        if (!tl_producer_keeps(&s->producer, op))
            continue;
        if (op->opcode == TL_OP_FOR)
            copy_for(s, op, b, map);
        else if (op->opcode == TL_OP_IF)
            copy_if(s, op, b, map);
        else
            tl_op_clone(b, op, map);
    }
}

/* ---- the pass ---- */

/* Where both flows are over: all threads take part in the last meeting of a cluster. */
static TlOp *end_of(const TlFn *fn)
{
    TlOp *end = fn->body->last;
    return end->prev && end->prev->opcode == TL_OP_MEET ? end->prev : end;
}

/* Everything but buffers, meetings of clusters, the roles themselves and what is behind them. */
static void move_body(TlFn *fn, TlOp *roles)
{
    TlOp *end = roles->regions[1]->last;
    for (TlOp *op = fn->body->first, *next; op != roles; op = next) {
        next = op->next;
        if (!tl_makes_buffer(op) && op->opcode != TL_OP_MEET)
            tl_op_move_before(op, end);
    }
}

/* What region 0 does is not done in region 1, and barriers end with the kernel. */
static void take_away(Specialize *s, TlOp *roles)
{
    TL_VEC(TlOp *) gone = {0};
    for (TlOp *op = tl_walk_next(roles, roles); op; op = tl_walk_next(op, roles)) {
        bool other = tl_producer_keeps(&s->producer, op) && begins(NULL, op);
        if (other || op->opcode == TL_OP_MBAR_END)
            tl_vec_push(s->arena, &gone, op);
    }
    for (uint32_t i = 0; i < gone.len; i++)
        tl_op_erase(gone.data[i]);
}

TlPassResult tl_pass_specialize(TlFn *fn, TlPassCtx *px)
{
    Specialize s = {.fn = fn, .arena = px->scratch};
    TlMap map;
    if (!tl_fn_is_laid_out(fn) || !is_asked_for(fn) || !is_possible(fn, px->machine) ||
        !has_room(fn, px) || !tl_producer_find(fn, px->scratch, begins, NULL, &s.producer))
        return TL_SAME;
    tl_map_init(&map, px->scratch);
    TlBuilder b = tl_builder_before(end_of(fn));
    TlOp *roles = tl_op_new(&b, TL_OP_ROLES, 0, NULL, 0, NULL, 2, 0, NULL);
    TlBuilder producer = {.fn = fn, .block = roles->regions[0], .loc = fn->loc},
              consumer = {.fn = fn, .block = roles->regions[1], .loc = fn->loc};
    copy_block(&s, fn->body, &producer, &map);
    tl_yield(&producer, TL_OP_YIELD, 0, NULL);
    tl_yield(&consumer, TL_OP_YIELD, 0, NULL);
    move_body(fn, roles);
    take_away(&s, roles);
    tl_pass_dce(fn, px);
    return TL_CHANGED;
}
