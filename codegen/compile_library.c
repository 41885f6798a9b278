/* The library as a source: modules that stand where a path may. */
#include "codegen/cache/trust.h"
#include "codegen/compile.h"
#include "codegen/compile_library.h"
#include "frontend/stdlib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tilec_library_text(const char *module, size_t *out_size)
{
    return module && out_size ? tl_stdlib_find(module, out_size) : NULL;
}

const char *tilec_library_module(size_t i)
{
    return tl_stdlib_name(i);
}

int tilec_trusts_folder(const char *path, char *why, size_t size)
{
    char real[TL_TRUST_PATH], *absolute = path ? realpath(path, NULL) : NULL;
    bool ok = absolute && tl_trust_folder(absolute, real, why, size) == TL_TRUST_OWN;
    if (!absolute)
        snprintf(why, size, "the folder cannot be found");
    free(absolute);
    return ok;
}

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), k = strlen(ending);
    return n >= k && !strcmp(name + n - k, ending);
}

bool tl_library_is_name(const char *path)
{
    return !strncmp(path, "std.", 4) && !strchr(path, '/') && !ends_in(path, ".tile") &&
           !ends_in(path, ".tir");
}

const char *tl_library_own_name(const char *module)
{
    return strrchr(module, '.') + 1;
}

const char *tl_library_kernels(TlArena *arena)
{
    TlSbuf s;
    const char *name;
    tl_sbuf_init(&s, arena);
    for (size_t i = 0; (name = tl_stdlib_name(i)); i++)
        if (!strncmp(name, TL_KERNELS, sizeof TL_KERNELS - 1))
            tl_sbuf_putf(&s, "%s%s", s.len ? ", " : "", name);
    return s.text ? s.text : "";
}
