/* The order of matrix instructions (mma_order.h). */
#include "ir/plan/mma_order.h"
#include "ir/plan/late.h"
#include "ir/plan/layout_rules.h"

int64_t tl_mma_register(const TlMmaOrder *o, int operand, TlMmaBlock block, uint32_t element)
{
    const TlLayout *f = o->fragment[operand];
    const TlType *t = tl_in(o->dot, (uint32_t)operand)->type;
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[2], x[TL_LAYOUT_MAX_OUT] = {block.batch};
    in[tl_layout_in_index(f, TL_IN_REG)] = element;
    tl_layout_apply(f, in, at);
    x[t->rank - 2] = at[0] + block.row;
    x[t->rank - 1] = at[1] + block.column;
    if (o->spread && (operand == TL_MMA_B || operand == TL_MMA_C))
        x[t->rank - 1] = tl_mma_spread(x[t->rank - 1]);
    return tl_layout_register_at(t->layout, x);
}

static void find_blocks(TlArena *arena, TlMmaOrder *o, bool by_columns)
{
    const TlType *t = tl_in(o->dot, TL_MMA_C)->type;
    const TlLayout *l = t->layout;
    int dim[2] = {t->rank - 2 + by_columns, t->rank - 1 - by_columns};
    int32_t step[2] = {by_columns ? o->mma->n : o->mma->m, by_columns ? o->mma->m : o->mma->n},
            end[3] = {t->rank == 3 ? tl_layout_extent(l, 0) : 1, tl_layout_extent(l, dim[0]),
                      tl_layout_extent(l, dim[1])};
    for (int32_t batch = 0; batch < end[0]; batch++)
        for (int32_t outer = 0; outer < end[1]; outer += step[0])
            for (int32_t inner = 0; inner < end[2]; inner += step[1]) {
                TlMmaBlock b = {batch, by_columns ? inner : outer, by_columns ? outer : inner};
                if (tl_mma_register(o, TL_MMA_C, b, 0) >= 0)
                    tl_vec_push(arena, &o->blocks, b);
            }
}

/* Are the blocks in one row, or, by columns, in one column? */
static bool is_in_line(const TlMmaBlock *a, const TlMmaBlock *b, bool by_columns)
{
    return a->batch == b->batch && (by_columns ? a->column == b->column : a->row == b->row);
}

/* The first block after those of the row or column of block `first`. */
static uint32_t end_of_line(const TlMmaOrder *o, uint32_t first, bool by_columns)
{
    const TlMmaBlock *b = o->blocks.data;
    uint32_t end = first + 1;
    while (end < o->blocks.len && is_in_line(&b[end], &b[first], by_columns))
        end++;
    return end;
}

/* Bits of a thread for a step of k of all blocks of rows (A) or columns (B); 0: the tile is in
 * registers. */
static int64_t bits_kept(const TlMmaOrder *o, int operand, uint32_t blocks)
{
    const TlValue *v = tl_in(o->dot, (uint32_t)operand);
    int64_t each = tl_dtype_bits(v->type->dtype)
                   << tl_layout_in_bits(o->fragment[operand], TL_IN_REG);
    return tl_late_get(v) ? each * blocks : 0;
}

/* By rows, the blocks of B are kept from one row to the next; by columns those of A. */
static bool goes_by_columns(TlArena *arena, const TlMmaOrder *o)
{
    TlMmaOrder rows = *o;
    find_blocks(arena, &rows, false);
    uint32_t columns = end_of_line(&rows, 0, false), lines = 1;
    for (uint32_t i = columns; i < rows.blocks.len && !rows.blocks.data[i].batch; i += columns)
        lines++;
    return bits_kept(o, TL_MMA_A, lines) < bits_kept(o, TL_MMA_B, columns);
}

TlMmaOrder tl_mma_order(TlArena *arena, const TlOp *dot, bool in_bursts)
{
    const TlType *a = tl_in(dot, TL_MMA_A)->type;
    TlMmaOrder o = {.mma = tl_mma_of(dot), .dot = dot};
    o.spread = tl_mma_is_spread(o.mma, tl_in(dot, TL_MMA_C)->type->layout);
    for (int i = 0; i < (int)dot->nin; i++)
        o.fragment[i] = tl_mma_fragment(arena, o.mma, i);
    bool by_columns = in_bursts && goes_by_columns(arena, &o);
    find_blocks(arena, &o, by_columns);
    for (int32_t k = 0; k < a->shape[a->rank - 1]; k += o.mma->k) {
        bool backward = false;
        for (uint32_t i = 0, end; i < o.blocks.len; i = end, backward = in_bursts && !backward) {
            end = end_of_line(&o, i, by_columns);
            for (uint32_t n = i; n < end; n++)
                tl_vec_push(arena, &o.issues, (TlMmaIssue){backward ? end - 1 - (n - i) : n, k});
        }
    }
    return o;
}

TlMmaBlock tl_mma_part(const TlMmaOrder *o, const TlMmaIssue *issue, int operand)
{
    TlMmaBlock b = o->blocks.data[issue->block];
    if (operand == TL_MMA_SA || operand == TL_MMA_SB)
        return (TlMmaBlock){b.batch, operand == TL_MMA_SA ? b.row : b.column,
                            issue->k / o->mma->each};
    if (operand == TL_MMA_A)
        return (TlMmaBlock){b.batch, b.row, issue->k};
    return operand == TL_MMA_B ? (TlMmaBlock){b.batch, issue->k, b.column} : b;
}

/* ---- registers ---- */

/* A register of a late operand: when it is taken first and last. */
typedef struct Taken {
    uint32_t first, last;
} Taken;

/* Adds the words that each burst holds of an operand to `words`, as differences; a word is counted
 * in `bits` of it. */
static void add_operand(TlArena *arena, const TlMmaOrder *o, int operand, uint32_t burst,
                        int64_t *bits)
{
    const TlType *t = tl_in(o->dot, (uint32_t)operand)->type;
    int64_t registers = tl_layout_registers(t->layout), size = tl_dtype_bits(t->dtype);
    uint32_t elements = 1u << tl_layout_in_bits(o->fragment[operand], TL_IN_REG);
    Taken *taken = TL_NEW_ARRAY(arena, Taken, (size_t)registers);
    for (int64_t r = 0; r < registers; r++)
        taken[r] = (Taken){UINT32_MAX, 0};
    for (uint32_t i = 0; i < o->issues.len; i++)
        for (uint32_t e = 0; e < elements; e++) {
            TlMmaBlock part = tl_mma_part(o, &o->issues.data[i], operand);
            int64_t r = tl_mma_register(o, operand, part, e);
            if (r < 0)
                continue;
            taken[r].first = i < taken[r].first ? i : taken[r].first;
            taken[r].last = i;
        }
    for (int64_t r = 0; r < registers; r++) {
        if (taken[r].first == UINT32_MAX)
            continue;
        uint32_t at = taken[r].first / burst;
        bits[at ? at - 1 : 0] += size;
        bits[taken[r].last / burst + 1] -= size;
    }
}

int64_t tl_mma_words(TlArena *arena, const TlMmaOrder *o, uint32_t burst)
{
    TL_ASSERT(burst > 0, "bursts of nothing");
    uint32_t bursts = (o->issues.len + burst - 1) / burst;
    int64_t *bits = TL_NEW_ARRAY(arena, int64_t, bursts + 1), now = 0, most = 0;
    for (uint32_t i = 0; i <= bursts; i++)
        bits[i] = 0;
    for (int operand = 0; operand < 2; operand++)
        if (tl_late_get(tl_in(o->dot, (uint32_t)operand)))
            add_operand(arena, o, operand, burst, bits);
    for (uint32_t i = 0; i < bursts; i++) {
        now += bits[i];
        most = now > most ? now : most;
    }
    return most / 32;
}
