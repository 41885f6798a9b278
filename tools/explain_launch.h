/* explain_launch.h: what a launch with given arguments costs at least (explain_launch.c). */
#ifndef TL_EXPLAIN_LAUNCH_H
#define TL_EXPLAIN_LAUNCH_H
#include "codegen/report/roof.h"
#include "ir/support/arena.h"
#include "tools/tilec_options.h"

typedef struct ExplainLaunch {
    const tilec_report_kernel *k; /* the form that runs; NULL: none, and nothing below is set */
    double programs;
    TlLaunchTime time;
    double flops, bytes;          /* of all programs; of all arrays, each once */
    bool assumed;                 /* some loop's iterations are not known */
    double emulated;              /* seconds that the emulator will take, roughly */
} ExplainLaunch;

void explain_launch(const tilec_report *r, const RunCounted *launch, ExplainLaunch *out);
void explain_launch_text(const tilec_report *r, const ExplainLaunch *l);
void explain_launch_json(TlSbuf *out, const ExplainLaunch *l);
#endif
