/* The dot-product instructions of CPUs: which exist, and which one suits. */
#ifndef TL_CPU_DOT_INSN_H
#define TL_CPU_DOT_INSN_H
#include "codegen/target/llvm.h"
#include "ir/type.h"

/* What the instruction takes of A and B, `per` elements of each for a sum. */
typedef enum TlCpuDotForm {
    TL_CPU_DOT_WORDS, /* i16 and i16; gives the products' sum, which is to be added */
    TL_CPU_DOT_MIXED, /* u8 and i8 */
    TL_CPU_DOT_SAME,  /* both i8, or both u8 */
    TL_CPU_DOT_BF16,  /* subnormal numbers are zeros; Arm's rounds to odd */
} TlCpuDotForm;

typedef struct TlCpuDotInsn {
    TlCpuDotForm form;
    int per, lanes;       /* elements along k for a sum; sums */
    const char *features; /* "avx512vnni,avx512vl": the CPU has all of them */
    const char *name;     /* LLVM's intrinsic */
} TlCpuDotInsn;

/* The best one for operands of these types, k elements along k at a time, and vectors of so many
 * sums; any: or one that is slow on the CPU. NULL: there is none. */
const TlCpuDotInsn *tl_cpu_dot_insn(const TlLlvm *l, TlDtype a, TlDtype b, int64_t k, int lanes,
                                    bool any);
/* LLVM's intrinsic for 2 rows of A, 2 columns of B and twice as many elements along k: a vector has
 * one row, or column, in each half, and the sums of the first row in its first half. It makes twice
 * as many products as `insn`, in as many cycles. NULL: there is none. */
const char *tl_cpu_dot_pairs(const TlLlvm *l, const TlCpuDotInsn *insn);
/* The type of an operand's elements in registers, where they are of type d in the program. */
TlDtype tl_cpu_dot_part(const TlCpuDotInsn *insn, TlDtype d);
/* Does the instruction take A with its sign bits flipped? It takes u8 and i8 where A and B are
 * alike, or the other way round. Then its sums lack, or have too many, 128 times those of B:
 * `correction` is to be added, to 0 once for each `per` elements of B. */
bool tl_cpu_dot_flips(const TlCpuDotInsn *insn, TlDtype a, TlDtype b);

/* AMX's tiles: rows of bytes; 8 of them are the tile registers. */
enum { TL_CPU_TILE_ROWS = 16, TL_CPU_TILE_BYTES = 64 };
/* LLVM's name for the instruction that adds the products of a tile of A, of up to 16 rows, and one
 * of B, of up to 16 times 4 bytes along k and 16 columns, to 16 by 16 sums. It takes signs as they
 * are. NULL: there is none. */
const char *tl_cpu_tile_insn(const TlLlvm *l, TlDtype a, TlDtype b);
/* Packed elements along k that tiles have, where an iteration has `depth`; 0: for so many rows
 * other instructions are as good. */
int tl_cpu_tile_depth(int64_t depth, int64_t rows);
#endif
