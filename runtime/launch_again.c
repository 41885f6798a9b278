/* launch_again.c: launches with the arguments of the launch before.
 *
 * A loop starts the same kernel on the same arrays, step after step. What its arguments were found
 * to be then holds again, bit for bit: checks, names, strides, the grid, the form and its parameter
 * block follow from the arguments and the image alone. So a kernel keeps them, of arguments that
 * came twice in a row; a launch compares its arguments with those, and copies. Not of instances
 * that are checked (these ask which buffers there are), tuned or one of several, nor where forms
 * are still to be made, nor of tensor maps.
 *
 * One thread at a time looks; another one meanwhile goes the whole way. */
#include "runtime/runtime.h"
#include <string.h>

static bool enter(tl_again *a)
{
    return !atomic_load_explicit(&a->busy, memory_order_relaxed) &&
           !atomic_exchange_explicit(&a->busy, true, memory_order_acquire);
}

static void leave(tl_again *a)
{
    atomic_store_explicit(&a->busy, false, memory_order_release);
}

static bool may_repeat(const tl_question *q)
{
    return !q->grid && q->args && q->nargs > 0 && q->nargs <= TL_AGAIN_ARGS;
}

bool tl_again_take(const tl_question *q, tl_bound *out)
{
    tl_again *a = &q->kernel->again;
    if (!may_repeat(q) || !enter(a))
        return false;
    size_t bytes = q->nargs * sizeof *q->args;
    bool same = a->nargs == q->nargs && memcmp(a->given, q->args, bytes) == 0;
    if (same) {
        memcpy(out->args, a->args, bytes);
        memcpy(out->slots, a->slots, a->launch.nslots * sizeof *out->slots);
        out->launch = a->launch;
        out->launch.args = out->args;
        out->launch.slots = out->slots;
        out->launch.maps = out->maps;
        out->nmaps = 0;
        out->own_grid = true;
        out->instance = 0;
        out->form = a->form;
    }
    leave(a);
    return same;
}

/* Different for most arguments that differ. */
static uint64_t sign_of(const tl_question *q)
{
    uint64_t sign = q->nargs;
    for (size_t i = 0; i < q->nargs; i++) {
        const tile_arg *x = &q->args[i];
        sign = sign * 31 + (uint64_t)(uintptr_t)x->address;
        sign = sign * 31 + (x->kind == TILE_ARG_VIEW ? (uint64_t)x->extent[0] : x->scalar);
    }
    return sign;
}

void tl_again_note(const tl_question *q, const tl_bound *b)
{
    tile_kernel *k = q->kernel;
    tl_again *a = &k->again;
    const tl_instance *first = k->instances[0];
    if (!may_repeat(q) || k->ninstances > 1 || k->tuned || b->nmaps || !b->form ||
        b->launch.nslots > TL_AGAIN_SLOTS || first->kernel->flags & TILE_KERNEL_CHECKED ||
        (first->forms && b->form != first) || !enter(a))
        return;
    uint64_t sign = sign_of(q);
    if (a->sign == sign) {
        a->nargs = (uint32_t)q->nargs;
        memcpy(a->given, q->args, q->nargs * sizeof *a->given);
        memcpy(a->args, b->args, q->nargs * sizeof *a->args);
        memcpy(a->slots, b->slots, b->launch.nslots * sizeof *a->slots);
        a->launch = b->launch;
        a->form = b->form;
    }
    a->sign = sign;
    leave(a);
}
