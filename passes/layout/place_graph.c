/* The graph of place-layouts: what decides each layout, which values must agree, and which layouts
 * are candidates (place_impl.h). */
#include "ir/plan/mma.h"
#include "passes/layout/place_impl.h"

/* ---- vars ---- */

static uint32_t new_var(Placement *p, TlOp *op, const TlLayout *own)
{
    PlaceVar v = {.op = op, .own = own, .label = PLACE_OWN, .in = -1, .out = -1};
    v.frequency = op ? tl_layout_frequency(op->block) : 1;
    tl_vec_push(p->arena, &p->vars, v);
    if (op)
        tl_map_put(&p->var_of_op, (uint64_t)(uintptr_t)op, p->vars.len - 1);
    return p->vars.len - 1;
}

static void bind(Placement *p, TlValue *v, uint32_t var)
{
    p->var_of_value[v->id] = var + 1;
    tl_vec_push(p->arena, &p->values, v);
}

/* A value that a loop or branch carries: the result and the argument that stands for it. */
static void add_carried(Placement *p, TlValue *a, TlValue *b)
{
    if (!tl_has_layout(a->type))
        return;
    uint32_t var = new_var(p, NULL, a->type->layout);
    bind(p, a, var);
    if (b)
        bind(p, b, var);
}

static void add_region_op(Placement *p, TlOp *op)
{
    bool is_while = op->opcode == TL_OP_WHILE;
    for (uint32_t i = 0; is_while && i < op->regions[0]->nargs; i++)
        add_carried(p, op->regions[0]->args[i], NULL);
    for (uint32_t i = 0; i < op->nout; i++)
        add_carried(p, op->out[i],
                    is_while                  ? op->regions[1]->args[i]
                    : op->opcode == TL_OP_FOR ? op->regions[0]->args[i + 1]
                                              : NULL);
}

static void add_op(Placement *p, TlOp *op)
{
    const TlType *first = op->nin ? tl_in(op, 0)->type : NULL;
    const TlLayout *own = op->opcode == TL_OP_REDUCE ? first->layout : tl_op_layout(op);
    if (!own)
        return;
    uint32_t var = new_var(p, op, own);
    for (uint32_t i = 0; i < op->nout; i++)
        if (tl_has_layout(op->out[i]->type))
            bind(p, op->out[i], var);
    if (op->opcode == TL_OP_RESHAPE && first->layout)
        tl_map_put_ptr(&p->reshaped_of, (void *)(uintptr_t)tl_place_key(op, own, 0), first->layout);
}

static void add_vars(Placement *p)
{
    for (TlOp *op = p->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode == TL_OP_CONVERT)
            continue;
        tl_vec_push(p->arena, &p->ops, op);
        if (tl_is_loop(op) || op->opcode == TL_OP_IF)
            add_region_op(p, op);
        else
            add_op(p, op);
    }
}

static void drop_converts(Placement *p)
{
    for (TlOp *op = p->fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (op->opcode == TL_OP_CONVERT)
            tl_bypass_convert(op);
    }
}

/* ---- edges ---- */

static void add_edge(Placement *p, TlOp *user, uint32_t operand, uint32_t to)
{
    TlValue *value = tl_in(user, operand);
    if (!tl_has_layout(value->type))
        return;
    uint32_t from = p->var_of_value[value->id] - 1;
    PlaceEdge e = {.value = value,
                   .from = from,
                   .to = to,
                   .operand = operand,
                   .user = user,
                   .next_in = p->vars.data[to].in,
                   .next_out = p->vars.data[from].out};
    p->vars.data[to].in = p->vars.data[from].out = (int32_t)p->edges.len;
    tl_vec_push(p->arena, &p->edges, e);
}

/* The op takes its operand in any layout. */
static bool has_free_layout(const TlOp *op, uint32_t operand)
{
    if (op->opcode == TL_OP_DOT)
        return operand != TL_MMA_C && (tl_is_warpgroup_dot(op) || (operand < 2 && !tl_mma_of(op)));
    return op->opcode == TL_OP_HISTOGRAM ||
           (operand == 0 && (op->opcode == TL_OP_GATHER || op->opcode == TL_OP_REGROUP));
}

static void add_op_edges(Placement *p, TlOp *op)
{
    uint32_t var;
    bool carries = false;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *to = tl_flows_to(op, i);
        if (to && tl_has_layout(to->type))
            add_edge(p, op, i, p->var_of_value[to->id] - 1);
        carries |= to != NULL;
    }
    if (carries || !tl_place_var_of_op(p, op, &var))
        return;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!has_free_layout(op, i))
            add_edge(p, op, i, var);
}

void tl_place_build(Placement *p)
{
    TL_ASSERT(p->fn && p->ctx && p->arena && !p->vars.len, "a placement that was built before");
    tl_map_init(&p->var_of_op, p->arena);
    tl_map_init(&p->wants, p->arena);
    tl_map_init(&p->reshaped_of, p->arena);
    tl_map_init(&p->again, p->arena);
    tl_map_init(&p->again_alone, p->arena);
    tl_map_init(&p->made, p->arena);
    tl_map_init(&p->origin, p->arena);
    p->nvalues = p->fn->nvalues;
    p->var_of_value = TL_NEW_ARRAY(p->arena, uint32_t, p->fn->nvalues);
    add_vars(p);
    drop_converts(p);
    for (uint32_t i = 0; i < p->ops.len; i++)
        add_op_edges(p, p->ops.data[i]);
}

/* ---- layouts that follow ---- */

const TlLayout *tl_place_layout(const Placement *p, uint32_t var, int label)
{
    TL_ASSERT(var < p->vars.len && label >= PLACE_OWN && label < p->nfamilies,
              "family %d of thing %u", label, var);
    return label == PLACE_OWN ? p->vars.data[var].own : p->families[label][var];
}

const TlLayout *tl_place_result(Placement *p, const TlValue *v, const TlLayout *l)
{
    if (!v->def || v->def->opcode != TL_OP_REDUCE)
        return l;
    return tl_layout_for_result(p->ctx, v->def, 0, l);
}

static const TlLayout *reshape_operand(Placement *p, const TlOp *op, const TlLayout *l)
{
    const TlLayout *known =
        tl_map_get_ptr(&p->reshaped_of, (void *)(uintptr_t)tl_place_key(op, l, 0));
    return known ? known : tl_layout_reshaped(p->ctx, l, op->out[0]->type, tl_in(op, 0)->type);
}

static const TlLayout *find_want(Placement *p, const TlOp *op, uint32_t i, const TlLayout *l)
{
    if (tl_flows_to(op, i) || op->opcode == TL_OP_REDUCE)
        return l;
    return op->opcode == TL_OP_RESHAPE ? reshape_operand(p, op, l)
                                       : tl_layout_for_operand(p->ctx, op, i, l);
}

const TlLayout *tl_place_want(Placement *p, const TlOp *op, uint32_t i, const TlLayout *l,
                              bool *out_ok)
{
    TL_ASSERT(i < op->nin, "operand %u of %s", i, tl_op_info(op->opcode)->text);
    *out_ok = true;
    if (!tl_has_layout(tl_in(op, i)->type))
        return NULL;
    uint64_t key = tl_place_key(op, l, i), known;
    const TlLayout *want;
    if (tl_map_get(&p->wants, key, &known)) {
        want = (const TlLayout *)(uintptr_t)known;
    } else {
        want = find_want(p, op, i, l);
        tl_map_put(&p->wants, key, (uint64_t)(uintptr_t)want);
    }
    *out_ok = want || op->opcode != TL_OP_RESHAPE;
    return want;
}

/* Is the value for one product alone, which takes it in any layout? */
static bool is_for_free_operand(const TlValue *v)
{
    const TlUse *u = v->uses;
    while (u && !u->next && u->user->nout == 1 && u->user->nregions == 0 &&
           tl_op_info(u->user->opcode)->flags & F_PURE && u->user->opcode != TL_OP_DOT)
        u = u->user->out[0]->uses;
    return u && !u->next && u->user->opcode == TL_OP_DOT &&
           has_free_layout(u->user, (uint32_t)(u - u->user->in));
}

/* The layout of what is broadcast on its way to a product that takes it in any: its own, if that is
 * made of what the operand has. No family comes from such a product, and along axes that are added
 * many layouts would do: coalesce chose this one (both halves of a byte in one thread). */
static const TlLayout *own_of_broadcast(Placement *p, const PlaceEdge *e, const TlLayout *has)
{
    const TlLayout *own = p->vars.data[e->to].own;
    bool ok;
    if (!is_for_free_operand(e->user->out[0]))
        return NULL;
    return tl_place_want(p, e->user, e->operand, own, &ok) == has ? own : NULL;
}

/* What the user's layout becomes when operand e has `has`; NULL: it does not follow. */
static const TlLayout *forward(Placement *p, const PlaceEdge *e, const TlLayout *has)
{
    const TlOp *op = e->user;
    if (!p->vars.data[e->to].op || op->opcode == TL_OP_REDUCE)
        return has;
    const TlLayout *l = tl_layout_for_result(p->ctx, op, e->operand, has);
    if (!l && op->opcode == TL_OP_BROADCAST)
        return own_of_broadcast(p, e, has);
    if (l && op->opcode == TL_OP_RESHAPE) {
        uint64_t key = tl_place_key(op, l, 0);
        if (!tl_map_get_ptr(&p->reshaped_of, (void *)(uintptr_t)key))
            tl_map_put_ptr(&p->reshaped_of, (void *)(uintptr_t)key, has);
    }
    return l;
}

/* ---- families ---- */

typedef struct Grow {
    const TlLayout **family;
    TL_VEC(uint32_t) work;
} Grow;

static void reach(Placement *p, Grow *g, uint32_t var, const TlLayout *l)
{
    const PlaceVar *v = &p->vars.data[var];
    if (!l || g->family[var] || tl_layout_registers(l) > TL_MAX_TILE_REGISTERS)
        return;
    if (v->op && l != v->own && tl_mma_of(v->op)) /* there is just one */
        return;
    g->family[var] = l;
    tl_vec_push(p->arena, &g->work, var);
}

/* Visits everything that the layout of one var leads to, backward and forward, the nearest
 * first. */
static void add_family(Placement *p, uint32_t seed, const TlLayout *l)
{
    if (p->nfamilies == PLACE_MAX_FAMILIES)
        return;
    for (int f = 0; f < p->nfamilies; f++)
        if (p->families[f][seed] == l)
            return;
    Grow g = {.family = TL_NEW_ARRAY(p->arena, const TlLayout *, p->vars.len)};
    reach(p, &g, seed, l);
    for (uint32_t at = 0; at < g.work.len; at++) {
        uint32_t var = g.work.data[at];
        const TlLayout *mine = g.family[var];
        bool ok;
        for (int32_t i = p->vars.data[var].in; i >= 0; i = p->edges.data[i].next_in) {
            const PlaceEdge *e = &p->edges.data[i];
            if (!e->value->def || e->value->def->opcode != TL_OP_REDUCE)
                reach(p, &g, e->from, tl_place_want(p, e->user, e->operand, mine, &ok));
        }
        for (int32_t i = p->vars.data[var].out; i >= 0; i = p->edges.data[i].next_out) {
            const PlaceEdge *e = &p->edges.data[i];
            reach(p, &g, e->to, forward(p, e, tl_place_result(p, e->value, mine)));
        }
    }
    if (g.work.len)
        p->families[p->nfamilies++] = g.family;
}

/* l with each warp bit that leads along `axis` exchanged for the highest register that does not:
 * what is reduced along the axis then stays in a warp, and lanes and vectors are as before. */
static const TlLayout *warps_off_axis(Placement *p, const TlLayout *l, int axis)
{
    TlLayout r = *l;
    int reg = tl_layout_in_index(&r, TL_IN_REG), warp = tl_layout_in_index(&r, TL_IN_WARP);
    int b = r.in_bits[reg] - 1;
    for (int w = 0; w < r.in_bits[warp]; w++) {
        if (!r.basis[warp][w][axis])
            continue;
        while (b >= 0 && r.basis[reg][b][axis])
            b--;
        if (b < 0)
            break;
        for (int d = 0; d < r.nout; d++) {
            int32_t image = r.basis[warp][w][d];
            r.basis[warp][w][d] = r.basis[reg][b][d];
            r.basis[reg][b][d] = image;
        }
        b--;
    }
    return tl_layout_intern(p->ctx, &r);
}

/* Each thread has neighbours along the axis, as many as it has elements; lanes and warps are along
 * the other axes first. Then a thread scans its own, and few totals are exchanged. */
static const TlLayout *run_along(Placement *p, const TlType *t, int axis)
{
    int size[TL_MAX_RANK] = {0}, lanes[TL_MAX_RANK] = {0}, warps[TL_MAX_RANK] = {0};
    int room[TL_MAX_RANK] = {0}, order[TL_MAX_RANK], n = 0, all = 0;
    for (int d = t->rank - 1; d >= 0; d--) {
        room[d] = tl_ceil_log2(t->shape[d]);
        all += room[d];
        if (d != axis)
            order[n++] = d;
    }
    order[n] = axis;
    int each = all - p->lane_bits - p->warp_bits;
    each = each < 0 ? 0 : each;
    room[axis] -= size[axis] = each < room[axis] ? each : room[axis];
    for (int in = 0; in < 2; in++) {
        int left = in ? p->warp_bits : p->lane_bits, *out = in ? warps : lanes;
        for (int k = 0; k < t->rank; k++) {
            int d = order[k];
            out[d] = left < room[d] ? left : room[d];
            room[d] -= out[d];
            left -= out[d];
        }
        out[axis] += left; /* copies: tl_layout_cover clears them */
    }
    TlLayout *l = tl_layout_blocked(p->arena, t->rank, size, lanes, warps, order);
    return tl_layout_intern(p->ctx, tl_layout_cover(p->arena, l, t->shape, order));
}

static bool is_memory(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_READ | F_WRITE);
}

static int64_t weight(const PlaceVar *v)
{
    return v->frequency * tl_layout_registers(v->own);
}

/* Memory ops, those that move most bytes first. */
static void add_memory_families(Placement *p)
{
    bool *done = TL_NEW_ARRAY(p->arena, bool, p->vars.len);
    for (;;) {
        int64_t best = -1;
        for (uint32_t i = 0; i < p->vars.len; i++) {
            const PlaceVar *v = &p->vars.data[i];
            if (!done[i] && v->op && is_memory(v->op) &&
                (best < 0 || weight(v) > weight(&p->vars.data[best])))
                best = i;
        }
        if (best < 0 || p->nfamilies == PLACE_MAX_FAMILIES)
            return;
        done[best] = true;
        add_family(p, (uint32_t)best, p->vars.data[best].own);
    }
}

void tl_place_families(Placement *p)
{
    TL_ASSERT(p->nfamilies == 0, "%d families before the first", p->nfamilies);
    for (uint32_t i = 0; i < p->vars.len; i++)
        if (p->vars.data[i].op && p->vars.data[i].op->opcode == TL_OP_DOT)
            add_family(p, i,
                       tl_mma_of(p->vars.data[i].op) ? p->vars.data[i].own
                                                     : tl_place_dot_layout(p, p->vars.data[i].op));
    add_memory_families(p);
    for (uint32_t i = 0; i < p->vars.len; i++) {
        const TlOp *op = p->vars.data[i].op;
        if (op && op->opcode == TL_OP_SCAN)
            add_family(p, i,
                       run_along(p, tl_in(op, 0)->type, (int)tl_attr_int(op, TL_ATTR_AXIS, 0)));
        if (!op || op->opcode != TL_OP_REDUCE)
            continue;
        int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
        for (int f = PLACE_OWN, n = p->nfamilies; f < n; f++) {
            const TlLayout *l = tl_place_layout(p, i, f);
            if (l)
                add_family(p, i, warps_off_axis(p, l, axis));
        }
    }
}
