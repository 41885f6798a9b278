/* prepare.c: all code at once. A file of its own: only programs that call it hold all functions. */
#include "stdlib/library/library.h"

tile_status tile_kernels_prepare(tile_kernels *kernels)
{
    static const TlLibImage *const all[] = {
#define SOURCE(name) tl_lib_##name##_images,
#include "stdlib/library/kernels.def"
    };
    if (!kernels)
        return tl_lib_fail(TILE_BAD_ARGUMENT, "tile_kernels_prepare: kernels is NULL");
    tile_status status = TILE_OK;
    for (size_t i = 0; i < sizeof all / sizeof *all && status == TILE_OK; i++)
        status = tl_lib_prepare(kernels, all[i]);
    return status;
}
