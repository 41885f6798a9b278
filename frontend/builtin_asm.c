/* asm("..{0}..", T, args...): instructions of the GPU on each element. */
#include "frontend/sema.h"
#include <string.h>

/* Only real GPUs run it; `static if` hides it from other targets. */
static bool has_asm(TlSema *s, TlCall *c)
{
    const char *kind = s->options->target_kind;
    if (s->abstract || !kind || !strcmp(kind, "cuda") || !strcmp(kind, "hip"))
        return true;
    TlDiag *row = tl_err(s, c->loc, TL_E0343, kind);
    tl_label(s, row, "guard it: static if (target.kind == \"cuda\") { ... } else { ... }");
    return false;
}

/* Checks that each {n} of the text is the result or an argument. */
static bool check_text(TlSema *s, TlCall *c)
{
    const char *text = c->val[0].u.string;
    for (const char *at = text; (at = strchr(at, '{')); at++) {
        size_t n = strspn(at + 1, "0123456789");
        if (!n || at[1 + n] != '}')
            continue;
        uint32_t which = 0;
        for (size_t i = 0; i < n && which <= c->nrest; i++)
            which = which * 10 + (uint32_t)(at[1 + i] - '0');
        if (which <= c->nrest)
            continue;
        tl_err(s, c->vloc[0], TL_E0344, (int)n, at + 1, c->nrest);
        return false;
    }
    return true;
}

static bool fits_register(TlDtype d)
{
    return d != TL_BOOL && tl_dtype_bits(d) >= 16;
}

/* Argument i as a value that fits a register. */
static TlValue *operand(TlSema *s, TlCall *c, uint32_t i)
{
    TL_ASSERT(i < c->nrest, "operand %u of %u", i, c->nrest);
    const TlVal *v = &c->rest[i];
    TlLoc loc = c->rest_expr[i]->loc;
    TlValue *x = tl_is_number(v) && !tl_is_pointer(v) ? tl_materialize(s, v, loc) : NULL;
    if (x && fits_register(x->type->dtype))
        return x;
    tl_err(s, loc, TL_E0316, c->fn->name, tl_val_str(s, v));
    return NULL;
}

/* The shape of all arguments and of the result's type together. */
static const TlType *common_shape(TlSema *s, TlCall *c, const TlType *t, TlValue *const *in)
{
    for (uint32_t i = 0; i < c->nrest; i++) {
        int rank;
        int32_t shape[TL_MAX_RANK];
        if (!tl_broadcast_shape(t, in[i]->type, &rank, shape)) {
            tl_err(s, c->rest_expr[i]->loc, TL_E0303, c->fn->name, tl_type_str(s->ctx, t),
                   tl_type_str(s->ctx, in[i]->type));
            return NULL;
        }
        t = tl_type_tile(s->ctx, t->dtype, rank, shape);
    }
    return t;
}

TlVal tl_bi_escape_asm(TlSema *s, TlCall *c)
{
    const TlTy *to = c->val[1].u.type;
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, c->nrest + 1);
    if (to->kind != TL_TY_VALUE || to->type->ptr || !fits_register(to->type->dtype)) {
        tl_err(s, c->vloc[1], TL_E0316, c->fn->name, tl_ty_str(s, to));
        return tl_bad();
    }
    for (uint32_t i = 0; i < c->nrest; i++)
        if (!(in[i] = operand(s, c, i)))
            return tl_bad();
    const TlType *t = common_shape(s, c, to->type, in);
    if (!t || !check_text(s, c) || !has_asm(s, c))
        return tl_bad();
    for (uint32_t i = 0; i < c->nrest; i++)
        in[i] = tl_broadcast_ir(s, in[i], t->rank, t->shape);
    TlAttr text = {.id = TL_ATTR_TEXT, .u.s = tl_intern_name(s, c->val[0].u.string)};
    return tl_val_ir(tl_emit(s, TL_OP_ASM, c->nrest, in, t, 1, &text));
}
