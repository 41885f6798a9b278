/* Ops that make tiles or rename their elements. */
#include <string.h>

#include "ir/interp/interp_impl.h"

void tl_elem_fill(void *y, const void *x, size_t bytes, int64_t n)
{
    if (n <= 0)
        return;
    size_t total = bytes * (size_t)n, done = bytes;
    memmove(y, x, bytes);
    while (done < total) { /* double what has been copied */
        size_t more = done < total - done ? done : total - done;
        memcpy((char *)y + done, y, more);
        done += more;
    }
}

static void copy_row(char *y, const char *x, size_t bytes, int64_t n, int64_t stride)
{
    if (stride == 1)
        memcpy(y, x, bytes * (size_t)n);
    else if (stride == 0)
        tl_elem_fill(y, x, bytes, n);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(y + (size_t)i * bytes, x + i * stride * (int64_t)bytes, bytes);
}

void tl_elem_copy(void *y, const void *x, size_t bytes, int rank, const int32_t *shape,
                  const int64_t *stride)
{
    TL_ASSERT(rank >= 0 && rank <= TL_MAX_RANK && bytes > 0, "a tile of rank %d", rank);
    int32_t at[TL_MAX_RANK] = {0};
    int64_t row = rank ? shape[rank - 1] : 1, from = 0;
    char *to = y;
    for (;;) {
        copy_row(to, (const char *)x + from * (int64_t)bytes, bytes, row,
                 rank ? stride[rank - 1] : 1);
        to += (size_t)row * bytes;
        int d = rank - 2;
        for (; d >= 0; d--) { /* count up, last axis but one first */
            from += stride[d];
            if (++at[d] < shape[d])
                break;
            from -= stride[d] * shape[d];
            at[d] = 0;
        }
        if (d < 0)
            return;
    }
}

static void row_major(const TlType *t, int64_t *stride)
{
    int64_t s = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        stride[d] = s;
        s *= t->shape[d];
    }
}

TL_EVAL(CONST)
{
    const TlAttr *value = tl_attr(op, TL_ATTR_VALUE);
    uint64_t element[2] = {value->u.bits, 0};
    if (y[0].type->ptr)
        memcpy(element, &(TlInterpPtr){value->u.bits, -1, 0}, sizeof element);
    else
        tl_elem_set(y[0].type->dtype, element, 0, value->u.bits);
    tl_elem_fill(y[0].data, element, tl_interp_elem_bytes(y[0].type), tl_type_elems(y[0].type));
}

TL_EVAL(IOTA)
{
    TlDtype d = y[0].type->dtype;
    int64_t n = tl_type_elems(y[0].type);
    for (int64_t i = 0; i < n; i++)
        tl_elem_set(d, y[0].data, i, tl_bits_from_int(d, i));
}

TL_EVAL(BROADCAST)
{
    const TlType *from = x[0].type, *to = y[0].type;
    int64_t stride[TL_MAX_RANK] = {0}, own[TL_MAX_RANK];
    row_major(from, own);
    for (int d = 0; d < from->rank;
         d++) /* right-aligned; ranks are equal unless the operand is a scalar */
        stride[to->rank - from->rank + d] = from->shape[d] == 1 ? 0 : own[d];
    tl_elem_copy(y[0].data, x[0].data, tl_interp_elem_bytes(to), to->rank, to->shape, stride);
}

static void same_elements(const TlTileData *x, TlTileData *y)
{
    memcpy(y[0].data, x[0].data, tl_interp_bytes(y[0].type));
}
TL_EVAL(EXPAND)
{
    same_elements(x, y);
}
TL_EVAL(RESHAPE)
{
    same_elements(x, y);
}

TL_EVAL(REGROUP)
{
    same_elements(x, y);
}
TL_EVAL(CONVERT)
{
    same_elements(x, y);
}

TL_EVAL(TRANS)
{
    const TlAttr *perm = tl_attr(op, TL_ATTR_PERM);
    int64_t stride[TL_MAX_RANK], own[TL_MAX_RANK];
    row_major(x[0].type, own);
    for (int d = 0; d < y[0].type->rank; d++)
        stride[d] = own[perm->u.ints[d]];
    tl_elem_copy(y[0].data, x[0].data, tl_interp_elem_bytes(y[0].type), y[0].type->rank,
                 y[0].type->shape, stride);
}

/* One element of the operand per element of the index. */
TL_EVAL(GATHER)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TL_ASSERT(axis >= 0 && axis < x[0].type->rank, "axis %d of %d", axis, (int)x[0].type->rank);
    const TlType *from = x[0].type, *to = y[0].type;
    TlDtype d = x[1].type->dtype;
    size_t bytes = tl_interp_elem_bytes(to);
    uint64_t extent = (uint64_t)from->shape[axis];
    int64_t n = tl_type_elems(to), inner = 1, row = to->shape[axis];
    for (int i = axis + 1; i < to->rank; i++)
        inner *= to->shape[i];
    memset(y[0].data, 0, bytes * (size_t)n);
    for (int64_t e = 0; e < n; e++) {
        uint64_t k = (uint64_t)tl_bits_to_int(d, tl_elem_get(d, x[1].data, e));
        int64_t outer = e / (inner * row);
        if (k < extent)
            memcpy((char *)y[0].data + bytes * (size_t)e,
                   (const char *)x[0].data +
                       bytes * (size_t)((outer * (int64_t)extent + (int64_t)k) * inner + e % inner),
                   bytes);
    }
}

TL_EVAL(HISTOGRAM)
{
    const int32_t *value = x[0].data;
    int32_t bins = y[0].type->shape[0];
    TlDtype d = tl_op_dtype(op, y[0].type->dtype);
    TlElemFn add = tl_combine_fn(TL_COMBINE_ADD, d);
    size_t bytes = (size_t)tl_dtype_bytes(d);
    const int32_t one = 1;
    memset(y[0].data, 0, bytes * (size_t)bins);
    for (int64_t e = 0; e < tl_type_elems(x[0].type); e++) {
        const void *weight = op->nin > 1 ? (char *)x[1].data + bytes * (size_t)e : (void *)&one;
        if (value[e] < 0 || value[e] >= bins)
            continue;
        char *sum = (char *)y[0].data + bytes * (size_t)value[e];
        add(sum, sum, weight, 1);
    }
}
