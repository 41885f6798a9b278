/* lsp_tokens.c: semantic tokens: what each name is, which a grammar of words cannot know. */
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

enum { FUNCTION, VARIABLE, PARAMETER, PROPERTY, STRUCT, NAMESPACE };
enum { DECLARATION = 1, READONLY = 2, LIBRARY = 4 };
static const char *const kinds[] = {"function", "variable", "parameter",
                                    "property", "struct",   "namespace"};
static const char *const modifiers[] = {"declaration", "readonly", "defaultLibrary"};

typedef struct Token {
    TlLoc loc;
    int kind, modifiers;
} Token;
typedef TL_VEC(Token) Tokens;
typedef struct Walk {
    Document *d;
    Tokens tokens;
    TlMap params; /* places of parameters -> 1, or 2 for constants */
} Walk;

static json_t *names(const char *const *words, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(words[i]));
    return list;
}

json_t *lsp_token_legend(void)
{
    json_t *legend = json_object();
    json_object_set_new(legend, "tokenTypes", names(kinds, sizeof kinds / sizeof *kinds));
    json_object_set_new(legend, "tokenModifiers",
                        names(modifiers, sizeof modifiers / sizeof *modifiers));
    return legend;
}

static uint64_t key(TlLoc loc)
{
    return (uint64_t)loc.line << 32 | loc.col;
}

static void add_params(Walk *w, const TlItem *item)
{
    for (uint32_t i = 0; i < item->params.len; i++) {
        const TlParamDecl *p = &item->params.data[i];
        bool view = p->form == TL_PF_VIEW || p->form == TL_PF_POINTER || p->form == TL_PF_VALUE;
        tl_map_put(&w->params, key(p->loc), view ? 1 : 2);
    }
    for (uint32_t i = 0; i < item->nested.len; i++)
        add_params(w, item->nested.data[i]);
}

static void add(Walk *w, TlLoc loc, int kind, int mods)
{
    if (loc.line && loc.len)
        tl_vec_push(&w->d->ctx.perm, &w->tokens, (Token){loc, kind, mods});
}

static void add_item(Walk *w, TlLoc loc, TlItemKind kind, int mods)
{
    switch (kind) {
    case TL_IT_IMPORT: add(w, loc, NAMESPACE, mods); return;
    case TL_IT_CONST: add(w, loc, VARIABLE, mods | READONLY); return;
    case TL_IT_STRUCT: add(w, loc, STRUCT, mods); return;
    case TL_IT_FUNCTION:
    case TL_IT_KERNEL: add(w, loc, FUNCTION, mods); return;
    case TL_IT_ASSERT: return;
    }
}

static void add_fact(Walk *w, const TlFact *f)
{
    const Document *d = w->d;
    uint64_t param = 0;
    if (f->item) {
        const char *path = d->ctx.diags.sources.data[f->item->loc.file].path;
        add_item(w, f->loc, f->item->kind, strncmp(path, "std.", 4) ? 0 : LIBRARY);
    } else if (f->builtin) {
        add(w, f->loc, FUNCTION, LIBRARY);
    } else if (f->def.line && tl_map_get(&w->params, key(f->def), &param)) {
        add(w, f->loc, PARAMETER, (f->declares ? DECLARATION : 0) | (param == 2 ? READONLY : 0));
    } else if (f->def.line) {
        add(w, f->loc, VARIABLE, f->declares ? DECLARATION : 0);
    }
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = key(((const Token *)a)->loc), y = key(((const Token *)b)->loc);
    return x < y ? -1 : x > y;
}

/* Five numbers for each: lines and units from the one before, its length, kind and modifiers. */
static json_t *encoded(const Walk *w, double first, double last)
{
    const char *text = w->d->text;
    json_t *data = json_array();
    uint32_t line = 0, column = 0, at_line = 1, from, to, unused;
    size_t begin = 0;
    for (uint32_t i = 0; i < w->tokens.len; i++) {
        const Token *t = &w->tokens.data[i];
        if (i && key(t->loc) == key(w->tokens.data[i - 1].loc))
            continue;
        for (; at_line < t->loc.line; at_line++)
            begin += strcspn(text + begin, "\n") + 1;
        double here = (double)t->loc.line - 1;
        size_t at = begin + t->loc.col - 1;
        if (here < first || here > last || at >= w->d->size || !lsp_is_word(text[at]))
            continue;
        int kind = t->kind == VARIABLE && at && text[at - 1] == '.' ? PROPERTY : t->kind;
        lsp_place(text + begin, w->d->size - begin, t->loc.col - 1, &unused, &from);
        lsp_place(text + begin, w->d->size - begin, t->loc.col - 1 + t->loc.len, &unused, &to);
        uint32_t row[] = {t->loc.line - 1 - line, line == t->loc.line - 1 ? from - column : from,
                          to - from, (uint32_t)kind, (uint32_t)t->modifiers};
        for (size_t k = 0; k < sizeof row / sizeof *row; k++)
            json_array_append_new(data, json_integer(row[k]));
        line = t->loc.line - 1;
        column = from;
    }
    return data;
}

json_t *lsp_tokens(Server *s, Document *d, const json_t *params)
{
    const json_t *range = json_object_get(params, "range");
    const json_t *start = json_object_get(range, "start"), *end = json_object_get(range, "end");
    Walk w = {.d = d};
    lsp_check(s, d);
    if (!d->checked)
        return NULL;
    tl_map_init(&w.params, &d->ctx.perm);
    const TlUnit *unit = d->program ? tl_program_unit(d->program, NULL) : NULL;
    for (uint32_t i = 0; unit && i < unit->items.len; i++) {
        add_params(&w, unit->items.data[i]);
        add_item(&w, unit->items.data[i]->loc, unit->items.data[i]->kind, DECLARATION);
    }
    for (uint32_t i = 0; i < d->facts.all.len; i++)
        if (d->facts.all.data[i]->loc.file == d->source)
            add_fact(&w, d->facts.all.data[i]);
    if (w.tokens.len)
        qsort(w.tokens.data, w.tokens.len, sizeof *w.tokens.data, by_place);
    json_t *result = json_object();
    json_object_set_new(
        result, "data",
        encoded(&w, lsp_number(start, "line"), range ? lsp_number(end, "line") : (double)d->size));
    return result;
}
