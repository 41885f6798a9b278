/* Reshapes on the CPU: each element comes from the operand's element with the same row-major
 * number. If the operand has a home, neither has padding, and vectors would not stay together, they
 * are read from where that number is in the home.
 *
 * Lanes along the innermost dimension stay together if the width divides both innermost extents.
 * Short rows of bytes are evaluated one by one and put one after the other in a vector.
 * If the operand's last axis is short (two halves of a byte, two operands of `interleave`), the
 * operand is evaluated along the axis before it, once for each element of the last axis, and these
 * vectors are interleaved; but words of four bytes, whose order a transposition changed, are taken
 * from the home that they lie in. */
#include "codegen/cpu/cpu.h"

/* ---- indices ---- */

/* Sets `sub`, of the operand's type or, with `fewer`, of that without its last axes, to the
 * position with the number that `at` has, over `unit`. Leading axes that are alike keep their
 * indices, so that no division hides what an address is made of. */
static void same_number(TlCpuGen *g, const TlType *from, const TlType *to, const TlCpuAt *at,
                        int64_t unit, int fewer, TlCpuAt *sub)
{
    int rank = from->rank - fewer, same = 0;
    TlNestForm f = tl_nest_form(to);
    bool is_padded = f.rank && f.padded[f.lane] != f.extent[f.lane]; /* then numbers wrap */
    LLVMValueRef linear = tl_gen_int(&g->gen, 0);
    while (same < rank && same < to->rank && from->shape[same] == to->shape[same])
        same++; /* as sub has them */
    for (int d = same; d < to->rank; d++)
        linear =
            LLVMBuildAdd(g->b, LLVMBuildMul(g->b, linear, tl_gen_int(&g->gen, to->shape[d]), ""),
                         at->idx[d], "");
    if (unit > 1)
        linear = LLVMBuildUDiv(g->b, linear, tl_gen_int(&g->gen, unit), "");
    for (int d = rank - 1; d >= same; d--) {
        LLVMValueRef n = tl_gen_int(&g->gen, from->shape[d]);
        sub->idx[d] = d == same && !is_padded ? linear : LLVMBuildURem(g->b, linear, n, "");
        linear = LLVMBuildUDiv(g->b, linear, n, "");
    }
}

static LLVMValueRef eval_same_number(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, x->type->rank, tl_nest_form(x->type).lane, at->width);
    same_number(g, x->type, op->out[0]->type, at, 1, 0, &sub);
    return tl_cpu_eval(g, x, &sub);
}

/* Rows of the operand, one after the other. */
static LLVMValueRef eval_rows(TlCpuGen *g, const TlOp *op, const TlCpuAt *at, int from, int n)
{
    int row = tl_in(op, 0)->type->shape[tl_in(op, 0)->type->rank - 1];
    if (n <= row) {
        TlCpuAt one = *at;
        one.width = n;
        one.idx[at->lane] =
            LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, from), "");
        return eval_same_number(g, op, &one);
    }
    LLVMValueRef low = eval_rows(g, op, at, from, n / 2),
                 high = eval_rows(g, op, at, from + n / 2, n / 2), mask[4 * TL_NEST_LANES];
    for (int i = 0; i < n; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)i, 0);
    return LLVMBuildShuffleVector(g->b, low, high, LLVMConstVector(mask, (unsigned)n), "");
}

/* ---- the last axis joined with the one before it ---- */

/* v[0][0] v[1][0] ... v[n-1][0] v[0][1] ..., where v has n vectors of w lanes, `step` apart. */
static LLVMValueRef interleave_all(TlCpuGen *g, const LLVMValueRef *v, int n, int step, int w)
{
    if (n == 1)
        return v[0];
    LLVMValueRef even = interleave_all(g, v, n / 2, 2 * step, w),
                 odd = interleave_all(g, v + step, n / 2, 2 * step, w);
    return tl_cpu_interleave(g, even, odd, n / 2 * w);
}

/* Sets `sub` to the position of the joined axes, the elements of the last one from 0 on. */
static void at_joined(TlCpuGen *g, const TlOp *op, const TlCpuAt *at, int lane, int w, TlCpuAt *sub)
{
    const TlType *from = tl_in(op, 0)->type;
    int last = tl_nest_last_axis(from);
    tl_cpu_at_under(g, sub, at, from->rank, lane, w);
    same_number(g, from, op->out[0]->type, at, from->shape[last], from->rank - last, sub);
    for (int d = last; d < from->rank; d++)
        sub->idx[d] = tl_gen_int(&g->gen, 0);
}

static LLVMValueRef eval_join(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0);
    int last = tl_nest_last_axis(x->type), n = x->type->shape[last], w = at->width / n;
    TL_ASSERT(n <= TL_NEST_JOINED && w > 0, "%d lanes of %d", at->width, n);
    TlCpuAt sub;
    LLVMValueRef v[TL_NEST_JOINED];
    if (g->plan->place[op->out[0]->id].way == TL_NEST_JOINS_HOME) {
        at_joined(g, op, at, last, at->width, &sub);
        return tl_cpu_eval(g, x, &sub);
    }
    for (int i = 0; i < n; i++) {
        at_joined(g, op, at, last - 1, w, &sub);
        sub.idx[last] = tl_gen_int(&g->gen, i);
        v[i] = tl_cpu_eval(g, x, &sub);
    }
    return interleave_all(g, v, n, 1, w);
}

/* ---- words in another order ---- */

/* The address in a home of the first of the words at `at`. */
static LLVMValueRef address_of_words(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    const TlOp *trans = tl_in(op, 0)->def;
    TlValue *x = tl_in(trans, 0);
    const TlType *from = x->type;
    const int64_t *perm = tl_attr(trans, TL_ATTR_PERM)->u.ints;
    int last = from->rank - 1, n = from->shape[last], w = at->width / n;
    TL_ASSERT(w > 1 && w * n == at->width, "%d lanes", at->width);
    TlCpuAt sub;
    LLVMValueRef idx[TL_MAX_RANK], first = tl_gen_int(&g->gen, 0);
    at_joined(g, op, at, last - 1, w, &sub);
    for (int d = 0; d <= last; d++)
        idx[perm[d]] = sub.idx[d];
    for (int d = 0; d <= last; d++)
        first = LLVMBuildAdd(
            g->b, LLVMBuildMul(g->b, first, tl_gen_int(&g->gen, from->shape[d]), ""), idx[d], "");
    TlNestPlace place = g->plan->place[x->id];
    if (place.kind != TL_NEST_HOME)
        place = g->plan->place[tl_in(x->def, 0)->id];
    return tl_gen_address(&g->gen, from->dtype, tl_cpu_home_ptr(g, place.buffer), first);
}

enum { WORD = 4 }; /* bytes */

/* w words, i from p on. */
static LLVMValueRef load_words(TlCpuGen *g, LLVMValueRef p, int i, int w)
{
    LLVMValueRef q = tl_gen_address(&g->gen, TL_I32, p, tl_gen_int(&g->gen, i)),
                 v = LLVMBuildLoad2(g->b, tl_gen_vec(g->i32, w), q, "");
    LLVMSetAlignment(v, WORD);
    return v;
}

/* Every few words of a home from the one at `at` on. */
static LLVMValueRef eval_words(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    int w = at->width / WORD, step = tl_nest_turned_words(op);
    int end = (step - 1) * (w - 1); /* of the last one wanted */
    LLVMValueRef v[TL_NEST_TURNED], p = address_of_words(g, op, at);
    for (int k = 0; k < step; k++)
        v[k] = load_words(g, p, tl_cpu_every_start(k, w, end), w);
    LLVMValueRef words = tl_cpu_every(g, v, step, w, 0, end);
    return LLVMBuildBitCast(g->b, words, tl_gen_vec(g->i8, at->width), "");
}

/* v: n vectors of w lanes, one after the other; then each has every n-th of all lanes. */
static void unzip(TlCpuGen *g, LLVMValueRef *v, int n, int w)
{
    LLVMValueRef half[2][TL_NEST_TURNED / 2];
    if (n == 1)
        return;
    for (int i = 0; i < n; i++)
        half[i % 2][i / 2] = tl_cpu_every(g, &v[i / 2 * 2], 2, w, i % 2, 2 * w);
    unzip(g, half[0], n / 2, w);
    unzip(g, half[1], n / 2, w);
    for (int i = 0; i < n; i++)
        v[i] = half[i % 2][i / 2];
}

void tl_cpu_all_words(TlCpuGen *g, const TlOp *op, const TlCpuAt *at, LLVMValueRef *out)
{
    int w = at->width / WORD, n = tl_nest_turned_words(op);
    LLVMValueRef p = address_of_words(g, op, at);
    for (int k = 0; k < n; k++)
        out[k] = load_words(g, p, k * w, w);
    unzip(g, out, n, w);
    for (int k = 0; k < n; k++)
        out[k] = LLVMBuildBitCast(g->b, out[k], tl_gen_vec(g->i8, at->width), "");
}

/* ---- the last axis divided ---- */

/* Lanes along the axis before the last one, of n elements, one of which is wanted. */
static LLVMValueRef eval_part(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0);
    const TlType *to = op->out[0]->type;
    int last = to->rank - 1, n = to->shape[last], lane = x->type->rank - 1;
    TlCpuAt first = *at, sub;
    LLVMValueRef v[TL_NEST_PARTED], which = at->idx[last];
    first.idx[last] = tl_gen_int(&g->gen, 0);
    for (int k = 0; k < n; k++) {
        tl_cpu_at_under(g, &sub, &first, x->type->rank, lane, at->width);
        same_number(g, x->type, to, &first, 1, 0, &sub);
        sub.idx[lane] =
            LLVMBuildAdd(g->b, sub.idx[lane], tl_gen_int(&g->gen, (int64_t)k * at->width), "");
        v[k] = tl_cpu_eval(g, x, &sub);
    }
    return tl_cpu_every(g, v, n, at->width, (int)LLVMConstIntGetSExtValue(which),
                        (n - 1) * at->width);
}

static bool is_part(const TlOp *op, const TlCpuAt *at)
{
    const TlType *to = op->out[0]->type;
    return at->lane == to->rank - 2 && LLVMIsAConstantInt(at->idx[to->rank - 1]) &&
           tl_nest_part_width(op, at->width) == at->width;
}

/* ---- evaluation ---- */

/* Axes of extent 1 are added or dropped; the others keep their order. */
static LLVMValueRef eval_renaming(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0);
    const TlType *from = x->type, *to = op->out[0]->type;
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, from->rank, 0, at->width);
    if (from->rank == 0)
        return tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, x), at->width);
    bool lanes = false;
    for (int i = 0, j = 0; i < from->rank; i++) {
        sub.idx[i] = tl_gen_int(&g->gen, 0);
        if (from->shape[i] == 1)
            continue;
        while (to->shape[j] == 1)
            j++;
        if (j == at->lane)
            sub.lane = i, lanes = true;
        sub.idx[i] = at->idx[j++];
    }
    if (lanes)
        return tl_cpu_eval(g, x, &sub);
    sub.width = 1;
    return tl_gen_splat(&g->gen, tl_cpu_eval(g, x, &sub), at->width);
}

/* Elements that lie side by side, whatever axes they are along. */
static LLVMValueRef eval_home(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0);
    const TlType *to = op->out[0]->type;
    TlType row = tl_nest_row(x->type);
    TlNestForm f = tl_nest_form(&row);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, 1, 0, at->width);
    sub.shifted = true;
    sub.idx[0] = tl_gen_int(&g->gen, 0);
    for (int d = 0; d < to->rank; d++)
        sub.idx[0] = LLVMBuildAdd(
            g->b, LLVMBuildMul(g->b, sub.idx[0], tl_gen_int(&g->gen, to->shape[d]), ""),
            at->idx[d], "");
    return tl_cpu_home_load(g, x->type, tl_cpu_home_ptr(g, g->plan->place[x->id].buffer), &f, &sub);
}

/* Lanes along another dimension than the innermost: one by one, or those of the home. */
static LLVMValueRef eval_apart(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    const TlType *to = op->out[0]->type;
    if (g->plan->place[op->out[0]->id].way == TL_NEST_READS_HOME) { /* neither has gaps */
        const TlValue *x = tl_in(op, 0);
        TlNestForm f = tl_nest_form(to);
        return tl_cpu_home_load(g, x->type, tl_cpu_home_ptr(g, g->plan->place[x->id].buffer), &f,
                                at);
    }
    LLVMValueRef r = LLVMGetPoison(tl_gen_vec(tl_gen_elem_type(&g->gen, to), at->width));
    for (int i = 0; i < at->width; i++) {
        TlCpuAt one;
        tl_cpu_at_under(g, &one, at, at->rank, at->lane, 1);
        one.idx[at->lane] = tl_cpu_lane_index(g, at, i, to->shape[at->lane]);
        LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)i, 0);
        r = LLVMBuildInsertElement(g->b, r, eval_same_number(g, op, &one), n, "");
    }
    return r;
}

LLVMValueRef tl_cpu_eval_reshape(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    TlNestWay way = g->plan->place[op->out[0]->id].way;
    if (way == TL_NEST_RENAMES)
        return eval_renaming(g, op, at);
    if (way == TL_NEST_READS_HOME && (at->width == 1 || at->lane == tl_nest_form(to).lane))
        return eval_home(g, op, at);
    if (at->width == 1)
        return eval_same_number(g, op, at);
    if (way == TL_NEST_PARTS && is_part(op, at))
        return eval_part(g, op, at);
    if (at->lane != tl_nest_form(to).lane)
        return eval_apart(g, op, at);
    if (way == TL_NEST_PUTS_ROWS)
        return eval_rows(g, op, at, 0, at->width);
    if (way == TL_NEST_TURNS_WORDS && at->width > 4)
        return eval_words(g, op, at);
    bool joins = way == TL_NEST_INTERLEAVES || way == TL_NEST_JOINS_HOME;
    joins = joins && at->width > from->shape[tl_nest_last_axis(from)];
    return joins ? eval_join(g, op, at) : eval_same_number(g, op, at);
}
