/* Which registers the system saves: a file of its own, so that a test can say so
 * (test/tools/amx_emulator.c). */
#include "codegen/cache/key.h"
#include "runtime/contract/cpu_state.h"

uint64_t tl_key_saved_state(void)
{
    return tl_cpu_kept_state();
}
