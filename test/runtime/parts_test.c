/* Grids in parts, which threads of the caller's run: kernels give the same bits as whole. argv[1]
 * is a device. */
#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/ok.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static const char source[] =
    "kernel scale(const f32 x[N], f32 y[N], f32 a, const int B = 64)\n"
    "    grid(cdiv(N, B))\n"
    "{\n"
    "    int i = pid(0) * B;\n"
    "    y[i +: B] = x[i +: B] * a;\n"
    "}\n"
    /* with scratch on cpu, and a grid of its own order */
    "kernel product(const f32 a[M, K], const f32 b[K, N], f32 c[M, N], const int B = 32)\n"
    "    grid(cdiv(M, B), cdiv(N, B), group = 3)\n"
    "{\n"
    "    int m = pid(0) * B, n = pid(1) * B;\n"
    "    tile<f32, B, B> acc = 0;\n"
    "    for (int k : range(0, K, B))\n"
    "        acc = dot(a[m +: B, k +: B], b[k +: B, n +: B], acc);\n"
    "    c[m +: B, n +: B] = sort(acc, 1);\n"
    "}\n"
    /* on cpu, rows that the program before has computed, too, are moved, not computed again */
    "kernel filter(const f32 x[N, N], f32 y[N, N])\n"
    "    grid(cdiv(N, 64), cdiv(N, 8))\n"
    "{\n"
    "    int j = pid(1) * 8, i = pid(0) * 64;\n"
    "    tile<f32, 20, 64> rows = -inf;\n"
    "    static for (int d : range(13))\n"
    "        rows = max(rows, load(x[j - 6 +: 20, i - 6 + d +: 64], border = edge));\n"
    "    tile<f32, 8, 64> all = -inf;\n"
    "    static for (int d : range(13)) all = max(all, extract(rows, d +: 8, 0 +: 64));\n"
    "    y[j +: 8, i +: 64] = all;\n"
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
    "kernel fails(const i32 x[N]) grid(N)\n"
    "{\n"
    "    assert(x[pid(0)] >= 0, \"negative\");\n"
    "}\n";

static tile_device *dev;
static tile_module *mod;

enum { M = 150, N = 70, K = 40, LENGTH = 1000, CHAIN = 300, SIDE = 203 };

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
    OK(tile_buffer_upload(b, 0, data, bytes, NULL));
    return b;
}

/* A kernel with arguments, of which the last array is what it writes. */
typedef struct work {
    tile_kernel *kernel;
    tile_arg args[4];
    size_t nargs;
    tile_buffer *in[2], *out;
    tile_buffer *flags; /* one of `in`: zero before a launch */
} work;

static float value(int i)
{
    return (float)(i * 37 % 101) / 8 - 6;
}

static work scaling(void)
{
    static float x[LENGTH];
    for (int i = 0; i < LENGTH; i++)
        x[i] = value(i);
    work w = {.kernel = get("scale"), .nargs = 3, .in = {buffer(x, sizeof x)}};
    w.out = buffer(x, sizeof x);
    w.args[0] = tile_buffer_view(w.in[0], TILE_F32, LENGTH);
    w.args[1] = tile_buffer_view(w.out, TILE_F32, LENGTH);
    w.args[2] = tile_f32(0.3f);
    return w;
}

static work product(void)
{
    static float a[M * K], b[K * N], c[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = value(i);
    for (int i = 0; i < K * N; i++)
        b[i] = value(i + 3);
    work w = {.kernel = get("product"),
              .nargs = 3,
              .in = {buffer(a, sizeof a), buffer(b, sizeof b)},
              .out = buffer(c, sizeof c)};
    w.args[0] = tile_buffer_view(w.in[0], TILE_F32, M, K);
    w.args[1] = tile_buffer_view(w.in[1], TILE_F32, K, N);
    w.args[2] = tile_buffer_view(w.out, TILE_F32, M, N);
    return w;
}

static work chain(void)
{
    static const int32_t zeros[CHAIN];
    work w = {.kernel = get("chain"),
              .nargs = 2,
              .in = {buffer(zeros, sizeof zeros)},
              .out = buffer(zeros, sizeof zeros)};
    w.flags = w.in[0];
    w.args[0] = tile_buffer_view(w.in[0], TILE_I32, CHAIN);
    w.args[1] = tile_buffer_view(w.out, TILE_I32, CHAIN);
    return w;
}

static float image[SIDE * SIDE];

static work filter(void)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        image[i] = value(i * i % 9973);
    work w = {.kernel = get("filter"), .nargs = 2, .in = {buffer(image, sizeof image)}};
    w.out = buffer(image, sizeof image);
    w.args[0] = tile_buffer_view(w.in[0], TILE_F32, SIDE, SIDE);
    w.args[1] = tile_buffer_view(w.out, TILE_F32, SIDE, SIDE);
    return w;
}

static void free_work(const work *w)
{
    tile_buffer_free(w->in[0]);
    tile_buffer_free(w->in[1]);
    tile_buffer_free(w->out);
}

/* What it wrote, to be freed. */
static char *result(const work *w)
{
    uint64_t bytes = tile_buffer_bytes(w->out);
    char *data = malloc(bytes);
    OK(tile_device_synchronize(dev));
    OK(tile_buffer_download(w->out, 0, data, bytes, NULL));
    return data;
}

static void clear(const work *w)
{
    OK(tile_buffer_fill(w->out, 0, 0, tile_buffer_bytes(w->out), NULL));
    if (w->flags)
        OK(tile_buffer_fill(w->flags, 0, 0, tile_buffer_bytes(w->flags), NULL));
}

/* ---- ways to launch all parts ---- */

static void one_after_another(const work *w, uint32_t parts)
{
    for (uint32_t i = 0; i < parts; i++)
        OK(tile_launch_part(w->kernel, w->args, w->nargs, i, parts));
}

/* A thread of the caller's, with a stream of its own or none. */
typedef struct mine {
    const work *w;
    uint32_t part, parts;
    tile_stream *stream;
    tile_status status;
} mine;

static void *run_mine(void *user)
{
    mine *m = user;
    const work *w = m->w;
    m->status = m->stream ? tile_launch(w->kernel, m->stream, w->args, w->nargs)
                          : tile_launch_part(w->kernel, w->args, w->nargs, m->part, m->parts);
    return NULL;
}

static void by_threads(const work *w, uint32_t parts, bool streams)
{
    enum { MOST = 7 };
    pthread_t threads[MOST];
    mine m[MOST];
    for (uint32_t i = 0; i < parts; i++) {
        m[i] = (mine){.w = w, .part = i, .parts = parts};
        if (streams)
            OK(tile_stream_create_part(dev, i, parts, &m[i].stream));
        CHECK_INT(pthread_create(&threads[i], NULL, run_mine, &m[i]), 0);
    }
    for (uint32_t i = 0; i < parts; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(m[i].status, TILE_OK);
    }
    OK(tile_device_synchronize(dev));
    for (uint32_t i = 0; i < parts; i++)
        tile_stream_free(m[i].stream);
}

static void check_parts(work w)
{
    static const uint32_t counts[] = {1, 2, 3, 7};
    OK(tile_launch(w.kernel, NULL, w.args, w.nargs));
    char *whole = result(&w);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int way = 0; way < 3; way++) {
            clear(&w);
            if (way == 0)
                one_after_another(&w, counts[i]);
            else
                by_threads(&w, counts[i], way == 2);
            char *parts = result(&w);
            CHECK(memcmp(whole, parts, tile_buffer_bytes(w.out)) == 0);
            free(parts);
        }
    free(whole);
    free_work(&w);
}

/* Each part writes its own programs, and no others, where the device divides the grid. */
static void shares(bool divides)
{
    enum { PARTS = 5, BLOCK = 64 };
    work w = scaling();
    for (uint32_t part = 0; part < PARTS; part++) {
        int written = 0, programs = (LENGTH + BLOCK - 1) / BLOCK;
        OK(tile_buffer_fill(w.out, 0, 0xff, tile_buffer_bytes(w.out), NULL));
        OK(tile_launch_part(w.kernel, w.args, w.nargs, part, PARTS));
        char *out = result(&w);
        for (int i = 0; i < programs; i++)
            written += memcmp(out + i * BLOCK * 4, "\xff\xff\xff\xff", 4) != 0;
        int share = programs / PARTS + ((int)part < programs % PARTS);
        CHECK_INT(written, divides ? share : part == 0 ? programs : 0);
        free(out);
    }
    free_work(&w);
}

static float largest_around(int j, int i)
{
    float most = -INFINITY;
    for (int dj = -6; dj <= 6; dj++)
        for (int di = -6; di <= 6; di++) {
            int row = j + dj < 0 ? 0 : j + dj >= SIDE ? SIDE - 1 : j + dj;
            int column = i + di < 0 ? 0 : i + di >= SIDE ? SIDE - 1 : i + di;
            most = fmaxf(most, image[row * SIDE + column]);
        }
    return most;
}

/* Nothing of one launch is kept for the next, whose data are others. */
static void other_data(void)
{
    work w = filter();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIDE * SIDE; i++)
            image[i] = value(i * (i + round) % 9973) * (float)(1 - round);
        OK(tile_buffer_upload(w.in[0], 0, image, sizeof image, NULL));
        /* The first program of part 1 comes behind the last one of part 0 of the round before. */
        for (uint32_t part = 2; part-- > 0;)
            OK(tile_launch_part(w.kernel, w.args, w.nargs, part, 2));
        char *out = result(&w);
        int wrong = 0;
        for (int j = 0; j < SIDE; j++)
            for (int i = 0; i < SIDE; i++)
                wrong += ((const float *)(const void *)out)[j * SIDE + i] != largest_around(j, i);
        CHECK_INT(wrong, 0);
        free(out);
    }
    free_work(&w);
}

static void failures(void)
{
    const int32_t x[4] = {1, 2, 3, -1};
    tile_stream *s = NULL;
    tile_buffer *b = buffer(x, sizeof x);
    const tile_arg arg = tile_buffer_view(b, TILE_I32, 4);
    tile_kernel *k = get("fails");
    OK(tile_stream_create_part(dev, 0, 1, &s));
    OK(tile_launch(k, s, &arg, 1));
    CHECK_INT(tile_stream_synchronize(s), TILE_FAILED);
    CHECK(strstr(tile_last_error(), "negative") != NULL);
    OK(tile_launch_part(k, &arg, 1, 0, 1));
    CHECK_INT(tile_stream_synchronize(NULL), TILE_FAILED);
    tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
    o.flags = TILE_LAUNCH_TOGETHER;
    CHECK_INT(tile_launch_with(k, s, &arg, 1, &o), TILE_BAD_ARGUMENT);
    tile_stream_free(s);
    CHECK_INT(tile_launch_part(k, &arg, 1, 0, 0), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_launch_part(k, &arg, 1, 3, 3), TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "part 3 of 3") != NULL);
    CHECK_INT(tile_launch_part(NULL, &arg, 1, 0, 1), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_stream_create_part(dev, 2, 2, &s), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_stream_create_part(dev, 0, 1, NULL), TILE_BAD_ARGUMENT);
    OK(tile_launch_part(k, &arg, 1, 3000000000u, 4000000000u)); /* fewer programs than parts */
    tile_buffer_free(b);
}

static void options(const char *name, bool has_pool)
{
    tile_device *d = NULL;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_device_options o = TILE_DEVICE_OPTIONS_INIT;
    o.threads = 3;
    OK(tile_device_open_with(name, &o, &d));
    OK(tile_device_get_info(d, &info));
    CHECK(strncmp(name, "cpu", 3) != 0 || info.processors == 3);
    tile_device_close(d);
    OK(tile_device_open_with(name, NULL, &d));
    tile_device_close(d);
    o.affinity = "compact";
    OK(tile_device_open_with(name, &o, &d));
    tile_device_close(d);
    if (!has_pool)
        return;
    o.affinity = "0-x";
    CHECK_INT(tile_device_open_with(name, &o, &d), TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "affinity is '0-x'") != NULL);
    o.affinity = NULL;
    o.threads = -1;
    CHECK_INT(tile_device_open_with(name, &o, &d), TILE_BAD_ARGUMENT);
    CHECK(strstr(tile_last_error(), "threads is -1") != NULL);
    o.struct_size = 1;
    CHECK_INT(tile_device_open_with(name, &o, &d), TILE_BAD_ARGUMENT);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu";
    bool divides = strncmp(name, "cpu", 3) == 0;
    if (tile_device_open(name, &dev) != TILE_OK) {
        fprintf(stderr, "%s\n", tile_last_error());
        return 1;
    }
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    o.debug = 1; /* asserts stay */
    OK(tile_set_default_device(dev));
    OK(tile_module_load_source(dev, "parts.tile", source, sizeof source - 1, &o, &mod));
    check_parts(scaling());
    check_parts(product());
    check_parts(chain());
    check_parts(filter());
    other_data();
    shares(divides);
    failures();
    options(name, divides || strncmp(name, "emu", 3) == 0);
    tile_module_free(mod);
    OK(tile_set_default_device(NULL));
    tile_device_close(dev);
    return unit_result();
}
