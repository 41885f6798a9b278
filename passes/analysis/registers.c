/* Registers that a kernel needs (registers.h): words of tiles that are held at once, in program
 * order, and what the lowering of each op takes beside them.
 *
 *   held     a tile from its op to its last use, through views of it; what is used in a loop and
 *            comes from outside, begins it or is carried, throughout the loop; but sums of products
 *            on their way only once. Results begin where operands end, so an op that works element
 *            by element needs no registers of its own
 *   not      constants, and what a few instructions make of numbers that every thread knows;
 *            tiles of buffers that products read by themselves
 *   parts    in a stretch of ops that work element by element, with loads and stores among them,
 *            the targets' compilers go on to the end with some elements before they begin with the
 *            next: of a tile that lives within a stretch they hold some registers, and a share
 *   beside   fragments of the operands of a product; what scans, reductions and conversions hold
 *            of their operands while they run; addresses, bounds and masks of accesses
 *
 * The rates were fitted to what ptxas and LLVM 19 report of the library's kernels
 * (test/tools/registers.py, test/bench/results/registers.md). They say what a kernel needs: where
 * more registers cost nothing, a compiler often takes them. */
#include "passes/analysis/registers.h"
#include "ir/plan/late.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/mma.h"
#include "passes/analysis/shared_life.h"

/* In hundredths, where not said otherwise. */
typedef struct Rates {
    int base;                /* registers: of every kernel */
    int masks;               /* words of an element of a bool tile */
    int part, share;         /* words, and of the rest, of a tile within a stretch */
    int fragments;           /* of a step's operands of matrix instructions */
    int factors;             /* of a row and a column of sums, of products by multiply-adds */
    int scan, reduce;        /* of the operands */
    int convert;             /* of the result */
    int copies, most_copies; /* words of an access of a copy in a loop; words at most */
    int loads, looped, stores, most; /* words of an access: outside of loops, inside; at most */
} Rates;

/* clang-format off */
static const Rates NVIDIA = {16, 12, 2, 28, 269, 400, 170, 82, 10, 160, 24, 102, 36, 34, 8},
                   AMD = {8, 5, 4, 66, 172, 307, 300, 113, 98, 114, 35, 51, 233, 36, 57};
/* clang-format on */

typedef struct Need {
    const TlFn *fn;
    const TlAxisInfo *axis;
    const Rates *rate;
    TlArena *arena;
    int threads; /* of a function without layouts; 0 */
    TlPositions order;
    int64_t *held;     /* by position: words that begin to live, less those that end */
    uint32_t *stretch; /* by position */
    int8_t *known;     /* by value: 1 is made again where it is used, -1 is not */
} Need;

/* ---- words ---- */

static bool is_elementwise(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_ELEM | F_VIEWLIKE);
}

static bool is_in_registers(const TlType *t)
{
    return (t->kind == TL_TILE || t->kind == TL_TOKEN) && t->rank > 0;
}

static int64_t elements_of(const Need *n, const TlType *t)
{
    if (t->layout)
        return tl_layout_registers(t->layout);
    return n->threads ? (tl_type_elems(t) + n->threads - 1) / n->threads : 0;
}

/* Is it made again where it is used? */
static bool is_made_again(Need *n, const TlValue *v)
{
    enum { LITTLE_WORK = 2 };
    const TlOp *op = v->def;
    if (!is_in_registers(v->type))
        return true;
    int8_t *known = &n->known[v->id];
    if (*known)
        return *known > 0;
    bool again = op && (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA ||
                        (is_elementwise(op) && tl_elem_work(op->opcode)->gpu <= LITTLE_WORK));
    for (uint32_t i = 0; again && i < op->nin; i++)
        again = is_made_again(n, tl_in(op, i));
    *known = again ? 1 : -1;
    return again;
}

/* Less than 4 bytes at a time are loaded into a register each. */
static int elements_of_word(const Need *n, const TlOp *load, int bits)
{
    TlAccessInfo info = tl_access_info(n->axis, load);
    int vector = tl_access_vector(&info, load, load->out[0]->type->layout);
    return vector * bits < 32 ? vector : 32 / bits;
}

static int64_t words_of(Need *n, const TlValue *v)
{
    const TlType *t = v->type;
    const TlOp *op = v->def;
    if (is_made_again(n, v))
        return 0;
    if (op && (op->opcode == TL_OP_COPY || tl_op_info(op->opcode)->flags & F_VIEWLIKE ||
               tl_attr_flag(op, TL_ATTR_LATE)))
        return 0;
    int64_t elements = elements_of(n, t), bits = t->ptr ? 64 : tl_dtype_bits(t->dtype);
    if (!t->ptr && t->dtype == TL_BOOL)
        return elements * n->rate->masks / 100;
    if (bits < 32 && op && op->opcode == TL_OP_LOAD && t->layout) {
        int each = elements_of_word(n, op, (int)bits);
        return (elements + each - 1) / each;
    }
    return (elements * bits + 31) / 32;
}

/* ---- lives ---- */

static uint32_t last_use(const Need *n, const TlValue *v, const TlBlock *home, uint32_t last)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        bool goes_on = v->type->kind == TL_TOKEN && u->user->block == home;
        uint32_t at = goes_on ? tl_position_of(&n->order, u->user).first
                              : tl_position_of_use(&n->order, u->user, home).last;
        last = at > last ? at : last;
        if (tl_op_info(u->user->opcode)->flags & F_VIEWLIKE)
            last = last_use(n, u->user->out[0], home, last);
    }
    return last;
}

static void add_value(Need *n, const TlValue *v, uint32_t from)
{
    const Rates *r = n->rate;
    int64_t words = words_of(n, v);
    if (!words)
        return;
    uint32_t to = last_use(n, v, v->def ? v->def->block : v->block, from);
    if (v->def && is_elementwise(v->def) && n->stretch[from] == n->stretch[to] && words > r->part)
        words = r->part + (words - r->part) * r->share / 100;
    n->held[from] += words;
    n->held[to] -= words;
}

/* Does the op begin a new stretch? */
static bool begins_stretch(const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (is_elementwise(op) || op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE ||
        op->opcode == TL_OP_ATOMIC_RMW)
        return false;
    for (uint32_t i = 0; i < op->nout; i++)
        if (is_in_registers(op->out[i]->type) && !(op->opcode == TL_OP_CONST))
            return op->opcode != TL_OP_IOTA && op->opcode != TL_OP_INSIDE;
    return op->nregions > 0 ||
           (flags & F_DEBUG && op->opcode != TL_OP_COMMIT && op->opcode != TL_OP_WAIT);
}

static void find_lives(Need *n)
{
    uint32_t now = 0;
    for (const TlOp *op = n->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        now += begins_stretch(op) || !op->prev;
        n->stretch[tl_position_of(&n->order, op).first] = now;
        now += op->nregions || !op->next;
    }
    for (const TlOp *op = n->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlSpan span = tl_position_of(&n->order, op);
        for (uint32_t i = 0; i < op->nout; i++)
            add_value(n, op->out[i], span.last);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                add_value(n, op->regions[r]->args[i], span.first);
    }
}

/* ---- beside ---- */

/* Of an operand that is read from a buffer, what one step along K takes. */
static int64_t words_of_fragment(const TlOp *dot, uint32_t operand, const TlMma *mma)
{
    const TlType *t = tl_in(dot, operand)->type;
    if (!tl_late_get(tl_in(dot, operand)) || !t->layout)
        return 0;
    int32_t k = t->shape[operand == TL_MMA_A ? t->rank - 1 : t->rank - 2];
    int64_t words = tl_layout_registers(t->layout) * tl_dtype_bits(t->dtype) / 32;
    return k > mma->k ? words * mma->k / k : words;
}

static int64_t words_beside_dot(const Need *n, const TlOp *dot)
{
    const TlMma *mma = tl_mma_of(dot);
    if (mma)
        return (words_of_fragment(dot, TL_MMA_A, mma) + words_of_fragment(dot, TL_MMA_B, mma)) *
               n->rate->fragments / 100;
    int64_t sums = elements_of(n, dot->out[0]->type), rows = 1;
    while (rows * rows < sums)
        rows *= 2;
    return (rows + sums / rows) * n->rate->factors / 100;
}

static int64_t words_of_operands(Need *n, const TlOp *op)
{
    int64_t words = 0;
    for (uint32_t i = 0; i < op->nin; i++)
        words += words_of(n, tl_in(op, i));
    return words;
}

/* An access's address and, where it may be outside, its mask. */
static int64_t words_of_access(const Need *n, const TlOp *op, bool looped)
{
    const Rates *r = n->rate;
    const TlLayout *l = n->threads ? NULL : tl_op_layout(op);
    bool copied = op->opcode == TL_OP_COPY;
    if (!l || tl_is_bulk_copy(op) || (copied && !looped))
        return 0;
    TlAccessInfo info = tl_access_info(n->axis, op);
    int64_t accesses = tl_layout_registers(l) / tl_access_vector(&info, op, l),
            each = copied                      ? r->copies
                   : op->opcode == TL_OP_STORE ? r->stores
                   : looped                    ? r->looped
                                               : r->loads,
            words = accesses * each / 100, most = copied ? r->most_copies : r->most;
    return words < most ? words : most;
}

static bool is_looped(const TlOp *op)
{
    const TlOp *o = op->block->parent;
    while (o && !tl_is_loop(o))
        o = o->block->parent;
    return o != NULL;
}

static int64_t words_beside(Need *n, const TlOp *op)
{
    TlOpcode c = op->opcode;
    if (c == TL_OP_DOT)
        return words_beside_dot(n, op);
    if (c == TL_OP_SCAN || c == TL_OP_REDUCE)
        return words_of_operands(n, op) * (c == TL_OP_SCAN ? n->rate->scan : n->rate->reduce) / 100;
    if (c == TL_OP_CONVERT || c == TL_OP_REGROUP || c == TL_OP_GATHER)
        return words_of(n, op->out[0]) * n->rate->convert / 100;
    return c == TL_OP_LOAD || c == TL_OP_STORE ? words_of_access(n, op, is_looped(op)) : 0;
}

/* Addresses of copies stay in registers throughout their loops. */
static int64_t words_of_copies(const Need *n)
{
    int64_t words = 0;
    for (const TlOp *op = n->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_COPY)
            words += words_of_access(n, op, is_looped(op));
    return words;
}

static TlRegisterNeed find_need(Need *n)
{
    uint32_t at = 0;
    tl_positions_init(&n->order, n->fn, n->arena);
    n->held = TL_NEW_ARRAY(n->arena, int64_t, n->order.spans.len + 1);
    n->stretch = TL_NEW_ARRAY(n->arena, uint32_t, n->order.spans.len + 1);
    n->known = TL_NEW_ARRAY(n->arena, int8_t, n->fn->nvalues + 1);
    find_lives(n);
    int64_t now = 0, most = 0, copies = words_of_copies(n);
    TlRegisterNeed need = {.registers = n->rate->base};
    for (const TlOp *op = n->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        now += n->held[at++];
        int64_t words = now + words_beside(n, op) + (is_looped(op) ? copies : 0);
        if (words > most) {
            most = words;
            need = (TlRegisterNeed){n->rate->base + (int)words, (int)now, op};
        }
    }
    return need;
}

TlRegisterNeed tl_registers_needed(const TlFn *fn, const TlAxisInfo *axis, bool by_llvm,
                                   TlArena *scratch)
{
    Need n = {.fn = fn, .axis = axis, .rate = by_llvm ? &AMD : &NVIDIA, .arena = scratch};
    return find_need(&n);
}

int tl_registers_of_tiles(const TlFn *fn, int threads, bool by_llvm, TlArena *scratch)
{
    TL_ASSERT(threads > 0, "%d threads", threads);
    Need n = {.fn = fn, .rate = by_llvm ? &AMD : &NVIDIA, .arena = scratch, .threads = threads};
    return find_need(&n).registers;
}
