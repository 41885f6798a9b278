/* accelerate-dot: does matrix products with matrix instructions, if the machine has one for the
 * types.
 *
 *     %d = dot %a, %b, %c : tile<f32, 128, 128, #0>
 *  =>
 *     %e = convert %a : tile<f16, 128, 32, #1>
 *     %f = convert %b : tile<f16, 32, 128, #2>
 *     %g = convert %c : tile<f32, 128, 128, #3>
 *     %h = dot %e, %f, %g {mma = "mma.m16n8k16.f16"} : tile<f32, 128, 128, #3>
 *     %d = convert %h : tile<f32, 128, 128, #0>
 *
 *  1. Types. Sums of f16 are kept in f32 and rounded once, as a dot is defined. f8 operands become
 *     f16, exactly, if there is no instruction for them. f32 operands are split in two if the
 *     precision asks for it: a = high + low, high * high + high * low + low * high.
 *     Scales are there only if the machine has an instruction for them (scale-dots), which is
 *     taken: of those into tensor memory there is no other, and they come first.
 *  2. The instruction (ir/plan/mma.def): of those for the types, the one that wastes least by
 *     rounding up extents and by idle warps; among equals the first row, but for chained dots (3)
 *     RDNA 3's transposed one, and gfx950's whose operands lie as results do. If there is none, the
 *     dot stays as it is, by multiply-adds.
 *  3. Warps, by cost (dot_warps.h): each warp's part is nearly square. Of chained dots (attention)
 *     warps go along M: then rows of both are in the same warps, what is computed per row needs no
 *     exchange, and the accumulator of the first is an operand of the second as it is. A product
 *     that warpgroups can do (warpgroup_fault.h, wgmma) is marked so, and its operands stay as they
 *     are: async-dots decides where it takes them from. One that has too few rows for that, and
 *     columns enough, is turned (turn_dot.h): it becomes the transposed operands' product.
 *     Where ldmatrix transposes bytes, it gives 16 columns of B: if one of a function's products
 *     has such bytes, warps along N have columns side by side, not every other eight. Words of B
 *     that lie along N are read one by one, without bank conflicts of the image that bulk copies
 *     make if columns of an instruction are spread (tl_mma_spread): those of all products of words
 *     are, if one has such.
 *     Where products go into tensor memory (tensor.def), that takes the place of warpgroups; of
 *     chained ones all go there, or none.
 *
 * place-layouts then reduces the number of converts. In the ring mode nothing is split, because
 * products are exact. */
#include "ir/plan/tensor_scales.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/layout/dot_warps.h"
#include "passes/layout/relayout.h"
#include "passes/layout/turn_dot.h"
#include "passes/layout/warpgroup_fault.h"
#include "passes/pass.h"
#include <string.h>

enum { BYTE = 8, WORD = 32 }; /* bits of elements */

typedef struct Accelerate {
    TlFn *fn;
    TlPassCtx *px;
    const TlAxisInfo *axis; /* of the function as it came; NULL: nobody asks */
    int warp_bits;
    TL_VEC(TlOp *) work; /* dots */
    const TlBlock *block;
    bool chained; /* the dots of that block, which was the last one's */
    bool together; /* and all of them can be into tensor memory, at less cost */
    bool turned;  /* any dot */
    bool bytes;   /* some dot's B lies in bytes along N, which the machine transposes */
    bool words;   /* some dot's B lies in words along N, which bulk copies bring */
    int64_t columns; /* of tensor memory that sums have by now */
} Accelerate;

/* Instructions of this row round their operands to tf32. */
static const char TF32[] = "mma.tf32";
/* Those of this one are for chained dots, and there better than others that waste as much. */
static const char OF_CHAINS[] = "wmma1t";
/* And those of this one for dots whose operand 0 is made of another one's result. */
static const char OF_RESULTS[] = "mfma.result";

/* ---- 2. the instruction ---- */

static TlDtype operand_type(const TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nin, "operand %u of %s", i, tl_op_info(op->opcode)->text);
    return tl_in(op, i)->type->dtype;
}

static int64_t blocks(int64_t extent, int32_t each)
{
    return (extent + each - 1) / each;
}

/* What the warps spend: blocks of the one that has most. Of chained dots none along N. */
static int64_t work(const Accelerate *a, const TlOp *dot, const TlMma *row)
{
    TL_ASSERT(dot->out[0]->type->rank >= 2 && row->m > 0 && row->n > 0, "a product of rank %d",
              (int)dot->out[0]->type->rank);
    const TlType *c = dot->out[0]->type, *x = tl_in(dot, 0)->type;
    int64_t m = blocks(c->shape[c->rank - 2], row->m) * (c->rank == 3 ? c->shape[0] : 1),
            n = blocks(c->shape[c->rank - 1], row->n), warps = (int64_t)1 << a->warp_bits;
    int64_t each = a->chained ? (m + warps - 1) / warps * n : (m * n + warps - 1) / warps;
    return each * row->m * row->n * row->k * blocks(x->shape[x->rank - 1], row->k);
}

/* Does the instruction take these types, and the dot's scales if it has any? */
static bool takes(const TlMma *row, const TlOp *dot, const TlDtype *types)
{
    bool scaled = dot->nin > TL_MMA_SA;
    return memcmp(row->type, types, TL_MMA_SA * sizeof *types) == 0 && (row->each != 0) == scaled &&
           (!scaled || row->type[TL_MMA_SA] == operand_type(dot, TL_MMA_SA));
}

static const TlMma *choose(const Accelerate *a, const TlOp *dot, const TlDtype *types, bool tf32)
{
    const TlMma *best = NULL;
    bool takes_result = a->chained && tl_dot_takes_dot(a->px->scratch, dot);
    for (uint32_t i = 0; i < tl_mma_count(); i++) {
        const TlMma *row = tl_mma_at(i);
        if (!takes(row, dot, types) || !tl_mma_has(a->px->machine->matrix, row) ||
            (!tf32 && strcmp(row->family, TF32) == 0))
            continue;
        bool of_chain = strcmp(row->family, OF_CHAINS) == 0,
             of_result = strcmp(row->family, OF_RESULTS) == 0;
        if ((of_chain && !a->chained) || (of_result && !takes_result))
            continue;
        bool prefers = (of_chain || of_result) && best && strcmp(best->family, row->family);
        if (!best || work(a, dot, row) < work(a, dot, best) + prefers)
            best = row;
    }
    return best;
}

/* ---- 1. types ---- */

/* The row for the dot as it would be after step 1; *types: the operands it is to have. */
static const TlMma *find_row(const Accelerate *a, const TlOp *dot, TlDtype *types)
{
    TlDtype sum = operand_type(dot, 2);
    if (dot->nin > TL_MMA_SA && a->px->machine->tensor_scaled)
        return tl_tensor_scaled_for(operand_type(dot, 0), operand_type(dot, 1),
                                    operand_type(dot, TL_MMA_SA));
    int64_t precision = tl_attr_int(dot, TL_ATTR_PRECISION, TL_PRECISION_IEEE);
    types[0] = operand_type(dot, 0);
    types[1] = operand_type(dot, 1);
    types[2] = sum == TL_F16 ? TL_F32 : sum;
    if (precision == TL_PRECISION_BF16X3 && !a->fn->ring) {
        types[0] = types[1] = TL_BF16;
        return choose(a, dot, types, false);
    }
    const TlMma *row = choose(a, dot, types, precision != TL_PRECISION_IEEE);
    if (!row && tl_is_f8(types[0]) && tl_is_f8(types[1])) {
        types[0] = types[1] = TL_F16;
        row = choose(a, dot, types, false);
    }
    return row;
}

static TlOp *new_dot(TlBuilder *b, TlValue *x, TlValue *y, TlValue *acc, int64_t precision)
{
    TL_ASSERT(x->type->rank == acc->type->rank && y->type->rank == acc->type->rank,
              "a product of ranks %d and %d", (int)x->type->rank, (int)y->type->rank);
    TlValue *in[3] = {x, y, acc};
    TlAttr attr = {.id = TL_ATTR_PRECISION, .u.i = precision};
    return tl_op_new(b, TL_OP_DOT, 3, in, 1, &acc->type, 0, precision != TL_PRECISION_IEEE, &attr);
}

/* x - high, but 0 where that is not a number, so that infinities count once. */
static TlValue *rest(TlBuilder *b, TlValue *x, TlValue *high)
{
    TlValue *low = tl_binary(b, TL_OP_SUB, x, high);
    return tl_select(b, tl_binary(b, TL_OP_EQ, low, low), low, tl_const_int(b, low->type, 0));
}

/* high: the operand in the instruction's precision; low: what is left of it, likewise. */
static void split(TlBuilder *b, TlValue *x, bool bf16, TlValue **high, TlValue **low)
{
    if (bf16) {
        *high = tl_cast(b, x, TL_BF16);
        *low = tl_cast(b, rest(b, x, tl_cast(b, *high, TL_F32)), TL_BF16);
        return;
    }
    const TlType *bits = tl_type_with_dtype(b->fn->module->ctx, x->type, TL_U32);
    TlValue *word = tl_op_new(b, TL_OP_BITCAST, 1, &x, 1, &bits, 0, 0, NULL)->out[0];
    word = tl_binary(b, TL_OP_AND, word, tl_const_int(b, bits, 0xffffe000));
    *high = tl_op_new(b, TL_OP_BITCAST, 1, &word, 1, &x->type, 0, 0, NULL)->out[0];
    *low = rest(b, x, *high);
}

/* The products of small parts first. */
static void split_dot(Accelerate *a, TlOp *dot, bool bf16)
{
    TL_ASSERT(dot->opcode == TL_OP_DOT && dot->nin == 3, "%s is no product",
              tl_op_info(dot->opcode)->text);
    static const int PARTS[3][2] = {{1, 0}, {0, 1}, {0, 0}};
    TlBuilder b = tl_builder_before(dot);
    TlValue *x[2], *y[2], *acc = tl_in(dot, 2);
    split(&b, tl_in(dot, 0), bf16, &x[0], &x[1]);
    split(&b, tl_in(dot, 1), bf16, &y[0], &y[1]);
    for (int i = 0; i < 3; i++) {
        TlOp *part = new_dot(&b, x[PARTS[i][0]], y[PARTS[i][1]], acc,
                             bf16 ? TL_PRECISION_IEEE : TL_PRECISION_TF32);
        tl_vec_push(a->px->scratch, &a->work, part);
        acc = part->out[0];
    }
    tl_replace_uses(dot->out[0], acc);
    tl_op_erase(dot);
}

/* The dot with operands of these types. */
static TlOp *cast_dot(TlOp *dot, const TlDtype *types)
{
    TlBuilder b = tl_builder_before(dot);
    TlValue *in[3];
    for (uint32_t i = 0; i < 3; i++)
        in[i] = tl_cast(&b, tl_in(dot, i), types[i]);
    if (in[0] == tl_in(dot, 0) && in[1] == tl_in(dot, 1) && in[2] == tl_in(dot, 2))
        return dot;
    TlOp *made =
        new_dot(&b, in[0], in[1], in[2], tl_attr_int(dot, TL_ATTR_PRECISION, TL_PRECISION_IEEE));
    tl_replace_uses(dot->out[0], tl_cast(&b, made->out[0], dot->out[0]->type->dtype));
    tl_op_erase(dot);
    return made;
}

/* ---- 3. warps ---- */

/* Its shape, or that of the transposed operands' product. That is chained only where its own result
 * goes into another: all else that warps along M of the dot would share stays as it is. */
static TlDotShape shape_of(const Accelerate *a, const TlOp *dot, const TlMma *mma, bool turned)
{
    TlDotShape s = tl_dot_shape(dot, mma, 1 << a->warp_bits, turned);
    s.chained = turned ? tl_dot_of(dot->out[0]) != NULL : a->chained;
    return s;
}

static int64_t tensor_columns(const TlDotShape *s)
{
    return tl_tensor_columns_of(s->m, s->n);
}

/* Into tensor memory: the instruction; NULL: something keeps it from it. *more: what it costs more
 * than by each warp for itself. */
static const TlMma *tensor_of(const Accelerate *a, const TlOp *dot, const TlMma *mma, TlDotWay *out,
                              int64_t *more)
{
    TL_ASSERT(!mma->each, "%s has scales", mma->name);
    const TlType *c = dot->out[0]->type;
    const TlMma *tensor = tl_tensor_mma_for(mma->type, c->shape[c->rank - 2]);
    bool integer = mma->type[TL_MMA_C] == TL_I32;
    if (!tensor || (integer && !a->px->machine->tensor_i8))
        return NULL;
    TlDotShape alone = shape_of(a, dot, mma, false), shape = shape_of(a, dot, tensor, false);
    if (tl_warpgroup_fault(a->axis, dot, &shape) || !tl_tensor_way(&shape, out))
        return NULL;
    *more = out->cost - tl_warp_way(&alone).cost;
    return tensor;
}

/* Is the dot done in parts (split_dot)? */
static bool is_split(const Accelerate *a, const TlOp *dot, const TlMma *row)
{
    int64_t precision = tl_attr_int(dot, TL_ATTR_PRECISION, TL_PRECISION_IEEE);
    return !a->fn->ring && (precision == TL_PRECISION_BF16X3 ||
                            (precision == TL_PRECISION_TF32X3 && strcmp(row->family, TF32) == 0));
}

/* Those whose sums go into each other: all of the block, or none. What one of them leaves in
 * registers for another would change its layout twice. */
static bool go_together(const Accelerate *a, const TlBlock *block)
{
    int64_t columns = a->columns, cost = 0, more;
    TlDotWay way;
    for (const TlOp *op = block->first; op; op = op->next) {
        TlDtype types[3];
        if (op->opcode != TL_OP_DOT || tl_attr(op, TL_ATTR_MMA))
            continue;
        const TlMma *row = find_row(a, op, types);
        if (row && row->each) {
            TlDotShape scaled = shape_of(a, op, row, false);
            columns += a->px->machine->tensor_scaled ? tensor_columns(&scaled) : 0;
            continue;
        }
        const TlMma *tensor = row ? tensor_of(a, op, row, &way, &more) : NULL;
        if (!tensor || is_split(a, op, row))
            return false;
        TlDotShape shape = shape_of(a, op, tensor, false);
        columns += tensor_columns(&shape);
        cost += more;
    }
    return columns <= TL_TENSOR_COLUMNS && cost <= 0;
}

/* With scales there is no choice. */
static const TlMma *scaled_into_tensor(Accelerate *a, const TlOp *dot, const TlMma *mma,
                                       TlDotWay *out)
{
    TlDotShape shape = shape_of(a, dot, mma, false);
    bool can = tl_tensor_way(&shape, out);
    TL_ASSERT(can, "'%s' has a product with scales that %s is not for", a->fn->name, mma->name);
    a->columns += tensor_columns(&shape);
    return mma;
}

/* Into tensor memory: the instruction; NULL: it is not possible, or costs more. */
static const TlMma *into_tensor(Accelerate *a, const TlOp *dot, const TlMma *mma, TlDotWay *out)
{
    int64_t more;
    if (mma->each)
        return scaled_into_tensor(a, dot, mma, out);
    const TlMma *tensor = tensor_of(a, dot, mma, out, &more);
    if (!tensor || (a->chained ? !a->together : more > 0))
        return NULL;
    TlDotShape shape = shape_of(a, dot, tensor, false);
    if (a->columns + tensor_columns(&shape) > TL_TENSOR_COLUMNS)
        return NULL;
    a->columns += tensor_columns(&shape);
    return tensor;
}

/* By warpgroups, if nothing keeps them from it and it costs no more. */
static TlDotWay choose_way(const Accelerate *a, const TlOp *dot, const TlMma *mma)
{
    TL_ASSERT(dot->out[0]->type->layout, "a product that is not laid out");
    TlDotShape shape = shape_of(a, dot, mma, false);
    TlDotWay alone = tl_warp_way(&shape), together;
    int n = alone.warps.n;
    alone.warps.spread = a->words && tl_dtype_bits(mma->type[TL_MMA_B]) == WORD &&
                         shape.n % (1 << TL_MMA_SPREAD_BITS) == 0;
    alone.warps.apart = !alone.warps.spread && a->bytes && n > 0 && shape.rank == 2 &&
                        shape.n % (2 * mma->n << n) == 0;
    bool can = a->px->machine->warpgroups && !a->px->machine->tensor && !mma->each &&
               !tl_warpgroup_fault(a->axis, dot, &shape) &&
               tl_warpgroup_way(&shape, &together);
    return can && together.cost <= alone.cost ? together : alone;
}

/* Has it too few rows for warpgroups, and columns that would do, at less cost? */
static bool pays_turned(const Accelerate *a, const TlOp *dot, const TlMma *mma)
{
    const TlMma *turned = tl_turned_mma(mma);
    if (!a->px->machine->warpgroups || a->px->machine->tensor || dot->out[0]->type->rank != 2 ||
        !turned || mma->each)
        return false;
    TlDotShape shape = shape_of(a, dot, mma, false), other = shape_of(a, dot, turned, true);
    TlDotWay way;
    return tl_warpgroup_fault(a->axis, dot, &shape) == TL_WARPGROUP_ROWS &&
           !tl_warpgroup_fault(a->axis, dot, &other) && tl_warpgroup_way(&other, &way) &&
           way.cost <= tl_warp_way(&shape).cost;
}

/* The result in the accumulator's layout; users go on with the one it had. */
static void lay_out(Accelerate *a, TlOp *dot, const TlMma *mma)
{
    TL_ASSERT(dot->opcode == TL_OP_DOT && dot->out[0]->type->layout,
              "a product that is not laid out");
    TlCtx *ctx = a->px->ctx;
    TlValue *out = dot->out[0];
    const TlLayout *outside = out->type->layout;
    TlDotWay way;
    const TlMma *tensor = a->px->machine->tensor ? into_tensor(a, dot, mma, &way) : NULL;
    if (tensor)
        mma = tensor;
    else
        way = choose_way(a, dot, mma);
    tl_set_mma(a->fn, dot, mma, way.warpgroup);
    TlBuilder before = tl_builder_before(dot), after = tl_builder_after(out);
    for (uint32_t i = 0; i < dot->nin; i++) {
        if (way.warpgroup && i != TL_MMA_C)
            continue;
        const TlValue *v = tl_in(dot, i);
        const TlLayout *l = tl_mma_layout(ctx, mma, (int)i, v->type, way.warps, a->warp_bits);
        tl_set_operand(dot, i, tl_relayout(&before, tl_in(dot, i), l));
    }
    tl_set_layout(out, tl_in(dot, 2)->type->layout);
    if (!out->uses || out->type->layout == outside)
        return;
    TlValue *seen = tl_relayout(&after, out, outside);
    for (TlUse *u = out->uses, *next; u; u = next) {
        next = u->next;
        if (u->user != seen->def)
            tl_set_operand(u->user, (uint32_t)(u - u->user->in), seen);
    }
}

/* ---- the pass ---- */

/* Dots into which a dot is split are added to the work list. */
static bool accelerate(Accelerate *a, TlOp *dot)
{
    TL_ASSERT(dot->opcode == TL_OP_DOT, "%s is no product", tl_op_info(dot->opcode)->text);
    TlDtype types[3];
    if (a->block != dot->block) {
        a->chained = tl_dots_are_chained(a->fn, a->px->scratch, dot->block);
        a->together = a->chained && a->px->machine->tensor && go_together(a, dot->block);
    }
    a->block = dot->block;
    const TlMma *row = find_row(a, dot, types);
    if (!row)
        return false;
    if (is_split(a, dot, row)) {
        int64_t precision = tl_attr_int(dot, TL_ATTR_PRECISION, TL_PRECISION_IEEE);
        split_dot(a, dot, precision == TL_PRECISION_BF16X3);
        return true;
    }
    dot = dot->nin == 3 ? cast_dot(dot, types) : dot;
    bool turned = pays_turned(a, dot, row);
    a->turned |= turned;
    if (turned)
        lay_out(a, tl_turn_dot(dot), tl_turned_mma(row));
    else
        lay_out(a, dot, row);
    return true;
}

/* The dots, those with scales first; and the columns of tensor memory that scales share. */
static void find_dots(Accelerate *a)
{
    int64_t most = 0;
    for (int scaled = 1; scaled >= 0; scaled--)
        for (TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
            bool has_scales = op->opcode == TL_OP_DOT && op->nin > TL_MMA_SA;
            if (op->opcode != TL_OP_DOT || tl_attr(op, TL_ATTR_MMA) || has_scales != scaled)
                continue;
            tl_vec_push(a->px->scratch, &a->work, op);
            int64_t columns = has_scales && a->px->machine->tensor_scaled
                                  ? tl_tensor_scales_columns(tl_in(op, TL_MMA_SA)->type) +
                                        tl_tensor_scales_columns(tl_in(op, TL_MMA_SB)->type)
                                  : 0;
            most = columns > most ? columns : most;
        }
    a->columns = most;
}

TlPassResult tl_pass_accelerate_dot(TlFn *fn, TlPassCtx *px)
{
    if (tl_fn_level(fn) == TL_LEVEL_TILE || !px->machine->matrix)
        return TL_SAME;
    Accelerate a = {.fn = fn, .px = px};
    while (1 << a.warp_bits < fn->body->warps)
        a.warp_bits++;
    TL_ASSERT(1 << a.warp_bits == fn->body->warps, "'%s' has %d warps, no power of two", fn->name,
              (int)fn->body->warps);
    bool changed = false;
    if (px->machine->warpgroups || px->machine->matrix_8 || px->machine->bulk)
        a.axis = tl_pass_axis_info(fn, px);
    find_dots(&a);
    for (uint32_t i = 0; i < a.work.len; i++) {
        a.bytes |= px->machine->matrix_8 && tl_lies_along_n(a.axis, a.work.data[i], BYTE);
        a.words |= px->machine->bulk && tl_lies_along_n(a.axis, a.work.data[i], WORD);
    }
    for (uint32_t i = 0; i < a.work.len; i++)
        changed |= accelerate(&a, a.work.data[i]);
    if (a.turned)
        tl_carry_turned(fn, px->scratch);
    return changed ? TL_CHANGED : TL_SAME;
}
