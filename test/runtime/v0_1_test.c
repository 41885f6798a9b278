/* A program of version 0.1: compiled with that version's headers (v0_1/), run against the library
 * of today. And one of a version before each of their members: structs that have struct_size may be
 * shorter, and what they lack has its default. */
#include <stdlib.h>
#include <tile_jit.h>
#include <tilec.h>
#include <unistd.h>

#include "test/runtime/v0_1_layout.h"
#include "test/unit/unit.h"

static const char source[] = "kernel scale(const f32 x[N], f32 y[N], f32 a, const int B = 8)\n"
                             "    grid(cdiv(N, B)) key(N) tune(B in {8, 16})\n"
                             "{\n"
                             "    int i = pid(0) * B;\n"
                             "    y[i +: B] = x[i +: B] * a;\n"
                             "}\n";

/* ---- where members lie ---- */

static void layout(void)
{
    size_t n = 0;
    for (; LAYOUT_0_1[n].name; n++) {
        const Member *a = &LAYOUT_0_1[n], *b = &LAYOUT_NOW[n];
        CHECK_STR(a->name, b->name);
        if (!CHECK(a->at == b->at && a->size == b->size))
            fprintf(stderr, "    %s: %zu, %zu bytes; now %zu, %zu\n", a->name, a->at, a->size,
                    b->at, b->size);
    }
    CHECK(n > 100 && !LAYOUT_NOW[n].name);
}

/* ---- structs that end before a member ---- */

/* Calls f with each struct_size at which the struct could have ended, after the first member. */
static void each_size(const char *type, size_t whole, void (*f)(size_t size))
{
    char dotted[64];
    int n = snprintf(dotted, sizeof dotted, "%s.", type), seen = 0;
    for (const Member *m = LAYOUT_0_1; m->name; m++)
        if (strncmp(m->name, dotted, (size_t)n) == 0 && ++seen > 2)
            f(m->at);
    CHECK(seen > 2);
    f(whole);
    f(whole + 64); /* a newer program */
}

/* Room for a struct that is longer than ours, so that it can be read whatever it claims. */
#define ROOMY(type, init)                                                                          \
    union {                                                                                        \
        type s;                                                                                    \
        unsigned char bytes[sizeof(type) + 64];                                                    \
    } u = {.s = init}

static tile_module *module;
static tile_kernel *kernel;
static float x[4] = {1, 2, 3, 4}, y[4];

static tile_status launch(const tile_launch_options *o)
{
    memset(y, 0, sizeof y);
    return tile_launch_with(
        kernel, NULL, TILE_ARGS(tile_view(x, 4), tile_view(y, 4), tile_f32(2)), o);
}

static void jit_options(size_t size)
{
    ROOMY(tile_jit_options, TILE_JIT_OPTIONS_INIT);
    u.s.struct_size = size;
    memset(u.bytes + size, 0xff, sizeof u.bytes - size); /* nobody reads what is not there */
    tile_module_free(module);
    module = NULL;
    CHECK_INT(tile_module_load_source(NULL, "k", source, sizeof source - 1, &u.s, &module),
              TILE_OK);
    CHECK_INT(tile_kernel_get(module, "scale", NULL, &kernel), TILE_OK);
    CHECK_INT(launch(NULL), TILE_OK);
    CHECK(y[3] == 8);
}

static void launch_options(size_t size)
{
    ROOMY(tile_launch_options, TILE_LAUNCH_OPTIONS_INIT);
    u.s.struct_size = size;
    memset(u.bytes + size, 0xff, sizeof u.bytes - size);
    CHECK_INT(launch(&u.s), TILE_OK);
    CHECK(y[3] == 8);
    CHECK_INT(tile_launch_prepare(kernel, TILE_ARGS(tile_view(x, 4), tile_view(y, 4), tile_f32(2)),
                                  &u.s), TILE_OK);
}

/* A result: nothing behind its end is written. */
static void check_rest(const unsigned char *bytes, size_t from, size_t to)
{
    for (; from < to; from++)
        if (!CHECK(bytes[from] == 0xa5))
            return;
}

static void device_info(size_t size)
{
    ROOMY(tile_device_info, TILE_DEVICE_INFO_INIT);
    memset(u.bytes, 0xa5, sizeof u.bytes);
    u.s.struct_size = size;
    CHECK_INT(tile_device_get_info(NULL, &u.s), TILE_OK);
    CHECK_INT(u.s.struct_size, size);
    CHECK(memchr(u.s.name, 0, sizeof u.s.name) != NULL);
    size_t known = size < sizeof u.s ? size : sizeof u.s;
    check_rest(u.bytes, known, sizeof u.bytes);
}

static void param_info(size_t size)
{
    ROOMY(tile_param_info, TILE_PARAM_INFO_INIT);
    memset(u.bytes, 0xa5, sizeof u.bytes);
    u.s.struct_size = size;
    CHECK_INT(tile_kernel_param(kernel, 1, &u.s), TILE_OK);
    CHECK_STR(u.s.name, "y");
    check_rest(u.bytes, size, sizeof u.bytes); /* it is longer today */
}

static void callbacks(size_t size)
{
    ROOMY(tile_callbacks, TILE_CALLBACKS_INIT);
    u.s.struct_size = size;
    memset(u.bytes + size, 0xff, sizeof u.bytes - size);
    CHECK_INT(tile_device_set_callbacks(NULL, &u.s), TILE_OK);
    CHECK_INT(launch(NULL), TILE_OK);
    CHECK_INT(tile_device_synchronize(NULL), TILE_OK);
    CHECK_INT(tile_device_set_callbacks(NULL, NULL), TILE_OK);
}

static void compiler_options(size_t size)
{
    ROOMY(tilec_options, TILEC_OPTIONS_INIT);
    tilec_output *out = NULL;
    u.s.struct_size = size;
    memset(u.bytes + size, 0xff, sizeof u.bytes - size);
    CHECK_INT(tilec_options_check(&u.s, NULL, 0), TILEC_OK);
    if (size < 64 || size > sizeof u.s - 64) { /* a compilation for each would take a while */
        CHECK_INT(tilec_compile_source("k", source, sizeof source - 1, &u.s, &out), TILEC_OK);
        CHECK(tilec_output_data(out, &size) != NULL && size > 64);
        tilec_output_free(out);
    }
}

/* Numbers whose 0 was no default in version 0.1: -O0 is not -O3, and a bisection at 0 runs no
 * pass. */
static bool differ(const char *emit, int *number, tilec_options *o)
{
    tilec_output *with = NULL, *without = NULL;
    size_t n, m;
    o->emit = emit;
    CHECK_INT(tilec_compile_source("k", source, sizeof source - 1, o, &with), TILEC_OK);
    *number = 0;
    CHECK_INT(tilec_compile_source("k", source, sizeof source - 1, o, &without), TILEC_OK);
    const void *p = tilec_output_data(with, &n), *q = tilec_output_data(without, &m);
    bool other = p && q && (n != m || memcmp(p, q, n) != 0);
    tilec_output_free(with);
    tilec_output_free(without);
    return other;
}

static void zeros(void)
{
    tilec_options level = TILEC_OPTIONS_INIT, bisect = TILEC_OPTIONS_INIT;
    bisect.target = "sm_80";
    CHECK(differ("asm", &level.opt_level, &level));
    CHECK(differ("laidout", &bisect.bisect, &bisect));
}

static char path[] = "/tmp/tile-v0-1-XXXXXX/k.tile";

static void tune(size_t options_size, size_t result_size, size_t jit_size)
{
    ROOMY(tile_tune_options, TILE_TUNE_OPTIONS_INIT);
    union {
        tile_tune_result s;
        unsigned char bytes[sizeof(tile_tune_result) + 64];
    } r;
    tile_jit_options jit = TILE_JIT_OPTIONS_INIT;
    jit.struct_size = jit_size;
    u.s.jit = &jit;
    u.s.look = 1;
    u.s.budget = 1e-9;
    u.s.file = "";
    u.s.struct_size = options_size;
    memset(u.bytes + options_size, 0xff, sizeof u.bytes - options_size);
    memset(r.bytes, 0xa5, sizeof r.bytes);
    r.s.struct_size = result_size;
    tile_status status =
        tile_tune(NULL, path, NULL, TILE_ARGS(tile_view(x, 4), tile_view(y, 4), tile_f32(2)), &u.s,
                  &r.s);
    if (!CHECK_INT(status, TILE_OK))
        fprintf(stderr, "    sizes %zu, %zu: %s\n", options_size, result_size, tile_last_error());
    CHECK_INT(r.s.struct_size, result_size);
    check_rest(r.bytes, result_size, sizeof r.bytes); /* it is longer today */
}

static void tune_options(size_t size)
{
    if (size > offsetof(tile_tune_options, file)) /* else it would write its results */
        tune(size, sizeof(tile_tune_result), sizeof(tile_jit_options));
}

static void tune_result(size_t size)
{
    tune(sizeof(tile_tune_options), size, offsetof(tile_jit_options, cache));
}

/* ---- a size that was never set ---- */

static void unset(void)
{
    tile_jit_options jit = TILE_JIT_OPTIONS_INIT;
    tile_launch_options launch_with = TILE_LAUNCH_OPTIONS_INIT;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_param_info param = TILE_PARAM_INFO_INIT;
    tile_callbacks calls = TILE_CALLBACKS_INIT;
    tile_tune_options options = TILE_TUNE_OPTIONS_INIT;
    tile_tune_result result = TILE_TUNE_RESULT_INIT;
    tilec_options compile = TILEC_OPTIONS_INIT;
    tile_module *none = NULL;
    for (size_t size = 0; size <= sizeof(size_t); size += sizeof(size_t)) {
        jit.struct_size = launch_with.struct_size = info.struct_size = param.struct_size =
            calls.struct_size = options.struct_size = result.struct_size = compile.struct_size =
                size;
        CHECK_INT(tile_module_load_source(NULL, "k", source, sizeof source - 1, &jit, &none),
                  TILE_BAD_ARGUMENT);
        CHECK_INT(launch(&launch_with), TILE_BAD_ARGUMENT);
        CHECK_INT(tile_device_get_info(NULL, &info), TILE_BAD_ARGUMENT);
        CHECK_INT(tile_kernel_param(kernel, 0, &param), TILE_BAD_ARGUMENT);
        CHECK_INT(tile_device_set_callbacks(NULL, &calls), TILE_BAD_ARGUMENT);
        CHECK(strstr(tile_last_error(), "tile_callbacks: struct_size is ") != NULL);
        CHECK_INT(tile_tune(NULL, path, NULL, NULL, 0, &options, NULL), TILE_BAD_ARGUMENT);
        CHECK_INT(tile_tune(NULL, path, NULL, NULL, 0, NULL, &result), TILE_BAD_ARGUMENT);
        CHECK_INT(tilec_options_check(&compile, NULL, 0), TILEC_USAGE);
    }
    CHECK(none == NULL);
}

static void write_source(void)
{
    char *slash = strrchr(path, '/');
    *slash = 0;
    if (!CHECK(mkdtemp(path) != NULL))
        exit(1);
    *slash = '/';
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(source, sizeof source - 1, 1, f) == 1);
    CHECK(f && fclose(f) == 0);
}

int main(void)
{
    CHECK_INT(tile_version() / 100, TILE_VERSION / 100); /* another minor version: other headers */
    layout();
    write_source();
    each_size("tile_jit_options", sizeof(tile_jit_options), jit_options);
    each_size("tile_launch_options", sizeof(tile_launch_options), launch_options);
    each_size("tile_device_info", sizeof(tile_device_info), device_info);
    each_size("tile_param_info", sizeof(tile_param_info), param_info);
    each_size("tile_callbacks", sizeof(tile_callbacks), callbacks);
    each_size("tilec_options", sizeof(tilec_options), compiler_options);
    each_size("tile_tune_options", sizeof(tile_tune_options), tune_options);
    each_size("tile_tune_result", sizeof(tile_tune_result), tune_result);
    unset();
    zeros();
    tile_module_free(module);
    unlink(path);
    *strrchr(path, '/') = 0;
    rmdir(path);
    return unit_result();
}
