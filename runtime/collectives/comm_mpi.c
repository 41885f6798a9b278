/* comm_mpi.c: messages by MPI: the library libtile-collectives-mpi (comm_link.h).
 *
 * Only one thread at a time is in MPI (MPI_THREAD_SERIALIZED), and none waits there: MPI's own
 * waiting keeps a core busy, and Open MPI 4.1 hangs now and then when several threads wait.
 * Errors come back as texts (MPI_ERRORS_RETURN on communicators of ours). */
#include "runtime/collectives/comm_link.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool begun, ours; /* MPI is there; by this library */
static int open_comms;
static tl_link_place place;
static _Thread_local char text[MPI_MAX_ERROR_STRING + 64];

/* The lock is held. */
static const char *said(const char *function, int code)
{
    char why[MPI_MAX_ERROR_STRING] = "";
    int n;
    if (code == MPI_SUCCESS)
        return NULL;
    MPI_Error_string(code, why, &n);
    snprintf(text, sizeof text, "%s: %s", function, why);
    return text;
}

static void pause_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* ---- the job ---- */

/* MPI_Finalize waits for the other processes: where this one has failed or still has
 * communicators, it ends without it, and mpirun ends the others. */
static void end(int status, void *unused)
{
    int done = 1;
    (void)unused;
    if (status == 0 && open_comms == 0 && MPI_Finalized(&done) == MPI_SUCCESS && !done)
        MPI_Finalize();
}

/* The first time; the lock is held. */
static const char *start(void)
{
    int is_there = 0, is_over = 0, level = MPI_THREAD_SINGLE;
    MPI_Comm here;
    MPI_Finalized(&is_over);
    if (is_over)
        return "MPI_Finalize was called";
    MPI_Initialized(&is_there);
    int code = is_there ? MPI_Query_thread(&level)
                        : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (code != MPI_SUCCESS)
        return said("MPI_Init_thread", code);
    if (!ours && !is_there)
        on_exit(end, NULL);
    ours = ours || !is_there;
    if (level < MPI_THREAD_SERIALIZED)
        return "MPI allows no calls from several threads: initialise it by MPI_Init_thread with "
               "MPI_THREAD_SERIALIZED";
    MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place.ranks);
    code = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    if (code != MPI_SUCCESS)
        return said("MPI_Comm_split_type", code);
    MPI_Comm_rank(here, &place.local_rank);
    MPI_Comm_size(here, &place.local_ranks);
    MPI_Comm_free(&here);
    begun = true;
    return NULL;
}

static const char *begin_job(tl_link_place *out_place)
{
    pthread_mutex_lock(&lock);
    const char *why = begun ? NULL : start();
    *out_place = place;
    pthread_mutex_unlock(&lock);
    return why;
}

/* ---- messages ---- */

static const char *post_in(MPI_Comm comm, int peer, int tag, void *data, tl_link_message *m)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int n = (int)m->bytes;
    pthread_mutex_lock(&lock);
    const char *why =
        m->receives ? said("MPI_Irecv", MPI_Irecv(data, n, MPI_BYTE, peer, tag, comm, &request))
                    : said("MPI_Isend", MPI_Isend(data, n, MPI_BYTE, peer, tag, comm, &request));
    pthread_mutex_unlock(&lock);
    m->request = (uintptr_t)request;
    m->done = why != NULL;
    return why;
}

static const char *test_from(tl_link_message *m, int *out_source)
{
    MPI_Request request = (MPI_Request)m->request;
    MPI_Status status;
    int done = 0, n = 0;
    pthread_mutex_lock(&lock);
    int code = MPI_Test(&request, &done, &status);
    const char *why = said("MPI_Test", code);
    if (!why && done && m->receives) {
        MPI_Get_count(&status, MPI_BYTE, &n);
        *out_source = status.MPI_SOURCE;
        if ((size_t)n != m->bytes) {
            snprintf(text, sizeof text,
                     "a message of %d bytes came, of %zu: the ranks' calls differ", n, m->bytes);
            why = text;
        }
    }
    pthread_mutex_unlock(&lock);
    m->request = (uintptr_t)request;
    m->done = done || why;
    return why;
}

static const char *test(tl_link_message *m)
{
    int source;
    return test_from(m, &source);
}

static const char *post(tl_link_comm comm, int peer, int tag, void *data, tl_link_message *m)
{
    return post_in((MPI_Comm)comm, peer, tag, data, m);
}

static void cancel(tl_link_message *m)
{
    MPI_Request request = (MPI_Request)m->request;
    if (m->done)
        return;
    m->done = true;
    pthread_mutex_lock(&lock);
    if (m->receives) {
        MPI_Cancel(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE); /* it is no more; this is local */
    } else {
        MPI_Request_free(&request);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- communicators ---- */

static const char *whole(int peer, int tag, void *data, size_t bytes, bool receives,
                         int *out_source)
{
    tl_link_message m = {.bytes = bytes, .receives = receives};
    const char *why = post_in(MPI_COMM_WORLD, peer, tag, data, &m);
    while (!why && !m.done) {
        why = test_from(&m, out_source);
        if (!m.done)
            pause_us(50);
    }
    return why;
}

/* Rank 0 learns who the others are, and tells them all. */
static const char *gather(int creator, int tag, int ranks, int rank, int *members)
{
    const char *why = NULL;
    int source, mine[2] = {rank, ranks};
    if (rank != 0) {
        why = whole(creator, tag, mine, sizeof mine, false, &source);
        return why ? why
                   : whole(creator, tag, members, (size_t)ranks * sizeof *members, true, &source);
    }
    for (int i = 0; i < ranks; i++)
        members[i] = -1;
    members[0] = place.rank;
    for (int i = 1; !why && i < ranks; i++) {
        int theirs[2];
        why = whole(MPI_ANY_SOURCE, tag, theirs, sizeof theirs, true, &source);
        if (!why &&
            (theirs[1] != ranks || theirs[0] < 1 || theirs[0] >= ranks || members[theirs[0]] != -1))
            why = "the ranks that joined differ in their numbers";
        if (!why)
            members[theirs[0]] = source;
    }
    for (int i = 1; !why && i < ranks; i++)
        why = whole(members[i], tag, members, (size_t)ranks * sizeof *members, false, &source);
    return why;
}

static const char *make(int tag, int ranks, const int *members, MPI_Comm *out)
{
    MPI_Group world, group;
    pthread_mutex_lock(&lock);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const char *why = said("MPI_Group_incl", MPI_Group_incl(world, ranks, members, &group));
    if (!why)
        why = said("MPI_Comm_create_group", MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, out));
    if (!why) {
        MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
        MPI_Group_free(&group);
        open_comms++;
    }
    MPI_Group_free(&world);
    pthread_mutex_unlock(&lock);
    return why;
}

static const char *join(int creator, uint64_t number, int ranks, int rank, tl_link_comm *out_comm)
{
    MPI_Comm comm = MPI_COMM_NULL;
    int tag = 16384 + (int)(number % 16384);
    int *members = malloc((size_t)ranks * sizeof *members);
    if (!members)
        return "out of memory";
    const char *why = rank == 0 && place.rank != creator ? "rank 0 is not who made the id" : NULL;
    if (!why)
        why = gather(creator, tag, ranks, rank, members);
    if (!why)
        why = make(tag, ranks, members, &comm);
    *out_comm = (tl_link_comm)comm;
    free(members);
    return why;
}

static void leave(tl_link_comm c)
{
    MPI_Comm comm = (MPI_Comm)c;
    int is_over = 1;
    pthread_mutex_lock(&lock);
    if (MPI_Finalized(&is_over) == MPI_SUCCESS && !is_over)
        MPI_Comm_free(&comm);
    open_comms--;
    pthread_mutex_unlock(&lock);
}

extern const tl_comm_link tl_comm_link_mpi;
__attribute__((visibility("default"))) const tl_comm_link tl_comm_link_mpi = {
    TL_COMM_LINK_VERSION, begin_job, join, leave, post, test, cancel};
