/* Threads that compile (worker.h).
 *
 * LLVM follows chains of instructions by recursion: a long kernel takes tens of MB of stack, and
 * who calls us may be a thread with little. So every compilation has a thread of its own with a
 * stack that is large enough; pages that are not touched cost nothing. */
#include "codegen/target/worker.h"

#include <stdlib.h>
#include <unistd.h>

#include "runtime/contract/fp_state.h"

enum { STACK = 1 << 29 };

static void *run(void *worker)
{
    TlWorker *w = worker;
    tl_fp_enter();
    w->run(w->arg);
    return NULL;
}

void tl_worker_start(TlWorker *w, void (*f)(void *arg), void *arg)
{
    pthread_attr_t attr;
    *w = (TlWorker){.run = f, .arg = arg};
    if (pthread_attr_init(&attr))
        return;
    w->is_thread = pthread_attr_setstacksize(&attr, STACK) == 0 &&
                   pthread_create(&w->thread, &attr, run, w) == 0;
    pthread_attr_destroy(&attr);
}

void tl_worker_join(TlWorker *w)
{
    if (w->is_thread)
        pthread_join(w->thread, NULL);
    else
        w->run(w->arg);
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
