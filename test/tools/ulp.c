/* ulp: how far std.math is from the truth, in units in the last place of the true result.
 *
 *     ulp [--device D] [--stride N] [--pairs N] [NAME...]
 *
 * Each function runs as a compiled kernel: f32 functions of one argument over every N-th bit pattern (default: over
 * all 2^32, half an hour), the others over N pseudo-random arguments (default 2^24) and all special values. The truth
 * is the C library's in double (for f64: in long double), which is good to far less than a hundredth of an f32's ulp.
 * Prints a table; exit status 1 if a bound of the language is exceeded or a special value is not as in Annex F. */
#include "runtime/include/tile_jit.h"
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, MAX_THREADS = 64 };

typedef struct Function {
    const char *name;
    double bound;
    double (*one)(double);
    double (*two)(double, double);
    long double (*one_f64)(long double);
    long double (*two_f64)(long double, long double);
} Function;

static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static const Function functions[] = {
    {"exp", 2, exp, 0, 0, 0},          {"exp2", 2, exp2, 0, 0, 0},     {"expm1", 2, expm1, 0, 0, 0},
    {"log", 2, log, 0, 0, 0},          {"log2", 2, log2, 0, 0, 0},     {"log10", 2, log10, 0, 0, 0},
    {"log1p", 2, log1p, 0, 0, 0},      {"sqrt", 0.5, sqrt, 0, 0, 0},   {"rsqrt", 2, rsqrt, 0, 0, 0},
    {"cbrt", 2, cbrt, 0, 0, 0},        {"sin", 2, sin, 0, 0, 0},       {"cos", 2, cos, 0, 0, 0},
    {"tan", 4, tan, 0, 0, 0},          {"asin", 4, asin, 0, 0, 0},     {"acos", 4, acos, 0, 0, 0},
    {"atan", 4, atan, 0, 0, 0},        {"atan2", 4, 0, atan2, 0, 0},   {"sinh", 4, sinh, 0, 0, 0},
    {"cosh", 4, cosh, 0, 0, 0},        {"tanh", 4, tanh, 0, 0, 0},     {"erf", 4, erf, 0, 0, 0},
    {"erfc", 4, erfc, 0, 0, 0},        {"pow", 4, 0, pow, 0, 0},       {"sigmoid", 4, sigmoid, 0, 0, 0},
    {"exp_f64", 4, 0, 0, expl, 0},     {"log_f64", 4, 0, 0, logl, 0},  {"sin_f64", 4, 0, 0, sinl, 0},
    {"cos_f64", 4, 0, 0, cosl, 0},     {"tanh_f64", 4, 0, 0, tanhl, 0}, {"sqrt_f64", 0.5, 0, 0, sqrtl, 0},
    {"pow_f64", 4, 0, 0, 0, powl},
};

typedef struct Worst {
    double error, x, y, got, want;
    unsigned long wrong; /* NaN where there should be none, a wrong sign, a wrong special value */
    double wrong_x, wrong_y;
} Worst;

typedef struct Work {
    const Function *f;
    const void *x, *y, *z; /* arguments and results: f32 or f64 */
    size_t from, to;
    Worst worst;
} Work;

static bool is_f64(const Function *f) { return f->one_f64 || f->two_f64; }
static bool is_two(const Function *f) { return f->two || f->two_f64; }
static double at(const Function *f, const void *p, size_t i)
{
    return is_f64(f) ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* Distance of `got` to `want` in ulp of a format with `digits` bits and exponents up to `top`; an infinity is the
 * power of two that follows the greatest number. */
static double distance(double got, long double want, int digits, int top)
{
    const long double huge = ldexpl(1, top);
    long double g = isinf(got) ? copysignl(huge, got) : (long double)got;
    long double w = fabsl(want) > huge ? copysignl(huge, want) : want;
    int e = 0;
    frexpl(w, &e);
    if (e < 3 - top || w == 0) e = 3 - top;
    if (e > top) e = top;
    return (double)(fabsl(g - w) / ldexpl(1, e - digits));
}

/* The same for f32, quickly: 2^32 calls take their time. */
static double distance_f32(double got, double want)
{
    const double huge = 0x1p128;
    double g = isinf(got) ? copysign(huge, got) : got, w = fabs(want) > huge ? copysign(huge, want) : want, scale;
    uint64_t bits;
    memcpy(&bits, &w, 8);
    int e = (int)(bits >> 52 & 2047) - 1022; /* |w| is in [2^(e - 1), 2^e) */
    e = e < -125 ? -125 : e > 128 ? 128 : e;
    bits = (uint64_t)(1023 + 24 - e) << 52;
    memcpy(&scale, &bits, 8);
    return fabs(g - w) * scale;
}

static void check(Work *w, size_t i)
{
    const Function *f = w->f;
    double x = at(f, w->x, i), y = is_two(f) ? at(f, w->y, i) : 0, got = at(f, w->z, i);
    long double want = f->one ? (long double)f->one(x) : f->two ? (long double)f->two(x, y)
                     : f->one_f64 ? f->one_f64(x) : f->two_f64(x, y);
    bool exact = isinf(x) || x == 0 || isinf(y); /* Annex F names these */
    double error = isnan(want) || isnan(got) ? 0
                 : is_f64(f) ? distance(got, want, 53, 1024) : distance_f32(got, (double)want);
    if (isnan(got) != isnan(want) || (!isnan(got) && !signbit(got) != !signbit(want)) || (exact && error > 1)) {
        if (!w->worst.wrong++) w->worst.wrong_x = x, w->worst.wrong_y = y;
    } else if (error > w->worst.error) {
        w->worst.error = error, w->worst.x = x, w->worst.y = y;
        w->worst.got = got, w->worst.want = (double)want;
    }
}

static void *check_part(void *work)
{
    Work *w = work;
    for (size_t i = w->from; i < w->to; i++) check(w, i);
    return NULL;
}

static void check_all(const Function *f, const void *x, const void *y, const void *z, size_t n, Worst *worst)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (size_t)cores;
    Work work[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    for (size_t t = 0; t < count; t++) {
        work[t] = (Work){f, x, y, z, n * t / count, n * (t + 1) / count, *worst};
        work[t].worst.wrong = 0;
        if (pthread_create(&thread[t], NULL, check_part, &work[t])) exit(3);
    }
    unsigned long wrong = worst->wrong;
    for (size_t t = 0; t < count; t++) {
        pthread_join(thread[t], NULL);
        wrong += work[t].worst.wrong;
        if (work[t].worst.wrong && !worst->wrong) {
            worst->wrong_x = work[t].worst.wrong_x, worst->wrong_y = work[t].worst.wrong_y, worst->wrong = 1;
        }
        if (work[t].worst.error > worst->error) {
            Worst keep = *worst;
            *worst = work[t].worst;
            worst->wrong = keep.wrong, worst->wrong_x = keep.wrong_x, worst->wrong_y = keep.wrong_y;
        }
    }
    worst->wrong = wrong;
}

/* ---- arguments ---- */

static uint64_t mix(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static const double specials[] = {
    0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127, -0x1.fffffep127,
    0x1.fffffep-1, 0x1.000002p0, -0x1.fffffep-1, -0x1.000002p0, 2, -2, 3, -3, 0.5, -0.5, 8388607, -8388607,
    16777215, 0x1p24, 4194303.5, -4194303.5, 75, -75, -149, 1e30, 0x1p-1074, 0x1.fffffffffffffp1023, 0x1p53, 0x1p53 - 1,
};
enum { SPECIALS = sizeof specials / sizeof *specials };

static double put(const Function *f, void *p, size_t i, double v)
{
    if (is_f64(f)) return ((double *)p)[i] = v;
    return ((float *)p)[i] = (float)v;
}

/* A number of any size, one near 1, or one of a few hundred */
static double any_number(const Function *f, uint64_t *state)
{
    uint64_t bits = mix(state), kind = mix(state);
    double near = 1 + ldexp((double)(int64_t)bits, -64 - (int)(kind >> 8 & 31)), wide;
    if (kind % 4 == 0) return near;
    if (kind % 4 == 1) return ldexp((double)(int64_t)bits, -(int)(kind >> 8 & 31) - 40);
    if (is_f64(f)) {
        memcpy(&wide, &bits, 8);
        return wide;
    }
    float narrow;
    memcpy(&narrow, &(uint32_t){(uint32_t)bits}, 4);
    return narrow;
}

static void fill(const Function *f, uint64_t first, uint64_t stride, size_t n, void *x, void *y)
{
    uint64_t state = first;
    for (size_t i = 0; i < n; i++) {
        uint64_t pattern = (first + i) * stride;
        if (f->one && pattern >> 32) {
            put(f, x, i, specials[(first + i) % SPECIALS]); /* behind the last pattern */
        } else if (f->one) {
            memcpy((float *)x + i, &(uint32_t){(uint32_t)pattern}, 4);
        } else if (first + i < SPECIALS * SPECIALS) {
            put(f, x, i, specials[(first + i) % SPECIALS]);
            put(f, y, i, specials[(first + i) / SPECIALS]);
        } else {
            double a = put(f, x, i, any_number(f, &state)), b = any_number(f, &state), l = log2(fabs(a));
            /* powers that are in range */
            if (!strncmp(f->name, "pow", 3) && mix(&state) % 2 && l != 0 && isfinite(l))
                b = ldexp((double)(int64_t)mix(&state), -63) * (is_f64(f) ? 1080 : 152) / l;
            put(f, y, i, b);
        }
    }
}

/* ---- running ---- */

static bool must(tile_status status)
{
    if (status) fprintf(stderr, "ulp: %s\n", tile_last_error());
    return !status;
}

static bool load(tile_device *device, const Function *f, tile_module **module, tile_kernel **kernel)
{
    char text[512], name[32];
    const char *type = is_f64(f) ? "f64" : "f32";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(f->name, "_"), f->name);
    int n = snprintf(text, sizeof text,
                     "kernel k(const %s x[N], const %s y[N], %s z[N]) grid(cdiv(N, 1024))\n"
                     "{\n    int i = pid(0) * 1024;\n    z[i +: 1024] = %s(x[i +: 1024]%s);\n}\n",
                     type, type, type, name, is_two(f) ? ", y[i +: 1024]" : "");
    return must(tile_module_load_source(device, f->name, text, (size_t)n, NULL, module)) &&
           must(tile_kernel_get(*module, "k", NULL, kernel));
}

static bool launch(tile_kernel *kernel, const Function *f, void *x, void *y, void *z, size_t n)
{
    tile_dtype d = is_f64(f) ? TILE_F64 : TILE_F32;
    tile_arg args[] = {tile_view_typed(d, x, (int64_t)n), tile_view_typed(d, y, (int64_t)n), tile_view_typed(d, z, (int64_t)n)};
    tile_stream *stream;
    return must(tile_launch(kernel, NULL, args, 3)) && must(tile_device_default_stream(NULL, &stream)) &&
           must(tile_stream_synchronize(stream));
}

static int report(const Function *f, const Worst *w)
{
    bool bad = w->wrong || !(w->error <= f->bound);
    printf("%-9s %6.3f ulp of %-3g at ", f->name, w->error, f->bound);
    printf(is_two(f) ? "(%.17g, %.17g)" : "%.17g", w->x, w->y);
    printf(": %.17g for %.17g%s\n", w->got, w->want, bad && !w->wrong ? "  TOO FAR" : "");
    if (w->wrong) printf("%-9s %lu wrong special values, first at (%.17g, %.17g)\n", f->name, w->wrong, w->wrong_x, w->wrong_y);
    fflush(stdout);
    return bad;
}

static int measure(tile_device *device, const Function *f, uint64_t stride, uint64_t pairs, void *x, void *y, void *z)
{
    tile_module *module = NULL;
    tile_kernel *kernel;
    Worst worst = {0};
    uint64_t total = f->one ? ((1ull << 32) + stride - 1) / stride + SPECIALS : pairs;
    bool ok = load(device, f, &module, &kernel);
    for (uint64_t i = 0; ok && i < total; i += CHUNK) {
        size_t n = total - i < CHUNK ? (size_t)(total - i) : CHUNK;
        fill(f, i, stride, n, x, y);
        memset(z, 0xAB, n * 8);
        ok = launch(kernel, f, x, y, z, n);
        if (ok) check_all(f, x, y, z, n, &worst);
    }
    tile_module_free(module);
    return ok ? report(f, &worst) : 1;
}

static bool wanted(const Function *f, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], f->name)) return true;
    return argc == 0;
}

int main(int argc, char **argv)
{
    const char *name = NULL;
    uint64_t stride = 1, pairs = 1 << 24;
    int i = 1, failed = 0;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        if (!strcmp(argv[i], "--device")) name = argv[i + 1];
        else if (!strcmp(argv[i], "--stride")) stride = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--pairs")) pairs = strtoull(argv[i + 1], NULL, 0);
        else return fprintf(stderr, "usage: ulp [--device D] [--stride N] [--pairs N] [NAME...]\n"), 2;
    }
    tile_device *device;
    if (!stride || !must(tile_device_open(name, &device)) || !must(tile_set_default_device(device))) return 3;
    void *x = malloc(CHUNK * 8), *y = malloc(CHUNK * 8), *z = malloc(CHUNK * 8);
    memset(y, 0, CHUNK * 8);
    for (const Function *f = functions; f < functions + sizeof functions / sizeof *functions; f++)
        if (wanted(f, argc - i, argv + i)) failed += measure(device, f, stride, pairs, x, y, z);
    free(x), free(y), free(z);
    tile_set_default_device(NULL);
    tile_device_close(device);
    return failed ? 1 : 0;
}
