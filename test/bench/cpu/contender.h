/* A contender: a program that does some of the works of the CPU benchmark, one library or compiler
 * each. run.py starts them all, has them take turns, and compares their results.
 *
 * Lines of standard input, each answered by one line:
 *     prepare WORK N...    "ready FLOATS", the length of the result; or "none REASON"
 *     time SECONDS         runs the work until that much time has gone; "seconds T", of one run
 *     sample COUNT         "values X ...", elements of the result, evenly spread, after one run
 *     quit
 * Inputs are made by the same function everywhere, so results agree within rounding. */
#ifndef TL_CONTENDER_H
#define TL_CONTENDER_H
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CONTENDER_ARGS = 5, CONTENDER_INPUTS = 5 };

/* What is at hand for the work that is prepared. Inputs and result are 64-byte aligned; result is
 * what `sample` shows: f32, or i32 with is_int. */
typedef struct Arena {
    void *block[CONTENDER_INPUTS + 1];
    void *result;
    size_t count;
    bool is_int;
    char why[200]; /* of a work that cannot be done */
} Arena;
static Arena arena;
static long arg[CONTENDER_ARGS];

typedef struct Work {
    const char *name;
    bool (*prepare)(void); /* makes inputs and result from arg[]; false: arena.why */
    void (*run)(void);
} Work;
extern const Work works[];
extern const size_t nworks;

/* Seconds; with CONTENDER_CLOCK=processor those that processors gave to this process. */
static inline double now(void)
{
    static int of_process = -1;
    const char *clock = of_process < 0 ? getenv("CONTENDER_CLOCK") : NULL;
    if (of_process < 0)
        of_process = clock && strcmp(clock, "processor") == 0;
    struct timespec t;
    clock_gettime(of_process ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline bool refuse(const char *why)
{
    snprintf(arena.why, sizeof arena.why, "%s", why);
    return false;
}

static inline void *memory(int which, size_t bytes)
{
    free(arena.block[which]);
    arena.block[which] = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!arena.block[which]) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(arena.block[which], 0xAB, (bytes + 127) / 64 * 64);
    return arena.block[which];
}

/* A number of 24 bits for element i of input `which`: the same in contend_torch.py. */
static inline uint32_t noise(int which, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u + (uint32_t)which * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return (x ^ (x >> 16)) >> 8;
}

/* Input `which`: n floats, uniform in [lo, hi). */
static inline float *floats(int which, size_t n, float lo, float hi)
{
    float *p = memory(which, n * sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = lo + (hi - lo) * ((float)noise(which, i) * 0x1p-24f);
    return p;
}

static inline int32_t *ints(int which, size_t n, int32_t end)
{
    int32_t *p = memory(which, n * sizeof *p);
    for (size_t i = 0; i < n; i++) p[i] = (int32_t)(noise(which, i) % (uint32_t)end);
    return p;
}

static inline int8_t *bytes(int which, size_t n)
{
    int8_t *p = memory(which, n);
    for (size_t i = 0; i < n; i++) p[i] = (int8_t)((int32_t)(noise(which, i) % 15) - 7);
    return p;
}

/* bf16, of what floats() gives: cut, as those inputs are small multiples of 2^-6. */
static inline uint16_t *bfloats(int which, size_t n)
{
    uint16_t *p = memory(which, n * sizeof *p);
    for (size_t i = 0; i < n; i++) {
        float f = (float)(int32_t)(noise(which, i) % 129) / 64 - 1;
        uint32_t u;
        memcpy(&u, &f, 4);
        p[i] = (uint16_t)(u >> 16);
    }
    return p;
}

/* n bytes, `times` times over, of blocks of `size` bytes as ggml has them: a scale (of q4_k's 144
 * bytes two), f16 of 2^-7 to 2^-6 and either sign, and bytes that are any but -128, which blocks of
 * q8_0 do not hold. */
static inline uint8_t *blocks(int which, size_t n, size_t times, size_t size)
{
    enum { Q4_K = 144 };
    size_t scales = size == Q4_K ? 4 : 2;
    uint8_t *p = memory(which, n * times);
    for (size_t i = 0; i < n; i++) {
        uint32_t x = noise(which, i);
        p[i] = i % size >= scales ? (uint8_t)(x % 255 + 129)
               : i % 2 == 0       ? (uint8_t)x
                                  : (uint8_t)(0x20 | (x & 0x83));
    }
    for (size_t i = 1; i < times; i++)
        memcpy(p + i * n, p, n);
    return p;
}
/* Which of `times` equal inputs is used now: the next, each time. */
static inline size_t turn_of(long times)
{
    static size_t runs;
    return runs++ % (size_t)(times > 0 ? times : 1);
}

static inline float *result(size_t n)
{
    arena.count = n;
    arena.is_int = false;
    return arena.result = memory(CONTENDER_INPUTS, n * sizeof(float));
}

static inline int32_t *int_result(size_t n)
{
    arena.count = n;
    arena.is_int = true;
    return arena.result = memory(CONTENDER_INPUTS, n * sizeof(int32_t));
}

static const Work *contender_find(char *line)
{
    char *word = strtok(line, " \n");
    for (int i = 0; i < CONTENDER_ARGS; i++) {
        char *number = strtok(NULL, " \n");
        arg[i] = number ? atol(number) : 0;
    }
    for (size_t i = 0; word && i < nworks; i++)
        if (strcmp(works[i].name, word) == 0)
            return &works[i];
    snprintf(arena.why, sizeof arena.why, "not this work");
    return NULL;
}

/* Runs until `least` seconds have gone, looking at the clock seldom; seconds of one run. */
static double contender_time(const Work *w, double least)
{
    double begin = now(), end = begin;
    long runs = 0;
    for (long batch = 1; end - begin < least; batch = 2 * runs < 64 ? 2 * runs : 64) {
        for (long i = 0; i < batch; i++) w->run();
        runs += batch;
        end = now();
    }
    return (end - begin) / (double)runs;
}

static void contender_sample(size_t n)
{
    printf("values");
    for (size_t i = 0; i < n; i++) {
        size_t at = (2 * i + 1) * arena.count / (2 * n);
        double x = arena.is_int ? (double)((int32_t *)arena.result)[at]
                                : (double)((float *)arena.result)[at];
        printf(" %.9g", x);
    }
    printf("\n");
}

int main(void)
{
    char line[256];
    const Work *work = NULL;
    while (fgets(line, sizeof line, stdin) && strncmp(line, "quit", 4)) {
        if (strncmp(line, "prepare ", 8) == 0) {
            work = contender_find(line + 8);
            if (work && work->prepare()) {
                work->run();
                printf("ready %zu\n", arena.count);
            } else {
                printf("none %s\n", arena.why);
                work = NULL;
            }
        } else if (work && strncmp(line, "time ", 5) == 0) {
            printf("seconds %.9g\n", contender_time(work, atof(line + 5)));
        } else if (work && strncmp(line, "sample ", 7) == 0) {
            contender_sample((size_t)atol(line + 7));
        } else {
            printf("none wrong line\n");
        }
        fflush(stdout);
    }
    return 0;
}
#endif
