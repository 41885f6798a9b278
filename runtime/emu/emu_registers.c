/* emu_registers.c: how many registers threads have (setmaxnreg). The registers themselves are the
 * host's; this file only counts them. A block has as many as its threads had at the start: a
 * multiple of 8 for each thread, from the 64 Ki of a processor divided among them, at most 256.
 * Four warps release some or take some together; taking more than are free waits until others
 * release theirs. */
#include <inttypes.h>

#include "runtime/emu/emu.h"

enum {
    FILE_REGISTERS = 64 * 1024,
    UNIT = 8,
    FEWEST = 24,
    MOST_REGISTERS = 256,
    GROUP = 128,
    MOST_SPINS = 64
};

static uint32_t at_launch(const tl_emu_block *b)
{
    uint32_t n = FILE_REGISTERS / b->nthreads / UNIT * UNIT;
    return n < MOST_REGISTERS ? n : MOST_REGISTERS;
}

void tl_emu_registers_reset(tl_emu_block *b)
{
    for (uint32_t i = 0; i < TL_EMU_GROUPS; i++)
        b->registers[i] = at_launch(b);
}

/* Of the threads of one lane of each group: registers that nobody has. */
static int64_t unused(const tl_emu_block *b)
{
    uint32_t groups = b->nthreads / GROUP;
    int64_t n = (int64_t)groups * at_launch(b);
    for (uint32_t i = 0; i < groups; i++)
        n -= b->registers[i];
    return n;
}

static void check(tl_emu_block *b, uint32_t site, uint32_t has, uint32_t n, bool more)
{
    bool fine = n % UNIT == 0 && n >= FEWEST && n <= MOST_REGISTERS && b->nthreads % GROUP == 0;
    if (fine && (more ? n >= has : n <= has))
        return;
    tl_emu_complain(b, TL_RUN_BOUNDS, site,
                    "%" PRIu32 " registers are not %s than the %" PRIu32 " that these threads have"
                    "%s",
                    n, more ? "more" : "fewer", has,
                    fine ? "" : ", or no number that there can be");
}

/* The first thread of the four warps speaks for them. */
void tl_emu_registers(uint32_t site, uint32_t n, uint32_t more)
{
    tl_emu_block *b = tl_emu_now;
    uint32_t group = b->current->index / GROUP, spins = 0, ended = b->ended;
    tl_emu_count(b, site, TL_LEAF_REGISTERS);
    if (b->current->index % GROUP)
        return;
    uint32_t has = b->registers[group];
    check(b, site, has, n, more);
    int64_t before = unused(b);
    while (more && unused(b) < (int64_t)n - has) {
        spins = unused(b) == before && b->ended == ended ? spins + 1 : 0;
        before = unused(b);
        ended = b->ended;
        if (spins > MOST_SPINS)
            tl_emu_complain(b, TL_RUN_DEADLOCK, site,
                            "nobody gives back the registers that these threads wait for");
        tl_emu_spin(b);
    }
    b->registers[group] = n;
}
