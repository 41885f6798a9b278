/* life.c: the list of everything that has threads, which is notified of forks and of the library's
 * end. */
#include "runtime/life.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static tl_life *first;
static atomic_uint forks;
static _Thread_local bool is_forking;

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    is_forking = true;
    for (tl_life *l = first; l; l = l->next)
        if (l->hold)
            l->hold(l);
}

static void in_parent(void)
{
    for (tl_life *l = first; l; l = l->next)
        if (l->let_go)
            l->let_go(l);
    is_forking = false;
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    atomic_fetch_add(&forks, 1);
    for (tl_life *l = first; l; l = l->next)
        l->forked(l);
    is_forking = false;
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

bool tl_life_is_forking(void)
{
    return is_forking;
}

void tl_life_wait(void)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

unsigned tl_life_forks(void)
{
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

void tl_life_begin(tl_life *life)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    life->prev = NULL;
    life->next = first;
    if (first)
        first->prev = life;
    first = life;
    pthread_mutex_unlock(&lock);
}

void tl_life_end(tl_life *life)
{
    pthread_mutex_lock(&lock);
    if (life->prev)
        life->prev->next = life->next;
    else
        first = life->next;
    if (life->next)
        life->next->prev = life->prev;
    pthread_mutex_unlock(&lock);
}

static void __attribute__((destructor)) end_threads(void)
{
    pthread_mutex_lock(&lock);
    for (tl_life *l = first; l; l = l->next)
        if (l->unload)
            l->unload(l);
    pthread_mutex_unlock(&lock);
}
