/* emu.h: shared by emu_*.c. Workers, each on a host thread, run a launch (job); a worker has some
 * blocks, a block has threads, each a fiber. The essay is in emu_run.c. */
#ifndef TL_EMU_H
#define TL_EMU_H
#include "runtime/host/elf.h"
#include "runtime/emu/emu_check.h"
#include "runtime/emu/emu_fiber.h"
#include <stdatomic.h>

enum { TL_EMU_MAX_THREADS = 1024, TL_EMU_BARRIERS = 16 };

/* Runs one thread of a block. */
typedef void (*tl_emu_entry)(const uint64_t *params);

typedef struct tl_emu_kernel {
    tl_emu_entry entry;
    uint32_t threads, lanes, shared_bytes; /* lanes divides threads */
    size_t stack_bytes;                    /* of one thread */
} tl_emu_kernel;

/* In what order threads and blocks go on (emu_sched.c), and when copies arrive (emu_async.c). */
typedef enum tl_emu_policy {
    TL_EMU_ROUND_ROBIN, /* "rr" */
    TL_EMU_REVERSE,     /* "reverse": last warps and blocks first */
    TL_EMU_AHEAD,       /* "ahead": one warp as far ahead of the others as it can get */
    TL_EMU_RANDOM       /* "random:SEED": anybody after every leaf */
} tl_emu_policy;
typedef struct tl_emu_schedule {
    tl_emu_policy order;
    uint64_t seed;
} tl_emu_schedule;
bool tl_emu_schedule_parse(const char *text, tl_emu_schedule *out_schedule);

/* ---- a launch ---- */

typedef struct tl_emu_worker tl_emu_worker;
/* The workers of a device: they keep their memory from launch to launch. */
typedef struct tl_emu_crew {
    uint32_t nworkers;
    tl_emu_worker *workers;
} tl_emu_crew;

/* What is done to what orders threads: nothing of it, bytes that it expects are others, or it waits
 * until bulk stores have read shared memory only, where it is for global memory, too. */
typedef enum tl_emu_mutation {
    TL_EMU_LEAVE_OUT,
    TL_EMU_MORE_BYTES,
    TL_EMU_FEWER_BYTES,
    TL_EMU_READ_ONLY
} tl_emu_mutation;

typedef struct tl_emu_job {
    const tl_emu_kernel *kernel;
    const tl_launch *launch;
    tl_sink *sink;
    tl_emu_watch *watch;
    tl_emu_schedule schedule;
    /* approximate instructions are off, by this seed (emu_math.c); 0: they are not */
    uint64_t perturb;
    bool stats;
    /* site of a barrier, commit or wait that is left out (mutation); UINT32_MAX: none */
    uint32_t dropped;
    tl_emu_mutation mutation;
    atomic_bool met;  /* somebody came there */
    atomic_int_fast64_t next; /* block to start */
    atomic_bool no_memory;
} tl_emu_job;

tile_status tl_emu_crew_open(tl_pool *pool, tl_emu_crew *crew);
void tl_emu_crew_close(tl_emu_crew *crew);
/* Fill in kernel to stats of a zeroed job. Failures of the kernel go to the sink. */
tile_status tl_emu_run(tl_pool *pool, tl_emu_crew *crew, tl_emu_job *job);
/* Blocks of one worker, one of several, that can be under way at once: as many as have stacks, each
 * of which is two mappings, of which Linux gives a process 65530. */
uint32_t tl_emu_resident(uint32_t threads, uint32_t workers);

/* ---- a block ---- */

typedef struct tl_emu_thread {
    tl_fiber fiber;
    void *stack; /* NULL: it has not begun, or has ended */
    uint32_t index, position;
    /* The collective that it waits at. constant: what all must agree on besides the site. */
    bool waits;
    tl_leaf leaf;
    uint32_t site, constant;
    uint32_t value, lane, result; /* of shuffles */
    void *mine;                   /* of tl_emu_meet_warp */
    uint64_t prints;              /* begun */
} tl_emu_thread;

typedef struct tl_emu_warp {
    uint32_t arrived, ended;
    uint32_t first; /* thread: the first of those who have arrived */
} tl_emu_warp;

/* Threads by their position in the schedule's order. */
typedef struct tl_emu_set {
    uint64_t words[TL_EMU_MAX_THREADS / 64];
    uint32_t count;
} tl_emu_set;

/* Why the worker goes on in its own context. */
typedef enum tl_emu_event {
    TL_EMU_SLICE,  /* all threads that could run wait for another block, it seems */
    TL_EMU_ENDED, /* all threads have ended */
    TL_EMU_STUCK, /* nobody can run */
    TL_EMU_BROKEN /* a report has been made; the block cannot go on */
} tl_emu_event;

/* Blocks that run as a cluster, all of one worker; a block alone is one, too. */
typedef struct tl_emu_block tl_emu_block;
typedef struct tl_emu_cluster {
    uint32_t size, running;
    uint32_t arrived, site;  /* blocks at its barrier, and which that is */
    uint64_t changes;        /* what can end a wait of one of them */
    bool broken;             /* one of them is */
    tl_emu_block *blocks[TL_MAX_CLUSTER]; /* NULL: has ended */
} tl_emu_cluster;

typedef struct tl_emu_copies tl_emu_copies;
typedef struct tl_emu_printed tl_emu_printed;
enum { TL_EMU_GROUPS = TL_EMU_MAX_THREADS / 128 };

struct tl_emu_block {
    tl_emu_job *job;
    tl_emu_worker *worker;
    tl_emu_block *next; /* among the resident, or the unused */
    tl_fiber *main;     /* the worker's context */
    void (*life)(void *block); /* what a thread does when it first runs; does not return */
    tl_fiber_stacks *stacks;
    tl_emu_block_watch *watch;
    int64_t linear;
    tl_emu_cluster *cluster;
    uint32_t rank; /* in it */
    bool at_meeting; /* all threads wait for the other blocks of the cluster, */
    uint64_t met;    /* as they have so often */
    uint32_t nthreads, nwarps, lanes, ended;
    uint32_t warps_waiting, first_warp; /* at a barrier; the first of them */
    uint64_t at_number[TL_EMU_BARRIERS]; /* warps that have come to each, as bits */
    uint64_t passing[TL_EMU_BARRIERS];   /* of these, those that do not wait */
    bool random;
    tl_emu_event event;
    uint64_t chance; /* state of the random numbers */
    uint64_t atomics;
    tl_emu_thread *current;
    tl_emu_set ready, idle;             /* may run; may run, but only spins */
    uint16_t order[TL_EMU_MAX_THREADS]; /* thread at each position */
    tl_emu_thread *threads;             /* by index */
    tl_emu_warp *warps;
    uint32_t room_threads, room_shared; /* allocated */
    char *shared;
    uint32_t room_copies;
    tl_emu_copies *copies; /* by thread: that are on their way */
    struct tl_emu_bulk *bulk; /* NULL: none yet */
    struct tl_emu_stores *stores; /* likewise */
    uint32_t room_products;
    struct tl_emu_products_of_warp *products; /* by warp */
    struct tl_emu_tensor *tensor; /* NULL: none yet */
    struct tl_emu_matrices *matrices; /* likewise */
    uint32_t registers[TL_EMU_GROUPS]; /* of each thread of four warps (emu_registers.c) */
    struct {
        tl_emu_printed *data;
        uint64_t base, len, room; /* data[0] is print number base */
    } prints;
};

/* ---- emu_block.c ---- */

/* The block that this host thread runs, while a fiber runs. */
extern _Thread_local tl_emu_block *tl_emu_now;

void tl_emu_count(tl_emu_block *b, uint32_t site, tl_leaf leaf);
/* Is the site left out (TILE_EMU_DROP_BARRIER)? */
bool tl_emu_is_dropped(tl_emu_block *b, uint32_t site);
/* The current block, in which the leaf is counted; NULL: the site is left out. */
tl_emu_block *tl_emu_enter(uint32_t site, tl_leaf leaf);
/* The bytes that an arrival expects, more or fewer where that is the mutation. */
uint32_t tl_emu_bytes_expected(tl_emu_block *b, uint32_t site, uint32_t bytes);
/* Does the wait for bulk stores, which is for global memory, wait for that, or is it mutated? */
bool tl_emu_waits_for_memory(tl_emu_block *b, uint32_t site);

/* A tl_emu_report whose user is the job. */
void tl_emu_report_failure(void *job, int64_t block, tl_fail_kind kind, uint32_t site,
                           const char *text);
/* Reports what is wrong at the site. */
void tl_emu_say(tl_emu_block *b, tl_fail_kind kind, uint32_t site, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same; the block ends. */
_Noreturn void tl_emu_complain(tl_emu_block *b, tl_fail_kind kind, uint32_t site,
                               const char *format, ...) __attribute__((format(printf, 4, 5)));
_Noreturn void tl_emu_break(tl_emu_block *b);
/* realloc to n of `size` bytes; where there is no memory, the block ends. */
void *tl_emu_grown(tl_emu_block *b, void *data, size_t n, size_t size);
/* The same where n of *room are used, so that there is one more. */
void *tl_emu_room(tl_emu_block *b, void *data, uint32_t n, uint32_t *room, size_t size);
/* An invariant (invariant.h) in a thread of the block: where it does not hold, the block ends and
 * the launch fails with TILE_INTERNAL and the text, at the source position of the leaf's call.
 * Outside of threads, the emulator uses TL_INVARIANT_OR and TL_INVARIANT_VOID; tl_emu_run returns
 * what they find. */
#define TL_EMU_INVARIANT(b, site, cond, ...)                                                       \
    TL_INVARIANT_ELSE(cond, tl_emu_broken((b), (site)), __VA_ARGS__)
_Noreturn void tl_emu_broken(tl_emu_block *b, uint32_t site);

/* ---- emu_sched.c ---- */

void tl_emu_set_add(tl_emu_set *s, uint32_t position);
void tl_emu_set_remove(tl_emu_set *s, uint32_t position);
/* Puts all threads of a new block into the schedule's order, ready. */
void tl_emu_block_order(tl_emu_block *b);
uint64_t tl_emu_random(tl_emu_block *b);
/* In the worker's context: runs threads until something happens. */
tl_emu_event tl_emu_block_slice(tl_emu_block *b);
/* The current thread, which is in `ready` no more, lets others run; returns when it was made
 * ready and the schedule comes to it. */
void tl_emu_switch_away(tl_emu_block *b);
/* The current thread has ended. Returns only if another one begins on its stack, as the current. */
void tl_emu_leave(tl_emu_block *b);
/* The current thread waits for something that only others can do. */
void tl_emu_spin(tl_emu_block *b);

/* ---- emu_meet.c: collectives ---- */

void tl_emu_meet_barrier(tl_emu_block *b, uint32_t site);
/* Of so many threads, at the barrier of that number. leaf: BARRIER_OF, TURN_TAKE, TURN_PASS */
void tl_emu_meet_some(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t number,
                      uint32_t threads);
/* Of all threads of the cluster. */
void tl_emu_meet_cluster(tl_emu_block *b, uint32_t site);
/* constant: the mask of shfl_xor, n of shfl_end, both of shfl_shift, 0 of shfl_idx. */
uint32_t tl_emu_meet_shuffle(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t value,
                             uint32_t lane, uint32_t constant);
/* The last lane of the warp to come acts for all: `mine` of each lane, by lane. constant: what all
 * must agree on. */
void tl_emu_meet_warp(tl_emu_block *b, tl_leaf leaf, uint32_t site, uint32_t constant, void *mine,
                      void (*act)(tl_emu_block *b, void *const *mine));
/* A thread has ended: reports when others wait for it. */
void tl_emu_meet_without(tl_emu_block *b, const tl_emu_thread *t);
/* All threads have ended: reports what others of the block or the cluster wait for. */
void tl_emu_meet_ended(tl_emu_block *b, uint32_t site);
/* Nobody can run: says who waits where. */
void tl_emu_report_deadlock(tl_emu_block *b);

/* ---- emu_async.c: of the current thread ---- */

/* Lists for so many threads; false: no memory. */
bool tl_emu_copies_make_room(tl_emu_block *b, uint32_t threads);
void tl_emu_copies_free(tl_emu_block *b);
void tl_emu_copies_reset(tl_emu_block *b); /* for a new block */
/* The current thread, which is ready, comes to a leaf: copies may arrive, the schedule chooses. */
void tl_emu_step(tl_emu_block *b);
/* A thread has returned: reports what it has not waited for. */
void tl_emu_copies_ended(tl_emu_block *b, const tl_emu_thread *t);
/* The leaf: begins a copy of 16 bytes. */
void tl_emu_cp_async_16(uint32_t site, uint32_t pred, uint32_t slot, uint32_t offset, uint64_t at,
                        uint32_t inside, uint32_t hints);

/* ---- emu_print.c ---- */

void tl_emu_print_element(tl_emu_block *b, uint32_t site, uint32_t text, uint32_t dtype,
                          uint32_t index, uint64_t bits);
/* At the block's end: what is incomplete is an error unless the block is broken. */
void tl_emu_print_end(tl_emu_block *b);

/* ---- emu_mma.c ---- */

/* Where element e of a lane's operand (0 A, 1 B, 2 C) is in its matrix. per_word: elements of a
 * word. */
void tl_emu_mma_cell(tl_mma_kind kind, int operand, uint32_t k, uint32_t per_word, uint32_t lane,
                      uint32_t e, uint32_t *out_row, uint32_t *out_column);
/* Of products with scales: which lane, and which byte behind the instruction's first one, has scale
 * number `block` along K of a row of A or a column of B. */
void tl_emu_mma_scale(tl_mma_kind kind, int operand, uint32_t free, uint32_t block,
                      uint32_t *out_lane, uint32_t *out_byte);
uint32_t tl_emu_type_bytes(uint32_t type); /* tile_dtype */
/* An operand's element. tf32: NVIDIA's instructions take 10 bits of an f32's fraction. */
typedef union tl_emu_number {
    double f;
    uint64_t i;
} tl_emu_number;
tl_emu_number tl_emu_number_of(uint32_t type, uint64_t bits, bool integer, bool tf32);

/* ---- emu_wgmma.c: products of the current warp ---- */

/* Lists for so many warps; false: no memory. */
bool tl_emu_wgmma_make_room(tl_emu_block *b, uint32_t warps);
void tl_emu_wgmma_free(tl_emu_block *b);
void tl_emu_wgmma_reset(tl_emu_block *b); /* for a new block */
/* A thread has returned: reports what it has not waited for. */
void tl_emu_wgmma_ended(tl_emu_block *b, const tl_emu_thread *t);

/* ---- emu_tensor.c: tensor memory, products onto it ---- */

void tl_emu_tensor_free_all(tl_emu_block *b);
void tl_emu_tensor_reset(tl_emu_block *b); /* for a new block */
/* All threads have returned: reports what was not given back, or waited for. */
void tl_emu_tensor_ended(tl_emu_block *b);
/* The block, b or its partner, by a commit of which a product is to arrive at b's barrier at this
 * offset; NULL: none. */
tl_emu_block *tl_emu_tensor_is_due(tl_emu_block *b, uint32_t offset);
/* Of such a commit, are there products that are not done? */
bool tl_emu_tensor_is_under_way(tl_emu_block *b, uint32_t offset);
/* The block's oldest commit to this barrier (pair: and its partner's), of which there is one,
 * arrives: products until it are done. Where that is; other: there, too. */
typedef struct tl_emu_arrival {
    uint32_t site, offset;
    tl_emu_block *other;
} tl_emu_arrival;
tl_emu_arrival tl_emu_tensor_arrives(tl_emu_block *b, uint32_t offset, bool pair);
/* The current thread of b arrives at a barrier of another block: what it knows to be over in b's
 * tensor memory is over for who waits for that. The arrival's number, from 1 on. */
void tl_emu_tensor_hands(tl_emu_block *b, uint64_t *out_number);
/* The current thread of b has waited for a barrier at which the other block of its pair arrived. */
void tl_emu_tensor_waited(tl_emu_block *b, uint64_t number);
/* How an operand of 16-byte pieces lies in shared memory: wgmma's and these products' descriptors
 * say the same in different bits. */
typedef struct tl_emu_matrix {
    uint32_t start, lead, stride, span; /* bytes */
    uint32_t piece;                     /* bytes that the swizzle moves as one: 16 or 32 */
    bool across;                        /* rows run along M or N */
} tl_emu_matrix;
/* Where the element at `i` along M or N and `k`, of `bytes`, is. */
uint32_t tl_emu_matrix_at(const tl_emu_matrix *m, uint32_t bytes, uint32_t i, uint32_t k);

/* ---- emu_bulk.c: barriers that count, copies of boxes ---- */

void tl_emu_bulk_free(tl_emu_block *b);
void tl_emu_bulk_reset(tl_emu_block *b); /* for a new block */
/* All threads have returned: reports what nobody has waited for. */
void tl_emu_bulk_ended(tl_emu_block *b);

/* ---- emu_bulk_store.c: stores of boxes ---- */

void tl_emu_stores_free(tl_emu_block *b);
void tl_emu_stores_reset(tl_emu_block *b); /* for a new block */
/* All threads have returned: reports what nobody has waited for. */
void tl_emu_stores_ended(tl_emu_block *b);

/* ---- emu_registers.c ---- */

void tl_emu_registers_reset(tl_emu_block *b); /* for a new block */

/* ---- emu_leaf.c ---- */

/* {"tl_emu_NAME", address} of every leaf, and what else kernels of the emulator may call. */
enum { TL_EMU_KNOWN = TL_LEAF_COUNT + 1 };
extern const tl_elf_symbol tl_emu_known[TL_EMU_KNOWN];
#endif
