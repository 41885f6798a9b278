/* The entry of the compiler: tilec_compile_source and tilec_compile_file, with the cache in front
 * of the core.
 *
 * A result is looked up by a key that holds everything it depends on: options, machine, build, the
 * source, and every file that its imports may mean. To find these, source and imports are parsed,
 * which takes a fraction of a millisecond. On a miss, one thread of one process compiles while
 * others wait for the result. Only results without errors are kept, together with their warnings.
 * Whatever is wrong with the cache, the caller gets what compiling would give. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codegen/compile_bound.h"
#include "codegen/compile_library.h"
#include "codegen/core.h"
#include "codegen/core_process.h"
#include "codegen/options.h"
#include "codegen/source.h"
#include "codegen/target/worker.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "runtime/contract/fp_state.h"

/* One call, and what is known of it so far. */
typedef struct Ask {
    const char *name, *text;
    size_t size;
    bool is_file;           /* `name` is a path, and stands first in the list of files read */
    tilec_options o, given; /* given: the caller's, with its own callbacks */
    tilec_output *out;
    tilec_status status;
    TlArena arena;
    TlStore store;
    TlPart key;
    TlFiles files;       /* imports: of the key, or those that the caller has bound */
    int lock;            /* of the key; -1: none */
    TL_VEC(TlPart) said; /* diagnostics */
    bool unheard;        /* there was no memory for one of them */
} Ask;

static tilec_options complete(const tilec_options *options)
{
    tilec_options o;
    if (!tl_options_take(&o, options)) /* rejected by the core */
        o.struct_size = options->struct_size;
    if (!o.alloc)
        o.alloc = tl_libc_alloc;
    return o;
}

/* The files that the caller has bound; else none are known, and the disk is asked. */
static TlFiles bound_files(const Ask *a)
{
    return a->o.bound ? a->o.bound->files : (TlFiles){0};
}

/* An output with nothing but a message. */
static tilec_status refuse(Ask *a, tilec_status status, const char *format, const char *what,
                           const char *why)
{
    tilec_output_free(a->out);
    a->out = tl_output_refusal(&a->o, format, what, why);
    return a->out ? status : TILEC_NO_MEMORY;
}

/* ---- the key ---- */

typedef struct Reader {
    Ask *ask;
    TlSbuf *key;
    bool once; /* an import can be read only once, and the core is to read it */
} Reader;

/* Notes what an import means, or that there is no such file. */
static const char *read_import(void *user, TlArena *arena, const char *path, size_t *out_size,
                               const char **out_error)
{
    Reader *r = user;
    const tilec_bound *bound = r->ask->o.bound;
    r->once = r->once || (!bound && tl_source_is_stream(path));
    if (r->once)
        return NULL;
    TlArena *mine = &r->ask->arena;
    TlFile f = {.path = bound ? path : tl_strndup(mine, path, strlen(path))};
    f.text = bound ? tl_files_read(&r->ask->files, arena, path, &f.size, &f.error)
                   : tl_source_read(mine, path, &f.size, &f.error);
    tl_key_text(r->key, "import", path);
    if (f.text)
        tl_key_hash(r->key, "is", f.text, f.size);
    else
        tl_key_text(r->key, "is", NULL);
    if (!bound)
        tl_vec_push(mine, &r->ask->files.known, f);
    *out_size = f.size;
    *out_error = f.error;
    return f.text;
}

static bool put_imports(Ask *a, TlCtx *ctx, TlSbuf *key)
{
    Reader reader = {.ask = a, .key = key};
    TlFrontendOptions fo = {.read = read_import,
                            .read_user = &reader,
                            .include_dirs = a->o.include_dirs,
                            .ninclude_dirs = (uint32_t)a->o.ninclude_dirs};
    const char *text = tl_strndup(&ctx->perm, a->text, a->size);
    return tl_frontend_imports(ctx, tl_diags_source(&ctx->diags, a->name, text, a->size), &fo) &&
           !reader.once;
}

/* What is wrong with the program, the core tells. */
static bool put_imports_guarded(Ask *a, TlCtx *ctx, TlSbuf *key)
{
    TlGuard g;
    if (!TL_GUARD(&g))
        return false;
    bool ok = put_imports(a, ctx, key);
    tl_guard_pop(&g);
    return ok;
}

/* The key of the call, and the files in it; a program that cannot be parsed has none, nor one that
 * reads what can be read only once, nor a call whose tool is missing. */
static bool make_key(Ask *a)
{
    TlSbuf key;
    TlCtx ctx;
    tl_sbuf_init(&key, &a->arena);
    bool ok = tl_key_begin(&key, &a->o);
    tl_key_text(&key, "source", a->name);
    tl_key_hash(&key, "is", a->text, a->size);
    if (ok && !tl_source_is_tile_ir(a->name)) { /* which imports nothing */
        tl_ctx_init(&ctx, a->arena.alloc);
        ok = put_imports_guarded(a, &ctx, &key);
        tl_ctx_free(&ctx);
    }
    a->key = (TlPart){key.text, key.len};
    return ok;
}

/* ---- compiling ---- */

static void note_diagnostic(void *user, const char *rendered)
{
    Ask *a = user;
    TlGuard g;
    if (TL_GUARD(&g)) {
        size_t n = strlen(rendered);
        tl_vec_push(&a->arena, &a->said, (TlPart){tl_strndup(&a->arena, rendered, n), n});
        tl_guard_pop(&g);
    } else {
        a->unheard = true;
    }
    if (a->given.diagnostic)
        a->given.diagnostic(a->given.user, rendered);
}

/* The core's list begins with the imports. */
static void put_first(tilec_output *out, const char *path)
{
    out->depends = tl_format(&out->arena, "%s\n%s", path, out->depends);
}

static tilec_status compile_here(Ask *a)
{
    char why[TL_CORE_WHY];
    tilec_status status;
    const TlCore *core = tl_core(why, sizeof why, &status);
    if (!core)
        return refuse(a, status, "%s%s", why, "");
    return core->compile(a->name, a->text, a->size, &a->o, &a->files, &a->out);
}

static tilec_status compile_somewhere(Ask *a)
{
    char wrong[512];
    TlProcess process;
    TlProcessUse use = tl_process_wanted(&a->o, &process);
    if (!a->name || use == TL_PROCESS_OFF)
        return compile_here(a);
    if (tilec_options_check(&a->o, wrong, sizeof wrong))
        return refuse(a, TILEC_USAGE, "%s%s", wrong, "");
    if (use == TL_PROCESS_WRONG)
        return refuse(a, TILEC_USAGE, "the environment variable TILE_PROCESS is wrong: expected "
                                      "off, on or an absolute path, with ,memory=MIB and "
                                      ",seconds=N behind it%s%s", "", "");
    return tl_process_compile(&process, a->name, a->text, a->size, &a->o, &a->files, &a->out);
}

static tilec_status compile(Ask *a)
{
    tilec_status status = compile_somewhere(a);
    TlGuard g;
    if (a->is_file && a->text && a->out && TL_GUARD(&g)) {
        put_first(a->out, a->name);
        tl_guard_pop(&g);
    }
    return status;
}

/* ---- the cache ---- */

/* The output of an entry, with what was said when it was made. */
static bool answer(Ask *a, const TlEntry *e)
{
    TlGuard g;
    a->out = tl_output_new(&a->o);
    if (!a->out || !TL_GUARD(&g)) {
        tilec_output_free(a->out);
        a->out = NULL;
        return false;
    }
    const TlPart *depends = &e->parts[TL_PART_DEPENDS], *result = &e->parts[TL_PART_RESULT];
    tl_output_set(a->out, result->data, result->size);
    a->out->depends = tl_strndup(&a->out->arena, depends->data, depends->size);
    tl_guard_pop(&g);
    for (uint32_t i = TL_PART_DIAGNOSTIC; i < e->nparts && a->given.diagnostic; i++)
        a->given.diagnostic(a->given.user, e->parts[i].data);
    a->status = TILEC_OK;
    return true;
}

static bool look_up(Ask *a)
{
    TlEntry e;
    return tl_store_get(&a->store, a->key, &a->arena, &e) && answer(a, &e);
}

/* A tool may have been replaced while it ran: then it is not known of which the result is. Its time
 * of change cannot be set back. */
static bool has_same_tools(Ask *a)
{
    TlSbuf now;
    tl_sbuf_init(&now, &a->arena);
    return tl_key_begin(&now, &a->o) && now.len <= a->key.size &&
           !memcmp(now.text, a->key.data, now.len);
}

static void keep(Ask *a)
{
    if (a->files.others || !has_same_tools(a))
        return;
    TL_VEC(TlPart) parts = {0};
    tl_vec_push(&a->arena, &parts, a->key);
    tl_vec_push(&a->arena, &parts, (TlPart){a->out->data, a->out->size});
    tl_vec_push(&a->arena, &parts, (TlPart){a->out->depends, strlen(a->out->depends)});
    for (uint32_t i = 0; i < a->said.len; i++)
        tl_vec_push(&a->arena, &parts, a->said.data[i]);
    tl_store_put(&a->store, &(TlEntry){parts.data, parts.len});
}

static void compile_and_keep(Ask *a)
{
    a->o.diagnostic = note_diagnostic;
    a->o.user = a; /* `print` has nothing to say here: tl_key_may */
    a->status = compile(a);
    if (a->status == TILEC_OK && !a->unheard)
        keep(a);
}

/* Only one compiles; who waited for it finds the result. */
static void look_up_or_compile(Ask *a)
{
    if (!make_key(a)) {
        a->files = bound_files(a);
        a->status = compile(a);
        return;
    }
    if (look_up(a))
        return;
    a->lock = tl_store_lock(&a->store, a->key);
    if (a->lock < 0 || !look_up(a))
        compile_and_keep(a);
}

static bool uses_cache(Ask *a)
{
    char why[TL_STORE_PATH + 256];
    const tilec_bound *bound = a->o.bound;
    if (bound)
        a->store = bound->store;
    return a->name && tilec_options_check(&a->o, NULL, 0) == TILEC_OK && tl_key_may(&a->o) &&
           (bound ? bound->cached : tl_store_open(&a->store, a->o.cache, why, sizeof why));
}

/* On a thread of the compiler's: the caller's may have a small stack. */
static void run(void *user)
{
    Ask *a = user;
    TlGuard g;
    if (!uses_cache(a)) {
        a->status = compile(a);
        return;
    }
    a->lock = -1;
    tl_arena_init(&a->arena, (TlAlloc){a->o.alloc, a->o.alloc_user});
    if (TL_GUARD(&g)) {
        look_up_or_compile(a);
        tl_guard_pop(&g);
    } else if (!a->out) { /* no memory for the cache: perhaps there is enough without it */
        a->o = a->given;
        a->files = bound_files(a);
        a->status = compile(a);
    }
    tl_store_unlock(a->lock);
    tl_arena_free(&a->arena);
}

static tilec_status ask(Ask *a)
{
    TL_FP_SCOPE();
    TlWorker w;
    a->files = bound_files(a);
    if (tl_worker_is_lost())
        return refuse(a, TILEC_TOOL, "%s%s", "this process was forked while another thread was "
                                             "compiling: it cannot compile", "");
    tl_worker_start(&w, run, a);
    return tl_worker_join(&w)
               ? a->status
               : refuse(a, TILEC_NO_MEMORY, "%s%s", "the calling thread's stack is too small, and "
                                            "no thread with a larger one can be started", "");
}

tilec_status tilec_compile_source(const char *name, const char *text, size_t size,
                                  const tilec_options *options, tilec_output **out_output)
{
    Ask a = {.name = text ? name : NULL, .text = text, .size = size};
    a.o = a.given = complete(options);
    if (!out_output)
        return TILEC_USAGE;
    tilec_status status = ask(&a);
    *out_output = a.out;
    return status;
}

/* false: no memory. a->text stays NULL if the file cannot be read. */
static bool read_text(Ask *a, TlArena *arena, const char **out_error)
{
    TlGuard g;
    if (!TL_GUARD(&g))
        return false;
    a->text = tl_source_read(arena, a->name, &a->size, out_error);
    tl_guard_pop(&g);
    return true;
}

/* A module of the library is no file: it depends on nothing but the compiler. */
static tilec_status ask_library(Ask *a, TlArena *arena)
{
    TlGuard g;
    a->is_file = false;
    a->text = tilec_library_text(a->name, &a->size);
    if (a->text) {
        a->o.name = a->o.name ? a->o.name : tl_library_own_name(a->name);
        return ask(a);
    }
    if (!TL_GUARD(&g))
        return refuse(a, TILEC_NO_MEMORY, "%s%s", "out of memory", "");
    const char *kernels = tl_library_kernels(arena);
    tl_guard_pop(&g);
    return refuse(a, TILEC_IO, "the library has no module '%s'; those with kernels are %s", a->name,
                  kernels);
}

static tilec_status ask_file(Ask *a, TlArena *arena)
{
    const char *error = NULL;
    if (!read_text(a, arena, &error))
        return refuse(a, TILEC_NO_MEMORY, "%s%s", "out of memory", "");
    if (!a->text)
        return refuse(a, TILEC_IO, "cannot read '%s': %s", a->name,
                      error ? error : strerror(ENOENT));
    return ask(a);
}

tilec_status tilec_compile_file(const char *path, const tilec_options *options,
                                tilec_output **out_output)
{
    Ask a = {.name = path, .is_file = true};
    TlArena arena;
    if (!out_output)
        return TILEC_USAGE;
    a.o = a.given = complete(options);
    tl_arena_init(&arena, (TlAlloc){a.o.alloc, a.o.alloc_user});
    bool bad = !path || tilec_options_check(&a.o, NULL, 0) != TILEC_OK; /* the core says what */
    tilec_status status = bad                        ? ask(&a)
                          : tl_library_is_name(path) ? ask_library(&a, &arena)
                                                     : ask_file(&a, &arena);
    *out_output = a.out;
    tl_arena_free(&arena);
    return status;
}
