/* Processes that compile, from the program's side. Idle ones are kept in a list; a compilation
 * takes one from there, or starts one. A process compiles for one thread at a time, so a death
 * concerns one compilation only.
 *
 * A process soon stops being a child of the program (tools/tilec_serve.c), and ends when its
 * socket is shut: when the program ends, when it unloads this library, or by tl_server_drop. After
 * a fork, both would talk to the same processes, so the child forgets them and starts its own. */
#include "codegen/process_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/cache/key.h"
#include "codegen/process_wire.h"
#include "ir/support/guard.h"

extern char **environ;

/* Idle processes that are kept for later compilations; how long one may take to start. */
enum { MOST_IDLE = 16, START_MS = 30000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static TlServer *idle;
static uint32_t nidle;

static void free_server(TlServer *s)
{
    if (s->fd >= 0)
        close(s->fd);
    if (s->said >= 0)
        close(s->said);
    free(s);
}

void tl_server_drop(TlServer *s)
{
    if (s && s->fd >= 0)
        shutdown(s->fd,
                 SHUT_RDWR); /* copies of the descriptor, in a child of fork, do not matter */
    if (s)
        free_server(s);
}

/* ---- the program's life ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    while (idle) {
        TlServer *s = idle;
        idle = s->next;
        free_server(s);
    }
    nidle = 0;
    pthread_mutex_unlock(&lock);
}

static void watch_fork(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

__attribute__((destructor)) static void end_all(void)
{
    pthread_mutex_lock(&lock);
    while (idle) {
        TlServer *s = idle;
        idle = s->next;
        tl_server_drop(s);
    }
    nidle = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- starting ---- */

/* Out of the way of descriptors 0 to 2, which the process gets. */
static int above_standard(int fd)
{
    if (fd < 0 || fd > 2)
        return fd;
    int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    return other;
}

static bool prepare(posix_spawn_file_actions_t *files, posix_spawnattr_t *attr, int socket,
                    int said)
{
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    bool ok = posix_spawn_file_actions_adddup2(files, socket, 0) == 0 &&
              posix_spawn_file_actions_addopen(files, 1, "/dev/null", O_WRONLY, 0) == 0;
    ok = ok &&
         (said >= 0 ? posix_spawn_file_actions_adddup2(files, said, 2)
                    : posix_spawn_file_actions_addopen(files, 2, "/dev/null", O_WRONLY, 0)) == 0;
    return ok && posix_spawnattr_setsigmask(attr, &none) == 0 &&
           posix_spawnattr_setsigdefault(attr, &all) == 0 &&
           posix_spawnattr_setpgroup(attr, 0) == 0 &&
           posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETPGROUP) == 0;
}

/* 0, or an error's number. */
static int spawn(const char *program, int socket, int said)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    pid_t child;
    char *const words[] = {(char[]){"tilec"}, (char[]){"serve"}, NULL};
    if (posix_spawn_file_actions_init(&files))
        return ENOMEM;
    int error = posix_spawnattr_init(&attr) ? ENOMEM : 0;
    if (!error) {
        error = prepare(&files, &attr, socket, said)
                    ? posix_spawn(&child, program, &files, &attr, words, environ)
                    : ENOMEM;
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&files);
    while (!error && waitpid(child, NULL, 0) < 0 && errno == EINTR) /* it leaves us at once */
        continue;
    return error;
}

void tl_server_last_words(const TlServer *s, char *text, size_t size)
{
    off_t end = s->said >= 0 ? lseek(s->said, 0, SEEK_END) : 0;
    off_t from = end > (off_t)size - 1 ? end - (off_t)size + 1 : 0;
    ssize_t n = end > 0 ? pread(s->said, text, size - 1, from) : 0;
    text[n > 0 ? n : 0] = 0;
    for (char *p = text; *p; p++)
        if (*p == '\n')
            *p = p[1] ? ';' : 0;
}

/* Is it of this build, and can it compile? */
static bool listen_to(TlServer *s, char *why, size_t size)
{
    TlArena arena;
    TlGuard g;
    TlWire hello;
    char words[256];
    volatile bool ok = false;
    tl_arena_init(&arena, (TlAlloc){0});
    if (TL_GUARD(&g)) {
        TlWireEnd end = tl_wire_receive(s->fd, tl_wire_now() + START_MS, &arena, &hello);
        bool known = end == TL_WIRE_OK && hello.kind == TL_WIRE_HELLO;
        const char *build = known ? tl_wire_next_text(&hello) : "",
                   *unable = known ? tl_wire_next_text(&hello) : NULL;
        tl_server_last_words(s, words, sizeof words);
        if (!known)
            snprintf(why, size, "'%s' does not begin to compile: %s", s->program,
                     *words                ? words
                     : end == TL_WIRE_LATE ? "it says nothing"
                                           : "it ended");
        else if (strcmp(build, tl_build_id) != 0)
            snprintf(why, size, "'%s' is of another build of the compiler", s->program);
        else if (*unable)
            snprintf(why, size, "%s: %s", s->program, unable);
        else
            ok = true;
        tl_guard_pop(&g);
    } else {
        snprintf(why, size, "%s", g.text);
    }
    tl_arena_free(&arena);
    return ok;
}

static int connect_to(TlServer *s)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    s->fd = above_standard(ends[0]);
    ends[1] = above_standard(ends[1]);
    s->said = above_standard(memfd_create("tilec", MFD_CLOEXEC));
    if (s->said >= 0)
        fcntl(s->said, F_SETFL, O_APPEND);
    int error = s->fd < 0 || ends[1] < 0 ? EMFILE : spawn(s->program, ends[1], s->said);
    if (ends[1] >= 0)
        close(ends[1]);
    return error;
}

static TlServer *start(const TlProcess *p, tilec_status *out_status, char *why, size_t size)
{
    TlServer *s = malloc(sizeof *s);
    *out_status = TILEC_TOOL;
    if (!s) {
        *out_status = TILEC_NO_MEMORY;
        snprintf(why, size, "out of memory");
        return NULL;
    }
    *s = (TlServer){.fd = -1, .said = -1};
    memcpy(s->program, p->program, sizeof s->program);
    int error = connect_to(s);
    if (error) {
        *out_status = error == ENOMEM ? TILEC_NO_MEMORY : TILEC_TOOL;
        snprintf(why, size, "'%s' cannot be started: %s", s->program, strerror(error));
    }
    if (!error && listen_to(s, why, size))
        return s;
    tl_server_drop(s);
    return NULL;
}

/* ---- the idle ones ---- */

/* It has nothing to say, so what it says is its end. */
static bool is_alive(const TlServer *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

static TlServer *take_idle(const char *program)
{
    TlServer *found = NULL;
    pthread_mutex_lock(&lock);
    for (TlServer **at = &idle; *at && !found;) {
        TlServer *s = *at;
        bool alive = is_alive(s);
        if (alive && strcmp(s->program, program) != 0) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        nidle--;
        if (alive)
            found = s;
        else
            tl_server_drop(s);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

TlServer *tl_server_take(const TlProcess *p, tilec_status *out_status, char *why, size_t size)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    TlProcess own = *p;
    pthread_once(&once, watch_fork);
    if (!*own.program && !tl_process_find(own.program, sizeof own.program)) {
        *out_status = TILEC_TOOL;
        snprintf(why, size,
                 "the tilec of this library is not found: name it (TILE_PROCESS=/PATH/tilec)");
        return NULL;
    }
    TlServer *s = take_idle(own.program);
    return s ? s : start(&own, out_status, why, size);
}

void tl_server_keep(TlServer *s)
{
    pthread_mutex_lock(&lock);
    bool keep = nidle < MOST_IDLE;
    if (keep) {
        s->next = idle;
        idle = s;
        nidle++;
    }
    pthread_mutex_unlock(&lock);
    if (!keep)
        tl_server_drop(s);
}
