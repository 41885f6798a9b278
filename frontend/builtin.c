/* Built-in functions: looks them up, and assigns arguments to parameters by position and by name.
 */
#include "frontend/advice.h"
#include "frontend/sema.h"
#include <string.h>

static const TlBuiltin builtins[] = {
#define BUILTIN(name, params, fn, data, doc) {#name, params, tl_bi_##fn, data, doc},
#include "frontend/builtins.def"
};

const TlBuiltin *tl_builtin_at(uint32_t i)
{
    return i < sizeof builtins / sizeof *builtins ? &builtins[i] : NULL;
}

const TlBuiltin *tl_builtin_find(const char *name)
{
    for (uint32_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (!strcmp(builtins[i].name, name))
            return &builtins[i];
    return NULL;
}

/* ---- parameters ---- */

typedef struct Slot {
    char kind;
    const char *name;
    uint32_t len;
    char mark; /* 0, ? = or * */
} Slot;

static uint32_t read_slots(const char *text, Slot *slots)
{
    uint32_t n = 0;
    while (*text) {
        Slot *s = &slots[n++];
        s->kind = *text;
        s->name = text + 2;
        s->len = (uint32_t)strcspn(s->name, "?=* ");
        text = s->name + s->len;
        s->mark = *text && *text != ' ' ? *text++ : 0;
        text += strspn(text, " ");
    }
    return n;
}

static const char *slot_name(TlSema *s, const Slot *slot)
{
    return tl_strndup(s->arena, slot->name, slot->len);
}

static const char *kind_text(char kind)
{
    switch (kind) {
    case 't': return "a type";
    case 'f': return "a function";
    case 's': return "a text";
    case 'w': return "a word";
    case 'i': return "an integer known to the compiler";
    case 'b': return "true or false, known to the compiler";
    default: return "a value";
    }
}

static void wrong_kind(TlSema *s, TlCall *c, const Slot *slot, const TlExpr *e, const TlVal *v)
{
    if (tl_is_bad(v))
        return;
    TlDiag *row = tl_err(s, e->loc, TL_E0338, c->fn->name, slot_name(s, slot),
                         kind_text(slot->kind), tl_val_str(s, v));
    if (slot->kind == 's' && !strcmp(c->fn->name, "print"))
        tl_label(s, row, "write print(\"%s\", %s)", e->kind == TL_EX_NAME ? e->u.name : "x",
                 tl_short_text(s, e, "x"));
}

/* Evaluates one argument in the way of its parameter's kind. */
static TlVal eval_slot(TlSema *s, TlCall *c, const Slot *slot, const TlExpr *e, TlAccess **place)
{
    TlVal v;
    switch (slot->kind) {
    case 'p':
        *place = TL_NEW(s->arena, TlAccess);
        tl_access(s, e, *place);
        if ((*place)->element.kind != TL_VAL_VOID && !tl_is_bad(&(*place)->element))
            tl_err(s, (*place)->loc, TL_E0506, "an element of an array");
        return (*place)->bad.kind == TL_VAL_VOID ? tl_val(TL_VAL_VOID) : (*place)->bad;
    case 'w': return tl_val(TL_VAL_VOID); /* read by the row's function */
    case 's':
        if (e->kind == TL_EX_STRING)
            return tl_eval(s, e);
        v = tl_eval(s, e);
        wrong_kind(s, c, slot, e, &v);
        return tl_bad();
    case 'f':
        v = tl_eval(s, e);
        if (tl_is_fn(&v) || tl_is_bad(&v))
            return v;
        wrong_kind(s, c, slot, e, &v);
        return tl_bad();
    case 't':
        v = tl_eval(s, e);
        if (v.kind == TL_VAL_TYPE || tl_is_bad(&v))
            return v;
        wrong_kind(s, c, slot, e, &v);
        return tl_bad();
    case 'b':
        v = tl_eval_value(s, e);
        if (tl_is_bad(&v) || (v.kind == TL_VAL_CONST && v.dtype == TL_BOOL))
            return v;
        wrong_kind(s, c, slot, e, &v);
        return tl_bad();
    default: return tl_eval_value(s, e);
    }
}

static void add_rest(TlSema *s, TlCall *c, TlVal v, const TlExpr *e, int64_t width)
{
    uint32_t n = c->nrest++;
    if ((n & (n - 1)) == 0) {
        size_t cap = n ? 2 * (size_t)n : 1;
        c->rest = tl_grow(s->arena, c->rest, n * sizeof *c->rest, cap * sizeof *c->rest);
        c->rest_expr =
            tl_grow(s->arena, c->rest_expr, n * sizeof *c->rest_expr, cap * sizeof *c->rest_expr);
        c->widths = tl_grow(s->arena, c->widths, n * sizeof *c->widths, cap * sizeof *c->widths);
    }
    c->rest[n] = v;
    c->rest_expr[n] = e;
    c->widths[n] = width;
}

const char *tl_builtin_form(TlSema *s, const TlBuiltin *b)
{
    TlSbuf out;
    tl_sbuf_init(&out, s->arena);
    tl_sbuf_putf(&out, "%s(", b->name);
    const char *between = "";
    for (const char *at = b->params; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t n = strcspn(at, " ");
        if (strchr("?=", at[n - 1]))
            continue;
        bool rest = at[n - 1] == '*';
        tl_sbuf_putf(&out, "%s%.*s%s", between, (int)n - 2 - rest, at + 2, rest ? ", ..." : "");
        between = ", ";
    }
    tl_sbuf_putf(&out, ")");
    return out.text;
}

static void label_slots(TlSema *s, TlDiag *row, const TlCall *c, const Slot *slots)
{
    const char **names = TL_NEW_ARRAY(s->arena, const char *, c->nslots + 1);
    for (uint32_t i = 0; i < c->nslots; i++) names[i] = slot_name(s, &slots[i]);
    tl_label_parameters(s, row, c->nslots, names);
}

/* Too many by position: what has to be named. */
static void label_named(TlSema *s, TlDiag *row, const TlCall *c, const Slot *slots)
{
    TlSbuf names;
    tl_sbuf_init(&names, s->arena);
    for (uint32_t i = 0; i < c->nslots; i++)
        if (slots[i].mark == '=')
            tl_sbuf_putf(&names, "%s%s = ...", names.len ? ", " : "", slot_name(s, &slots[i]));
    if (names.len)
        tl_label(s, row, "others are named: %s", names.text);
    else if (!strcmp(c->fn->name, "print"))
        tl_label(s, row, "one print shows one value; a tuple (a, b) is one");
}

/* The parameter for argument i; NULL after an error. */
static const Slot *find_slot(TlSema *s, TlCall *c, const Slot *slots, const TlArg *a,
                             uint32_t nargs, uint32_t *at)
{
    if (a->name) {
        for (uint32_t i = 0; i < c->nslots; i++)
            if (strlen(a->name) == slots[i].len && !memcmp(a->name, slots[i].name, slots[i].len))
                return &slots[i];
        TlDiag *row = tl_err(s, a->loc, TL_E0314, c->fn->name, a->name);
        const char *advice = tl_advice(a->name, strlen(a->name), 'a');
        if (advice)
            tl_label(s, row, "%s", advice);
        else
            label_slots(s, row, c, slots);
        return NULL;
    }
    uint32_t i = *at;
    if (i < c->nslots && slots[i].mark != '=') {
        *at += slots[i].mark != '*';
        return &slots[i];
    }
    if (i < c->nslots && slots[i].len == 4 && !memcmp(slots[i].name, "axis", 4))
        tl_label(s, tl_err(s, c->loc, TL_E0328, c->fn->name), "write %s(x, axis = %s)", c->fn->name,
                 a->value->kind == TL_EX_INT
                     ? tl_format(s->arena, "%llu", (unsigned long long)a->value->u.integer)
                     : "0");
    else
        label_named(s, tl_err(s, c->loc, TL_E0312, c->fn->name, i, nargs), c, slots);
    return NULL;
}

static bool is_effect(const char *name)
{
    return !strcmp(name, "store") || !strcmp(name, "atomic_store") || !strcmp(name, "print") ||
           !strcmp(name, "assert") || !strcmp(name, "assume");
}

static bool has_error(const TlCall *c)
{
    for (uint32_t i = 0; i < c->nslots; i++)
        if (c->given[i] && c->val[i].kind == TL_VAL_ERROR)
            return true;
    return false;
}

/* Calls the row's function if the values are known. */
static TlVal call_with(TlSema *s, TlCall *c, const Slot *slots)
{
    TlVal bad = tl_val(TL_VAL_VOID);
    for (uint32_t i = 0; i < c->nslots; i++) {
        if (!c->given[i] && !slots[i].mark) {
            if (has_error(c)) /* one is enough */
                return is_effect(c->fn->name) ? bad : tl_bad();
            TlDiag *row = tl_err(s, c->loc, TL_E0313, c->fn->name, slot_name(s, &slots[i]));
            if (!strcmp(c->fn->name, "max_nan") || !strcmp(c->fn->name, "min_nan"))
                tl_label(s, row, "of all along an axis: reduce(x, 0, %s)", c->fn->name);
            else
                tl_label(s, row, "write %s", tl_builtin_form(s, c->fn));
            return is_effect(c->fn->name) ? bad : tl_bad();
        }
        if (c->given[i] && tl_is_bad(&c->val[i]))
            bad = bad.kind == TL_VAL_ERROR ? bad : c->val[i];
    }
    for (uint32_t i = 0; i < c->nrest; i++)
        if (tl_is_bad(&c->rest[i]))
            bad = bad.kind == TL_VAL_ERROR ? bad : c->rest[i];
    if (bad.kind == TL_VAL_VOID) {
        s->b.loc = c->loc;
        return c->fn->run(s, c);
    }
    if (is_effect(c->fn->name))
        return tl_val(TL_VAL_VOID);
    bad.dtype = TL_DTYPE_COUNT;
    return bad;
}

TlVal tl_builtin_call(TlSema *s, const TlBuiltin *f, bool fast, const TlExpr *e)
{
    TL_ASSERT(e->kind == TL_EX_CALL && f->run, "%s is not called", f->name);
    Slot slots[TL_MAX_SLOTS];
    TlCall call = {.fn = f, .loc = e->loc, .fast = fast}, *c = &call;
    c->nslots = read_slots(f->params, slots);
    uint32_t at = 0;
    bool ok = true;
    for (uint32_t i = 0; i < e->args.len; i++) {
        const TlArg *a = &e->args.data[i];
        const Slot *slot = find_slot(s, c, slots, a, e->args.len, &at);
        if (!slot) {
            ok = false;
            if (a->value->kind != TL_EX_NAME)
                tl_eval(s, a->value);
            continue;
        }
        uint32_t k = (uint32_t)(slot - slots);
        TlAccess *place = NULL;
        TlVal v = eval_slot(s, c, slot, a->value, &place);
        int64_t width = -1;
        bool unknown = false;
        if (a->width && !tl_eval_int(s, a->width, "a width", &width, &unknown))
            v = unknown ? tl_unknown(TL_DTYPE_COUNT) : tl_bad();
        if (slot->mark == '*') {
            if (a->step)
                tl_err(s, a->step->loc, TL_E0338, f->name, slot_name(s, slot), "start +: width",
                       "a slice with a step");
            add_rest(s, c, v, a->value, width);
            continue;
        }
        if (a->width)
            tl_err(s, a->width->loc, TL_E0338, f->name, slot_name(s, slot), "a value", "a slice");
        if (c->given[k])
            tl_err(s, a->loc, TL_E0315, slot_name(s, slot));
        c->given[k] = true;
        c->val[k] = v, c->vloc[k] = a->value->loc, c->place[k] = place, c->expr[k] = a->value;
    }
    return ok ? call_with(s, c, slots) : is_effect(f->name) ? tl_val(TL_VAL_VOID) : tl_bad();
}

TlVal tl_builtin_apply(TlSema *s, const TlBuiltin *f, bool fast, uint32_t n, const TlVal *args,
                       TlLoc loc)
{
    TL_ASSERT(f->run && (args || !n), "%s has nothing to run", f->name);
    Slot slots[TL_MAX_SLOTS];
    TlCall call = {.fn = f, .loc = loc, .fast = fast}, *c = &call;
    c->nslots = read_slots(f->params, slots);
    for (uint32_t i = 0; i < n; i++) {
        if (i >= c->nslots || slots[i].kind != 'v' || slots[i].mark == '=') {
            tl_err(s, loc, TL_E0316, f->name, tl_val_str(s, &args[i]));
            return tl_bad();
        }
        c->given[i] = true;
        c->val[i] = args[i], c->vloc[i] = loc;
    }
    return call_with(s, c, slots);
}
