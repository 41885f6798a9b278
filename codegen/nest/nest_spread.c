/* What is computed from loads of one pattern (nest_pattern.c), before its elements are repeated.
 *
 *     0.75 * x[j, i / 2] + 0.25 * x[k, i / 2]       loads of as many elements as there are, the
 *                                                   sum, and one shuffle instead of two
 *
 * A nest's values are taken from what it stores down: the first of which all loads have the same
 * pattern, or one that lies a number of elements on, is computed so. Where the same rows are loaded
 * by another pattern, too, whose elements lie around these (x[j, (i - 1) / 2] of i even), both read
 * the elements of both: then LLVM finds that they compute the same.
 *
 *   1. walk     the loads that a value is computed from, through ops element by element
 *   2. window   the elements of memory that all of them may read, as each lies inside
 *   3. lanes    a power of two that has room for them: a vector may end behind what is wanted,
 *               where that is inside of the array, too (reads_to) */
#include "codegen/nest/nest.h"

enum { MOST_DEPTH = 32, MOST_VISITED = 128, LEAST_LOADS = 2 };

typedef struct Spread {
    const TlNests *plan;
    const TlNest *nest;
    const TlNestAffine *like;
    int64_t lo, hi;  /* beside like's start: elements that all loads may read */
    int visited, loads;
} Spread;

/* ---- 1. walk, 2. window ---- */

static bool is_same_pattern(const TlNestAffine *a, const TlNestAffine *b)
{
    if (a->period != b->period || a->step != b->step)
        return false;
    for (int i = 1; i < a->period; i++)
        if (a->of[i] - a->of[0] != b->of[i] - b->of[0])
            return false;
    return true;
}

static bool is_same_start(const TlNestAffine *a, const TlNestAffine *b)
{
    if (a->nterms != b->nterms || a->shift != b->shift || a->offset != b->offset ||
        a->dtype != b->dtype)
        return false;
    for (uint32_t i = 0; i < a->nterms; i++)
        if (a->term[i] != b->term[i] || a->minus[i] != b->minus[i])
            return false;
    return true;
}

/* Do both load from the same rows, by patterns along the lanes that begin at the same element? */
static bool is_beside(const TlNestAccess *a, const TlNestAccess *b, int lane)
{
    const TlPlace *p = &a->place, *q = &b->place;
    if (!b->loads || p->base != q->base || p->naxes != q->naxes || !q->axes)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlNestAffine *f = &a->axis[i].affine, *g = &b->axis[i].affine;
        bool along = a->axis[i].dim == lane && f->period;
        if (along ? b->axis[i].dim != lane || g->period != f->period || g->step != f->step ||
                        !is_same_start(f, g)
                  : p->index[i].value != q->index[i].value || p->axes[i].kind != q->axes[i].kind ||
                        p->axes[i].width != q->axes[i].width || p->axes[i].step != q->axes[i].step)
            return false;
    }
    return true;
}

static bool add_load(Spread *s, const TlNestAccess *a)
{
    const TlNest *n = s->nest;
    const TlNestAffine *f = tl_nest_pattern_along(a, n->lane);
    int64_t first, span = f ? tl_nest_pattern_span(f, n->width, &first) : 0;
    bool plain = span && a->has_interval && !a->asks && !a->place.mask && !a->place.other &&
                 !a->place.pointwise && tl_dtype_bits(a->place.base->type->dtype) >= 8;
    if (!plain || (s->like && !is_same_pattern(s->like, f)))
        return false;
    s->like = s->like ? s->like : f;
    int64_t on = f->of[0] - s->like->of[0], lo = first, hi = first + span;
    for (uint32_t i = 0; i < n->asks.len; i++) {
        const TlNestAsk *ask = &n->asks.data[i];
        if (ask->lane != n->lane || ask->times != 1 || !is_beside(a, ask->access, n->lane))
            continue;
        span = tl_nest_pattern_span(tl_nest_pattern_along(ask->access, n->lane), n->width, &first);
        lo = first < lo ? first : lo;
        hi = first + span > hi ? first + span : hi;
    }
    s->lo = !s->loads || lo - on > s->lo ? lo - on : s->lo;
    s->hi = !s->loads || hi - on < s->hi ? hi - on : s->hi;
    s->loads++;
    return true;
}

static bool walk(Spread *s, const TlValue *v, int depth)
{
    const TlOp *op = v->def;
    if (v->type->rank == 0)
        return true;
    if (!op || v->type->ptr || s->plan->place[v->id].kind == TL_NEST_HOME || depth > MOST_DEPTH ||
        ++s->visited > MOST_VISITED)
        return false;
    if (op->opcode == TL_OP_LOAD)
        return add_load(s, tl_map_get_ptr(&s->plan->access, op));
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_BROADCAST)
        return op->opcode == TL_OP_CONST || tl_in(op, 0)->type->rank == 0;
    bool is = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONVERT;
    for (uint32_t i = 0; is && i < op->nin; i++)
        is = walk(s, tl_in(op, i), depth + 1);
    return is;
}

/* ---- 3. lanes ---- */

/* What it loads, now that its vectors are known. */
static void read_to(const TlNests *plan, const TlNest *n, const TlNestSpread *s, const TlValue *v,
                    int depth)
{
    const TlOp *op = v->def;
    if (v->type->rank == 0 || depth > MOST_DEPTH)
        return;
    if (op->opcode != TL_OP_LOAD) {
        for (uint32_t i = 0; i < op->nin; i++)
            read_to(plan, n, s, tl_in(op, i), depth + 1);
        return;
    }
    TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
    const TlNestAffine *f = tl_nest_pattern_along(a, n->lane);
    int64_t on = f->of[0] - s->like->of[0],
            to = on + s->first + s->lanes - (n->width / f->period - 1) * f->step;
    a->reads_to = to > a->reads_to ? to : a->reads_to;
}

static const TlNestSpread *spread_of(TlNests *plan, const TlNest *n, const TlValue *v)
{
    Spread s = {.plan = plan, .nest = n};
    if (!walk(&s, v, 0) || s.loads < LEAST_LOADS)
        return NULL;
    int64_t span = s.hi - s.lo;
    if (span > n->width)
        return NULL;
    TlNestSpread *out = TL_NEW(plan->arena, TlNestSpread);
    *out = (TlNestSpread){.nest = n, .like = s.like, .first = s.lo, .span = span, .lanes = 1};
    while (out->lanes < span)
        out->lanes *= 2;
    read_to(plan, n, out, v, 0);
    return out;
}

static void find(TlNests *plan, TlNest *n, const TlValue *v, TlMap *seen, int depth)
{
    TlOp *op = v->def;
    if (!op || v->type->rank == 0 || depth > MOST_DEPTH || tl_map_get(seen, v->id, NULL) ||
        plan->place[v->id].kind == TL_NEST_HOME || !(tl_op_info(op->opcode)->flags & F_ELEM))
        return;
    tl_map_put(seen, v->id, 1);
    const TlNestSpread *s = spread_of(plan, n, v);
    if (s && !tl_map_get_ptr(&plan->spreads, op)) {
        tl_map_put_ptr(&plan->spreads, op, (void *)(uintptr_t)s);
        tl_vec_push(plan->arena, &n->spreads, op);
        return;
    }
    for (uint32_t i = 0; i < op->nin; i++)
        find(plan, n, tl_in(op, i), seen, depth + 1);
}

void tl_nest_find_spreads(TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len && !plan->check; i++) {
        TlNest *n = plan->all.data[i];
        TlMap seen = {.arena = plan->arena};
        if (n->kind == TL_NEST_STORE && tl_nest_is_split(n) && n->width > 1 && !n->joined)
            find(plan, n, n->value, &seen, 0);
    }
}
