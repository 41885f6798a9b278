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

#define ELEM(ID, text, nin, rule, attrs, flags, gpu, cpu, flops, ring, doc) FUNCTIONS_##ring(ID)
#define FUNCTIONS_INTS(ID)
#define FUNCTIONS_HASH(ID) WIDTHS(ID, TL_OP_##ID)
#define OP(...)
#include "ir/ops.def"

static const TlElemFn hashes[TL_OP_COUNT][3] = {
#define ELEM(ID, text, nin, rule, attrs, flags, gpu, cpu, flops, ring, doc) ROW_##ring(ID)
#define ROW_INTS(ID)
#define ROW_HASH(ID) [TL_OP_##ID] = {ID##_16, ID##_32, ID##_64},
#define OP(...)
#include "ir/ops.def"
};

TlElemFn tl_ring_fn(TlOpcode opcode, TlDtype d)
{
    if (!tl_elem_work(opcode)->hashed)
        return tl_elem_fn(opcode, d);
    return hashes[opcode][d == TL_I16 ? 0 : d == TL_I32 ? 1 : 2];
}
