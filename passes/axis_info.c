/* Facts of the numbers in tiles (axis_info.h). For now of constants and iotas only. */
#include "passes/axis_impl.h"

#include "ir/numeric.h"
#include "passes/facts.h"

int64_t tl_axis_divisor(int64_t x)
{
    uint64_t low = (uint64_t)x & (0 - (uint64_t)x);
    return low == 0 || low > (uint64_t)TL_AXIS_MAX ? TL_AXIS_MAX : (int64_t)low;
}

int64_t tl_axis_times(int64_t a, int64_t b)
{
    return a >= TL_AXIS_MAX / b ? TL_AXIS_MAX : a * b;
}

static TlAxisFacts unknown(void)
{
    TlAxisFacts f = {.is_known = false};
    for (int d = 0; d < TL_MAX_RANK; d++)
        f.contiguity[d] = f.divisibility[d] = f.constancy[d] = 1;
    return f;
}

static TlAxisFacts constant(const TlType *t, uint64_t bits)
{
    TlAxisFacts f = unknown();
    f.is_known = true;
    f.value = tl_bits_to_int(t->dtype, bits);
    for (int d = 0; d < TL_MAX_RANK; d++) {
        f.divisibility[d] = tl_axis_divisor(f.value);
        f.constancy[d] = d < t->rank ? tl_axis_divisor(t->shape[d]) : 1;
    }
    return f;
}

static TlAxisFacts facts_of(const TlOp *op)
{
    const TlType *t = op->out[0]->type;
    TlAxisFacts f = unknown();
    if (op->opcode == TL_OP_CONST && !t->ptr && !tl_is_float(t->dtype))
        return constant(t, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    if (op->opcode == TL_OP_IOTA) {
        f.contiguity[0] = tl_axis_divisor(t->shape[0]);
        f.divisibility[0] = f.contiguity[0];
    }
    return f;
}

TlAxisInfo *tl_axis_info(const TlFn *fn, TlArena *arena)
{
    TlAxisInfo *a = TL_NEW(arena, TlAxisInfo);
    a->fn = fn;
    a->facts = TL_NEW_ARRAY(arena, TlAxisFacts, fn->nvalues + 1);
    for (uint32_t i = 0; i < fn->nvalues; i++)
        a->facts[i] = unknown();
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->nout == 1)
            a->facts[op->out[0]->id] = facts_of(op);
    return a;
}

const TlAxisFacts *tl_axis_facts(const TlAxisInfo *a, const TlValue *v)
{
    TL_ASSERT(v->id < a->fn->nvalues, "value %u is newer than its facts", v->id);
    return &a->facts[v->id];
}
