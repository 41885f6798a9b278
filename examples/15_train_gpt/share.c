/* share.c: libraries are opened when they are needed, so that the program needs no header of theirs
 * to be built and none of them to run. Of their functions it declares what it uses. */
#include "share.h"
#include "ranks.h"
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOAT32 = 7, SUM = 0 }; /* of NCCL and RCCL */

typedef struct Id {
    char bytes[128];
} Id; /* of a group of ranks */

typedef struct Place {
    char bus[32];
} Place; /* of a GPU in its machine */

typedef struct Kind {
    const char *name, *library, *driver[5]; /* the driver's names, the newest first */
} Kind;
static const Kind kinds[] = {
    {"cuda", "libnccl.so.2", {"libcuda.so.1"}},
    {"hip", "librccl.so.1",
     {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}}};

static struct {
    const Kind *kind; /* of the GPU; NULL: there is none, or one rank alone */
    int number;       /* of the GPU */
    tile_device *device;
    void *context, *group; /* context: what use_cuda has taken */
    char error[300];
} share;

static struct {
    int (*id)(Id *out);
    int (*join)(void **out_group, int ranks, Id id, int rank);
    int (*leave)(void *group);
    int (*sum)(const void *from, void *to, size_t count, int type, int op, void *group,
               void *stream);
    const char *(*text)(int code);
} nccl;

static struct {
    int (*device)(int *out, int number);
    int (*retain)(void **out_context, int device), (*release)(int device);
    int (*set_context)(void *context);
    int (*bus)(char *text, int size, int device);
} cuda;

static struct {
    int (*set)(int number);
    int (*bus)(char *text, int size, int number);
} hip;

static bool fails(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(share.error, sizeof share.error, format, list);
    va_end(list);
    return false;
}

const char *share_error(void) { return share.error; }

/* ---- the device ---- */

static bool open_number(const Kind *kind, int number)
{
    char name[32];
    snprintf(name, sizeof name, "%s:%d", kind->name, number);
    share.number = number;
    return !tile_device_open(name, &share.device);
}

static bool open_named(const char *name, const char *number)
{
    share.number = atoi(number);
    return !tile_device_open(name, &share.device);
}

/* Where the job's launcher shows each rank one GPU only, that is number 0. */
bool share_device(void)
{
    const char *name = getenv("TILE_DEVICE");
    for (size_t i = 0; name && ranks_count() > 1 && i < sizeof kinds / sizeof *kinds; i++) {
        const Kind *k = &kinds[i];
        size_t n = strlen(k->name);
        if (strncmp(name, k->name, n) != 0 || (name[n] && name[n] != ':')) continue;
        share.kind = k;
        bool good = name[n] ? open_named(name, name + n + 1)
                            : open_number(k, ranks_local()) || open_number(k, 0);
        return good && !tile_set_default_device(share.device);
    }
    return true;
}

/* ---- libraries ---- */

typedef struct Symbol {
    const char *name;
    void *to; /* the address of a pointer to a function */
} Symbol;

static bool load(const char *library, const Symbol *symbols, size_t n)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return fails("%s", dlerror());
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (!found) return fails("%s has no %s", library, symbols[i].name);
        memcpy(symbols[i].to, &found, sizeof found);
    }
    return true;
}
#define LOAD(library, ...)                                                                         \
    load(library, (const Symbol[]){__VA_ARGS__},                                                   \
         sizeof((const Symbol[]){__VA_ARGS__}) / sizeof(Symbol))

static bool load_nccl(const char *library)
{
    return LOAD(library, {"ncclGetUniqueId", &nccl.id}, {"ncclCommInitRank", &nccl.join},
                {"ncclCommDestroy", &nccl.leave}, {"ncclAllReduce", &nccl.sum},
                {"ncclGetErrorString", &nccl.text});
}

/* NCCL works on the device that is current when a rank joins, and on its primary context, which is
 * the one that Tile uses, too. */
static bool use_cuda(const char *driver, Place *out)
{
    int device;
    if (!LOAD(driver, {"cuDeviceGet", &cuda.device}, {"cuDevicePrimaryCtxRetain", &cuda.retain},
              {"cuDevicePrimaryCtxRelease_v2", &cuda.release},
              {"cuCtxSetCurrent", &cuda.set_context}, {"cuDeviceGetPCIBusId", &cuda.bus}))
        return false;
    int code = cuda.device(&device, share.number);
    if (!code) code = cuda.bus(out->bus, sizeof out->bus, device);
    if (!code) code = cuda.retain(&share.context, device);
    if (!code) code = cuda.set_context(share.context);
    return !code || fails("cuda:%d cannot be the current device: error %d", share.number, code);
}

static bool use_hip(const char *driver, Place *out)
{
    if (!LOAD(driver, {"hipSetDevice", &hip.set}, {"hipDeviceGetPCIBusId", &hip.bus})) return false;
    int code = hip.set(share.number);
    if (!code) code = hip.bus(out->bus, sizeof out->bus, share.number);
    return !code || fails("hip:%d cannot be the current device: error %d", share.number, code);
}

static bool use_device(Place *out)
{
    bool good = false;
    for (int i = 0; !good && share.kind->driver[i]; i++)
        good = share.kind == kinds ? use_cuda(share.kind->driver[i], out)
                                   : use_hip(share.kind->driver[i], out);
    return good;
}

/* ---- the group ---- */

/* All ranks go the same way, so that none waits for others that went another. */
static bool agree(bool mine)
{
    int first = ranks_first(!mine);
    if (first == ranks_me()) fprintf(stderr, "15_train_gpt: rank %d: %s\n", first, share.error);
    return first == ranks_count();
}

static bool join(void)
{
    Id id = {{0}};
    int code = ranks_me() ? 0 : nccl.id(&id);
    ranks_give(&code, sizeof code);
    ranks_give(&id, sizeof id);
    if (!code) code = nccl.join(&share.group, ranks_count(), id, ranks_me());
    return !code || (share.group = NULL, fails("no group of ranks: %s", nccl.text(code)));
}

/* Two ranks on one GPU would wait for each other for ever. */
static bool open_group(const char *library)
{
    Place place = {{0}};
    return agree(load_nccl(library)) && agree(!share.kind || use_device(&place)) &&
           agree(!share.kind || ranks_differ(&place, sizeof place) ||
                 fails("another rank is on the same GPU, %s", place.bus)) &&
           agree(join());
}

void share_open(const char *library)
{
    if (ranks_count() == 1) return;
    if (!library) library = share.kind ? share.kind->library : "mpi";
    bool group = strcmp(library, "mpi") != 0 && open_group(library);
    if (ranks_me() == 0)
        printf("gradients are added up %s%s\n", group ? "by " : "through the host, by MPI",
               group ? library : "");
    share.error[0] = 0;
}

void share_close(void)
{
    int device;
    if (share.group) nccl.leave(share.group);
    share.group = NULL;
    if (share.context && !cuda.device(&device, share.number))
        (void)cuda.set_context(NULL), (void)cuda.release(device);
    share.context = NULL;
    if (share.device) tile_device_close(share.device);
    share.device = NULL;
}

/* ---- the sum ---- */

/* In the default stream's order: nobody waits. */
static bool sum_by_group(tile_buffer *numbers, size_t n)
{
    tile_stream *stream;
    if (tile_device_default_stream(NULL, &stream)) return false;
    void *p = tile_buffer_ptr(numbers);
    int code = nccl.sum(p, p, n, FLOAT32, SUM, share.group, tile_stream_native(stream));
    return !code || fails("the gradients cannot be added up: %s", nccl.text(code));
}

/* Where the host and MPI can reach them, or by a copy. */
static bool sum_by_host(tile_buffer *numbers, size_t n)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    if (tile_stream_synchronize(NULL) || tile_device_get_info(NULL, &info)) return false;
    if (info.host_memory) return ranks_sum_floats(tile_buffer_ptr(numbers), n), true;
    float *x = malloc(n * sizeof *x);
    bool good = x ? !tile_buffer_download(numbers, 0, x, n * sizeof *x, NULL) : fails("no memory");
    if (good) ranks_sum_floats(x, n);
    good = good && !tile_buffer_upload(numbers, 0, x, n * sizeof *x, NULL);
    return free(x), good;
}

bool share_sum(tile_buffer *numbers, size_t n)
{
    if (ranks_count() == 1) return true;
    return share.group ? sum_by_group(numbers, n) : sum_by_host(numbers, n);
}
