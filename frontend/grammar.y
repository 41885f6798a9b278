/* The grammar of .tile: LALR(1) without conflicts (the build fails on one). The actions only
 * call constructors of ast.c and collect lists; the parser's state is `p`.
 *
 * What keeps it LALR(1):
 *   - a declaration begins with a type; a type that is a name is told from an expression by the
 *     name after it;
 *   - `(T)x` casts to scalar and tile types only, never to a name; in `(T *)x` the name is read as
 *     an operand of a product that lacks the other, which only a cast can be;
 *   - `<` opens arguments only after `tile`, where extents have no comparisons outside parentheses;
 *   - hint words are reserved, clause words are names wherever a name can stand (`name`).
 *
 * Depth of the parser's stack is no matter: it grows in the arena, up to YYMAXDEPTH symbols. */
%define api.pure full
%define api.prefix {tl_yy_}
%define api.token.prefix {TL_TOK_}
%define api.location.type {TlSpan}
%define parse.error custom
%locations
%expect 0
%param {TlParser *p}

%code requires {
#include "frontend/parse.h"
}

%code top {
#include "frontend/advice.h"
#include <string.h>
}

%code {
#define YYMAXDEPTH 1000000
#define YYSTACK_USE_ALLOCA 0
#define YYMALLOC(size) tl_alloc(&p->ctx->perm, (size))
#define YYFREE(block) ((void)(block))
#define YYLLOC_DEFAULT(current, rhs, n)                                            \
    do {                                                                           \
        (current).begin = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end;     \
        (current).end = YYRHSLOC(rhs, n).end;                                      \
    } while (0)

#define LIST(T) TL_NEW(&p->ctx->perm, T)
#define PUSH(list, ...) tl_vec_push(&p->ctx->perm, (list), __VA_ARGS__)

static void tl_yy_error(const TlSpan *span, TlParser *p, const char *text);
}

%union {
    uint64_t integer;
    double number;
    const char *string;
    TlName name;
    TlDtype dtype;
    int token;
    TlExpr *expr;
    TlTypeExpr *type;
    TlStmt *stmt;
    TlArg *arg;
    TlClause *clause;
    TlHints *hints;
    TlExprs *exprs;
    TlStmts *stmts;
    TlArgs *args;
    TlIndices *indices;
    TlIndex *index;
    TlDecls *decls;
    TlDecl *decl;
    TlFields *fields;
    TlFieldDecl *field;
    TlParams *params;
    TlParamDecl *param;
    TlExtents *extents;
    TlExtent *extent;
    TlTunes *tunes;
    TlBindings *bindings;
    TlVariants *variants;
    TlItem *item;
}

%token END 0 "end of file"
%token RECOVERED "broken text" INVALID "invalid character"
%token <name> IDENT "name"
%token <integer> INTLIT "integer" <number> FLOATLIT "number" <string> STRLIT "string"
%token <dtype> SCALAR "scalar type"
%token KERNEL "kernel" CONST "const" IMPORT "import" STRUCT "struct"
%token TILE "tile" AUTO "auto" VOID "void" FN "fn"
%token IF "if" ELSE "else" FOR "for" WHILE "while" RETURN "return" BREAK "break" CONTINUE "continue"
%token STATIC "static" STATIC_ASSERT "static_assert" IN "in" UNCHECKED "unchecked"
%token TRUE "true" FALSE "false" INF "inf" NAN "nan"
%token <name> GRID "grid" REQUIRE "require" ASSUME "assume" TUNE "tune" KEY "key"
%token <name> INSTANTIATE "instantiate" WARPS "warps" STAGES "stages" CLUSTER "cluster"
%token <name> PERSISTENT "persistent"
%token <name> MAXREG "maxreg" ALIAS "alias" GROUP "group"
%token <name> WHERE "where" TYPE "type"
%token PIPELINE "pipeline" UNROLL "unroll" NOUNROLL "nounroll" SPECIALIZE "specialize"
%token PLUSCOLON "+:" GIVES "=>" LE "<=" GE ">=" EQ "==" NE "!=" AND "&&" OR "||" SHL "<<" SHR ">>"
%token ADDA "+=" SUBA "-=" MULA "*=" DIVA "/=" MODA "%="
%token ANDA "&=" ORA "|=" XORA "^=" SHLA "<<=" SHRA ">>="
%token INC "++" DEC "--"

%type <string> modname strings
%type <name> name contextual constname
%type <type> fieldtype rettype type tiletype elem casttype argtype pointer constpointer
%type <expr> expr optexpr orexpr andexpr bor bxor band eq rel shift addexpr mul
%type <expr> operand typeval unary postfix complex path primary
%type <expr> value list default default_type tunewhere field_value
%type <exprs> exprs targs values set
%type <args> args arglist values_of_fields
%type <arg> arg value_of_field
%type <indices> indices
%type <index> index
%type <stmt> block stmt decl simple loop forinit optsimple
%type <stmts> stmts
%type <hints> hints
%type <token> hintword assignop
%type <decls> inits names lambdaparams
%type <item> nestedhead
%type <decl> init
%type <fields> fields fieldnames
%type <field> fieldname
%type <params> params paramlist
%type <param> param
%type <extents> dims extents
%type <extent> extent
%type <clause> clause clausehead
%type <tunes> tunes
%type <bindings> inst
%type <variants> insts

%precedence NOELSE
%precedence ELSE
%precedence NOARG
%precedence '('

%start file
%%

/* ---- items ---- */

file: %empty | file item;

item:
    "import" modname semi { tl_item_add(p, tl_item_import(p, @2.begin, $2, false), @1.begin); }
  | "import" STRLIT semi { tl_item_add(p, tl_item_import(p, @2.begin, $2, true), @1.begin); }
  | "const" type inits semi { tl_item_constants(p, @1.begin, $2, $3); }
  | "const" "auto" inits semi
        { tl_item_constants(p, @1.begin, tl_type_expr(p, TL_TE_AUTO, @2.begin), $3); }
  | "struct" name lbrace fields '}' semi {
        TlItem *item = tl_item_new(p, TL_IT_STRUCT, $2, @2.begin);
        TL_VEC_TAKE(&item->fields, $4);
        tl_item_add(p, item, @1.begin);
    }
  | funchead block { tl_item_finish(p, $2); }
  | kernelhead clauses block { tl_item_finish(p, $3); }
  | "static_assert" args semi {
        TlItem *item = tl_item_new(p, TL_IT_ASSERT, NULL, @1.begin);
        TL_VEC_TAKE(&item->args, $2);
        tl_item_add(p, item, @1.begin);
    }
  | ';'
  | error RECOVERED { tl_item_broken(p); yyerrok; }
  ;

modname:
    name { $$ = $1; }
  | modname '.' name { $$ = tl_format(&p->ctx->perm, "%s.%s", $1, $3); }
  ;

fields:
    fieldtype fieldnames semi { $$ = tl_fields_typed($2, $1); }
  | fields fieldtype fieldnames semi {
        uint32_t i;
        $$ = $1;
        tl_fields_typed($3, $2);
        for (i = 0; i < $3->len; i++) PUSH($$, $3->data[i]);
    }
  ;
fieldtype: type | "auto" { $$ = tl_type_expr(p, TL_TE_AUTO, @1.begin); };
fieldnames:
    fieldname { $$ = LIST(TlFields); PUSH($$, *$1); }
  | name '[' expr ']'
        { $$ = LIST(TlFields); PUSH($$, (TlFieldDecl){.name = $1, .loc = @1.begin, .count = $3}); }
  | fieldnames ',' fieldname { $$ = $1; PUSH($$, *$3); }
  ;
fieldname:
    name { $$ = tl_field(p, $1, @1.begin, NULL); }
  | name '=' field_value { $$ = tl_field(p, $1, @1.begin, $3); }
  ;

funchead: rettype name params
        { tl_item_function(p, TL_IT_FUNCTION, $1, $2, @1.begin, @2.begin, $3); }
  ;
rettype:
    type
  | pointer
  | constpointer
  | "auto" { $$ = tl_type_expr(p, TL_TE_AUTO, @1.begin); }
  | "void" { $$ = tl_type_expr(p, TL_TE_VOID, @1.begin); }
  ;
kernelhead: "kernel" name params
        { tl_item_function(p, TL_IT_KERNEL, NULL, $2, @1.begin, @2.begin, $3); }
  ;

/* One rule for functions and kernels; the checker says which form is allowed where. */
params: '(' ')' { $$ = LIST(TlParams); } | '(' paramlist ')' { $$ = $2; };
paramlist:
    param { $$ = LIST(TlParams); PUSH($$, *$1); }
  | paramlist ',' param { $$ = $1; PUSH($$, *$3); }
  ;
param:
    type name dims { $$ = tl_param_view(p, $1, $2, @2.begin, $3, false); }
  | "const" type name dims { $$ = tl_param_view(p, $2, $3, @3.begin, $4, true); }
  | pointer name { $$ = tl_param(p, TL_PF_POINTER, $1, $2, @2.begin, NULL); }
  | constpointer name { $$ = tl_param(p, TL_PF_POINTER, $1, $2, @2.begin, NULL); }
  | type name { $$ = tl_param(p, TL_PF_VALUE, $1, $2, @2.begin, NULL); }
  | "auto" name {
        $$ = tl_param(p, TL_PF_VALUE, tl_type_expr(p, TL_TE_AUTO, @1.begin), $2, @2.begin, NULL);
    }
  | "const" type name default { $$ = tl_param(p, TL_PF_CONST, $2, $3, @3.begin, $4); }
  | "const" type name '=' list { $$ = tl_param(p, TL_PF_CONST, $2, $3, @3.begin, $5); }
  | "const" "fn" name default { $$ = tl_param(p, TL_PF_CONST_FN, NULL, $3, @3.begin, $4); }
  | "const" "type" IDENT default_type
        { $$ = tl_param(p, TL_PF_CONST_TYPE, NULL, $3, @3.begin, $4); }
  ;
default: %empty { $$ = NULL; } | '=' expr { $$ = $2; };
default_type:
    %empty { $$ = NULL; }
  | '=' type { $$ = tl_expr_typed(p, TL_EX_TYPE, $2->loc, @2, $2, NULL); }
  ;
dims: '[' extents ']' { $$ = $2; };
extents:
    extent { $$ = LIST(TlExtents); PUSH($$, *$1); }
  | extents ',' extent { $$ = $1; PUSH($$, *$3); }
  ;
extent:
    expr { $$ = tl_extent(p, NULL, $1, NULL); }
  | expr ':' expr { $$ = tl_extent(p, NULL, $1, $3); }
  | SCALAR name
        { $$ = tl_extent(p, tl_type_expr_scalar(p, @1.begin, $1), tl_expr_name(p, @2, $2), NULL); }
  | SCALAR name ':' expr
        { $$ = tl_extent(p, tl_type_expr_scalar(p, @1.begin, $1), tl_expr_name(p, @2, $2), $4); }
  ;

clauses: %empty | clauses clause { PUSH(&p->current->clauses, *$2); };
clausehead:
    "grid" { $$ = tl_clause(p, TL_CL_GRID, @1.begin); }
  | "require" { $$ = tl_clause(p, TL_CL_REQUIRE, @1.begin); }
  | "assume" { $$ = tl_clause(p, TL_CL_ASSUME, @1.begin); }
  | "key" { $$ = tl_clause(p, TL_CL_KEY, @1.begin); }
  | "alias" { $$ = tl_clause(p, TL_CL_ALIAS, @1.begin); }
  | "warps" { $$ = tl_clause(p, TL_CL_WARPS, @1.begin); }
  | "stages" { $$ = tl_clause(p, TL_CL_STAGES, @1.begin); }
  | "cluster" { $$ = tl_clause(p, TL_CL_CLUSTER, @1.begin); }
  | "persistent" { $$ = tl_clause(p, TL_CL_PERSISTENT, @1.begin); }
  | "maxreg" { $$ = tl_clause(p, TL_CL_MAXREG, @1.begin); }
  ;
clause:
    clausehead args { $$ = $1; TL_VEC_TAKE(&$$->args, $2); }
  | "tune" '(' tunes tunewhere ')' {
        $$ = tl_clause(p, TL_CL_TUNE, @1.begin);
        TL_VEC_TAKE(&$$->tunes, $3);
        $$->where = $4;
    }
  | "instantiate" '(' insts ')'
        { $$ = tl_clause(p, TL_CL_INSTANTIATE, @1.begin); TL_VEC_TAKE(&$$->variants, $3); }
  ;
tunes:
    constname "in" set { $$ = LIST(TlTunes); PUSH($$, (TlTuneItem){$1, @1.begin, *$3}); }
  | tunes ',' constname "in" set { $$ = $1; PUSH($$, (TlTuneItem){$3, @3.begin, *$5}); }
  ;
/* A constant, or a field of options: "o.inner.n". */
constname:
    name
  | constname '.' name
        { $$ = tl_intern_str(&p->ctx->strings, tl_format(&p->ctx->perm, "%s.%s", $1, $3)); }
  ;
set: '{' values comma '}' { $$ = $2; };
tunewhere: %empty { $$ = NULL; } | ';' "where" expr { $$ = $3; };
insts:
    inst { $$ = LIST(TlVariants); PUSH($$, tl_variant($1)); }
  | insts ';' inst { $$ = $1; PUSH($$, tl_variant($3)); }
  ;
inst:
    constname '=' value { $$ = LIST(TlBindings); PUSH($$, (TlBinding){$1, @1.begin, $3}); }
  | inst ',' constname '=' value { $$ = $1; PUSH($$, (TlBinding){$3, @3.begin, $5}); }
  ;

/* ---- names and types ---- */

name: IDENT | contextual;
contextual:
    "grid" | "require" | "assume" | "tune" | "key" | "instantiate" | "warps" | "stages"
  | "cluster" | "persistent" | "maxreg" | "alias" | "group" | "where" | "type"
  ;

/* A name: bound by `const type T`, by a call, or a struct's. */
type:
    SCALAR { $$ = tl_type_expr_scalar(p, @1.begin, $1); }
  | tiletype
  | "struct" IDENT { $$ = tl_type_expr_path(p, tl_expr_name(p, @2, $2), true); }
  | "struct" path { $$ = tl_type_expr_path(p, $2, true); }
  | IDENT { $$ = tl_type_expr_path(p, tl_expr_name(p, @1, $1), false); }
  | path { $$ = tl_type_expr_path(p, $1, false); }
  ;
pointer: type '*' { $$ = $1; $$->pointer = true; };
constpointer: "const" type '*' { $$ = $2; $$->pointer = $$->is_const = true; };
tiletype:
    "tile" '<' elem ',' targs '>' { $$ = tl_type_expr_tile(p, @1.begin, $3, $5); }
  | "tile" '<' elem '>' { $$ = tl_type_expr_tile(p, @1.begin, $3, NULL); }
  ;
elem:
    SCALAR { $$ = tl_type_expr_scalar(p, @1.begin, $1); }
  | IDENT { $$ = tl_type_expr_path(p, tl_expr_name(p, @1, $1), false); }
  ;
targs:
    addexpr { $$ = LIST(TlExprs); PUSH($$, $1); }
  | targs ',' addexpr { $$ = $1; PUSH($$, $3); }
  ;
casttype: SCALAR { $$ = tl_type_expr_scalar(p, @1.begin, $1); } | tiletype;

/* ---- statements ---- */

block: lbrace stmts '}' { $$ = tl_stmt_block(p, @$, $2); };
lbrace: '{' { tl_lex_open_block(p); };
stmts: %empty { $$ = LIST(TlStmts); } | stmts stmt { $$ = $1; if ($2) PUSH($$, $2); };
/* After the missing `;` of a complete statement, the statement is kept; of one that goes on behind
 * the error, what was read says nothing. */
semi: ';' { p->torn = false; } | error RECOVERED { yyerrok; };
stmt:
    block
  | ';' { $$ = tl_stmt_new(p, TL_ST_EMPTY, @1.begin, @1); }
  | error RECOVERED { $$ = tl_stmt_new(p, TL_ST_EMPTY, @$.begin, @$); yyerrok; }
  | decl semi
  | simple semi { $$ = p->torn ? tl_stmt_new(p, TL_ST_EMPTY, @1.begin, @1) : $1; }
  | "if" '(' expr ')' stmt %prec NOELSE { $$ = tl_stmt_if(p, @$, false, $3, $5, NULL); }
  | "if" '(' expr ')' stmt "else" stmt { $$ = tl_stmt_if(p, @$, false, $3, $5, $7); }
  | "static" "if" '(' expr ')' stmt %prec NOELSE { $$ = tl_stmt_if(p, @$, true, $4, $6, NULL); }
  | "static" "if" '(' expr ')' stmt "else" stmt { $$ = tl_stmt_if(p, @$, true, $4, $6, $8); }
  | loop hints stmt { $$ = tl_stmt_loop(p, $1, $2, $3); }
  | "return" semi { $$ = tl_stmt_new(p, TL_ST_RETURN, @1.begin, @1); }
  | "return" expr semi { $$ = tl_stmt_new(p, TL_ST_RETURN, @1.begin, @2); $$->value = $2; }
  | "break" semi { $$ = tl_stmt_new(p, TL_ST_BREAK, @1.begin, @1); }
  | "continue" semi { $$ = tl_stmt_new(p, TL_ST_CONTINUE, @1.begin, @1); }
  | "static_assert" args semi {
        $$ = tl_stmt_new(p, TL_ST_ASSERT, @1.begin, @$);
        TL_VEC_TAKE(&$$->args, $2);
    }
  | nestedhead block { $$ = tl_stmt_function(p, @$, $1, $2); }
  ;

/* A function within a function. The types are spelled out: after one, only what follows the name
 * tells a function from a variable. */
nestedhead:
    type name params { $$ = tl_item_nested(p, $1, $2, @2.begin, $3); }
  | pointer name params { $$ = tl_item_nested(p, $1, $2, @2.begin, $3); }
  | constpointer name params { $$ = tl_item_nested(p, $1, $2, @2.begin, $3); }
  | "auto" name params
        { $$ = tl_item_nested(p, tl_type_expr(p, TL_TE_AUTO, @1.begin), $2, @2.begin, $3); }
  | "void" name params
        { $$ = tl_item_nested(p, tl_type_expr(p, TL_TE_VOID, @1.begin), $2, @2.begin, $3); }
  ;

/* The heads of loops. The hints of a `static for` are read and mean nothing. */
loop:
    "while" '(' expr ')' { $$ = tl_stmt_new(p, TL_ST_WHILE, @1.begin, @$); $$->cond = $3; }
  | "for" '(' type name ':' expr ')' { $$ = tl_stmt_range(p, @$, false, $3, $4, @4.begin, $6); }
  | "for" '(' "auto" name ':' expr ')' {
        $$ = tl_stmt_range(p, @$, false, tl_type_expr(p, TL_TE_AUTO, @3.begin), $4, @4.begin, $6);
    }
  | "static" "for" '(' type name ':' expr ')'
        { $$ = tl_stmt_range(p, @$, true, $4, $5, @5.begin, $7); }
  | "static" "for" '(' "auto" name ':' expr ')' {
        $$ = tl_stmt_range(p, @$, true, tl_type_expr(p, TL_TE_AUTO, @4.begin), $5, @5.begin, $7);
    }
  | "for" '(' forinit ';' optexpr ';' optsimple ')' {
        $$ = tl_stmt_new(p, TL_ST_FOR, @1.begin, @$);
        $$->init = $3;
        $$->cond = $5;
        $$->update = $7;
    }
  ;
forinit: %empty { $$ = NULL; } | decl | simple;
optexpr: %empty { $$ = NULL; } | expr;
optsimple: %empty { $$ = NULL; } | simple;
hints:
    %empty { $$ = LIST(TlHints); }
  | hints hintword %prec NOARG { $$ = $1; tl_hint(p, $$, $2, @2.begin, NULL); }
  | hints hintword '(' expr ')' { $$ = $1; tl_hint(p, $$, $2, @2.begin, $4); }
  ;
hintword:
    "pipeline" { $$ = TL_TOK_PIPELINE; }
  | "unroll" { $$ = TL_TOK_UNROLL; }
  | "nounroll" { $$ = TL_TOK_NOUNROLL; }
  | "specialize" { $$ = TL_TOK_SPECIALIZE; }
  ;

decl:
    type inits { $$ = tl_stmt_decl(p, @$, $1, false, $2); }
  | "const" type inits { $$ = tl_stmt_decl(p, @$, $2, true, $3); }
  | "auto" inits { $$ = tl_stmt_decl(p, @$, tl_type_expr(p, TL_TE_AUTO, @1.begin), false, $2); }
  | "const" "auto" inits
        { $$ = tl_stmt_decl(p, @$, tl_type_expr(p, TL_TE_AUTO, @2.begin), true, $3); }
  | pointer init { $$ = tl_stmt_decl(p, @$, $1, false, tl_decls_of(p, $2)); }
  | constpointer init { $$ = tl_stmt_decl(p, @$, $1, false, tl_decls_of(p, $2)); }
  | "auto" '(' names ')' '=' expr { $$ = tl_stmt_unpack(p, @$, false, $3, $6); }
  | "const" "auto" '(' names ')' '=' expr { $$ = tl_stmt_unpack(p, @$, true, $4, $7); }
  ;
inits:
    init { $$ = LIST(TlDecls); PUSH($$, *$1); }
  | inits ',' init { $$ = $1; PUSH($$, *$3); }
  ;
init:
    name { $$ = tl_decl(p, $1, @1.begin, NULL); }
  | name '=' field_value { $$ = tl_decl(p, $1, @1.begin, $3); }
  | name '[' expr ']' { $$ = tl_decl(p, $1, @1.begin, NULL); $$->count = $3; }
  | name '[' expr ']' '=' field_value { $$ = tl_decl(p, $1, @1.begin, $6); $$->count = $3; }
  ;
field_value: expr | list;
list: '{' values_of_fields '}' {
        $$ = tl_expr_typed(p, TL_EX_TUPLE, @1.begin, @$, NULL, $2);
        $$->braces = true;
    }
  ;
values_of_fields:
    %empty { $$ = LIST(TlArgs); }
  | fieldlist comma { $$ = $1; }
  ;
%type <args> fieldlist;
fieldlist:
    value_of_field { $$ = LIST(TlArgs); PUSH($$, *$1); }
  | fieldlist ',' value_of_field { $$ = $1; PUSH($$, *$3); }
  ;
value_of_field:
    field_value { $$ = tl_arg(p, NULL, $1->loc, &(TlIndex){.at = $1}); }
  | name '=' field_value { $$ = tl_arg(p, $1, @1.begin, &(TlIndex){.at = $3}); }
  ;
comma: %empty | ',';
names:
    name { $$ = LIST(TlDecls); PUSH($$, (TlDecl){.name = $1, .loc = @1.begin}); }
  | names ',' name { $$ = $1; PUSH($$, (TlDecl){.name = $3, .loc = @3.begin}); }
  ;

simple:
    postfix { $$ = tl_stmt_expr(p, $1); }
  | postfix assignop expr { $$ = tl_stmt_assign(p, $2, @2.begin, $1, $3); }
  | "unchecked" postfix assignop expr
        { $$ = tl_stmt_assign(p, $3, @3.begin, tl_expr_unchecked(p, @1, $2), $4); }
  | postfix "++" { $$ = tl_stmt_step(p, TL_BIN_ADD, @2, $1); }
  | postfix "--" { $$ = tl_stmt_step(p, TL_BIN_SUB, @2, $1); }
  ;
assignop:
    '=' { $$ = -1; }
  | "+=" { $$ = TL_BIN_ADD; }
  | "-=" { $$ = TL_BIN_SUB; }
  | "*=" { $$ = TL_BIN_MUL; }
  | "/=" { $$ = TL_BIN_DIV; }
  | "%=" { $$ = TL_BIN_REM; }
  | "&=" { $$ = TL_BIN_AND; }
  | "|=" { $$ = TL_BIN_OR; }
  | "^=" { $$ = TL_BIN_XOR; }
  | "<<=" { $$ = TL_BIN_SHL; }
  | ">>=" { $$ = TL_BIN_SHR; }
  ;

/* ---- expressions ---- */

exprs:
    expr { $$ = LIST(TlExprs); PUSH($$, $1); }
  | exprs ',' expr { $$ = $1; PUSH($$, $3); }
  ;
expr:
    orexpr
  | orexpr '?' expr ':' expr { $$ = tl_expr_cond(p, @2.begin, $1, $3, $5); }
  | "fn" lambdaparams "=>" expr { $$ = tl_expr_fn(p, @$, $2, $4); }
  ;
lambdaparams: '(' ')' { $$ = LIST(TlDecls); } | '(' names ')' { $$ = $2; };
orexpr: andexpr | orexpr "||" andexpr { $$ = tl_expr_binary(p, TL_BIN_LOR, @2.begin, $1, $3); };
andexpr: bor | andexpr "&&" bor { $$ = tl_expr_binary(p, TL_BIN_LAND, @2.begin, $1, $3); };
bor: bxor | bor '|' bxor { $$ = tl_expr_binary(p, TL_BIN_OR, @2.begin, $1, $3); };
bxor: band | bxor '^' band { $$ = tl_expr_binary(p, TL_BIN_XOR, @2.begin, $1, $3); };
band: eq | band '&' eq { $$ = tl_expr_binary(p, TL_BIN_AND, @2.begin, $1, $3); };
eq:
    rel
  | eq "==" operand { $$ = tl_expr_binary(p, TL_BIN_EQ, @2.begin, $1, $3); }
  | eq "!=" operand { $$ = tl_expr_binary(p, TL_BIN_NE, @2.begin, $1, $3); }
  | typeval "==" operand { $$ = tl_expr_binary(p, TL_BIN_EQ, @2.begin, $1, $3); }
  | typeval "!=" operand { $$ = tl_expr_binary(p, TL_BIN_NE, @2.begin, $1, $3); }
  ;
operand: rel | typeval;
typeval: argtype { $$ = tl_expr_typed(p, TL_EX_TYPE, $1->loc, @1, $1, NULL); }
  ;
rel:
    shift
  | rel '<' shift { $$ = tl_expr_binary(p, TL_BIN_LT, @2.begin, $1, $3); }
  | rel '>' shift { $$ = tl_expr_binary(p, TL_BIN_GT, @2.begin, $1, $3); }
  | rel "<=" shift { $$ = tl_expr_binary(p, TL_BIN_LE, @2.begin, $1, $3); }
  | rel ">=" shift { $$ = tl_expr_binary(p, TL_BIN_GE, @2.begin, $1, $3); }
  ;
shift:
    addexpr
  | shift "<<" addexpr { $$ = tl_expr_binary(p, TL_BIN_SHL, @2.begin, $1, $3); }
  | shift ">>" addexpr { $$ = tl_expr_binary(p, TL_BIN_SHR, @2.begin, $1, $3); }
  ;
addexpr:
    mul
  | addexpr '+' mul { $$ = tl_expr_binary(p, TL_BIN_ADD, @2.begin, $1, $3); }
  | addexpr '-' mul { $$ = tl_expr_binary(p, TL_BIN_SUB, @2.begin, $1, $3); }
  ;
mul:
    unary
  | mul '*' unary { $$ = tl_expr_binary(p, TL_BIN_MUL, @2.begin, $1, $3); }
  | mul '/' unary { $$ = tl_expr_binary(p, TL_BIN_DIV, @2.begin, $1, $3); }
  | mul '%' unary { $$ = tl_expr_binary(p, TL_BIN_REM, @2.begin, $1, $3); }
  ;
unary:
    postfix
  | '-' unary { $$ = tl_expr_unary(p, '-', @1.begin, @$, $2); }
  | '+' unary { $$ = tl_expr_unary(p, '+', @1.begin, @$, $2); }
  | '!' unary { $$ = tl_expr_unary(p, '!', @1.begin, @$, $2); }
  | '~' unary { $$ = tl_expr_unary(p, '~', @1.begin, @$, $2); }
  | '(' casttype ')' unary { $$ = tl_expr_cast(p, (TlSpan){@1.begin, @3.end}, $2, $4); }
  | '(' mul '*' ')' unary {
        TlTypeExpr *t = tl_type_expr_pointee(p, $2, false);
        $$ = tl_expr_cast(p, (TlSpan){@1.begin, @4.end}, t, $5);
    }
  | '(' casttype '*' ')' unary {
        $2->pointer = true;
        $$ = tl_expr_cast(p, (TlSpan){@1.begin, @4.end}, $2, $5);
    }
  | '(' "const" mul '*' ')' unary {
        TlTypeExpr *t = tl_type_expr_pointee(p, $3, true);
        $$ = tl_expr_cast(p, (TlSpan){@1.begin, @5.end}, t, $6);
    }
  | '(' "const" casttype '*' ')' unary {
        $3->pointer = $3->is_const = true;
        $$ = tl_expr_cast(p, (TlSpan){@1.begin, @5.end}, $3, $6);
    }
  | "unchecked" postfix { $$ = tl_expr_unchecked(p, @1, $2); }
  ;

/* `a.b` may turn out to be a type (`geo.vec v;`), so a lone name before a dot is not an
 * expression yet. */
postfix:
    IDENT { $$ = tl_expr_name(p, @1, $1); }
  | contextual { $$ = tl_expr_name(p, @1, $1); }
  | path
  | complex
  ;
path: IDENT '.' IDENT { $$ = tl_expr_member(p, tl_expr_name(p, @1, $1), @3, $3); };
complex:
    primary
  | IDENT '.' contextual { $$ = tl_expr_member(p, tl_expr_name(p, @1, $1), @3, $3); }
  | contextual '.' name { $$ = tl_expr_member(p, tl_expr_name(p, @1, $1), @3, $3); }
  | path '.' name { $$ = tl_expr_member(p, $1, @3, $3); }
  | complex '.' name { $$ = tl_expr_member(p, $1, @3, $3); }
  | postfix args { $$ = tl_expr_call(p, $1, (TlSpan){$1->begin, @2.end}, $2); }
  | postfix '[' indices ']' { $$ = tl_expr_index(p, $1, (TlSpan){$1->begin, @4.end}, $3); }
  ;
primary:
    INTLIT { $$ = tl_expr_new(p, TL_EX_INT, @1.begin, @1); $$->u.integer = $1; }
  | FLOATLIT { $$ = tl_expr_new(p, TL_EX_FLOAT, @1.begin, @1); $$->u.number = $1; }
  | strings { $$ = tl_expr_new(p, TL_EX_STRING, @1.begin, @1); $$->u.string = $1; }
  | "true" { $$ = tl_expr_new(p, TL_EX_BOOL, @1.begin, @1); $$->u.integer = 1; }
  | "false" { $$ = tl_expr_new(p, TL_EX_BOOL, @1.begin, @1); }
  | "inf" { $$ = tl_expr_new(p, TL_EX_INF, @1.begin, @1); }
  | "nan" { $$ = tl_expr_new(p, TL_EX_NAN, @1.begin, @1); }
  | '(' expr ')' { $$ = tl_expr_parens($2, @$); }
  | '(' expr ',' exprs ')' { $$ = tl_expr_tuple(p, @1.begin, @$, tl_exprs_before(p, $2, $4)); }
  | '(' "struct" structname ')' '{' values_of_fields '}'
        { $$ = tl_expr_typed(p, TL_EX_STRUCT, @1.begin, @$, $3, $6); }
  | "in" args {
        $$ = tl_expr_call(p, tl_expr_name(p, @1, tl_intern_str(&p->ctx->strings, "in")), @$, $2);
    }
  | tiletype args { $$ = tl_expr_typed(p, TL_EX_MAKE, @1.begin, @$, $1, $2); }
  | SCALAR args {
        $$ = tl_expr_typed(p, TL_EX_MAKE, @1.begin, @$, tl_type_expr_scalar(p, @1.begin, $1), $2);
    }
  ;
%type <type> structname;
structname:
    IDENT { $$ = tl_type_expr_path(p, tl_expr_name(p, @1, $1), true); }
  | path { $$ = tl_type_expr_path(p, $1, true); }
  ;
strings: STRLIT | strings STRLIT { $$ = tl_format(&p->ctx->perm, "%s%s", $1, $2); };

indices:
    index { $$ = LIST(TlIndices); PUSH($$, *$1); }
  | indices ',' index { $$ = $1; PUSH($$, *$3); }
  ;
index:
    expr { $$ = tl_index(p, $1, NULL, NULL); }
  | expr "+:" expr { $$ = tl_index(p, $1, $3, NULL); }
  | expr "+:" expr ':' expr { $$ = tl_index(p, $1, $3, $5); }
  ;

args: '(' ')' { $$ = LIST(TlArgs); } | '(' arglist ')' { $$ = $2; };
arglist:
    arg { $$ = LIST(TlArgs); PUSH($$, *$1); }
  | arglist ',' arg { $$ = $1; PUSH($$, *$3); }
  ;
arg:
    value { $$ = tl_arg(p, NULL, $1->loc, &(TlIndex){.at = $1}); }
  | expr "+:" expr { $$ = tl_arg(p, NULL, $1->loc, &(TlIndex){$1, $3, NULL}); }
  | expr "+:" expr ':' expr { $$ = tl_arg(p, NULL, $1->loc, &(TlIndex){$1, $3, $5}); }
  | name '=' value { $$ = tl_arg(p, $1, @1.begin, &(TlIndex){.at = $3}); }
  ;
/* Where a type may stand for a value: arguments, bindings, sets. */
value: expr | typeval;
argtype: SCALAR { $$ = tl_type_expr_scalar(p, @1.begin, $1); } | tiletype;
values:
    value { $$ = LIST(TlExprs); PUSH($$, $1); }
  | values ',' value { $$ = $1; PUSH($$, $3); }
  ;

%%

/* ---- syntax errors ---- */

/* Only for "memory exhausted": what the stack can hold is over. */
static void tl_yy_error(const TlSpan *span, TlParser *p, const char *text)
{
    (void)text;
    tl_diag(&p->ctx->diags, span->begin, TL_E0793);
    p->stop = p->broken = true;
}

/* What a reader calls the tokens expected at a place. Where the mark is among them, they are
 * named by the text, and the tokens listed are left out (NULL: all but closing brackets). In
 * this order. */
typedef struct Thing {
    const char *mark, *text, *tokens;
} Thing;
#define NAMES                                                                                    \
    "|name|grid|require|assume|tune|key|instantiate|warps|stages|cluster|persistent|maxreg|alias" \
    "|group|where|type|"
static const Thing things[] = {
    {"kernel", "a declaration", NULL},
    {"return", "a statement", NULL},
    {"integer", "an expression",
     NAMES "fn|integer|number|string|true|false|inf|nan|in|unchecked|tile|scalar type|"
           "'('|'-'|'+'|'!'|'~'|"},
    {"scalar type", "a type", "|scalar type|tile|struct|auto|void|const|name|"},
    {"name", "a name", NAMES},
    {"grid", "a clause", NAMES},
    {"pipeline", "a hint", "|pipeline|unroll|nounroll|specialize|"},
    {"+=", "an assignment", "|'='|+=|-=|*=|/=|%=|&=||=|^=|<<=|>>=|++|--|"},
};
enum { NTHINGS = (int)(sizeof things / sizeof *things), SHOWN = 4 };

/* Is the symbol in the list "|a|b|c|"? */
static bool listed(const char *list, const char *symbol)
{
    size_t n = strlen(symbol);
    const char *s = list;
    while ((s = strstr(s + 1, symbol)))
        if (s[-1] == '|' && s[n] == '|') return true;
    return false;
}

static bool is_closer(const char *symbol)
{
    return !strcmp(symbol, "')'") || !strcmp(symbol, "']'") || !strcmp(symbol, "'}'");
}

typedef struct Expected {
    yysymbol_kind_t kinds[YYNTOKENS];
    int n;
} Expected;

static bool expects(const Expected *e, const char *symbol)
{
    for (int i = 0; i < e->n; i++)
        if (!strcmp(yysymbol_name(e->kinds[i]), symbol)) return true;
    return false;
}

static void drop(Expected *e, const char *tokens)
{
    int i, n = 0;
    for (i = 0; i < e->n; i++) {
        const char *symbol = yysymbol_name(e->kinds[i]);
        if (tokens ? !listed(tokens, symbol) : is_closer(symbol)) e->kinds[n++] = e->kinds[i];
    }
    e->n = n;
}

/* A comma tells least: it comes last. */
static void put_comma_last(Expected *e)
{
    for (int i = 0; i + 1 < e->n; i++)
        if (!strcmp(yysymbol_name(e->kinds[i]), "','")) {
            yysymbol_kind_t comma = e->kinds[i];
            e->kinds[i] = e->kinds[e->n - 1];
            e->kinds[e->n - 1] = comma;
        }
}

/* "an expression, ')' or ','" */
static const char *describe(TlParser *p, Expected *e)
{
    const char *parts[NTHINGS + SHOWN];
    int i, n = 0;
    TlSbuf out;
    for (i = 0; i < NTHINGS; i++) {
        if (!expects(e, things[i].mark)) continue;
        parts[n++] = things[i].text;
        drop(e, things[i].tokens);
    }
    put_comma_last(e);
    for (i = 0; i < e->n && i < SHOWN; i++) {
        const char *symbol = yysymbol_name(e->kinds[i]);
        parts[n++] = symbol[0] == '\'' ? symbol : tl_format(&p->ctx->perm, "'%s'", symbol);
    }
    if (!n) return "something else";
    tl_sbuf_init(&out, &p->ctx->perm);
    for (i = 0; i < n; i++) {
        const char *between = !i ? "" : i + 1 < n ? ", " : " or ";
        tl_sbuf_putf(&out, "%s%s", between, parts[i]);
    }
    return out.text;
}

static const char *spelling(TlParser *p, yysymbol_kind_t token)
{
    enum { LONGEST = 40 };
    const unsigned char *s = p->token_start.at;
    size_t len = (size_t)(p->cursor.at - s);
    if (token == YYSYMBOL_YYEOF) return "end of file";
    if (token == YYSYMBOL_STRLIT) return "a string";
    if (len > LONGEST) return tl_format(&p->ctx->perm, "'%.*s...'", (int)LONGEST, (const char *)s);
    return tl_format(&p->ctx->perm, "'%.*s'", (int)len, (const char *)s);
}

static bool is_word(unsigned char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const unsigned char *back_over_blanks(const unsigned char *s, const unsigned char *begin)
{
    while (s > begin && (s[-1] == ' ' || s[-1] == '\t')) s--;
    return s;
}

/* Does `(T)` stand before `at`, and nothing that could be called or indexed before that? */
static bool is_behind_cast(const unsigned char *at, const unsigned char *begin)
{
    const unsigned char *name, *s = back_over_blanks(at, begin);
    if (s == begin || *--s != ')') return false;
    s = name = back_over_blanks(s, begin);
    while (s > begin && is_word(s[-1])) s--;
    if (s == name) return false;
    s = back_over_blanks(s, begin);
    if (s == begin || *--s != '(') return false;
    s = back_over_blanks(s, begin);
    if (s > begin && s[-1] == ')') return is_behind_cast(s, begin); /* (f32)(half)x */
    return s == begin || !(is_word(s[-1]) || s[-1] == ']');
}

static bool after_cast_to_name(const TlParser *p)
{
    return is_behind_cast(p->token_start.at, p->token_start.line_start);
}

static const char *row_of(const unsigned char *begin, const unsigned char *end, char where)
{
    return tl_advice((const char *)begin, (size_t)(end - begin), where);
}

/* Words and signs that mean something else by where they stand; NULL: not here. */
static const char *advice_of_place(const TlParser *p, const Expected *e)
{
    const unsigned char *line = p->token_start.line_start,
                        *end = back_over_blanks(p->token_start.at, line);
    bool after_comma = end > line && end[-1] == ',';
    if (after_comma && strchr(")]}", p->token) && p->token) return tl_advice(",)", 2, 's');
    if (p->token == ',' && expects(e, "';'")) return tl_advice("a, b =", 6, 's');
    if (p->token == '[' && end > line && end[-1] == ']') return tl_advice("][", 2, 's');
    if (p->token == '[' && expects(e, "'{'") && end - line > 2 && !memcmp(end - 3, " in", 3))
        return tl_advice("in [", 4, 's');
    if (p->token == '[' && expects(e, "integer") && !tl_at_lambda(p)) return tl_advice("[", 1, 's');
    if (p->token == ']' && !p->current && end > line && end[-1] == '[')
        return tl_advice("[]", 2, 's');
    if (p->token == '=' && !p->current && !p->brackets.len && expects(e, "'('"))
        return tl_advice("int N =", 7, 's');
    const unsigned char *begin = end;
    while (begin > line && is_word(begin[-1])) begin--;
    if (p->token == TL_TOK_VOID && end - begin == 6 && !memcmp(begin, "kernel", 6))
        return tl_advice("kernel void", 11, 's');
    if (p->token == TL_TOK_STRUCT && end - begin == 7 && !memcmp(begin, "typedef", 7))
        return tl_advice("typedef struct", 14, 's');
    begin = begin < end ? back_over_blanks(begin, line) : line;
    if (p->token == ':' && begin > line && begin[-1] == '(') {
        end = back_over_blanks(begin - 1, line);
        if (end - line >= 3 && !memcmp(end - 3, "for", 3)) return tl_advice("for", 3, 'h');
    }
    return NULL;
}

/* Of the token found, alone or with the signs that touch it: "++", "**", `f"`. */
static const char *advice_of_token(const TlParser *p, const Expected *e)
{
    const unsigned char *line = p->token_start.line_start, *begin = p->token_start.at,
                        *end = p->cursor.at, *touching = begin;
    uint32_t n = p->brackets.len;
    if (p->token == TL_TOK_STRLIT) {
        while (touching > line && is_word(touching[-1])) touching--;
        end = begin + 1;
    } else {
        while (touching > line && strchr("*:-+", touching[-1]) && touching[-1]) touching--;
    }
    const char *found = touching < begin ? row_of(touching, end, 's') : NULL;
    if (p->token == ':' && n && p->brackets.data[n - 1].open == '[')
        return *end == ':' ? tl_advice("[::", 3, 's') : tl_advice("[:", 2, 's');
    bool same_line = p->token_start.line == p->prev_end.line;
    if (p->token == TL_TOK_IF && same_line && expects(e, "';'")) return tl_advice("a if c", 6, 's');
    if (tl_at_lambda(p)) return tl_advice("[](", 3, 's');
    bool in_body = n && p->brackets.data[n - 1].open == '{';
    if (p->token == ':' && !expects(e, "';'") && !expects(e, "return") &&
        !(in_body && expects(e, "name")))
        return NULL;
    if (p->token == ':' && *end == ':') end++;
    if (!found && p->token == TL_TOK_IDENT && expects(e, "grid") && !expects(e, "integer"))
        found = row_of(begin, end, 'n'); /* num_warps(4), as a clause */
    return found || p->token == TL_TOK_STRLIT ? found : row_of(begin, end, 's');
}

/* Of the word before the token; a place where '(' should stand has rows of its own. */
static const char *advice_of_word_before(const TlParser *p, const Expected *e)
{
    const unsigned char *line = p->token_start.line_start,
                        *end = back_over_blanks(p->token_start.at, line), *begin = end;
    while (begin > line && is_word(begin[-1])) begin--;
    return row_of(begin, end, expects(e, "'('") && e->n == 1 ? 'h' : 's');
}

static const char *advice_of_first_word(const TlParser *p)
{
    const unsigned char *begin = p->token_start.line_start, *end;
    while (begin < p->token_start.at && (*begin == ' ' || *begin == '\t')) begin++;
    for (end = begin; end < p->token_start.at && is_word(*end); end++) {}
    return row_of(begin, end, 's');
}

/* Between the parentheses of a kernel's or function's parameters, after a name alone? */
static bool in_parameters(const TlParser *p, const Expected *e)
{
    return !p->current && p->brackets.len == 1 && p->brackets.data[0].open == '(' &&
           strchr(",):=", p->token) && p->token && expects(e, "name") && !expects(e, "integer");
}

/* The text of a comment behind the token before, if it looks like an operand: it ends as statements
 * do. */
static bool ends_as_code(const TlParser *p)
{
    const TlSource *source = &p->ctx->diags.sources.data[p->unit->source];
    const unsigned char *s = (const unsigned char *)source->text, *end = p->limit;
    if (p->prev_end.line == p->token_start.line) return false;
    /* the line of the token before is above: walk back to it */
    s = p->token_start.line_start;
    for (uint32_t line = p->token_start.line; line > p->prev_end.line; line--)
        for (s--; s > (const unsigned char *)source->text && s[-1] != '\n'; s--) {}
    s += p->prev_end.col - 1;
    while (s < end && (*s == ' ' || *s == '\t')) s++;
    if (s + 2 >= end || s[0] != '/' || s[1] != '/') return false;
    const unsigned char *stop = memchr(s, '\n', (size_t)(end - s));
    stop = stop ? stop : end;
    while (stop > s && strchr(" \t\r", stop[-1]) && stop[-1]) stop--;
    return strchr(";),{", stop[-1]) && stop[-1];
}

/* What people of other languages should write here; NULL: nothing is known. */
static const char *advice_for(const TlParser *p, const Expected *e)
{
    const char *advice = advice_of_place(p, e);
    if (!advice) advice = advice_of_token(p, e);
    if (!advice) advice = advice_of_word_before(p, e);
    if (!advice) advice = advice_of_first_word(p);
    if (!advice && in_parameters(p, e)) advice = tl_advice("(parameter)", 11, 's');
    return advice;
}

static const char STRUCT_VALUE[] =
    "a struct's value is written (struct T){...}, or in its declaration: T x = {...};";

/* `(double)x`: the type in the parentheses before the token. */
static const char *advice_of_cast(const TlParser *p)
{
    const unsigned char *line = p->token_start.line_start,
                        *end = back_over_blanks(p->token_start.at, line) - 1, *begin;
    for (begin = end = back_over_blanks(end, line); begin > line && is_word(begin[-1]);) begin--;
    const char *advice = row_of(begin, end, 't');
    if (!advice && p->token == '{') return STRUCT_VALUE;
    return advice ? advice : "a cast to a named type is written cast(x, T)";
}

static const char *reserved(TlParser *p, const char *word)
{
    return tl_format(&p->ctx->perm, "%s is a reserved word", word);
}

/* What may help, after the error itself. */
static void advise(TlParser *p, TlDiag *d, const Expected *e, const char *found,
                   bool missing_semicolon)
{
    TlDiags *diags = &p->ctx->diags;
    bool keyword = p->token >= TL_TOK_SCALAR && p->token <= TL_TOK_SPECIALIZE;
    if (ends_as_code(p))
        tl_diag_note(diags, d, p->prev_end, "%s", tl_advice("//", 2, 's'));
    else if (missing_semicolon)
        tl_diag_note(diags, d, p->prev_end, "';' is missing here");
    if (p->token == '=' && (expects(e, "')'") || expects(e, "':'"))) {
        d->label = "'==' compares";
        d->fixit = "==";
    }
    bool name = keyword && expects(e, "name") && !expects(e, "integer") &&
                !expects(e, "scalar type");
    if (name && p->token == TL_TOK_IN) d->label = reserved(p, found); /* not `for i in` */
    if (diags->errors <= TL_DIAG_MAX && !d->label) d->label = advice_for(p, e);
    if (!d->label && expects(e, "==") && !expects(e, "'<'"))
        d->label = "the operand before this is a type, not a value: it can be compared";
    if (!d->label && name) d->label = reserved(p, found);
    if (!d->label && p->token == '{' && expects(e, "integer")) d->label = STRUCT_VALUE;
    if (!missing_semicolon && after_cast_to_name(p)) d->label = advice_of_cast(p);
    if (p->token == TL_TOK_END && p->brackets.len) {
        const TlBracket *b = &p->brackets.data[p->brackets.len - 1];
        tl_diag_note(diags, d, b->loc, "'%c' is opened here", b->open);
    }
}

static int yyreport_syntax_error(const yypcontext_t *context, TlParser *p)
{
    yysymbol_kind_t token = yypcontext_token(context);
    const TlSpan *span = yypcontext_location(context);
    Expected e, all;
    bool missing_semicolon;
    const char *found;
    TlDiag *d;
    if (p->stop) return 0;
    p->broken = true;
    e.n = yypcontext_expected_tokens(context, e.kinds, YYNTOKENS);
    all = e;
    missing_semicolon = expects(&e, "';'") && !expects(&e, "return") && !expects(&e, "kernel") &&
                        span->begin.line > p->prev_end.line;
    if (token != YYSYMBOL_INVALID) {
        found = spelling(p, token);
        d = tl_diag(&p->ctx->diags, span->begin, TL_E0101, describe(p, &e), found);
        advise(p, d, &all, found, missing_semicolon);
    }
    tl_lex_recover(p, missing_semicolon);
    return 0;
}
