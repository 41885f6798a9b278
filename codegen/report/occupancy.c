/* Occupancy of a multiprocessor (occupancy.h). */
#include "codegen/report/occupancy.h"

#include <limits.h>

#include "ir/support/guard.h"

static int round_up(int n, int unit)
{
    TL_ASSERT(unit > 0, "units of %d", unit);
    return (n + unit - 1) / unit * unit;
}

static int by_registers(const TlTarget *t, int warps, int registers)
{
    if (registers < 0)
        return -1;
    int of_warp = round_up(registers ? registers : 1, t->file_unit);
    return t->file / of_warp * t->schedulers / warps;
}

static int by_shared(const TlTarget *t, uint32_t bytes)
{
    int of_block = round_up((int)bytes + t->shared_reserved, t->shared_unit);
    return of_block ? t->all_shared / of_block : INT_MAX;
}

bool tl_occupancy(const TlTarget *target, uint32_t warps, int registers, uint32_t shared_bytes,
                  TlOccupancy *out)
{
    TL_ASSERT(warps > 0, "a block of no warps");
    if (!tl_target_is_gpu(target) || warps == 0)
        return false;
    *out = (TlOccupancy){.most_warps = target->warps * target->schedulers};
    out->by[TL_LIMIT_REGISTERS] = by_registers(target, (int)warps, registers);
    out->by[TL_LIMIT_SHARED] = by_shared(target, shared_bytes);
    out->by[TL_LIMIT_WARPS] = out->most_warps / (int)warps;
    out->by[TL_LIMIT_BLOCKS] = warps == 1 ? target->single_blocks : target->blocks;
    out->blocks = INT_MAX;
    for (int i = 0; i < TL_LIMIT_COUNT; i++)
        if (out->by[i] >= 0 && out->by[i] < out->blocks)
            out->blocks = out->by[i];
    out->warps = out->blocks * (int)warps;
    return true;
}

const char *tl_limit_name(TlLimit limit)
{
    TL_ASSERT((unsigned)limit < 8, "limit %d", (int)limit);
    switch (limit) {
    case TL_LIMIT_REGISTERS: return "registers";
    case TL_LIMIT_SHARED: return "shared memory";
    case TL_LIMIT_WARPS: return "warps";
    case TL_LIMIT_BLOCKS: return "blocks";
    case TL_LIMIT_COUNT: break;
    }
    TL_UNREACHABLE("limit %d", (int)limit);
}
