#include "team.h"
#include "../shared/rank_device.h"
#include <tile_collectives.h>

static struct {
    tile_comm_place place;
    tile_device *device; /* that rank_device has opened */
    tile_comm *comm;     /* NULL: one rank */
} team = {.place = {sizeof(tile_comm_place), 0, 1, 0, 1}};

int team_rank(void) { return team.place.rank; }
int team_size(void) { return team.place.ranks; }

bool team_open(void)
{
    if (tile_comm_world_place(&team.place)) return false;
    return team.place.ranks == 1 ||
           (rank_device(team.place.ranks, team.place.local_rank, &team.device) &&
            !tile_comm_create_world(NULL, NULL, &team.comm));
}

void team_close(void)
{
    tile_comm_free(team.comm);
    if (team.device) tile_device_close(team.device);
}

bool team_sum(tile_buffer *numbers, size_t n)
{
    tile_arg x = tile_f32_view(numbers, n);
    return !team.comm || !tile_comm_all_reduce(team.comm, x, x, TILE_COMM_SUM, NULL);
}

bool team_agree(tile_buffer *numbers, size_t n)
{
    tile_arg x = tile_i32_view(numbers, n);
    return !team.comm || !tile_comm_broadcast(team.comm, x, x, 0, NULL);
}

Part team_part(int n)
{
    int first = (int)((int64_t)n * team_rank() / team_size());
    return (Part){first, (int)((int64_t)n * (team_rank() + 1) / team_size()) - first};
}
