/* explain_json.h: reports on kernels as JSON: tilec explain --json, and what its page is drawn from
 * (explain_json.c). */
#ifndef TL_EXPLAIN_JSON_H
#define TL_EXPLAIN_JSON_H
#include "ir/support/arena.h"
#include "tools/explain_launch.h"
#include "tools/tilec_options.h"

/* A document, as it grows: begin, one target after another, end. Text is in `out`; no "<" is in it,
 * so that it may stand in a page. */
typedef struct ExplainJson {
    TlSbuf *out;
    TlSbuf sources; /* of all targets: each file once */
    TL_VEC(const char *) paths;
    TlArena *arena;
    size_t ntargets;
} ExplainJson;

/* grid: that of the command line; NULL. */
void explain_json_begin(ExplainJson *j, TlArena *arena, TlSbuf *out, const char *input,
                        const char *grid);
/* counted: what the emulator said of a run, all 0 if there was none. */
void explain_json_target(ExplainJson *j, const tilec_report *report, const RunCounted *counted,
                         const ExplainLaunch *launch);
void explain_json_end(ExplainJson *j);
#endif
