/* driver_cuda.c: NVIDIA GPUs: the symbols, numbers and quirks of libcuda.so.1.
 *
 * Context: the one that the host has made current for the device, if any; else the device's
 * primary context, which the CUDA runtime and PyTorch use, too.
 *
 * Target: the last row of runtime/contract/gpu.def that device and driver accept. PTX runs on
 * every later device, where the driver compiles it, so devices between two rows, and those newer
 * than all, run code of the row before. */
#include "runtime/contract/gpu_rows.h"
#include "runtime/gpu/driver_gpu.h"
#include <stdio.h>
#include <stdlib.h>

enum {
    OLDEST_CAPABILITY = 75,
    BEST = 10000, /* above any score: the target is this very GPU's */
    ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    ATTRIBUTE_CAPABILITY_MAJOR = 75,
    ATTRIBUTE_CAPABILITY_MINOR = 76,
    ATTRIBUTE_MAX_SHARED_PER_BLOCK_OPTIN = 97,
};

/* From a device between two rows on, an earlier row is the better one: 8.7 has as much shared
 * memory as 8.0, 8.6 has less. */
static const struct {
    int capability;
    const char *target;
} LIKE[] = {{87, "sm_80"}};

/* How good code of "sm_100", "sm_100f" or "sm_100a" is on the device, 0: it does not run. PTX runs
 * on every later device; that of a name with f on those of its family only, which are of the same
 * major version, and with a on that very one. */
static uint32_t runs(int capability, const char *target)
{
    char *end;
    if (strncmp(target, "sm_", 3) != 0)
        return 0;
    long n = strtol(target + 3, &end, 10);
    if (n <= 0 || n > capability)
        return 0;
    uint32_t score = 4 * (uint32_t)n;
    if (strcmp(end, "a") == 0)
        return n == capability ? score + 2 : 0;
    if (strcmp(end, "f") == 0)
        return n / 10 == capability / 10 ? score + 1 : 0;
    return *end ? 0 : score;
}

static const char *target_of(int capability, int version)
{
    size_t n;
    const tl_gpu *rows = tl_gpus(&n), *best = &rows[0];
    for (size_t i = 0; i < n; i++)
        if (rows[i].capability && rows[i].driver <= version && runs(capability, rows[i].name))
            best = &rows[i];
    for (size_t i = 0; i < sizeof LIKE / sizeof *LIKE; i++)
        if (LIKE[i].capability <= capability && LIKE[i].capability > best->capability)
            return LIKE[i].target;
    return best->name;
}

static tile_status identify(tl_dev *d)
{
    int major, minor;
    tile_status status =
        TL_GPU_CALL(d, device_attribute, &major, ATTRIBUTE_CAPABILITY_MAJOR, d->device);
    if (status == TILE_OK)
        status = TL_GPU_CALL(d, device_attribute, &minor, ATTRIBUTE_CAPABILITY_MINOR, d->device);
    if (status != TILE_OK)
        return status;
    TL_INVARIANT(major >= 0 && minor >= 0 && minor < 10, "compute capability %d.%d", major, minor);
    d->capability = major * 10 + minor;
    if (d->capability < OLDEST_CAPABILITY)
        return tl_fail(TILE_UNAVAILABLE,
                       "device cuda:%d (%s) has compute capability %d.%d, but %d.%d is the minimum",
                       d->ordinal, d->name, major, minor, OLDEST_CAPABILITY / 10,
                       OLDEST_CAPABILITY % 10);
    snprintf(d->target, sizeof d->target, "%s", target_of(d->capability, d->version));
    return TILE_OK;
}

/* The newest that runs is the best, but the device's own target is better: it has its limits. */
static uint32_t accepts(tl_dev *d, const char *target)
{
    uint32_t score = runs(d->capability, target);
    return score && strcmp(target, d->target) == 0 ? BEST : score;
}

/* Searches, because an ordinal need not equal the CUdevice handle. */
static tile_status current(tl_dev *d, int *out_ordinal)
{
    void *context = NULL;
    int device, other, count;
    tile_status status = TL_GPU_CALL(d, context_current, &context);
    if (status != TILE_OK || !context)
        return status;
    status = TL_GPU_CALL(d, context_device, &device);
    if (status == TILE_OK)
        status = TL_GPU_CALL(d, device_count, &count);
    for (int i = 0; status == TILE_OK && i < count; i++) {
        status = TL_GPU_CALL(d, device_get, &other, i);
        if (status == TILE_OK && other == device)
            *out_ordinal = i;
    }
    return status;
}

static tile_status attach(tl_dev *d)
{
    int device = -1;
    void *context = NULL;
    tile_status status = TL_GPU_CALL(d, context_current, &context);
    if (status == TILE_OK && context)
        status = TL_GPU_CALL(d, context_device, &device);
    if (status != TILE_OK)
        return status;
    if (context && device == d->device) {
        d->context = context;
        return TILE_OK;
    }
    status = TL_GPU_CALL(d, context_retain, &d->context, d->device);
    d->retained = status == TILE_OK;
    return status;
}

static void detach(tl_dev *d)
{
    TL_INVARIANT_VOID(d->context, "device cuda:%d is detached, but was never attached", d->ordinal);
    if (d->retained)
        d->api.context_release(d->device);
}

static tile_status enter(tl_dev *d, void **out_before)
{
    tile_status status = TL_GPU_CALL(d, context_current, out_before);
    return status != TILE_OK || *out_before == d->context ? status
                                                          : TL_GPU_CALL(d, context_set, d->context);
}

static void leave(tl_dev *d, void *before)
{
    if (before != d->context)
        d->api.context_set(before);
}

static tile_status cuda_open(const char *spec, const tile_device_options *options, tl_dev **out_dev)
{
    (void)options;
    static const char *const libraries[] = {"libcuda.so.1", NULL};
    static const tl_gpu_symbol symbols[] = {
#define REQUIRED                 true
#define OPTIONAL                 false
#define SYM(field, need, symbol) {offsetof(tl_gpu_api, field), need, symbol},
#define ERR(code, status)
#include "runtime/gpu/cuda_syms.def"
        {0, false, NULL}};
    static const tl_gpu_error errors[] = {
#define SYM(field, need, symbol)
#define ERR(code, status) {code, status},
#include "runtime/gpu/cuda_syms.def"
        {0, TILE_OK}};
    static const tl_gpu_kind kind = {
        .kind = "cuda",
        .vendor = "CUDA",
        .libraries = libraries,
        .symbols = symbols,
        .errors = errors,
        .min_version = 12000,
        .version_major = 1000,
        .version_minor = 10,
        .attribute_processors = ATTRIBUTE_MULTIPROCESSOR_COUNT,
        .attribute_threads = ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        .attribute_shared = ATTRIBUTE_MAX_SHARED_PER_BLOCK_OPTIN,
        .max_threads = UINT64_MAX,
        .identify = identify,
        .accepts = accepts,
        .current = current,
        .attach = attach,
        .detach = detach,
        .enter = enter,
        .leave = leave,
    };
    return tl_gpu_open(&kind, spec, out_dev);
}

const tl_driver *tl_driver_cuda(void)
{
    static const tl_driver driver = {.kind = "cuda", .open = cuda_open, TL_GPU_DRIVER_FUNCTIONS};
    return &driver;
}
