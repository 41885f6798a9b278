/* Is everything that a program loads and stores inside the arrays (nest_whole.c)? */
#include "codegen/cpu/cpu.h"

/* Slices and scalars of which it has been asked: stencils have many of each. */
enum { MOST_ASKED = 64 };
typedef struct Asked {
    const TlNestAccess *a;
    uint32_t axis;
} Asked;

typedef struct Asks {
    Asked asked[MOST_ASKED];
    int n;
    LLVMValueRef all; /* i1 */
} Asks;

static void add(TlCpuGen *g, Asks *s, LLVMValueRef is)
{
    s->all = s->all ? LLVMBuildAnd(g->b, s->all, is, "") : is;
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

/* 0 <= start, start + span <= extent. */
static LLVMValueRef is_slice_inside(TlCpuGen *g, LLVMValueRef start, LLVMValueRef extent,
                                    int64_t span)
{
    LLVMValueRef last = LLVMBuildSub(g->b, extent, tl_gen_int(&g->gen, span), ""),
                 fits = LLVMBuildICmp(g->b, LLVMIntSGE, last, tl_gen_int(&g->gen, 0), "");
    return LLVMBuildAnd(g->b, fits, LLVMBuildICmp(g->b, LLVMIntULE, start, last, ""), "");
}

/* Where it is tested along the lanes, a number of i32 must be so near to 0 that those a few
 * elements from it do not wrap. */
static LLVMValueRef is_start_near(TlCpuGen *g, LLVMValueRef start)
{
    LLVMValueRef from_least = LLVMBuildAdd(g->b, start, tl_gen_int(&g->gen, TL_NEST_LARGE), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, from_least,
                         tl_gen_int(&g->gen, 2 * (int64_t)TL_NEST_LARGE), "");
}

static void ask_axis(TlCpuGen *g, Asks *s, const TlCpuAccess *a, uint32_t i)
{
    const TlAxis *axis = &a->a->place.axes[i];
    int64_t width = tl_nest_axis_width(a->a, i);
    if (tl_cpu_tests_axis(g, a->a, i)) {
        add(g, s, is_start_near(g, a->start[i]));
        return;
    }
    if (axis->kind == TL_AXIS_SLICE) {
        add(g, s,
            is_slice_inside(g, a->start[i], a->view->extent[i], (width - 1) * axis->step + 1));
        return;
    }
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), all = tl_gen_int(&g->gen, width);
    add(g, s, a->bounded[i]);
    add(g, s, LLVMBuildICmp(g->b, LLVMIntEQ, a->lo[i], zero, ""));
    add(g, s, LLVMBuildICmp(g->b, LLVMIntEQ, a->hi[i], all, ""));
}

static void ask(TlCpuGen *g, Asks *s, TlOp *op)
{
    const TlCpuAccess *a = tl_cpu_prepare_access(g, op);
    for (uint32_t i = 0; i < a->a->place.naxes; i++)
        if (tl_nest_asks_axis(a->a, i) && a->a->place.axes[i].kind != TL_AXIS_SCALAR &&
            !was_asked(s, a->a, i))
            ask_axis(g, s, a, i);
    if (a->ok)
        add(g, s, a->ok);
}

LLVMValueRef tl_cpu_is_whole(TlCpuGen *g)
{
    Asks s = {.n = 0};
    TL_ASSERT(g->plan->whole, "'%s' has no code for that", g->fn->name);
    for (TlOp *op = g->fn->body->first; op; op = op->next)
        if (tl_nest_asked(g->plan, op))
            ask(g, &s, op);
    return s.all ? s.all : LLVMConstInt(g->i1, 1, 0);
}
