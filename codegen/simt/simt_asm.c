/* asm: the target's own instructions, once per element. In the text, {0} is the result and {1},
 * {2}, ... are the operands; LLVM calls them $0, $1, $2, ... */
#include "codegen/simt/simt.h"
#include <string.h>

static void add_text(TlSbuf *out, const char *text)
{
    for (const char *s = text; *s; s++) {
        size_t n = *s == '{' ? strspn(s + 1, "0123456789") : 0;
        if (n && s[1 + n] == '}') {
            tl_sbuf_putf(out, "$%.*s", (int)n, s + 1);
            s += n + 1;
        } else {
            tl_sbuf_putf(out, *s == '$' ? "$$" : "%c", *s);
        }
    }
}

/* The register class of an element. */
static char constraint(const TlSimt *g, TlDtype d)
{
    enum { BITS_16, BITS_32, BITS_64, F32, F64 }; /* the column `classes` of family.def */
    int kind = d == TL_F32              ? F32
               : d == TL_F64            ? F64
               : tl_dtype_bits(d) == 16 ? BITS_16
               : tl_dtype_bits(d) == 32 ? BITS_32
                                        : BITS_64;
    return g->options->target->family->classes[kind];
}

/* 16-bit floats are in integer registers. */
static LLVMTypeRef register_type(TlSimt *g, const TlType *type)
{
    return tl_dtype_bits(type->dtype) == 16 ? g->i16 : tl_gen_elem_type(&g->gen, type);
}

/* ---- is it code? ---- */

static bool is_alike(const TlOp *a, const TlOp *b)
{
    bool same = a->nin == b->nin &&
                tl_attr(a, TL_ATTR_TEXT)->u.s == tl_attr(b, TL_ATTR_TEXT)->u.s &&
                a->out[0]->type->dtype == b->out[0]->type->dtype &&
                memcmp(&a->loc, &b->loc, sizeof a->loc) == 0;
    for (uint32_t i = 0; same && i < a->nin; i++)
        same = tl_in(a, i)->type->dtype == tl_in(b, i)->type->dtype;
    return same;
}

static bool was_tried(const TlSimt *g, const TlOp *op)
{
    for (uint32_t i = 0; i < g->assembled.len; i++)
        if (is_alike(g->assembled.data[i], op))
            return true;
    return false;
}

/* "<inline asm>:1:2: unknown instruction\n    v_ad v0, v0\n    ^": the words, and the line that
 * they are about; all is the words where the assembler has another form. */
static void say(TlSimt *g, const TlOp *op, const char *error)
{
    static const char PLACE[] = "<inline asm>:";
    const char *words = error;
    if (!strncmp(words, PLACE, strlen(PLACE))) {
        words += strlen(PLACE);
        words += strspn(words, "0123456789:");
        words += strspn(words, " ");
    }
    size_t n = strcspn(words, "\n");
    const char *line = words + n + strspn(words + n, "\n\t ");
    TlDiag *row =
        tl_diag(&g->fn->module->ctx->diags, op->loc, TL_E0912, g->options->target->name,
                tl_strndup(g->arena, words, n));
    if (*line)
        row->label = tl_strndup(g->fn->module->ctx->diags.arena, line, strcspn(line, "\n"));
    g->failed = true;
}

/* Where LLVM reads the text, it would tell neither whose text is wrong nor go on. PTX is ptxas's to
 * read. */
static void assemble(TlSimt *g, const TlOp *op, const TlSbuf *text, const TlSbuf *constraints,
                     LLVMTypeRef type)
{
    if (!g->options->target->family->by_llvm || was_tried(g, op))
        return;
    tl_vec_push(g->arena, &g->assembled, op);
    const char *error = tl_llvm_asm_error(g->l, text->text, text->len, constraints->text,
                                          constraints->len, type);
    if (error)
        say(g, op, error);
}

/* ---- the op ---- */

static LLVMValueRef declare(TlSimt *g, const TlOp *op, LLVMTypeRef type)
{
    TlSbuf text, constraints;
    tl_sbuf_init(&text, g->arena);
    tl_sbuf_init(&constraints, g->arena);
    if (g->options->target->family->code == TL_CODE_PTX)
        tl_sbuf_putf(&text, TL_PTX_ASM "%u:%u:%u:%u\n", op->loc.file, op->loc.line, op->loc.col,
                     op->loc.len);
    add_text(&text, tl_attr(op, TL_ATTR_TEXT)->u.s);
    tl_sbuf_putf(&constraints, "=%c", constraint(g, op->out[0]->type->dtype));
    for (uint32_t i = 0; i < op->nin; i++)
        tl_sbuf_putf(&constraints, ",%c", constraint(g, tl_in(op, i)->type->dtype));
    assemble(g, op, &text, &constraints, type);
    return LLVMGetInlineAsm(type, text.text, text.len, constraints.text, constraints.len, 0, 0,
                            LLVMInlineAsmDialectATT, 0);
}

void tl_simt_asm(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_ASM, "%s is no asm", tl_op_info(op->opcode)->text);
    TlValue *v = op->out[0];
    int64_t n = v->type->rank ? tl_layout_registers(v->type->layout) : 1;
    LLVMTypeRef *params = TL_NEW_ARRAY(g->arena, LLVMTypeRef, op->nin + 1);
    LLVMValueRef *args = TL_NEW_ARRAY(g->arena, LLVMValueRef, op->nin + 1);
    LLVMValueRef *out = v->type->rank ? tl_simt_define(g, v) : &g->scalar[v->id];
    for (uint32_t i = 0; i < op->nin; i++)
        params[i] = register_type(g, tl_in(op, i)->type);
    LLVMTypeRef type = LLVMFunctionType(register_type(g, v->type), params, op->nin, 0);
    LLVMValueRef code = declare(g, op, type);
    for (int64_t r = 0; r < n; r++) {
        for (uint32_t i = 0; i < op->nin; i++) {
            const TlValue *x = tl_in(op, i);
            args[i] = x->type->rank ? tl_simt_regs(g, x)[r] : tl_gen_scalar(&g->gen, x);
            args[i] = LLVMBuildBitCast(g->b, args[i], params[i], "");
        }
        LLVMValueRef x = LLVMBuildCall2(g->b, type, code, args, op->nin, "");
        out[r] = LLVMBuildBitCast(g->b, x, tl_gen_elem_type(&g->gen, v->type), "");
    }
}
