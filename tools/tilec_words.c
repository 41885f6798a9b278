/* tilec_words.c: tilec completion words WORD...: what the last word of a command line may become.
 *
 * The scripts of shells (tools/completion) ask it at each completion, so that they know nothing of
 * the tables, and kernels, constants and parameters are those of the file on the line. It prints a
 * line for each candidate: the whole word and, behind a tab, what it means. Lines that begin with a
 * colon are for the shell: :files, :folders, :tile (.tile files and folders). It says nothing of
 * files that it cannot read. */
#include "codegen/compile_library.h"
#include "codegen/options.h"
#include "frontend/errors.h"
#include "ir/support/guard.h"
#include "tools/declared.h"
#include "tools/tilec_options.h"
#include <stdlib.h>
#include <string.h>

typedef struct Line {
    char **words; /* all but the last */
    int nwords;
    SubCommand command;
    const char *head; /* what stands before the part that is completed: "--target=sm_80," */
    int nhead;
    const char *part; /* which is that */
    TlArena *arena;
} Line;

/* ---- candidates ---- */

static void offer(const Line *l, const char *word, const char *end, const char *meaning)
{
    if (strncmp(word, l->part, strlen(l->part)) == 0)
        printf("%.*s%s%s\t%.*s\n", l->nhead, l->head, word, end, (int)strcspn(meaning, "\n"),
               meaning);
}

static void offer_all(const Line *l, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        offer(l, words[i], "", "");
}

/* The part that begins n bytes later. */
static Line at(const Line *l, size_t n)
{
    Line rest = *l;
    rest.part += n;
    rest.nhead += (int)n;
    return rest;
}

/* The part behind the last of a letter, of which there may be none. */
static Line behind(const Line *l, char letter)
{
    const char *last = strrchr(l->part, letter);
    return at(l, last ? (size_t)(last - l->part) + 1 : 0);
}

/* ---- the file on the line ---- */

static bool takes_value(const OptionInfo *o)
{
    return o->value && (o->name[1] == '-' || strcmp(o->name, "-o") == 0 ||
                        strcmp(o->name, "-I") == 0 || strcmp(o->name, "-MF") == 0);
}

/* The option of the sub-command whose name is `name`. */
static bool option_called(const Line *l, const char *name, size_t n, OptionInfo *out)
{
    for (int i = 0; option_at(i, out); i++)
        if ((out->commands & l->command.command) && strlen(out->name) == n &&
            strncmp(out->name, name, n) == 0)
            return true;
    return false;
}

/* Is the i-th word the value of an option before it? */
static bool value_at(const Line *l, int i, OptionInfo *out)
{
    return i > 0 && option_called(l, l->words[i - 1], strlen(l->words[i - 1]), out) &&
           takes_value(out);
}

static const char *file_of(const Line *l)
{
    OptionInfo o;
    for (int i = strcmp(l->command.name, l->nwords ? l->words[0] : "") == 0; i < l->nwords; i++)
        if (l->words[i][0] != '-' && !value_at(l, i, &o))
            return l->words[i];
    return NULL;
}

/* The kernel that --kernel names. */
static const char *kernel_of(const Line *l)
{
    for (int i = 0; i < l->nwords; i++)
        if (strncmp(l->words[i], "--kernel=", 9) == 0)
            return l->words[i] + 9;
        else if (strcmp(l->words[i], "--kernel") == 0 && i + 1 < l->nwords)
            return l->words[i + 1];
    return NULL;
}

typedef void (*OfProgram)(const Line *l, const TlProgram *p);

static void with_program(const Line *l, OfProgram offer_of)
{
    TlCtx ctx;
    TlGuard guard;
    tl_ctx_init(&ctx, (TlAlloc){0});
    if (TL_GUARD(&guard)) {
        TlProgram *p = declared(&ctx, file_of(l));
        if (p)
            offer_of(l, p);
        tl_guard_pop(&guard);
    }
    tl_ctx_free(&ctx);
}

static void kernels(const Line *l, const TlProgram *p)
{
    for (uint32_t i = 0; i < tl_program_kernels(p); i++)
        offer(l, tl_program_kernel_name(p, i), "", "");
}

/* Does an earlier kernel have it, too? */
static bool is_known(const TlProgram *p, const char *name, uint32_t kernel)
{
    const char *other;
    bool is_const;
    for (uint32_t k = 0; k < kernel; k++)
        for (uint32_t i = 0; (other = tl_program_param(p, k, i, &is_const)); i++)
            if (strcmp(other, name) == 0)
                return true;
    return false;
}

static void names(const Line *l, const TlProgram *p, bool constants, const char *end)
{
    const char *wanted = kernel_of(l), *name;
    bool is_const;
    for (uint32_t k = 0; k < tl_program_kernels(p); k++) {
        const char *kernel = tl_program_kernel_name(p, k);
        if (wanted && strcmp(wanted, kernel) != 0)
            continue;
        for (uint32_t i = 0; (name = tl_program_param(p, k, i, &is_const)); i++)
            if (is_const == constants && (wanted || !is_known(p, name, k)))
                offer(l, name, end, kernel);
    }
}

static void constants(const Line *l, const TlProgram *p)
{
    names(l, p, true, "=");
}

static void parameters(const Line *l, const TlProgram *p)
{
    names(l, p, false, "");
}

static void arguments(const Line *l, const TlProgram *p)
{
    names(l, p, false, "=");
}

/* ---- values of options ---- */

static void targets(const Line *l)
{
    Line one = behind(l, ',');
    offer_all(&one, tilec_targets());
}

static void devices(const Line *l)
{
    Line emulated = behind(l, ':');
    if (strncmp(l->part, "emu:", 4) == 0) {
        for (const char *const *t = tilec_targets(); *t; t++)
            if (strncmp(*t, "cpu", 3) != 0 && strcmp(*t, "ref") != 0)
                offer(&emulated, *t, "", "");
        return;
    }
    for (const char *const *t = tilec_targets(); *t; t++)
        if (strncmp(*t, "cpu", 3) == 0)
            offer(l, *t, "", "");
    offer(l, "ref", "", "the interpreter of the IR");
    offer(l, "emu", ":", "a GPU, emulated");
    offer(l, "cuda", "", "an NVIDIA GPU");
    offer(l, "hip", "", "an AMD GPU");
}

static void passes_with(const Line *l, const char *end)
{
#define PASS(ident, name, needs, keeps, meaning) offer(l, name, end, meaning);
#define MODULE_PASS(ident, name, meaning)        offer(l, name, end, meaning);
#include "passes/passes.def"
}

static void passes(const Line *l)
{
    Line one = behind(l, ',');
    passes_with(&one, "");
}

static void passes_or_all(const Line *l)
{
    passes(l);
    offer(l, "all", "", "");
}

static void override(const Line *l)
{
    passes_with(l, ":");
}

static void off_or_files(const Line *l)
{
    offer(l, "off", "", "none");
    puts(":files");
}

static void off_or_folders(const Line *l)
{
    offer(l, "off", "", "none");
    puts(":folders");
}

static void whens(const Line *l)
{
    offer_all(l, (const char *const[]){"auto", "always", "never", NULL});
}

static void stages(const Line *l)
{
    static const char *const all[] = {
#define STAGE(ID, name, of, emit) name,
#include "codegen/stage.def"
        NULL};
    offer_all(l, all);
}

static void schedules(const Line *l)
{
    Line one = behind(l, ',');
    offer_all(&one, (const char *const[]){"rr", "reverse", "ahead", "random:", "all", NULL});
}

static const struct {
    const char *option;
    void (*offer)(const Line *l);
    OfProgram offer_of; /* or this */
} values[] = {
    {"--target", targets, NULL},     {"--device", devices, NULL},
    {"--kernel", NULL, kernels},     {"--const", NULL, constants},
    {"--print", NULL, parameters},   {"--save", NULL, arguments},
    {"--emit", stages, NULL},        {"--color", whens, NULL},
    {"--tune", off_or_files, NULL},  {"--cache", off_or_folders, NULL},
    {"--skip", passes, NULL},        {"--passes", passes, NULL},
    {"--override", override, NULL},  {"--print-after", passes_or_all, NULL},
    {"--stop-after", passes, NULL},  {"--schedules", schedules, NULL},
};

static void value_of(const Line *l, const OptionInfo *o)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].option, o->name) == 0) {
            if (values[i].offer)
                values[i].offer(l);
            else
                with_program(l, values[i].offer_of);
            return;
        }
    const TlOption *known = tl_option_find(o->name);
    if (known && known->words)
        offer_all(l, known->words);
    else if (strcmp(o->value, "DIR") == 0)
        puts(":folders");
    else if (strcmp(o->value, "FILE") == 0)
        puts(":files");
}

/* ---- options ---- */

/* -WNAME, -Wno-NAME */
static void warnings(const Line *l)
{
    TlSbuf summary;
    const char *called, *before = "";
    Line name = at(l, strncmp(l->part, "-Wno-", 5) == 0 ? 5 : 2);
    offer(l, "-Werror", "", "make warnings errors");
    offer(l, "-Wall", "", "enable all warnings");
    tl_sbuf_init(&summary, l->arena);
    for (uint32_t i = 0; (called = tl_errors_at(i, &summary)); i++, before = called)
        if (strspn(called + 1, "0123456789") != strlen(called) - 1 && /* no error[E0303] */
            strcmp(called, before) != 0)                              /* rows of one name */
            offer(&name, called, "", "");
}

static void options(const Line *l)
{
    OptionInfo o;
    if (strncmp(l->part, "-W", 2) == 0 && option_called(l, "-W", 2, &o)) {
        warnings(l);
        return;
    }
    for (int i = 0; option_at(i, &o); i++)
        if (o.commands & l->command.command)
            offer(l, o.name, "", o.meaning);
    if (!l->command.command)
        offer(l, "--help", "", "print how it is used");
}

/* ---- what is no option ---- */

static void modules(const Line *l)
{
    const char *name;
    for (size_t i = 0; (name = tilec_library_module(i)); i++)
        if (strncmp(name, TL_KERNELS, sizeof TL_KERNELS - 1) == 0)
            offer(l, name, "", "");
}

static void argument_forms(const Line *l)
{
    static const char *const forms[] = {"zeros[", "full(",   "iota[", "uniform(1)[", "normal(1)[",
                                        "nan[",   "uninit[", "@",     NULL};
    Line value = behind(l, '=');
    offer_all(&value, forms);
}

static void errors(const Line *l)
{
    TlSbuf summary;
    const char *name, *before = "";
    tl_sbuf_init(&summary, l->arena);
    offer(l, "--markdown", "", "all of them, as a page");
    for (uint32_t i = 0; (name = tl_errors_at(i, &summary)); i++, before = name) {
        if (strcmp(name, before) != 0)
            offer(l, name, "", summary.text);
        tl_sbuf_init(&summary, l->arena);
    }
}

static void subcommands(const Line *l)
{
    SubCommand c;
    for (int i = 0; subcommand_at(i, &c); i++)
        offer(l, c.name, "", c.meaning);
}

static void operands(const Line *l)
{
    enum { WITH_ARGUMENTS = CMD_RUN | CMD_EXPLAIN | CMD_TUNE | CMD_BENCH };
    if ((l->command.command & WITH_ARGUMENTS) && file_of(l)) {
        if (strchr(l->part, '='))
            argument_forms(l);
        else
            with_program(l, arguments);
        return;
    }
    if (l->command.command && l->command.command != CMD_LSP) {
        puts(":tile");
        if (l->command.command != CMD_FMT)
            modules(l);
    }
}

static void shells(const Line *l)
{
    offer_all(l, (const char *const[]){"bash", "zsh", "fish", NULL});
}

static void cache_actions(const Line *l)
{
    offer_all(l, (const char *const[]){"ls", "verify", "prune", "clear", "dir", "--size", NULL});
}

/* Sub-commands without options of the table. */
static const struct {
    const char *command;
    void (*offer)(const Line *l);
} others[] = {
    {"error", errors}, {"help", subcommands}, {"completion", shells}, {"cache", cache_actions}};

static void last_word(const Line *l)
{
    OptionInfo o;
    const char *equals = strchr(l->part, '=');
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i].command, l->command.name) == 0) {
            others[i].offer(l);
            if (l->part[0] == '-')
                options(l);
            return;
        }
    if (value_at(l, l->nwords, &o)) {
        value_of(l, &o);
    } else if (l->part[0] == '-' && equals &&
               option_called(l, l->part, (size_t)(equals - l->part), &o) && takes_value(&o)) {
        Line value = at(l, (size_t)(equals + 1 - l->part));
        value_of(&value, &o);
    } else if (l->part[0] == '-') {
        options(l);
    } else {
        operands(l);
    }
}

/* The sub-command that the first word names; compile where it is left out. */
static SubCommand command_of(char **words, int n)
{
    SubCommand c, compile = {0};
    for (int i = 0; subcommand_at(i, &c); i++) {
        if (n > 0 && strcmp(c.name, words[0]) == 0)
            return c;
        compile = c.command == CMD_COMPILE ? c : compile;
    }
    return compile;
}

int command_words(int argc, char **argv)
{
    TlArena arena;
    char *last = argc ? argv[argc - 1] : "";
    Line l = {.words = argv, .nwords = argc ? argc - 1 : 0, .head = last, .part = last};
    l.command = command_of(l.words, l.nwords);
    l.arena = &arena;
    tl_arena_init(&arena, (TlAlloc){0});
    if (l.nwords == 0)
        subcommands(&l);
    last_word(&l);
    tl_arena_free(&arena);
    return EXIT_FINE;
}
