/* driver_gpu_launch.c: launches. A launch passes the address of each word of the parameter block;
 * it takes no lock and allocates nothing, except for kernels that print or assert.
 *
 * Programs that must run together are a cooperative launch, which the library refuses if they do
 * not fit. On CUDA this is an attribute of cuLaunchKernelEx. So are the permission to start before
 * the kernel ahead has ended, which only kernels get that wait for it themselves, and the number
 * of programs in a cluster; if the library does not support clusters, each program runs alone,
 * which the code of kernels allows. */
#include "runtime/gpu/driver_gpu.h"
#include "runtime/runtime.h"
#include "runtime/tensor_map.h"
#include <inttypes.h>

/* CUlaunchAttribute and CUlaunchConfig of cuda.h. */
enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_PROGRAMMATIC = 6 };
typedef struct launch_attribute {
    int id, padding;
    union {
        int allowed;
        unsigned cluster[3];
        char bytes[64];
    } value;
} launch_attribute;
typedef struct launch_config {
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
    const launch_attribute *attributes;
    unsigned nattributes;
} launch_config;
_Static_assert(sizeof(launch_attribute) == 72 && sizeof(launch_config) == 56, "as in cuda.h");

/* ---- tensor maps ---- */

typedef struct encoded_map {
    _Alignas(TL_MAP_ALIGNMENT) char bytes[TL_MAP_BYTES];
} encoded_map;

/* CUtensorMapDataType by the size of an element: only zeros are made, so that the kind of number
 * does not matter. */
static int map_type(unsigned bytes)
{
    enum { UINT8, UINT16, UINT32, UINT64 = 4 };
    return bytes == 1 ? UINT8 : bytes == 2 ? UINT16 : bytes == 4 ? UINT32 : UINT64;
}

static tile_status encode(tl_dev *d, const tl_tensor_map *m, encoded_map *out)
{
    enum { SWIZZLE_32 = 1, SWIZZLE_64, SWIZZLE_128, SWIZZLE_128_ATOM_32, PROMOTE_256 = 3 };
    static const uint32_t steps[TL_MAP_RANK] = {1, 1, 1, 1, 1};
    uint32_t box[TL_MAP_RANK];
    int swizzle = m->span == 128 ? SWIZZLE_128 : m->span == 64 ? SWIZZLE_64 : SWIZZLE_32;
    if (m->piece == 32)
        swizzle = SWIZZLE_128_ATOM_32;
    for (int i = 0; i < TL_MAP_RANK; i++)
        box[i] = m->box[i];
    if (!d->api.map_encode)
        return tl_gpu_lacks(d, offsetof(tl_gpu_api, map_encode));
    return TL_GPU_CALL(d, map_encode, out, map_type(m->bytes), m->rank,
                       (void *)(uintptr_t)m->address, m->extent, m->stride + 1, box, steps, 0,
                       swizzle, PROMOTE_256, 0);
}

/* The library's own maps in place of what the launch has. */
static tile_status encode_maps(tl_dev *d, const tl_launch *l, encoded_map *maps, void **params)
{
    const tile_image_slot *s = (const tile_image_slot *)tl_image_text(l->image, l->kernel->slots);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->nslots; i++) {
        if (s[i].kind != TILE_SLOT_MAP)
            continue;
        TL_INVARIANT(n < TL_MAX_MAPS, "%u tensor maps", n);
        tile_status status = encode(d, (const tl_tensor_map *)(uintptr_t)l->slots[i], &maps[n]);
        if (status != TILE_OK)
            return status;
        params[i] = &maps[n++];
    }
    return TILE_OK;
}

/* ---- launches ---- */

/* By the library's extended call, with what the launch's flags allow, and its cluster. */
static tile_status launch_with(tl_queue *q, const tl_code *code, const tl_launch *l, void **params)
{
    bool together = l->flags & TILE_LAUNCH_TOGETHER,
         overlap = l->flags & TILE_LAUNCH_OVERLAP && l->kernel->flags & TILE_KERNEL_WAITS;
    launch_attribute attributes[2];
    launch_config config = {.grid = {(unsigned)l->blocks, 1, 1},
                            .block = {code->threads, 1, 1},
                            .shared_bytes = code->shared_bytes,
                            .stream = q->stream,
                            .attributes = attributes};
    if (together || overlap)
        attributes[config.nattributes++] =
            (launch_attribute){.id = together ? ATTRIBUTE_COOPERATIVE : ATTRIBUTE_PROGRAMMATIC,
                               .value.allowed = 1};
    if (l->cluster > 1)
        attributes[config.nattributes++] = (launch_attribute){
            .id = ATTRIBUTE_CLUSTER, .value.cluster = {(unsigned)l->cluster, 1, 1}};
    return TL_GPU_CALL(q->dev, launch_ex, &config, code->function, params, NULL);
}

static tile_status launch_together(tl_queue *q, const tl_code *code, const tl_launch *l,
                                   void **params)
{
    tl_dev *d = q->dev;
    if (d->api.launch_together)
        return TL_GPU_CALL(d, launch_together, code->function, (unsigned)l->blocks, 1, 1,
                           code->threads, 1, 1, code->shared_bytes, q->stream, params);
    return tl_gpu_lacks(d, d->context ? offsetof(tl_gpu_api, launch_ex) /* cuda */
                                      : offsetof(tl_gpu_api, launch_together));
}

static tile_status launch(tl_queue *q, const tl_code *code, const tl_launch *l, void **params)
{
    tl_dev *d = q->dev;
    void *debug = NULL;
    if (code->debug_slot != TL_GPU_NO_SLOT) {
        pthread_mutex_lock(&d->lock);
        tile_status status = tl_gpu_debug_begin(q, l, &debug);
        pthread_mutex_unlock(&d->lock);
        if (status != TILE_OK)
            return status;
        TL_INVARIANT(debug && code->debug_slot < l->nslots, "debug buffer %p, slot %u of %u", debug,
                     code->debug_slot, l->nslots);
        params[code->debug_slot] = &debug;
    }
    bool overlap = l->flags & TILE_LAUNCH_OVERLAP && l->kernel->flags & TILE_KERNEL_WAITS;
    if (d->api.launch_ex && (l->flags & TILE_LAUNCH_TOGETHER || overlap || l->cluster > 1))
        return launch_with(q, code, l, params);
    if (l->flags & TILE_LAUNCH_TOGETHER)
        return launch_together(q, code, l, params);
    return TL_GPU_CALL(d, launch, code->function, (unsigned)l->blocks, 1, 1, code->threads, 1, 1,
                       code->shared_bytes, q->stream, params, NULL);
}

static tile_status launch_in_clusters(tl_queue *q, const tl_code *code, const tl_launch *l,
                                      void **params)
{
    tl_launch alone = *l;
    alone.cluster = 1;
    bool never_alone = l->kernel->flags & TILE_KERNEL_PAIRS;
    if (!q->dev->api.launch_ex && never_alone)
        return tl_gpu_lacks(q->dev, offsetof(tl_gpu_api, launch_ex));
    tile_status status = q->dev->api.launch_ex ? launch(q, code, l, params) : TILE_DRIVER;
    if (status == TILE_OK || never_alone)
        return status;
    return launch(q, code, &alone, params);
}

tile_status tl_gpu_queue_launch(tl_queue *q, tl_code *code, const tl_launch *l)
{
    TL_INVARIANT(code && l->kernel && l->kernel->threads > 0, "a launch of no threads");
    TL_INVARIANT(l->programs > 0 && l->nslots <= TL_MAX_SLOTS, "%lld programs, %u slots",
                 (long long)l->programs, l->nslots);
    tl_dev *d = q->dev;
    void *params[TL_MAX_SLOTS + 1];
    encoded_map maps[TL_MAX_MAPS];
    tile_status status;
    if ((uint64_t)l->blocks * code->threads > d->kind->max_threads)
        return tl_fail(TILE_NO_RESOURCE,
                       "kernel '%s': %" PRId64 " programs of %u threads are more threads than %s "
                       "starts at once (%" PRIu64 ")",
                       code->name, l->blocks, code->threads, d->kind->vendor,
                       d->kind->max_threads);
    for (uint32_t i = 0; i < l->nslots; i++)
        params[i] = (void *)(uintptr_t)&l->slots[i];
    status = encode_maps(d, l, maps, params);
    if (status == TILE_OK)
        TL_GPU_WITHIN(d, status,
                      l->cluster > 1 ? launch_in_clusters(q, code, l, params)
                                     : launch(q, code, l, params));
    if (status != TILE_OK)
        return tl_fail(status, "kernel '%s': %s", code->name, tile_last_error());
    return TILE_OK;
}

tile_status tl_gpu_together(tl_dev *d, tl_code *code, int64_t *out_programs)
{
    TL_INVARIANT(code && out_programs, "no code to count");
    tile_status status;
    int blocks = 0;
    if (!d->api.occupancy)
        return tl_gpu_lacks(d, offsetof(tl_gpu_api, occupancy));
    TL_GPU_WITHIN(
        d, status,
        TL_GPU_CALL(d, occupancy, &blocks, code->function, (int)code->threads, code->shared_bytes));
    if (status == TILE_OK)
        *out_programs = (int64_t)blocks * d->processors;
    return status;
}

tile_status tl_gpu_blocks(tl_dev *d, tl_code *code, int64_t programs, int64_t *out_blocks)
{
    (void)programs;
    tile_status status = TILE_OK;
    *out_blocks = (int64_t)atomic_load_explicit(&code->blocks, memory_order_relaxed);
    if (*out_blocks > 0)
        return status; /* asked before */
    *out_blocks = d->processors; /* one each, where the library cannot say */
    if (d->api.occupancy)
        status = tl_gpu_together(d, code, out_blocks);
    if (status == TILE_OK && *out_blocks < 1)
        *out_blocks = 1; /* its launch will say why none can run */
    if (status == TILE_OK)
        atomic_store_explicit(&code->blocks, *out_blocks, memory_order_relaxed);
    return status;
}
