/* Guards: how "we are wrong" and "out of memory" leave deep code without exit or abort.
 * A public entry point sets a guard; tl_fault unwinds to the innermost one of this thread.
 *
 *     TlGuard g;
 *     if (TL_GUARD(&g)) { work(); tl_guard_pop(&g); return OK; }
 *     else { ... g.fault, g.text ...; the guard is already popped }
 */
#ifndef TL_GUARD_H
#define TL_GUARD_H
#include <setjmp.h>
#include <stdbool.h>

typedef enum TlFault {
    TL_FAULT_NONE,
    TL_FAULT_MEMORY, /* an arena's: all that was made so far can be freed */
    TL_FAULT_INTERNAL,
    TL_FAULT_LLVM, /* these two in LLVM: what it had in hand is lost */
    TL_FAULT_LLVM_MEMORY
} TlFault;

static inline bool tl_fault_is_memory(TlFault fault)
{
    return fault == TL_FAULT_MEMORY || fault == TL_FAULT_LLVM_MEMORY;
}
static inline bool tl_fault_is_llvm(TlFault fault)
{
    return fault == TL_FAULT_LLVM || fault == TL_FAULT_LLVM_MEMORY;
}

typedef struct TlGuard {
    jmp_buf env;
    struct TlGuard *outer;
    TlFault fault;
    char text[512];
    const char *where; /* pass or phase that ran, for the reproducer; may be NULL */
} TlGuard;

void tl_guard_push(TlGuard *g);
void tl_guard_pop(TlGuard *g);
TlGuard *tl_guard_current(void); /* NULL when none is set on this thread */
_Noreturn void tl_fault(TlFault fault, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define TL_GUARD(g) (tl_guard_push(g), setjmp((g)->env) == 0)

/* An invariant of ours. TL_ASSERT(v->id < n, "value %u out of range", v->id); */
#define TL_ASSERT(cond, ...)                        \
    do {                                            \
        if (!(cond)) tl_fault(TL_FAULT_INTERNAL, __VA_ARGS__); \
    } while (0)
#define TL_UNREACHABLE(...) tl_fault(TL_FAULT_INTERNAL, __VA_ARGS__)
#endif
