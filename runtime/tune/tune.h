/* What the files behind tile_tune share (tune.c). */
#ifndef TL_TUNE_H
#define TL_TUNE_H
#include "runtime/jit.h"
#include "runtime/runtime.h"
#include "runtime/tune_file.h"

enum { TL_TUNE_SAMPLES = 240 };

/* A configuration that is being tried. */
typedef struct tl_trial {
    const char *config; /* of the tuning */
    tilec_output *output;
    tile_module *module;
    tile_kernel *kernel;
    double samples[TL_TUNE_SAMPLES]; /* microseconds */
    uint32_t nsamples;
    const struct tl_trial *beaten_by; /* when it was given up; it had `times` that one's time */
    double times;
    char *rejected; /* why */
    bool passing;   /* for want of memory, which is no fact about it: the file is not told */
    bool mute;      /* only run once, so that others' results can be compared with its own */
} tl_trial;

typedef struct tl_tuner {
    tile_device *device;
    tile_device_info info;
    const char *path, *kernel;
    const tile_arg *args;
    size_t nargs;
    const tile_tune_options *o;
    tilec_const *consts; /* of the options, as the compiler takes them */
    size_t nconsts;
    tilec_output *listed;
    const tilec_tuning *tuning; /* of `listed` */
    char *file_path;            /* NULL: results are not kept */
    tl_tune_file file;
    tl_tune_result like; /* the keys of our result; its texts are the tuning's */
    tl_trial *trials;    /* what has no time yet, in the order of the tuning */
    size_t ntrials, compiled, done, asked, kept, rejected;
    tl_trial *best;
    const char *kept_best; /* of an earlier run */
    double kept_best_us;
    double start, deadline, saved; /* seconds; deadline 0: none */
    bool stopped, settled; /* settled: the best ones were compared side by side */
    struct tl_tune_arrays *arrays;
} tl_tuner;

double tl_tune_now(void); /* seconds */
/* Rejects a trial, unless it was rejected before. */
void tl_tune_reject(tl_trial *trial, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for a call that has failed, with tile_last_error. */
void tl_tune_reject_failed(tl_trial *trial, tile_status status);
/* Tells the caller. False: stop, by its wish or because the time is over. */
bool tl_tune_report(tl_tuner *t, const char *step, const tl_trial *trial);
/* What a trial's time is: the median of the fastest quarter of its launches. Of one that was given
 * up: that of the one that beat it, by now, times the ratio of the two in the rounds that both ran.
 * So no time in a list is of quieter rounds than another. */
double tl_tune_value(const tl_trial *trial);
/* Between which two values it lies, with 19 chances of 20. */
void tl_tune_bounds(const tl_trial *trial, double *out_low, double *out_high);

/* tune_compile.c */
/* What there is to tune. */
tile_status tl_tune_list(tl_tuner *t);
/* How many threads can compile side by side. */
size_t tl_tune_processors(void);
/* Compiles trials [begin, end) side by side; those that fail are rejected. False: stop. */
bool tl_tune_compile(tl_tuner *t, size_t begin, size_t end);
/* The keys' values and the bucket of the launch, and whether its arguments are right. */
tile_status tl_tune_sizes(tl_tuner *t);

/* tune_arrays.c: the memory that a kernel writes. */
typedef struct tl_tune_arrays tl_tune_arrays;
/* Keeps what is there; `kernel` has the parameters. */
tile_status tl_tune_arrays_create(const tl_tuner *t, const tile_kernel *kernel,
                                  tl_tune_arrays **out_arrays);
/* As it was at the beginning. */
tile_status tl_tune_arrays_restore(const tl_tuner *t, tl_tune_arrays *arrays);
/* The first time, keeps the results; later compares with them: false if they differ, which is said
 * in `why`. */
tile_status tl_tune_arrays_check(const tl_tuner *t, tl_tune_arrays *arrays, const char *config,
                                 bool *out_same, char *why, size_t size);
void tl_tune_arrays_free(tl_tune_arrays *arrays);

/* tune_time.c */
/* Compiles, checks and times all trials, as far as the time allows. */
tile_status tl_tune_time_all(tl_tuner *t);

/* tune_model.c */
/* Instead of that: what the compiler's report tells of each trial. */
tile_status tl_tune_model_all(tl_tuner *t);

/* tune.c */
/* Enters what is known by now in the file. */
tile_status tl_tune_save(tl_tuner *t);
#endif
