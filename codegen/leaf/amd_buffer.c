/* Loads and stores by a base and a 32-bit offset (leaves LDB, STB) on AMD GPUs: buffer
 * instructions, whose resource holds the base and the number of bytes. The hardware reads 0 beyond
 * them and drops stores there; where the predicate is false, the offset is set beyond the end. */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

/* LDB: site, base, pred, hints, fill, records, far, offset; STB has the value for the fill. */
enum { BASE = 1, PRED, HINTS, FILL, VALUE = FILL, RECORDS, FAR, OFFSET };

/* Word 3 of a resource: a format that is valid (untyped instructions do not use it); raw bounds
 * since gfx10 (OOB_SELECT 3, resource level 1). And the cache policy of what is used once, as LLVM
 * has it for nontemporal accesses. */
static const struct Generation { /* the first that the name begins with */
    const char *cpu;
    uint32_t word3, load_once, store_once;
} GENERATIONS[] = {
    {"gfx942", 0x00027000, 2, 2}, /* nt */
    {"gfx9", 0x00027000, 3, 3},   /* glc slc */
    {"gfx10", 0x31014000, 2, 3},  /* slc; glc slc */
    {"gfx11", 0x31004000, 6, 7},  /* slc dlc; glc slc dlc */
    {"gfx12", 0x31004000, 1, 1},  /* th:TH_LOAD_NT, th:TH_STORE_NT */
};

static const struct Generation *generation(const TlLlvm *l)
{
    for (size_t i = 0; i < sizeof GENERATIONS / sizeof *GENERATIONS; i++)
        if (!strncmp(l->cpu, GENERATIONS[i].cpu, strlen(GENERATIONS[i].cpu)))
            return &GENERATIONS[i];
    TL_UNREACHABLE("buffers of %s", l->cpu);
}

static LLVMValueRef resource(TlLeafCall *call)
{
    LLVMTypeRef from = LLVMTypeOf(call->args[BASE]);
    LLVMValueRef args[4] = {call->args[BASE], LLVMConstInt(LLVMInt16TypeInContext(call->c), 0, 0),
                            call->args[RECORDS], tl_leaf_i32(call, generation(call->l)->word3)};
    return tl_leaf_intrinsic(call, "llvm.amdgcn.make.buffer.rsrc", &from, 1, args, 4);
}

/* x is another value plus a constant. */
static LLVMValueRef without_constant(LLVMValueRef x, uint32_t *out_constant)
{
    LLVMOpcode opcode = LLVMIsAInstruction(x) ? LLVMGetInstructionOpcode(x) : LLVMRet;
    *out_constant = 0;
    if (opcode != LLVMAdd || !LLVMIsAConstantInt(LLVMGetOperand(x, 1)) ||
        LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1)) >= TL_RECORDS_ALL / 2)
        return x;
    *out_constant = (uint32_t)LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
    return LLVMGetOperand(x, 0);
}

/* The vector register's and the scalar register's part. A constant is in the instruction as far as
 * it fits, and else in the scalar register, unless bounds count from there. */
static void offsets(TlLeafCall *call, LLVMValueRef *out_vector, LLVMValueRef *out_scalar)
{
    enum { IN_INSTRUCTION = 4095 };
    uint32_t constant;
    LLVMValueRef far = call->args[FAR], x = without_constant(call->args[OFFSET], &constant);
    if (!tl_leaf_is_true(call->args[PRED]))
        x = LLVMBuildSelect(call->b, call->args[PRED], x, tl_leaf_i32(call, TL_RECORDS_ALL), "");
    if (LLVMIsAConstantInt(far)) {
        uint32_t more = (uint32_t)LLVMConstIntGetZExtValue(far);
        constant += more & IN_INSTRUCTION;
        far = tl_leaf_i32(call, more & ~(uint32_t)IN_INSTRUCTION);
    }
    *out_vector = constant ? LLVMBuildAdd(call->b, x, tl_leaf_i32(call, constant), "") : x;
    *out_scalar = far;
}

static bool is_once(TlLeafCall *call)
{
    uint32_t hints = tl_leaf_constant(call, HINTS);
    return (hints & 3) == TL_CACHE_STREAM || hints >> 2 == TL_EVICT_FIRST;
}

/* i1, NULL = true: is there something to load? */
static LLVMValueRef is_there(TlLeafCall *call)
{
    LLVMValueRef pred = call->args[PRED], records = call->args[RECORDS];
    LLVMValueRef inside = NULL;
    if (!LLVMIsAConstantInt(records))
        inside = LLVMBuildICmp(call->b, LLVMIntULT, call->args[OFFSET], records, "");
    if (tl_leaf_is_true(pred))
        return inside;
    return inside ? LLVMBuildAnd(call->b, pred, inside, "") : pred;
}

LLVMValueRef tl_amd_load_buffer(TlLeafCall *call)
{
    LLVMValueRef vector, scalar;
    if (tl_leaf_is_false(call->args[PRED]))
        return tl_leaf_fill(call, call->result);
    offsets(call, &vector, &scalar);
    uint32_t policy = is_once(call) ? generation(call->l)->load_once : 0;
    LLVMValueRef args[4] = {resource(call), vector, scalar, tl_leaf_i32(call, policy)},
                 x = tl_leaf_intrinsic(call, "llvm.amdgcn.raw.ptr.buffer.load", &call->result, 1,
                                       args, 4),
                 there = tl_leaf_constant(call, FILL) ? is_there(call) : NULL;
    return there ? LLVMBuildSelect(call->b, there, x, tl_leaf_fill(call, call->result), "") : x;
}

void tl_amd_store_buffer(TlLeafCall *call)
{
    LLVMValueRef vector, scalar, x = call->args[VALUE];
    LLVMTypeRef type = LLVMTypeOf(x);
    if (tl_leaf_is_false(call->args[PRED]))
        return;
    offsets(call, &vector, &scalar);
    uint32_t policy = is_once(call) ? generation(call->l)->store_once : 0;
    LLVMValueRef args[5] = {x, resource(call), vector, scalar, tl_leaf_i32(call, policy)};
    tl_leaf_intrinsic(call, "llvm.amdgcn.raw.ptr.buffer.store", &type, 1, args, 5);
}

/* ---- what must be the same in all threads of a wave ---- */

static LLVMValueRef first_lane(TlLlvm *l, LLVMValueRef x)
{
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context), i64 = LLVMInt64TypeInContext(l->context),
                type = LLVMTypeOf(x), pair = LLVMVectorType(i32, 2);
    bool wide = type != i32;
    LLVMValueRef words[2] = {x, NULL};
    if (wide) {
        x = LLVMBuildBitCast(b, LLVMBuildPtrToInt(b, x, i64, ""), pair, "");
        for (unsigned i = 0; i < 2; i++)
            words[i] = LLVMBuildExtractElement(b, x, LLVMConstInt(i32, i, 0), "");
    }
    for (int i = 0; i <= wide; i++)
        words[i] = tl_llvm_intrinsic(l, b, "llvm.amdgcn.readfirstlane", &i32, 1, &words[i], 1);
    if (!wide)
        return words[0];
    x = LLVMGetPoison(pair);
    for (unsigned i = 0; i < 2; i++)
        x = LLVMBuildInsertElement(b, x, words[i], LLVMConstInt(i32, i, 0), "");
    return LLVMBuildIntToPtr(b, LLVMBuildBitCast(b, x, i64, ""), type, "");
}

/* Is it one of two constants? LLVM may make it of its condition in vector registers, though that
 * is equal in all lanes: of a comparison of 64 bits, as but for equality scalar instructions have
 * none, or where lanes use it, too. */
static bool is_choice(LLVMValueRef x)
{
    return LLVMIsASelectInst(x) && LLVMIsConstant(LLVMGetOperand(x, 1)) &&
           LLVMIsConstant(LLVMGetOperand(x, 2));
}

static void fix_operand(TlLlvm *l, const TlMap *varies, LLVMValueRef user, unsigned i)
{
    LLVMValueRef x = LLVMGetOperand(user, i);
    if (LLVMIsAZExtInst(x)) { /* the length, where LLVM takes it as 64 bits */
        fix_operand(l, varies, x, 0);
        return;
    }
    if (!tl_map_get(varies, (uint64_t)(uintptr_t)x, NULL) && !is_choice(x))
        return;
    LLVMPositionBuilderBefore(l->builder, user);
    LLVMSetOperand(user, i, first_lane(l, x));
}

/* The operands that leaf.def says are equal in a warp, where LLVM may not see it: it would make
 * loops over the lanes. */
static void fix_function(TlLlvm *l, LLVMValueRef function)
{
    TlMap varies;
    tl_amd_find_varying(l->arena, function, &varies);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.make.buffer.rsrc")) {
                fix_operand(l, &varies, x, 0);
                fix_operand(l, &varies, x, 2);
            }
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.load"))
                fix_operand(l, &varies, x, 2);
            if (tl_llvm_is_call_of(x, "llvm.amdgcn.raw.ptr.buffer.store"))
                fix_operand(l, &varies, x, 3);
        }
}

void tl_amd_buffer_scalars(TlLlvm *l)
{
    LLVMValueRef f = LLVMGetFirstFunction(l->module);
    for (; f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            fix_function(l, f);
}
