/* Global memory in the SIMT lowering: loads, stores, the inside test.
 *
 * A place is a view with indices or pointers. For a view the address of a register's element is
 *     view + sum of start * stride (uniform) + thread part * stride + constant * stride
 * summed in this order, so that the first is one value for the block, the second one for the
 * thread and the rest, where strides are known, constants. Registers that follow each other in
 * memory move together: as many as the layout holds side by side and as axis-info proves aligned
 * and all inside or all outside.
 *
 * Where memory instructions take no scalar base, threads count along an axis from the start of the
 * view instead (is_counted): start + coordinate, times the stride, is one instruction.
 *
 * Where launches have small strides, offsets of 32 bits from one address for the block do not
 * change in loops (local_address): ptxas keeps them all, and the addresses of several arrays. If a
 * kernel's loops have too many, it spills; then each address is computed where it is used, as if
 * nothing were known of the strides, which takes fewer instructions, too.
 *
 * A copy has no registers of its own, so its addresses may stay in some: what its loop moves the
 * tile by is added last, to what does not change in the loop. On NVIDIA that is one instruction,
 * start * stride + the rest. */
#include "codegen/simt/simt_access.h"

#include "ir/plan/staged.h"
#include "ir/rewrite.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/kept_offsets.h"
#include "passes/simplify/bounds.h"
#include <stdlib.h>

enum { MOST_ROWS = 16 }; /* of a tile whose columns are counted: each has an address in registers */

/* ---- the uniform part ---- */

static const TlType *accessed_type(const TlOp *op)
{
    return op->nout ? op->out[0]->type : tl_op_place(op).value->type;
}

static LLVMValueRef to_i32(TlSimt *g, LLVMValueRef x)
{
    return LLVMBuildTrunc(g->b, x, g->i32, "");
}

/* In bytes: the view's stride, as a slice's step is between its elements only. */
static LLVMValueRef byte_stride(TlSimt *g, const TlSimtAccess *a, uint32_t i)
{
    LLVMValueRef bytes = tl_gen_int(&g->gen, (int64_t)tl_gen_elem_bytes(&a->elem));
    return LLVMBuildMul(g->b, a->view->stride[i], bytes, "");
}

/* x * stride in bytes, both below 2^31. */
static LLVMValueRef times_stride(TlSimt *g, const TlSimtAccess *a, uint32_t i, LLVMValueRef x)
{
    LLVMValueRef args[2] = {x, to_i32(g, byte_stride(g, a, i))};
    return tl_simt_leaf(g, TL_LEAF_MUL_WIDE, 2, args);
}

/* By start * stride; where threads count it, at each address. */
static void move(TlSimt *g, TlSimtAccess *a, uint32_t i, bool is_small)
{
    a->moving |= 1u << i;
    if (a->counted)
        return;
    LLVMValueRef by = is_small ? times_stride(g, a, i, to_i32(g, a->start[i]))
                               : LLVMBuildMul(g->b, a->start[i], byte_stride(g, a, i), "");
    a->moved = a->moved ? LLVMBuildAdd(g->b, a->moved, by, "") : by;
}

/* Are start and stride below 2^31, with bytes for elements? */
static bool is_small(const TlSimtAccess *a, const TlAccessInfo *info, uint32_t i)
{
    enum { MOST_STRIDE = 1 << 22 };
    LLVMValueRef s = a->stride[i];
    bool known = LLVMIsAConstantInt(s) && llabs(LLVMConstIntGetSExtValue(s)) <= MOST_STRIDE;
    return a->place.index[i].value->type->dtype == TL_I32 && (known || info->local >> i & 1);
}

static bool is_only_slice(const TlPlace *p, uint32_t i)
{
    for (uint32_t k = 0; k < p->naxes; k++)
        if (k != i && p->axes[k].kind == TL_AXIS_SLICE)
            return false;
    return true;
}

/* Can a thread add its coordinate to the start, in 32 bits without a sign, and test the sum? */
static bool can_count(const TlSimtAccess *a, const TlAccessInfo *info, uint32_t i)
{
    return info->narrow >> i & 1 && a->layout && a->place.axes[i].step == 1 &&
           a->place.index[i].value->type->dtype == TL_I32 && !LLVMIsAConstantInt(a->start[i]);
}

/* Does each thread count along the axis, from the start of the view? Of loads and stores, where it
 * is the only slice (one number for addresses and tests, and the views with the same start), or the
 * one that the loop moves (the rest of an address stays). Of copies between the instructions of a
 * product: there it is a number of the thread, as PTX has no uniform registers, and ptxas would
 * copy one for each address. */
static bool is_counted(const TlSimt *g, const TlSimtAccess *a, const TlAccessInfo *info,
                       uint32_t i)
{
    const TlAxis *axis = &a->place.axes[i];
    if (g->counted >= TL_SIMT_MOST_COUNTED || g->options->target->family->scalar_base)
        return false;
    if (axis->kind != TL_AXIS_SLICE || axis->step != 1 || a->counted || !is_small(a, info, i))
        return false;
    if (a->op->opcode == TL_OP_COPY)
        return tl_copy_is_spread(a->op) && tl_moving_axes(a->op) >> i & 1;
    return can_count(a, info, i) &&
           (is_only_slice(&a->place, i) ||
            (tl_moving_axes(a->op) == 1u << i && a->nregs / a->width <= MOST_ROWS));
}

/* Is what threads count compared with the extent? Not for copies: what is left, a number of the
 * block, is compared with their coordinates, which stay. */
static bool is_tested(const TlSimtAccess *a, uint32_t i)
{
    return a->op->opcode != TL_OP_COPY && a->counted >> i & 1;
}

/* start * stride */
LLVMValueRef tl_simt_access_start_times(TlSimt *g, const TlSimtAccess *a, uint32_t i)
{
    bool word = !g->options->target->family->scalar_base &&
                a->place.index[i].value->type->dtype == TL_I32 &&
                tl_view_has_short_stride(g->axis, a->place.base, (int)i);
    if (!word || LLVMIsAConstantInt(a->start[i]) || LLVMIsAConstantInt(a->stride[i]))
        return LLVMBuildMul(g->b, a->start[i], a->stride[i], "");
    LLVMValueRef args[2] = {to_i32(g, a->start[i]), to_i32(g, a->stride[i])};
    return tl_simt_leaf(g, TL_LEAF_MUL_WIDE, 2, args);
}

/* 0 <= index < extent; of 32 bits, negative ones are large. */
static LLVMValueRef index_inside(TlSimt *g, const TlSimtAccess *a, uint32_t i, LLVMValueRef index)
{
    TlValue *v = a->place.index[i].value;
    LLVMValueRef extent = a->view->extent[i];
    bool word = v->type->dtype == TL_I32 || v->type->dtype == TL_U32;
    if (word && tl_view_is_short(g->axis, a->place.base, (int)i))
        extent = to_i32(g, extent);
    else
        index = tl_gen_to_i64(&g->gen, v, index);
    return LLVMBuildICmp(g->b, LLVMIntULT, index, extent, "");
}

static void prepare_axis(TlSimt *g, TlSimtAccess *a, const TlAccessInfo *info, uint32_t i,
                         LLVMValueRef *offset)
{
    const TlAxis *axis = &a->place.axes[i];
    TlValue *index = a->place.index[i].value;
    a->dim[i] = tl_place_dim(&a->place, i);
    a->stride[i] = a->view->stride[i];
    if (axis->kind == TL_AXIS_TILE)
        return;
    LLVMValueRef at = tl_gen_to_i64(&g->gen, index, tl_gen_scalar(&g->gen, index));
    a->start[i] = at;
    if (a->is_summed ? tl_simt_sum_counts(a, i) : is_counted(g, a, info, i)) {
        a->counted |= 1u << i;
        g->counted++;
    }
    if (a->op->opcode == TL_OP_COPY && tl_moving_axes(a->op) >> i & 1)
        move(g, a, i, is_small(a, info, i));
    else if (!a->is_summed && !(a->counted >> i & 1))
        *offset = LLVMBuildAdd(g->b, *offset, tl_simt_access_start_times(g, a, i), "");
    if (axis->kind == TL_AXIS_SLICE) {
        a->stride[i] = LLVMBuildMul(g->b, a->stride[i], tl_gen_int(&g->gen, axis->step), "");
        return;
    }
    if (a->bounds && !(a->sure >> i & 1))
        a->uniform_ok =
            tl_simt_both(g, a->uniform_ok, index_inside(g, a, i, tl_gen_scalar(&g->gen, index)));
}

/* ---- offsets of 32 bits ---- */

/* So many offsets that no compiler keeps them in two registers each over a loop: it would make the
 * bytes of each in every trip, of 64 bits from elements, in two instructions. Few are kept as parts
 * of addresses, whose last step is a product with the bytes of an element and a sum. */
static bool has_many_offsets(const TlSimtAccess *a)
{
    bool known = true;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        known &= a->place.axes[i].kind != TL_AXIS_SLICE || LLVMIsAConstantInt(a->stride[i]);
    return !known && a->nregs / a->width >= TL_MANY_OFFSETS;
}

/* ---- an access ---- */

void tl_simt_access_begin(TlSimt *g, TlOp *op, TlSimtAccess *a)
{
    *a = (TlSimtAccess){.op = op, .place = tl_op_place(op), .type = accessed_type(op)};
    g->param = tl_base_param(a->place.base);
    const TlType *base = a->place.base->type;
    a->elem = (TlType){.kind = TL_TILE, .dtype = base->dtype};
    a->layout = a->type->rank ? a->type->layout : NULL;
    a->nregs = a->layout ? tl_layout_registers(a->layout) : 1;
    a->bounds = !tl_attr_flag(op, TL_ATTR_UNCHECKED) || g->options->check;
    a->sure = g->options->check ? 0 : tl_bounds_sure_axes(g->fn, g->axis, op);
    a->asks = g->options->check && !tl_is_view_of_launch(a->place.base);
    TlAccessInfo info = tl_access_info(g->axis, op);
    a->width = tl_access_vector(&info, op, a->layout);
    if (a->place.axes) {
        LLVMValueRef offset = tl_gen_int(&g->gen, 0);
        a->view = tl_gen_view(&g->gen, a->place.base);
        a->is_summed = tl_simt_is_summed(g, a, &info);
        for (uint32_t i = 0; i < a->place.naxes; i++)
            prepare_axis(g, a, &info, i, &offset);
        if (a->is_summed)
            tl_simt_sum_begin(g, a, &info);
        else
            a->uniform = tl_gen_address(&g->gen, a->elem.dtype, a->view->ptr, offset);
    }
    a->is_local = info.local != 0 && (g->keeps_offsets || !has_many_offsets(a));
    a->is_near = info.near;
    a->whole = a->bounds ? tl_copy_whole_axes(op, &info, g->options->check) : 0;
    for (uint32_t i = 0; i < a->place.naxes && a->place.axes; i++)
        if (info.narrow >> i & 1 && !is_tested(a, i))
            a->left[i] =
                LLVMBuildNSWSub(g->b, to_i32(g, a->view->extent[i]), to_i32(g, a->start[i]), "");
}

/* ---- a register ---- */

/* The index tile's element for register r of the access. */
static LLVMValueRef index_of(TlSimt *g, const TlSimtAccess *a, uint32_t i, int64_t r)
{
    TlValue *v = a->place.index[i].value;
    int dims[TL_MAX_RANK];
    for (int d = 0; d < v->type->rank; d++)
        dims[d] = a->dim[i] + d;
    int64_t reg = tl_simt_match(g, v->type->layout, a->layout, r, dims);
    return tl_simt_regs(g, v)[reg];
}

/* index * stride */
static LLVMValueRef index_times(TlSimt *g, const TlSimtAccess *a, uint32_t i, LLVMValueRef index)
{
    TlValue *v = a->place.index[i].value;
    if (v->type->dtype != TL_I32 || !tl_view_has_short_stride(g->axis, a->place.base, (int)i))
        return LLVMBuildMul(g->b, tl_gen_to_i64(&g->gen, v, index), a->stride[i], "");
    LLVMValueRef args[2] = {index, to_i32(g, a->stride[i])};
    return tl_simt_leaf(g, TL_LEAF_MUL_WIDE, 2, args);
}

static LLVMValueRef i64_of(TlSimt *g, LLVMValueRef coordinate)
{
    return LLVMBuildZExt(g->b, coordinate, g->i64, "");
}

static LLVMValueRef plus_moved(TlSimt *g, const TlSimtAccess *a, LLVMValueRef p)
{
    return a->moved ? LLVMBuildGEP2(g->b, g->i8, p, (LLVMValueRef[]){a->moved}, 1, "") : p;
}

/* start + the thread's part of a coordinate */
LLVMValueRef tl_simt_access_count(TlSimt *g, const TlSimtAccess *a, uint32_t i, TlSimtCoord c)
{
    return LLVMBuildAdd(g->b, to_i32(g, a->start[i]), c.thread, "");
}

static LLVMValueRef plus_counted(TlSimt *g, const TlSimtAccess *a, LLVMValueRef p, int64_t r)
{
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (!(a->counted >> i & 1))
            continue;
        TlSimtCoord c = tl_simt_split_coord(g, a->layout, r, a->dim[i]);
        LLVMValueRef by = times_stride(g, a, i, tl_simt_access_count(g, a, i, c));
        p = LLVMBuildGEP2(g->b, g->i8, p, &by, 1, "");
    }
    return p;
}

static LLVMValueRef times(TlSimt *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildMul(g->b, a, b, "");
}

/* The address so many elements further, whose bytes fit 32 bits. */
static LLVMValueRef after_bytes(TlSimt *g, const TlSimtAccess *a, LLVMValueRef elements)
{
    LLVMValueRef bytes = tl_simt_i32(g, (uint32_t)tl_gen_elem_bytes(&a->elem));
    bytes = i64_of(g, times(g, elements, bytes));
    return LLVMBuildGEP2(g->b, g->i8, a->uniform, &bytes, 1, "");
}

/* One address for the block, and offsets of 32 bits that do not change in loops. What is known of
 * them comes last: it is part of an instruction. */
static LLVMValueRef local_address(TlSimt *g, const TlSimtAccess *a, int64_t r)
{
    LLVMValueRef offset = tl_simt_i32(g, 0), constant = tl_gen_int(&g->gen, 0);
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (a->place.axes[i].kind != TL_AXIS_SLICE)
            continue;
        TlSimtCoord c = tl_simt_split_coord(g, a->layout, r, a->dim[i]);
        bool known = LLVMIsAConstantInt(a->stride[i]);
        LLVMValueRef x = a->counted >> i & 1 ? tl_simt_i32(g, 0) : c.thread;
        LLVMValueRef k = tl_simt_i32(g, (uint32_t)c.constant);
        if (known)
            constant = LLVMBuildAdd(g->b, constant, times(g, i64_of(g, k), a->stride[i]), "");
        else
            x = LLVMBuildAdd(g->b, x, k, "");
        x = LLVMBuildMul(g->b, x, to_i32(g, a->stride[i]), "");
        offset = LLVMBuildAdd(g->b, offset, x, "");
    }
    LLVMValueRef p = has_many_offsets(a) ? after_bytes(g, a, offset)
                                         : tl_gen_address(&g->gen, a->elem.dtype, a->uniform,
                                                          i64_of(g, offset));
    p = plus_counted(g, a, plus_moved(g, a, p), r);
    return tl_gen_address(&g->gen, a->elem.dtype, p, constant);
}

LLVMValueRef tl_simt_access_address(TlSimt *g, TlSimtAccess *a, int64_t r)
{
    if (!a->view) {
        if (a->place.base->type->rank == 0)
            return tl_gen_scalar(&g->gen, a->place.base);
        return tl_simt_regs(g, a->place.base)[r];
    }
    if (a->is_summed)
        return tl_simt_sum_address(g, a, r);
    if (a->is_local && a->layout)
        return local_address(g, a, r);
    LLVMValueRef thread = NULL, constant = tl_gen_int(&g->gen, 0);
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        LLVMValueRef t = NULL;
        if (a->place.axes[i].kind == TL_AXIS_SLICE && a->layout) {
            TlSimtCoord c = tl_simt_split_coord(g, a->layout, r, a->dim[i]);
            if (!(a->counted >> i & 1))
                t = times(g, i64_of(g, c.thread), a->stride[i]);
            LLVMValueRef k = times(g, tl_gen_int(&g->gen, c.constant), a->stride[i]);
            constant = LLVMBuildAdd(g->b, constant, k, "");
        } else if (a->place.axes[i].kind == TL_AXIS_TILE) {
            t = index_times(g, a, i, index_of(g, a, i, r));
        }
        if (t)
            thread = thread ? LLVMBuildAdd(g->b, thread, t, "") : t;
    }
    bool late = a->counted && a->counted == tl_moving_axes(a->op);
    LLVMValueRef p = late ? a->uniform : plus_counted(g, a, a->uniform, r);
    if (thread)
        p = tl_gen_address(&g->gen, a->elem.dtype, p, thread);
    p = tl_gen_address(&g->gen, a->elem.dtype, plus_moved(g, a, p), constant);
    return late ? plus_counted(g, a, p, r) : p;
}

/* Is the element of a slice at a coordinate of the tile inside? */
static LLVMValueRef slice_inside(TlSimt *g, const TlSimtAccess *a, uint32_t i, TlSimtCoord c)
{
    int32_t step = a->place.axes[i].step;
    if (is_tested(a, i)) {
        LLVMValueRef far = tl_simt_i32(g, (uint32_t)c.constant),
                     at = LLVMBuildAdd(g->b, tl_simt_access_count(g, a, i, c), far, "");
        return LLVMBuildICmp(g->b, LLVMIntULT, at, to_i32(g, a->view->extent[i]), "");
    }
    if (a->left[i]) {
        LLVMValueRef far = tl_simt_i32(g, (uint32_t)(step * c.constant));
        LLVMValueRef at = LLVMBuildNSWMul(g->b, c.thread, tl_simt_i32(g, (uint32_t)step), "");
        return LLVMBuildICmp(g->b, LLVMIntSLT, LLVMBuildNSWAdd(g->b, at, far, ""), a->left[i], "");
    }
    LLVMValueRef t = times(g, i64_of(g, c.thread), tl_gen_int(&g->gen, step));
    LLVMValueRef at = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, a->start[i], t, ""),
                                   tl_gen_int(&g->gen, (int64_t)step * c.constant), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, at, a->view->extent[i], "");
}

static LLVMValueRef axis_inside(TlSimt *g, TlSimtAccess *a, uint32_t i, int64_t r)
{
    if (a->place.axes[i].kind == TL_AXIS_TILE)
        return index_inside(g, a, i, index_of(g, a, i, r));
    TlSimtCoord c = tl_simt_split_coord(g, a->layout, r, a->dim[i]);
    for (uint32_t k = 0; k < a->tests[i].len; k++)
        if (a->tests[i].data[k].at.thread == c.thread &&
            a->tests[i].data[k].at.constant == c.constant)
            return a->tests[i].data[k].inside;
    LLVMValueRef in = slice_inside(g, a, i, c);
    tl_vec_push(g->arena, &a->tests[i], (TlSimtTest){c, in});
    return in;
}

LLVMValueRef tl_simt_access_inside(TlSimt *g, TlSimtAccess *a, int64_t r)
{
    LLVMValueRef ok = a->uniform_ok;
    if (!a->view || !a->bounds)
        return ok;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind != TL_AXIS_SCALAR && !((a->inside | a->sure) >> i & 1))
            ok = tl_simt_both(g, ok, axis_inside(g, a, i, r));
    return ok;
}

static LLVMValueRef slice_all_inside(TlSimt *g, const TlSimtAccess *a, uint32_t i)
{
    const TlAxis *axis = &a->place.axes[i];
    TlSimtCoord first = {tl_simt_i32(g, 0), 0, 0},
                last = {tl_simt_i32(g, 0), axis->width - 1, 0};
    LLVMValueRef ends = slice_inside(g, a, i, last);
    return a->left[i] ? ends : tl_simt_both(g, slice_inside(g, a, i, first), ends);
}

LLVMValueRef tl_simt_access_all_inside(TlSimt *g, const TlSimtAccess *a)
{
    LLVMValueRef all = NULL;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->whole >> i & 1)
            all = tl_simt_both(g, all, slice_all_inside(g, a, i));
    return all;
}

void tl_simt_access_move(TlSimt *g, TlSimtAccess *a)
{
    a->moved = NULL;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->moving >> i & 1)
            move(g, a, i, false);
}

LLVMValueRef tl_simt_access_value(TlSimt *g, const TlSimtAccess *a, const TlValue *v, int64_t r)
{
    if (v->type->rank == 0)
        return tl_gen_scalar(&g->gen, v);
    TL_ASSERT(v->type->layout == a->layout, "an operand of a memory op in another layout");
    return tl_simt_regs(g, v)[r];
}

LLVMValueRef tl_simt_access_pred(TlSimt *g, TlSimtAccess *a, int64_t r)
{
    LLVMValueRef ok = tl_simt_access_inside(g, a, r);
    if (a->layout)
        ok = tl_simt_both(g, ok, tl_simt_is_inside(g, a->type, r));
    if (a->place.mask)
        ok = tl_simt_both(g, ok, tl_simt_access_value(g, a, a->place.mask, r));
    return ok;
}

LLVMValueRef tl_simt_access_owner(TlSimt *g, const TlSimtAccess *a)
{
    if (a->layout)
        return tl_simt_is_owner(g, a->layout);
    return LLVMBuildICmp(g->b, LLVMIntEQ, g->thread.tid, tl_simt_i32(g, 0), "");
}

LLVMValueRef tl_simt_pred_or_true(TlSimt *g, LLVMValueRef pred)
{
    return pred ? pred : LLVMConstInt(g->i1, 1, 0);
}

/* Every register, not only the first of those that move together. */
void tl_simt_access_promise(TlSimt *g, TlSimtAccess *a)
{
    enum { BOUNDS = 1 };
    LLVMValueRef broken = LLVMConstInt(g->i1, 0, 0);
    if (!g->options->check || !a->view || !tl_attr_flag(a->op, TL_ATTR_UNCHECKED))
        return;
    for (int64_t r = 0; r < a->nregs; r++) {
        LLVMValueRef inside = tl_simt_access_inside(g, a, r);
        LLVMValueRef wanted = a->layout ? tl_simt_is_inside(g, a->type, r) : NULL;
        if (a->place.mask)
            wanted = tl_simt_both(g, wanted, tl_simt_access_value(g, a, a->place.mask, r));
        if (inside)
            broken = LLVMBuildOr(g->b, broken,
                                 tl_simt_both(g, wanted, LLVMBuildNot(g->b, inside, "")), "");
    }
    tl_simt_fail(g, tl_simt_both(g, tl_simt_access_owner(g, a), broken), BOUNDS,
                 "the promise of unchecked does not hold");
}

/* ---- with checks: the arrays of the launch ---- */

/* i1: do `bytes` at the address, an i64, lie in the array of the parameter? One of unknown size
 * holds everything. */
static LLVMValueRef is_in_array(TlSimt *g, uint32_t param, LLVMValueRef address, uint64_t bytes)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), need = tl_gen_int(&g->gen, (int64_t)bytes);
    LLVMValueRef start = tl_gen_slot(&g->gen, TILE_SLOT_POINTER, param, 0),
                 size = tl_gen_slot(&g->gen, TILE_SLOT_BYTES, param, 0);
    start = LLVMBuildPtrToInt(g->b, start, g->i64, "");
    LLVMValueRef offset = LLVMBuildSub(g->b, address, start, ""),
                 left = LLVMBuildSub(g->b, size, offset, ""),
                 begins = LLVMBuildICmp(g->b, LLVMIntULT, offset, size, ""),
                 ends = LLVMBuildICmp(g->b, LLVMIntUGE, left, need, ""),
                 open = LLVMBuildICmp(g->b, LLVMIntEQ, size, tl_gen_int(&g->gen, -1), ""),
                 there = LLVMBuildICmp(g->b, LLVMIntNE, start, zero, "");
    LLVMValueRef in = LLVMBuildOr(g->b, LLVMBuildAnd(g->b, begins, ends, ""), open, "");
    return LLVMBuildAnd(g->b, in, there, "");
}

/* Tests against the parameter that the base comes from, or any parameter if that is not known. */
static LLVMValueRef is_in_its_array(TlSimt *g, const TlSimtAccess *a, LLVMValueRef address,
                                    uint64_t bytes)
{
    const TlBlock *body = g->fn->body;
    int param = tl_base_param(a->place.base);
    LLVMValueRef any = LLVMConstInt(g->i1, 0, 0);
    if (param >= 0)
        return is_in_array(g, (uint32_t)param, address, bytes);
    for (uint32_t i = 0; i < body->nargs; i++)
        if (body->args[i]->type->kind == TL_VIEW || body->args[i]->type->ptr)
            any = LLVMBuildOr(g->b, any, is_in_array(g, i, address, bytes), "");
    return any;
}

static const char *access_verb(const TlOp *op)
{
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_COPY)
        return "load";
    return op->opcode == TL_OP_STORE ? "store" : "atomic";
}

LLVMValueRef tl_simt_access_ask(TlSimt *g, const TlSimtAccess *a, LLVMValueRef pred,
                                LLVMValueRef address, uint64_t bytes)
{
    if (!a->asks)
        return pred;
    LLVMValueRef at = LLVMBuildPtrToInt(g->b, address, g->i64, ""),
                 good = is_in_its_array(g, a, at, bytes);
    LLVMValueRef failed = tl_simt_both(g, pred, LLVMBuildNot(g->b, good, ""));
    failed = tl_simt_both(g, tl_simt_access_owner(g, a), failed);
    tl_simt_outside(g, failed, access_verb(a->op), tl_base_param(a->place.base), address, bytes);
    return tl_simt_both(g, pred, good);
}

/* ---- loads ---- */

LLVMValueRef tl_simt_access_hints(TlSimt *g, const TlOp *op)
{
    int64_t cache = tl_attr_int(op, TL_ATTR_CACHE, 0), evict = tl_attr_int(op, TL_ATTR_EVICT, 0);
    return tl_simt_i32(g, (uint32_t)(cache + 4 * evict));
}

bool tl_simt_access_fill(const TlSimtAccess *a, uint32_t *out)
{
    uint64_t bits = 0;
    if (a->place.other && !tl_value_is_const(a->place.other, &bits))
        return false;
    switch (tl_gen_elem_bytes(&a->elem)) {
    case 1: *out = (uint32_t)(bits & 0xff) * 0x01010101u; return true;
    case 2: *out = (uint32_t)(bits & 0xffff) * 0x00010001u; return true;
    case 4: *out = (uint32_t)bits; return true;
    case 8: *out = (uint32_t)bits; return bits >> 32 == *out;
    default: return false;
    }
}

static LLVMValueRef load_wide(TlSimt *g, TlSimtAccess *a, int64_t r, LLVMValueRef pred,
                              LLVMValueRef p, uint32_t fill)
{
    uint64_t bytes = tl_gen_elem_bytes(&a->elem) * (uint64_t)a->width;
    LLVMValueRef word = tl_simt_i32(g, fill), near[TL_BUFFER_OPERANDS];
    if (a->records) {
        tl_simt_buffer_operands(g, a, r, pred, word, near);
        return tl_simt_leaf(g, tl_simt_sized(TL_LEAF_FAMILY_LDB, bytes), TL_BUFFER_OPERANDS, near);
    }
    LLVMValueRef args[4] = {p, tl_simt_pred_or_true(g, pred), tl_simt_access_hints(g, a->op), word};
    return tl_simt_leaf(g, tl_simt_sized(TL_LEAF_FAMILY_LDG, bytes), 4, args);
}

static void load_group(TlSimt *g, TlSimtAccess *a, int64_t r, LLVMValueRef *out)
{
    uint64_t bytes = tl_gen_elem_bytes(&a->elem) * (uint64_t)a->width;
    LLVMValueRef pred = tl_simt_access_pred(g, a, r),
                 p = a->records ? NULL : tl_simt_access_address(g, a, r);
    if (p)
        pred = tl_simt_access_ask(g, a, pred, p, bytes);
    uint32_t fill = 0;
    bool selects = !tl_simt_access_fill(a, &fill) && pred;
    LLVMValueRef wide = load_wide(g, a, r, pred, p, selects ? 0 : fill);
    tl_simt_unpack(g, &a->elem, wide, a->width, out);
    for (int i = 0; selects && i < a->width; i++)
        out[i] = LLVMBuildSelect(g->b, pred, out[i],
                                 tl_simt_access_value(g, a, a->place.other, r + i), "");
}

void tl_simt_load_registers(TlSimt *g, TlSimtAccess *a, LLVMValueRef *out)
{
    tl_simt_buffer_begin(g, a);
    for (int64_t r = 0; r < a->nregs; r += a->width)
        load_group(g, a, r, out + r);
}

void tl_simt_load(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_LOAD && op->nout == 1, "%s is no load",
              tl_op_info(op->opcode)->text);
    TlSimtAccess a;
    LLVMValueRef one;
    tl_simt_access_begin(g, op, &a);
    tl_simt_access_promise(g, &a);
    LLVMValueRef *out = a.layout ? tl_simt_define(g, op->out[0]) : &one;
    tl_simt_load_registers(g, &a, out);
    if (!a.layout)
        g->scalar[op->out[0]->id] = one;
}

void tl_simt_inside(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_INSIDE, "%s asks for no bounds", tl_op_info(op->opcode)->text);
    TlSimtAccess a;
    LLVMValueRef one;
    tl_simt_access_begin(g, op, &a);
    a.bounds = true;
    LLVMValueRef *out = a.layout ? tl_simt_define(g, op->out[0]) : &one;
    for (int64_t r = 0; r < a.nregs; r++)
        out[r] = r % a.width ? out[r - 1] /* all inside or all outside */
                             : tl_simt_pred_or_true(g, tl_simt_access_inside(g, &a, r));
    if (!a.layout)
        g->scalar[op->out[0]->id] = one;
}

/* ---- stores ---- */

/* Can two elements of the access be at the same address? */
static bool may_repeat(const TlPlace *p)
{
    bool repeats = p->axes == NULL;
    for (uint32_t i = 0; i < p->naxes && p->axes; i++)
        repeats |= p->axes[i].kind == TL_AXIS_TILE ||
                   (p->axes[i].kind == TL_AXIS_SLICE && p->axes[i].step == 0);
    return repeats;
}

static void store_wide(TlSimt *g, TlSimtAccess *a, int64_t r, LLVMValueRef pred, LLVMValueRef x)
{
    uint64_t bytes = tl_gen_elem_bytes(&a->elem) * (uint64_t)a->width;
    LLVMValueRef near[TL_BUFFER_OPERANDS];
    if (a->records) {
        tl_simt_buffer_operands(g, a, r, pred, x, near);
        tl_simt_leaf(g, tl_simt_sized(TL_LEAF_FAMILY_STB, bytes), TL_BUFFER_OPERANDS, near);
        return;
    }
    LLVMValueRef p = tl_simt_access_address(g, a, r);
    pred = tl_simt_access_ask(g, a, pred, p, bytes);
    LLVMValueRef args[4] = {p, tl_simt_pred_or_true(g, pred), tl_simt_access_hints(g, a->op), x};
    tl_simt_leaf(g, tl_simt_sized(TL_LEAF_FAMILY_STG, bytes), 4, args);
}

static void store_group(TlSimt *g, TlSimtAccess *a, int64_t r, LLVMValueRef owner)
{
    LLVMValueRef x[16];
    for (int i = 0; i < a->width; i++)
        x[i] = tl_simt_access_value(g, a, a->place.value, r + i);
    LLVMValueRef pred = tl_simt_both(g, owner, tl_simt_access_pred(g, a, r));
    store_wide(g, a, r, pred, tl_simt_pack(g, &a->elem, a->width, x));
    if (may_repeat(&a->place))
        g->code->sites.data[g->code->sites.len - 1].flags |= TILE_SITE_ANY_WINS;
}

void tl_simt_store(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_STORE, "%s is no store", tl_op_info(op->opcode)->text);
    TlSimtAccess a;
    tl_simt_access_begin(g, op, &a);
    tl_simt_access_promise(g, &a);
    tl_simt_buffer_begin(g, &a);
    LLVMValueRef owner = tl_simt_access_owner(g, &a);
    for (int64_t r = 0; r < a.nregs; r += a.width)
        store_group(g, &a, r, owner);
}
