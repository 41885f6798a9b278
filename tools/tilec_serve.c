/* tilec_serve.c: the process that compiles for programs (codegen/core_process.h). Users do not
 * call it.
 *
 * 1. It leaves its parent at once, so that no program has a child of ours, which would become a
 *    zombie or turn up in a wait for any child.
 * 2. It announces its build, and then compiles requests one after another. The program reads the
 *    files to import, because it has fixed what they are.
 * 3. It ends when the program ends or hangs up, even during a compilation, and after a compilation
 *    that ran out of memory or failed in LLVM, because it may have lost something. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "codegen/cache/key.h"
#include "codegen/core.h"
#include "codegen/core_process.h"
#include "codegen/process_wire.h"
#include "ir/support/guard.h"
#include "tools/tilec_options.h"

enum { HOST = 0, STACK_MIB = 64 };

static _Noreturn void hang_up(void)
{
    _exit(EXIT_FINE);
}

static void must_send(TlWireKind kind, const char *data, size_t size)
{
    if (!tl_wire_send(HOST, kind, data, size))
        hang_up();
}

/* ---- the end of the program, and the end of this process ---- */

static void *watch(void *nothing)
{
    struct pollfd p = {.fd = HOST, .events = POLLRDHUP};
    (void)nothing;
    while (poll(&p, 1, -1) <= 0)
        continue;
    hang_up();
}

/* The program reads what is said here. */
static void on_signal(int number)
{
    char text[] = "signal 00\n";
    text[7] = (char)('0' + number / 10);
    text[8] = (char)('0' + number % 10);
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(128 + number);
}

static void watch_signals(void)
{
    static char stack[16384];
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void close_others(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0)
        return;
#endif
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

/* false: it cannot be; who waits for the parent sees that the child says nothing. */
static bool leave_parent(void)
{
    pid_t child = fork();
    if (child > 0)
        _exit(EXIT_FINE);
    return child == 0;
}

/* ---- limits ---- */

static size_t bytes_of_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f) {
        if (fscanf(f, "%lu", &pages) != 1)
            pages = 0;
        fclose(f);
    }
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_memory(const TlCore *core, uint64_t mib)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0)
        return;
    uint64_t bytes = bytes_of_space() + ((mib + 2 * STACK_MIB) << 20);
    limit.rlim_cur = mib && bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_AS, &limit);
    core->limit_stack(mib ? (size_t)STACK_MIB << 20 : SIZE_MAX);
}

/* ---- a compilation ---- */

static void say(void *user, const char *rendered)
{
    (void)user;
    must_send(TL_WIRE_SAID, rendered, strlen(rendered) + 1);
}

static void print(void *user, const char *text)
{
    (void)user;
    must_send(TL_WIRE_PRINTED, text, strlen(text) + 1);
}

/* What is in the message outlives it. */
static const char *copy(TlArena *arena, const char *text, size_t size)
{
    return text ? tl_strndup(arena, text, size) : NULL;
}

static const char *read_file(void *user, TlArena *arena, const char *path, size_t *out_size,
                             const char **out_error)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    TlArena mine;
    TlGuard g;
    TlWire answer;
    const char *volatile text = NULL;
    (void)user;
    tl_arena_init(&mine, (TlAlloc){0});
    pthread_mutex_lock(&one_at_a_time);
    must_send(TL_WIRE_READ, path, strlen(path) + 1);
    if (TL_GUARD(&g)) {
        if (tl_wire_receive(HOST, 0, &mine, &answer) != TL_WIRE_OK || answer.kind != TL_WIRE_FILE)
            hang_up();
        size_t size;
        const char *data = tl_wire_next_bytes(&answer, &size), *error = tl_wire_next_text(&answer);
        text = copy(arena, data, size);
        *out_error = copy(arena, error, error ? strlen(error) : 0);
        *out_size = size;
        tl_guard_pop(&g);
    }
    pthread_mutex_unlock(&one_at_a_time);
    tl_arena_free(&mine);
    if (g.fault)
        tl_fault(g.fault, "%s", g.text);
    return text;
}

static void put_tunings(TlSbuf *s, const tilec_output *out)
{
    tl_wire_number(s, out->ntunings);
    for (size_t i = 0; i < out->ntunings; i++) {
        const tilec_tuning *t = &out->tunings[i];
        tl_wire_text(s, t->kernel);
        tl_wire_text(s, t->hash);
        tl_wire_text(s, t->constants);
        tl_wire_text(s, t->keys);
        tl_wire_number(s, t->nkeys);
        tl_wire_number(s, t->nconfigs);
        for (size_t k = 0; k <= t->nconfigs; k++)
            tl_wire_text(s, t->configs[k]);
    }
}

static void answer(TlArena *arena, tilec_status status, const tilec_output *out)
{
    TlSbuf s;
    tl_sbuf_init(&s, arena);
    tl_wire_number(&s, (uint64_t)status);
    tl_wire_number(&s, out != NULL);
    if (out) {
        tl_wire_bytes(&s, out->data, out->size);
        tl_wire_text(&s, out->message);
        tl_wire_text(&s, out->depends);
        tl_wire_text(&s, out->events);
        put_tunings(&s, out);
    }
    must_send(TL_WIRE_DONE, s.text, s.len);
}

/* Relative paths are the program's. */
static void go_to(const char *folder)
{
    static char now[4096];
    if (folder && strlen(folder) < sizeof now && strcmp(folder, now) != 0 && chdir(folder) == 0)
        strcpy(now, folder);
}

static tilec_status compile(const TlCore *core, TlArena *arena, TlWire *w)
{
    tilec_options o = TILEC_OPTIONS_INIT;
    tilec_output *out = NULL;
    TlFiles files = {.read = read_file};
    go_to(tl_wire_next_text(w));
    limit_memory(core, tl_wire_next_number(w));
    const char *name = tl_wire_next_text(w);
    size_t size;
    const char *text = tl_wire_next_bytes(w, &size);
    bool says = tl_wire_next_number(w), prints = tl_wire_next_number(w);
    tl_wire_next_options(w, arena, &o);
    o.diagnostic = says ? say : NULL;
    o.print = prints ? print : NULL;
    o.alloc = tl_libc_alloc;
    must_send(TL_WIRE_BEGUN, NULL, 0);
    tilec_status status = core->compile(name, text, size, &o, &files, &out);
    answer(arena, status, out);
    tilec_output_free(out);
    return status;
}

/* false: this process is of no use any more. */
static bool serve_one(const TlCore *core)
{
    TlArena arena;
    TlWire w;
    TlGuard g;
    volatile bool goes_on = false;
    tl_arena_init(&arena, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        if (tl_wire_receive(HOST, 0, &arena, &w) == TL_WIRE_OK && w.kind == TL_WIRE_COMPILE) {
            tilec_status status = compile(core, &arena, &w);
            goes_on = status != TILEC_NO_MEMORY && status != TILEC_INTERNAL;
        }
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "%s\n", g.text);
    }
    tl_arena_free(&arena);
    return goes_on;
}

static bool greet(const TlCore *core, const char *why)
{
    TlArena arena;
    TlSbuf s;
    TlGuard g;
    tl_arena_init(&arena, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        tl_sbuf_init(&s, &arena);
        tl_wire_text(&s, tl_build_id);
        tl_wire_text(&s, core ? "" : why);
        must_send(TL_WIRE_HELLO, s.text, s.len);
        tl_guard_pop(&g);
    }
    tl_arena_free(&arena);
    return core && !g.fault;
}

int command_serve(void)
{
    char why[TL_CORE_WHY];
    pthread_t watcher;
    int type;
    socklen_t size = sizeof type;
    if (getsockopt(HOST, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
        fprintf(stderr, "tilec: serve is for programs that compile in a process of their own "
                        "(tilec.h)\n");
        return EXIT_INTERNAL;
    }
    if (!leave_parent())
        return EXIT_INTERNAL;
    close_others();
    watch_signals();
    tilec_status status; /* `why` says enough */
    const TlCore *core = tl_core(why, sizeof why, &status);
    if (!greet(core, why) || pthread_create(&watcher, NULL, watch, NULL) != 0)
        return EXIT_INTERNAL;
    while (serve_one(core))
        continue;
    return EXIT_FINE;
}
