/* Bank conflicts of one access of a warp (banks.h). */
#include "ir/plan/banks.h"

enum { BANKS = 32, WORD = 4, MOST_LANES = 64, MOST_WORDS = BANKS * 4 };

/* Lists the words of lanes from .. to - 1, each once; returns their number. */
static uint32_t words_of(const uint32_t *at, int from, int to, uint64_t on, uint32_t bytes,
                         uint32_t *words)
{
    uint32_t n = 0;
    for (int lane = from; lane < to; lane++)
        for (uint32_t w = at[lane] / WORD; (on >> lane & 1) && w * WORD < at[lane] + bytes; w++) {
            uint32_t i = 0;
            while (i < n && words[i] != w)
                i++;
            if (i == n)
                words[n++] = w;
        }
    return n;
}

static uint32_t most_in_a_bank(const uint32_t *words, uint32_t n)
{
    uint32_t per_bank[BANKS] = {0}, most = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = ++per_bank[words[i] % BANKS];
        most = k > most ? k : most;
    }
    return most;
}

TlBanks tl_banks_count(const uint32_t *at, int lanes, uint64_t on, uint32_t bytes)
{
    TlBanks c = {0, 0};
    uint32_t words[MOST_WORDS];
    TL_ASSERT(lanes <= MOST_LANES && bytes > 0 && bytes <= BANKS * WORD / 8,
              "an access of %d lanes by %u bytes", lanes, bytes);
    int part = bytes <= WORD ? BANKS : (int)(BANKS * WORD / bytes);
    for (int from = 0; from < lanes; from += part) {
        int to = from + part < lanes ? from + part : lanes;
        uint32_t n = words_of(at, from, to, on, bytes, words);
        c.wavefronts += most_in_a_bank(words, n);
        c.least += n > 0;
    }
    return c;
}

TlBanks tl_banks_of_map(const TlThreadMap *map, uint32_t unit, int lane_bits, uint32_t skip,
                        uint32_t bytes)
{
    TL_ASSERT(lane_bits >= 0 && lane_bits <= TL_MAX_LANE_BITS && unit > 0,
              "lanes of %d bits", lane_bits);
    uint32_t at[MOST_LANES];
    uint64_t on = 0;
    int lanes = 1 << lane_bits;
    TL_ASSERT(lanes <= MOST_LANES, "a warp of %d lanes", lanes);
    for (int lane = 0; lane < lanes; lane++) {
        at[lane] = tl_thread_map(map, (uint32_t)lane, 0) * unit;
        on |= (uint64_t)((lane & (int)skip) == 0) << lane;
    }
    return tl_banks_count(at, lanes, on, bytes);
}
