/* tilec.h: the tile compiler as a library (libtilec). C11, clean C++. No LLVM type in sight.
 * Thread-safe: any number of threads may compile at once; an output belongs to one thread at a
 * time. Nothing here prints or exits: diagnostics go to a callback. A compilation runs on a thread
 * of its own, with a stack that LLVM's recursion fits into, while the caller waits: callbacks come
 * from that thread. Since 0.1. */
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

/* "BM" "64", "T" "f16", "epi" "relu": a value for every kernel that has the constant. "gemm.BM" is
 * for the kernel gemm alone and goes before "BM". A constant that no kernel has is USAGE. */
typedef struct tilec_const {
    const char *name, *value;
} tilec_const;

typedef struct tilec_options {
    size_t struct_size;
    /* "cpu" (default, this machine), "cpu:x86-64-v3", "ref", "sm_80", ...; "sm_80,gfx942": an image
     * or obj with both. An obj is for the machines of the first cpu target in the list, else for
     * this one. */
    const char *target;
    const char *
        /* "image" (default): all a runtime needs; or a stage: ast tir llvm asm obj ... (tilec_stages) */
        emit;
    /* NULL: every kernel of the file; one of several that lacks a value for a constant is left out
     * with the warning left-out, and when none is left that is USAGE */
    const char *kernel;
    const tilec_const *consts;
    size_t nconsts;
    const char *const *include_dirs;
    size_t ninclude_dirs;
    int opt_level;  /* 0..3; what may be said here and below: options.def */
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
    int warps, stages; /* 1..64; 0: as the kernel says */
    /* with kernel NULL: the file must have exactly one kernel, else USAGE with their names */
    int one_kernel;
    uint64_t stress_layouts; /* GPUs: random layouts of this seed, to test the compiler; 0: off */
    int report;              /* GPUs, one target: tilec_output_report has facts of the kernels */
    /* obj, header: "NAME" of the symbol tile_image_NAME and of the include guard; an object and its
     * header need the same. Characters that no C identifier has become _. NULL: the source's file
     * name without its ending */
    const char *name;
    /* what follows -W on tilec's command line, in order: "NAME", "no-NAME", "error", "error=NAME",
     * "all" */
    const char *const *warnings;
    size_t nwarnings;
} tilec_options;
#define TILEC_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(tilec_options), "cpu", "image", 0, 0, 0, 0, 0, 3, 0, 0, "default", 0, "text", 0, 0, \
            0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0                      \
    }

typedef struct tilec_output tilec_output;

/* Has each option a value that it may have? `options` NULL: the defaults. TILEC_USAGE: no; what is
 * wrong is written into text[size], cut to fit; `text` may be NULL. Names of targets, stages,
 * kernels, constants and passes are looked up when compiling only, which checks all that this does,
 * too. */
TILEC_API tilec_status tilec_options_check(const tilec_options *options, char *text, size_t size);

/* Compiles a text (`name` is for messages and for finding imports beside it) or a file ("-":
 * standard input).
 * *out_output is always set unless NO_MEMORY; free it with tilec_output_free (accepts NULL). The
 * functions of an output accept NULL, too: no data, "" for texts. `options` NULL: the defaults.
 * TILEC_USAGE also when a name, path or text is NULL; without an output when out_output is. */
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

#ifdef TILE_UNSTABLE
/* ---- what became of the kernels ----
 * Facts that the compiler, the target's own tools and tables of the hardware have of compiled
 * kernels; tilec explain prints them. Everything belongs to the output. Texts are never NULL. */
typedef struct tilec_report_place {
    const char *file, *text; /* text: that line of the source, "" when it is not known */
    uint32_t line, col;
} tilec_report_place;

typedef struct tilec_report_buffer { /* in shared memory */
    tilec_report_place place;
    const char *op;
    uint64_t offset, bytes;
} tilec_report_buffer;

typedef struct tilec_report_mask { /* a test that keeps elements out of an access */
    const char *what, *why, *help;
} tilec_report_mask;

typedef struct tilec_report_access { /* of global memory */
    tilec_report_place place;
    const char *op, *param, *type;
    /* "then" or "else": in an if, inside of its innermost loop. "whole" or "part": of a copy whose
     * code is there twice, for a tile that is inside as a whole and for one that may not be */
    const char *branch;
    uint32_t loops;           /* around it */
    uint64_t bytes;           /* of the tile */
    uint32_t width, requests; /* bytes that a thread moves at once; requests of each warp */
    uint32_t sectors, least;  /* of a request, when rows begin at sectors; that its bytes need */
    const char *narrow;       /* why the width is below 16 bytes */
    const tilec_report_mask *masks;
    size_t nmasks;
} tilec_report_access;

typedef struct tilec_report_exchange { /* data that goes from thread to thread */
    tilec_report_place place;
    const char *op, *way, *why; /* conversions: from which op's layout to which op's */
    const char *branch;
    uint32_t loops;
    uint64_t bytes;             /* of the tile */
    uint32_t shuffles, barriers;
    uint32_t wavefronts, least; /* of one warp in shared memory; without bank conflicts */
} tilec_report_exchange;

typedef struct tilec_report_loop {
    tilec_report_place place;
    uint32_t loops;  /* around it */
    int64_t trips;   /* -1: not known */
    const char *how; /* pipelined, or why not; unrolled; peeled */
} tilec_report_loop;

typedef struct tilec_report_kernel {
    const char *name, *variant, *symbol; /* variant: "aligned", "general" */
    const char *condition;               /* of the aligned variant: what it asks of a launch */
    const tilec_const *consts;
    size_t nconsts;
    uint32_t warps, lanes, threads;
    /* a thread's; -1: not known. AMD: vector registers and spilled ones; NVIDIA: bytes spilled */
    int registers, accumulators, scalars, spilled, reloaded, spilled_scalars, private_bytes;
    const char *registers_from; /* who says so, or why nobody does */
    uint32_t shared_bytes, shared_most;
    /* of a multiprocessor: resident; and blocks that each limit allows, -1: not known */
    int blocks, resident_warps, most_warps;
    int by_registers, by_shared, by_warps, by_blocks;
    const char *limit;
    const tilec_report_buffer *buffers;
    const tilec_report_access *accesses;
    const tilec_report_exchange *exchanges;
    const tilec_report_loop *loops;
    size_t nbuffers, naccesses, nexchanges, nloops;
} tilec_report_kernel;

typedef struct tilec_report {
    const char *target;
    /* variants of one kernel follow each other, aligned first */
    const tilec_report_kernel *kernels;
    size_t nkernels;
} tilec_report;

/* NULL without options.report, and for targets that have no report. */
TILEC_API const tilec_report *tilec_output_report(const tilec_output *output);
#endif

#ifdef __cplusplus
}
#endif
#endif
