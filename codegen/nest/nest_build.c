/* The nests of a function, in the order of control flow: one for each op that fills a home, stores,
 * reduces and so on, with its width and how it is split; and the passes in their order. */
#include "codegen/nest/nest.h"
#include "passes/analysis/picked.h"

/* ---- ops ---- */

/* Vectors of all values: each to its place; or interleaved, and at the ends each element by
 * itself. */
static void build_joined(TlNests *plan, const TlNestJoined *j)
{
    TlNestAccess *last = j->store[j->n - 1];
    /* the first of those that are interleaved ends last */
    TlNestAccess *box = j->one_box ? last : j->apart ? NULL : j->store[0];
    TlNest *n = tl_nest_new(plan, TL_NEST_STORE, last->op, last->place.value->type);
    int lane = n->form.lane, limit = TL_NEST_LANES;
    n->value = last->place.value;
    n->joined = j;
    if (!j->apart) {
        limit = plan->m.vector_bytes / (int)tl_gen_elem_bytes(&n->type);
        n->limit = "a register";
    }
    for (int k = 0; k < j->n; k++)
        limit = tl_nest_width(plan, j->store[k]->place.value, limit, false, &n->limit);
    n->width = tl_nest_fit_width(n->form.padded[lane], limit);
    if (box)
        tl_nest_ask_store(plan, n, box, lane);
    n->store = last;
    for (int k = 0; k < j->n; k++) {
        if (j->store[k] != box)
            tl_nest_ask_access(plan, n, j->store[k], lane);
        tl_nest_ask_value(plan, n, j->store[k]->place.value, lane, false);
    }
    tl_nest_split(plan, n, n->form.extent[lane], n->width);
    if (!j->apart && !plan->m.masks)
        n->tested = 1;
}

static void build_store(TlNests *plan, TlOp *op)
{
    TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
    const TlNestJoined *j = tl_nest_joined(plan, op);
    if (j) {
        if (j->store[j->n - 1]->op == op)
            build_joined(plan, j);
        return;
    }
    TlValue *v = a->place.value;
    TlNest *n = tl_nest_new(plan, TL_NEST_STORE, op, v->type);
    n->value = v;
    if (v->type->rank == 0) {
        n->store = a;
        n->end = 0;
        return;
    }
    int lane = n->form.lane, limit = tl_nest_access_width(plan, a, TL_NEST_LANES, &n->limit);
    limit = tl_nest_width(plan, v, limit, false, &n->limit);
    if (a->place.mask)
        limit = tl_nest_width(plan, a->place.mask, limit, false, &n->limit);
    n->width = tl_nest_fit_width(n->form.padded[lane], limit);
    tl_nest_ask_store(plan, n, a, lane);
    tl_nest_ask_value(plan, n, v, lane, false);
    tl_nest_split(plan, n, n->form.extent[lane], n->width);
}

/* Floats side by side, 16 bytes at a time: a locked exchange takes as long for them as for one. */
static int group_of(const TlNests *plan, const TlNestAccess *a, const TlNest *n)
{
    enum { GROUP_BYTES = 16 };
    const TlOp *op = a->op;
    TlDtype d = n->type.dtype;
    int lanes = GROUP_BYTES / tl_dtype_bytes(d);
    bool may = op->opcode == TL_OP_ATOMIC_RMW && tl_attr_int(op, TL_ATTR_RMW, 0) != TL_RMW_XCHG &&
               tl_is_float(d) && n->form.rank && !op->out[0]->uses && !plan->check &&
               a->place.axes && a->bounds && !a->place.mask &&
               tl_nest_is_contiguous(a, n->form.lane) && n->form.extent[n->form.lane] % lanes == 0;
    const char *unused;
    return may && tl_nest_width(plan, a->place.value, lanes, false, &unused) == lanes ? lanes : 1;
}

static void build_atomic(TlNests *plan, TlOp *op)
{
    TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
    TlType type = tl_nest_accessed(a);
    TlNest *n = tl_nest_new(plan, TL_NEST_ATOMIC, op, &type);
    n->value = a->place.value;
    int lanes = group_of(plan, a, n);
    if (lanes > 1) {
        tl_nest_ask_access(plan, n, a, n->form.lane);
        tl_nest_ask_value(plan, n, n->value, n->form.lane, false);
        tl_nest_split(plan, n, n->form.extent[n->form.lane], lanes);
    }
    n->groups = n->split == TL_NEST_SPLIT;
    n->width = n->groups ? lanes : 1;
    n->tested = 1;
    n->end = n->groups ? n->end : 0;
}

static void build_histogram(TlNests *plan, TlOp *op)
{
    enum { COUNTED_LANES = 16 };
    uint64_t home = 0;
    bool placed = tl_map_get(&plan->extra, (uint64_t)(uintptr_t)op, &home);
    TL_ASSERT(placed, "a histogram without tables");
    TlValue *v = tl_in(op, 0);
    TlNest *n = tl_nest_new(plan, TL_NEST_COUNT, op, v->type);
    n->value = v;
    n->home = (int32_t)home;
    n->tables = tl_nest_tables(op);
    n->limit = "values are counted one by one";
    int lane = n->form.lane;
    if (n->form.rank) {
        int width = COUNTED_LANES;
        for (uint32_t i = 0; i < op->nin; i++)
            width = tl_nest_width(plan, tl_in(op, i), width, false, &n->limit);
        n->width = tl_nest_fit_width(n->form.padded[lane], width);
        for (uint32_t i = 0; i < op->nin; i++)
            tl_nest_ask_value(plan, n, tl_in(op, i), lane, false);
        tl_nest_split(plan, n, n->form.extent[lane], n->width);
        if (op->nin == 1)
            n->counted = tl_nest_counted(plan, v, lane);
    } else {
        n->end = 0;
    }
    TlNest *sum = tl_nest_new(plan, TL_NEST_ADD, op, op->out[0]->type);
    sum->home = plan->place[op->out[0]->id].buffer;
    sum->tables = n->tables;
    tl_nest_take_whole(sum, plan->m.vector_bytes / tl_dtype_bytes(op->out[0]->type->dtype));
}

/* Every element by itself. */
static void build_each(TlNests *plan, TlOp *op)
{
    TlNest *n = tl_nest_new(plan, TL_NEST_EACH, op, tl_in(op, 0)->type);
    uint64_t home;
    n->value = tl_in(op, 0);
    n->end = 0;
    if (tl_map_get(&plan->extra, (uint64_t)(uintptr_t)op, &home))
        n->home = (int32_t)home;
}

static void build_picked(TlNests *plan, TlOp *op, TlValue *from, int64_t at)
{
    const TlType *type = op->out[0]->type;
    TlNest *n = tl_nest_new(plan, TL_NEST_PICK, op, type);
    n->value = from;
    n->axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    n->picked = at;
    n->end = 0;
    if (type->rank == 0)
        return;
    int limit = plan->m.vector_bytes / (int)tl_gen_elem_bytes(type);
    tl_nest_take_whole(n, tl_nest_width(plan, from, limit, false, &n->limit));
    n->home = plan->place[op->out[0]->id].buffer;
}

static void build_block(TlNests *plan, TlBlock *block);

/* What a combiner has of its own is of scalars. */
static void build_combiner(TlNests *plan, TlOp *op)
{
    for (uint32_t r = 0; r < op->nregions; r++)
        build_block(plan, op->regions[r]);
}

static void build_reduce(TlNests *plan, TlOp *op)
{
    int64_t at;
    TlValue *from = tl_picked_from(op, &at);
    TlNestQuads quads;
    if (plan->place[op->out[0]->id].kind == TL_NEST_VIRTUAL)
        return;
    if (tl_nest_quads(plan, op, &quads))
        tl_nest_define(plan, op);
    else if (from)
        build_picked(plan, op, from, at);
    else if (!tl_map_get(&plan->fused, (uint64_t)(uintptr_t)op, NULL)) /* else it is done already */
        tl_nest_build_reduce(plan, op, op, NULL);
    build_combiner(plan, op);
}

static void build_scan(TlNests *plan, TlOp *op)
{
    tl_nest_build_scan(plan, op);
    build_combiner(plan, op);
}

static void build_assume(TlNests *plan, TlOp *op)
{
    if (plan->check)
        build_each(plan, op);
}

static void build_pure(TlNests *plan, TlOp *op)
{
    TlValue *v = op->nout == 1 ? op->out[0] : NULL;
    if (!v || v->type->kind != TL_TILE || v->type->rank == 0 ||
        plan->place[v->id].kind != TL_NEST_HOME)
        return;
    TlOp *reduce = tl_map_get_ptr(&plan->fused, op);
    if (reduce)
        tl_nest_build_reduce(plan, op, reduce, v);
    else
        tl_nest_define(plan, op);
}

static void build_for(TlNests *plan, TlOp *op)
{
    tl_nest_move(plan, op, 3, op->nout, op->out);
    const TlNestProduct *p = tl_map_get_ptr(&plan->products, op);
    if (p)
        tl_nest_build_product(plan, p);
    build_block(plan, op->regions[0]);
    if (!p)
        tl_nest_move(plan, op->regions[0]->last, 0, op->nout, op->out);
}

static void build_while(TlNests *plan, TlOp *op)
{
    TlBlock *before = op->regions[0], *after = op->regions[1];
    tl_nest_move(plan, op, 0, op->nin, before->args);
    build_block(plan, before);
    tl_nest_move(plan, before->last, 1, op->nout, op->out);
    build_block(plan, after);
    tl_nest_move(plan, after->last, 0, before->nargs, before->args);
}

static void build_if(TlNests *plan, TlOp *op)
{
    for (uint32_t r = 0; r < op->nregions; r++) {
        build_block(plan, op->regions[r]);
        tl_nest_move(plan, op->regions[r]->last, 0, op->nout, op->out);
    }
}

static void build_dot(TlNests *plan, TlOp *op)
{
    if (op->block->parent && tl_map_get(&plan->products, (uint64_t)(uintptr_t)op->block->parent,
                                        NULL))
        return;
    const TlNestProduct *lone = tl_map_get_ptr(&plan->products, op);
    if (lone) {
        tl_nest_build_lone_product(plan, lone);
        return;
    }
    uint64_t pack = 0;
    TL_ASSERT(tl_map_get(&plan->extra, (uint64_t)(uintptr_t)op, &pack), "dot without room");
    tl_nest_build_dot(plan, op, (int32_t)pack);
}

/* Ops that are in no row have a nest only if their result has a home (build_pure). */
static void (*const BUILDERS[TL_OP_COUNT])(TlNests *plan, TlOp *op) = {
    [TL_OP_FOR] = build_for,
    [TL_OP_WHILE] = build_while,
    [TL_OP_IF] = build_if,
    [TL_OP_STORE] = build_store,
    [TL_OP_ATOMIC_RMW] = build_atomic,
    [TL_OP_ATOMIC_CAS] = build_atomic,
    [TL_OP_ATOMIC_LOAD] = build_atomic,
    [TL_OP_ATOMIC_STORE] = build_atomic,
    [TL_OP_REDUCE] = build_reduce,
    [TL_OP_SCAN] = build_scan,
    [TL_OP_DOT] = build_dot,
    [TL_OP_HISTOGRAM] = build_histogram,
    [TL_OP_PRINT] = build_each,
    [TL_OP_ASSUME] = build_assume,
    [TL_OP_ASSERT] = build_each};

static void build_block(TlNests *plan, TlBlock *block)
{
    for (TlOp *op = block->first; op; op = op->next)
        (BUILDERS[op->opcode] ? BUILDERS[op->opcode] : build_pure)(plan, op);
}

/* ---- the passes ---- */

static TlNests *new_plan(const TlFn *fn, const TlNestMachine *m, bool check, TlArena *arena)
{
    TlNests *plan = TL_NEW(arena, TlNests);
    *plan = (TlNests){.fn = fn, .arena = arena, .m = *m, .check = check, .at_once = 1};
    TlMap *maps[] = {&plan->extra, &plan->products, &plan->fused,   &plan->access, &plan->joined,
                     &plan->moves, &plan->first,    &plan->spreads, &plan->rare,   &plan->rows};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        tl_map_init(maps[i], arena);
    return plan;
}

static void verify(const TlNests *plan)
{
    TlSbuf fault;
    tl_sbuf_init(&fault, plan->arena);
    TL_ASSERT(tl_nest_verify(plan, &fault), "'%s': %s", plan->fn->name,
              fault.text ? fault.text : "");
}

static void verify_all(const TlNests *plan)
{
    verify(plan);
    if (plan->wide)
        verify(plan->wide);
    if (plan->fold.plan)
        verify_all(plan->fold.plan);
    if (plan->apart.plan)
        verify_all(plan->apart.plan);
}

static void run_passes(TlNests *plan)
{
    plan->axis = tl_axis_info(plan->fn, plan->arena);
    tl_nest_find_accesses(plan);
    tl_nest_find_moves(plan);
    tl_nest_join_stores(plan);
    tl_nest_place(plan);
    tl_nest_find_ways(plan);
    build_block(plan, plan->fn->body);
    tl_nest_find_strips(plan);
    tl_nest_find_spreads(plan);
    tl_nest_find_rare(plan);
    tl_nest_find_whole(plan);
    tl_nest_find_columns(plan);
    tl_nest_keep(plan);
    tl_nest_find_wanted(plan);
    if (!plan->rows_apart)
        tl_nest_find_down(plan);
    tl_nest_assign_offsets(plan);
    tl_nest_stream(plan);
    if (!plan->rows_apart) { /* elements of a vector have one distance */
        tl_nest_prefetch(plan);
        tl_nest_find_sliding(plan);
        tl_nest_find_frames(plan);
        tl_nest_place_frames(plan);
        tl_nest_find_abreast(plan);
    }
    verify(plan);
}

/* With other plans' tags at its beginning. */
static TlNests *plan_function(const TlFn *fn, const TlNestMachine *m, bool check, TlArena *arena,
                              uint64_t zeroed_bytes)
{
    TlNests *plan = new_plan(fn, m, check, arena);
    plan->zeroed_bytes = zeroed_bytes;
    int times = 1;
    TlFn *several = tl_nest_widen(plan, &times), *piece = several ? NULL : tl_nest_cut(plan);
    if (piece) {
        plan->pieces = new_plan(piece, m, check, arena);
        run_passes(plan->pieces);
        return plan;
    }
    TlFn *flat = check ? NULL : tl_nest_flatten(fn, m, arena, &plan->rows);
    int64_t lead = 0, wide_lead = 0;
    TlFn *led = check || flat ? NULL : tl_nest_lead(fn, m, arena, &lead),
         *led_wide = check || !several ? NULL : tl_nest_lead(several, m, arena, &wide_lead);
    plan->fn = flat ? flat : led ? led : plan->fn;
    plan->lead = lead;
    run_passes(plan);
    bool ends = plan->why_wide == TL_NEST_WIDE_ENDS,
         places = ends || plan->why_wide == TL_NEST_WIDE_PLACES;
    if (!several || (ends && plan->buffers.len)) /* homes of a row would be long */
        return plan;
    TlNests *wide = new_plan(led_wide ? led_wide : several, m, check, arena);
    wide->lead = wide_lead;
    wide->at_once = times;
    wide->at_once_axis = plan->at_once_axis;
    wide->zeroed_bytes = plan->zeroed_bytes;
    run_passes(wide);
    if (places && plan->abreast && !wide->abreast) /* these find fewer places still */
        return plan;
    if (ends && wide->abreast && plan->wide_stored.len) /* hardly any run by themselves */
        plan->abreast = NULL;
    tl_nest_share_scratch(plan, wide);
    plan->wide = wide;
    verify_all(plan);
    return plan;
}

/* Of rows that may lie apart, one program at a time. */
static TlNests *plan_rows_apart(const TlNestFold *fold, const TlNestMachine *m, TlArena *arena,
                                uint64_t zeroed_bytes)
{
    TlNests *plan = new_plan(fold->fn, m, false, arena);
    plan->zeroed_bytes = zeroed_bytes;
    plan->rows_apart = fold->row;
    run_passes(plan);
    return plan;
}

/* Another function for launches of which more is known. */
static void add_fold(TlNests *plan, TlNestFold *to, const TlNestFold *fold)
{
    TlNests *made = fold->apart ? plan_rows_apart(fold, &plan->m, plan->arena, plan->zeroed_bytes)
                                : plan_function(fold->fn, &plan->m, plan->check, plan->arena,
                                                plan->zeroed_bytes);
    if (made->pieces)
        return;
    made->fold = (TlNestFold){
        .row = fold->row, .work = fold->work, .more = fold->more, .apart = fold->apart};
    made->alone = fold->alone;
    if (made->wide)
        made->wide->alone = fold->alone;
    tl_nest_share_scratch(plan, made);
    *to = *fold;
    to->plan = made;
}

static TlNests *plan_launch(const TlFn *fn, const TlNestMachine *m, bool check, TlArena *arena)
{
    TlNestFold none = {0}, fold = check ? none : tl_nest_fold(fn, m, false, arena),
               apart = check ? none : tl_nest_fold(fn, m, true, arena);
    if (!check && !fold.fn)
        fold = tl_nest_dense(fn, arena);
    bool always = fold.fn && !tl_nest_fold_asks(&fold),
         always_apart = !always && apart.fn && !tl_nest_fold_asks(&apart);
    TlNests *plan = always_apart ? plan_rows_apart(&apart, m, arena, 0)
                                 : plan_function(always ? fold.fn : fn, m, check, arena, 0);
    if (always || always_apart)
        plan->fold = always ? fold : apart;
    if (always || plan->pieces)
        return plan;
    if (fold.fn)
        add_fold(plan, &plan->fold, &fold);
    if (apart.fn && !always_apart)
        add_fold(plan, &plan->apart, &apart);
    verify_all(plan);
    return plan;
}

TlNests *tl_nest_plan(const TlFn *fn, const TlNestMachine *m, bool check, TlArena *arena)
{
    TL_ASSERT(fn->body && fn->module, "'%s' has no body", fn->name);
    TlFn *pairs = check ? NULL : tl_nest_pair_trips(fn, m, arena);
    TlNests *plan = pairs ? plan_launch(pairs, m, check, arena) : NULL;
    if (!plan || !tl_nest_goes_down(plan))
        return plan_launch(fn, m, check, arena);
    plan->paired = true;
    return plan;
}
