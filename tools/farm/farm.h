/* farm.h: tilec tune --farm: what its files share. */
#ifndef TL_FARM_H
#define TL_FARM_H
#include "runtime/tune_file.h"
#include "runtime/tune_select.h"
#include "tools/farm/farm_link.h"
#include "tools/tilec_tune.h"

enum { FARM_TO_ROOT = 1, FARM_TO_RANK = 2 }; /* tags */

/* What a rank tells rank 0, followed by a text. */
typedef enum FarmSays {
    FARM_HELLO,  /* it has a device; asks for the file. First of all */
    FARM_ASKS,   /* wants something to do for a size */
    FARM_RESULT, /* has done it; the text: results that are new, as in a .tune.json */
    FARM_BYE,    /* the last one */
    FARM_ALIVE   /* from time to time, while the rank lives */
} FarmSays;

typedef struct FarmMessage {
    int32_t says;       /* a FarmSays */
    int32_t point;      /* which of the sizes, in the order of the command line */
    uint32_t nconfigs;  /* that tune lists */
    uint32_t timed, rejected, kept, stopped; /* as in a tile_tune_result */
    double best_us;
    tl_tune_device device;
    char sizes[256], best[512]; /* "M=512 N=1024"; "" if nothing can run */
} FarmMessage;

/* What rank 0 answers to HELLO and ASKS, followed by a text. */
typedef enum FarmDo {
    FARM_TRY,    /* time configurations [first, first + count) of the list */
    FARM_SETTLE, /* compare the best ones of all; the text: the file */
    FARM_NEXT,   /* nothing is left for this size */
    FARM_START   /* to HELLO; the text: the file */
} FarmDo;

typedef struct FarmOrder {
    int32_t what; /* a FarmDo */
    uint32_t first, count;
} FarmOrder;

typedef struct Farm {
    const Options *o;
    const FarmLink *link;
    FarmPlace place;
    char device[64]; /* this rank's */
} Farm;

/* Rank 0's part, in a thread of its own: until all ranks have said BYE, or nothing for long.
 * Returns an exit status. */
int farm_root(const Farm *farm, bool *out_all); /* farm_root.c; all: nobody is missing */
/* Every rank's part. */
int farm_work(const Farm *farm); /* farm_worker.c */
void farm_bye(const Farm *farm); /* likewise: a rank's last message */
#endif
