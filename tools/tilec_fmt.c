/* tilec_fmt.c: tilec fmt: files in the one format (frontend/format). */
#include "frontend/format/format.h"
#include "tools/input.h"
#include "tools/line_diff.h"
#include "tools/tilec_options.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int worse(int a, int b)
{
    return a > b ? a : b;
}

/* ---- one file ---- */

static bool read_path(const char *path, TlSbuf *out)
{
    if (input_read(path, out))
        return true;
    usage_error("cannot read '%s': %s", path, errno ? strerror(errno) : "read error");
    return false;
}

static int replace(const char *path, const char *text, size_t size)
{
    Outputs outputs = {.program = "tilec"};
    bool ok = output_write(&outputs, path, text, size) && output_commit(&outputs);
    output_drop(&outputs);
    return ok ? EXIT_FINE : EXIT_USAGE;
}

static void say_errors(TlCtx *ctx, const Options *o)
{
    TlSbuf out;
    const char *form = o->compile.diagnostics;
    tl_sbuf_init(&out, &ctx->perm);
    tl_diags_render(&ctx->diags,
                    strcmp(form, "json") == 0    ? TL_DIAG_JSON
                    : strcmp(form, "sarif") == 0 ? TL_DIAG_SARIF
                                                 : TL_DIAG_TEXT,
                    o->compile.color, &out);
    fwrite(out.text, 1, out.len, stderr);
}

static int show(TlCtx *ctx, const Options *o, const char *path, const TlSbuf *old, const char *text,
                size_t size)
{
    if (o->only_check && !o->diff)
        puts(path);
    if (o->diff) {
        TlSbuf diff;
        tl_sbuf_init(&diff, &ctx->perm);
        line_diff(&diff, path, old->text, old->len, text, size);
        fwrite(diff.text, 1, diff.len, stdout);
    }
    return o->only_check ? EXIT_PROGRAM : EXIT_FINE;
}

static int format_in(TlCtx *ctx, const Options *o, const char *path)
{
    TlSbuf old;
    size_t size;
    bool standard = strcmp(path, "-") == 0;
    tl_sbuf_init(&old, &ctx->perm);
    if (!read_path(path, &old))
        return EXIT_USAGE;
    uint32_t source = tl_diags_source(&ctx->diags, standard ? "<stdin>" : path, old.text, old.len);
    const char *text = tl_format_source(ctx, source, &size);
    if (!text) {
        say_errors(ctx, o);
        return EXIT_PROGRAM;
    }
    bool same = size == old.len && memcmp(text, old.text, size) == 0;
    if (o->only_check || o->diff)
        return same ? EXIT_FINE : show(ctx, o, standard ? "<stdin>" : path, &old, text, size);
    return same && !standard ? EXIT_FINE : replace(path, text, size);
}

static int format_file(const Options *o, const char *path)
{
    TlCtx ctx;
    TlGuard guard;
    tl_ctx_init(&ctx, (TlAlloc){0});
    if (TL_GUARD(&guard)) {
        int status = format_in(&ctx, o, path);
        tl_guard_pop(&guard);
        tl_ctx_free(&ctx);
        return status;
    }
    fprintf(stderr, "tilec: %s: %s%s\n", path,
            tl_fault_is_memory(guard.fault) ? "" : "internal error: ", guard.text);
    tl_ctx_free(&ctx);
    return EXIT_INTERNAL;
}

/* ---- folders ---- */

static int is_wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_tile(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".tile") == 0;
}

static int format_folder(const Options *o, const char *path);

static int format_entry(const Options *o, const char *folder, const char *name)
{
    struct stat s;
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    int status = EXIT_FINE;
    if (!path)
        return out_of_memory();
    snprintf(path, size, "%s/%s", folder, name);
    if (lstat(path, &s) == 0 && S_ISDIR(s.st_mode))
        status = format_folder(o, path);
    else if (is_tile(name) && stat(path, &s) == 0 && S_ISREG(s.st_mode))
        status = format_file(o, path);
    free(path);
    return status;
}

/* In the order of names. */
static int format_folder(const Options *o, const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, is_wanted, alphasort), status = EXIT_FINE;
    if (n < 0)
        return usage_error("cannot read '%s': %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        status = worse(status, format_entry(o, path, entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int format_path(const Options *o, const char *path)
{
    struct stat s;
    if (strcmp(path, "-") == 0 || stat(path, &s) != 0)
        return format_file(o, path); /* reading says what is wrong */
    if (S_ISDIR(s.st_mode))
        return o->recursive
                   ? format_folder(o, path)
                   : usage_error("'%s' is a folder; -r formats the .tile files in it", path);
    if (!S_ISREG(s.st_mode))
        return usage_error("'%s' is no regular file; - formats standard input", path);
    return format_file(o, path);
}

int command_fmt(const Options *o)
{
    int status = EXIT_FINE;
    for (size_t i = 0; i < o->files.len; i++)
        status = worse(status, format_path(o, o->files.data[i]));
    return status;
}
