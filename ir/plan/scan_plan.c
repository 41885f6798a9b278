/* Planning a scan (scan_plan.h): for each bit of the coordinate a direction, that is, a vector of
 * registers, lanes and warps whose image is this bit and nothing else. Such a vector exists
 * because a layout is surjective; registers are preferred to lanes, and lanes to warps. */
#include "ir/plan/scan_plan.h"
#include "ir/layout/gf2.h"
#include "ir/plan/shared_plan.h"
#include <string.h>

enum { LANE_AT = TL_LAYOUT_MAX_BITS, WARP_AT = LANE_AT + TL_MAX_LANE_BITS };

typedef struct Direction {
    uint32_t reg, lane, warp;
} Direction;

typedef struct Planner {
    TlArena *arena;
    TlScanPlan *p;
    const TlOp *op;
    Direction direction[TL_LAYOUT_MAX_BITS]; /* by bit of the coordinate */
    TlSpan regs;                             /* directions so far that are registers alone */
    bool can, reverse;
} Planner;

static void find_directions(Planner *pl)
{
    const TlImages *x = &pl->p->x;
    TlSpan s = {0};
    for (int i = 0; i < x->nreg; i++)
        tl_span_add(&s, x->reg[i], 1ull << i);
    for (int i = 0; i < x->nlane; i++)
        tl_span_add(&s, x->lane[i], 1ull << (LANE_AT + i));
    for (int i = 0; i < x->nwarp; i++)
        tl_span_add(&s, x->warp[i], 1ull << (WARP_AT + i));
    for (int b = 0; b < pl->p->axis_bits; b++) {
        uint64_t combo = 0;
        TL_ASSERT(tl_span_reduce(&s, 1ull << b, &combo) == 0, "a layout without coordinate bit %d",
                  b);
        pl->direction[b] =
            (Direction){(uint32_t)(combo & ((1ull << LANE_AT) - 1)),
                        (uint32_t)(combo >> LANE_AT) & ((1u << TL_MAX_LANE_BITS) - 1),
                        (uint32_t)(combo >> WARP_AT)};
    }
}

static bool is_own(const Direction *d)
{
    return d->lane == 0 && d->warp == 0;
}

/* The representative of all registers that differ only by directions of registers. */
static uint32_t *representatives(const Planner *pl)
{
    uint32_t n = 1u << pl->p->reg_bits, *rep = TL_NEW_ARRAY(pl->arena, uint32_t, n);
    for (uint32_t r = 0; r < n; r++) {
        uint64_t combo = 0;
        rep[r] = (uint32_t)tl_span_reduce(&pl->regs, r, &combo);
    }
    return rep;
}

/* ---- registers in order ---- */

static void plan_cells(Planner *pl)
{
    TlScanPlan *p = pl->p;
    uint64_t moving = tl_images_moving(&p->x);
    while (p->own_bits < p->axis_bits && is_own(&pl->direction[p->own_bits]) &&
           !(moving >> p->own_bits & 1))
        tl_span_add(&pl->regs, pl->direction[p->own_bits++].reg, 0);
    p->cell = representatives(pl);
    p->along = TL_NEW_ARRAY(pl->arena, uint32_t, 1u << p->own_bits);
    for (uint32_t m = 0; m < 1u << p->own_bits; m++)
        for (int b = 0; b < p->own_bits; b++)
            p->along[m] ^= m >> b & 1 ? pl->direction[b].reg : 0;
}

/* ---- steps ---- */

static uint64_t without_low_bits(const void *user, uint64_t v)
{
    return v >> *(const int *)user;
}

/* Representatives are the registers without the leading bits of the directions; their number, in
 * all repetitions, counts the other bits up. */
static void list_parts(const Planner *pl, TlScanStep *s, TlImages *parts)
{
    uint32_t free_bits[TL_LAYOUT_MAX_BITS], reps = pl->p->nregs >> pl->p->reg_bits;
    int n = 0;
    for (int b = 0; b < pl->p->reg_bits; b++) {
        if (pl->regs.vec[b])
            continue;
        parts->reg[n] = parts->reg[b];
        free_bits[n++] = 1u << b;
    }
    parts->nreg = n;
    s->nparts = reps << n;
    s->parts = TL_NEW_ARRAY(pl->arena, uint32_t, s->nparts);
    for (uint32_t i = 0; i < s->nparts; i++) {
        s->parts[i] = i >> n << pl->p->reg_bits;
        for (int b = 0; b < n; b++)
            s->parts[i] |= i >> b & 1 ? free_bits[b] : 0;
    }
}

static void plan_classes(Planner *pl, TlScanStep *s)
{
    TlScanPlan *p = pl->p;
    s->by_classes = true;
    while (s->bit + s->nbits < p->axis_bits && pl->direction[s->bit + s->nbits].warp)
        s->nbits++;
    TlImages x = p->x;
    tl_images_change(&x, without_low_bits, &s->bit);
    list_parts(pl, s, &x);
    TlSharedRounds r =
        tl_combine_rounds(pl->arena, pl->op, &x, s->nbits, s->nparts, p->in_parts ? 0 : p->bytes);
    s->slots = r.slots;
    s->each = r.each;
    s->operand_at = r.operand_at;
    p->bytes = r.bytes > p->bytes ? r.bytes : p->bytes;
}

/* ---- steps by shifts ---- */

/* Does nothing but one bit of the lane move this bit of the coordinate, and that nothing else? */
static bool is_of_a_lane(const Planner *pl, int bit)
{
    const TlImages *x = &pl->p->x;
    const Direction *d = &pl->direction[bit];
    uint64_t of = 1ull << bit;
    int n = 0;
    if (d->reg || d->warp || d->lane == 0 || (d->lane & (d->lane - 1)))
        return false;
    for (int i = 0; i < x->nreg; i++)
        n += (x->reg[i] & of) != 0;
    for (int i = 0; i < x->nlane; i++)
        n += (x->lane[i] & of) != 0;
    for (int i = 0; i < x->nwarp; i++)
        n += (x->warp[i] & of) != 0;
    return n == 1;
}

/* How many bits from this one on are neighbouring bits of the lane, in order. */
static int bits_of_lanes(const Planner *pl, int bit)
{
    int n = 0;
    while (bit + n < pl->p->axis_bits && is_of_a_lane(pl, bit + n) &&
           pl->direction[bit + n].lane == pl->direction[bit].lane << n)
        n++;
    return n;
}

static TlScanTotal total_after(const Planner *pl, int bit)
{
    const TlScanPlan *p = pl->p;
    if (bit < p->axis_bits)
        return pl->direction[bit].warp ? TL_SCAN_TOTAL_LAST : TL_SCAN_TOTAL_ALL;
    return p->reps > 1 ? TL_SCAN_TOTAL_ALL : TL_SCAN_TOTAL_NONE;
}

uint32_t tl_scan_shuffles(const TlScanStep *step)
{
    if (step->by_shifts)
        return (uint32_t)step->nbits + 1 + (step->total == TL_SCAN_TOTAL_ALL);
    return !step->by_classes && step->lane;
}

/* One combination a bit, where steps of one bit each take two; for that there are one or two
 * shuffles more, of each word. Reversed, blocks that are not there would have to be left out. */
static void try_shifts(const Planner *pl, TlScanStep *s)
{
    TlScanStep by = *s;
    uint32_t more, words = 0;
    by.by_shifts = true;
    by.nbits = bits_of_lanes(pl, s->bit);
    by.total = total_after(pl, s->bit + by.nbits);
    for (uint32_t i = 0; i < pl->op->nout; i++)
        words += tl_dtype_bytes(pl->p->work[i]) > 4 ? 2 : 1;
    more = tl_scan_shuffles(&by) - (uint32_t)by.nbits;
    if (!pl->can || (pl->reverse && pl->p->extent & ((1 << pl->p->axis_bits) - 1)))
        return;
    if (more * words < (uint32_t)by.nbits * pl->op->nout)
        *s = by;
}

/* The lanes that the step goes over. */
static uint32_t lanes_of(const TlScanStep *s)
{
    return ((1u << s->nbits) - 1) * s->lane;
}

static void plan_steps(Planner *pl)
{
    TlScanPlan *p = pl->p;
    for (int b = p->own_bits; b < p->axis_bits;) {
        TlScanStep *s = &p->steps[p->nsteps++];
        const Direction *d = &pl->direction[b];
        *s = (TlScanStep){.bit = b, .nbits = 1, .reg = d->reg, .lane = d->lane};
        s->rep = representatives(pl);
        if (d->warp) {
            plan_classes(pl, s);
            if (p->nsteps > 1 && s[-1].by_shifts && !pl->reverse)
                s->slots.last_lanes = lanes_of(s - 1);
        } else if (is_own(d)) {
            tl_span_add(&pl->regs, d->reg, 0);
        } else {
            try_shifts(pl, s);
        }
        b += s->nbits;
    }
    p->rep = representatives(pl);
}

TlScanPlan *tl_scan_plan(TlArena *arena, const TlOp *op, bool can)
{
    TL_ASSERT(op->opcode == TL_OP_SCAN && op->nin > 0,
              "%s is no scan", tl_op_info(op->opcode)->text);
    const TlType *type = tl_in(op, 0)->type;
    const TlLayout *l = type->layout;
    TlScanPlan *p = TL_NEW(arena, TlScanPlan);
    Planner pl = {.arena = arena, .p = p, .op = op, .can = can};
    pl.reverse = tl_attr_flag(op, TL_ATTR_REVERSE);
    TL_ASSERT(l, "scan of a tile without layout");
    p->axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    p->axis_bits = l->out_bits[p->axis];
    p->extent = type->shape[p->axis];
    p->reps = l->reps[p->axis];
    p->nregs = (uint32_t)tl_layout_registers(l);
    p->in_parts = tl_op_goes_in_parts(op);
    p->work = tl_combine_work(arena, op);
    tl_images_of(&p->x, l, p->axis);
    p->reg_bits = p->x.nreg;
    p->rep_unit = 1u << p->reg_bits;
    for (int d = p->axis + 1; d < l->nout; d++)
        p->rep_unit *= (uint32_t)l->reps[d];
    find_directions(&pl);
    plan_cells(&pl);
    plan_steps(&pl);
    return p;
}
