/* pick-parts: a part of sums of products, at a place that is known, is picked from the registers
 * that hold it.
 *
 *     %acc = for ... { dot ... } : tile<f32, 128, 256>
 *     %up = gather %acc, (iota + 128) {axis = 1} : tile<f32, 128, 128>          an extract
 *  =>
 *     %h = reshape %acc : tile<f32, 128, 2, 128>
 *     %s = select (iota == 1), %h, 0
 *     %up = reduce %s {axis = 1, kind = or} : tile<f32, 128, 128>               as `pick` does it
 *
 * A gather goes through shared memory, with all of the tile, and an index for each element. Sums of
 * products lie so that a thread has elements from all over the tile: parts along an axis are most
 * often other registers, and the reduction is a choice among them. Where they are other lanes or
 * warps it is as much work as the gather. Tiles that come from elsewhere keep their gather: there,
 * neighbouring lanes have neighbouring elements of a row.
 *
 * It is done if the axis consists of few parts of that length, one of which is it. */
#include "ir/rewrite.h"
#include "passes/analysis/picked.h"
#include "passes/pass.h"
#include <string.h>

enum { MOST_PARTS = 8 };

/* The part that a gather takes: number `at` of `parts` along `dim`. */
typedef struct Part {
    TlValue *from;
    int dim, parts, at;
} Part;

/* Is it made of sums of products, element by element? */
static bool is_of_products(const TlValue *v)
{
    enum { FAR = 16 }; /* ops */
    for (int n = 0; v && v->def && n < FAR; n++) {
        const TlOp *op = v->def;
        if (op->opcode == TL_OP_DOT)
            return true;
        bool from_loop = op->opcode == TL_OP_FOR && v->index + 1 <= op->regions[0]->last->nin;
        if (!from_loop && !(tl_op_info(op->opcode)->flags & F_ELEM))
            return false;
        v = tl_in(from_loop ? op->regions[0]->last : op, from_loop ? v->index : 0);
    }
    return false;
}

static bool has_other_extents(const TlType *a, const TlType *b, int dim)
{
    for (int d = 0; d < a->rank; d++)
        if (d != dim && a->shape[d] != b->shape[d])
            return true;
    return false;
}

static bool find_part(const TlOp *op, Part *out)
{
    if (op->opcode != TL_OP_GATHER)
        return false;
    const TlType *t = tl_in(op, 0)->type, *of = op->out[0]->type;
    int dim = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    int64_t first, n = of->shape[dim], all = t->shape[dim];
    if (t->ptr || t->rank == TL_MAX_RANK || tl_dtype_bits(t->dtype) < 8 || all % n ||
        all / n > MOST_PARTS || n == all || has_other_extents(t, of, dim) ||
        !tl_counts_along(tl_in(op, 1), dim, &first) || first % n || first + n > all ||
        !is_of_products(tl_in(op, 0)))
        return false;
    *out = (Part){tl_in(op, 0), dim, (int)(all / n), (int)(first / n)};
    return true;
}

static TlValue *op_of_one(TlBuilder *b, TlOpcode opcode, TlValue *x, const TlType *t)
{
    return tl_op_new(b, opcode, 1, &x, 1, &t, 0, 0, NULL)->out[0];
}

static TlValue *is_part(TlBuilder *b, const Part *p, const TlType *t)
{
    TlCtx *ctx = b->fn->module->ctx;
    int32_t shape[TL_MAX_RANK];
    for (int d = 0; d < t->rank; d++)
        shape[d] = d == p->dim ? p->parts : 1;
    const TlType *i32 = tl_type_tile(ctx, TL_I32, 1, &shape[p->dim]),
                 *wide = tl_type_with_shape(ctx, i32, t->rank, shape);
    TlValue *iota = tl_op_new(b, TL_OP_IOTA, 0, NULL, 1, &i32, 0, 0, NULL)->out[0];
    TlValue *number = op_of_one(b, TL_OP_RESHAPE, iota, wide);
    TlValue *is = tl_binary(b, TL_OP_EQ, number, tl_const_int(b, wide, p->at));
    return tl_broadcast(b, is, t->rank, t->shape);
}

static TlValue *pick(TlBuilder *b, const Part *p)
{
    TlCtx *ctx = b->fn->module->ctx;
    const TlType *t = p->from->type;
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, t->shape, sizeof(int32_t) * (size_t)p->dim);
    shape[p->dim] = p->parts;
    shape[p->dim + 1] = t->shape[p->dim] / p->parts;
    for (int d = p->dim + 1; d < t->rank; d++) shape[d + 1] = t->shape[d];
    const TlType *apart = tl_type_with_shape(ctx, t, t->rank + 1, shape),
                 *bits = tl_type_with_dtype(ctx, apart, tl_bits_dtype(t->dtype));
    TlValue *x = op_of_one(b, TL_OP_RESHAPE, p->from, apart);
    x = bits == apart ? x : op_of_one(b, TL_OP_BITCAST, x, bits);
    x = tl_select(b, is_part(b, p, bits), x, tl_const_bits(b, bits, 0));
    memmove(&shape[p->dim], &shape[p->dim + 1], sizeof(int32_t) * (size_t)(t->rank - p->dim));
    const TlType *part = tl_type_with_shape(ctx, bits, t->rank, shape);
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = p->dim},
                       {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    x = tl_op_new(b, TL_OP_REDUCE, 1, &x, 1, &part, 0, 2, attrs)->out[0];
    const TlType *same = tl_type_with_shape(ctx, t, t->rank, shape);
    return part == same ? x : op_of_one(b, TL_OP_BITCAST, x, same);
}

TlPassResult tl_pass_pick_parts(TlFn *fn, TlPassCtx *px)
{
    (void)px;
    TlPassResult result = TL_SAME;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        Part p;
        if (!find_part(op, &p))
            continue;
        TlBuilder b = tl_builder_before(op);
        TlValue *v = pick(&b, &p);
        v->name = op->out[0]->name;
        tl_replace_uses(op->out[0], v);
        tl_op_erase(op);
        result = TL_CHANGED;
    }
    return result;
}
