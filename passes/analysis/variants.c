/* Forms of a kernel (variants.h).
 *
 * A form is compiled as if all that it may promise were so. Which of the promises it needs is found
 * by taking them away one by one: when every access is still what it was, that one stays away. What
 * is left is tested at launch. Where pids count, and the grid is promised to be the clause's own,
 * that is tested too, because the bound of a pid comes from there.
 *
 * A form is dropped when it needs no promise and has as many accesses without a bounds test as the
 * general one, or when one before it asks no more. */
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

/* What is known when only these promises hold. The facts of most kernels do not rest on most of
 * them, only their accesses do. */
static const TlAxisInfo *narrowed(const TlAxisInfo *a, uint64_t promised, TlArena *arena)
{
    if (a->rests_on & (a->promised ^ promised))
        return tl_axis_info_promised(a->fn, arena, promised);
    TlAxisInfo *narrow = TL_NEW(arena, TlAxisInfo);
    *narrow = tl_axis_info_narrowed(a, promised);
    return narrow;
}

/* The promises that the accesses rest on, as for tl_axis_info_promised. `a`: all hold. */
static uint64_t needed(const TlAxisInfo *a, TlArena *arena)
{
    const TlFn *fn = a->fn;
    TL_ASSERT(fn->info && fn->info->aligned, "'%s' is the general form", fn->name);
    uint32_t n = fn->info->promise.units.len;
    Accesses all = accesses_of(a, arena);
    a = narrowed(a, n < 64 ? ((uint64_t)1 << n) - 1 : ~(uint64_t)0, arena);
    for (uint32_t i = 0; i < n && i < 64; i++) {
        const TlAxisInfo *less = narrowed(a, a->promised & ~tl_axis_promise_bit(i), arena);
        Accesses now = accesses_of(less, arena);
        if (same_accesses(&all, &now))
            a = less;
    }
    return a->promised;
}

/* ---- tests ---- */

static void test_axes(TlArena *arena, TlTests *out, uint32_t param, uint32_t axes, int64_t most)
{
    for (uint32_t d = 0; axes >> d; d++)
        if (axes >> d & 1) {
            tile_image_test t = {TILE_TEST_STRIDE, param, d, 0, ~(uint64_t)(most - 1)};
            tl_vec_push(arena, out, t);
        }
}

/* What an access wants of strides: `local` or `asked`, and the power of two that they are below. */
static uint32_t wanted(const TlAxisInfo *a, const TlOp *op, bool local, int64_t *out_most)
{
    TlAccessInfo info = tl_access_info(a, op);
    *out_most = local ? TL_LOCAL_STRIDE : tl_access_most_stride(op);
    return local ? info.local : info.asked;
}

/* The strides on which 32-bit offsets within tiles depend, and then the other products of 32 bits:
 * what is below TL_LOCAL_STRIDE is low enough for these. */
static void test_strides(TlArena *arena, TlTests *out, const TlAxisInfo *a)
{
    uint32_t tested[64] = {0}; /* axes, by parameter */
    for (int local = 1; local >= 0; local--)
        for (const TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
            int64_t most = 0;
            uint32_t axes = is_access(op) ? wanted(a, op, local, &most) : 0;
            uint32_t param = axes ? tl_op_place(op).base->index : 0;
            if (param < 64)
                axes &= ~tested[param];
            test_axes(arena, out, param, axes, most);
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

static bool has_pairs(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = op->next)
        if (op->opcode == TL_OP_TENSOR && tl_attr_flag(op, TL_ATTR_PAIR))
            return true;
    return false;
}

/* `unpack` asks whether numbers of elements are even, and no access shows what it asked. */
static bool has_packed(const TlKernelInfo *k)
{
    for (uint32_t i = 0; i < k->params.len; i++)
        if (tl_is_packed(k->params.data[i].dtype))
            return true;
    return false;
}

static bool counts_elements(const tile_image_test *t)
{
    return t->kind == TILE_TEST_EXTENT || t->kind == TILE_TEST_STRIDE;
}

/* a: all promises hold; promised: those of units that must. Of 4-bit elements, extents and strides
 * are even at least. */
static void put_tests(const TlAxisInfo *a, uint64_t promised, TlArena *arena, TlTests *out)
{
    const TlPromise *promise = &a->fn->info->promise;
    bool packed = has_packed(a->fn->info);
    for (uint32_t i = 0; i < promise->units.len; i++) {
        tile_image_test t = promise->units.data[i];
        if (!(promised & tl_axis_promise_bit(i)))
            t.mask &= packed && counts_elements(&t);
        if (t.mask)
            tl_vec_push(arena, out, t);
    }
    test_strides(arena, out, a);
    if (promise->grid && a->fn->info->grid.len && has_pid(a->fn))
        tl_vec_push(arena, out, ((tile_image_test){.kind = TILE_TEST_GRID, .mask = 1}));
    if (has_pairs(a->fn))
        tl_vec_push(arena, out, ((tile_image_test){.kind = TILE_TEST_CLUSTER, .mask = 1}));
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

/* ---- forms of one kernel ---- */

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

static bool same_consts(const TlKernelInfo *a, const TlKernelInfo *b)
{
    if (a->consts.len != b->consts.len)
        return false;
    for (uint32_t i = 0; i < a->consts.len; i++)
        if (strcmp(a->consts.data[i].name, b->consts.data[i].name) != 0 ||
            strcmp(a->consts.data[i].value, b->consts.data[i].value) != 0)
            return false;
    return true;
}

bool tl_variant_of_one_kernel(const TlFn *a, const TlFn *b)
{
    const TlKernelInfo *x = a->info, *y = b->info;
    return x && y && strcmp(a->name, b->name) == 0 && same_consts(x, y) && x->warps == y->warps &&
           x->stages == y->stages && x->maxreg == y->maxreg && x->cluster == y->cluster &&
           x->cluster_axis == y->cluster_axis && x->ntuned == y->ntuned &&
           (x->buckets.len == 0 || memcmp(x->buckets.data, y->buckets.data,
                                          x->buckets.len * sizeof *x->buckets.data) == 0);
}

static uint32_t tested_accesses(const TlFn *fn)
{
    uint32_t n = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        n += is_access(op) && tl_attr(op, TL_ATTR_AXES) && !tl_attr_flag(op, TL_ATTR_UNCHECKED);
    return n;
}

void tl_variant_settle(TlFn *fn, TlArena *scratch)
{
    const TlAxisInfo *a = tl_axis_info(fn, scratch);
    fn->info->tests = (TlTests){0};
    put_tests(a, needed(a, scratch), &fn->module->arena, &fn->info->tests);
    fn->info->tests_known = true;
}

/* Whatever passes a's tests passes b's. */
static bool asks_no_more(const TlFn *b, const TlFn *a)
{
    const TlTests *x = &a->info->tests, *y = &b->info->tests;
    for (uint32_t i = 0; i < y->len; i++) {
        bool found = false;
        for (uint32_t k = 0; k < x->len && !found; k++)
            found = x->data[k].kind == y->data[i].kind && x->data[k].param == y->data[i].param &&
                    x->data[k].axis == y->data[i].axis &&
                    (y->data[i].mask & ~x->data[k].mask) == 0;
        if (!found)
            return false;
    }
    return true;
}

static bool needs_units(const TlFn *fn)
{
    for (uint32_t i = 0; i < fn->info->tests.len; i++)
        if (fn->info->tests.data[i].kind != TILE_TEST_GRID &&
            fn->info->tests.data[i].kind != TILE_TEST_CLUSTER && (fn->info->tests.data[i].mask & 1))
            return true;
    return false;
}

bool tl_variant_profits(const TlFn *fn, TlFn *const *others, uint32_t n)
{
    TL_ASSERT(fn->info->tests_known, "'%s' is not settled", fn->name);
    for (uint32_t i = 0; i < n; i++)
        if (tl_variant_is_aligned(others[i])
                ? asks_no_more(others[i], fn)
                : !needs_units(fn) && tested_accesses(fn) >= tested_accesses(others[i]))
            return false;
    return true;
}
