/* CPU lowering, shared by the cpu_*.c files. Tile IR and its loop nests become LLVM IR for the
 * host: one function per kernel, which runs programs that are neighbours on the first axis.
 *
 * What a nest does has been decided before (codegen/nest/nest.h); here it is written down. Scalars
 * are LLVM values. A tile either has a home in the worker's scratch memory or is virtual: its
 * elements are computed where they are used, at a position in the loops of the nest that needs
 * them. A file calls only files that come before it in this header. The one recursion goes through
 * tl_cpu_eval_own and tl_cpu_lower_block, which let cpu_lower.c, the last file, find the code of
 * an op. */
#ifndef TL_CPU_H
#define TL_CPU_H
#include <stddef.h>

#include "codegen/gen/codegen.h"
#include "codegen/gen/gen.h"
#include "codegen/nest/nest.h"
#include "ir/rewrite.h"

/* A memory op's uniform part, computed once where the op stands. */
typedef struct TlCpuAccess {
    const TlNestAccess *a;
    LLVMValueRef ptr; /* address of the element at all-zero lane positions (views) */
    /* The same without `shift`, elements by a constant: what several accesses may share. */
    LLVMValueRef origin, shift;
    LLVMValueRef ok;  /* i1: scalar indices are inside; NULL = always */
    LLVMValueRef lo[TL_MAX_VIEW_RANK],
        hi[TL_MAX_VIEW_RANK]; /* i64: positions of a step-1 slice that are inside: [lo, hi) */
    /* i1: the bounds of an index tile are inside, so that all of it is */
    LLVMValueRef bounded[TL_MAX_VIEW_RANK];
    /* i64: its bounds, NULL: none; what of the view it may be, [low, high) */
    LLVMValueRef least[TL_MAX_VIEW_RANK], most[TL_MAX_VIEW_RANK];
    LLVMValueRef low[TL_MAX_VIEW_RANK], high[TL_MAX_VIEW_RANK];
    LLVMValueRef start[TL_MAX_VIEW_RANK];  /* i64: start of a slice */
    LLVMValueRef stride[TL_MAX_VIEW_RANK]; /* i64: elements per position (stride * step) */
    /* Of rows that may lie apart: i64, elements from one to the next; i1, they do not. */
    LLVMValueRef pitch, dense;
    TlGenView *view;
} TlCpuAccess;

/* An index that is known to be inside of its array: from it, others lie numbers known here. Whoever
 * leaves what is conditional drops the marks that were made there: they dominate nothing else. */
typedef struct TlCpuMark {
    const TlValue *base, *scalar; /* the array; the index is the scalar and the number */
    const TlBlock *block;         /* in which it is computed */
    uint32_t axis;
    int turn; /* of programs abreast; 0: of all, where it is known how the scalar grows */
    int64_t number;
    LLVMValueRef at; /* i64 */
} TlCpuMark;

/* Lanes that a function masks again and again. */
typedef struct TlCpuMask {
    LLVMValueRef function, mask;
    int width, from, to;
} TlCpuMask;

/* One of the programs that run abreast: what differs between them. */
typedef struct TlCpuTurn {
    LLVMValueRef *scalar; /* as in TlGen */
    TlGenView **view;
    TlMap access; /* as in TlCpuGen */
    LLVMValueRef pid1;
} TlCpuTurn;

typedef struct TlCpuGen TlCpuGen;
typedef struct TlCpuAt TlCpuAt;

struct TlCpuGen {
    TL_GEN_BASE;
    const TlCodegenOptions *options;
    const TlNests *plan;
    TlNestMachine m;
    LLVMValueRef ctx, params, scratch, services;
    LLVMValueRef cache_bytes;  /* i64: stores to arrays as large may stream */
    uint32_t conditional;      /* branches, forks and loops that what is built now is in */
    LLVMBasicBlockRef row, program; /* where each row of the run begins, and each program */
    LLVMValueRef pid, pid_end; /* i32: on the first axis; where the row ends */
    LLVMValueRef pid1, pid1_end; /* the same on the second axis, for the run */
    LLVMValueRef body;         /* at the end: the function that a program is in */
    /* By buffer: of small homes, and of those that are chosen in the run; NULL: not made yet. */
    LLVMValueRef *variable;
    bool whole;        /* everything is inside the arrays, as the program has asked (cpu_whole.c) */
    bool tests_lanes;  /* but along the lanes of its only nest, which tests there */
    TL_VEC(TlCpuMark) marks; /* of the program that is whole */
    TL_VEC(TlCpuMask) masks; /* that registers hold */
    TlCpuTurn *turns;        /* programs that run abreast */
    int nturns, turn;        /* of those, the one that is built now; nturns 0: there are none */
    LLVMValueRef kept; /* i64: of the home that is filled now, rows that it has; NULL: none */
    TlMap access;              /* op to TlCpuAccess */
    /* cpu_lower.c: one op, and the value of an op at a position; for cpu_eval.c alone */
    void (*lower_op)(TlCpuGen *g, TlOp *op);
    LLVMValueRef (*eval_op)(TlCpuGen *g, TlValue *v, TlCpuAt *at);
};

/* ---- the smaller and the larger of two signed numbers ---- */

static inline LLVMValueRef tl_cpu_smaller(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return tl_gen_pick(&g->gen, LLVMIntSLT, a, b, a, b);
}

static inline LLVMValueRef tl_cpu_larger(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return tl_gen_pick(&g->gen, LLVMIntSGT, a, b, a, b);
}

/* ---- positions ---- */

/* Loads of a nest's step that ask, at its end, for what lies further on (cpu_prefetch.c). */
typedef struct TlCpuFetch {
    const TlNest *nest;
    uint32_t conditional; /* where the step is built: loads in branches of it do not ask */
    int64_t first; /* of the step's vectors, the one that is loaded now */
    bool again;    /* of a row after the first: what rows share has been asked for */
    TL_VEC(const TlNestAccess *) done; /* of this vector */
    TL_VEC(LLVMValueRef) later; /* addresses */
    LLVMValueRef large; /* i1: some array is larger than a cache; NULL: that is not asked */
} TlCpuFetch;

/* What an index tile that does not go along a nest's row has in it. */
typedef struct TlCpuRowIndex {
    const TlCpuAccess *access;
    uint32_t axis;
    LLVMValueRef at, value;
} TlCpuRowIndex;

/* Of an access to rows that may lie apart: where one of them begins, counted from where vectors
 * take turns. */
typedef struct TlCpuNear {
    const TlCpuAccess *access;
    LLVMValueRef first; /* its address */
    int64_t row;
} TlCpuNear;

/* What holds in a row of a nest, all positions along the lanes. */
typedef struct TlCpuRow {
    const TlNest *nest;
    TL_VEC(TlCpuRowIndex) index;
    /* i1: stores pass by the caches; in pieces as large as a register. NULL: never. */
    LLVMValueRef streams, streams_wide;
    TL_VEC(LLVMValueRef) distance; /* of nest->next: elements to the next program's place */
    LLVMValueRef asks;             /* i1: that is in no cache; NULL: that is not asked */
    LLVMValueRef ahead;            /* the row to ask for while this one is stored; NULL: none */
    bool rows_inside;              /* of nest->forks_rows: what is built now is for that */
    bool dense; /* what is built now is for a store of rows that may lie apart, and do not */
    /* Of this turn, whose vectors follow each other, without branches between them: so many are
     * around it; -1: there is no turn. */
    int64_t turn_in;
    TL_VEC(TlCpuNear) near;
} TlCpuRow;

/* What a store that goes down columns has computed for one vector of these: of homes, by the value
 * and the row. */
typedef struct TlCpuColumn {
    int rows; /* the dimension */
    TlMap has;
    TlMap *states; /* of what slides down, by taps: of a state and a row */
} TlCpuColumn;

/* What a nest that goes down rows (TlNest.down) carries, by number of the value: of rows from its
 * own one on; and the one after those, once it is computed. */
typedef struct TlCpuDown {
    const TlNest *nest;
    LLVMValueRef *const *rows, *next;
} TlCpuDown;

/* A position in a loop nest: one scalar index per dimension; in `lane`, lanes idx, idx + 1, ...,
 * idx + width - 1. */
struct TlCpuAt {
    LLVMValueRef idx[TL_MAX_RANK]; /* i64 */
    int rank, lane, width;         /* width 1: scalars */
    bool whole; /* all that the nest has asked of is inside; it needs no tests */
    bool slides;  /* else: what slides where it is tested does so, as no start wraps */
    bool shifted; /* the first lane is any element; else their number divides its index */
    TlCpuRow *row;     /* NULL: there is none */
    TlCpuColumn *column; /* NULL: homes are in memory */
    const TlCpuDown *down;      /* NULL: values are computed at each row where they are needed, */
    int64_t ahead;              /* so many rows further on than the nest's own */
    const TlNestSpread *spread; /* lanes are elements of memory, of its window; NULL: as they are */
    TlCpuFetch *fetch; /* NULL: no load asks */
    /* An index along the lanes that is `behind` elements more than turn_from, with which rows that
     * may lie apart begin; NULL: there is none. */
    LLVMValueRef turn, turn_from;
    int64_t behind;
    TlMap memo;        /* value id to LLVMValueRef, valid at this position */
};

/* ---- cpu_stream.c ---- */

/* Does the row that begins at this address stream? Sets row->streams and row->streams_wide. */
void tl_cpu_stream_now(TlCpuGen *g, TlCpuRow *row, const TlCpuAccess *a, LLVMValueRef p);
void tl_cpu_stream_store(TlCpuGen *g, LLVMValueRef store, bool wide); /* makes a store stream */
void tl_cpu_stream_end(TlCpuGen *g); /* at the end of the run */

/* ---- cpu_keep.c ---- */

/* Before a nest fills a home whose rows stay: finds the home, and how many of its rows are there
 * (g->kept). */
void tl_cpu_keep(TlCpuGen *g, const TlNest *n);

/* ---- cpu_run.c: the function of a kernel, its loop over programs, services ---- */

/* slots: those that another function of the kernel has already, in their order; NULL: none. */
void tl_cpu_begin_kernel(TlCpuGen *g, const char *symbol, const TlSlots *slots);
void tl_cpu_end_kernel(TlCpuGen *g);
/* The function of a kernel of which as many programs as there are run several at once, by a
 * function of their own. */
void tl_cpu_call_several(TlCpuGen *g, const char *symbol, LLVMValueRef each, LLVMValueRef several);
/* The function `symbol`, which runs `folded` where the launch has what `fold`, of its plan, asks,
 * else `as_it_is`. g is of the latter's plan and has the slots of both. */
void tl_cpu_call_folded(TlCpuGen *g, const TlNestFold *fold, const char *symbol,
                        LLVMValueRef as_it_is, LLVMValueRef folded);
/* A function of programs that run abreast, each its own turn; what is built next is of the first
 * one. */
void tl_cpu_begin_abreast(TlCpuGen *g, const char *symbol, const TlSlots *slots);
void tl_cpu_take_turn(TlCpuGen *g, int turn);
/* Instead of what was built for all, these programs run one by one. */
void tl_cpu_run_single(TlCpuGen *g, LLVMValueRef single);
void tl_cpu_end_abreast(TlCpuGen *g);
/* The function of a kernel: rows of the grid abreast, as many at a time as there are so many. */
void tl_cpu_call_abreast(TlCpuGen *g, const char *symbol, LLVMValueRef single,
                         LLVMValueRef abreast);
LLVMValueRef tl_cpu_pid(TlCpuGen *g, uint32_t axis); /* i32 */
unsigned tl_cpu_length(const TlCpuGen *g); /* instructions that have been built */
/* Would the program be long if what has been built from there on were built with tests, too? */
bool tl_cpu_would_be_long(const TlCpuGen *g, unsigned from);
/* A part of the program, up to its end, as a function of its own, which is called here. */
void tl_cpu_call_part(TlCpuGen *g, const char *name, void (*build)(TlCpuGen *g));
LLVMValueRef tl_cpu_load_word(TlCpuGen *g, LLVMValueRef base, uint64_t offset, LLVMTypeRef type);
/* Calls a function of tile_cpu_services: TL_CPU_SERVICE(fail). */
#define TL_CPU_SERVICE(name) ((unsigned)(offsetof(tile_cpu_services, name) / sizeof(void *)))
LLVMValueRef tl_cpu_service(TlCpuGen *g, unsigned service, LLVMTypeRef type, LLVMValueRef *args,
                            unsigned nargs);

/* ---- cpu_table.c: after LLVM's passes ---- */

void tl_cpu_look_up(TlLlvm *l); /* functions of four bits become look-ups */

/* ---- cpu_loop.c: loops and branches ---- */

/* for (i = from; i < to; i += by), which carries values. */
typedef struct TlCpuLoop {
    LLVMValueRef i, by;               /* by: may be set anew before the end */
    LLVMValueRef carry[TL_NEST_SUMS]; /* in the loop and, once it has ended, after it */
    uint32_t ncarry;
    LLVMBasicBlockRef head, exit; /* exit NULL: the test is at the end; both: it runs once */
    int64_t end;
    uint32_t marks; /* before it */
} TlCpuLoop;
/* With bounds of the run: the test is at the beginning. */
void tl_cpu_loop_begin(TlCpuGen *g, TlCpuLoop *l, LLVMValueRef from, LLVMValueRef to, int64_t step,
                       uint32_t ncarry, const LLVMValueRef *init);
/* With constants, end > begin. */
void tl_cpu_loop_known(TlCpuGen *g, TlCpuLoop *l, int64_t begin, int64_t end, int64_t step,
                       uint32_t ncarry, const LLVMValueRef *init);
/* After the beginning: most often there is nothing to do, so registers are for other loops. */
void tl_cpu_loop_is_short(TlCpuGen *g, const TlCpuLoop *l);
void tl_cpu_loop_end(TlCpuGen *g, TlCpuLoop *l, const LLVMValueRef *next);

/* What is built next runs only where `cond` is `value`, up to the join, in blocks of
 * these names. cond NULL: always. */
typedef struct TlCpuBranch {
    LLVMBasicBlockRef from, join;
    bool counts; /* among what is conditional */
    uint32_t marks; /* before it */
} TlCpuBranch;
TlCpuBranch tl_cpu_branch(TlCpuGen *g, LLVMValueRef cond, bool value, const char *then,
                          const char *join);
/* Where from < to, which is rare: so that what the loop between them needs, which LLVM computes
 * before it, is computed there alone. */
TlCpuBranch tl_cpu_rest(TlCpuGen *g, LLVMValueRef from, LLVMValueRef to);
void tl_cpu_join(TlCpuGen *g, TlCpuBranch b);
/* The same: `then`, or where what is conditional did not run, `otherwise`. */
LLVMValueRef tl_cpu_join_value(TlCpuGen *g, TlCpuBranch b, LLVMValueRef then,
                               LLVMValueRef otherwise);
/* Of n values: x becomes what is so after the join. */
void tl_cpu_join_values(TlCpuGen *g, TlCpuBranch b, uint32_t n, LLVMValueRef *x,
                        const LLVMValueRef *otherwise);
void tl_cpu_fail(TlCpuGen *g, LLVMValueRef failed, int kind, TlLoc loc,
                 const char *text); /* when failed: report */
/* One value computed in two ways, `fast` if the condition holds; or two effects, values NULL. */
typedef struct TlCpuFork {
    LLVMBasicBlockRef slow, join, fast_end;
    LLVMValueRef fast;
    uint32_t marks; /* before it */
} TlCpuFork;
TlCpuFork tl_cpu_fork(TlCpuGen *g, LLVMValueRef cond);
TlCpuFork tl_cpu_fork_rarely(TlCpuGen *g, LLVMValueRef cond); /* the code falls through to `else` */
void tl_cpu_fork_else(TlCpuGen *g, TlCpuFork *f, LLVMValueRef fast);
LLVMValueRef tl_cpu_fork_end(TlCpuGen *g, TlCpuFork *f, LLVMValueRef slow);

/* ---- cpu_zip.c: vectors interleaved and taken apart ---- */

LLVMValueRef tl_cpu_interleave(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b,
                               int w); /* a0 b0 a1 b1 ..., w of each */
/* Elements first, first + n, ... of n vectors of w lanes, side by side, but none begins behind
 * element `last`. */
LLVMValueRef tl_cpu_every(TlCpuGen *g, const LLVMValueRef *v, int n, int w, int first, int last);
int tl_cpu_every_start(int k, int w, int last); /* the element that vector k begins with */
/* Vector m of those in which every `gap`th lane is one of x's, and the others are `between`'s. */
LLVMValueRef tl_cpu_with_gaps(TlCpuGen *g, LLVMValueRef x, LLVMValueRef between, int gap, int m);
/* Interleaves n vectors of w lanes, in their places: then they follow each other. */
void tl_cpu_zip(TlCpuGen *g, LLVMValueRef *v, int n, int w);

/* ---- cpu_home.c: homes; blocks transposed in registers ---- */

LLVMValueRef tl_cpu_scratch_at(TlCpuGen *g, uint64_t offset);
LLVMValueRef tl_cpu_home_ptr(TlCpuGen *g, int32_t buffer);
/* Bytes of the function's own, from a multiple of 64 on. */
LLVMValueRef tl_cpu_variable(TlCpuGen *g, uint64_t bytes);
LLVMValueRef tl_cpu_home_load(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                              const TlNestForm *form, TlCpuAt *at);
void tl_cpu_home_store(TlCpuGen *g, const TlType *type, LLVMValueRef base, const TlNestForm *form,
                       TlCpuAt *at, LLVMValueRef x);
/* Stores v's elements at the position in its own home. */
void tl_cpu_own_store(TlCpuGen *g, const TlValue *v, TlCpuAt *at, LLVMValueRef x);
/* May lanes of the position be behind the tile's elements? */
bool tl_cpu_may_be_padding(const TlNestForm *form, const TlCpuAt *at);
/* Lanes of the position that are elements of the tile, not padding; NULL when all are. */
LLVMValueRef tl_cpu_lane_mask(TlCpuGen *g, const TlNestForm *form, const TlCpuAt *at);
/* Index of one of the position's lanes along the lane dimension, of n elements; in the padding of
 * the nest, of the last element. */
LLVMValueRef tl_cpu_lane_index(TlCpuGen *g, const TlCpuAt *at, int lane, int32_t n);
/* Transposes w rows of w lanes in registers; w is a power of two. */
void tl_cpu_transpose(TlCpuGen *g, LLVMValueRef *rows, int w);

/* ---- cpu_permute.c: lanes in an order of the run ---- */

/* Is there an instruction for vectors of so many elements of so many bytes? */
bool tl_cpu_can_permute(const TlCpuGen *g, int bytes, int lanes);
/* Lane index[i] of x for each lane i; index: i32, within the lanes. */
LLVMValueRef tl_cpu_permute(TlCpuGen *g, LLVMValueRef x, int bytes, LLVMValueRef index);
/* The same of two vectors: from `lanes` on, the index counts in y. */
bool tl_cpu_can_permute_two(const TlCpuGen *g, int bytes, int lanes);
LLVMValueRef tl_cpu_permute_two(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y, int bytes,
                                LLVMValueRef index);

/* ---- cpu_eval.c: values at positions ---- */

void tl_cpu_at_init(TlCpuGen *g, TlCpuAt *at, int rank, int lane, int width);
/* A position of an operand, in the same row of the nest as `at`, with the same indices. */
void tl_cpu_at_under(TlCpuGen *g, TlCpuAt *sub, const TlCpuAt *at, int rank, int lane, int width);
LLVMValueRef tl_cpu_eval(TlCpuGen *g, TlValue *v, TlCpuAt *at); /* vector of at->width lanes */
LLVMValueRef tl_cpu_eval_own(TlCpuGen *g, TlValue *v, TlCpuAt *at); /* by its op, home or not */
/* The value of an op that only renames elements, or computes each from those of its operands. */
LLVMValueRef tl_cpu_eval_const(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_iota(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_broadcast(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_expand(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_trans(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_convert(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_pick(TlCpuGen *g, TlOp *op, TlCpuAt *at); /* an element of each row */
LLVMValueRef tl_cpu_eval_elements(TlCpuGen *g, TlOp *op, TlCpuAt *at);
/* So many elements of a spread value's window at a position, from number `from` of it on. */
LLVMValueRef tl_cpu_spread_elements(TlCpuGen *g, TlOp *op, const TlNestSpread *s, const TlCpuAt *at,
                                    int64_t from, int lanes);
/* Lanes at the position: element k of the window is x's number k + by. */
void tl_cpu_spread_lanes(TlCpuGen *g, const TlNestSpread *s, int width, int64_t by,
                         LLVMValueRef *lane);
void tl_cpu_lower_block(TlCpuGen *g, TlBlock *block, const TlOp *but); /* all ops but this one */

/* ---- cpu_reshape.c, cpu_gather.c, cpu_quads.c ---- */

LLVMValueRef tl_cpu_eval_reshape(TlCpuGen *g, TlOp *op, TlCpuAt *at);
/* All words (tl_nest_turned_words) at a position, which has the first one's along their axis. */
void tl_cpu_all_words(TlCpuGen *g, const TlOp *op, const TlCpuAt *at, LLVMValueRef *out);
LLVMValueRef tl_cpu_eval_gather(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_reduce(TlCpuGen *g, TlOp *op, TlCpuAt *at); /* without a nest of its own */
/* An addition that adds to sums of four products of bytes. */
LLVMValueRef tl_cpu_eval_added_quads(TlCpuGen *g, TlOp *op, TlCpuAt *at);

/* ---- cpu_fetch.c: what lies further on in memory ---- */

/* The cache line of one address; locality as LLVM counts it: 3 is for the first cache. */
void tl_cpu_prefetch_line(TlCpuGen *g, LLVMValueRef p, bool writes, unsigned locality);
/* i1: would so many arrays as it loads from be more than the last cache holds? */
LLVMValueRef tl_cpu_is_large(TlCpuGen *g, const TlCpuAccess *a, int parts);
/* A load of so many bytes; at the end of the step, its loads ask: LLVM reads nothing again that it
 * read before, as it would if they asked in between. */
void tl_cpu_fetch_later(TlCpuGen *g, TlCpuFetch *f, const TlCpuAccess *a, LLVMValueRef p,
                        int64_t bytes);
void tl_cpu_fetch_now(TlCpuGen *g, TlCpuFetch *f);

/* ---- cpu_fields.c: gathers of what lies side by side ---- */

/* One field of rows, of which the first field of each is `lanes` elements (i64) from `first` on. */
LLVMValueRef tl_cpu_load_field(TlCpuGen *g, const TlType *elem, TlNestFields f, LLVMValueRef first,
                               LLVMValueRef lanes, int width);

/* ---- cpu_access.c, cpu_load.c: where accesses lie, loads ---- */

typedef struct TlCpuSpot {
    LLVMValueRef ptr;     /* of the element or of lane 0; apart: a vector, one for each lane */
    LLVMValueRef uniform; /* i1: condition on all lanes together; NULL: true */
    LLVMValueRef mask;    /* vector of i1: condition on each lane; NULL: true */
    LLVMValueRef full;    /* i1: all lanes are inside; NULL: unknown, or not contiguous */
    LLVMValueRef row;     /* i1: something of it is inside, which `mask` says, too; NULL: unknown */
    bool apart;           /* the lanes' elements are not adjacent in memory */
    /* apart, of a view: the address of what all lanes share; elements from there, for each lane,
     * NULL: 0; of index tiles alone, numbers of which 0 is inside unless the view is empty */
    LLVMValueRef base, lanes;
    LLVMValueRef offset; /* i64, of a view: elements from its origin that all lanes share */
    bool by_tiles;
} TlCpuSpot;
TlCpuAccess *tl_cpu_prepare_access(TlCpuGen *g, TlOp *op);
TlCpuAccess *tl_cpu_access_of(TlCpuGen *g, const TlOp *op);
/* Of programs abreast, is it the axis along the lanes, where the nest tests? */
bool tl_cpu_tests_axis(const TlCpuGen *g, const TlNestAccess *a, uint32_t i);
TlCpuSpot tl_cpu_spot_at(TlCpuGen *g, const TlCpuAccess *a, TlCpuAt *at);
LLVMValueRef tl_cpu_access_address(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at);
/* The condition for accessing the element. With --check, code that reports a violation. */
LLVMValueRef tl_cpu_element_ok(TlCpuGen *g, const TlCpuAccess *a, TlCpuSpot *s);
TlType tl_cpu_elem_of(const TlType *type);
LLVMValueRef tl_cpu_lanes_inside(TlCpuGen *g, TlCpuSpot *s, int width); /* never NULL */
/* The stride from lane to lane, if only the launch knows it; NULL: it is a constant or absent. */
LLVMValueRef tl_cpu_launch_stride(const TlCpuAccess *a, int lane);
/* Addresses of n elements from `first` on, each so many of memory's elements after the last. */
void tl_cpu_stride_addresses(TlCpuGen *g, TlDtype of_memory, LLVMValueRef first,
                             LLVMValueRef stride, int n, LLVMValueRef *out);
/* i1: are the elements of all lanes adjacent? *out_first: the address of lane 0. */
LLVMValueRef tl_cpu_pointer_run(TlCpuGen *g, const TlType *elem, LLVMValueRef ptrs, int width,
                                LLVMValueRef *out_first);
LLVMValueRef tl_cpu_eval_load(TlCpuGen *g, TlOp *op, TlCpuAt *at);
LLVMValueRef tl_cpu_eval_inside(TlCpuGen *g, TlOp *op, TlCpuAt *at);
/* Words of two bytes that lie side by side (tl_nest_low_byte). */
LLVMValueRef tl_cpu_eval_words(TlCpuGen *g, TlOp *op, TlCpuAt *at);
/* At the beginning of a nest's row: index tiles that do not go along it are read once for all of
 * it. */
void tl_cpu_read_rows(TlCpuGen *g, TlCpuRow *row, TlCpuAt *at);

/* Numbers of i32 end at 2^31: what is behind is outside, whatever the extent. */
LLVMValueRef tl_cpu_affine_extent(TlCpuGen *g, const TlNestAffine *f, LLVMValueRef extent);

/* ---- cpu_range.c: between which numbers scalars are (nest_range.c) ---- */

typedef struct TlCpuRange {
    LLVMValueRef lo, hi; /* i64, both inside; the same value: it is one number */
} TlCpuRange;
/* Of some scalars, where the program begins. */
typedef struct TlCpuRanges {
    LLVMValueRef hold; /* i1: no number between the ends wraps; NULL: none can */
    TlMap seen;        /* value to TlCpuRange */
} TlCpuRanges;
TlCpuRange tl_cpu_range(TlCpuGen *g, TlCpuRanges *r, const TlValue *v);
/* Of the first element of an index tile. */
TlCpuRange tl_cpu_affine_range(TlCpuGen *g, TlCpuRanges *r, const TlNestAffine *f);

/* ---- cpu_whole.c: programs of which everything is inside ---- */

/* Of an array of which a part may be copied (cpu_frame.c): where along each axis that begins and
 * ends, i64; NULL: nothing is loaded. */
typedef struct TlCpuPart {
    LLVMValueRef lo[TL_MAX_VIEW_RANK], end[TL_MAX_VIEW_RANK];
} TlCpuPart;
typedef struct TlCpuWhole {
    LLVMValueRef inside, rest; /* i1: are loads of these arrays inside, is all else? */
    TlCpuPart *part;           /* by the number of the frame */
} TlCpuWhole;
LLVMValueRef tl_cpu_is_whole(TlCpuGen *g); /* i1: is it? */
TlCpuWhole tl_cpu_ask_whole(TlCpuGen *g);

/* ---- cpu_frame.c: parts of arrays that are copied with their border (nest_frame.c) ---- */

void tl_cpu_frame_add(TlCpuGen *g, TlCpuWhole *w, const TlNestFrame *f, uint32_t axis,
                      TlCpuRange start, int64_t span);
/* i1: may the code for programs of which all is inside run, with copies where it is not? */
LLVMValueRef tl_cpu_may_frame(TlCpuGen *g, const TlCpuWhole *w);
/* Copies where that is needed, and from here on, loads are of the copies. Returns the views that
 * they were of, for tl_cpu_leave_frames. */
TlGenView **tl_cpu_enter_frames(TlCpuGen *g, const TlCpuWhole *w);
void tl_cpu_leave_frames(TlCpuGen *g, TlGenView **views);

/* ---- cpu_prefetch.c: rows of the next program ---- */

void tl_cpu_prefetch_begin(TlCpuGen *g, TlCpuRow *row); /* before the nest */
/* At each step of a reduction's loops but the innermost: what the next trip of a loop will copy. */
/* Where the next trip of a loop will go on storing in the same row. */
void tl_cpu_prefetch_part(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at);
void tl_cpu_prefetch_trip(TlCpuGen *g, const TlNest *n, const TlCpuAt *at);
/* At the first position of a row, before it is stored; at each position where all is inside, in a
 * branch where row->asks. */
void tl_cpu_prefetch_store(TlCpuGen *g, TlCpuRow *row, const TlCpuAt *first);
void tl_cpu_prefetch(TlCpuGen *g, const TlCpuAt *at);

/* ---- cpu_sliding.c: windows that slide along the lanes ---- */

/* Those that the loop at the position carries. */
uint32_t tl_cpu_sliding_states(const TlCpuGen *g, const TlCpuAt *at);
/* i1: do starts of taps follow each other? Then these slide where they are tested. NULL: they never
 * do. */
LLVMValueRef tl_cpu_sliding_tested(TlCpuGen *g, const TlNest *n);
/* The states before the vector at `begin`, where all is inside. */
void tl_cpu_sliding_begin(TlCpuGen *g, const TlCpuAt *outer, LLVMValueRef begin,
                          LLVMValueRef *state);
/* At a row of a column: computes what slides down, which the position then has. */
void tl_cpu_sliding_down(TlCpuGen *g, TlCpuAt *at);
uint32_t tl_cpu_taps_down(const TlNest *n); /* taps that slide so */
/* i1: do starts of such taps follow each other, where bounds keep them inside? */
LLVMValueRef tl_cpu_sliding_follows(TlCpuGen *g, const TlNest *n);
/* At a vector: computes what slides, which the position then has, and the states behind it. */
void tl_cpu_sliding_step(TlCpuGen *g, TlCpuAt *at, LLVMValueRef *state);

/* ---- cpu_nest.c: the loops of a nest ---- */

/* What is inside the arrays that a nest accesses: of its lanes, along its other dimensions. */
typedef struct TlCpuBounds {
    LLVMValueRef end;     /* i64, a multiple of the width: lanes 0 .. end - 1 are inside; NULL: the
                           * nest is not split */
    LLVMValueRef begin;   /* i64, the same: those from here on; NULL: from 0 */
    LLVMValueRef all; /* i1: end is the extent, so that the last vector overlaps; NULL: never */
    LLVMValueRef last;    /* from here on nothing is stored; NULL: not so */
    LLVMValueRef outside; /* from here on nothing is inside; NULL: not known */
    /* Positions from .. to - 1 of each dimension are visited; `to` NULL: all. */
    LLVMValueRef from[TL_MAX_RANK], to[TL_MAX_RANK];
    /* At other positions than low .. high - 1 of a dimension nothing of a row is inside as a whole,
     * and its end is 0; NULL: it is as of all. (TlNest.by_row) */
    LLVMValueRef low[TL_MAX_RANK], high[TL_MAX_RANK];
} TlCpuBounds;
/* step: lanes that the loop where all is inside takes at a time */
TlCpuBounds tl_cpu_bounds(TlCpuGen *g, const TlNest *n, int64_t step);
/* Loops over the dimensions of a form, which set the position's indices: one position at a time
 * or, along its lanes, one vector. The caller gives `skip`, `dim` and `bounds` (NULL: everything).
 * Each position along `dim` stands for `step` of them; where the extent is no multiple, the last
 * ones overlap. */
typedef struct TlCpuLoops {
    int skip, dim; /* -1: none */
    bool skips_lanes;
    bool one_row; /* there is no loop over the rows: the position is one of them */
    int64_t step;
    const TlCpuBounds *bounds;
    int rank, lane;
    TlCpuLoop loop[TL_MAX_RANK];
} TlCpuLoops;
void tl_cpu_loops_begin(TlCpuGen *g, TlCpuLoops *loops, const TlNestForm *form, TlCpuAt *at);
void tl_cpu_loops_end(TlCpuGen *g, TlCpuLoops *loops);
/* Runs body at each position of the nest, lanes in its lane dimension (padding included when width
 * > 1). */
typedef void (*TlCpuBody)(TlCpuGen *g, TlCpuAt *at, void *user);
void tl_cpu_nest(TlCpuGen *g, const TlNest *n, TlCpuBody body, void *user);
/* The same for programs abreast, of which all is inside: each position, turn by turn. */
void tl_cpu_nest_abreast(TlCpuGen *g, const TlNest *n, TlCpuBody body, void *user);

/* ---- one file for each kind of nest ---- */

void tl_cpu_fill(TlCpuGen *g, const TlNest *n);   /* cpu_fill.c: FILL, TURN, COPY, PICK */
void tl_cpu_store(TlCpuGen *g, const TlNest *n);  /* cpu_store.c */
void tl_cpu_store_abreast(TlCpuGen *g);           /* the only nest of programs that run abreast */
void tl_cpu_atomic(TlCpuGen *g, const TlNest *n); /* cpu_atomic.c */
void tl_cpu_reduce(TlCpuGen *g, const TlNest *n); /* cpu_reduce.c: REDUCE, SCAN */
void tl_cpu_histogram(TlCpuGen *g, const TlNest *count, const TlNest *add); /* cpu_histogram.c */
void tl_cpu_dot(TlCpuGen *g, const TlNest *n);                              /* cpu_dot.c */
/* cpu_matmul.c. The loop, whose result's home holds what is added to: n iterations from k = lo on
 * by `by`. */
void tl_cpu_product(TlCpuGen *g, const TlNest *nest, LLVMValueRef lo, LLVMValueRef by,
                    LLVMValueRef n);
void tl_cpu_lone_product(TlCpuGen *g, const TlNest *nest); /* a DOT by an instruction */
#endif
