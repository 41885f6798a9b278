/* launch_again.c: a launch of a kernel like one before.
 *
 * Checking arguments takes longer than many kernels on a CPU. So a kernel keeps some launches, as
 * they were bound, and one that differs from such a launch in nothing but addresses, and scalars
 * that nothing depends on, takes that over:
 *
 *  1. of each argument all is equal but the address, whose bits that forms test are those of
 *     before (`units`), as is whether there is one
 *  2. arrays of which one is written are apart, or as far from each other as before
 *  3. the new addresses and scalars are put where the old ones are
 *
 * Where addresses and scalars are the same, 2 and 3 have nothing to do.
 *
 * A thread takes what is kept out of the kernel while it launches, so that no other one sees it
 * change; who finds nothing binds anew. Where launches alternate between more shapes than are
 * kept, keeping is work in vain: after a miss, as many misses go by without as there were, up to a
 * few. */
#include "runtime/runtime.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_PATIENCE = 15, KEPT = 4 };

/* As the caller gave it. */
typedef struct given {
    int32_t kind, dtype, rank, strided; /* rank and strided: 0 of what is no view */
    uint64_t bytes;
    uint64_t strides[TILE_MAX_RANK]; /* bits of strides that count: all or none */
} given;

/* A launch. */
typedef struct kept {
    bool holds;
    bool any_scalars; /* nothing depends on them */
    uint64_t units;   /* bits of addresses */
    tl_instance *form;
    tl_launch launch; /* args and slots: those below */
    given *given;     /* of each parameter, as are: */
    tile_arg *args;
    uint64_t *spans;
    uint64_t *slots;
} kept;

struct tl_again {
    unsigned wait, patience;
    unsigned last, next; /* kept: what was taken over last, what is given up next */
    uint32_t room;       /* slots */
    kept kept[KEPT];
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
    size_t each =
        params * (sizeof(tile_arg) + sizeof(given) + sizeof(uint64_t)) + slots * sizeof(uint64_t);
    tl_again *a = calloc(1, sizeof *a + KEPT * each);
    if (!a)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    a->room = slots;
    for (int i = 0; i < KEPT; i++) {
        kept *e = &a->kept[i];
        e->args = (tile_arg *)(void *)((char *)(a + 1) + (size_t)i * each);
        e->given = (given *)(void *)(e->args + params);
        e->spans = (uint64_t *)(void *)(e->given + params);
        e->slots = e->spans + params;
    }
    k->has_again = true;
    atomic_store_explicit(&k->again, a, memory_order_release);
    return TILE_OK;
}

void tl_again_close(tile_kernel *k)
{
    free(atomic_load(&k->again));
}

/* ---- is it the same? ---- */

/* All but the address or the scalar. Without branches but for the rank: those take longer. */
static bool is_like(const given *g, const tile_arg *before, const tile_arg *arg)
{
    bool is_view = g->kind == TILE_ARG_VIEW;
    uint64_t other = (uint32_t)((g->kind ^ arg->kind) | (g->dtype ^ arg->dtype));
    other |= g->bytes ^ arg->bytes;
    if (is_view)
        other |= (uint32_t)((g->rank ^ arg->rank) | (g->strided ^ arg->strided));
    if (other)
        return false;
    for (int i = 0; i < g->rank; i++)
        other |= (uint64_t)(arg->extent[i] ^ before->extent[i]) |
                 ((uint64_t)(arg->stride[i] ^ before->stride[i]) & g->strides[i]);
    return !other;
}

static bool is_aligned_alike(const kept *e, const void *x, const void *y)
{
    return x == y || (!x == !y && !(((uintptr_t)x ^ (uintptr_t)y) & e->units));
}

/* Arrays i, which is written, and j, at their new addresses. */
static bool meet_as_before(const kept *e, const tile_arg *args, uint32_t i, uint32_t j)
{
    uintptr_t p = (uintptr_t)args[i].address, q = (uintptr_t)args[j].address;
    if (q - p >= e->spans[i] && p - q >= e->spans[j] && e->spans[i] != UINT64_MAX &&
        e->spans[j] != UINT64_MAX)
        return true;
    return q - p == (uintptr_t)e->args[j].address - (uintptr_t)e->args[i].address;
}

static bool are_apart_as_before(const kept *e, const tile_arg *args)
{
    const tile_image_kernel *k = e->launch.kernel;
    const tile_image_param *params = tl_image_at(e->launch.image, k->params);
    for (uint32_t i = 0; i < k->nparams; i++)
        for (uint32_t j = 0; !params[i].is_const && e->spans[i] && j < k->nparams; j++)
            if (i != j && e->spans[j] && !meet_as_before(e, args, i, j))
                return false;
    return true;
}

/* *out_moved: it has other addresses, or scalars. */
static bool is_same(const kept *e, const tl_question *q, bool *out_moved)
{
    bool moved = false;
    if (!e->holds || q->grid || q->nargs != e->launch.nargs || !q->args)
        return false;
    for (uint32_t i = 0; i < q->nargs; i++) {
        const tile_arg *arg = &q->args[i], *before = &e->args[i];
        if (!is_like(&e->given[i], before, arg))
            return false;
        moved |= before->kind == TILE_ARG_SCALAR ? arg->scalar != before->scalar
                                                 : arg->address != before->address;
        if (before->kind == TILE_ARG_SCALAR ? !e->any_scalars && arg->scalar != before->scalar
                                            : !is_aligned_alike(e, arg->address, before->address))
            return false;
    }
    *out_moved = moved;
    return !moved || are_apart_as_before(e, q->args);
}

/* ---- taking over ---- */

static void put_addresses(kept *e, const tl_question *q)
{
    const tile_image_slot *s = tl_image_at(e->launch.image, e->launch.kernel->slots);
    for (uint32_t i = 0; i < q->nargs; i++) {
        e->args[i].address = q->args[i].address;
        e->args[i].scalar = q->args[i].scalar;
    }
    for (uint32_t i = 0; i < e->launch.nslots; i++)
        if (s[i].kind == TILE_SLOT_POINTER)
            e->slots[i] = (uint64_t)(uintptr_t)e->args[s[i].param].address;
        else if (s[i].kind == TILE_SLOT_SCALAR)
            e->slots[i] = e->args[s[i].param].scalar;
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
    for (unsigned i = 0, at = a ? a->last : 0; a && i < KEPT; i++, at = (at + 1) % KEPT) {
        kept *e = &a->kept[at];
        if (!is_same(e, q, &moved))
            continue;
        if (moved)
            put_addresses(e, q);
        a->wait = a->patience = 0;
        a->last = at;
        *out_form = e->form;
        return &e->launch;
    }
    return NULL;
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

static given given_of(const tile_arg *arg)
{
    given g = {.kind = arg->kind, .dtype = arg->dtype, .bytes = arg->bytes};
    if (arg->kind != TILE_ARG_VIEW)
        return g;
    g.rank = arg->rank;
    g.strided = arg->strided;
    for (int i = 0; i < arg->rank; i++)
        g.strides[i] = arg->strided && arg->extent[i] > 1 ? UINT64_MAX : 0;
    return g;
}

static void put(kept *e, const tl_question *q, const tl_bound *b)
{
    tl_instance *first = q->kernel->instances[b->instance];
    e->holds = true;
    e->form = b->form;
    e->units = units_of(first, b->form);
    e->any_scalars = needs_no_scalars(q->kernel, first, b->form);
    e->launch = b->launch;
    for (uint32_t i = 0; i < q->nargs; i++)
        e->given[i] = given_of(&q->args[i]);
    memcpy(e->args, b->args, q->nargs * sizeof *e->args);
    memcpy(e->spans, b->spans, q->nargs * sizeof *e->spans);
    memcpy(e->slots, b->slots, b->launch.nslots * sizeof *e->slots);
    e->launch.args = e->args;
    e->launch.slots = e->slots;
    e->launch.maps = NULL;
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
    kept *e = &a->kept[a->next];
    a->last = a->next;
    a->next = (a->next + 1) % KEPT;
    put(e, q, b);
}
