/* The ring mode (--fp=ring): floats of width w are replaced by the integers modulo 2^w, so that
 * sums and products are exact and associative. Then every layout, number of warps, order of a
 * reduction and split of a loop gives the same bits, on ref, cpu and emulator, on random data: what
 * moves data is tested without a tolerance (reliability of kernels, not of arithmetic).
 *
 * A float is its bits, seen as a signed integer of the same width (tl_ring_dtype). Sum, difference,
 * product, fma and dot are those of integers; so are min, max and comparisons; there is no NaN.
 * Casts are those of integers: a wider float extends the sign, a narrower one and an integer take
 * the low bits. Division, remainder, square root and rounding are hashes of the operands, different
 * for each op. Only constants are more than their bits: the pass `ring` puts in their place what
 * tl_ring_embed gives, small integers as themselves, and marks the function. From then on a
 * constant's bits are its value in the ring. */
#ifndef TL_RING_FLOAT_H
#define TL_RING_FLOAT_H
#include "ir/ir.h"

/* Signed integer type as wide as the float type. */
TlDtype tl_ring_dtype(TlDtype d);
/* The type an op computes in for operands of type d: in the ring floats are integers. */
TlDtype tl_op_dtype(const TlOp *op, TlDtype d);
/* The element of the ring for a float constant: integers modulo 2^w; infinities are the largest and
 * smallest; else a hash of the magnitude, with the sign of the number. */
uint64_t tl_ring_embed(TlDtype d, uint64_t bits);
/* Of an op whose row says HASH. b: 0 when unary. Operands zero-extended, the result cut to the
 * type. */
uint64_t tl_ring_hash(TlOpcode opcode, uint64_t a, uint64_t b);
/* The steps of the hash, for code that must compute the same. */
uint64_t tl_ring_tag(TlOpcode opcode);
#define TL_RING_MIX1 0xbf58476d1ce4e5b9u
#define TL_RING_MIX2 0x94d049bb133111ebu
#endif
