/* Planning the rounds of a table, and what moves in each (table_plan.h). */
#include "ir/plan/table_plan.h"
#include "ir/layout/layout.h"
#include "ir/plan/shared_plan.h"

enum { ACCESS_BYTES = 16 };

static int vector_bits(const TlType *type, uint32_t elem_bytes)
{
    int last = type->rank - 1, bits = tl_layout_consecutive_bits(type->layout, TL_IN_REG);
    if (bits > type->layout->out_bits[last])
        bits = type->layout->out_bits[last];
    while (elem_bytes << bits > ACCESS_BYTES || type->shape[last] % (1 << bits))
        bits--;
    return bits;
}

/* To a power of two that an access fits in. */
static uint32_t rounded_down(uint32_t count)
{
    uint32_t n = ACCESS_BYTES;
    while (n <= count / 2)
        n *= 2;
    return n;
}

/* Of one access of weights, too. */
static uint32_t counted_at_once(const TlTablePlan *p)
{
    uint32_t n = 4;
    while (p->elems % n || p->weight_bytes * n > ACCESS_BYTES)
        n /= 2;
    return n;
}

/* ---- histograms ---- */

/* Cycles of a thread: an access of shared memory, a barrier, an addition to a word, to which other
 * lanes may add too. */
enum { ACCESS = 4, BARRIER = 64, ADDITION = 32 };

static const char *why_no_additions(const TlOp *op)
{
    if (op->nin < 2)
        return "";
    const TlType *value = tl_in(op, 0)->type, *weight = tl_in(op, 1)->type;
    if (tl_is_float(weight->dtype))
        return "sums of floats keep their order";
    if (tl_dtype_bits(weight->dtype) != 32)
        return "weights have not 32 bits";
    bool apart = value->layout && weight->layout && !tl_layout_equal(value->layout, weight->layout);
    return apart ? "a value and its weight are in two threads" : "";
}

static uint32_t threads_of(const TlLayout *l)
{
    return 1u << (tl_layout_in_bits(l, TL_IN_LANE) + tl_layout_in_bits(l, TL_IN_WARP));
}

/* Registers of a thread for n elements, in threads as `like` has them. */
static int64_t registers_for(int64_t n, const TlLayout *like)
{
    int64_t each = n / threads_of(like);
    return each > 0 ? each : 1;
}

TlHistogramWay tl_histogram_way(const TlOp *op, const TlLayout *bins)
{
    TL_ASSERT(op->opcode == TL_OP_HISTOGRAM && bins, "%s counts nothing",
              tl_op_info(op->opcode)->text);
    const TlType *type = tl_in(op, 0)->type;
    int64_t n = tl_type_elems(type), held = tl_layout_registers(bins),
            values = type->layout ? tl_layout_registers(type->layout) : registers_for(n, bins);
    TlHistogramWay way = {.why_not = why_no_additions(op)};
    way.counting = BARRIER + n / 4 * ACCESS + 2 * n * held;
    way.adding = 2 * BARRIER + ADDITION * values + 2 * ACCESS * held;
    way.adds = !*way.why_not && way.adding < way.counting;
    return way;
}

/* ---- tables ---- */

TlTablePlan tl_table_plan(const TlOp *op)
{
    TL_ASSERT(op->nin > 0 && tl_in(op, 0)->type->rank > 0,
              "%s reads no table", tl_op_info(op->opcode)->text);
    bool adds = op->opcode == TL_OP_HISTOGRAM &&
                tl_histogram_way(op, op->out[0]->type->layout).adds;
    const TlType *type = adds ? op->out[0]->type : tl_in(op, 0)->type;
    TlTablePlan p = {.elems = 1,
                     .elem_bytes = type->ptr ? 8 : (uint32_t)tl_dtype_bytes(type->dtype),
                     .adds = adds};
    TL_ASSERT(type->layout, "a table of a tile without layout");
    for (int d = type->rank - 1; d >= 0; d--) {
        p.stride[d] = p.elems;
        p.elems *= (uint32_t)type->shape[d];
    }
    const TlType *weight =
        op->opcode == TL_OP_HISTOGRAM && op->nin > 1 && !adds ? tl_in(op, 1)->type : NULL;
    p.weight_bytes = weight ? (uint32_t)tl_dtype_bytes(weight->dtype) : 0;
    p.counted_at_once = counted_at_once(&p);
    p.spare_bytes = adds ? p.elem_bytes * threads_of(type->layout) : 0;
    p.count = rounded_down((tl_op_room(op, TL_SHARED_BUDGET) - p.spare_bytes) /
                           (p.elem_bytes + p.weight_bytes));
    p.count = p.elems < p.count ? p.elems : p.count;
    p.nrounds = (p.elems + p.count - 1) / p.count;
    p.bytes = p.count * p.elem_bytes + p.spare_bytes;
    p.spare = p.bytes - p.spare_bytes;
    p.vec_bits = vector_bits(type, p.elem_bytes);
    if (!weight)
        return p;
    p.weights = (p.bytes + ACCESS_BYTES - 1) / ACCESS_BYTES * ACCESS_BYTES;
    p.bytes = p.weights + p.count * p.weight_bytes;
    p.weight_vec_bits = vector_bits(weight, p.weight_bytes);
    return p;
}
