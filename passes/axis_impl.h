/* Shared by axis_info.c (facts of values) and axis_access.c (views and accesses). */
#ifndef TL_AXIS_IMPL_H
#define TL_AXIS_IMPL_H
#include "passes/axis_info.h"

/* The promise of aligned kernels: bytes; the same in elements. Packed elements count as bytes. */
enum { TL_AXIS_ALIGNMENT = 16 };
int64_t tl_axis_aligned_unit(TlDtype dtype);

#define TL_AXIS_MAX ((int64_t)1 << 62) /* the divisibility of 0 */

struct TlAxisInfo {
    const TlFn *fn;
    TlAxisFacts *facts; /* by value id */
};

/* What is known of a view: divisibility, and the number itself when `known` (else -1). */
typedef struct TlViewFacts {
    int64_t base; /* bytes */
    int64_t extent[TL_MAX_VIEW_RANK], known_extent[TL_MAX_VIEW_RANK];
    int64_t stride[TL_MAX_VIEW_RANK], known_stride[TL_MAX_VIEW_RANK];
} TlViewFacts;
TlViewFacts tl_view_facts(const TlAxisInfo *a, const TlValue *view);

/* The largest power of two that divides x, at most TL_AXIS_MAX. */
int64_t tl_axis_divisor(int64_t x);
static inline int64_t tl_axis_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
int64_t tl_axis_times(int64_t a, int64_t b); /* of powers of two, at most TL_AXIS_MAX */
#endif
