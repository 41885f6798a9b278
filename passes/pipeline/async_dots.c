/* async-dots: products that warpgroups can do (ir/plan/async_dot.h) begin and are awaited, and
 * their operands are read from shared memory by the instruction itself.
 *
 *     %x = load %A, ...                        %x = load %A, ...
 *     %y = load %B, ...                        %a = alloc;  put %a, 0, %x
 *     %p = dot %x, %y, %r {warpgroup}    =>    %y = load %B, ...
 *                                              %b = alloc;  put %b, 0, %y
 *                                              %t = ready %r
 *                                              %u = dot_async %a, 0, %b, 0, %t
 *                                              %p = await %u {pending = 0}
 *
 *  1. Which: products that accelerate-dot has marked. B must be in shared memory: what is loaded,
 *     or computed, is put into a buffer, its rows along the axis in which memory counts up. So is
 *     A, if it is loaded, or if its way to the registers that the instruction takes it from costs
 *     as much (belongs_in_slot); else it stays in registers. Of products into tensor memory, A that
 *     is computed may be there, too, if that costs less (belongs_in_tensor). Transpositions in
 *     between are the instruction's, as far as it can (tl_async_piece); of 32 bits for wgmma,
 *     threads put squares that they hold (coalesce) as columns, and for tcgen05, where rows are
 *     shorter than it takes. Where that cannot be, or there is no room, each warp does the product
 *     with fragments of its own, as elsewhere.
 *  2. Products in a row onto one accumulator are all begun before the last is awaited: into tensor
 *     memory those of one kind, as others are in no order.
 *  3. An accumulator that a loop carries, and nobody else looks at, is carried as a token:
 *
 *     for ... (%acc) {                         %t = ready %init
 *       %t = ready %acc                        for ... (%t) {
 *       %u = dot_async ..., %t           =>      %u = dot_async ..., %t
 *       %p = await %u                            await {pending = 0}
 *       yield %p                                 yield %u
 *     }                                        }
 *
 *     `pipeline` lets the products of one iteration be pending when the next begins, where the
 *     slots that they read stay.
 *
 *  4. Where what a loop carries is multiplied by a tile before a product adds to it (attention),
 *     and it is in tensor memory, it stays there (RESCALE).
 *
 *  Products into tensor memory take both operands from buffers, and scales if they have some, as
 *  tensor_scales.h says: these products first, as no other instruction takes scales
 *  (scale_tensor.h). Their tokens are of type tensor, and the kernel has a `tensor` from its
 *  beginning to its end (allocate-tensor says where in it each product's sums are). Where operands
 *  cannot be in buffers, mma.sync does the product. */
#include "ir/plan/shared_plan.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "ir/plan/staged_plan.h"
#include "ir/plan/tensor_scales.h"
#include "ir/remark.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/layout/dot_warps.h"
#include "passes/layout/layout_cost.h"
#include "passes/layout/relayout.h"
#include "passes/pass.h"
#include <string.h>

enum { MOST_SPAN = 128, LEAST_SPAN = 32 }; /* bytes of a row in a buffer */

typedef struct AsyncDots {
    TlFn *fn;
    TlPassCtx *px;
    TlCtx *ctx;
    uint64_t bytes; /* of all buffers */
    const TlAxisInfo *axis;
    TlMap staged, scales; /* by value: as operands, as scales */
    int32_t columns;      /* of tensor memory that sums, scales and operands may have at once */
    bool changed, tensor; /* any product; one is into tensor memory */
} AsyncDots;

/* ---- 1. operands ---- */

static bool fits(const AsyncDots *a, const TlType *buf)
{
    return a->bytes + tl_buf_bytes(buf) + TL_SHARED_BUDGET <= a->px->machine->shared_bytes;
}

/* Can a warpgroup do it with these sides? */
static bool can_take(const AsyncDots *a, const TlOp *dot, const TlAsyncSide *sides)
{
    return tl_async_plan(a->px->scratch, tl_mma_of(dot), sides, dot->out[0]->type) != NULL;
}

static bool has_scales(const TlOp *dot)
{
    return dot->nin > TL_MMA_SA;
}

static bool is_into_tensor(const TlOp *dot)
{
    return tl_tensor_mma_of(tl_mma_of(dot)) != NULL;
}

/* Along which neighbours in memory lie; of what is computed, the last. Of 32 and 8 bits wgmma reads
 * rows along K only: where threads hold 4 elements of these, they put them. So they do what is
 * computed for tcgen05, and what is loaded where its rows are too short. Pairs are read along K. */
static int row_of(const AsyncDots *a, const TlOp *dot, const TlValue *v, int k_axis)
{
    enum { PIECE = 4 };
    int bits = tl_dtype_bits(v->type->dtype);
    bool loaded = v->def && v->def->opcode == TL_OP_LOAD, tensor = is_into_tensor(dot),
         any =
             bits == 16 || (bits == 8 && loaded && tensor) ||
             (bits == 32 && loaded && tensor && tl_tensor_reads_across(v->type->shape[1 - k_axis]));
    if (has_scales(dot) && v->type->dtype == TL_U8)
        return k_axis;
    if (!any && tl_holds_along(v->type->layout, k_axis, PIECE))
        return k_axis;
    if (!loaded && bits == 32 && tensor && tl_tensor_reads_across(v->type->shape[1 - k_axis]) &&
        tl_holds_along(v->type->layout, 1 - k_axis, PIECE))
        return 1 - k_axis;
    if (!loaded)
        return v->type->rank - 1;
    TlAccessInfo info = tl_access_info(a->axis, v->def);
    return info.dim >= 0 ? info.dim : v->type->rank - 1;
}

/* The buffer that a value is in, or would be; the value is put as soon as it is there, so that one
 * barrier does for several. */
typedef struct Staging {
    TlValue *v;
    const TlType *type; /* NULL: there is no room, or no instruction that reads it */
    TlOp *put;          /* NULL: not yet */
    TlValue as_if;      /* stands for the buffer until then */
} Staging;

static const TlType *image_of(const AsyncDots *a, const TlOp *dot, const TlValue *v, int row,
                              int k_axis)
{
    int piece = tl_async_piece(tl_mma_of(dot), tl_dtype_bytes(v->type->dtype), row != k_axis);
    return piece ? tl_staging_image_buf(a->ctx, a->px->scratch, v->type, row, piece) : NULL;
}

static bool can_read(const AsyncDots *a, const TlOp *dot, const TlType *buf, int k_axis)
{
    TlValue as_if = {.type = buf};
    TlAsyncSide as_a = {.buf = &as_if, .flipped = k_axis == 0};
    return buf && tl_async_reads(a->px->scratch, tl_mma_of(dot), TL_MMA_A, &as_a);
}

static Staging *staging_of(AsyncDots *a, const TlOp *dot, TlValue *v, int k_axis)
{
    Staging *s = tl_map_get_ptr(&a->staged, v);
    if (s)
        return s;
    s = TL_NEW(a->px->scratch, Staging);
    const TlType *buf = image_of(a, dot, v, row_of(a, dot, v, k_axis), k_axis);
    if (has_scales(dot) && !can_read(a, dot, buf, k_axis)) /* along K it can (scale_tensor.h) */
        buf = image_of(a, dot, v, k_axis, k_axis);
    *s = (Staging){.v = v, .type = buf};
    s->as_if.type = s->type;
    tl_map_put_ptr(&a->staged, v, s);
    return s;
}

static void stage(AsyncDots *a, Staging *s)
{
    if (s->put)
        return;
    TlBuilder b = tl_builder_after(s->v);
    TlValue *made = tl_op_new(&b, TL_OP_ALLOC, 0, NULL, 1, &s->type, 0, 0, NULL)->out[0];
    made->name = s->v->name;
    TlValue *in[] = {made, tl_const_int(&b, tl_type_scalar(a->ctx, TL_I32), 0), s->v};
    s->put = tl_op_new(&b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL);
    a->bytes += tl_buf_bytes(s->type);
}

/* The operand as it would be in a buffer; without one where that cannot be. */
static TlAsyncSide side_in_slot(AsyncDots *a, const TlOp *dot, int operand, Staging **out)
{
    TlAsyncSide side = {0};
    TlValue *v = tl_matrix_source(tl_in(dot, (uint32_t)operand), &side.flipped);
    *out = staging_of(a, dot, v, (operand == TL_MMA_A ? 1 : 0) ^ (int)side.flipped);
    bool room = (*out)->put || ((*out)->type && fits(a, (*out)->type));
    side.buf = room ? &(*out)->as_if : NULL;
    return side;
}

static Staging *staging_of_scales(AsyncDots *a, TlValue *v)
{
    Staging *s = tl_map_get_ptr(&a->scales, v);
    if (s)
        return s;
    s = TL_NEW(a->px->scratch, Staging);
    *s = (Staging){.v = v, .type = tl_tensor_scales_buf(a->ctx, a->px->scratch, v->type)};
    s->as_if.type = s->type;
    tl_map_put_ptr(&a->scales, v, s);
    return s;
}

/* What it takes of the buffer, which is there now. */
static void settle(TlAsyncSide *side, const Staging *s)
{
    side->buf = tl_in(s->put, 0);
    side->slot = tl_in(s->put, 1);
}

static TlValue *as_fragment(const AsyncDots *a, TlOp *dot, uint32_t operand)
{
    const TlLayout *l = tl_mma_operand_layout(a->ctx, dot, (int)operand, dot->out[0]->type->layout);
    TlBuilder b = tl_builder_before(dot);
    return tl_relayout(&b, tl_in(dot, operand), l);
}

/* Slots of a warp's scheduler (layout_cost.c) that it takes to put A, and for the instructions to
 * read it: 64 rows of 32 bytes, for four warps. */
static int64_t cost_in_slot(const AsyncDots *a, const TlOp *dot, const Staging *s)
{
    enum { RATE = 4, BARRIER = 64, WAVEFRONT = 128, ANY = 16 };
    const TlType *t = s->v->type, *c = dot->out[0]->type;
    int lanes = a->px->machine->lanes;
    TlMmaWarps w;
    bool known = tl_mma_warps(a->ctx, tl_mma_of(dot), c, c->layout, &w);
    TL_ASSERT(known, "'%s' has a product without warps", a->fn->name);
    int64_t steps = tl_in(dot, TL_MMA_A)->type->shape[1] / tl_mma_of(dot)->k;
    int64_t strips = TL_GROUP_WARPS * (int64_t)c->shape[0] / TL_GROUP_ROWS >> w.m;
    int64_t reads =
        RATE * strips * steps * TL_GROUP_ROWS * TL_GROUP_STEP / WAVEFRONT / TL_GROUP_WARPS;
    if (s->put)
        return reads;
    uint32_t flags = TL_BUF_WRITES | tl_buf_matrices(a->px->machine->matrix_8);
    const TlBufPlan *p = tl_buf_plan(a->px->scratch, t, s->type, ANY, flags);
    int64_t bytes = (int64_t)p->nregs * tl_dtype_bytes(t->dtype) * lanes;
    return reads + BARRIER + RATE * p->naccesses * ((bytes + WAVEFRONT - 1) / WAVEFRONT);
}

/* Is it computed, element by element, from another product's sums? */
static bool is_from_product(const AsyncDots *a, TlValue *v)
{
    TlMap seen;
    TL_VEC(TlValue *) work = {0};
    tl_map_init(&seen, a->px->scratch);
    tl_vec_push(a->px->scratch, &work, v);
    for (uint32_t i = 0; i < work.len; i++) {
        const TlOp *op = work.data[i]->def;
        if (op && (op->opcode == TL_OP_AWAIT || op->opcode == TL_OP_DOT))
            return true;
        bool each = op && (op->opcode == TL_OP_CONVERT ||
                           tl_op_info(op->opcode)->flags & (F_ELEM | F_VIEWLIKE));
        for (uint32_t k = 0; each && k < op->nin; k++) {
            if (tl_map_get_ptr(&seen, tl_in(op, k)))
                continue;
            tl_map_put_ptr(&seen, tl_in(op, k), tl_in(op, k));
            tl_vec_push(a->px->scratch, &work, tl_in(op, k));
        }
    }
    return false;
}

/* Is A better read from shared memory? What is loaded, as threads need not hold it; of what they
 * compute, where its way to the instruction's fragment goes through shared memory, too, and costs
 * more, or as much, and its registers besides. What is made of a product's sums stays in registers
 * then: the next product may begin while this one reads it. */
static bool belongs_in_slot(const AsyncDots *a, const TlOp *dot, const Staging *s)
{
    if (is_into_tensor(dot))
        return true;
    if (s->v->def && s->v->def->opcode == TL_OP_LOAD)
        return true;
    const TlType *c = dot->out[0]->type, *t = tl_in(dot, TL_MMA_A)->type;
    TlLayoutCost cost = tl_layout_costs(a->px);
    const TlLayout *l = tl_mma_operand_layout(a->ctx, dot, TL_MMA_A, c->layout);
    int64_t more = tl_layout_convert_cost(&cost, t, t->layout, l) - cost_in_slot(a, dot, s);
    return more > 0 || (more == 0 && !is_from_product(a, s->v));
}

/* ---- A in tensor memory ---- */

/* A tile's type there, in a layout in which threads put it: that of sums of as many columns, where
 * it has another one. NULL: there is none. */
static const TlType *type_of_a(const AsyncDots *a, const TlOp *dot)
{
    const TlType *t = tl_in(dot, TL_MMA_A)->type;
    const TlMma *mma = tl_mma_of(dot);
    TlMmaWarps w;
    const TlLayout *l = t->layout;
    if (!tl_tensor_takes_a(t) &&
        tl_mma_warps(a->ctx, mma, dot->out[0]->type, dot->out[0]->type->layout, &w)) {
        w.apart = true; /* so that words are a thread's */
        if (t->rank != 2 || t->shape[1] % (mma->n << w.n) != 0)
            return NULL; /* fewer columns than warps divide */
        l = tl_mma_layout(a->ctx, mma, TL_MMA_C, t, w, tl_floor_log2(a->fn->body->warps));
    }
    t = tl_type_tensor(a->ctx, t->dtype, t->rank, t->shape, l);
    return tl_tensor_takes_a(t) ? t : NULL;
}

/* Slots of a warp's scheduler, as cost_in_slot: to bring it to that layout, and to store its words,
 * each warp into its own lanes. */
static int64_t cost_in_tensor(const AsyncDots *a, const TlOp *dot, const TlType *there)
{
    enum { RATE = 1, WORD = 4 };
    const TlType *t = tl_in(dot, TL_MMA_A)->type;
    TlLayoutCost cost = tl_layout_costs(a->px);
    int64_t words = tl_layout_registers(there->layout) * tl_dtype_bytes(t->dtype) / WORD;
    return tl_layout_convert_cost(&cost, t, t->layout, there->layout) + RATE * words;
}

/* Is A, which no buffer has yet, better in tensor memory: what is computed, and costs less so? The
 * instruction then reads B alone from shared memory. NULL: it is not. */
static const TlType *belongs_in_tensor(AsyncDots *a, const TlOp *dot, const Staging *s)
{
    const TlType *there = is_into_tensor(dot) && !has_scales(dot) ? type_of_a(a, dot) : NULL;
    if (!there || s->put || (s->v->def && s->v->def->opcode == TL_OP_LOAD) ||
        a->columns + tl_tensor_columns(there) > TL_TENSOR_COLUMNS)
        return NULL;
    bool room = s->type && fits(a, s->type);
    int64_t cost = cost_in_tensor(a, dot, there), shared = room ? cost_in_slot(a, dot, s) : 0;
    tl_remark(a->fn, dot, TL_REMARK_A_THERE, cost + 1);
    if (room)
        tl_remark(a->fn, dot, TL_REMARK_A_SHARED, shared + 1);
    return !room || cost < shared ? there : NULL;
}

/* Threads put it there as soon as they have it. */
static void put_into_tensor(AsyncDots *a, const TlOp *dot, const TlType *there, TlAsyncSide *side)
{
    TlValue *v = tl_in(dot, TL_MMA_A);
    TlBuilder b = v->def && v->def->block == dot->block ? tl_builder_after(v)
                                                        : tl_builder_before((TlOp *)dot);
    TlValue *x = tl_relayout(&b, v, there->layout);
    *side =
        (TlAsyncSide){.tensor = tl_op_new(&b, TL_OP_READY, 1, &x, 1, &there, 0, 0, NULL)->out[0]};
    a->columns += tl_tensor_columns(there);
}

/* Operands and scales of a product that has some: there is room. */
static void find_sides_with_scales(AsyncDots *a, const TlOp *dot, TlAsyncSide *sides)
{
    Staging *staged[TL_ASYNC_SIDES];
    for (int i = 0; i < 2; i++) {
        sides[i] = side_in_slot(a, dot, i, &staged[i]);
        TlValue *scales = tl_in(dot, (uint32_t)(TL_MMA_SA + i));
        staged[TL_ASYNC_SCALES + i] = staging_of_scales(a, scales);
        sides[TL_ASYNC_SCALES + i] =
            (TlAsyncSide){.buf = &staged[TL_ASYNC_SCALES + i]->as_if};
    }
    TL_ASSERT(sides[0].buf && sides[1].buf && can_take(a, dot, sides),
              "'%s' has a product with scales that cannot be done", a->fn->name);
    for (int i = 0; i < TL_ASYNC_SIDES; i++) {
        stage(a, staged[i]);
        settle(&sides[i], staged[i]);
    }
}

/* A from shared memory or from registers. */
static bool find_sides(AsyncDots *a, TlOp *dot, TlAsyncSide *sides)
{
    Staging *staged[2];
    if (has_scales(dot)) {
        find_sides_with_scales(a, dot, sides);
        return true;
    }
    for (int i = 0; i < 2; i++)
        sides[i] = side_in_slot(a, dot, i, &staged[i]);
    TlValue as_if = {.type =
                         sides[TL_MMA_B].buf ? belongs_in_tensor(a, dot, staged[TL_MMA_A]) : NULL};
    TlAsyncSide there = {.tensor = &as_if}, both[] = {there, sides[TL_MMA_B]};
    if (!sides[TL_MMA_B].buf || (is_into_tensor(dot) && !sides[TL_MMA_A].buf && !as_if.type))
        return false;
    if (as_if.type && can_take(a, dot, both)) {
        put_into_tensor(a, dot, as_if.type, &sides[TL_MMA_A]);
    } else if (sides[TL_MMA_A].buf && can_take(a, dot, sides) &&
               belongs_in_slot(a, dot, staged[TL_MMA_A])) {
        stage(a, staged[TL_MMA_A]);
        settle(&sides[TL_MMA_A], staged[TL_MMA_A]);
    } else if (is_into_tensor(dot)) {
        return false;
    } else {
        sides[TL_MMA_A] = (TlAsyncSide){.tile = tl_in(dot, TL_MMA_A)};
        if (!can_take(a, dot, sides))
            return false;
        sides[TL_MMA_A].tile = as_fragment(a, dot, TL_MMA_A);
    }
    stage(a, staged[TL_MMA_B]);
    settle(&sides[TL_MMA_B], staged[TL_MMA_B]);
    return true;
}

/* The first instruction of a warp for these types. */
static const TlMma *instruction_of_warp(const AsyncDots *a, const TlDtype *types)
{
    uint32_t i = 0;
    while (i < tl_mma_count() && (memcmp(tl_mma_at(i)->type, types, 3 * sizeof *types) ||
                                  tl_mma_at(i)->each ||
                                  !tl_mma_has(a->px->machine->matrix, tl_mma_at(i))))
        i++;
    return tl_mma_at(i);
}

/* The sums are laid out as those of mma.sync; users go on with the layout that they had. */
static void leave_tensor(const AsyncDots *a, TlOp *dot)
{
    const TlMma *mma = instruction_of_warp(a, tl_mma_of(dot)->type);
    TlValue *out = dot->out[0];
    const TlLayout *outside = out->type->layout;
    int warps = a->fn->body->warps;
    TlDotShape shape = tl_dot_shape(dot, mma, warps, false);
    const TlLayout *l = tl_mma_layout(a->ctx, mma, TL_MMA_C, out->type, tl_warp_way(&shape).warps,
                                      tl_floor_log2(warps));
    TlBuilder before = tl_builder_before(dot), after = tl_builder_after(out);
    tl_set_operand(dot, TL_MMA_C, tl_relayout(&before, tl_in(dot, TL_MMA_C), l));
    tl_set_mma(a->fn, dot, mma, false);
    tl_set_layout(out, l);
    TlValue *seen = tl_relayout(&after, out, outside);
    for (TlUse *u = out->uses, *next; u; u = next) {
        next = u->next;
        if (u->user != seen->def)
            tl_set_operand(u->user, (uint32_t)(u - u->user->in), seen);
    }
}

/* No warpgroup does it: each warp does, with fragments of its own. */
static void give_up(const AsyncDots *a, TlOp *dot)
{
    if (is_into_tensor(dot))
        leave_tensor(a, dot);
    for (uint32_t i = 0; i < 2; i++)
        tl_set_operand(dot, i, as_fragment(a, dot, i));
    tl_set_mma(a->fn, dot, tl_mma_of(dot), false);
}

/* ---- 2. products ---- */

static const TlType *token_type(const AsyncDots *a, const TlOp *dot)
{
    const TlType *t = dot->out[0]->type;
    return is_into_tensor(dot) ? tl_type_tensor(a->ctx, t->dtype, t->rank, t->shape, t->layout)
                               : tl_type_token(a->ctx, t->dtype, t->rank, t->shape, t->layout);
}

/* The product that a token is of; NULL: none is on its way. */
static const TlOp *product_of(const TlValue *token)
{
    const TlOp *op = token->def;
    while (op && op->opcode != TL_OP_DOT_ASYNC) {
        if (op->opcode == TL_OP_RESCALE)
            op = tl_in(op, 0)->def;
        else if (op->opcode == TL_OP_FOR)
            op = tl_in(op->regions[0]->last, token->index)->def;
        else
            return NULL;
    }
    return op;
}

/* May the dot begin while the token's product, onto the same sums, goes on? */
static bool may_follow(const TlOp *dot, const TlValue *token)
{
    const TlOp *before = is_into_tensor(dot) ? product_of(token) : NULL;
    if (!before)
        return true;
    const TlMma *mma = tl_mma_find(tl_attr(before, TL_ATTR_MMA)->u.s);
    return strcmp(tl_tensor_mma_of(mma)->kind, tl_tensor_mma_of(tl_mma_of(dot))->kind) == 0;
}

/* The token of an accumulator: that of an AWAIT before, if nobody else wants its tile. */
static TlValue *token_of(AsyncDots *a, TlOp *dot, TlValue *acc)
{
    TlOp *await = acc->def;
    if (await && await->opcode == TL_OP_AWAIT && await->block == dot->block && await->nin == 1 &&
        tl_use_count(acc) == 1 && may_follow(dot, tl_in(await, 0)))
        return tl_in(await, 0);
    TlBuilder b = tl_builder_before(dot);
    const TlType *token = token_type(a, dot);
    return tl_op_new(&b, TL_OP_READY, 1, &acc, 1, &token, 0, 0, NULL)->out[0];
}

static TlOp *new_await(TlBuilder *b, TlValue *token, const TlType *tile)
{
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = 0};
    return tl_op_new(b, TL_OP_AWAIT, 1, &token, 1, &tile, 0, 1, &attr);
}

/* What a loop carries of the dot's sums, if it is multiplied by a tile before the dot adds to it,
 * and nothing else is done with it; *out_factor: the tile. NULL: it is not so. */
static TlValue *rescaled(const TlOp *dot, TlValue **out_factor)
{
    const TlOp *mul = tl_in(dot, TL_MMA_C)->def, *loop = dot->block->parent;
    const TlValue *out = dot->out[0];
    if (!is_into_tensor(dot) || !mul || mul->opcode != TL_OP_MUL || mul->block != dot->block ||
        tl_use_count(mul->out[0]) != 1 || !loop || loop->opcode != TL_OP_FOR ||
        tl_use_count(out) != 1 || out->uses->user != dot->block->last)
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        TlValue *x = tl_in(mul, i);
        bool carried = !x->def && x->block == dot->block && x->index && tl_use_count(x) == 1 &&
                       tl_in(dot->block->last, x->index - 1) == out;
        *out_factor = tl_in(mul, 1 - i);
        if (carried && (*out_factor)->type == x->type)
            return x;
    }
    return NULL;
}

/* The token that the dot adds to. */
static TlValue *token_before(AsyncDots *a, TlOp *dot)
{
    TlValue *factor, *carried = rescaled(dot, &factor);
    if (!carried)
        return token_of(a, dot, tl_in(dot, TL_MMA_C));
    TlBuilder b = tl_builder_before(dot);
    TlValue *token = token_of(a, dot, carried), *in[] = {token, factor};
    return tl_op_new(&b, TL_OP_RESCALE, 2, in, 1, &token->type, 0, 0, NULL)->out[0];
}

static void begin_dot(AsyncDots *a, TlOp *dot, const TlAsyncSide *sides)
{
    TlValue *acc = tl_in(dot, TL_MMA_C), *token = token_before(a, dot);
    TlValue *in[2 * TL_ASYNC_SIDES + 1];
    a->tensor |= is_into_tensor(dot);
    uint32_t n = 0, flipped = 0;
    for (uint32_t i = 0; i < TL_ASYNC_SIDES; i++) {
        const TlAsyncSide *s = &sides[i];
        if (tl_async_has(s))
            in[n++] = s->buf ? s->buf : s->tile ? s->tile : s->tensor;
        if (sides[i].buf)
            in[n++] = sides[i].slot;
        flipped |= sides[i].flipped ? 1u << i : 0;
    }
    in[n++] = token;
    TlBuilder b = tl_builder_before(dot);
    tl_set_mma(a->fn, dot, tl_mma_of(dot), false);
    const TlAttr *mma = tl_attr(dot, TL_ATTR_MMA);
    TlOp *made = tl_op_new(&b, TL_OP_DOT_ASYNC, n, in, 1, &token->type, 0, 1, mma);
    if (flipped)
        tl_attr_set_axis_bits(a->fn, made, TL_ATTR_FLIPPED, flipped);
    if (has_scales(dot) && tl_attr_flag(dot, TL_ATTR_UNSIGNED))
        tl_attr_set(a->fn, made, (TlAttr){.id = TL_ATTR_UNSIGNED});
    tl_remark_copy(a->fn, dot, made);
    TlOp *await = new_await(&b, made->out[0], dot->out[0]->type);
    await->out[0]->name = dot->out[0]->name;
    tl_replace_uses(dot->out[0], await->out[0]);
    tl_op_erase(dot);
    TlOp *made_acc = acc->def;
    if (made_acc && !acc->uses &&
        (made_acc->opcode == TL_OP_AWAIT || made_acc->opcode == TL_OP_MUL))
        tl_op_erase(made_acc);
    a->changed = true;
}

/* ---- 3. loops that carry tokens ---- */

/* The AWAIT of a product, or of the last of some in a row, onto the carried value i, which only it
 * sees, and whose result only the next iteration does. */
static TlOp *await_of(const TlOp *loop, uint32_t i)
{
    const TlBlock *body = loop->regions[0];
    TlValue *arg = body->args[i + 1], *next = tl_in(body->last, i);
    TlOp *await = next->def;
    if (!await || await->opcode != TL_OP_AWAIT || await->block != body || await->nin != 1 ||
        tl_use_count(next) != 1 || tl_use_count(arg) != 1 || arg->uses->user->opcode != TL_OP_READY)
        return NULL;
    TlValue *token = tl_in(await, 0);
    while (token->def && token->def->block == body)
        if (token->def->opcode == TL_OP_DOT_ASYNC)
            token = tl_async_dot(token->def).acc;
        else if (token->def->opcode == TL_OP_RESCALE)
            token = tl_in(token->def, 0);
        else
            break;
    return token->def == arg->uses->user ? await : NULL;
}

/* The carried values that become tokens, as bits. If there are products besides, only those whose
 * sums are in tensor memory: registers are not touched while products work on them. */
static uint64_t carried_tokens(const TlOp *loop)
{
    uint64_t found = 0, in_tensor = 0;
    uint32_t awaits = 0, all = 0;
    for (uint32_t i = 0; i < loop->nout && i < 64; i++) {
        const TlOp *await = await_of(loop, i);
        if (!await)
            continue;
        found |= 1ull << i;
        if (tl_in(await, 0)->type->kind == TL_TENSOR)
            in_tensor |= 1ull << i;
        awaits++;
    }
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        all += op->opcode == TL_OP_AWAIT;
    return all == awaits ? found : in_tensor;
}

/* The old argument was made ready: its token is the new argument; what is yielded is the token. */
static void carry_token(const TlOp *loop, uint32_t i, TlValue *arg)
{
    TlBlock *body = loop->regions[0];
    TlOp *await = await_of(loop, i), *ready = body->args[i + 1]->uses->user;
    tl_replace_uses(ready->out[0], arg);
    tl_op_erase(ready);
    tl_set_operand(body->last, i, tl_in(await, 0));
    tl_op_erase(await);
}

static void remake_loop(AsyncDots *a, TlOp *loop, uint64_t tokens)
{
    TlBlock *old = loop->regions[0];
    uint32_t n = loop->nout;
    TlValue **in = TL_NEW_ARRAY(a->px->scratch, TlValue *, n + 3);
    const TlType **types = TL_NEW_ARRAY(a->px->scratch, const TlType *, n + 1);
    TlBuilder b = tl_builder_before(loop);
    for (uint32_t i = 0; i < n + 3; i++)
        in[i] = tl_in(loop, i);
    for (uint32_t i = 0; i < n; i++) {
        types[i] = loop->out[i]->type;
        if (!(tokens >> i & 1))
            continue;
        types[i] = tl_in(await_of(loop, i), 0)->type;
        in[i + 3] = tl_op_new(&b, TL_OP_READY, 1, &in[i + 3], 1, &types[i], 0, 0, NULL)->out[0];
    }
    TlOp *made = tl_op_like(&b, loop, n + 3, in, n, types);
    TlBlock *body = made->regions[0];
    body->warps = old->warps;
    for (uint32_t i = 0; i <= n; i++) {
        TlValue *arg =
            tl_block_arg(body, i ? types[i - 1] : old->args[0]->type, old->args[i]->name);
        if (i && tokens >> (i - 1) & 1)
            carry_token(loop, i - 1, arg);
        else
            tl_replace_uses(old->args[i], arg);
    }
    TlAttr attr = {.id = TL_ATTR_PENDING, .u.i = 0};
    TlBuilder end = tl_builder_before(old->last);
    tl_op_new(&end, TL_OP_AWAIT, 0, NULL, 0, NULL, 0, 1, &attr);
    tl_block_move_ops(old, body, NULL);
    for (uint32_t i = 0; i < n; i++) {
        TlValue *out = made->out[i];
        if (tokens >> i & 1)
            out = new_await(&b, out, loop->out[i]->type)->out[0];
        out->name = loop->out[i]->name;
        tl_replace_uses(loop->out[i], out);
    }
    tl_op_erase(loop);
}

/* ---- tensor memory ---- */

static void make_tensor(const AsyncDots *a)
{
    static const int32_t shape[1] = {1};
    const TlLayout *l = tl_layout_intern(
        a->ctx, tl_layout_identity(a->px->scratch, 0, TL_IN_OFFSET, 1, 0));
    const TlType *t = tl_type_buf(a->ctx, TL_U64, 1, shape, l, TL_TENSOR_SLOTS);
    TlAttr columns = {.id = TL_ATTR_COLUMNS, .u.i = TL_TENSOR_COLUMNS};
    TlBuilder first = tl_builder_before(a->fn->body->first),
              last = tl_builder_before(a->fn->body->last);
    first.loc = last.loc = a->fn->loc;
    TlValue *made = tl_op_new(&first, TL_OP_TENSOR, 0, NULL, 1, &t, 0, 1, &columns)->out[0];
    tl_op_new(&last, TL_OP_TENSOR_END, 1, &made, 0, NULL, 0, 0, NULL);
}

/* ---- the pass ---- */

static void take_up(AsyncDots *a, TlOp *dot)
{
    TlAsyncSide sides[TL_ASYNC_SIDES] = {{0}};
    if (find_sides(a, dot, sides))
        begin_dot(a, dot, sides);
    else
        give_up(a, dot);
}

/* That a product's sums, and its scales, may have. */
static int32_t columns_of(const TlOp *dot)
{
    const TlType *c = dot->out[0]->type;
    int32_t columns = tl_tensor_columns_of(c->shape[0], c->shape[1]);
    for (uint32_t i = TL_MMA_SA; i < dot->nin; i++)
        columns += tl_tensor_scales_columns(tl_in(dot, i)->type);
    return columns;
}

TlPassResult tl_pass_async_dots(TlFn *fn, TlPassCtx *px)
{
    AsyncDots a = {.fn = fn, .px = px, .ctx = px->ctx};
    TL_VEC(TlOp *) dots = {0}, scaled = {0}, loops = {0};
    tl_map_init(&a.staged, px->scratch);
    tl_map_init(&a.scales, px->scratch);
    if (!px->machine->warpgroups || tl_fn_level(fn) == TL_LEVEL_TILE)
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode == TL_OP_ALLOC)
            a.bytes += tl_buf_bytes(op->out[0]->type);
        if (tl_is_warpgroup_dot(op) && has_scales(op))
            tl_vec_push(px->scratch, &scaled, op);
        else if (tl_is_warpgroup_dot(op))
            tl_vec_push(px->scratch, &dots, op);
        if (op->opcode == TL_OP_FOR)
            tl_vec_push(px->scratch, &loops, op);
    }
    if (dots.len + scaled.len == 0)
        return TL_SAME;
    a.axis = tl_pass_axis_info(fn, px);
    for (uint32_t i = 0; i < dots.len; i++)
        a.columns += is_into_tensor(dots.data[i]) ? columns_of(dots.data[i]) : 0;
    for (uint32_t i = 0; i < scaled.len; i++)
        a.columns += columns_of(scaled.data[i]);
    for (uint32_t i = 0; i < scaled.len; i++)
        take_up(&a, scaled.data[i]);
    for (uint32_t i = 0; i < dots.len; i++)
        take_up(&a, dots.data[i]);
    for (uint32_t i = loops.len; i-- > 0 && a.changed;) { /* inner ones first */
        uint64_t tokens = carried_tokens(loops.data[i]);
        if (tokens)
            remake_loop(&a, loops.data[i], tokens);
    }
    if (a.tensor)
        make_tensor(&a);
    tl_pass_dce(fn, px);
    return TL_CHANGED;
}
