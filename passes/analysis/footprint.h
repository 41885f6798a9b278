/* What memory an op of the laid-out level touches, and with which threads: enough to say whether
 * two ops of one program need a barrier between them (synchronize).
 *
 * Starts of slices, indices and pointers are linear forms, constant + sum of factor * value, where
 * a value is a scalar, an iota along an axis of the accessed tile, or anything else as it is. Two
 * indices along an axis then differ by the difference of their forms. Forms are compared as
 * unbounded integers: an i32 start that wraps returns to its value after 2^32 / step iterations,
 * and no thread is as far ahead of another. */
#ifndef TL_FOOTPRINT_H
#define TL_FOOTPRINT_H
#include "ir/ir.h"
#include "ir/layout/layout.h"

enum { TL_FORM_TERMS = 8 };

typedef struct TlTerm {
    const TlValue *value; /* NULL: an iota along `dim`, of `extent` elements */
    int32_t dim, extent;
    int64_t factor;
} TlTerm;

typedef struct TlForm {
    int64_t constant;
    uint32_t n;
    TlTerm term[TL_FORM_TERMS];
} TlForm;

typedef struct TlFootAxis {
    TlForm form;
    TlAxis how;     /* pointers: TL_AXIS_TILE */
    bool is_ranged; /* what the tile's elements add to the uniform part is within [lo, hi] */
    int64_t lo, hi;
} TlFootAxis;

typedef struct TlFootprint {
    const TlOp *op;
    bool writes, is_atomic;
    /* done by one thread, the same one for all such ops: writes and atomics of a scalar */
    bool once;
    uint64_t roots;      /* parameters it may reach, and those that alias them; bit 63: anything */
    const TlValue *base; /* the view; NULL: pointers */
    uint32_t naxes;
    TlFootAxis axis[TL_MAX_VIEW_RANK];
    bool is_packed;   /* elements share bytes: a write touches what is another thread's */
    bool is_plain;    /* different indices are different addresses */
    bool is_distinct; /* no two elements of the tile have the same address */
    bool is_copied;   /* threads hold copies, so a load is done by several */
    const TlLayout *layout;
} TlFootprint;

/* NULL: the op touches no memory, or only memory that nobody writes during the launch. */
TlFootprint *tl_footprint(const TlOp *op, TlArena *arena);
bool tl_footprints_overlap(const TlFootprint *a, const TlFootprint *b); /* by their roots */
/* May b, in one thread, touch what a touched before in another, and one of them write? crossed: the
 * outermost loop that has gone to another iteration between them; NULL: none has. */
bool tl_footprints_conflict(const TlFootprint *a, const TlFootprint *b, const TlOp *crossed);
#endif
