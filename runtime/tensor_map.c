/* tensor_map.c: tensor maps of views (tensor_map.h). */
#include "runtime/tensor_map.h"

enum { UNIT = 16 };
static const uint64_t MOST_EXTENT = UINT64_C(1) << 32, MOST_STRIDE = UINT64_C(1) << 40;

/* An empty axis counts as one of 1: the kernel asks for nothing inside of it. */
static uint64_t extent_of(int64_t n)
{
    uint64_t extent = n > 0 ? (uint64_t)n : 1;
    return extent < MOST_EXTENT ? extent : MOST_EXTENT;
}

/* each: elements of the view to one of the map, 2 where they are packed. They lie along the first
 * axis, and rows begin on a byte. */
static bool add_axis(tl_tensor_map *m, const tile_arg *view, uint32_t axis, int64_t each)
{
    bool first = m->rank == 0;
    int64_t n = view->extent[axis], step = view->stride[axis];
    uint64_t stride = (uint64_t)(first ? step : (step + each - 1) / each) * m->bytes;
    m->extent[m->rank] = extent_of(first ? (n + each - 1) / each : n);
    m->stride[m->rank] = stride;
    m->box[m->rank] = 1;
    m->rank++;
    if (first)
        return step == 1;
    return step >= 0 && stride % UNIT == 0 && (uint64_t)step < MOST_STRIDE / m->bytes;
}

bool tl_tensor_map_of(const tile_image_slot *slot, const tile_arg *view, tl_tensor_map *out)
{
    uint32_t row = slot->axis & 15, other = slot->axis >> 4 & 15,
             bits = (uint32_t)tile_dtype_bits((tile_dtype)view->dtype);
    int64_t each = bits < 8 ? 8 / (int64_t)bits : 1;
    *out = (tl_tensor_map){.address = (uint64_t)(uintptr_t)view->address,
                           .bytes = (uint8_t)(each > 1 ? 1 : bits / 8),
                           .span = (uint8_t)(slot->axis >> 8),
                           .piece = slot->axis & TILE_MAP_WIDE ? 32 : UNIT,
                           .dtype = (uint8_t)(each > 1 ? TILE_U8 : (int)view->dtype)};
    bool fine = out->address % UNIT == 0 && out->address && add_axis(out, view, row, each);
    out->box[0] = slot->box & 0xffff;
    for (uint32_t i = view->rank; i-- > 0 && fine;) {
        if (i == row)
            continue;
        fine = add_axis(out, view, i, each);
        if (i == other)
            out->box[out->rank - 1] = (uint16_t)(slot->box >> 16);
    }
    return fine;
}
