/* What the pass `bounds` knows of an access, axis by axis: why it is inside, or why there is no
 * proof (bounds.c). For `tilec explain`; works on any IR, before or after the pass. */
#ifndef TL_BOUNDS_H
#define TL_BOUNDS_H
#include "passes/analysis/axis_info.h"

typedef enum TlBound {
    TL_BOUND_INSIDE,     /* by proof */
    TL_BOUND_REST,       /* a slice in what peeling left: the last iteration of a loop */
    TL_BOUND_LOOP_OUTER, /* a slice in a loop that is not peeled: it holds another loop, */
    TL_BOUND_LOOP_LONG,  /* its body is long, */
    TL_BOUND_LOOP_AHEAD, /* it is one for `pipeline`, */
    TL_BOUND_LOOP_STEP,  /* its step is not a constant, or shorter than the slice, */
    TL_BOUND_LOOP_END,   /* its end is not the extent, */
    TL_BOUND_LOOP_SIGN,  /* its start or end may be negative, */
    TL_BOUND_LOOP,       /* or something else */
    TL_BOUND_GRID,       /* a pid, and the launch may give any grid */
    TL_BOUND_PROGRAM,    /* the start depends on the program's position on the grid */
    TL_BOUND_VALUES,     /* the index is a tile of numbers that may be anything */
    TL_BOUND_LENGTH,     /* it starts at a constant: the extent may be shorter than that */
    TL_BOUND_START,      /* the index or start may be anything */
    TL_BOUND_COUNT
} TlBound;

TlBound tl_bounds_of_axis(const TlFn *fn, const TlAxisInfo *facts, const TlOp *access,
                          uint32_t axis);
/* Is the axis inside, with a constant as start and as extent? */
bool tl_bounds_is_constant(const TlAxisInfo *facts, const TlOp *access, uint32_t axis);
/* The axes, as bits, on which all of the access is inside: nothing tests them. Of code that no pass
 * edits any more. */
uint32_t tl_bounds_sure_axes(const TlFn *fn, const TlAxisInfo *facts, const TlOp *access);
/* Is the loop one that peeling made: it ends with a whole step, what is left follows it? */
bool tl_bounds_is_peeled(const TlFn *fn, const TlAxisInfo *facts, const TlOp *loop);
#endif
