/* threads.h: the runtime's threads, and stacks for callers that have little. */
#ifndef TL_THREADS_H
#define TL_THREADS_H
#include "runtime/driver.h"
#include <pthread.h>

/* As pthread_create, with a stack whose size the process's limits do not change. */
int tl_thread_start(pthread_t *out_thread, void *(*main)(void *), void *arg);

/* Calls work(user) on this stack if that has room, else on a thread with a stack of its own, for
 * which the caller waits. The error text is the caller's either way.
 * TILE_NO_RESOURCE: there is no room, and no thread can be had. */
typedef tile_status tl_stack_work(void *user);
tile_status tl_with_stack(tl_stack_work *work, void *user);
#endif
