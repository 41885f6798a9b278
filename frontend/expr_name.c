/* Names in expressions, and members: variables, items of modules, built-in functions, facts of the
 * target, fields. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include "ir/support/near.h"
#include <string.h>

static TlVal target_fact(TlSema *s, TlName name, TlLoc loc)
{
    TL_ASSERT(name, "a fact without a name");
    const char *text = !strcmp(name, "kind")   ? s->options->target_kind
                       : !strcmp(name, "arch") ? s->options->target_arch
                                               : NULL;
    if (text)
        return tl_val_text(TL_VAL_STRING, text);
    if (strcmp(name, "kind") && strcmp(name, "arch"))
        tl_err(s, loc, TL_E0203, "target", name);
    return tl_unknown(TL_DTYPE_COUNT);
}

static TlVal const_value(TlSema *s, TlDef *def, TlLoc loc)
{
    if (def->state == TL_BUSY) {
        tl_err(s, loc, TL_E0409, def->item->name);
        return tl_bad();
    }
    if (def->state == TL_DONE)
        return def->value;
    def->state = TL_BUSY;
    TlFrame top = {.mod = def->mod}, *frame = s->frame;
    s->frame = &top;
    TlVal v = tl_bad(); /* none after a syntax error */
    if (def->item->value) {
        TlTy ty = def->item->type ? tl_type_resolve(s, def->item->type) : tl_ty_kind(TL_TY_AUTO);
        v = tl_eval_init(s, def->item->value, &ty);
        bool fits = v.kind == TL_VAL_CONST || v.kind == TL_VAL_STRUCT || tl_is_bad(&v);
        if (!fits || !tl_is_constant(&v)) {
            tl_err(s, def->item->value->loc, TL_E0406,
                   tl_format(s->arena, "the value of '%s'", def->item->name));
            v = tl_bad();
        }
    }
    s->frame = frame;
    def->value = v;
    def->state = TL_DONE;
    return v;
}

/* Launched by hosts, it is no value. It may have the name that another language has for a function:
 * transpose. */
static TlVal refuse_kernel(TlSema *s, TlName name, TlLoc loc)
{
    TlDiag *row = tl_err(s, loc, TL_E0211, tl_format(s->arena, "the kernel '%s'", name));
    const char *advice = tl_advice(name, strlen(name), 'n');
    if (!advice)
        advice = "hosts launch kernels; what kernels share is a function";
    tl_label(s, row, "%s", advice);
    return tl_bad();
}

static TlVal def_value(TlSema *s, TlDef *def, TlLoc loc)
{
    switch (def->item->kind) {
    case TL_IT_CONST: return const_value(s, def, loc);
    case TL_IT_FUNCTION: return tl_val_fn(def, NULL);
    case TL_IT_STRUCT: {
        TlTy *ty = TL_NEW(s->arena, TlTy);
        *ty = tl_struct_ty(s, def);
        return tl_val_type(ty);
    }
    case TL_IT_IMPORT: {
        TlMod *m = def->import;
        return m ? (TlVal){.kind = TL_VAL_MODULE, .dtype = TL_DTYPE_COUNT, .u.module = m}
                 : tl_bad();
    }
    case TL_IT_KERNEL:
        return refuse_kernel(s, def->item->name, loc);
    case TL_IT_ASSERT: break;
    }
    return tl_bad();
}

/* ---- unknown names ---- */

static const char *near_name(TlSema *s, TlName name, const TlLocal *scope)
{
    TlNear near = tl_near(name);
    for (const TlLocal *l = scope; l; l = l->outer)
        if (tl_var_find(s, l, l->name))
            tl_near_try(&near, l->name);
    const TlMod *m = s->frame ? s->frame->mod : NULL;
    for (uint32_t i = 0; m && i < m->defs.len; i++)
        tl_near_try(&near, m->defs.data[i]->item->name);
    for (uint32_t i = 0; tl_builtin_at(i); i++)
        tl_near_try(&near, tl_builtin_at(i)->name);
    return near.best;
}

/* Whether the function around has had the error. */
static bool is_reported(TlSema *s, const char *name)
{
    const TlUnknownName *row = s->prog->unknown_names.data;
    for (uint32_t i = 0; i < s->prog->unknown_names.len; i++)
        if (row[i].def == s->frame->def && strcmp(row[i].name, name) == 0)
            return true;
    return false;
}

/* BLOCK_M, B: what constants of C, Triton and this language are called, and extents. */
static bool is_in_capitals(TlName name)
{
    return !name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")];
}

/* A variable of that name which the place does not see: of a block that has ended, or of a later
 * line. */
static const TlLocal *out_of_sight(const TlSema *s, TlName name)
{
    const TlItem *item = s->frame->item;
    for (uint32_t i = 0; item && i < item->locals.len; i++)
        if (strcmp(item->locals.data[i]->name, name) == 0)
            return item->locals.data[i];
    return NULL;
}

static void note_out_of_sight(TlSema *s, TlDiag *row, const TlLocal *l, TlLoc loc)
{
    bool later = l->loc.line > loc.line || (l->loc.line == loc.line && l->loc.col > loc.col);
    tl_label(s, row,
             later ? "a variable is declared before it is used"
                   : "a variable is gone where its block ends: declare it before that");
    tl_note(s, row, l->loc, "'%s' is declared here", l->name);
}

/* Of a name alone that nothing declares and an assignment begins with: Python's way to declare. */
static void label_assigned(TlSema *s, TlDiag *row, const TlExpr *e)
{
    const char *near = near_name(s, e->u.name, e->local);
    tl_label(s, row, "%s%s%sa new variable is declared: auto %s = ...",
             near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", e->u.name);
}

/* Reports an undeclared name, once in each function; member: the name after its dot, or NULL. */
static TlVal unknown_name(TlSema *s, const TlExpr *e, TlName member)
{
    TlName name = e->u.name;
    const char *full = member ? tl_format(s->arena, "%s.%s", name, member) : name;
    if (s->frame->mod->unit->incomplete || (s->frame->def && s->frame->def->item->broken) ||
        is_reported(s, full))
        return tl_bad();
    TlDiag *row = tl_err(s, e->loc, TL_E0201, name);
    bool few = s->ctx->diags.errors < 10 * TL_DIAG_MAX; /* the search is long */
    if (!row || !few)
        return tl_bad();
    tl_vec_push(s->arena, &s->prog->unknown_names, (TlUnknownName){s->frame->def, full});
    const TlLocal *hidden = out_of_sight(s, name);
    if (hidden) {
        note_out_of_sight(s, row, hidden, e->loc);
        return tl_bad();
    }
    if (s->assigned == e) {
        label_assigned(s, row, e);
        return tl_bad();
    }
    const char *advice = tl_advice(full, strlen(full), 'n');
    if (!advice && member && tl_advice(name, strlen(name), 'n')) {
        advice = tl_advice(member, strlen(member), 'n');
        const TlBuiltin *b = advice ? NULL : tl_builtin_find(member);
        if (b)
            advice = tl_format(s->arena, "write %s: functions have no prefix here",
                               tl_builtin_form(s, b));
        if (!advice)
            advice = tl_advice_of_library(s->arena, member);
    }
    if (!advice)
        advice = tl_advice(name, strlen(name), 'n');
    if (!advice)
        advice = tl_advice_of_library(s->arena, name);
    const char *near = advice ? NULL : near_name(s, name, e->local);
    if (advice)
        row->label = advice;
    if (near) {
        tl_label(s, row, "did you mean '%s'?", near);
        row->fixit = near;
    } else if (!advice && is_in_capitals(name)) {
        tl_label(s, row, "a compile-time constant is a parameter: const int %s = 64%s", name,
                 name[1] ? "" : "; extents are those of views: f32 x[N]");
    }
    return tl_bad();
}

TlVal tl_eval_name(TlSema *s, const TlExpr *e, TlName member)
{
    TL_ASSERT(e->kind == TL_EX_NAME && e->u.name, "expression kind %d is no name", (int)e->kind);
    TlName name = e->u.name;
    const TlVar *v = tl_var_of(s, e);
    if (v) {
        tl_fact_use(s, e->loc, v->loc, &v->val);
        return v->val.kind == TL_VAL_UNSET || v->is_wrong ? tl_unknown(TL_DTYPE_COUNT) : v->val;
    }
    TlDef *def = tl_mod_find(s->frame->mod, name);
    if (def) {
        TlVal value = def_value(s, def, e->loc);
        tl_fact_def(s, e->loc, def);
        return value;
    }
    const TlBuiltin *b = tl_builtin_find(name);
    if (b)
        tl_fact_builtin(s, e->loc, b, false);
    if (b)
        return tl_val_builtin(b, false);
    if (!strcmp(name, "fast") || !strcmp(name, "target") || !strcmp(name, "device"))
        return tl_val_text(TL_VAL_SPACE, name);
    return unknown_name(s, e, member);
}

TlVal tl_member_of(TlSema *s, const TlVal *v, TlName name, TlLoc loc)
{
    if (v->kind == TL_VAL_MODULE) {
        const TlMod *m = v->u.module;
        TlDef *def = tl_mod_find(m, name);
        if (def && def->item->kind != TL_IT_IMPORT) {
            TlVal value = def_value(s, def, loc);
            tl_fact_def(s, loc, def);
            return value;
        }
        if (!m->unit->incomplete)
            tl_err(s, loc, TL_E0203, m->path, name);
        return tl_bad();
    }
    if (v->kind == TL_VAL_SPACE) {
        if (!strcmp(v->u.string, "target"))
            return target_fact(s, name, loc);
        const TlBuiltin *b = !strcmp(v->u.string, "fast") ? tl_builtin_find(name) : NULL;
        if (b)
            tl_fact_builtin(s, loc, b, true);
        if (b)
            return tl_val_builtin(b, true);
        tl_err(s, loc, TL_E0203, v->u.string, name);
        return tl_bad();
    }
    if (v->kind == TL_VAL_STRUCT) {
        const TlItem *item = v->def->item;
        for (uint32_t i = 0; i < v->n; i++)
            if (item->fields.data[i].name == name) {
                tl_fact_use(s, loc, item->fields.data[i].loc, &v->items[i]);
                return v->items[i];
            }
    }
    if (tl_is_bad(v))
        return *v;
    TlDiag *row = tl_err(s, loc, TL_E0210, tl_val_str(s, v), name);
    const char *advice = tl_advice(name, strlen(name), 'm');
    if (advice)
        tl_label(s, row, "%s", advice);
    return tl_bad();
}
