/* Why a tile is stored by threads and not as boxes of a tensor map (bulk_stores.c): the remark
 * BY_THREADS. codegen/report/explain.def has the words. */
#ifndef TL_BULK_STORES_H
#define TL_BULK_STORES_H

typedef enum TlThreadsStore {
    TL_THREADS_NONE,
    TL_THREADS_MASK,
    TL_THREADS_HINT,   /* of caches */
    TL_THREADS_LOOP,   /* it is in a loop without loops, or one that runs while something holds */
    TL_THREADS_MEMORY, /* others access it too */
    TL_THREADS_ORDER,  /* an atomic releases what comes before it */
    TL_THREADS_NARROW,
    TL_THREADS_SHORT, /* rows of less than 32 bytes, or fewer than 8 of them */
    TL_THREADS_BOXES, /* no box brings it (TlBulkFault), */
    TL_THREADS_MAPS,  /* or there are enough maps */
    TL_THREADS_CHEAP, /* it costs threads no more */
    TL_THREADS_ROOM,  /* of shared memory */
    TL_THREADS_COUNT
} TlThreadsStore;
#endif
