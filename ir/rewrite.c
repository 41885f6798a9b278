/* Edits of IR. Invariants: every operand is on its value's use list exactly once; ops know their
 * block, and blocks their parent; results and arguments are numbered without holes. */
#include "ir/rewrite.h"
#include "ir/remark.h"
#include <string.h>

/* ---- operands ---- */

static void unlink_use(TlUse *u)
{
    *(u->prev ? &u->prev->next : &u->value->uses) = u->next;
    if (u->next) u->next->prev = u->prev;
    u->next = u->prev = NULL;
}

static void link_use(TlUse *u, TlValue *v)
{
    u->value = v;
    u->prev = NULL;
    u->next = v->uses;
    if (u->next) u->next->prev = u;
    v->uses = u;
}

/* The use moved in memory from `from` to `to`. */
static void relocate_use(TlUse *to, const TlUse *from)
{
    *to = *from;
    *(to->prev ? &to->prev->next : &to->value->uses) = to;
    if (to->next) to->next->prev = to;
}

void tl_set_operand(TlOp *op, uint32_t i, TlValue *v)
{
    TL_ASSERT(i < op->nin, "operand %u of %u", i, op->nin);
    TL_ASSERT(v, "%s loses operand %u", tl_op_info(op->opcode)->text, i);
    unlink_use(&op->in[i]);
    link_use(&op->in[i], v);
}

void tl_add_operand(TlFn *fn, TlOp *op, TlValue *v)
{
    TL_ASSERT(v && op->block && op->block->fn == fn,
              "%s is of another function", tl_op_info(op->opcode)->text);
    TlUse *in = TL_NEW_ARRAY(&fn->module->arena, TlUse, op->nin + 1);
    for (uint32_t i = 0; i < op->nin; i++) relocate_use(&in[i], &op->in[i]);
    in[op->nin].user = op;
    link_use(&in[op->nin++], v);
    op->in = in;
}

void tl_remove_operand(TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nin, "operand %u of %u", i, op->nin);
    unlink_use(&op->in[i]);
    for (; i + 1 < op->nin; i++) relocate_use(&op->in[i], &op->in[i + 1]);
    op->nin--;
}

void tl_replace_uses(TlValue *of, TlValue *by)
{
    TL_ASSERT(of == by || by, "value %u becomes nothing", of->id);
    if (of == by) return;
    while (of->uses) {
        TlUse *u = of->uses;
        unlink_use(u);
        link_use(u, by);
    }
}

TlValue *tl_transposed(TlBuilder *b, TlValue *x)
{
    if (x->def && x->def->opcode == TL_OP_TRANS)
        return tl_in(x->def, 0);
    TL_ASSERT(x->type->rank == 2 && !x->type->layout, "a value of rank %d", x->type->rank);
    int64_t *perm = TL_NEW_ARRAY(&b->fn->module->arena, int64_t, 2);
    perm[0] = 1;
    perm[1] = 0;
    TlAttr attr = {.id = TL_ATTR_PERM, .n = 2, .u.ints = perm};
    const TlType *type = tl_type_with_shape(b->fn->module->ctx, x->type, 2,
                                            (int32_t[]){x->type->shape[1], x->type->shape[0]});
    return tl_op_new(b, TL_OP_TRANS, 1, &x, 1, &type, 0, 1, &attr)->out[0];
}

uint32_t tl_use_count(const TlValue *v)
{
    uint32_t n = 0;
    for (const TlUse *u = v->uses; u; u = u->next) n++;
    return n;
}

TlOp *tl_only_user(const TlValue *v)
{
    return tl_use_count(v) == 1 ? v->uses->user : NULL;
}

/* ---- ops and blocks ---- */

static void unlink_op(TlOp *op)
{
    *(op->prev ? &op->prev->next : &op->block->first) = op->next;
    *(op->next ? &op->next->prev : &op->block->last) = op->prev;
    op->prev = op->next = NULL;
    op->block = NULL;
}

static void insert_op(TlOp *op, TlBlock *block, TlOp *before)
{
    op->block = block;
    op->next = before;
    op->prev = before ? before->prev : block->last;
    *(op->prev ? &op->prev->next : &block->first) = op;
    *(before ? &before->prev : &block->last) = op;
}

static void drop_operands(TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) unlink_use(&op->in[i]);
    op->nin = 0;
}

void tl_op_erase(TlOp *op)
{
    TL_ASSERT(op->block, "%s is erased twice", tl_op_info(op->opcode)->text);
    for (uint32_t i = 0; i < op->nout; i++)
        TL_ASSERT(!op->out[i]->uses, "%s erased while result %u is used",
                  tl_op_info(op->opcode)->text, i);
    for (TlOp *o = op; o; o = tl_walk_next(o, op)) drop_operands(o);
    unlink_op(op);
}

void tl_op_move_before(TlOp *op, TlOp *before)
{
    TL_ASSERT(op->block && before->block, "%s stands in no block", tl_op_info(op->opcode)->text);
    if (op == before) return;
    unlink_op(op);
    insert_op(op, before->block, before);
}

void tl_block_move_ops(TlBlock *from, TlBlock *to, TlOp *before)
{
    TL_ASSERT(from != to, "ops of a block moved into itself");
    TL_ASSERT(!before || before->block == to,
              "%s is of another block", tl_op_info(before->opcode)->text);
    while (from->first) {
        TlOp *op = from->first;
        unlink_op(op);
        insert_op(op, to, before);
    }
}

void tl_block_remove_arg(TlBlock *b, uint32_t i)
{
    TL_ASSERT(i < b->nargs && !b->args[i]->uses, "argument %u of %u is used or absent", i,
              b->nargs);
    /* keeps the capacity rule of tl_block_arg: the array is at least the next power of two long */
    for (b->nargs--; i < b->nargs; i++) {
        b->args[i] = b->args[i + 1];
        b->args[i]->index = i;
    }
}

void tl_op_remove_result(TlOp *op, uint32_t i)
{
    TL_ASSERT(i < op->nout && !op->out[i]->uses, "result %u of %u is used or absent", i, op->nout);
    for (op->nout--; i < op->nout; i++) {
        op->out[i] = op->out[i + 1];
        op->out[i]->index = i;
    }
}

/* ---- clone ---- */

static void clone_block(TlBuilder *outer, TlBlock *to, const TlBlock *from, TlMap *map)
{
    TlBuilder b = *outer;
    b.block = to;
    b.before = NULL;
    to->warps = from->warps;
    for (uint32_t i = 0; i < from->nargs; i++)
        tl_map_put_ptr(map, from->args[i],
                       tl_block_arg(to, from->args[i]->type, from->args[i]->name));
    for (const TlOp *op = from->first; op; op = op->next) tl_op_clone(&b, op, map);
}

TlValue *tl_mapped(TlMap *map, TlValue *v)
{
    TlValue *m = tl_map_get_ptr(map, v);
    return m ? m : v;
}

TlOp *tl_op_like(TlBuilder *b, const TlOp *op, uint32_t nin, TlValue *const *in, uint32_t nout,
                 const TlType *const *types)
{
    TlOp *made =
        tl_op_new(b, op->opcode, nin, in, nout, types, op->nregions, op->nattrs, op->attrs);
    tl_remark_copy(b->fn, op, made);
    return made;
}

TlOp *tl_op_clone(TlBuilder *b, const TlOp *op, TlMap *map)
{
    TL_ASSERT(b->block && map, "%s is copied nowhere", tl_op_info(op->opcode)->text);
    TlArena *arena = &b->fn->module->arena;
    TlValue **in = TL_NEW_ARRAY(arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = tl_mapped(map, op->in[i].value);
    const TlType **types = TL_NEW_ARRAY(arena, const TlType *, op->nout);
    for (uint32_t i = 0; i < op->nout; i++) types[i] = op->out[i]->type;
    TlLoc loc = b->loc;
    b->loc = op->loc;
    TlOp *copy = tl_op_like(b, op, op->nin, in, op->nout, types);
    b->loc = loc;
    for (uint32_t i = 0; i < op->nout; i++) {
        copy->out[i]->name = op->out[i]->name;
        tl_map_put_ptr(map, op->out[i], copy->out[i]);
    }
    for (uint32_t r = 0; r < op->nregions; r++)
        clone_block(b, copy->regions[r], op->regions[r], map);
    return copy;
}

/* ---- more of it ---- */

static void take_region(TlBlock *to, TlBlock *from)
{
    to->warps = from->warps;
    for (uint32_t i = 0; i < from->nargs; i++)
        tl_replace_uses(from->args[i],
                        tl_block_arg(to, from->args[i]->type, from->args[i]->name));
    tl_block_move_ops(from, to, NULL);
}

TlOp *tl_op_extend(TlArena *scratch, TlOp *op, uint32_t n, TlValue *const *more)
{
    TL_ASSERT(op->nregions > 0, "%s has no regions", tl_op_info(op->opcode)->text);
    const TlOp *yield = op->regions[0]->last;
    TlValue **in = TL_NEW_ARRAY(scratch, TlValue *, op->nin + n);
    const TlType **types = TL_NEW_ARRAY(scratch, const TlType *, yield->nin);
    for (uint32_t i = 0; i < op->nin + n; i++)
        in[i] = i < op->nin ? tl_in(op, i) : more[i - op->nin];
    for (uint32_t i = 0; i < yield->nin; i++) types[i] = tl_in(yield, i)->type;
    TlBuilder b = tl_builder_before(op);
    TlOp *made = tl_op_like(&b, op, op->nin + n, in, yield->nin, types);
    for (uint32_t r = 0; r < op->nregions; r++) take_region(made->regions[r], op->regions[r]);
    for (uint32_t i = 0; i < op->nout; i++) {
        made->out[i]->name = op->out[i]->name;
        tl_replace_uses(op->out[i], made->out[i]);
    }
    tl_op_erase(op);
    return made;
}

/* ---- builders and questions ---- */

TlBuilder tl_builder_before(TlOp *op)
{
    TL_ASSERT(op->block, "%s stands in no block", tl_op_info(op->opcode)->text);
    return (TlBuilder){.fn = op->block->fn, .block = op->block, .before = op, .loc = op->loc};
}

TlBuilder tl_builder_after(TlValue *v)
{
    TL_ASSERT(v->def || v->block, "value %u stands nowhere", v->id);
    TlBlock *block = v->def ? v->def->block : v->block;
    TlOp *before = v->def ? v->def->next : block->first;
    return (TlBuilder){.fn = block->fn,
                       .block = block,
                       .before = before,
                       .loc = v->def ? v->def->loc : before->loc};
}

TlBuilder tl_builder_end(TlBlock *b)
{
    TlLoc loc = b->last ? b->last->loc : b->parent ? b->parent->loc : b->fn->loc;
    return (TlBuilder){.fn = b->fn, .block = b, .loc = loc};
}

bool tl_value_is_const(const TlValue *v, uint64_t *out_bits)
{
    while (v->def && (v->def->opcode == TL_OP_BROADCAST || v->def->opcode == TL_OP_EXPAND ||
                      v->def->opcode == TL_OP_RESHAPE || v->def->opcode == TL_OP_TRANS))
        v = tl_in(v->def, 0);
    if (!v->def || v->def->opcode != TL_OP_CONST) return false;
    if (out_bits) *out_bits = tl_attr(v->def, TL_ATTR_VALUE)->u.bits;
    return true;
}

bool tl_block_is_inside(const TlBlock *inner, const TlOp *outer)
{
    for (; inner && inner->parent; inner = inner->parent->block)
        if (inner->parent == outer) return true;
    return false;
}
