/* runtime.h: the handles' insides, shared by the files of this package that are written once over
 * driver.h. */
#ifndef TL_RUNTIME_H
#define TL_RUNTIME_H
#include <pthread.h>
#include <stdatomic.h>
#include "runtime/driver.h"
#include "runtime/life.h"
#include "runtime/tensor_map.h"

typedef struct tl_embedded tl_embedded;
typedef struct tl_forms tl_forms;

/* Freed buffers of a device whose driver is slow to give memory, by size class (buffer.c). */
enum { TL_KEPT_CLASSES = 64 * 8 };

struct tile_device {
    tl_life life;
    bool is_lost;             /* closed by a fork, in the child */
    const tl_driver *driver;
    tl_dev *dev;
    char name[64], target[32];
    int processors;
    bool sync, prints;        /* TILE_SYNC=1, TILE_PRINT=1 */
    atomic_uint_fast64_t users; /* TL_DEVICE_CLOSED, _FORKING, and _USER for each call inside */
    uint_fast64_t users_at_fork; /* what `users` was before the last fork */
    atomic_uint_fast64_t owners; /* its own handle, streams, buffers, events and modules */
    pthread_mutex_t lock;     /* guards what follows, but for `embedded` */
    pthread_cond_t left;      /* the last call has left a closed device; a stream's pins are gone */
    tile_callbacks callbacks;
    tile_stream *streams;
    tile_buffer *buffers;
    tile_buffer *kept[TL_KEPT_CLASSES];
    tile_stream *default_stream;
    _Atomic(tl_embedded *) embedded; /* embedded.c */
};

struct tile_stream {
    tile_device *device;
    tl_queue *queue;
    tl_sink *sink;
    tile_stream *prev, *next;
    uint32_t pins;            /* threads that wait for it by way of its device */
    atomic_uint_fast64_t sequence; /* of the next launch */
    tl_part part;             /* of the grids of its launches */
};

struct tile_buffer {
    tile_device *device;
    void *address;
    uint64_t bytes, room; /* room: what the driver gave; at least bytes */
    tile_buffer *prev, *next;
};


struct tile_event {
    tile_device *device;
    tl_mark *mark;
};

/* One row of an image: a form of an instance of a kernel. code is set once, under the module's
 * lock; ready is set after it. */
typedef struct tl_instance {
    const void *image;
    const tile_image_kernel *kernel;
    tl_code *code;
    atomic_bool ready;
    tl_forms *forms; /* of the first form, where a maker can make more */
} tl_instance;

/* How well the arguments of a launch would suit a form: for each test of units of the first form,
 * the logarithm of what its number is a multiple of, up to the test's own. */
enum { TL_MAX_WISH = 61 };
typedef struct tl_wish {
    uint8_t n;
    bool near, grid, pairs; /* as in ir/form.h */
    uint8_t level[TL_MAX_WISH];
} tl_wish;

/* The further forms of an instance, made when a launch first wished for them: TL_WISHED at most,
 * and the general one, whose wish is empty. Entries below n do not change. */
enum { TL_WISHED = 2 };
struct tl_forms {
    atomic_uint n;
    atomic_bool closed; /* prepared: no launch makes any more */
    struct tl_made {
        tl_wish wish;
        tl_instance *form;
    } made[TL_WISHED + 1];
};

/* A validated image, in memory of ours. */
typedef struct tl_image {
    struct tl_image *next;
    void *data;               /* 64-byte aligned */
    uint32_t ninstances;
    tl_instance *instances;
} tl_image;

struct tile_kernel {
    tile_module *module;
    tile_kernel *next;
    char *key;                /* name and constants: the question that this handle answers */
    tile_const *consts;       /* those; of a module with a maker */
    const char *name;
    uint32_t ninstances;      /* at least 1; in the image's order */
    tl_instance **instances;
    size_t nrows;
    struct tl_row {           /* what a launch chooses from (choose.c) */
        uint32_t instance;
        const int32_t *bucket; /* of the image: one for which it was found best; NULL: of none */
    } *rows;
    bool tuned;               /* some have buckets */
    bool has_again;
    _Atomic(struct tl_again *) again; /* launch_again.c; NULL: there is none, or it is taken */
};
typedef struct tl_row tl_row;

/* Where a module made from source gets images (jit.c). */
typedef struct tl_maker {
    void *user;
    /* A new image of `name`'s instances that agree with consts, in this form (ir/form.h); the
     * caller frees *out_data with free(). */
    tile_status (*make)(void *user, const char *name, const tile_const *consts, const char *form,
                        void **out_data, size_t *out_size);
    void (*free)(void *user);
} tl_maker;

struct tile_module {
    tile_device *device;
    pthread_mutex_t lock;     /* guards images, kernels, loading of code */
    tl_image *images;
    tile_kernel *kernels;
    tl_maker maker;           /* make NULL: the one image is all there is */
};

/* A module without an image yet; takes over the maker (frees it on failure). For jit.c. */
tile_status tl_module_create_maker(tile_device *device, tl_maker maker, tile_module **out_module);

/* Every call that uses a device stands between tl_device_enter and tl_device_leave:
 * tile_device_close waits for those inside, and those that come later are refused with
 * TILE_BAD_ARGUMENT. May be nested. NULL is the default device. Out of enter's result only TILE_OK
 * wants a leave. */
enum { TL_DEVICE_CLOSED = 1, TL_DEVICE_FORKING = 2, TL_DEVICE_USER = 4 };
tile_status tl_device_enter(tile_device *device, tile_device **out_device);
/* The same for what frees a part of the device, which may have been closed. False: the device was
 * lost in a fork, and nothing of it may be touched. */
bool tl_device_enter_to_free(tile_device *device);
void tl_device_leave(tile_device *device);
/* What was made from a device keeps it in memory, closed or not, until it drops it. */
void tl_device_keep(tile_device *device);
void tl_device_drop(tile_device *device);

/* The stream, or the default one of `device`, which the caller has entered. */
tile_status tl_stream_of(tile_device *device, tile_stream *stream, tile_stream **out_stream);
/* Waits for all streams of a device that is being closed; says nothing of what kernels said. */
void tl_streams_drain(tile_device *device);
/* Waits for the stream's queue and delivers what its kernels said; the device is entered. */
tile_status tl_stream_finish(tile_stream *stream);
/* Makes and frees a stream's parts; used for the default stream too. */
tile_status tl_stream_open(tile_device *device, bool is_default, tile_stream **out_stream);
void tl_stream_close(tile_stream *stream);

void tl_embedded_free(tile_device *device);

/* sink.c */
tile_status tl_sink_create(tl_sink **out_sink);
void tl_sink_free(tl_sink *sink);
/* Delivers and forgets what was collected. TILE_FAILED when there was a failure. */
tile_status tl_sink_deliver(tl_sink *sink, const tile_callbacks *callbacks);
tile_callbacks tl_sink_to_stderr(void); /* a line for each print and failure */

/* image_check.c: everything that later code relies on. */
tile_status tl_image_check(const void *data, size_t size);
/* How many bytes the image that starts here claims; false: none starts here. Reads no more than the
 * header, and of what has no header's mark only that. */
bool tl_image_extent(const void *data, size_t size, size_t *out_bytes);
static inline const tile_image_kernel *tl_image_kernels(const void *image)
{
    const tile_image_header *h = image;
    return (const tile_image_kernel *)((const char *)image + h->kernels);
}
static inline const void *tl_image_at(const void *image,
                                      uint32_t offset) { return (const char *)image + offset; }

/* hostexpr.c */
typedef struct tl_hx_env {
    const int64_t *syms;
    const tile_arg *args; /* scalars of the launch */
    int64_t processors;
} tl_hx_env;
typedef enum tl_hx_result { TL_HX_FINE, TL_HX_DIV_ZERO, TL_HX_OVERFLOW } tl_hx_result;
/* Well formed: known operators, operands there, indices in range, exactly one value left. */
bool tl_hostexpr_valid(const tile_hx_ins *code, uint32_t n, uint32_t nsyms, uint32_t nargs);
tl_hx_result tl_hostexpr_eval(const tile_hx_ins *code, uint32_t n, const tl_hx_env *env,
                              int64_t *out_word);

/* dtype.c */
bool tl_dtype_known(int dtype);
double tl_decode_float(tile_dtype dtype, uint64_t bits); /* float types */
/* integers and bool, extended by their sign */
int64_t tl_decode_int(tile_dtype dtype, uint64_t bits);
bool tl_is_float_dtype(tile_dtype dtype);
bool tl_is_packed_dtype(tile_dtype dtype);

/* What a launch asks: grid: NULL, or the caller's. */
typedef struct tl_question {
    tile_kernel *kernel;
    const tile_arg *args;
    size_t nargs, naxes;
    const int64_t *grid;
} tl_question;

/* launch_bind.c: the arguments of a launch, resolved. */
typedef struct tl_bound {
    tile_arg args[TL_MAX_PARAMS];
    uint64_t spans[TL_MAX_PARAMS]; /* of views, as tl_view_bytes says; else 0 */
    uint64_t slots[TL_MAX_SLOTS];
    uint32_t nmaps;
    tl_tensor_map maps[TL_MAX_MAPS]; /* that slots have the addresses of */
    int64_t syms[TL_MAX_SYMS];
    bool own_grid;     /* the grid comes from the grid clause */
    tl_launch launch;  /* programs 0: there is nothing to run, and nothing below is set */
    uint32_t instance; /* of the kernel */
    tl_instance *form; /* NULL: there is none yet, and launch lacks image, kernel and slots: */
    tl_wish wish;      /* which form is to be made */
} tl_bound;
typedef enum tl_bind_result {
    TL_BIND_OK,
    TL_BIND_ERROR,
    TL_BIND_REQUIRE,
    TL_BIND_EMPTY
} tl_bind_result;
/* Checks the arguments and fills `out`, but for the form. ERROR: the thread's error text says what
 * is wrong with them. REQUIRE: the instance's `require` does not hold, with a text that says so.
 * EMPTY: nothing to run. */
tl_bind_result tl_bind(const tile_device *device, const tl_instance *instance,
                       const tile_arg *args, size_t nargs,
                       const int64_t *grid, size_t naxes, tl_bound *out);
/* The rest of launch: what the form asks for. */
void tl_bind_slots(tl_bound *bound);
/* How many programs of a launch of the row run as a cluster: where there are only whole ones, whose
 * programs follow each other in the order of starting, too; else 1. */
int32_t tl_cluster_of(const tl_launch *launch, const tile_image_kernel *kernel);

/* Only the first steps of it: arguments are taken and names have their values. False: one is
 * wrong. */
bool tl_bind_names(const tile_device *device, const tl_instance *instance, const tile_arg *args,
                   size_t nargs, tl_bound *out);
/* The bytes of a bound view from its address to the end of its last element; UINT64_MAX if elements
 * lie before the address. False: more than memory has. */
bool tl_view_bytes(const tile_arg *view, uint64_t *out_bytes);
/* launch_overlap.c: have two bound views, whose bytes tl_view_bytes knows, certainly an element in
 * common? */
bool tl_views_overlap(const tile_arg *x, const tile_arg *y);

/* forms.c. A first form gets its list; the module's lock is held, or nobody knows the form yet. */
tile_status tl_forms_open(tl_instance *first);
void tl_forms_close(tl_instance *first);
/* Is it a test of a multiple, as opposed to one of a size, or of how programs are launched? */
bool tl_test_is_unit(const tile_image_test *t);
bool tl_same_wish(const tl_wish *a, const tl_wish *b);
/* Makes, if it is not there, what the wish asks for, by the kernel's maker; the module's lock is
 * held. */
tile_status tl_forms_make(tile_kernel *kernel, uint32_t instance, const tl_wish *wish);
/* In which form a module with a maker would run these arguments, of an image that has the aligned
 * form alone: its text, or NULL where that form takes them. The caller frees it with free(). Where
 * the image's first row is not for them at all: the forms that are for everything. */
tile_status tl_form_wanted(const tile_device *device, const void *image, const tile_arg *args,
                           size_t nargs, char **out_text);
/* module.c: adds an image; loads an instance's code; both under the module's lock. Finds the
 * kernel's instance number `index` in one. */
tile_status tl_module_add_image(tile_module *m, const void *data, size_t size,
                                tl_image **out_image);
tile_status tl_instance_load(tile_device *d, tl_instance *instance);
/* A list of constants, copied; NULL: out of memory. */
tile_const *tl_consts_copy(const tile_const *consts);
void tl_consts_free(tile_const *consts);
tl_instance *tl_image_listed(const tl_image *image, const char *name, uint32_t index);

/* choose.c: the first row that takes the arguments, and the first form of it. `out` is resolved for
 * both. */
tile_status tl_choose(const tl_question *question, tl_bound *out);
/* The form for arguments that are bound to the instance `first`. */
void tl_choose_form(tl_bound *bound, tl_instance *first);
/* BAD_ARGUMENT: there is no form for the arguments, and none can be made. */
tile_status tl_check_forms(const tile_kernel *kernel, const tl_bound *bound);
/* launch_again.c: a kernel's last launch, for the next one. A thread takes it, asks, keeps or does
 * not, and gives it back. Memory for it is got where the kernel is loaded; the module's lock is
 * held. */
typedef struct tl_again tl_again;
tile_status tl_again_open(tile_kernel *kernel);
void tl_again_close(tile_kernel *kernel);
/* NULL: another thread has it, and so for what follows. */
tl_again *tl_again_take(tile_kernel *kernel);
void tl_again_give(tile_kernel *kernel, tl_again *again);
/* The launch that the question asks for, if it is like the last one, as its form has it; else
 * NULL. */
tl_launch *tl_again_launch(tl_again *again, const tl_question *question,
                           const tl_instance **out_form);
void tl_again_keep(tl_again *again, const tl_question *question, const tl_bound *bound);

/* Makes the form that was chosen, if it is not there, and loads it. */
tile_status tl_load_chosen(tile_kernel *kernel, tl_bound *bound);
/* The image's next form of the same instance; NULL: there is none. */
tl_instance *tl_next_form(tl_instance *form);
/* The values of the kernel's keys. False: the one with the text *out_wrong has none. */
bool tl_find_keys(const tl_instance *instance, const tile_device *device, const tl_bound *bound,
                  int64_t *out_values, const char **out_wrong);
/* ceil(log2(value)); -1 for values below 1. */
int32_t tl_bucket(int64_t value);
/* Is bucket a nearer to `want` than b? */
bool tl_nearer(const int32_t *want, const int32_t *a, const int32_t *b, uint32_t n);

/* buffer.c: gives back what is kept for later buffers; returns whether that was anything. */
bool tl_buffers_trim(tile_device *device);
/* Bytes from `address` to the end of the tile_buffer that holds it; UINT64_MAX when in
 * none. */
uint64_t tl_buffer_bytes_at(tile_device *device, const void *address);
#endif
