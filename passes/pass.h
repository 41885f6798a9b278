/* Passes over tile IR and their runner. A pass is one file, one function, one row of passes.def,
 * one lit folder. IR is valid before and after each pass. Pipelines are lists of names
 * (codegen/target/pipeline.def). */
#ifndef TL_PASS_H
#define TL_PASS_H
#include "ir/interp/interp.h"
#include "ir/ir.h"
#include "ir/rewrite.h"

/* FAILED: a diagnostic was given */
typedef enum TlPassResult { TL_SAME, TL_CHANGED, TL_FAILED } TlPassResult;

/* What passes of the laid-out level must know of the machine (runtime/contract/gpu.def has the
 * rows). */
typedef struct TlMachine {
    const char *name;      /* "sm_80" */
    int lanes;             /* of a warp; a power of two */
    int warps;             /* of a kernel that does not say; 0: by its tiles (default_warps.h) */
    uint32_t shared_bytes; /* of one block, at most */
    uint64_t stress;       /* --stress-layouts=SEED; 0: off */
    /* families of matrix instructions (ir/plan/mma.def), by spaces; NULL: none */
    const char *matrix;
    bool copies;          /* from global to shared memory without registers (cp.async) */
    bool copies_rows;     /* ... a warp's are a row of its lanes' 16 bytes */
    bool fills;           /* ... and gives zeros where it is told to, at no cost */
    bool matrices;        /* besides copies, reads of warps of 32, transposing or not (ldmatrix) */
    bool matrix_8;        /* ldmatrix and stmatrix of bytes, transposed */
    bool columns;         /* reads of shared memory that transpose among 16 lanes */
    bool warpgroups;      /* products of operands in shared memory, which go on beside the code:
                           * by four warps (wgmma), or by one thread, into */
    bool tensor;          /* ... tensor memory (tcgen05), */
    bool tensor_i8;       /* of i8, too */
    bool tensor_scaled;   /* with scales of blocks, too */
    bool bulk;            /* copies of whole boxes by one thread, and barriers that count them */
    bool multicast;       /* ... that bring them to all programs of a cluster */
    bool roles;           /* warps that need few registers give them to others */
    int registers;        /* of a thread, 32 bits each; 0: not known */
    int file, schedulers; /* registers of a scheduler for a lane, and their number; 0: not known */
    int wavefront;        /* instructions begun while shared memory moves 128 bytes; 0: not known */
    /* of a multiprocessor in a cycle; 0: not known: */
    int products;         /* multiply-adds of 16 bits, by instructions of a warp, */
    int most_products;    /* ... by those of warpgroups, and into tensor memory */
    int special;          /* lanes of special functions */
    bool pairs;           /* two f32 are added or multiplied by one instruction */
    bool reads_early;     /* LLVM schedules the code, and reads shared memory as early as it can */
    bool check;           /* --check: `unchecked` accesses are tested too */
    int stages;           /* --stages: of all pipelined loops; 0: as they and the kernel say */
    /* texts of forms (ir/form.h), at most TL_MAX_FORMS, with ; between them; NULL: as
     * add-variants says */
    const char *forms;
} TlMachine;

typedef struct TlAnalyses TlAnalyses;

typedef struct TlPassCtx {
    TlCtx *ctx;
    TlArena *scratch;    /* reset after each pass */
    const char *options; /* the text in pass{...}, or NULL */
    const char *behind;  /* the passes that follow, as a pipeline's text */
    /* for passes that show what they think; may be NULL */
    void (*print)(void *user, const char *text);
    void *user;
    const TlMachine *machine; /* never NULL; tile-opt without --target: 32 lanes, 4 warps, 48 KiB */
    /* of the function, the runner's; NULL: each is computed when asked for */
    TlAnalyses *analyses;
} TlPassCtx;

/* Analyses that the runner keeps from one pass to the next while they hold (passes.def). */
typedef enum TlAnalysis {
    TL_AN_NONE = 0,
    TL_AN_AXIS = 1 << 0 /* axis-info (passes/analysis/axis_info.h) */
} TlAnalysis;

/* The axis-info of the function as it was when the pass began: ask before the first edit. Only for
 * passes whose row says that they need it; it lives until the pass ends. */
const struct TlAxisInfo *tl_pass_axis_info(const TlFn *fn, TlPassCtx *px);

typedef struct TlPassInfo {
    const char *name;
    TlPassResult (*run)(TlFn *fn, TlPassCtx *px); /* one of these */
    TlPassResult (*run_module)(TlModule *m, TlPassCtx *px);
    unsigned needs, keeps; /* of TlAnalysis */
    const char *doc;
} TlPassInfo;

#define PASS(ident, ...)        TlPassResult tl_pass_##ident(TlFn *fn, TlPassCtx *px);
#define MODULE_PASS(ident, ...) TlPassResult tl_pass_##ident(TlModule *m, TlPassCtx *px);
#include "passes/passes.def"

uint32_t tl_pass_count(void);
const TlPassInfo *tl_pass_at(uint32_t i);

typedef struct TlRunOptions {
    const char *print_after;                  /* a pass's name, "all", or NULL */
    const char *dump_dir;                     /* writes NN-pass.tir; NULL */
    const char *stop_after, *skip, *override; /* as tile-opt --help says */
    const char *skip_too;     /* other names that `skip` may have, "a,b"; NULL: none */
    const char *around;       /* passes that run in spite of stop_after, "a,b"; NULL: none */
    int bisect;               /* run only the first n pass executions; -1 = all */
    const TlMachine *machine; /* NULL: see TlPassCtx */
    bool verify_each, time_passes;
    void (*print)(void *user, const char *text); /* where print_after and time_passes go */
    void *user;
    const char *crash_dir; /* where a reproducer goes when a pass fails; NULL = none */
} TlRunOptions;

/* A module of a copy of the function alone; tl_module_free. Runs the passes behind the one that
 * asks over such a copy, but for one (NULL: all), up to another; nothing that they say remains.
 * False when a pass failed. */
TlModule *tl_copy_for_trial(TlFn *fn);
bool tl_run_trial(TlModule *copy, TlPassCtx *px, const char *skip, const char *stop_after);

/* Runs `pipeline` ("fuse-fma,canonicalize,cse{opt=1}") over every function. False when a pass
 * failed. */
bool tl_run_passes(TlModule *m, const char *pipeline, const TlRunOptions *options);
#endif
