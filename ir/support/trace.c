/* Spans of time by thread (trace.h). */
#include "ir/support/trace.h"

#include <time.h>

#include "ir/support/diag.h"
#include "ir/support/guard.h"

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- lanes ---- */

void tl_trace_init(TlTrace *trace, TlAlloc alloc)
{
    *trace = (TlTrace){.alloc = alloc};
}

void tl_trace_free(TlTrace *trace)
{
    for (TlTraceLane *lane = trace->lanes, *next; lane; lane = next) {
        TlArena arena = lane->arena; /* the lane itself lies in it */
        next = lane->next;
        tl_arena_free(&arena);
    }
    *trace = (TlTrace){.alloc = trace->alloc};
}

TlTraceLane *tl_trace_main(TlTrace *trace, const char *name)
{
    TL_ASSERT(name, "a thread without a name");
    TlArena arena;
    tl_arena_init(&arena, trace->alloc);
    TlTraceLane *lane = TL_NEW(&arena, TlTraceLane);
    *lane = (TlTraceLane){.trace = trace, .next = trace->lanes, .number = ++trace->nlanes};
    lane->arena = arena;
    trace->lanes = lane;
    lane->name = tl_format(&lane->arena, "%s", name);
    return lane;
}

TlTraceLane *tl_trace_lane(TlTraceLane *of, const char *name)
{
    return of ? tl_trace_main(of->trace, name) : NULL;
}

/* ---- spans ---- */

TlSpanMark tl_trace_begin(TlTraceLane *lane, const char *category, const char *detail,
                          const char *format, ...)
{
    if (!lane)
        return 0;
    va_list args;
    va_start(args, format);
    TlTraceSpan span = {.category = category, .outer = lane->open};
    span.name = tl_vformat(&lane->arena, format, args);
    va_end(args);
    span.detail = detail ? tl_format(&lane->arena, "%s", detail) : NULL;
    tl_vec_push(&lane->arena, &lane->spans, span);
    lane->open = lane->spans.len;
    lane->spans.data[lane->open - 1].begin = now(); /* last: what this took is not its time */
    return lane->open;
}

static void end_innermost(TlTraceLane *lane, uint64_t time)
{
    TL_ASSERT(lane->open > 0 && lane->open <= lane->spans.len,
              "span %u of %u", lane->open, lane->spans.len);
    TlTraceSpan *span = &lane->spans.data[lane->open - 1];
    span->end = time;
    lane->open = span->outer;
}

void tl_trace_end(TlTraceLane *lane, TlSpanMark mark)
{
    if (!lane)
        return;
    uint64_t time = now();
    TL_ASSERT(mark > 0 && mark <= lane->spans.len && !lane->spans.data[mark - 1].end,
              "span %u of %u is not open", mark, lane->spans.len);
    while (lane->open > mark)
        end_innermost(lane, time);
    TL_ASSERT(lane->open == mark, "span %u ends outside of its own", mark);
    end_innermost(lane, time);
}

/* ---- text ---- */

/* The name of a process, or of a thread of it. */
static void put_name(TlSbuf *out, const char *what, int process, uint32_t thread, const char *name)
{
    tl_sbuf_putf(out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%u,\"args\":{\"name\":",
                 what, process, thread);
    tl_put_json(out, name);
    tl_sbuf_puts(out, "}},\n");
}

static void put_microseconds(TlSbuf *out, const char *key, uint64_t ns)
{
    tl_sbuf_putf(out, ",\"%s\":%llu.%03u", key, (unsigned long long)(ns / 1000),
                 (unsigned)(ns % 1000));
}

static void put_span(TlSbuf *out, int process, uint32_t thread, const TlTraceSpan *s)
{
    TL_ASSERT(s->end >= s->begin, "'%s' ends before it begins", s->name);
    tl_sbuf_putf(out, "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":", s->category);
    tl_put_json(out, s->name);
    tl_sbuf_putf(out, ",\"pid\":%d,\"tid\":%u", process, thread);
    put_microseconds(out, "ts", s->begin);
    put_microseconds(out, "dur", s->end - s->begin);
    if (s->detail) {
        tl_sbuf_puts(out, ",\"args\":{\"detail\":");
        tl_put_json(out, s->detail);
        tl_sbuf_puts(out, "}");
    }
    tl_sbuf_puts(out, "},\n");
}

void tl_trace_events(TlTrace *trace, int process, const char *name, TlSbuf *out)
{
    put_name(out, "process_name", process, 0, name);
    for (TlTraceLane *lane = trace->lanes; lane; lane = lane->next) {
        uint64_t time = now();
        while (lane->open)
            end_innermost(lane, time);
        put_name(out, "thread_name", process, lane->number, lane->name);
        for (uint32_t i = 0; i < lane->spans.len; i++)
            put_span(out, process, lane->number, &lane->spans.data[i]);
    }
}
