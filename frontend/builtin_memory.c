/* Built-in functions that access memory, ask for the program's place in the grid, or help
 * debugging. */
#include "frontend/sema.h"
#include <string.h>

/* ---- loads and stores ---- */

static const TlMemArgs no_args = {.cache = -1, .evict = -1, .order = -1, .scope = -1};

static void set_mask(TlCall *c, uint32_t slot, TlMemArgs *m)
{
    TL_ASSERT(slot < c->nslots, "slot %u of %s", slot, c->fn->name);
    if (!c->given[slot])
        return;
    m->mask = &c->val[slot];
    m->mask_loc = c->vloc[slot];
}

/* cache = and evict = words; false when one is unknown */
static bool set_hints(TlSema *s, TlCall *c, uint32_t cache, TlMemArgs *m)
{
    m->cache = tl_call_word(s, c, cache, TL_FORM_CACHE);
    m->evict = tl_call_word(s, c, cache + 1, TL_FORM_EVICT);
    return m->cache != -2 && m->evict != -2;
}

TlVal tl_bi_mem_load(TlSema *s, TlCall *c)
{
    TlMemArgs m = no_args;
    set_mask(c, 1, &m);
    if (c->given[2] && c->given[3])
        tl_err(s, c->vloc[3], TL_E0315, "other");
    uint32_t other = c->given[2] ? 2 : 3;
    if (c->given[other]) {
        m.other = &c->val[other];
        m.other_loc = c->vloc[other];
    }
    TlBorder border = TL_BORDER_NONE;
    bool ok = set_hints(s, c, 4, &m);
    ok = (!c->given[6] || tl_border_of(s, c->expr[6], &border)) && ok;
    if (!ok)
        return tl_bad();
    return border ? tl_border_load(s, c->place[0], &m, border, c->vloc[6])
                  : tl_access_load(s, c->place[0], &m);
}

TlVal tl_bi_mem_store(TlSema *s, TlCall *c)
{
    TlMemArgs m = no_args;
    set_mask(c, 2, &m);
    c->place[0]->loc = c->place[0]->is_const ? c->loc : c->place[0]->loc;
    if (set_hints(s, c, 3, &m))
        tl_access_store(s, c->place[0], &c->val[1], c->vloc[1], &m);
    return tl_val(TL_VAL_VOID);
}

TlVal tl_bi_mem_inside(TlSema *s, TlCall *c)
{
    return tl_access_inside(s, c->place[0]);
}

/* A call of at() is a place, which access.c evaluates; here it is a function's argument. */
TlVal tl_bi_mem_at(TlSema *s, TlCall *c)
{
    tl_err(s, c->loc, TL_E0211, "the function 'at'");
    return tl_bad();
}

/* ---- atomics ---- */

/* mask at `slot`, then order and scope */
static bool set_atomic(TlSema *s, TlCall *c, uint32_t slot, TlMemArgs *m)
{
    TL_ASSERT(slot < c->nslots, "slot %u of %s", slot, c->fn->name);
    *m = no_args;
    set_mask(c, slot, m);
    m->order = tl_call_word(s, c, slot + 1, TL_FORM_ORDER);
    m->scope = tl_call_word(s, c, slot + 2, TL_FORM_SCOPE);
    return m->order != -2 && m->scope != -2;
}

TlVal tl_bi_mem_rmw(TlSema *s, TlCall *c)
{
    TlMemArgs m;
    if (!set_atomic(s, c, 2, &m))
        return tl_bad();
    return tl_access_atomic(s, TL_OP_ATOMIC_RMW, c->fn->data, c->place[0], 1, &c->val[1],
                            &c->vloc[1], &m);
}

TlVal tl_bi_mem_cas(TlSema *s, TlCall *c)
{
    TlMemArgs m;
    if (!set_atomic(s, c, 3, &m))
        return tl_bad();
    return tl_access_atomic(s, TL_OP_ATOMIC_CAS, 0, c->place[0], 2, &c->val[1], &c->vloc[1], &m);
}

TlVal tl_bi_mem_atomic_load(TlSema *s, TlCall *c)
{
    TlMemArgs m;
    if (!set_atomic(s, c, 1, &m))
        return tl_bad();
    return tl_access_atomic(s, TL_OP_ATOMIC_LOAD, 0, c->place[0], 0, NULL, NULL, &m);
}

TlVal tl_bi_mem_atomic_store(TlSema *s, TlCall *c)
{
    TlMemArgs m;
    if (set_atomic(s, c, 2, &m))
        tl_access_atomic(s, TL_OP_ATOMIC_STORE, 0, c->place[0], 1, &c->val[1], &c->vloc[1], &m);
    return tl_val(TL_VAL_VOID);
}

/* ---- views and pointers ---- */

TlVal tl_bi_mem_raw(TlSema *s, TlCall *c)
{
    const TlVal *v = &c->val[0];
    if (v->kind != TL_VAL_VIEW) {
        tl_err(s, c->vloc[0], TL_E0338, "raw", "view", "a view", tl_val_str(s, v));
        return tl_bad();
    }
    const TlType *t = v->u.ir->type;
    if (tl_dtype_bits(t->dtype) == 4) {
        tl_err(s, c->loc, TL_E0316, "raw", tl_val_str(s, v));
        return tl_bad();
    }
    return tl_val_ir(tl_emit(s, TL_OP_VIEW_PTR, 1, &v->u.ir,
                             tl_type_ptr(s->ctx, t->dtype, t->is_const, 0, NULL), 0, NULL));
}

TlVal tl_bi_mem_view(TlSema *s, TlCall *c)
{
    return tl_make_view(s, &c->val[0], &c->val[1], &c->val[2], c->vloc);
}
TlVal tl_bi_mem_sub(TlSema *s, TlCall *c)
{
    return tl_sub_view(s, &c->val[0], &c->val[1], &c->val[2], c->vloc);
}

/* ---- the program ---- */

TlVal tl_bi_prog_id(TlSema *s, TlCall *c)
{
    int axis = 0;
    TlVal bad;
    if (!tl_call_axis_of(s, c, 0, TILE_MAX_GRID, "a grid", &axis, &bad))
        return bad;
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    return tl_val_ir(
        tl_emit(s, (TlOpcode)c->fn->data, 0, NULL, tl_type_scalar(s->ctx, TL_I32), 1, &attr));
}

/* ---- debugging ---- */

static void emit_text(TlSema *s, TlOpcode op, TlValue *x, const char *text)
{
    TlAttr attr = {.id = TL_ATTR_TEXT, .u.s = tl_intern_name(s, text ? text : "")};
    tl_op_new(&s->b, op, 1, &x, 0, NULL, 0, text != NULL, &attr);
}

static void print_value(TlSema *s, TlCall *c, const TlVal *v, const char *text)
{
    for (uint32_t i = 0; v->kind == TL_VAL_ARRAY && i < v->u.type->n; i++) {
        TlArrayIndex at = tl_array_known(s, v, i, c->vloc[1]);
        TlVal x = tl_array_get(s, v, &at);
        print_value(s, c, &x, tl_format(s->arena, "%s[%u]", text, i));
    }
    if (v->kind == TL_VAL_ARRAY)
        return;
    if (v->kind == TL_VAL_TUPLE || v->kind == TL_VAL_STRUCT) {
        for (uint32_t i = 0; i < v->n; i++) {
            const char *field = v->kind == TL_VAL_STRUCT ? v->def->item->fields.data[i].name
                                                         : tl_format(s->arena, "%u", i);
            print_value(s, c, &v->items[i], tl_format(s->arena, "%s.%s", text, field));
        }
        return;
    }
    if (v->kind == TL_VAL_VIEW || tl_is_pointer(v)) {
        tl_err(s, c->vloc[1], TL_E0316, "print", tl_val_str(s, v));
        return;
    }
    TlValue *x = tl_materialize(s, v, c->vloc[1]);
    if (x)
        emit_text(s, TL_OP_PRINT, x, text);
}

/* A conversion of C's printf, as "%d" or "%5.2f"; NULL: the text has none. */
static const char *conversion_in(TlSema *s, const char *text)
{
    for (const char *p = text; (p = strchr(p, '%')) != NULL; p++) {
        size_t n = 1 + strspn(p + 1, "-+0123456789.*hlzjt");
        if (p[n] && strchr("diouxXeEfFgGaAcsp", p[n]))
            return tl_format(s->arena, "%.*s", (int)n + 1, p);
        p += p[1] == '%';
    }
    return NULL;
}

static void warn_of_format(TlSema *s, TlLoc loc, const char *text)
{
    const char *conversion = conversion_in(s, text);
    if (conversion)
        tl_diag(&s->ctx->diags, loc, TL_W0623, conversion)->label =
            "a name for the value is all that is wanted";
}

TlVal tl_bi_debug_print(TlSema *s, TlCall *c)
{
    warn_of_format(s, c->vloc[0], c->val[0].u.string);
    print_value(s, c, &c->val[1], c->val[0].u.string);
    return tl_val(TL_VAL_VOID);
}

static TlValue *promise(TlSema *s, TlCall *c)
{
    const TlVal *v = &c->val[0];
    TlValue *x = tl_call_ir(s, c, 0);
    if (x && x->type->dtype == TL_BOOL)
        return x;
    if (x)
        tl_err(s, c->vloc[0], TL_E0338, c->fn->name, "cond", "bool", tl_val_str(s, v));
    return NULL;
}

TlVal tl_bi_debug_assert(TlSema *s, TlCall *c)
{
    TlValue *x = promise(s, c);
    const TlExpr *e = c->expr[0];
    const char *text = c->given[1] ? c->val[1].u.string
                       : e         ? tl_source_text(s->ctx, e->begin, e->end)
                                   : "assert";
    if (x && (s->options->debug || s->options->check))
        emit_text(s, TL_OP_ASSERT, x, text);
    return tl_val(TL_VAL_VOID);
}

TlVal tl_bi_debug_assume(TlSema *s, TlCall *c)
{
    TlValue *x = promise(s, c);
    if (x)
        emit_text(s, TL_OP_ASSUME, x, NULL);
    return tl_val(TL_VAL_VOID);
}

/* multiple_of (data 1) of an integer scalar becomes a promise; other arguments are checked only. */
TlVal tl_bi_debug_multiple(TlSema *s, TlCall *c)
{
    int64_t n = 0;
    TlVal bad;
    if (!tl_call_int(s, c, 1, "n", &n, &bad))
        return bad;
    if (n < 1 || n > INT32_MAX) {
        tl_err(s, c->vloc[1], TL_E0338, c->fn->name, "n", "a positive number",
               tl_format(s->arena, "%lld", (long long)n));
        return tl_bad();
    }
    TlValue *x = c->val[0].kind == TL_VAL_IR ? c->val[0].u.ir : NULL;
    bool has_promise = c->fn->data && n > 1 && x && !x->type->ptr && x->type->rank == 0 &&
                       tl_is_int(x->type->dtype) && tl_int_fits(x->type->dtype, n);
    if (has_promise) {
        TlValue *rest = tl_binary(&s->b, TL_OP_REM, x, tl_const_int(&s->b, x->type, n));
        TlValue *none = tl_const_bits(&s->b, x->type, 0);
        emit_text(s, TL_OP_ASSUME, tl_binary(&s->b, TL_OP_EQ, rest, none), NULL);
        if (n % 2 == 0)
            tl_even_promise(s, x);
    }
    return c->val[0];
}

TlVal tl_bi_range_misplaced(TlSema *s, TlCall *c)
{
    tl_label(s, tl_err(s, c->loc, TL_E0211, "a range"),
             "range is only for loops: for (int i : range(n)); iota(N) is a tile of 0 to N - 1");
    return tl_bad();
}
