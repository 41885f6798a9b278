/* Minimum cut (min_cut.h): things on the source's side are in state 0, on the sink's in state 1.
 * A cost of state 1 is an edge from the source, one of state 0 an edge to the sink, one of x = 0
 * with y = 1 an edge from x to y; what is cut is paid. The cut is found by maximum flow (Dinic):
 * rounds of a breadth-first search for levels, and paths along rising levels until none is left. */
#include "passes/layout/min_cut.h"
#include "ir/support/guard.h"

typedef struct Edge { /* its reverse is number ^ 1 */
    uint32_t to;
    int32_t next; /* of the same node; -1 */
    int64_t room;
} Edge;

struct TlCut {
    TlArena *arena;
    uint32_t n; /* source is n, sink n + 1 */
    TL_VEC(Edge) edges;
    int32_t *first, *current; /* of each node: edge */
    uint32_t *level;          /* 0: not reached */
    uint32_t *queue;
    int32_t *path;
};

TlCut *tl_cut_new(TlArena *arena, uint32_t n)
{
    TL_ASSERT(n < UINT32_MAX - 2, "a cut of %u things", n);
    TlCut *c = TL_NEW(arena, TlCut);
    c->arena = arena;
    c->n = n;
    c->first = TL_NEW_ARRAY(arena, int32_t, n + 2);
    c->current = TL_NEW_ARRAY(arena, int32_t, n + 2);
    c->level = TL_NEW_ARRAY(arena, uint32_t, n + 2);
    c->queue = TL_NEW_ARRAY(arena, uint32_t, n + 2);
    c->path = TL_NEW_ARRAY(arena, int32_t, n + 2);
    for (uint32_t i = 0; i < n + 2; i++)
        c->first[i] = -1;
    return c;
}

static void add_half(TlCut *c, uint32_t from, uint32_t to, int64_t room)
{
    Edge e = {.to = to, .next = c->first[from], .room = room};
    c->first[from] = (int32_t)c->edges.len;
    tl_vec_push(c->arena, &c->edges, e);
}

static void add_edge(TlCut *c, uint32_t from, uint32_t to, int64_t room)
{
    if (room <= 0)
        return;
    add_half(c, from, to, room);
    add_half(c, to, from, 0);
}

void tl_cut_one(TlCut *c, uint32_t x, int64_t cost0, int64_t cost1)
{
    TL_ASSERT(x < c->n, "thing %u of %u", x, c->n);
    add_edge(c, c->n, x, cost1 - cost0);
    add_edge(c, x, c->n + 1, cost0 - cost1);
}

void tl_cut_two(TlCut *c, uint32_t x, uint32_t y, int64_t cost[2][2])
{
    TL_ASSERT(x != y && y < c->n, "things %u and %u of %u", x, y, c->n);
    tl_cut_one(c, x, cost[0][0], cost[1][0]);
    tl_cut_one(c, y, cost[1][0], cost[1][1]);
    add_edge(c, x, y, cost[0][1] + cost[1][0] - cost[0][0] - cost[1][1]);
}

/* Is there still a path to the sink? */
static bool find_levels(TlCut *c)
{
    uint32_t from = 0, to = 0;
    for (uint32_t i = 0; i < c->n + 2; i++) {
        c->level[i] = 0;
        c->current[i] = c->first[i];
    }
    c->level[c->n] = 1;
    c->queue[to++] = c->n;
    while (from < to) {
        uint32_t x = c->queue[from++];
        for (int32_t i = c->first[x]; i >= 0; i = c->edges.data[i].next) {
            const Edge *e = &c->edges.data[i];
            if (!e->room || c->level[e->to])
                continue;
            c->level[e->to] = c->level[x] + 1;
            c->queue[to++] = e->to;
        }
    }
    return c->level[c->n + 1] != 0;
}

/* The next edge of a rising path from x; -1: a dead end. */
static int32_t rising(TlCut *c, uint32_t x)
{
    for (int32_t *i = &c->current[x]; *i >= 0; *i = c->edges.data[*i].next) {
        const Edge *e = &c->edges.data[*i];
        if (e->room && c->level[e->to] == c->level[x] + 1)
            return *i;
    }
    return -1;
}

static void push(TlCut *c, uint32_t length)
{
    int64_t least = INT64_MAX;
    for (uint32_t k = 0; k < length; k++)
        if (c->edges.data[c->path[k]].room < least)
            least = c->edges.data[c->path[k]].room;
    for (uint32_t k = 0; k < length; k++) {
        c->edges.data[c->path[k]].room -= least;
        c->edges.data[c->path[k] ^ 1].room += least;
    }
}

/* The flow that these levels let through. */
static void push_all(TlCut *c)
{
    uint32_t x = c->n, length = 0;
    for (;;) {
        int32_t e = rising(c, x);
        if (e >= 0) {
            c->path[length++] = e;
            x = c->edges.data[e].to;
            if (x != c->n + 1)
                continue;
            push(c, length);
            x = c->n;
            length = 0;
        } else if (length) {
            c->level[x] = 0; /* no more flow passes here */
            x = c->edges.data[c->path[--length] ^ 1].to;
        } else {
            return;
        }
    }
}

void tl_cut_solve(TlCut *c, bool *out)
{
    while (find_levels(c))
        push_all(c);
    for (uint32_t i = 0; i < c->n; i++)
        out[i] = c->level[i] == 0; /* the source does not reach it */
}
