/* Compile time for GPUs: processor time from the source's text to PTX or hsaco, everything included but
 * the start of the process. The compiler has one thread, so on an idle machine that is the time it takes. */
#include "bench.h"
#include "codegen/include/tilec.h"

enum { ROUNDS = 11 };

static const struct {
    const char *file, *kernel;
    tilec_const consts[3];
    size_t nconsts;
} rows[] = {
    {"examples/01_vector_add/vector_add", "vector_add", {{0}}, 0},
    {"examples/02_softmax/softmax", "softmax", {{"B", "4096"}}, 1},
    {"examples/03_matmul/matmul", "matmul", {{"epilogue", "relu"}}, 1},
    {"examples/04_layernorm/layernorm", "layernorm", {{"B", "4096"}}, 1},
    {"examples/05_attention/attention", "attention", {{"BD", "64"}, {"CAUSAL", "1"}}, 2},
    {"test/bench/gemm", "gemm", {{0}}, 0},
};

static char *read_text(const char *path, size_t *out_size)
{
    FILE *f = fopen(path, "rb");
    char *text = malloc(1 << 20);
    if (!f || !text) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    *out_size = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

static void show(void *user, const char *rendered)
{
    (void)user;
    fputs(rendered, stderr);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds, and the size of what comes out. */
static double compile(size_t r, const char *target, const char *stage, const char *path, const char *text, size_t size,
                      size_t *out_size)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    o.target = target;
    o.emit = stage;
    o.kernel = rows[r].kernel;
    o.consts = rows[r].consts;
    o.nconsts = rows[r].nconsts;
    o.diagnostic = show;
    tilec_output *output;
    double t = cpu_now();
    tilec_status status = tilec_compile_source(path, text, size, &o, &output);
    t = cpu_now() - t;
    tilec_output_data(output, out_size);
    if (status)
        fprintf(stderr, "%s %s: %s\n", rows[r].kernel, target, output ? tilec_output_message(output) : "");
    tilec_output_free(output);
    return status ? -1 : t;
}

static void row(size_t r, const char *target, const char *stage)
{
    char path[512];
    size_t size, out = 0;
    double times[ROUNDS], first = 0;
    snprintf(path, sizeof path, "%s/%s.tile", ROOT, rows[r].file);
    char *text = read_text(path, &size);
    for (int i = -1; i < ROUNDS; i++) {
        double t = compile(r, target, stage, path, text, size, &out);
        if (i < 0) first = t;
        else times[i] = t;
        if (t < 0) {
            free(text);
            return;
        }
    }
    free(text);
    printf("| %s to %s | %.1f ms | first time %.1f ms | %.0f kB |\n", rows[r].kernel, target, 1e3 * median(times, ROUNDS),
           1e3 * first, (double)out / 1024);
}

int main(int argc, char **argv)
{
    (void)argv;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        row(r, "sm_80", "ptx");
        if (argc > 1) /* "amd": these, too */
            row(r, "gfx942", "hsaco");
    }
    return 0;
}
