/* Configurations of `tune` in a compilation (compile_tune.c). */
#ifndef TL_COMPILE_TUNE_H
#define TL_COMPILE_TUNE_H
#include "codegen/job.h"
#include "frontend/frontend.h"

/* The kernel's instances, added to the job's module: tl_frontend_lower, with the configuration that
 * the options name, or with those that tuning found. */
TlInstantiate tl_job_instantiate(TlJob *j, const char *name, const char **out_message);
/* Fills in the output's tunings. */
void tl_job_list_tunings(TlJob *j);
#endif
