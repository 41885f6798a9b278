/* GPUs: the rows of gpu.def, which says what the columns mean. Needs only libc; like tile_image.h
 * it is part of the contract between compiler and runtime and may be included by both. */
#ifndef TL_GPU_ROWS_H
#define TL_GPU_ROWS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/contract/leaf.h"

/* X(row, type, column) for each column of a row. */
#define TL_GPU_COLUMNS(X, row)                                                                     \
    X(row, const char *, cpu)                                                                      \
    X(row, const char *, features)                                                                 \
    X(row, const char *, ptx)                                                                      \
    X(row, int, capability)                                                                        \
    X(row, int, driver)                                                                            \
    X(row, int, lanes)                                                                             \
    X(row, int, registers)                                                                         \
    X(row, uint32_t, shared_bytes)                                                                 \
    X(row, int, dies)                                                                              \
    X(row, const char *, matrix)                                                                   \
    X(row, unsigned, can)                                                                          \
    X(row, int, schedulers)                                                                        \
    X(row, int, warps)                                                                             \
    X(row, int, blocks)                                                                            \
    X(row, int, single_blocks)                                                                     \
    X(row, int, file)                                                                              \
    X(row, int, file_unit)                                                                         \
    X(row, int, all_shared)                                                                        \
    X(row, int, shared_unit)                                                                       \
    X(row, int, shared_reserved)                                                                   \
    X(row, int, sms)                                                                               \
    X(row, double, ghz)                                                                            \
    X(row, double, memory)                                                                         \
    X(row, double, cache)                                                                          \
    X(row, double, matrix8)                                                                        \
    X(row, double, matrix16)                                                                       \
    X(row, double, matrix32)                                                                       \
    X(row, double, matrix64)                                                                       \
    X(row, double, fma)                                                                            \
    X(row, double, vector)                                                                         \
    X(row, double, special)                                                                        \
    X(row, double, shuffle)                                                                        \
    X(row, double, wavefronts)                                                                     \
    X(row, int, matrix_in_vector)                                                                  \
    X(row, double, mma_share)

typedef struct tl_gpu {
    const char *name;
#define COLUMN(row, type, column) type column;
    TL_GPU_COLUMNS(COLUMN, )
#undef COLUMN
} tl_gpu;

/* All rows, in the order of the table, and their number. */
static inline const tl_gpu *tl_gpus(size_t *out_n)
{
    static const tl_gpu rows[] = {
#define IS(column, value)          .column = value,
#define GPU_AS(ID, of_name, of_family, ...) {.name = of_name, __VA_ARGS__},
#include "runtime/contract/gpu.def"
    };
    *out_n = sizeof rows / sizeof *rows;
    return rows;
}

/* NULL: no GPU has this name. */
static inline const tl_gpu *tl_gpu_find(const char *name)
{
    size_t n;
    const tl_gpu *rows = tl_gpus(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* The devices, with blanks between them, that run the code of a generic name; "": it is none. */
static inline const char *tl_gpu_members(const char *name)
{
#define MEMBERS(of_name, devices)                                                                  \
    if (strcmp(name, of_name) == 0)                                                                \
        return devices;
#define GPU_AS(...)
#include "runtime/contract/gpu.def"
    return "";
}

/* Is the AMD GPU one of them? */
static inline int tl_gpu_is_member(const char *device, const char *name)
{
    size_t n = strlen(device);
    const char *at = tl_gpu_members(name);
    while (*at && (strncmp(at, device, n) != 0 || (at[n] && at[n] != ' '))) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    return n && *at;
}
#endif
