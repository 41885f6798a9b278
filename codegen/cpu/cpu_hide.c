/* Addresses that loops share, hidden from LLVM's loop strength reduction.
 *
 * An address that is computed before a loop and indexed in it is most often the start of a row, and
 * so it should stay, for a base and an index are what an instruction's operand has. Loop strength
 * reduction looks through it, though, and spends a fifth of code generation on ways to share parts
 * of addresses among all the loops around, for code that is longer in the end. So nothing is known
 * of the address any more: it goes through an intrinsic, which vanishes when instructions are
 * selected. */
#include "codegen/cpu/cpu.h"

/* A block of the function; the loops are natural ones, named by their headers. */
typedef struct Node {
    LLVMBasicBlockRef block;
    TL_VEC(uint32_t) from; /* predecessors */
    uint32_t header, size; /* of the innermost loop around; size 0: none */
    uint32_t next;         /* successors seen by the walk */
    enum { UNSEEN, ON_PATH, DONE } state;
} Node;

typedef struct Flow {
    TlArena *arena;
    TL_VEC(Node) nodes;
    TlMap index; /* block to its place in nodes */
} Flow;

static uint32_t index_of(const Flow *f, LLVMBasicBlockRef block)
{
    uint64_t i = 0;
    bool known = tl_map_get(&f->index, (uint64_t)(uintptr_t)block, &i);
    TL_ASSERT(known, "a block of another function");
    return (uint32_t)i;
}

static void read_blocks(Flow *f, LLVMValueRef function)
{
    tl_map_init(&f->index, f->arena);
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
        tl_map_put(&f->index, (uint64_t)(uintptr_t)b, f->nodes.len);
        tl_vec_push(f->arena, &f->nodes, (Node){.block = b});
    }
    for (uint32_t i = 0; i < f->nodes.len; i++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(f->nodes.data[i].block);
        for (unsigned k = 0; k < LLVMGetNumSuccessors(end); k++)
            tl_vec_push(f->arena, &f->nodes.data[index_of(f, LLVMGetSuccessor(end, k))].from, i);
    }
}

/* The loop of one back edge: all from which `latch` is reached without passing `header`. Of the
 * loops around a block, the smallest is the innermost. */
static void add_loop(Flow *f, uint32_t header, uint32_t latch)
{
    TL_VEC(uint32_t) in = {0};
    TlMap seen;
    tl_map_init(&seen, f->arena);
    tl_map_put(&seen, header, 1);
    tl_vec_push(f->arena, &in, header);
    if (latch != header) {
        tl_map_put(&seen, latch, 1);
        tl_vec_push(f->arena, &in, latch);
    }
    for (uint32_t i = 1; i < in.len; i++) {
        const Node *n = &f->nodes.data[in.data[i]];
        for (uint32_t k = 0; k < n->from.len; k++) {
            if (tl_map_get(&seen, n->from.data[k], NULL))
                continue;
            tl_map_put(&seen, n->from.data[k], 1);
            tl_vec_push(f->arena, &in, n->from.data[k]);
        }
    }
    for (uint32_t i = 0; i < in.len; i++) {
        Node *n = &f->nodes.data[in.data[i]];
        if (!n->size || in.len < n->size)
            n->header = header, n->size = in.len;
    }
}

/* A walk in depth finds the back edges: those to a block of the path that it is on. */
static void find_loops(Flow *f)
{
    TL_VEC(uint32_t) path = {0};
    tl_vec_push(f->arena, &path, 0);
    f->nodes.data[0].state = ON_PATH;
    while (path.len) {
        uint32_t at = path.data[path.len - 1];
        Node *n = &f->nodes.data[at];
        LLVMValueRef end = LLVMGetBasicBlockTerminator(n->block);
        if (n->next == LLVMGetNumSuccessors(end)) {
            n->state = DONE;
            path.len--;
            continue;
        }
        uint32_t to = index_of(f, LLVMGetSuccessor(end, n->next++));
        if (f->nodes.data[to].state == ON_PATH)
            add_loop(f, to, at);
        if (f->nodes.data[to].state != UNSEEN)
            continue;
        f->nodes.data[to].state = ON_PATH;
        tl_vec_push(f->arena, &path, to);
    }
}

static bool is_used_in_other_loop(const Flow *f, const Node *n, LLVMValueRef x)
{
    for (LLVMUseRef use = LLVMGetFirstUse(x); use; use = LLVMGetNextUse(use)) {
        LLVMBasicBlockRef block = LLVMGetInstructionParent(LLVMGetUser(use));
        if (block == n->block)
            continue;
        const Node *m = &f->nodes.data[index_of(f, block)];
        if (m->size && (!n->size || m->header != n->header))
            return true;
    }
    return false;
}

static void hide_in_block(TlLlvm *l, LLVMBuilderRef b, const Flow *f, const Node *n)
{
    LLVMTypeRef ptr = LLVMPointerTypeInContext(l->context, 0);
    for (LLVMValueRef x = LLVMGetFirstInstruction(n->block), next; x; x = next) {
        next = LLVMGetNextInstruction(x);
        if (!LLVMIsAGetElementPtrInst(x) || LLVMTypeOf(x) != ptr || !is_used_in_other_loop(f, n, x))
            continue;
        TL_ASSERT(next, "an address ends a block");
        LLVMPositionBuilderBefore(b, next);
        LLVMValueRef hidden = tl_llvm_intrinsic(l, b, "llvm.strip.invariant.group", &ptr, 1, &x, 1);
        LLVMReplaceAllUsesWith(x, hidden);
        LLVMSetOperand(hidden, 0, x);
    }
}

void tl_cpu_hide_addresses(TlLlvm *l)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    for (LLVMValueRef fn = LLVMGetFirstFunction(l->module); fn; fn = LLVMGetNextFunction(fn)) {
        Flow f = {.arena = l->arena};
        read_blocks(&f, fn);
        if (!f.nodes.len)
            continue;
        find_loops(&f);
        for (uint32_t i = 1; i < f.nodes.len; i++) /* the first block is before all loops */
            hide_in_block(l, b, &f, &f.nodes.data[i]);
    }
    LLVMDisposeBuilder(b);
}
