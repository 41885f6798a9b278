/* run_args.h: arguments that `tilec run` makes itself, from PARAM=VALUE (run_args.c). */
#ifndef TL_RUN_ARGS_H
#define TL_RUN_ARGS_H
#include "runtime/include/tile.h"
#include "tools/tilec_options.h"

enum { MAX_ARRAY_RANK = 32 };

struct RunArg;
/* An element of addresses(A, B+16): where an array lies on the device, and bytes after that. */
typedef struct RunAddress {
    const struct RunArg *array;
    uint64_t offset;
} RunAddress;

/* One parameter's argument, or an array beside them, which only addresses(...) names. Arrays are in
 * host memory, aligned to 64 bytes. */
typedef struct RunArg {
    tile_param_info param;
    const char *value;       /* as written; NULL: a scalar's default */
    char *beside;            /* the name of an array that is no parameter's; owned */
    const struct RunArg *same_as; /* &OTHER */
    RunAddress *addresses;   /* addresses(...): one for each element; owned */
    /* of the elements that are there: the parameter's, or what the file has */
    tile_dtype dtype;
    char descr[16];          /* of the .npy file to write */
    bool fortran;
    int rank;
    /* of the array as NumPy sees it: packed types count bytes on the last axis */
    int64_t shape[MAX_ARRAY_RANK];
    int64_t last_elements;   /* packed types: elements on the last axis */
    uint64_t bytes;
    void *data;              /* owned, unless same_as */
    tile_buffer *buffer;     /* on devices with memory of their own, and for uninit */
    bool uninit;             /* nothing is written before the kernel runs */
    int maker;               /* what run_args_fill writes, and with which value or seed */
    uint64_t maker_value;
    uint64_t scalar;
} RunArg;

typedef struct RunArgs {
    RunArg *data;
    size_t nparams, len; /* the kernel's parameters come first */
    bool empty; /* set before run_args_make: arrays get their elements from run_args_fill only */
} RunArgs;

/* Makes all arguments of `kernel` (whose image is `image`) from o->items. Returns an exit status;
 * said on stderr. */
int run_args_make(const Options *o, const tile_kernel *kernel, const void *image, RunArgs *out);
void run_args_free(RunArgs *args);
/* The parameter's index by name; -1. */
int run_args_find(const RunArgs *args, const char *name);
/* Puts the arrays where the device sees them. *out_launch: the launch's arguments, to be freed,
 * also after an error. Returns an exit status; said on stderr. */
int run_args_upload(RunArgs *args, tile_device *device, tile_arg **out_launch);
/* Writes the elements of arrays that were made empty, on the device too. */
int run_args_fill(RunArgs *args);
/* Brings back what the kernel wrote; an exit status likewise. */
int run_args_fetch(RunArgs *args);
int run_arg_save(const RunArg *arg, const char *path, Outputs *outputs);
int run_arg_print(const RunArg *arg, FILE *out);
#endif
