/* From the results of a .tune.json to what the compiler takes: those of one device. */
#ifndef TL_TUNE_SELECT_H
#define TL_TUNE_SELECT_H
#include "codegen/include/tilec.h"
#include "runtime/runtime.h"
#include "runtime/tune_file.h"

/* What the times taken on the device are of. An emulator stands for the GPU that it emulates. */
tile_status tl_tune_device_of(tile_device *device, tl_tune_device *out);
/* The same for a target, as far as its name tells: "cpu" is this machine's CPU with any number of
 * threads. */
void tl_tune_device_of_target(const char *target, tl_tune_device *out);

/* Results that suit a device, as rows for tilec_options.tuned, with all their texts. */
typedef struct tl_tune_rows {
    tilec_tuned *data;
    size_t len;
    tl_tune_file file; /* the rows point into it */
} tl_tune_rows;

/* Do times taken on `have` suit `want`? Those of the same target do, and of the CPU level that a
 * level extends: cpu:x86-64-v4's suit cpu:x86-64-v4-zen4. */
bool tl_tune_serves(const char *have, const char *want);

/* Adds the rows of rows->file that suit `device`; `target` as in a tilec_tuned. Of several machines
 * whose results do, the nearest counts, for each kernel and its constants: one of the target
 * itself, then of the same name, then of the nearest number of threads, then of more. */
tile_status tl_tune_select(tl_tune_rows *rows, const tl_tune_device *device, const char *target);
void tl_tune_rows_free(tl_tune_rows *rows);

/* May results for the source be read? Those of a module of the library lie in the current folder,
 * which nobody has named: it must be the user's own. false: why[size] says why not. */
bool tl_tune_may_read(const char *source, char *why, size_t size);

/* The results beside a source, for a device. Not used, and empty, where TILE_TUNE is "off". A file
 * that cannot be read is empty, with `why` saying so; else `why` is "". */
tile_status tl_tune_beside(const char *source, tile_device *device, tl_tune_rows *out, char *why,
                           size_t size);
#endif
