/* The result of a compilation: an arena with everything that belongs to it. */
#include <string.h>

#include "codegen/compile.h"
#include "ir/support/guard.h"

tilec_output *tl_output_new(const tilec_options *o)
{
    tilec_output *out = o->alloc(o->alloc_user, NULL, 0, sizeof *out);
    if (!out)
        return NULL;
    memset(out, 0, sizeof *out);
    tl_arena_init(&out->arena, (TlAlloc){o->alloc, o->alloc_user});
    out->message = out->depends = "";
    return out;
}

tilec_output *tl_output_refusal(const tilec_options *o, const char *format, const char *what,
                                const char *why)
{
    tilec_output *const out = tl_output_new(o);
    TlGuard g;
    if (out && TL_GUARD(&g)) {
        out->message = tl_format(&out->arena, format, what, why);
        tl_guard_pop(&g);
    }
    return out;
}

void tl_output_set(tilec_output *out, const void *data, size_t size)
{
    TL_ASSERT(data || !size, "%zu bytes of nothing", size);
    char *copy = tl_alloc(&out->arena, size + 64 + 1);
    copy = (char *)(((uintptr_t)copy + 63) / 64 * 64);
    if (size)
        memcpy(copy, data, size);
    copy[size] = 0;
    out->data = copy;
    out->size = size;
}

void tl_output_set_trace(tilec_output *out, const char *events)
{
    int n = (int)strlen(events) - 2; /* without the last separator */
    out->events = tl_strndup(&out->arena, events, strlen(events));
    out->trace = tl_format(&out->arena, "{\"traceEvents\":[\n%.*s\n]}\n", n, events);
}

const void *tilec_output_data(const tilec_output *output, size_t *out_size)
{
    if (out_size)
        *out_size = output ? output->size : 0;
    return output ? output->data : NULL;
}

const char *tilec_output_message(const tilec_output *output)
{
    return output ? output->message : "";
}

const tilec_report *tilec_output_report(const tilec_output *output)
{
    return output ? output->report : NULL;
}

const tilec_tuning *tilec_output_tunings(const tilec_output *output, size_t *out_count)
{
    if (out_count)
        *out_count = output ? output->ntunings : 0;
    return output ? output->tunings : NULL;
}

const char *tilec_output_trace(const tilec_output *output)
{
    return output && output->trace ? output->trace : "";
}

const char *tilec_output_depends(const tilec_output *output)
{
    return output ? output->depends : "";
}

void tilec_output_free(tilec_output *output)
{
    if (!output)
        return;
    TlAlloc alloc = output->arena.alloc;
    tl_arena_free(&output->arena);
    alloc.fn(alloc.user, output, sizeof *output, 0);
}
