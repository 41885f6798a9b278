/* What the compiler reports on the kernels that it made (tilec_output_report): collected from the
 * laid-out IR, the plans that the lowering follows, the analyses, and the target's tools. Nothing
 * here decides anything. */
#ifndef TL_EXPLAIN_H
#define TL_EXPLAIN_H
#include "codegen/gen/codegen.h"
#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"
#include "codegen/report/mix.h"
#include "codegen/report/roof.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/shared_life.h"

/* The report of kernels as tl_gpu_compile made them. code: PTX text or a linked code object; NULL:
 * neither is there, registers stay unknown. The report is in `out`, nothing of it elsewhere. */
const tilec_report *tl_explain(TlCtx *ctx, const TlTarget *target, const TlKernelCodes *kernels,
                               const void *code, size_t size, TlArena *out, TlArena *scratch);

/* ---- shared by the explain_*.c files ---- */
typedef struct TlExplain {
    TlCtx *ctx;
    const TlTarget *target;
    TlArena *out, *scratch;
    const TlFn *fn;
    const TlAxisInfo *axis;
    bool is_checked;        /* compiled with --check */
    tilec_report_kernel *k; /* being filled */
    TL_VEC(const TlOp *) loops; /* as k->loops has them, */
    TL_VEC(const TlOp *) made;  /* and behind them those that the lowering makes for these ops */
    tilec_report_loop *loop_rows; /* which are these */
    TlPositions order;
    TlMap buffers; /* op to its number in k->buffers */
    TL_VEC(uint32_t) sources; /* files of positions so far, by index in the context's table */
} TlExplain;

tilec_report_position tl_explain_position(TlExplain *e, TlLoc loc);
uint32_t tl_explain_loops(const TlOp *op); /* how many are around it */
/* "then" or "else" when it is in an if, inside of its innermost loop; else "". */
const char *tl_explain_branch(const TlOp *op);
const char *tl_explain_keep(const TlExplain *e, const char *text);
/* What an axis of a view is as long as, in words: the name of an extent, a number. */
const char *tl_explain_extent(const TlExplain *e, const TlValue *view, uint32_t axis);
/* The name of the parameter that a view or pointer comes from; "". */
const char *tl_explain_param(const TlExplain *e, const TlValue *base);
/* The innermost loop around an op, in e->loops; -1: none. */
int tl_explain_loop(const TlExplain *e, const TlOp *op);
/* In percent, for a branch as above, or "whole" or "part" of a copy in two versions. */
uint32_t tl_explain_share(const char *branch);
/* The buffer that an op has for itself, or an alloc makes: in k->buffers; -1: none. */
int tl_explain_buffer(const TlExplain *e, const TlOp *op);
/* The load whose elements a put brings to a buffer; NULL: they are computed. */
const TlOp *tl_explain_load_of(const TlOp *put);
/* explain_schedule.c: how many iterations before its use a load, copy or put is begun; waits. */
uint32_t tl_explain_ahead(const TlOp *op);
void tl_explain_waits(TlExplain *e);
void tl_explain_lines(TlExplain *e); /* explain_lines.c */
void tl_explain_work(TlExplain *e); /* explain_work.c: sums of what is known by then */
/* explain_trips.c: what the iterations of a loop depend on, if it is an extent. */
void tl_explain_trips(const TlExplain *e, const TlOp *loop, tilec_report_loop *out);
void tl_explain_accesses(TlExplain *e); /* explain_access.c */
/* explain_mix.c: the kernel's instructions as the target's tools show them; NULL: nobody does. */
void tl_explain_mix(TlExplain *e, const TlInsns *code, const char *from);
void tl_explain_roofs(TlExplain *e); /* explain_roof.c: from all that is known by then */
void tl_explain_hints(TlExplain *e); /* explain_hints.c: likewise, and from the roofs */
void tl_explain_exchanges(TlExplain *e); /* explain_exchange.c */
#endif
