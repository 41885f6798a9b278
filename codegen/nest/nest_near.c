/* Gathers whose lanes may be near each other: elements of one vector of memory.
 *
 *     x = 2 + 0.09 * (f32)iota(64)       every 16 lanes go over two elements
 *     at(D, k, j, (i32)x)
 *
 * Where an index is computed from the number of the lane alone, as where an image is scaled or
 * turned, rays go through a volume, or a curve is interpolated, neighbouring lanes want
 * neighbouring elements: how near, only the run knows, which asks (codegen/cpu/cpu_near.c). What
 * is read from memory, or is a product or a remainder of integers, may lead anywhere. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

/* Values that an index may be computed from. */
enum { MOST_VALUES = 48 };

/* Does op bring neighbouring numbers to neighbouring numbers, unless one is at an edge? */
static bool keeps_near(const TlOp *op)
{
    static const TlOpcode OPS[] = {TL_OP_ADD,   TL_OP_SUB,    TL_OP_MIN,   TL_OP_MAX,
                                   TL_OP_NEG,   TL_OP_ABS,    TL_OP_FLOOR, TL_OP_CEIL,
                                   TL_OP_TRUNC, TL_OP_RINT,   TL_OP_ROUND, TL_OP_SELECT,
                                   TL_OP_CAST,  TL_OP_EXPAND, TL_OP_SHR,   TL_OP_AND};
    static const TlOpcode OF_FLOATS[] = {TL_OP_MUL, TL_OP_FMA, TL_OP_DIV, TL_OP_SQRT};
    for (size_t i = 0; i < sizeof OPS / sizeof *OPS; i++)
        if (op->opcode == OPS[i])
            return true;
    for (size_t i = 0; i < sizeof OF_FLOATS / sizeof *OF_FLOATS; i++)
        if (op->opcode == OF_FLOATS[i])
            return tl_is_float(op->out[0]->type->dtype);
    return op->opcode == TL_OP_RESHAPE && tl_nest_last_axis(op->out[0]->type) >= 0;
}

/* Is v computed from the number of the element, and from scalars? *counts: from the former, too. */
static bool is_smooth(const TlValue *v, bool *counts, int *left)
{
    uint64_t bits;
    const TlOp *op = v->def;
    if (v->type->kind != TL_TILE || --*left < 0)
        return false;
    if (v->type->rank == 0 || tl_value_is_const(v, &bits))
        return true;
    if (!op)
        return false;
    if (op->opcode == TL_OP_IOTA) {
        *counts = true;
        return true;
    }
    if (op->opcode == TL_OP_BROADCAST)
        return is_smooth(tl_in(op, 0), counts, left);
    if (!keeps_near(op))
        return false;
    for (uint32_t i = op->opcode == TL_OP_SELECT; i < op->nin; i++)
        if (!is_smooth(tl_in(op, i), counts, left))
            return false;
    return true;
}

/* Is there an instruction for lanes in an order that only the run knows (cpu_permute.c)? */
static bool can_permute(const TlNests *plan, int bytes)
{
    return (bytes == 4 && tl_llvm_has_feature(plan->m.l, "avx2")) ||
           (bytes == 8 && tl_llvm_has_feature(plan->m.l, "avx512f"));
}

bool tl_nest_may_be_near(const TlNests *plan, const TlNestAccess *a)
{
    bool near = false;
    int left = MOST_VALUES;
    if (!a->loads || !a->place.axes || a->place.mask || a->asks ||
        !can_permute(plan, tl_dtype_bytes(a->place.base->type->dtype)))
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        bool counts = false;
        if (a->place.axes[i].kind != TL_AXIS_TILE)
            continue;
        if (a->axis[i].affine.is || !is_smooth(a->place.index[i].value, &counts, &left))
            return false;
        near |= counts && a->axis[i].stride == 1;
    }
    return near;
}
