/* emu_tensor.c: tensor memory, and the products that one thread begins onto it (tcgen05).
 *
 * The meaning of descriptors is written here as the tables of the documents (PTX ISA, "Tensor
 * memory", "Shared memory descriptor", "Instruction descriptor"), and not taken from the compiler's
 * plans. A block alone has 128 lanes by 512 columns of 32 bits; where its columns begin, the
 * schedule says.
 *
 * A cell of it is unknown until somebody has written it, and on its way from the beginning of a
 * product onto it until somebody waits for a barrier at which a commit behind it arrives: who reads
 * it before, or writes it, is reported. The same thread's next product may add to it. What a
 * product takes as its A from there nobody may write until then. The schedule
 * says when operands in shared memory are really read:
 *   late     when the commit arrives. Schedules rr, ahead.
 *   early    at once. Schedule reverse.
 *   random   one or the other. Schedule random.
 * In all cases they count as being read until then (emu_check_products.c). Commits arrive at
 * different barriers in any order: that a later one has arrived does not say that an earlier one
 * has, only that its products are done. So each arrives when somebody waits for it. What brings
 * scales from shared memory is in one order with the same thread's products: it is done when these
 * are.
 *
 * Products of 256 rows are those of a pair of blocks: the first one's thread begins them, and they
 * are in its list. Each block has half of the rows, and half of the columns of B; a commit for two
 * arrives at the barriers of both. What threads of the other block did with its columns has to be
 * over as well: they have passed a fence, then the cluster has met, or one of them, behind a
 * barrier of theirs, has arrived at a barrier of the first block, for which the thread has waited.
 *
 * What threads of one warp have read or written, or allocated, those of another touch behind a
 * barrier, in front of which the former have passed a fence, and behind which the latter have. So
 * they have behind their wait for a product, before they read its sums. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/emu/emu.h"
#include "runtime/runtime.h"

enum {
    WARP = 32,
    LANES = 128,
    COLUMNS = 512,
    LEAST = 32,
    K_BYTES = 32, /* of one product */
    MOST_K = 32,  /* elements of one byte in K_BYTES */
    CHUNK = 16,   /* bytes that are checked at a time */
    ODDS = 2,
    PIECE_COLUMNS = 4, /* of scales that are brought there: 32 rows of 16 bytes */
    WORD = 4,          /* scales of a word */
    MOST_SCALED = 64   /* elements of K_BYTES that are pairs */
};

typedef enum state { UNKNOWN, KNOWN, ON_ITS_WAY } state;

/* Or what brings scales: of 128 rows and PIECE_COLUMNS columns, from operand[0]. */
typedef struct product {
    uint32_t site, thread, m, n, k, type[3], address;
    tl_emu_matrix operand[2];
    bool ring, adds, is_done, brings, pair; /* pair: m, n / 2 are what each block has */
    bool a_there;                           /* operand[0] is in tensor memory, */
    uint32_t a;                             /* at this address */
    uint32_t scale, scales[2], byte[2]; /* scale: their type, 0: it has none; where they are */
} product;

typedef struct commit {
    uint32_t site, offset, products; /* that must be done: the oldest ones */
    bool pair;                       /* it arrives at the other block's barrier, too */
} commit;

/* Who touched the lanes that a warp reaches of a column, and how many fences it had passed then. */
typedef struct touch {
    tl_emu_moment when;
    uint32_t site, fences;
    uint64_t met, handed; /* meetings of the cluster before; the block's arrival elsewhere behind */
} touch;

struct tl_emu_tensor {
    uint32_t columns, base, site; /* columns 0: none are the block's */
    bool was_asked;               /* it may not ask again */
    uint32_t programs;            /* 2: of a pair */
    uint64_t hands;               /* arrivals of the block's threads at barriers of other blocks */
    /* of those of the other block of a pair: the last one that a thread waited for, and what it
     * knew at its last fence behind that; likewise meetings */
    uint64_t waited[TL_EMU_MAX_THREADS], got[TL_EMU_MAX_THREADS], met[TL_EMU_MAX_THREADS];
    product *all;                 /* on their way, oldest first */
    uint32_t n, room;
    commit *commits; /* that have not arrived, oldest first */
    uint32_t ncommits, room_commits;
    uint32_t fences[TL_EMU_MAX_THREADS]; /* before threads meet: how many the thread has passed */
    tl_emu_moment after[TL_EMU_MAX_THREADS]; /* its last fence behind that, */
    uint64_t arrivals, seen[TL_EMU_MAX_THREADS], arrived[COLUMNS]; /* and the arrivals before it;
                                                                    * number of a column's last */
    touch touched[COLUMNS][LANES / WARP];
    uint32_t word[COLUMNS][LANES];
    uint8_t state[COLUMNS][LANES];
    uint8_t missing[COLUMNS][WARP];    /* bytes of scales that nobody had written, as bits */
    double scaled[LANES][MOST_SCALED]; /* of A, for a product that is computed */
};
typedef struct tl_emu_tensor tensor;

void tl_emu_tensor_free_all(tl_emu_block *b)
{
    if (b->tensor) {
        free(b->tensor->all);
        free(b->tensor->commits);
    }
    free(b->tensor);
    b->tensor = NULL;
}

void tl_emu_tensor_reset(tl_emu_block *b)
{
    tensor *t = b->tensor;
    if (!t)
        return;
    t->columns = t->n = t->ncommits = 0;
    t->was_asked = false;
    t->hands = 0;
    memset(t->waited, 0, sizeof t->waited);
    memset(t->got, 0, sizeof t->got);
    memset(t->met, 0, sizeof t->met);
    memset(t->fences, 0, sizeof t->fences);
    memset(t->after, 0, sizeof t->after);
    memset(t->seen, 0, sizeof t->seen);
    memset(t->arrived, 0, sizeof t->arrived);
    t->arrivals = 0;
    memset(t->touched, 0, sizeof t->touched);
    memset(t->state, 0, sizeof t->state);
}

/* ---- columns of the block ---- */

typedef struct request {
    uint32_t site, offset, columns, programs;
} request;

/* ---- pairs ---- */

/* The other block of a pair; NULL: it has ended. */
static tl_emu_block *partner_of(const tl_emu_block *b)
{
    return b->cluster->size == 2 ? b->cluster->blocks[1 - b->rank] : NULL;
}

static tl_emu_block *partner(tl_emu_block *b, uint32_t site)
{
    if (b->cluster->size != 2)
        tl_emu_complain(b, TL_RUN_ASYNC, site, "a pair of programs, in a cluster of %" PRIu32,
                        b->cluster->size);
    if (!partner_of(b))
        tl_emu_complain(b, TL_RUN_ASYNC, site, "the other program of the pair has ended");
    return partner_of(b);
}

/* Is a product that needs block b on its way, begun by it or by its partner? */
static bool needs_block(const tl_emu_block *b)
{
    const tl_emu_block *other = partner_of(b);
    const tensor *t = other ? other->tensor : NULL;
    bool any = b->tensor && b->tensor->n;
    for (uint32_t i = 0; t && i < t->n; i++)
        any |= t->all[i].pair;
    return any;
}

static bool is_size(uint32_t columns)
{
    return columns >= LEAST && columns <= COLUMNS && (columns & (columns - 1)) == 0;
}

/* The current warp has touched these columns, of the lanes that warp w reaches. */
static void touch_columns(tl_emu_block *b, tensor *t, uint32_t site, uint32_t column,
                          uint32_t columns, uint32_t w)
{
    uint32_t thread = b->current->index / WARP * WARP;
    for (uint32_t c = column; c < column + columns; c++)
        t->touched[c][w] =
            (touch){tl_emu_block_moment(b->watch, thread), site, t->fences[thread], b->met, 0};
}

static void allocate(tl_emu_block *b, void *const *mine)
{
    const request *r = mine[0];
    if (!b->tensor) {
        b->tensor = tl_emu_grown(b, NULL, 1, sizeof *b->tensor);
        memset(b->tensor, 0, sizeof *b->tensor);
    }
    tensor *t = b->tensor;
    TL_EMU_INVARIANT(b, r->site, is_size(r->columns), "%u columns of tensor memory", r->columns);
    if (t->was_asked)
        tl_emu_complain(b, TL_RUN_ASYNC, r->site,
                        "the program has asked for tensor memory, and may not do so again");
    bool last = b->job->schedule.order != TL_EMU_ROUND_ROBIN;
    t->was_asked = true;
    if (r->programs > 1)
        partner(b, r->site);
    t->programs = r->programs;
    t->columns = r->columns;
    t->base = last ? COLUMNS - r->columns : 0;
    t->site = r->site;
    tl_emu_access a = {.space = TL_EMU_SHARED,
                       .kind = TL_EMU_STORE,
                       .site = r->site,
                       .at = r->offset,
                       .bytes = sizeof t->base,
                       .thread = b->current->index / WARP * WARP};
    if (tl_emu_block_access(b->watch, &a))
        memcpy(b->shared + r->offset, &t->base, sizeof t->base);
    for (uint32_t w = 0; w < LANES / WARP; w++)
        touch_columns(b, t, r->site, t->base, t->columns, w);
}

void tl_emu_tensor_alloc(uint32_t site, uint32_t offset, uint32_t columns, uint32_t programs)
{
    tl_emu_block *b = tl_emu_now;
    request r = {site, offset, columns, programs};
    if (tl_emu_is_dropped(b, site))
        return;
    tl_emu_count(b, site, TL_LEAF_TENSOR_ALLOC);
    tl_emu_meet_warp(b, TL_LEAF_TENSOR_ALLOC, site, columns, &r, allocate);
}

/* The cells that an access touches are those of the program that block m runs. */
static tensor *of_block(tl_emu_block *b, const tl_emu_block *m, uint32_t site, uint32_t address,
                        uint32_t columns)
{
    tensor *t = m->tensor;
    uint32_t column = address & 0xffff;
    if (!t || !t->columns || column < t->base || column + columns > t->base + t->columns)
        tl_emu_complain(b, TL_RUN_BOUNDS, site,
                        "columns %" PRIu32 " to %" PRIu32 " of tensor memory are not the program's",
                        column, column + columns - 1);
    return t;
}

static tensor *of_program(tl_emu_block *b, uint32_t site, uint32_t address, uint32_t columns)
{
    return of_block(b, b, site, address, columns);
}

/* Nobody else may touch the columns, of the lanes of warp w, at the same time, or has, for all that
 * the current thread knows. */
static void check_untouched(tl_emu_block *b, const tensor *t, uint32_t site, uint32_t column,
                            uint32_t columns, uint32_t w)
{
    uint32_t self = b->current->index;
    for (uint32_t c = column; c < column + columns; c++) {
        const touch *x = &t->touched[c][w];
        if (!x->when.tick || x->when.thread / WARP == self / WARP)
            continue;
        if (!tl_emu_block_is_past(b->watch, x->when, self))
            tl_emu_complain(b, TL_RUN_RACE, site,
                            "thread %" PRIu32 " may not be through with column %" PRIu32
                            " of tensor memory: no barrier is in between",
                            x->when.thread, c);
        if (t->fences[x->when.thread] <= x->fences)
            tl_emu_complain(b, TL_RUN_ASYNC, site,
                            "thread %" PRIu32 " has touched column %" PRIu32
                            " of tensor memory, and passed no fence since",
                            x->when.thread, c);
        if (t->after[self].tick <= x->when.tick)
            tl_emu_complain(b, TL_RUN_ASYNC, site,
                            "thread %" PRIu32 " has touched column %" PRIu32
                            " of tensor memory, and this one passed no fence since they met",
                            x->when.thread, c);
    }
}

/* Of the other block of a pair, all lanes: nobody there touches them, for all that the current
 * thread knows. */
static void check_other_untouched(tl_emu_block *b, tl_emu_block *other, uint32_t site,
                                  uint32_t column, uint32_t columns)
{
    const tensor *t = b->tensor, *theirs = other->tensor;
    uint32_t self = b->current->index;
    for (uint32_t c = column; c < column + columns; c++)
        for (uint32_t w = 0; w < LANES / WARP; w++) {
            const touch *x = &theirs->touched[c][w];
            bool fenced = theirs->fences[x->when.thread] > x->fences,
                 met = fenced && x->met < t->met[self],
                 got = x->handed && x->handed <= t->got[self];
            if (x->when.tick && !met && !got)
                tl_emu_complain(b, TL_RUN_RACE, site,
                                "thread %" PRIu32 " of the pair's other program may not be through "
                                "with column %" PRIu32 " of tensor memory",
                                x->when.thread, c);
        }
}

void tl_emu_tensor_hands(tl_emu_block *b, uint64_t *out_number)
{
    tensor *t = b->tensor;
    if (!t)
        return;
    *out_number = ++t->hands;
    for (uint32_t c = 0; c < COLUMNS; c++)
        for (uint32_t w = 0; w < LANES / WARP; w++) {
            touch *x = &t->touched[c][w];
            if (x->when.tick && !x->handed && t->fences[x->when.thread] > x->fences &&
                tl_emu_block_is_past(b->watch, x->when, b->current->index))
                x->handed = t->hands;
        }
}

void tl_emu_tensor_waited(tl_emu_block *b, uint64_t number)
{
    uint64_t *known = b->tensor ? &b->tensor->waited[b->current->index] : NULL;
    if (known && *known < number)
        *known = number;
}

/* Of all lanes. */
static void check_all_untouched(tl_emu_block *b, const tensor *t, uint32_t site, uint32_t column,
                                uint32_t columns)
{
    for (uint32_t w = 0; w < LANES / WARP; w++)
        check_untouched(b, t, site, column, columns, w);
}

static void give_back(tl_emu_block *b, void *const *mine)
{
    const request *r = mine[0];
    tensor *t = of_program(b, r->site, r->offset, r->columns);
    if (r->columns != t->columns || r->offset != t->base)
        tl_emu_complain(b, TL_RUN_ASYNC, r->site,
                        "%" PRIu32 " columns are given back, %" PRIu32 " are the program's",
                        r->columns, t->columns);
    if (r->programs != t->programs)
        tl_emu_complain(b, TL_RUN_ASYNC, r->site, "they are of %" PRIu32 " programs", t->programs);
    if (needs_block(b))
        tl_emu_complain(b, TL_RUN_ASYNC, r->site, "a product onto them is on its way");
    check_all_untouched(b, t, r->site, t->base, t->columns);
    t->columns = 0;
}

void tl_emu_tensor_free(uint32_t site, uint32_t address, uint32_t columns, uint32_t programs)
{
    tl_emu_block *b = tl_emu_now;
    request r = {site, address, columns, programs};
    if (tl_emu_is_dropped(b, site))
        return;
    tl_emu_count(b, site, TL_LEAF_TENSOR_FREE);
    tl_emu_meet_warp(b, TL_LEAF_TENSOR_FREE, site, columns, &r, give_back);
}

/* ---- products ---- */

static tl_emu_matrix read_descriptor(tl_emu_block *b, uint32_t site, uint64_t d, bool across)
{
    static const uint32_t SPANS[8] = {[1] = 128, [2] = 128, [4] = 64, [6] = 32};
    TL_EMU_INVARIANT(b, site, (d >> 46 & 7) == 1 && (d >> 49 & 0xfff) == 0 && SPANS[d >> 61],
                     "the descriptor %" PRIx64, d);
    return (tl_emu_matrix){.start = (uint32_t)(d & 0x3fff) << 4,
                           .lead = (uint32_t)(d >> 16 & 0x3fff) << 4,
                           .stride = (uint32_t)(d >> 32 & 0x3fff) << 4,
                           .span = SPANS[d >> 61],
                           .piece = d >> 61 == 1 ? 32 : 16,
                           .across = across};
}

/* What the instruction's descriptor calls an operand's type, and the sums'. */
static uint32_t code_of(uint32_t type)
{
    if (type == TILE_F32)
        return 2;
    return type == TILE_BF16 || type == TILE_F8E5M2 || type == TILE_I8;
}

static void read_instruction(tl_emu_block *b, product *p, uint32_t i)
{
    uint32_t sums = p->type[2] == TILE_I32 ? 2 : 1;
    p->n = (i >> 17 & 63) << 3;
    p->m = (i >> 24 & 31) << 4;
    p->pair = p->m > LANES;
    p->operand[0].across = i >> 15 & 1;
    p->operand[1].across = i >> 16 & 1;
    TL_EMU_INVARIANT(
        b, p->site,
        (i & 0xf) == 0 && (i >> 4 & 3) == sums && (i >> 7 & 7) == code_of(p->type[0]) &&
            (i >> 10 & 7) == code_of(p->type[1]) && (i >> 13 & 3) == 0 && i >> 29 == 0,
        "instruction %" PRIx32 " of types %u, %u, %u", i, p->type[0], p->type[1], p->type[2]);
    uint32_t unit = p->m == 64 && (sums == 1 || p->n <= WARP) ? 8 : 16;
    if (p->pair) {
        p->m /= 2;
        unit = sums == 1 ? 16 : 32;
    }
    TL_EMU_INVARIANT(b, p->site,
                     ((p->m == 64 && !p->pair) || p->m == LANES) && p->n && p->n <= 256 &&
                         p->n % unit == 0,
                     "a product of %u rows, %u columns", p->m, p->n);
}

static uint32_t lane_of(const product *p, uint32_t row)
{
    return p->m == LANES ? row : row % 16 + row / 16 * WARP;
}

static bool is_integer(const product *p)
{
    return p->ring || p->type[2] == TILE_I32;
}

/* Columns of its A in tensor memory. */
static uint32_t a_columns(const product *p)
{
    return p->a_there ? K_BYTES / (uint32_t)sizeof(uint32_t) : 0;
}

/* Does it read the column as its A? */
static bool reads_column(const product *p, uint32_t column)
{
    uint32_t first = p->a & 0xffff;
    return column >= first && column < first + a_columns(p);
}

static tl_emu_number in_column(const tensor *t, const product *p, uint32_t row, uint32_t k)
{
    uint32_t bytes = tl_emu_type_bytes(p->type[0]), byte = k * bytes,
             word = t->word[(p->a & 0xffff) + byte / sizeof word][lane_of(p, row)];
    uint64_t bits = word >> byte % sizeof word * 8;
    bits &= bytes < sizeof word ? (UINT64_C(1) << 8 * bytes) - 1 : UINT32_MAX;
    return tl_emu_number_of(p->type[0], bits, is_integer(p), true);
}

static tl_emu_number in_memory(tl_emu_block *b, const product *p, int operand, uint32_t i,
                               uint32_t k)
{
    uint32_t bytes = tl_emu_type_bytes(p->type[operand]),
             at = tl_emu_matrix_at(&p->operand[operand], bytes, i, k);
    uint64_t bits = 0;
    if ((uint64_t)at + bytes <= b->job->kernel->shared_bytes)
        memcpy(&bits, b->shared + at, bytes);
    return tl_emu_number_of(p->type[operand], bits, is_integer(p), true);
}

static uint32_t sum_of(const product *p, const tl_emu_number *a, const tl_emu_number *b,
                       uint32_t word)
{
    float f = 0;
    if (is_integer(p)) {
        for (uint32_t k = 0; k < p->k; k++)
            word += (uint32_t)(a[k].i * b[k].i);
        return word;
    }
    memcpy(&f, &word, sizeof f);
    double sum = f;
    for (uint32_t k = 0; k < p->k; k++)
        sum = fma(a[k].f, b[k].f, sum);
    f = (float)sum;
    memcpy(&word, &f, sizeof word);
    return word;
}

/* ---- with scales ---- */

static bool are_pairs(const product *p)
{
    return p->type[0] == TILE_U8;
}

/* Elements of the product along K, and how many of them a scale is of. */
static uint32_t depth(const product *p)
{
    return p->k * (are_pairs(p) ? 2 : 1);
}

static uint32_t each_of(const product *p)
{
    return p->scale == TILE_U8 ? 32 : 16;
}

/* Of row or column i, of block number `block` of what the product takes. */
static double scale_of(const tensor *t, const product *p, int operand, uint32_t i, uint32_t block)
{
    uint32_t word = t->word[(p->scales[operand] & 0xffff) + i / WARP][i % WARP],
             code = word >> 8 * (p->byte[operand] + block) & 0xff;
    if (p->scale == TILE_U8)
        return code == 255 ? (double)NAN : ldexp(1, (int)code - 127);
    return tl_decode_float(TILE_F8E4M3, code & 0x7f);
}

/* Row i of A or column i of B, times its scales. */
static void read_scaled(tl_emu_block *b, const tensor *t, const product *p, int operand, uint32_t i,
                        double *to)
{
    uint32_t per = are_pairs(p) ? 2 : 1;
    for (uint32_t k = 0; k < depth(p); k++) {
        uint32_t at = tl_emu_matrix_at(&p->operand[operand], 1, i, k / per), code = 0;
        if (at < b->job->kernel->shared_bytes)
            code = b->shared[at];
        double x = per == 2 ? tl_decode_float(TILE_F4E2M1, code >> 4 * (k % 2) & 15)
                            : tl_decode_float((tile_dtype)p->type[operand], code);
        to[k] = x * scale_of(t, p, operand, i, k / each_of(p));
    }
}

static void compute_scaled(tl_emu_block *b, tensor *t, product *p)
{
    double column[MOST_SCALED];
    uint32_t first = p->address & 0xffff, all = depth(p);
    for (uint32_t row = 0; row < p->m; row++)
        read_scaled(b, t, p, 0, row, t->scaled[row]);
    for (uint32_t n = 0; n < p->n; n++) {
        read_scaled(b, t, p, 1, n, column);
        for (uint32_t row = 0; row < p->m; row++) {
            uint32_t *word = &t->word[first + n][row];
            float f = 0;
            if (p->adds)
                memcpy(&f, word, sizeof f);
            double sum = f;
            for (uint32_t k = 0; k < all; k++)
                sum = fma(t->scaled[row][k], column[k], sum);
            f = (float)sum;
            memcpy(word, &f, sizeof f);
        }
    }
}

/* Where row r of a piece of scales is in shared memory. */
static uint32_t piece_row(const product *p, uint32_t r)
{
    enum { ROWS = 8 };
    return p->operand[0].start + r % ROWS * CHUNK + r / ROWS * p->operand[0].stride;
}

/* To each warp's lanes. */
static void bring(tl_emu_block *b, tensor *t, const product *p)
{
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t c = 0; c < PIECE_COLUMNS; c++) {
            uint64_t at = piece_row(p, lane % WARP) + sizeof(uint32_t) * c;
            if (at + sizeof(uint32_t) <= b->job->kernel->shared_bytes)
                memcpy(&t->word[(p->address & 0xffff) + c][lane], b->shared + at,
                       sizeof(uint32_t));
        }
}

/* ---- what is done ---- */

/* Those that block m has, of a product that block b has begun. */
static void compute_rows(tl_emu_block *b, tl_emu_block *m, const product *p)
{
    tl_emu_number a[LANES][MOST_K], column[MOST_K];
    uint32_t first = p->address & 0xffff, half = p->pair ? p->n / 2 : p->n;
    for (uint32_t row = 0; row < p->m; row++)
        for (uint32_t k = 0; k < p->k; k++)
            a[row][k] = p->a_there ? in_column(m->tensor, p, row, k) : in_memory(m, p, 0, row, k);
    for (uint32_t n = 0; n < p->n; n++) {
        tl_emu_block *has = n < half ? b : partner(b, p->site);
        for (uint32_t k = 0; k < p->k; k++)
            column[k] = in_memory(has, p, 1, n % half, k);
        for (uint32_t row = 0; row < p->m; row++) {
            uint32_t *word = &m->tensor->word[first + n][lane_of(p, row)];
            *word = sum_of(p, a[row], column, p->adds ? *word : 0);
        }
    }
}

static void compute(tl_emu_block *b, tensor *t, product *p)
{
    p->is_done = true;
    if (p->brings) {
        bring(b, t, p);
        return;
    }
    if (p->scale) {
        compute_scaled(b, t, p);
        return;
    }
    compute_rows(b, b, p);
    if (p->pair)
        compute_rows(b, partner(b, p->site), p);
}

static bool tell_reads_of_piece(tl_emu_block *b, const product *p, bool ends)
{
    bool fine = true;
    for (uint32_t r = 0; r < WARP && fine; r++) {
        uint32_t missing, bytes = (1u << WORD) - 1;
        fine = tl_emu_block_brings(b->watch, p->site, p->thread, piece_row(p, r), ends, &missing);
        for (uint32_t c = 0; c < PIECE_COLUMNS && !ends; c++)
            b->tensor->missing[(p->address & 0xffff) + c][r] = missing >> WORD * c & bytes;
    }
    return fine;
}

/* Tells the watch of what it reads: pieces of 16 bytes. */
static bool tell_reads_of(tl_emu_block *b, const product *p, bool ends)
{
    bool fine = true;
    if (p->brings)
        return tell_reads_of_piece(b, p, ends);
    for (int operand = p->a_there ? 1 : 0; operand < 2; operand++) {
        const tl_emu_matrix *m = &p->operand[operand];
        uint32_t bytes = tl_emu_type_bytes(p->type[operand]), each = CHUNK / bytes,
                 rows = !operand  ? p->m
                        : p->pair ? p->n / 2
                                  : p->n;
        for (uint32_t i = 0; i < rows && fine; i += m->across ? each : 1)
            for (uint32_t k = 0; k < p->k && fine; k += m->across ? 1 : each)
                fine = tl_emu_block_product(b->watch, p->site, p->thread,
                                            tl_emu_matrix_at(m, bytes, i, k), ends);
    }
    return fine;
}

static bool tell_reads(tl_emu_block *b, const product *p, bool ends)
{
    return tell_reads_of(b, p, ends) && (!p->pair || tell_reads_of(partner(b, p->site), p, ends));
}

static void set_state(tensor *t, const product *p, state to)
{
    for (uint32_t n = 0; n < p->n; n++)
        for (uint32_t row = 0; row < p->m; row++)
            t->state[(p->address & 0xffff) + n][lane_of(p, row)] = (uint8_t)to;
}

/* Kinds of the instruction, which is what orders products onto the same sums. */
static uint32_t kind_of(const product *p)
{
    enum { F16, TF32, F8, INTEGER, MXF8, MXF4, NVF4 };
    if (p->scale)
        return p->type[0] != TILE_U8 ? MXF8 : p->scale == TILE_U8 ? MXF4 : NVF4;
    if (p->type[2] == TILE_I32)
        return INTEGER;
    return p->type[0] == TILE_F32 ? TF32 : tl_emu_type_bytes(p->type[0]) == 1 ? F8 : F16;
}

/* Both onto the same columns, by the same kind of instruction; or onto others. */
static bool are_in_order(const product *a, const product *b)
{
    uint32_t at = a->address & 0xffff, other = b->address & 0xffff;
    if (a->brings || b->brings || at >= other + b->n || other >= at + a->n)
        return true;
    return a->address == b->address && a->n == b->n && a->m == b->m && kind_of(a) == kind_of(b);
}

/* What it adds to is there, or on its way. */
static void check_states(tl_emu_block *b, const tensor *t, const product *p)
{
    for (uint32_t n = 0; n < p->n && p->adds; n++)
        for (uint32_t row = 0; row < p->m; row++)
            if (t->state[(p->address & 0xffff) + n][lane_of(p, row)] == UNKNOWN)
                tl_emu_complain(b, TL_RUN_UNINIT, p->site,
                                "the product adds to column %" PRIu32
                                " of tensor memory, which nobody has written",
                                (p->address & 0xffff) + n);
}

/* The same; on its way by the same thread, in order with it. */
static void check_sums(tl_emu_block *b, const tensor *t, const product *p)
{
    check_states(b, t, p);
    for (uint32_t i = 0; i < t->n; i++)
        if (t->all[i].thread != p->thread || !are_in_order(&t->all[i], p))
            tl_emu_complain(b, TL_RUN_ASYNC, p->site, "products of another %s are on their way, "
                            "in no order with it",
                            t->all[i].thread != p->thread ? "thread" : "kind or shape");
}

/* In the other block of the pair. */
static void begin_other(tl_emu_block *b, tl_emu_block *other, const product *p)
{
    uint32_t first = p->address & 0xffff;
    tensor *theirs = of_block(b, other, p->site, p->address, p->n);
    check_other_untouched(b, other, p->site, first, p->n);
    check_states(b, theirs, p);
    set_state(theirs, p, ON_ITS_WAY);
}

/* A is there, and no product's sums are, nor do they go there. */
static void check_a(tl_emu_block *b, const tensor *t, const product *p)
{
    uint32_t first = p->a & 0xffff;
    for (uint32_t c = first; c < first + a_columns(p); c++)
        for (uint32_t row = 0; row < p->m; row++) {
            uint8_t s = t->state[c][lane_of(p, row)];
            if (s != KNOWN)
                tl_emu_complain(b, s == UNKNOWN ? TL_RUN_UNINIT : TL_RUN_ASYNC, p->site,
                                "column %" PRIu32 " of tensor memory, of which the product's A "
                                "is, %s",
                                c, s == UNKNOWN ? "has been written by nobody" : "is on its way");
        }
    check_all_untouched(b, t, p->site, first, a_columns(p));
}

/* No product on its way still reads the column as its A. */
static void check_not_read(tl_emu_block *b, const tensor *t, uint32_t site, uint32_t column)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (reads_column(&t->all[i], column))
            tl_emu_complain(
                b, TL_RUN_ASYNC, site,
                "a product on its way may still read column %" PRIu32 " of tensor memory", column);
}

/* The product is on its way from here on. */
static void begin_product(tl_emu_block *b, tensor *t, const product *p)
{
    check_all_untouched(b, t, p->site, p->address & 0xffff, p->n);
    check_sums(b, t, p);
    if (p->pair)
        begin_other(b, partner(b, p->site), p);
    check_a(b, t, p);
    for (uint32_t c = 0; c < p->n; c++) {
        uint32_t column = (p->address & 0xffff) + c;
        check_not_read(b, t, p->site, column);
        TL_EMU_INVARIANT(b, p->site, !reads_column(p, column), "column %u is A's and the sums'",
                         column);
    }
    if (!tell_reads(b, p, false))
        tl_emu_break(b);
    set_state(t, p, ON_ITS_WAY);
    t->all = tl_emu_room(b, t->all, t->n, &t->room, sizeof *t->all);
    t->all[t->n++] = *p;
    if (b->job->schedule.order == TL_EMU_REVERSE || (b->random && tl_emu_random(b) % ODDS == 0))
        for (uint32_t i = 0; i < t->n; i++)
            if (!t->all[i].is_done)
                compute(b, t, &t->all[i]);
}

void tl_emu_tensor_mma(uint32_t site, uint32_t instruction, uint32_t types, uint32_t ring,
                       uint64_t upper_a, uint32_t at_a, uint64_t upper_b, uint32_t at_b,
                       uint32_t address, uint32_t add)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_TENSOR_MMA);
    product p = {
        .site = site, .thread = b->current->index, .address = address, .ring = ring, .adds = add};
    for (int i = 0; i < 3; i++)
        p.type[i] = types >> 8 * i & 0xff;
    p.k = K_BYTES / tl_emu_type_bytes(p.type[0]);
    read_instruction(b, &p, instruction);
    p.a_there = upper_a == 0;
    p.a = p.a_there ? at_a : 0;
    if (p.a_there)
        of_program(b, site, p.a, a_columns(&p));
    else
        p.operand[0] = read_descriptor(b, site, upper_a | at_a, p.operand[0].across);
    TL_EMU_INVARIANT(b, site, !p.a_there || (!p.operand[0].across && p.a >> 16 == 0),
                     "A from lane %u of tensor memory on", p.a >> 16);
    p.operand[1] = read_descriptor(b, site, upper_b | at_b, p.operand[1].across);
    for (int i = p.a_there ? 1 : 0; i < 2; i++)
        TL_EMU_INVARIANT(b, site,
                         (p.operand[i].piece == 32) ==
                             (p.operand[i].across && tl_emu_type_bytes(p.type[i]) == 4),
                         "pieces of %u bytes in rows %s k", p.operand[i].piece,
                         p.operand[i].across ? "across" : "along");
    tensor *t = of_program(b, site, address, p.n);
    TL_EMU_INVARIANT(b, site,
                     p.pair == (t->programs > 1) && (!p.pair || (b->rank == 0 && !p.a_there)),
                     "a product of %u programs, begun by program %u, columns of %u", p.pair ? 2 : 1,
                     b->rank, t->programs);
    TL_EMU_INVARIANT(b, site, address >> 16 == 0 || (p.m == 64 && address >> 16 == 16),
                     "sums from lane %u on", address >> 16);
    begin_product(b, t, &p);
}

/* ---- products with scales ---- */

void tl_emu_tensor_scales(uint32_t site, uint64_t upper, uint32_t at, uint32_t address)
{
    tl_emu_block *b = tl_emu_now;
    uint64_t d = upper | at;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_TENSOR_SCALES);
    if (tl_emu_is_dropped(b, site))
        return;
    TL_EMU_INVARIANT(b, site, (d >> 46 & 7) == 1 && d >> 49 == 0, "the descriptor %" PRIx64, d);
    product p = {.site = site,
                 .thread = b->current->index,
                 .address = address,
                 .m = LANES,
                 .n = PIECE_COLUMNS,
                 .brings = true};
    p.operand[0] = (tl_emu_matrix){.start = (uint32_t)(d & 0x3fff) << 4,
                                   .stride = (uint32_t)(d >> 32 & 0x3fff) << 4};
    TL_EMU_INVARIANT(b, site, address >> 16 == 0, "scales from lane %u on", address >> 16);
    begin_product(b, of_program(b, site, address, PIECE_COLUMNS), &p);
}

/* PTX ISA, "Instruction descriptor", of kinds mxf8f6f4, mxf4 and mxf4nvf4. */
static void read_scaled_instruction(tl_emu_block *b, product *p, uint32_t i)
{
    uint32_t blocks = depth(p) / each_of(p), code_a = i >> 7 & 7, code_b = i >> 10 & 7;
    bool pairs = are_pairs(p);
    p->n = (i >> 17 & 63) << 3;
    p->m = (i >> 24 & 31) << 4;
    for (int o = 0; o < 2; o++)
        p->operand[o].across = i >> (15 + o) & 1;
    p->byte[0] = i >> 29 & 3;
    p->byte[1] = i >> 4 & 3;
    bool types = pairs ? code_a == 1 && code_b == 1 && !(i >> 15 & 3)
                       : p->scale == TILE_U8 && code_a == code_of(p->type[0]) &&
                             code_b == code_of(p->type[1]);
    TL_EMU_INVARIANT(b, p->site,
                     types && (i & 0xf) == 0 && (i >> 6 & 1) == 0 && (i >> 13 & 3) == 0 &&
                         i >> 31 == 0 && (i >> 23 & 1) == (p->scale == TILE_U8),
                     "instruction %" PRIx32 " of types %u, %u, %u", i, p->type[0], p->type[1],
                     p->scale);
    for (int o = 0; o < 2; o++)
        TL_EMU_INVARIANT(b, p->site, p->byte[o] % blocks == 0 && p->byte[o] + blocks <= WORD,
                         "%u scales from byte %u on", blocks, p->byte[o]);
    TL_EMU_INVARIANT(b, p->site, p->m == LANES && p->n && p->n <= 256 && p->n % 16 == 0,
                     "a product of %u rows, %u columns", p->m, p->n);
}

/* Scales are there, or on their way by the same thread, and no product's sums are. */
static void check_scales(tl_emu_block *b, const tensor *t, const product *p, int operand)
{
    uint32_t first = p->scales[operand] & 0xffff, rows = operand ? p->n : p->m,
             columns = (rows + WARP - 1) / WARP,
             bytes = ((1u << depth(p) / each_of(p)) - 1) << p->byte[operand];
    of_program(b, p->site, p->scales[operand], columns);
    check_all_untouched(b, t, p->site, first, columns);
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t c = 0; c < columns; c++)
            if (c * WARP + lane % WARP < rows && (t->state[first + c][lane] == UNKNOWN ||
                                                  t->missing[first + c][lane % WARP] & bytes))
                tl_emu_complain(b, TL_RUN_UNINIT, p->site,
                                "the product takes scales of column %" PRIu32
                                " of tensor memory, which nobody has brought",
                                first + c);
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t from = t->all[i].address & 0xffff;
        if (!t->all[i].brings && from < first + columns && first < from + t->all[i].n)
            tl_emu_complain(b, TL_RUN_ASYNC, p->site,
                            "a product onto column %" PRIu32
                            " of tensor memory, where scales are, is on its way",
                            from);
    }
}

void tl_emu_tensor_mma_scaled(uint32_t site, uint32_t instruction, uint32_t types, uint64_t upper_a,
                              uint32_t at_a, uint64_t upper_b, uint32_t at_b, uint32_t address,
                              uint32_t add, uint32_t scales_a, uint32_t scales_b)
{
    tl_emu_block *b = tl_emu_now;
    if (b->random)
        tl_emu_step(b);
    tl_emu_count(b, site, TL_LEAF_TENSOR_MMA_SCALED);
    product p = {.site = site,
                 .thread = b->current->index,
                 .address = address,
                 .k = K_BYTES,
                 .adds = add,
                 .scale = types >> 24,
                 .scales = {scales_a, scales_b}};
    for (int i = 0; i < 3; i++)
        p.type[i] = types >> 8 * i & 0xff;
    read_scaled_instruction(b, &p, instruction);
    p.operand[0] = read_descriptor(b, site, upper_a | at_a, p.operand[0].across);
    p.operand[1] = read_descriptor(b, site, upper_b | at_b, p.operand[1].across);
    tensor *t = of_program(b, site, address, p.n);
    TL_EMU_INVARIANT(b, site, address >> 16 == 0 && (scales_a | scales_b) >> 16 == 0,
                     "sums from lane %u on", address >> 16);
    for (int i = 0; i < 2; i++)
        check_scales(b, t, &p, i);
    begin_product(b, t, &p);
}

/* ---- when they are done ---- */

void tl_emu_tensor_commit(uint32_t site, uint32_t offset, uint32_t programs)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_TENSOR_COMMIT);
    if (!b)
        return;
    tensor *t = of_program(b, site, b->tensor ? b->tensor->base : 0, 1);
    t->commits = tl_emu_room(b, t->commits, t->ncommits, &t->room_commits, sizeof *t->commits);
    TL_EMU_INVARIANT(b, site, programs == t->programs, "a commit for %u programs, products of %u",
                     programs, t->programs);
    t->commits[t->ncommits++] = (commit){site, offset, t->n, programs > 1};
    b->cluster->changes++;
}

static void arrives(tensor *t, const product *p)
{
    set_state(t, p, KNOWN);
    for (uint32_t c = 0; c < p->n; c++)
        t->arrived[(p->address & 0xffff) + c] = t->arrivals;
    for (uint32_t c = 0; c < a_columns(p); c++)
        t->arrived[(p->a & 0xffff) + c] = t->arrivals;
}

/* The oldest n products are done. */
static void complete(tl_emu_block *b, tensor *t, uint32_t n)
{
    if (!n) /* a commit of nothing: no product was begun, and nothing is allocated for any */
        return;
    tensor *theirs = t->programs > 1 ? partner(b, t->all[0].site)->tensor : NULL;
    t->arrivals++;
    if (theirs)
        theirs->arrivals++;
    for (uint32_t i = 0; i < n; i++) {
        if (!t->all[i].is_done)
            compute(b, t, &t->all[i]);
        tell_reads(b, &t->all[i], true);
        arrives(t, &t->all[i]);
        if (theirs)
            arrives(theirs, &t->all[i]);
    }
    memmove(t->all, t->all + n, (t->n - n) * sizeof *t->all);
    t->n -= n;
    for (uint32_t i = 0; i < t->n; i++) { /* which may be onto the same columns */
        set_state(t, &t->all[i], ON_ITS_WAY);
        if (theirs)
            set_state(theirs, &t->all[i], ON_ITS_WAY);
    }
    for (uint32_t i = 0; i < t->ncommits; i++)
        t->commits[i].products -= t->commits[i].products < n ? t->commits[i].products : n;
}

/* The oldest commit of the block m that arrives at this barrier; NULL: none. */
static commit *due_by(const tl_emu_block *m, uint32_t offset, bool pair)
{
    tensor *t = m ? m->tensor : NULL;
    for (uint32_t i = 0; t && i < t->ncommits; i++)
        if (t->commits[i].offset == offset && (t->commits[i].pair || !pair))
            return &t->commits[i];
    return NULL;
}

tl_emu_block *tl_emu_tensor_is_due(tl_emu_block *b, uint32_t offset)
{
    if (due_by(b, offset, false))
        return b;
    return due_by(partner_of(b), offset, true) ? partner_of(b) : NULL;
}

bool tl_emu_tensor_is_under_way(tl_emu_block *b, uint32_t offset)
{
    const commit *mine = due_by(b, offset, false), *theirs = due_by(partner_of(b), offset, true);
    return (mine && mine->products) || (theirs && theirs->products);
}

tl_emu_arrival tl_emu_tensor_arrives(tl_emu_block *b, uint32_t offset, bool pair)
{
    tensor *t = b->tensor;
    commit *due = due_by(b, offset, pair), is = *due;
    tl_emu_block *other = is.pair ? partner(b, is.site) : NULL;
    complete(b, t, is.products);
    size_t behind = (size_t)(t->commits + t->ncommits - due) - 1;
    memmove(due, due + 1, behind * sizeof *due);
    t->ncommits--;
    return (tl_emu_arrival){.site = is.site, .offset = is.offset, .other = other};
}

void tl_emu_tensor_fence(uint32_t site, uint32_t after)
{
    tl_emu_block *b = tl_emu_enter(site, TL_LEAF_TENSOR_FENCE);
    tensor *t = b ? b->tensor : NULL;
    if (!t)
        return;
    uint32_t self = b->current->index;
    if (!after) {
        t->fences[self]++;
        return;
    }
    t->after[self] = tl_emu_block_moment(b->watch, self);
    t->seen[self] = t->arrivals;
    t->got[self] = t->waited[self];
    t->met[self] = b->met;
}

/* ---- threads ---- */

typedef struct lane_access {
    uint32_t site, address, nwords, *words, columns;
    bool half; /* of the warp's lanes: the first 16 */
} lane_access;

typedef struct cell {
    uint32_t lane, column;
} cell;

/* Word i of thread `lane`, from the address on: PTX ISA, shapes .32x32b and .16x256b. */
static cell cell_of(const lane_access *x, uint32_t lane, uint32_t i)
{
    cell c = {.lane = x->address >> 16, .column = x->address & 0xffff};
    c.lane += x->half ? lane / 4 + i / 2 % 2 * 8 : lane;
    c.column += x->half ? lane % 4 * 2 + i % 2 + i / 4 * 8 : i;
    return c;
}

/* Of the current warp: its lanes. */
static tensor *reach(tl_emu_block *b, const lane_access *x)
{
    uint32_t lane = x->address >> 16, first = b->current->index / WARP % (LANES / WARP) * WARP;
    if (lane != first)
        tl_emu_complain(b, TL_RUN_BOUNDS, x->site,
                        "the warp reaches lanes %" PRIu32 " to %" PRIu32
                        " of tensor memory, not lane %" PRIu32,
                        first, first + WARP - 1, lane);
    return of_program(b, x->site, x->address, x->columns);
}

static void touches(tl_emu_block *b, tensor *t, const lane_access *x)
{
    uint32_t column = x->address & 0xffff, w = x->address >> 21;
    check_untouched(b, t, x->site, column, x->columns, w);
    touch_columns(b, t, x->site, column, x->columns, w);
}

/* The thread has passed a fence behind its wait for the product onto the column. */
static void check_arrived(tl_emu_block *b, const tensor *t, uint32_t site, uint32_t column)
{
    if (t->arrived[column] > t->seen[b->current->index])
        tl_emu_complain(b, TL_RUN_ASYNC, site,
                        "a product onto column %" PRIu32
                        " of tensor memory has arrived, and this thread passed no fence since",
                        column);
}

static void load(tl_emu_block *b, void *const *mine)
{
    lane_access *const *lanes = (lane_access *const *)mine;
    const lane_access *x = lanes[0];
    tensor *t = reach(b, x);
    for (uint32_t c = 0; c < x->columns; c++)
        check_arrived(b, t, x->site, (x->address & 0xffff) + c);
    for (uint32_t i = 0; i < x->nwords; i++)
        for (uint32_t lane = 0; lane < WARP; lane++) {
            cell c = cell_of(x, lane, i);
            state s = (state)t->state[c.column][c.lane];
            if (s != KNOWN)
                tl_emu_complain(b, s == UNKNOWN ? TL_RUN_UNINIT : TL_RUN_ASYNC, x->site,
                                "lane %" PRIu32 " of column %" PRIu32 " of tensor memory %s",
                                c.lane, c.column,
                                s == UNKNOWN ? "has been written by nobody" : "is on its way");
            lanes[lane]->words[i] = t->word[c.column][c.lane];
        }
    touches(b, t, x);
}

static void store(tl_emu_block *b, void *const *mine)
{
    lane_access *const *lanes = (lane_access *const *)mine;
    const lane_access *x = lanes[0];
    tensor *t = reach(b, x);
    for (uint32_t c = 0; c < x->columns; c++)
        check_arrived(b, t, x->site, (x->address & 0xffff) + c);
    for (uint32_t i = 0; i < x->nwords; i++)
        for (uint32_t lane = 0; lane < WARP; lane++) {
            cell c = cell_of(x, lane, i);
            if (t->state[c.column][c.lane] == ON_ITS_WAY)
                tl_emu_complain(b, TL_RUN_ASYNC, x->site,
                                "a product onto column %" PRIu32 " of tensor memory is on its way",
                                c.column);
            check_not_read(b, t, x->site, c.column);
            t->word[c.column][c.lane] = lanes[lane]->words[i];
            t->state[c.column][c.lane] = KNOWN;
        }
    touches(b, t, x);
}

/* All lanes of a warp. */
static void reach_all(tl_leaf leaf, lane_access x, void (*how)(tl_emu_block *, void *const *))
{
    tl_emu_block *b = tl_emu_now;
    x.half = leaf == TL_LEAF_TENSOR_LD_16 || leaf == TL_LEAF_TENSOR_ST_16;
    x.columns = x.half ? x.nwords * 2 : x.nwords;
    tl_emu_count(b, x.site, leaf);
    TL_EMU_INVARIANT(b, x.site, !x.half || x.nwords % 4 == 0, "%u words of 16 lanes", x.nwords);
    tl_emu_meet_warp(b, leaf, x.site, x.address, &x, how);
}

void tl_emu_tensor_ld(uint32_t site, uint32_t address, uint32_t nwords, uint32_t *words)
{
    reach_all(TL_LEAF_TENSOR_LD, (lane_access){site, address, nwords, words, 0, false}, load);
}

void tl_emu_tensor_ld_16(uint32_t site, uint32_t address, uint32_t nwords, uint32_t *words)
{
    reach_all(TL_LEAF_TENSOR_LD_16, (lane_access){site, address, nwords, words, 0, true}, load);
}

void tl_emu_tensor_st(uint32_t site, uint32_t address, uint32_t nwords, uint32_t *words)
{
    reach_all(TL_LEAF_TENSOR_ST, (lane_access){site, address, nwords, words, 0, false}, store);
}

void tl_emu_tensor_st_16(uint32_t site, uint32_t address, uint32_t nwords, uint32_t *words)
{
    reach_all(TL_LEAF_TENSOR_ST_16, (lane_access){site, address, nwords, words, 0, true}, store);
}

static void unite(tl_emu_block *b, void *const *mine)
{
    bool *const *lanes = (bool *const *)mine, any = false;
    for (uint32_t i = 0; i < b->lanes; i++)
        any |= *lanes[i];
    for (uint32_t i = 0; i < b->lanes; i++)
        *lanes[i] = any;
}

uint32_t tl_emu_vote_any(uint32_t site, uint32_t is)
{
    tl_emu_block *b = tl_emu_now;
    bool any = is != 0;
    tl_emu_count(b, site, TL_LEAF_VOTE_ANY);
    tl_emu_meet_warp(b, TL_LEAF_VOTE_ANY, site, 0, &any, unite);
    return any;
}

void tl_emu_tensor_ended(tl_emu_block *b)
{
    const tensor *t = b->tensor;
    if (t && needs_block(b))
        tl_emu_say(b, TL_RUN_ASYNC, (t->n ? t : partner_of(b)->tensor)->all[0].site,
                   "the program has ended before this product was waited for");
    else if (t && t->columns)
        tl_emu_say(b, TL_RUN_ASYNC, t->site,
                   "the program has ended and not given this tensor memory back");
}
