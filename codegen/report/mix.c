/* Instructions by class, and the loops of machine code (mix.h).
 *
 *  1. blocks: they begin where something jumps to, and behind jumps
 *  2. dominators, by the usual iteration over the blocks in reverse postorder
 *  3. natural loops: of each edge to a block that dominates its source; those that hold no other
 *  4. the shortest ways, in instructions, round the main loop by way of its matrix instructions, to
 *     it and from it
 *
 * test/tools/sassmix.py does the same for tests, on cubins alone. */
#include "codegen/report/mix.h"

#include <string.h>

#include "ir/support/guard.h"

static const TlMixClassInfo CLASSES[] = {
#define MIX_CLASS(ID, name, widths) [TL_MIX_##ID] = {name, widths},
#include "codegen/report/mix_class.def"
};

const TlMixClassInfo *tl_mix_class(TlMixClass c)
{
    TL_ASSERT((unsigned)c < TL_MIX_COUNT, "class %d", (int)c);
    return &CLASSES[c];
}

/* ---- counts ---- */

static const uint32_t WIDTHS[TL_MIX_WIDTHS] = {0, 1, 2, 4, 8, 12, 16};

uint32_t tl_mix_width(int index)
{
    TL_ASSERT(index >= 0 && index < TL_MIX_WIDTHS, "width %d", index);
    return WIDTHS[index];
}

static void add(TlMixCounts *m, const TlInsn *i)
{
    int w = TL_MIX_WIDTHS - 1;
    while (w > 0 && WIDTHS[w] != i->width)
        w--;
    m->all++;
    m->of[i->class_]++;
    m->wide[i->class_][w]++;
}

/* ---- blocks ---- */

enum { NONE = -1 };

typedef struct Block {
    int first, last; /* instructions: [first, last) */
    int next[2];     /* blocks; NONE */
    int order;       /* in reverse postorder; NONE: nothing leads to it */
    int dominator;
} Block;

typedef struct Flow {
    TlArena *scratch;
    const TlInsns *code;
    Block *blocks;
    int nblocks;
    int *order; /* blocks in reverse postorder */
    int norder;
    int *distance, *from; /* of the latest search */
} Flow;

static bool *block_starts(const Flow *f, int n)
{
    bool *starts = TL_NEW_ARRAY(f->scratch, bool, n + 1);
    starts[0] = true;
    for (int i = 0; i < n; i++) {
        const TlInsn *x = &f->code->data[i];
        if (x->flow != TL_FLOW_ON)
            starts[i + 1] = true;
        if (x->flow == TL_FLOW_JUMP && x->to >= 0 && x->to < n)
            starts[x->to] = true;
    }
    return starts;
}

static void connect(Flow *f, const int *block_at, int n)
{
    for (int b = 0; b < f->nblocks; b++) {
        Block *x = &f->blocks[b];
        const TlInsn *last = &f->code->data[x->last - 1];
        bool on = last->flow == TL_FLOW_ON || last->conditional;
        x->next[0] = on && x->last < n ? block_at[x->last] : NONE;
        x->next[1] =
            last->flow == TL_FLOW_JUMP && last->to >= 0 && last->to < n ? block_at[last->to] : NONE;
    }
}

static void make_blocks(Flow *f)
{
    int n = (int)f->code->len;
    bool *starts = block_starts(f, n);
    int *block_at = TL_NEW_ARRAY(f->scratch, int, n + 1);
    f->blocks = TL_NEW_ARRAY(f->scratch, Block, n + 1);
    for (int i = 0; i < n; i++) {
        if (starts[i])
            f->blocks[f->nblocks++] = (Block){.first = i, .order = NONE, .dominator = NONE};
        block_at[i] = f->nblocks - 1;
        f->blocks[f->nblocks - 1].last = i + 1;
    }
    connect(f, block_at, n);
}

/* ---- dominators ---- */

/* Depth first from the first block, with a stack of its own: code may be long. */
static void put_in_order(Flow *f)
{
    int *stack = TL_NEW_ARRAY(f->scratch, int, f->nblocks + 1), depth = 0;
    uint8_t *done = TL_NEW_ARRAY(f->scratch, uint8_t, f->nblocks + 1); /* successors looked at */
    bool *seen = TL_NEW_ARRAY(f->scratch, bool, f->nblocks + 1);
    int left = f->nblocks;
    f->order = TL_NEW_ARRAY(f->scratch, int, f->nblocks + 1);
    stack[depth++] = 0;
    seen[0] = true;
    while (depth) {
        int b = stack[depth - 1];
        if (done[b] == 2) {
            f->order[--left] = b;
            depth--;
            continue;
        }
        int to = f->blocks[b].next[done[b]++];
        if (to != NONE && !seen[to]) {
            seen[to] = true;
            stack[depth++] = to;
        }
    }
    f->norder = f->nblocks - left;
    memmove(f->order, f->order + left, (size_t)f->norder * sizeof *f->order);
    for (int i = 0; i < f->norder; i++)
        f->blocks[f->order[i]].order = i;
}

static int common(const Flow *f, int a, int b)
{
    while (a != b) {
        while (f->blocks[a].order > f->blocks[b].order)
            a = f->blocks[a].dominator;
        while (f->blocks[b].order > f->blocks[a].order)
            b = f->blocks[b].dominator;
    }
    return a;
}

static bool improve(Flow *f, int from, int to)
{
    Block *t = &f->blocks[to];
    int d = t->dominator == NONE ? from : common(f, from, t->dominator);
    bool changed = to != f->order[0] && d != t->dominator;
    if (changed)
        t->dominator = d;
    return changed;
}

static void find_dominators(Flow *f)
{
    bool changed = true;
    f->blocks[f->order[0]].dominator = f->order[0];
    while (changed) {
        changed = false;
        for (int i = 0; i < f->norder; i++)
            for (int k = 0; k < 2; k++)
                if (f->blocks[f->order[i]].next[k] != NONE)
                    changed |= improve(f, f->order[i], f->blocks[f->order[i]].next[k]);
    }
}

static bool dominates(const Flow *f, int a, int b)
{
    while (f->blocks[b].order > f->blocks[a].order)
        b = f->blocks[b].dominator;
    return a == b;
}

/* ---- loops ---- */

typedef struct Loop {
    int head;
    bool *holds; /* by block */
} Loop;
typedef TL_VEC(Loop) Loops;

static bool *loop_with_head(const Flow *f, Loops *all, int head)
{
    for (uint32_t i = 0; i < all->len; i++)
        if (all->data[i].head == head)
            return all->data[i].holds;
    bool *holds = TL_NEW_ARRAY(f->scratch, bool, f->nblocks);
    holds[head] = true;
    tl_vec_push(f->scratch, all, ((Loop){head, holds}));
    return holds;
}

/* From the sources of the edges back, all that leads to them without passing the head. */
static void fill_loop(const Flow *f, const Loop *l)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = f->norder - 1; i >= 0; i--) {
            int b = f->order[i];
            for (int k = 0; k < 2 && !l->holds[b]; k++) {
                int to = f->blocks[b].next[k];
                l->holds[b] = to != NONE && to != l->head && l->holds[to];
                changed |= l->holds[b];
            }
        }
    }
}

static Loops find_loops(const Flow *f)
{
    Loops all = {0};
    for (int i = 0; i < f->norder; i++)
        for (int k = 0; k < 2; k++) {
            int b = f->order[i], to = f->blocks[b].next[k];
            if (to != NONE && dominates(f, to, b))
                loop_with_head(f, &all, to)[b] = true;
        }
    for (uint32_t i = 0; i < all.len; i++)
        fill_loop(f, &all.data[i]);
    return all;
}

static void add_block(const Flow *f, int b, TlMixCounts *m)
{
    for (int i = f->blocks[b].first; i < f->blocks[b].last; i++)
        add(m, &f->code->data[i]);
}

/* Does the loop only wait, for a barrier that counts (mbarrier)? */
static bool waits(const Flow *f, const Loop *l)
{
    enum { MOST = 8 }; /* instructions */
    TlMixCounts m = {0};
    for (int b = 0; b < f->nblocks; b++)
        if (l->holds[b])
            add_block(f, b, &m);
    return m.all <= MOST && m.of[TL_MIX_BARRIER] > 0;
}

static bool is_innermost(const Flow *f, const Loops *all, const Loop *l)
{
    for (uint32_t i = 0; i < all->len; i++)
        if (all->data[i].head != l->head && l->holds[all->data[i].head] &&
            !waits(f, &all->data[i]))
            return false;
    return !waits(f, l);
}

/* Is a loop with these counts more the main one than that with those? */
static bool outweighs(const TlMixCounts *a, const TlMixCounts *b)
{
    if (a->of[TL_MIX_MATRIX] != b->of[TL_MIX_MATRIX])
        return a->of[TL_MIX_MATRIX] > b->of[TL_MIX_MATRIX];
    if (a->of[TL_MIX_FLOAT] != b->of[TL_MIX_FLOAT])
        return a->of[TL_MIX_FLOAT] > b->of[TL_MIX_FLOAT];
    return a->all > b->all;
}

static const Loop *main_loop(const Flow *f, const Loops *all)
{
    const Loop *best = NULL;
    TlMixCounts most = {0};
    for (uint32_t i = 0; i < all->len; i++) {
        TlMixCounts m = {0};
        if (!is_innermost(f, all, &all->data[i]))
            continue;
        for (int b = 0; b < f->nblocks; b++)
            if (all->data[i].holds[b])
                add_block(f, b, &m);
        if (!best || outweighs(&m, &most)) {
            best = &all->data[i];
            most = m;
        }
    }
    return best;
}

/* ---- shortest ways ---- */

/* The block that is nearest of those that are reached and not done. */
static int nearest(const Flow *f, const bool *done)
{
    int best = NONE;
    for (int i = 0; i < f->norder; i++) {
        int b = f->order[i];
        if (!done[b] && f->distance[b] >= 0 && (best == NONE || f->distance[b] < f->distance[best]))
            best = b;
    }
    return best;
}

/* Distances from the end of a block, in instructions, to the ends of all others; `holds`: only
 * inside of it. The block itself gets that of the way round. */
static void search(Flow *f, int start, const bool *holds)
{
    bool *done = TL_NEW_ARRAY(f->scratch, bool, f->nblocks);
    for (int b = 0; b < f->nblocks; b++)
        f->distance[b] = f->from[b] = NONE;
    for (int at = start, so_far = 0; at != NONE; at = nearest(f, done)) {
        so_far = at == start && f->distance[start] < 0 ? 0 : f->distance[at];
        done[at] = at != start || f->distance[start] >= 0;
        for (int k = 0; k < 2; k++) {
            int to = f->blocks[at].next[k];
            int n = to == NONE ? 0 : so_far + f->blocks[to].last - f->blocks[to].first;
            if (to == NONE || done[to] || (holds && !holds[to]) ||
                (f->distance[to] >= 0 && f->distance[to] <= n))
                continue;
            f->distance[to] = n;
            f->from[to] = at;
        }
        if (at == start && done[start])
            return;
    }
}

/* Where the blocks of a way are counted: those that `holds` has apart. */
typedef struct Sums {
    const bool *holds; /* NULL: no block */
    TlMixCounts *inside, *outside;
} Sums;

static void add_apart(const Flow *f, int b, const Sums *to)
{
    add_block(f, b, to->holds && to->holds[b] ? to->inside : to->outside);
}

/* Counts the blocks of the way that was found, from its end back to `start`, which is left out but
 * where it is the end too. */
static void add_way(const Flow *f, int start, int end, const Sums *to)
{
    for (int b = end; b != NONE;) {
        add_apart(f, b, to);
        b = f->from[b];
        if (b == start)
            return;
    }
}

static bool is_end(const Flow *f, int b)
{
    return f->code->data[f->blocks[b].last - 1].flow == TL_FLOW_END;
}

static uint32_t matrices_in(const Flow *f, int b)
{
    TlMixCounts m = {0};
    add_block(f, b, &m);
    return m.of[TL_MIX_MATRIX];
}

/* The block with most matrix instructions, the head where there are none: a wait may lead back to
 * the head, too. */
static int heaviest(const Flow *f, const Loop *l)
{
    int best = l->head;
    uint32_t most = matrices_in(f, best);
    for (int b = 0; b < f->nblocks; b++)
        if (l->holds[b] && matrices_in(f, b) > most) {
            best = b;
            most = matrices_in(f, b);
        }
    return best;
}

/* The blocks of the innermost loop around another, or NULL. */
static const bool *loop_around(const Flow *f, const Loops *all, const Loop *l)
{
    const bool *best = NULL;
    int fewest = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        const Loop *x = &all->data[i];
        int n = 0;
        for (int b = 0; b < f->nblocks; b++)
            n += x->holds[b];
        if (x->head != l->head && x->holds[l->head] && (!best || n < fewest)) {
            best = x->holds;
            fewest = n;
        }
    }
    return best;
}

/* To the head and from it to the nearest end. */
static void count_rest(Flow *f, int head, const Sums *to)
{
    if (head != f->order[0]) {
        add_apart(f, f->order[0], to);
        search(f, f->order[0], NULL);
        if (f->from[head] != f->order[0])
            add_way(f, f->order[0], f->from[head], to);
    }
    search(f, head, NULL);
    int end = NONE;
    for (int b = 0; b < f->nblocks; b++)
        if (is_end(f, b) && f->distance[b] >= 0 &&
            (end == NONE || f->distance[b] < f->distance[end]))
            end = b;
    if (end != NONE)
        add_way(f, head, end, to);
}

void tl_mix_count(TlArena *scratch, const TlInsns *code, TlMix *out)
{
    Flow f = {.scratch = scratch, .code = code};
    *out = (TlMix){0};
    for (uint32_t i = 0; i < code->len; i++)
        add(&out->all, &code->data[i]);
    out->rest = out->all;
    if (code->len == 0)
        return;
    make_blocks(&f);
    put_in_order(&f);
    find_dominators(&f);
    Loops loops = find_loops(&f);
    const Loop *l = main_loop(&f, &loops);
    if (!l)
        return;
    f.distance = TL_NEW_ARRAY(scratch, int, f.nblocks);
    f.from = TL_NEW_ARRAY(scratch, int, f.nblocks);
    out->loops = true;
    int start = heaviest(&f, l);
    search(&f, start, l->holds);
    add_way(&f, start, start, &(Sums){NULL, NULL, &out->trip});
    out->rest = (TlMixCounts){0};
    count_rest(&f, l->head, &(Sums){loop_around(&f, &loops, l), &out->around, &out->rest});
}
