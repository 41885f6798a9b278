/* Leaves for the emulator: calls of the C functions tl_emu_NAME (runtime/emu/). The module becomes
 * one for the host and is otherwise unchanged, so the emulator runs what the GPU gets.
 *
 * Integers of 1, 8 and 16 bits are passed zero-extended to 32; pointers as integers, whatever
 * their address space; <2 x i32> as a double, which is how C passes a vector of 8 bytes on every
 * host we know. */
#include "codegen/target/host_code.h"
#include "codegen/leaf/leaf_expand.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* The limit of instructions in a block: LLVM's fast selection gives up on the rest of a block at
 * the first instruction that it does not know. */
enum { BLOCK = 16 };

static LLVMTypeRef c_type(TlLeafCall *call, LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t) < 32 ? call->i32 : t;
    case LLVMPointerTypeKind: return LLVMInt64TypeInContext(call->c);
    case LLVMVectorTypeKind:
        return LLVMGetVectorSize(t) == 2 ? LLVMDoubleTypeInContext(call->c) : t;
    default: return t;
    }
}

static LLVMValueRef to_c(TlLeafCall *call, LLVMValueRef x)
{
    LLVMTypeRef from = LLVMTypeOf(x), to = c_type(call, from);
    if (from == to)
        return x;
    switch (LLVMGetTypeKind(from)) {
    case LLVMIntegerTypeKind: return LLVMBuildZExt(call->b, x, to, "");
    case LLVMPointerTypeKind: return LLVMBuildPtrToInt(call->b, x, to, "");
    default: return LLVMBuildBitCast(call->b, x, to, "");
    }
}

static LLVMValueRef from_c(TlLeafCall *call, LLVMValueRef x)
{
    if (LLVMTypeOf(x) == call->result)
        return x;
    return LLVMGetTypeKind(call->result) == LLVMIntegerTypeKind
               ? LLVMBuildTrunc(call->b, x, call->result, "")
               : LLVMBuildBitCast(call->b, x, call->result, "");
}

static LLVMValueRef call_emulator(TlLeafCall *call, LLVMTypeRef result, LLVMValueRef *args,
                                  unsigned n)
{
    bool is_new;
    char *name = tl_format(call->l->arena, "tl_emu_%s", tl_leaf_name(call->leaf));
    return tl_leaf_helper(call, name, result, args, n, &is_new);
}

/* Words of the function's own, one place per operand. */
static LLVMValueRef room(TlLeafCall *call, const char *name, unsigned words)
{
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(call->function);
    LLVMValueRef x = LLVMGetFirstInstruction(entry);
    for (; x && LLVMIsAAllocaInst(x); x = LLVMGetNextInstruction(x)) {
        size_t n;
        if (strcmp(LLVMGetValueName2(x, &n), name) == 0)
            return x;
    }
    LLVMBuilderRef b = LLVMCreateBuilderInContext(call->c);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
    x = LLVMBuildAlloca(b, LLVMArrayType2(call->i32, words), name);
    LLVMSetAlignment(x, 64); /* that of the widest vector */
    LLVMDisposeBuilder(b);
    return x;
}

/* Operands of matrix instructions and their results are passed by address, because C compilers
 * disagree on vectors of 64 bytes. */
static LLVMValueRef expand_mma(TlLeafCall *call)
{
    static const char *const NAMES[] = {"mma.a", "mma.b", "mma.c", "mma.d"};
    enum { FIRST = 5, OPERANDS = 3, MOST = 12 };
    LLVMValueRef args[MOST];
    unsigned n = call->nargs;
    TL_ASSERT(n < MOST, "a matrix instruction of %u operands", n);
    for (unsigned i = 0; i < n; i++) {
        bool words = i >= FIRST && i < FIRST + OPERANDS;
        args[i] = words ? room(call, NAMES[i - FIRST], 16) : call->args[i];
        if (words)
            LLVMBuildStore(call->b, call->args[i], args[i]);
    }
    args[n] = room(call, NAMES[OPERANDS], 16);
    call_emulator(call, call->void_, args, n + 1);
    return LLVMBuildLoad2(call->b, call->result, args[n], "");
}

static LLVMValueRef word_at(TlLeafCall *call, LLVMValueRef words, unsigned i)
{
    LLVMValueRef at = tl_leaf_i32(call, i);
    return LLVMBuildGEP2(call->b, call->i32, words, &at, 1, "");
}

/* The words of a leaf cross the call as their number and their address. */
static LLVMValueRef expand_words(TlLeafCall *call, unsigned fixed)
{
    enum { MOST_WORDS = TL_LEAF_MOST_WORDS + 4, MOST_FIXED = 10 /* operands */ };
    LLVMValueRef args[MOST_FIXED], words = room(call, "words", MOST_WORDS);
    unsigned n = call->nargs - fixed;
    for (unsigned i = 0; i < fixed; i++)
        args[i] = to_c(call, call->args[i]);
    for (unsigned i = 0; i < n; i++)
        LLVMBuildStore(call->b, call->args[fixed + i], word_at(call, words, i));
    args[fixed] = tl_leaf_i32(call, n);
    args[fixed + 1] = words;
    call_emulator(call, call->void_, args, fixed + 2);
    if (LLVMGetTypeKind(call->result) == LLVMVoidTypeKind)
        return NULL;
    LLVMValueRef all = LLVMGetPoison(call->result);
    unsigned results = LLVMCountStructElementTypes(call->result);
    for (unsigned i = 0; i < results; i++) {
        LLVMTypeRef t = LLVMStructGetTypeAtIndex(call->result, i);
        LLVMValueRef x =
            LLVMBuildLoad2(call->b, t, word_at(call, words, n - results + i), "");
        all = LLVMBuildInsertValue(call->b, all, x, i, "");
    }
    return all;
}

static LLVMValueRef expand(TlLeafCall *call)
{
    const char *words = strchr(tl_leaf_info(call->leaf)->operands, 'w');
    if (words)
        return expand_words(call, (unsigned)(words - tl_leaf_info(call->leaf)->operands));
    tl_leaf_family family = tl_leaf_info(call->leaf)->family;
    if (family == TL_LEAF_FAMILY_MMA || family == TL_LEAF_FAMILY_MMA_SCALED)
        return expand_mma(call);
    for (unsigned i = 0; i < call->nargs; i++)
        call->args[i] = to_c(call, call->args[i]);
    LLVMValueRef x = call_emulator(call, c_type(call, call->result), call->args, call->nargs);
    return LLVMGetTypeKind(call->result) == LLVMVoidTypeKind ? NULL : from_c(call, x);
}

/* void F.entry(const uint64_t *params): F with the words of the parameter table. */
static void add_entry(TlLlvm *l, LLVMValueRef kernel)
{
    size_t n;
    const char *name = LLVMGetValueName2(kernel, &n);
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef i64 = LLVMInt64TypeInContext(l->context),
                ptr = LLVMPointerTypeInContext(l->context, 0),
                type = LLVMFunctionType(LLVMVoidTypeInContext(l->context), &ptr, 1, 0);
    LLVMValueRef entry =
        LLVMAddFunction(l->module, tl_format(l->arena, "%.*s.entry", (int)n, name), type);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(l->context, entry, ""));
    unsigned nparams = LLVMCountParams(kernel);
    LLVMValueRef *args = TL_NEW_ARRAY(l->arena, LLVMValueRef, nparams + 1);
    for (unsigned i = 0; i < nparams; i++) {
        LLVMValueRef at = LLVMConstInt(i64, i, 0), params = LLVMGetParam(entry, 0);
        LLVMValueRef word = LLVMBuildLoad2(b, i64, LLVMBuildGEP2(b, i64, params, &at, 1, ""), "");
        LLVMTypeRef want = LLVMTypeOf(LLVMGetParam(kernel, i));
        args[i] = LLVMGetTypeKind(want) == LLVMPointerTypeKind
                      ? LLVMBuildIntToPtr(b, word, want, "")
                      : word;
    }
    LLVMBuildCall2(b, LLVMGlobalGetValueType(kernel), kernel, args, nparams, "");
    LLVMBuildRetVoid(b);
}

/* A kernel of the GPU becomes a C function. */
static void strip(LLVMValueRef f)
{
    static const char *const NAMES[] = {"amdgpu-flat-work-group-size", "uniform-work-group-size",
                                        "amdgpu-unsafe-fp-atomics", "amdgpu-num-vgpr",
                                        "amdgpu-ieee"};
    LLVMSetFunctionCallConv(f, LLVMCCallConv);
    LLVMSetVisibility(f, LLVMDefaultVisibility);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        LLVMRemoveStringAttributeAtIndex(f, LLVMAttributeFunctionIndex, NAMES[i],
                                         (unsigned)strlen(NAMES[i]));
}

void tl_leaf_expand_emu(TlLlvm *l, const TlTarget *host)
{
    TL_ASSERT(host && host->family->pipeline == TL_PIPELINE_CPU, "the emulator's host is no CPU");
    tl_leaf_expand_each(l, expand);
    LLVMValueRef last = LLVMGetLastFunction(l->module), f = LLVMGetFirstFunction(l->module);
    for (; f; f = LLVMGetNextFunction(f)) {
        if (!LLVMIsDeclaration(f)) {
            strip(f);
            add_entry(l, f);
        }
        if (f == last)
            break;
    }
    LLVMStripModuleDebugInfo(l->module);
    tl_llvm_retarget(l, host->triple, host->cpu, host->features);
    tl_host_complete(l, false);
    tl_llvm_part_blocks(l, BLOCK);
}
