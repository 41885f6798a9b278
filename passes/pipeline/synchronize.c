/* synchronize: places what orders the threads of a block, and the machine's own engines, where they
 * share memory: barriers, proxy fences, and the order in which warpgroups begin products.
 *
 *     put %b, %s, %x                  put %b, %s, %x
 *     %u = dot_async %b, ...    =>    fence
 *     await                           barrier
 *     put %b, %s, %y                  %u = dot_async %b, ...
 *                                     await
 *                                     barrier
 *                                     put %b, %s, %y
 *
 * What is known of each op is in tables: who does what to the slots of buffers, and what says that
 * it is over (buffer_effects.def); what it touches of global memory (footprint.h), of a buffer
 * (buffer_use.h), and which scratch it has (shared_plan.h). The passes before this one have placed
 * what begins asynchronous work and what waits for it, as these are the schedule; here follows what
 * other threads need, to see what has arrived, and to write again what has been read.
 *
 *  1. The function becomes a list of events (sync_events.c).
 *  2. Barriers, by a data flow of pending accesses (sync_barriers.c).
 *  3. Proxy fences, by a data flow of what threads have written (sync_fences.c); where there are
 *     engines that want them.
 *  4. Ping-pong of warpgroups (sync_ping_pong.c).
 *
 * Branches have any number of arms, and roles are branches: their flows meet at barriers that count
 * only. */
#include "passes/analysis/facts.h"
#include "passes/pipeline/sync_impl.h"

static void add_op(TlOp *before, TlOpcode opcode)
{
    TlBuilder b = tl_builder_before(before);
    tl_op_new(&b, opcode, 0, NULL, 0, NULL, 0, 0, NULL);
}

static bool insert(const TlSync *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->events.len; i++) {
        const TlSyncEvent *e = &s->events.data[i];
        if (e->has_fence)
            add_op(e->op, TL_OP_FENCE);
        if (e->has_barrier)
            add_op(e->op, TL_OP_BARRIER);
        any |= e->has_fence || e->has_barrier;
    }
    return any;
}

TlPassResult tl_pass_synchronize(TlFn *fn, TlPassCtx *px)
{
    TlSync s = {.fn = fn, .arena = px->scratch, .machine = px->machine};
    if (!tl_fn_is_laid_out(fn))
        return TL_SAME;
    tl_sync_list(&s);
    tl_sync_barriers(&s);
    if (px->machine->bulk && tl_fn_level(fn) == TL_LEVEL_STAGED)
        tl_sync_fences(&s);
    bool changed = insert(&s);
    if (px->machine->warpgroups)
        changed |= tl_sync_ping_pong(fn);
    return changed ? TL_CHANGED : TL_SAME;
}
