/* tile_jit.h: kernels from source at run time (libtile_jit = libtile and the compiler). C11, clean
 * C++. */
#ifndef TILE_JIT_H
#define TILE_JIT_H
#include "tile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_jit_options {
    size_t struct_size;
    const char *const *include_dirs; /* for import */
    size_t ninclude_dirs;
    int opt_level;   /* 0..3 */
    int debug;       /* keep asserts */
    int check;       /* bounds, assumptions, asserts */
    const char *fp;  /* "default", "strict", "ring" */
    int warps, stages; /* 1..64; 0: the kernel's own */
    /* all diagnostics of one compilation; the error text contains them too */
    void (*diagnostic)(void *user, const char *rendered);
    void *user;
    /* the folder of the cache of compiled kernels, or "off"; NULL: what the environment variable
     * TILE_CACHE says, else $XDG_CACHE_HOME/tile, else ~/.cache/tile */
    const char *cache;
} tile_jit_options;
#define TILE_JIT_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tile_jit_options), 0, 0, 3, 0, 0, "default", 0, 0, 0, 0, 0                          \
    }

/* Makes a module from a text (`name` is used in messages and to find imports beside it) or a file.
 * The text is read here; tile_kernel_get compiles it, because the constants are known there, or
 * finds in the cache what an earlier call, of any process, has compiled; a launch never compiles.
 * `options` may be NULL; everything it points to except `user` is copied.
 * TILE_BAD_ARGUMENT: an option has an illegal value.  TILE_IO: the file cannot be read.
 * From tile_kernel_get: TILE_COMPILE, with the diagnostics as the error text. */
TILE_API tile_status tile_module_load_source(tile_device *device, const char *name,
                                             const char *text, size_t size,
                                             const tile_jit_options *options,
                                             tile_module **out_module);
TILE_API tile_status tile_module_load_file(tile_device *device, const char *path,
                                           const tile_jit_options *options,
                                           tile_module **out_module);

#ifdef __cplusplus
}
#endif
#endif
