/* Guards of accesses in loops that are the same in all threads of a warp: ptxas computes such a
 * predicate, and keeps it, in the uniform registers, which guard nothing, and so copies it for each
 * access in each iteration (PLOP3).
 *
 *     %p = icmp slt i32 %row, %rows                      %p = icmp slt i32 %row, %rows
 *     loop:                                       =>     %g = and i1 %p, %any
 *       asm "@$1 ld.global ..." (%address, %p)           loop: asm "..." (%address, %g)
 *
 * %any is true in all threads, which ptxas cannot tell, of a register that differs between them.
 *  1. Predicates are looked for that guard asm in a loop, come from outside of it, and depend on
 *     the thread's warp at most.
 *  2. Where a loop has more of them than there are predicates to spare, all stay. */
#include "codegen/workaround/workaround.h"

#include <string.h>

/* There are 7 predicates; a loop needs one for its end, and others. A warp's number is its threads'
 * without their lowest LANE_BITS. */
enum { MOST_GUARDS = 4, MOST_DEPTH = 12, LANE_BITS = 5 };

static bool is_thread(LLVMValueRef x)
{
    return tl_llvm_is_call_of(x, "llvm.nvvm.read.ptx.sreg.tid.x");
}

/* Does the op take only the warp's number of the thread's? */
static bool drops_lane(LLVMValueRef x)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
    if (opcode != LLVMLShr && opcode != LLVMAnd)
        return false;
    LLVMValueRef by = LLVMGetOperand(x, 1);
    if (!is_thread(LLVMGetOperand(x, 0)) || !LLVMIsAConstantInt(by))
        return false;
    uint64_t n = LLVMConstIntGetZExtValue(by);
    return opcode == LLVMLShr ? n >= LANE_BITS : !(n & ((1u << LANE_BITS) - 1));
}

static bool is_arithmetic(LLVMValueRef x)
{
    return LLVMIsABinaryOperator(x) || LLVMIsAICmpInst(x) || LLVMIsACastInst(x) ||
           LLVMIsASelectInst(x);
}

/* The same in all threads of a warp, as ptxas would see? Not: nothing is known. */
static bool is_uniform(LLVMValueRef x, int depth)
{
    if (LLVMIsAConstant(x) || LLVMIsAArgument(x))
        return true;
    if (!LLVMIsAInstruction(x) || depth == 0)
        return false;
    if (tl_llvm_is_call_of(x, "llvm.nvvm.read.ptx.sreg.ctaid.x") || drops_lane(x))
        return true;
    if (!is_arithmetic(x))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(x); i++)
        if (!is_uniform(LLVMGetOperand(x, (unsigned)i), depth - 1))
            return false;
    return true;
}

static bool is_asm(LLVMValueRef x)
{
    return LLVMIsACallInst(x) && LLVMIsAInlineAsm(LLVMGetCalledValue(x));
}

typedef struct Guards {
    TL_VEC(LLVMValueRef) found;
    TL_VEC(uint32_t) loop; /* of each; the same predicate may guard in several loops */
} Guards;

static uint32_t count_in(const Guards *g, uint32_t loop)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->loop.len; i++)
        n += g->loop.data[i] == loop;
    return n;
}

static void note(TlArena *arena, Guards *g, LLVMValueRef p, uint32_t loop)
{
    for (uint32_t i = 0; i < g->found.len; i++)
        if (g->found.data[i] == p && g->loop.data[i] == loop)
            return;
    tl_vec_push(arena, &g->found, p);
    tl_vec_push(arena, &g->loop, loop);
}

static void find_in(TlArena *arena, const TlLoops *loops, LLVMValueRef x, uint32_t loop, Guards *g)
{
    for (unsigned i = 0; i < LLVMGetNumArgOperands(x); i++) {
        LLVMValueRef p = LLVMGetOperand(x, i);
        LLVMTypeRef t = LLVMTypeOf(p);
        if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(t) != 1 ||
            !LLVMIsAInstruction(p))
            continue;
        uint32_t at = tl_loop_around(loops, LLVMGetInstructionParent(p));
        bool outside = at == TL_NO_LOOP || !tl_loop_is_inside(loops, at, loop);
        if (outside && is_uniform(p, MOST_DEPTH))
            note(arena, g, p, loop);
    }
}

/* i1: true, though nobody can tell; at the function's start. */
static LLVMValueRef any_thread(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    static const char TEXT[] = "{ .reg .b32 t; mov.b32 t, %lanemask_lt; setp.ne.b32 $0, t, -1; }";
    static const char RESULT[] = "=b";
    LLVMTypeRef type = LLVMFunctionType(LLVMInt1TypeInContext(l->context), NULL, 0, 0);
    LLVMValueRef text = LLVMGetInlineAsm(type, TEXT, strlen(TEXT), RESULT, strlen(RESULT), 0, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(function)));
    return LLVMBuildCall2(b, type, text, NULL, 0, "");
}

static void hide(LLVMBuilderRef b, LLVMValueRef p, LLVMValueRef any)
{
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(p));
    LLVMValueRef guard = LLVMBuildAnd(b, any, any, "");
    LLVMReplaceAllUsesWith(p, guard);
    LLVMSetOperand(guard, 0, p);
}

void tl_nvptx_guards(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TlLoops loops;
    Guards g = {0};
    tl_loops_find(l->arena, function, &loops);
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k)) {
        uint32_t loop = tl_loop_around(&loops, k);
        if (loop == TL_NO_LOOP)
            continue;
        for (LLVMValueRef x = LLVMGetFirstInstruction(k); x; x = LLVMGetNextInstruction(x))
            if (is_asm(x))
                find_in(l->arena, &loops, x, loop, &g);
    }
    LLVMValueRef any = NULL;
    TlMap done = {.arena = l->arena};
    for (uint32_t i = 0; i < g.found.len; i++) {
        uint64_t key = (uint64_t)(uintptr_t)g.found.data[i], once;
        if (count_in(&g, g.loop.data[i]) > MOST_GUARDS || tl_map_get(&done, key, &once))
            continue;
        tl_map_put(&done, key, 1);
        any = any ? any : any_thread(l, b, function);
        hide(b, g.found.data[i], any);
    }
}
