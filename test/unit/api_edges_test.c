/* Where calls of the API used to crash, to hang or to say nothing: devices that cannot be opened,
 * closing while kernels run, events that are recorded again or freed early, wrong options and a
 * wrong environment. test/runtime/sequences.c found some of them, and looks for more. */
#include "codegen/include/tilec.h"
#include "runtime/include/tile.h"
#include "runtime/include/tile_jit.h"
#include "test/unit/ok.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Says that it runs, waits for the host, then writes. */
static const char source[] = "kernel held(i32 flag[2], i32 y[N]) grid(1)\n"
                             "{\n"
                             "    atomic_store(flag[1], 1, order = release);\n"
                             "    while (atomic_load(flag[0], order = acquire) == 0) {}\n"
                             "    y[0] = 7;\n"
                             "}\n"
                             "kernel put(i32 y[N], i32 v) grid(1)\n"
                             "{\n"
                             "    y[0] = v;\n"
                             "}\n";
enum { HANG_SECONDS = 100, TURNS = 2000 };

#define SAYS(word)                                                                                 \
    do {                                                                                           \
        if (!CHECK(strstr(tile_last_error(), (word)) != NULL))                                     \
            fprintf(stderr, "    no '%s' in: %s\n", (word), tile_last_error());                    \
    } while (0)

/* ---- the environment ---- */

/* It used to wait for itself. */
static void default_device_that_cannot_be_opened(void)
{
    tile_device *d = NULL;
    setenv("TILE_DEVICE", "nonsense", 1);
    CHECK_INT(tile_default_device(&d), TILE_BAD_ARGUMENT);
    SAYS("'nonsense'");
    setenv("TILE_DEVICE", "emu:sm_1", 1);
    CHECK_INT(tile_default_device(&d), TILE_BAD_ARGUMENT);
    CHECK(d == NULL);
    CHECK_INT(tile_stream_synchronize(NULL), TILE_BAD_ARGUMENT);
    unsetenv("TILE_DEVICE");
    OK(tile_default_device(&d));
    CHECK(d != NULL);
    tile_device_close(d);
}

static void wrong_words(void)
{
    static const char *const threads[] = {"abc", "0", "-1", "2x", "99999999999999999999", "1025"};
    tile_device *d = NULL;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        setenv("TILE_THREADS", threads[i], 1);
        CHECK_INT(tile_device_open(i % 2 ? "emu:sm_80" : "cpu", &d), TILE_BAD_ARGUMENT);
        SAYS("TILE_THREADS");
        SAYS(threads[i]);
    }
    unsetenv("TILE_THREADS");
    setenv("TILE_CACHE_BYTES", "32M", 1);
    CHECK_INT(tile_device_open("cpu", &d), TILE_BAD_ARGUMENT);
    SAYS("TILE_CACHE_BYTES");
    SAYS("32M");
    unsetenv("TILE_CACHE_BYTES");
    setenv("TILE_SYNC", "yes", 1);
    CHECK_INT(tile_device_open("cpu", &d), TILE_BAD_ARGUMENT);
    SAYS("TILE_SYNC");
    unsetenv("TILE_SYNC");
    setenv("TILE_EMU_DROP_BARRIER", "first", 1);
    CHECK_INT(tile_device_open("emu:sm_80", &d), TILE_BAD_ARGUMENT);
    SAYS("TILE_EMU_DROP_BARRIER");
    unsetenv("TILE_EMU_DROP_BARRIER");
    CHECK_INT(tile_device_open("emu:sm_1", &d), TILE_BAD_ARGUMENT);
    SAYS("'emu:sm_1'");
    SAYS("emu:sm_80");
    SAYS("emu:gfx1201");
    CHECK(d == NULL);
}

/* ---- options ---- */

static void wrong_option(tile_jit_options o, const char *said)
{
    tile_module *m = NULL;
    CHECK_INT(tile_module_load_source(NULL, "k.tile", source, sizeof source - 1, &o, &m),
              TILE_BAD_ARGUMENT);
    SAYS(said);
    CHECK_INT(tile_module_load_file(NULL, "/no/such.tile", &o, &m), TILE_BAD_ARGUMENT);
    CHECK(m == NULL);
}

static void wrong_options(void)
{
    const tile_jit_options fine = TILE_JIT_OPTIONS_INIT;
    tile_jit_options o = fine;
    const char *const dirs[] = {"/nowhere", NULL};
    wrong_option((o.fp = "bogus", o), "fp is 'bogus'; expected one of default, strict, ring");
    wrong_option((o = fine, o.opt_level = 99, o), "opt_level is 99, but must be 0 to 3");
    wrong_option((o = fine, o.warps = -1, o), "warps is -1, but must be 1 to 64, or 0");
    wrong_option((o = fine, o.stages = 65, o), "stages is 65");
    wrong_option((o = fine, o.struct_size = 8, o), "struct_size is 8");
    wrong_option((o = fine, o.ninclude_dirs = 1, o), "include_dirs is NULL");
    wrong_option((o = fine, o.include_dirs = dirs, o.ninclude_dirs = 2, o), "include_dirs[1]");
}

/* A call that went well left "out of memory" as the text of the thread's last error. */
static void no_error_of_a_file_that_is_there(void)
{
    char path[] = "/tmp/api_edges.XXXXXX";
    tile_module *m = NULL;
    int fd = mkstemp(path);
    if (!CHECK(fd >= 0))
        return;
    CHECK(write(fd, source, sizeof source - 1) == (ssize_t)(sizeof source - 1));
    close(fd);
    tile_set_last_error(TILE_OK, "");
    CHECK_INT(tile_module_load_file(NULL, path, NULL, &m), TILE_OK);
    CHECK(!*tile_last_error());
    tile_module_free(m);
    CHECK_INT(tile_module_load_file(NULL, "/no/such.tile", NULL, &m), TILE_IO);
    SAYS("cannot read '/no/such.tile': No such file");
    unlink(path);
}

static void refused_by_compiler(tilec_options o, const char *said)
{
    tilec_output *out = NULL;
    char text[200];
    CHECK_INT(tilec_compile_source("k.tile", source, sizeof source - 1, &o, &out), TILEC_USAGE);
    if (!CHECK(strstr(tilec_output_message(out), said) != NULL))
        fprintf(stderr, "    no '%s' in: %s\n", said, tilec_output_message(out));
    CHECK_INT(tilec_options_check(&o, text, sizeof text), TILEC_USAGE);
    CHECK_STR(text, tilec_output_message(out));
    CHECK_INT(tilec_options_check(&o, text, 5), TILEC_USAGE);
    CHECK_INT(strlen(text), 4);
    tilec_output_free(out);
}

static void wrong_options_of_the_compiler(void)
{
    const tilec_options fine = TILEC_OPTIONS_INIT;
    const tilec_const lacks[] = {{"B", NULL}};
    tilec_options o = fine;
    tilec_output *out = NULL;
    refused_by_compiler((o.fp = "bogus", o), "fp is 'bogus'");
    refused_by_compiler((o = fine, o.diagnostics = "xml", o), "expected one of text, json, sarif");
    refused_by_compiler((o = fine, o.opt_level = -1, o), "opt_level is -1");
    refused_by_compiler((o = fine, o.warps = 65, o), "warps is 65");
    refused_by_compiler((o = fine, o.bisect = -2, o), "bisect is -2");
    refused_by_compiler((o = fine, o.nconsts = 2, o), "consts is NULL");
    refused_by_compiler((o = fine, o.consts = lacks, o.nconsts = 1, o), "consts[0] has no value");
    refused_by_compiler((o = fine, o.struct_size = 8, o), "struct_size is 8");
    refused_by_compiler((o = fine, o.struct_size = 0, o), "struct_size is 0");
    CHECK_INT(tilec_compile_source(NULL, "", 0, NULL, &out), TILEC_USAGE);
    tilec_output_free(out);
    CHECK_INT(tilec_compile_source("k", NULL, 0, NULL, &out), TILEC_USAGE);
    tilec_output_free(out);
    CHECK_INT(tilec_compile_file(NULL, NULL, &out), TILEC_USAGE);
    tilec_output_free(out);
    CHECK_INT(tilec_compile_source("k", "", 0, NULL, NULL), TILEC_USAGE);
}

/* ---- closing ---- */

typedef struct Held {
    tile_device *device;
    tile_module *module;
    tile_kernel *kernel;
    tile_stream *stream; /* NULL: the default one, so the launch is in its caller */
    int32_t flag[2], y[4];
    atomic_bool closed;
    tile_status launched;
} Held;

static void *launch_held(void *held)
{
    Held *h = held;
    tile_arg args[] = {tile_view(h->flag, 2), tile_view(h->y, 4)};
    h->launched = tile_launch(h->kernel, h->stream, args, 2);
    return NULL;
}

static void *close_held(void *held)
{
    Held *h = held;
    tile_device_close(h->device);
    atomic_store(&h->closed, true);
    return NULL;
}

/* What is made from a closed device is good for being freed only. */
static void is_closed(Held *h)
{
    tile_kernel *k = NULL;
    CHECK_INT(tile_launch(h->kernel, h->stream, (tile_arg[]){tile_view(h->flag, 2),
                                                             tile_view(h->y, 4)}, 2),
              TILE_BAD_ARGUMENT);
    SAYS("closed");
    CHECK_INT(tile_kernel_get(h->module, "put", NULL, &k), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_kernel_prepare(h->kernel), TILE_BAD_ARGUMENT);
    if (h->stream)
        CHECK_INT(tile_stream_synchronize(h->stream), TILE_BAD_ARGUMENT);
    tile_module_free(h->module);
    tile_stream_free(h->stream);
}

static void close_waits(const char *name, bool default_stream)
{
    Held h = {0};
    pthread_t launcher, closer;
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    o.opt_level = 1;
    OK(tile_device_open(name, &h.device));
    OK(tile_module_load_source(h.device, "k.tile", source, sizeof source - 1, &o, &h.module));
    OK(tile_kernel_get(h.module, "held", NULL, &h.kernel));
    if (!default_stream)
        OK(tile_stream_create(h.device, &h.stream));
    CHECK(pthread_create(&launcher, NULL, launch_held, &h) == 0);
    while (__atomic_load_n(&h.flag[1], __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    CHECK(pthread_create(&closer, NULL, close_held, &h) == 0);
    for (int i = 0; i < TURNS; i++)
        sched_yield();
    CHECK(!atomic_load(&h.closed)); /* the kernel still runs */
    __atomic_store_n(&h.flag[0], 1, __ATOMIC_RELEASE);
    pthread_join(closer, NULL);
    CHECK_INT(h.y[0], 7);
    pthread_join(launcher, NULL);
    CHECK_INT(h.launched, TILE_OK);
    is_closed(&h);
}

/* ---- events ---- */

/* Stream `slow` is held; `after` waits for its event. Recording the event again in a stream that is
 * free, and freeing it, change nothing about that wait. */
static void waits_stay_what_they_were(const char *name)
{
    Held h = {0};
    tile_kernel *put = NULL;
    tile_stream *slow = NULL, *after = NULL, *fast = NULL;
    tile_event *e = NULL;
    int32_t z[1] = {0};
    OK(tile_device_open(name, &h.device));
    OK(tile_module_load_source(h.device, "k.tile", source, sizeof source - 1, NULL, &h.module));
    OK(tile_kernel_get(h.module, "held", NULL, &h.kernel));
    OK(tile_kernel_get(h.module, "put", NULL, &put));
    OK(tile_stream_create(h.device, &slow));
    OK(tile_stream_create(h.device, &after));
    OK(tile_stream_create(h.device, &fast));
    OK(tile_event_create(h.device, &e));
    OK(tile_kernel_prepare(put));
    h.stream = slow;
    launch_held(&h);
    OK(tile_event_record(e, slow));
    OK(tile_stream_wait_event(after, e));
    tile_arg args[] = {tile_view(h.y, 4), tile_i32(9)}, seen[] = {tile_view(z, 1), tile_i32(1)};
    OK(tile_launch(put, after, args, 2));
    while (__atomic_load_n(&h.flag[1], __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    OK(tile_event_record(e, fast));
    OK(tile_event_synchronize(e));
    tile_event_free(e); /* `after` still waits for what it was */
    for (int i = 0; i < TURNS; i++)
        sched_yield();
    CHECK_INT(__atomic_load_n(&h.y[0], __ATOMIC_ACQUIRE), 0);
    __atomic_store_n(&h.flag[0], 1, __ATOMIC_RELEASE);
    OK(tile_stream_synchronize(after));
    CHECK_INT(h.y[0], 9); /* after the 7 */
    OK(tile_launch(put, fast, seen, 2));
    tile_stream_free(fast);
    CHECK_INT(z[0], 1);
    tile_stream_free(after);
    tile_stream_free(slow);
    tile_module_free(h.module);
    tile_device_close(h.device);
}

/* ---- orders of freeing ---- */

static void devices_go_first(const char *name)
{
    tile_device *d = NULL;
    tile_buffer *b = NULL;
    tile_stream *s = NULL, *own = NULL;
    tile_event *e = NULL;
    tile_module *m = NULL;
    OK(tile_device_open(name, &d));
    OK(tile_buffer_alloc(d, 16, &b));
    OK(tile_stream_create(d, &s));
    OK(tile_event_create(d, &e));
    OK(tile_device_default_stream(d, &own));
    OK(tile_module_load_source(d, "k.tile", source, sizeof source - 1, NULL, &m));
    tile_stream_free(own); /* the device's own: stays */
    OK(tile_buffer_fill(b, 0, 1, 16, s));
    OK(tile_event_record(e, s));
    tile_device_close(d);
    CHECK_INT(tile_buffer_bytes(b), 16);
    CHECK(tile_buffer_ptr(b) && *(unsigned char *)tile_buffer_ptr(b) == 1);
    CHECK_INT(tile_buffer_fill(b, 0, 1, 16, NULL), TILE_BAD_ARGUMENT);
    CHECK_INT(tile_event_synchronize(e), TILE_BAD_ARGUMENT);
    SAYS("closed");
    tile_stream_free(s);
    tile_module_free(m);
    tile_event_free(e);
    tile_buffer_free(b);
}

int main(void)
{
    alarm(HANG_SECONDS);
    default_device_that_cannot_be_opened();
    wrong_words();
    wrong_options();
    no_error_of_a_file_that_is_there();
    wrong_options_of_the_compiler();
    static const char *const devices[] = {"cpu", "ref", "emu:sm_80"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        close_waits(devices[i], true);
        close_waits(devices[i], false);
        devices_go_first(devices[i]);
    }
    waits_stay_what_they_were("cpu");
    return unit_result();
}
