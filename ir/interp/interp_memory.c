/* Pointers, views and memory.
 *
 * A memory op first finds its elements (tl_access_find): for each one an address, the argument it
 * belongs to, and whether it is to be touched. For a view, each axis contributes a table: positions
 * of a slice or values of an index tile, as 128-bit numbers, so that no start however large can
 * wrap into the view. Element e of the result reads entry (e / inner) mod count of an axis's table,
 * because the dimensions one axis gives are next to each other in the result.
 *
 * Outside or masked off: loads give `other` or 0, stores do nothing. `unchecked` is not taken up as
 * a permission: what is outside is not touched either, and with --check it is reported. With
 * --check every access must also lie in the memory of the argument its pointer came from, and loads
 * must read initialised bytes where the host keeps track of them. */
#include <string.h>

#include "ir/interp/interp_impl.h"

/* ---- pointers and views ---------------------------------------------------------------------- */

static TlWide integer_at(const TlType *t, const void *data, int64_t i)
{
    uint64_t bits = tl_elem_get(t->dtype, data, i);
    return t->dtype == TL_U64 ? (TlWide)bits : (TlWide)tl_bits_to_int(t->dtype, bits);
}

static bool is_packed(TlDtype d)
{
    return tl_dtype_bits(d) < 8;
}

static TlInterpPtr moved(TlInterpPtr p, uint64_t elements, TlDtype d)
{
    if (is_packed(d)) {
        uint64_t at = elements + p.nibble;
        p.address += (uint64_t)((int64_t)at >> 1);
        p.nibble = at & 1;
    } else {
        p.address += elements * (uint64_t)tl_dtype_bytes(d);
    }
    return p;
}

TL_EVAL(PTR_ADD)
{
    const TlInterpPtr *p = x[0].data;
    TlInterpPtr *r = y[0].data;
    int64_t n = tl_type_elems(y[0].type);
    for (int64_t i = 0; i < n; i++)
        r[i] = moved(p[i], (uint64_t)integer_at(x[1].type, x[1].data, i), y[0].type->dtype);
}

TL_EVAL(POINTER)
{
    TlInterpPtr *r = y[0].data;
    for (int64_t i = 0; i < tl_type_elems(y[0].type); i++)
        r[i] = (TlInterpPtr){.address = tl_elem_get(TL_U64, x[0].data, i), .arg = -1};
}

TL_EVAL(ADDRESS)
{
    const TlInterpPtr *p = x[0].data;
    for (int64_t i = 0; i < tl_type_elems(y[0].type); i++)
        tl_elem_set(TL_U64, y[0].data, i, p[i].address);
}

static int64_t i64_of(const TlTileData *t)
{
    return (int64_t)integer_at(t->type, t->data, 0);
}

TL_EVAL(VIEW)
{
    TlInterpView *view = y[0].data;
    int rank = y[0].type->rank;
    memset(view, 0, sizeof *view);
    view->origin = *(const TlInterpPtr *)x[0].data;
    view->row = tl_attr_int(op, TL_ATTR_ROW, 0);
    for (int d = 0; d < rank; d++) {
        view->extent[d] = i64_of(&x[1 + d]);
        view->stride[d] = i64_of(&x[1 + rank + d]);
    }
}

/* Outer strides of packed views are even; an odd one would not start its rows on a byte. */
static uint64_t stride_of(const TlInterpView *view, TlDtype d, int rank, int axis)
{
    uint64_t s = (uint64_t)view->stride[axis];
    return is_packed(d) && axis + 1 < rank ? s + (s & 1) : s;
}

TL_EVAL(SUB_VIEW)
{
    const TlInterpView *from = x[0].data;
    TlInterpView *view = y[0].data;
    int rank = y[0].type->rank;
    uint64_t offset = 0;
    bool empty = false;
    *view = *from;
    for (int d = 0; d < rank; d++) {
        int64_t start = i64_of(&x[1 + d]), extent = i64_of(&x[1 + rank + d]);
        int64_t all = from->extent[d] < 0 ? 0 : from->extent[d];
        start = start < 0 ? 0 : start > all ? all : start;
        view->extent[d] = extent < 0 ? 0 : extent > all - start ? all - start : extent;
        empty |= view->extent[d] == 0;
        offset += (uint64_t)start * stride_of(from, y[0].type->dtype, rank, d);
    }
    if (!empty)
        view->origin = moved(from->origin, offset, y[0].type->dtype);
}

TL_EVAL(EXTENT)
{
    const TlInterpView *view = x[0].data;
    tl_elem_set(TL_I64, y[0].data, 0, (uint64_t)view->extent[tl_attr_int(op, TL_ATTR_AXIS, 0)]);
}

TL_EVAL(STRIDE)
{
    const TlInterpView *view = x[0].data;
    tl_elem_set(TL_I64, y[0].data, 0, (uint64_t)view->stride[tl_attr_int(op, TL_ATTR_AXIS, 0)]);
}

TL_EVAL(VIEW_PTR)
{
    *(TlInterpPtr *)y[0].data = ((const TlInterpView *)x[0].data)->origin;
}

/* ---- the elements of a place ----------------------------------------------------------------- */

/* One axis of a view access: `count` positions, each for `inner` adjacent elements of the
 * result. */
typedef struct AxisTable {
    int64_t count, inner;
    uint64_t *offset; /* in elements */
    uint8_t *inside;
} AxisTable;

static int64_t axis_count(const TlPlace *p, uint32_t a)
{
    if (p->axes[a].kind == TL_AXIS_SCALAR)
        return 1;
    if (p->axes[a].kind == TL_AXIS_SLICE)
        return p->axes[a].width;
    return tl_type_elems(p->index[a].value->type);
}

/* Product of the result's dimensions after those that come from axis a. */
static int64_t axis_inner(const TlPlace *p, uint32_t a)
{
    int64_t inner = 1;
    for (uint32_t b = a + 1; b < p->naxes;
         b++) { /* pointwise: the index tiles' common dimensions come first */
        bool gives =
            p->axes[b].kind == TL_AXIS_SLICE || (!p->pointwise && p->axes[b].kind == TL_AXIS_TILE);
        if (gives)
            inner *= axis_count(p, b);
    }
    return inner;
}

static AxisTable axis_table(TlInterp *in, const TlPlace *p, const TlInterpView *view, uint32_t a)
{
    AxisTable t = {axis_count(p, a), axis_inner(p, a), NULL, NULL};
    const TlType *type = p->index[a].value->type;
    const void *data = tl_interp_data(in, p->index[a].value);
    uint64_t stride = stride_of(view, p->base->type->dtype, p->base->type->rank, (int)a);
    int64_t row = a + 1 == p->naxes && view->row ? view->row : 1;
    t.offset = tl_interp_temp(in, 2, (size_t)t.count * 8);
    t.inside = tl_interp_temp(in, 3, (size_t)t.count);
    TlWide index = integer_at(type, data, 0);
    int32_t step = p->axes[a].kind == TL_AXIS_SLICE ? p->axes[a].step : 0;
    for (int64_t i = 0; i < t.count; i++, index += step) {
        if (p->axes[a].kind == TL_AXIS_TILE)
            index = integer_at(type, data, i);
        t.inside[i] = index >= 0 && index < view->extent[a];
        t.offset[i] = (uint64_t)(index / row) * stride + (uint64_t)(index % row);
    }
    return t;
}

static void add_axis(const TlAccess *access, uint64_t *offset, const AxisTable *t)
{
    uint8_t *ok = access->ok;
    for (int64_t e = 0; e < access->n; e += t->count * t->inner)
        for (int64_t i = 0; i < t->count; i++)
            for (int64_t j = 0; j < t->inner; j++) {
                int64_t at = e + i * t->inner + j;
                offset[at] += t->offset[i];
                ok[at] &= t->inside[i];
            }
}

static void find_in_view(TlInterp *in, TlAccess *access)
{
    const TlInterpView *view = tl_interp_data(in, access->place.base);
    uint64_t *offset = tl_interp_temp(in, 4, (size_t)access->n * 8);
    memset(offset, 0, (size_t)access->n * 8);
    memset(access->ok, 1, (size_t)access->n);
    for (uint32_t a = 0; a < access->place.naxes; a++) {
        AxisTable t = axis_table(in, &access->place, view, a);
        add_axis(access, offset, &t);
    }
    access->origin = view->origin;
    access->offset = offset;
}

static void find(TlInterp *in, const TlOp *op, TlAccess *access)
{
    access->place = tl_op_place(op);
    access->n = 1;
    for (int d = 0; d < access->place.rank; d++)
        access->n *= access->place.shape[d];
    access->dtype = access->place.base->type->dtype;
    access->bytes = (size_t)tl_dtype_bytes(access->dtype);
    access->packed = is_packed(access->dtype);
    access->pointers = NULL;
    access->ok = tl_interp_temp(in, 1, (size_t)access->n);
    in->work += (uint64_t)access->n * 8;
    if (access->place.axes) {
        find_in_view(in, access);
        return;
    }
    access->pointers = tl_interp_data(in, access->place.base);
    memset(access->ok, 1, (size_t)access->n);
}

TlInterpPtr tl_access_at(const TlAccess *access, int64_t e)
{
    TL_ASSERT(e >= 0, "element %lld", (long long)e);
    return access->pointers ? access->pointers[e]
                            : moved(access->origin, access->offset[e], access->dtype);
}

const void *tl_access_operand(TlInterp *in, const TlValue *v, size_t bytes, int64_t i)
{
    TL_ASSERT(i >= 0, "element %lld", (long long)i);
    const char *data = tl_interp_data(in, v);
    return v->type->rank == 0 ? data : data + (size_t)i * bytes;
}

TL_EVAL(INSIDE)
{
    TlAccess access;
    find(in, op, &access);
    memcpy(y[0].data, access.ok, (size_t)access.n);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *argument_name(const TlInterp *in, int32_t arg)
{
    const TlKernelInfo *info = in->fn->info;
    if (arg < 0)
        return "unknown memory";
    if (info && (uint32_t)arg < info->params.len)
        return info->params.data[arg].name;
    const char *name = in->fn->body->args[arg]->name;
    return name ? name : "an argument";
}

static bool inside_argument(const TlInterpArg *arg, uint64_t address, uint64_t bytes)
{
    if (arg->bytes == UINT64_MAX)
        return true;
    uint64_t base = (uint64_t)(uintptr_t)arg->address;
    return address >= base && arg->bytes >= bytes && address - base <= arg->bytes - bytes;
}

/* A pointer of unknown origin may point into any argument. */
static bool inside_memory(const TlInterp *in, TlInterpPtr p, uint64_t bytes)
{
    if (p.arg >= 0)
        return inside_argument(&in->args[p.arg], p.address, bytes);
    for (uint32_t i = 0; i < in->fn->body->nargs; i++) {
        const TlType *t = in->fn->body->args[i]->type;
        if ((t->kind == TL_VIEW || t->ptr) && inside_argument(&in->args[i], p.address, bytes))
            return true;
    }
    return false;
}

static void report(TlInterp *in, const TlOp *op, const char *verb, TlInterpPtr p, size_t bytes)
{
    if (p.arg < 0) {
        tl_interp_fail(in, op, TL_FAIL_BOUNDS,
                       "%s of %zu bytes at 0x%llx is outside of every argument", verb, bytes,
                       (unsigned long long)p.address);
        return;
    }
    const TlInterpArg *arg = &in->args[p.arg];
    long long offset = (long long)(p.address - (uint64_t)(uintptr_t)arg->address);
    tl_interp_fail(in, op, TL_FAIL_BOUNDS,
                   "%s of %zu byte%s at %s %c %llu is outside its %llu bytes", verb, bytes,
                   bytes == 1 ? "" : "s", argument_name(in, p.arg), offset < 0 ? '-' : '+',
                   offset < 0 ? 0 - (unsigned long long)offset : (unsigned long long)offset,
                   (unsigned long long)arg->bytes);
}

/* `unchecked` promises that every element that is not masked off is inside its view. */
static void check_promise(TlInterp *in, const TlOp *op, const TlAccess *access, const char *verb)
{
    if (!tl_attr_flag(op, TL_ATTR_UNCHECKED))
        return;
    const TlInterpView *view = tl_interp_data(in, access->place.base);
    for (int64_t e = 0; e < access->n; e++) {
        const uint8_t *mask = access->place.mask ? tl_access_operand(in, access->place.mask, 1, e)
                                                 : (const uint8_t *)"\1";
        if (access->ok[e] || !*mask)
            continue;
        tl_interp_fail(in, op, TL_FAIL_BOUNDS,
                       "unchecked %s: element %lld of the access is outside the view of %s", verb,
                       (long long)e, argument_name(in, view->origin.arg));
        return;
    }
}

/* Elements outside of their memory are left out; the first one of an op is reported. */
static void check_bounds(TlInterp *in, const TlOp *op, TlAccess *access, const char *verb)
{
    bool reported = false;
    for (int64_t e = 0; e < access->n; e++) {
        if (!access->ok[e] || inside_memory(in, tl_access_at(access, e), access->bytes))
            continue;
        if (!reported)
            report(in, op, verb, tl_access_at(access, e), access->bytes);
        reported = true;
        access->ok[e] = 0;
    }
}

static uint8_t *shadow_of(const TlInterp *in, TlInterpPtr p)
{
    if (p.arg < 0 || !in->args[p.arg].shadow)
        return NULL;
    return in->args[p.arg].shadow + (p.address - (uint64_t)(uintptr_t)in->args[p.arg].address);
}

/* Other programs may set shadow bytes at the same time: they are read and written as single
 * bytes. */
static bool is_written(const uint8_t *shadow, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!__atomic_load_n(&shadow[i], __ATOMIC_RELAXED))
            return false;
    return true;
}

static void check_written(TlInterp *in, const TlOp *op, const TlAccess *access, const char *verb)
{
    for (int64_t e = 0; e < access->n; e++) {
        TlInterpPtr p = tl_access_at(access, e);
        const uint8_t *shadow = access->ok[e] ? shadow_of(in, p) : NULL;
        if (!shadow || is_written(shadow, access->bytes))
            continue;
        tl_interp_fail(
            in, op, TL_FAIL_UNINIT, "%s of %zu byte%s at %s + %llu, which nothing has written",
            verb, access->bytes, access->bytes == 1 ? "" : "s", argument_name(in, p.arg),
            (unsigned long long)(p.address - (uint64_t)(uintptr_t)in->args[p.arg].address));
        return;
    }
}

static void mark_written(TlInterp *in, const TlAccess *access)
{
    for (int64_t e = 0; e < access->n; e++) {
        uint8_t *shadow = access->ok[e] ? shadow_of(in, tl_access_at(access, e)) : NULL;
        for (size_t i = 0; shadow && i < access->bytes; i++)
            __atomic_store_n(&shadow[i], 1, __ATOMIC_RELAXED);
    }
}

static void apply_mask(TlInterp *in, TlAccess *access)
{
    if (!access->place.mask)
        return;
    for (int64_t e = 0; e < access->n; e++)
        access->ok[e] &= *(const uint8_t *)tl_access_operand(in, access->place.mask, 1, e);
}

void tl_access_find(TlInterp *in, const TlOp *op, const char *verb, bool reads, bool writes,
                    TlAccess *out)
{
    find(in, op, out);
    if (in->options->check && out->place.axes)
        check_promise(in, op, out, verb);
    apply_mask(in, out);
    if (!in->options->check)
        return;
    check_bounds(in, op, out, verb);
    if (reads)
        check_written(in, op, out, verb);
    if (writes)
        mark_written(in, out);
}

/* ---- load, store ----------------------------------------------------------------------------- */

static void *host(TlInterpPtr p)
{
    return (void *)(uintptr_t)p.address;
}

static void load_nibble(uint8_t *y, TlInterpPtr p)
{
    uint8_t byte;
    memcpy(&byte, host(p), 1);
    *y = p.nibble ? byte >> 4 : byte & 0xf;
}

/* memcpy of a known size is one instruction. */
static void move_element(void *y, const void *p, size_t bytes)
{
    switch (bytes) {
    case 1: memcpy(y, p, 1); return;
    case 2: memcpy(y, p, 2); return;
    case 4: memcpy(y, p, 4); return;
    default: memcpy(y, p, 8); return;
    }
}

/* The value of elements that are not loaded. */
static void fill_other(TlInterp *in, const TlAccess *access, void *y)
{
    static const uint64_t zero;
    const TlValue *other = access->place.other;
    const void *data = other ? tl_interp_data(in, other) : &zero;
    if (other && other->type->rank)
        memcpy(y, data, access->bytes * (size_t)access->n);
    else
        tl_elem_fill(y, data, access->bytes, access->n);
}

#define LOAD_VIEW(T)                                                                               \
    for (int64_t e = 0; e < access->n; e++)                                                        \
        if (access->ok[e])                                                                         \
            memcpy((T *)y + e,                                                                     \
                   (void *)(uintptr_t)(access->origin.address + access->offset[e] * sizeof(T)),    \
                   sizeof(T));

/* The common case: elements of a view that are whole bytes. */
static void load_view(const TlAccess *access, void *y)
{
    switch (access->bytes) {
    case 1: LOAD_VIEW(uint8_t) return;
    case 2: LOAD_VIEW(uint16_t) return;
    case 4: LOAD_VIEW(uint32_t) return;
    default: LOAD_VIEW(uint64_t) return;
    }
}

static void load_any(const TlAccess *access, char *y)
{
    for (int64_t e = 0; e < access->n; e++, y += access->bytes) {
        if (!access->ok[e])
            continue;
        if (access->packed)
            load_nibble((uint8_t *)y, tl_access_at(access, e));
        else
            move_element(y, host(tl_access_at(access, e)), access->bytes);
    }
}

TL_EVAL(LOAD)
{
    TlAccess access;
    tl_access_find(in, op, "load", true, false, &access);
    if (memchr(access.ok, 0, (size_t)access.n))
        fill_other(in, &access, y[0].data);
    if (!access.pointers && !access.packed)
        load_view(&access, y[0].data);
    else
        load_any(&access, y[0].data);
    if (access.dtype == TL_BOOL) /* any nonzero byte is true */
        for (int64_t e = 0; e < access.n; e++)
            ((uint8_t *)y[0].data)[e] = ((uint8_t *)y[0].data)[e] != 0;
}

static void store_nibble(TlInterpPtr p, uint8_t value)
{
    uint8_t byte;
    memcpy(&byte, host(p), 1);
    byte =
        p.nibble ? (uint8_t)((byte & 0xf) | value << 4) : (uint8_t)((byte & 0xf0) | (value & 0xf));
    memcpy(host(p), &byte, 1);
}

/* If places repeat, the last value in row-major order stays. */
TL_EVAL(STORE)
{
    TlAccess access;
    tl_access_find(in, op, "store", false, true, &access);
    for (int64_t e = 0; e < access.n; e++) {
        if (!access.ok[e])
            continue;
        const void *value = tl_access_operand(in, access.place.value, access.bytes, e);
        if (access.packed)
            store_nibble(tl_access_at(&access, e), *(const uint8_t *)value);
        else
            move_element(host(tl_access_at(&access, e)), value, access.bytes);
    }
}
