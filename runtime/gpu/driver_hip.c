/* driver_hip.c: AMD GPUs: the symbols, numbers and quirks of libamdhip64.
 *
 * HIP has a current device per thread instead of contexts that a program sees. The name of the
 * device's instruction set ("gfx942:sramecc+:xnack-") stands only in hipDeviceProp_t, which changed
 * in ROCm 6: two symbols, two places. */
#include "runtime/contract/gpu_rows.h"
#include "runtime/gpu/driver_gpu.h"
#include <stdio.h>

enum {
    ATTRIBUTE_MAX_THREADS_PER_BLOCK = 56,
    ATTRIBUTE_MULTIPROCESSOR_COUNT = 63,
    ATTRIBUTE_MAX_SHARED_PER_BLOCK = 74,
    PROPERTIES_BYTES = 8192, /* more than either */
    ARCH_NAME_AT = 1160,     /* gcnArchName in hipDeviceProp_tR0600 */
    OLD_ARCH_NAME_AT = 396,  /* in the struct before that */
};

_Static_assert(ARCH_NAME_AT < PROPERTIES_BYTES && OLD_ARCH_NAME_AT < PROPERTIES_BYTES,
               "the name lies inside, whichever it is");

/* Code for a device that has no row of its own is made for a generic name. */
static void use_generic(tl_dev *d)
{
    size_t n;
    const tl_gpu *rows = tl_gpus(&n);
    for (size_t i = 0; i < n; i++)
        if (tl_gpu_is_member(d->target, rows[i].name)) {
            snprintf(d->target, sizeof d->target, "%s", rows[i].name);
            return;
        }
}

static tile_status identify(tl_dev *d)
{
    char properties[PROPERTIES_BYTES + 1] = {0};
    tile_status status;
    if (!d->api.properties && !d->api.properties_old)
        return tl_fail(TILE_UNAVAILABLE, "%s does not tell a device's instruction set",
                       d->library_name);
    if (d->api.properties)
        status = TL_GPU_CALL(d, properties, properties, d->ordinal);
    else
        status = TL_GPU_CALL(d, properties_old, properties, d->ordinal);
    if (status != TILE_OK)
        return status;
    const char *arch = properties + (d->api.properties ? ARCH_NAME_AT : OLD_ARCH_NAME_AT);
    if (strncmp(arch, "gfx", 3) != 0)
        return tl_fail(TILE_UNAVAILABLE,
                       "device hip:%d (%s): %s is of a version that reports its "
                       "instruction set in an unknown form",
                       d->ordinal, d->name, d->library_name);
    snprintf(d->target, sizeof d->target, "%.*s", (int)strcspn(arch, ":"), arch);
    if (!tl_gpu_find(d->target))
        use_generic(d);
    return TILE_OK;
}

static uint32_t accepts(tl_dev *d, const char *target)
{
    return strcmp(target, d->target) == 0 || tl_gpu_is_member(d->target, target);
}

static tile_status current(tl_dev *d, int *out_ordinal)
{
    return TL_GPU_CALL(d, device_current, out_ordinal);
}

static tile_status attach(tl_dev *d)
{
    (void)d; /* HIP does so at the first call that needs the device */
    return TILE_OK;
}

static void detach(tl_dev *d)
{
    (void)d;
}

static tile_status enter(tl_dev *d, void **out_before)
{
    int ordinal = 0;
    tile_status status = TL_GPU_CALL(d, device_current, &ordinal);
    *out_before = (void *)(intptr_t)ordinal;
    return status != TILE_OK || ordinal == d->ordinal ? status
                                                      : TL_GPU_CALL(d, device_set, d->ordinal);
}

static void leave(tl_dev *d, void *before)
{
    int ordinal = (int)(intptr_t)before;
    if (ordinal != d->ordinal)
        d->api.device_set(ordinal);
}

static tile_status hip_open(const char *spec, const tile_device_options *options, tl_dev **out_dev)
{
    (void)options;
    static const char *const libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                            "libamdhip64.so.5", "libamdhip64.so", NULL};
    static const tl_gpu_symbol symbols[] = {
#define REQUIRED                 true
#define OPTIONAL                 false
#define SYM(field, need, symbol) {offsetof(tl_gpu_api, field), need, symbol},
#define ERR(code, status)
#include "runtime/gpu/hip_syms.def"
        {0, false, NULL}};
    static const tl_gpu_error errors[] = {
#define SYM(field, need, symbol)
#define ERR(code, status) {code, status},
#include "runtime/gpu/hip_syms.def"
        {0, TILE_OK}};
    static const tl_gpu_kind kind = {
        .kind = "hip",
        .vendor = "HIP",
        .libraries = libraries,
        .symbols = symbols,
        .errors = errors,
        .min_version = 50000000,
        .version_major = 10000000,
        .version_minor = 100000,
        .attribute_processors = ATTRIBUTE_MULTIPROCESSOR_COUNT,
        .attribute_threads = ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        .attribute_shared = ATTRIBUTE_MAX_SHARED_PER_BLOCK,
        .max_threads = UINT32_MAX, /* a dispatch counts threads in 32 bits */
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

const tl_driver *tl_driver_hip(void)
{
    static const tl_driver driver = {.kind = "hip", .open = hip_open, TL_GPU_DRIVER_FUNCTIONS};
    return &driver;
}
