/* The time that each part of a compilation takes, for --time-trace: spans of time by thread, in
 * Chrome's trace event format, which Perfetto reads.
 *
 *     TlSpanMark mark = tl_trace_begin(lane, "pass", fn->name, "%s", pass->name);
 *     work();
 *     tl_trace_end(lane, mark);
 *
 * A lane belongs to one thread; it is passed along (TlCtx and TlLlvm have one), never looked up. A
 * lane that is NULL records nothing and costs one test. The spans of a lane nest or follow one
 * another: the end of a span also ends those begun in it that a fault left open. */
#ifndef TL_TRACE_H
#define TL_TRACE_H
#include "ir/support/arena.h"

typedef struct TlTraceSpan {
    const char *category, *name, *detail; /* category: a literal; detail: may be NULL */
    uint64_t begin, end;                  /* ns of a clock that all processes share; end 0: open */
    uint32_t outer;                       /* position + 1; 0: none */
} TlTraceSpan;

typedef struct TlTraceLane {
    struct TlTrace *trace;
    struct TlTraceLane *next;
    const char *name;
    uint32_t number; /* from 1 on */
    uint32_t open;   /* position + 1 of the innermost; 0: none */
    TlArena arena;   /* of the spans; the thread's own */
    TL_VEC(TlTraceSpan) spans;
} TlTraceLane;

typedef struct TlTrace {
    TlAlloc alloc;
    TlTraceLane *lanes; /* newest first */
    uint32_t nlanes;
} TlTrace;

typedef uint32_t TlSpanMark;

void tl_trace_init(TlTrace *trace, TlAlloc alloc);
void tl_trace_free(TlTrace *trace); /* and its lanes; a zeroed one too */
/* The lane of a thread that is about to start, called `name`. Only the thread that owns the trace
 * may call this; the lane is freed with the trace. Gives NULL for `of` NULL, else `of` is any lane
 * of the trace. */
TlTraceLane *tl_trace_lane(TlTraceLane *of, const char *name);
/* The first lane. */
TlTraceLane *tl_trace_main(TlTrace *trace, const char *name);

TlSpanMark tl_trace_begin(TlTraceLane *lane, const char *category, const char *detail,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
void tl_trace_end(TlTraceLane *lane, TlSpanMark mark);

/* Writes all events, each followed by a comma and a newline, as those of process number `process`,
 * called `name`. Ends open spans. */
void tl_trace_events(TlTrace *trace, int process, const char *name, TlSbuf *out);
#endif
