/* Making IR: modules, functions, blocks, ops, and short forms for common ops. Nothing is checked
 * here; verify.c does that. */
#include "ir/numeric.h"
#include "ir/rewrite.h"
#include <string.h>

TlModule *tl_module_new(TlCtx *ctx)
{
    TlArena arena;
    tl_arena_init(&arena, ctx->perm.alloc);
    TlModule *m = TL_NEW(&arena, TlModule);
    m->ctx = ctx;
    m->arena = arena; /* the module lives in the arena that it holds */
    m->next = ctx->modules;
    if (m->next) m->next->prev = m;
    ctx->modules = m;
    return m;
}

void tl_module_free(TlModule *m)
{
    if (!m) return;
    *(m->prev ? &m->prev->next : &m->ctx->modules) = m->next;
    if (m->next) m->next->prev = m->prev;
    TlArena arena = m->arena;
    tl_arena_free(&arena);
}

TlFn *tl_fn_new(TlModule *m, const char *name, TlLoc loc)
{
    TL_ASSERT(m && name, "a function without a module or name");
    TlFn *fn = TL_NEW(&m->arena, TlFn);
    fn->module = m;
    fn->name = tl_intern_str(&m->ctx->strings, name);
    fn->loc = loc;
    fn->body = tl_block_new(fn, NULL);
    tl_vec_push(&m->arena, &m->fns, fn);
    return fn;
}

static TlValue *value_new(TlFn *fn, const TlType *type, uint32_t index)
{
    TlValue *v = TL_NEW(&fn->module->arena, TlValue);
    v->type = type;
    v->id = fn->nvalues++;
    v->index = index;
    return v;
}

TlBlock *tl_block_new(TlFn *fn, TlOp *parent)
{
    TL_ASSERT(fn && fn->module, "a block of no function");
    TlBlock *b = TL_NEW(&fn->module->arena, TlBlock);
    b->parent = parent;
    b->fn = fn;
    return b;
}

TlValue *tl_block_arg(TlBlock *b, const TlType *type, const char *name)
{
    TL_ASSERT(b->fn && type, "an argument without type");
    TlValue *v = value_new(b->fn, type, b->nargs);
    v->block = b;
    v->name = name;
    if ((b->nargs & (b->nargs - 1)) == 0) { /* capacity is the next power of two */
        size_t cap = b->nargs ? 2 * (size_t)b->nargs : 1;
        b->args = tl_grow(&b->fn->module->arena, b->args, sizeof *b->args * b->nargs,
                          sizeof *b->args * cap);
    }
    b->args[b->nargs++] = v;
    return v;
}

static void link_op(TlOp *op, TlBlock *block, TlOp *before)
{
    op->block = block;
    op->next = before;
    op->prev = before ? before->prev : block->last;
    *(op->prev ? &op->prev->next : &block->first) = op;
    *(before ? &before->prev : &block->last) = op;
}

static void use_init(TlUse *u, TlValue *v, TlOp *user)
{
    u->value = v;
    u->user = user;
    u->prev = NULL;
    u->next = v->uses;
    if (u->next) u->next->prev = u;
    v->uses = u;
}

TlOp *tl_op_new(TlBuilder *b, TlOpcode opcode, uint32_t nin, TlValue *const *in, uint32_t nout,
                const TlType *const *types, uint32_t nregions, uint32_t nattrs, const TlAttr *attrs)
{
    TL_ASSERT(b->block && b->fn && b->block->fn == b->fn,
              "%s is made nowhere", tl_op_info(opcode)->text);
    TlArena *arena = &b->fn->module->arena;
    TlOp *op = TL_NEW(arena, TlOp);
    *op = (TlOp){.opcode = opcode,
                 .loc = b->loc,
                 .nin = nin,
                 .nout = nout,
                 .nregions = nregions,
                 .nattrs = nattrs};
    if (nin) op->in = TL_NEW_ARRAY(arena, TlUse, nin);
    for (uint32_t i = 0; i < nin; i++) use_init(&op->in[i], in[i], op);
    if (nout) op->out = TL_NEW_ARRAY(arena, TlValue *, nout);
    for (uint32_t i = 0; i < nout; i++) {
        op->out[i] = value_new(b->fn, types[i], i);
        op->out[i]->def = op;
    }
    if (nregions) op->regions = TL_NEW_ARRAY(arena, TlBlock *, nregions);
    for (uint32_t i = 0; i < nregions; i++) op->regions[i] = tl_block_new(b->fn, op);
    if (nattrs) {
        op->attrs = TL_NEW_ARRAY(arena, TlAttr, nattrs);
        memcpy(op->attrs, attrs, sizeof *attrs * nattrs);
    }
    link_op(op, b->block, b->before);
    return op;
}

/* ---- short forms ---- */

static TlCtx *ctx_of(TlBuilder *b) { return b->fn->module->ctx; }

static TlValue *op1(TlBuilder *b, TlOpcode opcode, uint32_t nin, TlValue *const *in,
                    const TlType *type)
{
    return tl_op_new(b, opcode, nin, in, 1, &type, 0, 0, NULL)->out[0];
}

TlValue *tl_const_bits(TlBuilder *b, const TlType *type, uint64_t bits)
{
    TL_ASSERT(type->kind == TL_TILE, "a constant of type kind %d", (int)type->kind);
    TlAttr value = {.id = TL_ATTR_VALUE, .u.bits = bits};
    return tl_op_new(b, TL_OP_CONST, 0, NULL, 1, &type, 0, 1, &value)->out[0];
}

TlValue *tl_const_int(TlBuilder *b, const TlType *type, int64_t v)
{
    return tl_const_bits(b, type, tl_bits_from_int(type->dtype, v));
}

TlValue *tl_unary(TlBuilder *b, TlOpcode opcode, TlValue *x)
{
    return op1(b, opcode, 1, &x, x->type);
}

TlValue *tl_binary(TlBuilder *b, TlOpcode opcode, TlValue *x, TlValue *y)
{
    TL_ASSERT(x->type->rank == y->type->rank,
              "%s of ranks %d and %d",
              tl_op_info(opcode)->text, (int)x->type->rank, (int)y->type->rank);
    bool compares = opcode >= TL_OP_EQ && opcode <= TL_OP_GE;
    const TlType *type = compares ? tl_type_with_dtype(ctx_of(b), x->type, TL_BOOL) : x->type;
    return op1(b, opcode, 2, (TlValue *[]){x, y}, type);
}
_Static_assert(TL_OP_GE - TL_OP_EQ == 5, "the comparisons are neighbours in ops.def");

TlValue *tl_select(TlBuilder *b, TlValue *c, TlValue *x, TlValue *y)
{
    TL_ASSERT(x->type == y->type, "a choice between two types");
    return op1(b, TL_OP_SELECT, 3, (TlValue *[]){c, x, y}, x->type);
}

TlValue *tl_fma(TlBuilder *b, TlValue *x, TlValue *y, TlValue *z)
{
    TL_ASSERT(x->type == y->type && y->type == z->type, "fma of different types");
    return op1(b, TL_OP_FMA, 3, (TlValue *[]){x, y, z}, x->type);
}

TlValue *tl_cast(TlBuilder *b, TlValue *x, TlDtype to)
{
    TL_ASSERT(x->type->kind == TL_TILE && (unsigned)to < TL_DTYPE_COUNT,
              "a cast of value %u to %d", x->id, (int)to);
    if (x->type->dtype == to && !x->type->ptr) return x;
    return op1(b, TL_OP_CAST, 1, &x, tl_type_with_dtype(ctx_of(b), x->type, to));
}

/* Adds an axis of extent 1 in front. */
static TlValue *expand_front(TlBuilder *b, TlValue *x)
{
    int32_t shape[TL_MAX_RANK] = {1};
    memcpy(shape + 1, x->type->shape, sizeof *shape * x->type->rank);
    const TlType *type = tl_type_with_shape(ctx_of(b), x->type, x->type->rank + 1, shape);
    TlAttr axis = {.id = TL_ATTR_AXIS, .u.i = 0};
    return tl_op_new(b, TL_OP_EXPAND, 1, &x, 1, &type, 0, 1, &axis)->out[0];
}

TlValue *tl_broadcast(TlBuilder *b, TlValue *x, int rank, const int32_t *shape)
{
    TL_ASSERT(x->type->rank <= rank && rank <= TL_MAX_RANK, "broadcast of rank %d to %d",
              x->type->rank, rank);
    while (x->type->rank > 0 && x->type->rank < rank) x = expand_front(b, x);
    const TlType *type = tl_type_with_shape(ctx_of(b), x->type, rank, shape);
    return type == x->type ? x : op1(b, TL_OP_BROADCAST, 1, &x, type);
}

TlOp *tl_yield(TlBuilder *b, TlOpcode terminator, uint32_t n, TlValue *const *values)
{
    TL_ASSERT(tl_op_info(terminator)->flags & F_TERM,
              "%s ends no block", tl_op_info(terminator)->text);
    return tl_op_new(b, terminator, n, values, 0, NULL, 0, 0, NULL);
}
