/* Arrays whose elements lie side by side, which only a launch knows.
 *
 * A kernel that takes any strides, as those of libraries do, is most often launched with arrays
 * whose last axis has none but 1. There vectors are loaded and stored as they lie, several programs
 * may run at once, and nothing is gathered; so such launches go on in code of their own.
 *
 *     x: view<f32, 2> [M : sx, N : tx]       =>     [M : sx, N : 1], where tx is 1
 *
 *   1. ask    the views whose last axis is a slice or an index tile in some access, and lies apart
 *             by what only the launch knows
 *   2. price  they are a good part of what is loaded and stored: a product's bias is not
 *   3. copy   the function once more, with facts of its own about these parameters */
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

/* ---- 1. ask ---- */

/* The parameter whose last axis an access takes a part of, if a launch says how far apart its
 * elements are; else NULL. */
static const TlValue *asked_by(const TlFn *fn, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    if (!p.axes || p.base->def || p.base->block->parent)
        return NULL;
    const TlAxis *last = &p.axes[p.naxes - 1];
    const TlParam *param = &fn->info->params.data[p.base->index];
    tile_dim_kind kind = param->stride[param->rank - 1].kind;
    bool tile = last->kind == TL_AXIS_TILE || (last->kind == TL_AXIS_SLICE && last->width > 1);
    return tile && (kind == TILE_DIM_SYM || kind == TILE_DIM_EXPR) ? p.base : NULL;
}

static void ask(TlNestFold *f, TlArena *arena, const TlValue *view)
{
    for (uint32_t i = 0; i < f->dense.len; i++)
        if (f->dense.data[i] == view)
            return;
    tl_vec_push(arena, &f->dense, view);
}

/* ---- 2. price ---- */

/* Elements of an access, for all trips of the loops around it, as is assumed. */
static int64_t elements_of(const TlOp *op)
{
    enum { MANY = 1 << 20 };
    const TlType *type = op->nout ? op->out[0]->type : tl_op_place(op).value->type;
    return tl_type_elems(type) * tl_likely_runs(op->block, NULL, MANY);
}

/* ---- 3. copy ---- */

static TlFn *copy_with_facts(const TlFn *fn, const TlNestFold *f, TlArena *arena)
{
    TlMap copy = {.arena = arena};
    TlFn *made = tl_nest_copy_function(fn, &copy);
    TlArena *lasts = &fn->module->arena;
    TlKernelInfo *info = TL_NEW(lasts, TlKernelInfo);
    uint32_t n = fn->info->params.len;
    TlParam *params = TL_NEW_ARRAY(lasts, TlParam, n);
    *info = *fn->info;
    memcpy(params, fn->info->params.data, sizeof *params * n);
    for (uint32_t i = 0; i < f->dense.len; i++) {
        TlParam *p = &params[f->dense.data[i]->index];
        p->stride[p->rank - 1].kind = TILE_DIM_CONST;
        p->stride[p->rank - 1].value = 1;
    }
    info->params.data = params;
    made->info = info;
    return made;
}

TlNestFold tl_nest_dense(const TlFn *fn, TlArena *arena)
{
    enum { PART = 8 };
    TlNestFold f = {0};
    int64_t asked = 0, all = 0;
    for (const TlOp *op = fn->info ? fn->body->first : NULL; op; op = tl_walk_next(op, NULL)) {
        if (op->opcode != TL_OP_LOAD && op->opcode != TL_OP_STORE)
            continue;
        const TlValue *view = asked_by(fn, op);
        int64_t n = elements_of(op);
        all += n;
        asked += view ? n : 0;
        if (view)
            ask(&f, arena, view);
    }
    if (asked * PART < all)
        return (TlNestFold){0};
    if (f.dense.len)
        f.fn = copy_with_facts(fn, &f, arena);
    return f;
}
