/* collectives_test.c: libtile-collectives.
 *
 *     collectives_test local [DEVICE]   1 to 4 ranks in this process: a thread each, and one thread
 *     collectives_test nccl LIBRARY     two GPUs, which are stubs, on stub_nccl_local.c
 *     collectives_test world            in each process that mpirun starts
 *     collectives_test lost             the same; the last rank leaves without a word
 *
 * Every operation of every type is compared with plain C on small integers, whose sums and products
 * all types hold, in bits. */
#include "runtime/include/tile_collectives.h"
#include "test/unit/unit.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Checks of several threads. */
static bool locked_check(bool ok, int line, const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    unit_check(ok, __FILE__, line, text);
    pthread_mutex_unlock(&lock);
    return ok;
}
#undef CHECK
#define CHECK(cond) locked_check((cond), __LINE__, #cond)

/* What calls are called would be the text of all their macros. */
static void succeeds(tile_status status, int line)
{
    if (!locked_check(status == TILE_OK, line, "it returns TILE_OK"))
        fprintf(stderr, "    %s\n", tile_last_error());
}
#define OK(call) succeeds((call), __LINE__)

static const tile_dtype types[] = {TILE_F32, TILE_F16, TILE_BF16, TILE_F64, TILE_I8,
                                   TILE_U8,  TILE_I32, TILE_U32,  TILE_I64, TILE_U64};
enum { TYPES = sizeof types / sizeof *types, MOST = 4, GUARD = 64 };

/* ---- elements ---- */

static uint64_t bits_of(tile_dtype t, int v)
{
    float f = (float)v;
    double d = v;
    uint32_t u;
    uint64_t w;
    int e;
    memcpy(&u, &f, 4);
    memcpy(&w, &d, 8);
    switch ((int)t) {
    case TILE_F32: return u;
    case TILE_BF16: return u >> 16;
    case TILE_F64: return w;
    case TILE_F16:
        e = v ? ilogb(f) : 0;
        return v == 0 ? 0
                      : (uint64_t)((v < 0) << 15 | (e + 15) << 10 |
                                   ((int)ldexp(fabs(d), 10 - e) & 0x3FF));
    default: return (uint64_t)(int64_t)v;
    }
}

static void set(tile_dtype t, void *at, size_t i, int v)
{
    size_t size = (size_t)tile_dtype_bits(t) / 8;
    uint64_t bits = bits_of(t, v);
    memcpy((char *)at + i * size, &bits, size); /* little-endian */
}

/* Element i of rank r for operation `op`; small, and not the same anywhere near. */
static int value(tile_dtype t, int reduction, int ranks, int r, size_t i)
{
    int v = (int)((i * 7 + (size_t)r * 5) % 11);
    if (reduction == TILE_COMM_PROD)
        return 1 + v % 3;
    bool is_signed = t != TILE_U8 && t != TILE_U32 && t != TILE_U64;
    v = is_signed ? v - 5 : v;
    return reduction == TILE_COMM_AVG ? v * ranks : v;
}

static int reduced(tile_dtype t, int reduction, int ranks, size_t i)
{
    int x = value(t, reduction, ranks, 0, i);
    for (int r = 1; r < ranks; r++) {
        int v = value(t, reduction, ranks, r, i);
        x = reduction == TILE_COMM_PROD  ? x * v
            : reduction == TILE_COMM_MAX ? (v > x ? v : x)
            : reduction == TILE_COMM_MIN ? (v < x ? v : x)
                                         : x + v;
    }
    return reduction == TILE_COMM_AVG ? x / ranks : x;
}

/* ---- one rank's arrays and stream ---- */

typedef struct Rank {
    tile_comm *comm;
    tile_stream *stream;
    tile_device *device;
    tile_buffer *send, *recv;
    int rank, ranks, wrong;
} Rank;

enum { LARGE = 70000, ROOM = MOST * LARGE * 8 + 2 * GUARD };

static void open_rank(Rank *r, tile_device *device, tile_comm *comm, bool own_stream)
{
    *r = (Rank){.comm = comm,
                .device = device,
                .rank = tile_comm_rank(comm),
                .ranks = tile_comm_size(comm)};
    OK(tile_buffer_alloc(device, ROOM, &r->send));
    OK(tile_buffer_alloc(device, ROOM, &r->recv));
    if (own_stream)
        OK(tile_stream_create(device, &r->stream));
}

static void close_rank(Rank *r)
{
    OK(tile_stream_synchronize(r->stream));
    OK(tile_comm_status(r->comm));
    tile_stream_free(r->stream);
    tile_comm_free(r->comm);
    tile_buffer_free(r->send);
    tile_buffer_free(r->recv);
}

typedef struct Case {
    int kind; /* of the table below */
    tile_dtype t;
    int reduction, root;
    size_t n; /* of a share */
    bool in_place;
} Case;
enum { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, ALL_TO_ALL, RING, KINDS };
static const char *const names[] = {"all_reduce", "reduce",     "reduce_scatter", "all_gather",
                                    "broadcast",  "all_to_all", "send and recv"};

static bool reduces(int kind)
{
    return kind <= REDUCE_SCATTER;
}
static bool send_parts(int kind)
{
    return kind == REDUCE_SCATTER || kind == ALL_TO_ALL;
}
static bool recv_parts(int kind)
{
    return kind == ALL_GATHER || kind == ALL_TO_ALL;
}

/* Elements, by plain C: of what rank r gives and of what it gets. */
static int given(const Case *c, int ranks, int r, size_t i)
{
    return value(c->t, reduces(c->kind) ? c->reduction : TILE_COMM_SUM, ranks, r, i);
}

static int expected(const Case *c, int ranks, int r, size_t i)
{
    size_t n = c->n, me = (size_t)r;
    switch (c->kind) {
    case REDUCE_SCATTER: return reduced(c->t, c->reduction, ranks, me * n + i);
    case ALL_GATHER: return given(c, ranks, (int)(i / n), i % n);
    case BROADCAST: return given(c, ranks, c->root, i);
    case ALL_TO_ALL: return given(c, ranks, (int)(i / n), me * n + i % n);
    case RING: return given(c, ranks, (r + ranks - 1) % ranks, i);
    default: return reduced(c->t, c->reduction, ranks, i);
    }
}

typedef struct Layout {
    tile_buffer *recv;
    size_t send_n, recv_n, send_at, recv_at; /* in elements; the guard included */
    size_t bytes;                            /* of both buffers that are looked at */
} Layout;

static Layout layout(const Rank *r, const Case *c)
{
    size_t size = (size_t)tile_dtype_bits(c->t) / 8, guard = GUARD / size, n = c->n;
    size_t ranks = (size_t)r->ranks, me = (size_t)r->rank;
    Layout l = {c->in_place ? r->send : r->recv,
                send_parts(c->kind) ? n * ranks : n,
                recv_parts(c->kind) ? n * ranks : n,
                guard,
                guard,
                0};
    l.bytes = (l.send_n > l.recv_n ? l.send_n : l.recv_n) * size + 2 * GUARD;
    if (c->in_place && c->kind == ALL_GATHER)
        l.send_at += me * n;
    if (c->in_place && c->kind == REDUCE_SCATTER)
        l.recv_at += me * n;
    return l;
}

/* Is this rank's recv untouched? */
static bool is_silent(const Rank *r, const Case *c)
{
    return c->kind == REDUCE && r->rank != c->root;
}

static void fill(Rank *r, const Case *c)
{
    static _Thread_local char x[ROOM];
    Layout l = layout(r, c);
    memset(x, 0xAB, l.bytes);
    OK(tile_buffer_upload(r->recv, 0, x, l.bytes, r->stream));
    bool gives = c->kind != BROADCAST || r->rank == c->root;
    for (size_t i = 0; gives && i < l.send_n; i++)
        set(c->t, x, l.send_at + i, given(c, r->ranks, r->rank, i));
    OK(tile_buffer_upload(r->send, 0, x, l.bytes, r->stream));
}

static tile_status ring(Rank *r, tile_arg send, tile_arg recv)
{
    int next = (r->rank + 1) % r->ranks, last = (r->rank + r->ranks - 1) % r->ranks;
    tile_comm_group_begin();
    tile_comm_send(r->comm, send, next, r->stream);
    tile_comm_recv(r->comm, recv, last, r->stream);
    return tile_comm_group_end();
}

static tile_status go(Rank *r, const Case *c)
{
    Layout l = layout(r, c);
    tile_comm_reduction how = (tile_comm_reduction)c->reduction;
    tile_arg send = tile_buffer_view_at(r->send, l.send_at, c->t, l.send_n);
    tile_arg recv = tile_buffer_view_at(l.recv, l.recv_at, c->t, l.recv_n);
    switch (c->kind) {
    case ALL_REDUCE: return tile_comm_all_reduce(r->comm, send, recv, how, r->stream);
    case REDUCE: return tile_comm_reduce(r->comm, send, recv, how, c->root, r->stream);
    case REDUCE_SCATTER: return tile_comm_reduce_scatter(r->comm, send, recv, how, r->stream);
    case ALL_GATHER: return tile_comm_all_gather(r->comm, send, recv, r->stream);
    case BROADCAST: return tile_comm_broadcast(r->comm, send, recv, c->root, r->stream);
    case ALL_TO_ALL: return tile_comm_all_to_all(r->comm, send, recv, r->stream);
    default: return ring(r, send, recv);
    }
}

/* The result, and that nothing around it was written. */
static void check(Rank *r, const Case *c)
{
    static _Thread_local char x[ROOM], want[ROOM];
    Layout l = layout(r, c);
    size_t size = (size_t)tile_dtype_bits(c->t) / 8;
    size_t from = l.recv_at * size, bytes = l.recv_n * size;
    OK(tile_buffer_download(l.recv, 0, x, l.bytes, r->stream));
    memset(want, 0xAB, l.bytes);
    for (size_t i = 0; !is_silent(r, c) && i < l.recv_n; i++)
        set(c->t, want, l.recv_at + i, expected(c, r->ranks, r->rank, i));
    if (c->in_place && is_silent(r, c))
        return; /* recv is send */
    if (c->in_place && c->kind == REDUCE_SCATTER ? memcmp(x + from, want + from, bytes) == 0
                                                 : memcmp(x, want, l.bytes) == 0)
        return;
    if (!r->wrong++)
        CHECK(!"the result is wrong"),
            fprintf(stderr,
                    "    %s of %zu %s, reduction %d, root %d, "
                    "%s, rank %d of %d\n",
                    names[c->kind], c->n, tile_dtype_name(c->t), c->reduction, c->root,
                    c->in_place ? "in place" : "apart", r->rank, r->ranks);
}

/* ---- all cases ---- */

typedef void Each(const Case *c, void *user);

static bool may_be_in_place(int kind)
{
    return kind != RING;
}

/* 2001 elements of f64 are two pieces of comm_local.c; `large` is more than comm_messages.c's. */
static void each_case(int ranks, size_t large, Each *each, void *user)
{
    const size_t counts[] = {0, 1, 3, 257, 2001, large};
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t t = 0; t < TYPES; t++)
            for (int reduction = 0; reduction <= (reduces(kind) ? TILE_COMM_AVG : 0); reduction++)
                for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
                    for (int in_place = 0; in_place < 2; in_place++) {
                        Case c = {kind,      types[t], reduction, (int)(n + t) % ranks,
                                  counts[n], in_place};
                        if ((in_place && !may_be_in_place(kind)) || (ranks == 1 && kind == RING))
                            continue;
                        if (n && (counts[n] == 0 || (n == 5 && c.t != TILE_F64)))
                            continue;
                        if (n == 5 && !send_parts(kind) && !recv_parts(kind))
                            c.n *= (size_t)ranks; /* more than a piece of an all_reduce */
                        each(&c, user);
                    }
}

static void one_rank(const Case *c, void *user)
{
    Rank *r = user;
    fill(r, c);
    OK(go(r, c));
    OK(tile_stream_synchronize(r->stream));
    check(r, c);
}

static void *rank_main(void *user)
{
    Rank *r = user;
    each_case(r->ranks, 0, one_rank, r);
    return NULL;
}

static void all_ranks(const Case *c, void *user)
{
    Rank *r = user;
    int n = r->ranks;
    for (int i = 0; i < n; i++)
        fill(&r[i], c);
    OK(tile_comm_group_begin());
    for (int i = 0; i < n; i++)
        OK(go(&r[i], c));
    OK(tile_comm_group_end());
    for (int i = 0; i < n; i++)
        check(&r[i], c);
}

/* ---- local ---- */

static void with_threads(tile_device *device, int n)
{
    tile_comm_id id;
    pthread_t thread[MOST];
    Rank rank[MOST];
    OK(tile_comm_id_create(device, NULL, &id));
    for (int i = 0; i < n; i++) {
        tile_comm *comm;
        OK(tile_comm_create(device, NULL, &id, n, i, &comm));
        open_rank(&rank[i], device, comm, true);
    }
    for (int i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, rank_main, &rank[i]);
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < n; i++)
        close_rank(&rank[i]);
}

/* Devices and default streams of one thread. */
static void with_one_thread(const char *const *name, int n, const tile_comm_options *options)
{
    tile_device *device[MOST] = {NULL};
    tile_comm *comm[MOST];
    Rank rank[MOST];
    for (int i = 0; i < n; i++)
        OK(tile_device_open(name[i], &device[i]));
    OK(tile_comm_create_all(device, n, options, comm));
    for (int i = 0; i < n; i++)
        open_rank(&rank[i], device[i], comm[i], false);
    each_case(n, 0, all_ranks, rank);
    for (int i = 0; i < n; i++) {
        OK(tile_device_synchronize(device[i]));
        close_rank(&rank[i]);
    }
    for (int i = 0; i < n; i++)
        tile_device_close(device[i]);
}

/* One rank's mean is what was there: all 16-bit numbers go to f32 and back. */
static void sixteen_bits(tile_device *device)
{
    static uint16_t x[65536], y[65536];
    tile_comm *comm;
    OK(tile_comm_create_all(&device, 1, NULL, &comm));
    for (int t = TILE_F16; t <= TILE_BF16; t++) {
        for (int i = 0; i < 65536; i++)
            x[i] = (uint16_t)i;
        OK(tile_comm_all_reduce(comm, tile_view_typed((tile_dtype)t, x, 65536),
                                tile_view_typed((tile_dtype)t, y, 65536), TILE_COMM_AVG, NULL));
        int wrong = 0, top = t == TILE_F16 ? 0x7C00 : 0x7F80;
        for (int i = 0; i < 65536; i++) {
            bool nan = (i & 0x7FFF) > top;
            wrong += nan ? (y[i] & 0x7FFF) <= top : y[i] != i;
        }
        CHECK(wrong == 0);
    }
    tile_comm_free(comm);
}

/* Sums are rounded once, to even; NaN wins; integers wrap, and their means do not. */
static void numbers(tile_device *device)
{
    tile_device *d[3] = {device, device, device};
    tile_comm *comm[3];
    uint16_t h[3] = {0x3C00, 0x1000, 0x1000}; /* 1, 2^-11, 2^-11: the sum is 1 + 2^-10 */
    uint16_t tie[3] = {0x3C00, 0x1000, 0};    /* 1 + 2^-11: to 1 */
    uint16_t big[3] = {0x7BFF, 0x4C00, 0};    /* 65504 + 16: infinity */
    uint16_t tiny[3] = {0x0001, 0x0001, 0x8000};
    float nan[3] = {1, NAN, 3};
    int8_t byte[3] = {100, 100, 100}, mean[3] = {100, 120, 127}, below[3] = {-1, -1, 0};
    OK(tile_comm_create_all(d, 3, NULL, comm));
#define ALL(x, t, how)                                                                             \
    do {                                                                                           \
        tile_comm_group_begin();                                                                   \
        for (int i = 0; i < 3; i++)                                                                \
            tile_comm_all_reduce(comm[i], tile_view_typed(t, x + i, 1),                            \
                                 tile_view_typed(t, x + i, 1), how, NULL);                         \
        OK(tile_comm_group_end());                                                                 \
        CHECK(memcmp(x, x + 1, sizeof *x) == 0 && memcmp(x, x + 2, sizeof *x) == 0);               \
    } while (0)
    ALL(h, TILE_F16, TILE_COMM_SUM);
    CHECK(h[0] == 0x3C01);
    ALL(tie, TILE_F16, TILE_COMM_SUM);
    CHECK(tie[0] == 0x3C00);
    ALL(big, TILE_F16, TILE_COMM_SUM);
    CHECK(big[0] == 0x7C00);
    ALL(tiny, TILE_F16, TILE_COMM_SUM);
    CHECK(tiny[0] == 0x0002);
    ALL(nan, TILE_F32, TILE_COMM_MAX);
    CHECK(isnan(nan[0]));
    nan[0] = NAN, nan[1] = 1, nan[2] = 2;
    ALL(nan, TILE_F32, TILE_COMM_MIN);
    CHECK(isnan(nan[0]));
    ALL(byte, TILE_I8, TILE_COMM_SUM);
    CHECK(byte[0] == 44);
    ALL(mean, TILE_I8, TILE_COMM_AVG);
    CHECK(mean[0] == 115);
    ALL(below, TILE_I8, TILE_COMM_AVG);
    CHECK(below[0] == 0);
    for (int i = 0; i < 3; i++)
        tile_comm_free(comm[i]);
}

/* ---- errors ---- */

static void says(tile_status status, tile_status want, const char *text, int line)
{
    bool good = status == want && strstr(tile_last_error(), text);
    if (!locked_check(good, line, "it says what is wrong"))
        fprintf(stderr, "    status %d, '%s' instead of '%s'\n", status, tile_last_error(), text);
}
#define SAYS(call, want, text) says((call), (want), (text), __LINE__)
#define BAD(call, text)        SAYS(call, TILE_BAD_ARGUMENT, text)

static void bad_joins(tile_device *device)
{
    tile_comm_options o = TILE_COMM_OPTIONS_INIT, none = {0}, nccl = TILE_COMM_OPTIONS_INIT;
    tile_comm_id id, nothing = {{0}}, other;
    tile_comm *comm, *all[1];
    o.backend = "smoke";
    nccl.backend = "nccl";
    BAD(tile_comm_id_create(device, &o, &id), "no backend 'smoke'");
    BAD(tile_comm_id_create(device, &none, &id), "struct_size");
    BAD(tile_comm_id_create(device, NULL, NULL), "out_id is NULL");
    SAYS(tile_comm_id_create(device, &nccl, &id), TILE_UNAVAILABLE, "nccl is for GPUs");
    nccl.library = "libnone.so.9";
    SAYS(tile_comm_id_create(device, &nccl, &id), TILE_UNAVAILABLE, "libnone.so.9");
    nccl.library = "libm.so.6";
    SAYS(tile_comm_id_create(device, &nccl, &id), TILE_UNAVAILABLE, "has no ncclGetVersion");
    OK(tile_comm_id_create(device, NULL, &id));
    BAD(tile_comm_create(device, NULL, &nothing, 2, 0, &comm), "was not made by");
    BAD(tile_comm_create(device, NULL, &id, 2, 2, &comm), "rank 2 of 2");
    BAD(tile_comm_create(device, NULL, &id, 0, 0, &comm), "rank 0 of 0");
    BAD(tile_comm_create(device, NULL, &id, 1, 0, NULL), "out_comm is NULL");
    BAD(tile_comm_create(device, NULL, NULL, 1, 0, &comm), "id is NULL");
    BAD(tile_comm_create(device, NULL, &id, 1000, 0, &comm), "up to 256");
    memcpy(&other, &id, sizeof id);
    other.bytes[16] ^= 1;
    BAD(tile_comm_create(device, NULL, &other, 1, 0, &comm), "the id is of process");
    BAD(tile_comm_create_all(&device, 0, NULL, all), "0 ranks");
    BAD(tile_comm_create_all(NULL, 1, NULL, all), "devices is NULL");
    OK(tile_comm_create(device, NULL, &id, 2, 1, &comm));
    tile_comm *twice;
    BAD(tile_comm_create(device, NULL, &id, 2, 1, &twice), "rank 1 of this id is taken");
    BAD(tile_comm_create(device, NULL, &id, 3, 0, &twice), "another rank of this id has said 2");
    OK(tile_comm_group_begin());
    BAD(tile_comm_create(device, NULL, &id, 2, 0, &twice), "a group is open");
    OK(tile_comm_group_end());
    BAD(tile_comm_group_end(), "no group is open");
    CHECK(tile_comm_rank(comm) == 1 && tile_comm_size(comm) == 2);
    CHECK(strcmp(tile_comm_backend(comm), "local") == 0 && !tile_comm_backend(NULL));
    CHECK(tile_comm_rank(NULL) == -1 && tile_comm_size(NULL) == 0);
    tile_comm_free(comm);
    tile_comm_free(NULL);
    BAD(tile_comm_abort(NULL), "comm is NULL");
    BAD(tile_comm_status(NULL), "comm is NULL");
}

static void bad_calls(tile_device *device)
{
    float x[12], y[12];
    int64_t n[2] = {2, 3}, gaps[2] = {4, 1}, dense[2] = {3, 1};
    tile_comm *c;
    tile_device *other;
    tile_stream *theirs;
    tile_buffer *b;
    OK(tile_comm_create_all(&device, 1, NULL, &c));
    OK(tile_device_open("cpu", &other));
    OK(tile_stream_create(other, &theirs));
    OK(tile_buffer_alloc(device, 16, &b));
#define SUM(send, recv) tile_comm_all_reduce(c, send, recv, TILE_COMM_SUM, NULL)
    BAD(tile_comm_all_reduce(NULL, tile_view(x, 1), tile_view(x, 1), TILE_COMM_SUM, NULL),
        "tile_comm_all_reduce: comm is NULL");
    BAD(SUM(tile_view(x, 3), tile_view(y, 4)), "send has 3 elements and recv 4, for 1 ranks");
    BAD(SUM(tile_view(x, 3), tile_view_typed(TILE_I32, y, 3)), "send is of f32, recv of i32");
    BAD(SUM(tile_view((char *)x, 3), tile_view(y, 3)), "the type of send is not known");
    BAD(SUM(tile_view_typed(TILE_I4, x, 4), tile_view(y, 4)), "the type of send is i4");
    BAD(SUM(tile_view_typed(TILE_F8E4M3, x, 4), tile_view_typed(TILE_F8E4M3, x, 4)),
        "f8e4m3 cannot be reduced");
    BAD(SUM(tile_view_strided(x, 2, n, gaps), tile_view(y, 6)), "send has gaps");
    BAD(SUM(tile_view(x, -1), tile_view(y, 1)), "an extent of send is wrong");
    BAD(SUM(tile_view(x, INT64_MAX, 3), tile_view(y, 1)), "an extent of send is wrong");
    BAD(SUM(tile_f32(1), tile_view(y, 1)), "send is no view");
    BAD(SUM(tile_view((float *)0, 1), tile_view(y, 1)), "send has 4 bytes, but no memory");
    BAD(SUM(tile_f32_view(b, 5), tile_f32_view(b, 5)),
        "send has 20 bytes, but its memory has fewer");
    BAD(SUM(tile_buffer_view_at(b, 4, TILE_F32, 1), tile_view(y, 1)), "outside of its buffer");
    BAD(SUM(tile_view_typed(TILE_F32, (char *)x + 1, 1), tile_view(y, 1)), "not a multiple of 4");
    BAD(SUM(tile_view(x, 4), tile_view(x + 1, 4)), "send and recv overlap");
    BAD(tile_comm_all_reduce(c, tile_view(x, 1), tile_view(y, 1), (tile_comm_reduction)5, NULL),
        "no reduction 5");
    BAD(tile_comm_reduce(c, tile_view(x, 1), tile_view(y, 1), TILE_COMM_SUM, 1, NULL),
        "no rank 1 of 1");
    BAD(tile_comm_send(c, tile_view(x, 1), 0, NULL), "to itself: rank 0 of 1");
    BAD(tile_comm_all_reduce(c, tile_view(x, 1), tile_view(y, 1), TILE_COMM_SUM, theirs),
        "the stream is of another device");
    OK(SUM(tile_view_strided(x, 2, n, dense), tile_view(y, 6)));
    OK(SUM(tile_f32_view(NULL, 0), tile_f32_view(NULL, 0)));
    /* a group with a wrong call does nothing */
    x[0] = 1, y[0] = 2;
    OK(tile_comm_group_begin());
    OK(SUM(tile_view(x, 1), tile_view(y, 1)));
    BAD(SUM(tile_view(x, 3), tile_view(y, 4)), "send has 3 elements");
    BAD(tile_comm_group_end(), "send has 3 elements");
    CHECK(y[0] == 2);
    OK(tile_comm_status(c));
    tile_comm_free(c);
    tile_buffer_free(b);
    tile_stream_free(theirs);
    tile_device_close(other);
}

/* Ranks that do not do the same learn it. */
static void differing(tile_device *device)
{
    for (int turn = 0; turn < 4; turn++) {
        tile_device *d[2] = {device, device};
        tile_comm *c[2];
        float x[4] = {0}, y[4] = {0};
        OK(tile_comm_create_all(d, 2, NULL, c));
        OK(tile_comm_group_begin());
        OK(tile_comm_all_reduce(c[0], tile_view(x, 4), tile_view(x, 4), TILE_COMM_SUM, NULL));
        if (turn == 0)
            OK(tile_comm_all_reduce(c[1], tile_view(y, 3), tile_view(y, 3), TILE_COMM_SUM, NULL));
        if (turn == 1)
            OK(tile_comm_all_reduce(c[1], tile_view(y, 4), tile_view(y, 4), TILE_COMM_MAX, NULL));
        if (turn == 2)
            OK(tile_comm_broadcast(c[1], tile_view(y, 4), tile_view(y, 4), 1, NULL));
        if (turn == 3)
            OK(tile_comm_all_reduce(c[1], tile_view_typed(TILE_I32, y, 4),
                                    tile_view_typed(TILE_I32, y, 4), TILE_COMM_SUM, NULL));
        const char *const text[] = {"rank 0 calls all_reduce of 4 f32, but rank 1 calls all_reduce "
                                    "of 3 f32",
                                    "with another root or reduction",
                                    "but rank 1 calls broadcast of 4 f32",
                                    "but rank 1 calls all_reduce of 4 i32"};
        SAYS(tile_comm_group_end(), TILE_FAILED, text[turn]);
        for (int i = 0; i < 2; i++) {
            SAYS(tile_comm_status(c[i]), TILE_FAILED, text[turn]);
            SAYS(tile_comm_all_reduce(c[i], tile_view(x, 4), tile_view(x, 4), TILE_COMM_SUM, NULL),
                 TILE_FAILED, text[turn]);
            tile_comm_free(c[i]);
        }
    }
}

static void *wait_for_sum(void *user)
{
    Rank *r = user;
    float x[2] = {1, 2};
    tile_status status =
        tile_comm_all_reduce(r->comm, tile_view(x, 2), tile_view(x, 2), TILE_COMM_SUM, r->stream);
    if (status == TILE_OK) /* else the abort was first */
        status = tile_stream_synchronize(r->stream);
    SAYS(status, TILE_FAILED, r->rank ? "rank 0 has left" : "aborted");
    return NULL;
}

/* A rank that waits for another that is aborted, or aborts itself, or has left. */
static void aborted(tile_device *device)
{
    for (int turn = 0; turn < 3; turn++) {
        tile_device *d[2] = {device, device};
        tile_comm *c[2];
        pthread_t thread;
        int waits = turn == 2;
        OK(tile_comm_create_all(d, 2, NULL, c));
        Rank r = {.comm = c[waits], .rank = waits};
        OK(tile_stream_create(device, &r.stream));
        pthread_create(&thread, NULL, wait_for_sum, &r);
        if (turn == 2)
            tile_comm_free(c[0]);
        else
            OK(tile_comm_abort(c[turn]));
        pthread_join(thread, NULL);
        SAYS(tile_comm_status(c[waits]), TILE_FAILED, turn == 2 ? "has left" : "aborted");
        tile_stream_free(r.stream);
        tile_comm_free(c[waits]);
        if (turn < 2)
            tile_comm_free(c[1]);
    }
}

/* Many operations under way, on several streams, without waiting. */
static void *many(void *user)
{
    enum { N = 300, LONG = 1000 };
    Rank *r = user;
    static _Thread_local int32_t x[4][LONG];
    tile_stream *s[4];
    for (int k = 0; k < 4; k++) {
        OK(tile_stream_create(r->device, &s[k]));
        for (int i = 0; i < LONG; i++)
            x[k][i] = i % 3 + k;
    }
    for (int i = 0; i < N; i++)
        OK(tile_comm_all_reduce(r->comm, tile_view(x[i % 4], LONG), tile_view(x[i % 4], LONG),
                                i < 8 ? TILE_COMM_SUM : TILE_COMM_MAX, s[i % 4]));
    int wrong = 0;
    for (int k = 0; k < 4; k++) {
        OK(tile_stream_synchronize(s[k]));
        tile_stream_free(s[k]);
        for (int i = 0; i < LONG; i++)
            wrong += x[k][i] != (i % 3 + k) * r->ranks * r->ranks;
    }
    CHECK(wrong == 0);
    return NULL;
}

static void many_streams(tile_device *device)
{
    tile_device *d[3] = {device, device, device};
    tile_comm *c[3];
    pthread_t thread[3];
    Rank r[3];
    OK(tile_comm_create_all(d, 3, NULL, c));
    for (int i = 0; i < 3; i++) {
        r[i] = (Rank){.comm = c[i], .device = device, .rank = i, .ranks = 3};
        pthread_create(&thread[i], NULL, many, &r[i]);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(thread[i], NULL);
    }
    for (int i = 0; i < 3; i++)
        tile_comm_free(c[i]);
}

/* tile_stream_call itself. */
static tile_status fails(void *user, void *native)
{
    CHECK(!native);
    ++*(int *)user;
    return tile_set_last_error(TILE_IO, "so it was told");
}

static void stream_calls(tile_device *device)
{
    tile_stream *s;
    int calls = 0;
    OK(tile_stream_create(device, &s));
    SAYS(tile_stream_call(device, NULL, fails, &calls, NULL, 0), TILE_IO, "so it was told");
    OK(tile_stream_call(device, s, fails, &calls, NULL, 0));
    SAYS(tile_stream_synchronize(s), TILE_IO, "so it was told");
    CHECK(calls == 2);
    BAD(tile_stream_call(device, s, NULL, NULL, NULL, 0), "call is NULL");
    tile_stream_free(s);
}

static void local(const char *name)
{
    const char *const names_of[] = {name, name, name, name};
    tile_device *device;
    OK(tile_device_open(name, &device));
    for (int n = 1; n <= MOST; n++) {
        with_threads(device, n);
        with_one_thread(names_of, n, NULL);
    }
    sixteen_bits(device);
    numbers(device);
    bad_joins(device);
    bad_calls(device);
    differing(device);
    aborted(device);
    many_streams(device);
    stream_calls(device);
    tile_comm_place place = TILE_COMM_PLACE_INIT, none = {0};
    OK(tile_comm_world_place(&place));
    CHECK(place.rank == 0 && place.ranks == 1 && place.local_rank == 0 && place.local_ranks == 1);
    BAD(tile_comm_world_place(&none), "struct_size");
    BAD(tile_comm_world_place(NULL), "out_place is NULL");
    tile_comm *world;
    OK(tile_comm_create_world(device, NULL, &world));
    CHECK(tile_comm_size(world) == 1 && strcmp(tile_comm_backend(world), "local") == 0);
    tile_comm_free(world);
    tile_device_close(device);
}

/* ---- GPUs ---- */

static void nccl(const char *library)
{
    const char *const cuda[] = {"cuda:0", "cuda:1"}, *const hip[] = {"hip:0", "hip:1"};
    const char *const host[] = {"cpu", "cpu"};
    tile_comm_options o = TILE_COMM_OPTIONS_INIT, mpi = TILE_COMM_OPTIONS_INIT;
    tile_device *device;
    tile_comm_id id;
    tile_comm *c;
    mpi.backend = "mpi";
    with_one_thread(cuda, 2, NULL); /* libnccl.so.2, librccl.so.1 */
    with_one_thread(hip, 2, NULL);
    o.backend = "nccl";
    o.library = library;
    with_one_thread(cuda, 1, &o);
    OK(tile_device_open("cuda:1", &device));
    SAYS(tile_comm_id_create(device, &mpi, &id), TILE_UNAVAILABLE, "a GPU has nccl");
    OK(tile_comm_create_all(&device, 1, NULL, &c));
    CHECK(strcmp(tile_comm_backend(c), "nccl") == 0);
    setenv("STUB_NCCL_FAIL", "ncclAllReduce", 1);
    tile_buffer *b;
    OK(tile_buffer_alloc(device, 64, &b));
    SAYS(tile_comm_all_reduce(c, tile_f32_view(b, 4), tile_f32_view(b, 4), TILE_COMM_SUM, NULL),
         TILE_DRIVER, "ncclAllReduce: the stub was told to fail");
    SAYS(tile_comm_status(c), TILE_DRIVER, "ncclAllReduce: the stub was told to fail");
    tile_comm_free(c);
    setenv("STUB_NCCL_FAIL", "ncclCommInitRank", 1);
    SAYS(tile_comm_create_all(&device, 1, NULL, &c), TILE_DRIVER, "ncclCommInitRank: the stub");
    setenv("STUB_NCCL_FAIL", "async", 1);
    OK(tile_comm_create_all(&device, 1, NULL, &c));
    SAYS(tile_comm_status(c), TILE_DRIVER, "an operation: the stub was told to fail");
    tile_comm_free(c);
    unsetenv("STUB_NCCL_FAIL");
    OK(tile_comm_create_all(&device, 1, NULL, &c));
    OK(tile_comm_status(c));
    OK(tile_comm_abort(c));
    SAYS(tile_comm_all_reduce(c, tile_f32_view(b, 4), tile_f32_view(b, 4), TILE_COMM_SUM, NULL),
         TILE_FAILED, "rank 0 was aborted");
    tile_comm_free(c);
    tile_buffer_free(b);
    tile_device_close(device);
    with_one_thread(host, 1, &o);
}

/* ---- processes ---- */

static void world(tile_device *device)
{
    tile_comm_options o = TILE_COMM_OPTIONS_INIT;
    tile_comm_place place = TILE_COMM_PLACE_INIT;
    tile_comm *c, *pair;
    Rank r;
    o.backend = "mpi";
    OK(tile_comm_world_place(&place));
    for (int own = 0; own < 2; own++) {
        OK(tile_comm_create_world(device, own ? &o : NULL, &c));
        CHECK(tile_comm_rank(c) == place.rank && tile_comm_size(c) == place.ranks);
        CHECK(strcmp(tile_comm_backend(c), "mpi") == 0);
        open_rank(&r, device, c, own);
        each_case(r.ranks, own ? LARGE : 0, one_rank, &r);
        close_rank(&r);
    }
    /* a communicator of the first and the last, whose id goes through the world's */
    OK(tile_comm_create_world(device, NULL, &c));
    tile_comm_id id = {{0}};
    if (place.rank == 0)
        OK(tile_comm_id_create(device, &o, &id));
    OK(tile_comm_broadcast(c, tile_view_typed(TILE_U8, &id, sizeof id),
                           tile_view_typed(TILE_U8, &id, sizeof id), 0, NULL));
    bool last = place.rank == place.ranks - 1;
    if (place.rank == 0 || last) {
        int32_t x = place.rank + 1;
        OK(tile_comm_create(device, NULL, &id, 2, last, &pair));
        OK(tile_comm_all_reduce(pair, tile_view(&x, 1), tile_view(&x, 1), TILE_COMM_SUM, NULL));
        CHECK(x == 1 + place.ranks);
        tile_comm_free(pair);
    }
    /* counts that differ */
    float x[2] = {1, 2};
    if (place.rank == 0)
        OK(tile_comm_send(c, tile_view(x, 1), 1, NULL));
    if (place.rank == 1) {
        SAYS(tile_comm_recv(c, tile_view(x, 2), 0, NULL), TILE_DRIVER,
             "a message of 4 bytes came, of 8: the ranks' calls differ");
        SAYS(tile_comm_status(c), TILE_DRIVER, "a message of 4 bytes");
    }
    tile_comm_free(c);
}

/* The others wait for a rank that has not called; they abort. */
static void lost(tile_device *device)
{
    tile_comm *c;
    tile_stream *s;
    float x[2] = {1, 2};
    OK(tile_comm_create_world(device, NULL, &c));
    OK(tile_stream_create(device, &s));
    if (tile_comm_rank(c) == 0) {
        OK(tile_comm_recv(c, tile_view(x, 2), 1, s));
        OK(tile_comm_status(c));
        OK(tile_comm_abort(c));
        SAYS(tile_stream_synchronize(s), TILE_DRIVER, "tile_comm_recv: it was aborted");
        SAYS(tile_comm_status(c), TILE_FAILED, "rank 0 was aborted");
    }
    tile_stream_free(s);
    tile_comm_free(c);
}

int main(int argc, char **argv)
{
    tile_device *device;
    if (argc > 1 && strcmp(argv[1], "local") == 0)
        local(argc > 2 ? argv[2] : "cpu");
    else if (argc > 2 && strcmp(argv[1], "nccl") == 0)
        nccl(argv[2]);
    else if (argc > 1 && !tile_device_open("cpu", &device)) {
        if (strcmp(argv[1], "lost") == 0)
            lost(device);
        else
            world(device);
        tile_device_close(device);
    }
    return unit_result();
}
