/* The pass runner: a pipeline is text, "fuse-fma,canonicalize,cse{opt=1}"; each name is run over
 * every function of the module, or over the module.
 *
 * For each step: should it run (skip, bisect)? Run it under a guard. Check it (the verifier; a pass
 * that says SAME must have left the printed text as it was). Show it (print-after, dump-dir). Put a
 * given file in its place (override). Stop (stop-after). When a pass faults or leaves invalid IR,
 * the text from before it, or from before the first pass, goes to crash-PASS.tir with the RUN line
 * that repeats it, and the fault goes on to the caller's guard (NAME{fault} fails on purpose, to
 * try this). The checks that need the text are made with verify_each, in builds without NDEBUG
 * always. */
#include "passes/pass.h"
#include "ir/support/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ir/support/trace.h"
#include "passes/analysis/axis_info.h"

/* ---- the table ---- */

static const TlPassInfo passes[] = {
#define PASS(ident, text, needs, keeps, doc)                                                       \
    {text, tl_pass_##ident, NULL, TL_AN_##needs, TL_AN_##keeps, doc},
#define MODULE_PASS(ident, text, doc) {text, NULL, tl_pass_##ident, TL_AN_NONE, TL_AN_NONE, doc},
#include "passes/passes.def"
};

uint32_t tl_pass_count(void)
{
    return sizeof passes / sizeof *passes;
}

const TlPassInfo *tl_pass_at(uint32_t i)
{
    TL_ASSERT(i < tl_pass_count(), "pass %u", i);
    return &passes[i];
}

static bool same_word(const char *word, const char *text, size_t length)
{
    return strncmp(word, text, length) == 0 && word[length] == 0;
}

/* NULL when unknown. */
static const TlPassInfo *find_pass(const char *name, size_t length)
{
    for (uint32_t i = 0; i < tl_pass_count(); i++)
        if (same_word(passes[i].name, name, length))
            return &passes[i];
    return NULL;
}

/* Is the word in a list with commas? */
static bool is_listed(const char *list, const char *word)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ",");
        if (same_word(word, at, n))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* ---- analyses ---- */

/* The kept analyses of one function. */
struct TlAnalyses {
    const TlPassInfo *pass; /* that is running */
    TlArena arena;          /* of all that is kept */
    const TlAxisInfo *axis; /* NULL: not computed, or dropped */
};

const TlAxisInfo *tl_pass_axis_info(const TlFn *fn, TlPassCtx *px)
{
    TlAnalyses *a = px->analyses;
    if (!a)
        return tl_axis_info(fn, px->scratch);
    TL_ASSERT(a->pass->needs & TL_AN_AXIS, "pass %s does not say that it needs axis-info",
              a->pass->name);
    if (!a->axis)
        a->axis = tl_axis_info(fn, &a->arena);
    return a->axis;
}

/* Drops what the pass did not keep; with `check`, what it kept must hold. */
static void settle_analyses(TlAnalyses *a, TlPassResult result, TlArena *scratch, bool check)
{
    TL_ASSERT(a->pass, "no pass has run");
    if (result == TL_SAME || a->pass->keeps & TL_AN_AXIS) {
        if (check && a->axis && !tl_axis_info_holds(a->axis, scratch))
            tl_fault(TL_FAULT_INTERNAL, "pass %s says that it keeps axis-info, but did not",
                     a->pass->name);
        return;
    }
    a->axis = NULL;
    tl_arena_free(&a->arena);
}

/* ---- the run ---- */

typedef struct Step {
    const TlPassInfo *pass;
    const char *text, *options; /* as written in the pipeline; the text within braces, or NULL */
    double seconds;
} Step;

typedef struct Runner {
    TlModule *m;
    const TlRunOptions *o;
    TlArena arena;        /* of the run */
    TlArena scratch;      /* of one step */
    TlArena function;     /* of one pass over one function */
    TlAnalyses *analyses; /* by function */
    uint32_t nanalyses;
    TL_VEC(Step) steps;
    int executed;
    const char *start; /* the module before the passes in `since`, for a reproducer */
    TlSbuf since;
} Runner;

static void open_analyses(Runner *r)
{
    r->analyses = TL_NEW_ARRAY(&r->arena, TlAnalyses, r->m->fns.len + 1);
    r->nanalyses = r->m->fns.len; /* not before they are there */
    for (uint32_t i = 0; i < r->nanalyses; i++)
        tl_arena_init(&r->analyses[i].arena, r->m->ctx->perm.alloc);
}

static void close_analyses(Runner *r)
{
    for (uint32_t i = 0; i < r->nanalyses; i++)
        tl_arena_free(&r->analyses[i].arena);
    r->nanalyses = 0;
}

static void say(Runner *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(Runner *r, const char *format, ...)
{
    if (!r->o->print)
        return;
    va_list args;
    va_start(args, format);
    r->o->print(r->o->user, tl_vformat(&r->arena, format, args));
    va_end(args);
}

static bool complain(Runner *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool complain(Runner *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tl_diag(&r->m->ctx->diags, (TlLoc){0}, TL_E0803, tl_vformat(&r->arena, format, args));
    va_end(args);
    return false;
}

/* ---- the pipeline's text ---- */

static const char *known_passes(Runner *r)
{
    TlSbuf s;
    tl_sbuf_init(&s, &r->arena);
    for (uint32_t i = 0; i < tl_pass_count(); i++)
        tl_sbuf_putf(&s, "%s%s", i ? ", " : "", passes[i].name);
    return s.text;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n");
}

/* Parses one "name" or "name{options}"; returns where it ends, or NULL if it is wrong. */
static const char *parse_step(Runner *r, const char *at)
{
    Step step = {.options = NULL};
    size_t n = strcspn(at, ",{ \t\n");
    step.pass = find_pass(at, n);
    if (!step.pass) {
        complain(r, "no pass is called '%.*s'; there are %s", (int)n, at, known_passes(r));
        return NULL;
    }
    const char *end = at + n;
    if (*end == '{') {
        const char *close = strchr(end, '}');
        if (!close) {
            complain(r, "'{' after %s is not closed", step.pass->name);
            return NULL;
        }
        step.options = tl_strndup(&r->arena, end + 1, (size_t)(close - end - 1));
        end = close + 1;
    }
    step.text = tl_strndup(&r->arena, at, (size_t)(end - at));
    tl_vec_push(&r->arena, &r->steps, step);
    return end;
}

static bool parse_pipeline(Runner *r, const char *text)
{
    const char *at = skip_blanks(text);
    while (*at) {
        at = parse_step(r, at);
        if (!at)
            return false;
        at = skip_blanks(at);
        if (*at && *at != ',')
            return complain(r, "',' is missing before '%s'", at);
        if (*at)
            at = skip_blanks(at + 1);
    }
    return true;
}

static bool check_names(Runner *r, const char *list, const char *option)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ",:");
        bool other = list == r->o->skip && is_listed(r->o->skip_too, tl_strndup(&r->arena, at, n));
        if (!find_pass(at, n) && !same_word("all", at, n) && !other)
            return complain(r, "%s: no pass is called '%.*s'; there are %s", option, (int)n, at,
                            known_passes(r));
        at += n;
        if (*at == ':')
            break; /* a file follows */
        at += *at == ',';
    }
    return true;
}

/* ---- files ---- */

/* A new file: in a folder as /tmp, what has the name already may be another user's link. */
static bool write_text(Runner *r, const char *path, const char *head, const char *text)
{
    unlink(path);
    FILE *f = fopen(path, "wx");
    bool ok = f && fputs(head, f) >= 0 && fputs(text, f) >= 0;
    if (f && fclose(f) != 0)
        ok = false;
    if (!ok)
        tl_diag(&r->m->ctx->diags, (TlLoc){0}, TL_E0804, path, strerror(errno));
    return ok;
}

static const char *read_text(Runner *r, const char *path, size_t *out_size)
{
    TlSbuf s;
    tl_sbuf_init(&s, &r->m->ctx->perm);
    FILE *f = fopen(path, "rb");
    bool ok = f && tl_sbuf_read(&s, f, SIZE_MAX);
    if (!ok)
        tl_diag(&r->m->ctx->diags, (TlLoc){0}, TL_E0001, path, strerror(errno));
    if (f)
        fclose(f);
    *out_size = s.len;
    return ok ? s.text : NULL;
}

static const char *module_text(Runner *r)
{
    TlSbuf s;
    tl_sbuf_init(&s, &r->scratch);
    tl_print_module(&s, r->m);
    return s.text;
}

/* ---- one step ---- */

static bool wants_checks(const Runner *r)
{
#ifndef NDEBUG
    (void)r;
    return true;
#else
    return r->o->verify_each;
#endif
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* "coalesce,accelerate-dot": the steps that follow. */
static const char *steps_behind(Runner *r, const Step *step)
{
    TlSbuf s;
    tl_sbuf_init(&s, &r->function);
    for (const Step *next = step + 1; next < r->steps.data + r->steps.len; next++)
        tl_sbuf_putf(&s, "%s%s", s.len ? "," : "", next->text);
    return s.len ? s.text : "";
}

static TlPassCtx context_of(Runner *r, const Step *step)
{
    static const TlMachine plain = {.name = "", .lanes = 32, .warps = 4, .shared_bytes = 48 * 1024};
    return (TlPassCtx){.ctx = r->m->ctx,
                       .scratch = &r->function,
                       .options = step->options,
                       .behind = steps_behind(r, step),
                       .print = r->o->print,
                       .user = r->o->user,
                       .machine = r->o->machine ? r->o->machine : &plain};
}

static TlPassResult run_function(Runner *r, const Step *step, uint32_t i)
{
    TlFn *fn = r->m->fns.data[i];
    TlPassCtx px = context_of(r, step);
    px.analyses = &r->analyses[i];
    px.analyses->pass = step->pass;
    TlSpanMark mark = tl_trace_begin(px.ctx->trace, "pass", fn->name, "%s", step->text);
    TlPassResult result = step->pass->run(fn, &px);
    tl_trace_end(px.ctx->trace, mark);
    if (result == TL_CHANGED && fn->info)
        fn->info->tests_known = false;
    settle_analyses(px.analyses, result, &r->function, wants_checks(r));
    tl_arena_free(&r->function);
    return result;
}

static TlPassResult run_module(Runner *r, const Step *step)
{
    TlPassCtx px = context_of(r, step);
    TlSpanMark mark = tl_trace_begin(px.ctx->trace, "pass", NULL, "%s", step->text);
    TlPassResult result = step->pass->run_module(r->m, &px);
    tl_trace_end(px.ctx->trace, mark);
    tl_arena_free(&r->function);
    if (result == TL_CHANGED) {
        close_analyses(r);
        open_analyses(r);
    }
    return result;
}

static TlPassResult run_pass(Runner *r, Step *step)
{
    TL_ASSERT(r->nanalyses == r->m->fns.len, "%u analyses of %u functions", r->nanalyses,
              r->m->fns.len);
    TlPassResult all = TL_SAME;
    double start = now();
    if (r->m->fns.len && step->options && strcmp(step->options, "fault") == 0)
        tl_fault(TL_FAULT_INTERNAL, "failed because it was asked to");
    if (step->pass->run_module)
        all = run_module(r, step);
    for (uint32_t i = 0; step->pass->run && i < r->m->fns.len && all != TL_FAILED; i++) {
        TlPassResult one = run_function(r, step, i);
        if (one != TL_SAME)
            all = one;
    }
    step->seconds += now() - start;
    return all;
}

/* A reproducer starts where the passes did, unless a later text exists anyway: printing the module
 * before each pass would take longer than most passes do. */
static void note_start(Runner *r, const Step *step, const char *before)
{
    if (before || !r->start) {
        TlSbuf text;
        tl_sbuf_init(&r->since, &r->arena);
        tl_sbuf_init(&text, &r->arena);
        if (!before && r->o->crash_dir)
            tl_print_module(&text, r->m);
        r->start = before ? before : text.text;
    }
    tl_sbuf_putf(&r->since, "%s%s", r->since.len ? "," : "", step->text);
}

static void check_step(Runner *r, const Step *step, TlPassResult result, const char *before)
{
    TlSbuf faults;
    tl_sbuf_init(&faults, &r->scratch);
    if (!tl_verify_module(r->m, &faults))
        tl_fault(TL_FAULT_INTERNAL, "pass %s left invalid IR: %s", step->pass->name, faults.text);
    if (result == TL_SAME && before && strcmp(before, module_text(r)) != 0)
        tl_fault(TL_FAULT_INTERNAL, "pass %s says that it changed nothing, but did",
                 step->pass->name);
}

static const char *write_reproducer(Runner *r, const Step *step)
{
    if (!r->o->crash_dir || !r->start)
        return NULL;
    char *path = tl_format(&r->arena, "%s/crash-%s.tir", r->o->crash_dir, step->pass->name);
    char *head =
        tl_format(&r->arena, "// RUN: tile-opt --passes='%s' --verify-each %%s\n", r->since.text);
    return write_text(r, path, head, r->start) ? path : NULL;
}

/* Runs and checks the pass; a fault gets the pass and the reproducer, and is passed on. */
static TlPassResult run_guarded(Runner *r, Step *step, const char *before)
{
    TlGuard g;
    if (TL_GUARD(&g)) {
        g.where = step->pass->name;
        TlPassResult result = run_pass(r, step);
        if (result != TL_FAILED && wants_checks(r))
            check_step(r, step, result, before);
        tl_guard_pop(&g);
        return result;
    }
    if (tl_guard_current())
        tl_guard_current()->where = step->pass->name;
    if (g.fault != TL_FAULT_INTERNAL)
        tl_fault(g.fault, "%s", g.text);
    const char *path = write_reproducer(r, step);
    tl_fault(g.fault, "pass %s: %s%s%s", step->pass->name, g.text, path ? "; to repeat it: " : "",
             path ? path : "");
}

static void show(Runner *r, const Step *step, TlPassResult result)
{
    const char *wanted = r->o->print_after, *name = step->pass->name;
    if (!wanted || !(is_listed(wanted, "all") || is_listed(wanted, name)))
        return;
    if (result == TL_SAME)
        say(r, "// ---- after %s: no change\n", name);
    else
        say(r, "// ---- after %s\n%s", name, module_text(r));
}

static bool dump(Runner *r, const Step *step, int number)
{
    if (!r->o->dump_dir)
        return true;
    char *path = tl_format(&r->arena, "%s/%02d-%s.tir", r->o->dump_dir, number, step->pass->name);
    if (mkdir(r->o->dump_dir, 0777) != 0 && errno != EEXIST) {
        tl_diag(&r->m->ctx->diags, (TlLoc){0}, TL_E0804, path, strerror(errno));
        return false;
    }
    return write_text(r, path, "", module_text(r));
}

/* --override=PASS:FILE replaces the pass's result by the kernels of the file. The module stays
 * where it is. */
static bool override_with(Runner *r, const Step *step)
{
    const char *o = r->o->override, *colon = o ? strchr(o, ':') : NULL;
    if (!colon || !same_word(step->pass->name, o, (size_t)(colon - o)))
        return true;
    size_t size;
    const char *text = read_text(r, colon + 1, &size);
    if (!text)
        return false;
    TlModule *other =
        tl_parse_module(r->m->ctx, tl_diags_source(&r->m->ctx->diags, colon + 1, text, size));
    if (!other)
        return false;
    r->m->fns.len = 0;
    for (uint32_t i = 0; i < other->fns.len; i++) {
        other->fns.data[i]->module = r->m;
        tl_vec_push(&r->m->arena, &r->m->fns, other->fns.data[i]);
    }
    close_analyses(r);
    open_analyses(r);
    return true; /* the other module's memory lives as long as the context */
}

/* False: the run must end with an error. */
static bool run_step(Runner *r, Step *step, int number)
{
    if (is_listed(r->o->skip, step->pass->name))
        return true;
    if (r->o->bisect >= 0) {
        bool run = r->executed < r->o->bisect;
        say(r, "bisect: %s (%d) %s\n", run ? "run" : "leave out", r->executed + 1,
            step->pass->name);
        r->executed++;
        if (!run)
            return true;
    }
    tl_arena_init(&r->scratch, r->m->ctx->perm.alloc);
    const char *before = wants_checks(r) ? module_text(r) : NULL;
    note_start(r, step, before);
    TlPassResult result = run_guarded(r, step, before);
    bool ok = result != TL_FAILED;
    if (ok)
        show(r, step, result);
    ok = ok && dump(r, step, number) && override_with(r, step);
    if (r->o->override)
        r->start = NULL; /* it may be from another file now */
    tl_arena_free(&r->scratch);
    return ok;
}

static void report_times(Runner *r)
{
    double total = 0;
    for (uint32_t i = 0; i < r->steps.len; i++)
        total += r->steps.data[i].seconds;
    for (uint32_t i = 0; i < r->steps.len; i++) {
        const Step *s = &r->steps.data[i];
        say(r, "%s ms %s%%  %s\n", TL_NUMBER("%9.3f", 1e3 * s->seconds),
            TL_NUMBER("%5.1f", total > 0 ? 100 * s->seconds / total : 0), s->text);
    }
    say(r, "%s ms         all passes\n", TL_NUMBER("%9.3f", 1e3 * total));
}

static bool run_all(Runner *r, const char *pipeline)
{
    const TlRunOptions *o = r->o;
    if (!parse_pipeline(r, pipeline) || !check_names(r, o->print_after, "print-after") ||
        !check_names(r, o->skip, "skip") || !check_names(r, o->stop_after, "stop-after") ||
        !check_names(r, o->override, "override"))
        return false;
    bool stopped = false;
    for (uint32_t i = 0; i < r->steps.len; i++) {
        const char *name = r->steps.data[i].pass->name;
        if (stopped && !is_listed(o->around, name))
            continue;
        if (!run_step(r, &r->steps.data[i], (int)i + 1))
            return false;
        stopped |= o->stop_after && same_word(name, o->stop_after, strlen(o->stop_after));
    }
    if (o->time_passes)
        report_times(r);
    return true;
}

bool tl_run_passes(TlModule *m, const char *pipeline, const TlRunOptions *options)
{
    static const TlRunOptions plain = {.bisect = -1};
    Runner *r =
        TL_NEW(&m->arena, Runner); /* not on the stack: its arenas must be found after a fault */
    r->m = m;
    r->o = options ? options : &plain;
    tl_arena_init(&r->arena, m->ctx->perm.alloc);
    tl_arena_init(&r->scratch, m->ctx->perm.alloc);
    tl_arena_init(&r->function, m->ctx->perm.alloc);
    bool ok = false;
    TlGuard g;
    if (TL_GUARD(&g)) {
        open_analyses(r);
        TlSpanMark mark = tl_trace_begin(m->ctx->trace, "pass", NULL, "passes");
        ok = run_all(r, pipeline);
        tl_trace_end(m->ctx->trace, mark);
        tl_guard_pop(&g);
    }
    close_analyses(r);
    tl_arena_free(&r->function);
    tl_arena_free(&r->scratch);
    tl_arena_free(&r->arena);
    if (!g.fault)
        return ok;
    if (tl_guard_current())
        tl_guard_current()->where = g.where;
    tl_fault(g.fault, "%s", g.text);
}

/* ---- trials ---- */

TlModule *tl_copy_for_trial(TlFn *fn)
{
    TlFn *fns[1] = {fn};
    TlModule one = {.ctx = fn->module->ctx, .fns = {fns, 1, 1}}, *copy = tl_module_clone(&one);
    TL_ASSERT(copy && copy->fns.len == 1, "'%s' cannot be copied", fn->name);
    return copy;
}

bool tl_run_trial(TlModule *copy, TlPassCtx *px, const char *skip, const char *stop_after)
{
    TlDiags *diags = &px->ctx->diags, before = *diags;
    TlRunOptions run = {
        .bisect = -1, .machine = px->machine, .skip = skip, .stop_after = stop_after};
    bool runs = tl_run_passes(copy, px->behind, &run);
    diags->rows.len = before.rows.len;
    diags->errors = before.errors;
    diags->warnings = before.warnings;
    return runs;
}
