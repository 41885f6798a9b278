/* emu_fiber.h: contexts of execution on stacks of their own, switched by hand (emu_fiber.c). */
#ifndef TL_EMU_FIBER_H
#define TL_EMU_FIBER_H
#include "runtime/driver.h"

/* A context that is not running. A host thread's own context needs no preparation: it is filled in
 * when something switches away from it. */
typedef struct tl_fiber tl_fiber;
struct tl_fiber {
    void *sp;
    /* what sanitizers must be told */
    const void *bottom;
    size_t bytes;
    void *fake, *context;
    void *ended;    /* the context of who left for here for good */
    tl_fiber *from; /* who switched here last */
};

/* Stacks of one size, each below a page that may not be touched; of one host thread. */
typedef struct tl_fiber_stacks tl_fiber_stacks;

enum { TL_FIBER_STACK = 64 << 10 };

/* bytes: of each stack, at least; rounded up to pages. */
tile_status tl_fiber_stacks_new(size_t bytes, tl_fiber_stacks **out_stacks);
void tl_fiber_stacks_free(tl_fiber_stacks *stacks); /* accepts NULL */
size_t tl_fiber_stack_bytes(const tl_fiber_stacks *stacks);
/* The lowest address of a stack; NULL when there is no memory. The one given back last is taken
 * first: it is in the cache. */
void *tl_fiber_stack_take(tl_fiber_stacks *stacks);
void tl_fiber_stack_give(tl_fiber_stacks *stacks, void *stack);

/* The first switch to `f` calls main(user) on the stack. main must not return. */
void tl_fiber_prepare(tl_fiber *f, const tl_fiber_stacks *stacks, void *stack,
                      void (*main)(void *user), void *user);
/* main calls this first. */
void tl_fiber_started(tl_fiber *self);
/* Goes on with `to`; returns when something switches back to `from`, which is the caller's. */
void tl_fiber_switch(tl_fiber *from, tl_fiber *to);
/* A prepared context that nobody will go back to is no more; its stack may be given back. */
void tl_fiber_drop(tl_fiber *f);
/* tl_fiber_switch for a context that nobody will go back to; its stack may have been given back
 * already. */
_Noreturn void tl_fiber_leave(tl_fiber *from, tl_fiber *to);
#endif
