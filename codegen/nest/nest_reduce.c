/* Reductions and scans: along the lanes or across them, how many rows together, how many partial
 * results of each. */
#include "codegen/nest/nest.h"

/* Does the combiner compute scalars of each lane, without control flow? */
static bool is_straight(const TlFn *fn, const TlBlock *b)
{
    for (const TlOp *op = b->first; op; op = op->next) {
        if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_YIELD)
            continue;
        if (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->opcode == TL_OP_PTR_ADD ||
            tl_gen_op_is_scalar_only(fn, op))
            return false;
    }
    return true;
}

static TlCombine kind_of(const TlNest *n)
{
    return (TlCombine)tl_attr_int(n->reduce, TL_ATTR_KIND, 0);
}

static TlNest *new_reduction(TlNests *plan, TlNestKind kind, TlOp *at, TlOp *op)
{
    TL_ASSERT(op->nout > 0 && op->nin >= op->nout,
              "%s of %u values gives %u", tl_op_info(op->opcode)->text, op->nin, op->nout);
    TlNest *n = tl_nest_new(plan, kind, at, tl_in(op, 0)->type);
    n->reduce = op;
    n->value = tl_in(op, 0);
    n->axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TlCombine how = kind_of(n);
    bool is_extreme = how == TL_COMBINE_MAX || how == TL_COMBINE_MIN;
    n->on_vectors = how != TL_COMBINE_USER || is_straight(plan->fn, op->regions[0]);
    n->asks_new = is_extreme && n->type.dtype == TL_F32 && !plan->fn->ring &&
                  tl_llvm_has_feature(plan->m.l, "avx512vl");
    return n;
}

static int sources_width(const TlNests *plan, TlNest *n, int limit)
{
    if (!n->on_vectors) {
        n->limit = "a combiner with control flow";
        return 1;
    }
    for (uint32_t i = 0; i < n->reduce->nout; i++)
        limit = tl_nest_width(plan, tl_in(n->reduce, i), limit, false, &n->limit);
    return limit;
}

static void ask_sources(TlNests *plan, TlNest *n)
{
    int lane = n->form.lane;
    if (n->fill)
        tl_nest_ask_value(plan, n, n->fill, lane, true);
    for (uint32_t i = 0; i < n->reduce->nout; i++)
        tl_nest_ask_value(plan, n, tl_in(n->reduce, i), lane, false);
}

bool tl_nest_repeats_rows(const TlOp *broadcast, const TlOp *reduce)
{
    int rows = (int)tl_attr_int(reduce, TL_ATTR_AXIS, 0) - 1;
    const TlType *x = tl_in(broadcast, 0)->type, *y = broadcast->out[0]->type;
    if (reduce->opcode != TL_OP_REDUCE || reduce->nin != 1 || rows < 0 || x->rank != y->rank ||
        y->rank != tl_in(reduce, 0)->type->rank || rows + 2 != y->rank ||
        y->shape[rows] > TL_NEST_ROWS)
        return false;
    for (int d = 0; d < y->rank; d++)
        if (d == rows ? x->shape[d] != 1 : x->shape[d] != y->shape[d])
            return false;
    return true;
}

/* What a nest computes for an element: for each row, once for rows that differ along one axis. */
typedef struct Shared {
    const TlNests *plan;
    TlNest *nest;
    TlMap seen;
    int each, once;
} Shared;

enum { ANY_AXIS = TL_MAX_RANK }; /* it may differ */

/* The axis along which the operands of op differ where its result does along d; -1: none. */
static int axis_of_operands(const TlNests *plan, const TlOp *op, int d)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    TlNestWay way = plan->place[op->out[0]->id].way;
    if (d < 0 || d == ANY_AXIS || flags & F_ELEM || op->opcode == TL_OP_CONVERT ||
        way == TL_NEST_SUMS_QUADS)
        return d;
    if (op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_BROADCAST || way == TL_NEST_RENAMES)
        return tl_nest_axis_under(op, d);
    if (op->opcode != TL_OP_RESHAPE || tl_in(op, 0)->type->rank <= d)
        return ANY_AXIS;
    for (int i = 0; i <= d; i++)
        if (tl_in(op, 0)->type->shape[i] != op->out[0]->type->shape[i])
            return ANY_AXIS;
    return d;
}

static void add_shared(Shared *s, const TlValue *v, int d)
{
    const TlOp *op = v->def;
    uint64_t key = (uint64_t)v->id * (TL_MAX_RANK + 2) + (uint64_t)(d + 1);
    if (v->type->kind != TL_TILE || v->type->rank == 0 || !op ||
        s->plan->place[v->id].kind != TL_NEST_VIRTUAL || tl_map_get(&s->seen, key, NULL))
        return;
    tl_map_put(&s->seen, key, 1);
    bool differs = d == ANY_AXIS || (d >= 0 && v->type->shape[d] > 1);
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (!(flags & F_VIEWLIKE) && op->opcode != TL_OP_CONST)
        *(differs ? &s->each : &s->once) += 1;
    if (op->opcode == TL_OP_LOAD && !differs)
        tl_vec_push(s->plan->arena, &s->nest->shared, tl_map_get_ptr(&s->plan->access, op));
    for (uint32_t i = 0; i < op->nin && op->opcode != TL_OP_LOAD; i++)
        add_shared(s, tl_in(op, i), differs ? axis_of_operands(s->plan, op, d) : -1);
}

/* Is much of what the nest computes the same for all rows? */
static bool shares_much(const TlNests *plan, TlNest *n)
{
    enum { LEAST = 4, PARTS = 4 }; /* values; of which one part is worth it */
    Shared s = {.plan = plan, .nest = n, .seen = {.arena = plan->arena}};
    add_shared(&s, n->value, n->rows_dim);
    return s.once >= LEAST && PARTS * s.once >= s.each;
}

/* Rows are reduced together, so that what does not depend on the row is computed once; of few rows
 * each has several partial results, which take vectors in turn, so that none waits for the one
 * before it. As many rows as leave enough registers for computing their elements, and parts of them
 * that need no more. A row of a few steps has one part, as what is left after the last step is
 * tested; or goes vector by vector, which is once more code, where that is little. */
static void choose_rows(const TlNests *plan, TlNest *n, bool has_identity)
{
    /* values that the nest computes for an element; vectors of a row */
    enum { FEW_VALUES = 6, SOME_VALUES = 16, MANY_VALUES = 40, FEW_STEPS = 8 };
    const TlNestForm *f = &n->form;
    n->rows_dim = n->axis - 1;
    while (n->rows_dim >= 0 && f->extent[n->rows_dim] == 1)
        n->rows_dim--;
    if (n->reduce->nout > 1 || plan->check)
        return;
    uint32_t values = n->rows_dim >= 0 && shares_much(plan, n) ? 1 : n->nvalues;
    int most = values <= FEW_VALUES ? TL_NEST_ROWS : values <= MANY_VALUES ? TL_NEST_ROWS / 2 : 1;
    while (n->rows_dim >= 0 && values <= SOME_VALUES && n->rows < most &&
           2 * n->rows <= f->extent[n->rows_dim])
        n->rows *= 2;
    int64_t extent = f->extent[n->axis], step = 2 * n->width;
    while (has_identity && n->rows * n->parts < most && extent % step == 0 &&
           extent / step >= FEW_STEPS) {
        n->parts *= 2;
        step *= 2;
    }
    n->singles = n->parts > 1 && n->nvalues <= SOME_VALUES;
}

static void split_along(TlNests *plan, TlNest *n)
{
    TlCombine kind = kind_of(n);
    bool ring = plan->fn->ring, has_identity = kind != TL_COMBINE_USER && !ring;
    ask_sources(plan, n);
    choose_rows(plan, n, has_identity);
    tl_nest_split(plan, n, n->form.extent[n->axis], n->width * (n->singles ? 1 : n->parts));
    bool ends = tl_nest_is_split(n);
    n->split = ends ? TL_NEST_SPLIT : n->split; /* one vector, too */
    if (n->split == TL_NEST_TESTED)
        n->parts = 1;
    n->singles &= ends && n->parts > 1;
    n->from_identity = has_identity && (ends || n->parts > 1);
    bool once = tl_combine_again(kind) != TL_AGAIN_MUCH && !ring;
    n->stops = ends && once && !n->fill && !n->differs && n->outside;
}

/* Vectors side by side are reduced together, so that memory is read in longer runs, and that none
 * waits for the one before it; a single one has several partial results, if its axis is long. */
static void split_across(TlNests *plan, TlNest *n)
{
    enum { SOME_VALUES = 16, MANY_VALUES = 40, MOST_PARTS = 4, FEW_STEPS = 4 };
    const TlNestForm *f = &n->form;
    ask_sources(plan, n);
    while (n->reduce->nout == 1 && n->nvalues <= SOME_VALUES && n->rows < TL_NEST_ROWS &&
           f->extent[f->lane] % (2 * n->rows * n->width) == 0)
        n->rows *= 2;
    n->rows_dim = f->lane;
    bool has_identity = kind_of(n) != TL_COMBINE_USER && !plan->fn->ring;
    while (n->reduce->nout == 1 && n->rows == 1 && has_identity && n->nvalues <= MANY_VALUES &&
           n->parts < MOST_PARTS && f->extent[n->axis] % (2 * n->parts) == 0 &&
           f->extent[n->axis] / (2 * n->parts) >= FEW_STEPS)
        n->parts *= 2;
    n->from_identity = n->parts > 1;
    tl_nest_split(plan, n, f->extent[f->lane], n->width * n->rows);
    if (!tl_nest_is_split(n) && n->split != TL_NEST_PLAIN)
        n->rows = 1;
}

void tl_nest_build_reduce(TlNests *plan, TlOp *at, TlOp *reduce, TlValue *fill)
{
    TlNest *n = new_reduction(plan, TL_NEST_REDUCE, at, reduce);
    const TlNestForm *f = &n->form;
    n->fill = fill;
    if (fill)
        n->home = plan->place[fill->id].buffer;
    int limit = fill ? tl_nest_width(plan, fill, TL_NEST_LANES, true, &n->limit) : TL_NEST_LANES;
    n->width = tl_nest_fit_width(f->padded[f->lane], sources_width(plan, n, limit));
    while (n->axis == f->lane && n->width > f->extent[f->lane])
        n->width /= 2;
    n->along = n->axis == f->lane && n->width > 1;
    if (n->along) {
        split_along(plan, n);
        return;
    }
    if (n->width > 1 && n->axis != f->lane && !plan->check) {
        split_across(plan, n);
        return;
    }
    n->tested = n->width;
    n->end = 0;
    n->unsplit = "lanes are not along the axis";
}

/* Along the lanes, a register's worth; one if a reverse scan would begin in the padding. */
static int scan_width(const TlNests *plan, TlNest *n)
{
    const TlNestForm *f = &n->form;
    int limit = TL_NEST_LANES;
    if (n->axis != f->lane)
        return tl_nest_fit_width(f->padded[f->lane], sources_width(plan, n, limit));
    if (tl_attr_flag(n->reduce, TL_ATTR_REVERSE) && f->padded[f->lane] != f->extent[f->lane]) {
        n->limit = "it begins in the padding";
        return 1;
    }
    for (uint32_t i = 0; i < n->reduce->nout; i++) {
        int lanes =
            plan->m.vector_bytes / (int)tl_gen_elem_bytes(tl_in(n->reduce, i)->type);
        limit = lanes < limit ? lanes : limit;
    }
    n->limit = "a register";
    return tl_nest_fit_width(f->padded[f->lane], sources_width(plan, n, limit));
}

void tl_nest_build_scan(TlNests *plan, TlOp *scan)
{
    TlNest *n = new_reduction(plan, TL_NEST_SCAN, scan, scan);
    n->width = n->tested = scan_width(plan, n);
    n->along = n->axis == n->form.lane && n->width > 1;
    if (!n->along) {
        n->end = 0;
        return;
    }
    int width = n->width;
    ask_sources(plan, n);
    tl_nest_split(plan, n, n->form.extent[n->axis], width);
    n->width = n->tested = width; /* what is tested has as many lanes */
    if (n->split == TL_NEST_ONE || tl_attr_flag(scan, TL_ATTR_REVERSE))
        n->split = TL_NEST_TESTED;
}
