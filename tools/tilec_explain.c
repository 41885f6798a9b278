/* tilec_explain.c: tilec explain: prints what the compiler's report says of each kernel and target;
 * with arguments also what the emulator counts when the kernel runs on them. As text, as JSON
 * (explain_json.c), or as a page for a browser that is drawn from that JSON (page.c). */
#define TILE_UNSTABLE
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ir/support/guard.h"
#include "ir/support/number.h"
#include "tools/explain_cost.h"
#include "tools/explain_json.h"
#include "tools/explain_launch.h"
#include "tools/page.h"
#include "tools/tilec_options.h"

enum { MOST_SOURCE = 86 /* columns of a source line that are shown */, HEAD = 16 };

/* ---- pieces ---- */

/* A line of the summary: a word, then text. */
static void line(const char *word, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(const char *word, const char *format, ...)
{
    va_list args;
    printf("%-*s", HEAD, word);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

static bool same_line(const tilec_report_position *a, const tilec_report_position *b)
{
    return a && a->line == b->line && strcmp(a->file, b->file) == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The source line, without what it begins with; once for things that stand together. */
static void quote(const tilec_report_position *p, const tilec_report_position *before,
                  const char *input)
{
    if (same_line(before, p))
        return;
    const char *text = p->text + strspn(p->text, " \t");
    int n = (int)strcspn(text, "\r");
    bool other = strcmp(p->file, input) != 0;
    printf("  %s%s%4u | %.*s%s\n", other ? base_name(p->file) : "", other ? ":" : "", p->line,
           n > MOST_SOURCE ? MOST_SOURCE : n, text, n > MOST_SOURCE ? "..." : "");
}

static int compare_positions(const tilec_report_position *a, const tilec_report_position *b)
{
    int file = strcmp(a->file, b->file);
    if (file)
        return file;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return a->col < b->col ? -1 : a->col > b->col;
}

/* Every row begins with its position. Rows of one position stay in the order of the program. */
static int by_position(const void *a, const void *b)
{
    const tilec_report_position *const *x = a, *const *y = b;
    int c = compare_positions(*x, *y);
    return c ? c : *x < *y ? -1 : *x > *y;
}

typedef struct Table {
    const char *head;
    const void *rows;
    size_t n, size;
    void (*show)(const void *row, int times);
    bool (*same)(const void *a, const void *b); /* shown as one */
} Table;

/* The rows of a table by position, each with the line of source that it is about. */
static void show_rows(const Table *t, const void **sorted, const char *input)
{
    for (size_t i = 0, next; i < t->n; i = next) {
        for (next = i + 1; next < t->n && compare_positions(sorted[i], sorted[next]) == 0 &&
                           t->same(sorted[i], sorted[next]);)
            next++;
        quote(sorted[i], i ? sorted[i - 1] : NULL, input);
        t->show(sorted[i], (int)(next - i));
    }
}

static void show_table(const Table *t, const char *input)
{
    const void **sorted = calloc(t->n + 1, sizeof *sorted);
    if (!sorted || t->n == 0) {
        free(sorted);
        return;
    }
    for (size_t i = 0; i < t->n; i++)
        sorted[i] = (const char *)t->rows + i * t->size;
    qsort(sorted, t->n, sizeof *sorted, by_position);
    printf("\n%s\n", t->head);
    show_rows(t, sorted, input);
    free(sorted);
}

/* "load", "load, else", "load (2 times)" */
static const char *named(const char *name, const char *branch, int times, char *text, size_t size)
{
    int n = snprintf(text, size, "%s%s%s", name, *branch ? ", " : "", branch);
    if (times > 1 && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " (%d times)", times);
    return text;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- the summary ---- */

/* A text of lines, each broken behind a comma where it is long. */
static void show_condition(const char *text)
{
    enum { WIDE = 84 };
    for (const char *word = "when"; *text; word = "") {
        int n = (int)strcspn(text, "\n");
        if (n > WIDE) {
            n = WIDE;
            while (n > 1 && text[n - 1] != ',')
                n--;
        }
        line(word, "%.*s", n, text);
        text += n + (text[n] == '\n' || text[n] == ' ');
    }
}

static void show_registers(const tilec_report_kernel *k)
{
    if (k->registers < 0) {
        line("registers", "not known: %s", k->registers_from);
    } else if (k->scalars < 0) {
        line("registers", "%d of a thread (%s)", k->registers, k->registers_from);
        line("spills", "%d bytes stored, %d loaded; %d bytes of stack", k->spilled, k->reloaded,
             k->private_bytes);
    } else {
        line("registers", "%d vector%s, %d scalar (%s)", k->registers,
             k->accumulators ? " (accumulators with them)" : "", k->scalars, k->registers_from);
        line("spills", "%d vector, %d scalar registers; private segment %d bytes", k->spilled,
             k->spilled_scalars, k->private_bytes);
    }
    if (k->registers_limit)
        line("", "ptxas may take %d: %s", k->registers_limit, k->registers_limit_why);
    if (k->offsets_not_kept)
        line("", "%u offsets in loops are computed where they are used: too many to keep",
             k->offsets_not_kept);
    if (*k->sparing_why)
        line("", "used sparingly: %s", k->sparing_why);
}

static void show_occupancy(const tilec_report_kernel *k)
{
    if (k->blocks < 0)
        return;
    line("occupancy", "%d block%s, %d of %d warps of a multiprocessor; limited by %s", k->blocks,
         plural(k->blocks), k->resident_warps, k->most_warps, k->limit);
    char registers[16] = "?";
    if (k->by_registers >= 0)
        snprintf(registers, sizeof registers, "%d", k->by_registers);
    char shared[16] = "any"; /* a kernel without shared memory */
    if (k->by_shared != INT_MAX)
        snprintf(shared, sizeof shared, "%d", k->by_shared);
    line("", "blocks by registers %s, by shared memory %s, by warps %d, by blocks %d", registers,
         shared, k->by_warps, k->by_blocks);
}

/* ---- tables ---- */

static void show_buffer(const void *row, int times)
{
    const tilec_report_buffer *b = row;
    (void)times;
    printf("         %-26s %10llu %10llu\n", b->op, (unsigned long long)b->bytes,
           (unsigned long long)b->offset);
}

static bool never_same(const void *a, const void *b)
{
    (void)a, (void)b;
    return false;
}

static void show_masks(const tilec_report_access *a)
{
    for (size_t i = 0; i < a->nmasks; i++) {
        bool more = i + 1 < a->nmasks && strcmp(a->masks[i].why, a->masks[i + 1].why) == 0;
        bool again = i > 0 && strcmp(a->masks[i].why, a->masks[i - 1].why) == 0;
        printf("%s%s", again ? ", " : "           mask: ", a->masks[i].what);
        if (!more)
            printf(": %s\n", a->masks[i].why);
    }
}

static void show_access(const void *row, int times)
{
    const tilec_report_access *a = row;
    char what[64], text[96];
    snprintf(what, sizeof what, "%s %s %s", a->op, a->param, a->type);
    printf("         %-26s %10llu %7u B %9u %8u %6u %6u\n",
           named(what, a->branch, times, text, sizeof text), (unsigned long long)a->bytes, a->width,
           a->requests, a->sectors, a->least, a->loops);
    if (*a->narrow)
        printf("           narrow: %s\n", a->narrow);
    if (*a->by_threads)
        printf("           no bulk store: %s\n", a->by_threads);
    show_masks(a);
}

static bool same_masks(const tilec_report_access *a, const tilec_report_access *b)
{
    if (a->nmasks != b->nmasks)
        return false;
    for (size_t i = 0; i < a->nmasks; i++)
        if (strcmp(a->masks[i].what, b->masks[i].what) || strcmp(a->masks[i].why, b->masks[i].why))
            return false;
    return true;
}

static bool same_access(const void *x, const void *y)
{
    const tilec_report_access *a = x, *b = y;
    return strcmp(a->op, b->op) == 0 && strcmp(a->branch, b->branch) == 0 && a->loops == b->loops &&
           a->bytes == b->bytes && a->width == b->width && a->requests == b->requests &&
           a->sectors == b->sectors && strcmp(a->narrow, b->narrow) == 0 &&
           strcmp(a->by_threads, b->by_threads) == 0 && same_masks(a, b);
}

static void show_exchange(const void *row, int times)
{
    const tilec_report_exchange *x = row;
    char bytes[24] = "", text[64];
    if (x->bytes)
        snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)x->bytes);
    printf("         %-26s %10s %9u %10u %9u %8u %6u\n",
           named(x->op, x->branch, times, text, sizeof text), bytes, x->shuffles, x->wavefronts,
           x->wavefronts - x->least, x->barriers, x->loops);
    if (*x->way)
        printf("           by: %s\n", x->way);
    if (*x->why)
        printf("           why: %s\n", x->why);
}

static bool same_exchange(const void *x, const void *y)
{
    const tilec_report_exchange *a = x, *b = y;
    return strcmp(a->op, b->op) == 0 && strcmp(a->way, b->way) == 0 &&
           strcmp(a->why, b->why) == 0 && a->loops == b->loops && a->bytes == b->bytes &&
           a->shuffles == b->shuffles && a->barriers == b->barriers &&
           a->wavefronts == b->wavefronts && a->least == b->least;
}

static void show_loop(const void *row, int times)
{
    const tilec_report_loop *l = row;
    char trips[32] = "trips not known";
    (void)times;
    if (l->trips >= 0)
        snprintf(trips, sizeof trips, "%lld trip%s", (long long)l->trips, plural(l->trips));
    printf("         %s, depth %u\n", trips, l->loops);
    for (const char *p = l->how; *p;) {
        int n = (int)strcspn(p, ";");
        printf("           %.*s\n", n, p);
        p += n + 2 * (p[n] == ';');
    }
    if (l->each.bytes || l->each.flops)
        printf("           each trip: %llu bytes of global memory, %llu operations\n",
               (unsigned long long)l->each.bytes, (unsigned long long)l->each.flops);
}

/* Every advice of the kernel's masks once. */
static void show_help(const tilec_report_kernel *k)
{
    enum { MOST_SAID = 16 };
    const char *said[MOST_SAID];
    size_t n = 0;
    for (size_t i = 0; i < k->naccesses; i++)
        for (size_t m = 0; m < k->accesses[i].nmasks; m++) {
            const char *help = k->accesses[i].masks[m].help;
            size_t known = 0;
            while (known < n && strcmp(said[known], help) != 0)
                known++;
            if (!*help || known < n || n == MOST_SAID)
                continue;
            said[n++] = help;
            printf("  %-14s%s\n", n == 1 ? "to drop masks" : "", help);
        }
}

/* ---- sums ---- */

static void show_tiles(const tilec_report_kernel *k, const char *input)
{
    const tilec_report_position *at = NULL;
    for (size_t i = 0; i < k->nlines && !at; i++)
        if (k->lines[i].words == k->words)
            at = &k->lines[i].position;
    if (!k->words || !at)
        return;
    bool other = strcmp(at->file, input) != 0;
    line("tiles", "at most %u words in each thread at once, at %s%s%u; about %d registers needed",
         k->words, other ? base_name(at->file) : "line ", other ? ":" : "", at->line,
         k->registers_estimated);
}

static void show_sums(const tilec_report_kernel *k, const char *input)
{
    size_t conversions = 0, looped = 0;
    uint64_t conflicts = 0, wavefronts = 0;
    for (size_t i = 0; i < k->nexchanges; i++) {
        const tilec_report_exchange *x = &k->exchanges[i];
        bool converts = strcmp(x->op, "convert") == 0;
        conversions += converts;
        looped += converts && x->loops;
        wavefronts += x->wavefronts;
        conflicts += x->wavefronts - x->least;
    }
    show_tiles(k, input);
    line("conversions", "%zu, %zu of them in loops", conversions, looped);
    line("bank conflicts", "%llu of %llu wavefronts of a warp", (unsigned long long)conflicts,
         (unsigned long long)wavefronts);
}

static void show_tables(const tilec_report_kernel *k, const char *input)
{
    const Table tables[] = {
        {"shared memory by buffer                  bytes     offset", k->buffers, k->nbuffers,
         sizeof *k->buffers, show_buffer, never_same},
        {"global memory                            bytes     width  requests  sectors  least  "
         "loops",
         k->accesses, k->naccesses, sizeof *k->accesses, show_access, same_access},
        {"between threads                          bytes  shuffles wavefronts conflicts barriers  "
         "loops",
         k->exchanges, k->nexchanges, sizeof *k->exchanges, show_exchange, same_exchange},
        {"loops", k->loops, k->nloops, sizeof *k->loops, show_loop, never_same},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        show_table(&tables[i], input);
        if (tables[i].show == show_access)
            show_help(k);
    }
}

/* ---- diagnostics ---- */

/* What has been shown: texts, one after another. Most warnings are the same for every target. */
typedef struct Shown {
    char *text;
    size_t size;
} Shown;

/* Where the next diagnostic begins: a line that says `warning[...]` or `error[...]` itself, not one
 * that quotes the source or is a note. JSON and SARIF are one piece. */
static const char *next_diagnostic(const char *text)
{
    for (const char *line = strchr(text, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        size_t n = strcspn(line + 1, "\n");
        const char *word = strstr(line + 1, "warning[");
        if (!word || word > line + 1 + n)
            word = strstr(line + 1, "error[");
        if (*text != '{' && line[1] != ' ' && word && word < line + 1 + n)
            return line + 1;
    }
    return text + strlen(text);
}

static void show_once(void *user, const char *text)
{
    Shown *shown = user;
    for (const char *end; *text; text = end) {
        end = next_diagnostic(text);
        size_t n = (size_t)(end - text);
        char *more = realloc(shown->text, shown->size + n + 1);
        if (more) {
            shown->text = more;
            memcpy(more + shown->size, text, n);
            more[shown->size + n] = 0;
            if (strstr(more, more + shown->size) != more + shown->size) {
                more[shown->size] = 0;
                continue;
            }
            shown->size += n;
        }
        fflush(stdout); /* in order with what is explained */
        fwrite(text, 1, n, stderr);
    }
}

/* ---- kernels ---- */

static void show_kernel(const tilec_report *r, const tilec_report_kernel *k, const char *input)
{
    printf("%s for %s, %s", k->name, r->target, k->variant);
    for (size_t i = 0; i < k->nconsts; i++)
        printf("%s%s = %s", i ? ", " : ": ", k->consts[i].name, k->consts[i].value);
    printf("\n\n");
    show_condition(k->condition);
    line("threads", "%u: %u warp%s of %u", k->threads, k->warps, plural(k->warps), k->lanes);
    if (*k->warps_why)
        line("", "chosen, as %s", k->warps_why);
    if (k->cluster > 1)
        line("cluster", "%u programs bring parts of what all of them read to each other",
             k->cluster);
    else if (k->cluster)
        line("cluster", "of no use: %s", k->cluster_why);
    if (k->dies > 1)
        line("order", "each of %u dies gets neighbouring programs", k->dies);
    show_registers(k);
    line("shared memory", "%u bytes of %u", k->shared_bytes, k->shared_most);
    show_occupancy(k);
    show_sums(k, input);
    explain_mix(k);
    explain_roofs(k);
    explain_hints(k, input);
    show_tables(k, input);
}

/* One call of tilec explain. */
typedef struct Explain {
    const Options *o;
    Shown shown;
    bool as_json; /* --json, --html */
    TlArena arena;
    TlSbuf text;
    ExplainJson json;
    tilec_output *output; /* of the target that is explained */
    RunCounted counted;
    ExplainLaunch launch;
    double budget; /* seconds of the emulator */
} Explain;

static void show_counted(const char *device, const char *counted)
{
    printf("\ncounted on %s with these arguments\n", device);
    for (const char *p = counted; *p;) {
        size_t n = strcspn(p, "\n");
        printf("  %.*s\n", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

/* "35 s", "12 min", "3.5 h" */
static const char *duration(double seconds, char *text, size_t size)
{
    enum { MINUTE = 60, HOUR = 3600 };
    if (seconds < 2 * MINUTE)
        snprintf(text, size, "%s s", TL_NUMBER("%.0f", seconds));
    else if (seconds < 2 * HOUR)
        snprintf(text, size, "%s min", TL_NUMBER("%.0f", seconds / MINUTE));
    else
        snprintf(text, size, "%s h", TL_NUMBER("%.1f", seconds / HOUR));
    return text;
}

/* Shows what the launch is, and says so if it is too long for the emulator. */
static bool wants_run(void *user, const RunCounted *counted)
{
    Explain *x = user;
    char text[32];
    const tilec_report *r = tilec_output_report(x->output);
    if (r)
        explain_launch(r, counted, &x->launch);
    if (r && !x->as_json)
        explain_launch_text(r, &x->launch);
    if (x->launch.emulated <= x->budget)
        return true;
    fflush(stdout);
    fprintf(stderr,
            "tilec: warning: not run on the emulator, as that would take about %s; with --budget "
            "%s it runs, and what it does is counted\n",
            duration(x->launch.emulated, text, sizeof text),
            TL_NUMBER("%.0f", ceil(x->launch.emulated)));
    return false;
}

/* What the emulator counts of one launch. */
static int count(Explain *x, const char *target)
{
    char device[80];
    snprintf(device, sizeof device, "emu:%s", strncmp(target, "emu:", 4) ? target : target + 4);
    int status = run_counted(x->o, device, wants_run, x, &x->counted);
    if (x->counted.text && !x->as_json)
        show_counted(device, x->counted.text);
    return status;
}

static void show_report(const Explain *x, const tilec_report *r)
{
    for (size_t i = 0; i < r->nkernels && !x->as_json; i++) {
        bool last = i + 1 == r->nkernels || strcmp(r->kernels[i].name, r->kernels[i + 1].name) != 0;
        if (i)
            puts("\n");
        show_kernel(r, &r->kernels[i], x->o->input);
        if (last)
            explain_forms(r, &r->kernels[i]);
    }
}

static bool is_cpu(const char *target)
{
    return strncmp(target, "cpu", 3) == 0;
}

/* What the CPU path decided about loops over tiles. */
static void show_loops(const tilec_output *output)
{
    size_t size;
    const char *text = tilec_output_data(output, &size);
    fwrite(text, 1, size, stdout);
}

static int compile(Explain *x, const char *target)
{
    tilec_options c = x->o->compile;
    c.diagnostic = show_once;
    c.user = &x->shown;
    c.target = target;
    c.emit = is_cpu(target) ? "loops" : "image";
    c.report = !is_cpu(target);
    c.one_kernel = x->o->items.len > 0;
    tilec_status compiled = tilec_compile_file(x->o->input, &c, &x->output);
    return report_compile(compiled, x->output);
}

static int explain_target(Explain *x, const char *target)
{
    int status = compile(x, target);
    const tilec_report *r = tilec_output_report(x->output);
    bool shown_any = r != NULL;
    if (status == EXIT_FINE && r)
        show_report(x, r);
    if (status == EXIT_FINE && is_cpu(target) && !x->as_json) {
        show_loops(x->output);
        shown_any = true;
    }
    if (status == EXIT_FINE && !x->as_json)
        status = explain_tuning(x->o, target, &shown_any);
    if (status == EXIT_FINE && !shown_any)
        status = usage_error("explain is for GPUs, for loops on CPUs (as text) and for what was "
                             "tuned, and %s is neither", target);
    x->launch = (ExplainLaunch){0};
    if (status == EXIT_FINE && x->o->items.len && is_cpu(target))
        status =
            usage_error("what a launch does is counted on GPU targets, and %s is none", target);
    else if (status == EXIT_FINE && x->o->items.len)
        status = count(x, target);
    if (status == EXIT_FINE && x->as_json)
        explain_json_target(&x->json, r, &x->counted, &x->launch);
    if (status == EXIT_FINE && x->o->html)
        status = check_output_names(x->o, tilec_output_depends(x->output),
                                    &(OutputName){"--html", x->o->html}, 1);
    run_counted_free(&x->counted);
    tilec_output_free(x->output);
    x->output = NULL;
    return status;
}

static int explain_targets(Explain *x, const char *list)
{
    int status = EXIT_FINE;
    for (const char *p = list; *p && status == EXIT_FINE;) {
        char target[64];
        size_t n = strcspn(p, ",");
        snprintf(target, sizeof target, "%.*s", (int)n, p);
        if (p != list && !x->as_json)
            puts("\n");
        status = explain_target(x, target);
        p += n + (p[n] == ',');
    }
    return status;
}

static int explain(Explain *x, const char *list)
{
    tl_sbuf_init(&x->text, &x->arena);
    explain_json_begin(&x->json, &x->arena, &x->text, x->o->input, x->o->grid);
    int status = explain_targets(x, list);
    explain_json_end(&x->json);
    if (status == EXIT_FINE && x->o->html)
        status = page_write(x->o->html, PAGE_EXPLAIN, x->o->input, x->text.text, x->text.len);
    if (status == EXIT_FINE && x->o->json)
        fwrite(x->text.text, 1, x->text.len, stdout);
    return status;
}

int command_explain(const Options *o)
{
    const char *list = o->target ? o->target : "sm_80,gfx942";
    enum { BUDGET = 60 };
    Explain x = {.o = o, .as_json = o->json || o->html, .budget = BUDGET};
    char *end;
    int status = check_targets(list);
    TlGuard g;
    if (o->json && o->html && strcmp(o->html, "-") == 0)
        return usage_error("--json and --html -: both would be on standard output");
    if (status != EXIT_FINE)
        return status;
    if (o->budget)
        x.budget = tl_number_read(o->budget, &end);
    if (o->budget && (end == o->budget || *end || !(x.budget >= 0)))
        return usage_error("--budget takes a number of seconds, not '%s'", o->budget);
    tl_arena_init(&x.arena, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        status = explain(&x, list);
        tl_guard_pop(&g);
    } else {
        status = usage_error("%s", g.text);
    }
    tl_arena_free(&x.arena);
    free(x.shown.text);
    return status;
}
