/* Finds loops: a depth-first walk from the first block finds the back edges, which lead to a block
 * on the current path. The blocks that reach such an edge without passing its target form the
 * target's loop. */
#include "codegen/target/llvm_loops.h"

#include <stdlib.h>

#include "ir/support/guard.h"

typedef struct Node {
    LLVMBasicBlockRef block;
    TL_VEC(uint32_t) from;    /* predecessors */
    TL_VEC(uint32_t) latches; /* blocks of a branch back to this one */
    uint32_t next;            /* successors seen by the walk */
    uint32_t mark;            /* the last header in whose loop it was found, and one */
    enum { UNSEEN, ON_PATH, DONE } state;
} Node;

typedef struct Body {
    uint32_t header;
    TL_VEC(uint32_t) nodes;
} Body;

typedef struct Flow {
    TlArena *arena;
    TL_VEC(Node) nodes;
    TlMap index; /* block to its place in nodes */
    TL_VEC(Body) bodies;
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

static void walk(Flow *f)
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
            tl_vec_push(f->arena, &f->nodes.data[to].latches, at);
        if (f->nodes.data[to].state != UNSEEN)
            continue;
        f->nodes.data[to].state = ON_PATH;
        tl_vec_push(f->arena, &path, to);
    }
}

static void add_node(Flow *f, Body *body, uint32_t i)
{
    Node *n = &f->nodes.data[i];
    if (n->mark == body->header + 1)
        return;
    n->mark = body->header + 1;
    tl_vec_push(f->arena, &body->nodes, i);
}

static void add_body(Flow *f, uint32_t header)
{
    Body body = {.header = header};
    const Node *h = &f->nodes.data[header];
    add_node(f, &body, header);
    for (uint32_t i = 0; i < h->latches.len; i++)
        add_node(f, &body, h->latches.data[i]);
    for (uint32_t i = 1; i < body.nodes.len; i++) {
        const Node *n = &f->nodes.data[body.nodes.data[i]];
        for (uint32_t k = 0; k < n->from.len; k++)
            add_node(f, &body, n->from.data[k]);
    }
    tl_vec_push(f->arena, &f->bodies, body);
}

static int by_size(const void *a, const void *b)
{
    const Body *x = a, *y = b;
    if (x->nodes.len != y->nodes.len)
        return x->nodes.len > y->nodes.len ? -1 : 1;
    return (x->header > y->header) - (x->header < y->header);
}

void tl_loops_find(TlArena *arena, LLVMValueRef function, TlLoops *out)
{
    Flow f = {.arena = arena};
    *out = (TlLoops){0};
    tl_map_init(&out->innermost, arena);
    read_blocks(&f, function);
    if (!f.nodes.len)
        return;
    walk(&f);
    for (uint32_t i = 0; i < f.nodes.len; i++)
        if (f.nodes.data[i].latches.len)
            add_body(&f, i);
    if (f.bodies.len)
        qsort(f.bodies.data, f.bodies.len, sizeof *f.bodies.data, by_size);
    for (uint32_t i = 0; i < f.bodies.len; i++) { /* smaller ones later */
        const Body *body = &f.bodies.data[i];
        LLVMBasicBlockRef header = f.nodes.data[body->header].block;
        TlLoop loop = {header, tl_loop_around(out, header)};
        tl_vec_push(arena, &out->loops, loop);
        for (uint32_t k = 0; k < body->nodes.len; k++)
            tl_map_put(&out->innermost,
                       (uint64_t)(uintptr_t)f.nodes.data[body->nodes.data[k]].block, i);
    }
}

uint32_t tl_loop_around(const TlLoops *loops, LLVMBasicBlockRef block)
{
    uint64_t i = TL_NO_LOOP;
    return tl_map_get(&loops->innermost, (uint64_t)(uintptr_t)block, &i) ? (uint32_t)i : TL_NO_LOOP;
}

bool tl_loop_is_inside(const TlLoops *loops, uint32_t inner, uint32_t outer)
{
    while (inner != outer && inner != TL_NO_LOOP) {
        TL_ASSERT(inner < loops->loops.len, "loop %u of %u", inner, (unsigned)loops->loops.len);
        inner = loops->loops.data[inner].outer;
    }
    return inner == outer;
}
