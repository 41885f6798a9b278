/* format_array.c: an array's elements as text, for print in kernels and `tilec run --print`.
 *
 * "[[1, 2, 3], [4, 5, 6]]". Arrays of more than SHOW_ALL elements are shortened: an axis of more
 * than 2 * EDGE shows its first and last EDGE with "..." between. Floats have the fewest digits
 * that read back as the same number. */
#define TILE_UNSTABLE
#include "ir/support/number.h"
#include "runtime/runtime.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHOW_ALL = 256, EDGE = 3 };

typedef struct out {
    char *text;
    size_t size, len;
} out;

static void __attribute__((format(printf, 2, 3))) put(out *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *at = o->len < o->size ? o->text + o->len : NULL;
    int n = vsnprintf(at, at ? o->size - o->len : 0, format, args);
    va_end(args);
    o->len += n > 0 ? (size_t)n : 0;
}

static void put_float(out *o, tile_dtype dtype, double v)
{
    char text[64];
    if (isnan(v) || isinf(v)) {
        put(o, "%s", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    int digits = dtype == TILE_F64 ? 15 : dtype == TILE_F32 ? 6 : dtype == TILE_F16 ? 5 : 4;
    int most = dtype == TILE_F64 ? 17 : dtype == TILE_F32 ? 9 : digits;
    for (;; digits++) {
        tl_number_format(text, sizeof text, "%.*g", digits, v);
        if (digits >= most ||
            (dtype == TILE_F64 ? tl_number_read(text, NULL) == v
                               : tl_number_read_f32(text, NULL) == (float)v))
            break;
    }
    put(o, "%s", text);
}

static void put_element(out *o, tile_dtype dtype, const void *data, int64_t index)
{
    int bytes = tile_dtype_bits(dtype) < 8 ? 1 : tile_dtype_bits(dtype) / 8;
    uint64_t bits = 0;
    TL_INVARIANT_VOID(data && index >= 0 && bytes <= (int)sizeof bits, "element %lld of %d bytes",
                      (long long)index, bytes);
    memcpy(&bits, (const char *)data + index * bytes, (size_t)bytes);
    if (tl_is_float_dtype(dtype))
        put_float(o, dtype, tl_decode_float(dtype, bits));
    else if (dtype == TILE_BOOL)
        put(o, "%s", bits ? "true" : "false");
    else if (dtype == TILE_U64)
        put(o, "%" PRIu64, bits);
    else
        put(o, "%" PRId64, tl_decode_int(dtype, bits));
}

typedef struct array {
    tile_dtype dtype;
    int rank;
    const int64_t *shape;
    const void *data;
    bool shorten;
} array;

/* The part of the array below axis `axis`, whose elements begin at number `first`; `count` of
 * them. */
static void put_axis(out *o, const array *a, int axis, int64_t first, int64_t count)
{
    if (axis == a->rank) {
        put_element(o, a->dtype, a->data, first);
        return;
    }
    int64_t n = a->shape[axis], inner = n > 0 ? count / n : 0;
    put(o, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i > 0)
            put(o, ", ");
        if (a->shorten && n > 2 * EDGE && i == EDGE) {
            put(o, "..., ");
            i = n - EDGE;
        }
        put_axis(o, a, axis + 1, first + i * inner, inner);
    }
    put(o, "]");
}

size_t tile_format_array(char *text, size_t size, tile_dtype dtype, int rank, const int64_t *shape,
                         const void *data)
{
    TL_FP_SCOPE();
    out o = {text, text ? size : 0, 0};
    int64_t count = 1;
    if (o.size > 0)
        text[0] = 0;
    if (!tl_dtype_known((int)dtype) || rank < 0 || rank > TILE_MAX_RANK || (rank > 0 && !shape))
        return 0;
    bool shorten = false;
    for (int i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(count, shape[i] > 0 ? shape[i] : 0, &count))
            return 0;
        shorten |= shape[i] > SHOW_ALL;
    }
    if (count > 0 && !data)
        return 0;
    array a = {dtype, rank, shape, data, shorten || count > SHOW_ALL};
    put_axis(&o, &a, 0, 0, count);
    return o.len;
}
