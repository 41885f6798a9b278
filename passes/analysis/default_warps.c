/* Warps of a kernel that states none, from the shapes of its tiles: as few as possible, at least
 * LEAST_WARPS, without a thread running out of registers for what it computes. The pass
 * choose-warps begins with these, and asks what the kernel needs after all passes.
 *
 *   products     sums of all products of one block that are alive at once: MOST_SUMS words of a
 *                thread, so that operands, addresses and prefetched data fit into 255 registers
 *                beside them. A product that is the sum of the next counts once
 *   the rest     the largest tile: MOST_WORDS of a thread. Elementwise kernels and reductions of
 *                rows keep several tiles of that size (of 8192 f32: 64 words by 4 warps of 32
 *                threads, so 8)
 *   any tile     what a thread can have at all (TL_MAX_TILE_REGISTERS), for which there may be as
 *                many warps as a block can have
 *
 * A kernel with products is judged by them alone: its other tiles are their operands, which go
 * through shared memory, unless they do not fit. Stages begin as the target has them, and are
 * reduced where shared memory is short (passes/pipeline/pipeline.c). */
#include "passes/analysis/default_warps.h"

enum {
    LEAST_WARPS = 4,
    WARPS_OF_SUMS = 8, /* of NVIDIA's 64K registers 16 warps have 128 for a thread */
    MOST_WARPS = 16,
    MOST_THREADS = 1024, /* of a block, on every GPU */
    MOST_SUMS = 152,     /* words of a thread: of a product's sums, */
    MOST_WORDS = 32      /* of another tile */
};

typedef struct Need {
    int64_t words; /* of 32 bits, of the whole tile */
    const TlOp *op;
} Need;

typedef struct Default {
    int warps;
    const TlOp *largest; /* whose tile would be too much for 4 warps; NULL: there are 4 */
    int64_t each;        /* 32-bit words that it would take of each of their threads */
    bool of_dots;        /* the sums of products */
} Default;

typedef struct Search {
    Need sums, rest;
    Need elements; /* of any tile, not words: a thread has one in each register that it may have */
    const TlBlock *block; /* of the last product; of that block so far: */
    int64_t alive;
} Search;

static int64_t words_of(const TlType *t)
{
    return t->kind == TL_TILE && t->rank > 0
               ? tl_type_elems(t) * (!t->ptr && tl_dtype_bytes(t->dtype) > 4 ? 2 : 1)
               : 0;
}

static void raise(Need *n, int64_t words, const TlOp *op)
{
    if (words > n->words)
        *n = (Need){words, op};
}

/* Is the product the sum of another? */
static bool goes_on(const TlOp *dot)
{
    for (const TlUse *u = dot->out[0]->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_DOT && tl_in(u->user, 2) == dot->out[0])
            return true;
    return false;
}

static void add_sum(Search *s, const TlOp *dot)
{
    if (goes_on(dot))
        return;
    s->alive = words_of(dot->out[0]->type) + (dot->block == s->block ? s->alive : 0);
    s->block = dot->block;
    raise(&s->sums, s->alive, dot);
}

static void look_at(Search *s, const TlOp *op)
{
    if (op->opcode == TL_OP_DOT)
        add_sum(s, op);
    for (uint32_t i = 0; i < op->nout; i++)
        if (op->out[i]->type->kind == TL_TILE)
            raise(&s->elements, tl_type_elems(op->out[i]->type), op);
    for (uint32_t i = 0; i < op->nout && op->opcode != TL_OP_CONST; i++)
        raise(&s->rest, words_of(op->out[i]->type), op);
}

static Default by_tiles(const TlFn *fn, int lanes)
{
    TL_ASSERT(lanes > 0 && LEAST_WARPS * lanes <= MOST_THREADS, "warps of %d", lanes);
    Search s = {0};
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        look_at(&s, op);
    bool of_dots = s.sums.words > 0;
    const Need *n = of_dots ? &s.sums : &s.rest;
    int64_t most = of_dots ? MOST_SUMS : MOST_WORDS;
    int warps = LEAST_WARPS, most_warps = of_dots ? WARPS_OF_SUMS : MOST_WARPS;
    while (warps < most_warps && 2 * warps * lanes <= MOST_THREADS &&
           n->words > most * warps * lanes)
        warps *= 2;
    while (s.elements.words > (int64_t)TL_MAX_TILE_REGISTERS * warps * lanes &&
           2 * warps * lanes <= MOST_THREADS) {
        warps *= 2;
        of_dots = false;
        n = &s.elements;
    }
    const TlOp *largest = warps > LEAST_WARPS ? n->op : NULL;
    return (Default){warps, largest, n->words / (LEAST_WARPS * lanes), of_dots};
}

int tl_choose_warps(TlFn *fn, int asked, int lanes)
{
    if (fn->body->warps)
        return fn->body->warps;
    if (fn->info && fn->info->warps)
        return fn->info->warps;
    if (asked)
        return asked;
    Default d = by_tiles(fn, lanes);
    if (fn->info && d.largest)
        fn->info->warps_why =
            tl_format(&fn->module->arena, "%s of line %u would take %lld words of each thread of 4",
                      d.of_dots ? "the sums" : "a tile", (unsigned)d.largest->loc.line,
                      (long long)d.each);
    return d.warps;
}
