/* rank_device.h: which device a rank of an MPI job takes. */
#ifndef RANK_DEVICE_H
#define RANK_DEVICE_H
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tile.h>

static inline bool open_number(const char *kind, int number, tile_device **out)
{
    char name[32];
    snprintf(name, sizeof name, "%s:%d", kind, number);
    return !tile_device_open(name, out);
}

/* Of several ranks with TILE_DEVICE=cuda or hip those of a machine take one GPU each; where the
 * job's launcher shows each rank one GPU only, that is number 0. What is opened becomes the default
 * device, and the caller's to close; else *out stays. False: tile_last_error() says why. */
static inline bool rank_device(int ranks, int local_rank, tile_device **out)
{
    const char *name = getenv("TILE_DEVICE");
    if (!name || ranks == 1 || strncmp(name, "cpu", 3) == 0) return true;
    bool gpus = strcmp(name, "cuda") == 0 || strcmp(name, "hip") == 0;
    bool good = gpus ? open_number(name, local_rank, out) || open_number(name, 0, out)
                     : !tile_device_open(name, out);
    return good && !tile_set_default_device(*out);
}
#endif
