/* tilec_completion.c: tilec completion and tilec --man: the tables of options and sub-commands as
 * scripts for shells and as a manual page. */
#include "codegen/compile_library.h"
#include "codegen/options.h"
#include "tools/tilec_options.h"
#include <stdlib.h>
#include <string.h>

/* ---- words of values ---- */

/* The words that an option's value can be; NULL: any text. */
static const char *const *words_of(const OptionInfo *o)
{
    static const char *const whens[] = {"auto", "always", "never", NULL};
    static const char *const stages[] = {
#define STAGE(ID, name, of, emit) name,
#include "codegen/stage.def"
        NULL};
    if (strcmp(o->name, "--target") == 0)
        return tilec_targets();
    if (strcmp(o->name, "--color") == 0)
        return whens;
    if (strcmp(o->name, "--emit") == 0)
        return stages;
    const TlOption *known = tl_option_find(o->name);
    return known ? known->words : NULL;
}

static bool takes_file(const OptionInfo *o)
{
    return o->value && (strstr(o->value, "FILE") || strcmp(o->value, "F") == 0);
}

static bool takes_folder(const OptionInfo *o)
{
    return o->value && strcmp(o->value, "DIR") == 0;
}

static void put_words(const char *const *words, const char *between)
{
    for (int i = 0; words[i]; i++)
        printf("%s%s", i ? between : "", words[i]);
}

/* Text between single quotes of a shell. */
static void put_quoted(const char *text)
{
    for (; *text; text++)
        printf(*text == '\'' ? "'\\''" : "%c", *text);
}

/* The modules of the library that can be compiled. */
static void put_kernel_modules(void)
{
    const char *name;
    for (size_t i = 0; (name = tilec_library_module(i)); i++)
        if (strncmp(name, TL_KERNELS, sizeof TL_KERNELS - 1) == 0)
            printf("%s ", name);
}

/* ---- bash ---- */

static void bash_options(int command)
{
    OptionInfo o;
    bool first = true;
    for (int i = 0; option_at(i, &o); i++)
        if (o.commands & command) {
            printf("%s%s", first ? "" : " ", o.name);
            first = false;
        }
}

static void bash_values(void)
{
    OptionInfo o;
    for (int i = 0; option_at(i, &o); i++) {
        const char *const *words = words_of(&o);
        if (!words && !takes_file(&o) && !takes_folder(&o))
            continue;
        printf("        %s) COMPREPLY=($(compgen -%s", o.name,
               words              ? "W '"
               : takes_folder(&o) ? "d"
                                  : "f");
        if (words) {
            put_words(words, " ");
            fputs("'", stdout);
        }
        fputs(" -- \"$word\")); return ;;\n", stdout);
    }
}

static void bash(void)
{
    SubCommand c;
    fputs("# Completion of tilec for bash.\n_tilec()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "    if [[ $word == = ]]; then word=; fi\n"
          "    if [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "    case $before in\n",
          stdout);
    bash_values();
    fputs("        completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\")); return ;;\n"
          "    esac\n    case ${COMP_WORDS[1]} in\n",
          stdout);
    for (int i = 0; subcommand_at(i, &c); i++) {
        printf("        %s) options='", c.name);
        bash_options(c.command);
        fputs("' ;;\n", stdout);
    }
    fputs("        *) options='", stdout);
    bash_options(CMD_COMPILE);
    fputs("' ;;\n    esac\n    if [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n        return\n    fi\n"
          "    COMPREPLY=($(compgen -f -X '!*.tile' -- \"$word\") $(compgen -d -- \"$word\")"
          " $(compgen -W '",
          stdout);
    put_kernel_modules();
    fputs("' -- \"$word\"))\n"
          "    if [[ $COMP_CWORD == 1 ]]; then\n        COMPREPLY+=($(compgen -W '",
          stdout);
    for (int i = 0; subcommand_at(i, &c); i++)
        printf("%s%s", i ? " " : "", c.name);
    fputs("' -- \"$word\"))\n    fi\n}\ncomplete -o filenames -F _tilec tilec\n", stdout);
}

/* ---- zsh ---- */

/* '--emit=[stop at a stage]:STAGE:(ast tir)' */
static void zsh_option(const OptionInfo *o)
{
    const char *const *words = words_of(o);
    bool is_long = o->name[1] == '-';
    printf("        '*%s%s[", o->name, !o->value ? "" : is_long ? "=" : "+");
    for (const char *s = o->meaning; *s; s++)
        printf(*s == '\'' ? "'\\''" : strchr("[]:", *s) ? "\\%c" : "%c", *s);
    putchar(']');
    if (o->value)
        printf(":%.*s:", (int)strcspn(o->value, "[|,=:."), o->value);
    if (words) {
        putchar('(');
        put_words(words, " ");
        putchar(')');
    } else if (takes_file(o) || takes_folder(o)) {
        fputs(takes_folder(o) ? "_files -/" : "_files", stdout);
    }
    fputs("' \\\n", stdout);
}

static void zsh(void)
{
    SubCommand c;
    OptionInfo o;
    fputs("#compdef tilec\n# Completion of tilec for zsh.\nlocal -a commands\ncommands=(\n",
          stdout);
    for (int i = 0; subcommand_at(i, &c); i++)
        printf("    '%s:%s'\n", c.name, c.meaning);
    fputs(")\nif (( CURRENT == 2 )); then\n    _describe command commands\n    _files -g '*.tile'\n"
          "    return\nfi\ncase $words[2] in\n",
          stdout);
    for (int i = 0; subcommand_at(i, &c); i++) {
        if (!c.command)
            continue;
        printf("    %s) shift words; (( CURRENT-- )); _arguments \\\n", c.name);
        for (int k = 0; option_at(k, &o); k++)
            if (o.commands & c.command)
                zsh_option(&o);
        fputs("        '*:file:_alternative \"files:file:_files\" \"modules:module:(", stdout);
        put_kernel_modules();
        fputs(")\"' ;;\n", stdout);
    }
    fputs("    completion) shift words; (( CURRENT-- )); _arguments '*:shell:(bash zsh fish)' ;;\n"
          "    *) _files ;;\nesac\n",
          stdout);
}

/* ---- fish ---- */

/* In which sub-commands fish offers an option. */
static void fish_condition(int commands)
{
    SubCommand c;
    fputs(" -n '__fish_seen_subcommand_from", stdout);
    for (int i = 0; subcommand_at(i, &c); i++)
        if (c.command & commands)
            printf(" %s", c.name);
    fputs("'", stdout);
}

static void fish(void)
{
    SubCommand c;
    OptionInfo o;
    fputs("# Completion of tilec for fish.\n", stdout);
    for (int i = 0; subcommand_at(i, &c); i++) {
        printf("complete -c tilec -n __fish_use_subcommand -a %s -d '", c.name);
        put_quoted(c.meaning);
        fputs("'\n", stdout);
    }
    fputs("complete -c tilec -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"
          "complete -c tilec -n 'not __fish_seen_subcommand_from completion error cache' -a '",
          stdout);
    put_kernel_modules();
    fputs("'\n", stdout);
    for (int i = 0; option_at(i, &o); i++) {
        const char *const *words = words_of(&o);
        bool is_long = o.name[1] == '-';
        fputs("complete -c tilec", stdout);
        fish_condition(o.commands);
        printf(" %s %s%s -d '",
               is_long     ? "-l"
               : o.name[2] ? "-o"
                           : "-s",
               o.name + (is_long ? 2 : 1), o.value ? " -r" : "");
        put_quoted(o.meaning);
        fputs("'", stdout);
        if (words) {
            fputs(" -f -a '", stdout);
            put_words(words, " ");
            fputs("'", stdout);
        }
        putchar('\n');
    }
}

int command_completion(int argc, char **argv)
{
    static const struct {
        const char *shell;
        void (*put)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; argc == 1 && i < sizeof shells / sizeof *shells; i++)
        if (strcmp(argv[0], shells[i].shell) == 0) {
            shells[i].put();
            return EXIT_FINE;
        }
    return usage_error("completion takes the name of a shell: bash, zsh or fish");
}

/* ---- the manual page ---- */

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

static void man_option(const OptionInfo *o)
{
    SubCommand c;
    bool first = true;
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
    fputs("\n(", stdout);
    for (int i = 0; subcommand_at(i, &c); i++)
        if (c.command & o->commands) {
            printf("%s%s", first ? "" : ", ", c.name);
            first = false;
        }
    fputs(")\n", stdout);
}

void print_manual(void)
{
    SubCommand c;
    OptionInfo o;
    printf(".TH TILEC 1 \"" TILE_DATE "\" \"%s\" \"User Commands\"\n.SH NAME\n"
           "tilec \\- compile, run and explain tile kernels\n.SH SYNOPSIS\n.nf\n",
           tilec_version());
    for (int i = 0; subcommand_at(i, &c); i++)
        for (const char *u = c.usage; *u; u += strcspn(u, "\n") + 1) {
            char line[256];
            snprintf(line, sizeof line, "tilec %.*s\n", (int)strcspn(u, "\n"), u);
            put_roff(line);
        }
    fputs(".fi\n.SH COMMANDS\n", stdout);
    for (int i = 0; subcommand_at(i, &c); i++)
        printf(".TP\n\\fB%s\\fR\n%s\n", c.name, c.meaning);
    fputs(".SH OPTIONS\nBehind each option stand the commands that take it.\n", stdout);
    for (int i = 0; option_at(i, &o); i++)
        man_option(&o);
    fputs(".SH EXIT STATUS\n0 success; 1 the program is wrong; 2 wrong usage; 3 a run failed; 70 "
          "internal error.\n",
          stdout);
}
