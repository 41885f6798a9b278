/* What is known of the numbers in tiles: contiguity, divisibility, constancy per axis (the
 * analysis that Triton calls AxisInfo), and what follows for memory accesses. `coalesce` chooses
 * layouts by it, `bounds` proves accesses inside, and the SIMT lowering takes its vector widths
 * and offset sizes from it. The facts are side arrays by value id, valid as long as the function
 * is not changed. */
#ifndef TL_AXIS_INFO_H
#define TL_AXIS_INFO_H
#include "ir/form.h"
#include "ir/ir.h"

/* All powers of two, per axis; scalars use axis 0.
 * contiguity c: every run of c elements that starts at a multiple of c counts up by 1;
 * divisibility: of the first element of each such run (pointers: in bytes);
 * constancy k: every run of k elements that starts at a multiple of k is equal.
 * Elements of integers and bools lie between lo and hi, as int64 (u64 that may be above: all of
 * int64). */
typedef struct TlAxisFacts {
    int64_t contiguity[TL_MAX_RANK], divisibility[TL_MAX_RANK], constancy[TL_MAX_RANK];
    bool is_known; /* all elements are `value` */
    int64_t value;
    int64_t lo, hi;
} TlAxisFacts;

typedef struct TlAxisInfo TlAxisInfo;
/* Facts of every value, as a fixed point over loops. Runs at both levels; layouts do not matter.
 * In a form that rests on promises (ir/form.h), these hold too. */
TlAxisInfo *tl_axis_info(const TlFn *fn, TlArena *arena);
/* Is this still what tl_axis_info would find? */
bool tl_axis_info_holds(const TlAxisInfo *a, TlArena *scratch);
const TlAxisFacts *tl_axis_facts(const TlAxisInfo *a, const TlValue *v);

/* What an access's width comes from when it is below 16 bytes. */
typedef enum TlNarrow {
    TL_NARROW_NOT,    /* it is not */
    TL_NARROW_AXIS,   /* addresses count up along no axis of the tile */
    TL_NARROW_START,  /* where runs start along it */
    TL_NARROW_BASE,   /* where the view, or the array of pointers, begins */
    TL_NARROW_OFFSET, /* what is added to a pointer that begins well */
    TL_NARROW_WRAP,   /* a remainder cuts runs */
    TL_NARROW_EXTENT, /* the view's extent along it: a bound might be inside of a run */
    TL_NARROW_END,    /* the same; the extent is a constant */
    TL_NARROW_STRIDE, /* what the other axes add to the address: strides, scalar indices */
    TL_NARROW_PITCH,  /* the same; the stride is a constant */
    TL_NARROW_ROWS,   /* the index on another axis changes within a run */
    TL_NARROW_MASK,   /* the mask */
    TL_NARROW_SHAPE,  /* the tile's own extent */
    TL_NARROW_BITS,   /* elements that are not whole bytes */
    TL_NARROW_COUNT
} TlNarrow;

/* A memory op. `dim`: the axis of the accessed tile along which addresses count up element by
 * element; -1: none. Then every run of `width` coordinates along dim that starts at a multiple of
 * width is consecutive in memory, starts at a multiple of width * element bytes (at most 16 bytes),
 * and is in bounds and unmasked as a whole or not at all. */
typedef struct TlAccessInfo {
    int dim;
    int width;
    TlNarrow why;      /* what keeps the width below 16 bytes */
    bool needs_bounds; /* some element may be outside of the view (never with UNCHECKED) */
    bool offset32; /* elements inside: byte offsets from the view's first fit 31 bits, by proof */
    /* axes (bits) of the view where start and extent are in 0 .. 2^31 - 1, and what the tile adds
     * to the start is below 2^30: their difference decides about bounds, in 32 bits */
    uint32_t narrow;
    /* axes whose strides the form wants below TL_LOCAL_STRIDE: then bytes from the
     * slice's first element to any of its elements fit 32 bits; 0: they need not */
    uint32_t local;
    bool near; /* such bytes fit 31 bits, also for elements outside; by known strides and `local` */
    /* the slice's first element is at 0 to 2^48 - 1, even if it is outside, where the scalar
     * indices that are tested are inside */
    bool low_base;
    /* axes of one index of 32 bits whose strides the form wants from 0 on, below 2^32 bytes and
     * 2^31 elements; axes whose strides are so: known to be, `local` or `asked` */
    uint32_t asked, low;
    /* The first of the last axes that together add 0 to 2^31 - 1 elements to the address of an
     * element inside, as the sum of index * stride; their number where no axis does. */
    uint32_t inner;
} TlAccessInfo;
TlAccessInfo tl_access_info(const TlAxisInfo *a, const TlOp *op);
/* The power of two, in elements, that strides of `asked` and `low` are below. */
int64_t tl_access_most_stride(const TlOp *op);
/* The axes, as bits, of an asynchronous copy along which one test of the whole tile can replace
 * those of its elements, in 32 bits: of slices that the loop around it moves. Its code is emitted
 * twice then. check: with --check. */
uint32_t tl_copy_whole_axes(const TlOp *copy, const TlAccessInfo *info, bool check);
/* How many registers of layout l move together in a load or store: neighbours in memory, as many as
 * the width allows, 16 bytes at most. l NULL: a scalar. */
int tl_access_vector(const TlAccessInfo *info, const TlOp *op, const TlLayout *l);

/* ---- extents (axis_extent.c) ---- */
/* v without casts that keep every value it can have. */
const TlValue *tl_axis_plain(const TlAxisInfo *a, const TlValue *v);
/* Is the number v the extent of that axis of the view: the same value, or extents of parameters
 * that the launch demands to be equal? */
bool tl_axis_is_extent(const TlAxisInfo *a, const TlValue *v, const TlValue *view, uint32_t axis);
/* NULL: no parameter. */
const TlDim *tl_axis_param_extent(const TlFn *fn, const TlValue *view, uint32_t axis);
/* Is the pid below the extent for sure: by the clause, if the launch's grid is the clause's? */
bool tl_axis_pid_inside(const TlFn *fn, const TlOp *pid, const TlValue *view, uint32_t axis);
/* The same of a number that may be such a pid, or one times a constant where the clause has the
 * extent over the constant: where a program's tile starts. */
bool tl_axis_starts_inside(const TlAxisInfo *a, const TlValue *start, const TlValue *view,
                           uint32_t axis);
/* Is the view's extent on the axis below 2^31 for sure? Its stride there, from 0 on? */
bool tl_view_is_short(const TlAxisInfo *a, const TlValue *view, int axis);
bool tl_view_has_short_stride(const TlAxisInfo *a, const TlValue *view, int axis);
#endif
