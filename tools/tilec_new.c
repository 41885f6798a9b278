/* tilec_new.c: tilec new: a folder with a project that builds, from the files of tools/new, which
 * the build embeds. @NAME@ in them is the project's name. */
#include "ir/support/ascii.h"
#include "tools/tilec_options.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const unsigned char new_kernel[], new_main[], new_cmake[], new_make[]; /* embed_file.cmake */

enum { PATH = 4096, MOST = 64 };

static const struct File {
    const char *name; /* "": NAME.tile */
    const unsigned char *text;
} files[] = {
    {"", new_kernel}, {"main.c", new_main}, {"CMakeLists.txt", new_cmake}, {"Makefile", new_make},
};
enum { NFILES = sizeof files / sizeof *files };

/* What stands behind the last slash. */
static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A name of C's, which is a kernel's, a program's and a function's. */
static bool is_name(const char *name)
{
    size_t n = 0;
    if (!tl_is_alpha(name[0]))
        return false;
    while (tl_is_alnum(name[n]) || name[n] == '_')
        n++;
    return !name[n] && n <= MOST;
}

static void put(FILE *f, const char *text, const char *name)
{
    for (const char *at; (at = strstr(text, "@NAME@")); text = at + strlen("@NAME@"))
        fprintf(f, "%.*s%s", (int)(at - text), text, name);
    fputs(text, f);
}

static bool write_file(const char *path, const struct File *file, const char *name)
{
    FILE *f = fopen(path, "wxe");
    if (!f)
        return false;
    put(f, (const char *)file->text, name);
    bool fine = !ferror(f);
    return (fclose(f) == 0) && fine;
}

static void path_of(char *path, const char *folder, const struct File *file, const char *name)
{
    snprintf(path, PATH, "%s/%s%s", folder, *file->name ? file->name : name,
             *file->name ? "" : ".tile");
}

/* The folder is new: nothing of it is left after a failure. */
static int give_up(const char *folder, const char *name, int error)
{
    char path[PATH];
    for (int i = 0; i < NFILES; i++) {
        path_of(path, folder, &files[i], name);
        unlink(path);
    }
    rmdir(folder);
    return usage_error("cannot write to '%s': %s", folder, strerror(error));
}

int command_new(int argc, char **argv)
{
    if (argc != 1 || argv[0][0] == '-')
        return usage_error("new takes the name of a project: tilec new saxpy");
    const char *folder = argv[0], *name = base_of(folder);
    char path[PATH];
    if (!is_name(name))
        return usage_error("'%s' names no kernel: a name has letters, digits and _, at most %d",
                           name, MOST);
    if (strlen(folder) > PATH - 2 * MOST)
        return usage_error("cannot write to '%s': %s", folder, strerror(ENAMETOOLONG));
    if (mkdir(folder, 0777) != 0)
        return usage_error("cannot make the folder '%s': %s", folder, strerror(errno));
    for (int i = 0; i < NFILES; i++) {
        path_of(path, folder, &files[i], name);
        if (!write_file(path, &files[i], name))
            return give_up(folder, name, errno);
    }
    printf("%s: %s.tile, main.c, CMakeLists.txt, Makefile\n"
           "build and test it: make -C %s test, or cmake -S %s -B %s/build && cmake --build "
           "%s/build && ctest --test-dir %s/build\n",
           folder, name, folder, folder, folder, folder, folder);
    return EXIT_FINE;
}
