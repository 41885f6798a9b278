/* scale-dots: products of operands with scales become those that the machine has.
 *
 *     %d = dot %a, %b, %c, %s, %t : %a tile<f8e4m3, M, K>, %s tile<u8, M, K / 32>
 *  =>
 *     %p = mul (cast %a : bf16), (each of %s, 32 times, as bf16) : tile<bf16, M, K>
 *     %q = likewise of %b and %t
 *     %d = dot %p, %q, %c
 *
 *  1. Has the machine a matrix instruction with scales for the types (ir/plan/mma.def)? Where both
 *     sides are f4e2m1, it takes pairs of them. Where it has none of f8 by f4e2m1 (tcgen05 wants
 *     these in rows of which half is padding, as many bytes as f8 and as slow; of gfx950 mma.def
 *     has none), one of f8 by f8e4m3 does: each f4e2m1 is a number of f8e4m3.
 *     None takes signs of scales f8e4m3: they must have been left out, bits & 0x7f.
 *     Into tensor memory (tcgen05) there are conditions besides: scale_tensor.h.
 *  2. Does it cost no more? It takes a step of K at once; what K lacks to that is multiplied as
 *     zeros.
 *  3. If so, the dot keeps its scales: unpack gives it pairs of f4e2m1, accelerate-dot its layouts.
 *     f4e2m1 beside f8 is cast here, with a remark, where the machine wants that.
 *     Otherwise, and in the ring, where all products are integers: scales are multiplied in, in
 *     bf16, which is exact where a product is a normal number of bf16; by e8m0 scales in f32 where
 *     the machine has no matrix instructions, as CPUs that multiply bf16 take smaller numbers for
 *     zeros. The dot has a remark of why.
 *
 * The machine's products are exact, of any scales. */
#include "passes/simplify/scale_dots.h"
#include "ir/plan/mma.h"
#include "ir/remark.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include "passes/simplify/scale_tensor.h"

/* Of an e8m0 scale: 0 and 255 have no bits of bf16 that are the code shifted: 2^-127, NaN. */
enum { E8M0_LEAST = 0x0040, E8M0_NAN = 0x7fc0, BF16_FRACTION = 7, F8_BITS = 0x7f };

/* ---- 1. the instruction ---- */

/* The types of operands that an instruction would be given. wide: f4e2m1 beside f8 as f8e4m3. */
static void types_for(const TlOp *dot, bool wide, TlDtype *types)
{
    for (uint32_t i = 0; i < 2; i++)
        types[i] = tl_in(dot, i)->type->dtype;
    bool pairs = types[0] == TL_F4E2M1 && types[1] == TL_F4E2M1;
    for (uint32_t i = 0; i < 2; i++)
        if (types[i] == TL_F4E2M1 && (pairs || wide))
            types[i] = pairs ? TL_U8 : TL_F8E4M3;
}

/* The row of least depth along K; NULL: there is none. *out_any: some have scales. */
static const TlMma *find_row(const TlMachine *machine, const TlOp *dot, const TlDtype *types,
                             bool *out_any)
{
    TlDtype scale = tl_in(dot, TL_MMA_SA)->type->dtype;
    const TlMma *best = NULL;
    *out_any = false;
    for (uint32_t i = 0; i < tl_mma_count(); i++) {
        const TlMma *row = tl_mma_at(i);
        if (!row->each || !tl_mma_has(machine->matrix, row))
            continue;
        *out_any = true;
        if (row->type[TL_MMA_A] == types[0] && row->type[TL_MMA_B] == types[1] &&
            row->type[TL_MMA_SA] == scale && (!best || row->k < best->k))
            best = row;
    }
    return best;
}

/* The scales f8e4m3 that s is the magnitudes of: without the sign, as bits; NULL: they may be
 * negative. */
static TlValue *without_sign(TlValue *s)
{
    const TlOp *back = s->def, *mask, *bits;
    if (!back || back->opcode != TL_OP_BITCAST || !(mask = tl_in(back, 0)->def) ||
        mask->opcode != TL_OP_AND || !(bits = tl_in(mask, 0)->def) ||
        bits->opcode != TL_OP_BITCAST)
        return NULL;
    uint64_t kept;
    bool known = tl_value_is_const(tl_in(mask, 1), &kept);
    return known && kept == F8_BITS && tl_in(bits, 0)->type == s->type ? tl_in(bits, 0) : NULL;
}

static bool may_be_negative(const TlOp *dot)
{
    return tl_in(dot, TL_MMA_SA)->type->dtype != TL_U8 && !tl_attr_flag(dot, TL_ATTR_UNSIGNED) &&
           (!without_sign(tl_in(dot, TL_MMA_SA)) || !without_sign(tl_in(dot, TL_MMA_SB)));
}

/* The machine leaves the signs out itself. */
static void take_magnitudes(TlFn *fn, TlOp *dot)
{
    for (uint32_t i = TL_MMA_SA; i <= TL_MMA_SB; i++) {
        TlValue *s = without_sign(tl_in(dot, i));
        if (s)
            tl_set_operand(dot, i, s);
    }
    tl_attr_set(fn, dot, (TlAttr){.id = TL_ATTR_UNSIGNED});
}

/* ---- 2. what it costs ---- */

/* An instruction with scales multiplies as many bytes along K in the time of one in bf16, which has
 * half as many elements of f8, a quarter of those of f4e2m1; and operands are multiplied before. */
static bool costs_more(const TlMma *row, const TlOp *dot)
{
    int32_t k = tl_in(dot, TL_MMA_A)->type->shape[1], pairs = row->type[TL_MMA_A] == TL_U8 ? 2 : 1;
    int32_t all = row->k * pairs, steps = (k + all - 1) / all;
    return steps * row->k > 2 * k;
}

/* room: what products into tensor memory take so far. */
static TlScaleFault fault_of(const TlFn *fn, const TlPassCtx *px, const TlOp *dot,
                             const TlDtype *types, TlScaleRoom *room)
{
    bool any;
    const TlMma *row = find_row(px->machine, dot, types, &any);
    if (px->machine->tensor_scaled && !fn->ring)
        return may_be_negative(dot) ? TL_SCALE_SIGN
                                    : tl_scale_tensor_fault(fn, px, dot, types, room);
    if (!any || fn->ring)
        return TL_SCALE_MACHINE;
    if (!row)
        return TL_SCALE_TYPES;
    if (may_be_negative(dot))
        return TL_SCALE_SIGN;
    return costs_more(row, dot) ? TL_SCALE_COST : TL_SCALE_NONE;
}

/* Likewise, of the types as they are, or of wide ones; *types: those of an instruction. */
static TlScaleFault choose(const TlFn *fn, const TlPassCtx *px, const TlOp *dot, TlDtype *types,
                           TlScaleRoom *room)
{
    types_for(dot, false, types);
    TlScaleFault why = fault_of(fn, px, dot, types, room);
    if (why != TL_SCALE_TYPES)
        return why;
    types_for(dot, true, types);
    return fault_of(fn, px, dot, types, room);
}

/* Each f4e2m1 that is to be f8e4m3, cast where it lies: transposed behind that. */
static bool widen(TlFn *fn, TlOp *dot, const TlDtype *types)
{
    bool changed = false;
    for (uint32_t i = 0; i < 2; i++) {
        TlValue *x = tl_in(dot, i);
        bool turned;
        if (x->type->dtype != TL_F4E2M1 || types[i] != TL_F8E4M3)
            continue;
        TlBuilder b = tl_builder_before(dot);
        b.loc = dot->loc;
        x = tl_cast(&b, tl_matrix_source(x, &turned), types[i]);
        tl_set_operand(dot, i, turned ? tl_transposed(&b, x) : x);
        tl_remark(fn, dot, TL_REMARK_WIDENED, 1);
        changed = true;
    }
    return changed;
}

/* ---- 3. scales multiplied in ---- */

static TlValue *with_type(TlBuilder *b, TlOpcode opcode, TlValue *x, const TlType *type)
{
    return tl_op_new(b, opcode, 1, &x, 1, &type, 0, 0, NULL)->out[0];
}

static TlValue *bits_as(TlBuilder *b, TlValue *x, TlDtype to)
{
    const TlType *type = tl_type_with_dtype(b->fn->module->ctx, x->type, to);
    return type == x->type ? x : with_type(b, TL_OP_BITCAST, x, type);
}

static TlValue *equals(TlBuilder *b, TlValue *x, int64_t y)
{
    return tl_binary(b, TL_OP_EQ, x, tl_const_int(b, x->type, y));
}

/* The scales in bf16, exactly. */
static TlValue *scales_in_bf16(TlBuilder *b, TlValue *s, bool is_unsigned)
{
    if (s->type->dtype != TL_U8 && !is_unsigned)
        return tl_cast(b, s, TL_BF16);
    if (s->type->dtype != TL_U8) {
        TlValue *code = bits_as(b, s, TL_U8);
        code = tl_binary(b, TL_OP_AND, code, tl_const_int(b, code->type, F8_BITS));
        return tl_cast(b, bits_as(b, code, s->type->dtype), TL_BF16);
    }
    TlValue *wide = tl_cast(b, s, TL_U16);
    TlValue *bits = tl_binary(b, TL_OP_SHL, wide, tl_const_int(b, wide->type, BF16_FRACTION));
    bits = tl_select(b, equals(b, s, 255), tl_const_int(b, bits->type, E8M0_NAN), bits);
    bits = tl_select(b, equals(b, s, 0), tl_const_int(b, bits->type, E8M0_LEAST), bits);
    return bits_as(b, bits, TL_BF16);
}

static TlValue *reshaped(TlBuilder *b, TlValue *x, int rank, const int32_t *shape)
{
    return with_type(b, TL_OP_RESHAPE, x,
                     tl_type_with_shape(b->fn->module->ctx, x->type, rank, shape));
}

/* x = [R, K] times its scales [R, L], in type d. */
static TlValue *multiplied(TlBuilder *b, TlValue *x, TlValue *s, bool is_unsigned, TlDtype d)
{
    int32_t rows = s->type->shape[0], blocks = s->type->shape[1], k = x->type->shape[1];
    TlValue *each = tl_cast(b, scales_in_bf16(b, s, is_unsigned), d);
    each = reshaped(b, each, 3, (int32_t[]){rows, blocks, 1});
    each = tl_broadcast(b, each, 3, (int32_t[]){rows, blocks, k / blocks});
    each = reshaped(b, each, 2, (int32_t[]){rows, k});
    return tl_binary(b, TL_OP_MUL, tl_cast(b, x, d), each);
}

static void multiply_in(TlFn *fn, const TlMachine *machine, TlOp *dot, TlScaleFault why)
{
    TlBuilder b = tl_builder_before(dot);
    b.loc = dot->loc;
    bool is_unsigned = tl_attr_flag(dot, TL_ATTR_UNSIGNED);
    bool is_normal = tl_in(dot, TL_MMA_SA)->type->dtype != TL_U8; /* f8e4m3 has no tiny numbers */
    bool has_matrix = machine->matrix && *machine->matrix;
    TlDtype d = is_normal || has_matrix || fn->ring ? TL_BF16 : TL_F32;
    TlValue *x = multiplied(&b, tl_in(dot, TL_MMA_A), tl_in(dot, TL_MMA_SA), is_unsigned, d);
    TlValue *y = multiplied(&b, tl_transposed(&b, tl_in(dot, TL_MMA_B)), tl_in(dot, TL_MMA_SB),
                            is_unsigned, d);
    TlValue *in[3] = {x, tl_transposed(&b, y), tl_in(dot, TL_MMA_C)};
    TlOp *made = tl_op_new(&b, TL_OP_DOT, 3, in, 1, &dot->out[0]->type, 0, 0, NULL);
    made->out[0]->name = dot->out[0]->name;
    tl_remark(fn, made, TL_REMARK_SCALED, why);
    tl_replace_uses(dot->out[0], made->out[0]);
    tl_op_erase(dot);
}

/* ---- the pass ---- */

TlPassResult tl_pass_scale_dots(TlFn *fn, TlPassCtx *px)
{
    bool changed = false;
    TlScaleRoom room = {0};
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (op->opcode != TL_OP_DOT || op->nin == 3 || tl_attr(op, TL_ATTR_MMA))
            continue;
        if (tl_in(op, 0)->type->dtype == TL_U8)
            continue; /* pairs: only unpack makes them, for an instruction */
        TlDtype types[2];
        TlScaleFault why = choose(fn, px, op, types, &room);
        if (!why && tl_in(op, TL_MMA_SA)->type->dtype != TL_U8 &&
            !tl_attr_flag(op, TL_ATTR_UNSIGNED)) {
            take_magnitudes(fn, op);
            changed = true;
        }
        if (why)
            multiply_in(fn, px->machine, op, why);
        changed |= why || widen(fn, op, types);
    }
    return changed ? TL_CHANGED : TL_SAME;
}
