/* Which stores may bypass the caches.
 *
 * An ordinary store first fetches the line that it writes. If the whole output is larger than the
 * last cache, that is a third of the traffic of a kernel that reads as much as it writes, for
 * lines that nobody will find in a cache later. So a nest that stores whole contiguous vectors has
 * two stores, and at run time rows of large arrays take the non-temporal one (cpu_stream.c).
 * Kernels whose programs communicate by atomics have none. */
#include "codegen/nest/nest.h"

#include <string.h>

#include "passes/analysis/facts.h"

/* A nest that computes more values for an element is not limited by memory. Too much of a shorter
 * row, in bytes, is in lines that it does not fill. */
enum { MOST_COMPUTED = 40, LEAST_ROW = 256 };
/* Bytes of a row that a loop goes on along, where there are others: the line that it ends in is
 * filled by the next trip, after all the other rows. */
enum { LEAST_PART = 2 << 10, LINE = 64 };

/* By parameter: what is loaded, or meets atomics, may be in a cache when it is stored. */
static const char **find_cached(const TlNests *plan)
{
    uint32_t n = plan->fn->body->nargs;
    const char **why = TL_NEW_ARRAY(plan->arena, const char *, n + 1);
    for (const TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool is_atomic = tl_op_info(op->opcode)->flags & F_ATOMIC;
        if (!is_atomic && op->opcode != TL_OP_LOAD)
            continue;
        int param = is_atomic ? -1 : tl_base_param(tl_op_place(op).base);
        for (uint32_t i = 0; i < n; i++)
            if (param < 0 || (uint32_t)param == i)
                why[i] = is_atomic ? "programs talk by atomics" : "it is loaded, too";
    }
    return why;
}

/* Are there several rows, of which each trip of the loop around stores the next part? */
static bool is_part(const TlNest *n, const TlNestAccess *a)
{
    int64_t bytes = n->form.extent[n->form.lane] * (int64_t)tl_gen_elem_bytes(&n->type);
    if (bytes >= LEAST_PART)
        return false;
    const TlOp *loop = tl_enclosing_loop(n->op);
    bool moves = false;
    for (uint32_t i = 0; loop && i < a->place.naxes; i++)
        moves |= a->axis[i].dim == n->form.lane && !tl_is_invariant(a->place.index[i].value, loop);
    return moves && tl_type_elems(&n->type) > n->type.shape[n->form.lane];
}

/* NULL: a store of it streams. */
static const char *why_store_not(const TlNest *n, const TlNestAccess *a, const char *const *cached)
{
    int64_t bytes = (int64_t)tl_gen_elem_bytes(&n->type);
    if (!tl_nest_is_split(n))
        return "no part of it is inside as a whole";
    if (n->unrolled)
        return "it is stored from registers";
    if (n->stored_by)
        return "what a product has not stored is at edges";
    if (!a->place.axes || a->param < 0 || a->asks)
        return "the array is not known";
    if (cached[a->param])
        return cached[a->param];
    if (a->place.mask)
        return "it has a mask";
    if (n->nvalues > MOST_COMPUTED)
        return "it computes much";
    if (n->width * bytes % TL_NEST_STREAM_BYTES)
        return "vectors are too small";
    bool part = is_part(n, a);
    if (part && n->form.extent[n->form.lane] * bytes % LINE)
        return "trips store parts of rows";
    if (!part && n->form.extent[n->form.lane] * bytes < LEAST_ROW)
        return "rows are too short";
    if (a->row)
        return "rows may lie apart";
    bool interleaved = n->joined && !n->joined->apart;
    return interleaved || tl_nest_is_contiguous(a, n->form.lane) ? NULL : "elements are apart";
}

/* NULL: it streams. */
static const char *why_not(const TlNest *n, const char *const *cached)
{
    const char *why = why_store_not(n, n->store, cached);
    for (int k = 0; n->joined && !why && k < n->joined->n; k++)
        why = why_store_not(n, n->joined->store[k], cached);
    return why;
}

/* Stores that products may have done. */
static void find_stored(TlNests *plan)
{
    TlMap by = {.arena = plan->arena};
    for (uint32_t i = 0; i < plan->all.len; i++) {
        TlNest *n = plan->all.data[i];
        if (n->kind == TL_NEST_PRODUCT && n->product->stores)
            tl_map_put_ptr(&by, n->product->store, n->product);
        else if (n->kind == TL_NEST_STORE) /* it comes after the loop */
            n->stored_by = tl_map_get_ptr(&by, n->op);
    }
}

void tl_nest_stream(TlNests *plan)
{
    const char **cached = find_cached(plan);
    find_stored(plan);
    for (uint32_t i = 0; i < plan->all.len; i++) {
        TlNest *n = plan->all.data[i];
        if (n->kind != TL_NEST_STORE)
            continue;
        n->unstreamed = why_not(n, cached);
        n->streams = !n->unstreamed;
        n->streams_lines = n->streams && is_part(n, n->store);
        int64_t bytes = n->width * (int64_t)tl_gen_elem_bytes(&n->type);
        n->streams_wide = n->streams && plan->m.vector_bytes > TL_NEST_STREAM_BYTES &&
                          bytes % plan->m.vector_bytes == 0;
        plan->streams |= n->streams;
    }
}
