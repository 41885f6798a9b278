/* Reductions and scans on the CPU.
 *
 * Along the lane dimension a reduction keeps a vector of partial results for each of a few rows, or
 * several for each of fewer, takes whole vectors, then one last vector whose lanes past the extent
 * keep what they had (padding is left out by structure), and folds the lanes in halves. Partial
 * results begin with the first vector or, where that may need a mask or there are several, with the
 * operation's identity if it has one. Along another dimension the lanes are independent. A combiner
 * with control flow runs on scalars. */
#include "codegen/cpu/cpu.h"
#include "passes/analysis/picked.h"

#include <string.h>

enum { MAX_TUPLE = 64 };

typedef struct Reduction {
    TlOp *op;
    int axis;
    uint32_t n;
    TlCombine kind;
    bool reverse;
    TlValue *fill; /* a value whose home is filled in the same nest, or NULL */
    TlCpuInside inside;
    LLVMValueRef end; /* along lanes: no tests before it; NULL: there is nothing to test */
    LLVMValueRef equal; /* along lanes: from here on all elements are equal; NULL: not known */
} Reduction;

/* Rows that are reduced together, so that what does not depend on the row is computed once. Of few
 * rows each has several partial results, which take vectors in turn, so that none waits for the one
 * before it. */
enum { MAX_ROWS = 4 };
typedef struct Rows {
    uint32_t n, parts; /* parts of a row: 1, 2, 4 */
    int dim; /* in which they differ; -1: there is one row */
    TlCpuAt at[MAX_ROWS];
} Rows;

static Reduction reduction_of(TlOp *op)
{
    TL_ASSERT(op->nin > 0 && op->nin == op->nout,
              "%s of %u values gives %u", tl_op_info(op->opcode)->text, op->nin, op->nout);
    Reduction r = {.op = op,
                   .axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0),
                   .n = op->nin,
                   .kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0),
                   .reverse = tl_attr_flag(op, TL_ATTR_REVERSE)};
    TL_ASSERT(r.n <= MAX_TUPLE, "reduction of %u values", r.n);
    return r;
}

/* ---- the combiner ---- */

static bool is_straight(const TlCpuGen *g, const TlBlock *b)
{
    for (const TlOp *op = b->first; op; op = op->next) {
        if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_YIELD)
            continue;
        if (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->opcode == TL_OP_PTR_ADD ||
            tl_gen_op_is_scalar_only(&g->gen, op))
            return false;
    }
    return true;
}

static bool is_local(const TlValue *v, const TlBlock *b)
{
    return v->def ? v->def->block == b : v->block == b;
}

static void combine_lanes(TlCpuGen *g, const TlBlock *b, int width, LLVMValueRef *out)
{
    TL_ASSERT(width > 0 && b->nargs % 2 == 0, "a combiner of %u values", b->nargs);
    for (TlOp *op = b->first; op->opcode != TL_OP_YIELD; op = op->next) {
        TlValue *v = op->out[0];
        if (op->opcode == TL_OP_CONST) {
            g->scalar[v->id] =
                tl_gen_const(&g->gen, v->type, tl_attr(op, TL_ATTR_VALUE)->u.bits, width);
            continue;
        }
        LLVMValueRef in[3];
        for (uint32_t i = 0; i < op->nin; i++) {
            TlValue *x = tl_in(op, i);
            in[i] = is_local(x, b) ? g->scalar[x->id]
                                   : tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, x), width);
        }
        g->scalar[v->id] = tl_gen_elementwise(&g->gen, op, in);
    }
    for (uint32_t i = 0; i < b->last->nin; i++) {
        TlValue *x = tl_in(b->last, i);
        out[i] = is_local(x, b) ? g->scalar[x->id]
                                : tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, x), width);
    }
}

/* The extreme of a, what was combined so far, and b; NaN loses. x86 has no such instruction, and
 * LLVM would ask whether a is NaN, for which the next vector waits; asked about b, it is one masked
 * instruction after the answer. */
static LLVMValueRef extreme_so_far(TlCpuGen *g, bool max, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef is_a = LLVMBuildFCmp(g->b, max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
    LLVMValueRef better = LLVMBuildSelect(g->b, is_a, a, b, "");
    return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, LLVMRealORD, b, b, ""), better, a, "");
}

/* out = a combined with b; out may be a */
static void combine(TlCpuGen *g, const Reduction *r, LLVMValueRef *a, LLVMValueRef *b,
                    LLVMValueRef *out)
{
    TlDtype d = tl_in(r->op, 0)->type->dtype;
    bool is_extreme = r->kind == TL_COMBINE_MAX || r->kind == TL_COMBINE_MIN;
    if (is_extreme && d == TL_F32 && !g->fn->ring && g->m.masks) {
        out[0] = extreme_so_far(g, r->kind == TL_COMBINE_MAX, a[0], b[0]);
        return;
    }
    if (r->kind != TL_COMBINE_USER) {
        out[0] = tl_gen_combine(&g->gen, r->kind, tl_in(r->op, 0)->type->dtype, a[0], b[0]);
        return;
    }
    TlBlock *body = r->op->regions[0];
    for (uint32_t i = 0; i < r->n; i++) {
        g->scalar[body->args[i]->id] = a[i];
        g->scalar[body->args[r->n + i]->id] = b[i];
    }
    if (is_straight(g, body)) {
        combine_lanes(g, body, tl_gen_width_of(a[0]), out);
        return;
    }
    tl_cpu_lower_block(g, body);
    for (uint32_t i = 0; i < r->n; i++)
        out[i] = tl_gen_scalar(&g->gen, tl_in(body->last, i));
}

static void eval_all(TlCpuGen *g, const Reduction *r, const TlCpuAt *at, LLVMValueRef *out)
{
    TlCpuAt fresh = *at;
    tl_map_init(&fresh.memo, g->arena);
    if (r->fill) {
        TlNestForm f = tl_nest_form(r->fill->type);
        LLVMValueRef x = tl_cpu_eval_op(g, r->fill, &fresh);
        tl_cpu_home_store(g, r->fill->type, tl_cpu_home_ptr(g, g->plan->place[r->fill->id].buffer),
                          &f, &fresh, x);
        tl_map_put(&fresh.memo, r->fill->id, (uint64_t)(uintptr_t)x);
    }
    for (uint32_t i = 0; i < r->n; i++)
        out[i] = tl_cpu_eval(g, tl_in(r->op, i), &fresh);
}

static int sources_width(TlCpuGen *g, const Reduction *r, int limit)
{
    if (r->kind == TL_COMBINE_USER && !is_straight(g, r->op->regions[0]))
        return 1;
    for (uint32_t i = 0; i < r->n; i++)
        limit = tl_cpu_chain_width(g, tl_in(r->op, i), limit);
    return limit;
}

/* ---- one row along the lane dimension ----
 * From where nothing is inside all elements are equal: where another vector of them would change
 * nothing the row is at its end. */

static LLVMValueRef half(TlCpuGen *g, LLVMValueRef x, int from, int n)
{
    TL_ASSERT(from >= 0 && n > 0, "%d lanes from %d", n, from);
    LLVMValueRef mask[64];
    if (n == 1)
        return LLVMBuildExtractElement(g->b, x, LLVMConstInt(g->i32, (unsigned)from, 0), "");
    for (int i = 0; i < n; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)(from + i), 0);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(mask, (unsigned)n), "");
}

/* Combines lanes until `to` are left of `width`. */
static void fold_lanes(TlCpuGen *g, const Reduction *r, LLVMValueRef *acc, int width, int to)
{
    TL_ASSERT((width & (width - 1)) == 0 && to >= 1, "%d lanes, then %d", width, to);
    for (int w = width / 2; w >= to; w /= 2) {
        LLVMValueRef a[MAX_TUPLE], b[MAX_TUPLE];
        for (uint32_t i = 0; i < r->n; i++) {
            a[i] = half(g, acc[i], 0, w);
            b[i] = half(g, acc[i], w, w);
        }
        combine(g, r, a, b, acc);
    }
}

static bool has_identity(const TlCpuGen *g, const Reduction *r)
{
    return r->kind != TL_COMBINE_USER && !g->fn->ring;
}

static LLVMValueRef identity(TlCpuGen *g, const Reduction *r, int width)
{
    const TlType *t = tl_in(r->op, 0)->type;
    return tl_gen_const(&g->gen, t, tl_combine_identity(r->kind, t->dtype), width);
}

/* Lets LLVM fuse a sum and the product that it adds, where the CPU has an instruction for both. */
static void fuse(const TlCpuGen *g, const Reduction *r, LLVMValueRef product, LLVMValueRef sum)
{
    if (r->kind != TL_COMBINE_ADD || g->options->strict || g->fn->ring ||
        !LLVMIsAInstruction(product) || LLVMGetInstructionOpcode(product) != LLVMFMul ||
        !LLVMIsAInstruction(sum) || LLVMGetInstructionOpcode(sum) != LLVMFAdd)
        return;
    LLVMSetFastMathFlags(product, LLVMFastMathAllowContract);
    LLVMSetFastMathFlags(sum, LLVMFastMathAllowContract);
}

/* Would the vector x change nothing, once it has been combined with what was there? */
static LLVMValueRef changes_nothing(TlCpuGen *g, const Reduction *r, LLVMValueRef x)
{
    LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
    if (tl_combine_again(r->kind) != TL_AGAIN_NOTHING_IF_0)
        return LLVMConstInt(g->i1, tl_combine_again(r->kind) == TL_AGAIN_NOTHING, 0);
    LLVMValueRef none = tl_is_float(tl_in(r->op, 0)->type->dtype)
                            ? LLVMBuildFCmp(g->b, LLVMRealOEQ, x, zero, "")
                            : LLVMBuildICmp(g->b, LLVMIntEQ, x, zero, "");
    LLVMTypeRef mask = LLVMIntTypeInContext(g->c, (unsigned)tl_gen_width_of(x));
    none = LLVMBuildBitCast(g->b, none, mask, "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, none, LLVMConstAllOnes(mask), "");
}

/* Combines acc with the vectors from .. to - 1 of each row. whole: these are all, or most. */
static void reduce_vectors(TlCpuGen *g, const Reduction *r, Rows *rows, bool whole,
                           LLVMValueRef from, LLVMValueRef to, LLVMValueRef *acc)
{
    TlCpuRange l;
    LLVMValueRef x[MAX_TUPLE], next[TL_CPU_CARRY];
    uint32_t sums = rows->n * rows->parts;
    tl_cpu_range_begin(g, &l, from, to, r->n * sums, acc);
    LLVMValueRef done = NULL;
    if (!whole)
        tl_cpu_range_is_short(g, &l);
    if (!whole && r->equal)
        done = LLVMBuildICmp(g->b, LLVMIntSGE, l.i, r->equal, "");
    for (uint32_t k = 0; k < sums; k++) {
        TlCpuAt *at = &rows->at[k / rows->parts];
        int64_t first = (int64_t)(k % rows->parts) * at->width;
        at->idx[r->axis] = LLVMBuildAdd(g->b, l.i, tl_gen_int(&g->gen, first), "");
        if (whole)
            tl_cpu_prefetch_streams(g, &r->inside, first, r->inside.nvalues);
        eval_all(g, r, at, x);
        combine(g, r, l.carry + k * r->n, x, next + k * r->n);
        fuse(g, r, x[0], next[k * r->n]);
        if (done)
            done = LLVMBuildAnd(g->b, done, changes_nothing(g, r, x[0]), "");
        if (whole)
            tl_cpu_prefetch(g, tl_in(r->op, 0)->type, at, NULL, r->inside.nvalues);
    }
    tl_cpu_prefetch_now(g, &r->inside);
    LLVMValueRef step = tl_gen_int(&g->gen, rows->at[0].width * (int64_t)rows->parts);
    if (done)
        step = LLVMBuildSelect(g->b, done, to, step, "");
    tl_cpu_range_end_by(g, &l, step, next);
    for (uint32_t i = 0; i < r->n * sums; i++)
        acc[i] = l.carry[i];
}

/* From here on there is one partial result for each row. */
static void join_parts(TlCpuGen *g, const Reduction *r, Rows *rows, LLVMValueRef *acc)
{
    for (; rows->parts > 1; rows->parts /= 2)
        for (uint32_t k = 0; k < rows->n * rows->parts / 2; k++)
            combine(g, r, &acc[2 * k], &acc[2 * k + 1], &acc[k]);
}

/* The vectors that are inside as a whole; what is tested after them has fewer lanes, if acc began
 * with identities. Returns where the next vectors begin. */
static LLVMValueRef reduce_inside(TlCpuGen *g, Reduction *r, Rows *rows, int64_t begin,
                                  LLVMValueRef *acc)
{
    int width = rows->at[0].width, tested = tl_cpu_tested_width(g, width);
    LLVMValueRef from = tl_gen_int(&g->gen, begin);
    tl_cpu_inside_set(&r->inside, true);
    reduce_vectors(g, r, rows, true, from, r->end, acc);
    tl_cpu_inside_set(&r->inside, false);
    join_parts(g, r, rows, acc);
    if (begin)
        return tl_gen_pick(&g->gen, LLVMIntSGT, r->end, from, r->end, from);
    for (uint32_t k = 0; k < rows->n; k++) {
        fold_lanes(g, r, acc + k * r->n, width, tested);
        rows->at[k].width = tested;
    }
    return r->end;
}

/* The vector in which the rows of n elements end. In lanes past the end, acc does not change. */
static void reduce_last(TlCpuGen *g, Reduction *r, Rows *rows, int64_t begin, int64_t n,
                        LLVMValueRef *acc)
{
    int width = rows->at[0].width;
    LLVMValueRef x[MAX_TUPLE], joined[MAX_TUPLE], lanes[64];
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(g->i1, begin + i < n, 0);
    LLVMValueRef inside = LLVMConstVector(lanes, (unsigned)width);
    for (uint32_t k = 0; k < rows->n; k++, acc += r->n) {
        rows->at[k].idx[r->axis] = tl_gen_int(&g->gen, begin);
        eval_all(g, r, &rows->at[k], x);
        combine(g, r, acc, x, joined);
        for (uint32_t i = 0; i < r->n; i++)
            acc[i] = LLVMBuildSelect(g->b, inside, joined[i], acc[i], "");
    }
}

static void reduce_rows(TlCpuGen *g, Reduction *r, Rows *rows, int64_t n, LLVMValueRef *acc)
{
    int width = rows->at[0].width;
    TL_ASSERT(n > 0 && width > 0, "a row of %lld elements", (long long)n);
    int64_t begin = 0;
    for (uint32_t k = 0; k < rows->n; k++) {
        if ((r->end || rows->parts > 1) && has_identity(g, r)) {
            for (uint32_t i = 0; i < rows->parts; i++)
                acc[k * rows->parts + i] = identity(g, r, width);
            continue;
        }
        begin = width;
        rows->at[k].idx[r->axis] = tl_gen_int(&g->gen, 0);
        eval_all(g, r, &rows->at[k], acc + k * r->n);
    }
    LLVMValueRef from = tl_gen_int(&g->gen, begin);
    if (r->end && n / width * width > begin)
        from = reduce_inside(g, r, rows, begin, acc);
    width = rows->at[0].width;
    int64_t whole = n / width * width;
    if (whole > begin)
        reduce_vectors(g, r, rows, !r->end, from, tl_gen_int(&g->gen, whole), acc);
    join_parts(g, r, rows, acc);
    if (whole < n)
        reduce_last(g, r, rows, whole, n, acc);
    for (uint32_t k = 0; k < rows->n; k++)
        fold_lanes(g, r, acc + k * r->n, width, 1);
}

/* Along a dimension other than the lanes': each lane is a reduction of its own. */
static void reduce_across(TlCpuGen *g, const Reduction *r, TlCpuAt *at, int64_t n,
                          LLVMValueRef *acc)
{
    TL_ASSERT(n > 0, "%lld elements", (long long)n);
    at->idx[r->axis] = tl_gen_int(&g->gen, 0);
    eval_all(g, r, at, acc);
    if (n == 1)
        return;
    TlCpuLoop l = tl_cpu_loop_begin(g, 1, n, 1);
    LLVMValueRef x[MAX_TUPLE], carried[MAX_TUPLE];
    for (uint32_t i = 0; i < r->n; i++)
        carried[i] = l.single ? acc[i] : tl_cpu_loop_carry(g, &l, acc[i]);
    at->idx[r->axis] = l.iv;
    eval_all(g, r, at, x);
    combine(g, r, carried, x, acc);
    tl_cpu_loop_end(g, &l, acc);
}

static void store_results(TlCpuGen *g, const Reduction *r, const TlCpuAt *at, int width,
                          LLVMValueRef *acc)
{
    for (uint32_t i = 0; i < r->n; i++) {
        TlValue *out = r->op->out[i];
        if (out->type->rank == 0) {
            g->scalar[out->id] = acc[i];
            continue;
        }
        TlNestForm f = tl_nest_form(out->type);
        TlCpuAt to;
        tl_cpu_at_init(g, &to, f.rank, at->lane > r->axis ? at->lane - 1 : at->lane, width);
        for (int d = 0, k = 0; d < at->rank; d++)
            if (d != r->axis)
                to.idx[k++] = at->idx[d];
        tl_cpu_home_store(g, out->type, tl_cpu_home_ptr(g, g->plan->place[out->id].buffer), &f, &to,
                          acc[i]);
    }
}

static void find_inside(TlCpuGen *g, Reduction *r)
{
    tl_cpu_inside_begin(g, &r->inside);
    if (r->fill)
        tl_cpu_inside_value(g, &r->inside, r->fill, r->axis, true);
    for (uint32_t i = 0; i < r->n; i++)
        tl_cpu_inside_value(g, &r->inside, tl_in(r->op, i), r->axis, false);
}

/* step: positions that the loop where all is inside takes at a time */
static void find_end(TlCpuGen *g, Reduction *r, int step)
{
    r->end = tl_cpu_inside_end(g, &r->inside, tl_in(r->op, 0)->type->shape[r->axis], step);
    bool once = tl_combine_again(r->kind) != TL_AGAIN_MUCH && !g->fn->ring;
    if (r->end && once && !r->fill && !r->inside.differs)
        r->equal = r->inside.outside;
}

/* As many rows as leave enough registers for computing their elements, and parts of them that need
 * no more. A row of a few steps has one part, as what is left after the last step is tested. */
static void choose_rows(TlCpuGen *g, const Reduction *r, const TlNestForm *f, int width, Rows *rows)
{
    enum { FEW_VALUES = 6, SOME_VALUES = 16, MANY_VALUES = 40, FEW_STEPS = 8 };
    *rows = (Rows){.n = 1, .parts = 1, .dim = r->axis - 1};
    while (rows->dim >= 0 && f->extent[rows->dim] == 1)
        rows->dim--;
    if (r->n > 1 || g->options->check)
        return;
    uint32_t values = r->inside.nvalues;
    uint32_t most = values <= FEW_VALUES ? MAX_ROWS : values <= MANY_VALUES ? MAX_ROWS / 2 : 1;
    while (rows->dim >= 0 && values <= SOME_VALUES && rows->n < most &&
           2 * rows->n <= f->extent[rows->dim])
        rows->n *= 2;
    int64_t n = f->extent[r->axis], step = 2 * width;
    while (has_identity(g, r) && rows->n * rows->parts < most && n % step == 0 &&
           n / step >= FEW_STEPS) {
        rows->parts *= 2;
        step *= 2;
    }
}

/* Reduces along the lane dimension, several rows at a time. If their number is no multiple of that,
 * the last group overlaps the one before it, and some rows are reduced twice. */
static void reduce_along(TlCpuGen *g, Reduction *r, const TlNestForm *f, TlCpuAt *at)
{
    Rows rows;
    LLVMValueRef acc[TL_CPU_CARRY];
    find_inside(g, r);
    choose_rows(g, r, f, at->width, &rows);
    find_end(g, r, at->width * (int)rows.parts);
    if (!r->end && r->inside.accesses.len) {
        at->width = tl_cpu_tested_width(g, at->width);
        rows.parts = 1;
    }
    TlCpuLoops loops = {.skip = r->axis, .dim = rows.dim, .step = rows.n};
    tl_cpu_loops_begin(g, &loops, f, at);
    for (uint32_t k = 0; k < rows.n; k++) {
        rows.at[k] = *at;
        if (k)
            rows.at[k].idx[rows.dim] =
                LLVMBuildAdd(g->b, at->idx[rows.dim], tl_gen_int(&g->gen, k), "");
    }
    reduce_rows(g, r, &rows, f->extent[r->axis], acc);
    for (uint32_t k = 0; k < rows.n; k++)
        store_results(g, r, &rows.at[k], 1, acc + k * r->n);
    tl_cpu_loops_end(g, &loops);
    tl_cpu_prefetch_note(g, &r->inside);
}

static void lower_reduction(TlCpuGen *g, Reduction r)
{
    const TlType *type = tl_in(r.op, 0)->type;
    TlNestForm f = tl_nest_form(type);
    bool along = r.axis == f.lane;
    int limit = r.fill ? tl_cpu_define_width(g, r.fill, 64) : 64;
    int width = tl_nest_fit_width(f.padded[f.lane], sources_width(g, &r, limit));
    if (along)
        while (width > f.extent[f.lane])
            width /= 2;
    TlCpuAt at;
    tl_cpu_at_init(g, &at, f.rank, f.lane, width);
    if (along && width > 1) {
        reduce_along(g, &r, &f, &at);
        return;
    }
    TlCpuLoops loops = {.skip = r.axis, .dim = -1};
    tl_cpu_loops_begin(g, &loops, &f, &at);
    LLVMValueRef acc[MAX_TUPLE];
    reduce_across(g, &r, &at, f.extent[r.axis], acc);
    store_results(g, &r, &at, along ? 1 : width, acc);
    tl_cpu_loops_end(g, &loops);
}

/* ---- one element along an axis ---- */

typedef struct Picked {
    TlValue *from, *out;
    int axis;
    int64_t at;
} Picked;

static LLVMValueRef eval_picked(TlCpuGen *g, const Picked *p, const TlCpuAt *at)
{
    TlCpuAt sub;
    int lane = at->lane + (p->axis <= at->lane);
    tl_cpu_at_init(g, &sub, p->from->type->rank, at->rank ? lane : p->axis, at->width);
    for (int d = 0; d < sub.rank; d++)
        sub.idx[d] = d == p->axis ? tl_gen_int(&g->gen, p->at) : at->idx[d - (d > p->axis)];
    return tl_cpu_eval(g, p->from, &sub);
}

static void store_picked(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Picked *p = user;
    TlNestForm f = tl_nest_form(p->out->type);
    tl_cpu_home_store(g, p->out->type, tl_cpu_home_ptr(g, g->plan->place[p->out->id].buffer), &f,
                      at, eval_picked(g, p, at));
}

static void lower_picked(TlCpuGen *g, Picked *p)
{
    const TlType *type = p->out->type;
    if (type->rank == 0) {
        TlCpuAt at;
        tl_cpu_at_init(g, &at, 0, 0, 1);
        g->scalar[p->out->id] = eval_picked(g, p, &at);
        return;
    }
    TlNestForm f = tl_nest_form(type);
    int limit = g->m.vector_bytes / (int)tl_gen_elem_bytes(type);
    int width = tl_nest_fit_width(f.padded[f.lane], tl_cpu_chain_width(g, p->from, limit));
    tl_cpu_nest(g, type, width, store_picked, p);
}

void tl_cpu_lower_reduce(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_REDUCE, "%s is no reduction", tl_op_info(op->opcode)->text);
    Picked p = {.out = op->out[0], .axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0)};
    p.from = tl_picked_from(op, &p.at);
    if (p.from) {
        lower_picked(g, &p);
        return;
    }
    if (!tl_map_get(&g->plan->fused, (uint64_t)(uintptr_t)op, NULL)) /* else it is done already */
        lower_reduction(g, reduction_of(op));
}

void tl_cpu_define_and_reduce(TlCpuGen *g, TlValue *v, TlOp *reduce)
{
    TL_ASSERT(reduce->opcode == TL_OP_REDUCE,
              "%s is no reduction", tl_op_info(reduce->opcode)->text);
    Reduction r = reduction_of(reduce);
    r.fill = v;
    lower_reduction(g, r);
}

/* ---- scans ----
 * Across the lanes they go element after element. Along them they go vector after vector: log2 of
 * the width steps make the scan of a vector, each of which combines every lane with one further
 * back; then what comes before the vector is combined with all lanes. */

static void store_scan(TlCpuGen *g, const Reduction *r, TlCpuAt *at, LLVMValueRef *acc)
{
    for (uint32_t i = 0; i < r->n; i++) {
        TlValue *out = r->op->out[i];
        TlNestForm f = tl_nest_form(out->type);
        tl_cpu_home_store(g, out->type, tl_cpu_home_ptr(g, g->plan->place[out->id].buffer), &f, at,
                          acc[i]);
    }
}

/* Scans the lanes of a vector: each step combines a lane with the one `back` lanes before it. */
static void scan_lanes(TlCpuGen *g, const Reduction *r, int width, LLVMValueRef *x)
{
    for (int back = 1; back < width; back *= 2) {
        LLVMValueRef from[64], reached[64], before[MAX_TUPLE], joined[MAX_TUPLE];
        for (int i = 0; i < width; i++) {
            int at = r->reverse ? i + back : i - back;
            bool has = at >= 0 && at < width;
            from[i] = LLVMConstInt(g->i32, (unsigned)(has ? at : i), 0);
            reached[i] = LLVMConstInt(g->i1, has, 0);
        }
        LLVMValueRef lanes = LLVMConstVector(from, (unsigned)width),
                     has = LLVMConstVector(reached, (unsigned)width);
        for (uint32_t i = 0; i < r->n; i++)
            before[i] =
                LLVMBuildShuffleVector(g->b, x[i], LLVMGetPoison(LLVMTypeOf(x[i])), lanes, "");
        combine(g, r, before, x, joined);
        for (uint32_t i = 0; i < r->n; i++)
            x[i] = LLVMBuildSelect(g->b, has, joined[i], x[i], "");
    }
}

/* Scans the vector at the position. carry: the combination of all before it, updated for the next;
 * not read if this is the first vector. */
static void scan_vector(TlCpuGen *g, const Reduction *r, TlCpuAt *at, bool first,
                        LLVMValueRef *carry)
{
    LLVMValueRef x[MAX_TUPLE], spread[MAX_TUPLE], last[MAX_TUPLE];
    int width = at->width;
    eval_all(g, r, at, x);
    scan_lanes(g, r, width, x);
    for (uint32_t i = 0; i < r->n; i++)
        last[i] = half(g, x[i], r->reverse ? 0 : width - 1, 1);
    if (!first) {
        for (uint32_t i = 0; i < r->n; i++)
            spread[i] = tl_gen_splat(&g->gen, carry[i], width);
        combine(g, r, spread, x, x);
        combine(g, r, carry, last, last);
    }
    store_scan(g, r, at, x);
    memcpy(carry, last, r->n * sizeof *last);
}

/* The vectors from .. to - 1, which do not include the first. */
static void scan_vectors(TlCpuGen *g, const Reduction *r, TlCpuAt *at, int64_t n, LLVMValueRef from,
                         LLVMValueRef to, LLVMValueRef *carry)
{
    TlCpuRange l;
    LLVMValueRef next[MAX_TUPLE], last = tl_gen_int(&g->gen, n - at->width);
    tl_cpu_range_begin(g, &l, from, to, r->n, carry);
    at->idx[r->axis] = r->reverse ? LLVMBuildSub(g->b, last, l.i, "") : l.i;
    memcpy(next, l.carry, r->n * sizeof *next);
    scan_vector(g, r, at, false, next);
    tl_cpu_range_end(g, &l, at->width, next);
    memcpy(carry, l.carry, r->n * sizeof *carry);
}

/* n: the extent with its padding, which comes after the last element. */
static void scan_along(TlCpuGen *g, Reduction *r, TlCpuAt *at, int64_t n)
{
    LLVMValueRef carry[MAX_TUPLE], from = tl_gen_int(&g->gen, at->width),
                                   to = tl_gen_int(&g->gen, n);
    at->idx[r->axis] = tl_gen_int(&g->gen, r->reverse ? n - at->width : 0);
    scan_vector(g, r, at, true, carry);
    if (n == at->width)
        return;
    if (r->end && !r->reverse) {
        tl_cpu_inside_set(&r->inside, true);
        scan_vectors(g, r, at, n, from, r->end, carry);
        tl_cpu_inside_set(&r->inside, false);
        from = tl_gen_pick(&g->gen, LLVMIntSGT, r->end, from, r->end, from);
    }
    scan_vectors(g, r, at, n, from, to, carry);
}

static void scan_across(TlCpuGen *g, const Reduction *r, TlCpuAt *at, int64_t n)
{
    LLVMValueRef acc[MAX_TUPLE], x[MAX_TUPLE], carried[MAX_TUPLE];
    at->idx[r->axis] = tl_gen_int(&g->gen, r->reverse ? n - 1 : 0);
    eval_all(g, r, at, acc);
    store_scan(g, r, at, acc);
    if (n == 1)
        return;
    TlCpuLoop l = tl_cpu_loop_begin(g, 1, n, 1);
    for (uint32_t i = 0; i < r->n; i++)
        carried[i] = l.single ? acc[i] : tl_cpu_loop_carry(g, &l, acc[i]);
    at->idx[r->axis] = r->reverse ? LLVMBuildSub(g->b, tl_gen_int(&g->gen, n - 1), l.iv, "") : l.iv;
    eval_all(g, r, at, x);
    combine(g, r, carried, x, acc);
    store_scan(g, r, at, acc);
    tl_cpu_loop_end(g, &l, acc);
}

/* Along the lanes, a register's worth; one if a reverse scan would begin in the padding. */
static int scan_width(TlCpuGen *g, const Reduction *r, const TlNestForm *f)
{
    if (r->axis != f->lane)
        return tl_nest_fit_width(f->padded[f->lane], sources_width(g, r, 64));
    if (r->reverse && f->padded[f->lane] != f->extent[f->lane])
        return 1;
    int limit = 64;
    for (uint32_t i = 0; i < r->n; i++) {
        int lanes = g->m.vector_bytes / (int)tl_gen_elem_bytes(tl_in(r->op, i)->type);
        limit = lanes < limit ? lanes : limit;
    }
    return tl_nest_fit_width(f->padded[f->lane], sources_width(g, r, limit));
}

void tl_cpu_lower_scan(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_SCAN, "%s is no scan", tl_op_info(op->opcode)->text);
    Reduction r = reduction_of(op);
    TlNestForm f = tl_nest_form(tl_in(op, 0)->type);
    int width = scan_width(g, &r, &f);
    bool along = r.axis == f.lane && width > 1;
    TlCpuAt at;
    tl_cpu_at_init(g, &at, f.rank, f.lane, width);
    if (along) {
        find_inside(g, &r);
        find_end(g, &r, width);
    }
    TlCpuLoops loops = {.skip = r.axis, .dim = -1};
    tl_cpu_loops_begin(g, &loops, &f, &at);
    if (along)
        scan_along(g, &r, &at, f.padded[r.axis]);
    else
        scan_across(g, &r, &at, f.extent[r.axis]);
    tl_cpu_loops_end(g, &loops);
}
