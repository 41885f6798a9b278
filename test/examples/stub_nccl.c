/* stub_nccl.c: NCCL's functions over MPI, for memory that the host can read, as that of stub_gpu.h
 * is. It refuses what NCCL must not be given: another group than the first rank's, two ranks on one
 * device, counts that differ, another type or operation, a device that is not current any more.
 *
 * STUB_NCCL=FUNCTION:RANK:N: the call number N (from 0) of that function fails on that rank;
 * drift:RANK:N: that sum is wrong there. When a group is left, its first rank says on stderr what
 * it has done. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, FLOAT32 = 7, SUM = 0 };
#define EXPORT __attribute__((visibility("default")))

typedef struct Id {
    char bytes[128];
} Id;

typedef struct Group {
    MPI_Comm comm;
    int rank, device; /* device: -1 without a driver */
    long sums;
    uint64_t count, scattered; /* of the last sum; of all that were scattered */
} Group;

static bool told_to_fail(const char *function, long call)
{
    char name[64];
    int rank, me;
    long n;
    const char *say = getenv("STUB_NCCL");
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return say && sscanf(say, "%63[^:]:%d:%ld", name, &rank, &n) == 3 && rank == me && n == call &&
           strcmp(name, function) == 0;
}

/* The current device of the driver that the program has loaded; -1: it has loaded none, -2: there
 * is no current one. */
static int current_device(void)
{
    int device = -2;
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (lib) {
        int (*get)(int *) = (int (*)(int *))(uintptr_t)dlsym(lib, "cuCtxGetDevice");
        return get(&device) ? -2 : device;
    }
    lib = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
    if (!lib) return -1;
    int (*get)(int *) = (int (*)(int *))(uintptr_t)dlsym(lib, "hipGetDevice");
    return get(&device) ? -2 : device;
}

/* All ranks fail if one does: the real ones would wait. */
static int together(MPI_Comm comm, int mine)
{
    int worst = mine;
    MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, comm);
    return mine ? mine : worst ? SYSTEM_ERROR : 0;
}

EXPORT const char *ncclGetErrorString(int code)
{
    return code == SYSTEM_ERROR       ? "another rank failed"
           : code == INVALID_ARGUMENT ? "an argument is wrong"
                                      : "it is used wrongly";
}

EXPORT int ncclGetVersion(int *out) { return *out = 21000, 0; }
EXPORT int ncclGroupStart(void) { return 0; }
EXPORT int ncclGroupEnd(void) { return 0; }

EXPORT int ncclCommGetAsyncError(Group *g, int *out) { return *out = 0, g ? 0 : INVALID_ARGUMENT; }

EXPORT int ncclGetUniqueId(Id *out)
{
    if (told_to_fail("ncclGetUniqueId", 0)) return SYSTEM_ERROR;
    for (size_t i = 0; i < sizeof out->bytes; i++) out->bytes[i] = (char)(i * 37 + 1);
    return 0;
}

/* Do all ranks have different devices, if they have any? */
static bool own_device(const Group *g, int ranks)
{
    int all[64] = {0}, same = 0;
    MPI_Allgather(&g->device, 1, MPI_INT, all, 1, MPI_INT, g->comm);
    for (int i = 0; i < ranks; i++) same += all[i] == g->device;
    return g->device == -1 || same == 1;
}

EXPORT int ncclCommInitRank(void **out, int ranks, Id id, int rank)
{
    int count, me, code = 0;
    Id right;
    ncclGetUniqueId(&right);
    MPI_Comm_size(MPI_COMM_WORLD, &count), MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (ranks != count || ranks > 64 || rank != me || memcmp(&id, &right, sizeof id))
        code = INVALID_ARGUMENT;
    if (told_to_fail("ncclCommInitRank", 0)) code = INVALID_USAGE;
    Group *g = calloc(1, sizeof *g);
    if (!g) return SYSTEM_ERROR;
    MPI_Comm_dup(MPI_COMM_WORLD, &g->comm);
    g->rank = rank, g->device = current_device();
    if (!own_device(g, count) || g->device == -2) code = INVALID_USAGE;
    code = together(g->comm, code);
    *out = code ? NULL : g;
    if (code) MPI_Comm_free(&g->comm), free(g);
    return code;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, Group *g,
                         void *stream)
{
    uint64_t n[2] = {count, UINT64_MAX - count};
    MPI_Allreduce(MPI_IN_PLACE, n, 2, MPI_UINT64_T, MPI_MAX, g->comm);
    int code = n[0] != UINT64_MAX - n[1] || type != FLOAT32 || op != SUM || from != to || !to ||
                       stream || g->device != current_device()
                   ? INVALID_ARGUMENT
                   : 0;
    if (told_to_fail("ncclAllReduce", g->sums)) code = INVALID_USAGE;
    code = together(g->comm, code);
    if (!code) MPI_Allreduce(MPI_IN_PLACE, to, (int)count, MPI_FLOAT, MPI_SUM, g->comm);
    if (told_to_fail("drift", g->sums)) *(float *)to += 1;
    g->sums++, g->count = count;
    return code;
}

/* In place, of f32. */
EXPORT int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, Group *g,
                             void *stream)
{
    (void)stream;
    int wrong = type != FLOAT32 || op != SUM || !to || g->device != current_device() ||
                to != (const float *)from + (size_t)g->rank * count;
    int ranks, code = together(g->comm, wrong ? INVALID_ARGUMENT : 0);
    MPI_Comm_size(g->comm, &ranks);
    g->scattered += count * (size_t)ranks;
    float *x = malloc(count * sizeof *x);
    if (!code && x)
        MPI_Reduce_scatter_block(from, x, (int)count, MPI_FLOAT, MPI_SUM, g->comm);
    if (!code && x) memcpy(to, x, count * sizeof *x);
    return free(x), code;
}

/* In place, of f32, f16 or bf16. */
EXPORT int ncclAllGather(const void *from, void *to, size_t count, int type, Group *g, void *stream)
{
    size_t size = type == FLOAT32 ? 4 : 2;
    int wrong = (type != FLOAT32 && type != 6 && type != 9) || !to || stream ||
                from != (char *)to + (size_t)g->rank * count * size;
    int code = together(g->comm, wrong ? INVALID_ARGUMENT : 0);
    if (!code)
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, to, (int)(count * size), MPI_BYTE, g->comm);
    return code;
}

/* Nobody uses them here. */
#define UNUSED(name)                                                                               \
    EXPORT int name(void) { return INVALID_USAGE; }
UNUSED(ncclReduce)
UNUSED(ncclBroadcast)
UNUSED(ncclSend)
UNUSED(ncclRecv)
UNUSED(ncclCommAbort)

EXPORT int ncclCommDestroy(Group *g)
{
    if (g->rank == 0)
        fprintf(stderr, "stub nccl: %ld sums, the last of %lu numbers; %lu were scattered\n",
                g->sums, (unsigned long)g->count, (unsigned long)g->scattered);
    MPI_Comm_free(&g->comm);
    return free(g), 0;
}
