/* What compile.c, the compiler's entry, and fat.c share. */
#ifndef TL_COMPILE_H
#define TL_COMPILE_H
#ifndef TILE_UNSTABLE
#define TILE_UNSTABLE
#endif
#include "codegen/include/tilec.h"
#include "codegen/source.h"
#include "codegen/target/worker.h"

struct tilec_output {
    TlArena arena;
    const void *data;
    size_t size;
    const char *message, *depends;
    const char *events, *trace; /* of tl_trace_events; the same as a whole; NULL: not asked for */
    const tilec_report *report; /* in the arena */
    const tilec_tuning *tunings;
    size_t ntunings;
};

/* A compilation for one target or several, without the cache: tilec_compile_source with complete
 * options. name NULL: an error. files: what is known of imports; may be NULL. */
tilec_status tl_compile(const char *name, const char *text, size_t size,
                        const tilec_options *options, TlFiles *files, tilec_output **out_output);
/* The same when options, complete, have a list as target: image and obj hold one image per target,
 * in the order of the list; other stages are the first target's. */
tilec_status tl_compile_fat(const char *name, const char *text, size_t size,
                            const tilec_options *options, TlFiles *files,
                            tilec_output **out_output);
/* NULL: no memory. */
tilec_output *tl_output_new(const tilec_options *options);
/* One with nothing but a message, of a format with two texts; without memory for that, not even
 * with this. NULL: no memory. */
tilec_output *tl_output_refusal(const tilec_options *options, const char *format, const char *what,
                                const char *why);
/* A copy of `data` as the output's, aligned and ended as tilec_output_data promises; may fault. */
void tl_output_set(tilec_output *out, const void *data, size_t size);
/* Events as tl_trace_events gives them become the output's trace; may fault. */
void tl_output_set_trace(tilec_output *out, const char *events);
#endif
