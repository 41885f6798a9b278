/* The core as a shared object of its own, loaded when something is compiled for the first time: it
 * holds LLVM, which takes longer to load than most programs take to find their kernels in the
 * cache. Programs get the folder of it in their run path (Tile::compiler, tilec.pc). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "codegen/cache/key.h"
#include "codegen/core.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const TlCore *core;
static char problem[TL_CORE_WHY];

static void load(void)
{
    void *library = dlopen(TL_CORE_FILE, RTLD_NOW | RTLD_LOCAL);
    const TlCore *loaded = library ? dlsym(library, TL_CORE_SYMBOL) : NULL;
    if (!loaded)
        snprintf(problem, sizeof problem, "the compiler cannot be loaded: %s", dlerror());
    else if (strcmp(loaded->build_id, tl_build_id) != 0)
        snprintf(problem, sizeof problem,
                 "the compiler cannot be used: the program was linked with another build of "
                 "libtilec.a than " TL_CORE_FILE " is from");
    else
        core = loaded;
    /* it is never unloaded: LLVM's global objects do not expect that */
}

const TlCore *tl_core(char *why, size_t size)
{
    pthread_once(&once, load);
    if (!core)
        snprintf(why, size, "%s", problem);
    return core;
}
