#include "ranks.h"
#include <stdlib.h>
#include <string.h>

static int me, count = 1, local; /* local: the place among the ranks of this machine */

int ranks_me(void) { return me; }
int ranks_count(void) { return count; }
int ranks_local(void) { return local; }

#ifdef WITH_MPI
#include <mpi.h>

static MPI_Comm machine = MPI_COMM_NULL; /* the ranks of this one */

/* Without mpirun there is nothing to start. */
void ranks_open(int *argc, char ***argv)
{
    if (!getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMI_SIZE") && !getenv("PMIX_RANK")) return;
    MPI_Init(argc, argv); /* errors end the job, with MPI's own words */
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &local);
}

static bool started(void)
{
    int yes = 0;
    return !MPI_Initialized(&yes) && yes;
}

void ranks_close(void)
{
    if (!started()) return;
    MPI_Comm_free(&machine);
    MPI_Finalize();
}

/* The standard advises, and Open MPI keeps, that all ranks get the same bits. */
static void sum(void *x, size_t n, size_t size, MPI_Datatype type)
{
    const size_t part = 1 << 24; /* counts of MPI are int */
    for (size_t i = 0; count > 1 && i < n; i += part) {
        int some = (int)(n - i < part ? n - i : part);
        void *at = (char *)x + i * size;
        MPI_Allreduce(MPI_IN_PLACE, at, some, type, MPI_SUM, MPI_COMM_WORLD);
    }
}

void ranks_sum_floats(float *x, size_t n) { sum(x, n, sizeof *x, MPI_FLOAT); }
void ranks_sum_doubles(double *x, size_t n) { sum(x, n, sizeof *x, MPI_DOUBLE); }

void ranks_give(void *x, size_t n)
{
    if (count > 1) MPI_Bcast(x, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

int ranks_first(bool mine)
{
    int first = mine ? me : count;
    if (count > 1) MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return first;
}

bool ranks_differ(const void *x, size_t n)
{
    if (count == 1) return true;
    int ranks, same = 0;
    MPI_Comm_size(machine, &ranks);
    char *all = malloc((size_t)ranks * n);
    if (!all) MPI_Abort(MPI_COMM_WORLD, 1); /* the others are waiting */
    MPI_Allgather(x, (int)n, MPI_BYTE, all, (int)n, MPI_BYTE, machine);
    for (int i = 0; i < ranks; i++) same += memcmp(x, all + (size_t)i * n, n) == 0;
    return free(all), same == 1;
}
#else
void ranks_open(int *argc, char ***argv) { (void)argc, (void)argv; }
void ranks_close(void) {}
void ranks_sum_floats(float *x, size_t n) { (void)x, (void)n; }
void ranks_sum_doubles(double *x, size_t n) { (void)x, (void)n; }
void ranks_give(void *x, size_t n) { (void)x, (void)n; }
int ranks_first(bool mine) { return !mine; }
bool ranks_differ(const void *x, size_t n) { return (void)x, (void)n, true; }
#endif

bool ranks_all(bool mine) { return ranks_first(!mine) == count; }
