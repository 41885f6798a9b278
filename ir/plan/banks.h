/* Bank conflicts of shared memory, as the emulator counts them (runtime/emu/emu_stats.c): 32 banks
 * of 4 bytes. A warp goes in parts: 32 lanes of up to 4 bytes, 16 of 8, 8 of 16. A part takes as
 * many wavefronts as distinct words that one bank has to give. Not verified for wide accesses of
 * AMD. */
#ifndef TL_BANKS_H
#define TL_BANKS_H
#include "ir/plan/layout_convert.h"
#include "ir/support/arena.h"

typedef struct TlBanks {
    uint64_t wavefronts, least; /* least: one for each part with a lane that takes part */
} TlBanks;

/* One access of a warp of at most 64 lanes: lanes of `on` go to `bytes` (1 to 16) at at[lane]. */
TlBanks tl_banks_count(const uint32_t *at, int lanes, uint64_t on, uint32_t bytes);
/* The same for addresses that are linear in the lane, in units of `unit` bytes; lanes with a bit of
 * `skip` do not take part. That the access is also XORed with a constant changes nothing. */
TlBanks tl_banks_of_map(const TlThreadMap *map, uint32_t unit, int lane_bits, uint32_t skip,
                        uint32_t bytes);
#endif
