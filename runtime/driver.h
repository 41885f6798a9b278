/* driver.h: what a device is to the rest of the runtime: one table of functions. status.c,
 * device.c, module.c, buffer.c, stream.c and launch.c are written once over it.
 *
 * A host driver (cpu, ref, emu: kernels run in this process, on its memory) writes only open,
 * close, info, code_load, code_prepare, code_unload and run, and takes everything else from host.c:
 * TL_HOST_DRIVER_FUNCTIONS. Every function that fails calls tl_fail, which keeps the text for
 * tile_last_error, and returns its status. */
#ifndef TL_DRIVER_H
#define TL_DRIVER_H
#include <stdbool.h>
#include "runtime/include/tile.h"
#include "runtime/contract/fp_state.h"
#include "runtime/contract/grow.h"
#include "runtime/contract/tile_image.h"
#include "runtime/invariant.h"

enum {
    TL_MAX_PARAMS = TILE_IMAGE_MAX_PARAMS,
    TL_MAX_SLOTS = 1024,
    TL_MAX_SYMS = TILE_IMAGE_MAX_SYMS
};

/* Sets the thread's error text and returns `status`. */
tile_status tl_fail(tile_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Puts the members that the caller's struct has over the defaults in *to (contract/grow.h). For
 * structs that receive results, `to` NULL, it only checks. BAD_ARGUMENT: struct_size is not set. */
#define TL_TAKE(type, to, from, first)                                                             \
    tl_take(#type, (to), sizeof(type), (from), TL_LEAST_SIZE(type, first))
tile_status tl_take(const char *type, void *to, size_t size, const void *from, size_t least);

/* ---- what kernels say ---- */

/* The order is tile_cpu_services.fail's and TlInterpFailKind's; from TL_RUN_MISALIGNED on: the
 * emulator's own. */
typedef enum tl_fail_kind {
    TL_RUN_ASSERT,
    TL_RUN_BOUNDS,
    TL_RUN_ASSUME,
    TL_RUN_UNINIT,
    TL_RUN_ASYNC,
    TL_RUN_MISALIGNED,
    TL_RUN_RACE,
    TL_RUN_DIVERGENCE,
    TL_RUN_DEADLOCK,
    TL_RUN_INTERNAL /* not the kernel's fault but ours */
} tl_fail_kind;

/* Collects the prints and the first failure of the launches of one stream until it is synchronised.
 * Thread-safe. */
typedef struct tl_sink tl_sink;
struct tl_launch;
/* `linear`: the program's number in the order of starting; failures of lower programs win.
 * `path`: source file; `text` may be NULL. */
void tl_sink_fail(tl_sink *sink, const struct tl_launch *launch, int64_t linear, tl_fail_kind kind,
                  const char *path, uint32_t line, uint32_t col, const char *text);
/* data: elements of dtype, row-major, one byte per packed element. Copied. */
void tl_sink_print(tl_sink *sink, const struct tl_launch *launch, int64_t linear, const char *text,
                   tile_dtype dtype,
                   uint32_t rank, const int32_t *shape, const void *data);
/* So many prints were lost on the way. */
void tl_sink_drop(tl_sink *sink, uint64_t prints);

/* ---- launch ---- */

/* Number `index` of `count` equal parts of a grid; count = 0: all of it. */
typedef struct tl_part {
    uint32_t index, count;
} tl_part;

/* A launch as launch.c has checked and resolved it. */
typedef struct tl_launch {
    const void *image;               /* start of the image: strings are offsets from it */
    const tile_image_kernel *kernel;
    int32_t grid[TILE_MAX_GRID];     /* axes that the grid lacks are 1 */
    uint32_t ngrid;
    int32_t group;                   /* grouped order of axes 0 and 1; 0 = plain */
    int32_t cluster;                 /* programs that run together; 1: each alone */
    int32_t dies;                    /* TILE_SLOT_DIES; 0: none, programs start in order */
    /* their product, 1 to 2^31 - 1 (empty grids never come here) */
    int64_t programs;
    int64_t blocks;                  /* that start: `programs`, or fewer, which do all of it; */
    int32_t blocks_slot;             /* the slot that has their number, or -1 */
    uint32_t nargs, nslots;
    /* one per parameter: strides filled in, dtype the parameter's; bytes: memory behind address,
     * UINT64_MAX when unknown */
    const tile_arg *args;
    const uint64_t *slots;           /* the kernel's parameter block */
    const struct tl_tensor_map *maps; /* whose addresses slots have */
    uint32_t nmaps;
    uint64_t sequence;               /* set by the stream: orders what launches print */
    unsigned flags;                  /* TILE_LAUNCH_... */
    tl_part part;
} tl_launch;

/* A row of the image's table of source files; NULL when there is none. */
const char *tl_image_path(const void *image, uint32_t file);
/* The position on the grid of the program that starts as number `linear`. */
void tl_launch_pid(const tl_launch *launch, int64_t linear, int32_t pid[TILE_MAX_GRID]);
/* The same, where pid holds the position of program linear - 1: mostly without a division. */
void tl_launch_next_pid(const tl_launch *launch, int64_t linear, int32_t pid[TILE_MAX_GRID]);
/* How many programs from `linear` (at pid) up to `end` follow each other along the first axis. */
int32_t tl_launch_run(const tl_launch *launch, int64_t linear, int64_t end,
                      const int32_t pid[TILE_MAX_GRID]);
/* How many such runs of `count` programs follow each other along the second axis, at least 1. */
int32_t tl_launch_rows(const tl_launch *launch, int64_t linear, int64_t end,
                       const int32_t pid[TILE_MAX_GRID], int32_t count);
static inline const char *tl_image_text(const void *image, uint32_t offset)
{
    return (const char *)image + offset;
}

/* ---- the table ---- */

typedef struct tl_dev tl_dev;       /* the driver's device */
typedef struct tl_code tl_code;     /* the driver's loaded kernel instance */
typedef struct tl_queue tl_queue;   /* the driver's stream */
typedef struct tl_mark tl_mark;     /* the driver's event */
typedef enum tl_copy_kind { TL_COPY_UP, TL_COPY_DOWN, TL_COPY_WITHIN } tl_copy_kind;

typedef struct tl_driver {
    const char *kind;               /* "cpu" */
    /* `spec`: what follows ':' in the device's name, "" without. options: whole. */
    tile_status (*open)(const char *spec, const tile_device_options *options, tl_dev **out_dev);
    void (*close)(tl_dev *dev);
    void (*info)(tl_dev *dev, tile_device_info *info); /* fills in all but struct_size */
    /* Does the device run images made for `target`? 0: no; else, of several, it is to run the
     * greatest. NULL: for its own target only. */
    uint32_t (*accepts)(tl_dev *dev, const char *target);
    /* Drivers whose images hold code of host CPUs: the features that it may use (cpu_level.h). */
    uint64_t (*cpu_features)(tl_dev *dev);
    /* Settings of the driver's own; NULL: it has none. */
    tile_status (*configure)(tl_dev *dev, const char *key, const char *value);
    /* What was counted in the last launch, malloc'd; NULL: nothing, or the driver does not
     * count. */
    char *(*stats)(tl_dev *dev);

    tile_status (*mem_alloc)(tl_dev *dev, uint64_t bytes, void **out_address);
    void (*mem_free)(tl_dev *dev, void *address);
    /* Allocating and freeing stop the device: freed memory is kept for later buffers. */
    bool mem_is_slow;
    /* Host memory that the device reads and writes by itself. */
    tile_status (*host_alloc)(tl_dev *dev, uint64_t bytes, void **out_address);
    void (*host_free)(tl_dev *dev, void *address);

    /* A queue of launches, copies and marks. sink: where its kernels' prints and failures go.
     * is_default: the device's own; host drivers run things at once in it. */
    tile_status (*queue_create)(const struct tl_driver *driver, tl_dev *dev, tl_sink *sink,
                                bool is_default, tl_queue **out_queue);
    void (*queue_free)(tl_queue *queue);
    /* NULL: unavailable */
    tile_status (*queue_wrap)(const struct tl_driver *driver, tl_dev *dev, tl_sink *sink,
                              void *native, tl_queue **out_queue);
    tile_status (*queue_synchronize)(tl_queue *queue);
    /* does not wait */
    tile_status (*queue_copy)(tl_queue *queue, void *target, const void *source, uint64_t bytes,
                              tl_copy_kind kind);
    /* From another device of this driver, whose memory is not the host's; NULL where it is. */
    tile_status (*queue_copy_from)(tl_queue *queue, void *target, tl_dev *from, const void *source,
                                   uint64_t bytes);
    tile_status (*queue_fill)(tl_queue *queue, void *target, int value, uint64_t bytes);
    /* Work of another library (tile_stream_call). */
    tile_status (*queue_call)(tl_queue *queue, tile_status (*call)(void *user, void *native),
                              void *user, void *written, uint64_t bytes);
    /* The vendor's stream; NULL: there are none. */
    void *(*queue_native)(const tl_queue *queue);
    /* Is what is put into the queue recorded, to be run later (a graph)? NULL: never. */
    tile_status (*queue_captures)(const tl_queue *queue, bool *out_captures);
    /* copies what it needs */
    tile_status (*queue_launch)(tl_queue *queue, tl_code *code, const tl_launch *launch);
    /* How many programs of the kernel run at the same time for sure, on a device that does nothing
     * else. NULL: one. */
    tile_status (*together)(tl_dev *dev, tl_code *code, int64_t *out_programs);
    /* How many of so many programs start of a kernel that does the whole grid with any number
     * (TILE_SLOT_BLOCKS). NULL: all. */
    tile_status (*blocks)(tl_dev *dev, tl_code *code, int64_t programs, int64_t *out_blocks);
    tile_status (*mark_create)(tl_dev *dev, tl_mark **out_mark);
    void (*mark_free)(tl_mark *mark);
    tile_status (*mark_record)(tl_mark *mark, tl_queue *queue);
    tile_status (*mark_wait)(tl_mark *mark, tl_queue *queue); /* the queue waits */
    tile_status (*mark_synchronize)(tl_mark *mark);           /* the caller waits */
    tile_status (*mark_elapsed)(tl_mark *from, tl_mark *to, double *out_milliseconds);

    /* Loads one instance of a validated image whose target is the device's; the image outlives the
     * code. */
    tile_status (*code_load)(tl_dev *dev, const void *image, const tile_image_kernel *kernel,
                             tl_code **out_code);
    /* called once, after code_load; may be NULL */
    tile_status (*code_prepare)(tl_dev *dev, tl_code *code);
    void (*code_unload)(tl_dev *dev, tl_code *code);
    /* `run` does the launch's part, in the calling thread; else parts other than the first never
     * come here, and the first is all. */
    bool runs_parts;
    /* Host drivers: runs all programs and returns. Program n may wait for program m < n, so they
     * start in order. Called from any thread. A failed assertion is no error here: it goes to the
     * sink and the run goes on. */
    tile_status (*run)(tl_dev *dev, tl_code *code, const tl_launch *launch, tl_sink *sink);
    /* Host drivers that keep track of what memory holds: a copy or a fill has written here (device
     * memory or not). Called in the queue's order, from any thread; may be NULL. */
    void (*wrote)(tl_dev *dev, const void *target, uint64_t bytes);
} tl_driver;

/* host.c: memory and queues of drivers whose kernels run in this process. */
tile_status tl_host_mem_alloc(tl_dev *dev, uint64_t bytes, void **out_address);
void tl_host_mem_free(tl_dev *dev, void *address);
tile_status tl_host_queue_create(const tl_driver *driver, tl_dev *dev, tl_sink *sink,
                                 bool is_default, tl_queue **out_queue);
void tl_host_queue_free(tl_queue *queue);
tile_status tl_host_queue_synchronize(tl_queue *queue);
tile_status tl_host_queue_copy(tl_queue *queue, void *target, const void *source, uint64_t bytes,
                               tl_copy_kind kind);
tile_status tl_host_queue_fill(tl_queue *queue, void *target, int value, uint64_t bytes);
tile_status tl_host_queue_launch(tl_queue *queue, tl_code *code, const tl_launch *launch);
tile_status tl_host_queue_call(tl_queue *queue, tile_status (*call)(void *user, void *native),
                               void *user, void *written, uint64_t bytes);
tile_status tl_host_mark_create(tl_dev *dev, tl_mark **out_mark);
void tl_host_mark_free(tl_mark *mark);
tile_status tl_host_mark_record(tl_mark *mark, tl_queue *queue);
tile_status tl_host_mark_wait(tl_mark *mark, tl_queue *queue);
tile_status tl_host_mark_synchronize(tl_mark *mark);
tile_status tl_host_mark_elapsed(tl_mark *from, tl_mark *to, double *out_milliseconds);
#define TL_HOST_DRIVER_FUNCTIONS                                                             \
    .mem_alloc = tl_host_mem_alloc, .mem_free = tl_host_mem_free, TL_HOST_QUEUE_FUNCTIONS
/* for drivers with memory functions of their own */
#define TL_HOST_QUEUE_FUNCTIONS                                                              \
    .host_alloc = tl_host_mem_alloc, .host_free = tl_host_mem_free,                          \
    .queue_create = tl_host_queue_create, .queue_free = tl_host_queue_free,                  \
    .queue_synchronize = tl_host_queue_synchronize, .queue_copy = tl_host_queue_copy,        \
    .queue_fill = tl_host_queue_fill, .queue_launch = tl_host_queue_launch,                  \
    .queue_call = tl_host_queue_call,                                                        \
    .mark_create = tl_host_mark_create, .mark_free = tl_host_mark_free,                      \
    .mark_record = tl_host_mark_record, .mark_wait = tl_host_mark_wait,                      \
    .mark_synchronize = tl_host_mark_synchronize, .mark_elapsed = tl_host_mark_elapsed

/* The drivers. The getters of ref and emu are weak references in device.c: such a driver is there
 * when its library is linked. CMake: linking tile_ref makes "ref" known (its target carries -u
 * tl_driver_ref). */
const tl_driver *tl_driver_cpu(void);
const tl_driver *tl_driver_ref(void);
const tl_driver *tl_driver_emu(void);
const tl_driver *tl_driver_cuda(void);
const tl_driver *tl_driver_hip(void);

/* ---- pool.c: a persistent thread pool for host drivers ---- */

typedef struct tl_pool tl_pool;
/* *inout_n becomes the number that the environment variable holds, and stays when there is none.
 * BAD_ARGUMENT, naming the variable: it holds something else, or a number out of [least, most]. */
tile_status tl_env_number(const char *name, int64_t least, int64_t most, int64_t *inout_n);
/* threads, the caller's included; 0: TILE_THREADS, else as many as can run at once (processors.h).
 * affinity: where its workers run; NULL: TILE_AFFINITY. */
tile_status tl_pool_create(int threads, const char *affinity, tl_pool **out_pool);
void tl_pool_free(tl_pool *pool);
int tl_pool_threads(const tl_pool *pool);
typedef void tl_pool_work(void *user, int worker, int64_t begin, int64_t end);
typedef enum tl_pool_order {
    TL_POOL_INCREASING, /* ranges are claimed in increasing order: one may wait for a lower one */
    TL_POOL_SHARES      /* none waits: each worker begins with a share of its own */
} tl_pool_order;
/* Calls work until [0, n) is covered; each range is run in order by one worker (0 .. threads - 1;
 * the caller is 0). One job at a time: others wait. TILE_INTERNAL: an invariant broke in a worker
 * other than the caller. */
tile_status tl_pool_run(tl_pool *pool, int64_t n, tl_pool_order order, tl_pool_work *work,
                        void *user);
#endif
