/* tilec_man.c: tilec --man: manual pages, tilec(1) and one of each sub-command, from the tables of
 * tilec.c and tilec_options.c. */
#include "ir/support/ascii.h"
#include "tools/tilec_options.h"
#include <string.h>

/* Text in which troff sees no requests and no escapes. */
static void put_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        if (*text == '\n' && (text[1] == '.' || text[1] == '\''))
            fputs("\\&", stdout);
    }
}

static void put_lines(const char *text, const char *before)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        char line[256];
        n = strcspn(text, "\n");
        snprintf(line, sizeof line, "%s%.*s\n", before, (int)n, text);
        put_roff(line);
    }
}

static void put_option(const OptionInfo *o)
{
    fputs(".TP\n\\fB", stdout);
    put_roff(o->name);
    fputs("\\fR", stdout);
    if (o->value) {
        fputs(o->name[1] == '-' || o->name[2] || o->name[1] == 'o' ? " \\fI" : "\\fI", stdout);
        put_roff(o->value);
        fputs("\\fR", stdout);
    }
    fputs("\n", stdout);
    put_roff(o->meaning);
    fputs("\n", stdout);
}

static void put_options(int command)
{
    OptionInfo o;
    fputs(".SH OPTIONS\n", stdout);
    for (int i = 0; option_at(i, &o); i++)
        if (o.commands & command)
            put_option(&o);
}

/* "TILEC", "TILEC-RUN" */
static void put_title(const SubCommand *c)
{
    fputs(".TH TILEC", stdout);
    for (const char *s = c ? c->name : ""; *s; s++)
        printf("%s%c", s == c->name ? "\\-" : "", tl_to_upper(*s));
    printf(" 1 \"" TILE_DATE "\" \"%s\" \"User Commands\"\n", tilec_version());
}

static void put_commands(void)
{
    SubCommand c;
    fputs(".SH COMMANDS\n", stdout);
    for (int i = 0; subcommand_at(i, &c); i++)
        printf(".TP\n\\fB%s\\fR\n%s; tilec\\-%s(1)\n", c.name, c.meaning, c.name);
}

/* What runtime/README.md says at length; a test compares the names. */
static void put_environment(void)
{
    static const struct {
        const char *name, *meaning;
    } variables[] = {
        {"TILE_DEVICE", "the default device"},
        {"TILE_THREADS", "threads of a cpu or emu device: 1 to 1024"},
        {"TILE_AFFINITY", "processors of its threads: none, compact, spread, or 0-3,8"},
        {"TILE_CACHE", "where compiled kernels are kept: a folder, or off"},
        {"TILE_CACHE_SIZE", "how many bytes of them: 500M"},
        {"TILE_CACHE_BYTES", "size of the last cache that a cpu device assumes"},
        {"TILE_PROCESS", "on: compile in a process of its own"},
        {"TILE_COMPILER", "the folder of libtilec-core.so"},
        {"TILE_PTXAS", "the file of NVIDIA's assembler"},
        {"TILE_TUNE", "off: files of tuning results are not used"},
        {"TILE_SYNC", "1: each launch synchronises"},
        {"TILE_PRINT", "1: what kernels print goes to standard error where a program has no "
                       "callbacks"},
        {"TILE_BREAK", "1: a check that fails in a kernel on the CPU stops the program there, for "
                       "a debugger"},
        {"TILE_PERF", "map: the names of kernels go to /tmp/perf-PID.map, for perf; dump: "
                      "their code and lines go to /tmp/jit-PID.dump"},
        {"TILE_EMU_SCHEDULE", "the order of threads on an emulated GPU"},
        {"TILE_EMU_PERTURB", "a seed: approximate instructions are off by their bounds"},
        {"TILE_EMU_DROP_BARRIER", "leave out a barrier, for tests of tests"},
        {"NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE", "diagnostics without colours, or with"},
    };
    fputs(".SH ENVIRONMENT\n", stdout);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        printf(".TP\n\\fB%s\\fR\n", variables[i].name);
        put_roff(variables[i].meaning);
        putchar('\n');
    }
}

static void put_end(const SubCommand *own)
{
    SubCommand c;
    const char *between = "";
    fputs(".SH EXIT STATUS\n0 success; 1 the program is wrong; 2 wrong usage; 3 a run failed; 70 "
          "internal error.\n.SH SEE ALSO\n",
          stdout);
    if (own) {
        fputs("tilec(1)\n", stdout);
        return;
    }
    for (int i = 0; subcommand_at(i, &c); i++, between = ", ")
        printf("%stilec\\-%s(1)", between, c.name);
    putchar('\n');
}

static void print_page(const SubCommand *c)
{
    put_title(c);
    printf(".SH NAME\ntilec\\-%s \\- %s\n.SH SYNOPSIS\n.nf\n", c->name, c->meaning);
    put_lines(c->usage, "tilec ");
    fputs(".fi\n", stdout);
    if (*c->more) {
        fputs(".SH DESCRIPTION\n.nf\n", stdout);
        put_lines(c->more, "");
        fputs(".fi\n", stdout);
    }
    if (c->command)
        put_options(c->command);
    put_end(c);
}

void print_manual(const SubCommand *c)
{
    SubCommand own;
    if (c) {
        print_page(c);
        return;
    }
    put_title(NULL);
    fputs(".SH NAME\ntilec \\- compile, run and explain tile kernels\n.SH SYNOPSIS\n.nf\n",
          stdout);
    for (int i = 0; subcommand_at(i, &own); i++)
        put_lines(own.usage, "tilec ");
    fputs(".fi\n", stdout);
    put_commands();
    put_options(CMD_COMPILE);
    put_environment();
    put_end(NULL);
}
