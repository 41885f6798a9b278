/* pipeline: an iteration of a loop begins to fetch what later iterations need.
 *
 *     for %lo, %hi, %s (%i, %acc) {               %b = alloc : buf<.., 3>
 *       %x = load %A, %i                          copy %A, %lo, (%lo < %hi), %b, 0;  commit
 *       %b = alloc : buf<.., 1>                   copy %A, %lo + %s, ..., %b, 1;     commit
 *       put %b, 0, %x                        =>   for %lo, %hi, %s (%i, %acc, %slot = 0) {
 *       %y = get %b, 0                              wait {pending = 1}
 *       %acc1 = dot %y, ..., %acc                   %y = get %b, %slot
 *       yield %acc1                                 copy %A, %i + 2 * %s, (%i + 2 * %s < %hi),
 *     }                                                    %b, (%slot + 2) % 3
 *                                                   commit
 *                                                   %acc1 = dot %y, ..., %acc
 *                                                   yield %acc1, (%slot + 1) % 3
 *                                                 }
 *                                                 wait {pending = 0}
 *
 *  1. Which loops: FORs with a pipeline hint, and those in which a staged tile goes into a dot;
 *     without loops inside. How many stages S: --stages, else the hint, else the kernel's clause,
 *     else 3 where there are asynchronous copies and 2 elsewhere (and where they are rows of a
 *     warp: two blocks have room then), or as few as choose-warps has found to fit. With 1 nothing
 *     is done. With fewer iterations than stages, or too little shared memory, there are fewer; two
 *     go without the slot that products of the iteration before still read, if need be.
 *  2. Which loads: those of the body itself (not in an if), from memory that the loop does not
 *     write, whose place can be computed ahead: by pure ops from the loop's counter, from what does
 *     not change in it, from carried values of which the same is true, and from other such loads.
 *     Staged ones (load, put); those that the places of these need; with a hint, or for operands of
 *     dots, also others if they are small.
 *  3. How: a copy where the machine has them, the threads' pieces are at least 4 bytes that lie
 *     side by side in memory and in the buffer, and what is outside is 0. Otherwise into registers,
 *     put in a later iteration. Where a warp's copies are a row of shared memory (gfx950: lane n's
 *     16 bytes lie behind lane n - 1's), threads begin them in the layout that follows from the
 *     buffer's, not in the load's: with a swizzle lanes read a row's pieces in another order. There
 *     it is a copy where these pieces lie side by side in memory, and the buffer holds the tile and
 *     nothing else. Where copies of what is outside have to be asked for, none are made if
 *     something else of the loop is put. It is a bulk copy, where the machine has those, unless
 *     tl_bulk_fault objects: one thread issues it, an mbarrier counts the bytes.
 *  4. When (latencies): a copy is begun S - 1 iterations ahead, into S slots; a load into registers
 *     one iteration before it is used or put; with S > 2 it is put one iteration ahead too, into 2
 *     slots, so that one barrier per iteration is enough. To wait more iterations in registers it
 *     would have to be copied from one to the next while it is on its way, and so be waited for.
 *     Where nothing is begun S - 1 iterations ahead, the loop has fewer stages. What a place is
 *     computed from is loaded one iteration before the load that wants it; S - 1 is the most, so
 *     copies behind L such loads are begun S - 1 - L ahead, but one at least. What does not fit is
 *     loaded in the same iteration.
 *  5. Expansion (pipeline_expand.c): a prologue for the first iterations, no epilogue: fetches past
 *     the last iteration are masked off, or lie outside their view anyway.
 *  6. One flow or two (pipeline_flows.c).
 *  7. Where the kernel asks for clusters, programs bring parts of bulk copies that all of them need
 *     (cluster.h) to each other. A slot is free, then, when all of them have read theirs. They meet
 *     when barriers are there, and before these end.
 *
 * What stands in the loop for an iteration stays in its order. The places of what is fetched ahead
 * are computed again for the later iteration: they are index arithmetic. */
#include "ir/layout/layout.h"
#include "ir/plan/mma.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged.h"
#include "ir/plan/staged_plan.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/bulk_fault.h"
#include "passes/analysis/cluster.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/footprint.h"
#include "passes/layout/relayout.h"
#include "passes/pipeline/pipeline_impl.h"
#include <string.h>

enum {
    COPY_STAGES = 3, /* if there is no hint */
    LOAD_STAGES = 2,
    LEAST_COPY = 4,       /* bytes */
    MOST_CANDIDATES = 64, /* loads of a loop; more stay where they are */
    MOST_SLICE = 128,     /* ops that a place needs */
    MOST_HINTED = 64,     /* registers of one load that is not staged: with a hint, */
    MOST_UNASKED = 32,    /* without one, */
    MOST_BY_FMA = 16      /* for a dot by multiply-adds, which is never short of work */
};

/* What is known of a load of the body. */
typedef struct Candidate {
    TlOp *load, *put; /* put: the load's only user, of a buffer of the body */
    uint64_t needs;   /* candidates that its place is computed from, by their numbers as bits */
    int chain;        /* of those that are wanted, or needed by others */
    bool is_used, is_dropped, fails;
} Candidate;

typedef struct Pipeline {
    TlFn *fn;
    TlPassCtx *px;
    TlArena *arena;
    const TlAxisInfo *axis; /* of the function as it came */
    bool pair;              /* products are a pair's */
    uint32_t maps;          /* tensor maps that its loops may have by now */
    /* one loop */
    TlOp *loop;
    bool hinted;
    bool puts;  /* no copies, as something has to be put anyway */
    bool tight; /* no room for the slot that products of the last iteration still read */
    TL_VEC(Candidate) all;
    TlMap number; /* load to its number in `all` */
} Pipeline;

/* ---- 1. loops ---- */

static bool has_dot(const TlOp *loop)
{
    bool dot = false, get = false;
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop)) {
        dot |= op->opcode == TL_OP_DOT || op->opcode == TL_OP_DOT_ASYNC;
        get |= op->opcode == TL_OP_GET || op->opcode == TL_OP_DOT_ASYNC;
    }
    return dot && get;
}

static int stages_of(const Pipeline *p, const TlOp *loop)
{
    const TlKernelInfo *info = p->fn->info;
    int64_t hint = tl_attr_int(loop, TL_ATTR_PIPELINE, 0);
    if (p->px->machine->stages)
        return p->px->machine->stages;
    if (hint)
        return (int)hint;
    if (info && info->stages)
        return info->stages;
    bool deep = p->px->machine->copies && !p->px->machine->copies_rows;
    int stages = deep ? COPY_STAGES : LOAD_STAGES, most = p->fn->body->stages;
    return most && most < stages ? most : stages;
}

/* At most the number of iterations. */
static int limited_stages(const TlOp *loop, int stages)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR,
              "%s is no loop to pipeline", tl_op_info(loop->opcode)->text);
    TlWideInt trips;
    if (stages > TL_MAX_BUF_SLOTS)
        stages = TL_MAX_BUF_SLOTS;
    return tl_const_trips(loop, &trips) && trips < stages ? (int)trips : stages;
}

/* ---- 2. loads ---- */

/* May the load be done some iterations earlier: does nothing in the loop write what it reads? */
static bool may_move(const Pipeline *p, const TlOp *load)
{
    const TlFootprint *f = tl_footprint(load, p->arena);
    if (!f)
        return true;
    for (const TlOp *op = tl_walk_next(p->loop, p->loop); op; op = tl_walk_next(op, p->loop)) {
        uint32_t flags = tl_op_info(op->opcode)->flags;
        if (!(flags & (F_WRITE | F_ATOMIC)))
            continue;
        const TlFootprint *w = tl_footprint(op, p->arena);
        if (flags & F_ATOMIC || (w && tl_footprints_overlap(f, w)))
            return false;
    }
    return true;
}

static bool reads_buffer(const TlOp *op)
{
    return op->opcode == TL_OP_GET || op->opcode == TL_OP_DOT_ASYNC;
}

/* The put, when the load's result goes into a buffer of the same block and nowhere else. */
static TlOp *put_of(const TlOp *load)
{
    const TlUse *u = load->out[0]->uses;
    if (!u || u->next || u->user->opcode != TL_OP_PUT || u->user->block != load->block)
        return NULL;
    const TlOp *alloc = tl_buf_alloc(tl_in(u->user, 0));
    uint64_t slot;
    if (alloc->block != load->block || alloc->out[0]->type->slots != 1 ||
        !tl_value_is_const(tl_in(u->user, 1), &slot))
        return NULL;
    for (const TlUse *b = alloc->out[0]->uses; b; b = b->next)
        if (b->user != u->user && !reads_buffer(b->user))
            return NULL;
    return u->user;
}

/* Registers of a thread that hold the tile. */
static int64_t registers_of(const TlType *t)
{
    TL_ASSERT(t->kind == TL_TILE || tl_is_sums(t), "a type of kind %d", (int)t->kind);
    if (t->kind == TL_TENSOR)
        return 0;
    int64_t bytes = t->ptr ? 8 : tl_dtype_bytes(t->dtype);
    return ((t->layout ? tl_layout_registers(t->layout) : 1) * bytes + 3) / 4;
}

/* Is what is put computed from nothing but the load (widen-once)? */
static bool goes_to_put(const TlValue *v)
{
    while (v->uses && !v->uses->next && tl_op_info(v->uses->user->opcode)->flags & F_ELEM &&
           v->uses->user->nregions == 0)
        v = v->uses->user->out[0];
    return v->uses && !v->uses->next && v->uses->user->opcode == TL_OP_PUT;
}

static bool is_wanted(const Pipeline *p, const Candidate *c)
{
    int64_t registers = registers_of(c->load->out[0]->type);
    const TlOp *dot = c->put ? NULL : tl_dot_of(c->load->out[0]);
    if (c->put)
        return true;
    if (dot && !tl_mma_of(dot))
        return registers <= MOST_BY_FMA;
    if (goes_to_put(c->load->out[0]))
        return tl_words_loaded(p->axis, c->load) <= MOST_UNASKED;
    return registers <= (p->hinted ? MOST_HINTED : dot ? MOST_UNASKED : 0);
}

static void find_candidates(Pipeline *p)
{
    p->all.len = 0;
    tl_map_init(&p->number, p->arena);
    for (TlOp *op = p->loop->regions[0]->first; op; op = op->next) {
        if (op->opcode != TL_OP_LOAD || p->all.len == MOST_CANDIDATES || !may_move(p, op))
            continue;
        Candidate c = {.load = op, .put = put_of(op)};
        tl_map_put(&p->number, (uint64_t)(uintptr_t)op, p->all.len);
        tl_vec_push(p->arena, &p->all, c);
    }
}

/* ---- what places are computed from ---- */

typedef struct Slice {
    TlMap seen;
    TL_VEC(TlValue *) work;
    uint32_t ops;
} Slice;

static bool is_pure(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & F_PURE && op->nregions == 0 && op->opcode != TL_OP_DOT;
}

static void want_operands(Pipeline *p, Slice *s, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        tl_vec_push(p->arena, &s->work, tl_in(op, i));
}

/* False: the value cannot be computed for another iteration. */
static bool walk_value(Pipeline *p, Slice *s, Candidate *c, TlValue *v)
{
    const TlBlock *body = p->loop->regions[0];
    uint64_t n;
    if (tl_is_invariant(v, p->loop) || tl_map_get(&s->seen, v->id, NULL))
        return true;
    tl_map_put(&s->seen, v->id, 1);
    if (!v->def) {
        if (v->index)
            tl_vec_push(p->arena, &s->work, tl_in(body->last, v->index - 1));
        return v->block == body;
    }
    if (tl_map_get(&p->number, (uint64_t)(uintptr_t)v->def, &n)) {
        c->needs |= 1ull << n;
        return true;
    }
    want_operands(p, s, v->def);
    return v->def->block == body && is_pure(v->def) && ++s->ops <= MOST_SLICE;
}

static void walk_place(Pipeline *p, Candidate *c)
{
    Slice s = {.seen = {.arena = p->arena}};
    want_operands(p, &s, c->load);
    while (s.work.len && !c->fails)
        c->fails = !walk_value(p, &s, c, s.work.data[--s.work.len]);
}

/* Who needs one that fails, or in the end itself (a list that is followed), fails too. */
static void spread_faults(Pipeline *p)
{
    TL_ASSERT(p->all.len <= MOST_CANDIDATES, "%u loads", p->all.len);
    uint64_t reach[MOST_CANDIDATES], failing = 0;
    uint32_t n = p->all.len;
    for (uint32_t i = 0; i < n; i++)
        reach[i] = p->all.data[i].needs;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < n; i++)
            reach[i] |= reach[i] >> k & 1 ? reach[k] : 0;
    for (uint32_t i = 0; i < n; i++)
        failing |= (uint64_t)(p->all.data[i].fails || reach[i] >> i & 1) << i;
    for (uint32_t i = 0; i < n; i++)
        p->all.data[i].fails = (reach[i] | 1ull << i) & failing;
}

/* Levels: the longest way from what is wanted. No way is longer than there are loads. */
static void find_levels(Pipeline *p)
{
    TL_ASSERT(p->all.len <= MOST_CANDIDATES, "%u loads", p->all.len);
    for (uint32_t i = 0; i < p->all.len; i++) {
        Candidate *c = &p->all.data[i];
        c->is_used = !c->fails && !c->is_dropped && is_wanted(p, c);
        c->chain = 0;
    }
    for (uint32_t round = 0; round < p->all.len; round++)
        for (uint32_t i = 0; i < p->all.len; i++)
            for (uint32_t k = 0; k < p->all.len && p->all.data[i].is_used; k++) {
                Candidate *needed = &p->all.data[k];
                if (!(p->all.data[i].needs >> k & 1))
                    continue;
                needed->is_used = true;
                if (needed->chain < p->all.data[i].chain + 1)
                    needed->chain = p->all.data[i].chain + 1;
            }
}

/* ---- 3. how ---- */

static bool is_zero(const TlValue *v)
{
    uint64_t bits;
    return !v || (tl_value_is_const(v, &bits) && bits == 0);
}

/* Bytes that lie side by side for a thread, in memory and in the buffer. */
static int copied_bytes(const Pipeline *p, const Candidate *c)
{
    TL_ASSERT(c->put && c->load->nout == 1, "a copy without a buffer");
    const TlType *t = c->load->out[0]->type, *buf = tl_in(c->put, 0)->type;
    TlAccessInfo info = tl_access_info(p->axis, c->load);
    int elem = tl_dtype_bytes(t->dtype), run = tl_access_vector(&info, c->load, t->layout);
    return elem * tl_buf_plan(p->arena, t, buf, run, TL_BUF_WRITES | TL_BUF_IN_ORDER)->nregs;
}

/* Products of one iteration may be pending in the next one: what they read stays for another
 * iteration. */
static bool feeds_product(const TlOp *put)
{
    for (const TlUse *u = tl_in(put, 0)->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_DOT_ASYNC)
            return true;
    return false;
}

/* By boxes of a tensor map, of which a kernel has a number. */
static bool is_bulk(const Pipeline *p, const Candidate *c)
{
    uint32_t maps = p->maps + (uint32_t)(c - p->all.data);
    return p->px->machine->bulk && maps < TL_MAX_MAPS &&
           tl_bulk_fault(p->arena, p->axis, c->load, tl_in(c->put, 0),
                         p->px->machine->warpgroups) == TL_BULK_NONE;
}

/* Does the tile lie the other way in the buffer than in memory, and do threads load and put vectors
 * of it? For copies of its elements they would have four times as much to do. */
static bool is_turned(const Pipeline *p, const Candidate *c, int copied)
{
    const TlType *t = c->load->out[0]->type, *buf = tl_in(c->put, 0)->type;
    TlAccessInfo info = tl_access_info(p->axis, c->load);
    enum { MOST_BYTES = 16 }; /* of an access */
    int elem = tl_dtype_bytes(t->dtype),
        loaded = elem * tl_access_vector(&info, c->load, t->layout),
        put = elem * tl_buf_plan(p->arena, t, buf, MOST_BYTES, TL_BUF_WRITES)->nregs;
    return loaded >= 4 * copied && put >= 4 * copied;
}

/* Where a warp's copies are a row of shared memory: the layout in which threads begin them, which
 * follows from the buffer's. NULL: neighbours in the buffer are none in memory. */
static const TlLayout *row_layout(const Pipeline *p, const Candidate *c)
{
    const TlType *t = c->load->out[0]->type, *buf = tl_in(c->put, 0)->type;
    if (tl_has_tile_operand(c->load))
        return NULL;
    const TlLayout *l =
        tl_buf_row_layout(p->px->ctx, p->arena, buf, p->px->machine->lanes, p->fn->body->warps);
    TlAccessInfo info = tl_access_info(p->axis, c->load);
    if (!l || tl_dtype_bytes(t->dtype) * tl_access_vector(&info, c->load, l) < TL_ROW_BYTES)
        return NULL;
    return l;
}

/* layout: of a copy's token. */
static TlFetchHow how_of(const Pipeline *p, const Candidate *c, const TlLayout **layout)
{
    *layout = c->load->out[0]->type->layout;
    if (!c->put)
        return TL_FETCH_REGS;
    TlPlace place = tl_op_place(c->load);
    TlDtype d = c->load->out[0]->type->dtype;
    bool copies = p->px->machine->copies && !p->puts && is_zero(place.other) && !tl_is_bool(d) &&
                  tl_dtype_bits(d) >= 8;
    if (copies && is_bulk(p, c))
        return TL_FETCH_BULK;
    const TlLayout *rows = copies && p->px->machine->copies_rows ? row_layout(p, c) : NULL;
    if (rows)
        *layout = rows;
    if (p->px->machine->copies_rows)
        return rows ? TL_FETCH_COPY : TL_FETCH_PUT;
    int copied = copies ? copied_bytes(p, c) : 0;
    return copied >= LEAST_COPY && !is_turned(p, c, copied) ? TL_FETCH_COPY : TL_FETCH_PUT;
}

/* Is there a staged load that cannot be a copy? Where a copy takes as many instructions as a load,
 * with what they need for addresses and tests, others gain nothing by being copies then: puts have
 * their barrier. */
static bool has_put(const Pipeline *p)
{
    bool any = false;
    const TlLayout *layout;
    for (uint32_t i = 0; i < p->all.len && !p->px->machine->fills && !any; i++)
        any = p->all.data[i].is_used && how_of(p, &p->all.data[i], &layout) == TL_FETCH_PUT;
    return any;
}

/* Does the loop count up to the extent of an axis that it counts along? Then what starts there for
 * an iteration that does not exist is outside. A counter that wraps is negative, outside too. */
static bool ends_with_loop(const Pipeline *p, const TlOp *load)
{
    TL_ASSERT(load->block->parent == p->loop, "a load outside of the loop");
    TlPlace place = tl_op_place(load);
    const TlValue *counter = p->loop->regions[0]->args[0];
    TlWideInt step;
    if (!place.axes || tl_attr_flag(load, TL_ATTR_UNCHECKED) ||
        !tl_is_signed(counter->type->dtype) || !tl_const_int_value(tl_in(p->loop, 2), &step) ||
        step <= 0)
        return false;
    for (uint32_t i = 0; i < place.naxes; i++) {
        const TlValue *index = place.index[i].value;
        bool up = place.axes[i].kind == TL_AXIS_SCALAR ||
                  (place.axes[i].kind == TL_AXIS_SLICE && place.axes[i].step > 0);
        if (up && tl_axis_plain(p->axis, index) == counter &&
            tl_axis_is_extent(p->axis, tl_in(p->loop, 1), place.base, i))
            return true;
    }
    return false;
}

/* ---- 4. when ---- */

static int min_int(int a, int b)
{
    return a < b ? a : b;
}

TlOp *tl_loop_await(const TlOp *loop)
{
    for (TlOp *op = loop->regions[0]->first; op; op = op->next)
        if (op->opcode == TL_OP_AWAIT && op->nin == 0)
            return op;
    return NULL;
}

/* Do programs of a cluster bring parts of it to each other? */
static bool is_shared(const Pipeline *p, const Candidate *c)
{
    return p->px->machine->multicast && tl_cluster_size(p->fn) > 1 &&
           tl_share_fault(p->fn, p->arena, c->load, tl_in(c->put, 0)->type) == TL_SHARE_NONE;
}

static TlFetch fetch_of(const Pipeline *p, const Candidate *c, int most, int chains)
{
    TL_ASSERT(chains >= 0 && most >= 1, "a chain of %d, %d trips ahead", chains, most);
    int ahead = most - chains < 1 ? 1 : most - chains,
        flying = !p->tight && c->put && tl_loop_await(p->loop) && feeds_product(c->put);
    TlFetch f = {
        .load = c->load, .put = c->put, .chain = c->chain, .ends = ends_with_loop(p, c->load)};
    f.how = how_of(p, c, &f.layout);
    switch (f.how) {
    case TL_FETCH_BULK:
        f.shared = !p->pair && is_shared(p, c);
        /* fall through */
    case TL_FETCH_COPY:
        f.ahead = ahead;
        f.slots = ahead + 1 + flying;
        break;
    case TL_FETCH_PUT:
        f.put_ahead = ahead > 1;
        f.ahead = f.put_ahead + 1;
        f.slots = f.put_ahead + 1 + flying;
        break;
    case TL_FETCH_REGS: f.ahead = 1; break;
    }
    tl_pipeline_ask(p->axis, p->loop, &f, !p->px->machine->fills);
    return f;
}

/* What other loads need is fetched one iteration before the first of them. */
static void advance_needed(const Pipeline *p, TlSchedule *s, const uint32_t *of)
{
    for (uint32_t round = 0; round < s->fetches.len; round++)
        for (uint32_t i = 0; i < s->fetches.len; i++)
            for (uint32_t k = 0; k < s->fetches.len; k++) {
                TlFetch *user = &s->fetches.data[i], *needed = &s->fetches.data[k];
                int least = min_int(user->ahead + 1, s->most);
                if (p->all.data[of[i]].needs >> of[k] & 1 && needed->ahead < least)
                    needed->ahead = least;
            }
}

/* Text order, but with many words in flight those that are least wanted stay. */
static void schedule(const Pipeline *p, int stages, TlSchedule *s)
{
    TL_ASSERT(stages > 1 && stages <= TL_MAX_BUF_SLOTS, "a schedule of %d stages", stages);
    int chains = 0;
    uint32_t of[MOST_CANDIDATES];
    const TlAxisFacts *bound = tl_axis_facts(p->axis, tl_in(p->loop, 1));
    *s = (TlSchedule){.loop = p->loop,
                      .stages = stages,
                      .most = stages - 1,
                      .pair = p->pair,
                      .bound_lo = bound->lo,
                      .bound_hi = bound->hi};
    for (uint32_t i = 0; i < p->all.len; i++)
        if (p->all.data[i].is_used && p->all.data[i].chain > chains)
            chains = p->all.data[i].chain;
    for (uint32_t i = 0; i < p->all.len; i++) {
        if (!p->all.data[i].is_used)
            continue;
        of[s->fetches.len] = i;
        tl_vec_push(p->arena, &s->fetches, fetch_of(p, &p->all.data[i], s->most, chains));
    }
    advance_needed(p, s, of);
    for (uint32_t i = 0, most = 0; i < s->fetches.len; i++) {
        most = s->fetches.data[i].ahead > (int)most ? (uint32_t)s->fetches.data[i].ahead : most;
        s->most = (int)most;
    }
    s->stages = s->most + 1;
}

/* ---- limits ---- */

/* Registers that hold something on its way when an iteration begins. */
static int64_t registers_in_flight(const Pipeline *p, const TlSchedule *s)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++) {
        const TlFetch *f = &s->fetches.data[i];
        if (f->how > TL_FETCH_COPY)
            n += tl_words_loaded(p->axis, f->load) * (f->ahead - f->put_ahead);
    }
    return n;
}

static int64_t carried_registers(const TlOp *loop)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < loop->nout; i++)
        n += registers_of(loop->out[i]->type);
    return n;
}

/* What is alive at the product of the loop at which most is, in code that LLVM schedules: ptxas
 * computes what is between products piece by piece. */
static int64_t registers_at_products(const Pipeline *p)
{
    int64_t most = 0;
    for (const TlOp *op = tl_walk_next(p->loop, p->loop); op; op = tl_walk_next(op, p->loop)) {
        if (!p->px->machine->reads_early || !tl_mma_of(op))
            continue;
        int64_t words = tl_words_alive(p->fn, p->arena, op);
        most = words > most ? words : most;
    }
    return most;
}

static bool fits_registers(const Pipeline *p, const TlSchedule *s)
{
    int64_t flying = registers_in_flight(p, s), all = p->px->machine->registers,
            carried = carried_registers(p->loop), alive = registers_at_products(p);
    return !all || !flying ||
           flying + (alive > carried ? alive : carried) + TL_LOOP_REGISTERS <= all;
}

/* What goes through registers is not fetched then: first what is not staged, then everything. */
static bool give_up(Pipeline *p, TlSchedule *s)
{
    bool any = false;
    for (int staged = 0; staged < 2 && !any; staged++)
        for (uint32_t i = 0; i < p->all.len; i++) {
            Candidate *c = &p->all.data[i];
            const TlFetch *f = tl_schedule_of(s, c->load);
            bool drop = f && f->how > TL_FETCH_COPY && c->chain == 0 && (staged || !f->put);
            c->is_dropped |= drop;
            any |= drop;
        }
    return any;
}

/* The greatest scratch of an op of the loop, in bytes; computed once, because plans are slow. */
static uint64_t most_scratch(const Pipeline *p)
{
    uint64_t most = 0;
    for (const TlOp *op = tl_walk_next(p->loop, p->loop); op; op = tl_walk_next(op, p->loop)) {
        uint64_t bytes = op->opcode == TL_OP_ALLOC ? 0 : tl_op_shared_bytes(p->arena, op);
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* The bytes of buffers that are alive around the loop. */
static uint64_t outer_bytes(const Pipeline *p)
{
    uint64_t bytes = 0;
    for (const TlOp *op = tl_walk_next(p->loop, p->loop); op; op = tl_walk_next(op, p->loop))
        for (uint32_t i = 0; reads_buffer(op) && i < op->nin; i++)
            if (tl_in(op, i)->type->kind == TL_BUF && tl_is_invariant(tl_in(op, i), p->loop))
                bytes += tl_buf_bytes(tl_in(op, i)->type);
    return bytes;
}

/* Launches of clusters with more have been seen to fail now and then. */
uint32_t tl_pipeline_room(const TlFn *fn, const TlPassCtx *px)
{
    uint32_t all = px->machine->shared_bytes;
    bool less = px->machine->multicast && tl_cluster_size(fn) > 1 && all > TL_CLUSTER_SHARED;
    return less ? TL_CLUSTER_SHARED : all;
}

uint64_t tl_schedule_bytes(const TlSchedule *s)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++) {
        const TlFetch *f = &s->fetches.data[i];
        if (f->put)
            bytes += tl_buf_slot_bytes(tl_in(f->put, 0)->type) * (uint64_t)f->slots;
    }
    return bytes;
}

static bool is_fetched(const TlSchedule *s, const TlValue *buf)
{
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].put && tl_in(s->fetches.data[i].put, 0) == buf)
            return true;
    return false;
}

/* The bytes of buffers of the loop that nothing is fetched into. */
static uint64_t inner_bytes(const Pipeline *p, const TlSchedule *s)
{
    uint64_t bytes = 0;
    for (const TlOp *op = tl_walk_next(p->loop, p->loop); op; op = tl_walk_next(op, p->loop))
        if (op->opcode == TL_OP_ALLOC && !is_fetched(s, op->out[0]))
            bytes += tl_buf_bytes(op->out[0]->type);
    return bytes;
}

/* The bytes of the mbarriers of bulk copies. */
static uint64_t barrier_bytes(const TlSchedule *s)
{
    uint64_t slots = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++) {
        const TlFetch *f = &s->fetches.data[i];
        if (f->how == TL_FETCH_BULK && (uint64_t)f->slots > slots)
            slots = (uint64_t)f->slots;
    }
    return TL_SLOT_BARRIERS * slots;
}

static bool fits_shared(const Pipeline *p, const TlSchedule *s)
{
    uint64_t bytes = tl_schedule_bytes(s) + barrier_bytes(s) + outer_bytes(p) + inner_bytes(p, s),
             all = tl_pipeline_room(p->fn, p->px);
    return bytes <= all / 2 || bytes + most_scratch(p) <= all;
}

/* ---- the schedule ---- */

const TlFetch *tl_schedule_of(const TlSchedule *s, const TlOp *load)
{
    for (uint32_t i = 0; i < s->fetches.len; i++)
        if (s->fetches.data[i].load == load)
            return &s->fetches.data[i];
    return NULL;
}

static void print_schedule(TlSbuf *out, const TlSchedule *s)
{
    static const char *const how[] = {"bulk copy", "copy", "load, put", "load"};
    tl_sbuf_putf(out, "// pipeline: a loop of %d stages\n", s->stages);
    for (uint32_t i = 0; i < s->fetches.len; i++) {
        const TlFetch *f = &s->fetches.data[i];
        const char *name = f->load->out[0]->name;
        tl_sbuf_putf(out, "//   stage %d, order %u: %s %s", s->most - f->ahead, i, how[f->how],
                     name ? name : "-");
        if (f->slots)
            tl_sbuf_putf(out, ", %d slots", f->slots);
        if (f->how == TL_FETCH_PUT)
            tl_sbuf_putf(out, ", put in stage %d", s->most - f->put_ahead);
        tl_sbuf_puts(out, "\n");
    }
    tl_sbuf_putf(out, "//   stage %d: the rest\n", s->most);
}

static void show(const Pipeline *p, const TlSchedule *s)
{
    const char *options = p->px->options;
    if (!p->px->print || !options || strcmp(options, "show") != 0)
        return;
    TlSbuf text;
    tl_sbuf_init(&text, p->arena);
    print_schedule(&text, s);
    p->px->print(p->px->user, text.text);
}

/* A stage less; at last two, with products that are done before the next iteration's copies begin.
 * With 1 stage there is no schedule. */
static bool has_less(Pipeline *p, int *stages)
{
    if (*stages == 2 && !p->tight) {
        p->tight = true;
        return true;
    }
    return --*stages >= 2;
}

/* False: there is nothing to gain. */
static bool schedule_loop(Pipeline *p, TlOp *loop, TlSchedule *s)
{
    p->loop = loop;
    p->tight = false;
    p->hinted = tl_attr(loop, TL_ATTR_PIPELINE) != NULL;
    int stages = limited_stages(loop, stages_of(p, loop));
    if (stages < 2 || (!p->hinted && !has_dot(loop)) || !tl_pipeline_has_trips(loop))
        return false;
    find_candidates(p);
    for (uint32_t i = 0; i < p->all.len; i++)
        walk_place(p, &p->all.data[i]);
    spread_faults(p);
    find_levels(p);
    p->puts = false;
    p->puts = has_put(p);
    schedule(p, stages, s);
    while (!fits_registers(p, s) && give_up(p, s)) {
        find_levels(p);
        schedule(p, stages, s);
    }
    while (s->fetches.len && !fits_shared(p, s) && has_less(p, &stages))
        schedule(p, stages, s);
    return s->fetches.len > 0 && stages >= 2;
}

/* ---- the pass ---- */

static uint32_t count_bulk(const TlSchedule *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->fetches.len; i++)
        n += s->fetches.data[i].how == TL_FETCH_BULK;
    return n;
}

static TlSchedules schedule_all(Pipeline *p, TlOp *const *loops, uint32_t n)
{
    TlSchedules made = {0};
    p->maps = 0;
    for (uint32_t i = 0; i < n; i++) {
        TlSchedule s;
        if (!schedule_loop(p, loops[i], &s))
            continue;
        tl_vec_push(p->arena, &made, s);
        p->maps += count_bulk(&s);
    }
    return made;
}

TlPassResult tl_pass_pipeline(TlFn *fn, TlPassCtx *px)
{
    Pipeline p = {.fn = fn, .px = px, .arena = px->scratch};
    TL_VEC(TlOp *) loops = {0};
    if (!tl_fn_is_laid_out(fn))
        return TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && tl_is_innermost(op))
            tl_vec_push(px->scratch, &loops, op);
    if (loops.len == 0)
        return TL_SAME;
    p.axis = tl_pass_axis_info(fn, px);
    TlSchedules made = schedule_all(&p, loops.data, loops.len);
    if (tl_pipeline_choose_pair(fn, px, &made)) {
        p.pair = true;
        made = schedule_all(&p, loops.data, loops.len);
    }
    tl_pipeline_choose_flows(fn, px, &made);
    for (uint32_t i = 0; i < made.len; i++) {
        show(&p, &made.data[i]);
        tl_pipeline_expand(fn, px, &made.data[i]);
    }
    if (made.len)
        tl_pass_dce(fn, px);
    return made.len ? TL_CHANGED : TL_SAME;
}
