/* Which integers are even for certain: the starts of stores to packed views must be, so that no two
 * stores write to halves of one byte. What the rule looks through is in LANGUAGE.md: constants,
 * multiples of even constants, multiple_of, loop variables with an even start and step, sums. */
#include "frontend/sema.h"

enum { MOST_VALUES = 64 }; /* looked at */

void tl_even_promise(TlSema *s, TlValue *v)
{
    TL_ASSERT(v->type->rank == 0 && tl_is_int(v->type->dtype), "value %u is no integer", v->id);
    tl_vec_push(s->arena, &s->evens, v);
}

static bool is_promised(const TlSema *s, const TlValue *v)
{
    for (uint32_t i = 0; i < s->evens.len; i++)
        if (s->evens.data[i] == v)
            return true;
    return false;
}

static bool is_even(const TlSema *s, const TlValue *v, int *left)
{
    uint64_t bits;
    if (tl_value_is_const(v, &bits))
        return tl_is_int(v->type->dtype) && bits % 2 == 0;
    if (is_promised(s, v))
        return true;
    if (!v->def || --*left < 0)
        return false;
    const TlOp *op = v->def;
    TlOpcode is = op->opcode;
    if (is == TL_OP_ADD || is == TL_OP_SUB)
        return is_even(s, tl_in(op, 0), left) && is_even(s, tl_in(op, 1), left);
    if (is == TL_OP_MUL)
        return is_even(s, tl_in(op, 0), left) || is_even(s, tl_in(op, 1), left);
    if (is == TL_OP_SHL) /* the amount is taken modulo the width */
        return tl_value_is_const(tl_in(op, 1), &bits) && bits % tl_dtype_bits(v->type->dtype) != 0;
    if (is == TL_OP_NEG || (is == TL_OP_CAST && tl_is_int(tl_in(op, 0)->type->dtype)))
        return is_even(s, tl_in(op, 0), left);
    return false;
}

bool tl_is_even(const TlSema *s, const TlValue *v)
{
    int left = MOST_VALUES;
    return is_even(s, v, &left);
}
