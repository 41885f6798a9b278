/* Products that two programs of a cluster, a pair, do together (tcgen05 of a pair of blocks): why
 * a kernel's are not. */
#ifndef TL_PAIR_H
#define TL_PAIR_H

typedef enum TlPairFault {
    TL_PAIR_NONE,
    TL_PAIR_CLUSTER,  /* of other sizes */
    TL_PAIR_FORM,     /* launches may have programs that run alone */
    TL_PAIR_PRODUCTS, /* of other kinds */
    TL_PAIR_LOOP,     /* others than products touch what they read */
    TL_PAIR_A,        /* both programs have the same rows of A */
    TL_PAIR_B,        /* their columns of B are others */
    TL_PAIR_TRIPS,    /* they come to the product at other times */
    TL_PAIR_HALVES,   /* half of B is no image of boxes */
    TL_PAIR_COST,
    TL_PAIR_COUNT
} TlPairFault;

/* The rest of "no products of pairs: ". */
const char *tl_pair_fault_text(TlPairFault fault);
#endif
