/* Threads that compile (worker.h).
 *
 * LLVM follows chains of instructions recursively: a long kernel takes tens of MB of stack, and
 * the caller may be a thread with little. So every compilation has a thread of its own with a
 * large enough stack; pages that are not touched cost nothing. */
#include "codegen/target/worker.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/contract/fp_state.h"

/* The largest of these that the process has room for, which is at most an eighth of its limit
 * (ulimit -v): a compilation takes three, and LLVM has to be loaded and to work beside them. */
static const size_t STACKS[] = {1 << 29, 1 << 26, 1 << 23};
enum { NSTACKS = sizeof STACKS / sizeof *STACKS, PART = 8, GUARD = 1 << 16, LEAST_STACK = 1 << 22 };

/* Workers of this process, between start and join: a fork leaves their locks, and LLVM's, held in
 * the child for ever. */
static atomic_int running;
static atomic_bool lost;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forked(void)
{
    if (running)
        lost = true;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forked);
}

bool tl_worker_is_lost(void)
{
    return lost;
}

static void *run(void *worker)
{
    TlWorker *w = worker;
    tl_fp_enter();
    w->run(w->arg);
    return NULL;
}

static bool start_on(TlWorker *w, size_t size)
{
    pthread_attr_t attr;
    void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return false;
    bool ok = mprotect(stack, GUARD, PROT_NONE) == 0 && pthread_attr_init(&attr) == 0;
    if (ok) {
        ok = pthread_attr_setstack(&attr, stack, size) == 0 &&
             pthread_create(&w->thread, &attr, run, w) == 0;
        pthread_attr_destroy(&attr);
    }
    if (!ok)
        munmap(stack, size);
    w->stack = ok ? stack : NULL;
    w->size = size;
    return ok;
}

static _Atomic size_t most_stack = SIZE_MAX;

void tl_worker_limit_stack(size_t most)
{
    most_stack = most;
}

static size_t largest(void)
{
    struct rlimit space;
    bool limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
                   space.rlim_cur / PART < most_stack;
    return limited ? space.rlim_cur / PART : most_stack;
}

void tl_worker_start(TlWorker *w, void (*f)(void *arg), void *arg)
{
    size_t most = largest();
    *w = (TlWorker){.run = f, .arg = arg};
    pthread_once(&once, watch_forks);
    running++;
    for (int i = 0; i < NSTACKS && !w->is_thread; i++)
        w->is_thread = (STACKS[i] <= most || i + 1 == NSTACKS) && start_on(w, STACKS[i]);
}

/* The caller may run on a stack that is not its thread's, too, as coroutines do. */
static bool has_stack(void)
{
    pthread_attr_t attr;
    void *address;
    size_t size = 0;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (pthread_getattr_np(pthread_self(), &attr))
        return true; /* it is the first thread, and there is no /proc to tell */
    bool known = pthread_attr_getstack(&attr, &address, &size) == 0;
    pthread_attr_destroy(&attr);
    uintptr_t lowest = known ? (uintptr_t)address : 0;
    return known && here > lowest && here <= lowest + size && here - lowest >= LEAST_STACK;
}

bool tl_worker_join(TlWorker *w)
{
    bool ran = w->is_thread || has_stack();
    if (w->is_thread) {
        pthread_join(w->thread, NULL);
        if (!w->keeps_stack)
            munmap(w->stack, w->size);
    } else if (ran) {
        w->run(w->arg);
    }
    running--;
    return ran;
}

uint32_t tl_worker_most(TlAllocFn alloc)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return alloc != tl_libc_alloc || cores < 1 ? 1 : (uint32_t)cores;
}

void *tl_libc_alloc(void *user, void *ptr, size_t old_size, size_t new_size)
{
    (void)user, (void)old_size;
    if (new_size)
        return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}
