/* Layouts that are made by rule: blocked tiles, fragments of matrix instructions repeated over
 * warps.
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
    /* scales of blocks: rows g and g + 8 of A in lanes 4 g and 4 g + 1, column g of B in lane 4 g */
    {"mma.s1.a",         "reg                      lane(8,0)(0,0)(1,0)(2,0)(4,0)"},
    {"mma.s1.b",         "reg                      lane(0,0)(0,0)(1,0)(2,0)(4,0)"},
    {"mma.s2.a",         "reg(0,1)                 lane(8,0)(0,0)(1,0)(2,0)(4,0)"},
    {"mma.s2.b",         "reg(0,1)                 lane(0,0)(0,0)(1,0)(2,0)(4,0)"},
    {"mma.s4.a",         "reg(0,1)(0,2)            lane(8,0)(0,0)(1,0)(2,0)(4,0)"},
    {"mma.s4.b",         "reg(0,1)(0,2)            lane(0,0)(0,0)(1,0)(2,0)(4,0)"},
    {"mma.k8.a16",       "reg(0,1)(8,0)            lane(0,2)(0,4)(1,0)(2,0)(4,0)"},
    {"mma.k8.b16",       "reg(1,0)                 lane(2,0)(4,0)(0,1)(0,2)(0,4)"},
    {"mma.m8.a8",        "reg(0,1)(0,2)            lane(0,4)(0,8)(1,0)(2,0)(4,0)"},
    {"mma.m8.b8",        "reg(1,0)(2,0)            lane(4,0)(8,0)(0,1)(0,2)(0,4)"},
    /* NVIDIA tcgen05: sums in tensor memory, whose lanes are those of threads */
    {"tensor.c",         "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(16,0)"},
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
    {"mfma32.a.k2",      "reg(0,1)                 lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,2)"},
    {"mfma32.b.k2",      "reg(1,0)                 lane(0,1)(0,2)(0,4)(0,8)(0,16)(2,0)"},
    {"mfma16.a.k2",      "reg(0,1)                 lane(1,0)(2,0)(4,0)(8,0)(0,2)(0,4)"},
    {"mfma16.b.k2",      "reg(1,0)                 lane(0,1)(0,2)(0,4)(0,8)(2,0)(4,0)"},
    {"mfma32.a.k8",      "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,8)"},
    {"mfma32.b.k8",      "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(0,16)(8,0)"},
    {"mfma16.a.k8",      "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(0,8)(0,16)"},
    {"mfma16.b.k8",      "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(8,0)(16,0)"},
    {"mfma32.a.k16",     "reg(0,1)(0,2)(0,4)(0,8)  lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,16)"},
    {"mfma32.b.k16",     "reg(1,0)(2,0)(4,0)(8,0)  lane(0,1)(0,2)(0,4)(0,8)(0,16)(16,0)"},
    {"mfma16.a.k16",     "reg(0,1)(0,2)(0,4)(0,8)  lane(1,0)(2,0)(4,0)(8,0)(0,16)(0,32)"},
    {"mfma16.b.k16",     "reg(1,0)(2,0)(4,0)(8,0)  lane(0,1)(0,2)(0,4)(0,8)(16,0)(32,0)"},
    {"mfma32.a.k32",     "reg(0,1)(0,2)(0,4)(0,8)(0,32) lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,16)"},
    {"mfma32.b.k32",     "reg(1,0)(2,0)(4,0)(8,0)(32,0) lane(0,1)(0,2)(0,4)(0,8)(0,16)(16,0)"},
    {"mfma16.a.k32",     "reg(0,1)(0,2)(0,4)(0,8)(0,64) lane(1,0)(2,0)(4,0)(8,0)(0,16)(0,32)"},
    {"mfma16.b.k32",     "reg(1,0)(2,0)(4,0)(8,0)(64,0) lane(0,1)(0,2)(0,4)(0,8)(16,0)(32,0)"},
    {"mfma32.s",         "reg                      lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,1)"},
    {"mfma16.s",         "reg                      lane(1,0)(2,0)(4,0)(8,0)(0,1)(0,2)"},
    {"mfma32.a.r8",      "reg(0,1)(0,2)(0,8)       lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,4)"},
    {"mfma32.b.r8",      "reg(1,0)(2,0)(8,0)       lane(0,1)(0,2)(0,4)(0,8)(0,16)(4,0)"},
    {"mfma16.a.r8",      "reg(0,1)(0,2)(0,16)      lane(1,0)(2,0)(4,0)(8,0)(0,4)(0,8)"},
    {"mfma16.b.r8",      "reg(1,0)(2,0)(16,0)      lane(0,1)(0,2)(0,4)(0,8)(4,0)(8,0)"},
    /* AMD WMMA: 32 lanes; version 1 (RDNA3) gives both halves of a wave the same operand */
    {"wmma1.c",          "reg(2,0)(4,0)(8,0)       lane(0,1)(0,2)(0,4)(0,8)(1,0)"},
    {"wmma1.c.t",        "reg(0,2)(0,4)(0,8)       lane(1,0)(2,0)(4,0)(8,0)(0,1)"},
    {"wmma1.a",          "reg(0,1)(0,2)(0,4)(0,8)  lane(1,0)(2,0)(4,0)(8,0)(0,0)"},
    {"wmma1.b",          "reg(1,0)(2,0)(4,0)(8,0)  lane(0,1)(0,2)(0,4)(0,8)(0,0)"},
    {"wmma2.c",          "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(8,0)"},
    {"wmma2.c.t",        "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(0,8)"},
    {"wmma2.a",          "reg(0,1)(0,2)(0,4)       lane(1,0)(2,0)(4,0)(8,0)(0,8)"},
    {"wmma2.b",          "reg(1,0)(2,0)(4,0)       lane(0,1)(0,2)(0,4)(0,8)(8,0)"},
    {"wmma3.a.k2",       "reg(0,1)                 lane(1,0)(2,0)(4,0)(8,0)(0,2)"},
    {"wmma3.b.k2",       "reg(1,0)                 lane(0,1)(0,2)(0,4)(0,8)(2,0)"},
    {"wmma3.a.k8",       "reg(0,1)(0,2)(0,4)(0,16) lane(1,0)(2,0)(4,0)(8,0)(0,8)"},
    {"wmma3.b.k8",       "reg(1,0)(2,0)(4,0)(16,0) lane(0,1)(0,2)(0,4)(0,8)(8,0)"},
    {"wmma3.a.k64",      "reg(0,1)(0,2)(0,4)(0,8)(0,32) lane(1,0)(2,0)(4,0)(8,0)(0,16)"},
    {"wmma3.b.k64",      "reg(1,0)(2,0)(4,0)(8,0)(32,0) lane(0,1)(0,2)(0,4)(0,8)(16,0)"},
    {"wmma3.a.k128",     "reg(0,1)(0,2)(0,4)(0,8)(0,32)(0,64) lane(1,0)(2,0)(4,0)(8,0)(0,16)"},
    {"wmma3.b.k128",     "reg(1,0)(2,0)(4,0)(8,0)(32,0)(64,0) lane(0,1)(0,2)(0,4)(0,8)(16,0)"},
};
/* clang-format on */

static TlLayout *identity_order(TlArena *arena, TlInDim in, int rank, const int *bits,
                                const int *order)
{
    TL_ASSERT(rank >= 0 && rank <= TL_LAYOUT_MAX_OUT, "a layout of rank %d", rank);
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
    TL_ASSERT(rank > 0 && rank <= TL_LAYOUT_MAX_OUT, "a layout of rank %d", rank);
    TlLayout *l = identity_order(arena, TL_IN_REG, rank, size, order);
    l = tl_layout_product(arena, l, identity_order(arena, TL_IN_LANE, rank, lanes, order));
    return tl_layout_product(arena, l, identity_order(arena, TL_IN_WARP, rank, warps, order));
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

TlLayout *tl_layout_fragment(TlArena *arena, const char *name, const int *warps,
                             const int *warp_order)
{
    TlLayout *tile = find_fragment(arena, name);
    if (!tile)
        return NULL;
    return tl_layout_product(arena, tile, identity_order(arena, TL_IN_WARP, 2, warps, warp_order));
}
