/* The way of a conversion through shared memory: where each element lies, so that both sides are
 * wide and neither has bank conflicts (layout_convert.h).
 *
 * Elements are vectors e of GF(2)^n (their row-major number). The memory is a basis o_0, o_1, ...
 * of that space: o_j is the element at offset 1 << j, so the offset of any element is linear in it.
 * The basis has three parts:
 *
 *     o = [ V | bank | segment ]     V: 1 << k elements side by side, at most 16 bytes
 *                                    V and bank: a row of 128 bytes, all 32 banks once
 *                                    segment: the number of the row
 *
 * A side whose registers hold o_0 .. o_(v-1), with no thread bit in them, moves 1 << v elements per
 * access. A wavefront serves the lanes that 128 bytes are enough for: 32 of up to 4 bytes, 16 of 8,
 * 8 of 16. With A the span of these lanes' elements and U what lies in one unit (word or vector),
 * there is no conflict when (A + U) and the segment share nothing but 0: then different units of
 * the wavefront are in different banks. A + U has at most as many dimensions as a row, so for
 * both sides together a segment always exists: while it is too small, A + U + segment and
 * B + U + segment are proper subspaces, and two of them never cover a space over GF(2). What V is
 * wide for only one side may cost the other conflicts; all widths are tried, the fewest wavefronts
 * win, then the fewest accesses.
 *
 * All but V is chosen inside K, a complement of V that has the lanes and warps in it as far as
 * possible: a thread bit with a part in V would turn vectors around. Segment vectors that are
 * registers on both sides are the highest: by them the tile may go in several rounds.
 *
 * Where that is not enough and the memory is what there is (TL_CONVERT_FIT), the rounds are told
 * apart by any bits of the offset. A thread that has such a bit takes part in some rounds only: a
 * write is left out, which costs an instruction, while a read is done in vain. So the highest are
 * the bits that no thread has, then those that only writers have. */
#include "ir/plan/convert_impl.h"
#include <string.h>

enum { ROW_BYTES = 128, WORD_BYTES = 4, VECTOR_BYTES = 16 };

/* One side in one attempt; offsets in elements. */
typedef struct SidePlan {
    const TlSide *side;
    bool writes;
    int vec; /* bits */
    uint32_t skip_lanes, skip_warps;
    uint64_t reg[TL_SIDE_MAX_REGS], lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
    uint64_t accesses, per_access, wavefronts; /* per_access: wavefronts of one */
    int times;                                 /* log2 of the rounds in which an access happens */
} SidePlan;

typedef struct Attempt {
    int k, ncommon; /* bits of V; segment vectors that are registers on both sides */
    int rounds;     /* log2 */
    TlBasis o;
    SidePlan write, read;
} Attempt;

typedef struct Space {
    TlPlanner *p;
    int n, elem, row, word;        /* log2: elements, bytes of one, elements of a row, of a word */
    uint64_t common[64], both[64]; /* registers of both sides; of them, those that V may have */
    int ncommon, nboth;
    int64_t nwritten, nread; /* registers that take part */
    bool fit;                /* max_bytes is what there is */
} Space;

/* ---- registers of both sides ---- */

/* Bits of elements that exist whatever repetition they are in. */
static uint64_t safe_bits(const TlPlanner *p)
{
    uint64_t safe = 0;
    for (int d = 0; d < p->e.rank; d++) {
        int32_t reps = p->src.l->reps[d];
        int bits = reps & (reps - 1) ? p->src.l->out_bits[d] : p->e.axis_bits[d];
        safe |= (((uint64_t)1 << bits) - 1) << p->e.shift[d];
    }
    return safe;
}

/* A basis of what both spans have. At most 31 vectors each. */
static int intersect(const uint64_t *a, int na, const uint64_t *b, int nb, uint64_t *out)
{
    TlSpan s = {0};
    int n = 0;
    for (int i = 0; i < na; i++)
        tl_span_add(&s, a[i], 1ull << i);
    for (int i = 0; i < nb; i++) {
        uint64_t combo = 0;
        if (tl_span_reduce(&s, b[i], &combo))
            tl_span_add(&s, b[i], 1ull << (31 + i));
        else
            out[n++] = tl_apply_bits(a, combo & 0x7fffffff);
    }
    return n;
}

static int safe_registers(const TlPlanner *p, const TlSide *s, uint64_t *out)
{
    uint64_t safe = safe_bits(p);
    int n = 0;
    for (int i = 0; i < s->nregs; i++)
        if ((s->reg[i] & ~safe) == 0)
            out[n++] = s->reg[i];
    return n;
}

static void find_common(Space *s)
{
    const TlSide *src = &s->p->src, *dst = &s->p->dst;
    uint64_t a[TL_SIDE_MAX_REGS], b[TL_SIDE_MAX_REGS];
    int na = safe_registers(s->p, src, a), nb = safe_registers(s->p, dst, b);
    s->nboth = intersect(a, na, b, nb, s->both);
    s->ncommon = intersect(src->reg, src->nregs, dst->reg, dst->nregs, s->common);
}

/* ---- registers ---- */

/* Does the register lie past the end of the tile in every thread? */
static bool is_padding(const TlPlanner *p, const TlLayout *l, int64_t reg)
{
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    int32_t x[TL_LAYOUT_MAX_OUT];
    tl_layout_apply_reg(l, reg, origin, x);
    for (int d = 0; d < l->nout; d++) {
        int32_t moving = 0;
        for (int i = 0; i < l->nin; i++)
            for (int b = 0; l->in[i] != TL_IN_REG && b < l->in_bits[i]; b++)
                moving |= l->basis[i][b][d];
        if ((x[d] & ~moving) >= p->e.shape[d])
            return true;
    }
    return false;
}

static int64_t count_registers(const TlPlanner *p, const TlSide *s, bool writes)
{
    int64_t n = tl_layout_registers(s->l), kept = 0;
    for (int64_t r = 0; r < n; r++)
        kept += writes || !is_padding(p, s->l, r);
    return kept;
}

/* ---- the basis ---- */

/* One way of choosing: whose registers make V wide, and whether those of both sides come first or
 * are kept for rounds; or all as they come. */
typedef struct Choice {
    const TlSide *wide;
    int k;
    bool spare, in_order;
} Choice;

/* V: k vectors; up to a word anything goes. *out_wide: of how many all elements exist, so that an
 * access may have them. */
static bool choose_vector(const Space *s, const Choice *c, TlBasis *vk, int *out_wide)
{
    uint64_t regs[TL_SIDE_MAX_REGS], safe = safe_bits(s->p);
    int n = safe_registers(s->p, c->wide, regs);
    TlSpan common = {0};
    for (int i = 0; i < s->ncommon; i++)
        tl_span_add(&common, s->common[i], 0);
    for (int i = 0; !c->spare && !c->in_order && i < s->nboth && vk->n < c->k; i++)
        tl_basis_add(vk, s->both[i]);
    for (int i = 0; i < n && vk->n < c->k; i++)
        if (!c->spare || !tl_span_has(&common, regs[i]))
            tl_basis_add(vk, regs[i]);
    for (int i = 0; i < s->n && vk->n < c->k && vk->n < s->word; i++)
        if (safe >> i & 1)
            tl_basis_add(vk, 1ull << i);
    *out_wide = vk->n;
    for (int i = 0; i < s->n && vk->n < c->k && vk->n < s->word; i++)
        tl_basis_add(vk, 1ull << i);
    return vk->n == c->k;
}

/* K after V. */
static void choose_complement(const Space *s, const TlSide *wide, TlBasis *vk)
{
    const TlSide *src = &s->p->src, *dst = &s->p->dst, *other = wide == src ? dst : src;
    tl_basis_add_all(vk, wide->lane, wide->nlanes);
    tl_basis_add_all(vk, wide->warp, wide->nwarps);
    tl_basis_add_all(vk, other->lane, other->nlanes);
    tl_basis_add_all(vk, other->warp, other->nwarps);
    tl_basis_add_all(vk, s->common, s->ncommon);
    tl_basis_add_all(vk, src->reg, src->nregs);
    tl_basis_add_all(vk, dst->reg, dst->nregs);
    for (int i = 0; i < s->n; i++)
        tl_basis_add(vk, 1ull << i);
}

/* How many vectors of V, from the first on, are registers of the side. */
static int vector_of(const TlSide *side, const TlBasis *vk, int k)
{
    TlSpan regs = {0};
    for (int i = 0; i < side->nregs; i++)
        tl_span_add(&regs, side->reg[i], 0);
    int n = 0;
    while (n < k && tl_span_has(&regs, vk->v[n]))
        n++;
    return n;
}

/* The span of (lanes of a wavefront + unit) inside K, in coordinates of V and K. */
static void wavefront_span(const Space *s, const SidePlan *side, const TlBasis *vk, int k,
                           TlSpan *out)
{
    uint64_t x[TL_MAX_LANE_BITS];
    int v = vector_of(side->side, vk, k), unit = v > s->word ? v : s->word, n = 0;
    for (int i = 0; i < side->side->nlanes && i < s->row - unit; i++)
        if (!(side->skip_lanes >> i & 1))
            x[n++] = tl_basis_coordinates(vk, side->side->lane[i]) >> unit << unit;
    for (int bit = unit; bit < k; bit++) { /* keep the combinations without this bit */
        int with = 0;
        while (with < n && !(x[with] >> bit & 1))
            with++;
        if (with == n)
            continue;
        for (int i = 0; i < n; i++)
            if (i != with && x[i] >> bit & 1)
                x[i] ^= x[with];
        x[with] = x[--n];
    }
    memset(out, 0, sizeof *out);
    for (int i = 0; i < n; i++)
        tl_span_add(out, x[i], 0);
}

/* A vector of K (coordinates k .. n - 1) outside of the span, highest first; 0: there is none. */
static uint64_t outside(const TlSpan *span, int k, int n)
{
    for (int i = n - 1; i >= k; i--)
        if (!tl_span_has(span, 1ull << i))
            return 1ull << i;
    return 0;
}

/* Outside of both; when a span is everything, of one; at least of the segment. */
static uint64_t next_segment(const TlSpan *a, const TlSpan *b, const TlSpan *segment, int k, int n)
{
    uint64_t x = outside(a, k, n), y = outside(b, k, n);
    if (!x && !y)
        return outside(segment, k, n);
    if (!x || !y)
        return x | y;
    if (!tl_span_has(b, x))
        return x;
    return tl_span_has(a, y) ? x ^ y : y;
}

/* The segment's vectors, in coordinates of V and K; those of both sides' registers last. The
 * highest is found first: so registers are in order, and what an instruction takes of several
 * reads, LLVM reads by pairs of neighbours (ds_read2). */
static int choose_segment(const Space *s, Attempt *t, const TlBasis *vk, uint64_t *out)
{
    TlSpan a, b, segment = {0};
    uint64_t common[64];
    int wanted = s->n > s->row ? s->n - s->row : 0, ncommon = 0;
    wavefront_span(s, &t->write, vk, t->k, &a);
    wavefront_span(s, &t->read, vk, t->k, &b);
    for (int i = 0; i < s->ncommon && ncommon < wanted; i++) {
        uint64_t x = tl_basis_coordinates(vk, s->common[i]);
        if (x & ((1ull << t->k) - 1) || tl_span_has(&a, x) || tl_span_has(&b, x))
            continue;
        common[ncommon++] = x;
        tl_span_add(&a, x, 0), tl_span_add(&b, x, 0), tl_span_add(&segment, x, 0);
    }
    for (int i = wanted - ncommon; i-- > 0;) {
        uint64_t x = next_segment(&a, &b, &segment, t->k, s->n);
        TL_ASSERT(x, "a row number without a vector");
        out[i] = x;
        tl_span_add(&a, x, 0), tl_span_add(&b, x, 0), tl_span_add(&segment, x, 0);
    }
    memcpy(out + wanted - ncommon, common, sizeof *common * (size_t)ncommon);
    t->ncommon = ncommon;
    return wanted;
}

static void choose_offsets(const Space *s, Attempt *t, const TlBasis *vk)
{
    uint64_t segment[64];
    int n = choose_segment(s, t, vk, segment);
    TlBasis rest = {0}; /* what is no bank vector, in coordinates */
    for (int i = 0; i < t->k; i++)
        tl_basis_add(&rest, 1ull << i);
    tl_basis_add_all(&rest, segment, n);
    for (int i = 0; i < t->k; i++)
        tl_basis_add(&t->o, vk->v[i]);
    for (int i = t->k; i < s->n; i++)
        if (tl_basis_add(&rest, 1ull << i))
            tl_basis_add(&t->o, vk->v[i]);
    for (int i = 0; i < n; i++)
        tl_basis_add(&t->o, tl_apply_bits(vk->v, segment[i]));
    TL_ASSERT(t->o.n == s->n, "%d offset bits for 2^%d elements", t->o.n, s->n);
}

/* ---- sides ---- */

/* Threads with a bit that only repeats what registers and lower bits hold. */
static void find_copies(SidePlan *s)
{
    TlSpan span = {0};
    for (int i = 0; i < s->side->nregs; i++)
        tl_span_add(&span, s->side->reg[i], 0);
    for (int i = 0; i < s->side->nlanes; i++)
        if (!tl_span_add(&span, s->side->lane[i], 0))
            s->skip_lanes |= 1u << i;
    for (int i = 0; i < s->side->nwarps; i++)
        if (!tl_span_add(&span, s->side->warp[i], 0))
            s->skip_warps |= 1u << i;
}

static void start_side(SidePlan *s, const TlSide *side, bool writes)
{
    *s = (SidePlan){.side = side, .writes = writes};
    if (writes)
        find_copies(s);
}

static void offsets_of(const TlBasis *o, const uint64_t *images, int n, uint64_t *out)
{
    for (int i = 0; i < n; i++)
        out[i] = tl_basis_coordinates(o, images[i]);
}

/* Bits of the vector in which a thread that takes part has an offset of its own. */
static uint64_t thread_bits(const SidePlan *s)
{
    uint64_t bits = 0;
    for (int i = 0; i < s->side->nlanes; i++)
        bits |= s->skip_lanes >> i & 1 ? 0 : s->lane[i];
    for (int i = 0; i < s->side->nwarps; i++)
        bits |= s->skip_warps >> i & 1 ? 0 : s->warp[i];
    return bits;
}

static int vector_bits(const SidePlan *s, int limit)
{
    TlSpan regs = {0};
    uint64_t disturbed = thread_bits(s);
    for (int i = 0; i < s->side->nregs; i++)
        tl_span_add(&regs, s->reg[i], 0);
    int n = 0;
    while (n < limit && !(disturbed >> n & 1) && tl_span_has(&regs, 1ull << n))
        n++;
    return n;
}

/* Wavefronts of one access of one warp. */
static uint64_t wavefronts_of(const Space *s, const SidePlan *side)
{
    int unit = side->vec > s->word ? side->vec : s->word, lanes = s->row - unit, groups = 0;
    uint64_t bank_mask = (1ull << s->row) - (1ull << unit);
    TlSpan units = {0}, banks = {0};
    for (int i = 0; i < side->side->nlanes; i++) {
        if (side->skip_lanes >> i & 1)
            continue;
        if (i < lanes) {
            tl_span_add(&units, side->lane[i] >> unit, 0);
            tl_span_add(&banks, side->lane[i] & bank_mask, 0);
        } else {
            groups++;
        }
    }
    return 1ull << (units.rank - banks.rank + groups);
}

static void finish_side(const Space *s, SidePlan *side, const TlBasis *o, int widest)
{
    offsets_of(o, side->side->reg, side->side->nregs, side->reg);
    offsets_of(o, side->side->lane, side->side->nlanes, side->lane);
    offsets_of(o, side->side->warp, side->side->nwarps, side->warp);
    side->vec = vector_bits(side, widest);
    side->accesses = (uint64_t)(side->writes ? s->nwritten : s->nread) >> side->vec;
    if (side->accesses == 0)
        side->accesses = 1;
    side->per_access = wavefronts_of(s, side);
    side->wavefronts = side->accesses * side->per_access;
}

/* ---- attempts ---- */

/* log2 of the rounds that make it fit. All threads are in a round together, so no thread may have
 * the bits of offsets that number them, unless it must fit. */
static int choose_rounds(const Space *s, const Attempt *t)
{
    uint64_t threads = thread_bits(&t->write) | thread_bits(&t->read), elem = s->p->c->elem_bytes;
    int rounds = 0, vec = t->write.vec > t->read.vec ? t->write.vec : t->read.vec;
    int most = s->fit ? s->n - vec : t->ncommon;
    while (s->p->max_bytes && rounds < most && elem << (s->n - rounds) > s->p->max_bytes &&
           (s->fit || !(threads >> (s->n - 1 - rounds) & 1)))
        rounds++;
    return rounds;
}

/* The round of a lane's or warp's bit; one that takes no part has none. */
static uint64_t round_of(uint64_t offset, uint32_t skip, int bit, int nrow)
{
    return skip >> bit & 1 ? 0 : offset >> nrow;
}

/* log2 of the rounds in which an access of the side happens. */
static int count_times(const SidePlan *side, int nrow)
{
    TlSpan rounds = {0};
    for (int i = 0; i < side->side->nlanes; i++)
        tl_span_add(&rounds, round_of(side->lane[i], side->skip_lanes, i, nrow), 0);
    for (int i = 0; i < side->side->nwarps; i++)
        tl_span_add(&rounds, round_of(side->warp[i], side->skip_warps, i, nrow), 0);
    return rounds.rank;
}

static void count_rounds(const Space *s, Attempt *t)
{
    t->rounds = choose_rounds(s, t);
    t->write.times = count_times(&t->write, s->n - t->rounds);
    t->read.times = count_times(&t->read, s->n - t->rounds);
    t->write.wavefronts <<= t->write.times;
    t->read.wavefronts <<= t->read.times;
}

/* What it costs to tell rounds apart by this bit of the offset. */
static int round_cost(const SidePlan *write, const SidePlan *read, int bit)
{
    enum { WRITERS_WARP = 1, WRITERS_LANE = 2, READERS = 4 };
    int cost = 0;
    for (int i = 0; i < write->side->nlanes; i++)
        cost |= round_of(write->lane[i], write->skip_lanes, i, bit) & 1 ? WRITERS_LANE : 0;
    for (int i = 0; i < write->side->nwarps; i++)
        cost |= round_of(write->warp[i], write->skip_warps, i, bit) & 1 ? WRITERS_WARP : 0;
    return cost | (thread_bits(read) >> bit & 1 ? READERS : 0);
}

/* Segment vectors may lie in any order: those that tell rounds apart for least go last. */
static void order_segment(const Space *s, Attempt *t)
{
    enum { DEAREST = 8 };
    TlBasis o = {0};
    for (int i = 0; i < s->row && i < s->n; i++)
        tl_basis_add(&o, t->o.v[i]);
    for (int cost = DEAREST; cost-- > 0;)
        for (int i = s->row; i < s->n; i++)
            if (round_cost(&t->write, &t->read, i) == cost)
                tl_basis_add(&o, t->o.v[i]);
    TL_ASSERT(o.n == s->n, "%d of %d offset bits in order", o.n, s->n);
    t->o = o;
}

static bool attempt(const Space *s, const Choice *c, Attempt *out)
{
    TlBasis vk = {0};
    int wide;
    if (!choose_vector(s, c, &vk, &wide))
        return false;
    choose_complement(s, c->wide, &vk);
    memset(out, 0, sizeof *out);
    out->k = c->k;
    start_side(&out->write, &s->p->src, true);
    start_side(&out->read, &s->p->dst, false);
    choose_offsets(s, out, &vk);
    finish_side(s, &out->write, &out->o, wide);
    finish_side(s, &out->read, &out->o, wide);
    if (s->fit) {
        order_segment(s, out);
        finish_side(s, &out->write, &out->o, wide);
        finish_side(s, &out->read, &out->o, wide);
    }
    count_rounds(s, out);
    return true;
}

/* Do the reader's vectors hold registers that follow each other in its layout? An instruction that
 * takes several registers as one, as products by matrices do, takes them without moves then. */
static bool is_in_order(const Attempt *t)
{
    for (int i = 0; i < t->read.vec; i++)
        if (t->o.v[i] != t->read.side->reg[i])
            return false;
    return true;
}

/* Fits, then wavefronts, then order, then accesses. */
static bool is_better(const Space *s, const Attempt *a, const Attempt *b)
{
    uint64_t elem = s->p->c->elem_bytes, most = s->p->max_bytes;
    uint64_t over_a = elem << (s->n - a->rounds), over_b = elem << (s->n - b->rounds);
    uint64_t wa = a->write.wavefronts + a->read.wavefronts;
    uint64_t wb = b->write.wavefronts + b->read.wavefronts;
    if (most && over_a != over_b && (over_a > most || over_b > most))
        return over_a < over_b;
    if (wa != wb)
        return wa < wb;
    if (is_in_order(a) != is_in_order(b))
        return is_in_order(a);
    return a->write.accesses + a->read.accesses < b->write.accesses + b->read.accesses;
}

static void best_attempt(const Space *s, Attempt *best)
{
    int low = s->word < s->n ? s->word : s->n, high = tl_ceil_log2(VECTOR_BYTES) - s->elem;
    bool found = false;
    Attempt *t = TL_NEW(s->p->arena, Attempt);
    for (int i = 6 * low; i < 6 * (high + 1); i++) {
        Choice c = {i & 1 ? &s->p->dst : &s->p->src, i / 6, i / 2 % 3 == 1, i / 2 % 3 == 2};
        if ((c.spare && !s->p->max_bytes) || !attempt(s, &c, t) ||
            (found && !is_better(s, t, best)))
            continue;
        *best = *t;
        found = true;
    }
    TL_ASSERT(found, "no way through shared memory");
}

/* ---- accesses ---- */

typedef TL_VEC(TlConvertAccess) Accesses;

/* Does some thread name an element past the repetitions of src? */
static bool reads_past(const TlPlanner *p, uint64_t reg)
{
    const TlSide *d = &p->dst;
    uint64_t unsafe = ~safe_bits(p), moving = 0;
    for (int i = 0; i < d->nlanes; i++)
        moving |= d->lane[i];
    for (int i = 0; i < d->nwarps; i++)
        moving |= d->warp[i];
    uint64_t e = tl_apply_bits(d->reg, reg);
    for (int a = 0; a < p->e.rank; a++) {
        uint64_t axis = ((1ull << p->e.axis_bits[a]) - 1) << p->e.shift[a];
        uint64_t most = ((e | moving) & axis) >> p->e.shift[a];
        if (axis & unsafe && most >= (uint64_t)tl_layout_extent(p->src.l, a))
            return true;
    }
    return false;
}

static int32_t *new_registers(TlArena *arena, int vec)
{
    int32_t *regs = TL_NEW_ARRAY(arena, int32_t, 1u << vec);
    for (int i = 0; i < 1 << vec; i++)
        regs[i] = -1;
    return regs;
}

/* The part of the register's coordinate that is cut off because src is smaller than dst. */
static uint64_t cut_off(const TlPlanner *p, const TlLayout *l, int64_t reg)
{
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    int32_t x[TL_LAYOUT_MAX_OUT];
    uint64_t cut = 0;
    tl_layout_apply_reg(l, reg, origin, x);
    for (int d = 0; d < l->nout; d++)
        cut = cut << 12 | (uint64_t)x[d] >> p->e.axis_bits[d];
    return cut;
}

/* The access that holds the register's vector; a new one if necessary. Registers that are padding
 * because they were cut off are in accesses of their own, at the position of a real element. */
static TlConvertAccess *access_of(TlPlanner *p, Accesses *list, TlMap *seen, const SidePlan *s,
                                  int64_t reg, uint64_t offset, int nrow)
{
    uint64_t at, low = offset & ((1ull << nrow) - 1), cut = cut_off(p, s->side->l, reg);
    uint64_t key = tl_hash((uint64_t[]){offset >> s->vec, cut}, 2 * sizeof cut, 0);
    if (tl_map_get(seen, key, &at))
        return &list->data[at];
    TlConvertAccess a = {.round = (uint32_t)(offset >> nrow),
                         .offset = (uint32_t)(low >> s->vec << s->vec) * p->c->elem_bytes,
                         .regs = new_registers(p->arena, s->vec)};
    tl_map_put(seen, key, list->len);
    tl_vec_push(p->arena, list, a);
    return &list->data[list->len - 1];
}

static void make_accesses(TlPlanner *p, const SidePlan *s, int nrow, Accesses *out)
{
    TlMap seen = {.arena = p->arena};
    int64_t n = tl_layout_registers(s->side->l);
    for (int64_t r = 0; r < n; r++) {
        uint64_t v = tl_side_virtual(s->side, r), offset = tl_apply_bits(s->reg, v);
        if (!s->writes && is_padding(p, s->side->l, r))
            continue;
        TlConvertAccess *a = access_of(p, out, &seen, s, r, offset, nrow);
        a->regs[offset & ((1ull << s->vec) - 1)] = (int32_t)r;
        if (!s->writes)
            a->guarded |= reads_past(p, v);
    }
}

static TlConvertAccess *by_round(TlArena *arena, const Accesses *list, uint32_t nrounds)
{
    TlConvertAccess *sorted = TL_NEW_ARRAY(arena, TlConvertAccess, list->len);
    uint32_t n = 0;
    for (uint32_t round = 0; round < nrounds; round++)
        for (uint32_t i = 0; i < list->len; i++)
            if (list->data[i].round == round)
                sorted[n++] = list->data[i];
    return sorted;
}

/* nrow: bits of an offset within a round. */
static void fill_side(TlPlanner *p, const SidePlan *s, const Accesses *list, int nrow,
                      TlConvertSide *out)
{
    *out = (TlConvertSide){.vec_bits = s->vec,
                           .vec_bytes = p->c->elem_bytes << s->vec,
                           .skip_lanes = s->skip_lanes,
                           .skip_warps = s->skip_warps,
                           .naccesses = list->len,
                           .accesses = by_round(p->arena, list, p->c->nrounds),
                           .times = 1u << s->times,
                           .wavefronts = list->len * (uint32_t)s->per_access << s->times};
    for (int i = 0; i < s->side->nlanes; i++) {
        uint64_t round = round_of(s->lane[i], s->skip_lanes, i, nrow);
        out->round.lane[i] = (uint32_t)round;
        out->offset.lane[i] = (uint32_t)(s->lane[i] ^ round << nrow) * p->c->elem_bytes;
    }
    for (int i = 0; i < s->side->nwarps; i++) {
        uint64_t round = round_of(s->warp[i], s->skip_warps, i, nrow);
        out->round.warp[i] = (uint32_t)round;
        out->offset.warp[i] = (uint32_t)(s->warp[i] ^ round << nrow) * p->c->elem_bytes;
    }
}

bool tl_convert_in_round(const TlConvertSide *side, const TlConvertAccess *a, uint32_t round)
{
    TL_ASSERT(side->times > 0, "a side without a plan");
    TlSpan rounds = {0};
    for (int i = 0; i < TL_MAX_LANE_BITS; i++)
        tl_span_add(&rounds, side->round.lane[i], 0);
    for (int i = 0; i < TL_MAX_WARP_BITS; i++)
        tl_span_add(&rounds, side->round.warp[i], 0);
    return tl_span_has(&rounds, a->round ^ round);
}

/* Where the first thread that does the access in the round writes. */
static uint32_t written_by(const TlConvert *c, const TlConvertAccess *a, uint32_t round)
{
    const TlConvertSide *w = &c->write;
    for (uint32_t warp = 0; warp < 1u << c->warp_bits; warp++)
        for (uint32_t lane = 0; lane < 1u << c->lane_bits; lane++)
            if (!(lane & w->skip_lanes) && !(warp & w->skip_warps) &&
                (a->round ^ tl_thread_map(&w->round, lane, warp)) == round)
                return a->offset ^ tl_thread_map(&w->offset, lane, warp);
    TL_UNREACHABLE("nobody writes in round %u", round);
}

/* Where somebody writes in the round. With an element of a vector all others of it are written. */
static uint32_t written_in(const TlConvert *c, uint32_t round)
{
    for (uint32_t i = 0; i < c->write.naccesses; i++)
        if (tl_convert_in_round(&c->write, &c->write.accesses[i], round)) {
            uint32_t at = written_by(c, &c->write.accesses[i], round);
            return at / c->read.vec_bytes * c->read.vec_bytes;
        }
    return TL_NOT_FILLED;
}

static void find_filled(TlArena *arena, TlConvert *c)
{
    c->fallback = TL_NEW_ARRAY(arena, uint32_t, c->nrounds);
    for (uint32_t round = 0; round < c->nrounds; round++) {
        c->fallback[round] = written_in(c, round);
        c->nfilled += c->fallback[round] != TL_NOT_FILLED;
    }
}

/* Reads of rounds in which nothing is written would read nothing of the tile. */
static void drop_reads(TlConvert *c, uint32_t per_access)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->read.naccesses; i++)
        if (c->read.times > 1 || c->fallback[c->read.accesses[i].round] != TL_NOT_FILLED)
            c->read.accesses[kept++] = c->read.accesses[i];
    c->read.naccesses = kept;
    c->read.wavefronts = kept * per_access * c->read.times;
}

/* The end of the highest write of any thread: as high as its free bits reach. */
static uint32_t bytes_needed(const TlConvert *c)
{
    const TlConvertSide *w = &c->write;
    uint32_t most = 0;
    for (uint32_t i = 0; i < w->naccesses; i++) {
        for (uint32_t warp = 0; warp < 1u << c->warp_bits; warp++) {
            if (warp & w->skip_warps)
                continue;
            for (uint32_t lane = 0; lane < 1u << c->lane_bits; lane++) {
                uint32_t at = w->accesses[i].offset ^ tl_thread_map(&w->offset, lane, warp);
                if (!(lane & w->skip_lanes) && at > most)
                    most = at;
            }
        }
    }
    return most + w->vec_bytes;
}

static Space space_of(TlPlanner *p)
{
    Space s = {.p = p, .n = p->e.bits, .elem = tl_ceil_log2(p->c->elem_bytes), .fit = p->fit};
    s.row = tl_ceil_log2(ROW_BYTES) - s.elem;
    s.word = tl_ceil_log2(WORD_BYTES) > s.elem ? tl_ceil_log2(WORD_BYTES) - s.elem : 0;
    s.nwritten = count_registers(p, &p->src, true);
    s.nread = count_registers(p, &p->dst, false);
    find_common(&s);
    return s;
}

void tl_plan_shared(TlPlanner *p)
{
    TlConvert *c = p->c;
    Space s = space_of(p);
    Attempt best = {0};
    best_attempt(&s, &best);
    Accesses writes = {0}, reads = {0};
    int nrow = s.n - best.rounds;
    make_accesses(p, &best.write, nrow, &writes);
    make_accesses(p, &best.read, nrow, &reads);
    c->nrounds = 1u << best.rounds;
    fill_side(p, &best.write, &writes, nrow, &c->write);
    fill_side(p, &best.read, &reads, nrow, &c->read);
    find_filled(p->arena, c);
    drop_reads(c, (uint32_t)best.read.per_access);
    c->all_written = (safe_bits(p) & ((1ull << s.n) - 1)) == (1ull << s.n) - 1;
    c->bytes = bytes_needed(c);
}

TlLayout *tl_swizzle_layout(TlArena *arena, int elem_bytes, int rank, const int32_t *shape,
                            const TlLayout *src, const TlLayout *dst, int vec_bits)
{
    TL_ASSERT(rank > 0 && src->nout == rank && dst->nout == rank, "a buffer of rank %d", rank);
    TlPlanner p = {.arena = arena};
    tl_planner_init(&p, shape, (uint32_t)elem_bytes, src, dst);
    Space s = space_of(&p);
    Attempt *best = TL_NEW(arena, Attempt);
    Choice as_src = {
        .wide = &p.src, .k = vec_bits > s.word ? vec_bits : s.word, .in_order = s.word == 0};
    if (vec_bits < 0 || !attempt(&s, &as_src, best))
        best_attempt(&s, best);
    int32_t images[TL_LAYOUT_MAX_BITS * TL_LAYOUT_MAX_OUT];
    for (int i = 0; i < s.n; i++)
        for (int d = 0; d < rank; d++)
            images[i * rank + d] =
                (int32_t)(best->o.v[i] >> p.e.shift[d] & ((1ull << p.e.axis_bits[d]) - 1));
    TlInBases in = {TL_IN_OFFSET, s.n, images};
    return tl_layout_make(arena, rank, p.e.axis_bits, 1, &in);
}
