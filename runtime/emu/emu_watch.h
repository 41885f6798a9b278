/* emu_watch.h: the insides of emu_check.h's watch, shared by emu_check*.c, emu_shadow.c and
 * emu_stats.c.
 *
 * Who happens before whom. A block counts ticks: its tick moves on at every barrier and after every
 * release. An access is stamped with its block, the block's tick, thread and site. Of two accesses
 * a then b, a happens before b when
 *   - the same thread did both, or
 *   - the same block did both and a's tick is before the epoch of b, the tick of the last
 *     barrier, or
 *   - the block of b has seen it: a release of a's thread at or after a, or of any thread of a's
 *     block after a barrier after a, was acquired, through a chain of such pairs perhaps, by b's
 *     thread, or by another thread of b's block before the last barrier.
 * Shuffles order nothing, and within a block neither do atomics. Two accesses of one byte, not
 * ordered and not both reads, race, unless both are atomic and either are of one block or have a
 * scope of the device or more. And where the elements of a scattered store meet, one of the values
 * wins, whichever: stores of one execution of one such op do not race. */
#ifndef TL_EMU_WATCH_H
#define TL_EMU_WATCH_H
#include "runtime/emu/emu_check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { TL_EMU_STAMP_THREADS = 1 << 11, TL_EMU_MAX_SITES = 1 << 20, TL_EMU_MAX_LANES = 64 };
/* The thread of what happens at any time up to the kernel's end: nothing comes behind it. */
enum { TL_EMU_NOBODY = TL_EMU_STAMP_THREADS - 1 };
enum { TL_EMU_STRIPES = 64 }; /* of what host threads share, each with a lock */

typedef struct tl_emu_stamp {
    uint32_t block, tick; /* tick 0: no access */
    uint32_t thread : 11, site : 20;
    uint32_t special : 1; /* an atomic of scope block; a store of which any may win */
    uint32_t visit;       /* such stores: how often the thread has been at the site */
} tl_emu_stamp;

/* ---- emu_check_clock.c: order between blocks ---- */

/* What has been seen of other blocks: immutable, counted. NULL: nothing. */
typedef struct tl_emu_clock tl_emu_clock;
/* One block's position in the order. */
typedef struct tl_emu_order {
    uint32_t block, threads;
    uint32_t tick, epoch;
    const uint32_t *ops;     /* by site: the first site of its op (stores of which any may win) */
    tl_emu_clock *seen;      /* by all threads, since the last barrier */
    tl_emu_clock **acquired; /* by each thread since then; NULL until one does */
} tl_emu_order;
/* What was released at each address. */
typedef struct tl_emu_released tl_emu_released;

void tl_emu_order_begin(tl_emu_order *o, uint32_t block, uint32_t threads);
void tl_emu_order_end(tl_emu_order *o);
/* These three: false when out of memory; order is lost then. */
bool tl_emu_order_barrier(tl_emu_order *o);
bool tl_emu_order_atomic(tl_emu_order *o, tl_emu_released *released, const tl_emu_access *access,
                         bool wrote);
tl_emu_released *tl_emu_released_new(void);
void tl_emu_released_free(tl_emu_released *p);
void tl_emu_released_lock(tl_emu_released *p, uint64_t at);
void tl_emu_released_unlock(tl_emu_released *p, uint64_t at);
/* Does the access happen before what `thread` of the block does now? True of no access. */
bool tl_emu_is_before(const tl_emu_order *o, uint32_t thread, tl_emu_stamp s);

/* ---- emu_shadow.c: who touched a byte last ---- */

typedef enum tl_emu_effect { /* the first three: kept as crowds */
                             TL_EMU_READS,
                             TL_EMU_ATOMIC_READS,
                             TL_EMU_ATOMIC_WRITES,
                             TL_EMU_WRITES
} tl_emu_effect;
typedef struct tl_emu_page tl_emu_page;
typedef struct tl_emu_shadow { /* all zero: empty. No lock of its own. */
    tl_emu_page **pages;
    uint32_t npages, nbuckets;
} tl_emu_shadow;
typedef struct tl_emu_conflict {
    tl_emu_stamp with;
    tl_emu_effect effect;
    uint64_t at;
} tl_emu_conflict;
typedef enum tl_emu_verdict { TL_EMU_FINE, TL_EMU_RACES, TL_EMU_NO_MEMORY } tl_emu_verdict;

/* Enters an access of [at, at + bytes), naturally aligned, bytes a power of two up to 16. */
tl_emu_verdict tl_emu_shadow_enter(tl_emu_shadow *s, const tl_emu_order *o, tl_emu_effect effect,
                                   tl_emu_stamp stamp, uint64_t at, uint32_t bytes,
                                   tl_emu_conflict *out);
/* What `thread` of the stamp's block wrote there last, was the stamp's thread, when it says. */
void tl_emu_shadow_restamp(tl_emu_shadow *s, uint32_t thread, tl_emu_stamp stamp, uint64_t at,
                           uint32_t bytes);
void tl_emu_shadow_free(tl_emu_shadow *s);

/* ---- emu_check_memory.c: what was written ---- */

typedef struct tl_emu_memory tl_emu_memory; /* one allocation; stays while a launch uses it */
/* The allocation that has the byte at `at`, and how many bytes of it begin there; NULL: not
 * known. */
tl_emu_memory *tl_emu_memory_at(const void *at, uint64_t *out_left);
/* The first byte of [at, at + bytes), which is inside, that is not written; `bytes` when all
 * are. */
uint32_t tl_emu_memory_gap(const tl_emu_memory *m, uint64_t at, uint32_t bytes);
void tl_emu_memory_mark(tl_emu_memory *m, uint64_t at, uint64_t bytes);
/* A kernel that is not watched may write it: all of it counts as written from here on. */
void tl_emu_memory_give_up(tl_emu_memory *m);

/* ---- emu_check_async.c: copies that are on their way ---- */

typedef struct tl_emu_flights { /* all zero: none */
    uint32_t n;
    uint32_t *cells; /* by 4 bytes of shared memory: who will write them */
    tl_emu_copy *sources;
    uint32_t nsources, room;
} tl_emu_flights;
void tl_emu_flights_free(tl_emu_flights *f);
/* watches_source: somebody may write it during the launch. False: no memory. */
bool tl_emu_flights_add(tl_emu_flights *f, const tl_emu_copy *copy, bool watches_source,
                        uint32_t shared_bytes);
void tl_emu_flights_remove(tl_emu_flights *f, const tl_emu_copy *copy);
/* The copy whose target is touched, or whose source is written: its site and thread, and where
 * (offset, or at). False: none. */
bool tl_emu_flights_meet(const tl_emu_flights *f, const tl_emu_access *access, tl_emu_copy *out);

/* ---- emu_check_products.c: products that are on their way ---- */

typedef struct tl_emu_cell tl_emu_cell;
typedef struct tl_emu_products { /* all zero: the kernel has none */
    uint32_t n; /* reads of any that are on their way */
    tl_emu_cell *cells;
    uint32_t *fences; /* that each thread has passed */
} tl_emu_products;
bool tl_emu_products_make(tl_emu_products *p, uint32_t shared_bytes, uint32_t threads);
void tl_emu_products_free(tl_emu_products *p);
void tl_emu_products_wrote(tl_emu_products *p, const tl_emu_access *access);
/* A bulk copy wrote it, which products see. */
void tl_emu_products_forget(tl_emu_products *p, const tl_emu_access *access);
void tl_emu_products_fence(tl_emu_products *p, uint32_t thread);
/* Does somebody write what a product may still read? */
bool tl_emu_products_meet(const tl_emu_products *p, const tl_emu_access *access,
                          uint32_t *out_site);
/* Did a thread write there last, and make it visible to no product or bulk copy? */
bool tl_emu_products_unseen(const tl_emu_products *p, const tl_emu_access *access,
                            uint32_t *out_writer);
void tl_emu_products_read(tl_emu_products *p, const tl_emu_access *access, bool ends);

/* ---- emu_stats.c ---- */

typedef struct tl_emu_stats tl_emu_stats;
typedef struct tl_emu_block_stats tl_emu_block_stats;
tl_emu_stats *tl_emu_stats_new(const tl_launch *launch, uint32_t lanes); /* NULL: out of memory */
void tl_emu_stats_free(tl_emu_stats *s);
tl_emu_block_stats *tl_emu_block_stats_new(tl_emu_stats *s, uint32_t threads);
/* Adds the block's counts to the launch's. False: out of memory some time, the counts are short. */
bool tl_emu_block_stats_end(tl_emu_block_stats *b);
/* access NULL: predicated off. */
void tl_emu_block_stats_access(tl_emu_block_stats *b, uint32_t site, uint32_t thread,
                               const tl_emu_access *access);
/* The two sides of a copy; NULL: it is predicated off, or reads nothing. */
void tl_emu_block_stats_copy(tl_emu_block_stats *b, uint32_t site, uint32_t thread,
                             const tl_emu_access *from, const tl_emu_access *to);
/* n times 8 rows of 16 bytes of shared memory, loaded by a warp. */
void tl_emu_block_stats_matrices(tl_emu_block_stats *b, uint32_t site, uint32_t n,
                                 const uint32_t *offsets);
void tl_emu_block_stats_count(tl_emu_block_stats *b, uint32_t site, uint32_t thread, tl_leaf leaf);
char *tl_emu_stats_print(const tl_emu_stats *s);

#endif
