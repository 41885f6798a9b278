/* Values that loops and branches carry: the phis of their registers.
 *
 * There is one phi per register, but several registers that were loaded together stay together,
 * from the load to the first user of single elements. Otherwise a loop that loads for its next
 * iteration would take the vectors apart at the end of this one (or move registers to where the
 * next user wants them), and wait there for loads that have only just begun. */
#include "codegen/simt/simt.h"

enum { WORD_BYTES = 4, MOST_DEPTH = 8 /* of loops and branches that are looked into: recursion */ };

int64_t tl_simt_count(const TlValue *v)
{
    TL_ASSERT(v->type->kind == TL_TILE || tl_is_sums(v->type), "a view carried by a region");
    if (v->type->kind == TL_TENSOR)
        return 1; /* whether it is there (simt_tensor.c) */
    return v->type->rank ? tl_layout_registers(v->type->layout) : 1;
}

LLVMValueRef *tl_simt_values(TlSimt *g, const TlValue *v)
{
    return v->type->rank ? tl_simt_regs(g, v) : &g->scalar[v->id];
}

void tl_simt_set_values(TlSimt *g, const TlValue *v, LLVMValueRef *x)
{
    TL_ASSERT(x, "value %u gets nothing", v->id);
    if (v->type->rank)
        g->regs[v->id] = x;
    else
        g->scalar[v->id] = x[0];
}

/* ---- vectors ---- */

static int loaded_together(const TlSimt *g, const TlValue *v, int depth);

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* The initial and the next value of a loop's carried value. A loop is not followed twice. */
static int carried_together(const TlSimt *g, const TlOp *loop, uint32_t i, int depth)
{
    const TlValue *next = tl_in(loop->regions[0]->last, i);
    int n = loaded_together(g, tl_in(loop, i + 3), depth + 1);
    if (!next->def && next->block == loop->regions[0] && next->index == i + 1)
        return n;
    return n == 1 ? 1 : least(n, loaded_together(g, next, depth + 1));
}

static int loaded_by(const TlSimt *g, const TlOp *load)
{
    const TlLayout *l = load->out[0]->type->layout;
    TlAccessInfo info = tl_access_info(g->axis, load);
    if (info.dim < 0)
        return 1;
    return least(tl_access_vector(&info, load, l),
                 1 << tl_layout_contiguous_bits(l, TL_IN_REG, info.dim));
}

static int loaded_together(const TlSimt *g, const TlValue *v, int depth)
{
    const TlOp *op = v->def ? v->def : v->block->parent;
    if (depth > MOST_DEPTH || !op)
        return 1;
    if (op->opcode == TL_OP_LOAD)
        return loaded_by(g, op);
    if (op->opcode == TL_OP_FOR && (v->def || v->index > 0))
        return carried_together(g, op, v->def ? v->index : v->index - 1, depth);
    if (op->opcode != TL_OP_IF)
        return 1;
    int n = loaded_together(g, tl_in(op->regions[0]->last, v->index), depth + 1);
    return n == 1 ? 1
                  : least(n, loaded_together(g, tl_in(op->regions[1]->last, v->index), depth + 1));
}

/* Registers that one phi carries: at least a word of them. */
static int together(const TlSimt *g, const TlValue *v)
{
    const TlType *t = v->type;
    if (!t->rank || t->ptr || t->kind == TL_TENSOR || tl_is_bool(t->dtype) ||
        tl_dtype_bits(t->dtype) < 8)
        return 1;
    int n = loaded_together(g, v, 0);
    return n * tl_dtype_bytes(t->dtype) >= WORD_BYTES ? n : 1;
}

/* ---- phis ---- */

TlSimtCarried *tl_simt_carry(TlSimt *g, uint32_t n, TlValue *const *values)
{
    TlSimtCarried *all = TL_NEW_ARRAY(g->arena, TlSimtCarried, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        TlSimtCarried *c = &all[i];
        c->together = together(g, values[i]);
        c->n = tl_simt_count(values[i]) / c->together;
        c->phi = TL_NEW_ARRAY(g->arena, LLVMValueRef, c->n);
        const TlType *type = values[i]->type;
        LLVMTypeRef t = type->kind == TL_TENSOR ? g->i1
                        : c->together > 1       ? tl_simt_wide_type(g, type, c->together)
                                                : tl_gen_elem_type(&g->gen, type);
        for (int64_t r = 0; r < c->n; r++)
            c->phi[r] = LLVMBuildPhi(g->b, t, "");
    }
    return all;
}

void tl_simt_take_carried(TlSimt *g, uint32_t n, const TlSimtCarried *carried,
                          TlValue *const *values)
{
    for (uint32_t i = 0; i < n; i++) {
        const TlSimtCarried *c = &carried[i];
        LLVMValueRef *value = c->phi;
        if (c->together > 1)
            value = TL_NEW_ARRAY(g->arena, LLVMValueRef, c->n * c->together);
        for (int64_t r = 0; r < c->n && c->together > 1; r++)
            tl_simt_unpack(g, values[i]->type, c->phi[r], c->together, &value[r * c->together]);
        tl_simt_set_values(g, values[i], value);
    }
}

void tl_simt_carry_from(TlSimt *g, const TlOp *term, uint32_t first, uint32_t n,
                        TlSimtCarried *carried, LLVMBasicBlockRef from)
{
    TL_ASSERT(first + n <= term->nin,
              "%s gives %u values of %u", tl_op_info(term->opcode)->text, n, term->nin);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMValueRef end = LLVMGetBasicBlockTerminator(from);
    if (end)
        LLVMPositionBuilderBefore(g->b, end);
    for (uint32_t i = 0; i < n; i++) {
        const TlValue *v = tl_in(term, first + i);
        TlSimtCarried *c = &carried[i];
        LLVMValueRef *x = tl_simt_values(g, v);
        for (int64_t r = 0; r < c->n; r++) {
            LLVMValueRef word =
                c->together > 1 ? tl_simt_pack(g, v->type, c->together, &x[r * c->together]) : x[r];
            LLVMAddIncoming(c->phi[r], &word, &from, 1);
        }
    }
    LLVMPositionBuilderAtEnd(g->b, here);
}
