/* Addresses and bounds tests that wait for their use, on AMD GPUs.
 *
 * Of a[5], the address and the test whether 5 is inside cost an instruction each, from parameters
 * alone. LLVM's passes move them out of every loop and out of branches, where each then keeps up to
 * two scalar registers of some hundred from the start of the kernel to its use. Where there are
 * more than a few of them, each is computed in the block that uses it, from a constant that LLVM
 * does not see, or it would move it out again. */
#include "codegen/workaround/workaround.h"

enum { FEW_VALUES = 32 };

typedef TL_VEC(LLVMValueRef) Values;

/* A parameter plus a constant, or a uniform value compared with one, which is operand 1. */
static bool is_cheap(const TlMap *varies, LLVMValueRef x)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
    if ((opcode != LLVMGetElementPtr && opcode != LLVMICmp) || LLVMGetNumOperands(x) != 2 ||
        !LLVMIsAConstantInt(LLVMGetOperand(x, 1)))
        return false;
    return LLVMIsAArgument(LLVMGetOperand(x, 0)) ||
           (opcode == LLVMICmp && !tl_map_get(varies, (uint64_t)(uintptr_t)x, NULL));
}

/* A user in another block, which can have its own. */
static LLVMValueRef user_elsewhere(LLVMValueRef x)
{
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (!LLVMIsAPHINode(user) && LLVMGetInstructionParent(user) != LLVMGetInstructionParent(x))
            return user;
    }
    return NULL;
}

/* The thread's index plus a constant. */
static bool is_offset(LLVMValueRef x)
{
    return (LLVMIsABinaryOperator(x) && LLVMIsAConstantInt(LLVMGetOperand(x, 1))) &&
           (LLVMGetInstructionOpcode(x) == LLVMAdd || LLVMGetInstructionOpcode(x) == LLVMOr);
}

/* One block elsewhere uses it, and no inner loop, like that of a store: once more is cheaper than
 * two moves of a scalar register that does not fit; more often is not. */
static bool waits_once(const TlLoops *loops, LLVMValueRef x)
{
    unsigned users = 0;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(x), other;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if ((other = LLVMGetInstructionParent(LLVMGetUser(u))) != block) {
            users++;
            if (!tl_loop_is_inside(loops, tl_loop_around(loops, block),
                                   tl_loop_around(loops, other)))
                return false;
        }
    return users == 1 && user_elsewhere(x);
}

/* A thread's index plus a constant compared with what is the same for all of a wave, or another
 * value of the thread, which is used elsewhere, compared with a constant. */
static bool is_own_test(const TlMap *varies, LLVMValueRef x)
{
    if (LLVMGetInstructionOpcode(x) != LLVMICmp)
        return false;
    LLVMValueRef left = LLVMGetOperand(x, 0), right = LLVMGetOperand(x, 1);
    LLVMTypeRef t = LLVMTypeOf(left);
    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(t) % 32)
        return false;
    return tl_map_get(varies, (uint64_t)(uintptr_t)left, NULL) &&
           !tl_map_get(varies, (uint64_t)(uintptr_t)right, NULL) &&
           (is_offset(left) || (LLVMIsAConstantInt(right) && user_elsewhere(left)));
}

static void find(TlArena *arena, LLVMValueRef function, Values *out_cheap, Values *out_own)
{
    TlMap varies;
    TlLoops loops;
    tl_amd_find_varying(arena, function, &varies);
    tl_loops_find(arena, function, &loops);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
            bool cheap = is_cheap(&varies, x);
            if (cheap ? user_elsewhere(x) != NULL
                      : is_own_test(&varies, x) && waits_once(&loops, x))
                tl_vec_push(arena, cheap ? out_cheap : out_own, x);
        }
}

/* ---- tests in 32 bits ---- */

/* An extent and a constant below 2^31: scalar instructions order 32 bits only. */
static bool is_wide_test(LLVMValueRef x)
{
    if (LLVMGetInstructionOpcode(x) != LLVMICmp || !LLVMIsAArgument(LLVMGetOperand(x, 0)) ||
        !LLVMIsAConstantInt(LLVMGetOperand(x, 1)))
        return false;
    LLVMTypeRef t = LLVMTypeOf(LLVMGetOperand(x, 0));
    LLVMIntPredicate p = LLVMGetICmpPredicate(x);
    return t == LLVMInt64TypeInContext(LLVMGetTypeContext(t)) &&
           (p == LLVMIntUGT || p == LLVMIntULT || p == LLVMIntUGE || p == LLVMIntULE) &&
           LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1)) < INT32_MAX;
}

/* min(extent, 2^31), at the start of the kernel. */
static LLVMValueRef narrow(TlLlvm *l, LLVMBuilderRef b, TlMap *made, LLVMValueRef extent)
{
    LLVMValueRef x = tl_map_get_ptr(made, extent);
    if (x)
        return x;
    LLVMTypeRef i64 = LLVMTypeOf(extent), i32 = LLVMInt32TypeInContext(l->context);
    TL_ASSERT(LLVMGetIntTypeWidth(i64) == 64, "an extent of %u bits", LLVMGetIntTypeWidth(i64));
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(LLVMGetParamParent(extent));
    LLVMValueRef most = LLVMConstInt(i64, (uint64_t)1 << 31, 0);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(entry));
    x = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntULT, extent, most, ""), extent, most, "");
    x = LLVMBuildTrunc(b, x, i32, "");
    tl_map_put_ptr(made, extent, x);
    return x;
}

static void test_narrow(TlLlvm *l, LLVMBuilderRef b, TlMap *made, LLVMValueRef old)
{
    LLVMValueRef x = narrow(l, b, made, LLVMGetOperand(old, 0)), constant = LLVMGetOperand(old, 1);
    constant = LLVMConstInt(LLVMTypeOf(x), LLVMConstIntGetZExtValue(constant), 0);
    LLVMPositionBuilderBefore(b, old);
    LLVMReplaceAllUsesWith(old, LLVMBuildICmp(b, LLVMGetICmpPredicate(old), x, constant, ""));
    LLVMInstructionEraseFromParent(old);
}

static void narrow_tests(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    Values tests = {0};
    TlMap made = {.arena = l->arena};
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x))
            if (is_wide_test(x))
                tl_vec_push(l->arena, &tests, x);
    for (uint32_t i = 0; tests.len > FEW_VALUES && i < tests.len; i++)
        test_narrow(l, b, &made, tests.data[i]);
}

/* ---- each beside its user ---- */

/* x again, where the builder stands, from a constant that LLVM does not see. */
static LLVMValueRef copy_of(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x)
{
    TL_ASSERT(LLVMGetNumOperands(x) == 2, "a test or an address of %d operands",
              LLVMGetNumOperands(x));
    LLVMValueRef copy = LLVMInstructionClone(x), left = LLVMGetOperand(x, 0);
    if (LLVMIsAConstantInt(LLVMGetOperand(x, 1)))
        LLVMSetOperand(copy, 1, tl_amd_hide(l, b, LLVMGetOperand(x, 1), "=s,0"));
    if (LLVMIsAICmpInst(x) && is_offset(left))
        LLVMSetOperand(copy, 0, copy_of(l, b, left));
    LLVMInsertIntoBuilder(b, copy);
    return copy;
}

static void put_near(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef x)
{
    for (LLVMValueRef user; (user = user_elsewhere(x));) {
        LLVMPositionBuilderBefore(b, user);
        LLVMValueRef copy = copy_of(l, b, x);
        for (int i = 0; i < LLVMGetNumOperands(user); i++)
            if (LLVMGetOperand(user, (unsigned)i) == x)
                LLVMSetOperand(user, (unsigned)i, copy);
    }
    if (!LLVMGetFirstUse(x))
        LLVMInstructionEraseFromParent(x);
}

void tl_amd_near(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    Values cheap = {0}, own = {0};
    narrow_tests(l, b, function);
    find(l->arena, function, &cheap, &own);
    for (uint32_t i = 0; cheap.len > FEW_VALUES && i < cheap.len; i++)
        put_near(l, b, cheap.data[i]);
    for (uint32_t i = 0; own.len > FEW_VALUES && i < own.len; i++)
        put_near(l, b, own.data[i]);
}
