/* The list of events of synchronize (sync_impl.h). */
#include "ir/plan/async_dot.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "ir/plan/staged_plan.h"
#include "passes/analysis/buffer_effects.h"
#include "passes/pipeline/sync_impl.h"

const TlValue *tl_sync_bars(const TlOp *op)
{
    if (op->opcode == TL_OP_MBAR || op->opcode == TL_OP_TENSOR)
        return op->out[0];
    return op->opcode == TL_OP_MBAR_END || op->opcode == TL_OP_TENSOR_END ? tl_in(op, 0) : NULL;
}

/* The layout of what is put or got, if each thread reads or writes just those elements, and nobody
 * else does: not matrices, which warps move together, not copies of other threads' elements. */
static const TlLayout *owned(TlSync *s, const TlOp *op)
{
    bool puts = op->opcode == TL_OP_PUT;
    if (!puts && op->opcode != TL_OP_GET)
        return NULL;
    const TlType *tile = puts ? tl_in(op, 2)->type : op->out[0]->type;
    uint32_t masks[TL_LAYOUT_MAX_IN];
    if (!tile->layout)
        return NULL;
    tl_layout_free_masks(tile->layout, masks);
    for (int i = 0; i < tile->layout->nin; i++)
        if (masks[i])
            return NULL;
    uint32_t flags =
        tl_buf_matrices(s->machine->matrix_8) | (puts ? TL_BUF_WRITES : TL_BUF_MAY_COLUMNS);
    enum { MOST = 16 };
    const TlBufPlan *plan = tl_buf_plan(s->arena, tile, tl_in(op, 0)->type, MOST, flags);
    if (plan->kind != TL_BUF_VECTOR)
        return NULL;
    for (uint32_t i = 0; i < plan->naccesses; i++)
        if (plan->accesses[i].guarded)
            return NULL;
    return tile->layout;
}

static void describe(TlSync *s, TlSyncEvent *e, const TlBufUse *use)
{
    TlOp *op = e->op;
    e->is_barrier = op->opcode == TL_OP_BARRIER || op->opcode == TL_OP_MEET ||
                    op->opcode == TL_OP_RESCALE || op->opcode == TL_OP_AWAIT;
    uint64_t bytes = tl_op_shared_bytes(s->arena, op);
    const TlValue *bars = tl_sync_bars(op);
    if (bars) {
        bool follows = op->prev && op->prev->opcode == TL_OP_MBAR_END;
        e->is_barrier |= op->opcode == TL_OP_TENSOR_END ||
                         (op->opcode == TL_OP_MBAR_END && !follows);
        bytes = tl_buf_bytes(bars->type);
        op = bars->def;
    }
    if (bytes) {
        e->from = (uint64_t)tl_attr_int(op, TL_ATTR_SHARED, 0);
        e->to = e->from + bytes;
    }
    e->memory = tl_footprint(op, s->arena);
    e->use = use;
    e->own = use ? owned(s, op) : NULL;
    if (!(tl_op_info(op->opcode)->flags & F_ATOMIC))
        return;
    int64_t order = tl_attr_int(op, TL_ATTR_ORDER, TL_ORDER_RELAXED);
    e->is_release = order == TL_ORDER_RELEASE || order == TL_ORDER_ACQ_REL;
    e->is_acquire = order == TL_ORDER_ACQUIRE || order == TL_ORDER_ACQ_REL;
}

static uint32_t add(TlSync *s, TlSyncKind kind, TlOp *op, const TlBufUse *use, uint32_t opening,
                    uint32_t loop)
{
    TL_ASSERT(loop == TL_SYNC_NONE || loop < s->events.len, "loop %u of %u events", loop,
              s->events.len);
    TlSyncEvent e = {.kind = kind, .op = op, .opening = opening, .loop = loop};
    e.depth = loop == TL_SYNC_NONE ? 0 : s->events.data[loop].depth + 1;
    if (kind == TL_SYNC_ACCESS)
        describe(s, &e, use);
    if (kind == TL_SYNC_ACCESS && !e.is_barrier && !e.to && !e.memory && !e.use)
        return TL_SYNC_NONE;
    if (kind == TL_SYNC_LOOP && e.depth + 1 > s->depth)
        s->depth = e.depth + 1;
    tl_vec_push(s->arena, &s->events, e);
    return s->events.len - 1;
}

/* An access, of each buffer that it uses, and that what it begins goes on, if that is to be waited
 * for here: what a barrier counts orders itself. */
static void add_access(TlSync *s, TlOp *op, uint32_t loop)
{
    TlBufUse *uses = TL_NEW_ARRAY(s->arena, TlBufUse, TL_MOST_BUF_USES);
    uint32_t n = tl_buf_uses(op, uses);
    bool goes_on = tl_goes_on(op) && !tl_effect_of(op).seen_by_all;
    for (uint32_t i = 0; i < n || i == 0; i++) {
        add(s, TL_SYNC_ACCESS, op, i < n ? &uses[i] : NULL, TL_SYNC_NONE, loop);
        if (goes_on)
            add(s, TL_SYNC_FLIGHT, op, NULL, TL_SYNC_NONE, loop);
    }
}

/* The walk's position: which structural events are open around it. */
typedef struct Nest {
    TL_VEC(uint32_t) open;
    uint32_t loop;
} Nest;

/* The flows of ROLES meet at barriers that count only. */
static bool is_branch(const TlOp *op)
{
    return op->opcode == TL_OP_IF || op->opcode == TL_OP_ROLES;
}

/* At the end of a block: into the next region of its op, or out. */
static TlOp *leave(TlSync *s, Nest *n, const TlBlock *block)
{
    TlOp *parent = block->parent;
    if (!parent)
        return NULL;
    uint32_t opening = n->open.data[n->open.len - 1];
    bool branches = is_branch(parent);
    const TlBlock *next = tl_region_after(block);
    if (next) {
        add(s, branches ? TL_SYNC_ELSE : TL_SYNC_MIDDLE, parent, NULL, opening, n->loop);
        return next->first;
    }
    n->open.len--;
    add(s, branches ? TL_SYNC_ENDIF : TL_SYNC_END, parent, NULL, opening, n->loop);
    if (!branches)
        n->loop = s->events.data[opening].loop;
    return parent->next;
}

static TlOp *enter(TlSync *s, Nest *n, TlOp *op)
{
    bool branches = is_branch(op);
    uint32_t e =
        add(s, branches ? TL_SYNC_IF : TL_SYNC_LOOP, op, NULL, TL_SYNC_NONE, n->loop);
    tl_vec_push(s->arena, &n->open, e);
    if (!branches)
        n->loop = e;
    return op->regions[0]->first;
}

/* Reads of what the kernel never writes conflict with nothing, unless atomics order them. */
static void drop_idle_reads(TlSync *s)
{
    TlFootprint writes = {.roots = 0};
    for (uint32_t i = 0; i < s->events.len; i++) {
        const TlSyncEvent *e = &s->events.data[i];
        if (e->is_release || e->is_acquire)
            return;
        if (e->memory && e->memory->writes)
            writes.roots |= e->memory->roots;
    }
    for (uint32_t i = 0; i < s->events.len; i++) {
        TlSyncEvent *e = &s->events.data[i];
        if (e->memory && (!writes.roots || !tl_footprints_overlap(e->memory, &writes)))
            e->memory = NULL;
    }
}

/* At an await in a loop of products into tensor memory (simt_tensor.c). */
static bool threads_meet(const TlOp *wait, bool in_tensor)
{
    return in_tensor && wait->opcode == TL_OP_AWAIT && tl_tensor_meets_at(wait);
}

static bool has_tensor(const TlFn *fn)
{
    const TlOp *op = fn->body->first;
    while (op && op->opcode != TL_OP_TENSOR)
        op = op->next;
    return op != NULL;
}

void tl_sync_list(TlSync *s)
{
    Nest n = {.loop = TL_SYNC_NONE};
    bool in_tensor = has_tensor(s->fn);
    for (TlOp *op = s->fn->body->first; op;) {
        if (is_branch(op) || tl_is_loop(op)) {
            op = enter(s, &n, op);
            continue;
        }
        if (tl_op_info(op->opcode)->flags & F_TERM) {
            op = leave(s, &n, op->block);
            continue;
        }
        if (tl_is_wait(op)) {
            add(s, TL_SYNC_WAIT, op, NULL, TL_SYNC_NONE, n.loop);
            if (threads_meet(op, in_tensor))
                add(s, TL_SYNC_ACCESS, op, NULL, TL_SYNC_NONE, n.loop);
        } else if (op->opcode == TL_OP_FENCE) {
            add(s, TL_SYNC_FENCE, op, NULL, TL_SYNC_NONE, n.loop);
        } else {
            add_access(s, op, n.loop);
        }
        op = op->next;
    }
    drop_idle_reads(s);
}
