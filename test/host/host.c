/* host.c: the compiler and the runtime in a process that is not as usual.
 *
 *     host CONDITION        host --list
 *
 * A condition is a row of the table at the end: what the host does to its process, or in which
 * thread it calls. Under it every action (open, launch, compile, print, tune) is done on every
 * device, twice, and must give the bits that plain C gives in the usual state, or, where the row
 * says so, a status with a text. Afterwards the process must be as the host made it: floating-point
 * control and flags, locale, folder, descriptors. What must be there before (devices, streams, a
 * loaded kernel, an image) is made before the condition holds.
 *
 * Exit 0: "CONDITION: N actions, 0 wrong"; 1: some were wrong; 77: this machine cannot have the
 * condition. */
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "codegen/include/tilec.h"
#include "runtime/include/tile_jit.h"

enum { N = 512, SKIPPED = 77 };

/* Run-time arithmetic on subnormals and with rounding; folded arithmetic of both kinds; a constant
 * that is given as a text. */
static const char source[] =
    "kernel k(const f32 x[N], f32 y[N], f32 z[N], const f32 C, const int B = 64,\n"
    "         const f32 S = 1e-38, const f32 T = 0.1) grid(cdiv(N, B)) tune(B in {32, 64}) key(N)\n"
    "{\n"
    "    int i = pid(0) * B;\n"
    "    y[i +: B] = pid(0) % 2 == 0 ? x[i +: B] * 0.5 : x[i +: B] / 3.0 + 1.0;\n"
    "    int r = pid(0) % 4;\n"
    "    z[i +: B] = r == 0 ? S * 0.25 : r == 1 ? T / 3.0 : r == 2 ? sqrt(T) : C;\n"
    "}\n"
    "kernel say(const f32 x[N]) grid(1) { print(\"x\", x[0 +: 4]); }\n";
static const float said[4] = {0.375f, -1e-40f, 1.0f / 3, 3e30f};
static const char SAYS[] = "x = [0.375, -9.99995e-41, 0.33333334, 3e+30]";

/* ---- what is right ---- */

static float input[N], want_y[N], want_z[N];

/* In the usual state, before anything else happens. */
static void find_wanted(void)
{
    volatile float s = 1e-38f, t = 0.1f, half = 0.5f, three = 3, quarter = 0.25f;
    const float folded[4] = {s * quarter, t / three, sqrtf(t), 0.375f};
    for (int i = 0; i < N; i++) {
        volatile float x = ldexpf((float)(2 * i + 2), -149), one = 1;
        input[i] = x;
        want_y[i] = i / 64 % 2 == 0 ? x * half : x / three + one;
        want_z[i] = folded[i / 64 % 4];
    }
}

/* ---- the process as the host sees it ---- */

typedef struct process {
    fenv_t env;
    char point[8], folder[256];
    bool open[3];
} process;

static process look(void)
{
    process p;
    memset(&p, 0, sizeof p);
    fegetenv(&p.env);
    fesetenv(&p.env); /* fegetenv masks the exceptions of the x87 */
    snprintf(p.point, sizeof p.point, "%s", localeconv()->decimal_point);
    if (!getcwd(p.folder, sizeof p.folder))
        p.folder[0] = 0;
    for (int i = 0; i < 3; i++)
        p.open[i] = fcntl(i, F_GETFD) >= 0;
    return p;
}

static bool same_env(const fenv_t *a, const fenv_t *b)
{
#if defined __x86_64__
    return a->__mxcsr == b->__mxcsr && a->__control_word == b->__control_word &&
           ((a->__status_word ^ b->__status_word) & 0x3f) == 0;
#else
    return memcmp(a, b, sizeof *a) == 0;
#endif
}

/* ---- the devices, and what is on them before ---- */

typedef struct site {
    const char *name;
    tile_device *device;
    tile_stream *stream;
    tile_module *module;
    tile_kernel *kernel, *say;
    void *image;
    size_t size;
} site;
static site sites[] = {{.name = "cpu"}, {.name = "ref"}, {.name = "emu:sm_80"}};
enum { SITES = sizeof sites / sizeof *sites };

static char folder[] = "host.XXXXXX", cache[64] = "off", tuned[64];
static int report = 2; /* a descriptor: streams may be closed */
static atomic_int done, wrong;
static bool may_refuse; /* a status with a text is right, too */
static __thread char heard[256];

static void __attribute__((format(printf, 1, 2))) tell(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (write(report, text, n < (int)sizeof text ? (size_t)n : sizeof text) < 0)
        return;
}

static void hear(void *user, const char *text)
{
    (void)user;
    snprintf(heard, sizeof heard, "%s", text);
}

static const tile_const consts[] = {{"C", 0, "0.375"}, {"B", 64, NULL}, {0}};

static tile_jit_options jit_options(void)
{
    tile_jit_options o = TILE_JIT_OPTIONS_INIT;
    o.cache = cache;
    o.fp = "strict"; /* equal bits on all devices */
    return o;
}

static tile_status make(const site *s, tile_module **out_module, tile_kernel **out_kernel)
{
    tile_jit_options o = jit_options();
    tile_status status =
        tile_module_load_source(s->device, "host", source, strlen(source), &o, out_module);
    return status ? status : tile_kernel_get(*out_module, "k", consts, out_kernel);
}

/* An image for the action `load`. */
static int make_image(site *s, const char *target)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *output;
    const tilec_const list[] = {{"C", "0.375"}, {"B", "64"}};
    o.target = target;
    o.kernel = "k";
    o.consts = list;
    o.nconsts = 2;
    o.cache = "off";
    o.fp = "strict";
    if (tilec_compile_source("host", source, strlen(source), &o, &output))
        return tell("%s: %s\n", s->name, tilec_output_message(output)), 1;
    const void *data = tilec_output_data(output, &s->size);
    s->image = malloc(s->size);
    if (s->image)
        memcpy(s->image, data, s->size);
    tilec_output_free(output);
    return s->image == NULL;
}

static int open_site(site *s)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = hear;
    tile_status status = tile_device_open(s->name, &s->device);
    if (!status)
        status = tile_device_set_callbacks(s->device, &callbacks);
    if (!status)
        status = tile_stream_create(s->device, &s->stream);
    if (!status)
        status = make(s, &s->module, &s->kernel);
    if (!status)
        status = tile_kernel_prepare(s->kernel);
    if (!status)
        status = tile_kernel_get(s->module, "say", NULL, &s->say);
    if (!status)
        status = tile_device_get_info(s->device, &info);
    if (status)
        return tell("%s: %s\n", s->name, tile_last_error()), 1;
    return make_image(s, info.target);
}

static void close_site(site *s)
{
    tile_module_free(s->module);
    tile_stream_free(s->stream);
    tile_device_close(s->device);
    free(s->image);
}

/* ---- actions ---- */

/* Arrays of the device's own: emu has memory of its own only in this way. */
static tile_status run(const site *s, tile_kernel *kernel, tile_stream *stream, float *y, float *z)
{
    tile_buffer *b[3] = {0};
    tile_status status = TILE_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = tile_buffer_alloc(s->device, sizeof input, &b[i]);
    if (!status)
        status = tile_buffer_upload(b[0], 0, input, sizeof input, stream);
    if (!status)
        status = tile_launch(kernel, stream,
                             TILE_ARGS(tile_f32_view(b[0], N), tile_f32_view(b[1], N),
                                       tile_f32_view(b[2], N)));
    if (!status)
        status = tile_buffer_download(b[1], 0, y, sizeof input, stream);
    if (!status)
        status = tile_buffer_download(b[2], 0, z, sizeof input, stream);
    for (int i = 0; i < 3; i++)
        tile_buffer_free(b[i]);
    return status;
}

/* NULL: right. */
static const char *run_and_compare(const site *s, tile_kernel *kernel, tile_stream *stream,
                                   tile_status *out_status)
{
    static __thread float y[N], z[N];
    memset(y, 255, sizeof y);
    memset(z, 255, sizeof z);
    *out_status = run(s, kernel, stream, y, z);
    return *out_status                       ? tile_last_error()
           : memcmp(y, want_y, sizeof y) != 0 ? "computed bits differ"
           : memcmp(z, want_z, sizeof z) != 0 ? "folded bits differ"
                                              : NULL;
}

static const char *do_launch(const site *s, tile_status *out_status)
{
    return run_and_compare(s, s->kernel, NULL, out_status);
}

static const char *do_stream(const site *s, tile_status *out_status)
{
    return run_and_compare(s, s->kernel, s->stream, out_status);
}

static const char *do_open(const site *s, tile_status *out_status)
{
    site fresh = {.name = s->name};
    *out_status = tile_device_open(s->name, &fresh.device);
    if (*out_status)
        return tile_last_error();
    *out_status = tile_module_load_image(fresh.device, s->image, s->size, &fresh.module);
    if (!*out_status)
        *out_status = tile_kernel_get(fresh.module, "k", NULL, &fresh.kernel);
    const char *what = *out_status ? tile_last_error()
                                   : run_and_compare(&fresh, fresh.kernel, NULL, out_status);
    tile_module_free(fresh.module);
    tile_device_close(fresh.device);
    return what;
}

static const char *do_compile(const site *s, tile_status *out_status)
{
    tile_module *module = NULL;
    tile_kernel *kernel;
    *out_status = make(s, &module, &kernel);
    const char *what =
        *out_status ? tile_last_error() : run_and_compare(s, kernel, NULL, out_status);
    tile_module_free(module);
    return what;
}

static const char *do_print(const site *s, tile_status *out_status)
{
    tile_buffer *b = NULL;
    heard[0] = 0;
    *out_status = tile_buffer_alloc(s->device, sizeof said, &b);
    if (!*out_status)
        *out_status = tile_buffer_upload(b, 0, said, sizeof said, NULL);
    if (!*out_status)
        *out_status = tile_launch(s->say, NULL, TILE_ARGS(tile_f32_view(b, 4)));
    if (!*out_status)
        *out_status = tile_device_synchronize(s->device);
    tile_buffer_free(b);
    return *out_status ? tile_last_error() : strcmp(heard, SAYS) ? heard : NULL;
}

/* Does the file of results have numbers with a comma? */
static bool has_commas(void)
{
    char path[80], text[4096];
    snprintf(path, sizeof path, "%s/host.tune.json", folder);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    for (size_t i = 1; i + 1 < n; i++)
        if (text[i] == ',' && strchr("0123456789", text[i - 1]) &&
            strchr("0123456789", text[i + 1]))
            return true;
    return false;
}

/* Twice: the second call reads what the first has written. */
static const char *do_tune(const site *s, tile_status *out_status)
{
    static float y[N], z[N];
    tile_jit_options o = jit_options();
    tile_tune_options t = TILE_TUNE_OPTIONS_INIT;
    tile_tune_result result = TILE_TUNE_RESULT_INIT;
    t.jit = &o;
    t.consts = (const tile_const[]){{"C", 0, "0.375"}, {0}};
    *out_status = TILE_OK;
    if (s != sites) /* the emulator has no times; the interpreter's say nothing */
        return NULL;
    for (int i = 0; i < 2 && !*out_status; i++)
        *out_status = tile_tune(
            s->device, tuned, "k",
            (tile_arg[]){tile_view(input, N), tile_view(y, N), tile_view(z, N)}, 3, &t, &result);
    return *out_status       ? tile_last_error()
           : !result.best[0] ? "nothing is best"
           : has_commas()    ? "the file has decimal commas"
                             : NULL;
}

typedef const char *action(const site *s, tile_status *out_status);
enum { OPEN = 1, LAUNCH = 2, STREAM = 4, COMPILE = 8, PRINT = 16, TUNE = 32, ALL = 63 };
static const struct {
    const char *name;
    unsigned bit;
    action *act;
} actions[] = {{"open", OPEN, do_open},          {"launch", LAUNCH, do_launch},
               {"stream", STREAM, do_stream},    {"compile", COMPILE, do_compile},
               {"print", PRINT, do_print},       {"tune", TUNE, do_tune}};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void check(const site *s, int a)
{
    tile_status status = TILE_OK;
    const process before = look();
    const char *what = actions[a].act(s, &status);
    const process after = look();
    if (what && !(may_refuse && status && *what)) {
        tell("%s on %s: status %d, %s\n", actions[a].name, s->name, (int)status, what);
        wrong++;
    }
    if (!same_env(&before.env, &after.env)) {
        tell("%s on %s changes the floating-point state\n", actions[a].name, s->name);
        wrong++;
    }
    if (strcmp(before.point, after.point) || strcmp(before.folder, after.folder) ||
        memcmp(before.open, after.open, sizeof before.open)) {
        tell("%s on %s changes the process\n", actions[a].name, s->name);
        wrong++;
    }
    done++;
}

static void check_all(unsigned which)
{
    for (int round = 0; round < 2; round++)
        for (int a = 0; a < ACTIONS; a++)
            for (int i = 0; i < SITES && which & actions[a].bit; i++)
                check(&sites[i], a);
}

/* ---- conditions: what a host does; 77: it cannot ---- */

static int be_usual(unsigned which)
{
    check_all(which);
    return 0;
}

static int be_rounding(unsigned which, int mode)
{
    fesetround(mode);
    feraiseexcept(FE_DIVBYZERO);
    check_all(which);
    return 0;
}

static int round_up(unsigned which) { return be_rounding(which, FE_UPWARD); }
static int round_down(unsigned which) { return be_rounding(which, FE_DOWNWARD); }
static int round_to_zero(unsigned which) { return be_rounding(which, FE_TOWARDZERO); }

/* As a library that was linked with -ffast-math does. */
static int flush(unsigned which)
{
#if defined __x86_64__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined __aarch64__
    __builtin_aarch64_set_fpcr(1u << 24);
#else
    return SKIPPED;
#endif
    check_all(which);
    return 0;
}

/* Floating-point exceptions end the process, as a debugging host wishes of its own code. */
static int trap(unsigned which)
{
    feclearexcept(FE_ALL_EXCEPT);
    if (feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT) == -1)
        return SKIPPED;
    check_all(which);
    fedisableexcept(FE_ALL_EXCEPT);
    return 0;
}

/* The x87 computes in 24 bits, as Direct3D 9 left it. */
static int short_x87(unsigned which)
{
#if defined __x86_64__
    unsigned short control = 0x007f;
    __asm__ volatile("fldcw %0" : : "m"(control));
#endif
    check_all(which);
    return 0;
}

/* LOCPATH has the locale `comma`. */
static int comma(unsigned which)
{
    if (!setlocale(LC_ALL, "comma") && !setlocale(LC_NUMERIC, "comma"))
        return SKIPPED;
    check_all(which);
    return strcmp(localeconv()->decimal_point, ",") != 0;
}

/* In a thread, with the least stack that is promised to be enough. */
static void *in_thread(void *which)
{
    check_all(*(unsigned *)which);
    return NULL;
}

static int small_stack(unsigned which)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    int error = pthread_attr_setstacksize(&attr, 64 << 10);
    if (!error)
        error = pthread_create(&thread, &attr, in_thread, &which);
    if (!error)
        error = pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

/* On a stack that is not the thread's own. */
static ucontext_t host_context, coroutine_context;
static unsigned coroutine_which;

static void in_coroutine(void)
{
    check_all(coroutine_which);
}

static int coroutine(unsigned which)
{
    enum { BYTES = 64 << 10 };
    char *stack = malloc(BYTES);
    if (!stack || getcontext(&coroutine_context))
        return 1;
    coroutine_which = which;
    coroutine_context.uc_stack.ss_sp = stack;
    coroutine_context.uc_stack.ss_size = BYTES;
    coroutine_context.uc_link = &host_context;
    makecontext(&coroutine_context, in_coroutine, 0);
    swapcontext(&host_context, &coroutine_context);
    free(stack);
    return 0;
}

static int many_threads(unsigned which)
{
    enum { THREADS = 64 };
    pthread_t threads[THREADS];
    int n = 0;
    snprintf(cache, sizeof cache, "%s/cache", folder); /* who is second finds what the first made */
    while (n < THREADS && pthread_create(&threads[n], NULL, in_thread, &which) == 0)
        n++;
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return n < THREADS;
}

/* The child does everything but for the streams of its parent; then the parent does. */
static int fork_here(unsigned which)
{
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        return 1;
    if (child == 0) {
        alarm(60);
        may_refuse = false;
        check_all(which & ~(unsigned)STREAM);
        for (int i = 0; i < SITES; i++) {
            tile_status refused;
            if (!do_stream(&sites[i], &refused) || refused != TILE_UNAVAILABLE)
                tell("%s: the parent's stream gives %d\n", sites[i].name, (int)refused), wrong++;
            tile_stream_free(sites[i].stream);
            sites[i].stream = NULL;
            if (tile_stream_create(sites[i].device, &sites[i].stream))
                tell("%s: no stream: %s\n", sites[i].name, tile_last_error()), wrong++;
        }
        check_all(which);
        for (int i = 0; i < SITES; i++)
            close_site(&sites[i]);
        tell("child: %d actions, %d wrong\n", (int)done, (int)wrong);
        exit(wrong != 0); /* destructors run in a child, too */
    }
    check_all(which);
    return waitpid(child, &status, 0) != child || status != 0;
}

/* A device of a GPU (of test/runtime's stubs) is of no use to a child, which is told so. */
static int fork_with_gpu(unsigned which)
{
    tile_device *gpu;
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    int status = 0;
    (void)which;
    if (tile_device_open("cuda", &gpu))
        return SKIPPED;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        tile_status refused = tile_device_get_info(gpu, &info);
        tile_device_close(gpu);
        _exit(refused != TILE_UNAVAILABLE);
    }
    done++;
    status |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
    status |= tile_device_get_info(gpu, &info) != TILE_OK;
    tile_device_close(gpu);
    return status;
}

static atomic_bool stop;

static void *launch_on(void *site_)
{
    tile_status status;
    while (!stop)
        do_launch(site_, &status);
    return NULL;
}

static void *compile_on(void *unused)
{
    (void)unused;
    for (site s = {.name = "ref"}; !stop; free(s.image))
        if (make_image(&s, "ref"))
            wrong++;
    return NULL;
}

/* A child of a process in which other threads are launching and compiling: statuses or results, no
 * waiting for ever. A device of the child's own works. */
static int fork_in_flight(unsigned which)
{
    pthread_t threads[SITES + 1];
    int bad = 0;
    (void)which;
    for (int i = 0; i <= SITES; i++)
        if (pthread_create(&threads[i], NULL, i < SITES ? launch_on : compile_on,
                           &sites[i % SITES]))
            return 1;
    for (int round = 0; round < 20; round++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            may_refuse = true;
            for (int i = 0; i < SITES; i++)
                check(&sites[i], 1), check(&sites[i], 3);
            int before = report;
            report = open("/dev/null", O_WRONLY);
            make_image(&(site){.name = "ref"}, "ref"); /* refused, or not */
            report = before;
            may_refuse = false;
            for (int i = 0; i < SITES; i++)
                check(&sites[i], 0);
            for (int i = 0; i < SITES; i++)
                tile_device_close(sites[i].device);
            _exit(wrong != 0);
        }
        bad += child < 0 || waitpid(child, &status, 0) != child || status != 0;
        done++;
    }
    stop = true;
    for (int i = 0; i <= SITES; i++)
        pthread_join(threads[i], NULL);
    return bad;
}

/* A buffer that comes and goes; a device that was in use when the process forked refuses. */
static bool do_buffer(const site *s)
{
    tile_buffer *b = NULL;
    tile_status status = tile_buffer_alloc(s->device, sizeof input, &b);
    tile_buffer_free(b);
    return status == TILE_OK || status == TILE_UNAVAILABLE;
}

static void *free_on(void *site_)
{
    while (!stop)
        if (!do_buffer(site_))
            wrong++;
    return NULL;
}

/* Other threads change the lists of buffers while the memory is copied: the child finds each list
 * whole, or its device lost. */
static int fork_in_lists(unsigned which)
{
    enum { FORKS = 200 };
    pthread_t threads[SITES];
    int bad = 0;
    (void)which;
    for (int i = 0; i < SITES; i++)
        if (pthread_create(&threads[i], NULL, free_on, &sites[i]))
            return 1;
    for (int round = 0; round < FORKS && !bad; round++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            for (int i = 0; i < SITES; i++)
                bad |= !do_buffer(&sites[i]);
            for (int i = 0; i < SITES; i++)
                tile_device_close(sites[i].device);
            _exit(bad);
        }
        bad = child < 0 || waitpid(child, &status, 0) != child || status != 0;
        done++;
    }
    stop = true;
    for (int i = 0; i < SITES; i++)
        pthread_join(threads[i], NULL);
    return bad;
}

/* Not one more descriptor. */
static int no_files(unsigned which)
{
    struct rlimit before, none;
    if (getrlimit(RLIMIT_NOFILE, &before))
        return SKIPPED;
    none = before;
    none.rlim_cur = 0;
    if (setrlimit(RLIMIT_NOFILE, &none))
        return SKIPPED;
    check_all(which);
    setrlimit(RLIMIT_NOFILE, &before);
    may_refuse = false;
    check_all(which);
    return 0;
}

/* Not one more thread, in what `be` does. The superuser has no such limit. */
static int without_threads(unsigned which, int (*be)(unsigned which))
{
    struct rlimit before, none;
    bool is_root = getuid() == 0;
    if (getrlimit(RLIMIT_NPROC, &before))
        return SKIPPED;
    if (is_root && (chmod(folder, 0777) || setresuid(65534, 65534, 0)))
        return SKIPPED;
    none = before;
    none.rlim_cur = 0;
    int result = setrlimit(RLIMIT_NPROC, &none) ? SKIPPED : be(which);
    if (setrlimit(RLIMIT_NPROC, &before) || (is_root && setresuid(0, 0, 0)))
        return 1;
    return result;
}

static int no_threads(unsigned which) { return without_threads(which, be_usual); }

/* Neither stack nor thread: what cannot run says so. */
static int no_stack(unsigned which) { return without_threads(which, coroutine); }

/* The descriptors 0, 1 and 2 are free: who opens a file gets one, and must not take it for a
 * stream. */
static int closed_streams(unsigned which)
{
    struct stat st;
    for (int i = 0; i < 3; i++)
        close(i);
    check_all(which);
    int bad = 0;
    for (int i = 0; i < 3; i++)
        bad += fstat(i, &st) == 0;
    return bad;
}

/* The current folder has been removed. */
static int no_folder(unsigned which)
{
    char home[256], gone[] = "gone.XXXXXX", path[300];
    if (!getcwd(home, sizeof home) || !mkdtemp(gone) || chdir(gone))
        return 1;
    snprintf(path, sizeof path, "%s/%s", home, gone);
    if (rmdir(path))
        return 1;
    check_all(which);
    return chdir(home);
}

static const struct condition {
    const char *name;
    unsigned which; /* actions */
    int (*be)(unsigned which);
    bool may_refuse;
} conditions[] = {
    {"usual", ALL, be_usual, false},
    {"flush", ALL, flush, false},
    {"up", ALL, round_up, false},
    {"down", ALL, round_down, false},
    {"to-zero", ALL, round_to_zero, false},
    {"trap", ALL, trap, false},
    {"short-x87", ALL, short_x87, false},
    {"comma", ALL, comma, false},
    {"small-stack", ALL, small_stack, false},
    {"coroutine", ALL, coroutine, false},
    {"no-stack", ALL, no_stack, true},
    {"threads", ALL & ~(TUNE | PRINT), many_threads, false},
    {"fork", ALL, fork_here, false},
    {"fork-gpu", 0, fork_with_gpu, false},
    {"fork-in-flight", ALL, fork_in_flight, false},
    {"fork-in-lists", 0, fork_in_lists, false},
    {"no-files", ALL, no_files, true},
    {"no-threads", ALL, no_threads, true},
    {"closed-streams", ALL, closed_streams, false},
    {"no-folder", ALL & ~TUNE, no_folder, false},
};
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

/* ---- a run ---- */

static int set_up(void)
{
    find_wanted();
    if (!mkdtemp(folder))
        return 1;
    snprintf(tuned, sizeof tuned, "%s/host.tile", folder);
    FILE *f = fopen(tuned, "w");
    if (!f || fputs(source, f) < 0 || fclose(f))
        return 1;
    for (int i = 0; i < SITES; i++)
        if (open_site(&sites[i]))
            return 1;
    return 0;
}

static void clean_up(void)
{
    char path[64];
    for (int i = 0; i < SITES; i++)
        close_site(&sites[i]);
    snprintf(path, sizeof path, "%s/host.tune.json", folder);
    remove(path);
    remove(tuned);
    remove(folder);
}

int main(int argc, char **argv)
{
    const struct condition *c = NULL;
    if (argc == 2 && !strcmp(argv[1], "--list"))
        for (int i = 0; i < CONDITIONS; i++)
            puts(conditions[i].name);
    for (int i = 0; i < CONDITIONS && argc == 2; i++)
        if (!strcmp(conditions[i].name, argv[1]))
            c = &conditions[i];
    if (!c)
        return argc == 2 && !strcmp(argv[1], "--list") ? 0 : 2;
    report = dup(2);
    if (report < 0 || set_up())
        return 1;
    may_refuse = c->may_refuse;
    int result = c->be(c->which);
    fesetenv(FE_DFL_ENV);
    clean_up();
    if (result == SKIPPED)
        return SKIPPED;
    tell("%s: %d actions, %d wrong\n", c->name, (int)done, (int)wrong);
    return wrong || result || !done;
}
