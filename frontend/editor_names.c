/* name_facts.h, the editors' side: questions about names, built-in functions and words. */
#include "frontend/name_facts.h"
#include "frontend/sema.h"
#include <string.h>

void tl_facts_init(TlFacts *facts, TlArena *arena)
{
    *facts = (TlFacts){.arena = arena};
    tl_map_init(&facts->by_place, arena);
}

const TlFact *tl_facts_find(const TlFacts *facts, uint32_t file, uint32_t line, uint32_t col)
{
    const TlFact *before = NULL;
    for (uint32_t i = 0; i < facts->all.len; i++) {
        const TlFact *f = facts->all.data[i];
        if (f->loc.file != file || f->loc.line != line || col < f->loc.col)
            continue;
        if (col < f->loc.col + f->loc.len)
            return f;
        if (col == f->loc.col + f->loc.len)
            before = f;
    }
    return before;
}

const TlUnit *tl_program_unit(const TlProgram *p, const char *import)
{
    if (!import)
        return p->root->unit;
    const TlDef *def = tl_mod_find(p->root, tl_intern_str(&p->ctx->strings, import));
    bool found = def && def->item->kind == TL_IT_IMPORT && def->import;
    return found ? def->import->unit : NULL;
}

/* "k:name?" as an editor shows it: "name" or "[name]", with "= " behind what must be named. */
static void describe_parameter(TlSbuf *out, const char *p, size_t n)
{
    char last = p[n - 1];
    bool optional = last == '?' || last == '=';
    size_t len = n - 2 - (optional || last == '*');
    tl_sbuf_putf(out, "%s%.*s%s%s", optional ? "[" : "", (int)len, p + 2,
                 last == '='   ? " ="
                 : last == '*' ? "..."
                               : "",
                 optional ? "]" : "");
}

static void describe_builtin(const TlBuiltin *b, TlSbuf *out)
{
    tl_sbuf_putf(out, "%s(", b->name);
    for (const char *p = b->params; *p;) {
        size_t n = strcspn(p, " ");
        tl_sbuf_puts(out, p == b->params ? "" : ", ");
        describe_parameter(out, p, n);
        p += n + (p[n] == ' ');
    }
    tl_sbuf_puts(out, ")");
}

bool tl_builtin_describe(uint32_t i, TlSbuf *out, const char **out_name)
{
    const TlBuiltin *b = tl_builtin_at(i);
    if (!b)
        return false;
    *out_name = b->name;
    describe_builtin(b, out);
    return true;
}

bool tl_builtin_describe_name(const char *name, TlSbuf *out)
{
    const TlBuiltin *b = tl_builtin_find(name);
    if (b)
        describe_builtin(b, out);
    return b != NULL;
}

const char *tl_builtin_doc(const char *name)
{
    const TlBuiltin *b = tl_builtin_find(name);
    return b ? b->doc : NULL;
}

static const struct {
    const char *word;
    bool clause;
} words[] = {
#include "frontend/words.inc"
};
static const char *const other_types[] = {"int", "float", NULL};

const char *tl_word_at(uint32_t i, bool *out_clause)
{
    enum { WORDS = sizeof words / sizeof *words };
    *out_clause = i < WORDS && words[i].clause;
    if (i < WORDS)
        return words[i].word;
    i -= WORDS;
    return i < TL_DTYPE_COUNT        ? tl_dtype_name((TlDtype)i)
           : i <= TL_DTYPE_COUNT + 1 ? other_types[i - TL_DTYPE_COUNT]
                                     : NULL;
}
