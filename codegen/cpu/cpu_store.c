/* Stores and scatters: whole vectors, past the caches where the row streams, or masked. */
#include "codegen/cpu/cpu_access.h"

static LLVMValueRef store_plain(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef x)
{
    LLVMValueRef store = LLVMBuildStore(g->b, tl_gen_to_mem(&g->gen, elem, x), p);
    LLVMSetAlignment(store, (unsigned)tl_gen_elem_bytes(elem));
    return store;
}

/* Past the caches if the row streams. */
static void store_row(TlCpuGen *g, const TlCpuRow *row, const TlType *elem, LLVMValueRef p,
                      LLVMValueRef x)
{
    TlCpuFork f = tl_cpu_fork_rarely(g, row->streams), wide = {0};
    if (row->streams_wide) {
        wide = tl_cpu_fork(g, row->streams_wide);
        tl_cpu_stream_store(g, store_plain(g, elem, p, x), true);
        tl_cpu_fork_else(g, &wide, NULL);
    }
    tl_cpu_stream_store(g, store_plain(g, elem, p, x), false);
    if (row->streams_wide)
        tl_cpu_fork_end(g, &wide, NULL);
    tl_cpu_fork_else(g, &f, NULL);
    store_plain(g, elem, p, x);
    tl_cpu_fork_end(g, &f, NULL);
}

static void store_masked(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef x,
                         LLVMValueRef mask, bool apart)
{
    tl_llvm_masked(g->gen.l, g->b, apart ? TL_MASKED_SCATTER : TL_MASKED_STORE, p,
                   tl_gen_elem_bytes(elem), mask, tl_gen_to_mem(&g->gen, elem, x));
}

/* How far apart lanes are stored that vectors hold with gaps between them; 0: they are side by
 * side, or scattered. */
static int gap_of(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    const TlPlace *p = &a->a->place;
    int i = a->view && !p->pointwise ? tl_nest_steps_of(p, at->lane) : -1;
    if (i < 0 || !g->plan->m.masks || tl_dtype_bits(p->base->type->dtype) < 8 ||
        !LLVMIsAConstantInt(a->stride[i]))
        return 0;
    int64_t gap = LLVMConstIntGetSExtValue(a->stride[i]);
    return gap > 1 && gap <= TL_NEST_STRIDE ? (int)gap : 0;
}

/* Every few elements, by masked stores, which take less than a scatter. */
static void store_every(TlCpuGen *g, const TlType *elem, const TlCpuAccess *a, const TlCpuAt *at,
                        LLVMValueRef x, LLVMValueRef mask, int gap)
{
    TlCpuAt first = *at;
    first.width = 1;
    LLVMValueRef p = tl_cpu_access_address(g, a, &first);
    for (int m = 0; m < gap; m++) {
        LLVMValueRef by = tl_gen_int(&g->gen, (int64_t)m * at->width),
                     to = tl_gen_address(&g->gen, elem->dtype, p, by);
        LLVMValueRef v = tl_cpu_with_gaps(g, x, LLVMGetPoison(LLVMTypeOf(x)), gap, m),
                     k = tl_cpu_with_gaps(g, mask, LLVMConstNull(LLVMTypeOf(mask)), gap, m);
        store_masked(g, elem, to, v, k, false);
    }
}

/* One by one, in order, at equal distances. */
static void store_each(TlCpuGen *g, const TlType *elem, LLVMValueRef first, LLVMValueRef stride,
                       LLVMValueRef x)
{
    LLVMValueRef v = tl_gen_to_mem(&g->gen, elem, x), p[TL_NEST_LANES];
    int w = tl_gen_width_of(v);
    tl_cpu_stride_addresses(g, elem->dtype, first, stride, w, p);
    for (int k = 0; k < w; k++) {
        LLVMValueRef e = LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, (unsigned)k, 0), "");
        LLVMSetAlignment(LLVMBuildStore(g->b, e, p[k]), (unsigned)tl_gen_elem_bytes(elem));
    }
}

/* At a distance that only the launch knows, all inside: few elements apart; else scattered, or one
 * by one where that is faster. */
static void store_all_apart(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, TlCpuAt *at,
                            LLVMValueRef ptrs, LLVMValueRef stride, LLVMValueRef x)
{
    bool every = g->plan->m.masks && tl_dtype_bits(a->a->place.base->type->dtype) >= 8;
    LLVMValueRef all = LLVMConstAllOnes(tl_gen_vec(g->i1, at->width)),
                 first = LLVMBuildExtractElement(g->b, ptrs, LLVMConstInt(g->i32, 0, 0), "");
    TlCpuFork f[TL_CPU_MOST_APART + 1];
    for (int by = TL_CPU_LEAST_APART; every && by <= TL_CPU_MOST_APART; by++) {
        f[by] = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, by), ""));
        store_every(g, elem, a, at, x, all, by);
        tl_cpu_fork_else(g, &f[by], NULL);
    }
    if (g->m.each_store || tl_gen_elem_bytes(elem) < 4)
        store_each(g, elem, first, stride, x);
    else
        store_masked(g, elem, ptrs, x, all, true);
    for (int by = TL_CPU_MOST_APART; every && by >= TL_CPU_LEAST_APART; by--)
        tl_cpu_fork_end(g, &f[by], NULL);
}

static void store_vector(TlCpuGen *g, const TlCpuAccess *a, const TlType *type, TlCpuSpot *s,
                         TlCpuAt *at, LLVMValueRef x)
{
    TlType elem = tl_cpu_elem_of(type);
    TlNestForm form = tl_nest_form(type);
    LLVMValueRef mask = tl_cpu_lanes_inside(g, s, at->width);
    if (a->a->row) {
        tl_cpu_store_rows(g, a, &elem, s, at, x, mask);
        return;
    }
    if (at->whole && at->row->streams) {
        TL_ASSERT(!s->apart && !s->mask, "a streaming store with a mask");
        /* the row's index may come from a tile, whose elements are anywhere */
        TlCpuBranch branch = tl_cpu_branch(g, s->uniform, true, "then", "join");
        store_row(g, at->row, &elem, s->ptr, x);
        tl_cpu_join(g, branch);
        return;
    }
    if (s->apart) {
        LLVMValueRef own = tl_cpu_lane_mask(g, &form, at);
        mask = own ? LLVMBuildAnd(g->b, mask, own, "") : mask;
        int gap = gap_of(g, a, at);
        if (gap) {
            store_every(g, &elem, a, at, x, mask, gap);
            return;
        }
        LLVMValueRef first, run, stride = tl_cpu_launch_stride(a, at->lane);
        if (a->view && !stride) {
            store_masked(g, &elem, s->ptr, x, mask, true);
            return;
        }
        run = tl_cpu_pointer_run(g, &elem, s->ptr, at->width, &first);
        if (stride)
            run = LLVMBuildICmp(g->b, LLVMIntEQ, stride, tl_gen_int(&g->gen, 1), "");
        bool each = stride && mask == LLVMConstAllOnes(LLVMTypeOf(mask)) && !elem.ptr &&
                    tl_dtype_bits(elem.dtype) >= 8;
        TlCpuFork f = tl_cpu_fork(g, run);
        store_masked(g, &elem, first, x, mask, false);
        tl_cpu_fork_else(g, &f, NULL);
        if (each)
            store_all_apart(g, a, &elem, at, s->ptr, stride, x);
        else
            store_masked(g, &elem, s->ptr, x, mask, true);
        tl_cpu_fork_end(g, &f, NULL);
        return;
    }
    if (!s->full || !a->a->forks) {
        store_masked(g, &elem, s->ptr, x, mask, false);
        return;
    }
    LLVMValueRef all = s->uniform ? LLVMBuildAnd(g->b, s->full, s->uniform, "") : s->full;
    TlCpuFork f = tl_cpu_fork(g, all);
    store_plain(g, &elem, s->ptr, x);
    tl_cpu_fork_else(g, &f, NULL);
    store_masked(g, &elem, s->ptr, x, mask, false);
    tl_cpu_fork_end(g, &f, NULL);
}

static void store_one(TlCpuGen *g, TlCpuAt *at, const TlCpuAccess *a)
{
    TlValue *v = a->a->place.value;
    TlType elem = tl_cpu_elem_of(v->type);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef x = tl_cpu_eval(g, v, at);
    if (at->width > 1) {
        store_vector(g, a, v->type, &s, at, x);
        return;
    }
    LLVMValueRef ok = tl_cpu_element_ok(g, a, &s);
    TlCpuBranch branch = tl_cpu_branch(g, ok, true, "then", "join");
    store_plain(g, &elem, s.ptr, x);
    tl_cpu_join(g, branch);
}

static void store_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    (void)user;
    const TlCpuAccess *a = tl_cpu_access_of(g, at->row->nest->op);
    store_one(g, at, a);
    tl_cpu_prefetch_part(g, a, at);
}

/* Interleaved, each element where it is inside of its store. */
static void store_tested(TlCpuGen *g, const TlNestJoined *j, const TlType *elem, LLVMValueRef p,
                         TlCpuAt *at, LLVMValueRef *x)
{
    LLVMValueRef mask[TL_NEST_STRIDE];
    for (int k = 0; k < j->n; k++) {
        TlNestForm form = tl_nest_form(j->store[k]->place.value->type);
        TlCpuSpot s = tl_cpu_spot_at(g, tl_cpu_access_of(g, j->store[k]->op), at);
        mask[k] =
            tl_cpu_both(g, tl_cpu_lanes_inside(g, &s, at->width), tl_cpu_lane_mask(g, &form, at));
    }
    tl_cpu_zip(g, x, j->n, at->width);
    tl_cpu_zip(g, mask, j->n, at->width);
    for (int k = 0; k < j->n; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, (int64_t)k * at->width),
                     to = tl_gen_address(&g->gen, elem->dtype, p, by);
        store_masked(g, elem, to, x[k], mask[k], false);
    }
}

/* Elements of several stores, which together lie side by side, or are stored one by one. */
static void joined_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    (void)user;
    const TlNestJoined *j = at->row->nest->joined;
    LLVMValueRef x[TL_NEST_STRIDE];
    for (int k = 0; k < j->n; k++) /* before any is stored */
        x[k] = tl_cpu_eval(g, j->store[k]->place.value, at);
    if (j->apart || at->width == 1) {
        for (int k = 0; k < j->n; k++)
            store_one(g, at, tl_cpu_access_of(g, j->store[k]->op));
        return;
    }
    TlType elem = tl_cpu_elem_of(j->store[0]->place.value->type);
    TlCpuAt first = *at;
    first.width = 1;
    LLVMValueRef p = tl_cpu_access_address(g, tl_cpu_access_of(g, j->store[0]->op), &first);
    if (!at->whole) {
        store_tested(g, j, &elem, p, at, x);
        return;
    }
    tl_cpu_zip(g, x, j->n, at->width);
    for (int k = 0; k < j->n; k++) {
        LLVMValueRef by = tl_gen_int(&g->gen, (int64_t)k * at->width);
        LLVMValueRef to = tl_gen_address(&g->gen, elem.dtype, p, by);
        if (at->row->streams)
            store_row(g, at->row, &elem, to, x[k]);
        else
            store_plain(g, &elem, to, x[k]);
    }
}

/* i1: the product's last chunk has done the store. */
static LLVMValueRef is_stored(TlCpuGen *g, const TlNestProduct *p)
{
    LLVMValueRef flag = tl_cpu_scratch_at(g, p->stored),
                 was = LLVMBuildLoad2(g->b, g->i64, flag, "");
    LLVMBuildStore(g->b, tl_gen_int(&g->gen, 0), flag);
    return LLVMBuildICmp(g->b, LLVMIntNE, was, tl_gen_int(&g->gen, 0), "");
}

void tl_cpu_store(TlCpuGen *g, const TlNest *n)
{
    TL_ASSERT(n->kind == TL_NEST_STORE, "%s is no store", tl_op_info(n->op->opcode)->text);
    LLVMValueRef is_done = n->stored_by ? is_stored(g, n->stored_by) : NULL;
    tl_cpu_prepare_access(g, n->op);
    TlCpuBranch branch = tl_cpu_branch(g, is_done, false, "store", "stored");
    tl_cpu_nest(g, n, n->joined ? joined_body : store_body, NULL);
    tl_cpu_join(g, branch);
}

void tl_cpu_store_abreast(TlCpuGen *g)
{
    const TlNest *n = g->plan->all.data[0];
    for (int i = 0; i < g->nturns; i++) {
        tl_cpu_take_turn(g, i);
        tl_cpu_prepare_access(g, n->op);
    }
    tl_cpu_nest_abreast(g, n, store_body, NULL);
}
