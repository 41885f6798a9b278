/* park-tiles: where a thread has too few registers for the tiles that are alive at once, some of
 * those that wait meanwhile do so in shared memory.
 *
 *     %k = load %K, ... : tile<f32, 64, 128, #0>    %k = load %K, ... : tile<f32, 64, 128, #0>
 *     for ... {                                     %b = alloc : buf<f32, 64, 128, #1, 1>
 *       ... (needs more than there is)        =>    put %b, %zero, %k
 *     }                                             for ... { ... }
 *     %w = dot %x, %k, ...                          %g = get %b, %zero : tile<f32, 64, 128, #0>
 *                                                   %w = dot %x, %g, ...
 *
 * Whether at all is found by trial: what the kernel needs once the passes behind this one have
 * ordered it, and whether it needs less so. Then threads of a kernel with products in loops compute
 * again where they are for each access (`sparing`), too. Where the estimate is only near what there
 * is, nothing is parked but what costs little for sure: what is put and got less often than the
 * fullest op is done, outside its loop.
 *
 *  1. The fullest op by the estimate (analysis/registers.h), if it needs more than it is to; of
 *     gets, the op that these are for.
 *  2. Tiles that are alive across it, but not taken by it; not what is computed from operands in
 *     buffers, nor what the sums of products in a loop begin with. Each costs one access of a word
 *     where it is put, and one wherever it is got again, in loops as often as these are thought to
 *     run. Of those that leave enough, the one that costs least; where none does, the one that
 *     costs least for each word. What it takes of shared memory must leave all blocks that
 *     registers do.
 *  3. A put behind the tile, or right before the fullest op, where there is room only so; and a
 *     get before the first use behind that op, in its block and in each around it; views are made
 *     again. What a get provides can be got again.
 *  4. Again, until all fits or nothing is left to park.
 *
 * What a loop carries waits over the back edge instead (park_carried.c).
 *
 * A local memory of the target's compiler would hold the same words, but each for itself, and
 * reached through the caches: parked tiles go 16 bytes at a time. Where LLVM gives registers, it
 * spills to registers of another file, or is told to be sparing; there nothing is parked. */
#include "ir/plan/mma.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "passes/analysis/alive.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/registers.h"
#include "passes/layout/relayout.h"
#include "passes/pipeline/allocate_shared.h"
#include "passes/pipeline/park_impl.h"

/* MOST: tiles parked, and gets again; LEAST: words of a thread that are worth it; TRIPS: of a loop
 * that is run within what is parked around it. Parts of registers: ROOM to leave where tiles are
 * parked, as what is beside these is not well known, percent where loops carry them; and NEARLY
 * what there is. */
enum { MOST = 48, LEAST = 4, TRIPS = 16, MOST_DEPTH = 6, ROOM = 3, ROOM_CARRIED = 40, NEARLY = 16 };

/* ---- where things are ---- */

TlOp *tl_park_around(const TlBlock *block, const TlOp *op)
{
    while (op && op->block != block)
        op = op->block->parent;
    return (TlOp *)op;
}

uint32_t tl_park_at(const TlPark *p, const TlOp *op)
{
    return tl_position_of(&p->order, op).first;
}

static int depth_of(const TlBlock *block)
{
    int depth = 0;
    for (const TlOp *op = block->parent; op; op = op->block->parent)
        depth += tl_is_loop(op);
    return depth < MOST_DEPTH ? depth : MOST_DEPTH;
}

int64_t tl_park_runs(const TlBlock *block)
{
    int64_t runs = 1;
    for (int i = depth_of(block); i > 0; i--)
        runs *= TRIPS;
    return runs;
}

/* ---- uses, through views ---- */

static bool is_view(const TlOp *op)
{
    return (tl_op_info(op->opcode)->flags & F_VIEWLIKE) && op->nin == 1 && op->nout == 1;
}

void tl_park_uses(const TlPark *p, TlParkUses *all, TlValue *v)
{
    for (TlUse *u = v->uses; u; u = u->next) {
        if (is_view(u->user))
            tl_park_uses(p, all, u->user->out[0]);
        else
            tl_vec_push(p->px->scratch, all, u);
    }
}

/* ---- 2. candidates ---- */

/* Is it computed from nothing but positions and numbers that all threads have? */
static bool is_made_again(const TlValue *v, int depth)
{
    if (v->type->rank == 0 || (v->def && v->def->opcode == TL_OP_CONST))
        return true;
    if (!v->def || depth == 0)
        return false;
    if (v->def->opcode == TL_OP_IOTA)
        return true;
    if (!(tl_op_info(v->def->opcode)->flags & (F_ELEM | F_VIEWLIKE)))
        return false;
    for (uint32_t i = 0; i < v->def->nin; i++)
        if (!is_made_again(tl_in(v->def, i), depth - 1))
            return false;
    return true;
}

/* Is it computed, element by element, from what a buffer of the loop's operands holds anyway? ptxas
 * computes its parts as they are needed. */
static bool is_of_operands(TlPark *p, const TlValue *v, int depth)
{
    if (!v->def || depth == 0)
        return false;
    if (v->def->opcode == TL_OP_GET)
        return !tl_park_buffer(p, v);
    if (!(tl_op_info(v->def->opcode)->flags & (F_ELEM | F_VIEWLIKE)))
        return false;
    bool of = false;
    for (uint32_t i = 0; i < v->def->nin; i++) {
        bool one = is_of_operands(p, tl_in(v->def, i), depth - 1);
        if (!one && !is_made_again(tl_in(v->def, i), depth - 1))
            return false;
        of |= one;
    }
    return of;
}

const TlValue *tl_park_buffer(TlPark *p, const TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_GET)
        return NULL;
    const TlValue *buf = tl_in(v->def, 0);
    return tl_map_get_ptr(&p->puts, buf) ? buf : NULL;
}

/* Can it be put, and be got again as it is? Buffers of others may be written meanwhile, and are not
 * read before they must be. */
bool tl_park_can_wait(TlPark *p, const TlValue *v)
{
    enum { DEEP = 8 };
    const TlType *t = v->type;
    return t->kind == TL_TILE && t->rank > 0 && t->layout && !t->ptr && t->dtype != TL_BOOL &&
           tl_dtype_bits(t->dtype) >= 8 && tl_words_of(v) >= LEAST &&
           !tl_map_get_ptr(&p->tried, v) &&
           (!v->def || v->def->opcode != TL_OP_GET || tl_park_buffer(p, v)) &&
           !is_made_again(v, DEEP) && !is_of_operands(p, v, DEEP);
}

/* ---- where it is got ---- */

TlParkGroup tl_park_group(const TlPark *p, const TlParkUses *uses, const TlBlock *block,
                          const TlOp *behind, const TlOp *before)
{
    TlParkGroup g = {.block = block};
    for (uint32_t i = 0; i < uses->len; i++) {
        TlOp *o = tl_park_around(block, uses->data[i]->user);
        if (!o || (behind && tl_park_at(p, o) <= tl_park_at(p, behind)) ||
            (before && tl_park_at(p, o) >= tl_park_at(p, before)))
            continue;
        g.first = !g.first || tl_park_at(p, o) < tl_park_at(p, g.first) ? o : g.first;
        tl_vec_push(p->px->scratch, &g.uses, uses->data[i]);
    }
    return g;
}

void tl_park_add_group(const TlPark *p, TlParkCandidate *c, const TlParkUses *uses,
                       const TlBlock *block, const TlOp *behind, const TlOp *before)
{
    TlParkGroup g = tl_park_group(p, uses, block, behind, before);
    if (!g.first)
        return;
    c->cost += tl_park_runs(block);
    tl_vec_push(p->px->scratch, &c->groups, g);
}

void tl_park_find_groups(const TlPark *p, TlParkCandidate *c, const TlParkUses *uses,
                         const TlBlock *home)
{
    const TlOp *x = tl_park_around(home, p->full);
    tl_park_add_group(p, c, uses, home, x, NULL);
    while (x->nregions) {
        const TlOp *next = NULL;
        for (uint32_t r = 0; r < x->nregions; r++) {
            const TlOp *y = tl_park_around(x->regions[r], p->full);
            tl_park_add_group(p, c, uses, x->regions[r], NULL, y);
            if (y)
                tl_park_add_group(p, c, uses, x->regions[r], y, NULL);
            next = y ? y : next;
        }
        if (!next)
            return;
        x = next;
    }
}

bool tl_park_is_taken(const TlPark *p, const TlParkUses *uses)
{
    for (uint32_t i = 0; i < uses->len; i++)
        if (uses->data[i]->user == p->full)
            return true;
    return false;
}

/* Position from which on the tile is there; its last use, as seen from its block. */
TlSpan tl_park_life(const TlPark *p, const TlValue *v, const TlParkUses *uses)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    const TlOp *made = v->def ? v->def : v->block->parent;
    TlSpan s = {made ? tl_park_at(p, made) : 0, 0};
    if (v->def)
        s.first = tl_position_of(&p->order, v->def).last;
    for (uint32_t i = 0; i < uses->len; i++) {
        const TlOp *user = uses->data[i]->user;
        TlSpan use = tl_position_of_use(&p->order, user, home);
        uint32_t last =
            use.first == tl_park_at(p, user) ? use.first : use.last; /* a loop begins with it */
        s.last = last > s.last ? last : s.last;
    }
    return s;
}

/* What is made before ROLES is not put by all warps that get it. */
static bool is_across(const TlPark *p, const TlBlock *home, TlSpan life)
{
    if (p->roles && !tl_block_is_inside(home, p->roles))
        return false;
    return tl_park_around(home, p->full) && life.first < tl_park_at(p, p->full) &&
           life.last > tl_park_at(p, p->full);
}

static const TlType *buffer_for(const TlPark *p, const TlValue *v)
{
    const TlType *t = v->type;
    TlStagingUse use = {
        .type = t, .put = t->layout, .gets = &t->layout, .ngets = 1, .row = t->rank - 1};
    const TlLayout *l = tl_staging_layout(p->px->ctx, p->px->scratch, &use);
    return tl_type_buf(p->px->ctx, t->dtype, t->rank, t->shape, l, 1);
}

/* Blocks of a multiprocessor that full registers leave. */
static int64_t blocks_of(const TlPark *p)
{
    const TlMachine *m = p->px->machine;
    int64_t blocks = (int64_t)m->file * m->schedulers / (p->fn->body->warps * (int64_t)p->most);
    return blocks > 0 ? blocks : 1;
}

bool tl_park_fits(const TlPark *p, const TlValue *v, TlSpan span)
{
    const TlType *buf = buffer_for(p, v);
    TlSharedLife life = {(TlOp *)p->full, tl_buf_bytes(buf), tl_buf_alignment(buf), span.first,
                         span.last};
    uint64_t room = p->px->machine->shared_bytes / (uint64_t)blocks_of(p);
    return tl_shared_total(p->fn, p->px, NULL, &life) <= room;
}

/* Of two that leave enough the one that costs less, otherwise the one that does so by the word. */
bool tl_park_is_better(const TlPark *p, const TlParkCandidate *a, const TlParkCandidate *b)
{
    bool enough_a = a->words >= p->over, enough_b = b->words >= p->over;
    if (!b->v)
        return true;
    if (enough_a && enough_b)
        return a->cost * a->words < b->cost * b->words;
    return a->cost != b->cost ? a->cost < b->cost : a->words > b->words;
}

/* Is it what a loop carries, of which a product begins its sums? */
static bool is_begin_of_sums(const TlValue *v, const TlParkUses *uses)
{
    for (uint32_t i = 0; i < uses->len; i++) {
        const TlOp *user = uses->data[i]->user;
        if (!tl_mma_of(user) || uses->data[i] != &user->in[TL_MMA_C])
            return false;
    }
    return !v->def && uses->len;
}

static void look_at(TlPark *p, TlValue *v, TlParkCandidate *best)
{
    if (!tl_park_can_wait(p, v))
        return;
    TlParkUses uses = {0};
    tl_park_uses(p, &uses, v);
    const TlBlock *home = v->def ? v->def->block : v->block;
    TlSpan life = tl_park_life(p, v, &uses);
    if (!is_across(p, home, life) || tl_park_is_taken(p, &uses) || is_begin_of_sums(v, &uses))
        return;
    bool is_put = tl_park_buffer(p, v) != NULL;
    TlParkCandidate c = {.v = v, .words = tl_words_of(v), .cost = is_put ? 0 : tl_park_runs(home)};
    tl_park_find_groups(p, &c, &uses, home);
    if (c.groups.len == 0 || (p->seldom && c.cost >= tl_park_runs(p->full->block)))
        return;
    if (!tl_park_is_better(p, &c, best))
        return;
    c.home = is_put ? NULL : tl_park_home_for(p, &c);
    if (!is_put && !c.home && !tl_park_fits(p, v, life)) {
        c.behind = tl_park_around(home, p->full)->prev;
        life.first = c.behind ? tl_position_of(&p->order, c.behind).last + 1 : life.first;
        if (!c.behind || !tl_park_fits(p, v, life))
            return;
    }
    *best = c;
}

/* What a for carries waits over the back edge, if it can. */
static void look_at_arguments(TlPark *p, TlOp *op, TlParkCandidate *best)
{
    for (uint32_t r = 0; r < op->nregions; r++) {
        const TlBlock *block = op->regions[r];
        for (uint32_t i = 0; i < block->nargs; i++)
            if (op->opcode != TL_OP_FOR || i == 0 || !tl_park_look_at_carried(p, op, i - 1, best))
                look_at(p, block->args[i], best);
    }
}

static TlParkCandidate best_of(TlPark *p)
{
    TlParkCandidate best = {0};
    const TlOp *end = tl_walk_next(p->full, NULL);
    for (TlOp *op = p->fn->body->first; op && op != end; op = tl_walk_next(op, NULL)) {
        look_at_arguments(p, op, &best);
        for (uint32_t i = 0; op != p->full && i < op->nout; i++)
            look_at(p, op->out[i], &best);
    }
    return best;
}

/* ---- 3. into effect ---- */

TlOp *tl_park_put(TlPark *p, TlBuilder *b, TlValue *v, TlValue *buf)
{
    const TlType *type = buffer_for(p, v);
    if (!buf)
        buf = tl_op_new(b, TL_OP_ALLOC, 0, NULL, 1, &type, 0, 0, NULL)->out[0];
    TlValue *in[] = {buf, tl_const_int(b, tl_type_scalar(p->px->ctx, TL_I32), 0), v};
    TlOp *put = tl_op_new(b, TL_OP_PUT, 3, in, 0, NULL, 0, 0, NULL);
    tl_map_put_ptr(&p->puts, buf, put);
    return put;
}

/* `v`, a view of `of`, as the same view of `got`. */
static TlValue *viewed(TlBuilder *b, TlValue *v, const TlValue *of, TlValue *got)
{
    if (v == of)
        return got;
    TlValue *in = viewed(b, tl_in(v->def, 0), of, got);
    return tl_op_like(b, v->def, 1, &in, 1, &v->type)->out[0];
}

TlOp *tl_park_get(const TlParkGroup *g, const TlOp *put, const TlValue *v)
{
    TlBuilder b = tl_builder_before(g->first);
    TlValue *in[] = {tl_in(put, 0), tl_in(put, 1)};
    TlValue *got = tl_op_new(&b, TL_OP_GET, 2, in, 1, &v->type, 0, 0, NULL)->out[0];
    for (uint32_t i = 0; i < g->uses.len; i++) {
        TlUse *u = g->uses.data[i];
        TlBuilder before = tl_builder_before(u->user);
        tl_set_operand(u->user, (uint32_t)(u - u->user->in), viewed(&before, u->value, v, got));
    }
    return got->def;
}

void tl_park_erase_views(const TlValue *v)
{
    for (TlUse *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (!is_view(u->user))
            continue;
        tl_park_erase_views(u->user->out[0]);
        if (!u->user->out[0]->uses)
            tl_op_erase(u->user);
    }
}

static void park(TlPark *p, const TlParkCandidate *c)
{
    const TlValue *buf = tl_park_buffer(p, c->v);
    TlBuilder b = c->behind ? tl_builder_before(c->behind->next) : tl_builder_after(c->v);
    const TlOp *put = buf ? tl_map_get_ptr(&p->puts, buf) : tl_park_put(p, &b, c->v, NULL);
    for (uint32_t i = 0; i < c->groups.len; i++)
        tl_park_get(&c->groups.data[i], put, c->v);
    tl_park_erase_views(c->v);
    tl_map_put_ptr(&p->tried, c->v, c->v);
}

static void take(TlPark *p, const TlParkCandidate *c)
{

    if (c->loop)
        tl_park_carried(p, c);
    else if (c->home)
        tl_park_as_guest(p, c);
    else
        park(p, c);
}

/* ---- 1. and 4. ---- */

static TlRegisterNeed need_of(const TlFn *fn, TlArena *arena)
{
    return tl_registers_needed(fn, tl_axis_info(fn, arena), TL_ALLOCATOR_PTXAS, arena);
}

/* Is it got for an op behind? What else is got for that cannot wait for this get. */
static bool is_got(TlPark *p, const TlOp *op)
{
    return op->nout == 1 && tl_park_buffer(p, op->out[0]) && op->next;
}

static bool is_short(TlPark *p)
{
    TlRegisterNeed need = need_of(p->fn, p->px->scratch);
    p->full = need.op;
    while (p->full && is_got(p, p->full))
        p->full = p->full->next;
    int carried = p->most - p->most * ROOM_CARRIED / 100;
    p->over = need.registers - (p->homes.len && carried < p->goal ? carried : p->goal);
    tl_positions_init(&p->order, p->fn, p->px->scratch);
    return p->over > 0 && p->full;
}

static TlOp *find(const TlFn *fn, bool (*is)(const TlOp *op))
{
    TlOp *op = fn->body->first;
    while (op && !is(op))
        op = tl_walk_next(op, NULL);
    return op;
}

static bool is_roles(const TlOp *op)
{
    return op->opcode == TL_OP_ROLES;
}

/* Registers that a thread may have. Beside a warp that copies, others have most of what its group
 * does not need. */
static int most_of(const TlFn *fn, const TlMachine *m)
{
    enum { GROUP = 4, MOST_EACH = 240, FEW = 24, UNIT = 8 };
    int warps = fn->body->warps;
    int64_t n = tl_registers_in_block(m->registers, m->file, m->schedulers, warps);
    if (!m->roles || !find(fn, is_roles))
        return (int)n;
    int64_t all = tl_registers_in_block(m->registers, m->file, m->schedulers, warps + GROUP),
            more = (all * (warps + GROUP) - FEW * GROUP) / warps / UNIT * UNIT;
    return (int)(all > MOST_EACH ? n : more < MOST_EACH ? more : MOST_EACH);
}

typedef struct Parked {
    int tiles;
    bool carried; /* some of them by loops */
} Parked;

static Parked park_all(TlFn *fn, TlPassCtx *px, bool seldom)
{
    TlPark p = {.fn = fn, .px = px, .roles = find(fn, is_roles), .seldom = seldom};
    p.most = most_of(fn, px->machine);
    p.goal = p.most - p.most / (seldom ? TL_REGISTERS_DOUBT : ROOM);
    tl_map_init(&p.puts, px->scratch);
    tl_map_init(&p.tried, px->scratch);
    int parked = 0;
    for (TlParkCandidate c; parked < MOST && is_short(&p) && (c = best_of(&p)).v; parked++)
        take(&p, &c);
    return (Parked){parked, p.homes.len > 0};
}

/* ---- the decision ---- */

/* Registers by what the code will be, which the passes behind this one still order; 0: they cannot
 * do it. PARK: NULL, or whether only what is seldom got is parked. */
static int need_behind(TlFn *fn, TlPassCtx *px, const bool *seldom)
{
    TlModule *copy = tl_copy_for_trial(fn);
    TlFn *done = copy->fns.data[0];
    if (seldom)
        park_all(done, px, *seldom);
    int need =
        tl_run_trial(copy, px, NULL, "order-reads") ? need_of(done, px->scratch).registers : 0;
    tl_module_free(copy);
    return need;
}

static bool is_product(const TlOp *op)
{
    return (op->opcode == TL_OP_DOT || op->opcode == TL_OP_DOT_ASYNC) && tl_enclosing_loop(op);
}

/* What it may need by the estimate and is let be. Consumers beside a warp that copies have what is
 * stated for them, and no more. */
static int enough_of(const TlFn *fn, int most)
{
    if (tl_looped_multiply_adds(fn))
        return most - most / TL_REGISTERS_DOUBT_FACTORS;
    return find(fn, is_roles) ? most : most + most / TL_REGISTERS_DOUBT;
}

TlPassResult tl_pass_park_tiles(TlFn *fn, TlPassCtx *px)
{
    const TlMachine *m = px->machine;
    if (!tl_fn_is_laid_out(fn) || m->reads_early || !m->file || !fn->info)
        return TL_SAME;
    int most = most_of(fn, m), enough = enough_of(fn, most), near = most - most / NEARLY;
    near = near < enough ? near : enough;
    if (need_of(fn, px->scratch).registers <= near)
        return TL_SAME;
    int need = need_behind(fn, px, NULL);
    if (need <= near)
        return TL_SAME;
    bool seldom = need <= enough;
    int then = need_behind(fn, px, &seldom);
    Parked parked = then && then < need ? park_all(fn, px, seldom) : (Parked){0};
    if (parked.tiles == 0)
        return TL_SAME;
    if (!seldom && find(fn, is_product))
        fn->body->sparing = TL_SPARING_IN_LOOPS;
    else if (parked.carried)
        fn->body->sparing = TL_SPARING_BEHIND_LOOPS;
    fn->info->sparing_why = tl_format(
        &fn->module->arena, "a thread would need about %d of %d; %d tile%s wait in shared memory",
        need, most, parked.tiles, parked.tiles == 1 ? "" : "s");
    return TL_CHANGED;
}
