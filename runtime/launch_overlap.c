/* launch_overlap.c: do two bound views have an element in common? True only if that is certain.
 *
 *  1. each view lies in a range of bytes; ranges that do not meet have nothing in common
 *  2. a view that fills its range has a common element with any that begins or ends within it
 *  3. two views of the same strides meet if the distance of their first elements is a sum of
 *     multiples of the strides, each within the extents
 *
 * Step 3 is a search that takes the largest stride first and tries the two nearest multiples:
 * enough if each stride is beyond what the smaller ones reach, as in slices of one array. An
 * element that it finds is common; views for which it finds none may still have one, and pass. */
#include "runtime/runtime.h"

/* Bytes from `begin` up to `end`; filled: each of them is of an element. */
typedef struct range {
    uintptr_t begin, end;
    bool filled;
} range;

/* An axis of more than one element in one of the views; the difference of two positions along it is
 * in [least, most]. */
typedef struct axis {
    int64_t stride, least, most;
} axis;

static uint64_t magnitude(int64_t n)
{
    return n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
}

/* By the strides' magnitudes, the largest first. */
static void sort(axis *axes, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k && magnitude(axes[k].stride) > magnitude(axes[k - 1].stride); k--) {
            axis swapped = axes[k];
            axes[k] = axes[k - 1];
            axes[k - 1] = swapped;
        }
}

/* The axes of one view, sorted: positions along each are 0 to most. Returns their number. */
static int axes_of(const tile_arg *a, axis out[TILE_MAX_RANK])
{
    int n = 0;
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] > 1 && a->stride[i] != 0)
            out[n++] = (axis){a->stride[i], 0, a->extent[i] - 1};
    sort(out, n);
    return n;
}

/* False: it has no elements, or more than memory. */
static bool range_of(const tile_arg *a, range *out)
{
    enum { MOST_BITS = 60 }; /* of a distance in bytes, so that sums of a few fit in 64 */
    const uint64_t most = (uint64_t)1 << MOST_BITS;
    axis axes[TILE_MAX_RANK];
    uint64_t before = 0, elements = 1, bits = (uint64_t)tile_dtype_bits((tile_dtype)a->dtype);
    for (int i = 0; i < a->rank; i++)
        if (a->extent[i] < 1)
            return false;
    out->filled = true;
    for (int i = axes_of(a, axes) - 1; i >= 0; i--) {
        uint64_t stride = magnitude(axes[i].stride), n = (uint64_t)axes[i].most;
        if (stride > most / n || elements + stride * n > most)
            return false;
        out->filled &= stride <= elements;
        elements += stride * n;
        before += axes[i].stride < 0 ? stride * n : 0;
    }
    out->begin = (uintptr_t)a->address - before * bits / 8;
    out->end = (uintptr_t)a->address + ((elements - before) * bits + 7) / 8;
    return true;
}

/* Is `distance` a sum of multiples of the strides? */
static bool reaches(const axis *axes, int n, int64_t distance)
{
    if (n == 0)
        return distance == 0;
    int64_t stride = axes->stride;
    if (n == 1 && stride == 1)
        return distance >= axes->least && distance <= axes->most;
    int64_t down = distance / stride;
    int64_t next = (distance < 0) == (stride < 0) ? down + 1 : down - 1;
    for (int i = 0; i < 2; i++, down = next)
        if (down >= axes->least && down <= axes->most &&
            reaches(axes + 1, n - 1, distance - down * stride))
            return true;
    return false;
}

/* The axes of both; -1: their strides differ. */
static int common_axes(const tile_arg *x, const tile_arg *y, axis out[TILE_MAX_RANK])
{
    int n = 0;
    if (x->rank != y->rank)
        return -1;
    for (int i = 0; i < x->rank; i++) {
        int64_t stride = x->extent[i] > 1 ? x->stride[i] : y->stride[i];
        if (y->extent[i] > 1 && y->stride[i] != stride)
            return -1;
        if (stride != 0 && (x->extent[i] > 1 || y->extent[i] > 1))
            out[n++] = (axis){stride, 1 - y->extent[i], x->extent[i] - 1};
    }
    sort(out, n);
    return n;
}

static bool have_common_element(const tile_arg *x, const tile_arg *y)
{
    axis axes[TILE_MAX_RANK];
    int bits = tile_dtype_bits((tile_dtype)x->dtype), bytes = bits / 8;
    int n = bits == tile_dtype_bits((tile_dtype)y->dtype) ? common_axes(x, y, axes) : -1;
    int64_t distance = (int64_t)((uintptr_t)y->address - (uintptr_t)x->address);
    if (n < 0 || (bytes && distance % bytes))
        return false;
    return reaches(axes, n, bytes ? distance / bytes : distance * 2);
}

static bool is_within(const range *in, const tile_arg *a, const range *its)
{
    uintptr_t first = (uintptr_t)a->address;
    return in->filled && ((first >= in->begin && first < in->end) ||
                          (its->begin >= in->begin && its->begin < in->end) ||
                          (its->end > in->begin && its->end <= in->end));
}

bool tl_views_overlap(const tile_arg *x, const tile_arg *y)
{
    range xs, ys;
    if (!range_of(x, &xs) || !range_of(y, &ys) || xs.begin >= ys.end || ys.begin >= xs.end)
        return false;
    return x->address == y->address || (xs.filled && ys.filled) || is_within(&xs, y, &ys) ||
           is_within(&ys, x, &xs) || have_common_element(x, y);
}
