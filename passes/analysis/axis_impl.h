/* Shared by axis_info.c (fixed point), axis_transfer.c (what each op does to facts) and
 * axis_access.c (views and accesses). */
#ifndef TL_AXIS_IMPL_H
#define TL_AXIS_IMPL_H
#include "passes/analysis/axis_info.h"

#define TL_AXIS_MAX ((int64_t)1 << 62) /* the divisibility of 0 */

struct TlAxisInfo {
    const TlFn *fn;
    uint32_t nvalues;
    TlAxisFacts *facts;   /* by value id */
    TlAxisFacts *assumed; /* by value id: divisibility[0], lo and hi that `assume` promises */
    int64_t pid_end[TILE_MAX_GRID]; /* pids are below */
    uint64_t promised;              /* which of the form's promises hold, tl_axis_promise_bit */
    uint64_t rests_on;              /* promises that the facts would ask for */
    uint64_t *asked;                /* while the facts are found: those asked for so far */
};

/* What is known of a view: divisibility, and the number itself when `known` (else -1). */
typedef struct TlViewFacts {
    int64_t base; /* bytes */
    int64_t extent[TL_MAX_VIEW_RANK], known_extent[TL_MAX_VIEW_RANK], extent_hi[TL_MAX_VIEW_RANK];
    int64_t stride[TL_MAX_VIEW_RANK], known_stride[TL_MAX_VIEW_RANK];
} TlViewFacts;
TlViewFacts tl_view_facts(const TlAxisInfo *a, const TlValue *view);

/* Is the index along axis i of the view inside, by numbers? */
bool tl_access_axis_inside(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v, uint32_t i);

/* For how long axis `dim` of the accessed tile stays on one element of memory, under one mask. */
int64_t tl_access_constancy(const TlAxisInfo *a, const TlPlace *p, int dim);

/* The facts when only these of the form's promises about units hold. */
TlAxisInfo *tl_axis_info_promised(const TlFn *fn, TlArena *arena, uint64_t promised);
/* The same facts, which do not rest on the others, for the accesses' sake. */
TlAxisInfo tl_axis_info_narrowed(const TlAxisInfo *a, uint64_t promised);
/* Of promise number i; those from 63 on share a bit. */
static inline uint64_t tl_axis_promise_bit(uint32_t i)
{
    return (uint64_t)1 << (i < 63 ? i : 63);
}
/* What the number is a multiple of, by promise; 1: of nothing. */
int64_t tl_axis_promised(const TlAxisInfo *a, tile_test_kind kind, uint32_t param, int axis);

/* The largest power of two that divides x, at most TL_AXIS_MAX. */
int64_t tl_axis_divisor(int64_t x);
static inline int64_t tl_axis_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t tl_axis_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
int64_t tl_axis_times(int64_t a, int64_t b); /* of powers of two, at most TL_AXIS_MAX */

/* ---- axis_transfer.c ---- */
TlAxisFacts tl_axis_unknown(const TlType *t); /* nothing but the range of the type */
TlAxisFacts tl_axis_join(const TlType *t, const TlAxisFacts *a, const TlAxisFacts *b);
/* Facts of a result of an op without regions, from those of its operands. */
TlAxisFacts tl_axis_transfer(const TlAxisInfo *a, const TlOp *op, uint32_t result);
void tl_axis_type_range(TlDtype d, int64_t *lo, int64_t *hi);
bool tl_axis_has_numbers(const TlType *t); /* an integer or bool, no pointer */
#endif
