/* What the walk finds out about the names of a program, for editors: where each name is declared,
 * its types, the types of expressions there. Collected if TlFrontendOptions.facts says where. */
#ifndef TL_NAME_FACTS_H
#define TL_NAME_FACTS_H
#include "frontend/ast.h"
#include "frontend/frontend.h"

enum { TL_FACT_TYPES = 3 };

/* Types of one thing in several instances: different ones, as text. */
typedef struct TlFactTypes {
    const char *text[TL_FACT_TYPES];
    uint32_t n;
    bool more; /* than are kept */
} TlFactTypes;

typedef struct TlFact {
    TlLoc loc;           /* of the name, or of an operator */
    TlLoc def;           /* of the name's declaration; line 0: it has none */
    const TlItem *item;  /* the item that it names; NULL */
    const char *builtin; /* the built-in function; NULL */
    bool fast;           /* fast.NAME */
    bool declares;       /* a variable or parameter is declared here */
    TlFactTypes types;   /* of the variable, or of the operator's result */
    TlFactTypes results; /* of calls and accesses whose name this is */
} TlFact;

struct TlFacts {
    TlArena *arena;
    TlMap by_place;
    TL_VEC(TlFact *) all;
};

void tl_facts_init(TlFacts *facts, TlArena *arena);
/* The name or operator at a position, or directly before it; NULL. */
const TlFact *tl_facts_find(const TlFacts *facts, uint32_t file, uint32_t line, uint32_t col);

/* The parsed source of a module that the program's own source imports under a name; NULL: there is
 * none. With NULL for the name, its own. */
const TlUnit *tl_program_unit(const TlProgram *p, const char *import);
/* A built-in function: its name and how its parameters are written; false past the last. */
bool tl_builtin_describe(uint32_t i, TlSbuf *out, const char **out_name);
/* The same, by its name. */
bool tl_builtin_describe_name(const char *name, TlSbuf *out);
/* What it does; NULL: there is no such function. */
const char *tl_builtin_doc(const char *name);
/* The reserved words and the words of clauses, which can also be names (`clause`), and the names of
 * types; NULL past the last. */
const char *tl_word_at(uint32_t i, bool *out_clause);
/* `kernel scale(const f32 x[M])` without clauses and body; `struct pair {...}` whole. */
void tl_ast_print_head(TlSbuf *out, const TlItem *item);
#endif
