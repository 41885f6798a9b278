/* asm: the target's own instructions, once per element. {0} of the text is the result, {1}, {2}, ... are
 * the operands; LLVM calls them $0, $1, $2, ... */
#include "codegen/simt.h"
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

/* The register class of an element: PTX has one per size and kind, AMD has vector registers. */
static const char *constraint(const TlSimt *g, TlDtype d)
{
    if (g->options->target->kind == TL_TARGET_AMDGPU)
        return "v";
    switch (tl_dtype_bits(d)) {
    case 16: return "h";
    case 32: return d == TL_F32 ? "f" : "r";
    default: return d == TL_F64 ? "d" : "l";
    }
}

/* 16-bit floats are in integer registers. */
static LLVMTypeRef register_type(TlSimt *g, const TlType *type)
{
    return tl_dtype_bits(type->dtype) == 16 ? g->i16 : tl_gen_elem_type(&g->gen, type);
}

static LLVMValueRef declare(TlSimt *g, const TlOp *op, LLVMTypeRef type)
{
    TlSbuf text, constraints;
    tl_sbuf_init(&text, g->arena);
    tl_sbuf_init(&constraints, g->arena);
    add_text(&text, tl_attr(op, TL_ATTR_TEXT)->u.s);
    tl_sbuf_putf(&constraints, "=%s", constraint(g, op->out[0]->type->dtype));
    for (uint32_t i = 0; i < op->nin; i++)
        tl_sbuf_putf(&constraints, ",%s", constraint(g, tl_in(op, i)->type->dtype));
    return LLVMGetInlineAsm(type, text.text, text.len, constraints.text, constraints.len, 0, 0,
                            LLVMInlineAsmDialectATT, 0);
}

void tl_simt_asm(TlSimt *g, TlOp *op)
{
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
