/* Several targets in one result: one compilation each, side by side, with their images one after
 * another. An image's size is a multiple of its alignment and stands in its header, so the loader
 * finds the next image; it stops where no header's mark (tl_embed) or no bytes follow. */
#include <string.h>

#include "codegen/compile.h"
#include "codegen/gen/codegen.h"
#include "codegen/header.h"
#include "codegen/target/host_code.h"
#include "codegen/target/target.h"
#include "codegen/target/worker.h"

typedef struct Part { /* one target */
    struct Fat *fat;
    tilec_options o;
    tilec_output *one;
    tilec_status status;
    TlWorker worker;
} Part;

typedef struct Fat {
    const char *name, *text;
    size_t size;
    const tilec_options *options;
    TlFiles *files;
    tilec_output *out;
    TlArena scratch;
    TlSbuf images, events;
    Part *parts;
    uint32_t nparts;
} Fat;

/* The n-th name of the list; NULL after the last. */
static const char *nth_target(Fat *f, uint32_t n)
{
    TL_ASSERT(f->options->target, "no list of targets");
    const char *p = f->options->target;
    for (; n > 0; n--) {
        p += strcspn(p, ",");
        if (!*p)
            return NULL;
        p++;
    }
    return tl_strndup(&f->scratch, p, strcspn(p, ","));
}

/* ---- the compilations ---- */

static void compile_part(void *part)
{
    Part *p = part;
    const Fat *f = p->fat;
    tilec_output_free(p->one);
    p->one = NULL;
    p->status = tl_compile(f->name, f->text, f->size, &p->o, f->files, &p->one);
}

/* In parallel, except when dumps are printed, which must stay in order. */
static uint32_t most_at_once(const tilec_options *o)
{
    bool watched = o->print_after || o->dump_dir || o->time_passes || o->stop_after || o->override;
    return watched ? 1 : tl_worker_most(o->alloc);
}

static void compile_parts(Fat *f)
{
    uint32_t most = most_at_once(f->options);
    for (uint32_t i = 0; i < f->nparts; i += most) {
        uint32_t end = i + most < f->nparts ? i + most : f->nparts;
        for (uint32_t k = i; k < end; k++)
            tl_worker_start(&f->parts[k].worker, compile_part, &f->parts[k]);
        for (uint32_t k = i; k < end; k++)
            tl_worker_join(&f->parts[k].worker);
    }
}

static void list_parts(Fat *f, const char *stage, uint32_t most)
{
    while (f->nparts < most && nth_target(f, f->nparts))
        f->nparts++;
    f->parts = TL_NEW_ARRAY(&f->scratch, Part, f->nparts);
    for (uint32_t i = 0; i < f->nparts; i++) {
        Part *p = &f->parts[i];
        *p = (Part){.fat = f, .o = *f->options};
        p->o.target = nth_target(f, i);
        p->o.emit = stage;
        if (p->o.time_trace)
            p->o.time_trace += (int)i;
        if (i)
            p->o.diagnostic = NULL;
    }
}

/* Takes over the results of a compilation. Diagnostics are usually the same for every target: only
 * those of the first target, and of a target that fails, are shown. */
static tilec_status take_part(Fat *f, Part *p)
{
    if (p->status == TILEC_ERRORS && !p->o.diagnostic && f->options->diagnostic) {
        p->o.diagnostic = f->options->diagnostic;
        compile_part(p);
    }
    if (!p->one)
        return p->status;
    f->out->message = tl_strndup(&f->out->arena, p->one->message, strlen(p->one->message));
    f->out->depends = tl_strndup(&f->out->arena, p->one->depends, strlen(p->one->depends));
    tl_sbuf_put(&f->images, p->one->data, p->one->size);
    if (p->one->events)
        tl_sbuf_puts(&f->events, p->one->events);
    return p->status;
}

static tilec_status compile_targets(Fat *f, const char *stage, uint32_t most)
{
    TL_ASSERT(most > 0, "no target at all");
    list_parts(f, stage, most);
    compile_parts(f);
    for (uint32_t i = 0; i < f->nparts; i++) {
        tilec_status status = take_part(f, &f->parts[i]);
        if (status)
            return status;
    }
    return TILEC_OK;
}

static tilec_status compile_all(Fat *f)
{
    const char *stage = f->options->emit;
    bool obj = !strcmp(stage, "obj");
    if (!obj && strcmp(stage, "image") != 0) {
        tilec_status status = compile_targets(f, stage, 1);
        if (status == TILEC_OK)
            tl_output_set(f->out, f->images.text, f->images.len);
        return status;
    }
    tilec_status status = compile_targets(f, "image", UINT32_MAX);
    if (status)
        return status;
    size_t size = f->images.len;
    void *data = f->images.text;
    if (obj) {
        const char *image = tl_image_name(&f->scratch, f->options, f->name);
        data = tl_embed(image,
                        tl_target_object_triple(f->options->target), data, size, &f->scratch,
                        &size);
    }
    tl_output_set(f->out, data, size);
    return TILEC_OK;
}

tilec_status tl_compile_fat(const char *name, const char *text, size_t size,
                            const tilec_options *options, TlFiles *files,
                            tilec_output **out_output)
{
    tilec_output *out = *out_output = tl_output_new(options);
    if (!out)
        return TILEC_NO_MEMORY;
    Fat f = {.name = name,
             .text = text,
             .size = size,
             .options = options,
             .files = files,
             .out = out};
    tl_arena_init(&f.scratch, out->arena.alloc);
    TlGuard g;
    tilec_status status;
    if (TL_GUARD(&g)) {
        tl_sbuf_init(&f.images, &f.scratch);
        tl_sbuf_init(&f.events, &f.scratch);
        status = compile_all(&f);
        if (f.events.len)
            tl_output_set_trace(out, f.events.text);
        tl_guard_pop(&g);
    } else {
        status = tl_fault_is_memory(g.fault) ? TILEC_NO_MEMORY : TILEC_INTERNAL;
    }
    for (uint32_t i = 0; i < f.nparts && f.parts; i++)
        tilec_output_free(f.parts[i].one);
    tl_arena_free(&f.scratch);
    return status;
}
