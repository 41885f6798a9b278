/* Several targets in one result: one compilation each, their images one after another. An image's size
 * is a multiple of its alignment and is in its header, so that the loader finds the next, and the end
 * by the absence of a header's mark (tl_embed) or of bytes. */
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/compile.h"
#include "codegen/header.h"

typedef struct Fat {
    const char *name, *text;
    size_t size;
    const tilec_options *options;
    tilec_output *out;
    TlArena scratch;
    TlSbuf images;
    tilec_output *one; /* of the target at hand */
    uint32_t count;
} Fat;

/* The n-th name of the list; NULL behind the last. */
static const char *nth_target(Fat *f, uint32_t n)
{
    const char *p = f->options->target;
    for (; n > 0; n--) {
        p += strcspn(p, ",");
        if (!*p)
            return NULL;
        p++;
    }
    return tl_strndup(&f->scratch, p, strcspn(p, ","));
}

static tilec_status compile_once(Fat *f, tilec_options *o)
{
    tilec_output_free(f->one);
    f->one = NULL;
    return tl_compile(f->name, f->text, f->size, o, &f->one);
}

/* Compiles for one target and takes over what that says. Diagnostics are the same for every target
 * as a rule: only the first one's, and those of a target that fails, are shown. */
static tilec_status compile_one(Fat *f, const char *target, const char *stage)
{
    tilec_options o = *f->options;
    o.target = target;
    o.emit = stage;
    if (f->count++)
        o.diagnostic = NULL;
    tilec_status status = compile_once(f, &o);
    if (status == TILEC_ERRORS && !o.diagnostic && f->options->diagnostic) {
        o.diagnostic = f->options->diagnostic;
        status = compile_once(f, &o);
    }
    if (!f->one)
        return status;
    f->out->message = tl_strndup(&f->out->arena, f->one->message, strlen(f->one->message));
    f->out->depends = tl_strndup(&f->out->arena, f->one->depends, strlen(f->one->depends));
    tl_sbuf_put(&f->images, f->one->data, f->one->size);
    return status;
}

static tilec_status compile_all(Fat *f)
{
    const char *stage = f->options->emit ? f->options->emit : "image", *target;
    bool obj = !strcmp(stage, "obj");
    if (!f->text && !strcmp(f->name, "-")) {
        f->out->message =
            "standard input can be read only once: give a file to compile for several "
            "targets";
        return TILEC_USAGE;
    }
    if (!obj && strcmp(stage, "image") != 0) {
        tilec_status status = compile_one(f, nth_target(f, 0), stage);
        if (status == TILEC_OK)
            tl_output_set(f->out, f->images.text, f->images.len);
        return status;
    }
    for (uint32_t i = 0; (target = nth_target(f, i)); i++) {
        tilec_status status = compile_one(f, target, "image");
        if (status)
            return status;
    }
    size_t size = f->images.len;
    void *data = f->images.text;
    if (obj)
        data = tl_embed(tl_format(&f->scratch, "tile_image_%s", tl_stem(&f->scratch, f->name)),
                        data, size, &f->scratch, &size);
    tl_output_set(f->out, data, size);
    return TILEC_OK;
}

tilec_status tl_compile_fat(const char *name, const char *text, size_t size,
                            const tilec_options *options, tilec_output **out_output)
{
    tilec_output *out = *out_output = tl_output_new(options);
    if (!out)
        return TILEC_NO_MEMORY;
    Fat f = {.name = name, .text = text, .size = size, .options = options, .out = out};
    tl_arena_init(&f.scratch, out->arena.alloc);
    TlGuard g;
    tilec_status status;
    if (TL_GUARD(&g)) {
        tl_sbuf_init(&f.images, &f.scratch);
        status = compile_all(&f);
        tl_guard_pop(&g);
    } else {
        status = g.fault == TL_FAULT_MEMORY ? TILEC_NO_MEMORY : TILEC_INTERNAL;
    }
    tilec_output_free(f.one);
    tl_arena_free(&f.scratch);
    return status;
}
