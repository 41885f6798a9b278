/* Compile time for GPUs, from the source's text to PTX or hsaco, everything included but the start
 * of the process. The compiler works on threads of its own: the first figure is the processor time
 * of the whole process, which other load disturbs little; the second is the time on the clock.
 *     bench_gpu [amd] [ROUNDS] */
#include "bench.h"
#include "codegen/include/tilec.h"
#include <stdbool.h>
#include <string.h>

enum { MOST_ROUNDS = 101 };

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

/* Processor time of all threads of the process, in seconds. */
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define LEAST 1e-3 /* seconds: no machine compiles faster */

typedef struct Times {
    double processor, clock;
} Times;

/* Is it code of the kernel? */
static bool is_code(const char *data, size_t size, const char *stage, const char *kernel)
{
    static const char ELF[] = "\177ELF";
    char entry[128];
    snprintf(entry, sizeof entry, ".visible .entry %s", kernel);
    if (!strcmp(stage, "ptx"))
        return size > 0 && strstr(data, entry);
    return size > sizeof ELF && !memcmp(data, ELF, sizeof ELF - 1);
}

/* How long it took, and the size of what came out. */
static Times compile(size_t r, const char *target, const char *stage, const char *path,
                     const char *text, size_t size, size_t *out_size)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    o.target = target;
    o.emit = stage;
    o.kernel = rows[r].kernel;
    o.consts = rows[r].consts;
    o.nconsts = rows[r].nconsts;
    o.diagnostic = show;
    tilec_output *output;
    Times t = {cpu_now(), now()};
    tilec_status status = tilec_compile_source(path, text, size, &o, &output);
    t = (Times){cpu_now() - t.processor, now() - t.clock};
    const char *data = tilec_output_data(output, out_size);
    DEMAND(status == TILEC_OK, "%s %s: %s", rows[r].kernel, target,
           output ? tilec_output_message(output) : "");
    DEMAND(is_code(data, *out_size, stage, rows[r].kernel), "%s %s: %zu bytes that are no %s",
           rows[r].kernel, target, *out_size, stage);
    tilec_output_free(output);
    DEMAND(t.processor >= LEAST, "%s %s: %g s of processor time is not a compilation",
           rows[r].kernel, target, t.processor);
    return t;
}

static void row(size_t r, const char *target, const char *stage, int rounds)
{
    char path[512];
    size_t size, out = 0;
    double processor[MOST_ROUNDS], clock[MOST_ROUNDS];
    snprintf(path, sizeof path, "%s/%s.tile", ROOT, rows[r].file);
    char *text = read_text(path, &size);
    Times first = compile(r, target, stage, path, text, size, &out);
    for (int i = 0; i < rounds; i++) {
        Times t = compile(r, target, stage, path, text, size, &out);
        processor[i] = t.processor;
        clock[i] = t.clock;
    }
    free(text);
    printf("| %s to %s | %.1f ms of processor time | on the clock %.1f ms, the first time %.1f ms "
           "| %.0f kB |\n",
           rows[r].kernel, target, 1e3 * median(processor, rounds), 1e3 * median(clock, rounds),
           1e3 * first.clock, (double)out / 1024);
}

int main(int argc, char **argv)
{
    bool amd = false;
    int rounds = 11;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "amd")) amd = true;
        else rounds = atoi(argv[i]);
    DEMAND(rounds >= 1 && rounds <= MOST_ROUNDS, "1 to %d rounds", MOST_ROUNDS);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        row(r, "sm_80", "ptx", rounds);
        if (amd) row(r, "gfx942", "hsaco", rounds);
    }
    return 0;
}
