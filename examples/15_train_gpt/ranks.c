#include "ranks.h"
#include <stdio.h>
#include <stdlib.h>
#include <tile_collectives.h>

static tile_comm_place place = {sizeof place, 0, 1, 0, 1};
static tile_device *host; /* for what lies in its memory; NULL: one rank alone */
static tile_comm *all;

int ranks_me(void) { return place.rank; }
int ranks_count(void) { return place.ranks; }
int ranks_local(void) { return place.local_rank; }

static void must(tile_status status)
{
    if (!status) return;
    fprintf(stderr, "15_train_gpt: rank %d: %s\n", place.rank, tile_last_error());
    exit(1);
}

void ranks_open(void)
{
    const tile_device_options alone = {.struct_size = sizeof alone, .threads = 1};
    must(tile_comm_world_place(&place));
    if (place.ranks == 1) return;
    must(tile_device_open_with("cpu", &alone, &host));
    must(tile_comm_create_world(host, NULL, &all));
}

void ranks_close(void)
{
    tile_comm_free(all);
    if (host) tile_device_close(host);
}

static void reduce(tile_arg x, tile_comm_reduction reduction)
{
    if (all) must(tile_comm_all_reduce(all, x, x, reduction, NULL));
}

void ranks_sum_floats(float *x, size_t n) { reduce(tile_view(x, n), TILE_COMM_SUM); }
void ranks_sum_doubles(double *x, size_t n) { reduce(tile_view(x, n), TILE_COMM_SUM); }

void ranks_gather(void *x, size_t n)
{
    size_t part = n / (size_t)place.ranks;
    char *mine = (char *)x + (size_t)place.rank * part;
    if (all)
        must(tile_comm_all_gather(all, tile_view_typed(TILE_U8, mine, part),
                                  tile_view_typed(TILE_U8, x, n), NULL));
}

void ranks_give(void *x, size_t n)
{
    tile_arg bytes = tile_view_typed(TILE_U8, x, n);
    if (all) must(tile_comm_broadcast(all, bytes, bytes, 0, NULL));
}

int ranks_first(bool mine)
{
    int32_t first = mine ? place.rank : place.ranks;
    reduce(tile_view(&first, 1), TILE_COMM_MIN);
    return first;
}

bool ranks_all(bool mine) { return ranks_first(!mine) == place.ranks; }
