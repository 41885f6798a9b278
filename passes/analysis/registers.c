/* Registers that a kernel needs (registers.h): words of tiles that are held at once, in program
 * order, and what the lowering of each op takes beside them.
 *
 *   held     a tile from its op to its last use, through views of it; what is used in a loop and
 *            comes from outside, throughout the loop. Results begin where operands end, so an op
 *            that works element by element needs no registers of its own, and what begins a loop
 *            becomes what it carries. A tile that products read from its buffer by themselves, from
 *            where all of it is read
 *   partly   masks, and what a few instructions make of numbers that every thread knows, which a
 *            compiler may make again
 *   not      constants; tiles of buffers that products read by themselves, until all of it is read;
 *            of operands of products that converts bring through shared memory, what is beyond
 *            some: a compiler that is short of registers reads it when the products need it
 *   parts    in a stretch of ops that work element by element, with loads and stores among them,
 *            the targets' compilers go on to the end with some elements before they begin with the
 *            next: of a tile that lives within a stretch they hold some registers, and a share
 *   beside   fragments of the operands of a product; what scans, reductions and conversions hold
 *            of their operands while they run; addresses, bounds and masks of accesses, those in
 *            loops throughout these; scalars, of which some are in registers of their own
 *
 * A word that is held counts as more or less than one: targets' compilers copy what loops carry,
 * and make again, or compute piece by piece, what is held for short.
 *
 * The rates were fitted to what ptxas and LLVM 19 report of the library's kernels
 * (test/tools/registers.py, test/bench/results/registers.md). They say what a kernel needs.
 * `taken` is what its compiler is expected to take of registers that are free besides: for products
 * by multiply-adds it reads factors of several steps ahead. */
#include "passes/analysis/registers.h"
#include "ir/plan/late.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/mma.h"
#include "ir/plan/shared_plan.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/kept_offsets.h"
#include "passes/analysis/shared_life.h"

/* In hundredths of a word, where not said otherwise. */
typedef struct Rates {
    int base;                    /* of every kernel */
    int held, carried, read;     /* a word of a tile, of one that loops carry, of one read early */
    int near, around;            /* of one used in its stretch only; in a loop or branch inside */
    int masks, again;            /* an element of a mask; a word of what may be made again */
    int scalars, scalars_around; /* a word of a number that all threads have; used inside */
    int part, share;             /* a word of a tile within a stretch: of the first PART; another */
    int fragments;               /* a word of a step's operands of matrix instructions */
    int factors, ahead;          /* a row and a column of sums, of products by multiply-adds: */
    int most_ahead;              /* needed, and taken; words */
    int scan, scan_all;          /* a word of the operands, of few and of all of them */
    int reduce, convert;         /* a word of the operands; of the result */
    int copies, looped;          /* an access of a copy or a load in a loop, throughout it */
    int loads, stores;           /* an access of another load, or of a store */
    int most_scan;               /* words of an op with few; */
    int most_copies, most_looped; /* of all of them; */
    int most_loads, most_stores;  /* of one op's */
} Rates;

/* MOST_TAKEN: registers that nothing more is taken beyond. */
enum { PART = 2, WHOLE = 100, MOST_TAKEN = 250 };

/* clang-format off */
static const Rates RATES[] = {
    [TL_ALLOCATOR_PTXAS] = {.base = 1526, .held = 70, .carried = 135, .read = 150, .near = 56, .around = 67, .masks = 9, .again = 28,
        .scalars = 89, .scalars_around = 208, .part = 150, .share = 5, .fragments = 369, .factors = 400, .ahead = 12514,
        .most_ahead = 138, .scan = 259, .scan_all = 400, .reduce = 0, .convert = 70, .copies = 65, .looped = 49, .loads = 173,
        .stores = 349, .most_scan = 24, .most_copies = 60, .most_looped = 250, .most_loads = 25, .most_stores = 10},
    [TL_ALLOCATOR_CDNA] = {.base = 246, .held = 122, .carried = 90, .read = 126, .near = 111, .around = 130, .masks = 17, .again = 79,
        .scalars = 110, .scalars_around = 43, .part = 115, .share = 95, .fragments = 365, .factors = 400, .ahead = 22199,
        .most_ahead = 208, .scan = 1984, .scan_all = 200, .reduce = 36, .convert = 21, .copies = 0, .looped = 115, .loads = 92,
        .stores = 205, .most_scan = 44, .most_copies = 5, .most_looped = 16, .most_loads = 1, .most_stores = 25},
    [TL_ALLOCATOR_RDNA] = {.base = 237, .held = 127, .carried = 95, .read = 132, .near = 121, .around = 129, .masks = 1, .again = 92,
        .scalars = 112, .scalars_around = 32, .part = 101, .share = 75, .fragments = 153, .factors = 400, .ahead = 12943,
        .most_ahead = 30, .scan = 3411, .scan_all = 200, .reduce = 8, .convert = 7, .copies = 0, .looped = 59, .loads = 200, .stores = 18,
        .most_scan = 89, .most_copies = 11, .most_looped = 23, .most_loads = 2, .most_stores = 2},
};
/* clang-format on */

typedef struct Need {
    const TlFn *fn;
    const TlAxisInfo *axis;
    const Rates *rate;
    bool by_llvm;
    TlArena *arena;
    int threads; /* of a function without layouts; 0 */
    TlPositions order;
    int64_t *held;     /* by position: what begins to be held, less what ends; hundredths */
    int most;          /* registers that a thread may have */
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

/* Do only products by matrix instructions take it, or its transpose, before anything changes shared
 * memory again? */
static bool is_for_products(const TlValue *v, const TlOp *from)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = from->next;
        while (op && op != u->user && (tl_mma_of(op) || tl_may_read_behind(op)))
            op = op->next;
        if (op != u->user ||
            !(tl_mma_of(op) || (op->opcode == TL_OP_TRANS && is_for_products(op->out[0], op))))
            return false;
    }
    return v->uses != NULL;
}

/* Words that are read from shared memory at once, of an operand of products that gets there by a
 * convert: more are read as the products need them. */
static int64_t words_read(const Need *n, const TlOp *op, int64_t words)
{
    enum { AT_ONCE = 64 };
    bool whole = words <= AT_ONCE || !op || op->opcode != TL_OP_CONVERT ||
                 !tl_attr(op, TL_ATTR_SHARED) || !is_for_products(op->out[0], op) ||
                 tl_op_whole_bytes(n->arena, op) > tl_op_shared_bytes(n->arena, op);
    return whole ? words : AT_ONCE;
}

/* The load whose result v is, or is carried by a loop from its end, or by a branch; NULL: none. */
static const TlOp *load_of(const TlValue *v)
{
    const TlOp *loop = v->def || !v->block ? NULL : v->block->parent;
    if (loop && loop->opcode == TL_OP_FOR && v->index)
        v = tl_in(loop->regions[0]->last, v->index - 1);
    if (v->def && v->def->opcode == TL_OP_IF)
        v = tl_in(v->def->regions[0]->last, v->index);
    return v->def && v->def->opcode == TL_OP_LOAD ? v->def : NULL;
}

static bool is_mask(const TlType *t)
{
    return !t->ptr && t->dtype == TL_BOOL;
}

/* Is it in no registers, or in those of another value? */
static bool is_nowhere(const TlOp *op)
{
    return op &&
           (op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA || op->opcode == TL_OP_COPY ||
            tl_op_info(op->opcode)->flags & F_VIEWLIKE || tl_attr_flag(op, TL_ATTR_LATE));
}

static int64_t words_of(Need *n, const TlValue *v)
{
    const TlType *t = v->type;
    const TlOp *op = v->def, *load = load_of(v);
    if (is_made_again(n, v) || is_mask(t) || is_nowhere(op))
        return 0;
    int64_t elements = elements_of(n, t), bits = t->ptr ? 64 : tl_dtype_bits(t->dtype);
    if (bits < 32 && load && t->layout) {
        int each = elements_of_word(n, load, (int)bits);
        return (elements + each - 1) / each;
    }
    return words_read(n, op, (elements * bits + 31) / 32);
}

/* ---- lives ---- */

static uint32_t last_use(const Need *n, const TlValue *v, const TlBlock *home, uint32_t last)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        TlSpan use = tl_position_of_use(&n->order, u->user, home);
        uint32_t own = tl_position_of(&n->order, u->user).first,
                 at = use.first == own ? own : use.last; /* a loop begins with it, or is around */
        last = at > last ? at : last;
        if (tl_op_info(u->user->opcode)->flags & F_VIEWLIKE)
            last = last_use(n, u->user->out[0], home, last);
    }
    return last;
}

static bool is_scalar(const TlValue *v)
{
    return v->type->kind == TL_TILE && v->type->rank == 0 &&
           !(v->def && v->def->opcode == TL_OP_CONST);
}

/* Is it used in a loop or branch inside of where it comes from? */
static bool is_used_inside(const TlValue *v)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    const TlUse *u = v->uses;
    while (u && u->user->block == home)
        u = u->next;
    return u != NULL;
}

/* Numbers of 64 bits are most often bounds and strides, which stay where the parameters are. */
static int64_t held_by_scalar(const Rates *r, const TlValue *v)
{
    if (v->type->ptr || tl_dtype_bits(v->type->dtype) > 32)
        return 0;
    return is_used_inside(v) ? r->scalars_around : r->scalars;
}

/* Of a tile that words_of does not count. */
static int64_t held_of_rest(const Need *n, const TlValue *v)
{
    const TlType *t = v->type;
    if (t->kind != TL_TILE || is_nowhere(v->def))
        return 0;
    return elements_of(n, t) * (is_mask(t) ? n->rate->masks : n->rate->again * (t->ptr ? 2 : 1));
}

/* Hundredths of words that a value takes from here to there. */
static int64_t held_by(Need *n, const TlValue *v, uint32_t from, uint32_t to)
{
    const Rates *r = n->rate;
    if (is_scalar(v))
        return held_by_scalar(r, v);
    int64_t words = words_of(n, v), part = words < PART ? words : PART;
    bool near = n->stretch[from] == n->stretch[to];
    if (!words)
        return held_of_rest(n, v);
    if (v->def && is_elementwise(v->def) && near)
        return part * r->part + (words - part) * r->share;
    if (!v->def)
        return words * r->carried;
    return words * (near ? r->near : is_used_inside(v) ? r->around : r->held);
}

static void add_value(Need *n, const TlValue *v, uint32_t from)
{
    uint32_t to = last_use(n, v, v->def ? v->def->block : v->block, from);
    int64_t held = held_by(n, v, from, to);
    n->held[from] += held;
    n->held[to] -= held;
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

/* Tiles of buffers that are held from here on: `read` without LATE. */
static void add_read(Need *n, const TlOp *read, uint32_t at)
{
    for (uint32_t i = 0; i < read->nin && !tl_attr_flag(read, TL_ATTR_LATE); i++) {
        const TlType *t = tl_in(read, i)->type;
        uint32_t to = last_use(n, tl_in(read, i), tl_in(read, i)->def->block, at);
        int64_t words = (elements_of(n, t) * tl_dtype_bits(t->dtype) + 31) / 32;
        n->held[at] += words * n->rate->read;
        n->held[to] -= words * n->rate->read;
    }
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
        if (op->opcode == TL_OP_READ)
            add_read(n, op, span.first);
        for (uint32_t i = 0; i < op->nout; i++)
            add_value(n, op->out[i], span.last);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                add_value(n, op->regions[r]->args[i],
                          r ? tl_position_of(&n->order, op->regions[r]->first).first : span.first);
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

/* A row and a column of the sums of a product by multiply-adds; 0: it is none. */
static int64_t factors_of(const Need *n, const TlOp *dot)
{
    if (dot->opcode != TL_OP_DOT || tl_mma_of(dot))
        return 0;
    int64_t sums = elements_of(n, dot->out[0]->type), rows = 1;
    while (rows * rows < sums)
        rows *= 2;
    return rows + sums / rows;
}

static int64_t beside_dot(const Need *n, const TlOp *dot)
{
    const TlMma *mma = tl_mma_of(dot);
    if (mma)
        return (words_of_fragment(dot, TL_MMA_A, mma) + words_of_fragment(dot, TL_MMA_B, mma)) *
               n->rate->fragments;
    return factors_of(n, dot) * n->rate->factors;
}

static int64_t words_of_operands(Need *n, const TlOp *op)
{
    int64_t words = 0;
    for (uint32_t i = 0; i < op->nin; i++)
        words += words_of(n, tl_in(op, i));
    return words;
}

static int64_t accesses_of(const Need *n, const TlOp *op)
{
    return n->threads ? 0 : tl_op_accesses(n->axis, op);
}

/* `n` times `each` hundredths, `most` words at most. */
static int64_t at_most(int64_t n, int each, int most)
{
    int64_t all = n * each, limit = (int64_t)most * WHOLE;
    return all < limit ? all : limit;
}

/* Operands, results, and partial ones of both on their way; of few words more each. */
static int64_t beside_scan(const Need *n, int64_t words)
{
    int64_t few = at_most(words, n->rate->scan, n->rate->most_scan),
            all = words * n->rate->scan_all;
    return all > few ? all : few;
}

static int64_t beside(Need *n, const TlOp *op)
{
    const Rates *r = n->rate;
    TlOpcode c = op->opcode;
    if (c == TL_OP_DOT)
        return beside_dot(n, op);
    if (c == TL_OP_SCAN)
        return beside_scan(n, words_of_operands(n, op));
    if (c == TL_OP_REDUCE)
        return words_of_operands(n, op) * r->reduce;
    if (c == TL_OP_CONVERT || c == TL_OP_REGROUP || c == TL_OP_GATHER)
        return words_of(n, op->out[0]) * r->convert;
    if (c == TL_OP_LOAD && !tl_enclosing_loop(op))
        return at_most(accesses_of(n, op), r->loads, r->most_loads);
    return c == TL_OP_STORE ? at_most(accesses_of(n, op), r->stores, r->most_stores) : 0;
}

/* Addresses of loads and copies in loops stay in registers throughout these, but for loads whose
 * offsets are too many. */
static int64_t beside_loops(const Need *n)
{
    int64_t copies = 0, loads = 0;
    bool kept = n->by_llvm || n->threads || !tl_offsets_not_kept(n->fn, n->axis);
    for (const TlOp *op = n->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        bool copy = op->opcode == TL_OP_COPY, load = op->opcode == TL_OP_LOAD;
        int64_t accesses = (copy || load) && tl_enclosing_loop(op) ? accesses_of(n, op) : 0;
        copies += copy ? accesses : 0;
        loads += load && (kept || accesses < TL_MANY_OFFSETS) ? accesses : 0;
    }
    return at_most(copies, n->rate->copies, n->rate->most_copies) +
           at_most(loads, n->rate->looped, n->rate->most_looped);
}

/* What is free where so much is needed, as far as factors of later steps fill it. */
static int64_t ahead(const Need *n, const TlOp *op, int64_t all)
{
    const Rates *r = n->rate;
    int64_t factors = factors_of(n, op), free = n->most * WHOLE - r->base - all,
            more = at_most(factors, r->ahead, r->most_ahead) - factors * r->factors;
    more = more < free ? more : free;
    return more > 0 ? more : 0;
}

static int registers_of(const Need *n, int64_t hundredths)
{
    return (int)((n->rate->base + hundredths + WHOLE / 2) / WHOLE);
}

static TlRegisterNeed find_need(Need *n)
{
    uint32_t at = 0;
    tl_positions_init(&n->order, n->fn, n->arena);
    n->held = TL_NEW_ARRAY(n->arena, int64_t, n->order.spans.len + 1);
    n->stretch = TL_NEW_ARRAY(n->arena, uint32_t, n->order.spans.len + 1);
    n->known = TL_NEW_ARRAY(n->arena, int8_t, n->fn->nvalues + 1);
    find_lives(n);
    int64_t now = 0, most = 0, taken = 0, looped = beside_loops(n);
    TlRegisterNeed need = {0};
    for (const TlOp *op = n->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        now += n->held[at++];
        int64_t all = now + beside(n, op) + (tl_enclosing_loop(op) ? looped : 0),
                full = all + ahead(n, op, all);
        if (all > most) {
            most = all;
            need.words = (int)(now / WHOLE);
            need.op = op;
        }
        taken = full > taken ? full : taken;
    }
    need.registers = registers_of(n, most);
    need.taken = registers_of(n, taken);
    return need;
}

TlAllocator tl_allocator_of(bool by_llvm, int lanes)
{
    return !by_llvm ? TL_ALLOCATOR_PTXAS : lanes > 32 ? TL_ALLOCATOR_CDNA : TL_ALLOCATOR_RDNA;
}

TlRegisterNeed tl_registers_needed(const TlFn *fn, const TlAxisInfo *axis, TlAllocator by,
                                   TlArena *scratch)
{
    Need n = {.fn = fn,
              .axis = axis,
              .rate = &RATES[by],
              .by_llvm = by != TL_ALLOCATOR_PTXAS,
              .arena = scratch,
              .most = MOST_TAKEN};
    return find_need(&n);
}

int64_t tl_registers_in_block(int registers, int file, int schedulers, int warps)
{
    enum { FILE = 256 };
    TL_ASSERT(warps > 0 && schedulers > 0, "%d warps of %d schedulers", warps, schedulers);
    int64_t each = (warps + schedulers - 1) / schedulers, n = file / each;
    n = n < registers ? n : registers;
    return n > FILE ? (n + FILE) / 2 : n;
}

int tl_registers_of_tiles(const TlFn *fn, int threads, TlAllocator by, TlArena *scratch)
{
    TL_ASSERT(threads > 0, "%d threads", threads);
    Need n = {
        .fn = fn, .rate = &RATES[by], .arena = scratch, .threads = threads, .most = MOST_TAKEN};
    return find_need(&n).registers;
}
