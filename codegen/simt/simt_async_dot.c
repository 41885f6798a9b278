/* Lowering of products by warpgroups (ir/plan/async_dot.h): one leaf for each strip of the
 * accumulator and step of k, with the steps outermost; the fence stands before the first, and the
 * last closes the group.
 *
 * A token is its tile's registers, which hold nothing useful until AWAIT returns them: its leaf
 * takes them and gives them back, so that no reader is moved in front of it. The address of an
 * operand is a slot's, equal in all threads, plus the warpgroup's offset along M or N, plus a
 * constant. */
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/async_dot.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/staged.h"

enum { MAX_FRAGMENT = 32, WORDS_OF_A = 4, UNIT = 16 }; /* a descriptor counts 16 bytes */

typedef struct AsyncProduct {
    TlSimt *g;
    const TlOp *op;
    TlAsyncDot dot;
    const TlAsyncPlan *plan;
    const TlLayout *fragment[3];
    LLVMValueRef *a;      /* A in registers: words, by strip, step and word; else NULL */
    LLVMValueRef base[2]; /* i32: where a buffer's slot begins for this warpgroup, / 16 */
    LLVMValueRef *acc;
} AsyncProduct;

/* ---- operands ---- */

/* What the bits of the warp's number from the third on add to the offset in an operand's slot. */
static LLVMValueRef group_offset(const AsyncProduct *p, int operand)
{
    const TlAsyncSide *s = &p->dot.side[operand];
    uint32_t warp[TL_MAX_WARP_BITS] = {0}, any = 0;
    for (int b = 0; b < p->plan->warp_bits; b++) {
        int32_t at = operand == TL_MMA_A ? p->plan->warp_row[b] : p->plan->warp_column[b];
        any |= warp[b + TL_GROUP_WARP_BITS] = at ? tl_async_offset(s, operand, at, 0) / UNIT : 0;
    }
    if (!any)
        return NULL;
    LLVMValueRef own = p->g->thread.warp;
    p->g->thread.warp = tl_simt_uniform_warp(p->g);
    LLVMValueRef offset = tl_simt_thread_xor(p->g, 0, NULL, p->g->warp_bits, warp);
    p->g->thread.warp = own;
    return offset;
}

/* All threads of a warp have the same, which the GPU's compiler must see. */
static LLVMValueRef slot_base(const AsyncProduct *p, int operand)
{
    TlSimt *g = p->g;
    const TlAsyncSide *s = &p->dot.side[operand];
    int64_t at = tl_attr_int(tl_buf_alloc(s->buf), TL_ATTR_SHARED, -1);
    TL_ASSERT(at >= 0 && at % UNIT == 0, "a buffer at %lld", (long long)at);
    LLVMValueRef base = tl_simt_i32(g, (uint32_t)at / UNIT), group = group_offset(p, operand);
    if (s->buf->type->slots > 1) {
        uint32_t bytes = (uint32_t)tl_buf_slot_bytes(s->buf->type);
        LLVMValueRef slot = LLVMBuildNUWMul(g->b, tl_gen_scalar(&g->gen, s->slot),
                                            tl_simt_i32(g, bytes / UNIT), "");
        base = LLVMBuildAdd(g->b, base, slot, "");
    }
    return group ? LLVMBuildAdd(g->b, base, group, "") : base;
}

static LLVMValueRef descriptor_of(const AsyncProduct *p, int operand, int32_t i, int32_t k)
{
    uint32_t at = tl_async_offset(&p->dot.side[operand], operand, i, k) / UNIT;
    return LLVMBuildAdd(p->g->b, p->base[operand], tl_simt_i32(p->g, at), "");
}

/* The register of thread 0 for element e of the fragment at a row and a column. */
static int64_t register_of(const AsyncProduct *p, int operand, const TlType *t, int32_t row,
                           int32_t column, uint32_t e)
{
    const TlLayout *f = p->fragment[operand];
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[2], x[TL_LAYOUT_MAX_OUT] = {0};
    in[tl_layout_in_index(f, TL_IN_REG)] = e;
    tl_layout_apply(f, in, at);
    x[0] = row + at[0];
    x[1] = column + at[1];
    return tl_layout_register_at(t->layout, x);
}

/* A in registers: the words of the fragment of a strip and step. */
static void words_of_a(const AsyncProduct *p, int32_t row, int32_t k, LLVMValueRef *out)
{
    TlSimt *g = p->g;
    const TlValue *a = p->dot.side[TL_MMA_A].tile;
    LLVMValueRef x[MAX_FRAGMENT], *regs = tl_simt_regs(g, a);
    uint32_t count = 1u << tl_layout_in_bits(p->fragment[TL_MMA_A], TL_IN_REG);
    TlType elem = {.kind = TL_TILE, .dtype = a->type->dtype};
    for (uint32_t e = 0; e < count; e++)
        x[e] = regs[register_of(p, TL_MMA_A, a->type, row, k, e)];
    LLVMValueRef all = tl_simt_pack(g, &elem, (int)count, x);
    for (unsigned w = 0; w < WORDS_OF_A; w++)
        out[w] = LLVMBuildExtractElement(g->b, all, tl_simt_i32(g, w), "");
}

/* Values that pass through a fence, as many at a time as a leaf takes. */
static void fence_words(TlSimt *g, LLVMValueRef *x, uint32_t n)
{
    for (uint32_t from = 0; from < n; from += TL_LEAF_MOST_WORDS) {
        uint32_t count = n - from < TL_LEAF_MOST_WORDS ? n - from : TL_LEAF_MOST_WORDS;
        LLVMValueRef done = tl_simt_leaf_words(g, TL_LEAF_WGMMA_FENCE, count, x + from, count);
        for (uint32_t i = 0; i < count; i++)
            x[from + i] = LLVMBuildExtractValue(g->b, done, i, "");
    }
}

/* All of A is there before the first instruction: nothing that makes a part of it may come between
 * them. */
static void prepare_a(AsyncProduct *p)
{
    uint32_t steps = (uint32_t)(p->plan->k / p->plan->mma->k), n = p->plan->strips.len * steps;
    p->a = TL_NEW_ARRAY(p->g->arena, LLVMValueRef, n * WORDS_OF_A);
    for (uint32_t s = 0; s < p->plan->strips.len; s++)
        for (uint32_t k = 0; k < steps; k++)
            words_of_a(p, p->plan->strips.data[s].row, (int32_t)k * p->plan->mma->k,
                       p->a + (s * steps + k) * WORDS_OF_A);
    fence_words(p->g, p->a, n * WORDS_OF_A);
}

/* ---- accumulators ---- */

/* The registers of a strip in the instruction's order: 8 columns after 8 columns, of each the
 * fragment of one warp. */
static uint32_t strip_registers(const AsyncProduct *p, const TlAsyncStrip *strip, int64_t *out)
{
    enum { COLUMNS = 8, EACH = 4 };
    uint32_t n = 0;
    for (int32_t column = 0; column < p->plan->n; column += COLUMNS)
        for (uint32_t e = 0; e < EACH; e++)
            out[n++] = register_of(p, TL_MMA_C, p->op->out[0]->type, strip->row,
                                   strip->column + column, e);
    return n;
}

static void multiply_strip(AsyncProduct *p, const TlAsyncStrip *strip, int32_t k, uint32_t how)
{
    TlSimt *g = p->g;
    const TlDtype *t = p->plan->mma->type;
    LLVMValueRef args[TL_SIMT_MOST_ARGS];
    int64_t regs[TL_LEAF_MOST_WORDS];
    unsigned n = 0, words = strip_registers(p, strip, regs);
    bool in_slot = p->dot.side[TL_MMA_A].buf != NULL;
    uint64_t upper[2] = {in_slot ? tl_async_descriptor(p->plan->mma, &p->plan->slot[TL_MMA_A]) : 0,
                         tl_async_descriptor(p->plan->mma, &p->plan->slot[TL_MMA_B])};
    how |= (p->plan->slot[0].across ? TL_WGMMA_A_ACROSS : 0) |
           (p->plan->slot[1].across ? TL_WGMMA_B_ACROSS : 0) | (in_slot ? 0 : TL_WGMMA_A_WORDS) |
           (g->fn->ring ? TL_WGMMA_RING : 0);
    args[n++] = tl_simt_i32(g, (uint32_t)p->plan->n);
    args[n++] = tl_simt_i32(g, TL_MMA_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2]));
    args[n++] = tl_simt_i32(g, how);
    for (int i = 0; i < 2; i++) {
        bool has = i == TL_MMA_B || in_slot;
        int32_t at = i == TL_MMA_A ? strip->row : strip->column;
        args[n++] = tl_gen_int(&g->gen, (int64_t)upper[i]);
        args[n++] = has ? descriptor_of(p, i, at, k) : tl_simt_i32(g, 0);
    }
    uint32_t at = ((uint32_t)(strip - p->plan->strips.data) * (uint32_t)p->plan->k + (uint32_t)k) /
                  (uint32_t)p->plan->mma->k * WORDS_OF_A;
    for (uint32_t i = 0; !in_slot && i < WORDS_OF_A; i++)
        args[n++] = p->a[at + i];
    for (unsigned i = 0; i < words; i++)
        args[n++] = p->acc[regs[i]];
    LLVMValueRef x = tl_simt_leaf_words(g, TL_LEAF_WGMMA, n, args, words);
    for (unsigned i = 0; i < words; i++)
        p->acc[regs[i]] = LLVMBuildExtractValue(g->b, x, i, "");
}

static LLVMValueRef *copy_of(TlSimt *g, const TlValue *v)
{
    int64_t n = tl_simt_count(v);
    LLVMValueRef *from = tl_simt_regs(g, v), *to = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i];
    return to;
}

/* Constants need no fence: no instruction that sets a register may move. */
static bool are_zeros(LLVMValueRef *x, int64_t n)
{
    bool zeros = true;
    for (int64_t i = 0; i < n && zeros; i++)
        zeros = LLVMIsNull(x[i]);
    return zeros;
}

void tl_simt_dot_async(TlSimt *g, TlOp *op)
{
    const TlMma *mma = tl_mma_find(tl_attr(op, TL_ATTR_MMA)->u.s);
    AsyncProduct p = {.g = g, .op = op, .dot = tl_async_dot(op)};
    p.plan = tl_async_plan(g->arena, mma, p.dot.side, op->out[0]->type);
    TL_ASSERT(p.plan, "'%s' has a product that no warpgroup does", g->fn->name);
    for (int i = 0; i < 3; i++)
        p.fragment[i] = tl_mma_fragment(g->arena, mma, i);
    for (int i = 0; i < 2; i++)
        p.base[i] = p.dot.side[i].buf ? slot_base(&p, i) : NULL;
    p.acc = copy_of(g, p.dot.acc);
    bool fresh = p.dot.acc->def && p.dot.acc->def->opcode == TL_OP_READY &&
                 !are_zeros(p.acc, tl_simt_count(p.dot.acc));
    if (p.dot.side[TL_MMA_A].tile)
        prepare_a(&p);
    if (fresh) /* what makes it stays in front; what is on its way must not be touched */
        fence_words(g, p.acc, (uint32_t)tl_simt_count(p.dot.acc));
    uint32_t last = p.plan->strips.len - 1;
    for (int32_t k = 0; k < p.plan->k; k += mma->k)
        for (uint32_t i = 0; i <= last; i++) {
            uint32_t how = (k == 0 && i == 0 && !p.a && !fresh ? TL_WGMMA_FENCE : 0) |
                           (k + mma->k == p.plan->k && i == last ? TL_WGMMA_COMMIT : 0);
            multiply_strip(&p, &p.plan->strips.data[i], k, how);
        }
    g->regs[op->out[0]->id] = p.acc;
}

void tl_simt_ready(TlSimt *g, TlOp *op)
{
    g->regs[op->out[0]->id] = copy_of(g, tl_in(op, 0));
}

/* The first leaf waits; the others pass on what is done. */
void tl_simt_await(TlSimt *g, TlOp *op)
{
    LLVMValueRef args[TL_SIMT_MOST_ARGS];
    args[0] = tl_simt_i32(g, (uint32_t)tl_attr_int(op, TL_ATTR_PENDING, 0));
    if (op->nin == 0)
        tl_simt_leaf_words(g, TL_LEAF_WGMMA_WAIT, 1, args, 0);
    for (uint32_t i = 0; i < op->nin; i++) {
        LLVMValueRef *x = copy_of(g, tl_in(op, i));
        int64_t all = tl_simt_count(tl_in(op, i));
        for (int64_t from = 0; from < all; from += TL_LEAF_MOST_WORDS) {
            unsigned n = 0;
            for (int64_t k = from; k < all && n < TL_LEAF_MOST_WORDS; k++)
                args[1 + n++] = x[k];
            LLVMValueRef done = tl_simt_leaf_words(g, TL_LEAF_WGMMA_WAIT, n + 1, args, n);
            for (unsigned k = 0; k < n; k++)
                x[from + k] = LLVMBuildExtractValue(g->b, done, k, "");
        }
        g->regs[op->out[i]->id] = x;
    }
}

void tl_simt_fence(TlSimt *g)
{
    tl_simt_leaf(g, TL_LEAF_FENCE_ASYNC, 0, NULL);
}
