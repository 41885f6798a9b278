/* Layouts that are made by rule: blocked tiles, fragments of matrix instructions repeated over
 * warps, swizzled shared memory.
 *
 * The fragments are facts of hardware. Each is one row: what one warp holds for one instruction, M
 * first, then N (operands: A is [M, K], B is [K, N]), in the text form of layouts. A tile of a
 * kernel is that fragment, times the warps, grown by tl_layout_cover. */
#include "ir/layout/layout.h"
#include "ir/support/guard.h"
#include <string.h>

typedef struct Fragment {
    const char *name, *text;
} Fragment;

/* clang-format off */
static const Fragment fragments[] = {
    /* NVIDIA mma.sync m16n8 (v2) and wgmma (v3: 16 rows per warp, N in steps of 8 by registers) */
    {"mma.v2.c",         "reg(0,1)(8,0)            lane(0,2)(0,4)(1,0)(2,0)(4,0)"},
    {"mma.v3.c",         "reg(0,1)(8,0)            lane(0,2)(0,4)(1,0)(2,0)(4,0)"},
    {"mma.v2.a16",       "reg(0,1)(8,0)(0,8)       lane(0,2)(0,4)(1,0)(2,0)(4,0)"},
    {"mma.v2.b16",       "reg(1,0)(8,0)            lane(2,0)(4,0)(0,1)(0,2)(0,4)"},
    {"mma.v2.a8",        "reg(0,1)(0,2)(8,0)(0,16) lane(0,4)(0,8)(1,0)(2,0)(4,0)"},
    {"mma.v2.b8",        "reg(1,0)(2,0)(16,0)      lane(4,0)(8,0)(0,1)(0,2)(0,4)"},
    {"mma.v2.a32",       "reg(8,0)(0,4)            lane(0,1)(0,2)(1,0)(2,0)(4,0)"},
    {"mma.v2.b32",       "reg(4,0)                 lane(1,0)(2,0)(0,1)(0,2)(0,4)"},
    {"mma.v2.a64",       "reg                      lane(0,1)(0,2)(1,0)(2,0)(4,0)"},
    {"mma.v2.b64",       "reg                      lane(1,0)(2,0)(0,1)(0,2)(0,4)"},
    {"mma.v2.c64",       "reg(0,1)                 lane(0,2)(0,4)(1,0)(2,0)(4,0)"},
    /* AMD MFMA: 64 lanes */
    {"mfma32.c",         "reg(1,0)(2,0)(8,0)(16,0) lane(0,1)(0,2)(0,4)(0,8)(0,16)(4,0)"},
    {"mfma32.c.t",       "reg(0,1)(0,2)(0,8)(0,16) lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,4)"},
    {"mfma16.c",         "reg(1,0)(2,0)            lane(0,1)(0,2)(0,4)(0,8)(4,0)(8,0)"},
    {"mfma16.c.t",       "reg(0,1)(0,2)            lane(1,0)(2,0)(4,0)(8,0)(0,4)(0,8)"},
    {"mfma16.c.f64",     "reg(4,0)(8,0)            lane(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)"},
    {"mfma32.a.k4",      "reg(0,1)(0,2)            lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,4)"},
    {"mfma32.b.k4",      "reg(1,0)(2,0)            lane(0,1)(0,2)(0,4)(0,8)(0,16)(4,0)"},
    {"mfma16.a.k4",      "reg(0,1)(0,2)            lane(1,0)(2,0)(4,0)(8,0)(0,4)(0,8)"},
    {"mfma16.b.k4",      "reg(1,0)(2,0)            lane(0,1)(0,2)(0,4)(0,8)(4,0)(8,0)"},
    {"mfma16.c.f64.t",   "reg(0,4)(0,8)            lane(1,0)(2,0)(4,0)(8,0)(0,1)(0,2)"},
    {"mfma32.a.k1",      "reg                      lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,1)"},
    {"mfma32.b.k1",      "reg                      lane(0,1)(0,2)(0,4)(0,8)(0,16)(1,0)"},
    {"mfma16.a.k1",      "reg                      lane(1,0)(2,0)(4,0)(8,0)(0,1)(0,2)"},
    {"mfma16.b.k1",      "reg                      lane(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)"},
    {"mfma32.a.k8",      "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,8)"},
    {"mfma32.b.k8",      "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(0,16)(8,0)"},
    {"mfma16.a.k8",      "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(0,8)(0,16)"},
    {"mfma16.b.k8",      "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(8,0)(16,0)"},
    /* AMD WMMA: 32 lanes; version 1 (RDNA3) gives both halves of a wave the same operand */
    {"wmma1.c",          "reg(2,0)(4,0)(8,0)       lane(0,1)(0,2)(0,4)(0,8)(1,0)"},
    {"wmma1.a",          "reg(0,1)(0,2)(0,4)(0,8)  lane(1,0)(2,0)(4,0)(8,0)(0,0)"},
    {"wmma1.b",          "reg(1,0)(2,0)(4,0)(8,0)  lane(0,1)(0,2)(0,4)(0,8)(0,0)"},
    {"wmma2.c",          "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(8,0)"},
    {"wmma2.c.t",        "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(0,8)"},
    {"wmma2.a",          "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(0,8)"},
    {"wmma2.b",          "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(8,0)"},
};
/* clang-format on */

TlLayout *tl_layout_identity_order(TlArena *arena, TlInDim in, int rank, const int *bits,
                                   const int *order)
{
    TlLayout *l = tl_layout_zeros(arena, 0, in, rank);
    for (int k = 0; k < rank; k++) {
        int d = order[k];
        l = tl_layout_product(arena, l, tl_layout_identity(arena, bits[d], in, rank, d));
    }
    return l;
}

TlLayout *tl_layout_blocked(TlArena *arena, int rank, const int *size, const int *lanes,
                            const int *warps, const int *order)
{
    TlLayout *l = tl_layout_identity_order(arena, TL_IN_REG, rank, size, order);
    l = tl_layout_product(arena, l,
                          tl_layout_identity_order(arena, TL_IN_LANE, rank, lanes, order));
    return tl_layout_product(arena, l,
                             tl_layout_identity_order(arena, TL_IN_WARP, rank, warps, order));
}

static TlLayout *find_fragment(TlArena *arena, const char *name)
{
    for (size_t i = 0; i < sizeof fragments / sizeof *fragments; i++) {
        if (strcmp(fragments[i].name, name) != 0)
            continue;
        TlLayout *l = tl_layout_parse(arena, fragments[i].text);
        TL_ASSERT(l, "fragment %s", name);
        return l;
    }
    return NULL;
}

/* Warps along dimension `silent` (-1: none) hold the same data. */
static TlLayout *over_warps(TlArena *arena, const TlLayout *tile, int silent, const int *warps,
                            const int *order)
{
    TlLayout *w = tl_layout_zeros(arena, 0, TL_IN_WARP, 2);
    for (int k = 0; k < 2; k++) {
        int d = order[k];
        w = tl_layout_product(arena, w,
                              d == silent ? tl_layout_zeros(arena, warps[d], TL_IN_WARP, 2)
                                          : tl_layout_identity(arena, warps[d], TL_IN_WARP, 2, d));
    }
    return tl_layout_product(arena, tile, w);
}

TlLayout *tl_layout_fragment(TlArena *arena, const char *name, const int *warps,
                             const int *warp_order)
{
    TlLayout *tile = find_fragment(arena, name);
    return tile ? over_warps(arena, tile, -1, warps, warp_order) : NULL;
}

TlLayout *tl_layout_operand(TlArena *arena, const char *name, int operand, const int *warps,
                            const int *warp_order)
{
    TlLayout *tile = find_fragment(arena, name);
    return tile ? over_warps(arena, tile, operand == 0 ? 1 : 0, warps, warp_order) : NULL;
}

TlLayout *tl_layout_mma_operand(TlArena *arena, int operand, int kwidth_bits)
{
    int k = operand == 0 ? 1 : 0, other = 1 - k;
    TlLayout *l = tl_layout_identity(arena, kwidth_bits, TL_IN_REG, 2, k);
    l = tl_layout_product(arena, l, tl_layout_identity(arena, 2, TL_IN_LANE, 2, k));
    l = tl_layout_product(arena, l, tl_layout_identity(arena, 3, TL_IN_LANE, 2, other));
    if (operand == 0)
        l = tl_layout_product(arena, l, tl_layout_identity(arena, 1, TL_IN_REG, 2, other));
    return tl_layout_product(arena, l, tl_layout_identity(arena, 1, TL_IN_REG, 2, k));
}

/* One level (lanes or warps) of a blocked accumulator as its operand sees it: neighbours along the
 * dimension that the operand does not have hold the same data. */
static TlLayout *operand_level(TlArena *arena, TlInDim in, int k, const int *bits, const int *order)
{
    TlLayout *l = tl_layout_zeros(arena, 0, in, 2);
    for (int n = 0; n < 2; n++) {
        int d = order[n];
        l = tl_layout_product(arena, l,
                              d == k ? tl_layout_zeros(arena, bits[d], in, 2)
                                     : tl_layout_identity(arena, bits[d], in, 2, d));
    }
    return l;
}

TlLayout *tl_layout_blocked_operand(TlArena *arena, int operand, int k_bits, const int *size,
                                    const int *lanes, const int *warps, const int *order)
{
    int k = operand == 0 ? 1 : 0;
    int regs[2] = {size[0], size[1]};
    regs[k] = k_bits;
    TlLayout *l = tl_layout_identity_order(arena, TL_IN_REG, 2, regs, order);
    l = tl_layout_product(arena, l, operand_level(arena, TL_IN_LANE, k, lanes, order));
    return tl_layout_product(arena, l, operand_level(arena, TL_IN_WARP, k, warps, order));
}

TlLayout *tl_layout_swizzled(TlArena *arena, int rows_bits, int cols_bits, int vec, int per_phase,
                             int max_phase)
{
    int32_t images[2 * TL_LAYOUT_MAX_BITS][2] = {{0}};
    for (int b = 0; b < cols_bits; b++)
        images[b][1] = (int32_t)1 << b;
    for (int b = 0; b < rows_bits; b++) {
        int32_t row = (int32_t)1 << b, cols = (int32_t)1 << cols_bits;
        images[cols_bits + b][0] = row;
        images[cols_bits + b][1] = vec * (row / per_phase % max_phase) % cols;
    }
    TlInBases in = {TL_IN_OFFSET, rows_bits + cols_bits, &images[0][0]};
    return tl_layout_make(arena, 2, (int[]){rows_bits, cols_bits}, 1, &in);
}

static int log2_exact(int n)
{
    int bits = 0;
    while (1 << bits < n)
        bits++;
    TL_ASSERT(1 << bits == n, "%d is not a power of two", n);
    return bits;
}

TlLayout *tl_layout_nvmma_shared(TlArena *arena, int rows_bits, int cols_bits, int elem_bits,
                                 int bytes)
{
    int inner = log2_exact(8 * bytes / elem_bits); /* columns of one swizzled row */
    TL_ASSERT(rows_bits >= 3 && cols_bits >= inner,
              "an nvmma buffer is at least 8 rows of %d bytes", bytes);
    TlLayout *core = tl_layout_swizzled(arena, 3, inner, 128 / elem_bits, 128 / bytes, bytes / 16);
    int rest[2] = {rows_bits - 3, cols_bits - inner};
    return tl_layout_product(arena, core,
                             tl_layout_identity_order(arena, TL_IN_OFFSET, 2, rest, (int[]){0, 1}));
}
