/* Which registers the system saves: a file of its own, so that a test can say so
 * (test/tools/amx_emulator.c). */
#include "codegen/cache/key.h"

#if defined(__x86_64__)
#include <cpuid.h>

uint64_t tl_key_saved_state(void)
{
    unsigned a, b, c, d, low = 0, high = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE))
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
#else
uint64_t tl_key_saved_state(void)
{
    return 0;
}
#endif
