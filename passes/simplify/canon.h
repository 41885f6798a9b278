/* Shared by the files of canonicalize, passes/simplify/canon*.c: the rules by op. */
#ifndef TL_CANON_H
#define TL_CANON_H
#include "passes/analysis/facts.h"
#include "passes/pass.h"

typedef struct Canon {
    TlPassCtx *px;
    TlFn *fn;
    TlOp *op;    /* at hand */
    TlBuilder b; /* before it */
    bool touched;
} Canon;

/* A rule looks at c->op, which has one result and no regions. It gives the value that stands for
 * the result (new ops go to c->b), or NULL. It may also edit c->op in place: then it calls
 * canon_touch and gives NULL. */
typedef TlValue *CanonRule(Canon *c);
typedef struct CanonRow {
    TlOpcode opcode;
    CanonRule *rule;
} CanonRow;
extern const CanonRow canon_arith_rows[], canon_shape_rows[]; /* end with a NULL rule */

/* Ops without a result, or with regions: these change the op at hand themselves. True when they
 * did. */
bool canon_memory(Canon *c);  /* masks of loads, stores and atomics; assert and assume that hold */

/* ---- words of the rules ---- */
void canon_touch(Canon *c); /* the op was edited in place */
static inline TlValue *canon_in(const Canon *c, uint32_t i)
{
    return tl_in(c->op, i);
}
/* The op that makes v, when it is one of this kind. */
static inline TlOp *canon_def(const TlValue *v, TlOpcode opcode)
{
    return v->def && v->def->opcode == opcode ? v->def : NULL;
}
static inline const TlType *canon_type(const Canon *c)
{
    return c->op->out[0]->type;
}
TlValue *canon_const(Canon *c, uint64_t bits); /* of the result's type */
/* a const op itself: not through broadcasts, which are folded */
bool canon_is_const(const TlValue *v, uint64_t *out_bits);
/* one operand, no attributes */
TlValue *canon_op1(Canon *c, TlOpcode opcode, TlValue *x, const TlType *type);
#endif
