/* Floats as integers modulo 2^w (ring_float.h). */
#include "ir/interp/ring_float.h"
#include "ir/numeric.h"

TlDtype tl_ring_dtype(TlDtype d)
{
    TL_ASSERT(tl_is_float(d), "%s is no float", tl_dtype_name(d));
    switch (tl_dtype_bits(d)) {
    case 4: return TL_I4;
    case 8: return TL_I8;
    case 16: return TL_I16;
    case 32: return TL_I32;
    default: return TL_I64;
    }
}

TlDtype tl_op_dtype(const TlOp *op, TlDtype d)
{
    return op->block->fn->ring && tl_is_float(d) ? tl_ring_dtype(d) : d;
}

/* ---- hashes ---- */

uint64_t tl_ring_tag(TlOpcode opcode)
{
    return ((uint64_t)opcode + 1) * 0x9e3779b97f4a7c15u;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * TL_RING_MIX1;
    z = (z ^ z >> 27) * TL_RING_MIX2;
    return z ^ z >> 31;
}

uint64_t tl_ring_hash(TlOpcode opcode, uint64_t a, uint64_t b)
{
    return mix(mix(a + tl_ring_tag(opcode)) + b);
}

/* ---- constants ---- */

uint64_t tl_ring_embed(TlDtype d, uint64_t bits)
{
    int w = tl_dtype_bits(d);
    uint64_t mask = w == 64 ? UINT64_MAX : (1ull << w) - 1, top = 1ull << (w - 1);
    double x = tl_bits_to_double(d, bits), magnitude = x < 0 ? -x : x;
    if (x != x)
        return top | 1;
    if (magnitude - magnitude != 0)
        return x < 0 ? top : top - 1;
    union {
        double x;
        uint64_t u;
    } word = {magnitude};
    uint64_t n = magnitude < 0x1p62 && magnitude == (double)(uint64_t)magnitude
                     ? (uint64_t)magnitude
                     : tl_ring_hash(TL_OP_CONST, word.u, 0);
    return (x < 0 ? 0 - n : n) & mask;
}
