/* emu_check.h: what the emulator watches while a kernel runs: races, bounds, alignment,
 * uninitialised reads; and what it counts: sectors per request, bank conflicts, instructions. The
 * core (emu_*.c) reports every leaf; this part (emu_check*.c, emu_stats.c) keeps shadow state and
 * writes reports. */
#ifndef TL_EMU_CHECK_H
#define TL_EMU_CHECK_H
#include "runtime/driver.h"
#include "runtime/contract/leaf.h"

typedef enum tl_emu_space { TL_EMU_GLOBAL, TL_EMU_SHARED } tl_emu_space;
typedef enum tl_emu_kind { TL_EMU_LOAD, TL_EMU_STORE, TL_EMU_ATOMIC } tl_emu_kind;

/* One access of one thread that its predicate lets through. */
typedef struct tl_emu_access {
    tl_emu_space space;
    tl_emu_kind kind;
    uint32_t site;     /* in the kernel's site table */
    uint32_t thread;   /* in its block */
    uint64_t at;       /* address, or byte offset in the block's shared memory */
    uint32_t bytes;
    uint32_t atom, order, scope; /* atomics: tl_atom; ir/enums.def's numbers */
} tl_emu_access;

/* One asynchronous copy of one thread from global to shared memory. */
typedef struct tl_emu_copy {
    uint32_t site, thread, offset, bytes;
    uint64_t at; /* address */
    bool inside; /* false: of zeros; nothing is read */
} tl_emu_copy;

/* The site's row; NULL when the kernel has no such. */
static inline const tile_image_site *tl_emu_site(const tl_launch *l, uint32_t site)
{
    const tile_image_site *sites = (const void *)tl_image_text(l->image, l->kernel->sites);
    return site < l->kernel->nsites ? &sites[site] : NULL;
}

/* Its position in the source; the path is never NULL. */
typedef struct tl_emu_position {
    const char *path;
    uint32_t line, col, leaf;
} tl_emu_position;
static inline tl_emu_position tl_emu_site_position(const tl_launch *l, uint32_t site)
{
    const tile_image_site *s = tl_emu_site(l, site);
    const char *path = s ? tl_image_path(l->image, s->file) : NULL;
    return s ? (tl_emu_position){path ? path : "?", s->line, s->col, s->leaf}
             : (tl_emu_position){"?", 0, 0, TL_LEAF_COUNT};
}

/* What one launch is watched by. Shared by the host threads that run its blocks. */
typedef struct tl_emu_watch tl_emu_watch;
/* What one block is watched by; used by one host thread. */
typedef struct tl_emu_block_watch tl_emu_block_watch;

typedef struct tl_emu_watch_options {
    bool check;  /* races, uninitialised reads */
    bool stats;  /* counters */
    uint32_t lanes, shared_bytes;
} tl_emu_watch_options;

/* A report of an error: what it is, its site's position (tl_sink_fail prints both before the text)
 * and a text. Of a launch's, tl_sink_fail keeps the one of the lowest block. Called from any host
 * thread. */
typedef void (*tl_emu_report)(void *user, int64_t block, tl_fail_kind kind, uint32_t site,
                              const char *text);

tile_status tl_emu_watch_new(const tl_launch *launch, const tl_emu_watch_options *options,
                             tl_emu_report report, void *user, tl_emu_watch **out_watch);
void tl_emu_watch_free(tl_emu_watch *w);
/* After the last block: not TILE_OK when memory ran out while blocks ran, so that races may have
 * been missed and counters are short. */
tile_status tl_emu_watch_status(const tl_emu_watch *w);
tile_status tl_emu_block_begin(tl_emu_watch *w, int64_t block, uint32_t threads,
                               tl_emu_block_watch **out_block);
void tl_emu_block_end(tl_emu_block_watch *b);
/* All threads of the block have arrived at a barrier. */
void tl_emu_block_barrier(tl_emu_block_watch *b);
/* Tells of an access before it happens. False: it must not happen (out of bounds, misaligned:
 * always checked); a load then gives 0. */
bool tl_emu_block_access(tl_emu_block_watch *b, const tl_emu_access *access);
/* After an atomic that tl_emu_block_access let through, always and at once: between the two calls a
 * lock is held, so that "who saw whose release" is what really happened. The core does the
 * operation between them and nothing else: no switch of fibers. `wrote`: false for a load and for a
 * compare-and-swap that failed. */
void tl_emu_block_atomic_done(tl_emu_block_watch *b, const tl_emu_access *access, bool wrote);
/* A copy begins. False: it must not happen. Its accesses are those of its thread, now and when it
 * ends; in between nobody may touch its target or write its source. */
bool tl_emu_block_copy_begins(tl_emu_block_watch *b, const tl_emu_copy *copy);
void tl_emu_block_copy_ends(tl_emu_block_watch *b, const tl_emu_copy *copy);
void tl_emu_block_copy_skip(tl_emu_block_watch *b, uint32_t site, uint32_t thread);
/* A warp, which begins with this thread, loads or stores n times 8 rows of 16 bytes. allowed: by
 * row, may it? */
void tl_emu_block_matrices(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint32_t n,
                           bool stores, const uint32_t *offsets, bool *allowed);
/* 16 bytes of a copy by a barrier to this block begin or end to be on their way; `comes`: another
 * block has begun it, and reads for it. False: they must not. Who waits for the barrier sees
 * them. */
typedef enum tl_emu_way { TL_EMU_BEGINS, TL_EMU_COMES, TL_EMU_ENDS } tl_emu_way;
bool tl_emu_block_bulk(tl_emu_block_watch *b, const tl_emu_copy *copy, tl_emu_way way);
/* A product of a warpgroup begins or ends to read 16 bytes of shared memory, for the warp of this
 * thread. False: they are not there. */
bool tl_emu_block_product(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t offset,
                          bool ends);
/* Likewise what brings scales of products, some of which may be missing; *out_missing: the bytes
 * that nobody has written, as bits. */
bool tl_emu_block_brings(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t offset,
                         bool ends, uint32_t *out_missing);
/* A moment in the order of a block's threads, and whether what a thread did then comes before what
 * `thread` does now. Where nothing is checked, always. */
typedef struct tl_emu_moment {
    uint32_t tick, thread; /* tick 0: never */
} tl_emu_moment;
tl_emu_moment tl_emu_block_moment(const tl_emu_block_watch *b, uint32_t thread);
bool tl_emu_block_is_past(const tl_emu_block_watch *b, tl_emu_moment then, uint32_t thread);
/* A bulk store of this thread begins or ends to read 16 bytes of shared memory; one writes bytes of
 * global memory, at any time from now on until they are stored, or to the kernel's end. False: they
 * are not there. */
bool tl_emu_block_sends(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint32_t offset,
                        bool ends);
bool tl_emu_block_stores(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t at,
                         uint32_t bytes);
/* Such a store has written them, and its thread knows. */
void tl_emu_block_stored(tl_emu_block_watch *b, uint32_t site, uint32_t thread, uint64_t at,
                         uint32_t bytes);
/* What this thread has written to shared memory, products and bulk stores see from here on. */
void tl_emu_block_fence(tl_emu_block_watch *b, uint32_t thread);
/* A leaf of another class was executed by a thread (counters). */
void tl_emu_block_count(tl_emu_block_watch *b, uint32_t site, uint32_t thread, tl_leaf leaf);
/* A memory op of this thread was predicated off (counters need whole warps). */
void tl_emu_block_skip(tl_emu_block_watch *b, uint32_t site, uint32_t thread);

/* The counters of the launch as text for --stats (one line per site and totals), malloc'd. */
char *tl_emu_stats_text(const tl_emu_watch *w);
/* What device memory holds: fresh memory is uninitialised until the host (driver.h `wrote`) or a
 * checked kernel writes it. One registry per process, thread-safe; memory that it does not know
 * counts as written. tl_emu_memory_allocated fails when out of memory; the caller fills the memory
 * with a pattern of its own. */
tile_status tl_emu_memory_allocated(const void *at, uint64_t bytes);
void tl_emu_memory_freed(const void *at);
void tl_emu_memory_written(const void *at, uint64_t bytes);
#endif
