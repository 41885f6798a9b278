/* Finds the tilec that belongs to this library, never by PATH or the current folder. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/process_server.h"

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

/* FOLDER/rest, if that is a program. */
static bool try_in(const char *folder, const char *rest, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/%s", folder, rest);
    return n > 0 && (size_t)n < size && *folder == '/' && is_program(out);
}

/* Beside a folder of libraries: a wheel has it there, a prefix in its bin. */
static bool try_beside(const char *folder, char *out, size_t size)
{
    return try_in(folder, "tilec", out, size) || try_in(folder, "../bin/tilec", out, size) ||
           try_in(folder, "../../bin/tilec", out, size);
}

/* The shared library, or the program, that this code is in. */
static bool find_own_file(char path[PATH_MAX], bool *out_is_program)
{
    static const char here;
    char program[PATH_MAX];
    Dl_info info;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = 0;
    *out_is_program = !dladdr(&here, &info) || !info.dli_fname || !realpath(info.dli_fname, path) ||
                      !strcmp(path, program);
    if (*out_is_program)
        memcpy(path, program, sizeof program);
    return *path == '/';
}

static bool try_own_file(char *out, size_t size)
{
    char path[PATH_MAX];
    bool is_main;
    if (!find_own_file(path, &is_main))
        return false;
    char *slash = strrchr(path, '/');
    if (is_main && strcmp(slash + 1, "tilec") != 0)
        return false; /* a program of somebody's, whose folder says nothing */
    *slash = 0;
    return is_main ? try_in(path, "tilec", out, size) : try_beside(path, out, size);
}

/* Where the dynamic linker looks for libraries of this program: one of these has the core. */
static bool try_run_path(char *out, size_t size)
{
#ifdef TL_CORE_FILE
    Dl_serinfo head, *all = NULL;
    void *self = dlopen(NULL, RTLD_NOW);
    bool found = false;
    if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &head) == 0 && (all = malloc(head.dls_size))) {
        memcpy(all, &head, sizeof head);
        for (unsigned i = 0; dlinfo(self, RTLD_DI_SERINFO, all) == 0 && !found && i < all->dls_cnt;
             i++) {
            char core[PATH_MAX];
            const char *folder = all->dls_serpath[i].dls_name;
            snprintf(core, sizeof core, "%s/%s", folder, TL_CORE_FILE);
            found = access(core, R_OK) == 0 && try_beside(folder, out, size);
        }
    }
    free(all);
    if (self)
        dlclose(self);
    return found;
#else
    (void)out, (void)size;
    return false;
#endif
}

bool tl_process_find(char *out, size_t size)
{
    return try_own_file(out, size) || try_run_path(out, size) ||
           try_in(TL_TILEC_FOLDER, "tilec", out, size);
}
