/* Errors with the chain of calls that led to them, labels, the limit of steps. */
#include "frontend/sema.h"

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

bool tl_extent_check(TlSema *s, TlLoc loc, const TlExpr *e, int64_t n, int64_t product)
{
    if (n >= 1 && n <= TL_MAX_ELEMS && product * n <= TL_MAX_ELEMS)
        return true;
    const TlVar *var = e ? tl_var_of(s, e) : NULL;
    bool is_given = var && var->given_by;
    if (is_given && tl_sema_silent(s, var->loc))
        return false;
    TlDiag *row = n < 1 ? tl_err(s, loc, TL_E0306, (long long)n)
                        : tl_err(s, loc, TL_E0307, TL_MAX_ELEMS);
    if (is_given)
        tl_note(s, row, var->loc, "'%s' is %lld here, which %s gave", var->name, (long long)n,
                var->given_by);
    return false;
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

static const char *list_of(TlSema *s, uint32_t n, const char *const *names)
{
    const char *list = "";
    for (uint32_t i = 0; i < n; i++)
        list = tl_format(s->arena, "%s%s%s", list, i ? ", " : "", names[i]);
    return list;
}

void tl_label_parameters(TlSema *s, TlDiag *row, uint32_t n, const char *const *names)
{
    tl_label(s, row, n ? "its parameters are %s" : "it has none", list_of(s, n, names));
}

void tl_label_fields(TlSema *s, TlDiag *row, uint32_t n, const char *const *names)
{
    tl_label(s, row, "its fields are %s", list_of(s, n, names));
}

void tl_label_view(TlSema *s, TlDiag *row, const TlVal *v)
{
    if (tl_is_pointer(v))
        tl_label(s, row, "load the elements first: p[i + iota(B)], or load(p + i, mask = c)");
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

const char *tl_intern_name(TlSema *s, const char *text)
{
    return tl_intern_str(&s->ctx->strings, text);
}
