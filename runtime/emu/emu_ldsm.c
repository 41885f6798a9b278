/* emu_ldsm.c: loads of matrices by a warp (ldmatrix), and stores (stmatrix): the last lane to come
 * does it for all.
 *
 * Lanes bring the offsets of rows of 16 bytes, lane i that of row i: of 8 rows to a matrix, or of
 * 16, where bytes are transposed. Each lane gets, or brings, a word for 8 rows. */
#include "runtime/emu/emu.h"

typedef uint32_t v2 __attribute__((vector_size(8)));
typedef uint32_t v4 __attribute__((vector_size(16)));

enum { ROWS = 8, ROW_BYTES = 16, LANES = 32, MOST_WORDS = 4 };

typedef struct part { /* of one lane */
    tl_leaf leaf;
    uint32_t site, row, words[MOST_WORDS];
} part;

/* Where the bytes of a word lie: the first, and how far on those are whose number has bit 0, bit
 * 1. */
typedef struct byte_steps {
    uint32_t row, column, rows[2], columns[2];
} byte_steps;

static byte_steps steps_of_bytes(tl_leaf_family family, uint32_t k, uint32_t lane)
{
    uint32_t group = lane >> 2, place = lane & 3, first = ROWS * k;
    if (family == TL_LEAF_FAMILY_LDSM_T || family == TL_LEAF_FAMILY_STSM_T)
        return (byte_steps){first + 2 * place, 2 * group, {0, 1}, {1, 0}};
    if (family == TL_LEAF_FAMILY_LDSM_8)
        return (byte_steps){2 * ROWS * (k / 2) + 4 * place, group + 8 * (k % 2), {1, 2}, {0, 0}};
    if (family == TL_LEAF_FAMILY_STSM_8)
        return (byte_steps){first + 2 * place, group, {1, 0}, {0, 8}};
    return (byte_steps){first + group, 4 * place, {0, 0}, {1, 2}};
}

static char *byte_at(char (*rows)[ROW_BYTES], const byte_steps *s, uint32_t i)
{
    uint32_t odd = i & 1, high = i >> 1;
    return &rows[s->row + odd * s->rows[0] + high * s->rows[1]]
                [s->column + odd * s->columns[0] + high * s->columns[1]];
}

static void act(tl_emu_block *b, void *const *mine)
{
    const part *first = mine[0];
    const tl_leaf_row *row = tl_leaf_info(first->leaf);
    uint32_t words = row->family == TL_LEAF_FAMILY_LDSM_8 ? 2 * row->size : row->size;
    TL_EMU_INVARIANT(b, first->site, words > 0 && words <= MOST_WORDS && b->lanes == LANES,
                     "%u words for %u lanes", words, b->lanes);
    char rows[LANES][ROW_BYTES] = {{0}};
    uint32_t offsets[LANES], thread = b->current->index / LANES * LANES;
    bool stores = tl_leaf_is_stsm(first->leaf), allowed[LANES];
    for (uint32_t i = 0; i < ROWS * words; i++)
        offsets[i] = ((const part *)mine[i])->row;
    tl_emu_block_matrices(b->watch, first->site, thread, words, stores, offsets, allowed);
    _Static_assert(LANES == ROWS * MOST_WORDS, "each lane brings one row of the most matrices");
    for (uint32_t i = 0; i < ROWS * words && !stores; i++)
        if (allowed[i])
            memcpy(rows[i], b->shared + offsets[i], ROW_BYTES);
    for (uint32_t i = 0; i < LANES; i++)
        for (uint32_t k = 0; k < words; k++) {
            char *word = (char *)&((part *)mine[i])->words[k];
            byte_steps s = steps_of_bytes(row->family, k, i);
            for (uint32_t n = 0; n < sizeof(uint32_t); n++) {
                char *byte = byte_at(rows, &s, n);
                *(stores ? byte : &word[n]) = *(stores ? &word[n] : byte);
            }
        }
    for (uint32_t i = 0; i < ROWS * words && stores; i++)
        if (allowed[i])
            memcpy(b->shared + offsets[i], rows[i], ROW_BYTES);
}

static part load(tl_leaf leaf, uint32_t site, uint32_t row)
{
    part p = {.leaf = leaf, .site = site, .row = row};
    tl_emu_meet_warp(tl_emu_now, leaf, site, 0, &p, act);
    return p;
}

static void store(tl_leaf leaf, uint32_t site, uint32_t row, const uint32_t *words)
{
    part p = {.leaf = leaf, .site = site, .row = row};
    memcpy(p.words, words, sizeof p.words);
    tl_emu_meet_warp(tl_emu_now, leaf, site, 0, &p, act);
}

#define MATRICES(name, ID)                                                                         \
    uint32_t tl_emu_##name##_1(uint32_t site, uint32_t slot, uint32_t row)                         \
    {                                                                                              \
        return load(TL_LEAF_##ID##_1, site, slot + row).words[0];                                  \
    }                                                                                              \
    v2 tl_emu_##name##_2(uint32_t site, uint32_t slot, uint32_t row)                               \
    {                                                                                              \
        part p = load(TL_LEAF_##ID##_2, site, slot + row);                                         \
        return (v2){p.words[0], p.words[1]};                                                       \
    }                                                                                              \
    v4 tl_emu_##name##_4(uint32_t site, uint32_t slot, uint32_t row)                               \
    {                                                                                              \
        part p = load(TL_LEAF_##ID##_4, site, slot + row);                                         \
        return (v4){p.words[0], p.words[1], p.words[2], p.words[3]};                               \
    }
MATRICES(ldsm, LDSM)
MATRICES(ldsm_t, LDSM_T)

#define OF_BYTES(n, type, ...)                                                                     \
    type tl_emu_ldsm_8_##n(uint32_t site, uint32_t slot, uint32_t row)                             \
    {                                                                                              \
        part p = load(TL_LEAF_LDSM_8_##n, site, slot + row);                                       \
        return (type){__VA_ARGS__};                                                                \
    }
OF_BYTES(1, v2, p.words[0], p.words[1])
OF_BYTES(2, v4, p.words[0], p.words[1], p.words[2], p.words[3])

#define STORED(name, ID)                                                                           \
    void tl_emu_##name##_1(uint32_t site, uint32_t slot, uint32_t row, uint32_t a)                 \
    {                                                                                              \
        store(TL_LEAF_##ID##_1, site, slot + row, (uint32_t[MOST_WORDS]){a});                      \
    }                                                                                              \
    void tl_emu_##name##_2(uint32_t site, uint32_t slot, uint32_t row, uint32_t a, uint32_t c)     \
    {                                                                                              \
        store(TL_LEAF_##ID##_2, site, slot + row, (uint32_t[MOST_WORDS]){a, c});                   \
    }                                                                                              \
    void tl_emu_##name##_4(uint32_t site, uint32_t slot, uint32_t row, uint32_t a, uint32_t c,     \
                           uint32_t d, uint32_t e)                                                 \
    {                                                                                              \
        store(TL_LEAF_##ID##_4, site, slot + row, (uint32_t[MOST_WORDS]){a, c, d, e});             \
    }
STORED(stsm, STSM)
STORED(stsm_t, STSM_T)
STORED(stsm_8, STSM_8)
