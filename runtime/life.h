/* life.h: what becomes of threads and devices when the process forks or the library is unloaded.
 *
 * fork: the child has the memory, but of the threads only the one that called. What other threads
 * were in the middle of is lost there, with the locks that they held; what was idle goes on, after
 * its threads have been started again.
 *
 * Unloading (dlclose of this library, or of a plugin that holds it): code that is gone must not
 * run, so threads that wait for work are ended and joined by a destructor. The library is not
 * pinned (RTLD_NODELETE), which would keep a plugin that links it statically from ever being
 * replaced. The destructor also runs when the process exits: a thread that still works then is left
 * alone. */
#ifndef TL_LIFE_H
#define TL_LIFE_H

typedef struct tl_life {
    struct tl_life *prev, *next;
    void (*forked)(struct tl_life *life); /* in the child, which has one thread */
    void (*unload)(struct tl_life *life); /* ends its idle threads; NULL: it has none */
} tl_life;

/* From here to tl_life_end the functions may be called, from any thread. */
void tl_life_begin(tl_life *life);
void tl_life_end(tl_life *life);
/* How many forks lie between this process and the one that loaded the library. */
unsigned tl_life_forks(void);
#endif
