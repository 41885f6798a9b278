/* tile_tune from C, and what kernels loaded from the file do with its results. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/include/tile_jit.h"
#include "test/unit/unit.h"

static const char KERNEL[] =
    "kernel which(const f32 x[N], f32 y[N], i32 z[1], const int B)\n"
    "    grid(cdiv(N, B))\n"
    "    tune(B in {64, 8, 16, 32})\n"
    "    key(N)\n"
    "{\n"
    "    y[pid(0) * B +: B] = x[pid(0) * B +: B] + 1;\n"
    "    if (pid(0) == 0) z[0] = B > 0 ? 7 : 0;\n"
    "}\n"
    "kernel plain(f32 x[N]) grid(1) { x[0] = 1; }\n"
    "kernel chosen(i32 z[N], const int B) grid(1) tune(B in {64, 8, 16, 32}) key(N)\n"
    "{\n"
    "    z[0] = B;\n"
    "}\n";

static char folder[] = "/tmp/tune_test-XXXXXX", source[64], results[64];

static void put_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    CHECK(f && fclose(f) == 0);
}

/* Tunes `which` for n elements. */
static tile_status tune(tile_device *device, int64_t n, const tile_tune_options *o,
                        tile_tune_result *out)
{
    float *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
    int32_t z = 5;
    *out = (tile_tune_result)TILE_TUNE_RESULT_INIT;
    for (int64_t i = 0; i < n; i++)
        y[i] = 100;
    const tile_arg args[] = {tile_view(x, n), tile_view(y, n), tile_view(&z, 1)};
    tile_status status = tile_tune(device, source, "which", args, 3, o, out);
    CHECK(y[0] == 100 && y[n - 1] == 100 && z == 5); /* as before */
    free(x);
    free(y);
    return status;
}

typedef struct Seen {
    size_t calls, stop_after;
} Seen;

static int see(void *user, const tile_tune_progress *p)
{
    Seen *s = user;
    CHECK(p->struct_size == sizeof *p && p->total == 4 && p->done <= 4 && p->elapsed >= 0);
    CHECK_STR(p->kernel, "which");
    return ++s->calls >= s->stop_after;
}

static void test_tune(tile_device *device)
{
    tile_tune_options o = TILE_TUNE_OPTIONS_INIT;
    tile_tune_result r;
    Seen seen = {0, 1};
    o.progress = see;
    o.user = &seen;
    CHECK(tune(device, 100, &o, &r) == TILE_OK && !r.complete && r.timed < 4);
    seen = (Seen){0, 100000};
    CHECK(tune(device, 100, &o, &r) == TILE_OK && r.complete && r.total == 4);
    CHECK(seen.calls >= 4 && strncmp(r.best, "B=", 2) == 0 && r.best_us > 0);
    char best[sizeof r.best];
    snprintf(best, sizeof best, "%s", r.best);
    CHECK(tune(device, 100, NULL, &r) == TILE_OK && r.timed == 0 && r.kept == 4);
    CHECK_STR(r.best, best);
    CHECK(tune(device, 128, NULL, &r) == TILE_OK && r.timed == 0); /* the same bucket */
    o.file = "";
    CHECK(tune(device, 129, &o, &r) == TILE_OK && r.timed == 4);
    CHECK(tune(device, 129, &o, &r) == TILE_OK && r.timed == 4); /* nothing was kept */
    o.consts = (tile_const[]){{"B", 16, NULL}, {0}};
    o.progress = NULL;
    CHECK(tune(device, 100, &o, &r) == TILE_OK && r.total == 1);
    CHECK_STR(r.best, "B=16");
}

static void test_wrong_calls(tile_device *device)
{
    tile_tune_options o = TILE_TUNE_OPTIONS_INIT;
    tile_tune_result r = TILE_TUNE_RESULT_INIT;
    float x[4] = {0};
    const tile_arg args[] = {tile_view(x, 4)};
    CHECK(tile_tune(device, NULL, "which", args, 1, NULL, &r) == TILE_BAD_ARGUMENT);
    CHECK(tile_tune(device, source, "which", args, 1, NULL, &r) == TILE_BAD_ARGUMENT);
    CHECK(tile_tune(device, source, "plain", args, 1, NULL, &r) == TILE_NOT_FOUND);
    CHECK(tile_tune(device, source, "none", args, 1, NULL, &r) == TILE_NOT_FOUND);
    CHECK(tile_tune(device, source, NULL, args, 1, NULL, &r) == TILE_NOT_FOUND);
    CHECK(tile_tune(device, "/no/such.tile", NULL, args, 1, NULL, &r) == TILE_IO);
    o.budget = -1;
    CHECK(tile_tune(device, source, "which", args, 1, &o, &r) == TILE_BAD_ARGUMENT);
    o.budget = 0;
    o.model = 1;
    CHECK(tile_tune(device, source, "which", args, 1, &o, &r) == TILE_BAD_ARGUMENT);
    o.struct_size = 8;
    CHECK(tile_tune(device, source, "which", args, 1, &o, &r) == TILE_BAD_ARGUMENT);
}

/* What the model asks of memory is what is viewed, not the memory that it lies in. */
static void test_model(void)
{
    enum { N = 1000, ALL = 64 << 20 };
    tile_tune_options o = TILE_TUNE_OPTIONS_INIT;
    tile_tune_result r = TILE_TUNE_RESULT_INIT, part = TILE_TUNE_RESULT_INIT;
    tile_device *device = NULL;
    tile_buffer *x = NULL;
    float y[N] = {0};
    int32_t z = 0;
    o.model = 1;
    o.file = "";
    CHECK(tile_device_open("emu:sm_80", &device) == TILE_OK);
    CHECK(tile_buffer_alloc(device, ALL, &x) == TILE_OK);
    const tile_arg all[] = {tile_view((float *)tile_buffer_ptr(x), N), tile_view(y, N),
                            tile_view(&z, 1)},
                   some[] = {tile_f32_view(x, N), all[1], all[2]};
    CHECK(tile_tune(device, source, "which", all, 3, &o, &r) == TILE_OK);
    CHECK(tile_tune(device, source, "which", some, 3, &o, &part) == TILE_OK);
    CHECK(part.best_us > 0 && part.best_us == r.best_us);
    tile_buffer_free(x);
    tile_device_close(device);
}

/* ---- use ---- */

/* What `chosen` says for n elements. */
static int32_t ask(tile_device *device, tile_kernel *k, int64_t n)
{
    int32_t own[1 << 12];
    tile_stream *stream = NULL;
    CHECK(tile_device_default_stream(device, &stream) == TILE_OK);
    CHECK(tile_launch(k, NULL, (tile_arg[]){tile_view(own, n)}, 1) == TILE_OK);
    CHECK(tile_stream_synchronize(stream) == TILE_OK);
    return own[0];
}

typedef struct Asker {
    tile_kernel *kernel;
    tile_device *device;
    int bad;
} Asker;

static void *ask_often(void *user)
{
    Asker *a = user;
    tile_stream *stream;
    int32_t z[64];
    if (tile_stream_create(a->device, &stream) != TILE_OK)
        return NULL;
    for (int i = 0; i < 50; i++) {
        int64_t n = i % 2 ? 3 : 64;
        a->bad += tile_launch(a->kernel, stream, (tile_arg[]){tile_view(z, n)}, 1) != TILE_OK ||
                  tile_stream_synchronize(stream) != TILE_OK || z[0] != (i % 2 ? 8 : 32);
    }
    tile_stream_free(stream);
    return NULL;
}

static void test_many_threads(tile_device *device, tile_kernel *kernel)
{
    pthread_t threads[4];
    Asker askers[4];
    for (int i = 0; i < 4; i++) {
        askers[i] = (Asker){kernel, device, 0};
        CHECK(pthread_create(&threads[i], NULL, ask_often, &askers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(askers[i].bad, 0);
    }
}

static void heard(void *user, const char *text)
{
    snprintf(user, 512, "%s", text);
}

static void test_use(tile_device *device)
{
    static const char row[] =
        "{\"kernel\": \"chosen\", \"constants\": \"\", \"hash\": \"1\", \"device\": {\"target\": "
        "\"ref\", \"name\": \"\", \"threads\": 0}, \"keys\": \"N\", \"bucket\": [%d], \"sizes\": "
        "[1], \"best\": \"B=%d\", \"how\": \"timed\", \"tool\": \"\", \"times\": {\"B=%d\": 1}}";
    char text[2048], said[512] = "";
    int n = snprintf(text, sizeof text,
                     "{\"format\": \"tile-tune\", \"version\": 1, \"results\": [");
    n += snprintf(text + n, sizeof text - (size_t)n, row, 2, 8, 8);
    n += snprintf(text + n, sizeof text - (size_t)n, ",");
    n += snprintf(text + n, sizeof text - (size_t)n, row, 6, 32, 32);
    snprintf(text + n, sizeof text - (size_t)n, "]}");
    put_file(results, text);
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    tile_module *module = NULL;
    tile_kernel *k = NULL;
    o.diagnostic = heard;
    o.user = said;
    CHECK(tile_module_load_file(device, source, &o, &module) == TILE_OK);
    CHECK(tile_kernel_get(module, "chosen", NULL, &k) == TILE_OK);
    CHECK(strstr(said, "warning[stale-tuning]"));
    CHECK_INT(ask(device, k, 4), 8);
    CHECK_INT(ask(device, k, 16), 8); /* as near to both: the smaller */
    CHECK_INT(ask(device, k, 17), 32);
    CHECK_INT(ask(device, k, 4000), 32);
    test_many_threads(device, k);
    CHECK(tile_kernel_get(module, "chosen", (tile_const[]){{"B", 16, NULL}, {0}}, &k) == TILE_OK);
    CHECK_INT(ask(device, k, 4), 16); /* what is given takes precedence */
    tile_module_free(module);

    setenv("TILE_TUNE", "off", 1);
    CHECK(tile_module_load_file(device, source, NULL, &module) == TILE_OK);
    CHECK(tile_kernel_get(module, "chosen", NULL, &k) == TILE_OK);
    CHECK_INT(ask(device, k, 4), 64);
    tile_module_free(module);
    setenv("TILE_TUNE", "perhaps", 1);
    CHECK(tile_module_load_file(device, source, NULL, &module) == TILE_BAD_ARGUMENT);
    unsetenv("TILE_TUNE");

    put_file(results, "{");
    CHECK(tile_module_load_file(device, source, &o, &module) == TILE_OK);
    CHECK(strstr(said, "warning: the tuning results are not used: line 1: it is not JSON"));
    tile_module_free(module);
}

int main(void)
{
    tile_device *device = NULL;
    setenv("TILE_CACHE", "off", 1);
    if (!CHECK(mkdtemp(folder)) || !CHECK(tile_device_open("ref", &device) == TILE_OK))
        return unit_result();
    snprintf(source, sizeof source, "%s/k.tile", folder);
    snprintf(results, sizeof results, "%s/k.tune.json", folder);
    put_file(source, KERNEL);
    test_tune(device);
    test_wrong_calls(device);
    test_model();
    test_use(device);
    tile_device_close(device);
    unlink(source);
    unlink(results);
    CHECK(rmdir(folder) == 0); /* nothing else is left there */
    return unit_result();
}
