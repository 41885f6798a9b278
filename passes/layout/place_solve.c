/* Choosing layouts at least cost (place_impl.h).
 *
 * The sum to be made small, each part times how often it runs:
 *  - what each op costs in its layout;
 *  - for each value and each layout that users want and it does not have: the cheaper of a convert
 *    and of computing it again in that layout, operands included (tl_place_demand).
 *
 * All vars begin with the layouts they came with. A step offers one family to all vars that it
 * reaches at once: each stays as it is or goes over. Seen as costs of vars and of pairs of them,
 * that is a minimum cut (the method is known as alpha expansion). Pairs overstate: a value with
 * three users that want one other layout needs one convert, not three. So each step is tried with
 * the costs of a pair in full and shared out among the users, and is taken only when the true sum
 * gets smaller: as a whole, or else each of the connected parts that go over for itself. Steps end
 * when no family makes it smaller, or after MOST_SWEEPS. */
#include "ir/plan/mma.h"
#include "passes/analysis/facts.h"
#include "passes/layout/min_cut.h"
#include "passes/layout/place_impl.h"
#include <string.h>

/* Bounds of the search's time, not of its results: a kernel that reaches one gets a legal choice
 * that may not be the cheapest. */
enum {
    MOST_SWEEPS = 4, /* over all families, each of which begins where the last one ended */
    MOST_PARTS = 16, /* of a cut that are tried by themselves where the whole does not pay */
    MOST_DEPTH = 24  /* of a chain of values that is priced to be computed again: recursion */
};

#define NEVER (INT64_MAX / 4)

/* ---- computing again ---- */

static bool is_repeatable(const TlOp *op)
{
    if (!op || op->nregions || op->nout != 1)
        return false;
    const TlOpInfo *info = tl_op_info(op->opcode);
    bool takes_shared = tl_op_optional_attrs(op->opcode) >> TL_ATTR_SHARED & 1;
    return (info->flags & F_PURE) && !takes_shared;
}

static int64_t frequency_of(const TlValue *v)
{
    return tl_layout_frequency(v->def ? v->def->block : v->block);
}

static const TlLayout *current(Placement *p, const TlValue *v)
{
    uint32_t var = p->var_of_value[v->id] - 1;
    return tl_place_result(p, v, tl_place_layout(p, var, p->vars.data[var].label));
}

/* What recomputation starts from: operands in their present layouts, or only scalars, which holds
 * whatever the labels are. */
typedef enum Basis { BY_LABELS, BY_SCALARS } Basis;

static int64_t cost_again(Placement *p, const TlValue *v, const TlLayout *l, Basis basis,
                          int depth);

/* Is the value loaded in a loop, for products alone? */
static bool is_staged(const TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_LOAD || !tl_enclosing_loop(v->def))
        return false;
    for (const TlUse *u = v->uses; u; u = u->next)
        if (u->user->opcode != TL_OP_DOT || u - u->user->in >= TL_MMA_C)
            return false;
    return v->uses != NULL;
}

static int64_t convert_cost(Placement *p, const TlValue *v, const TlLayout *has, const TlLayout *l)
{
    int64_t cost = tl_layout_convert_cost(&p->cost, v->type, has, l), staged;
    bool less = is_staged(v) && tl_layout_staged_cost(&p->cost, v->def, has, l, &staged) &&
                staged < cost;
    return less ? staged : cost;
}

static int64_t cost_demand(Placement *p, const TlValue *v, const TlLayout *has, const TlLayout *l,
                           Basis basis, int depth, bool *out_again)
{
    *out_again = false;
    if (has == l)
        return 0;
    int64_t by_convert = convert_cost(p, v, has, l) * frequency_of(v);
    int64_t by_again = cost_again(p, v, l, basis, depth);
    *out_again = by_again <= by_convert;
    return *out_again ? by_again : by_convert;
}

static int64_t operands_again(Placement *p, const TlOp *op, const TlLayout *l, Basis basis,
                              int depth)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < op->nin && sum < NEVER; i++) {
        bool ok, again;
        const TlLayout *want = tl_place_want(p, op, i, l, &ok);
        if (!ok)
            return NEVER;
        if (!want)
            continue;
        const TlValue *v = tl_place_operand(p, op, i);
        sum += basis == BY_SCALARS ? cost_again(p, v, want, basis, depth)
                                   : cost_demand(p, v, current(p, v), want, basis, depth, &again);
    }
    return sum;
}

static int64_t cost_again(Placement *p, const TlValue *v, const TlLayout *l, Basis basis, int depth)
{
    if (depth > MOST_DEPTH || !is_repeatable(v->def) ||
        tl_layout_registers(l) > TL_MAX_TILE_REGISTERS)
        return NEVER;
    TlMap *map = basis == BY_SCALARS ? &p->again_alone : &p->again;
    uint64_t key = tl_place_key(v, l, 0), known;
    if (tl_map_get(map, key, &known))
        return (int64_t)known;
    int64_t cost = frequency_of(v) * tl_layout_op_cost(&p->cost, v->def, l);
    cost += operands_again(p, v->def, l, basis, depth + 1);
    cost = cost > NEVER ? NEVER : cost;
    tl_map_put(map, key, (uint64_t)cost);
    return cost;
}

int64_t tl_place_demand(Placement *p, const TlValue *v, const TlLayout *l, bool *out_again)
{
    TL_ASSERT(l && v->id < p->nvalues, "value %u is new", v->id);
    return cost_demand(p, v, current(p, v), l, BY_LABELS, 0, out_again);
}

/* ---- the sum ---- */

static int64_t var_cost(Placement *p, uint32_t var, const TlLayout *l)
{
    const PlaceVar *v = &p->vars.data[var];
    return v->op ? v->frequency * tl_layout_op_cost(&p->cost, v->op, l) : 0;
}

static int64_t edge_cost(Placement *p, const PlaceEdge *e, const TlLayout *from, const TlLayout *to,
                         Basis basis)
{
    bool ok, again;
    const TlLayout *want = tl_place_want(p, e->user, e->operand, to, &ok);
    if (!ok)
        return NEVER / 1024;
    if (!want)
        return 0;
    return cost_demand(p, e->value, tl_place_result(p, e->value, from), want, basis, 0, &again);
}

/* Each value and wanted layout counts once. */
static int64_t total(Placement *p)
{
    TlArena seen_arena;
    tl_arena_init(&seen_arena, p->arena->alloc);
    TlMap seen = {.arena = &seen_arena};
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->vars.len; i++)
        sum += var_cost(p, i, tl_place_layout(p, i, p->vars.data[i].label));
    for (uint32_t i = 0; i < p->edges.len; i++) {
        const PlaceEdge *e = &p->edges.data[i];
        const TlLayout *from = tl_place_layout(p, e->from, p->vars.data[e->from].label),
                       *to = tl_place_layout(p, e->to, p->vars.data[e->to].label);
        bool ok;
        const TlLayout *want = tl_place_want(p, e->user, e->operand, to, &ok);
        uint64_t key = tl_place_key(e->value, want, 0);
        if (tl_map_get(&seen, key, NULL))
            continue;
        tl_map_put(&seen, key, 1);
        sum += edge_cost(p, e, from, to, BY_LABELS);
    }
    tl_arena_free(&seen_arena);
    return sum;
}

/* ---- steps ---- */

static void forget(Placement *p)
{
    tl_map_init(&p->again, p->arena);
}

static uint32_t *count_users(Placement *p, TlArena *arena)
{
    uint32_t *n = TL_NEW_ARRAY(arena, uint32_t, p->fn->nvalues);
    for (uint32_t i = 0; i < p->edges.len; i++)
        n[p->edges.data[i].value->id]++;
    return n;
}

/* The layouts of a var when it stays (0) and when it goes over to f (1); equal when it cannot, or
 * need not: a constant is there in any layout. */
static void options(Placement *p, uint32_t var, int f, const TlLayout *out[2])
{
    const PlaceVar *v = &p->vars.data[var];
    out[0] = tl_place_layout(p, var, v->label);
    bool stays = !p->families[f][var] || (v->op && v->op->opcode == TL_OP_CONST);
    out[1] = stays ? out[0] : p->families[f][var];
}

static void add_pair(Placement *p, TlCut *cut, const PlaceEdge *e, int f, int64_t share)
{
    const TlLayout *from[2], *to[2];
    int64_t cost[2][2];
    options(p, e->from, f, from);
    options(p, e->to, f, to);
    if (from[0] == from[1] && to[0] == to[1])
        return;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            cost[i][j] = edge_cost(p, e, from[i], to[j], BY_SCALARS) / share;
    if (e->from == e->to)
        tl_cut_one(cut, e->from, cost[0][0], cost[1][1]);
    else
        tl_cut_two(cut, e->from, e->to, cost);
}

/* Chooses the vars that change to family f. */
static void cut(Placement *p, TlArena *arena, int f, bool shared, bool *out)
{
    TlCut *c = tl_cut_new(arena, p->vars.len);
    const uint32_t *users = count_users(p, arena);
    for (uint32_t i = 0; i < p->vars.len; i++) {
        const TlLayout *l[2];
        options(p, i, f, l);
        if (l[0] != l[1])
            tl_cut_one(c, i, var_cost(p, i, l[0]), var_cost(p, i, l[1]));
    }
    for (uint32_t i = 0; i < p->edges.len; i++) {
        const PlaceEdge *e = &p->edges.data[i];
        add_pair(p, c, e, f, shared ? users[e->value->id] : 1);
    }
    tl_cut_solve(c, out);
}

/* What goes over in one step: part[var] is 0, or the number (from 1) of a set of vars that go over
 * and have to do with each other. */
typedef struct Parts {
    uint32_t *part, n;
} Parts;

static uint32_t root(uint32_t *parent, uint32_t x)
{
    while (parent[x] != x)
        x = parent[x] = parent[parent[x]];
    return x;
}

static Parts find_parts(Placement *p, TlArena *arena, int f, const bool *over)
{
    Parts parts = {TL_NEW_ARRAY(arena, uint32_t, p->vars.len), 0};
    uint32_t *parent = TL_NEW_ARRAY(arena, uint32_t, p->vars.len);
    bool *goes = TL_NEW_ARRAY(arena, bool, p->vars.len);
    for (uint32_t i = 0; i < p->vars.len; i++) {
        const TlLayout *l[2];
        options(p, i, f, l);
        parent[i] = i;
        goes[i] = over[i] && l[0] != l[1];
    }
    for (uint32_t i = 0; i < p->edges.len; i++) {
        const PlaceEdge *e = &p->edges.data[i];
        if (goes[e->from] && goes[e->to])
            parent[root(parent, e->from)] = root(parent, e->to);
    }
    for (uint32_t i = 0; i < p->vars.len; i++)
        if (goes[i] && root(parent, i) == i)
            parts.part[i] = ++parts.n;
    for (uint32_t i = 0; i < p->vars.len; i++)
        if (goes[i])
            parts.part[i] = parts.part[root(parent, i)];
    return parts;
}

/* Changes one part (0: all) to f. False: the sum would not get smaller, and nothing has changed. */
static bool go(Placement *p, TlArena *arena, int f, const Parts *parts, uint32_t part, int64_t *sum)
{
    int *before = TL_NEW_ARRAY(arena, int, p->vars.len);
    for (uint32_t i = 0; i < p->vars.len; i++) {
        before[i] = p->vars.data[i].label;
        if (part ? parts->part[i] == part : parts->part[i])
            p->vars.data[i].label = f;
    }
    forget(p);
    int64_t now = total(p);
    if (now < *sum) {
        *sum = now;
        return true;
    }
    for (uint32_t i = 0; i < p->vars.len; i++)
        p->vars.data[i].label = before[i];
    forget(p);
    return false;
}

static bool solve_step(Placement *p, int f, bool shared, int64_t *sum)
{
    TlArena arena;
    tl_arena_init(&arena, p->arena->alloc);
    bool *over = TL_NEW_ARRAY(&arena, bool, p->vars.len);
    cut(p, &arena, f, shared, over);
    Parts parts = find_parts(p, &arena, f, over);
    bool better = parts.n && go(p, &arena, f, &parts, 0, sum);
    uint32_t n = better || parts.n < 2 ? 0 : parts.n < MOST_PARTS ? parts.n : MOST_PARTS;
    for (uint32_t i = 1; i <= n; i++)
        better |= go(p, &arena, f, &parts, i, sum);
    tl_arena_free(&arena);
    return better;
}

void tl_place_solve(Placement *p)
{
    TL_ASSERT(p->nfamilies <= PLACE_MAX_FAMILIES, "%d families", p->nfamilies);
    forget(p);
    int64_t sum = total(p);
    bool better = true;
    for (int sweep = 0; sweep < MOST_SWEEPS && better; sweep++) {
        better = false;
        for (int f = 0; f < p->nfamilies; f++)
            for (int shared = 0; shared < 2; shared++)
                better |= solve_step(p, f, shared, &sum);
    }
}
