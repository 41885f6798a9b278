/* The limits of the machine: multiply-adds in registers, by type, and bytes read and written.
 * Compiled with -O3 -march=native -ffast-math -fopenmp. */
#include "contender.h"
#include <omp.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* ---- multiply-adds: each thread makes arg[0] rounds of CHAINS independent vectors of BYTES bytes.
 * The result is how many operations a round has. Two more registers hold the factors. ---- */

#ifdef __AVX512F__
enum { BYTES = 64, CHAINS = 24 };
#elif defined __AVX__
enum { BYTES = 32, CHAINS = 12 };
#elif defined __aarch64__
enum { BYTES = 16, CHAINS = 24 };
#else
enum { BYTES = 16, CHAINS = 12 };
#endif
typedef float f32s __attribute__((vector_size(BYTES)));

/* Nothing is known of v, which is in a register. */
#ifdef __aarch64__
#define KEEP(v) __asm__ volatile("" : "+w"(v))
#elif defined __AVX512F__
#define KEEP(v) __asm__ volatile("" : "+v"(v))
#else
#define KEEP(v) __asm__ volatile("" : "+x"(v))
#endif

/* Each chain is a variable of its own: compilers keep an array of them in memory. */
// clang-format off
#define TWELVE(X, v) X(v##0) X(v##1) X(v##2) X(v##3) X(v##4) X(v##5) \
                     X(v##6) X(v##7) X(v##8) X(v##9) X(v##a) X(v##b)
// clang-format on
#if defined __AVX512F__ || defined __aarch64__
#define EACH_CHAIN(X) TWELVE(X, v) TWELVE(X, w)
#else
#define EACH_CHAIN(X) TWELVE(X, v)
#endif
#define START(v)                                                                                   \
    vector v = {0};                                                                                \
    KEEP(v);
#define STEP(v)                                                                                    \
    v = multiply_add(v, a, b);                                                                     \
    KEEP(v);

/* run_NAME: rounds of FUNCTION, a multiply-add of vectors of TYPE. */
#define ROUNDS(NAME, TYPE, FUNCTION)                                                               \
    static void run_##NAME(void)                                                                   \
    {                                                                                              \
        typedef TYPE vector;                                                                       \
        _Pragma("omp parallel")                                                                    \
        {                                                                                          \
            vector (*const multiply_add)(vector, vector, vector) = FUNCTION;                       \
            vector a = {0}, b = {0};                                                               \
            KEEP(a);                                                                               \
            KEEP(b);                                                                               \
            EACH_CHAIN(START)                                                                      \
            for (long k = arg[0]; k > 0; k--) {                                                    \
                EACH_CHAIN(STEP)                                                                   \
            }                                                                                      \
        }                                                                                          \
    }

static bool rounds_of(int operations)
{
    result(1)[0] = (float)(operations * CHAINS);
    return true;
}

static inline f32s multiply_add_f32(f32s v, f32s a, f32s b)
{
    return v * a + b;
}
ROUNDS(peak_f32, f32s, multiply_add_f32)
static bool prepare_peak_f32(void)
{
    return rounds_of(2 * BYTES / 4);
}

/* bf16 in f32: two to a lane where there is such an instruction, else widened. */
#ifdef __AVX512BF16__
static inline __m512 multiply_add_bf16(__m512 v, __m512 a, __m512 b)
{
    return _mm512_dpbf16_ps(v, (__m512bh)a, (__m512bh)b);
}
ROUNDS(peak_bf16, __m512, multiply_add_bf16)
static bool prepare_peak_bf16(void)
{
    return rounds_of(2 * BYTES / 2);
}
#else
#define run_peak_bf16     run_peak_f32
#define prepare_peak_bf16 prepare_peak_f32
#endif

/* i8 in i32: four to a lane where there is such an instruction, else two of 16 bits, whose sums
 * others add. */
#ifdef __AVX512VNNI__
#define I8_VECTOR        __m512i
#define I8_STEP(v, a, b) _mm512_dpbusd_epi32(v, a, b)
enum { I8_BYTES = 1 };
#elif defined __AVXVNNI__
#define I8_VECTOR        __m256i
#define I8_STEP(v, a, b) _mm256_dpbusd_avx_epi32(v, a, b)
enum { I8_BYTES = 1 };
#elif defined __AVX512BW__
#define I8_VECTOR        __m512i
#define I8_STEP(v, a, b) _mm512_add_epi32(_mm512_madd_epi16(v, a), b)
enum { I8_BYTES = 2 };
#elif defined __AVX2__
#define I8_VECTOR        __m256i
#define I8_STEP(v, a, b) _mm256_add_epi32(_mm256_madd_epi16(v, a), b)
enum { I8_BYTES = 2 };
#elif defined __SSE2__
#define I8_VECTOR        __m128i
#define I8_STEP(v, a, b) _mm_add_epi32(_mm_madd_epi16(v, a), b)
enum { I8_BYTES = 2 };
#endif
#ifdef I8_VECTOR
static inline I8_VECTOR multiply_add_i8(I8_VECTOR v, I8_VECTOR a, I8_VECTOR b)
{
    return I8_STEP(v, a, b);
}
ROUNDS(peak_i8, I8_VECTOR, multiply_add_i8)
static bool prepare_peak_i8(void)
{
    return rounds_of(2 * (int)sizeof(I8_VECTOR) / I8_BYTES);
}
#endif

/* ---- memory: arg[0] floats read, arg[1] floats written elsewhere, both a multiple of LANES ----
 * Of the ways to do that, with stores of several kinds and what is only read in one stream or in
 * four, the fastest counts. */

enum { LANES = BYTES / 4 };

static const float *from;
static float *to;
static volatile float seen;

static inline f32s vector_at(const float *p)
{
    f32s v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Ways to write: each copies, and adds two. */
static void copy_plain(float *out, const float *in, long n)
{
    for (long i = 0; i < n; i++)
        out[i] = in[i];
}
static void add_plain(float *out, const float *x, const float *y, long n)
{
    for (long i = 0; i < n; i++)
        out[i] = x[i] + y[i];
}
static void copy_by_library(float *out, const float *in, long n)
{
    memcpy(out, in, (size_t)n * sizeof *in);
}
#ifdef __SSE2__
#ifdef __AVX512F__
#define STREAM _mm512_stream_ps
#elif defined __AVX__
#define STREAM _mm256_stream_ps
#else
#define STREAM _mm_stream_ps
#endif
static void copy_past_caches(float *out, const float *in, long n)
{
    for (long i = 0; i < n; i += LANES)
        STREAM(out + i, vector_at(in + i));
}
static void add_past_caches(float *out, const float *x, const float *y, long n)
{
    for (long i = 0; i < n; i += LANES)
        STREAM(out + i, vector_at(x + i) + vector_at(y + i));
}
#else
#define copy_past_caches copy_plain
#define add_past_caches  add_plain
#endif
static const struct {
    void (*copy)(float *out, const float *in, long n);
    void (*add)(float *out, const float *x, const float *y, long n);
} writes[] = {
    {copy_plain, add_plain}, {copy_by_library, add_plain}, {copy_past_caches, add_past_caches}};

#define ZERO(v) f32s v = {0};
#define ADD(v)                                                                                     \
    v += vector_at(in);                                                                            \
    in += LANES;
#define GATHER(v) sum += v;
/* The results only keep what is read from being of no use. */
static float read_straight(const float *in, long n)
{
    const float *end = in + n;
    f32s sum = {0};
    TWELVE(ZERO, v)
    while (end - in >= 12 * LANES) {
        TWELVE(ADD, v)
    }
    while (end - in >= LANES) {
        ADD(sum)
    }
    TWELVE(GATHER, v)
    return sum[0];
}
#define ADD_PAIR(stream, v, w)                                                                     \
    v += vector_at(in + (stream)*quarter + i);                                                     \
    w += vector_at(in + (stream)*quarter + i + LANES);
static float read_in_four(const float *in, long n)
{
    long quarter = n / (8 * LANES) * (2 * LANES);
    f32s sum = {0};
    TWELVE(ZERO, v)
    for (long i = 0; i < quarter; i += 2 * LANES) {
        ADD_PAIR(0, v0, v1)
        ADD_PAIR(1, v2, v3)
        ADD_PAIR(2, v4, v5)
        ADD_PAIR(3, v6, v7)
    }
    TWELVE(GATHER, v)
    return sum[0] + read_straight(in + 4 * quarter, n - 4 * quarter);
}

static float (*const reads[])(const float *, long) = {read_straight, read_in_four};
enum { WRITES = sizeof writes / sizeof *writes, READS = sizeof reads / sizeof *reads };
static int the_write, the_read;

/* Reads `in` floats and writes `out`: sums of two while there are more to read, then copies. */
static void move_share(const float *x, long in, float *y, long out)
{
    long more = in > out ? in - out : 0, sums = more < out ? more : out;
    writes[the_write].add(y, x, x + sums, sums);
    x += 2 * sums, in -= 2 * sums, y += sums, out -= sums;
    if (in > out)
        seen = reads[the_read](x + out, in - out);
    for (long done = 0, part; in > 0 && done < out; done += part) {
        part = out - done < in ? out - done : in;
        writes[the_write].copy(y + done, x, part);
    }
}
/* Where share i of `shares` begins in n floats. */
static inline long begin_of(long i, long shares, long n)
{
    return i == shares ? n : n / shares * i / LANES * LANES;
}
static void move_one(long i, long shares)
{
    long x = begin_of(i, shares, arg[0]), y = begin_of(i, shares, arg[1]);
    move_share(from + x, begin_of(i + 1, shares, arg[0]) - x, to + y,
               begin_of(i + 1, shares, arg[1]) - y);
}
/* Few bytes by one thread; those that caches hold by the same thread each time; many in turns. */
static void run_move(void)
{
    long n = arg[0] + arg[1];
    if (n <= 1 << 17) {
        move_one(0, 1);
    } else if (n <= 1 << 22) {
#pragma omp parallel
        move_one(omp_get_thread_num(), omp_get_num_threads());
    } else {
#pragma omp parallel for schedule(dynamic)
        for (long i = 0; i < n >> 18; i++)
            move_one(i, n >> 18);
    }
}
static bool prepare_move(void)
{
    static const Work move = {"move", NULL, run_move};
    if (arg[0] % LANES || arg[1] % LANES)
        return refuse("not whole vectors");
    from = floats(0, (size_t)arg[0], -1, 1);
    to = result((size_t)arg[1]);
    double least = INFINITY;
    int best_write = 0, best_read = 0;
    for (int round = 0; round < 8; round++)
        for (the_write = 0; the_write < (arg[1] > 0 ? WRITES : 1); the_write++)
            for (the_read = 0; the_read < (arg[0] > arg[1] ? READS : 1); the_read++) {
                double t = contender_time(&move, 0.005);
                if (t < least)
                    least = t, best_write = the_write, best_read = the_read;
            }
    the_write = best_write;
    the_read = best_read;
    return true;
}

const Work works[] = {
    {"peak_f32", prepare_peak_f32, run_peak_f32},
    {"peak_bf16", prepare_peak_bf16, run_peak_bf16},
#ifdef I8_VECTOR
    {"peak_i8", prepare_peak_i8, run_peak_i8},
#endif
    {"move", prepare_move, run_move},
};
const size_t nworks = sizeof works / sizeof *works;
