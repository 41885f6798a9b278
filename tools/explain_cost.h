/* explain_cost.h: what kernels cost, as text: instructions, roofs, hints, forms. */
#ifndef TL_EXPLAIN_COST_H
#define TL_EXPLAIN_COST_H
#include <stdbool.h>
#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"

/* The forms of the kernel whose last one is `last`, if there are several: what each asks, what it
 * costs beside the best. */
void explain_forms(const tilec_report *r, const tilec_report_kernel *last);
void explain_mix(const tilec_report_kernel *k);
void explain_roofs(const tilec_report_kernel *k);
/* `input`: positions in other files are shown with their names. */
void explain_hints(const tilec_report_kernel *k, const char *input);
#endif
