/* Threads that compile. */
#ifndef TL_WORKER_H
#define TL_WORKER_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "ir/support/arena.h"

typedef struct TlWorker {
    pthread_t thread;
    bool is_thread;
    void (*run)(void *arg);
    void *arg;
    bool keeps_stack; /* set by run: something points into it still */
    void *stack;
    size_t size;
} TlWorker;

/* Begins run(arg) on a thread with a stack for LLVM; where none can be had (is_thread is false),
 * tl_worker_join runs it. False: the caller's stack is too small for that, and nothing has run. */
void tl_worker_start(TlWorker *w, void (*run)(void *arg), void *arg);
bool tl_worker_join(TlWorker *w);
/* Was this process forked while a worker ran? Then nothing can be compiled in it. */
bool tl_worker_is_lost(void);
/* Stacks of this process are no larger from now on, if one that small can be. */
void tl_worker_limit_stack(size_t most);
/* How many threads may compile at once: this machine's processors, but one where memory comes from
 * an allocator of the caller's, which need not be thread-safe. */
uint32_t tl_worker_most(TlAllocFn alloc);
/* The allocator of callers that bring none; thread-safe. */
void *tl_libc_alloc(void *user, void *ptr, size_t old_size, size_t new_size);
#endif
