/* Inside of pipeline: the schedule of a loop, and putting it into effect. The essay is in pipeline.c. */
#ifndef TL_PIPELINE_IMPL_H
#define TL_PIPELINE_IMPL_H
#include "passes/facts.h"
#include "passes/pass.h"

typedef enum TlFetchHow {
    TL_FETCH_COPY, /* asynchronously to a slot of a buffer */
    TL_FETCH_PUT,  /* to registers, then put to a slot */
    TL_FETCH_REGS  /* to registers */
} TlFetchHow;

/* A load of the loop that is begun before the trip that wants it. */
typedef struct TlFetch {
    TlOp *load, *put; /* put: COPY, PUT */
    TlFetchHow how;
    int level;     /* loads on the way from what it loads to what the trip computes */
    int ahead;     /* begun so many trips before */
    int put_ahead; /* PUT: put so many trips before */
    int slots;     /* COPY, PUT */
    bool ends;     /* past the last trip its place is outside of the view anyway */
} TlFetch;

/* A modulo schedule: every trip begins the fetches of the trip `ahead` further on, in this order, and does
 * the rest for itself. In terms of stages: a fetch is in stage most - ahead, the rest in stage most. */
typedef struct TlSchedule {
    TlOp *loop;
    int stages;
    int most;                   /* the largest ahead: trips that the prologue begins */
    int64_t bound_lo, bound_hi; /* the loop's bound lies between them */
    TL_VEC(TlFetch) fetches;
} TlSchedule;

/* The fetch of a load, or NULL. */
const TlFetch *tl_schedule_of(const TlSchedule *s, const TlOp *load);
void tl_schedule_print(TlSbuf *out, const TlSchedule *s);

/* The loop as the schedule says; s->loop is replaced. (pipeline_expand.c) */
void tl_pipeline_expand(TlFn *fn, TlPassCtx *px, const TlSchedule *s);
/* Can tl_pipeline_expand say of each trip whether it exists? */
bool tl_pipeline_has_trips(const TlOp *loop);
#endif
