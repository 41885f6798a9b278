/* chunk-rows: a row that registers do not hold is worked on in chunks.
 *
 *     %v = load %x, %r, 0 {axes = [i, 65536]}       %s = for 0, 65536, 4096, -0.0 (%i, %a) {
 *     %t = reduce %v {kind = add} : f32               %v = load %x, %r, %i {axes = [i, 4096]}
 *     %b = broadcast %t                         =>    %t = reduce %v {kind = add} : f32
 *     %d = sub %v, %b                                 %n = add %a, %t;  yield %n
 *     store %y, %r, 0, %d {axes = [i, 65536]}       }
 *                                                   for 0, 65536, 4096 (%i) {
 *                                                     %v = load %x, %r, %i {axes = [i, 4096]}
 *                                                     %b = broadcast %s
 *                                                     %d = sub %v, %b
 *                                                     store %y, %r, %i, %d {axes = [i, 4096]}
 *                                                   }
 *
 * A tile lives in registers as a whole. One of 65536 elements has 512 in each of 128 threads: more
 * than there are, so that values go to memory and come back at every step, and code of 512 copies
 * of each op. In chunks, each pass over the row reads it again, the second time from a cache. What
 * was computed is computed again in each pass that needs it.
 *
 *  0. The total of a long tile, which is a reduction of its reshape to one axis, is taken axis by
 *     axis. A long tile that is a shifted other one is loaded at its own place (chunk_shift.c).
 *  1. A tile of many elements per thread, and an axis of it (the longest first): the group of ops
 *     that must be cut with it (chunk_find.c).
 *  2. The passes over the row, each from its first chunk to the last or the other way, as the scans
 *     in it go (chunk_order.c).
 *  3. Worth it: what needs several passes, if what lives across reductions needs more registers
 *     than there are for that, or the code would be too long: else the row is read once, which is
 *     best. What reads its row once in any case, if the code would be long. With a product, only
 *     if its sums need more registers than there are, or do with operands that shared memory has
 *     no room for, as each part reads the other operand again.
 *  4. The loops (chunk_emit.c). reduce-locality then keeps partial results per thread.
 *
 * Elements have the bits that they had; reductions of floats have another order, as is open on a
 * GPU. The option `elements=N` demands chunks of N elements, whatever it is worth. */
#include "passes/simplify/chunk_impl.h"
#include "passes/analysis/default_warps.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    FEWEST_ELEMENTS = 32,  /* of a thread, that a tile must have to be looked at, */
    MOST_ELEMENTS = 128,   /* that it may have if its row is read again in chunks, */
    MOST_CODE = 12288,     /* and those times ops; */
    MOST_ONCE = 64,        /* if it is read once in any case, */
    MOST_CODE_ONCE = 3072, /* and those times ops */
    FULL_THREADS = 256,    /* so many have all the registers that a thread can have */
    ANY_REGISTERS = 255,   /* of a machine that does not say */
    LIVE_SHARE = 55,       /* percent of them may live across reductions; */
    LIVE_SHARE_EARLY = 40, /* where LLVM schedules: it begins loads early, and keeps addresses */
    PRODUCT_SHARE = 75, /* percent of them may be a product's sums, and operands that it holds */
    CHUNK_BYTES = 128, /* that a thread loads of a chunk, if it can */
    CHUNK_MOST = 32, /* elements of a thread */
    CHUNK_LEAST = 8,
    CHUNK_BETWEEN = 16,     /* at most, with a scan, or a reduction whose tiles are carried; */
    CHUNK_BETWEEN_EARLY = 8 /* where LLVM schedules */
};

typedef struct Rows {
    TlFn *fn;
    TlPassCtx *px;
    int64_t threads;
    int32_t asked; /* elements of a chunk that the option asks for; 0: none */
    TlMap *tried;  /* ops */
    TlMap *loops;  /* that go over chunks */
} Rows;

static int64_t per_thread(const Rows *r, const TlType *t)
{
    return (tl_type_elems(t) + r->threads - 1) / r->threads;
}

/* ---- 0. totals ---- */

static bool take_totals(const Rows *r)
{
    bool changed = false;
    for (TlOp *op = r->fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        TlValue *x = tl_chunk_total_of(op);
        if (!x || (!r->asked && per_thread(r, x->type) <= MOST_ELEMENTS))
            continue;
        tl_chunk_total_by_axes(op, x);
        changed = true;
    }
    return changed;
}

/* ---- 0. shifted rows ---- */

static bool read_shifted(const Rows *r)
{
    bool changed = false;
    for (TlOp *op = r->fn->body->first, *next; op; op = next) {
        next = tl_walk_next(op, NULL);
        if (op->opcode == TL_OP_GATHER &&
            (r->asked || per_thread(r, op->out[0]->type) > FEWEST_ELEMENTS))
            changed = tl_chunk_read_shifted(op) || changed;
    }
    return changed;
}

/* ---- 3. worth it ---- */

static int64_t words_of(const Rows *r, const TlType *t)
{
    int bits = t->ptr ? 64 : tl_dtype_bits(t->dtype);
    return (per_thread(r, t) * bits + 31) / 32;
}

/* The pass in which it is made, were the row kept: the first that needs it. */
static int made_in(const TlChunkOp *m)
{
    return m->passes ? __builtin_ctz(m->passes) : INT_MAX;
}

/* Words of a thread that are made up to pass k and used after it. A scan takes its operand and its
 * result at once. */
static int64_t words_across(const Rows *r, const TlChunkGroup *g, int k)
{
    int64_t words = 0;
    for (uint32_t i = 0; i < g->ops.len; i++) {
        const TlChunkOp *m = &g->ops.data[i];
        for (uint32_t j = 0; made_in(m) <= k && j < m->op->nout; j++) {
            bool lives = m->op->opcode == TL_OP_SCAN;
            for (const TlUse *u = m->op->out[j]->uses; u; u = u->next) {
                const TlChunkOp *user = tl_chunk_member(g, u->user);
                lives |= user && (made_in(user) > k || user->op->opcode == TL_OP_SCAN);
            }
            if (lives && tl_chunk_result_axis(m->op, m->axis) >= 0)
                words += words_of(r, m->op->out[j]->type);
        }
    }
    return words;
}

static int64_t registers_of(const Rows *r)
{
    const TlMachine *m = r->px->machine;
    int64_t registers = m->registers ? m->registers : ANY_REGISTERS;
    return r->threads > FULL_THREADS ? registers * FULL_THREADS / r->threads : registers;
}

/* Registers of a thread for what lives across reductions. */
static int64_t words_to_live(const Rows *r)
{
    return registers_of(r) *
           (r->px->machine->reads_early ? LIVE_SHARE_EARLY : LIVE_SHARE) / 100;
}

/* Words of a thread for a product's operands: none where shared memory has room for both, so that
 * each step of the product reads its part; else they go through it piece by piece, and registers
 * hold all of both, what several warps need in each of these. */
static int64_t words_of_operands(const Rows *r, const TlOp *dot)
{
    enum { REPEATED = 2 };
    int64_t bytes = 0, words = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const TlType *t = tl_in(dot, i)->type;
        bytes += tl_type_elems(t) * tl_dtype_bits(t->dtype) / 8;
        words += REPEATED * words_of(r, t);
    }
    return bytes > r->px->machine->shared_bytes ? words : 0;
}

/* The words of a thread that the group's largest product takes: its sums, with operands or without;
 * 0: it has none. */
static int64_t words_of_products(const Rows *r, const TlChunkGroup *g, bool operands)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < g->ops.len; i++) {
        const TlOp *op = g->ops.data[i].op;
        if (op->opcode != TL_OP_DOT)
            continue;
        int64_t words = words_of(r, op->out[0]->type) + (operands ? words_of_operands(r, op) : 0);
        most = words > most ? words : most;
    }
    return most;
}

/* A product is cut only if registers cannot hold its sums, or what these and its operands need
 * together: each part reads the other operand. */
static bool is_worth_it(const Rows *r, const TlChunkGroup *g, int64_t elements)
{
    int64_t products = words_of_products(r, g, true);
    if (products)
        return 100 * products > registers_of(r) * PRODUCT_SHARE;
    int64_t code = elements * g->ops.len;
    bool once = g->npasses == 1;
    for (uint32_t i = 0; i < g->ops.len; i++)
        once &= g->ops.data[i].op->opcode != TL_OP_SCAN;
    if (once)
        return elements > MOST_ONCE || code > MOST_CODE_ONCE;
    if (elements > MOST_ELEMENTS || code > MOST_CODE)
        return true;
    for (int k = 0; k < g->npasses; k++)
        if (words_across(r, g, k) > words_to_live(r))
            return true;
    return false;
}

/* ---- 4. how long chunks are ---- */

/* Layouts like powers of two. */
static int32_t chunk_of_rows(const Rows *r, int32_t elements, int64_t rows)
{
    int64_t chunk = 1;
    while (2 * chunk * rows <= elements * r->threads)
        chunk *= 2;
    return (int32_t)chunk;
}

/* So many elements of a thread, over all rows of the tile that has most. */
static int32_t chunk_of(const Rows *r, const TlChunkGroup *g)
{
    int64_t bytes = 1, rows = 1, most = CHUNK_MOST;
    for (uint32_t i = 0; i < g->ops.len; i++) {
        const TlOp *op = g->ops.data[i].op;
        if (op->opcode == TL_OP_LOAD)
            bytes += tl_dtype_bytes(op->out[0]->type->dtype);
        if (op->opcode == TL_OP_SCAN || tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER)
            most = r->px->machine->reads_early ? CHUNK_BETWEEN_EARLY : CHUNK_BETWEEN;
        for (uint32_t k = 0; k < op->nin; k++) {
            const TlType *t = tl_in(op, k)->type;
            if (t->kind == TL_TILE && tl_type_elems(t) / g->extent > rows)
                rows = tl_type_elems(t) / g->extent;
        }
    }
    if (words_of_products(r, g, false))
        return r->asked ? r->asked : chunk_of_rows(r, CHUNK_MOST, rows);
    int32_t elements = CHUNK_LEAST;
    while (elements < most && 2 * elements * (bytes - 1) <= CHUNK_BYTES)
        elements *= 2;
    return r->asked ? r->asked : chunk_of_rows(r, elements, rows);
}

/* ---- the pass ---- */

/* What has been looked at in vain is not looked at again; but products have axes that this tile has
 * not. */
static bool give_up(const Rows *r, const TlChunkGroup *g)
{
    if (words_of_products(r, g, false))
        return false;
    for (uint32_t i = 0; i < g->ops.len; i++)
        tl_map_put_ptr(r->tried, g->ops.data[i].op, g->ops.data[i].op);
    return false;
}

static bool cut_along(const Rows *r, TlValue *tile, int axis)
{
    TlChunkGroup g = {.fn = r->fn, .arena = r->px->scratch, .loops = r->loops};
    if (!tl_chunk_find(&g, tile, axis) || !tl_chunk_order(&g))
        return give_up(r, &g);
    int64_t elements = 0;
    for (uint32_t i = 0; i < g.ops.len; i++)
        for (uint32_t k = 0; k < g.ops.data[i].op->nout; k++) {
            int64_t n = per_thread(r, g.ops.data[i].op->out[k]->type);
            elements = n > elements ? n : elements;
        }
    int32_t chunk = chunk_of(r, &g);
    if (chunk >= g.extent || (!r->asked && !is_worth_it(r, &g, elements)))
        return give_up(r, &g);
    tl_chunk_emit(&g, chunk);
    return true;
}

/* The axes of a tile, the longest first. */
static bool cut_tile(const Rows *r, TlValue *tile)
{
    unsigned tried = 0;
    for (int n = 0; n < tile->type->rank; n++) {
        int best = -1;
        for (int d = 0; d < tile->type->rank; d++)
            if (!(tried >> d & 1) && (best < 0 || tile->type->shape[d] > tile->type->shape[best]))
                best = d;
        tried |= 1u << best;
        if (tile->type->shape[best] > 1 && cut_along(r, tile, best))
            return true;
    }
    return false;
}

static bool is_long(const Rows *r, const TlOp *op)
{
    if (op->opcode != TL_OP_LOAD && !(tl_op_info(op->opcode)->flags & F_ELEM))
        return false;
    const TlType *t = op->out[0]->type;
    return t->rank > 0 && (r->asked || per_thread(r, t) > FEWEST_ELEMENTS);
}

/* Ops of loops that were made are not cut again. */
static bool is_of_chunk(const Rows *r, const TlOp *op)
{
    for (const TlBlock *b = op->block; b->parent; b = b->parent->block)
        if (tl_map_get_ptr(r->loops, b->parent))
            return true;
    return false;
}

static bool cut_one(const Rows *r)
{
    for (TlOp *op = r->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!is_long(r, op) || tl_map_get_ptr(r->tried, op) || is_of_chunk(r, op))
            continue;
        tl_map_put_ptr(r->tried, op, op);
        if (cut_tile(r, op->out[0]))
            return true;
    }
    return false;
}

TlPassResult tl_pass_chunk_rows(TlFn *fn, TlPassCtx *px)
{
    const char *asked = px->options ? strstr(px->options, "elements=") : NULL;
    int warps = tl_choose_warps(fn, px->machine->warps, px->machine->lanes); /* of whole rows */
    TlMap tried, loops;
    Rows r = {.fn = fn,
              .px = px,
              .tried = &tried,
              .loops = &loops,
              .threads = (int64_t)warps * px->machine->lanes,
              .asked = asked ? (int32_t)strtol(asked + strlen("elements="), NULL, 10) : 0};
    tl_map_init(r.tried, px->scratch);
    tl_map_init(r.loops, px->scratch);
    bool changed = take_totals(&r);
    TlPassResult result = read_shifted(&r) || changed ? TL_CHANGED : TL_SAME;
    while (cut_one(&r))
        result = TL_CHANGED;
    if (result == TL_CHANGED)
        fn->body->warps = warps;
    return result;
}
