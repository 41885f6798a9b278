/* Avoidable costs (explain_hints.c, explain_slow.c): several functions find them, and each prices
 * what it finds; cheap ones are not reported. */
#ifndef TL_HINTS_H
#define TL_HINTS_H
#include "codegen/report/explain.h"

typedef enum TlHintId {
#define HINT(ID, ...) TL_HINT_##ID,
#include "codegen/report/hint.def"
    TL_HINT_COUNT
} TlHintId;

typedef struct TlHints {
    TlExplain *e;
    const char *target;
    double issue; /* cycles of a multiprocessor for one instruction of one warp */
    double roofs[TL_ROOF_COUNT], busy; /* of the program; the highest of them */
    TL_VEC(tilec_report_hint) rows;    /* text: behind the subjects; */
    TL_VEC(const char *) subjects;     /* which are here */
    TL_VEC(TlHintId) ids;
} TlHints;

/* subject: what it is about, "A f16"; "": the text says it. */
typedef struct TlHintText {
    const char *subject, *text, *help; /* help: NULL: the table's */
} TlHintText;

/* Adds what costs so many cycles of a program; to what is the same at that line, its subject and
 * its cycles. */
void tl_explain_hint(TlHints *h, TlHintId id, tilec_report_position at, double cycles,
                     TlHintText words);
/* How often a block does something, with its share in percent. */
double tl_hint_runs(const TlHints *h, int loop, uint32_t share);
void tl_hints_of_ops(TlHints *h); /* explain_slow.c: from the ops, not from the report's rows */
#endif
