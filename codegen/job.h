/* One compilation, as compile.c and job_emit.c see it. */
#ifndef TL_JOB_H
#define TL_JOB_H
#include "codegen/compile.h"
#include "codegen/target/target.h"
#include "ir/ir.h"
#include "ir/support/trace.h"

typedef enum TlStage {
#define STAGE(ID, name, of, emit) TL_STAGE_##ID,
#include "codegen/stage.def"
    TL_STAGE_COUNT
} TlStage;

typedef struct TlJob {
    const tilec_options *o;
    tilec_output *out;
    TlFiles *files;
    TlCtx ctx;
    TlArena scratch;
    const TlTarget *target;
    bool emulate;
    const TlTarget *host; /* emulate: the CPU's row */
    TlStage stage;
    TlModule *module;
    struct TlProgram *program; /* of the front end */
    uint32_t left_out; /* kernels without values for their constants */
    TlSbuf depends;
    TlTrace trace;             /* has lanes when o->time_trace says so */
    bool has_ctx, io_error;
} TlJob;

/* `status`, with a text for who asked. */
tilec_status tl_job_fail(TlJob *j, tilec_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* TILEC_ERRORS when an error has been found so far; diagnostics are delivered at the end. */
tilec_status tl_job_diagnosed(const TlJob *j);
tilec_status tl_job_emit_text(TlJob *j, TlSbuf *s);
/* The module, after all passes, as the job's stage. */
tilec_status tl_job_emit(TlJob *j);
#endif
