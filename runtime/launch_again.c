/* launch_again.c: a launch of a kernel like the one before.
 *
 * Checking arguments takes longer than many kernels on a CPU. So a kernel keeps its last launch, as
 * it was bound, and one that differs from it in nothing but addresses, and scalars that nothing
 * depends on, takes that over:
 *
 *  1. of each argument all is equal but the address, whose bits that forms test are those of
 *     before (`units`), as is whether there is one
 *  2. arrays of which one is written are apart, or as far from each other as before
 *  3. the new addresses and scalars are put where the old ones are
 *
 * Where addresses and scalars are the same, 2 and 3 have nothing to do.
 *
 * A thread takes what is kept out of the kernel while it launches, so that no other one sees it
 * change; who finds nothing binds anew. Where launches alternate between shapes, keeping is work in
 * vain: after a miss, as many launches go by without as there were misses, up to a few. */
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_PATIENCE = 15 };

/* As the caller gave it. */
typedef struct given {
    int32_t kind, dtype, rank, strided;
    uint64_t bytes;
} given;

struct tl_again {
    bool holds;       /* a launch */
    bool any_scalars; /* nothing depends on them */
    unsigned wait, patience;
    uint32_t room;  /* slots */
    uint64_t units; /* bits of addresses */
    tl_instance *form;
    tl_launch launch; /* args and slots: those below */
    given *given;     /* of each parameter, as are: */
    uint64_t *spans;
    uint64_t *slots;
    tile_arg args[];
};

/* ---- memory ---- */

tile_status tl_again_open(tile_kernel *k)
{
    enum { MORE = 16 }; /* slots, of forms that are made later */
    uint32_t params = 0, slots = 0;
    if (k->has_again)
        return TILE_OK;
    for (uint32_t i = 0; i < k->ninstances; i++) {
        const tile_image_kernel *of = k->instances[i]->kernel;
        params = of->nparams > params ? of->nparams : params;
        slots = of->nslots + MORE > slots ? of->nslots + MORE : slots;
    }
    tl_again *a =
        calloc(1, sizeof *a + params * (sizeof *a->args + sizeof *a->given + sizeof *a->spans) +
                      slots * sizeof *a->slots);
    if (!a)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    a->room = slots;
    a->spans = (uint64_t *)(void *)&a->args[params];
    a->slots = a->spans + params;
    a->given = (given *)(void *)(a->slots + slots);
    k->has_again = true;
    atomic_store_explicit(&k->again, a, memory_order_release);
    return TILE_OK;
}

void tl_again_close(tile_kernel *k)
{
    free(atomic_load(&k->again));
}

/* ---- is it the same? ---- */

static bool is_like(const given *g, const tile_arg *before, const tile_arg *arg)
{
    if (g->kind != arg->kind || g->dtype != arg->dtype || g->bytes != arg->bytes)
        return false;
    if (before->kind != TILE_ARG_VIEW)
        return true;
    if (g->rank != arg->rank || g->strided != arg->strided)
        return false;
    for (int i = 0; i < arg->rank; i++) {
        if (arg->extent[i] != before->extent[i])
            return false;
        if (arg->strided && arg->extent[i] > 1 && arg->stride[i] != before->stride[i])
            return false;
    }
    return true;
}

static bool is_aligned_alike(const tl_again *a, const void *x, const void *y)
{
    return !x == !y && !(((uintptr_t)x ^ (uintptr_t)y) & a->units);
}

/* Arrays i, which is written, and j, at their new addresses. */
static bool meet_as_before(const tl_again *a, const tile_arg *args, uint32_t i, uint32_t j)
{
    uintptr_t p = (uintptr_t)args[i].address, q = (uintptr_t)args[j].address;
    if (q - p >= a->spans[i] && p - q >= a->spans[j] && a->spans[i] != UINT64_MAX &&
        a->spans[j] != UINT64_MAX)
        return true;
    return q - p == (uintptr_t)a->args[j].address - (uintptr_t)a->args[i].address;
}

static bool are_apart_as_before(const tl_again *a, const tile_arg *args)
{
    const tile_image_kernel *k = a->launch.kernel;
    const tile_image_param *params = tl_image_at(a->launch.image, k->params);
    for (uint32_t i = 0; i < k->nparams; i++)
        for (uint32_t j = 0; !params[i].is_const && a->spans[i] && j < k->nparams; j++)
            if (i != j && a->spans[j] && !meet_as_before(a, args, i, j))
                return false;
    return true;
}

/* *out_moved: it has other addresses, or scalars. */
static bool is_same(const tl_again *a, const tl_question *q, bool *out_moved)
{
    bool moved = false;
    if (!a->holds || q->grid || q->nargs != a->launch.nargs || !q->args)
        return false;
    for (uint32_t i = 0; i < q->nargs; i++) {
        const tile_arg *arg = &q->args[i], *before = &a->args[i];
        if (!is_like(&a->given[i], before, arg))
            return false;
        moved |= before->kind == TILE_ARG_SCALAR ? arg->scalar != before->scalar
                                                 : arg->address != before->address;
        if (before->kind == TILE_ARG_SCALAR ? !a->any_scalars && arg->scalar != before->scalar
                                            : !is_aligned_alike(a, arg->address, before->address))
            return false;
    }
    *out_moved = moved;
    return !moved || are_apart_as_before(a, q->args);
}

/* ---- taking over ---- */

static void put_addresses(tl_again *a, const tl_question *q)
{
    const tile_image_slot *s = tl_image_at(a->launch.image, a->launch.kernel->slots);
    for (uint32_t i = 0; i < q->nargs; i++) {
        a->args[i].address = q->args[i].address;
        a->args[i].scalar = q->args[i].scalar;
    }
    for (uint32_t i = 0; i < a->launch.nslots; i++)
        if (s[i].kind == TILE_SLOT_POINTER)
            a->slots[i] = (uint64_t)(uintptr_t)a->args[s[i].param].address;
        else if (s[i].kind == TILE_SLOT_SCALAR)
            a->slots[i] = a->args[s[i].param].scalar;
}

tl_again *tl_again_take(tile_kernel *k)
{
    return atomic_exchange_explicit(&k->again, NULL, memory_order_acquire);
}

void tl_again_give(tile_kernel *k, tl_again *a)
{
    if (a)
        atomic_store_explicit(&k->again, a, memory_order_release);
}

tl_launch *tl_again_launch(tl_again *a, const tl_question *q, const tl_instance **out_form)
{
    bool moved;
    if (!a || !is_same(a, q, &moved))
        return NULL;
    if (moved)
        put_addresses(a, q);
    a->wait = a->patience = 0;
    *out_form = a->form;
    return &a->launch;
}

/* ---- keeping ---- */

static uint64_t units_in(const tl_instance *form)
{
    const tile_image_test *tests = tl_image_at(form->image, form->kernel->tests);
    uint64_t units = 0;
    for (uint32_t i = 0; i < form->kernel->ntests; i++)
        units |= tests[i].kind == TILE_TEST_POINTER ? tests[i].mask : 0;
    return units;
}

/* The bits of addresses that the form's tests, and those of the forms before it, look at. */
static uint64_t units_of(tl_instance *first, tl_instance *chosen)
{
    enum { ELEMENT = 15 };
    uint64_t units = ELEMENT;
    for (tl_instance *form = first; form != chosen; form = tl_next_form(form)) {
        if (!form) /* the chosen one was made */
            break;
        units |= units_in(form);
    }
    return units | units_in(chosen);
}

/* Does an expression, or a test of a form, read a scalar? */
static bool reads_scalars(const tl_instance *in)
{
    const tile_image_expr *exprs = tl_image_at(in->image, in->kernel->exprs);
    const tile_image_test *tests = tl_image_at(in->image, in->kernel->tests);
    for (uint32_t i = 0; i < in->kernel->ntests; i++)
        if (tests[i].kind == TILE_TEST_SCALAR)
            return true;
    for (uint32_t i = 0; i < in->kernel->nexprs; i++) {
        const tile_hx_ins *code = tl_image_at(in->image, exprs[i].code);
        for (uint32_t j = 0; j < exprs[i].ncode; j++)
            if (code[j].op == TILE_HX_ARG)
                return true;
    }
    return false;
}

static bool needs_no_scalars(const tile_kernel *k, tl_instance *first, const tl_instance *chosen)
{
    bool any = k->ninstances == 1 && !reads_scalars(chosen);
    for (tl_instance *form = first; form && any; form = tl_next_form(form))
        any = !reads_scalars(form);
    return any;
}

void tl_again_keep(tl_again *a, const tl_question *q, const tl_bound *b)
{
    if (!a || q->grid || b->nmaps || b->launch.nslots > a->room ||
        b->launch.kernel->flags & TILE_KERNEL_CHECKED)
        return;
    if (a->wait) {
        a->wait--;
        return;
    }
    a->patience = a->patience < MOST_PATIENCE ? 2 * a->patience + 1 : MOST_PATIENCE;
    a->wait = a->patience;
    tl_instance *first = q->kernel->instances[b->instance];
    a->holds = true;
    a->form = b->form;
    a->units = units_of(first, b->form);
    a->any_scalars = needs_no_scalars(q->kernel, first, b->form);
    a->launch = b->launch;
    for (uint32_t i = 0; i < q->nargs; i++) {
        const tile_arg *arg = &q->args[i];
        a->given[i] = (given){arg->kind, arg->dtype, arg->rank, arg->strided, arg->bytes};
    }
    memcpy(a->args, b->args, q->nargs * sizeof *a->args);
    memcpy(a->spans, b->spans, q->nargs * sizeof *a->spans);
    memcpy(a->slots, b->slots, b->launch.nslots * sizeof *a->slots);
    a->launch.args = a->args;
    a->launch.slots = a->slots;
    a->launch.maps = NULL;
}
