/* Windows that slide along the lanes (nest_sliding.c): their states, from vector to vector of a row
 * of which all is inside, or is tested. */
#include "codegen/cpu/cpu.h"

/* A spread value that the loop at the position carries; NULL: it does not. */
static const TlNestSpread *spread_of(const TlCpuGen *g, const TlCpuAt *at, uint32_t i)
{
    const TlNestSpread *s = tl_map_get_ptr(&g->plan->spreads, at->row->nest->spreads.data[i]);
    return s->carried && at->whole ? s : NULL;
}

static bool slides_at(const TlNestSliding *s, const TlCpuAt *at)
{
    return at->whole || (at->slides && s->tested);
}

uint32_t tl_cpu_sliding_states(const TlCpuGen *g, const TlCpuAt *at)
{
    const TlNest *n = at->row->nest;
    uint32_t states = 0;
    for (uint32_t i = 0; i < n->spreads.len; i++)
        states += spread_of(g, at, i) != NULL;
    for (uint32_t i = 0; i < n->sliding.len; i++)
        for (uint32_t k = 0; k < n->sliding.data[i]->taps.len; k++)
            if (slides_at(n->sliding.data[i], at))
                states += (uint32_t)n->sliding.data[i]->taps.data[k]->nsteps;
    return states;
}

/* Does the tap's load begin `by` elements behind the first one's along a dimension, in numbers of
 * 64 bits? */
static LLVMValueRef is_behind(TlCpuGen *g, int dim, const TlNestAccess *first,
                              const TlNestAccess *tap, int by)
{
    const TlCpuAccess *a = tl_cpu_access_of(g, first->op), *b = tl_cpu_access_of(g, tap->op);
    LLVMValueRef all = LLVMConstInt(g->i1, 1, 0);
    for (uint32_t i = 0; i < first->place.naxes; i++) {
        const TlAxis *axis = &first->place.axes[i];
        if (first->axis[i].dim != dim || axis->kind == TL_AXIS_SCALAR)
            continue;
        int64_t step = axis->kind == TL_AXIS_SLICE ? axis->step : 1;
        LLVMValueRef to = LLVMBuildAdd(g->b, a->start[i], tl_gen_int(&g->gen, by * step), "");
        all = LLVMBuildAnd(g->b, all, LLVMBuildICmp(g->b, LLVMIntEQ, to, b->start[i], ""), "");
    }
    return all;
}

LLVMValueRef tl_cpu_sliding_tested(TlCpuGen *g, const TlNest *n)
{
    LLVMValueRef all = NULL;
    for (uint32_t i = 0; i < n->sliding.len; i++)
        for (uint32_t k = 0; k < n->sliding.data[i]->taps.len && n->sliding.data[i]->tested; k++) {
            const TlNestTaps *t = n->sliding.data[i]->taps.data[k];
            const TlNestAccess *first = tl_nest_tap_load(g->plan, t->tap[0]);
            for (int m = 1; m < t->n; m++) {
                const TlNestAccess *tap = tl_nest_tap_load(g->plan, t->tap[m]);
                LLVMValueRef is = is_behind(g, n->lane, first, tap, m);
                all = all ? LLVMBuildAnd(g->b, all, is, "") : is;
            }
        }
    return all;
}

LLVMValueRef tl_cpu_sliding_follows(TlCpuGen *g, const TlNest *n)
{
    LLVMValueRef all = LLVMConstInt(g->i1, 1, 0);
    for (uint32_t i = 0; i < n->sliding_rows.len && n->differs; i++)
        for (uint32_t k = 0; k < n->sliding_rows.data[i]->taps.len; k++) {
            const TlNestTaps *t = n->sliding_rows.data[i]->taps.data[k];
            const TlNestAccess *first = tl_nest_tap_load(g->plan, t->tap[0]);
            for (int m = 1; m < t->n; m++) {
                const TlNestAccess *tap = tl_nest_tap_load(g->plan, t->tap[m]);
                LLVMValueRef is = is_behind(g, n->rows_dim, first, tap, m);
                all = LLVMBuildAnd(g->b, all, is, "");
            }
        }
    return all;
}

/* `by` lanes back: those that come in are the last ones of the vector before. */
static LLVMValueRef moved(TlCpuGen *g, LLVMValueRef before, LLVMValueRef x, int by)
{
    int w = tl_gen_width_of(x);
    LLVMValueRef lane[TL_NEST_LANES];
    if (by == w)
        return before;
    for (int i = 0; i < w; i++)
        lane[i] = LLVMConstInt(g->i32, (uint64_t)(w - by + i), 0);
    return LLVMBuildShuffleVector(g->b, before, x, LLVMConstVector(lane, (unsigned)w), "");
}

/* What floats the operands may be. */
static TlFloatKinds all_kinds(const TlCpuGen *g, const TlNestSliding *s)
{
    TlFloatKinds all = 0;
    for (uint32_t i = 0; g->kinds && i < s->others.len; i++)
        all |= g->kinds[s->others.data[i]->id];
    for (uint32_t i = 0; g->kinds && i < s->taps.len; i++)
        for (int k = 0; k < s->taps.data[i]->n; k++)
            all |= g->kinds[s->taps.data[i]->tap[k]->id];
    return g->kinds ? all : TL_MAY_BE_ANY;
}

static TlFloatKinds of_floor(const TlCpuGen *g, const TlNestSliding *s)
{
    return g->kinds ? g->kinds[s->floor->id] : TL_MAY_BE_ANY;
}

static TlFloatKinds kinds_of_states(const TlCpuGen *g, const TlNestSliding *s)
{
    const TlFloatKinds zeros = TL_MAY_BE_PLUS_ZERO | TL_MAY_BE_MINUS_ZERO;
    TlFloatKinds all = all_kinds(g, s);
    return s->floor ? (TlFloatKinds)((all | of_floor(g, s)) & zeros) : all;
}

/* A tap, which is no NaN if there is a floor. */
static LLVMValueRef tap_of(TlCpuGen *g, const TlNestSliding *s, LLVMValueRef x)
{
    if (!s->floor)
        return x;
    const TlType *type = s->floor->type;
    uint64_t bits = tl_attr(s->floor->def, TL_ATTR_VALUE)->u.bits;
    LLVMValueRef in[2] = {x, tl_gen_const(&g->gen, type, bits, tl_gen_width_of(x))};
    return tl_gen_again(&g->gen, s->op, in, all_kinds(g, s), of_floor(g, s));
}

static LLVMValueRef both(TlCpuGen *g, const TlNestSliding *s, LLVMValueRef first, LLVMValueRef last)
{
    LLVMValueRef in[2] = {s->backwards ? last : first, s->backwards ? first : last};
    TlFloatKinds kinds = kinds_of_states(g, s);
    return tl_gen_again(&g->gen, s->op, in, kinds, kinds);
}

/* From the vectors before of all states but the last to those of this one; gives the last. */
static LLVMValueRef step(TlCpuGen *g, const TlNestSliding *s, const TlNestTaps *t, LLVMValueRef x,
                         LLVMValueRef *state)
{
    LLVMValueRef now[TL_NEST_TAP_STEPS + 1] = {x};
    for (int k = 0; k < t->nsteps; k++) {
        const TlNestTapStep *by = &t->step[k];
        now[k + 1] = both(g, s, moved(g, state[by->of], now[by->of], by->by), now[by->with]);
    }
    for (int k = 0; k < t->nsteps; k++)
        state[k] = now[k];
    return now[t->nsteps];
}

/* So many lanes on; what comes in is any of them. */
static LLVMValueRef moved_up(TlCpuGen *g, LLVMValueRef x, int by)
{
    int w = tl_gen_width_of(x);
    LLVMValueRef lane[TL_NEST_LANES];
    for (int i = 0; i < w; i++)
        lane[i] = LLVMConstInt(g->i32, (uint64_t)(i > by ? i - by : 0), 0);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(lane, (unsigned)w), "");
}

/* The vector of the last tap so many vectors before the position. What is before the first tap's
 * elements there is any of these, and in no result. */
static LLVMValueRef earlier(TlCpuGen *g, const TlNestTaps *t, TlCpuAt *at, int vectors)
{
    int w = at->width, first = t->n - 1 - vectors * w;
    LLVMValueRef x = tl_cpu_eval(g, t->tap[first > 0 ? first : 0], at);
    return first < 0 ? moved_up(g, x, -first) : x;
}

void tl_cpu_sliding_begin(TlCpuGen *g, const TlCpuAt *outer, LLVMValueRef begin,
                          LLVMValueRef *state)
{
    const TlNest *n = outer->row->nest;
    TlCpuAt at = *outer;
    tl_map_init(&at.memo, g->arena);
    at.idx[at.lane] = begin;
    for (uint32_t i = 0; i < n->spreads.len; i++) {
        const TlNestSpread *s = spread_of(g, &at, i);
        if (!s) /* else the vector before ends with the window's first elements */
            continue;
        LLVMValueRef x = tl_cpu_spread_elements(g, n->spreads.data[i], s, &at, 0, s->carried);
        *state++ = moved_up(g, x, 2 * s->carried - (int)s->span);
    }
    for (uint32_t i = 0; i < n->sliding.len; i++)
        for (uint32_t k = 0; k < n->sliding.data[i]->taps.len; k++) {
            const TlNestSliding *s = n->sliding.data[i];
            const TlNestTaps *t = s->taps.data[k];
            if (!slides_at(s, &at))
                continue;
            int vectors = (t->n - 1 + at.width - 1) / at.width;
            for (int v = vectors; v > 0; v--) {
                LLVMValueRef x = tap_of(g, s, earlier(g, t, &at, v));
                for (int m = 0; m < t->nsteps && v == vectors; m++)
                    state[m] = x; /* of elements that no result is of */
                step(g, s, t, x, state);
            }
            state += t->nsteps;
        }
}

/* A spread value: the last elements of its window, and those that the vector before ends with. */
static void step_spread(TlCpuGen *g, TlOp *op, const TlNestSpread *s, TlCpuAt *at,
                        LLVMValueRef *state)
{
    int64_t from = s->span - s->carried;
    LLVMValueRef lane[TL_NEST_LANES], x = tl_cpu_spread_elements(g, op, s, at, from, s->carried);
    tl_cpu_spread_lanes(g, s, at->width, s->carried - from, lane);
    LLVMValueRef r =
        LLVMBuildShuffleVector(g->b, *state, x, LLVMConstVector(lane, (unsigned)at->width), "");
    tl_map_put(&at->memo, op->out[0]->id, (uint64_t)(uintptr_t)r);
    *state = x;
}

/* The op of taps, r, and of the other operands, which the position then has. */
static void with_others(TlCpuGen *g, const TlNestSliding *s, TlCpuAt *at, LLVMValueRef r)
{
    for (uint32_t k = 0; k < s->others.len; k++) {
        LLVMValueRef in[2] = {r, tl_cpu_eval(g, s->others.data[k], at)};
        r = tl_gen_again(&g->gen, s->op, in, kinds_of_states(g, s), all_kinds(g, s));
    }
    tl_map_put(&at->memo, s->op->out[0]->id, (uint64_t)(uintptr_t)r);
}

uint32_t tl_cpu_taps_down(const TlNest *n)
{
    uint32_t taps = 0;
    for (uint32_t i = 0; i < n->sliding_rows.len; i++)
        taps += n->sliding_rows.data[i]->taps.len;
    return taps;
}

/* State `k` at a row, counted from the first tap's on; each is computed once. */
static LLVMValueRef state_down(TlCpuGen *g, const TlNestSliding *s, const TlNestTaps *t,
                               TlMap *states, const TlCpuAt *at, int k, int row)
{
    uint64_t key = (uint64_t)k << 32 | (uint64_t)row, seen;
    if (tl_map_get(states, key, &seen))
        return (LLVMValueRef)(uintptr_t)seen;
    LLVMValueRef x;
    if (k == 0) {
        int last = t->n - 1, tap = row < last ? row : last;
        TlCpuAt there = *at;
        tl_map_init(&there.memo, g->arena);
        there.idx[at->column->rows] = tl_gen_int(&g->gen, row - tap);
        x = tap_of(g, s, tl_cpu_eval(g, t->tap[tap], &there));
    } else {
        const TlNestTapStep *by = &t->step[k - 1];
        LLVMValueRef before = state_down(g, s, t, states, at, by->of, row - by->by);
        x = both(g, s, before, state_down(g, s, t, states, at, by->with, row));
    }
    tl_map_put(states, key, (uint64_t)(uintptr_t)x);
    return x;
}

void tl_cpu_sliding_down(TlCpuGen *g, TlCpuAt *at)
{
    const TlNest *n = at->row->nest;
    TlMap *states = at->column->states;
    for (uint32_t i = 0; i < n->sliding_rows.len; i++) {
        const TlNestSliding *s = n->sliding_rows.data[i];
        int64_t row = LLVMConstIntGetSExtValue(at->idx[at->column->rows]);
        LLVMValueRef r = NULL;
        for (uint32_t k = 0; k < s->taps.len; k++) {
            const TlNestTaps *t = s->taps.data[k];
            LLVMValueRef x = state_down(g, s, t, states++, at, t->nsteps, (int)row + t->n - 1);
            r = r ? both(g, s, r, x) : x;
        }
        with_others(g, s, at, r);
    }
}

void tl_cpu_sliding_step(TlCpuGen *g, TlCpuAt *at, LLVMValueRef *state)
{
    const TlNest *n = at->row->nest;
    for (uint32_t i = 0; i < n->spreads.len; i++)
        if (spread_of(g, at, i))
            step_spread(g, n->spreads.data[i], spread_of(g, at, i), at, state++);
    for (uint32_t i = 0; i < n->sliding.len; i++) {
        const TlNestSliding *s = n->sliding.data[i];
        LLVMValueRef r = NULL;
        if (!slides_at(s, at))
            continue;
        for (uint32_t k = 0; k < s->taps.len; k++) {
            const TlNestTaps *t = s->taps.data[k];
            LLVMValueRef x = tap_of(g, s, tl_cpu_eval(g, t->tap[t->n - 1], at));
            x = step(g, s, t, x, state);
            r = r ? both(g, s, r, x) : x;
            state += t->nsteps;
        }
        with_others(g, s, at, r);
    }
}
