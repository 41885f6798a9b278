/* What a module needs is fixed when it is loaded: kernels and forms that are compiled later see the
 * source, imports, include folders, tuning results and cache of that moment, whatever has happened
 * since to the current folder, the environment and the files. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/include/tilec.h"
#include "runtime/include/tile_jit.h"
#include "runtime/tune_select.h"
#include "test/unit/unit.h"

static char base[] = "/tmp/tile-late-XXXXXX";
static const char *device_name;

/* ---- files ---- */

static const char *in_base(const char *path)
{
    static char text[512];
    snprintf(text, sizeof text, "%s/%s", base, path);
    return text;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(in_base(path), "w");
    if (CHECK(f != NULL)) {
        CHECK(fputs(text, f) >= 0);
        CHECK(fclose(f) == 0);
    }
}

static void run(const char *command)
{
    char text[1024];
    int here =
        open(".", O_RDONLY | O_DIRECTORY); /* it may be gone, which would trouble the shell */
    CHECK(here >= 0 && chdir("/") == 0);
    snprintf(text, sizeof text, "PATH=/usr/bin:/bin; cd %s && %s", base, command);
    CHECK(system(text) == 0);
    CHECK(fchdir(here) == 0 && close(here) == 0);
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(in_base(path), &st) == 0;
}

static void go(const char *path)
{
    CHECK(chdir(in_base(path)) == 0);
}

/* As if tuning had found C = c to be the best on the device. */
static void put_tuned(tile_device *device, int c)
{
    static const char text[] =
        "{\"format\": \"tile-tune\", \"version\": 1, \"results\": [{\"kernel\": \"k\", "
        "\"constants\": \"\", \"hash\": \"1\", \"device\": {\"target\": \"%s\", \"name\": "
        "\"%s\", \"threads\": %d}, \"keys\": \"N\", \"bucket\": [6], \"sizes\": [64], "
        "\"best\": \"C=%d\", \"how\": \"timed\", \"tool\": \"\", \"times\": {\"C=%d\": 1}}]}";
    char row[1024];
    tl_tune_device of;
    CHECK_INT(tl_tune_device_of(device, &of), TILE_OK);
    snprintf(row, sizeof row, text, of.target, of.name, of.threads, c, c);
    put("a/sub/k.tune.json", row);
}

/* value() is 1 and two() is 2, for whoever reads what is there now. C = 30 was found by tuning. */
static void start_over(tile_device *device)
{
    run("rm -rf a b c && mkdir -p a/sub a/inc b/sub b/inc c");
    put("a/sub/k.tile",
        "import \"one.tile\";\n"
        "import \"two.tile\";\n"
        "kernel k(const f32 x[N], f32 y[N], const int C = 10) grid(1) require(N <= 64)\n"
        "    key(N) tune(C in {10, 20, 30})\n"
        "{\n"
        "    y[0 +: 64] = one.value(x[0 +: 64]) + two.value(x[0 +: 64]) + (f32)C;\n"
        "}\n");
    put("a/sub/one.tile", "auto value(auto x) { return x * 0 + 1; }\n");
    put("b/sub/one.tile", "auto value(auto x) { return x * 0 + 666; }\n");
    put("a/inc/two.tile", "auto value(auto x) { return x * 0 + 2; }\n");
    put("b/inc/two.tile", "auto value(auto x) { return x * 0 + 6660; }\n");
    put_tuned(device, 30);
    setenv("TILE_CACHE", "cache", 1);
    go("a");
}

/* ---- what happens in between ---- */

static void nothing(void) {}

static void elsewhere(void)
{
    go("b");
}

static void far_away(void)
{
    CHECK(chdir("/") == 0);
}

static void files_change(void)
{
    put("a/sub/one.tile", "auto value(auto x) { return x * 0 + 7; }\n");
    put("a/inc/two.tile", "auto value(auto x) { return x * 0 + 7; }\n");
    put("a/sub/two.tile", "auto value(auto x) { return x * 0 + 7; }\n"); /* would be found first */
    put("a/sub/k.tile", "kernel other() grid(1) { }\n");
    put("a/sub/k.tune.json", "{}");
}

static void files_go(void)
{
    run("rm -r a/sub a/inc");
}

static void folder_goes(void)
{
    run("rm -r a");
}

static void environment_changes(void)
{
    setenv("TILE_CACHE", in_base("c/cache"), 1);
    setenv("TILE_CACHE_SIZE", "nonsense", 1);
    setenv("TILE_TUNE", "nonsense", 1);
    setenv("HOME", "/nowhere", 1);
    setenv("TMPDIR", "/nowhere", 1);
    setenv("PATH", "/nowhere", 1);
}

static const struct {
    const char *name;
    void (*happen)(void);
} EVENTS[] = {{"nothing", nothing},
              {"elsewhere", elsewhere},
              {"far_away", far_away},
              {"files_change", files_change},
              {"files_go", files_go},
              {"folder_goes", folder_goes},
              {"environment_changes", environment_changes}};

/* ---- modules ---- */

static float room[160];

/* `at` elements from an address of 64 bytes: 0 for the form of aligned arguments. */
static float *placed(int at)
{
    return room + (64 - (uintptr_t)room % 64) / sizeof *room % 16 + at;
}

static float launched(tile_device *device, tile_kernel *k, int at)
{
    float *x = placed(at), *y = x + 64;
    for (int i = 0; i < 64; i++)
        x[i] = (float)i, y[i] = -1;
    tile_status status = tile_launch(k, NULL, TILE_ARGS(tile_view(x, 64), tile_view(y, 64)));
    if (status == TILE_OK)
        status = tile_device_synchronize(device);
    if (!CHECK_INT(status, TILE_OK))
        fprintf(stderr, "    %s\n", tile_last_error());
    return y[63];
}

static const char *const DIRS[] = {"inc"};

static tile_module *load(tile_device *device)
{
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    tile_module *m = NULL;
    o.include_dirs = DIRS;
    o.ninclude_dirs = 1;
    if (!CHECK_INT(tile_module_load_file(device, "sub/k.tile", &o, &m), TILE_OK))
        fprintf(stderr, "    %s\n", tile_last_error());
    return m;
}

/* It happens between load and kernel_get, and between a launch and one that needs another form. */
static void event(tile_device *device, size_t i, bool late)
{
    tile_kernel *k = NULL;
    char before[512];
    start_over(device);
    tile_module *m = load(device);
    snprintf(before, sizeof before, "%s, %s, %s", device_name, EVENTS[i].name,
             late ? "late" : "early");
    if (!late)
        EVENTS[i].happen();
    if (!CHECK_INT(tile_kernel_get(m, "k", NULL, &k), TILE_OK))
        fprintf(stderr, "    %s: %s\n", before, tile_last_error());
    if (k && !CHECK(launched(device, k, 0) == 33))
        fprintf(stderr, "    %s\n", before);
    if (late)
        EVENTS[i].happen();
    if (k && !CHECK(launched(device, k, 1) == 33))
        fprintf(stderr, "    %s, the other form\n", before);
    tile_kernel *twenty = NULL;
    if (!CHECK_INT(tile_kernel_get(m, "k", (tile_const[]){{"C", 20, NULL}, {0}}, &twenty), TILE_OK))
        fprintf(stderr, "    %s: %s\n", before, tile_last_error());
    if (twenty && !CHECK(launched(device, twenty, 0) == 23))
        fprintf(stderr, "    %s, another instance\n", before);
    tile_module_free(m);
    unsetenv("TMPDIR");
    unsetenv("TILE_TUNE");
    unsetenv("TILE_CACHE_SIZE");
    CHECK(exists("a/cache/lock") || EVENTS[i].happen == folder_goes);
    CHECK(!exists("b/cache") && !exists("c/cache"));
}

/* A file that was missing is missing; where nothing can be found, errors are those of then. */
static void missing_stays_missing(tile_device *device)
{
    tile_kernel *k = NULL;
    start_over(device);
    run("mv a/inc/two.tile two");
    tile_module *m = load(device);
    run("mv two a/inc/two.tile");
    CHECK_INT(tile_kernel_get(m, "k", NULL, &k), TILE_COMPILE);
    CHECK(strstr(tile_last_error(), "E0204") && strstr(tile_last_error(), "two.tile"));
    tile_module_free(m);
    m = load(device);
    CHECK_INT(tile_kernel_get(m, "k", NULL, &k), TILE_OK);
    tile_module_free(m);
}

/* ---- images in the program ---- */

static void embedded(tile_device *device)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out = NULL;
    size_t size;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    CHECK_INT(tile_device_get_info(device, &info), TILE_OK);
    start_over(device);
    o.target = info.target;
    o.include_dirs = DIRS;
    o.ninclude_dirs = 1;
    CHECK_INT(tilec_compile_file("sub/k.tile", &o, &out), TILEC_OK);
    const void *data = tilec_output_data(out, &size);
    unsigned char *image = data ? aligned_alloc(64, size + 64) : NULL;
    tile_stream *stream = NULL;
    CHECK_INT(tile_device_default_stream(device, &stream), TILE_OK);
    if (CHECK(image != NULL)) {
        memset(image, 0, size + 64);
        memcpy(image, data, size);
        for (int at = 0; at < 2; at++) {
            float *x = placed(at), *y = x + 64;
            memset(room, 0, sizeof room);
            CHECK_INT(tile_launch_embedded(image, "k", stream,
                                           TILE_ARGS(tile_view(x, 64), tile_view(y, 64))),
                      TILE_OK);
            CHECK_INT(tile_device_synchronize(device), TILE_OK);
            CHECK(y[63] == 13);
            folder_goes();
            run("mkdir a"); /* for the next time */
            environment_changes();
        }
    }
    tilec_output_free(out);
    unsetenv("TMPDIR");
    unsetenv("TILE_TUNE");
    unsetenv("TILE_CACHE_SIZE");
    tile_device_close(device);
    free(image);
}

int main(void)
{
    static const char *const devices[] = {"cpu", "ref", "emu:sm_80"};
    if (!CHECK(mkdtemp(base) != NULL))
        return unit_result();
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        tile_device *device = NULL;
        device_name = devices[d];
        if (!CHECK_INT(tile_device_open(device_name, &device), TILE_OK))
            continue;
        for (size_t i = 0; i < 2 * sizeof EVENTS / sizeof *EVENTS; i++)
            event(device, i / 2, i % 2);
        missing_stays_missing(device);
        embedded(device);
    }
    CHECK(chdir("/") == 0);
    run("rm -r a b c");
    CHECK(rmdir(base) == 0);
    return unit_result();
}
