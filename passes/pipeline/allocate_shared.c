/* allocate-shared: every op that needs shared memory for itself, and every buffer, gets a place.
 *
 *     %b = convert %a : tile<...>        %b = convert %a {shared = 0} : tile<...>
 *     %r = reduce %b {...} : tile<...>   %r = reduce %b {..., shared = 4096} : tile<...>
 *
 *  1. Buffers: with the interval of positions in program order at which the bytes hold something.
 *     Scratch (tl_op_shared_bytes) lives while its op runs, its regions included. What an `alloc`
 *     makes lives, with all its slots, from its first use to its last; a use in a loop that does
 *     not hold the alloc is one in the whole loop. Copies may still write it after its last use: it
 *     lives at least to the next `wait` for all of them.
 *  2. Two buffers interfere when their intervals have a position in common; then they share no
 *     byte. First fit by size: largest first, each at the lowest place that is free of those
 *     placed before that it interferes with.
 *  3. Over the machine's limit: an error that lists the buffers, largest first.
 *
 * Bytes against barriers: two ops whose scratch shares bytes need a barrier between them, since the
 * first may still be read when the second writes; with bytes of its own the second goes right on
 * (its own barrier then serves the next one too). So each buffer first tries to share with none of
 * its neighbours in program order, all of them, half of them, ..., the next ones, only the one
 * before, and takes the first place that stays within a budget. The budget is 8 KiB: with the usual
 * 4 warps that costs no occupancy on any target (16 blocks of 128 threads in the 164 KiB of sm_80,
 * 8 blocks of 256 in the 64 KiB of gfx942); or what is needed anyway when that is more, for then
 * keeping apart is free. In a loop the last buffer and the first of the next trip are neighbours
 * too; when there is room for a whole trip they are kept apart with all others. */
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"
#include <stdlib.h>

enum { BUDGET = 8 * 1024, SHOWN = 12 };

typedef struct Buffer {
    TlOp *op;
    uint64_t bytes, offset;
    uint32_t alignment;
    uint32_t first, last; /* positions where it is alive */
    uint32_t number;      /* in program order */
} Buffer;

/* The position of an op, and where its regions end. */
typedef struct Span {
    uint32_t first, last;
} Span;

typedef struct Allocator {
    TlFn *fn;
    TlPassCtx *px;
    TlMap numbers; /* op to its number in program order */
    TL_VEC(Span) spans;
    TL_VEC(Buffer *) all;     /* in program order */
    TL_VEC(Buffer *) by_size; /* largest first, then program order */
} Allocator;

/* ---- 1. buffers ---- */

static Span *span_of(const Allocator *a, const TlOp *op)
{
    uint64_t at = 0;
    bool known = tl_map_get(&a->numbers, (uint64_t)(uintptr_t)op, &at);
    TL_ASSERT(known, "an op without a place");
    return &a->spans.data[at];
}

static void number_ops(Allocator *a)
{
    TlArena *arena = a->px->scratch;
    tl_map_init(&a->numbers, arena);
    uint32_t n = 0;
    for (TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        tl_map_put(&a->numbers, (uint64_t)(uintptr_t)op, n);
        tl_vec_push(arena, &a->spans, (Span){n, n});
        n++;
        for (TlOp *outer = op->block->parent; !op->next && outer; outer = outer->block->parent)
            span_of(a, outer)->last = n - 1; /* the last of a region is the last so far */
    }
}

static void add_buffer(Allocator *a, TlOp *op, uint64_t bytes, uint32_t alignment, Span life)
{
    TL_ASSERT(bytes > 0 && alignment > 0 && (alignment & (alignment - 1)) == 0,
              "%s of %llu bytes at multiples of %u",
              tl_op_info(op->opcode)->text, (unsigned long long)bytes, alignment);
    Buffer *b = TL_NEW(a->px->scratch, Buffer);
    *b = (Buffer){op, bytes, 0, alignment, life.first, life.last, a->all.len};
    tl_vec_push(a->px->scratch, &a->all, b);
    tl_vec_push(a->px->scratch, &a->by_size, b);
}

static bool is_loop(const TlOp *op)
{
    return op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE;
}

/* Where a use of a value from block `home` counts: at the op itself, or at the outermost loop
 * around it within `home`. */
static Span extent_of_use(const Allocator *a, const TlOp *user, const TlBlock *home)
{
    Span s = *span_of(a, user);
    for (const TlBlock *b = user->block; b != home; b = b->parent->block)
        if (is_loop(b->parent))
            s = *span_of(a, b->parent);
    return s;
}

/* Is `outer` the block, or one around it? */
static bool is_around(const TlBlock *outer, const TlBlock *block)
{
    while (block && block != outer)
        block = block->parent ? block->parent->block : NULL;
    return block != NULL;
}

/* In loops between the blocks, the effects of one trip may reach the next. */
static void live_in_loops(const Allocator *a, const TlBlock *inner, const TlBlock *outer,
                          Span *life)
{
    for (; inner != outer; inner = inner->parent->block)
        if (is_loop(inner->parent))
            life->first = span_of(a, inner->parent)->first;
}

static void live_until(Span *life, uint32_t position)
{
    life->last = position > life->last ? position : life->last;
}

/* Copies have arrived at the first wait for all of them behind the last copy that cannot be passed
 * by; where there is none, in another trip perhaps, or never. */
static void live_until_arrival(const Allocator *a, const TlBlock *home, uint32_t copied, Span *life)
{
    for (const TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_WAIT || tl_attr_int(op, TL_ATTR_PENDING, 0) != 0 ||
            span_of(a, op)->first <= copied || !is_around(op->block, home))
            continue;
        live_in_loops(a, home, op->block, life);
        live_until(life, span_of(a, op)->first);
        return;
    }
    live_in_loops(a, home, a->fn->body, life);
    live_until(life, a->spans.len);
}

static void find_life(Allocator *a, TlOp *alloc)
{
    TL_ASSERT(alloc->opcode == TL_OP_ALLOC && alloc->nout == 1,
              "%s makes no buffer", tl_op_info(alloc->opcode)->text);
    const TlValue *buf = alloc->out[0];
    Span life = {UINT32_MAX, 0};
    uint32_t copied = 0;
    for (const TlUse *u = buf->uses; u; u = u->next) {
        Span s = extent_of_use(a, u->user, alloc->block);
        life.first = s.first < life.first ? s.first : life.first;
        live_until(&life, s.last);
        if (u->user->opcode == TL_OP_COPY && s.last > copied)
            copied = s.last;
    }
    if (copied)
        live_until_arrival(a, alloc->block, copied, &life);
    if (buf->uses)
        add_buffer(a, alloc, tl_buf_bytes(buf->type), tl_buf_alignment(buf->type), life);
}

static void find_buffers(Allocator *a)
{
    number_ops(a);
    for (TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        uint32_t bytes = tl_op_shared_bytes(a->px->scratch, op);
        if (bytes)
            add_buffer(a, op, bytes, TL_SHARED_ALIGNMENT, *span_of(a, op));
        else if (op->opcode == TL_OP_ALLOC)
            find_life(a, op);
    }
}

static int compare_sizes(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* ---- 2. numbers ---- */

/* Buffers that must not share bytes, or preferably do not: neighbours up to so many before and
 * behind. */
static bool keeps_apart(const Buffer *a, const Buffer *b, uint32_t before, uint32_t behind)
{
    if (a->first <= b->last && b->first <= a->last)
        return true;
    return b->number < a->number ? a->number - b->number <= before
                                 : b->number - a->number <= behind;
}

static uint64_t aligned(uint64_t offset, uint32_t alignment)
{
    TL_ASSERT(alignment > 0, "no alignment");
    return (offset + alignment - 1) & ~(uint64_t)(alignment - 1);
}

/* The lowest place for buffer i of by_size. A collision moves it behind the one it met, so numbers
 * only go up; done when a whole round meets nobody. */
static uint64_t lowest_offset(const Allocator *a, uint32_t i, uint32_t before, uint32_t behind)
{
    const Buffer *b = a->by_size.data[i];
    uint64_t offset = 0;
    bool moved;
    do {
        moved = false;
        for (uint32_t k = 0; k < i; k++) {
            const Buffer *other = a->by_size.data[k];
            if (offset + b->bytes <= other->offset || other->offset + other->bytes <= offset ||
                !keeps_apart(b, other, before, behind))
                continue;
            offset = aligned(other->offset + other->bytes, b->alignment);
            moved = true;
        }
    } while (moved);
    return offset;
}

static uint64_t choose_offset(const Allocator *a, uint32_t i, uint64_t budget)
{
    uint64_t bytes = a->by_size.data[i]->bytes;
    for (uint32_t n = budget ? a->all.len : 0; n; n /= 2) {
        uint64_t offset = lowest_offset(a, i, n, n);
        if (offset + bytes <= budget)
            return offset;
    }
    uint64_t offset = lowest_offset(a, i, 1, 0);
    return offset + bytes <= budget ? offset : lowest_offset(a, i, 0, 0);
}

/* budget 0: no buffer tries to keep apart from others without need. */
static uint64_t lay_out_all(Allocator *a, uint64_t budget)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < a->by_size.len; i++) {
        Buffer *b = a->by_size.data[i];
        TL_ASSERT(b->bytes > 0, "an empty buffer");
        b->offset = choose_offset(a, i, budget);
        if (b->offset + b->bytes > total)
            total = b->offset + b->bytes;
    }
    return total;
}

static uint64_t allocate(Allocator *a)
{
    uint64_t least = lay_out_all(a, 0), budget = least > BUDGET ? least : BUDGET;
    if (budget > a->px->machine->shared_bytes)
        budget = a->px->machine->shared_bytes;
    uint64_t total = lay_out_all(a, budget);
    return total <= budget ? total : lay_out_all(a, 0); /* the distances cost too much room */
}

/* ---- 3. results ---- */

static const char *name_of(Allocator *a, const TlOp *op)
{
    const char *text = tl_op_info(op->opcode)->text;
    int slots = op->opcode == TL_OP_ALLOC ? (int)op->out[0]->type->slots : 1;
    return slots == 1 ? text : tl_format(a->px->scratch, "%s of %d slots", text, slots);
}

static void complain(Allocator *a, uint64_t total)
{
    TL_ASSERT(a->by_size.len > 0, "too large without a buffer");
    TlDiags *d = &a->px->ctx->diags;
    const Buffer *largest = a->by_size.data[0];
    TlDiag *row = tl_diag(d, largest->op->loc, TL_E0910, a->fn->name, (unsigned long long)total,
                          a->px->machine->shared_bytes);
    for (uint32_t i = 0; i < a->by_size.len && i < SHOWN; i++) {
        const Buffer *b = a->by_size.data[i];
        tl_diag_note(d, row, b->op->loc, "%s: %llu bytes", name_of(a, b->op),
                     (unsigned long long)b->bytes);
    }
    if (a->by_size.len > SHOWN)
        tl_diag_note(d, row, (TlLoc){0}, "and %u smaller ones", a->by_size.len - SHOWN);
}

static bool set_offset(TlFn *fn, TlOp *op, const Buffer *b)
{
    int64_t old = tl_attr_int(op, TL_ATTR_SHARED, -1);
    if (old == (b ? (int64_t)b->offset : -1))
        return false;
    if (b)
        tl_attr_set(fn, op, (TlAttr){.id = TL_ATTR_SHARED, .u.i = (int64_t)b->offset});
    else
        tl_attr_remove(op, TL_ATTR_SHARED); /* from an earlier run, when the op still needed some */
    return true;
}

static bool set_offsets(Allocator *a)
{
    bool changed = false;
    uint32_t next = 0;
    for (TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const Buffer *b = next < a->all.len ? a->all.data[next] : NULL;
        b = b && b->op == op ? b : NULL;
        next += b != NULL;
        changed |= set_offset(a->fn, op, b);
    }
    return changed;
}

TlPassResult tl_pass_allocate_shared(TlFn *fn, TlPassCtx *px)
{
    Allocator a = {.fn = fn, .px = px};
    if (!tl_fn_is_laid_out(fn))
        return TL_SAME;
    find_buffers(&a);
    if (a.all.len) {
        qsort(a.by_size.data, a.by_size.len, sizeof *a.by_size.data, compare_sizes);
        uint64_t total = allocate(&a);
        if (total > px->machine->shared_bytes) {
            complain(&a, total);
            return TL_FAILED;
        }
    }
    return set_offsets(&a) ? TL_CHANGED : TL_SAME;
}
