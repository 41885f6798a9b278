/* The variables of a frame, one for each local that has been declared, and the trail of what is
 * assigned to them. */
#include "frontend/sema.h"

TlVar *tl_var_new(TlSema *s, TlName name, TlLoc loc, TlTy ty, TlVal val, bool is_const)
{
    TL_ASSERT(name, "a variable without a name");
    TlVar *v = TL_NEW(s->arena, TlVar);
    *v = (TlVar){.name = name, .loc = loc, .ty = ty, .val = val, .is_const = is_const};
    v->serial = s->serial++;
    tl_fact_declare(s, v);
    return v;
}

TlVar *tl_var_bind(TlSema *s, const TlLocal *l, TlLoc loc, TlTy ty, TlVal val, bool is_const)
{
    TL_ASSERT(l && s->frame->vars && s->frame->item == l->item,
              "a variable outside of its function");
    return s->frame->vars[l->index] = tl_var_new(s, l->name, loc, ty, val, is_const);
}

void tl_var_bind_const(TlSema *s, const TlLocal *l, TlLoc loc, TlVal val)
{
    tl_var_bind(s, l, loc, tl_ty_of(s, &val), val, true);
}

TlVar *tl_var_declare(TlSema *s, const TlLocal *l, TlTy ty, TlVal val, bool is_const)
{
    if (l->hides && l->hides->depth == l->depth) {
        TlDiag *row = tl_err(s, l->loc, TL_E0202, l->name);
        tl_note(s, row, l->hides->loc, "declared here before");
    }
    return tl_var_bind(s, l, l->loc, ty, val, is_const);
}

void tl_var_set(TlSema *s, TlVar *v, TlVal val)
{
    TL_ASSERT(v && v->serial < s->serial, "a variable that was never declared");
    tl_vec_push(s->arena, &s->trail, (TlTrail){v, v->val});
    v->val = val;
}

TlVar **tl_vars_new(TlSema *s, TlDef *def)
{
    tl_item_bind(s->prog, def);
    return TL_NEW_ARRAY(s->arena, TlVar *, def->item->locals.len + 1);
}

TlVar **tl_head_vars_new(TlSema *s, TlDef *def)
{
    tl_item_bind(s->prog, def);
    return TL_NEW_ARRAY(s->arena, TlVar *, def->item->nhead + 1);
}
