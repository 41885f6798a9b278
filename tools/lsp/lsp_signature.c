/* lsp_signature.c: the function whose arguments are being typed, and which one the cursor is in.
 * The call is found in the text, since half a call is a syntax error. */
#include "tools/lsp/lsp.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_OPEN = 256 };

/* A bracket that is open at the cursor: the tokens before it, `module . name (`. */
typedef struct Open {
    LspToken before[3];
    size_t at;
    int commas;
    LspToken named; /* `name =` at the beginning of the current argument */
} Open;

static bool is_sign(const char *text, LspToken t, char c)
{
    return t.kind == LSP_SIGN && text[t.from] == c;
}

/* Counts what stands in the innermost bracket. */
static void step(Open *o, const char *text, const LspToken last[3])
{
    if (is_sign(text, last[2], ',')) {
        o->commas++;
        o->named = (LspToken){0};
    } else if (is_sign(text, last[2], '=') && last[1].kind == LSP_WORD &&
               (is_sign(text, last[0], ',') || last[0].from == o->at)) {
        o->named = last[1];
    }
}

/* The innermost bracket that is open at the offset; false: none is. */
static bool open_at(const Document *d, size_t offset, Open *out)
{
    static Open open[MOST_OPEN]; /* one thread */
    LspToken last[3] = {{0}};
    size_t n = 0;
    for (LspToken t = lsp_token(d->text, d->size, 0); t.kind != LSP_END && t.from < offset;
         t = lsp_token(d->text, d->size, t.to)) {
        if (t.kind == LSP_COMMENT)
            continue;
        char c = t.kind == LSP_SIGN ? d->text[t.from] : 'a';
        if (strchr("([{", c) && n < MOST_OPEN)
            open[n++] = (Open){{last[0], last[1], last[2]}, t.from, 0, {0}};
        else if (strchr(")]}", c) && n)
            n--;
        memmove(last, last + 1, 2 * sizeof *last);
        last[2] = t;
        if (n)
            step(&open[n - 1], d->text, last);
    }
    if (n)
        *out = open[n - 1];
    return n && d->text[out->at] == '(' && out->before[2].kind == LSP_WORD;
}

static const char *copy(Document *d, LspToken t)
{
    return tl_strndup(&d->ctx.perm, d->text + t.from, t.to - t.from);
}

static const TlItem *item_of(const TlUnit *unit, const char *name)
{
    for (uint32_t i = 0; unit && i < unit->items.len; i++)
        if (unit->items.data[i]->name && strcmp(unit->items.data[i]->name, name) == 0)
            return unit->items.data[i];
    return NULL;
}

/* The head of what is called; false: nothing is known of it. */
static bool head_of(Document *d, const Open *o, TlSbuf *head, const char **doc)
{
    const char *name = copy(d, o->before[2]);
    bool member = is_sign(d->text, o->before[1], '.') && o->before[0].kind == LSP_WORD;
    const char *module = member ? copy(d, o->before[0]) : NULL;
    bool plain = !member || strcmp(module, "fast") == 0;
    TlLoc loc = lsp_loc(d->text, o->before[2].from);
    const TlFact *f = tl_facts_find(&d->facts, d->source, loc.line, loc.col);
    const TlItem *item = f && f->item ? f->item : NULL;
    if (!item && d->program && (!member || !plain))
        item = item_of(tl_program_unit(d->program, module), name);
    if (item && (item->kind == TL_IT_FUNCTION || item->kind == TL_IT_KERNEL)) {
        tl_ast_print_head(head, item);
        *doc = item->doc;
        return true;
    }
    *doc = plain ? tl_builtin_doc(name) : NULL;
    tl_sbuf_puts(head, member ? "fast." : "");
    return plain && tl_builtin_describe_name(name, head);
}

static json_t *parameter(size_t from, size_t to)
{
    json_t *p = json_object(), *range = json_array();
    json_array_append_new(range, json_integer((json_int_t)from));
    json_array_append_new(range, json_integer((json_int_t)to));
    json_object_set_new(p, "label", range);
    return p;
}

/* Does the part of the head declare the name? */
static bool declares(const char *head, size_t from, size_t to, const char *name)
{
    for (LspToken t = lsp_token(head, to, from); t.kind != LSP_END; t = lsp_token(head, to, t.to))
        if (t.kind == LSP_WORD && lsp_token_is(head, t, name))
            return true;
    return false;
}

/* The parameters of the head, as parts of it, and which is called `named`, else `index`. */
static json_t *parameters(const char *head, const char *named, int *index)
{
    json_t *list = json_array();
    const char *open = strchr(head, '(');
    int depth = 0;
    for (const char *s = open ? open + 1 : "", *from = s; *s; s++) {
        bool ends = depth == 0 && (*s == ',' || *s == ')');
        depth += strchr("([{<", *s) ? 1 : strchr(")]}>", *s) ? -1 : 0;
        if (!ends)
            continue;
        from += strspn(from, " \n");
        if (from < s && named && declares(head, (size_t)(from - head), (size_t)(s - head), named))
            *index = (int)json_array_size(list);
        if (from < s)
            json_array_append_new(list, parameter((size_t)(from - head), (size_t)(s - head)));
        from = s + 1;
        if (*s == ')')
            break;
    }
    return list;
}

json_t *lsp_signature(Server *s, Document *d, const json_t *params)
{
    Open o;
    TlSbuf head;
    const char *doc = NULL;
    lsp_check(s, d);
    if (!d->checked || !open_at(d, lsp_params_offset(d, params), &o))
        return NULL;
    tl_sbuf_init(&head, &d->ctx.perm);
    if (!head_of(d, &o, &head, &doc))
        return NULL;
    int active = o.commas;
    json_t *one = json_object(), *list = json_array(), *help = json_object();
    json_t *all = parameters(head.text, o.named.to ? copy(d, o.named) : NULL, &active);
    int n = (int)json_array_size(all);
    lsp_put_text(one, "label", head.text);
    if (doc)
        json_object_set_new(one, "documentation", lsp_markdown("", doc));
    json_object_set_new(one, "parameters", all);
    json_array_append_new(list, one);
    json_object_set_new(help, "signatures", list);
    lsp_put_number(help, "activeSignature", 0);
    lsp_put_number(help, "activeParameter", active < n ? active : n ? n - 1 : 0);
    return help;
}
