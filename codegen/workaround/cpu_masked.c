/* Masked accesses of vectors for which the level has no instruction, in long code.
 *
 * LLVM makes a branch for each lane of such an access and then begins again at the start of the
 * function: time grows with the square of their number, and each becomes some 80 instructions. So
 * if there are many, all of one kind become calls of one function that holds the access. If there
 * are few, they stay where they are, because no call is as fast. */
#include "codegen/nest/nest.h"
#include "codegen/workaround/workaround.h"
#include <llvm-c/Target.h>
#include <string.h>

enum { MANY = 64 }; /* of a module: so few take LLVM no time that counts */

static bool find_kind(LLVMValueRef f, TlMasked *out)
{
    size_t n;
    const char *name = LLVMGetValueName2(f, &n);
    for (int i = 0; i < TL_MASKED_COUNT; i++) {
        size_t length = strlen(tl_masked_accesses[i].name);
        if (!strncmp(name, tl_masked_accesses[i].name, length) && name[length] == '.') {
            *out = (TlMasked)i;
            return true;
        }
    }
    return false;
}

/* Bytes of one element of the data of this intrinsic. */
static unsigned elem_bytes(TlLlvm *l, LLVMValueRef f, TlMasked kind)
{
    LLVMTypeRef data = LLVMTypeOf(LLVMGetParam(f, tl_masked_accesses[kind].data));
    TL_ASSERT(LLVMGetTypeKind(data) == LLVMVectorTypeKind, "masked access %d moves no vector",
              (int)kind);
    return (unsigned)LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module),
                                       LLVMGetElementType(data));
}

static bool is_native(TlLlvm *l, LLVMValueRef f, TlMasked kind)
{
    if (tl_nest_machine(l).masks)
        return true;
    return kind != TL_MASKED_SCATTER && tl_llvm_has_feature(l, "avx2") &&
           elem_bytes(l, f, kind) >= 4;
}

/* Is the code of this use longer than a few instructions? */
static bool is_long(LLVMUseRef use, TlMasked kind)
{
    return !LLVMIsConstant(LLVMGetOperand(LLVMGetUser(use), tl_masked_accesses[kind].mask));
}

static unsigned count_long(TlLlvm *l)
{
    unsigned n = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
        TlMasked kind;
        if (!find_kind(f, &kind) || is_native(l, f, kind))
            continue;
        for (LLVMUseRef use = LLVMGetFirstUse(f); use; use = LLVMGetNextUse(use))
            n += is_long(use, kind);
    }
    return n;
}

/* A function that does what the intrinsic `f` does. */
static LLVMValueRef make_function(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef f, TlMasked kind)
{
    const TlMaskedAccess *m = &tl_masked_accesses[kind];
    LLVMTypeRef type = LLVMGlobalGetValueType(f);
    size_t n;
    const char *name = LLVMGetValueName2(f, &n);
    LLVMValueRef made = LLVMAddFunction(l->module, name + strlen("llvm."), type), args[4];
    LLVMSetLinkage(made, LLVMInternalLinkage);
    tl_llvm_set_attribute(l, made, LLVMAttributeFunctionIndex, "noinline", 0);
    tl_llvm_set_attribute(l, made, LLVMAttributeFunctionIndex, "nounwind", 0);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(l->context, made, ""));
    TL_ASSERT(LLVMCountParams(made) <= 4, "'%s' has %u operands", name, LLVMCountParams(made));
    LLVMGetParams(made, args);
    LLVMValueRef x = tl_llvm_masked(l, b, kind, args[m->pointer], elem_bytes(l, f, kind),
                                    args[m->mask], args[m->data]);
    if (LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVoidTypeKind)
        LLVMBuildRetVoid(b);
    else
        LLVMBuildRet(b, x);
    return made;
}

static void share(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef f, TlMasked kind)
{
    LLVMUseRef use = LLVMGetFirstUse(f), next;
    LLVMValueRef made = make_function(l, b, f, kind);
    for (; use; use = next) {
        next = LLVMGetNextUse(use);
        LLVMValueRef call = LLVMGetUser(use);
        if (is_long(use, kind))
            LLVMSetOperand(call, (unsigned)LLVMGetNumOperands(call) - 1, made);
    }
}

void tl_cpu_share_masked(TlLlvm *l)
{
    TL_ASSERT(l->module && l->context, "no module");
    if (count_long(l) <= MANY)
        return;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
        TlMasked kind;
        if (find_kind(f, &kind) && LLVMGetFirstUse(f) && !is_native(l, f, kind))
            share(l, b, f, kind);
    }
    LLVMDisposeBuilder(b);
}
