/* Reductions and scans on the CPU.
 *
 * Along the lane dimension, a reduction keeps a vector of partial results for each of a few rows,
 * or several for each of fewer rows. It takes whole vectors, then one last vector whose lanes past
 * the extent keep what they had (padding never takes part), and folds the lanes in halves. Partial
 * results begin with the first vector or, if that may need a mask or there are several, with the
 * operation's identity if it has one. Along another dimension the lanes are independent. A
 * combiner with control flow runs on scalars. */
#include "codegen/cpu/cpu.h"

#include <string.h>

typedef struct Reduction {
    const TlNest *n;
    TlOp *op;
    int axis;
    uint32_t count; /* of values */
    TlCombine kind;
    bool reverse, begins, exclusive; /* of a scan */
    TlCpuBounds bounds;
} Reduction;

/* The rows that are reduced together. */
typedef struct Rows {
    uint32_t n, parts; /* parts of a row: 1, 2, 4 */
    TlCpuAt at[TL_NEST_ROWS];
} Rows;

static Reduction reduction_of(const TlNest *n)
{
    TlOp *op = n->reduce;
    Reduction r = {.n = n,
                   .op = op,
                   .axis = n->axis,
                   .count = op->nout,
                   .kind = (TlCombine)tl_attr_int(op, TL_ATTR_KIND, 0),
                   .reverse = tl_attr_flag(op, TL_ATTR_REVERSE),
                   .begins = op->nin > op->nout,
                   .exclusive = tl_attr_flag(op, TL_ATTR_EXCLUSIVE)};
    return r;
}

/* ---- the combiner ---- */

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
    if (r->n->asks_new) {
        out[0] = extreme_so_far(g, r->kind == TL_COMBINE_MAX, a[0], b[0]);
        return;
    }
    if (r->kind != TL_COMBINE_USER) {
        out[0] = tl_gen_combine(&g->gen, r->kind, tl_in(r->op, 0)->type->dtype, a[0], b[0]);
        return;
    }
    TlBlock *body = r->op->regions[0];
    for (uint32_t i = 0; i < r->count; i++) {
        g->scalar[body->args[i]->id] = a[i];
        g->scalar[body->args[r->count + i]->id] = b[i];
    }
    if (r->n->on_vectors) {
        combine_lanes(g, body, tl_gen_width_of(a[0]), out);
        return;
    }
    tl_cpu_lower_block(g, body, NULL);
    for (uint32_t i = 0; i < r->count; i++)
        out[i] = tl_gen_scalar(&g->gen, tl_in(body->last, i));
}

static void eval_all(TlCpuGen *g, const Reduction *r, const TlCpuAt *at, LLVMValueRef *out)
{
    TlCpuAt fresh = *at;
    TlValue *fill = r->n->fill;
    tl_map_init(&fresh.memo, g->arena);
    if (fill) {
        LLVMValueRef x = tl_cpu_eval_own(g, fill, &fresh);
        tl_cpu_own_store(g, fill, &fresh, x);
        tl_map_put(&fresh.memo, fill->id, (uint64_t)(uintptr_t)x);
    }
    for (uint32_t i = 0; i < r->count; i++)
        out[i] = tl_cpu_eval(g, tl_in(r->op, i), &fresh);
}

/* ---- one row along the lane dimension ----
 * From where nothing is inside all elements are equal: where another vector of them would change
 * nothing the row is at its end. */

static LLVMValueRef half(TlCpuGen *g, LLVMValueRef x, int from, int n)
{
    TL_ASSERT(from >= 0 && n > 0, "%d lanes from %d", n, from);
    LLVMValueRef mask[TL_NEST_LANES];
    if (n == 1)
        return LLVMBuildExtractElement(g->b, x, LLVMConstInt(g->i32, (unsigned)from, 0), "");
    for (int i = 0; i < n; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)(from + i), 0);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(mask, (unsigned)n), "");
}

/* Whether all bits are set, or any, as one number. NULL: they are no bits, or it is neither. */
static LLVMValueRef fold_bits(TlCpuGen *g, const Reduction *r, LLVMValueRef x, int width)
{
    bool is_and = r->kind == TL_COMBINE_AND;
    if (tl_in(r->op, 0)->type->dtype != TL_BOOL || (!is_and && r->kind != TL_COMBINE_OR) ||
        LLVMGetElementType(LLVMTypeOf(x)) != g->i1)
        return NULL;
    LLVMTypeRef word = LLVMIntTypeInContext(g->c, (unsigned)width);
    return LLVMBuildICmp(g->b, is_and ? LLVMIntEQ : LLVMIntNE, LLVMBuildBitCast(g->b, x, word, ""),
                         is_and ? LLVMConstAllOnes(word) : LLVMConstNull(word), "");
}

/* Combines lanes until `to` are left of `width`. */
static void fold_lanes(TlCpuGen *g, const Reduction *r, LLVMValueRef *acc, int width, int to)
{
    TL_ASSERT((width & (width - 1)) == 0 && to >= 1, "%d lanes, then %d", width, to);
    LLVMValueRef bits = to == 1 && width > 1 ? fold_bits(g, r, acc[0], width) : NULL;
    if (bits) {
        acc[0] = bits;
        return;
    }
    for (int w = width / 2; w >= to; w /= 2) {
        LLVMValueRef a[TL_NEST_SUMS], b[TL_NEST_SUMS];
        for (uint32_t i = 0; i < r->count; i++) {
            a[i] = half(g, acc[i], 0, w);
            b[i] = half(g, acc[i], w, w);
        }
        combine(g, r, a, b, acc);
    }
}

/* Lanes of x and y, one behind the other: of each row's `left` lanes the lower half or the upper
 * one. */
static LLVMValueRef halves(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y, int left, bool upper)
{
    LLVMValueRef mask[TL_NEST_LANES];
    int width = tl_gen_width_of(x), n = 0, w = left / 2;
    for (int row = 0; row < 2 * width; row += left)
        for (int i = 0; i < w; i++)
            mask[n++] = LLVMConstInt(g->i32, (unsigned)(row + (upper ? w : 0) + i), 0);
    TL_ASSERT(n == width, "%d lanes of %d", n, width);
    return LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(mask, (unsigned)n), "");
}

/* Each row's upper half of so many lanes, where its lower half is. */
static LLVMValueRef lowered(TlCpuGen *g, LLVMValueRef x, int left)
{
    LLVMValueRef mask[TL_NEST_LANES];
    int width = tl_gen_width_of(x), w = left / 2;
    for (int i = 0; i < width; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)(i ^ w), 0);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(mask, (unsigned)width), "");
}

/* The lanes that rows begin with. */
static LLVMValueRef firsts(TlCpuGen *g, LLVMValueRef x, int rows)
{
    LLVMValueRef mask[TL_NEST_LANES];
    int apart = tl_gen_width_of(x) / rows;
    for (int i = 0; i < rows; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)(i * apart), 0);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(mask, (unsigned)rows), "");
}

/* Are rows folded together? Each lane meets those that it meets where they are not. */
static bool folds_together(const Reduction *r, uint32_t rows, int width)
{
    TlDtype dtype = tl_in(r->op, 0)->type->dtype;
    return rows > 1 && (rows & (rows - 1)) == 0 && (int)rows <= width && r->count == 1 &&
           r->kind != TL_COMBINE_USER && dtype != TL_BOOL;
}

/* What fold_lanes makes of each of n rows, a lane for each: the halves of two rows' lanes meet in
 * one vector, which is both rows' from then on. So n rows take as many instructions as two. */
static LLVMValueRef fold_together(TlCpuGen *g, const Reduction *r, LLVMValueRef *acc, uint32_t n,
                                  int width)
{
    TL_ASSERT(r->count == 1, "%u values", r->count);
    int left = width;
    uint32_t rows = n;
    for (; n > 1; n /= 2, left /= 2)
        for (uint32_t k = 0; k < n / 2; k++) {
            LLVMValueRef a = halves(g, acc[2 * k], acc[2 * k + 1], left, false),
                         b = halves(g, acc[2 * k], acc[2 * k + 1], left, true);
            combine(g, r, &a, &b, &acc[k]);
        }
    for (; left > 1; left /= 2) {
        LLVMValueRef b = lowered(g, acc[0], left);
        combine(g, r, &acc[0], &b, &acc[0]);
    }
    return firsts(g, acc[0], (int)rows);
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

/* Asks for the next program's vectors at i. */
static void prefetch_step(TlCpuGen *g, const Reduction *r, Rows *rows, LLVMValueRef i)
{
    TlCpuBranch b = tl_cpu_branch(g, rows->at[0].row->asks, true, "coming", "came");
    for (uint32_t k = 0; k < rows->n * rows->parts; k++) {
        TlCpuAt *at = &rows->at[k / rows->parts];
        int64_t first = (int64_t)(k % rows->parts) * at->width;
        at->idx[r->axis] = LLVMBuildAdd(g->b, i, tl_gen_int(&g->gen, first), "");
        tl_cpu_prefetch(g, at);
    }
    tl_cpu_join(g, b);
}

/* Combines acc with a vector, at i, of each part of each row. Returns whether another one like it
 * would change nothing, if `asks`. whole: as in reduce_vectors. */
static LLVMValueRef reduce_step(TlCpuGen *g, const Reduction *r, Rows *rows, bool whole,
                                LLVMValueRef asks, LLVMValueRef i, LLVMValueRef *acc,
                                LLVMValueRef *next)
{
    LLVMValueRef x[TL_NEST_SUMS], done = asks;
    TlCpuFetch fetch = {.nest = r->n, .conditional = g->conditional};
    for (uint32_t k = 0; k < rows->n * rows->parts; k++) {
        TlCpuAt *at = &rows->at[k / rows->parts];
        fetch.first = (int64_t)(k % rows->parts) * at->width;
        fetch.done.len = 0;
        fetch.again = k >= rows->parts;
        at->fetch = whole ? &fetch : NULL;
        at->idx[r->axis] = LLVMBuildAdd(g->b, i, tl_gen_int(&g->gen, fetch.first), "");
        eval_all(g, r, at, x);
        combine(g, r, acc + k * r->count, x, next + k * r->count);
        fuse(g, r, x[0], next[k * r->count]);
        if (done)
            done = LLVMBuildAnd(g->b, done, changes_nothing(g, r, x[0]), "");
        at->fetch = NULL;
    }
    tl_cpu_fetch_now(g, &fetch);
    if (whole && rows->at[0].row->distance.len)
        prefetch_step(g, r, rows, i);
    return done;
}

/* Combines acc with the vectors from .. to - 1 of each row. whole: these are all, or most. */
static void reduce_vectors(TlCpuGen *g, const Reduction *r, Rows *rows, bool whole,
                           LLVMValueRef from, LLVMValueRef to, LLVMValueRef *acc)
{
    TlCpuLoop l;
    LLVMValueRef next[TL_NEST_SUMS], done = NULL;
    uint32_t sums = rows->n * rows->parts;
    int64_t step = rows->at[0].width * (int64_t)rows->parts;
    if (LLVMIsAConstantInt(from) && LLVMIsAConstantInt(to)) {
        int64_t i = LLVMConstIntGetSExtValue(from), end = LLVMConstIntGetSExtValue(to);
        for (; g->whole && whole && r->n->repeated && i < end; i += step)
            reduce_step(g, r, rows, whole, NULL, tl_gen_int(&g->gen, i), acc, acc);
        if (i >= end)
            return;
    }
    TlCpuBranch rest = {NULL};
    if (!whole)
        rest = tl_cpu_rest(g, from, to);
    tl_cpu_loop_begin(g, &l, from, to, step, r->count * sums, acc);
    if (!whole)
        tl_cpu_loop_is_short(g, &l);
    if (!whole && r->bounds.outside)
        done = LLVMBuildICmp(g->b, LLVMIntSGE, l.i, r->bounds.outside, "");
    done = reduce_step(g, r, rows, whole, done, l.i, l.carry, next);
    if (done)
        l.by = LLVMBuildSelect(g->b, done, to, l.by, "");
    tl_cpu_loop_end(g, &l, next);
    tl_cpu_join_values(g, rest, r->count * sums, l.carry, acc);
    for (uint32_t i = 0; i < r->count * sums; i++)
        acc[i] = l.carry[i];
}

/* The same for a row whose vectors registers hold: without a loop. */
static void reduce_unrolled(TlCpuGen *g, const Reduction *r, Rows *rows, int64_t from, int64_t to,
                            LLVMValueRef *acc)
{
    LLVMValueRef x[TL_NEST_SUMS];
    TlCpuAt *at = &rows->at[0];
    TL_ASSERT(rows->n == 1 && rows->parts == 1, "%u rows of %u parts", rows->n, rows->parts);
    for (int64_t i = from; i < to; i += at->width) {
        at->idx[r->axis] = tl_gen_int(&g->gen, i);
        eval_all(g, r, at, x);
        combine(g, r, acc, x, acc);
        fuse(g, r, x[0], acc[0]);
    }
}

/* From here on there is one partial result for each row. */
static void join_parts(TlCpuGen *g, const Reduction *r, Rows *rows, LLVMValueRef *acc)
{
    for (; rows->parts > 1; rows->parts /= 2)
        for (uint32_t k = 0; k < rows->n * rows->parts / 2; k++)
            combine(g, r, &acc[2 * k], &acc[2 * k + 1], &acc[k]);
}

static void set_whole(Rows *rows, bool whole)
{
    for (uint32_t k = 0; k < rows->n; k++)
        rows->at[k].whole = whole;
}

/* The vectors that are inside as a whole, those that are left after the last step one by one; what
 * is tested after them has fewer lanes, if acc began with identities. Returns where the next
 * vectors begin. */
static LLVMValueRef reduce_inside(TlCpuGen *g, Reduction *r, Rows *rows, int64_t begin,
                                  LLVMValueRef *acc)
{
    int width = rows->at[0].width, tested = r->n->tested;
    int64_t step = width * (int64_t)rows->parts;
    LLVMValueRef from = tl_gen_int(&g->gen, begin), end = r->bounds.end,
                 steps = LLVMBuildAnd(g->b, end, tl_gen_int(&g->gen, -step), "");
    set_whole(rows, true);
    reduce_vectors(g, r, rows, true, from, steps, acc);
    join_parts(g, r, rows, acc);
    if (r->n->singles)
        reduce_vectors(g, r, rows, true, steps, end, acc);
    set_whole(rows, false);
    if (begin)
        return tl_cpu_larger(g, end, from);
    for (uint32_t k = 0; k < rows->n; k++) {
        fold_lanes(g, r, acc + k * r->count, width, tested);
        rows->at[k].width = tested;
    }
    return end;
}

/* The vector in which the rows of n elements end. In lanes past the end, acc does not change. */
static void reduce_last(TlCpuGen *g, Reduction *r, Rows *rows, int64_t begin, int64_t n,
                        LLVMValueRef *acc)
{
    int width = rows->at[0].width;
    LLVMValueRef x[TL_NEST_SUMS], joined[TL_NEST_SUMS], lanes[TL_NEST_LANES];
    for (int i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(g->i1, begin + i < n, 0);
    LLVMValueRef inside = LLVMConstVector(lanes, (unsigned)width);
    for (uint32_t k = 0; k < rows->n; k++, acc += r->count) {
        rows->at[k].idx[r->axis] = tl_gen_int(&g->gen, begin);
        eval_all(g, r, &rows->at[k], x);
        combine(g, r, acc, x, joined);
        for (uint32_t i = 0; i < r->count; i++)
            acc[i] = LLVMBuildSelect(g->b, inside, joined[i], acc[i], "");
    }
}

/* Returns whether acc[0] has a lane for each row; else there is a value for each. */
static bool reduce_rows(TlCpuGen *g, Reduction *r, Rows *rows, int64_t n, LLVMValueRef *acc)
{
    int width = rows->at[0].width;
    int64_t begin = 0;
    for (uint32_t k = 0; k < rows->n; k++) {
        if (r->n->from_identity) {
            for (uint32_t i = 0; i < rows->parts; i++)
                acc[k * rows->parts + i] = identity(g, r, width);
            continue;
        }
        begin = width;
        rows->at[k].idx[r->axis] = tl_gen_int(&g->gen, 0);
        eval_all(g, r, &rows->at[k], acc + k * r->count);
    }
    LLVMValueRef from = tl_gen_int(&g->gen, begin);
    if (r->bounds.end && n / width * width > begin)
        from = reduce_inside(g, r, rows, begin, acc);
    width = rows->at[0].width;
    int64_t whole = n / width * width;
    if (r->n->unrolled)
        reduce_unrolled(g, r, rows, begin, whole, acc);
    else if (whole > begin)
        reduce_vectors(g, r, rows, !r->bounds.end, from, tl_gen_int(&g->gen, whole), acc);
    join_parts(g, r, rows, acc);
    if (whole < n)
        reduce_last(g, r, rows, whole, n, acc);
    if (folds_together(r, rows->n, width)) {
        acc[0] = fold_together(g, r, acc, rows->n, width);
        return true;
    }
    for (uint32_t k = 0; k < rows->n; k++)
        fold_lanes(g, r, acc + k * r->count, width, 1);
    return false;
}

static void store_results(TlCpuGen *g, const Reduction *r, const TlCpuAt *at, int width,
                          LLVMValueRef *acc)
{
    for (uint32_t i = 0; i < r->count; i++) {
        TlValue *out = r->op->out[i];
        if (out->type->rank == 0) {
            g->scalar[out->id] = acc[i];
            continue;
        }
        TlCpuAt to;
        tl_cpu_at_init(g, &to, out->type->rank, at->lane > r->axis ? at->lane - 1 : at->lane,
                       width);
        for (int d = 0, k = 0; d < at->rank; d++)
            if (d != r->axis)
                to.idx[k++] = at->idx[d];
        tl_cpu_own_store(g, out, &to, acc[i]);
    }
}

/* The results of rows that were folded together, which may lie side by side. */
static void store_together(TlCpuGen *g, const Reduction *r, const Rows *rows, LLVMValueRef lanes)
{
    TlValue *out = r->op->out[0];
    const TlCpuAt *at = &rows->at[0];
    int dim = r->n->rows_dim > r->axis ? r->n->rows_dim - 1 : r->n->rows_dim;
    if (tl_nest_form(out->type).stride[dim] == 1) {
        TlCpuAt to;
        tl_cpu_at_init(g, &to, out->type->rank, dim, (int)rows->n);
        for (int d = 0, k = 0; d < at->rank; d++)
            if (d != r->axis)
                to.idx[k++] = at->idx[d];
        to.shifted = true;
        tl_cpu_own_store(g, out, &to, lanes);
        return;
    }
    for (uint32_t k = 0; k < rows->n; k++) {
        LLVMValueRef x = LLVMBuildExtractElement(g->b, lanes, LLVMConstInt(g->i32, k, 0), "");
        store_results(g, r, &rows->at[k], 1, &x);
    }
}

/* Reduces along the lane dimension, several rows at a time. If their number is no multiple of that,
 * the last group overlaps the one before it, and some rows are reduced twice. */
static void reduce_along(TlCpuGen *g, Reduction *r, TlCpuAt *at)
{
    const TlNest *n = r->n;
    Rows rows = {.n = (uint32_t)n->rows, .parts = (uint32_t)n->parts};
    LLVMValueRef acc[TL_NEST_SUMS];
    TlCpuRow row = {.nest = n};
    at->row = &row;
    r->bounds = tl_cpu_bounds(g, n, n->width * (n->singles ? 1 : (int64_t)n->parts));
    TlCpuLoops loops = {.skip = r->axis, .dim = n->rows_dim, .step = n->rows};
    tl_cpu_prefetch_begin(g, &row);
    tl_cpu_loops_begin(g, &loops, &n->form, at);
    tl_cpu_prefetch_trip(g, n, at);
    for (uint32_t k = 0; k < rows.n; k++) {
        rows.at[k] = *at;
        if (k)
            rows.at[k].idx[n->rows_dim] =
                LLVMBuildAdd(g->b, at->idx[n->rows_dim], tl_gen_int(&g->gen, k), "");
    }
    if (reduce_rows(g, r, &rows, n->form.extent[r->axis], acc))
        store_together(g, r, &rows, acc[0]);
    else
        for (uint32_t k = 0; k < rows.n; k++)
            store_results(g, r, &rows.at[k], 1, acc + k * r->count);
    tl_cpu_loops_end(g, &loops);
}

/* ---- scans along the lanes ----
 * They go vector after vector: log2 of the width steps make the scan of a vector, each of which
 * combines every lane with one further back; then what comes before the vector is combined with all
 * lanes. What a scan begins with is there before the first. */

/* What comes before all elements, in each lane. */
static void begin_scan(TlCpuGen *g, const Reduction *r, int width, LLVMValueRef *out)
{
    for (uint32_t i = 0; i < r->count; i++)
        out[i] = tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, tl_in(r->op, r->count + i)), width);
}

static void store_scan(TlCpuGen *g, const Reduction *r, TlCpuAt *at, LLVMValueRef *acc)
{
    for (uint32_t i = 0; i < r->count; i++)
        tl_cpu_own_store(g, r->op->out[i], at, acc[i]);
}

/* Scans the lanes of a vector: each step combines a lane with the one `back` lanes before it. */
static void scan_lanes(TlCpuGen *g, const Reduction *r, int width, LLVMValueRef *x)
{
    for (int back = 1; back < width; back *= 2) {
        LLVMValueRef from[TL_NEST_LANES], reached[TL_NEST_LANES], before[TL_NEST_SUMS],
            joined[TL_NEST_SUMS];
        for (int i = 0; i < width; i++) {
            int at = r->reverse ? i + back : i - back;
            bool has = at >= 0 && at < width;
            from[i] = LLVMConstInt(g->i32, (unsigned)(has ? at : i), 0);
            reached[i] = LLVMConstInt(g->i1, has, 0);
        }
        LLVMValueRef lanes = LLVMConstVector(from, (unsigned)width),
                     has = LLVMConstVector(reached, (unsigned)width);
        for (uint32_t i = 0; i < r->count; i++)
            before[i] =
                LLVMBuildShuffleVector(g->b, x[i], LLVMGetPoison(LLVMTypeOf(x[i])), lanes, "");
        combine(g, r, before, x, joined);
        for (uint32_t i = 0; i < r->count; i++)
            x[i] = LLVMBuildSelect(g->b, has, joined[i], x[i], "");
    }
}

/* The lanes of x, each in the place of the one that is met after it; `first` in the first. */
static LLVMValueRef lanes_before(TlCpuGen *g, const Reduction *r, LLVMValueRef x,
                                 LLVMValueRef first, int width)
{
    LLVMValueRef from[64];
    for (int i = 0; i < width; i++) {
        int at = r->reverse ? i + 1 : i - 1;
        from[i] = LLVMConstInt(g->i32, (unsigned)(at >= 0 && at < width ? at : i), 0);
    }
    x = LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                               LLVMConstVector(from, (unsigned)width), "");
    unsigned lane = r->reverse ? (unsigned)width - 1 : 0;
    return LLVMBuildInsertElement(g->b, x, first, LLVMConstInt(g->i32, lane, 0), "");
}

/* Scans the vector at the position. carry: the combination of all before it, updated for the next;
 * not read if this is the first vector. */
static void scan_vector(TlCpuGen *g, const Reduction *r, TlCpuAt *at, bool first,
                        LLVMValueRef *carry)
{
    LLVMValueRef x[TL_NEST_SUMS], spread[TL_NEST_SUMS], last[TL_NEST_SUMS];
    int width = at->width;
    eval_all(g, r, at, x);
    scan_lanes(g, r, width, x);
    for (uint32_t i = 0; i < r->count; i++)
        last[i] = half(g, x[i], r->reverse ? 0 : width - 1, 1);
    if (!first) {
        for (uint32_t i = 0; i < r->count; i++)
            spread[i] = tl_gen_splat(&g->gen, carry[i], width);
        combine(g, r, spread, x, x);
        combine(g, r, carry, last, last);
    }
    for (uint32_t i = 0; r->exclusive && i < r->count; i++)
        x[i] = lanes_before(g, r, x[i], carry[i], width);
    store_scan(g, r, at, x);
    memcpy(carry, last, r->count * sizeof *last);
}

/* The vectors from .. to - 1, which do not include the first. */
static void scan_vectors(TlCpuGen *g, const Reduction *r, TlCpuAt *at, int64_t n, LLVMValueRef from,
                         LLVMValueRef to, LLVMValueRef *carry)
{
    TlCpuLoop l;
    LLVMValueRef next[TL_NEST_SUMS], last = tl_gen_int(&g->gen, n - at->width);
    tl_cpu_loop_begin(g, &l, from, to, at->width, r->count, carry);
    at->idx[r->axis] = r->reverse ? LLVMBuildSub(g->b, last, l.i, "") : l.i;
    memcpy(next, l.carry, r->count * sizeof *next);
    scan_vector(g, r, at, false, next);
    tl_cpu_loop_end(g, &l, next);
    memcpy(carry, l.carry, r->count * sizeof *carry);
}

/* n: the extent with its padding, which comes after the last element. */
static void scan_along(TlCpuGen *g, Reduction *r, TlCpuAt *at, int64_t n)
{
    LLVMValueRef carry[TL_NEST_SUMS], from = tl_gen_int(&g->gen, at->width),
                                      to = tl_gen_int(&g->gen, n);
    at->idx[r->axis] = tl_gen_int(&g->gen, r->reverse ? n - at->width : 0);
    if (r->begins)
        begin_scan(g, r, 1, carry);
    scan_vector(g, r, at, !r->begins, carry);
    if (n == at->width)
        return;
    LLVMValueRef end = r->bounds.end;
    if (end) {
        at->whole = true;
        scan_vectors(g, r, at, n, from, end, carry);
        at->whole = false;
        from = tl_cpu_larger(g, end, from);
    }
    scan_vectors(g, r, at, n, from, to, carry);
}

/* ---- across the lanes ---- */

/* Each lane is a scan of its own, element after element. */
static void scan_across(TlCpuGen *g, const Reduction *r, TlCpuAt *at, int64_t n)
{
    LLVMValueRef acc[TL_NEST_SUMS], x[TL_NEST_SUMS];
    if (r->begins)
        begin_scan(g, r, at->width, acc);
    else {
        at->idx[r->axis] = tl_gen_int(&g->gen, r->reverse ? n - 1 : 0);
        eval_all(g, r, at, acc);
        store_scan(g, r, at, acc);
    }
    if (n <= !r->begins)
        return;
    TlCpuLoop l;
    tl_cpu_loop_known(g, &l, !r->begins, n, 1, r->count, acc);
    at->idx[r->axis] = r->reverse ? LLVMBuildSub(g->b, tl_gen_int(&g->gen, n - 1), l.i, "") : l.i;
    eval_all(g, r, at, x);
    combine(g, r, l.carry, x, acc);
    store_scan(g, r, at, r->exclusive ? l.carry : acc);
    tl_cpu_loop_end(g, &l, acc);
}

/* Each lane is a reduction of its own: of some vectors side by side. */
static void reduce_across(TlCpuGen *g, const Reduction *r, Rows *rows, int64_t n)
{
    LLVMValueRef acc[TL_NEST_SUMS] = {NULL}, x[TL_NEST_SUMS];
    TlCpuFetch fetch = {.nest = r->n};
    uint32_t sums = rows->n * rows->parts;
    int64_t begin = rows->parts == 1; /* several partial results begin with the identity */
    for (uint32_t k = 0; k < sums; k++) {
        TlCpuAt *at = &rows->at[k / rows->parts];
        at->idx[r->axis] = tl_gen_int(&g->gen, 0);
        if (begin)
            eval_all(g, r, at, acc + k * r->count);
        else
            acc[k] = identity(g, r, at->width);
    }
    if (n > begin) {
        TlCpuLoop l;
        tl_cpu_loop_known(g, &l, begin, n, rows->parts, r->count * sums, acc);
        for (uint32_t k = 0; k < sums; k++) {
            TlCpuAt *at = &rows->at[k / rows->parts];
            LLVMValueRef *sum = acc + k * r->count;
            fetch.first = (int64_t)(k / rows->parts) * at->width;
            fetch.done.len = 0;
            at->fetch = at->whole ? &fetch : NULL;
            at->idx[r->axis] = LLVMBuildAdd(g->b, l.i, tl_gen_int(&g->gen, k % rows->parts), "");
            eval_all(g, r, at, x);
            combine(g, r, l.carry + k * r->count, x, sum);
            fuse(g, r, x[0], sum[0]);
            at->fetch = NULL;
        }
        tl_cpu_fetch_now(g, &fetch);
        tl_cpu_loop_end(g, &l, acc);
        memcpy(acc, l.carry, r->count * sums * sizeof *acc);
    }
    join_parts(g, r, rows, acc);
    for (uint32_t k = 0; k < rows->n; k++)
        store_results(g, r, &rows->at[k], rows->at[k].width, acc + k * r->count);
}

/* The lanes from .. to - 1, so many vectors together. */
static void reduce_lanes(TlCpuGen *g, const Reduction *r, const TlCpuAt *at, uint32_t n,
                         LLVMValueRef from, LLVMValueRef to)
{
    TlCpuLoop l;
    Rows rows = {.n = n, .parts = (uint32_t)r->n->parts};
    tl_cpu_loop_begin(g, &l, from, to, at->width * (int64_t)n, 0, NULL);
    for (uint32_t k = 0; k < n; k++) {
        rows.at[k] = *at;
        rows.at[k].idx[at->lane] =
            LLVMBuildAdd(g->b, l.i, tl_gen_int(&g->gen, (int64_t)k * at->width), "");
    }
    reduce_across(g, r, &rows, r->n->form.extent[r->axis]);
    tl_cpu_loop_end(g, &l, NULL);
}

static void go_across(TlCpuGen *g, const Reduction *r, TlCpuAt *at)
{
    const TlNest *n = r->n;
    const TlNestForm *f = &n->form;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0),
                 all = tl_gen_int(&g->gen, (n->width > 1 ? f->padded : f->extent)[f->lane]);
    TlCpuRow row = {.nest = n};
    TlCpuLoops loops = {.skip = r->axis, .dim = -1, .skips_lanes = true};
    at->row = &row;
    tl_cpu_loops_begin(g, &loops, f, at);
    if (r->bounds.end) {
        at->whole = true;
        reduce_lanes(g, r, at, (uint32_t)n->rows, zero, r->bounds.end);
        at->whole = false;
        at->width = n->tested;
        reduce_lanes(g, r, at, 1, r->bounds.end, all);
    } else {
        reduce_lanes(g, r, at, (uint32_t)n->rows, zero, all);
    }
    tl_cpu_loops_end(g, &loops);
}

void tl_cpu_reduce(TlCpuGen *g, const TlNest *n)
{
    TL_ASSERT(n->kind == TL_NEST_REDUCE || n->kind == TL_NEST_SCAN, "%s reduces nothing",
              tl_op_info(n->op->opcode)->text);
    Reduction r = reduction_of(n);
    TlCpuAt at;
    tl_cpu_at_init(g, &at, n->form.rank, n->form.lane, n->width);
    if (n->along && n->kind == TL_NEST_REDUCE) {
        reduce_along(g, &r, &at);
        return;
    }
    r.bounds = tl_cpu_bounds(g, n, n->width * (int64_t)n->rows);
    if (n->kind == TL_NEST_REDUCE && n->axis != n->form.lane) {
        go_across(g, &r, &at);
        return;
    }
    TlCpuLoops loops = {.skip = r.axis, .dim = -1};
    tl_cpu_loops_begin(g, &loops, &n->form, &at);
    if (n->along)
        scan_along(g, &r, &at, n->form.padded[r.axis]);
    else if (n->kind == TL_NEST_SCAN)
        scan_across(g, &r, &at, n->form.extent[r.axis]);
    else
        reduce_across(g, &r, &(Rows){.n = 1, .parts = 1, .at = {at}}, n->form.extent[r.axis]);
    tl_cpu_loops_end(g, &loops);
}
