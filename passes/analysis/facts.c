/* Questions about tile IR that several passes ask (facts.h). */
#include "passes/analysis/facts.h"
#include "ir/numeric.h"
#include "ir/plan/mma.h"
#include "ir/rewrite.h"
#include <string.h>

static bool is_aliased(const TlKernelInfo *info, uint32_t param)
{
    for (uint32_t i = 0; info && i < info->aliases.len; i++)
        if (info->aliases.data[i].a == param || info->aliases.data[i].b == param)
            return true;
    return false;
}

bool tl_is_constant_memory(const TlValue *base)
{
    TL_ASSERT(base->type->kind == TL_VIEW || base->type->ptr, "value %u is no memory", base->id);
    const TlValue *v = base;
    for (;;) {
        if (!v->type->is_const)
            return false; /* a const view of memory that is not const proves nothing */
        if (!v->def)
            break;
        v = tl_leads_into(v);
        if (!v)
            return false;
    }
    return !v->block->parent && !is_aliased(v->block->fn->info, v->index);
}

int tl_base_param(const TlValue *v)
{
    TL_ASSERT(v->type->kind == TL_VIEW || v->type->ptr, "value %u is no memory", v->id);
    while (v && v->def)
        v = tl_leads_into(v);
    return v && !v->block->parent ? (int)v->index : -1;
}

bool tl_may_alias(const TlFn *fn, const TlValue *a, const TlValue *b)
{
    int p = tl_base_param(a), q = tl_base_param(b);
    if (p < 0 || q < 0 || p == q)
        return true;
    for (uint32_t i = 0; fn->info && i < fn->info->aliases.len; i++) {
        tile_image_alias x = fn->info->aliases.data[i];
        if (((int)x.a == p && (int)x.b == q) || ((int)x.a == q && (int)x.b == p))
            return true;
    }
    return false;
}

bool tl_is_view_of_launch(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_SUB_VIEW)
        v = tl_in(v->def, 0);
    return !v->def && !v->block->parent && v->type->kind == TL_VIEW;
}

bool tl_attr_equal(const TlAttr *a, const TlAttr *b)
{
    if (a->id != b->id || a->n != b->n)
        return false;
    switch (tl_attr_form(a->id)) {
    case TL_FORM_INTS: return memcmp(a->u.ints, b->u.ints, sizeof *a->u.ints * a->n) == 0;
    case TL_FORM_AXES:
        for (uint32_t i = 0; i < a->n; i++) {
            const TlAxis *x = &a->u.axes[i], *y = &b->u.axes[i];
            if (x->kind != y->kind || x->width != y->width || x->step != y->step)
                return false;
        }
        return true;
    case TL_FORM_FLAG: return true;
    case TL_FORM_INT:
    case TL_FORM_STR: /* interned */
    case TL_FORM_CONST:
    case TL_FORM_COMBINE:
    case TL_FORM_RMW:
    case TL_FORM_ORDER:
    case TL_FORM_SCOPE:
    case TL_FORM_CACHE:
    case TL_FORM_EVICT:
    case TL_FORM_PRECISION:
    case TL_FORM_ROUND:
    case TL_FORM_APPROX:
    case TL_FORM_WAY:
    case TL_FORM_SPAN: break;
    }
    return a->u.bits == b->u.bits;
}

bool tl_is_invariant(const TlValue *v, const TlOp *loop)
{
    TL_ASSERT(loop->nregions > 0, "%s is no loop", tl_op_info(loop->opcode)->text);
    return !tl_block_is_inside(v->def ? v->def->block : v->block, loop);
}

const TlOp *tl_enclosing_loop(const TlOp *op)
{
    do
        op = op->block->parent;
    while (op && !tl_is_loop(op));
    return op;
}

bool tl_is_innermost(const TlOp *loop)
{
    for (const TlOp *op = tl_walk_next(loop, loop); op; op = tl_walk_next(op, loop))
        if (tl_is_loop(op))
            return false;
    return true;
}

uint32_t tl_moving_axes(const TlOp *access)
{
    const TlOp *loop = tl_enclosing_loop(access);
    TlPlace p = tl_op_place(access);
    uint32_t moving = 0;
    for (uint32_t i = 0; i < p.naxes && p.axes && loop; i++)
        if (p.axes[i].kind != TL_AXIS_TILE && !tl_is_invariant(p.index[i].value, loop))
            moving |= 1u << i;
    return moving;
}

bool tl_is_const_op(const TlValue *v)
{
    return v->def && v->def->opcode == TL_OP_CONST;
}

bool tl_const_int_value(const TlValue *v, TlWideInt *out)
{
    uint64_t bits;
    if (v->type->kind != TL_TILE || v->type->ptr || !tl_is_int(v->type->dtype) ||
        !tl_value_is_const(v, &bits))
        return false;
    *out = v->type->dtype == TL_U64 ? (TlWideInt)bits
                                    : (TlWideInt)tl_bits_to_int(v->type->dtype, bits);
    return true;
}

bool tl_const_trips(const TlOp *loop, TlWideInt *out)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR,
              "%s has no trips to count", tl_op_info(loop->opcode)->text);
    TlWideInt lo, hi, step;
    if (!tl_const_int_value(tl_in(loop, 2), &step))
        return false;
    bool same = tl_in(loop, 0) == tl_in(loop, 1);
    *out = 0;
    if (step == 0 || same)
        return true;
    if (!tl_const_int_value(tl_in(loop, 0), &lo) || !tl_const_int_value(tl_in(loop, 1), &hi))
        return false;
    if (step > 0 && lo < hi)
        *out = (hi - lo + step - 1) / step;
    if (step < 0 && lo > hi)
        *out = (lo - hi - step - 1) / -step;
    return true;
}

int64_t tl_likely_trips(const TlOp *loop, int64_t most)
{
    enum { LIKELY = 8 };
    TlWideInt trips;
    TL_ASSERT(tl_is_loop(loop), "%s is no loop", tl_op_info(loop->opcode)->text);
    if (loop->opcode != TL_OP_FOR || !tl_const_trips(loop, &trips))
        trips = LIKELY;
    return trips < 1 ? 1 : trips > most ? most : (int64_t)trips;
}

int64_t tl_likely_runs(const TlBlock *b, const TlOp *outer, int64_t most)
{
    const int64_t LIMIT = 1 << 30;
    int64_t n = 1;
    TL_ASSERT(most <= LIMIT, "%lld iterations", (long long)most);
    for (const TlOp *op = b->parent; op && op != outer; op = op->block->parent)
        if (tl_is_loop(op)) {
            n *= tl_likely_trips(op, most);
            n = n < LIMIT ? n : LIMIT;
        }
    return n;
}

static bool has_tile(const TlFn *fn)
{
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; i < op->nout; i++)
            if (op->out[i]->type->kind == TL_TILE && op->out[i]->type->rank)
                return true;
    return false; /* tiles in regions come from values outside */
}

const TlOp *tl_looped_multiply_adds(const TlFn *fn)
{
    const TlOp *op = fn->body->first;
    while (op && !(op->opcode == TL_OP_DOT && !tl_mma_of(op) && tl_enclosing_loop(op)))
        op = tl_walk_next(op, NULL);
    return op;
}

bool tl_is_in_hinted_loop(const TlOp *op)
{
    const TlOp *loop = op->block->parent;
    return loop && loop->opcode == TL_OP_FOR && tl_attr(loop, TL_ATTR_PIPELINE);
}

bool tl_multiplies_bytes(const TlValue *v)
{
    const TlOp *op = v->def;
    bool is = op && op->opcode == TL_OP_MUL;
    for (uint32_t i = 0; is && i < 2; i++) {
        const TlOp *cast = tl_in(op, i)->def;
        while (cast && (cast->opcode == TL_OP_BROADCAST || cast->opcode == TL_OP_EXPAND))
            cast = tl_in(cast, 0)->def;
        is = cast && cast->opcode == TL_OP_CAST && tl_is_int(tl_in(cast, 0)->type->dtype) &&
             tl_dtype_bits(tl_in(cast, 0)->type->dtype) == 8;
    }
    return is;
}

static const TlOp *dot_of(const TlValue *v, int depth)
{
    enum { MOST_CHAIN = 4 }; /* pure ops between a load and its product: recursion */
    const TlOp *dot = NULL;
    for (const TlUse *u = v->uses; u && !dot; u = u->next) {
        const TlOp *op = u->user;
        if (op->opcode == TL_OP_DOT)
            dot = op;
        else if (depth < MOST_CHAIN && tl_op_info(op->opcode)->flags & F_PURE && op->nout == 1 &&
                 op->nregions == 0)
            dot = dot_of(op->out[0], depth + 1);
    }
    return dot;
}

const TlOp *tl_dot_of(const TlValue *v)
{
    return dot_of(v, 0);
}

bool tl_fn_is_laid_out(const TlFn *fn)
{
    return tl_fn_level(fn) != TL_LEVEL_TILE || (fn->body->warps && !has_tile(fn));
}

/* ---- dots ---- */

static bool is_product(const TlOp *op)
{
    return op->opcode == TL_OP_DOT || op->opcode == TL_OP_DOT_ASYNC;
}

const TlOp *tl_op_in_block(const TlOp *op, const TlBlock *block)
{
    while (op && op->block != block)
        op = op->block->parent;
    return op;
}

/* Does the op's result reach an operand of a dot (not as what is added to) within its block, or by
 * what a branch makes of it? Those of the ops behind it are known: reach[] by value id. */
static bool reaches_dot(const TlOp *op, const bool *reach)
{
    for (uint32_t i = 0; i < op->nout; i++)
        for (const TlUse *u = op->out[i]->uses; u; u = u->next) {
            const TlOp *user = u->user, *here = tl_op_in_block(user, op->block);
            if (is_product(user) && u != &user->in[user->nin - 1])
                return true;
            for (uint32_t k = 0; here && k < here->nout; k++)
                if (reach[here->out[k]->id])
                    return true;
        }
    return false;
}

bool tl_dot_takes_dot(TlArena *arena, const TlOp *dot)
{
    TlMap seen;
    TL_VEC(const TlValue *) todo = {0};
    tl_map_init(&seen, arena);
    for (const TlValue *v = tl_in(dot, 0); v; v = todo.len ? todo.data[--todo.len] : NULL) {
        const TlOp *op = v->def;
        if (!op || !tl_op_in_block(op, dot->block) || tl_map_get_ptr(&seen, (void *)v))
            continue;
        if (is_product(op) && op->block == dot->block)
            return true;
        tl_map_put_ptr(&seen, (void *)v, (void *)v);
        bool follows = op->opcode == TL_OP_CONVERT || op->opcode == TL_OP_CAST ||
                       tl_op_info(op->opcode)->flags & F_ELEM;
        for (uint32_t i = 0; follows && i < op->nin; i++)
            tl_vec_push(arena, &todo, tl_in(op, i));
        for (uint32_t r = 0; op->opcode == TL_OP_IF && r < op->nregions; r++)
            tl_vec_push(arena, &todo, tl_in(op->regions[r]->last, v->index));
    }
    return false;
}

bool tl_dots_are_chained(const TlFn *fn, TlArena *arena, const TlBlock *block)
{
    TL_ASSERT(block->fn == fn, "a block of another function than '%s'", fn->name);
    bool *reach = TL_NEW_ARRAY(arena, bool, fn->nvalues + 1);
    for (const TlOp *op = block->last; op; op = op->prev) {
        bool does = reaches_dot(op, reach);
        if (does && is_product(op))
            return true;
        for (uint32_t i = 0; i < op->nout; i++)
            reach[op->out[i]->id] = does;
    }
    return false;
}

bool tl_fn_may_wait(const TlFn *fn)
{
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (tl_op_info(op->opcode)->flags & F_ATOMIC && op->nout > 0 && op->out[0]->uses)
            return true;
    return false;
}

TlValue *tl_matrix_source(TlValue *v, bool *out_flipped)
{
    *out_flipped = false;
    while (v->def && (v->def->opcode == TL_OP_TRANS || v->def->opcode == TL_OP_CONVERT)) {
        *out_flipped ^=
            v->def->opcode == TL_OP_TRANS && tl_attr(v->def, TL_ATTR_PERM)->u.ints[0] == 1;
        v = tl_in(v->def, 0);
    }
    return v;
}
