/* Shared by the files that warn about programs that are legal but probably wrong. Warnings about
 * an instance of a kernel (warn_kernel.c, lint_*.c) read its IR and its clauses; those about the
 * text (lint_text.c) read the tree. Internal to the front end. */
#ifndef TL_LINT_H
#define TL_LINT_H
#include "frontend/sema.h"

/* An instance of a kernel, after its walk. */
typedef struct TlLint {
    TlSema *s;
    const TlItem *item;
    const TlFn *fn;
    const TlKernelInfo *info;
} TlLint;
static inline TlDiags *tl_lint_diags(const TlLint *l)
{
    return &l->s->ctx->diags;
}
static inline TlOp *tl_lint_first(const TlLint *l)
{
    return l->fn->body->first;
}

/* ---- lint_require.c: what require and assume say ---- */
/* A number that a launch knows: the symbol `index`, or the scalar parameter `index`. */
typedef struct TlLaunchNumber {
    bool is_arg;
    int32_t index; /* -1: there is none */
} TlLaunchNumber;
/* The least and the greatest value that it may have; INT32_MAX: there may be greater ones. */
int64_t tl_required_least(const TlLint *l, TlLaunchNumber n);
int64_t tl_required_most(const TlLint *l, TlLaunchNumber n);
/* Is it always a multiple of `unit`? */
bool tl_required_multiple(const TlLint *l, TlLaunchNumber n, int64_t unit);
/* The i-th clause that a launch must fulfil; NULL behind the last. */
const TlHostExpr *tl_required_clause(const TlLint *l, uint32_t i);
/* Do the code's instructions stand somewhere among those of a clause? */
bool tl_required_code(const TlLint *l, const tile_hx_ins *code, uint32_t n);
/* Does one clause name both, with an operation `op` among its instructions? */
bool tl_required_together(const TlLint *l, TlLaunchNumber a, TlLaunchNumber b, tile_hx_op op);
/* Does a clause compare them? */
bool tl_required_compared(const TlLint *l, TlLaunchNumber a, TlLaunchNumber b);

/* ---- lint_value.c: where values come from ---- */
/* v before casts of integers. */
const TlValue *tl_lint_uncast(const TlValue *v);
bool tl_lint_constant(const TlValue *v, int64_t *out); /* an integer scalar, or equal elements */
/* What a launch knows as the value, or as the extent of an axis of a view. */
TlLaunchNumber tl_lint_number(const TlLint *l, const TlValue *v);
TlLaunchNumber tl_lint_extent(const TlLint *l, const TlValue *view, uint32_t axis);
bool tl_lint_same(TlLaunchNumber a, TlLaunchNumber b);       /* known, and equal */
const char *tl_lint_name(const TlLint *l, TlLaunchNumber n); /* of a known one */
/* The extent, when it is a number in the text; -1: it is none. */
int64_t tl_lint_known_extent(const TlLint *l, const TlValue *view, uint32_t axis);
/* The greatest magnitude that an integer can have; INT32_MAX: any of i32. */
int64_t tl_lint_most(const TlLint *l, const TlValue *v);
/* Is v computed, by few operations, from the extent of the view's axis? */
bool tl_lint_mentions(const TlLint *l, const TlValue *v, const TlValue *view, uint32_t axis);
/* The axis of the view that gives the tile's axis by a slice; -1: none does. */
int tl_lint_slice(const TlPlace *p, int axis);
/* The text at a position is this word. */
bool tl_lint_word(const TlLint *l, TlLoc loc, const char *word);

/* ---- lint_inside.c ---- */
/* Does the slice of an access lie inside of the view for certain? True also where the program takes
 * care of the border by itself. Indices and slices of one element do. */
bool tl_lint_inside(const TlLint *l, const TlOp *op, const TlPlace *p, uint32_t axis);

/* ---- one file each ---- */
void tl_lint_padding(const TlLint *l);
void tl_lint_offsets(const TlLint *l);
void tl_lint_grid(const TlLint *l);
void tl_lint_axes(const TlLint *l);
void tl_lint_outside(const TlLint *l);
#endif
