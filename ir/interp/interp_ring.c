/* Element kernels of the ring (ring_float.h): those of integers, but for the ops that are
 * hashes. */
#include "ir/interp/interp_impl.h"

#define HASH(NAME, OPCODE, U)                                                                      \
    static void NAME(void *yv, const void *av, const void *bv, int64_t n)                          \
    {                                                                                              \
        const U *a = av, *b = bv;                                                                  \
        U *y = yv;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (U)tl_ring_hash(OPCODE, a[i], b ? b[i] : 0);                                    \
    }
#define WIDTHS(NAME, OPCODE)                                                                       \
    HASH(NAME##_16, OPCODE, uint16_t)                                                              \
    HASH(NAME##_32, OPCODE, uint32_t)                                                              \
    HASH(NAME##_64, OPCODE, uint64_t)

WIDTHS(div, TL_OP_DIV)
WIDTHS(rem, TL_OP_REM)
WIDTHS(sqrt, TL_OP_SQRT)
WIDTHS(exp2, TL_OP_EXP2)
WIDTHS(floor, TL_OP_FLOOR)
WIDTHS(ceil, TL_OP_CEIL)
WIDTHS(trunc, TL_OP_TRUNC)
WIDTHS(rint, TL_OP_RINT)
WIDTHS(round, TL_OP_ROUND)

#define ROW(NAME)                                                                                  \
    {                                                                                              \
        NAME##_16, NAME##_32, NAME##_64                                                            \
    }
static const TlElemFn hashes[][3] = {
    [TL_OP_DIV] = ROW(div),     [TL_OP_REM] = ROW(rem),     [TL_OP_SQRT] = ROW(sqrt),
    [TL_OP_EXP2] = ROW(exp2),   [TL_OP_FLOOR] = ROW(floor), [TL_OP_CEIL] = ROW(ceil),
    [TL_OP_TRUNC] = ROW(trunc), [TL_OP_RINT] = ROW(rint),   [TL_OP_ROUND] = ROW(round)};

TlElemFn tl_ring_fn(TlOpcode opcode, TlDtype d)
{
    if (!tl_ring_is_hash(opcode))
        return tl_elem_fn(opcode, d);
    return hashes[opcode][d == TL_I16 ? 0 : d == TL_I32 ? 1 : 2];
}
