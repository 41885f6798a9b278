/* Ranges on the timeline of a profiler: what is launched, loaded and compiled, by name (ranges.c).
 * Where no profiler asks for them, one load of a flag. */
#ifndef TL_RANGES_H
#define TL_RANGES_H
#include <stdatomic.h>
#include <stdbool.h>

extern atomic_bool tl_ranges_on;
/* Looks for profilers, once; a device is being opened. */
void tl_ranges_find(void);
void tl_range_push(const char *what, const char *name);
void tl_range_pop(void);

/* "name", or "what name". Ends in the same thread; ranges may contain each other. The result is
 * for tl_range_end. */
static inline bool tl_range_begin(const char *what, const char *name)
{
    bool on = atomic_load_explicit(&tl_ranges_on, memory_order_acquire);
    if (on)
        tl_range_push(what, name);
    return on;
}

static inline void tl_range_end(bool begun)
{
    if (begun)
        tl_range_pop();
}
#endif
