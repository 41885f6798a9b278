/* Writes kernel images (runtime/contract/tile_image.h). */
#ifndef TL_IMAGE_H
#define TL_IMAGE_H
#include "ir/ir.h"

typedef TL_VEC(tile_image_slot) TlSlots;

/* What codegen knows of one compiled kernel instance beside its TlKernelInfo. */
typedef struct TlKernelCode {
    const TlFn *fn;
    const char *symbol;
    const void
        *code; /* bytes for the image; several kernels may share one block (equal pointers) */
    size_t ncode;
    TlSlots slots;
    uint64_t scratch_bytes;
    uint32_t zeroed_bytes;
    uint32_t warps, threads, shared_bytes, flags;
    TL_VEC(tile_image_site) sites; /* of leaf calls; .file indexes the context's sources */
    TL_VEC(const char *) texts;
    uint32_t cluster; /* programs that may run as one; 0: each for itself */
    bool two_flows; /* some of the warps do nothing but begin copies (ROLES) */
    bool quick;     /* compiled without full optimisation, which has been said */
} TlKernelCode;

typedef TL_VEC(TlKernelCode) TlKernelCodes;

/* features: as tile_image_header has them, or NULL. A row for each kernel. An aligned kernel
 * (TlKernelInfo) is followed by its general form, which takes its place where the arguments fail
 * its tests (tl_variant_tests; none: it has no general form). The image's bytes, in `arena`,
 * 64-byte aligned inside the block returned. */
void *tl_image_write(TlArena *arena, TlCtx *ctx, const char *target, const char *features,
                     const TlKernelCodes *kernels, size_t *out_size);
#endif
