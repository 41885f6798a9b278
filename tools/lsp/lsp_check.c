/* lsp_check.c: documents, and what the front end says about them. */
#include "frontend/stdlib.h"
#include "tools/input.h"
#include "tools/lsp/lsp.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- documents ---- */

Document *lsp_document(Server *s, const char *uri)
{
    for (Document *d = s->documents; d; d = d->next)
        if (uri && strcmp(d->uri, uri) == 0)
            return d;
    return NULL;
}

static void forget_check(Document *d)
{
    tilec_output_free(d->cost);
    d->cost = NULL;
    if (d->checked)
        tl_ctx_free(&d->ctx);
    d->checked = false;
}

static void free_document(Document *d)
{
    forget_check(d);
    free(d->uri);
    free(d->path);
    free(d->text);
    free(d);
}

void lsp_set_text(Document *d, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return;
    forget_check(d); /* its tree points into the text */
    free(d->text);
    d->text = copy;
    d->size = strlen(copy);
    d->dirty = true;
}

Document *lsp_open(Server *s, const char *uri, const char *text, double version)
{
    lsp_close(s, uri);
    Document *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->uri = strdup(uri);
    d->path = lsp_uri_path(uri);
    d->version = version;
    lsp_set_text(d, text);
    if (!d->uri || !d->path || !d->text) {
        free_document(d);
        return NULL;
    }
    d->next = s->documents;
    s->documents = d;
    return d;
}

void lsp_close(Server *s, const char *uri)
{
    for (Document **at = &s->documents; *at; at = &(*at)->next)
        if (strcmp((*at)->uri, uri) == 0) {
            Document *d = *at;
            *at = d->next;
            free_document(d);
            return;
        }
}

/* ---- the check ---- */

/* Imports: open documents come before files. */
static const char *read_import(void *user, TlArena *arena, const char *path, size_t *out_size,
                               const char **out_error)
{
    Server *s = user;
    TlSbuf out;
    for (Document *d = s->documents; d; d = d->next)
        if (strcmp(d->path, path) == 0) {
            *out_size = d->size;
            return tl_strndup(arena, d->text, d->size);
        }
    tl_sbuf_init(&out, arena);
    bool ok = input_read(path, &out);
    *out_size = out.len;
    *out_error = ok || errno == ENOENT
                     ? NULL
                     : tl_format(arena, "%s", errno ? strerror(errno) : "read error");
    return ok ? out.text : NULL;
}

typedef TL_VEC(TlConstArg) TlConstArgs;

/* A value for a constant that has none, so that the kernel's types can be shown: no judgement of
 * the program rests on it. */
static const char *sample(const TlParamDecl *p)
{
    if (p->form == TL_PF_CONST_FN)
        return "identity";
    if (p->form == TL_PF_CONST_TYPE)
        return "f32";
    bool is_bool = p->type->kind == TL_TE_SCALAR && p->type->dtype == TL_BOOL;
    return is_bool ? "false" : "64";
}

/* Has the constant a value by the kernel's tune clauses? */
static bool is_tuned(const TlItem *kernel, TlName name)
{
    for (uint32_t i = 0; i < kernel->clauses.len; i++)
        for (uint32_t k = 0; k < kernel->clauses.data[i].tunes.len; k++)
            if (kernel->clauses.data[i].tunes.data[k].name == name)
                return true;
    return false;
}

/* The constants that a kernel needs for an instance. */
static void add_samples(Document *d, const TlItem *kernel, TlConstArgs *out)
{
    for (uint32_t i = 0; i < kernel->clauses.len; i++)
        if (kernel->clauses.data[i].kind == TL_CL_INSTANTIATE)
            return;
    for (uint32_t i = 0; i < kernel->params.len; i++) {
        const TlParamDecl *p = &kernel->params.data[i];
        bool is_const =
            p->form == TL_PF_CONST || p->form == TL_PF_CONST_FN || p->form == TL_PF_CONST_TYPE;
        if (is_const && !p->init && !is_tuned(kernel, p->name))
            tl_vec_push(&d->ctx.perm, out, (TlConstArg){p->name, sample(p)});
    }
}

static TlDiags copy_of(const TlDiags *d)
{
    TlDiags copy = *d;
    copy.rows.cap = d->rows.len + 1;
    copy.rows.data = TL_NEW_ARRAY(d->arena, TlDiag, copy.rows.cap);
    if (d->rows.len)
        memcpy(copy.rows.data, d->rows.data, d->rows.len * sizeof *d->rows.data);
    return copy;
}

/* Instances of the kernels that have values for all their constants, or of the others. */
static void lower_all(Document *d, bool sampled)
{
    const TlUnit *unit = tl_program_unit(d->program, NULL);
    for (uint32_t i = 0; i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        TlConstArgs consts = {0};
        const char *message;
        if (item->kind != TL_IT_KERNEL || item->broken)
            continue;
        add_samples(d, item, &consts);
        if ((consts.len > 0) != sampled)
            continue;
        TlDiags before = copy_of(&d->ctx.diags);
        TlModule *module = tl_module_new(&d->ctx);
        tl_frontend_lower(d->program, item->name, consts.data, consts.len, NULL, module, &message);
        tl_module_free(module);
        if (sampled) /* what was said depends on our values */
            d->ctx.diags = before;
    }
}

static void check_in(Server *s, Document *d)
{
    TlFrontendOptions options = {.read = read_import,
                                 .read_user = s,
                                 .include_dirs = s->include_dirs,
                                 .ninclude_dirs = (uint32_t)s->ninclude_dirs,
                                 .debug = true,
                                 .facts = &d->facts};
    tl_facts_init(&d->facts, &d->ctx.perm);
    d->source = tl_diags_source(&d->ctx.diags, d->path, d->text, d->size);
    d->program = tl_frontend_check(&d->ctx, d->source, &options);
    lower_all(d, false);
    lower_all(d, true);
    tl_diags_sort(&d->ctx.diags);
}

void lsp_check(Server *s, Document *d)
{
    TlGuard guard;
    if (!d->dirty)
        return;
    d->dirty = false;
    d->news = true;
    forget_check(d);
    tl_ctx_init(&d->ctx, (TlAlloc){0});
    d->program = NULL;
    d->checked = true;
    if (TL_GUARD(&guard)) {
        check_in(s, d);
        tl_guard_pop(&guard);
        return;
    }
    json_t *params = json_object();
    lsp_put_number(params, "type", 1);
    lsp_put_text(params, "message", guard.text);
    lsp_notify(s, "window/logMessage", params);
    d->program = NULL;
    forget_check(d);
}

/* ---- the library as files ---- */

/* A file of a module of the library, so that an editor can open it; written at its first use. */
static char *library_file(Server *s, const char *module)
{
    char path[512];
    size_t size;
    const char *text = tl_stdlib_find(module, &size), *tmp = getenv("TMPDIR");
    if (!s->library) {
        snprintf(path, sizeof path, "%s/tilec-lsp-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        s->library = mkdtemp(path) ? strdup(path) : NULL;
    }
    if (!text || !s->library)
        return NULL;
    snprintf(path, sizeof path, "%s/%s.tile", s->library, module);
    FILE *f = access(path, R_OK) ? fopen(path, "wb") : NULL;
    if (f) {
        bool ok = fwrite(text, 1, size, f) == size;
        if (fclose(f) != 0 || !ok) {
            unlink(path);
            return NULL;
        }
        chmod(path, 0444);
    }
    return lsp_path_uri(path);
}

void lsp_remove_library(Server *s)
{
    char path[512];
    for (size_t i = 0; s->library && tl_stdlib_name(i); i++) {
        snprintf(path, sizeof path, "%s/%s.tile", s->library, tl_stdlib_name(i));
        unlink(path);
    }
    if (s->library)
        rmdir(s->library);
    free(s->library);
    s->library = NULL;
}

char *lsp_source_uri(Server *s, Document *d, uint32_t source)
{
    const char *path = d->ctx.diags.sources.data[source].path;
    if (source == d->source)
        return strdup(d->uri);
    return strncmp(path, "std.", 4) ? lsp_path_uri(path) : library_file(s, path);
}

/* ---- diagnostics ---- */

static json_t *location(Server *s, Document *d, TlLoc loc)
{
    const TlSource *source = &d->ctx.diags.sources.data[loc.file];
    char *uri = lsp_source_uri(s, d, loc.file);
    json_t *l = json_object();
    lsp_put_text(l, "uri", uri ? uri : d->uri);
    json_object_set_new(l, "range", lsp_loc_range(source->text, source->size, loc));
    free(uri);
    return l;
}

static void add_related(Server *s, Document *d, json_t *list, TlLoc loc, const char *text)
{
    json_t *one = json_object();
    json_object_set_new(one, "location", location(s, d, loc));
    lsp_put_text(one, "message", text);
    json_array_append_new(list, one);
}

/* Where a row is shown in the document: its place, or for one of an import the import's. */
static TlLoc shown_at(const Document *d, TlLoc loc)
{
    const TlUnit *unit = d->program ? tl_program_unit(d->program, NULL) : NULL;
    if (loc.file == d->source && loc.line)
        return loc;
    for (uint32_t i = 0; unit && loc.line && i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        const TlUnit *other =
            item->kind == TL_IT_IMPORT ? tl_program_unit(d->program, item->name) : NULL;
        if (other && other->source == loc.file)
            return item->loc;
    }
    return (TlLoc){d->source, 1, 1, 1};
}

static json_t *diagnostic(Server *s, Document *d, const TlDiag *row)
{
    enum { ERROR = 1, WARNING = 2, UNNECESSARY = 1 };
    TlLoc at = shown_at(d, row->loc);
    bool elsewhere = row->loc.line && row->loc.file != d->source;
    json_t *one = json_object(), *related = json_array();
    char *message = tl_format(&d->ctx.perm, "%s%s%s", row->text, row->label ? ": " : "",
                              row->label ? row->label : "");
    json_object_set_new(one, "range", lsp_loc_range(d->text, d->size, at));
    lsp_put_number(one, "severity", row->severity == TL_ERROR ? ERROR : WARNING);
    lsp_put_text(one, "code", tl_diag_code(row->id));
    lsp_put_text(one, "source", "tilec");
    lsp_put_text(one, "message", message);
    if (strcmp(tl_diag_code(row->id), "unused") == 0) {
        json_object_set_new(one, "tags", json_pack("[i]", UNNECESSARY));
    }
    if (elsewhere)
        add_related(s, d, related, row->loc, "here");
    for (uint32_t i = 0; i < row->notes.len; i++)
        if (row->notes.data[i].loc.line)
            add_related(s, d, related, row->notes.data[i].loc, row->notes.data[i].text);
    if (json_array_size(related))
        json_object_set_new(one, "relatedInformation", related);
    else
        json_decref(related);
    return one;
}

void lsp_publish(Server *s, Document *d)
{
    lsp_check(s, d);
    if (!d->news)
        return;
    d->news = false;
    json_t *params = json_object(), *list = json_array();
    for (uint32_t i = 0; d->checked && i < d->ctx.diags.rows.len; i++)
        json_array_append_new(list, diagnostic(s, d, &d->ctx.diags.rows.data[i]));
    lsp_put_text(params, "uri", d->uri);
    lsp_put_number(params, "version", d->version);
    json_object_set_new(params, "diagnostics", list);
    lsp_notify(s, "textDocument/publishDiagnostics", params);
}

/* ---- fixes ---- */

static json_t *fix(Server *s, Document *d, const TlDiag *row)
{
    json_t *action = json_object(), *edit = json_object();
    json_t *change = lsp_put_object(edit, "changes");
    json_t *list = json_array(), *one = json_object(), *about = json_array();
    json_object_set_new(one, "range", lsp_loc_range(d->text, d->size, row->loc));
    lsp_put_text(one, "newText", row->fixit);
    json_array_append_new(list, one);
    json_object_set_new(change, d->uri, list);
    lsp_put_text(action, "title", tl_format(&d->ctx.perm, "Replace by '%s'", row->fixit));
    lsp_put_text(action, "kind", "quickfix");
    json_array_append_new(about, diagnostic(s, d, row));
    json_object_set_new(action, "diagnostics", about);
    json_object_set_new(action, "edit", edit);
    return action;
}

json_t *lsp_code_actions(Server *s, Document *d, const json_t *params)
{
    const json_t *range = json_object_get(params, "range");
    const json_t *start = json_object_get(range, "start"), *end = json_object_get(range, "end");
    double first = lsp_number(start, "line"), last = lsp_number(end, "line");
    json_t *list = json_array();
    lsp_check(s, d);
    for (uint32_t i = 0; d->checked && i < d->ctx.diags.rows.len; i++) {
        const TlDiag *row = &d->ctx.diags.rows.data[i];
        double line = (double)row->loc.line - 1;
        if (row->fixit && row->loc.file == d->source && line >= first && line <= last)
            json_array_append_new(list, fix(s, d, row));
    }
    return list;
}
