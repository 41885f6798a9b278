/* The syntax tree of .tile, made by grammar.y, in the context's arena. Positions on every node.
 * Names are interned. No types and no meanings here: the tree says what was written, bind.c which
 * local each name is, sema what it means.
 *
 * Depth. The parser refuses trees deeper than TL_MAX_NESTING, so walks may recurse over `depth`.
 * Two spines are thousands long in legal programs, do not count as depth and must be walked by a
 * loop: the left operands of TL_EX_BINARY (e->a while it is BINARY) and the else-ifs of TL_ST_IF
 * (s->els while it is IF). */
#ifndef TL_AST_H
#define TL_AST_H
#include "ir/type.h"

typedef struct TlExpr TlExpr;
typedef struct TlStmt TlStmt;
typedef struct TlItem TlItem;
typedef const char *TlName; /* interned */
enum { TL_MAX_NESTING = 256, TL_MAX_SOURCE = 16 << 20 };

typedef TL_VEC(TlExpr *) TlExprs;
typedef TL_VEC(TlStmt *) TlStmts;

/* ---- what bind.c finds ---- */
/* A name that a function or kernel declares: a parameter, a name that the type of one binds, a
 * variable. */
typedef struct TlLocal {
    TlName name;
    TlLoc loc;
    const TlItem *item; /* whose local it is */
    uint32_t index;     /* among the locals of its item */
    uint32_t depth; /* of the block it stands in */
    /* declared before it, around its item too; of its name; or NULL */
    const struct TlLocal *outer, *hides;
    const char *what; /* "variable", "parameter"; NULL: nobody needs to read it */
    bool *read;       /* shared by the names of one unpacking */
} TlLocal;
typedef TL_VEC(const TlLocal *) TlLocals;
/* How a statement may be left; `always`: every path through it returns. */
typedef struct TlExits {
    bool breaks, continues, returns, always;
} TlExits;

/* ---- types as written ---- */
typedef enum TlTypeExprKind {
    TL_TE_SCALAR,  /* dtype */
    TL_TE_TILE,    /* tile<elem, extents...> */
    TL_TE_NAME,    /* a name bound as a type, or a struct's name */
    TL_TE_AUTO,
    TL_TE_VOID,
    TL_TE_OTHER    /* expr, which is no type: (a + b *)x */
} TlTypeExprKind;
typedef struct TlTypeExpr {
    TlTypeExprKind kind;
    TlLoc loc;
    TlDtype dtype;            /* SCALAR */
    bool pointer, is_const;   /* T *p, const T *p in declarations and parameters */
    bool struct_keyword;      /* written `struct name` */
    TlName name;              /* NAME */
    const TlLocal *local;     /* NAME: as of TlExpr */
    TlName module;            /* NAME: geo.vec; NULL when not qualified */
    struct TlTypeExpr *elem;  /* TILE */
    TlExprs extents;          /* TILE */
    const struct TlExpr *expr; /* OTHER */
} TlTypeExpr;

/* ---- expressions ---- */
typedef enum TlExprKind {
    TL_EX_INT,      /* u.integer; magnitude, may need all 64 bits; too large = error at parse */
    TL_EX_FLOAT,    /* u.number */
    TL_EX_BOOL,     /* u.integer 0 or 1 */
    TL_EX_INF, TL_EX_NAN,
    TL_EX_STRING,   /* u.string, escapes resolved */
    TL_EX_NAME,     /* u.name */
    TL_EX_UNARY,    /* u.op: - + ! ~ (op as the character), a */
    TL_EX_BINARY,   /* u.op, a, b; op is a TlBinop; loc is the operator's */
    TL_EX_COND,     /* a ? b : c; loc is the ?'s */
    TL_EX_CAST,     /* (type)a */
    TL_EX_CALL,     /* a is the callee (name or member), args; loc is the callee's */
    TL_EX_INDEX,    /* a[indices] */
    TL_EX_MEMBER,   /* a.name; loc is the name's */
    TL_EX_TUPLE,    /* (x, y, ...): args[].value; with braces as STRUCT */
    TL_EX_STRUCT,   /* (struct name){x, z = y}: type, args */
    TL_EX_MAKE,     /* tile<T, N>(v) or f32(v): type, args */
    TL_EX_TYPE,     /* a type as an argument: cast(x, f32), or a constant's value */
    TL_EX_FN,       /* fn (a, b) => e: fn, whose body returns e; loc is the keyword's */
    TL_EX_UNCHECKED /* unchecked a */
} TlExprKind;

typedef enum TlBinop {
    TL_BIN_MUL, TL_BIN_DIV, TL_BIN_REM, TL_BIN_ADD, TL_BIN_SUB, TL_BIN_SHL, TL_BIN_SHR,
    TL_BIN_LT, TL_BIN_GT, TL_BIN_LE, TL_BIN_GE, TL_BIN_EQ, TL_BIN_NE,
    TL_BIN_AND, TL_BIN_XOR, TL_BIN_OR, TL_BIN_LAND, TL_BIN_LOR
} TlBinop;

/* a[i], a[i +: w], a[i +: w : s] */
typedef struct TlIndex {
    TlExpr *at, *width, *step; /* width NULL: a plain index; step NULL: 1 */
} TlIndex;

/* f(x), f(name = x), extract(x, 0 +: 4), at(x, i, 0 +: 4 : 2) */
typedef struct TlArg {
    TlName name; /* NULL when positional */
    TlLoc loc;   /* of the name, or of the value */
    TlExpr *value, *width, *step; /* value +: width : step */
} TlArg;

struct TlExpr {
    TlExprKind kind;
    TlLoc loc;       /* what a diagnostic points at: name, literal, operator, callee */
    TlLoc begin, end; /* first token; column after the last byte (len 0): for ranges and texts */
    union {
        uint64_t integer;
        double number;
        const char *string;
        TlName name;
        int op;
    } u;
    TlExpr *a, *b, *c;
    const TlLocal *local; /* NAME: what it is; one of another name: none, and this is in scope */
    TlTypeExpr *type;
    TlItem *fn;
    TL_VEC(TlArg) args;
    TL_VEC(TlIndex) indices;
    uint32_t depth; /* of the tree below; the left operands of a BINARY do not count */
    bool parens;    /* written in parentheses: tile<T, (N)> means the constant N */
    bool braces;    /* TUPLE: {a, b = c}, the fields of what has a type */
};

/* ---- statements ---- */
typedef enum TlStmtKind {
    TL_ST_BLOCK,   /* body */
    TL_ST_EMPTY,
    TL_ST_DECL,    /* type, is_const, decls: one per name */
    TL_ST_UNPACK,  /* auto (a, b) = e: decls name only, value */
    /* place op= value; op -1: plain =, else a TlBinop (x++ is += 1); loc: the operator */
    TL_ST_ASSIGN,
    TL_ST_EXPR,    /* value */
    TL_ST_IF,      /* cond, then, els (NULL); is_static */
    TL_ST_WHILE,   /* cond, then (the body), hints */
    TL_ST_RANGE,   /* for (type name : value) hints body; is_static */
    TL_ST_FOR,     /* for (init; cond; update) hints body; any may be NULL */
    TL_ST_RETURN,  /* value or NULL */
    TL_ST_BREAK, TL_ST_CONTINUE,
    TL_ST_ASSERT,  /* static_assert: args */
    TL_ST_FUNCTION /* fn; decls: its name; value: it as an expression */
} TlStmtKind;

typedef struct TlDecl {
    TlName name;
    TlLoc loc;
    TlExpr *init;   /* NULL: zero */
    TlExpr *count;  /* T name[count]; NULL */
    const TlLocal *local;
} TlDecl;

typedef struct TlHints {
    bool pipeline, unroll, nounroll, specialize;
    /* pipeline(n), unroll(n), specialize(n); NULL when not given */
    TlExpr *stages, *factor, *apart;
    TlLoc loc, specialize_loc;
} TlHints;

struct TlStmt {
    TlStmtKind kind;
    TlLoc loc, end;        /* end: the closing brace of a block */
    bool is_const, is_static;
    int op;
    TlTypeExpr *type;
    TL_VEC(TlDecl) decls;
    TlExpr *place, *value, *cond;
    TlStmt *init, *update, *then, *els;
    TlItem *fn;
    TlStmts body;
    TlHints hints;
    TL_VEC(TlArg) args;
    uint32_t depth; /* of the statements below; an `else if` does not count */
    TlExits exits;  /* IF: its own; loops: of the body */
    TlLocals assigned, updated; /* loops: locals from outside that body and update assign */
    TlLocals stored; /* loops: those x with x[i] = e in them, arrays or views */
};

/* ---- items ---- */
typedef enum TlParamForm {
    TL_PF_VALUE,       /* T x, tile<..> x, auto x */
    TL_PF_VIEW,        /* [const] T x[extents] */
    TL_PF_POINTER,     /* [const] T *x */
    TL_PF_OPTIONS,     /* const S o of a kernel, after a constant for each field (fields.c) */
    TL_PF_CONST,       /* const T N [= e] */
    TL_PF_CONST_FN,    /* const fn g [= f] */
    TL_PF_CONST_TYPE   /* const type T [= f32] */
} TlParamForm;
typedef struct TlExtent {
    TlExpr *extent;  /* an expression, usually a name */
    TlExpr *stride;  /* NULL: dense */
    TlTypeExpr *width; /* i64 of [i64 N]; NULL */
    TlLoc loc;
} TlExtent;
typedef struct TlParamDecl {
    TlParamForm form;
    TlName name;
    TlLoc loc;
    bool is_const;
    TlTypeExpr *type;
    TL_VEC(TlExtent) extents;
    TlExpr *init;           /* default of a const parameter (TL_EX_TYPE for types) */
    const char *of;         /* "o.f": not written, but a field of the OPTIONS that follow; the types
                             * of o and of structs in it, "S.inner" */
    bool broken;            /* OPTIONS: a field is no scalar (diagnosed): their value is unknown */
    const TlLocal *local;
} TlParamDecl;

typedef enum TlClauseKind {
    TL_CL_GRID, TL_CL_REQUIRE, TL_CL_ASSUME, TL_CL_KEY, TL_CL_ALIAS, TL_CL_WARPS, TL_CL_STAGES,
    TL_CL_CLUSTER, TL_CL_PERSISTENT, TL_CL_MAXREG, TL_CL_TUNE, TL_CL_INSTANTIATE
} TlClauseKind;
typedef struct TlTuneItem {
    TlName name;
    TlLoc loc;
    TlExprs values;
} TlTuneItem;
typedef struct TlBinding {
    TlName name;
    TlLoc loc;
    TlExpr *value;
} TlBinding;
typedef struct TlVariant {
    TL_VEC(TlBinding) bindings;
} TlVariant;
typedef struct TlClause {
    TlClauseKind kind;
    TlLoc loc;
    TL_VEC(TlArg) args;         /* all but TUNE and INSTANTIATE */
    TL_VEC(TlTuneItem) tunes;
    TlExpr *where;              /* TUNE */
    TL_VEC(TlVariant) variants; /* INSTANTIATE */
} TlClause;

typedef enum TlItemKind {
    TL_IT_IMPORT, TL_IT_CONST, TL_IT_STRUCT, TL_IT_FUNCTION, TL_IT_KERNEL, TL_IT_ASSERT
} TlItemKind;
typedef struct TlFieldDecl {
    TlTypeExpr *type;
    TlName name;
    TlLoc loc;
    TlExpr *count; /* T name[n]: not in version 1; a diagnostic */
    TlExpr *init;  /* its default; NULL: zero */
} TlFieldDecl;
struct TlItem {
    TlItemKind kind;
    TlName name;    /* imports: the name it is used by (random, geo) */
    TlLoc loc;      /* of the name */
    const char *doc; /* text of the /// lines above, or NULL */
    const char *path; /* IMPORT: "std.random" or the file name as written */
    bool is_file;     /* IMPORT "file" */
    TlTypeExpr *type; /* CONST, FUNCTION (result) */
    TlExpr *value;    /* CONST */
    TL_VEC(TlFieldDecl) fields;
    TL_VEC(TlParamDecl) params;
    TL_VEC(TlClause) clauses;
    TlStmt *body; /* use tl_item_body */
    TlLoc later;  /* line not 0: the item's first token; its body has not been read yet */
    TL_VEC(TlArg) args; /* ASSERT */
    bool is_bound, always_returns; /* by bind.c */
    /* Functions within functions: */
    bool is_lambda; /* fn (a) => e */
    bool bad_head;  /* a name in the types of its parameters is visible outside (diagnosed) */
    struct TlDef *def;        /* as sema knows it: by bind.c */
    TL_VEC(TlItem *) nested;  /* those within this one: by bind.c */
    TlLocals locals; /* the first `nhead` are those of the head: all but what the body declares */
    uint32_t nhead;
    bool broken; /* a syntax error inside (diagnosed): statements are missing; do not report what
                  * follows from that */
};

typedef struct TlUnit {
    uint32_t source; /* index in ctx->diags.sources */
    TL_VEC(TlItem *) items;
    bool incomplete; /* items are missing after a syntax error: a name not found here may exist */
} TlUnit;

/* Parses one source. Syntax errors are diagnosed (several per run, by recovery at ; and }); the
 * tree holds what could be read. Never NULL. Nodes live in ctx->perm. */
TlUnit *tl_parse(TlCtx *ctx, uint32_t source);
/* The same for a module of the library, but bodies of functions are passed over: a program calls
 * few of its functions. */
TlUnit *tl_parse_heads(TlCtx *ctx, uint32_t source);
/* The body of a function, which is read at the first call. */
const TlStmt *tl_item_body(TlCtx *ctx, TlItem *item);
/* --emit=ast: valid .tile again, fully parenthesised */
void tl_ast_print(TlSbuf *out, const TlUnit *unit);
void tl_ast_print_item(TlSbuf *out, const TlItem *item);
/* The text the user wrote between two positions of one source, white space folded. */
const char *tl_source_text(TlCtx *ctx, TlLoc begin, TlLoc end);
#endif
