/* comm.h: the inside of libtile-collectives.
 *
 * comm.c has what is the same for all: arguments, groups, the state of a communicator. A backend
 * (comm_local.c, comm_messages.c over comm_mpi.c, comm_nccl.c) makes communicators and does
 * operations. On devices of the host an operation is two calls in its stream: `start`, which waits
 * for nobody, and `finish`, which does. A group puts in all starts before the first finish, so that
 * one thread may have several ranks. */
#ifndef TL_COMM_H
#define TL_COMM_H
#include "runtime/collectives/comm_reduce.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct tl_comm_op tl_comm_op;

/* recv and send have `count` elements, or that many for each rank (parts). */
typedef enum tl_comm_kind {
    TL_ALL_REDUCE,
    TL_REDUCE,
    TL_REDUCE_SCATTER, /* send in parts */
    TL_ALL_GATHER,     /* recv in parts */
    TL_BROADCAST,
    TL_ALL_TO_ALL, /* both in parts */
    TL_SEND,
    TL_RECV
} tl_comm_kind;

struct tl_comm_op {
    tile_comm *comm;
    tile_stream *stream;
    tl_comm_kind kind;
    tile_dtype dtype;
    tile_comm_reduction reduction;
    int peer;         /* the root, or the other rank */
    const char *send; /* NULL where it is not looked at, or has no elements */
    char *recv;
    size_t count, size; /* size: of an element, in bytes */
    uint64_t written;   /* bytes from recv on */
    uint64_t number;    /* of this rank's operations, of sends and receives: with this peer */
    tl_comm_op *next;   /* of the group */
    atomic_int owners;  /* who has put it into the stream, and the stream */
    atomic_bool started, ended;
    void *state; /* the backend's */
};

typedef struct tl_comm_backend {
    const char *name;
    /* Operations; `prepare` in the order of the calls, with the number set; the rest in streams. */
    tile_status (*prepare)(tl_comm_op *op);
    tile_status (*start)(tl_comm_op *op);
    tile_status (*finish)(tl_comm_op *op);
    void (*drop)(tl_comm_op *op); /* frees op->state */
    /* In place of these: puts a group's operations of this backend into their streams. */
    tile_status (*flush)(tl_comm_op *const *ops, size_t n);
    tile_status (*poll)(tile_comm *comm); /* NULL: tl_comm_broke says it all */
    void (*abort)(tile_comm *comm);
    void (*close)(tile_comm *comm);
} tl_comm_backend;

struct tile_comm {
    const tl_comm_backend *backend;
    tile_device *device;
    tile_buffer *keeps; /* of no bytes: keeps the device */
    int rank, ranks;
    uint64_t numbers, *sends, *recvs; /* so far; sends, recvs: for each rank */
    pthread_mutex_t lock;             /* guards what follows */
    pthread_cond_t changed;
    long running; /* operations in streams */
    tile_status status;
    char error[512];
    void *state; /* the backend's */
};

/* What all ranks know before they have a communicator; a tile_comm_id. */
typedef struct tl_comm_key {
    char magic[8], backend[8];
    int32_t creator, spare; /* process, or rank in the job */
    uint64_t number;        /* of the creator */
    char nccl[128];
} tl_comm_key;
_Static_assert(sizeof(tl_comm_key) <= sizeof(tile_comm_id), "a key fits into an id");

tile_status tl_comm_fail(tile_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Keeps the first failure of the communicator; returns the status and sets the thread's text. */
tile_status tl_comm_broke(tile_comm *comm, tile_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool tl_comm_is_broken(tile_comm *comm);
const char *tl_comm_kind_name(tl_comm_kind kind);
/* The stream is done with it: for backends with a `flush`. */
void tl_comm_end(tl_comm_op *op);

/* ---- backends ---- */

tile_status tl_local_key(tl_comm_key *key);
tile_status tl_local_join(tile_comm *comm, const tl_comm_key *key);
extern const tl_comm_backend tl_comm_local;

tile_status tl_mpi_key(tl_comm_key *key);
tile_status tl_mpi_world_key(tl_comm_key *key);
tile_status tl_mpi_join(tile_comm *comm, const tl_comm_key *key);
tile_status tl_mpi_place(tile_comm_place *place);
extern const tl_comm_backend tl_comm_mpi;

/* library NULL: that of the device's maker. */
tile_status tl_nccl_load(tile_device *device, const char *library, void **out_nccl);
tile_status tl_nccl_key(void *nccl, tl_comm_key *key);
/* One, or all of a communicator at once. */
tile_status tl_nccl_join(tile_comm *const *comms, int n, void *nccl, const tl_comm_key *key);
extern const tl_comm_backend tl_comm_nccl;
#endif
