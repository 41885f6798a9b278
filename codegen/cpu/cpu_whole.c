/* Is everything that a program loads and stores inside the arrays (nest_whole.c)? */
#include "codegen/cpu/cpu.h"
#include "passes/analysis/facts.h"

/* Slices and scalars of which it has been asked: stencils have many of each. */
enum { MOST_ASKED = 64 };
typedef struct Asked {
    const TlNestAccess *a;
    uint32_t axis;
} Asked;

typedef struct Asks {
    Asked asked[MOST_ASKED];
    int n;
    TlCpuRanges ranges;
    TlCpuWhole is;
    LLVMValueRef *all; /* i1: which of `is` a condition belongs to */
} Asks;

static void add(TlCpuGen *g, Asks *s, LLVMValueRef is)
{
    *s->all = *s->all ? LLVMBuildAnd(g->b, *s->all, is, "") : is;
}

/* Another one has asked the same. */
static bool was_asked(Asks *s, const TlNestAccess *a, uint32_t i)
{
    const TlPlace *p = &a->place;
    for (int k = 0; k < s->n; k++) {
        const TlPlace *q = &s->asked[k].a->place;
        uint32_t j = s->asked[k].axis;
        if (q->base == p->base && j == i && q->index[j].value == p->index[i].value &&
            q->axes[j].kind == p->axes[i].kind && q->axes[j].width == p->axes[i].width &&
            q->axes[j].step == p->axes[i].step)
            return true;
    }
    if (s->n < MOST_ASKED)
        s->asked[s->n++] = (Asked){a, i};
    return false;
}

/* 0 <= start, start + span <= extent, for all starts. */
static LLVMValueRef is_slice_inside(TlCpuGen *g, TlCpuRange start, LLVMValueRef extent,
                                    int64_t span)
{
    LLVMValueRef all = tl_gen_int(&g->gen, span);
    if (start.lo != start.hi)
        all = LLVMBuildAdd(g->b, all, LLVMBuildSub(g->b, start.hi, start.lo, ""), "");
    LLVMValueRef last = LLVMBuildSub(g->b, extent, all, ""),
                 fits = LLVMBuildICmp(g->b, LLVMIntSGE, last, tl_gen_int(&g->gen, 0), "");
    return LLVMBuildAnd(g->b, fits, LLVMBuildICmp(g->b, LLVMIntULE, start.lo, last, ""), "");
}

/* Where it is tested along the lanes, a number of i32 must be so near to 0 that those a few
 * elements from it do not wrap. */
static LLVMValueRef is_start_near(TlCpuGen *g, LLVMValueRef start)
{
    LLVMValueRef from_least = LLVMBuildAdd(g->b, start, tl_gen_int(&g->gen, TL_NEST_LARGE), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, from_least,
                         tl_gen_int(&g->gen, 2 * (int64_t)TL_NEST_LARGE), "");
}

/* i1: is a bound of an index tile inside? It is one number. */
static LLVMValueRef bound_inside(TlCpuGen *g, Asks *s, const TlValue *tile, LLVMValueRef extent,
                                 LLVMValueRef *out_bound)
{
    TlWideInt n = 0;
    *out_bound = tl_const_int_value(tile, &n) ? tl_gen_int(&g->gen, (int64_t)n)
                                              : tl_cpu_range(g, &s->ranges, tl_in(tile->def, 0)).lo;
    return LLVMBuildICmp(g->b, LLVMIntULT, *out_bound, extent, "");
}

/* Rows of elements that are further on, whose first and last ones may be outside. */
static void ask_rows(TlCpuGen *g, Asks *s, const TlNestAffine *f, TlCpuRange start,
                     LLVMValueRef extent, int64_t width)
{
    LLVMValueRef unit = tl_gen_int(&g->gen, f->unit), zero = tl_gen_int(&g->gen, 0),
                 first = tl_gen_int(&g->gen, f->behind),
                 last = tl_gen_int(&g->gen, width - 1 + f->behind);
    first = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, start.lo, unit, ""), first, "");
    last = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, start.hi, unit, ""), last, "");
    add(g, s, LLVMBuildICmp(g->b, LLVMIntSGE, first, zero, ""));
    add(g, s, LLVMBuildICmp(g->b, LLVMIntSLT, last, extent, ""));
}

/* An index tile that its bounds leave as it is, wherever it starts. */
static void ask_bounded(TlCpuGen *g, Asks *s, const TlNestAffine *f, LLVMValueRef extent,
                        int64_t width)
{
    TlCpuRange start = tl_cpu_affine_range(g, &s->ranges, f);
    if (f->unit) {
        ask_rows(g, s, f, start, extent, width);
        extent = LLVMBuildUDiv(g->b, extent, tl_gen_int(&g->gen, f->unit), "");
        width /= f->unit;
    }
    LLVMValueRef first = tl_gen_int(&g->gen, 0), last, bound,
                 end = LLVMBuildAdd(g->b, start.hi, tl_gen_int(&g->gen, width - 1), "");
    last = LLVMBuildSub(g->b, tl_cpu_affine_extent(g, f, extent), tl_gen_int(&g->gen, 1), "");
    if (f->least) {
        add(g, s, bound_inside(g, s, f->least, extent, &bound));
        first = bound;
    }
    if (f->most) {
        add(g, s, bound_inside(g, s, f->most, extent, &bound));
        last = tl_cpu_smaller(g, last, bound);
    }
    add(g, s, LLVMBuildICmp(g->b, LLVMIntSGE, start.lo, first, ""));
    add(g, s, LLVMBuildICmp(g->b, LLVMIntSLE, end, last, ""));
}

/* Where its condition belongs: what a copy may have instead is asked by itself. */
static void ask_of_frame(TlCpuGen *g, Asks *s, const TlNestAccess *a, uint32_t i)
{
    const TlNestFrame *f = tl_nest_frame_of(g->plan, a->place.base);
    bool is_row = f && a->place.axes[i].kind == TL_AXIS_SCALAR && f->clamps[i];
    s->all = f && !is_row ? &s->is.inside : &s->is.rest;
    if (!f)
        return;
    const TlNestAffine *affine = &a->axis[i].affine;
    TlCpuRange x = affine->is ? tl_cpu_affine_range(g, &s->ranges, affine)
                              : tl_cpu_range(g, &s->ranges, a->place.index[i].value);
    tl_cpu_frame_add(g, &s->is, f, i, x, tl_nest_axis_span(a, i));
}

static void ask_axis(TlCpuGen *g, Asks *s, const TlNestAccess *a, uint32_t i)
{
    const TlAxis *axis = &a->place.axes[i];
    const TlNestAffine *f = &a->axis[i].affine;
    int64_t width = axis->kind == TL_AXIS_SCALAR ? 1 : tl_nest_axis_width(a, i);
    LLVMValueRef extent = tl_gen_view(&g->gen, a->place.base)->extent[i];
    if (axis->kind == TL_AXIS_TILE) {
        ask_bounded(g, s, f, extent, width);
        return;
    }
    if (a->axis[i].fits) {
        add(g, s, LLVMBuildICmp(g->b, LLVMIntSGT, extent, tl_gen_int(&g->gen, 0), ""));
        return;
    }
    TlCpuRange start = f->is ? tl_cpu_affine_range(g, &s->ranges, f)
                             : tl_cpu_range(g, &s->ranges, a->place.index[i].value);
    if (tl_cpu_tests_axis(g, a, i)) {
        add(g, s, is_start_near(g, start.lo));
        return;
    }
    extent = tl_cpu_affine_extent(g, f, extent);
    add(g, s, is_slice_inside(g, start, extent, (width - 1) * axis->step + 1));
}

/* A pattern begins where the access does, which is before any loop. */
static void ask_pattern(TlCpuGen *g, Asks *s, const TlCpuAccess *a, uint32_t i)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0),
                 all = tl_gen_int(&g->gen, tl_nest_axis_width(a->a, i));
    add(g, s, a->bounded[i]);
    add(g, s, LLVMBuildICmp(g->b, LLVMIntEQ, a->lo[i], zero, ""));
    add(g, s, LLVMBuildICmp(g->b, LLVMIntEQ, a->hi[i], all, ""));
}

/* Outside of loops, where it lies is computed here, once for both codes. */
static void ask(TlCpuGen *g, Asks *s, TlOp *op)
{
    const TlNestAccess *a = tl_nest_asked(g->plan, op);
    const TlCpuAccess *here = NULL;
    if (a && op->block == g->plan->asked_in)
        here = tl_cpu_prepare_access(g, op);
    for (uint32_t i = 0; a && i < a->place.naxes; i++) {
        if (!tl_nest_asks_axis(a, i) || was_asked(s, a, i))
            continue;
        ask_of_frame(g, s, a, i);
        if (a->axis[i].affine.period)
            ask_pattern(g, s, here, i);
        else
            ask_axis(g, s, a, i);
    }
}

TlCpuWhole tl_cpu_ask_whole(TlCpuGen *g)
{
    Asks s = {.n = 0, .ranges.seen = {.arena = g->arena}};
    TL_ASSERT(g->plan->whole, "'%s' has no code for that", g->fn->name);
    s.is.part = TL_NEW_ARRAY(g->arena, TlCpuPart, g->plan->frames.len + 1);
    const TlBlock *all = g->plan->asked_in;
    for (TlOp *op = all->first; op; op = tl_walk_next(op, all->parent))
        ask(g, &s, op);
    s.all = &s.is.rest;
    if (s.ranges.hold)
        add(g, &s, s.ranges.hold);
    LLVMValueRef always = LLVMConstInt(g->i1, 1, 0);
    s.is.rest = s.is.rest ? s.is.rest : always;
    s.is.inside = s.is.inside ? s.is.inside : always;
    return s.is;
}

LLVMValueRef tl_cpu_is_whole(TlCpuGen *g)
{
    TlCpuWhole is = tl_cpu_ask_whole(g);
    return LLVMBuildAnd(g->b, is.rest, is.inside, "");
}
