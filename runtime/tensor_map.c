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

static bool add_axis(tl_tensor_map *m, const tile_arg *view, uint32_t axis)
{
    uint64_t stride = (uint64_t)view->stride[axis] * m->bytes;
    m->extent[m->rank] = extent_of(view->extent[axis]);
    m->stride[m->rank] = stride;
    m->box[m->rank] = 1;
    m->rank++;
    if (m->rank == 1)
        return view->stride[axis] == 1;
    return view->stride[axis] >= 0 && stride % UNIT == 0 &&
           (uint64_t)view->stride[axis] < MOST_STRIDE / m->bytes;
}

bool tl_tensor_map_of(const tile_image_slot *slot, const tile_arg *view, tl_tensor_map *out)
{
    uint32_t row = slot->axis & 15, other = slot->axis >> 4 & 15;
    *out = (tl_tensor_map){.address = (uint64_t)(uintptr_t)view->address,
                           .bytes = (uint8_t)(tile_dtype_bits((tile_dtype)view->dtype) / 8),
                           .span = (uint8_t)(slot->axis >> 8),
                           .piece = slot->axis & TILE_MAP_WIDE ? 32 : UNIT,
                           .dtype = (uint8_t)view->dtype};
    bool fine = out->address % UNIT == 0 && out->address && add_axis(out, view, row);
    out->box[0] = slot->box & 0xffff;
    for (uint32_t i = view->rank; i-- > 0 && fine;) {
        if (i == row)
            continue;
        fine = add_axis(out, view, i);
        if (i == other)
            out->box[out->rank - 1] = (uint16_t)(slot->box >> 16);
    }
    return fine;
}
