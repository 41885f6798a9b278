/* Lowering of reductions, after the plan of ir/plan/reduce_plan.h: own registers, butterflies over
 * lanes, classes through shared memory. */
#include "codegen/leaf/leaves.h"
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/reduce_plan.h"
#include "passes/analysis/picked.h"

typedef struct Reduction {
    TlSimtCombiner c;
    const TlReducePlan *p;
    TlOp *op;
    TlSimtPartial *partial; /* by register of the result */
} Reduction;

/* ---- own registers ---- */

/* Combines halves repeatedly, in the order of the axis, so that possible padding comes last. */
static TlSimtPartial fold(const Reduction *r, TlSimtPartial *x, uint32_t n)
{
    for (; n > 1; n = (n + 1) / 2)
        for (uint32_t i = 0; i < n / 2; i++)
            x[i] = tl_simt_join(&r->c, x[i], x[(n + 1) / 2 + i]);
    return x[0];
}

/* Sums of f32, which may take products as they are (LANGUAGE.md 5.6)? */
static bool takes_products(const Reduction *r)
{
    const TlSimt *g = r->c.g;
    return r->c.n == 1 && !r->c.user && r->c.work[0] == TL_F32 && !g->options->strict &&
           !g->fn->ring && tl_attr_int(r->op, TL_ATTR_KIND, -1) == TL_COMBINE_ADD;
}

static bool is_product(LLVMValueRef x)
{
    return LLVMIsABinaryOperator(x) && LLVMGetInstructionOpcode(x) == LLVMFMul;
}

/* Products are added by fma, in a few sums side by side: a single one would wait for itself. */
static TlSimtPartial fold_products(const Reduction *r, TlSimtPartial *x, uint32_t n)
{
    enum { SUMS = 4 };
    TlSimt *g = r->c.g;
    for (uint32_t i = SUMS; i < n; i++) {
        TlSimtPartial *sum = &x[i % SUMS];
        LLVMValueRef product = x[i].v[0];
        if (x[i].has || sum->has || !is_product(product))
            *sum = tl_simt_join(&r->c, *sum, x[i]);
        else
            sum->v[0] = tl_gen_multiply_add(&g->gen, TL_F32, LLVMGetOperand(product, 0),
                                            LLVMGetOperand(product, 1), sum->v[0]);
    }
    return fold(r, x, n < SUMS ? n : SUMS);
}

static LLVMValueRef is_in_axis(const Reduction *r, int32_t reg)
{
    TlSimt *g = r->c.g;
    LLVMValueRef x = tl_simt_coord(g, tl_in(r->op, 0)->type->layout, reg, r->p->axis);
    return LLVMBuildICmp(g->b, LLVMIntULT, x, tl_simt_i32(g, (uint32_t)r->p->extent), "");
}

/* The first coordinate at which a condition holds: a selection for each element, from the last to
 * the first, in a few runs side by side, where the least would take a comparison too. */
typedef struct First {
    LLVMValueRef *holds, *index; /* by register */
    const TlLayout *layout;
    LLVMValueRef thread; /* what all coordinates have beside a constant; NULL: they differ in it */
} First;

static LLVMValueRef common_part(const Reduction *r, const First *f, const TlReduceMember *m,
                                uint32_t n)
{
    TlSimt *g = r->c.g;
    LLVMValueRef part = tl_simt_split_coord(g, f->layout, m->reg, r->p->axis).thread;
    for (uint32_t i = 1; i < n; i++)
        if (tl_simt_split_coord(g, f->layout, m[i].reg, r->p->axis).thread != part)
            return NULL;
    return part;
}

static LLVMValueRef index_of(const Reduction *r, const First *f, int32_t reg)
{
    TlSimt *g = r->c.g;
    if (!f->thread)
        return f->index[reg];
    return tl_simt_i32(
        g, (uint32_t)tl_simt_split_coord(g, f->layout, reg, r->p->axis).constant);
}

static LLVMValueRef first_of_run(const Reduction *r, const First *f, const TlReduceMember *m,
                                 uint32_t n)
{
    TlSimt *g = r->c.g;
    LLVMValueRef x = tl_simt_i32(g, INT32_MAX);
    for (; n-- > 0;) {
        LLVMValueRef holds = f->holds[m[n].reg];
        if (m[n].guarded)
            holds = LLVMBuildAnd(g->b, holds, is_in_axis(r, m[n].reg), "");
        x = LLVMBuildSelect(g->b, holds, index_of(r, f, m[n].reg), x, "");
    }
    return x;
}

static TlSimtPartial first_where(const Reduction *r, const TlOp *chosen, const TlReduceMember *m,
                                 uint32_t n)
{
    enum { LEAST_RUN = 8, MOST_RUNS = 4 };
    TlSimt *g = r->c.g;
    uint32_t length = n / MOST_RUNS < LEAST_RUN ? LEAST_RUN : (n + MOST_RUNS - 1) / MOST_RUNS;
    First f = {tl_simt_regs(g, tl_in(chosen, 0)), tl_simt_regs(g, tl_in(chosen, 1)),
               tl_in(chosen, 1)->type->layout, NULL};
    int64_t from;
    if (tl_counts_along(tl_in(chosen, 1), r->p->axis, &from) && from == 0)
        f.thread = common_part(r, &f, m, n);
    TlSimtPartial run[MOST_RUNS];
    uint32_t nruns = 0;
    for (uint32_t at = 0; at < n; at += length) {
        run[nruns] = (TlSimtPartial){TL_NEW(g->arena, LLVMValueRef), NULL};
        run[nruns++].v[0] = first_of_run(r, &f, m + at, n - at < length ? n - at : length);
    }
    TlSimtPartial x = fold(r, run, nruns);
    if (f.thread) /* its bits are not the constants'; INT32_MAX stays */
        x.v[0] = LLVMBuildOr(g->b, x.v[0], f.thread, "");
    return x;
}

static void combine_own(Reduction *r)
{
    const TlReducePlan *p = r->p;
    const TlOp *chosen = tl_first_where(r->op);
    TlSimtPartial *x = TL_NEW_ARRAY(r->c.g->arena, TlSimtPartial, p->nregs);
    for (uint32_t k = 0; k < p->nresults; k++) {
        uint32_t n = p->first[k + 1] - p->first[k];
        if (chosen && n > 0) {
            r->partial[k] = first_where(r, chosen, &p->members[p->first[k]], n);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            const TlReduceMember *m = &p->members[p->first[k] + i];
            x[i] = tl_simt_partial(&r->c, m->reg);
            x[i].has = m->guarded ? is_in_axis(r, m->reg) : NULL;
        }
        bool products = takes_products(r) && n > 0 && is_product(x[n - 1].v[0]);
        r->partial[k] = products ? fold_products(r, x, n) : fold(r, x, n);
    }
}

/* ---- lanes ---- */

/* What all partials of a step share. */
typedef struct Step {
    const TlReduceStep *s;
    TlSimtLinear least;
    LLVMValueRef is_second;
} Step;

static uint32_t least_of(const Reduction *r, const TlReduceStep *s, uint32_t reg)
{
    uint32_t v = 0;
    for (int b = 0; b < r->p->result_bits; b++)
        v ^= reg >> b & 1 ? s->least.reg[b] : 0;
    return v;
}

static TlSimtPartial butterfly(const Reduction *r, const Step *step, uint32_t reg)
{
    TlSimt *g = r->c.g;
    const TlReduceStep *s = step->s;
    TlSimtPartial mine = r->partial[reg];
    TlSimtPartial other = tl_simt_partner(&r->c, r->partial[reg ^ s->reg], s->lane);
    mine.has = other.has = NULL;
    if (s->guarded) {
        uint32_t c = least_of(r, s, reg), limit = (uint32_t)r->p->extent;
        mine.has = tl_simt_linear_below(g, &step->least, c, limit);
        other.has = tl_simt_linear_below(g, &step->least, c ^ s->least_partner, limit);
    }
    if (!r->c.user)
        return tl_simt_join(&r->c, mine, other);
    TlSimtPartial a = tl_simt_choose(&r->c, step->is_second, other, mine);
    TlSimtPartial b = tl_simt_choose(&r->c, step->is_second, mine, other);
    TlSimtPartial both = tl_simt_join(&r->c, a, b); /* bitwise equal on both sides */
    if (other.has)
        both = tl_simt_choose(&r->c, other.has, both, mine);
    return mine.has ? tl_simt_choose(&r->c, mine.has, both, other) : both;
}

static void combine_lanes(Reduction *r, const TlReduceStep *s)
{
    TlSimt *g = r->c.g;
    Step step = {.s = s};
    if (s->guarded)
        step.least = tl_simt_linear(g, &s->least.thread, g->lane_bits, g->warp_bits, 1);
    if (r->c.user)
        step.is_second = tl_simt_bit(g, g->thread.lane, s->first_bit);
    TlSimtPartial *next = TL_NEW_ARRAY(g->arena, TlSimtPartial, r->p->nresults);
    for (uint32_t k = 0; k < r->p->nresults; k++)
        next[k] = butterfly(r, &step, k);
    r->partial = next;
}

static void combine_rows(Reduction *r)
{
    TlSimt *g = r->c.g;
    uint32_t last = (1u << g->lane_bits) - 1;
    for (uint32_t k = 0; k < r->p->nresults; k++) {
        TlSimtPartial x = r->partial[k];
        for (uint32_t n = TL_REDUCE_ROW; n < last; n *= 2)
            x = tl_simt_join(&r->c, tl_simt_before(&r->c, x, n), x);
        r->partial[k] = tl_simt_of_lane(&r->c, x, tl_simt_i32(r->c.g, last));
    }
}

/* All lanes at once, as words. */
static void combine_warp(Reduction *r, tl_leaf leaf, tl_redux how)
{
    TlSimt *g = r->c.g;
    TlDtype d = r->c.work[0], wide = tl_is_float(d) ? TL_F32 : tl_is_signed(d) ? TL_I32 : TL_U32;
    TlType word = {.kind = TL_TILE, .dtype = wide};
    for (uint32_t k = 0; k < r->p->nresults; k++) {
        LLVMValueRef x = r->partial[k].v[0], words[2];
        x = d == wide ? x : tl_gen_cast(&g->gen, d, wide, x, TL_ROUND_NEAREST, false);
        tl_simt_to_words(g, &word, x, words);
        LLVMValueRef args[2] = {words[0], tl_simt_i32(g, how)};
        words[0] = tl_simt_leaf(g, leaf, 2, args);
        x = tl_simt_from_words(g, &word, words);
        r->partial[k].v[0] =
            d == wide ? x : tl_gen_cast(&g->gen, wide, d, x, TL_ROUND_NEAREST, false);
    }
}

/* ---- classes ---- */

/* n results at once, which are adjacent, in the round of those from `first` on. */
static void combine_read(Reduction *r, uint32_t first, uint32_t k)
{
    const TlSharedSlots *s = &r->p->slots;
    uint32_t n = 1u << s->vec_bits, classes = 1u << r->p->class_bits;
    TlSimtPartial *x = TL_NEW_ARRAY(r->c.g->arena, TlSimtPartial, classes);
    TlSimtPartial *all =
        tl_simt_read_slots(&r->c, s, r->p->operand_at, k - first,
                                            r->p->class_bits, r->p->has_value);
    for (uint32_t e = 0; e < n; e++) {
        uint32_t count = 0;
        for (uint32_t c = 0; c < classes; c++)
            if (r->p->has_value[c])
                x[count++] = all[c * n + e];
        r->partial[k + e] = fold(r, x, count);
    }
}

static void combine_classes(Reduction *r)
{
    const TlReducePlan *p = r->p;
    for (uint32_t first = 0; first < p->nresults; first += p->each) {
        uint32_t n = p->nresults - first < p->each ? p->nresults - first : p->each;
        if (first > 0)
            tl_simt_barrier(r->c.g);
        tl_simt_write_slots(&r->c, &p->slots, p->operand_at, first, n, r->partial + first);
        tl_simt_barrier(r->c.g);
        for (uint32_t k = first; k < first + n; k += 1u << p->slots.vec_bits)
            combine_read(r, first, k);
    }
}

/* ---- the op ---- */

/* May a branch depend on a scalar? *budget: the uses that are looked at before that is said. */
static bool steers(const TlValue *v, int *budget)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        if (op->nregions || tl_op_info(op->opcode)->flags & F_TERM || --*budget < 0)
            return true;
        for (uint32_t i = 0; i < op->nout; i++)
            if (op->out[i]->type->rank == 0 && steers(op->out[i], budget))
                return true;
    }
    return false;
}

/* A scalar that all threads have. Where branches are the business of a scalar unit, LLVM has to see
 * that one which depends on it is the same for all lanes of a warp; or it would mask the lanes, and
 * instructions that read other lanes stood in a branch that some may have left. */
static LLVMValueRef for_all_lanes(TlSimt *g, const TlValue *v, LLVMValueRef x)
{
    int budget = 256;
    bool scalar = g->options->target->can & TL_CAN_SCALAR && steers(v, &budget);
    return scalar ? tl_simt_shuffle_idx(g, v->type, x, tl_simt_i32(g, 0)) : x;
}

static void define_results(const Reduction *r)
{
    TlSimt *g = r->c.g;
    for (uint32_t i = 0; i < r->c.n; i++) {
        const TlValue *out = r->op->out[i];
        if (out->type->rank == 0) {
            LLVMValueRef x = tl_simt_narrow(&r->c, i, r->partial[0].v[i]);
            g->scalar[out->id] = for_all_lanes(g, out, x);
            continue;
        }
        TL_ASSERT(tl_layout_registers(out->type->layout) == r->p->nresults,
                  "a reduction to %u registers", r->p->nresults);
        LLVMValueRef *regs = tl_simt_define(g, out);
        for (uint32_t k = 0; k < r->p->nresults; k++)
            regs[k] = tl_simt_narrow(&r->c, i, r->partial[k].v[i]);
    }
}

static void combine_by_steps(Reduction *r)
{
    const TlReducePlan *p = r->p;
    bool can = tl_leaf_is_of(r->c.g->options->target, TL_LEAF_SHFL_END),
         by_rows = tl_reduce_goes_by_rows(p, can);
    for (int i = 0; i < p->nsteps && !(by_rows && p->steps[i].lane >= TL_REDUCE_ROW); i++)
        combine_lanes(r, &p->steps[i]);
    if (by_rows)
        combine_rows(r);
}

void tl_simt_reduce(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_REDUCE && op->nin == op->nout, "%s is no reduction",
              tl_op_info(op->opcode)->text);
    const TlReducePlan *p = tl_reduce_plan(g->arena, op);
    Reduction r = {tl_simt_combiner(g, op, p->work), p, op, NULL};
    r.partial = TL_NEW_ARRAY(g->arena, TlSimtPartial, p->nresults);
    combine_own(&r);
    tl_redux how;
    tl_leaf redux = tl_leaf_of_reduce(g->options->target, g->fn, p, op, &how);
    if (redux != TL_LEAF_COUNT)
        combine_warp(&r, redux, how);
    else
        combine_by_steps(&r);
    if (p->class_bits)
        combine_classes(&r);
    define_results(&r);
}
