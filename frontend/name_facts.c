/* name_facts.c: the walk's side of name_facts.h. A place may be walked several times, for instance
 * once for each call of its function; all its types are collected. */
#include "frontend/name_facts.h"
#include "frontend/sema.h"
#include <string.h>

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

/* An item's name, which is hovered over where it stands; the head of a nested one. */
static const char *describe_function(TlSema *s, const TlItem *fn)
{
    TlSbuf head;
    if (!fn->def)
        return fn->name;
    if (fn->is_lambda)
        return NULL;
    tl_sbuf_init(&head, s->arena);
    tl_ast_print_head(&head, fn);
    return head.text;
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
    case TL_VAL_STRUCT:
    case TL_VAL_ARRAY: break;
    case TL_VAL_CONST:
        return tl_format(s->arena, "%s = %s", tl_dtype_name(v->dtype), tl_const_text(s, v));
    case TL_VAL_VIEW: return tl_type_str(s->ctx, v->u.ir->type);
    case TL_VAL_TYPE: return tl_ty_str(s, v->u.type);
    case TL_VAL_FN: return describe_function(s, v->def->item);
    case TL_VAL_BUILTIN: return v->u.builtin->name;
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN:
    case TL_VAL_UNSET:
    case TL_VAL_VOID:
    case TL_VAL_STRING:
    case TL_VAL_MODULE:
    case TL_VAL_SPACE: return NULL;
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
    bool takes = e->kind == TL_EX_CALL || e->kind == TL_EX_INDEX;
    bool operates = e->kind == TL_EX_UNARY || e->kind == TL_EX_COND ||
                    e->kind == TL_EX_BINARY; /* each of a chain: expr_operator.c */
    TlFacts *facts = takes || operates ? facts_of(s, e->loc) : NULL;
    if (facts && !tl_is_bad(v))
        add_value(s, takes ? &fact_at(facts, e->loc)->results : &fact_at(facts, e->loc)->types, v);
}
