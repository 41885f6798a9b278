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

bool tl_ring_is_hash(TlOpcode opcode)
{
    switch (opcode) {
    case TL_OP_DIV:
    case TL_OP_REM:
    case TL_OP_SQRT:
    case TL_OP_EXP2:
    case TL_OP_FLOOR:
    case TL_OP_CEIL:
    case TL_OP_TRUNC:
    case TL_OP_RINT:
    case TL_OP_ROUND: return true;
    case TL_OP_ADD:
    case TL_OP_SUB:
    case TL_OP_MUL:
    case TL_OP_MIN:
    case TL_OP_MAX:
    case TL_OP_MIN_NAN:
    case TL_OP_MAX_NAN:
    case TL_OP_AND:
    case TL_OP_OR:
    case TL_OP_XOR:
    case TL_OP_SHL:
    case TL_OP_SHR:
    case TL_OP_MULHI:
    case TL_OP_NEG:
    case TL_OP_NOT:
    case TL_OP_ABS:
    case TL_OP_POPCOUNT:
    case TL_OP_CLZ:
    case TL_OP_CTZ:
    case TL_OP_FMA:
    case TL_OP_EQ:
    case TL_OP_NE:
    case TL_OP_LT:
    case TL_OP_LE:
    case TL_OP_GT:
    case TL_OP_GE:
    case TL_OP_SELECT:
    case TL_OP_CAST:
    case TL_OP_BITCAST:
    case TL_OP_ASM:
    case TL_OP_PTR_ADD:
    case TL_OP_POINTER:
    case TL_OP_ADDRESS:
#define OP(ID, ...) case TL_OP_##ID:
#define ELEM(...)
#include "ir/ops.def"
    case TL_OP_COUNT: return false;
    }
    TL_UNREACHABLE("op %d", (int)opcode);
}

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
