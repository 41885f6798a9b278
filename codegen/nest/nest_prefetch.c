/* Prefetching: the next program's rows, and what lies further on in this program's row.
 *
 * A kernel that goes over its rows several times, like softmax and the norms, reads memory in its
 * first nest and then computes on what is in the caches: first the cores wait, then the memory
 * does. So the nest after the one that read a row prefetches the same row of the next program, as
 * many bytes further as the row moves when pid(0) grows by one, and the nest that stores
 * prefetches the line that the next program will store; where they compute little, only of arrays
 * that are in memory. Prefetching an address never faults, so the last program needs no special
 * case. A reduction or a histogram that computes much prefetches what it will read itself. */
#include "codegen/nest/nest.h"

#include <string.h>

#include "passes/analysis/facts.h"

/* Bytes of a row. The loads of shorter rows are begun before the row before is done, by the CPU
 * itself; longer ones would push each other out of the second cache. Measured, with all lines of a
 * row asked for: rows of 4096 bytes 1.0 to 1.4 times as fast, of 16 KiB 1.2 to 1.5, of 128 KiB 1.1
 * to 1.5. */
enum { LEAST_ROW = 2 << 10, MOST_ROW = 128 << 10 };
/* Values that a walk over a place visits; values of a nest that computes as much as an exponential:
 * the CPU does not see so far ahead that the last cache's rows would come in time. */
enum { MOST_WALKED = 32, MANY_VALUES = 16 };
/* A nest that computes fewer waits for memory only (fetch_light). */
enum { LEAST_VALUES = 12 };
/* Values of a nest that takes longer than memory does for what the next trip of a loop copies. */
enum { TRIP_VALUES = 64 };
/* Bytes of a trip that is shorter than what a nest fetches ahead. Of longer ones the rows are long
 * enough for the CPU's own prefetcher: measured on blocks q8_0, 16 KiB a trip, fetches by trips are
 * 0.92 of the speed; on blocks q4_k, 8 KiB, 1.4 times. */
enum { MOST_TRIP = 8 << 10 };
/* Bytes of memory that a tile spans, across whose lanes a reduction asks for what lies further on.
 */
enum { LEAST_RUN = 1 << 10 };

/* ---- how places move ---- */

/* How v grows when pid(0) grows by 1. */
typedef enum Growth { NONE, LINEAR, UNKNOWN } Growth;

static Growth growth(const TlValue *v, int *seen)
{
    const TlOp *op = v->def;
    Growth by[3] = {NONE};
    if (!op)
        return NONE;
    if (op->opcode == TL_OP_PID)
        return tl_attr_int(op, TL_ATTR_AXIS, 0) == 0 ? LINEAR : NONE;
    if (++*seen > MOST_WALKED || op->nregions)
        return UNKNOWN;
    bool none = true;
    for (uint32_t i = 0; i < op->nin; i++) {
        Growth x = growth(tl_in(op, i), seen);
        if (x == UNKNOWN)
            return UNKNOWN;
        none &= x == NONE;
        if (i < 3)
            by[i] = x;
    }
    if (none)
        return NONE;
    if (v->type->kind != TL_TILE || v->type->rank || !tl_is_int(v->type->dtype))
        return UNKNOWN;
    if (op->opcode == TL_OP_MUL)
        return by[0] && by[1] ? UNKNOWN : LINEAR;
    bool adds = op->opcode == TL_OP_CAST || op->opcode == TL_OP_ADD || op->opcode == TL_OP_SUB;
    return adds ? LINEAR : UNKNOWN;
}

/* Is the next program's place elsewhere, by the same distance in all programs? */
static bool moves(const TlNestAccess *a)
{
    bool does = false;
    int seen = 0;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        Growth by = a->place.axes[i].kind == TL_AXIS_TILE ? UNKNOWN
                                                          : growth(a->place.index[i].value, &seen);
        if (by == UNKNOWN)
            return false;
        does |= by == LINEAR;
    }
    return does;
}

/* Does v depend on which program it is? A loop's index does where its first value does. */
static bool is_by_program(const TlValue *v, int *seen)
{
    const TlOp *op = v->def;
    if (!op && v->block && v->block->parent && v->block->parent->opcode == TL_OP_FOR &&
        v->index == 0)
        return is_by_program(tl_in(v->block->parent, 0), seen);
    if (!op || ++*seen > MOST_WALKED)
        return false;
    if (op->opcode == TL_OP_PID)
        return true;
    for (uint32_t i = 0; i < op->nin; i++)
        if (is_by_program(tl_in(op, i), seen))
            return true;
    return false;
}

/* Do other programs read other places? */
static bool reads_its_own(const TlNestAccess *a)
{
    int seen = 0;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind != TL_AXIS_TILE &&
            is_by_program(a->place.index[i].value, &seen))
            return true;
    return false;
}

/* ---- nest after nest ---- */

typedef struct Reads {
    TlNests *plan;
    TL_VEC(TlNestAccess *) next; /* whose rows nobody has asked for yet */
    TL_VEC(TlNestAccess *) trip; /* copied in each trip of a loop */
    TlMap before;                /* accesses of earlier nests */
} Reads;

static int64_t row_bytes(const TlNestAccess *a)
{
    TlType t = tl_nest_accessed(a);
    if (!a->place.axes || t.rank == 0)
        return 0;
    TlNestForm f = tl_nest_form(&t);
    return tl_nest_is_contiguous(a, f.lane) ? f.extent[f.lane] * tl_dtype_bytes(t.dtype) : 0;
}

static void find_next(Reads *r, TlNest *n)
{
    for (uint32_t i = 0; i < r->next.len; i++) {
        TlNestAccess *a = r->next.data[i];
        bool same = a->place.rank == n->type.rank &&
                    !memcmp(a->place.shape, n->type.shape, n->type.rank * sizeof *n->type.shape);
        if (same)
            tl_vec_push(r->plan->arena, &n->next, a);
    }
    n->next_near = n->next.len && n->nvalues >= MANY_VALUES;
    n->ahead = n->store && n->next.len && tl_nest_is_contiguous(n->store, n->form.lane) &&
               moves(n->store);
}

/* Is what it reads one run of memory, but for gaps that are no longer than the pieces, as the rows
 * of a tile of blocks are? Then what lies further on will be read. */
static bool is_run(const TlNestAccess *a)
{
    int64_t run = 1;
    for (uint32_t i = a->place.naxes; i-- > 0;) {
        if (a->place.axes[i].kind == TL_AXIS_SCALAR)
            continue;
        int64_t stride = a->axis[i].stride;
        if (a->place.axes[i].kind != TL_AXIS_SLICE || stride <= 0 || stride > 2 * run)
            break;
        run = stride * tl_nest_axis_width(a, i);
    }
    return run * tl_dtype_bytes(a->place.base->type->dtype) >= LEAST_RUN;
}

int tl_nest_axis_of_loop(const TlNestAccess *a)
{
    const TlBlock *b = a->op->block;
    uint64_t step;
    if (!b->parent || b->parent->opcode != TL_OP_FOR || !a->loads || !a->place.axes ||
        !tl_value_is_const(tl_in(b->parent, 2), &step))
        return -1;
    int at = -1;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        const TlValue *v = a->place.index[i].value;
        if (a->place.axes[i].kind == TL_AXIS_TILE)
            return -1;
        if (a->place.axes[i].kind == TL_AXIS_SLICE && !v->def && v->block == b && v->index == 0 &&
            (uint64_t)tl_nest_axis_width(a, i) == step)
            at = (int)i;
    }
    return at;
}

static int64_t tile_bytes(const TlNestAccess *a)
{
    int64_t n = tl_dtype_bytes(a->place.base->type->dtype);
    for (int d = 0; d < a->place.rank; d++)
        n *= a->place.shape[d];
    return n;
}

/* Do rows that lie apart go together through what the nest fetches? */
static bool fetches_apart(const TlNest *n)
{
    for (uint32_t i = 0; i < n->shared.len; i++)
        for (uint32_t k = 0; k < n->fetch.len; k++)
            if (n->shared.data[i] == n->fetch.data[k])
                return false;
    return n->rows > 1;
}

/* Where a loop goes from rows to rows of memory, those of the next trip are what will be read, not
 * what lies two pages on, which of long rows is another part of them. Rows that go together begin
 * at once, with all their lines missing, and the next trip's last lines are asked for too late for
 * its first nest: these are asked for one trip earlier, which is too much for the first cache. */
static TlNestFetch fetch_from(const TlNest *n)
{
    if (n->kind != TL_NEST_REDUCE || !n->along)
        return TL_NEST_FETCH_PAGES;
    if (n->nvalues < LEAST_VALUES)
        return TL_NEST_FETCH_LIGHT;
    for (uint32_t i = 0; i < n->fetch.len; i++) {
        const TlNestAccess *a = n->fetch.data[i];
        int axis = tl_nest_axis_of_loop(a);
        if (axis < 0 || axis + 1 == (int)a->place.naxes || tile_bytes(a) > MOST_TRIP)
            return TL_NEST_FETCH_PAGES;
    }
    return fetches_apart(n) ? TL_NEST_FETCH_TRIPS : TL_NEST_FETCH_TRIP;
}

/* Loads that ask for what lies further on: other programs read other places, and no earlier nest
 * read it. */
static void find_fetch(Reads *r, TlNest *n)
{
    for (uint32_t i = 0; i < n->asks.len; i++) {
        TlNestAccess *a = n->asks.data[i].access;
        bool goes_on = n->kind != TL_NEST_REDUCE || n->along || is_run(a);
        if (a->loads && a->place.axes && goes_on && !tl_map_get_ptr(&r->before, a) &&
            reads_its_own(a))
            tl_vec_push(r->plan->arena, &n->fetch, a);
    }
    n->fetch_from = fetch_from(n);
}

/* Bytes by which the loop around goes on along the rows of what the nest loads or stores, of which
 * it has several; 0: it does not, or the CPU's own prefetcher follows: of many rows it loses some,
 * and in those that it has it stops where a page ends. */
static int64_t part_of(const TlNest *n, const TlNestAccess *a)
{
    enum { LEAST_ROWS = 8, MOST_PART = 1 << 10 };
    const TlOp *loop = tl_enclosing_loop(n->op);
    TlWideInt step;
    int lane = n->form.lane;
    if (!loop || loop->opcode != TL_OP_FOR || !tl_const_int_value(tl_in(loop, 2), &step) ||
        a->place.rank != n->type.rank ||
        tl_type_elems(&n->type) < LEAST_ROWS * (int64_t)n->type.shape[lane] ||
        !tl_nest_is_contiguous(a, lane))
        return 0;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        const TlValue *v = a->place.index[i].value;
        int64_t number;
        bool moves = a->axis[i].dim == lane &&
                     tl_nest_without_number(v, &number) == loop->regions[0]->args[0],
             stays = a->place.axes[i].kind != TL_AXIS_TILE || a->axis[i].dim != lane;
        int64_t bytes = moves ? (int64_t)step * tl_dtype_bytes(a->place.base->type->dtype) : 0;
        if (!stays || bytes > MOST_PART || bytes < -MOST_PART)
            return 0;
        if (bytes)
            return bytes;
    }
    return 0;
}

/* A store, or what a home is filled with, of parts of rows. */
static void find_part(TlNests *plan, TlNest *n)
{
    for (uint32_t i = 0; n->kind == TL_NEST_FILL && i < n->asks.len; i++) {
        TlNestAccess *a = n->asks.data[i].access;
        int64_t part = a->loads && a->place.axes ? part_of(n, a) : 0;
        if (part && (!n->part || part == n->part)) {
            n->part = part;
            n->fetch_from = TL_NEST_FETCH_PART;
            tl_vec_push(plan->arena, &n->fetch, a);
        }
    }
    if (n->kind == TL_NEST_STORE && !n->joined && !n->streams)
        n->part = part_of(n, n->store);
}

/* What a loop copies into a home and a reduction that computes much then works on: it asks, row by
 * row, for what the next trip will copy, as the CPU's own prefetcher has stopped by then. */
static void find_trip(Reads *r, TlNest *n)
{
    for (uint32_t i = 0; i < r->trip.len && n->nvalues >= TRIP_VALUES; i++) {
        TlNestAccess *a = r->trip.data[i];
        if (a->op->block != n->op->block)
            continue;
        n->trip = a;
        n->trip_axis = (uint32_t)tl_nest_axis_of_loop(a);
    }
}

/* After a nest: what it read. */
static void note(Reads *r, const TlNest *n, bool is_nested)
{
    if (n->next.len)
        r->next.len = 0;
    for (uint32_t i = 0; i < n->asks.len; i++) {
        TlNestAccess *a = n->asks.data[i].access;
        tl_map_put_ptr(&r->before, a, a);
        int64_t bytes = a->loads && !is_nested ? row_bytes(a) : 0;
        if (bytes >= LEAST_ROW && bytes <= MOST_ROW && moves(a))
            tl_vec_push(r->plan->arena, &r->next, a);
    }
}

static bool is_nested(const TlOp *op)
{
    for (const TlBlock *b = op->block; b->parent; b = b->parent->block)
        if (b->parent->opcode == TL_OP_FOR || b->parent->opcode == TL_OP_WHILE ||
            b->parent->opcode == TL_OP_IF)
            return true;
    return false;
}

/* Does it take vectors of which nothing is tested? */
static bool has_whole_part(const TlNest *n)
{
    if (n->kind != TL_NEST_REDUCE)
        return n->split == TL_NEST_ONE || (n->split == TL_NEST_SPLIT && n->end != 0);
    int64_t begin = n->from_identity ? 0 : n->width;
    return n->form.extent[n->axis] / n->width * n->width > begin;
}

void tl_nest_prefetch(TlNests *plan)
{
    Reads r = {.plan = plan};
    tl_map_init(&r.before, plan->arena);
    for (uint32_t i = 0; i < plan->all.len; i++) {
        TlNest *n = plan->all.data[i];
        bool notes = n->kind == TL_NEST_REDUCE ? n->along
                                               : tl_nest_is_split(n) && (n->kind == TL_NEST_FILL ||
                                                                         n->kind == TL_NEST_STORE ||
                                                                         n->kind == TL_NEST_COUNT);
        bool nested = is_nested(n->op);
        if (n->unrolled)
            continue;
        bool across = n->kind == TL_NEST_REDUCE && !n->along && n->nvalues >= LEAST_VALUES;
        for (uint32_t k = 0; n->kind == TL_NEST_FILL && k < n->asks.len; k++)
            if (tl_nest_axis_of_loop(n->asks.data[k].access) >= 0 && is_run(n->asks.data[k].access))
                tl_vec_push(plan->arena, &r.trip, n->asks.data[k].access);
        if (n->kind == TL_NEST_REDUCE && n->along)
            find_trip(&r, n);
        if (n->kind == TL_NEST_COUNT || (across && tl_nest_is_split(n)) ||
            (notes && n->kind == TL_NEST_REDUCE && has_whole_part(n)))
            find_fetch(&r, n);
        if (notes && n->kind != TL_NEST_REDUCE && n->kind != TL_NEST_COUNT)
            find_part(plan, n);
        if (notes && !nested && has_whole_part(n))
            find_next(&r, n);
        if (notes)
            note(&r, n, nested);
    }
}
