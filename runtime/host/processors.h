/* processors.h: the processors that a pool may use: how many threads can run at once, and the one
 * that each worker is pinned to. Files of /sys and /proc are looked for below `root`: "", but in
 * tests. */
#ifndef TL_PROCESSORS_H
#define TL_PROCESSORS_H
#include "runtime/driver.h"
#include <pthread.h>
#include <sched.h>

enum { TL_MAX_PROCESSORS = 8192 };

/* A set of them, by their numbers. */
typedef struct tl_processors {
    cpu_set_t part[TL_MAX_PROCESSORS / CPU_SETSIZE];
} tl_processors;

/* ---- processors.c ---- */

/* Those that the calling thread may run on, at least one. */
void tl_processors_allowed(tl_processors *out_set);
int tl_processors_count(const tl_processors *set);
bool tl_processors_has(const tl_processors *set, int processor);
/* The first line of root/PATH, without its end; false: there is none. */
bool tl_processors_read(const char *root, char *line, size_t size, const char *path, ...)
    __attribute__((format(printf, 4, 5)));
/* For how many of `most` processors the control groups of this process leave time; at least 1. */
int tl_processors_quota(const char *root, int most);

/* ---- affinity.c ---- */

/* What `text` says, of which errors speak as `name`: worker i of a pool is to run on place[i % n],
 * from `allowed`; to be freed. n = 0: nowhere in particular. BAD_ARGUMENT: wrong words. */
tile_status tl_affinity_places(const char *root, const char *name, const char *text,
                               const tl_processors *allowed, int **out_place, int *out_n);
tile_status tl_affinity_pin(pthread_t thread, int processor);
#endif
