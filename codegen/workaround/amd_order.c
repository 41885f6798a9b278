/* The order of a long computation on AMD GPUs: depth first.
 *
 * The SIMT lowering emits an op for all registers of a tile before the next op, and LLVM schedules
 * from that order: for exp of 128 elements of a thread, 128 intermediate results of each step live
 * at once. They do not fit the registers, and LLVM's allocator slows down with more than the
 * square of the number that do not. So in long runs of instructions that neither touch memory nor
 * wait for other threads, each instruction is put where its first user needs it, and of the
 * operands of a user, the one that takes longest to compute comes first.
 *
 * Loads stay early, where they are, because the code after them hides their latency. Only if so
 * many values are loaded, or live already, that they would not fit the registers, loads are moved
 * in front of their first users, too; they never pass a store. */
#include "codegen/workaround/workaround.h"

#include <string.h>

/* Instructions that are worth it; words of vector registers that are many, and of scalar ones. */
enum { LONG = 512, MANY_VECTORS = 192, MANY_SCALARS = 64 };

#define NONE UINT32_MAX

typedef struct Node {
    LLVMValueRef instruction;
    uint32_t depth;
    bool is_load, placed;
} Node;

typedef struct Run {
    TlArena *arena;
    TlMap varies; /* instructions whose values may differ between the threads of a wave */
    TL_VEC(Node) nodes;
    TlMap number; /* of instructions in nodes: their place there */
    TL_VEC(uint32_t) stack;
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

static bool is_plain_load(LLVMValueRef x)
{
    return LLVMGetInstructionOpcode(x) == LLVMLoad && !LLVMGetVolatile(x) &&
           LLVMGetOrdering(x) == LLVMAtomicOrderingNotAtomic;
}

/* ---- how crowded the registers are ---- */

static bool is_varying(const Run *r, LLVMValueRef x)
{
    return tl_map_get(&r->varies, (uint64_t)(uintptr_t)x, NULL);
}

static const Node *node_of(const Run *r, LLVMValueRef x)
{
    uint64_t n;
    return tl_map_get(&r->number, (uint64_t)(uintptr_t)x, &n) ? &r->nodes.data[n] : NULL;
}

/* Words of different values from before the run. */
static unsigned words_before(const Run *r)
{
    TlMap seen;
    unsigned words = 0;
    tl_map_init(&seen, r->arena);
    for (uint32_t i = 0; i < r->nodes.len; i++) {
        LLVMValueRef x = r->nodes.data[i].instruction;
        for (int k = 0; k < LLVMGetNumOperands(x); k++) {
            LLVMValueRef v = LLVMGetOperand(x, (unsigned)k);
            if (!LLVMIsAInstruction(v) || !is_varying(r, v) || node_of(r, v) ||
                tl_map_get(&seen, (uint64_t)(uintptr_t)v, NULL))
                continue;
            tl_map_put_ptr(&seen, v, v);
            words += tl_amd_words_of(LLVMTypeOf(v));
        }
    }
    return words;
}

/* Would what is loaded in the run, and is there before it, hardly fit the registers? */
static bool is_crowded(const Run *r)
{
    unsigned vectors = 0, scalars = 0;
    for (uint32_t i = 0; i < r->nodes.len; i++) {
        LLVMValueRef x = r->nodes.data[i].instruction;
        if (r->nodes.data[i].is_load)
            *(is_varying(r, x) ? &vectors : &scalars) += tl_amd_words_of(LLVMTypeOf(x));
    }
    return scalars > MANY_SCALARS || (vectors && vectors + words_before(r) > MANY_VECTORS);
}

/* ---- the order ---- */

/* Numbers and depths: how many instructions of the run must come before, one after another. */
static void number(Run *r)
{
    tl_map_init(&r->number, r->arena);
    for (uint32_t i = 0; i < r->nodes.len; i++) {
        Node *n = &r->nodes.data[i];
        tl_map_put(&r->number, (uint64_t)(uintptr_t)n->instruction, i);
        for (int k = 0; k < LLVMGetNumOperands(n->instruction); k++) {
            const Node *from = node_of(r, LLVMGetOperand(n->instruction, (unsigned)k));
            if (from && from->depth >= n->depth)
                n->depth = from->depth + 1;
        }
    }
}

/* Nobody in these nodes needs it. */
static bool is_result(const Run *r, LLVMValueRef x, uint32_t first, uint32_t end)
{
    uint64_t n;
    for (LLVMUseRef u = LLVMGetFirstUse(x); u; u = LLVMGetNextUse(u))
        if (tl_map_get(&r->number, (uint64_t)(uintptr_t)LLVMGetUser(u), &n) && n >= first &&
            n < end)
            return false;
    return true;
}

/* The operand that has no place yet and the most to compute before it; NONE. */
static uint32_t next_operand(const Run *r, LLVMValueRef x, uint32_t first, uint32_t end)
{
    uint32_t next = NONE;
    for (int i = 0; i < LLVMGetNumOperands(x); i++) {
        uint64_t n, key = (uint64_t)(uintptr_t)LLVMGetOperand(x, (unsigned)i);
        if (tl_map_get(&r->number, key, &n) && n >= first && n < end &&
            !r->nodes.data[n].placed &&
            (next == NONE || r->nodes.data[n].depth > r->nodes.data[next].depth))
            next = (uint32_t)n;
    }
    return next;
}

/* Puts a node's instruction where the builder is, after those that it needs. */
static void place(Run *r, LLVMBuilderRef b, uint32_t root, uint32_t first, uint32_t end)
{
    tl_vec_push(r->arena, &r->stack, root);
    while (r->stack.len) {
        Node *n = &r->nodes.data[r->stack.data[r->stack.len - 1]];
        uint32_t operand = next_operand(r, n->instruction, first, end);
        if (operand != NONE) {
            tl_vec_push(r->arena, &r->stack, operand);
            continue;
        }
        TL_ASSERT(!n->placed, "an instruction is put twice");
        n->placed = true;
        LLVMInstructionRemoveFromParent(n->instruction);
        LLVMInsertIntoBuilder(b, n->instruction);
        r->stack.len--;
    }
}

/* Puts nodes first..end-1 in front of `before`. */
static void order(Run *r, LLVMBuilderRef b, uint32_t first, uint32_t end, LLVMValueRef before)
{
    TL_ASSERT(first <= end && end <= r->nodes.len, "nodes %u to %u of %u", first, end,
              r->nodes.len);
    LLVMPositionBuilderBefore(b, before);
    LLVMSetCurrentDebugLocation2(b, NULL); /* or everything put there gets the line of `before` */
    for (uint32_t i = first; i < end; i++)
        if (is_result(r, r->nodes.data[i].instruction, first, end))
            place(r, b, i, first, end);
    for (uint32_t i = first; i < end; i++)
        TL_ASSERT(r->nodes.data[i].placed, "node %u of %u has no place", i, end);
}

/* The runs between loads, which stay. */
static void order_between(Run *r, LLVMBuilderRef b, LLVMValueRef before)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i <= r->nodes.len; i++) {
        if (i < r->nodes.len && !r->nodes.data[i].is_load)
            continue;
        if (i - first >= LONG)
            order(r, b, first, i, i < r->nodes.len ? r->nodes.data[i].instruction : before);
        first = i + 1;
    }
}

static void order_run(Run *r, LLVMBuilderRef b, LLVMValueRef before)
{
    if (r->nodes.len >= LONG) {
        number(r);
        if (is_crowded(r))
            order(r, b, 0, r->nodes.len, before);
        else
            order_between(r, b, before);
    }
    r->nodes.len = 0;
}

static void order_block(Run *r, LLVMBuilderRef b, LLVMBasicBlockRef block)
{
    for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x)) {
        bool is_load = is_plain_load(x);
        if (is_load || is_pure(x))
            tl_vec_push(r->arena, &r->nodes, ((Node){x, 0, is_load, false}));
        else
            order_run(r, b, x);
    }
}

void tl_amd_order(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    Run r = {.arena = l->arena};
    tl_amd_find_varying(l->arena, function, &r.varies);
    LLVMBasicBlockRef k;
    for (k = LLVMGetFirstBasicBlock(function); k; k = LLVMGetNextBasicBlock(k))
        order_block(&r, b, k);
}
