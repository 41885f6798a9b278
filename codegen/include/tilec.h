/* tilec.h: the tile compiler as a library (libtilec). C11, clean C++; no LLVM types.
 * Thread-safe: any number of threads may compile at once; an output belongs to one thread at a
 * time. Nothing here prints or exits: diagnostics go to a callback. While the caller waits, a
 * compilation runs on a thread of its own, whose stack is large enough for LLVM's recursion;
 * callbacks are called from that thread. What is compiled does not depend on the caller's
 * floating-point state, which is as before when a call returns, nor on its locale. The caller may
 * have as little as 64 KB of stack. A process that was forked while another thread was compiling
 * cannot compile (TILEC_TOOL).
 *
 * Structs with a struct_size are filled in as in tile.h: it must be set, and 0 in all other members
 * means the default:
 *     tilec_options o = {.struct_size = sizeof o, .target = "sm_90a", .warps = 8};
 * TILEC_0_1 before a function: it is there since version 0.1. */
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
#define TILEC_0_1 TILEC_API

#define TILEC_VERSION_MAJOR 0
#define TILEC_VERSION_MINOR 1
#define TILEC_VERSION_PATCH 0
#define TILEC_VERSION                                                                              \
    (TILEC_VERSION_MAJOR * 10000 + TILEC_VERSION_MINOR * 100 + TILEC_VERSION_PATCH)

typedef enum tilec_status {
    TILEC_OK = 0,
    TILEC_ERRORS, /* the program is wrong: diagnostics were delivered */
    /* unknown target, stage, kernel, constant or option; see tilec_output_message */
    TILEC_USAGE,
    TILEC_NO_VARIANT, /* no variant of `instantiate` agrees with the constants given */
    TILEC_IO,         /* a file could not be read or written */
    TILEC_NO_MEMORY,
    TILEC_INTERNAL, /* a bug in the compiler; the message has the path of the reproducer, if any */
    TILEC_TOOL      /* what the stage needs is missing or failed: ptxas, the compiler's library */
} tilec_status;

/* "BM" "64", "T" "f16", "epi" "relu": a value for every kernel that has the constant. "gemm.BM"
 * applies to the kernel gemm only and takes precedence over "BM". A constant that no kernel has is
 * USAGE. */
typedef struct tilec_const {
    const char *name, *value;
} tilec_const;

/* What tuning found for launches of one size: the contents of a .tune.json (tile_jit.h, tilec
 * tune), which the caller has read. */
typedef struct tilec_tuned {
    const char *target; /* of the options' target, the name that this is for; NULL: any */
    /* as in a tilec_tuning; data that were made with another hash are used with a warning */
    const char *kernel, *hash, *constants, *keys;
    const int32_t *bucket; /* of each key: ceil(log2(value)), -1 for values below 1 */
    size_t nbucket;
    const char *const *configs; /* the best one first */
    size_t nconfigs;
} tilec_tuned;

/* What compilations of one source read, as it was at one moment. */
typedef struct tilec_bound tilec_bound;

/* 0 where 0 stands for the default: opt_level = TILEC_NONE is -O0, bisect = TILEC_NONE runs no
 * pass. */
enum { TILEC_NONE = INT32_MIN };

typedef struct tilec_options {
    size_t struct_size;
    /* "cpu" (default, this machine), "cpu:x86-64-v3", "ref", "sm_80", ...; "sm_80,gfx942": an image
     * or obj with both. An obj is for the machine of the first cpu target in the list, else for
     * this machine. */
    const char *target;
    /* "image" (default): for the runtime; or one of tilec_stages: ast tir llvm asm obj ... */
    const char *emit;
    /* NULL: every kernel of the file. If one of several lacks a value for a constant, it is left
     * out with the warning left-out; if none is left, that is USAGE. */
    const char *kernel;
    const tilec_const *consts;
    size_t nconsts;
    const char *const *include_dirs;
    size_t ninclude_dirs;
    int opt_level;  /* 1..3, or TILEC_NONE; 0: 3. Legal values here and below: options.def */
    int debug;      /* -g: keep asserts, emit line information */
    int check;      /* bounds, assumptions, asserts */
    const char *fp; /* "default" (NULL), "strict", "ring" */
    int werror;
    const char *diagnostics; /* "text" (default), "json", "sarif" */
    int color;
    void (*diagnostic)(
        void *user, const char *rendered); /* all diagnostics of a compilation, in source order */
    /* debugging of the compiler: like tilec's options of the same names */
    const char *passes, *print_after, *dump_dir, *stop_after, *skip, *override, *crash_dir;
    int bisect; /* run so many passes, or TILEC_NONE; 0: all */
    int time_passes, verify_each;
    void (*print)(void *user, const char *text); /* print_after, time_passes */
    void *user;
    void *(*alloc)(void *user, void *ptr, size_t old_size,
                   size_t new_size); /* NULL: the C library */
    void *alloc_user;
    int warps, stages; /* 1..64; 0: the kernel's own */
    /* With kernel NULL: the file must have exactly one kernel, else USAGE with their names. */
    int one_kernel;
    uint64_t stress_layouts; /* GPUs: random layouts of this seed, and all bulk stores there can be,
                              * to test the compiler; 0: off */
    int report;              /* GPUs, one target: fill in tilec_output_report */
    /* obj, header: NAME in the symbol tile_image_NAME and in the include guard; an object and its
     * header need the same. Characters that are illegal in C identifiers become _. NULL: the
     * source's file name without its extension. */
    const char *name;
    /* the arguments of -W on tilec's command line, in order: "NAME", "no-NAME", "error",
     * "error=NAME", "all" */
    const char *const *warnings;
    size_t nwarnings;
    /* Not 0: fill in tilec_output_trace. This is the process number in the trace; with several
     * targets, that of the first one, and the others get the numbers that follow. */
    int time_trace;
    /* The folder of the cache, or "off". NULL: what the environment variable TILE_CACHE says, else
     * $XDG_CACHE_HOME/tile, else ~/.cache/tile; such a folder is used only if nobody but the user
     * and root can write to it and the folders above it. A result that is in the cache is the same,
     * byte for byte, as compiling would give, its warnings included. Errors are not kept, and a
     * compilation that is watched (passes to bisect, report, time_trace) neither reads nor writes
     * it. */
    const char *cache;
    /* A kernel that has tuning data gets an instance for each configuration that they name, and
     * each launch runs the one of the nearest bucket. Values in `consts` take precedence. */
    const tilec_tuned *tuned;
    size_t ntuned;
    /* One of the configurations of a tilec_tuning: kernels are made with it. NULL: with `tuned`,
     * else with the defaults of their constants, else with the first configuration. */
    const char *config;
    int tunings; /* not 0: fill in tilec_output_tunings; nothing is compiled */
    /* GPUs: in which forms a kernel is compiled, at most 4, with ; between them: "aligned",
     * "general", or what is promised of a launch's arguments, "A=16,A.stride.0=8,near,grid"
     * (tools/README.md). A launch runs the first whose promises hold. NULL: "aligned;general" */
    const char *forms;
    /* What the compilation reads: the files that were bound, and nothing else of the disk or the
     * environment, whatever happened to them since. The source, its name and include_dirs must be
     * those of tilec_bind; `cache` is not looked at. NULL: what is there now. */
    const tilec_bound *bound;
    /* "on": compiled in a process of its own, the tilec that belongs to this library, which is
     * started once and kept (one for each thread that compiles at the same time). What LLVM does to
     * its process is a status then: running out of memory (NO_MEMORY), a crash (INTERNAL), a limit,
     * being killed (TOOL), each with a message. "on,memory=2000,seconds=60": limits of a
     * compilation, MiB of address space and time. "/PATH/tilec", with limits or without: that
     * program, which must be of the same build. "off": in this process. NULL: what the environment
     * variable TILE_PROCESS says, else "off". With `report` it is always this process. Callbacks
     * are called from the thread of the caller or of the cache. codegen/README.md says when to
     * take it. */
    const char *process;
    /* header: before the names of all functions and types in it, so that a file may include the
     * headers of one kernel for several types: "f16_" makes f16_gemm, f16_gemm_args. Letters,
     * digits and _, no digit first. NULL: nothing */
    const char *prefix;
} tilec_options;
#ifdef __cplusplus
inline tilec_options tilec_options_()
{
    tilec_options o = tilec_options();
    o.struct_size = sizeof o;
    return o;
}
#define TILEC_OPTIONS_INIT tilec_options_()
#else
#define TILEC_OPTIONS_INIT { .struct_size = sizeof(tilec_options) }
#endif

typedef struct tilec_output tilec_output;

/* Checks that each option has a legal value. `options` NULL: the defaults. TILEC_USAGE: one does
 * not; text[size] receives the reason, truncated to fit; `text` may be NULL. Names of targets,
 * stages, kernels, constants and passes are checked by a compilation only, which also makes all
 * checks of this function. */
TILEC_0_1 tilec_status tilec_options_check(const tilec_options *options, char *text, size_t size);

/* Compiles a text (`name` is used in messages and to find imports beside it) or a file ("-":
 * standard input). `options` NULL: the defaults.
 * *out_output is always set except for NO_MEMORY; free it with tilec_output_free (accepts NULL).
 * The functions of an output accept NULL too, and return no data, and "" for texts.
 * TILEC_USAGE also if a name, path or text is NULL; if out_output is NULL, there is no output. */
TILEC_0_1 tilec_status tilec_compile_source(const char *name, const char *text, size_t size,
                                            const tilec_options *options,
                                            tilec_output **out_output);
TILEC_0_1 tilec_status tilec_compile_file(const char *path, const tilec_options *options,
                                          tilec_output **out_output);
/* Reads the files that a source imports, and notes where the cache is, for compilations of that
 * source that come later (options.bound); of `options`, include_dirs, cache and alloc matter. A
 * file that is missing now is missing for them. The text itself is not kept.
 * TILEC_USAGE: an argument or an option is wrong.  TILEC_NO_MEMORY, TILEC_INTERNAL. */
TILEC_0_1 tilec_status tilec_bind(const char *name, const char *text, size_t size,
                                  const tilec_options *options, tilec_bound **out_bound);
/* After the last compilation that uses it; accepts NULL. */
TILEC_0_1 void tilec_bound_free(tilec_bound *bound);
/* The library of .tile modules that is part of the compiler. Where tilec_compile_file and
 * tile_module_load_file take a path, they take the name of a module, too: "std.kernels.gemm" (a
 * name that begins with "std.", has no slash, and does not end in ".tile" or ".tir").
 * The text of a module, NUL-terminated; NULL: there is none of that name. It is static. */
TILEC_0_1 const char *tilec_library_text(const char *module, size_t *out_size);
/* The name of the i-th module, in the order of names; NULL: there are not so many. */
TILEC_0_1 const char *tilec_library_module(size_t i);
/* NULL if there is no result; 64-byte aligned. */
TILEC_0_1 const void *tilec_output_data(const tilec_output *output, size_t *out_size);
/* "" if there is no message. */
TILEC_0_1 const char *tilec_output_message(const tilec_output *output);
/* The files that were read, one per line. */
TILEC_0_1 const char *tilec_output_depends(const tilec_output *output);
/* With options.time_trace: the time of each part of the compilation, by process (target) and
 * thread, as JSON in Chrome's trace event format, for ui.perfetto.dev. Without it, and after an
 * internal error: "". */
TILEC_0_1 const char *tilec_output_trace(const tilec_output *output);
TILEC_0_1 void tilec_output_free(tilec_output *output);

/* What there is to tune in a kernel: the configurations that its `tune` clauses list, with the
 * constants given. */
typedef struct tilec_tuning {
    const char *kernel;
    const char *hash;      /* of the kernel and what it uses, without tune and key */
    const char *constants; /* "T=f16 epi=relu": those that tune does not list, as far as known */
    const char *keys;      /* "M N K": what the choice depends on */
    size_t nkeys;
    /* "BM=64 BN=32 warps=4", in the order of the clauses; behind them once more the one that is
     * compiled without results, or NULL if it is not listed */
    const char *const *configs;
    size_t nconfigs;
} tilec_tuning;
/* With options.tunings: one row per kernel with a tune clause, or options.kernel's. */
TILEC_0_1 const tilec_tuning *tilec_output_tunings(const tilec_output *output, size_t *out_count);

/* Names of known targets and stages, NULL-terminated. */
TILEC_0_1 const char *const *tilec_targets(void);
TILEC_0_1 const char *const *tilec_stages(void);
TILEC_0_1 const char *tilec_version(void);

#ifdef TILE_UNSTABLE
/* What to compile for where a device of this target is to run the code: `target` itself, but for a
 * GPU whose own code this compiler's LLVM cannot make the generic target that it runs, too. */
TILEC_API const char *tilec_device_target(const char *target);

/* Not 0: the folder and all above it belong to the user or root, and nobody else may write to them
 * (above it: unless sticky, as /tmp is). 0: why[size] says why not. */
TILEC_API int tilec_trusts_folder(const char *path, char *why, size_t size);
#endif

#ifdef __cplusplus
}
#endif
#ifdef TILE_UNSTABLE
#include "tilec_report.h"
#endif
#endif
