/* Random sequences of calls of the public API, right ones and wrong ones, on every kind of device,
 * in one thread and in several; cuda and hip run over stubs of the vendors' libraries.
 *
 *     runtime_sequences [--seed N] [--count N] [--steps N] [--devices D,D,...] [--verbose]
 *
 * Sequence number i is made from seed + i alone, so `--seed N --count 1` repeats one. What is
 * checked: each call's status is one that the headers allow there; what a buffer holds is what the
 * calls up to then have made of it, computed beside it; a failed assertion is told by the
 * synchronisation that follows; nothing hangs. The rest is what AddressSanitizer and
 * ThreadSanitizer find: build with TILE_SANITIZE.
 *
 * The sequences keep to the contract: a handle is freed once and not while another thread uses it,
 * a buffer is not touched while a stream that is not waited for uses it, and only its owner gives a
 * device's own handle to a call. They do not keep to any order of freeing: devices are closed
 * first, last or in between, also while other threads launch. */
#define TILE_UNSTABLE
#include "codegen/include/tilec.h"
#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/runtime/stub_gpu.h"
#include "test/unit/image_maker.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    KINDS = 8,
    DEVICES = 24, /* of a sequence, closed ones too */
    THINGS = 6,   /* streams, events, buffers of an actor */
    MODULES = 4,
    THREADS = 4,
    ELEMENTS = 64,
    HANG_SECONDS = 300 /* for one sequence: generous */
};

static const char source[] =
    "kernel scale(const f32 x[N], f32 y[N], f32 a, const int B = 16)\n"
    "    grid(cdiv(N, B)) warps(1) alias(x, y)\n"
    "{\n"
    "    int i = pid(0) * B;\n"
    "    y[i +: B] = x[i +: B] * a;\n"
    "}\n"
    "kernel positive(const f32 x[N]) grid(1) warps(1)\n"
    "{\n"
    "    f32 v = x[0];\n"
    "    print(\"v\", v);\n"
    "    assert(v >= 0, \"negative\");\n"
    "}\n"
    "kernel copy(const f32 *p, f32 *q, i32 n) grid(cdiv(n, 16)) warps(1)\n"
    "{\n"
    "    tile<i32, 16> i = pid(0) * 16 + iota(16);\n"
    "    store(q + i, load(p + i, mask = i < n, pad = 0.0), mask = i < n);\n"
    "}\n";

/* ---- kinds of devices ---- */

typedef struct Kind {
    char name[32];
    const char *target;
    bool stub;
    void *image; /* of all kernels; the stubs': of scale */
    size_t size;
} Kind;

static Kind kinds[KINDS];
static int nkinds;
static void *all_images; /* one after another, ended as the linker ends them */
static bool verbose;
static uint64_t current_seed;
static ImageMaker maker;

/* y[i] = x[i] * a, in the order of the parameter block: x, N, stride, y, N, stride, a. */
static void stub_scale(void **params, unsigned grid, unsigned block)
{
    const float *x;
    float *y, a;
    int64_t n;
    (void)grid, (void)block;
    memcpy(&x, params[0], sizeof x);
    memcpy(&n, params[1], sizeof n);
    memcpy(&y, params[3], sizeof y);
    memcpy(&a, params[6], sizeof a);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * a;
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "runtime_sequences: %s: %s\n", what, why);
    exit(2);
}

static void *copy_bytes(const void *data, size_t size)
{
    size_t room = (size + 64 + 63) / 64 * 64; /* zeros behind it: no further image */
    char *p = aligned_alloc(64, room);
    if (!p)
        die("memory", "none");
    memcpy(p, data, size);
    memset(p + size, 0, room - size);
    return p;
}

/* The library is found by its name afterwards, as it is loaded already. */
static void use_stub(Kind *k, const char *library)
{
    static const char text[] = "the text of a module";
    static const KernelSpec spec = {
        .name = "scale",
        .params = {{"x", "f32 const view N"}, {"y", "f32 view N"}, {"a", "f32 scalar"}},
        .aliases = {{0, 1}},
        .naliases = 1,
        .grid = {"N 16 cdiv"},
        .consts = {"B=16"},
        .code = text,
        .ncode = sizeof text - 1,
        .threads = 32};
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *address = handle ? dlsym(handle, "stub_state") : NULL;
    StubStateGetter getter;
    memcpy(&getter, &address, sizeof getter);
    if (!address)
        die(library, "not a stub");
    getter()->functions[0].name = "scale";
    getter()->functions[0].function = stub_scale;
    make_image(&maker, k->target, &spec, 1);
    k->stub = true;
    k->size = maker.size;
    k->image = copy_bytes(maker.data, maker.size);
}

static void say(void *user, const char *text)
{
    (void)user;
    fputs(text, stderr);
}

static void *compile(const char *target, size_t *out_size)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *output = NULL;
    o.target = target;
    o.opt_level = TILE_NONE;
    o.debug = 1;
    o.diagnostic = say;
    if (tilec_compile_source("sequences.tile", source, sizeof source - 1, &o, &output) != TILEC_OK)
        die(target, tilec_output_message(output));
    const void *data = tilec_output_data(output, out_size);
    void *copy = copy_bytes(data, *out_size);
    tilec_output_free(output);
    return copy;
}

static void add_kinds(const char *list)
{
    char compiled[256] = "";
    for (const char *p = list; *p && nkinds < KINDS; p += strcspn(p, ","), p += *p == ',') {
        Kind *k = &kinds[nkinds++];
        snprintf(k->name, sizeof k->name, "%.*s", (int)strcspn(p, ","), p);
        k->target = k->name;
        if (strcmp(k->name, "cuda") == 0) {
            k->target = "sm_90a";
            use_stub(k, TILE_STUBS "/libcuda.so.1");
        } else if (strcmp(k->name, "hip") == 0) {
            k->target = "gfx942";
            use_stub(k, TILE_STUBS "/libamdhip64.so.6");
        } else {
            k->image = compile(k->target, &k->size);
            snprintf(compiled + strlen(compiled), sizeof compiled - strlen(compiled), "%s%s",
                     *compiled ? "," : "", k->name);
        }
    }
    if (nkinds == 0)
        die("--devices", "none");
    if (!*compiled)
        return;
    size_t size;
    all_images = compile(compiled, &size);
}

/* A kind that is not listed has no image. */
static const Kind *kind_named(const char *name)
{
    static const Kind unlisted = {.name = "another", .target = "another"};
    for (int i = 0; i < nkinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return &unlisted;
}

/* ---- random numbers ---- */

typedef struct Random {
    uint64_t state;
} Random;

static uint64_t next(Random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 .. n - 1 */
static int below(Random *r, int n)
{
    return (int)(next(r) % (uint64_t)n);
}

static bool chance(Random *r, int one_in)
{
    return below(r, one_in) == 0;
}

/* ---- what a sequence has ---- */

typedef struct Device {
    tile_device *d;
    const Kind *kind;
    bool closed;
    bool may_close; /* threads: its owner may close it any time */
} Device;

typedef struct Module {
    tile_module *m;
    tile_kernel *scale, *positive, *copy;
    int device;
} Module;

typedef struct Stream {
    /* NULL: none. Number -1 is the default stream, which does all within the call */
    tile_stream *s;
    int device;
    bool failed; /* a kernel in it has failed an assertion, or is going to */
} Stream;

typedef struct Event {
    tile_event *e;
    int device;
} Event;

typedef struct Buffer {
    tile_buffer *b;
    int device;
    int stream;             /* that used it last, its number + 1; 0: none, or all is over */
    float hold[ELEMENTS];   /* what is in it when all is over */
    uint64_t n;             /* elements */
} Buffer;

typedef struct Sequence {
    Device devices[DEVICES];
    int ndevices;
    Module modules[MODULES];
    int nthreads;
    bool chosen;  /* by tile_set_default_device */
    int default_device;
    bool used_default;
} Sequence;

/* One thread's part. Its streams, events and buffers are its own. */
typedef struct Actor {
    Sequence *q;
    Random random;
    bool owner;           /* of devices, modules */
    Stream streams[THINGS];
    bool default_failed[DEVICES];
    Event events[THINGS];
    Buffer buffers[THINGS];
    int steps;
} Actor;

/* ---- checking ---- */

#define M(status) (1u << (status))
enum { OK_ = M(TILE_OK), BAD = M(TILE_BAD_ARGUMENT) };

static void wrong(const char *what, const char *got)
{
    fprintf(stderr, "%s: %s; repeat with --seed %llu --count 1\n", what, got,
            (unsigned long long)current_seed);
    fflush(stderr);
    abort();
}

static tile_status expect(tile_status status, unsigned allowed, const char *what)
{
    char got[600];
    if (verbose)
        fprintf(stderr, "  %s: %s\n", what, tile_status_name(status));
    if (allowed & M(status))
        return status;
    snprintf(got, sizeof got, "%s (%s)", tile_status_name(status),
             status == TILE_OK ? "" : tile_last_error());
    wrong(what, got);
    return status;
}
#define EXPECT(allowed, call) expect((call), (allowed), #call)
#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            wrong(#cond, "does not hold");                                                         \
    } while (0)

/* What a right call on a device may say: closed, it is refused. */
static unsigned allowed_on(const Sequence *q, int device)
{
    const Device *d = &q->devices[device];
    return d->closed ? BAD : d->may_close ? OK_ | BAD : OK_;
}

/* The same for a wait on one device for an event of another: both are host memory, or GPUs of a
 * kind. */
static unsigned allowed_between(const Sequence *q, int a, int b)
{
    const Kind *x = q->devices[a].kind, *y = q->devices[b].kind;
    bool alike = x->stub ? x == y : !y->stub;
    unsigned both = allowed_on(q, a) | allowed_on(q, b);
    return alike ? both : BAD;
}

/* ---- choices ---- */

/* A random live device, for calls that take the device's own handle; -1: none. */
static int some_device(Actor *a)
{
    int first = a->q->ndevices ? below(&a->random, a->q->ndevices) : 0;
    for (int i = 0; i < a->q->ndevices; i++) {
        int at = (first + i) % a->q->ndevices;
        if (!a->q->devices[at].closed)
            return at;
    }
    return -1;
}

#define SOME(a, list, field)                                                                       \
    /* of the device; -1: of any */                                                                \
    static int some_##list##_on(Actor *a, int device)                                              \
    {                                                                                              \
        int first = below(&a->random, THINGS);                                                     \
        for (int i = 0; i < THINGS; i++) {                                                         \
            int at = (first + i) % THINGS;                                                         \
            if (a->list[at].field && (device < 0 || a->list[at].device == device))                 \
                return at;                                                                         \
        }                                                                                          \
        return -1;                                                                                 \
    }                                                                                              \
    static int some_##list(Actor *a)                                                               \
    {                                                                                              \
        return some_##list##_on(a, -1);                                                            \
    }                                                                                              \
    static int free_##list(Actor *a)                                                               \
    {                                                                                              \
        for (int i = 0; i < THINGS; i++)                                                           \
            if (!a->list[i].field)                                                                 \
                return i;                                                                          \
        return -1;                                                                                 \
    }
SOME(a, streams, s)
SOME(a, events, e)
SOME(a, buffers, b)

/* A stream of the device, or -1: its default stream. */
static int stream_on(Actor *a, int device)
{
    return chance(&a->random, 3) ? -1 : some_streams_on(a, device);
}

static tile_stream *handle_of(const Actor *a, int stream)
{
    return stream < 0 ? NULL : a->streams[stream].s;
}

static bool *failed_flag(Actor *a, int device, int stream)
{
    return stream < 0 ? &a->default_failed[device] : &a->streams[stream].failed;
}

/* ---- synchronising ---- */

static unsigned after_kernels(const Actor *a, int device, bool failed)
{
    unsigned allowed = allowed_on(a->q, device);
    if (a->q->nthreads > 1) /* another thread may have been told, or may have failed */
        return allowed | M(TILE_FAILED);
    return allowed == OK_ && failed ? M(TILE_FAILED) : allowed;
}

static void sync_stream(Actor *a, int device, int stream)
{
    tile_stream *s = handle_of(a, stream);
    bool *failed = failed_flag(a, device, stream);
    if (!s && (a->q->nthreads > 1 || a->q->devices[device].closed))
        return; /* host drivers have done it, the stubs too; NULL is another device's */
    if (!s)
        EXPECT(OK_, tile_device_default_stream(a->q->devices[device].d, &s));
    EXPECT(after_kernels(a, device, *failed), tile_stream_synchronize(s));
    *failed = false;
    for (int i = 0; i < THINGS; i++)
        if (a->buffers[i].device == device && a->buffers[i].stream == stream + 1)
            a->buffers[i].stream = 0;
}

static void sync_device(Actor *a, int device)
{
    bool failed = a->default_failed[device];
    for (int i = 0; i < THINGS; i++)
        failed |= a->streams[i].s && a->streams[i].device == device && a->streams[i].failed;
    EXPECT(after_kernels(a, device, failed), tile_device_synchronize(a->q->devices[device].d));
    a->default_failed[device] = false;
    for (int i = 0; i < THINGS; i++) {
        if (a->streams[i].s && a->streams[i].device == device)
            a->streams[i].failed = false;
        if (a->buffers[i].device == device)
            a->buffers[i].stream = 0;
    }
}

/* What `stream` does with the buffer comes after what another has done with it. */
static void order(Actor *a, Buffer *b, int stream)
{
    int last = b->stream - 1, event = some_events_on(a, b->device);
    if (b->stream == 0 || last == stream || a->q->devices[b->device].closed)
        return;
    if (event >= 0) {
        unsigned allowed = allowed_on(a->q, b->device);
        if (EXPECT(allowed, tile_event_record(a->events[event].e, handle_of(a, last))) == TILE_OK &&
            EXPECT(allowed, tile_stream_wait_event(handle_of(a, stream), a->events[event].e)) ==
                TILE_OK) {
            b->stream = stream + 1;
            return;
        }
    }
    sync_stream(a, b->device, last);
    b->stream = 0;
}

/* ---- devices ---- */

static int add_device(Sequence *q, tile_device *d, const Kind *kind)
{
    if (q->ndevices == DEVICES)
        wrong("devices", "too many");
    q->devices[q->ndevices] = (Device){.d = d, .kind = kind};
    return q->ndevices++;
}

static int live_devices(const Sequence *q)
{
    int n = 0;
    for (int i = 0; i < q->ndevices; i++)
        n += !q->devices[i].closed;
    return n;
}

static void open_device(Actor *a)
{
    static const char *const bad[] = {"nonsense", "cpu:x", "cpu:1", "emu",  "emu:",     "emu:sm_1",
                                      "cuda:x",   "ref:0", "CPU",  ":",    "emu:cpu",  "hip:-1",
                                      "emu:emu:sm_80", "a-name-that-is-longer-than-any-device-has-"
                                      "in-its-handle-and-then-some-more"};
    tile_device *d = NULL;
    if (chance(&a->random, 4)) {
        EXPECT(BAD, tile_device_open(bad[below(&a->random, sizeof bad / sizeof *bad)], &d));
        MUST(!d);
        return;
    }
    if (a->q->ndevices > DEVICES - 8 || live_devices(a->q) > 2)
        return;
    const Kind *k = &kinds[below(&a->random, nkinds)];
    if (k->stub && chance(&a->random, 4)) {
        char name[40];
        snprintf(name, sizeof name, "%s:7", k->name);
        EXPECT(M(TILE_UNAVAILABLE), tile_device_open(name, &d));
        return;
    }
    EXPECT(OK_, tile_device_open(k->name, &d));
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    EXPECT(OK_, tile_device_get_info(d, &info));
    MUST(info.processors > 0 && info.host_memory == !k->stub);
    MUST(strcmp(info.target, k->target) == 0 || strncmp(k->name, "cpu", 3) == 0);
    add_device(a->q, d, k);
}

static void close_device(Actor *a, int device)
{
    Device *d = &a->q->devices[device];
    if (verbose)
        fprintf(stderr, "  close %s\n", d->kind->name);
    tile_device_close(d->d);
    d->closed = true;
    if (a->q->default_device == device)
        a->q->chosen = false;
    for (int i = 0; i < THINGS; i++)
        if (a->buffers[i].device == device)
            a->buffers[i].stream = 0;
}

/* What NULL means now, as a device of the sequence. */
static int find_default(Actor *a)
{
    tile_device *d = NULL;
    EXPECT(OK_, tile_default_device(&d));
    a->q->used_default = true;
    for (int i = 0; i < a->q->ndevices; i++)
        if (!a->q->devices[i].closed && a->q->devices[i].d == d) {
            MUST(!a->q->chosen || a->q->default_device == i);
            return i;
        }
    MUST(!a->q->chosen);
    return add_device(a->q, d, kind_named("cpu")); /* TILE_DEVICE is not set */
}

static void set_default(Actor *a)
{
    int at = chance(&a->random, 3) ? -1 : some_device(a);
    EXPECT(OK_, tile_set_default_device(at < 0 ? NULL : a->q->devices[at].d));
    a->q->chosen = at >= 0;
    a->q->default_device = at;
    if (a->q->ndevices < DEVICES - 4)
        find_default(a);
}

/* TILE_DEVICE and the like, while this is the only thread that reads the environment. */
static void environment(Actor *a)
{
    static const struct {
        const char *name, *value;
        unsigned allowed;
    } rows[] = {
        {"TILE_DEVICE", "nonsense", BAD},
        {"TILE_DEVICE", "emu:sm_1", BAD},
        {"TILE_DEVICE", "ref", OK_},
        {"TILE_DEVICE", "", OK_},
        {"TILE_THREADS", "abc", BAD},
        {"TILE_THREADS", "0", BAD},
        {"TILE_THREADS", "3", OK_},
        {"TILE_AFFINITY", "0,", BAD},
        {"TILE_AFFINITY", "8191", BAD},
        {"TILE_AFFINITY", "compact", OK_},
        {"TILE_AFFINITY", "spread", OK_},
        {"TILE_SYNC", "perhaps", BAD},
        {"TILE_SYNC", "0", OK_},
        {"TILE_PRINT", "yes", BAD},
        {"TILE_PRINT", "", OK_},
    };
    int row = below(&a->random, sizeof rows / sizeof *rows);
    tile_device *d = NULL, *again = NULL;
    if (a->q->ndevices)
        return; /* none is open, so one has to be opened */
    EXPECT(OK_, tile_set_default_device(NULL));
    a->q->chosen = false;
    setenv(rows[row].name, rows[row].value, 1);
    tile_status status = EXPECT(rows[row].allowed, tile_default_device(&d));
    EXPECT(rows[row].allowed, tile_default_device(&again));
    unsetenv(rows[row].name);
    MUST(status != TILE_OK || (d && d == again));
    tile_device_close(d);
}

static void count_print(void *user, const char *text)
{
    (void)user;
    MUST(strncmp(text, "v = ", 4) == 0);
}

static void configure_device(Actor *a)
{
    int at = some_device(a);
    if (at < 0)
        return;
    const Kind *k = a->q->devices[at].kind;
    bool emu = strncmp(k->name, "emu", 3) == 0;
    tile_device *d = a->q->devices[at].d;
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = count_print;
    EXPECT(emu ? OK_ : BAD, tile_device_configure(d, "schedule", "random:7"));
    EXPECT(BAD, tile_device_configure(d, "schedule", "sideways"));
    EXPECT(BAD, tile_device_configure(d, "colour", "red"));
    EXPECT(emu ? OK_ : BAD, tile_device_configure(d, "stats", chance(&a->random, 2) ? "1" : "0"));
    char counters[64];
    tile_device_counters(d, counters, sizeof counters);
    if (a->q->nthreads == 1) {
        sync_device(a, at);
        EXPECT(OK_, tile_device_set_callbacks(d, chance(&a->random, 3) ? NULL : &callbacks));
    }
    callbacks.struct_size = 8;
    EXPECT(BAD, tile_device_set_callbacks(d, &callbacks));
}

/* ---- streams and events ---- */

static void make_stream(Actor *a)
{
    int device = some_device(a), at = free_streams(a);
    if (device < 0 || at < 0)
        return;
    const Device *d = &a->q->devices[device];
    tile_stream *s = NULL;
    if (chance(&a->random, 6)) {
        bool stub = d->kind->stub;
        EXPECT(BAD, tile_stream_wrap(d->d, NULL, &s));
        if (!stub)
            EXPECT(M(TILE_UNAVAILABLE), tile_stream_wrap(d->d, &s, &s));
        return;
    }
    EXPECT(OK_, tile_stream_create(d->d, &s));
    a->streams[at] = (Stream){s, device, false};
}

static void free_stream(Actor *a, int at)
{
    Stream *s = &a->streams[at];
    tile_stream_free(s->s);
    s->s = NULL;
    for (int i = 0; i < THINGS; i++)
        if (a->buffers[i].device == s->device && a->buffers[i].stream == at + 1)
            a->buffers[i].stream = 0;
}

static void make_event(Actor *a)
{
    int device = some_device(a), at = free_events(a);
    if (device < 0 || at < 0)
        return;
    EXPECT(OK_, tile_event_create(a->q->devices[device].d, &a->events[at].e));
    a->events[at].device = device;
}

static void use_event(Actor *a)
{
    int at = some_events(a), other = some_events(a), stream = some_streams(a);
    double milliseconds = -1;
    if (at < 0)
        return;
    Event *e = &a->events[at];
    unsigned allowed = allowed_on(a->q, e->device);
    switch (below(&a->random, 4)) {
    case 0:
        if (stream >= 0 && a->streams[stream].device != e->device) {
            EXPECT(BAD, tile_event_record(e->e, a->streams[stream].s));
            EXPECT(allowed_between(a->q, e->device, a->streams[stream].device),
                   tile_stream_wait_event(a->streams[stream].s, e->e));
        } else {
            EXPECT(allowed, tile_event_record(e->e, handle_of(a, stream)));
            EXPECT(allowed, tile_stream_wait_event(handle_of(a, stream), e->e));
        }
        break;
    case 1: EXPECT(allowed, tile_event_synchronize(e->e)); break;
    case 2:
        if (other >= 0) /* may not have happened, or be of another device */
            EXPECT(OK_ | BAD, tile_event_elapsed(e->e, a->events[other].e, &milliseconds));
        break;
    default:
        tile_event_free(e->e);
        e->e = NULL;
    }
}

/* ---- buffers ---- */

static void make_buffer(Actor *a)
{
    int device = some_device(a), at = free_buffers(a);
    tile_buffer *b = NULL;
    if (device < 0 || at < 0)
        return;
    tile_device *d = a->q->devices[device].d;
    if (chance(&a->random, 8)) {
        EXPECT(M(TILE_NO_MEMORY),
               tile_buffer_alloc(d, UINT64_MAX - (uint64_t)below(&a->random, 600), &b));
        EXPECT(OK_, tile_buffer_alloc(d, 0, &b));
        EXPECT(OK_, tile_buffer_upload(b, 0, NULL, 0, NULL));
        EXPECT(BAD, tile_buffer_upload(b, 0, "x", 1, NULL));
        tile_buffer_free(b);
        return;
    }
    Buffer *mine = &a->buffers[at];
    *mine = (Buffer){.device = device, .n = 1 + (uint64_t)below(&a->random, ELEMENTS)};
    EXPECT(OK_, tile_buffer_alloc(d, mine->n * sizeof(float), &mine->b));
    for (uint64_t i = 0; i < mine->n; i++)
        mine->hold[i] = (float)below(&a->random, 100);
    EXPECT(allowed_on(a->q, device),
           tile_buffer_upload(mine->b, 0, mine->hold, mine->n * sizeof(float), NULL));
}

static void free_buffer(Actor *a, int at)
{
    Buffer *b = &a->buffers[at];
    if (b->stream > 0)
        sync_stream(a, b->device, b->stream - 1);
    tile_buffer_free(b->b);
    b->b = NULL;
}

/* An upload, a download or a fill of a part. */
static void use_buffer(Actor *a)
{
    float host[ELEMENTS];
    int at = some_buffers(a);
    if (at < 0)
        return;
    Buffer *b = &a->buffers[at];
    unsigned allowed = allowed_on(a->q, b->device);
    int stream = stream_on(a, b->device);
    tile_stream *s = handle_of(a, stream);
    uint64_t first = (uint64_t)below(&a->random, (int)b->n),
             n = 1 + next(&a->random) % (b->n - first);
    uint64_t offset = first * sizeof(float), bytes = n * sizeof(float);
    static const int values[] = {0, 0x3f, 0x40, 0x140};
    int value = values[below(&a->random, 4)];
    order(a, b, stream);
    switch (below(&a->random, 3)) {
    case 0:
        for (uint64_t i = 0; i < n; i++)
            host[i] = (float)(below(&a->random, 100) - 20);
        if (EXPECT(allowed, tile_buffer_upload(b->b, offset, host, bytes, s)) == TILE_OK)
            memcpy(b->hold + first, host, bytes);
        break;
    case 1:
        if (EXPECT(allowed, tile_buffer_download(b->b, offset, host, bytes, s)) == TILE_OK)
            MUST(memcmp(host, b->hold + first, bytes) == 0);
        break;
    default:
        if (EXPECT(allowed, tile_buffer_fill(b->b, offset, value, bytes, s)) != TILE_OK)
            break;
        memset(b->hold + first, value, bytes);
        b->stream = stream + 1;
    }
}

static void misuse_buffer(Actor *a)
{
    int at = some_buffers(a), stream = some_streams(a);
    float host[2] = {0};
    if (at < 0)
        return;
    const Buffer *b = &a->buffers[at];
    uint64_t size = tile_buffer_bytes(b->b);
    MUST(size == b->n * sizeof(float) && tile_buffer_ptr(b->b));
    EXPECT(BAD, tile_buffer_upload(b->b, size, host, 1, NULL));
    EXPECT(BAD, tile_buffer_download(b->b, 1, host, size, NULL));
    EXPECT(BAD, tile_buffer_fill(b->b, UINT64_MAX, 0, 2, NULL));
    EXPECT(BAD, tile_buffer_upload(b->b, 0, NULL, 4, NULL));
    EXPECT(BAD, tile_buffer_download(b->b, 0, NULL, 4, NULL));
    if (stream >= 0 && a->streams[stream].device != b->device) {
        EXPECT(BAD, tile_buffer_upload(b->b, 0, host, 4, a->streams[stream].s));
        EXPECT(BAD, tile_buffer_fill(b->b, 0, 0, 4, a->streams[stream].s));
    }
}

/* ---- modules and kernels ---- */

static void get_kernels(Actor *a, Module *m)
{
    const tile_const right[] = {{"B", 16, NULL}, {0}}, wrong_value[] = {{"B", 17, NULL}, {0}},
                     unknown[] = {{"B", 16, NULL}, {"Q", 0, "f16"}, {0}};
    tile_kernel *k = NULL, *again = NULL;
    const Kind *kind = a->q->devices[m->device].kind;
    EXPECT(OK_, tile_kernel_get(m->m, "scale", NULL, &m->scale));
    EXPECT(OK_, tile_kernel_get(m->m, "scale", NULL, &again));
    MUST(m->scale == again);
    if (!kind->stub) {
        EXPECT(OK_, tile_kernel_get(m->m, "positive", NULL, &m->positive));
        EXPECT(OK_, tile_kernel_get(m->m, "copy", NULL, &m->copy));
    }
    EXPECT(OK_, tile_kernel_get(m->m, "scale", right, &k));
    EXPECT(M(TILE_NOT_FOUND), tile_kernel_get(m->m, "nothing", NULL, &k));
    EXPECT(M(TILE_NOT_FOUND), tile_kernel_get(m->m, "scale", unknown, &k));
    if (tile_module_kernel_count(m->m) > 0)
        EXPECT(M(TILE_NOT_FOUND), tile_kernel_get(m->m, "scale", wrong_value, &k));
    if (chance(&a->random, 2))
        EXPECT(OK_, tile_kernel_prepare(m->scale));
    MUST(strcmp(tile_kernel_name(m->scale), "scale") == 0);
    MUST(tile_kernel_param_count(m->scale) == 3);
    tile_param_info info = TILE_PARAM_INFO_INIT;
    EXPECT(OK_, tile_kernel_param(m->scale, 1, &info));
    MUST(info.kind == TILE_ARG_VIEW && info.dtype == TILE_F32 && info.rank == 1 && !info.is_const);
    EXPECT(BAD, tile_kernel_param(m->scale, 3, &info));
    EXPECT(BAD, tile_kernel_param(m->scale, SIZE_MAX, &info));
    info.struct_size--;
    EXPECT(OK_, tile_kernel_param(m->scale, 0, &info)); /* an older program's struct is shorter */
    info.struct_size = (size_t)below(&a->random, sizeof(size_t) + 1);
    EXPECT(BAD, tile_kernel_param(m->scale, 0, &info));
}

/* Images that are cut, changed in one bit or for another target. */
static void load_damaged(Actor *a, int device)
{
    const Kind *k = a->q->devices[device].kind, *other = &kinds[below(&a->random, nkinds)];
    tile_device *d = a->q->devices[device].d;
    tile_module *m = NULL;
    if (other != k && !(k->stub && other->stub))
        EXPECT(M(TILE_BAD_IMAGE), tile_module_load_image(d, other->image, other->size, &m));
    EXPECT(M(TILE_BAD_IMAGE),
           tile_module_load_image(d, k->image, (size_t)below(&a->random, (int)k->size), &m));
    unsigned char *copy = copy_bytes(k->image, k->size);
    int at = below(&a->random, (int)k->size);
    /* no checksum: it may still be an image */
    bool in_header = at < (int)sizeof(tile_image_header);
    copy[at] ^= (unsigned char)(1 << below(&a->random, 8));
    EXPECT(M(TILE_BAD_IMAGE) | (in_header ? OK_ : 0),
           tile_module_load_image(d, copy, k->size, &m));
    tile_module_free(m);
    free(copy);
}

static void misuse_source(Actor *a, int device)
{
    tile_device *d = a->q->devices[device].d;
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    const char *const dirs[] = {"/nowhere", NULL};
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    switch (below(&a->random, 8)) {
    case 0: o.fp = "bogus"; break;
    case 1: o.opt_level = 99; break;
    case 2: o.warps = -1; break;
    case 3: o.stages = 65; break;
    case 4: o.struct_size = (size_t)below(&a->random, sizeof(size_t) + 1); break;
    case 5: o.ninclude_dirs = 1; break;
    case 6:
        o.include_dirs = dirs;
        o.ninclude_dirs = 2;
        break;
    default:
        EXPECT(M(TILE_IO), tile_module_load_file(d, "/no/such.tile", &o, &m));
        EXPECT(OK_, tile_module_load_source(d, NULL, "kernel k(", 9, NULL, &m));
        EXPECT(a->q->devices[device].kind->stub ? M(TILE_COMPILE) | OK_ : M(TILE_COMPILE),
               tile_kernel_get(m, "k", NULL, &k));
        MUST(tile_module_kernel_count(m) == 0 && !tile_module_kernel_name(m, 0));
        tile_module_free(m);
        return;
    }
    EXPECT(BAD, tile_module_load_source(d, "s.tile", source, sizeof source - 1, &o, &m));
    EXPECT(BAD, tile_module_load_file(d, "/no/such.tile", &o, &m));
}

static void free_module(Actor *a, Module *m)
{
    if (!a->q->devices[m->device].closed)
        sync_device(a, m->device); /* none of its kernels may be running */
    tile_module_free(m->m);
    *m = (Module){0};
}

static void load_module(Actor *a)
{
    int device = some_device(a);
    Module *m = &a->q->modules[below(&a->random, MODULES)];
    if (device < 0)
        return;
    const Kind *k = a->q->devices[device].kind;
    if (!k->image)
        return;
    if (chance(&a->random, 4)) {
        load_damaged(a, device);
        return;
    }
    if (chance(&a->random, 4)) {
        misuse_source(a, device);
        return;
    }
    if (m->m)
        free_module(a, m);
    tile_device *d = a->q->devices[device].d;
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    o.opt_level = TILE_NONE;
    o.debug = 1;
    bool compiles = !k->stub && chance(&a->random, strcmp(k->name, "ref") == 0 ? 8 : 200);
    m->device = device;
    if (compiles)
        EXPECT(OK_, tile_module_load_source(d, "s.tile", source, sizeof source - 1, &o, &m->m));
    else
        EXPECT(OK_, tile_module_load_image(d, k->image, k->size, &m->m));
    get_kernels(a, m);
}

static Module *some_module(Actor *a)
{
    Module *m = &a->q->modules[below(&a->random, MODULES)];
    return m->m ? m : NULL;
}

/* ---- launches ---- */

/* Two buffers of the device, of at least *n elements each; false: there are none. */
static bool two_buffers(Actor *a, int device, Buffer **x, Buffer **y, int64_t *n)
{
    int from = some_buffers_on(a, device), to = some_buffers_on(a, device);
    if (from < 0)
        return false;
    *x = &a->buffers[from];
    *y = &a->buffers[to];
    *n = (int64_t)((*x)->n < (*y)->n ? (*x)->n : (*y)->n);
    return true;
}

static void launch(Actor *a)
{
    static const float factors[] = {0.5f, 1, 2, -1};
    Module *m = some_module(a);
    Buffer *x, *y;
    int64_t n;
    if (!m || !two_buffers(a, m->device, &x, &y, &n))
        return;
    int stream = stream_on(a, m->device);
    tile_stream *s = handle_of(a, stream);
    unsigned allowed = allowed_on(a->q, m->device);
    const float *p = tile_buffer_ptr(x->b);
    float *q = tile_buffer_ptr(y->b), factor = factors[below(&a->random, 4)];
    const int64_t grid[] = {(n + 15) / 16, 1};
    tile_status status;
    order(a, x, stream);
    order(a, y, stream);
    bool copies = m->copy && chance(&a->random, 3);
    factor = copies ? 1 : factor;
    if (copies)
        status = EXPECT(allowed, tile_launch(m->copy, s, (tile_arg[]){tile_ptr(p), tile_ptr(q),
                                                                      tile_i32((int32_t)n)}, 3));
    else if (chance(&a->random, 3))
        status = EXPECT(allowed, tile_launch_grid(m->scale, s, (tile_arg[]){tile_view(p, n),
                                                  tile_view(q, n), tile_f32(factor)}, 3, grid, 2));
    else
        status = EXPECT(allowed, tile_launch(m->scale, s, (tile_arg[]){tile_view(p, n),
                                             tile_view(q, n), tile_f32(factor)}, 3));
    if (status != TILE_OK)
        return;
    x->stream = y->stream = stream + 1;
    for (int64_t i = 0; i < n; i++)
        y->hold[i] = x->hold[i] * factor;
}

/* A kernel that asserts. In threads only in streams of one's own. */
static void launch_positive(Actor *a)
{
    Module *m = some_module(a);
    Buffer *x, *y;
    int64_t n;
    if (!m || !m->positive || !two_buffers(a, m->device, &x, &y, &n))
        return;
    int stream = stream_on(a, m->device);
    if (stream < 0 && a->q->nthreads > 1)
        return;
    order(a, x, stream);
    const float *p = tile_buffer_ptr(x->b);
    if (EXPECT(allowed_on(a->q, m->device),
               tile_launch(m->positive, handle_of(a, stream), (tile_arg[]){tile_view(p, n)}, 1)) !=
        TILE_OK)
        return;
    x->stream = stream + 1;
    *failed_flag(a, m->device, stream) |= x->hold[0] < 0;
}

static void launch_wrongly(Actor *a)
{
    Module *m = some_module(a);
    static double doubles[2][8];
    static float floats[2][8];
    if (!m)
        return;
    tile_arg args[3] = {tile_view(floats[0], 8), tile_view(floats[1], 8), tile_f32(1)};
    tile_arg *one = &args[below(&a->random, 2)];
    size_t count = 3, naxes = 1;
    int64_t grid[TILE_MAX_GRID + 1] = {1, 1, 1, 1, 1, 1, 1};
    const tile_arg *given = args;
    bool with_grid = false;
    switch (below(&a->random, 20)) {
    case 0: count = (size_t)below(&a->random, 3); break;
    case 1: count = SIZE_MAX - (size_t)below(&a->random, 3); break;
    case 2: *one = tile_ptr(floats[0]); break;
    case 3: *one = tile_view(doubles[0], 8); break;
    case 4:
        *one = tile_view((float *)(void *)((char *)floats + 1 + below(&a->random, 3)), 7);
        break;
    case 5: *one = tile_view(floats, 2, 8); break;
    case 6: one->extent[0] = -1 - (int64_t)(next(&a->random) >> 1); break;
    case 7: one->address = NULL; break;
    case 8: args[1].extent[0] = 7; break;
    case 9: args[2] = tile_f64(1); break;
    case 10: given = NULL; break;
    case 11: one->strided = 1, one->stride[0] = (int64_t)next(&a->random) | 2; break;
    case 12: args[0].extent[0] = args[1].extent[0] = INT64_MAX; break;
    case 13: one->kind = 3 + below(&a->random, 1000); break;
    case 14: one->dtype = 100 + below(&a->random, 1000); break;
    case 15: one->rank = chance(&a->random, 2) ? -5 : 100; break;
    case 16: one->dtype = TILE_ANY_WORD; break;
    case 17: with_grid = true, naxes = chance(&a->random, 2) ? 0 : 7; break;
    case 18: with_grid = true, grid[0] = -1; break;
    default: with_grid = true, grid[0] = INT64_MAX, naxes = 2, grid[1] = INT64_MAX;
    }
    if (with_grid)
        EXPECT(BAD, tile_launch_grid(m->scale, NULL, given, count, grid, naxes));
    else
        EXPECT(BAD, tile_launch(m->scale, NULL, given, count));
    EXPECT(BAD, tile_launch_grid(m->scale, NULL, args, 3, NULL, 1));
    int stream = some_streams(a);
    if (stream >= 0 && a->streams[stream].device != m->device)
        EXPECT(BAD, tile_launch(m->scale, a->streams[stream].s, args, 3));
}

static void launch_embedded(Actor *a)
{
    static const char rubbish[256] = "TILEIMG2";
    if (!all_images || a->q->nthreads > 1 || a->q->ndevices > DEVICES - 4)
        return;
    int device = find_default(a);
    const Kind *k = a->q->devices[device].kind;
    Buffer *x, *y;
    int64_t n;
    if (!k->image || !two_buffers(a, device, &x, &y, &n))
        return;
    order(a, x, -1);
    order(a, y, -1);
    const float *p = tile_buffer_ptr(x->b);
    float *q = tile_buffer_ptr(y->b);
    tile_arg args[] = {tile_view(p, n), tile_view(q, n), tile_f32(2)};
    EXPECT(M(TILE_BAD_IMAGE), tile_launch_embedded(rubbish, "scale", NULL, args, 3));
    if (k->stub) {
        EXPECT(M(TILE_BAD_IMAGE), tile_launch_embedded(all_images, "scale", NULL, args, 3));
        return;
    }
    EXPECT(M(TILE_NOT_FOUND), tile_launch_embedded(all_images, "nothing", NULL, args, 3));
    EXPECT(BAD, tile_launch_embedded(all_images, "scale", NULL, args, 2));
    EXPECT(OK_, tile_launch_embedded(all_images, "scale", NULL, args, 3));
    x->stream = y->stream = 0; /* done within the call */
    for (int64_t i = 0; i < n; i++)
        y->hold[i] = x->hold[i] * 2;
}

/* ---- NULL and the like ---- */

static void null_handles(void)
{
    float f[2] = {0};
    double ms = 0;
    tile_param_info info = TILE_PARAM_INFO_INIT;
    tile_kernel *k = NULL;
    tile_arg arg = tile_f32(1);
    const int64_t one = 1;
    tile_device_close(NULL);
    tile_buffer_free(NULL);
    tile_stream_free(NULL);
    tile_event_free(NULL);
    tile_module_free(NULL);
    MUST(!tile_buffer_ptr(NULL) && tile_buffer_bytes(NULL) == 0);
    EXPECT(BAD, tile_buffer_upload(NULL, 0, f, 4, NULL));
    EXPECT(BAD, tile_buffer_download(NULL, 0, f, 4, NULL));
    EXPECT(BAD, tile_buffer_fill(NULL, 0, 0, 4, NULL));
    EXPECT(BAD, tile_buffer_upload_async(NULL, 0, f, 4, NULL));
    EXPECT(BAD, tile_buffer_download_async(NULL, 0, f, 4, NULL));
    EXPECT(BAD, tile_buffer_copy(NULL, 0, NULL, 0, 4, NULL));
    EXPECT(BAD, tile_host_alloc(NULL, 4, NULL));
    EXPECT(OK_, tile_host_free(NULL, NULL));
    MUST(!tile_stream_native(NULL));
    EXPECT(BAD, tile_event_record(NULL, NULL));
    EXPECT(BAD, tile_event_synchronize(NULL));
    EXPECT(BAD, tile_stream_wait_event(NULL, NULL));
    EXPECT(BAD, tile_event_elapsed(NULL, NULL, &ms));
    MUST(tile_module_kernel_count(NULL) == 0 && !tile_module_kernel_name(NULL, 0));
    EXPECT(BAD, tile_kernel_get(NULL, "k", NULL, &k));
    EXPECT(BAD, tile_kernel_prepare(NULL));
    MUST(!tile_kernel_name(NULL) && tile_kernel_param_count(NULL) == 0);
    EXPECT(BAD, tile_kernel_param(NULL, 0, &info));
    EXPECT(BAD, tile_launch(NULL, NULL, &arg, 1));
    EXPECT(BAD, tile_launch_grid(NULL, NULL, &arg, 1, &one, 1));
    EXPECT(BAD, tile_launch_embedded(NULL, "k", NULL, &arg, 1));
    EXPECT(BAD, tile_launch_embedded("rubbish", NULL, NULL, &arg, 1));
}

/* Places for results that are NULL; `d` is live. */
static void null_places(tile_device *d, Actor *a)
{
    tile_module *m = NULL;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    EXPECT(BAD, tile_device_open("cpu", NULL));
    EXPECT(BAD, tile_default_device(NULL));
    EXPECT(BAD, tile_device_get_info(d, NULL));
    info.struct_size = (size_t)below(&a->random, sizeof(size_t) + 1);
    EXPECT(BAD, tile_device_get_info(d, &info));
    EXPECT(BAD, tile_device_default_stream(d, NULL));
    EXPECT(BAD, tile_stream_create(d, NULL));
    EXPECT(BAD, tile_stream_wrap(d, "s", NULL));
    EXPECT(BAD, tile_event_create(d, NULL));
    EXPECT(BAD, tile_buffer_alloc(d, 4, NULL));
    EXPECT(BAD, tile_module_load_image(d, "i", 1, NULL));
    EXPECT(BAD, tile_module_load_image(d, NULL, 1, &m));
    EXPECT(M(TILE_BAD_IMAGE), tile_module_load_image(d, "", 0, &m));
    EXPECT(BAD, tile_module_load_source(d, "n", NULL, 0, NULL, &m));
    EXPECT(BAD, tile_module_load_source(d, "n", "", 0, NULL, NULL));
    EXPECT(BAD, tile_module_load_file(d, NULL, NULL, &m));
    EXPECT(BAD, tile_device_configure(d, NULL, "1"));
    EXPECT(BAD, tile_device_configure(d, "stats", NULL));
    tile_stream *s = NULL;
    EXPECT(OK_, tile_device_default_stream(d, &s));
    tile_stream_free(s); /* it is the device's: nothing happens */
    int event = some_events(a), module = below(&a->random, MODULES);
    double ms;
    if (event >= 0) {
        EXPECT(BAD, tile_event_elapsed(a->events[event].e, NULL, &ms));
        EXPECT(BAD, tile_event_elapsed(a->events[event].e, a->events[event].e, NULL));
    }
    if (a->q->modules[module].m) {
        EXPECT(BAD, tile_kernel_get(a->q->modules[module].m, NULL, NULL, NULL));
        EXPECT(BAD, tile_kernel_get(a->q->modules[module].m, "scale", NULL, NULL));
        EXPECT(BAD, tile_kernel_param(a->q->modules[module].scale, 0, NULL));
    }
}

static void plain_calls(Actor *a)
{
    char text[64];
    int64_t shape[TILE_MAX_RANK + 1] = {2, 3, 1, 1, 1, 1, 1, 1, 1};
    unsigned char data[64] = {0};
    int dtype = below(&a->random, 40) - 10, rank = below(&a->random, 12) - 2;
    size_t size = (size_t)below(&a->random, (int)sizeof text);
    if (chance(&a->random, 3))
        shape[below(&a->random, 3)] = chance(&a->random, 2) ? 0 : -1;
    MUST(tile_status_name((tile_status)(below(&a->random, 100) - 50)));
    MUST(tile_dtype_name((tile_dtype)dtype) && tile_dtype_bits((tile_dtype)dtype) >= 0);
    MUST(tile_version() == TILE_VERSION && tile_last_error());
    bool fits = tile_dtype_bits((tile_dtype)dtype) <= 64;
    if (fits)
        tile_format_array(text, size, (tile_dtype)dtype, rank, shape, data);
    shape[0] = 2;
    MUST(tile_format_array(NULL, 9, TILE_F32, 1, shape, NULL) == 0);
    MUST(tile_format_array(NULL, 9, TILE_F32, 1, NULL, data) == 0);
    shape[0] = INT64_MAX, shape[1] = 3;
    MUST(tile_format_array(NULL, 0, TILE_F32, 2, shape, data) == 0);
}

static void is_usage(tilec_status status, tilec_output **output)
{
    if (status != TILEC_USAGE || !*tilec_output_message(*output))
        wrong("tilec", tilec_output_message(*output));
    tilec_output_free(*output);
    *output = NULL;
}

/* The compiler's header: wrong options, and what is NULL. */
static void compiler_calls(Actor *a)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    const tilec_const consts[] = {{"B", NULL}, {NULL, "1"}};
    const char *const dirs[] = {NULL};
    tilec_output *out = NULL;
    size_t size = 9;
    char text[16];
    switch (below(&a->random, 14)) {
    case 0: o.fp = "bogus"; break;
    case 1: o.opt_level = chance(&a->random, 2) ? 99 : -1; break;
    case 2: o.warps = chance(&a->random, 2) ? -1 : 65; break;
    case 3: o.stages = INT32_MIN; break;
    case 4: o.bisect = -2; break;
    case 5: o.diagnostics = "xml"; break;
    case 6: o.nconsts = 1; break;
    case 7: o.consts = consts + below(&a->random, 2), o.nconsts = 1; break;
    case 8: o.ninclude_dirs = 3; break;
    case 9: o.include_dirs = dirs, o.ninclude_dirs = 1; break;
    case 10: o.struct_size = next(&a->random) % (sizeof(size_t) + 1); break;
    case 11: o.target = "sm_1"; break;
    case 12: o.emit = "porridge"; break;
    default:
        MUST(!tilec_output_data(NULL, &size) && size == 0 && !tilec_output_data(NULL, NULL));
        MUST(!*tilec_output_message(NULL) && !*tilec_output_depends(NULL));
        MUST(!tilec_output_report(NULL) && *tilec_version() && *tilec_targets() && *tilec_stages());
        tilec_output_free(NULL);
        MUST(tilec_options_check(NULL, NULL, 0) == TILEC_OK);
        MUST(tilec_options_check(&o, NULL, 9) == TILEC_OK);
        MUST(tilec_compile_source("s", "", 0, &o, NULL) == TILEC_USAGE);
        is_usage(tilec_compile_source(NULL, "", 0, &o, &out), &out);
        is_usage(tilec_compile_source("s", NULL, 0, NULL, &out), &out);
        is_usage(tilec_compile_file(NULL, &o, &out), &out);
        return;
    }
    is_usage(tilec_compile_source("s.tile", source, sizeof source - 1, &o, &out), &out);
    if (!o.emit || strcmp(o.emit, "image") == 0)
        MUST(o.target || tilec_options_check(&o, text, sizeof text));
}

/* ---- sequences ---- */

/* A step that any thread may do with what is its own. */
static void own_step(Actor *a)
{
    int at;
    switch (below(&a->random, 9)) {
    case 0:
    case 1:
    case 2: launch(a); break;
    case 3: use_buffer(a); break;
    case 4: use_event(a); break;
    case 5: launch_positive(a); break;
    case 6:
        at = some_streams(a);
        if (at >= 0)
            sync_stream(a, a->streams[at].device, at);
        break;
    case 7: launch_wrongly(a); break;
    default: misuse_buffer(a);
    }
}

/* Steps that give a device's own handle to a call. */
static void owner_step(Actor *a)
{
    int at;
    switch (below(&a->random, 12)) {
    case 0:
    case 1: make_stream(a); break;
    case 2:
    case 3:
    case 4: make_buffer(a); break;
    case 5: make_event(a); break;
    case 6:
        at = some_device(a);
        if (at >= 0)
            sync_device(a, at);
        break;
    case 7:
        at = some_streams(a);
        if (at >= 0)
            free_stream(a, at);
        break;
    case 8:
        at = some_buffers(a);
        if (at >= 0)
            free_buffer(a, at);
        break;
    case 9: null_handles(); break;
    case 10:
        at = some_device(a);
        if (at >= 0)
            null_places(a->q->devices[at].d, a);
        break;
    default: configure_device(a);
    }
}

/* Steps of a sequence of one thread only. */
static void lone_step(Actor *a)
{
    int at;
    switch (below(&a->random, 12)) {
    case 0:
    case 1:
    case 2: open_device(a); break;
    case 3:
        at = some_device(a);
        if (at >= 0 && chance(&a->random, 2))
            close_device(a, at);
        break;
    case 4:
    case 5:
    case 6: load_module(a); break;
    case 7: set_default(a); break;
    case 8: launch_embedded(a); break;
    case 9: plain_calls(a); break;
    case 10: compiler_calls(a); break;
    default: environment(a);
    }
}

static void free_all(Actor *a)
{
    for (int i = 0; i < THINGS; i++) {
        if (a->buffers[i].b)
            free_buffer(a, i);
        if (a->events[i].e)
            tile_event_free(a->events[i].e);
        if (a->streams[i].s)
            free_stream(a, i);
    }
}

static void free_modules(Actor *a)
{
    for (int i = 0; i < MODULES; i++)
        if (a->q->modules[i].m)
            free_module(a, &a->q->modules[i]);
}

static void close_all(Actor *a)
{
    for (int i = 0; i < a->q->ndevices; i++)
        if (!a->q->devices[i].closed)
            close_device(a, i);
}

static void end_lone(Actor *a)
{
    if (chance(&a->random, 2))
        close_all(a);
    free_all(a);
    free_modules(a);
    close_all(a);
}

static void run_lone(Actor *a)
{
    for (int i = 0; i < a->steps; i++)
        switch (below(&a->random, 5)) {
        case 0:
        case 1: own_step(a); break;
        case 2:
        case 3: owner_step(a); break;
        default: lone_step(a);
        }
    end_lone(a);
}

static void *run_thread(void *actor)
{
    Actor *a = actor;
    for (int i = 0; i < a->steps; i++)
        if (a->owner && chance(&a->random, 3))
            owner_step(a);
        else
            own_step(a);
    if (a->owner) /* the others may be in the middle of anything */
        for (int i = 0; i < a->q->ndevices; i++)
            if (a->q->devices[i].may_close)
                tile_device_close(a->q->devices[i].d);
    return NULL;
}

/* The devices and modules are made first; each thread gets streams, events and buffers of its own.
 * One device or both may be closed by their owner while the others go on. */
static void run_threads(Sequence *q, Actor *actors)
{
    pthread_t threads[THREADS];
    Actor *first = &actors[0];
    while (q->ndevices < 2)
        open_device(first);
    for (int i = 0; i < MODULES; i++)
        load_module(first);
    for (int t = 0; t < q->nthreads; t++)
        for (int i = 0; i < 3 * THINGS; i++)
            i < THINGS ? make_stream(&actors[t])
                       : i < 2 * THINGS ? make_buffer(&actors[t]) : make_event(&actors[t]);
    for (int i = 0; i < q->ndevices; i++)
        q->devices[i].may_close = chance(&first->random, 2);
    for (int t = 0; t < q->nthreads; t++)
        if (pthread_create(&threads[t], NULL, run_thread, &actors[t]))
            die("threads", "none");
    for (int t = 0; t < q->nthreads; t++)
        pthread_join(threads[t], NULL);
    for (int i = 0; i < q->ndevices; i++)
        q->devices[i].closed |= q->devices[i].may_close;
    for (int t = 0; t < q->nthreads; t++)
        free_all(&actors[t]);
    free_modules(first);
    close_all(first);
}

static void run_sequence(uint64_t seed, int steps)
{
    static Actor actors[THREADS];
    Random r = {seed * UINT64_C(0x2545f4914f6cdd1d) + 1};
    Sequence q = {.nthreads = chance(&r, 3) ? 2 + below(&r, THREADS - 1) : 1};
    memset(actors, 0, sizeof actors);
    current_seed = seed;
    alarm(HANG_SECONDS);
    for (int t = 0; t < THREADS; t++)
        actors[t] = (Actor){.q = &q, .random = {next(&r)}, .owner = t == 0,
                            .steps = 1 + below(&r, steps)};
    if (verbose)
        fprintf(stderr, "sequence %llu, %d threads\n", (unsigned long long)seed, q.nthreads);
    if (q.nthreads > 1)
        run_threads(&q, actors);
    else
        run_lone(&actors[0]);
    tile_set_default_device(NULL);
}

static void hangs(int signal_number)
{
    char text[80] = "hangs; repeat with --count 1 --seed ", digits[24];
    size_t n = strlen(text), d = 0;
    (void)signal_number;
    for (uint64_t v = current_seed; v > 0 || d == 0; v /= 10)
        digits[d++] = (char)('0' + v % 10);
    while (d > 0)
        text[n++] = digits[--d];
    text[n++] = '\n';
    (void)!write(STDERR_FILENO, text, n);
    _exit(3);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, count = 100;
    int steps = 160;
    const char *devices = "cpu,ref,emu:sm_80,emu:gfx1100,cuda,hip";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--count") == 0)
            count = strtoull(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
            steps = atoi(argv[++i]);
        else if (i + 1 < argc && strcmp(argv[i], "--devices") == 0)
            devices = argv[++i];
        else
            die(argv[i], "[--seed N] [--count N] [--steps N] [--devices D,...] [--verbose]");
    }
    unsetenv("TILE_DEVICE");
    unsetenv("TILE_SYNC");
    unsetenv("TILE_PRINT");
    signal(SIGALRM, hangs);
    add_kinds(devices);
    for (uint64_t i = 0; i < count; i++)
        run_sequence(seed + i, steps < 1 ? 1 : steps);
    for (int i = 0; i < nkinds; i++)
        free(kinds[i].image);
    free(all_images);
    printf("%llu passed, 0 failed: sequences from seed %llu\n", (unsigned long long)count,
           (unsigned long long)seed);
    return 0;
}
