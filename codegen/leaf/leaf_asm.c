/* Inline asm in place of a leaf: text, operands and their constraints, built side by side. */
#include "codegen/leaf/leaf_expand.h"

TlLeafAsm tl_leaf_asm_begin(TlLeafCall *call)
{
    TlLeafAsm a = {.call = call};
    tl_sbuf_init(&a.text, call->l->arena);
    tl_sbuf_init(&a.constraints, call->l->arena);
    return a;
}

static void constrain(TlLeafAsm *a, const char *constraint)
{
    tl_sbuf_putf(&a->constraints, "%s%s", a->constraints.len ? "," : "", constraint);
}

void tl_leaf_asm_results(TlLeafAsm *a, unsigned n, const char *constraint)
{
    TL_ASSERT(!a->nargs, "results come before operands");
    for (unsigned i = 0; i < n; i++)
        constrain(a, constraint);
    a->nresults += n;
}

/* The registers that a value of this type is in. */
static const char *registers_of(LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMPointerTypeKind: return "l";
    case LLVMFloatTypeKind: return "f";
    case LLVMDoubleTypeKind: return "d";
    case LLVMIntegerTypeKind: break;
    default: return "r"; /* two halves */
    }
    unsigned bits = LLVMGetIntTypeWidth(t);
    return bits == 1 ? "b" : bits == 16 ? "h" : bits == 32 ? "r" : "l";
}

unsigned tl_leaf_asm_operand(TlLeafAsm *a, LLVMValueRef x)
{
    TL_ASSERT(a->nargs < TL_LEAF_MAX_ARGS, "%u operands", a->nargs);
    a->args[a->nargs] = x;
    constrain(a, registers_of(LLVMTypeOf(x)));
    return a->nresults + a->nargs++;
}

void tl_leaf_asm_tie(TlLeafAsm *a, unsigned result, LLVMValueRef x)
{
    TL_ASSERT(a->nargs < TL_LEAF_MAX_ARGS && result < a->nresults, "result %u", result);
    a->args[a->nargs++] = x;
    constrain(a, tl_format(a->call->l->arena, "%u", result));
}

void tl_leaf_asm_list(TlLeafAsm *a, unsigned first, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        tl_sbuf_putf(&a->text, "%s$%u", i ? "," : "{", first + i);
    tl_sbuf_puts(&a->text, "}");
}

LLVMValueRef tl_leaf_asm_end(TlLeafAsm *a, LLVMTypeRef result, TlLeafEffects effects)
{
    TlLeafCall *call = a->call;
    LLVMTypeRef types[TL_LEAF_MAX_ARGS];
    if (effects != TL_LEAF_PURE)
        constrain(a, "~{memory}");
    for (unsigned i = 0; i < a->nargs; i++)
        types[i] = LLVMTypeOf(a->args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, a->nargs, 0);
    LLVMValueRef f =
        LLVMGetInlineAsm(type, a->text.text, a->text.len, a->constraints.text, a->constraints.len,
                         effects != TL_LEAF_PURE, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef x = LLVMBuildCall2(call->b, type, f, a->args, a->nargs, "");
    if (effects == TL_LEAF_CONVERGENT)
        tl_llvm_mark_call(call->l, x, "convergent");
    return LLVMGetTypeKind(result) == LLVMVoidTypeKind ? NULL : x;
}
