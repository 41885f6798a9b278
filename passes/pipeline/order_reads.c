/* order-reads: makes the decisions that would otherwise be left to the lowering, so that the IR
 * shows what is executed.
 *
 * Copies. A copy is asynchronous where the machine has such copies and at least 4 bytes of it are
 * contiguous both in memory and in the buffer (where a warp's are a row, all of such a row);
 * `async` says how many. The other copies load and store at once, and are moved in front of the
 * asynchronous copies next to them.
 *
 *     copy %A, %i, %k, %a, %s {axes = [64, 32]}
 *  => copy %A, %i, %k, %a, %s {axes = [64, 32], async = 16}
 *
 * Copies in front of the only product of a block, few beside its instructions, start one after the
 * other between these, not all before the first: the product need not wait, and neither do reads of
 * shared memory. That their commit comes behind the product says so (tl_copy_is_spread).
 *
 *     copy %A, ...                         copy %A, ...
 *     commit                         =>    %p = dot %x, %y, %q
 *     %p = dot %x, %y, %q                  commit
 *
 * Reads. A tile that a GET provides to products by matrix instructions is not read at the GET
 * (`late`): the product reads the operands of each instruction when it needs them, so that few
 * registers hold operands. What its first step needs is read before copies start (`read {late}`),
 * so that the product need not wait for it behind them. The whole tile is read before shared memory
 * may change, and before any other op takes it.
 *
 *     %x = get %a, %s                 %x = get %a, %s {late}
 *     %y = get %b, %s                 %y = get %b, %s {late}
 *     %t = copy ...             =>    read %x, %y {late}
 *     %p = dot %x, %y, %q             %t = copy ...
 *     %z = add %x, %x                 %p = dot %x, %y, %q
 *                                     read %x
 *                                     %z = add %x, %x
 *
 * Bursts. Where LLVM schedules the code, it reads shared memory right before its use or all at
 * once. So a product is cut into bursts (`burst`, mma_order.h): what a burst takes is read while
 * the burst before is computed, and waited for once. Bursts are as long as registers allow beside
 * what else is alive, a quarter of the product at most. For NVIDIA, ptxas orders the reads.
 *
 * No pass edits the code after it: its decisions need not hold once ops are inserted between those
 * that it ordered. */
#include "ir/plan/late.h"
#include "ir/plan/mma_order.h"
#include "ir/plan/staged_plan.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/kept_offsets.h"
#include "passes/pass.h"
#include <string.h>

typedef struct Order {
    TlFn *fn;
    TlPassCtx *px;
    bool changed;
} Order;

/* ---- copies ---- */

static bool is_async(const TlOp *op)
{
    return op && op->opcode == TL_OP_COPY && tl_attr(op, TL_ATTR_ASYNC);
}

/* Bytes that an asynchronous copy moves at once; 0: the copy is not asynchronous. */
static int64_t async_bytes(const Order *o, const TlOp *copy, const TlAccessInfo *info)
{
    enum { LEAST_BYTES = 4 };
    const TlType *tile = copy->out[0]->type;
    if (!o->px->machine->copies)
        return 0;
    const TlBufPlan *plan =
        tl_buf_plan(o->px->scratch, tile, tl_op_place(copy).buf->type,
                    tl_access_vector(info, copy, tile->layout), TL_BUF_WRITES | TL_BUF_IN_ORDER);
    int64_t bytes = (int64_t)tl_dtype_bytes(tile->dtype) * plan->nregs;
    if (o->px->machine->copies_rows &&
        !tl_buf_is_rows(plan, tl_op_place(copy).buf->type, o->px->machine->lanes))
        return 0;
    return bytes < LEAST_BYTES ? 0 : bytes;
}

static void order_copy(Order *o, const TlAxisInfo *axis, TlOp *copy)
{
    TlAccessInfo info = tl_access_info(axis, copy);
    int64_t bytes = async_bytes(o, copy, &info);
    if (bytes)
        tl_attr_set(o->fn, copy, (TlAttr){.id = TL_ATTR_ASYNC, .u.i = bytes});
    o->changed |= bytes != 0;
}

/* Synchronous copies come before asynchronous ones. */
static void sort_copy(Order *o, TlOp *copy)
{
    TlOp *first = copy;
    if (is_async(copy) || tl_is_bulk_copy(copy))
        return;
    while (is_async(first->prev))
        first = first->prev;
    if (first == copy)
        return;
    tl_op_move_before(copy, first);
    o->changed = true;
}

static void order_copies(Order *o)
{
    const TlAxisInfo *axis = NULL;
    for (TlOp *op = o->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_COPY || tl_attr(op, TL_ATTR_ASYNC) || tl_is_bulk_copy(op))
            continue;
        axis = axis ? axis : tl_pass_axis_info(o->fn, o->px);
        order_copy(o, axis, op);
        sort_copy(o, op);
    }
}

/* ---- copies that are spread ---- */

/* Instructions that a warp does for the product. */
static int64_t instructions_of(const Order *o, const TlOp *dot)
{
    const TlMma *mma = tl_mma_of(dot);
    const TlType *a = tl_in(dot, 0)->type;
    int64_t each = tl_layout_registers(tl_mma_fragment(o->px->scratch, mma, TL_MMA_C)),
            steps = (a->shape[a->rank - 1] + mma->k - 1) / mma->k;
    return tl_layout_registers(dot->out[0]->type->layout) / each * steps;
}

static bool is_quiet(const TlOp *op)
{
    return op->opcode != TL_OP_COPY && op->opcode != TL_OP_COMMIT && op->nregions == 0 &&
           tl_may_read_behind(op);
}

/* The only product of the block, if nothing that matters to memory stands before it. */
static TlOp *product_after(const TlOp *commit)
{
    TlOp *dot = commit->next;
    for (; dot && !tl_mma_of(dot); dot = dot->next)
        if (!is_quiet(dot))
            return NULL;
    for (const TlOp *op = commit->block->first; op; op = op->next)
        if (op != dot && tl_mma_of(op))
            return NULL;
    return dot;
}

/* Copies that are few beside the instructions of the product behind them. */
static void spread_before(Order *o, TlOp *commit)
{
    enum { LEAST_INSTRUCTIONS = 4 }; /* for each that begins a copy */
    int64_t accesses = 0;
    TlOp *dot = product_after(commit);
    if (!dot || !is_async(commit->prev))
        return;
    for (const TlOp *c = commit->prev; is_async(c); c = c->prev)
        accesses += tl_copy_plan(o->px->scratch, c)->naccesses;
    if (accesses * LEAST_INSTRUCTIONS > instructions_of(o, dot))
        return;
    tl_op_move_before(commit, dot->next);
    o->changed = true;
}

static void spread_copies(Order *o)
{
    for (TlOp *op = o->fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (op->opcode == TL_OP_COMMIT)
            spread_before(o, op);
    }
}

/* ---- reads ---- */

/* The tile of a GET, or a TRANS of one, of which something has not been read yet. */
typedef struct Unread {
    TlValue *tile;
    TlOp *get;
    bool has_first; /* the first step of its products has been read */
} Unread;

typedef struct Reads {
    Order *o;
    TL_VEC(Unread) unread; /* in order */
    TlOp *at;              /* the READs go before this op */
    TlOp *last;            /* the READ added there last; NULL: none */
} Reads;

static void set_late(Reads *r, TlOp *get)
{
    if (tl_attr(get, TL_ATTR_LATE))
        return;
    tl_attr_set(r->o->fn, get, (TlAttr){.id = TL_ATTR_LATE, .u.i = 1});
    r->o->changed = true;
}

static void add_read(Reads *r, TlValue *tile, bool first)
{
    TlAttr attr = {.id = TL_ATTR_LATE, .u.i = 1};
    TlBuilder b = tl_builder_before(r->at);
    if (r->last && (tl_attr(r->last, TL_ATTR_LATE) != NULL) == first)
        tl_add_operand(r->o->fn, r->last, tile);
    else
        r->last = tl_op_new(&b, TL_OP_READ, 1, &tile, 0, NULL, 0, first, &attr);
}

/* In the register order of `tile`, which is the GET's tile or a TRANS of it. A GET directly before
 * `at` needs no READ: it reads at once. */
static void read_all(Reads *r, TlValue *tile)
{
    TlOp *get = tl_get_of(tile);
    uint32_t n = 0;
    if (r->last || r->at->prev != get) {
        set_late(r, get);
        add_read(r, tile, false);
    }
    for (uint32_t i = 0; i < r->unread.len; i++)
        if (r->unread.data[i].get != get)
            r->unread.data[n++] = r->unread.data[i];
    r->unread.len = n;
}

/* Do only products by matrix instructions take it? (There may be a READ already.) */
static bool feeds_products(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!tl_mma_of(u->user) && u->user->opcode != TL_OP_READ &&
            !(u->user->opcode == TL_OP_TRANS && feeds_products(u->user->out[0])))
            return false;
    return true;
}

static bool has_product(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next)
        if (tl_mma_of(u->user))
            return true;
    return false;
}

/* Before copies start: of tiles for products, what the first step needs; of others, all. */
static void read_before_copy(Reads *r)
{
    for (uint32_t i = 0; i < r->unread.len; i++) {
        Unread *u = &r->unread.data[i];
        if (!feeds_products(u->get->out[0])) {
            read_all(r, u->tile);
            i = UINT32_MAX; /* the list has changed */
        } else if (!u->has_first && has_product(u->tile) &&
                   !tl_copy_is_spread(r->at)) {
            u->has_first = true;
            set_late(r, u->get);
            add_read(r, u->tile, true);
        }
    }
}

/* Is a tile of the GET an operand of the op, of an op inside it, or of a later op of its block? */
static bool is_taken_from(const TlOp *op, const TlOp *get)
{
    for (const TlOp *o = op; o; o = o->next)
        for (const TlOp *in = o; in; in = tl_walk_next(in, o))
            for (uint32_t i = 0; i < in->nin; i++)
                if (tl_get_of(tl_in(in, i)) == get)
                    return true;
    return false;
}

/* Shared memory may change at this op. Tiles that no later op takes are dropped. */
static void read_before_change(Reads *r)
{
    while (r->unread.len) {
        TlOp *get = r->unread.data[0].get;
        if (is_taken_from(r->at, get)) {
            read_all(r, get->out[0]);
            continue;
        }
        r->unread.len--;
        memmove(r->unread.data, r->unread.data + 1, r->unread.len * sizeof *r->unread.data);
    }
}

static Unread *find_unread(const Reads *r, const TlValue *tile)
{
    for (uint32_t i = 0; i < r->unread.len; i++)
        if (r->unread.data[i].tile == tile)
            return &r->unread.data[i];
    return NULL;
}

static bool wants_unread(const Reads *r, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (find_unread(r, tl_in(op, i)))
            return true;
    return false;
}

static bool wants_unread_inside(const Reads *r, const TlOp *op)
{
    for (const TlOp *in = tl_walk_next(op, op); in; in = tl_walk_next(in, op))
        if (wants_unread(r, in))
            return true;
    return false;
}

/* The op takes tiles that are not read yet: a product reads them step by step, a TRANS renames. */
static void read_for(Reads *r, TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        Unread *u = find_unread(r, tl_in(op, i));
        if (!u)
            continue;
        u->has_first |= tl_mma_of(op) != NULL;
        if (tl_mma_of(op) || op->opcode == TL_OP_TRANS)
            set_late(r, u->get);
        else
            read_all(r, u->tile);
    }
}

static void visit(Reads *r, TlOp *op)
{
    r->at = op;
    r->last = NULL;
    if (op->opcode == TL_OP_COPY || op->opcode == TL_OP_COMMIT || tl_begins_bulk(op))
        read_before_copy(r);
    else if (!tl_may_read_behind(op) || wants_unread_inside(r, op) ||
             (op->opcode == TL_OP_LOAD && wants_unread(r, op)))
        read_before_change(r);
    else
        read_for(r, op);
    if (op->opcode == TL_OP_GET)
        tl_vec_push(r->o->px->scratch, &r->unread, (Unread){.tile = op->out[0], .get = op});
    else if (op->opcode == TL_OP_TRANS && find_unread(r, tl_in(op, 0)))
        tl_vec_push(r->o->px->scratch, &r->unread,
                    (Unread){.tile = op->out[0], .get = tl_get_of(op->out[0])});
}

/* A tile that has not been read never leaves its block. */
static void order_block(Order *o, TlBlock *block)
{
    Reads r = {.o = o};
    for (TlOp *op = block->first; op; op = op->next) {
        if (!r.unread.len && op->opcode != TL_OP_GET)
            continue;
        visit(&r, op);
    }
}

static void order_reads(Order *o)
{
    for (TlOp *op = o->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_READ)
            return; /* already done */
    for (TlOp *op = o->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (!op->prev)
            order_block(o, op->block);
}

/* ---- bursts ---- */

enum { MOST_BURSTS = 4 }; /* of a product: each waits once */

/* What loads of the block that are for its next iteration take beyond whole words of their tiles:
 * pieces of less than 4 bytes are a register each until they are used. */
static int64_t words_of_pieces(const TlAxisInfo *axis, const TlOp *dot)
{
    int64_t more = 0;
    for (const TlOp *op = dot->prev; op; op = op->prev) {
        const TlUse *u = op->opcode == TL_OP_LOAD ? op->out[0]->uses : NULL;
        if (u && !u->next && u->user->opcode == TL_OP_YIELD)
            more += tl_words_loaded(axis, op) - tl_words_of(op->out[0]);
    }
    return more;
}

/* What an operand that is in registers takes besides where there is one file of them: loads of the
 * block keep their offsets; and LLVM has it in tuples, as sums and what is read are. These leave
 * gaps, but where it takes over those of another product's sums. */
static int64_t words_of_gaps(const Order *o, const TlAxisInfo *axis, const TlOp *dot)
{
    enum { FILE = 256, GAPS = 10 }; /* gaps: a share of all */
    int64_t all = o->px->machine->registers, words = all / GAPS;
    if (all > FILE || (tl_late_get(tl_in(dot, TL_MMA_A)) && tl_late_get(tl_in(dot, TL_MMA_B))))
        return 0;
    words = tl_dot_takes_dot(o->px->scratch, dot) ? 0 : words;
    for (const TlOp *op = dot->block->first; op; op = op->next)
        words += op->opcode == TL_OP_LOAD ? tl_op_accesses(axis, op) : 0;
    return words;
}

static void order_burst(Order *o, const TlAxisInfo *axis, TlOp *dot)
{
    TlMmaOrder order = tl_mma_order(o->px->scratch, dot, true);
    int64_t left = tl_registers_of_thread(o->px->machine->registers, o->fn->body->warps) -
                   tl_words_alive(o->fn, o->px->scratch, dot) - words_of_pieces(axis, dot) -
                   words_of_gaps(o, axis, dot) - TL_OTHER_REGISTERS;
    uint32_t burst = (order.issues.len + MOST_BURSTS - 1) / MOST_BURSTS;
    while (burst > 1 && tl_mma_words(o->px->scratch, &order, burst) > left)
        burst = (burst + 1) / 2;
    tl_attr_set(o->fn, dot, (TlAttr){.id = TL_ATTR_BURST, .u.i = burst});
    o->changed = true;
}

static void order_bursts(Order *o, const TlAxisInfo *axis)
{
    for (TlOp *op = o->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_mma_of(op) && !tl_attr(op, TL_ATTR_BURST) &&
            (tl_late_get(tl_in(op, TL_MMA_A)) || tl_late_get(tl_in(op, TL_MMA_B))))
            order_burst(o, axis, op);
}

TlPassResult tl_pass_order_reads(TlFn *fn, TlPassCtx *px)
{
    Order o = {.fn = fn, .px = px};
    if (tl_fn_level(fn) != TL_LEVEL_STAGED)
        return TL_SAME;
    /* before anything changes */
    const TlAxisInfo *axis = px->machine->reads_early ? tl_pass_axis_info(fn, px) : NULL;
    order_copies(&o);
    spread_copies(&o);
    order_reads(&o);
    if (axis)
        order_bursts(&o, axis);
    return o.changed ? TL_CHANGED : TL_SAME;
}
