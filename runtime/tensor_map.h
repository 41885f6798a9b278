/* tensor_map.h: what a tensor map (TILE_SLOT_MAP) is made of: a view's memory, and the box that
 * one bulk copy brings to shared memory. The emulator uses this as it is; CUDA's library makes its
 * own 128 bytes from it. */
#ifndef TL_TENSOR_MAP_H
#define TL_TENSOR_MAP_H
#include "runtime/driver.h"

enum { TL_MAP_RANK = 5 };

/* Axes innermost first; strides in bytes, that of axis 0 is an element. Of packed elements it is a
 * map of their bytes. */
typedef struct tl_tensor_map tl_tensor_map;
struct tl_tensor_map {
    uint64_t address, extent[TL_MAP_RANK], stride[TL_MAP_RANK];
    uint16_t box[TL_MAP_RANK];
    uint8_t rank, bytes, span, dtype; /* bytes of an element; of a row in shared memory */
    uint8_t piece;                    /* bytes that the swizzle moves as one: 16 or 32 */
};
_Static_assert(sizeof(tl_tensor_map) <= TL_MAP_BYTES, "it has the room of a map");

/* False: a bulk copy cannot access the view: its address or a stride is no multiple of 16 bytes, or
 * a stride is negative or too large. */
bool tl_tensor_map_of(const tile_image_slot *slot, const tile_arg *view, tl_tensor_map *out);
#endif
