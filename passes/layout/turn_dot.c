/* Products turned (turn_dot.h): where a dot has too few rows for an instruction, and many columns.
 *
 *     for ... (%acc) {                       %t = trans %init
 *       %d = dot %a, %b, %acc        =>      for ... (%t) {
 *       yield %d                               %d = dot (trans %b), (trans %a), %t
 *     }                                        yield %d
 *                                            }
 *                                            trans ...
 *
 * A transposition is another name for the same registers, and what a load brings to shared memory
 * is transposed by who reads it. */
#include "passes/layout/turn_dot.h"
#include "ir/plan/layout_rules.h"
#include "ir/rewrite.h"
#include "passes/layout/relayout.h"
#include <string.h>

static const int64_t SWAP[] = {1, 0};

const TlMma *tl_turned_mma(const TlMma *mma)
{
    const TlDtype types[3] = {mma->type[TL_MMA_B], mma->type[TL_MMA_A], mma->type[TL_MMA_C]};
    for (uint32_t i = 0; i < tl_mma_count(); i++) {
        const TlMma *row = tl_mma_at(i);
        if (memcmp(row->type, types, sizeof types) == 0 && strcmp(row->family, mma->family) == 0 &&
            row->m == mma->m && row->n == mma->n && row->k == mma->k)
            return row;
    }
    return NULL;
}

static bool swaps(const TlOp *op)
{
    return op && op->opcode == TL_OP_TRANS && op->out[0]->type->rank == 2 &&
           tl_attr(op, TL_ATTR_PERM)->u.ints[0] == SWAP[0];
}

static const TlType *turned_type(TlCtx *ctx, const TlType *t)
{
    TL_ASSERT(t->kind == TL_TILE && t->rank == 2 && t->layout, "a transpose of rank %d",
              (int)t->rank);
    const TlType *turned = tl_type_tile(ctx, t->dtype, 2, (int32_t[]){t->shape[1], t->shape[0]});
    return tl_type_with_layout(ctx, turned, tl_layout_permuted(ctx, t->layout, SWAP));
}

static TlValue *transpose(TlBuilder *b, TlValue *x)
{
    if (swaps(x->def))
        return tl_in(x->def, 0);
    int64_t *perm = TL_NEW_ARRAY(&b->fn->module->arena, int64_t, 2);
    memcpy(perm, SWAP, sizeof SWAP);
    TlAttr attr = {.id = TL_ATTR_PERM, .n = 2, .u.ints = perm};
    const TlType *type = turned_type(b->fn->module->ctx, x->type);
    TlValue *made = tl_op_new(b, TL_OP_TRANS, 1, &x, 1, &type, 0, 1, &attr)->out[0];
    made->name = x->name;
    return made;
}

TlOp *tl_turn_dot(TlOp *dot)
{
    TL_ASSERT(dot->opcode == TL_OP_DOT && !tl_attr(dot, TL_ATTR_MMA), "%s is not to be turned",
              tl_op_info(dot->opcode)->text);
    TlBuilder b = tl_builder_before(dot);
    TlValue *in[3] = {transpose(&b, tl_in(dot, TL_MMA_B)), transpose(&b, tl_in(dot, TL_MMA_A)),
                      transpose(&b, tl_in(dot, TL_MMA_C))};
    const TlType *type = in[TL_MMA_C]->type;
    TlOp *made = tl_op_new(&b, TL_OP_DOT, 3, in, 1, &type, 0, dot->nattrs, dot->attrs);
    TlValue *back = transpose(&b, made->out[0]);
    back->name = dot->out[0]->name;
    tl_replace_uses(dot->out[0], back);
    tl_op_erase(dot);
    return made;
}

/* ---- loops ---- */

/* Is what the loop carries as its i-th result seen transposed only, and yielded by a transposition
 * back? */
static bool carries_turned(const TlOp *loop, uint32_t i)
{
    const TlBlock *body = loop->regions[0];
    const TlValue *arg = body->args[i + 1];
    for (const TlUse *u = arg->uses; u; u = u->next)
        if (!swaps(u->user))
            return false;
    return arg->uses && swaps(tl_in(body->last, i)->def);
}

static void replace_transposes(TlValue *arg, TlValue *turned)
{
    while (arg->uses) {
        TlOp *op = arg->uses->user;
        tl_replace_uses(op->out[0], turned);
        tl_op_erase(op);
    }
}

static void carry(TlOp *loop, uint64_t turned, TlArena *scratch)
{
    enum { BOUNDS = 3 }; /* operands in front of what is carried */
    TlCtx *ctx = loop->block->fn->module->ctx;
    TlBlock *old = loop->regions[0];
    uint32_t n = loop->nout;
    TlValue **in = TL_NEW_ARRAY(scratch, TlValue *, n + BOUNDS);
    const TlType **types = TL_NEW_ARRAY(scratch, const TlType *, n + 1);
    TlBuilder b = tl_builder_before(loop);
    for (uint32_t i = 0; i < n + BOUNDS; i++)
        in[i] = tl_in(loop, i);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = loop->out[i]->type;
        if (!(turned >> i & 1))
            continue;
        types[i] = turned_type(ctx, types[i]);
        in[i + BOUNDS] = transpose(&b, in[i + BOUNDS]);
    }
    TlOp *made = tl_op_like(&b, loop, n + BOUNDS, in, n, types);
    TlBlock *body = made->regions[0];
    body->warps = old->warps;
    for (uint32_t i = 0; i <= n; i++) {
        TlValue *was = old->args[i];
        TlValue *arg = tl_block_arg(body, i ? types[i - 1] : was->type, was->name);
        if (i && turned >> (i - 1) & 1) {
            replace_transposes(was, arg);
            tl_set_operand(old->last, i - 1, tl_in(tl_in(old->last, i - 1)->def, 0));
        } else {
            tl_replace_uses(was, arg);
        }
    }
    tl_block_move_ops(old, body, NULL);
    for (uint32_t i = 0; i < n; i++) {
        made->out[i]->name = loop->out[i]->name;
        tl_replace_uses(loop->out[i], turned >> i & 1 ? transpose(&b, made->out[i]) : made->out[i]);
    }
    tl_op_erase(loop);
}

void tl_carry_turned(TlFn *fn, TlArena *scratch)
{
    TL_VEC(TlOp *) loops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR)
            tl_vec_push(scratch, &loops, op);
    for (uint32_t l = loops.len; l-- > 0;) { /* inner ones first */
        uint64_t turned = 0;
        for (uint32_t i = 0; i < loops.data[l]->nout && i < 64; i++)
            turned |= (uint64_t)carries_turned(loops.data[l], i) << i;
        if (turned)
            carry(loops.data[l], turned, scratch);
    }
}
