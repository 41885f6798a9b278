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
 * Where an array says how far apart its rows are, x[N : sx, W], these may have gaps between them.
 * Such launches have code of their own: the view's attribute `row` says that its only axis is rows
 * of 3, whose distance is the view's stride, and each part of a row is loaded or stored by itself
 * (cpu_rows.c). What is computed has full vectors all the same.
 *
 * Neighbouring columns, and those at a border, are elements so many further on, but for some of the
 * columns; what is said of each column is put together from numbers.
 *
 *     load x, j, -1, 16 x 3               =>   column < 1 ? 0 : load %flat, 3 j - 1, 48
 *     load x, j, clamp(iota - 1, 0, 2)    =>   column < 1 ? load %flat, 3 j : load %flat, 3 j - 1
 *     broadcast(load w, 0, 3) : 16 x 3    =>   column < 1 ? w[0] : column < 2 ? w[1] : w[2]
 *
 *   1. check    tiles that end with the same two axes as what is stored; loads and stores take
 *               whole rows of arrays without gaps, or may; what else has these works element by
 *               element, carries them, or repeats a row
 *   2. columns  which column a load takes for each one
 *   3. price    vectors that become fewer, with more for each; of rows apart, also the parts
 *   4. fold     the function once more, with types of one axis less */
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_ROW = 8,    /* columns of which each may be something else */
    MOST_LOADS = 3,  /* that one load becomes */
    MOST_DEPTH = 12, /* of ops that are walked */
    OUTSIDE = MOST_ROW,
    SELECT_WORK = 2 /* of elements by their columns */
};

typedef struct Fold {
    const TlFn *of;
    TlFn *fn;
    TlArena *arena;
    int rank;
    int32_t rows, row; /* the last two extents of the tiles */
    int64_t work;      /* ops of those */
    int64_t more;      /* that they become in addition */
    bool may_lie_apart;                       /* rows of arrays that say how far these are */
    int64_t accesses, accesses_apart, weight; /* loads and stores; what ops cost */
    TlNestFold asks;
    TlMap copy;        /* value to the copy's */
    TlOp *start;       /* the copy's first op */
    TlMap flat;        /* a parameter of the copy to its view with an axis less */
    TlMap places;      /* by op and type: rows and columns of elements */
    TlMap before;      /* by column: is an element's less? */
    TlMap zeros;       /* by type */
    TlMap spread;      /* by op and value: what is computed for all elements */
    TlMap first;       /* the number of a row to that of its first element */
} Fold;

/* ---- 1. check ---- */

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

/* Has it the two axes? */
static bool is_whole(const Fold *f, const TlType *t)
{
    return t->kind == TL_TILE && t->rank >= 2 && t->rank == f->rank &&
           t->shape[t->rank - 2] == f->rows && t->shape[t->rank - 1] == f->row;
}

static bool can_fold(const TlType *t)
{
    return !t->ptr && tl_dtype_bits(t->dtype) >= 8;
}

/* The axes of the first tile that is stored. */
static bool find_axes(Fold *f)
{
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlValue *v = op->opcode == TL_OP_STORE ? tl_op_place(op).value : NULL;
        if (!v || v->type->rank < 2)
            continue;
        f->rank = v->type->rank;
        f->rows = v->type->shape[f->rank - 2];
        f->row = v->type->shape[f->rank - 1];
        return true;
    }
    return false;
}

static void ask_view(Fold *f, const TlValue *view)
{
    if (f->fn) /* they are known */
        return;
    for (uint32_t i = 0; i < f->asks.views.len; i++)
        if (f->asks.views.data[i] == view)
            return;
    tl_vec_push(f->arena, &f->asks.views, view);
}

static const TlParam *param_of(const Fold *f, const TlValue *base)
{
    return base->def || base->block->parent || !f->of->info
               ? NULL
               : &f->of->info->params.data[base->index];
}

/* Are a parameter's rows as far apart as it says, and taken so? */
static bool lies_apart(const Fold *f, const TlValue *base)
{
    const TlParam *p = f->may_lie_apart ? param_of(f, base) : NULL;
    return p && p->rank >= 2 && p->stride[p->rank - 2].kind != TILE_DIM_DENSE;
}

/* Is a parameter row-major, its rows of the tiles' length, without gaps or apart where that is
 * taken? If not, a launch may say so. */
static bool has_whole_rows(Fold *f, const TlValue *base)
{
    const TlParam *p = param_of(f, base);
    if (!p || p->rank < 2)
        return false;
    bool may = true, is = true;
    for (int d = 0; d < p->rank; d++) {
        const TlDim *stride = &p->stride[d];
        bool dense = stride->kind == TILE_DIM_DENSE, last = d + 1 == p->rank,
             one = last && stride->kind == TILE_DIM_CONST && stride->value == 1;
        may &= dense || one || !last; /* rows of elements that lie apart are no vectors */
        is &= dense || one || f->may_lie_apart;
    }
    const TlDim *row = &p->extent[p->rank - 1];
    const TlDim *from_row = &p->stride[p->rank - 2];
    may &= row->kind != TILE_DIM_CONST || row->value == f->row;
    may &= f->may_lie_apart || from_row->kind != TILE_DIM_CONST || from_row->value == f->row;
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

/* ---- 2. columns ---- */

static bool find_number(Fold *f, const TlValue *v, int64_t column, int64_t *out, int depth);

/* Of an op of two numbers. */
static bool find_result(Fold *f, const TlOp *op, int64_t column, int64_t *out, int depth)
{
    int64_t x, y;
    TlOpcode o = op->opcode;
    if ((o != TL_OP_ADD && o != TL_OP_SUB && o != TL_OP_MIN && o != TL_OP_MAX) ||
        !find_number(f, tl_in(op, 0), column, &x, depth + 1) ||
        !find_number(f, tl_in(op, 1), column, &y, depth + 1))
        return false;
    *out = o == TL_OP_ADD ? x + y : o == TL_OP_SUB ? x - y : (x < y) == (o == TL_OP_MIN) ? x : y;
    return true;
}

/* The number that an index is, or an index tile at a column; false: it is not known. */
static bool find_number(Fold *f, const TlValue *v, int64_t column, int64_t *out, int depth)
{
    enum { FAR = 1 << 16 };
    TlWideInt n;
    const TlOp *op = v->def;
    *out = 0;
    if (tl_const_int_value(v, &n)) {
        *out = (int64_t)n;
        return n > -FAR && n < FAR;
    }
    if (!op || depth > MOST_DEPTH || !tl_is_int(v->type->dtype) || !tl_is_signed(v->type->dtype) ||
        tl_dtype_bytes(v->type->dtype) < 4)
        return false;
    if (op->opcode == TL_OP_IOTA) {
        *out = column;
        return true;
    }
    if (op->opcode == TL_OP_EXTENT) {
        const TlValue *view = tl_in(op, 0);
        *out = f->row;
        return tl_attr_int(op, TL_ATTR_AXIS, 0) == view->type->rank - 1 && has_whole_rows(f, view);
    }
    if (op->opcode == TL_OP_CAST ||
        (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0))
        return find_number(f, tl_in(op, 0), column, out, depth + 1);
    uint32_t alone = 0;
    if (v->type->rank == 0 && is_zero(v, &alone)) {
        f->asks.alone |= alone;
        return true;
    }
    return find_result(f, op, column, out, depth);
}

/* Of each column of a load or store, how many further on the one that it takes is; OUTSIDE: there
 * is none. False: that is not known. */
static bool find_shifts(Fold *f, const TlPlace *p, int64_t *shift)
{
    const TlAxis *axis = &p->axes[p->naxes - 1];
    const TlValue *v = p->index[p->naxes - 1].value;
    bool slice = axis->kind == TL_AXIS_SLICE && axis->step == 1;
    if (!slice && (axis->kind != TL_AXIS_TILE || v->type->rank != 1))
        return false;
    for (int c = 0; c < f->row; c++) {
        int64_t n;
        if (!find_number(f, v, c, &n, 0))
            return false;
        n += slice ? c : 0;
        shift[c] = n < 0 || n >= f->row ? OUTSIDE : n - c;
        if (f->row > MOST_ROW && shift[c])
            return false;
    }
    return true;
}

/* Does an index tile count rows, from numbers that are the same for all? Then its numbers are as
 * well those of elements, by rows. */
static bool counts_rows(const TlValue *v, int depth)
{
    const TlOp *op = v->def;
    if (v->type->rank == 0)
        return true;
    if (!op || v->type->rank != 1 || depth > MOST_DEPTH || !tl_is_int(v->type->dtype))
        return false;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    bool is = tl_op_info(op->opcode)->flags & F_ELEM ||
              (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0);
    for (uint32_t i = 0; is && i < op->nin; i++)
        is = counts_rows(tl_in(op, i), depth + 1);
    return is;
}

/* Loads that one becomes, and how often it goes on from one to another. */
static int64_t count_shifts(const Fold *f, const int64_t *shift, int64_t *out_ends)
{
    int64_t n = 0, ends = 0;
    for (int c = 0; c < f->row; c++) {
        bool seen = shift[c] == OUTSIDE;
        for (int k = 0; !seen && k < c; k++)
            seen = shift[k] == shift[c];
        n += !seen;
        ends += c && shift[c] != shift[c - 1];
    }
    *out_ends = ends;
    return n;
}

static bool takes_rows(Fold *f, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    bool loads = op->opcode == TL_OP_LOAD;
    int64_t shift[TL_NEST_LANES], ends;
    if (!p.axes || p.pointwise || p.naxes < 2 || f->row > TL_NEST_LANES ||
        !has_whole_rows(f, p.base) || !find_shifts(f, &p, shift))
        return false;
    const TlAxis *rows = &p.axes[p.naxes - 2];
    bool slice = rows->kind == TL_AXIS_SLICE && rows->step == 1;
    if (!slice &&
        (rows->kind != TL_AXIS_TILE || !loads || !counts_rows(p.index[p.naxes - 2].value, 0)))
        return false;
    for (uint32_t i = 0; i + 2 < p.naxes; i++)
        if (p.axes[i].kind == TL_AXIS_TILE && p.index[i].value->type->rank != 1)
            return false;
    int64_t n = count_shifts(f, shift, &ends);
    if (lies_apart(f, p.base)) {
        f->accesses_apart++;
        if (!slice || n > 1 || ends || shift[0])
            return false;
    }
    f->more += (n > 1 ? n - 1 : 0) + SELECT_WORK * ends;
    return n <= MOST_LOADS && (loads || (n == 1 && !ends && shift[0] == 0));
}

/* Is a tile of one row, or a part of one, that it may be computed column by column? *work: of it,
 * element by element. */
static bool is_row(Fold *f, const TlValue *v, int64_t *work, int depth)
{
    const TlOp *op = v->def;
    if (v->type->rank == 0)
        return true;
    for (int d = 0; d + 1 < v->type->rank; d++)
        if (v->type->shape[d] != 1)
            return false;
    if (!op || depth > MOST_DEPTH || f->row > MOST_ROW || !can_fold(v->type) ||
        (v->type->shape[v->type->rank - 1] != f->row && v->type->shape[v->type->rank - 1] != 1))
        return false;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA)
        return true;
    if (op->opcode == TL_OP_LOAD) {
        TlPlace p = tl_op_place(op);
        *work += SELECT_WORK * (f->row - 1);
        return p.axes && !p.pointwise && !p.mask && !p.other && p.naxes == 1 &&
               p.axes[0].kind == TL_AXIS_SLICE;
    }
    bool each = tl_op_info(op->opcode)->flags & F_ELEM;
    *work += each ? tl_elem_work(op->opcode)->cpu : 0;
    bool is = each || op->opcode == TL_OP_BROADCAST ||
              (op->opcode == TL_OP_EXPAND && tl_attr_int(op, TL_ATTR_AXIS, 0) < v->type->rank - 1);
    for (uint32_t i = 0; is && i < op->nin; i++)
        is = is_row(f, tl_in(op, i), work, depth + 1);
    return is;
}

static bool repeats_row(Fold *f, const TlOp *op)
{
    return op->opcode == TL_OP_BROADCAST && is_row(f, tl_in(op, 0), &f->more, 0);
}

static bool may_fold(Fold *f, const TlOp *op)
{
    bool whole = false, others = false;
    for (uint32_t i = 0; i < op->nout; i++) {
        bool is = is_whole(f, op->out[i]->type);
        whole |= is;
        others |= is_tile(op->out[i]) && (!is || !can_fold(op->out[i]->type));
    }
    for (uint32_t i = 0; i < op->nin; i++) {
        bool is = is_whole(f, tl_in(op, i)->type);
        whole |= is;
        others |= is_tile(tl_in(op, i)) && (!is || !can_fold(tl_in(op, i)->type));
    }
    if (!whole)
        return true;
    f->work += op->nregions ? 0 : 1;
    bool is_access = op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE,
         is_element = tl_op_info(op->opcode)->flags & F_ELEM;
    f->accesses += is_access;
    f->weight += is_element ? tl_elem_work(op->opcode)->cpu : 0;
    if (is_access)
        return takes_rows(f, op); /* index tiles are others */
    if (op->opcode == TL_OP_BROADCAST)
        return tl_in(op, 0)->type->rank == 0 || repeats_row(f, op);
    bool flows = op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE || op->opcode == TL_OP_IF ||
                 op->opcode == TL_OP_YIELD || op->opcode == TL_OP_CONDITION,
         each = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONST;
    return flows || (each && !others);
}

/* ---- 3. price ---- */

/* Parts of rows, of all of a tile's, each of which is loaded or stored by itself where rows lie
 * apart: a piece has elements of several. */
static int64_t count_parts(const Fold *f, int64_t bytes)
{
    int64_t piece = TL_NEST_PIECE_BYTES / bytes, all = (int64_t)f->rows * f->row, parts = 0;
    for (int64_t i = 0; i < all; i++)
        parts += i % piece == 0 || i % f->row == 0;
    return parts;
}

/* Is what is loaded from rows that may lie apart stored to them? A row that begins in what was
 * stored under a mask then waits for that. */
static bool waits(const Fold *f)
{
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL))
        for (const TlOp *to = f->of->body->first; to; to = tl_walk_next(to, NULL))
            if (op->opcode == TL_OP_LOAD && to->opcode == TL_OP_STORE &&
                tl_op_place(op).base == tl_op_place(to).base)
                return (f->row & (f->row - 1)) != 0;
    return false;
}

/* The same where rows may lie apart, in quarters of what a part takes. */
static bool pays_apart(const Fold *f, int64_t bytes, int64_t lanes)
{
    enum { PART = 4, ROW = 7, WAIT = 64 };
    int64_t rows = f->rows * ((f->row + lanes - 1) / lanes),
            vectors = ((int64_t)f->rows * f->row + lanes - 1) / lanes,
            dense = f->accesses - f->accesses_apart,
            each = ROW * f->accesses + PART * f->weight + (waits(f) ? WAIT : 0);
    return f->row > 1 && f->accesses_apart &&
           PART * (f->accesses_apart * count_parts(f, bytes) +
                   vectors * (dense + f->weight + f->more)) <
               rows * each;
}

static bool pays(const Fold *f, const TlNestMachine *m)
{
    int64_t bytes = 1;
    for (const TlOp *op = f->of->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; i < op->nout; i++)
            if (is_whole(f, op->out[i]->type) &&
                (int64_t)tl_gen_elem_bytes(op->out[i]->type) > bytes)
                bytes = (int64_t)tl_gen_elem_bytes(op->out[i]->type);
    int64_t lanes = m->vector_bytes / bytes, all = (int64_t)f->rows * f->row;
    if (f->may_lie_apart)
        return pays_apart(f, bytes, lanes);
    return (all + lanes - 1) / lanes * (f->work + f->more) <
           f->rows * ((f->row + lanes - 1) / lanes) * f->work;
}

/* ---- 4. fold ---- */

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
    bool apart = lies_apart(f, base);
    in[2 * n] =
        apart ? number_along(&b, TL_OP_STRIDE, base, n - 1) : tl_const_int(&b, in[n]->type, 1);
    TlAttr row = {.id = TL_ATTR_ROW, .u.i = f->row};
    TlValue *made =
        tl_op_new(&b, TL_OP_VIEW, (uint32_t)(1 + 2 * n), in, 1, &view, 0, apart, &row)->out[0];
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
    if (is_whole(f, v->type))
        v->type = folded_type(f, v->type);
}

/* Of all elements of the rows. */
static const TlType *row_type(const Fold *f, TlDtype dtype)
{
    int32_t n = f->rows * f->row;
    TlCtx *c = f->fn->module->ctx;
    return tl_type_with_shape(c, tl_type_scalar(c, dtype), 1, &n);
}

/* Before all else. */
static TlBuilder at_start(const Fold *f)
{
    return tl_builder_before(f->start);
}

/* Of each element of the rows, the row (TL_OP_DIV), or the column (TL_OP_REM). */
static TlValue *place(Fold *f, TlOpcode what, TlDtype dtype)
{
    uint64_t key = (uint64_t)what * TL_DTYPE_COUNT + dtype, known;
    if (tl_map_get(&f->places, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlBuilder b = at_start(f);
    const TlType *type = row_type(f, dtype);
    TlValue *v = tl_op_new(&b, TL_OP_IOTA, 0, NULL, 1, &type, 0, 0, NULL)->out[0];
    v = tl_binary(&b, what, v, tl_const_int(&b, type, f->row));
    tl_map_put(&f->places, key, (uint64_t)(uintptr_t)v);
    return v;
}

/* Is an element's column less than this one? */
static TlValue *is_before(Fold *f, int column)
{
    uint64_t known;
    if (tl_map_get(&f->before, (uint64_t)column, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *v = place(f, TL_OP_REM, TL_I32);
    TlBuilder b = at_start(f);
    v = tl_binary(&b, TL_OP_LT, v, tl_const_int(&b, v->type, column));
    tl_map_put(&f->before, (uint64_t)column, (uint64_t)(uintptr_t)v);
    return v;
}

static TlValue *zeros(Fold *f, const TlType *type)
{
    TlValue *known = tl_map_get_ptr(&f->zeros, type);
    if (known)
        return known;
    TlBuilder b = at_start(f);
    TlValue *made = tl_const_bits(&b, type, 0);
    tl_map_put_ptr(&f->zeros, type, made);
    return made;
}

/* Of each column that value. */
static TlValue *by_columns(Fold *f, TlBuilder *b, TlValue *const *of)
{
    TlValue *v = of[f->row - 1];
    const TlType *t = v->type;
    for (int c = f->row - 1; c > 0; c--)
        if (of[c - 1] != of[c]) {
            TlValue *is = tl_broadcast(b, is_before(f, c), t->rank, t->shape);
            v = tl_select(b, is, of[c - 1], v);
        }
    return v;
}

static TlValue *spread(Fold *f, TlValue *v, TlOpcode what);

/* A load of a row, column by column. */
static TlValue *spread_load(Fold *f, TlBuilder *b, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    const TlValue *v = op->out[0];
    const TlType *scalar = tl_type_scalar(f->fn->module->ctx, v->type->dtype);
    int32_t n = f->rows * f->row;
    TlValue *of[MOST_ROW], *start = p.index[0].value;
    for (int c = 0; c < f->row; c++) {
        TlAxis *axis = TL_NEW(&f->fn->module->arena, TlAxis);
        *axis = (TlAxis){.kind = TL_AXIS_SCALAR};
        int64_t by = v->type->shape[0] == 1 ? 0 : (int64_t)c * p.axes[0].step;
        TlValue *at = by ? tl_binary(b, TL_OP_ADD, start, tl_const_int(b, start->type, by)) : start,
                *in[2] = {p.base, at};
        TlOp *load = tl_op_like(b, op, 2, in, 1, &scalar);
        tl_attr_set(f->fn, load, (TlAttr){.id = TL_ATTR_AXES, .n = 1, .u.axes = axis});
        of[c] = tl_broadcast(b, load->out[0], 1, &n);
    }
    return by_columns(f, b, of);
}

static TlValue *make_spread(Fold *f, TlValue *v, TlOpcode what)
{
    TlBuilder b = tl_builder_after(v);
    const TlOp *op = v->def;
    const TlType *type = row_type(f, v->type->dtype);
    if (v->type->rank == 0)
        return tl_broadcast(&b, v, 1, type->shape);
    if (op->opcode == TL_OP_CONST)
        return tl_const_bits(&b, type, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    if (op->opcode == TL_OP_IOTA)
        return v->type->shape[0] == 1 ? tl_const_int(&b, type, 0) : place(f, what, type->dtype);
    if (op->opcode == TL_OP_LOAD)
        return spread_load(f, &b, op);
    if (op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_EXPAND)
        return spread(f, tl_in(op, 0), what);
    TlValue **in = TL_NEW_ARRAY(f->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = tl_in(op, i)->type->rank ? spread(f, tl_in(op, i), what) : tl_in(op, i);
    return tl_op_like(&b, op, op->nin, in, 1, &type)->out[0];
}

/* What v is at each element's row (TL_OP_DIV), or column (TL_OP_REM). */
static TlValue *spread(Fold *f, TlValue *v, TlOpcode what)
{
    uint64_t key = (uint64_t)v->id * TL_OP_COUNT + what, known;
    if (tl_map_get(&f->spread, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *made = make_spread(f, v, what);
    tl_map_put(&f->spread, key, (uint64_t)(uintptr_t)made);
    return made;
}

/* The element with which row v begins, computed where v is: accesses of the same rows are seen to
 * be so. Of an index tile: the elements of those rows. */
static TlValue *first_of_row(Fold *f, TlValue *v)
{
    TlValue *known = tl_map_get_ptr(&f->first, v);
    if (known)
        return known;
    TlValue *rows = v->type->rank ? spread(f, v, TL_OP_DIV) : v,
            *columns = v->type->rank ? place(f, TL_OP_REM, TL_I64) : NULL;
    TlBuilder b = tl_builder_after(rows);
    TlValue *made = times_row(f, &b, rows);
    if (columns)
        made = tl_binary(&b, TL_OP_ADD, made, columns);
    tl_map_put_ptr(&f->first, v, made);
    return made;
}

/* The load or store once more, `shift` elements further on. */
static TlOp *shifted(Fold *f, TlBuilder *b, TlOp *op, int64_t shift)
{
    TlPlace p = tl_op_place(op);
    uint32_t last = p.naxes - 1, row_at = (uint32_t)(&p.index[last] - op->in), n = 0;
    TlValue **in = TL_NEW_ARRAY(f->arena, TlValue *, op->nin), *first;
    first = first_of_row(f, tl_in(op, row_at - 1));
    if (shift)
        first = tl_binary(b, TL_OP_ADD, first, tl_const_int(b, first->type, shift));
    for (uint32_t i = 0; i < op->nin; i++)
        if (i != row_at)
            in[n++] = i == 0            ? flat_view(f, p.base, (int)p.naxes)
                      : i + 1 == row_at ? first
                                        : tl_in(op, i);
    const TlType *type = op->nout ? folded_type(f, op->out[0]->type) : NULL;
    TlOp *made = tl_op_like(b, op, n, in, op->nout, &type);
    TlAxis *axes = TL_NEW_ARRAY(&f->fn->module->arena, TlAxis, last);
    memcpy(axes, p.axes, sizeof *axes * last);
    axes[last - 1].width *= f->row;
    tl_attr_set(f->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = last, .u.axes = axes});
    if (shift) /* to a column of another row, which may be outside */
        tl_attr_remove(made, TL_ATTR_UNCHECKED);
    return made;
}

static TlValue *outside(Fold *f, TlBuilder *b, const TlOp *load)
{
    TlPlace p = tl_op_place(load);
    const TlType *t = folded_type(f, load->out[0]->type);
    return p.other ? tl_broadcast(b, p.other, t->rank, t->shape) : zeros(f, t);
}

/* Loads in the place of op. */
static TlValue *fold_load(Fold *f, TlBuilder *b, TlOp *op)
{
    TlPlace p = tl_op_place(op);
    int64_t shift[TL_NEST_LANES];
    TlValue *of[TL_NEST_LANES];
    bool known = find_shifts(f, &p, shift);
    TL_ASSERT(known, "a load whose columns are not known");
    for (int c = 0; c < f->row; c++) {
        int k = 0;
        while (shift[k] != shift[c])
            k++;
        of[c] = k < c                 ? of[k]
                : shift[c] == OUTSIDE ? outside(f, b, op)
                                      : shifted(f, b, op, shift[c])->out[0];
    }
    return by_columns(f, b, of);
}

/* Its value may be folded already. */
static bool stores_rows(const Fold *f, const TlOp *store)
{
    TlPlace p = tl_op_place(store);
    return p.rank == f->rank && p.shape[p.rank - 2] == f->rows && p.shape[p.rank - 1] == f->row;
}

/* In the place of op, which goes; false: it stays. */
static bool fold_op(Fold *f, TlOp *op)
{
    TlBuilder b = tl_builder_before(op);
    b.loc = op->loc;
    const TlValue *out = op->nout ? op->out[0] : NULL;
    bool is = out && is_whole(f, out->type), loads = is && op->opcode == TL_OP_LOAD,
         repeats = is && op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank;
    if (op->opcode == TL_OP_STORE && stores_rows(f, op)) {
        shifted(f, &b, op, 0);
    } else if (loads || repeats) {
        const TlType *t = folded_type(f, out->type);
        TlValue *v = loads ? fold_load(f, &b, op) : spread(f, tl_in(op, 0), TL_OP_REM);
        tl_replace_uses(op->out[0], tl_broadcast(&b, v, t->rank, t->shape));
    } else {
        return false;
    }
    tl_op_erase(op);
    return true;
}

static void fold_block(Fold *f, TlBlock *block)
{
    for (uint32_t i = 0; i < block->nargs; i++)
        fold_value(f, block->args[i]);
    TlOp *next;
    for (TlOp *op = block->first; op; op = next) {
        next = op->next;
        if (fold_op(f, op))
            continue;
        for (uint32_t i = 0; i < op->nout; i++)
            fold_value(f, op->out[i]);
        for (uint32_t r = 0; r < op->nregions; r++)
            fold_block(f, op->regions[r]);
    }
}

void tl_nest_drop_unused(TlFn *fn, TlArena *arena)
{
    TL_VEC(TlOp *) all = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        tl_vec_push(arena, &all, op);
    for (uint32_t i = all.len; i-- > 0;) {
        TlOp *op = all.data[i];
        bool used = !op->nout || op->nregions ||
                    !(tl_op_info(op->opcode)->flags & F_PURE || op->opcode == TL_OP_LOAD);
        for (uint32_t k = 0; k < op->nout; k++)
            used |= op->out[k]->uses != NULL;
        if (!used)
            tl_op_erase(op);
    }
}

TlNestFold tl_nest_fold(const TlFn *fn, const TlNestMachine *m, bool apart, TlArena *arena)
{
    Fold f = {.of = fn,
              .arena = arena,
              .may_lie_apart = apart,
              .copy = {.arena = arena},
              .flat = {.arena = arena},
              .places = {.arena = arena},
              .before = {.arena = arena},
              .zeros = {.arena = arena},
              .spread = {.arena = arena},
              .first = {.arena = arena}};
    if (!find_axes(&f))
        return (TlNestFold){0};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (!may_fold(&f, op))
            return (TlNestFold){0};
    if (!pays(&f, m))
        return (TlNestFold){0};
    f.fn = tl_nest_copy_function(fn, &f.copy);
    f.start = f.fn->body->first;
    fold_block(&f, f.fn->body);
    tl_nest_drop_unused(f.fn, arena); /* what only rows were computed for that are spread */
    TlSbuf fault;
    tl_sbuf_init(&fault, arena);
    TL_ASSERT(tl_verify_fn(f.fn, &fault), "'%s': %s", fn->name, fault.text ? fault.text : "");
    f.asks.fn = f.fn;
    f.asks.apart = apart;
    f.asks.row = f.row;
    f.asks.work = f.work;
    f.asks.more = f.more;
    return f.asks;
}
