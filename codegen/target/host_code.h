/* Code that host CPUs run: for cpu targets, and GPU targets for the emulator. Which CPU features
 * it uses, the check that nothing in it is undefined, and objects that carry images. */
#ifndef TL_HOST_CODE_H
#define TL_HOST_CODE_H
#include "codegen/target/llvm.h"
#include "codegen/target/target.h"

/* What code for `cpu` (a row of kind CPU) uses, in the form of tile_image_header.features:
 * "x86-64 sse3". */
const char *tl_host_features(TlArena *arena, const TlTarget *cpu);

/* Faults (INTERNAL), with the names, when the object has undefined symbols that do not begin with
 * `known`, which NULL stands for none. */
void tl_host_check_closed(const void *object, size_t size, const char *known);

/* An object for machines of `triple` ("": this one) that holds `size` bytes and 64 zeros as the
 * constant tile_image_NAME, 64-byte aligned: one image or several, then no image; and `size` as the
 * constant tile_size_NAME. */
void *tl_embed(const char *name, const char *triple, const void *data, size_t size,
               TlArena *arena, size_t *out_size);
#endif
