/* Random valid kernels through every pass: what a kernel does to memory must stay, bit for bit (any
 * NaN is any other), and the IR valid.
 *
 * A kernel is made by the builder from a seed: views of f32, i32 and u8 to read and write, scalars
 * and tiles of a few shapes, arithmetic with constants that invite folding (0, 1, -1, -0.0, powers
 * of two), casts, shape ops, reductions with and without regions, ifs, fors with odd bounds and
 * hints, whiles that end, masked and strided accesses. All ops are total, so every kernel is
 * defined.
 *
 * pass_fuzz_test [FIRST [COUNT]] runs other seeds; a failure prints the seed and the pass, a COUNT
 * of 1 the kernel. */
#include "ir/argmax.h"
#include "ir/border_op.h"
#include "ir/numeric.h"
#include "passes/pass.h"
#include "test/unit/unit.h"
#include <stdlib.h>

enum { VALUES = 256, EXTENT = 19, PROGRAMS = 3, KERNELS = 400 };

/* ---- the generator ---- */

typedef struct Gen {
    uint64_t state;
    TlCtx *ctx;
    TlBuilder b;
    TlValue *values[VALUES]; /* in scope */
    int nvalues, depth, budget;
    TlValue *views[4];
} Gen;

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static int pick(Gen *g, int n)
{
    return (int)(next_random(&g->state) >> 33) % n;
}

static TlValue *keep(Gen *g, TlValue *v)
{
    if (g->nvalues < VALUES)
        g->values[g->nvalues++] = v;
    else
        g->values[pick(g, VALUES)] = v;
    return v;
}

static const int32_t shapes[][2] = {{4, 0}, {7, 0}, {1, 0}, {3, 5},
                                    {1, 5}, {3, 1}, {4, 4}, {16, 0}};
static const TlDtype dtypes[] = {TL_F32, TL_I32, TL_F32, TL_I32, TL_BOOL, TL_U8,
                                 TL_F16, TL_I64, TL_F64, TL_U32, TL_BF16};

static const TlType *random_type(Gen *g)
{
    TlDtype d = dtypes[pick(g, (int)(sizeof dtypes / sizeof *dtypes))];
    if (pick(g, 2))
        return tl_type_scalar(g->ctx, d);
    const int32_t *s = shapes[pick(g, (int)(sizeof shapes / sizeof *shapes))];
    return tl_type_tile(g->ctx, d, s[1] ? 2 : 1, s);
}

static TlValue *constant(Gen *g, const TlType *t)
{
    static const double reals[] = {0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.25, 4.0};
    static const int wholes[] = {0, 1, -1, 2, 3, 8, 31, -5};
    uint64_t bits;
    if (tl_is_float(t->dtype))
        bits = tl_bits_from_double(t->dtype, reals[pick(g, 8)]);
    else if (pick(g, 10) == 0)
        bits = pick(g, 2) ? tl_dtype_min_bits(t->dtype) : tl_dtype_max_bits(t->dtype);
    else
        bits = tl_bits_from_int(t->dtype, wholes[pick(g, 8)]);
    return tl_const_bits(&g->b, t, bits);
}

/* A value of the type: one in scope, often, or a new constant; or one made of another by cast and
 * broadcast. */
static TlValue *value_of(Gen *g, const TlType *t)
{
    int start = g->nvalues ? pick(g, g->nvalues) : 0;
    if (pick(g, 5))
        for (int i = 0; i < g->nvalues; i++) {
            TlValue *v = g->values[(start + i) % g->nvalues];
            if (v->type == t)
                return v;
            if (t->rank > 0 && tl_is_scalar(v->type) && v->type->dtype == t->dtype &&
                pick(g, 3) == 0)
                return tl_broadcast(&g->b, v, t->rank, t->shape);
        }
    return constant(g, t);
}

static TlValue *scalar(Gen *g, TlDtype d)
{
    return value_of(g, tl_type_scalar(g->ctx, d));
}
static TlValue *any(Gen *g)
{
    return g->nvalues && pick(g, 4) ? g->values[pick(g, g->nvalues)] : value_of(g, random_type(g));
}

static bool is_wide(TlDtype d)
{
    return d == TL_F32 || d == TL_F64;
}

static void gen_arith(Gen *g)
{
    static const TlOpcode any_number[] = {TL_OP_ADD, TL_OP_SUB, TL_OP_MUL, TL_OP_MIN, TL_OP_MAX,
                                          TL_OP_ADD, TL_OP_MUL, TL_OP_SUB, TL_OP_DIV};
    static const TlOpcode compares[] = {TL_OP_EQ, TL_OP_NE, TL_OP_LT, TL_OP_LE, TL_OP_GT, TL_OP_GE};
    static const TlOpcode bits[] = {TL_OP_AND, TL_OP_OR, TL_OP_XOR};
    static const TlOpcode whole[] = {TL_OP_SHL, TL_OP_SHR,     TL_OP_MULHI,
                                     TL_OP_REM, TL_OP_ADD_SAT, TL_OP_SUB_SAT};
    static const TlOpcode real[] = {TL_OP_MIN_NAN, TL_OP_MAX_NAN, TL_OP_ADD, TL_OP_MUL};
    TlValue *x = any(g), *y = pick(g, 8) ? value_of(g, x->type) : x;
    TlDtype d = x->type->dtype;
    if (pick(g, 2) == 0) {
        TlValue *swap = x;
        x = y, y = swap;
    }
    TlOpcode op;
    if (tl_is_bool(d) || pick(g, 5) == 0)
        op = tl_is_float(d) || pick(g, 2) ? compares[pick(g, 6)] : bits[pick(g, 3)];
    else if (pick(g, 4))
        op = any_number[pick(g, 9)];
    else if (tl_is_float(d))
        op = real[pick(g, 4)];
    else
        op = pick(g, 2) ? whole[pick(g, 4)] : bits[pick(g, 3)];
    keep(g, tl_binary(&g->b, op, x, y));
}

static void gen_unary(Gen *g)
{
    static const TlOpcode real[] = {TL_OP_NEG,  TL_OP_ABS,   TL_OP_SQRT, TL_OP_FLOOR,
                                    TL_OP_CEIL, TL_OP_TRUNC, TL_OP_RINT, TL_OP_ROUND};
    static const TlOpcode whole[] = {TL_OP_NEG,      TL_OP_ABS, TL_OP_NOT,
                                     TL_OP_POPCOUNT, TL_OP_CLZ, TL_OP_CTZ};
    TlValue *x = any(g);
    TlDtype d = x->type->dtype;
    keep(g, tl_unary(&g->b,
                     tl_is_bool(d)    ? TL_OP_NOT
                     : tl_is_float(d) ? real[pick(g, 8)]
                                      : whole[pick(g, 6)],
                     x));
}

static void gen_choice(Gen *g)
{
    TlValue *x = any(g), *y = value_of(g, x->type), *z = value_of(g, x->type);
    if (is_wide(x->type->dtype) && pick(g, 2)) {
        keep(g, tl_fma(&g->b, x, y, z));
        return;
    }
    TlValue *c =
        pick(g, 2) ? scalar(g, TL_BOOL) : value_of(g, tl_type_with_dtype(g->ctx, x->type, TL_BOOL));
    keep(g, tl_select(&g->b, c, x, y));
}

static void gen_border(Gen *g)
{
    static const TlDtype of[] = {TL_I32, TL_I64, TL_U64};
    TlWay way = (TlWay)pick(g, 3);
    TlValue *x = any(g);
    if (tl_is_float(x->type->dtype))
        return;
    keep(g, tl_border_op(&g->b, way, tl_cast(&g->b, x, of[pick(g, 3)]), scalar(g, TL_I64)));
}

static void gen_cast(Gen *g)
{
    TlValue *x = any(g);
    for (int i = pick(g, 3); i >= 0; i--)
        x = keep(g, tl_cast(&g->b, x, dtypes[pick(g, (int)(sizeof dtypes / sizeof *dtypes))]));
    if (x->type->dtype == TL_F32 || x->type->dtype == TL_I32 || x->type->dtype == TL_U32) {
        const TlType *t = tl_type_with_dtype(
            g->ctx, x->type, pick(g, 2) ? TL_I32 : TL_U32); /* not to floats: NaNs are open */
        if (tl_is_float(x->type->dtype))
            return;
        keep(g, tl_op_new(&g->b, TL_OP_BITCAST, 1, &x, 1, &t, 0, 0, NULL)->out[0]);
    }
}

static TlValue *shaped(Gen *g, TlOpcode op, TlValue *x, int rank, const int32_t *shape,
                       uint32_t nattrs, const TlAttr *attr)
{
    const TlType *t = tl_type_with_shape(g->ctx, x->type, rank, shape);
    return keep(g, tl_op_new(&g->b, op, 1, &x, 1, &t, 0, nattrs, attr)->out[0]);
}

static void gen_shape(Gen *g)
{
    TlValue *x = any(g);
    int rank = x->type->rank;
    int32_t s[TL_MAX_RANK];
    memcpy(s, x->type->shape, sizeof s);
    int kind = pick(g, 4);
    if (kind == 0) {
        int axis = pick(g, rank + 1);
        TlAttr a = {.id = TL_ATTR_AXIS, .u.i = axis};
        if (rank == 3)
            return;
        memmove(s + axis + 1, s + axis, sizeof *s * (size_t)(rank - axis));
        s[axis] = 1;
        shaped(g, TL_OP_EXPAND, x, rank + 1, s, 1, &a);
    } else if (kind == 1 && rank > 1) {
        int64_t *perm = TL_NEW_ARRAY(&g->b.fn->module->arena, int64_t, rank);
        int turn = pick(g, rank);
        for (int i = 0; i < rank; i++) {
            perm[i] = (i + turn) % rank;
            s[i] = x->type->shape[perm[i]];
        }
        TlAttr a = {.id = TL_ATTR_PERM, .n = (uint32_t)rank, .u.ints = perm};
        shaped(g, TL_OP_TRANS, x, rank, s, 1, &a);
    } else if (kind == 2) {
        int32_t n = (int32_t)tl_type_elems(x->type), flat[2] = {n, 1};
        if (n % 3 == 0)
            flat[0] = 3, flat[1] = n / 3;
        if (pick(g, 2))
            shaped(g, TL_OP_RESHAPE, x, 1, &n, 0, NULL);
        else
            shaped(g, TL_OP_RESHAPE, x, 2, flat, 0, NULL);
    } else {
        for (int i = 0; i < rank; i++)
            if (s[i] == 1)
                s[i] = 1 + pick(g, 4);
        shaped(g, TL_OP_BROADCAST, x, rank, s, 0, NULL);
    }
}

static void gen_gather(Gen *g)
{
    TlValue *in[2] = {any(g)};
    const TlType *t = in[0]->type;
    int32_t s[TL_MAX_RANK];
    if (t->rank == 0 || t->ptr)
        return;
    memcpy(s, t->shape, sizeof s);
    int axis = pick(g, t->rank);
    if (pick(g, 2))
        s[axis] = 1 + pick(g, 5);
    t = tl_type_with_shape(g->ctx, t, t->rank, s);
    in[1] = value_of(g, tl_type_with_dtype(g->ctx, t, TL_I32));
    TlAttr a = {.id = TL_ATTR_AXIS, .u.i = axis};
    keep(g, tl_op_new(&g->b, TL_OP_GATHER, 2, in, 1, &t, 0, 1, &a)->out[0]);
}

static void gen_reduce(Gen *g)
{
    static const TlCombine kinds[] = {TL_COMBINE_ADD, TL_COMBINE_MAX, TL_COMBINE_MIN,
                                      TL_COMBINE_MUL, TL_COMBINE_XOR};
    TlValue *x = any(g);
    if (x->type->rank == 0 || x->type->rank > 2)
        return;
    bool scan = pick(g, 3) == 0, user = pick(g, 2) == 0, is_float = tl_is_float(x->type->dtype);
    if (tl_is_bool(x->type->dtype))
        user = true;
    int axis = pick(g, x->type->rank);
    int32_t s[TL_MAX_RANK];
    memcpy(s, x->type->shape, sizeof s);
    memmove(s + axis, s + axis + 1, sizeof *s * (size_t)(x->type->rank - axis - 1));
    const TlType *t = scan ? x->type : tl_type_with_shape(g->ctx, x->type, x->type->rank - 1, s);
    TlAttr a[2] = {
        {.id = TL_ATTR_AXIS, .u.i = axis},
        {.id = TL_ATTR_KIND, .u.i = user ? TL_COMBINE_USER : kinds[pick(g, is_float ? 3 : 5)]}};
    TlOp *op = tl_op_new(&g->b, scan ? TL_OP_SCAN : TL_OP_REDUCE, 1, &x, 1, &t, user, 2, a);
    if (user) {
        TlBuilder outer = g->b;
        const TlType *e = tl_type_scalar(g->ctx, x->type->dtype);
        TlBlock *body = op->regions[0];
        TlValue *p = tl_block_arg(body, e, NULL), *q = tl_block_arg(body, e, NULL);
        g->b = tl_builder_end(body);
        TlValue *less = tl_binary(&g->b, TL_OP_LT, p, q);
        if (tl_is_bool(x->type->dtype))
            less = tl_binary(&g->b, TL_OP_AND, p, constant(g, e));
        TlValue *y = tl_is_bool(x->type->dtype) ? less : tl_select(&g->b, less, p, q);
        tl_yield(&g->b, TL_OP_YIELD, 1, &y);
        g->b = outer;
    }
    keep(g, op->out[0]);
}

static void gen_argmax(Gen *g)
{
    TlValue *x = any(g);
    const TlType *t = x->type;
    if (t->rank == 0 || t->rank > 2 || tl_is_bool(t->dtype))
        return;
    int axis = pick(g, t->rank);
    int32_t s[TL_MAX_RANK];
    memcpy(s, t->shape, sizeof s);
    memmove(s + axis, s + axis + 1, sizeof *s * (size_t)(t->rank - axis - 1));
    TlValue *in[2] = {x, value_of(g, tl_type_with_dtype(g->ctx, t, TL_I32))};
    const TlType *out[2] = {tl_type_with_shape(g->ctx, t, t->rank - 1, s),
                            tl_type_with_shape(g->ctx, in[1]->type, t->rank - 1, s)};
    TlAttr a[2] = {{.id = TL_ATTR_AXIS, .u.i = axis},
                   {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_USER}};
    TlOp *op = tl_op_new(&g->b, TL_OP_REDUCE, 2, in, 2, out, 1, 2, a);
    for (int i = 0; i < 4; i++)
        tl_block_arg(op->regions[0], tl_type_scalar(g->ctx, in[i % 2]->type->dtype), NULL);
    TlBuilder inside = tl_builder_end(op->regions[0]);
    tl_argmax_fill(&inside, op->regions[0], pick(g, 2) == 0);
    keep(g, op->out[1]);
}

static TlValue *small_index(Gen *g)
{
    TlValue *x = scalar(g, TL_I32);
    const TlType *i32 = x->type;
    if (pick(g, 2))
        return tl_const_int(&g->b, i32, pick(g, EXTENT + 4) - 2);
    return tl_binary(&g->b, TL_OP_AND, x, tl_const_int(&g->b, i32, 15));
}

static void gen_load(Gen *g)
{
    TlValue *view = g->views[pick(g, 4)], *in[4] = {view, small_index(g)};
    uint32_t nin = 2, nattrs = 1;
    bool tile = pick(g, 2);
    TlAxis *axes = TL_NEW(&g->b.fn->module->arena, TlAxis);
    *axes = tile ? (TlAxis){TL_AXIS_SLICE, pick(g, 2) ? 7 : 4, 1 + pick(g, 2)}
                 : (TlAxis){TL_AXIS_SCALAR, 0, 0};
    TlAttr a[3] = {{.id = TL_ATTR_AXES, .n = 1, .u.axes = axes}};
    const TlType *t = tl_type_scalar(g->ctx, view->type->dtype);
    if (tile)
        t = tl_type_with_shape(g->ctx, t, 1, &axes->width);
    if (pick(g, 3) == 0) {
        in[nin++] =
            pick(g, 2) ? scalar(g, TL_BOOL) : value_of(g, tl_type_with_dtype(g->ctx, t, TL_BOOL));
        a[nattrs++] = (TlAttr){.id = TL_ATTR_MASK};
    }
    if (pick(g, 3) == 0) {
        in[nin++] = value_of(g, t);
        a[nattrs++] = (TlAttr){.id = TL_ATTR_OTHER};
    }
    keep(g, tl_op_new(&g->b, TL_OP_LOAD, nin, in, 1, &t, 0, nattrs, a)->out[0]);
}

static void gen_store(Gen *g)
{
    TlValue *view = g->views[2 + pick(g, 2)], *v = NULL;
    for (int i = 0; i < 20 && (!v || v->type->dtype != view->type->dtype || v->type->rank > 1); i++)
        v = any(g);
    if (v->type->dtype != view->type->dtype || v->type->rank > 1)
        v = scalar(g, view->type->dtype);
    TlValue *in[4] = {view, small_index(g), v};
    uint32_t nin = 3, nattrs = 1;
    TlAxis *axes = TL_NEW(&g->b.fn->module->arena, TlAxis);
    *axes = v->type->rank ? (TlAxis){TL_AXIS_SLICE, v->type->shape[0], 1}
                          : (TlAxis){TL_AXIS_SCALAR, 0, 0};
    TlAttr a[2] = {{.id = TL_ATTR_AXES, .n = 1, .u.axes = axes}};
    if (pick(g, 3) == 0) {
        in[nin++] = pick(g, 2) ? scalar(g, TL_BOOL)
                               : value_of(g, tl_type_with_dtype(g->ctx, v->type, TL_BOOL));
        a[nattrs++] = (TlAttr){.id = TL_ATTR_MASK};
    }
    tl_op_new(&g->b, TL_OP_STORE, nin, in, 0, NULL, 0, nattrs, a);
}

/* A pointer to element 0..15 of a view, by way of the view, a part of it, or a view made of it. */
static TlValue *gen_pointer(Gen *g, TlValue *view)
{
    const TlType *i64 = tl_type_scalar(g->ctx, TL_I64);
    const TlType *ptr = tl_type_ptr(g->ctx, view->type->dtype, view->type->is_const, 0, NULL);
    TlAttr axis = {.id = TL_ATTR_AXIS, .u.i = 0};
    if (pick(g, 2)) {
        TlValue *in[3] = {view, tl_const_int(&g->b, i64, pick(g, 3)),
                          tl_cast(&g->b, small_index(g), TL_I64)};
        view = tl_op_new(&g->b, TL_OP_SUB_VIEW, 3, in, 1, &view->type, 0, 0, NULL)->out[0];
    }
    TlValue *p = tl_op_new(&g->b, TL_OP_VIEW_PTR, 1, &view, 1, &ptr, 0, 0, NULL)->out[0];
    TlOpcode query = pick(g, 2) ? TL_OP_EXTENT : TL_OP_STRIDE;
    keep(g, tl_op_new(&g->b, query, 1, &view, 1, &i64, 0, 1, &axis)->out[0]);
    if (pick(g, 2)) {
        TlValue *in[3] = {p, scalar(g, TL_I64), tl_const_int(&g->b, i64, 1)};
        view = tl_op_new(&g->b, TL_OP_VIEW, 3, in, 1, &view->type, 0, 0, NULL)->out[0];
        p = tl_op_new(&g->b, TL_OP_VIEW_PTR, 1, &view, 1, &ptr, 0, 0, NULL)->out[0];
        keep(g, tl_op_new(&g->b, query, 1, &view, 1, &i64, 0, 1, &axis)->out[0]);
    }
    if (pick(g, 2))
        p = tl_binary(&g->b, TL_OP_PTR_ADD, p, tl_const_int(&g->b, i64, pick(g, 3)));
    return p;
}

static void gen_memory(Gen *g)
{
    int v = pick(g, 4);
    TlValue *p = gen_pointer(g, g->views[v]);
    const TlType *t = tl_type_scalar(g->ctx, p->type->dtype);
    if (pick(g, 3) == 0) { /* a tile of pointers */
        TlValue *at = value_of(g, tl_type_tile(g->ctx, TL_I32, 1, (int32_t[]){7}));
        at = tl_binary(&g->b, TL_OP_AND, at, tl_const_int(&g->b, at->type, 7));
        p = tl_binary(&g->b, TL_OP_PTR_ADD, tl_broadcast(&g->b, p, 1, at->type->shape), at);
        t = tl_type_with_shape(g->ctx, t, 1, at->type->shape);
    }
    if (v < 2 || pick(g, 3) == 0) {
        keep(g, tl_op_new(&g->b, TL_OP_LOAD, 1, &p, 1, &t, 0, 0, NULL)->out[0]);
    } else if (t->rank == 0 && pick(g, 2)) {
        TlAttr a[3] = {{.id = TL_ATTR_RMW, .u.i = pick(g, 2) ? TL_RMW_ADD : TL_RMW_XCHG},
                       {.id = TL_ATTR_ORDER, .u.i = TL_ORDER_RELAXED},
                       {.id = TL_ATTR_SCOPE, .u.i = TL_SCOPE_DEVICE}};
        TlValue *in[2] = {p, value_of(g, t)};
        keep(g, tl_op_new(&g->b, TL_OP_ATOMIC_RMW, 2, in, 1, &t, 0, 3, a)->out[0]);
    } else {
        TlValue *in[2] = {p, value_of(g, t)};
        tl_op_new(&g->b, TL_OP_STORE, 2, in, 0, NULL, 0, 0, NULL);
    }
}

static void gen_dot(Gen *g)
{
    TlDtype d = pick(g, 2) ? TL_F32 : TL_F64;
    const TlType *a = tl_type_tile(g->ctx, d, 2, (int32_t[]){3, 5});
    const TlType *b = tl_type_tile(g->ctx, d, 2, (int32_t[]){5, 4});
    const TlType *c = tl_type_tile(g->ctx, d, 2, (int32_t[]){3, 4});
    TlValue *in[3] = {value_of(g, a), value_of(g, b), value_of(g, c)};
    keep(g, tl_op_new(&g->b, TL_OP_DOT, 3, in, 1, &c, 0, 0, NULL)->out[0]);
}

static void gen_ops(Gen *g, int n);

/* Fills a block: what is made inside is out of scope afterwards. Ends with `terminator` of values
 * like `like`. */
static void gen_block(Gen *g, TlBlock *block, TlOpcode terminator, uint32_t n, TlValue *const *like,
                      TlValue *first)
{
    TlBuilder outer = g->b;
    TlValue *scope[VALUES], *end[8];
    int nscope = g->nvalues;
    memcpy(scope, g->values, sizeof scope);
    for (uint32_t i = 0; i < block->nargs; i++)
        keep(g, block->args[i]);
    g->b = tl_builder_end(block);
    g->depth++;
    gen_ops(g, 1 + pick(g, 6));
    g->depth--;
    uint32_t m = 0;
    if (first)
        end[m++] = first;
    for (uint32_t i = 0; i < n; i++)
        end[m++] = value_of(g, like[i]->type);
    tl_yield(&g->b, terminator, m, end);
    g->b = outer;
    g->nvalues = nscope;
    memcpy(g->values, scope, sizeof scope);
}

static void gen_if(Gen *g)
{
    uint32_t n = (uint32_t)pick(g, 3);
    const TlType *types[3];
    for (uint32_t i = 0; i < n; i++)
        types[i] = random_type(g);
    TlValue *c = scalar(g, TL_BOOL);
    TlOp *op = tl_op_new(&g->b, TL_OP_IF, 1, &c, n, types, 2, 0, NULL);
    gen_block(g, op->regions[0], TL_OP_YIELD, n, op->out, NULL);
    gen_block(g, op->regions[1], TL_OP_YIELD, n, op->out, NULL);
    for (uint32_t i = 0; i < n; i++)
        keep(g, op->out[i]);
}

/* Three operands of a for. */
static void gen_bounds(Gen *g, const TlType *iv, TlValue **in)
{
    TlDtype d = iv->dtype;
    int64_t step = pick(g, 7) - 3, lo = pick(g, 9) - 4, hi = lo + (step < 0 ? -1 : 1) * pick(g, 12);
    if (pick(g, 10) == 0) { /* at the end of the type: bounds must not be computed past it */
        hi = d == TL_I32 ? INT32_MAX : INT64_MAX;
        lo = hi - pick(g, 9);
    }
    in[0] = tl_const_int(&g->b, iv, lo);
    in[1] = tl_const_int(&g->b, iv, hi);
    in[2] = tl_const_int(&g->b, iv, step);
    if (pick(g, 2)) { /* a bound that folding does not see */
        TlAttr axis = {.id = TL_ATTR_AXIS, .u.i = 0};
        const TlType *i32 = tl_type_scalar(g->ctx, TL_I32);
        TlValue *pid = tl_op_new(&g->b, TL_OP_PID, 0, NULL, 1, &i32, 0, 1, &axis)->out[0];
        in[0] = tl_binary(&g->b, TL_OP_ADD, in[0], tl_cast(&g->b, pid, d));
    }
}

static void gen_for(Gen *g)
{
    const TlType *iv = tl_type_scalar(g->ctx, pick(g, 3) ? TL_I32 : TL_I64), *types[3];
    TlValue *in[6];
    gen_bounds(g, iv, in);
    uint32_t n = (uint32_t)pick(g, 4);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = random_type(g);
        in[3 + i] = value_of(g, types[i]);
    }
    TlAttr hint = {.id = TL_ATTR_UNROLL, .u.i = pick(g, 5) - 1};
    if (pick(g, 2))
        hint = (TlAttr){.id = TL_ATTR_PIPELINE, .u.i = pick(g, 6)};
    TlOp *op = tl_op_new(&g->b, TL_OP_FOR, 3 + n, in, n, types, 1, pick(g, 3) > 0, &hint);
    tl_block_arg(op->regions[0], iv, "i");
    for (uint32_t i = 0; i < n; i++)
        tl_block_arg(op->regions[0], types[i], NULL);
    gen_block(g, op->regions[0], TL_OP_YIELD, n, op->out, NULL);
    for (uint32_t i = 0; i < n; i++)
        keep(g, op->out[i]);
}

/* A load of 7 neighbours or of one, from a view of integers. */
static TlValue *fetch(Gen *g, TlValue *index, bool tile)
{
    TlAxis *axes = TL_NEW(&g->b.fn->module->arena, TlAxis);
    *axes = tile ? (TlAxis){TL_AXIS_SLICE, 7, 1} : (TlAxis){TL_AXIS_SCALAR, 0, 0};
    TlAttr a[2] = {{.id = TL_ATTR_AXES, .n = 1, .u.axes = axes}, {.id = TL_ATTR_MASK}};
    TlValue *in[3] = {g->views[pick(g, 4) ? 1 : 3], index, NULL};
    const TlType *t = tl_type_scalar(g->ctx, TL_I32);
    bool masked = pick(g, 4) == 0;
    if (masked)
        in[2] = tl_binary(&g->b, TL_OP_LT, index, tl_const_int(&g->b, index->type, pick(g, 20)));
    t = tile ? tl_type_with_shape(g->ctx, t, 1, &axes->width) : t;
    return tl_op_new(&g->b, TL_OP_LOAD, 2 + masked, in, 1, &t, 0, 1 + masked, a)->out[0];
}

/* A loop for `pipeline`: loads by its counter, by what it carries, by what it has loaded. */
static void gen_pipelined(Gen *g)
{
    const TlType *iv = tl_type_scalar(g->ctx, pick(g, 3) ? TL_I32 : TL_I64);
    const TlType *types[2] = {tl_type_scalar(g->ctx, TL_I32),
                              tl_type_tile(g->ctx, TL_I32, 1, (int32_t[]){7})};
    TlValue *in[5], *index[8];
    gen_bounds(g, iv, in);
    in[3] = small_index(g);
    in[4] = value_of(g, types[1]);
    TlAttr hint = {.id = TL_ATTR_PIPELINE, .u.i = pick(g, 6)};
    TlOp *op = tl_op_new(&g->b, TL_OP_FOR, 5, in, 2, types, 1, 1, &hint);
    TlBuilder outer = g->b;
    TlBlock *body = op->regions[0];
    index[0] = tl_block_arg(body, iv, "i");
    index[1] = tl_block_arg(body, types[0], "at");
    TlValue *sum = tl_block_arg(body, types[1], "sum");
    g->b = tl_builder_end(body);
    int n = 2;
    index[0] = tl_cast(&g->b, index[0], TL_I32);
    for (int loads = 1 + pick(g, 5); loads > 0; loads--) {
        TlValue *at = index[pick(g, n)], *least = tl_const_int(&g->b, types[0], 15);
        at = tl_binary(&g->b, TL_OP_AND, at, least);
        if (pick(g, 2))
            index[n++] = fetch(g, at, false);
        else
            sum = tl_binary(&g->b, TL_OP_ADD, sum, fetch(g, at, true));
    }
    if (pick(g, 4) == 0)
        gen_store(g);
    tl_yield(&g->b, TL_OP_YIELD, 2, (TlValue *[]){index[pick(g, n)], sum});
    g->b = outer;
    keep(g, op->out[0]);
    keep(g, op->out[1]);
}

/* while (i < n) with i carried, so it ends; a second carried value is anything. */
static void gen_while(Gen *g)
{
    const TlType *i32 = tl_type_scalar(g->ctx, TL_I32), *types[2] = {i32, random_type(g)};
    TlValue *in[2] = {tl_const_int(&g->b, i32, pick(g, 3)), value_of(g, types[1])};
    TlOp *op = tl_op_new(&g->b, TL_OP_WHILE, 2, in, 2, types, 2, 0, NULL);
    TlBuilder outer = g->b;
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 2; i++)
            tl_block_arg(op->regions[r], types[i], NULL);
    TlBlock *before = op->regions[0], *after = op->regions[1];
    g->b = tl_builder_end(before);
    TlValue *go = tl_binary(&g->b, TL_OP_LT, before->args[0], tl_const_int(&g->b, i32, pick(g, 4)));
    tl_yield(&g->b, TL_OP_CONDITION, 3, (TlValue *[]){go, before->args[0], before->args[1]});
    g->b = tl_builder_end(after);
    TlValue *next = tl_binary(&g->b, TL_OP_ADD, after->args[0], tl_const_int(&g->b, i32, 1));
    g->b = outer;
    gen_block(g, after, TL_OP_YIELD, 1, &before->args[1], next);
    keep(g, op->out[0]);
    keep(g, op->out[1]);
}

/* One op with a constant that rules look for, on loaded values, stored at once: nothing stands
 * between a wrong rule and memory. */
static void gen_peephole(Gen *g)
{
    static const TlOpcode ops[] = {TL_OP_ADD, TL_OP_SUB, TL_OP_MUL, TL_OP_DIV, TL_OP_MIN, TL_OP_MAX,
                                   TL_OP_LT,  TL_OP_LE,  TL_OP_GT,  TL_OP_GE,  TL_OP_EQ,  TL_OP_AND,
                                   TL_OP_OR,  TL_OP_XOR, TL_OP_SHL, TL_OP_SHR, TL_OP_REM};
    int v = pick(g, 2);
    TlAxis *axes = TL_NEW(&g->b.fn->module->arena, TlAxis);
    *axes = (TlAxis){TL_AXIS_SLICE, 7, 1};
    TlAttr a = {.id = TL_ATTR_AXES, .n = 1, .u.axes = axes};
    const TlType *t = tl_type_tile(g->ctx, v ? TL_I32 : TL_F32, 1, (int32_t[]){7}),
                 *i32 = tl_type_scalar(g->ctx, TL_I32);
    TlValue *x =
        tl_op_new(&g->b, TL_OP_LOAD, 2,
                  (TlValue *[]){g->views[v], tl_const_int(&g->b, i32, pick(g, 8))}, 1, &t, 0, 1, &a)
            ->out[0];
    if (v && pick(g, 3) == 0)
        x = tl_cast(&g->b, x, TL_U32);
    if (pick(g, 3) == 0)
        x = tl_unary(&g->b, TL_OP_NEG, x);
    TlValue *y = constant(g, x->type), *r;
    if (pick(g, 4) == 0) {
        TlValue *swap = x;
        x = y, y = swap;
    }
    r = tl_binary(&g->b, ops[pick(g, v ? 17 : 11)], x, y);
    if (v && !tl_is_bool(r->type->dtype) && pick(g, 3) == 0)
        r = tl_binary(&g->b, ops[pick(g, 6)], r, constant(g, r->type));
    r = keep(g, tl_cast(&g->b, r, v ? TL_I32 : TL_F32));
    tl_op_new(&g->b, TL_OP_STORE, 3,
              (TlValue *[]){g->views[2 + v], tl_const_int(&g->b, i32, pick(g, 12)), r}, 0, NULL, 0,
              1, &a);
}

static void gen_ops(Gen *g, int n)
{
    for (; n > 0 && g->budget > 0; n--, g->budget--) {
        int kind = pick(g, 36);
        if (kind < 8)
            gen_arith(g);
        else if (kind < 11)
            gen_unary(g);
        else if (kind < 13)
            gen_choice(g);
        else if (kind < 15)
            pick(g, 4) ? gen_cast(g) : gen_border(g);
        else if (kind < 18)
            pick(g, 4) ? gen_shape(g) : gen_gather(g);
        else if (kind < 19)
            pick(g, 4) ? gen_reduce(g) : gen_argmax(g);
        else if (kind < 22)
            gen_load(g);
        else if (kind < 24)
            gen_store(g);
        else if (kind >= 35)
            gen_dot(g);
        else if (kind >= 32)
            gen_memory(g);
        else if (kind >= 28)
            gen_peephole(g);
        else if (g->depth >= 3)
            gen_arith(g);
        else if (kind < 25)
            gen_if(g);
        else if (kind < 27)
            pick(g, 3) ? gen_for(g) : gen_pipelined(g);
        else
            gen_while(g);
    }
}

static TlModule *generate(TlCtx *ctx, uint64_t seed)
{
    TlModule *m = tl_module_new(ctx);
    TlFn *fn = tl_fn_new(m, "fuzz", (TlLoc){0});
    Gen g = {.state = seed, .ctx = ctx, .b = tl_builder_end(fn->body), .budget = 60};
    static const TlDtype view_types[4] = {TL_F32, TL_I32, TL_F32, TL_I32};
    for (int i = 0; i < 4; i++)
        g.views[i] = tl_block_arg(fn->body, tl_type_view(ctx, view_types[i], i < 2, 1), NULL);
    keep(&g, tl_block_arg(fn->body, tl_type_scalar(ctx, TL_I32), "n"));
    keep(&g, tl_block_arg(fn->body, tl_type_scalar(ctx, TL_F32), "s"));
    TlAttr axis = {.id = TL_ATTR_AXIS, .u.i = 0};
    const TlType *i32 = tl_type_scalar(ctx, TL_I32);
    keep(&g, tl_op_new(&g.b, TL_OP_PID, 0, NULL, 1, &i32, 0, 1, &axis)->out[0]);
    gen_ops(&g, 40);
    for (int i = 0; i < 6; i++)
        gen_store(&g);
    tl_yield(&g.b, TL_OP_RETURN, 0, NULL);
    return m;
}

/* ---- running ---- */

typedef struct Memory {
    uint32_t words[4][EXTENT];
} Memory;

static bool stop_late(void *user)
{
    return ++*(int *)user > 200;
}

static bool run(const TlFn *fn, uint64_t seed, Memory *out)
{
    TlInterpArg args[6];
    memset(args, 0, sizeof args);
    uint64_t state = seed ^ 0x5555;
    for (int v = 0; v < 4; v++) {
        for (int i = 0; i < EXTENT; i++) {
            uint64_t r = next_random(&state);
            double x = (double)(r >> 40) / 4096 - 2048;
            if (r % 5 == 0)
                x = r & 16 ? 0.0 : -0.0;
            static const uint32_t edges[] = {0x80000000u, 0x7fffffffu, 0xffffffffu, 0};
            out->words[v][i] = v % 2 ? (uint32_t)(r % 4 == 0    ? edges[r >> 20 & 3]
                                                  : r % 16 == 1 ? r >> 20
                                                                : (r >> 30) % 23)
                                     : (uint32_t)tl_bits_from_double(TL_F32, x);
        }
        args[v] = (TlInterpArg){.address = out->words[v],
                                .bytes = sizeof out->words[v],
                                .extent = {EXTENT},
                                .stride = {1}};
    }
    args[4].scalar = 11;
    args[5].scalar = 0xbf400000u; /* -0.75 */
    int polls = 0;
    TlInterpOptions options = {.hooks = {.user = &polls, .stop = stop_late}};
    bool ended = true;
    for (int p = 0; p < PROGRAMS && ended; p++) {
        TlArena scratch;
        tl_arena_init(&scratch, (TlAlloc){0});
        ended = tl_interp_program(fn, args, (int32_t[6]){p}, (int32_t[6]){PROGRAMS, 1, 1, 1, 1, 1},
                                  &options, &scratch);
        tl_arena_free(&scratch);
    }
    return ended;
}

static bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

static bool same(const Memory *a, const Memory *b)
{
    for (int v = 0; v < 4; v++)
        for (int i = 0; i < EXTENT; i++)
            if (a->words[v][i] != b->words[v][i] &&
                !(v % 2 == 0 && is_nan(a->words[v][i]) && is_nan(b->words[v][i])))
                return false;
    return true;
}

/* The laid-out ones take the longest: each runs on one kernel in LAID_OUT. */
enum { LAID_OUT = 4 };
static const char *const pipelines[] = {
    "coalesce,place-layouts,allocate-shared,synchronize",
    "cse,coalesce,stress-layouts{seed=7},place-layouts,cse,dce",
    "coalesce,place-layouts,stress-layouts{seed=9},allocate-shared,synchronize",
    "coalesce,stress-layouts{seed=5},stage-shared,pipeline,allocate-shared,synchronize,"
    "order-reads",
    "canonicalize",
    "cse",
    "dce",
    "load-parts",
    "pick-parts",
    "split-argmax{threads=1}",
    "turn-rows",
    "one-place",
    "licm",
    "unroll",
    "decide",
    "expand-borders",
    "gather-borders",
    "bounds",
    "late-loads",
    "canonicalize,cse,dce,licm,unroll,canonicalize,cse,dce"};
/* They reorder sums of floats: compared in the ring. */
static const char *const in_ring[] = {"chunk-rows{elements=3}", "chunk-rows{elements=1}"};

static void check_text(TlModule *m, bool print)
{
    TlArena scratch;
    tl_arena_init(&scratch, (TlAlloc){0});
    TlSbuf a, b, faults;
    tl_sbuf_init(&a, &scratch);
    tl_sbuf_init(&b, &scratch);
    tl_sbuf_init(&faults, &scratch);
    if (!CHECK(tl_verify_module(m, &faults)))
        fprintf(stderr, "%s\n", faults.text);
    tl_print_module(&a, m);
    if (print)
        printf("%s", a.text);
    TlModule *copy = tl_module_clone(m);
    tl_print_module(&b, copy);
    CHECK_STR(b.text, a.text);
    tl_module_free(copy);
    tl_arena_free(&scratch);
}

static TlModule *run_on_copy(const TlModule *m, const char *pipeline, const TlMachine *machine)
{
    TlModule *copy = tl_module_clone(m);
    CHECK(tl_run_passes(copy, pipeline,
                        &(TlRunOptions){.bisect = -1, .verify_each = true, .machine = machine}));
    return copy;
}

static void check_in_ring(const TlModule *m, uint64_t seed, const TlMachine *machine)
{
    Memory before, after;
    TlModule *ring = run_on_copy(m, "ring", machine);
    if (run(ring->fns.data[0], seed, &before)) {
        TlModule *cut = run_on_copy(ring, in_ring[seed % 2], machine);
        CHECK(run(cut->fns.data[0], seed, &after));
        if (!CHECK(memcmp(&before, &after, sizeof before) == 0))
            fprintf(stderr, "    seed %llu, %s\n", (unsigned long long)seed, in_ring[seed % 2]);
        tl_module_free(cut);
    }
    tl_module_free(ring);
}

/* NaN may meet the sign bit: bitcasts of floats are not generated, but casts and compares are the
 * same for every NaN. */
static void check_seed(uint64_t seed, bool print)
{
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    const char *volatile at = "generate";
    if (TL_GUARD(&g)) {
        TlModule *m = generate(&ctx, seed);
        check_text(m, print);
        Memory before;
        TlMachine machine = {.name = "",
                             .lanes = 32 << seed % 2,
                             .warps = 1 << seed / 2 % 4,
                             .shared_bytes = 1 << 18,
                             .copies = seed / 8 % 2};
        bool ended = run(m->fns.data[0], seed, &before);
        for (size_t p = 0; ended && p < sizeof pipelines / sizeof *pipelines; p++) {
            if (p < LAID_OUT && seed % LAID_OUT != p)
                continue;
            at = pipelines[p];
            Memory after;
            TlModule *copy = run_on_copy(m, pipelines[p], &machine);
            CHECK(run(copy->fns.data[0], seed, &after));
            if (!CHECK(same(&before, &after)))
                fprintf(stderr, "    seed %llu, %s\n", (unsigned long long)seed, at);
            tl_module_free(copy);
        }
        at = "in the ring";
        check_in_ring(m, seed, &machine);
        tl_guard_pop(&g);
    } else {
        CHECK(false);
        fprintf(stderr, "    seed %llu, %s: %s\n", (unsigned long long)seed, at, g.text);
    }
    tl_ctx_free(&ctx);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1,
             count = argc > 2 ? strtoull(argv[2], NULL, 0) : KERNELS;
    for (uint64_t seed = first; seed < first + count; seed++)
        check_seed(seed, count == 1);
    return unit_result();
}
