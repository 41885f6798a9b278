/* lsp_complete.c: completions at the cursor. The text around it is rarely a valid program while it
 * is being typed, so names in scope are taken from the words of the item, and from the last check.
 */
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

enum {
    FUNCTION_KIND = 3,
    FIELD_KIND = 5,
    VARIABLE_KIND = 6,
    MODULE_KIND = 9,
    KEYWORD_KIND = 14,
    CONSTANT_KIND = 21,
    STRUCT_KIND = 22
};

typedef struct List {
    Document *d;
    json_t *items;
    TlMap seen; /* interned labels */
} List;

static void add(List *l, const char *label, int kind, const char *detail, const char *doc)
{
    const char *name = tl_intern_str(&l->d->ctx.strings, label);
    if (tl_map_get_ptr(&l->seen, name))
        return;
    tl_map_put_ptr(&l->seen, name, name);
    json_t *one = json_object();
    lsp_put_text(one, "label", label);
    lsp_put_number(one, "kind", kind);
    if (detail)
        lsp_put_text(one, "detail", detail);
    if (doc)
        json_object_set_new(one, "documentation", lsp_markdown("", doc));
    json_array_append_new(l->items, one);
}

static int kind_of(const TlItem *item)
{
    switch (item->kind) {
    case TL_IT_IMPORT: return MODULE_KIND;
    case TL_IT_CONST: return CONSTANT_KIND;
    case TL_IT_STRUCT: return STRUCT_KIND;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL:
    case TL_IT_ASSERT: break;
    }
    return FUNCTION_KIND;
}

static void add_items(List *l, const TlUnit *unit, bool own)
{
    for (uint32_t i = 0; unit && i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        TlSbuf head;
        if (!item->name || item->kind == TL_IT_ASSERT || (item->kind == TL_IT_IMPORT && !own))
            continue;
        tl_sbuf_init(&head, &l->d->ctx.perm);
        tl_ast_print_head(&head, item);
        add(l, item->name, kind_of(item), head.len ? head.text : NULL, item->doc);
    }
}

static void add_builtins(List *l)
{
    const char *name;
    for (uint32_t i = 0;; i++) {
        TlSbuf head;
        tl_sbuf_init(&head, &l->d->ctx.perm);
        if (!tl_builtin_describe(i, &head, &name))
            return;
        add(l, name, FUNCTION_KIND, head.text, tl_builtin_doc(name));
    }
}

static void add_words(List *l, const char *const *words, int kind)
{
    for (; *words; words++)
        add(l, *words, kind, NULL, NULL);
}

static void add_keywords(List *l)
{
    bool clause;
    const char *word;
    for (uint32_t i = 0; (word = tl_word_at(i, &clause)); i++)
        add(l, word, KEYWORD_KIND, clause ? "clause" : NULL, NULL);
}

/* ---- names in scope ---- */

/* Where the item begins in which the place is: behind the last `}` in the first column. */
static size_t item_begin(const Document *d, size_t offset)
{
    size_t at = offset;
    while (at > 1 && !(d->text[at - 1] == '}' && d->text[at - 2] == '\n'))
        at--;
    return at > 1 ? at : 0;
}

static bool declared_between(const Document *d, const TlFact *f, size_t from, size_t to)
{
    size_t at = lsp_loc_offset(d->text, d->size, f->loc);
    return f->declares && f->loc.file == d->source && at >= from && at < to;
}

/* Variables that the check knows, with their types. */
static void add_variables(List *l, size_t from, size_t to)
{
    Document *d = l->d;
    for (uint32_t i = 0; i < d->facts.all.len; i++) {
        const TlFact *f = d->facts.all.data[i];
        if (declared_between(d, f, from, to))
            add(l,
                tl_strndup(&d->ctx.perm, d->text + lsp_loc_offset(d->text, d->size, f->loc),
                           f->loc.len),
                VARIABLE_KIND, f->types.n ? f->types.text[0] : NULL, NULL);
    }
}

/* Other words of the item, where a syntax error keeps it from being checked. */
static void add_item_words(List *l, size_t from, size_t to)
{
    const Document *d = l->d;
    for (size_t i = from; i < to;) {
        size_t begin = i;
        while (i < to && lsp_is_word(d->text[i]))
            i++;
        bool word = i > begin && !(d->text[begin] >= '0' && d->text[begin] <= '9');
        if (word && (!begin || d->text[begin - 1] != '.') && i < to)
            add(l, tl_strndup(&l->d->ctx.perm, d->text + begin, i - begin), VARIABLE_KIND, NULL,
                NULL);
        if (d->text[i] == '"' || (d->text[i] == '/' && i + 1 < to && d->text[i + 1] == '/')) {
            char end = d->text[i] == '"' ? '"' : '\n';
            for (i++; i < to && d->text[i] != end && d->text[i] != '\n'; i++) {
            }
        }
        i += i == begin || i < to ? 1 : 0;
    }
}

/* ---- behind a point ---- */

static const char *const target_facts[] = {"kind", "arch", NULL};
static const char *const device_facts[] = {"sms", NULL};

/* The fields of a struct variable whose type the check knows as "struct NAME". */
static void add_fields(List *l, size_t name_at)
{
    Document *d = l->d;
    TlLoc loc = lsp_loc(d->text, name_at);
    const TlFact *f = tl_facts_find(&d->facts, d->source, loc.line, loc.col);
    const TlUnit *unit = tl_program_unit(d->program, NULL);
    for (uint32_t i = 0; f && f->types.n && i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        const char *type = f->types.text[0];
        if (item->kind != TL_IT_STRUCT || strncmp(type, "struct ", 7) ||
            strcmp(type + 7, item->name))
            continue;
        for (uint32_t k = 0; k < item->fields.len; k++)
            add(l, item->fields.data[k].name, FIELD_KIND, NULL, NULL);
    }
}

static void add_members(List *l, size_t point)
{
    Document *d = l->d;
    size_t from = point;
    while (from && lsp_is_word(d->text[from - 1]))
        from--;
    const char *name = tl_strndup(&d->ctx.perm, d->text + from, point - from);
    const TlUnit *unit = tl_program_unit(d->program, name);
    if (unit)
        add_items(l, unit, false);
    else if (!strcmp(name, "fast"))
        add_builtins(l);
    else if (!strcmp(name, "target"))
        add_words(l, target_facts, FIELD_KIND);
    else if (!strcmp(name, "device"))
        add_words(l, device_facts, FIELD_KIND);
    else
        add_fields(l, from);
}

json_t *lsp_complete(Server *s, Document *d, const json_t *params)
{
    static const char *const spaces[] = {"fast", "target", "device", NULL};
    size_t at = lsp_params_offset(d, params), word = at;
    lsp_check(s, d);
    if (!d->checked || !d->program)
        return NULL;
    List l = {.d = d, .items = json_array()};
    tl_map_init(&l.seen, &d->ctx.perm);
    while (word && lsp_is_word(d->text[word - 1]))
        word--;
    if (word && d->text[word - 1] == '.') {
        add_members(&l, word - 1);
        return l.items;
    }
    size_t from = item_begin(d, word);
    add_variables(&l, from, word);
    add_items(&l, tl_program_unit(d->program, NULL), true);
    add_builtins(&l);
    add_keywords(&l);
    add_words(&l, spaces, MODULE_KIND);
    add_item_words(&l, from, word);
    return l.items;
}
