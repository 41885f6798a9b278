/* The order of a long computation on AMD GPUs: depth first.
 *
 * The SIMT lowering makes an op for all registers of a tile before the next op, and LLVM schedules
 * from that order: of exp over 128 elements of a thread 128 intermediate results of each step live
 * at once. They do not fit the registers, and LLVM's allocator takes time by more than the square
 * of how many do not. So where many instructions that neither touch memory nor wait for other
 * threads follow each other, what can be computed of the last result comes first. */
#include "codegen/leaf/leaf_expand.h"

#include <string.h>

enum { LONG = 512 };

typedef struct Node {
    LLVMValueRef instruction;
    uint32_t waits; /* operands in the run that are not ordered yet */
} Node;

typedef TL_VEC(uint32_t) Numbers;

typedef struct Run {
    TlArena *arena;
    TL_VEC(Node) nodes;
    TlMap number;
    Numbers ready; /* a stack */
} Run;

static bool has_attribute(LLVMValueRef f, const char *name, bool zero)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAttributeRef a = LLVMGetEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, kind);
    return a && (!zero || LLVMGetEnumAttributeValue(a) == 0);
}

static bool is_pure(LLVMValueRef x)
{
    LLVMValueRef f;
    switch (LLVMGetInstructionOpcode(x)) {
    case LLVMPHI:
    case LLVMLoad:
    case LLVMStore:
    case LLVMAlloca:
    case LLVMFence:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg: return false;
    case LLVMCall:
        f = LLVMGetCalledValue(x);
        return LLVMIsAFunction(f) && LLVMGetIntrinsicID(f) &&
               LLVMGetTypeKind(LLVMTypeOf(x)) != LLVMVoidTypeKind &&
               has_attribute(f, "memory", true) && !has_attribute(f, "convergent", false);
    default: return !LLVMIsATerminatorInst(x);
    }
}

/* Of those that can be computed now, the first goes on top. */
static void push(Run *r, uint32_t base, uint32_t n)
{
    tl_vec_push(r->arena, &r->ready, n);
    for (uint32_t i = r->ready.len - 1; i > base && r->ready.data[i - 1] < n; i--) {
        r->ready.data[i] = r->ready.data[i - 1];
        r->ready.data[i - 1] = n;
    }
}

static Node *user_in(Run *r, LLVMUseRef use, uint32_t *out_number)
{
    uint64_t n;
    if (!tl_map_get(&r->number, (uint64_t)(uintptr_t)LLVMGetUser(use), &n))
        return NULL;
    *out_number = (uint32_t)n;
    return &r->nodes.data[n];
}

static void number(Run *r)
{
    uint32_t n;
    Node *user;
    tl_map_init(&r->number, r->arena);
    for (n = 0; n < r->nodes.len; n++)
        tl_map_put(&r->number, (uint64_t)(uintptr_t)r->nodes.data[n].instruction, n);
    for (uint32_t i = 0; i < r->nodes.len; i++)
        for (LLVMUseRef u = LLVMGetFirstUse(r->nodes.data[i].instruction); u; u = LLVMGetNextUse(u))
            if ((user = user_in(r, u, &n)))
                user->waits++;
}

/* Moves the run's instructions before `end`. */
static void order(Run *r, LLVMBuilderRef b, LLVMValueRef end)
{
    number(r);
    r->ready.len = 0;
    for (uint32_t i = r->nodes.len; i--;)
        if (!r->nodes.data[i].waits)
            tl_vec_push(r->arena, &r->ready, i);
    LLVMPositionBuilderBefore(b, end);
    LLVMSetCurrentDebugLocation2(b, NULL); /* or everything put there gets the line of `end` */
    while (r->ready.len) {
        LLVMValueRef x = r->nodes.data[r->ready.data[--r->ready.len]].instruction;
        uint32_t base = r->ready.len, n;
        LLVMInstructionRemoveFromParent(x);
        LLVMInsertIntoBuilder(b, x);
        for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u)) {
            Node *user = user_in(r, u, &n);
            if (user && !--user->waits)
                push(r, base, n);
        }
    }
}

static void order_block(Run *r, LLVMBuilderRef b, LLVMBasicBlockRef block)
{
    r->nodes.len = 0;
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x)) {
        if (is_pure(x)) {
            tl_vec_push(r->arena, &r->nodes, ((Node){x, 0}));
            continue;
        }
        if (r->nodes.len >= LONG)
            order(r, b, x);
        r->nodes.len = 0;
    }
}

void tl_amd_order(TlLlvm *l)
{
    Run r = {.arena = l->arena};
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    LLVMValueRef f;
    for (f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef x = LLVMGetFirstBasicBlock(f); x; x = LLVMGetNextBasicBlock(x))
            order_block(&r, b, x);
    LLVMDisposeBuilder(b);
}
