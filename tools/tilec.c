/* tilec.c: the main program of tilec: which sub-command it is. */
#include "codegen/leaf/leaves.h"
#include "ir/support/guard.h"
#include "tools/tilec_options.h"
#include <string.h>
#include <unistd.h>

/* Is all that was asked for to show something? */
static bool shown(const Options *o)
{
    if (o->help)
        options_help(stdout);
    else if (o->version)
        puts(tilec_version());
    else if (o->manual)
        print_manual();
    return o->help || o->version || o->manual;
}

static int with_options(Command command, int argc, char **argv)
{
    Options o;
    int status = EXIT_USAGE;
    if (options_parse(&o, command, argc, argv)) {
        status = EXIT_FINE;
        if (!shown(&o))
            status = command == CMD_RUN       ? command_run(&o)
                     : command == CMD_EXPLAIN ? command_explain(&o)
                     : command == CMD_TUNE    ? command_tune(&o)
                     : command == CMD_BENCH   ? command_bench(&o)
                     : command == CMD_FMT     ? command_fmt(&o)
                                              : command_compile(&o);
    }
    options_free(&o);
    return status;
}

static int compile(int argc, char **argv)
{
    return with_options(CMD_COMPILE, argc, argv);
}

static int run(int argc, char **argv)
{
    return with_options(CMD_RUN, argc, argv);
}

static int explain(int argc, char **argv)
{
    return with_options(CMD_EXPLAIN, argc, argv);
}

static int tune(int argc, char **argv)
{
    return with_options(CMD_TUNE, argc, argv);
}

static int bench(int argc, char **argv)
{
    return with_options(CMD_BENCH, argc, argv);
}

static int fmt(int argc, char **argv)
{
    return with_options(CMD_FMT, argc, argv);
}

static int lsp(int argc, char **argv)
{
    Options o;
    int status = EXIT_USAGE;
    if (options_parse(&o, CMD_LSP, argc, argv))
        status = shown(&o) ? EXIT_FINE : command_lsp(&o);
    options_free(&o);
    return status;
}

static void list_unproven(const TlTarget *t)
{
    int all = 0, missing = 0;
    for (int i = 0; i < TL_LEAF_COUNT; i++)
        if (tl_leaf_is_of(t, (tl_leaf)i)) {
            all++;
            missing += !tl_target_has_proof(t, (tl_leaf)i);
        }
    printf("%s: %d of %d%s", t->name, missing, all, missing && missing < all ? ":" : "");
    for (int i = 0; i < TL_LEAF_COUNT && missing < all; i++)
        if (tl_leaf_is_of(t, (tl_leaf)i) && !tl_target_has_proof(t, (tl_leaf)i))
            printf(" %s", tl_leaf_name((tl_leaf)i));
    putchar('\n');
}

static int targets(int argc, char **argv)
{
    if (argc > 0)
        return usage_error("targets takes no '%s'", argv[0]);
    for (const char *const *t = tilec_targets(); *t; t++)
        puts(*t);
    puts("\nleaves without a recorded run on hardware:");
    for (const char *const *t = tilec_targets(); *t; t++)
        if (tl_target_is_gpu(tl_target_find(*t, NULL)))
            list_unproven(tl_target_find(*t, NULL));
    return EXIT_FINE;
}

static const SubCommand commands[] = {
    {"compile", "compile a file", compile, CMD_COMPILE},
    {"run", "run a kernel on generated arrays or files", run, CMD_RUN},
    {"explain", "report what kernels became on GPUs", explain, CMD_EXPLAIN},
    {"tune", "find the best configuration of a kernel", tune, CMD_TUNE},
    {"bench", "time a kernel over sizes, beside what memory and products allow", bench, CMD_BENCH},
    {"fmt", "format files", fmt, CMD_FMT},
    {"lsp", "serve an editor", lsp, CMD_LSP},
    {"completion", "completion for a shell: bash, zsh, fish", command_completion, 0},
    {"error", "explain a diagnostic", command_error, 0},
    {"targets", "list the targets", targets, 0},
    {"cache", "the cache of compiled kernels: ls, verify, prune, clear, dir", command_cache, 0},
};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

bool subcommand_at(int i, SubCommand *out)
{
    if (i < 0 || i >= NCOMMANDS)
        return false;
    *out = commands[i];
    return true;
}

/* The first word is a file when it looks like one or is one. */
static bool is_file(const char *word)
{
    return word[0] == '-' || strpbrk(word, "./") || access(word, F_OK) == 0;
}

static int command(int argc, char **argv)
{
    if (argc < 2) {
        options_help(stderr);
        return EXIT_USAGE;
    }
    for (int i = 0; i < NCOMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argc - 2, argv + 2);
    if (strcmp(argv[1], "serve") == 0 && argc == 2)
        return command_serve();
    if (is_file(argv[1]))
        return compile(argc - 1, argv + 1);
    usage_error("unknown sub-command '%s'; expected one of:", argv[1]);
    for (int i = 0; i < NCOMMANDS; i++)
        fprintf(stderr, " %s", commands[i].name);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

/* What runs out of memory where no other guard is. */
static int guarded(int argc, char **argv)
{
    TlGuard g;
    if (!TL_GUARD(&g)) {
        fprintf(stderr, "tilec: %s%s\n", tl_fault_is_memory(g.fault) ? "" : "internal error: ",
                g.text);
        return EXIT_INTERNAL;
    }
    int status = command(argc, argv);
    tl_guard_pop(&g);
    return status;
}

int main(int argc, char **argv)
{
    output_begin();
    return output_end("tilec", status_of_run(guarded(argc, argv)));
}
