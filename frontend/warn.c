/* Warnings that the walk gives where it meets their cause. */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <string.h>

/* Are there warnings at loc? Only in walks of instances, in the root module. */
bool tl_warns_at(const TlSema *s, TlLoc loc)
{
    return !s->abstract && loc.line && loc.file == s->prog->root->unit->source;
}

typedef struct Effect {
    const char *word, *kinds, *reason;
} Effect;

static const Effect effects[] = {
#define EFFECT(word, kinds, reason) {word, kinds, reason},
#include "frontend/effects.def"
};

/* Is it one of the list's words, which have spaces between them? */
static bool is_among(const char *list, const char *word)
{
    for (size_t n = strlen(word); (list = strstr(list, word)); list += n)
        if (list[n] == ' ' || !list[n])
            return true;
    return false;
}

void tl_warn_no_effect(TlSema *s, const char *word, TlLoc loc)
{
    const char *kind = s->options->target_kind;
    TL_ASSERT(kind && word, "no target, or no word, to warn of");
    if (!tl_warns_at(s, loc) || (strcmp(kind, "cuda") != 0 && strcmp(kind, "hip") != 0))
        return;
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) {
        const Effect *e = &effects[i];
        if (strcmp(e->word, word) != 0 || is_among(e->kinds, kind) ||
            is_among(e->kinds, s->options->target_arch))
            continue;
        TlDiag *row = tl_diag(&s->ctx->diags, loc, TL_W0607, word, s->options->target_arch);
        row->label = e->reason;
    }
}

/* A word that is a type in other languages, as the type of a function's parameter: `double x` takes
 * anything. A struct of this module may have the name. */
static void warn_type_word(TlProgram *p, const TlTypeExpr *type)
{
    const TlTypeExpr *t = type && type->elem ? type->elem : type;
    if (!t || t->kind != TL_TE_NAME || t->module || tl_mod_find(p->root, t->name))
        return;
    const char *advice = tl_advice(t->name, strlen(t->name), 't');
    if (advice)
        tl_diag(&p->ctx->diags, t->loc, TL_W0610, t->name)->label = advice;
}

void tl_warn_type_words(TlProgram *p)
{
    const TlUnit *unit = p->root->unit;
    for (uint32_t i = 0; i < unit->items.len; i++) {
        const TlItem *item = unit->items.data[i];
        for (uint32_t k = 0; item->kind == TL_IT_FUNCTION && k < item->params.len; k++)
            warn_type_word(p, item->params.data[k].type);
    }
}

/* 0 is left out: max(x, 0) is common in networks. */
void tl_warn_axis_number(TlSema *s, const char *function, const TlVal *x, const TlVal *y,
                         TlLoc loc)
{
    if (!tl_warns_at(s, loc) || x->kind != TL_VAL_IR || y->kind != TL_VAL_INT)
        return;
    int rank = x->u.ir->type->rank;
    if (y->u.integer < 1 || y->u.integer >= rank)
        return;
    int n = (int)y->u.integer;
    TlDiag *row = tl_diag(&s->ctx->diags, loc, TL_W0611, function, n, rank, n, n);
    row->label = tl_format(s->arena, "write axis = %d to reduce, or %s(%d, x) for elements", n,
                           function, n);
}

void tl_warn_no_grid(TlProgram *p)
{
    for (uint32_t i = 0; i < p->kernels.len; i++) {
        const TlItem *item = p->kernels.data[i]->item;
        bool found = item->broken;
        for (uint32_t k = 0; k < item->clauses.len; k++)
            found = found || item->clauses.data[k].kind == TL_CL_GRID;
        if (found)
            continue;
        TlDiag *row = tl_diag(&p->ctx->diags, item->loc, TL_W0602, item->name);
        row->label = "add one, as grid(cdiv(N, B)), or grid(1)";
    }
}
