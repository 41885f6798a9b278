/* cpu_ask.c: what a CPU of x86-64 says of itself. */
#include "runtime/cpu_ask.h"
#include "runtime/contract/cpu_state.h"

#if defined(__x86_64__)
#include <cpuid.h>

bool tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    return __get_cpuid_count(leaf, sub, &out[0], &out[1], &out[2], &out[3]) != 0;
}
#else
bool tl_cpu_ask(uint32_t leaf, uint32_t sub, uint32_t out[4])
{
    (void)leaf, (void)sub, (void)out;
    return false;
}
#endif

uint64_t tl_cpu_saved_state(void)
{
    return tl_cpu_kept_state();
}
