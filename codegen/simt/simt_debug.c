/* print and assert in the SIMT lowering: one leaf per thread or register, which does nothing
 * unless its predicate holds. Only the owner of an element reports it. */
#include "codegen/simt/simt_access.h"

/* The index of `text` in the text table, followed by `shape` for prints. */
static LLVMValueRef text_index(TlSimt *g, const char *text, const char *shape)
{
    uint32_t n = (uint32_t)g->code->texts.len;
    for (uint32_t i = 0; !shape && i < n; i++)
        if (g->code->texts.data[i] == text)
            return tl_simt_i32(g, i);
    tl_vec_push(g->arena, &g->code->texts, text);
    if (shape)
        tl_vec_push(g->arena, &g->code->texts, shape);
    return tl_simt_i32(g, n);
}

static const char *text_of(const TlOp *op)
{
    const TlAttr *a = tl_attr(op, TL_ATTR_TEXT);
    return a ? a->u.s : "";
}

static LLVMValueRef first_thread(TlSimt *g)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, g->thread.tid, tl_simt_i32(g, 0), "");
}

/* ---- assert, assume ---- */

static LLVMValueRef failed_element(TlSimt *g, const TlValue *c, int64_t r)
{
    LLVMValueRef bad = LLVMBuildNot(g->b, tl_simt_regs(g, c)[r], "");
    return tl_simt_both(g, tl_simt_is_inside(g, c->type, r), bad);
}

void tl_simt_fail(TlSimt *g, LLVMValueRef failed, uint32_t kind, const char *text)
{
    TL_ASSERT(failed && text, "a failure without a text");
    LLVMValueRef args[3] = {failed, tl_simt_i32(g, kind), text_index(g, text, NULL)};
    tl_simt_leaf(g, TL_LEAF_FAIL, 3, args);
}

void tl_simt_outside(TlSimt *g, LLVMValueRef failed, const char *verb, int param,
                     LLVMValueRef address, uint64_t bytes)
{
    TL_ASSERT(verb && bytes > 0, "an access of no bytes");
    LLVMValueRef args[5] = {failed, text_index(g, verb, NULL),
                            tl_simt_i32(g, (uint32_t)(param + 1)), address,
                            tl_simt_i32(g, (uint32_t)bytes)};
    tl_simt_leaf(g, TL_LEAF_OUTSIDE, 5, args);
}

void tl_simt_assert(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_ASSERT || op->opcode == TL_OP_ASSUME,
              "%s asserts nothing", tl_op_info(op->opcode)->text);
    TlValue *c = tl_in(op, 0);
    LLVMValueRef failed, owner;
    if (c->type->rank == 0) {
        failed = LLVMBuildNot(g->b, tl_gen_scalar(&g->gen, c), "");
        owner = first_thread(g);
    } else {
        int64_t n = tl_layout_registers(c->type->layout);
        owner = tl_simt_is_owner(g, c->type->layout);
        failed = failed_element(g, c, 0);
        for (int64_t r = 1; r < n; r++)
            failed = LLVMBuildOr(g->b, failed, failed_element(g, c, r), "");
    }
    tl_simt_fail(g, tl_simt_both(g, owner, failed), op->opcode == TL_OP_ASSERT ? 0 : 2,
                 text_of(op));
}

/* ---- print ---- */

static const char *shape_text(TlSimt *g, const TlType *t)
{
    TlSbuf s;
    tl_sbuf_init(&s, g->arena);
    tl_sbuf_put(&s, "", 0);
    for (int d = 0; d < t->rank; d++)
        tl_sbuf_putf(&s, "%s%d", d ? "," : "", (int)t->shape[d]);
    return s.text ? s.text : "";
}

static LLVMValueRef bits_of(TlSimt *g, const TlType *type, LLVMValueRef x)
{
    LLVMValueRef words[2] = {NULL, tl_simt_i32(g, 0)};
    tl_simt_to_words(g, type, x, words);
    LLVMValueRef high =
        LLVMBuildShl(g->b, LLVMBuildZExt(g->b, words[1], g->i64, ""), tl_gen_int(&g->gen, 32), "");
    return LLVMBuildOr(g->b, LLVMBuildZExt(g->b, words[0], g->i64, ""), high, "");
}

static LLVMValueRef row_major(TlSimt *g, const TlType *t, int64_t r)
{
    LLVMValueRef at = tl_simt_i32(g, 0);
    for (int d = 0; d < t->rank; d++) {
        at = LLVMBuildMul(g->b, at, tl_simt_i32(g, (uint32_t)t->shape[d]), "");
        at = LLVMBuildAdd(g->b, at, tl_simt_coord(g, t->layout, r, d), "");
    }
    return at;
}

void tl_simt_print(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_PRINT, "%s prints nothing", tl_op_info(op->opcode)->text);
    const TlValue *v = tl_in(op, 0);
    const TlType *t = v->type;
    LLVMValueRef text = text_index(g, text_of(op), shape_text(g, t));
    LLVMValueRef owner = t->rank ? tl_simt_is_owner(g, t->layout) : first_thread(g);
    int64_t n = t->rank ? tl_layout_registers(t->layout) : 1;
    for (int64_t r = 0; r < n; r++) {
        LLVMValueRef pred = owner, x;
        if (t->rank) {
            pred = tl_simt_both(g, owner, tl_simt_is_inside(g, t, r));
            x = tl_simt_regs(g, v)[r];
        } else {
            x = tl_gen_scalar(&g->gen, v);
        }
        LLVMValueRef args[6] = {tl_simt_pred_or_true(g, pred),
                                text,
                                tl_simt_i32(g, (uint32_t)t->dtype),
                                tl_simt_i32(g, (uint32_t)r),
                                row_major(g, t, r),
                                bits_of(g, t, x)};
        tl_simt_leaf(g, TL_LEAF_PRINT, 6, args);
    }
}
