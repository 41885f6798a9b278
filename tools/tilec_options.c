/* tilec_options.c: one row per option; parsing, checking and help are loops over the rows. */
#include "tools/tilec_options.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/options.h"
#include "ir/support/near.h"

typedef enum Form {
    FORM_FLAG, /* int at the offset becomes 1 */
    FORM_BOOL, /* bool at the offset becomes true */
    FORM_TEXT, /* --name VALUE or --name=VALUE; const char * */
    FORM_LIST, /* likewise, collected; Texts */
    FORM_GLUED /* -OVALUE or -I DIR: short options; const char * or Texts */
} Form;

typedef struct Row {
    const char *name;
    Form form;
    int commands;
    size_t offset;
    const char *value, *meaning;
} Row;

#define AT(field)       offsetof(Options, field)
#define COMPILER(field) (offsetof(Options, compile) + offsetof(tilec_options, field))
enum {
    COMPILES = CMD_COMPILE | CMD_CHECK | CMD_RUN | CMD_EXPLAIN,
    ALL = COMPILES | CMD_TUNE | CMD_BENCH,
    RUNS = CMD_RUN | CMD_EXPLAIN,
    ANY = ALL | CMD_FMT | CMD_LSP
};

/* clang-format off */
static const Row rows[] = {
    {"-o",             FORM_TEXT, CMD_COMPILE | CMD_TUNE, AT(output),            "FILE",     "where the output goes; - is standard output"},
    {"--header",       FORM_TEXT, CMD_COMPILE, AT(header),            "FILE",     "also write a C header"},
    {"--name",         FORM_TEXT, CMD_COMPILE, AT(name),              "NAME",     "name in the object's symbol and the header's guard (default: from the output file)"},
    {"--prefix",       FORM_TEXT, CMD_COMPILE, COMPILER(prefix),      "PREFIX",   "what stands before all names in the header"},
    {"--target",       FORM_TEXT, CMD_COMPILE | CMD_CHECK | CMD_EXPLAIN | CMD_TUNE | CMD_LSP, AT(target),  "T[,T...]", "the targets to compile for; tilec targets lists them; lsp: one, whose costs are shown"},
    {"--emit",         FORM_TEXT, CMD_COMPILE, AT(emit),              "STAGE",    "stop at a stage: ast tir opt laidout staged nest loops llvm asm ptx cubin hsaco obj header json image"},
    {"-MD",            FORM_BOOL, CMD_COMPILE, AT(depends),           NULL,       "write the files that were read, for make"},
    {"-MF",            FORM_TEXT, CMD_COMPILE, AT(depfile),           "FILE",     "the file that -MD writes"},
    {"--device",       FORM_TEXT, CMD_RUN | CMD_TUNE | CMD_BENCH, AT(device),            "D",        "cpu[:LEVEL], ref, emu:TARGET[@LEVEL], cuda[:N], hip[:N]; default: TILE_DEVICE, else cpu"},
    {"--grid",         FORM_TEXT, RUNS,        AT(grid),              "X[,Y...]", "run this grid instead of the kernel's"},
    {"--repeat",       FORM_TEXT, CMD_RUN,     AT(repeat),            "N",        "launch N times and print the time"},
    {"--stats",        FORM_BOOL, CMD_RUN,     AT(stats),             NULL,       "print the times of compiling and running; emu: counters"},
    {"--schedules",    FORM_TEXT, CMD_RUN,     AT(schedules),         "S,...|all", "emu: run under each schedule; outputs must agree (rr reverse ahead random:SEED)"},
    {"--perturb",      FORM_TEXT, CMD_RUN,     AT(perturb),           "SEED",     "emu: approximate instructions are off by as much as their bounds allow"},
    {"--print",        FORM_LIST, CMD_RUN,     AT(prints),            "PARAM",    "print an array after the run"},
    {"--save",         FORM_LIST, CMD_RUN,     AT(saves),             "PARAM=F.npy", "save an array after the run"},
    {"--kernel",       FORM_TEXT, ALL,         COMPILER(kernel),      "NAME",     "compile this kernel only"},
    {"--const",        FORM_LIST, ALL | CMD_LSP,         AT(consts),            "NAME=VAL", "set a constant in every kernel that has it; KERNEL.NAME=VAL: in one"},
    {"--config",       FORM_TEXT, COMPILES,    COMPILER(config),      "CONFIG",   "use this configuration of the kernel's tune clauses: 'BM=64 BN=32 warps=4'"},
    {"--tune",         FORM_TEXT, COMPILES | CMD_BENCH, AT(tune),          "FILE|off", "tuning results to use (default: FILE.tune.json beside FILE.tile; TILE_TUNE=off: none)"},
    {"--sizes",        FORM_LIST, CMD_TUNE | CMD_BENCH, AT(sizes),             "NAME=N,...", "tune, bench: for each of these values of NAME in PARAM=VALUE"},
    {"--flops",        FORM_TEXT, CMD_BENCH,   AT(flops),             "FORMULA",  "operations of a launch, from the sizes: 2*M*N*K"},
    {"--bytes",        FORM_TEXT, CMD_BENCH,   AT(bytes),             "FORMULA",  "bytes that it moves (default: each array once)"},
    {"--seconds",      FORM_TEXT, CMD_BENCH,   AT(seconds),           "S",        "time for each size (0.2)"},
    {"--svg",          FORM_TEXT, CMD_BENCH,   AT(svg),               "FILE",     "also draw speed by size and, with --flops, the roofline"},
    {"--budget",       FORM_TEXT, CMD_TUNE,    AT(budget),            "SECONDS",  "stop after this time, with what is known by then"},
    {"--budget",       FORM_TEXT, CMD_EXPLAIN, AT(budget),            "SECONDS",  "run on the emulator only what should take no longer (60)"},
    {"--model",        FORM_BOOL, CMD_TUNE,    AT(model),             NULL,       "do not run: rank by a static model of the GPU (--target sm_90a,gfx942)"},
    {"--farm",         FORM_BOOL, CMD_TUNE,    AT(farm),              NULL,       "in an MPI job (mpirun -n 4 tilec tune --farm ...): the ranks share the configurations"},
    {"--again",        FORM_BOOL, CMD_TUNE,    AT(again),             NULL,       "time all configurations, also those that have a time"},
    {"--tolerance",    FORM_TEXT, CMD_TUNE,    AT(tolerance),         "X",        "how much results may differ, relative to the largest value (by type)"},
    {"--json",         FORM_BOOL, CMD_TUNE | CMD_BENCH, AT(json),              NULL,       "report on standard output, one JSON object per line"},
    {"--json",         FORM_BOOL, CMD_EXPLAIN, AT(json),              NULL,       "report on standard output as one JSON object"},
    {"--html",         FORM_TEXT, CMD_EXPLAIN | CMD_TUNE, AT(html),              "FILE",     "write the report as one page for a browser; - is standard output"},
    {"--warps",        FORM_TEXT, ALL,         AT(warps),             "N",        "warps per program, on GPUs"},
    {"--stages",       FORM_TEXT, ALL,         AT(stages),            "N",        "stages of pipelined loops"},
    {"--forms",        FORM_TEXT, CMD_COMPILE | CMD_EXPLAIN,    COMPILER(forms),       "LIST",     "GPUs: compile these forms of a kernel (\"aligned;general\")"},
    {"-I",             FORM_GLUED, ALL | CMD_LSP,      AT(includes),          "DIR",      "search for imports here, too"},
    {"-O",             FORM_GLUED, ALL,        COMPILER(opt_level),   "0..3",     "optimisation level (3)"},
    {"-g",             FORM_FLAG, ALL,         COMPILER(debug),       NULL,       "keep asserts and line numbers"},
    {"--check",        FORM_FLAG, ALL,         COMPILER(check),       NULL,       "check bounds, assumptions and asserts at run time"},
    {"--fp",           FORM_TEXT, ALL,         COMPILER(fp),          "MODE",     "default, strict (same bits everywhere) or ring"},
    {"-W",             FORM_GLUED, COMPILES,   AT(warnings),          "NAME",     "error: make warnings errors; error=NAME: one of them; no-NAME: disable one; NAME, all: enable"},
    {"--color",        FORM_TEXT, ALL | CMD_FMT,         AT(color),             "WHEN",     "auto, always or never"},
    {"--diagnostics",  FORM_TEXT, COMPILES | CMD_FMT,    COMPILER(diagnostics), "FORM",     "text, json or sarif"},
    {"--passes",       FORM_TEXT, COMPILES,    COMPILER(passes),      "P,...",    "run these passes instead of the target's"},
    {"--print-after",  FORM_TEXT, COMPILES,    COMPILER(print_after), "PASS|all", "show the IR after a pass"},
    {"--stop-after",   FORM_TEXT, COMPILES,    COMPILER(stop_after),  "PASS",     "run no pass after this one, but settle-variants"},
    {"--skip",         FORM_TEXT, COMPILES,    COMPILER(skip),        "P,...",    "skip these passes, or ways around LLVM (codegen/workaround/workarounds.def)"},
    {"--override",     FORM_TEXT, COMPILES,    COMPILER(override),    "PASS:FILE", "take the IR after a pass from a file"},
    {"--bisect",       FORM_TEXT, COMPILES,    AT(bisect),            "N",        "run the first N passes"},
    {"--stress-layouts", FORM_TEXT, COMPILES,  AT(stress),            "SEED",     "random layouts on GPUs, to test the compiler"},
    {"--dump-dir",     FORM_TEXT, COMPILES,    COMPILER(dump_dir),    "DIR",      "write the IR after each pass here"},
    {"--time-passes",  FORM_FLAG, COMPILES,    COMPILER(time_passes), NULL,       "print the time of each pass"},
    {"--verify-each",  FORM_FLAG, COMPILES,    COMPILER(verify_each), NULL,       "verify the IR after each pass"},
    {"--time-trace",   FORM_TEXT, CMD_COMPILE | CMD_RUN, AT(time_trace),  "FILE",     "write the time of each part of the compilation, for ui.perfetto.dev"},
    {"--cache",        FORM_TEXT, ALL,         COMPILER(cache),       "DIR|off",  "where compiled kernels are kept (default: TILE_CACHE, else ~/.cache/tile)"},
    {"--check",        FORM_BOOL, CMD_FMT,     AT(only_check),        NULL,       "write nothing; print the names of files whose format would change"},
    {"--diff",         FORM_BOOL, CMD_FMT,     AT(diff),              NULL,       "write nothing; print what would change"},
    {"-r",             FORM_BOOL, CMD_FMT,     AT(recursive),         NULL,       "format the .tile files in folders"},
    {"--stdio",        FORM_BOOL, CMD_LSP,     AT(standard),          NULL,       "speak on standard input and output; there is no other way"},
    {"--version",      FORM_BOOL, ANY,         AT(version),           NULL,       "print the version"},
    {"--man",          FORM_BOOL, ANY,         AT(manual),            NULL,       "print the manual page, for man"},
    {"--help",         FORM_BOOL, ANY,         AT(help),              NULL,       "print this"},
    {"-h",             FORM_BOOL, ANY,         AT(help),              NULL,       "print this"},
};
/* clang-format on */
enum { NROWS = sizeof rows / sizeof *rows };

static bool ran_out; /* of memory, in this run of the program */

/* A file that cannot be read for want of memory, and the like, is no wrong usage. */
static void note_memory(const char *reason)
{
    ran_out = ran_out || strstr(reason, "out of memory") || strstr(reason, strerror(ENOMEM));
}

int out_of_memory(void)
{
    ran_out = true;
    fputs("tilec: out of memory\n", stderr);
    return EXIT_INTERNAL;
}

int status_of_run(int status)
{
    return status != EXIT_FINE && (ran_out || output_lacked_memory()) ? EXIT_INTERNAL : status;
}

int usage_error(const char *format, ...)
{
    char text[2048];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    fputs("tilec: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    vsnprintf(text, sizeof text, format, again);
    note_memory(text);
    va_end(again);
    va_end(args);
    return EXIT_USAGE;
}

bool option_at(int i, OptionInfo *out)
{
    if (i < 0 || i >= NROWS)
        return false;
    *out = (OptionInfo){rows[i].name, rows[i].value, rows[i].meaning, rows[i].commands};
    return true;
}

/* The first sub-command that takes the option. */
static const char *owner(const Row *r)
{
    SubCommand c;
    for (int i = 0; subcommand_at(i, &c); i++)
        if (c.command & r->commands)
            return c.name;
    return "";
}

void print_options(FILE *out, Command command)
{
    for (int i = 0; i < NROWS; i++) {
        char head[48];
        bool glued = rows[i].form == FORM_GLUED;
        if (!(rows[i].commands & (int)command))
            continue;
        snprintf(head, sizeof head, "%s%s%s", rows[i].name, rows[i].value && !glued ? " " : "",
                 rows[i].value ? rows[i].value : "");
        fprintf(out, "  %-26s %s\n", head, rows[i].meaning);
    }
}

bool parse_int(const char *text, long long low, long long high, long long *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < low || v > high)
        return false;
    *out = v;
    return true;
}

static bool add_text(Texts *t, const char *text)
{
    const char **more = realloc(t->data, (t->len + 1) * sizeof *more);
    if (!more)
        return out_of_memory(), false;
    t->data = more;
    t->data[t->len++] = text;
    return true;
}

/* ---- one option ---- */

static bool matches(const Row *r, const char *arg)
{
    size_t n = strlen(r->name);
    if (strncmp(arg, r->name, n) != 0)
        return false;
    if (r->form == FORM_GLUED)
        return true;
    bool takes_value = (r->form == FORM_TEXT || r->form == FORM_LIST) && r->name[1] == '-';
    return arg[n] == 0 || (takes_value && arg[n] == '=');
}

/* The sub-command's own row, or else another's. */
static const Row *find_row(const char *arg, Command command)
{
    const Row *other = NULL;
    for (int i = 0; i < NROWS; i++) {
        if (!matches(&rows[i], arg))
            continue;
        if (rows[i].commands & (int)command)
            return &rows[i];
        other = other ? other : &rows[i];
    }
    return other;
}

/* --devise=cpu: the name alone is compared. */
static bool unknown_option(const char *arg, Command command)
{
    char name[64];
    SubCommand c = {0};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
    TlNear near = tl_near(name);
    for (int i = 0; i < NROWS; i++)
        if (rows[i].commands & (int)command)
            tl_near_try(&near, rows[i].name);
    for (int i = 0; subcommand_at(i, &c) && c.command != (int)command;)
        i++;
    if (near.best)
        usage_error("unknown option '%s'; did you mean '%s'?", arg, near.best);
    else
        usage_error("unknown option '%s'; tilec help %s lists the options", arg, c.name);
    return false;
}

static bool store_glued(Options *o, const Row *r, const char *value)
{
    long long level;
    if (r->name[1] == 'W' || r->name[1] == 'I')
        return add_text((Texts *)(void *)((char *)o + r->offset), value);
    const TlOption *range = tl_option_find(r->name);
    if (!parse_int(value, range->low, range->high, &level))
        return usage_error("-O%s: levels are -O0, -O1, -O2, -O3", value), false;
    o->compile.opt_level = level ? (int)level : TILEC_NONE;
    return true;
}

/* Stores the option at argv[*i]; moves *i past a value of its own. */
static bool store(Options *o, const Row *r, int argc, char **argv, int *i)
{
    void *field = (char *)o + r->offset;
    const char *value = argv[*i] + strlen(r->name);
    if (r->form == FORM_FLAG)
        *(int *)field = 1;
    if (r->form == FORM_BOOL)
        *(bool *)field = true;
    if (r->form == FORM_FLAG || r->form == FORM_BOOL)
        return true;
    if (*value == '=' && r->form != FORM_GLUED)
        value++;
    else if (*value == 0 && r->name[1] != 'W' && r->name[1] != 'O') {
        if (*i + 1 >= argc)
            return usage_error("%s needs a value: %s %s", r->name, r->name, r->value), false;
        value = argv[++*i];
    }
    if (r->form == FORM_LIST)
        return add_text(field, value);
    if (r->form == FORM_GLUED)
        return store_glued(o, r, value);
    *(const char **)field = value;
    return true;
}

static bool positional(Options *o, Command command, const char *arg)
{
    if (command == CMD_LSP)
        return usage_error("lsp takes no '%s'", arg), false;
    if (command == CMD_FMT || command == CMD_CHECK) {
        o->input = arg;
        return add_text(&o->files, arg);
    }
    if (!o->input) {
        o->input = arg;
        return true;
    }
    if (command != CMD_COMPILE && strchr(arg, '='))
        return add_text(&o->items, arg);
    if (command != CMD_COMPILE)
        return usage_error("'%s' is neither an option nor PARAM=VALUE", arg), false;
    return usage_error("more than one file: '%s' and '%s'", o->input, arg), false;
}

static bool read_all(Options *o, Command command, int argc, char **argv)
{
    bool only_files = false;
    for (int i = 0; i < argc; i++) {
        if (only_files || argv[i][0] != '-' || argv[i][1] == 0) {
            if (!positional(o, command, argv[i]))
                return false;
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_files = true;
            continue;
        }
        const Row *r = find_row(argv[i], command);
        if (!r)
            return unknown_option(argv[i], command);
        if (!(r->commands & (int)command))
            return usage_error("%s is an option of tilec %s", r->name, owner(r)), false;
        if (!store(o, r, argc, argv, &i))
            return false;
    }
    return true;
}

/* ---- all options together ---- */

/* known: NULL: what the table of values says. */
static bool one_of(const char *option, const char *value, const char *const *known)
{
    known = known ? known : tl_option_find(option)->words;
    for (int i = 0; known[i]; i++)
        if (strcmp(known[i], value) == 0)
            return true;
    usage_error("%s=%s: expected one of", option, value);
    for (int i = 0; known[i]; i++)
        fprintf(stderr, " %s", known[i]);
    fputc('\n', stderr);
    return false;
}

static bool numbers(Options *o)
{
    const struct {
        const char *name, *text;
        int *out;
    } all[] = {
        {"--warps", o->warps, &o->compile.warps},
        {"--stages", o->stages, &o->compile.stages},
        {"--bisect", o->bisect, &o->compile.bisect},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const TlOption *range = tl_option_find(all[i].name);
        long long v;
        if (!all[i].text)
            continue;
        if (!parse_int(all[i].text, range->low, range->high, &v))
            return usage_error("%s takes a number from %d to %d, not '%s'", all[i].name, range->low,
                               range->high, all[i].text),
                   false;
        *all[i].out = v ? (int)v : TILEC_NONE;
    }
    long long seed;
    if (o->stress && !parse_int(o->stress, 0, INT64_MAX, &seed))
        return usage_error("--stress-layouts takes a seed, not '%s'", o->stress), false;
    o->compile.stress_layouts = o->stress ? (uint64_t)seed : 0;
    return true;
}

/* NAME=VAL into the compiler's list; the names are cut off in copies of our own. */
static bool constants(Options *o)
{
    tilec_const *list = calloc(o->consts.len + 1, sizeof *list);
    if (!list)
        return out_of_memory(), false;
    o->compile.consts = list;
    for (size_t i = 0; i < o->consts.len; i++) {
        const char *text = o->consts.data[i], *equals = strchr(text, '=');
        if (!equals || equals == text)
            return usage_error("--const takes NAME=VALUE, not '%s'", text), false;
        list[i] = (tilec_const){strndup(text, (size_t)(equals - text)), equals + 1};
        o->compile.nconsts = i + 1;
        if (!list[i].name)
            return out_of_memory(), false;
    }
    return true;
}

static const char *temporary_dir(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && *dir ? dir : "/tmp";
}

static bool is_set(const char *name)
{
    const char *said = getenv(name);
    return said && *said && strcmp(said, "0") != 0;
}

/* By what programs agree on: NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM=dumb. */
static bool wants_color(void)
{
    const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
    if (no && *no)
        return false;
    if (is_set("FORCE_COLOR") || is_set("CLICOLOR_FORCE"))
        return true;
    return isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
}

static bool finish_options(Options *o, Command command)
{
    static const char *const whens[] = {"auto", "always", "never", NULL};
    const char *when = o->color ? o->color : "auto";
    if (!one_of("--fp", o->compile.fp, NULL) ||
        !one_of("--diagnostics", o->compile.diagnostics, NULL) || !one_of("--color", when, whens))
        return false;
    if (!numbers(o) || !constants(o))
        return false;
    o->compile.time_trace = o->time_trace != NULL;
    o->compile.color =
        strcmp(when, "always") == 0 || (strcmp(when, "auto") == 0 && wants_color());
    o->compile.include_dirs = o->includes.data;
    o->compile.ninclude_dirs = o->includes.len;
    o->compile.warnings = o->warnings.data;
    o->compile.nwarnings = o->warnings.len;
    o->compile.crash_dir = temporary_dir();
    if (!o->input && !o->help && !o->version && !o->manual && command != CMD_LSP)
        return usage_error("no input file; see tilec --help"), false;
    if (o->depfile && !o->depends)
        return usage_error("-MF %s: nothing is written there without -MD", o->depfile), false;
    return true;
}

static void to_stderr(void *user, const char *text)
{
    (void)user;
    fputs(text, stderr);
}

bool options_parse(Options *o, Command command, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    tl_options_take(&o->compile, NULL);
    o->compile.diagnostic = to_stderr;
    o->compile.print = to_stderr;
    return read_all(o, command, argc, argv) && finish_options(o, command);
}

void options_free(Options *o)
{
    for (size_t i = 0; i < o->compile.nconsts; i++)
        free((char *)(uintptr_t)o->compile.consts[i].name);
    free((tilec_const *)(uintptr_t)o->compile.consts);
    Texts *lists[] = {&o->consts, &o->includes, &o->warnings, &o->items,
                      &o->prints, &o->saves,    &o->sizes,    &o->files};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->data);
}

/* ---- files that are written ---- */

static int reads(const OutputName *out, const char *input, size_t length)
{
    char path[4096];
    snprintf(path, sizeof path, "%.*s", (int)length, input);
    if (strcmp(path, "-") == 0 || !output_same(out->path, path))
        return EXIT_FINE;
    return usage_error("%s: '%s' is also read, as '%s'", out->option, out->path, path);
}

/* No output is the program, a file that it imports, an array's file, or IR that --override
 * reads. */
static int check_inputs(const Options *o, const char *depends, const OutputName *out)
{
    int status = reads(out, o->input, strlen(o->input));
    const char *ir = o->compile.override ? strchr(o->compile.override, ':') : NULL;
    if (status == EXIT_FINE && ir)
        status = reads(out, ir + 1, strlen(ir + 1));
    for (const char *p = depends; p && *p && status == EXIT_FINE; p += strcspn(p, "\n") + 1)
        status = reads(out, p, strcspn(p, "\n"));
    for (size_t i = 0; i < o->items.len && status == EXIT_FINE; i++) {
        const char *file = strstr(o->items.data[i], "=@");
        if (file)
            status = reads(out, file + 2, strlen(file + 2));
    }
    return status;
}

int check_output_names(const Options *o, const char *depends, const OutputName *names, size_t n)
{
    int status = EXIT_FINE;
    for (size_t i = 0; i < n && status == EXIT_FINE; i++) {
        status = check_inputs(o, depends, &names[i]);
        for (size_t k = 0; k < i && status == EXIT_FINE; k++)
            if (output_same(names[i].path, names[k].path))
                status = usage_error("%s and %s: '%s' and '%s' are one file", names[k].option,
                                     names[i].option, names[k].path, names[i].path);
    }
    return status;
}

int write_trace(const Options *o, const tilec_output *output, Outputs *outputs)
{
    const char *text = tilec_output_trace(output);
    return output_write(outputs, o->time_trace, text, strlen(text)) ? EXIT_FINE : EXIT_USAGE;
}

int report_compile(tilec_status status, const tilec_output *output)
{
    const char *text = output ? tilec_output_message(output) : "out of memory";
    switch (status) {
    case TILEC_OK: return EXIT_FINE;
    case TILEC_ERRORS:
        if (*text)
            fprintf(stderr, "tilec: %s\n", text);
        return EXIT_PROGRAM;
    case TILEC_USAGE:
    case TILEC_TOOL:
    case TILEC_IO: return usage_error("%s", text);
    case TILEC_NO_VARIANT: fprintf(stderr, "tilec: %s\n", text); return EXIT_RUN;
    case TILEC_NO_MEMORY:
        ran_out = true;
        fprintf(stderr, "tilec: %s\n", *text ? text : "out of memory");
        return EXIT_INTERNAL;
    case TILEC_INTERNAL: break;
    }
    fprintf(stderr, "tilec: internal error: %s\n", text);
    return EXIT_INTERNAL;
}
