/* tile_jit.h: kernels from source at run time (libtilec: the runtime and the compiler). C11, clean
 * C++. */
#ifndef TILE_JIT_H
#define TILE_JIT_H
#include "tile.h"

#define TILE_JIT_VERSION TILE_VERSION

#ifdef __cplusplus
extern "C" {
#endif

/* 0 where 0 stands for the default: opt_level = TILE_NONE is -O0. */
enum { TILE_NONE = INT32_MIN };

typedef struct tile_jit_options {
    size_t struct_size;
    const char *const *include_dirs; /* for import */
    size_t ninclude_dirs;
    int opt_level;   /* 1..3, or TILE_NONE; 0: 3 */
    int debug;       /* keep asserts */
    int check;       /* bounds, assumptions, asserts */
    const char *fp;  /* "default" (NULL), "strict", "ring" */
    int warps, stages; /* 1..64; 0: the kernel's own */
    /* all diagnostics of one compilation; the error text contains them too */
    void (*diagnostic)(void *user, const char *rendered);
    void *user;
    /* the folder of the cache of compiled kernels, or "off"; NULL: what the environment variable
     * TILE_CACHE says, else $XDG_CACHE_HOME/tile, else ~/.cache/tile; such a folder is used only if
     * nobody but the user and root can write to it and the folders above it */
    const char *cache;
    /* "on": kernels are compiled in a process of its own, tilec, which is started once and kept;
     * "on,memory=2000,seconds=60": with limits; "/PATH/tilec"; "off": in this process. NULL: what
     * the environment variable TILE_PROCESS says, else "off". Its death is a status, as in tilec.h
     * (tilec_options.process). */
    const char *process;
} tile_jit_options;
#define TILE_JIT_OPTIONS_INIT TILE_INIT_(tile_jit_options)

/* Makes a module from a text (`name` is used in messages and to find imports beside it) or a file.
 * What the module needs is read here: the text, the files that it imports, the tuning results,
 * where the cache is. Changes of files, of the current folder or of the environment that come later
 * do not matter. tile_kernel_get compiles, because the constants are known there, or finds in the
 * cache what an earlier call, of any process, has compiled. On GPUs it compiles the
 * form for aligned arguments; a launch that has others compiles theirs, once, unless the kernel is
 * prepared (tile_kernel_prepare, tile_launch_prepare).
 * For a file, the tuning results beside it are used (see tile_tune). In place of a path there may
 * be the name of a module of the library, "std.kernels.gemm"; its tuning results are in the current
 * folder.
 * `options` may be NULL; everything it points to except `user` is copied.
 * TILE_BAD_ARGUMENT: an option has an illegal value.  TILE_IO: the file cannot be read.
 * From tile_kernel_get: TILE_COMPILE, with the diagnostics as the error text. */
TILE_0_1 tile_status tile_module_load_source(tile_device *device, const char *name,
                                             const char *text, size_t size,
                                             const tile_jit_options *options,
                                             tile_module **out_module);
TILE_0_1 tile_status tile_module_load_file(tile_device *device, const char *path,
                                           const tile_jit_options *options,
                                           tile_module **out_module);

/* ---- tuning ---- */

/* How far tile_tune is. Texts live until the callback returns. */
typedef struct tile_tune_progress {
    size_t struct_size;
    const char *kernel, *config; /* what has just been done; config: "BM=64 BN=32 warps=4" */
    double us;                   /* its time so far; 0: none yet */
    const char *rejected;        /* why it is out; NULL: it is not */
    const char *step;            /* "compile", "check", "time", "model" */
    size_t done, total;          /* of the configurations: timed once, or rejected; all */
    const char *best;            /* so far; NULL: none yet */
    double best_us;
    double elapsed, left;        /* seconds; left: an estimate, below 0: not known yet */
} tile_tune_progress;

typedef struct tile_tune_options {
    size_t struct_size;
    const tile_jit_options *jit; /* NULL: the defaults */
    /* constants that are not to be tuned: a list that ends with {0}, or NULL */
    const tile_const *consts;
    double budget;               /* seconds; 0: as many as it takes */
    /* where results are kept; NULL: beside the source (gemm.tile: gemm.tune.json); "": nowhere */
    const char *file;
    /* Called from time to time, in the calling thread, or if its stack is small in one that stands
     * for it. Not 0: stop, and keep what was measured. */
    int (*progress)(void *user, const tile_tune_progress *progress);
    void *user;
    /* how much results may differ, relative to the largest value of an array; 0: by element type */
    double tolerance;
    int again; /* time everything, also what the file has */
    int model; /* GPU targets: no launch, but a static model of one (see runtime/tune/README.md) */
    /* only these configurations, a list that ends with NULL, and the best ones are not compared
     * side by side: a later call without `only` does that; NULL: all */
    const char *const *only;
    /* dry run: set result.complete and result.kept without timing or touching arrays */
    int look;
} tile_tune_options;
#define TILE_TUNE_OPTIONS_INIT TILE_INIT_(tile_tune_options)

typedef struct tile_tune_result {
    size_t struct_size;
    char best[512]; /* "" if no configuration can run */
    double best_us;
    size_t total;   /* configurations that were asked for; of these: */
    size_t timed, rejected, kept; /* now; now; in an earlier run */
    int complete;   /* 0: the budget was used up, or the callback stopped */
    double standard_us; /* of what is compiled without results; 0: it has no time */
} tile_tune_result;
#define TILE_TUNE_RESULT_INIT TILE_INIT_(tile_tune_result)

/* Finds the best configuration of `kernel` (NULL: the file's only one) in the file `path` for
 * launches with arguments like these, and enters it in the file of results, which
 * tile_module_load_file and tilec use: configurations are compiled in parallel and timed one after
 * another with cold caches, and the slow ones are given up early. Only configurations without a
 * time are timed. The kernel runs many times; at the end, arrays hold what they held before.
 * Configurations whose results differ from those of the first are rejected. `options` and
 * `out_result` may be NULL.
 * TILE_NOT_FOUND: no such kernel, or it has nothing to tune.  TILE_COMPILE: the program is wrong.
 * TILE_BAD_ARGUMENT: the launch's arguments are.  TILE_NO_RESOURCE: no configuration can run.
 * TILE_IO: the file of results cannot be read or written. */
TILE_0_1 tile_status tile_tune(tile_device *device, const char *path, const char *kernel,
                               const tile_arg *args, size_t nargs,
                               const tile_tune_options *options, tile_tune_result *out_result);

#ifdef __cplusplus
}
#endif
#endif
