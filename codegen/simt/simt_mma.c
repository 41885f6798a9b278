/* Lowering of matrix products by matrix instructions (ir/plan/mma.h), in the order of
 * ir/plan/mma_order.h:
 *
 *     for each instruction
 *         at the start of a burst: a fence; what the next burst takes is read
 *         its parts of A and of B as words of a lane, each made when first needed
 *         one leaf
 *
 * The fences are of a single thread and order nothing but the reads; amd_bursts.c makes more of
 * them.
 *
 * What register of which tile a lane gives to the instruction is asked by coordinates: those of the
 * fragment plus those of the block. A register that a tile of small extents does not have is 0.
 * Where K is no multiple of the instruction's, what a lane has beyond is 0 in A and B: by the
 * fragment's own k, as the tile's layout may repeat data there. */
#include "codegen/leaf/leaves.h"
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/mma_order.h"

enum { MAX_FRAGMENT = 64 }; /* elements of a lane */

typedef struct Mma {
    TlSimt *g;
    const TlOp *op;
    const TlMma *mma;
    TlMmaOrder order;
    int32_t k;      /* extent */
    TlType type[TL_MMA_OPERANDS]; /* scalars */
    tl_leaf leaf;
    tl_mma_kind kind;
} Mma;

static uint32_t elements(const Mma *m, int operand)
{
    return 1u << tl_layout_in_bits(m->order.fragment[operand], TL_IN_REG);
}

/* ---- registers ---- */

static LLVMValueRef zero(const Mma *m, int operand)
{
    return LLVMConstNull(tl_gen_elem_type(&m->g->gen, &m->type[operand]));
}

/* i1: is the lane's k of element `e` inside, when `left` are? NULL: always. */
static LLVMValueRef has_k(const Mma *m, int operand, uint32_t e, int32_t left)
{
    const TlLayout *f = m->order.fragment[operand];
    int dim = operand == TL_MMA_B ? 0 : 1, lane = tl_layout_in_index(f, TL_IN_LANE);
    TlThreadMap map = {{0}, {0}};
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[2];
    if (left >= m->mma->k)
        return NULL;
    if (operand >= TL_MMA_SA)
        left /= m->mma->each;
    for (int b = 0; b < f->in_bits[lane]; b++)
        map.lane[b] = (uint32_t)f->basis[lane][b][dim];
    in[tl_layout_in_index(f, TL_IN_REG)] = e;
    tl_layout_apply(f, in, at);
    TlSimtLinear k = tl_simt_linear(m->g, &map, m->g->lane_bits, 0, 1);
    return tl_simt_linear_below(m->g, &k, (uint32_t)at[dim], (uint32_t)left);
}

/* Of what comes from shared memory only the part that is due is read. */
static LLVMValueRef register_value(const Mma *m, int operand, int64_t reg)
{
    const TlValue *v = tl_in(m->op, (uint32_t)operand);
    tl_simt_read(m->g, v, reg);
    return m->g->regs[v->id][reg];
}

/* The operand of a lane for the instruction of one block. */
static LLVMValueRef gather(const Mma *m, int operand, TlMmaBlock block, int32_t left)
{
    LLVMValueRef x[MAX_FRAGMENT];
    TL_ASSERT(elements(m, operand) <= MAX_FRAGMENT, "%u elements", elements(m, operand));
    for (uint32_t e = 0; e < elements(m, operand); e++) {
        int64_t reg = tl_mma_register(&m->order, operand, block, e);
        x[e] = reg < 0 ? zero(m, operand) : register_value(m, operand, reg);
        LLVMValueRef has = reg < 0 || operand == TL_MMA_C ? NULL : has_k(m, operand, e, left);
        if (has)
            x[e] = LLVMBuildSelect(m->g->b, has, x[e], zero(m, operand), "");
    }
    return tl_simt_pack(m->g, &m->type[operand], (int)elements(m, operand), x);
}

/* ---- scales ----
 *
 * A word holds four. Of a tile without padding they are four registers, of whatever rows, as they
 * are loaded; else those of as many instructions along k as it has room for. */

enum {
    SCALES = 4,         /* of a word */
    WORDS = (1 << 16) - 1 /* in place of a batch, in a key: words of four registers */
};

static bool has_padding(const TlType *t)
{
    for (int d = 0; d < t->rank; d++)
        if (tl_layout_extent(t->layout, d) != t->shape[d])
            return true;
    return tl_layout_registers(t->layout) % SCALES != 0;
}

/* The instruction's first scale, where all of them are registers that follow each other; -1: they
 * are not. */
static int64_t scales_at(const Mma *m, int operand, const TlMmaIssue *issue)
{
    TlMmaBlock block = tl_mma_part(&m->order, issue, operand);
    uint32_t n = elements(m, operand);
    int64_t first = tl_mma_register(&m->order, operand, block, 0);
    if (m->k - issue->k < m->mma->k || first < 0 || first % n != 0 ||
        has_padding(tl_in(m->op, (uint32_t)operand)->type))
        return -1;
    for (uint32_t e = 1; e < n; e++)
        if (tl_mma_register(&m->order, operand, block, e) != first + e)
            return -1;
    return first;
}

static LLVMValueRef word_of_registers(const Mma *m, int operand, int64_t first)
{
    LLVMValueRef x[SCALES];
    for (uint32_t i = 0; i < SCALES; i++)
        x[i] = register_value(m, operand, first + i);
    return tl_simt_pack(m->g, &m->type[operand], SCALES, x);
}

/* The instructions along k whose scales share a word. */
static int32_t sharing(const Mma *m, int operand)
{
    return SCALES / (int32_t)elements(m, operand);
}

/* The first of the instructions that share a word with this one. */
static TlMmaIssue first_of_word(const Mma *m, int operand, const TlMmaIssue *issue)
{
    return (TlMmaIssue){issue->block, issue->k - issue->k % (sharing(m, operand) * m->mma->k)};
}

static LLVMValueRef word_along_k(const Mma *m, int operand, const TlMmaIssue *first)
{
    LLVMValueRef x[SCALES];
    uint32_t n = elements(m, operand);
    for (uint32_t i = 0; i < SCALES; i++) {
        TlMmaIssue issue = {first->block, first->k + (int32_t)(i / n) * m->mma->k};
        int32_t left = m->k - issue.k;
        TlMmaBlock block = tl_mma_part(&m->order, &issue, operand);
        int64_t reg = left > 0 ? tl_mma_register(&m->order, operand, block, i % n) : -1;
        x[i] = reg < 0 ? zero(m, operand) : register_value(m, operand, reg);
        LLVMValueRef has = reg < 0 ? NULL : has_k(m, operand, i % n, left);
        if (has)
            x[i] = LLVMBuildSelect(m->g->b, has, x[i], zero(m, operand), "");
    }
    return tl_simt_pack(m->g, &m->type[operand], SCALES, x);
}

/* ---- the product ---- */

/* Parts of an operand, made when first needed. */
static LLVMValueRef part(const Mma *m, TlMap *made, int operand, const TlMmaIssue *issue)
{
    bool scales = operand >= TL_MMA_SA;
    int64_t at = scales ? scales_at(m, operand, issue) : -1;
    TlMmaIssue from = scales ? first_of_word(m, operand, issue) : *issue;
    TlMmaBlock block = tl_mma_part(&m->order, &from, operand);
    if (at >= 0)
        block = (TlMmaBlock){WORDS, 0, (int32_t)(at / SCALES)};
    uint64_t key = (uint64_t)block.batch << 44 ^ (uint64_t)block.row << 23 ^
                   (uint64_t)block.column << 3 ^ (uint64_t)operand;
    LLVMValueRef v = tl_map_get_ptr(made, (void *)(uintptr_t)(key + 1));
    if (v)
        return v;
    v = at >= 0  ? word_of_registers(m, operand, at - at % SCALES)
        : scales ? word_along_k(m, operand, &from)
                 : gather(m, operand, block, m->k - from.k);
    tl_map_put_ptr(made, (void *)(uintptr_t)(key + 1), v);
    return v;
}

/* Which byte of its word is the instruction's first scale. */
static uint32_t first_byte(const Mma *m, int operand, const TlMmaIssue *issue)
{
    int64_t at = scales_at(m, operand, issue);
    int32_t number = issue->k / m->mma->k;
    return at >= 0 ? (uint32_t)(at % SCALES)
                   : (uint32_t)(number % sharing(m, operand)) * elements(m, operand);
}

static LLVMValueRef multiply(const Mma *m, TlMap *made, const TlMmaIssue *issue, LLVMValueRef c)
{
    enum { PLAIN = 7, SCALED = 10 };
    TlSimt *g = m->g;
    const TlDtype *t = m->mma->type;
    bool scaled = m->mma->each > 0;
    LLVMValueRef args[SCALED] = {
        tl_simt_i32(g, m->kind),
        tl_simt_i32(g, (uint32_t)m->mma->k),
        tl_simt_i32(g, TL_MMA_SCALED_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2],
                                           scaled ? (uint32_t)t[TL_MMA_SA] : 0)),
        tl_simt_i32(g, g->fn->ring),
        part(m, made, TL_MMA_A, issue),
        part(m, made, TL_MMA_B, issue),
        c};
    if (scaled) {
        args[PLAIN] = part(m, made, TL_MMA_SA, issue);
        args[PLAIN + 1] = part(m, made, TL_MMA_SB, issue);
        args[PLAIN + 2] = tl_simt_i32(g, first_byte(m, TL_MMA_SA, issue) |
                                             first_byte(m, TL_MMA_SB, issue) << 8);
    }
    return tl_simt_leaf(g, m->leaf, scaled ? SCALED : PLAIN, args);
}

/* What the instructions first..end-1 take is read, or only looked at. Is any of it not read yet? */
static bool read_or_look(const Mma *m, uint32_t first, uint32_t end,
                         bool (*with)(TlSimt *, const TlValue *, int64_t))
{
    const TlMmaOrder *o = &m->order;
    bool any = false;
    for (uint32_t i = first; i < end && i < o->issues.len; i++)
        for (int operand = 0; operand < 2; operand++) {
            TlMmaBlock at = tl_mma_part(o, &o->issues.data[i], operand);
            for (uint32_t e = 0; e < elements(m, operand); e++) {
                int64_t reg = tl_mma_register(o, operand, at, e);
                if (reg >= 0)
                    any |= with(m->g, tl_in(m->op, (uint32_t)operand), reg);
            }
        }
    return any;
}

static bool read_parts(const Mma *m, uint32_t first, uint32_t end)
{
    return read_or_look(m, first, end, tl_simt_read);
}

static bool has_unread(const Mma *m, uint32_t first, uint32_t end)
{
    return read_or_look(m, first, end, tl_simt_is_unread);
}

static void fence(const Mma *m, LLVMAtomicOrdering order)
{
    LLVMBuildFence(m->g->b, order, 1, "");
}

/* The burst that begins with instruction `first`. waits: has something been read for it? Returns
 * whether something is read for the next one. */
static bool start_burst(const Mma *m, uint32_t first, uint32_t burst, bool waits)
{
    bool marks = tl_attr(m->op, TL_ATTR_BURST) != NULL;
    if (marks && waits)
        fence(m, LLVMAtomicOrderingAcquire);
    else if (marks && has_unread(m, first + burst, first + 2 * burst))
        fence(m, LLVMAtomicOrderingAcquireRelease);
    return read_parts(m, first + burst, first + 2 * burst);
}

/* Copies that are to be spread start between the instructions. As nothing is read across the start
 * of a copy, a step has the operands of the next one read before, as a burst has. */
static void multiply_all(const Mma *m, LLVMValueRef *acc)
{
    TlMap made;
    const TlMmaOrder *o = &m->order;
    uint32_t n = o->issues.len, step = m->g->spread ? o->blocks.len : 0,
             burst = (uint32_t)tl_attr_int(m->op, TL_ATTR_BURST, step);
    bool waits = true;
    tl_map_init(&made, m->g->arena);
    if (burst)
        read_parts(m, 0, burst);
    for (uint32_t i = 0; i < n; i++) {
        const TlMmaIssue *at = &o->issues.data[i];
        if (burst && i % burst == 0)
            waits = start_burst(m, i, burst, waits);
        acc[at->block] = multiply(m, &made, at, acc[at->block]);
        tl_simt_begin_spread(m->g, i + 1, n);
    }
    if (tl_attr(m->op, TL_ATTR_BURST))
        fence(m, LLVMAtomicOrderingRelease);
}

static void define_result(const Mma *m, LLVMValueRef *acc)
{
    LLVMValueRef *to = tl_simt_define(m->g, m->op->out[0]), x[MAX_FRAGMENT];
    const TlMmaBlocks *blocks = &m->order.blocks;
    for (uint32_t i = 0; i < blocks->len; i++) {
        tl_simt_unpack(m->g, &m->type[TL_MMA_C], acc[i], (int)elements(m, TL_MMA_C), x);
        for (uint32_t e = 0; e < elements(m, TL_MMA_C); e++) {
            int64_t reg = tl_mma_register(&m->order, TL_MMA_C, blocks->data[i], e);
            if (reg >= 0)
                to[reg] = x[e];
        }
    }
}

static Mma mma_of(TlSimt *g, const TlOp *op)
{
    const TlType *a = tl_in(op, 0)->type;
    Mma m = {.g = g, .op = op, .mma = tl_mma_of(op), .k = a->shape[a->rank - 1]};
    m.order = tl_mma_order(g->arena, op, tl_attr(op, TL_ATTR_BURST) != NULL);
    m.kind = tl_leaf_mma_kind(m.mma);
    for (int i = 0; i < TL_MMA_OPERANDS; i++)
        m.type[i] = (TlType){.kind = TL_TILE, .dtype = m.mma->type[i]};
    m.leaf = tl_leaf_of_mma(g->arena, m.mma);
    return m;
}

/* The first burst; where there are none, the first step of k. */
void tl_simt_mma_read_first(TlSimt *g, const TlOp *op)
{
    Mma m = mma_of(g, op);
    int64_t burst = tl_attr_int(op, TL_ATTR_BURST, m.order.blocks.len);
    read_parts(&m, 0, (uint32_t)burst);
}

void tl_simt_mma(TlSimt *g, TlOp *op)
{
    Mma m = mma_of(g, op);
    const TlMmaBlocks *blocks = &m.order.blocks;
    LLVMValueRef *acc = TL_NEW_ARRAY(g->arena, LLVMValueRef, blocks->len);
    for (uint32_t i = 0; i < blocks->len; i++)
        acc[i] = gather(&m, TL_MMA_C, blocks->data[i], m.mma->k);
    multiply_all(&m, acc);
    define_result(&m, acc);
}
