/* Planning the way between registers and a buffer (staged_plan.h).
 *
 * A coordinate is a place: an offset within a chunk of the buffer, linear in the coordinates' bits,
 * and a chunk number along each axis. Both are XORs of what register, lane and warp bits give.
 *
 * Vectors: a vector of 1 << v elements wants, for each of the low v bits of the offset, registers
 * (one bit or an XOR of some) that give this bit and nothing else, and threads that never touch
 * these bits. Then the registers fall into cosets of what these span, one access each, and each
 * coset has one member that begins it.
 *
 * Matrices, in bytes of the offset (an element of 16-bit words, a row of 16 bytes):
 *            register                 lane 0, 1     lane 2, 3, 4   others
 *   plain    up to a word: 1, 2       4, 8          whole rows     whole rows
 *   .trans   one bit: a whole row     whole rows    2, 4, 8        whole rows
 *   bytes    two bits: whole rows;    whole rows    1, 2, 4        whole rows
 *            one bit: 8
 *            (put: the word has that bit and one of rows)
 *   columns  log2 n bits: 8 bytes    elements      8 bytes        8 bytes
 *            (lanes 0 .. log2 n - 1 give 1, 2, ... elements, n being those of 8 bytes)
 * Each matrix after the first takes one more register bit that gives whole rows. What gives rows
 * gives the addresses: the lane that holds row j of matrix i has the register bits in its place. */
#include "ir/plan/staged_plan.h"
#include <string.h>

#include "ir/layout/gf2.h"

enum { ROW_BYTES = 16, WORD_BYTES = 4, MATRIX_LANES = 5, MAX_BASIS = 32 };
enum { COLUMN_LANES = 4, COLUMN_BYTES = 8 }; /* log2 of lanes that transpose; of one's piece */

/* The offset of a coordinate. */
typedef struct Offset {
    uint32_t inner; /* elements */
    uint32_t chunk[TL_LAYOUT_MAX_OUT];
} Offset;

typedef struct Planner {
    TlArena *arena;
    const TlType *tile, *buf;
    const TlLayout *l;           /* the tile's */
    uint32_t flags, elem, nregs; /* elem: bytes */
    uint32_t piece;              /* bytes of a row that one lane gives the address of */
    int nreal, lanes, warps;     /* bits; nreal: of registers, without repetitions */
    Offset reg[TL_LAYOUT_MAX_BITS], lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
    uint32_t unit[TL_LAYOUT_MAX_OUT][TL_LAYOUT_MAX_BITS]; /* offset of each coordinate bit */
    uint32_t stride[TL_LAYOUT_MAX_OUT];                   /* of chunks, in bytes */
    TlBufPlan *p;
} Planner;

/* ---- places ---- */

static Offset offset_of(const Planner *pl, const int32_t *coordinate)
{
    const TlLayout *m = pl->buf->layout;
    Offset p = {0};
    for (int d = 0; d < m->nout; d++) {
        for (int b = 0; b < m->out_bits[d]; b++)
            p.inner ^= coordinate[d] >> b & 1 ? pl->unit[d][b] : 0;
        p.chunk[d] = (uint32_t)coordinate[d] >> m->out_bits[d];
    }
    return p;
}

static void add_offset(Offset *p, const Offset *x)
{
    p->inner ^= x->inner;
    for (int d = 0; d < TL_LAYOUT_MAX_OUT; d++)
        p->chunk[d] ^= x->chunk[d];
}

static bool in_one_chunk(const Offset *p)
{
    static const Offset none;
    return memcmp(p->chunk, none.chunk, sizeof p->chunk) == 0;
}

/* As one vector of bits. */
static uint64_t packed(const Planner *pl, const Offset *p)
{
    uint64_t v = 0;
    for (int d = 0; d < pl->l->nout; d++)
        v = v << pl->l->out_bits[d] | p->chunk[d];
    return v << tl_layout_in_bits(pl->buf->layout, TL_IN_OFFSET) | p->inner;
}

/* The offset of a register, repetitions included, in thread 0. */
static Offset offset_of_reg(const Planner *pl, uint32_t reg)
{
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    int32_t c[TL_LAYOUT_MAX_OUT];
    tl_layout_apply_reg(pl->l, reg, origin, c);
    return offset_of(pl, c);
}

static int images(const Planner *pl, TlInDim in, int limit, Offset *out)
{
    int k = tl_layout_in_index(pl->l, in), n = tl_layout_in_bits(pl->l, in);
    TL_ASSERT(n <= limit, "a layout of 2^%d", n);
    for (int b = 0; b < n; b++)
        out[b] = offset_of(pl, pl->l->basis[k][b]);
    return n;
}

static void find_units(Planner *pl)
{
    const TlLayout *m = pl->buf->layout;
    uint32_t stride = pl->elem << tl_layout_in_bits(m, TL_IN_OFFSET);
    for (int d = m->nout - 1; d >= 0; d--) {
        for (int b = 0; b < m->out_bits[d]; b++) {
            int32_t c[TL_LAYOUT_MAX_OUT] = {0};
            c[d] = (int32_t)1 << b;
            pl->unit[d][b] = (uint32_t)tl_layout_solve(m, TL_IN_OFFSET, c);
        }
        pl->stride[d] = stride;
        stride *= (uint32_t)m->reps[d];
    }
}

/* ---- what threads give ---- */

static void add_far(Planner *pl, int dim)
{
    TlBufFar f = {.dim = dim, .stride = pl->stride[dim]};
    uint32_t any = 0;
    for (int b = 0; b < pl->lanes; b++)
        any |= f.thread.lane[b] = pl->lane[b].chunk[dim];
    for (int b = 0; b < pl->warps; b++)
        any |= f.thread.warp[b] = pl->warp[b].chunk[dim];
    if (any)
        pl->p->far[pl->p->nfar++] = f;
}

static void find_threads(Planner *pl)
{
    for (int b = 0; b < pl->lanes; b++)
        pl->p->inner.lane[b] = pl->lane[b].inner * pl->elem;
    for (int b = 0; b < pl->warps; b++)
        pl->p->inner.warp[b] = pl->warp[b].inner * pl->elem;
    for (int d = 0; d < pl->l->nout; d++)
        add_far(pl, d);
}

/* May a coordinate of this register be `end` or more along d, in some thread? */
static bool may_pass(const Planner *pl, uint32_t reg, int d, int32_t end)
{
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    int32_t c[TL_LAYOUT_MAX_OUT], most;
    tl_layout_apply_reg(pl->l, reg, origin, c);
    most = c[d];
    for (int i = 0; i < pl->l->nin; i++)
        for (int b = 0; b < pl->l->in_bits[i]; b++)
            most |= pl->l->in[i] == TL_IN_REG ? 0 : pl->l->basis[i][b][d];
    return most >= end;
}

static bool is_guarded(const Planner *pl, uint32_t reg)
{
    bool writes = pl->flags & TL_BUF_WRITES;
    for (int d = 0; d < pl->l->nout; d++)
        if (may_pass(pl, reg, d,
                     writes ? tl_layout_extent(pl->buf->layout, d) : pl->tile->shape[d]))
            return true;
    return false;
}

/* ---- accesses ---- */

static TlBufAccess *new_access(Planner *pl, uint32_t first)
{
    TlBufPlan *p = pl->p;
    TlBufAccess *a = &p->accesses[p->naccesses++];
    Offset at = offset_of_reg(pl, first);
    a->inner = at.inner * pl->elem;
    for (int d = 0, k = 0; d < pl->l->nout; d++) {
        if (k < p->nfar && p->far[k].dim == d)
            a->far_at[k++] = at.chunk[d];
        else
            a->outer += at.chunk[d] * pl->stride[d];
    }
    a->guarded = is_guarded(pl, first);
    a->regs = TL_NEW_ARRAY(pl->arena, int32_t, p->nregs);
    return a;
}

static uint32_t combined(const uint32_t *combos, uint32_t bits)
{
    uint32_t v = 0;
    for (int i = 0; bits; i++, bits >>= 1)
        v ^= bits & 1 ? combos[i] : 0;
    return v;
}

/* Lists the registers reg ^ combos; the first n / words of them are the elements of a word. */
static void fill_regs(TlBufAccess *a, uint32_t n, uint32_t first, const uint32_t *combos)
{
    for (uint32_t i = 0; i < n; i++)
        a->regs[i] = (int32_t)(first ^ combined(combos, i));
}

/* ---- vectors ---- */

/* Registers that give just bit j of the offset; false: there are none. */
static bool find_bit(const Planner *pl, const TlSpan *regs, int j, uint32_t *out)
{
    uint64_t combo = 0;
    if (pl->flags & TL_BUF_IN_ORDER) {
        *out = 1u << j;
        return j < pl->nreal && packed(pl, &pl->reg[j]) == 1ull << j;
    }
    bool found = tl_span_reduce(regs, 1ull << j, &combo) == 0;
    *out = (uint32_t)combo;
    return found;
}

static bool threads_leave(const Planner *pl, uint32_t low)
{
    for (int b = 0; b < pl->lanes; b++)
        if (pl->lane[b].inner & low)
            return false;
    for (int b = 0; b < pl->warps; b++)
        if (pl->warp[b].inner & low)
            return false;
    return true;
}

/* Is each vector either inside of the shape as a whole, or outside? */
static bool ends_fit(const Planner *pl, int bits)
{
    const TlLayout *m = pl->buf->layout;
    for (int d = 0; d < m->nout && !(pl->flags & TL_BUF_WRITES); d++) {
        int32_t moved = 0, run = 1;
        for (int b = 0; b < bits; b++)
            moved |= m->basis[0][b][d];
        while (run <= moved)
            run *= 2;
        if (tl_layout_extent(pl->l, d) > pl->tile->shape[d] && pl->tile->shape[d] % run != 0)
            return false;
    }
    return true;
}

static void span_of_registers(const Planner *pl, TlSpan *s)
{
    memset(s, 0, sizeof *s);
    for (int b = 0; b < pl->nreal; b++)
        tl_span_add(s, packed(pl, &pl->reg[b]), 1ull << b);
}

static bool has_order(const Planner *pl, int bits)
{
    uint32_t low = (1u << bits) - 1;
    if (!(pl->flags & TL_BUF_IN_ORDER))
        return true;
    for (int b = bits; b < pl->nreal; b++)
        if (pl->reg[b].inner & low)
            return false;
    for (uint32_t r = 0; r < pl->nregs; r += 1u << pl->nreal)
        if (offset_of_reg(pl, r).inner & low)
            return false;
    return true;
}

static int vector_bits(const Planner *pl, int max_regs, uint32_t *combos)
{
    TlSpan regs;
    int bits = 0;
    span_of_registers(pl, &regs);
    while (2 << bits <= max_regs && pl->elem << (bits + 1) <= ROW_BYTES &&
           bits < tl_layout_in_bits(pl->buf->layout, TL_IN_OFFSET) &&
           find_bit(pl, &regs, bits, &combos[bits]))
        bits++;
    while (bits > 0 &&
           !(threads_leave(pl, (1u << bits) - 1) && ends_fit(pl, bits) && has_order(pl, bits)))
        bits--;
    return bits;
}

static void plan_vectors(Planner *pl, int max_regs)
{
    uint32_t combos[TL_LAYOUT_MAX_BITS];
    int bits = vector_bits(pl, max_regs, combos);
    pl->p->nregs = 1u << bits;
    pl->p->accesses = TL_NEW_ARRAY(pl->arena, TlBufAccess, pl->nregs);
    for (uint32_t r = 0; r < pl->nregs; r++)
        if (!(offset_of_reg(pl, r).inner & ((1u << bits) - 1)))
            fill_regs(new_access(pl, r), pl->p->nregs, r, combos);
}

/* ---- matrices ---- */

static bool gives(const Planner *pl, const Offset *p, uint32_t bytes)
{
    return in_one_chunk(p) && p->inner * pl->elem == bytes;
}

static bool gives_rows(const Planner *pl, const Offset *p)
{
    return p->inner * pl->elem % pl->piece == 0;
}

static bool is_exact(const Planner *pl)
{
    for (int d = 0; d < pl->l->nout; d++)
        if (tl_layout_extent(pl->l, d) != pl->tile->shape[d])
            return false;
    return true;
}

/* Register bits or XORs of some: those that give bits within a row, from bit `low` of the offset
 * on, then those that give whole rows. */
typedef struct Generators {
    uint32_t combo[MAX_BASIS];
    Offset place[MAX_BASIS];
    int low, nword, n;
} Generators;

/* The first generators' bits in an offset. */
static uint32_t within(const Generators *g, const Offset *p)
{
    return p->inner >> g->low & ((1u << g->nword) - 1);
}

static Offset offset_of_combo(const Planner *pl, uint32_t combo)
{
    Offset p = {0};
    for (int b = 0; b < pl->nreal; b++)
        if (combo >> b & 1)
            add_offset(&p, &pl->reg[b]);
    return p;
}

/* Adds the other registers, without their effect within a word. False: one of them does not move
 * whole rows. Those that lead to other chunks are no generators. */
static bool find_rows(const Planner *pl, Generators *g)
{
    TlSpan taken = {0};
    for (int i = 0; i < g->nword; i++)
        tl_span_add(&taken, g->combo[i], 0);
    for (int b = 0; b < pl->nreal; b++) {
        uint32_t combo = 1u << b;
        if (!tl_span_add(&taken, combo, 0))
            continue;
        combo ^= combined(g->combo, within(g, &pl->reg[b]));
        Offset p = offset_of_combo(pl, combo);
        if (!gives_rows(pl, &p))
            return false;
        if (!in_one_chunk(&p))
            continue;
        g->combo[g->n] = combo;
        g->place[g->n++] = p;
    }
    for (uint32_t r = 0; r < pl->nregs; r += 1u << pl->nreal) {
        Offset at = offset_of_reg(pl, r),
               p = offset_of_reg(pl, r ^ combined(g->combo, within(g, &at)));
        if (!gives_rows(pl, &p))
            return false;
    }
    return true;
}

static bool threads_give_rows(const Planner *pl, int from_lane, int to_lane)
{
    for (int b = from_lane; b < to_lane; b++)
        if (!gives_rows(pl, &pl->lane[b]))
            return false;
    for (int b = 0; b < pl->warps; b++)
        if (!gives_rows(pl, &pl->warp[b]))
            return false;
    return true;
}

static bool find_plain(const Planner *pl, Generators *g)
{
    TlSpan regs;
    if (pl->elem > WORD_BYTES || !gives(pl, &pl->lane[0], 4) || !gives(pl, &pl->lane[1], 8) ||
        !threads_give_rows(pl, 2, MATRIX_LANES))
        return false;
    span_of_registers(pl, &regs);
    for (; pl->elem << g->nword < WORD_BYTES; g->nword++)
        if (!find_bit(pl, &regs, g->nword, &g->combo[g->nword]))
            return false;
    g->n = g->nword;
    return find_rows(pl, g);
}

static bool find_trans(const Planner *pl, Generators *g)
{
    for (int b = 0; b < 3; b++)
        if (!gives(pl, &pl->lane[2 + b], 2u << b))
            return false;
    return pl->elem == 2 && threads_give_rows(pl, 0, 2) && find_rows(pl, g) && g->n > 0;
}

/* Bytes: one register bit is the other half of a row. */
static bool find_bytes(const Planner *pl, Generators *g)
{
    enum { HALF = 3, ROWS = 2 }; /* log2 of 8 bytes; register bits that give rows in a matrix */
    TlSpan regs;
    for (int b = 0; b < 3; b++)
        if (!gives(pl, &pl->lane[2 + b], 1u << b))
            return false;
    span_of_registers(pl, &regs);
    *g = (Generators){.low = HALF, .nword = 1, .n = 1};
    int rows = pl->flags & TL_BUF_WRITES ? 1 : ROWS;
    return pl->elem == 1 && pl->flags & TL_BUF_MAY_MATRIX_8 && threads_give_rows(pl, 0, 2) &&
           find_bit(pl, &regs, HALF, &g->combo[0]) && find_rows(pl, g) && g->n > rows;
}

/* Lane 8i + j gives row j of matrix i: the lanes and registers that this row belongs to. */
static void give_rows(Planner *pl, const Offset *rows, int nrows)
{
    for (int b = 0; b < MATRIX_LANES; b++)
        pl->p->inner.lane[b] = b < nrows ? rows[b].inner * pl->elem : 0;
}

/* Takes generators [0, used), in the order of `combos`: the registers that each makes with the
 * others are one access. */
static void add_matrices(Planner *pl, const Generators *g, const uint32_t *combos, int used)
{
    bool *done = TL_NEW_ARRAY(pl->arena, bool, pl->nregs);
    pl->p->nregs = 1u << used;
    pl->p->accesses = TL_NEW_ARRAY(pl->arena, TlBufAccess, pl->nregs);
    for (uint32_t r = 0; r < pl->nregs; r++) {
        Offset at = offset_of_reg(pl, r);
        if (done[r] || within(g, &at))
            continue;
        TlBufAccess *a = new_access(pl, r);
        fill_regs(a, pl->p->nregs, r, combos);
        for (uint32_t i = 0; i < pl->p->nregs; i++)
            done[a->regs[i]] = true;
    }
}

/* get: rows 1 and 2 of a matrix by registers, 4 and 8 by lanes, then a second matrix. put: row 1 by
 * a register, then up to four matrices. */
static bool plan_bytes(Planner *pl)
{
    enum { MOST = 4 }; /* bits of an access's registers */
    Generators g;
    Offset rows[MATRIX_LANES];
    uint32_t combos[MAX_BASIS];
    bool puts = pl->flags & TL_BUF_WRITES;
    if (!find_bytes(pl, &g))
        return false;
    int in_word = puts ? 1 : 2, used = g.n < MOST ? g.n : MOST, n = 0;
    memcpy(combos, g.combo, sizeof combos);
    memmove(combos, combos + 1, (size_t)in_word * sizeof *combos); /* the half comes behind rows */
    combos[in_word] = g.combo[0];
    for (int b = 0; b < in_word; b++)
        rows[n++] = g.place[1 + b];
    for (int b = 0; b < 2; b++)
        rows[n++] = pl->lane[b];
    for (int b = 1 + in_word; b < used; b++)
        rows[n++] = g.place[b];
    pl->p->kind = TL_BUF_MATRIX_8;
    pl->p->words = (1 << used) / WORD_BYTES;
    give_rows(pl, rows, n);
    add_matrices(pl, &g, combos, used);
    return true;
}

static bool plan_matrices(Planner *pl)
{
    Generators g = {.nword = 0};
    bool plain = find_plain(pl, &g);
    if (!plain) {
        g = (Generators){.nword = 0};
        if (!find_trans(pl, &g))
            return plan_bytes(pl);
    }
    Offset rows[MATRIX_LANES];
    int n = 0, first = plain ? g.nword : 1, most = first + 2, used = g.n < most ? g.n : most;
    for (int b = 0; b < 2 && !plain; b++)
        rows[1 + b] = pl->lane[b];
    for (int b = 0; b < 3 && plain; b++)
        rows[b] = pl->lane[2 + b];
    if (!plain)
        rows[0] = g.place[0];
    for (n = 3; n < 3 + used - first; n++)
        rows[n] = g.place[first + n - 3];
    pl->p->kind = plain ? TL_BUF_MATRIX : TL_BUF_MATRIX_TRANS;
    pl->p->words = 1 << (used - first);
    give_rows(pl, rows, n);
    add_matrices(pl, &g, g.combo, used);
    return true;
}

/* ---- columns ---- */

/* Lane 4 - bits of a group's number and up count rows, those below them pieces of a row. */
static bool plan_columns(Planner *pl)
{
    Generators g = {.nword = 0};
    int bits = tl_floor_log2(COLUMN_BYTES / pl->elem), pieces = COLUMN_LANES - bits;
    Offset rows[COLUMN_LANES];
    if (pl->elem > 2 || pl->lanes < COLUMN_LANES)
        return false;
    for (int b = 0; b < bits; b++)
        if (!gives(pl, &pl->lane[b], pl->elem << b))
            return false;
    if (!threads_give_rows(pl, bits, pl->lanes) || !find_rows(pl, &g) || g.n < bits)
        return false;
    memcpy(rows, pl->lane + bits, (size_t)pieces * sizeof *rows);
    memcpy(rows + pieces, g.place, (size_t)bits * sizeof *rows);
    for (int b = 0; b < COLUMN_LANES; b++)
        pl->p->inner.lane[b] = rows[b].inner * pl->elem;
    pl->p->kind = TL_BUF_COLUMNS;
    pl->p->words = COLUMN_BYTES / WORD_BYTES;
    add_matrices(pl, &g, g.combo, bits);
    return true;
}

/* By an instruction of a whole warp, if there is one that fits. */
static bool plan_together(Planner *pl)
{
    if (pl->flags & TL_BUF_MAY_COLUMNS)
        return plan_columns(pl);
    return pl->flags & TL_BUF_MAY_MATRIX && pl->lanes == MATRIX_LANES && plan_matrices(pl);
}

/* ---- the plan ---- */

static Planner planner_of(TlArena *arena, const TlType *tile, const TlType *buf, uint32_t flags)
{
    TL_ASSERT(buf->kind == TL_BUF && tile->rank == buf->rank, "a buffer of another rank");
    Planner pl = {.arena = arena, .tile = tile, .buf = buf, .l = tile->layout, .flags = flags};
    pl.elem = (uint32_t)tl_dtype_bytes(buf->dtype);
    pl.nregs = (uint32_t)tl_layout_registers(pl.l);
    pl.piece = flags & TL_BUF_MAY_COLUMNS ? COLUMN_BYTES : ROW_BYTES;
    find_units(&pl);
    pl.nreal = images(&pl, TL_IN_REG, TL_LAYOUT_MAX_BITS, pl.reg);
    pl.lanes = images(&pl, TL_IN_LANE, TL_MAX_LANE_BITS, pl.lane);
    pl.warps = images(&pl, TL_IN_WARP, TL_MAX_WARP_BITS, pl.warp);
    pl.p = TL_NEW(arena, TlBufPlan);
    find_threads(&pl);
    return pl;
}

/* Debug builds prove each plan that is small enough. */
static TlBufPlan *proved(TlArena *arena, TlBufPlan *p, const TlType *tile, const TlType *buf,
                         uint32_t flags)
{
#ifndef NDEBUG
    enum { MOST_ELEMENTS = 1 << 16 };
    if (tl_layout_registers(tile->layout) << tl_layout_in_bits(tile->layout, TL_IN_LANE)
                                          << tl_layout_in_bits(tile->layout, TL_IN_WARP) <=
        MOST_ELEMENTS) {
        const char *fault = tl_buf_prove(arena, p, tile, buf, flags);
        TL_ASSERT(!fault, "plan of a buffer's access: %s", fault);
    }
#else
    (void)arena, (void)tile, (void)buf, (void)flags;
#endif
    return p;
}

/* Do several threads hold an element? */
static bool has_copies(const Planner *pl)
{
    uint32_t copies[TL_LAYOUT_MAX_IN] = {0}, any = 0;
    tl_layout_free_masks(pl->l, copies);
    for (int i = 0; i < pl->l->nin; i++)
        any |= pl->l->in[i] == TL_IN_REG ? 0 : copies[i];
    return any != 0;
}

TlBufPlan *tl_buf_plan(TlArena *arena, const TlType *tile, const TlType *buf, int max_regs,
                       uint32_t flags)
{
    TL_ASSERT(max_regs > 0 && tile->layout, "vectors of %d registers", max_regs);
    Planner pl = planner_of(arena, tile, buf, flags);
    plan_vectors(&pl, max_regs);
    if (!(flags & (TL_BUF_MAY_MATRIX | TL_BUF_MAY_COLUMNS)) || pl.p->nfar || !is_exact(&pl) ||
        (flags & TL_BUF_WRITES && has_copies(&pl)))
        return proved(arena, pl.p, tile, buf, flags);
    Planner with = planner_of(arena, tile, buf, flags);
    bool better = plan_together(&with) && with.p->naccesses < pl.p->naccesses;
    return proved(arena, better ? with.p : pl.p, tile, buf, flags);
}

TlBufPlan *tl_copy_plan(TlArena *arena, const TlOp *op)
{
    enum { ANY = 16 };
    const TlType *tile = op->out[0]->type, *buf = tl_op_place(op).buf->type;
    const TlAttr *async = tl_attr(op, TL_ATTR_ASYNC);
    if (!async)
        return tl_buf_plan(arena, tile, buf, ANY, TL_BUF_WRITES);
    return tl_buf_plan(arena, tile, buf, (int)async->u.i / tl_dtype_bytes(tile->dtype),
                       TL_BUF_WRITES | TL_BUF_IN_ORDER);
}

/* ---- rows of a warp ---- */

static bool is_exact_buffer(const TlType *buf)
{
    for (int d = 0; d < buf->rank; d++)
        if (tl_layout_extent(buf->layout, d) != buf->shape[d])
            return false;
    return true;
}

/* Offsets in a chunk, from the lowest bit: 16 bytes of a thread, the lanes, the warps, and what
 * more there is. */
const TlLayout *tl_buf_row_layout(TlCtx *ctx, TlArena *arena, const TlType *buf, int lanes,
                                  int warps)
{
    const TlLayout *l = buf->layout;
    int all = tl_layout_in_bits(l, TL_IN_OFFSET), rank = l->nout,
        piece = tl_floor_log2(TL_ROW_BYTES / (uint32_t)tl_dtype_bytes(buf->dtype)),
        lane = tl_ceil_log2((uint32_t)lanes), warp = tl_ceil_log2((uint32_t)warps), n = 0,
        out[TL_LAYOUT_MAX_OUT];
    if (all < piece + lane || !is_exact_buffer(buf))
        return NULL;
    int32_t images[TL_LAYOUT_MAX_BITS + TL_MAX_WARP_BITS][TL_LAYOUT_MAX_OUT] = {{0}},
                                        *flat = &images[0][0];
    int first = tl_layout_in_index(l, TL_IN_OFFSET),
        some = all - piece - lane < warp ? all - piece - lane : warp;
    int from[] = {0, piece + lane + some, piece, piece + lane},
        many[] = {piece, all - piece - lane - some, lane, some};
    for (int part = 0; part < 4; part++)
        for (int b = 0; b < many[part]; b++, n++)
            for (int d = 0; d < rank; d++)
                flat[n * rank + d] = l->basis[first][from[part] + b][d];
    for (int d = 0; d < rank; d++)
        out[d] = l->out_bits[d];
    int regs = many[0] + many[1];
    TlInBases in[] = {{TL_IN_REG, regs, flat},
                      {TL_IN_LANE, lane, flat + regs * rank},
                      {TL_IN_WARP, warp, flat + (regs + lane) * rank}};
    TlLayout made = *tl_layout_make(arena, rank, out, 3, in);
    memcpy(made.reps, l->reps, sizeof made.reps);
    return tl_layout_intern(ctx, &made);
}

bool tl_buf_is_rows(const TlBufPlan *p, const TlType *buf, int lanes)
{
    uint32_t in_row = TL_ROW_BYTES * (uint32_t)lanes - TL_ROW_BYTES, others = 0;
    if (p->kind != TL_BUF_VECTOR || p->nregs * (uint32_t)tl_dtype_bytes(buf->dtype) != TL_ROW_BYTES)
        return false;
    for (uint32_t b = 0; 1 << b < lanes; b++)
        if (p->inner.lane[b] != (uint32_t)TL_ROW_BYTES << b)
            return false;
    for (int b = 0; b < TL_MAX_WARP_BITS; b++)
        others |= p->inner.warp[b];
    for (int k = 0; k < p->nfar; k++)
        for (uint32_t b = 0; 1 << b < lanes; b++)
            if (p->far[k].thread.lane[b])
                return false;
    for (uint32_t i = 0; i < p->naccesses; i++)
        others |= p->accesses[i].inner | (p->accesses[i].guarded ? in_row : 0);
    return !(others & in_row);
}

/* ---- the proof ---- */

static uint64_t offset_in(const TlBufPlan *p, const TlBufAccess *a, uint32_t lane, uint32_t warp)
{
    uint64_t at = a->outer + (uint64_t)(tl_thread_map(&p->inner, lane, warp) ^ a->inner);
    for (int k = 0; k < p->nfar; k++)
        at += (uint64_t)p->far[k].stride *
              (tl_thread_map(&p->far[k].thread, lane, warp) ^ a->far_at[k]);
    return at;
}

/* The same of byte i of an access to bytes that are transposed. */
static uint64_t offset_of_byte(const TlBufPlan *p, const TlBufAccess *a, uint32_t i, bool puts,
                               uint32_t lane, uint32_t warp)
{
    uint32_t word = i / WORD_BYTES, e = i % WORD_BYTES, column = lane >> 2, place = lane & 3;
    if (puts)
        return offset_in(p, a, 8 * word + 2 * place + e % 2, warp) + column + 8 * (e / 2);
    return offset_in(p, a, 16 * (word / 2) + 4 * place + e, warp) + column + 8 * (word % 2);
}

/* The offset that regs[i] of the access is read from, or written to, in this thread. */
static uint64_t offset_of_element(const TlBufPlan *p, const TlBufAccess *a, uint32_t i,
                                 uint32_t elem, uint32_t lane, uint32_t warp)
{
    TL_ASSERT(i < p->nregs, "register %u of %u", i, p->nregs);
    if (p->kind == TL_BUF_VECTOR)
        return offset_in(p, a, lane, warp) + (uint64_t)i * elem;
    if (p->kind == TL_BUF_COLUMNS) {
        uint32_t n = COLUMN_BYTES / elem, column = lane & 15,
                 from = (lane & ~15u) + i * (16 / n) + column / n;
        return offset_in(p, a, from, warp) + elem * (column % n);
    }
    uint32_t in_word = WORD_BYTES / elem, matrix = i / in_word, e = i % in_word;
    uint32_t group = lane >> 2, place = lane & 3;
    if (p->kind == TL_BUF_MATRIX)
        return offset_in(p, a, 8 * matrix + group, warp) + WORD_BYTES * place + elem * e;
    return offset_in(p, a, 8 * matrix + 2 * place + e, warp) + elem * group;
}

static const char *prove_thread(TlArena *arena, const TlBufPlan *p, const TlType *tile,
                                const TlType *buf, uint32_t flags, const uint32_t *thread,
                                uint8_t *seen)
{
    uint32_t elem = (uint32_t)tl_dtype_bytes(buf->dtype);
    for (uint32_t k = 0; k < p->naccesses; k++) {
        const TlBufAccess *a = &p->accesses[k];
        int32_t c[TL_LAYOUT_MAX_OUT];
        bool outside[2] = {false, false};
        for (uint32_t i = 0; i < p->nregs; i++) {
            bool past = false, out = false;
            tl_layout_apply_reg(tile->layout, a->regs[i], thread, c);
            seen[a->regs[i]]++;
            for (int d = 0; d < tile->rank; d++) {
                past |= c[d] >= tile->shape[d];
                out |= c[d] >= tl_layout_extent(buf->layout, d);
            }
            past = flags & TL_BUF_WRITES ? out : past;
            outside[past] = true;
            if (past && !a->guarded)
                return tl_format(arena, "register %d is past the end, without a guard", a->regs[i]);
            uint64_t at = p->kind == TL_BUF_MATRIX_8
                              ? offset_of_byte(p, a, i, flags & TL_BUF_WRITES, thread[1], thread[2])
                              : offset_of_element(p, a, i, elem, thread[1], thread[2]);
            if (!past && at != tl_buf_offset(buf, c))
                return tl_format(arena, "register %d of thread %u, %u: %llu, not %llu", a->regs[i],
                                 thread[1], thread[2], (unsigned long long)at,
                                 (unsigned long long)tl_buf_offset(buf, c));
        }
        uint32_t whole = p->kind == TL_BUF_VECTOR    ? p->nregs * elem
                         : p->kind == TL_BUF_COLUMNS ? COLUMN_BYTES
                                                     : ROW_BYTES;
        if (offset_in(p, a, thread[1], thread[2]) % whole != 0)
            return tl_format(arena, "access %u is not aligned", k);
        if (outside[0] && outside[1])
            return tl_format(arena, "access %u is inside and outside", k);
    }
    return NULL;
}

const char *tl_buf_prove(TlArena *arena, const TlBufPlan *p, const TlType *tile, const TlType *buf,
                         uint32_t flags)
{
    const TlLayout *l = tile->layout;
    uint32_t nregs = (uint32_t)tl_layout_registers(l);
    TL_ASSERT(l->in[0] == TL_IN_REG && l->in[1] == TL_IN_LANE && l->in[2] == TL_IN_WARP,
              "a layout that is not canonical");
    for (uint32_t lane = 0; lane < 1u << l->in_bits[1]; lane++)
        for (uint32_t warp = 0; warp < 1u << l->in_bits[2]; warp++) {
            uint8_t *seen = TL_NEW_ARRAY(arena, uint8_t, nregs);
            const char *fault = prove_thread(arena, p, tile, buf, flags,
                                             (uint32_t[TL_LAYOUT_MAX_IN]){0, lane, warp}, seen);
            if (fault)
                return fault;
            for (uint32_t r = 0; r < nregs; r++)
                if (seen[r] != 1)
                    return tl_format(arena, "register %u is moved %u times", r, seen[r]);
        }
    return NULL;
}
