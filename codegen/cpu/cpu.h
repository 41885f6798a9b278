/* CPU lowering: shared by the cpu_*.c files. tile IR -> LLVM IR for the host, one function per
 * kernel that runs programs that are neighbours on the first axis.
 *
 * Every tile value has a placement (codegen/nest/nest_place.c): a home in the worker's scratch
 * memory, or none ("virtual": its elements are computed where they are used, inside the loop nest
 * of their root). Scalars are LLVM values. A loop nest runs over a shape with one dimension in
 * vectors of `width` lanes; evaluating a value at a position (At) gives one vector of lanes. */
#ifndef TL_CPU_H
#define TL_CPU_H
#include <stddef.h>

#include "codegen/gen/codegen.h"
#include "codegen/gen/gen.h"
#include "codegen/nest/nest.h"
#include "ir/rewrite.h"
#include "passes/analysis/axis_info.h"

/* ---- code generation ---- */
/* A memory op's uniform part, computed once where the op stands. */
typedef struct TlCpuAccess {
    TlPlace place;
    LLVMValueRef ptr; /* address of the element at all-zero lane positions (views) */
    /* The same without `shift`, elements by a constant: what several accesses may share. */
    LLVMValueRef origin, shift;
    LLVMValueRef ok;  /* i1: scalar indices are inside; NULL = always */
    LLVMValueRef lo[TL_MAX_VIEW_RANK],
        hi[TL_MAX_VIEW_RANK]; /* i64: positions of a step-1 slice that are inside: [lo, hi) */
    LLVMValueRef start[TL_MAX_VIEW_RANK];  /* i64: start of a slice */
    LLVMValueRef stride[TL_MAX_VIEW_RANK]; /* i64: elements per position (stride * step) */
    int dim[TL_MAX_VIEW_RANK]; /* tile dimension of a slice or index tile, -1 for scalars */
    /* In a nest's row: what an index tile has at this position of its dimension; NULL: not known */
    LLVMValueRef row[TL_MAX_VIEW_RANK], row_at[TL_MAX_VIEW_RANK];
    TlGenView *view;
    int param;
    bool whole;  /* where the nest is now, all slices are inside (cpu_inside.c) */
    bool fetches;  /* the next load asks for what lies further on (cpu_prefetch.c) */
    bool was_read; /* by an earlier nest */
    /* i1: where the nest is now, stores pass by the caches; in pieces as large as a register, not
     * of 16 bytes. NULL: never. */
    LLVMValueRef streams, streams_wide;
    bool bounds; /* test bounds; false for unchecked without --check */
    bool asks;   /* --check: the runtime is asked for each address */
    bool loads;
    LLVMValueRef distance; /* in elements, to the same place of the next program; NULL: not known */
    LLVMValueRef ahead;    /* the row to ask for while this one is stored; NULL: none */
} TlCpuAccess;

typedef struct TlCpuGen {
    TL_GEN_BASE;
    const TlCodegenOptions *options;
    TlNests *plan;
    const TlAxisInfo *axis;
    LLVMValueRef ctx, params, scratch, services;
    LLVMBasicBlockRef program; /* where each program of the run begins */
    LLVMValueRef pid, pid_end; /* i32: on the first axis; where the run ends */
    LLVMValueRef body;         /* at the end: the function that a program is in */
    LLVMValueRef cache_bytes;  /* i64: stores to arrays as large may stream */
    bool *in_cache;            /* by parameter: its stores may not */
    bool streams;              /* some store does */
    TL_VEC(TlCpuAccess *) next; /* read by an earlier nest: cpu_prefetch.c */
    bool prefetched;            /* this nest asked for them */
    TL_VEC(LLVMValueRef) later; /* addresses that the position will ask for */
    bool later_light;           /* for the second cache, if what they are of is larger: */
    LLVMValueRef later_large;   /* i1; NULL: nothing asks */
    int nested;                 /* loops and branches around where we are */
    TlMap access;     /* op to TlCpuAccess */
    TlMap stored;     /* store to the product that may have done it */
    TlNestMachine m;
    LLVMValueRef *variable; /* by buffer: of small homes; NULL: not made yet */
    TlLoc loc;
} TlCpuGen;

/* A position in a loop nest: one scalar index per dimension; in `lane`, lanes idx, idx + 1, ...,
 * idx + width - 1. */
typedef struct TlCpuAt {
    LLVMValueRef idx[TL_MAX_RANK]; /* i64 */
    int rank, lane, width;         /* width 1: scalars */
    TlMap memo;                    /* value id to LLVMValueRef, valid at this position */
} TlCpuAt;

/* cpu_run.c: the function of a kernel and its loop over programs */
void tl_cpu_begin_kernel(TlCpuGen *g, const char *symbol);
void tl_cpu_end_kernel(TlCpuGen *g);
LLVMValueRef tl_cpu_load_word(TlCpuGen *g, LLVMValueRef base, uint64_t offset, LLVMTypeRef type);

/* cpu_eval.c: values at positions, loop nests, homes */
typedef struct TlCpuLoop {
    LLVMBasicBlockRef entry, body;
    LLVMValueRef iv;
    int64_t step, end;
    bool single;
    uint32_t ncarry;
    LLVMValueRef carry[64];
} TlCpuLoop;
TlCpuLoop tl_cpu_loop_begin(TlCpuGen *g, int64_t begin, int64_t end,
                            int64_t step); /* end > begin, both constants */
LLVMValueRef
tl_cpu_loop_carry(TlCpuGen *g, TlCpuLoop *loop,
                  LLVMValueRef init); /* a phi; give its next value to tl_cpu_loop_end */
void tl_cpu_loop_end(
    TlCpuGen *g, TlCpuLoop *loop,
    LLVMValueRef *next); /* next: ncarry values; replaced by the values after the loop */

/* for (i = from; i < to; i += step), with bounds of the run, which carries values. */
enum { TL_CPU_CARRY = 64 };
typedef struct TlCpuRange {
    LLVMBasicBlockRef head, exit;
    LLVMValueRef i, carry[TL_CPU_CARRY]; /* phis: in the loop and after it */
    uint32_t ncarry;
} TlCpuRange;
void tl_cpu_range_begin(TlCpuGen *g, TlCpuRange *range, LLVMValueRef from, LLVMValueRef to,
                        uint32_t ncarry, const LLVMValueRef *init);
/* After the beginning: most often there is nothing to do, so registers are for other loops. */
void tl_cpu_range_is_short(TlCpuGen *g, const TlCpuRange *range);
void tl_cpu_range_end(TlCpuGen *g, TlCpuRange *range, int64_t step, const LLVMValueRef *next);
void tl_cpu_range_end_by(TlCpuGen *g, TlCpuRange *range, LLVMValueRef step,
                         const LLVMValueRef *next);

/* cpu_hide.c: after LLVM's passes. What an address that loops share was computed from stays out of
 * the sight of code generation. */
void tl_cpu_hide_addresses(TlLlvm *l);
/* cpu_table.c: after LLVM's passes. Functions of four bits become look-ups. */
void tl_cpu_look_up(TlLlvm *l);
/* cpu_masked.c: after those. Masked accesses without an instruction are few, or calls. */
void tl_cpu_share_masked(TlLlvm *l);

void tl_cpu_at_init(TlCpuGen *g, TlCpuAt *at, int rank, int lane, int width);
LLVMValueRef tl_cpu_eval(TlCpuGen *g, TlValue *v, TlCpuAt *at); /* vector of at->width lanes */
LLVMValueRef tl_cpu_eval_op(TlCpuGen *g, TlValue *v,
                            TlCpuAt *at); /* the same from its op, whatever its placement */
int tl_cpu_chain_width(TlCpuGen *g, TlValue *v,
                       int limit); /* lanes that suit the virtual chain under v */
int tl_cpu_define_width(TlCpuGen *g, TlValue *v, int limit); /* the same from v's own op */
/* Positions from .. to - 1 of each dimension; `to` NULL: all. */
typedef struct TlCpuBox {
    LLVMValueRef from[TL_MAX_RANK], to[TL_MAX_RANK];
} TlCpuBox;
/* Loops over the dimensions of a form, which set the position's indices: one position at a time
 * or, along its lanes, one vector. The caller gives `skip`, `dim` and `box` (NULL: everything).
 * Each position along `dim` stands for `step` of them; where the extent is no multiple, the last
 * ones overlap. */
typedef struct TlCpuLoops {
    int skip, dim; /* -1: none */
    int64_t step;
    const TlCpuBox *box;
    int rank;
    TlCpuLoop loop[TL_MAX_RANK];
    TlCpuRange range[TL_MAX_RANK]; /* instead of `loop`, where the box is bounded */
} TlCpuLoops;
void tl_cpu_loops_begin(TlCpuGen *g, TlCpuLoops *loops, const TlNestForm *form, TlCpuAt *at);
void tl_cpu_loops_end(TlCpuGen *g, TlCpuLoops *loops);
/* Runs body for each position of `type`'s shape, lanes in its lane dimension (padding included
 * when width > 1). */
typedef void (*TlCpuBody)(TlCpuGen *g, TlCpuAt *at, void *user);
void tl_cpu_nest(TlCpuGen *g, const TlType *type, int width, TlCpuBody body, void *user);
/* The same, in in->box, the lane dimension split at `end` (a multiple of width, NULL: not split):
 * before it, what `in` has is inside. */
struct TlCpuInside;
void tl_cpu_nest_split(TlCpuGen *g, const TlType *type, int width, struct TlCpuInside *in,
                       LLVMValueRef end, TlCpuBody body, void *user);
/* How many of a nest's lanes to take where elements are tested: as many as one register has
 * indices. Masks of more take LLVM twice the time, for lanes that are few. */
int tl_cpu_tested_width(const TlCpuGen *g, int width);
LLVMValueRef tl_cpu_home_ptr(TlCpuGen *g, int32_t buffer);
void tl_cpu_define(TlCpuGen *g, TlValue *v); /* computes v from its op into its home */
void tl_cpu_materialise(
    TlCpuGen *g, TlValue *v,
    int32_t buffer); /* all elements of v into a home; nothing when that is v's own */
void tl_cpu_materialise_as(TlCpuGen *g, TlValue *v, TlDtype dtype,
                           int32_t buffer); /* converted to dtype on the way */
LLVMValueRef tl_cpu_home_load(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                              const TlNestForm *form, TlCpuAt *at);
void tl_cpu_home_store(TlCpuGen *g, const TlType *type, LLVMValueRef base, const TlNestForm *form,
                       TlCpuAt *at, LLVMValueRef x);
/* Transposes w rows of w lanes in registers; w is a power of two. tl_cpu_turn_width: as many as
 * registers hold well. */
enum { TL_CPU_TURN = 16 };
void tl_cpu_turn(TlCpuGen *g, LLVMValueRef *rows, int w);
int tl_cpu_turn_width(const TlCpuGen *g, TlDtype dtype);
/* Lanes of the position that are elements of the tile, not padding; NULL when all are. */
LLVMValueRef tl_cpu_lane_mask(TlCpuGen *g, const TlNestForm *form, const TlCpuAt *at);

/* Index of one of the position's lanes along the lane dimension, of n elements; in the padding of
 * the nest, of the last element. */
LLVMValueRef tl_cpu_lane_index(TlCpuGen *g, const TlCpuAt *at, int lane, int32_t n);

/* cpu_reshape.c */
LLVMValueRef tl_cpu_eval_reshape(TlCpuGen *g, const TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_interleave(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b,
                               int w); /* a0 b0 a1 b1 ..., w of each */

/* cpu_access.c */
void tl_cpu_prepare_access(TlCpuGen *g, TlOp *op);
LLVMValueRef tl_cpu_eval_load(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_inside(TlCpuGen *g, TlOp *op, TlCpuAt *at);
void tl_cpu_lower_store(TlCpuGen *g, TlOp *op);
int tl_cpu_access_width(TlCpuGen *g, TlOp *op, int limit);
bool tl_cpu_is_contiguous(const TlCpuAccess *a, int lane); /* elements lie side by side along it */
/* At the beginning of a nest's row: index tiles that do not go along it are read once for all of
 * it. At its end, at NULL. */
void tl_cpu_read_rows(TlCpuGen *g, const struct TlCpuInside *in, const TlCpuAt *at);
LLVMValueRef tl_cpu_access_address(TlCpuGen *g, TlCpuAccess *a, const TlCpuAt *at);
/* Calls a function of tile_cpu_services: TL_CPU_SERVICE(fail). */
#define TL_CPU_SERVICE(name) ((unsigned)(offsetof(tile_cpu_services, name) / sizeof(void *)))
LLVMValueRef tl_cpu_service(TlCpuGen *g, unsigned service, LLVMTypeRef type, LLVMValueRef *args,
                            unsigned nargs);
void tl_cpu_fail(TlCpuGen *g, LLVMValueRef failed, int kind, TlLoc loc,
                 const char *text); /* when failed: report */

/* cpu_atomic.c */
void tl_cpu_lower_atomic(TlCpuGen *g, TlOp *op);

/* cpu_inside.c: begin; name values that a nest evaluates, and its store, with the dimension of each
 * that the nest's lanes are along (own: by its op although it has a home); end. */
typedef struct TlCpuInside {
    TL_VEC(TlCpuAccess *) accesses;
    TlMap seen;
    uint32_t nvalues;
    LLVMValueRef end;
    TlCpuAccess *store; /* what the nest stores; NULL: nothing */
    bool may_stream;    /* it may pass by the caches */
    TlCpuBox box;       /* outside of it the nest has nothing to do */
    LLVMValueRef last;  /* nor from here on along the lanes; NULL: it has everywhere */
    LLVMValueRef outside; /* from here on along the lanes nothing is inside; NULL: not asked */
    bool differs;         /* values may differ there, as they depend on more than what is inside */
} TlCpuInside;
void tl_cpu_inside_begin(TlCpuGen *g, TlCpuInside *in);
void tl_cpu_inside_value(TlCpuGen *g, TlCpuInside *in, TlValue *v, int lane, bool own);
/* What else the nest accesses. */
void tl_cpu_inside_access(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane);
/* What the nest stores: it has nothing to do where that is outside. */
void tl_cpu_inside_store(TlCpuGen *g, TlCpuInside *in, const TlOp *op, int lane);
/* i64, a multiple of width: positions 0 .. end - 1 of `extent` are inside. NULL: there is nothing
 * to ask. */
LLVMValueRef tl_cpu_inside_end(TlCpuGen *g, TlCpuInside *in, int64_t extent, int width);
/* Before code for these positions is made, true; after it, false. */
void tl_cpu_inside_set(TlCpuInside *in, bool whole);

/* cpu_stream.c: once for the kernel; for a store of vectors of `width` that computes `nvalues`
 * values; sets a->streams and a->streams_wide for the row that begins at this address; makes a
 * store stream; at the end of the run. */
void tl_cpu_stream_plan(TlCpuGen *g);
bool tl_cpu_may_stream(const TlCpuGen *g, const TlCpuAccess *a, int width, uint32_t nvalues);
void tl_cpu_stream_now(TlCpuGen *g, TlCpuAccess *a, int width, LLVMValueRef row);
void tl_cpu_stream_store(TlCpuGen *g, LLVMValueRef store, bool wide);
void tl_cpu_stream_end(TlCpuGen *g);

/* cpu_prefetch.c: after a nest, what it read; before a later one over `type` that stores, at its
 * first position; in it, at a position where all is inside (store: NULL if it stores nothing).
 * nvalues: as many values does the nest compute. */
void tl_cpu_prefetch_note(TlCpuGen *g, const TlCpuInside *in);
void tl_cpu_prefetch_store(TlCpuGen *g, const TlType *type, const TlCpuAt *first,
                           TlCpuAccess *store, uint32_t nvalues);
void tl_cpu_prefetch(TlCpuGen *g, const TlType *type, const TlCpuAt *at, const TlCpuAccess *store,
                     uint32_t nvalues);
/* In a nest that computes many values for each vector: before the vectors at `first` of a loop's
 * step are loaded, loads will ask for what lies further on, once for each line, if other programs
 * read other places and no earlier nest read it; such a load of so many bytes; at the end of the
 * step, they ask: LLVM reads nothing again that it read before, as it would if they asked in
 * between. */
void tl_cpu_prefetch_streams(TlCpuGen *g, const TlCpuInside *in, int64_t first, uint32_t values);
void tl_cpu_prefetch_later(TlCpuGen *g, TlCpuAccess *a, LLVMValueRef p, int64_t bytes);
void tl_cpu_prefetch_now(TlCpuGen *g, const TlCpuInside *in);
/* The cache line of one address; locality as LLVM counts it: 3 is for the first cache. */
void tl_cpu_prefetch_line(TlCpuGen *g, LLVMValueRef p, bool writes, unsigned locality);

/* cpu_reduce.c, cpu_dot.c */
void tl_cpu_lower_reduce(TlCpuGen *g, TlOp *op);
/* Fills v's home and reduces over it in one pass (plan->fused). */
void tl_cpu_define_and_reduce(TlCpuGen *g, TlValue *v, TlOp *reduce);
void tl_cpu_lower_scan(TlCpuGen *g, TlOp *op);
void tl_cpu_lower_dot(TlCpuGen *g, TlOp *op);

/* cpu_histogram.c */
void tl_cpu_lower_histogram(TlCpuGen *g, TlOp *op);

/* cpu_matmul.c */
/* The loop, whose result's home holds what is added to: n trips from k = lo on by `by`. */
void tl_cpu_lower_product(TlCpuGen *g, const TlNestProduct *p, LLVMValueRef lo, LLVMValueRef by,
                          LLVMValueRef n);
/* i1: a product has done the store; NULL: none would. */
LLVMValueRef tl_cpu_is_stored(TlCpuGen *g, const TlOp *store);

/* cpu_lower.c */
void tl_cpu_lower_block(TlCpuGen *g, TlBlock *block); /* all ops but the terminator */
void tl_cpu_lower_op(TlCpuGen *g, TlOp *op);
#endif
