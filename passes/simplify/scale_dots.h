/* Why a product's scales are multiplied into its operands before it (scale_dots.c), and no matrix
 * instruction takes them; the report says it in words. */
#ifndef TL_SCALE_DOTS_H
#define TL_SCALE_DOTS_H

typedef enum TlScaleFault {
    TL_SCALE_NONE,
    TL_SCALE_MACHINE, /* it has no matrix instruction with scales */
    TL_SCALE_TYPES,   /* those that it has are not of these types */
    TL_SCALE_SIGN,    /* scales may be negative */
    TL_SCALE_COST,    /* K is so short that they would multiply zeros more than anything else */
    TL_SCALE_SHAPE,   /* tcgen05: rows, columns or scales along K are no whole pieces */
    TL_SCALE_WARPS,   /* tcgen05: the kernel has fewer than four */
    TL_SCALE_ROOM,    /* tcgen05: shared or tensor memory */
    TL_SCALE_COUNT
} TlScaleFault;
#endif
