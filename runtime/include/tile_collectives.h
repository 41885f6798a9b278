/* tile_collectives.h: several devices that add up, gather and exchange arrays
 * (libtile-collectives): over NCCL or RCCL on GPUs, over MPI between processes on CPUs, and within
 * one process on cpu, ref and emu. C11, clean C++.
 *
 *     tile_comm *comm;                                     in each process that mpirun starts
 *     tile_comm_create_world(device, NULL, &comm);
 *     tile_comm_all_reduce(comm, tile_f32_view(grads, n), tile_f32_view(grads, n),
 *                          TILE_COMM_SUM, stream);       on its stream, in its order
 *     tile_stream_synchronize(stream);
 *     tile_comm_free(comm);
 *
 * The rules of tile.h hold: statuses, tile_last_error, NULL, struct_size. Functions on different
 * communicators are thread-safe; on one communicator, one thread calls at a time, but for
 * tile_comm_abort and tile_comm_status, which any thread may call at any time.
 *
 * Operations. Every rank of a communicator makes the same calls in the same order, with equal
 * types, counts, roots and reductions; sends and receives between two ranks match in the order of
 * the calls. A call checks its arguments, puts the operation into the stream (of the communicator's
 * device; NULL: its default stream), and returns. On cpu, ref and emu the default stream does it
 * within the call, which returns when the other ranks have come; a thread that has several ranks
 * makes their calls between tile_comm_group_begin and tile_comm_group_end.
 *
 * Arrays are views without gaps (tile_view, tile_f32_view, ...) of any rank and of a known type of
 * at least 8 bits; their elements count, not their shape. Reductions take f32 f16 bf16 f64 i8 u8
 * i32 u32 i64 u64. In place means that `send` and `recv` are the same memory, as each function
 * says. Other overlaps are TILE_BAD_ARGUMENT. The memory must live until the
 * stream has done the operation. 0 elements are allowed.
 *
 * Results. Every rank gets the same bits. Over MPI and within a process numbers are added in the
 * order of the ranks, so that runs repeat; f16 and bf16 in f32, rounded once. Integers wrap, as in
 * kernels. In a maximum and a minimum a NaN wins. NCCL and RCCL reduce in an order of their own.
 *
 * Errors. A call returns what is wrong with its arguments. What goes wrong later (ranks whose calls
 * differ, a rank that was aborted, a lost connection) is the status of the stream's next
 * synchronisation on cpu, ref and emu, and everywhere that of tile_comm_status from then on; all
 * further operations are refused with it. */
#ifndef TILE_COLLECTIVES_H
#define TILE_COLLECTIVES_H
#include "tile.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tile_comm tile_comm; /* one rank of a communicator */

typedef enum tile_comm_reduction {
    TILE_COMM_SUM,
    TILE_COMM_PROD,
    TILE_COMM_MAX,
    TILE_COMM_MIN,
    TILE_COMM_AVG /* the sum divided by the number of ranks; of integers, towards zero */
} tile_comm_reduction;

/* ---- communicators ---- */

typedef struct tile_comm_options {
    size_t struct_size;
    /* "local": ranks of this process, on cpu, ref and emu; "mpi": processes, on cpu, ref and emu;
     * "nccl": NCCL on cuda, RCCL on hip; NULL: nccl on a GPU, else local (tile_comm_create_world:
     * mpi in an MPI job). */
    const char *backend;
    /* The library with NCCL's functions; NULL: libnccl.so.2, librccl.so.1. With "nccl" and a
     * library the device may be any. */
    const char *library;
} tile_comm_options;
#define TILE_COMM_OPTIONS_INIT TILE_INIT_(tile_comm_options)

/* What the ranks of a communicator have in common before they have it. It may be copied and sent as
 * bytes to other processes (for local: threads). */
typedef struct tile_comm_id {
    unsigned char bytes[192];
} tile_comm_id;

/* An id for one communicator. `device`: any of those that will be in it.
 * TILE_UNAVAILABLE: there is no NCCL, RCCL or MPI; tile_last_error names what is missing. */
TILE_0_1 tile_status tile_comm_id_create(tile_device *device, const tile_comm_options *options,
                                         tile_comm_id *out_id);
/* Rank `rank` of `ranks` on the device, one rank for each GPU. nccl and mpi: returns when all ranks
 * have called. local: at once. mpi: rank 0 is the process that made the id; all are of one MPI job.
 * Not inside a group. options: `library` alone counts, the rest is the id's; NULL: none.
 * TILE_BAD_ARGUMENT: the rank is not below ranks or is taken, or other ranks gave another number;
 * the id is none, or, of local, another process's. */
TILE_0_1 tile_status tile_comm_create(tile_device *device, const tile_comm_options *options,
                                      const tile_comm_id *id, int ranks, int rank,
                                      tile_comm **out_comm);
/* All ranks in this process: rank i is on devices[i]. Of host devices several may be the same one.
 * On a failure none is made. local and nccl only. */
TILE_0_1 tile_status tile_comm_create_all(tile_device *const *devices, int ranks,
                                          const tile_comm_options *options, tile_comm **out_comms);
/* The processes of the MPI job that mpirun has started, each with its device; without mpirun this
 * one alone. All of them call it. The backend is mpi, or on GPUs nccl, whose id goes through MPI.
 * If one rank cannot, all return its status, with its text. */
TILE_0_1 tile_status tile_comm_create_world(tile_device *device, const tile_comm_options *options,
                                            tile_comm **out_comm);

typedef struct tile_comm_place {
    size_t struct_size;
    int rank, ranks;             /* of the job */
    int local_rank, local_ranks; /* among those on this machine: which GPU to open */
} tile_comm_place;
#define TILE_COMM_PLACE_INIT TILE_INIT_(tile_comm_place)
/* Where this process is in its MPI job; without mpirun: rank 0 of 1. Before any device is opened.
 * MPI is initialised here, unless it is, and ends with the process when that exits with 0 and has
 * freed its communicators.
 * TILE_UNAVAILABLE: mpirun has started the process, but MPI cannot be used. */
TILE_0_1 tile_status tile_comm_world_place(tile_comm_place *out_place);

TILE_0_1 int tile_comm_rank(const tile_comm *comm);             /* -1 for NULL */
TILE_0_1 int tile_comm_size(const tile_comm *comm);             /* 0 for NULL */
TILE_0_1 const char *tile_comm_backend(const tile_comm *comm); /* "local", "mpi", "nccl"; or NULL */
/* Waits for the operations that this rank has put into streams of cpu, ref and emu; on GPUs they
 * must have been waited for. */
TILE_0_1 void tile_comm_free(tile_comm *comm);
/* Ends the operations of this rank that wait for others, with an error; the same operations end
 * with one on the other ranks where these can know of it (local, nccl). Arrays of ended operations
 * hold anything; mpi may still read those that were sent. The communicator has failed; it still has
 * to be freed. */
TILE_0_1 tile_status tile_comm_abort(tile_comm *comm);
/* Does not wait. TILE_OK while nothing has failed, else the first failure, with its text. */
TILE_0_1 tile_status tile_comm_status(tile_comm *comm);

/* ---- groups ---- */

/* What this thread calls between begin and end starts together at the end, which returns what the
 * calls would have returned: so that one thread has several ranks, and sends and receives do not
 * wait for each other. May be nested: the outermost end counts. If a call inside returned an error,
 * nothing is started, and the end returns that error, too. */
TILE_0_1 tile_status tile_comm_group_begin(void);
TILE_0_1 tile_status tile_comm_group_end(void);

/* ---- operations ---- */

/* recv = the reduction of all ranks' send. In place: recv is send. */
TILE_0_1 tile_status tile_comm_all_reduce(tile_comm *comm, tile_arg send, tile_arg recv,
                                          tile_comm_reduction reduction, tile_stream *stream);
/* The same for rank `root` alone; on the others recv is not looked at. */
TILE_0_1 tile_status tile_comm_reduce(tile_comm *comm, tile_arg send, tile_arg recv,
                                      tile_comm_reduction reduction, int root, tile_stream *stream);
/* Rank r gets part r of the reduction: send has as many elements as recv for each rank. In place:
 * recv is part `rank` of send. */
TILE_0_1 tile_status tile_comm_reduce_scatter(tile_comm *comm, tile_arg send, tile_arg recv,
                                              tile_comm_reduction reduction, tile_stream *stream);
/* Part r of recv = send of rank r, which has the same number of elements on all. In place: send is
 * part `rank` of recv. */
TILE_0_1 tile_status tile_comm_all_gather(tile_comm *comm, tile_arg send, tile_arg recv,
                                          tile_stream *stream);
/* recv = send of rank `root`; on the others send is not looked at. In place: recv is send. */
TILE_0_1 tile_status tile_comm_broadcast(tile_comm *comm, tile_arg send, tile_arg recv, int root,
                                         tile_stream *stream);
/* Part r of recv = part `rank` of send of rank r. In place: recv is send. */
TILE_0_1 tile_status tile_comm_all_to_all(tile_comm *comm, tile_arg send, tile_arg recv,
                                          tile_stream *stream);
/* To and from another rank. */
TILE_0_1 tile_status tile_comm_send(tile_comm *comm, tile_arg data, int to, tile_stream *stream);
TILE_0_1 tile_status tile_comm_recv(tile_comm *comm, tile_arg data, int from, tile_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
