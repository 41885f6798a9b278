/* emu_check_clock.c: order between blocks (emu_watch.h), which only release and acquire make.
 *
 * A clock is a sorted list of rows "of these accesses, those with a tick before `until` are seen".
 * The rows of a block: one for all of its threads (what was before its last barrier), and one for
 * each thread that released since. Clocks are immutable, so that a release of a thread that has
 * learned nothing new, and a join with what is known, cost a reference.
 *
 * An address holds the clock that was released there: a release store puts its own, a relaxed store
 * takes away what was there, a read-modify-write adds its own when it releases and leaves the rest,
 * since it continues the sequence. */
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu_watch.h"

enum { ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL }; /* ir/enums.def */
enum { SCOPE_BLOCK };

typedef struct row {
    uint64_t who; /* block << 16 | thread + 1; thread part 0: all */
    uint32_t until, pad;
} row;

struct tl_emu_clock {
    atomic_uint refs;
    uint32_t n;
    row rows[];
};

/* ---- clocks ---- */

static uint64_t all_of(uint32_t block)
{
    return (uint64_t)block << 16;
}

static uint64_t one_of(uint32_t block, uint32_t thread)
{
    return all_of(block) | (thread + 1);
}

static tl_emu_clock *keep(tl_emu_clock *c)
{
    unsigned before = c ? atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed) : 1;
    TL_INVARIANT_OR(NULL, before > 0, "a clock is kept after its last reference has gone");
    return c;
}

static void drop(tl_emu_clock *c)
{
    unsigned before = c ? atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) : 2;
    TL_INVARIANT_VOID(before > 0, "a clock is dropped by more than have kept it");
    if (before == 1)
        free(c);
}

static uint32_t until(const tl_emu_clock *c, uint64_t who)
{
    uint32_t low = 0, high = c ? c->n : 0;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (c->rows[mid].who < who)
            low = mid + 1;
        else
            high = mid;
    }
    return c && low < c->n && c->rows[low].who == who ? c->rows[low].until : 0;
}

/* The row of a thread is redundant if the row of its whole block reaches as far. */
static void append(tl_emu_clock *c, row r, row *all)
{
    if ((r.who & 0xffff) == 0)
        *all = r;
    else if (all->who == (r.who & ~UINT64_C(0xffff)) && all->until >= r.until)
        return;
    TL_INVARIANT_VOID(c->n == 0 || c->rows[c->n - 1].who < r.who, "a clock's rows are not sorted");
    c->rows[c->n++] = r;
}

static bool covers(const tl_emu_clock *c, const row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (until(c, rows[i].who) < rows[i].until &&
            until(c, rows[i].who & ~UINT64_C(0xffff)) < rows[i].until)
            return false;
    return true;
}

/* *to becomes the union of itself and the sorted rows. */
static bool join_rows(tl_emu_clock **to, const row *rows, uint32_t n)
{
    tl_emu_clock *a = *to;
    uint32_t na = a ? a->n : 0, i = 0, j = 0;
    row all = {UINT64_MAX, 0, 0};
    if (covers(a, rows, n))
        return true;
    tl_emu_clock *c = malloc(sizeof *c + (na + n) * sizeof(row));
    if (!c)
        return false;
    atomic_init(&c->refs, 1);
    c->n = 0;
    while (i < na || j < n) {
        bool from_a = j >= n || (i < na && a->rows[i].who <= rows[j].who);
        row r = from_a ? a->rows[i] : rows[j];
        if (from_a && j < n && rows[j].who == r.who && rows[j].until > r.until)
            r.until = rows[j].until;
        j += !from_a || (j < n && rows[j].who == r.who);
        i += from_a;
        append(c, r, &all);
    }
    TL_INVARIANT_OR(false, c->n <= na + n, "%u rows of %u and %u", c->n, na, n);
    drop(a);
    *to = c;
    return true;
}

static bool join(tl_emu_clock **to, tl_emu_clock *from)
{
    if (!from || from == *to)
        return true;
    if (!*to) {
        *to = keep(from);
        return true;
    }
    return join_rows(to, from->rows, from->n);
}

/* ---- what was released where ---- */

typedef struct release {
    uint64_t at; /* 0: free */
    tl_emu_clock *clock;
} release;

typedef struct stripe {
    pthread_mutex_t lock;
    release *buckets;
    uint32_t n, nbuckets; /* a power of two, at most half full */
} stripe;

struct tl_emu_released {
    stripe stripes[TL_EMU_STRIPES];
};

static uint64_t hash(uint64_t at)
{
    return (at >> 2) * UINT64_C(0x9e3779b97f4a7c15);
}

static stripe *stripe_of(tl_emu_released *p, uint64_t at)
{
    return &p->stripes[hash(at) >> 58];
}

static release *bucket_of(release *buckets, uint32_t nbuckets, uint64_t at)
{
    TL_INVARIANT_OR(buckets, nbuckets > 0 && (nbuckets & (nbuckets - 1)) == 0, "%u buckets",
                    nbuckets);
    uint32_t i = (uint32_t)(hash(at) >> 24) & (nbuckets - 1);
    while (buckets[i].at && buckets[i].at != at)
        i = (i + 1) & (nbuckets - 1);
    return &buckets[i];
}

static bool grow(stripe *s)
{
    uint32_t nbuckets = s->nbuckets ? 2 * s->nbuckets : 16;
    release *buckets = calloc(nbuckets, sizeof *buckets);
    if (!buckets)
        return false;
    for (uint32_t i = 0; i < s->nbuckets; i++)
        if (s->buckets[i].at)
            *bucket_of(buckets, nbuckets, s->buckets[i].at) = s->buckets[i];
    free(s->buckets);
    s->buckets = buckets;
    s->nbuckets = nbuckets;
    return true;
}

/* The release of an address; the stripe is locked. NULL: none, or out of memory when one was
 * wanted. */
static release *find_release(stripe *s, uint64_t at, bool wanted)
{
    if (wanted && 2 * (s->n + 1) > s->nbuckets && !grow(s))
        return NULL;
    if (s->nbuckets == 0)
        return NULL;
    TL_INVARIANT_OR(NULL, at != 0 && 2 * s->n <= s->nbuckets, "%u released in %u buckets", s->n,
                    s->nbuckets);
    release *p = bucket_of(s->buckets, s->nbuckets, at);
    if (!p->at && !wanted)
        return NULL;
    s->n += !p->at;
    p->at = at;
    return p;
}

tl_emu_released *tl_emu_released_new(void)
{
    tl_emu_released *p = calloc(1, sizeof *p);
    for (int i = 0; p && i < TL_EMU_STRIPES; i++)
        pthread_mutex_init(&p->stripes[i].lock, NULL);
    return p;
}

void tl_emu_released_free(tl_emu_released *p)
{
    for (int i = 0; p && i < TL_EMU_STRIPES; i++) {
        stripe *s = &p->stripes[i];
        for (uint32_t k = 0; k < s->nbuckets; k++)
            drop(s->buckets[k].clock);
        free(s->buckets);
        pthread_mutex_destroy(&s->lock);
    }
    free(p);
}

void tl_emu_released_lock(tl_emu_released *p, uint64_t at)
{
    pthread_mutex_lock(&stripe_of(p, at)->lock);
}

void tl_emu_released_unlock(tl_emu_released *p, uint64_t at)
{
    pthread_mutex_unlock(&stripe_of(p, at)->lock);
}

/* ---- a block ---- */

void tl_emu_order_begin(tl_emu_order *o, uint32_t block, uint32_t threads)
{
    *o = (tl_emu_order){.block = block, .threads = threads, .tick = 1, .epoch = 1};
}

void tl_emu_order_end(tl_emu_order *o)
{
    for (uint32_t i = 0; o->acquired && i < o->threads; i++)
        drop(o->acquired[i]);
    free(o->acquired);
    drop(o->seen);
}

bool tl_emu_order_barrier(tl_emu_order *o)
{
    bool ok = true;
    TL_INVARIANT_OR(false, o->tick >= o->epoch && o->tick < UINT32_MAX, "tick %u after epoch %u",
                    o->tick, o->epoch);
    o->epoch = ++o->tick;
    for (uint32_t i = 0; o->acquired && i < o->threads; i++) {
        ok = join(&o->seen, o->acquired[i]) && ok;
        drop(o->acquired[i]);
    }
    free(o->acquired);
    o->acquired = NULL;
    return ok;
}

bool tl_emu_is_before(const tl_emu_order *o, uint32_t thread, tl_emu_stamp s)
{
    if (s.tick == 0)
        return true;
    if (s.block == o->block)
        return s.thread == thread || s.tick < o->epoch;
    bool has = o->acquired && thread < o->threads; /* not TL_EMU_NOBODY */
    const tl_emu_clock *known[] = {o->seen, has ? o->acquired[thread] : NULL};
    for (int i = 0; i < 2; i++)
        if (s.tick < until(known[i], all_of(s.block)) ||
            s.tick < until(known[i], one_of(s.block, s.thread)))
            return true;
    return false;
}

static bool acquire(tl_emu_order *o, uint32_t thread, tl_emu_clock *from)
{
    if (!from)
        return true;
    TL_INVARIANT_OR(false, thread < o->threads, "thread %u of %u", thread, o->threads);
    if (!o->acquired)
        o->acquired = calloc(o->threads, sizeof(tl_emu_clock *));
    return o->acquired && join(&o->acquired[thread], from);
}

/* Adds to *to what `thread` has seen, what it did, and what its block did before the last
 * barrier. */
static bool publish(tl_emu_order *o, uint32_t thread, tl_emu_clock **to)
{
    row own[2] = {{all_of(o->block), o->epoch, 0}, {one_of(o->block, thread), o->tick + 1, 0}};
    o->tick++;
    return join(to, o->seen) && (!o->acquired || join(to, o->acquired[thread])) &&
           join_rows(to, own, 2);
}

/* The address's stripe is locked. An atomic with block scope orders nothing between blocks. */
bool tl_emu_order_atomic(tl_emu_order *o, tl_emu_released *released, const tl_emu_access *access,
                         bool wrote)
{
    bool wide = access->scope != SCOPE_BLOCK;
    bool acquires = wide && access->atom != TL_ATOM_STORE &&
                    (access->order == ORDER_ACQUIRE || access->order == ORDER_ACQ_REL);
    bool releases =
        wide && wrote && (access->order == ORDER_RELEASE || access->order == ORDER_ACQ_REL);
    bool ends = wrote && access->atom == TL_ATOM_STORE;
    release *p = find_release(stripe_of(released, access->at), access->at, releases);
    if (!p)
        return !releases;
    if (acquires && !acquire(o, access->thread, p->clock))
        return false;
    if (ends) {
        drop(p->clock);
        p->clock = NULL;
    }
    return !releases || publish(o, access->thread, &p->clock);
}
