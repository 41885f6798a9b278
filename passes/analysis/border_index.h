/* Indices that a border maps to positions inside, as load(..., border = ...) writes them
 * (frontend/border.c). */
#ifndef TL_BORDER_INDEX_H
#define TL_BORDER_INDEX_H
#include "ir/ir.h"

/* Where positions outside of an axis of E elements are read. The nearest element is none of these:
 * that is a bound. */
typedef enum TlMirror {
    TL_MIRROR_NONE,
    TL_MIRROR_WRAP,      /* at the other end: x modulo E */
    TL_MIRROR_REFLECT,   /* mirrored at the last element: -1 is 1, E is E - 2 */
    TL_MIRROR_SYMMETRIC, /* mirrored behind it: -1 is 0, E is E - 1 */
} TlMirror;

/* Is v, an index or index tile, numbers *out_x mapped into the view's axis in that way? Numbers
 * inside are as they were. */
TlMirror tl_border_index(const TlValue *v, const TlValue *view, uint32_t axis, TlValue **out_x);
#endif
