/* Lowering of products whose sums are in tensor memory (ir/plan/async_dot.h): one thread begins
 * them, and a barrier counts when they are done.
 *
 *     tensor        warp 0 asks for the columns; the barriers are made
 *     ready         threads store the tile there, if it is not zeros: then the first product does
 *                   not add. All threads' reads of what was there are over: a barrier, if they
 *                   have not met since
 *                   What a product takes as A is stored, as words; threads meet behind it, unless
 *                   a rescale before the product does it
 *     dot_async     a thread of warp 0 begins the instructions of all strips and steps of k, the
 *                   steps outermost. Where an await follows in its block, the last of some in a
 *                   row commits them, as a group: number n to barrier n % TL_TENSOR_BARS
 *                   Of one with scales, the thread first brings these to tensor memory, from where
 *                   instructions take them
 *     rescale       threads multiply what their lanes have, if any factor of their warp is not 1,
 *                   and meet: the next product may begin
 *     arrive        with products: the same thread commits them to the slot's barrier
 *     await         where no product stands before it in its block, all that have begun are
 *                   committed, as a group. All threads wait for the barrier of the latest group
 *                   that must be done, or, if later ones may go on, for the groups of its tokens,
 *                   and take what their lanes have of the tile
 *     tensor_end    warp 0 gives the columns back
 *
 * With `pair`, products are those of two programs, the first of which begins them: its threads do
 * what is said of that thread above, commits arrive at the barriers of both, and where threads of
 * one program have to be through with sums, those of both have: one of each arrives at a barrier of
 * the first, whose warp 0 waits for it. Both programs do all this equally often.
 *
 * A value of type tensor is one i1: is something there? Where it is is known: the READY that it
 * comes from says so. How many groups there were, each thread counts; waits are by the parity of
 * the barrier's phase, so that a thread must have waited for group n - TL_TENSOR_BARS before group
 * n is committed: it does so where no await says it, and at an await in a loop all threads meet.
 * That a later group is done does not say that an earlier one has arrived: arrivals at two barriers
 * come in any order. So behind a loop an await also waits for groups that those in it left. */
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/async_dot.h"
#include "ir/plan/tensor_scales.h"
#include "ir/plan/staged.h"

enum { UNIT = 16, BAR_BYTES = 8, MOST_AT_ONCE = 64, WARP_LANES = 32, LANE_SHIFT = 16 };
enum { BEFORE = 0, AFTER = 1 };
enum { PAIR_BAR = TL_TENSOR_SLOTS }; /* where both programs of a pair arrive: the first one's */

struct TlSimtTensor {
    const TlOp *op;
    uint32_t bars;        /* offset of the first */
    LLVMValueRef address; /* of the columns */
    const TlOp *met;      /* the latest READY behind which threads have met, right then */
    LLVMValueRef commits; /* where the number of groups is */
    bool pair;
    LLVMValueRef meetings;                 /* and that of meetings of a pair */
    LLVMValueRef group[TL_TENSOR_COLUMNS]; /* and that of the latest product onto sums that begin
                                            * with the column, where an await asks for it */
};

bool tl_simt_tensor_is_pair(const TlSimt *g)
{
    return g->tensor && g->tensor->pair;
}

LLVMValueRef tl_simt_is_first_of_pair(TlSimt *g)
{
    LLVMValueRef rank = tl_simt_leaf(g, TL_LEAF_CLUSTER_RANK, 0, NULL);
    return LLVMBuildICmp(g->b, LLVMIntEQ, rank, tl_simt_i32(g, 0), "");
}

static void fence(TlSimt *g, uint32_t when)
{
    LLVMValueRef arg = tl_simt_i32(g, when);
    tl_simt_leaf(g, TL_LEAF_TENSOR_FENCE, 1, &arg);
}

/* All threads come here. What they did with tensor memory is over, for who passes a fence behind
 * this. */
static void meet(TlSimt *g)
{
    fence(g, BEFORE);
    tl_simt_barrier(g);
}

/* ---- the program's columns ---- */

/* A branch of warp 0, at whose end the builder then stands; *out_join: behind it. leads: of a pair
 * that of the first program only. */
static void begin_warp(TlSimt *g, bool leads, LLVMBasicBlockRef *out_join)
{
    LLVMBasicBlockRef first = tl_gen_block(&g->gen, "first");
    *out_join = tl_gen_block(&g->gen, "join");
    LLVMValueRef is_first = tl_simt_is_first_warp(g);
    if (leads && g->tensor->pair)
        is_first = LLVMBuildAnd(g->b, is_first, tl_simt_is_first_of_pair(g), "");
    LLVMBuildCondBr(g->b, is_first, first, *out_join);
    LLVMPositionBuilderAtEnd(g->b, first);
}

static void begin_first_warp(TlSimt *g, LLVMBasicBlockRef *out_join)
{
    begin_warp(g, false, out_join);
}

static void end_first_warp(TlSimt *g, LLVMBasicBlockRef join)
{
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

static LLVMValueRef bar_at(TlSimt *g, uint32_t i)
{
    return tl_simt_i32(g, g->tensor->bars + i * BAR_BYTES);
}

static LLVMValueRef is_first_thread(TlSimt *g)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, g->thread.tid, tl_simt_i32(g, 0), "");
}

static LLVMValueRef programs_of(TlSimt *g)
{
    return tl_simt_i32(g, g->tensor->pair ? 2 : 1);
}

static LLVMValueRef columns_of(TlSimt *g)
{
    return tl_simt_i32(g, (uint32_t)tl_attr_int(g->tensor->op, TL_ATTR_COLUMNS, 0));
}

/* A counter of the thread's, which is in a register in the end. */
static LLVMValueRef new_counter(TlSimt *g, int first)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(g->prologue));
    LLVMValueRef at = LLVMBuildAlloca(g->b, g->i32, "groups");
    LLVMBuildStore(g->b, tl_simt_i32(g, (uint32_t)first), at);
    LLVMPositionBuilderAtEnd(g->b, here);
    return at;
}

static LLVMValueRef group_of(TlSimt *g, const TlValue *token)
{
    int64_t column = tl_attr_int(tl_tensor_root(token), TL_ATTR_COLUMN, 0);
    LLVMValueRef *group = &g->tensor->group[column];
    if (!*group)
        *group = new_counter(g, -1);
    return *group;
}

void tl_simt_tensor(TlSimt *g, const TlOp *op)
{
    LLVMBasicBlockRef join;
    int64_t at = tl_attr_int(op, TL_ATTR_SHARED, -1);
    TL_ASSERT(at >= 0, "'%s' has barriers without a place", g->fn->name);
    g->tensor = TL_NEW(g->arena, struct TlSimtTensor);
    *g->tensor = (struct TlSimtTensor){.op = op,
                                       .bars = (uint32_t)at,
                                       .commits = new_counter(g, 0),
                                       .pair = tl_attr_flag(op, TL_ATTR_PAIR)};
    if (g->tensor->pair) {
        LLVMValueRef args[] = {is_first_thread(g), bar_at(g, PAIR_BAR), tl_simt_i32(g, 2)};
        g->tensor->meetings = new_counter(g, 0);
        tl_simt_leaf(g, TL_LEAF_MBAR_INIT, 3, args);
    }
    for (uint32_t i = 0; i < TL_TENSOR_BARS; i++) {
        LLVMValueRef args[] = {is_first_thread(g), bar_at(g, i), tl_simt_i32(g, 1)};
        tl_simt_leaf(g, TL_LEAF_MBAR_INIT, 3, args);
    }
    LLVMValueRef address = bar_at(g, TL_TENSOR_BARS),
                 args[] = {address, columns_of(g), programs_of(g)};
    begin_first_warp(g, &join);
    tl_simt_leaf(g, TL_LEAF_TENSOR_ALLOC, 3, args);
    end_first_warp(g, join);
    if (g->tensor->pair) { /* commits arrive at the other's barriers */
        fence(g, BEFORE);
        tl_simt_leaf(g, TL_LEAF_MEET, 0, NULL);
        fence(g, AFTER);
    } else {
        meet(g);
    }
    g->tensor->address = tl_simt_leaf(g, TL_LEAF_LDS_32, 1, &address);
}

void tl_simt_tensor_end(TlSimt *g, const TlOp *op)
{
    LLVMBasicBlockRef join;
    TL_ASSERT(tl_in(op, 0)->def == g->tensor->op, "'%s' ends another's columns", g->fn->name);
    meet(g);
    LLVMValueRef args[] = {g->tensor->address, columns_of(g), programs_of(g)};
    begin_first_warp(g, &join);
    fence(g, AFTER);
    tl_simt_leaf(g, TL_LEAF_TENSOR_FREE, 3, args);
    end_first_warp(g, join);
    if (g->tensor->pair) /* the other program may arrive until the cluster meets */
        return;
    for (uint32_t i = 0; i < TL_TENSOR_BARS; i++) {
        LLVMValueRef bar[] = {is_first_thread(g), bar_at(g, i)};
        tl_simt_leaf(g, TL_LEAF_MBAR_END, 2, bar);
    }
}

/* ---- lanes of threads ---- */

/* The first column that the current warp has of the accumulator: what the bits of its number add to
 * it, which may be no powers of two. */
static LLVMValueRef column_of_warp(TlSimt *g, const TlType *t)
{
    const TlLayout *l = t->layout;
    int w = tl_layout_in_index(l, TL_IN_WARP);
    LLVMValueRef column = tl_simt_i32(g, 0);
    for (int b = TL_GROUP_WARP_BITS; b < l->in_bits[w]; b++) {
        int32_t adds = tl_tensor_column(t, l->basis[w][b][0], l->basis[w][b][1]);
        if (!adds)
            continue;
        LLVMValueRef bit = LLVMBuildLShr(g->b, tl_simt_uniform_warp(g),
                                         tl_simt_i32(g, (uint32_t)b), "");
        bit = LLVMBuildAnd(g->b, bit, tl_simt_i32(g, 1), "");
        bit = LLVMBuildMul(g->b, bit, tl_simt_i32(g, (uint32_t)adds), "");
        column = LLVMBuildAdd(g->b, column, bit, "");
    }
    return column;
}

/* What the current warp begins with: its lanes, the first column of the value. */
static LLVMValueRef address_of_warp(TlSimt *g, const TlType *t, const TlOp *root)
{
    LLVMValueRef warp = LLVMBuildAnd(g->b, tl_simt_uniform_warp(g),
                                     tl_simt_i32(g, TL_GROUP_WARPS - 1), ""),
                 lanes = LLVMBuildMul(g->b, warp, tl_simt_i32(g, WARP_LANES << LANE_SHIFT), "");
    LLVMValueRef first = tl_simt_i32(g, (uint32_t)tl_attr_int(root, TL_ATTR_COLUMN, 0));
    LLVMValueRef at = LLVMBuildAdd(g->b, g->tensor->address, first, "");
    at = LLVMBuildAdd(g->b, at, column_of_warp(g, t), "");
    return LLVMBuildAdd(g->b, at, lanes, "");
}

/* Has each warp 16 rows of a product of 64, as fragments? */
static bool is_half(const TlType *t)
{
    return tl_tensor_rows(t->shape[0]) < TL_TENSOR_LANES;
}

/* Elements of a word. */
static int per_word(const TlType *t)
{
    enum { WORD = 4 };
    return WORD / tl_dtype_bytes(t->dtype);
}

/* Registers from `from` on whose columns follow each other, a power of two, at most `most`;
 * *out_column: the first one's. Of fragments 4 have 8 columns. */
static unsigned run_of(const TlType *t, int64_t from, int64_t most, int32_t *out_column)
{
    enum { FRAGMENT = 4, FRAGMENT_COLUMNS = 8 };
    int64_t all = tl_layout_registers(t->layout), n = 0;
    int each = is_half(t) ? FRAGMENT : per_word(t), columns = is_half(t) ? FRAGMENT_COLUMNS : 1;
    for (int64_t r = from; r < all && n * each < most; r += each, n++) {
        int32_t x[TL_LAYOUT_MAX_OUT];
        uint32_t in[TL_LAYOUT_MAX_IN] = {0};
        tl_layout_apply_reg(t->layout, r, in, x);
        int32_t column = tl_tensor_column(t, x[0], x[1]);
        if (r == from)
            *out_column = column;
        else if (column != *out_column + n * columns)
            break;
    }
    return (unsigned)each << tl_floor_log2((int)n);
}

/* ---- what comes in ---- */

static bool are_zeros(LLVMValueRef *x, int64_t n)
{
    bool zeros = true;
    for (int64_t i = 0; i < n && zeros; i++)
        zeros = LLVMIsNull(x[i]);
    return zeros;
}

static void set_filled(TlSimt *g, const TlValue *v, LLVMValueRef filled)
{
    g->regs[v->id] = TL_NEW_ARRAY(g->arena, LLVMValueRef, 1);
    g->regs[v->id][0] = filled;
}

void tl_simt_tensor_passed(TlSimt *g, const TlOp *loop, LLVMValueRef trips)
{
    for (uint32_t i = 0; i < loop->nout; i++) {
        const TlValue *init = tl_in(loop, i + 3);
        if (init->type->kind == TL_TENSOR)
            set_filled(g, loop->out[i], LLVMBuildOr(g->b, tl_simt_regs(g, init)[0], trips, ""));
    }
}

/* n registers of a value of type t, whose columns follow each other. */
static void store_run(TlSimt *g, const TlType *t, LLVMValueRef base, int32_t column, unsigned n,
                      LLVMValueRef *x)
{
    LLVMValueRef args[TL_SIMT_MOST_ARGS];
    unsigned per = (unsigned)per_word(t), words = n / per;
    args[0] = LLVMBuildAdd(g->b, base, tl_simt_i32(g, (uint32_t)column), "");
    for (unsigned i = 0; i < words; i++)
        args[1 + i] = per > 1 ? tl_simt_pack(g, t, (int)per, x + i * per) : x[i];
    tl_simt_leaf_words(g, is_half(t) ? TL_LEAF_TENSOR_ST_16 : TL_LEAF_TENSOR_ST, 1 + words, args,
                       words);
}

static void store(TlSimt *g, const TlOp *op, LLVMValueRef *x)
{
    const TlType *t = op->out[0]->type;
    LLVMValueRef base = address_of_warp(g, t, op);
    int64_t all = tl_simt_count(tl_in(op, 0));
    int32_t column = 0;
    unsigned n;
    fence(g, AFTER);
    for (int64_t r = 0; r < all; r += n) {
        n = run_of(t, r, MOST_AT_ONCE * per_word(t), &column);
        store_run(g, t, base, column, n, x + r);
    }
}

/* Of what a product takes as A: a rescale between it and the product meets. */
static bool meets_later(const TlOp *op)
{
    while (op && op->opcode != TL_OP_DOT_ASYNC && op->opcode != TL_OP_RESCALE)
        op = op->next;
    return op && op->opcode == TL_OP_RESCALE;
}

/* What the threads do with columns: take sums; or they meet behind what they have done. */
typedef enum Touch { NOTHING, TOUCHES, MEETS } Touch;

static bool shares_columns(const TlOp *ready, const TlOp *other)
{
    int64_t a = tl_attr_int(ready, TL_ATTR_COLUMN, 0), b = tl_attr_int(other, TL_ATTR_COLUMN, 0);
    return a < b + tl_tensor_columns(other->out[0]->type) &&
           b < a + tl_tensor_columns(ready->out[0]->type);
}

static bool takes_columns(const TlOp *op, const TlOp *ready)
{
    bool takes = false;
    for (uint32_t i = 0; op->opcode == TL_OP_AWAIT && i < op->nin; i++)
        takes |= shares_columns(ready, tl_tensor_root(tl_in(op, i)));
    return takes ||
           (op->opcode == TL_OP_READY && tl_tensor_is_a(op->out[0]) && shares_columns(ready, op));
}

static Touch touch_of(const TlOp *op, const TlOp *ready)
{
    if (op->opcode == TL_OP_RESCALE || op->opcode == TL_OP_TENSOR ||
        (op->opcode == TL_OP_READY && tl_tensor_is_a(op->out[0]) && !meets_later(op)))
        return MEETS;
    bool takes = takes_columns(op, ready);
    for (const TlOp *in = op->nregions ? tl_walk_next(op, op) : NULL; in; in = tl_walk_next(in, op))
        takes |= takes_columns(in, ready);
    return takes ? TOUCHES : NOTHING;
}

/* The latest that they do from `op` on backwards, down to `until`. */
static Touch latest(const TlOp *op, const TlOp *until, const TlOp *ready)
{
    Touch t = NOTHING;
    for (; op && op != until && t == NOTHING; op = op->prev)
        t = touch_of(op, ready);
    return t;
}

/* Have the threads met since they last took something from columns that a READY gets, on all ways
 * that lead to it? */
static bool have_met(const TlOp *op)
{
    for (const TlOp *at = op; at; at = at->block->parent) {
        Touch before = latest(at->prev, NULL, op);
        const TlOp *around = at->block->parent;
        if (before != NOTHING)
            return before == MEETS;
        if (!around || !tl_is_loop(around))
            continue;
        Touch behind = latest(at->block->last, at, op);
        if (behind == NOTHING && at != op) /* what stands behind the op in a branch that it is in */
            behind = touch_of(at, op);
        if (behind == TOUCHES)
            return false;
    }
    return true;
}

/* Threads of each program have met. Behind this, what those of both did with tensor memory is over
 * for who begins products. */
static void meet_pair(TlSimt *g)
{
    LLVMBasicBlockRef join, behind = tl_gen_block(&g->gen, "arrived");
    LLVMValueRef zero = tl_simt_i32(g, 0), one = tl_simt_i32(g, 1), bar = bar_at(g, PAIR_BAR);
    LLVMValueRef n = LLVMBuildLoad2(g->b, g->i32, g->tensor->meetings, "");
    begin_first_warp(g, &join);
    LLVMValueRef arrive[] = {tl_simt_leaf(g, TL_LEAF_ELECT, 0, NULL), bar, zero};
    tl_simt_leaf(g, TL_LEAF_MBAR_ARRIVE_AT, 3, arrive);
    LLVMBasicBlockRef wait = tl_gen_block(&g->gen, "both");
    LLVMBuildCondBr(g->b, tl_simt_is_first_of_pair(g), wait, behind);
    LLVMPositionBuilderAtEnd(g->b, wait);
    LLVMValueRef args[] = {bar, LLVMBuildAnd(g->b, n, one, "")};
    tl_simt_leaf(g, TL_LEAF_MBAR_WAIT, 2, args);
    LLVMBuildBr(g->b, behind);
    LLVMPositionBuilderAtEnd(g->b, behind);
    end_first_warp(g, join);
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, n, one, ""), g->tensor->meetings);
}

void tl_simt_tensor_ready(TlSimt *g, TlOp *op)
{
    LLVMValueRef *x = tl_simt_regs(g, tl_in(op, 0));
    bool of_a = tl_tensor_is_a(op->out[0]),
         zeros = !of_a && are_zeros(x, tl_simt_count(tl_in(op, 0)));
    bool just = op->prev && op->prev == g->tensor->met, met = just || have_met(op),
         meets = of_a ? !meets_later(op) : !zeros || !met;
    if (!zeros) {
        if (!met) /* other warps may have taken sums from these columns */
            meet(g);
        store(g, op, x);
    }
    if (meets) {
        meet(g);
        if (g->tensor->pair)
            meet_pair(g);
        fence(g, AFTER);
    }
    if (meets || just)
        g->tensor->met = op;
    set_filled(g, op->out[0], LLVMConstInt(g->i1, !zeros, 0));
}

/* ---- products ---- */

static LLVMValueRef count(TlSimt *g)
{
    return LLVMBuildLoad2(g->b, g->i32, g->tensor->commits, "");
}

/* Group n's barrier, and the parity of its phase there. n may be negative: it is over at once. */
static LLVMValueRef bar_of(TlSimt *g, LLVMValueRef n)
{
    LLVMValueRef which = LLVMBuildAnd(g->b, n, tl_simt_i32(g, TL_TENSOR_BARS - 1), "");
    LLVMValueRef at = LLVMBuildMul(g->b, which, tl_simt_i32(g, BAR_BYTES), "");
    return LLVMBuildAdd(g->b, at, bar_at(g, 0), "");
}

static void wait_for(TlSimt *g, LLVMValueRef n)
{
    int bits = tl_floor_log2(TL_TENSOR_BARS);
    LLVMValueRef phase = LLVMBuildLShr(g->b, n, tl_simt_i32(g, (uint32_t)bits), ""),
                 args[] = {bar_of(g, n), LLVMBuildAnd(g->b, phase, tl_simt_i32(g, 1), "")};
    tl_simt_leaf(g, TL_LEAF_MBAR_WAIT, 2, args);
}

/* The next op in a direction that begins products, or awaits them, or has a region; NULL. */
static const TlOp *neighbour(const TlOp *op, bool back)
{
    do
        op = back ? op->prev : op->next;
    while (op && op->opcode != TL_OP_DOT_ASYNC && op->opcode != TL_OP_AWAIT && !op->nregions);
    return op;
}

static bool is_product(const TlOp *op)
{
    return op && op->opcode == TL_OP_DOT_ASYNC;
}

/* Groups that may go on behind the await: those of the latest products that are whole. */
static uint32_t pending_groups(const TlOp *await)
{
    int64_t left = tl_attr_int(await, TL_ATTR_PENDING, 0);
    uint32_t n = 0;
    for (const TlOp *op = await->prev; op && left > 0; op = op->prev) {
        left -= is_product(op);
        n += is_product(op) && !is_product(neighbour(op, true));
    }
    return n < TL_TENSOR_BARS ? n : TL_TENSOR_BARS - 1;
}

/* Groups that an op leaves, or what is in it: by an await. Those of tokens leave what others are
 * for. */
static uint32_t left_by(const TlOp *at)
{
    uint32_t most = 0;
    for (const TlOp *op = at; op; op = tl_walk_next(op, at)) {
        uint32_t n = tl_tensor_awaits_tokens(op) ? TL_TENSOR_BARS - 1
                     : op->opcode == TL_OP_AWAIT ? pending_groups(op)
                                                 : 0;
        most = n > most ? n : most;
    }
    return most;
}

/* Groups that may go on in front of the await: behind its own, or left by what is before it, back
 * to another one; and those of products between. */
static uint32_t not_waited_for(const TlOp *await)
{
    uint32_t most = pending_groups(await), made = 0;
    const TlOp *op = await;
    do {
        op = neighbour(op, true);
        made += is_product(op) && !is_product(neighbour(op, true));
        uint32_t n = op ? left_by(op) : 0;
        most = n && n + made > most ? n + made : most;
    } while (op && op->opcode != TL_OP_AWAIT);
    return most < TL_TENSOR_BARS ? most : TL_TENSOR_BARS - 1;
}

/* Do products say between the two that slots are free? Then what an await is for is committed
 * behind that, so that it is for this, too. */
static bool says_so_between(const TlOp *product, const TlOp *await)
{
    const TlOp *op = product->next;
    while (op != await && !(op->opcode == TL_OP_ARRIVE && tl_attr_flag(op, TL_ATTR_PRODUCTS)))
        op = op->next;
    return op != await;
}

/* The first of a loop's body. */
static const TlOp *first_of(const TlOp *loop)
{
    const TlOp *op = loop->regions[0]->first;
    bool is = op->opcode == TL_OP_DOT_ASYNC || op->opcode == TL_OP_AWAIT || op->nregions;
    return is ? op : neighbour(op, false);
}

/* Does the product commit a group; then the await follows: in its block, or as the first of the
 * loop that is next, or is around it, if that is for tokens. */
static const TlOp *await_of(const TlOp *product)
{
    const TlOp *next = neighbour(product, false), *loop = next ? next : product->block->parent;
    if (next && next->opcode == TL_OP_AWAIT)
        return says_so_between(product, next) ? NULL : next;
    if (!loop || loop->opcode != TL_OP_FOR)
        return NULL;
    next = first_of(loop);
    return next && tl_tensor_awaits_tokens(next) ? next : NULL;
}

/* By a thread of warp 0, always the same; of a pair, the first program's. */
static LLVMBasicBlockRef begin_thread(TlSimt *g, const char *name)
{
    LLVMBasicBlockRef join, some = tl_gen_block(&g->gen, name);
    begin_warp(g, true, &join);
    LLVMBuildCondBr(g->b, tl_simt_leaf(g, TL_LEAF_ELECT, 0, NULL), some, join);
    LLVMPositionBuilderAtEnd(g->b, some);
    return join;
}

static void commit(TlSimt *g, LLVMValueRef bar)
{
    LLVMValueRef args[] = {bar, programs_of(g)};
    tl_simt_leaf(g, TL_LEAF_TENSOR_COMMIT, 2, args);
}

void tl_simt_tensor_arrive(TlSimt *g, LLVMValueRef bar)
{
    LLVMBasicBlockRef join = begin_thread(g, "commit");
    commit(g, bar);
    end_first_warp(g, join);
}

void tl_simt_tensor_wait(TlSimt *g, LLVMValueRef *args)
{
    LLVMBasicBlockRef join;
    begin_warp(g, true, &join);
    tl_simt_leaf(g, TL_LEAF_MBAR_WAIT, 2, args);
    end_first_warp(g, join);
}

static void count_group(TlSimt *g, LLVMValueRef n)
{
    n = LLVMBuildAdd(g->b, n, tl_simt_i32(g, 1), "");
    LLVMBuildStore(g->b, n, g->tensor->commits);
}

/* Where an operand's slot begins, / 16. */
static LLVMValueRef slot_base(TlSimt *g, const TlAsyncSide *s)
{
    int64_t at = tl_attr_int(tl_buf_alloc(s->buf), TL_ATTR_SHARED, -1);
    TL_ASSERT(at >= 0 && at % UNIT == 0, "a buffer at %lld", (long long)at);
    LLVMValueRef base = tl_simt_i32(g, (uint32_t)at / UNIT);
    if (s->buf->type->slots == 1)
        return base;
    uint32_t bytes = (uint32_t)tl_buf_slot_bytes(s->buf->type);
    LLVMValueRef slot =
        LLVMBuildNUWMul(g->b, tl_gen_scalar(&g->gen, s->slot), tl_simt_i32(g, bytes / UNIT), "");
    return LLVMBuildAdd(g->b, base, slot, "");
}

typedef struct Product {
    TlAsyncDot dot;
    const TlAsyncPlan *plan;
    LLVMValueRef base[TL_ASYNC_SIDES], sums, filled;
    LLVMValueRef scales[2]; /* where those of A and B are in tensor memory */
    const TlType *type;
} Product;

static bool has_scales(const Product *p)
{
    return p->plan->mma->each != 0;
}

static LLVMValueRef plus(TlSimt *g, LLVMValueRef x, int32_t n)
{
    return LLVMBuildAdd(g->b, x, tl_simt_i32(g, (uint32_t)n), "");
}

/* The address in tensor memory of the scales that the instruction takes of operand i. */
static LLVMValueRef scales_at(TlSimt *g, const Product *p, int i, int32_t at, int32_t k)
{
    const TlType *t = p->dot.side[TL_ASYNC_SCALES + i].buf->type;
    return plus(g, p->scales[i], tl_tensor_scales_column(t, at, k / p->plan->mma->each));
}

static void multiply(TlSimt *g, const Product *p, const TlAsyncStrip *strip, int32_t k)
{
    enum { MOST = 11 };
    const TlDtype *t = p->plan->mma->type;
    int32_t column = tl_tensor_column(p->type, strip->row, strip->column);
    uint32_t types = TL_MMA_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2]);
    LLVMValueRef args[MOST] = {tl_simt_i32(g, tl_tensor_instruction(p->plan, k))};
    unsigned n = 1;
    if (has_scales(p))
        types |= (uint32_t)t[TL_MMA_SA] << 24;
    args[n++] = tl_simt_i32(g, types);
    if (!has_scales(p))
        args[n++] = tl_simt_i32(g, g->fn->ring);
    for (int i = 0; i < 2; i++) {
        int32_t at = i == TL_MMA_A ? strip->row : strip->column;
        const TlValue *there = p->dot.side[i].tensor;
        if (there) {
            args[n++] = tl_gen_int(&g->gen, 0);
            args[n++] = plus(g, p->base[i], tl_tensor_column(there->type, at, k));
            continue;
        }
        uint32_t offset = tl_async_offset(&p->dot.side[i], i, at, k) / UNIT;
        uint64_t upper = tl_async_descriptor(p->plan->mma, &p->plan->slot[i]);
        args[n++] = tl_gen_int(&g->gen, (int64_t)upper);
        args[n++] = plus(g, p->base[i], (int32_t)offset);
    }
    args[n++] = plus(g, p->sums, column);
    args[n++] = k ? LLVMConstInt(g->i1, 1, 0) : p->filled;
    if (has_scales(p)) {
        args[n++] = scales_at(g, p, TL_MMA_A, strip->row, k);
        args[n++] = scales_at(g, p, TL_MMA_B, strip->column, k);
    }
    tl_simt_leaf(g, has_scales(p) ? TL_LEAF_TENSOR_MMA_SCALED : TL_LEAF_TENSOR_MMA, n, args);
}

/* The pieces of one operand's scales, factors `factor` and the next three. */
static void bring_scales(TlSimt *g, const Product *p, int i, int32_t factor)
{
    const TlType *t = p->dot.side[TL_ASYNC_SCALES + i].buf->type;
    for (int32_t row = 0; row < t->shape[0]; row += TL_SCALES_ROWS) {
        uint64_t offset = tl_buf_offset(t, (int32_t[TL_LAYOUT_MAX_OUT]){row, factor});
        LLVMValueRef args[] = {
            tl_gen_int(&g->gen, (int64_t)tl_tensor_scales_descriptor()),
            plus(g, p->base[TL_ASYNC_SCALES + i], (int32_t)(offset / UNIT)),
            plus(g, p->scales[i], tl_tensor_scales_column(t, row, factor))};
        tl_simt_leaf(g, TL_LEAF_TENSOR_SCALES, 3, args);
    }
}

/* Before the steps that take them. */
static void bring_scales_of(TlSimt *g, const Product *p, int32_t k)
{
    int32_t factor = has_scales(p) ? k / p->plan->mma->each : 1;
    for (int i = 0; i < 2 && factor % TL_SCALES_WORD == 0; i++)
        bring_scales(g, p, i, factor);
}

/* bar: where they are committed; NULL: by what follows. */
static void begin_product(TlSimt *g, const Product *p, LLVMValueRef bar)
{
    for (int32_t k = 0; k < p->plan->k; k += p->plan->mma->k) {
        bring_scales_of(g, p, k);
        for (uint32_t i = 0; i < p->plan->strips.len; i++)
            multiply(g, p, &p->plan->strips.data[i], k);
    }
    if (bar)
        commit(g, bar);
}

/* Where what a READY puts there begins. */
static LLVMValueRef columns_at(TlSimt *g, const TlOp *ready)
{
    return plus(g, g->tensor->address, (int32_t)tl_attr_int(ready, TL_ATTR_COLUMN, 0));
}

void tl_simt_tensor_dot(TlSimt *g, TlOp *op)
{
    const TlMma *mma = tl_mma_find(tl_attr(op, TL_ATTR_MMA)->u.s);
    Product p = {.dot = tl_async_dot(op), .type = op->out[0]->type};
    p.plan = tl_async_plan(g->arena, mma, p.dot.side, p.type);
    TL_ASSERT(p.plan, "'%s' has a product that no instruction does", g->fn->name);
    LLVMValueRef n = count(g);
    const TlOp *await = await_of(op);
    if (await && pending_groups(await) + 1 == TL_TENSOR_BARS)
        wait_for(g, LLVMBuildSub(g->b, n, tl_simt_i32(g, TL_TENSOR_BARS), ""));
    for (int i = 0; i < TL_ASYNC_SIDES; i++)
        if (p.dot.side[i].buf)
            p.base[i] = slot_base(g, &p.dot.side[i]);
        else if (p.dot.side[i].tensor)
            p.base[i] = columns_at(g, p.dot.side[i].tensor->def);
    if (has_scales(&p)) {
        const TlType *of_a = p.dot.side[TL_ASYNC_SCALES].buf->type;
        p.scales[0] = plus(g, g->tensor->address, (int32_t)tl_attr_int(op, TL_ATTR_COLUMN, 0));
        p.scales[1] = plus(g, p.scales[0], tl_tensor_scales_columns(of_a));
    }
    p.sums = columns_at(g, tl_tensor_root(p.dot.acc));
    p.filled = tl_simt_regs(g, p.dot.acc)[0];
    LLVMBasicBlockRef join = begin_thread(g, "products");
    begin_product(g, &p, await ? bar_of(g, n) : NULL);
    end_first_warp(g, join);
    LLVMBuildStore(g->b, n, group_of(g, p.dot.acc));
    if (await)
        count_group(g, n);
    set_filled(g, op->out[0], LLVMConstInt(g->i1, 1, 0));
}

/* ---- what comes out ---- */

/* n registers (each as `zero`) of a value of type t, whose columns follow each other. */
static void load_run(TlSimt *g, const TlType *t, LLVMValueRef base, int32_t column, unsigned n,
                     LLVMValueRef zero, LLVMValueRef *out)
{
    LLVMValueRef args[TL_SIMT_MOST_ARGS];
    args[0] = LLVMBuildAdd(g->b, base, tl_simt_i32(g, (uint32_t)column), "");
    for (unsigned i = 0; i < n; i++)
        args[1 + i] = zero;
    LLVMValueRef x = tl_simt_leaf_words(
        g, is_half(t) ? TL_LEAF_TENSOR_LD_16 : TL_LEAF_TENSOR_LD, 1 + n, args, n);
    for (unsigned i = 0; i < n; i++)
        out[i] = LLVMBuildExtractValue(g->b, x, i, "");
}

/* Of what nothing was added to, zeros. */
static void load(TlSimt *g, const TlValue *from, const TlValue *to)
{
    const TlType *t = from->type;
    LLVMValueRef base = address_of_warp(g, t, tl_tensor_root(from)),
                 *out = tl_simt_define(g, to), filled = tl_simt_regs(g, from)[0];
    LLVMValueRef zero = LLVMConstNull(tl_gen_elem_type(&g->gen, to->type));
    int64_t all = tl_simt_count(to);
    int32_t column = 0;
    unsigned n;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), some = tl_gen_block(&g->gen, "sums"),
                      join = tl_gen_block(&g->gen, "taken");
    LLVMBuildCondBr(g->b, filled, some, join);
    LLVMPositionBuilderAtEnd(g->b, some);
    for (int64_t r = 0; r < all; r += n) {
        n = run_of(t, r, MOST_AT_ONCE, &column);
        load_run(g, t, base, column, n, zero, out + r);
    }
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
    for (int64_t r = 0; r < all; r++) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(zero), "");
        LLVMAddIncoming(phi, (LLVMValueRef[]){out[r], zero}, (LLVMBasicBlockRef[]){some, before},
                        2);
        out[r] = phi;
    }
}

void tl_simt_tensor_await(TlSimt *g, TlOp *op)
{
    const TlOp *before = neighbour(op, true);
    bool tokens = tl_tensor_awaits_tokens(op),
         committed = (is_product(before) && !says_so_between(before, op)) ||
                     (before && before->opcode == TL_OP_AWAIT);
    if (!tokens && !committed) {
        LLVMValueRef n = count(g);
        tl_simt_tensor_arrive(g, bar_of(g, n));
        count_group(g, n);
    }
    for (uint32_t i = 0; tokens && i < op->nin; i++)
        wait_for(g, LLVMBuildLoad2(g->b, g->i32, group_of(g, tl_in(op, i)), ""));
    for (uint32_t n = not_waited_for(op) + 1; !tokens && n > pending_groups(op); n--)
        wait_for(g, LLVMBuildSub(g->b, count(g), tl_simt_i32(g, n), ""));
    if (op->nin)
        fence(g, AFTER);
    else if (tl_tensor_meets_at(op))
        tl_simt_barrier(g); /* so that no warp lags behind, and misses a phase */
    for (uint32_t i = 0; i < op->nin; i++)
        load(g, tl_in(op, i), op->out[i]);
}

/* ---- what is there, times a tile ---- */

static LLVMValueRef is_not_one(TlSimt *g, TlDtype d, LLVMValueRef x)
{
    if (tl_is_float(d) && !g->fn->ring)
        return LLVMBuildFCmp(g->b, LLVMRealUNE, x, LLVMConstReal(LLVMTypeOf(x), 1), "");
    LLVMValueRef word = LLVMBuildBitCast(g->b, x, g->i32, ""); /* floats of the ring are words */
    return LLVMBuildICmp(g->b, LLVMIntNE, word, tl_simt_i32(g, 1), "");
}

/* Is any of the thread's factors not 1? Those that are the same value are one. */
static LLVMValueRef is_any_not_one(TlSimt *g, TlDtype d, LLVMValueRef *x, int64_t n)
{
    LLVMValueRef any = is_not_one(g, d, x[0]);
    for (int64_t r = 1; r < n; r++)
        if (x[r] != x[r - 1])
            any = LLVMBuildOr(g->b, any, is_not_one(g, d, x[r]), "");
    return any;
}

/* A few columns at a time, so that threads never hold all sums. */
static void multiply_there(TlSimt *g, const TlOp *op)
{
    enum { AT_ONCE = 16 };
    const TlType *t = op->out[0]->type;
    const TlValue *factor = tl_in(op, 1);
    LLVMValueRef base = address_of_warp(g, t, tl_tensor_root(op->out[0])),
                 *f = tl_simt_regs(g, factor), x[AT_ONCE],
                 zero = LLVMConstNull(tl_gen_elem_type(&g->gen, factor->type));
    int64_t all = tl_simt_count(factor);
    int32_t column = 0;
    unsigned n;
    for (int64_t r = 0; r < all; r += n) {
        n = run_of(t, r, AT_ONCE, &column);
        load_run(g, t, base, column, n, zero, x);
        for (unsigned i = 0; i < n; i++)
            x[i] = tl_gen_combine(&g->gen, TL_COMBINE_MUL, t->dtype, x[i], f[r + i]);
        store_run(g, t, base, column, n, x);
    }
}

/* Where nothing was added to it yet, zeros stay what they are. Warps whose factors are all 1 leave
 * their lanes alone. */
void tl_simt_tensor_rescale(TlSimt *g, TlOp *op)
{
    const TlValue *factor = tl_in(op, 1);
    LLVMValueRef filled = tl_simt_regs(g, tl_in(op, 0))[0],
                 *f = tl_simt_regs(g, factor);
    LLVMValueRef any = is_any_not_one(g, factor->type->dtype, f, tl_simt_count(factor));
    any = tl_simt_leaf(g, TL_LEAF_VOTE_ANY, 1, &any);
    LLVMBasicBlockRef some = tl_gen_block(&g->gen, "rescale"),
                      join = tl_gen_block(&g->gen, "rescaled");
    const TlOp *before = neighbour(op, true);
    if (!before || before->opcode != TL_OP_AWAIT || !before->nin) /* who has passed this, there */
        fence(g, AFTER);
    LLVMBuildCondBr(g->b, LLVMBuildAnd(g->b, filled, any, ""), some, join);
    LLVMPositionBuilderAtEnd(g->b, some);
    multiply_there(g, op);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
    meet(g);
    fence(g, AFTER);
    set_filled(g, op->out[0], filled);
}
