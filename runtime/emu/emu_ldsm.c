/* emu_ldsm.c: loads of matrices by a warp (ldmatrix), and stores (stmatrix): the last lane to come
 * does it for all.
 *
 * Lanes 8i .. 8i + 7 bring the offsets of the rows of matrix i, 16 bytes each; all lanes get a word
 * of each matrix, or bring one. */
#include "runtime/emu/emu.h"

typedef uint32_t v2 __attribute__((vector_size(8)));
typedef uint32_t v4 __attribute__((vector_size(16)));

enum { ROWS = 8, ROW_BYTES = 16, LANES = 32, MOST_MATRICES = 4 };

typedef struct part { /* of one lane */
    tl_leaf leaf;
    uint32_t site, row, words[MOST_MATRICES];
} part;

typedef struct matrix {
    char rows[ROWS][ROW_BYTES];
} matrix;

static uint32_t word_of(const matrix *m, uint32_t lane, bool trans)
{
    uint32_t word, group = lane >> 2, column = lane & 3;
    uint16_t low, high;
    memcpy(&word, m->rows[group] + 4 * column, sizeof word);
    if (!trans)
        return word;
    memcpy(&low, m->rows[2 * column] + 2 * group, sizeof low);
    memcpy(&high, m->rows[2 * column + 1] + 2 * group, sizeof high);
    return (uint32_t)high << 16 | low;
}

static void put_word(matrix *m, uint32_t lane, bool trans, uint32_t word)
{
    uint32_t group = lane >> 2, column = lane & 3;
    uint16_t low = (uint16_t)word, high = (uint16_t)(word >> 16);
    if (!trans) {
        memcpy(m->rows[group] + 4 * column, &word, sizeof word);
        return;
    }
    memcpy(m->rows[2 * column] + 2 * group, &low, sizeof low);
    memcpy(m->rows[2 * column + 1] + 2 * group, &high, sizeof high);
}

static void put_matrix(tl_emu_block *b, void *const *mine, uint32_t k, const uint32_t *offsets,
                       const bool *allowed)
{
    const part *first = mine[0];
    bool trans = tl_leaf_info(first->leaf)->family == TL_LEAF_FAMILY_STSM_T;
    matrix m;
    for (uint32_t i = 0; i < LANES; i++)
        put_word(&m, i, trans, ((const part *)mine[i])->words[k]);
    for (uint32_t i = ROWS * k; i < ROWS * (k + 1); i++)
        if (allowed[i])
            memcpy(b->shared + offsets[i], m.rows[i % ROWS], ROW_BYTES);
}

static void act(tl_emu_block *b, void *const *mine)
{
    const part *first = mine[0];
    const tl_leaf_row *row = tl_leaf_info(first->leaf);
    bool trans = row->family == TL_LEAF_FAMILY_LDSM_T, allowed[LANES];
    uint32_t n = row->size;
    TL_EMU_INVARIANT(b, first->site, n > 0 && n <= MOST_MATRICES && b->lanes == LANES,
                     "%u matrices for %u lanes", n, b->lanes);
    uint32_t offsets[LANES], thread = b->current->index / LANES * LANES;
    for (uint32_t i = 0; i < ROWS * n; i++)
        offsets[i] = ((const part *)mine[i])->row;
    bool stores = tl_leaf_is_stsm(first->leaf);
    tl_emu_block_matrices(b->watch, first->site, thread, n, stores, offsets, allowed);
    _Static_assert(LANES == ROWS * MOST_MATRICES, "each lane brings one row of the most matrices");
    for (uint32_t k = 0; k < n && stores; k++)
        put_matrix(b, mine, k, offsets, allowed);
    for (uint32_t k = 0; k < n && !stores; k++) {
        matrix m = {{{0}}};
        for (uint32_t i = 0; i < ROWS; i++)
            if (allowed[ROWS * k + i])
                memcpy(m.rows[i], b->shared + offsets[ROWS * k + i], ROW_BYTES);
        for (uint32_t i = 0; i < LANES; i++)
            ((part *)mine[i])->words[k] = word_of(&m, i, trans);
    }
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

#define STORED(name, ID)                                                                           \
    void tl_emu_##name##_1(uint32_t site, uint32_t slot, uint32_t row, uint32_t a)                 \
    {                                                                                              \
        store(TL_LEAF_##ID##_1, site, slot + row, (uint32_t[MOST_MATRICES]){a});                   \
    }                                                                                              \
    void tl_emu_##name##_2(uint32_t site, uint32_t slot, uint32_t row, uint32_t a, uint32_t c)     \
    {                                                                                              \
        store(TL_LEAF_##ID##_2, site, slot + row, (uint32_t[MOST_MATRICES]){a, c});                \
    }                                                                                              \
    void tl_emu_##name##_4(uint32_t site, uint32_t slot, uint32_t row, uint32_t a, uint32_t c,     \
                           uint32_t d, uint32_t e)                                                 \
    {                                                                                              \
        store(TL_LEAF_##ID##_4, site, slot + row, (uint32_t[MOST_MATRICES]){a, c, d, e});          \
    }
STORED(stsm, STSM)
STORED(stsm_t, STSM_T)
