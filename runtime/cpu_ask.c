/* cpu_ask.c: what a CPU of x86-64 says of itself. */
#include "runtime/cpu_ask.h"

#if defined(__x86_64__)
#include <cpuid.h>

bool tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    return __get_cpuid_count(leaf, sub, &out[0], &out[1], &out[2], &out[3]) != 0;
}

uint64_t tl_cpu_saved_state(void)
{
    uint32_t r[4], low, high;
    if (!__get_cpuid(1, &r[0], &r[1], &r[2], &r[3]) || !(r[2] & bit_OSXSAVE))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
#else
bool tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    (void)leaf, (void)sub, (void)out;
    return false;
}

uint64_t tl_cpu_saved_state(void)
{
    return 0;
}
#endif
