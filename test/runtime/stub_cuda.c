/* stub_cuda.c: libcuda.so.1 over stub_gpu.h. */
#define STUB_VERSION 13000
#define STUB_IMPLEMENTATION
#include "test/runtime/stub_gpu.h"

static bool started;
static _Thread_local StubThing *current;
static StubThing *primary[STUB_DEVICES];
static long retained[STUB_DEVICES];

static void reset(void)
{
    stub_remove_all();
    current = NULL;
    memset(primary, 0, sizeof primary);
    memset(retained, 0, sizeof retained);
}
StubState *stub_state(void)
{
    stub.reset = reset;
    return &stub;
}

/* Most calls want a context. */
#define IN_CONTEXT()                                                                               \
    STUB_CALL();                                                                                   \
    if (!current) {                                                                                \
        stub_misuse("a call without a context");                                                   \
        return STUB_INVALID_CONTEXT;                                                               \
    }                                                                                              \
    do {                                                                                           \
    } while (0)

STUB_EXPORT int cuInit(unsigned flags)
{
    STUB_CALL();
    started = flags == 0;
    return stub.devices == 0 ? STUB_NO_DEVICE : 0;
}
STUB_EXPORT int cuDriverGetVersion(int *version)
{
    STUB_CALL();
    *version = stub.version;
    return 0;
}
STUB_EXPORT int cuGetErrorName(int code, const char **text)
{
    *text = code == STUB_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == 700              ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                       : NULL;
    return *text ? 0 : STUB_INVALID_VALUE;
}
STUB_EXPORT int cuGetErrorString(int code, const char **text)
{
    *text = code == STUB_OUT_OF_MEMORY ? "out of memory" : "some other error";
    return 0;
}
STUB_EXPORT int cuDeviceGetCount(int *count)
{
    STUB_CALL();
    *count = stub.devices;
    return started ? 0 : STUB_NOT_INITIALIZED;
}
STUB_EXPORT int cuDeviceGet(int *device, int ordinal)
{
    STUB_CALL();
    *device = 10 + ordinal; /* handles are not ordinals */
    return ordinal >= 0 && ordinal < stub.devices ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int cuDeviceGetName(char *name, int size, int device)
{
    STUB_CALL();
    snprintf(name, (size_t)size, "Stub %d", device - 10);
    return 0;
}
STUB_EXPORT int cuDeviceGetPCIBusId(char *text, int size, int device)
{
    STUB_CALL();
    snprintf(text, (size_t)size, "0000:%02x:00.0", device);
    return device >= 10 ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    STUB_CALL();
    switch (attribute) {
    case 1: *value = 1024; break;
    case 16: *value = 132; break;
    case 75: *value = stub.capability / 10; break;
    case 76: *value = stub.capability % 10; break;
    case 97: *value = 227 * 1024; break;
    default: return STUB_INVALID_VALUE;
    }
    return device >= 10 ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    STUB_CALL();
    *bytes = (size_t)80 << 30;
    return device >= 10 ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    STUB_CALL();
    int i = device - 10;
    void *made = primary[i];
    int code = made ? 0 : stub_make(STUB_CONTEXT, &made);
    if (code)
        return code;
    primary[i] = made;
    primary[i]->device = device;
    retained[i]++;
    *context = made;
    return 0;
}
STUB_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    STUB_CALL();
    int i = device - 10;
    if (retained[i] == 0)
        return stub_misuse("a release without a retain");
    if (--retained[i] > 0)
        return 0;
    if (current == primary[i])
        current = NULL;
    StubThing *gone = primary[i];
    primary[i] = NULL;
    return stub_destroy(gone, STUB_CONTEXT);
}
STUB_EXPORT int cuCtxGetCurrent(void **context)
{
    STUB_CALL();
    *context = current;
    return 0;
}
STUB_EXPORT int cuCtxSetCurrent(void *context)
{
    STUB_CALL();
    current = context;
    return context ? stub_is(context, STUB_CONTEXT) : 0;
}
STUB_EXPORT int cuCtxGetDevice(int *device)
{
    IN_CONTEXT();
    *device = current->device;
    return 0;
}
STUB_EXPORT int cuMemAlloc_v2(void **address, size_t bytes)
{
    IN_CONTEXT();
    return stub_mem_alloc(address, bytes);
}
STUB_EXPORT int cuMemFree_v2(void *address)
{
    IN_CONTEXT();
    return stub_mem_free(address);
}
STUB_EXPORT int cuMemcpyHtoDAsync_v2(void *target, const void *source, size_t bytes, void *stream)
{
    IN_CONTEXT();
    memcpy(target, source, bytes);
    return stub_is_stream(stream);
}
STUB_EXPORT int cuMemcpyDtoHAsync_v2(void *target, const void *source, size_t bytes, void *stream)
{
    IN_CONTEXT();
    memcpy(target, source, bytes);
    return stub_is_stream(stream);
}
STUB_EXPORT int cuMemcpyDtoDAsync_v2(void *target, const void *source, size_t bytes, void *stream)
{
    IN_CONTEXT();
    memcpy(target, source, bytes);
    stub.copies_within++;
    return stub_is_stream(stream);
}
STUB_EXPORT int cuMemcpyPeerAsync(void *target, void *to, const void *source, void *from,
                                  size_t bytes, void *stream)
{
    IN_CONTEXT();
    if (stub_is(to, STUB_CONTEXT) || stub_is(from, STUB_CONTEXT) || to == from)
        return stub_misuse("a copy between contexts that are none");
    memcpy(target, source, bytes);
    stub.copies_between++;
    return stub_is_stream(stream);
}
STUB_EXPORT int cuMemHostAlloc(void **address, size_t bytes, unsigned flags)
{
    IN_CONTEXT();
    return flags == 1 ? stub_mem_alloc(address, bytes) : STUB_INVALID_VALUE;
}
STUB_EXPORT int cuMemFreeHost(void *address)
{
    IN_CONTEXT();
    return stub_mem_free(address);
}
STUB_EXPORT int cuStreamIsCapturing(void *stream, int *captures)
{
    IN_CONTEXT();
    *captures = stub.capturing;
    return stub_is_stream(stream);
}
STUB_EXPORT int cuMemsetD8Async(void *target, unsigned char value, size_t bytes, void *stream)
{
    IN_CONTEXT();
    memset(target, value, bytes);
    return stub_is_stream(stream);
}
STUB_EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned n, const int *options,
                                   void **values)
{
    IN_CONTEXT();
    stub.image_bytes = strlen(image);
    for (unsigned i = 0; i < n; i++)
        if (options[i] == 5 && strncmp(image, "bad", 3) == 0)
            strcpy(values[i], "ptxas: line 1: it is bad");
    if (strncmp(image, "bad", 3) == 0)
        return 218;
    return stub_make(STUB_MODULE, module);
}
STUB_EXPORT int cuModuleUnload(void *module)
{
    IN_CONTEXT();
    return stub_destroy(module, STUB_MODULE);
}
STUB_EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
    IN_CONTEXT();
    return stub_module_function(function, module, name);
}
STUB_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value)
{
    IN_CONTEXT();
    if (!function || attribute != 8)
        return STUB_INVALID_VALUE;
    stub.function_shared = value;
    return 0;
}
STUB_EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, void *stream,
                               void **params, void **extra)
{
    IN_CONTEXT();
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || extra)
        return STUB_INVALID_VALUE;
    if (shared > 48 * 1024 && stub.function_shared < (int)shared)
        return STUB_INVALID_VALUE;
    int code = stub_is_stream(stream);
    return code ? code : stub_launch(function, gx, bx, shared, stream, params);
}
/* What cuda.h demands of the arguments: types whose size is a power of two, no interleave. */
static bool is_map(const StubMap *m)
{
    static const uint64_t bytes[] = {1, 2, 4, 4, 8}, most = UINT64_C(1) << 32;
    if (m->type < 0 || m->type > 4 || m->rank < 1 || m->rank > 5 || !m->address ||
        m->address % 16 || m->interleave || m->swizzle < 1 || m->swizzle > 3 || m->promotion < 0 ||
        m->promotion > 3 || m->fill)
        return false;
    uint64_t row = m->box[0] * bytes[m->type];
    bool fine = row % 16 == 0 && row <= (UINT64_C(16) << m->swizzle);
    for (uint32_t i = 0; i < m->rank; i++)
        fine &= m->box[i] >= 1 && m->box[i] <= 256 && m->steps[i] >= 1 && m->steps[i] <= 8 &&
                m->extents[i] >= 1 && m->extents[i] <= most;
    for (uint32_t i = 1; i < m->rank; i++)
        fine &= m->strides[i] % 16 == 0 && m->strides[i] < UINT64_C(1) << 40;
    return fine;
}

STUB_EXPORT int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                                       const uint64_t *extents, const uint64_t *strides,
                                       const uint32_t *box, const uint32_t *steps, int interleave,
                                       int swizzle, int promotion, int fill)
{
    enum { RING = 16 };
    static StubMap made[RING];
    static int n;
    STUB_CALL();
    StubMap *m = &made[n++ % RING];
    *m = (StubMap){.type = type,
                   .interleave = interleave,
                   .swizzle = swizzle,
                   .promotion = promotion,
                   .fill = fill,
                   .rank = rank,
                   .address = (uint64_t)(uintptr_t)address};
    for (uint32_t i = 0; i < rank && i < 5; i++) {
        m->extents[i] = extents[i];
        m->strides[i] = i ? strides[i - 1] : 0;
        m->box[i] = box[i];
        m->steps[i] = steps[i];
    }
    if ((uintptr_t)map % 64 || !is_map(m))
        return STUB_INVALID_VALUE;
    memset(map, 0xee, 128);
    memcpy(map, &m, sizeof m);
    return 0;
}

/* In the words of cuda.h's documentation. */
typedef struct StubLaunchAttribute {
    int id;
    char pad[4];
    char value[64];
} StubLaunchAttribute;
typedef struct StubLaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void *hStream;
    StubLaunchAttribute *attrs;
    unsigned numAttrs;
} StubLaunchConfig;

/* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: whole clusters, of up to 8 blocks on every device. */
static int take_cluster(const StubLaunchAttribute *a, unsigned grid)
{
    unsigned size[3];
    memcpy(size, a->value, sizeof size);
    if (size[0] < 1 || size[0] > 8 || size[1] != 1 || size[2] != 1 || grid % size[0])
        return STUB_INVALID_VALUE;
    if (stub.no_clusters)
        return 912; /* CUDA_ERROR_INVALID_CLUSTER_SIZE */
    stub.clusters++;
    stub.cluster = size[0];
    return 0;
}

STUB_EXPORT int cuLaunchKernelEx(const StubLaunchConfig *c, void *function, void **params,
                                 void **extra)
{
    IN_CONTEXT();
    if (c->gridDimY != 1 || c->gridDimZ != 1 || c->blockDimY != 1 || c->blockDimZ != 1 || extra)
        return STUB_INVALID_VALUE;
    int code = stub_is_stream(c->hStream);
    for (unsigned i = 0; i < c->numAttrs && !code; i++) {
        int value;
        memcpy(&value, c->attrs[i].value, sizeof value);
        if (c->attrs[i].id == 4) {
            code = take_cluster(&c->attrs[i], c->gridDimX);
            continue;
        }
        if (value != 1 || (c->attrs[i].id != 2 && c->attrs[i].id != 6))
            return STUB_INVALID_VALUE;
        if (c->attrs[i].id == 2 && c->gridDimX > 132u * (unsigned)stub.fit)
            return 720;
        stub.together += c->attrs[i].id == 2;
        stub.early += c->attrs[i].id == 6;
    }
    return code ? code : stub_launch(function, c->gridDimX, c->blockDimX, c->sharedMemBytes,
                                     c->hStream, params);
}
STUB_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                            int threads, size_t shared)
{
    IN_CONTEXT();
    *blocks = stub.fit;
    return function && threads > 0 && shared < (size_t)1 << 20 ? 0 : STUB_INVALID_VALUE;
}
STUB_EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    IN_CONTEXT();
    return flags == 1 ? stub_make(STUB_STREAM, stream) : STUB_INVALID_VALUE;
}
STUB_EXPORT int cuStreamDestroy_v2(void *stream)
{
    IN_CONTEXT();
    return stub_destroy(stream, STUB_STREAM);
}
STUB_EXPORT int cuStreamSynchronize(void *stream)
{
    IN_CONTEXT();
    return stub_is_stream(stream);
}
STUB_EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    IN_CONTEXT();
    int code = stub_is_stream(stream);
    return code ? code : flags ? STUB_INVALID_VALUE : stub_is(event, STUB_EVENT);
}
STUB_EXPORT int cuEventCreate(void **event, unsigned flags)
{
    IN_CONTEXT();
    return flags ? STUB_INVALID_VALUE : stub_make(STUB_EVENT, event);
}
STUB_EXPORT int cuEventDestroy_v2(void *event)
{
    IN_CONTEXT();
    return stub_destroy(event, STUB_EVENT);
}
STUB_EXPORT int cuEventRecord(void *event, void *stream)
{
    IN_CONTEXT();
    return stub_event_record(event, stream);
}
STUB_EXPORT int cuEventSynchronize(void *event)
{
    IN_CONTEXT();
    return stub_is(event, STUB_EVENT);
}
STUB_EXPORT int cuEventElapsedTime(float *milliseconds, void *from, void *to)
{
    IN_CONTEXT();
    return stub_event_elapsed(milliseconds, from, to);
}
