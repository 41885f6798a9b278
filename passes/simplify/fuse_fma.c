/* fuse-fma: where a product is contracted with a sum is decided here, once, for every device.
 *
 *     %p = mul %a, %b : f32            %r = fma %a, %b, %c : f32
 *     %r = add %p, %c : f32      =>
 *
 * For each add and sub of f32 or f64, in program order:
 *  1. a factor pair is looked for: an operand that is a mul in the same block with this one use;
 *     of two, the left one;
 *  2. a*b + c and c + a*b become fma(a, b, c); a*b - c becomes fma(a, b, -c);
 *     c - a*b becomes fma(-a, b, c);
 *  3. the mul goes.
 * The rule looks at nothing else (no cost, no later pass, no target), so the same source gives the
 * same bits everywhere. The pass runs first in every pipeline, before anything can change uses or
 * blocks; --fp=strict leaves it out. */
#include "passes/pass.h"

static bool is_fusable_type(const TlType *t)
{
    return t->kind == TL_TILE && !t->ptr && (t->dtype == TL_F32 || t->dtype == TL_F64);
}

/* The mul that computes operand i of `op`, if it may be fused. */
static TlOp *product_at(const TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nin, "operand %u of %s", i, tl_op_info(op->opcode)->text);
    TlOp *mul = tl_in(op, i)->def;
    if (!mul || mul->opcode != TL_OP_MUL || mul->block != op->block)
        return NULL;
    return tl_use_count(mul->out[0]) == 1 ? mul : NULL;
}

static TlValue *build_fma(TlOp *op, const TlOp *mul, bool left)
{
    TL_ASSERT(mul->opcode == TL_OP_MUL && mul->nin == 2,
              "%s is no product", tl_op_info(mul->opcode)->text);
    TlBuilder b = tl_builder_before(op);
    TlValue *x = tl_in(mul, 0), *y = tl_in(mul, 1), *c = tl_in(op, left ? 1 : 0);
    if (op->opcode == TL_OP_SUB && left)
        c = tl_unary(&b, TL_OP_NEG, c);
    if (op->opcode == TL_OP_SUB && !left)
        x = tl_unary(&b, TL_OP_NEG, x);
    return tl_fma(&b, x, y, c);
}

static bool fuse(TlOp *op)
{
    if (op->opcode != TL_OP_ADD && op->opcode != TL_OP_SUB)
        return false;
    if (!is_fusable_type(op->out[0]->type))
        return false;
    TlOp *mul = product_at(op, 0);
    bool left = mul != NULL;
    if (!left)
        mul = product_at(op, 1);
    if (!mul)
        return false;
    TlValue *fma = build_fma(op, mul, left);
    fma->name = op->out[0]->name;
    tl_replace_uses(op->out[0], fma);
    tl_op_erase(op);
    tl_op_erase(mul);
    return true;
}

TlPassResult tl_pass_fuse_fma(TlFn *fn, TlPassCtx *px)
{
    (void)px;
    TlPassResult result = TL_SAME;
    for (TlOp *op = fn->body->first, *next; op; op = next) {
        next =
            tl_walk_next(op, NULL); /* adds have no regions, and the erased mul comes earlier */
        if (fuse(op))
            result = TL_CHANGED;
    }
    return result;
}
