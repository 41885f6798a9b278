/* choose-warps: as many warps for a kernel that states none as its registers need, by trial.
 *
 *     kernel @k(...) {      =>      kernel @k(...) warps 8 {
 *
 *   1 what its tiles suggest (passes/analysis/default_warps.h)
 *   2 if by the tiles alone, before layouts, a thread needs half of what it may have, that is it
 *   3 the passes behind this one run over a copy; what a thread needs after them is estimated
 *     (passes/analysis/registers.h). If it fits, that is it
 *   4 the same with twice as many warps, and again, as far as a block can have them, then with
 *     half as many; the first number that fits. If none does, more warps than at first only if
 *     halves what is too much
 *
 * More warps share what a multiprocessor has: of so many registers a thread may have fewer. */
#include "passes/analysis/default_warps.h"
#include "passes/analysis/registers.h"
#include "passes/pass.h"

enum { LEAST_WARPS = 4, MOST_WARPS = 16, MOST_THREADS = 1024 };

typedef struct Trial {
    int warps;
    bool runs;                  /* the passes had no error */
    int64_t need, most, excess; /* registers of a thread; need - most, if that is above 0 */
} Trial;

/* Registers that a thread may have in a block of so many warps. Where there is a second file, for
 * accumulators, everything but sums of products only passes the time there: half of it counts. */
static int64_t registers_of(const TlMachine *m, int warps)
{
    enum { FILE = 256 };
    int64_t each = (warps + m->schedulers - 1) / m->schedulers, n = m->file / each;
    n = n < m->registers ? n : m->registers;
    return n > FILE ? (n + FILE) / 2 : n;
}

static Trial judged(const TlPassCtx *px, int warps, bool runs, int64_t need)
{
    int64_t most = registers_of(px->machine, warps), over = need > most ? need - most : 0;
    return (Trial){warps, runs, need, most, over};
}

/* Nothing that the passes say remains. */
static Trial try_warps(const TlFn *fn, TlPassCtx *px, int warps)
{
    TlDiags *diags = &px->ctx->diags, before = *diags;
    TlFn *fns[1] = {(TlFn *)fn};
    TlModule one = {.ctx = px->ctx, .fns = {fns, 1, 1}}, *copy = tl_module_clone(&one);
    TlRunOptions run = {.bisect = -1, .machine = px->machine, .stop_after = "order-reads"};
    TL_ASSERT(copy && copy->fns.len == 1, "'%s' cannot be copied", fn->name);
    copy->fns.data[0]->body->warps = warps;
    bool runs = tl_run_passes(copy, px->behind, &run);
    const TlFn *done = copy->fns.data[0];
    int64_t need = runs ? tl_registers_needed(done, tl_axis_info(done, px->scratch),
                                              px->machine->reads_early, px->scratch)
                              .registers
                        : 0;
    tl_module_free(copy);
    diags->rows.len = before.rows.len;
    diags->errors = before.errors;
    diags->warnings = before.warnings;
    return judged(px, warps, runs, need);
}

/* By less than a sixteenth too much, it may fit as well. */
static bool fits(const Trial *t)
{
    return t->runs && t->excess <= t->most / 16;
}

/* Of two that do not fit: not by what may be the estimate's error. */
static bool is_better(const Trial *a, const Trial *b)
{
    return a->runs && (!b->runs || a->excess <= b->excess / 2);
}

static Trial best_of(const TlFn *fn, TlPassCtx *px, const Trial *first)
{
    Trial best = *first;
    int most = MOST_THREADS / px->machine->lanes;
    most = most < MOST_WARPS ? most : MOST_WARPS;
    for (int warps = 2 * first->warps; warps <= most && !fits(&best); warps *= 2) {
        Trial t = try_warps(fn, px, warps);
        best = is_better(&t, &best) ? t : best;
    }
    for (int warps = first->warps / 2; warps >= LEAST_WARPS && !fits(&best); warps /= 2) {
        Trial t = try_warps(fn, px, warps);
        best = fits(&t) ? t : best;
    }
    return best;
}

static bool is_asked(const TlFn *fn, const TlPassCtx *px)
{
    return fn->body->warps || !fn->info || fn->info->warps || px->machine->warps ||
           !px->machine->file;
}

TlPassResult tl_pass_choose_warps(TlFn *fn, TlPassCtx *px)
{
    if (is_asked(fn, px) || tl_fn_level(fn) != TL_LEVEL_TILE)
        return TL_SAME;
    int warps = tl_choose_warps(fn, 0, px->machine->lanes);
    if (2 * tl_registers_of_tiles(fn, warps * px->machine->lanes, px->machine->reads_early,
                                  px->scratch) <=
        registers_of(px->machine, warps))
        return TL_SAME;
    Trial first = try_warps(fn, px, warps), best = best_of(fn, px, &first);
    if (best.warps == warps)
        return TL_SAME;
    fn->body->warps = best.warps;
    fn->info->warps_why =
        first.runs ? tl_format(&fn->module->arena,
                               "with %d a thread would need about %lld registers of %lld", warps,
                               (long long)first.need, (long long)first.most)
                   : tl_format(&fn->module->arena, "%d are not possible", warps);
    return TL_CHANGED;
}
