/* Buffers of shared memory at the staged level: how many bytes they take and where an element lies.
 *
 * A buffer holds `slots` tiles one behind the other. Its layout goes from OFFSET, in elements
 * within a chunk, to coordinates; with repetitions, chunks lie one behind the other, row-major (the
 * last axis fastest). An element of 4 bits takes a byte, as in tiles. */
#ifndef TL_STAGED_H
#define TL_STAGED_H
#include "ir/ir.h"
#include "ir/layout/layout.h"

/* Where a buffer must begin: at a multiple of 128 bytes or of what its layout mixes (the block of a
 * swizzle within which offsets are XORed), at most 1024. */
uint32_t tl_buf_alignment(const TlType *buf);
/* From one slot to the next: a multiple of the alignment. */
uint64_t tl_buf_slot_bytes(const TlType *buf);
uint64_t tl_buf_bytes(const TlType *buf); /* all slots */
/* What a program has of a buffer: of one that a pair has halves of (TlType), its half, as a buffer
 * of its own. */
const TlType *tl_buf_own(TlArena *arena, const TlType *buf);
/* Of a tile's element, in bytes from the beginning of its slot. The coordinate is inside of what
 * the layout holds. */
uint64_t tl_buf_offset(const TlType *buf, const int32_t *coordinate);

/* Of an asynchronous COPY: does it begin part by part between the instructions of a product, which
 * stands between it and the next commit? */
bool tl_copy_is_spread(const TlOp *op);

/* The ALLOC that makes a buffer. */
TlOp *tl_buf_alloc(const TlValue *buf);
#endif
