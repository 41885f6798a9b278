/* Loop nests: the level between tile IR and LLVM on the CPU. Here is decided what the code does;
 * codegen/cpu writes it down. No file of this folder makes a value of LLVM's. */
#ifndef TL_NEST_H
#define TL_NEST_H
#include "codegen/gen/gen.h"
#include "codegen/nest/dot_insn.h"
#include "ir/rewrite.h"
#include "passes/analysis/axis_info.h"

/* ---- the machine ---- */
typedef struct TlNestMachine {
    const TlLlvm *l;  /* its features */
    int vector_bytes; /* of a register: 64, 32, 16 */
    int nregs;        /* vector registers */
    bool gathers;     /* fast masked gathers of elements of 4 and 8 bytes */
    bool masks;       /* fast masks for elements of every size */
} TlNestMachine;
TlNestMachine tl_nest_machine(const TlLlvm *l);

/* ---- forms (nest_form.c) ---- */
/* The form of a home: row-major; the lane dimension (the last of extent > 1) is padded so that
 * whole vectors fit. */
typedef struct TlNestForm {
    int rank, lane;                                                        /* lane -1: rank 0 */
    int64_t extent[TL_MAX_RANK], padded[TL_MAX_RANK], stride[TL_MAX_RANK]; /* in elements */
    int64_t elems;                                                         /* with padding */
} TlNestForm;
TlNestForm tl_nest_form(const TlType *type);
int tl_nest_fit_width(int64_t padded, int width); /* most lanes, <= width, that divide padded */
bool tl_nest_is_renaming(const TlOp *op); /* reshape that only adds or drops axes of extent 1 */
/* Does a broadcast take vectors as they are? Else it takes one element for each. */
bool tl_nest_keeps_lanes(const TlOp *broadcast);
/* Does a reshape take its operand's last axis, of few elements, into one with the axis before it?
 * Then so many vectors along that one, interleaved, are one of the result. */
enum { TL_NEST_JOINED = 8 }; /* vectors that are interleaved, at most */
bool tl_nest_joins(const TlOp *reshape);
int tl_nest_join_width(const TlOp *reshape, int limit);
/* A histogram counts in several tables by turns; behind them are values that are not counted
 * yet, and how many they are. */
enum { TL_NEST_COUNTED = 512, TL_NEST_COUNTED_BYTES = TL_NEST_COUNTED * 4 + 64 };
typedef struct TlNestTables {
    int n;
    int64_t length; /* of one: counts */
} TlNestTables;
TlNestTables tl_nest_tables(const TlOp *histogram);

/* ---- accesses (nest_access.c) ---- */
/* The axis of a view that gives the tile's axis `dim`, when it is a slice of step 1; else -1. */
int tl_nest_slice_of(const TlPlace *p, int dim);
/* Do elements follow each other along the axis of a parameter's view? */
bool tl_nest_is_dense(const TlFn *fn, const TlPlace *p, int axis);

/* ---- where tiles live (nest_place.c) ---- */
typedef enum TlNestPlaceKind { TL_NEST_SCALAR, TL_NEST_VIRTUAL, TL_NEST_HOME } TlNestPlaceKind;
typedef struct TlNestPlace {
    TlNestPlaceKind kind;
    int32_t buffer; /* HOME: index in plan->buffers */
} TlNestPlace;
typedef struct TlNestBuffer {
    uint64_t bytes, offset;
    uint32_t first, last; /* op positions between which it is needed, both included */
    bool small;           /* no part of scratch: a variable of LLVM's, most often in registers */
} TlNestBuffer;

/* ---- products (nest_product.c, nest_operand.c) ---- */
/* A loop over the sums of a product (cpu_matmul.c). */
enum { TL_NEST_TAG_BYTES = 64, TL_NEST_KEYS = 6, TL_NEST_AROUND = 4 };
/* Chunks that are multiplied together: what each has of its own, in scratch memory. */
enum { TL_NEST_GATHERED = 16, TL_NEST_CHUNK_WORDS = 5 };
typedef struct TlNestProduct {
    TlOp *loop, *dot;
    TlOp *around[TL_NEST_AROUND]; /* inner first: loops that pass the sum on; B changes in them */
    int naround;
    int ngathered; /* of those, inner first: chunks of all their trips are multiplied together */
    TlDtype dtype;        /* of the sums */
    const TlCpuDotInsn *insn; /* NULL: products are added one by one */
    int per;              /* elements along k of a packed one, which is as large as a sum */
    TlDtype part[2];      /* the type of those of A, of B */
    bool flips;           /* of A the sign bits are flipped, and each chunk of B has corrections */
    int64_t trips, depth; /* of a chunk: trips of the loop, packed elements along k */
    /* Rows that a panel of B has room for, elements that a row of packed A has: panels and rows
     * begin in different cache sets. */
    int64_t panel_rows, a_row;
    TlOp *a_load;         /* A is read where it lies; NULL: it is packed */
    bool a_may_end;       /* it is packed where it ends before the rows that are seen */
    TlValue *a_rows;      /* an index tile says which rows of a_load they are; NULL: a slice */
    bool a_turned;        /* those are A's columns, of as many trips as a chunk has */
    bool a_is_whole;      /* and unless it has all k of a chunk */
    bool from_zero;       /* the sums begin at +0 */
    bool keeps_b;         /* packed chunks of B stay in scratch memory for later programs */
    TlOp *b_load;         /* the load that B is; NULL: B is computed, or not kept */
    TlValue *key[TL_NEST_KEYS]; /* scalars from which, and from k, B is computed, if by no load */
    int nkeys;
    TlOp *store;          /* says which rows and columns are seen; NULL: all */
    bool stores; /* it stores the sums and nothing else, right after the loop, or those around */
    uint32_t slots;       /* packed chunks of B that there is room for */
    uint64_t a_bytes, b_bytes; /* of packed A, of one chunk of packed B */
    int32_t a, b, gathered;    /* buffers; gathered: of chunks that are multiplied together */
    int32_t listed;            /* where each row of A is, by a_rows */
    /* Where they are in scratch memory; zeros: a row of A outside; stored: the last chunk stored
     * the sums, and the store has not yet seen that. */
    uint64_t tags, zeros, stored;
} TlNestProduct;

/* ---- a function ---- */
typedef struct TlNests {
    const TlFn *fn;
    TlArena *arena;
    TlNestMachine m;
    bool check;         /* each access asks the runtime */
    TlNestPlace *place; /* by value id */
    TL_VEC(TlNestBuffer) buffers;
    /* op to its first extra buffer (dot: packed a, b; histogram: tables; loop: temporaries;
     * print) */
    TlMap extra;
    TlMap products; /* FOR to TlNestProduct */
    TlMap fused; /* op whose home is filled, to the reduction done on the way; and back */
    uint64_t scratch_bytes;
    /* At its beginning, 0 before the first launch: tags of products, and rows of zeros. */
    uint64_t zeroed_bytes;
} TlNests;
TlNests *tl_nest_plan(const TlFn *fn, const TlNestMachine *m, bool check, TlArena *arena);

/* nest_product.c. NULL: the loop is more than a product. Asked when values have their homes. */
TlNestProduct *tl_nest_product(const TlFn *fn, const TlNests *plan, TlOp *loop, TlArena *arena);
/* The dot of a loop that does nothing else, with the carried tile as what it adds to; NULL: there
 * is none. Values with homes are something else to do; plan NULL: none is known to have one. */
TlOp *tl_nest_only_dot(const TlFn *fn, const TlNests *plan, const TlOp *loop);
/* nest_operand.c. The load that v, an operand, is a conversion or a transposition of; elements
 * outside are zeros. *out_turned: v's rows are the load's columns. NULL: none. */
TlOp *tl_nest_load_under(const TlValue *v, bool *out_turned);
/* The dimension of v along which the elements that it is computed from lie without gaps in memory.
 * -1: neither, or not known. */
int tl_nest_dense_dim(const TlFn *fn, const TlValue *v);
/* Sets p->key: the values that say, beside the launch and k, what B is. False: they do not, or are
 * too many. */
bool tl_nest_find_keys(const TlNests *plan, TlNestProduct *p, TlArena *arena);
#endif
