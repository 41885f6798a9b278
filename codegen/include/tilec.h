/* tilec.h: the tile compiler as a library (libtilec). C11, clean C++; no LLVM types.
 * Thread-safe: any number of threads may compile at once; an output belongs to one thread at a
 * time. Nothing here prints or exits: diagnostics go to a callback. While the caller waits, a
 * compilation runs on a thread of its own, whose stack is large enough for LLVM's recursion;
 * callbacks are called from that thread. What is compiled does not depend on the caller's
 * floating-point state, which is as before when a call returns, nor on its locale. The caller may
 * have as little as 64 KB of stack. A process that was forked while another thread was compiling
 * cannot compile (TILEC_TOOL). Since 0.1. */
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
    /* unknown target, stage, kernel, constant or option; see tilec_output_message */
    TILEC_USAGE,
    TILEC_NO_VARIANT, /* no variant of `instantiate` agrees with the constants given */
    TILEC_IO,         /* a file could not be read */
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
    int opt_level;  /* 0..3; legal values here and below: options.def */
    int debug;      /* -g: keep asserts, emit line information */
    int check;      /* bounds, assumptions, asserts */
    const char *fp; /* "default", "strict", "ring" */
    int werror;
    const char *diagnostics; /* "text" (default), "json", "sarif" */
    int color;
    void (*diagnostic)(
        void *user, const char *rendered); /* all diagnostics of a compilation, in source order */
    /* debugging of the compiler: like tilec's options of the same names */
    const char *passes, *print_after, *dump_dir, *stop_after, *skip, *override, *crash_dir;
    int bisect; /* -1: run all passes */
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
#define TILEC_OPTIONS_INIT                                                                         \
    {                                                                                              \
        sizeof(tilec_options), "cpu", "image", 0, 0, 0, 0, 0, 3, 0, 0, "default", 0, "text", 0, 0, \
            0, 0, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,   \
            0, 0, 0, 0                                                                             \
    }

typedef struct tilec_output tilec_output;

/* Checks that each option has a legal value. `options` NULL: the defaults. TILEC_USAGE: one does
 * not; text[size] receives the reason, truncated to fit; `text` may be NULL. Names of targets,
 * stages, kernels, constants and passes are checked by a compilation only, which also makes all
 * checks of this function. */
TILEC_API tilec_status tilec_options_check(const tilec_options *options, char *text, size_t size);

/* Compiles a text (`name` is used in messages and to find imports beside it) or a file ("-":
 * standard input). `options` NULL: the defaults.
 * *out_output is always set except for NO_MEMORY; free it with tilec_output_free (accepts NULL).
 * The functions of an output accept NULL too, and return no data, and "" for texts.
 * TILEC_USAGE also if a name, path or text is NULL; if out_output is NULL, there is no output. */
TILEC_API tilec_status tilec_compile_source(const char *name, const char *text, size_t size,
                                            const tilec_options *options,
                                            tilec_output **out_output);
TILEC_API tilec_status tilec_compile_file(const char *path, const tilec_options *options,
                                          tilec_output **out_output);
/* Reads the files that a source imports, and notes where the cache is, for compilations of that
 * source that come later (options.bound); of `options`, include_dirs, cache and alloc matter. A
 * file that is missing now is missing for them. The text itself is not kept.
 * TILEC_USAGE: an argument or an option is wrong.  TILEC_NO_MEMORY, TILEC_INTERNAL. */
TILEC_API tilec_status tilec_bind(const char *name, const char *text, size_t size,
                                  const tilec_options *options, tilec_bound **out_bound);
/* After the last compilation that uses it; accepts NULL. */
TILEC_API void tilec_bound_free(tilec_bound *bound);
/* The library of .tile modules that is part of the compiler. Where tilec_compile_file and
 * tile_module_load_file take a path, they take the name of a module, too: "std.kernels.gemm" (a
 * name that begins with "std.", has no slash, and does not end in ".tile" or ".tir").
 * The text of a module, NUL-terminated; NULL: there is none of that name. It is static. */
TILEC_API const char *tilec_library_text(const char *module, size_t *out_size);
/* The name of the i-th module, in the order of names; NULL: there are not so many. */
TILEC_API const char *tilec_library_module(size_t i);
/* NULL if there is no result; 64-byte aligned. */
TILEC_API const void *tilec_output_data(const tilec_output *output, size_t *out_size);
/* "" if there is no message. */
TILEC_API const char *tilec_output_message(const tilec_output *output);
/* The files that were read, one per line. */
TILEC_API const char *tilec_output_depends(const tilec_output *output);
/* With options.time_trace: the time of each part of the compilation, by process (target) and
 * thread, as JSON in Chrome's trace event format, for ui.perfetto.dev. Without it, and after an
 * internal error: "". */
TILEC_API const char *tilec_output_trace(const tilec_output *output);
TILEC_API void tilec_output_free(tilec_output *output);

/* What there is to tune in a kernel: the configurations that its `tune` clauses list, with the
 * constants given. */
typedef struct tilec_tuning {
    const char *kernel;
    const char *hash;      /* of the kernel and what it uses, without tune and key */
    const char *constants; /* "T=f16 epi=relu": those that tune does not list, as far as known */
    const char *keys;      /* "M N K": what the choice depends on */
    size_t nkeys;
    const char *const *configs; /* "BM=64 BN=32 warps=4", in the order of the clauses */
    size_t nconfigs;
} tilec_tuning;
/* With options.tunings: one row per kernel with a tune clause, or options.kernel's. */
TILEC_API const tilec_tuning *tilec_output_tunings(const tilec_output *output, size_t *out_count);

/* Names of known targets and stages, NULL-terminated. */
TILEC_API const char *const *tilec_targets(void);
TILEC_API const char *const *tilec_stages(void);
TILEC_API const char *tilec_version(void);

#ifdef TILE_UNSTABLE
/* Not 0: the folder and all above it belong to the user or root, and nobody else may write to them
 * (above it: unless sticky, as /tmp is). 0: why[size] says why not. */
TILEC_API int tilec_trusts_folder(const char *path, char *why, size_t size);

/* ---- report on compiled kernels ----
 * Facts about compiled kernels from the compiler, the target's own tools and tables of the
 * hardware; tilec explain prints them. Everything belongs to the output. Texts are never NULL.
 *
 * `order`, `first`, `last`: positions in the program that the kernel has become, from 0 to
 * `length`. `share`: of the trips of the innermost loop (without one: of the runs), those in which
 * it happens, in percent: 50 in an arm of an if; of a copy with two versions, 100 for the one that
 * is completely in bounds and 0 for the other. */
typedef struct tilec_report_position {
    const char *file, *text; /* text: that line of the source, "" if unknown */
    uint32_t line, col;
} tilec_report_position;

typedef struct tilec_report_buffer { /* in shared memory */
    tilec_report_position position;
    const char *op, *param; /* param: whose elements come into it, "": computed ones */
    uint64_t offset, bytes;
    uint32_t slots;
    uint32_t first, last; /* where it holds something; buffers that do at once share no byte */
} tilec_report_buffer;

typedef struct tilec_report_mask { /* a test that excludes elements from an access */
    const char *what, *why, *help;
} tilec_report_mask;

typedef struct tilec_report_access { /* of global memory */
    tilec_report_position position;
    const char *op, *param, *type;
    /* "then" or "else": in an if within the innermost loop. "whole" or "part": of a copy that has
     * two versions of code, for a tile that is completely in bounds and for one that may not be */
    const char *branch;
    uint32_t loops;           /* that enclose it */
    uint64_t bytes;           /* of the tile; of a cluster, of this program's part of it */
    uint32_t width, requests; /* bytes that a thread accesses at once; requests per warp */
    uint32_t sectors, least;  /* per request, if rows begin at sectors; minimum for its bytes */
    uint64_t run;             /* bytes of the tile that lie side by side */
    const char *narrow;       /* why the width is below 16 bytes */
    const char *by_threads;   /* of a store, where the target has bulk stores: why it is none */
    int loop;                 /* the innermost one, in `loops` of the kernel; -1: none */
    const tilec_report_mask *masks;
    size_t nmasks;
    uint32_t order, share;
    uint32_t ahead; /* trips before that for which it reads, in a pipelined loop */
    int buffer;     /* of a copy: where to, in `buffers` of the kernel; else -1 */
} tilec_report_access;

typedef struct tilec_report_exchange { /* of data between threads */
    tilec_report_position position;
    const char *op, *way, *why; /* why: for conversions, the ops whose layouts differ */
    const char *branch;
    uint32_t loops;             /* that enclose it */
    uint64_t bytes;             /* of the tile */
    uint32_t shuffles, barriers;
    uint32_t wavefronts, least; /* of one warp in shared memory; minimum without conflicts */
    int loop;                   /* the innermost one, in `loops` of the kernel; -1: none */
    uint64_t macs;              /* products: multiply-adds of the block */
    int matrix_bits;            /* of an operand's element, for matrix instructions; else 0 */
    uint32_t instructions;      /* matrix instructions of a warp */
    uint32_t order, share;
    uint32_t ahead; /* as of an access */
    int buffer;     /* that it writes or reads, or is for itself, in `buffers`; -1: none */
    /* what it keeps busy: "memory" (an access, too, has this row's op and order), "shared",
     * "matrix", "arith", "sync" */
    const char *kind;
} tilec_report_exchange;

/* Until all asynchronous copies but those of the latest `pending` trips have arrived. */
typedef struct tilec_report_wait {
    tilec_report_position position;
    uint32_t order, pending;
    int loop; /* as of an access */
} tilec_report_wait;

/* What one line of the source, in one loop, computes in registers; each time. */
typedef struct tilec_report_line {
    tilec_report_position position;
    int loop; /* as of an access */
    uint32_t share;
    /* on elements of the block: arithmetic in floating point, an fma as 2; of it roots and powers
     * of 2, for which GPUs have fewer units. Products not included. */
    uint64_t flops, special;
    uint32_t words; /* of tiles that a thread holds at once there, before the target's compiler */
    uint32_t order; /* of the first op */
} tilec_report_line;

/* What the block does each time it goes through a loop once, without the loops inside; or outside
 * of all loops. Shares are counted in. */
typedef struct tilec_report_work {
    uint64_t bytes; /* of global memory, whole sectors */
    uint64_t flops; /* 2 of each multiply-add, with `flops` of lines */
    uint64_t macs;  /* multiply-adds by matrix instructions */
} tilec_report_work;

typedef struct tilec_report_loop {
    tilec_report_position position;
    uint32_t loops;  /* that enclose it */
    int64_t trips;   /* -1: unknown */
    const char *how; /* pipelined, or why not; unrolled; peeled */
    int outer;       /* the loop around it, in `loops` of the kernel; -1: none */
    /* of unknown trips: (extent of the axis of the parameter - less) / step, rounded up; NULL: they
     * do not depend on an extent in this way */
    const char *param;
    uint32_t axis;
    int64_t less, step;
    uint32_t first, last, stages; /* stages: of its pipeline; 0: it has none */
    tilec_report_work each;
} tilec_report_loop;

/* Instructions of a warp, of one class; where a class is counted by width, of one width. */
typedef struct tilec_report_mix {
    const char *name;
    uint32_t width; /* bytes of a thread; 0: the class is not counted by width, or it is not told */
    /* in the whole text; on the shortest way round the main loop; on the shortest way to that loop
     * and from it to the end (without a loop: all) */
    uint32_t all, trip, rest;
} tilec_report_mix;

/* The least time that a part of the hardware needs, if nothing else limited: cycles of a
 * multiprocessor for one block. */
typedef struct tilec_report_roof {
    const char *name, *advice; /* advice: what moves it */
    double trip;    /* of the main loop; 0: there is none */
    double program; /* of all; loops of unknown trips go round `assumed_trips` times */
} tilec_report_roof;

typedef struct tilec_report_hint { /* what costs time that it need not */
    tilec_report_position position;
    const char *id, *text, *help;
    double cycles; /* as of a roof's `program`, roughly */
} tilec_report_hint;

typedef struct tilec_report_param {
    const char *name, *type;    /* type: of its elements */
    const char *const *extents; /* as declared, "" where nothing is; of a scalar there are none */
    size_t nextents;
} tilec_report_param;

typedef struct tilec_report_message { /* a warning or note */
    tilec_report_position position;
    const char *severity, *id, *text;
} tilec_report_message;

typedef struct tilec_report_source {
    const char *path, *text;
} tilec_report_source;

typedef struct tilec_report_kernel {
    const char *name, *variant, *symbol; /* variant: the form (options.forms) */
    const char *condition;               /* of forms: what they require of a launch */
    const tilec_const *consts;
    size_t nconsts;
    uint32_t warps, lanes, threads;
    uint32_t dies;         /* that get neighbouring programs each; 1: programs start in order */
    const char *warps_why; /* more than 4 that neither the kernel nor an option says; else "" */
    /* programs that bring parts of what all of them read to each other; 0: the kernel does not ask
     * for that, 1: it does, but `cluster_why` */
    uint32_t cluster;
    const char *cluster_why;
    /* per thread; -1: unknown. spilled, reloaded: vector registers on AMD, bytes on NVIDIA */
    int registers, accumulators, scalars, spilled, reloaded, spilled_scalars, private_bytes;
    const char *registers_from; /* source of these figures, or why there are none */
    uint32_t shared_bytes, shared_most;
    /* per multiprocessor: resident; and the blocks that each limit allows, -1: unknown */
    int blocks, resident_warps, most_warps;
    int by_registers, by_shared, by_warps, by_blocks;
    const char *limit;
    const tilec_report_buffer *buffers;
    const tilec_report_access *accesses;
    const tilec_report_exchange *exchanges;
    const tilec_report_loop *loops;
    size_t nbuffers, naccesses, nexchanges, nloops;
    const tilec_report_wait *waits;
    const tilec_report_line *lines;
    const tilec_report_param *params;
    size_t nwaits, nlines, nparams;
    const char *const *grid; /* the extents of the grid, as declared */
    size_t ngrid;
    const char *const *requires_; /* what a launch must fulfil, as declared */
    size_t nrequires;
    tilec_report_work outside; /* of all loops */
    const tilec_report_mix *mix; /* in the order of the classes, those that there are */
    const char *mix_from;        /* what was counted, or why nothing was */
    const tilec_report_roof *roofs; /* the highest of the trip, else of the program, first */
    const tilec_report_hint *hints; /* the most expensive first */
    size_t nmix, nroofs, nhints;
    int main_loop;       /* the loop that `trip` of mix and roofs is of, in `loops`; -1: none */
    double unrolled;     /* trips of it in one of the mix */
    uint32_t assumed_trips;
    double cycles;       /* of a program: the highest roof, and latencies that nothing hides */
    double intensity, ridge; /* operations a byte of the second cache: of the trip or the program;
                              * where operations and bytes would take equally long */
    uint32_t length;
    uint32_t words; /* the most of `lines` */
} tilec_report_kernel;

typedef struct tilec_report {
    const char *target;
    /* the forms of one kernel are adjacent, the general one last */
    const tilec_report_kernel *kernels;
    size_t nkernels;
    const tilec_report_message *messages;
    size_t nmessages;
    /* the files of all positions, the one that was compiled first */
    const tilec_report_source *sources;
    size_t nsources;
} tilec_report;

/* NULL unless options.report is set, and for targets that have no report. */
TILEC_API const tilec_report *tilec_output_report(const tilec_output *output);

/* A launch of a kernel of the report, as far as its time depends on it. */
typedef struct tilec_report_launch {
    double programs, bytes; /* bytes: of all arrays, each once */
    /* of a parameter's axis; below 0: not known */
    int64_t (*extent)(const void *user, const char *param, uint32_t axis);
    const void *user;
} tilec_report_launch;
/* The time that it takes, in microseconds, by the roofs of the kernel and the latencies that
 * nothing hides: an estimate, good for an order of a kernel's configurations. Below 0: the rates of
 * the target are not known. */
TILEC_API double tilec_report_time(const tilec_report *report, const tilec_report_kernel *kernel,
                                   const tilec_report_launch *launch);
#endif

#ifdef __cplusplus
}
#endif
#endif
