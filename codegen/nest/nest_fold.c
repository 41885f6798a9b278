/* Whole rows of an array, one after the other.
 *
 * Rows of three of an array [N, 3] do not fill a vector; but 16 of them are 48 elements side by
 * side. Where all that a kernel loads and stores are such rows, each with all elements that the
 * array has, and nothing else cares for the axes, it works on the array's elements as one axis.
 *
 *     x: view<f32, 2>, [N, 3]                        %flat = view of x, [3 N]
 *     %v = load x, j, 0, 16 x 3                 =>   %v = load %flat, 3 j, 48
 *     %w = mul %v, %v : tile<f32, 16, 3>             %w = mul %v, %v : tile<f32, 48>
 *
 * Of an array [N, W] only a launch knows how long its rows are, and a program begins at column
 * pid(0) * 3. Where W is 3 and the grid has one program along that axis, such programs are like
 * those of [N, 3]: each run asks, and goes on in the one code or the other.
 *
 *   1. check  every tile ends with the same two axes; loads and stores take whole rows of arrays
 *             without gaps, or may; the rest works element by element, or carries such tiles
 *   2. price  vectors that become fewer
 *   3. fold   the function once more, with types of one axis less */
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

typedef struct Fold {
    const TlFn *of;
    TlFn *fn;
    TlArena *arena;
    int rank;
    int32_t rows, row; /* the last two extents of all tiles */
    TlNestFold asks;
    TlMap copy;        /* value to the copy's */
    TlMap flat;        /* a parameter of the copy to its view with an axis less */
    TlMap first;       /* the number of a row to that of its first element */
} Fold;

/* ---- 1. check ---- */

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

/* Has it the two axes? The first tile says which. */
static bool has_axes(Fold *f, const TlValue *v)
{
    if (!is_tile(v))
        return true;
    int rank = v->type->rank;
    if (rank < 2 || v->type->ptr || tl_dtype_bits(v->type->dtype) < 8)
        return false;
    if (!f->rank) {
        f->rank = rank;
        f->rows = v->type->shape[rank - 2];
        f->row = v->type->shape[rank - 1];
    }
    return rank == f->rank && v->type->shape[rank - 2] == f->rows &&
           v->type->shape[rank - 1] == f->row;
}

static void ask_view(Fold *f, const TlValue *view)
{
    for (uint32_t i = 0; i < f->asks.views.len; i++)
        if (f->asks.views.data[i] == view)
            return;
    tl_vec_push(f->arena, &f->asks.views, view);
}

/* Is a parameter row-major without gaps, its rows of the tiles' length? If not, a launch may say
 * so. */
static bool has_whole_rows(Fold *f, const TlValue *base)
{
    if (base->def || base->block->parent || !f->of->info)
        return false;
    const TlParam *p = &f->of->info->params.data[base->index];
    if (p->rank < 2)
        return false;
    bool may = true, is = true;
    for (int d = 0; d < p->rank; d++) {
        const TlDim *stride = &p->stride[d];
        bool dense = stride->kind == TILE_DIM_DENSE, last = d + 1 == p->rank,
             one = last && stride->kind == TILE_DIM_CONST && stride->value == 1;
        may &= dense || one || !last; /* rows of elements that lie apart are no vectors */
        is &= dense || one;
    }
    const TlDim *row = &p->extent[p->rank - 1];
    may &= row->kind != TILE_DIM_CONST || row->value == f->row;
    if (may && !(is && row->kind == TILE_DIM_CONST))
        ask_view(f, base);
    return may;
}

/* Is an index 0? It may be so where some axes of the grid, which *alone gets, have one program. */
static bool is_zero(const TlValue *v, uint32_t *alone)
{
    TlWideInt n;
    const TlOp *op = v->def;
    if (tl_const_int_value(v, &n))
        return n == 0;
    if (op && op->opcode == TL_OP_PID) {
        *alone |= 1U << tl_attr_int(op, TL_ATTR_AXIS, 0);
        return true;
    }
    if (op && op->opcode == TL_OP_CAST && tl_is_int(tl_in(op, 0)->type->dtype))
        return is_zero(tl_in(op, 0), alone);
    if (!op || op->opcode != TL_OP_MUL)
        return false;
    uint32_t a = 0, b = 0;
    bool first = is_zero(tl_in(op, 0), &a), second = !first && is_zero(tl_in(op, 1), &b);
    *alone |= first ? a : second ? b : 0;
    return first || second;
}

static bool takes_rows(Fold *f, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    const TlValue *v = op->opcode == TL_OP_STORE ? p.value : op->out[0];
    if (!is_tile(v))
        return op->opcode == TL_OP_LOAD;
    if (!p.axes || p.pointwise || p.naxes < 2 || !has_axes(f, v) || !has_whole_rows(f, p.base))
        return false;
    for (uint32_t i = 0; i < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_TILE)
            return false;
    const TlAxis *rows = &p.axes[p.naxes - 2], *row = &p.axes[p.naxes - 1];
    return rows->kind == TL_AXIS_SLICE && rows->step == 1 && row->kind == TL_AXIS_SLICE &&
           row->step == 1 && is_zero(p.index[p.naxes - 1].value, &f->asks.alone);
}

static bool may_fold(Fold *f, const TlOp *op)
{
    bool tiles = false, same = true;
    for (uint32_t i = 0; i < op->nout; i++)
        tiles |= is_tile(op->out[i]), same &= has_axes(f, op->out[i]);
    for (uint32_t i = 0; i < op->nin; i++)
        tiles |= is_tile(tl_in(op, i)), same &= has_axes(f, tl_in(op, i));
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            tiles |= is_tile(op->regions[r]->args[i]), same &= has_axes(f, op->regions[r]->args[i]);
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE)
        return same && takes_rows(f, op);
    bool flows = op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE || op->opcode == TL_OP_IF ||
                 op->opcode == TL_OP_YIELD || op->opcode == TL_OP_CONDITION,
         repeats = op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0,
         each = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONST;
    return !tiles || (same && (flows || repeats || each));
}

/* ---- 2. price ---- */

static bool pays(const Fold *f, const TlNestMachine *m)
{
    int64_t bytes = 1;
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; i < op->nout; i++)
            if (is_tile(op->out[i]) && (int64_t)tl_gen_elem_bytes(op->out[i]->type) > bytes)
                bytes = (int64_t)tl_gen_elem_bytes(op->out[i]->type);
    int64_t lanes = m->vector_bytes / bytes, all = (int64_t)f->rows * f->row;
    return (all + lanes - 1) / lanes < f->rows * ((f->row + lanes - 1) / lanes);
}

/* ---- 3. fold ---- */

static TlValue *number_along(TlBuilder *b, TlOpcode opcode, TlValue *view, int axis)
{
    const TlType *i64 = tl_type_scalar(b->fn->module->ctx, TL_I64);
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_op_new(b, opcode, 1, &view, 1, &i64, 0, 1, &attr)->out[0];
}

static TlValue *times_row(const Fold *f, TlBuilder *b, TlValue *v)
{
    TlValue *wide = tl_cast(b, v, TL_I64);
    return tl_binary(b, TL_OP_MUL, wide, tl_const_int(b, wide->type, f->row));
}

/* The element with which row v begins, computed where v is: accesses of the same rows are seen to
 * be so. */
static TlValue *first_of_row(Fold *f, TlValue *v)
{
    TlValue *known = tl_map_get_ptr(&f->first, v);
    if (known)
        return known;
    TlBuilder b = tl_builder_after(v);
    TlValue *made = times_row(f, &b, v);
    tl_map_put_ptr(&f->first, v, made);
    return made;
}

/* The view with an axis less, made where the function begins. */
static TlValue *flat_view(Fold *f, TlValue *base, int naxes)
{
    TlValue *known = tl_map_get_ptr(&f->flat, base);
    if (known)
        return known;
    TlCtx *c = f->fn->module->ctx;
    TlBuilder b = tl_builder_before(f->fn->body->first);
    const TlType *t = base->type, *p = tl_type_ptr(c, t->dtype, t->is_const, 0, NULL),
                 *view = tl_type_view(c, t->dtype, t->is_const, naxes - 1);
    TlValue *in[1 + 2 * TL_MAX_VIEW_RANK];
    int n = naxes - 1;
    in[0] = tl_op_new(&b, TL_OP_VIEW_PTR, 1, &base, 1, &p, 0, 0, NULL)->out[0];
    for (int d = 0; d < n; d++)
        in[1 + d] = number_along(&b, TL_OP_EXTENT, base, d);
    in[n] = times_row(f, &b, in[n]);
    for (int d = 0; d + 1 < n; d++)
        in[1 + n + d] = number_along(&b, TL_OP_STRIDE, base, d);
    in[2 * n] = tl_const_int(&b, in[n]->type, 1);
    TlValue *made =
        tl_op_new(&b, TL_OP_VIEW, (uint32_t)(1 + 2 * n), in, 1, &view, 0, 0, NULL)->out[0];
    tl_map_put_ptr(&f->flat, base, made);
    return made;
}

static const TlType *folded_type(const Fold *f, const TlType *t)
{
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[f->rank - 2] = f->rows * f->row;
    return tl_type_with_shape(f->fn->module->ctx, t, f->rank - 1, shape);
}

static void fold_value(const Fold *f, TlValue *v)
{
    if (is_tile(v))
        v->type = folded_type(f, v->type);
}

/* In the place of op, which goes. */
static TlOp *fold_access(Fold *f, TlOp *op)
{
    TlPlace p = tl_op_place(op);
    uint32_t last = p.naxes - 1, row_at = (uint32_t)(&p.index[last] - op->in), n = 0;
    TlBuilder b = tl_builder_before(op);
    b.loc = op->loc;
    TlValue **in = TL_NEW_ARRAY(f->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        if (i != row_at)
            in[n++] = i == 0            ? flat_view(f, p.base, (int)p.naxes)
                      : i + 1 == row_at ? first_of_row(f, tl_in(op, i))
                                        : tl_in(op, i);
    const TlType *type = op->nout ? op->out[0]->type : NULL;
    TlOp *made = tl_op_like(&b, op, n, in, op->nout, &type);
    TlAxis *axes = TL_NEW_ARRAY(&f->fn->module->arena, TlAxis, last);
    memcpy(axes, p.axes, sizeof *axes * last);
    axes[last - 1].width *= f->row;
    tl_attr_set(f->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = last, .u.axes = axes});
    if (op->nout)
        tl_replace_uses(op->out[0], made->out[0]);
    tl_op_erase(op);
    return made;
}

static void fold_block(Fold *f, TlBlock *block)
{
    for (uint32_t i = 0; i < block->nargs; i++)
        fold_value(f, block->args[i]);
    for (TlOp *op = block->first; op; op = op->next) {
        bool stores = op->opcode == TL_OP_STORE;
        if (stores || (op->opcode == TL_OP_LOAD && is_tile(op->out[0])))
            op = fold_access(f, op);
        for (uint32_t i = 0; i < op->nout; i++)
            fold_value(f, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++)
            fold_block(f, op->regions[r]);
    }
}

TlNestFold tl_nest_fold(const TlFn *fn, const TlNestMachine *m, TlArena *arena)
{
    Fold f = {.of = fn,
              .arena = arena,
              .copy = {.arena = arena},
              .flat = {.arena = arena},
              .first = {.arena = arena}};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (!may_fold(&f, op))
            return (TlNestFold){0};
    if (!f.rank || !pays(&f, m))
        return (TlNestFold){0};
    f.fn = tl_nest_copy_function(fn, &f.copy);
    fold_block(&f, f.fn->body);
    TlSbuf fault;
    tl_sbuf_init(&fault, arena);
    TL_ASSERT(tl_verify_fn(f.fn, &fault), "'%s': %s", fn->name, fault.text ? fault.text : "");
    f.asks.fn = f.fn;
    f.asks.row = f.row;
    return f.asks;
}
