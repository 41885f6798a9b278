/* Passes over the row: which op is computed in which, and their directions (chunk_impl.h).
 *
 * A reduction along the axis ends a pass; what needs its result belongs to later ones. An access
 * that writes, and a reduction, happen in one pass; everything else in each pass that needs it.
 * What is not of the group and stands among its ops comes before the first pass that needs it, and
 * after those that it needs.
 *
 * A scan goes one way, and so does a pass. Each level has two slots for passes, 2 * level for one
 * that goes forward and 2 * level + 1 for one that goes backward. An op that happens once takes the
 * slot of the scans that it is computed from; one that is computed from none takes the slot that is
 * in use. What is computed from scans of both directions cannot be cut: no pass has the elements of
 * both at hand. Slots that stay empty are no passes.
 *
 * Memory must look the same to each access:
 *  - what loads read in several passes, or later than they stand, nobody writes meanwhile: it is
 *    constant, or of an array that the group does not write (what other programs write without
 *    atomics is a race in any case, and there are no atomics among the group's ops);
 *  - an array that the group writes is accessed by it only in one place, a slice of a view whose
 *    elements are apart, where each chunk is read before it is written;
 *  - no op among those of the group touches what the group writes, or writes what it reads. */
#include "passes/analysis/facts.h"
#include "passes/simplify/chunk_impl.h"

enum { MOST_SLOTS = 30 }; /* passes over a row: bits of an unsigned, two to spare */
_Static_assert(2 * TL_CHUNK_MOST_LEVELS <= MOST_SLOTS, "passes are bits of an unsigned");

/* ---- levels ---- */

static int level_of(const int *levels, const TlOp *op)
{
    int level = 0;
    for (uint32_t i = 0; i < op->nin; i++) {
        int l = levels[tl_in(op, i)->id];
        level = l > level ? l : level;
    }
    return level;
}

/* With the ops inside, whose own results have level 0. */
static int level_of_all(const int *levels, const TlOp *op)
{
    int level = level_of(levels, op);
    for (const TlOp *in = tl_walk_next(op, op); in; in = tl_walk_next(in, op)) {
        int l = level_of(levels, in);
        level = l > level ? l : level;
    }
    return level;
}

static bool is_once(const TlChunkOp *m)
{
    return m->op->opcode == TL_OP_STORE || m->op->opcode == TL_OP_ATOMIC_RMW ||
           tl_chunk_result_axis(m->op, m->axis) == TL_CHUNK_WHOLE;
}

unsigned tl_chunk_way(const TlOp *op, int axis)
{
    if (op->opcode != TL_OP_SCAN || tl_attr_int(op, TL_ATTR_AXIS, 0) != axis)
        return 0;
    return tl_attr_flag(op, TL_ATTR_REVERSE) ? TL_CHUNK_BACKWARD : TL_CHUNK_FORWARD;
}

/* Its own direction, and those of what is computed in the same pass for it. */
static unsigned ways_of(const TlChunkGroup *g, const TlChunkOp *m)
{
    unsigned ways = tl_chunk_way(m->op, m->axis);
    for (uint32_t i = 0; i < m->op->nin; i++) {
        const TlChunkOp *x = tl_chunk_member(g, tl_in(m->op, i)->def);
        ways |= x && !is_once(x) ? x->ways : 0;
    }
    return ways;
}

static void find_member_level(const TlChunkGroup *g, int *levels, TlChunkOp *m)
{
    m->level = level_of_all(levels, m->op);
    m->ways = ways_of(g, m);
    bool ends = m->op->opcode == TL_OP_REDUCE &&
                tl_chunk_result_axis(m->op, m->axis) == TL_CHUNK_WHOLE;
    for (uint32_t r = 0; r < m->op->nout; r++)
        levels[m->op->out[r]->id] = m->level + ends;
}

static void find_levels(TlChunkGroup *g)
{
    int *levels = TL_NEW_ARRAY(g->arena, int, g->fn->nvalues), effects = 0;
    for (uint32_t i = 0; i < g->fn->nvalues; i++)
        levels[i] = 0;
    uint32_t seen = 0;
    for (; seen < g->ops.len && g->ops.data[seen].op->block != g->block; seen++)
        find_member_level(g, levels, &g->ops.data[seen]);
    bool begun = false;
    for (TlOp *op = g->block->first; seen < g->ops.len; op = op->next) {
        TlChunkOp *m = tl_chunk_member(g, op);
        if (m) {
            find_member_level(g, levels, m);
            begun = true, seen++;
            continue;
        }
        int level = level_of_all(levels, op);
        if (!tl_op_is_pure(op)) {
            level = level > effects ? level : effects;
            effects = level;
        }
        for (uint32_t r = 0; r < op->nout; r++)
            levels[op->out[r]->id] = level;
        if (begun) {
            tl_vec_push(g->arena, &g->between, op);
            tl_vec_push(g->arena, &g->when, 2 * level);
        }
    }
}

/* ---- passes ---- */

/* The first slot from `slot` on in which the op may happen. */
static int slot_from(const TlChunkOp *m, int slot)
{
    bool backward = slot & 1;
    return slot + (m->ways && backward != (m->ways == TL_CHUNK_BACKWARD));
}

/* False: too many levels, or an op of both directions. */
static bool find_slots(const TlChunkGroup *g, int *slot)
{
    unsigned ways[TL_CHUNK_MOST_LEVELS] = {0}; /* of what happens once */
    for (uint32_t k = 0; k < g->ops.len; k++) {
        const TlChunkOp *m = &g->ops.data[k];
        if (m->level >= TL_CHUNK_MOST_LEVELS || m->ways == (TL_CHUNK_FORWARD | TL_CHUNK_BACKWARD))
            return false;
        ways[m->level] |= is_once(m) ? m->ways : 0;
    }
    for (uint32_t k = 0; k < g->ops.len; k++) {
        const TlChunkOp *m = &g->ops.data[k];
        unsigned way = m->ways ? m->ways : ways[m->level];
        slot[k] = 2 * m->level + (way == TL_CHUNK_BACKWARD);
    }
    return true;
}

/* Each op in the passes of those that need it. Members come after what they need. */
static void spread_passes(TlChunkGroup *g, const int *pass)
{
    for (uint32_t k = g->ops.len; k-- > 0;) {
        TlChunkOp *m = &g->ops.data[k];
        m->passes = is_once(m) ? 1u << pass[k] : 0;
        for (uint32_t r = 0; !is_once(m) && r < m->op->nout; r++)
            for (const TlUse *u = m->op->out[r]->uses; u; u = u->next)
                m->passes |= tl_chunk_member(g, u->user)->passes;
    }
}

/* The slots in use become passes, one behind the other. */
static void close_up(TlChunkGroup *g)
{
    unsigned used = 0;
    for (uint32_t k = 0; k < g->ops.len; k++)
        used |= g->ops.data[k].passes;
    g->npasses = __builtin_popcount(used);
    for (uint32_t i = 0; i < g->when.len; i++)
        g->when.data[i] = __builtin_popcount(used & ((1u << g->when.data[i]) - 1));
    for (int slot = 0, pass = 0; used >> slot; slot++) {
        if (!(used >> slot & 1))
            continue;
        g->backward |= (unsigned)(slot & 1) << pass;
        for (uint32_t k = 0; k < g->ops.len; k++) {
            TlChunkOp *m = &g->ops.data[k];
            m->passes = (m->passes & ~(1u << slot)) | (m->passes >> slot & 1) << pass;
        }
        pass++;
    }
}

static int last_pass(const TlChunkOp *m)
{
    return m->passes ? 31 - __builtin_clz(m->passes) : -1;
}

/* ---- memory ---- */

static bool is_memory(const TlOp *op)
{
    return (tl_op_info(op->opcode)->flags & (F_READ | F_WRITE)) != 0;
}

static bool writes(const TlOp *op)
{
    return (tl_op_info(op->opcode)->flags & F_WRITE) != 0;
}

static bool are_aliased(const TlKernelInfo *info, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; info && i < info->aliases.len; i++) {
        tile_image_alias x = info->aliases.data[i];
        if ((x.a == a && x.b == b) || (x.a == b && x.b == a))
            return true;
    }
    return false;
}

/* May the two touch the same memory, one of them writing? */
static bool may_meet(const TlFn *fn, const TlOp *a, const TlOp *b)
{
    if (!writes(a) && !writes(b))
        return false;
    const TlValue *x = tl_in(a, 0), *y = tl_in(b, 0);
    if ((!writes(a) && tl_is_constant_memory(x)) || (!writes(b) && tl_is_constant_memory(y)))
        return false;
    int p = tl_base_param(x), q = tl_base_param(y);
    return p < 0 || q < 0 || p == q || are_aliased(fn->info, (uint32_t)p, (uint32_t)q);
}

static bool same_value(const TlValue *a, const TlValue *b)
{
    TlWideInt x, y;
    return a == b || (tl_const_int_value(a, &x) && tl_const_int_value(b, &y) && x == y);
}

/* Does a parameter's view have its elements along the axis apart? */
static bool is_apart(const TlFn *fn, const TlValue *view, uint32_t axis)
{
    const TlKernelInfo *info = fn->info;
    if (view->type->kind != TL_VIEW || view->def || !info || view->index >= info->params.len)
        return false;
    const TlParam *p = &info->params.data[view->index];
    for (int d = (int)axis; d < p->rank; d++)
        if (p->stride[d].kind != TILE_DIM_DENSE &&
            !(d == p->rank - 1 && p->stride[d].kind == TILE_DIM_CONST && p->stride[d].value > 0))
            return false;
    return true;
}

/* The same elements in the same order, all apart: then a chunk meets no other chunk. */
static bool same_place(const TlFn *fn, const TlOp *a, const TlOp *b)
{
    TlPlace p = tl_op_place(a), q = tl_op_place(b);
    if (p.base != q.base || !p.axes || !q.axes)
        return false;
    for (uint32_t i = 0; i < p.naxes; i++) {
        if (p.axes[i].kind == TL_AXIS_TILE || p.axes[i].kind != q.axes[i].kind ||
            p.axes[i].width != q.axes[i].width || p.axes[i].step != q.axes[i].step ||
            !same_value(p.index[i].value, q.index[i].value))
            return false;
        if (p.axes[i].kind == TL_AXIS_SLICE && (p.axes[i].step <= 0 || !is_apart(fn, p.base, i)))
            return false;
    }
    return true;
}

/* Two members that may meet, a before b. Makes the later writer late enough; false: it cannot. */
static bool settle(const TlChunkGroup *g, uint32_t a, uint32_t b, int *pass, bool *moved)
{
    const TlChunkOp *x = &g->ops.data[a], *y = &g->ops.data[b];
    if (x->axis != y->axis || !same_place(g->fn, x->op, y->op) || !writes(y->op) ||
        x->op->opcode == TL_OP_ATOMIC_RMW || y->op->opcode == TL_OP_ATOMIC_RMW)
        return false; /* nothing reads what the group has written */
    if (last_pass(x) > pass[b]) {
        pass[b] = slot_from(y, last_pass(x));
        *moved = true;
    }
    return pass[b] < MOST_SLOTS;
}

static bool settle_members(TlChunkGroup *g, int *pass, bool *moved)
{
    *moved = false;
    for (uint32_t b = 0; b < g->ops.len; b++)
        for (uint32_t a = 0; a < b && is_memory(g->ops.data[b].op); a++)
            if (is_memory(g->ops.data[a].op) &&
                may_meet(g->fn, g->ops.data[a].op, g->ops.data[b].op) &&
                !settle(g, a, b, pass, moved))
                return false;
    return true;
}

static bool may_stand_between(const TlChunkGroup *g, const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (flags & (F_ATOMIC | F_BUF_READ | F_BUF_WRITE))
        return false;
    for (uint32_t k = 0; is_memory(op) && k < g->ops.len; k++)
        if (is_memory(g->ops.data[k].op) && may_meet(g->fn, op, g->ops.data[k].op))
            return false;
    return true;
}

static bool settle_others(const TlChunkGroup *g)
{
    for (uint32_t i = 0; i < g->between.len; i++) {
        const TlOp *op = g->between.data[i];
        for (const TlOp *in = op; in; in = tl_walk_next(in, op))
            if (!may_stand_between(g, in))
                return false;
    }
    return true;
}

bool tl_chunk_order(TlChunkGroup *g)
{
    TL_ASSERT(g->ops.len > 0, "a group of nothing in '%s'", g->fn->name);
    find_levels(g);
    int *pass = TL_NEW_ARRAY(g->arena, int, g->ops.len); /* slots, at first */
    if (!find_slots(g, pass) || !settle_others(g))
        return false;
    bool moved = true;
    for (int i = 0; moved && i <= MOST_SLOTS; i++) {
        spread_passes(g, pass);
        if (!settle_members(g, pass, &moved))
            return false;
    }
    if (moved)
        return false;
    close_up(g);
    return g->npasses > 0;
}
