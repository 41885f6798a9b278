/* lsp_rename.c: a name's new name in all that is open. A rename is whole or refused: every word of
 * the old name must be known to mean it or something else, and the new one must be free.
 *
 * 1. find the declaration, by the name at the cursor;
 * 2. refuse what is not the user's: built-in functions, the library, modules, reserved words;
 * 3. for each file that can see it, go through the words where it can be seen;
 * 4. refuse if a word is of unknown meaning, or is the new name. */
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

typedef struct Rename {
    Server *s;
    TlArena *arena;
    const char *old, *new; /* new: NULL, to ask only whether it can be renamed */
    const char *path;      /* of the file with the declaration */
    TlLoc def;             /* there */
    bool everywhere;       /* an item or a field; else a local, seen within its item only */
    bool parameter;        /* which a call can give by name */
    json_t *changes;       /* URI -> edits */
} Rename;

/* ---- 1. the declaration ---- */

static bool is_parameter(const TlItem *item, TlLoc def)
{
    for (uint32_t i = 0; i < item->params.len; i++)
        if (lsp_same_place(item->params.data[i].loc, def))
            return true;
    for (uint32_t i = 0; i < item->nested.len; i++)
        if (is_parameter(item->nested.data[i], def))
            return true;
    return false;
}

static bool is_of_unit(const TlUnit *unit, TlLoc def)
{
    for (uint32_t i = 0; i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        if (lsp_same_place(item->loc, def))
            return true;
        for (uint32_t k = 0; k < item->fields.len; k++)
            if (lsp_same_place(item->fields.data[k].loc, def))
                return true;
    }
    return false;
}

static json_t *refuse(Rename *r, const char *why)
{
    r->s->refusal = why;
    return NULL;
}

/* A use of what is declared at the byte: fields have no facts where they stand. */
static const TlFact *use_of(const Document *d, size_t offset)
{
    for (uint32_t i = 0; i < d->facts.all.len; i++) {
        const TlFact *f = d->facts.all.data[i];
        size_t at = f->def.line && f->def.file == d->source
                        ? lsp_loc_offset(d->text, d->size, f->def)
                        : d->size;
        if (offset >= at && offset <= at + f->def.len)
            return f;
    }
    return NULL;
}

/* Fills in what is renamed; false: the place has no name, or one that stays. */
static bool find(Rename *r, Document *d, const json_t *params, TlLoc *out_at)
{
    const TlFact *f = lsp_fact_at(r->s, d, params);
    size_t offset = lsp_params_offset(d, params);
    const TlItem *item = d->checked ? lsp_item_at(d, offset) : NULL;
    f = f || item || !d->checked ? f : use_of(d, offset);
    if (!d->program || (!item && !f))
        return refuse(r, "nothing is known of a name here");
    if (!item && f->builtin)
        return refuse(r, "this is a built-in function");
    item = item ? item : f->item;
    if (item && item->kind == TL_IT_IMPORT)
        return refuse(r, "a module is named by its file");
    r->def = item ? item->loc : f->def;
    bool here = f && offset >= lsp_loc_offset(d->text, d->size, f->loc) &&
                offset <= lsp_loc_offset(d->text, d->size, f->loc) + f->loc.len;
    *out_at = here ? f->loc : r->def;
    size_t at = lsp_loc_offset(d->text, d->size, *out_at);
    if (!r->def.line || out_at->file != d->source || !lsp_is_word(d->text[at]))
        return refuse(r, "nothing is known of a name here");
    r->path = d->ctx.diags.sources.data[r->def.file].path;
    if (strncmp(r->path, "std.", 4) == 0)
        return refuse(r, "this is a name of the library");
    r->old = tl_strndup(r->arena, d->text + at, out_at->len);
    const TlUnit *own = tl_program_unit(d->program, NULL);
    r->everywhere = r->def.file != d->source || is_of_unit(own, r->def);
    for (uint32_t i = 0; i < own->items.len && !r->everywhere; i++)
        r->parameter = r->parameter || is_parameter(own->items.data[i], r->def);
    return true;
}

/* ---- 2. the new name ---- */

static const char *wrong_name(const char *name)
{
    bool clause;
    const char *word;
    LspToken t = lsp_token(name, strlen(name), 0);
    if (t.kind != LSP_WORD || t.from || name[t.to])
        return "the new name is none";
    for (uint32_t i = 0; (word = tl_word_at(i, &clause)); i++)
        if (!clause && strcmp(word, name) == 0)
            return "the new name is a word of the language";
    return tl_builtin_doc(name) ? "the new name is a built-in function" : NULL;
}

/* ---- 3. the words of a file ---- */

typedef struct File {
    Document *d; /* whose check knows it */
    uint32_t source;
    const char *text, *uri;
    size_t size, from, to; /* where the name can be seen */
    bool declares;         /* the name; else it imports it */
    json_t *edits;
} File;

static TlLoc at_source(File *f, size_t offset, size_t *last, TlLoc *loc)
{
    for (; *last < offset; ++*last) {
        loc->col++;
        if (f->text[*last] == '\n') {
            loc->line++;
            loc->col = 1;
        }
    }
    loc->file = f->source;
    return *loc;
}

static bool is_def(const Rename *r, const File *f, TlLoc loc)
{
    return loc.line == r->def.line && loc.col == r->def.col &&
           strcmp(f->d->ctx.diags.sources.data[loc.file].path, r->path) == 0;
}

static void refuse_line(Rename *r, const File *f, TlLoc loc, const char *format, const char *name)
{
    const char *what = tl_format(r->arena, format, name);
    const char *path = f->d->ctx.diags.sources.data[f->source].path;
    r->s->refusal = tl_format(r->arena, "%s:%u: %s", path, loc.line, what);
}

/* A word with the old name. */
static void old_word(Rename *r, File *f, LspToken t, TlLoc loc, bool member, bool named)
{
    const TlFact *fact = tl_facts_find(&f->d->facts, f->source, loc.line, loc.col);
    bool known = fact && fact->loc.col == loc.col && (fact->def.line || fact->builtin);
    if (is_def(r, f, loc) || (known && fact->def.line && is_def(r, f, fact->def))) {
        json_t *edit = json_object();
        json_object_set_new(edit, "range", lsp_range(f->text, f->size, t.from, t.to));
        lsp_put_text(edit, "newText", r->new);
        json_array_append_new(f->edits, edit);
        return;
    }
    bool visible = f->declares ? r->everywhere || !member : member;
    bool others = named && !r->parameter && !r->everywhere; /* a parameter of what is called */
    if (known || !visible || others)
        return;
    refuse_line(r, f, loc, "it is not known whether '%s' is the same name here", r->old);
}

/* All words of the file; those of a parameter can also stand in calls outside its item. */
static void go_through(Rename *r, File *f)
{
    LspToken before[2] = {{0}}, t = lsp_token(f->text, f->size, 0), next;
    size_t last = 0;
    TlLoc loc = {f->source, 1, 1, 1};
    for (; t.kind != LSP_END && !r->s->refusal; t = next) {
        next = lsp_token(f->text, f->size, t.to);
        if (t.kind == LSP_COMMENT)
            continue;
        char b = before[1].kind == LSP_SIGN ? f->text[before[1].from] : 'a';
        bool named = (b == '(' || b == ',') && f->text[next.from] == '=' &&
                     f->text[next.from + 1] != '=';
        bool inside = t.from >= f->from && t.from < f->to, member = b == '.';
        before[1] = t;
        if (t.kind != LSP_WORD || (!inside && !(named && r->parameter)))
            continue;
        if (lsp_token_is(f->text, t, r->old))
            old_word(r, f, t, at_source(f, t.from, &last, &loc), member, named);
        else if (inside && lsp_token_is(f->text, t, r->new) && (f->declares || member))
            refuse_line(r, f, at_source(f, t.from, &last, &loc), "'%s' is used here", r->new);
    }
}

/* ---- 4. the files ---- */

/* A local is seen in its item: from the line of the item's name to the next item's. */
static void limit(const Rename *r, File *f)
{
    const TlUnit *unit = tl_program_unit(f->d->program, NULL);
    f->to = f->size;
    for (uint32_t i = 0; !r->everywhere && i < unit->items.len; i++) {
        TlLoc loc = unit->items.data[i]->loc;
        loc.col = 1;
        if (!loc.line)
            continue;
        size_t begin = lsp_loc_offset(f->text, f->size, loc);
        if (loc.line <= r->def.line)
            f->from = begin;
        else if (begin < f->to)
            f->to = begin;
    }
}

static void rename_in(Rename *r, Document *d, uint32_t source, bool declares)
{
    const TlSource *text = &d->ctx.diags.sources.data[source];
    char *uri = lsp_source_uri(r->s, d, source);
    File f = {.d = d, .source = source, .text = text->text, .uri = uri, .size = text->size};
    f.declares = declares;
    f.edits = json_array();
    limit(r, &f);
    go_through(r, &f);
    if (json_array_size(f.edits) && uri)
        json_object_set(r->changes, uri, f.edits);
    json_decref(f.edits);
    free(uri);
}

/* The declaring source as the document's program knows it; -1: it does not import it. */
static int64_t imported(const Rename *r, const Document *d)
{
    for (uint32_t i = 0; i < d->ctx.diags.sources.len; i++)
        if (i != d->source && strcmp(d->ctx.diags.sources.data[i].path, r->path) == 0)
            return i;
    return -1;
}

static void rename_all(Rename *r, Document *asked)
{
    bool open = false;
    for (Document *d = r->s->documents; d; d = d->next) {
        lsp_check(r->s, d);
        bool declares = strcmp(d->path, r->path) == 0;
        open = open || declares;
        if (d->checked && d->program && (declares || (r->everywhere && imported(r, d) >= 0)))
            rename_in(r, d, d->source, declares);
    }
    if (!open && !r->s->refusal)
        rename_in(r, asked, (uint32_t)imported(r, asked), true);
}

json_t *lsp_can_rename(Server *s, Document *d, const json_t *params)
{
    Rename r = {.s = s};
    TlLoc at;
    lsp_check(s, d);
    r.arena = d->checked ? &d->ctx.perm : NULL;
    if (!r.arena || !find(&r, d, params, &at))
        return NULL;
    json_t *result = json_object();
    json_object_set_new(result, "range", lsp_loc_range(d->text, d->size, at));
    lsp_put_text(result, "placeholder", r.old);
    return result;
}

json_t *lsp_rename(Server *s, Document *d, const json_t *params)
{
    Rename r = {.s = s, .new = json_string_value(json_object_get(params, "newName"))};
    TlLoc at;
    lsp_check(s, d);
    r.arena = d->checked ? &d->ctx.perm : NULL;
    s->refusal = r.new ? wrong_name(r.new) : "there is no new name";
    if (s->refusal || !r.arena || !find(&r, d, params, &at))
        return NULL;
    json_t *result = json_object();
    r.changes = lsp_put_object(result, "changes");
    if (strcmp(r.old, r.new) != 0)
        rename_all(&r, d);
    if (!s->refusal)
        return result;
    json_decref(result);
    return NULL;
}
