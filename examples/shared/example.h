/* example.h: what the examples share: time, errors, chance, f16, options; buffers that are freed
 * together, and kernels by a table. Functions are false when the device failed, unless they say
 * otherwise; tile_last_error() says why. */
#ifndef EXAMPLE_H
#define EXAMPLE_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tile_jit.h>
#include <time.h>
#include <unistd.h>

#define TRY(call) do { if (call) return fprintf(stderr, "%s\n", tile_last_error()), 1; } while (0)

static inline double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The greater of two errors; NaN is the greatest. */
static inline double worse(double a, double b) { return b >= 0 ? fmax(a, b) : INFINITY; }

#ifdef PROGRAM /* its name */
static inline bool fail(const char *what, const char *why)
{
    fprintf(stderr, PROGRAM ": %s%s%s\n", what, *what ? ": " : "", why);
    return false;
}
#endif

/* ---- numbers ---- */

/* Of numbers that f16 holds exactly and that are not subnormal there. */
static inline uint16_t to_f16(float x)
{
    union { float f; uint32_t u; } bits = {x};
    uint32_t exponent_mantissa = (bits.u >> 13 & 0x3ffff) - ((127 - 15) << 10);
    return x == 0 ? 0 : (uint16_t)((bits.u >> 16 & 0x8000) | exponent_mantissa);
}

static inline double from_f16(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -x : x;
}

/* Random numbers one after the other (xorshift): from 0 up to 1; the state is not 0. */
static inline double uniform(uint64_t *state)
{
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

static inline double between(uint64_t *state, double low, double high)
{
    return low + (high - low) * uniform(state);
}

static inline double normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(1 - uniform(state)));
    return radius * cos(6.283185307179586 * uniform(state));
}

/* Random numbers by a counter, the same whatever process asks (splitmix64; Steele, Lea and Flood
 * 2014). */
static inline uint64_t random_at(uint64_t seed, uint64_t i)
{
    uint64_t z = (seed + 1) * 0xD1342543DE82EF95u + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline double uniform_at(uint64_t seed, uint64_t i)
{
    return (double)(random_at(seed, i) >> 11) * 0x1p-53;
}

static inline double normal_at(uint64_t seed, uint64_t i)
{
    double u = 1 - uniform_at(seed, 2 * i), v = uniform_at(seed, 2 * i + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* ---- options ---- */

typedef enum OptionKind { IS_FLAG, IS_TEXT, IS_INT, IS_FLOAT, IS_SEED } OptionKind;

typedef struct Option {
    char letter;
    OptionKind kind;
    void *to; /* bool, const char *, int, float, uint64_t */
    double low, high; /* numbers: least and greatest */
} Option;

static inline bool option_set(const Option *o, char *value)
{
    char *end;
    if (o->kind == IS_FLAG) return *(bool *)o->to = true;
    if (o->kind == IS_TEXT) return *(const char **)o->to = value, true;
    double v = strtod(value, &end);
    if (end == value || *end || !(v >= o->low && v <= o->high)) return false;
    if (o->kind == IS_INT) *(int *)o->to = (int)v;
    if (o->kind == IS_FLOAT) *(float *)o->to = (float)v;
    if (o->kind == IS_SEED) *(uint64_t *)o->to = (uint64_t)v;
    return true;
}

/* What is behind them begins at argv[optind]. False: one is unknown, or has a wrong value. */
static inline bool options_read(int argc, char **argv, const Option *rows, size_t n)
{
    char letters[80] = "";
    for (size_t i = 0, k = 0; i < n; i++) {
        letters[k++] = rows[i].letter;
        if (rows[i].kind != IS_FLAG) letters[k++] = ':';
    }
    for (int c; (c = getopt(argc, argv, letters)) != -1;) {
        size_t i = 0;
        while (i < n && rows[i].letter != c) i++;
        if (i == n || !option_set(&rows[i], optarg)) return false;
    }
    return true;
}

/* ---- memory ---- */

/* Buffers of the default device that are freed together. */
typedef struct Buffers {
    tile_buffer *all[1024];
    int n;
} Buffers;

/* `count` elements of `size` bytes, all 0. */
static inline bool zeros(Buffers *b, tile_buffer **out, size_t count, size_t size)
{
    if (b->n == sizeof b->all / sizeof *b->all || tile_buffer_alloc(NULL, count * size, out))
        return false;
    b->all[b->n++] = *out;
    return !tile_buffer_fill(*out, 0, 0, count * size, NULL);
}

static inline void buffers_free(Buffers *b)
{
    while (b->n) tile_buffer_free(b->all[--b->n]);
}

/* ---- kernels ---- */

typedef struct KernelRow {
    const char *module, *name; /* module: a file, or one of the library */
    tile_const consts[8];
} KernelRow;

typedef struct Modules {
    tile_module *module[12];
    const char *name[12];
    int n;
} Modules;

/* Each module is loaded once. */
static inline tile_module *module_get(Modules *m, const char *name)
{
    int i = 0;
    while (i < m->n && strcmp(m->name[i], name)) i++;
    if (i < m->n) return m->module[i];
    if (i == sizeof m->name / sizeof *m->name ||
        tile_module_load_file(NULL, name, NULL, &m->module[i]))
        return NULL;
    m->name[m->n++] = name;
    return m->module[i];
}

static inline bool kernels_get(Modules *m, const KernelRow *rows, int n, tile_kernel **kernel)
{
    for (int i = 0; i < n; i++) {
        tile_module *module = module_get(m, rows[i].module);
        if (!module || tile_kernel_get(module, rows[i].name, rows[i].consts, &kernel[i]))
            return false;
    }
    return true;
}

/* Compiles them now, not at their first launches. */
static inline bool kernels_prepare(tile_kernel **kernel, int n)
{
    for (int i = 0; i < n; i++)
        if (tile_kernel_prepare(kernel[i])) return false;
    return true;
}

static inline void modules_free(Modules *m)
{
    while (m->n) tile_module_free(m->module[--m->n]);
}

/* True: the launch is under way. */
#define LAUNCH(kernel, ...) (!tile_launch(kernel, NULL, TILE_ARGS(__VA_ARGS__)))
#define RUN(owner, i, ...) LAUNCH((owner)->kernel[i], __VA_ARGS__)
#endif
