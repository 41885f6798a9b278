/* cpu_state.h: the register state of x86-64 that the system keeps. The data of AMX's tiles Linux
 * keeps for a process only where that has asked for it: compiler and runtime ask wherever they look
 * for features of this machine; a process is given it once, and its threads with it. */
#ifndef TL_CPU_STATE_H
#define TL_CPU_STATE_H
#include <stdint.h>

enum {
    TL_CPU_TILE_DATA = 18,         /* bit of XCR0 */
    TL_CPU_APX_DATA = 19,          /* likewise: registers 16 to 31 */
    TL_CPU_ASK_FOR_STATE = 0x1023, /* ARCH_REQ_XCOMP_PERM, since Linux 5.16 */
};
#define TL_CPU_ASKED_STATE (UINT64_C(1) << TL_CPU_TILE_DATA)
#define TL_CPU_APX_STATE   (UINT64_C(1) << TL_CPU_APX_DATA)

#if defined(__x86_64__)
#include <cpuid.h>
/* XCR0; 0 if that is not known. */
static inline uint64_t tl_cpu_kept_state(void)
{
    unsigned a, b, c, d, low = 0, high = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE))
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
#else
static inline uint64_t tl_cpu_kept_state(void)
{
    return 0;
}
#endif

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
