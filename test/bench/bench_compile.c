/* Compile time of the examples: from the file to code that is loaded and ready to launch. */
#include "bench.h"

enum { ROUNDS = 15 };

static const struct {
    const char *file, *kernel;
    tile_const consts[3];
} rows[] = {
    {"01_vector_add/vector_add", "vector_add", {{0}}},
    {"02_softmax/softmax", "softmax", {{"B", 4096, NULL}, {0}}},
    {"03_matmul/matmul", "matmul", {{"epilogue", 0, "relu"}, {0}}},
    {"04_layernorm/layernorm", "layernorm", {{"B", 4096, NULL}, {0}}},
    {"05_attention/attention", "attention", {{"BD", 64, NULL}, {"CAUSAL", 1, NULL}, {0}}},
};

int main(void)
{
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        double times[ROUNDS], first = 0;
        for (int i = -1; i < ROUNDS; i++) {
            double t = now();
            tile_module *module = bench_module(rows[r].file);
            bench_kernel(module, rows[r].kernel, rows[r].consts);
            t = now() - t;
            if (i < 0) first = t;
            else times[i] = t;
            tile_module_free(module);
        }
        printf("| compile %s | %.1f ms | first time %.1f ms | |\n", rows[r].kernel, 1e3 * median(times, ROUNDS), 1e3 * first);
    }
    return 0;
}
