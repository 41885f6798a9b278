/* Is a kernel too crowded for LLVM's register allocator on AMD GPUs? Estimated in one walk.
 *
 * Instructions are numbered in the order of the text, which is about that of the machine code. A
 * value needs its registers from its number to that of its last use, and what a loop uses from
 * before it needs them to the loop's end. The most words that overlap are counted, of all values
 * and of those that one block alone knows. Two things take LLVM's allocator time by more than the
 * square of the code's length (2000 variables that live at once: 35 s):
 *
 *   1 where more values of one block live at once than there are registers, it looks for each
 *     register whether what is there could go to each other one (canReassign): a quarter more are
 *     left to it, but not where as many values of other blocks live, too
 *   2 where values do not fit that live in many blocks, it looks for each at every block where it
 *     could be in a register (growRegion)
 *
 * What is in a loop is worth more of that time, and sums of products without matrix instructions
 * keep hundreds of words there. Where code has matrix instructions, its order and its registers are
 * mostly theirs; it takes LLVM no longer than its length lets expect. */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

enum { MANY = 1 << 17, MANY_WITH_LOOPS = 3 << 17 }; /* words times blocks */

#define NONE UINT32_MAX

typedef struct Loop {
    uint32_t first, last;  /* the numbers of its first instruction and of the branch back */
    uint32_t outer, other; /* loops: around it; of those that begin there, the next shorter one */
} Loop;

typedef struct Change { /* words that begin to live, less those that end */
    int32_t all, local;
} Change;

typedef struct Walk {
    TlArena *arena;
    TlMap varies, numbers; /* of instructions */
    TL_VEC(Loop) loops;
    uint32_t length, *begin, *inside; /* by number: the loop that begins there, around it; NONE */
    Change *change; /* by number */
} Walk;

unsigned tl_amd_words_of(LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMVectorTypeKind: return LLVMGetVectorSize(t) * tl_amd_words_of(LLVMGetElementType(t));
    case LLVMIntegerTypeKind: return (LLVMGetIntTypeWidth(t) + 31) / 32;
    case LLVMPointerTypeKind: return LLVMGetPointerAddressSpace(t) == 3 ? 1 : 2;
    case LLVMDoubleTypeKind: return 2;
    default: return 1;
    }
}

static uint32_t number_of(const Walk *w, LLVMValueRef x)
{
    uint64_t n = 0;
    bool has = tl_map_get(&w->numbers, (uint64_t)(uintptr_t)x, &n);
    TL_ASSERT(has, "an instruction has no number");
    return (uint32_t)n;
}

/* Gives the numbers, and finds loops: a branch back leads to what has its number already. */
static void number(Walk *w, LLVMValueRef function)
{
    tl_map_init(&w->numbers, w->arena);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            tl_map_put(&w->numbers, (uint64_t)(uintptr_t)x, w->length++);
        LLVMValueRef end = LLVMGetBasicBlockTerminator(b);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(end); i++) {
            LLVMValueRef to = LLVMGetFirstInstruction(LLVMGetSuccessor(end, i));
            if (tl_map_get(&w->numbers, (uint64_t)(uintptr_t)to, NULL))
                tl_vec_push(w->arena, &w->loops,
                            ((Loop){number_of(w, to), w->length - 1, NONE, NONE}));
        }
    }
}

/* Which loop is around each instruction and each loop. */
static void nest(Walk *w)
{
    w->begin = TL_NEW_ARRAY(w->arena, uint32_t, w->length + 1);
    w->inside = TL_NEW_ARRAY(w->arena, uint32_t, w->length + 1);
    memset(w->begin, 0xff, (w->length + 1) * sizeof *w->begin);
    for (uint32_t i = 0; i < w->loops.len; i++) { /* later ones end later */
        Loop *k = &w->loops.data[i];
        k->other = w->begin[k->first];
        w->begin[k->first] = i;
    }
    uint32_t now = NONE;
    for (uint32_t n = 0; n < w->length; n++) {
        while (now != NONE && w->loops.data[now].last < n)
            now = w->loops.data[now].outer;
        for (uint32_t i = w->begin[n]; i != NONE; now = i, i = w->loops.data[i].other)
            w->loops.data[i].outer = now;
        w->inside[n] = now;
    }
}

/* A phi uses what comes along an edge at the edge's end. */
static uint32_t last_in_phi(const Walk *w, LLVMValueRef phi, LLVMValueRef x)
{
    uint32_t last = 0;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingValue(phi, i) == x) {
            LLVMBasicBlockRef from = LLVMGetIncomingBlock(phi, i);
            uint32_t n = number_of(w, LLVMGetBasicBlockTerminator(from));
            last = n > last ? n : last;
        }
    return last;
}

static uint32_t last_of(const Walk *w, LLVMValueRef x, uint32_t first)
{
    uint32_t last = first;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        uint32_t n = LLVMIsAPHINode(user) ? last_in_phi(w, user, x) : number_of(w, user);
        last = n > last ? n : last;
    }
    for (uint32_t i = w->inside[last]; i != NONE; i = w->loops.data[i].outer)
        if (first < w->loops.data[i].first && last < w->loops.data[i].last)
            last = w->loops.data[i].last;
    return last;
}

/* Of an address only the thread's part, as the rest is in scalar registers; conditions are there,
 * too. Scalar instructions do not compute with floats. */
static unsigned words_in_registers(const Walk *w, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMTypeKind kind = LLVMGetTypeKind(t);
    bool is_float = kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind;
    if (kind == LLVMVoidTypeKind || (kind == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) == 1))
        return 0;
    if (!tl_map_get(&w->varies, (uint64_t)(uintptr_t)x, NULL) && (!is_float || LLVMIsALoadInst(x)))
        return 0;
    if (LLVMIsAGetElementPtrInst(x) && !LLVMIsAInstruction(LLVMGetOperand(x, 0)))
        return 1;
    return tl_amd_words_of(t);
}

static bool is_matrix(LLVMValueRef x)
{
    return LLVMIsACallInst(x) && LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind;
}

static bool is_local(LLVMValueRef x)
{
    LLVMBasicBlockRef block = LLVMGetInstructionParent(x);
    if (LLVMIsAPHINode(x))
        return false;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (LLVMIsAPHINode(LLVMGetUser(u)) || LLVMGetInstructionParent(LLVMGetUser(u)) != block)
            return false;
    return true;
}

static void add(Walk *w, LLVMValueRef x, uint32_t first)
{
    int32_t words = (int32_t)words_in_registers(w, x), local = is_local(x) ? words : 0;
    uint32_t last = last_of(w, x, first);
    w->change[first].all += words;
    w->change[first].local += local;
    w->change[last].all -= words;
    w->change[last].local -= local;
}

static Change most_of(const Walk *w)
{
    Change now = {0}, most = {0};
    for (uint32_t n = 0; n < w->length; n++) {
        now.all += w->change[n].all;
        now.local += w->change[n].local;
        most.all = now.all > most.all ? now.all : most.all;
        most.local = now.local > most.local ? now.local : most.local;
    }
    TL_ASSERT(!now.all && !now.local, "%d words live on, %d of them in one block", now.all,
              now.local);
    return most;
}

bool tl_amd_is_crowded(TlArena *arena, LLVMValueRef function, unsigned registers,
                       unsigned *out_words)
{
    Walk w = {.arena = arena};
    uint32_t n = 0, blocks = 0;
    bool matrix = false;
    tl_amd_find_varying(arena, function, &w.varies);
    number(&w, function);
    nest(&w);
    w.change = TL_NEW_ARRAY(arena, Change, w.length + 1);
    memset(w.change, 0, (w.length + 1) * sizeof *w.change);
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
            add(&w, x, n++);
            matrix |= is_matrix(x);
        }
        blocks++;
    }
    Change most = most_of(&w);
    uint32_t all = (uint32_t)most.all, local = (uint32_t)most.local;
    *out_words = all;
    bool here = local > registers + registers / 4 ||
                (local >= registers && all > 2 * registers),
         there = all > registers &&
                 (uint64_t)all * blocks > (w.loops.len ? MANY_WITH_LOOPS : MANY);
    return !matrix && (here || there);
}
