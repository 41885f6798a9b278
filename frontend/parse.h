/* What the lexer, the grammar and the tree's constructors share. Internal to the parser: sema
 * includes ast.h.
 *
 * lexer.re    bytes to tokens: tl_yy_lex; brackets, documentation lines, recovery literal.c
 * the values of number and string literals grammar.y   tokens to constructors' calls:
 * tl_yy_parse; the texts of syntax errors ast.c       the constructors
 *
 * Recovery is done by the lexer. When the grammar reports a syntax error it calls
 * tl_lex_recover; the next tokens are skipped up to the end of the statement (or item) that
 * holds the error, where TL_TOK_RECOVERED stands for all that was skipped. So one error costs
 * one statement, whatever brackets it broke. */
#ifndef TL_PARSE_H
#define TL_PARSE_H
#include "frontend/ast.h"

/* Two tokens' positions; end is one past the last byte (len 0). */
typedef struct TlSpan {
    TlLoc begin, end;
} TlSpan;

/* An open bracket; `block` when it is the brace of a statement list. */
typedef struct TlBracket {
    char open;
    bool block;
    int after; /* the token before it */
    TlLoc loc;
} TlBracket;

/* The /// lines above a token. */
typedef struct TlDoc {
    TlLoc next; /* the token */
    const char *text;
} TlDoc;

typedef TL_VEC(TlArg) TlArgs;
typedef TL_VEC(TlIndex) TlIndices;
typedef TL_VEC(TlDecl) TlDecls;
typedef TL_VEC(TlFieldDecl) TlFields;
typedef TL_VEC(TlParamDecl) TlParams;
typedef TL_VEC(TlExtent) TlExtents;
typedef TL_VEC(TlClause) TlClauses;
typedef TL_VEC(TlTuneItem) TlTunes;
typedef TL_VEC(TlBinding) TlBindings;
typedef TL_VEC(TlVariant) TlVariants;

/* A comment, without the end of its line. */
typedef struct TlComment {
    const unsigned char *begin, *end;
} TlComment;
typedef TL_VEC(TlComment) TlComments;

/* Where in the text the lexer is. */
typedef struct TlCursor {
    const unsigned char *at, *line_start;
    uint32_t line;
} TlCursor;

/* HERE: at the token itself, which starts the next statement (a `;` is missing before it) */
typedef enum TlRecovery { TL_RECOVER_NOT, TL_RECOVER_SKIP, TL_RECOVER_HERE } TlRecovery;

typedef struct TlParser {
    TlCtx *ctx;
    TlUnit *unit;
    const unsigned char *limit; /* the source's end; a NUL byte stands there */
    TlCursor cursor;
    TlLoc prev_end;       /* of the token before the last one */
    TlCursor token_start; /* of the last token */
    int token;            /* the last token */
    TL_VEC(TlBracket) brackets;
    TlSbuf doc;                      /* lines read since the last token */
    TL_VEC(TlDoc) docs;              /* those of the item that is being read */
    TlComments *comments;            /* where comments are kept; NULL: nowhere */
    uint32_t height_before;          /* open brackets before the last token */
    const unsigned char *last_error; /* the token of the last syntax error */
    bool in_lambda; /* that error is a C++ lambda: its body's braces belong to the expression */
    TlRecovery recovering;           /* how the next token is found */
    bool torn;                       /* what stands before the last `semi` is not all of it */
    uint32_t recover_height;         /* open brackets around the statement that is skipped */
    uint32_t closers;                /* '}' still to be made up before the text goes on */
    bool heads;      /* bodies of functions are passed over */
    bool one_item;   /* the text ends with the item that it begins with */
    bool stop;       /* nothing more is read: the end was reported as an error, or a limit */
    bool broken;     /* a syntax error since the last item */
    TlItem *current; /* function or kernel whose body is being read */
} TlParser;

union TL_YY_STYPE;
int tl_yy_lex(union TL_YY_STYPE *value, TlSpan *span, TlParser *p);
int tl_yy_parse(TlParser *p);
/* A parser at the start of a source, behind a byte order mark. */
TlParser tl_parser_at_start(TlCtx *ctx, uint32_t source);

/* lexer.re */
void tl_lex_recover(TlParser *p,
                    bool here);      /* a syntax error at the last token: skip what is broken */
bool tl_at_lambda(const TlParser *p); /* is the token the beginning of a C++ lambda? */
void tl_lex_open_block(TlParser *p); /* the last '{' opens statements */
TlLoc tl_loc_at(const TlParser *p, const TlCursor *start, const unsigned char *at, size_t len);

/* literal.c: the text between begin and end; what is wrong is diagnosed and a likely value
 * returned */
typedef struct TlNumber {
    bool is_float;
    uint64_t integer;
    double number;
} TlNumber;
TlNumber tl_lex_number(TlParser *p, const unsigned char *begin, const unsigned char *end);
const char *tl_lex_string(TlParser *p, const unsigned char *begin,
                          const unsigned char *end); /* with the quotes */

/* ast.c: constructors. They take lists over. Spans are of the whole node, locs of what a
 * diagnostic points at. */
TlExpr *tl_expr_new(TlParser *p, TlExprKind kind, TlLoc loc, TlSpan span);
TlExpr *tl_expr_unary(TlParser *p, int op, TlLoc loc, TlSpan span, TlExpr *a);
TlExpr *tl_expr_binary(TlParser *p, TlBinop op, TlLoc loc, TlExpr *a, TlExpr *b);
TlExpr *tl_expr_cond(TlParser *p, TlLoc loc, TlExpr *a, TlExpr *b, TlExpr *c);
TlExpr *tl_expr_cast(TlParser *p, TlSpan parens, TlTypeExpr *type, TlExpr *a);
TlExpr *tl_expr_name(TlParser *p, TlSpan span, TlName name);
TlExpr *tl_expr_member(TlParser *p, TlExpr *a, TlSpan span, TlName name);
TlExpr *tl_expr_call(TlParser *p, TlExpr *callee, TlSpan span, const TlArgs *args);
TlExpr *tl_expr_index(TlParser *p, TlExpr *base, TlSpan span, const TlIndices *indices);
TlExpr *tl_expr_tuple(TlParser *p, TlLoc loc, TlSpan span, const TlExprs *values);
TlExpr *tl_expr_typed(TlParser *p, TlExprKind kind, TlLoc loc, TlSpan span, TlTypeExpr *type,
                      const TlArgs *args);
TlExpr *tl_expr_unchecked(TlParser *p, TlSpan keyword, TlExpr *a);
TlExpr *tl_expr_fn(TlParser *p, TlSpan span, const TlDecls *params, TlExpr *value);
TlExpr *tl_expr_parens(TlExpr *e, TlSpan span);
TlExprs *tl_exprs_before(TlParser *p, TlExpr *first, const TlExprs *rest);
TlArg *tl_arg(TlParser *p, TlName name, TlLoc loc, const TlIndex *value);
TlIndex *tl_index(TlParser *p, TlExpr *at, TlExpr *width, TlExpr *step);

TlTypeExpr *tl_type_expr(TlParser *p, TlTypeExprKind kind, TlLoc loc);
TlTypeExpr *tl_type_expr_scalar(TlParser *p, TlLoc loc, TlDtype dtype);
TlTypeExpr *tl_type_expr_tile(TlParser *p, TlLoc loc, TlTypeExpr *elem, const TlExprs *extents);
/* `e *` in a cast: of a name, or of what is no type, which sema says. */
TlTypeExpr *tl_type_expr_pointee(TlParser *p, const TlExpr *e, bool is_const);
TlTypeExpr *tl_type_expr_path(TlParser *p, const TlExpr *path,
                              bool struct_keyword); /* NAME or MEMBER of a NAME */

TlStmt *tl_stmt_new(TlParser *p, TlStmtKind kind, TlLoc loc, TlSpan span);
TlStmt *tl_stmt_block(TlParser *p, TlSpan span, const TlStmts *body);
TlStmt *tl_stmt_decl(TlParser *p, TlSpan span, TlTypeExpr *type, bool is_const,
                     const TlDecls *decls);
TlStmt *tl_stmt_unpack(TlParser *p, TlSpan span, bool is_const, const TlDecls *names,
                       TlExpr *value);
TlStmt *tl_stmt_assign(TlParser *p, int op, TlLoc loc, TlExpr *place, TlExpr *value);
TlStmt *tl_stmt_step(TlParser *p, TlBinop op, TlSpan op_span, TlExpr *place); /* x++ */
TlStmt *tl_stmt_expr(TlParser *p, TlExpr *value);
TlStmt *tl_stmt_if(TlParser *p, TlSpan span, bool is_static, TlExpr *cond, TlStmt *then,
                   TlStmt *els);
TlStmt *tl_stmt_range(TlParser *p, TlSpan span, bool is_static, TlTypeExpr *type, TlName name,
                      TlLoc loc, TlExpr *range);
TlStmt *tl_stmt_loop(TlParser *p, TlStmt *loop, const TlHints *hints,
                     TlStmt *body); /* the head gets its body */
TlStmt *tl_stmt_function(TlParser *p, TlSpan span, TlItem *fn, TlStmt *body);
TlDecl *tl_decl(TlParser *p, TlName name, TlLoc loc, TlExpr *init);
TlFieldDecl *tl_field(TlParser *p, TlName name, TlLoc loc, TlExpr *init);
TlDecls *tl_decls_of(TlParser *p, const TlDecl *decl);
void tl_hint(TlParser *p, TlHints *hints, int token, TlLoc loc, TlExpr *arg);

TlParamDecl *tl_param(TlParser *p, TlParamForm form, TlTypeExpr *type, TlName name, TlLoc loc,
                      TlExpr *init);
TlParamDecl *tl_param_view(TlParser *p, TlTypeExpr *type, TlName name, TlLoc loc,
                           const TlExtents *extents, bool is_const);
TlExtent *tl_extent(TlParser *p, TlTypeExpr *width, TlExpr *extent, TlExpr *stride);
TlClause *tl_clause(TlParser *p, TlClauseKind kind, TlLoc loc);
TlVariant tl_variant(const TlBindings *bindings);
TlFields *tl_fields_typed(TlFields *fields, TlTypeExpr *type);

TlItem *tl_item_new(TlParser *p, TlItemKind kind, TlName name, TlLoc loc);
void tl_item_add(TlParser *p, TlItem *item,
                 TlLoc first); /* first: its first token, below the documentation */
TlItem *tl_item_import(TlParser *p, TlLoc loc, const char *path, bool is_file);
void tl_item_constants(TlParser *p, TlLoc first, TlTypeExpr *type, const TlDecls *decls);
/* a function or kernel begins, ends; an item is given up */
void tl_item_function(TlParser *p, TlItemKind kind, TlTypeExpr *type, TlName name, TlLoc first,
                      TlLoc loc, const TlParams *params);
void tl_item_finish(TlParser *p, TlStmt *body);
/* A function within a function, without its body. */
TlItem *tl_item_nested(TlParser *p, TlTypeExpr *type, TlName name, TlLoc loc,
                       const TlParams *params);
void tl_item_broken(TlParser *p);

/* data, len and cap of one list into another of the same element type */
#define TL_VEC_TAKE(to, from)                                                                      \
    ((to)->data = (from)->data, (to)->len = (from)->len, (to)->cap = (from)->cap)
#endif
