/* tile-opt: runs passes over .tir text and prints the result; --help lists what it takes. Option
 * parsing and printing only. */
#include "codegen/target/target.h"
#include "ir/form.h"
#include "passes/pass.h"
#include "tools/opt.h"
#include "tools/output.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_PROGRAM = 1, EXIT_USAGE = 2, EXIT_INTERNAL = 70 };

typedef struct Options {
    const char *input, *output, *passes, *same_as, *fill, *list_passes, *list_ops, *target, *warps,
        *stages, *forms;
    bool run, quiet, help;
    bool unwritten; /* the output, which has been said */
    TlRunOptions r;
    TlMachine machine;
    TlModule *module, *reference; /* freed with the context */
} Options;

/* An option is a flag (bool) or has a value after '='; optional: may stand without. */
typedef struct Option {
    const char *name;
    const char **value;
    bool *flag;
    bool optional;
    const char *doc;
} Option;

static const char *bisect_text;

static int usage(const char *format, const char *what)
{
    fprintf(stderr, "tile-opt: ");
    fprintf(stderr, format, what);
    fprintf(stderr, "\ntile-opt --help lists the options\n");
    return EXIT_USAGE;
}

static void print_help(const Option *options)
{
    printf("tile-opt [options] FILE.tir      runs passes over tile IR (\"-\": standard input)\n\n");
    for (const Option *o = options; o->name; o++) {
        char left[40];
        snprintf(left, sizeof left, "--%s%s", o->name,
                 !o->value     ? ""
                 : o->optional ? "[=..]"
                               : "=..");
        printf("  %-18s %s\n", left, o->doc);
    }
    printf(
        "\nexit status: 0 success, 1 the text is wrong or differs, 2 wrong usage, 70 a pass "
        "failed\n");
}

/* 0, or the exit status of wrong usage. */
static int take_option(const Option *options, const char *arg)
{
    size_t n = strcspn(arg + 2, "=");
    const char *value = arg[2 + n] ? arg + 2 + n + 1 : NULL;
    for (const Option *o = options; o->name; o++) {
        if (strncmp(o->name, arg + 2, n) != 0 || o->name[n])
            continue;
        if (o->flag && value)
            return usage("%s takes no value", arg);
        if (o->value && !value && !o->optional)
            return usage("%s needs a value", arg);
        if (o->flag)
            *o->flag = true;
        else
            *o->value = value ? value : "";
        return 0;
    }
    return usage("unknown option %s", arg);
}

/* The number after an option; `otherwise` when it is not given, -1 when it is none. */
static long number_of_option(const char *text, long otherwise)
{
    char *end;
    long n = text ? strtol(text, &end, 10) : otherwise;
    return text && (*end || end == text) ? -1 : n;
}

/* --target, --warps, --stages: the machine of the laid-out passes; without them the runner's
 * own. */
static int take_machine(Options *o)
{
    if (!o->target && !o->warps && !o->stages && !o->forms)
        return 0;
    const TlTarget *t = tl_target_find(o->target ? o->target : "sm_80", NULL);
    if (!t || !tl_target_is_gpu(t))
        return usage("--target=%s is not a GPU", o->target);
    long warps = number_of_option(o->warps, 4), stages = number_of_option(o->stages, 0);
    if (warps < 1 || warps > 32 || (warps & (warps - 1)))
        return usage("--warps=%s is not a power of two up to 32", o->warps);
    if (stages < 0 || stages > 64)
        return usage("--stages=%s is not a number up to 64", o->stages);
    if (o->forms && !tl_forms_are_well_formed(o->forms))
        return usage("--forms=%s is no list of forms", o->forms);
    o->machine = tl_target_machine(t);
    o->machine.warps = (int)warps;
    o->machine.stages = (int)stages;
    o->machine.forms = o->forms;
    o->r.machine = &o->machine;
    return 0;
}

static int take_arguments(Options *o, const Option *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int status = 0;
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            o->output = argv[++i];
        else if (strncmp(argv[i], "--", 2) == 0)
            status = take_option(options, argv[i]);
        else if (argv[i][0] == '-' && argv[i][1])
            status = usage("unknown option %s", argv[i]);
        else if (o->input)
            status = usage("a second input: %s", argv[i]);
        else
            o->input = argv[i];
        if (status)
            return status;
    }
    int status = take_machine(o);
    if (status || !bisect_text)
        return status;
    char *end;
    o->r.bisect = (int)strtol(bisect_text, &end, 10);
    return *end || end == bisect_text || o->r.bisect < 0
               ? usage("--bisect=%s is not a count", bisect_text)
               : 0;
}

/* ---- files ---- */

static TlModule *read_module(TlCtx *ctx, const char *path, const char **out_text)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx->perm);
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    bool ok = f && tl_sbuf_read(&s, f, SIZE_MAX);
    if (f && !is_stdin)
        fclose(f);
    if (!ok) {
        tl_diag(&ctx->diags, (TlLoc){0}, TL_E0001, path, strerror(errno));
        return NULL;
    }
    *out_text = s.text;
    return tl_parse_module(
        ctx, tl_diags_source(&ctx->diags, is_stdin ? "<stdin>" : path, s.text, s.len));
}

/* Not before all that could go wrong. */
static bool write_output(Options *o, const char *text)
{
    Outputs out = {.program = "tile-opt"};
    o->unwritten = !output_write(&out, o->output ? o->output : "-", text, strlen(text)) ||
                   !output_commit(&out);
    output_drop(&out);
    return !o->unwritten;
}

static void print_text(void *user, const char *text)
{
    (void)user;
    fputs(text, stderr);
}

/* ---- the work ---- */

static bool run_kernels(Options *o, TlCtx *ctx, const char *text)
{
    TlSbuf report;
    tl_sbuf_init(&report, &ctx->perm);
    OptRun run = {.arena = &ctx->perm, .text = text, .fill = o->fill, .report = &report};
    if (!o->same_as) {
        bool ok = opt_run_show(&run, o->module);
        return write_output(o, report.text) && ok;
    }
    const char *reference_text;
    o->reference = read_module(ctx, o->same_as, &reference_text);
    if (!o->reference)
        return false;
    bool same = opt_run_same(&run, o->module, o->reference);
    fputs(report.text, stderr);
    return same;
}

static bool work(Options *o, TlCtx *ctx)
{
    const char *text, *input = o->input ? o->input : "-";
    if (o->output && strcmp(input, "-") != 0 && output_same(input, o->output)) {
        usage("'%s' is read and written", o->output);
        o->unwritten = true;
        return false;
    }
    o->module = read_module(ctx, input, &text);
    if (!o->module || (o->passes && !tl_run_passes(o->module, o->passes, &o->r)))
        return false;
    if (o->run)
        return run_kernels(o, ctx, text);
    if (o->quiet)
        return true;
    TlSbuf s;
    tl_sbuf_init(&s, &ctx->perm);
    tl_print_module(&s, o->module);
    return write_output(o, s.text);
}

static int lists(const Options *o, TlCtx *ctx)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx->perm);
    if (o->list_passes)
        opt_list_passes(&s, strcmp(o->list_passes, "md") == 0);
    if (o->list_ops)
        opt_list_ops(&s, strcmp(o->list_ops, "md") == 0);
    fputs(s.text, stdout);
    return 0;
}

/* Everything between the context's beginning and its end. */
static int guarded(Options *o, TlCtx *ctx)
{
    TlGuard g;
    if (!TL_GUARD(&g)) {
        fprintf(stderr, "tile-opt: %s%s\n",
                tl_fault_is_memory(g.fault) ? "" : "internal error: ", g.text);
        return EXIT_INTERNAL;
    }
    int status = 0;
    if (o->list_passes || o->list_ops) {
        status = lists(o, ctx);
    } else {
        status = work(o, ctx) ? 0 : o->unwritten ? EXIT_USAGE : EXIT_PROGRAM;
        TlSbuf s;
        tl_sbuf_init(&s, &ctx->perm);
        tl_diags_render(&ctx->diags, TL_DIAG_TEXT, false, &s);
        fputs(s.text, stderr);
    }
    tl_guard_pop(&g);
    return status;
}

static int run_command(int argc, char **argv)
{
    static Options o = {.r = {.bisect = -1, .print = print_text, .crash_dir = "."}};
    const Option options[] = {
        {"passes", &o.passes, NULL, false, "a,b{opt=1},c: run these over every kernel"},
        {"list-passes", &o.list_passes, NULL, true, "print the passes; =md: as Markdown"},
        {"list-ops", &o.list_ops, NULL, true, "print the ops; =md: as Markdown"},
        {"verify-each", NULL, &o.r.verify_each, false,
         "check the IR after each pass, and that a pass reports whether it changed it"},
        {"print-after", &o.r.print_after, NULL, false,
         "PASS,..|all: print the IR after these (to standard error)"},
        {"dump-dir", &o.r.dump_dir, NULL, false, "write NN-PASS.tir there after each pass"},
        {"stop-after", &o.r.stop_after, NULL, false, "run no pass after this one"},
        {"skip", &o.r.skip, NULL, false, "PASS,..: skip these"},
        {"override", &o.r.override, NULL, false,
         "PASS:FILE: after PASS, continue with the IR of FILE"},
        {"bisect", &bisect_text, NULL, false, "N: run the first N passes only"},
        {"time-passes", NULL, &o.r.time_passes, false, "print how long each pass took"},
        {"crash-dir", &o.r.crash_dir, NULL, false,
         "folder for crash-PASS.tir if a pass fails (default: the current one)"},
        {"run", NULL, &o.run, false, "run the kernels in the interpreter instead of printing them"},
        {"same-as", &o.same_as, NULL, false,
         "FILE: with --run: compare with the kernels of FILE; exit status 1 if they differ"},
        {"target", &o.target, NULL, false, "T: the GPU for the laid-out passes (default: sm_80)"},
        {"warps", &o.warps, NULL, false, "N: warps of a kernel without a warps clause (4)"},
        {"stages", &o.stages, NULL, false, "N: stages of pipelined loops"},
        {"forms", &o.forms, NULL, false, "LIST: forms of kernels, as for tilec"},
        {"fill", &o.fill, NULL, false, "random|special|exact: the data that --run puts into "
                                       "arrays"},
        {"quiet", NULL, &o.quiet, false, "do not print the IR"},
        {"help", NULL, &o.help, false, "print this"},
        {0},
    };
    int status = take_arguments(&o, options, argc, argv);
    if (status)
        return status;
    if (o.help) {
        print_help(options);
        return 0;
    }
    TlCtx ctx;
    tl_ctx_init(&ctx, (TlAlloc){0});
    status = guarded(&o, &ctx);
    tl_ctx_free(&ctx);
    return status;
}

int main(int argc, char **argv)
{
    output_begin();
    return output_end("tile-opt", run_command(argc, argv));
}
