/* lsp_outline.c: what can be folded, and the items of all open documents and their imports. */
#include "ir/support/ascii.h"
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

/* ---- folding ---- */

static void add_fold(json_t *list, size_t first, size_t last, const char *kind)
{
    if (last <= first)
        return;
    json_t *one = json_object();
    lsp_put_number(one, "startLine", (double)first);
    lsp_put_number(one, "endLine", (double)last);
    if (kind)
        lsp_put_text(one, "kind", kind);
    json_array_append_new(list, one);
}

/* Lines that belong together: those of comments, or of imports. */
typedef struct Run {
    const char *kind;
    size_t first, last;
} Run;

static void extend(Run *r, json_t *list, const char *kind, size_t from, size_t to)
{
    if (r->kind && kind && strcmp(r->kind, kind) == 0 && from <= r->last + 1) {
        r->last = to;
        return;
    }
    if (r->kind)
        add_fold(list, r->first, r->last, r->kind);
    *r = (Run){kind, from, to};
}

json_t *lsp_folds(Server *s, Document *d, const json_t *params)
{
    enum { MOST_OPEN = 256 };
    (void)s;
    (void)params;
    size_t open[MOST_OPEN], n = 0, line = 0, seen = 0;
    Run run = {0};
    bool import = false;
    json_t *list = json_array();
    for (LspToken t = lsp_token(d->text, d->size, 0); t.kind != LSP_END;
         t = lsp_token(d->text, d->size, t.to)) {
        for (; seen < t.from; seen++)
            line += d->text[seen] == '\n';
        size_t end = line;
        for (size_t i = t.from; i < t.to; i++)
            end += d->text[i] == '\n';
        char c = t.kind == LSP_SIGN ? d->text[t.from] : 'a';
        import = import || (!n && t.kind == LSP_WORD && lsp_token_is(d->text, t, "import"));
        extend(&run, list, t.kind == LSP_COMMENT ? "comment" : import ? "imports" : NULL, line,
               end);
        import = import && c != ';';
        if (strchr("([{", c) && n < MOST_OPEN)
            open[n++] = line;
        else if (strchr(")]}", c) && n) /* the closing bracket stays visible */
            add_fold(list, open[--n], line ? line - 1 : 0, NULL);
    }
    extend(&run, list, NULL, 0, 0);
    return list;
}

/* ---- symbols of the workspace ---- */

static bool contains(const char *name, const char *query)
{
    size_t n = strlen(query);
    for (; strlen(name) >= n; name++)
        if (tl_same_letters(name, query, n))
            return true;
    return false;
}

static void add_unit(Server *s, Document *d, const TlUnit *unit, const char *query, json_t *list)
{
    for (uint32_t i = 0; i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        if (!item->name || item->kind == TL_IT_ASSERT || item->kind == TL_IT_IMPORT ||
            !contains(item->name, query))
            continue;
        json_t *where = lsp_location(s, d, item->loc);
        if (!where)
            continue;
        json_t *one = json_object();
        lsp_put_text(one, "name", item->name);
        lsp_put_number(one, "kind", lsp_symbol_kind(item->kind));
        json_object_set_new(one, "location", where);
        json_array_append_new(list, one);
    }
}

/* An import that is no open document, once. */
static bool is_new(const Server *s, const char *path, json_t *seen)
{
    for (const Document *d = s->documents; d; d = d->next)
        if (strcmp(d->path, path) == 0)
            return false;
    if (json_object_get(seen, path))
        return false;
    json_object_set_new(seen, path, json_true());
    return true;
}

json_t *lsp_workspace_symbols(Server *s, const json_t *params)
{
    const char *query = json_string_value(json_object_get(params, "query"));
    json_t *list = json_array(), *seen = json_object();
    for (Document *d = s->documents; d; d = d->next) {
        lsp_check(s, d);
        const TlUnit *own = d->checked && d->program ? tl_program_unit(d->program, NULL) : NULL;
        if (own)
            add_unit(s, d, own, query ? query : "", list);
        for (uint32_t i = 0; own && i < own->items.len; i++) {
            const TlItem *item = own->items.data[i];
            const TlUnit *unit =
                item->kind == TL_IT_IMPORT ? tl_program_unit(d->program, item->name) : NULL;
            if (unit && is_new(s, d->ctx.diags.sources.data[unit->source].path, seen))
                add_unit(s, d, unit, query ? query : "", list);
        }
    }
    json_decref(seen);
    return list;
}
