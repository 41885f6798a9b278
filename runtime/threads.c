/* threads.c: the runtime's threads, and stacks for callers that have little.
 *
 * Callers may be threads of 64 KB: those of language runtimes, of audio, of C libraries with a
 * small default. A launch from such a thread runs on a thread made for it, which takes some 30
 * microseconds; a large stack for every launch would cost all others as much. */
#include "runtime/threads.h"
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { STACK_BYTES = 8 << 20, ROOM_BYTES = 192 << 10 };

int tl_thread_start(pthread_t *out_thread, void *(*main)(void *), void *arg)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error)
        return error;
    error = pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (!error)
        error = pthread_create(out_thread, &attr, main, arg);
    pthread_attr_destroy(&attr);
    return error;
}

/* ---- the caller's stack ---- */

static _Thread_local uintptr_t lowest, highest; /* of this thread's; 0: not known yet */

/* Where the bounds are not told (for the first thread they are read from /proc), it is the first
 * thread, and its stack grows as far as the process's limit. */
static void guess_stack(uintptr_t here)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < STACK_BYTES;
    uintptr_t size = known ? (uintptr_t)limit.rlim_cur : (uintptr_t)STACK_BYTES;
    lowest = here > size ? here - size : 1;
    highest = UINTPTR_MAX;
}

static void find_stack(uintptr_t here)
{
    pthread_attr_t attr;
    void *address = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        guess_stack(here);
        return;
    }
    if (pthread_attr_getstack(&attr, &address, &size))
        size = 0;
    pthread_attr_destroy(&attr);
    lowest = (uintptr_t)address + !address;
    highest = (uintptr_t)address + size;
}

/* Is there stack enough, in this thread and at this depth, for everything here? A launch needs 40
 * KB, the interpreter and kernels may need more. False, too, on a stack that is not the thread's
 * own, as coroutines have. */
static bool has_room(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!lowest)
        find_stack(here);
    return here <= highest && here > lowest && here - lowest >= ROOM_BYTES;
}

/* ---- a stack of its own ---- */

typedef struct call {
    tl_stack_work *work;
    void *user;
    tile_status status;
    char *text;
} call;

static void *run(void *arg)
{
    call *c = arg;
    tl_fp_enter();
    c->status = c->work(c->user);
    tile_status broken = tl_broken_status();
    c->status = broken != TILE_OK ? broken : c->status;
    c->text = c->status != TILE_OK ? strdup(tile_last_error()) : NULL;
    return NULL;
}

tile_status tl_with_stack(tl_stack_work *work, void *user)
{
    if (has_room())
        return work(user);
    call c = {.work = work, .user = user};
    pthread_t thread;
    if (tl_thread_start(&thread, run, &c))
        return tl_fail(TILE_NO_RESOURCE, "the calling thread's stack is too small, and no thread "
                                         "with a larger one can be started");
    pthread_join(thread, NULL);
    if (c.status != TILE_OK)
        tl_fail(c.status, "%s", c.text ? c.text : "out of memory");
    free(c.text);
    return c.status;
}
