/* The walker that turns a checked tree into tile IR. Internal to the front end.
 *
 * bind.c says once for each function which local each name is. Then one walk does everything else:
 * it infers types, evaluates constants, checks, emits IR, on one concrete instantiation at a time
 * (a kernel with its constants; functions are inlined and made concrete at each call). The same
 * walk in *abstract* mode checks bodies that nobody has instantiated yet: names whose type or value
 * only an instantiation gives are UNKNOWN values, which swallow every check that depends on them.
 * IR that an abstract walk emits is thrown away.
 *
 * Each file calls those below it (test/tools/calls.test counts the calls that go up):
 *
 *   frontend.c      frontend.h
 *   editor_names.c  name_facts.h, the editors' side
 *   kernel.c        kernels: parameters, clauses, the body
 *   powers.c        shorter forms of exp, once the body is there
 *   warn_kernel.c   warnings about an instance of a kernel, from its IR; lint.h and lint_*.c:
 *                   those about what is legal and probably wrong
 *   tuning.c        the configurations that a kernel's tune clauses list
 *   launch_expr.c   launch-time expressions
 *   fields.c        options of kernels: a constant for each field of a struct
 *   expr.c          expressions: one function evaluates the parts of a node, then the node
 *   expr_choice.c   ?:, && and ||, which evaluate a side only when a condition says so
 *   expr_name.c     names, members
 *   builtin.c       calls of built-in functions (builtins.def)
 *   builtin_order.c, builtin_move.c, builtin_reduce.c, builtin_elem.c, builtin_shape.c,
 *   builtin_memory.c, builtin_asm.c
 *   builtin_args.c  what these share
 *   call.c          calls of user functions: parameters, the body
 *   stmt.c          statements; loop.c: loops
 *   border.c        loads with borders
 *   access.c        places: view[...], pointers
 *   array.c         local arrays
 *   types.c         types as written
 *   flow.c          arms, joins, exits, what loops carry
 *   expr_operator.c unary and binary operators on values, operands of one type and shape
 *   expr_cast.c     casts of values
 *   emit.c          operations that several files emit; divisor.c, nonpositive.c, even.c: what is
 *                   known
 *   variables.c     variables of a frame
 *   name_facts.c    what editors want to know of names (name_facts.h)
 *   values.c        values and their types, conversions
 *   consteval.c     literals and typed constants
 *   warn.c          warnings where the walk meets their reason
 *   sema.c          errors with call chains
 *   bind.c          names to locals, what loops assign, how statements are left; unused names
 *   modules.c       sources, imports, items
 *
 * Variables are SSA by environment: each local of a frame has a TlVar, which holds its current
 * value; assignments leave a trail, and the two arms of an `if` or a loop are joined by comparing
 * what they left (flow.c). */
#ifndef TL_SEMA_H
#define TL_SEMA_H
#include "frontend/ast.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "ir/numeric.h"
#include "ir/rewrite.h"
#include "ir/support/trace.h"

__extension__ typedef __int128 TlInt; /* literals: within [-2^63, 2^64 - 1] */

typedef struct TlSema TlSema;
typedef struct TlVal TlVal;
typedef struct TlTy TlTy;
typedef struct TlDef TlDef;
typedef struct TlMod TlMod;
typedef struct TlBuiltin TlBuiltin;
typedef struct TlFrame TlFrame;

/* ---- types of values ---- */
typedef enum TlTyKind {
    TL_TY_UNKNOWN, /* abstract mode; dtype may be known */
    TL_TY_VALUE,   /* tile, scalar, pointer: type */
    TL_TY_VIEW,    /* type */
    TL_TY_STRUCT,
    TL_TY_TUPLE, /* items; def */
    TL_TY_ARRAY, /* n elements of type items[0] */
    TL_TY_FN,    /* in fields that are auto: each function has a type of its own, fn */
    TL_TY_VOID,
    TL_TY_AUTO
} TlTyKind;
struct TlTy {
    TlTyKind kind;
    TlDtype dtype; /* UNKNOWN: of the elements, TL_DTYPE_COUNT when unknown too */
    const TlType *type;
    TlDef *def;
    uint32_t n;
    const TlTy *items; /* of a struct's type as written auto may be among them; of a value's not */
    const TlVal *fn;
};

/* ---- values ---- */
typedef enum TlValKind {
    TL_VAL_ERROR,   /* diagnosed: says nothing more */
    TL_VAL_UNKNOWN, /* abstract mode; dtype may be known */
    TL_VAL_UNSET,   /* a result that no return has given yet */
    TL_VAL_VOID,
    TL_VAL_INT,
    TL_VAL_FLOAT,  /* literals: no type yet */
    TL_VAL_CHOICE, /* c ? 1 : 0: items are bool (IR), literal, literal; no type yet */
    TL_VAL_CONST,  /* scalar known to the compiler: dtype, bits */
    TL_VAL_IR,     /* scalar, tile, pointer */
    TL_VAL_VIEW,   /* ir of view type */
    TL_VAL_TUPLE,
    TL_VAL_STRUCT, /* items; STRUCT: def */
    TL_VAL_ARRAY,  /* u.type; its elements, or their leaves (array.c), are items */
    TL_VAL_FN,
    TL_VAL_BUILTIN,
    TL_VAL_TYPE,
    TL_VAL_STRING,
    TL_VAL_MODULE,
    TL_VAL_SPACE /* `fast`, `target`, `device`: string */
} TlValKind;
struct TlVal {
    TlValKind kind;
    TlDtype dtype;
    bool fast; /* BUILTIN: fast.name */
    uint32_t n;
    TlVal *items;
    TlDef *def; /* FN, STRUCT */
    union {
        TlInt integer;
        double number;
        uint64_t bits;
        TlValue *ir;
        const char *string;
        const TlTy *type;
        const TlBuiltin *builtin;
        TlMod *module;
        const TlFrame *up; /* FN: of the function that it is nested in; NULL */
        const TlLoc *locs; /* CHOICE: where both literals stand; NULL: computed ones */
    } u;
};

/* What a local is in one walk of its function. */
typedef struct TlVar {
    TlName name;
    TlLoc loc;
    TlTy ty;
    TlVal val;
    bool is_const, is_wrong; /* is_wrong: its declaration was blamed: it may be anything */
    const TlExpr *made_of;   /* auto gave it the type of this literal; or NULL */
    const char *given_by;    /* a constant of the kernel: what gave it its value; or NULL */
    uint32_t serial;
} TlVar;

/* ---- modules and items ---- */
typedef enum TlState { TL_FRESH, TL_BUSY, TL_DONE } TlState;
struct TlDef {
    TlItem *item;
    TlMod *mod;
    TlState state;
    TlVal value;    /* CONST */
    TlTy *fields;   /* STRUCT: types in order of item->fields */
    uint32_t parts; /* STRUCT: of a value (tl_parts_of) */
    TlMod *import;  /* IMPORT: NULL when it could not be read */
    bool read;      /* a name of its module is it */
};
struct TlMod {
    const TlUnit *unit;
    const char *path; /* file path, or std.name */
    TlMap names;      /* TlName -> TlDef, imports included */
    TL_VEC(TlDef *) defs;
    TlState state;
};
/* An undeclared name, with what is after its dot, of a function or kernel; NULL at top level. */
typedef struct TlUnknownName {
    const TlDef *def;
    const char *name;
} TlUnknownName;
struct TlProgram {
    TlCtx *ctx;
    TlFrontendOptions options;
    TL_VEC(TlMod *) modules;
    TlMap by_path; /* interned path -> module */
    TlMod *root;
    TlMap seen; /* positions with an error already: one error each, whichever walk finds it */
    TL_VEC(TlUnknownName) unknown_names; /* with an error already */
    TL_VEC(TlDef *) kernels;
};

/* ---- the walk ---- */
typedef struct TlLoop {
    struct TlLoop *outer;
    TlVar *broken, *continued; /* bool pseudo-variables: this pass through the body has ended so */
} TlLoop;
struct TlFrame {
    struct TlFrame *outer;
    TlDef *def; /* NULL at top level */
    TlMod *mod;
    TlLoc call;
    const TlItem *item;       /* whose locals `vars` has; NULL at top level */
    TlVar **vars;             /* by the locals' index; NULL at top level */
    const struct TlFrame *up; /* of the function around this one; NULL: there is none */
    TlVar *returned, *result; /* pseudo-variables */
    TlTy ty;                  /* of the result; AUTO until the first return */
    bool is_auto;             /* does the function state no type? */
    uint32_t undecided;       /* arms of static ifs that an instance may not have, one in another */
    TlLoop *loop;
    uint32_t depth;
};
typedef struct TlTrail {
    TlVar *var;
    TlVal old;
} TlTrail;

struct TlSema {
    TlCtx *ctx;
    TlArena *arena;
    TlProgram *prog;
    const TlFrontendOptions *options;
    TlBuilder b;
    bool abstract;
    bool quiet_errors; /* an error was found, shown or not */
    uint32_t nested_structs; /* whose fields are being resolved */
    uint32_t stand_ins; /* functions that are walked with arguments that no call has given */
    uint32_t serial;
    TlFrame *frame;
    TL_VEC(TlTrail) trail;
    uint32_t
        /* > 0: inside the side of ?: that is not evaluated: arithmetic faults are no errors */
        untaken;
    TlMap powers; /* what exp gave -> what of (divisor.c) */
    TL_VEC(TlValue *) evens; /* integers that are even in the code that is being walked (even.c) */
    TlMap walked; /* abstract: functions -> calls whose result is unknown (call.c) */
    uint64_t steps;
    uint64_t made; /* operations of the kernel's variants before this one */
    bool exhausted;
    const TlDef *dropping; /* the function that `x * x;` was found in last: it may be its result */
    /* What hints name: the operands of the operator at a position, and the expression that was
     * evaluated last. */
    TlLoc operator_at;
    const TlExpr *operands[2], *evaluated;
    const TlExpr *assigned; /* what an assignment to no known variable begins with; or NULL */
};

enum { TL_MAX_STEPS = 10000000, TL_MAX_OPS = 1 << 17, TL_MAX_CALLS = 256, TL_MAX_PARTS = 256 };

/* ---- sema.c ---- */
void tl_sema_init(TlSema *s, TlProgram *prog);
/* Reports an error (once per position) with the chain of calls as notes. Returns the row or
 * NULL. */
#define tl_err(s, loc, ...)                                                                        \
    (tl_sema_silent((s), (loc)) ? NULL                                                             \
                                : tl_sema_row((s), tl_diag(&(s)->ctx->diags, (loc), __VA_ARGS__)))
bool tl_sema_silent(TlSema *s, TlLoc loc);
TlDiag *tl_sema_row(TlSema *s, TlDiag *row);
/* Is `n`, the value of `e` (or NULL) at loc, an extent beside extents of that product? If not, that
 * is an error, which also says what gave a constant its value, once for each constant. */
bool tl_extent_check(TlSema *s, TlLoc loc, const TlExpr *e, int64_t n, int64_t product);
void tl_label(TlSema *s, TlDiag *row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Which parameters there are. */
void tl_label_parameters(TlSema *s, TlDiag *row, uint32_t n, const char *const *names);
void tl_label_fields(TlSema *s, TlDiag *row, uint32_t n, const char *const *names);
/* Where v is a view: how to take a tile of it. */
void tl_label_view(TlSema *s, TlDiag *row, const TlVal *v);
/* An expression as written, if that is short and in one line; else, and for NULL, `other`. */
const char *tl_short_text(TlSema *s, const TlExpr *e, const char *other);
/* The text of an expression behind a cast, with parentheses where it needs them: "(f32)(a + b)"; e:
 * NULL is "(f32)x". */
const char *tl_cast_text(TlSema *s, const TlExpr *e, TlDtype d);
void tl_note(TlSema *s, TlDiag *row, TlLoc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Counts one step of the walk; false when the limit is reached (diagnosed once). */
bool tl_step(TlSema *s, TlLoc loc);
bool tl_steps(TlSema *s, TlLoc loc, unsigned n);
const char *tl_intern_name(TlSema *s, const char *text);
static inline TlVal tl_val(TlValKind kind)
{
    return (TlVal){.kind = kind, .dtype = TL_DTYPE_COUNT};
}
static inline TlVal tl_bad(void)
{
    return tl_val(TL_VAL_ERROR);
}
static inline TlVal tl_unknown(TlDtype d)
{
    return (TlVal){.kind = TL_VAL_UNKNOWN, .dtype = d};
}
static inline TlVal tl_val_ir(TlValue *v)
{
    return (TlVal){.kind = TL_VAL_IR, .u.ir = v};
}
static inline TlVal tl_val_view(TlValue *v)
{
    return (TlVal){.kind = TL_VAL_VIEW, .dtype = TL_DTYPE_COUNT, .u.ir = v};
}
static inline TlVal tl_val_fn(TlDef *def, const TlFrame *up)
{
    return (TlVal){.kind = TL_VAL_FN, .dtype = TL_DTYPE_COUNT, .def = def, .u.up = up};
}
static inline TlVal tl_val_builtin(const TlBuiltin *b, bool fast)
{
    return (TlVal){
        .kind = TL_VAL_BUILTIN, .dtype = TL_DTYPE_COUNT, .fast = fast, .u.builtin = b};
}
static inline TlVal tl_val_text(TlValKind kind, const char *text)
{
    return (TlVal){.kind = kind, .dtype = TL_DTYPE_COUNT, .u.string = text};
}
static inline TlVal tl_val_int(TlInt i)
{
    return (TlVal){.kind = TL_VAL_INT, .u.integer = i};
}
static inline TlVal tl_val_float(double x)
{
    return (TlVal){.kind = TL_VAL_FLOAT, .u.number = x};
}
static inline TlVal tl_val_const(TlDtype d, uint64_t bits)
{
    return (TlVal){.kind = TL_VAL_CONST, .dtype = d, .u.bits = bits};
}
static inline TlVal tl_val_bool(bool b)
{
    return tl_val_const(TL_BOOL, b);
}
static inline TlVal tl_val_type(const TlTy *t)
{
    return (TlVal){.kind = TL_VAL_TYPE, .u.type = t};
}
static inline bool tl_is_bad(const TlVal *v)
{
    return v->kind == TL_VAL_ERROR || v->kind == TL_VAL_UNKNOWN;
}
static inline bool tl_is_fn(const TlVal *v)
{
    return v->kind == TL_VAL_FN || v->kind == TL_VAL_BUILTIN;
}
static inline bool tl_same_fn(const TlVal *a, const TlVal *b)
{
    if (a->kind != b->kind)
        return false;
    return a->kind == TL_VAL_FN ? a->def == b->def && a->u.up == b->u.up
                                : a->u.builtin == b->u.builtin && a->fast == b->fast;
}
static inline bool tl_is_literal(const TlVal *v)
{
    return v->kind == TL_VAL_INT || v->kind == TL_VAL_FLOAT;
}
/* has no type of its own: literals and choices of literals */
static inline bool tl_is_untyped(const TlVal *v)
{
    return tl_is_literal(v) || v->kind == TL_VAL_CHOICE;
}
/* may stand in arithmetic */
static inline bool tl_is_number(const TlVal *v)
{
    return tl_is_untyped(v) || v->kind == TL_VAL_CONST || v->kind == TL_VAL_IR;
}
static inline bool tl_is_tile(const TlVal *v)
{
    return v->kind == TL_VAL_IR && !v->u.ir->type->ptr && v->u.ir->type->rank > 0;
}
static inline bool tl_is_pointer(const TlVal *v)
{
    return v->kind == TL_VAL_IR && v->u.ir->type->ptr;
}
/* is made of other values, its items */
static inline bool tl_has_items(const TlVal *v)
{
    return v->kind == TL_VAL_TUPLE || v->kind == TL_VAL_STRUCT || v->kind == TL_VAL_ARRAY;
}
/* ERROR when one of them is, else UNKNOWN of dtype d */
TlVal tl_worse(const TlVal *a, const TlVal *b, TlDtype d);
static inline TlTy tl_ty_value(const TlType *t)
{
    return (TlTy){.kind = TL_TY_VALUE, .type = t};
}
static inline TlTy tl_ty_unknown(TlDtype d)
{
    return (TlTy){.kind = TL_TY_UNKNOWN, .dtype = d};
}
static inline TlTy tl_ty_kind(TlTyKind k)
{
    return (TlTy){.kind = k, .dtype = TL_DTYPE_COUNT};
}

/* ---- modules.c ---- */
TlMod *tl_module_open(TlProgram *p, uint32_t source,
                      const char *path); /* parses, binds names, follows imports */
TlDef *tl_mod_find(const TlMod *m, TlName name);
TlMod *tl_mod_std(TlProgram *p, const char *name); /* "std.math"; NULL when there is none */

/* ---- fields.c ---- */
/* `const S o` and `S s` of every kernel become a parameter for each field. Once the modules are
 * open. */
void tl_options_expand(TlProgram *p);
/* Binds a parameter of a kernel, and with a field of a struct the struct. */
void tl_head_param_bind(TlSema *s, const TlItem *item, const TlParamDecl *p, TlVal v);
/* "s.inner.n" of a name and members; NULL of what is none. */
TlName tl_dotted_name(TlSema *s, const TlExpr *e);

/* ---- bind.c ---- */
static inline bool tl_is_const_form(const TlParamDecl *p)
{
    return p->form == TL_PF_CONST || p->form == TL_PF_CONST_FN || p->form == TL_PF_CONST_TYPE;
}
const TlParamDecl *tl_const_param(const TlItem *item, TlName name); /* NULL: there is none */
void tl_item_bind(TlProgram *p, TlDef *def); /* what is not bound yet */
void tl_warn_unused(TlProgram *p);
/* Does a tune clause of the kernel list values for the name; with NULL, for any? */
bool tl_tunes(const TlItem *item, TlName name);
/* What tune clauses choose besides constants: numbers from 1. */
enum { TL_KNOBS = 4 };
typedef struct TlKnob {
    const char *name;
    int32_t most;
} TlKnob;
extern const TlKnob tl_knobs[TL_KNOBS];

/* ---- consteval.c ---- */
bool tl_int_fits(TlDtype d, TlInt v);
const char *tl_binop_text(int op);
/* The literal as an element of type d; false (and an error at loc) when it cannot be. */
bool tl_literal_bits(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc, uint64_t *out);
TlDtype tl_literal_dtype(const TlVal *v); /* of a literal that stands alone */
TlVal tl_fold_literals(TlSema *s, int op, const TlVal *a, const TlVal *b, TlLoc loc);
TlVal tl_fold_consts(TlSema *s, int op, const TlVal *a, const TlVal *b,
                     TlLoc loc); /* same dtype, but shifts */
TlVal tl_fold_unary(TlSema *s, int op, const TlVal *a, TlLoc loc);
TlVal tl_fold_cast(const TlVal *a, TlDtype to); /* explicit cast of a literal or constant */
double tl_const_number(const TlVal *v);
/* An integer with a type that the compiler knows, or in abstract walks may know: beside a float it
 * becomes one. */
bool tl_is_known_int(const TlVal *v);
/* It as an element of the float type d, or as a float literal; ERROR where that is not exact. */
TlVal tl_known_as_float(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc);
TlVal tl_known_as_literal(TlSema *s, const TlVal *v, TlLoc loc);
/* Known integers among the values become floats where there is one beside them. After an error
 * false, and the value is ERROR. In expr_operator.c. */
bool tl_known_to_floats(TlSema *s, uint32_t n, TlVal *vals, const TlLoc *locs);
bool tl_const_int_of(const TlVal *v, int64_t *out); /* an integer literal or constant that fits */
const char *tl_const_text(TlSema *s, const TlVal *v);

/* ---- types.c ---- */
TlTy tl_type_resolve(TlSema *s, const TlTypeExpr *t); /* errors diagnosed: UNKNOWN */
TlTy tl_struct_ty(TlSema *s, TlDef *def);

/* ---- variables.c ---- */
TlVar *tl_var_new(TlSema *s, TlName name, TlLoc loc, TlTy ty, TlVal val, bool is_const);
/* The same as a local of the function that is walked. */
TlVar *tl_var_bind(TlSema *s, const TlLocal *l, TlLoc loc, TlTy ty, TlVal val, bool is_const);
/* As a constant, of the value's type. */
void tl_var_bind_const(TlSema *s, const TlLocal *l, TlLoc loc, TlVal val);
/* As tl_var_bind, and an error when this block has the name already. */
TlVar *tl_var_declare(TlSema *s, const TlLocal *l, TlTy ty, TlVal val, bool is_const);
/* The variable that a name in an expression is; NULL: it is none, or has no value yet. */
static inline TlVar *tl_var_find(const TlSema *s, const TlLocal *l, TlName name)
{
    const TlFrame *f = s->frame;
    if (!l || l->name != name)
        return NULL;
    while (f && f->item != l->item)
        f = f->up;
    return f && f->vars ? f->vars[l->index] : NULL;
}
static inline TlVar *tl_var_of(const TlSema *s, const TlExpr *e)
{
    return e->kind == TL_EX_NAME ? tl_var_find(s, e->local, e->u.name) : NULL;
}
void tl_var_set(TlSema *s, TlVar *v, TlVal val);
/* Room for the variables of a function or kernel, which is bound to its locals if it is not yet. */
TlVar **tl_vars_new(TlSema *s, TlDef *def);
/* The same for its head alone: there may be a thousand configurations to try. */
TlVar **tl_head_vars_new(TlSema *s, TlDef *def);
/* Structs before any of their fields is bound, whose defaults may ask for another. */
void tl_options_unset(TlSema *s, const TlItem *item, TlVar **vars);

/* ---- values.c ---- */
/* A short name of a value for messages: "f32", "tile<f32, 4>", "the literal 3", "struct pair",
 * "a function". */
const char *tl_val_str(TlSema *s, const TlVal *v);
const char *tl_ty_str(TlSema *s, const TlTy *t);
/* A constant's value as text: "64", "f16", "relu". */
const char *tl_const_param_text(TlSema *s, const TlVal *v);
/* A tuple, struct or choice of n items, to be filled in; one with items of its own. */
TlVal tl_val_items(TlSema *s, TlValKind kind, TlDef *def, uint32_t n);
TlVal tl_val_copy(TlSema *s, const TlVal *v);
/* Known to the compiler, in all its fields; so is what stands for an error. */
bool tl_is_constant(const TlVal *v);
/* It is no function, type, module or void; turns v into ERROR when it is. */
bool tl_check_value(TlSema *s, TlVal *v, TlLoc loc);
/* A compile-time integer. False when it is none (diagnosed) or unknown (*unknown set). */
bool tl_int_of(TlSema *s, const TlVal *v, TlLoc loc, const char *what, int64_t *out, bool *unknown);
void tl_no_condition(TlSema *s, const TlVal *v, TlLoc loc); /* the error: v is no scalar bool */
/* How many values a value consists of: 1, and those of its items. False when a tuple of n items
 * would have too many (diagnosed at loc). */
uint32_t tl_parts_of(const TlVal *v);
bool tl_parts_fit(TlSema *s, uint32_t parts, const char *what, TlLoc loc);
TlTy tl_ty_of(TlSema *s, const TlVal *v); /* literals: their default type */
/* Are they known to be the same? In doubt, no. */
bool tl_same_val(const TlVal *a, const TlVal *b);
/* ty, with what v has for auto in it. */
TlTy tl_ty_settled(TlSema *s, const TlTy *ty, const TlVal *v);
bool tl_ty_same(const TlTy *a, const TlTy *b);
const TlType *tl_val_type_of(TlSema *s, const TlVal *v); /* numbers, pointers; NULL otherwise */
TlDtype tl_val_dtype(const TlVal *v);     /* of numbers and unknowns; COUNT when there is none */
bool tl_widens(TlDtype from, TlDtype to); /* implicit and lossless, or equal */
/* f8 and the packed types have no arithmetic: they are loaded, cast, stored */
bool tl_is_storage_only(TlDtype d);
bool tl_common_dtype(TlDtype a, TlDtype b, TlDtype *out);
bool tl_broadcast_shape(const TlType *a, const TlType *b, int *rank, int32_t *shape);
bool tl_broadcasts_to(const TlType *from, int rank, const int32_t *shape);
/* The value in IR; literals take their default types; anything that is no number is an error.
 * NULL after an error or for unknowns. */
TlValue *tl_materialize(TlSema *s, const TlVal *v, TlLoc loc);
/* Implicit conversion to elements of type d, keeping the shape. what: "store to a view of", for
 * the message. */
TlVal tl_convert_dtype(TlSema *s, const TlVal *v, TlDtype d, TlLoc loc);
/* ... and broadcast to t's shape. Abstract values give a stand-in. Errors give ERROR. */
TlVal tl_convert(TlSema *s, const TlVal *v, const TlTy *t, TlLoc loc);
TlValue *tl_convert_ir(TlSema *s, const TlVal *v, const TlType *t, TlLoc loc);
TlVal tl_zero(TlSema *s, const TlTy *t);
/* Has it stacks of leaves as its items, or its elements? */
bool tl_array_is_stacked(const TlTy *array);
TlValue *tl_broadcast_ir(TlSema *s, TlValue *v, int rank, const int32_t *shape);

/* ---- expr.c ---- */
TlVal tl_eval(TlSema *s, const TlExpr *e);
TlVal tl_eval_value(TlSema *s, const TlExpr *e); /* checked by tl_check_value */
bool tl_eval_int(TlSema *s, const TlExpr *e, const char *what, int64_t *out, bool *unknown);
/* An initialiser, {a, b = c} among them, as a value of type ty. */
TlVal tl_eval_init(TlSema *s, const TlExpr *e, const TlTy *ty);
/* The value of what has no initialiser, at loc: of structs the defaults, else zero. */
void tl_check_defaults(TlSema *s, const TlTy *ty); /* of a struct's fields */
TlVal tl_default_of(TlSema *s, const TlTy *ty, TlLoc loc);
/* scalar bool; CONST in *out when known, NULL then or after errors */
TlValue *tl_eval_cond(TlSema *s, const TlExpr *e, TlVal *out);

/* ---- expr_name.c ---- */
/* member: the name after its dot, for messages, or NULL. */
TlVal tl_eval_name(TlSema *s, const TlExpr *e, TlName member);
TlVal tl_member_of(TlSema *s, const TlVal *v, TlName name, TlLoc loc);

/* ---- expr_choice.c ---- */
TlVal tl_eval_choice(TlSema *s, const TlExpr *e);
/* && and || of scalars evaluate the right side only when it is needed; of tiles both, element by
 * element. */
TlVal tl_eval_logical(TlSema *s, int op, TlVal a, const TlExpr *right, TlLoc loc);

/* ---- expr_cast.c ---- */
TlVal tl_cast_val(TlSema *s, const TlVal *v, const TlTy *to, TlLoc loc);

/* ---- expr_operator.c ---- */
TlVal tl_binary_vals(TlSema *s, int op, TlVal a, TlVal b, TlLoc loc);
TlVal tl_unary_val(TlSema *s, int op, TlVal a, TlLoc loc);
/* The common type of d and an unknown type, if it is certain: the unknown one may be wider. */
TlDtype tl_beside_unknown(TlDtype d);
/* Numbers to one type and one shape; false after an error or when one is unknown (*out bad). */
bool tl_unify(TlSema *s, uint32_t n, TlVal *vals, const TlLoc *locs, TlLoc loc, const char *what,
              TlValue **out, TlVal *bad);

/* ---- access.c ---- */
typedef struct TlAccess {
    TlVal bad;     /* kind ERROR or UNKNOWN: the place is not there; else VOID */
    TlVal element; /* of an array, which is no place in memory (bad); else VOID */
    TlValue *base; /* view, pointer, or tile of pointers */
    bool view, is_const, unchecked, gathers;
    bool points;    /* of at(...) */
    bool leading_1; /* in IR, the shape begins with a 1 more */
    TlDtype dtype;
    uint32_t naxes;
    TlAxis axes[TL_MAX_VIEW_RANK];
    TlValue *index[TL_MAX_VIEW_RANK];
    int rank;
    int32_t shape[TL_MAX_RANK];
    TlLoc loc, start_loc, width_loc; /* of the place, of the last index or start, and its width */
} TlAccess;
typedef struct TlMemArgs {
    const TlVal *mask, *other;
    TlLoc mask_loc, other_loc;
    int64_t cache, evict, order, scope; /* -1: not given */
} TlMemArgs;
void tl_access(TlSema *s, const TlExpr *e, TlAccess *out); /* the place that e denotes */
bool tl_is_at(const TlSema *s, const TlExpr *e);           /* at(...), which denotes a place */
bool tl_access_ok(const TlAccess *a);
TlVal tl_access_load(TlSema *s, const TlAccess *a, const TlMemArgs *m);
void tl_access_store(TlSema *s, const TlAccess *a, const TlVal *v, TlLoc vloc, const TlMemArgs *m);
/* May `view[...] op= v` stand there? An error at loc if not. */
bool tl_access_updates(TlSema *s, const TlAccess *a, TlLoc loc);
TlVal tl_access_inside(TlSema *s, const TlAccess *a);
/* ATOMIC_*: vals are the value operands. */
TlVal tl_access_atomic(TlSema *s, TlOpcode op, int rmw, const TlAccess *a, uint32_t nvals,
                       const TlVal *vals, const TlLoc *locs, const TlMemArgs *m);
TlVal tl_make_view(TlSema *s, const TlVal *p, const TlVal *extents, const TlVal *strides,
                   const TlLoc *locs);
TlVal tl_sub_view(TlSema *s, const TlVal *view, const TlVal *starts, const TlVal *extents,
                  const TlLoc *locs);
TlVal tl_view_extent(TlSema *s, TlValue *view, uint32_t axis, bool stride, bool wide);

/* ---- array.c ---- */
enum { TL_MAX_ARRAY = 4096 };
/* Known, or of run time: a scalar, or a tile with one for each lane. */
typedef struct TlArrayIndex {
    bool is_known;
    uint32_t known;
    TlValue *ir; /* where known, NULL for arrays of few elements */
    TlLoc loc;
} TlArrayIndex;
TlTy tl_array_ty(TlSema *s, const TlTy *elem, const TlExpr *count, TlLoc loc);
TlVal tl_array_fields(TlSema *s, const TlExpr *list, const TlTy *ty); /* {x, y} */
/* The index in array[i]; false after an error, or when it is unknown. */
bool tl_array_index(TlSema *s, const TlVal *array, const TlExpr *e, TlArrayIndex *out);
TlArrayIndex tl_array_known(TlSema *s, const TlVal *array, uint32_t k, TlLoc loc);
TlVal tl_array_get(TlSema *s, const TlVal *array, const TlArrayIndex *i);
/* elem: converted to the type of the place (tl_array_place_ty) */
TlVal tl_array_put(TlSema *s, const TlVal *array, const TlArrayIndex *i, const TlVal *elem);
TlTy tl_array_place_ty(TlSema *s, const TlVal *array, const TlArrayIndex *i);

/* ---- border.c ---- */
typedef enum TlBorder {
    TL_BORDER_NONE,
    TL_BORDER_EDGE,
    TL_BORDER_REFLECT,
    TL_BORDER_SYMMETRIC,
    TL_BORDER_WRAP
} TlBorder;
bool tl_border_of(TlSema *s, const TlExpr *e, TlBorder *out); /* the word that e is */
TlVal tl_border_load(TlSema *s, const TlAccess *place, const TlMemArgs *m, TlBorder border,
                     TlLoc loc);

/* ---- call.c ---- */
typedef struct TlArgVal {
    TlName name;
    TlLoc loc;
    TlVal val;
} TlArgVal;
/* A function of the user's. */
TlVal tl_call_def(TlSema *s, const TlVal *fn, uint32_t nargs, const TlArgVal *args, TlLoc loc);
/* a function value (user's or built-in) on given values */
TlVal tl_call_fn(TlSema *s, const TlVal *fn, uint32_t nargs, const TlVal *args, TlLoc loc);
/* a function of the library, which is there */
TlVal tl_call_std(TlSema *s, const char *module, const char *name, uint32_t nargs,
                  const TlVal *args, TlLoc loc);
void tl_check_function(TlSema *s, TlDef *def); /* abstract */
void tl_check_nested(TlSema *s, const TlVal *fn); /* the same, the first time that it is met */
/* The value of a constant parameter that is given as v, or written as e. */
TlVal tl_const_param_value(TlSema *s, TlDef *def, const TlParamDecl *p, const TlVal *v, TlLoc loc);
TlVal tl_const_param_eval(TlSema *s, TlDef *def, const TlParamDecl *p, const TlExpr *e);

/* ---- builtin.c ---- */
enum { TL_MAX_SLOTS = 10 };
typedef struct TlCall {
    const TlBuiltin *fn;
    TlLoc loc;
    bool fast;
    uint32_t nslots;
    bool given[TL_MAX_SLOTS];
    TlVal val[TL_MAX_SLOTS];
    TlLoc vloc[TL_MAX_SLOTS];
    TlAccess *place[TL_MAX_SLOTS];
    const TlExpr *expr[TL_MAX_SLOTS];
    uint32_t nrest; /* the starred parameter's values */
    TlVal *rest;
    const TlExpr **rest_expr;
    int64_t *widths; /* of `start +: width` among them; -1 */
} TlCall;
struct TlBuiltin {
    const char *name, *params;
    TlVal (*run)(TlSema *s, TlCall *c);
    int data;
    const char *doc; /* what it does, a sentence or two */
};
/* The rows' functions. */
#define BUILTIN(name, params, fn, data, doc) TlVal tl_bi_##fn(TlSema *s, TlCall *c);
#include "frontend/builtins.def"
const TlBuiltin *tl_builtin_find(const char *name);
/* "roll(x, axis, n)": with the parameters that every call gives. */
const char *tl_builtin_form(TlSema *s, const TlBuiltin *b);
const TlBuiltin *tl_builtin_at(uint32_t i); /* NULL past the end */
TlVal tl_builtin_call(TlSema *s, const TlBuiltin *f, bool fast, const TlExpr *call);
TlVal tl_builtin_apply(TlSema *s, const TlBuiltin *f, bool fast, uint32_t n, const TlVal *args,
                       TlLoc loc);

/* ---- builtin_args.c ---- */
/* slot i as an IR value of any number type; NULL when bad */
TlValue *tl_call_ir(TlSema *s, TlCall *c, uint32_t i);
/* slot i as a compile-time int; false when diagnosed or unknown (then *out is the value to
 * return) */
bool tl_call_int(TlSema *s, TlCall *c, uint32_t i, const char *what, int64_t *value, TlVal *out);
/* slot i as an axis of `what`, which has `rank` of them; of a tile */
bool tl_call_axis_of(TlSema *s, TlCall *c, uint32_t i, int rank, const char *what, int *axis,
                     TlVal *out);
bool tl_call_axis(TlSema *s, TlCall *c, uint32_t i, int rank, int *axis, TlVal *out);
int64_t tl_call_word(TlSema *s, TlCall *c, uint32_t i,
                     TlAttrForm family); /* -1: not given; -2: diagnosed */
/* The type in which sums and products are computed. */
TlDtype tl_sum_dtype(TlDtype d);

/* ---- emit.c ---- */
TlValue *tl_emit(TlSema *s, TlOpcode op, uint32_t n, TlValue *const *in, const TlType *type,
                 uint32_t nattrs, const TlAttr *attrs);
/* May quotients and roots of this type be off by 2 ulp here? Not with --fp=strict, and not in
 * modules of the library whose own bounds count on exact ones. */
bool tl_may_approximate(const TlSema *s, TlDtype d);
/* Of one type; that of f32 may be approximate. */
TlValue *tl_emit_quotient(TlSema *s, TlValue *a, TlValue *b);
TlValue *tl_emit_reshape(TlSema *s, TlValue *x, int rank, const int32_t *shape);
TlValue *tl_emit_expand(TlSema *s, TlValue *x, int axis);
TlValue *tl_emit_iota(TlSema *s, int32_t n, TlDtype d);
/* x at the index, of x's rank, along the axis; 0 where there is none. */
TlValue *tl_emit_gather(TlSema *s, TlValue *x, TlValue *index, int axis);
/* Elements start, start + step, ... of an axis, n of them; 0 where there is none. */
TlValue *tl_emit_window(TlSema *s, TlValue *x, int axis, int32_t n, int32_t start, int step);
/* 0..shape[axis]-1 along `axis`, as i32 of the given shape */
TlValue *tl_emit_index(TlSema *s, int rank, const int32_t *shape, int axis);

/* ---- nonpositive.c ---- */
/* Is every element at most 0, or NaN? false: not known */
bool tl_is_nowhere_positive(const TlValue *v);

/* ---- even.c ---- */
void tl_even_promise(TlSema *s, TlValue *v); /* v is even, until the arm that is walked ends */
bool tl_is_even(const TlSema *s, const TlValue *v);

/* ---- divisor.c ---- */
void tl_remember_exp(TlSema *s, const TlValue *result, const TlValue *of);
/* The exponent if v is what a call of exp gave; NULL. */
TlValue *tl_exponent(const TlSema *s, const TlValue *v);
/* The value whose elements v's elements are, widened perhaps. */
const TlValue *tl_spread_from(const TlValue *v);
/* Is the op the sum of powers of e, of which one is 1 and none is more? */
bool tl_is_sum_with_one(const TlSema *s, const TlOp *op);
/* What is known of a divisor that a kernel has just written. */
TlApprox tl_divisor(const TlSema *s, const TlValue *d);

/* ---- powers.c ---- */
/* Once a kernel's body is there: shorter forms of exp on GPUs where no use tells the difference. */
void tl_shorten_powers(TlSema *s);

/* ---- flow.c ---- */
typedef struct TlChange {
    TlVar *var;
    TlVal val;
} TlChange;
typedef struct TlArm {
    TlBlock *block;
    TL_VEC(TlChange) changes;
    TlBuilder outer;
    uint32_t mark, serial, evens;
} TlArm;
void tl_arm_begin(TlSema *s, TlArm *arm); /* code goes to a new block */
void tl_arm_begin_in(TlSema *s, TlArm *arm, TlBlock *block);
void tl_arm_end(TlSema *s, TlArm *arm); /* variables back to what they were */
void tl_arm_reopen(TlSema *s, TlArm *arm);
void tl_arm_inline(TlSema *s,
                   TlArm *arm); /* the arm is what happens: its code and changes come here */
void tl_arm_discard(TlArm *arm);
/* Joins two ended arms by an IF; joins also two values (may be NULL). */
void tl_arms_join(TlSema *s, TlValue *cond, TlArm *then, TlArm *els, const TlVal *a, const TlVal *b,
                  TlVal *out, TlLoc loc);
bool tl_arm_is_cheap(const TlArm *arm);
/* Has this pass through the function or loop body ended? NULL: *known says; else a scalar bool. */
TlValue *tl_exit_state(TlSema *s, bool *known);
/* Runs item(0), item(1), ... item(n - 1); when one may have left, the rest runs under the flag. */
typedef bool (*TlSeqFn)(TlSema *s, void *user,
                        uint32_t i); /* false: the items after this one are done too */
void tl_sequence(TlSema *s, TlSeqFn item, void *user, uint32_t from, uint32_t n);
/* Variables that a loop carries: the loop's block arguments take their leaves, in order. */
typedef TL_VEC(TlVar *) TlVars;
typedef TL_VEC(TlValue *) TlValues;
/* What a loop carries: the variables, their values on entry (init: with every scalar in IR) and
 * the IR values in them. */
typedef struct TlCarried {
    TlVars vars;
    TL_VEC(TlVal) init;
    TlValues leaves;
} TlCarried;
void tl_carry_begin(TlSema *s, TlCarried *c, TlLoc loc); /* vars is filled in */
/* One more variable, which the loop assigns before it reads it: it is zero on entry. */
void tl_carry_late(TlSema *s, TlCarried *c, TlVar *v, const TlTy *ty, TlLoc loc);
void tl_carry_take(TlSema *s, const TlCarried *c,
                   TlValue *const *values); /* variables get new leaves */
void tl_carry_final(TlSema *s, const TlCarried *c,
                    TlValues *out); /* leaves of the variables as they are now */

/* ---- stmt.c, loop.c ---- */
void tl_stmt(TlSema *s, const TlStmt *st);
void tl_stmt_loop_range(TlSema *s, const TlStmt *st);
void tl_stmt_loop_while(TlSema *s, const TlStmt *st);
void tl_stmt_static_for(TlSema *s, const TlStmt *st);

/* ---- kernel.c, launch_expr.c ---- */
typedef struct TlBoundConst {
    TlName name;
    TlVal val;
    bool bound;
    const char *given_by; /* "the caller", "tune", ...; or NULL */
} TlBoundConst;
/* Walks a kernel into fn (made in `out`); consts parallel to the compile-time parameters. */
TlFn *tl_kernel_walk(TlSema *s, TlDef *def, const TlBoundConst *consts, TlModule *out);
void tl_check_kernel(TlSema *s, TlDef *def);

/* ---- tuning.c ---- */
typedef TL_VEC(TlConfig) TlConfigs;
/* The largest value of warps, stages, cluster or maxreg; 0: the name is none of these. */
int32_t tl_knob_most(const char *name);
/* Gives the knob of that number a value, if the kernel that is walked has it as a name. */
void tl_knob_bind(TlSema *s, int knob, TlLoc loc, int64_t n);
/* What the configuration, which may be NULL, says of a constant; NULL: nothing. */
const TlVal *tl_config_value(const TlConfig *config, TlName name);
/* The first `most` configurations that have the values of `fixed`: parallel to the compile-time
 * parameters, bound where there is a value. */
void tl_tune_configs(TlSema *s, TlDef *def, const TlBoundConst *fixed, uint32_t most,
                     TlConfigs *out);
/* The configuration that gives constants without a value one, when nothing was tuned: the first in
 * which constants with a default have it, else the first. NULL: there is none. */
bool tl_tune_on_host(const TlSema *s);
const TlConfig *tl_tune_default(TlSema *s, TlDef *def, const TlBoundConst *fixed);
/* "T=f16 epi=relu": the constants that tune does not list, as far as they are known. */
const char *tl_tune_constants(TlSema *s, TlDef *def, const TlBoundConst *fixed);
const char *tl_tune_hash(TlSema *s, const TlDef *def);

typedef enum TlHostType { TL_HOST_BAD, TL_HOST_INT, TL_HOST_BOOL, TL_HOST_FLOAT } TlHostType;
/* Compiles a launch-time expression into info->exprs; its index, or -1 (diagnosed or unknown). */
int32_t tl_host_expr(TlSema *s, TlKernelInfo *info, const TlExpr *e, TlHostType want);

/* ---- name_facts.c: what editors want to know; nothing without options->facts ---- */
void tl_fact_declare(TlSema *s, const TlVar *v);
void tl_fact_use(TlSema *s, TlLoc loc, TlLoc def, const TlVal *v);
void tl_fact_name(TlSema *s, const TlExpr *e); /* which may be a variable's */
void tl_fact_def(TlSema *s, TlLoc loc, const TlDef *def);
void tl_fact_builtin(TlSema *s, TlLoc loc, const TlBuiltin *b, bool fast);
void tl_fact_result(TlSema *s, const TlExpr *e, const TlVal *v);

/* ---- warn.c, warn_kernel.c ---- */
/* Are there warnings at loc? Only in walks of instances, in the root module. */
bool tl_warns_at(const TlSema *s, TlLoc loc);
void tl_warn_no_grid(TlProgram *p);
void tl_warn_type_words(TlProgram *p);
/* Statements without effect, accumulators that loops overwrite: of a program without errors. */
void tl_lint_text(TlProgram *p);
/* max(x, 1), min(x, 1): of a tile with an axis 1, and 1 a literal */
void tl_warn_axis_number(TlSema *s, const char *function, const TlVal *x, const TlVal *y,
                         TlLoc loc);
/* After the walk of a kernel's body, while its parameters are still in the environment. */
void tl_warn_kernel(TlSema *s, const TlItem *item, const TlFn *fn);
/* A clause or hint of effects.def stands at loc. */
void tl_warn_no_effect(TlSema *s, const char *word, TlLoc loc);
#endif
