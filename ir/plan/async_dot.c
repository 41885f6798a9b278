/* Products by warpgroups (async_dot.h). */
#include "ir/plan/async_dot.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/staged.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/tensor_scales.h"

/* What wgmma fixes: rows of a product, columns at the most, bytes of a step along k, warps (their
 * logarithm), rows of a core matrix of 16-byte pieces; bytes of a row of wide ones. */
enum { MOST_COLUMNS = 256, CORE_ROWS = 8, WIDE_SPAN = 128 };

/* ---- operands ---- */

TlAsyncDot tl_async_dot(const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_DOT_ASYNC, "%s is no product", tl_op_info(op->opcode)->text);
    TlAsyncDot d = {0};
    uint32_t at = 0, flipped = tl_attr_axis_bits(op, TL_ATTR_FLIPPED);
    for (uint32_t i = 0; i < 2; i++) {
        TlAsyncSide *s = &d.side[i];
        s->flipped = flipped >> i & 1;
        if (tl_in(op, at)->type->kind == TL_BUF) {
            s->buf = tl_in(op, at++);
            s->slot = tl_in(op, at++);
        } else if (tl_in(op, at)->type->kind == TL_TENSOR) {
            s->tensor = tl_in(op, at++);
        } else {
            s->tile = tl_in(op, at++);
        }
    }
    for (int i = TL_ASYNC_SCALES; i < TL_ASYNC_SIDES && tl_in(op, at)->type->kind == TL_BUF; i++) {
        d.side[i].buf = tl_in(op, at++);
        d.side[i].slot = tl_in(op, at++);
    }
    d.acc = tl_in(op, at);
    return d;
}

bool tl_async_has(const TlAsyncSide *s)
{
    return s->buf || s->tile || s->tensor;
}

TlDtype tl_async_side_shape(const TlAsyncSide *s, int32_t shape[2])
{
    const TlType *t = s->buf ? s->buf->type : s->tile ? s->tile->type : s->tensor->type;
    shape[0] = t->shape[s->flipped ? 1 : 0];
    shape[1] = t->shape[s->flipped ? 0 : 1];
    return t->dtype;
}

/* ---- buffers ---- */

/* Chunks lie one behind the other: rows of a single panel go on from one to the next. */
static bool rows_go_on(const TlType *buf, int row, int span)
{
    const TlLayout *l = buf->layout;
    int other = 1 - row, elem = tl_dtype_bytes(buf->dtype);
    if (l->reps[row] != 1 || 1 << l->out_bits[other] < CORE_ROWS)
        return false;
    return l->reps[other] == 1 || elem << l->out_bits[row] == span;
}

/* Rows along M or N: of 16 bits, and into tensor memory of 8, but no pairs, and of 32 in wide
 * pieces. */
int tl_async_piece(const TlMma *mma, int elem_bytes, bool across)
{
    bool tensor = tl_tensor_mma_of(mma) != NULL, pairs = mma->each && mma->type[TL_MMA_A] == TL_U8;
    TL_ASSERT(elem_bytes > 0, "elements of %d bytes", elem_bytes);
    if (across && elem_bytes == 4)
        return tensor ? TL_STAGING_WIDE_PIECE : 0;
    return !across || elem_bytes == 2 || (elem_bytes == 1 && tensor && !pairs) ? TL_STAGING_PIECE
                                                                               : 0;
}

bool tl_tensor_reads_across(int32_t n)
{
    enum { WORD_BYTES = 4 };
    return n >= WIDE_SPAN / WORD_BYTES && (n & (n - 1)) == 0;
}

/* Rows of a core matrix. */
static int rows_of_core(int piece)
{
    return CORE_ROWS * TL_STAGING_PIECE / piece;
}

static bool find_slot(TlArena *arena, const TlAsyncSide *s, int operand, const TlMma *mma,
                      TlAsyncSlot *out)
{
    int32_t k = mma->k;
    const TlType *buf = tl_buf_own(arena, s->buf->type);
    int elem = tl_dtype_bytes(buf->dtype), k_axis = operand == TL_MMA_A ? 1 : 0;
    k_axis ^= s->flipped;
    for (int row = 0; row < 2; row++)
        for (int span = 128; span >= TL_GROUP_STEP; span /= 2) {
            int piece = tl_async_piece(mma, elem, row != k_axis);
            if (!piece || (piece == TL_STAGING_WIDE_PIECE && span != WIDE_SPAN))
                continue;
            *out = (TlAsyncSlot){.span = span, .piece = piece, .across = row != k_axis};
            int32_t rows = tl_layout_extent(buf->layout, 1 - row);
            out->stride = (uint32_t)(rows_of_core(piece) * span);
            out->lead = (uint32_t)(out->across ? rows * span : 16);
            bool one = !out->across || tl_layout_extent(buf->layout, row) * elem <= span;
            if (one && tl_tensor_mma_of(mma))
                out->lead = 0; /* not read: Triton has 0 there, CUTLASS 1 for warpgroups */
            if (tl_staging_is_image(arena, buf, row, span, piece) && rows_go_on(buf, row, span) &&
                k * elem == TL_GROUP_STEP)
                return true;
        }
    return false;
}

uint32_t tl_async_offset(const TlAsyncSide *s, int operand, int32_t i, int32_t k)
{
    int32_t at[TL_LAYOUT_MAX_OUT] = {0};
    int k_axis = (operand == TL_MMA_A ? 1 : 0) ^ (int)s->flipped;
    at[k_axis] = k;
    at[1 - k_axis] = i;
    return (uint32_t)tl_buf_offset(s->buf->type, at);
}

/* The swizzles of tcgen05 are numbers of three bits, 2, 4, 6, where wgmma has two bits for 1, 2, 3;
 * 1 is that of wide pieces. */
uint64_t tl_async_descriptor(const TlMma *mma, const TlAsyncSlot *s)
{
    uint64_t mode = s->span == 128 ? 1 : s->span == 64 ? 2 : 3,
             tensor = tl_tensor_mma_of(mma) ? UINT64_C(1) << 46 : 0;
    mode = s->piece == TL_STAGING_WIDE_PIECE ? 1 : mode << 1;
    return mode << 61 | tensor | (uint64_t)(s->stride >> 4) << 32 | (uint64_t)(s->lead >> 4) << 16;
}

bool tl_async_reads(TlArena *arena, const TlMma *mma, int operand, const TlAsyncSide *side)
{
    TlAsyncSlot slot;
    TL_ASSERT(operand == TL_MMA_A || operand == TL_MMA_B, "operand %d", operand);
    return find_slot(arena, side, operand, mma, &slot);
}

/* ---- the plan ---- */

static bool has_instruction(const TlMma *mma)
{
    if (tl_tensor_mma_of(mma))
        return true;
    return mma->m == 16 && mma->n == 8 && mma->k * tl_dtype_bytes(mma->type[0]) == TL_GROUP_STEP &&
           mma->type[0] != TL_F64;
}

/* Columns that one instruction can have; of integers only multiples of 16 beyond 32; in tensor
 * memory, of 128 rows, multiples of 16, of 64 rows likewise where they are integers. */
static bool can_have(const TlMma *mma, int32_t n)
{
    const TlTensorMma *tensor = tl_tensor_mma_of(mma);
    if (tensor && tensor->rows == TL_TENSOR_LANES)
        return n % 16 == 0 && n <= MOST_COLUMNS;
    return n % 8 == 0 && n <= MOST_COLUMNS && (mma->type[2] != TL_I32 || n <= 32 || n % 16 == 0);
}

int32_t tl_async_columns(const TlMma *mma, int32_t columns, int32_t run)
{
    enum { LEAST = 16 }; /* of several instructions: each reads all of A */
    TL_ASSERT(mma && columns >= 0 && run >= 0, "%d columns", (int)columns);
    int32_t whole = mma->each ? TL_SCALES_COLUMN_ROWS : 1; /* each one's scales begin a column */
    for (int32_t n = run; n > 0; n--)
        if (run % n == 0 && can_have(mma, n) && (n == columns || (n >= LEAST && n % whole == 0)))
            return n;
    return 0;
}

static bool find_warps(TlAsyncPlan *p, const TlType *acc, TlMmaWarps *out)
{
    const TlLayout *l = acc->layout;
    int warp = tl_layout_in_index(l, TL_IN_WARP), bits = l->in_bits[warp];
    *out = (TlMmaWarps){0};
    for (int b = 0; b < bits; b++) {
        const int32_t *image = l->basis[warp][b];
        out->m += image[0] != 0;
        out->n += image[1] != 0;
        if (b < TL_GROUP_WARP_BITS && image[0] != p->mma->m << b)
            return false;
        if (b >= TL_GROUP_WARP_BITS) {
            p->warp_row[p->warp_bits] = image[0];
            p->warp_column[p->warp_bits++] = image[1];
        }
    }
    return bits >= TL_GROUP_WARP_BITS && out->m + out->n == bits;
}

/* Does thread 0 have a part of every 8 columns of the strip? Of warps that share N, each has every
 * other 8. */
static bool has_strip(const TlAsyncPlan *p, const TlLayout *l, int32_t row, int32_t column)
{
    enum { COLUMNS = 8 };
    for (int32_t c = 0; c < p->n; c += COLUMNS) {
        int32_t at[TL_LAYOUT_MAX_OUT] = {row, column + c};
        if (tl_layout_register_at(l, at) < 0)
            return false;
    }
    return true;
}

/* How many columns of a warpgroup lie side by side, from the first on. */
static int32_t columns_side_by_side(const TlAsyncPlan *p, const TlLayout *l, int32_t columns)
{
    TlAsyncPlan part = *p;
    for (part.n = columns; part.n > 0; part.n--)
        if (columns % part.n == 0 && has_strip(&part, l, 0, 0))
            break;
    return part.n;
}

/* The strips of thread 0, in registers that follow the instruction's pattern. */
static bool find_strips(TlArena *arena, TlAsyncPlan *p, const TlType *acc, TlMmaWarps w)
{
    const TlLayout *l = acc->layout;
    int32_t columns = acc->shape[1] >> w.n, rows = acc->shape[0];
    for (int d = 0; d < 2; d++)
        if (tl_layout_extent(l, d) != acc->shape[d])
            return false;
    p->n = tl_async_columns(p->mma, columns, columns_side_by_side(p, l, columns));
    if (rows % (p->mma->m << w.m) || !p->n)
        return false;
    for (int32_t row = 0; row < rows; row += TL_GROUP_ROWS)
        for (int32_t column = 0; column < acc->shape[1]; column += p->n)
            if (has_strip(p, l, row, column))
                tl_vec_push(arena, &p->strips, ((TlAsyncStrip){row, column}));
    return p->strips.len == (uint32_t)(rows / (p->mma->m << w.m) * (columns / p->n));
}

/* All strips of the accumulator, in whose layout the first four warps have the rows of a strip. */
static bool find_tensor_strips(TlArena *arena, TlAsyncPlan *p, const TlType *acc)
{
    for (int d = 0; d < 2; d++)
        if (tl_layout_extent(acc->layout, d) != acc->shape[d])
            return false;
    int32_t rows = tl_tensor_mma_of(p->mma)->rows;
    p->n = tl_async_columns(p->mma, acc->shape[1], acc->shape[1]);
    if (acc->shape[0] % rows || rows != tl_tensor_rows(acc->shape[0]) || !p->n ||
        tl_tensor_columns(acc) > TL_TENSOR_COLUMNS)
        return false;
    for (int32_t row = 0; row < acc->shape[0]; row += rows)
        for (int32_t column = 0; column < acc->shape[1]; column += p->n)
            tl_vec_push(arena, &p->strips, ((TlAsyncStrip){row, column}));
    return true;
}

/* Are both there, as they must be? */
static bool has_scales(TlArena *arena, const TlAsyncSide *sides)
{
    for (int i = TL_ASYNC_SCALES; i < TL_ASYNC_SIDES; i++)
        if (!sides[i].buf || !tl_tensor_is_scales(arena, sides[i].buf->type))
            return false;
    return true;
}

/* Does a pair of programs do it, each with its own rows of A and half of the columns of B; if so,
 * can it? Of rows there are as many as lanes, all columns are one instruction's, and the halves are
 * each program's image. */
static bool find_pair(TlAsyncPlan *p, const TlAsyncSide *sides, const TlType *acc)
{
    enum { COLUMNS = 32 }; /* what N is a multiple of, of integers, too */
    const TlType *a = sides[TL_MMA_A].buf ? sides[TL_MMA_A].buf->type : NULL,
                 *b = sides[TL_MMA_B].buf->type;
    int axis = sides[TL_MMA_B].flipped ? 0 : 1;
    p->pair = b->halved != 0;
    if (!p->pair)
        return !a || !a->halved;
    const TlTensorMma *tensor = tl_tensor_mma_of(p->mma);
    return a && !a->halved && tensor && tensor->rows == TL_TENSOR_LANES && !p->mma->each &&
           b->halved == axis + 1 && b->layout->reps[1 - axis] == 1 &&
           b->layout->reps[axis] % 2 == 0 && p->n == acc->shape[1] && p->n % COLUMNS == 0;
}

TlAsyncPlan *tl_async_plan(TlArena *arena, const TlMma *mma, const TlAsyncSide *sides,
                           const TlType *acc)
{
    TlAsyncPlan *p = TL_NEW(arena, TlAsyncPlan);
    TlMmaWarps warps;
    int32_t a[2];
    tl_async_side_shape(&sides[TL_MMA_A], a);
    *p = (TlAsyncPlan){.mma = mma, .k = a[1]};
    if (acc->rank != 2 || !has_instruction(mma) || p->k % mma->k || sides[TL_MMA_B].tile)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (sides[i].buf && !find_slot(arena, &sides[i], i, mma, &p->slot[i]))
            return NULL;
    if (!find_warps(p, acc, &warps))
        return NULL;
    bool tensor = tl_tensor_mma_of(mma) != NULL;
    const TlValue *a_there = sides[TL_MMA_A].tensor;
    if ((tensor && sides[TL_MMA_A].tile) || sides[TL_MMA_B].tensor ||
        (a_there && (!tensor || mma->each || !tl_tensor_takes_a(a_there->type))))
        return NULL;
    bool found = tensor ? find_tensor_strips(arena, p, acc) : find_strips(arena, p, acc, warps);
    if (!found || !find_pair(p, sides, acc))
        return NULL;
    return !mma->each || has_scales(arena, sides) ? p : NULL;
}

/* ---- in tensor memory ---- */

/* PTX ISA, "Instruction descriptor". Where there are scales, sums are f32 anyway. */
uint32_t tl_tensor_instruction(const TlAsyncPlan *p, int32_t k)
{
    const TlTensorMma *t = tl_tensor_mma_of(p->mma);
    TL_ASSERT(t && k % p->mma->k == 0, "%s is not in tensor memory", p->mma->name);
    uint32_t of_all = (uint32_t)t->code[TL_MMA_A] << 7 | (uint32_t)t->code[TL_MMA_B] << 10 |
                      (uint32_t)p->slot[TL_MMA_A].across << 15 |
                      (uint32_t)p->slot[TL_MMA_B].across << 16 | (uint32_t)p->n >> 3 << 17 |
                      (uint32_t)(t->rows << (int)p->pair) >> 4 << 24;
    if (!p->mma->each)
        return of_all | (uint32_t)t->code[TL_MMA_C] << 4;
    uint32_t byte = (uint32_t)(k / p->mma->each % TL_SCALES_WORD),
             e8m0 = p->mma->type[TL_MMA_SA] == TL_U8;
    return of_all | byte << 4 | e8m0 << 23 | byte << 29;
}

bool tl_tensor_is_pair(uint32_t instruction)
{
    return (instruction >> 24 & 31) << 4 > TL_TENSOR_LANES;
}

enum { WORD = 4 };

int32_t tl_tensor_columns(const TlType *t)
{
    return tl_tensor_columns_of(t->shape[0], t->shape[1]) * tl_dtype_bytes(t->dtype) / WORD;
}

int32_t tl_tensor_column(const TlType *t, int32_t row, int32_t column)
{
    int32_t elems = row / tl_tensor_rows(t->shape[0]) * t->shape[1] + column;
    return elems * tl_dtype_bytes(t->dtype) / WORD;
}

bool tl_tensor_has_columns(const TlMma *mma, int32_t n, int bits)
{
    TL_ASSERT(bits >= 0, "%d bits", bits);
    return (n & -n) >> bits >= mma->n && tl_async_columns(mma, n, n);
}

/* Lanes and the first warps along the rows of 128 lanes; the first registers are a word's. */
bool tl_tensor_takes_a(const TlType *t)
{
    const TlLayout *l = t->layout;
    int bits = tl_dtype_bits(t->dtype), per = bits ? WORD * 8 / bits : 0;
    if (!l || t->rank != 2 || bits < 8 || t->shape[0] % TL_TENSOR_LANES || t->shape[1] % per)
        return false;
    int reg = tl_layout_in_index(l, TL_IN_REG), lane = tl_layout_in_index(l, TL_IN_LANE),
        warp = tl_layout_in_index(l, TL_IN_WARP), lanes = l->in_bits[lane];
    if (TL_TENSOR_LANES >> TL_GROUP_WARP_BITS != 1 << lanes ||
        l->in_bits[warp] < TL_GROUP_WARP_BITS || 1 << l->in_bits[reg] < per)
        return false;
    for (int b = 0; 1 << b < TL_TENSOR_LANES; b++) {
        const int32_t *image = b < lanes ? l->basis[lane][b] : l->basis[warp][b - lanes];
        if (image[0] != 1 << b || image[1])
            return false;
    }
    for (int b = 0; 1 << b < per; b++)
        if (l->basis[reg][b][0] || l->basis[reg][b][1] != 1 << b)
            return false;
    for (int d = 0; d < 2; d++)
        if (tl_layout_extent(l, d) != t->shape[d])
            return false;
    return true;
}

bool tl_tensor_is_a(const TlValue *v)
{
    const TlUse *u = v->uses;
    return u && u->user->opcode == TL_OP_DOT_ASYNC &&
           tl_async_dot(u->user).side[TL_MMA_A].tensor == v;
}

bool tl_tensor_awaits_tokens(const TlOp *await)
{
    return await->opcode == TL_OP_AWAIT && await->nin && tl_in(await, 0)->type->kind == TL_TENSOR &&
           tl_attr_int(await, TL_ATTR_PENDING, 0) > 0;
}

bool tl_tensor_meets_at(const TlOp *await)
{
    TL_ASSERT(await->opcode == TL_OP_AWAIT, "%s is no await", tl_op_info(await->opcode)->text);
    const TlOp *op = await->nin ? NULL : await->next;
    while (op && op->opcode != TL_OP_RESCALE &&
           !(op->opcode == TL_OP_READY && tl_tensor_is_a(op->out[0])))
        op = op->next;
    return !await->nin && !op;
}

TlOp *tl_tensor_root(const TlValue *v)
{
    TL_ASSERT(v->type->kind == TL_TENSOR, "value %u is not in tensor memory", v->id);
    while (!v->def || v->def->opcode != TL_OP_READY) {
        const TlOp *op = v->def;
        if (op && op->opcode == TL_OP_DOT_ASYNC)
            v = tl_async_dot(op).acc;
        else if (op && op->opcode == TL_OP_RESCALE)
            v = tl_in(op, 0);
        else if (op && op->opcode == TL_OP_FOR)
            v = tl_in(op, v->index + 3);
        else if (!op && v->block->parent && v->block->parent->opcode == TL_OP_FOR && v->index)
            v = tl_in(v->block->parent, v->index + 2);
        else
            TL_UNREACHABLE("value %u comes from nowhere", v->id);
    }
    return v->def;
}
