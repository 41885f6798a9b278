/* Loops with a part that is an iteration ahead (rotate_loop.h). */
#include "passes/pipeline/rotate_loop.h"
#include "passes/analysis/facts.h"

TlRotate tl_rotate_begin(TlFn *fn, TlArena *arena, TlOp *loop)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR, "%s is no loop", tl_op_info(loop->opcode)->text);
    TlRotate r = {.fn = fn, .arena = arena, .loop = loop, .body = loop->regions[0]};
    tl_map_init(&r.late, arena);
    r.late_carried = TL_NEW_ARRAY(arena, bool, loop->nout + 1);
    for (uint32_t i = 0; i < loop->nout; i++)
        r.late_carried[i] = false;
    return r;
}

bool tl_rotate_counts_up(const TlOp *loop)
{
    TlWideInt step;
    return tl_is_signed(tl_in(loop, 2)->type->dtype) && tl_const_int_value(tl_in(loop, 2), &step) &&
           step > 0;
}

void tl_rotate_set_late(TlRotate *r, const TlOp *op)
{
    tl_map_put(&r->late, (uint64_t)(uintptr_t)op, 1);
}

bool tl_rotate_is_late(const TlRotate *r, const TlOp *op)
{
    return op && tl_map_get(&r->late, (uint64_t)(uintptr_t)op, NULL);
}

/* ---- what the late part takes ---- */

static bool is_in_body(const TlRotate *r, const TlValue *v)
{
    return v->def ? v->def->block == r->body : v->block == r->body;
}

static bool is_taken(const TlRotate *r, const TlValue *v)
{
    for (uint32_t i = 0; i < r->taken.len; i++)
        if (r->taken.data[i] == v)
            return true;
    return false;
}

/* Is it of the late part: what one of its ops gives, or what it carries? */
static bool is_its_own(const TlRotate *r, const TlValue *v)
{
    return v->def ? tl_rotate_is_late(r, v->def) : v->index > 0 && r->late_carried[v->index - 1];
}

static void take(TlRotate *r, TlValue *v)
{
    if (is_in_body(r, v) && !is_its_own(r, v) && !is_taken(r, v))
        tl_vec_push(r->arena, &r->taken, v);
}

void tl_rotate_find_taken(TlRotate *r)
{
    for (TlOp *op = r->body->first; op; op = tl_walk_next(op, r->loop))
        for (uint32_t i = 0; tl_rotate_is_late(r, tl_op_in_block(op, r->body)) && i < op->nin; i++)
            take(r, tl_in(op, i));
    for (uint32_t i = 0; i < r->loop->nout; i++)
        if (r->late_carried[i])
            take(r, tl_in(r->body->last, i));
}

/* ---- the new loop ---- */

static void copy_part(const TlRotate *r, TlBuilder *b, bool late, TlMap *map)
{
    for (TlOp *op = r->body->first; op != r->body->last; op = op->next)
        if (tl_rotate_is_late(r, op) == late)
            tl_op_clone(b, op, map);
}

/* The early part of iteration lo: `map` knows its values then. */
static void begin_first(const TlRotate *r, TlBuilder *b, TlMap *map)
{
    tl_map_put_ptr(map, r->body->args[0], tl_in(r->loop, 0));
    for (uint32_t i = 0; i < r->loop->nout; i++)
        tl_map_put_ptr(map, r->body->args[i + 1], tl_in(r->loop, i + 3));
    copy_part(r, b, false, map);
}

/* lo + step, no further than the type goes: then there is no second iteration. */
static TlValue *second(const TlRotate *r, TlBuilder *b)
{
    TlValue *lo = tl_in(r->loop, 0), *step = tl_in(r->loop, 2);
    TlWideInt by, most = ((TlWideInt)1 << (tl_dtype_bits(lo->type->dtype) - 1)) - 1, known;
    tl_const_int_value(step, &by);
    if (tl_const_int_value(lo, &known))
        return tl_const_int(b, lo->type, (int64_t)(known + by < most ? known + by : most));
    lo = tl_binary(b, TL_OP_MIN, lo, tl_const_int(b, lo->type, (int64_t)(most - by)));
    return tl_binary(b, TL_OP_ADD, lo, step);
}

/* What it carries at its beginning: of the late part, what comes in; of the early one, what the
 * first iteration gives; what is taken. */
static TlOp *make_loop(const TlRotate *r, TlBuilder *b, TlMap *first)
{
    uint32_t n = r->loop->nout, all = n + r->taken.len;
    TlValue **in = TL_NEW_ARRAY(r->arena, TlValue *, all + 3);
    const TlType **types = TL_NEW_ARRAY(r->arena, const TlType *, all + 1);
    in[0] = second(r, b);
    in[1] = tl_in(r->loop, 1);
    in[2] = tl_in(r->loop, 2);
    for (uint32_t i = 0; i < all; i++) {
        TlValue *v = i >= n               ? r->taken.data[i - n]
                     : r->late_carried[i] ? r->body->args[i + 1]
                                          : tl_in(r->body->last, i);
        in[i + 3] = tl_mapped(first, v);
        types[i] = in[i + 3]->type;
    }
    TlOp *made = tl_op_like(b, r->loop, all + 3, in, all, types);
    TlBlock *body = made->regions[0];
    body->warps = r->body->warps;
    for (uint32_t i = 0; i <= all; i++) {
        const TlValue *old = i <= n ? r->body->args[i] : r->taken.data[i - n - 1];
        tl_block_arg(body, old->type, old->name);
    }
    return made;
}

static void fill_loop(const TlRotate *r, TlOp *made, TlRotateFill fill, void *user)
{
    uint32_t n = r->loop->nout;
    TlBlock *body = made->regions[0];
    TlRotated to = {.b = {.fn = r->fn, .block = body, .loc = r->loop->loc},
                    .early = {.arena = r->arena},
                    .now = {.arena = r->arena}};
    tl_map_put_ptr(&to.early, r->body->args[0], body->args[0]);
    for (uint32_t i = 0; i < n; i++)
        tl_map_put_ptr(r->late_carried[i] ? &to.now : &to.early, r->body->args[i + 1],
                       body->args[i + 1]);
    for (uint32_t i = 0; i < r->taken.len; i++)
        tl_map_put_ptr(&to.now, r->taken.data[i], body->args[n + 1 + i]);
    fill(user, &to);
    TlValue **next = TL_NEW_ARRAY(r->arena, TlValue *, made->nout);
    for (uint32_t i = 0; i < made->nout; i++)
        next[i] =
            i >= n ? tl_mapped(&to.early, r->taken.data[i - n])
                   : tl_mapped(r->late_carried[i] ? &to.now : &to.early, tl_in(r->body->last, i));
    tl_yield(&to.b, TL_OP_YIELD, made->nout, next);
}

/* The late part of the last iteration; `out`: what the whole gives. */
static void end_last(const TlRotate *r, TlBuilder *b, const TlOp *made, TlValue **out)
{
    uint32_t n = r->loop->nout;
    TlMap map = {.arena = r->arena};
    for (uint32_t i = 0; i < r->taken.len; i++)
        tl_map_put_ptr(&map, r->taken.data[i], made->out[n + i]);
    for (uint32_t i = 0; i < n; i++)
        if (r->late_carried[i])
            tl_map_put_ptr(&map, r->body->args[i + 1], made->out[i]);
    copy_part(r, b, true, &map);
    for (uint32_t i = 0; i < n; i++)
        out[i] = r->late_carried[i] ? tl_mapped(&map, tl_in(r->body->last, i)) : made->out[i];
}

void tl_rotate_make(const TlRotate *r, TlBuilder *b, TlRotateFill fill, void *user, TlValue **out)
{
    TL_ASSERT(tl_rotate_counts_up(r->loop), "a loop that may count down");
    TlMap first = {.arena = r->arena};
    begin_first(r, b, &first);
    TlOp *made = make_loop(r, b, &first);
    fill_loop(r, made, fill, user);
    end_last(r, b, made, out);
}
