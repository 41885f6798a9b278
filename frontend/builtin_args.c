/* Helpers with which a built-in function reads its arguments. */
#include "frontend/sema.h"
#include <string.h>

TlValue *tl_call_ir(TlSema *s, TlCall *c, uint32_t i)
{
    TL_ASSERT(i < c->nslots, "slot %u of %s", i, c->fn->name);
    const TlVal *v = &c->val[i];
    if (!tl_is_number(v) || tl_is_pointer(v)) {
        tl_label_view(s, tl_err(s, c->loc, TL_E0316, c->fn->name, tl_val_str(s, v)), v);
        return NULL;
    }
    return tl_materialize(s, v, c->vloc[i]);
}

bool tl_call_int(TlSema *s, TlCall *c, uint32_t i, const char *what, int64_t *value, TlVal *out)
{
    TL_ASSERT(i < c->nslots, "slot %u of %s", i, c->fn->name);
    bool unknown = false;
    if (tl_int_of(s, &c->val[i], c->vloc[i], what, value, &unknown))
        return true;
    *out = unknown ? tl_unknown(TL_DTYPE_COUNT) : tl_bad();
    return false;
}

bool tl_call_axis_of(TlSema *s, TlCall *c, uint32_t i, int rank, const char *what, int *axis,
                     TlVal *out)
{
    TL_ASSERT(i < c->nslots && rank >= 0, "slot %u of %s, rank %d", i, c->fn->name, rank);
    int64_t n = 0;
    if (!tl_call_int(s, c, i, "an axis", &n, out))
        return false;
    if (n < 0 || n >= rank) {
        TlDiag *row = tl_err(s, c->vloc[i], TL_E0326, (long long)n, what);
        if (rank)
            tl_label(s, row, rank > 1 ? "axes are 0 to %d" : "the axis is %d", rank - 1);
        *out = tl_bad();
        return false;
    }
    *axis = (int)n;
    return true;
}

bool tl_call_axis(TlSema *s, TlCall *c, uint32_t i, int rank, int *axis, TlVal *out)
{
    const char *what = rank ? tl_format(s->arena, "a tile of rank %d", rank) : "a scalar";
    return tl_call_axis_of(s, c, i, rank, what, axis, out);
}

int64_t tl_call_word(TlSema *s, TlCall *c, uint32_t i, TlAttrForm family)
{
    TL_ASSERT(i < c->nslots, "slot %u of %s", i, c->fn->name);
    if (!c->given[i])
        return -1;
    const TlExpr *e = c->expr[i];
    const char *word = e && e->kind == TL_EX_NAME ? e->u.name : NULL;
    int64_t v = word ? tl_enum_parse(family, word, strlen(word)) : -1;
    if (v >= 0)
        return v;
    TlSbuf known;
    tl_sbuf_init(&known, s->arena);
    for (int64_t k = 0; tl_enum_name(family, k); k++)
        tl_sbuf_putf(&known, "%s%s", k ? ", " : "", tl_enum_name(family, k));
    tl_err(s, c->vloc[i], TL_E0330, word ? word : "this", known.text);
    return -2;
}

TlDtype tl_sum_dtype(TlDtype d)
{
    switch (d) {
    case TL_BOOL:
    case TL_I8:
    case TL_I16: return TL_I32;
    case TL_U8:
    case TL_U16: return TL_U32;
    case TL_F16:
    case TL_BF16: return TL_F32;
    case TL_I32:
    case TL_I64:
    case TL_U32:
    case TL_U64:
    case TL_F32:
    case TL_F64: return d;
    case TL_I4:
    case TL_U4:
    case TL_F8E4M3:
    case TL_F8E5M2:
    case TL_F8E4M3FNUZ:
    case TL_F8E5M2FNUZ:
    case TL_F4E2M1: /* only stored */
    case TL_DTYPE_COUNT: break;
    }
    TL_UNREACHABLE("sums of %s", tl_dtype_name(d));
}
