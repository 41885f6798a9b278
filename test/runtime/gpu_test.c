/* The drivers cuda and hip over a stub of the vendor's library (stub_gpu.h):
 *
 *     LD_LIBRARY_PATH=BUILD/stub gpu_test cuda|hip
 *
 * Every call of the library fails in turn, with every code; every symbol is missing in turn; every
 * allocation of ours fails in turn. Each time the answer is a status with a text, all that was made
 * is given back, and nothing crashes. Linked with --wrap for dlopen, dlsym and the allocator, so it
 * works under sanitizers, too. */
#include "runtime/driver.h"
#include "runtime/contract/leaf.h"
#include "test/runtime/stub_gpu.h"
#include "test/unit/image_maker.h"
#include "test/unit/ok.h"
#include <dlfcn.h>
#include <pthread.h>

static StubState *stub;
static const char *kind;
static bool is_cuda;

/* ---- what lies between the runtime and the C library ---- */

static const char *hidden; /* a symbol that dlsym does not find */
static bool no_library;
/* of this thread; allocations until one fails, -1: never */
static _Thread_local long allocations, balance, countdown = -1;

void *__real_dlopen(const char *name, int mode);
void *__real_dlsym(void *library, const char *name);
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *p);
void *__wrap_dlopen(const char *name, int mode);
void *__wrap_dlsym(void *library, const char *name);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *p);

void *__wrap_dlopen(const char *name, int mode)
{
    return __real_dlopen(no_library ? "libno-such-driver.so.1" : name, mode);
}
void *__wrap_dlsym(void *library, const char *name)
{
    return hidden && strcmp(hidden, name) == 0 ? NULL : __real_dlsym(library, name);
}
static bool refused(void)
{
    allocations++;
    if (countdown >= 0 && countdown-- == 0)
        return true;
    balance++;
    return false;
}
void *__wrap_malloc(size_t size)
{
    return refused() ? NULL : __real_malloc(size);
}
void *__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : __real_calloc(n, size);
}
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return refused() ? NULL : __real_aligned_alloc(alignment, size);
}
void __wrap_free(void *p)
{
    balance -= p != NULL;
    __real_free(p);
}

/* ---- small helpers ---- */

static bool says(const char *const *words)
{
    const char *at = tile_last_error();
    for (; *words; words++) {
        at = strstr(at, *words);
        if (!at) {
            fprintf(stderr, "no '%s' in: %s\n", *words, tile_last_error());
            return false;
        }
    }
    return true;
}
#define SAYS(...) CHECK(says((const char *const[]){__VA_ARGS__, NULL}))

/* Nothing that the stub made is left. */
static void all_given_back(const char *when)
{
    for (int i = STUB_MEMORY; i < STUB_KINDS; i++)
        if (!CHECK_INT(stub->live[i], 0))
            fprintf(stderr, "    kind %d, %s\n", i, when);
    if (!CHECK_INT(stub->misuses, 0))
        fprintf(stderr, "    misuse, %s\n", when);
}

static const char *target(void)
{
    return is_cuda ? "sm_90a" : "gfx942";
}

static tile_device *open_device(void)
{
    tile_device *dev = NULL;
    OK(tile_device_open(kind, &dev));
    return dev;
}

/* ---- the kernel: y[i] = x[i] * a, as the stub's "launch" ---- */

static void scale(void **params, unsigned grid, unsigned block)
{
    const float *x;
    float *y, a;
    int64_t n;
    memcpy(&x, params[0], sizeof x);
    memcpy(&n, params[1], sizeof n);
    memcpy(&y, params[3], sizeof y);
    memcpy(&a, params[6], sizeof a);
    for (int64_t i = 0; i < n && i < (int64_t)grid * block; i++)
        y[i] = x[i] * a;
}

enum { N = 1000, THREADS = 128, SHARED = 60000 };
static const char text[] = "the text of a module";
static const KernelSpec scale_spec = {
    .name = "scale",
    .params = {{"x", "f32 const view N"}, {"y", "f32 view N"}, {"a", "f32 scalar"}},
    .aliases = {{0, 1}},
    .naliases = 1,
    .grid = {"N 128 cdiv"},
    .code = text,
    .ncode = sizeof text - 1,
    .threads = THREADS,
    .shared_bytes = SHARED};
static ImageMaker maker;

/* ---- a kernel that talks: the records that its threads would write, in some order ---- */

static tl_debug_record said[200000];
static uint32_t nsaid, nmissing;

static void talk(void **params, unsigned grid, unsigned block)
{
    char *buffer;
    tl_debug_header header;
    (void)grid, (void)block;
    memcpy(&buffer, params[3], sizeof buffer);
    memcpy(&header, buffer, sizeof header);
    header.count += nsaid + nmissing;
    uint32_t n = header.count < header.capacity ? nsaid : header.capacity;
    memcpy(buffer, &header, sizeof header);
    memcpy(buffer + sizeof header, said, n * sizeof *said);
}

static const KernelSpec talk_spec = {.name = "talk",
                                     .params = {{"n", "i32 scalar"}},
                                     .grid = {"n", "2"},
                                     .code = text,
                                     .ncode = sizeof text - 1,
                                     .threads = THREADS,
                                     .gpu = true,
                                     .texts = {"tile", "2,3", "scalar", "", "is wrong"}};

/* A checked kernel that goes one element too far: as the compiler's code, it knows the size from
 * its slot. */
static void reach(void **params, unsigned grid, unsigned block)
{
    uint64_t address, bytes;
    (void)grid, (void)block;
    memcpy(&address, params[0], sizeof address);
    memcpy(&bytes, params[1], sizeof bytes);
    said[0] = (tl_debug_record){TL_DEBUG_FAIL, 0, 3, 0, 0, TL_RUN_BOUNDS, 4, 1, address + bytes};
    said[1] = (tl_debug_record){TL_DEBUG_FAIL, 1, 0, 0, 0, TL_RUN_BOUNDS, 4, 0, 0x1234};
    nsaid = 2;
    void *debug = params[4];
    talk((void *[]){NULL, NULL, NULL, debug}, grid, block);
}

static const KernelSpec reach_spec = {.name = "reach",
                                      .params = {{"p", "f32 pointer"}},
                                      .grid = {"2"},
                                      .flags = TILE_KERNEL_CHECKED,
                                      .code = text,
                                      .ncode = sizeof text - 1,
                                      .threads = THREADS,
                                      .gpu = true,
                                      .texts = {"store"}};

static void register_kernels(void)
{
    stub->functions[3].name = "reach";
    stub->functions[3].function = reach;
    stub->functions[2].name = "talk";
    stub->functions[2].function = talk;
    stub->functions[0].name = "scale";
    stub->functions[0].function = scale;
    stub->functions[1].name = "other";
}

/* ---- the whole life of a launch ---- */

static float data[N], result[N];

static tile_status use(tile_device *dev, tile_module *mod, tile_stream *stream, tile_event **e,
                       tile_buffer **b)
{
    tile_kernel *k = NULL;
    double ms = -1;
    tile_status s = tile_kernel_get(mod, "scale", NULL, &k);
    if (!s)
        s = tile_kernel_prepare(k);
    for (int i = 0; i < 2 && !s; i++)
        s = tile_event_create(dev, &e[i]);
    for (int i = 0; i < 2 && !s; i++)
        s = tile_buffer_alloc(dev, sizeof data, &b[i]);
    if (!s)
        s = tile_event_record(e[0], stream);
    if (!s)
        s = tile_buffer_upload(b[0], 0, data, sizeof data, stream);
    if (!s)
        s = tile_buffer_fill(b[1], 0, 0xff, sizeof data, stream);
    if (!s)
        s = tile_launch(k, stream,
                        (tile_arg[]){tile_view_typed(TILE_F32, tile_buffer_ptr(b[0]), N),
                                     tile_view_typed(TILE_F32, tile_buffer_ptr(b[1]), N),
                                     tile_f32(3)},
                        3);
    if (!s)
        s = tile_event_record(e[1], stream);
    if (!s)
        s = tile_stream_wait_event(NULL, e[1]);
    if (!s)
        s = tile_buffer_download(b[1], 0, result, sizeof result, NULL);
    if (!s)
        s = tile_event_synchronize(e[1]);
    if (!s)
        s = tile_event_elapsed(e[0], e[1], &ms);
    if (!s)
        s = tile_device_synchronize(dev);
    return s;
}

/* The first status that is not OK. */
static tile_status life(void)
{
    tile_device *dev = NULL;
    tile_module *mod = NULL;
    tile_stream *stream = NULL;
    tile_event *e[2] = {NULL};
    tile_buffer *b[2] = {NULL};
    char name[8];
    snprintf(name, sizeof name, "%s:1", kind);
    tile_status s = tile_device_open(name, &dev);
    if (!s) {
        tile_set_default_device(dev);
        s = tile_stream_create(dev, &stream);
    }
    if (!s)
        s = tile_module_load_image(dev, maker.data, maker.size, &mod);
    if (!s)
        s = use(dev, mod, stream, e, b);
    for (int i = 0; i < 2; i++) {
        tile_event_free(e[i]);
        tile_buffer_free(b[i]);
    }
    tile_stream_free(stream);
    tile_module_free(mod);
    tile_set_default_device(NULL);
    tile_device_close(dev);
    return s;
}

static void works(void)
{
    for (int i = 0; i < N; i++)
        data[i] = (float)i;
    make_image(&maker, target(), &scale_spec, 1);
    stub->launches = 0;
    OK(life());
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += result[i] != 3 * data[i];
    CHECK_INT(wrong, 0);
    CHECK_INT(stub->launches, 1);
    CHECK_INT(stub->grid, (N + 127) / 128);
    CHECK_INT(stub->block, THREADS);
    CHECK_INT(stub->shared, SHARED);
    CHECK(stub->stream != NULL);
    CHECK_INT(stub->image_bytes, sizeof text - 1);
    CHECK_INT(stub->function_shared, is_cuda ? SHARED : 0);
    all_given_back("after a life");
}

/* ---- faults ---- */

static const int codes[] = {1, 2, 34, 100, 101, 200, 209, 218, 400, 600, 700, 701, 719, 999};

/* Calls whose failure nobody is told of: they undo what was done. */
static bool is_undoing(const char *symbol)
{
    return strstr(symbol, "Free") || strstr(symbol, "Destroy") || strstr(symbol, "Unload") ||
           strstr(symbol, "Release") || strstr(symbol, "CtxSetCurrent") ||
           strstr(symbol, "CtxGetCurrent") || strcmp(symbol, "hipGetDevice") == 0 ||
           strcmp(symbol, "hipSetDevice") == 0 || strstr(symbol, "Synchronize");
}

static void each_call_fails(void)
{
    long before = stub->calls, calls;
    OK(life());
    calls = stub->calls - before;
    CHECK(calls > 50);
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        int lost_current = 0, lost_waits = 0; /* failures that nobody is told of */
        for (long n = 0; n < calls; n++) {
            char when[80];
            long kept = balance;
            stub->fail_at = n;
            stub->fail_code = codes[c];
            stub->failed = NULL;
            tile_status s = life();
            stub->fail_at = -1;
            snprintf(when, sizeof when, "call %ld (%s) gives %d", n, stub->failed, codes[c]);
            if (!CHECK(stub->failed != NULL)) {
                fprintf(stderr, "    no call %ld of %ld\n", n, calls);
                return;
            }
            if (!CHECK_INT(balance, kept))
                fprintf(stderr, "    %s\n", when);
            if (s == TILE_OK) {
                lost_current += strcmp(stub->failed, "cuCtxGetCurrent") == 0 ||
                                strcmp(stub->failed, "hipGetDevice") == 0;
                lost_waits += strstr(stub->failed, "StreamSynchronize") != NULL;
                if (!CHECK(is_undoing(stub->failed)))
                    fprintf(stderr, "    not told: %s\n", when);
                if (!strstr(stub->failed, "Synchronize"))
                    stub->reset();
            } else if (!strstr(tile_last_error(), stub->failed) &&
                       !CHECK(codes[c] == 600 && strstr(tile_last_error(), "has not happened"))) {
                fprintf(stderr, "    %s: %s\n", when, tile_last_error());
            }
            all_given_back(when);
            stub->misuses = 0;
            stub->reset();
        }
        CHECK_INT(lost_current, 7); /* two buffers, two events, two streams, a module */
        CHECK_INT(lost_waits, 2);   /* two streams */
    }
    OK(life());
    all_given_back("after the faults");
}

/* ---- copies, pinned memory, memory that is kept ---- */

typedef struct Copies {
    tile_device *dev[2], *host;
    tile_stream *stream[2];
    tile_event *done;
    tile_buffer *b[4]; /* two of device 0, one of device 1, one of the cpu */
    float *pinned;
} Copies;

/* pinned -> b[0] -> b[1] -> b[2], of another device -> b[3], of the cpu -> b[2] -> pinned */
static tile_status copy_around(Copies *c)
{
    tile_status s = tile_buffer_upload_async(c->b[0], 0, c->pinned, sizeof data, c->stream[0]);
    if (!s)
        s = tile_buffer_copy(c->b[1], 0, c->b[0], 0, sizeof data, c->stream[0]);
    if (!s)
        s = tile_event_record(c->done, c->stream[0]);
    if (!s)
        s = tile_stream_wait_event(c->stream[1], c->done);
    if (!s)
        s = tile_buffer_copy(c->b[2], 4, c->b[1], 4, sizeof data - 4, c->stream[1]);
    if (!s)
        s = tile_buffer_copy(c->b[3], 0, c->b[2], 0, sizeof data, c->stream[1]);
    if (!s)
        s = tile_buffer_copy(c->b[2], 0, c->b[3], 0, sizeof data, NULL);
    if (!s)
        s = tile_buffer_download_async(c->b[2], 0, c->pinned, sizeof data, NULL);
    return s;
}

static tile_status open_copies(Copies *c)
{
    char name[8];
    tile_status s = tile_device_open("cpu", &c->host);
    for (int i = 0; i < 2 && !s; i++) {
        snprintf(name, sizeof name, "%s:%d", kind, i);
        s = tile_device_open(name, &c->dev[i]);
        if (!s)
            s = tile_stream_create(c->dev[i], &c->stream[i]);
    }
    if (!s)
        s = tile_event_create(c->dev[0], &c->done);
    for (int i = 0; i < 4 && !s; i++)
        s = tile_buffer_alloc(i == 3 ? c->host : c->dev[i / 2], sizeof data, &c->b[i]);
    if (!s)
        s = tile_host_alloc(c->dev[0], sizeof data, (void **)&c->pinned);
    return s;
}

static tile_status life_of_copies(void)
{
    Copies c = {.pinned = NULL};
    tile_status s = open_copies(&c);
    if (!s) {
        memcpy(c.pinned, data, sizeof data);
        s = copy_around(&c);
        memcpy(result, c.pinned, sizeof result);
    }
    tile_host_free(c.dev[0], c.pinned);
    tile_event_free(c.done);
    for (int i = 0; i < 4; i++)
        tile_buffer_free(c.b[i]);
    for (int i = 0; i < 2; i++) {
        tile_stream_free(c.stream[i]);
        tile_device_close(c.dev[i]);
    }
    tile_device_close(c.host);
    return s;
}

static void copies(void)
{
    long calls = stub->calls, kept = balance;
    stub->copies_within = stub->copies_between = 0;
    OK(life_of_copies());
    CHECK(memcmp(result + 1, data + 1, sizeof data - 4) == 0 && result[0] != data[0]);
    CHECK_INT(stub->copies_within, 1);
    CHECK_INT(stub->copies_between, 1);
    CHECK_INT(balance, kept);
    all_given_back("after copies");
    calls = stub->calls - calls;
    for (long n = 0; n < calls; n++) {
        stub->fail_at = n;
        stub->fail_code = 999;
        stub->failed = NULL;
        tile_status s = life_of_copies();
        stub->fail_at = -1;
        if (!CHECK(stub->failed && (s != TILE_OK || is_undoing(stub->failed))))
            fprintf(stderr, "    call %ld (%s)\n", n, stub->failed ? stub->failed : "none");
        if (!CHECK_INT(balance, kept))
            fprintf(stderr, "    call %ld (%s)\n", n, stub->failed);
        stub->misuses = 0;
        stub->reset();
    }
}

static void wrong_copies(void)
{
    Copies c = {.pinned = NULL};
    OK(open_copies(&c));
    CHECK(tile_buffer_copy(NULL, 0, c.b[0], 0, 4, NULL) == TILE_BAD_ARGUMENT);
    CHECK(tile_buffer_copy(c.b[0], 0, NULL, 0, 4, NULL) == TILE_BAD_ARGUMENT);
    CHECK(tile_buffer_copy(c.b[0], sizeof data, c.b[1], 0, 4, NULL) == TILE_BAD_ARGUMENT);
    CHECK(tile_buffer_copy(c.b[0], 0, c.b[0], 4, 8, NULL) == TILE_BAD_ARGUMENT);
    SAYS("from 4", "from 0", "overlap");
    OK(tile_buffer_copy(c.b[0], 0, c.b[0], 8, 8, NULL));
    OK(tile_buffer_copy(c.b[0], 0, c.b[0], 0, 0, NULL));
    CHECK(tile_buffer_copy(c.b[0], 0, c.b[2], 0, 4, c.stream[1]) == TILE_BAD_ARGUMENT);
    CHECK(tile_host_alloc(c.dev[0], UINT64_MAX, (void **)&c.b) == TILE_NO_MEMORY);
    CHECK(tile_host_alloc(c.dev[0], 4, NULL) == TILE_BAD_ARGUMENT);
    OK(tile_host_free(c.dev[0], NULL));
    tile_stream *of_cpu;
    OK(tile_stream_create(c.host, &of_cpu));
    CHECK(tile_stream_wait_event(of_cpu, c.done) == TILE_BAD_ARGUMENT);
    CHECK(tile_stream_native(of_cpu) == NULL && tile_stream_native(NULL) == NULL);
    CHECK(tile_stream_native(c.stream[0]) != NULL);
    tile_stream_free(of_cpu);
    tile_host_free(c.dev[0], c.pinned);
    tile_event_free(c.done);
    for (int i = 0; i < 4; i++)
        tile_buffer_free(c.b[i]);
    for (int i = 0; i < 2; i++) {
        tile_stream_free(c.stream[i]);
        tile_device_close(c.dev[i]);
    }
    tile_device_close(c.host);
    static const char *const optional[][2] = {{"cuMemcpyPeerAsync", "hipMemcpyPeerAsync"},
                                              {"cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"},
                                              {"cuMemHostAlloc", "hipHostMalloc"},
                                              {"cuMemFreeHost", "hipHostFree"}};
    for (int i = 0; i < 4; i++) {
        hidden = optional[i][!is_cuda];
        CHECK(life_of_copies() == TILE_UNAVAILABLE);
        SAYS("lacks", hidden, "too old");
        OK(life());
    }
    hidden = NULL;
    all_given_back("after wrong copies");
}

/* What is freed serves the next buffer of about its size, and goes when memory runs out. */
static void kept_memory(void)
{
    tile_device *dev = open_device();
    tile_buffer *a, *b;
    static const uint64_t sizes[][2] = {{0, 1},       {1, 0},       {511, 512},
                                        {512, 300},   {513, 576},   {1000, 1024},
                                        {4096, 4000}, {4097, 4608}, {(1 << 20) + 1, 9 << 17}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        OK(tile_buffer_alloc(dev, sizes[i][0], &a));
        CHECK_INT(tile_buffer_bytes(a), sizes[i][0]);
        void *address = tile_buffer_ptr(a);
        memset(address, 1, sizes[i][0]);
        tile_buffer_free(a);
        OK(tile_buffer_alloc(dev, sizes[i][1], &b));
        CHECK(tile_buffer_ptr(b) == address);
        CHECK_INT(tile_buffer_bytes(b), sizes[i][1]);
        memset(address, 1, sizes[i][1]);
        tile_buffer_free(b);
        OK(tile_buffer_alloc(dev, 2 * sizes[i][0] + 1024, &b));
        CHECK(tile_buffer_ptr(b) != address);
        tile_buffer_free(b);
        OK(tile_device_trim(dev));
        CHECK_INT(stub->live[STUB_MEMORY], 0);
    }
    OK(tile_buffer_alloc(dev, 1 << 20, &a));
    tile_buffer_free(a);
    stub->fail_symbol = is_cuda ? "cuMemAlloc_v2" : "hipMalloc";
    stub->fail_code = 2;
    OK(tile_buffer_alloc(dev, 1 << 20, &a)); /* without asking */
    CHECK(tile_buffer_alloc(dev, 3 << 20, &b) == TILE_NO_MEMORY);
    tile_buffer_free(a);
    stub->fail_symbol = NULL;
    bool again = false; /* what was kept was given back, and the driver asked again */
    for (int i = 0; i < 8; i++) {
        OK(tile_buffer_alloc(dev, 1 << 20, &a));
        tile_buffer_free(a);
        stub->fail_at = i;
        stub->failed = NULL;
        tile_status s = tile_buffer_alloc(dev, 3 << 20, &b);
        stub->fail_at = -1;
        if (s != TILE_OK)
            continue;
        bool refused_once = stub->failed && strstr(stub->failed, "lloc");
        if (refused_once)
            CHECK_INT(stub->live[STUB_MEMORY], 1);
        again |= refused_once;
        tile_buffer_free(b);
        OK(tile_device_trim(dev));
    }
    CHECK(again);
    stub->fail_code = 999;
    CHECK(tile_buffer_alloc(dev, UINT64_MAX, &a) != TILE_OK);
    tile_device_close(dev);
    all_given_back("after buffers that were kept");
}

/* While a stream is captured, kernels that are loaded are launched, others are refused, and nothing
 * is waited for. */
static void graphs(void)
{
    tile_device *dev;
    tile_module *mod;
    tile_kernel *k;
    tile_stream *stream;
    tile_buffer *b[2];
    setenv("TILE_SYNC", "1", 1);
    dev = open_device();
    unsetenv("TILE_SYNC");
    OK(tile_stream_create(dev, &stream));
    OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
    OK(tile_kernel_get(mod, "scale", NULL, &k));
    for (int i = 0; i < 2; i++)
        OK(tile_buffer_alloc(dev, sizeof data, &b[i]));
    tile_arg args[] = {tile_view_typed(TILE_F32, tile_buffer_ptr(b[0]), N),
                       tile_view_typed(TILE_F32, tile_buffer_ptr(b[1]), N), tile_f32(3)};
    stub->capturing = true;
    stub->launches = 0;
    CHECK(tile_launch(k, stream, args, 3) == TILE_BAD_ARGUMENT);
    SAYS("'scale'", "captured", "tile_kernel_prepare");
    stub->capturing = false;
    OK(tile_kernel_prepare(k));
    stub->capturing = true;
    stub->fail_symbol = is_cuda ? "cuStreamSynchronize" : "hipStreamSynchronize";
    OK(tile_launch(k, stream, args, 3));
    stub->capturing = false;
    CHECK(tile_launch(k, stream, args, 3) != TILE_OK); /* TILE_SYNC waits again */
    stub->fail_symbol = NULL;
    CHECK_INT(stub->launches, 2);
    hidden = is_cuda ? "cuStreamIsCapturing" : "hipStreamIsCapturing";
    OK(life());
    hidden = NULL;
    for (int i = 0; i < 2; i++)
        tile_buffer_free(b[i]);
    tile_stream_free(stream);
    tile_module_free(mod);
    tile_device_close(dev);
    all_given_back("after graphs");
}

/* What a code means. */
static void statuses(void)
{
    static const struct {
        const char *cuda, *hip;
        int code;
        tile_status status;
    } rows[] = {
        {"cuInit", "hipInit", 100, TILE_UNAVAILABLE},
        {"cuInit", "hipInit", 999, TILE_UNAVAILABLE},
        {"cuInit", "hipInit", 2, TILE_NO_MEMORY},
        {"cuDeviceGet", "hipDeviceGet", 101, TILE_UNAVAILABLE},
        {"cuMemAlloc_v2", "hipMalloc", 2, TILE_NO_MEMORY},
        {"cuMemAlloc_v2", "hipMalloc", 700, TILE_DRIVER},
        {"cuModuleLoadDataEx", "hipModuleLoadData", 209, TILE_BAD_IMAGE},
        {"cuModuleLoadDataEx", "hipModuleLoadData", 218, TILE_BAD_IMAGE},
        {"cuModuleGetFunction", "hipModuleGetFunction", 500, TILE_DRIVER},
        {"cuLaunchKernel", "hipModuleLaunchKernel", 701, TILE_NO_RESOURCE},
        {"cuStreamSynchronize", "hipStreamSynchronize", 700, TILE_DRIVER},
        {"cuStreamCreate", "hipStreamCreateWithFlags", 2, TILE_NO_MEMORY},
        {"cuEventElapsedTime", "hipEventElapsedTime", 600, TILE_BAD_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stub->fail_symbol = is_cuda ? rows[i].cuda : rows[i].hip;
        stub->fail_code = rows[i].code;
        if (!CHECK_INT(life(), rows[i].status))
            fprintf(stderr, "    %s gives %d: %s\n", stub->fail_symbol, rows[i].code,
                    tile_last_error());
    }
    stub->fail_symbol = is_cuda ? "cuStreamSynchronize" : "hipStreamSynchronize";
    stub->fail_code = 700;
    CHECK_INT(life(), TILE_DRIVER);
    if (is_cuda)
        SAYS("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700): some other error");
    else
        SAYS("hipStreamSynchronize: hipErrorUnknown (700)");
    stub->fail_symbol = NULL;
    all_given_back("after the statuses");
}

static void each_allocation_fails(void)
{
    int failures = 0;
    for (long n = 0; n < 100; n++) {
        long kept = balance;
        countdown = n;
        tile_status s = life();
        bool reached = countdown < 0;
        countdown = -1;
        if (!CHECK(s == TILE_OK || s == TILE_NO_MEMORY) || !CHECK_INT(balance, kept))
            fprintf(stderr, "    allocation %ld: %s\n", n, tile_last_error());
        all_given_back("after a refused allocation");
        failures += s != TILE_OK;
        if (!reached)
            break;
    }
    CHECK(failures >= 12);
}

/* ---- opening ---- */

typedef struct Symbol {
    bool required;
    const char *name;
} Symbol;
#define REQUIRED                 true
#define OPTIONAL                 false
#define SYM(field, need, symbol) {need, symbol},
#define ERR(code, status)
static const Symbol cuda_symbols[] = {
#include "runtime/gpu/cuda_syms.def"
};
#define SYM(field, need, symbol) {need, symbol},
#define ERR(code, status)
static const Symbol hip_symbols[] = {
#include "runtime/gpu/hip_syms.def"
};

static void missing_symbols(void)
{
    const Symbol *rows = is_cuda ? cuda_symbols : hip_symbols;
    size_t n = is_cuda ? sizeof cuda_symbols : sizeof hip_symbols;
    for (size_t i = 0; i < n / sizeof *rows; i++) {
        hidden = rows[i].name;
        tile_status s = life();
        if (!CHECK_INT(s, rows[i].required ? TILE_UNAVAILABLE : TILE_OK))
            fprintf(stderr, "    without %s: %s\n", hidden, tile_last_error());
        if (rows[i].required)
            SAYS("lacks", hidden, "too old");
        all_given_back(hidden);
    }
    hidden = NULL;
    no_library = true;
    CHECK_INT(life(), TILE_UNAVAILABLE);
    SAYS(is_cuda ? "no CUDA driver on this machine" : "no HIP driver on this machine",
         "libno-such-driver");
    no_library = false;
}

static void refuses(const char *name, tile_status status, const char *word)
{
    tile_device *dev = NULL;
    CHECK_INT(tile_device_open(name, &dev), status);
    SAYS(word);
    CHECK(dev == NULL);
}

static void unfit_machines(void)
{
    char name[16];
    int version = stub->version, devices = stub->devices;
    snprintf(name, sizeof name, "%s:7", kind);
    refuses(name, TILE_UNAVAILABLE, "the driver has 2 devices");
    snprintf(name, sizeof name, "%s:one", kind);
    refuses(name, TILE_BAD_ARGUMENT, "a number");
    snprintf(name, sizeof name, "%s:-1", kind);
    refuses(name, TILE_BAD_ARGUMENT, "a number");
    stub->devices = 0;
    refuses(kind, TILE_UNAVAILABLE, "does not start");
    stub->devices = devices;
    stub->version = is_cuda ? 11080 : 40350000;
    refuses(kind, TILE_UNAVAILABLE, is_cuda ? "version 11.8, but 12.0" : "4.3, but 5.0");
    stub->version = version;
    if (is_cuda) {
        stub->capability = 70;
        refuses(kind, TILE_UNAVAILABLE, "compute capability 7.0, but 7.5");
        stub->capability = 90;
    } else {
        const char *arch = stub->arch;
        stub->arch = "";
        refuses(kind, TILE_UNAVAILABLE, "instruction set");
        stub->arch = arch;
    }
    all_given_back("after unfit machines");
}

static void expect_target(const char *want)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_device *dev = open_device();
    OK(tile_device_get_info(dev, &info));
    CHECK_STR(info.target, want);
    CHECK(strncmp(info.name, "Stub 0 (", 8) == 0 && !info.host_memory);
    CHECK_INT(info.processors, is_cuda ? 132 : 304);
    CHECK_INT(info.memory_bytes >> 30, is_cuda ? 80 : 192);
    tile_device_close(dev);
}

static void targets(void)
{
    if (is_cuda) {
        static const struct {
            int capability;
            const char *target;
        } rows[] = {{75, "sm_75"},   {80, "sm_80"},   {86, "sm_86"},   {87, "sm_80"},
                    {89, "sm_89"},   {90, "sm_90a"},  {100, "sm_100a"}, {103, "sm_103a"},
                    {107, "sm_100f"}, {110, "sm_110a"}, {111, "sm_100"}, {120, "sm_120a"},
                    {121, "sm_121a"}, {123, "sm_120f"}, {130, "sm_120"}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            stub->capability = rows[i].capability;
            expect_target(rows[i].target);
        }
        int version = stub->version;
        static const struct {
            int version, capability;
            const char *target;
        } drivers[] = {{12080, 100, "sm_100"},  {12080, 120, "sm_120"}, {12090, 103, "sm_103a"},
                       {12090, 110, "sm_100"},  {12090, 121, "sm_121a"},
                       {13000, 110, "sm_110a"}};
        for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
            stub->version = drivers[i].version;
            stub->capability = drivers[i].capability;
            expect_target(drivers[i].target);
        }
        stub->capability = 130;
        stub->version = 12070; /* knows no PTX of Blackwell */
        expect_target("sm_90");
        stub->capability = 90;
        expect_target("sm_90a");
        stub->version = 12030; /* nor PTX 8.4 */
        expect_target("sm_80");
        stub->version = version;
        return;
    }
    expect_target("gfx942");
    static const char *const amd[][2] = {/* devices without a row have their generic name's code */
                                         {"gfx1100", "gfx1100"},
                                         {"gfx1031", "gfx10-3-generic"},
                                         {"gfx1036", "gfx10-3-generic"},
                                         {"gfx1103", "gfx11-generic"},
                                         {"gfx110", "gfx110"},
                                         {"gfx1200", "gfx1200"},
                                         {"gfx900", "gfx900"}};
    for (size_t i = 0; i < sizeof amd / sizeof *amd; i++) {
        stub->arch = amd[i][0];
        expect_target(amd[i][1]);
    }
    stub->arch = "gfx1100";
    hidden = "hipGetDevicePropertiesR0600"; /* before ROCm 6 */
    expect_target("gfx1100");
    hidden = NULL;
    stub->arch = "gfx942:sramecc+:xnack-";
}

/* Does an image for the target load, or is it refused, as it should? */
static bool loads(const char *for_target, bool fits)
{
    tile_device *dev = open_device();
    tile_module *mod = NULL;
    make_image(&maker, for_target, &scale_spec, 1);
    tile_status s = tile_module_load_image(dev, maker.data, maker.size, &mod);
    tile_module_free(mod);
    tile_device_close(dev);
    return CHECK_INT(s, fits ? TILE_OK : TILE_BAD_IMAGE);
}

/* PTX of older targets runs; that of sm_90a on 9.0 only. */
static void images(void)
{
    static const struct {
        int capability;
        const char *target;
        bool fits;
    } rows[] = {{90, "sm_90a", true}, {90, "sm_90", true},   {90, "sm_80", true},
                {89, "sm_90", false}, {89, "sm_89", true},   {86, "sm_89", false},
                {86, "sm_80", true},  {100, "sm_90", true},  {100, "sm_90a", false},
                {100, "sm_80", true}, {100, "sm_100", true}, {103, "sm_100", true},
                {90, "sm_100", false}, {120, "sm_100", true}, {86, "sm_86", true},
                {80, "sm_86", false}, {75, "sm_80", false},  {75, "sm_75", true},
                {90, "gfx942", false}, {90, "cpu", false},   {90, "sm_", false},
                {90, "sm_80x", false}, {100, "sm_100f", true}, {103, "sm_100f", true},
                {103, "sm_100a", false}, {103, "sm_103a", true}, {100, "sm_103a", false},
                {110, "sm_100f", false}, {110, "sm_100", true}, {121, "sm_120f", true},
                {121, "sm_120a", false}, {120, "sm_121a", false}, {130, "sm_120f", false},
                {90, "sm_100f", false}, {100, "sm_100af", false}};
    for (size_t i = 0; is_cuda && i < sizeof rows / sizeof *rows; i++) {
        stub->capability = rows[i].capability;
        if (!loads(rows[i].target, rows[i].fits))
            fprintf(stderr, "    %s on %d\n", rows[i].target, rows[i].capability);
    }
    stub->capability = 90;
    make_image(&maker, target(), &scale_spec, 1);
}

/* Code of a generic name runs on its members. */
static void generic_images(void)
{
    static const struct {
        const char *arch, *target;
        bool fits;
    } rows[] = {{"gfx1101", "gfx11-generic", true},   {"gfx1103", "gfx11-generic", true},
                {"gfx1103", "gfx1102", false},        {"gfx1101", "gfx12-generic", false},
                {"gfx110", "gfx11-generic", false},   {"gfx942", "gfx11-generic", false},
                {"gfx1201", "gfx12-generic", true},   {"gfx1153", "gfx11-generic", true},
                {"gfx1030", "gfx10-3-generic", true}, {"gfx1034", "gfx1030", false},
                {"gfx1034", "gfx10-3-generic", true}, {"gfx1201", "gfx11", false}};
    const char *before = stub->arch;
    for (size_t i = 0; !is_cuda && i < sizeof rows / sizeof *rows; i++) {
        stub->arch = rows[i].arch;
        if (!loads(rows[i].target, rows[i].fits))
            fprintf(stderr, "    %s on %s\n", rows[i].target, rows[i].arch);
    }
    stub->arch = before;
    make_image(&maker, target(), &scale_spec, 1);
}

/* Two images one after the other, of kernels that are called like their targets. */
static void *two_images(const char *const *targets, size_t *out_size)
{
    char *both = NULL;
    *out_size = 0;
    for (int i = 0; i < 2; i++) {
        KernelSpec spec = scale_spec;
        spec.name = targets[i];
        make_image(&maker, targets[i], &spec, 1);
        both = realloc(both, *out_size + maker.size);
        memcpy(both + *out_size, maker.data, maker.size);
        *out_size += maker.size;
    }
    return both;
}

/* A device's own target is best, then the newest that it runs, in whatever order they come. */
static void best_of_two(void)
{
    static const struct {
        int capability;
        const char *targets[2]; /* the first is to run */
    } rows[] = {{100, {"sm_90", "sm_80"}},  {100, {"sm_90", "sm_90a"}}, {103, {"sm_100", "sm_90"}},
                {90, {"sm_90a", "sm_90"}},  {86, {"sm_86", "sm_80"}},   {87, {"sm_80", "sm_86"}},
                {120, {"sm_100", "sm_89"}}, {75, {"sm_75", "sm_80"}},   {89, {"sm_86", "sm_80"}},
                {103, {"sm_100f", "sm_100"}}, {103, {"sm_100f", "sm_100a"}},
                {100, {"sm_100a", "sm_100f"}}, {121, {"sm_120f", "sm_120a"}},
                {121, {"sm_121a", "sm_120f"}}, {110, {"sm_100", "sm_100f"}}};
    for (size_t i = 0; is_cuda && i < 2 * sizeof rows / sizeof *rows; i++) {
        const char *const *t = rows[i / 2].targets, *order[2] = {t[i % 2], t[1 - i % 2]};
        stub->capability = rows[i / 2].capability;
        tile_device *dev = open_device();
        tile_module *mod = NULL;
        tile_kernel *k = NULL;
        size_t size;
        void *images = two_images(order, &size);
        OK(tile_module_load_image(dev, images, size, &mod));
        if (!CHECK_INT(tile_kernel_get(mod, t[0], NULL, &k), TILE_OK))
            fprintf(stderr, "    %s,%s on %d\n", order[0], order[1], stub->capability);
        tile_module_free(mod);
        tile_device_close(dev);
        free(images);
    }
    stub->capability = 90;
    make_image(&maker, target(), &scale_spec, 1);
}

/* ---- what kernels want ---- */

/* The status of preparing the first of n kernels, then of the second if there is one. */
static tile_status prepare(const KernelSpec *specs, uint32_t n)
{
    tile_device *dev = open_device();
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    tile_status s = TILE_OK;
    make_image(&maker, target(), specs, n);
    OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
    for (uint32_t i = 0; i < n && s == TILE_OK; i++) {
        OK(tile_kernel_get(mod, specs[i].name, NULL, &k));
        s = tile_kernel_prepare(k);
    }
    CHECK(stub->live[STUB_MODULE] <= 1); /* one block of code, one module */
    tile_module_free(mod);
    tile_device_close(dev);
    all_given_back("after preparing");
    return s;
}

static void code(void)
{
    static const char bad[] = "bad text";
    KernelSpec specs[2] = {scale_spec, scale_spec};
    specs[1].name = "other";
    CHECK_INT(prepare(specs, 2), TILE_OK);
    specs[1].name = "nobody";
    CHECK_INT(prepare(specs, 2), TILE_DRIVER);
    SAYS("'nobody'", "GetFunction");
    specs[0].threads = 2048;
    CHECK_INT(prepare(specs, 1), TILE_NO_RESOURCE);
    SAYS("'scale'", "2048 threads", "1024");
    specs[0].threads = 0;
    CHECK_INT(prepare(specs, 1), TILE_BAD_IMAGE);
    specs[0].threads = THREADS;
    specs[0].shared_bytes = 1 << 20;
    CHECK_INT(prepare(specs, 1), TILE_NO_RESOURCE);
    SAYS("'scale'", "1048576 bytes of shared memory");
    specs[0].shared_bytes = 0;
    specs[0].code = bad;
    specs[0].ncode = sizeof bad - 1;
    CHECK_INT(prepare(specs, 1), TILE_BAD_IMAGE);
    SAYS("'scale'", "rejects the code", is_cuda ? "ptxas: line 1: it is bad" : "209");
}

/* A grid of more threads than a HIP dispatch can count. */
static void large_grids(void)
{
    const KernelSpec spec = {.name = "other",
                             .params = {{"n", "i32 scalar"}},
                             .grid = {"n"},
                             .code = text,
                             .ncode = sizeof text - 1,
                             .threads = 1024};
    tile_device *dev = open_device();
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    const tile_arg most = tile_i32(INT32_MAX), fits = tile_i32(4194303);
    make_image(&maker, target(), &spec, 1);
    OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
    OK(tile_kernel_get(mod, "other", NULL, &k));
    OK(tile_launch(k, NULL, &fits, 1));
    CHECK_INT(stub->grid, 4194303);
    CHECK_INT(tile_launch(k, NULL, &most, 1), is_cuda ? TILE_OK : TILE_NO_RESOURCE);
    CHECK(is_cuda ? stub->grid == INT32_MAX : says((const char *const[]){"2147483647", NULL}));
    tile_module_free(mod);
    tile_device_close(dev);
}

/* ---- launches ---- */

static void launches_allocate_nothing(void)
{
    tile_device *dev = open_device();
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    float x[4] = {1, 2, 3, 4}, y[4];
    make_image(&maker, target(), &scale_spec, 1);
    OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
    OK(tile_kernel_get(mod, "scale", NULL, &k));
    OK(tile_kernel_prepare(k));
    long before = allocations, calls = stub->calls;
    for (int i = 0; i < 100; i++)
        OK(tile_launch(k, NULL, (tile_arg[]){tile_view(x, 4), tile_view(y, 4), tile_f32(2)}, 3));
    CHECK_INT(allocations - before, 0);
    CHECK(stub->calls - calls <= 400); /* is the device current, set, launch, set back */
    CHECK(y[3] == 8);
    CHECK(stub->stream == NULL); /* the vendor's default stream */
    tile_module_free(mod);
    tile_device_close(dev);
}

static void foreign_streams(void *library)
{
    int (*create)(void **, unsigned);
    int (*destroy)(void *);
    void *p = __real_dlsym(library, is_cuda ? "cuStreamCreate" : "hipStreamCreateWithFlags");
    memcpy(&create, &p, sizeof p);
    p = __real_dlsym(library, is_cuda ? "cuStreamDestroy_v2" : "hipStreamDestroy");
    memcpy(&destroy, &p, sizeof p);
    int (*set)(void *) = NULL, (*retain)(void **, int) = NULL, (*release)(int) = NULL;
    void *context = NULL, *native = NULL;
    if (is_cuda) { /* a host with a context of its own */
        p = __real_dlsym(library, "cuCtxSetCurrent");
        memcpy(&set, &p, sizeof p);
        p = __real_dlsym(library, "cuDevicePrimaryCtxRetain");
        memcpy(&retain, &p, sizeof p);
        p = __real_dlsym(library, "cuDevicePrimaryCtxRelease_v2");
        memcpy(&release, &p, sizeof p);
        CHECK_INT(retain(&context, 10), 0);
        CHECK_INT(set(context), 0);
    }
    CHECK_INT(create(&native, 1), 0);
    tile_device *dev = open_device();
    CHECK_INT(stub->live[STUB_CONTEXT], is_cuda); /* the host's */
    tile_stream *stream = NULL;
    tile_module *mod = NULL;
    tile_kernel *k = NULL;
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    OK(tile_module_load_image(dev, maker.data, maker.size, &mod));
    OK(tile_kernel_get(mod, "scale", NULL, &k));
    CHECK_INT(tile_stream_wrap(dev, NULL, &stream), TILE_BAD_ARGUMENT);
    OK(tile_stream_wrap(dev, native, &stream));
    OK(tile_launch(k, stream, (tile_arg[]){tile_view(x, 4), tile_view(y, 4), tile_f32(2)}, 3));
    CHECK(stub->stream == native);
    OK(tile_stream_synchronize(stream));
    CHECK(y[3] == 8);
    tile_stream_free(stream);
    CHECK_INT(stub->live[STUB_STREAM], 1); /* stays the host's */
    tile_module_free(mod);
    tile_device_close(dev);
    CHECK_INT(destroy(native), 0);
    if (is_cuda) {
        CHECK_INT(set(NULL), 0);
        CHECK_INT(release(10), 0);
    }
    all_given_back("after foreign streams");
}

/* The host's current device is the same before and after, and is what a name without a number
 * means. */
static void current_device(void *library)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    void *p = __real_dlsym(library, is_cuda ? "cuCtxGetCurrent" : "hipGetDevice");
    void *seen = &seen;
    int ordinal = -1;
    if (is_cuda) {
        int (*get)(void **), (*set)(void *), (*retain)(void **, int), (*release)(int);
        void *context = NULL;
        memcpy(&get, &p, sizeof p);
        OK(life());
        CHECK_INT(get(&seen), 0);
        CHECK(seen == NULL);
        p = __real_dlsym(library, "cuDevicePrimaryCtxRetain");
        memcpy(&retain, &p, sizeof p);
        p = __real_dlsym(library, "cuDevicePrimaryCtxRelease_v2");
        memcpy(&release, &p, sizeof p);
        p = __real_dlsym(library, "cuCtxSetCurrent");
        memcpy(&set, &p, sizeof p);
        CHECK_INT(retain(&context, 11) | set(context), 0);
        tile_device *dev = open_device();
        OK(tile_device_get_info(dev, &info));
        CHECK_STR(info.name, "Stub 1 (cuda:1)");
        tile_device_close(dev);
        CHECK_INT(set(NULL) | release(11), 0);
    } else {
        int (*get)(int *), (*set)(int);
        memcpy(&get, &p, sizeof p);
        OK(life());
        CHECK_INT(get(&ordinal), 0);
        CHECK_INT(ordinal, 0);
        p = __real_dlsym(library, "hipSetDevice");
        memcpy(&set, &p, sizeof p);
        CHECK_INT(set(1), 0);
        tile_device *dev = open_device();
        OK(tile_device_get_info(dev, &info));
        CHECK_STR(info.name, "Stub 1 (hip:1)");
        tile_device_close(dev);
        CHECK_INT(set(0), 0);
    }
    all_given_back("after a current device");
}

static void events(void)
{
    tile_device *dev = open_device();
    tile_event *a = NULL, *b = NULL;
    tile_stream *stream = NULL;
    double ms = -1;
    OK(tile_event_create(dev, &a));
    OK(tile_event_create(dev, &b));
    OK(tile_stream_create(dev, &stream));
    OK(tile_event_synchronize(a));
    OK(tile_stream_wait_event(stream, a));
    CHECK_INT(tile_event_elapsed(a, b, &ms), TILE_BAD_ARGUMENT);
    SAYS("first");
    OK(tile_event_record(a, stream));
    CHECK_INT(tile_event_elapsed(a, b, &ms), TILE_BAD_ARGUMENT);
    SAYS("second");
    OK(tile_event_record(b, stream));
    OK(tile_event_elapsed(a, b, &ms));
    CHECK(ms == 0.25);
    tile_event_free(a);
    tile_event_free(b);
    tile_stream_free(stream);
    tile_buffer *none = NULL;
    OK(tile_buffer_alloc(dev, 0, &none));
    tile_buffer_free(none);
    CHECK_INT(tile_buffer_alloc(dev, UINT64_MAX, &none), TILE_NO_MEMORY);
    SAYS("18446744073709551615 bytes");
    tile_device_close(dev);
    all_given_back("after events");
}

/* ---- what kernels say ---- */

static void say(uint32_t block, uint32_t thread, uint32_t site, uint32_t word, uint32_t dtype,
                uint32_t reg, uint32_t index, uint64_t bits)
{
    said[nsaid++] =
        (tl_debug_record){TL_DEBUG_PRINT, block, thread, site, word, dtype, reg, index, bits};
}

static void fail(uint32_t block, uint32_t thread, uint32_t word)
{
    said[nsaid++] =
        (tl_debug_record){TL_DEBUG_FAIL, block, thread, 1, word, TL_RUN_ASSERT, 0, 0, 0};
}

static char printed[8192];
static void on_print(void *user, const char *line)
{
    (void)user;
    snprintf(printed + strlen(printed), sizeof printed - strlen(printed), "%s;", line);
}

/* Threads 0 and 1 own three elements each; thread 1 is first, and a round ahead in the loop. */
static void say_tiles(uint32_t block, int rounds)
{
    for (int round = 0; round < rounds; round++)
        for (uint32_t t = 2; t-- > 0;)
            for (uint32_t r = 0; r < 3; r++)
                say(block, t, 0, 0, TILE_I16, r, t * 3 + r, 100 * (uint32_t)round + t * 3 + r);
}

static tile_device *talk_device;
static tile_module *talk_module;
static tile_kernel *talk_kernel;

static void open_talk(void)
{
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = on_print;
    talk_device = open_device();
    make_image(&maker, target(), &talk_spec, 1);
    OK(tile_device_set_callbacks(talk_device, &callbacks));
    OK(tile_module_load_image(talk_device, maker.data, maker.size, &talk_module));
    OK(tile_kernel_get(talk_module, "talk", NULL, &talk_kernel));
    printed[0] = 0;
    nsaid = nmissing = 0;
}

static void close_talk(void)
{
    tile_module_free(talk_module);
    tile_device_close(talk_device);
    all_given_back("after talking");
}

static tile_status launch_talk(tile_stream *stream)
{
    const tile_arg two = tile_i32(2);
    return tile_launch(talk_kernel, stream, &two, 1);
}

static void prints_and_failures(void)
{
    open_talk();
    tile_stream *stream = NULL;
    OK(tile_device_default_stream(talk_device, &stream));
    fail(3, 9, 4); /* lower blocks win */
    fail(1, 7, 4);
    say_tiles(1, 2);
    say(1, 0, 1, 2, TILE_F32, 0, 0, 0x3fc00000);
    say_tiles(0, 1);
    OK(launch_talk(stream));
    nsaid = 0; /* the next launch's records are its own */
    say(2, 0, 1, 2, TILE_F32, 0, 0, 0xbf800000);
    OK(launch_talk(stream));
    CHECK_INT(tile_stream_synchronize(stream), TILE_FAILED);
    CHECK_STR(tile_last_error(), "test.tile:3:4: assertion failed: is wrong (program 1,0)");
    CHECK_STR(printed, "tile = [[0, 1, 2], [3, 4, 5]];"
                       "tile = [[0, 1, 2], [3, 4, 5]];"
                       "tile = [[100, 101, 102], [103, 104, 105]];"
                       "scalar = 1.5;scalar = -1;");
    printed[0] = 0;
    OK(tile_stream_synchronize(stream)); /* told once */
    CHECK_STR(printed, "");
    close_talk();
}

/* What is said of an access outside of its array: the size is the buffer's behind the pointer, and
 * the arguments are known when the stream is synchronised, long after the launch. */
static void accesses_outside(void)
{
    tile_device *dev = open_device();
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    tile_buffer *buffer = NULL;
    make_image(&maker, target(), &reach_spec, 1);
    OK(tile_module_load_image(dev, maker.data, maker.size, &m));
    OK(tile_kernel_get(m, "reach", NULL, &k));
    OK(tile_buffer_alloc(dev, 44, &buffer));
    nmissing = 0;
    tile_arg arg = tile_ptr((float *)tile_buffer_ptr(buffer) + 1);
    OK(tile_launch(k, NULL, &arg, 1));
    memset(&arg, 0, sizeof arg);
    CHECK_INT(tile_device_synchronize(dev), TILE_FAILED);
    SAYS("out of bounds: store of 4 bytes at offset 40 of 'p', which has 40 (program 0)");
    arg = tile_ptr_sized(tile_buffer_ptr(buffer), 20);
    OK(tile_launch(k, NULL, &arg, 1));
    CHECK_INT(tile_device_synchronize(dev), TILE_FAILED);
    SAYS("store of 4 bytes at offset 20 of 'p', which has 20 (program 0)");
    tile_buffer_free(buffer);
    tile_module_free(m);
    tile_device_close(dev);
    all_given_back("after accesses outside");
}

/* More launches than the buffer has segments; records that did not fit; values cut short. */
static void too_much_talk(void)
{
    enum { LAUNCHES = 20 };
    char want[1024] = "";
    tile_stream *stream = NULL;
    open_talk();
    OK(tile_stream_create(talk_device, &stream));
    for (int i = 0; i < LAUNCHES; i++) {
        nsaid = 0;
        say(0, 0, 1, 2, TILE_I32, 0, 0, (uint32_t)i);
        OK(launch_talk(stream));
        snprintf(want + strlen(want), sizeof want - strlen(want), "scalar = %d;", i);
    }
    OK(tile_stream_synchronize(stream));
    CHECK_STR(printed, want);
    printed[0] = 0;
    nsaid = 0;
    say(0, 0, 1, 2, TILE_I32, 0, 0, 5);
    say_tiles(0, 1);
    nsaid--;
    nmissing = 200000;
    OK(launch_talk(stream));
    nmissing = 0;
    OK(tile_stream_synchronize(stream));
    CHECK(strstr(printed, "more prints were dropped") != NULL);
    tile_stream_free(stream);
    close_talk();
}

/* A module may go before its stream is synchronised: what its kernels said is kept. */
static void module_goes_first(void)
{
    tile_stream *stream = NULL;
    open_talk();
    OK(tile_stream_create(talk_device, &stream));
    say(0, 0, 1, 2, TILE_I32, 0, 0, 77);
    OK(launch_talk(stream));
    tile_module_free(talk_module);
    talk_module = NULL;
    OK(tile_stream_synchronize(stream));
    CHECK_STR(printed, "scalar = 77;");
    tile_stream_free(stream);
    close_talk();
}

static tile_status talking_life(void)
{
    tile_device *dev = NULL;
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    tile_stream *stream = NULL;
    const tile_arg two = tile_i32(2);
    tile_status s = tile_device_open(kind, &dev);
    if (!s)
        s = tile_stream_create(dev, &stream);
    if (!s)
        s = tile_module_load_image(dev, maker.data, maker.size, &m);
    if (!s)
        s = tile_kernel_get(m, "talk", NULL, &k);
    for (int i = 0; i < 9 && !s; i++)
        s = tile_launch(k, stream, &two, 1);
    if (!s)
        s = tile_stream_synchronize(stream);
    tile_stream_free(stream);
    tile_module_free(m);
    tile_device_close(dev);
    return s;
}

static void each_call_of_talk_fails(void)
{
    make_image(&maker, target(), &talk_spec, 1);
    nsaid = 0;
    say_tiles(1, 2);
    OK(talking_life());
    long before = stub->calls, calls;
    OK(talking_life());
    calls = stub->calls - before;
    for (long n = 0; n < calls; n++) {
        long kept = balance;
        stub->fail_at = n;
        stub->fail_code = 700;
        tile_status s = talking_life();
        stub->fail_at = -1;
        if (!CHECK(s != TILE_OK || is_undoing(stub->failed)) || !CHECK_INT(balance, kept))
            fprintf(stderr, "    call %ld (%s)\n", n, stub->failed);
        if (s != TILE_OK && !is_undoing(stub->failed))
            all_given_back(stub->failed);
        stub->misuses = 0;
        stub->reset();
    }
    for (long n = 0; n < 200; n++) {
        long kept = balance;
        countdown = n;
        tile_status s = talking_life();
        bool reached = countdown < 0;
        countdown = -1;
        CHECK(s == TILE_OK || s == TILE_NO_MEMORY);
        CHECK_INT(balance, kept);
        all_given_back("after a refused allocation while talking");
        if (!reached)
            break;
    }
}

/* ---- threads: a device, a module and the default stream are everybody's ---- */

enum { TALKERS = 4, ROUNDS = 30 };

static tile_status talk_and_scale(tile_stream *stream, tile_kernel *talker, tile_buffer *b,
                                  float *y)
{
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    const tile_arg two = tile_i32(2);
    tile_status s = tile_module_load_image(talk_device, maker.data, maker.size, &m);
    if (!s)
        s = tile_kernel_get(m, "scale", NULL, &k);
    if (!s)
        s = tile_launch(talker, stream, &two, 1);
    if (!s)
        s = tile_launch(talker, NULL, &two, 1);
    if (!s)
        s = tile_launch(k, stream,
                        (tile_arg[]){tile_view_typed(TILE_F32, tile_buffer_ptr(b), 4),
                                     tile_view_typed(TILE_F32, tile_buffer_ptr(b), 4), tile_f32(2)},
                        3);
    if (!s)
        s = tile_buffer_download(b, 0, y, 16, stream);
    tile_module_free(m);
    return s;
}

static void *thread_main(void *arg)
{
    float x[4] = {1, 1, 1, 1}, y[4] = {0};
    tile_stream *stream = NULL;
    tile_buffer *b = NULL;
    tile_event *e = NULL;
    tile_status s = tile_stream_create(talk_device, &stream);
    if (!s)
        s = tile_buffer_alloc(talk_device, sizeof x, &b);
    if (!s)
        s = tile_buffer_upload(b, 0, x, sizeof x, stream);
    if (!s)
        s = tile_event_create(talk_device, &e);
    for (int i = 0; i < ROUNDS && !s; i++) {
        s = talk_and_scale(stream, talk_kernel, b, y);
        if (!s)
            s = tile_event_record(e, NULL);
        if (!s)
            s = tile_stream_wait_event(stream, e);
        if (!s)
            s = tile_stream_synchronize(stream);
    }
    tile_event_free(e);
    tile_buffer_free(b);
    tile_stream_free(stream);
    *(float *)arg = s ? -1 : y[3];
    return NULL;
}

static void threads(void)
{
    pthread_t t[TALKERS];
    float out[TALKERS] = {0};
    const KernelSpec both[] = {talk_spec, scale_spec};
    open_talk();
    OK(tile_device_set_callbacks(talk_device, NULL)); /* they are called in every thread */
    OK(tile_set_default_device(talk_device));
    make_image(&maker, target(), both, 2);
    say_tiles(0, 1);
    for (int i = 0; i < TALKERS; i++)
        CHECK_INT(pthread_create(&t[i], NULL, thread_main, &out[i]), 0);
    for (int i = 0; i < TALKERS; i++) {
        pthread_join(t[i], NULL);
        CHECK(out[i] == (float)(1 << ROUNDS));
    }
    OK(tile_stream_synchronize(NULL));
    tile_set_default_device(NULL);
    close_talk();
}

int main(int argc, char **argv)
{
    kind = argc > 1 ? argv[1] : "cuda";
    is_cuda = strcmp(kind, "cuda") == 0;
    const char *name = is_cuda ? "libcuda.so.1" : "libamdhip64.so.6";
    void *library = __real_dlopen(name, RTLD_NOW | RTLD_LOCAL);
    void *p = library ? __real_dlsym(library, "stub_state") : NULL;
    if (!p) {
        fprintf(stderr, "no stub %s: LD_LIBRARY_PATH needs its folder\n", name);
        return 1;
    }
    StubStateGetter state;
    memcpy(&state, &p, sizeof p);
    stub = state();
    register_kernels();
    works();
    statuses();
    each_call_fails();
    copies();
    wrong_copies();
    kept_memory();
    graphs();
    each_allocation_fails();
    missing_symbols();
    unfit_machines();
    targets();
    images();
    generic_images();
    best_of_two();
    code();
    large_grids();
    launches_allocate_nothing();
    foreign_streams(library);
    current_device(library);
    events();
    prints_and_failures();
    accesses_outside();
    too_much_talk();
    module_goes_first();
    each_call_of_talk_fails();
    threads();
    dlclose(library);
    return unit_result();
}
