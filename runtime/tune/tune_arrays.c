/* tune_arrays.c: what a kernel may write, kept: so that each configuration begins from the same
 * memory, its results can be compared with those of the first, and nothing is left changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/number.h"
#include "runtime/tune/tune.h"

typedef struct array {
    char name[64];
    void *address; /* the device's */
    uint64_t bytes;
    tile_dtype dtype;
    void *first, *expected, *now; /* host memory */
} array;

struct tl_tune_arrays {
    array *data;
    size_t len;
    bool have_results;
};

/* ---- memory ---- */

static tile_status copy(const tl_tuner *t, void *target, const void *source, uint64_t bytes,
                        tl_copy_kind kind)
{
    const tl_driver *driver = t->device->driver;
    tl_queue *queue = t->device->default_stream->queue;
    tile_status status = driver->queue_copy(queue, target, source, bytes, kind);
    return status == TILE_OK ? driver->queue_synchronize(queue) : status;
}

void tl_tune_arrays_free(tl_tune_arrays *a)
{
    for (size_t i = 0; a && i < a->len; i++) {
        free(a->data[i].first);
        free(a->data[i].expected);
        free(a->data[i].now);
    }
    if (a)
        free(a->data);
    free(a);
}

/* The bytes from the first element to the end of the last; 0: not known, or elements lie before the
 * first. */
static uint64_t span(const tile_arg *arg, tile_dtype dtype, tile_device *device)
{
    uint64_t known = arg->bytes ? arg->bytes : tl_buffer_bytes_at(device, arg->address);
    if (arg->kind != TILE_ARG_VIEW)
        return known == UINT64_MAX ? 0 : known;
    int64_t last = 0, step = 1;
    for (int axis = arg->rank - 1; axis >= 0; axis--) {
        int64_t stride = arg->strided ? arg->stride[axis] : step, far;
        if (arg->extent[axis] <= 0 || (stride < 0 && arg->extent[axis] > 1))
            return 0;
        if (__builtin_mul_overflow(arg->extent[axis] - 1, stride, &far) ||
            __builtin_add_overflow(last, far, &last) ||
            __builtin_mul_overflow(step, arg->extent[axis], &step))
            return 0;
    }
    return ((uint64_t)last + 1) * (uint64_t)tile_dtype_bits(dtype) / 8;
}

static tile_status keep(const tl_tuner *t, array *a)
{
    a->first = malloc(a->bytes);
    a->expected = malloc(a->bytes);
    a->now = malloc(a->bytes);
    if (!a->first || !a->expected || !a->now)
        return tl_fail(TILE_NO_MEMORY, "out of memory for a copy of '%s'", a->name);
    return copy(t, a->first, a->address, a->bytes, TL_COPY_DOWN);
}

tile_status tl_tune_arrays_create(const tl_tuner *t, const tile_kernel *kernel,
                                  tl_tune_arrays **out_arrays)
{
    tl_tune_arrays *a = calloc(1, sizeof *a);
    if (a)
        a->data = calloc(t->nargs + 1, sizeof *a->data);
    *out_arrays = a;
    if (!a || !a->data)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = TILE_OK;
    for (size_t i = 0; i < t->nargs && status == TILE_OK; i++) {
        tile_param_info p = TILE_PARAM_INFO_INIT;
        status = tile_kernel_param(kernel, i, &p);
        if (status != TILE_OK || p.kind == TILE_ARG_SCALAR || p.is_const)
            continue;
        array *row = &a->data[a->len];
        *row = (array){.address = t->args[i].address,
                       .bytes = span(&t->args[i], p.dtype, t->device),
                       .dtype = p.dtype};
        snprintf(row->name, sizeof row->name, "%s", p.name);
        if (!row->bytes || !row->address)
            continue;
        a->len++;
        status = keep(t, row);
    }
    return status;
}

tile_status tl_tune_arrays_restore(const tl_tuner *t, tl_tune_arrays *a)
{
    tile_status status = TILE_OK;
    for (size_t i = 0; a && i < a->len && status == TILE_OK; i++)
        status = copy(t, a->data[i].address, a->data[i].first, a->data[i].bytes, TL_COPY_UP);
    return status;
}

/* ---- results ---- */

/* Sums in another order differ by about this much of the largest value. */
static double tolerance_of(tile_dtype dtype, double asked)
{
    if (asked > 0)
        return asked;
    return dtype == TILE_F64    ? 1e-11
           : dtype == TILE_F32  ? 1e-4
           : dtype == TILE_F16  ? 4e-3
           : dtype == TILE_BF16 ? 3e-2
                                : 0.25; /* f8 */
}

static double element(const array *a, const void *data, uint64_t i)
{
    uint64_t bits = 0;
    size_t size = (size_t)tile_dtype_bits(a->dtype) / 8;
    memcpy(&bits, (const char *)data + i * size, size);
    return tl_decode_float(a->dtype, bits);
}

static bool close_to(double want, double got, double most)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    return fabs(want - got) <= most;
}

/* Is the array as the first configuration left it? */
static bool same_floats(const array *a, double tolerance, const char *config, char *why,
                        size_t size)
{
    uint64_t n = a->bytes / ((uint64_t)tile_dtype_bits(a->dtype) / 8);
    double largest = 0;
    for (uint64_t i = 0; i < n; i++) {
        double x = fabs(element(a, a->expected, i));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    for (uint64_t i = 0; i < n; i++) {
        double want = element(a, a->expected, i), got = element(a, a->now, i);
        if (close_to(want, got, tolerance * largest))
            continue;
        snprintf(why, size, "its results are not those of '%s': element %llu of '%s' is %s, not %s",
                 config, (unsigned long long)i, a->name, TL_NUMBER("%g", got),
                 TL_NUMBER("%g", want));
        return false;
    }
    return true;
}

static bool same(const array *a, double tolerance, const char *config, char *why, size_t size)
{
    if (memcmp(a->expected, a->now, a->bytes) == 0)
        return true;
    if (tl_is_float_dtype(a->dtype) && tile_dtype_bits(a->dtype) >= 8)
        return same_floats(a, tolerance_of(a->dtype, tolerance), config, why, size);
    snprintf(why, size, "its results are not those of '%s': '%s' differs", config, a->name);
    return false;
}

tile_status tl_tune_arrays_check(const tl_tuner *t, tl_tune_arrays *a, const char *config,
                                 bool *out_same, char *why, size_t size)
{
    tile_status status = TILE_OK;
    bool first = !a->have_results;
    *out_same = true;
    for (size_t i = 0; i < a->len && status == TILE_OK; i++) {
        array *row = &a->data[i];
        status = copy(t, first ? row->expected : row->now, row->address, row->bytes, TL_COPY_DOWN);
        if (status == TILE_OK && !first && *out_same)
            *out_same = same(row, t->o->tolerance, config, why, size);
    }
    a->have_results |= status == TILE_OK;
    return status;
}
