/* Bulk copies (TMA): which boxes of a view's tensor map bring a tile to a slot of a buffer. Pure
 * arithmetic; the image of the tensor map's parameters is TILE_SLOT_MAP of
 * runtime/contract/tile_image.h.
 *
 * A box is what one instruction copies: `columns` elements along the axis in which memory counts
 * up, at most 128 bytes (of a view of packed elements its bytes, two each), and `rows`, at most
 * 256, along another. In shared memory it is a panel of rows, whose 16-byte or 32-byte pieces are
 * XORed by the row: the image of stage_layout.h. */
#ifndef TL_BULK_H
#define TL_BULK_H
#include "ir/ir.h"
#include "ir/layout/layout.h"
#include "runtime/contract/tile_image.h"

enum { TL_BULK_MAX_RANK = 5, TL_BULK_MAX_ROWS = 256 };

/* Why a tile is no bulk copy; in words: codegen/report/explain.def. CROSSED, NARROW and what comes
 * before INDEX are not for boxes to know (passes/analysis/bulk_fault.h). */
typedef enum TlBulkFault {
    TL_BULK_NONE,
    TL_BULK_READERS, /* threads read it from the buffer */
    TL_BULK_MASK,
    TL_BULK_PADDING, /* what is outside is not 0 */
    TL_BULK_INDEX,   /* steps, tiles of indices, numbers that are no coordinates */
    TL_BULK_VIEW,    /* no parameter */
    TL_BULK_AXES,
    TL_BULK_BITS,
    TL_BULK_IMAGE, /* the buffer's layout is not what boxes make */
    TL_BULK_CROSSED, /* its rows lie along another axis than memory's */
    TL_BULK_NARROW,
    TL_BULK_COUNT
} TlBulkFault;

typedef struct TlBulkBox {
    int32_t row, column; /* its first element, in the tile */
    uint32_t offset;     /* bytes from the start of the slot */
} TlBulkBox;

typedef struct TlBulk {
    TlBulkFault fault;
    int rank, span;                  /* of the view; bytes of a row in shared memory */
    int piece;                       /* bytes that the swizzle moves as one */
    uint32_t axes[TL_BULK_MAX_RANK]; /* of the view: innermost first */
    uint32_t row, other;             /* axes of the view along which the tile goes */
    int32_t rows, columns;           /* of a box */
    /* 1 + the view's axis along which the second program of a pair begins `half` further on; 0: the
     * boxes are all of the tile */
    uint32_t halved;
    int32_t half;
    uint32_t bytes;                  /* of all boxes */
    TL_VEC(TlBulkBox) boxes;
} TlBulk;

/* op: a LOAD, or a COPY, of a tile of rank 2 from a view that is a parameter. False: there are no
 * such boxes, `fault` says why. That strides and address suit is for the caller to know. */
bool tl_bulk_plan(TlArena *arena, const TlOp *op, const TlType *buf, TlBulk *out);
/* The same of a copy of which so many programs begin a part each, as many boxes, if rows allow
 * that. */
bool tl_bulk_plan_parts(TlArena *arena, const TlOp *op, const TlType *buf, int32_t parts,
                        TlBulk *out);
tile_image_slot tl_bulk_slot(const TlBulk *bulk, uint32_t param);
/* The parameter that a place's view is, or whose packed elements' bytes (unpack) it is; NULL:
 * neither. */
const TlValue *tl_bulk_param(const TlPlace *p);
#endif
