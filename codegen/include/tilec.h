/* tilec.h: the tile compiler as a library (libtilec). C11, clean C++. No LLVM type in sight.
 * Thread-safe: any number of threads may compile at once; an output belongs to one thread at a
 * time. Nothing here prints or exits: diagnostics go to a callback. Since 0.1. */
#ifndef TILEC_H
#define TILEC_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

#ifndef TILEC_API
#define TILEC_API __attribute__((visibility("default")))
#endif

typedef enum tilec_status {
    TILEC_OK = 0,
    TILEC_ERRORS, /* the program is wrong: diagnostics were delivered */
    /* unknown target, stage, kernel, constant or option; text by tilec_output_message */
    TILEC_USAGE,
    TILEC_NO_VARIANT, /* no variant of `instantiate` agrees with the constants given */
    TILEC_IO,         /* a file could not be read */
    TILEC_NO_MEMORY,
    TILEC_INTERNAL, /* our fault; message has the reproducer's path when one was written */
    TILEC_TOOL      /* a program that the stage needs is absent or failed: ptxas */
} tilec_status;

typedef struct tilec_const {
    const char *name, *value; /* "BM" "64", "T" "f16", "epi" "relu" */
} tilec_const;

typedef struct tilec_options {
    size_t struct_size;
    /* "cpu" (default), "ref", "sm_80", ...; "sm_80,gfx942": an image or obj with both */
    const char *target;
    const char *
        /* "image" (default): all a runtime needs; or a stage: ast tir llvm asm obj ... (cli.md) */
        emit;
    const char *kernel; /* NULL: every kernel (image: those whose constants are all known) */
    const tilec_const *consts;
    size_t nconsts;
    const char *const *include_dirs;
    size_t ninclude_dirs;
    int opt_level;  /* 0..3 */
    int debug;      /* -g: asserts stay, line information */
    int check;      /* bounds, assumptions, asserts */
    const char *fp; /* "default", "strict", "ring" */
    int werror;
    const char *diagnostics; /* "text" (default), "json", "sarif" */
    int color;
    void (*diagnostic)(
        void *user, const char *rendered); /* all diagnostics of a compilation, in source order */
    /* looking inside: as tilec's options of the same names */
    const char *passes, *print_after, *dump_dir, *stop_after, *skip, *override, *crash_dir;
    int bisect; /* -1: all */
    int time_passes, verify_each;
    void (*print)(void *user, const char *text); /* print_after, time_passes */
    void *user;
    void *(*alloc)(void *user, void *ptr, size_t old_size,
                   size_t new_size); /* NULL: the C library */
    void *alloc_user;
    int warps, stages; /* 0: as the kernel says */
    /* with kernel NULL: the file must have exactly one kernel, else USAGE with their names */
    int one_kernel;
    uint64_t stress_layouts; /* GPUs: random layouts of this seed, to test the compiler; 0: off */
} tilec_options;
#define TILEC_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(tilec_options), "cpu", "image", 0, 0, 0, 0, 0, 3, 0, 0, "default", 0, "text", 0, 0, \
            0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                                  \
    }

typedef struct tilec_output tilec_output;

/* Compiles a text (`name` is for messages and for finding imports beside it) or a file ("-":
 * standard input).
 * *out_output is always set unless NO_MEMORY; free it with tilec_output_free (accepts NULL). */
TILEC_API tilec_status tilec_compile_source(const char *name, const char *text, size_t size,
                                            const tilec_options *options,
                                            tilec_output **out_output);
TILEC_API tilec_status tilec_compile_file(const char *path, const tilec_options *options,
                                          tilec_output **out_output);
TILEC_API const void *
tilec_output_data(const tilec_output *output,
                  size_t *out_size); /* NULL without a result; 64-byte aligned */
TILEC_API const char *
tilec_output_message(const tilec_output *output); /* "" when there is nothing to say */
TILEC_API const char *tilec_output_depends(const tilec_output *output); /* files read, one a line */
TILEC_API void tilec_output_free(tilec_output *output);

/* Names of known targets and stages, NULL-terminated. */
TILEC_API const char *const *tilec_targets(void);
TILEC_API const char *const *tilec_stages(void);
TILEC_API const char *tilec_version(void);

#ifdef __cplusplus
}
#endif
#endif
