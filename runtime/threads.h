/* threads.h: threads of ours, and stacks for callers that have little. */
#ifndef TL_THREADS_H
#define TL_THREADS_H
#include "runtime/driver.h"
#include <pthread.h>

/* As pthread_create, with a stack whose size the process's limits do not change. */
int tl_thread_start(pthread_t *out_thread, void *(*main)(void *), void *arg);

/* Is there stack enough, in this thread and at this depth, for everything here? A launch needs 40
 * KB, the interpreter and kernels may need more. False, too, on a stack that is not the thread's
 * own, as coroutines have. */
bool tl_stack_has_room(void);

/* Calls work(user) on this stack if that has room, else on a thread with a stack of its own, for
 * which the caller waits. The error text is the caller's either way.
 * TILE_NO_RESOURCE: there is no room, and no thread can be had. */
typedef tile_status tl_stack_work(void *user);
tile_status tl_with_stack(tl_stack_work *work, void *user);
#endif
