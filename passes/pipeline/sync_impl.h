/* What the files of synchronize share (synchronize.c describes the pass).
 *
 * A function becomes a list of events: accesses, waits, and the beginnings, middles and ends of
 * loops and branches, so that one walk along the list is one round of a data flow: branches unite
 * their arms, and loops are repeated up to a fixed point. Nothing recurses. */
#ifndef TL_SYNC_IMPL_H
#define TL_SYNC_IMPL_H
#include "passes/analysis/buffer_use.h"
#include "passes/analysis/footprint.h"
#include "passes/pass.h"

/* FLIGHT comes right behind the ACCESS of what goes on. ELSE: between two arms of a branch, of
 * which there may be any number. */
typedef enum TlSyncKind {
    TL_SYNC_ACCESS,
    TL_SYNC_FLIGHT,
    TL_SYNC_WAIT,
    TL_SYNC_FENCE,
    TL_SYNC_LOOP,
    TL_SYNC_MIDDLE,
    TL_SYNC_END,
    TL_SYNC_IF,
    TL_SYNC_ELSE,
    TL_SYNC_ENDIF
} TlSyncKind;

/* Accesses that are pending, each once, in any order. */
typedef struct TlPending {
    uint32_t access; /* index of its event */
    uint32_t trips;  /* sync_barriers.c */
} TlPending;
typedef TL_VEC(TlPending) TlPendingSet;

/* A data flow's state at a LOOP: what comes by the way back, before it, out of a while; at an IF:
 * before it, out of the arms so far. */
typedef struct TlSyncBits {
    unsigned head, before, out;
} TlSyncBits;

typedef struct TlSyncEvent {
    TlSyncKind kind;
    TlOp *op;
    uint32_t opening; /* MIDDLE, END, ELSE, ENDIF: the event LOOP or IF */
    uint32_t loop;    /* the event of the innermost loop around; TL_SYNC_NONE */
    uint32_t depth;   /* loops around */
    bool has_fence, has_barrier; /* new ones before the op, in this order */
    /* ACCESS: */
    bool is_barrier;
    uint64_t from, to; /* bytes of shared memory; to 0: none */
    const TlFootprint *memory;
    const TlBufUse *use;
    const TlLayout *own; /* each thread touches what it holds so, and no other does; NULL: not so */
    bool is_release, is_acquire;
    /* WAIT: what (its accesses) may have been on its way */
    TL_VEC(uint32_t) arrived;
    TlPendingSet head, before, out; /* as TlSyncBits */
    TlSyncBits dirty;
} TlSyncEvent;

enum { TL_SYNC_NONE = UINT32_MAX };

typedef struct TlSync {
    TlFn *fn;
    TlArena *arena;
    const TlMachine *machine;
    TL_VEC(TlSyncEvent) events;
    uint32_t depth; /* of the deepest loop */
} TlSync;

/* Of an op that makes or ends barriers that count; NULL. */
const TlValue *tl_sync_bars(const TlOp *op);
void tl_sync_list(TlSync *s);      /* the events (sync_events.c) */
void tl_sync_barriers(TlSync *s);  /* decides about barriers (sync_barriers.c) */
void tl_sync_fences(TlSync *s);    /* then about fences (sync_fences.c) */
bool tl_sync_ping_pong(TlFn *fn);  /* true: changed (sync_ping_pong.c) */
#endif
