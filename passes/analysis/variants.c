/* Kernels in two forms, general and aligned (axis_info.h).
 *
 * The aligned form assumes the promise of all parameters. Which of them it needs is found by taking
 * them away one by one: when every access is still what it was, that one stays away. What is left
 * is tested at launch, as far as the parameter's type does not say it already: a constant is what
 * it is, and dense strides are products of extents that are tested. Where pids count, the grid must
 * be the clause's own, because the bound of a pid comes from there.
 *
 * An aligned form is dropped when it needs no promise and has as many accesses without a bounds
 * test as the general one. */
#include <string.h>

#include "passes/analysis/axis_impl.h"

typedef TL_VEC(TlAccessInfo) Accesses;

static bool is_access(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_READ | F_WRITE);
}

static Accesses accesses_of(const TlFn *fn, TlArena *arena, uint64_t promised)
{
    const TlAxisInfo *a = tl_axis_info_promised(fn, arena, promised);
    Accesses all = {0};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_access(op))
            tl_vec_push(arena, &all, tl_access_info(a, op));
    return all;
}

static bool same_accesses(const Accesses *a, const Accesses *b)
{
    for (uint32_t i = 0; i < a->len; i++) {
        const TlAccessInfo *x = &a->data[i], *y = &b->data[i];
        if (x->dim != y->dim || x->width != y->width || x->needs_bounds != y->needs_bounds ||
            x->offset32 != y->offset32)
            return false;
    }
    return true;
}

/* Does the promise say anything of the parameter? */
static bool is_promised(const TlFn *fn, const TlParam *p)
{
    return p->kind != TILE_PARAM_SCALAR || (tl_axis_promises_scalars(fn) && tl_is_int(p->dtype));
}

/* The parameters whose alignment the accesses rest on, as for tl_axis_info_promised. */
static uint64_t needed(const TlFn *fn, TlArena *arena)
{
    uint64_t promised = ~(uint64_t)0;
    uint32_t n = fn->info->params.len;
    TlArena scratch;
    tl_arena_init(&scratch, arena->alloc);
    Accesses all = accesses_of(fn, &scratch, promised);
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t less = promised & ~((uint64_t)1 << i);
        bool there = i < n && is_promised(fn, &fn->info->params.data[i]);
        Accesses now = {0};
        if (there || (i == 63 && n > 63))
            now = accesses_of(fn, &scratch, less);
        if (now.len == 0 || same_accesses(&all, &now))
            promised = less;
    }
    tl_arena_free(&scratch);
    return promised;
}

/* ---- tests ---- */

static void push(TlArena *arena, TlTests *out, tile_test_kind kind, uint32_t param, int axis,
                 int64_t unit)
{
    tile_image_test t = {(uint32_t)kind, param, (uint32_t)axis, 0, (uint64_t)unit - 1};
    if (t.mask)
        tl_vec_push(arena, out, t);
}

static void test_param(TlArena *arena, TlTests *out, const TlParam *p, uint32_t index)
{
    push(arena, out, p->kind == TILE_PARAM_SCALAR ? TILE_TEST_SCALAR : TILE_TEST_POINTER, index, 0,
         TL_AXIS_ALIGNMENT);
    if (p->kind != TILE_PARAM_VIEW)
        return;
    int64_t unit = tl_axis_aligned_unit(p->dtype);
    int last = p->rank - 1;
    if (last >= 0 && p->extent[last].kind != TILE_DIM_CONST)
        push(arena, out, TILE_TEST_EXTENT, index, last, unit);
    for (int d = 0; d < last; d++)
        if (p->stride[d].kind == TILE_DIM_SYM || p->stride[d].kind == TILE_DIM_EXPR)
            push(arena, out, TILE_TEST_STRIDE, index, d, unit);
}

/* Strides that 32-bit offsets within tiles rest on. */
static void test_strides(TlArena *arena, TlTests *out, const TlFn *fn)
{
    const TlAxisInfo *a = tl_axis_info(fn, arena);
    uint32_t tested[64] = {0}; /* axes, by parameter */
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        uint32_t axes = is_access(op) ? tl_access_info(a, op).local : 0;
        uint32_t param = axes ? tl_op_place(op).base->index : 0;
        if (param < 64)
            axes &= ~tested[param];
        for (uint32_t d = 0; axes >> d; d++)
            if (axes >> d & 1) {
                tile_image_test t = {TILE_TEST_STRIDE, param, d, 0,
                                     ~(uint64_t)(TL_LOCAL_STRIDE - 1)};
                tl_vec_push(arena, out, t);
            }
        if (param < 64)
            tested[param] |= axes;
    }
}

static bool has_pid(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_PID)
            return true;
    return false;
}

void tl_variant_tests(const TlFn *fn, TlArena *arena, TlTests *out)
{
    if (!fn->info || !fn->info->aligned)
        return;
    uint64_t promised = needed(fn, arena);
    for (uint32_t i = 0; i < fn->info->params.len; i++) {
        const TlParam *p = &fn->info->params.data[i];
        if (is_promised(fn, p) && (promised >> (i < 63 ? i : 63) & 1))
            test_param(arena, out, p, i);
    }
    test_strides(arena, out, fn);
    if (fn->info->grid.len && has_pid(fn))
        push(arena, out, TILE_TEST_GRID, 0, 0, 2);
}

/* ---- the two forms ---- */

/* A tile accessed through a view whose elements can lie side by side, or through pointers. */
static bool may_profit(const TlFn *fn)
{
    if (!fn->info)
        return false;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_access(op) && tl_op_place(op).rank > 0)
            return true;
    return false;
}

static bool is_aligned(const TlFn *fn)
{
    return fn->info && fn->info->aligned;
}

void tl_variants_add(TlModule *m)
{
    uint32_t n = m->fns.len;
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        if (is_aligned(m->fns.data[i]))
            return;
        any |= may_profit(m->fns.data[i]);
    }
    if (!any)
        return;
    TlModule *copy = tl_module_clone(m); /* lives as long as the context */
    TlFn **all = TL_NEW_ARRAY(&m->arena, TlFn *, 2 * n);
    uint32_t len = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (may_profit(m->fns.data[i])) {
            TlFn *aligned = copy->fns.data[i];
            aligned->module = m;
            aligned->info->aligned = true;
            all[len++] = aligned;
        }
        all[len++] = m->fns.data[i];
    }
    m->fns.data = all;
    m->fns.len = m->fns.cap = len;
}

static uint32_t tested_accesses(const TlFn *fn)
{
    uint32_t n = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        n += is_access(op) && tl_attr(op, TL_ATTR_AXES) && !tl_attr_flag(op, TL_ATTR_UNCHECKED);
    return n;
}

static bool profits(const TlFn *aligned, const TlFn *general, TlArena *arena)
{
    return needed(aligned, arena) != 0 || tested_accesses(aligned) < tested_accesses(general);
}

void tl_variants_settle(TlModule *m)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < m->fns.len; i++) {
        TlFn *fn = m->fns.data[i];
        bool pair = is_aligned(fn) && i + 1 < m->fns.len &&
                    !strcmp(fn->name, m->fns.data[i + 1]->name) && !is_aligned(m->fns.data[i + 1]);
        if (!pair || profits(fn, m->fns.data[i + 1], &m->arena))
            m->fns.data[len++] = fn;
    }
    m->fns.len = len;
}
