/* Shared by the files of place-layouts: the problem as a graph, its costs, and applying a
 * solution. The essay is in place_layouts.c. */
#ifndef TL_PLACE_IMPL_H
#define TL_PLACE_IMPL_H
#include "passes/analysis/default_warps.h"
#include "passes/layout/layout_cost.h"
#include "passes/pass.h"
#include "passes/layout/relayout.h"

enum { PLACE_OWN = -1, PLACE_MAX_FAMILIES = 24 };

/* What gets one layout: an op (tl_op_layout; a reduction: its operands), or a value that a loop or
 * branch carries, with all its names. */
typedef struct PlaceVar {
    TlOp *op;            /* NULL: carried */
    const TlLayout *own; /* as it came */
    int label;           /* a family, or PLACE_OWN */
    int64_t frequency;   /* of op */
    int32_t in, out;     /* first edge to and from it; -1 */
} PlaceVar;

/* `value` (of var `from`) is an operand of `user` that var `to` decides about. */
typedef struct PlaceEdge {
    TlValue *value;
    uint32_t from, to, operand;
    TlOp *user;
    int32_t next_in, next_out;
} PlaceEdge;

typedef struct Placement {
    TlFn *fn;
    const TlBlock *dots_of; /* whose dots are chained, or not; NULL: none yet */
    bool dots_are_chained;
    TlCtx *ctx;
    TlArena *arena;
    TlLayoutCost cost;
    int lane_bits, warp_bits;
    TL_VEC(PlaceVar) vars;
    TL_VEC(PlaceEdge) edges;
    TL_VEC(TlValue *) values; /* all tiles */
    TL_VEC(TlOp *) ops;       /* all, without converts */
    uint32_t nvalues;         /* as they came; what is made later has greater ids */
    uint32_t *var_of_value;   /* by id: var + 1; 0: none */
    TlMap var_of_op;          /* likewise */
    /* A family is one choice of layouts that fit together: by var, NULL where it does not reach. */
    const TlLayout **families[PLACE_MAX_FAMILIES];
    int nfamilies;
    TlMap wants;       /* op, operand, layout to the operand's layout */
    TlMap reshaped_of; /* reshape, its layout to that of its operand */
    TlMap again;       /* value, layout to the cost of computing it so; by the labels as they are */
    TlMap again_alone; /* the same from scalars only */
    TlMap made;        /* value, layout to the value that is there for it */
    TlMap origin;      /* such a value to the one that it stands for */
} Placement;

static inline uint64_t tl_place_key(const void *a, const void *b, uint64_t n)
{
    const void *both[2] = {a, b};
    return tl_hash(both, sizeof both, n);
}

/* ---- place_graph.c ---- */
/* Fills in vars, edges, values, ops; the function's converts go, so it is not legal any more. */
void tl_place_build(Placement *p);
/* Families from memory ops, dots, scans, and reductions that could stay in a warp. */
void tl_place_families(Placement *p);
const TlLayout *tl_place_layout(const Placement *p, uint32_t var, int label);
/* The layout of a result when its op's is l. */
const TlLayout *tl_place_result(Placement *p, const TlValue *v, const TlLayout *l);
/* What operand i must have when the op's layout is l; NULL: anything. *out_ok false: it cannot
 * be. */
const TlLayout *tl_place_want(Placement *p, const TlOp *op, uint32_t i, const TlLayout *l,
                              bool *out_ok);
/* Operand i as it was before anything was put into effect. */
static inline TlValue *tl_place_operand(const Placement *p, const TlOp *op, uint32_t i)
{
    TlValue *v = tl_in(op, i);
    return v->id < p->nvalues ? v : tl_map_get_ptr(&p->origin, v);
}
static inline bool tl_place_var_of_op(const Placement *p, const TlOp *op, uint32_t *out)
{
    uint64_t var;
    bool known = tl_map_get(&p->var_of_op, (uint64_t)(uintptr_t)op, &var);
    *out = known ? (uint32_t)var : 0;
    return known;
}

/* ---- place_dot.c ---- */
/* A good layout of the accumulator of a dot by fma. */
const TlLayout *tl_place_dot_layout(Placement *p, const TlOp *dot);

/* ---- place_solve.c ---- */
/* Sets the labels. */
void tl_place_solve(Placement *p);
/* What it costs, in all, to have the value in this layout, too: by a convert, or by computing it
 * again (*out_again). */
int64_t tl_place_demand(Placement *p, const TlValue *v, const TlLayout *l, bool *out_again);
#endif
