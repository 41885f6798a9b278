/* check.c: what the functions check of their arguments in the same way. */
#include "stdlib/library/library.h"

#include <inttypes.h>
#include <string.h>

/* No array ends behind this element: its bytes would have no addresses. */
#define MOST_ELEMENTS (INT64_C(1) << 59)

tile_status tl_lib_wrong(const char *function, const char *name, int64_t value, const char *rule)
{
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is %" PRId64 ", but must be %s", function, name,
                       value, rule);
}

tile_status tl_lib_check_extent(const char *function, const char *name, int64_t value)
{
    return value >= 0 && value <= INT32_MAX
               ? TILE_OK
               : tl_lib_wrong(function, name, value, "from 0 to 2147483647");
}

tile_status tl_lib_check_float(const char *function, tile_dtype type)
{
    if (type == TILE_F32 || type == TILE_F16 || type == TILE_BF16)
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: type is %s, but must be f32, f16 or bf16", function,
                       tile_dtype_name(type));
}

tile_status tl_lib_check_real(const char *function, tile_dtype type)
{
    if (type == TILE_F32 || type == TILE_F64)
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: type is %s, but must be f32 or f64", function,
                       tile_dtype_name(type));
}

tile_status tl_lib_check_choice(const char *function, const char *name, int value, const char *of)
{
    return value == 0 || value == 1 ? TILE_OK : tl_lib_wrong(function, name, value, of);
}

tile_status tl_lib_check_increment(const char *function, const char *name, int64_t value)
{
    return value != 0 && value != INT64_MIN
               ? TILE_OK
               : tl_lib_wrong(function, name, value, "1 or more, or -1 or less");
}

void tl_lib_put_vector(tile_arg *to, const void *address, tile_dtype type, int64_t n,
                       int64_t increment)
{
    int64_t last = increment < 0 && n > 0 ? (n - 1) * -increment : 0;
    tl_lib_put_view(to, (const char *)address + last * tile_dtype_bits(type) / 8, type, 1, &n,
                    &increment);
}

void tl_lib_put_factor(tile_arg *to, double x, tile_dtype type)
{
    uint64_t bits = 0;
    float f = (float)x;
    if (type == TILE_F64)
        memcpy(&bits, &x, sizeof x);
    else
        memcpy(&bits, &f, sizeof f);
    tl_lib_put_bits(to, type, bits);
}

int64_t tl_lib_span(const int64_t *extents, const int64_t *strides, int n, tile_dtype type)
{
    int64_t end = 1, more;
    for (int i = 0; i < n; i++) {
        if (extents[i] == 0)
            return 0;
        if (strides[i] < 0 || __builtin_mul_overflow(extents[i] - 1, strides[i], &more) ||
            __builtin_add_overflow(end, more, &end))
            return -1;
    }
    return end <= MOST_ELEMENTS ? end * tile_dtype_bits(type) / 8 : -1;
}

tile_status tl_lib_check_strided(const char *function, const char *name, const char *strides_name,
                                 const void *address, const int64_t *extents,
                                 const int64_t *strides, int n, tile_dtype type)
{
    int64_t span = tl_lib_span(extents, strides, n, type);
    if (span < 0)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s has a negative stride, or is larger than "
                                              "memory", function, strides_name);
    if (span > 0 && !address)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function, name);
    return TILE_OK;
}

/* The axis of the least stride lies within the next one's stride, and so on. Extents of 1 are
 * nowhere. */
bool tl_lib_is_apart(const int64_t *extents, const int64_t *strides, int n)
{
    int64_t end = 1; /* what the axes so far take, in elements */
    unsigned done = 0;
    for (int i = 0; i < n; i++) {
        if (extents[i] == 0)
            return true;
        if (extents[i] == 1)
            done |= 1U << i;
    }
    for (;;) {
        int least = -1;
        for (int i = 0; i < n; i++)
            if (!(done & 1U << i) && (least < 0 || strides[i] < strides[least]))
                least = i;
        if (least < 0)
            return true;
        if (strides[least] < end)
            return false;
        end += (extents[least] - 1) * strides[least];
        done |= 1U << least;
    }
}

tile_status tl_lib_check_matrix_fully(const char *function, const TlLibMatrix *m, int64_t batch)
{
    const int64_t extents[] = {batch, m->rows, m->columns}, strides[] = {m->stride, m->ld, 1};
    if (m->ld < 1 || m->ld < m->columns)
        return tl_lib_fail(TILE_BAD_ARGUMENT,
                           "%s: %s is %" PRId64 ", but a row of %s has %" PRId64 " elements",
                           function, m->ld_name, m->ld, m->name, m->columns > 0 ? m->columns : 1);
    if (m->stride < 0)
        return tl_lib_wrong(function, m->stride_name, m->stride, "0 or more");
    int64_t span = tl_lib_span(extents, strides, 3, TILE_I8);
    if (span < 0)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s with %s = %" PRId64 " is larger than memory",
                           function, m->name, m->ld_name, m->ld);
    if (span > 0 && !m->address)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function, m->name);
    return TILE_OK;
}

static uintptr_t end_of(const TlLibMatrix *m, tile_dtype type)
{
    const int64_t extents[] = {m->rows, m->columns}, strides[] = {m->ld, 1};
    return (uintptr_t)m->address + (uintptr_t)tl_lib_span(extents, strides, 2, type);
}

/* The matrices of a batch, which is written, do not overlap; one, whose rows do not, is right. */
static tile_status check_apart(const char *function, const TlLibMatrix *m, int64_t batch)
{
    const int64_t extents[] = {batch, m->rows, m->columns}, strides[] = {m->stride, m->ld, 1};
    if (batch <= 1 || tl_lib_is_apart(extents, strides, 3))
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is %lld, so that the matrices of %s overlap",
                       function, m->stride_name, (long long)m->stride, m->name);
}

tile_status tl_lib_check_matrices(const char *function, const tile_kernels *kernels,
                                  tile_dtype type, const TlLibExtent *extents, int n,
                                  const TlLibMatrix *a, const TlLibMatrix *b, int64_t batch)
{
    if (!kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: kernels is NULL", function);
    tile_status status = tl_lib_check_real(function, type);
    if (status == TILE_OK)
        status = tl_lib_check_extents(function, extents, n);
    if (status == TILE_OK)
        status = tl_lib_check_extent(function, "batch", batch);
    if (status == TILE_OK)
        status = tl_lib_check_matrix(function, a, batch);
    if (status == TILE_OK && b->name)
        status = tl_lib_check_matrix(function, b, batch);
    return status == TILE_OK ? check_apart(function, b->name ? b : a, batch) : status;
}

tile_status tl_lib_check_given(const char *function, const char *name, const void *address,
                               int64_t elements)
{
    return address || !elements
               ? TILE_OK
               : tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", function, name);
}

TlLibMatrix tl_lib_part(const TlLibMatrix *m, tile_dtype type, int64_t i, int64_t j, int64_t rows,
                        int64_t columns)
{
    TlLibMatrix p = *m;
    int64_t at = (i * m->ld + j) * tile_dtype_bits(type) / 8;
    p.address = rows > 0 && columns > 0 ? (const char *)m->address + at : NULL;
    p.rows = rows;
    p.columns = columns;
    return p;
}

tile_status tl_lib_check_in_place(const char *function, const TlLibMatrix *x, const TlLibMatrix *y,
                                  tile_dtype type)
{
    if (x->address == y->address && x->ld == y->ld)
        return TILE_OK;
    if ((uintptr_t)x->address >= end_of(y, type) || (uintptr_t)y->address >= end_of(x, type))
        return TILE_OK;
    return tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s overlaps %s and is not the same matrix", function,
                       y->name, x->name);
}

tile_arg tl_lib_matrix_view(const TlLibMatrix *m, tile_dtype type)
{
    const int64_t extents[] = {m->rows, m->columns}, strides[] = {m->ld, 1};
    return tile_arg_view_strided(m->address, type, 2, extents, strides);
}

TlLibArray tl_lib_dense(const char *name, const void *address, tile_dtype type, int rank,
                        const int64_t *extents)
{
    TlLibArray a = {name, NULL, address, type, rank, {0}, {0}};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        a.extents[i] = extents[i];
        a.strides[i] = step;
        if (extents[i] > 1 && __builtin_mul_overflow(step, extents[i], &step))
            step = -1; /* larger than memory */
    }
    return a;
}

tile_status tl_lib_check_arrays(const char *function, const TlLibArray *arrays, int n)
{
    tile_status status = TILE_OK;
    for (const TlLibArray *a = arrays; a < arrays + n && status == TILE_OK; a++)
        status = tl_lib_check_strided(function, a->name,
                                      a->strides_name ? a->strides_name : a->name, a->address,
                                      a->extents, a->strides, a->rank, a->type);
    return status;
}

tile_arg tl_lib_array_view(const TlLibArray *a)
{
    return tile_arg_view_strided(a->address, a->type, a->rank, a->extents, a->strides);
}

tile_status tl_lib_check_extents(const char *function, const TlLibExtent *extents, int n)
{
    tile_status status = TILE_OK;
    for (int i = 0; i < n && status == TILE_OK; i++)
        status = tl_lib_check_extent(function, extents[i].name, extents[i].value);
    return status;
}
