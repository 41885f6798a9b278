/* A compilation in a process of its own (codegen/core_process.h): it gives what compiling here
 * gives; whatever happens to the process is a status, and the next compilation works; the host has
 * no child, no signal and no descriptor of it. Argument: the tilec to start. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "codegen/include/tilec.h"
#include "test/unit/unit.h"

static const char SMALL[] = "kernel k(const f32 x[N], f32 y[N]) grid(1) require(N <= 64)\n"
                            "{ y[0 +: 64] = exp(x[0 +: 64]); }\n";
/* seconds of work, a hundred MB */
static const char LARGE[] =
    "kernel k(const f32 x[N], f32 y[N], const int R = 6000, const int L = 0)\n"
    "    grid(1) require(N <= 64)\n"
    "{\n"
    "    auto v = x[0 +: 64];\n"
    "    static for (int i : range(R)) v = v * v + x[i +: 64];\n"
    "    static for (int i : range(L)) v = v * v + x[i +: 64];\n"
    "    static for (int i : range(L)) v = v * x[i +: 64];\n"
    "    static for (int i : range(L)) v = v + x[i +: 64];\n"
    "    y[0 +: 64] = v;\n"
    "}\n";

static const char *program;

static tilec_options options(const char *limits)
{
    static _Thread_local char setting[4200];
    tilec_options o = TILEC_OPTIONS_INIT;
    snprintf(setting, sizeof setting, "%s%s", program, limits);
    o.process = setting;
    o.cache = "off";
    return o;
}

static tilec_status compile(const char *text, const char *target, const char *limits,
                            tilec_output **out)
{
    tilec_options o = options(limits);
    o.target = target;
    return tilec_compile_source("k.tile", text, strlen(text), &o, out);
}

static bool works(void)
{
    tilec_output *out = NULL;
    tilec_status status = compile(SMALL, "sm_80", "", &out);
    size_t size;
    bool ok = status == TILEC_OK && tilec_output_data(out, &size) && size > 0;
    if (!ok)
        printf("status %d: %s\n", (int)status, tilec_output_message(out));
    tilec_output_free(out);
    return ok;
}

/* ---- the processes, found by a variable that they have from here ---- */

static bool has_mark(const char *pid)
{
    char path[300], text[1 << 16], mark[64];
    size_t n;
    snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    if (n < 12 || memcmp(text, "tilec\0serve", 12) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    if (!(f = fopen(path, "r")))
        return false;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    snprintf(mark, sizeof mark, "%s", getenv("PROCESS_TEST"));
    for (size_t at = 0; at < n; at += strlen(text + at) + 1) {
        text[n] = 0;
        if (!strncmp(text + at, "PROCESS_TEST=", 13) && !strcmp(text + at + 13, mark))
            return true;
    }
    return false;
}

static int list(pid_t pids[], int most)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name >= '0' && *e->d_name <= '9' && n < most && has_mark(e->d_name))
            pids[n++] = (pid_t)atoi(e->d_name);
    if (d)
        closedir(d);
    return n;
}

static int count(void)
{
    pid_t pids[64];
    return list(pids, 64);
}

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static void signal_all(int number)
{
    pid_t pids[64];
    for (int i = list(pids, 64); i > 0; i--)
        kill(pids[i - 1], number);
}

static bool all_gone(void)
{
    for (int i = 0; i < 200 && count() > 0; i++)
        nap(25);
    return count() == 0;
}

/* ---- the same result ---- */

typedef struct Said {
    char text[4000];
} Said;

static void take(void *user, const char *rendered)
{
    Said *s = user;
    strncat(s->text, rendered, sizeof s->text - strlen(s->text) - 1);
}

static void compare(const char *name, const char *text, const char *target, const char *emit)
{
    tilec_output *out[2] = {0};
    tilec_status status[2];
    Said said[2] = {0};
    size_t size[2];
    for (int i = 0; i < 2; i++) {
        tilec_options o = options("");
        if (i)
            o.process = "off";
        o.target = target;
        o.emit = emit;
        o.diagnostic = take;
        o.user = &said[i];
        o.consts = (tilec_const[]){{"B", "64"}};
        o.nconsts = strstr(text, "B)") != NULL;
        status[i] = tilec_compile_source(name, text, strlen(text), &o, &out[i]);
    }
    const void *a = tilec_output_data(out[0], &size[0]), *b = tilec_output_data(out[1], &size[1]);
    CHECK_INT(status[0], status[1]);
    CHECK_INT(size[0], size[1]);
    CHECK(size[0] != size[1] || !size[0] || !memcmp(a, b, size[0]));
    CHECK_STR(said[0].text, said[1].text);
    CHECK_STR(tilec_output_message(out[0]), tilec_output_message(out[1]));
    CHECK_STR(tilec_output_depends(out[0]), tilec_output_depends(out[1]));
    tilec_output_free(out[0]);
    tilec_output_free(out[1]);
}

static void same_results(void)
{
    static const char *const targets[] = {"cpu",    "ref",       "sm_90a",
                                          "gfx942", "emu:sm_80", "sm_80,gfx1100"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        compare("k.tile", SMALL, targets[i], NULL);
    compare("k.tile", SMALL, "sm_80", "ptx");
    compare("k.tile",
            "kernel k(const f32 x[N], f32 y[N], const int B) grid(1) { y[0 +: B] = x[0 +: B]; }",
            "cpu", "header");
    compare("k.tile", "kernel k(f32 y[N]) grid(1) { y[0 +: 4] = nothing; }", "cpu", NULL);
    compare("k.tile", "import \"no_such_file.tile\";\nkernel k(f32 y[N]) grid(1) { y[0] = 1; }",
            "cpu", NULL);
    compare("k.tile", SMALL, "sm_1", NULL);
}

/* Imports are those of the host's folder, wherever it has gone since the process began. */
static void imports(void)
{
    char folder[] = "/tmp/tile-process-XXXXXX", before[4096];
    CHECK(mkdtemp(folder) && getcwd(before, sizeof before) && chdir(folder) == 0);
    FILE *f = fopen("one.tile", "w");
    CHECK(f != NULL);
    if (f) {
        fputs("f32 two(f32 x) { return x * 2; }\n", f);
        fclose(f);
    }
    compare("k.tile", "import \"one.tile\";\nkernel k(f32 y[N]) grid(1) { y[0] = one.two(1.0); }",
            "cpu", NULL);
    unlink("one.tile");
    CHECK(chdir(before) == 0);
    rmdir(folder);
}

/* ---- its end ---- */

static void limits(void)
{
    tilec_output *out = NULL;
#ifndef __SANITIZE_ADDRESS__ /* which has an allocator of its own, and ends in its own words */
    CHECK_INT(compile(LARGE, "gfx942", ",memory=30", &out), TILEC_NO_MEMORY);
    tilec_output_free(out);
    CHECK(works());
#endif
    tilec_options o = options(",seconds=1");
    o.target = "gfx942";
    o.consts = (tilec_const[]){{"L", "6000"}}; /* much more than a second, on any machine */
    o.nconsts = 1;
    CHECK_INT(tilec_compile_source("k.tile", LARGE, strlen(LARGE), &o, &out), TILEC_TOOL);
    CHECK_STR(tilec_output_message(out), "the compilation took more than 1 s, which is its limit");
    tilec_output_free(out);
    CHECK(works());
}

typedef struct Victim {
    pthread_t thread;
    tilec_output *out;
    tilec_status status;
} Victim;

static void *compile_large(void *victim)
{
    Victim *v = victim;
    v->status = compile(LARGE, "gfx942", "", &v->out);
    return NULL;
}

static void dies_by(int number, tilec_status expected, const char *message)
{
    Victim v = {0};
    signal_all(SIGKILL);
    CHECK(all_gone());
    CHECK(pthread_create(&v.thread, NULL, compile_large, &v) == 0);
    for (int i = 0; i < 2000 && count() == 0; i++)
        nap(5);
    nap(300); /* in the midst of it */
    signal_all(number);
    pthread_join(v.thread, NULL);
    CHECK_INT(v.status, expected);
    if (strcmp(tilec_output_message(v.out), message) != 0)
        printf("said: %s\n", tilec_output_message(v.out));
    CHECK(!strcmp(tilec_output_message(v.out), message));
    tilec_output_free(v.out);
    CHECK(works());
}

static void deaths(void)
{
    dies_by(SIGKILL, TILEC_TOOL, "the process that compiled was killed, or ended without a word");
    dies_by(SIGSEGV, TILEC_INTERNAL, "the process that compiled has died: signal 11");
    dies_by(SIGABRT, TILEC_INTERNAL, "the process that compiled has died: signal 06");
    CHECK(works());
    signal_all(SIGKILL); /* while it is idle: nobody sees that */
    CHECK(all_gone());
    CHECK(works());
}

static void *compile_some(void *ok)
{
    for (int i = 0; i < 5; i++)
        *(bool *)ok = works() && *(bool *)ok;
    return NULL;
}

static void threads(void)
{
    enum { N = 8 };
    pthread_t t[N];
    bool ok[N];
    for (int i = 0; i < N; i++) {
        ok[i] = true;
        CHECK(pthread_create(&t[i], NULL, compile_some, &ok[i]) == 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(t[i], NULL);
        CHECK(ok[i]);
    }
    CHECK(count() <= N);
}

/* A child of fork has its own, and ends nobody's. */
static void forks(void)
{
    int status;
    CHECK(works());
    pid_t child = fork();
    if (child == 0)
        _exit(works() ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(works());
}

/* It holds nothing of the host's, and is nobody's child. */
static void leaves_no_trace(void)
{
    int ends[2];
    char c;
    signal_all(SIGKILL);
    CHECK(all_gone());
    CHECK(pipe(ends) == 0); /* not closed by exec */
    CHECK(works());
    close(ends[1]);
    CHECK(read(ends[0], &c, 1) == 0); /* nobody else can write */
    close(ends[0]);
    CHECK(waitpid(-1, NULL, WNOHANG) < 0);
}

static void cannot_start(void)
{
    tilec_output *out = NULL;
    tilec_options o = TILEC_OPTIONS_INIT;
    o.cache = "off";
    o.process = "/no/such/tilec";
    CHECK_INT(tilec_compile_source("k.tile", SMALL, strlen(SMALL), &o, &out), TILEC_TOOL);
    CHECK_STR(tilec_output_message(out),
              "'/no/such/tilec' cannot be started: No such file or directory");
    tilec_output_free(out);
    o.process = "tilec";
    CHECK_INT(tilec_compile_source("k.tile", SMALL, strlen(SMALL), &o, &out), TILEC_USAGE);
    tilec_output_free(out);
    o.process = "/bin/cat";
    CHECK_INT(tilec_compile_source("k.tile", SMALL, strlen(SMALL), &o, &out), TILEC_TOOL);
    tilec_output_free(out);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    char mark[32];
    program = argv[1];
    snprintf(mark, sizeof mark, "%ld", (long)getpid());
    setenv("PROCESS_TEST", mark, 1);
    same_results();
    imports();
    leaves_no_trace();
    limits();
    deaths();
    threads();
    forks();
    cannot_start();
    return unit_result();
}
