/* tilec_report.h: what the compiler tells of kernels that it made (libtilec). Unstable: it may
 * change in every version. C11, clean C++.
 *
 * Facts about compiled kernels from the compiler, the target's own tools and tables of the
 * hardware; tilec explain prints them. Everything belongs to the output. Texts are never NULL.
 *
 * `order`, `first`, `last`: positions in the program that the kernel has become, from 0 to
 * `length`. `share`: of the iterations of the innermost loop (without one: of the runs), those in
 * which it happens, in percent: 50 in an arm of an if; of a copy with two versions, 100 for the one
 * that is completely in bounds and 0 for the other. */
#ifndef TILEC_REPORT_H
#define TILEC_REPORT_H
#include "tilec.h"

#define TILEC_REPORT_VERSION TILEC_VERSION

#ifdef __cplusplus
extern "C" {
#endif

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
    uint32_t ahead; /* iterations before that for which it reads, in a pipelined loop */
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

/* Until all asynchronous copies but those of the latest `pending` iterations have arrived. */
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
    /* of unknown iterations: (extent of the axis of the parameter - less) / step, rounded up; NULL:
     * they do not depend on an extent in this way */
    const char *param;
    uint32_t axis;
    int64_t less, step;
    uint32_t first, last, stages; /* stages: of its pipeline; 0: it has none */
    tilec_report_work each;
    uint32_t made; /* 1: it is none of the source, but how an operation is done (`how`) */
} tilec_report_loop;

/* Instructions of a warp, of one class; where a class is counted by width, of one width. */
typedef struct tilec_report_mix {
    const char *name;
    uint32_t width; /* bytes of a thread; 0: the class is not counted by width, or it is not told */
    /* in the whole text; on the shortest way round the main loop; on the shortest way to that loop
     * and from it to the end (without a loop: all), apart from what of it is in the innermost loop
     * around that loop: `around` */
    uint32_t all, trip, rest, around;
} tilec_report_mix;

/* The least time that a part of the hardware needs, if nothing else limited: cycles of a
 * multiprocessor for one block. */
typedef struct tilec_report_roof {
    const char *name, *advice; /* advice: what moves it */
    double trip;    /* of the main loop; 0: there is none */
    double program; /* of all; loops of unknown iterations go round `assumed_trips` times */
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
    const tilec_report_roof *roofs; /* the highest of the iteration, else of the program, first */
    const tilec_report_hint *hints; /* the most expensive first */
    size_t nmix, nroofs, nhints;
    int main_loop;       /* the loop that `trip` of mix and roofs is of, in `loops`; -1: none */
    double unrolled;     /* iterations of it in one of the mix */
    uint32_t assumed_trips;
    double cycles;       /* of a program: the highest roof, and latencies that nothing hides */
    double intensity, ridge; /* operations a byte of the second cache: of iteration or program;
                              * where operations and bytes would take equally long */
    uint32_t length;
    uint32_t words; /* the most of `lines` */
    int registers_estimated; /* that a thread is expected to have, by the compiler's own estimate */
    int registers_limit;     /* what PTX says that ptxas may take; 0: it says nothing, */
    const char *registers_limit_why; /* "" then */
    uint32_t working_warps; /* `warps` without those that do nothing but begin copies; 0: all */
    uint32_t offsets_not_kept; /* of accesses in loops, too many for registers: each is computed
                                * where it is used; 0: loops keep them */
    const char *sparing_why; /* why tiles wait in shared memory (park-tiles); "": none does */
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

#ifdef __cplusplus
}
#endif
#endif
