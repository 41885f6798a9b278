/* emu_wgmma.c: products of warpgroups (wgmma), which a program starts and waits for later.
 *
 * Each warp does its 16 of the 64 rows; that four of them do the same is not checked. The meaning
 * of the operands' descriptors is written here as the formulas of the documents (PTX ISA, "Matrix
 * descriptor", "Strides", "Swizzling modes"), and not taken from the compiler's plans.
 *
 * The schedule says when operands in shared memory are really read:
 *   late     in the wait for the product's group. Schedules rr, ahead.
 *   early    at once. Schedule reverse.
 *   random   one or the other. Schedule random.
 * In all cases, they count as being read from the start to the wait: the watch reports anyone who
 * writes them meanwhile (emu_check_products.c).
 *
 * Accumulators are not there before a wait gives them back. Until then, each of their words is a
 * name, in the form of a NaN: which word it is, and of which chain of products. The next product
 * onto them continues the chain; computing with them gives nonsense. What a product takes from
 * registers must have been written before a fence (wgmma.fence): if there was none since the last
 * wait, that is reported. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu.h"
#include "runtime/runtime.h"

enum {
    LANES = 32,
    ROWS = 16,    /* of a warp */
    K_BYTES = 32, /* of one product */
    MOST_K = 32,  /* elements of one byte in K_BYTES */
    MOST_N = 256, /* columns of one product */
    CHUNK = 16,   /* bytes that are checked at a time */
    ODDS = 2,
    NAME = 0x7fd00000, /* of the first word of chain 0 */
    WORD_BITS = 7,
    MOST_CHAINS = 1 << 13
};

typedef struct product {
    uint32_t site, thread; /* thread: the first of the warp */
    uint32_t n, k, type[3], how, chain;
    uint64_t descriptor[2];
    uint64_t group;
    bool is_done;
    uint32_t a[LANES][4]; /* A in registers */
} product;

typedef struct chain {
    uint32_t left; /* words that no wait has given back; 0: the chain is not used */
    uint32_t site; /* of its latest product */
    uint32_t acc[LANES][TL_LEAF_MOST_WORDS];
} chain;

/* Of a warp. */
struct tl_emu_products_of_warp {
    product *all; /* on their way, oldest first */
    uint32_t n, room;
    chain *chains;
    uint32_t nchains;
    uint64_t commits;
    bool is_fenced[LANES]; /* since the lane's last wait */
};
typedef struct tl_emu_products_of_warp warp_state;

bool tl_emu_wgmma_make_room(tl_emu_block *b, uint32_t warps)
{
    tl_emu_wgmma_free(b);
    b->products = calloc(warps, sizeof *b->products);
    b->room_products = b->products ? warps : 0;
    return b->products != NULL;
}

void tl_emu_wgmma_free(tl_emu_block *b)
{
    for (uint32_t i = 0; i < b->room_products; i++) {
        free(b->products[i].all);
        free(b->products[i].chains);
    }
    free(b->products);
    b->products = NULL;
    b->room_products = 0;
}

void tl_emu_wgmma_reset(tl_emu_block *b)
{
    for (uint32_t i = 0; i < b->room_products; i++) {
        warp_state *w = &b->products[i];
        w->n = 0;
        w->commits = 0;
        memset(w->is_fenced, 0, sizeof w->is_fenced);
        for (uint32_t c = 0; c < w->nchains; c++)
            w->chains[c].left = 0;
    }
}

static warp_state *state_of(tl_emu_block *b)
{
    uint32_t warp = b->current->index / LANES;
    TL_EMU_INVARIANT(b, b->current->site, b->lanes == LANES && warp < b->room_products,
                     "warp %u of %u, of %u lanes", warp, b->room_products, b->lanes);
    return &b->products[warp];
}

/* ---- descriptors ---- */

static tl_emu_matrix read_descriptor(uint64_t d, bool across)
{
    static const uint32_t SPANS[4] = {0, 128, 64, 32};
    return (tl_emu_matrix){.start = (uint32_t)(d & 0x3fff) << 4,
                           .lead = (uint32_t)(d >> 16 & 0x3fff) << 4,
                           .stride = (uint32_t)(d >> 32 & 0x3fff) << 4,
                           .span = SPANS[d >> 62],
                           .piece = 16,
                           .across = across};
}

uint32_t tl_emu_matrix_at(const tl_emu_matrix *m, uint32_t bytes, uint32_t i, uint32_t k)
{
    uint32_t row = m->across ? k : i, column = (m->across ? i : k) * bytes;
    uint32_t rows = m->piece == 32 ? 4 : 8; /* of a core matrix */
    uint32_t at = m->start + row / rows * m->stride + row % rows * m->span +
                  column / m->span * m->lead + column % m->span;
    uint32_t mask = m->span / m->piece - 1; /* of the pieces of a row */
    return at ^ (at >> 7 & mask) * m->piece;
}

/* ---- a product ---- */

static uint32_t per_word(const product *p)
{
    return 4 / tl_emu_type_bytes(p->type[0]);
}

/* Row and k of element e of word w of A in a lane's registers. */
static void cell_of_a(const product *p, uint32_t lane, uint32_t w, uint32_t e, uint32_t *out_row,
                      uint32_t *out_k)
{
    *out_row = (lane >> 2) + 8 * (w & 1);
    *out_k = per_word(p) * (lane & 3) + e + 4 * per_word(p) * (w >> 1);
}

static bool is_integer(const product *p)
{
    return p->how & TL_WGMMA_RING || p->type[2] == TILE_I32;
}

static tl_emu_number in_memory(tl_emu_block *b, const product *p, int operand, uint32_t i,
                               uint32_t k)
{
    bool across = p->how & (operand ? TL_WGMMA_B_ACROSS : TL_WGMMA_A_ACROSS);
    tl_emu_matrix d = read_descriptor(p->descriptor[operand], across);
    uint32_t bytes = tl_emu_type_bytes(p->type[operand]), at = tl_emu_matrix_at(&d, bytes, i, k);
    uint64_t bits = 0;
    if ((uint64_t)at + bytes <= b->job->kernel->shared_bytes)
        memcpy(&bits, b->shared + at, bytes);
    return tl_emu_number_of(p->type[operand], bits, is_integer(p), true);
}

static void load_a(tl_emu_block *b, const product *p, tl_emu_number a[ROWS][MOST_K])
{
    uint32_t first = p->thread / LANES % 4 * ROWS, per = per_word(p), row, k;
    uint32_t bits = 32 / per;
    if (!(p->how & TL_WGMMA_A_WORDS)) {
        for (row = 0; row < ROWS; row++)
            for (k = 0; k < p->k; k++)
                a[row][k] = in_memory(b, p, 0, first + row, k);
        return;
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t e = 0; e < per; e++) {
                uint64_t x = p->a[lane][w] >> (e * bits) & (UINT32_MAX >> (32 - bits));
                cell_of_a(p, lane, w, e, &row, &k);
                a[row][k] = tl_emu_number_of(p->type[0], x, is_integer(p), true);
            }
}

/* Row and column of word i of a lane's accumulator. */
static void cell_of_c(uint32_t lane, uint32_t i, uint32_t *out_row, uint32_t *out_column)
{
    *out_row = (lane >> 2) + 8 * (i >> 1 & 1);
    *out_column = 8 * (i >> 2) + 2 * (lane & 3) + (i & 1);
}

static void add_product(const product *p, const tl_emu_number *a, const tl_emu_number *b,
                        uint32_t *word)
{
    float f;
    if (is_integer(p)) {
        uint32_t sum = *word;
        for (uint32_t k = 0; k < p->k; k++)
            sum += (uint32_t)(a[k].i * b[k].i);
        *word = sum;
        return;
    }
    memcpy(&f, word, sizeof f);
    double sum = f;
    for (uint32_t k = 0; k < p->k; k++)
        sum = fma(a[k].f, b[k].f, sum);
    f = (float)sum;
    memcpy(word, &f, sizeof f);
}

static void compute(tl_emu_block *b, warp_state *w, const product *p)
{
    tl_emu_number a[ROWS][MOST_K], column[MOST_K];
    chain *c = &w->chains[p->chain];
    load_a(b, p, a);
    for (uint32_t n = 0; n < p->n; n++) {
        for (uint32_t k = 0; k < p->k; k++)
            column[k] = in_memory(b, p, 1, n, k);
        for (uint32_t half = 0; half < 2; half++)
            for (uint32_t group = 0; group < 8; group++) {
                uint32_t lane = group << 2 | (n & 7) >> 1, i = n >> 3 << 2 | half << 1 | (n & 1);
                uint32_t row, at;
                cell_of_c(lane, i, &row, &at);
                TL_EMU_INVARIANT(b, p->site, at == n, "column %u is %u", n, at);
                add_product(p, a[row], column, &c->acc[lane][i]);
            }
    }
}

/* Tells the watch of what the warp reads: pieces of 16 bytes. */
static bool tell_reads(tl_emu_block *b, const product *p, bool ends)
{
    bool fine = true;
    for (int operand = p->how & TL_WGMMA_A_WORDS ? 1 : 0; operand < 2; operand++) {
        bool across = p->how & (operand ? TL_WGMMA_B_ACROSS : TL_WGMMA_A_ACROSS);
        tl_emu_matrix d = read_descriptor(p->descriptor[operand], across);
        uint32_t bytes = tl_emu_type_bytes(p->type[operand]), each = CHUNK / bytes;
        uint32_t first = operand ? 0 : p->thread / LANES % 4 * ROWS, rows = operand ? p->n : ROWS;
        for (uint32_t i = 0; i < rows && fine; i += across ? each : 1)
            for (uint32_t k = 0; k < p->k && fine; k += across ? 1 : each)
                fine = tl_emu_block_product(b->watch, p->site, p->thread,
                                            tl_emu_matrix_at(&d, bytes, first + i, k), ends);
    }
    return fine;
}

/* Computes the oldest `n` products. */
static void complete(tl_emu_block *b, warp_state *w, uint32_t n, bool forget)
{
    for (uint32_t i = 0; i < n; i++) {
        product *p = &w->all[i];
        if (!p->is_done)
            compute(b, w, p);
        p->is_done = true;
        if (forget)
            tell_reads(b, p, true);
    }
    if (!forget || n == 0)
        return;
    memmove(w->all, w->all + n, (w->n - n) * sizeof *w->all);
    w->n -= n;
}

/* ---- leaves ---- */

typedef struct lane_call {
    product p;
    uint32_t nwords, *words;
} lane_call;

static uint32_t name_of(uint32_t which, uint32_t word)
{
    return (uint32_t)NAME + (which << WORD_BITS | word);
}

/* Is the word the name of one? */
static bool is_name(const warp_state *w, uint32_t word, uint32_t *out_chain, uint32_t *out_word)
{
    uint32_t n = word - (uint32_t)NAME;
    *out_chain = n >> WORD_BITS;
    *out_word = n & ((1u << WORD_BITS) - 1);
    return *out_chain < w->nchains && w->chains[*out_chain].left > 0;
}

/* The chain that the words are named after; a new one of their values where they are values. */
static uint32_t chain_of(tl_emu_block *b, warp_state *w, lane_call *const *lanes, uint32_t first)
{
    uint32_t n = lanes[0]->nwords - first, i, word;
    if (is_name(w, lanes[0]->words[first], &i, &word) && word == 0)
        return i;
    for (i = 0; i < w->nchains && w->chains[i].left;)
        i++;
    TL_EMU_INVARIANT(b, lanes[0]->p.site, i < MOST_CHAINS && n <= TL_LEAF_MOST_WORDS,
                     "%u accumulators of %u words", i, n);
    if (i == w->nchains) {
        w->chains = tl_emu_grown(b, w->chains, i + 1, sizeof *w->chains);
        w->nchains++;
    }
    w->chains[i].left = n;
    for (uint32_t lane = 0; lane < LANES; lane++)
        memcpy(w->chains[i].acc[lane], lanes[lane]->words + first, n * sizeof(uint32_t));
    return i;
}

/* Words that threads have written, of A or of a chain's beginning, are fenced. */
static void check_fenced(tl_emu_block *b, const warp_state *w, const lane_call *x)
{
    uint32_t which, word, first = x->p.how & TL_WGMMA_A_WORDS ? 4 : 0;
    bool begins = !is_name(w, x->words[first], &which, &word);
    if (w->is_fenced[0] || x->p.how & TL_WGMMA_FENCE || (!first && !begins))
        return;
    tl_emu_complain(b, TL_RUN_ASYNC, x->p.site,
                    "no fence is between this product and what has written its registers");
}

/* All lanes of a warp have arrived. */
static void begin_product(tl_emu_block *b, void *const *mine)
{
    lane_call *const *lanes = (lane_call *const *)mine;
    warp_state *w = state_of(b);
    product p = lanes[0]->p;
    uint32_t first = p.how & TL_WGMMA_A_WORDS ? 4 : 0;
    check_fenced(b, w, lanes[0]);
    w->is_fenced[0] |= (p.how & TL_WGMMA_FENCE) != 0;
    p.thread = b->current->index / LANES * LANES;
    p.chain = chain_of(b, w, lanes, first);
    w->chains[p.chain].site = p.site;
    p.group = w->commits;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        memcpy(p.a[lane], lanes[lane]->words, first * sizeof(uint32_t));
        for (uint32_t i = first; i < lanes[lane]->nwords; i++)
            lanes[lane]->words[i] = name_of(p.chain, i - first);
    }
    if (p.how & TL_WGMMA_COMMIT)
        w->commits++;
    if (!tell_reads(b, &p, false))
        tl_emu_break(b);
    w->all = tl_emu_room(b, w->all, w->n, &w->room, sizeof *w->all);
    w->all[w->n++] = p;
    if (b->job->schedule.order == TL_EMU_REVERSE || (b->random && tl_emu_random(b) % ODDS == 0))
        complete(b, w, w->n, false);
}

void tl_emu_wgmma(uint32_t site, uint32_t n, uint32_t types, uint32_t how, uint64_t upper_a,
                  uint32_t at_a, uint64_t upper_b, uint32_t at_b, uint32_t nwords, uint32_t *words)
{
    tl_emu_block *b = tl_emu_now;
    lane_call x = {.p = {.site = site, .n = n, .how = how}, .nwords = nwords, .words = words};
    for (int i = 0; i < 3; i++)
        x.p.type[i] = types >> 8 * i & 0xff;
    x.p.k = K_BYTES / tl_emu_type_bytes(x.p.type[0]);
    x.p.descriptor[0] = upper_a | at_a;
    x.p.descriptor[1] = upper_b | at_b;
    TL_EMU_INVARIANT(b, site, n <= MOST_N && at_a <= 0x3fff && at_b <= 0x3fff,
                     "%u columns, operands at %u and %u", n, at_a, at_b);
    tl_emu_count(b, site, TL_LEAF_WGMMA);
    tl_emu_meet_warp(b, TL_LEAF_WGMMA, site, at_a << 16 ^ at_b, &x, begin_product);
}

typedef struct lane_wait {
    uint32_t site, pending, nwords, *words;
} lane_wait;

/* Is a product of the chain still on its way? */
static bool is_under_way(const warp_state *w, uint32_t which)
{
    for (uint32_t i = 0; i < w->n; i++)
        if (w->all[i].chain == which)
            return true;
    return false;
}

static void wait(tl_emu_block *b, void *const *mine)
{
    lane_wait *const *lanes = (lane_wait *const *)mine;
    warp_state *w = state_of(b);
    uint32_t n = 0, which, word;
    while (n < w->n && w->all[n].group + lanes[0]->pending < w->commits)
        n++;
    complete(b, w, n, true);
    for (uint32_t k = 0; k < lanes[0]->nwords; k++) {
        if (!is_name(w, lanes[0]->words[k], &which, &word) || is_under_way(w, which))
            continue;
        for (uint32_t lane = 0; lane < LANES; lane++)
            lanes[lane]->words[k] = w->chains[which].acc[lane][word];
        w->chains[which].left--;
    }
}

void tl_emu_wgmma_wait(uint32_t site, uint32_t pending, uint32_t nwords, uint32_t *words)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_WGMMA_WAIT);
    lane_wait x = {site, pending, nwords, words};
    if (!b)
        return;
    state_of(b)->is_fenced[b->current->index % LANES] = false;
    tl_emu_meet_warp(b, TL_LEAF_WGMMA_WAIT, site, pending, &x, wait);
}

/* Is the site one of those that fence the words of one product, which are left out together? */
static bool is_dropped_fence(tl_emu_block *b, uint32_t site)
{
    const tile_image_site *s = tl_emu_site(b->job->launch, site),
                          *dropped = tl_emu_site(b->job->launch, b->job->dropped);
    return tl_emu_is_dropped(b, site) || (s && dropped && dropped->leaf == TL_LEAF_WGMMA_FENCE &&
                                          s->line == dropped->line && s->col == dropped->col);
}

/* Registers are written in order here. */
void tl_emu_wgmma_fence(uint32_t site, uint32_t nwords, uint32_t *words)
{
    tl_emu_block *b = tl_emu_now;
    (void)nwords, (void)words;
    if (is_dropped_fence(b, site))
        return;
    state_of(b)->is_fenced[b->current->index % LANES] = true;
    tl_emu_count(b, site, TL_LEAF_WGMMA_FENCE);
}

void tl_emu_fence_async(uint32_t site)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_FENCE_ASYNC);
    if (b)
        tl_emu_block_fence(b->watch, b->current->index);
}

/* The site of a product that is on its way, or whose sums no wait has given back. */
static bool is_left(const warp_state *w, uint32_t *out_site)
{
    if (w->n) {
        *out_site = w->all[0].site;
        return true;
    }
    for (uint32_t i = 0; i < w->nchains; i++)
        if (w->chains[i].left) {
            *out_site = w->chains[i].site;
            return true;
        }
    return false;
}

void tl_emu_wgmma_ended(tl_emu_block *b, const tl_emu_thread *t)
{
    uint32_t site;
    if (b->room_products && is_left(&b->products[t->index / b->lanes], &site))
        tl_emu_say(b, TL_RUN_ASYNC, site, "thread %u has ended before it waited for this product",
                   t->index);
}
