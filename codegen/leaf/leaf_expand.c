/* The walk over calls of leaves, and what all targets do alike with them.
 *
 * What LLVM's C API cannot build (fences and atomics with a scope), or what needs control flow, is
 * a function of the prelude: IR text, written when the first call needs it, linked at the end and
 * inlined by the pass always-inline. */
#include "codegen/leaf/leaf_expand.h"


LLVMValueRef tl_leaf_i32(const TlLeafCall *call, uint32_t v)
{
    return LLVMConstInt(call->i32, v, 0);
}

LLVMValueRef tl_leaf_intrinsic(TlLeafCall *call, const char *name, LLVMTypeRef *types,
                               unsigned ntypes, LLVMValueRef *args, unsigned nargs)
{
    return tl_llvm_intrinsic(call->l, call->b, name, types, ntypes, args, nargs);
}

bool tl_leaf_is_true(LLVMValueRef pred)
{
    return LLVMIsAConstantInt(pred) && LLVMConstIntGetZExtValue(pred) != 0;
}

bool tl_leaf_is_false(LLVMValueRef pred)
{
    return LLVMIsAConstantInt(pred) && LLVMConstIntGetZExtValue(pred) == 0;
}

uint32_t tl_leaf_constant(const TlLeafCall *call, unsigned index)
{
    TL_ASSERT(index < call->nargs && LLVMIsAConstantInt(call->args[index]),
              "operand %u of leaf %s is not constant", index, tl_leaf_name(call->leaf));
    return (uint32_t)LLVMConstIntGetZExtValue(call->args[index]);
}

LLVMValueRef tl_leaf_fill(const TlLeafCall *call, LLVMTypeRef type)
{
    enum { FILL = 4 };
    uint32_t word = tl_leaf_constant(call, FILL);
    if (LLVMGetTypeKind(type) == LLVMIntegerTypeKind)
        return LLVMConstInt(type, word, 0);
    LLVMValueRef all[4];
    for (unsigned i = 0; i < LLVMGetVectorSize(type); i++)
        all[i] = tl_leaf_i32(call, word);
    return LLVMConstVector(all, LLVMGetVectorSize(type));
}

unsigned tl_leaf_bits(tl_leaf leaf)
{
    unsigned bits = tl_leaf_info(leaf)->size;
    TL_ASSERT(bits >= 8 && bits <= 128, "leaf %s has no width", tl_leaf_name(leaf));
    return bits;
}

/* ---- the prelude ---- */

LLVMValueRef tl_leaf_helper(TlLeafCall *call, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, unsigned nargs, bool *out_new)
{
    TL_ASSERT(name && result, "a helper without a name");
    LLVMTypeRef types[TL_LEAF_MAX_ARGS];
    TL_ASSERT(nargs <= TL_LEAF_MAX_ARGS, "%u arguments", nargs);
    for (unsigned i = 0; i < nargs; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef type = LLVMFunctionType(result, types, nargs, 0);
    LLVMValueRef f = LLVMGetNamedFunction(call->l->module, name);
    *out_new = !f;
    if (!f)
        f = LLVMAddFunction(call->l->module, name, type);
    return LLVMBuildCall2(call->b, type, f, args, nargs, "");
}

/* ---- shared memory ---- */

/* Adds what is constant in the sum x to *io_constant and returns the rest; NULL: there is none. */
static LLVMValueRef without_constant(TlLeafCall *call, LLVMValueRef x, uint64_t *io_constant)
{
    if (LLVMIsAConstantInt(x)) {
        *io_constant += LLVMConstIntGetZExtValue(x);
        return NULL;
    }
    LLVMOpcode opcode = LLVMIsAInstruction(x) ? LLVMGetInstructionOpcode(x) : LLVMRet;
    if (opcode != LLVMAdd && (opcode != LLVMOr || !LLVMGetIsDisjoint(x)))
        return x;
    uint64_t constant = 0;
    LLVMValueRef old[2] = {LLVMGetOperand(x, 0), LLVMGetOperand(x, 1)},
                 a = without_constant(call, old[0], &constant),
                 b = without_constant(call, old[1], &constant);
    *io_constant += constant;
    if (!a || !b)
        return a ? a : b;
    return constant ? LLVMBuildNUWAdd(call->b, a, b, "") : x;
}

/* On AMD shared memory begins at 0, as there is no other; LLVM would add a base that it does not
 * know to each offset. What is constant in the offset stays beside the access, which has room for
 * it, even where LLVM has moved the sum out of a loop. */
static LLVMValueRef shared_of_amd(TlLeafCall *call, LLVMValueRef offset)
{
    uint64_t constant = 0;
    LLVMValueRef rest = without_constant(call, offset, &constant);
    LLVMTypeRef pointer = LLVMPointerTypeInContext(call->c, 3);
    if (!rest)
        return LLVMBuildIntToPtr(call->b, offset, pointer, "");
    LLVMValueRef at = tl_leaf_i32(call, (uint32_t)constant),
                 base = LLVMBuildIntToPtr(call->b, rest, pointer, "");
    if (!constant)
        return base;
    return LLVMBuildInBoundsGEP2(call->b, call->i8, base, &at, 1, "");
}

LLVMValueRef tl_leaf_shared(TlLeafCall *call, LLVMValueRef offset)
{
    static const char NAME[] = "tl_shared";
    LLVMModuleRef m = call->l->module;
    LLVMValueRef base = LLVMGetNamedGlobal(m, NAME);
    if (tl_llvm_family(call->l) == TL_LLVM_AMD)
        return shared_of_amd(call, offset);
    if (!base) {
        base = LLVMAddGlobalInAddressSpace(m, LLVMArrayType2(call->i8, 0), NAME, 3);
        LLVMSetLinkage(base, LLVMExternalLinkage);
        LLVMSetAlignment(base, 1024); /* what swizzled operands of matrix instructions ask for */
    }
    return LLVMBuildGEP2(call->b, call->i8, base, &offset, 1, "");
}

LLVMValueRef tl_leaf_shared_slot(TlLeafCall *call, LLVMValueRef slot, LLVMValueRef offset)
{
    LLVMValueRef start = tl_leaf_shared(call, slot);
    return LLVMBuildGEP2(call->b, call->i8, start, &offset, 1, "");
}

LLVMValueRef tl_leaf_mul_wide(TlLeafCall *call, bool has_sign)
{
    LLVMValueRef x = LLVMBuildIntCast2(call->b, call->args[0], call->i64, has_sign, ""),
                 y = LLVMBuildIntCast2(call->b, call->args[1], call->i64, has_sign, "");
    return LLVMBuildMul(call->b, x, y, "");
}

LLVMValueRef tl_leaf_load(TlLeafCall *call, LLVMValueRef address)
{
    TL_ASSERT(LLVMGetTypeKind(LLVMTypeOf(address)) == LLVMPointerTypeKind,
              "a load through no pointer");
    LLVMValueRef x = LLVMBuildLoad2(call->b, call->result, address, "");
    LLVMSetAlignment(x, tl_leaf_bits(call->leaf) / 8);
    return x;
}

void tl_leaf_store(TlLeafCall *call, LLVMValueRef address, LLVMValueRef value)
{
    TL_ASSERT(LLVMGetTypeKind(LLVMTypeOf(address)) == LLVMPointerTypeKind,
              "a store through no pointer");
    LLVMSetAlignment(LLVMBuildStore(call->b, value, address), tl_leaf_bits(call->leaf) / 8);
}

/* site, offset */
LLVMValueRef tl_leaf_load_shared(TlLeafCall *call)
{
    return tl_leaf_load(call, tl_leaf_shared(call, call->args[1]));
}

/* site, offset, pred, value */
void tl_leaf_store_shared(TlLeafCall *call, TlLeafStoreWhere store_where)
{
    LLVMValueRef *x = call->args;
    if (tl_leaf_is_false(x[2]))
        return;
    LLVMValueRef address = tl_leaf_shared(call, x[1]);
    if (tl_leaf_is_true(x[2]))
        tl_leaf_store(call, address, x[3]);
    else
        store_where(call, address, x[2], x[3]);
}

/* ---- the walk ---- */

static void expand_call(TlLlvm *l, LLVMValueRef old, TlLeafExpander expand, TlLeafCall *call)
{
    call->nargs = LLVMGetNumArgOperands(old);
    TL_ASSERT(call->nargs <= TL_LEAF_MAX_ARGS, "leaf %s has %u operands", tl_leaf_name(call->leaf),
              call->nargs);
    for (unsigned i = 0; i < call->nargs; i++)
        call->args[i] = LLVMGetOperand(old, i);
    call->result = LLVMTypeOf(old);
    call->function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(old));
    LLVMPositionBuilderBefore(l->builder, old);
    LLVMValueRef x = expand(call);
    if (x)
        LLVMReplaceAllUsesWith(old, x);
    LLVMInstructionEraseFromParent(old);
}

/* False: there is no such function. */
static bool expand_calls(TlLlvm *l, const char *name, TlLeafExpander expand, TlLeafCall *call)
{
    LLVMValueRef f = LLVMGetNamedFunction(l->module, name);
    if (!f)
        return false;
    for (LLVMUseRef u; (u = LLVMGetFirstUse(f));)
        expand_call(l, LLVMGetUser(u), expand, call);
    LLVMDeleteFunction(f);
    return true;
}

bool tl_leaf_expand_each(TlLlvm *l, TlLeafExpander expand)
{
    TL_ASSERT(l->module && expand, "nothing to expand");
    TlSbuf prelude;
    tl_sbuf_init(&prelude, l->arena);
    TlLeafCall call = {.l = l,
                       .c = l->context,
                       .b = l->builder,
                       .i1 = LLVMInt1TypeInContext(l->context),
                       .i8 = LLVMInt8TypeInContext(l->context),
                       .i16 = LLVMInt16TypeInContext(l->context),
                       .i32 = LLVMInt32TypeInContext(l->context),
                       .i64 = LLVMInt64TypeInContext(l->context),
                       .f32 = LLVMFloatTypeInContext(l->context),
                       .void_ = LLVMVoidTypeInContext(l->context),
                       .prelude = &prelude};
    for (int leaf = 0; leaf < TL_LEAF_COUNT; leaf++) {
        char *name = tl_format(l->arena, "tl.leaf.%s", tl_leaf_name((tl_leaf)leaf));
        call.leaf = (tl_leaf)leaf;
        expand_calls(l, name, expand, &call);
        bool words = strchr(tl_leaf_info((tl_leaf)leaf)->operands, 'w') != NULL;
        for (unsigned i = 0;
             words && expand_calls(l, tl_format(l->arena, "%s.%u", name, i), expand, &call);)
            i++;
    }
    if (!prelude.len)
        return false;
    tl_llvm_link_text(l, prelude.text, prelude.len);
    return true;
}
