/* The loops of a nest, as its plan has them: what of it is inside the arrays, and a body at each
 * position. */
#include "codegen/cpu/cpu_access.h"

/* ---- what is inside ---- */

static void narrow(TlCpuGen *g, LLVMValueRef *end, LLVMValueRef by)
{
    *end = *end ? tl_cpu_smaller(g, *end, by) : by;
}

/* A position of an access, as a lane of the nest, rounded up or down. */
static LLVMValueRef scaled(TlCpuGen *g, LLVMValueRef x, int times, bool up)
{
    if (times == 1)
        return x;
    LLVMValueRef by = tl_gen_int(&g->gen, times < 0 ? -times : times);
    if (times < 0)
        return LLVMBuildMul(g->b, x, by, "");
    if (up)
        x = LLVMBuildAdd(g->b, x, tl_gen_int(&g->gen, times - 1), "");
    return LLVMBuildUDiv(g->b, x, by, "");
}

/* Narrows bounds to what is inside of one access. */
static void narrow_by(TlCpuGen *g, const TlNest *n, const TlNestAsk *ask, TlCpuBounds *b)
{
    const TlCpuAccess *a = tl_cpu_access_of(g, ask->access->op);
    TL_ASSERT(a, "%s stands in a nest before it is lowered",
              tl_op_info(ask->access->op->opcode)->text);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), all = tl_gen_int(&g->gen, INT32_MAX);
    bool rows = n->zero_rows && ask->lane >= 0 && tl_nest_has_zeros(ask->access);
    if (a->ok && !rows)
        narrow(g, &b->end, LLVMBuildSelect(g->b, a->ok, all, zero, ""));
    for (uint32_t i = 0; i < ask->access->place.naxes; i++) {
        const TlAxis *axis = &ask->access->place.axes[i];
        bool clamped = axis->kind == TL_AXIS_TILE && ask->access->axis[i].affine.is;
        if (axis->kind != TL_AXIS_SLICE && !clamped)
            continue;
        if (clamped && ask->access->axis[i].dim != ask->lane && ask->lane != TL_NEST_ANY_LANES) {
            narrow(g, &b->end, LLVMBuildSelect(g->b, a->bounded[i], all, zero, ""));
            continue;
        }
        if (rows && ask->access->axis[i].dim != ask->lane)
            continue;
        if (n->by_row && tl_nest_asks_row(n, ask, i)) {
            int dim = ask->access->axis[i].dim;
            b->low[dim] = b->low[dim] ? tl_cpu_larger(g, b->low[dim], a->lo[i]) : a->lo[i];
            narrow(g, &b->high[dim], a->hi[i]);
            continue;
        }
        bool boxed = tl_nest_in_box(n, ask, i);
        LLVMValueRef width = tl_gen_int(&g->gen, tl_nest_axis_width(ask->access, i)),
                     to = boxed ? width : a->hi[i],
                     begins = LLVMBuildICmp(g->b, LLVMIntEQ, boxed ? zero : a->lo[i], zero, "");
        if (ask->access->axis[i].dim == ask->lane) {
            LLVMValueRef out = scaled(g, to, ask->times, true);
            to = scaled(g, to, ask->times, false);
            if (!clamped)
                b->outside = b->outside ? tl_cpu_larger(g, b->outside, out) : out;
        } else {
            begins = LLVMBuildAnd(g->b, begins, LLVMBuildICmp(g->b, LLVMIntEQ, to, width, ""), "");
            to = all;
        }
        bool later = n->begins && ask->access->loads && ask->access->axis[i].dim == ask->lane;
        LLVMValueRef lo = later ? scaled(g, a->lo[i], ask->times, true) : NULL;
        if (later)
            b->begin = b->begin ? tl_cpu_larger(g, b->begin, lo) : lo;
        narrow(g, &b->end, later ? to : LLVMBuildSelect(g->b, begins, to, zero, ""));
    }
}

static LLVMValueRef as_i64(TlCpuGen *g, const TlValue *v)
{
    LLVMValueRef x = tl_gen_scalar(&g->gen, v);
    return LLVMBuildIntCast2(g->b, x, g->i64, tl_is_signed(v->type->dtype), "");
}

/* The rows that are used of the loop's result, and more for each trip that is left. */
static void reach_rows(TlCpuGen *g, const TlNest *n, TlCpuBounds *b)
{
    const TlNestReach *r = n->reach;
    LLVMValueRef extent = tl_gen_int(&g->gen, n->form.extent[r->dim]),
                 i = as_i64(g, r->loop->regions[0]->args[0]),
                 next = LLVMBuildAdd(g->b, i, tl_gen_int(&g->gen, 1), ""),
                 left = LLVMBuildSub(g->b, as_i64(g, tl_in(r->loop, 1)), next, "");
    /* As many as there are rows are enough, and their product is no great number. */
    LLVMValueRef fewer = LLVMBuildICmp(g->b, LLVMIntULT, left, extent, "");
    left = LLVMBuildSelect(g->b, fewer, left, extent, "");
    LLVMValueRef more = LLVMBuildMul(g->b, left, tl_gen_int(&g->gen, r->more), "");
    b->from[r->dim] = tl_gen_int(&g->gen, r->from);
    b->to[r->dim] =
        tl_cpu_smaller(g, extent, LLVMBuildAdd(g->b, more, tl_gen_int(&g->gen, r->to), ""));
}

/* Elements that vectors of a nest go over together, so that it is known where in them rows begin
 * that may lie apart; 0: there are no such rows, or they are fewer. */
static int64_t turn_of(const TlCpuGen *g, const TlNest *n)
{
    bool may = n->lane >= 0 && n->width > 1 && !n->overlaps && !n->begins;
    int64_t turn = may ? tl_nest_turn(g->plan, n->width) : 0;
    return turn <= n->form.extent[n->lane] ? turn : 0;
}

/* The one row, if there is such a row. */
static void choose_row(TlCpuGen *g, const TlNest *n, TlCpuBounds *b)
{
    LLVMValueRef row = as_i64(g, n->chosen_row), zero = tl_gen_int(&g->gen, 0),
                 is = LLVMBuildICmp(g->b, LLVMIntULT, row, tl_gen_int(&g->gen, n->form.extent[0]),
                                    ""),
                 next = LLVMBuildAdd(g->b, row, tl_gen_int(&g->gen, 1), "");
    if (n->has_row) {
        b->from[0] = row;
        b->to[0] = LLVMBuildNSWAdd(g->b, row, tl_gen_int(&g->gen, 1), "");
        return;
    }
    b->from[0] = LLVMBuildSelect(g->b, is, row, zero, "");
    b->to[0] = LLVMBuildSelect(g->b, is, next, zero, "");
}

static void choose_rows(TlCpuGen *g, const TlNest *n, TlCpuBounds *b)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), all = tl_gen_int(&g->gen, n->form.extent[0]);
    b->to[0] = tl_cpu_smaller(g, tl_cpu_larger(g, as_i64(g, n->chosen[1]), zero), all);
    b->from[0] = n->chosen[0] ? tl_cpu_larger(g, as_i64(g, n->chosen[0]), zero) : zero;
    b->from[0] = tl_cpu_smaller(g, b->from[0], b->to[0]);
}

TlCpuBounds tl_cpu_bounds(TlCpuGen *g, const TlNest *n, int64_t step)
{
    TlCpuBounds b = {NULL};
    const TlCpuAccess *a = n->store ? tl_cpu_access_of(g, n->boxed ? n->boxed->op : n->op) : NULL;
    if (n->kind == TL_NEST_FILL && n->boxed) /* the store comes later; its place is known */
        a = tl_cpu_prepare_access(g, n->boxed->op);
    for (uint32_t i = 0; a && n->boxed_axes >> i; i++)
        if (n->boxed_axes >> i & 1) {
            b.from[a->a->axis[i].dim] = a->lo[i];
            b.to[a->a->axis[i].dim] = a->hi[i];
        }
    if (n->reach)
        reach_rows(g, n, &b);
    if (n->chosen[1])
        choose_rows(g, n, &b);
    if (n->chosen_row)
        choose_row(g, n, &b);
    if (n->keep) {
        b.from[0] = g->kept;
        b.to[0] = tl_gen_int(&g->gen, n->form.extent[0]);
    }
    if (n->last_axis >= 0)
        b.last = a->hi[n->last_axis];
    if (!tl_nest_is_split(n))
        return b;
    for (uint32_t i = 0; i < n->asks.len; i++)
        narrow_by(g, n, &n->asks.data[i], &b);
    LLVMValueRef extent = tl_gen_int(&g->gen, n->form.extent[n->lane]);
    narrow(g, &b.end, extent);
    if (n->overlaps)
        b.all = n->end >= 0 ? LLVMConstInt(g->i1, 1, 0)
                            : LLVMBuildICmp(g->b, LLVMIntEQ, b.end, extent, "");
    int64_t turn = turn_of(g, n);
    if (n->end >= 0)
        b.end = tl_gen_int(&g->gen, n->end);
    else if (turn)
        b.end = LLVMBuildSub(g->b, b.end, LLVMBuildURem(g->b, b.end, tl_gen_int(&g->gen, turn), ""),
                             "");
    else
        b.end = LLVMBuildAnd(g->b, b.end, tl_gen_int(&g->gen, -step), "");
    if (b.begin) {
        LLVMValueRef up = LLVMBuildAdd(g->b, b.begin, tl_gen_int(&g->gen, step - 1), "");
        up = LLVMBuildAnd(g->b, up, tl_gen_int(&g->gen, -step), "");
        b.begin = tl_cpu_smaller(g, up, b.end);
    }
    if (b.all) { /* and the last vector does not go back to what is tested before */
        LLVMValueRef first = tl_gen_int(&g->gen, n->form.extent[n->lane] - n->width);
        if (b.begin)
            b.all = LLVMBuildAnd(g->b, b.all,
                                 LLVMBuildICmp(g->b, LLVMIntSLE, b.begin, first, ""), "");
        b.end = LLVMBuildSelect(g->b, b.all, extent, b.end, "");
    }
    if (!n->stops)
        b.outside = NULL;
    return b;
}

/* i1: is all of a row inside that it loads across the lanes? NULL: all rows are the same. */
static LLVMValueRef is_row_inside(TlCpuGen *g, const TlCpuBounds *b, const TlCpuAt *at)
{
    LLVMValueRef inside = NULL;
    for (int d = 0; d < at->rank; d++) {
        if (!b->low[d])
            continue;
        LLVMValueRef is =
            LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, at->idx[d], b->low[d], ""),
                         LLVMBuildICmp(g->b, LLVMIntSLT, at->idx[d], b->high[d], ""), "");
        inside = inside ? LLVMBuildAnd(g->b, inside, is, "") : is;
    }
    return inside;
}

/* The bounds of the row at a position. */
static TlCpuBounds bounds_of_row(TlCpuGen *g, const TlCpuBounds *b, const TlCpuAt *at)
{
    TlCpuBounds r = *b;
    LLVMValueRef inside = is_row_inside(g, b, at), zero = tl_gen_int(&g->gen, 0);
    if (!inside)
        return r;
    r.end = LLVMBuildSelect(g->b, inside, b->end, zero, "");
    if (b->begin)
        r.begin = LLVMBuildSelect(g->b, inside, b->begin, zero, "");
    if (b->all)
        r.all = LLVMBuildAnd(g->b, inside, b->all, "");
    return r;
}

/* ---- loops over all dimensions ---- */

static bool is_skipped(const TlCpuLoops *l, int d)
{
    return d == l->skip || (l->skips_lanes && d == l->lane) || (l->one_row && d == 0);
}

static bool is_number(LLVMValueRef x, int64_t n)
{
    return LLVMIsAConstantInt(x) && LLVMConstIntGetSExtValue(x) == n;
}

void tl_cpu_loops_begin(TlCpuGen *g, TlCpuLoops *l, const TlNestForm *f, TlCpuAt *at)
{
    l->rank = f->rank;
    l->lane = f->lane;
    for (int d = 0; d < f->rank; d++) {
        if (is_skipped(l, d))
            continue;
        if (l->bounds && l->bounds->to[d] && !(is_number(l->bounds->from[d], 0) &&
                                               is_number(l->bounds->to[d], f->extent[d]))) {
            tl_cpu_loop_begin(g, &l->loop[d], l->bounds->from[d], l->bounds->to[d], 1, 0, NULL);
            at->idx[d] = l->loop[d].i;
            continue;
        }
        bool lanes = d == f->lane && at->width > 1;
        int64_t n = lanes ? f->padded[d] : f->extent[d];
        int64_t step = d == l->dim ? l->step : lanes ? at->width : 1;
        TL_ASSERT(step <= n, "%lld positions of %lld", (long long)step, (long long)n);
        tl_cpu_loop_known(g, &l->loop[d], 0, n, step, 0, NULL);
        LLVMValueRef i = l->loop[d].i, last = tl_gen_int(&g->gen, n - step);
        at->idx[d] = n % step ? tl_cpu_smaller(g, i, last) : i;
    }
}

void tl_cpu_loops_end(TlCpuGen *g, TlCpuLoops *l)
{
    for (int d = l->rank - 1; d >= 0; d--)
        if (!is_skipped(l, d))
            tl_cpu_loop_end(g, &l->loop[d], NULL);
}

/* ---- along the lanes ---- */

typedef struct Body {
    TlCpuBody run;
    void *user;
} Body;

static void run(TlCpuGen *g, TlCpuAt *at, const Body *body)
{
    body->run(g, at, body->user);
    if (!at->whole || !at->row || !at->row->distance.len)
        return;
    TlCpuBranch b = tl_cpu_branch(g, at->row->asks, true, "coming", "came");
    tl_cpu_prefetch(g, at);
    tl_cpu_join(g, b);
}

/* One vector, at i; states of what slides, NULL: nothing does. */
static void at_lanes(TlCpuGen *g, const TlCpuAt *outer, LLVMValueRef i, const Body *body,
                     LLVMValueRef *state)
{
    TlCpuAt at = *outer;
    tl_map_init(&at.memo, g->arena);
    at.idx[at.lane] = i;
    if (at.whole && at.row->nest->overlaps) {
        const TlNest *n = at.row->nest;
        LLVMValueRef last = tl_gen_int(&g->gen, n->form.extent[n->lane] - at.width);
        at.idx[at.lane] = tl_cpu_smaller(g, i, last);
        at.shifted = true;
    }
    if (state)
        tl_cpu_sliding_step(g, &at, state);
    run(g, &at, body);
}

/* What is found out from here on of where rows begin holds for all vectors that follow. */
static void begin_turn(TlCpuGen *g, const TlCpuAt *at)
{
    at->row->near.len = 0;
    at->row->turn_in = at->whole ? (int64_t)g->conditional : -1;
}

/* Vectors of one turn after the other, from .. to - 1. */
static void turns(TlCpuGen *g, const TlCpuAt *outer, LLVMValueRef from, LLVMValueRef to,
                  int64_t turn, const Body *body)
{
    TlCpuAt at = *outer;
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, from, to, turn, 0, NULL);
    begin_turn(g, &at);
    at.turn_from = l.i;
    for (at.behind = 0; at.behind < turn; at.behind += at.width) {
        at.turn = LLVMBuildAdd(g->b, l.i, tl_gen_int(&g->gen, at.behind), "");
        at_lanes(g, &at, at.turn, body, NULL);
    }
    tl_cpu_loop_end(g, &l, NULL);
    begin_turn(g, outer);
}

/* The vectors from .. to - 1, of which there is one; with constants, a loop without a test before
 * it, or none. */
static void some_lanes(TlCpuGen *g, const TlCpuAt *at, LLVMValueRef from, LLVMValueRef to,
                       const Body *body)
{
    TlCpuLoop l;
    LLVMValueRef state[TL_NEST_SUMS];
    uint32_t states = tl_cpu_sliding_states(g, at);
    int64_t turn = at->whole ? turn_of(g, at->row->nest) : 0;
    if (states)
        tl_cpu_sliding_begin(g, at, from, state);
    if (LLVMIsAConstantInt(from) && LLVMIsAConstantInt(to)) {
        int64_t begin = LLVMConstIntGetSExtValue(from), end = LLVMConstIntGetSExtValue(to);
        bool repeated = g->whole && at->whole && at->row->nest->repeated;
        if (turn && !repeated && end - begin >= turn && begin % g->plan->rows_apart == 0) {
            int64_t all = (end - begin) / turn * turn;
            turns(g, at, from, tl_gen_int(&g->gen, begin + all), turn, body);
            begin += all;
            repeated = true;
        }
        for (; repeated && begin < end; begin += at->width)
            at_lanes(g, at, tl_gen_int(&g->gen, begin), body, states ? state : NULL);
        if (begin >= end)
            return;
        tl_cpu_loop_known(g, &l, begin, end, at->width, states, state);
    } else if (turn) {
        turns(g, at, from, to, turn, body);
        return;
    } else {
        tl_cpu_loop_begin(g, &l, from, to, at->width, states, state);
        if (!at->whole)
            tl_cpu_loop_is_short(g, &l);
    }
    for (uint32_t k = 0; k < states; k++)
        state[k] = l.carry[k];
    at_lanes(g, at, l.i, body, states ? state : NULL);
    tl_cpu_loop_end(g, &l, state);
}

static void part_of_lanes(TlCpuGen *g, const TlCpuAt *at, LLVMValueRef from, LLVMValueRef to,
                          const Body *body)
{
    bool known = LLVMIsAConstantInt(from) && LLVMIsAConstantInt(to);
    if (known && LLVMConstIntGetSExtValue(from) >= LLVMConstIntGetSExtValue(to))
        return;
    TlCpuBranch branch = {NULL};
    if (!known && !at->whole)
        branch = tl_cpu_rest(g, from, to);
    else if (!known && tl_cpu_sliding_states(g, at)) /* it reads before the loop */
        branch = tl_cpu_branch(g, LLVMBuildICmp(g->b, LLVMIntSLT, from, to, ""), true, "some",
                               "none");
    begin_turn(g, at);
    some_lanes(g, at, from, to, body);
    at->row->turn_in = -1;
    tl_cpu_join(g, branch);
}

/* The row streams only if another store that is done with it may, too. */
static void stream_with(TlCpuGen *g, TlCpuRow *row, const TlNestAccess *store, const TlCpuAt *first)
{
    TlCpuRow other = *row;
    const TlCpuAccess *a = tl_cpu_access_of(g, store->op);
    tl_cpu_stream_now(g, &other, a, tl_cpu_access_address(g, a, first));
    row->streams = LLVMBuildAnd(g->b, row->streams, other.streams, "");
    if (row->streams_wide)
        row->streams_wide = LLVMBuildAnd(g->b, row->streams_wide, other.streams_wide, "");
}

/* i1: are all rows inside that else are zeros? NULL: there are none. */
static LLVMValueRef are_rows_inside(TlCpuGen *g, const TlNest *n, const TlCpuAt *at)
{
    LLVMValueRef all = NULL;
    for (uint32_t i = 0; i < n->asks.len; i++) {
        const TlCpuAccess *a = tl_cpu_access_of(g, n->asks.data[i].access->op);
        if (tl_cpu_has_zero_rows(g, a, at) && a->ok)
            all = all ? LLVMBuildAnd(g->b, all, a->ok, "") : a->ok;
    }
    return all;
}

/* The lanes from `begin` up to `end`, where everything is inside. */
static void whole_part(TlCpuGen *g, const TlCpuAt *outer, LLVMValueRef begin, LLVMValueRef end,
                       const Body *body)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    const TlNest *n = outer->row->nest;
    TlCpuAt at = *outer, first;
    at.whole = true;
    first = at;
    first.idx[first.lane] = zero;
    tl_map_init(&first.memo, g->arena);
    const TlCpuAccess *store = n->store ? tl_cpu_access_of(g, n->op) : NULL, *lies = store;
    bool interleaved = n->joined && !n->joined->apart;
    TlCpuAt where = first;
    if (n->streams && interleaved) { /* all of them lie from the first one's element on */
        lies = tl_cpu_access_of(g, n->joined->store[0]->op);
        where.width = 1;
    }
    if (n->streams)
        tl_cpu_stream_now(g, outer->row, lies, tl_cpu_access_address(g, lies, &where));
    for (int k = 0; n->streams && n->joined && !interleaved && k < n->joined->n; k++)
        stream_with(g, outer->row, n->joined->store[k], &first);
    tl_cpu_prefetch_store(g, outer->row, &first);
    LLVMValueRef inside = n->forks_rows ? are_rows_inside(g, n, &at) : NULL;
    if (store && store->a->row) {
        TlCpuFork f = tl_cpu_fork(g, store->dense);
        at.row->dense = true;
        part_of_lanes(g, &at, begin, end, body);
        at.row->dense = false;
        tl_cpu_fork_else(g, &f, NULL);
        part_of_lanes(g, &at, begin, end, body);
        tl_cpu_fork_end(g, &f, NULL);
        return;
    }
    if (inside) {
        TlCpuFork f = tl_cpu_fork(g, inside);
        at.row->rows_inside = true;
        part_of_lanes(g, &at, begin, end, body);
        at.row->rows_inside = false;
        tl_cpu_fork_else(g, &f, NULL);
        part_of_lanes(g, &at, begin, end, body);
        tl_cpu_fork_end(g, &f, NULL);
        return;
    }
    part_of_lanes(g, &at, begin, end, body);
}

/* All lanes are one vector: either all is inside, or it is tested. Its place is known, so that what
 * is in registers stays there. */
static void one_vector(TlCpuGen *g, TlCpuAt *at, LLVMValueRef end, const Body *body)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), n = tl_gen_int(&g->gen, at->width);
    LLVMBasicBlockRef whole = tl_gen_block(&g->gen, "whole"), part = tl_gen_block(&g->gen, "part"),
                      join = tl_gen_block(&g->gen, "join");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, end, n, ""), whole, part);
    LLVMPositionBuilderAtEnd(g->b, whole);
    uint32_t marks = g->marks.len;
    whole_part(g, at, zero, n, body);
    g->marks.len = marks;
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, part);
    at->width = at->row->nest->tested;
    part_of_lanes(g, at, zero, n, body);
    g->marks.len = marks;
    tl_cpu_join(g, (TlCpuBranch){.join = join});
}

/* The vectors before those that are inside, and behind them. */
static void tested_sides(TlCpuGen *g, TlCpuAt *at, const TlCpuBounds *b, const Body *body)
{
    const TlNest *n = at->row->nest;
    const TlNestForm *f = &n->form;
    LLVMValueRef last =
        tl_gen_int(&g->gen, at->width > 1 ? f->padded[f->lane] : f->extent[f->lane]);
    if (b->last)
        last = tl_cpu_smaller(g, b->last, last);
    if (b->all)
        last = LLVMBuildSelect(g->b, b->all, b->end, last, "");
    at->width = n->tested;
    if (!b->begin || is_number(b->begin, 0)) {
        part_of_lanes(g, at, b->end, last, body);
        return;
    }
    TlCpuLoop sides; /* before what is inside, behind it: one code for both */
    tl_cpu_loop_known(g, &sides, 0, 2, 1, 0, NULL);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0),
                 is_first = LLVMBuildICmp(g->b, LLVMIntEQ, sides.i, zero, "");
    part_of_lanes(g, at, LLVMBuildSelect(g->b, is_first, zero, b->end, ""),
                  LLVMBuildSelect(g->b, is_first, b->begin, last, ""), body);
    tl_cpu_loop_end(g, &sides, NULL);
}

/* The same, where starts of taps do not wrap, by what slides. */
static void tested_lanes(TlCpuGen *g, TlCpuAt *at, const TlCpuBounds *b, const Body *body)
{
    LLVMValueRef slides = tl_cpu_sliding_tested(g, at->row->nest);
    TlCpuFork f = {0};
    if (slides) {
        f = tl_cpu_fork(g, slides);
        at->slides = true;
        tested_sides(g, at, b, body);
        at->slides = false;
        tl_cpu_fork_else(g, &f, NULL);
    }
    tested_sides(g, at, b, body);
    if (slides)
        tl_cpu_fork_end(g, &f, NULL);
}

/* Vectors that are inside, then those that are tested. */
static void whole_and_rest(TlCpuGen *g, TlCpuAt *at, const TlCpuBounds *b, const Body *body)
{
    whole_part(g, at, b->begin ? b->begin : tl_gen_int(&g->gen, 0), b->end, body);
    tested_lanes(g, at, b, body);
}

/* ---- unrolled ---- */

/* i1: are positions from .. to - 1 all that there are along a dimension? NULL: they are. */
static LLVMValueRef is_all(TlCpuGen *g, const TlNest *n, int d, LLVMValueRef from, LLVMValueRef to)
{
    if (!to)
        return NULL;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), extent = tl_gen_int(&g->gen, n->form.extent[d]);
    return LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, from, zero, ""),
                        LLVMBuildICmp(g->b, LLVMIntEQ, to, extent, ""), "");
}

/* Each position from dimension d on; bounds: those of rows are tested. */
static void each_position(TlCpuGen *g, const TlCpuAt *outer, int d, const TlCpuBounds *bounds,
                          const Body *body)
{
    TlCpuAt at = *outer;
    const TlNest *n = at.row->nest;
    if (d == at.rank) {
        tl_map_init(&at.memo, g->arena);
        run(g, &at, body);
        return;
    }
    bool lanes = d == at.lane, tests = bounds && bounds->to[d];
    int64_t step = lanes ? at.width : 1;
    int64_t end = step > 1 ? n->form.padded[d] : n->form.extent[d];
    for (int64_t i = 0; i < end; i += step) {
        LLVMValueRef inside = NULL;
        at.idx[d] = tl_gen_int(&g->gen, i);
        if (tests)
            inside =
                LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, at.idx[d], bounds->from[d], ""),
                             LLVMBuildICmp(g->b, LLVMIntSLT, at.idx[d], bounds->to[d], ""), "");
        TlCpuBranch branch = tl_cpu_branch(g, inside, true, "row", "next");
        each_position(g, &at, d + 1, bounds, body);
        tl_cpu_join(g, branch);
    }
}

/* i1: is all of the nest inside? */
static LLVMValueRef is_nest_inside(TlCpuGen *g, const TlNest *n, const TlCpuBounds *bounds)
{
    LLVMValueRef extent = tl_gen_int(&g->gen, n->form.extent[n->lane]),
                 zero = tl_gen_int(&g->gen, 0),
                 all = LLVMBuildICmp(g->b, LLVMIntEQ, bounds->end, extent, "");
    if (bounds->begin)
        all = LLVMBuildAnd(g->b, all, LLVMBuildICmp(g->b, LLVMIntEQ, bounds->begin, zero, ""), "");
    for (int d = 0; d < n->form.rank; d++) {
        LLVMValueRef rows = is_all(g, n, d, bounds->from[d], bounds->to[d]),
                     inside = is_all(g, n, d, bounds->low[d], bounds->high[d]);
        all = rows ? LLVMBuildAnd(g->b, all, rows, "") : all;
        all = inside ? LLVMBuildAnd(g->b, all, inside, "") : all;
    }
    return all;
}

/* All positions, one after the other: whole, or tested. */
static void unrolled(TlCpuGen *g, TlCpuAt *at, const TlCpuBounds *bounds, const Body *body)
{
    const TlNest *n = at->row->nest;
    TlCpuFork f;
    if (bounds->end) {
        f = tl_cpu_fork(g, is_nest_inside(g, n, bounds));
        at->whole = true;
        each_position(g, at, 0, NULL, body);
        tl_cpu_fork_else(g, &f, NULL);
        at->whole = false;
        at->width = n->tested;
    }
    each_position(g, at, 0, bounds, body);
    if (bounds->end)
        tl_cpu_fork_end(g, &f, NULL);
}

/* ---- down columns ---- */

/* May the stores of all rows, which are apart by a constant of the run, pass by the caches in
 * pieces as large as a register? */
static LLVMValueRef columns_stream(TlCpuGen *g, const TlNest *n, TlCpuAt *at)
{
    const TlCpuAccess *a = tl_cpu_access_of(g, n->op);
    TlCpuRow row = {.nest = n, .turn_in = -1};
    LLVMValueRef p[2], all = NULL;
    for (int k = 0; k < 2; k++) {
        at->idx[n->rows_dim] = tl_gen_int(&g->gen, k);
        p[k] = tl_cpu_access_address(g, a, at);
        tl_cpu_stream_now(g, &row, a, p[k]);
        LLVMValueRef streams = row.streams;
        if (row.streams_wide)
            streams = LLVMBuildAnd(g->b, streams, row.streams_wide, "");
        all = all ? LLVMBuildAnd(g->b, all, streams, "") : streams;
    }
    return all;
}

static void each_column(TlCpuGen *g, const TlCpuAt *outer, const Body *body)
{
    TlCpuAt at = *outer;
    const TlNest *n = at.row->nest;
    TlCpuColumn column = {.rows = n->rows_dim};
    TlCpuLoop l;
    tl_map_init(&column.has, g->arena);
    column.states = TL_NEW_ARRAY(g->arena, TlMap, tl_cpu_taps_down(n) + 1);
    for (uint32_t i = 0; i < tl_cpu_taps_down(n); i++)
        tl_map_init(&column.states[i], g->arena);
    at.width = n->column_width ? n->column_width : n->width;
    tl_cpu_loop_known(g, &l, 0, n->form.extent[n->lane], at.width, 0, NULL);
    at.column = &column;
    at.idx[n->lane] = l.i;
    for (int64_t i = 0; i < n->form.extent[n->rows_dim]; i++) {
        at.idx[n->rows_dim] = tl_gen_int(&g->gen, i);
        tl_map_init(&at.memo, g->arena);
        tl_cpu_sliding_down(g, &at);
        body->run(g, &at, body->user);
    }
    tl_cpu_loop_end(g, &l, NULL);
}

/* All rows of a vector, then those of the next one. All of the nest is inside. */
static void columns(TlCpuGen *g, TlCpuAt *at, const Body *body)
{
    const TlNest *n = at->row->nest;
    at->whole = true;
    for (int d = 0; d < at->rank; d++)
        at->idx[d] = tl_gen_int(&g->gen, 0);
    if (!n->streams) {
        each_column(g, at, body);
        return;
    }
    LLVMValueRef one = LLVMConstInt(g->i1, 1, 0);
    TlCpuFork f = tl_cpu_fork(g, columns_stream(g, n, at));
    TlCpuRow row = *at->row, *through = at->row;
    row.streams = one;
    row.streams_wide = n->streams_wide ? one : NULL;
    at->row = &row;
    each_column(g, at, body);
    tl_cpu_fork_else(g, &f, NULL);
    at->row = through;
    each_column(g, at, body);
    tl_cpu_fork_end(g, &f, NULL);
}

/* ---- down rows, with values in registers ---- */

/* Those of the rows that the loop begins with, row by row, each with its number. */
static void first_rows(TlCpuGen *g, const TlCpuAt *at, LLVMValueRef from, LLVMValueRef *to)
{
    const TlNest *n = at->row->nest;
    for (uint32_t i = 0; i < n->down.len; i++) {
        TlValue *v = n->down.data[i]->value;
        LLVMValueRef last = tl_gen_int(&g->gen, v->type->shape[0] - 1);
        for (int k = 0; k < n->down.data[i]->ahead; k++) {
            TlCpuAt first = *at;
            tl_map_init(&first.memo, g->arena);
            first.idx[0] = LLVMBuildAdd(g->b, from, tl_gen_int(&g->gen, k), "");
            first.idx[0] = tl_cpu_smaller(g, first.idx[0], last);
            *to++ = tl_cpu_eval(g, v, &first);
        }
    }
}

/* What a loop over rows carries to the next one. */
static void next_rows(const TlNest *n, const TlCpuDown *carried, LLVMValueRef *to)
{
    for (uint32_t i = 0; i < n->down.len; i++) {
        int ahead = n->down.data[i]->ahead;
        TL_ASSERT(carried->next[i], "value %u is needed nowhere", n->down.data[i]->value->id);
        for (int k = 1; k < ahead; k++)
            *to++ = carried->rows[i][k];
        *to++ = carried->next[i];
    }
}

/* All rows of a vector, then those of the next one. */
static void down(TlCpuGen *g, TlCpuAt *at, const TlCpuBounds *bounds, const Body *body)
{
    const TlNest *n = at->row->nest;
    LLVMValueRef from = bounds->to[0] ? bounds->from[0] : tl_gen_int(&g->gen, 0),
                 to = bounds->to[0] ? bounds->to[0] : tl_gen_int(&g->gen, n->form.extent[0]),
                 state[TL_NEST_SUMS], **rows = TL_NEW_ARRAY(g->arena, LLVMValueRef *, n->down.len);
    TlCpuDown carried = {n, rows, TL_NEW_ARRAY(g->arena, LLVMValueRef, n->down.len)};
    TlCpuLoop lanes, loop;
    uint32_t held = 0;
    for (uint32_t i = 0; i < n->down.len; i++) {
        rows[i] = loop.carry + held;
        held += (uint32_t)n->down.data[i]->ahead;
    }
    tl_cpu_loop_known(g, &lanes, 0, n->form.padded[1], at->width, 0, NULL);
    at->idx[1] = lanes.i;
    first_rows(g, at, from, state);
    tl_cpu_loop_begin(g, &loop, from, to, 1, held, state);
    at->idx[0] = loop.i;
    at->down = &carried;
    tl_map_init(&at->memo, g->arena);
    run(g, at, body);
    next_rows(n, &carried, state);
    tl_cpu_loop_end(g, &loop, state);
    tl_cpu_loop_end(g, &lanes, NULL);
}

/* ---- programs abreast ---- */

typedef struct Turns {
    TlCpuBody run;
    void *user;
    TlCpuRow *row; /* of each */
} Turns;

static void each_turn(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Turns *turns = user;
    for (int i = 0; i < g->nturns; i++) {
        tl_cpu_take_turn(g, i);
        tl_map_init(&at->memo, g->arena);
        at->row = &turns->row[i];
        turns->run(g, at, turns->user);
    }
}

void tl_cpu_nest_abreast(TlCpuGen *g, const TlNest *n, TlCpuBody body, void *user)
{
    TL_ASSERT(g->whole && g->nturns && n->store, "'%s' runs abreast, and tests", g->fn->name);
    TlCpuRow *row = TL_NEW_ARRAY(g->arena, TlCpuRow, (size_t)g->nturns);
    LLVMValueRef extent = tl_gen_int(&g->gen, n->form.extent[n->lane]);
    TlCpuBounds bounds = tl_cpu_bounds(g, n, n->width);
    TlCpuLoops loops = {.skip = n->lane, .dim = -1, .bounds = &bounds};
    Turns turns = {body, user, row};
    TlCpuAt at;
    tl_cpu_at_init(g, &at, n->form.rank, n->lane, n->width);
    tl_cpu_loops_begin(g, &loops, &n->form, &at);
    at.whole = true;
    at.idx[n->lane] = tl_gen_int(&g->gen, 0);
    for (int i = 0; i < g->nturns; i++) {
        row[i] = (TlCpuRow){.nest = n, .turn_in = -1};
        tl_cpu_take_turn(g, i);
        tl_cpu_read_rows(g, &row[i], &at);
        const TlCpuAccess *a = tl_cpu_access_of(g, n->op);
        if (n->streams)
            tl_cpu_stream_now(g, &row[i], a, tl_cpu_access_address(g, a, &at));
    }
    LLVMValueRef begin = bounds.begin ? bounds.begin : tl_gen_int(&g->gen, 0);
    at.row = &row[0];
    part_of_lanes(g, &at, begin, g->tests_lanes ? bounds.end : extent, &(Body){each_turn, &turns});
    at.whole = false;
    if (g->tests_lanes)
        tested_lanes(g, &at, &bounds, &(Body){each_turn, &turns});
    tl_cpu_loops_end(g, &loops);
}

/* ---- row by row ---- */

static void by_rows(TlCpuGen *g, TlCpuAt *at, const TlCpuBounds *bounds, const Body *body)
{
    TlCpuRow *row = at->row;
    const TlNest *n = row->nest;
    TlCpuLoops loops = {.skip = bounds->end ? n->form.lane : -1, .dim = -1, .bounds = bounds};
    loops.one_row = n->has_row;
    if (n->has_row)
        at->idx[0] = bounds->from[0];
    if (bounds->end)
        tl_cpu_prefetch_begin(g, row);
    tl_cpu_loops_begin(g, &loops, &n->form, at);
    if (!bounds->end) {
        run(g, at, body);
    } else {
        TlCpuBounds of_row = bounds_of_row(g, bounds, at);
        tl_cpu_read_rows(g, row, at);
        if (n->split == TL_NEST_ONE)
            one_vector(g, at, of_row.end, body);
        else
            whole_and_rest(g, at, &of_row, body);
    }
    tl_cpu_loops_end(g, &loops);
}

void tl_cpu_nest(TlCpuGen *g, const TlNest *n, TlCpuBody run_body, void *user)
{
    Body body = {run_body, user};
    TlCpuRow row = {.nest = n, .turn_in = -1};
    TlCpuAt at;
    TlCpuBounds bounds = tl_cpu_bounds(g, n, n->width);
    tl_cpu_at_init(g, &at, n->form.rank, n->form.lane, n->width);
    at.row = &row;
    if (n->columns == n && g->whole) {
        columns(g, &at, &body);
        return;
    }
    if (n->unrolled) {
        unrolled(g, &at, &bounds, &body);
        return;
    }
    if (n->down.len) {
        down(g, &at, &bounds, &body);
        return;
    }
    if (n->columns != n || g->plan->whole) {
        by_rows(g, &at, &bounds, &body);
        return;
    }
    LLVMValueRef inside = is_nest_inside(g, n, &bounds);
    TlCpuFork f = tl_cpu_fork(g, LLVMBuildAnd(g->b, inside, tl_cpu_sliding_follows(g, n), ""));
    TlCpuAt down = at;
    columns(g, &down, &body);
    tl_cpu_fork_else(g, &f, NULL);
    by_rows(g, &at, &bounds, &body);
    tl_cpu_fork_end(g, &f, NULL);
}
