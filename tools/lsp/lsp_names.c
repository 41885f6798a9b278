/* lsp_names.c: what a name is, where it comes from, what a file declares. */
#include "frontend/format/format.h"
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

size_t lsp_params_offset(const Document *d, const json_t *params)
{
    const json_t *p = json_object_get(params, "position");
    double line = lsp_number(p, "line");
    double character = lsp_number(p, "character");
    return lsp_offset(d->text, d->size, line > 0 ? line : 0, character > 0 ? character : 0);
}

const TlFact *lsp_fact_at(Server *s, Document *d, const json_t *params)
{
    lsp_check(s, d);
    if (!d->checked)
        return NULL;
    TlLoc loc = lsp_loc(d->text, lsp_params_offset(d, params));
    return tl_facts_find(&d->facts, d->source, loc.line, loc.col);
}

/* The item of the document's own source whose name is at the place. */
const TlItem *lsp_item_at(const Document *d, size_t offset)
{
    const TlUnit *unit = d->program ? tl_program_unit(d->program, NULL) : NULL;
    for (uint32_t i = 0; unit && i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        size_t from = item->loc.line ? lsp_loc_offset(d->text, d->size, item->loc) : d->size;
        size_t to = from + item->loc.len;
        while (item->kind == TL_IT_IMPORT && to < d->size && !strchr(";\n", d->text[to]))
            to++; /* the whole of std.name */
        if (item->kind != TL_IT_ASSERT && offset >= from && offset <= to)
            return item;
    }
    return NULL;
}

/* ---- hover ---- */

json_t *lsp_markdown(const char *code, const char *text)
{
    json_t *m = json_object();
    size_t n = strlen(code) + (text ? strlen(text) : 0) + 32;
    char *value = malloc(n);
    if (value)
        snprintf(value, n, "%s%s%s%s%s", *code ? "```tile\n" : "", code, *code ? "\n```" : "",
                 text && *code ? "\n" : "", text ? text : "");
    lsp_put_text(m, "kind", "markdown");
    lsp_put_text(m, "value", value ? value : "");
    free(value);
    return m;
}

static void put_types(TlSbuf *out, const char *lead, const TlFactTypes *types)
{
    for (uint32_t i = 0; i < types->n; i++)
        tl_sbuf_putf(out, "%s%s", i ? " | " : lead, types->text[i]);
    tl_sbuf_puts(out, types->more ? " | ..." : "");
}

static const char *source_name(Document *d, const TlFact *f)
{
    return tl_strndup(&d->ctx.perm, d->text + lsp_loc_offset(d->text, d->size, f->loc), f->loc.len);
}

/* What stands behind the parameter's name, too: `A[M, K]`. */
static const char *declaration(Document *d, const TlFact *f)
{
    const char *at = d->text + lsp_loc_offset(d->text, d->size, f->def);
    size_t n = f->def.len, left = d->size - (size_t)(at - d->text);
    if (n < left && at[n] == '[') {
        const char *stop = memchr(at, ']', left);
        n = stop ? (size_t)(stop - at) + 1 : n;
    }
    return tl_strndup(&d->ctx.perm, at, n);
}

static void describe(Document *d, const TlFact *f, TlSbuf *code, const char **doc)
{
    if (f->item) {
        tl_ast_print_head(code, f->item);
        *doc = f->item->doc;
    } else if (f->builtin) {
        tl_sbuf_puts(code, f->fast ? "fast." : "");
        tl_builtin_describe_name(f->builtin, code);
        *doc = tl_builtin_doc(f->builtin);
    } else if (f->def.line && f->def.file == d->source) {
        tl_sbuf_puts(code, declaration(d, f));
    } else if (f->types.n) {
        tl_sbuf_puts(code, source_name(d, f));
    }
    put_types(code, ": ", &f->types);
    put_types(code, "\n-> ", &f->results);
}

json_t *lsp_hover(Server *s, Document *d, const json_t *params)
{
    const TlFact *f = lsp_fact_at(s, d, params);
    const TlItem *item = d->checked ? lsp_item_at(d, lsp_params_offset(d, params)) : NULL;
    const char *doc = item ? item->doc : NULL;
    TlSbuf code;
    if (!f && !item)
        return NULL;
    tl_sbuf_init(&code, &d->ctx.perm);
    if (item)
        tl_ast_print_head(&code, item);
    else
        describe(d, f, &code, &doc);
    if (!code.len)
        return NULL;
    while (code.len && code.text[code.len - 1] == '\n')
        code.text[--code.len] = 0;
    json_t *hover = json_object();
    json_object_set_new(hover, "contents", lsp_markdown(code.text, doc));
    json_object_set_new(hover, "range", lsp_loc_range(d->text, d->size, item ? item->loc : f->loc));
    return hover;
}

/* ---- where names are ---- */

json_t *lsp_location(Server *s, Document *d, TlLoc loc)
{
    const TlSource *source = &d->ctx.diags.sources.data[loc.file];
    char *uri = lsp_source_uri(s, d, loc.file);
    if (!uri)
        return NULL;
    json_t *l = json_object();
    lsp_put_text(l, "uri", uri);
    json_object_set_new(l, "range", lsp_loc_range(source->text, source->size, loc));
    free(uri);
    return l;
}

/* An import leads to the beginning of its module. */
static TlLoc item_place(const Document *d, const TlItem *item)
{
    const TlUnit *unit =
        item->kind == TL_IT_IMPORT ? tl_program_unit(d->program, item->name) : NULL;
    return unit ? (TlLoc){unit->source, 1, 1, 1} : item->loc;
}

json_t *lsp_definition(Server *s, Document *d, const json_t *params)
{
    const TlFact *f = lsp_fact_at(s, d, params);
    const TlItem *item = d->checked ? lsp_item_at(d, lsp_params_offset(d, params)) : NULL;
    if (item)
        return lsp_location(s, d, item_place(d, item));
    return f && f->def.line ? lsp_location(s, d, f->def) : NULL;
}

bool lsp_same_place(TlLoc a, TlLoc b)
{
    return a.file == b.file && a.line == b.line && a.col == b.col;
}

typedef void (*EachFn)(Server *s, Document *d, TlLoc loc, json_t *list);

static json_t *uses(Server *s, Document *d, const json_t *params, EachFn each)
{
    const TlFact *f = lsp_fact_at(s, d, params);
    const TlItem *item = d->checked ? lsp_item_at(d, lsp_params_offset(d, params)) : NULL;
    TlLoc def = item ? item_place(d, item) : f ? f->def : (TlLoc){0};
    json_t *list = json_array();
    if (item)
        each(s, d, item->loc, list);
    else if (f && f->item && f->item->loc.file == d->source)
        each(s, d, f->item->loc, list);
    for (uint32_t i = 0; def.line && i < d->facts.all.len; i++) {
        const TlFact *use = d->facts.all.data[i];
        if (use->loc.file == d->source && lsp_same_place(use->def, def))
            each(s, d, use->loc, list);
    }
    return list;
}

static void add_reference(Server *s, Document *d, TlLoc loc, json_t *list)
{
    json_array_append_new(list, lsp_location(s, d, loc));
}

static void add_highlight(Server *s, Document *d, TlLoc loc, json_t *list)
{
    (void)s;
    json_t *one = json_object();
    json_object_set_new(one, "range", lsp_loc_range(d->text, d->size, loc));
    json_array_append_new(list, one);
}

json_t *lsp_references(Server *s, Document *d, const json_t *params)
{
    return uses(s, d, params, add_reference);
}

json_t *lsp_highlight(Server *s, Document *d, const json_t *params)
{
    return uses(s, d, params, add_highlight);
}

/* ---- symbols ---- */

int lsp_symbol_kind(TlItemKind kind)
{
    enum { MODULE = 2, FUNCTION = 12, CONSTANT = 14, STRUCT = 23 };
    switch (kind) {
    case TL_IT_IMPORT: return MODULE;
    case TL_IT_CONST: return CONSTANT;
    case TL_IT_STRUCT: return STRUCT;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL:
    case TL_IT_ASSERT: break;
    }
    return FUNCTION;
}

/* From the line of the item's name to its end. */
static json_t *item_range(const Document *d, const TlItem *item)
{
    size_t from = lsp_loc_offset(d->text, d->size, item->loc), to = from + item->loc.len;
    while (from && d->text[from - 1] != '\n')
        from--;
    if (item->body && item->body->end.line)
        to = lsp_loc_offset(d->text, d->size, item->body->end) + 1;
    return lsp_range(d->text, d->size, from, to < d->size ? to : d->size);
}

static json_t *symbol(const Document *d, const TlItem *item)
{
    json_t *one = json_object(), *within = json_array();
    lsp_put_text(one, "name", item->name);
    lsp_put_number(one, "kind", lsp_symbol_kind(item->kind));
    if (item->kind == TL_IT_KERNEL)
        lsp_put_text(one, "detail", "kernel");
    json_object_set_new(one, "range", item_range(d, item));
    json_object_set_new(one, "selectionRange", lsp_loc_range(d->text, d->size, item->loc));
    for (uint32_t i = 0; i < item->nested.len; i++)
        if (!item->nested.data[i]->is_lambda)
            json_array_append_new(within, symbol(d, item->nested.data[i]));
    json_object_set_new(one, "children", within);
    return one;
}

json_t *lsp_symbols(Server *s, Document *d, const json_t *params)
{
    (void)params;
    json_t *list = json_array();
    lsp_check(s, d);
    const TlUnit *unit = d->checked && d->program ? tl_program_unit(d->program, NULL) : NULL;
    for (uint32_t i = 0; unit && i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        if (item->kind != TL_IT_ASSERT && item->name)
            json_array_append_new(list, symbol(d, item));
    }
    return list;
}

/* ---- inlay hints ---- */

typedef struct Inlays {
    Document *d;
    json_t *list;
    double first, last; /* lines, from 0 */
} Inlays;

/* The type of a name that `auto` declares, behind the name. */
static void add_inlay(Inlays *n, TlLoc loc)
{
    enum { TYPE = 1 };
    Document *d = n->d;
    const TlFact *f = tl_facts_find(&d->facts, d->source, loc.line, loc.col);
    double line = (double)loc.line - 1;
    if (!f || !f->types.n || line < n->first || line > n->last)
        return;
    TlSbuf label;
    tl_sbuf_init(&label, &d->ctx.perm);
    put_types(&label, ": ", &f->types);
    json_t *one = json_object();
    json_object_set_new(
        one, "position",
        lsp_position(d->text, d->size, lsp_loc_offset(d->text, d->size, loc) + loc.len));
    lsp_put_text(one, "label", label.text);
    lsp_put_number(one, "kind", TYPE);
    json_array_append_new(n->list, one);
}

static void add_inlays(Inlays *n, const TlStmt *st);

static void add_item_inlays(Inlays *n, const TlItem *item)
{
    for (uint32_t k = 0; k < item->params.len; k++) {
        const TlParamDecl *p = &item->params.data[k];
        if (p->form == TL_PF_VALUE && p->type->kind == TL_TE_AUTO)
            add_inlay(n, p->loc);
    }
    add_inlays(n, item->body);
}

static void add_inlays(Inlays *n, const TlStmt *st)
{
    for (; st; st = st->kind == TL_ST_IF ? st->els : NULL) {
        bool is_auto =
            st->kind == TL_ST_UNPACK || (st->kind == TL_ST_DECL && st->type->kind == TL_TE_AUTO);
        for (uint32_t i = 0; is_auto && i < st->decls.len; i++)
            add_inlay(n, st->decls.data[i].loc);
        for (uint32_t i = 0; i < st->body.len; i++)
            add_inlays(n, st->body.data[i]);
        add_inlays(n, st->init);
        add_inlays(n, st->then);
        if (st->fn)
            add_item_inlays(n, st->fn);
    }
}

json_t *lsp_inlays(Server *s, Document *d, const json_t *params)
{
    const json_t *range = json_object_get(params, "range");
    const json_t *start = json_object_get(range, "start");
    const json_t *end = json_object_get(range, "end");
    Inlays n = {d, json_array(), lsp_number(start, "line"), lsp_number(end, "line")};
    lsp_check(s, d);
    const TlUnit *unit = d->checked && d->program ? tl_program_unit(d->program, NULL) : NULL;
    for (uint32_t i = 0; unit && i < unit->items.len; i++)
        add_item_inlays(&n, unit->items.data[i]);
    lsp_add_costs(s, d, n.first, n.last, n.list);
    return n.list;
}

/* ---- formatting ---- */

/* One edit that replaces everything; none when nothing changes. NULL: the text does not parse. */
static json_t *format_in(const Document *d, TlCtx *ctx)
{
    size_t size;
    uint32_t source = tl_diags_source(&ctx->diags, d->path, d->text, d->size);
    const char *text = tl_format_source(ctx, source, &size);
    if (!text)
        return NULL;
    json_t *list = json_array();
    if (size == d->size && memcmp(text, d->text, size) == 0)
        return list;
    json_t *edit = json_object();
    json_object_set_new(edit, "range", lsp_range(d->text, d->size, 0, d->size));
    lsp_put_text(edit, "newText", text);
    json_array_append_new(list, edit);
    return list;
}

json_t *lsp_format(Server *s, Document *d, const json_t *params)
{
    (void)s;
    (void)params;
    TlCtx ctx;
    TlGuard guard;
    json_t *volatile result = NULL;
    tl_ctx_init(&ctx, (TlAlloc){0});
    if (TL_GUARD(&guard)) {
        result = format_in(d, &ctx);
        tl_guard_pop(&guard);
    }
    tl_ctx_free(&ctx);
    return result;
}
