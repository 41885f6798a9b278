/* Questions about tile IR that several passes ask. */
#ifndef TL_FACTS_H
#define TL_FACTS_H
#include "ir/ir.h"

__extension__ typedef __int128 TlWideInt;

/* Is the memory behind a view or pointer never written during the launch? Only what comes from a
 * const parameter that no alias clause names. */
bool tl_is_constant_memory(const TlValue *base);
/* The parameter whose memory a view or pointer (tile) is of; -1: not known. */
int tl_base_param(const TlValue *v);
/* May two views or pointers be of the same memory? */
bool tl_may_alias(const TlFn *fn, const TlValue *a, const TlValue *b);
/* Is it a parameter's view, or a part of one? A launch has seen that such a view lies in its
 * array. */
bool tl_is_view_of_launch(const TlValue *v);
bool tl_attr_equal(const TlAttr *a, const TlAttr *b);
/* Is v the same value in every iteration of the loop: defined outside of it? */
bool tl_is_invariant(const TlValue *v, const TlOp *loop);
/* The axes of a view, as bits, whose scalar index changes in the innermost loop around it. */
uint32_t tl_moving_axes(const TlOp *access);
bool tl_is_const_op(const TlValue *v); /* the result of a CONST */
/* The value of an integer scalar constant. */
bool tl_const_int_value(const TlValue *v, TlWideInt *out);
/* Number of iterations of a FOR with constant bounds. */
bool tl_const_trips(const TlOp *loop, TlWideInt *out);
/* Iterations of a loop as costs take them: 8 where they are not constant; from 1 to `most`. */
int64_t tl_likely_trips(const TlOp *loop, int64_t most);
/* How often a block runs while `outer`, which is around it, runs once (NULL: the function): the
 * product over the loops between, each of `most` iterations at most; 2^30 at most. */
int64_t tl_likely_runs(const TlBlock *b, const TlOp *outer, int64_t most);
/* The innermost loop around the op; NULL: there is none. Does a loop hold no other? */
const TlOp *tl_enclosing_loop(const TlOp *op);
bool tl_is_innermost(const TlOp *loop);
/* A product by multiply-adds in a loop, of a function that is laid out; NULL: there is none. */
const TlOp *tl_looped_multiply_adds(const TlFn *fn);
/* Does the op stand in a loop with a pipeline hint? */
bool tl_is_in_hinted_loop(const TlOp *op);
/* Is v products of two bytes each, as integers? Machines have instructions that sum such up
 * (codegen/nest/nest_quads.c). */
bool tl_multiplies_bytes(const TlValue *v);
/* The dot that uses the value, through a few pure ops; NULL: there is none. */
const TlOp *tl_dot_of(const TlValue *v);
/* What comes before conversions and transpositions of a matrix; flipped: it is transposed. */
TlValue *tl_matrix_source(TlValue *v, bool *out_flipped);
/* Can a program tell what another has done? Only by what an atomic gives. */
bool tl_fn_may_wait(const TlFn *fn);
/* Is the function at the laid-out level, even when it has no tile that could show it? */
bool tl_fn_is_laid_out(const TlFn *fn);
/* Is operand 0 of the dot made of another dot's result in its block, element by element, perhaps in
 * the arms of a branch? */
bool tl_dot_takes_dot(TlArena *arena, const TlOp *dot);
/* The op of the block that the op is, or in whose regions it is; NULL: it is elsewhere. */
const TlOp *tl_op_in_block(const TlOp *op, const TlBlock *block);
/* Is a dot of the block followed by a dot that takes the result as an operand (not as what it adds
 * to)? Walks the block: ask once for all its dots. */
bool tl_dots_are_chained(const TlFn *fn, TlArena *arena, const TlBlock *block);
#endif
