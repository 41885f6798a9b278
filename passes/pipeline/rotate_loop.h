/* A loop of which one part, the early one, is an iteration ahead of the other, the late one:
 *
 *     early of lo
 *     for %j = lo + step (what the late part has of the early one, ...) {
 *       early of j, late of j - step
 *     }
 *     late of the last
 *
 * The loop carries what the late part takes from the early one. The passes that do so
 * (overlap-products, lead-products) say which ops are late, and in what order an iteration has the
 * parts. */
#ifndef TL_ROTATE_LOOP_H
#define TL_ROTATE_LOOP_H
#include "passes/pass.h"

typedef struct TlRotate {
    TlFn *fn;
    TlArena *arena;
    TlOp *loop;
    TlBlock *body;
    TlMap late;              /* ops of the late part; the others are of the early one */
    bool *late_carried;      /* of each carried value: the late part has and gives it */
    TL_VEC(TlValue *) taken; /* by the late part, from the early one or the iteration's start */
} TlRotate;

/* Of a FOR; no op is late yet, no carried value. */
TlRotate tl_rotate_begin(TlFn *fn, TlArena *arena, TlOp *loop);
/* Does it count up, by a constant? */
bool tl_rotate_counts_up(const TlOp *loop);
void tl_rotate_set_late(TlRotate *r, const TlOp *op);
bool tl_rotate_is_late(const TlRotate *r, const TlOp *op); /* NULL: no */
/* When all that is late is known. */
void tl_rotate_find_taken(TlRotate *r);

/* The new iteration's builder, and what the values of each part are there. */
typedef struct TlRotated {
    TlBuilder b;
    TlMap early, now; /* now: of the late part */
} TlRotated;
typedef void (*TlRotateFill)(void *user, TlRotated *to);

/* All of it in front of `b`; fill: copies both parts. out: what the loop gives. */
void tl_rotate_make(const TlRotate *r, TlBuilder *b, TlRotateFill fill, void *user, TlValue **out);
#endif
