/* Sums of four products of neighbouring bytes at a position (nest_quads.c): by a dot-product
 * instruction in pieces of its width, else as products of i32.
 *
 * Both factors are evaluated as i32 and narrowed to the bytes that they are: LLVM drops both. */
#include "codegen/cpu/cpu_matmul.h"

typedef struct Quads {
    TlCpuGen *g;
    const TlNestQuads *quads;
    TlDtype type[2];          /* of the factors' bytes */
    const TlCpuDotInsn *insn; /* NULL: there is none */
} Quads;

/* Lanes first, first + step, ... of x, n of them. */
static LLVMValueRef lanes_of(TlCpuGen *g, LLVMValueRef x, int first, int step, int n)
{
    LLVMValueRef mask[4 * TL_NEST_LANES];
    TL_ASSERT(n > 0 && n <= 4 * TL_NEST_LANES, "%d lanes", n);
    for (int i = 0; i < n; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)(first + i * step), 0);
    if (n == 1)
        return LLVMBuildExtractElement(g->b, x, mask[0], "");
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(mask, (unsigned)n), "");
}

/* Sums of `each` neighbours. */
static LLVMValueRef sums_of_lanes(TlCpuGen *g, LLVMValueRef x, int each, int n)
{
    LLVMValueRef sum = lanes_of(g, x, 0, each, n);
    for (int k = 1; k < each; k++)
        sum = LLVMBuildAdd(g->b, sum, lanes_of(g, x, k, each, n), "");
    return sum;
}

/* ---- by an instruction ---- */

/* Its sums of a and b, vectors of elements as large as a sum, and `begin`. */
static LLVMValueRef dot(const Quads *q, LLVMValueRef a, LLVMValueRef b, LLVMValueRef begin)
{
    TlGen *g = &q->g->gen;
    int lanes = q->insn->lanes;
    LLVMValueRef sum = tl_gen_splat(g, LLVMConstInt(g->i32, 0, 0), lanes);
    if (tl_cpu_dot_flips(q->insn, q->type[0], q->type[1])) {
        LLVMValueRef signs = LLVMConstInt(g->i32, 0x80808080, 0);
        a = LLVMBuildXor(g->b, a, tl_gen_splat(g, signs, lanes), "");
        sum = tl_cpu_dot_add_ones(g, q->insn, q->type[1], b, sum);
        sum = tl_cpu_dot_correction(g, q->type[0], sum);
        begin = begin ? LLVMBuildAdd(g->b, begin, sum, "") : sum;
    }
    sum = begin ? begin : sum;
    return tl_cpu_dot_add(g, q->insn, q->type[1], a, b, sum);
}

/* The same of n elements from `from` on of vectors that may be longer than the instruction's. */
static LLVMValueRef dots(const Quads *q, LLVMValueRef a, LLVMValueRef b, LLVMValueRef begin,
                         int from, int n)
{
    TlCpuGen *g = q->g;
    if (n == q->insn->lanes)
        return dot(q, lanes_of(g, a, from, 1, n), lanes_of(g, b, from, 1, n),
                   begin ? lanes_of(g, begin, from, 1, n) : NULL);
    TL_ASSERT(n > q->insn->lanes, "%d lanes of %d", n, q->insn->lanes);
    LLVMValueRef mask[TL_NEST_LANES], low = dots(q, a, b, begin, from, n / 2),
                                      high = dots(q, a, b, begin, from + n / 2, n / 2);
    for (int i = 0; i < n; i++)
        mask[i] = LLVMConstInt(g->i32, (unsigned)i, 0);
    return LLVMBuildShuffleVector(g->b, low, high, LLVMConstVector(mask, (unsigned)n), "");
}

/* The widest instruction for n sums, each of a few bytes or words. */
static const TlCpuDotInsn *widest(const Quads *q, int n)
{
    const TlCpuDotInsn *insn = NULL;
    for (int lanes = n < 16 ? n : 16; lanes >= 4 && !insn; lanes /= 2)
        insn = tl_cpu_dot_insn(q->g->gen.l, q->type[0], q->type[1], 4, lanes, false);
    return insn;
}

/* Sets the instruction. Bytes that are small are of i8, too: so they are taken where nothing has
 * its signs flipped then, which is half of the products saved. */
static void choose_insn(Quads *q, int n)
{
    q->insn = widest(q, n);
    for (int i = 0; i < 2; i++) {
        if (!q->insn || !tl_cpu_dot_flips(q->insn, q->type[0], q->type[1]))
            return;
        if (!tl_nest_is_small_byte(q->quads->byte[i]))
            continue;
        Quads as = *q;
        as.type[i] = TL_I8;
        as.insn = widest(&as, n);
        if (as.insn && !tl_cpu_dot_flips(as.insn, as.type[0], as.type[1]))
            *q = as;
    }
}

static LLVMValueRef elements_of_four_bytes(TlCpuGen *g, LLVMValueRef x, int n)
{
    LLVMValueRef bytes = LLVMBuildTrunc(g->b, x, tl_gen_vec(g->i8, 4 * n), "");
    return LLVMBuildBitCast(g->b, bytes, tl_gen_vec(g->i32, n), "");
}

static LLVMValueRef elements_of_two_words(TlCpuGen *g, LLVMValueRef x, int n)
{
    LLVMTypeRef word = LLVMInt16TypeInContext(g->c);
    LLVMValueRef words = LLVMBuildTrunc(g->b, x, tl_gen_vec(word, 4 * n), "");
    return LLVMBuildBitCast(g->b, words, tl_gen_vec(g->i32, 2 * n), "");
}

static LLVMValueRef plus(TlCpuGen *g, LLVMValueRef sum, LLVMValueRef begin)
{
    return begin ? LLVMBuildAdd(g->b, sum, begin, "") : sum;
}

/* n sums; x: 4 n elements of each factor; begin: what they begin with, NULL: 0. */
static LLVMValueRef sums(Quads *q, LLVMValueRef *x, LLVMValueRef begin, int n)
{
    TlCpuGen *g = q->g;
    choose_insn(q, n);
    if (!q->insn)
        return plus(g, sums_of_lanes(g, LLVMBuildMul(g->b, x[0], x[1], ""), 4, n), begin);
    if (q->insn->form == TL_CPU_DOT_WORDS) {
        LLVMValueRef a = elements_of_two_words(g, x[0], n), b = elements_of_two_words(g, x[1], n);
        return plus(g, sums_of_lanes(g, dots(q, a, b, NULL, 0, 2 * n), 2, n), begin);
    }
    return dots(q, elements_of_four_bytes(g, x[0], n), elements_of_four_bytes(g, x[1], n), begin, 0,
                n);
}

/* ---- at a position ---- */

static LLVMValueRef sum_of_one(TlCpuGen *g, const TlNestQuads *quads, const TlCpuAt *at)
{
    int last = at->rank - 1;
    LLVMValueRef sum = LLVMConstInt(g->i32, 0, 0), first = tl_cpu_times(g, at->idx[last], 4);
    for (int k = 0; k < 4; k++) {
        TlCpuAt sub;
        tl_cpu_at_under(g, &sub, at, at->rank, last, 1);
        sub.idx[last] = tl_cpu_add(g, first, tl_gen_int(&g->gen, k));
        LLVMValueRef a = tl_cpu_eval(g, quads->factor[0], &sub),
                     b = tl_cpu_eval(g, quads->factor[1], &sub);
        sum = LLVMBuildAdd(g->b, sum, LLVMBuildMul(g->b, a, b, ""), "");
    }
    return sum;
}

/* Lanes along another axis than the last one: one by one. */
static LLVMValueRef sums_apart(TlCpuGen *g, const TlNestQuads *quads, const TlOp *op,
                               const TlCpuAt *at)
{
    LLVMValueRef all = LLVMGetPoison(tl_gen_vec(g->i32, at->width));
    for (int i = 0; i < at->width; i++) {
        TlCpuAt one;
        tl_cpu_at_under(g, &one, at, at->rank, at->lane, 1);
        one.idx[at->lane] = tl_cpu_lane_index(g, at, i, op->out[0]->type->shape[at->lane]);
        LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)i, 0);
        all = LLVMBuildInsertElement(g->b, all, sum_of_one(g, quads, &one), n, "");
    }
    return all;
}

/* The sums, and what they begin with; NULL: 0. */
static LLVMValueRef eval_quads(TlCpuGen *g, const TlOp *op, TlCpuAt *at, LLVMValueRef begin)
{
    TlNestQuads quads;
    bool is = tl_nest_quads(g->plan, op, &quads);
    TL_ASSERT(is && at->rank == op->out[0]->type->rank, "no sums of four products");
    int last = at->rank - 1;
    if (at->width == 1)
        return plus(g, sum_of_one(g, &quads, at), begin);
    if (at->lane != last)
        return plus(g, sums_apart(g, &quads, op, at), begin);
    TlCpuAt sub;
    Quads q = {.g = g,
               .quads = &quads,
               .type = {quads.byte[0]->type->dtype, quads.byte[1]->type->dtype}};
    LLVMValueRef x[2];
    tl_cpu_at_under(g, &sub, at, at->rank, last, 4 * at->width);
    sub.idx[last] = tl_cpu_times(g, at->idx[last], 4);
    int64_t first = sub.fetch ? sub.fetch->first : 0;
    if (sub.fetch)
        sub.fetch->first *= 4; /* bytes of each lane */
    for (int i = 0; i < 2; i++)
        x[i] = tl_cpu_eval(g, quads.factor[i], &sub);
    if (sub.fetch)
        sub.fetch->first = first;
    return sums(&q, x, begin, at->width);
}

LLVMValueRef tl_cpu_eval_reduce(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    bool sums = g->plan->place[op->out[0]->id].way == TL_NEST_SUMS_QUADS;
    return sums ? eval_quads(g, op, at, NULL) : tl_cpu_eval_pick(g, op, at);
}

LLVMValueRef tl_cpu_eval_added_quads(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    int i = tl_nest_adds_quads(g->plan, op);
    TL_ASSERT(i >= 0, "%s adds no sums of four products", tl_op_info(op->opcode)->text);
    LLVMValueRef begin = tl_cpu_eval(g, tl_in(op, 1 - (uint32_t)i), at);
    return eval_quads(g, tl_in(op, (uint32_t)i)->def, at, begin);
}
