/* Occupancy of a multiprocessor (occupancy.h). */
#include "codegen/report/occupancy.h"

#include <limits.h>
#include <string.h>

#include "ir/support/guard.h"

typedef struct Row {
    const char *target;
    int schedulers, warps, blocks, single;
    int registers, register_unit;
    int shared, shared_unit, reserved;
} Row;

static const Row ROWS[] = {
#define OCCUPANCY(target, schedulers, warps, blocks, single, registers, register_unit, shared,     \
                  shared_unit, reserved)                                                           \
    {target,    schedulers,    warps,  blocks,      single,                                        \
     registers, register_unit, shared, shared_unit, reserved},
#include "codegen/report/occupancy.def"
};

static int round_up(int n, int unit)
{
    TL_ASSERT(unit > 0, "units of %d", unit);
    return (n + unit - 1) / unit * unit;
}

static int by_registers(const Row *r, int warps, int registers)
{
    if (registers < 0)
        return -1;
    int of_warp = round_up(registers ? registers : 1, r->register_unit);
    return r->registers / of_warp * r->schedulers / warps;
}

static int by_shared(const Row *r, uint32_t bytes)
{
    int of_block = round_up((int)bytes + r->reserved, r->shared_unit);
    return of_block ? r->shared / of_block : INT_MAX;
}

bool tl_occupancy(const TlTarget *target, uint32_t warps, int registers, uint32_t shared_bytes,
                  TlOccupancy *out)
{
    TL_ASSERT(warps > 0, "a block of no warps");
    const Row *r = NULL;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (!strcmp(ROWS[i].target, target->name))
            r = &ROWS[i];
    if (!r || warps == 0)
        return false;
    *out = (TlOccupancy){.most_warps = r->warps * r->schedulers};
    out->by[TL_LIMIT_REGISTERS] = by_registers(r, (int)warps, registers);
    out->by[TL_LIMIT_SHARED] = by_shared(r, shared_bytes);
    out->by[TL_LIMIT_WARPS] = out->most_warps / (int)warps;
    out->by[TL_LIMIT_BLOCKS] = warps == 1 ? r->single : r->blocks;
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
