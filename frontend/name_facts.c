/* name_facts.c: the walk's side of name_facts.h. A place may be walked several times, as a function
 * is for each call: its types are collected. */
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

/* The library's insides are nobody's business. */
static TlFacts *facts_of(const TlSema *s, TlLoc loc)
{
    TlFacts *facts = s->options->facts;
    if (!facts || !loc.line || !loc.len)
        return NULL;
    return strncmp(s->ctx->diags.sources.data[loc.file].path, "std.", 4) ? facts : NULL;
}

static TlFact *fact_at(TlFacts *facts, TlLoc loc)
{
    enum { LINE_BITS = 25, COLUMN_BITS = 25 };
    uint64_t key = ((uint64_t)loc.file << (LINE_BITS + COLUMN_BITS)) |
                   ((uint64_t)loc.line << COLUMN_BITS) | loc.col,
             found;
    if (tl_map_get(&facts->by_place, key, &found))
        return facts->all.data[found];
    TlFact *f = TL_NEW(facts->arena, TlFact);
    f->loc = loc;
    tl_map_put(&facts->by_place, key, facts->all.len);
    tl_vec_push(facts->arena, &facts->all, f);
    return f;
}

static void add_type(TlFactTypes *types, const char *text)
{
    for (uint32_t i = 0; i < types->n; i++)
        if (!strcmp(types->text[i], text))
            return;
    if (types->n < TL_FACT_TYPES)
        types->text[types->n++] = text;
    else
        types->more = true;
}

/* "i32 = 64", "tile<f32, 64>"; NULL for what is not known or is no value. */
static const char *describe(TlSema *s, const TlVal *v)
{
    switch (v->kind) {
    case TL_VAL_INT:
    case TL_VAL_FLOAT:
    case TL_VAL_CHOICE:
    case TL_VAL_IR:
    case TL_VAL_TUPLE:
    case TL_VAL_STRUCT: break;
    case TL_VAL_CONST:
        return tl_format(s->arena, "%s = %s", tl_dtype_name(v->dtype), tl_const_text(s, v));
    case TL_VAL_VIEW: return tl_type_str(s->ctx, v->u.ir->type);
    case TL_VAL_TYPE: return tl_ty_str(s, v->u.type);
    case TL_VAL_FN: return v->def->item->name;
    case TL_VAL_BUILTIN: return v->u.builtin->name;
    default: return NULL;
    }
    TlTy ty = tl_ty_of(s, v);
    return ty.kind == TL_TY_UNKNOWN ? NULL : tl_ty_str(s, &ty);
}

static void add_value(TlSema *s, TlFactTypes *types, const TlVal *v)
{
    const char *text = describe(s, v);
    if (text)
        add_type(types, text);
}

void tl_fact_declare(TlSema *s, const TlVar *v)
{
    TlFacts *facts = facts_of(s, v->loc);
    if (!facts || v->name[0] == ' ')
        return;
    TlFact *f = fact_at(facts, v->loc);
    f->declares = true;
    f->def = v->loc;
    if (v->val.kind == TL_VAL_UNSET && v->ty.kind == TL_TY_VALUE)
        add_type(&f->types, tl_ty_str(s, &v->ty));
    add_value(s, &f->types, &v->val);
}

void tl_fact_use(TlSema *s, TlLoc loc, TlLoc def, const TlVal *v)
{
    TlFacts *facts = facts_of(s, loc);
    if (!facts)
        return;
    TlFact *f = fact_at(facts, loc);
    f->def = def;
    add_value(s, &f->types, v);
}

void tl_fact_name(TlSema *s, const TlExpr *e)
{
    const TlVar *v = s->options->facts ? tl_var_of(s, e) : NULL;
    if (v)
        tl_fact_use(s, e->loc, v->loc, &v->val);
}

void tl_fact_def(TlSema *s, TlLoc loc, const TlDef *def)
{
    TlFacts *facts = facts_of(s, loc);
    if (!facts)
        return;
    TlFact *f = fact_at(facts, loc);
    f->item = def->item;
    f->def = def->item->loc;
    if (def->item->kind == TL_IT_IMPORT && def->import)
        f->def = (TlLoc){def->import->unit->source, 1, 1, 1};
    if (def->item->kind == TL_IT_CONST && def->state == TL_DONE)
        add_value(s, &f->types, &def->value);
}

void tl_fact_builtin(TlSema *s, TlLoc loc, const TlBuiltin *b, bool fast)
{
    TlFacts *facts = facts_of(s, loc);
    if (!facts)
        return;
    TlFact *f = fact_at(facts, loc);
    f->builtin = b->name;
    f->fast = fast;
}

void tl_fact_result(TlSema *s, const TlExpr *e, const TlVal *v)
{
    TlFacts *facts;
    switch (e->kind) {
    case TL_EX_UNARY:
    case TL_EX_BINARY: /* each of a chain: expr_operator.c */
    case TL_EX_COND:
    case TL_EX_CALL:
    case TL_EX_INDEX: facts = facts_of(s, e->loc); break;
    default: return;
    }
    if (facts && !tl_is_bad(v))
        add_value(s,
                  e->kind == TL_EX_CALL || e->kind == TL_EX_INDEX ? &fact_at(facts, e->loc)->results
                                                                  : &fact_at(facts, e->loc)->types,
                  v);
}

/* ---- questions ---- */

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
