/* Addresses as sums of products of 32 bits, where memory instructions take no scalar base (NVIDIA),
 * of slices that no loop moves. A product of 32 bits and its sum of 64 are one instruction:
 *
 *     view + index * stride in bytes                     of an axis, 32 by 32 bits
 *          + (sum of index * stride) * element bytes     of the inner axes, in 32 bits
 *          + constant
 *
 * Elements outside of the view are not accessed, so their addresses may be anything. For others:
 *
 *  1. 0 <= index, so the products have no signs. An index is of 32 bits, a stride in bytes too
 *     (`low`): the product is exact.
 *  2. From axis `inner` on the sum is from 0 to 2^31 - 1 elements (axis_access.c), so it is exact
 *     modulo 2^32, whatever its parts are.
 *  3. What a register adds to its thread's coordinate is not negative and comes after the products,
 *     as a constant of 64 bits, where the stride is known. The rest of the index is start +
 *     coordinate: with starts from 0 on (`narrow`) it is not negative, and not above the index, so
 *     1 and 2 hold for it.
 *
 *  4. Where all strides of the inner sum are known, it is in units: of 2^u elements, the most that
 *     divide all its parts. What a vector leaves of a thread's number (tid % 16 * 4 elements) is
 *     then not multiplied on its own, but with the bytes of an element.
 *
 * Other strides (of matrices with dense rows, whose bytes may pass 2^32) are multiplied in
 * elements, and what they give is added to the inner sum before that is scaled: views that have the
 * same rows share it. */
#include "codegen/simt/simt_access.h"
#include "passes/analysis/facts.h"

static LLVMValueRef low_word(TlSimt *g, LLVMValueRef x)
{
    return LLVMBuildTrunc(g->b, x, g->i32, "");
}

static LLVMValueRef plus(TlSimt *g, LLVMValueRef sum, LLVMValueRef x)
{
    return sum ? LLVMBuildAdd(g->b, sum, x, "") : x;
}

static LLVMValueRef times(TlSimt *g, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildMul(g->b, x, y, "");
}

static LLVMValueRef elem_bytes(TlSimt *g, const TlSimtAccess *a)
{
    return tl_gen_int(&g->gen, (int64_t)tl_gen_elem_bytes(&a->elem));
}

static LLVMValueRef after(TlSimt *g, LLVMValueRef p, LLVMValueRef bytes)
{
    return LLVMBuildGEP2(g->b, g->i8, p, &bytes, 1, "");
}

/* index * stride in bytes, both of 32 bits without a sign */
static LLVMValueRef product(TlSimt *g, const TlSimtAccess *a, uint32_t i, LLVMValueRef index)
{
    LLVMValueRef stride = LLVMBuildMul(g->b, a->view->stride[i], elem_bytes(g, a), "");
    LLVMValueRef args[2] = {index, low_word(g, stride)};
    if (LLVMIsAConstantInt(index))
        return times(g, LLVMBuildZExt(g->b, index, g->i64, ""),
                     LLVMBuildZExt(g->b, args[1], g->i64, ""));
    return tl_simt_leaf(g, TL_LEAF_MUL_WIDE_U, 2, args);
}

static bool is_word(const TlSimtAccess *a, uint32_t i)
{
    return a->place.index[i].value->type->dtype == TL_I32;
}

static bool is_summed_slice(const TlSimtAccess *a, const TlAccessInfo *info, uint32_t i)
{
    return a->place.axes[i].step == 1 && info->narrow >> i & 1 && is_word(a, i) &&
           (i >= info->inner || info->low >> i & 1);
}

bool tl_simt_is_summed(const TlSimt *g, const TlSimtAccess *a, const TlAccessInfo *info)
{
    if (g->options->target->family->scalar_base || a->op->opcode == TL_OP_COPY ||
        g->counted >= TL_SIMT_MOST_COUNTED || tl_moving_axes(a->op))
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_TILE ||
            (a->place.axes[i].kind == TL_AXIS_SLICE && !is_summed_slice(a, info, i)))
            return false;
    return true;
}

bool tl_simt_sum_counts(const TlSimtAccess *a, uint32_t i)
{
    return a->place.axes[i].kind == TL_AXIS_SLICE && !LLVMIsAConstantInt(a->start[i]);
}

/* Is the inner sum the same for all registers, but for constants? Then the products that views
 * share may be added to it, and not to the address of the view. */
static bool has_one_sum(const TlSimtAccess *a)
{
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_SLICE && !LLVMIsAConstantInt(a->view->stride[i]))
            return false;
    return true;
}

/* A product with a constant is an instruction with the view's address as its third operand, which
 * another one, that keeps the stride in a uniform register, cannot have beside it. */
static void add_product(TlSimt *g, TlSimtAccess *a, uint32_t i, bool shared)
{
    LLVMValueRef by = product(g, a, i, low_word(g, a->start[i]));
    if (shared && !LLVMIsAConstantInt(a->view->stride[i]))
        a->bytes = plus(g, a->bytes, by);
    else
        a->uniform = after(g, a->uniform, by);
}

void tl_simt_sum_begin(TlSimt *g, TlSimtAccess *a, const TlAccessInfo *info)
{
    bool shared = has_one_sum(a);
    a->inner = info->inner;
    a->uniform = a->view->ptr;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        LLVMValueRef stride = a->view->stride[i];
        if (a->place.axes[i].kind != TL_AXIS_SCALAR)
            continue;
        if (i >= info->inner)
            a->sum = plus(g, a->sum, times(g, low_word(g, a->start[i]), low_word(g, stride)));
        else if (info->low >> i & 1 && is_word(a, i))
            add_product(g, a, i, shared);
        else
            a->row = plus(g, a->row, tl_simt_access_start_times(g, a, i));
    }
    if (!shared && a->row) {
        a->uniform = tl_gen_address(&g->gen, a->elem.dtype, a->uniform, a->row);
        a->row = NULL;
    }
}

enum { WORD_BITS = 32 };

static int trailing_zeros(uint64_t x)
{
    return x & UINT32_MAX ? __builtin_ctzll(x) : WORD_BITS - 1;
}

static uint64_t known_stride(const TlSimtAccess *a, uint32_t i)
{
    return LLVMConstIntGetZExtValue(a->view->stride[i]);
}

/* Of the index of a register's element what 32 bits hold of it, and, in elements, what the register
 * adds where the stride is known. *zeros: the last bits of the index that are 0, unless they are
 * tested beside it. */
static LLVMValueRef index_of_slice(TlSimt *g, const TlSimtAccess *a, uint32_t i, int64_t r,
                                   LLVMValueRef *constant, int *zeros)
{
    TlSimtCoord c = tl_simt_split_coord(g, a->layout, r, a->dim[i]);
    LLVMValueRef x = c.thread, more = tl_gen_int(&g->gen, c.constant);
    bool counted = a->counted >> i & 1;
    *zeros = !counted && a->sure >> i & 1 ? trailing_zeros(c.bits) : 0;
    if (counted)
        x = tl_simt_access_count(g, a, i, c);
    else
        more = LLVMBuildAdd(g->b, more, a->start[i], "");
    if (!LLVMIsAConstantInt(a->view->stride[i]))
        return LLVMBuildAdd(g->b, x, low_word(g, more), "");
    *constant = plus(g, *constant, times(g, more, a->view->stride[i]));
    return x;
}

typedef struct Inner { /* what an access has on its inner axes */
    LLVMValueRef index[TL_MAX_VIEW_RANK]; /* NULL: none */
    int zeros[TL_MAX_VIEW_RANK];
} Inner;

/* The logarithm of the unit that all of the inner sum is in. */
static int unit_of(const TlSimtAccess *a, const Inner *in)
{
    int least = WORD_BITS - 1;
    if (a->sum || a->row)
        return 0;
    for (uint32_t i = a->inner; i < a->place.naxes; i++) {
        if (!in->index[i])
            continue;
        if (!LLVMIsAConstantInt(a->view->stride[i]))
            return 0;
        int all = in->zeros[i] + trailing_zeros(known_stride(a, i));
        least = all < least ? all : least;
    }
    return least < WORD_BITS - 1 ? least : 0;
}

/* What an inner axis adds to the sum in units. */
static LLVMValueRef in_units(TlSimt *g, const TlSimtAccess *a, uint32_t i, const Inner *in, int u)
{
    LLVMValueRef stride = a->view->stride[i];
    if (u == 0)
        return times(g, in->index[i], low_word(g, stride));
    int of_stride = trailing_zeros(known_stride(a, i));
    of_stride = of_stride < u ? of_stride : u;
    LLVMValueRef x =
        LLVMBuildLShr(g->b, in->index[i], tl_simt_i32(g, (uint32_t)(u - of_stride)), "");
    return times(g, x, tl_simt_i32(g, (uint32_t)(known_stride(a, i) >> of_stride)));
}

/* What the whole block has of an address, and then the inner sum, in units of 2^u elements: by a
 * leaf, as LLVM would shift what it knows to fit 32 bits, and add to addresses in two steps. */
static LLVMValueRef plus_sum(TlSimt *g, const TlSimtAccess *a, LLVMValueRef sum, int u)
{
    LLVMValueRef p = a->uniform, x = NULL;
    if (sum && u > 0 && !LLVMIsAConstantInt(sum)) {
        uint32_t bytes = (uint32_t)tl_gen_elem_bytes(&a->elem) << u;
        LLVMValueRef args[2] = {sum, tl_simt_i32(g, bytes)};
        x = tl_simt_leaf(g, TL_LEAF_MUL_WIDE_U, 2, args);
        return after(g, p, plus(g, a->bytes, x));
    }
    if (sum)
        x = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, sum, g->i64, ""), tl_gen_int(&g->gen, u), "");
    if (a->row)
        x = plus(g, x, a->row);
    if (a->bytes)
        return after(g, p, x ? plus(g, a->bytes, times(g, x, elem_bytes(g, a))) : a->bytes);
    return x ? tl_gen_address(&g->gen, a->elem.dtype, p, x) : p;
}

LLVMValueRef tl_simt_sum_address(TlSimt *g, const TlSimtAccess *a, int64_t r)
{
    LLVMValueRef sum = a->sum, constant = tl_gen_int(&g->gen, 0);
    Inner in = {.index = {NULL}};
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_SLICE)
            in.index[i] = index_of_slice(g, a, i, r, &constant, &in.zeros[i]);
    int u = unit_of(a, &in);
    for (uint32_t i = a->inner; i < a->place.naxes; i++)
        if (in.index[i])
            sum = plus(g, sum, in_units(g, a, i, &in, u));
    LLVMValueRef p = plus_sum(g, a, sum, u);
    for (uint32_t i = 0; i < a->inner; i++)
        if (in.index[i])
            p = after(g, p, product(g, a, i, in.index[i]));
    return tl_gen_address(&g->gen, a->elem.dtype, p, constant);
}
