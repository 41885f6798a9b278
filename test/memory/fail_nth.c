/* For LD_PRELOAD: allocation number FAIL_AT of the program, counted from main on, is refused; with
 * FAIL_ALL=1 all that come after it, too. With FAIL_IN=FROM-TO (addresses, hexadecimal) the
 * first one is refused that a function there asks for, or one that it calls. With FAIL_COUNT=FILE
 * their number, with FAIL_IN that of those refused, is written there when the program ends by
 * itself. Allocations are what takes memory of the C library or the system:
 * malloc and its kin, mmap, threads. Programs that the program starts are left alone.
 * test/memory/points.py runs programs with it. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static long at = -1, count; /* at -1: main has not begun */
static int all;
static uintptr_t from, to; /* FAIL_IN */

static int is_refused_in(void)
{
    static __thread int inside; /* the backtrace may allocate */
    void *frame[64];
    int found = 0;
    if (inside || __atomic_load_n(&count, __ATOMIC_RELAXED))
        return 0;
    inside = 1;
    for (int n = backtrace(frame, 64); n-- > 0;)
        found |= (uintptr_t)frame[n] > from && (uintptr_t)frame[n] <= to;
    inside = 0;
    if (!found || __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED))
        return 0;
    errno = ENOMEM;
    return 1;
}

static int is_refused(void)
{
    if (at < 0)
        return 0;
    if (to)
        return is_refused_in();
    long k = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (!at || (k != at && !(all && k > at)))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return is_refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return size && is_refused() ? NULL : __libc_realloc(p, size);
}

void *memalign(size_t alignment, size_t size)
{
    return is_refused() ? NULL : __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *p = memalign(alignment, size);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

typedef void *Map(void *address, size_t size, int protection, int flags, int fd, off_t offset);
typedef int Create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int Start(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void),
                  void (*)(void), void *);

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    static Map *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "mmap");
    return is_refused() ? MAP_FAILED : next(address, size, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return mmap(address, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*f)(void *), void *arg)
{
    static Create *next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return is_refused() ? EAGAIN : next(thread, attr, f, arg);
}

static const char *report;

static void write_count(void)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%ld\n", count), fd;
    if ((fd = open(report, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
        return;
    (void)!write(fd, text, (size_t)n);
    close(fd);
}

static int (*program)(int, char **, char **);

static int begin_program(int argc, char **argv, char **environment)
{
    const char *n = getenv("FAIL_AT"), *in = getenv("FAIL_IN");
    char *end;
    if (in) {
        from = strtoul(in, &end, 16);
        to = *end == '-' ? strtoul(end + 1, NULL, 16) : 0;
        (void)backtrace((void *[1]){0}, 1); /* loads what it needs */
    }
    all = getenv("FAIL_ALL") != NULL;
    report = getenv("FAIL_COUNT");
    if (report)
        atexit(write_count);
    unsetenv("LD_PRELOAD");
    at = n ? atol(n) : 0;
    return program(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    Start *next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    return next(begin_program, argc, argv, init, fini, rtld_fini, stack_end);
}
