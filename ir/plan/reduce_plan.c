/* Planning a reduction (reduce_plan.h).
 *
 * The layout is a linear map from (register, lane, warp) to (a, o): coordinate along the axis, and
 * the rest. Registers that differ by a vector of o-image 0 belong to one result. The other
 * dependencies among the o-images of registers, lanes and warps, taken in this order, are the
 * directions to combine along: going by (register, lane) stays with the same o and comes to another
 * a. What a partial result is already the combination of is a coset of a space `cover` of
 * a-vectors, at first that of the registers; a direction whose a-image is inside of the cover leads
 * to a copy, any other doubles the cover. Directions without a warp bit are butterflies; they are
 * made so that each has a lane bit of its own (first_bit), which is 0 in all others, so both
 * sides of a butterfly agree on an order through all steps. What is left of the a-vectors are
 * classes, one per coset of the cover, which meet in shared memory.
 *
 * The least coordinate of a coset is its vector reduced by the cover's echelon form, a linear
 * function. So whether a partial is of padding alone costs one comparison; directions with high
 * bits go first, after which there is seldom anything left to guard. With repetitions along the
 * axis the first one is inside, and nothing but single registers is guarded.
 *
 * Where nothing is guarded and the first lanes are the directions, they go in their order: what
 * lanes below have combined is the same in all of them, so a step may turn them around, which is
 * one move on AMD, as an XOR by 4 is not. */
#include "ir/plan/reduce_plan.h"
#include "ir/layout/gf2.h"
#include "ir/plan/shared_plan.h"
#include <string.h>

enum { VECTOR_BYTES = 16, ROW_BYTES = 128, SCRATCH_ALIGNMENT = 16 };

typedef struct Planner {
    TlReducePlan *p;
    TlArena *arena;
    const TlOp *op;
    const TlLayout *l;
    int axis_bits, nreal; /* of the operand's registers without repetitions */
    TlImages x;           /* of partials: registers that tell results apart, lanes, warps */
    uint32_t reg_as[TL_LAYOUT_MAX_BITS]; /* what it is in result registers */
    TlSpan cover;
} Planner;

static uint64_t axis_part(const Planner *pl, uint64_t image)
{
    return image & ((1ull << pl->axis_bits) - 1);
}

/* ---- registers ---- */

/* Splits the operand's registers into those of the result, in order as interning keeps them, and
 * those that run along the axis. */
static void split_registers(Planner *pl, const TlImages *all)
{
    TlSpan others = {0};
    pl->x = *all;
    pl->x.nreg = 0;
    for (int b = 0; b < all->nreg; b++) {
        uint64_t combo = 0;
        if (tl_span_reduce(&others, all->reg[b] >> pl->axis_bits, &combo)) {
            tl_span_add(&others, all->reg[b] >> pl->axis_bits, 1ull << pl->x.nreg);
            pl->reg_as[b] = 1u << pl->x.nreg;
            pl->x.reg[pl->x.nreg++] = all->reg[b];
            continue;
        }
        uint64_t along = all->reg[b] ^ tl_images_reg(&pl->x, (uint32_t)combo);
        pl->reg_as[b] = (uint32_t)combo;
        tl_span_add(&pl->cover, axis_part(pl, along), 0);
    }
    pl->p->result_bits = pl->x.nreg;
}

/* The result's register to which an operand's register contributes. */
static uint32_t result_of(const Planner *pl, uint32_t reg)
{
    uint32_t bits = 0, rep = reg >> pl->nreal, of = 0, unit = 1;
    for (int b = 0; b < pl->nreal; b++)
        bits ^= reg >> b & 1 ? pl->reg_as[b] : 0;
    for (int d = pl->l->nout - 1; d >= 0; d--) {
        uint32_t n = (uint32_t)pl->l->reps[d];
        if (d != pl->p->axis) {
            of += rep % n * unit;
            unit *= n;
        }
        rep /= n;
    }
    return of << pl->x.nreg | bits;
}

/* The coordinate along the axis in thread 0. */
static int32_t coordinate(const Planner *pl, uint32_t reg)
{
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    int32_t x[TL_LAYOUT_MAX_OUT];
    tl_layout_apply_reg(pl->l, reg, origin, x);
    return x[pl->p->axis];
}

static void sort_members(const Planner *pl, TlReduceMember *m, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        TlReduceMember x = m[i];
        uint32_t at = i;
        for (; at > 0 && coordinate(pl, (uint32_t)m[at - 1].reg) > coordinate(pl, (uint32_t)x.reg);
             at--)
            m[at] = m[at - 1];
        m[at] = x;
    }
}

/* Removes members that are padding in every thread, unless none would be left. */
static void add_member(const Planner *pl, uint32_t reg, TlReduceMember *m, uint32_t *n)
{
    int32_t moving = (int32_t)axis_part(pl, tl_images_moving(&pl->x)), x = coordinate(pl, reg);
    if ((x & ~moving) < pl->p->extent || *n == 0)
        m[(*n)++] = (TlReduceMember){(int32_t)reg, (x | moving) >= pl->p->extent};
}

static void list_members(Planner *pl)
{
    TlReducePlan *p = pl->p;
    p->members = TL_NEW_ARRAY(pl->arena, TlReduceMember, p->nregs);
    p->first = TL_NEW_ARRAY(pl->arena, uint32_t, p->nresults + 1);
    uint32_t *of = TL_NEW_ARRAY(pl->arena, uint32_t, p->nregs), *fill = p->first + 1;
    for (uint32_t r = 0; r < p->nregs; r++)
        of[r] = result_of(pl, r);
    uint32_t group = p->nregs / p->nresults;
    TlReduceMember *all = TL_NEW_ARRAY(pl->arena, TlReduceMember, p->nregs);
    for (uint32_t r = 0; r < p->nregs; r++)
        add_member(pl, r, all + of[r] * group, &fill[of[r]]);
    uint32_t n = 0;
    for (uint32_t r = 0; r < p->nresults; r++) {
        uint32_t count = fill[r];
        sort_members(pl, all + r * group, count);
        memcpy(p->members + n, all + r * group, sizeof *all * count);
        n += count;
        fill[r] = n;
    }
}

/* ---- directions over lanes ---- */

typedef struct Direction {
    uint32_t reg, lane;
    uint64_t along; /* a-vector */
} Direction;

/* Dependencies among the o-images of registers and lanes. */
static int find_directions(const Planner *pl, Direction *out)
{
    TlSpan others = {0};
    int n = 0, nreg = pl->x.nreg;
    for (int i = 0; i < nreg; i++)
        tl_span_add(&others, pl->x.reg[i] >> pl->axis_bits, 1ull << i);
    for (int i = 0; i < pl->x.nlane; i++) {
        uint64_t combo = 1ull << (nreg + i);
        if (tl_span_reduce(&others, pl->x.lane[i] >> pl->axis_bits, &combo)) {
            tl_span_add(&others, pl->x.lane[i] >> pl->axis_bits, 1ull << (nreg + i));
            continue;
        }
        Direction d = {(uint32_t)(combo & ((1ull << nreg) - 1)), (uint32_t)(combo >> nreg), 0};
        d.along = tl_images_reg(&pl->x, d.reg);
        for (int k = 0; k < pl->x.nlane; k++)
            d.along ^= d.lane >> k & 1 ? pl->x.lane[k] : 0;
        d.along = axis_part(pl, d.along);
        out[n++] = d;
    }
    return n;
}

static void add_direction(Direction *to, const Direction *d)
{
    to->reg ^= d->reg;
    to->lane ^= d->lane;
    to->along ^= d->along;
}

/* An independent set modulo the cover, by leading bits, which are all different, descending. */
static int echelon(const Planner *pl, Direction *d, int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        Direction x = d[i];
        uint64_t combo = 0;
        x.along = tl_span_reduce(&pl->cover, x.along, &combo);
        for (int k = 0; k < kept; k++)
            if ((x.along ^ d[k].along) < x.along)
                add_direction(&x, &d[k]);
        if (x.along == 0)
            continue;
        int at = kept++;
        for (; at > 0 && d[at - 1].along < x.along; at--)
            d[at] = d[at - 1];
        d[at] = x;
    }
    return kept;
}

/* A lane bit that only this direction has; the a-vectors change by those of other directions, which
 * the order of steps allows (reduced by the cover they keep their leading bits). */
static int own_bit(Direction *d, int n, int i)
{
    int bit = 0;
    while (!(d[i].lane >> bit & 1))
        bit++;
    for (int k = 0; k < n; k++)
        if (k != i && d[k].lane >> bit & 1)
            add_direction(&d[k], &d[i]);
    return bit;
}

static uint64_t least(const void *cover, uint64_t v)
{
    uint64_t combo = 0;
    return tl_span_reduce(cover, v, &combo);
}

/* The coordinates of the partials before a step. */
static void guard_step(const Planner *pl, TlReduceStep *s, uint64_t along)
{
    if (pl->l->reps[pl->p->axis] > 1)
        return;
    TlImages x = pl->x;
    uint64_t most = 0;
    for (int i = 0; i < x.nreg; i++)
        most |= x.reg[i] = least(&pl->cover, axis_part(pl, x.reg[i]));
    for (int i = 0; i < x.nlane; i++)
        x.lane[i] = least(&pl->cover, axis_part(pl, x.lane[i]));
    for (int i = 0; i < x.nwarp; i++)
        x.warp[i] = least(&pl->cover, axis_part(pl, x.warp[i]));
    most |= tl_images_moving(&x);
    s->guarded = most >= (uint64_t)pl->p->extent;
    s->least.thread = tl_images_threads(&x);
    for (int i = 0; i < x.nreg; i++)
        s->least.reg[i] = (uint32_t)x.reg[i];
    s->least_partner = (uint32_t)least(&pl->cover, along);
}

/* Directions that are lanes 1, 2, 4, ... and no registers, in this order. */
static void mirror_steps(TlReducePlan *p)
{
    uint32_t lanes = 0;
    for (int i = 0; i < p->nsteps; i++) {
        const TlReduceStep *s = &p->steps[i];
        if (s->reg || s->guarded || s->lane != 1u << s->first_bit)
            return;
        lanes |= s->lane;
    }
    p->mirrored = p->nsteps > 0 && lanes == (1u << p->nsteps) - 1;
    for (int i = 0; p->mirrored && i < p->nsteps; i++)
        p->steps[i] = (TlReduceStep){.lane = (2u << i) - 1, .first_bit = i};
}

static void plan_steps(Planner *pl)
{
    TlReducePlan *p = pl->p;
    Direction d[TL_MAX_LANE_BITS];
    p->nsteps = echelon(pl, d, find_directions(pl, d));
    for (int i = 0; i < p->nsteps; i++)
        p->steps[i].first_bit = own_bit(d, p->nsteps, i);
    for (int i = 0; i < p->nsteps; i++) {
        TlReduceStep *s = &p->steps[i];
        s->reg = d[i].reg;
        s->lane = d[i].lane;
        guard_step(pl, s, d[i].along);
        TL_ASSERT(tl_span_add(&pl->cover, d[i].along, 0), "a step that combines nothing new");
    }
    mirror_steps(p);
}

bool tl_reduce_goes_by_rows(const TlReducePlan *p, bool can)
{
    enum { LANE_BITS = 6 };
    return can && p->mirrored && p->nsteps == LANE_BITS;
}

static bool is_of_whole_warp(const TlReducePlan *p, int lane_bits)
{
    for (int i = 0; i < p->nsteps; i++)
        if (p->steps[i].reg || p->steps[i].guarded)
            return false;
    return p->nsteps == lane_bits;
}

/* By combiner: whether there is one, and which for signed numbers (of floats, MIN and MAX),
 * unsigned ones, and bool, of which a sum is the parity, as tl_gen_combine has it. */
static const struct Redux {
    bool can;
    TlRedux of_signed, of_unsigned, of_bool;
} REDUX[] = {
    [TL_COMBINE_ADD] = {true, TL_REDUCE_ADD, TL_REDUCE_ADD, TL_REDUCE_XOR},
    [TL_COMBINE_MAX] = {true, TL_REDUCE_MAX, TL_REDUCE_UMAX, TL_REDUCE_OR},
    [TL_COMBINE_MIN] = {true, TL_REDUCE_MIN, TL_REDUCE_UMIN, TL_REDUCE_AND},
    [TL_COMBINE_AND] = {true, TL_REDUCE_AND, TL_REDUCE_AND, TL_REDUCE_AND},
    [TL_COMBINE_OR] = {true, TL_REDUCE_OR, TL_REDUCE_OR, TL_REDUCE_OR},
    [TL_COMBINE_XOR] = {true, TL_REDUCE_XOR, TL_REDUCE_XOR, TL_REDUCE_XOR},
    [TL_COMBINE_USER] = {false, 0, 0, 0},
};

bool tl_reduce_redux(const TlReducePlan *p, const TlOp *reduce, int lane_bits, TlRedux *how)
{
    int64_t kind = tl_attr_int(reduce, TL_ATTR_KIND, TL_COMBINE_USER);
    const struct Redux *row = &REDUX[kind];
    TlDtype d = p->work[0];
    bool is_sum = tl_is_float(d) && kind != TL_COMBINE_MIN && kind != TL_COMBINE_MAX;
    if (!row->can || is_sum || tl_dtype_bits(d) > 32 || !is_of_whole_warp(p, lane_bits))
        return false;
    *how = tl_is_bool(d)                       ? row->of_bool
           : tl_is_float(d) || tl_is_signed(d) ? row->of_signed
                                               : row->of_unsigned;
    return true;
}

uint32_t tl_reduce_shuffles(const TlReducePlan *p, bool can)
{
    return (uint32_t)p->nsteps + tl_reduce_goes_by_rows(p, can); /* and to all lanes */
}

/* ---- classes ---- */

/* Bits of least coordinates that tell classes apart, as a mask. */
static uint64_t class_mask(const Planner *pl)
{
    uint64_t mask = 0;
    for (int b = 0; b < pl->axis_bits; b++)
        mask |= pl->cover.vec[b] ? 0 : 1ull << b;
    return mask;
}

static uint64_t gather_bits(uint64_t v, uint64_t mask)
{
    uint64_t out = 0;
    for (int b = 0, n = 0; mask >> b; b++)
        if (mask >> b & 1)
            out |= (v >> b & 1) << n++;
    return out;
}

/* (a, o) to (class, o). */
static uint64_t class_and_place(const void *user, uint64_t v)
{
    const Planner *pl = user;
    uint64_t mask = class_mask(pl), class = gather_bits(least(&pl->cover, axis_part(pl, v)), mask);
    return v >> pl->axis_bits << __builtin_popcountll(mask) | class;
}

static void plan_classes(Planner *pl)
{
    TlReducePlan *p = pl->p;
    uint64_t mask = class_mask(pl);
    p->class_bits = __builtin_popcountll(mask);
    if (p->class_bits == 0)
        return;
    p->has_value = TL_NEW_ARRAY(pl->arena, bool, 1u << p->class_bits);
    uint64_t coordinate = 0; /* the subsets of the mask, ascending */
    for (uint32_t c = 0; c < 1u << p->class_bits; c++) {
        p->has_value[c] = pl->l->reps[p->axis] > 1 || coordinate < (uint64_t)p->extent;
        coordinate = (coordinate - mask) & mask;
    }
    TlImages x = pl->x;
    tl_images_change(&x, class_and_place, pl);
    TlSharedRounds r = tl_combine_rounds(pl->arena, pl->op, &x, p->class_bits, p->nresults, 0);
    p->slots = r.slots;
    p->each = r.each;
    p->bytes = r.bytes;
    p->operand_at = r.operand_at;
}

/* ---- the plan ---- */

TlDtype tl_combine_work_type(const TlOp *op, TlDtype d)
{
    TL_ASSERT(op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN, "%s combines nothing",
              tl_op_info(op->opcode)->text);
    bool wide = tl_combine_is_wide((TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0));
    return wide && (d == TL_F16 || d == TL_BF16) ? TL_F32 : d;
}

static void plan_slots(TlSharedSlots *s, const TlImages *x, int class_bits, const TlDtype *work,
                       uint32_t n)
{
    TL_ASSERT(n > 0 && class_bits >= 0, "%u values are combined", n);
    uint32_t widest = 1;
    for (uint32_t i = 0; i < n; i++)
        if ((uint32_t)tl_dtype_bytes(work[i]) > widest)
            widest = (uint32_t)tl_dtype_bytes(work[i]);
    tl_shared_slots_plan(s, x, class_bits, tl_floor_log2(VECTOR_BYTES / widest),
                         tl_floor_log2(ROW_BYTES / widest));
}

/* Where the scratch of operands of these types begins, `slots` each, from offset `from` on; returns
 * the end. */
static uint32_t place_operands(uint32_t from, const TlDtype *work, uint32_t n, uint32_t slots,
                               uint32_t *at)
{
    TL_ASSERT(n > 0, "nothing to hold");
    uint64_t bytes = from;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (uint32_t)bytes;
        bytes += (uint64_t)slots * (uint32_t)tl_dtype_bytes(work[i]);
        bytes = (bytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
    }
    TL_ASSERT(bytes <= UINT32_MAX, "scratch of %llu bytes", (unsigned long long)bytes);
    return (uint32_t)bytes;
}

/* Do all classes of what the first `nreg` bits of registers and all threads hold lie in it, too?
 * Then these registers can be a round. */
static bool is_closed(const TlImages *x, int nreg, int class_bits)
{
    TlSpan held = {0};
    for (int i = 0; i < nreg; i++)
        tl_span_add(&held, x->reg[i], 0);
    for (int i = 0; i < x->nlane; i++)
        tl_span_add(&held, x->lane[i], 0);
    for (int i = 0; i < x->nwarp; i++)
        tl_span_add(&held, x->warp[i], 0);
    for (int b = 0; b < class_bits; b++)
        if (!tl_span_has(&held, 1ull << b))
            return false;
    return true;
}

TlSharedRounds tl_combine_rounds(TlArena *arena, const TlOp *op, const TlImages *x, int class_bits,
                                 uint32_t n, uint32_t from)
{
    TL_ASSERT(n > 0 && n % (1u << x->nreg) == 0, "%u registers of 2^%d", n, x->nreg);
    const TlDtype *work = tl_combine_work(arena, op);
    uint32_t room = tl_op_room(op, UINT32_MAX);
    TlSharedRounds r = {.each = n, .operand_at = TL_NEW_ARRAY(arena, uint32_t, op->nout)};
    TlImages part = *x;
    for (;;) {
        plan_slots(&r.slots, &part, class_bits, work, op->nout);
        uint32_t slots = r.each >> part.nreg << r.slots.bits;
        r.bytes = place_operands(from, work, op->nout, slots, r.operand_at);
        tl_shared_slots_in_rounds(&r.slots, x, class_bits);
        if (r.bytes <= room)
            return r;
        uint32_t chunks = r.each >> part.nreg;
        if (chunks == 1 && (part.nreg == 0 || !is_closed(x, part.nreg - 1, class_bits)))
            return r;
        part.nreg -= chunks == 1;
        r.each = chunks == 1 ? 1u << part.nreg : chunks / 2 << part.nreg;
    }
}

TlDtype *tl_combine_work(TlArena *arena, const TlOp *op)
{
    TlDtype *work = TL_NEW_ARRAY(arena, TlDtype, op->nout);
    for (uint32_t i = 0; i < op->nout; i++)
        work[i] = tl_combine_work_type(op, tl_in(op, i)->type->dtype);
    return work;
}

TlReducePlan *tl_reduce_plan(TlArena *arena, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_REDUCE && op->nin > 0, "%s is no reduction",
              tl_op_info(op->opcode)->text);
    const TlType *type = tl_in(op, 0)->type;
    Planner pl = {.p = TL_NEW(arena, TlReducePlan), .arena = arena, .op = op, .l = type->layout};
    TlReducePlan *p = pl.p;
    TL_ASSERT(type->layout, "reduction of a tile without layout");
    p->axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    p->extent = type->shape[p->axis];
    p->noperands = op->nin;
    p->work = tl_combine_work(arena, op);
    TlImages all;
    tl_images_of(&all, type->layout, p->axis);
    pl.axis_bits = type->layout->out_bits[p->axis];
    pl.nreal = all.nreg;
    split_registers(&pl, &all);
    p->nregs = (uint32_t)tl_layout_registers(type->layout);
    p->nresults = p->nregs >> (all.nreg - pl.x.nreg);
    p->nresults /= (uint32_t)type->layout->reps[p->axis];
    list_members(&pl);
    plan_steps(&pl);
    plan_classes(&pl);
    return p;
}
