/* Launch-time expressions: grid, require, assume, group, extents that are expressions. Compiled
 * to postfix code over extents, scalar parameters and constants. Integers are i64 there, floats
 * f64. */
#include "frontend/sema.h"
#include <string.h>

enum { LONGEST_ARGUMENTS = 1 << 14 }; /* instructions of the arguments of one call */
typedef TL_VEC(tile_hx_ins) Code;
typedef struct Host {
    TlSema *s;
    TlKernelInfo *info;
} Host;

static TlHostType compile(Host *h, const TlExpr *e, Code *out);

static void put(Host *h, Code *out, tile_hx_op op, int64_t imm)
{
    tl_vec_push(h->s->arena, out, (tile_hx_ins){op, 0, imm});
}

static void append(Host *h, Code *out, const Code *more)
{
    for (uint32_t i = 0; i < more->len; i++)
        tl_vec_push(h->s->arena, out, more->data[i]);
}

static TlHostType refuse(Host *h, TlLoc loc, const char *what)
{
    tl_err(h->s, loc, TL_E0603, what);
    return TL_HOST_BAD;
}

static int64_t word_of(double x)
{
    int64_t w;
    memcpy(&w, &x, sizeof w);
    return w;
}

/* A value the compiler knows. */
static TlHostType put_const(Host *h, const TlExpr *e, const TlVal *v, Code *out)
{
    if (tl_is_bad(v))
        return TL_HOST_BAD;
    int64_t i = 0;
    if (v->kind == TL_VAL_CONST && v->dtype == TL_BOOL) {
        put(h, out, TILE_HX_CONST, v->u.bits != 0);
        return TL_HOST_BOOL;
    }
    if (tl_const_int_of(v, &i) || v->kind == TL_VAL_INT) {
        put(h, out, TILE_HX_CONST, i);
        return TL_HOST_INT;
    }
    if (v->kind == TL_VAL_FLOAT || v->kind == TL_VAL_CONST) {
        put(h, out, TILE_HX_CONST, word_of(tl_const_number(v)));
        return TL_HOST_FLOAT;
    }
    return refuse(h, e->loc, tl_val_str(h->s, v));
}

/* A parameter of that name, which must be a scalar; false: there is none. */
static bool compile_param(Host *h, const TlExpr *e, TlName name, Code *out, TlHostType *out_type)
{
    TlKernelInfo *info = h->info;
    for (uint32_t i = 0; i < info->params.len; i++) {
        const TlParam *p = &info->params.data[i];
        if (p->name != name)
            continue;
        if (p->kind == TILE_PARAM_SCALAR)
            put(h, out, TILE_HX_ARG, i);
        *out_type = p->kind == TILE_PARAM_VIEW      ? refuse(h, e->loc, "a view")
                    : p->kind == TILE_PARAM_POINTER ? refuse(h, e->loc, "a pointer")
                    : p->dtype == TL_BOOL           ? TL_HOST_BOOL
                    : tl_is_float(p->dtype)         ? TL_HOST_FLOAT
                                                    : TL_HOST_INT;
        return true;
    }
    return false;
}

static TlHostType compile_name(Host *h, const TlExpr *e, Code *out)
{
    TL_ASSERT(e->kind == TL_EX_NAME, "expression kind %d is no name", (int)e->kind);
    TlKernelInfo *info = h->info;
    tl_fact_name(h->s, e);
    for (uint32_t i = 0; i < info->syms.len; i++)
        if (info->syms.data[i].name == e->u.name) {
            put(h, out, TILE_HX_SYM, i);
            return TL_HOST_INT;
        }
    TlHostType type;
    if (compile_param(h, e, e->u.name, out, &type))
        return type;
    TlVal v = tl_eval(h->s, e);
    return put_const(h, e, &v, out);
}

/* Brings two codes to one type; BAD when they have none. */
static TlHostType unify(Host *h, TlLoc loc, const char *what, TlHostType a, TlHostType b, Code *ca,
                        Code *cb)
{
    if (a == TL_HOST_BAD || b == TL_HOST_BAD)
        return TL_HOST_BAD;
    if (a == b)
        return a;
    if (a == TL_HOST_BOOL || b == TL_HOST_BOOL)
        return refuse(h, loc, tl_format(h->s->arena, "%s of a bool and a number", what));
    put(h, a == TL_HOST_INT ? ca : cb, TILE_HX_I2F, 0);
    return TL_HOST_FLOAT;
}

typedef struct HostOp {
    tile_hx_op i, f; /* COUNT: not there */
    bool swap, compares, logical;
} HostOp;
#define NO TILE_HX_COUNT
static const HostOp host_ops[] = {
    [TL_BIN_MUL] = {TILE_HX_MUL, TILE_HX_FMUL, 0, 0, 0},
    [TL_BIN_DIV] = {TILE_HX_DIV, TILE_HX_FDIV, 0, 0, 0},
    [TL_BIN_REM] = {TILE_HX_REM, NO, 0, 0, 0},
    [TL_BIN_ADD] = {TILE_HX_ADD, TILE_HX_FADD, 0, 0, 0},
    [TL_BIN_SUB] = {TILE_HX_SUB, TILE_HX_FSUB, 0, 0, 0},
    [TL_BIN_SHL] = {TILE_HX_SHL, NO, 0, 0, 0},
    [TL_BIN_SHR] = {TILE_HX_SHR, NO, 0, 0, 0},
    [TL_BIN_LT] = {TILE_HX_LT, TILE_HX_FLT, 0, 1, 0},
    [TL_BIN_GT] = {TILE_HX_LT, TILE_HX_FLT, 1, 1, 0},
    [TL_BIN_LE] = {TILE_HX_LE, TILE_HX_FLE, 0, 1, 0},
    [TL_BIN_GE] = {TILE_HX_LE, TILE_HX_FLE, 1, 1, 0},
    [TL_BIN_EQ] = {TILE_HX_EQ, TILE_HX_FEQ, 0, 1, 0},
    [TL_BIN_NE] = {TILE_HX_NE, TILE_HX_FNE, 0, 1, 0},
    [TL_BIN_AND] = {TILE_HX_BAND, NO, 0, 0, 0},
    [TL_BIN_XOR] = {TILE_HX_BXOR, NO, 0, 0, 0},
    [TL_BIN_OR] = {TILE_HX_BOR, NO, 0, 0, 0},
    [TL_BIN_LAND] = {TILE_HX_AND, NO, 0, 1, 1},
    [TL_BIN_LOR] = {TILE_HX_OR, NO, 0, 1, 1},
};

/* Applies a binary operator to the code so far and a right operand. */
static TlHostType apply_binary(Host *h, const TlExpr *e, TlHostType a, Code *ca)
{
    Code cb = {0}, both = {0};
    TlHostType b = compile(h, e->b, &cb);
    const HostOp *op = &host_ops[e->u.op];
    const char *text = tl_binop_text(e->u.op);
    TlHostType t = unify(h, e->loc, text, a, b, ca, &cb);
    if (t == TL_HOST_BAD)
        return t;
    bool boolean_ok = op->logical || e->u.op == TL_BIN_EQ || e->u.op == TL_BIN_NE;
    if ((t == TL_HOST_BOOL) != op->logical && !(t == TL_HOST_BOOL && boolean_ok))
        return refuse(
            h, e->loc,
            tl_format(h->s->arena, "%s of %s", text, t == TL_HOST_BOOL ? "bools" : "numbers"));
    tile_hx_op code = t == TL_HOST_FLOAT ? op->f : op->i;
    if (code == NO)
        return refuse(h, e->loc, tl_format(h->s->arena, "%s of floats", text));
    append(h, &both, op->swap ? &cb : ca);
    append(h, &both, op->swap ? ca : &cb);
    put(h, &both, code, 0);
    *ca = both;
    return op->compares ? TL_HOST_BOOL : t;
}

/* Sums may have thousands of terms: a loop walks the left operands. */
static TlHostType compile_binary(Host *h, const TlExpr *e, Code *out)
{
    TL_ASSERT(e->kind == TL_EX_BINARY && e->a && e->b,
              "expression kind %d is no operation", (int)e->kind);
    TL_VEC(const TlExpr *) spine = {0};
    for (; e->kind == TL_EX_BINARY; e = e->a)
        tl_vec_push(h->s->arena, &spine, e);
    Code code = {0};
    TlHostType t = compile(h, e, &code);
    for (uint32_t i = spine.len; i-- > 0;)
        t = apply_binary(h, spine.data[i], t, &code);
    append(h, out, &code);
    return t;
}

static TlHostType compile_unary(Host *h, const TlExpr *e, Code *out)
{
    TL_ASSERT(e->kind == TL_EX_UNARY && e->a, "expression kind %d has no operand", (int)e->kind);
    TlHostType t = compile(h, e->a, out);
    if (t == TL_HOST_BAD || e->u.op == '+')
        return t;
    if (e->u.op == '!' && t == TL_HOST_BOOL) {
        put(h, out, TILE_HX_NOT, 0);
        return t;
    }
    if (e->u.op == '-' && t != TL_HOST_BOOL) {
        put(h, out, t == TL_HOST_INT ? TILE_HX_NEG : TILE_HX_FNEG, 0);
        return t;
    }
    if (e->u.op == '~' && t == TL_HOST_INT) {
        put(h, out, TILE_HX_CONST, -1);
        put(h, out, TILE_HX_BXOR, 0);
        return t;
    }
    return refuse(h, e->loc, tl_format(h->s->arena, "this use of %c", e->u.op));
}

static TlHostType compile_select(Host *h, const TlExpr *e, Code *out)
{
    TL_ASSERT(e->kind == TL_EX_COND && e->c, "expression kind %d is no choice", (int)e->kind);
    Code a = {0}, b = {0};
    TlHostType c = compile(h, e->a, out), ta = compile(h, e->b, &a), tb = compile(h, e->c, &b);
    TlHostType t = unify(h, e->loc, "?:", ta, tb, &a, &b);
    if (c == TL_HOST_BAD || t == TL_HOST_BAD)
        return TL_HOST_BAD;
    if (c != TL_HOST_BOOL)
        return refuse(h, e->a->loc, "a condition that is not a bool");
    append(h, out, &a);
    append(h, out, &b);
    put(h, out, TILE_HX_SELECT, 0);
    return t;
}

static TlHostType compile_cast(Host *h, const TlExpr *e, Code *out)
{
    TL_ASSERT(e->kind == TL_EX_CAST && e->a, "expression kind %d is no cast", (int)e->kind);
    TlTy ty = tl_type_resolve(h->s, e->type);
    TlHostType t = compile(h, e->a, out);
    if (t == TL_HOST_BAD || ty.kind == TL_TY_UNKNOWN)
        return TL_HOST_BAD;
    if (ty.kind != TL_TY_VALUE || ty.type->rank || ty.type->ptr || ty.type->dtype == TL_BOOL)
        return refuse(h, e->loc, "this cast");
    bool to_float = tl_is_float(ty.type->dtype);
    if (to_float && t != TL_HOST_FLOAT)
        put(h, out, TILE_HX_I2F, 0);
    if (!to_float && t == TL_HOST_FLOAT)
        put(h, out, TILE_HX_F2I, 0);
    return to_float ? TL_HOST_FLOAT : TL_HOST_INT;
}

/* The functions of launch-time expressions. */
typedef enum HostFn {
    FN_CDIV,
    FN_MIN,
    FN_MAX,
    FN_ABS,
    FN_FLOOR_DIV,
    FN_FLOOR_MOD,
    FN_COUNT,
} HostFn;
static const struct {
    const char *name;
    uint32_t args;
    bool of_floats;
} host_fns[FN_COUNT] = {
    [FN_CDIV] = {"cdiv", 2, false},
    [FN_MIN] = {"min", 2, true},
    [FN_MAX] = {"max", 2, true},
    [FN_ABS] = {"abs", 1, true},
    [FN_FLOOR_DIV] = {"floor_div", 2, false},
    [FN_FLOOR_MOD] = {"floor_mod", 2, false},
};

static HostFn host_fn_named(const char *name)
{
    HostFn f = 0;
    while (f < FN_COUNT && strcmp(host_fns[f].name, name))
        f++;
    return f;
}

/* floor(a / b), which is -ceil(a / -b); then, for floor_mod, a less b times that. */
static void put_floor(Host *h, HostFn f, const Code *a, const Code *b, Code *out)
{
    if (f == FN_FLOOR_MOD) {
        append(h, out, a);
        append(h, out, b);
    }
    append(h, out, a);
    append(h, out, b);
    put(h, out, TILE_HX_NEG, 0);
    put(h, out, TILE_HX_CDIV, 0);
    put(h, out, TILE_HX_NEG, 0);
    if (f == FN_FLOOR_MOD) {
        put(h, out, TILE_HX_MUL, 0);
        put(h, out, TILE_HX_SUB, 0);
    }
}

static void put_abs(Host *h, bool real, const Code *a, Code *out)
{
    append(h, out, a);
    if (!real) {
        put(h, out, TILE_HX_ABS, 0);
        return;
    }
    append(h, out, a);
    put(h, out, TILE_HX_FNEG, 0);
    put(h, out, TILE_HX_FMAX, 0);
}

static void put_call(Host *h, HostFn f, bool real, const Code *a, const Code *b, Code *out)
{
    if (f == FN_ABS) {
        put_abs(h, real, a, out);
    } else if (f == FN_FLOOR_DIV || f == FN_FLOOR_MOD) {
        put_floor(h, f, a, b, out);
    } else {
        append(h, out, a);
        append(h, out, b);
        put(h, out,
            f == FN_CDIV  ? TILE_HX_CDIV
            : f == FN_MIN ? (real ? TILE_HX_FMIN : TILE_HX_MIN)
            : real        ? TILE_HX_FMAX
                          : TILE_HX_MAX,
            0);
    }
}

static TlHostType compile_call(Host *h, const TlExpr *e, Code *out)
{
    TL_ASSERT(e->kind == TL_EX_CALL, "expression kind %d is no call", (int)e->kind);
    TlVal v = tl_eval(h->s, e->a);
    const char *name = v.kind == TL_VAL_BUILTIN ? v.u.builtin->name : "";
    HostFn f = host_fn_named(name);
    if (v.kind == TL_VAL_ERROR)
        return TL_HOST_BAD;
    if (f == FN_COUNT)
        return refuse(h, e->loc,
                      v.kind == TL_VAL_BUILTIN ? tl_format(h->s->arena, "a call of '%s'", name)
                                               : tl_val_str(h->s, &v));
    uint32_t n = host_fns[f].args;
    if (e->args.len != n) {
        if (e->args.len > n)
            tl_err(h->s, e->loc, TL_E0312, name, n, e->args.len);
        else
            tl_err(h->s, e->loc, TL_E0313, name, f == FN_ABS ? "x" : e->args.len ? "y" : "x");
        return TL_HOST_BAD;
    }
    Code a = {0}, b = {0};
    TlHostType t = compile(h, e->args.data[0].value, &a);
    if (n == 2)
        t = unify(h, e->loc, name, t, compile(h, e->args.data[1].value, &b), &a, &b);
    if (t == TL_HOST_BAD)
        return t;
    if (t == TL_HOST_BOOL || (t == TL_HOST_FLOAT && !host_fns[f].of_floats))
        return refuse(h, e->loc, tl_format(h->s->arena, "'%s' of these", name));
    /* Some functions repeat their arguments: nests of them would double at each level. */
    if (a.len + b.len > LONGEST_ARGUMENTS)
        return refuse(h, e->loc, "a call with arguments as long as these");
    put_call(h, f, t == TL_HOST_FLOAT, &a, &b, out);
    return t;
}

static TlHostType compile(Host *h, const TlExpr *e, Code *out)
{
    if (!tl_step(h->s, e->loc))
        return TL_HOST_BAD;
    switch (e->kind) {
    case TL_EX_INT:
    case TL_EX_FLOAT:
    case TL_EX_BOOL:
    case TL_EX_INF:
    case TL_EX_NAN: {
        TlVal v = tl_eval(h->s, e);
        return put_const(h, e, &v, out);
    }
    case TL_EX_NAME: return compile_name(h, e, out);
    case TL_EX_UNARY: return compile_unary(h, e, out);
    case TL_EX_BINARY: return compile_binary(h, e, out);
    case TL_EX_COND: return compile_select(h, e, out);
    case TL_EX_CAST: return compile_cast(h, e, out);
    case TL_EX_CALL: return compile_call(h, e, out);
    case TL_EX_MEMBER: {
        TlVal base = tl_eval(h->s, e->a);
        if (base.kind == TL_VAL_SPACE && !strcmp(base.u.string, "device")) {
            if (strcmp(e->u.name, "sms")) {
                tl_err(h->s, e->loc, TL_E0203, "device", e->u.name);
                return TL_HOST_BAD;
            }
            put(h, out, TILE_HX_SMS, 0);
            return TL_HOST_INT;
        }
        TlName name = tl_dotted_name(h->s, e);
        TlHostType type;
        if (name && compile_param(h, e, name, out, &type))
            return type;
        TlVal v = tl_eval(h->s, e);
        return put_const(h, e, &v, out);
    }
    case TL_EX_INDEX:
    case TL_EX_UNCHECKED: return refuse(h, e->loc, "an element of a view");
    case TL_EX_TUPLE: return refuse(h, e->loc, "a tuple");
    case TL_EX_STRUCT: return refuse(h, e->loc, "a struct");
    case TL_EX_STRING: return refuse(h, e->loc, "a text");
    case TL_EX_FN: return refuse(h, e->loc, "a function");
    case TL_EX_MAKE:
    case TL_EX_TYPE: break;
    }
    return refuse(h, e->loc, "a type");
}

/* The greatest height of the stack. */
static int stack_height(const Code *c)
{
    TL_ASSERT(c->len > 0, "an expression without code");
    int now = 0, most = 0;
    for (uint32_t i = 0; i < c->len; i++) {
        now += 1 - (int)tile_hx_operands(c->data[i].op);
        if (now > most)
            most = now;
    }
    return most;
}

int32_t tl_host_expr(TlSema *s, TlKernelInfo *info, const TlExpr *e, TlHostType want)
{
    TL_ASSERT(info && e && want != TL_HOST_BAD, "a launch-time expression of no type");
    Host h = {s, info};
    Code code = {0};
    s->b.loc = e->loc;
    TlHostType t = compile(&h, e, &code);
    if (t == TL_HOST_BAD)
        return -1;
    if (t != want) {
        tl_err(s, e->loc, TL_E0603,
               t == TL_HOST_BOOL    ? "a bool where a number belongs"
               : t == TL_HOST_FLOAT ? "a float here"
                                    : "a number where a bool belongs");
        return -1;
    }
    if (stack_height(&code) > TILE_HX_MAX_STACK) {
        tl_err(s, e->loc, TL_E0603, "an expression as deep as this");
        return -1;
    }
    TlHostExpr x = {.text = tl_source_text(s->ctx, e->begin, e->end),
                    .loc = e->loc,
                    .is_float = t == TL_HOST_FLOAT};
    for (uint32_t i = 0; i < code.len; i++)
        tl_vec_push(s->arena, &x.code, code.data[i]);
    tl_vec_push(s->arena, &info->exprs, x);
    return (int32_t)info->exprs.len - 1;
}
