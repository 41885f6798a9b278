/* The core as a shared object of its own, loaded when something is compiled for the first time: it
 * holds LLVM, which takes longer to load than most programs take to find their kernels in the
 * cache. Programs have its folder in their run path (Tile::compiler, tilec.pc); TILE_COMPILER
 * names another one if an installation has moved. Where the core has few code generators
 * (target/llvm_few.c), one with all may lie beside it, as TL_CORE_ALL. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "codegen/cache/key.h"
#include "codegen/core.h"

static pthread_once_t found = PTHREAD_ONCE_INIT, once = PTHREAD_ONCE_INIT;
static const TlCore *core;
static tilec_status status = TILEC_TOOL; /* where there is none */
static char problem[TL_CORE_WHY], folder[4096]; /* folder: "DIR/", or as the linker finds it */

/* The library and what LLVM makes when it is loaded. Where there is less, LLVM's global objects
 * would find no memory, and end the process. */
enum { NEEDED_MIB = 96 };

static bool has_room(void)
{
    size_t size = (size_t)NEEDED_MIB << 20;
    void *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return room != MAP_FAILED && munmap(room, size) == 0;
}

static void find(void)
{
    const char *said = secure_getenv("TILE_COMPILER");
    if (!said || !*said)
        return;
    int n = snprintf(folder, sizeof folder, "%s/", said);
    if (*said != '/' || n < 0 || (size_t)n >= sizeof folder)
        snprintf(problem, sizeof problem,
                 "the compiler cannot be loaded: TILE_COMPILER is '%.200s', but must be the "
                 "absolute path of a folder", said);
}

void tl_core_find(void)
{
    pthread_once(&found, find);
}

static void *open_core(const char *file)
{
    char path[sizeof folder + sizeof TL_CORE_ALL];
    snprintf(path, sizeof path, "%s%s", folder, file);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void load(void)
{
    tl_core_find();
    if (*problem)
        return;
    if (!has_room()) {
        status = TILEC_NO_MEMORY;
        snprintf(problem, sizeof problem,
                 "out of memory: the compiler needs %d MiB of address space to be loaded "
                 "(ulimit -v)",
                 NEEDED_MIB);
        return;
    }
    void *library = open_core(TL_CORE_ALL);
    if (!library)
        library = open_core(TL_CORE_FILE);
    const TlCore *loaded = library ? dlsym(library, TL_CORE_SYMBOL) : NULL;
    if (!loaded)
        snprintf(problem, sizeof problem,
                 "the compiler cannot be loaded: %s (the environment variable TILE_COMPILER may "
                 "name the folder with " TL_CORE_FILE ")", dlerror());
    else if (strcmp(loaded->build_id, tl_build_id) != 0)
        snprintf(problem, sizeof problem,
                 "the compiler cannot be used: the program was linked with another build of "
                 "libtilec.a than " TL_CORE_FILE " is from");
    else
        core = loaded;
    /* it is never unloaded: LLVM's global objects do not expect that */
}

const TlCore *tl_core(char *why, size_t size, tilec_status *out_status)
{
    pthread_once(&once, load);
    *out_status = status;
    if (!core)
        snprintf(why, size, "%s", problem);
    return core;
}
