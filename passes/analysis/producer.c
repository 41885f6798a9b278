/* What a warp needs that issues copies (producer.h): a backward slice from them. */
#include "passes/analysis/producer.h"

/* Of a block, on every GPU; warps that the producer adds: registers are given to four at a time. */
enum { MOST_THREADS = 1024, MORE_WARPS = 4 };

const char *tl_producer_fault_text(TlProducerFault fault)
{
    static const char *const texts[] = {
        [TL_PRODUCER_REFUSED] = "specialize(0)",
        [TL_PRODUCER_COPIES] = "not all copies to shared memory are bulk copies",
        [TL_PRODUCER_WARPS] = "4 more warps need a multiple of 4, at most 28",
        [TL_PRODUCER_ROOM] = "shared memory has no room for buffers that live all the time",
        [TL_PRODUCER_PLACES] = "where they are is read from memory, or computed from tiles",
        [TL_PRODUCER_HIDES_NOTHING] = "no loop around it and one product a trip",
        [TL_PRODUCER_CROWDED] =
            "a multiprocessor has room for another block, which hides the same"};
    _Static_assert(sizeof texts / sizeof *texts == TL_PRODUCER_FAULT_COUNT, "a text for each");
    TL_ASSERT(fault > TL_PRODUCER_NONE && fault < TL_PRODUCER_FAULT_COUNT, "fault %d", (int)fault);
    return texts[fault];
}

typedef struct Search {
    TlProducer *out;
    TlArena *arena;
    TL_VEC(TlValue *) work;
    bool fails;
} Search;

bool tl_producer_keeps(const TlProducer *p, const TlOp *op)
{
    return tl_map_get(&p->kept, (uint64_t)(uintptr_t)op, NULL);
}

bool tl_producer_wants(const TlProducer *p, const TlValue *v)
{
    return tl_map_get(&p->wanted, v->id, NULL);
}

bool tl_producer_fits(const TlFn *fn, int lanes)
{
    return fn->body->warps % MORE_WARPS == 0 &&
           (fn->body->warps + MORE_WARPS) * lanes <= MOST_THREADS;
}

static void want(Search *s, TlValue *v)
{
    if (tl_producer_wants(s->out, v))
        return;
    tl_map_put(&s->out->wanted, v->id, 1);
    tl_vec_push(s->arena, &s->work, v);
}

static void keep_region(Search *s, TlOp *op);

static void keep(Search *s, TlOp *op)
{
    if (tl_producer_keeps(s->out, op))
        return;
    tl_map_put(&s->out->kept, (uint64_t)(uintptr_t)op, 1);
    if (op->block->parent)
        keep_region(s, op->block->parent);
}

/* A loop or branch around what is kept: its bounds, its condition. */
static void keep_region(Search *s, TlOp *op)
{
    s->fails |= op->opcode != TL_OP_FOR && op->opcode != TL_OP_IF;
    for (uint32_t i = 0; !s->fails && i < (op->opcode == TL_OP_FOR ? 3u : 1u); i++)
        want(s, tl_in(op, i));
    keep(s, op);
}

static void want_carried(Search *s, TlOp *loop, uint32_t i)
{
    keep_region(s, loop);
    want(s, loop->regions[0]->args[i + 1]);
    want(s, loop->out[i]);
    want(s, tl_in(loop, i + 3));
    want(s, tl_in(loop->regions[0]->last, i));
}

static void want_either(Search *s, TlOp *branch, uint32_t i)
{
    keep_region(s, branch);
    for (int r = 0; r < 2; r++)
        want(s, tl_in(branch->regions[r]->last, i));
}

static void want_operands(Search *s, TlOp *op)
{
    bool scalar = op->nregions == 0 && tl_op_is_pure(op);
    for (uint32_t i = 0; i < op->nin; i++)
        scalar &= tl_in(op, i)->type->kind != TL_TILE || tl_in(op, i)->type->rank == 0;
    for (uint32_t i = 0; i < op->nout; i++)
        scalar &= op->out[i]->type->kind != TL_TILE || op->out[i]->type->rank == 0;
    s->fails |= !scalar;
    for (uint32_t i = 0; i < op->nin && scalar; i++)
        want(s, tl_in(op, i));
    keep(s, op);
}

static void want_parts(Search *s, TlValue *v)
{
    TlOp *op = v->def;
    if (!op && !v->block->parent)
        return; /* an argument of the kernel */
    if (!op && v->block->parent->opcode != TL_OP_FOR)
        s->fails = true;
    else if (!op && v->index == 0)
        keep_region(s, v->block->parent);
    else if (!op)
        want_carried(s, v->block->parent, v->index - 1);
    else if (op->opcode == TL_OP_FOR)
        want_carried(s, op, v->index);
    else if (op->opcode == TL_OP_IF)
        want_either(s, op, v->index);
    else if (!tl_makes_buffer(op))
        want_operands(s, op);
}

bool tl_producer_find(const TlFn *fn, TlArena *arena, TlBegins *begins, const void *user,
                      TlProducer *out)
{
    Search s = {.out = out, .arena = arena};
    tl_map_init(&out->kept, arena);
    tl_map_init(&out->wanted, arena);
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!begins(user, op))
            continue;
        keep(&s, op);
        for (uint32_t i = 0; i < op->nin; i++)
            want(&s, tl_in(op, i));
    }
    while (s.work.len && !s.fails)
        want_parts(&s, s.work.data[--s.work.len]);
    return !s.fails;
}
