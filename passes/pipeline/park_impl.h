/* What the files of park-tiles share (park_tiles.c says what the pass does). */
#ifndef TL_PARK_IMPL_H
#define TL_PARK_IMPL_H
#include "passes/analysis/shared_life.h"
#include "passes/pass.h"

/* A tile that waits in a buffer that is another's: from its put to its last get. */
typedef struct TlParkGuest {
    const TlOp *put, *last;
} TlParkGuest;

/* A buffer that keeps what a loop carries: in the body it is free from behind the last get of what
 * it brings until what it takes along is put. */
typedef struct TlParkHome {
    TlValue *buf;
    const TlBlock *body;
    const TlOp *last, *next; /* the op that has the get; put */
    TL_VEC(TlParkGuest) guests;
} TlParkHome;

typedef struct TlPark {
    TlFn *fn;
    TlPassCtx *px;
    TlMap puts;  /* by buffer: of what is parked */
    TlMap tried; /* tiles that stay where they are */
    TL_VEC(TlParkHome) homes;
    TlPositions order;
    const TlOp *roles; /* NULL: there are none */
    const TlOp *full;  /* the fullest op */
    int64_t over;      /* words of a thread that it needs more than there are */
    int most, goal;    /* registers that a thread may have; that it is to need at most */
    bool seldom;       /* only what is put and got less often than the fullest op is done */
} TlPark;

typedef TL_VEC(TlUse *) TlParkUses;

/* Uses in a block that one get serves. */
typedef struct TlParkGroup {
    const TlBlock *block;
    TlOp *first; /* of them; or the op in the block that holds it */
    TlParkUses uses;
} TlParkGroup;

typedef struct TlParkCandidate {
    TlValue *v;
    int64_t words, cost; /* of a thread; accesses of each word */
    TlOp *behind;        /* where it is put; NULL: where it is made */
    TlParkHome *home;    /* it waits in; NULL: in a buffer of its own */
    TlOp *loop;          /* that carries it, as which result; NULL: none does */
    uint32_t number;
    TL_VEC(TlParkGroup) groups;
    TlParkGroup after; /* of what the loop results in; first NULL: nobody uses it */
} TlParkCandidate;

/* ---- where things are (park_tiles.c) ---- */
/* The op of the block that is, or holds, this one; NULL: it is not inside. */
TlOp *tl_park_around(const TlBlock *block, const TlOp *op);
uint32_t tl_park_at(const TlPark *p, const TlOp *op);
int64_t tl_park_runs(const TlBlock *block);

/* ---- candidates (park_tiles.c) ---- */
/* All uses of a value, through views. */
void tl_park_uses(const TlPark *p, TlParkUses *all, TlValue *v);
bool tl_park_is_taken(const TlPark *p, const TlParkUses *uses); /* by the fullest op */
TlSpan tl_park_life(const TlPark *p, const TlValue *v, const TlParkUses *uses);
bool tl_park_can_wait(TlPark *p, const TlValue *v);
/* The buffer that the value is got from, if a parked tile is there; NULL. */
const TlValue *tl_park_buffer(TlPark *p, const TlValue *v);
/* Those of the uses in a block, through ops that hold them, between two ops, NULL: any. */
TlParkGroup tl_park_group(const TlPark *p, const TlParkUses *uses, const TlBlock *block,
                          const TlOp *behind, const TlOp *before);
void tl_park_add_group(const TlPark *p, TlParkCandidate *c, const TlParkUses *uses,
                       const TlBlock *block, const TlOp *behind, const TlOp *before);
/* Behind the fullest op in its block and in those around it, up to `home`; in loops among these,
 * before it too. */
void tl_park_find_groups(const TlPark *p, TlParkCandidate *c, const TlParkUses *uses,
                         const TlBlock *home);
bool tl_park_fits(const TlPark *p, const TlValue *v, TlSpan span);
bool tl_park_is_better(const TlPark *p, const TlParkCandidate *a, const TlParkCandidate *b);

/* ---- into effect (park_tiles.c) ---- */
/* buf NULL: a new one. */
TlOp *tl_park_put(TlPark *p, TlBuilder *b, TlValue *v, TlValue *buf);
TlOp *tl_park_get(const TlParkGroup *g, const TlOp *put, const TlValue *v);
void tl_park_erase_views(const TlValue *v); /* that nobody wants any more */

/* ---- what loops carry (park_carried.c) ---- */
/* Takes the place of `best` if it is better. False: it cannot wait so. */
bool tl_park_look_at_carried(TlPark *p, TlOp *loop, uint32_t number, TlParkCandidate *best);
void tl_park_carried(TlPark *p, const TlParkCandidate *c);
/* A home in whose body the tile lives while nothing else does in it; NULL: there is none. */
TlParkHome *tl_park_home_for(TlPark *p, const TlParkCandidate *c);
void tl_park_as_guest(TlPark *p, const TlParkCandidate *c);
#endif
