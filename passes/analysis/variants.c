/* Kernels in two forms, general and aligned (variants.h).
 *
 * The aligned form assumes the promise of all parameters. Which of them it needs is found by taking
 * them away one by one: when every access is still what it was, that one stays away. What is left
 * is tested at launch, as far as the parameter's type does not say it already: a constant is what
 * it is, and dense strides are products of extents that are tested. Where pids count, the grid must
 * be the clause's own, because the bound of a pid comes from there.
 *
 * An aligned form is dropped when it needs no promise and has as many accesses without a bounds
 * test as the general one. */
#include "passes/analysis/variants.h"

#include <string.h>

#include "passes/analysis/axis_impl.h"

typedef TL_VEC(TlAccessInfo) Accesses;

static bool is_access(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_READ | F_WRITE);
}

/* Does its code rest on the alignment of a parameter? Tests of whole vectors do, too. */
static bool is_aligned_by(const TlOp *op)
{
    return is_access(op) || op->opcode == TL_OP_INSIDE;
}

static Accesses accesses_of(const TlAxisInfo *a, TlArena *arena)
{
    Accesses all = {0};
    for (const TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_aligned_by(op))
            tl_vec_push(arena, &all, tl_access_info(a, op));
    return all;
}

static bool same_accesses(const Accesses *a, const Accesses *b)
{
    TL_ASSERT(a->len == b->len, "%u accesses became %u", a->len, b->len);
    for (uint32_t i = 0; i < a->len; i++) {
        const TlAccessInfo *x = &a->data[i], *y = &b->data[i];
        if (x->dim != y->dim || x->width != y->width || x->needs_bounds != y->needs_bounds ||
            x->offset32 != y->offset32)
            return false;
    }
    return true;
}

/* Does the promise concern the parameter? */
static bool is_promised(const TlFn *fn, const TlParam *p)
{
    return p->kind != TILE_PARAM_SCALAR || (tl_axis_promises_scalars(fn) && tl_is_int(p->dtype));
}

/* What is known when only these parameters are aligned. The facts of most kernels do not rest on
 * most parameters, only their accesses do. */
static const TlAxisInfo *narrowed(const TlAxisInfo *a, uint64_t promised, TlArena *arena)
{
    if (a->rests_on & (a->promised ^ promised))
        return tl_axis_info_promised(a->fn, arena, promised);
    TlAxisInfo *narrow = TL_NEW(arena, TlAxisInfo);
    *narrow = tl_axis_info_narrowed(a, promised);
    return narrow;
}

/* The parameters whose alignment the accesses rest on, as for tl_axis_info_promised. `a`: all
 * are aligned. */
static uint64_t needed(const TlAxisInfo *a, TlArena *arena)
{
    const TlFn *fn = a->fn;
    TL_ASSERT(fn->info && fn->info->aligned, "'%s' is not an aligned kernel", fn->name);
    uint32_t n = fn->info->params.len;
    Accesses all = accesses_of(a, arena);
    for (uint32_t i = 0; i < 64; i++) {
        bool there = (i < n && is_promised(fn, &fn->info->params.data[i])) || (i == 63 && n > 63);
        const TlAxisInfo *less = narrowed(a, a->promised & ~((uint64_t)1 << i), arena);
        Accesses now = {0};
        if (there)
            now = accesses_of(less, arena);
        if (now.len == 0 || same_accesses(&all, &now))
            a = less;
    }
    return a->promised;
}

/* ---- tests ---- */

static void push(TlArena *arena, TlTests *out, tile_test_kind kind, uint32_t param, int axis,
                 int64_t unit)
{
    TL_ASSERT(unit > 0 && (unit & (unit - 1)) == 0, "a test for multiples of %lld",
              (long long)unit);
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
    int runs = tl_axis_of_runs(p);
    if (runs >= 0 && p->extent[runs].kind != TILE_DIM_CONST)
        push(arena, out, TILE_TEST_EXTENT, index, runs, unit);
    for (int d = 0; d < p->rank; d++)
        if (d != runs && (p->stride[d].kind == TILE_DIM_SYM || p->stride[d].kind == TILE_DIM_EXPR))
            push(arena, out, TILE_TEST_STRIDE, index, d, unit);
}

/* The strides on which 32-bit offsets within tiles depend. */
static void test_strides(TlArena *arena, TlTests *out, const TlAxisInfo *a)
{
    uint32_t tested[64] = {0}; /* axes, by parameter */
    for (const TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
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

/* a: all parameters are aligned; promised: those that need be. */
static void put_tests(const TlAxisInfo *a, uint64_t promised, TlArena *arena, TlTests *out)
{
    const TlFn *fn = a->fn;
    for (uint32_t i = 0; i < fn->info->params.len; i++) {
        const TlParam *p = &fn->info->params.data[i];
        if (is_promised(fn, p) && (promised >> (i < 63 ? i : 63) & 1))
            test_param(arena, out, p, i);
    }
    test_strides(arena, out, a);
    if (fn->info->grid.len && has_pid(fn))
        push(arena, out, TILE_TEST_GRID, 0, 0, 2);
}

void tl_variant_tests(const TlFn *fn, TlArena *arena, TlTests *out)
{
    if (!tl_variant_is_aligned(fn))
        return;
    const TlTests *known = &fn->info->tests;
    for (uint32_t i = 0; fn->info->tests_known && i < known->len; i++)
        tl_vec_push(arena, out, known->data[i]);
    if (fn->info->tests_known)
        return;
    TlArena scratch;
    tl_arena_init(&scratch, arena->alloc);
    const TlAxisInfo *a = tl_axis_info(fn, &scratch);
    put_tests(a, needed(a, &scratch), arena, out);
    tl_arena_free(&scratch);
}

/* ---- the two forms ---- */

bool tl_variant_is_aligned(const TlFn *fn)
{
    return fn->info && fn->info->aligned;
}

/* A tile accessed through a view whose elements can lie side by side, or through pointers. */
bool tl_variant_may_profit(const TlFn *fn)
{
    if (!fn->info)
        return false;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (is_access(op) && tl_op_place(op).rank > 0)
            return true;
    return false;
}

static uint32_t tested_accesses(const TlFn *fn)
{
    uint32_t n = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        n += is_access(op) && tl_attr(op, TL_ATTR_AXES) && !tl_attr_flag(op, TL_ATTR_UNCHECKED);
    return n;
}

bool tl_variant_profits(TlFn *aligned, const TlFn *general, TlArena *scratch)
{
    TL_ASSERT(!strcmp(aligned->name, general->name), "'%s' and '%s' are not one kernel",
              aligned->name, general->name);
    const TlAxisInfo *a = tl_axis_info(aligned, scratch);
    uint64_t promised = needed(a, scratch);
    bool profits = promised != 0 || tested_accesses(aligned) < tested_accesses(general);
    if (profits) {
        aligned->info->tests = (TlTests){0};
        put_tests(a, promised, &aligned->module->arena, &aligned->info->tests);
        aligned->info->tests_known = true;
    }
    return profits;
}
