/* cpu_state.h: the register state of x86-64 that Linux keeps for a process only where that has
 * asked for it: the data of AMX's tiles. Compiler and runtime ask wherever they look for features
 * of this machine; a process is given it once, and its threads with it. */
#ifndef TL_CPU_STATE_H
#define TL_CPU_STATE_H
#include <stdint.h>

enum {
    TL_CPU_TILE_DATA = 18,         /* bit of XCR0 */
    TL_CPU_ASK_FOR_STATE = 0x1023, /* ARCH_REQ_XCOMP_PERM, since Linux 5.16 */
};
#define TL_CPU_ASKED_STATE (UINT64_C(1) << TL_CPU_TILE_DATA)

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
/* What of `state`, bits of XCR0, this process may use. Thread-safe; of other state Linux is not
 * asked. */
static inline uint64_t tl_cpu_permitted(uint64_t state)
{
    if ((state & TL_CPU_ASKED_STATE) &&
        syscall(SYS_arch_prctl, (long)TL_CPU_ASK_FOR_STATE, (long)TL_CPU_TILE_DATA))
        state &= ~TL_CPU_ASKED_STATE;
    return state;
}
#else
static inline uint64_t tl_cpu_permitted(uint64_t state)
{
    return state & ~TL_CPU_ASKED_STATE;
}
#endif
#endif
