/* Threads that compile. */
#ifndef TL_WORKER_H
#define TL_WORKER_H
#include <pthread.h>
#include <stdbool.h>

typedef struct TlWorker {
    pthread_t thread;
    bool is_thread;
    void (*run)(void *arg);
    void *arg;
} TlWorker;

/* Begins run(arg) on a thread with a stack for LLVM; where none can be had, tl_worker_join runs it. */
void tl_worker_start(TlWorker *w, void (*run)(void *arg), void *arg);
void tl_worker_join(TlWorker *w);
#endif
