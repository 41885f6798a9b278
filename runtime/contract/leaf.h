/* Leaves: what the SIMT lowering (codegen) and the emulator (runtime) agree on. Needs only libc;
 * like tile_image.h it is part of the contract between compiler and runtime and may be included by
 * both. */
#ifndef TL_LEAF_H
#define TL_LEAF_H
#include <stdint.h>

typedef enum tl_leaf {
#define LEAF(ID, ...) TL_LEAF_##ID,
#include "runtime/contract/leaf.def"
    TL_LEAF_COUNT
} tl_leaf;

typedef enum tl_leaf_family {
#define LEAF_FAMILY(ID, ...) TL_LEAF_FAMILY_##ID,
#include "runtime/contract/leaf.def"
    TL_LEAF_FAMILY_COUNT
} tl_leaf_family;

/* What not every GPU can, and leaves need (leaf.def). */
typedef enum tl_gpu_can {
    TL_CAN_COPY = 1,        /* asynchronous copies from global to shared memory */
    TL_CAN_LDMATRIX = 2,    /* loads of a warp from shared memory */
    TL_CAN_OVERLAP = 4,     /* a kernel that starts early waits for the one before it (no leaf) */
    TL_CAN_F8 = 8,          /* two f8 from and to f16, f32 by an instruction */
    TL_CAN_MMA_F8 = 16,     /* mma.sync of f8 by one instruction; else by two of f16 (no leaf) */
    TL_CAN_NAN = 32,        /* min and max that give NaN where there is one */
    TL_CAN_BUFFER = 64,     /* accesses of a base and 32 bits, whose bounds the hardware tests */
    TL_CAN_BF16 = 128,      /* f32 to bf16 by an instruction */
    TL_CAN_WARPGROUP = 256, /* products by four warps that read shared memory themselves (wgmma) */
    TL_CAN_BULK = 512,      /* copies of whole boxes by one thread, counted by barriers (TMA) */
    TL_CAN_SAT = 1024,      /* fma of f32 that keeps its result between 0 and 1 */
    TL_CAN_STMATRIX = 4096, /* stores of a warp to shared memory */
    TL_CAN_ROWS = 2048,     /* rows of 16 lanes are given the last lane of a row before */
    TL_CAN_SCALAR = 8192,   /* branches of a warp by a unit of their own, from scalars (no leaf) */
    TL_CAN_PAIRS = 16384,   /* sums and products of two f32 by an instruction (no leaf) */
    TL_CAN_REGISTERS = 1 << 15,     /* warps that give registers to others (setmaxnreg) */
    TL_CAN_TENSOR = 1 << 16,        /* products by one thread into tensor memory (tcgen05) */
    TL_CAN_TENSOR_I8 = 1 << 17,     /* ... of i8 */
    TL_CAN_TENSOR_SCALED = 1 << 18, /* ... with scales of blocks, named .block16, .block32 */
    TL_CAN_MMA_SCALED = 1 << 19,    /* mma.sync of f8, f6, f4 with scales of blocks */
    TL_CAN_F4 = 1 << 20,            /* as F8, two f4e2m1 */
    TL_CAN_REDUX_F32 = 1 << 21,     /* as REDUX, min and max of f32 */
    TL_CAN_MULTICAST = 1 << 22,     /* bulk copies to all programs of a cluster */
    TL_CAN_COLUMNS = 1 << 23,       /* loads of 16 lanes from shared memory that transpose */
    TL_CAN_SHIFT = 1 << 24,         /* shuffles that say whether the other lane is there */
    TL_CAN_REDUX = 1 << 25,         /* integers of all lanes of a warp combined by an instruction */
    TL_CAN_FILL = 1 << 26,          /* asynchronous copies of zeros at no cost (no leaf) */
    TL_CAN_COPY_EACH = 1 << 27,     /* ... for which each thread says where to */
    TL_CAN_COPY_ROW = 1 << 28,      /* ... of a warp, one thread's behind the other's */
    TL_CAN_MATRIX_8 = 1 << 29       /* as LDMATRIX, STMATRIX, matrices of bytes, transposed */
} tl_gpu_can;

/* How REDUX combines words, and REDUX_F32 their floats: there a NaN does not count. */
typedef enum tl_redux {
    TL_REDUX_ADD, TL_REDUX_MIN, TL_REDUX_MAX, TL_REDUX_UMIN, TL_REDUX_UMAX,
    TL_REDUX_AND, TL_REDUX_OR, TL_REDUX_XOR
} tl_redux;

/* How F2I converts; both 0: unsigned, toward zero. */
enum { TL_F2I_SIGNED = 1, TL_F2I_NEAREST = 2 };

enum { TL_RECORDS_BITS = 31 };
#define TL_RECORDS_ALL (1u << TL_RECORDS_BITS) /* bytes from a base that every access is within */
enum { TL_HINT_LOW_BASE = 1 << 6 }; /* of LDB and STB: the base is below 2^48, or records is 0 */
enum { TL_HINT_ANY_FILL = 1 << 7 }; /* of LDG: nobody sees the fill, other bits will do */

typedef enum tl_leaf_class {
    TL_LEAF_CLASS_PURE, TL_LEAF_CLASS_WARP, TL_LEAF_CLASS_BLOCK, TL_LEAF_CLASS_GLOBAL,
    TL_LEAF_CLASS_SHARED, TL_LEAF_CLASS_GROUP,
    TL_LEAF_CLASS_ASYNC, TL_LEAF_CLASS_ATOMIC, TL_LEAF_CLASS_DEBUG
} tl_leaf_class;

/* A row of leaf.def with what it has from its family. */
typedef struct tl_leaf_row {
    const char *name, *result, *operands;
    tl_leaf_family family;
    uint32_t size;
    tl_leaf_class class_;
    unsigned needs; /* of tl_gpu_can */
} tl_leaf_row;

static inline const tl_leaf_row *tl_leaf_info(tl_leaf leaf)
{
    enum {
#define LEAF_FAMILY(ID, class_, needs, meaning)                                                    \
    CLASS_OF_##ID = TL_LEAF_CLASS_##class_, NEEDS_OF_##ID = needs,
#include "runtime/contract/leaf.def"
    };
    static const tl_leaf_row ROWS[] = {
#define LEAF(ID, name, result, operands, family, size)                                             \
    {name,                                                                                         \
     #result,                                                                                      \
     operands,                                                                                     \
     TL_LEAF_FAMILY_##family,                                                                      \
     size,                                                                                         \
     (tl_leaf_class)CLASS_OF_##family,                                                             \
     NEEDS_OF_##family},
#include "runtime/contract/leaf.def"
    };
    return &ROWS[leaf];
}

/* TL_LEAF_COUNT: the family has no leaf of that size. */
static inline tl_leaf tl_leaf_of_size(tl_leaf_family family, uint32_t size)
{
    uint32_t leaf = 0;
    while (leaf < TL_LEAF_COUNT && (tl_leaf_info((tl_leaf)leaf)->family != family ||
                                    tl_leaf_info((tl_leaf)leaf)->size != size))
        leaf++;
    return (tl_leaf)leaf;
}

/* What WGMMA does besides. ACROSS: the rows of an operand in shared memory run along M or N;
 * A_WORDS: A is in registers; RING: of integers (--fp=ring); FENCE: what threads have done to
 * registers comes before; COMMIT: it closes a group. */
enum {
    TL_WGMMA_A_ACROSS = 1,
    TL_WGMMA_B_ACROSS = 2,
    TL_WGMMA_A_WORDS = 4,
    TL_WGMMA_RING = 8,
    TL_WGMMA_FENCE = 16,
    TL_WGMMA_COMMIT = 32
};
enum { TL_LEAF_MOST_WORDS = 128 };

/* Loads of a warp: collectives that read shared memory. */
static inline int tl_leaf_is_ldsm(tl_leaf leaf)
{
    tl_leaf_family family = tl_leaf_info(leaf)->family;
    return family == TL_LEAF_FAMILY_LDSM || family == TL_LEAF_FAMILY_LDSM_T ||
           family == TL_LEAF_FAMILY_LDSM_8;
}

/* The same, and loads that transpose among lanes. */
static inline int tl_leaf_is_shared_load_of_warp(tl_leaf leaf)
{
    return tl_leaf_is_ldsm(leaf) || tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_LDS_T;
}

static inline int tl_leaf_is_stsm(tl_leaf leaf)
{
    tl_leaf_family family = tl_leaf_info(leaf)->family;
    return family == TL_LEAF_FAMILY_STSM || family == TL_LEAF_FAMILY_STSM_T ||
           family == TL_LEAF_FAMILY_STSM_8;
}

/* ATOM_8 to ATOM_64: integers by two's complement or unsigned, floats by their bits. order and
 * scope as in ir/enums.def. */
typedef enum tl_atom {
    TL_ATOM_ADD, TL_ATOM_MIN_S, TL_ATOM_MIN_U, TL_ATOM_MAX_S, TL_ATOM_MAX_U, TL_ATOM_AND,
    TL_ATOM_OR, TL_ATOM_XOR,
    TL_ATOM_XCHG, TL_ATOM_CAS, TL_ATOM_FADD, TL_ATOM_LOAD, TL_ATOM_STORE
} tl_atom;

/* How the lanes of a warp hold a matrix instruction's operands (runtime/emu/emu_mma.c has the
 * maps). M16N8, M8N8: mma.sync of NVIDIA; MFMA16, MFMA32, MFMA64 (f64): of AMD's CDNA, 16 x 16 or
 * 32 x 32 (MFMA16R, MFMA32R: with K in the order in which lanes hold results); WMMA1, WMMA1T,
 * WMMA2: of RDNA 3 and 4; WMMA3: of gfx1250. Of all AMD kinds but WMMA1 the leaf's c and result are
 * those of the transposed product: the instruction takes b as its A and a as its B. */
typedef enum tl_mma_kind {
    TL_MMA_M16N8, TL_MMA_M8N8, TL_MMA_MFMA16, TL_MMA_MFMA32, TL_MMA_MFMA64, TL_MMA_MFMA16R,
    TL_MMA_MFMA32R, TL_MMA_WMMA1, TL_MMA_WMMA1T, TL_MMA_WMMA2, TL_MMA_WMMA3
} tl_mma_kind;
/* Element types (tile_dtype) of a, b, c in one word; and of scales. */
#define TL_MMA_TYPES(a, b, c)           ((a) | (b) << 8 | (c) << 16)
#define TL_MMA_SCALED_TYPES(a, b, c, s) (TL_MMA_TYPES(a, b, c) | (s) << 24)

/* ---- the debug buffer of a real GPU ----
 * What FAIL, OUTSIDE and PRINT say on a GPU goes to the launch's debug buffer: device memory whose
 * address is in slot TILE_SLOT_DEBUG (a kernel that says nothing has no such slot; 0: nobody
 * listens). A header, then `capacity` records. The host zeroes `count`, sets `capacity`, launches,
 * and reads both after synchronising. Each record takes the next number by an atomic add to
 * `count`; from `capacity` on it is lost, so max(count - capacity, 0) records are missing. Records
 * of one thread are in its program order, those of different threads in any order: group PRINTs by
 * (block, site), order by thread and occurrence; `index` is the element's row-major index in the
 * tile, `reg` the thread's register that held it (reg 0 begins a new execution of the print in that
 * thread). Failures: the lowest block counts. */
typedef enum tl_debug_kind { TL_DEBUG_FAIL = 1, TL_DEBUG_PRINT = 2 } tl_debug_kind;
typedef struct tl_debug_header { uint32_t capacity, count, pad[2]; } tl_debug_header;
typedef struct tl_debug_record {
    uint32_t kind;          /* tl_debug_kind */
    uint32_t block, thread; /* linear program, thread in its block */
    uint32_t site, text;    /* rows of the kernel's site and text tables */
    uint32_t what;          /* FAIL: tl_fail_kind; PRINT: tile_dtype */
    /* PRINT; OUTSIDE, a FAIL of kind TL_RUN_BOUNDS: bytes of the access (0: another FAIL), param */
    uint32_t reg, index;
    uint64_t bits;          /* PRINT: the element, zero-extended; OUTSIDE: the address */
} tl_debug_record;
#endif
