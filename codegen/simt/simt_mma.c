/* Lowering of matrix products by matrix instructions (ir/plan/mma.h).
 *
 *     for each instruction's k
 *         for each block of rows: its part of A as words of a lane;
 *         for each block of columns: its part of B
 *         for each block of the accumulator that this warp has: one leaf
 *
 * What register of which tile a lane gives to the instruction is asked by coordinates: those of the
 * fragment plus those of the block. A register that a tile of small extents does not have is 0.
 * Where K is no multiple of the instruction's, what a lane has beyond is 0 in A and B: by the
 * fragment's own k, as the tile's layout may repeat data there. */
#include "codegen/leaf/leaves.h"
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/mma.h"

enum { MAX_FRAGMENT = 32 }; /* elements of a lane */

typedef struct Mma {
    TlSimt *g;
    const TlOp *op;
    const TlMma *mma;
    const TlLayout *fragment[3];
    int32_t k;      /* extent */
    TlType type[3]; /* scalars */
    tl_leaf leaf;
    tl_mma_kind kind;
} Mma;

/* The start of a block. */
typedef struct Block {
    int32_t batch, row, column;
} Block;

static uint32_t elements(const Mma *m, int operand)
{
    return 1u << tl_layout_in_bits(m->fragment[operand], TL_IN_REG);
}

/* ---- registers ---- */

/* The register of thread 0 for an element of the block's fragment; -1: the tile has none. */
static int64_t register_at(const Mma *m, int operand, Block block, uint32_t element)
{
    const TlLayout *f = m->fragment[operand];
    const TlType *t = tl_in(m->op, (uint32_t)operand)->type;
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[2], x[TL_LAYOUT_MAX_OUT] = {block.batch};
    in[tl_layout_in_index(f, TL_IN_REG)] = element;
    tl_layout_apply(f, in, at);
    x[t->rank - 2] = at[0] + block.row;
    x[t->rank - 1] = at[1] + block.column;
    return tl_layout_register_at(t->layout, x);
}

static LLVMValueRef zero(const Mma *m, int operand)
{
    return LLVMConstNull(tl_gen_elem_type(&m->g->gen, &m->type[operand]));
}

/* i1: is the lane's k of element `e` inside, when `left` are? NULL: always. */
static LLVMValueRef has_k(const Mma *m, int operand, uint32_t e, int32_t left)
{
    const TlLayout *f = m->fragment[operand];
    int dim = operand == TL_MMA_A ? 1 : 0, lane = tl_layout_in_index(f, TL_IN_LANE);
    TlThreadMap map = {{0}, {0}};
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[2];
    if (left >= m->mma->k)
        return NULL;
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
static LLVMValueRef gather(const Mma *m, int operand, Block block, int32_t left)
{
    LLVMValueRef x[MAX_FRAGMENT];
    for (uint32_t e = 0; e < elements(m, operand); e++) {
        int64_t reg = register_at(m, operand, block, e);
        x[e] = reg < 0 ? zero(m, operand) : register_value(m, operand, reg);
        LLVMValueRef has = reg < 0 || operand == TL_MMA_C ? NULL : has_k(m, operand, e, left);
        if (has)
            x[e] = LLVMBuildSelect(m->g->b, has, x[e], zero(m, operand), "");
    }
    return tl_simt_pack(m->g, &m->type[operand], (int)elements(m, operand), x);
}

/* ---- the product ---- */

typedef TL_VEC(Block) Blocks;

/* Blocks along one axis, or of the accumulator, that warp 0 has; the others have as many. */
static Blocks find_blocks(const Mma *m, int operand, int32_t rows, int32_t columns)
{
    const TlType *t = tl_in(m->op, (uint32_t)operand)->type;
    const TlLayout *l = t->layout;
    Blocks found = {0};
    int32_t batches = t->rank == 3 ? tl_layout_extent(l, 0) : 1;
    Block b = {0, 0, 0};
    for (b.batch = 0; b.batch < batches; b.batch++)
        for (b.row = 0; b.row < tl_layout_extent(l, t->rank - 2); b.row += rows)
            for (b.column = 0; b.column < tl_layout_extent(l, t->rank - 1); b.column += columns)
                if (register_at(m, operand, b, 0) >= 0)
                    tl_vec_push(m->g->arena, &found, b);
    return found;
}

/* Parts of an operand, made when first needed. */
static LLVMValueRef part(const Mma *m, TlMap *made, int operand, Block block, int32_t left)
{
    uint64_t key = (uint64_t)block.batch << 44 ^ (uint64_t)block.row << 22 ^
                   (uint64_t)block.column << 1 ^ (uint64_t)operand;
    LLVMValueRef v = tl_map_get_ptr(made, (void *)(uintptr_t)(key + 1));
    if (!v) {
        v = gather(m, operand, block, left);
        tl_map_put_ptr(made, (void *)(uintptr_t)(key + 1), v);
    }
    return v;
}

static LLVMValueRef multiply(const Mma *m, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    TlSimt *g = m->g;
    const TlDtype *t = m->mma->type;
    LLVMValueRef args[7] = {
        tl_simt_i32(g, m->kind),
        tl_simt_i32(g, (uint32_t)m->mma->k),
        tl_simt_i32(g, TL_MMA_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2])),
        tl_simt_i32(g, g->fn->ring),
        a,
        b,
        c};
    return tl_simt_leaf(g, m->leaf, 7, args);
}

/* What the step at k wants of operands that are not read yet. */
static void read_step(const Mma *m, const Blocks *blocks, int32_t k)
{
    for (uint32_t i = 0; i < blocks->len && k < m->k; i++) {
        Block at = blocks->data[i], of[2] = {{at.batch, at.row, k}, {at.batch, k, at.column}};
        for (int operand = 0; operand < 2; operand++)
            for (uint32_t e = 0; e < elements(m, operand); e++) {
                int64_t reg = register_at(m, operand, of[operand], e);
                if (reg >= 0)
                    tl_simt_read(m->g, tl_in(m->op, (uint32_t)operand), reg);
            }
    }
}

/* Copies that are to be spread start between the instructions. As nothing is read across the start
 * of a copy, a step has the operands of the next one read before. */
static void multiply_all(const Mma *m, const Blocks *blocks, LLVMValueRef *acc)
{
    TlMap made;
    bool in_turn = tl_attr_flag(m->op, TL_ATTR_IN_TURN), spread = m->g->spread;
    uint32_t n = 0, all = blocks->len * (uint32_t)((m->k + m->mma->k - 1) / m->mma->k);
    tl_map_init(&made, m->g->arena);
    if (spread)
        read_step(m, blocks, 0);
    for (int32_t k = 0; k < m->k; k += m->mma->k) {
        if (spread)
            read_step(m, blocks, k + m->mma->k);
        for (uint32_t i = 0; i < blocks->len; i++) {
            Block at = blocks->data[i];
            if (in_turn && (i == 0 || at.row != blocks->data[i - 1].row))
                LLVMBuildFence(m->g->b, LLVMAtomicOrderingAcquireRelease, 1, "");
            LLVMValueRef a = part(m, &made, TL_MMA_A, (Block){at.batch, at.row, k}, m->k - k);
            LLVMValueRef b = part(m, &made, TL_MMA_B, (Block){at.batch, k, at.column}, m->k - k);
            acc[i] = multiply(m, a, b, acc[i]);
            tl_simt_begin_spread(m->g, ++n, all);
        }
    }
}

static void define_result(const Mma *m, const Blocks *blocks, LLVMValueRef *acc)
{
    LLVMValueRef *to = tl_simt_define(m->g, m->op->out[0]), x[MAX_FRAGMENT];
    for (uint32_t i = 0; i < blocks->len; i++) {
        tl_simt_unpack(m->g, &m->type[TL_MMA_C], acc[i], (int)elements(m, TL_MMA_C), x);
        for (uint32_t e = 0; e < elements(m, TL_MMA_C); e++) {
            int64_t reg = register_at(m, TL_MMA_C, blocks->data[i], e);
            if (reg >= 0)
                to[reg] = x[e];
        }
    }
}

static Mma mma_of(TlSimt *g, const TlOp *op)
{
    const TlType *a = tl_in(op, 0)->type;
    Mma m = {.g = g, .op = op, .mma = tl_mma_of(op), .k = a->shape[a->rank - 1]};
    m.kind = tl_leaf_mma_kind(m.mma);
    for (int i = 0; i < 3; i++) {
        m.fragment[i] = tl_mma_fragment(g->arena, m.mma, i);
        m.type[i] = (TlType){.kind = TL_TILE, .dtype = m.mma->type[i]};
    }
    m.leaf = tl_leaf_of_mma(g->arena, m.mma);
    return m;
}

void tl_simt_mma_read_first(TlSimt *g, const TlOp *op)
{
    Mma m = mma_of(g, op);
    Blocks blocks = find_blocks(&m, TL_MMA_C, m.mma->m, m.mma->n);
    read_step(&m, &blocks, 0);
}

void tl_simt_mma(TlSimt *g, TlOp *op)
{
    Mma m = mma_of(g, op);
    Blocks blocks = find_blocks(&m, TL_MMA_C, m.mma->m, m.mma->n);
    LLVMValueRef *acc = TL_NEW_ARRAY(g->arena, LLVMValueRef, blocks.len);
    for (uint32_t i = 0; i < blocks.len; i++)
        acc[i] = gather(&m, TL_MMA_C, blocks.data[i], m.mma->k);
    multiply_all(&m, &blocks, acc);
    define_result(&m, &blocks, acc);
}
