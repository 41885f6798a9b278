/* Words of Triton, NumPy, CUDA and C: looks them up in the table, and in the library's modules. */
#include "frontend/advice.h"
#include "frontend/stdlib.h"
#include <string.h>

static const struct Advice {
    const char *word, *where, *text;
} rows[] = {
#define ADVICE(word, where, text) {word, where, text},
#include "frontend/advice.def"
};

const char *tl_advice(const char *word, size_t length, char where)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].word) == length && memcmp(rows[i].word, word, length) == 0 &&
            strchr(rows[i].where, where))
            return rows[i].text;
    return NULL;
}

/* Does the module define a function of that name: has it a line that begins with a type and
 * `name(`? */
static bool defines(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *open = line + strcspn(line, "(\n");
        if (*open == '(' && (size_t)(open - line) > n && open[-(ptrdiff_t)n - 1] == ' ' &&
            memcmp(open - n, name, n) == 0 && *line != ' ' && *line != '/')
            return true;
    }
    return false;
}

/* Modules of ready kernels define functions for their own use. */
static bool is_of_kernels(const char *path)
{
    return strncmp(path, "std.kernels.", 12) == 0;
}

const char *tl_advice_of_library(TlArena *arena, const char *name)
{
    const char *of_that_name = NULL, *of_kernels = NULL;
    for (size_t i = 0; tl_stdlib_name(i); i++) {
        const char *path = tl_stdlib_name(i), *module = strrchr(path, '.') + 1;
        size_t size;
        const char *found = defines(tl_stdlib_find(path, &size), name)
                                ? tl_format(arena, "write import %s; and %s.%s(...)", path, module,
                                            name)
                                : NULL;
        if (found && !is_of_kernels(path))
            return found;
        of_kernels = found && !of_kernels ? found : of_kernels;
        if (strcmp(module, name) == 0)
            of_that_name = tl_format(arena, "write import %s; first", path);
    }
    return of_kernels ? of_kernels : of_that_name;
}
