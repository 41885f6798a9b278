/* stub_nccl_local.c: NCCL's functions over the local backend of libtile-collectives, on the memory
 * of stub GPUs (stub_gpu.h), which the host can read. The program that loads it exports that
 * library. It refuses what NCCL must not be given: a type or reduction that is none, NULL, no
 * elements, a communicator that has ended, another device as the thread's than the communicator's.
 *
 * STUB_NCCL_FAIL=FUNCTION: its calls fail; async: the error that is polled. */
#include "runtime/include/tile_collectives.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, TOLD = 6, ALIVE = 0x4E43434C };
#define EXPORT __attribute__((visibility("default")))

typedef struct Id {
    char bytes[128];
} Id;

typedef struct Comm {
    int magic, device; /* device: -1: no driver */
    tile_comm *comm;
} Comm;

static tile_device *host; /* where the work is done */

static bool told(const char *function)
{
    const char *say = getenv("STUB_NCCL_FAIL");
    return say && strcmp(say, function) == 0;
}

/* The current device of the library's driver; -1: there is none. */
static int call_driver(const char *library, const char *function, void *out)
{
    int (*get)(void *) = NULL;
    void *lib = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *found = lib ? dlsym(lib, function) : NULL;
    memcpy(&get, &found, sizeof get);
    return get ? get(out) : -1;
}

static int current_device(void)
{
    int device = -1;
#ifdef STUB_RCCL
    return call_driver("libamdhip64.so.6", "hipGetDevice", &device) ? -1 : device;
#else
    void *context = NULL;
    if (call_driver("libcuda.so.1", "cuCtxGetCurrent", &context) || !context)
        return -1;
    return call_driver("libcuda.so.1", "cuCtxGetDevice", &device) ? -1 : device;
#endif
}

EXPORT const char *ncclGetErrorString(int code)
{
    return code == TOLD ? "the stub was told to fail" : code ? tile_last_error() : "no error";
}

EXPORT int ncclGetVersion(int *version)
{
    return *version = 22605, 0;
}

EXPORT int ncclGetUniqueId(Id *out)
{
    tile_comm_id id;
    if (!host && tile_device_open("cpu", &host))
        return SYSTEM_ERROR;
    if (tile_comm_id_create(host, NULL, &id))
        return SYSTEM_ERROR;
    memcpy(out, &id, sizeof *out);
    return 0;
}

EXPORT int ncclCommInitRank(Comm **out, int ranks, Id id, int rank)
{
    tile_comm_id whole = {{0}};
    Comm *c = calloc(1, sizeof *c);
    memcpy(&whole, &id, sizeof id);
    if (told("ncclCommInitRank") || !c)
        return free(c), TOLD;
    if (tile_comm_create(host, NULL, &whole, ranks, rank, &c->comm))
        return free(c), INVALID_ARGUMENT;
    c->magic = ALIVE;
    c->device = current_device();
    return *out = c, 0;
}

EXPORT int ncclCommDestroy(Comm *c)
{
    if (!c || c->magic != ALIVE)
        return INVALID_ARGUMENT;
    tile_comm_free(c->comm);
    c->magic = 0;
    return free(c), 0;
}

EXPORT int ncclCommAbort(Comm *c)
{
    tile_comm_abort(c->comm);
    return ncclCommDestroy(c);
}

EXPORT int ncclCommGetAsyncError(Comm *c, int *code)
{
    *code = told("async") ? TOLD : 0;
    return c->magic == ALIVE ? 0 : INVALID_ARGUMENT;
}

/* A group of joining ranks must not be one of the library below, which joins outside of groups. */
static _Thread_local int depth;
static _Thread_local bool below;

static void work_in_group(void)
{
    if (depth && !below)
        below = !tile_comm_group_begin();
}

EXPORT int ncclGroupStart(void)
{
    return depth++, 0;
}

EXPORT int ncclGroupEnd(void)
{
    if (depth == 0)
        return INVALID_USAGE;
    if (--depth || !below)
        return 0;
    below = false;
    return tile_comm_group_end() ? INVALID_USAGE : 0;
}

/* ---- operations ---- */

static const tile_dtype types[] = {TILE_I8,  TILE_U8,  TILE_I32, TILE_U32, TILE_I64,
                                   TILE_U64, TILE_F16, TILE_F32, TILE_F64, TILE_BF16};

static int wrong(const Comm *c, const void *data, size_t count, int type, const char *function)
{
    if (told(function))
        return TOLD;
    if (!c || c->magic != ALIVE || !data || !count || type < 0 || type > 9 ||
        c->device != current_device())
        return tile_set_last_error(TILE_BAD_ARGUMENT, "the stub was given something wrong"),
               INVALID_ARGUMENT;
    work_in_group();
    return 0;
}

static tile_arg view(const void *data, int type, size_t count)
{
    return tile_view_typed(types[type], data, (int64_t)count);
}

#define SIZE(c) (size_t) tile_comm_size((c)->comm)
/* Codes of NCCL; the text is the library's below. */
#define DO(call) return (call) ? INVALID_ARGUMENT : 0
#define CHECKED(data)                                                                              \
    do {                                                                                           \
        int code_ = wrong(c, data, count, type, __func__);                                         \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

EXPORT int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, Comm *c,
                         void *stream)
{
    (void)stream;
    CHECKED(recv);
    DO(tile_comm_all_reduce(c->comm, view(send, type, count), view(recv, type, count),
                            (tile_comm_reduction)op, NULL));
}

EXPORT int ncclReduce(const void *send, void *recv, size_t count, int type, int op, int root,
                      Comm *c, void *stream)
{
    (void)stream;
    CHECKED(send);
    DO(tile_comm_reduce(c->comm, view(send, type, count), view(recv, type, count),
                        (tile_comm_reduction)op, root, NULL));
}

EXPORT int ncclReduceScatter(const void *send, void *recv, size_t count, int type, int op, Comm *c,
                             void *stream)
{
    (void)stream;
    CHECKED(recv);
    DO(tile_comm_reduce_scatter(c->comm, view(send, type, count * SIZE(c)), view(recv, type, count),
                                (tile_comm_reduction)op, NULL));
}

EXPORT int ncclAllGather(const void *send, void *recv, size_t count, int type, Comm *c,
                         void *stream)
{
    (void)stream;
    CHECKED(recv);
    DO(tile_comm_all_gather(c->comm, view(send, type, count), view(recv, type, count * SIZE(c)),
                            NULL));
}

EXPORT int ncclBroadcast(const void *send, void *recv, size_t count, int type, int root, Comm *c,
                         void *stream)
{
    (void)stream;
    CHECKED(recv);
    DO(tile_comm_broadcast(c->comm, view(send, type, count), view(recv, type, count), root, NULL));
}

/* To itself, as NCCL has it and the library below not: what was sent last is what comes. */
static _Thread_local struct {
    const void *data;
    size_t count;
} own;

EXPORT int ncclSend(const void *send, size_t count, int type, int peer, Comm *c, void *stream)
{
    (void)stream;
    CHECKED(send);
    if (peer == tile_comm_rank(c->comm))
        return own.data = send, own.count = count, 0;
    DO(tile_comm_send(c->comm, view(send, type, count), peer, NULL));
}

EXPORT int ncclRecv(void *recv, size_t count, int type, int peer, Comm *c, void *stream)
{
    (void)stream;
    CHECKED(recv);
    if (peer != tile_comm_rank(c->comm))
        DO(tile_comm_recv(c->comm, view(recv, type, count), peer, NULL));
    if (own.count != count || recv == own.data)
        return INVALID_ARGUMENT;
    memcpy(recv, own.data, count * (size_t)tile_dtype_bits(types[type]) / 8);
    return 0;
}
