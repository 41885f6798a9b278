/* all.c: every program that a machine with a GPU wants, in one file. Called by the name of one of
 * them (a link), it is that one. */
#include <stdio.h>
#include <string.h>

#define PROGRAM(name) int main_##name(int argc, char **argv);
#include "programs.def"
#undef PROGRAM

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } programs[] = {
#define PROGRAM(name) {#name, main_##name},
#include "programs.def"
    };
    const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].name, name) == 0)
            return programs[i].run(argc, argv);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        printf("%s\n", programs[i].name); /* called by its own name */
    return argc > 1;
}
