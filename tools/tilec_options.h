/* tilec_options.h: tilec's command line, as a table (tilec_options.c), and what the sub-commands
 * share. */
#ifndef TL_TILEC_OPTIONS_H
#define TL_TILEC_OPTIONS_H
#include <stdbool.h>
#include <stdio.h>
#include "codegen/include/tilec.h"
#include "tools/output.h"

enum { EXIT_FINE = 0, EXIT_PROGRAM = 1, EXIT_USAGE = 2, EXIT_RUN = 3, EXIT_INTERNAL = 70 };

typedef enum Command {
    CMD_COMPILE = 1,
    CMD_RUN = 2,
    CMD_EXPLAIN = 4,
    CMD_TUNE = 8,
    CMD_BENCH = 16,
    CMD_FMT = 32,
    CMD_LSP = 64,
    CMD_CHECK = 128
} Command;

/* Texts of the command line, in order. */
typedef struct Texts {
    const char **data;
    size_t len;
} Texts;

typedef struct Options {
    tilec_options compile;  /* what goes to the compiler as it is */
    const char *input, *output, *header, *emit, *target, *depfile, *color, *time_trace, *name;
    bool depends, help, version, stats;
    Texts consts;           /* NAME=VAL */
    Texts includes;
    Texts warnings;         /* what follows -W */
    /* as written */
    const char *device, *grid, *repeat, *schedules, *perturb, *warps, *stages, *bisect, *stress;
    const char *tune, *budget, *tolerance, *flops, *bytes, *seconds, *svg;
    const char *html; /* explain: the page */
    bool json, again, model, farm;
    Texts items;            /* run, explain: PARAM=VALUE */
    Texts prints, saves;    /* run: PARAM; PARAM=F.npy */
    Texts sizes;            /* tune: NAME=N[,N...] */
    Texts files;            /* fmt, check: what is formatted, checked */
    bool only_check, diff, recursive; /* fmt */
    bool standard;                    /* lsp: nothing else is known */
    bool manual;
} Options;

/* Reads argv (without the program's and the sub-command's names). False: wrong usage, already said
 * on stderr. */
bool options_parse(Options *o, Command command, int argc, char **argv);
void options_free(Options *o);
/* The options of one sub-command, a line each. */
void print_options(FILE *out, Command command);

/* The tables, row by row, for completion and the manual; false past the last row. */
typedef struct OptionInfo {
    const char *name, *value, *meaning; /* value: NULL: it takes none */
    int commands;                       /* a set of Command */
} OptionInfo;
bool option_at(int i, OptionInfo *out);
typedef struct SubCommand {
    const char *name, *meaning;
    int (*run)(int argc, char **argv);
    int command;       /* a Command: which options it takes; 0: none of the table */
    const char *usage; /* lines, each what follows "tilec " */
    const char *more;  /* what its help says behind its options; "" */
} SubCommand;
bool subcommand_at(int i, SubCommand *out); /* tilec.c */
/* ---- tilec_help.c ---- */
/* Is the word -h or --help? */
bool asks_for_help(const char *word);
void print_help(FILE *out); /* of all sub-commands, and compile's options */
void print_help_of(FILE *out, const SubCommand *c);
int command_help(int argc, char **argv);

/* "tilec: text" on stderr; returns EXIT_USAGE. */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for "out of memory"; returns EXIT_INTERNAL. */
int out_of_memory(void);
/* EXIT_INTERNAL in the place of another failure where that is why. */
int status_of_run(int status);
/* Writes what --time-trace=FILE, which was given, asks for. */
int write_trace(const Options *o, const tilec_output *output, Outputs *outputs);
/* Says what there is to say about a compilation's end and gives the exit status. */
int report_compile(tilec_status status, const tilec_output *output);
/* A whole number in [low, high]. */
bool parse_int(const char *text, long long low, long long high, long long *out);

/* A file that an option names for writing. */
typedef struct OutputName {
    const char *option, *path;
} OutputName;
/* Wrong usage, which is said, when one of them is a file that is read (`depends`: as
 * tilec_output_depends has them, or NULL) or another of them. */
int check_output_names(const Options *o, const char *depends, const OutputName *names, size_t n);

int command_compile(const Options *o); /* tilec_compile.c */
int command_check(const Options *o);   /* tilec_compile.c */
int command_new(int argc, char **argv); /* tilec_new.c */
/* Each target of the list is known, and the list is not empty. */
int check_targets(const char *list);
int command_run(Options *o); /* tilec_run.c */
/* An array that was an argument. */
typedef struct RunShape {
    char name[64];
    int rank;
    int64_t extent[8];
} RunShape;
typedef struct RunCounted {
    char *text; /* what the device counted; NULL: nothing */
    RunShape *shapes;
    size_t nshapes;
    int64_t programs;
    char symbol[128]; /* of the form that runs, as the compiler's report has it; "": nothing runs */
    double bytes;     /* of all arrays */
    int processors;   /* that the emulator may use */
} RunCounted;
/* Asked when all but `text` is known: is the kernel to run? */
typedef bool RunWanted(void *user, const RunCounted *launch);
/* Runs the kernel on the emulator `device`. Free what it gives, also after an error, with
 * run_counted_free. */
int run_counted(const Options *o, const char *device, RunWanted *wanted, void *user,
                RunCounted *out);
void run_counted_free(RunCounted *counted);
int command_explain(const Options *o); /* tilec_explain.c */
/* What tuning results say of the target, if there are any (explain_tuning.c). *shown: whether
 * something stands above, and then whether anything was shown at all. */
int explain_tuning(const Options *o, const char *target, bool *shown);
int command_tune(const Options *o);    /* tilec_tune.c */
int command_fmt(const Options *o); /* tilec_fmt.c */
int command_lsp(const Options *o); /* lsp/lsp_server.c */
int command_completion(int argc, char **argv); /* tilec_completion.c */
int command_words(int argc, char **argv);      /* tilec_words.c: completion words */
void print_manual(const SubCommand *c);        /* tilec_man.c; NULL: of tilec itself */
int command_error(int argc, char **argv); /* tilec_error.c */
int command_bench(const Options *o); /* tilec_bench.c */
int command_serve(void); /* tilec_serve.c */
int command_cache(int argc, char **argv); /* tilec_cache.c */
#endif
