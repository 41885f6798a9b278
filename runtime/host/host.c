/* host.c: memory, queues and marks of drivers whose kernels run in this process (cpu, ref, emu).
 *
 * A default queue does everything within the call. Any other queue is a ring of records and a
 * thread that takes them in order. A record (launch with its arguments, copy, fill, mark) is copied
 * into the ring and stays there until it is done; when the ring is full the caller waits. So a
 * launch allocates nothing.
 *
 * Each recording of a mark is a moment of its own. Waiting means waiting for the moment that was
 * the mark's when the wait was asked for, whatever becomes of the mark: it may be recorded again,
 * in another queue that is faster, or freed.
 *
 * After a fork the thread of a queue is the parent's: the child's calls say so (TILE_UNAVAILABLE),
 * and so does waiting for a moment that the parent's thread was to make happen. Default queues go
 * on. When the library is unloaded, the thread of an empty queue ends, and the queue does all
 * within the call. */
#include "runtime/life.h"
#include "runtime/runtime.h"
#include "runtime/tensor_map.h"
#include "runtime/threads.h"
#include <stdlib.h>
#include <time.h>

enum { RING_BYTES = 1 << 20, ALIGNMENT = 256 };

typedef enum record_kind {
    REC_SKIP,
    REC_LAUNCH,
    REC_COPY,
    REC_FILL,
    REC_MARK,
    REC_WAIT,
    REC_CALL
} record_kind;

typedef struct record {
    uint32_t size; /* of the whole record, a multiple of 16 */
    record_kind kind;
    void *target;
    const void *source;
    uint64_t bytes; /* copies, fills, calls */
    int value;
    tile_status (*call)(void *user, void *native); /* user: source */
    tl_code *code;
    tl_launch launch; /* its args and slots follow the record */
} record;

struct tl_queue {
    tl_life life; /* of a queue with a thread */
    bool is_lost; /* it was made before a fork */
    const tl_driver *driver;
    tl_dev *dev;
    tl_sink *sink;
    bool immediate, has_thread;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, space;
    uint64_t head,
        tail; /* all bytes ever consumed and produced; they differ by at most RING_BYTES */
    bool quit;
    tile_status status; /* of the first record that failed since the last synchronisation */
    char *error;        /* its text; ERROR_BYTES */
    char *ring;
};
enum { ERROR_BYTES = 1024 };

/* When a queue reached a mark. A moment is shared by the mark, by the record in the ring that will
 * make it happen, and by all that wait for it. */
typedef struct moment {
    atomic_uint owners;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool happened;
    unsigned forks; /* tl_life_forks when it was made */
    double time;    /* milliseconds */
} moment;

struct tl_mark {
    pthread_mutex_t lock;
    moment *last; /* NULL: never recorded */
};

/* ---- memory ---- */

tile_status tl_host_mem_alloc(tl_dev *dev, uint64_t bytes, void **out_address)
{
    TL_INVARIANT(dev && out_address, "memory of no device");
    (void)dev;
    if (bytes > PTRDIFF_MAX - ALIGNMENT)
        return tl_fail(TILE_NO_MEMORY, "out of memory: a buffer of %llu bytes",
                       (unsigned long long)bytes);
    size_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    *out_address = aligned_alloc(ALIGNMENT, size ? size : ALIGNMENT);
    if (!*out_address)
        return tl_fail(TILE_NO_MEMORY, "out of memory: a buffer of %llu bytes",
                       (unsigned long long)bytes);
    return TILE_OK;
}

void tl_host_mem_free(tl_dev *dev, void *address)
{
    (void)dev;
    free(address);
}

/* ---- marks ---- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static moment *new_moment(void)
{
    moment *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->owners = 1;
    t->forks = tl_life_forks();
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    return t;
}

static moment *keep(moment *t)
{
    unsigned before = t ? atomic_fetch_add_explicit(&t->owners, 1, memory_order_relaxed) : 1;
    TL_INVARIANT_OR(NULL, before > 0, "a moment is kept after its last owner has gone");
    return t;
}

static void drop(moment *t)
{
    unsigned before = t ? atomic_fetch_sub(&t->owners, 1) : 2;
    TL_INVARIANT_VOID(before > 0, "a moment is dropped by more than have kept it");
    if (before > 1)
        return;
    if (t->forks == tl_life_forks()) { /* else a thread of the parent's may wait in it for ever */
        pthread_cond_destroy(&t->changed);
        pthread_mutex_destroy(&t->lock);
    }
    free(t);
}

/* Makes it happen and drops it. */
static void happen(moment *t)
{
    TL_INVARIANT_VOID(t, "nothing to happen");
    pthread_mutex_lock(&t->lock);
    TL_DEBUG_INVARIANT(!t->happened, "a moment happens twice");
    t->happened = true;
    t->time = now();
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    drop(t);
}

static bool has_happened(moment *t, double *out_time)
{
    bool is_mine = t->forks == tl_life_forks(); /* else no thread of this process changes it */
    if (is_mine)
        pthread_mutex_lock(&t->lock);
    bool happened = t->happened;
    *out_time = t->time;
    if (is_mine)
        pthread_mutex_unlock(&t->lock);
    return happened;
}

/* Waits for it and drops it. */
static tile_status await(moment *t)
{
    TL_INVARIANT(t, "nothing to wait for");
    double time;
    tile_status status = TILE_OK;
    if (t->forks != tl_life_forks()) {
        if (!has_happened(t, &time))
            status = tl_fail(TILE_UNAVAILABLE, "the event was recorded before fork(), in a stream "
                                               "that this process does not have");
    } else {
        pthread_mutex_lock(&t->lock);
        while (!t->happened)
            pthread_cond_wait(&t->changed, &t->lock);
        pthread_mutex_unlock(&t->lock);
    }
    drop(t);
    return status;
}

/* The caller drops it. NULL: never recorded. */
static moment *last_of(tl_mark *m)
{
    pthread_mutex_lock(&m->lock);
    moment *t = keep(m->last);
    pthread_mutex_unlock(&m->lock);
    return t;
}

tile_status tl_host_mark_create(tl_dev *dev, tl_mark **out_mark)
{
    TL_INVARIANT(out_mark, "a mark for nobody");
    (void)dev;
    tl_mark *m = calloc(1, sizeof *m);
    if (!m)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_init(&m->lock, NULL);
    *out_mark = m;
    return TILE_OK;
}

tile_status tl_host_mark_synchronize(tl_mark *m)
{
    TL_INVARIANT(m, "no mark");
    moment *t = last_of(m);
    return t ? await(t) : TILE_OK;
}

void tl_host_mark_free(tl_mark *m)
{
    if (!m)
        return;
    drop(m->last);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

tile_status tl_host_mark_elapsed(tl_mark *from, tl_mark *to, double *out_milliseconds)
{
    TL_INVARIANT(from && to && out_milliseconds, "a time between no marks");
    double time[2];
    tl_mark *const marks[2] = {from, to};
    for (int i = 0; i < 2; i++) {
        moment *t = last_of(marks[i]);
        bool fine = t && has_happened(t, &time[i]);
        drop(t);
        if (!fine)
            return tl_fail(TILE_BAD_ARGUMENT, "tile_event_elapsed: the %s event has not happened",
                           i ? "second" : "first");
    }
    *out_milliseconds = time[1] - time[0];
    return TILE_OK;
}

/* ---- running records ---- */

static void tell_written(const tl_queue *q, const record *r)
{
    if (q->driver->wrote)
        q->driver->wrote(q->dev, r->target, r->bytes);
}

static tile_status run_call(tl_queue *q, record *r)
{
    tile_status status = r->call((void *)(uintptr_t)r->source, NULL);
    if (r->target && status == TILE_OK)
        tell_written(q, r);
    return status;
}

static tile_status run_record(tl_queue *q, record *r)
{
    switch (r->kind) {
    case REC_SKIP: break;
    case REC_LAUNCH: return q->driver->run(q->dev, r->code, &r->launch, q->sink);
    case REC_COPY:
        memcpy(r->target, r->source, r->bytes);
        tell_written(q, r);
        break;
    case REC_FILL:
        memset(r->target, r->value, r->bytes);
        tell_written(q, r);
        break;
    case REC_MARK: happen(r->target); break;
    case REC_WAIT: return await(r->target);
    case REC_CALL: return run_call(q, r);
    }
    return TILE_OK;
}

static void keep_error(tl_queue *q, tile_status status)
{
    if (status == TILE_OK || q->status != TILE_OK)
        return;
    q->status = status;
    strncpy(q->error, tile_last_error(), ERROR_BYTES - 1);
}

static void *queue_main(void *arg)
{
    tl_queue *q = arg;
    tl_fp_enter();
    pthread_mutex_lock(&q->lock);
    while (!q->quit || q->head != q->tail) {
        if (q->head == q->tail) {
            pthread_cond_wait(&q->work, &q->lock);
            continue;
        }
        record *r = (record *)(void *)(q->ring + q->head % RING_BYTES);
        pthread_mutex_unlock(&q->lock);
        tile_status status = run_record(q, r), broken = tl_broken_status();
        pthread_mutex_lock(&q->lock);
        keep_error(q, broken != TILE_OK ? broken : status);
        TL_DEBUG_INVARIANT(r->size > 0 && r->size % 16 == 0 && r->size <= q->tail - q->head,
                           "a record of %u bytes, of %llu in the ring", r->size,
                           (unsigned long long)(q->tail - q->head));
        q->head += r->size;
        pthread_cond_broadcast(&q->space);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- putting records in ---- */

static tile_status is_lost(void)
{
    return tl_fail(TILE_UNAVAILABLE, "the stream was made before fork(), and its thread is the "
                                     "parent's: create a stream in this process");
}

/* Contiguous room for a record of `size` bytes. The lock is held from here to ring_commit. */
static record *ring_reserve(tl_queue *q, uint32_t size)
{
    pthread_mutex_lock(&q->lock);
    TL_DEBUG_INVARIANT(size >= sizeof(record) && size % 16 == 0 && size <= RING_BYTES / 2,
                       "room for a record of %u bytes", size);
    for (;;) {
        uint64_t left = RING_BYTES - q->tail % RING_BYTES; /* to the ring's end */
        uint64_t need = left >= size ? size : left + size;
        if (q->tail - q->head + need <= RING_BYTES) {
            if (left < size) {
                record *skip = (record *)(void *)(q->ring + q->tail % RING_BYTES);
                skip->size = (uint32_t)left;
                skip->kind = REC_SKIP;
                q->tail += left;
            }
            return (record *)(void *)(q->ring + q->tail % RING_BYTES);
        }
        pthread_cond_wait(&q->space, &q->lock);
    }
}

static void ring_commit(tl_queue *q, uint32_t size)
{
    q->tail += size;
    TL_DEBUG_INVARIANT(q->tail - q->head <= RING_BYTES, "%llu bytes in a ring of %d",
                       (unsigned long long)(q->tail - q->head), RING_BYTES);
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
}

_Static_assert(sizeof(record) % _Alignof(tile_arg) == 0, "arguments follow a record");
_Static_assert(RING_BYTES % 16 == 0 && sizeof(record) <= RING_BYTES, "a record fits into the ring");

static tile_status put_simple(tl_queue *q, record r)
{
    TL_INVARIANT(q, "a record for no queue");
    if (q->immediate)
        return run_record(q, &r);
    if (q->is_lost)
        return is_lost();
    r.size = (sizeof r + 15) / 16 * 16;
    *ring_reserve(q, r.size) = r;
    ring_commit(q, r.size);
    return TILE_OK;
}

/* The launch's own tensor maps, and slots that have their addresses. */
static void keep_maps(tl_launch *to, const tl_launch *from, void *room)
{
    const tile_image_slot *s =
        (const tile_image_slot *)tl_image_text(from->image, from->kernel->slots);
    uint64_t *slots = (uint64_t *)(uintptr_t)to->slots;
    to->maps = memcpy(room, from->maps, from->nmaps * sizeof *from->maps);
    for (uint32_t i = 0, n = 0; i < to->nslots; i++)
        if (s[i].kind == TILE_SLOT_MAP)
            slots[i] = (uint64_t)(uintptr_t)&to->maps[n++];
}

tile_status tl_host_queue_launch(tl_queue *q, tl_code *code, const tl_launch *launch)
{
    TL_INVARIANT(code && launch && launch->kernel, "a launch of nothing");
    TL_DEBUG_INVARIANT(launch->programs > 0, "a launch of no programs");
    if (q->immediate)
        return q->driver->run(q->dev, code, launch, q->sink);
    if (q->is_lost)
        return is_lost();
    size_t args = launch->nargs * sizeof *launch->args,
           slots = launch->nslots * sizeof *launch->slots,
           maps = launch->nmaps * sizeof *launch->maps;
    uint32_t size = (uint32_t)((sizeof(record) + args + slots + maps + 15) / 16 * 16);
    _Static_assert(sizeof(record) + TL_MAX_PARAMS * sizeof(tile_arg) + TL_MAX_SLOTS * 8 +
                           TL_MAX_MAPS * sizeof(tl_tensor_map) <
                       RING_BYTES / 4,
                   "ring too small");
    record *r = ring_reserve(q, size);
    *r = (record){.size = size, .kind = REC_LAUNCH, .code = code, .launch = *launch};
    if (args)
        r->launch.args = memcpy((char *)(r + 1), launch->args, args);
    if (slots)
        r->launch.slots = memcpy((char *)(r + 1) + args, launch->slots, slots);
    if (maps)
        keep_maps(&r->launch, launch, (char *)(r + 1) + args + slots);
    ring_commit(q, size);
    return TILE_OK;
}

tile_status tl_host_queue_copy(tl_queue *q, void *target, const void *source, uint64_t bytes,
                               tl_copy_kind kind)
{
    TL_INVARIANT((target && source) || !bytes, "a copy between no addresses");
    (void)kind;
    return put_simple(
        q, (record){.kind = REC_COPY, .target = target, .source = source, .bytes = bytes});
}

tile_status tl_host_queue_fill(tl_queue *q, void *target, int value, uint64_t bytes)
{
    TL_INVARIANT(target || !bytes, "a fill of no address");
    return put_simple(q,
                      (record){.kind = REC_FILL, .target = target, .value = value, .bytes = bytes});
}

tile_status tl_host_queue_call(tl_queue *q, tile_status (*call)(void *user, void *native),
                               void *user, void *written, uint64_t bytes)
{
    TL_INVARIANT(call, "a call of nothing");
    return put_simple(q, (record){.kind = REC_CALL,
                                  .call = call,
                                  .source = user,
                                  .target = written,
                                  .bytes = bytes});
}

tile_status tl_host_mark_record(tl_mark *m, tl_queue *q)
{
    TL_INVARIANT(m && q, "no mark to record");
    moment *t = new_moment(), *before;
    if (!t)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_lock(&m->lock);
    before = m->last;
    m->last = keep(t);
    pthread_mutex_unlock(&m->lock);
    drop(before);
    return put_simple(q, (record){.kind = REC_MARK, .target = t});
}

tile_status tl_host_mark_wait(tl_mark *m, tl_queue *q)
{
    TL_INVARIANT(m && q, "no mark to wait for");
    moment *t = last_of(m);
    return t ? put_simple(q, (record){.kind = REC_WAIT, .target = t}) : TILE_OK;
}

tile_status tl_host_queue_synchronize(tl_queue *q)
{
    if (q->immediate)
        return TILE_OK;
    if (q->is_lost) /* was there anything to wait for? */
        return q->head == q->tail ? TILE_OK : is_lost();
    pthread_mutex_lock(&q->lock);
    while (q->head != q->tail)
        pthread_cond_wait(&q->space, &q->lock);
    tile_status status = q->status;
    if (status != TILE_OK)
        tl_fail(status, "%s", q->error);
    q->status = TILE_OK;
    pthread_mutex_unlock(&q->lock);
    return status;
}

/* ---- queues ---- */

static bool start_thread(tl_queue *q)
{
    q->ring = aligned_alloc(64, RING_BYTES);
    q->error = calloc(1, ERROR_BYTES);
    return q->ring && q->error && tl_thread_start(&q->thread, queue_main, q) == 0;
}

static void end_thread(tl_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->quit = true;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    TL_INVARIANT_VOID(q->head == q->tail, "a queue's thread left %llu bytes of records",
                      (unsigned long long)(q->tail - q->head));
}

static void unload(tl_life *life)
{
    tl_queue *q = (tl_queue *)life; /* its first member */
    if (q->is_lost || pthread_mutex_trylock(&q->lock) != 0)
        return;
    bool is_empty = q->head == q->tail;
    pthread_mutex_unlock(&q->lock);
    if (!is_empty)
        return;
    end_thread(q);
    q->immediate = true;
}

static void make_locks(tl_queue *q)
{
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->space, NULL);
}

static void forked(tl_life *life)
{
    tl_queue *q = (tl_queue *)life;
    make_locks(q); /* the parent's thread waits in them */
    q->is_lost = true;
}

static void destroy(tl_queue *q)
{
    pthread_cond_destroy(&q->space);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q->error);
    free(q->ring);
    free(q);
}

tile_status tl_host_queue_create(const tl_driver *driver, tl_dev *dev, tl_sink *sink,
                                 bool is_default, tl_queue **out_queue)
{
    TL_INVARIANT(driver && sink && out_queue, "a queue without a sink");
    tl_queue *q = calloc(1, sizeof *q);
    if (!q)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    q->driver = driver;
    q->dev = dev;
    q->sink = sink;
    q->immediate = is_default;
    make_locks(q);
    if (!is_default && !start_thread(q)) {
        destroy(q);
        return tl_fail(TILE_NO_MEMORY, "a stream's thread could not be started");
    }
    q->life = (tl_life){.forked = forked, .unload = unload};
    q->has_thread = !is_default;
    if (q->has_thread)
        tl_life_begin(&q->life);
    *out_queue = q;
    return TILE_OK;
}

void tl_host_queue_free(tl_queue *q)
{
    if (!q)
        return;
    if (q->has_thread)
        tl_life_end(&q->life);
    if (!q->immediate && !q->is_lost)
        end_thread(q);
    destroy(q);
}
