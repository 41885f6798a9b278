/* Offsets and addresses on AMD GPUs, computed in the loop that uses them, for kernels whose
 * registers LLVM has spilled.
 *
 * LLVM computes before a loop whatever depends on a thread's index alone: the offsets of the rows
 * of each swizzled buffer, the rows and the addresses of each access. Each of them occupies a
 * register all the time; in attention they are 60 to 90 beside the tiles. Here such values are
 * computed again in front of their use, from the values that several of them share: first those
 * that are used before and after a loop but not in it, then those that a loop around others uses
 * outside of these, then those that take one instruction, then longer ways, until the rest fits. If
 * as many as possible are wanted, the first two have no end: they cost little.
 *
 * LLVM would move what it sees to be equal in every iteration out of the loop again. So the first
 * step uses a constant that LLVM cannot see through or, if it has none, such an operand. */
#include "codegen/workaround/workaround.h"

/* What LLVM's order of the code and copies of tuples take beside the values: of all values, and
 * beside what was spilled; steps of a way. */
enum { RESERVE = 24, FEW = 4, MOST_STEPS = 6 };

typedef struct Again {
    TlLlvm *l;
    LLVMBuilderRef b;
    TlAmdLive live;
    TlMap varies;
    TlMap numbers; /* of blocks, in the order of the text */
    uint64_t first, last; /* those of the first and the last block of a loop */
    uint32_t loop; /* around the block that is looked at; TL_NO_LOOP: the block is behind loops */
    TlMap made; /* in the block: value to what is computed again */
    int64_t excess;
} Again;

static uint64_t block_number(const Again *a, LLVMBasicBlockRef block)
{
    uint64_t n = 0;
    tl_map_get(&a->numbers, (uint64_t)(uintptr_t)block, &n);
    return n;
}

/* Is it computed before the loop, or before all loops when the block is behind them? */
static bool is_outside(const Again *a, LLVMValueRef x)
{
    if (a->loop == TL_NO_LOOP)
        return block_number(a, LLVMGetInstructionParent(x)) < a->first;
    uint32_t loop = tl_loop_around(&a->live.loops, LLVMGetInstructionParent(x));
    return loop == TL_NO_LOOP || !tl_loop_is_inside(&a->live.loops, loop, a->loop);
}

/* A pointer or a number of 32 or 64 bits. */
static bool is_word(LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    switch (LLVMGetTypeKind(t)) {
    case LLVMPointerTypeKind: return true;
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t) == 32 || LLVMGetIntTypeWidth(t) == 64;
    default: return false;
    }
}

/* One instruction of a thread, computed before the loop. */
static bool is_step(const Again *a, LLVMValueRef x)
{
    if (!LLVMIsAInstruction(x) || !is_outside(a, x) ||
        !tl_map_get(&a->varies, (uint64_t)(uintptr_t)x, NULL))
        return false;
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMIntToPtr: return is_word(x) && is_word(LLVMGetOperand(x, 0));
    case LLVMGetElementPtr: return LLVMGetNumOperands(x) == 2;
    default: return false;
    }
}

static bool has_one_use(LLVMValueRef x)
{
    LLVMUseRef u = LLVMGetFirstUse(x);
    return u && !LLVMGetNextUse(u);
}

/* Is it one step from what is there anyway, by a constant? Rows of accesses are, and those before
 * and behind a loop share them. */
static bool is_near(const Again *a, LLVMValueRef x)
{
    return LLVMGetNumOperands(x) == 2 && LLVMIsAConstantInt(LLVMGetOperand(x, 1)) &&
           !is_step(a, LLVMGetOperand(x, 0));
}

/* Is it computed again with what takes it? */
static bool goes_with(const Again *a, LLVMValueRef x)
{
    return is_step(a, x) && (has_one_use(x) || (a->loop == TL_NO_LOOP && is_near(a, x)));
}

/* How many steps, with those of operands that nothing else wants. */
static unsigned steps_of(const Again *a, LLVMValueRef x)
{
    unsigned steps = 1;
    for (int i = 0; i < LLVMGetNumOperands(x) && steps <= MOST_STEPS; i++) {
        LLVMValueRef v = LLVMGetOperand(x, (unsigned)i);
        if (goes_with(a, v))
            steps += steps_of(a, v);
    }
    return steps;
}

/* The first step of a way: a constant, else what varies, is one that LLVM does not see. */
static void hide_operand(Again *a, LLVMValueRef step)
{
    int n = LLVMGetNumOperands(step), varying = -1;
    for (int i = 0; i < n; i++) {
        LLVMValueRef v = LLVMGetOperand(step, (unsigned)i);
        if (LLVMIsAConstantInt(v)) {
            LLVMSetOperand(step, (unsigned)i, tl_amd_hide(a->l, a->b, v, "=s,0"));
            return;
        }
        if (tl_map_get(&a->varies, (uint64_t)(uintptr_t)v, NULL))
            varying = i;
    }
    TL_ASSERT(varying >= 0, "a step of what does not vary");
    LLVMValueRef v = LLVMGetOperand(step, (unsigned)varying);
    LLVMValueRef hidden = tl_amd_hide(a->l, a->b, v, "=v,0");
    tl_map_put_ptr(&a->varies, hidden, hidden);
    LLVMSetOperand(step, (unsigned)varying, hidden);
}

/* x again, where the builder stands. */
static LLVMValueRef compute(Again *a, LLVMValueRef x)
{
    LLVMValueRef again = tl_map_get_ptr(&a->made, x), operands[2] = {NULL, NULL};
    bool is_first = true;
    if (again)
        return again;
    for (int i = 0; i < LLVMGetNumOperands(x); i++) {
        LLVMValueRef v = LLVMGetOperand(x, (unsigned)i);
        if (goes_with(a, v)) {
            operands[i] = compute(a, v);
            is_first = false;
        }
    }
    again = LLVMInstructionClone(x);
    for (int i = 0; i < 2; i++)
        if (operands[i])
            LLVMSetOperand(again, (unsigned)i, operands[i]);
    if (is_first)
        hide_operand(a, again);
    LLVMInsertIntoBuilder(a->b, again);
    tl_map_put_ptr(&a->made, x, again);
    tl_map_put_ptr(&a->varies, again, again);
    return again;
}

/* ---- which ---- */

static void use_again(Again *a, LLVMValueRef user, unsigned most)
{
    for (int i = 0; i < LLVMGetNumOperands(user); i++) {
        LLVMValueRef v = LLVMGetOperand(user, (unsigned)i);
        bool known = tl_map_get_ptr(&a->made, v) != NULL;
        if (!known && (a->excess <= 0 || !is_step(a, v) || steps_of(a, v) > most))
            continue;
        LLVMPositionBuilderBefore(a->b, user);
        LLVMSetOperand(user, (unsigned)i, compute(a, v));
        a->excess -= known ? 0 : tl_amd_words_of(LLVMTypeOf(v));
    }
}

static void look_at_block(Again *a, LLVMBasicBlockRef block, unsigned most)
{
    a->loop = tl_loop_around(&a->live.loops, block);
    tl_map_init(&a->made, a->l->arena);
    LLVMValueRef x, next;
    for (x = LLVMGetFirstInstruction(block); x; x = next) {
        next = LLVMGetNextInstruction(x);
        if (!LLVMIsAPHINode(x))
            use_again(a, x, most);
    }
}

/* Of the blocks: their numbers, and between which all loops are. */
static void number_blocks(Again *a, LLVMValueRef function)
{
    uint64_t n = 1;
    tl_map_init(&a->numbers, a->l->arena);
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b;
         b = LLVMGetNextBasicBlock(b), n++) {
        tl_map_put(&a->numbers, (uint64_t)(uintptr_t)b, n);
        if (tl_loop_around(&a->live.loops, b) == TL_NO_LOOP)
            continue;
        a->first = a->first ? a->first : n;
        a->last = n;
    }
}

/* Behind all loops; in a loop around others, but in none of these; in an innermost one. */
typedef enum Part { BEHIND, AROUND, INNERMOST, NOWHERE } Part;

static Part part_of(const Again *a, LLVMBasicBlockRef b)
{
    const TlLoops *l = &a->live.loops;
    uint32_t loop = tl_loop_around(l, b);
    if (loop == TL_NO_LOOP)
        return block_number(a, b) > a->last ? BEHIND : NOWHERE;
    for (uint32_t i = 0; i < l->loops.len; i++)
        if (l->loops.data[i].outer == loop)
            return AROUND;
    return INNERMOST;
}

static void look(Again *a, LLVMValueRef function, Part part, unsigned most)
{
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        if (part_of(a, b) == part)
            look_at_block(a, b, most);
}

bool tl_amd_offsets(TlLlvm *l, LLVMValueRef function, unsigned registers, unsigned spilled,
                    bool all)
{
    Again a = {.l = l, .b = LLVMCreateBuilderInContext(l->context)};
    tl_amd_find_live(l->arena, function, &a.live);
    tl_amd_find_varying(l->arena, function, &a.varies);
    int64_t more = (int64_t)a.live.most + RESERVE - registers;
    a.excess = spilled + FEW;
    bool few = more > a.excess && !all;
    a.excess = all && more > a.excess ? more : a.excess;
    number_blocks(&a, function);
    if (a.excess > 0 && a.first) {
        int64_t excess = a.excess;
        a.excess = all ? INT64_MAX : excess;
        look(&a, function, BEHIND, MOST_STEPS);
        look(&a, function, AROUND, MOST_STEPS);
        a.excess = all ? excess : a.excess;
        look(&a, function, INNERMOST, 1);
        look(&a, function, INNERMOST, MOST_STEPS);
    }
    LLVMDisposeBuilder(a.b);
    return few && a.excess <= 0;
}
