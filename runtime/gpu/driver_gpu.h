/* driver_gpu.h: the drivers cuda and hip are one (driver_gpu.c), except for their symbols, numbers
 * and quirks (driver_cuda.c, driver_hip.c).
 *
 * The vendor's library is loaded with dlopen when a device is opened; none of its headers is used.
 * Both vendors name the same functions differently, so calls go through a table of pointers,
 * filled from rows {field, symbol, required or optional} (cuda_syms.def, hip_syms.def). Their
 * handles are pointers, and their device addresses are 64-bit words that are passed like pointers.
 */
#ifndef TL_DRIVER_GPU_H
#define TL_DRIVER_GPU_H
#include "runtime/driver.h"
#include <pthread.h>
#include <stdatomic.h>

/* What is called; every `int` result is the library's error code, 0 for success. */
typedef struct tl_gpu_api {
    int (*init)(unsigned flags);
    int (*driver_version)(int *version);
    int (*error_name)(int code, const char **text); /* cuda */
    int (*error_string)(int code, const char **text);
    const char *(*error_name_of)(int code); /* hip */
    const char *(*error_string_of)(int code);

    int (*device_count)(int *count);
    int (*device_get)(int *device, int ordinal);
    int (*device_name)(char *name, int size, int device);
    int (*device_attribute)(int *value, int attribute, int device);
    int (*device_memory)(size_t *bytes, int device);
    int (*properties)(void *properties, int ordinal); /* hip: hipDeviceProp_t of ROCm 6 */
    int (*properties_old)(void *properties, int ordinal);

    int (*context_retain)(void **context, int device); /* cuda */
    int (*context_release)(int device);
    int (*context_current)(void **context);
    int (*context_set)(void *context);
    int (*context_device)(int *device);
    int (*device_current)(int *ordinal); /* hip */
    int (*device_set)(int ordinal);

    int (*mem_alloc)(void **address, size_t bytes);
    int (*mem_free)(void *address);
    int (*copy_up)(void *target, const void *source, size_t bytes, void *stream);
    int (*copy_down)(void *target, const void *source, size_t bytes, void *stream);
    int (*copy_within)(void *target, const void *source, size_t bytes, void *stream);
    int (*copy_peer)(void *target, void *to, const void *source, void *from, size_t bytes,
                     void *stream); /* cuda: between contexts */
    int (*copy_peer_of)(void *target, int to, const void *source, int from, size_t bytes,
                        void *stream); /* hip: between ordinals */
    int (*host_alloc)(void **address, size_t bytes, unsigned flags);
    int (*host_free)(void *address);
    int (*fill)(void *target, unsigned char value, size_t bytes, void *stream);

    int (*module_load_ex)(void **module, const void *image, unsigned noptions, const int *options,
                          void **values);                 /* cuda */
    int (*module_load)(void **module, const void *image); /* hip */
    int (*module_unload)(void *module);
    int (*module_function)(void **function, void *module, const char *name);
    int (*function_set)(void *function, int attribute, int value); /* cuda */
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **params, void **extra);
    int (*map_encode)(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                      const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                      int interleave, int swizzle, int promotion, int fill); /* cuda */
    int (*launch_ex)(const void *config, void *function, void **params, void **extra); /* cuda */
    int (*launch_together)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, void *stream, void **params); /* hip */
    int (*occupancy)(int *blocks, void *function, int threads, size_t shared_bytes);

    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*stream_captures)(void *stream, int *status);
    int (*stream_after)(void *stream, void *event, unsigned flags);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_elapsed)(float *milliseconds, void *from, void *to);
} tl_gpu_api;

typedef struct tl_gpu_symbol {
    size_t at; /* of the field in tl_gpu_api */
    bool required;
    const char *name;
} tl_gpu_symbol;

typedef struct tl_gpu_error {
    int code;
    tile_status status;
} tl_gpu_error;

/* Where cuda and hip differ. */
typedef struct tl_gpu_kind {
    const char *kind, *vendor;                     /* "cuda", "CUDA" */
    const char *const *libraries;                  /* tried in this order; NULL ends the list */
    const tl_gpu_symbol *symbols;                  /* name NULL ends the list */
    const tl_gpu_error *errors;                    /* code 0 ends the list */
    int min_version, version_major, version_minor; /* the units of the two parts of a version */
    int attribute_processors, attribute_threads, attribute_shared; /* of a block: threads, bytes */
    uint64_t max_threads;                                          /* of a launch */
    /* Fills in dev->target and what else is known only so. */
    tile_status (*identify)(tl_dev *dev);
    uint32_t (*accepts)(tl_dev *dev, const char *target);
    /* The ordinal of the calling thread's device; left alone when it has none. */
    tile_status (*current)(tl_dev *dev, int *out_ordinal);
    /* Makes the device usable by this process; undone by detach. */
    tile_status (*attach)(tl_dev *dev);
    void (*detach)(tl_dev *dev);
    /* Makes the device the calling thread's; what was so before is put back by leave. */
    tile_status (*enter)(tl_dev *dev, void **out_before);
    void (*leave)(tl_dev *dev, void *before);
} tl_gpu_kind;

typedef struct tl_gpu_module tl_gpu_module;
typedef struct tl_gpu_debug tl_gpu_debug;

struct tl_dev {
    const tl_gpu_kind *kind;
    tl_gpu_api api;
    void *library;
    const char *library_name;
    int ordinal, device, version;
    void *context;           /* cuda: the one that is used */
    bool attached, retained; /* cuda: it is the primary one, held by us */
    int capability;          /* cuda: 90 */
    int processors, max_threads, max_shared;
    size_t memory_bytes;
    char name[96], target[32];
    pthread_mutex_t lock; /* guards what follows, and the queues' debug */
    tl_gpu_module *modules;
    tl_queue *queues;
};

struct tl_queue {
    tl_dev *dev;
    tl_sink *sink;
    void *stream;
    bool wrapped, is_default;
    tl_gpu_debug *debug; /* NULL: no kernel that says something was launched yet */
    tl_queue *prev, *next;
};

/* The failure of the call of the field at `at` of the table, with a text that names the symbol and
 * says what the library says of the code. */
tile_status tl_gpu_failed(const tl_dev *dev, size_t at, int code);
/* For functions that only some calls need: the one at `at` is missing. */
tile_status tl_gpu_lacks(const tl_dev *dev, size_t at);
static inline tile_status tl_gpu_result(const tl_dev *dev, size_t at, int code)
{
    return code == 0 ? TILE_OK : tl_gpu_failed(dev, at, code);
}
#define TL_GPU_CALL(dev, field, ...)                                                               \
    tl_gpu_result((dev), offsetof(tl_gpu_api, field), (dev)->api.field(__VA_ARGS__))

/* status = call, with the device as the calling thread's. */
#define TL_GPU_WITHIN(dev, status, call)                                                           \
    do {                                                                                           \
        void *before_ = NULL;                                                                      \
        (status) = (dev)->kind->enter((dev), &before_);                                            \
        if ((status) == TILE_OK) {                                                                 \
            (status) = (call);                                                                     \
            (dev)->kind->leave((dev), before_);                                                    \
        }                                                                                          \
    } while (0)

/* A kernel that was loaded (driver_gpu_code.c). */
struct tl_code {
    tl_gpu_module *module;
    void *function;
    const void *image;
    const char *name;
    uint32_t threads, shared_bytes, debug_slot; /* of its parameters; TL_GPU_NO_SLOT */
    atomic_llong blocks; /* of a kernel that starts as many as run at once; 0: not asked yet */
};
enum { TL_GPU_NO_SLOT = UINT32_MAX };

/* driver_gpu_debug.c; under the device's lock, with the device as the calling thread's. */
/* The buffer for the next launch. */
tile_status tl_gpu_debug_begin(tl_queue *queue, const tl_launch *launch, void **out_address);
/* Hands on what was said; the queue has been waited for. */
tile_status tl_gpu_debug_collect(tl_queue *queue);
/* Is there something of the image's kernels to be collected? */
bool tl_gpu_debug_holds(const tl_queue *queue, const void *image);
/* Gives the device's memory back; queue->debug itself is freed with free(). */
void tl_gpu_debug_drop(tl_queue *queue);

/* Opens the device of a kind; driver.h's `open` with one more parameter. */
tile_status tl_gpu_open(const tl_gpu_kind *kind, const char *spec, tl_dev **out_dev);
/* All of driver.h's functions but `open`. */
void tl_gpu_close(tl_dev *dev);
void tl_gpu_info(tl_dev *dev, tile_device_info *info);
uint32_t tl_gpu_accepts(tl_dev *dev, const char *target);
tile_status tl_gpu_mem_alloc(tl_dev *dev, uint64_t bytes, void **out_address);
void tl_gpu_mem_free(tl_dev *dev, void *address);
tile_status tl_gpu_host_alloc(tl_dev *dev, uint64_t bytes, void **out_address);
void tl_gpu_host_free(tl_dev *dev, void *address);
tile_status tl_gpu_queue_create(const tl_driver *driver, tl_dev *dev, tl_sink *sink,
                                bool is_default, tl_queue **out_queue);
tile_status tl_gpu_queue_wrap(const tl_driver *driver, tl_dev *dev, tl_sink *sink, void *native,
                              tl_queue **out_queue);
void tl_gpu_queue_free(tl_queue *queue);
tile_status tl_gpu_queue_synchronize(tl_queue *queue);
tile_status tl_gpu_queue_copy(tl_queue *queue, void *target, const void *source, uint64_t bytes,
                              tl_copy_kind kind);
tile_status tl_gpu_queue_copy_from(tl_queue *queue, void *target, tl_dev *from, const void *source,
                                   uint64_t bytes);
tile_status tl_gpu_queue_fill(tl_queue *queue, void *target, int value, uint64_t bytes);
tile_status tl_gpu_queue_call(tl_queue *queue, tile_status (*call)(void *user, void *native),
                              void *user, void *written, uint64_t bytes);
void *tl_gpu_queue_native(const tl_queue *queue);
tile_status tl_gpu_queue_captures(const tl_queue *queue, bool *out_captures);
tile_status tl_gpu_queue_launch(tl_queue *queue, tl_code *code, const tl_launch *launch);
tile_status tl_gpu_together(tl_dev *dev, tl_code *code, int64_t *out_programs);
tile_status tl_gpu_blocks(tl_dev *dev, tl_code *code, int64_t programs, int64_t *out_blocks);
tile_status tl_gpu_mark_create(tl_dev *dev, tl_mark **out_mark);
void tl_gpu_mark_free(tl_mark *mark);
tile_status tl_gpu_mark_record(tl_mark *mark, tl_queue *queue);
tile_status tl_gpu_mark_wait(tl_mark *mark, tl_queue *queue);
tile_status tl_gpu_mark_synchronize(tl_mark *mark);
tile_status tl_gpu_mark_elapsed(tl_mark *from, tl_mark *to, double *out_milliseconds);
tile_status tl_gpu_code_load(tl_dev *dev, const void *image, const tile_image_kernel *kernel,
                             tl_code **out_code);
void tl_gpu_code_unload(tl_dev *dev, tl_code *code);
#define TL_GPU_DRIVER_FUNCTIONS                                                                    \
    .close = tl_gpu_close, .info = tl_gpu_info, .accepts = tl_gpu_accepts,                         \
    .mem_alloc = tl_gpu_mem_alloc, .mem_free = tl_gpu_mem_free, .mem_is_slow = true,               \
    .host_alloc = tl_gpu_host_alloc, .host_free = tl_gpu_host_free,                                \
    .queue_create = tl_gpu_queue_create, .queue_free = tl_gpu_queue_free,                          \
    .queue_wrap = tl_gpu_queue_wrap, .queue_synchronize = tl_gpu_queue_synchronize,                \
    .queue_copy = tl_gpu_queue_copy, .queue_copy_from = tl_gpu_queue_copy_from,                    \
    .queue_fill = tl_gpu_queue_fill, .queue_call = tl_gpu_queue_call,                              \
    .queue_native = tl_gpu_queue_native,                                                           \
    .queue_captures = tl_gpu_queue_captures, .queue_launch = tl_gpu_queue_launch,                  \
    .together = tl_gpu_together,                                                                   \
    .blocks = tl_gpu_blocks,                                                                       \
    .mark_create = tl_gpu_mark_create, .mark_free = tl_gpu_mark_free,                              \
    .mark_record = tl_gpu_mark_record, .mark_wait = tl_gpu_mark_wait,                              \
    .mark_synchronize = tl_gpu_mark_synchronize, .mark_elapsed = tl_gpu_mark_elapsed,              \
    .code_load = tl_gpu_code_load, .code_unload = tl_gpu_code_unload
#endif
