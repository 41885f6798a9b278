/* bench_levels LEVEL OTHER [ROUNDS]: functions of libtilekernels on two CPU levels (x86-64-v4,
 * x86-64-v4-zen4), taking turns: what LEVEL rows of stdlib/library/kernels.def are worth. Built
 * with both levels for everything: -DTILE_KERNELS_LEVELS="...", without LEVEL rows.
 *
 * One thread, the processor's time of a call in microseconds, the least of the rounds. */
#include "bench.h"
#include <string.h>
#include <tile_kernels.h>

enum { ARRAYS = 10, ELEMENTS = 1 << 22, MOST = 1 << 20 };

static unsigned char *arrays[ARRAYS];
#define A(i) ((void *)arrays[i])

typedef void Call(tile_kernels *library, tile_dtype type, const int64_t *n);

static void gemm(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    tile_transpose tb = n[3] ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE;
    TRY(tile_gemm(library, NULL, type, TILE_NO_TRANSPOSE, tb, n[0], n[1], n[2], 1, A(0), n[2], A(1),
                  n[3] ? n[2] : n[1], 0, A(2), n[1], NULL));
}

static void gemv(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    TRY(tile_gemv(library, NULL, type, n[2] ? TILE_TRANSPOSE : TILE_NO_TRANSPOSE, n[0], n[1], 1,
                  A(0), n[1], A(1), 1, 0, A(2), 1));
}

static void blocks(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    tile_gemm_blocks_options o = TILE_GEMM_BLOCKS_OPTIONS_INIT;
    o.round_a = n[4] != 0;
    TRY(tile_gemm_blocks(library, NULL, type, n[3] ? TILE_Q8_0 : TILE_Q4_0, n[0], n[1], n[2], A(0),
                         A(1), A(2), &o));
}

static void attention(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    tile_attention_options o = TILE_ATTENTION_OPTIONS_INIT;
    o.causal = n[4] != 0;
    o.lse = A(8);
    TRY(tile_attention(library, NULL, type, 1, n[0], n[0], n[1], n[2], n[3], A(0), A(1), A(2), A(3),
                       &o));
}

static void attention_backward(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    tile_attention_options o = TILE_ATTENTION_OPTIONS_INIT;
    o.causal = n[4] != 0;
    o.lse = A(8);
    TRY(tile_attention_backward(library, NULL, type, 1, n[0], n[0], n[1], n[2], n[3], A(0), A(1),
                                A(2), A(3), A(4), A(5), A(6), A(9), A(7), &o));
}

static void conv(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    tile_window_options o = TILE_WINDOW_OPTIONS_INIT;
    o.pad[0] = o.pad[1] = n[3] / 2;
    o.groups = n[4];
    TRY(tile_conv2d(library, NULL, type, 1, n[0], n[0], n[1], n[2], n[3], n[3], A(0), A(1), NULL,
                    A(2), &o));
}

static void softmax(tile_kernels *library, tile_dtype type, const int64_t *n)
{
    TRY(tile_softmax(library, NULL, type, n[0], n[1], A(0), n[1], A(2), n[1]));
}

static const struct row {
    const char *name;
    Call *call;
    tile_dtype type;
    int64_t n[5];
} rows[] = {
    {"gemm", gemm, TILE_I8, {512, 512, 512}},
    {"gemm", gemm, TILE_I8, {512, 512, 512, 1}},
    {"gemm", gemm, TILE_I8, {4, 1024, 1024, 1}},
    {"gemv", gemv, TILE_I8, {1024, 1024}},
    {"gemv", gemv, TILE_I8, {1024, 1024, 1}},
    {"gemm", gemm, TILE_F32, {512, 512, 512}},
    {"gemm", gemm, TILE_F16, {512, 512, 512}},
    {"gemm", gemm, TILE_BF16, {512, 512, 512}},
    {"gemm", gemm, TILE_BF16, {512, 512, 512, 1}},
    {"gemm", gemm, TILE_BF16, {4, 1024, 1024, 1}},
    {"gemv", gemv, TILE_BF16, {1024, 1024}},
    {"gemv", gemv, TILE_BF16, {1024, 1024, 1}},
    {"gemv", gemv, TILE_F16, {1024, 1024}},
    {"q4_0", blocks, TILE_F32, {64, 1024, 1024, 0, 1}},
    {"q4_0", blocks, TILE_F32, {1, 1024, 1024, 0, 1}},
    {"q4_0", blocks, TILE_BF16, {64, 1024, 1024, 0, 1}},
    {"q8_0", blocks, TILE_F32, {64, 1024, 1024, 1, 1}},
    {"q8_0", blocks, TILE_F32, {64, 1024, 1024, 1}},
    {"q8_0", blocks, TILE_BF16, {64, 1024, 1024, 1}},
    {"attention", attention, TILE_BF16, {4, 256, 256, 64}},
    {"attention", attention, TILE_BF16, {4, 256, 256, 128, 1}},
    {"attention", attention, TILE_BF16, {4, 1, 1024, 128}},
    {"attention_backward", attention_backward, TILE_BF16, {4, 256, 256, 64}},
    {"conv2d", conv, TILE_BF16, {28, 64, 64, 3, 1}},
    {"conv2d", conv, TILE_BF16, {28, 64, 64, 1, 1}},
    {"conv2d", conv, TILE_BF16, {56, 3, 64, 7, 1}},
    {"conv2d", conv, TILE_BF16, {28, 64, 64, 3, 64}},
    {"conv2d", conv, TILE_BF16, {28, 64, 64, 3, 16}},
    {"softmax", softmax, TILE_BF16, {256, 1000}},
};

static tile_kernels *open_library(const char *level)
{
    char name[64];
    tile_device *device;
    tile_kernels *library;
    tile_device_options o = TILE_DEVICE_OPTIONS_INIT;
    o.threads = 1;
    snprintf(name, sizeof name, "cpu:%s", level);
    TRY(tile_device_open_with(name, &o, &device));
    TRY(tile_kernels_open(device, &library));
    return library;
}

static double time_of(tile_kernels *library, const struct row *r)
{
    const clock_t start = clock();
    clock_t end;
    int calls = 0;
    do {
        r->call(library, r->type, r->n);
        calls++;
        end = clock();
    } while (end - start < CLOCKS_PER_SEC / 100);
    return (double)(end - start) * (1e6 / CLOCKS_PER_SEC) / calls;
}

int main(int argc, char **argv)
{
    DEMAND(argc >= 3, "usage: bench_levels LEVEL OTHER [ROUNDS]");
    const int rounds = argc > 3 ? atoi(argv[3]) : 7;
    tile_kernels *libraries[] = {open_library(argv[1]), open_library(argv[2])};
    static const char *const TYPES[] = {
        [TILE_F32] = "f32", [TILE_F16] = "f16", [TILE_BF16] = "bf16", [TILE_I8] = "i8"};
    for (int i = 0; i < ARRAYS; i++) {
        arrays[i] = aligned_alloc(64, 4 * ELEMENTS);
        DEMAND(arrays[i], "out of memory");
        for (size_t j = 0; j < 4 * ELEMENTS; j++) /* small numbers of every type */
            arrays[i][j] = (unsigned char)(j % 4 == 3 || j % 2 ? 0x3C : j % 7);
    }
    printf("| function | type | sizes | %s, us | %s, us | ratio |\n| --- | --- | --- | --- | --- | "
           "--- |\n",
           argv[1], argv[2]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        double best[2] = {1e30, 1e30};
        for (int round = 0; round < rounds; round++)
            for (int k = 0; k < 2; k++) {
                const double t = time_of(libraries[k], r);
                best[k] = t < best[k] ? t : best[k];
            }
        printf("| %s | %s | ", r->name, TYPES[r->type]);
        for (int k = 0; k < 5; k++)
            printf("%s%lld", k ? ", " : "", (long long)r->n[k]);
        printf(" | %.1f | %.1f | %.2f |\n", best[0], best[1], best[0] / best[1]);
        fflush(stdout);
    }
    return 0;
}
