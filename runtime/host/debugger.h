/* debugger.h: debuggers learn of code that was loaded (debugger.c). */
#ifndef TL_DEBUGGER_H
#define TL_DEBUGGER_H
#include <stddef.h>
#include <stdint.h>

typedef struct tl_debugged tl_debugged;

/* A relocatable object whose section i was loaded to address[i] (0: it was not). It is copied for
 * debuggers if it has line information. NULL: no debugger needs to hear of its end, or there is no
 * memory for it. Thread-safe. */
tl_debugged *tl_debugger_add(const void *object, size_t size, const uint64_t *address);
/* Before the code goes; accepts NULL. Thread-safe. */
void tl_debugger_remove(tl_debugged *debugged);
#endif
