/* sink.c: the prints and failures of one stream's kernels since it was last synchronised.
 *
 * Programs run in any order on any worker; what they print is sorted by launch, then by the
 * program's number, then by time within the program, so that a run's output does not depend on the
 * number of threads. Of the failures, only that of the first launch and lowest program is kept. */
#include <stdio.h>
#include <stdlib.h>
#define TILE_UNSTABLE
#include "runtime/runtime.h"

enum { FAILURE_BYTES = 1024, PRINT_LIMIT = 64 << 20 };

typedef struct record {
    struct record *next;
    uint64_t sequence, order;
    int64_t linear;
    char text[];
} record;

struct tl_sink {
    pthread_mutex_t lock;
    record *records; /* newest first */
    uint64_t nrecords, print_bytes, dropped;
    bool failed, internal; /* internal: the failure is ours, not the kernel's */
    uint64_t fail_sequence;
    int64_t fail_linear;
    char failure[FAILURE_BYTES];
};

tile_status tl_sink_create(tl_sink **out_sink)
{
    TL_INVARIANT(out_sink, "a sink for nobody");
    tl_sink *s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    pthread_mutex_init(&s->lock, NULL);
    *out_sink = s;
    return TILE_OK;
}

static void free_records(record *r)
{
    while (r) {
        record *next = r->next;
        free(r);
        r = next;
    }
}

void tl_sink_free(tl_sink *s)
{
    if (!s)
        return;
    free_records(s->records);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* An internal error takes precedence: what we report about kernels may then be wrong. */
static bool comes_before(const tl_sink *s, uint64_t sequence, int64_t linear, bool internal)
{
    if (s->failed && s->internal != internal)
        return internal;
    return !s->failed || sequence < s->fail_sequence ||
           (sequence == s->fail_sequence && linear < s->fail_linear);
}

void tl_sink_fail(tl_sink *s, const tl_launch *launch, int64_t linear, tl_fail_kind kind,
                  const char *path, uint32_t line, uint32_t col, const char *text)
{
    static const char *const kinds[] = {
        [TL_RUN_ASSERT] = "assertion failed",
        [TL_RUN_BOUNDS] = "out of bounds",
        [TL_RUN_ASSUME] = "assumption does not hold",
        [TL_RUN_UNINIT] = "read of uninitialised memory",
        [TL_RUN_ASYNC] = "asynchronous copy",
        [TL_RUN_MISALIGNED] = "misaligned access",
        [TL_RUN_RACE] = "race",
        [TL_RUN_DIVERGENCE] = "non-convergent collective",
        [TL_RUN_DEADLOCK] = "deadlock",
        [TL_RUN_INTERNAL] = "internal error",
    };
    _Static_assert(sizeof kinds / sizeof *kinds == TL_RUN_INTERNAL + 1, "every kind has a text");
    int32_t pid[TILE_MAX_GRID];
    bool internal = kind == TL_RUN_INTERNAL;
    TL_INVARIANT_VOID(s && launch, "a failure of no launch");
    tl_launch_pid(launch, linear, pid);
    pthread_mutex_lock(&s->lock);
    if (comes_before(s, launch->sequence, linear, internal)) {
        s->failed = true;
        s->internal = internal;
        s->fail_sequence = launch->sequence;
        s->fail_linear = linear;
        size_t n = 0, size = sizeof s->failure;
        n += (size_t)snprintf(
            s->failure, size, "%s:%u:%u: %s%s%.700s (program ", path ? path : "?", line, col,
            (unsigned)kind < sizeof kinds / sizeof *kinds ? kinds[kind] : "check failed",
            text ? ": " : "", text ? text : "");
        for (uint32_t i = 0; i < launch->ngrid && n < size; i++)
            n += (size_t)snprintf(s->failure + n, size - n, "%s%d", i ? "," : "", pid[i]);
        if (n < size)
            snprintf(s->failure + n, size - n, "%s)", launch->ngrid ? "" : "0");
    }
    pthread_mutex_unlock(&s->lock);
}

void tl_sink_print(tl_sink *s, const tl_launch *launch, int64_t linear, const char *text,
                   tile_dtype dtype, uint32_t rank, const int32_t *shape, const void *data)
{
    int64_t wide[TILE_MAX_RANK];
    TL_INVARIANT_VOID(rank <= TILE_MAX_RANK && text && data, "a print of rank %u", rank);
    for (uint32_t i = 0; i < rank && i < TILE_MAX_RANK; i++)
        wide[i] = shape[i];
    size_t label = strlen(text);
    size_t need = tile_format_array(NULL, 0, dtype, (int)rank, wide, data);
    record *r = calloc(1, sizeof *r + label + need + 4);
    pthread_mutex_lock(&s->lock);
    if (!r || s->print_bytes + label + need > PRINT_LIMIT) {
        s->dropped++;
        pthread_mutex_unlock(&s->lock);
        free(r);
        return;
    }
    s->print_bytes += label + need;
    r->sequence = launch->sequence;
    r->linear = linear;
    r->order = s->nrecords++;
    memcpy(r->text, text, label);
    memcpy(r->text + label, " = ", 3);
    tile_format_array(r->text + label + 3, need + 1, dtype, (int)rank, wide, data);
    r->next = s->records;
    s->records = r;
    pthread_mutex_unlock(&s->lock);
}

void tl_sink_drop(tl_sink *s, uint64_t prints)
{
    pthread_mutex_lock(&s->lock);
    s->dropped += prints;
    pthread_mutex_unlock(&s->lock);
}

static int by_program(const void *a, const void *b)
{
    const record *x = *(record *const *)a, *y = *(record *const *)b;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    if (x->linear != y->linear)
        return x->linear < y->linear ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void deliver_prints(record *records, uint64_t n, uint64_t dropped, const tile_callbacks *cb)
{
    record **sorted = n ? calloc(n, sizeof *sorted) : NULL;
    uint64_t i = n;
    for (record *r = records; sorted && r; r = r->next)
        sorted[--i] = r;
    TL_INVARIANT_VOID(!sorted || i == 0, "%llu prints less than were counted",
                      (unsigned long long)i);
    if (sorted)
        qsort(sorted, n, sizeof *sorted, by_program);
    for (i = 0; sorted && i < n; i++)
        cb->print(cb->user, sorted[i]->text);
    if (dropped || (n && !sorted)) {
        char text[80];
        snprintf(text, sizeof text, "(%llu more prints were dropped)",
                 (unsigned long long)(sorted ? dropped : dropped + n));
        cb->print(cb->user, text);
    }
    free(sorted);
}

static void put_line(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "%s\n", text);
}

tile_callbacks tl_sink_to_stderr(void)
{
    tile_callbacks c = TILE_CALLBACKS_INIT;
    c.print = c.failure = put_line;
    return c;
}

tile_status tl_sink_deliver(tl_sink *s, const tile_callbacks *cb)
{
    TL_INVARIANT(s && cb, "nobody to deliver to");
    char failure[FAILURE_BYTES];
    pthread_mutex_lock(&s->lock);
    record *records = s->records;
    uint64_t n = s->nrecords, dropped = s->dropped;
    bool failed = s->failed, internal = s->internal;
    memcpy(failure, s->failure, sizeof failure);
    s->records = NULL;
    s->nrecords = s->print_bytes = s->dropped = 0;
    s->failed = s->internal = false;
    pthread_mutex_unlock(&s->lock);
    if (cb->print)
        deliver_prints(records, n, dropped, cb);
    free_records(records);
    if (failed && cb->failure)
        cb->failure(cb->user, failure);
    if (!failed)
        return TILE_OK;
    return tl_fail(internal ? TILE_INTERNAL : TILE_FAILED, "%s", failure);
}
