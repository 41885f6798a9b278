/* What LLVM computes in the branch of the thread that is elected, for the instructions that this
 * begins: copies by tensor maps, products into tensor memory, commits.
 *
 *     before:  if (elect) {                         before:  d = hidden(base + slot * 64)
 *                  d = base + slot * 64       =>             if (elect)
 *                  tcgen05.mma [d], ...                          tcgen05.mma [d], ...
 *              }
 *
 * These instructions take uniform registers, and a warp begins each once, whichever threads are
 * there. So ptxas leaves the branch and the election out, if there is nothing else in the branch;
 * else it keeps both (ELECT, BSSY, BRA, BSYNC, NOP).
 *
 *  1. Which branches: of a block whose only way in is a test of what elect.sync gave in the block
 *     before.
 *  2. What only computes goes from there, and from behind the election, to before it. What the asm
 *     in the branch takes is hidden there, as LLVM's code generator would move it back. */
#include "codegen/workaround/workaround.h"

#include <string.h>

typedef struct Elected {
    LLVMValueRef elect;              /* the call */
    LLVMBasicBlockRef before, block; /* it is in; that is the thread's */
    TlMap stays;                     /* what is there only behind it */
} Elected;

/* ---- 1. which branches ---- */

static bool is_asm(LLVMValueRef x)
{
    return LLVMIsACallInst(x) && LLVMIsAInlineAsm(LLVMGetCalledValue(x));
}

static bool is_elect(LLVMValueRef x)
{
    size_t n;
    if (!is_asm(x))
        return false;
    const char *text = LLVMGetInlineAsmAsmString(LLVMGetCalledValue(x), &n);
    return strstr(text, "elect.sync") != NULL;
}

static bool has_only_way_in(LLVMBasicBlockRef block, LLVMBasicBlockRef from)
{
    unsigned n = 0;
    for (LLVMUseRef u = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        if (LLVMIsAPHINode(user))
            continue;
        if (LLVMGetInstructionParent(user) != from)
            return false;
        n++;
    }
    return n == 1;
}

static bool find(LLVMBasicBlockRef before, Elected *out)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(before);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end))
        return false;
    LLVMValueRef test = LLVMGetCondition(end);
    if (!LLVMIsAICmpInst(test) || !is_elect(LLVMGetOperand(test, 0)))
        return false;
    bool not_equal = LLVMGetICmpPredicate(test) == LLVMIntNE;
    LLVMValueRef elect = LLVMGetOperand(test, 0);
    LLVMBasicBlockRef block = LLVMGetSuccessor(end, not_equal ? 0 : 1);
    *out = (Elected){.elect = elect, .before = before, .block = block};
    return LLVMGetInstructionParent(elect) == before && LLVMIsNull(LLVMGetOperand(test, 1)) &&
           has_only_way_in(block, before);
}

/* ---- 2. what goes out ---- */

static bool is_extreme(LLVMValueRef x)
{
    static const char *const NAMES[] = {"llvm.smin.", "llvm.smax.", "llvm.umin.", "llvm.umax."};
    bool is = false;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        is |= tl_llvm_is_call_of(x, NAMES[i]);
    return is;
}

static bool is_late(const Elected *e, LLVMValueRef x)
{
    return x == e->elect || tl_map_get(&e->stays, (uint64_t)(uintptr_t)x, NULL);
}

static bool may_be_early(const Elected *e, LLVMValueRef x)
{
    bool may = tl_llvm_only_computes(x) || is_extreme(x);
    for (int i = 0; i < LLVMGetNumOperands(x) && may; i++)
        may = !is_late(e, LLVMGetOperand(x, (unsigned)i));
    return may;
}

static void move_early(Elected *e, LLVMBuilderRef b, LLVMValueRef first)
{
    for (LLVMValueRef x = first, next; x; x = next) {
        next = LLVMGetNextInstruction(x);
        if (!may_be_early(e, x)) {
            tl_map_put(&e->stays, (uint64_t)(uintptr_t)x, 1);
            continue;
        }
        LLVMInstructionRemoveFromParent(x);
        LLVMPositionBuilderBefore(b, e->elect);
        LLVMInsertIntoBuilder(b, x);
    }
}

/* Of registers that it may be in; NULL: of others. */
static const char *tied(LLVMTypeRef t)
{
    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind)
        return NULL;
    unsigned bits = LLVMGetIntTypeWidth(t);
    return bits == 32 ? "=r,0" : bits == 64 ? "=l,0" : NULL;
}

static LLVMValueRef hide(TlLlvm *l, const Elected *e, LLVMBuilderRef b, LLVMValueRef x,
                         const char *constraints)
{
    LLVMPositionBuilderBefore(b, e->elect);
    LLVMValueRef hidden = tl_llvm_copy(l, b, x, constraints);
    tl_llvm_mark_call(l, hidden, "convergent");
    return hidden;
}

/* Would LLVM move it to the branch? */
static bool is_for_branch(const Elected *e, LLVMValueRef x)
{
    if (is_late(e, x) || LLVMIsAPHINode(x))
        return false;
    if (LLVMGetInstructionParent(x) == e->before)
        return true;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (LLVMGetInstructionParent(LLVMGetUser(u)) != e->block)
            return false;
    return true;
}

static void hide_operands(TlLlvm *l, const Elected *e, LLVMBuilderRef b, LLVMValueRef x,
                          TlMap *known)
{
    for (unsigned i = 0; i < LLVMGetNumArgOperands(x); i++) {
        LLVMValueRef o = LLVMGetOperand(x, i);
        const char *constraints = tied(LLVMTypeOf(o));
        if (!constraints || !LLVMIsAInstruction(o) || !is_for_branch(e, o))
            continue;
        LLVMValueRef hidden = tl_map_get_ptr(known, o);
        if (!hidden) {
            hidden = hide(l, e, b, o, constraints);
            tl_map_put_ptr(known, o, hidden);
        }
        LLVMSetOperand(x, i, hidden);
    }
}

void tl_nvptx_elected(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k)) {
        Elected e;
        if (!find(k, &e))
            continue;
        TlMap known = {.arena = l->arena};
        e.stays = (TlMap){.arena = l->arena};
        move_early(&e, b, LLVMGetNextInstruction(e.elect));
        move_early(&e, b, LLVMGetFirstInstruction(e.block));
        for (LLVMValueRef x = LLVMGetFirstInstruction(e.block); x; x = LLVMGetNextInstruction(x))
            if (is_asm(x))
                hide_operands(l, &e, b, x, &known);
    }
}
