/* .tune.json files: what tuning found, a result for each kernel, constants, device and bucket.
 * Texts and tables are malloc'ed and belong to the file. */
#ifndef TL_TUNE_FILE_H
#define TL_TUNE_FILE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "runtime/contract/tile_image.h"
#include "runtime/include/tile.h"

enum { TL_TUNE_VERSION = 1 };

/* What times are of: "cpu:x86-64-v4", "AMD EPYC 9B14", 2 threads; "sm_90a", "", 0. */
typedef struct tl_tune_device {
    char target[32], name[128];
    int threads;
} tl_tune_device;

typedef struct tl_tune_time {
    char *config;
    double us;      /* of a launch */
    char *rejected; /* why there is no time; NULL: there is */
} tl_tune_time;

typedef struct tl_tune_result {
    char *kernel, *constants, *keys, *hash; /* as in a tilec_tuning */
    tl_tune_device device;
    size_t nkeys;
    int64_t sizes[TILE_IMAGE_MAX_KEYS]; /* of the launch that was timed */
    int32_t bucket[TILE_IMAGE_MAX_KEYS];
    char *best;        /* a configuration of `times`; NULL: none can run */
    char *standard;    /* what is compiled where there are no results; NULL: not known */
    char *how, *tool;  /* "timed", "model"; the compiler's version */
    bool open;         /* the best ones have not been compared side by side yet */
    tl_tune_time *times;
    size_t ntimes;
} tl_tune_result;

typedef struct tl_tune_file {
    tl_tune_result *results;
    size_t len;
} tl_tune_file;

/* The file of tuning results beside a source: "a/gemm.tile" has "a/gemm.tune.json". NULL: no
 * memory. The caller frees it. */
char *tl_tune_path(const char *source);
/* A file that does not exist is empty. Otherwise what is wrong is in `why`, and *out is empty. */
tile_status tl_tune_read(const char *path, tl_tune_file *out, char *why, size_t size);
/* The same for a text. */
tile_status tl_tune_parse(const char *text, size_t length, tl_tune_file *out, char *why,
                          size_t size);
/* The file's text, sorted, so that equal results give equal bytes; NULL: no memory. The caller
 * frees it. */
char *tl_tune_format(tl_tune_file *file);
/* Writes the file beside its place and renames it. The thread's error text says what failed. */
tile_status tl_tune_write(const char *path, tl_tune_file *file);
void tl_tune_file_free(tl_tune_file *file);
/* Who reads a file to write it with something added holds this meanwhile, so that nobody's
 * additions are lost. It waits; -1: this file system has no locks, and tl_tune_unlock does
 * nothing. */
int tl_tune_lock(const char *path);
void tl_tune_unlock(int lock);

/* The result of the same kernel, constants, device and bucket; NULL: there is none. */
tl_tune_result *tl_tune_find(const tl_tune_file *file, const tl_tune_result *like);
/* An empty result, added; NULL: no memory. */
tl_tune_result *tl_tune_add(tl_tune_file *file);
/* The time of a configuration; NULL: there is none. */
tl_tune_time *tl_tune_time_of(const tl_tune_result *result, const char *config);
/* An empty one, added; NULL: no memory. */
tl_tune_time *tl_tune_add_time(tl_tune_result *result, const char *config);
/* Forgets times and choice. */
void tl_tune_clear(tl_tune_result *result);
/* All that it holds. */
void tl_tune_result_free(tl_tune_result *result);

/* ---- tune_merge.c ---- */

/* Adds what `from` has, which takes precedence; `from` can then only be freed. */
tile_status tl_tune_merge(tl_tune_file *file, tl_tune_file *from);
/* Removes the results that `old` has with the same times. */
void tl_tune_keep_new(tl_tune_file *file, const tl_tune_file *old);
#endif
