/* Planning conversions (layout_convert.h): from where each element of the result comes, and the
 * cheapest way that gets it.
 *
 * Both layouts become linear maps into element numbers (TlSide). The source of a bit of the
 * result's (reg, lane, warp) is a solution of src(x) = dst(bit); columns in which both agree stay
 * as they are, so replicated data is read from one's own copy. With the source as
 *
 *     reg'  = Ar reg + Al lane + Aw warp
 *     lane' = Br reg + Bl lane + Bw warp       (all over GF(2))
 *     warp' = warp, or the value goes through shared memory
 *
 * the kind follows: RENAME when reg' = Ar reg and lane' = lane. Otherwise shuffles. In one shuffle
 * a lane gives one register, so what lane l reads must be a function of the lane that it reads
 * from. For that, lane l fills in shuffle s not register s but s + M l, which makes
 *
 *     lane' = Br s + G l + Bw warp,  G = Bl + Br M      reg' = Ar s + H l + Aw warp,  H = Al + Ar M
 *
 * and wants an N with H = N G: the giving lane l' then offers register Ar s + N Br s of its
 * registers permuted by N l' + (N Bw + Aw) warp. M is zero but on lanes that Bl merges although Al
 * tells them apart; there it takes a register bit that leads to another lane. A reg-lane
 * transposition comes out as half of the registers shuffled by xor, with selects before and after.
 * Where two lanes hold copies of what each of them had a part of, it is tried with such a bit, too:
 * what of two neighbours is its own one's, a lane knows by its number.
 *
 * Shuffles are taken when they cost no more than the way through shared memory, wavefronts and
 * barriers counted. */
#include "ir/plan/convert_impl.h"
#include <string.h>

enum {
    LANE_AT = 32, /* where lanes and warps begin in the combos of a span of a side's columns */
    WARP_AT = 48,
    BARRIERS = 16, /* cost of a round trip's barriers, in wavefronts */
    SELECTS = 4    /* selects that cost as much as a wavefront */
};

uint32_t tl_thread_map(const TlThreadMap *m, uint32_t lane, uint32_t warp)
{
    uint32_t v = 0;
    for (int i = 0; i < TL_MAX_LANE_BITS; i++)
        v ^= lane >> i & 1 ? m->lane[i] : 0;
    for (int i = 0; i < TL_MAX_WARP_BITS; i++)
        v ^= warp >> i & 1 ? m->warp[i] : 0;
    return v;
}

uint32_t tl_thread_map_bits(const TlThreadMap *m)
{
    uint32_t v = 0;
    for (int i = 0; i < TL_MAX_LANE_BITS; i++)
        v |= m->lane[i];
    for (int i = 0; i < TL_MAX_WARP_BITS; i++)
        v |= m->warp[i];
    return v;
}

static bool thread_map_is_zero(const TlThreadMap *m)
{
    return tl_thread_map_bits(m) == 0;
}

/* ---- sides ---- */

/* Does src hold every element of the tile? */
static void measure(TlElements *e, const TlLayout *src, const int32_t *shape)
{
    e->rank = src->nout;
    e->shape = shape;
    for (int d = e->rank - 1; d >= 0; d--) {
        e->axis_bits[d] = src->out_bits[d] + tl_ceil_log2(src->reps[d]);
        e->shift[d] = e->bits;
        e->bits += e->axis_bits[d];
    }
    TL_ASSERT(e->bits <= 60, "conversion of 2^%d elements", e->bits);
}

/* The part of an image that lies inside of the tile's axes. */
static uint64_t element_of(const TlElements *e, const int32_t *image)
{
    uint64_t v = 0;
    for (int d = 0; d < e->rank; d++)
        v |= ((uint64_t)image[d] & (((uint64_t)1 << e->axis_bits[d]) - 1)) << e->shift[d];
    return v;
}

static void fill_images(uint64_t *out, int *out_n, int limit, const TlElements *e,
                        const TlLayout *l, TlInDim in)
{
    int i = tl_layout_in_index(l, in);
    *out_n = tl_layout_in_bits(l, in);
    TL_ASSERT(*out_n <= limit, "conversion of a layout with too many bits");
    for (int b = 0; b < *out_n; b++)
        out[b] = element_of(e, l->basis[i][b]);
}

static void make_side(TlSide *s, const TlElements *e, const TlLayout *l)
{
    s->l = l;
    fill_images(s->reg, &s->nreal, TL_LAYOUT_MAX_BITS, e, l, TL_IN_REG);
    fill_images(s->lane, &s->nlanes, TL_MAX_LANE_BITS, e, l, TL_IN_LANE);
    fill_images(s->warp, &s->nwarps, TL_MAX_WARP_BITS, e, l, TL_IN_WARP);
    s->nregs = s->nreal;
    for (int d = 0; d < e->rank; d++) {
        s->rep_from[d] = s->nregs;
        s->rep_bits[d] = tl_ceil_log2(l->reps[d]);
        for (int b = 0; b < s->rep_bits[d]; b++) {
            int32_t image[TL_LAYOUT_MAX_OUT] = {0};
            image[d] = (int32_t)1 << (l->out_bits[d] + b);
            s->reg[s->nregs++] = element_of(e, image);
        }
    }
    TL_ASSERT(s->nregs <= 31, "conversion of 2^%d registers", s->nregs);
}

void tl_planner_init(TlPlanner *p, const int32_t *shape, uint32_t elem_bytes, const TlLayout *src,
                     const TlLayout *dst)
{
    TL_ASSERT(elem_bytes > 0 && elem_bytes <= 8, "elements of %u bytes", elem_bytes);
    measure(&p->e, src, shape);
    make_side(&p->src, &p->e, src);
    make_side(&p->dst, &p->e, dst);
    TlConvert *c = p->c = TL_NEW(p->arena, TlConvert);
    c->lane_bits = p->src.nlanes;
    c->warp_bits = p->src.nwarps;
    c->elem_bytes = elem_bytes;
    c->nsrc = (uint32_t)tl_layout_registers(src);
    c->ndst = (uint32_t)tl_layout_registers(dst);
}

/* The real register; -1 when it does not exist. */
static int64_t side_real(const TlSide *s, uint64_t virtual_reg)
{
    int64_t rep = 0;
    for (int d = 0; d < s->l->nout; d++) {
        int64_t r = (int64_t)(virtual_reg >> s->rep_from[d] & ((1u << s->rep_bits[d]) - 1));
        if (r >= s->l->reps[d])
            return -1;
        rep = rep * s->l->reps[d] + r;
    }
    return rep << s->nreal | (int64_t)(virtual_reg & ((1u << s->nreal) - 1));
}

uint64_t tl_side_virtual(const TlSide *s, int64_t reg)
{
    TL_ASSERT(reg >= 0 && reg < tl_layout_registers(s->l), "register %lld", (long long)reg);
    uint64_t v = (uint64_t)reg & ((1u << s->nreal) - 1);
    reg >>= s->nreal;
    for (int d = s->l->nout - 1; d >= 0; d--) {
        v |= (uint64_t)(reg % s->l->reps[d]) << s->rep_from[d];
        reg /= s->l->reps[d];
    }
    return v;
}

/* ---- sources ---- */

/* Where in src a bit of dst comes from: combinations of bits of register (virtual), lane and
 * warp. */
typedef struct From {
    uint32_t reg, lane, warp;
} From;

typedef struct Sources {
    From reg[32], lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
} Sources;

static void span_of_side(TlSpan *s, const TlSide *side)
{
    memset(s, 0, sizeof *s);
    for (int b = 0; b < side->nregs; b++)
        tl_span_add(s, side->reg[b], 1ull << b);
    for (int b = 0; b < side->nlanes; b++)
        tl_span_add(s, side->lane[b], 1ull << (LANE_AT + b));
    for (int b = 0; b < side->nwarps; b++)
        tl_span_add(s, side->warp[b], 1ull << (WARP_AT + b));
}

static From solve(const TlSpan *s, uint64_t element)
{
    uint64_t combo = 0;
    uint64_t rest = tl_span_reduce(s, element, &combo);
    TL_ASSERT(rest == 0, "an element that the operand of a conversion does not hold");
    return (From){(uint32_t)combo, (uint32_t)(combo >> LANE_AT) & 0xffff,
                  (uint32_t)(combo >> WARP_AT)};
}

static void find_sources(const TlPlanner *p, Sources *x)
{
    const TlSide *src = &p->src, *dst = &p->dst;
    TlSpan s;
    span_of_side(&s, src);
    for (int b = 0; b < dst->nregs; b++) {
        bool agrees = b < src->nreal && b < dst->nreal && src->reg[b] == dst->reg[b];
        x->reg[b] = agrees ? (From){.reg = 1u << b} : solve(&s, dst->reg[b]);
    }
    for (int b = 0; b < dst->nlanes; b++) {
        x->lane[b] = src->lane[b] == dst->lane[b] ? (From){0} : solve(&s, dst->lane[b]);
        if (src->lane[b] == dst->lane[b] || src->lane[b] == 0) /* copies: any lane will do */
            x->lane[b].lane |= 1u << b;
    }
    for (int b = 0; b < dst->nwarps; b++) {
        x->warp[b] = src->warp[b] == dst->warp[b] ? (From){0} : solve(&s, dst->warp[b]);
        if (src->warp[b] == dst->warp[b] || src->warp[b] == 0)
            x->warp[b].warp |= 1u << b;
    }
}

/* ---- within a warp ---- */

static bool stays_in_warp(const TlPlanner *p, const Sources *x)
{
    for (int b = 0; b < p->dst.nregs; b++)
        if (x->reg[b].warp)
            return false;
    for (int b = 0; b < p->dst.nlanes; b++)
        if (x->lane[b].warp)
            return false;
    for (int b = 0; b < p->dst.nwarps; b++)
        if (x->warp[b].warp != 1u << b)
            return false;
    return true;
}

/* The matrices of the essay above, with a column for each input bit. */
typedef struct Shuffle {
    uint32_t G[TL_MAX_LANE_BITS], H[TL_MAX_LANE_BITS], M[TL_MAX_LANE_BITS], N[TL_MAX_LANE_BITS];
} Shuffle;

static uint32_t times(const uint32_t *columns, uint32_t x)
{
    uint32_t v = 0;
    for (int i = 0; x; i++, x >>= 1)
        if (x & 1)
            v ^= columns[i];
    return v;
}

static From times_reg(const Sources *x, uint32_t reg)
{
    From f = {0};
    for (int b = 0; reg; b++, reg >>= 1)
        if (reg & 1)
            f = (From){f.reg ^ x->reg[b].reg, f.lane ^ x->reg[b].lane, 0};
    return f;
}

/* Vectors of lanes that Bl merges; those with Al independent first (*out_told), then the rest. */
static int merged_lanes(const TlPlanner *p, const Sources *x, uint32_t *out, int *out_told)
{
    TlSpan lanes = {0}, regs = {0};
    uint32_t rest[TL_MAX_LANE_BITS];
    int nrest = 0;
    *out_told = 0;
    for (int b = 0; b < p->dst.nlanes; b++) {
        uint64_t combo = 1ull << b, al = 0;
        if (tl_span_reduce(&lanes, x->lane[b].lane, &combo)) {
            tl_span_add(&lanes, x->lane[b].lane, 1ull << b);
            continue;
        }
        for (int k = 0; k < p->dst.nlanes; k++)
            al ^= combo >> k & 1 ? x->lane[k].reg : 0;
        uint64_t same = combo;
        if (tl_span_reduce(&regs, al, &same) == 0) {
            rest[nrest++] = (uint32_t)same;
            continue;
        }
        tl_span_add(&regs, al, combo);
        out[(*out_told)++] = (uint32_t)combo;
    }
    memcpy(out + *out_told, rest, sizeof *rest * (size_t)nrest);
    return *out_told + nrest;
}

/* A real register bit of the result that leads to a lane not reached yet; -1: none. */
static int new_lane_bit(const TlPlanner *p, const Sources *x, TlSpan *reached)
{
    for (int b = 0; b < p->dst.nreal; b++)
        if (x->reg[b].lane && tl_span_add(reached, x->reg[b].lane, 0))
            return b;
    return -1;
}

/* M on a basis of the lanes: some merged vectors get a register bit, all else zero. copies: those
 * too that need none. */
static bool find_M(const TlPlanner *p, const Sources *x, Shuffle *f, bool copies)
{
    uint32_t merged[TL_MAX_LANE_BITS], image[TL_MAX_LANE_BITS] = {0};
    int told, n = merged_lanes(p, x, merged, &told);
    TlSpan reached = {0}, basis = {0};
    for (int b = 0; b < p->dst.nlanes; b++)
        tl_span_add(&reached, x->lane[b].lane, 0);
    for (int i = 0; i < n; i++) {
        int bit = i < told || copies ? new_lane_bit(p, x, &reached) : -1;
        if (i < told && bit < 0)
            return false;
        image[i] = bit < 0 ? 0 : 1u << bit;
        tl_span_add(&basis, merged[i], 1ull << i);
    }
    for (int b = 0; b < p->dst.nlanes; b++)
        tl_span_add(&basis, 1ull << b, 0); /* completes it, with image 0 */
    for (int b = 0; b < p->dst.nlanes; b++) {
        uint64_t combo = 0;
        tl_span_reduce(&basis, 1ull << b, &combo);
        f->M[b] = times(image, (uint32_t)combo);
    }
    return true;
}

/* N with N G = H, zero outside of G's image. Its registers must be real ones: repetitions may be
 * missing. */
static bool find_N(const TlPlanner *p, Shuffle *f)
{
    TlSpan basis = {0};
    int n = p->dst.nlanes;
    for (int b = 0; b < n; b++) {
        uint64_t combo = 1ull << b;
        if (!tl_span_reduce(&basis, f->G[b], &combo)) {
            if (times(f->H, (uint32_t)combo))
                return false;
        } else {
            tl_span_add(&basis, f->G[b], 1ull << b);
        }
    }
    for (int b = 0; b < n; b++)
        tl_span_add(&basis, 1ull << b, 0);
    for (int b = 0; b < n; b++) {
        uint64_t combo = 0;
        tl_span_reduce(&basis, 1ull << b, &combo);
        f->N[b] = times(f->H, (uint32_t)combo);
        if (f->N[b] >> p->src.nreal)
            return false;
    }
    return true;
}

static bool is_identity(const uint32_t *columns, int n)
{
    for (int b = 0; b < n; b++)
        if (columns[b] != 1u << b)
            return false;
    return true;
}

static bool fill_maps(TlPlanner *p, const Sources *x, const Shuffle *f)
{
    TlConvert *c = p->c;
    c->is_xor = is_identity(f->G, p->dst.nlanes);
    for (int b = 0; b < p->dst.nlanes; b++) {
        c->from_reg.lane[b] = f->N[b];
        c->from_lane.lane[b] = f->G[b];
        c->to_reg.lane[b] = f->M[b];
    }
    for (int b = 0; b < p->dst.nwarps; b++) {
        c->from_reg.warp[b] = times(f->N, x->warp[b].lane) ^ x->warp[b].reg;
        c->from_lane.warp[b] = x->warp[b].lane;
        c->is_xor &= x->warp[b].lane == 0;
        if (c->from_reg.warp[b] >> p->src.nreal)
            return false;
    }
    return true;
}

/* Small elements from the same lane are packed into words. */
static uint32_t count_shuffles(TlArena *arena, const TlConvert *c)
{
    uint32_t words = c->elem_bytes > 4 ? 2 : 1,
             per_word = c->elem_bytes < 4 ? 4 / c->elem_bytes : 1;
    uint32_t n = 0;
    TlMap of_lane = {.arena = arena};
    for (uint32_t r = 0; r < c->ndst; r++) {
        uint64_t elements = 0;
        if (c->regs[r].stays || c->regs[r].src < 0)
            continue;
        tl_map_get(&of_lane, c->regs[r].lane + 1, &elements);
        n += elements % per_word == 0 ? words : 0;
        tl_map_put(&of_lane, c->regs[r].lane + 1, elements + 1);
    }
    return n;
}

static void fill_regs(TlPlanner *p, const Sources *x, const Shuffle *f)
{
    TlConvert *c = p->c;
    c->regs = TL_NEW_ARRAY(p->arena, TlConvertReg, c->ndst);
    for (uint32_t r = 0; r < c->ndst; r++) {
        From from = times_reg(x, (uint32_t)tl_side_virtual(&p->dst, r));
        int64_t src = side_real(&p->src, from.reg ^ times(f->N, from.lane));
        bool stays = c->is_xor && from.lane == 0;
        c->regs[r] = (TlConvertReg){(int32_t)src, from.lane, stays};
    }
    c->shuffles = count_shuffles(p->arena, c);
    c->selects = (uint32_t)__builtin_popcount(tl_thread_map_bits(&c->from_reg)) * c->nsrc +
                 (uint32_t)__builtin_popcount(tl_thread_map_bits(&c->to_reg)) * c->ndst;
}

static bool has_pairs(const TlConvert *c)
{
    enum { HALF_WORD = 2 };
    if (!c->is_xor || c->elem_bytes != HALF_WORD || !thread_map_is_zero(&c->from_reg) ||
        tl_thread_map_bits(&c->to_reg) != 1 || c->nsrc % 2)
        return false;
    for (uint32_t r = 0; r < c->ndst; r += 2)
        if (c->regs[r].src < 0 || c->regs[r].src != c->regs[r + 1].src || !c->regs[r].stays ||
            c->regs[r + 1].stays || c->regs[r + 1].lane != c->regs[1].lane)
            return false;
    return true;
}

/* Fills regs and the maps; false if registers and shuffles are not enough. */
static bool plan_shuffle(TlPlanner *p, const Sources *x, bool copies)
{
    Shuffle f;
    memset(&f, 0, sizeof f);
    if (!find_M(p, x, &f, copies))
        return false;
    for (int b = 0; b < p->dst.nlanes; b++) {
        From m = times_reg(x, f.M[b]);
        f.G[b] = x->lane[b].lane ^ m.lane;
        f.H[b] = x->lane[b].reg ^ m.reg;
    }
    if (!find_N(p, &f) || !fill_maps(p, x, &f))
        return false;
    fill_regs(p, x, &f);
    p->c->pairs = has_pairs(p->c);
    if (p->c->pairs)
        p->c->selects = p->c->ndst / 2;
    return true;
}

/* With pairs, if that can be. */
static bool plan_warp(TlPlanner *p, const Sources *x)
{
    TlConvert plain;
    if (!stays_in_warp(p, x) || !plan_shuffle(p, x, false))
        return false;
    plain = *p->c;
    if (!plain.is_xor && !(plan_shuffle(p, x, true) && p->c->pairs))
        *p->c = plain;
    return true;
}

static TlConvertKind kind_in_warp(const TlConvert *c)
{
    bool same = c->nsrc == c->ndst;
    if (c->shuffles || !c->is_xor || !thread_map_is_zero(&c->from_reg) ||
        !thread_map_is_zero(&c->to_reg))
        return TL_CONVERT_SHUFFLE;
    for (uint32_t r = 0; r < c->ndst; r++)
        same &= c->regs[r].src < 0 || c->regs[r].src == (int32_t)r;
    return same ? TL_CONVERT_NONE : TL_CONVERT_RENAME;
}

static bool shuffles_are_cheap(const TlConvert *c)
{
    uint32_t shared = c->write.wavefronts + c->read.wavefronts + BARRIERS * c->nfilled;
    return c->shuffles + (c->selects + SELECTS - 1) / SELECTS <= shared;
}

/* ---- the plan ---- */

static void check_layouts(const TlType *type, const TlLayout *src, const TlLayout *dst)
{
    TL_ASSERT(src->nout == type->rank && dst->nout == type->rank, "conversion between ranks");
    for (TlInDim in = TL_IN_LANE; in <= TL_IN_WARP; in++)
        TL_ASSERT(tl_layout_in_bits(src, in) == tl_layout_in_bits(dst, in),
                  "conversion between machines");
    TL_ASSERT(tl_layout_registers(src) < INT32_MAX && tl_layout_registers(dst) < INT32_MAX,
              "conversion of too many registers");
}

/* Debug builds prove every plan that is small enough. */
static TlConvert *proved(TlPlanner *p, const TlType *type, const TlLayout *src, const TlLayout *dst)
{
#ifndef NDEBUG
    enum { MOST_ELEMENTS = 1 << 16 };
    int64_t threads = (int64_t)1 << (p->c->lane_bits + p->c->warp_bits);
    if (threads * (p->c->nsrc > p->c->ndst ? p->c->nsrc : p->c->ndst) <= MOST_ELEMENTS) {
        const char *fault = tl_convert_prove(p->arena, p->c, type, src, dst);
        TL_ASSERT(!fault, "conversion: %s", fault);
    }
#else
    (void)type, (void)src, (void)dst;
#endif
    return p->c;
}

TlConvert *tl_convert_plan(TlArena *arena, const TlType *type, const TlLayout *src,
                           const TlLayout *dst, uint32_t max_bytes, uint32_t flags)
{
    TL_ASSERT(type->kind == TL_TILE && src && dst, "a conversion without layouts");
    TlPlanner p = {
        .arena = arena, .max_bytes = max_bytes, .fit = (flags & TL_CONVERT_FIT) != 0};
    check_layouts(type, src, dst);
    tl_planner_init(&p, type->shape, type->ptr ? 8 : (uint32_t)tl_dtype_bytes(type->dtype), src,
                    dst);
    TlConvert *c = p.c;
    Sources x;
    find_sources(&p, &x);
    bool in_warp = plan_warp(&p, &x);
    c->kind = in_warp ? kind_in_warp(c) : TL_CONVERT_SHARED;
    if (c->kind == TL_CONVERT_SHARED && flags & TL_CONVERT_KIND)
        return c;
    if (c->kind < TL_CONVERT_SHUFFLE)
        return proved(&p, type, src, dst);
    tl_plan_shared(&p);
    if (!in_warp || (flags & TL_CONVERT_NO_SHUFFLE) || !shuffles_are_cheap(c))
        c->kind = TL_CONVERT_SHARED;
    return proved(&p, type, src, dst);
}
