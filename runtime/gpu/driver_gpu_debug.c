/* driver_gpu_debug.c: the debug buffers of a GPU's queues.
 *
 * A kernel that prints or asserts has a slot for the address of a debug buffer (leaf.h). A queue
 * has one piece of device memory, made at its first launch of such a kernel, cut into segments;
 * each launch gets the next, so that records can be told apart by launch. Synchronising reads what
 * was written, hands it to the sink and empties the segments. With all segments given out a launch
 * waits for the queue first. */
#include "runtime/debug_records.h"
#include "runtime/gpu/driver_gpu.h"
#include <stdlib.h>
#include <string.h>

enum { SEGMENTS = 8, CAPACITY = 1 << 16 };
enum { SEGMENT_BYTES = sizeof(tl_debug_header) + CAPACITY * sizeof(tl_debug_record) };

struct tl_gpu_debug {
    char *memory; /* the device's */
    uint32_t used;
    tl_launch launches[SEGMENTS]; /* without slots */
    tile_arg args[SEGMENTS][TL_MAX_PARAMS];
    tl_debug_header empty, read;  /* copied from and to */
};

_Static_assert(sizeof(tl_debug_header) % 8 == 0 && sizeof(tl_debug_record) % 8 == 0,
               "records of every segment are aligned");

static char *segment(const tl_gpu_debug *g, uint32_t i)
{
    TL_INVARIANT_OR(NULL, i < SEGMENTS, "segment %u", i);
    return g->memory + (size_t)i * SEGMENT_BYTES;
}

static tile_status empty_segment(tl_queue *q, uint32_t i)
{
    return TL_GPU_CALL(q->dev, copy_up, segment(q->debug, i), &q->debug->empty,
                       sizeof q->debug->empty, q->stream);
}

static tile_status make(tl_queue *q)
{
    void *memory;
    tl_gpu_debug *g = calloc(1, sizeof *g);
    if (!g)
        return tl_fail(TILE_NO_MEMORY, "out of memory");
    tile_status status = TL_GPU_CALL(q->dev, mem_alloc, &memory, (size_t)SEGMENTS * SEGMENT_BYTES);
    if (status != TILE_OK) {
        free(g);
        return status;
    }
    g->memory = memory;
    g->empty.capacity = CAPACITY;
    q->debug = g;
    for (uint32_t i = 0; i < SEGMENTS && status == TILE_OK; i++)
        status = empty_segment(q, i);
    if (status != TILE_OK) {
        tl_gpu_debug_drop(q);
        free(g);
        q->debug = NULL;
    }
    return status;
}

void tl_gpu_debug_drop(tl_queue *q)
{
    if (q->debug)
        q->dev->api.mem_free(q->debug->memory);
}

static tile_status read_records(tl_queue *q, uint32_t i, uint32_t n, uint32_t missing)
{
    tl_gpu_debug *g = q->debug;
    size_t bytes = n * sizeof(tl_debug_record);
    TL_INVARIANT(n > 0 && n <= CAPACITY, "%u records in a segment of %d", n, CAPACITY);
    tl_debug_record *records = malloc(bytes);
    if (!records)
        return tl_fail(TILE_NO_MEMORY, "out of memory for the messages of kernels");
    tile_status status = TL_GPU_CALL(q->dev, copy_down, records,
                                     segment(g, i) + sizeof(tl_debug_header), bytes, q->stream);
    if (status == TILE_OK)
        status = TL_GPU_CALL(q->dev, stream_wait, q->stream);
    if (status == TILE_OK)
        status = tl_debug_deliver(q->sink, &g->launches[i], records, n, missing);
    free(records);
    return status;
}

static tile_status read_segment(tl_queue *q, uint32_t i)
{
    tl_gpu_debug *g = q->debug;
    tile_status status =
        TL_GPU_CALL(q->dev, copy_down, &g->read, segment(g, i), sizeof g->read, q->stream);
    if (status == TILE_OK)
        status = TL_GPU_CALL(q->dev, stream_wait, q->stream);
    uint32_t n = g->read.count < CAPACITY ? g->read.count : CAPACITY;
    if (status != TILE_OK || n == 0)
        return status;
    status = read_records(q, i, n, g->read.count - n);
    tile_status emptied = empty_segment(q, i);
    return status != TILE_OK ? status : emptied;
}

tile_status tl_gpu_debug_collect(tl_queue *q)
{
    tile_status status = TILE_OK;
    for (uint32_t i = 0; q->debug && i < q->debug->used && status == TILE_OK; i++)
        status = read_segment(q, i);
    if (q->debug)
        q->debug->used = 0;
    return status;
}

tile_status tl_gpu_debug_begin(tl_queue *q, const tl_launch *launch, void **out_address)
{
    TL_INVARIANT(launch && out_address, "records of no launch");
    tile_status status = q->debug ? TILE_OK : make(q);
    if (status == TILE_OK && q->debug->used == SEGMENTS) {
        status = TL_GPU_CALL(q->dev, stream_wait, q->stream);
        if (status == TILE_OK)
            status = tl_gpu_debug_collect(q);
    }
    if (status != TILE_OK)
        return status;
    tl_gpu_debug *g = q->debug;
    TL_INVARIANT(g->used < SEGMENTS && launch->nargs <= TL_MAX_PARAMS,
                 "segment %u for a launch of %u arguments", g->used, launch->nargs);
    uint32_t i = g->used++;
    g->launches[i] = *launch;
    g->launches[i].args = g->args[i];
    g->launches[i].slots = NULL;
    memcpy(g->args[i], launch->args, sizeof *launch->args * launch->nargs);
    *out_address = segment(g, i);
    return TILE_OK;
}

bool tl_gpu_debug_holds(const tl_queue *q, const void *image)
{
    for (uint32_t i = 0; q->debug && i < q->debug->used; i++)
        if (q->debug->launches[i].image == image)
            return true;
    return false;
}
