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

/* The intrinsics, and where their operands are. */
typedef struct Kind {
    const char *prefix;
    unsigned data; /* the vector that moves, or takes the place of what is masked */
    unsigned align, mask;
    bool in_avx2; /* there is an instruction for elements of 4 and 8 bytes */
} Kind;

static const Kind *kind_of(LLVMValueRef f)
{
    static const Kind KINDS[] = {{"llvm.masked.load.", 3, 1, 2, true},
                                 {"llvm.masked.gather.", 3, 1, 2, true},
                                 {"llvm.masked.store.", 0, 2, 3, true},
                                 {"llvm.masked.scatter.", 0, 2, 3, false}};
    size_t n;
    const char *name = LLVMGetValueName2(f, &n);
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strncmp(name, KINDS[i].prefix, strlen(KINDS[i].prefix)))
            return &KINDS[i];
    return NULL;
}

/* Bytes of one element of the data of this intrinsic. */
static unsigned elem_bytes(TlLlvm *l, LLVMValueRef f, const Kind *kind)
{
    LLVMTypeRef data = LLVMTypeOf(LLVMGetParam(f, kind->data));
    TL_ASSERT(LLVMGetTypeKind(data) == LLVMVectorTypeKind, "'%s' moves no vector", kind->prefix);
    return (unsigned)LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module),
                                       LLVMGetElementType(data));
}

static bool is_native(TlLlvm *l, LLVMValueRef f, const Kind *kind)
{
    if (tl_nest_machine(l).masks)
        return true;
    return kind->in_avx2 && tl_llvm_has_feature(l, "avx2") && elem_bytes(l, f, kind) >= 4;
}

/* Is the code of this use longer than a few instructions? */
static bool is_long(LLVMUseRef use, const Kind *kind)
{
    return !LLVMIsConstant(LLVMGetOperand(LLVMGetUser(use), kind->mask));
}

static unsigned count_long(TlLlvm *l)
{
    unsigned n = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
        const Kind *kind = kind_of(f);
        if (!kind || is_native(l, f, kind))
            continue;
        for (LLVMUseRef use = LLVMGetFirstUse(f); use; use = LLVMGetNextUse(use))
            n += is_long(use, kind);
    }
    return n;
}

/* A function that does what the intrinsic `f` does. */
static LLVMValueRef make_function(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef f, const Kind *kind)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(f);
    size_t n;
    const char *name = LLVMGetValueName2(f, &n);
    LLVMValueRef made = LLVMAddFunction(l->module, name + strlen("llvm."), type), args[4];
    LLVMSetLinkage(made, LLVMInternalLinkage);
    tl_llvm_set_attribute(l, made, LLVMAttributeFunctionIndex, "noinline", 0);
    tl_llvm_set_attribute(l, made, LLVMAttributeFunctionIndex, "nounwind", 0);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(l->context, made, ""));
    TL_ASSERT(LLVMCountParams(made) == 4, "'%s' has %u operands", name, LLVMCountParams(made));
    LLVMGetParams(made, args);
    args[kind->align] = LLVMConstInt(LLVMTypeOf(args[kind->align]), elem_bytes(l, f, kind), 0);
    LLVMValueRef x = LLVMBuildCall2(b, type, f, args, 4, "");
    if (LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVoidTypeKind)
        LLVMBuildRetVoid(b);
    else
        LLVMBuildRet(b, x);
    return made;
}

static void share(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef f, const Kind *kind)
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
        const Kind *kind = kind_of(f);
        if (kind && LLVMGetFirstUse(f) && !is_native(l, f, kind))
            share(l, b, f, kind);
    }
    LLVMDisposeBuilder(b);
}
