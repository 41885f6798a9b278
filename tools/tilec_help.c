/* tilec_help.c: tilec help: how tilec and its sub-commands are used, from the tables of tilec.c and
 * tilec_options.c. */
#include "ir/support/near.h"
#include "tools/tilec_options.h"
#include <string.h>

static const char STATUS[] =
    "Exit status: 0 success; 1 the program is wrong; 2 wrong usage; 3 a run failed; 70 internal "
    "error.\n";

bool asks_for_help(const char *word)
{
    return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
}

static void put_usage(FILE *out, const char *lead, const SubCommand *c)
{
    for (const char *s = c->usage; *s; s += strcspn(s, "\n") + 1, lead = "       ")
        fprintf(out, "%stilec %.*s\n", lead, (int)strcspn(s, "\n"), s);
}

void print_help_of(FILE *out, const SubCommand *c)
{
    put_usage(out, "usage: ", c);
    fprintf(out, "\ntilec %s: %s\n", c->name, c->meaning);
    if (c->command) {
        fputc('\n', out);
        print_options(out, (Command)c->command);
    }
    if (*c->more)
        fprintf(out, "\n%s", c->more);
    fprintf(out, "\n%s", STATUS);
}

void print_help(FILE *out)
{
    SubCommand c;
    const char *lead = "usage: ";
    for (int i = 0; subcommand_at(i, &c); i++, lead = "       ")
        put_usage(out, lead, &c);
    fputs("\nSub-commands; tilec help NAME says more:\n", out);
    for (int i = 0; subcommand_at(i, &c); i++)
        fprintf(out, "  %-12s %s\n", c.name, c.meaning);
    fputs("\nOptions of compile:\n", out);
    print_options(out, CMD_COMPILE);
    fprintf(out, "\n%sDocuments are installed in share/doc/tile, beside bin: README.md, the "
                 "tutorial in\nexamples/tutorial, the language in frontend/LANGUAGE.md.\n", STATUS);
}

int command_help(int argc, char **argv)
{
    SubCommand c;
    if (argc > 1)
        return usage_error("help takes the name of one sub-command, not '%s', too", argv[1]);
    if (argc == 0) {
        print_help(stdout);
        return EXIT_FINE;
    }
    TlNear near = tl_near(argv[0]);
    for (int i = 0; subcommand_at(i, &c); i++) {
        if (strcmp(c.name, argv[0]) == 0) {
            print_help_of(stdout, &c);
            return EXIT_FINE;
        }
        tl_near_try(&near, c.name);
    }
    return usage_error(near.best ? "there is no sub-command '%s'; did you mean '%s'?"
                                 : "there is no sub-command '%s'; tilec help lists them",
                       argv[0], near.best);
}
