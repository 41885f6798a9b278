/* tilec_bind: records the files that a source imports, their texts, and the cache's folder, as
 * they are now. Imports are found by parsing, as for the cache's key. Errors in the source or in
 * an import are left for the compilation to report, because it will see the same files. */
#include "codegen/compile_bound.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/core.h"
#include "codegen/options.h"
#include "codegen/target/worker.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "ir/support/guard.h"

typedef struct Bind {
    tilec_bound *bound;
    const char *name, *text;
    size_t size;
    const tilec_options *o;
    tilec_status status;
} Bind;

/* Notes what an import means, or that there is no such file. */
static const char *read_now(void *user, TlArena *arena, const char *path, size_t *out_size,
                            const char **out_error)
{
    tilec_bound *b = user;
    (void)arena;
    TlFile f = {.path = tl_strndup(&b->arena, path, strlen(path))};
    f.text = tl_source_read(&b->arena, path, &f.size, &f.error);
    tl_vec_push(&b->arena, &b->files.known, f);
    *out_size = f.size;
    *out_error = f.error;
    return f.text;
}

static void read_imports(Bind *bind)
{
    TlGuard g;
    TlCtx ctx;
    TlFrontendOptions fo = {.read = read_now,
                            .read_user = bind->bound,
                            .include_dirs = bind->o->include_dirs,
                            .ninclude_dirs = (uint32_t)bind->o->ninclude_dirs};
    tl_ctx_init(&ctx, bind->bound->alloc);
    if (TL_GUARD(&g)) {
        const char *text = tl_strndup(&ctx.perm, bind->text, bind->size);
        tl_frontend_imports(&ctx, tl_diags_source(&ctx.diags, bind->name, text, bind->size), &fo);
        tl_guard_pop(&g);
    } else {
        bind->status = g.fault == TL_FAULT_MEMORY ? TILEC_NO_MEMORY : TILEC_INTERNAL;
    }
    tl_ctx_free(&ctx);
}

static void note_process(Bind *bind)
{
    const char *said = secure_getenv("TILE_PROCESS");
    TlGuard g;
    if (said && TL_GUARD(&g)) {
        bind->bound->process = tl_strndup(&bind->bound->arena, said, strlen(said));
        tl_guard_pop(&g);
    } else if (said) {
        bind->status = TILEC_NO_MEMORY;
    }
}

static bool begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Is there an `import` that no name of a library's module follows? Most sources need not be parsed,
 * and nor does the library, which imports itself alone. */
static bool may_import_files(const char *text, size_t size)
{
    static const char WORD[] = "import";
    const char *end = text + size;
    for (const char *p = text; (p = memmem(p, (size_t)(end - p), WORD, sizeof WORD - 1));) {
        p += sizeof WORD - 1;
        while (p < end && strchr(" \t\r\n", *p) && *p)
            p++;
        if (p < end && !begins_name(*p))
            return true;
    }
    return false;
}

/* On a thread of the compiler's: the caller's may have a small stack. */
static void run(void *user)
{
    Bind *bind = user;
    tilec_bound *b = bind->bound;
    char why[TL_STORE_PATH + 256];
    b->cached = tl_store_open(&b->store, bind->o->cache, why, sizeof why);
    b->files.fixed = true;
    note_process(bind);
    tl_core_find();
    if (!tl_source_is_tile_ir(bind->name) && may_import_files(bind->text, bind->size))
        read_imports(bind);
}

tilec_status tilec_bind(const char *name, const char *text, size_t size,
                        const tilec_options *options, tilec_bound **out_bound)
{
    tilec_options o;
    if (!name || !text || !out_bound || !tl_options_take(&o, options) ||
        tilec_options_check(&o, NULL, 0) != TILEC_OK)
        return TILEC_USAGE;
    TlAlloc alloc = {o.alloc ? o.alloc : tl_libc_alloc, o.alloc_user};
    tilec_bound *b = alloc.fn(alloc.user, NULL, 0, sizeof *b);
    if (!b)
        return TILEC_NO_MEMORY;
    memset(b, 0, sizeof *b);
    b->alloc = alloc;
    tl_arena_init(&b->arena, alloc);
    Bind bind = {b, name, text, size, &o, TILEC_OK};
    TlWorker w;
    tl_worker_start(&w, run, &bind);
    tl_worker_join(&w);
    if (bind.status != TILEC_OK)
        tilec_bound_free(b);
    else
        *out_bound = b;
    return bind.status;
}

void tilec_bound_free(tilec_bound *bound)
{
    if (!bound)
        return;
    TlAlloc alloc = bound->alloc;
    tl_arena_free(&bound->arena);
    alloc.fn(alloc.user, bound, sizeof *bound, 0);
}
