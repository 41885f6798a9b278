/* Threads that compile (worker.h).
 *
 * LLVM follows chains of instructions by recursion: a long kernel takes tens of MB of stack, and
 * who calls us may be a thread with little. So every compilation has a thread of its own with a
 * stack that is large enough; pages that are not touched cost nothing. */
#include "codegen/target/worker.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The largest of these that the process has room for. */
static const size_t STACKS[] = {1 << 29, 1 << 26, 1 << 23};
enum { NSTACKS = sizeof STACKS / sizeof *STACKS, GUARD = 1 << 16 };

static void *run(void *worker)
{
    TlWorker *w = worker;
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

void tl_worker_start(TlWorker *w, void (*f)(void *arg), void *arg)
{
    *w = (TlWorker){.run = f, .arg = arg};
    for (int i = 0; i < NSTACKS && !w->is_thread; i++)
        w->is_thread = (STACKS[i] <= most_stack || i + 1 == NSTACKS) && start_on(w, STACKS[i]);
}

void tl_worker_join(TlWorker *w)
{
    if (!w->is_thread) {
        w->run(w->arg);
        return;
    }
    pthread_join(w->thread, NULL);
    if (!w->keeps_stack)
        munmap(w->stack, w->size);
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
