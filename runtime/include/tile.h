/* tile.h: the runtime of .tile kernels (libtile). Devices, memory, streams, modules, launches. C11,
 * clean C++.
 *
 *     tile_device *dev;  tile_module *mod;  tile_kernel *k;
 *     tile_device_open("cpu", &dev);
 *     tile_module_load_image(dev, image, size, &mod);  (or tile_module_load_file of tile_jit.h)
 *     tile_kernel_get(mod, "gemm", (tile_const[]){{"BM", 64, NULL}, {0}}, &k);
 *     tile_launch(k, NULL,
 *                 (tile_arg[]){tile_view(A, M, K), tile_view(B, K, N), tile_view(C, M, N)}, 3);
 *     if (tile_device_synchronize(dev)) puts(tile_last_error());
 *
 * C++ has no compound literals of arrays; pass a list instead:
 * tile_launch(k, NULL, {tile_view(A, M, K), ...}).
 *
 * Rules. Every function that can fail returns a tile_status. Results come through the last
 * parameters, named out_, which are set only on TILE_OK. Nothing here prints or exits. A NULL
 * handle, text or result pointer is TILE_BAD_ARGUMENT (0 or NULL from functions without a status),
 * except that a NULL device or stream means the default one. Freeing functions accept NULL, and
 * each handle once; nothing is the caller's to free(). "Thread-safe" means that any number of
 * threads may call at once. All functions are thread-safe unless they say otherwise; freeing a
 * handle while another call uses it is not.
 *
 * A struct with a struct_size must have it set; 0 in all other members means the default:
 *     tile_launch_options o = {.struct_size = sizeof o, .flags = TILE_LAUNCH_OVERLAP};
 * or, where there are no designated initialisers, tile_launch_options o = TILE_LAUNCH_OPTIONS_INIT;
 * with assignments behind it. Such structs grow at their end: a program that was built with an
 * older header passes a smaller size, and what its struct lacks has its default.
 *
 * Everything is stable except what is under TILE_UNSTABLE. TILE_0_1 before a function: it is there
 * since version 0.1.
 *
 * The process around. Whatever the calling thread's floating-point state is (rounding, flushing of
 * subnormals, unmasked exceptions), kernels on cpu, ref and emu compute in the default one, and
 * what is compiled and kept is what that gives; when a call returns, the thread has its own state
 * again, flags included. Callbacks may be called in the default state. Numbers are read and
 * written with a point in every locale.
 *
 * A thread may have as little as 64 KB of stack. What needs more (opening a device, compiling,
 * tuning, launching) then runs on a thread with a stack of its own while the caller waits, some 30
 * microseconds longer; TILE_NO_RESOURCE: there is none to be had.
 *
 * After fork() the child may go on with what it has on cpu, ref and emu: devices, their default
 * streams, buffers, modules. A stream that was created before is the parent's (TILE_UNAVAILABLE;
 * its events, too, unless they were reached), and so is a device of a GPU, and one that another
 * thread was using at that moment: open it again in the child. The default device is opened again
 * by itself. While another thread compiles, a fork leaves a child that cannot.
 *
 * The library may be unloaded (dlclose), and so may a plugin that has it inside, when no call is
 * running and the streams are empty: its threads end first. Free what it gave before. The compiler
 * proper (libtilec-core) stays. */
#ifndef TILE_H
#define TILE_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
#include <initializer_list>
#endif

#define TILE_VERSION_MAJOR 0
#define TILE_VERSION_MINOR 1
#define TILE_VERSION_PATCH 0
#define TILE_VERSION (TILE_VERSION_MAJOR * 10000 + TILE_VERSION_MINOR * 100 + TILE_VERSION_PATCH)

#ifndef TILE_API
#define TILE_API __attribute__((visibility("default")))
#endif
#define TILE_0_1 TILE_API

#ifdef __cplusplus
extern "C" {
#endif

/* Conversions that projects with -Wold-style-cast take, too. */
#ifdef __cplusplus
#define TILE_CAST_(type, x) static_cast<type>(x)
#define TILE_UNCONST_(p) const_cast<void *>(p)
#else
#define TILE_CAST_(type, x) ((type)(x))
#define TILE_UNCONST_(p) ((void *)(uintptr_t)(p))
#endif

/* A struct of which only struct_size is not 0. */
#ifdef __cplusplus
extern "C++" {
template <class T> inline T tile_sized_()
{
    T s = T();
    s.struct_size = sizeof s;
    return s;
}
}
#define TILE_INIT_(type) tile_sized_<type>()
#else
#define TILE_INIT_(type) { .struct_size = sizeof(type) }
#endif

typedef struct tile_device tile_device;
typedef struct tile_buffer tile_buffer;
typedef struct tile_stream tile_stream;
typedef struct tile_event tile_event;
typedef struct tile_module tile_module;
typedef struct tile_kernel tile_kernel;

typedef enum tile_status {
    TILE_OK = 0,
    TILE_BAD_ARGUMENT, /* an argument of the call or of the launch is wrong */
    TILE_NO_RESOURCE,  /* more shared memory, threads, ... than the device has */
    TILE_NO_MEMORY,
    TILE_DRIVER,       /* the device's driver reported an error */
    TILE_NOT_FOUND,    /* no such kernel, variant or constant */
    TILE_COMPILE,      /* the program is wrong; the error text holds the diagnostics */
    TILE_IO,           /* a file could not be read or written */
    TILE_FAILED,       /* a check or an assertion failed in a kernel */
    TILE_BAD_IMAGE,    /* not a kernel image, damaged, or of another version or target */
    TILE_UNAVAILABLE,  /* known, but not on this machine or not in this build */
    TILE_INTERNAL      /* a bug in this library */
} tile_status;

/* Element types, in the order of kernel images. The negative values are for arguments whose type is
 * not fully known; a launch does not check what they leave open. */
typedef enum tile_dtype {
    TILE_ANY_WORD = -3, /* 16-bit words: i16, u16, f16 or bf16 */
    TILE_ANY_BYTE = -2, /* any type of at most 8 bits */
    TILE_ANY = -1,
    TILE_BOOL, TILE_I8, TILE_I16, TILE_I32, TILE_I64, TILE_U8, TILE_U16, TILE_U32, TILE_U64,
    TILE_F16, TILE_BF16, TILE_F32, TILE_F64, TILE_F8E4M3, TILE_F8E5M2, TILE_I4, TILE_U4,
    TILE_F4E2M1,
    TILE_F8E4M3FNUZ, TILE_F8E5M2FNUZ
} tile_dtype;

TILE_0_1 int tile_version(void); /* TILE_VERSION of the library */
TILE_0_1 const char *tile_status_name(tile_status status); /* "bad argument" */
TILE_0_1 const char *tile_dtype_name(tile_dtype dtype);    /* "f32"; "?" when unknown */
TILE_0_1 int tile_dtype_bits(tile_dtype dtype);            /* 0 when unknown */

/* What went wrong in this thread's last failed call; "" if none has failed. Valid until the
 * thread's next failed call. */
TILE_0_1 const char *tile_last_error(void);
/* For libraries over this one, which report as it does: sets that text, of which 8 KB are kept, and
 * returns the status. NULL is "". */
TILE_0_1 tile_status tile_set_last_error(tile_status status, const char *text);

/* ---- devices ---- */

/* Opens "cpu", "cpu:LEVEL", "ref", "emu:TARGET", "cuda", "cuda:1", "hip:0"; NULL: the value of
 * TILE_DEVICE, else "cpu". LEVEL is "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni",
 * "x86-64-v4-zen4", "x86-64-v4-avx10", "x86-64-v4-apx", "x86-64-v4-amx", "aarch64", "armv8.4-a",
 * "armv8.6-a", "armv9-a" or "native" (the same as "cpu"): kernels are compiled for the features of
 * that level, and images may use no others. "emu:TARGET@LEVEL" is an emulated GPU whose host code
 * is of that level. Kernels of cpu and emu run in the calling thread and a pool of others:
 * TILE_THREADS is their number together, TILE_AFFINITY ("none", "compact", "spread", "0-3,8") where
 * the others run.
 * TILE_BAD_ARGUMENT: no such kind of device, or no such level.  TILE_UNAVAILABLE: not on this
 * machine (tile_last_error names what its CPU lacks) or not in this build. */
TILE_0_1 tile_status tile_device_open(const char *name, tile_device **out_device);

/* What the environment would say otherwise. On ref, cuda and hip it changes nothing. */
typedef struct tile_device_options {
    size_t struct_size;
    int threads;          /* as TILE_THREADS, 1 to 1024; 0: what that says */
    const char *affinity; /* as TILE_AFFINITY; NULL: what that says */
} tile_device_options;
#define TILE_DEVICE_OPTIONS_INIT TILE_INIT_(tile_device_options)
/* The same with options; NULL: none. TILE_BAD_ARGUMENT: no such number, or no such places, too. */
TILE_0_1 tile_status tile_device_open_with(const char *name, const tile_device_options *options,
                                           tile_device **out_device);
/* Waits until the calls that use the device have returned and its streams are empty. Prints and
 * failures that no synchronisation has delivered are lost. Streams, buffers, events and modules
 * made from the device may be freed before or after; after this call they can only be freed, and
 * every other use is TILE_BAD_ARGUMENT. They keep the driver's device open until the last of them
 * is freed. Meanwhile other threads may make calls with such handles or with a NULL device or
 * stream, but not with `device` itself. Must not be called from a callback, where it would wait for
 * itself. */
TILE_0_1 void tile_device_close(tile_device *device);
/* The device that a NULL device or NULL stream stands for: the one set here; else the first one
 * opened by tile_device_open(NULL) or by the name that this stands for; else one that is opened
 * that way at first use. Closing the device that was set here undoes the setting, as NULL does. A
 * device that was opened at first use may be closed, but need not be. */
TILE_0_1 tile_status tile_set_default_device(tile_device *device);
TILE_0_1 tile_status tile_default_device(tile_device **out_device);

typedef struct tile_device_info {
    size_t struct_size;
    char name[128];      /* human-readable */
    char target[32];     /* what kernels are compiled for: "cpu", "cpu:x86-64-v3", "sm_90a" */
    int processors;      /* device.sms: streaming multiprocessors, or cores */
    int host_memory;     /* kernels accept any address of this process */
    uint64_t memory_bytes; /* 0 when unknown */
} tile_device_info;
#define TILE_DEVICE_INFO_INIT TILE_INIT_(tile_device_info)
TILE_0_1 tile_status tile_device_get_info(tile_device *device, tile_device_info *out_info);

/* Output of kernels. The callbacks are called from tile_stream_synchronize, in the thread that
 * calls it, in the order of the programs. Without callbacks, prints are dropped, or, with
 * TILE_PRINT=1 in the environment, go to standard error; a failure is in any case the status of the
 * synchronisation. */
typedef struct tile_callbacks {
    size_t struct_size;
    void (*print)(void *user, const char *text);   /* one print() of one program: "x = [1, 2, 3]" */
    /* "gemm.tile:6:5: assertion failed: ... (program 0,3)" */
    void (*failure)(void *user, const char *text);
    void *user;
} tile_callbacks;
#define TILE_CALLBACKS_INIT TILE_INIT_(tile_callbacks)
/* Must not be called while kernels of the device run. NULL removes the callbacks. A callback may
 * use the runtime, but must not free the stream or device that is being synchronised. */
TILE_0_1 tile_status tile_device_set_callbacks(tile_device *device,
                                               const tile_callbacks *callbacks);

/* ---- memory ---- */

/* Device memory, 256-byte aligned, uninitialised. 0 bytes are allowed. On cuda and hip, what is
 * freed is kept for later buffers of about its size, as these drivers stop the device to free
 * memory; it is given back when memory runs out, by tile_device_trim, and with the device. On
 * "ref", a kernel compiled with checks fails (TILE_FAILED) if it reads a byte that no upload, fill
 * or kernel has written; writes by the host through the address are not seen there. */
TILE_0_1 tile_status tile_buffer_alloc(tile_device *device, uint64_t bytes,
                                       tile_buffer **out_buffer);
/* Does not wait: no kernel may be using the buffer. */
TILE_0_1 void tile_buffer_free(tile_buffer *buffer);
TILE_0_1 void *tile_buffer_ptr(const tile_buffer *buffer); /* or see tile_buffer_view */
TILE_0_1 uint64_t tile_buffer_bytes(const tile_buffer *buffer);
/* In the stream's order; upload and download return when the copy is done.
 * TILE_BAD_ARGUMENT: the range is out of bounds, or the host's memory is NULL (allowed for 0
 * bytes). */
TILE_0_1 tile_status tile_buffer_upload(tile_buffer *buffer, uint64_t offset, const void *source,
                                        uint64_t bytes, tile_stream *stream);
TILE_0_1 tile_status tile_buffer_download(tile_buffer *buffer, uint64_t offset, void *target,
                                          uint64_t bytes, tile_stream *stream);
/* The same, but they do not wait: until the stream has been synchronised, the host's memory must
 * not change, nor be read after a download. A GPU copies beside the host's work only from and to
 * memory of tile_host_alloc; with other memory its library may copy within the call. */
TILE_0_1 tile_status tile_buffer_upload_async(tile_buffer *buffer, uint64_t offset,
                                              const void *source, uint64_t bytes,
                                              tile_stream *stream);
TILE_0_1 tile_status tile_buffer_download_async(tile_buffer *buffer, uint64_t offset, void *target,
                                                uint64_t bytes, tile_stream *stream);
/* Copies between buffers of one device or of two; does not wait. The device that copies is the
 * target's, or the source's if only that is a GPU; `stream` is one of it, NULL its default stream.
 * Work on the other device has to be done before: tile_stream_wait_event orders them.
 * TILE_BAD_ARGUMENT: a range is out of bounds, or both overlap. TILE_UNAVAILABLE: from a cuda
 * device to a hip device, or back; the driver is too old. */
TILE_0_1 tile_status tile_buffer_copy(tile_buffer *target, uint64_t target_offset,
                                      tile_buffer *source, uint64_t source_offset, uint64_t bytes,
                                      tile_stream *stream);
/* Host memory that a GPU reads and writes by itself (pinned), 256-byte aligned; on other devices it
 * is ordinary memory. Every device of the kind may use it. Free it with tile_host_free (accepts
 * NULL), after the work that uses it, before the device is closed. */
TILE_0_1 tile_status tile_host_alloc(tile_device *device, uint64_t bytes, void **out_memory);
TILE_0_1 tile_status tile_host_free(tile_device *device, void *memory);
/* Gives back the memory that the device keeps for later buffers. Waits for its kernels. */
TILE_0_1 tile_status tile_device_trim(tile_device *device);
/* Sets each byte to `value`; does not wait. */
TILE_0_1 tile_status tile_buffer_fill(tile_buffer *buffer, uint64_t offset, int value,
                                      uint64_t bytes, tile_stream *stream);

/* ---- streams and events ---- */

/* The operations of one stream happen in order; streams are independent. A NULL stream is the
 * default stream of the default device (launch: of the kernel's device; buffers: of the buffer's).
 * On cpu, ref and emu the default stream runs launches within the call, in the calling thread and
 * the pool; a stream created here has a thread of its own. On cuda and hip the default stream is
 * the driver's. */
TILE_0_1 tile_status tile_stream_create(tile_device *device, tile_stream **out_stream);
/* For programs that have threads of their own (thread pools, job systems): a stream whose launches
 * run part number `part` (from 0) of `parts` of the grid. On cpu in the calling thread, within the
 * call, in order; the pool stays asleep, and a stream of one part is a serial one. A kernel has run
 * when all parts have, each launched once with the same arguments, by any threads, at the same time
 * or not; no launch waits for another part, so what comes next is the caller's to hold back.
 * Copies, fills and events are done whole, as in any stream. Where a program waits for those that
 * start before it (a scan of one pass), parts must run in their order or all at the same time.
 * On other devices part 0 is the whole launch, and other parts are nothing.
 * TILE_BAD_ARGUMENT: part is not below parts. A launch with TILE_LAUNCH_TOGETHER: likewise. */
TILE_0_1 tile_status tile_stream_create_part(tile_device *device, uint32_t part, uint32_t parts,
                                             tile_stream **out_stream);
/* Waits until the stream is empty, unless it was wrapped. Does nothing to a default stream. */
TILE_0_1 void tile_stream_free(tile_stream *stream);
/* The stream belongs to the device and is freed with it. */
TILE_0_1 tile_status tile_device_default_stream(tile_device *device, tile_stream **out_stream);
/* Waits until the stream is empty, then delivers prints and failures.
 * TILE_FAILED: a kernel has failed a check or assertion since the last synchronisation; the error
 * text is that of the first failure. */
TILE_0_1 tile_status tile_stream_synchronize(tile_stream *stream);
TILE_0_1 tile_status tile_device_synchronize(tile_device *device); /* every stream of the device */
/* The driver's own stream, for calls of its library (a CUstream, hipStream_t; NULL is its default
 * stream). NULL also on devices that have none. */
TILE_0_1 void *tile_stream_native(const tile_stream *stream);
/* Wraps a driver's own stream (a CUstream, hipStream_t), which remains the caller's.
 * TILE_UNAVAILABLE: the device has no such streams. */
TILE_0_1 tile_status tile_stream_wrap(tile_device *device, void *native, tile_stream **out_stream);

/* Has a library that is not Tile's work in a stream of the device (NULL: its default stream). On
 * cpu, ref and emu: calls call(user, NULL) in the stream's order, in its thread; what that does is
 * the work. `written`, of `bytes` bytes, is what it writes, for checks of uninitialised reads
 * (NULL: nothing). Its failure, with what tile_set_last_error has set, is that of the stream's next
 * synchronisation, on a default stream that of this call. It may wait for other streams' work, but
 * must not put work into its own. On cuda and hip: calls call(user, native) at once, with the
 * device as the calling thread's; what it puts into the driver's stream `native` is the work (NULL
 * is the default stream). */
TILE_0_1 tile_status tile_stream_call(tile_device *device, tile_stream *stream,
                                      tile_status (*call)(void *user, void *native), void *user,
                                      void *written, uint64_t bytes);

TILE_0_1 tile_status tile_event_create(tile_device *device, tile_event **out_event);
TILE_0_1 void tile_event_free(tile_event *event);
TILE_0_1 tile_status tile_event_record(tile_event *event, tile_stream *stream);
/* Returns at once if the event was never recorded. */
TILE_0_1 tile_status tile_event_synchronize(tile_event *event);
/* The stream may be of another device, if both are cuda, both hip, or both neither. */
TILE_0_1 tile_status tile_stream_wait_event(tile_stream *stream, tile_event *event);
/* The time between two events that were recorded and have been reached. */
TILE_0_1 tile_status tile_event_elapsed(tile_event *from, tile_event *to, double *out_milliseconds);

/* ---- modules and kernels ---- */

/* A compile-time constant: a number, or a text for types, functions and floats: {"BM", 64, NULL},
 * {"T", 0, "f16"}. A list ends with {0}. */
typedef struct tile_const {
    const char *name;
    int64_t value;
    const char *text; /* NULL: `value` is used */
} tile_const;

/* Loads a kernel image, as written by tilec. The bytes are copied.
 * TILE_BAD_IMAGE: damaged, or made for another target. */
TILE_0_1 tile_status tile_module_load_image(tile_device *device, const void *data, size_t size,
                                            tile_module **out_module);
/* Frees the module's kernels too; none may be running. */
TILE_0_1 void tile_module_free(tile_module *module);
/* The instances, in the image's order; 0 for source and for NULL. */
TILE_0_1 size_t tile_module_kernel_count(const tile_module *module);
/* NULL if the index is out of bounds or the module is NULL. */
TILE_0_1 const char *tile_module_kernel_name(const tile_module *module, size_t index);

/* The kernel of that name, restricted to the instances that agree with the given constants (NULL:
 * none given). Equal arguments give the same handle, which lives as long as the module. A module
 * made from source compiles here.
 * TILE_NOT_FOUND: no such kernel or constant, or no instance agrees; the error text lists those
 * that exist. */
TILE_0_1 tile_status tile_kernel_get(tile_module *module, const char *name,
                                     const tile_const *consts, tile_kernel **out_kernel);
/* Loads the code and allocates everything that launches need. If this is not called, launches do
 * it. On GPUs a kernel has several forms, for arguments that are aligned well or less well. A
 * module from source compiles a form when a launch first needs it; this call compiles what any
 * launch may need, and after it no launch compiles. tile_launch_prepare, for given arguments, does
 * less and may do better: it compiles the form that suits them best. */
TILE_0_1 tile_status tile_kernel_prepare(tile_kernel *kernel);

typedef enum tile_arg_kind { TILE_ARG_VIEW, TILE_ARG_POINTER, TILE_ARG_SCALAR } tile_arg_kind;

typedef struct tile_param_info {
    size_t struct_size;
    const char *name;
    tile_arg_kind kind;
    tile_dtype dtype;
    int is_const;
    int rank; /* for views */
    /* A field of a struct whose source gives it a default: value has its bits, as tile_bits takes
     * them. Launches want a value all the same. */
    int has_default;
    uint64_t value;
} tile_param_info;
#define TILE_PARAM_INFO_INIT TILE_INIT_(tile_param_info)
TILE_0_1 const char *tile_kernel_name(const tile_kernel *kernel);       /* NULL for NULL */
TILE_0_1 size_t tile_kernel_param_count(const tile_kernel *kernel); /* 0 for NULL */
TILE_0_1 tile_status tile_kernel_param(const tile_kernel *kernel, size_t index,
                                       tile_param_info *out_info);

/* ---- arguments ---- */

enum { TILE_MAX_RANK = 8 };

/* One argument of a launch. The functions and macros below make one; its fields may also be set
 * directly. */
typedef struct tile_arg {
    int32_t kind, dtype; /* tile_arg_kind; tile_dtype, TILE_ANY... if unknown */
    int32_t rank;
    int32_t strided;     /* stride[] is used; else dense, row-major */
    void *address;
    /* size of the memory at address, in which a view has to lie; 0: given by the extents, with
     * --check by the tile_buffer */
    uint64_t bytes;
    uint64_t scalar;     /* the bits of a scalar, in the low bytes */
    int64_t extent[TILE_MAX_RANK], stride[TILE_MAX_RANK]; /* strides in elements */
} tile_arg;

static inline tile_arg tile_arg_view(const void *address, tile_dtype dtype, int rank, int64_t e0,
                                     int64_t e1, int64_t e2, int64_t e3, int64_t e4, int64_t e5,
                                     int64_t e6, int64_t e7)
{
    const int64_t extent[TILE_MAX_RANK] = {e0, e1, e2, e3, e4, e5, e6, e7};
    tile_arg a;
    memset(&a, 0, sizeof a);
    a.kind = TILE_ARG_VIEW;
    a.dtype = dtype;
    a.rank = rank;
    a.address = TILE_UNCONST_(address);
    memcpy(a.extent, extent, sizeof extent);
    return a;
}
static inline tile_arg tile_arg_view_strided(const void *address, tile_dtype dtype, int rank,
                                             const int64_t *extent, const int64_t *stride)
{
    tile_arg a = tile_arg_view(address, dtype, rank, 0, 0, 0, 0, 0, 0, 0, 0);
    for (int i = 0; i < rank && i < TILE_MAX_RANK; i++) {
        a.extent[i] = extent[i];
        a.stride[i] = stride[i];
    }
    a.strided = 1;
    return a;
}
static inline tile_arg tile_arg_scalar(tile_dtype dtype, const void *bits, size_t size)
{
    tile_arg a = tile_arg_view(0, dtype, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    a.kind = TILE_ARG_SCALAR;
    memcpy(&a.scalar, bits, size < sizeof a.scalar ? size : sizeof a.scalar);
    return a;
}
static inline tile_arg tile_arg_pointer(const void *address, tile_dtype dtype, uint64_t bytes)
{
    tile_arg a = tile_arg_view(address, dtype, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    a.kind = TILE_ARG_POINTER;
    a.bytes = bytes;
    return a;
}
/* The view or pointer `arg`, whose address does not matter, from element `at` of the buffer on
 * (from byte `at` if the element type is TILE_ANY). It is for launches to find that it does not lie
 * in the buffer: TILE_BAD_ARGUMENT. A NULL buffer has room for views without elements. */
TILE_0_1 tile_arg tile_arg_in_buffer(tile_arg arg, const tile_buffer *buffer, int64_t at);
static inline tile_arg tile_i8(int8_t v) { return tile_arg_scalar(TILE_I8, &v, sizeof v); }
static inline tile_arg tile_i16(int16_t v) { return tile_arg_scalar(TILE_I16, &v, sizeof v); }
static inline tile_arg tile_i32(int32_t v) { return tile_arg_scalar(TILE_I32, &v, sizeof v); }
static inline tile_arg tile_i64(int64_t v) { return tile_arg_scalar(TILE_I64, &v, sizeof v); }
static inline tile_arg tile_u8(uint8_t v) { return tile_arg_scalar(TILE_U8, &v, sizeof v); }
static inline tile_arg tile_u16(uint16_t v) { return tile_arg_scalar(TILE_U16, &v, sizeof v); }
static inline tile_arg tile_u32(uint32_t v) { return tile_arg_scalar(TILE_U32, &v, sizeof v); }
static inline tile_arg tile_u64(uint64_t v) { return tile_arg_scalar(TILE_U64, &v, sizeof v); }
static inline tile_arg tile_f32(float v) { return tile_arg_scalar(TILE_F32, &v, sizeof v); }
static inline tile_arg tile_f64(double v) { return tile_arg_scalar(TILE_F64, &v, sizeof v); }
static inline tile_arg tile_bool(int v)
{
    uint8_t b = v != 0;
    return tile_arg_scalar(TILE_BOOL, &b, sizeof b);
}
/* A scalar by its bits, for types that C lacks: tile_bits(TILE_BF16, 0x3f80). */
static inline tile_arg tile_bits(tile_dtype dtype, uint64_t bits)
{
    return tile_arg_scalar(dtype, &bits, sizeof bits);
}

/* ---- the element type that a C pointer implies ----
 *
 *     float  double            f32  f64
 *     int8_t int16_t int32_t int64_t (also int, long, long long)      i8  i16  i32  i64
 *     uint32_t uint64_t        u32  u64
 *     uint16_t                 TILE_ANY_WORD: i16, u16, f16 or bf16
 *     uint8_t                  TILE_ANY_BYTE: i8, u8, bool, f8e4m3, f8e5m2 or packed
 *                              (i4, u4, f4e2m1)
 *     _Bool, bool              bool
 *     _Float16, __bf16         f16, bf16, if the compiler has them
 *     void, char, others       TILE_ANY: not known, not checked
 *
 * The same holds for const types and for arrays (double a[8][16] is f64): up to three dimensions in
 * C (with more, the type is not known), any number in C++. Use tile_view_typed where the pointer
 * does not imply the type. */
#if defined(__FLT16_MAX__) &&                                                                      \
    (defined(__clang__) ? __clang_major__ >= 15 : !defined(__cplusplus) || __GNUC__ >= 13)
#define TILE_HAS_C_F16 1
__extension__ typedef _Float16 tile_c_f16;
#define TILE_ELEMENT_F16_(X) X(tile_c_f16, TILE_F16)
#else
#define TILE_ELEMENT_F16_(X)
#endif
#ifdef __BFLT16_MAX__
#define TILE_HAS_C_BF16 1
__extension__ typedef __bf16 tile_c_bf16;
#define TILE_ELEMENT_BF16_(X) X(tile_c_bf16, TILE_BF16)
#else
#define TILE_ELEMENT_BF16_(X)
#endif
#if __SIZEOF_LONG__ == 8
#define TILE_C_LONG_(sign) sign##64
#else
#define TILE_C_LONG_(sign) sign##32
#endif
#ifdef __cplusplus
#define TILE_C_BOOL_ bool
#else
#define TILE_C_BOOL_ _Bool
#endif
#define TILE_ELEMENTS_(X)                                                                          \
    X(float, TILE_F32) X(double, TILE_F64)                                                         \
    X(signed char, TILE_I8) X(short, TILE_I16) X(int, TILE_I32) X(long, TILE_C_LONG_(TILE_I))      \
    X(long long, TILE_I64) X(unsigned char, TILE_ANY_BYTE) X(unsigned short, TILE_ANY_WORD)        \
    X(unsigned, TILE_U32) X(unsigned long, TILE_C_LONG_(TILE_U)) X(unsigned long long, TILE_U64)   \
    X(TILE_C_BOOL_, TILE_BOOL) TILE_ELEMENT_F16_(X) TILE_ELEMENT_BF16_(X)

#ifdef __cplusplus
extern "C++" {
/* A host may specialise this for its own element types (half, bfloat16). */
template <class T> struct tile_element { static const tile_dtype dtype = TILE_ANY; };
#define TILE_ELEMENT_(T, D)                                                                        \
    template <> struct tile_element<T> { static const tile_dtype dtype = D; };
TILE_ELEMENTS_(TILE_ELEMENT_)
#undef TILE_ELEMENT_
template <class T> struct tile_element<const T> : tile_element<T> {};
template <class T, size_t N> struct tile_element<T[N]> : tile_element<T> {};
template <class T, size_t N> struct tile_element<const T[N]> : tile_element<T> {};
template <class T> inline tile_dtype tile_dtype_of(const T *) { return tile_element<T>::dtype; }
inline tile_dtype tile_dtype_of(const void *) { return TILE_ANY; } /* nullptr too */
}
#define TILE_DTYPE_OF(p) tile_dtype_of(p)
#else
/* An expression that can be dereferenced and then is a pointer: p itself if it points to arrays,
 * since *p then decays to a pointer to the first element or row; for a pointer to numbers, a
 * pointer to such a pointer. */
#define TILE_ROW_(T, D) T *: (T **)0, const T *: (T **)0,
#define TILE_ROW_OF_(p)                                                                            \
    _Generic((p), TILE_ELEMENTS_(TILE_ROW_) int: (char *)0, void *: (char *)0,                     \
                 const void *: (char *)0, default: (p))
#define TILE_ELEMENT_(T, D) T *: D, const T *: D, T (*)[]: D, const T (*)[]: D,
#define TILE_DTYPE_OF(p)                                                                           \
    _Generic(*TILE_ROW_OF_(p), TILE_ELEMENTS_(TILE_ELEMENT_) default : TILE_ANY)
#endif

/* tile_view(p, M, N): a dense row-major view with one to eight extents, of the element type that
 * p's type implies. tile_view_typed(TILE_BF16, p, M, N) names the element type.
 * tile_view_strided(p, rank, extents, strides): arrays of int64_t, strides in elements.
 * tile_ptr(p): a pointer argument; tile_ptr_sized(p, bytes): with the size of its memory. */
#define TILE_COUNT_(a, b, c, d, e, f, g, h, n, ...) n
#define TILE_COUNT(...) TILE_COUNT_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TILE_INT_(x) TILE_CAST_(int64_t, x)
#define TILE_FIRST8(a, b, c, d, e, f, g, h, ...) \
    TILE_INT_(a), TILE_INT_(b), TILE_INT_(c), TILE_INT_(d), TILE_INT_(e), TILE_INT_(f), \
        TILE_INT_(g), TILE_INT_(h)
#define TILE_PAD8(...) TILE_FIRST8(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0)
#define TILE_VIEW_(dtype, p, n, ...) tile_arg_view((p), (dtype), (n), __VA_ARGS__)
#define tile_view(p, ...) \
    TILE_VIEW_(TILE_DTYPE_OF(p), p, TILE_COUNT(__VA_ARGS__), TILE_PAD8(__VA_ARGS__))
#define tile_view_typed(dtype, p, ...) \
    TILE_VIEW_(dtype, p, TILE_COUNT(__VA_ARGS__), TILE_PAD8(__VA_ARGS__))
/* (variadic, as compound literals have commas: tile_view_strided(p, 2, (int64_t[]){M, N}, ...)) */
#define tile_view_strided(p, ...) tile_arg_view_strided((p), TILE_DTYPE_OF(p), __VA_ARGS__)
#define tile_ptr(p) tile_arg_pointer((p), TILE_DTYPE_OF(p), 0)
#define tile_ptr_sized(p, bytes) tile_arg_pointer((p), TILE_DTYPE_OF(p), (bytes))

/* Views of buffers; launches check that they lie in them. tile_f32_view(buffer, M, N) is dense,
 * from the buffer's beginning, with one to eight extents, and likewise for the other types;
 * tile_f32_view(NULL, 0) is an argument that is left out. With any type:
 * tile_buffer_view(buffer, dtype, M, N); tile_buffer_view_at(buffer, at, dtype, M, N): from element
 * `at` on; tile_buffer_view_strided(buffer, at, dtype, rank, extents, strides): as
 * tile_view_strided. */
#define tile_buffer_view(buffer, dtype, ...) tile_buffer_view_at(buffer, 0, dtype, __VA_ARGS__)
#define tile_buffer_view_at(buffer, at, dtype, ...) \
    tile_arg_in_buffer(tile_view_typed(dtype, 0, __VA_ARGS__), (buffer), TILE_INT_(at))
#define tile_buffer_view_strided(buffer, at, dtype, ...) \
    tile_arg_in_buffer(tile_arg_view_strided(0, (dtype), __VA_ARGS__), (buffer), TILE_INT_(at))
#define tile_bool_view(buffer, ...) tile_buffer_view(buffer, TILE_BOOL, __VA_ARGS__)
#define tile_i8_view(buffer, ...) tile_buffer_view(buffer, TILE_I8, __VA_ARGS__)
#define tile_i16_view(buffer, ...) tile_buffer_view(buffer, TILE_I16, __VA_ARGS__)
#define tile_i32_view(buffer, ...) tile_buffer_view(buffer, TILE_I32, __VA_ARGS__)
#define tile_i64_view(buffer, ...) tile_buffer_view(buffer, TILE_I64, __VA_ARGS__)
#define tile_u8_view(buffer, ...) tile_buffer_view(buffer, TILE_U8, __VA_ARGS__)
#define tile_u16_view(buffer, ...) tile_buffer_view(buffer, TILE_U16, __VA_ARGS__)
#define tile_u32_view(buffer, ...) tile_buffer_view(buffer, TILE_U32, __VA_ARGS__)
#define tile_u64_view(buffer, ...) tile_buffer_view(buffer, TILE_U64, __VA_ARGS__)
#define tile_f16_view(buffer, ...) tile_buffer_view(buffer, TILE_F16, __VA_ARGS__)
#define tile_bf16_view(buffer, ...) tile_buffer_view(buffer, TILE_BF16, __VA_ARGS__)
#define tile_f32_view(buffer, ...) tile_buffer_view(buffer, TILE_F32, __VA_ARGS__)
#define tile_f64_view(buffer, ...) tile_buffer_view(buffer, TILE_F64, __VA_ARGS__)

/* The arguments of a launch and their number, in C and in C++:
 * tile_launch(kernel, NULL, TILE_ARGS(tile_f32_view(buffer, n), tile_f32(2))). */
#ifdef __cplusplus
#define TILE_ARGS(...) {__VA_ARGS__}
#else
#define TILE_ARGS(...) \
    (const tile_arg[]){__VA_ARGS__}, sizeof((const tile_arg[]){__VA_ARGS__}) / sizeof(tile_arg)
#endif

/* ---- launch ---- */

/* Starts `kernel` on `stream` over its grid and returns without waiting (but see the default
 * stream above). `args` is read before the call returns; the memory it refers to must live until
 * the stream has run the kernel. The first instance whose `require` holds is run. After
 * tile_kernel_prepare, or tile_launch_prepare with arguments that are as well aligned, nothing is
 * compiled or allocated, and no lock of the runtime is taken. With
 * TILE_SYNC=1 in the environment the call synchronises and returns that status.
 * TILE_BAD_ARGUMENT: count, type, rank, extent or stride differs from the kernel's, an address is
 * not a multiple of its element's size, or no `require` holds; the error text names the kernel, the
 * parameter, what was expected and what was passed.  TILE_DRIVER, TILE_NO_RESOURCE: the device
 * rejected the launch. Thread-safe for different streams. */
TILE_0_1 tile_status tile_launch(tile_kernel *kernel, tile_stream *stream, const tile_arg *args,
                                 size_t nargs);
/* The same over a grid given by the caller: naxes (1 to 6) extents, the first axis fastest. */
TILE_0_1 tile_status tile_launch_grid(tile_kernel *kernel, tile_stream *stream,
                                      const tile_arg *args, size_t nargs,
                                      const int64_t *grid, size_t naxes);

/* The same of a part of the grid, as in a stream of tile_stream_create_part. Prints and failures
 * are the default stream's. Thread-safe for different parts. */
TILE_0_1 tile_status tile_launch_part(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                                      uint32_t part, uint32_t parts);

/* How a launch is made. Whatever is set here, the kernel computes the same. */
typedef struct tile_launch_options {
    size_t struct_size;
    const int64_t *grid; /* NULL: the kernel's own; else as for tile_launch_grid */
    size_t naxes;
    unsigned flags; /* of tile_launch_flags */
} tile_launch_options;
#define TILE_LAUNCH_OPTIONS_INIT TILE_INIT_(tile_launch_options)
typedef enum tile_launch_flags {
    /* All programs run at the same time, so that any may wait for any other, as at a barrier of the
     * whole grid. (Without it, a program may wait only for programs that start before it.) On cuda
     * and hip, a cooperative launch. The grid may have as many programs as tile_launch_room says.
     * TILE_NO_RESOURCE: it has more. */
    TILE_LAUNCH_TOGETHER = 1,
    /* The kernel may be started before the one ahead of it in the stream has ended, which hides the
     * time that starting takes; it waits for that one's end itself before it reads or writes
     * anything. On cuda, kernels compiled for sm_90 and later (programmatic dependent launch);
     * elsewhere, and together with TILE_LAUNCH_TOGETHER, it changes nothing. */
    TILE_LAUNCH_OVERLAP = 2
} tile_launch_flags;
/* The same with options; NULL: none. */
TILE_0_1 tile_status tile_launch_with(tile_kernel *kernel, tile_stream *stream,
                                      const tile_arg *args, size_t nargs,
                                      const tile_launch_options *options);
/* Prepares the kernel for launches with arguments as suitable as these, that is, of the same
 * instance and aligned as well: compiles what is missing, and loads the code. `options` may be
 * NULL; its flags do not matter. */
TILE_0_1 tile_status tile_launch_prepare(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                                         const tile_launch_options *options);
/* How many programs of the kernel can run at the same time (TILE_LAUNCH_TOGETHER), of the instance
 * that these arguments choose; 0: there is nothing to run. Prepares the kernel. cuda, hip: by the
 * driver's count of what fits on a processor. cpu: the threads of its pool. emu: up to 64 for each
 * of them, fewer of many threads. ref: 1. */
TILE_0_1 tile_status tile_launch_room(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                                      int64_t *out_programs);

/* Called by the headers that `tilec --header` writes: launches kernel `name` of an image that was
 * linked into the program, on the stream's device. The first launch on a device loads and prepares
 * the kernel. Otherwise like tile_launch. */
TILE_0_1 tile_status tile_launch_embedded(const void *image, const char *name, tile_stream *stream,
                                          const tile_arg *args, size_t nargs);
/* The same for the variants of the kernel (instantiate) that agree with these constants: a list as
 * for tile_kernel_get, or NULL. */
TILE_0_1 tile_status tile_launch_embedded_variant(const void *image, const char *name,
                                                  const tile_const *consts, tile_stream *stream,
                                                  const tile_arg *args, size_t nargs);

#ifdef __cplusplus
/* The same with lists: tile_launch_grid(k, stream, {tile_view(x, n), tile_f32(2)}, {16, 4}). */
extern "C++" {
inline tile_status tile_launch(tile_kernel *kernel, tile_stream *stream,
                               std::initializer_list<tile_arg> args)
{
    return tile_launch(kernel, stream, args.begin(), args.size());
}
inline tile_status tile_launch_grid(tile_kernel *kernel, tile_stream *stream,
                                    std::initializer_list<tile_arg> args,
                                    std::initializer_list<int64_t> grid)
{
    return tile_launch_grid(kernel, stream, args.begin(), args.size(), grid.begin(), grid.size());
}
inline tile_status tile_launch_with(tile_kernel *kernel, tile_stream *stream,
                                    std::initializer_list<tile_arg> args,
                                    const tile_launch_options *options)
{
    return tile_launch_with(kernel, stream, args.begin(), args.size(), options);
}
inline tile_status tile_launch_embedded(const void *image, const char *name, tile_stream *stream,
                                        std::initializer_list<tile_arg> args)
{
    return tile_launch_embedded(image, name, stream, args.begin(), args.size());
}
}
#endif

#ifdef TILE_UNSTABLE
/* Changes a setting of the device's driver. emu: "schedule" (rr, reverse, ahead, random:SEED: the
 * order in which threads run), "perturb" (a seed: approximate instructions are off within their
 * bounds; 0: they are correctly rounded), "stats" (1: launches are counted).
 * TILE_BAD_ARGUMENT: no such setting or value. */
TILE_API tile_status tile_device_configure(tile_device *device, const char *key, const char *value);

/* Writes the counters of the device's last launch as text. Returns the full length, as snprintf
 * does; 0: nothing was counted. */
TILE_API size_t tile_device_counters(tile_device *device, char *text, size_t size);

/* What a launch with these arguments would run, without running it: how many programs (0: nothing),
 * and the symbol of the form's code, which belongs to the module ("" for 0 programs, and for a form
 * that the launch would compile). grid: NULL, or another one than the kernel's, of naxes axes.
 * Errors are those of tile_launch. */
TILE_API tile_status tile_launch_plan(tile_kernel *kernel, const tile_arg *args, size_t nargs,
                                      const int64_t *grid, size_t naxes, int64_t *out_programs,
                                      const char **out_symbol);

/* Writes an array's elements as print shows them, "[1, 2, ..., 9]", abbreviated if long. The data
 * are row-major without gaps, one byte per element of packed types. Returns the full length, as
 * snprintf does; 0 for an unknown type, a rank below 0 or above TILE_MAX_RANK, or NULL data of an
 * array with elements. */
TILE_API size_t tile_format_array(char *text, size_t size, tile_dtype dtype, int rank,
                                  const int64_t *shape, const void *data);
#endif

#ifdef __cplusplus
}
#endif
#endif
