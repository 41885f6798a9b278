/* Parts of arrays that are copied with their border (nest_frame.c).
 *
 * The code for programs of which all is inside takes an array by its address and strides. Where
 * something is outside, these are those of the copy, moved back by where the part begins: index
 * (j, i) of the array is at (j - j0, i - i0) of the copy. */
#include "codegen/cpu/cpu_access.h"

static uint32_t index_of_frame(const TlCpuGen *g, const TlNestFrame *f)
{
    return (uint32_t)(f - g->plan->frames.data);
}

void tl_cpu_frame_add(TlCpuGen *g, TlCpuWhole *w, const TlNestFrame *f, uint32_t axis,
                      TlCpuRange start, int64_t span)
{
    TlCpuPart *p = &w->part[index_of_frame(g, f)];
    LLVMValueRef end = LLVMBuildAdd(g->b, start.hi, tl_gen_int(&g->gen, span), "");
    p->lo[axis] = p->lo[axis] ? tl_cpu_smaller(g, p->lo[axis], start.lo) : start.lo;
    p->end[axis] = p->end[axis] ? tl_cpu_larger(g, p->end[axis], end) : end;
}

/* i1: does the part fit in its room? Nothing of it is so far away that a sum wraps; what is the
 * nearest element has one, whose number is an i32. */
static LLVMValueRef does_fit(TlCpuGen *g, const TlNestFrame *f, const TlCpuPart *p)
{
    const TlGenView *v = g->view[f->base->id];
    LLVMValueRef all = LLVMConstInt(g->i1, 1, 0), far = tl_gen_int(&g->gen, (int64_t)1 << 40);
    for (int i = 0; i < f->rank; i++) {
        LLVMValueRef n = LLVMBuildSub(g->b, p->end[i], p->lo[i], ""),
                     from_far = LLVMBuildAdd(g->b, p->lo[i], far, ""), one = tl_gen_int(&g->gen, 1);
        LLVMValueRef is[] = {
            LLVMBuildICmp(g->b, LLVMIntULE, n, tl_gen_int(&g->gen, f->part[i]), ""),
            LLVMBuildICmp(g->b, LLVMIntULT, from_far, LLVMBuildAdd(g->b, far, far, ""), ""),
            f->clamps[i]
                ? LLVMBuildICmp(g->b, LLVMIntULT, LLVMBuildSub(g->b, v->extent[i], one, ""),
                                tl_gen_int(&g->gen, INT32_MAX), "")
                : NULL};
        for (int k = 0; k < 3; k++)
            all = tl_cpu_both(g, all, is[k]);
    }
    return all;
}

LLVMValueRef tl_cpu_may_frame(TlCpuGen *g, const TlCpuWhole *w)
{
    LLVMValueRef fit = NULL;
    for (uint32_t i = 0; i < g->plan->frames.len; i++)
        fit = tl_cpu_both(g, fit, does_fit(g, &g->plan->frames.data[i], &w->part[i]));
    LLVMValueRef may = fit ? LLVMBuildOr(g->b, w->inside, fit, "") : w->inside;
    return LLVMBuildAnd(g->b, w->rest, may, "");
}

static int64_t stride_of(const TlNestFrame *f, int axis)
{
    int64_t n = 1;
    for (int i = f->rank; --i > axis;)
        n *= f->extent[i];
    return n;
}

/* A row of the array, and which of it is read: from the element `first` on, into `to`. */
typedef struct Row {
    const TlNestFrame *f;
    TlType elem;
    LLVMValueRef from, to, first, length, extent; /* addresses; i64: of the part, of the array */
    LLVMValueRef inside;                          /* i1: it is a row; NULL: it is */
} Row;

static LLVMValueRef end_of_row(TlCpuGen *g, const Row *r, LLVMValueRef at)
{
    LLVMValueRef p = tl_gen_address(&g->gen, r->elem.dtype, r->from, at);
    return tl_gen_splat(&g->gen, LLVMBuildLoad2(g->b, tl_gen_mem_type(&g->gen, &r->elem), p, ""),
                        r->f->width);
}

static void copy_row(TlCpuGen *g, const Row *r)
{
    int w = r->f->width;
    bool clamps = r->f->clamps[r->f->rank - 1];
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), nearest[2] = {NULL};
    if (clamps) {
        nearest[0] = end_of_row(g, r, zero);
        nearest[1] = end_of_row(g, r, LLVMBuildSub(g->b, r->extent, tl_gen_int(&g->gen, 1), ""));
    }
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, zero, r->length, w, 0, NULL);
    LLVMValueRef at = LLVMBuildAdd(g->b, r->first, l.i, ""),
                 lane = LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, at, w),
                                     tl_gen_iota(&g->gen, g->i64, w), ""),
                 read =
                     LLVMBuildICmp(g->b, LLVMIntULT, lane, tl_gen_splat(&g->gen, r->extent, w), ""),
                 below = LLVMBuildICmp(g->b, LLVMIntSLT, lane, tl_gen_splat(&g->gen, zero, w), ""),
                 other = tl_gen_const(&g->gen, &r->elem, 0, w);
    if (clamps)
        other = tl_gen_from_mem(&g->gen, &r->elem,
                                LLVMBuildSelect(g->b, below, nearest[0], nearest[1], ""));
    if (r->inside)
        read = LLVMBuildAnd(g->b, read, tl_gen_splat(&g->gen, r->inside, w), "");
    LLVMValueRef p = tl_gen_address(&g->gen, r->elem.dtype, r->from, at),
                 there = tl_cpu_in_no_lane(g, read);
    p = LLVMBuildSelect(g->b, there, tl_cpu_zero_row(g), p, "");
    LLVMValueRef x = tl_cpu_masked_load(g, &r->elem, p, read, other, w, false),
                 to = tl_gen_address(&g->gen, r->elem.dtype, r->to, l.i);
    LLVMSetAlignment(LLVMBuildStore(g->b, tl_gen_to_mem(&g->gen, &r->elem, x), to),
                     (unsigned)tl_gen_elem_bytes(&r->elem));
    tl_cpu_loop_end(g, &l, NULL);
}

static void copy_part(TlCpuGen *g, const TlNestFrame *f, const TlCpuPart *p, LLVMValueRef to)
{
    const TlGenView *v = g->view[f->base->id];
    TlCpuLoop loop[TL_MAX_VIEW_RANK];
    int last = f->rank - 1;
    Row r = {.f = f,
             .elem = {.kind = TL_TILE, .dtype = f->base->type->dtype},
             .from = v->ptr,
             .to = to,
             .first = p->lo[last],
             .length = LLVMBuildSub(g->b, p->end[last], p->lo[last], ""),
             .extent = v->extent[last]};
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), from = zero;
    for (int i = 0; i < last; i++) {
        tl_cpu_loop_begin(g, &loop[i], zero, LLVMBuildSub(g->b, p->end[i], p->lo[i], ""), 1, 0,
                          NULL);
        LLVMValueRef at = LLVMBuildAdd(g->b, p->lo[i], loop[i].i, ""),
                     end = LLVMBuildSub(g->b, v->extent[i], tl_gen_int(&g->gen, 1), "");
        if (f->clamps[i])
            at = tl_cpu_smaller(g, tl_cpu_larger(g, at, zero), end);
        else
            r.inside =
                tl_cpu_both(g, r.inside, LLVMBuildICmp(g->b, LLVMIntULT, at, v->extent[i], ""));
        from = LLVMBuildAdd(g->b, from, tl_cpu_mul(g, at, v->stride[i]), "");
        r.to = tl_gen_address(&g->gen, v->dtype, r.to,
                              tl_cpu_mul(g, loop[i].i, tl_gen_int(&g->gen, stride_of(f, i))));
    }
    r.from = tl_gen_address(&g->gen, v->dtype, v->ptr, from);
    if (f->clamps[last] && r.inside) /* its ends are read */
        r.from = LLVMBuildSelect(g->b, r.inside, r.from, v->ptr, "");
    copy_row(g, &r);
    for (int i = last; i-- > 0;)
        tl_cpu_loop_end(g, &loop[i], NULL);
}

/* The view of a copy, or of the array where all is inside. */
static TlGenView *enter_frame(TlCpuGen *g, const TlNestFrame *f, const TlCpuPart *p,
                              LLVMValueRef inside)
{
    TlGenView *v = TL_NEW(g->arena, TlGenView);
    *v = *g->view[f->base->id];
    LLVMValueRef to = tl_cpu_scratch_at(g, f->offset), back = tl_gen_int(&g->gen, 0),
                 array = v->ptr;
    TlCpuFork fork = tl_cpu_fork(g, inside);
    tl_cpu_fork_else(g, &fork, array);
    copy_part(g, f, p, to);
    for (int i = 0; i < f->rank; i++) {
        LLVMValueRef stride = tl_gen_int(&g->gen, stride_of(f, i));
        back = LLVMBuildSub(g->b, back, tl_cpu_mul(g, p->lo[i], stride), "");
    }
    v->ptr = tl_cpu_fork_end(g, &fork, tl_gen_address(&g->gen, v->dtype, to, back));
    for (int i = 0; i < f->rank; i++) {
        LLVMValueRef stride = tl_gen_int(&g->gen, stride_of(f, i));
        if (v->stride[i] != stride)
            v->stride[i] = LLVMBuildSelect(g->b, inside, v->stride[i], stride, "");
    }
    return v;
}

TlGenView **tl_cpu_enter_frames(TlCpuGen *g, const TlCpuWhole *w)
{
    uint32_t n = g->plan->frames.len;
    TlGenView **views = TL_NEW_ARRAY(g->arena, TlGenView *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const TlNestFrame *f = &g->plan->frames.data[i];
        views[i] = g->view[f->base->id];
        g->view[f->base->id] = enter_frame(g, f, &w->part[i], w->inside);
    }
    return views;
}

void tl_cpu_leave_frames(TlCpuGen *g, TlGenView **views)
{
    for (uint32_t i = 0; i < g->plan->frames.len; i++)
        g->view[g->plan->frames.data[i].base->id] = views[i];
}
