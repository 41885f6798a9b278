/* What the operands of products are computed from: a single load, or several that are unpacked,
 * scaled and so on, like weights of few bits. */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum { MOST_WALKED = 100 }; /* values that a walk over an operand visits */

/* ---- a load alone ---- */

static bool swaps(const TlOp *trans)
{
    return tl_attr(trans, TL_ATTR_PERM)->u.ints[0] == 1;
}

TlOp *tl_nest_load_under(const TlValue *v, bool *out_transposed)
{
    *out_transposed = false;
    while (v->def && v->type->rank == 2 &&
           (v->def->opcode == TL_OP_CAST || v->def->opcode == TL_OP_TRANS)) {
        *out_transposed ^= v->def->opcode == TL_OP_TRANS && swaps(v->def);
        v = tl_in(v->def, 0);
    }
    if (!v->def || v->def->opcode != TL_OP_LOAD || v->type->rank != 2)
        return NULL;
    TlPlace p = tl_op_place(v->def);
    return p.axes && !p.mask && !p.other ? v->def : NULL;
}

/* The operand that is no constant; NULL: there are several. */
static const TlValue *only_operand(const TlOp *op)
{
    const TlValue *only = NULL;
    for (uint32_t i = 0; i < op->nin; i++) {
        uint64_t bits;
        if (tl_value_is_const(tl_in(op, i), &bits))
            continue;
        if (only)
            return NULL;
        only = tl_in(op, i);
    }
    return only;
}

TlOp *tl_nest_load_in(const TlValue *v, bool *out_transposed)
{
    bool swapped = false;
    while (v && v->def && v->type->rank == 2) {
        TlOp *load = tl_nest_load_under(v, out_transposed);
        *out_transposed ^= swapped;
        if (load)
            return load;
        bool trans = v->def->opcode == TL_OP_TRANS;
        swapped ^= trans && swaps(v->def);
        v = trans || (tl_op_info(v->def->opcode)->flags & F_ELEM) ? only_operand(v->def) : NULL;
    }
    return NULL;
}

/* ---- where elements lie side by side ---- */

/* The dimension of a load's result along which memory has no gaps, or -1. */
static int dense_dim_of_load(const TlFn *fn, const TlOp *load)
{
    TlPlace p = tl_op_place(load);
    if (!p.axes || load->out[0]->type->rank != 2)
        return -1;
    int rows = tl_nest_slice_of(&p, 0), columns = tl_nest_slice_of(&p, 1);
    if (columns >= 0 && tl_nest_is_dense(fn, &p, columns))
        return 1;
    return rows >= 0 && tl_nest_is_dense(fn, &p, rows) ? 0 : -1;
}

static int dense_dim(const TlFn *fn, const TlValue *v, int *left)
{
    const TlOp *op = v->def;
    if (!op || !op->nin || v->type->rank != 2 || --*left < 0)
        return -1;
    if (op->opcode == TL_OP_LOAD)
        return dense_dim_of_load(fn, op);
    if (op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REGROUP)
        return tl_nest_form(v->type).lane; /* where vectors stay together, or are made */
    bool by_elements = tl_op_info(op->opcode)->flags & F_ELEM;
    uint32_t n = by_elements ? op->nin : op->opcode == TL_OP_TRANS || op->opcode == TL_OP_BROADCAST;
    int d = -1;
    for (uint32_t i = 0; i < n && d < 0; i++)
        d = dense_dim(fn, tl_in(op, i), left);
    if (d >= 0 && op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->shape[d] == 1)
        return -1;
    return d >= 0 && op->opcode == TL_OP_TRANS && swaps(op) ? 1 - d : d;
}

int tl_nest_dense_dim(const TlFn *fn, const TlValue *v)
{
    int left = MOST_WALKED;
    return dense_dim(fn, v, &left);
}

/* ---- what identifies a computed operand ---- */

typedef struct Keys {
    const TlNests *plan;
    TlNestProduct *p;
    TlMap seen;
    int left;
} Keys;

static bool add_keys(Keys *k, TlValue *v);

static bool add_operands(Keys *k, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (!add_keys(k, tl_in(op, i)))
            return false;
    return true;
}

/* left: so many values are looked at, at most. */
static bool is_of_launch(const TlValue *v, int *left)
{
    const TlOp *op = v->def;
    if (!op)
        return !v->block->parent; /* a parameter */
    if (--*left < 0)
        return false;
    bool asks_view =
        op->opcode == TL_OP_EXTENT || op->opcode == TL_OP_STRIDE || op->opcode == TL_OP_VIEW_PTR;
    bool same = (tl_op_info(op->opcode)->flags & F_ELEM) || op->opcode == TL_OP_VIEW || asks_view ||
                op->opcode == TL_OP_CONST || op->opcode == TL_OP_NPID;
    for (uint32_t i = 0; i < op->nin; i++)
        same = same && is_of_launch(tl_in(op, i), left);
    return same;
}

bool tl_nest_is_of_launch(const TlValue *v)
{
    int left = MOST_WALKED;
    return is_of_launch(v, &left);
}

static bool add_scalar(Keys *k, TlValue *v)
{
    if (v->type->ptr || !tl_is_int(v->type->dtype) || k->p->nkeys == TL_NEST_KEYS)
        return false;
    k->p->key[k->p->nkeys++] = v;
    return true;
}

static bool add_keys(Keys *k, TlValue *v)
{
    const TlOp *loop = k->p->loop, *op = v->def;
    if (v == loop->regions[0]->args[0] || tl_map_get(&k->seen, v->id, NULL) ||
        tl_nest_is_of_launch(v))
        return true;
    tl_map_put(&k->seen, v->id, 1);
    bool is_view = v->type->kind != TL_TILE;
    if (!is_view && v->type->rank == 0 && tl_is_invariant(v, loop))
        return add_scalar(k, v);
    if (!op || --k->left < 0)
        return false;
    if (!is_view && v->type->rank && k->plan->place[v->id].kind == TL_NEST_HOME)
        return false;
    if (op->opcode == TL_OP_LOAD && !tl_is_constant_memory(tl_in(op, 0)))
        return false;
    return add_operands(k, op);
}

bool tl_nest_find_keys(const TlNests *plan, TlNestProduct *p, TlArena *arena)
{
    TlWideInt step;
    Keys k = {.plan = plan, .p = p, .left = MOST_WALKED};
    tl_map_init(&k.seen, arena);
    if (tl_const_int_value(tl_in(p->loop, 2), &step) && add_keys(&k, tl_in(p->dot, 1)))
        return true;
    p->nkeys = 0;
    return false;
}
