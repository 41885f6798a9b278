/* widen-once: an operand of a product that several warps would each convert from shared memory is
 * converted once, before it is put there.
 *
 *     put %b, %zero, %x                              %f = cast %x : tile<f16, 64, 128, #0>
 *     %g = get %b, %zero : tile<f8, 64, 128, #1>     put %c, %zero, %f
 *     %t = trans %g : tile<f8, 128, 64, #2>     =>   %g = get %c, %zero : tile<f16, 64, 128, #1>
 *     %f = cast %t : tile<f16, 128, 64, #2>          %t = trans %g : tile<f16, 128, 64, #2>
 *     %d = dot %a, %f, ...                           %d = dot %a, %t, ...
 *
 *  1. Where: only if LLVM schedules the code. Other machines copy what is loaded to shared memory
 *     without registers, and it must stay as narrow as it is. The buffer has one put and one get,
 *     in one block, and between the get and a product by matrix instructions stand nothing but
 *     trans and elementwise ops on constants.
 *  2. Whether, by cost: what a thread has to do, once for each element that it puts or gets,
 *     against the wider accesses to shared memory (`worth_it`); and if the wider buffer fits.
 *  3. The ops are done again in front of the put, in its layout; the buffer is laid out anew, and
 *     trans stay behind the get. The product then takes what a GET provides, so it can read it in
 *     bursts (order-reads). With the ops in between, the whole operand would be in registers, and
 *     LLVM's register allocator would look for room in vain (27 s for 64x128x128 of f8 on RDNA 3).
 *
 * Runs behind stage-shared, which makes such gets. pipeline fetches what is loaded ahead as
 * before, into registers. */
#include "ir/plan/mma.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "passes/analysis/facts.h"
#include "passes/layout/relayout.h"
#include "passes/pass.h"

enum { MOST_OPS = 16 }; /* between a get and the product, kept in an array */

/* What stands between a get and a product. */
typedef struct Way {
    TlOp *get, *put, *op[MOST_OPS];
    uint32_t operand[MOST_OPS], n;
    TlValue *end; /* what the product takes */
} Way;

/* ---- 1. where ---- */

/* An op of a way; *out: the operand that comes from the get. */
static bool links(const TlOp *op, const TlValue *from, uint32_t *out)
{
    bool elementwise = tl_op_info(op->opcode)->flags & F_ELEM && op->nregions == 0;
    uint32_t others = 0;
    for (uint32_t i = 0; i < op->nin; i++)
        if (tl_in(op, i) == from)
            *out = i;
        else
            others += !tl_is_const_op(tl_in(op, i));
    return op->nout == 1 && !others && (elementwise || op->opcode == TL_OP_TRANS);
}

/* The only put into the buffer of a get; NULL: others use the buffer too. */
static TlOp *only_put(const TlOp *get)
{
    TlOp *put = NULL;
    for (const TlUse *u = tl_in(get, 0)->uses; u; u = u->next) {
        if (u->user == get)
            continue;
        if (u->user->opcode != TL_OP_PUT || u->user->block != get->block || put)
            return NULL;
        put = u->user;
    }
    return put;
}

static bool find_way(TlOp *get, Way *w)
{
    TL_ASSERT(get->opcode == TL_OP_GET, "%s is no get", tl_op_info(get->opcode)->text);
    *w = (Way){.get = get, .put = only_put(get), .end = get->out[0]};
    while (w->put && w->end->uses && !w->end->uses->next) {
        const TlUse *u = w->end->uses;
        if (u->user->opcode == TL_OP_DOT)
            return tl_mma_of(u->user) && u - u->user->in < 2;
        if (w->n == MOST_OPS || !links(u->user, w->end, &w->operand[w->n]))
            return false;
        w->op[w->n++] = u->user;
        w->end = u->user->out[0];
    }
    return false;
}

/* ---- 2. whether ---- */

/* Instructions for an element, about. Floats of 8 bits and less are taken apart by bits. */
static int64_t work_of(const TlOp *op)
{
    enum { BY_BITS = 6, OTHER = 1 };
    if (op->opcode == TL_OP_TRANS)
        return 0;
    TlDtype from = tl_in(op, 0)->type->dtype;
    bool bits = op->opcode == TL_OP_CAST && tl_is_float(from) && tl_dtype_bits(from) <= 8;
    return bits ? BY_BITS : OTHER;
}

/* An access of 16 bytes takes as long as 8 instructions: a thread's work on `each` elements that it
 * puts and `got` that it gets, of so many bytes. */
static int64_t accesses(int64_t each, int64_t got, TlDtype d)
{
    return (each + got) * tl_dtype_bytes(d) / 2;
}

static bool worth_it(const Way *w)
{
    const TlType *narrow = w->get->out[0]->type;
    int64_t put = tl_layout_registers(tl_in(w->put, 2)->type->layout),
            got = tl_layout_registers(narrow->layout), work = 0;
    for (uint32_t i = 0; i < w->n; i++)
        work += work_of(w->op[i]);
    return work * put + accesses(put, got, w->end->type->dtype) <
           work * got + accesses(put, got, narrow->dtype);
}

/* Beside all other buffers, and what any op needs for itself. */
static bool fits(const TlFn *fn, TlPassCtx *px, const TlType *old, const TlType *buf)
{
    uint64_t bytes = tl_buf_bytes(buf) - tl_buf_bytes(old), most = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool alloc = op->opcode == TL_OP_ALLOC;
        uint64_t own = alloc ? 0 : tl_op_shared_bytes(px->scratch, op);
        most = own > most ? own : most;
        bytes += alloc ? tl_buf_bytes(op->out[0]->type) : 0;
    }
    return bytes + most <= px->machine->shared_bytes;
}

/* ---- 3. into effect ---- */

/* The axis along which a thread that puts has neighbours. */
static int row_axis(const TlLayout *l)
{
    int reg = tl_layout_in_index(l, TL_IN_REG);
    for (int d = 0; d < l->nout && tl_layout_in_bits(l, TL_IN_REG); d++)
        if (l->basis[reg][0][d])
            return d;
    return l->nout - 1;
}

static const TlType *buffer_for(TlPassCtx *px, const Way *w)
{
    const TlType *t = tl_type_with_dtype(px->ctx, tl_in(w->put, 2)->type, w->end->type->dtype);
    TlStagingUse use = {.type = t,
                        .put = t->layout,
                        .gets = &w->get->out[0]->type->layout,
                        .ngets = 1,
                        .row = row_axis(t->layout)};
    const TlLayout *l = tl_staging_layout(px->ctx, px->scratch, &use);
    return tl_type_buf(px->ctx, t->dtype, t->rank, t->shape, l, 1);
}

static TlValue *constant_like(TlBuilder *b, const TlValue *v, const TlType *like)
{
    const TlType *type =
        tl_has_layout(v->type) ? tl_type_with_dtype(b->fn->module->ctx, like, v->type->dtype)
                               : v->type;
    return tl_op_new(b, TL_OP_CONST, 0, NULL, 1, &type, 0, v->def->nattrs, v->def->attrs)->out[0];
}

/* Repeats an op of the way on x; `type` is of its result. */
static TlValue *again(TlPassCtx *px, TlBuilder *b, const TlOp *op, uint32_t operand, TlValue *x,
                      const TlType *type)
{
    TlValue **in = TL_NEW_ARRAY(px->scratch, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = i == operand ? x : constant_like(b, tl_in(op, i), x->type);
    b->loc = op->loc;
    return tl_op_like(b, op, op->nin, in, 1, &type)->out[0];
}

/* The elementwise ops, in front of the put. */
static TlValue *compute(TlPassCtx *px, const Way *w)
{
    TlBuilder b = tl_builder_before(w->put);
    TlValue *x = tl_in(w->put, 2);
    for (uint32_t i = 0; i < w->n; i++)
        if (w->op[i]->opcode != TL_OP_TRANS)
            x = again(px, &b, w->op[i], w->operand[i], x,
                      tl_type_with_dtype(px->ctx, x->type, w->op[i]->out[0]->type->dtype));
    return x;
}

/* The trans, behind the new get. */
static TlValue *turn(TlPassCtx *px, const Way *w, TlBuilder *b, TlValue *x)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->op[i]->opcode == TL_OP_TRANS)
            x = again(px, b, w->op[i], 0, x,
                      tl_type_with_dtype(px->ctx, w->op[i]->out[0]->type, x->type->dtype));
    return x;
}

static void widen(TlPassCtx *px, const Way *w, const TlType *type)
{
    TlOp *alloc = tl_in(w->put, 0)->def;
    TlBuilder b = tl_builder_before(alloc);
    TlValue *buf = tl_op_new(&b, TL_OP_ALLOC, 0, NULL, 1, &type, 0, 0, NULL)->out[0],
            *to[] = {buf, tl_in(w->put, 1), compute(px, w)}, *from[] = {buf, tl_in(w->get, 1)};
    b = tl_builder_before(w->put);
    tl_op_new(&b, TL_OP_PUT, 3, to, 0, NULL, 0, 0, NULL);
    b = tl_builder_before(w->get);
    const TlType *got = tl_type_with_dtype(px->ctx, w->get->out[0]->type, type->dtype);
    TlValue *x = tl_op_new(&b, TL_OP_GET, 2, from, 1, &got, 0, 0, NULL)->out[0];
    x = turn(px, w, &b, x);
    TL_ASSERT(x->type == w->end->type, "a way that ends as another tile");
    x->name = w->end->name;
    tl_replace_uses(w->end, x);
    for (uint32_t i = w->n; i-- > 0;)
        tl_op_erase(w->op[i]);
    tl_op_erase(w->get);
    tl_op_erase(w->put);
    tl_op_erase(alloc);
}

TlPassResult tl_pass_widen_once(TlFn *fn, TlPassCtx *px)
{
    TL_VEC(TlOp *) gets = {0};
    bool changed = false;
    if (!px->machine->reads_early)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_GET)
            tl_vec_push(px->scratch, &gets, op);
    for (uint32_t i = 0; i < gets.len; i++) {
        Way w;
        if (!find_way(gets.data[i], &w) || w.end->type->dtype == w.get->out[0]->type->dtype ||
            !worth_it(&w))
            continue;
        const TlType *type = buffer_for(px, &w);
        if (!fits(fn, px, tl_in(w.get, 0)->type, type))
            continue;
        widen(px, &w, type);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
