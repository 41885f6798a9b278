/* Edits of tile IR that keep use lists and parents right. The only way passes change IR. */
#ifndef TL_REWRITE_H
#define TL_REWRITE_H
#include "ir/ir.h"

void tl_set_operand(TlOp *op, uint32_t i, TlValue *v);
void tl_add_operand(TlFn *fn, TlOp *op, TlValue *v);    /* appended */
void tl_remove_operand(TlOp *op, uint32_t i);
void tl_replace_uses(TlValue *of, TlValue *by);         /* all uses */
/* results must be unused; regions go with it */
void tl_op_erase(TlOp *op);
void tl_op_move_before(TlOp *op, TlOp *before);
/* all ops but nothing of `from`'s arguments; before NULL = end */
void tl_block_move_ops(TlBlock *from, TlBlock *to, TlOp *before);
/* A new op with the opcode, attributes and remarks of another; its regions are as many, empty. */
TlOp *tl_op_like(TlBuilder *b, const TlOp *op, uint32_t nin, TlValue *const *in, uint32_t nout,
                 const TlType *const *types);
/* The op once more, with `n` more operands and as many results as its regions yield, which now have
 * what goes with them; it gets the regions' contents, users the new results. The old one goes. */
TlOp *tl_op_extend(TlArena *scratch, TlOp *op, uint32_t n, TlValue *const *more);
void tl_block_remove_arg(TlBlock *b, uint32_t i);       /* must be unused */
void tl_op_remove_result(TlOp *op, uint32_t i);         /* must be unused */
/* A copy of op and its regions at the builder's position; `map` takes TlValue pointers to TlValue
 * pointers (tl_map_put_ptr), absent ones stay. Results and inner values are added to the map. */
TlOp *tl_op_clone(TlBuilder *b, const TlOp *op, TlMap *map);
/* What such a map has for the value; itself where it is absent. */
TlValue *tl_mapped(TlMap *map, TlValue *v);
TlBuilder tl_builder_before(TlOp *op);
/* Right after the value's definition; of a block's argument: at the block's start. */
TlBuilder tl_builder_after(TlValue *v);
TlBuilder tl_builder_end(TlBlock *b);
/* A matrix without a layout, its axes exchanged; if it is made so itself, what of. */
TlValue *tl_transposed(TlBuilder *b, TlValue *x);
uint32_t tl_use_count(const TlValue *v);
TlOp *tl_only_user(const TlValue *v);                   /* NULL: none, or several uses */
bool tl_value_is_const(const TlValue *v, uint64_t *out_bits); /* a CONST, through broadcast */
bool tl_block_is_inside(const TlBlock *inner, const TlOp *outer);
#endif
