/* Shared by the files of pipeline: the schedule of a loop, and applying it. The essay is in
 * pipeline.c. */
#ifndef TL_PIPELINE_IMPL_H
#define TL_PIPELINE_IMPL_H
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"

typedef enum TlFetchHow {
    TL_FETCH_BULK, /* as boxes of a tensor map to a slot of a buffer, counted by a barrier */
    TL_FETCH_COPY, /* asynchronously to a slot of a buffer */
    TL_FETCH_PUT,  /* to registers, then put to a slot */
    TL_FETCH_REGS  /* to registers */
} TlFetchHow;

/* How an axis of a place is known to be inside. */
typedef enum TlInsideHow {
    TL_INSIDE_PROVEN,
    TL_INSIDE_COUNTER, /* the loop's counter, which counts up from 0 or above, against the extent */
    TL_INSIDE_ASKED    /* any number against 0 and the extent */
} TlInsideHow;

/* A load of the loop that is begun before the iteration that wants it. */
typedef struct TlFetch {
    TlOp *load, *put; /* put: COPY, PUT */
    TlFetchHow how;
    int chain;     /* loads on the way from what it loads to what the iteration computes */
    int ahead;     /* begun so many iterations before */
    int put_ahead; /* PUT: put so many iterations before */
    int slots;     /* COPY, PUT */
    const TlLayout *layout; /* of the load, or of the copy */
    bool shared;   /* BULK: programs of a cluster bring parts of it to each other (cluster.h) */
    bool ends;     /* past the last iteration its place is outside of the view anyway */
    bool asks;     /* needs bounds, but a scalar test can say that all of it is inside: */
    TlInsideHow inside[TL_MAX_VIEW_RANK];
} TlFetch;

/* A modulo schedule: every iteration begins the fetches of the iteration `ahead` further on, in
 * this order, and does the rest for itself. In terms of stages: a fetch is in stage most - ahead,
 * the rest in stage most. */
typedef struct TlSchedule {
    TlOp *loop;
    int stages;
    int most;                   /* the largest ahead: iterations that the prologue begins */
    bool pair;                  /* products are a pair's (pipeline_pair.c) */
    bool by_producer;           /* a warp of its own begins the bulk copies, of its own iteration */
    int64_t bound_lo, bound_hi; /* the loop's bound lies between them */
    TL_VEC(TlFetch) fetches;
} TlSchedule;

typedef TL_VEC(TlSchedule) TlSchedules;

/* Bytes of its buffers, with all slots. */
uint64_t tl_schedule_bytes(const TlSchedule *s);
enum { TL_SLOT_BARRIERS = 256 }; /* bytes of the mbarriers of a slot that bulk copies fill */
/* Bytes of shared memory that a block may have. (pipeline.c) */
uint32_t tl_pipeline_room(const TlFn *fn, const TlPassCtx *px);
/* Which loops leave their bulk copies to a warp of its own, if any do. (pipeline_flows.c) */
void tl_pipeline_choose_flows(TlFn *fn, const TlPassCtx *px, TlSchedules *all);

/* What awaits the products whose tokens the loop carries (async-dots); NULL: it carries none. */
TlOp *tl_loop_await(const TlOp *loop);

/* Are all products those of pairs from here on? Then schedules are to be made again.
 * (pipeline_pair.c) */
bool tl_pipeline_choose_pair(TlFn *fn, const TlPassCtx *px, const TlSchedules *all);
/* Would products say themselves when slots are free, if they were a pair's? (pipeline_bulk.c) */
bool tl_pipeline_products_release(const TlSchedule *s);

/* The fetch of a load, or NULL. */
const TlFetch *tl_schedule_of(const TlSchedule *s, const TlOp *load);

/* ---- expansion ---- */

/* When a value is asked for: before the loop, of iteration n; in the loop, of n iterations further
 * on. */
typedef struct TlMoment {
    bool in_loop;
    int n;
} TlMoment;

/* One more carried value. Its next one is `of` at `moment`, made when all that comes first is
 * there. */
typedef struct TlCarried {
    TlValue *arg, *init, *next, *of;
    TlMoment moment;
    bool runs_on; /* when the loop is run again, by loops around it, where it stopped */
} TlCarried;

typedef struct TlExpand {
    TlFn *fn;
    TlCtx *ctx;
    TlArena *arena;
    const TlSchedule *s;
    TlOp *loop;
    TlBlock *body;
    TlBuilder home;          /* where buffers and barriers are made: before the loop, or first */
    TlBuilder before, start; /* before the loop; before what the body had at first */
    TlValue *bars,
        *empties;         /* of bulk copies: what has come, who has read it; NULL: not made yet */
    bool by_products;     /* products arrive there, not warps */
    TlValue *parity;      /* of this iteration's phase; NULL: not asked for yet */
    uint32_t again;       /* which carried value says that this is not the first iteration */
    TlMap values;         /* value and moment to value */
    TlMap tests;          /* moment to the test of it */
    TlMap limits;         /* n to hi - n * step */
    TlMap buffers, slots; /* old buffer to new; number of slots to the index of its counter */
    TlMap later;          /* slots and n to the slot n iterations later */
    TlMap constants;      /* type and number to a constant before the loop */
    TL_VEC(TlCarried) carried;
} TlExpand;

/* The operands of a load or copy of a fetch at a moment. A copy's buffer and slot are appended by
 * who begins it. */
typedef struct TlAccess {
    const TlFetch *f;
    TlMoment m;
    TlValue **in;
    uint32_t n;
    bool masked;
} TlAccess;

/* The loop as the schedule says; s->loop is replaced. (pipeline_expand.c) */
void tl_pipeline_expand(TlFn *fn, TlPassCtx *px, const TlSchedule *s);

/* ---- slots (pipeline_slots.c) ---- */
/* A counter that is 0 at first: where a producer begins copies, at the start of the program. */
TlCarried tl_pipeline_from_0(TlExpand *x);
/* Do slots begin again within n iterations of the one of `slot`? */
TlValue *tl_pipeline_wraps(TlExpand *x, TlBuilder *b, TlValue *slot, int n, int slots);
/* The slot of this iteration's gets. Buffers with the same number of slots share a counter. */
TlValue *tl_pipeline_slot(TlExpand *x, int slots);
/* The slot of the last iteration's gets. */
TlValue *tl_pipeline_last_slot(TlExpand *x, int slots);
TlValue *tl_pipeline_slot_at(TlExpand *x, const TlFetch *f, TlMoment m);
/* The buffer with all its slots, before the loop. */
TlValue *tl_pipeline_buffer(TlExpand *x, const TlFetch *f);
/* Gets of the old buffer read the new one, at this iteration's slot. */
void tl_pipeline_redirect_gets(TlExpand *x, const TlFetch *f);

/* ---- bulk copies (pipeline_bulk.c) ---- */
/* Those of an iteration, or (before the loop) of number t < 0. */
void tl_pipeline_begin_bulk(TlExpand *x, bool in_loop, int t);
void tl_pipeline_await_bulk(TlExpand *x);
void tl_pipeline_arrive_empty(TlExpand *x);
/* When `loop` is made: what follows its last iteration. */
void tl_pipeline_end_bulk(TlExpand *x, TlOp *loop);

/* ---- values at moments (pipeline_values.c) ---- */
/* An iteration, or (before the loop) number t < 0, which begins work of iterations from 0 on. */
TlMoment tl_pipeline_moment(bool in_loop, int t, int ahead);
void tl_pipeline_say_ahead(TlExpand *x, const TlOp *op, TlMoment m); /* to people */
/* Can it be said of each iteration whether it exists? */
bool tl_pipeline_has_trips(const TlOp *loop);
/* The body's value at a moment. */
TlValue *tl_pipeline_value(TlExpand *x, TlValue *v, TlMoment m);
bool tl_pipeline_is_known(const TlExpand *x, const TlValue *v, TlMoment m);
void tl_pipeline_remember(TlExpand *x, const TlValue *v, TlMoment m, TlValue *made);
/* A constant before the loop. */
TlValue *tl_pipeline_int(TlExpand *x, const TlType *t, TlWideInt v);
TlValue *tl_pipeline_carry(TlExpand *x, const TlType *type, const char *name, TlCarried c);
TlAccess tl_pipeline_access(TlExpand *x, const TlFetch *f, TlMoment m);
/* Is there such an iteration? NULL: always. */
TlValue *tl_pipeline_test(TlExpand *x, TlMoment m);
/* `inside`: by a test, all of it is. */
TlOp *tl_pipeline_begin(TlExpand *x, TlBuilder *b, const TlAccess *a, bool inside);

/* ---- is all of it inside? (pipeline_inside.c) ---- */
/* Fills in `asks` and `inside`. copies: of such a fetch, too. */
void tl_pipeline_ask(const TlAxisInfo *axis, const TlOp *loop, TlFetch *f, bool copies);
/* A bool in the loop: all that the fetches touch which are begun now is inside. All of them ask. */
TlValue *tl_pipeline_inside(TlExpand *x, uint32_t n, const TlFetch *const *fetches);
#endif
