/* profiler.h: perf learns of code that was loaded, by TILE_PERF (profiler.c). */
#ifndef TL_PROFILER_H
#define TL_PROFILER_H
#include <stdint.h>

/* A relocatable object, checked by elf.c, whose section i was loaded to address[i] (0: it was not).
 * What cannot be written is not there: a profile without names is no failure of the program.
 * Thread-safe. */
void tl_profiler_add(const char *object, const uint64_t *address);
#endif
