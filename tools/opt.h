/* Inside of tile-opt: the parts of the program. */
#ifndef TL_OPT_H
#define TL_OPT_H
#include "ir/ir.h"

/* opt_list.c */
void opt_list_passes(TlSbuf *out, bool markdown);
void opt_list_ops(TlSbuf *out, bool markdown);

/* opt_run.c: kernels in the interpreter on made-up arguments, which depend on nothing but the
 * kernel's parameters and `text`: its line "// ARGS: x=[5,37] n=37 p=4096 grid=3,2 fill=exact" says
 * what is not to be the default. */
typedef struct OptRun {
    TlArena *arena;
    const char *text; /* with the ARGS line */
    const char *fill; /* random, special or exact; NULL: as ARGS says, else random */
    TlSbuf *report;   /* what is to be printed */
} OptRun;
bool opt_run_show(OptRun *run, const TlModule *m); /* prints the memory afterwards */
/* false: a difference, reported */
bool opt_run_same(OptRun *run, const TlModule *m, const TlModule *reference);
#endif
