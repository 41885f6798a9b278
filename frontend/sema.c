/* The walker's ground: errors with the chain of calls that led to them, variables and the trail of
 * what is assigned to them. */
#include "frontend/sema.h"
#include <string.h>

void tl_sema_init(TlSema *s, TlProgram *prog)
{
    TL_ASSERT(prog && prog->ctx, "a walk of no program");
    *s = (TlSema){
        .ctx = prog->ctx, .arena = &prog->ctx->perm, .prog = prog, .options = &prog->options};
    tl_map_init(&s->powers, s->arena);
    tl_map_init(&s->walked, s->arena);
}

/* ---- errors ---- */

bool tl_sema_silent(TlSema *s, TlLoc loc)
{
    s->quiet_errors = true;
    if (!loc.line)
        return false;
    uint64_t key = ((uint64_t)loc.file << 52) ^ ((uint64_t)loc.line << 20) ^ loc.col;
    if (tl_map_get(&s->prog->seen, key, NULL))
        return true;
    tl_map_put(&s->prog->seen, key, 1);
    return false;
}

TlDiag *tl_sema_row(TlSema *s, TlDiag *row)
{
    uint32_t n = 0;
    for (const TlFrame *f = s->frame; row && f && f->def && n < 8; f = f->outer)
        if (f->call.line) {
            tl_diag_note(&s->ctx->diags, row, f->call, "in the call of '%s' here",
                         f->def->item->name);
            n++;
        }
    return row;
}

void tl_label(TlSema *s, TlDiag *row, const char *format, ...)
{
    if (!row)
        return;
    va_list args;
    va_start(args, format);
    row->label = tl_vformat(s->arena, format, args);
    va_end(args);
}

void tl_label_parameters(TlSema *s, TlDiag *row, uint32_t n, const char *const *names)
{
    const char *list = "";
    for (uint32_t i = 0; i < n; i++)
        list = tl_format(s->arena, "%s%s%s", list, i ? ", " : "", names[i]);
    tl_label(s, row, n ? "its parameters are %s" : "it has none", list);
}

void tl_label_view(TlSema *s, TlDiag *row, const TlVal *v)
{
    if (v->kind != TL_VAL_VIEW)
        return;
    if (v->u.ir->type->rank == 2)
        tl_label(s, row, "index the view first: A[i +: BM, k +: BK] is a tile of it");
    else
        tl_label(s, row, "index the view first: x[i +: B] is a tile of it, raw(x) its pointer");
}

void tl_note(TlSema *s, TlDiag *row, TlLoc loc, const char *format, ...)
{
    if (!row)
        return;
    va_list args;
    va_start(args, format);
    const char *text = tl_vformat(s->arena, format, args);
    va_end(args);
    tl_diag_note(&s->ctx->diags, row, loc, "%s", text);
}

bool tl_step(TlSema *s, TlLoc loc) { return tl_steps(s, loc, 1); }

bool tl_steps(TlSema *s, TlLoc loc, unsigned n)
{
    if (s->exhausted)
        return false;
    TL_ASSERT(s->steps <= TL_MAX_STEPS, "a walk goes on after its last step");
    s->steps += n;
    if (s->steps <= TL_MAX_STEPS && (!s->b.fn || s->made + s->b.fn->nvalues <= TL_MAX_OPS))
        return true;
    s->exhausted = true;
    if (s->steps > TL_MAX_STEPS)
        tl_err(s, loc, TL_E0702, TL_MAX_STEPS);
    else
        tl_err(s, loc, TL_E0703, TL_MAX_OPS);
    return false;
}

/* ---- variables ---- */

TlVar *tl_var_new(TlSema *s, TlName name, TlLoc loc, TlTy ty, TlVal val, bool is_const)
{
    TL_ASSERT(name, "a variable without a name");
    TlVar *v = TL_NEW(s->arena, TlVar);
    *v = (TlVar){name, loc, ty, val, is_const, s->serial++};
    tl_fact_declare(s, v);
    return v;
}

TlVar *tl_var_bind(TlSema *s, const TlLocal *l, TlLoc loc, TlTy ty, TlVal val, bool is_const)
{
    TL_ASSERT(l && s->frame->vars, "a variable outside of a function");
    return s->frame->vars[l->index] = tl_var_new(s, l->name, loc, ty, val, is_const);
}

TlVar *tl_var_declare(TlSema *s, const TlLocal *l, TlTy ty, TlVal val, bool is_const)
{
    if (l->hides && l->hides->depth == l->depth) {
        TlDiag *row = tl_err(s, l->loc, TL_E0202, l->name);
        tl_note(s, row, l->hides->loc, "declared here before");
    }
    return tl_var_bind(s, l, l->loc, ty, val, is_const);
}

TlVar *tl_var_find(const TlSema *s, const TlLocal *l, TlName name)
{
    return l && l->name == name && s->frame->vars ? s->frame->vars[l->index] : NULL;
}

TlVar *tl_var_of(const TlSema *s, const TlExpr *e)
{
    return e->kind == TL_EX_NAME ? tl_var_find(s, e->local, e->u.name) : NULL;
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

const char *tl_intern_name(TlSema *s, const char *text)
{
    return tl_intern_str(&s->ctx->strings, text);
}

TlVal tl_worse(const TlVal *a, const TlVal *b, TlDtype d)
{
    if (a->kind == TL_VAL_ERROR || b->kind == TL_VAL_ERROR)
        return tl_bad();
    return tl_unknown(d);
}

/* ---- names for messages ---- */

const char *tl_ty_str(TlSema *s, const TlTy *t)
{
    switch (t->kind) {
    case TL_TY_UNKNOWN:
        return t->dtype == TL_DTYPE_COUNT ? "a type not known yet" : tl_dtype_name(t->dtype);
    case TL_TY_VALUE: return tl_type_str(s->ctx, t->type);
    case TL_TY_VIEW: return "a view";
    case TL_TY_STRUCT: return tl_format(s->arena, "struct %s", t->def->item->name);
    case TL_TY_VOID: return "void";
    case TL_TY_AUTO: return "auto";
    case TL_TY_TUPLE: break;
    }
    TlSbuf text;
    tl_sbuf_init(&text, s->arena);
    for (uint32_t i = 0; i < t->n; i++)
        tl_sbuf_putf(&text, "%s%s", i ? ", " : "(", tl_ty_str(s, &t->items[i]));
    tl_sbuf_puts(&text, ")");
    return text.text;
}

const char *tl_val_str(TlSema *s, const TlVal *v)
{
    switch (v->kind) {
    case TL_VAL_INT:
    case TL_VAL_FLOAT: return tl_format(s->arena, "the literal %s", tl_const_text(s, v));
    case TL_VAL_FN: return tl_format(s->arena, "the function '%s'", v->def->item->name);
    case TL_VAL_BUILTIN: return tl_format(s->arena, "the function '%s'", v->u.builtin->name);
    case TL_VAL_TYPE: return tl_format(s->arena, "the type %s", tl_ty_str(s, v->u.type));
    case TL_VAL_STRING: return "a text";
    case TL_VAL_MODULE: return "a module";
    case TL_VAL_SPACE: return tl_format(s->arena, "'%s'", v->u.string);
    case TL_VAL_VOID: return "the result of a void function";
    case TL_VAL_UNSET: return "nothing";
    case TL_VAL_ERROR:
    case TL_VAL_UNKNOWN:
    case TL_VAL_CHOICE:
    case TL_VAL_CONST:
    case TL_VAL_IR:
    case TL_VAL_VIEW:
    case TL_VAL_TUPLE:
    case TL_VAL_STRUCT: break;
    }
    TlTy t = tl_ty_of(s, v);
    return tl_ty_str(s, &t);
}

/* Edit distance, given up above `limit`. */
static uint32_t distance(const char *a, const char *b, uint32_t limit)
{
    TL_ASSERT(limit > 0, "a distance of 0");
    enum { MAX = 32 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX || (n > m ? n - m : m - n) > limit)
        return limit + 1;
    uint32_t row[MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= n; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= m; j++) {
            uint32_t best = diagonal + (a[i - 1] != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[m];
}

static void nearer(const char *name, const char *candidate, const char **best, uint32_t *score)
{
    if (!candidate || !candidate[0])
        return;
    uint32_t d = distance(name, candidate, *score);
    if (d < *score)
        *score = d, *best = candidate;
}

const char *tl_near_name(TlSema *s, TlName name, const TlLocal *scope)
{
    const char *best = NULL;
    uint32_t score = (uint32_t)strlen(name) / 3 + 1;
    if (score > 3)
        score = 3;
    for (const TlLocal *l = scope; l; l = l->outer)
        if (tl_var_find(s, l, l->name))
            nearer(name, l->name, &best, &score);
    const TlMod *m = s->frame ? s->frame->mod : NULL;
    for (uint32_t i = 0; m && i < m->defs.len; i++)
        nearer(name, m->defs.data[i]->item->name, &best, &score);
    for (uint32_t i = 0; tl_builtin_at(i); i++)
        nearer(name, tl_builtin_at(i)->name, &best, &score);
    return best;
}
