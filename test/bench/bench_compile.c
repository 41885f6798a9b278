/* Compile time of the examples: from the file to code that is loaded and ready to launch.
 *     bench_compile [ROUNDS] */
#include "bench.h"
#include <math.h>

enum { MOST_ROUNDS = 101, N = 8, COUNT = N * N };

/* What was compiled runs: of inputs that are ones, as are in[], each element of the result is
 * known. */
static float in[COUNT], out[COUNT];

static void run_vector_add(tile_kernel *k)
{
    TRY(tile_launch(k, NULL,
                    (tile_arg[]){tile_view(in, COUNT), tile_view(in, COUNT), tile_view(out, COUNT)},
                    3));
}

static void run_softmax(tile_kernel *k)
{
    TRY(tile_launch(k, NULL, (tile_arg[]){tile_view(in, N, N), tile_view(out, N, N)}, 2));
}

static void run_matmul(tile_kernel *k)
{
    TRY(tile_launch(
        k, NULL, (tile_arg[]){tile_view(in, N, N), tile_view(in, N, N), tile_view(out, N, N)}, 3));
}

static void run_layernorm(tile_kernel *k)
{
    TRY(tile_launch(
        k, NULL,
        (tile_arg[]){tile_view(in, N, N), tile_view(in, N), tile_view(in, N), tile_view(out, N, N)},
        4));
}

static void run_attention(tile_kernel *k)
{
    tile_arg all = tile_view(in, 1, N, N), result = tile_view(out, 1, N, N);
    TRY(tile_launch(k, NULL, (tile_arg[]){all, all, all, result, tile_f32(1)}, 5));
}

static const struct {
    const char *file, *kernel;
    tile_const consts[3];
    void (*run)(tile_kernel *kernel);
    float result;
} rows[] = {
    {"01_vector_add/vector_add", "vector_add", {{0}}, run_vector_add, 2},
    {"02_softmax/softmax", "softmax", {{"B", 4096, NULL}, {0}}, run_softmax, 1.0f / N},
    {"03_matmul/matmul", "matmul", {{"epilogue", 0, "relu"}, {0}}, run_matmul, N},
    {"04_layernorm/layernorm", "layernorm", {{"B", 4096, NULL}, {0}}, run_layernorm, 1},
    {"05_attention/attention",
     "attention",
     {{"BD", 64, NULL}, {"CAUSAL", 1, NULL}, {0}},
     run_attention,
     1},
};

static void check(size_t r, tile_kernel *kernel)
{
    for (int i = 0; i < COUNT; i++) in[i] = 1, out[i] = NAN;
    rows[r].run(kernel);
    TRY(tile_stream_synchronize(NULL));
    for (int i = 0; i < COUNT; i++)
        DEMAND(fabsf(out[i] - rows[r].result) < 1e-5f, "%s: element %d is %g, not %g",
               rows[r].kernel, i, (double)out[i], (double)rows[r].result);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 15;
    DEMAND(rounds >= 1 && rounds <= MOST_ROUNDS, "1 to %d rounds", MOST_ROUNDS);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double times[MOST_ROUNDS], first = 0;
        for (int i = -1; i < rounds; i++) {
            double t = now();
            tile_module *module = bench_module(rows[r].file);
            tile_kernel *kernel = bench_kernel(module, rows[r].kernel, rows[r].consts);
            t = now() - t;
            check(r, kernel);
            if (i < 0) first = t;
            else times[i] = t;
            tile_module_free(module);
        }
        printf("| compile %s | %.1f ms | first time %.1f ms | |\n", rows[r].kernel,
               1e3 * median(times, rounds), 1e3 * first);
    }
    return 0;
}
