/* tilec.c: the main program of tilec: which sub-command it is. */
#include "codegen/leaf/leaves.h"
#include "ir/support/guard.h"
#include "ir/support/near.h"
#include "tools/declared.h"
#include "tools/tilec_options.h"
#include <string.h>
#include <unistd.h>

static SubCommand subcommand_of(Command command)
{
    SubCommand c = {0};
    for (int i = 0; subcommand_at(i, &c) && c.command != (int)command;)
        i++;
    return c;
}

/* Is all that was asked for to show something? */
static bool shown(const Options *o, Command command)
{
    SubCommand c = subcommand_of(command);
    if (o->help)
        print_help_of(stdout, &c);
    else if (o->version)
        puts(tilec_version());
    else if (o->manual)
        print_manual(&c);
    return o->help || o->version || o->manual;
}

static int with_options(Command command, int argc, char **argv)
{
    Options o;
    int status = EXIT_USAGE;
    if (options_parse(&o, command, argc, argv)) {
        status = EXIT_FINE;
        if (!shown(&o, command))
            status = command == CMD_RUN       ? command_run(&o)
                     : command == CMD_EXPLAIN ? command_explain(&o)
                     : command == CMD_TUNE    ? command_tune(&o)
                     : command == CMD_BENCH   ? command_bench(&o)
                     : command == CMD_FMT     ? command_fmt(&o)
                     : command == CMD_CHECK   ? command_check(&o)
                                              : command_compile(&o);
        if (status == EXIT_USAGE)
            say_constants(&o);
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

static int check(int argc, char **argv)
{
    return with_options(CMD_CHECK, argc, argv);
}

static int lsp(int argc, char **argv)
{
    Options o;
    int status = EXIT_USAGE;
    if (options_parse(&o, CMD_LSP, argc, argv))
        status = shown(&o, CMD_LSP) ? EXIT_FINE : command_lsp(&o);
    options_free(&o);
    return status;
}

/* Of the target's leaves (runtime/contract/leaf.def), those with a recorded run on hardware. */
static int proven(const TlTarget *t, int *out_all)
{
    int count = 0;
    *out_all = 0;
    for (int i = 0; i < TL_LEAF_COUNT; i++)
        if (tl_leaf_is_of(t, (tl_leaf)i)) {
            ++*out_all;
            count += tl_target_has_proof(t, (tl_leaf)i);
        }
    return count;
}

static void print_proven(void)
{
    bool any = false;
    for (const char *const *name = tilec_targets(); *name; name++) {
        const TlTarget *t = tl_target_find(*name, NULL);
        int all, count = tl_target_is_gpu(t) ? proven(t, &all) : 0;
        if (!count)
            continue;
        if (!any)
            puts("\nGPUs on which operations of generated code have run, by the records:");
        any = true;
        printf("%s: %d of %d operations\n", t->name, count, all);
    }
    if (!any)
        puts("\nNo run on a GPU is in the project's records yet: code for GPUs is checked on "
             "emulators.");
}

/* Targets that this compiler makes no machine code for. */
static void print_lacking(void)
{
    int llvm = 0;
    for (const char *const *name = tilec_targets(); *name; name++) {
        const TlTarget *t = tl_target_find(*name, NULL);
        int lacks = tl_target_lacks_llvm(t);
        if (lacks && !llvm)
            printf("\nBy the emulator only, as this is %s:", tilec_version());
        if (lacks)
            printf("%s %s (LLVM %d)", llvm ? "," : "", t->name, lacks);
        llvm = lacks ? lacks : llvm;
    }
    if (llvm)
        putchar('\n');
}

static int targets(int argc, char **argv)
{
    if (argc > 0)
        return usage_error("targets takes no '%s'", argv[0]);
    for (const char *const *t = tilec_targets(); *t; t++)
        puts(*t);
    print_lacking();
    print_proven();
    return EXIT_FINE;
}

#define ARGUMENTS                                                                                  \
    "PARAM=VALUE is one of\n"                                                                      \
    "  @x.npy                     an array from a file of NumPy\n"                                 \
    "  zeros[128,1000]            an array; also full(3.5)[...], iota[...], uniform(SEED)[...],\n" \
    "                             normal(SEED)[...], nan[...], and uninit[...], which nothing\n"   \
    "                             has written: with --check --device ref, reading it fails\n"      \
    "  3, 0.5, true               a scalar\n"                                                      \
    "  &OTHER                     the array of parameter OTHER\n"                                  \
    "  addresses(A,B+16)          a table of pointers: the addresses of arrays A and B, plus\n"    \
    "                             bytes; an array that only tables name needs no parameter:\n"     \
    "                             A=@x.npy\n"

/* clang-format off */
static const SubCommand commands[] = {
    {"compile", "compile a file", compile, CMD_COMPILE,
     "[compile] FILE.tile [-o OUT] [OPTION]...\n",
     "Without -o and --emit, the program is checked and compiled, and nothing is written.\n"
     "In place of FILE.tile there may be a module of the library, std.kernels.gemm.\n\n"
     "  tilec gemm.tile --target sm_90a --emit ptx\n"
     "  tilec gemm.tile --target cpu,sm_90a,gfx942 -o gemm.o --header gemm.h\n"},
    {"check", "say what is wrong with files, write nothing", check, CMD_CHECK,
     "check FILE.tile... [OPTION]...\n",
     "  tilec check *.tile --target sm_90a -Werror\n"},
    {"run", "run a kernel on generated arrays or files", run, CMD_RUN,
     "run FILE.tile [OPTION]... PARAM=VALUE...\n",
     ARGUMENTS
     "\n  tilec run softmax.tile --const B=1024 x='normal(1)[128,1000]' y='nan[128,1000]' --print y\n"},
    {"explain", "report what kernels became: code, costs, limits", explain, CMD_EXPLAIN,
     "explain FILE.tile [--target T,...] [OPTION]... [PARAM=VALUE...]\n",
     ARGUMENTS "\n  tilec explain gemm.tile --kernel gemm --target sm_90a --html gemm.html\n"},
    {"tune", "find the best configuration of a kernel", tune, CMD_TUNE,
     "tune FILE.tile [--device D | --target T,... --model] [OPTION]... PARAM=VALUE...\n",
     ARGUMENTS
     "\n  tilec tune gemm.tile --sizes M=128,1024 A='normal(1)[M,512]' B='normal(2)[512,512]' "
     "C='nan[M,512]'\n"},
    {"bench", "time a kernel over sizes, beside what memory and products allow", bench, CMD_BENCH,
     "bench FILE.tile [--sizes NAME=N,...] [--flops FORMULA] [OPTION]... PARAM=VALUE...\n",
     ARGUMENTS
     "\n  tilec bench gemm.tile --sizes N=256,1024 --flops '2*N*N*N' A='normal(1)[N,N]' "
     "B='normal(2)[N,N]' C='nan[N,N]'\n"},
    {"fmt", "format files", fmt, CMD_FMT,
     "fmt [--check] [--diff] [-r] FILE.tile...\n", "  tilec fmt -r kernels\n"},
    {"new", "make a project that builds: a kernel, a host, a test", command_new, 0,
     "new NAME\n",
     "Makes the folder NAME with NAME.tile, a kernel; main.c, a program in C that runs it and checks\n"
     "what it gives; CMakeLists.txt and Makefile, either of which builds and tests it.\n\n"
     "  tilec new saxpy && make -C saxpy test\n"},
    {"lsp", "serve an editor", lsp, CMD_LSP,
     "lsp [-I DIR]... [--target T]\n", "The editor starts it (Language Server Protocol).\n"},
    {"completion", "completion for a shell: bash, zsh, fish", command_completion, 0,
     "completion bash|zsh|fish\n", "Prints a script.\n\n  eval \"$(tilec completion bash)\"\n"},
    {"error", "explain a diagnostic", command_error, 0,
     "error ID...\nerror --markdown\n",
     "ID is what stands in brackets: E0303 of error[E0303] (or e0303, 303), unused of\n"
     "warning[unused].\n"
     "--markdown explains all of them, as a page.\n"},
    {"targets", "list the targets", targets, 0, "targets\n", ""},
    {"cache", "the cache of compiled kernels: ls, verify, prune, clear, dir", command_cache, 0,
     "cache [ls|verify|prune [--size BYTES]|clear|dir]\n",
     "  ls                         what is in it (also without a word)\n"
     "  verify                     reads all of it, and removes what is damaged\n"
     "  prune [--size BYTES]       removes the oldest beyond TILE_CACHE_SIZE, or BYTES (500M)\n"
     "  clear                      removes all of it\n"
     "  dir                        where it is\n"},
    {"help", "how a sub-command is used", command_help, 0, "help [NAME]\n", ""},
};
/* clang-format on */
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

static int unknown_subcommand(const char *word)
{
    TlNear near = tl_near(word);
    for (int i = 0; i < NCOMMANDS; i++)
        tl_near_try(&near, commands[i].name);
    if (near.best)
        return usage_error("unknown sub-command '%s'; did you mean '%s'?", word, near.best);
    usage_error("unknown sub-command '%s'; expected one of:", word);
    for (int i = 0; i < NCOMMANDS; i++)
        fprintf(stderr, " %s", commands[i].name);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

static bool asks_for_manual(const char *word)
{
    return strcmp(word, "--man") == 0;
}

/* Those without options of the table know no --help and no --man of their own. */
static int call(const SubCommand *c, int argc, char **argv)
{
    bool own = !c->command && argc == 1;
    if (own && asks_for_help(argv[0]))
        print_help_of(stdout, c);
    else if (own && asks_for_manual(argv[0]))
        print_manual(c);
    else
        return c->run(argc, argv);
    return EXIT_FINE;
}

static int command(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (argc == 2 && asks_for_help(argv[1])) {
        print_help(stdout);
        return EXIT_FINE;
    }
    if (argc == 2 && asks_for_manual(argv[1])) {
        print_manual(NULL);
        return EXIT_FINE;
    }
    for (int i = 0; i < NCOMMANDS; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return call(&commands[i], argc - 2, argv + 2);
    if (strcmp(argv[1], "serve") == 0 && argc == 2)
        return command_serve();
    return is_file(argv[1]) ? compile(argc - 1, argv + 1) : unknown_subcommand(argv[1]);
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
