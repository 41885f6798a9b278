/* farm_link.h: what the farm needs from MPI, as a table of functions. The library libtilec-mpi,
 * which is built if MPI is found, exports it, and tilec loads it on demand. So tilec itself needs
 * no MPI, and is not bound to one implementation. */
#ifndef TL_FARM_LINK_H
#define TL_FARM_LINK_H
#include <stdbool.h>
#include <stddef.h>

#define FARM_LINK_SYMBOL "tl_farm_link"
enum { FARM_LINK_VERSION = 1 };

typedef struct FarmPlace {
    int rank, size; /* of all */
    int here, nhere; /* of those on this machine */
} FarmPlace;

typedef struct FarmLink {
    int version; /* FARM_LINK_VERSION */
    /* Before any other. False: why not is in `why`. Threads may call the others side by side. */
    bool (*join)(FarmPlace *out, char *why, size_t size);
    /* After all others; waits for all ranks. */
    void (*leave)(void);
    /* `tag`: what a receiver waits for. */
    void (*send)(int to, int tag, const void *data, size_t size);
    /* Ends all ranks; for when some do not answer any more and `leave` would wait for them. */
    void (*abandon)(int status);
    /* The next message with the tag, from anyone; to be freed. Sleeps while there is none. NULL:
     * there is none after so many seconds (0: it waits for ever), or no memory. */
    void *(*receive)(int tag, double seconds, int *out_from, size_t *out_size);
    /* `size` bytes of each rank on this machine, in the order of `here`. */
    void (*share)(const void *mine, void *all, size_t size);
} FarmLink;
#endif
