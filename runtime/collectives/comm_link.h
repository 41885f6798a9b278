/* comm_link.h: what libtile-collectives needs of MPI, as a table of functions. The library
 * libtile-collectives-mpi, which is built where MPI is found, exports it, and is loaded on demand:
 * libtile-collectives itself is bound to no implementation of MPI, whose types all have their own
 * sizes. Only bytes between two ranks go through it; comm_messages.c makes collectives of them. */
#ifndef TL_COMM_LINK_H
#define TL_COMM_LINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_COMM_LINK_SYMBOL "tl_comm_link_mpi"
enum { TL_COMM_LINK_VERSION = 1 };
/* A message has at most so many bytes, and a tag below this. */
enum { TL_LINK_BYTES = 1 << 30, TL_LINK_TAGS = 1 << 15 };

typedef uintptr_t tl_link_comm;

/* A message on its way. */
typedef struct tl_link_message {
    uintptr_t request; /* MPI's */
    size_t bytes;
    bool receives, done;
} tl_link_message;

typedef struct tl_link_place {
    int rank, ranks, local_rank, local_ranks;
} tl_link_place;

/* All return NULL, or what went wrong, which lives until the thread's next call. All are
 * thread-safe, and none waits for another rank, but `begin`, and `join` for those that join. */
typedef struct tl_comm_link {
    int version; /* TL_COMM_LINK_VERSION */
    /* Initialises MPI, unless the program has. */
    const char *(*begin)(tl_link_place *out_place);
    /* A communicator of `ranks` ranks of the job; rank 0 is `creator`, in the job's numbers.
     * `number`: of the creator, so that several may be made at once. */
    const char *(*join)(int creator, uint64_t number, int ranks, int rank, tl_link_comm *out_comm);
    void (*leave)(tl_link_comm comm);
    /* m: bytes and receives are set. */
    const char *(*post)(tl_link_comm comm, int peer, int tag, void *data, tl_link_message *m);
    const char *(*test)(tl_link_message *m); /* sets done */
    void (*cancel)(tl_link_message *m);      /* what has not come; memory may still be read */
} tl_comm_link;
#endif
