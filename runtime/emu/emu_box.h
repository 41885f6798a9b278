/* emu_box.h: the boxes of tensor maps that bulk copies and stores move (emu_bulk.c,
 * emu_bulk_store.c), in pieces of 16 bytes. */
#ifndef TL_EMU_BOX_H
#define TL_EMU_BOX_H
#include "runtime/emu/emu.h"
#include "runtime/tensor_map.h"

enum { TL_EMU_PIECE = 16 };

typedef struct tl_emu_box {
    uint32_t site, thread, offset;
    tl_tensor_map map;
    int32_t at[TL_MAP_RANK];
    uint32_t bar;     /* of a copy: the number of its barrier, */
    tl_emu_block *to; /* and whose memory it comes to */
    uint64_t group; /* of a store: commits of the thread before it */
    bool moved;
    bool read; /* of a store: the thread has waited until its group had read shared memory */
} tl_emu_box;

/* One piece of a box, by number. */
typedef struct tl_emu_box_piece {
    uint32_t offset;   /* in shared memory */
    uint64_t at;       /* address of its first element */
    uint32_t from, to; /* elements of it that are inside of the view */
    uint32_t elements;
} tl_emu_box_piece;

/* Of the current thread; what there cannot be ends the block. */
tl_emu_box tl_emu_box_of(tl_emu_block *b, uint32_t site, uint64_t map, uint32_t offset,
                         uint32_t rank, const int32_t *at);
uint32_t tl_emu_box_pieces(const tl_emu_box *x);
tl_emu_box_piece tl_emu_box_piece_of(const tl_emu_box *x, uint32_t number);
#endif
