/* How many words of vector registers the values of a kernel take on AMD GPUs, instruction by
 * instruction.
 *
 * Instructions are numbered in the order of the text, which is roughly that of the machine code. A
 * value needs its registers from its own number to that of its last use; a value from before a
 * loop that is used in the loop needs them until the loop's end. */
#include "codegen/workaround/workaround.h"

#include <string.h>

typedef struct Walk {
    TlArena *arena;
    TlMap varies, numbers; /* of instructions */
    const TlLoops *loops;
    uint32_t *ends; /* by loop: the number of its last instruction */
    uint32_t length;
    int32_t *all, *local; /* by number: words that begin to live, less those that end */
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

static bool is_product(LLVMValueRef x)
{
    size_t n;
    if (LLVMIsABinaryOperator(x))
        return LLVMGetInstructionOpcode(x) == LLVMMul;
    return LLVMIsACallInst(x) && LLVMIsAFunction(LLVMGetCalledValue(x)) &&
           !strncmp(LLVMGetValueName2(LLVMGetCalledValue(x), &n), "llvm.fma", 8);
}

TlAmdProducts tl_amd_find_products(LLVMValueRef function)
{
    uint64_t instructions = 0, products = 0;
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x)) {
            if (LLVMIsACallInst(x) && LLVMGetTypeKind(LLVMTypeOf(x)) == LLVMVectorTypeKind)
                return TL_AMD_MATRIX;
            instructions++;
            products += is_product(x);
        }
    return 8 * products < instructions ? TL_AMD_FEW_PRODUCTS : TL_AMD_MANY_PRODUCTS;
}

static uint32_t instruction_number(const Walk *w, LLVMValueRef x)
{
    uint64_t n = 0;
    bool has = tl_map_get(&w->numbers, (uint64_t)(uintptr_t)x, &n);
    TL_ASSERT(has, "an instruction has no number");
    return (uint32_t)n;
}

static void number(Walk *w, LLVMValueRef function)
{
    tl_map_init(&w->numbers, w->arena);
    w->ends = TL_NEW_ARRAY(w->arena, uint32_t, w->loops->loops.len + 1);
    LLVMBasicBlockRef b;
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            tl_map_put(&w->numbers, (uint64_t)(uintptr_t)x, w->length++);
        uint32_t i = tl_loop_around(w->loops, b);
        for (; i != TL_NO_LOOP; i = w->loops->loops.data[i].outer)
            w->ends[i] = w->length - 1; /* later blocks have greater numbers */
    }
}

/* A phi uses what comes along an edge at the edge's end. */
static LLVMValueRef last_in_phi(const Walk *w, LLVMValueRef phi, LLVMValueRef x)
{
    LLVMValueRef last = phi;
    uint32_t most = 0;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingValue(phi, i) == x) {
            LLVMValueRef end = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i));
            uint32_t n = instruction_number(w, end);
            if (n >= most)
                most = n, last = end;
        }
    return last;
}

static uint32_t last_of(const Walk *w, LLVMValueRef x, uint32_t first)
{
    uint32_t last = first;
    uint32_t loop = tl_loop_around(w->loops, LLVMGetInstructionParent(x));
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
        LLVMValueRef user = LLVMGetUser(u);
        user = LLVMIsAPHINode(user) ? last_in_phi(w, user, x) : user;
        uint32_t n = instruction_number(w, user);
        last = n > last ? n : last;
        uint32_t i = tl_loop_around(w->loops, LLVMGetInstructionParent(user));
        for (; i != TL_NO_LOOP && !tl_loop_is_inside(w->loops, loop, i);
             i = w->loops->loops.data[i].outer)
            last = w->ends[i] > last ? w->ends[i] : last;
    }
    return last;
}

/* Elements that are poison take no register: long vectors are put together from short ones that are
 * made as long first. */
static unsigned words_of_shuffle(LLVMValueRef x)
{
    unsigned n = LLVMGetNumMaskElements(x), some = 0;
    for (unsigned i = 0; i < n; i++)
        some += LLVMGetMaskValue(x, i) >= 0;
    return (tl_amd_words_of(LLVMTypeOf(x)) * some + n - 1) / n;
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
    return LLVMIsAShuffleVectorInst(x) ? words_of_shuffle(x) : tl_amd_words_of(t);
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
    w->all[first] += words;
    w->local[first] += local;
    w->all[last] -= words;
    w->local[last] -= local;
}

void tl_amd_find_live(TlArena *arena, LLVMValueRef function, TlAmdLive *out)
{
    *out = (TlAmdLive){0};
    tl_loops_find(arena, function, &out->loops);
    Walk w = {.arena = arena, .loops = &out->loops};
    tl_amd_find_varying(arena, function, &w.varies);
    number(&w, function);
    w.all = TL_NEW_ARRAY(arena, int32_t, w.length + 1);
    w.local = TL_NEW_ARRAY(arena, int32_t, w.length + 1);
    memset(w.all, 0, (w.length + 1) * sizeof *w.all);
    memset(w.local, 0, (w.length + 1) * sizeof *w.local);
    uint32_t n = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef x = LLVMGetFirstInstruction(b); x; x = LLVMGetNextInstruction(x))
            add(&w, x, n++);
    for (n = 1; n < w.length; n++) {
        w.all[n] += w.all[n - 1];
        w.local[n] += w.local[n - 1];
    }
    TL_ASSERT(!w.length || (!w.all[w.length - 1] && !w.local[w.length - 1]),
              "%d words live on, %d of them in one block", w.all[w.length - 1],
              w.local[w.length - 1]);
    for (n = 0; n < w.length; n++) {
        TL_ASSERT(w.all[n] >= w.local[n] && w.local[n] >= 0,
                  "%d words live, %d of them in one block", w.all[n], w.local[n]);
        out->most = (uint32_t)w.all[n] > out->most ? (uint32_t)w.all[n] : out->most;
        out->most_local =
            (uint32_t)w.local[n] > out->most_local ? (uint32_t)w.local[n] : out->most_local;
    }
    out->all = w.all;
    out->local = w.local;
}
