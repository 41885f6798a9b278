/* insert-barriers: a barrier wherever one thread of a block may touch what another has touched
 * before it in program order, and only there.
 *
 *     %b = convert %a {shared = 0}          %b = convert %a {shared = 0}
 *     %c = convert %b {shared = 0}    =>    barrier
 *     store %y, %i, %c                      %c = convert %b {shared = 0}
 *     %d = load %y, %k                      store %y, %i, %c
 *                                           barrier
 *                                           %d = load %y, %k
 *
 * What is pending at a point of the program: accesses that some path to the point has made with no
 * barrier since. An op with shared memory of its own has barriers inside (shared_plan.h): before
 * it, no access to its bytes may be pending; after it, only its last reads of them are. So it is
 * where barriers that count are made, with a barrier behind the last of some next to each other,
 * and ended, with one before the first. Of global memory, footprint.h says which pairs conflict; of
 * buffers, buffer_use.h. A release wants everything pending done; what follows an acquire that one
 * thread does waits for a barrier.
 *
 * A copy to a buffer is a use of it where it begins, as far as earlier ones are concerned. From
 * then on it is on its way, whatever barriers come, and conflicts with nothing. A `wait` lets all
 * copies that are on their way arrive: then it is pending itself, as what writes their slots and
 * has read their memory. With `pending = 0` none is on its way after it. So it is with `sent` and
 * what was sent. So in a pipelined loop
 *
 *     { wait; barrier; copy {ahead}; commit; get; use }
 *
 * the one barrier is for the slots that arrived and for the slot that all have read in the trip
 * before, which is written next.
 *
 * A pending access carries a set of bits: 0, no loop around it has gone to another trip since; d,
 * the outermost loop that has is the one at depth d around it. Its indices are then those of
 * another trip, which tl_footprints_conflict takes into account.
 *
 *  1. The function becomes a list of events: accesses, and the starts, middles and ends of loops
 *     and ifs, so that one walk along the list is one round of the data flow (ifs: union of the
 *     arms; loops: to a fixed point). Nothing recurses.
 *  2. Barriers are placed as late as they go: right before the op that conflicts. But a pair whose
 *     earlier access is outside of the loops that hold the later one gets its barrier before these
 *     loops, where it is met once. So pairs go by the depth of the innermost loop around both,
 *     deepest first.
 *     Nobody keeps more than MAX_PENDING apart: a barrier then, which is cheap beside so many.
 *  3. A barrier that only later ones, placed for a loop's way back, have made needless is taken
 *     away again. */
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "passes/analysis/buffer_use.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/footprint.h"
#include "passes/pass.h"

enum { ANY_TRIP = 31, MAX_PENDING = 512, MAX_WORK = 1 << 24 };

/* FLIGHT comes right after the ACCESS of its copy. */
typedef enum EventKind { ACCESS, FLIGHT, WAIT, LOOP, MIDDLE, END, IF, ELSE, ENDIF } EventKind;

/* Accesses that are pending, each once, in any order. */
typedef struct Pending {
    uint32_t access; /* index of its event */
    uint32_t trips;  /* bits as above */
} Pending;
typedef TL_VEC(Pending) Set;

typedef struct Event {
    EventKind kind;
    TlOp *op;
    uint32_t opening; /* MIDDLE, END, ELSE, ENDIF: the event LOOP or IF */
    uint32_t loop;    /* the event of the innermost loop around; NONE */
    uint32_t depth;   /* loops around */
    bool has_barrier; /* a new one, before the op */
    /* ACCESS: */
    bool is_barrier;
    uint64_t from, to; /* bytes of shared memory; to 0: none */
    const TlFootprint *memory;
    const TlBufUse *use;
    bool is_release, is_acquire;
    /* WAIT: the copies (their accesses) that may have been on their way */
    TL_VEC(uint32_t) arrived;
    /* LOOP: what comes by the way back, before it, out of a while; IF: before it, out of arm 0 */
    Set head, before, out;
} Event;

static const uint32_t NONE = UINT32_MAX;

typedef struct Barriers {
    TlFn *fn;
    TlArena *arena;
    TL_VEC(Event) events;
    uint32_t depth;   /* of the deepest loop */
    bool keeps_reads; /* also those of memory that this kernel does not write count */
    uint64_t work;    /* pairs looked at */
    /* the walk */
    Set now;
    uint32_t *trips; /* by event: its bits in `now` */
    uint32_t pair_depth; /* pairs with this depth around both get barriers */
    bool only_checks, more_arrived;
} Barriers;

/* ---- 1. events ---- */

/* Of an op that makes or ends barriers that count; NULL. */
static const TlValue *bar_of(const TlOp *op)
{
    return op->opcode == TL_OP_MBAR     ? op->out[0]
           : op->opcode == TL_OP_RETIRE ? tl_in(op, 0)
                                        : NULL;
}

static bool flies(const TlOp *op)
{
    return op->opcode == TL_OP_COPY || op->opcode == TL_OP_DOT_ASYNC ||
           op->opcode == TL_OP_SEND;
}

/* What the op waits for; COUNT: nothing. */
static TlOpcode awaited_by(const TlOp *op)
{
    return op->opcode == TL_OP_WAIT    ? TL_OP_COPY
           : op->opcode == TL_OP_AWAIT ? TL_OP_DOT_ASYNC
           : op->opcode == TL_OP_SENT  ? TL_OP_SEND
                                       : TL_OP_COUNT;
}

static bool is_next_to(const TlOp *op, TlOpcode opcode)
{
    return op && op->opcode == opcode;
}

static void describe(Barriers *b, Event *e, const TlBufUse *use)
{
    TlOp *op = e->op;
    e->is_barrier = op->opcode == TL_OP_BARRIER || op->opcode == TL_OP_MEET;
    uint64_t bytes = tl_op_shared_bytes(b->arena, op);
    const TlValue *bar = bar_of(op);
    if (bar) {
        bytes = tl_buf_bytes(bar->type);
        e->is_barrier |= op->opcode == TL_OP_RETIRE && !is_next_to(op->prev, TL_OP_RETIRE);
        op = bar->def;
    }
    if (bytes) {
        e->from = (uint64_t)tl_attr_int(op, TL_ATTR_SHARED, 0);
        e->to = e->from + bytes;
    }
    e->memory = tl_footprint(op, b->arena);
    e->use = use;
    if (!(tl_op_info(op->opcode)->flags & F_ATOMIC))
        return;
    int64_t order = tl_attr_int(op, TL_ATTR_ORDER, TL_ORDER_RELAXED);
    e->is_release = order == TL_ORDER_RELEASE || order == TL_ORDER_ACQ_REL;
    e->is_acquire = order == TL_ORDER_ACQUIRE || order == TL_ORDER_ACQ_REL;
    b->keeps_reads |= e->is_release || e->is_acquire;
}

static uint32_t add_use(Barriers *b, EventKind kind, TlOp *op, const TlBufUse *use,
                        uint32_t opening, uint32_t loop)
{
    TL_ASSERT(loop == NONE || loop < b->events.len, "loop %u of %u events", loop, b->events.len);
    Event e = {.kind = kind, .op = op, .opening = opening, .loop = loop};
    e.depth = loop == NONE ? 0 : b->events.data[loop].depth + 1;
    if (kind == ACCESS)
        describe(b, &e, use);
    if (kind == ACCESS && !e.is_barrier && !e.to && !e.memory && !e.use)
        return NONE;
    if (kind == LOOP && e.depth + 1 > b->depth)
        b->depth = e.depth + 1;
    tl_vec_push(b->arena, &b->events, e);
    return b->events.len - 1;
}

static uint32_t add_event(Barriers *b, EventKind kind, TlOp *op, uint32_t opening, uint32_t loop)
{
    return add_use(b, kind, op, NULL, opening, loop);
}

/* An access, of each buffer that it uses, and that what it begins is on its way. */
static void add_access(Barriers *b, TlOp *op, uint32_t loop)
{
    TlBufUse *uses = TL_NEW_ARRAY(b->arena, TlBufUse, 2);
    uint32_t n = tl_buf_uses(op, uses);
    for (uint32_t i = 0; i < n || i == 0; i++) {
        add_use(b, ACCESS, op, i < n ? &uses[i] : NULL, NONE, loop);
        if (flies(op))
            add_event(b, FLIGHT, op, NONE, loop);
    }
}

/* The walk's position: which structural events are open around it. */
typedef struct Nest {
    TL_VEC(uint32_t) open;
    uint32_t loop;
} Nest;

/* The flows of ROLES meet at barriers that count only. */
static bool is_branch(const TlOp *op)
{
    return op->opcode == TL_OP_IF || op->opcode == TL_OP_ROLES;
}

/* At the end of a block: into the other region of its op, or out. */
static TlOp *leave(Barriers *b, Nest *n, const TlBlock *block)
{
    TlOp *parent = block->parent;
    if (!parent)
        return NULL;
    uint32_t opening = n->open.data[n->open.len - 1];
    bool is_if = is_branch(parent);
    if (parent->nregions == 2 && block == parent->regions[0]) {
        add_event(b, is_if ? ELSE : MIDDLE, parent, opening, n->loop);
        return parent->regions[1]->first;
    }
    n->open.len--;
    add_event(b, is_if ? ENDIF : END, parent, opening, n->loop);
    if (!is_if)
        n->loop = b->events.data[opening].loop;
    return parent->next;
}

static TlOp *enter(Barriers *b, Nest *n, TlOp *op)
{
    bool is_if = is_branch(op);
    uint32_t e = add_event(b, is_if ? IF : LOOP, op, NONE, n->loop);
    tl_vec_push(b->arena, &n->open, e);
    if (!is_if)
        n->loop = e;
    return op->regions[0]->first;
}

static void list_events(Barriers *b)
{
    Nest n = {.loop = NONE};
    for (TlOp *op = b->fn->body->first; op;) {
        if (is_branch(op) || op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE) {
            op = enter(b, &n, op);
            continue;
        }
        if (tl_op_info(op->opcode)->flags & F_TERM) {
            op = leave(b, &n, op->block);
            continue;
        }
        if (awaited_by(op) != TL_OP_COUNT)
            add_event(b, WAIT, op, NONE, n.loop);
        else
            add_access(b, op, n.loop);
        op = op->next;
    }
}

/* Reads of what the kernel never writes conflict with nothing. */
static void drop_idle_reads(Barriers *b)
{
    if (b->keeps_reads)
        return;
    TlFootprint writes = {.roots = 0};
    for (uint32_t i = 0; i < b->events.len; i++) {
        const TlFootprint *m = b->events.data[i].memory;
        if (m && m->writes)
            writes.roots |= m->roots;
    }
    for (uint32_t i = 0; i < b->events.len; i++) {
        Event *e = &b->events.data[i];
        if (e->memory && (!writes.roots || !tl_footprints_overlap(e->memory, &writes)))
            e->memory = NULL;
    }
}

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
        Pending p = b->now.data[i];
        if (b->events.data[p.access].kind == FLIGHT)
            b->now.data[n++] = p;
        else
            b->trips[p.access] = 0;
    }
    b->now.len = n;
}

static void add(Barriers *b, uint32_t access, uint32_t trips)
{
    TL_ASSERT(access < b->events.len && trips, "access %u of %u events", access, b->events.len);
    if (!b->trips[access])
        tl_vec_push(b->arena, &b->now, (Pending){access, 0});
    b->trips[access] |= trips;
}

static void add_all(Barriers *b, const Set *s)
{
    for (uint32_t i = 0; i < s->len; i++)
        add(b, s->data[i].access, s->data[i].trips);
}

static void keep(Barriers *b, Set *s)
{
    s->len = 0;
    for (uint32_t i = 0; i < b->now.len; i++) {
        Pending p = {b->now.data[i].access, b->trips[b->now.data[i].access]};
        tl_vec_push(b->arena, s, p);
    }
}

static uint64_t weight(const Set *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->len; i++)
        n += (uint64_t)__builtin_popcount(s->data[i].trips);
    return n;
}

/* The loop goes to another trip. */
static void cross(Barriers *b, const Event *loop)
{
    uint32_t depth = loop->depth + 1, bit = depth < ANY_TRIP ? depth : ANY_TRIP;
    for (uint32_t i = 0; i < b->now.len; i++) {
        uint32_t *trips = &b->trips[b->now.data[i].access];
        if (!tl_block_is_inside(b->events.data[b->now.data[i].access].op->block, loop->op))
            continue;
        uint32_t outer = *trips & ((1u << bit) - 2); /* have crossed a loop around this one */
        if (*trips != outer)
            *trips = outer | 1u << bit;
    }
}

/* ---- pairs ---- */

/* The loop at depth d (counted from 1) around the access. */
static const TlOp *loop_at(const Barriers *b, const Event *e, uint32_t d)
{
    TL_ASSERT(e->loop != NONE && d > 0, "no loop at depth %u", d);
    const Event *loop = &b->events.data[e->loop];
    while (loop->depth + 1 > d)
        loop = &b->events.data[loop->loop];
    return loop->op;
}

static bool conflicts_in_trips(Barriers *b, const Event *a, const Event *x, uint32_t trips)
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
static bool share_bytes(const Event *a, const Event *x)
{
    if (bar_of(a->op) && bar_of(x->op))
        return false;
    uint64_t from = x->use ? x->use->from : x->from, to = x->use ? x->use->to : x->to;
    if (a->to)
        return a->from < to && from < a->to;
    return a->use && x->to && a->use->from < to && from < a->use->to;
}

static bool meet_in_buffer(const Event *a, const Event *x, uint32_t trips)
{
    bool same_trip = trips == 1 && a->loop == x->loop && a->loop != NONE;
    return a->use && x->use && tl_buf_uses_meet(a->use, x->use, same_trip);
}

/* A copy that arrives at some time before x, in an unknown trip. */
static bool arrival_conflicts(const Event *copy, const Event *x)
{
    if (share_bytes(copy, x) || meet_in_buffer(copy, x, 0))
        return true;
    return copy->memory && x->memory &&
           (x->is_release || (x->memory->writes && tl_footprints_overlap(copy->memory, x->memory)));
}

/* A bulk copy for a later trip waits for a barrier at which all have arrived who read the slot
 * (pipeline_expand.c). */
static bool is_ordered(const TlOp *op)
{
    return tl_is_bulk_copy(op) && tl_op_ahead(op) > 0;
}

static bool conflicts(Barriers *b, const Pending *p, const Event *x)
{
    TL_ASSERT(p->access < b->events.len, "access %u of %u events", p->access, b->events.len);
    const Event *a = &b->events.data[p->access];
    uint32_t trips = b->trips[p->access];
    b->work++;
    if (a->kind == FLIGHT || is_ordered(x->op))
        return false;
    for (uint32_t i = 0; i < a->arrived.len; i++)
        if (arrival_conflicts(&b->events.data[a->arrived.data[i]], x))
            return true;
    return share_bytes(a, x) || meet_in_buffer(a, x, trips) || conflicts_in_trips(b, a, x, trips);
}

/* The innermost loop around both; NONE. */
static uint32_t common_loop(const Barriers *b, const Event *a, const Event *x)
{
    uint32_t i = a->loop, k = x->loop;
    while (i != k) {
        uint32_t di = i == NONE ? 0 : b->events.data[i].depth + 1;
        uint32_t dk = k == NONE ? 0 : b->events.data[k].depth + 1;
        if (di >= dk)
            i = b->events.data[i].loop;
        if (dk >= di)
            k = b->events.data[k].loop;
    }
    return i;
}

/* A loop that fetches ahead (pipeline) does so in every trip, also where it is done in the arms of
 * an if: one barrier before that rather than one in each arm. */
static uint32_t before_branch(const Barriers *b, uint32_t a, uint32_t x)
{
    const Event *e = &b->events.data[x];
    const TlOp *parent = e->op->block->parent;
    if (tl_op_ahead(e->op) <= 0 || !parent || parent->opcode != TL_OP_IF ||
        tl_block_is_inside(b->events.data[a].op->block, parent))
        return x;
    while (b->events.data[x].op != parent)
        x--;
    return x;
}

/* Where the barrier for a pair goes: before x, or before the outermost loop around x but not a. */
static uint32_t barrier_event(const Barriers *b, uint32_t a, uint32_t x, uint32_t *pair_depth)
{
    TL_ASSERT(a < b->events.len && x < b->events.len,
              "events %u and %u of %u", a, x, b->events.len);
    const Event *events = b->events.data;
    uint32_t common = common_loop(b, &events[a], &events[x]);
    *pair_depth = common == NONE ? 0 : events[common].depth + 1;
    while (events[x].loop != common)
        x = events[x].loop;
    return events[x].kind == ACCESS ? before_branch(b, a, x) : x;
}

/* ---- the walk ---- */

typedef enum Found { FINE, PLACED, CONFLICT } Found;

static Found visit_access(Barriers *b, uint32_t x)
{
    TL_ASSERT(x < b->events.len && b->events.data[x].kind == ACCESS, "event %u is no access", x);
    Event *e = &b->events.data[x];
    e->has_barrier |= b->now.len > MAX_PENDING;
    if (e->is_barrier || e->has_barrier)
        settle(b);
    for (uint32_t i = 0; i < b->now.len; i++) {
        if (!conflicts(b, &b->now.data[i], e))
            continue;
        if (b->only_checks)
            return CONFLICT;
        uint32_t pair_depth, at = barrier_event(b, b->now.data[i].access, x, &pair_depth);
        if (pair_depth != b->pair_depth)
            continue; /* it is handled at its own depth */
        b->events.data[at].has_barrier = true;
        if (at != x)
            return PLACED;
        settle(b);
        break;
    }
    bool amid = e->op->opcode == TL_OP_MBAR && is_next_to(e->op->next, TL_OP_MBAR);
    if (e->to && !amid)
        settle(b);
    if (e->to || ((e->memory || e->use) && !flies(e->op)))
        add(b, x, 1);
    return FINE;
}

static void arrive(Barriers *b, Event *wait, uint32_t copy)
{
    TL_ASSERT(copy < b->events.len, "copy %u of %u events", copy, b->events.len);
    for (uint32_t i = 0; i < wait->arrived.len; i++)
        if (wait->arrived.data[i] == copy)
            return;
    tl_vec_push(b->arena, &wait->arrived, copy);
    b->more_arrived = true;
}

static void visit_wait(Barriers *b, uint32_t w)
{
    TL_ASSERT(w < b->events.len && b->events.data[w].kind == WAIT, "event %u is no wait", w);
    Event *e = &b->events.data[w];
    TlOpcode what = awaited_by(e->op);
    bool all = tl_attr_int(e->op, TL_ATTR_PENDING, 0) == 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->now.len; i++) {
        Pending p = b->now.data[i];
        const Event *flight = &b->events.data[p.access];
        bool arrives = flight->kind == FLIGHT && flight->op->opcode == what;
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
static bool visit_end(Barriers *b, Event *loop)
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
        add_all(b, &loop->before); /* the loop may have no trip at all */
    return weight(&loop->head) != old;
}

static bool visit_structure(Barriers *b, Event *e)
{
    Event *opening = e->opening == NONE ? e : &b->events.data[e->opening];
    switch (e->kind) {
    case ACCESS:
    case WAIT: break;
    case FLIGHT: add(b, (uint32_t)(e - b->events.data), 1); break;
    case LOOP:
        if (e->has_barrier)
            settle(b);
        keep(b, &e->before);
        add_all(b, &e->head);
        break;
    case MIDDLE: keep(b, &opening->out); break;
    case END: return visit_end(b, opening);
    case IF:
        if (e->has_barrier)
            settle(b);
        keep(b, &e->before);
        break;
    case ELSE:
        keep(b, &opening->out);
        clear(b);
        add_all(b, &opening->before);
        break;
    case ENDIF: add_all(b, &opening->out); break;
    }
    return false;
}

static Found walk(Barriers *b)
{
    for (uint32_t i = 0; i < b->events.len; i++)
        b->events.data[i].head.len = 0;
    bool changed;
    do {
        changed = b->more_arrived = false;
        clear(b);
        for (uint32_t i = 0; i < b->events.len; i++) {
            if (b->events.data[i].kind == WAIT) {
                visit_wait(b, i);
                continue;
            }
            if (b->events.data[i].kind != ACCESS) {
                changed |= visit_structure(b, &b->events.data[i]);
                continue;
            }
            Found f = visit_access(b, i);
            if (f != FINE)
                return f;
        }
    } while (changed || b->more_arrived);
    return FINE;
}

/* ---- 2. and 3. ---- */

static void place(Barriers *b)
{
    b->only_checks = false;
    for (b->pair_depth = b->depth + 1; b->pair_depth-- > 0;)
        while (walk(b) == PLACED)
            ; /* a barrier before a loop: what was known inside no longer holds */
}

static void take_away(Barriers *b)
{
    b->only_checks = true;
    b->work = 0;
    for (uint32_t i = 0; i < b->events.len && b->work < MAX_WORK; i++) {
        Event *e = &b->events.data[i];
        if (!e->has_barrier || e->loop == NONE)
            continue; /* in straight-line code, none is needless */
        e->has_barrier = false;
        e->has_barrier |= walk(b) == CONFLICT;
    }
}

TlPassResult tl_pass_insert_barriers(TlFn *fn, TlPassCtx *px)
{
    if (!tl_fn_is_laid_out(fn))
        return TL_SAME;
    Barriers b = {.fn = fn, .arena = px->scratch};
    list_events(&b);
    drop_idle_reads(&b);
    b.trips = TL_NEW_ARRAY(px->scratch, uint32_t, b.events.len + 1);
    place(&b);
    take_away(&b);
    TlPassResult result = TL_SAME;
    for (uint32_t i = 0; i < b.events.len; i++) {
        if (!b.events.data[i].has_barrier)
            continue;
        TlBuilder at = tl_builder_before(b.events.data[i].op);
        tl_op_new(&at, TL_OP_BARRIER, 0, NULL, 0, NULL, 0, 0, NULL);
        result = TL_CHANGED;
    }
    return result;
}
