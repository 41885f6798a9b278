/* keep-operands: if registers are short, operands of products that are the same in all iterations
 * of a loop wait in shared memory.
 *
 *     %q = load %Q, ... : tile<f16, 128, 64, #0>     %q = load %Q, ... : tile<f16, 128, 64, #0>
 *     for ... {                                      %b = alloc : buf<f16, 128, 64, #1, 1>
 *       %k = get %c, %zero                     =>    put %b, %zero, %q
 *       %s = dot %q, %k, ...                         for ... {
 *       ...                                            %k = get %c, %zero
 *     }                                                %g = get %b, %zero : tile<f16, 128, 64, #0>
 *                                                      %s = dot %g, %k, ...
 *
 *  1. Which operands: those of products by matrix instructions in a loop that come from outside
 *     it, if choose-warps has found that registers are short without (`kept`). If LLVM schedules
 *     the code, so that products read in parts (order-reads), also if a thread has too few for the
 *     words that are alive, the loop's prefetched data and the pipeline's needs together.
 *  2. The buffer is laid out for these gets. If it does not fit beside all other buffers, the
 *     operand stays.
 *  3. alloc and put come right after the operand; of one that was converted for products, what it
 *     was before is put. The get comes behind what the product gets from another buffer, so that
 *     both can be read early. An operand that is already a get in front of the loop is simply read
 *     in the loop, if the loop does not write its buffer. */
#include "ir/plan/late.h"
#include "ir/plan/mma.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/facts.h"
#include "passes/layout/relayout.h"
#include "passes/pass.h"

typedef struct Keep {
    TlFn *fn;
    TlPassCtx *px;
    TlMap bufs; /* of operands that have one */
    const TlAxisInfo *axis;
    bool changed;
} Keep;

/* ---- 1. are registers short? ---- */

/* Words of loads in the loop that go into buffers, and so will be on their way during an iteration.
 */
static int64_t words_fetched(const Keep *k, const TlOp *loop)
{
    int64_t words = 0;
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (op->opcode == TL_OP_PUT && tl_in(op, 2)->def && tl_in(op, 2)->def->opcode == TL_OP_LOAD)
            words += tl_words_loaded(k->axis, tl_in(op, 2)->def);
    return words;
}

static bool is_short(Keep *k, const TlOp *dot, const TlOp *loop)
{
    if (k->fn->body->kept)
        return true;
    k->axis = k->axis ? k->axis : tl_pass_axis_info(k->fn, k->px); /* before anything changes */
    int64_t words =
        tl_words_alive(k->fn, k->px->scratch, dot) + words_fetched(k, loop) + TL_LOOP_REGISTERS;
    return words > tl_registers_of_thread(k->px->machine->registers, k->fn->body->warps);
}

/* ---- 2. the buffer ---- */

/* What is put of an operand. */
static TlValue *before_convert(TlValue *v)
{
    return v->def && v->def->opcode == TL_OP_CONVERT ? tl_in(v->def, 0) : v;
}

static const TlType *buffer_for(const Keep *k, TlValue *v)
{
    const TlType *t = v->type;
    TlStagingUse use = {.type = t,
                        .put = before_convert(v)->type->layout,
                        .gets = &t->layout,
                        .ngets = 1,
                        .row = t->rank - 1};
    const TlLayout *l = tl_staging_layout(k->px->ctx, k->px->scratch, &use);
    return tl_type_buf(k->px->ctx, t->dtype, t->rank, t->shape, l, 1);
}

/* Beside all other buffers, and what ops of the loop need for themselves. */
static bool fits(const Keep *k, const TlType *buf, const TlOp *loop)
{
    uint64_t bytes = tl_buf_bytes(buf), most = 0;
    for (const TlOp *op = k->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_ALLOC)
            bytes += tl_buf_bytes(op->out[0]->type);
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop)) {
        uint64_t own = op->opcode == TL_OP_ALLOC ? 0 : tl_op_shared_bytes(k->px->scratch, op);
        most = own > most ? own : most;
    }
    return bytes + most <= k->px->machine->shared_bytes;
}

/* ---- 3. into effect ---- */

static TlOp *put_behind(Keep *k, TlValue *v, const TlOp *loop)
{
    TlOp *put = tl_map_get_ptr(&k->bufs, v);
    if (put)
        return put;
    const TlType *type = buffer_for(k, v);
    if (!fits(k, type, loop))
        return NULL;
    TlBuilder b = tl_builder_after(v);
    TlValue *made = tl_op_new(&b, TL_OP_ALLOC, 0, NULL, 1, &type, 0, 0, NULL)->out[0];
    TlValue *in[] = {made, tl_const_int(&b, tl_type_scalar(k->px->ctx, TL_I32), 0),
                     before_convert(v)};
    put = tl_op_new(&b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL);
    tl_map_put_ptr(&k->bufs, v, put);
    return put;
}

/* Behind what an operand of the product comes from, whose barrier has then been passed, and before
 * the loads that the pipeline puts between that and the product. */
static TlOp *where_to_get(TlOp *dot)
{
    for (uint32_t i = 0; i < 2; i++) {
        TlOp *get = tl_get_of(tl_in(dot, i));
        if (get && get->block == dot->block)
            return get->next;
    }
    return dot;
}

static bool is_written(const TlValue *buf, const TlOp *loop)
{
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (u->user->opcode != TL_OP_GET && tl_block_is_inside(u->user->block, loop))
            return true;
    return false;
}

/* The op that has the buffer and the slot where the operand is, as its first operands. */
static TlOp *place_of(Keep *k, TlValue *v, const TlOp *loop)
{
    if (!v->def || v->def->opcode != TL_OP_GET)
        return put_behind(k, v, loop);
    return is_written(tl_in(v->def, 0), loop) ? NULL : v->def;
}

/* What a tile is a transpose of. */
static TlValue *plain_of(TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_TRANS)
        v = tl_in(v->def, 0);
    return v;
}

/* `v` with `got` in place of what it is a transpose of. */
static TlValue *transposed(TlBuilder *b, TlValue *v, TlValue *got)
{
    TL_ASSERT(v->def || plain_of(v) == v, "a transpose without an op");
    if (plain_of(v) == v)
        return got;
    TlValue *in = transposed(b, tl_in(v->def, 0), got);
    return tl_op_like(b, v->def, 1, &in, 1, &v->type)->out[0];
}

static void keep_operand(Keep *k, TlOp *dot, uint32_t i, const TlOp *loop)
{
    TlValue *v = tl_in(dot, i), *plain = plain_of(v);
    TlOp *place = place_of(k, plain, loop);
    if (!place)
        return;
    TlBuilder b = tl_builder_before(where_to_get(dot));
    TlValue *in[] = {tl_in(place, 0), tl_in(place, 1)};
    TlValue *got = tl_op_new(&b, TL_OP_GET, 2, in, 1, &plain->type, 0, 0, NULL)->out[0];
    tl_set_operand(dot, i, transposed(&b, v, got));
    if (plain->def && plain->def->opcode == TL_OP_CONVERT && !plain->uses)
        tl_op_erase(plain->def);
    k->changed = true;
}

TlPassResult tl_pass_keep_operands(TlFn *fn, TlPassCtx *px)
{
    Keep k = {.fn = fn, .px = px};
    bool judges = px->machine->reads_early && px->machine->registers;
    if (!tl_fn_is_laid_out(fn) || (!judges && !fn->body->kept))
        return TL_SAME;
    tl_map_init(&k.bufs, px->scratch);
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlOp *loop = tl_mma_of(op) ? tl_enclosing_loop(op) : NULL;
        for (uint32_t i = 0; loop && i < 2; i++)
            if (tl_is_invariant(tl_in(op, i), loop) && tl_words_of(plain_of(tl_in(op, i))) &&
                is_short(&k, op, loop))
                keep_operand(&k, op, i, loop);
    }
    return k.changed ? TL_CHANGED : TL_SAME;
}
