/* What LLVM notes about the kernels in AMD code. */
#ifndef TL_NOTES_H
#define TL_NOTES_H
#include <stdbool.h>
#include <stddef.h>

typedef struct TlNotes {
    int registers, accumulators, scalars; /* of a thread; registers: accumulators with them */
    int spilled, spilled_scalars;         /* registers */
    int private_bytes;                    /* of a thread, in memory: spills and more */
} TlNotes;

/* Of an object, linked or not. False: it says nothing of that kernel, or is damaged. */
bool tl_notes_of_object(const void *code, size_t size, const char *kernel, TlNotes *out);
/* Of assembly, which ends with a NUL: the number behind `key` among the kernel's notes; -1: it says
 * nothing of it. */
int tl_notes_in_text(const char *text, const char *kernel, const char *key);
#endif
