/* farm_mpi.c: the farm's link by MPI: the library libtilec-mpi. */
#include "tools/farm/farm_link.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static MPI_Comm here = MPI_COMM_NULL; /* the ranks of this machine */

static bool join(FarmPlace *out, char *why, size_t size)
{
    int level = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_MULTIPLE) {
        snprintf(why, size, "this MPI allows no calls from several threads");
        return false;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &out->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &out->size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_rank(here, &out->here);
    MPI_Comm_size(here, &out->nhere);
    return true;
}

static void leave(void)
{
    MPI_Comm_free(&here);
    MPI_Finalize();
}

static void abandon(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
}

static void send(int to, int tag, const void *data, size_t size)
{
    MPI_Send(data, (int)size, MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

/* MPI's own waiting keeps a core busy, which others measure on. */
static void *receive(int tag, double seconds, int *out_from, size_t *out_size)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    const double start = MPI_Wtime();
    MPI_Message message;
    MPI_Status status;
    int there = 0, size = 0;
    for (;;) {
        MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &message, &status);
        if (there)
            break;
        if (seconds > 0 && MPI_Wtime() - start > seconds)
            return NULL;
        nanosleep(&pause, NULL);
    }
    MPI_Get_count(&status, MPI_BYTE, &size);
    char *data = malloc((size_t)size + 1);
    if (!data)
        return NULL;
    MPI_Mrecv(data, size, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    data[size] = 0;
    *out_from = status.MPI_SOURCE;
    *out_size = (size_t)size;
    return data;
}

static void share(const void *mine, void *all, size_t size)
{
    MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, here);
}

extern const FarmLink tl_farm_link;
__attribute__((visibility("default"))) const FarmLink tl_farm_link = {
    FARM_LINK_VERSION, join, leave, send, abandon, receive, share};
