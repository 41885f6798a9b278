/* allocate-shared: every op that needs shared memory for itself, and every buffer, gets a place.
 *
 *     %b = convert %a : tile<...>        %b = convert %a {shared = 0} : tile<...>
 *     %r = reduce %b {...} : tile<...>   %r = reduce %b {..., shared = 4096} : tile<...>
 *
 *  1. Buffers, with the interval of positions at which they are alive (analysis/shared_life.c).
 *  2. Two buffers interfere when their intervals have a position in common; then they share no
 *     byte. First fit by size: largest first, each at the lowest place that is free of those
 *     placed before that it interferes with.
 *  3. Over the machine's limit: ops go in parts. Of the scratch that lies past the end, or beside
 *     which something does, the largest is halved (its `shared` says so, shared_plan.h), again and
 *     again, until all fits.
 *  4. If it never does, because of buffers: an error that lists them, largest first.
 *
 *     %b = convert %a : tile<...>        %b = convert %a {shared = 0:32768} : tile<...>
 *
 * With --stress-layouts ops go in parts at random, up to eight. The option limit=BYTES says that
 * the machine has so many.
 *
 * Bytes against barriers: two ops whose scratch shares bytes need a barrier between them, since the
 * first may still be read when the second writes; with bytes of its own the second goes right on
 * (its own barrier then serves the next one too). So each buffer first tries to share with none of
 * its neighbours in program order, all of them, half of them, ..., the next ones, only the one
 * before, and takes the first place that stays within a budget. The budget is 8 KiB: with the usual
 * 4 warps that costs no occupancy on any target (16 blocks of 128 threads in the 164 KiB of sm_80,
 * 8 blocks of 256 in the 64 KiB of gfx942); or what is needed anyway when that is more, for then
 * keeping apart is free. In a loop the last buffer and the first of the next iteration are
 * neighbours too; when there is room for a whole iteration they are kept apart with all others. */
#include "passes/pipeline/allocate_shared.h"
#include "ir/plan/shared_plan.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/shared_life.h"
#include "passes/pass.h"
#include <stdlib.h>
#include <string.h>

enum { BUDGET = 8 * 1024, SHOWN = 12 };

typedef struct Buffer {
    TlSharedLife life;
    uint64_t offset;
    uint32_t number; /* in program order */
} Buffer;

typedef struct Allocator {
    TlFn *fn;
    TlPassCtx *px;
    uint64_t limit;           /* bytes that there are */
    TL_VEC(Buffer *) all;     /* in program order */
    TL_VEC(Buffer *) by_size; /* largest first, then program order */
    TlMap least;              /* ops whose scratch cannot be less */
} Allocator;

/* ---- 1. buffers ---- */

static void add_buffer(Allocator *a, const TlSharedLife *life)
{
    Buffer *b = TL_NEW(a->px->scratch, Buffer);
    *b = (Buffer){*life, 0, a->all.len};
    tl_vec_push(a->px->scratch, &a->all, b);
    tl_vec_push(a->px->scratch, &a->by_size, b);
}

static void find_buffers(Allocator *a, const TlOp *without)
{
    TlPositions order;
    tl_positions_init(&order, a->fn, a->px->scratch);
    TlSharedLives lives = tl_shared_lives(&order, a->fn, a->px->scratch);
    for (uint32_t i = 0; i < lives.len; i++)
        if (lives.data[i].op != without)
            add_buffer(a, &lives.data[i]);
}

static int compare_sizes(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    if (a->life.bytes != b->life.bytes)
        return a->life.bytes > b->life.bytes ? -1 : 1;
    return a->number < b->number ? -1 : 1;
}

/* ---- 2. numbers ---- */

/* Buffers that must not share bytes, or preferably do not: neighbours up to so many before and
 * behind. */
static bool keeps_apart(const Buffer *a, const Buffer *b, uint32_t before, uint32_t behind)
{
    if (tl_lives_together(&a->life, &b->life))
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
            uint64_t end = other->offset + other->life.bytes;
            if (offset + b->life.bytes <= other->offset || end <= offset ||
                !keeps_apart(b, other, before, behind))
                continue;
            offset = aligned(end, b->life.alignment);
            moved = true;
        }
    } while (moved);
    return offset;
}

static uint64_t choose_offset(const Allocator *a, uint32_t i, uint64_t budget)
{
    uint64_t bytes = a->by_size.data[i]->life.bytes;
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
        TL_ASSERT(b->life.bytes > 0, "an empty buffer");
        b->offset = choose_offset(a, i, budget);
        if (b->offset + b->life.bytes > total)
            total = b->offset + b->life.bytes;
    }
    return total;
}

static uint64_t allocate(Allocator *a)
{
    if (a->all.len == 0)
        return 0;
    qsort(a->by_size.data, a->by_size.len, sizeof *a->by_size.data, compare_sizes);
    uint64_t least = lay_out_all(a, 0), budget = least > BUDGET ? least : BUDGET;
    if (budget > a->limit)
        budget = a->limit;
    uint64_t total = lay_out_all(a, budget);
    return total <= budget ? total : lay_out_all(a, 0); /* the distances cost too much room */
}

uint64_t tl_shared_total(TlFn *fn, TlPassCtx *px, const TlOp *without, const TlSharedLife *more)
{
    Allocator a = {.fn = fn, .px = px, .limit = px->machine->shared_bytes};
    find_buffers(&a, without);
    if (more)
        add_buffer(&a, more);
    return allocate(&a);
}

/* ---- 3. parts ---- */

static void find_again(Allocator *a)
{
    a->all.len = a->by_size.len = 0;
    find_buffers(a, NULL);
}

static bool is_past_end(const Allocator *a, const Buffer *b)
{
    return b->offset + b->life.bytes > a->limit;
}

static bool is_scratch(const Buffer *b)
{
    return !tl_makes_buffer(b->life.op);
}

/* Scratch that may be to blame for what is past the end, and can be less. */
static bool is_in_the_way(const Allocator *a, const Buffer *b)
{
    if (!is_scratch(b) || tl_map_get_ptr(&a->least, b->life.op))
        return false;
    bool is = is_past_end(a, b);
    for (uint32_t i = 0; i < a->all.len && !is; i++)
        is = is_past_end(a, a->all.data[i]) && tl_lives_together(&b->life, &a->all.data[i]->life);
    return is;
}

/* The op has half of its scratch from now on, or keeps it and is known to need it. */
static void halve(Allocator *a, const Buffer *b)
{
    TlOp *op = b->life.op;
    uint32_t old = tl_op_room(op, 0);
    if (b->life.bytes > 1)
        tl_op_set_room(a->fn, op, (uint32_t)b->life.bytes / 2);
    if (tl_op_shared_bytes(a->px->scratch, op) < b->life.bytes)
        return;
    tl_op_set_room(a->fn, op, old);
    tl_map_put_ptr(&a->least, op, op);
}

/* False: nothing can be less. */
static bool halve_largest(Allocator *a)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < a->all.len; i++)
        if (is_in_the_way(a, a->all.data[i]) && a->all.data[i]->life.bytes > most)
            most = a->all.data[i]->life.bytes;
    for (uint32_t i = 0; i < a->all.len && most; i++)
        if (a->all.data[i]->life.bytes == most && is_in_the_way(a, a->all.data[i]))
            halve(a, a->all.data[i]);
    return most > 0;
}

static uint64_t allocate_parts(Allocator *a, uint64_t total, bool *out_changed)
{
    tl_map_init(&a->least, a->px->scratch);
    while (total > a->limit && halve_largest(a)) {
        *out_changed = true;
        find_again(a);
        total = allocate(a);
    }
    return total;
}

static bool stress(Allocator *a)
{
    bool any = false;
    for (uint32_t i = 0; i < a->all.len; i++) {
        const Buffer *b = a->all.data[i];
        uint64_t halvings = tl_hash(&b->number, sizeof b->number, a->px->machine->stress) % 4;
        uint32_t room = (uint32_t)(b->life.bytes >> halvings);
        if (!halvings || !room || !is_scratch(b) || tl_op_goes_in_parts(b->life.op))
            continue;
        tl_op_set_room(a->fn, b->life.op, room);
        any = true;
    }
    if (any)
        find_again(a);
    return any;
}

static uint64_t limit_of(const TlPassCtx *px)
{
    const char *option = px->options ? strstr(px->options, "limit=") : NULL;
    return option ? strtoull(option + strlen("limit="), NULL, 0) : px->machine->shared_bytes;
}

/* ---- 4. results ---- */

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
    TlDiag *row = tl_diag(d, largest->life.op->loc, TL_E0910, a->fn->name,
                          (unsigned long long)total, (unsigned)a->limit);
    for (uint32_t i = 0; i < a->by_size.len && i < SHOWN; i++) {
        const Buffer *b = a->by_size.data[i];
        tl_diag_note(d, row, b->life.op->loc, "%s: %llu bytes", name_of(a, b->life.op),
                     (unsigned long long)b->life.bytes);
    }
    if (a->by_size.len > SHOWN)
        tl_diag_note(d, row, (TlLoc){0}, "and %u smaller ones", a->by_size.len - SHOWN);
}

static bool set_offset(TlFn *fn, TlOp *op, const Buffer *b)
{
    int64_t old = tl_attr_int(op, TL_ATTR_SHARED, -1);
    if (old == (b ? (int64_t)b->offset : -1))
        return false;
    TlAttr scratch = {.id = TL_ATTR_SHARED, .n = tl_op_room(op, 0)};
    if (b)
        scratch.u.i = (int64_t)b->offset;
    if (b)
        tl_attr_set(fn, op, scratch);
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
        b = b && b->life.op == op ? b : NULL;
        next += b != NULL;
        changed |= set_offset(a->fn, op, b);
    }
    return changed;
}

TlPassResult tl_pass_allocate_shared(TlFn *fn, TlPassCtx *px)
{
    Allocator a = {.fn = fn, .px = px, .limit = limit_of(px)};
    if (!tl_fn_is_laid_out(fn))
        return TL_SAME;
    find_buffers(&a, NULL);
    bool in_parts = px->machine->stress && stress(&a);
    uint64_t total = allocate_parts(&a, allocate(&a), &in_parts);
    if (total > a.limit) {
        complain(&a, total);
        return TL_FAILED;
    }
    return set_offsets(&a) || in_parts ? TL_CHANGED : TL_SAME;
}
