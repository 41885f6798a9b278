/* stub_hip.c: libamdhip64.so.6 over stub_gpu.h. */
#define STUB_VERSION 60240000
#define STUB_IMPLEMENTATION
#include "test/runtime/stub_gpu.h"

static bool started;
static _Thread_local int current;

static void reset(void)
{
    stub_remove_all();
    current = 0;
}
StubState *stub_state(void)
{
    stub.reset = reset;
    return &stub;
}

STUB_EXPORT int hipInit(unsigned flags)
{
    STUB_CALL();
    started = flags == 0;
    return stub.devices == 0 ? STUB_INVALID_DEVICE : 0;
}
STUB_EXPORT int hipRuntimeGetVersion(int *version)
{
    STUB_CALL();
    *version = stub.version;
    return 0;
}
STUB_EXPORT const char *hipGetErrorName(int code)
{
    return code == STUB_OUT_OF_MEMORY ? "hipErrorOutOfMemory" : "hipErrorUnknown";
}
STUB_EXPORT const char *hipGetErrorString(int code)
{
    return code == STUB_OUT_OF_MEMORY ? "out of memory" : "hipErrorUnknown";
}
STUB_EXPORT int hipGetDeviceCount(int *count)
{
    STUB_CALL();
    *count = stub.devices;
    return !started ? STUB_NOT_INITIALIZED : stub.devices ? 0 : STUB_NO_DEVICE;
}
STUB_EXPORT int hipDeviceGet(int *device, int ordinal)
{
    STUB_CALL();
    *device = ordinal;
    return ordinal >= 0 && ordinal < stub.devices ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int hipDeviceGetName(char *name, int size, int device)
{
    STUB_CALL();
    snprintf(name, (size_t)size, "Stub %d", device);
    return 0;
}
STUB_EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    STUB_CALL();
    switch (attribute) {
    case 56: *value = 1024; break;
    case 63: *value = 304; break;
    case 74: *value = 64 * 1024; break;
    default: return STUB_INVALID_VALUE;
    }
    return device >= 0 ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int hipDeviceGetPCIBusId(char *text, int size, int device)
{
    STUB_CALL();
    snprintf(text, (size_t)size, "0000:%02x:00.0", device);
    return device >= 0 ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int hipDeviceTotalMem(size_t *bytes, int device)
{
    STUB_CALL();
    *bytes = (size_t)192 << 30;
    return device >= 0 ? 0 : STUB_INVALID_DEVICE;
}
/* Or what the environment says, for programs that do not know the stub. */
static const char *arch(void)
{
    const char *named = getenv("STUB_ARCH");
    return named ? named : stub.arch;
}
/* Both fill in all of the struct of their version, and no more. */
STUB_EXPORT int hipGetDevicePropertiesR0600(char *properties, int ordinal)
{
    STUB_CALL();
    memset(properties, 0x5a, 1472);
    strcpy(properties + 1160, arch());
    return ordinal < stub.devices ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int hipGetDeviceProperties(char *properties, int ordinal)
{
    STUB_CALL();
    memset(properties, 0x5a, 792);
    strcpy(properties + 396, arch());
    return ordinal < stub.devices ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int hipGetDevice(int *ordinal)
{
    STUB_CALL();
    *ordinal = current;
    return 0;
}
STUB_EXPORT int hipSetDevice(int ordinal)
{
    STUB_CALL();
    current = ordinal;
    return ordinal >= 0 && ordinal < stub.devices ? 0 : STUB_INVALID_DEVICE;
}
STUB_EXPORT int hipMalloc(void **address, size_t bytes)
{
    STUB_CALL();
    return stub_mem_alloc(address, bytes);
}
STUB_EXPORT int hipFree(void *address)
{
    STUB_CALL();
    return stub_mem_free(address);
}
STUB_EXPORT int hipMemcpyHtoDAsync(void *target, const void *source, size_t bytes, void *stream)
{
    STUB_CALL();
    memcpy(target, source, bytes);
    return stub_is_stream(stream);
}
STUB_EXPORT int hipMemcpyDtoHAsync(void *target, const void *source, size_t bytes, void *stream)
{
    STUB_CALL();
    memcpy(target, source, bytes);
    return stub_is_stream(stream);
}
STUB_EXPORT int hipMemcpyDtoDAsync(void *target, const void *source, size_t bytes, void *stream)
{
    STUB_CALL();
    memcpy(target, source, bytes);
    stub.copies_within++;
    return stub_is_stream(stream);
}
STUB_EXPORT int hipMemcpyPeerAsync(void *target, int to, const void *source, int from, size_t bytes,
                                   void *stream)
{
    STUB_CALL();
    if (to < 0 || from < 0 || to >= stub.devices || from >= stub.devices || to == from)
        return stub_misuse("a copy between devices that are none");
    memcpy(target, source, bytes);
    stub.copies_between++;
    return stub_is_stream(stream);
}
STUB_EXPORT int hipHostMalloc(void **address, size_t bytes, unsigned flags)
{
    STUB_CALL();
    return flags == 1 ? stub_mem_alloc(address, bytes) : STUB_INVALID_VALUE;
}
STUB_EXPORT int hipHostFree(void *address)
{
    STUB_CALL();
    return stub_mem_free(address);
}
STUB_EXPORT int hipStreamIsCapturing(void *stream, int *captures)
{
    STUB_CALL();
    *captures = stub.capturing;
    return stub_is_stream(stream);
}
STUB_EXPORT int hipMemsetD8Async(void *target, unsigned char value, size_t bytes, void *stream)
{
    STUB_CALL();
    memset(target, value, bytes);
    return stub_is_stream(stream);
}
STUB_EXPORT int hipModuleLoadData(void **module, const void *image)
{
    STUB_CALL();
    stub.image_bytes = strlen(image);
    return strncmp(image, "bad", 3) == 0 ? 209 : stub_make(STUB_MODULE, module);
}
STUB_EXPORT int hipModuleUnload(void *module)
{
    STUB_CALL();
    return stub_destroy(module, STUB_MODULE);
}
STUB_EXPORT int hipModuleGetFunction(void **function, void *module, const char *name)
{
    STUB_CALL();
    return stub_module_function(function, module, name);
}
STUB_EXPORT int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      void *stream, void **params, void **extra)
{
    STUB_CALL();
    if (gy != 1 || gz != 1 || by != 1 || bz != 1 || extra || (uint64_t)gx * bx > UINT32_MAX)
        return STUB_INVALID_VALUE;
    int code = stub_is_stream(stream);
    return code ? code : stub_launch(function, gx, bx, shared, stream, params);
}
STUB_EXPORT int hipModuleLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy,
                                                 unsigned gz, unsigned bx, unsigned by,
                                                 unsigned bz, unsigned shared, void *stream,
                                                 void **params)
{
    STUB_CALL();
    if (gy != 1 || gz != 1 || by != 1 || bz != 1)
        return STUB_INVALID_VALUE;
    int code = stub_is_stream(stream);
    stub.together++;
    return code ? code : stub_launch(function, gx, bx, shared, stream, params);
}
STUB_EXPORT int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                                   int threads, size_t shared)
{
    STUB_CALL();
    *blocks = stub.fit;
    return function && threads > 0 && shared < (size_t)1 << 20 ? 0 : STUB_INVALID_VALUE;
}
STUB_EXPORT int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    STUB_CALL();
    return flags == 1 ? stub_make(STUB_STREAM, stream) : STUB_INVALID_VALUE;
}
STUB_EXPORT int hipStreamDestroy(void *stream)
{
    STUB_CALL();
    return stub_destroy(stream, STUB_STREAM);
}
STUB_EXPORT int hipStreamSynchronize(void *stream)
{
    STUB_CALL();
    return stub_is_stream(stream);
}
STUB_EXPORT int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    STUB_CALL();
    int code = stub_is_stream(stream);
    return code ? code : flags ? STUB_INVALID_VALUE : stub_is(event, STUB_EVENT);
}
STUB_EXPORT int hipEventCreateWithFlags(void **event, unsigned flags)
{
    STUB_CALL();
    return flags ? STUB_INVALID_VALUE : stub_make(STUB_EVENT, event);
}
STUB_EXPORT int hipEventDestroy(void *event)
{
    STUB_CALL();
    return stub_destroy(event, STUB_EVENT);
}
STUB_EXPORT int hipEventRecord(void *event, void *stream)
{
    STUB_CALL();
    return stub_event_record(event, stream);
}
STUB_EXPORT int hipEventSynchronize(void *event)
{
    STUB_CALL();
    return stub_is(event, STUB_EVENT);
}
STUB_EXPORT int hipEventElapsedTime(float *milliseconds, void *from, void *to)
{
    STUB_CALL();
    return stub_event_elapsed(milliseconds, from, to);
}
