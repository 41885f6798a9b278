/* Barriers: wherever one thread of a block may touch what another has touched before it in program
 * order, and only there (synchronize.c).
 *
 * What is pending at a point of the program: accesses that some path to the point has made with no
 * barrier since. An op with shared memory of its own has barriers inside (shared_plan.h): before
 * it, no access to its bytes may be pending; after it, only its last reads of them are. So it is
 * where barriers that count are made, with a barrier behind the last of some next to each other,
 * and ended, with one before the first. Of global memory, footprint.h says which pairs conflict; of
 * buffers, buffer_use.h. A release wants everything pending done; what follows an acquire that one
 * thread does waits for a barrier.
 *
 * Asynchronous work (buffer_effects.def) is a use of its buffer where it begins, as far as earlier
 * ones are concerned. From then on it is on its way, whatever barriers come, and conflicts with
 * nothing. What waits for it lets all of its kind arrive: then it is pending itself, as what
 * writes, or has read, their slots and their memory. With `pending = 0` none is on its way after
 * it. So in a pipelined loop
 *
 *     { wait; barrier; copy for a later trip; commit; get; use }
 *
 * the one barrier is for the slots that arrived and for the slot that all have read in the
 * iteration before, which is written next. What a barrier counts orders itself.
 *
 * A pending access carries a set of bits: 0, no loop around it has gone to another iteration since;
 * d, the outermost loop that has is the one at depth d around it. Its indices are then those of
 * another iteration, which tl_footprints_conflict takes into account.
 *
 *  1. Barriers are placed as late as they go: right before the op that conflicts. But a pair whose
 *     earlier access is outside of the loops that hold the later one gets its barrier before these
 *     loops, where it is met once. So pairs go by the depth of the innermost loop around both,
 *     deepest first.
 *     Nobody keeps more than MAX_PENDING apart: a barrier then, which is cheap beside so many.
 *  2. A barrier that only later ones, placed for a loop's way back, have made needless is taken
 *     away again. */
#include "passes/analysis/buffer_effects.h"
#include "passes/pipeline/sync_impl.h"

enum { ANY_TRIP = 31, MAX_PENDING = 512, MAX_WORK = 1 << 24 };

typedef struct Barriers {
    TlSync *s;
    TlSyncEvent *events; /* of s */
    uint64_t work;       /* pairs looked at */
    /* the walk */
    TlPendingSet now;
    uint32_t *trips;     /* by event: its bits in `now` */
    uint32_t pair_depth; /* pairs with this depth around both get barriers */
    bool checks;         /* only: nothing is placed */
    bool more_arrived;
} Barriers;

/* ---- sets ---- */

static void clear(Barriers *b)
{
    for (uint32_t i = 0; i < b->now.len; i++)
        b->trips[b->now.data[i].access] = 0;
    b->now.len = 0;
}

/* After a barrier: copies that are on their way stay so. */
static void settle(Barriers *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->now.len; i++) {
        TlPending p = b->now.data[i];
        if (b->events[p.access].kind == TL_SYNC_FLIGHT)
            b->now.data[n++] = p;
        else
            b->trips[p.access] = 0;
    }
    b->now.len = n;
}

static void add(Barriers *b, uint32_t access, uint32_t trips)
{
    TL_ASSERT(access < b->s->events.len && trips, "access %u of %u events", access,
              b->s->events.len);
    if (!b->trips[access])
        tl_vec_push(b->s->arena, &b->now, (TlPending){access, 0});
    b->trips[access] |= trips;
}

static void add_all(Barriers *b, const TlPendingSet *s)
{
    for (uint32_t i = 0; i < s->len; i++)
        add(b, s->data[i].access, s->data[i].trips);
}

static void keep(Barriers *b, TlPendingSet *s)
{
    s->len = 0;
    for (uint32_t i = 0; i < b->now.len; i++) {
        TlPending p = {b->now.data[i].access, b->trips[b->now.data[i].access]};
        tl_vec_push(b->s->arena, s, p);
    }
}

static uint64_t weight(const TlPendingSet *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->len; i++)
        n += (uint64_t)__builtin_popcount(s->data[i].trips);
    return n;
}

/* The loop goes to another iteration. */
static void cross(Barriers *b, const TlSyncEvent *loop)
{
    uint32_t depth = loop->depth + 1, bit = depth < ANY_TRIP ? depth : ANY_TRIP;
    for (uint32_t i = 0; i < b->now.len; i++) {
        uint32_t *trips = &b->trips[b->now.data[i].access];
        if (!tl_block_is_inside(b->events[b->now.data[i].access].op->block, loop->op))
            continue;
        uint32_t outer = *trips & ((1u << bit) - 2); /* have crossed a loop around this one */
        if (*trips != outer)
            *trips = outer | 1u << bit;
    }
}

/* ---- pairs ---- */

/* The loop at depth d (counted from 1) around the access. */
static const TlOp *loop_at(const Barriers *b, const TlSyncEvent *e, uint32_t d)
{
    TL_ASSERT(e->loop != TL_SYNC_NONE && d > 0, "no loop at depth %u", d);
    const TlSyncEvent *loop = &b->events[e->loop];
    while (loop->depth + 1 > d)
        loop = &b->events[loop->loop];
    return loop->op;
}

static bool conflicts_in_trips(Barriers *b, const TlSyncEvent *a, const TlSyncEvent *x,
                               uint32_t trips)
{
    if (!a->memory || !x->memory || a->to) /* what has barriers inside is done but for its bytes */
        return false;
    bool one_thread = a->memory->once && x->memory->once;
    if ((x->is_release || a->is_acquire) && !one_thread)
        return true;
    if (trips >> ANY_TRIP)
        return !one_thread && (a->memory->writes || x->memory->writes) &&
               tl_footprints_overlap(a->memory, x->memory);
    for (uint32_t d = 0; d < ANY_TRIP; d++)
        if ((trips >> d & 1) &&
            tl_footprints_conflict(a->memory, x->memory, d ? loop_at(b, a, d) : NULL))
            return true;
    return false;
}

/* Of ops with scratch, and of scratch with a buffer. One thread makes and ends barriers that count.
 */
static bool share_bytes(const TlSyncEvent *a, const TlSyncEvent *x)
{
    if (tl_sync_bars(a->op) && tl_sync_bars(x->op))
        return false;
    uint64_t from = x->use ? x->use->from : x->from, to = x->use ? x->use->to : x->to;
    if (a->to)
        return a->from < to && from < a->to;
    return a->use && x->to && a->use->from < to && from < a->use->to;
}

static bool meet_in_buffer(const TlSyncEvent *a, const TlSyncEvent *x, uint32_t trips)
{
    if (a->own && x->own && a->use->buf == x->use->buf && tl_layout_equal(a->own, x->own))
        return false; /* what a thread has put, it gets */
    bool same_trip = trips == 1 && a->loop == x->loop && a->loop != TL_SYNC_NONE;
    return a->use && x->use && tl_buf_uses_meet(a->use, x->use, same_trip);
}

/* A copy that arrives at some time before x, in an unknown iteration. */
static bool arrival_conflicts(const TlSyncEvent *copy, const TlSyncEvent *x)
{
    if (share_bytes(copy, x) || meet_in_buffer(copy, x, 0))
        return true;
    return copy->memory && x->memory &&
           (x->is_release || (x->memory->writes && tl_footprints_overlap(copy->memory, x->memory)));
}

/* A bulk copy for a later iteration waits for a barrier at which all have arrived who read the slot
 * (pipeline_expand.c). */
static bool is_ordered(const TlOp *op)
{
    return tl_is_bulk_copy(op) && tl_op_ahead(op) > 0;
}

static bool conflicts(Barriers *b, const TlPending *p, const TlSyncEvent *x)
{
    TL_ASSERT(p->access < b->s->events.len, "access %u of %u events", p->access, b->s->events.len);
    const TlSyncEvent *a = &b->events[p->access];
    uint32_t trips = b->trips[p->access];
    b->work++;
    if (a->kind == TL_SYNC_FLIGHT || is_ordered(x->op))
        return false;
    for (uint32_t i = 0; i < a->arrived.len; i++)
        if (arrival_conflicts(&b->events[a->arrived.data[i]], x))
            return true;
    return share_bytes(a, x) || meet_in_buffer(a, x, trips) || conflicts_in_trips(b, a, x, trips);
}

/* The innermost loop around both; TL_SYNC_NONE. */
static uint32_t common_loop(const Barriers *b, const TlSyncEvent *a, const TlSyncEvent *x)
{
    uint32_t i = a->loop, k = x->loop;
    while (i != k) {
        uint32_t di = i == TL_SYNC_NONE ? 0 : b->events[i].depth + 1;
        uint32_t dk = k == TL_SYNC_NONE ? 0 : b->events[k].depth + 1;
        if (di >= dk)
            i = b->events[i].loop;
        if (dk >= di)
            k = b->events[k].loop;
    }
    return i;
}

/* A loop that fetches ahead (pipeline) does so in every iteration, also where it is done in the
 * arms of an if: one barrier before that rather than one in each arm. */
static uint32_t before_branch(const Barriers *b, uint32_t a, uint32_t x)
{
    const TlSyncEvent *e = &b->events[x];
    const TlOp *parent = e->op->block->parent;
    if (tl_op_ahead(e->op) <= 0 || !parent || parent->opcode != TL_OP_IF ||
        tl_block_is_inside(b->events[a].op->block, parent))
        return x;
    while (b->events[x].op != parent)
        x--;
    return x;
}

/* Where the barrier for a pair goes: before x, or before the outermost loop around x but not a. */
static uint32_t barrier_event(const Barriers *b, uint32_t a, uint32_t x, uint32_t *pair_depth)
{
    TL_ASSERT(a < b->s->events.len && x < b->s->events.len,
              "events %u and %u of %u", a, x, b->s->events.len);
    const TlSyncEvent *events = b->events;
    uint32_t common = common_loop(b, &events[a], &events[x]);
    *pair_depth = common == TL_SYNC_NONE ? 0 : events[common].depth + 1;
    while (events[x].loop != common)
        x = events[x].loop;
    return events[x].kind == TL_SYNC_ACCESS ? before_branch(b, a, x) : x;
}

/* ---- the walk ---- */

typedef enum Found { FINE, PLACED, CONFLICT } Found;

static Found visit_access(Barriers *b, uint32_t x)
{
    TL_ASSERT(b->events[x].kind == TL_SYNC_ACCESS, "event %u is no access", x);
    TlSyncEvent *e = &b->events[x];
    e->has_barrier |= b->now.len > MAX_PENDING;
    if (e->is_barrier || e->has_barrier)
        settle(b);
    for (uint32_t i = 0; i < b->now.len; i++) {
        if (!conflicts(b, &b->now.data[i], e))
            continue;
        if (b->checks)
            return CONFLICT;
        uint32_t pair_depth, at = barrier_event(b, b->now.data[i].access, x, &pair_depth);
        if (pair_depth != b->pair_depth)
            continue; /* it is handled at its own depth */
        b->events[at].has_barrier = true;
        if (at != x)
            return PLACED;
        settle(b);
        break;
    }
    bool amid = e->op->opcode == TL_OP_MBAR && e->op->next && e->op->next->opcode == TL_OP_MBAR;
    if (e->to && !amid)
        settle(b);
    if (e->to || ((e->memory || e->use) && !tl_goes_on(e->op)))
        add(b, x, 1);
    return FINE;
}

static void arrive(Barriers *b, TlSyncEvent *wait, uint32_t copy)
{
    TL_ASSERT(copy < b->s->events.len, "copy %u of %u events", copy, b->s->events.len);
    for (uint32_t i = 0; i < wait->arrived.len; i++)
        if (wait->arrived.data[i] == copy)
            return;
    tl_vec_push(b->s->arena, &wait->arrived, copy);
    b->more_arrived = true;
}

static void visit_wait(Barriers *b, uint32_t w)
{
    TL_ASSERT(b->events[w].kind == TL_SYNC_WAIT, "event %u is no wait", w);
    TlSyncEvent *e = &b->events[w];
    bool all = tl_attr_int(e->op, TL_ATTR_PENDING, 0) == 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->now.len; i++) {
        TlPending p = b->now.data[i];
        const TlSyncEvent *flight = &b->events[p.access];
        bool arrives = flight->kind == TL_SYNC_FLIGHT &&
                       tl_effect_of(flight->op).done == e->op->opcode;
        if (arrives)
            arrive(b, e, p.access - 1);
        if (arrives && all)
            b->trips[p.access] = 0;
        else
            b->now.data[n++] = p;
    }
    b->now.len = n;
    if (e->arrived.len)
        add(b, w, 1);
}

/* True when the way back brought something new. */
static bool visit_end(Barriers *b, TlSyncEvent *loop)
{
    bool is_for = loop->op->opcode == TL_OP_FOR;
    if (is_for)
        keep(b, &loop->out);
    uint64_t old = weight(&loop->head);
    cross(b, loop);
    add_all(b, &loop->head);
    keep(b, &loop->head);
    clear(b);
    add_all(b, &loop->out);
    if (is_for)
        add_all(b, &loop->before); /* the loop may have no iteration at all */
    return weight(&loop->head) != old;
}

static bool visit_structure(Barriers *b, TlSyncEvent *e)
{
    TlSyncEvent *opening = e->opening == TL_SYNC_NONE ? e : &b->events[e->opening];
    switch (e->kind) {
    case TL_SYNC_ACCESS:
    case TL_SYNC_WAIT:
    case TL_SYNC_FENCE: break;
    case TL_SYNC_FLIGHT: add(b, (uint32_t)(e - b->events), 1); break;
    case TL_SYNC_LOOP:
        if (e->has_barrier)
            settle(b);
        keep(b, &e->before);
        add_all(b, &e->head);
        break;
    case TL_SYNC_MIDDLE: keep(b, &opening->out); break;
    case TL_SYNC_END: return visit_end(b, opening);
    case TL_SYNC_IF:
        if (e->has_barrier)
            settle(b);
        keep(b, &e->before);
        e->out.len = 0;
        break;
    case TL_SYNC_ELSE:
        add_all(b, &opening->out);
        keep(b, &opening->out);
        clear(b);
        add_all(b, &opening->before);
        break;
    case TL_SYNC_ENDIF: add_all(b, &opening->out); break;
    }
    return false;
}

static Found walk(Barriers *b)
{
    for (uint32_t i = 0; i < b->s->events.len; i++)
        b->events[i].head.len = 0;
    bool changed;
    do {
        changed = b->more_arrived = false;
        clear(b);
        for (uint32_t i = 0; i < b->s->events.len; i++) {
            if (b->events[i].kind == TL_SYNC_WAIT) {
                visit_wait(b, i);
                continue;
            }
            if (b->events[i].kind != TL_SYNC_ACCESS) {
                changed |= visit_structure(b, &b->events[i]);
                continue;
            }
            Found f = visit_access(b, i);
            if (f != FINE)
                return f;
        }
    } while (changed || b->more_arrived);
    return FINE;
}

/* ---- 1. and 2. ---- */

static void place(Barriers *b)
{
    b->checks = false;
    for (b->pair_depth = b->s->depth + 1; b->pair_depth-- > 0;)
        while (walk(b) == PLACED)
            ; /* a barrier before a loop: what was known inside no longer holds */
}

static void take_away(Barriers *b)
{
    b->checks = true;
    b->work = 0;
    for (uint32_t i = 0; i < b->s->events.len && b->work < MAX_WORK; i++) {
        TlSyncEvent *e = &b->events[i];
        if (!e->has_barrier || e->loop == TL_SYNC_NONE)
            continue; /* in straight-line code, none is needless */
        e->has_barrier = false;
        e->has_barrier |= walk(b) == CONFLICT;
    }
}

void tl_sync_barriers(TlSync *s)
{
    Barriers b = {.s = s, .events = s->events.data};
    b.trips = TL_NEW_ARRAY(s->arena, uint32_t, s->events.len + 1);
    place(&b);
    take_away(&b);
}
