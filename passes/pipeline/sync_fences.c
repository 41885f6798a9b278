/* Proxy fences: what threads have written to a buffer from which the machine's own engines read, by
 * puts or by copies that they have waited for, they make visible to these before the barrier that
 * comes between (PTX ISA, "Async proxy"; buffer_effects.def says who does what).
 *
 *     put %b, %s, %x                  put %b, %s, %x
 *     barrier                    =>   fence
 *     %u = dot_async %b, ...          barrier
 *                                     %u = dot_async %b, ...
 *
 * Can there be such a write since the last fence, on some way through the text? Copies are writes
 * from the wait on that ends them. So it is with bytes that threads have written and bulk copies
 * write later: there is a fence before the barriers are made that count these. */
#include "passes/analysis/buffer_effects.h"
#include "passes/pipeline/sync_impl.h"

enum { OF_READS = 1, OF_WRITES = 2 }; /* what has been written: bytes that engines read, or write */

typedef struct Fences {
    TlSync *s;
    TL_VEC(const TlBufUse *) written; /* by engines */
    unsigned copied;                  /* what copies by threads write, which waits end */
} Fences;

static bool reads_as_engine(const TlOp *op)
{
    return tl_effect_of(op).is_async && !tl_effect_of(op).writes;
}

static bool has_reader(const TlValue *buf)
{
    for (const TlUse *u = buf->uses; u; u = u->next)
        if (reads_as_engine(u->user))
            return true;
    return false;
}

/* Behind it in the text, or in a loop around it? */
static bool reader_follows(const TlOp *at)
{
    for (const TlOp *op = at; op; op = tl_walk_next(op, NULL))
        if (reads_as_engine(op))
            return true;
    for (const TlOp *loop = at->block->parent; loop; loop = loop->block->parent)
        for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
            if (reads_as_engine(op) && loop->opcode != TL_OP_IF)
                return true;
    return false;
}

static unsigned of_bytes(const Fences *f, uint64_t from, uint64_t to)
{
    for (uint32_t i = 0; i < f->written.len && from < to; i++)
        if (from < f->written.data[i]->to && f->written.data[i]->from < to)
            return OF_WRITES;
    return 0;
}

static unsigned of_use(const Fences *f, const TlBufUse *use)
{
    return (has_reader(use->buf) ? OF_READS : 0) | of_bytes(f, use->from, use->to);
}

static void find_written(Fences *f)
{
    const TlSyncEvent *events = f->s->events.data;
    for (uint32_t i = 0; i < f->s->events.len; i++)
        if (events[i].use && tl_effect_of(events[i].op).is_async && events[i].use->writes)
            tl_vec_push(f->s->arena, &f->written, events[i].use);
    for (uint32_t i = 0; i < f->s->events.len; i++)
        if (events[i].use && tl_effect_of(events[i].op).done == TL_OP_WAIT)
            f->copied |= of_use(f, events[i].use);
}

/* What threads have written when the event is over. */
static unsigned writes(const Fences *f, const TlSyncEvent *e)
{
    if (e->kind == TL_SYNC_WAIT)
        return e->op->opcode == TL_OP_WAIT ? f->copied : 0;
    if (e->kind != TL_SYNC_ACCESS || tl_sync_bars(e->op))
        return 0;
    if (e->use)
        return e->use->writes && !tl_goes_on(e->op) ? of_use(f, e->use) : 0;
    return of_bytes(f, e->from, e->to);
}

/* Is there a barrier, before the op or inside (scratch: ir/plan/shared_plan.h), at which what has
 * been written must be there for engines? */
static bool is_due(const TlSyncEvent *e, unsigned dirty)
{
    bool inside = e->kind == TL_SYNC_ACCESS &&
                  (e->op->opcode == TL_OP_BARRIER || e->op->opcode == TL_OP_RESCALE ||
                   e->op->opcode == TL_OP_AWAIT || tl_attr(e->op, TL_ATTR_SHARED));
    return dirty && (e->has_barrier || inside) &&
           (((dirty & OF_WRITES) && e->op->opcode == TL_OP_MBAR) ||
            ((dirty & OF_READS) && reader_follows(e->op)));
}

/* True when the way back of a loop brought something new. */
static bool walk(Fences *f)
{
    unsigned dirty = 0;
    bool changed = false;
    for (uint32_t i = 0; i < f->s->events.len; i++) {
        TlSyncEvent *e = &f->s->events.data[i],
                    *opening = e->opening == TL_SYNC_NONE ? e : &f->s->events.data[e->opening];
        TlSyncBits *bits = &opening->dirty;
        e->has_fence = is_due(e, dirty);
        dirty = (e->has_fence || e->kind == TL_SYNC_FENCE ? 0 : dirty) | writes(f, e);
        if (e->kind == TL_SYNC_LOOP || e->kind == TL_SYNC_IF) {
            bits->before = dirty;
            bits->out = 0;
        }
        if (e->kind == TL_SYNC_LOOP)
            dirty |= bits->head;
        if (e->kind == TL_SYNC_ELSE) {
            bits->out |= dirty;
            dirty = bits->before;
        }
        if (e->kind == TL_SYNC_ENDIF)
            dirty |= bits->out;
        if (e->kind != TL_SYNC_END)
            continue;
        changed |= (dirty & ~bits->head) != 0;
        bits->head |= dirty;
        dirty |= bits->before;
    }
    return changed;
}

void tl_sync_fences(TlSync *s)
{
    Fences f = {.s = s};
    find_written(&f);
    while (walk(&f))
        ;
}
