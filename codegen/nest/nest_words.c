/* Channels of an image that are widened: their loads are words, shifted.
 *
 *     (u16)x[i +: B, 1]        of u8 x[N, 4]
 *
 * An element and those beside it in memory are one word; its bits, shifted to the word's end, are
 * the wider element, without a shuffle for each. A load whose elements are wanted as they are would
 * have to narrow the words again: a shuffle of bytes is less. So it is where LLVM computes with the
 * narrow elements, as all that is wanted are the low bits of a sum or product, or an average. */
#include "codegen/nest/nest.h"

#include "passes/analysis/facts.h"

/* Are the low bits of what op gives those of its operands, or those of an average? */
static bool gives_low_bits(const TlOp *op)
{
    static const TlOpcode LOW[] = {TL_OP_ADD, TL_OP_SUB, TL_OP_MUL, TL_OP_AND, TL_OP_OR, TL_OP_XOR};
    uint64_t by;
    for (size_t i = 0; i < sizeof LOW / sizeof *LOW; i++)
        if (op->opcode == LOW[i])
            return true;
    return op->opcode == TL_OP_SHR && tl_value_is_const(tl_in(op, 1), &by) && by == 1;
}

/* Are no more than `bits` of v wanted, by all that it is computed to? */
static bool is_narrowed(const TlValue *v, int bits, int *left)
{
    const TlUse *u = v->uses;
    for (; u && --*left > 0; u = u->next) {
        const TlOp *op = u->user;
        bool narrows = op->opcode == TL_OP_CAST && tl_is_int(op->out[0]->type->dtype) &&
                       tl_dtype_bits(op->out[0]->type->dtype) <= bits;
        if (!narrows && (!gives_low_bits(op) || !is_narrowed(op->out[0], bits, left)))
            return false;
    }
    return v->uses && !u;
}

/* How many elements of the load fit in the narrowest of what it is widened to? */
static int ratio(const TlOp *load)
{
    enum { MOST_BITS = 64, MOST_USES = 64 };
    int own = tl_dtype_bits(load->out[0]->type->dtype), least = MOST_BITS, left = MOST_USES;
    for (const TlUse *u = load->out[0]->uses; u; u = u->next) {
        const TlValue *wide = u->user->opcode == TL_OP_CAST ? u->user->out[0] : NULL;
        int to = wide ? tl_dtype_bits(wide->type->dtype) : own;
        if (wide && tl_is_int(wide->type->dtype) && is_narrowed(wide, own, &left))
            to = own;
        least = to < least ? to : least;
    }
    return load->out[0]->uses ? least / own : 1;
}

/* Is the last axis, of so many elements, dense, and does the place take one of each row? All of a
 * row is memory then. */
static bool is_of_dense_rows(const TlFn *fn, const TlPlace *p, int elements)
{
    uint32_t last = p->naxes - 1;
    int64_t n;
    return p->axes[last].kind == TL_AXIS_SCALAR && tl_nest_is_dense(fn, p, (int)last) &&
           tl_nest_extent(fn, p->base, last, &n) && n == elements;
}

TlNestPart tl_nest_part(const TlNests *plan, const TlOp *load, int lane)
{
    TlNestPart no = {.n = 1};
    TlWideInt at;
    const TlNestAccess *a = tl_map_get_ptr(&plan->access, load);
    if (!a || plan->check || !tl_is_int(load->out[0]->type->dtype) ||
        plan->place[load->out[0]->id].kind != TL_NEST_VIRTUAL)
        return no;
    int stride = tl_nest_stride(a, lane), n = ratio(load);
    if (stride == 1 || !is_of_dense_rows(plan->fn, &a->place, stride) ||
        !tl_const_int_value(a->place.index[a->place.naxes - 1].value, &at) || at < 0 ||
        at >= stride)
        return no;
    while (n > 1 && stride % n != 0)
        n /= 2;
    return n > 1 ? (TlNestPart){n, (int)at} : no;
}
