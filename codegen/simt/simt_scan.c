/* Lowering of scans, after the plan of ir/plan/scan_plan.h.
 *
 * Padding comes last and is never looked at, unless the scan is reversed: then a block has a value
 * if its lowest coordinate is inside. The scan's initial values are combined in front of each
 * cell's prefix. */
#include "codegen/leaf/leaves.h"
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/scan_plan.h"

typedef struct Scan {
    TlSimtCombiner c;
    const TlScanPlan *p;
    TlOp *op;
    bool reverse;
    TlSimtPartial none;    /* before anything it changes nothing; v NULL: no value does that */
    TlSimtPartial *sum;    /* by register: of its cell, from the first met up to it */
    TlSimtPartial *before; /* exclusive: of its cell, what is met before it; v NULL: nothing */
    bool begins, exclusive;
    TlSimtPartial first; /* what it begins with */
    TlSimtPartial *total;  /* of its block; at representatives */
    TlSimtPartial *prefix; /* at cells; v NULL: none has any */
    TlSimtPartial *near;   /* at cells: between the prefix and the cell; v NULL: nothing */
    TlSimtLinear coordinate;
    bool read; /* the scratch has been, since the last barrier */
} Scan;

static uint32_t real(const Scan *s, uint32_t reg)
{
    return reg & ((1u << s->p->reg_bits) - 1);
}

static uint32_t repetition(const Scan *s, uint32_t reg)
{
    return reg >> s->p->reg_bits << s->p->reg_bits;
}

/* Coordinate in the chunk, in thread 0. */
static uint32_t coordinate_of(const Scan *s, uint32_t reg)
{
    uint64_t v = tl_images_reg(&s->p->x, real(s, reg));
    return (uint32_t)v & ((1u << s->p->axis_bits) - 1);
}

/* How many coordinates of the chunk are inside in the register's repetition. */
static uint32_t limit_of(const Scan *s, uint32_t reg)
{
    uint32_t rep = reg / s->p->rep_unit % (uint32_t)s->p->reps;
    return (uint32_t)s->p->extent - (rep << s->p->axis_bits);
}

/* i1: (coordinate without its bits below `bit`, then | upper) is inside; NULL: always. */
static LLVMValueRef has_block(const Scan *s, uint32_t reg, int bit, uint32_t upper)
{
    TlSimt *g = s->c.g;
    uint32_t mask = ~((1u << bit) - 1);
    TlSimtLinear x = {s->coordinate.thread, s->coordinate.bits & mask};
    uint32_t c = coordinate_of(s, reg) & mask, limit = limit_of(s, reg);
    if ((c | x.bits | upper) < limit)
        return NULL;
    x.thread = LLVMBuildAnd(g->b, x.thread, tl_simt_i32(g, mask), "");
    x.thread = LLVMBuildXor(g->b, x.thread, tl_simt_i32(g, c), "");
    x.thread = LLVMBuildOr(g->b, x.thread, tl_simt_i32(g, upper), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, x.thread, tl_simt_i32(g, limit), "");
}

static LLVMValueRef constant(const Scan *s, bool v)
{
    return LLVMConstInt(s->c.g->i1, v, 0);
}

/* ---- registers in order ---- */

/* Register of the cell that the scan meets as number i. */
static uint32_t of_cell(const Scan *s, uint32_t cell, uint32_t i)
{
    uint32_t n = 1u << s->p->own_bits, low = coordinate_of(s, cell) & (n - 1);
    return cell ^ s->p->along[(s->reverse ? n - 1 - i : i) ^ low];
}

static uint32_t last_of_cell(const Scan *s, uint32_t cell)
{
    return of_cell(s, cell, (1u << s->p->own_bits) - 1);
}

static void scan_cell(Scan *s, uint32_t cell)
{
    TlSimtPartial run = {NULL, NULL};
    for (uint32_t i = 0; i < 1u << s->p->own_bits; i++) {
        uint32_t reg = of_cell(s, cell, i);
        TlSimtPartial x = tl_simt_partial(&s->c, reg);
        x.has = s->reverse ? has_block(s, reg, 0, 0) : NULL;
        s->before[reg] = run;
        run = i == 0 ? x : tl_simt_join(&s->c, run, x);
        s->sum[reg] = run;
    }
    s->total[cell] = run;
    s->prefix[cell] = s->near[cell] = (TlSimtPartial){NULL, NULL};
}

static void scan_cells(Scan *s)
{
    for (uint32_t r = 0; r < s->p->nregs; r++)
        if (s->p->cell[real(s, r)] == real(s, r))
            scan_cell(s, r);
}

/* ---- steps ---- */

/* `before` comes before the whole block of the cell, where `gains`. Where `none` is a value, a
 * prefix has one everywhere. */
static void put_before(Scan *s, uint32_t cell, TlSimtPartial before, LLVMValueRef gains)
{
    LLVMBuilderRef b = s->c.g->b;
    TlSimtPartial *e = &s->prefix[cell], old = *e, joined = before;
    before.has = NULL;
    bool always = LLVMIsConstant(gains) && LLVMConstIntGetZExtValue(gains);
    if (LLVMIsConstant(gains) && !always)
        return;
    if (!old.v && s->none.v) {
        *e = tl_simt_choose(&s->c, gains, before, s->none);
        return;
    }
    if (!old.v) {
        *e = (TlSimtPartial){before.v, always ? NULL : gains};
        return;
    }
    joined = tl_simt_join(&s->c, before, old);
    *e = tl_simt_choose(&s->c, gains, joined, old);
    e->has = always || !old.has ? NULL : LLVMBuildOr(b, old.has, gains, "");
}

/* i1: is the register's block the later one of the two that the bit tells apart? */
static LLVMValueRef is_later(const Scan *s, uint32_t reg, int bit)
{
    bool flip = (coordinate_of(s, reg) >> bit & 1) != s->reverse;
    if (!(s->coordinate.bits >> bit & 1))
        return constant(s, flip);
    LLVMValueRef x = tl_simt_bit(s->c.g, s->coordinate.thread, bit);
    return flip ? LLVMBuildNot(s->c.g->b, x, "") : x;
}

/* The totals that a step needs, by representative. */
typedef struct Gain {
    TlSimtPartial before; /* total of what comes before the block */
    LLVMValueRef gains;   /* i1: is there any? */
    TlSimtPartial total;  /* new */
} Gain;

static Gain gain_by_bit(const Scan *s, const TlScanStep *step, uint32_t reg)
{
    TlSimt *g = s->c.g;
    uint32_t from = repetition(s, reg) | step->rep[real(s, reg) ^ step->reg];
    TlSimtPartial mine = s->total[reg];
    TlSimtPartial other = tl_simt_partner(&s->c, s->total[from], step->lane);
    mine.has = other.has = NULL;
    LLVMValueRef later = is_later(s, reg, step->bit), has_first = NULL;
    if (s->reverse)
        has_first = has_block(s, reg, step->bit + 1, 1u << step->bit);
    Gain out = {.before = other, .gains = later};
    if (has_first)
        out.gains = LLVMBuildAnd(g->b, later, has_first, "");
    TlSimtPartial first = tl_simt_choose(&s->c, later, other, mine);
    first.has = has_first;
    out.total = tl_simt_join(&s->c, first, tl_simt_choose(&s->c, later, mine, other));
    return out;
}

static void apply(Scan *s, const TlScanStep *step, const uint32_t *next_rep, Gain *gain)
{
    for (uint32_t r = 0; r < s->p->nregs; r++) {
        uint32_t own = real(s, r), rep = repetition(s, r);
        if (s->p->cell[own] == own) {
            const Gain *from = &gain[rep | step->rep[own]];
            put_before(s, r, from->before, from->gains);
        }
    }
    for (uint32_t r = 0; r < s->p->nregs; r++)
        if (next_rep[real(s, r)] == real(s, r)) {
            s->total[r] = gain[r].total;
            s->total[r].has = NULL;
        }
}

/* ---- shifts ---- */

/* What all lanes of the step's group have together, of the last one met. */
static TlSimtPartial of_the_last(const Scan *s, const TlScanStep *step, TlSimtPartial x)
{
    TlSimt *g = s->c.g;
    uint32_t lanes = ((1u << step->nbits) - 1) * step->lane;
    LLVMValueRef lane = s->reverse ? LLVMBuildAnd(g->b, g->thread.lane, tl_simt_i32(g, ~lanes), "")
                                   : LLVMBuildOr(g->b, g->thread.lane, tl_simt_i32(g, lanes), "");
    return tl_simt_of_lane(&s->c, x, lane);
}

/* i1: is there a lane before? Asked of the lane's number: so many predicates would not live. */
static LLVMValueRef has_lane_before(const Scan *s, const TlScanStep *step)
{
    TlSimt *g = s->c.g;
    uint32_t lanes = ((1u << step->nbits) - 1) * step->lane, first = s->reverse ? lanes : 0;
    LLVMValueRef mine = LLVMBuildAnd(g->b, g->thread.lane, tl_simt_i32(g, lanes), "");
    return LLVMBuildICmp(g->b, LLVMIntNE, mine, tl_simt_i32(g, first), "");
}

static Gain gain_by_shifts(Scan *s, const TlScanStep *step, uint32_t reg)
{
    TlSimtPartial x = s->total[reg];
    uint32_t group = step->lane << step->nbits;
    int way = s->reverse ? -(int)step->lane : (int)step->lane;
    x.has = NULL;
    for (int i = 0; i < step->nbits; i++)
        x = tl_simt_join(&s->c, tl_simt_shifted(&s->c, x, way * (1 << i), group), x);
    Gain out = {.before = tl_simt_shifted(&s->c, x, way, group), .total = x};
    out.gains = has_lane_before(s, step);
    if (step == s->p->steps) {
        s->near[reg] = (TlSimtPartial){out.before.v, out.gains};
        s->sum[last_of_cell(s, reg)] = x;
        out.gains = constant(s, false);
    }
    if (step->total == TL_SCAN_TOTAL_ALL)
        out.total = of_the_last(s, step, x);
    return out;
}

/* ---- classes ---- */

typedef struct Classes {
    const TlScanStep *step;
    LLVMValueRef mine; /* i32: the class of the register's block */
    uint32_t reg;
} Classes;

static LLVMValueRef class_of(const Scan *s, const TlScanStep *step, uint32_t reg)
{
    TlSimt *g = s->c.g;
    uint32_t mask = (1u << step->nbits) - 1, c = coordinate_of(s, reg) >> step->bit & mask;
    LLVMValueRef x =
        LLVMBuildLShr(g->b, s->coordinate.thread, tl_simt_i32(g, (uint32_t)step->bit), "");
    x = LLVMBuildAnd(g->b, x, tl_simt_i32(g, mask), "");
    return LLVMBuildXor(g->b, x, tl_simt_i32(g, c), "");
}

static LLVMValueRef is_class(const Scan *s, const Classes *k, uint32_t class)
{
    return LLVMBuildICmp(s->c.g->b, LLVMIntEQ, k->mine, tl_simt_i32(s->c.g, class), "");
}

static Gain gain_by_classes(const Scan *s, const Classes *k, const TlSimtPartial *x,
                            uint32_t stride)
{
    TlSimt *g = s->c.g;
    uint32_t n = 1u << k->step->nbits, first = s->reverse ? n - 1 : 0;
    Gain out = {.gains = constant(s, s->none.v != NULL), .before = s->none};
    TlSimtPartial run = {NULL, NULL};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t class = s->reverse ? n - 1 - i : i;
        TlSimtPartial t = x[class * stride];
        int bits = k->step->bit + k->step->nbits;
        t.has = s->reverse ? has_block(s, k->reg, bits, class << k->step->bit) : NULL;
        if (class == first) {
            run = t;
            continue;
        }
        LLVMValueRef here = is_class(s, k, class);
        LLVMValueRef gains = run.has ? LLVMBuildAnd(g->b, here, run.has, "") : here;
        if (s->none.v)
            here = gains;
        out.before = out.before.v ? tl_simt_choose(&s->c, here, run, out.before) : run;
        out.gains = LLVMBuildOr(g->b, out.gains, gains, "");
        run = tl_simt_join(&s->c, run, t);
    }
    out.before.has = NULL;
    out.total = run;
    return out;
}

/* The parts from `first` on, n of them. */
static void scan_round(Scan *s, const TlScanStep *step, uint32_t first, uint32_t n, Gain *gain)
{
    TlSimt *g = s->c.g;
    const TlSharedSlots *slots = &step->slots;
    uint32_t together = 1u << slots->vec_bits;
    TlSimtPartial *x = TL_NEW_ARRAY(g->arena, TlSimtPartial, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] = s->total[step->parts[first + i]];
    tl_simt_write_slots(&s->c, slots, step->operand_at, first, n, x);
    tl_simt_barrier(g);
    for (uint32_t i = 0; i < n; i += together) {
        TlSimtPartial *all =
            tl_simt_read_slots(&s->c, slots, step->operand_at, i, step->nbits, NULL);
        for (uint32_t e = 0; e < together; e++) {
            uint32_t reg = step->parts[first + i + e];
            Classes k = {step, class_of(s, step, reg), reg};
            gain[reg] = gain_by_classes(s, &k, all + e, together);
        }
    }
}

static void scan_classes(Scan *s, const TlScanStep *step, Gain *gain)
{
    for (uint32_t first = 0; first < step->nparts; first += step->each) {
        uint32_t n = step->nparts - first < step->each ? step->nparts - first : step->each;
        if (first > 0 || (s->p->in_parts && s->read))
            tl_simt_barrier(s->c.g);
        scan_round(s, step, first, n, gain);
        s->read = true;
    }
}

static void scan_step(Scan *s, const TlScanStep *step, const uint32_t *next_rep)
{
    Gain *gain = TL_NEW_ARRAY(s->c.g->arena, Gain, s->p->nregs);
    if (step->by_classes)
        scan_classes(s, step, gain);
    for (uint32_t r = 0; r < s->p->nregs && !step->by_classes; r++)
        if (step->rep[real(s, r)] == real(s, r))
            gain[r] = step->by_shifts ? gain_by_shifts(s, step, r) : gain_by_bit(s, step, r);
    apply(s, step, next_rep, gain);
}

/* ---- repetitions ---- */

/* The total of all earlier repetitions, for one register number. */
static void chain(Scan *s, uint32_t reg)
{
    uint32_t n = (uint32_t)s->p->reps;
    TlSimtPartial run = {NULL, NULL};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = reg + (s->reverse ? n - 1 - i : i) * s->p->rep_unit;
        TlSimtPartial t = s->total[repetition(s, at) | s->p->rep[real(s, at)]];
        if (i > 0)
            put_before(s, at, run, constant(s, true));
        if (i + 1 < n)
            run = i == 0 ? t : tl_simt_join(&s->c, run, t);
        run.has = NULL;
    }
}

static void scan_repetitions(Scan *s)
{
    for (uint32_t r = 0; r < s->p->nregs; r++)
        if (r / s->p->rep_unit % (uint32_t)s->p->reps == 0 && s->p->cell[real(s, r)] == real(s, r))
            chain(s, r);
}

/* ---- the op ---- */

/* a in front of b, where they have values; v NULL: nothing. */
static TlSimtPartial in_front(const Scan *s, TlSimtPartial a, TlSimtPartial b)
{
    return !a.v ? b : !b.v ? a : tl_simt_join(&s->c, a, b);
}

/* What comes before each register, but of its cell; v NULL: nothing. The sum of a cell whose first
 * step was by shifts has what is near already. */
static TlSimtPartial *before_cells(const Scan *s)
{
    TlSimtPartial *before = TL_NEW_ARRAY(s->c.g->arena, TlSimtPartial, s->p->nregs);
    for (uint32_t r = 0; r < s->p->nregs; r++)
        if (s->p->cell[real(s, r)] == real(s, r)) {
            TlSimtPartial far = s->prefix[r], near;
            far = s->begins ? in_front(s, s->first, far) : far;
            near = in_front(s, far, s->near[r]);
            for (uint32_t i = 0; i < 1u << s->p->own_bits; i++)
                before[of_cell(s, r, i)] = near;
            if (s->near[r].v && !s->exclusive)
                before[last_of_cell(s, r)] = far;
        }
    return before;
}

static void define_results(Scan *s)
{
    TlSimt *g = s->c.g;
    const TlSimtPartial *all = before_cells(s);
    LLVMValueRef **to = TL_NEW_ARRAY(g->arena, LLVMValueRef *, s->c.n);
    for (uint32_t i = 0; i < s->c.n; i++)
        to[i] = tl_simt_define(g, s->op->out[i]);
    for (uint32_t r = 0; r < s->p->nregs; r++) {
        TlSimtPartial x = s->exclusive ? s->before[r] : s->sum[r];
        if (!s->exclusive)
            x.has = NULL; /* the rest is padding */
        x = in_front(s, all[r], x);
        for (uint32_t i = 0; i < s->c.n; i++)
            to[i][r] = tl_simt_narrow(&s->c, i, x.v[i]);
    }
}

static TlSimtPartial nothing(const TlSimtCombiner *c)
{
    TlCombine kind = (TlCombine)tl_attr_int(c->op, TL_ATTR_KIND, 0);
    TlSimtPartial none = {NULL, NULL};
    if (c->user || c->g->fn->ring)
        return none;
    none.v = TL_NEW_ARRAY(c->g->arena, LLVMValueRef, c->n);
    uint64_t bits = tl_combine_identity(kind, c->work[0]);
    none.v[0] = tl_gen_const(&c->g->gen, &c->types[0], bits, 1);
    return none;
}

static TlSimtPartial beginning(const TlSimtCombiner *c)
{
    TlSimtPartial first = {TL_NEW_ARRAY(c->g->arena, LLVMValueRef, c->n), NULL};
    for (uint32_t i = 0; i < c->n; i++) {
        TlValue *v = tl_in(c->op, c->n + i);
        first.v[i] = tl_gen_scalar(&c->g->gen, v);
        if (v->type->dtype != c->work[i])
            first.v[i] = tl_gen_cast(&c->g->gen, v->type->dtype, c->work[i], first.v[i],
                                     TL_ROUND_NEAREST, false);
    }
    return first;
}

void tl_simt_scan(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_SCAN, "%s is no scan", tl_op_info(op->opcode)->text);
    bool can = tl_leaf_is_of(g->options->target, TL_LEAF_SHFL_SHIFT);
    const TlScanPlan *p = tl_scan_plan(g->arena, op, can);
    Scan s = {.c = tl_simt_combiner(g, op, p->work), .p = p, .op = op};
    TlThreadMap threads = tl_images_threads(&p->x);
    for (int i = 0; i < TL_MAX_LANE_BITS; i++)
        threads.lane[i] &= (1u << p->axis_bits) - 1;
    for (int i = 0; i < TL_MAX_WARP_BITS; i++)
        threads.warp[i] &= (1u << p->axis_bits) - 1;
    s.coordinate = tl_simt_linear(g, &threads, g->lane_bits, g->warp_bits, 1);
    s.reverse = tl_attr_flag(op, TL_ATTR_REVERSE);
    s.none = nothing(&s.c);
    s.begins = op->nin > op->nout;
    s.exclusive = tl_attr_flag(op, TL_ATTR_EXCLUSIVE);
    if (s.begins)
        s.first = beginning(&s.c);
    s.before = TL_NEW_ARRAY(g->arena, TlSimtPartial, p->nregs);
    s.sum = TL_NEW_ARRAY(g->arena, TlSimtPartial, p->nregs);
    s.total = TL_NEW_ARRAY(g->arena, TlSimtPartial, p->nregs);
    s.prefix = TL_NEW_ARRAY(g->arena, TlSimtPartial, p->nregs);
    s.near = TL_NEW_ARRAY(g->arena, TlSimtPartial, p->nregs);
    scan_cells(&s);
    for (int i = 0; i < p->nsteps; i++)
        scan_step(&s, &p->steps[i], i + 1 < p->nsteps ? p->steps[i + 1].rep : p->rep);
    scan_repetitions(&s);
    define_results(&s);
}
