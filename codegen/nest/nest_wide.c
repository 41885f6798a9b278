/* Several programs at once, neighbours along an axis of the grid, the first or the second.
 *
 * A program whose tiles are narrow, [64, 1] of an array [N, 256], does not fill vectors: what lies
 * side by side in memory are the elements of 16 programs. And one that computes some columns more
 * than it stores, as filters do, computes these again in the next program. Where all tiles of a
 * kernel are those of the program before, some elements further on, the same kernel with tiles that
 * are so many times as wide is as many programs. It has a plan and code of its own, which run as
 * long as there are so many programs, and beyond the last one where nothing that it stores would be
 * inside. Else the last so many run at once, too, some of them again, if nothing is loaded that the
 * kernel stores; what is left runs one by one.
 *
 *     x[j +: 64, i +: 1], i = pid(0)     =>     x[j +: 64, i +: 16], 16 programs from pid(0) on
 *
 *   1. step    by how much the stores move along memory's last axis, program by program: as many
 *              elements as each stores
 *   2. check   all that is stored is the same so many elements further on (nest_drift.c); no op
 *              does more. What other programs store is in no order with what this one loads
 *   3. price   vectors that become full, columns that are computed once; where programs do little,
 *              what each of them costs beside that; of a stencil of many taps and few vectors,
 *              where its taps lie and what of them is inside, which takes longer than its work; of
 *              a row that is loaded further than it is stored, its ends, as some of a row's few
 *              programs are at the border, where they test their first and last vectors
 *   4. widen   the function once more; nothing differs but the extents of tiles along the dimension
 *              that moves */
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/picked.h"

enum {
    MOST_ELEMS = 8192, /* of a wide tile */
    HALO_TIMES = 4,    /* programs at once, for the sake of columns that are computed once */
    HALO_PART = 16,    /* of the work, that those are at least */
    PLACES_TIMES = 4,  /* programs at once, for the sake of places that are found once */
    LEAST_PLACES = 8,  /* accesses of a program */
    PLACE = 8,         /* instructions for an access, while one of vectors runs */
    ENDS_PART = 16,    /* of the work, that a program's ends are at least; they become half of it */
    ENDS_TIMES = 16,   /* programs at once, for the sake of ends */
    MOST_TIMES = 16,   /* programs at once, for the sake of vectors that are all full, */
    FULL = 16,         /* which else are so but for one element of so many */
    LEAST_SAVED = 4,   /* of vectors that are full but for the last one, one of so many */
    ROW = 4,           /* vectors of a row, where that is light: */
    LIGHT = 32,        /* so much work for a vector that is stored, at most, */
    LITTLE = 64,       /* and in all, where vectors are full as they are */
};

typedef struct Wide {
    TlNests *plan;
    TlNestDrifts drifts;
    int times;
    int64_t lanes; /* of the narrowest element that is stored: a register's */
    bool fills;    /* so many programs take hardly longer than one, or than a few */
} Wide;

/* ---- 1. step ---- */

/* Elements that a store moves by from program to program, along memory's last axis; 0: it does not,
 * or stores more or fewer than those. */
static int64_t step_of(const TlFn *fn, const TlOp *store)
{
    TlPlace p = tl_op_place(store);
    if (!p.axes || p.pointwise || !p.naxes || !tl_nest_is_of_launch(p.base))
        return 0;
    const TlAxis *last = &p.axes[p.naxes - 1];
    bool plain = last->kind == TL_AXIS_SLICE && last->step >= 1 &&
                 tl_nest_is_dense(fn, &p, (int)p.naxes - 1);
    return plain ? last->width : 0;
}

/* The step of all stores; 0: they differ, or there are none. */
static int64_t common_step(const TlFn *fn)
{
    int64_t step = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_STORE)
            continue;
        int64_t of = step_of(fn, op);
        if (!of || (step && of != step))
            return 0;
        step = of;
    }
    return step;
}

/* ---- 2. check ---- */

static bool may_store(Wide *w, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    uint32_t last = p.naxes - 1;
    int dim = tl_place_dim(&p, last);
    for (uint32_t i = 0; i < p.naxes; i++) {
        int64_t by = i == last ? w->drifts.step * p.axes[i].step : 0;
        if (!tl_nest_drifts_by(&w->drifts, p.index[i].value, -1, by))
            return false;
    }
    return dim >= 0 && tl_nest_drifts_by(&w->drifts, p.value, dim, 0) &&
           (!p.mask || tl_nest_drifts_by(&w->drifts, p.mask, dim, 0));
}

static bool may_widen(Wide *w, const TlOp *op)
{
    if (op->opcode == TL_OP_STORE)
        return may_store(w, op);
    if (op->opcode == TL_OP_ASSUME)
        return tl_in(op, 0)->type->rank == 0;
    bool loops = op->opcode == TL_OP_FOR, branches = op->opcode == TL_OP_IF;
    for (uint32_t i = 0; i < (loops ? 3 : branches ? 1 : 0); i++)
        if (!tl_nest_drifts_by(&w->drifts, tl_in(op, i), -1, 0))
            return false;
    bool ends = op->opcode == TL_OP_YIELD || op->opcode == TL_OP_RETURN;
    return ends || loops || branches || op->opcode == TL_OP_LOAD ||
           (op->nregions == 0 && tl_op_is_pure(op));
}

/* ---- 3. price ---- */

static bool is_tile(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank > 0;
}

/* Is a tile needed whose dimension d moves? */
static bool needs(const Wide *w, const TlValue *v, int d)
{
    return w->drifts.dims[v->id] >> (d + 1) & 1;
}

/* Elements that a tile moves by along that dimension. */
static int64_t step_along(const Wide *w, const TlValue *v, int d)
{
    int64_t step = tl_nest_drift_step_along(&w->drifts, v, d);
    TL_ASSERT(step > 0, "value %u does not move along %d", v->id, d);
    return step;
}

/* The first dimension of a tile that moves; -1: none does, or it is no tile. */
static int dim_of(const Wide *w, const TlValue *v)
{
    for (int d = 0; is_tile(v) && d < v->type->rank; d++)
        if (needs(w, v, d))
            return d;
    return -1;
}

typedef struct Halo {
    int64_t work, again; /* for elements; of that, what the next program does again */
} Halo;

static void add_halo(const Wide *w, Halo *h, const TlOp *op)
{
    bool is_element = tl_op_info(op->opcode)->flags & F_ELEM;
    int d = op->nout == 1 ? dim_of(w, op->out[0]) : -1;
    if (d < 0 || op->out[0]->type->rank != w->drifts.rank ||
        (!is_element && op->opcode != TL_OP_LOAD))
        return;
    int64_t step = step_along(w, op->out[0], d), extent = op->out[0]->type->shape[d],
            lanes = w->lanes, padded = extent > step ? (extent + lanes - 1) / lanes * lanes : step,
            each = tl_type_elems(op->out[0]->type) / extent *
                   (is_element ? tl_elem_work(op->opcode)->cpu : 1);
    h->work += each * padded;
    h->again += each * (padded - step);
}

/* Elements of the largest tile, for each program. */
static int64_t largest(const Wide *w, const TlFn *fn)
{
    int64_t most = 1;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; i < op->nout; i++) {
            int d = dim_of(w, op->out[i]);
            const TlType *t = op->out[i]->type;
            int64_t elems =
                d < 0 ? 1 : tl_type_elems(t) / t->shape[d] * step_along(w, op->out[i], d);
            most = elems > most ? elems : most;
        }
    return most;
}

/* Vectors of so many programs' elements of a row. */
static int64_t vectors_of(const Wide *w, int64_t times)
{
    return (times * w->drifts.step + w->lanes - 1) / w->lanes;
}

/* So few programs that all vectors are full; where these are many, so few that nearly all are. 1:
 * it saves few vectors. */
static int64_t times_to_fill(const Wide *w)
{
    int64_t step = w->drifts.step, times = 1;
    while (times < MOST_TIMES && times * step % w->lanes)
        times++;
    if (times * step % w->lanes)
        for (times = 1; times * step * FULL < (FULL - 1) * vectors_of(w, times) * w->lanes;)
            times++;
    int64_t alone = times * vectors_of(w, 1);
    return (alone - vectors_of(w, times)) * LEAST_SAVED >= alone ? times : 1;
}

/* Does a select only say which elements are picked, of which they are taken without it? */
static bool only_picks(const TlOp *op)
{
    int64_t at;
    const TlUse *u = op->opcode == TL_OP_SELECT ? op->out[0]->uses : NULL;
    bool is = u != NULL;
    for (; is && u; u = u->next)
        is = u->user->opcode == TL_OP_REDUCE && tl_picked_from(u->user, &at);
    return is;
}

/* Work for a program's vectors, each of a row of its own; of the stores alone with `stores`. */
static int64_t work_of(const Wide *w, bool stores)
{
    int64_t work = 0;
    for (const TlOp *op = w->plan->fn->body->first; op; op = op->next) {
        bool is_store = op->opcode == TL_OP_STORE,
             is_element = tl_op_info(op->opcode)->flags & F_ELEM;
        const TlValue *v = is_store ? tl_op_place(op).value : op->nout == 1 ? op->out[0] : NULL;
        int d = v ? dim_of(w, v) : -1;
        if (d < 0 || (stores && !is_store) || only_picks(op))
            continue;
        int64_t extent = v->type->shape[d], vectors = (extent + w->lanes - 1) / w->lanes,
                each = is_element ? tl_elem_work(op->opcode)->cpu : 1;
        work += tl_type_elems(v->type) / extent * vectors * (is_store ? 1 : each);
    }
    return work;
}

static bool has_regions(const TlFn *fn)
{
    bool has = false;
    for (const TlOp *op = fn->body->first; op; op = op->next)
        has |= op->nregions > 0;
    return has;
}

/* So many times as many programs, for the sake of what each costs beside its work. */
static int64_t more_times(const Wide *w, int64_t times)
{
    int64_t work = work_of(w, false), row = vectors_of(w, times);
    bool light = !has_regions(w->plan->fn) && work <= LIGHT * work_of(w, true);
    return light && row < ROW && (times > 1 || work <= LITTLE) ? ROW / row : 1;
}

/* What a program loads and stores by whole tiles, and computes of what is loaded. */
typedef struct Places {
    int64_t accesses, work;
    bool reach; /* loads go further along the lanes than stores, */
    bool rows;  /* of rows of an array */
} Places;

/* Is the index that of the stores, and nothing more? */
static bool is_beside(const TlPlace *p, uint32_t axis)
{
    int64_t number = 0;
    tl_nest_without_number(p->index[axis].value, &number);
    return p->axes[axis].kind == TL_AXIS_TILE || number;
}

static Places find_places(const Wide *w)
{
    const TlFn *fn = w->plan->fn;
    bool *loaded = TL_NEW_ARRAY(w->plan->arena, bool, fn->nvalues + 1); /* of what is, computed */
    Places x = {0};
    for (const TlOp *op = fn->body->first; op; op = op->next) {
        bool is_store = op->opcode == TL_OP_STORE, is_access = is_store || op->opcode == TL_OP_LOAD,
             is_element = tl_op_info(op->opcode)->flags & F_ELEM;
        const TlValue *v = is_store ? tl_op_place(op).value : op->nout == 1 ? op->out[0] : NULL;
        if (!v || dim_of(w, v) < 0 || v->type->rank != w->drifts.rank || !(is_access || is_element))
            continue;
        bool data = is_access;
        for (uint32_t i = 0; i < op->nin; i++)
            data |= loaded[tl_in(op, i)->id];
        int64_t vectors = (tl_type_elems(v->type) + w->lanes - 1) / w->lanes;
        loaded[v->id] |= data;
        x.accesses += is_access;
        x.work += data ? vectors * (is_access ? 1 : tl_elem_work(op->opcode)->cpu) : 0;
        TlPlace p = is_access ? tl_op_place(op) : (TlPlace){0};
        x.rows |= is_store && p.naxes > 1;
        x.reach |= !is_store && p.axes && !p.pointwise && is_beside(&p, p.naxes - 1);
    }
    return x;
}

/* So many programs that a row's ends are little beside its work; 1: they are so in each. */
static int64_t times_for_ends(const Places *x)
{
    int64_t times = 1, ends = x->accesses * PLACE * ENDS_PART;
    while (ends >= x->work && times < ENDS_TIMES && ends * 2 > times * x->work)
        times *= 2;
    return times;
}

/* Sets how many programs run at once; false: it does not pay. */
static bool pays(Wide *w)
{
    const TlFn *fn = w->plan->fn;
    int64_t room = MOST_ELEMS / largest(w, fn), times = times_to_fill(w), more;
    Halo h = {0};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        add_halo(w, &h, op);
    bool narrow = times > 1, again = h.again * HALO_PART >= h.work && h.again;
    more = more_times(w, times);
    /* Not of loops, which may carry as much as registers hold. */
    Places x = has_regions(fn) || narrow || again || more > 1 ? (Places){0} : find_places(w);
    int64_t ends = x.reach && x.rows && w->drifts.rank == 1 ? times_for_ends(&x) : 1;
    bool places = ends == 1 && x.accesses >= LEAST_PLACES && x.accesses * PLACE >= x.work;
    w->plan->why_wide = narrow     ? TL_NEST_WIDE_FULL
                        : again    ? TL_NEST_WIDE_HALO
                        : ends > 1 ? TL_NEST_WIDE_ENDS
                        : places   ? TL_NEST_WIDE_PLACES
                                   : TL_NEST_WIDE_LITTLE;
    w->fills = narrow || !(again || places);
    w->plan->wide_again = w->fills && !w->drifts.reads_written;
    times = ends > 1 ? ends : w->fills ? times * more : places ? PLACES_TIMES : HALO_TIMES;
    w->times = (int)(times < room ? times : room);
    return w->times > 1;
}

/* ---- 4. widen ---- */

typedef struct Widening {
    const Wide *w;
    TlMap map; /* value, and of tiles the dimension that moves, to the new function's value */
    bool failed; /* something that must be there cannot */
} Widening;

/* The dimension of what goes with operand i of a loop, or of a region's end. */
static int dim_of_carried(const Wide *w, const TlOp *op, uint32_t i)
{
    const TlValue *to = tl_flows_to(op, i);
    return to ? dim_of(w, to) : -1;
}

/* The dimension of result i, where that of the first one is d. */
static int dim_of_result(const Wide *w, const TlOp *op, uint32_t i, int d)
{
    return op->opcode == TL_OP_FOR ? dim_of_carried(w, op, i + 3)
           : op->nregions          ? dim_of(w, op->out[i])
                                   : d;
}

static uint64_t key_of(const TlValue *v, int d)
{
    return (uint64_t)v->id * (TL_MAX_RANK + 1) + (uint64_t)(is_tile(v) ? d + 1 : 0);
}

static TlValue *mapped(Widening *x, const TlValue *v, int d)
{
    uint64_t to;
    return tl_map_get(&x->map, key_of(v, d), &to) ? (TlValue *)(uintptr_t)to : NULL;
}

static void map(Widening *x, const TlValue *v, int d, TlValue *to)
{
    to->name = v->name;
    tl_map_put(&x->map, key_of(v, d), (uint64_t)(uintptr_t)to);
}

static const TlType *wide_type(const Widening *x, const TlValue *v, int d)
{
    if (!is_tile(v) || d < 0)
        return v->type;
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, v->type->shape, sizeof shape);
    shape[d] += (int32_t)((x->w->times - 1) * step_along(x->w, v, d));
    return tl_type_with_shape(x->w->plan->fn->module->ctx, v->type, v->type->rank, shape);
}

/* The dimension of what is stored that moves. */
static int dim_of_store(const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    return tl_place_dim(&p, p.naxes - 1);
}

/* Of operand i, the dimension that moves where dimension d of the op's result does. */
static int dim_under(const Widening *x, const TlOp *op, uint32_t i, int d)
{
    if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_YIELD)
        return dim_of_carried(x->w, op, i);
    if (op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_BROADCAST ||
        op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REDUCE)
        return d < 0 ? -1 : tl_nest_drift_axis(op, d);
    if (op->opcode != TL_OP_LOAD && op->opcode != TL_OP_STORE)
        return d;
    TlPlace p = tl_op_place(op);
    uint32_t axis = (uint32_t)(&op->in[i] - p.index);
    if (&op->in[i] < p.index || axis >= p.naxes)
        return d;
    bool along = op->opcode == TL_OP_LOAD && p.axes[axis].kind == TL_AXIS_TILE;
    return along && tl_place_dim(&p, axis) == d && d >= 0 ? 0 : -1;
}

/* The slices of a place along the dimension that moves. */
static void widen_slices(const Widening *x, TlFn *fn, const TlOp *op, TlOp *made, int d)
{
    TlPlace p = tl_op_place(op);
    if (!p.axes || d < 0)
        return;
    int64_t step = step_along(x->w, op->nout ? op->out[0] : p.value, d);
    TlAxis *axes = TL_NEW_ARRAY(&fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    for (uint32_t i = 0; i < p.naxes; i++)
        if (axes[i].kind == TL_AXIS_SLICE && tl_place_dim(&p, i) == d)
            axes[i].width += (int32_t)((x->w->times - 1) * step);
    tl_attr_set(fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
}

static void widen_block(Widening *x, TlBlock *to, const TlBlock *from);

/* The op with results of which dimension d moves; of a loop, each has its own. What it is made of
 * that was not asked leads to nothing, and so does it. */
static void widen_op(Widening *x, TlBuilder *b, const TlOp *op, int d)
{
    TlArena *arena = x->w->plan->arena;
    TlValue **in = TL_NEW_ARRAY(arena, TlValue *, op->nin + 1);
    const TlType **types = TL_NEW_ARRAY(arena, const TlType *, op->nout + 1);
    for (uint32_t i = 0; i < op->nin; i++) {
        in[i] = mapped(x, tl_in(op, i), dim_under(x, op, i, d));
        x->failed |= !in[i] && (!op->nout || op->nregions);
        if (!in[i])
            return;
    }
    for (uint32_t i = 0; i < op->nout; i++)
        types[i] = wide_type(x, op->out[i], dim_of_result(x->w, op, i, d));
    b->loc = op->loc;
    TlOp *made = tl_op_like(b, op, op->nin, in, op->nout, types);
    for (uint32_t i = 0; i < op->nout; i++)
        map(x, op->out[i], dim_of_result(x->w, op, i, d), made->out[i]);
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE)
        widen_slices(x, b->fn, op, made, d);
    for (uint32_t r = 0; r < op->nregions; r++)
        widen_block(x, made->regions[r], op->regions[r]);
}

static void widen_block(Widening *x, TlBlock *to, const TlBlock *from)
{
    TlBuilder b = {.fn = to->fn, .block = to, .loc = to->fn->loc};
    to->warps = from->warps;
    to->stages = from->stages;
    for (uint32_t i = 0; i < from->nargs; i++) {
        int d = dim_of(x->w, from->args[i]);
        map(x, from->args[i], d, tl_block_arg(to, wide_type(x, from->args[i], d), NULL));
    }
    for (const TlOp *op = from->first; op; op = op->next) {
        const TlValue *v = op->nout && !op->nregions ? op->out[0] : NULL;
        if (!v || !is_tile(v))
            widen_op(x, &b, op, op->opcode == TL_OP_STORE ? dim_of_store(op) : -1);
        for (int d = -1; v && is_tile(v) && d < v->type->rank; d++)
            if (needs(x->w, v, d))
                widen_op(x, &b, op, d);
    }
}

static TlFn *widen(const Wide *w)
{
    const TlFn *of = w->plan->fn;
    TlFn *fn = TL_NEW(&of->module->arena, TlFn);
    *fn = (TlFn){.module = of->module, .name = of->name, .loc = of->loc, .info = of->info,
                 .ring = of->ring};
    fn->body = tl_block_new(fn, NULL);
    Widening x = {.w = w, .map = {.arena = w->plan->arena}};
    widen_block(&x, fn->body, of->body);
    return x.failed ? NULL : fn;
}

/* The largest element and rank that is stored. */
static void note_stores(Wide *w)
{
    for (const TlOp *op = w->plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_STORE)
            continue;
        const TlType *type = tl_op_place(op).value->type;
        int64_t lanes = w->plan->m.vector_bytes / (int64_t)tl_gen_elem_bytes(type);
        w->lanes = lanes < w->lanes ? lanes : w->lanes;
        w->drifts.rank = type->rank > w->drifts.rank ? type->rank : w->drifts.rank;
    }
}

/* Is v, or is it behind, what this program's number is so many times? */
static bool is_plain_start(const Wide *w, const TlValue *v, int64_t step)
{
    int axis;
    int64_t behind;
    const TlOp *op = tl_nest_without_number(v, &behind)->def;
    return op && behind >= 0 && tl_nest_drift_step(op, &axis) == step && axis == w->drifts.axis;
}

/* Notes the arrays that are stored to, if programs beyond the last one would store nothing. */
static void note_stored(const Wide *w)
{
    TlNests *plan = w->plan;
    plan->wide_least = plan->why_wide == TL_NEST_WIDE_ENDS
                           ? 1
                           : (w->lanes / 2 + w->drifts.step - 1) / w->drifts.step + 1;
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_STORE && op->opcode != TL_OP_LOAD)
            continue;
        TlPlace p = tl_op_place(op);
        bool stores = op->opcode == TL_OP_STORE;
        uint32_t last = p.naxes - 1;
        int64_t step = stores ? w->drifts.step * p.axes[last].step : 0;
        if (tl_attr_flag(op, TL_ATTR_UNCHECKED) ||
            (stores && (p.base->def || (plan->wide_step && plan->wide_step != step) ||
                        !is_plain_start(w, p.index[last].value, step)))) {
            plan->wide_stored.len = 0;
            return;
        }
        if (!stores)
            continue;
        plan->wide_step = step;
        tl_vec_push(plan->arena, &plan->wide_stored, p.base);
    }
}

/* Along an axis of the grid. NULL: that is not possible, or does not pay. */
static TlFn *widen_along(TlNests *plan, int axis, int64_t step, int *out_times)
{
    const TlFn *fn = plan->fn;
    Wide w = {.plan = plan, .lanes = plan->m.vector_bytes};
    w.drifts = (TlNestDrifts){.arena = plan->arena,
                              .axis = axis,
                              .loops = true,
                              .written = true,
                              .step = step,
                              .seen = {.arena = plan->arena}};
    w.drifts.dims = TL_NEW_ARRAY(plan->arena, uint32_t, fn->nvalues + 1);
    note_stores(&w);
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (!may_widen(&w, op))
            return NULL;
    if (!pays(&w))
        return NULL;
    plan->at_once_axis = axis;
    plan->wide_most = tl_nest_drift_most(&w.drifts);
    *out_times = w.times;
    if (w.fills)
        note_stored(&w);
    return widen(&w);
}

TlFn *tl_nest_widen(TlNests *plan, int *out_times)
{
    int64_t step = plan->check || !plan->fn->info ? 0 : common_step(plan->fn);
    TlFn *made = NULL;
    for (int axis = 0; step && !made && axis < 2; axis++)
        made = widen_along(plan, axis, step, out_times);
    return made;
}

static void move_homes(TlNests *plan, uint64_t by)
{
    for (uint32_t i = 0; i < plan->buffers.len; i++)
        if (!plan->buffers.data[i].small)
            plan->buffers.data[i].offset += by;
    for (uint32_t i = 0; i < plan->frames.len; i++)
        plan->frames.data[i].offset += by;
    if (plan->wide)
        move_homes(plan->wide, by);
    if (plan->fold.plan)
        move_homes(plan->fold.plan, by);
}

static void set_scratch(TlNests *plan, uint64_t bytes, uint64_t zeroed)
{
    plan->scratch_bytes = bytes;
    plan->zeroed_bytes = zeroed;
    if (plan->wide)
        set_scratch(plan->wide, bytes, zeroed);
    if (plan->fold.plan)
        set_scratch(plan->fold.plan, bytes, zeroed);
}

/* Tags come first, then the homes of the one, then those of the other. */
void tl_nest_share_scratch(TlNests *plan, TlNests *other)
{
    uint64_t zeroed = other->zeroed_bytes, homes = plan->scratch_bytes - plan->zeroed_bytes,
             bytes = other->scratch_bytes + homes;
    TL_ASSERT(zeroed >= plan->zeroed_bytes, "'%s' lost tags", plan->fn->name);
    move_homes(plan, zeroed - plan->zeroed_bytes);
    move_homes(other, homes);
    set_scratch(plan, bytes, zeroed);
    set_scratch(other, bytes, zeroed);
}
