#include "ranks.h"
#include <stdlib.h>

static int me, count = 1;

int ranks_me(void) { return me; }
int ranks_count(void) { return count; }

#ifdef WITH_MPI
#include <mpi.h>

/* Without mpirun there is nothing to start. */
void ranks_open(int *argc, char ***argv)
{
    if (!getenv("OMPI_COMM_WORLD_SIZE") && !getenv("PMI_SIZE") && !getenv("PMIX_RANK")) return;
    MPI_Init(argc, argv); /* errors end the job, with MPI's own words */
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
}

static bool started(void)
{
    int yes = 0;
    return !MPI_Initialized(&yes) && yes;
}

void ranks_close(void)
{
    if (started()) MPI_Finalize();
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
#else
void ranks_open(int *argc, char ***argv) { (void)argc, (void)argv; }
void ranks_close(void) {}
void ranks_sum_floats(float *x, size_t n) { (void)x, (void)n; }
void ranks_sum_doubles(double *x, size_t n) { (void)x, (void)n; }
#endif

bool ranks_all(bool mine)
{
    double bad = !mine;
    ranks_sum_doubles(&bad, 1);
    return bad == 0;
}
