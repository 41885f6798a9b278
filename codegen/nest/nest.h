/* Loop nests: the level between tile IR and LLVM on the CPU. All decisions about the code are made
 * here; codegen/cpu writes it down. No file of this folder makes an LLVM value. */
#ifndef TL_NEST_H
#define TL_NEST_H
#include "codegen/gen/gen.h"
#include "codegen/nest/dot_insn.h"
#include "ir/rewrite.h"
#include "passes/analysis/axis_info.h"

struct TlNests;

/* ---- the machine ---- */
typedef struct TlNestMachine {
    const TlLlvm *l;  /* its features */
    int vector_bytes; /* of a register: 64, 32, 16 */
    int nregs;        /* vector registers */
    bool gathers;     /* masked gathers of elements of 4 and 8 bytes */
    bool one_by_one;  /* which take longer than loads of the elements, as on AMD's */
    /* At equal distances, elements one by one take no longer than a gather, or a scatter: loads on
     * AMD's and on those with microcode against leaks, stores everywhere. */
    bool each_load, each_store;
    bool masks;       /* fast masks for elements of every size */
    bool mask_bits;   /* which are the bits of integers */
    bool fma;         /* of f32 and f64, as instructions */
    bool thirds;      /* loads of every third element, all three at once */
    bool two;         /* any shuffle of two vectors by one instruction */
} TlNestMachine;
TlNestMachine tl_nest_machine(const TlLlvm *l);

/* ---- limits of what is decided, which emission has room for ---- */
enum {
    TL_NEST_LANES = 64,        /* of a vector */
    TL_NEST_SUMS = 64,         /* partial results of a reduction, of all its values and rows */
    TL_NEST_ROWS = 4,          /* that are reduced together */
    TL_NEST_ACCUMULATORS = 24, /* vectors of a block of sums of a product */
    TL_NEST_TILES = 2,         /* of AMX, down and across a block of sums */
    TL_NEST_DEEP = 8,          /* rows of B that one row is multiplied by */
    TL_NEST_JOINED = 8,        /* vectors that a reshape interleaves */
    TL_NEST_TURNED = 16,       /* vectors of which every such word is one of a home's */
    TL_NEST_STRIDE = 16,       /* vectors of which a load takes every such element */
    TL_NEST_PARTED = 8,        /* vectors of which a reshape does */
    TL_NEST_TRANSPOSED = 16,   /* rows of a block that is transposed in registers */
    TL_NEST_STRIP = 16,        /* vectors of a home that registers hold */
    TL_NEST_AHEAD = 8,         /* rows between what a product asks for and what it reads */
    TL_NEST_PANEL = 8,         /* vectors of a panel of B that is read, at most */
};

/* ---- forms (nest_form.c) ---- */
/* The form of a home: row-major; the lane dimension (the last of extent > 1) is padded so that
 * whole vectors fit. */
typedef struct TlNestForm {
    int rank, lane;                                                        /* lane -1: rank 0 */
    int64_t extent[TL_MAX_RANK], padded[TL_MAX_RANK], stride[TL_MAX_RANK]; /* in elements */
    int64_t elems;                                                         /* with padding */
} TlNestForm;
TlNestForm tl_nest_form(const TlType *type);
/* All elements of a home as one row. */
TlType tl_nest_row(const TlType *type);
/* Do the rows of a home not fill a register? Then several are one vector, with their padding. */
bool tl_nest_has_short_rows(const TlNestMachine *m, const TlType *type);
int tl_nest_fit_width(int64_t padded, int width); /* most lanes, <= width, that divide padded */
bool tl_nest_is_renaming(const TlOp *op); /* reshape that only adds or drops axes of extent 1 */
/* The axis of its operand that becomes axis d of the result of an op that works element by element,
 * expands, broadcasts, or renames axes; -1: none of extent > 1 does. */
int tl_nest_axis_under(const TlOp *op, int d);
/* The same of any reshape; or the axis that d is the first of two parts of, *out_times elements for
 * each one; or the first of two that are joined to d, *out_parts elements of it for each one. */
int tl_nest_axis_reshaped(const TlOp *reshape, int d, int64_t *out_times, int64_t *out_parts);
/* Does a broadcast take vectors as they are? Else it takes one element for each. */
bool tl_nest_keeps_lanes(const TlOp *broadcast);
/* Does a reshape take its operand's last axis, of few elements, into one with the axis before it?
 * Then so many vectors along that one, interleaved, are one of the result. */
bool tl_nest_joins(const TlOp *reshape);
int tl_nest_join_width(const TlOp *reshape, int limit);
int tl_nest_last_axis(const TlType *type); /* the last of extent > 1; -1: none */
/* May a reshape go without a home if its operand has one? Neither has gaps, so that what lies side
 * by side in the one does in the other; and it is more than registers hold, or one to or from a row
 * (nest_flat.c), of which places are known. */
bool tl_nest_may_read_home(const struct TlNests *plan, const TlOp *reshape);
/* Does a reshape join words of four bytes whose order another axis than theirs had, as
 * reshape(trans(reshape(x, N, K, 4), 1, 0, 2), K, 4 N)? Then every few words of the
 * operand of the transposition are a vector; how many is one from the next? 0: it does not. */
int tl_nest_turned_words(const TlOp *reshape);
int tl_nest_word_axis(const TlOp *reshape); /* which of them, along it; -1: it is not one axis */
/* Does a reshape put short rows of bytes, at least so many, one after the other? Then several of
 * them are one vector of the result. */
bool tl_nest_puts_rows(const TlNestMachine *m, const TlOp *reshape, int least);
/* Does a reshape divide its operand's last axis into one that elements are picked from (split) and
 * the axis before it? Then every n-th element of n vectors is one along that. */
bool tl_nest_parts(const TlOp *reshape);
int tl_nest_part_width(const TlOp *reshape, int limit);
/* A histogram counts in several tables, one after the other; behind them are values that are not
 * counted yet, and how many they are. */
enum { TL_NEST_COUNTED = 512, TL_NEST_COUNTED_BYTES = TL_NEST_COUNTED * 4 + 64 };
typedef struct TlNestTables {
    int n;
    int64_t length; /* of one: counts */
} TlNestTables;
TlNestTables tl_nest_tables(const TlOp *histogram);

/* ---- accesses (nest_access.c) ---- */
/* An index tile of which element j is start + j, where start = offset + plus[0] + ... - minus[0] -
 * ... in the tile's type, which wraps; then no less than `least`, no more than `most`. */
enum { TL_NEST_TERMS = 4, TL_NEST_PERIOD = 16 };
typedef struct TlNestAffine {
    bool is;
    TlDtype dtype; /* i32, i64 */
    uint32_t nterms;
    TlValue *term[TL_NEST_TERMS]; /* scalars */
    bool minus[TL_NEST_TERMS];
    int64_t offset;
    TlValue *least,
        *most; /* tiles of one number; both NULL: it is a slice, with i32 of 2^31 elements */
    bool least_wins; /* where it is above the other one */
    bool fits;       /* both are inside of the view unless that is empty */
    bool mirrored;   /* outside of the view it is as `way` says, without bounds */
    TlWay way;
    /* Rows of `unit` elements, which the terms and bounds count (nest_fold.c): element j is number
     * (sum + j / unit, within the bounds) * unit + j % unit + behind. 0: each is its own. */
    int64_t unit, behind;
    /* A pattern (nest_pattern.c), period > 0: start is the scalars' sum >> shift, and element j is
     * start + j / period * step + of[j % period]. */
    int period, shift;
    int64_t step, of[TL_NEST_PERIOD];
} TlNestAffine;
typedef struct TlNestAxis {
    int dim;        /* of the tile: of a slice or index tile; -1: a scalar drops the axis */
    int64_t stride; /* elements from one position to the next; 0: not known before the run */
    bool may_be_below; /* a slice may start before the view */
    /* Are the positions of a slice that are inside known, lo .. hi - 1? Of a scalar index: is it
     * known to be inside (hi = 1), or not to be (0)? */
    bool is_known;
    int64_t lo, hi;
    bool fits; /* a scalar index is inside, if the axis has any element: a border says so */
    TlNestAffine affine; /* of an index tile, which is then as a slice where it is whole */
} TlNestAxis;
/* Is it bounded, or a pattern, and so no slice where elements are tested? */
static inline bool tl_nest_is_clamped(const TlNestAxis *x)
{
    const TlNestAffine *f = &x->affine;
    return f->least || f->most || f->mirrored || f->period || f->unit;
}
/* A memory op: what is known of it before the run. */
typedef struct TlNestAccess {
    TlOp *op;
    TlPlace place;
    int param; /* -1: not known */
    bool loads;
    bool constant;     /* nobody writes it during the launch */
    bool bounds;       /* they are tested; false for unchecked without --check */
    bool asks;         /* --check: the runtime is asked for each address */
    bool has_interval; /* along each slice, positions that are inside follow each other */
    bool shares_places; /* another load has an index tile of it, too */
    bool forks;        /* masks are slow: whole vectors have code of their own */
    int64_t row;       /* along its last axis, rows of so many elements lie apart; 0: none do */
    int64_t reads_to;  /* with a pattern: elements of a period, up to which vectors read */
    TlNestAxis axis[TL_MAX_VIEW_RANK];
} TlNestAccess;
/* Rows that lie apart are loaded and stored by pieces of vectors: longer ones would cross lines of
 * the cache more often. */
enum { TL_NEST_PIECE_BYTES = 16 };
/* Elements after which such rows begin with a vector again; 0: there are none in the plan. */
int64_t tl_nest_turn(const struct TlNests *plan, int width);
/* The axis of a view that gives the tile's axis `dim`, when it is a slice of step 1; else -1. */
int tl_nest_slice_of(const TlPlace *p, int dim);
int tl_nest_steps_of(const TlPlace *p, int dim); /* of any step > 0 */
/* Positions of a slice, or of an index tile that is alone on its axis. */
int64_t tl_nest_axis_width(const TlNestAccess *a, uint32_t i);
/* An index tile that has a pattern; not .is: it has none. (nest_pattern.c) */
TlNestAffine tl_nest_pattern(const struct TlNests *plan, TlValue *v);
/* The pattern along a dimension of the tile; NULL: there is none. */
const TlNestAffine *tl_nest_pattern_along(const TlNestAccess *a, int dim);
/* Elements of memory that a vector of so many lanes spans; 0: it is no whole number of periods. *
 * out_first: from its first period's start on, the least. */
int64_t tl_nest_pattern_span(const TlNestAffine *f, int width, int64_t *out_first);
/* The extent of a view's axis; false: it is not known before the run. */
bool tl_nest_extent(const TlFn *fn, const TlValue *view, uint32_t axis, int64_t *out);
/* Do elements follow each other along the axis of a parameter's view? */
bool tl_nest_is_dense(const TlFn *fn, const TlPlace *p, int axis);
/* Do they along a dimension of the tile? */
bool tl_nest_is_contiguous(const TlNestAccess *a, int dim);
/* Do they where all is inside? */
bool tl_nest_is_contiguous_inside(const TlNestAccess *a, int dim);
/* Is every s-th element of memory read along it, as the real parts of complex numbers are, or the
 * channels of an image? Then so few vectors that lie side by side have them all. Else 1. */
int tl_nest_stride(const TlNestAccess *a, int dim);
/* n vectors are interleaved, or taken apart, in rounds of so many each: the least prime factor. */
int tl_nest_zip_round(int n);
/* Are elements n apart, of so many bytes, sooner shuffled out of n vectors, or into these, than one
 * by one? So many of each n are wanted. */
bool tl_nest_zips(const TlNestMachine *m, int bytes, int n, int wanted);
/* Stores of which the last one stores all (nest_join.c). Together their elements lie side by side;
 * or each is apart. one_box: positions inside of one are inside of all. */
typedef struct TlNestJoined {
    int n;
    bool apart, one_box;
    TlNestAccess *store[TL_NEST_STRIDE]; /* in program order, as the elements lie */
} TlNestJoined;
/* Do rows that are outside read as zeros? */
static inline bool tl_nest_has_zeros(const TlNestAccess *a)
{
    return a->loads && a->place.axes && !a->place.mask && !a->place.other && !a->asks && a->bounds;
}
/* NULL: the store is none of those. */
const TlNestJoined *tl_nest_joined(const struct TlNests *plan, const TlOp *store);
/* The load of the low byte of a word whose high byte lies behind it, (u16)low | (u16)high << 8;
 * NULL: the op is no such. */
TlOp *tl_nest_low_byte(const struct TlNests *plan, const TlOp *op);
TlType tl_nest_accessed(const TlNestAccess *a); /* the tile that is loaded or stored */

/* ---- where tiles live (nest_place.c) ---- */
typedef enum TlNestPlaceKind { TL_NEST_SCALAR, TL_NEST_VIRTUAL, TL_NEST_HOME } TlNestPlaceKind;
/* How an op whose elements are elsewhere in its operand takes vectors of them, where the lanes are
 * along the last dimension (a gather's: along its axis). Other lanes are taken one by one. */
typedef enum TlNestWay {
    TL_NEST_BY_OP,         /* there is one way */
    TL_NEST_RENAMES,       /* a reshape that only adds or drops axes of extent 1 */
    TL_NEST_INTERLEAVES,   /* vectors along the axis before the operand's last one */
    TL_NEST_JOINS_HOME,    /* the same, which lie side by side */
    TL_NEST_TURNS_WORDS,   /* every few words of four bytes of a home */
    TL_NEST_READS_HOME,    /* a home without gaps, from the element's number on */
    TL_NEST_PUTS_ROWS,     /* rows of the operand, one after the other */
    TL_NEST_PARTS,         /* every n-th element of n vectors, along the axis before the last one */
    TL_NEST_NUMBERS,       /* elements with the same row-major number */
    TL_NEST_GATHERS,       /* each lane by itself */
    TL_NEST_EXCHANGES,     /* lanes of one vector change places in pairs */
    TL_NEST_TAKES_ROWS,    /* vectors of other rows, as they are */
    TL_NEST_SHUFFLES,      /* lanes of two neighbouring vectors */
    TL_NEST_PERMUTES,      /* lanes of the same vector, in an order that is known */
    TL_NEST_SHIFTS,        /* vectors that begin at any element; at the ends, as SHUFFLES */
    TL_NEST_SUMS_QUADS,    /* a reduction, of four products of bytes in each lane */
    TL_NEST_ADDS_QUADS,    /* a sum of such sums and others, with which the instruction begins */
    TL_NEST_LOADS_WORDS,   /* two bytes side by side in memory that are joined, at once */
    TL_NEST_PART_OF_WORDS, /* a load whose elements are shifted out of words */
    TL_NEST_WAYS
} TlNestWay;
/* Does it take what a TlNestWindow says? Then the index of the gather is not computed. */
static inline bool tl_nest_takes_window(TlNestWay way)
{
    return way == TL_NEST_SHUFFLES || way == TL_NEST_SHIFTS;
}
typedef struct TlNestPlace {
    TlNestPlaceKind kind;
    int32_t buffer;  /* HOME: index in plan->buffers */
    const char *why; /* NULL: nothing was to be decided */
    TlNestWay way;
    TlValue *partner; /* EXCHANGES: the scalar m where lane i takes element i ^ m */
    bool inside;      /* of a gather: all indices are known to be, and are not tested */
    struct TlNest *columns; /* HOME: this store computes it where all is inside; NULL: none */
} TlNestPlace;
typedef struct TlNestBuffer {
    uint64_t bytes, offset;
    uint32_t first, last; /* op positions between which it is needed, both included */
    bool small;           /* no part of scratch: a variable of LLVM's, most often in registers */
    bool plain, short_rows; /* the home of a tile without padding; with rows below a register */
} TlNestBuffer;

/* ---- gathers that move vectors (nest_move.c) ---- */
/* Element i along the lanes is element start + step * i of the operand; 0 where that is outside,
 * or, if it wraps, that number modulo the extent: start is inside then, step is 1, the result has
 * the same extent, and neither has padding. */
typedef struct TlNestWindow {
    int64_t start;
    int step; /* 1, -1 */
    bool wraps;
} TlNestWindow;
typedef struct TlNestMove {
    int lane;  /* where the lanes are along this dimension */
    bool rows; /* the axis is another one, and the index the same in all lanes */
    bool known; /* along that, too, a window; else there is one, or a period */
    TlNestWindow window;
    int period;                  /* 0: a window; else each group of so many lanes takes its own, */
    uint8_t from[TL_NEST_LANES]; /* lane i the group's from[i] */
} TlNestMove;
/* NULL: lane by lane */
const TlNestMove *tl_nest_move_of(const struct TlNests *plan, const TlOp *gather, int lane);
/* By how many rows, 0 or more, each row of a gather's result lies before the one that it takes; -1:
 * it does something else. */
int64_t tl_nest_rows_ahead(const struct TlNests *plan, const TlOp *op);
/* The same of an operand with any number of rows. */
int64_t tl_nest_rows_taken(const struct TlNests *plan, const TlOp *op);
/* Elements along d that a vector may be read from, those in the padding included. */
int64_t tl_nest_readable(const TlType *type, int d);

/* ---- products (nest_product.c, nest_operand.c) ---- */
/* A loop over the sums of a product, or a product by itself (cpu_matmul.c). */
enum { TL_NEST_TAG_BYTES = 64, TL_NEST_KEYS = 6, TL_NEST_AROUND = 4 };
/* Chunks that are multiplied together: what each has of its own, in scratch memory. */
enum { TL_NEST_GATHERED = 32, TL_NEST_CHUNK_WORDS = 6, TL_NEST_WAITING_WORDS = 2 };
enum { TL_NEST_SLIDING = 32 }; /* scalars that say where A's rows begin, at most */
typedef struct TlNestProduct {
    TlOp *loop, *dot; /* loop NULL: it is by itself, and A and B are packed */
    TlOp *around[TL_NEST_AROUND]; /* inner first: loops that pass the sum on; B changes in them */
    int naround;
    TlOp *beyond[TL_NEST_AROUND]; /* loops further around, inner first, which begin new sums */
    int nbeyond;
    uint32_t numbering; /* axes of kept B that number its chunks, where there are slots for all */
    int ngathered; /* of those, inner first: their iterations' chunks are multiplied together */
    TlDtype dtype;        /* of the sums */
    const TlCpuDotInsn *insn; /* NULL: products are added one by one */
    const char *pairs; /* does the same for two rows and two columns of packed B; NULL: none does */
    int per;              /* elements along k of a packed one, which is as large as a sum */
    TlDtype part[2];      /* the type of those of A, of B */
    bool flips;           /* of A the sign bits are flipped, and each chunk of B has corrections:
                           * with tiles only where B is not packed */
    const char *tile;     /* the instruction of AMX that multiplies packed B; NULL: insn does */
    const char *untiled;  /* why not, where the CPU has one */
    int tile_depth;       /* packed elements along k of a tile, which divide an iteration's */
    int64_t trips, depth; /* of a chunk: iterations of the loop, packed elements along k */
    /* Rows that a panel of B has room for, elements that a row, or column, of packed A has: panels
     * and rows begin in different cache sets. */
    int64_t panel_rows, a_row;
    bool a_by_columns;    /* A is a load's transposition: also packed, its columns are whole */
    TlOp *a_load;         /* A is read where it lies; NULL: it is packed */
    bool a_may_end;       /* it is packed where it ends before the rows that are seen */
    bool a_packs;         /* and where its columns are far apart, of many rows */
    TlOp *slides;         /* a loop around that moves A's rows, and nothing else of A: what its
                           * iterations read is packed together; NULL: none does */
    TlValue *a_rows;      /* an index tile says which rows of a_load they are; NULL: a slice */
    bool a_transposed;    /* those are A's columns, of as many iterations as a chunk has */
    int64_t column_step;  /* of these, from an element to the next */
    bool cuts_listed;     /* columns of A are left out where B has no rows */
    bool a_is_whole;      /* and unless it has all k of a chunk */
    int64_t a_moves;      /* and unless rows are so far apart that the chunk's iterations, in which
                           * they begin so many rows further on, follow each other; 0: they stay */
    bool from_zero;       /* the sums begin at +0 */
    bool keeps_b;         /* packed chunks of B stay in scratch memory for later programs */
    TlOp *b_load;         /* the load that B is; NULL: B is computed, or not kept */
    TlValue *key[TL_NEST_KEYS]; /* scalars from which, and from k, B is computed, if by no load */
    int nkeys;
    TlOp *store;          /* says which rows and columns are seen; NULL: all */
    bool store_turned;    /* its rows are the sums' columns */
    TlValue *seen[2];     /* or scalars do, how many rows, columns; NULL: all are */
    bool stores; /* it stores the sums and nothing else, right after the loop, or those around */
    uint32_t slots;       /* packed chunks of B that there is room for, of the greatest */
    uint32_t tagged;      /* of those that are there, at most: more if they are smaller */
    uint64_t a_bytes, b_bytes; /* of packed A, of one chunk of packed B */
    int32_t a, b, gathered;    /* buffers; gathered: of chunks that are multiplied together */
    int32_t listed;            /* where each row of A is, by a_rows */
    /* Where they are in scratch memory; zeros: a row of A outside; stored: the last chunk stored
     * the sums, and the store has not yet seen that. */
    uint64_t tags, zeros, stored;
} TlNestProduct;

/* How a loop multiplies where what it stores to has few rows: B is not packed. */
typedef struct TlNestFew {
    int rows;        /* that C has, at most; 0: never so */
    int each;        /* along: k has so many elements for each row, or more; else 0 */
    const char *why; /* never */
    int mr, nv;      /* of a block of sums: rows, vectors */
    int64_t trips;   /* iterations of a chunk, at most */
    int some, great; /* or up to so many rows, by blocks of so many first; 0: never so */
    /* B lies along k, and so do the lanes of sums, which are added up at the end: nothing is
     * transposed. Then nv is columns of a block, of which each sum is a vector. */
    bool along;
    int single; /* along: columns of a block of one row; else its vectors, or 0: as of several */
    int deep;   /* rows of B, all side by side, that a block of one row takes at a time */
    TlNestAccess *ends; /* along: B's load, of whose columns some may be outside; NULL: all must be
                         * inside */
    int ends_axis;      /* of columns, in its view */
    /* Not along: columns may end within a block where B's rows follow each other. What is read past
     * them is of the next row, and adds to sums that are not seen. */
    bool past;
    /* B is read up to its ends, all k of a chunk in one loop, under masks along the lanes. Not
     * along: then `small_rows` read it, too, where all of it stays in the first cache. */
    bool to_ends;
    int small_rows;
    int axis[2]; /* to_ends: of k and of columns, in B's view */
} TlNestFew;

/* A home whose last rows are, `step` rows further on, what the next program along an axis of the
 * grid computes first (nest_keep.c). */
typedef struct TlNestKeep {
    int axis;           /* of the grid */
    int64_t rows, step; /* that are kept; that are computed */
    int64_t most;       /* programs along the axis of which that is known */
    int slots;          /* homes: of the programs that run between two that are neighbours */
    int turns; /* so many programs lie behind each other in one before rows move to its front */
    uint64_t bytes;     /* of one of them */
    uint64_t tags;      /* where in scratch memory */
} TlNestKeep;

/* ---- how values differ from those of the program before (nest_drift.c) ---- */
/* What a value is beside that of the program before, along an axis of the grid, `step` elements
 * further on along a dimension of it. */
typedef struct TlNestDrift {
    int64_t step;
    bool known;
    int64_t by;   /* it is so much more, modulo its type; 0: the same */
    int64_t most; /* it is the program's number times a number, and at most so much */
} TlNestDrift;
enum { TL_NEST_LARGE = 1 << 30 };
typedef struct TlNestDrifts {
    TlArena *arena;
    int axis; /* of the grid */
    int64_t step;
    bool loops;      /* what these carry counts, too; then something unknown makes all unknown */
    bool written;    /* memory that is written counts, too, as programs have no order; */
    bool reads_written; /* has some been asked? */
    int rank;        /* values of that rank are work */
    int64_t work;    /* of all that has been asked */
    int64_t largest; /* that a program's number is multiplied by */
    /* By value id, of all tiles that were asked: bit d + 1 where that was about dimension d. NULL:
     * not noted. */
    uint32_t *dims;
    TlMap seen;      /* value and dimension to TlNestDrift */
} TlNestDrifts;
/* Is a value so much more, its dimension d further on, and if that is not 0, a number that does not
 * wrap? d -1: no dimension of it moves. */
bool tl_nest_drifts_by(TlNestDrifts *k, const TlValue *v, int d, int64_t by);
/* The step along a dimension that was asked about; behind a reshape it is another one. 0: none. */
int64_t tl_nest_drift_step_along(const TlNestDrifts *k, const TlValue *v, int d);
/* The axis of an op's operand that moves where dimension d of its result does; -1: none. */
int tl_nest_drift_axis(const TlOp *op, int d);
/* By how much is a scalar more, modulo its type? false: it is not known. */
bool tl_nest_drift(TlNestDrifts *k, const TlValue *v, int64_t *out_by);
/* By how much starts may grow from program to program along an axis of the grid: what its number is
 * multiplied by, or 1. 0: op is no such number. */
int64_t tl_nest_drift_step(const TlOp *op, int *axis);
/* Programs along the axis of which what was asked is known. */
int64_t tl_nest_drift_most(const TlNestDrifts *k);

/* ---- nests ---- */
typedef enum TlNestKind {
    TL_NEST_FILL,      /* computes a value into a home */
    TL_NEST_TRANSPOSE, /* a home from another one, transposed in registers, block by block */
    TL_NEST_COPY,      /* a home from another one */
    TL_NEST_STORE,
    TL_NEST_REDUCE,
    TL_NEST_SCAN,
    TL_NEST_PICK,  /* one element along an axis */
    TL_NEST_COUNT, /* the values of a histogram, in tables */
    TL_NEST_ADD,   /* the tables */
    TL_NEST_ATOMIC,
    TL_NEST_EACH,    /* what is printed, or asserted */
    TL_NEST_DOT,     /* one product: of homes, or of packed operands */
    TL_NEST_PRODUCT, /* a loop that sums products, as a whole */
    TL_NEST_PACK,    /* an operand of it, for one iteration; of a product by itself */
    TL_NEST_KINDS
} TlNestKind;

/* How a nest tests which elements are inside the arrays that it accesses. */
typedef enum TlNestSplit {
    TL_NEST_PLAIN,  /* there is nothing to test, or each access tests for itself */
    TL_NEST_TESTED, /* at each vector */
    TL_NEST_SPLIT,  /* along the lanes: whole vectors up to an end, and tests from there on */
    TL_NEST_ONE     /* it has one vector: all of it is inside, or it is tested */
} TlNestSplit;

/* Instead of a dimension along which a nest's lanes are: it is the same in all of them, or any
 * element, or vector along any dimension, may be needed. */
enum { TL_NEST_NO_LANES = -1, TL_NEST_ANY_LANES = -2 };

typedef struct TlNestAsk {
    TlNestAccess *access;
    int lane;  /* the dimension of what it accesses that the nest's lanes are along */
    int times; /* at lane l, its positions from times * l on, so many; below 0: at l / -times */
    bool same; /* along the other dimensions, its positions are the nest's */
} TlNestAsk;

enum { TL_NEST_MOST_VALUES = 400 }; /* a nest that computes more is not built twice */

/* Where an operand of one product is. */
typedef struct TlNestOperand {
    int32_t home;
    bool transposed; /* it is the transposition of what is there */
} TlNestOperand;

/* Rows of what a loop carries that are needed: those that are used of its result, and more of them
 * for each trip that is left. (nest_wanted.c) */
typedef struct TlNestReach {
    const TlOp *loop; /* a FOR by 1 */
    int dim;
    int64_t from, to, more;
} TlNestReach;

/* A value that a nest needs at rows further on, up to `ahead` of them, and so carries from row to
 * row. (nest_down.c) */
typedef struct TlNestDown {
    TlValue *value;
    int ahead;
    uint32_t rows; /* bit k: k rows further on */
    bool is_home;  /* it is loaded; else it is computed */
} TlNestDown;

/* Where what lies further on is. TRIP and TRIPS: two pages on, or where the next trip of the loop
 * reads what this one does, if that is further; or the one after it. PART: where the next trip goes
 * on along the row. */
typedef enum TlNestFetch {
    TL_NEST_FETCH_PAGES, /* two pages on, into the first cache */
    TL_NEST_FETCH_LIGHT, /* a page, into the second cache, if the array is large */
    TL_NEST_FETCH_TRIP,  /* into the first cache */
    TL_NEST_FETCH_TRIPS, /* into the second cache */
    TL_NEST_FETCH_PART,  /* into the first cache */
} TlNestFetch;

/* A loop nest over a shape, of which one dimension, the last of extent > 1, is in vectors. */
typedef struct TlNest {
    TlNestKind kind;
    TlOp *op;     /* where it stands */
    TlValue *value; /* what it computes, stores, reduces */
    TlType type;    /* what it goes over; of a home that it fills */
    TlNestForm form;
    int lane; /* the dimension that is in vectors; of a packed operand, maybe the other one */
    int32_t from, home; /* buffers; -1: none */
    TlDtype from_dtype; /* COPY: the elements of `from` */
    bool own; /* FILL: by value's op, although value has a home: this one */
    const TlNestKeep *keep; /* FILL: rows that the program before has filled; NULL: none */
    const char *unkept;     /* why they are computed again; NULL: they are not */
    bool unrolled; /* made once for each of its positions, without loops */
    bool repeated; /* where all of a program is inside: made once for each vector of a row */
    /* Where all of a program is inside: a store goes down columns, along rows_dim, with what homes
     * have there in registers (itself); FILL: that store, which computes it. (nest_columns.c) */
    const struct TlNest *columns;
    /* -- the vector -- */
    int width;
    int tested;        /* lanes where elements are tested */
    const char *limit; /* why there are no more */
    /* -- what it accesses -- */
    TL_VEC(TlNestAsk) asks; /* whose elements may be inside as a whole */
    TlMap seen;             /* values, with their lanes, of which that has been asked */
    uint32_t nvalues;       /* that it computes */
    int64_t work;           /* the same, where a sum is 1 */
    TL_VEC(TlOp *) spreads; /* of those, what is spread (TlNestSpread) */
    TL_VEC(const struct TlNestSliding *) sliding; /* of those, what slides along the lanes */
    /* Of a store that goes down columns of so many lanes; where the program has no code of its own
     * for all inside, it asks itself. */
    TL_VEC(const struct TlNestSliding *) sliding_rows;
    int column_width; /* 0: the width */
    bool unasked;     /* it accesses what is not asked of */
    bool differs; /* values may differ outside, as they depend on more than what is inside */
    bool outside; /* from some position on along the lanes nothing is inside */
    /* Loads of which a row is outside read zeros there, instead of testing all of the nest. */
    bool zero_rows;
    /* Of a nest along the lanes alone: vectors are made twice, once for all such rows inside. */
    bool forks_rows;
    /* FILL, STORE, not unrolled: each row asks whether all that it loads is inside, of accesses of
     * which the nest has the positions; else one row that is outside makes all be tested. */
    bool by_row;
    bool begins;  /* SPLIT: what is inside as a whole may begin behind the first vector */
    /* SPLIT: the extent is no whole number of vectors; where all of it is inside, the last one goes
     * back to end with it. */
    bool overlaps;
    TlNestSplit split;
    const char *unsplit; /* why it is not split; NULL: it is, or has nothing to test */
    int64_t end; /* SPLIT, ONE: of what is inside as a whole; -1: known in the run only */
    /* The loops visit only what is inside of this one along the axes; FILL: a store's, which takes
     * no more (nest_wanted.c). */
    TlNestAccess *boxed;
    uint32_t boxed_axes;
    const TlNestReach *reach; /* or what later trips read; NULL: all */
    /* FILL: down the rows of each vector, these carried; empty: row by row. */
    TL_VEC(TlNestDown *) down;
    /* Or rows that a select chooses, from and up to scalars; NULL: from 0, all. Or one row. */
    const TlValue *chosen[2], *chosen_row;
    bool has_row; /* that one is known to be a row of it */
    /* -- a store -- */
    TlNestAccess *store; /* NULL: it stores nothing */
    const TlNestJoined *joined; /* those that are stored with it; NULL: none */
    int last_axis;       /* of the store: nothing is after its last along the lanes; -1: not so */
    const TlNestProduct *stored_by; /* may have done it; NULL: nothing */
    bool streams;           /* rows of large arrays pass by the caches */
    bool streams_wide;      /* in pieces as large as a register, where rows begin so */
    bool streams_lines;     /* only rows that begin with a line of the cache */
    const char *unstreamed; /* why not; NULL: it does, or is no store of memory */
    /* -- prefetch -- */
    TL_VEC(TlNestAccess *) next; /* read by earlier nests: of the next program's row */
    bool next_near;              /* where a cache may hold them, too */
    bool ahead; /* and of the row that it will store; where stores stream, again of next's first */
    TL_VEC(TlNestAccess *) fetch; /* loads that ask for what lies further on */
    TlNestFetch fetch_from;       /* where that is */
    int64_t part; /* bytes by which a loop goes on along rows, of which it loads or stores several;
                   * a store asks for the lines of the next trip, too. 0: it does not */
    TlNestAccess *trip; /* read in this trip of a loop, and in the next one; NULL: none */
    uint32_t trip_axis; /* its axis that the loop goes along */
    /* -- reductions, scans -- */
    TlOp *reduce;
    int axis;
    bool along;   /* along the lanes, of which there are several */
    bool on_vectors; /* the combiner has no control flow */
    TlValue *fill; /* a value whose home is filled on the way; NULL: none */
    int rows, rows_dim; /* that are reduced together, or a store's, along this dimension */
    int parts;          /* partial results of a row */
    bool singles; /* vectors inside that steps of several parts leave are not tested, either */
    TL_VEC(TlNestAccess *) shared; /* loads that are the same for the rows */
    bool from_identity; /* they begin with it; else with the first vector */
    bool stops;         /* with the first vector of which nothing is inside and that adds nothing */
    bool asks_new;      /* of an extreme: only the new element is asked whether it is NaN */
    int64_t picked;
    /* -- histograms, atomics -- */
    TlNestTables tables;
    TlValue *counted; /* COUNT: a tile whose vectors are counted where they lie in memory if all of
                       * their lanes count; NULL: none */
    bool groups; /* floats side by side, as many as an exchange takes */
    /* -- products -- */
    const TlNestProduct *product;
    int mr, nv;       /* a block of sums in registers: rows, vectors */
    int small_mr;     /* PRODUCT: rows of a block of those that are left */
    bool halves;      /* PRODUCT: half of a panel's last vector is padding: two rows share one */
    int64_t panel;    /* columns of a panel */
    bool narrow;      /* the last columns may be in panels of one vector, */
    bool begins_at_zero; /* PRODUCT: the first chunk does not read what its home has; */
    bool if_idle;        /* FILL: so that is filled only where the product's loop has no trips */
    int narrow_mr;    /* in blocks of so many rows */
    bool fetches, narrow_fetches; /* rows of B are asked for ahead, of panels, of narrow ones */
    bool deepens;            /* chunks have most_trips where A's rows are read for few columns: */
    int64_t few, most_trips; /* so few */
    int64_t group;    /* panels that stay in the second cache while all rows are read */
    int transposed;   /* TRANSPOSE, PACK: in blocks of so many rows and columns; 0: not */
    int transposed_dim; /* TRANSPOSE: the other dimension of a block */
    int words, words_dim; /* FILL: of a home that it turns, all these together, along it; 0: not */
    TlOp *below;      /* PACK: a load whose later rows are prefetched; NULL: none */
    struct TlNest *pack[2]; /* PRODUCT, DOT by an instruction: A, B */
    TlNestFew few_rows;     /* PRODUCT */
    bool is_b, cuts;        /* PACK: it is B; it ends where A does, and there it is inside */
    int listed;       /* PRODUCT: addresses of rows that are listed at a time */
    TlNestOperand operand[2]; /* DOT: A, B, where they are not packed */
} TlNest;

/* Selects of one condition, an arm of which is computed only where a lane takes it
 * (nest_rare.c). */
typedef struct TlNestRare {
    uint32_t arm;             /* the operand: 1, where the condition holds; 2, where not */
    TL_VEC(TlOp *) selects;   /* of one nest */
    TL_VEC(TlValue *) leaves; /* what the arms are computed from */
} TlNestRare;

/* A value of a nest that is computed, where all is inside, from `lanes` elements of memory for each
 * vector, of which `span` are wanted; then its lanes are those of a pattern. (nest_spread.c) */
typedef struct TlNestSpread {
    const TlNest *nest;
    const TlNestAffine *like; /* of its loads, which may lie a number of elements on */
    int64_t first, span;      /* first: from the period's start */
    int lanes;
    /* From vector to vector of a row, so many elements on: only these, the last of the span, are
     * computed, the others are the vector before's. 0: all are computed. (nest_sliding.c) */
    int carried;
} TlNestSpread;

/* Values at neighbouring elements along the lanes, all of them operands of one associative op:
 * tap k is, `k` elements further on, what tap 0 is. Where all is inside, a vector of the last tap
 * is all that is computed anew. State 0 is such a vector, state k + 1 is the op of state `of`,
 * moved `by` lanes back, and of state `with`; what comes in are lanes of the vector before. The
 * last state is the op of all taps. (nest_sliding.c) */
enum { TL_NEST_TAPS = 64, TL_NEST_TAP_STEPS = 12 };
typedef struct TlNestTapStep {
    int of, with, by;
} TlNestTapStep;
typedef struct TlNestTaps {
    int n, nsteps;
    TlNestTapStep step[TL_NEST_TAP_STEPS];
    TlValue *tap[TL_NEST_TAPS];
} TlNestTaps;
/* The op of such taps, maybe of several rows, and of other values. Where a store goes down columns,
 * taps may be rows further on instead, and what is moved back are states of rows before. */
typedef struct TlNestSliding {
    TlOp *op;
    TlValue *floor; /* a number that is one of the operands: no tap is NaN beside it. NULL: none */
    bool backwards; /* the last tap comes first */
    /* Elements that are tested slide, too, where the run finds that no start wraps: taps are loads
     * within the same bounds. */
    bool tested;
    TL_VEC(TlNestTaps *) taps;
    TL_VEC(TlValue *) others;
} TlNestSliding;

/* Programs that are neighbours along the grid's second axis and load the same rows: so many run
 * abreast, vector by vector, where everything in them is inside. (nest_abreast.c) */
typedef struct TlNestAbreast {
    int times;
    int loads, distinct; /* of all of them together; of those, at different places */
    int first;           /* so many at the grid's beginning load what is before the arrays */
    bool tests_lanes;    /* along the lanes all end at the same elements, which is asked there */
    bool *known;         /* by value id: of a scalar, is it known what it is in the next program? */
    int64_t *by;         /* so much more */
} TlNestAbreast;

/* ---- a function ---- */
/* What several programs at once are good for (nest_wide.c). */
typedef enum TlNestWhyWide {
    TL_NEST_WIDE_FULL,   /* vectors are full */
    TL_NEST_WIDE_HALO,   /* columns are computed once */
    TL_NEST_WIDE_LITTLE, /* each does little */
    TL_NEST_WIDE_ENDS,   /* rows have fewer ends */
    TL_NEST_WIDE_PLACES  /* places of many accesses are found once */
} TlNestWhyWide;

/* The function for launches of which more is known: whole rows of arrays as one axis (nest_fold.c);
 * elements side by side (nest_dense.c). */
typedef struct TlNestFold {
    TlFn *fn;    /* NULL: as it is */
    int32_t row; /* elements of each row; 0: rows stay */
    int64_t work, more; /* ops of tiles; in addition, for the sake of columns */
    /* What only a launch knows: the last axis of these views has a stride of 1. */
    TL_VEC(const TlValue *) dense;
    /* Or the rows of these are so long, and one after the other; along these axes of the grid, a
     * bit for each, there is one program. */
    TL_VEC(const TlValue *) views;
    uint32_t alone;
    bool apart;           /* the rows of `views` may lie apart */
    struct TlNests *plan; /* the function's; NULL: it is the plan that this is a part of */
} TlNestFold;

/* A part of an array that a program copies where something of it is outside (nest_frame.c). */
typedef struct TlNestFrame {
    const TlValue *base;
    int rank, width;                  /* of the array; lanes of a vector that is copied */
    int64_t part[TL_MAX_VIEW_RANK];   /* most elements, axis by axis */
    int64_t extent[TL_MAX_VIEW_RANK]; /* the same, rows being whole vectors */
    bool known[TL_MAX_VIEW_RANK];     /* something else than a scalar goes along the axis */
    bool clamps[TL_MAX_VIEW_RANK];    /* outside is the nearest element; else zeros are */
    int64_t loads, loaded, vectors;   /* ops; vectors that they load, that are copied */
    uint64_t offset, bytes;           /* in scratch memory */
} TlNestFrame;

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
    TlMap products; /* FOR, or a DOT by itself, to TlNestProduct */
    TlMap fused; /* op whose home is filled, to the reduction done on the way; and back */
    uint64_t scratch_bytes;
    /* At its beginning, 0 before the first launch: tags of products, and rows of zeros. */
    uint64_t zeroed_bytes;
    TlAxisInfo *axis;
    TlMap access; /* op to TlNestAccess */
    TlMap joined; /* STORE to TlNestJoined */
    TlMap rows;   /* RESHAPE ops of nest_flat.c, from a tile to its row or back */
    TlMap moves;          /* GATHER to TlNestMove, where it is one */
    TlMap spreads;        /* op to TlNestSpread */
    TlMap rare;           /* SELECT to TlNestRare */
    TlOp **root; /* by value id: of virtual values that are not cheap, whose nest computes them */
    TL_VEC(TlNest *) all; /* in the order of control flow; those of an op are neighbours */
    TlMap first;          /* op to the number of its first one */
    bool streams;         /* some nest does */
    /* Programs of which everything is inside have code of their own (nest_whole.c). */
    bool whole, may_be_whole; /* may: but for the tests, which are a small part of the work */
    const char *unwhole;      /* why not; NULL: they have, or nothing is tested */
    const TlBlock *asked_in; /* where: the program's body, or that of a loop that is all of it */
    bool *early;     /* by value id: scalars that are computed there before any tile, and views */
    int64_t *spread; /* by value id, of block arguments, too: tl_nest_spread */
    TL_VEC(TlNestFrame) frames; /* those at the border have that code, too, with these */
    const char *unframed;       /* why the last array has none */
    /* So many programs run at once, neighbours along an axis of the grid, the first or the second;
     * the plan for the others has the plan for these, whose programs are numbered below
     * `wide_most`. (nest_wide.c) */
    int at_once, at_once_axis;
    struct TlNests *wide; /* NULL: each runs by itself */
    int64_t wide_most;
    bool wide_again; /* the last ones, too, with some that have run: those store the same again */
    /* Program number n stores from element n * wide_step of the last axis of these on. Where that
     * is all of them, so many at once may be more than there are, if these are `wide_least`. Empty:
     * it is not so. */
    TL_VEC(const TlValue *) wide_stored;
    int64_t wide_step, wide_least;
    TlNestWhyWide why_wide;
    const TlNestAbreast *abreast; /* NULL: they run one after the other */
    /* Programs run piece by piece, tiles of so many elements: by this plan, NULL: as they are.
     * (nest_pieces.c) */
    struct TlNests *pieces;
    int strip;
    int64_t lead;      /* columns before those of tiles with a halo (nest_halo.c) */
    const char *uncut; /* why not, where loops carry tiles */
    uint32_t alone;    /* axes of the grid along which there is one program, a bit for each */
    int64_t rows_apart;     /* elements of the rows that some views' last axis is; 0: of none */
    TlNestFold fold, apart; /* where rows lie one after the other; else where they are whole */
    bool paired;            /* some loops are of two trips each (nest_trips.c) */
} TlNests;
/* A load along `lane` whose elements are widened, each one of the last axis' elements: n of them
 * are a word, and the load's is number `at` of the whole axis. n 1: it is no such. (nest_words.c)
 */
typedef struct TlNestPart {
    int n, at;
} TlNestPart;
TlNestPart tl_nest_part(const TlNests *plan, const TlOp *load, int lane);
/* Elements from those of one load to those of another one of the nest, whose lanes are along `dim`;
 * false: not known before the run, or their rows may differ in being inside. (nest_access.c) */
bool tl_nest_distance(const TlNest *n, const TlNestAccess *a, const TlNestAccess *b, int dim,
                      int64_t *out);
/* v as another scalar and a number, in i32 or i64, which may wrap: of two that are v and are both
 * inside of an array, the distance is that of their numbers. v and 0: there is none. */
const TlValue *tl_nest_without_number(const TlValue *v, int64_t *number);
/* From one scalar index to another, by numbers known here, where both lead to what is inside of an
 * array; false, and 0: it is not known. */
bool tl_nest_index_distance(const TlValue *a, const TlValue *b, int64_t *out);
/* Elements of an access's place that are numbers known here: those of two places differ by their
 * distance. */
int64_t tl_nest_number(const TlNestAccess *a, int dim);
/* What loads of a block take from the same rows, as an index tile lists them: `n` words side by
 * side, of which this one takes number `own`. n 1: it is the only one. (nest_access.c) */
enum { TL_NEST_FIELDS = 4 };
typedef struct TlNestFields {
    int own, n;
} TlNestFields;
TlNestFields tl_nest_fields(const TlNests *plan, const TlNestAccess *a);
/* May lanes of a gather be near each other, so that the run asks? (nest_near.c) */
bool tl_nest_may_be_near(const TlNests *plan, const TlNestAccess *a);
/* Gathers from arrays of few elements, which so many registers hold (nest_lookup.c). */
enum { TL_NEST_LOOKED_UP = 16 };
/* An instruction that permutes lanes. */
typedef struct TlNestPermute {
    int bytes, lanes;     /* of an element; of the vector that is looked up */
    int registers, elems; /* that it looks up in; elements of each, which repeat in its register */
    const char *feature, *name;
} TlNestPermute;
typedef struct TlNestLookup {
    const TlNestPermute *permute; /* NULL: it is no such gather, or loads are faster */
    int elems, groups;            /* of the array; times that it permutes */
} TlNestLookup;
TlNestLookup tl_nest_lookup(const TlNests *plan, const TlNestAccess *a);
/* Everything that is decided about a function; verified. */
TlNests *tl_nest_plan(const TlFn *fn, const TlNestMachine *m, bool check, TlArena *arena);
/* The module as text; before each op, as comments, the places of its results and its nests. */
void tl_nest_print(TlSbuf *out, const TlModule *m, const TlNestMachine *machine, bool check);
/* The same by lines of the source, for people. */
void tl_nest_explain(TlSbuf *out, const TlModule *m, const TlNestMachine *machine, bool check);
/* Is the plan consistent? Else the first fault is written to `out`. */
bool tl_nest_verify(const TlNests *plan, TlSbuf *out);
/* How many programs run at once along an axis of the grid? */
static inline int tl_nest_at_once(const TlNests *plan, int axis)
{
    return axis == plan->at_once_axis ? plan->at_once : 1;
}
/* Does it have a part that is inside as a whole? */
static inline bool tl_nest_is_split(const TlNest *n)
{
    return n->split == TL_NEST_SPLIT || n->split == TL_NEST_ONE;
}
/* Nest number n of those of an op, NULL: it has no more. */
TlNest *tl_nest_of(const TlNests *plan, const TlOp *op, uint32_t n);

/* ---- the passes, in their order ---- */
void tl_nest_find_accesses(TlNests *plan); /* nest_access.c */
void tl_nest_find_moves(TlNests *plan);    /* nest_move.c */
void tl_nest_join_stores(TlNests *plan);   /* nest_join.c */
void tl_nest_place(TlNests *plan);         /* nest_place.c: places, buffers, products */
void tl_nest_find_ways(TlNests *plan);     /* nest_way.c */
/* Does a reshape put rows of a load one after the other that lie apart in memory? Columns of them
 * would be loaded element by element. */
bool tl_nest_puts_rows_apart(const TlNests *plan, const TlOp *reshape);
/* nest_build.c: nests, with width and split */
void tl_nest_find_strips(TlNests *plan);  /* nest_strips.c */
void tl_nest_find_spreads(TlNests *plan); /* nest_spread.c */
void tl_nest_find_whole(TlNests *plan);   /* nest_whole.c */
void tl_nest_find_frames(TlNests *plan);  /* nest_frame.c */
void tl_nest_place_frames(TlNests *plan); /* behind the homes */
const TlNestFrame *tl_nest_frame_of(const TlNests *plan, const TlValue *base); /* NULL: none */
/* From the first element along an axis of an access to behind the last one. */
int64_t tl_nest_axis_span(const TlNestAccess *a, uint32_t i);
void tl_nest_find_columns(TlNests *plan); /* nest_columns.c */
void tl_nest_keep(TlNests *plan);         /* nest_keep.c */
void tl_nest_find_sliding(TlNests *plan); /* nest_sliding.c */
/* The load that a tap is, or widens; NULL: it is more. */
const TlNestAccess *tl_nest_tap_load(const TlNests *plan, const TlValue *tap);
bool tl_nest_slides(const TlNests *plan, const TlNest *n); /* from vector to vector of a row? */
void tl_nest_find_abreast(TlNests *plan); /* nest_abreast.c */
/* nest_pattern.c: the number that positions along `dim` of a condition of rank 2 are compared with,
 * on their right; below which those of a value are chosen by the op that takes it. NULL: none. */
TlValue *tl_nest_compared(const TlValue *v, int dim, TlOpcode with);
TlValue *tl_nest_chosen_below(const TlUse *use, int dim);
/* The only row of a value that a loop carries that the nest computes: the others are there already.
 * NULL: it computes more. (nest_wanted.c) */
const TlValue *tl_nest_only_row(const TlNests *plan, const TlNest *n);
void tl_nest_find_wanted(TlNests *plan);                  /* nest_wanted.c */
bool tl_nest_is_before(const TlValue *v, const TlOp *op); /* computed before the op begins? */
void tl_nest_find_rare(TlNests *plan);    /* nest_rare.c */
/* nest_trips.c. The function with two trips at once of loops for which that pays; NULL: as it is.
 */
TlFn *tl_nest_pair_trips(const TlFn *fn, const TlNestMachine *m, TlArena *arena);
/* nest_down.c. May what a gather takes be computed in the nest of root, which carries it from row
 * to row? The nests that do so, or carry rows of homes; is there one of the former? */
bool tl_nest_may_go_down(const TlNests *plan, const TlOp *gather, const TlOp *root);
void tl_nest_find_down(TlNests *plan);
bool tl_nest_goes_down(const TlNests *plan);
void tl_nest_assign_offsets(TlNests *plan); /* nest_place.c: of homes in scratch memory */
void tl_nest_stream(TlNests *plan);       /* nest_stream.c */
void tl_nest_prefetch(TlNests *plan);     /* nest_prefetch.c */
/* The axis along which the loop that a load is in goes from slice to slice; -1: there is none. */
int tl_nest_axis_of_loop(const TlNestAccess *a);
/* nest_wide.c. The function for several programs at once; NULL: each runs by itself. Sets what
 * `plan`, so far empty, says of it, but the plan. */
TlFn *tl_nest_widen(TlNests *plan, int *out_times);
/* nest_pieces.c. The function once more, in a loop over pieces of the program; NULL: it runs as it
 * is. */
TlFn *tl_nest_cut(TlNests *plan);
/* nest_flat.c. Is it a reshape of a tile to its row, or back? */
bool tl_nest_is_for_row(const TlNests *plan, const TlOp *op);
/* The function with tiles of short rows as one row; NULL: as it is. `rows` gets the
 * reshapes between them. */
TlFn *tl_nest_flatten(const TlFn *fn, const TlNestMachine *m, TlArena *arena, TlMap *rows);
TlFn *tl_nest_copy_function(const TlFn *of, TlMap *copy); /* `copy`: value to the copy's */
void tl_nest_drop_unused(TlFn *fn, TlArena *arena);       /* pure ops and loads */
/* nest_halo.c. The function with some columns more before those of tiles with a halo, *out_lead,
 * so that these begin with lines of memory; NULL: as it is. */
TlFn *tl_nest_lead(const TlFn *fn, const TlNestMachine *m, TlArena *arena, int64_t *out_lead);
/* nest_fold.c. The function with whole rows of arrays as one axis, but for its plan, and what it
 * asks of a launch. apart: those that may lie apart, of which there must be some. */
TlNestFold tl_nest_fold(const TlFn *fn, const TlNestMachine *m, bool apart, TlArena *arena);
/* nest_dense.c. The same of arrays whose elements lie side by side, which a launch decides. */
TlNestFold tl_nest_dense(const TlFn *fn, TlArena *arena);
/* Does a launch decide? */
static inline bool tl_nest_fold_asks(const TlNestFold *f)
{
    return f->views.len || f->dense.len || f->alone;
}
/* nest_wide.c. Plans of one kernel, `other` made with the tags of `plan` at its beginning: their
 * homes lie in scratch memory side by side. */
void tl_nest_share_scratch(TlNests *plan, TlNests *other);

/* ---- what they share ---- */
/* nest_width.c. The lanes that suit computing v, at most `limit`; own: by its op although it has a
 * home. *why, where there are fewer: what wants so few. */
int tl_nest_width(const TlNests *plan, TlValue *v, int limit, bool own, const char **why);
int tl_nest_access_width(const TlNests *plan, const TlNestAccess *a, int limit, const char **why);
/* As many lanes as a register has indices. Masks of more take LLVM twice the time, for lanes that
 * are few. */
int tl_nest_tested_width(const TlNests *plan, int width);
int tl_nest_wide_tests(const TlNests *plan, const TlNest *n); /* lanes of a nest that is split */
/* Rows of a block that registers hold well while it is transposed. */
int tl_nest_transpose_width(const TlNests *plan, TlDtype dtype);
/* nest_inside.c. Names what a nest evaluates, accesses and stores, with the dimension of each that
 * the nest's lanes are along; then how it is split, where whole vectors are taken `step` lanes at a
 * time. */
void tl_nest_ask_value(TlNests *plan, TlNest *n, TlValue *v, int lane, bool own);
void tl_nest_ask_access(TlNests *plan, TlNest *n, TlNestAccess *a, int lane);
void tl_nest_ask_store(TlNests *plan, TlNest *n, TlNestAccess *a, int lane);
void tl_nest_split(TlNests *plan, TlNest *n, int64_t extent, int step);
/* Do the nest's loops visit only what is inside of an axis? So of the store's, and of loads' that
 * have the same slice of as many elements. */
bool tl_nest_in_box(const TlNest *n, const TlNestAsk *ask, uint32_t axis);
/* Else: is it a slice along a dimension across the lanes, of which the nest has the positions? */
bool tl_nest_asks_row(const TlNest *n, const TlNestAsk *ask, uint32_t axis);
/* nest_fill.c */
TlNest *tl_nest_new(TlNests *plan, TlNestKind kind, TlOp *op, const TlType *type);
void tl_nest_define(TlNests *plan, TlOp *op); /* its result, into that one's home */
bool tl_nest_takes_words(const TlNest *n); /* all words of a vector that it turns, together? */
/* It tests nothing: up to so many lanes, as they divide the extent. */
void tl_nest_take_whole(TlNest *n, int lanes);
/* `type` from one home, of such elements, into another one. */
void tl_nest_copy(TlNests *plan, TlOp *at, const TlType *type, TlDtype from_dtype, int32_t from,
                  int32_t to, int lanes);
/* All elements of v, converted to dtype, into a home: nothing when that is v's own. */
void tl_nest_materialise(TlNests *plan, TlOp *at, TlValue *v, TlDtype dtype, int32_t home);
/* Moves an op's tile operands, from operand `first` on, to the homes of `to`, as if all at once. */
void tl_nest_move(TlNests *plan, TlOp *op, uint32_t first, uint32_t n, TlValue *const *to);
/* nest_whole.c. The access of an op, if a program is asked whether that is inside; does that ask
 * about an axis? */
const TlNestAccess *tl_nest_asked(const TlNests *plan, const TlOp *op);
/* nest_range.c. How far apart the least and the greatest number are that a scalar of a program is,
 * at most; 0: it is one number, known before any tile; -1: that is not known before. */
int64_t tl_nest_spread(const TlNests *plan, const TlValue *v);
void tl_nest_find_ranges(TlNests *plan); /* when plan->early is known */
/* Trips of the loops around an op, in the block that asks; of those that are not known, some. */
int64_t tl_nest_times_of(const TlNests *plan, const TlOp *op);
bool tl_nest_asks_axis(const TlNestAccess *a, uint32_t i);
/* nest_way.c. The tile from which a histogram's values are counted where they lie, along `lane`. */
TlValue *tl_nest_counted(const TlNests *plan, TlValue *v, int lane);
/* nest_quads.c. Is an op the sums of four products of neighbouring bytes each? */
typedef struct TlNestQuads {
    TlValue *factor[2]; /* i32, with four elements for each sum along the last axis */
    TlValue *byte[2];   /* i8 or u8: what they widen, before it is broadcast */
} TlNestQuads;
bool tl_nest_quads(const TlNests *plan, const TlOp *op, TlNestQuads *out);
/* Are they of u8, and known to be less than 128? Then they are the same as i8. */
bool tl_nest_is_small_byte(const TlValue *v);
/* The operand of an addition that is such sums, and nothing else needs; -1: neither is. */
int tl_nest_adds_quads(const TlNests *plan, const TlOp *op);
/* Does an op repeat a factor of such sums, multiply, or reshape the products? */
bool tl_nest_feeds_quads(const TlNests *plan, const TlOp *op);
bool tl_nest_is_for_quads(const TlNests *plan, const TlOp *op); /* is it on the way to any? */
/* Does it widen bytes that a broadcast then repeats for such sums? */
bool tl_nest_widens_for_quads(const TlNests *plan, const TlOp *op);
/* nest_reduce.c. Does a broadcast repeat no more than the rows that a reduction takes together?
 * What it repeats is computed once for all of them. */
bool tl_nest_repeats_rows(const TlOp *broadcast, const TlOp *reduce);
/* `at`: the op where it is done, whose home `fill` is filled on the way, or NULL. */
void tl_nest_build_reduce(TlNests *plan, TlOp *at, TlOp *reduce, TlValue *fill);
void tl_nest_build_scan(TlNests *plan, TlOp *scan);
/* Pieces of a store that passes by the caches, at least; the alignment that this wants. */
enum { TL_NEST_STREAM_BYTES = 16 };
/* nest_blocks.c: products */
void tl_nest_build_dot(TlNests *plan, TlOp *dot, int32_t pack);
void tl_nest_build_product(TlNests *plan, const TlNestProduct *p);
void tl_nest_build_lone_product(TlNests *plan, const TlNestProduct *p);

/* nest_product.c. Do p and q have the same slice along these axes of their tiles, of axes of equal
 * extent? */
bool tl_nest_same_slice(const TlFn *fn, const TlPlace *p, int p_dim, const TlPlace *q, int q_dim);
/* NULL: the loop is more than a product. Asked when values have their homes. */
TlNestProduct *tl_nest_product(const TlFn *fn, const TlNests *plan, TlOp *loop, TlArena *arena);
/* A product that no loop sums as a whole, by an instruction of the CPU. NULL: there is none for it,
 * and its operands go to homes in the type of the sums. */
TlNestProduct *tl_nest_lone_product(const TlNests *plan, TlOp *dot, TlArena *arena);
bool tl_nest_is_lone_product(const TlNests *plan, TlOp *dot);
/* The dot of a loop that does nothing else, with the carried tile as what it adds to; NULL: there
 * is none. Values with homes are something else to do; plan NULL: none is known to have one. */
TlOp *tl_nest_only_dot(const TlFn *fn, const TlNests *plan, const TlOp *loop);
/* nest_operand.c. The load that v, an operand, is a conversion or a transposition of; elements
 * outside are zeros. *out_transposed: v's rows are the load's columns. NULL: none. */
TlOp *tl_nest_load_under(const TlValue *v, bool *out_transposed);
/* The only load that v is computed from, element by element. */
TlOp *tl_nest_load_in(const TlValue *v, bool *out_transposed);
/* The dimension of v along which the elements that it is computed from lie without gaps in memory.
 * -1: neither, or not known. */
int tl_nest_dense_dim(const TlFn *fn, const TlValue *v);
/* Sets p->key: the values that say, beside the launch and k, what B is. False: they do not, or are
 * too many. */
bool tl_nest_find_keys(const TlNests *plan, TlNestProduct *p, TlArena *arena);
/* Is v the same in all programs of a launch? */
bool tl_nest_is_of_launch(const TlValue *v);
#endif
