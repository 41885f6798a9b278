/* share.c: the collectives of a training step. Where GPUs have no NCCL or RCCL, or ranks would have
 * to share one, numbers go through the host, and everything waits for it. */
#include "share.h"
#include "../shared/rank_device.h"
#include "ranks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tile_collectives.h>

static struct {
    tile_device *device; /* that share_device has opened */
    tile_comm *comm;     /* NULL: one rank, or through the host */
    tile_stream *stream; /* of what share_begin begins */
    tile_event *ready, *done;
} share;

/* ---- the device ---- */

bool share_device(void) { return rank_device(ranks_count(), ranks_local(), &share.device); }

/* ---- opening ---- */

static bool open_comm(const char *library, bool host)
{
    tile_comm_options o = {.struct_size = sizeof o, .library = library};
    o.backend = library ? "nccl" : host ? "mpi" : NULL;
    tile_status status = tile_comm_create_world(NULL, &o, &share.comm);
    int first = ranks_first(status != TILE_OK);
    if (first == ranks_me()) fprintf(stderr, "15_train_gpt: %s\n", tile_last_error());
    if (first == ranks_count()) return true;
    tile_comm_free(status ? NULL : share.comm);
    return share.comm = NULL, false;
}

bool share_open(const char *library)
{
    tile_device_info info = TILE_DEVICE_INFO_INIT;
    if (ranks_count() == 1) return true;
    if (tile_device_get_info(NULL, &info)) return false;
    const char *own = strncmp(info.target, "gfx", 3) == 0 ? "librccl.so.1" : "libnccl.so.2";
    bool host = info.host_memory, by_mpi = library ? strcmp(library, "mpi") == 0 : host;
    if (!by_mpi && !open_comm(library, host)) by_mpi = true;
    if (by_mpi && host && !open_comm(NULL, true)) return false;
    if (ranks_me() == 0)
        printf("gradients are added up %s%s\n", by_mpi ? "through the host, by MPI" : "by ",
               by_mpi ? "" : library ? library : own);
    return !tile_stream_create(NULL, &share.stream) && !tile_event_create(NULL, &share.ready) &&
           !tile_event_create(NULL, &share.done);
}

void share_close(void)
{
    tile_event_free(share.ready), tile_event_free(share.done);
    tile_stream_free(share.stream);
    tile_comm_free(share.comm);
    if (share.device) tile_device_close(share.device);
}

/* ---- through the host ---- */

typedef enum Way { SUM, GATHER } Way;

static bool by_host(tile_buffer *b, size_t at, size_t bytes, Way way)
{
    char *x = malloc(bytes + 1);
    bool good = x ? !tile_buffer_download(b, at, x, bytes, NULL)
                  : (tile_set_last_error(TILE_NO_MEMORY, "no memory"), false);
    if (good && way == SUM) ranks_sum_floats((float *)(void *)x, bytes / sizeof(float));
    if (good && way == GATHER) ranks_gather(x, bytes);
    good = good && !tile_buffer_upload(b, at, x, bytes, NULL);
    return free(x), good;
}

/* ---- sums ---- */

bool share_sum(tile_buffer *numbers, size_t n)
{
    if (ranks_count() == 1) return true;
    if (!share.comm) return by_host(numbers, 0, n * sizeof(float), SUM);
    tile_arg x = tile_f32_view(numbers, n);
    return !tile_comm_all_reduce(share.comm, x, x, TILE_COMM_SUM, NULL);
}

/* This rank's part of n elements. */
static tile_arg part_of(tile_buffer *b, tile_dtype type, size_t at, size_t n)
{
    size_t part = n / (size_t)ranks_count();
    return tile_buffer_view_at(b, at + (size_t)ranks_me() * part, type, part);
}

bool share_begin(tile_buffer *numbers, size_t at, size_t n)
{
    if (ranks_count() == 1) return true;
    if (!share.comm) return by_host(numbers, at * sizeof(float), n * sizeof(float), SUM);
    return !tile_event_record(share.ready, NULL) &&
           !tile_stream_wait_event(share.stream, share.ready) &&
           !tile_comm_reduce_scatter(share.comm, tile_buffer_view_at(numbers, at, TILE_F32, n),
                                     part_of(numbers, TILE_F32, at, n), TILE_COMM_SUM,
                                     share.stream);
}

bool share_end(void)
{
    return !share.comm || (!tile_event_record(share.done, share.stream) &&
                           !tile_stream_wait_event(NULL, share.done) &&
                           !tile_comm_status(share.comm));
}

bool share_gather(tile_buffer *elements, tile_dtype type, size_t at, size_t n)
{
    size_t size = (size_t)tile_dtype_bits(type) / 8;
    if (ranks_count() == 1) return true;
    if (!share.comm) return by_host(elements, at * size, n * size, GATHER);
    return !tile_comm_all_gather(share.comm, part_of(elements, type, at, n),
                                 tile_buffer_view_at(elements, at, type, n), NULL);
}
