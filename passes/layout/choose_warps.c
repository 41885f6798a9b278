/* choose-warps: the warps of a kernel that states none, the stages of loops that state none, and
 * whether operands that all trips of a loop share are kept in shared memory: as registers need it,
 * by trial.
 *
 *     kernel @k(...) {      =>      kernel @k(...) warps 8 stages 2 kept {
 *
 *   1 first, the warps that its tiles suggest (passes/analysis/default_warps.h) or the kernel
 *     states, and the stages that the pipeline has for the target (passes/pipeline/pipeline.c)
 *   2 if by the tiles alone, before layouts, a thread needs half of what it may have, or a quarter
 *     if products in loops want fragments of their operands beside, that is it
 *   3 a trial: the passes behind this one run over a copy. What a thread needs after them is
 *     estimated (passes/analysis/registers.h); what is more than it may have would be spilled, and
 *     as the estimate may be off, some of what is a little less
 *   4 other choices: a power of two of warps that a block can have, stages down to 1, operands
 *     kept. Each costs something whatever it spills: with fewer stages less of memory's latency is
 *     hidden, with other warps the tiles are shared in another way, what is kept is read in each
 *     trip. They are tried from the cheapest on, until the next would cost more by itself than the
 *     best so far with what it spills
 *
 * Costs are in accesses of a thread of the first choice: a spilled word costs two, it is stored and
 * read, and that in all warps, of which there may be more or fewer. Where LLVM gives registers, it
 * costs four: AMD's loads come back in the order in which they were begun, so one of a spilled word
 * waits for what was fetched ahead before it. With s stages, s trips share
 * what of a latency the products of the s - 1 trips before do not fill. More warps share what a
 * multiprocessor has: of so many registers a thread may have fewer. `choose-warps{show}` prints the
 * trials. */
#include "ir/remark.h"
#include "passes/analysis/default_warps.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/registers.h"
#include "passes/pass.h"
#include <string.h>

enum { LEAST_WARPS = 4, MOST_WARPS = 32, MOST_THREADS = 1024 };
/* What twice (in each of them) or half as many cost; what memory's latency costs a trip of a loop
 * that nothing is fetched ahead for; what reading of kept operands does: in accesses that are done
 * in that time. */
enum { SPILLED = 2, SPILLED_IN_ORDER = 4, CHANGED_WARPS = 16, LATENCY = 48, KEPT = 20 };

typedef struct Choice {
    int warps, stages; /* stages 0: those of the target */
    bool kept;
    int64_t cost; /* whatever it spills */
} Choice;

typedef TL_VEC(Choice) Choices;

typedef struct Trial {
    Choice choice;
    bool runs;                   /* the passes had no error */
    bool adds;                   /* a loop has products by multiply-adds */
    int stages;                  /* of the loops that have most; 0: none is pipelined */
    int64_t need, most, spilled; /* registers of a thread; spilled: words to expect */
} Trial;

typedef struct Choose {
    TlFn *fn;
    TlPassCtx *px;
    int warps;    /* at first */
    int64_t work; /* of the products of a trip, where it is least: in accesses */
} Choose;

static int64_t registers_of(const TlMachine *m, int warps)
{
    return tl_registers_in_block(m->registers, m->file, m->schedulers, warps);
}

static TlAllocator allocator_of(const TlMachine *m)
{
    return tl_allocator_of(m->reads_early, m->lanes);
}

/* ---- trials ---- */

/* The mean over needs that are up to an eighth of `most` less or more than the estimate, each as
 * likely; a sixth with products by multiply-adds, whose factors are read ahead. */
static int64_t spilled(const Trial *t)
{
    int64_t off = t->most / (t->adds ? TL_REGISTERS_DOUBT_FACTORS : TL_REGISTERS_DOUBT),
            more = t->need - t->most;
    if (more >= off)
        return more;
    return more > -off ? (more + off) * (more + off) / (4 * off) : 0;
}

/* What is spilled counts in all warps. */
static int64_t cost_of(const Choose *c, const Trial *t)
{
    int each = c->px->machine->reads_early ? SPILLED_IN_ORDER : SPILLED;
    return t->runs ? t->choice.cost + each * t->spilled * t->choice.warps / c->warps : INT64_MAX;
}

static int most_stages(const TlFn *fn)
{
    int64_t most = 0;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_remark_of(op, TL_REMARK_STAGES) > most)
            most = tl_remark_of(op, TL_REMARK_STAGES);
    return (int)most;
}

static void show(const Choose *c, const Trial *t)
{
    const TlPassCtx *px = c->px;
    if (!px->print || !px->options || strcmp(px->options, "show") != 0)
        return;
    px->print(
        px->user,
        t->runs
            ? tl_format(px->scratch,
                        "// choose-warps: %d warps, %d stages%s: %lld registers of "
                        "%lld, cost %lld\n",
                        t->choice.warps, t->stages ? t->stages : 1, t->choice.kept ? ", kept" : "",
                        (long long)t->need, (long long)t->most, (long long)cost_of(c, t))
            : tl_format(px->scratch, "// choose-warps: %d warps: not possible\n", t->choice.warps));
}

static Trial try_choice(const Choose *c, Choice choice)
{
    TlPassCtx *px = c->px;
    TlModule *copy = tl_copy_for_trial(c->fn);
    TlFn *done = copy->fns.data[0];
    done->body->warps = choice.warps;
    done->body->stages = choice.stages;
    done->body->kept = choice.kept;
    Trial t = {.choice = choice, .most = registers_of(px->machine, choice.warps)};
    t.runs = tl_run_trial(copy, px, "park-tiles", "order-reads");
    if (t.runs) {
        t.stages = most_stages(done);
        t.adds = tl_looped_multiply_adds(done) != NULL;
        t.need = tl_registers_needed(done, tl_axis_info(done, px->scratch),
                                     allocator_of(px->machine), px->scratch)
                     .registers;
        t.spilled = spilled(&t);
    }
    tl_module_free(copy);
    show(c, &t);
    return t;
}

/* ---- what a latency costs ---- */

/* Cycles of the products in a loop. */
static int64_t cycles_of_products(const TlOp *loop, int products)
{
    int64_t cycles = 0;
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop)) {
        if (op->opcode != TL_OP_DOT)
            continue;
        const TlType *a = tl_in(op, 0)->type;
        int64_t k = a->shape[a->rank - 1], bits = tl_dtype_bits(a->dtype);
        cycles += tl_type_elems(op->out[0]->type) * k * (bits < 8 ? 8 : bits) / 16 / products;
    }
    return cycles;
}

static bool has_inside(const TlOp *loop, TlOpcode opcode)
{
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (op->opcode == opcode)
            return true;
    return false;
}

/* Of the innermost loop with loads whose trips have the fewest products. */
static int64_t work_of_trip(const TlFn *fn, int products)
{
    enum { CYCLES = 12 }; /* of an access: a latency of some 600 has LATENCY of them */
    int64_t least = INT64_MAX;
    for (const TlOp *op = products ? fn->body->first : NULL; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_FOR || has_inside(op, TL_OP_FOR) || !has_inside(op, TL_OP_LOAD))
            continue;
        int64_t work = cycles_of_products(op, products) / CYCLES;
        least = work < least ? work : least;
    }
    return least == INT64_MAX ? 0 : least;
}

/* What a trip waits with so many stages. */
static int64_t wait_of(const Choose *c, int stages)
{
    int64_t rest = LATENCY - (stages > 1 ? (stages - 1) * c->work : 0);
    return rest > 0 ? rest / (stages > 1 ? stages : 1) : 0;
}

/* ---- choices ---- */

static bool states_warps(const Choose *c)
{
    return c->fn->info->warps || c->px->machine->warps;
}

/* Has each loop its number, or is it stated for all of them? */
static bool states_stages(const Choose *c)
{
    if (c->fn->info->stages || c->px->machine->stages)
        return true;
    for (const TlOp *op = c->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_FOR && tl_attr_int(op, TL_ATTR_PIPELINE, 0) == 0)
            return false;
    return true;
}

/* Is there a product in a loop, which may share an operand with that of the next trip? */
static bool has_product_in_loop(const Choose *c)
{
    for (const TlOp *op = c->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_DOT && tl_enclosing_loop(op))
            return true;
    return false;
}

/* The cheapest come first; of equal ones, as they were added. */
static void add_choice(TlArena *arena, Choices *all, Choice choice)
{
    tl_vec_push(arena, all, choice);
    uint32_t i = all->len - 1;
    for (; i > 0 && all->data[i - 1].cost > choice.cost; i--)
        all->data[i] = all->data[i - 1];
    all->data[i] = choice;
}

/* With so many warps, and as many stages as the first trial had or fewer. Where it had none, with
 * other warps a loop may have some: one is a choice there. */
static void add_choices_of(const Choose *c, Choices *all, int warps, bool kept, const Trial *first)
{
    int64_t cost = kept ? KEPT : 0;
    int most = warps == c->warps ? first->stages - 1 : first->stages > 1 ? first->stages - 1 : 1;
    for (int w = warps < c->warps ? warps : c->warps; w < (warps > c->warps ? warps : c->warps);
         w *= 2)
        cost += warps > c->warps ? CHANGED_WARPS * 2 * w / c->warps : CHANGED_WARPS;
    if (warps != c->warps || kept)
        add_choice(c->px->scratch, all, (Choice){warps, 0, kept, cost});
    for (int s = most; !states_stages(c) && s >= 1; s--)
        add_choice(c->px->scratch, all,
                   (Choice){warps, s, kept, cost + wait_of(c, s) - wait_of(c, first->stages)});
}

static Choices choices_of(const Choose *c, const Trial *first)
{
    Choices all = {0};
    int most = MOST_THREADS / c->px->machine->lanes, ways = has_product_in_loop(c) ? 2 : 1;
    most = most < MOST_WARPS ? most : MOST_WARPS;
    for (int kept = 0; kept < ways; kept++) {
        add_choices_of(c, &all, c->warps, kept, first);
        for (int warps = 2 * c->warps; !states_warps(c) && warps <= most; warps *= 2)
            add_choices_of(c, &all, warps, kept, first);
        for (int warps = c->warps / 2; !states_warps(c) && warps >= LEAST_WARPS; warps /= 2)
            add_choices_of(c, &all, warps, kept, first);
    }
    return all;
}

/* Where other warps leave room for more stages than the first trial had, fewer of them. */
static void add_fewer_stages(const Choose *c, Choices *all, const Trial *t, const Trial *first)
{
    int least = first->stages > 1 ? first->stages : 1;
    Choice choice = t->choice;
    for (int s = t->stages - 1; !t->choice.stages && !states_stages(c) && s >= least; s--) {
        choice.stages = s;
        choice.cost = t->choice.cost + wait_of(c, s) - wait_of(c, t->stages);
        add_choice(c->px->scratch, all, choice);
    }
}

static Trial best_of(const Choose *c, const Trial *first)
{
    Trial best = *first;
    Choices all = choices_of(c, first);
    for (uint32_t i = 0; i < all.len && all.data[i].cost < cost_of(c, &best); i++) {
        Trial t = try_choice(c, all.data[i]);
        add_fewer_stages(c, &all, &t, first);
        if (cost_of(c, &t) < cost_of(c, &best))
            best = t;
    }
    return best;
}

/* ---- the pass ---- */

/* What speaks against the first choice: so many warps, or stages; NULL: of what is not kept. */
static const char *why_not(const Choose *c, const Trial *first, const int *number)
{
    TlArena *arena = &c->fn->module->arena;
    const char *with = number ? tl_format(arena, "with %d", *number) : "otherwise";
    return first->runs ? tl_format(arena, "%s a thread would need about %lld registers of %lld",
                                   with, (long long)first->need, (long long)first->most)
                       : tl_format(arena, "%d warps are not possible", c->warps);
}

static TlPassResult take(const Choose *c, const Trial *first, const Trial *best)
{
    TlFn *fn = c->fn;
    const Choice *b = &best->choice;
    if (b->warps != c->warps) {
        fn->body->warps = b->warps;
        fn->info->warps_why = why_not(c, first, &c->warps);
    }
    if (b->stages) {
        fn->body->stages = b->stages;
        fn->info->stages_why = why_not(c, first, &first->stages);
    }
    if (b->kept) {
        fn->body->kept = true;
        fn->info->kept_why = why_not(c, first, NULL);
    }
    return b->warps != c->warps || b->stages || b->kept ? TL_CHANGED : TL_SAME;
}

/* Is there nothing to choose, or nothing to choose by? */
static bool is_decided(const Choose *c)
{
    const TlFn *fn = c->fn;
    return fn->body->warps || fn->body->stages || !fn->info || !c->px->machine->file ||
           tl_fn_level(fn) != TL_LEVEL_TILE ||
           (states_warps(c) && states_stages(c) && !has_product_in_loop(c));
}

TlPassResult tl_pass_choose_warps(TlFn *fn, TlPassCtx *px)
{
    Choose c = {.fn = fn, .px = px};
    if (is_decided(&c))
        return TL_SAME;
    c.warps = tl_choose_warps(fn, px->machine->warps, px->machine->lanes);
    int64_t tiles = tl_registers_of_tiles(fn, c.warps * px->machine->lanes,
                                          allocator_of(px->machine), px->scratch);
    if ((has_product_in_loop(&c) ? 4 : 2) * tiles <= registers_of(px->machine, c.warps))
        return TL_SAME;
    c.work = work_of_trip(fn, px->machine->products);
    Trial first = try_choice(&c, (Choice){c.warps, 0, false, 0}), best = best_of(&c, &first);
    return take(&c, &first, &best);
}
