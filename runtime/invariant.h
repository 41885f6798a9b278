/* invariant.h: what the runtime itself must keep true, whatever its user does.
 *
 * A broken invariant is our fault. A debug build (NDEBUG not defined) prints it and aborts, so that
 * a debugger or a sanitizer shows the place. A release build goes on, and the fault is never
 * silent: the function does nothing more, and TILE_INTERNAL reaches the caller with the text.
 *
 *     TL_INVARIANT(q->dev, "a queue of no device")          in a function that returns a status
 *     TL_INVARIANT_OR(NULL, n > 0, "a pool of %d", n)       in one that returns something else
 *     TL_INVARIANT_VOID(t->owners > 0, "a moment ...")      in one that returns nothing
 *     TL_DEBUG_INVARIANT(pid[0] < n, ...)                   debug builds only: between programs and
 *                                                           launches, where a test would cost time
 *     TL_EMU_INVARIANT(b, site, cond, "...")                in the emulator's threads (emu.h)
 *
 * The second and third cannot return the fault, so the thread keeps it until tl_broken_status asks:
 * tile_stream_synchronize does, a stream's thread after each record, a pool's worker after each
 * job. */
#ifndef TL_INVARIANT_H
#define TL_INVARIANT_H
#include "runtime/include/tile.h"

/* Keeps "internal error: FUNCTION: TEXT" for tl_broken_status, the first one if there are several;
 * aborts in a debug build. */
void tl_broken(const char *function, const char *format, ...)
    __attribute__((cold, format(printf, 2, 3)));
/* TILE_INTERNAL and the text of the invariant that broke in this thread, once; else TILE_OK. */
tile_status tl_broken_status(void);

#define TL_INVARIANT_ELSE(cond, what, ...)        \
    do {                                          \
        if (__builtin_expect(!(cond), 0)) {       \
            tl_broken(__func__, __VA_ARGS__);     \
            what;                                 \
        }                                         \
    } while (0)
#define TL_INVARIANT(cond, ...) TL_INVARIANT_ELSE(cond, return tl_broken_status(), __VA_ARGS__)
#define TL_INVARIANT_OR(value, cond, ...) TL_INVARIANT_ELSE(cond, return value, __VA_ARGS__)
#define TL_INVARIANT_VOID(cond, ...) TL_INVARIANT_ELSE(cond, return, __VA_ARGS__)

#ifdef NDEBUG
#define TL_DEBUG_INVARIANT(cond, ...) ((void)0)
#else
#define TL_DEBUG_INVARIANT(cond, ...) TL_INVARIANT_ELSE(cond, (void)0, __VA_ARGS__)
#endif
#endif
