/* life.h: what becomes of threads and devices when the process forks or the library is unloaded.
 *
 * fork: the child has the memory, but of the threads only the one that called. What other threads
 * were in the middle of is lost there, with the locks that they held; what was idle goes on, after
 * its threads have been started again. Other threads run on while the kernel copies the memory,
 * page after page: what they may change meanwhile is held, or the child gets one half of a change.
 *
 * Unloading (dlclose of this library, or of a plugin that holds it): code that is gone must not
 * run, so threads that wait for work are ended and joined by a destructor. The library is not
 * pinned (RTLD_NODELETE), which would keep a plugin that links it statically from ever being
 * replaced. The destructor also runs when the process exits: a thread that still works then is left
 * alone. */
#ifndef TL_LIFE_H
#define TL_LIFE_H
#include <stdbool.h>

typedef struct tl_life {
    struct tl_life *prev, *next;
    void (*hold)(struct tl_life *life);   /* before a fork; NULL: nothing needs to be held */
    void (*let_go)(struct tl_life *life); /* after it, in the parent; NULL as `hold` is */
    void (*forked)(struct tl_life *life); /* after it, in the child, which has one thread */
    void (*unload)(struct tl_life *life); /* ends its idle threads; NULL: it has none */
} tl_life;

/* From here to tl_life_end the functions may be called, from any thread. */
void tl_life_begin(tl_life *life);
void tl_life_end(tl_life *life);
/* Does this thread fork now (and runs somebody's handler)? */
bool tl_life_is_forking(void);
/* Waits for the end of a fork that another thread has begun. */
void tl_life_wait(void);
/* How many forks lie between this process and the one that loaded the library. */
unsigned tl_life_forks(void);
#endif
