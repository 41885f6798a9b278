/* npy.h: NumPy's .npy files, versions 1 and 2, in C or Fortran order (npy.c). */
#ifndef TL_NPY_H
#define TL_NPY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_MAX_RANK = 32, NPY_ERROR_BYTES = 256 };

typedef struct NpyArray {
    char descr[16];   /* "<f4": little-endian always, or "|u1" where a byte has no order */
    size_t item;      /* bytes of an element */
    bool fortran;     /* first axis fastest */
    int rank;
    int64_t shape[NPY_MAX_RANK];
    uint64_t bytes;   /* of the data */
    void *data;       /* 64-byte aligned; free() it */
} NpyArray;

/* False with a text in `error` (NPY_ERROR_BYTES). Big-endian elements are turned round. */
bool npy_load(const char *path, NpyArray *out, char *error);
/* Parses a whole file's bytes; for the loader and for tests. */
bool npy_parse(const void *file, size_t size, NpyArray *out, char *error);
/* The whole file's bytes; free() them. NULL: no memory. */
void *npy_format(const NpyArray *array, size_t *out_size);
#endif
