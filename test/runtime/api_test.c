/* The runtime's conformance suite: the same calls on one device, named on the command line. Every
 * driver must pass it: `api_test cpu`, `api_test ref`, `emu:sm_90a`, `cuda`, `hip`. */
#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/ok.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static const char source[] =
    "kernel scale(const f32 x[N], f32 y[N], f32 a, const int B = 64)\n"
    "    grid(cdiv(N, B))\n"
    "{\n"
    "    int i = pid(0) * B;\n"
    "    y[i +: B] = x[i +: B] * a;\n"
    "}\n"
    "kernel bump(i32 x[N]) grid(1)\n"
    "{\n"
    "    x[0 +: 16] += 1;\n"
    "}\n"
    "kernel fails(const i32 x[N]) grid(N)\n"
    "{\n"
    "    i32 v = x[pid(0)];\n"
    "    assert(v >= 0, \"negative\");\n"
    "}\n"
    "kernel says(const i32 x[N]) grid(N, 2)\n"
    "{\n"
    "    print(\"first\", x[pid(0)]);\n"
    "    print(\"second\", pid(1));\n"
    "}\n"
    /* each program waits for the one before it */
    "kernel chain(i32 flag[N], i32 order[N]) grid(N)\n"
    "{\n"
    "    int p = pid(0);\n"
    "    if (p > 0) {\n"
    "        while (atomic_load(flag[p - 1], order = acquire) == 0) {}\n"
    "        order[p] = order[p - 1] + 1;\n"
    "    }\n"
    "    atomic_store(flag[p], 1, order = release);\n"
    "}\n"
    /* each program waits for all: before the end, no program has added more than once */
    "kernel meet(i32 count[1], i32 sum[N], const int ROUNDS = 3) grid(N)\n"
    "{\n"
    "    for (int i : range(1, ROUNDS + 1)) {\n"
    "        atomic_add(count[0], 1, order = acq_rel);\n"
    "        while (atomic_load(count[0], order = acquire) < i * N) {}\n"
    "        sum[pid(0)] += i;\n"
    "    }\n"
    "}\n"
    "kernel where(i32 x[M, N]) grid(M, N, group = 3)\n"
    "{\n"
    "    x[pid(0), pid(1)] = pid(0) * 100 + pid(1) + npid(0) * 10000 + npid(2) * 1000000;\n"
    "}\n"
    "kernel product(const f32 a[M, K], const f32 b[K, N], f32 c[M, N]) grid(cdiv(M, 16))\n"
    "{\n"
    "    int m = pid(0) * 16;\n"
    "    tile<f32, 16, 16> acc = 0;\n"
    "    for (int k : range(0, K, 16))\n"
    "        acc = dot(a[m +: 16, k +: 16], b[k +: 16, 0 +: 16], acc);\n"
    "    c[m +: 16, 0 +: 16] = acc;\n"
    "}\n"
    "kernel variant(i32 x[N], const int B) grid(1) require(N <= B) instantiate(B = 8; B = 32)\n"
    "{\n"
    "    x[0] = B;\n"
    "}\n"
    "kernel counted(i32 x[N], int n) grid(n) require(n <= N)\n"
    "{\n"
    "    x[pid(0)] = n;\n"
    "}\n"
    "kernel typed(const T x[N], f32 y[N], const type T = f32) grid(1)\n"
    "{\n"
    "    y[0 +: 4] = cast(x[0 +: 4], f32);\n"
    "}\n";
static const char held_source[] = "kernel held(i32 flag[1], const i32 x[N], i32 y[N]) grid(1)\n"
                                  "{\n"
                                  "    while (atomic_load(flag[0], order = acquire) == 0) {}\n"
                                  "    y[0 +: 4] = x[0 +: 4];\n"
                                  "}\n";
/* P[0] and P[1] are read, P[2] is written */
static const char pointed_source[] = "kernel pointed(const u64 P[G], f32 y[N]) grid(1)\n"
                                     "{\n"
                                     "    auto x = load((const f32 *)P[0] + iota(4));\n"
                                     "    y[0 +: 4] = x + ((const f32 *)P[1])[3];\n"
                                     "    store((f32 *)P[2] + iota(4), x * 2);\n"
                                     "}\n";
static const char bad_source[] = "kernel wrong(f32 x[N]) grid(1)\n"
                                 "{\n"
                                 "    x[0] = nothing;\n"
                                 "}\n";

static tile_device *dev;
static tile_module *mod;

#define TEXT_HAS(word)                                                                             \
    do {                                                                                           \
        if (!CHECK(strstr(tile_last_error(), word) != NULL))                                       \
            fprintf(stderr, "    no '%s' in: %s\n", word, tile_last_error());                      \
    } while (0)

static tile_module *load(const char *text)
{
    tile_module *m = NULL;
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    options.debug = 1; /* asserts stay */
    OK(tile_module_load_source(dev, "api.tile", text, strlen(text), &options, &m));
    return m;
}

static tile_kernel *get(const char *name)
{
    tile_kernel *k = NULL;
    OK(tile_kernel_get(mod, name, NULL, &k));
    return k;
}

static tile_buffer *buffer(const void *data, uint64_t bytes)
{
    tile_buffer *b = NULL;
    OK(tile_buffer_alloc(dev, bytes, &b));
    if (data)
        OK(tile_buffer_upload(b, 0, data, bytes, NULL));
    return b;
}

static void fetch(tile_buffer *b, void *data)
{
    OK(tile_buffer_download(b, 0, data, tile_buffer_bytes(b), NULL));
}

/* ---- devices and memory ---- */

static void devices(const char *name)
{
    tile_device *d = NULL;
    CHECK_INT(tile_version(), TILE_VERSION);
    CHECK_INT(tile_device_open("nonsense", &d), TILE_BAD_ARGUMENT);
    TEXT_HAS("'nonsense'");
    CHECK_INT(tile_device_open("cpu:1", &d), TILE_BAD_ARGUMENT);
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    OK(tile_device_get_info(dev, &info));
    CHECK(info.name[0] && info.target[0] && info.processors >= 1);
    CHECK(strncmp(info.target, name, strlen(info.target)) == 0 || strchr(name, ':') ||
          !info.host_memory);
    info.struct_size = 1;
    CHECK_INT(tile_device_get_info(dev, &info), TILE_BAD_ARGUMENT);
    OK(tile_set_default_device(dev));
    OK(tile_default_device(&d));
    CHECK(d == dev);
    CHECK_STR(tile_status_name(TILE_NO_MEMORY), "no memory");
    CHECK_STR(tile_status_name((tile_status)99), "unknown status");
    CHECK_STR(tile_dtype_name(TILE_BF16), "bf16");
    CHECK_INT(tile_dtype_bits(TILE_U4), 4);
    CHECK_STR(tile_dtype_name(TILE_ANY), "?");
    tile_device_close(NULL);
}

static void memory(void)
{
    int32_t in[100], out[100] = {0};
    for (int i = 0; i < 100; i++)
        in[i] = i * i;
    tile_buffer *b = buffer(in, sizeof in);
    CHECK_INT(tile_buffer_bytes(b), sizeof in);
    CHECK_INT((uintptr_t)tile_buffer_ptr(b) % 256, 0);
    fetch(b, out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    OK(tile_buffer_fill(b, 4, 0xAB, 8, NULL));
    OK(tile_buffer_download(b, 0, out, 16, NULL));
    CHECK(out[0] == 0 && out[1] == (int32_t)0xABABABABu && out[2] == out[1] && out[3] == 9);
    CHECK_INT(tile_buffer_upload(b, 0, in, sizeof in + 1, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_buffer_download(b, sizeof in, out, 1, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_buffer_fill(b, UINT64_MAX, 0, 2, NULL), TILE_BAD_ARGUMENT);
    OK(tile_buffer_upload(b, sizeof in, in, 0, NULL));
    CHECK_INT(tile_buffer_alloc(dev, UINT64_MAX, &b), TILE_NO_MEMORY);
    tile_buffer_free(b);
    b = NULL;
    OK(tile_buffer_alloc(dev, 0, &b));
    tile_buffer_free(b);
    tile_buffer_free(NULL);
}

/* Copies that do not wait, in a stream; between buffers, and from and to another device's. */
static void copies(void)
{
    enum { COUNT = 5000, BYTES = COUNT * 4 };
    int32_t *host = NULL, *back = NULL;
    tile_device *cpu;
    tile_stream *stream, *of_cpu;
    tile_buffer *b[3];
    tile_event *done;
    OK(tile_device_open("cpu", &cpu));
    OK(tile_stream_create(dev, &stream));
    OK(tile_stream_create(cpu, &of_cpu));
    OK(tile_event_create(dev, &done));
    OK(tile_host_alloc(dev, BYTES, (void **)&host));
    OK(tile_host_alloc(dev, BYTES, (void **)&back));
    CHECK_INT((uintptr_t)host % 256, 0);
    for (int i = 0; i < 3; i++)
        OK(tile_buffer_alloc(i == 2 ? cpu : dev, BYTES, &b[i]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            host[i] = i ^ round;
        OK(tile_buffer_upload_async(b[0], 0, host, BYTES, stream));
        OK(tile_buffer_copy(b[1], 0, b[0], 0, BYTES / 2, stream));
        OK(tile_buffer_copy(b[1], BYTES / 2, b[0], BYTES / 2, BYTES / 2, stream));
        OK(tile_buffer_copy(b[1], 0, b[1], 8, 4, stream));
        OK(tile_event_record(done, stream));
        OK(tile_event_synchronize(done));
        OK(tile_buffer_copy(b[2], 0, b[1], 0, BYTES, NULL));
        OK(tile_device_synchronize(dev));
        OK(tile_device_synchronize(cpu));
        OK(tile_buffer_fill(b[1], 0, 0, BYTES, stream));
        OK(tile_stream_synchronize(stream));
        OK(tile_buffer_copy(b[1], 0, b[2], 0, BYTES, NULL));
        OK(tile_device_synchronize(dev));
        OK(tile_buffer_download_async(b[1], 0, back, BYTES, stream));
        OK(tile_stream_synchronize(stream));
        CHECK_INT(back[0], 2 ^ round);
        CHECK(memcmp(back + 1, host + 1, BYTES - 4) == 0);
    }
    CHECK_INT(tile_buffer_copy(b[1], 0, b[1], 4, 8, stream), TILE_BAD_ARGUMENT);
    TEXT_HAS("overlap");
    CHECK_INT(tile_buffer_copy(b[1], 0, b[0], BYTES, 1, stream), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_buffer_copy(b[1], 0, b[0], 0, 4, of_cpu), TILE_BAD_ARGUMENT);
    OK(tile_buffer_copy(b[1], 0, b[1], 0, 0, stream));
    OK(tile_host_free(dev, host));
    OK(tile_host_free(dev, back));
    OK(tile_device_trim(dev));
    tile_event_free(done);
    tile_stream_free(stream);
    tile_stream_free(of_cpu);
    for (int i = 0; i < 3; i++)
        tile_buffer_free(b[i]);
    tile_device_close(cpu);
}

/* ---- modules ---- */

static char diagnostics[1024];
static void take(void *user, const char *text)
{
    (void)user;
    snprintf(diagnostics, sizeof diagnostics, "%s", text);
}

static void modules(void)
{
    tile_kernel *k = NULL, *again = NULL;
    tile_module *m = NULL;
    OK(tile_kernel_get(mod, "scale", NULL, &k));
    OK(tile_kernel_get(mod, "scale", (tile_const[]){{0, 0, 0}}, &again));
    if (!CHECK(k != NULL && k == again))
        return;
    CHECK_STR(tile_kernel_name(k), "scale");
    CHECK_INT(tile_kernel_param_count(k), 3);
    tile_param_info info = TILE_PARAM_INFO_INIT;
    OK(tile_kernel_param(k, 0, &info));
    CHECK(info.kind == TILE_ARG_VIEW && info.dtype == TILE_F32 && info.is_const && info.rank == 1);
    OK(tile_kernel_param(k, 2, &info));
    CHECK(info.kind == TILE_ARG_SCALAR && strcmp(info.name, "a") == 0);
    CHECK_INT(tile_kernel_get(mod, "nobody", NULL, &again), TILE_NOT_FOUND);
    TEXT_HAS("nobody");
    CHECK_INT(tile_kernel_get(mod, "scale", (tile_const[]){{"Q", 1, 0}, {0, 0, 0}}, &again),
              TILE_NOT_FOUND);
    TEXT_HAS("Q");
    CHECK_INT(tile_module_load_file(dev, "no/such/file.tile", NULL, &m), TILE_IO);
    CHECK_INT(tile_module_load_image(dev, source, sizeof source, &m), TILE_BAD_IMAGE);
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    options.diagnostic = take;
    OK(tile_module_load_source(dev, "bad.tile", bad_source, sizeof bad_source - 1, &options, &m));
    CHECK_INT(tile_kernel_get(m, "wrong", NULL, &again), TILE_COMPILE);
    TEXT_HAS("nothing");
    CHECK(strstr(diagnostics, "error") != NULL && strstr(diagnostics, "bad.tile") != NULL);
    tile_module_free(m);
    tile_module_free(NULL);
}

/* ---- launches ---- */

static void launches(void)
{
    enum { N = 1000 };
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    tile_kernel *k = get("scale");
    tile_buffer *bx = buffer(x, sizeof x), *by = buffer(x, sizeof x);
    OK(tile_kernel_prepare(k));
    OK(tile_kernel_prepare(k));
    const tile_arg args[3] = {tile_view_typed(TILE_F32, tile_buffer_ptr(bx), N),
                              tile_view_typed(TILE_F32, tile_buffer_ptr(by), N), tile_f32(3)};
    OK(tile_launch(k, NULL, args, 3));
    OK(tile_stream_synchronize(NULL));
    fetch(by, y);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += y[i] != 3 * x[i];
    CHECK_INT(wrong, 0);
    CHECK_INT(tile_launch(k, NULL, args, 2), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch(k, NULL, NULL, 3), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch(NULL, NULL, args, 3), TILE_BAD_ARGUMENT);
    const tile_arg empty[3] = {tile_view_typed(TILE_F32, NULL, 0),
                               tile_view_typed(TILE_F32, NULL, 0), tile_f32(3)};
    OK(tile_launch(k, NULL, empty, 3));
    tile_buffer_free(bx);
    tile_buffer_free(by);
}

/* What a launch keeps of its operands for the programs that follow is gone with it: the next one,
 * of the same memory with other numbers in it, and another module's kernel in its place see the
 * numbers that are there. */
static void operands_of_each_launch(void)
{
    enum { M = 40, K = 24, N = 16 };
    static float a[M * K], b[K * N], c[M * N];
    int wrong = 0;
    for (int i = 0; i < M * K; i++)
        a[i] = (float)(i % 5 - 2);
    tile_buffer *ba = buffer(a, sizeof a), *bb = buffer(NULL, sizeof b), *bc = buffer(c, sizeof c);
    const tile_arg args[3] = {tile_view_typed(TILE_F32, tile_buffer_ptr(ba), M, K),
                              tile_view_typed(TILE_F32, tile_buffer_ptr(bb), K, N),
                              tile_view_typed(TILE_F32, tile_buffer_ptr(bc), M, N)};
    for (int round = 0; round < 6; round++) {
        tile_module *m = load(source), *kept = mod;
        mod = round < 3 ? mod : m;
        tile_kernel *k = get("product");
        for (int i = 0; i < K * N; i++)
            b[i] = (float)((i + round) % 7 - 3);
        OK(tile_buffer_upload(bb, 0, b, sizeof b, NULL));
        OK(tile_launch(k, NULL, args, 3));
        OK(tile_stream_synchronize(NULL));
        fetch(bc, c);
        for (int i = 0; i < M * N; i++) {
            float sum = 0;
            for (int j = 0; j < K; j++)
                sum += a[i / N * K + j] * b[j * N + i % N];
            wrong += c[i] != sum;
        }
        mod = kept;
        tile_module_free(m);
    }
    CHECK_INT(wrong, 0);
    tile_buffer_free(ba);
    tile_buffer_free(bb);
    tile_buffer_free(bc);
}

static void grids(void)
{
    enum { M = 10, N = 7 };
    int32_t x[M][N];
    memset(x, 0xff, sizeof x);
    tile_kernel *k = get("where");
    tile_buffer *b = buffer(x, sizeof x);
    const tile_arg arg = tile_view_typed(TILE_I32, tile_buffer_ptr(b), M, N);
    OK(tile_launch(k, NULL, &arg, 1));
    fetch(b, x);
    int wrong = 0;
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            wrong += x[m][n] != m * 100 + n + M * 10000 + 1000000;
    CHECK_INT(wrong, 0);
    OK(tile_buffer_fill(b, 0, 0xff, sizeof x, NULL));
    OK(tile_launch_grid(k, NULL, &arg, 1, (int64_t[]){4, 2, 3}, 3));
    fetch(b, x);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            wrong += x[m][n] != (m < 4 && n < 2 ? m * 100 + n + 4 * 10000 + 3000000 : -1);
    CHECK_INT(wrong, 0);
    tile_buffer_free(b);
}

/* What of a launch is taken over from the one before is what is equal: each of these is like the
 * last but for one thing. */
static void launches_like_the_last(void)
{
    enum { N = 64 };
    float x[N], y[N];
    int32_t n[8] = {0};
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    tile_kernel *k = get("scale"), *counted = get("counted");
    OK(tile_kernel_prepare(k));
    OK(tile_kernel_prepare(counted));
    tile_buffer *bx = buffer(x, sizeof x), *by = buffer(x, sizeof x), *bz = buffer(x, sizeof x),
                *bn = buffer(n, sizeof n);
    char *px = tile_buffer_ptr(bx), *py = tile_buffer_ptr(by), *pz = tile_buffer_ptr(bz);
    tile_arg args[3] = {tile_view_typed(TILE_F32, px, N), tile_view_typed(TILE_F32, py, N),
                        tile_f32(2)};
    for (int i = 0; i < 3; i++)
        OK(tile_launch(k, NULL, args, 3));
    args[1].address = pz;
    args[2] = tile_f32(3);
    OK(tile_launch(k, NULL, args, 3));
    OK(tile_stream_synchronize(NULL));
    fetch(by, y);
    CHECK(y[5] == 10 && y[N - 1] == 2 * (N - 1));
    fetch(bz, y);
    CHECK(y[5] == 15 && y[N - 1] == 3 * (N - 1));
    args[1].address = px; /* x, which is read */
    CHECK_INT(tile_launch(k, NULL, args, 3), TILE_BAD_ARGUMENT);
    TEXT_HAS("overlap");
    args[1].address = py;
    OK(tile_launch(k, NULL, args, 3));
    args[1].address = px + 4 * (N - 1);
    CHECK_INT(tile_launch(k, NULL, args, 3), TILE_BAD_ARGUMENT);
    args[1].address = py + 2;
    CHECK_INT(tile_launch(k, NULL, args, 3), TILE_BAD_ARGUMENT);
    TEXT_HAS("aligned");
    args[1].address = NULL;
    CHECK_INT(tile_launch(k, NULL, args, 3), TILE_BAD_ARGUMENT);
    args[1].address = py;
    OK(tile_launch(k, NULL, args, 3));
    args[1].extent[0] = N - 1;
    CHECK_INT(tile_launch(k, NULL, args, 3), TILE_BAD_ARGUMENT);
    args[1].extent[0] = N;
    args[0].dtype = TILE_I32;
    CHECK_INT(tile_launch(k, NULL, args, 3), TILE_BAD_ARGUMENT);
    for (int i = 2; i <= 9; i++) { /* a scalar that the grid and `require` depend on */
        const tile_arg two[2] = {tile_view_typed(TILE_I32, tile_buffer_ptr(bn), 8), tile_i32(i)};
        for (int times = 0; times < 3; times++)
            CHECK_INT(tile_launch(counted, NULL, two, 2), i > 8 ? TILE_BAD_ARGUMENT : TILE_OK);
        fetch(bn, n);
        CHECK_INT(n[i < 8 ? i - 1 : 7], i < 8 ? i : 8);
    }
    tile_buffer_free(bx);
    tile_buffer_free(by);
    tile_buffer_free(bz);
    tile_buffer_free(bn);
}

/* Launches in turns, of fewer and of more shapes than are kept: each is of its own extents, its own
 * addresses and its own factor. */
static void launches_in_turns(void)
{
    enum { N = 80, SHAPES = 6 };
    float x[N], y[N];
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    tile_kernel *k = get("scale");
    OK(tile_kernel_prepare(k));
    tile_buffer *from = buffer(x, sizeof x), *to[2] = {buffer(x, sizeof x), buffer(x, sizeof x)};
    int wrong = 0;
    for (int shapes = 1; shapes <= SHAPES; shapes++)
        for (int i = 0; i < 8 * shapes; i++) {
            int n = 16 + 13 * (i * 5 % shapes) % 60, at = i / shapes % 2;
            OK(tile_buffer_fill(to[at], 0, 0, sizeof y, NULL));
            const tile_arg args[3] = {tile_view_typed(TILE_F32, tile_buffer_ptr(from), n),
                                      tile_view_typed(TILE_F32, tile_buffer_ptr(to[at]), n),
                                      tile_f32((float)(i % 3))};
            OK(tile_launch(k, NULL, args, 3));
            OK(tile_stream_synchronize(NULL));
            fetch(to[at], y);
            for (int j = 0; j < N; j++)
                wrong += y[j] != (j < n ? x[j] * (float)(i % 3) : 0);
        }
    CHECK_INT(wrong, 0);
    tile_buffer_free(from);
    tile_buffer_free(to[0]);
    tile_buffer_free(to[1]);
}

static void variants_and_types(void)
{
    tile_kernel *k = get("variant");
    int32_t x[40] = {0};
    tile_buffer *b = buffer(x, sizeof x), *f;
    for (int n = 8; n <= 32; n += 24) {
        OK(tile_launch(k, NULL, (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), n)}, 1));
        fetch(b, x);
        CHECK_INT(x[0], n);
    }
    const tile_arg large = tile_view_typed(TILE_I32, tile_buffer_ptr(b), 33);
    CHECK_INT(tile_launch(k, NULL, &large, 1), TILE_BAD_ARGUMENT);
    TEXT_HAS("N <= B");
    tile_kernel *only = NULL, *none = NULL;
    OK(tile_kernel_get(mod, "variant", (tile_const[]){{"B", 32, 0}, {0, 0, 0}}, &only));
    OK(tile_launch(only, NULL, (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), 2)}, 1));
    fetch(b, x);
    CHECK_INT(x[0], 32);
    CHECK_INT(tile_kernel_get(mod, "variant", (tile_const[]){{"B", 9, 0}, {0, 0, 0}}, &none),
              TILE_NOT_FOUND);
    const uint16_t half[4] = {0x3c00, 0x4000, 0xc200, 0};
    float y[4] = {9, 9, 9, 9};
    tile_kernel *t = NULL;
    OK(tile_kernel_get(mod, "typed", (tile_const[]){{"T", 0, "f16"}, {0, 0, 0}}, &t));
    tile_buffer *h = buffer(half, sizeof half);
    f = buffer(y, sizeof y);
    OK(tile_launch(t, NULL,
                   (tile_arg[]){tile_view_typed(TILE_F16, tile_buffer_ptr(h), 4),
                                tile_view_typed(TILE_F32, tile_buffer_ptr(f), 4)},
                   2));
    fetch(f, y);
    CHECK(y[0] == 1 && y[1] == 2 && y[2] == -3 && y[3] == 0);
    tile_buffer_free(b);
    tile_buffer_free(h);
    tile_buffer_free(f);
}

/* ---- what kernels say ---- */

static char printed[4096], failed[512];
static int failures;
static void on_print(void *user, const char *text)
{
    (void)user;
    snprintf(printed + strlen(printed), sizeof printed - strlen(printed), "%s;", text);
}
static void on_failure(void *user, const char *text)
{
    (void)user;
    failures++;
    snprintf(failed, sizeof failed, "%s", text);
}

/* What every program prints, in the order of the programs, whoever ran them and when. */
static void many_prints(tile_stream *stream)
{
    enum { N = 60 };
    int32_t x[N];
    char want[4096] = "";
    for (int i = 0; i < N; i++)
        x[i] = 100 + i;
    for (int i = 0; i < 2 * N; i++)
        snprintf(want + strlen(want), sizeof want - strlen(want), "first = %d;second = %d;",
                 x[i % N], i / N);
    tile_buffer *b = buffer(x, sizeof x);
    const tile_arg arg = tile_view_typed(TILE_I32, tile_buffer_ptr(b), N);
    for (int i = 0; i < 10; i++) {
        printed[0] = 0;
        OK(tile_launch(get("says"), stream, &arg, 1));
        OK(tile_stream_synchronize(stream));
        CHECK_STR(printed, want);
    }
    tile_buffer_free(b);
}

static void messages(tile_stream *stream)
{
    int32_t x[40];
    for (int i = 0; i < 40; i++)
        x[i] = i < 3 ? i : i == 37 || i == 20 ? -1 : 7;
    tile_buffer *b = buffer(x, sizeof x);
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = on_print;
    callbacks.failure = on_failure;
    OK(tile_device_set_callbacks(dev, &callbacks));
    printed[0] = 0;
    failures = 0;
    OK(tile_launch(get("says"), stream,
                   (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), 3)}, 1));
    OK(tile_stream_synchronize(stream));
    CHECK_STR(printed, "first = 0;second = 0;first = 1;second = 0;first = 2;second = 0;"
                       "first = 0;second = 1;first = 1;second = 1;first = 2;second = 1;");
    many_prints(stream);
    OK(tile_launch(get("fails"), stream,
                   (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), 40)}, 1));
    CHECK_INT(tile_stream_synchronize(stream), TILE_FAILED);
    TEXT_HAS("api.tile:14:5: assertion failed: negative (program 20)");
    CHECK_STR(failed, tile_last_error());
    CHECK_INT(failures, 1);
    OK(tile_stream_synchronize(stream)); /* told once */
    OK(tile_device_set_callbacks(dev, NULL));
    OK(tile_launch(get("says"), stream,
                   (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), 3)}, 1));
    OK(tile_stream_synchronize(stream));
    tile_buffer_free(b);
}

/* ---- streams ---- */

/* A program waits for the one before it, whatever the number of threads. */
static void programs_in_order(tile_stream *stream)
{
    enum { N = 3000 };
    static int32_t zeros[N], order[N];
    tile_buffer *flag = buffer(zeros, sizeof zeros), *out = buffer(zeros, sizeof zeros);
    OK(tile_launch(get("chain"), stream,
                   (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(flag), N),
                                tile_view_typed(TILE_I32, tile_buffer_ptr(out), N)},
                   2));
    OK(tile_stream_synchronize(stream));
    fetch(out, order);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += order[i] != i;
    CHECK_INT(wrong, 0);
    tile_buffer_free(flag);
    tile_buffer_free(out);
}

static tile_status launch_together(tile_kernel *k, tile_stream *stream, tile_buffer *b, int64_t n)
{
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    o.flags = TILE_LAUNCH_TOGETHER;
    const tile_arg args[] = {tile_view_typed(TILE_I32, tile_buffer_ptr(b), 1),
                             tile_view_typed(TILE_I32, (int32_t *)tile_buffer_ptr(b) + 1, n)};
    return tile_launch_with(k, stream, args, 2, &o);
}

/* As many programs as run at the same time meet at barriers of the whole grid; one more is
 * refused. */
static void meets(tile_stream *stream)
{
    enum { MOST = 24 };
    static const int32_t zeros[MOST + 1];
    int32_t words[MOST + 1];
    int64_t room = 0;
    tile_buffer *b = buffer(zeros, sizeof zeros);
    tile_kernel *k = get("meet");
    OK(tile_launch_room(k,
                        TILE_ARGS(tile_buffer_view(b, TILE_I32, 1),
                                  tile_buffer_view_at(b, 1, TILE_I32, 1)), &room));
    CHECK(room >= 1);
    int64_t n = room < MOST ? room : MOST;
    OK(launch_together(k, stream, b, n));
    OK(tile_stream_synchronize(stream));
    OK(tile_buffer_download(b, 0, words, sizeof words, NULL));
    int wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += words[1 + i] != 1 + 2 + 3;
    CHECK_INT(wrong, 0);
    CHECK_INT(words[0], 3 * n);
    CHECK_INT(launch_together(k, stream, b, room + 1), TILE_NO_RESOURCE);
    TEXT_HAS("cannot run together");
    tile_buffer_free(b);
}

/* More launches than the queue holds, in order, with copies and events between. */
static void long_queues(void)
{
    enum { LAUNCHES = 5000 };
    tile_stream *a = NULL, *b = NULL;
    tile_event *begin = NULL, *end = NULL;
    int32_t x[16] = {0};
    double ms = -1;
    OK(tile_stream_create(dev, &a));
    OK(tile_stream_create(dev, &b));
    OK(tile_event_create(dev, &begin));
    OK(tile_event_create(dev, &end));
    OK(tile_event_synchronize(end)); /* never recorded */
    CHECK_INT(tile_event_elapsed(begin, end, &ms), TILE_BAD_ARGUMENT);
    tile_kernel *k = get("bump");
    tile_buffer *buf = buffer(x, sizeof x);
    const tile_arg arg = tile_view_typed(TILE_I32, tile_buffer_ptr(buf), 16);
    OK(tile_event_record(begin, a));
    OK(tile_buffer_fill(buf, 0, 0, sizeof x, a));
    int refused = 0;
    for (int i = 0; i < LAUNCHES; i++)
        refused += tile_launch(k, a, &arg, 1) != TILE_OK;
    CHECK_INT(refused, 0);
    OK(tile_event_record(end, a));
    OK(tile_stream_wait_event(b, end));
    for (int i = 0; i < 10; i++)
        OK(tile_launch(k, b, &arg, 1));
    OK(tile_buffer_download(buf, 0, x, sizeof x, b));
    CHECK(x[0] == LAUNCHES + 10 && x[15] == LAUNCHES + 10);
    OK(tile_event_synchronize(end));
    OK(tile_event_elapsed(begin, end, &ms));
    CHECK(ms >= 0);
    OK(tile_device_synchronize(dev));
    OK(tile_launch(k, a, &arg, 1));
    tile_stream_free(a); /* waits */
    tile_stream_free(b);
    fetch(buf, x);
    CHECK_INT(x[3], LAUNCHES + 11);
    tile_event_free(begin);
    tile_event_free(end);
    tile_event_free(NULL);
    tile_stream_free(NULL);
    tile_buffer_free(buf);
}

/* One stream is held until the host says so; another waits for it with an event, and may not
 * overwrite before that what the first one reads. */
static void waiting(void)
{
    const int32_t in[4] = {1, 2, 3, 4};
    int32_t out[4] = {0};
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    OK(tile_device_get_info(dev, &info));
    if (!info.host_memory)
        return;
    tile_module *m = load(held_source);
    tile_kernel *k = NULL;
    tile_stream *a = NULL, *b = NULL;
    tile_event *passed = NULL;
    OK(tile_kernel_get(m, "held", NULL, &k));
    OK(tile_stream_create(dev, &a));
    OK(tile_stream_create(dev, &b));
    OK(tile_event_create(dev, &passed));
    tile_buffer *flag = buffer((const int32_t[1]){0}, 4), *x = buffer(in, 16), *y = buffer(in, 16);
    OK(tile_launch(k, a,
                   (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(flag), 1),
                                tile_view_typed(TILE_I32, tile_buffer_ptr(x), 4),
                                tile_view_typed(TILE_I32, tile_buffer_ptr(y), 4)},
                   3));
    OK(tile_event_record(passed, a));
    OK(tile_stream_wait_event(b, passed));
    OK(tile_buffer_fill(x, 0, 0xff, 16, b));
    for (int i = 0; i < 1000; i++)
        sched_yield(); /* time enough for a stream that does not wait */
    __atomic_store_n((int32_t *)tile_buffer_ptr(flag), 1, __ATOMIC_RELEASE);
    OK(tile_event_synchronize(passed));
    OK(tile_stream_synchronize(b));
    fetch(y, out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    fetch(x, out);
    CHECK_INT(out[0], -1);
    tile_stream_free(a);
    tile_stream_free(b);
    tile_event_free(passed);
    tile_module_free(m);
    tile_buffer_free(flag);
    tile_buffer_free(x);
    tile_buffer_free(y);
}

/* Threads with a stream each share the device, the kernel and its module. */
static void *thread_main(void *arg)
{
    int32_t *out = arg;
    tile_stream *s = NULL;
    tile_kernel *k = NULL;
    tile_buffer *b = NULL;
    int32_t x[16] = {0};
    tile_status status = tile_stream_create(dev, &s);
    if (!status)
        status = tile_kernel_get(mod, "bump", NULL, &k);
    if (!status)
        status = tile_buffer_alloc(dev, sizeof x, &b);
    if (!status)
        status = tile_buffer_upload(b, 0, x, sizeof x, s);
    for (int i = 0; i < 200 && !status; i++)
        status =
            tile_launch(k, s, (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), 16)}, 1);
    if (!status)
        status = tile_buffer_download(b, 0, x, sizeof x, s);
    if (!status)
        status = tile_stream_synchronize(s);
    *out = status ? -1 : x[7];
    tile_buffer_free(b);
    tile_stream_free(s);
    return NULL;
}

static void threads(void)
{
    enum { N = 4 };
    pthread_t t[N];
    int32_t out[N] = {0};
    for (int i = 0; i < N; i++)
        CHECK_INT(pthread_create(&t[i], NULL, thread_main, &out[i]), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        CHECK_INT(out[i], 200);
    }
}

/* With checks on, ref and emu know what was written to memory of their own; on the others this is a
 * plain run. */
static void unwritten(const char *name)
{
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    tile_buffer *in = NULL, *out = NULL;
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    float x[8] = {0};
    options.check = 1;
    OK(tile_module_load_source(dev, "api.tile", source, sizeof source - 1, &options, &m));
    OK(tile_kernel_get(m, "scale", NULL, &k));
    OK(tile_buffer_alloc(dev, sizeof x, &in));
    OK(tile_buffer_alloc(dev, sizeof x, &out));
    const tile_arg args[3] = {tile_view_typed(TILE_F32, tile_buffer_ptr(in), 8),
                              tile_view_typed(TILE_F32, tile_buffer_ptr(out), 8), tile_f32(2)};
    OK(tile_buffer_fill(in, 0, 0, 28, NULL));
    OK(tile_launch(k, NULL, args, 3));
    tile_status status = tile_stream_synchronize(NULL);
    CHECK_INT(status,
              strcmp(name, "ref") == 0 || strncmp(name, "emu:", 4) == 0 ? TILE_FAILED : TILE_OK);
    if (status)
        TEXT_HAS("api.tile:5:");
    OK(tile_buffer_upload(in, 28, x, 4, NULL));
    OK(tile_launch(k, NULL, args, 3));
    OK(tile_stream_synchronize(NULL));
    OK(tile_launch(k, NULL, (tile_arg[]){args[1], args[0], args[2]},
                   3)); /* a kernel's output counts */
    OK(tile_stream_synchronize(NULL));
    tile_module_free(m);
    tile_buffer_free(in);
    tile_buffer_free(out);
}

/* A table of pointers into buffers that are no arguments of the launch: with --check that is a
 * failure, and nothing is stored. */
static void pointers_in_memory(bool checked)
{
    const float x[4] = {1, 2, 3, 4}, z[4] = {10, 20, 30, 40};
    float y[4] = {0}, w[4] = {0};
    tile_buffer *a = buffer(x, sizeof x), *b = buffer(z, sizeof z), *out = buffer(NULL, sizeof y),
                *other = buffer(w, sizeof w);
    uint64_t table[3] = {(uint64_t)(uintptr_t)tile_buffer_ptr(a),
                         (uint64_t)(uintptr_t)tile_buffer_ptr(b),
                         (uint64_t)(uintptr_t)tile_buffer_ptr(other)};
    tile_buffer *p = buffer(table, sizeof table);
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    tile_jit_options options = TILE_JIT_OPTIONS_INIT;
    options.check = checked;
    OK(tile_module_load_source(dev, "pointed.tile", pointed_source, sizeof pointed_source - 1,
                               &options, &m));
    OK(tile_kernel_get(m, "pointed", NULL, &k));
    tile_arg args[2] = {tile_view_typed(TILE_U64, tile_buffer_ptr(p), 3),
                        tile_view_typed(TILE_F32, tile_buffer_ptr(out), 4)};
    OK(tile_launch(k, NULL, args, 2));
    tile_status status = tile_stream_synchronize(NULL);
    CHECK_INT(status, checked ? TILE_FAILED : TILE_OK);
    if (checked)
        TEXT_HAS("pointed.tile:3:");
    fetch(out, y);
    fetch(other, w);
    for (int i = 0; i < 4 && !checked; i++)
        CHECK(y[i] == x[i] + 40 && w[i] == 2 * x[i]);
    for (int i = 0; i < 4 && checked; i++)
        CHECK(w[i] == 0);
    tile_module_free(m);
    tile_buffer_free(p);
    tile_buffer_free(other);
    tile_buffer_free(out);
    tile_buffer_free(b);
    tile_buffer_free(a);
}

static void synchronous(const char *name)
{
    tile_device *keep = dev;
    tile_module *kept = mod;
    const int32_t x[2] = {1, -1};
    setenv("TILE_SYNC", "1", 1);
    OK(tile_device_open(name, &dev));
    unsetenv("TILE_SYNC");
    mod = load(source);
    tile_buffer *b = buffer(x, sizeof x);
    CHECK_INT(tile_launch(get("fails"), NULL,
                          (tile_arg[]){tile_view_typed(TILE_I32, tile_buffer_ptr(b), 2)}, 1),
              TILE_FAILED);
    tile_buffer_free(b);
    tile_module_free(mod);
    tile_device_close(dev);
    dev = keep;
    mod = kept;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu";
    tile_stream *stream = NULL;
    if (tile_device_open(name, &dev) != TILE_OK) {
        fprintf(stderr, "%s\n", tile_last_error());
        return 1;
    }
    devices(name);
    memory();
    copies();
    mod = load(source);
    modules();
    launches();
    operands_of_each_launch();
    launches_like_the_last();
    launches_in_turns();
    grids();
    variants_and_types();
    messages(NULL);
    OK(tile_stream_create(dev, &stream));
    messages(stream);
    programs_in_order(NULL);
    programs_in_order(stream);
    meets(NULL);
    meets(stream);
    tile_stream_free(stream);
    long_queues();
    waiting();
    threads();
    unwritten(name);
    pointers_in_memory(false);
    if (strncmp(name, "cuda", 4) != 0 && strncmp(name, "hip", 3) != 0)
        pointers_in_memory(true);
    synchronous(name);
    tile_module_free(mod);
    tile_set_default_device(NULL);
    tile_device_close(dev);
    return unit_result();
}
