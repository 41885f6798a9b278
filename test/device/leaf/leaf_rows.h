/* The kernels of leaf_words, one for each row of runtime/contract/leaf.def and each of its
 * operations: made from leaf calls alone. */
#ifndef TEST_DEVICE_LEAF_LEAF_ROWS_H
#define TEST_DEVICE_LEAF_LEAF_ROWS_H
#include "codegen/gpu/gpu.h"
#include "codegen/leaf/leaf_expand.h"
#include "runtime/driver.h"

enum {
    BLOCKS = 2,
    THREADS = 128,
    RESULTS = 24, /* of 16 bytes, for each thread */
    CELLS = 12,   /* of 8 bytes, for each thread; as many that all threads share */
    SAMPLES = 8,  /* words shown */
    SHARED_BYTES = THREADS * 16,
    OPERAND_BYTES = 8192, /* of products of warpgroups: A, then B */
    BARRIER_AT = 2 * OPERAND_BYTES,
    GROUP_SHARED_BYTES = BARRIER_AT + 128,
    MOST_SLOTS = 16,
    INPUT_BYTES = BLOCKS * THREADS * 16 * 4,
    ALL_THREADS = BLOCKS * THREADS,
    CELLS_AT = ALL_THREADS * RESULTS * 16,
    OUT_BYTES = CELLS_AT + (ALL_THREADS + 1) * CELLS * 8,
};

/* Bulk copies, by axes: the view (strides but the last, which is 1), the box and its row in shared
 * memory, where it begins in each program. Elements have 2 bytes. */
typedef struct LeafBox {
    const char *view;
    int64_t extent[5], stride[5];
    uint32_t other, span, rows; /* the axis of the rows, beside the last */
    int32_t at[BLOCKS][5];
} LeafBox;
/* Of a row that copies in bulk; else NULL, and no axes. */
const LeafBox *leaf_box(tl_leaf leaf);
uint32_t leaf_box_rank(tl_leaf leaf);
/* From shared memory to the view, which is of the output then. */
bool leaf_stores_box(tl_leaf leaf);

typedef struct LeafCode {
    const char *symbol;
    const void *data;
    size_t size;
} LeafCode;

/* How many kernels a row may have. */
uint32_t leaf_operations(tl_leaf leaf);
/* Has the target this one? */
bool leaf_has_operation(const TlTarget *target, TlArena *arena, tl_leaf leaf, uint32_t op);
void leaf_name_row(tl_leaf leaf, uint32_t op, char *name, size_t size);
/* The letter of leaf.def for the type of an atomic's memory. */
char leaf_atom_letter(tl_leaf leaf);
uint32_t leaf_shared_bytes(tl_leaf leaf);
/* The slots of a kernel: in, out; for those that speak, what that takes; a view and its map. */
uint32_t leaf_slots(tl_leaf leaf, tile_image_slot slots[MOST_SLOTS]);
/* Its code for the target, or for the emulator of it. The leaf needs `op` < leaf_operations. */
LeafCode leaf_make_code(TlArena *arena, const TlTarget *target, bool emulate, TlEmit emit,
                        tl_leaf leaf, uint32_t op, const char *name);
#endif
