/* declared.c: what a file declares. */
#include "tools/declared.h"
#include "codegen/compile_library.h"
#include "frontend/stdlib.h"
#include "ir/support/guard.h"
#include "tools/input.h"
#include <string.h>

static const char *read_text(TlArena *arena, const char *path, size_t *out_size)
{
    TlSbuf text;
    tl_sbuf_init(&text, arena);
    if (!input_read(path, &text))
        return NULL;
    *out_size = text.len;
    return text.text;
}

TlProgram *declared(TlCtx *ctx, const char *path)
{
    TlFrontendOptions options = {.target_kind = "ref", .target_arch = ""};
    size_t size = 0;
    const char *text = !path || strcmp(path, "-") == 0 ? NULL
                       : tl_library_is_name(path)      ? tl_stdlib_find(path, &size)
                                                       : read_text(&ctx->perm, path, &size);
    if (!text)
        return NULL;
    return tl_frontend_check(ctx, tl_diags_source(&ctx->diags, path, text, size), &options);
}

static bool has_parameter(const TlProgram *p, const char *name)
{
    const char *other;
    bool is_const;
    for (uint32_t k = 0; k < tl_program_kernels(p); k++)
        for (uint32_t i = 0; (other = tl_program_param(p, k, i, &is_const)); i++)
            if (!is_const && strcmp(other, name) == 0)
                return true;
    return false;
}

static void say_of(const Options *o, const TlProgram *p)
{
    for (size_t i = 0; i < o->items.len; i++) {
        char name[256];
        const char *item = o->items.data[i];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(item, "="), item);
        if (tl_program_has_const(p, o->compile.kernel, name) && !has_parameter(p, name))
            fprintf(stderr, "tilec: '%s' is a constant, no parameter: give it by --const %s\n",
                    name, item);
    }
}

void say_constants(const Options *o)
{
    TlCtx ctx;
    TlGuard guard;
    if (o->items.len == 0)
        return;
    tl_ctx_init(&ctx, (TlAlloc){0});
    if (TL_GUARD(&guard)) {
        TlProgram *p = declared(&ctx, o->input);
        if (p)
            say_of(o, p);
        tl_guard_pop(&guard);
    }
    tl_ctx_free(&ctx);
}
