/* ulp: how far std.math and std.fast are from the truth, in units in the last place of the true
 * result.
 *
 *     ulp [--device D] [--types f32,f16,bf16,f64] [--stride N] [--pairs N] [NAME...]
 *
 * Each function runs as a compiled kernel on each of the types (default: all): f32 functions of one
 * argument over every N-th bit pattern (default: over all 2^32, half an hour), f16 and bf16 ones
 * over all 2^16, the others over N pseudo-random pairs (default 2^24) and all special values. The
 * truth is the C library's in double (for f64: in long double), which is good to far less than a
 * hundredth of an f32's ulp. Prints a line for each; exit status 1 if a bound is exceeded or a
 * special value is not as in Annex F. ulp_table.py makes the table of stdlib/README.md of it. */
#include "runtime/include/tile_jit.h"
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 1 << 20, MAX_THREADS = 64 };

/* digits of the significand with the hidden one; the least power of two above all numbers */
typedef struct Format {
    const char *name;
    tile_dtype dtype;
    int digits, top;
    size_t size;
} Format;

static const Format formats[] = {{"f32", TILE_F32, 24, 128, 4},
                                 {"f16", TILE_F16, 11, 16, 2},
                                 {"bf16", TILE_BF16, 8, 128, 2},
                                 {"f64", TILE_F64, 53, 1024, 8}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* The bound in f32 (or f64) is `bound` + slope abs(x) ulp; errors below `floor` do not count. Where
 * `absolute` is set, errors are counted in units of it, not in ulp; where `greater` is, in ulp of
 * the greater argument, if they are more than those of the result. */
typedef struct Function {
    const char *name;
    double bound;
    double (*one)(double);
    double (*two)(double, double);
    long double (*one_f64)(long double);
    long double (*two_f64)(long double, long double);
    double slope, floor, absolute;
    bool greater;
} Function;

static double rsqrt(double x) { return 1 / sqrt(x); }
static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static long double logaddexpl(long double x, long double y)
{
    long double most = x > y ? x : y;
    return x == y && isinf(x) ? x : most + log1pl(expl(-fabsl(x - y)));
}
static double logaddexp(double x, double y) { return (double)logaddexpl(x, y); }

#define ONE(f, ulp) {.name = #f, .bound = ulp, .one = f}
#define TWO(f, ulp) {.name = #f, .bound = ulp, .two = f}
/* clang-format off */
static const Function functions[] = {
    ONE(exp, 2),   ONE(exp2, 2),  ONE(expm1, 2), ONE(log, 2),   ONE(log2, 2), ONE(log10, 2),
    ONE(log1p, 2), ONE(sqrt, 0.5), ONE(rsqrt, 2),
    ONE(cbrt, 2),  ONE(sin, 2),   ONE(cos, 2),   ONE(tan, 4),   ONE(asin, 4), ONE(acos, 4),
    ONE(atan, 4),  TWO(atan2, 4), ONE(sinh, 4),  ONE(cosh, 4),  ONE(tanh, 4), ONE(erf, 4),
    ONE(erfc, 4),  TWO(pow, 4),   ONE(sigmoid, 4),
    {.name = "logaddexp", .bound = 4, .two = logaddexp, .greater = true},
    {.name = "fast.exp", .bound = 2, .one = exp, .slope = 1.2},
    {.name = "fast.sigmoid", .bound = 4, .one = sigmoid, .slope = 1.2, .floor = 0x1p-127},
    {.name = "fast.tanh", .bound = 4, .one = tanh, .absolute = 0x1p-24},
    {.name = "exp_f64", .bound = 4, .one_f64 = expl},
    {.name = "log_f64", .bound = 4, .one_f64 = logl},
    {.name = "sin_f64", .bound = 4, .one_f64 = sinl},
    {.name = "cos_f64", .bound = 4, .one_f64 = cosl},
    {.name = "tanh_f64", .bound = 4, .one_f64 = tanhl},
    {.name = "sqrt_f64", .bound = 0.5, .one_f64 = sqrtl},
    {.name = "pow_f64", .bound = 4, .two_f64 = powl},
    {.name = "logaddexp_f64", .bound = 4, .two_f64 = logaddexpl, .greater = true},
};
/* clang-format on */

typedef struct Worst {
    double error, x, y, got, want;
    unsigned long far;   /* errors beyond the bound */
    unsigned long wrong; /* NaN where there should be none, a wrong sign, a wrong special value */
    double wrong_x, wrong_y;
} Worst;

/* One function on one type */
typedef struct Job {
    const Function *f;
    const Format *t;
    void *x, *y, *z; /* arguments and results, of that type */
} Job;

typedef struct Work {
    const Job *job;
    size_t from, to;
    Worst worst;
} Work;

static bool is_f64(const Function *f) { return f->one_f64 || f->two_f64; }
static bool is_two(const Function *f) { return f->two || f->two_f64; }
static bool is_narrow(const Format *t) { return t->size == 2; }

static double from_16_bits(const Format *t, uint16_t v)
{
    int fraction = t->digits - 1, e = (v & 0x7FFF) >> fraction, all = 0x7FFF >> fraction;
    int m = v & ((1 << fraction) - 1);
    double magnitude =
        e == all ? (m ? NAN : INFINITY)
                 : ldexp(e ? m + (1 << fraction) : m, (e ? e : 1) + 2 - t->top - t->digits);
    return v & 0x8000 ? -magnitude : magnitude;
}

static double at(const Format *t, const void *p, size_t i)
{
    if (is_narrow(t)) return from_16_bits(t, ((const uint16_t *)p)[i]);
    return t->size == 8 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* Distance of `got` to `want` in ulp of a format with `digits` bits and exponents up to `top`; an
 * infinity is the power of two that follows the greatest number. */
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
    double g = isinf(got) ? copysign(huge, got) : got,
           w = fabs(want) > huge ? copysign(huge, want) : want, scale;
    uint64_t bits;
    memcpy(&bits, &w, 8);
    int e = (int)(bits >> 52 & 2047) - 1022; /* |w| is in [2^(e - 1), 2^e) */
    e = e < -125 ? -125 : e > 128 ? 128 : e;
    bits = (uint64_t)(1023 + 24 - e) << 52;
    memcpy(&scale, &bits, 8);
    return fabs(g - w) * scale;
}

static long double truth(const Function *f, double x, double y)
{
    return f->one       ? (long double)f->one(x)
           : f->two     ? (long double)f->two(x, y)
           : f->one_f64 ? f->one_f64(x)
                        : f->two_f64(x, y);
}

/* One unit in the last place of a number of the type. */
static double unit_of(const Job *j, double x)
{
    bool narrow = is_narrow(j->t);
    int digits = narrow ? 24 : j->t->digits, top = narrow ? 128 : j->t->top, e = 0;
    frexp(x, &e);
    return ldexp(1, (x == 0 || e < 3 - top ? 3 - top : e) - digits);
}

static double error_of(const Job *j, double got, long double want)
{
    if (isnan(got) || isnan(want) || (j->f->floor != 0 && fabs(got - (double)want) <= j->f->floor))
        return 0;
    if (j->f->absolute != 0) return (double)(fabsl(got - want) / j->f->absolute);
    if (j->t->dtype == TILE_F32) return distance_f32(got, (double)want);
    return distance(got, want, j->t->digits, j->t->top);
}

/* What may be: 16-bit types go through f32 and round once more; an error of one there is `units`
 * ulp. */
static double allowed(const Job *j, double x, long double want, double units)
{
    double in_f32 = j->f->bound + (j->f->slope != 0 ? j->f->slope * fabs(x) : 0);
    in_f32 *= is_narrow(j->t) ? units : 1;
    if (!is_narrow(j->t)) return in_f32;
    if (j->f->absolute == 0) return 0.5 + ldexp(in_f32, j->t->digits - 24);
    /* half an ulp in units of `absolute` */
    return in_f32 + 0.5 *
                        ldexp(1, (int)fmax(ilogb((double)want), 2 - j->t->top) - j->t->digits + 1) /
                        j->f->absolute;
}

static void check(Work *w, size_t i)
{
    const Job *j = w->job;
    double x = at(j->t, j->x, i), y = is_two(j->f) ? at(j->t, j->y, i) : 0, got = at(j->t, j->z, i);
    long double want = truth(j->f, x, y);
    bool exact = isinf(x) || x == 0 || isinf(y); /* Annex F names these */
    double error = error_of(j, got, want), greater = fmax(x, y);
    bool signs_differ = !isnan(got) && !signbit(got) != !signbit(want);
    double units = 1;
    if (j->f->greater && isfinite(greater)) {
        units = fmax(1, unit_of(j, greater) / unit_of(j, (double)want));
        error /= is_narrow(j->t) ? 1 : units;
        exact = signs_differ = false;
    }
    if (isnan(got) != isnan(want) || signs_differ || (exact && error > 1)) {
        if (!w->worst.wrong++) w->worst.wrong_x = x, w->worst.wrong_y = y;
        return;
    }
    w->worst.far += error > allowed(j, x, want, units);
    if (error > w->worst.error) {
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

/* What one thread found, added to what is known */
static void add(Worst *all, const Worst *part)
{
    unsigned long far = all->far + part->far, wrong = all->wrong + part->wrong;
    double x = all->wrong ? all->wrong_x : part->wrong_x,
           y = all->wrong ? all->wrong_y : part->wrong_y;
    if (part->error > all->error) *all = *part;
    all->far = far, all->wrong = wrong, all->wrong_x = x, all->wrong_y = y;
}

static void check_all(const Job *job, size_t n, Worst *worst)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (size_t)cores;
    Work work[MAX_THREADS];
    pthread_t thread[MAX_THREADS];
    const Worst none = {0};
    for (size_t t = 0; t < count; t++) {
        work[t] = (Work){job, n * t / count, n * (t + 1) / count, none};
        if (pthread_create(&thread[t], NULL, check_part, &work[t])) exit(3);
    }
    for (size_t t = 0; t < count; t++) {
        pthread_join(thread[t], NULL);
        add(worst, &work[t].worst);
    }
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
    0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffep127,
    -0x1.fffffep127, 0x1.fffffep-1, 0x1.000002p0, -0x1.fffffep-1, -0x1.000002p0, 2, -2, 3, -3, 0.5,
    -0.5, 8388607, -8388607, 16777215, 0x1p24, 4194303.5, -4194303.5, 75, -75, -149, 1e30,
    0x1p-1074, 0x1.fffffffffffffp1023, 0x1p53, 0x1p53 - 1};
enum { SPECIALS = sizeof specials / sizeof *specials };

static double put(const Format *t, void *p, size_t i, double v)
{
    if (t->size == 8) return ((double *)p)[i] = v;
    return ((float *)p)[i] = (float)v;
}

/* A number of any size, one near 1, or one of a few hundred */
static double any_number(const Format *t, uint64_t *state)
{
    uint64_t bits = mix(state), kind = mix(state);
    double near = 1 + ldexp((double)(int64_t)bits, -64 - (int)(kind >> 8 & 31)), wide;
    if (kind % 4 == 0) return near;
    if (kind % 4 == 1) return ldexp((double)(int64_t)bits, -(int)(kind >> 8 & 31) - 40);
    if (t->size == 8) {
        memcpy(&wide, &bits, 8);
        return wide;
    }
    float narrow;
    memcpy(&narrow, &(uint32_t){(uint32_t)bits}, 4);
    return narrow;
}

/* Every pattern of x in turn, y any pattern, or one within four powers of two of 1 */
static void fill_16_bits(const Job *j, uint64_t first, size_t n)
{
    uint64_t state = first;
    uint16_t *x = j->x, *y = j->y, one = (uint16_t)((j->t->top - 1) << (j->t->digits - 1));
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = mix(&state);
        unsigned near =
            one + (unsigned)(bits >> 16) % (8u << (j->t->digits - 1)) - (4u << (j->t->digits - 1));
        x[i] = (uint16_t)(first + i);
        y[i] = (uint16_t)(bits >> 48 & 1 ? bits : near | (bits & 0x8000));
    }
}

static void fill(const Job *j, uint64_t first, uint64_t stride, size_t n)
{
    const Function *f = j->f;
    uint64_t state = first;
    for (size_t i = 0; i < n; i++) {
        uint64_t pattern = (first + i) * stride;
        if (f->one && pattern >> 32) {
            put(j->t, j->x, i, specials[(first + i) % SPECIALS]); /* behind the last pattern */
        } else if (f->one) {
            memcpy((float *)j->x + i, &(uint32_t){(uint32_t)pattern}, 4);
        } else if (first + i < SPECIALS * SPECIALS) {
            put(j->t, j->x, i, specials[(first + i) % SPECIALS]);
            put(j->t, j->y, i, specials[(first + i) / SPECIALS]);
        } else {
            double a = put(j->t, j->x, i, any_number(j->t, &state)), b = any_number(j->t, &state),
                   l = log2(fabs(a));
            /* powers that are in range */
            if (!strncmp(f->name, "pow", 3) && mix(&state) % 2 && l != 0 && isfinite(l))
                b = ldexp((double)(int64_t)mix(&state), -63) * (is_f64(f) ? 1080 : 152) / l;
            if (f->greater && mix(&state) % 2) { /* near to each other; or both nearly cancel */
                bool cancel = mix(&state) % 2;
                double d = ldexp((double)(int64_t)mix(&state), -58);
                if (cancel) a = put(j->t, j->x, i, -fabs(d) / 16 - 1e-3);
                double other = log(-expm1(a)) * (1 + ldexp((double)(int64_t)mix(&state), -69));
                b = cancel ? other : a + d;
            }
            put(j->t, j->y, i, b);
        }
    }
}

/* ---- running ---- */

static bool must(tile_status status)
{
    if (status) fprintf(stderr, "ulp: %s\n", tile_last_error());
    return !status;
}

static bool load(tile_device *device, const Job *j, tile_module **module, tile_kernel **kernel)
{
    char text[512], name[32];
    const char *type = j->t->name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(j->f->name, "_"), j->f->name);
    int n = snprintf(text, sizeof text,
                     "kernel k(const %s x[N], const %s y[N], %s z[N]) grid(cdiv(N, 1024))\n"
                     "{\n    int i = pid(0) * 1024;\n    z[i +: 1024] = %s(x[i +: 1024]%s);\n}\n",
                     type, type, type, name, is_two(j->f) ? ", y[i +: 1024]" : "");
    return must(tile_module_load_source(device, j->f->name, text, (size_t)n, NULL, module)) &&
           must(tile_kernel_get(*module, "k", NULL, kernel));
}

static bool launch(tile_kernel *kernel, const Job *j, size_t n)
{
    int64_t extent = (int64_t)n;
    tile_arg args[] = {tile_view_typed(j->t->dtype, j->x, extent),
                       tile_view_typed(j->t->dtype, j->y, extent),
                       tile_view_typed(j->t->dtype, j->z, extent)};
    tile_stream *stream;
    return must(tile_launch(kernel, NULL, args, 3)) &&
           must(tile_device_default_stream(NULL, &stream)) && must(tile_stream_synchronize(stream));
}

/* NAME TYPE ERROR ulp of BOUND at X: GOT for WANT */
static int report(const Job *j, const Worst *w)
{
    bool bad = w->wrong || w->far;
    printf("%-12s %-4s %9.6f %s of %g", j->f->name, j->t->name, w->error,
           j->f->absolute != 0 ? "u" : "ulp", j->f->bound);
    if (j->f->slope != 0) printf(" + %g abs(x)", j->f->slope);
    printf(is_two(j->f) ? " at (%.17g, %.17g)" : " at %.17g", w->x, w->y);
    printf(": %.17g for %.17g\n", w->got, w->want);
    if (w->far) printf("%-12s %-4s TOO FAR: %lu\n", j->f->name, j->t->name, w->far);
    if (w->wrong)
        printf("%-12s %-4s %lu wrong special values, first at (%.17g, %.17g)\n", j->f->name,
               j->t->name, w->wrong, w->wrong_x, w->wrong_y);
    fflush(stdout);
    return bad;
}

/* How many arguments: all patterns and the special values, or pairs */
static uint64_t arguments(const Job *j, uint64_t stride, uint64_t pairs)
{
    if (is_narrow(j->t)) return is_two(j->f) && pairs > 1 << 16 ? pairs : 1 << 16;
    return j->f->one ? ((1ull << 32) + stride - 1) / stride + SPECIALS : pairs;
}

static int measure(tile_device *device, const Job *j, uint64_t stride, uint64_t pairs)
{
    tile_module *module = NULL;
    tile_kernel *kernel;
    Worst worst = {0};
    uint64_t total = arguments(j, stride, pairs);
    bool ok = load(device, j, &module, &kernel);
    for (uint64_t i = 0; ok && i < total; i += CHUNK) {
        size_t n = total - i < CHUNK ? (size_t)(total - i) : CHUNK;
        if (is_narrow(j->t)) fill_16_bits(j, i, n);
        else fill(j, i, stride, n);
        memset(j->z, 0xAB, n * 8);
        ok = launch(kernel, j, n);
        if (ok) check_all(j, n, &worst);
    }
    tile_module_free(module);
    return ok ? report(j, &worst) : 1;
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (!strcmp(argv[i], name)) return true;
    return argc == 0;
}

/* Is the word in the list of words with commas? */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (!strncmp(p, word, n) && (!p[n] || p[n] == ',')) return true;
    return false;
}

static int measure_all(tile_device *device, const char *types, uint64_t stride, uint64_t pairs,
                       int argc, char **argv)
{
    int failed = 0;
    void *x = malloc(CHUNK * 8), *y = malloc(CHUNK * 8), *z = malloc(CHUNK * 8);
    if (!x || !y || !z) exit(3);
    memset(y, 0, CHUNK * 8);
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        for (const Format *t = formats; t < formats + FORMATS; t++) {
            const Job j = {&functions[k], t, x, y, z};
            if (wanted(j.f->name, argc, argv) && listed(types, t->name) &&
                is_f64(j.f) == (t->dtype == TILE_F64))
                failed += measure(device, &j, stride, pairs);
        }
    free(x), free(y), free(z);
    return failed;
}

int main(int argc, char **argv)
{
    const char *name = NULL, *types = "f32,f16,bf16,f64";
    uint64_t stride = 1, pairs = 1 << 24;
    int i = 1;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        if (!strcmp(argv[i], "--device")) name = argv[i + 1];
        else if (!strcmp(argv[i], "--types")) types = argv[i + 1];
        else if (!strcmp(argv[i], "--stride")) stride = strtoull(argv[i + 1], NULL, 0);
        else if (!strcmp(argv[i], "--pairs")) pairs = strtoull(argv[i + 1], NULL, 0);
        else
            return fprintf(stderr, "usage: ulp [--device D] [--types T,...] [--stride N] [--pairs "
                                   "N] [NAME...]\n"),
                   2;
    }
    tile_device *device;
    if (!stride || !must(tile_device_open(name, &device)) || !must(tile_set_default_device(device)))
        return 3;
    int failed = measure_all(device, types, stride, pairs, argc - i, argv + i);
    tile_set_default_device(NULL);
    tile_device_close(device);
    return failed ? 1 : 0;
}
