/* tilec_completion.c: tilec completion: the scripts of shells (tools/completion), and the words
 * that they ask for. */
#include "tools/tilec_options.h"
#include <string.h>

/* The files, ended by a NUL (embed_file.cmake). */
extern const unsigned char completion_bash[], completion_zsh[], completion_fish[];

int command_completion(int argc, char **argv)
{
    static const struct {
        const char *shell;
        const unsigned char *script;
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    if (argc > 0 && strcmp(argv[0], "words") == 0)
        return command_words(argc - 1, argv + 1);
    for (size_t i = 0; argc == 1 && i < sizeof shells / sizeof *shells; i++)
        if (strcmp(argv[0], shells[i].shell) == 0) {
            fputs((const char *)shells[i].script, stdout);
            return EXIT_FINE;
        }
    return usage_error("completion takes the name of a shell: bash, zsh or fish");
}
