/* Leaves: what the SIMT lowering (codegen) and the emulator (runtime) agree on. Needs only libc; like tile_image.h it is part
 * of the contract between compiler and runtime and may be included by both. */
#ifndef TL_LEAF_H
#define TL_LEAF_H

typedef enum tl_leaf {
#define LEAF(ID, name, result, operands, class_, meaning) TL_LEAF_##ID,
#include "runtime/leaf.def"
    TL_LEAF_COUNT
} tl_leaf;

typedef enum tl_leaf_class {
    TL_LEAF_CLASS_PURE, TL_LEAF_CLASS_WARP, TL_LEAF_CLASS_BLOCK, TL_LEAF_CLASS_GLOBAL, TL_LEAF_CLASS_SHARED,
    TL_LEAF_CLASS_ATOMIC, TL_LEAF_CLASS_DEBUG
} tl_leaf_class;

/* ATOM_32, ATOM_64: integers by two's complement or unsigned, floats by their bits. order and scope as in ir/enums.def. */
typedef enum tl_atom {
    TL_ATOM_ADD, TL_ATOM_MIN_S, TL_ATOM_MIN_U, TL_ATOM_MAX_S, TL_ATOM_MAX_U, TL_ATOM_AND, TL_ATOM_OR, TL_ATOM_XOR,
    TL_ATOM_XCHG, TL_ATOM_CAS, TL_ATOM_FADD, TL_ATOM_LOAD, TL_ATOM_STORE
} tl_atom;
#endif
