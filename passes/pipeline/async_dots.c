/* async-dots: products that warpgroups can do (ir/plan/async_dot.h) begin and are awaited, and their
 * operands are read from shared memory by the instruction itself.
 *
 *     %x = get %a, %s                          %t = ready %r
 *     %y = get %b, %s                          %u = dot_async %a, %s, %b, %s, %t {mma = ...}
 *     %p = dot %x, %y, %r {mma = ...}    =>    %p = await %u {pending = 0}
 *
 *  1. Which: products by matrix instructions of which four warps along M are a warpgroup. B must be
 *     in shared memory: what a GET, and transpositions behind it, give; what is computed is put into
 *     a buffer of its own, if there is room. A is taken from shared memory likewise, or else from
 *     registers, in the layout that it has.
 *  2. Products in a row onto one accumulator are all begun before the last is awaited.
 *  3. An accumulator that a loop carries, and nobody else looks at, is carried as a token:
 *
 *     for ... (%acc) {                         %t = ready %init
 *       %t = ready %acc                        for ... (%t) {
 *       %u = dot_async ..., %t           =>      %u = dot_async ..., %t
 *       %p = await %u                            await {pending = 0}
 *       yield %p                                 yield %u
 *     }                                        }
 *
 *     `pipeline` lets the products of one trip be pending when the next begins, where the slots that
 *     they read stay. */
#include "ir/plan/async_dot.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include "passes/layout/relayout.h"

typedef struct AsyncDots {
    TlFn *fn;
    TlPassCtx *px;
    TlCtx *ctx;
    uint64_t bytes; /* of all buffers */
    bool changed;
} AsyncDots;

/* ---- 1. operands ---- */

/* What a GET gives, perhaps transposed; false: it is something else. */
static bool find_slot(TlValue *v, TlAsyncSide *out)
{
    bool flipped = false;
    while (v->def && v->def->opcode == TL_OP_TRANS) {
        flipped ^= tl_attr(v->def, TL_ATTR_PERM)->u.ints[0] == 1;
        v = tl_in(v->def, 0);
    }
    if (!v->def || v->def->opcode != TL_OP_GET)
        return false;
    *out = (TlAsyncSide){.buf = tl_in(v->def, 0), .slot = tl_in(v->def, 1), .flipped = flipped};
    return true;
}

/* What is computed, before it was laid out as a fragment. */
static TlValue *unconverted(TlValue *v)
{
    return v->def && v->def->opcode == TL_OP_CONVERT ? tl_in(v->def, 0) : v;
}

/* The buffer for an operand B that is computed: K x N, its rows along N where the instruction can
 * transpose, so that they are as the tile has them mostly. NULL: no instruction reads it. */
static const TlType *buffer_for(AsyncDots *a, const TlType *t, int row)
{
    int bits[TL_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        bits[d] = 0;
        while (1 << bits[d] < t->shape[d])
            bits[d]++;
        if (1 << bits[d] != t->shape[d])
            return NULL;
    }
    int row_bytes = t->shape[row] * tl_dtype_bytes(t->dtype), bytes = row_bytes < 128 ? row_bytes : 128;
    if (bytes < 32)
        return NULL;
    const TlLayout *l = tl_layout_intern(
        a->ctx, tl_staging_image(a->px->scratch, t->rank, bits, tl_dtype_bytes(t->dtype), row, bytes));
    return tl_type_buf(a->ctx, t->dtype, t->rank, t->shape, l, 1);
}

static bool fits(const AsyncDots *a, const TlType *buf)
{
    return a->bytes + tl_buf_bytes(buf) + TL_SHARED_BUDGET <= a->px->machine->shared_bytes;
}

/* Puts the operand into a buffer before the product. */
static void put_before(AsyncDots *a, TlOp *dot, TlValue *v, const TlType *buf, TlAsyncSide *out)
{
    TlBuilder b = tl_builder_before(dot);
    TlValue *made = tl_op_new(&b, TL_OP_ALLOC, 0, NULL, 1, &buf, 0, 0, NULL)->out[0];
    TlValue *zero = tl_const_int(&b, tl_type_scalar(a->ctx, TL_I32), 0);
    TlValue *in[] = {made, zero, v};
    tl_op_new(&b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL);
    a->bytes += tl_buf_bytes(buf);
    *out = (TlAsyncSide){.buf = made, .slot = zero};
}

/* A side as the instruction would take it, if B were in such a buffer. */
static bool can_take(const AsyncDots *a, const TlOp *dot, const TlAsyncSide *sides)
{
    return tl_async_plan(a->px->scratch, tl_mma_of(dot), sides, dot->out[0]->type) != NULL;
}

/* B is computed: the buffer that it can go through. */
static bool put_operand(AsyncDots *a, TlOp *dot, TlAsyncSide *sides)
{
    TlValue *v = unconverted(tl_in(dot, TL_MMA_B));
    for (int row = 1; row >= 0; row--) {
        const TlType *buf = buffer_for(a, v->type, row);
        TlValue as_if = {.type = buf};
        sides[TL_MMA_B] = (TlAsyncSide){.buf = &as_if};
        if (!buf || !fits(a, buf) || !can_take(a, dot, sides))
            continue;
        put_before(a, dot, v, buf, &sides[TL_MMA_B]);
        return true;
    }
    return false;
}

static bool find_sides(AsyncDots *a, TlOp *dot, TlAsyncSide *sides)
{
    TlAsyncSide in_registers = {.tile = tl_in(dot, TL_MMA_A)}, in_slot;
    bool has_slot = find_slot(tl_in(dot, TL_MMA_A), &in_slot);
    bool b_in_slot = find_slot(tl_in(dot, TL_MMA_B), &sides[TL_MMA_B]);
    for (int registers = !has_slot; registers < 2; registers++) {
        sides[TL_MMA_A] = registers ? in_registers : in_slot;
        if (b_in_slot ? can_take(a, dot, sides) : put_operand(a, dot, sides))
            return true;
    }
    return false;
}

/* ---- 2. products ---- */

/* The token of an accumulator: that of an AWAIT before, if nobody else wants its tile. */
static TlValue *token_of(AsyncDots *a, TlOp *dot, TlValue *acc)
{
    TlOp *await = acc->def;
    if (await && await->opcode == TL_OP_AWAIT && await->block == dot->block && await->nin == 1 &&
        tl_use_count(acc) == 1)
        return tl_in(await, 0);
    TlBuilder b = tl_builder_before(dot);
    const TlType *t = acc->type,
                 *token = tl_type_token(a->ctx, t->dtype, t->rank, t->shape, t->layout);
    return tl_op_new(&b, TL_OP_READY, 1, &acc, 1, &token, 0, 0, NULL)->out[0];
}

static TlOp *new_await(TlBuilder *b, TlValue *token, const TlType *tile)
{
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = 0};
    return tl_op_new(b, TL_OP_AWAIT, 1, &token, 1, &tile, 0, 1, &attr);
}

static void begin(AsyncDots *a, TlOp *dot, const TlAsyncSide *sides)
{
    TlValue *acc = tl_in(dot, TL_MMA_C), *token = token_of(a, dot, acc), *in[5];
    uint32_t n = 0, flipped = 0;
    for (uint32_t i = 0; i < 2; i++) {
        in[n++] = sides[i].buf ? sides[i].buf : sides[i].tile;
        if (sides[i].buf)
            in[n++] = sides[i].slot;
        flipped |= sides[i].flipped ? 1u << i : 0;
    }
    in[n++] = token;
    TlBuilder b = tl_builder_before(dot);
    TlAttr mma = *tl_attr(dot, TL_ATTR_MMA);
    TlOp *made = tl_op_new(&b, TL_OP_DOT_ASYNC, n, in, 1, &token->type, 0, 1, &mma);
    if (flipped)
        tl_attr_set_axis_bits(a->fn, made, TL_ATTR_FLIPPED, flipped);
    TlOp *await = new_await(&b, made->out[0], dot->out[0]->type);
    await->out[0]->name = dot->out[0]->name;
    tl_replace_uses(dot->out[0], await->out[0]);
    tl_op_erase(dot);
    if (acc->def && acc->def->opcode == TL_OP_AWAIT && !acc->uses)
        tl_op_erase(acc->def);
    a->changed = true;
}

/* ---- 3. loops that carry tokens ---- */

/* The AWAIT of a product, or of the last of some in a row, onto the carried value i, which only it
 * sees, and whose result only the next trip does. */
static TlOp *await_of(const TlOp *loop, uint32_t i)
{
    const TlBlock *body = loop->regions[0];
    TlValue *arg = body->args[i + 1], *next = tl_in(body->last, i);
    TlOp *await = next->def;
    if (!await || await->opcode != TL_OP_AWAIT || await->block != body || await->nin != 1 ||
        tl_use_count(next) != 1 || tl_use_count(arg) != 1 ||
        arg->uses->user->opcode != TL_OP_READY)
        return NULL;
    TlValue *token = tl_in(await, 0);
    while (token->def && token->def->opcode == TL_OP_DOT_ASYNC && token->def->block == body)
        token = tl_async_dot(token->def).acc;
    return token->def == arg->uses->user ? await : NULL;
}

/* The carried values that become tokens, as bits; 0 if there are products besides. */
static uint64_t carried_tokens(const TlOp *loop)
{
    uint64_t found = 0;
    uint32_t awaits = 0, all = 0;
    for (uint32_t i = 0; i < loop->nout && i < 64; i++)
        if (await_of(loop, i)) {
            found |= 1ull << i;
            awaits++;
        }
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        all += op->opcode == TL_OP_AWAIT;
    return all == awaits ? found : 0;
}

static const TlType *token_type(AsyncDots *a, const TlType *t)
{
    return tl_type_token(a->ctx, t->dtype, t->rank, t->shape, t->layout);
}

/* The old argument was made ready: its token is the new argument; what is yielded is the token. */
static void carry_token(const TlOp *loop, uint32_t i, TlValue *arg)
{
    TlBlock *body = loop->regions[0];
    TlOp *await = await_of(loop, i), *ready = body->args[i + 1]->uses->user;
    tl_replace_uses(ready->out[0], arg);
    tl_op_erase(ready);
    tl_set_operand(body->last, i, tl_in(await, 0));
    tl_op_erase(await);
}

static void remake_loop(AsyncDots *a, TlOp *loop, uint64_t tokens)
{
    TlBlock *old = loop->regions[0];
    uint32_t n = loop->nout;
    TlValue **in = TL_NEW_ARRAY(a->px->scratch, TlValue *, n + 3);
    const TlType **types = TL_NEW_ARRAY(a->px->scratch, const TlType *, n + 1);
    TlBuilder b = tl_builder_before(loop);
    for (uint32_t i = 0; i < n + 3; i++)
        in[i] = tl_in(loop, i);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = loop->out[i]->type;
        if (!(tokens >> i & 1))
            continue;
        types[i] = token_type(a, types[i]);
        in[i + 3] = tl_op_new(&b, TL_OP_READY, 1, &in[i + 3], 1, &types[i], 0, 0, NULL)->out[0];
    }
    TlOp *made = tl_op_new(&b, TL_OP_FOR, n + 3, in, n, types, 1, loop->nattrs, loop->attrs);
    TlBlock *body = made->regions[0];
    body->warps = old->warps;
    for (uint32_t i = 0; i <= n; i++) {
        TlValue *arg = tl_block_arg(body, i ? types[i - 1] : old->args[0]->type, old->args[i]->name);
        if (i && tokens >> (i - 1) & 1)
            carry_token(loop, i - 1, arg);
        else
            tl_replace_uses(old->args[i], arg);
    }
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = 0};
    TlBuilder end = tl_builder_before(old->last);
    tl_op_new(&end, TL_OP_AWAIT, 0, NULL, 0, NULL, 0, 1, &attr);
    tl_block_move_ops(old, body, NULL);
    for (uint32_t i = 0; i < n; i++) {
        TlValue *out = made->out[i];
        if (tokens >> i & 1)
            out = new_await(&b, out, loop->out[i]->type)->out[0];
        out->name = loop->out[i]->name;
        tl_replace_uses(loop->out[i], out);
    }
    tl_op_erase(loop);
}

/* ---- the pass ---- */

TlPassResult tl_pass_async_dots(TlFn *fn, TlPassCtx *px)
{
    AsyncDots a = {.fn = fn, .px = px, .ctx = px->ctx};
    TL_VEC(TlOp *) dots = {0}, loops = {0};
    if (!px->machine->warpgroups || tl_fn_level(fn) == TL_LEVEL_TILE)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode == TL_OP_ALLOC)
            a.bytes += tl_buf_bytes(op->out[0]->type);
        if (tl_mma_of(op) && op->out[0]->type->rank == 2)
            tl_vec_push(px->scratch, &dots, op);
        if (op->opcode == TL_OP_FOR)
            tl_vec_push(px->scratch, &loops, op);
    }
    for (uint32_t i = 0; i < dots.len; i++) {
        TlAsyncSide sides[2];
        if (find_sides(&a, dots.data[i], sides))
            begin(&a, dots.data[i], sides);
    }
    for (uint32_t i = loops.len; i-- > 0 && a.changed;) { /* inner ones first */
        uint64_t tokens = carried_tokens(loops.data[i]);
        if (tokens)
            remake_loop(&a, loops.data[i], tokens);
    }
    if (!a.changed)
        return TL_SAME;
    tl_pass_dce(fn, px);
    return TL_CHANGED;
}
