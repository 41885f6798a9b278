/* farm_mpi.c: the farm's link by MPI: the library libtilec-mpi.
 *
 * Only one thread at a time is in MPI, and none waits there: MPI's own waiting keeps a core busy,
 * on which others measure, and implementations hang when several threads wait at once (Open MPI
 * 4.1.4 did, now and then, with MPI_THREAD_MULTIPLE). */
#include "tools/farm/farm_link.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static MPI_Comm here = MPI_COMM_NULL; /* the ranks of this machine */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void pause_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL);
}

static bool join(FarmPlace *out, char *why, size_t size)
{
    int level = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS ||
        level < MPI_THREAD_SERIALIZED) {
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
    pthread_mutex_lock(&lock);
    MPI_Abort(MPI_COMM_WORLD, status);
    pthread_mutex_unlock(&lock);
}

static void finish_request(MPI_Request *request)
{
    for (int done = 0; !done;) {
        pthread_mutex_lock(&lock);
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        pthread_mutex_unlock(&lock);
        if (!done)
            pause_ms(1);
    }
}

static void send(int to, int tag, const void *data, size_t size)
{
    MPI_Request request;
    pthread_mutex_lock(&lock);
    MPI_Isend(data, (int)size, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    pthread_mutex_unlock(&lock);
    finish_request(&request);
}

/* Begins to receive a message, if one is there. */
static char *begin_receive(int tag, MPI_Request *out, int *out_from, int *out_size)
{
    MPI_Message message;
    MPI_Status status;
    char *data = NULL;
    int there = 0;
    pthread_mutex_lock(&lock);
    MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &message, &status);
    if (there) {
        MPI_Get_count(&status, MPI_BYTE, out_size);
        *out_from = status.MPI_SOURCE;
        data = malloc((size_t)*out_size + 1);
        if (data)
            MPI_Imrecv(data, *out_size, MPI_BYTE, &message, out);
    }
    pthread_mutex_unlock(&lock);
    return data;
}

static void *receive(int tag, double seconds, int *out_from, size_t *out_size)
{
    const double start = MPI_Wtime();
    MPI_Request request;
    int size = 0;
    char *data;
    while (!(data = begin_receive(tag, &request, out_from, &size))) {
        if (seconds > 0 && MPI_Wtime() - start > seconds)
            return NULL;
        pause_ms(2);
    }
    finish_request(&request);
    data[size] = 0;
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
