/* A program that may be installed with the set-user-ID bit, for privileged.py: compiles and runs a
 * kernel. privileged [CACHE]: the cache's folder, by the API. */
#include <stdio.h>
#include <string.h>
#include <tile_jit.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char s[] = "kernel k(const f32 x[64], f32 y[64]) grid(1)\n"
                            "{\n"
                            "    y[0 +: 64] = x[0 +: 64] + 1234.5;\n"
                            "}\n";
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    tile_module *m;
    tile_kernel *k;
    static float x[64], y[64];
    o.cache = argc > 1 ? argv[1] : NULL;
    tile_status r = tile_module_load_source(NULL, "k", s, strlen(s), &o, &m);
    if (!r)
        r = tile_kernel_get(m, "k", NULL, &k);
    if (!r)
        r = tile_launch(k, NULL, TILE_ARGS(tile_view(x, 64), tile_view(y, 64)));
    printf("uid %d, euid %d, status %d, y = %g %s\n", (int)getuid(), (int)geteuid(), (int)r, y[0],
           r ? tile_last_error() : "");
    return 0;
}
