/* The verifier: is this function valid IR? One line per fault, never a crash, whatever a pass left
 * behind. In order:
 *  1. the tree: links of blocks and ops, parents, terminators;
 *  2. values: dense unique ids, numbering of results and arguments, use lists that hold exactly the
 *     operands;
 *  3. each op: counts and attributes by ops.def, operands defined above (dominance in structured
 *     regions is scoping), its rule;
 *  4. layouts, at the laid-out level (verify_layout.c);
 *  5. launch facts: indices in range, expressions that leave one word.
 * A later step runs only when the earlier ones found nothing, so it may rely on them. */
#include "ir/verify/verify.h"
#include <stdio.h>
#include <string.h>

/* ---- reports ---- */

bool tl_verify_fault(TlVerify *v, const TlOp *op, const char *format, ...)
{
    if (v->faults++ >= TL_MAX_FAULTS) return false;
    va_list args;
    va_start(args, format);
    const char *text = tl_vformat(&v->scratch, format, args);
    va_end(args);
    if (op) text = tl_format(&v->scratch, "%s: %s", tl_op_info(op->opcode)->text, text);
    v->report(v->user, v->fn, op, text);
    return false;
}

const char *tl_verify_type(TlVerify *v, const TlType *t)
{
    TlSbuf s;
    tl_sbuf_init(&s, &v->scratch);
    tl_type_print(&s, t);
    return s.text;
}

/* ---- 1. the tree ---- */

static bool check_links(TlVerify *v, const TlBlock *b)
{
    const TlOp *prev = NULL;
    for (const TlOp *op = b->first; op; prev = op, op = op->next) {
        if ((unsigned)op->opcode >= TL_OP_COUNT)
            return tl_verify_fault(v, NULL, "opcode %d", (int)op->opcode);
        if (op->prev != prev) return tl_verify_fault(v, op, "wrong link to the op before");
        if (op->block != b) return tl_verify_fault(v, op, "does not know its block");
        for (uint32_t r = 0; r < op->nregions; r++) {
            if (!op->regions[r]) return tl_verify_fault(v, op, "region %u is missing", r);
            if (op->regions[r]->parent != op || op->regions[r]->fn != v->fn)
                return tl_verify_fault(v, op, "region %u does not know its op", r);
        }
    }
    return b->last == prev || tl_verify_fault(v, NULL, "a block does not end in its last op");
}

static bool is_terminator(const TlOp *op) { return tl_op_info(op->opcode)->flags & F_TERM; }

static bool check_terminators(TlVerify *v, const TlBlock *b)
{
    if (!b->last) return tl_verify_fault(v, b->parent, "an empty block: no terminator");
    for (const TlOp *op = b->first; op; op = op->next) {
        if (is_terminator(op) && op->next)
            return tl_verify_fault(v, op, "not at the end of its block");
        if (!is_terminator(op) && !op->next)
            return tl_verify_fault(v, op, "ends a block, which a terminator must");
    }
    return (b->warps >= 0 || tl_verify_fault(v, b->parent, "warps %d", (int)b->warps)) &&
           (b->stages >= 0 || tl_verify_fault(v, b->parent, "stages %d", (int)b->stages));
}

static bool check_block_tree(TlVerify *v, const TlBlock *b)
{
    return check_links(v, b) && check_terminators(v, b);
}

/* A block's links are checked before the walk goes into it. */
static bool check_tree(TlVerify *v)
{
    const TlFn *fn = v->fn;
    if (!fn->body || fn->body->parent || fn->body->fn != fn)
        return tl_verify_fault(v, NULL, "wrong body");
    if (!check_block_tree(v, fn->body)) return false;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t r = 0; r < op->nregions; r++)
            if (!check_block_tree(v, op->regions[r])) return false;
    return true;
}

/* ---- 2. values ---- */

typedef struct Values {
    const TlValue **by_id;
    uint32_t *nuses; /* operands that name the value */
    uint8_t *visible;
} Values;

static bool check_type(TlVerify *v, const TlOp *op, const TlType *t)
{
    if (!t) return tl_verify_fault(v, op, "a value without type");
    if (t->kind == TL_VIEW) return true;
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) {
        n *= t->shape[i];
        if (n > TL_MAX_ELEMS) return tl_verify_fault(v, op, "a tile has more than 2^20 elements");
    }
    return true;
}

static bool add_value(TlVerify *v, Values *vs, const TlOp *op, const TlValue *x, uint32_t index)
{
    if (!x) return tl_verify_fault(v, op, "value %u is missing", index);
    if (x->index != index)
        return tl_verify_fault(v, op, "value %u is numbered %u", index, x->index);
    if (x->id >= v->fn->nvalues || vs->by_id[x->id])
        return tl_verify_fault(v, op, "value id %u is wrong", x->id);
    vs->by_id[x->id] = x;
    return check_type(v, op, x->type);
}

static bool add_args(TlVerify *v, Values *vs, const TlOp *op, const TlBlock *b)
{
    for (uint32_t i = 0; i < b->nargs; i++) {
        if (!add_value(v, vs, op, b->args[i], i)) return false;
        if (b->args[i]->def || b->args[i]->block != b)
            return tl_verify_fault(v, op, "argument %u does not know its block", i);
    }
    return true;
}

static bool collect_values(TlVerify *v, Values *vs)
{
    const TlFn *fn = v->fn;
    vs->by_id = TL_NEW_ARRAY(&v->scratch, const TlValue *, fn->nvalues);
    vs->nuses = TL_NEW_ARRAY(&v->scratch, uint32_t, fn->nvalues);
    vs->visible = TL_NEW_ARRAY(&v->scratch, uint8_t, fn->nvalues);
    if (!add_args(v, vs, NULL, fn->body)) return false;
    for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; i < op->nout; i++) {
            if (!add_value(v, vs, op, op->out[i], i)) return false;
            if (op->out[i]->def != op)
                return tl_verify_fault(v, op, "result %u does not know its op", i);
        }
        for (uint32_t r = 0; r < op->nregions; r++)
            if (!add_args(v, vs, op, op->regions[r])) return false;
    }
    return true;
}

static bool check_operands(TlVerify *v, Values *vs, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *x = op->in[i].value;
        if (!x) return tl_verify_fault(v, op, "operand %u is missing", i);
        if (x->id >= v->fn->nvalues || vs->by_id[x->id] != x)
            return tl_verify_fault(v, op, "operand %u is not a value of this function", i);
        if (op->in[i].user != op)
            return tl_verify_fault(v, op, "operand %u does not know its op", i);
        vs->nuses[x->id]++;
    }
    return true;
}

/* Each operand is on one list, so a list as long as the value's operands, all of them operands that
 * name it, is right. */
static bool check_use_list(TlVerify *v, const Values *vs, const TlValue *x)
{
    uint32_t n = 0;
    const TlUse *prev = NULL;
    for (const TlUse *u = x->uses; u; prev = u, u = u->next) {
        if (++n > vs->nuses[x->id]) break;
        if (u->value != x || u->prev != prev || !u->user || u < u->user->in ||
            u >= u->user->in + u->user->nin) {
            n = UINT32_MAX;
            break;
        }
    }
    return n == vs->nuses[x->id] ||
           tl_verify_fault(v, x->def, "use list of result or argument %u is wrong", x->index);
}

static bool check_uses(TlVerify *v, Values *vs)
{
    for (const TlOp *op = v->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (!check_operands(v, vs, op)) return false;
    for (uint32_t i = 0; i < v->fn->nvalues; i++)
        if (vs->by_id[i] && !check_use_list(v, vs, vs->by_id[i])) return false;
    return true;
}

/* ---- 3. ops ---- */

static bool check_attr(TlVerify *v, const TlOp *op, const TlAttr *a)
{
    if ((unsigned)a->id >= TL_ATTR_COUNT) return tl_verify_fault(v, op, "attribute %d", (int)a->id);
    const char *name = tl_attr_name(a->id);
    if (!((tl_op_required_attrs(op->opcode) | tl_op_optional_attrs(op->opcode)) >> a->id & 1))
        return tl_verify_fault(v, op, "takes no %s", name);
    if (tl_attr(op, a->id) != a) return tl_verify_fault(v, op, "%s is given twice", name);
    switch (tl_attr_form(a->id)) {
    case TL_FORM_INT: case TL_FORM_FLAG: case TL_FORM_CONST: case TL_FORM_SPAN: return true;
    case TL_FORM_STR: return a->u.s || tl_verify_fault(v, op, "%s is missing", name);
    case TL_FORM_INTS: return !a->n || a->u.ints || tl_verify_fault(v, op, "%s is missing", name);
    case TL_FORM_AXES: return !a->n || a->u.axes || tl_verify_fault(v, op, "%s is missing", name);
    case TL_FORM_COMBINE:
    case TL_FORM_RMW:
    case TL_FORM_ORDER:
    case TL_FORM_SCOPE:
    case TL_FORM_CACHE:
    case TL_FORM_EVICT:
    case TL_FORM_PRECISION:
    case TL_FORM_ROUND:
    case TL_FORM_APPROX:
    case TL_FORM_WAY: break;
    }
    return tl_enum_name(tl_attr_form(a->id), a->u.i) ||
           tl_verify_fault(v, op, "%s = %lld is out of range", name, (long long)a->u.i);
}

static bool check_attrs(TlVerify *v, const TlOp *op)
{
    uint64_t missing = tl_op_required_attrs(op->opcode);
    for (uint32_t i = 0; i < op->nattrs; i++) {
        if (!check_attr(v, op, &op->attrs[i])) return false;
        missing &= ~(1ull << op->attrs[i].id);
    }
    for (int i = 0; i < TL_ATTR_COUNT; i++)
        if (missing >> i & 1) return tl_verify_fault(v, op, "needs %s", tl_attr_name((TlAttrId)i));
    return true;
}

static bool check_count(TlVerify *v, const TlOp *op, const char *what, uint32_t n, int wanted)
{
    return wanted < 0 || n == (uint32_t)wanted ||
           tl_verify_fault(v, op, "%u %s, %d expected", n, what, wanted);
}

static bool check_shape_of_op(TlVerify *v, const TlOp *op)
{
    const TlOpInfo *info = tl_op_info(op->opcode);
    return check_count(v, op, "operands", op->nin, info->nin) &&
           check_count(v, op, "results", op->nout, info->nout) &&
           check_count(v, op, "regions", op->nregions, info->nregions) && check_attrs(v, op);
}

static void set_visible(Values *vs, TlValue *const *list, uint32_t n, uint8_t visible)
{
    for (uint32_t i = 0; i < n; i++) vs->visible[list[i]->id] = visible;
}

static void check_op(TlVerify *v, const Values *vs, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        if (!vs->visible[op->in[i].value->id]) {
            tl_verify_fault(v, op, "operand %u is not defined above in this or an enclosing region",
                            i);
            return;
        }
    if (check_shape_of_op(v, op)) tl_verify_rule(op->opcode)(v, op);
}

static void leave_block(Values *vs, const TlBlock *b)
{
    set_visible(vs, b->args, b->nargs, 0);
    for (const TlOp *op = b->first; op; op = op->next) set_visible(vs, op->out, op->nout, 0);
}

/* Text order with a scope: what a block defines is visible from there to its end. An op's results
 * are visible after its regions. The rules run before an op's regions are entered; they look at the
 * regions' arguments and terminators only. */
static void check_ops(TlVerify *v, Values *vs)
{
    const TlBlock *b = v->fn->body;
    const TlOp *op = b->first;
    set_visible(vs, b->args, b->nargs, 1);
    for (;;) {
        if (op) {
            check_op(v, vs, op);
            if (op->nregions == 0) {
                set_visible(vs, op->out, op->nout, 1);
                op = op->next;
                continue;
            }
            b = op->regions[0];
        } else {
            if (!b->parent) return;
            leave_block(vs, b);
            const TlBlock *next = tl_region_after(b);
            if (!next) {
                set_visible(vs, b->parent->out, b->parent->nout, 1);
                op = b->parent->next;
                b = b->parent->block;
                continue;
            }
            b = next;
        }
        set_visible(vs, b->args, b->nargs, 1);
        op = b->first;
    }
}

/* ---- 4. launch facts ---- */

static bool check_expr(TlVerify *v, const TlKernelInfo *k, uint32_t index)
{
    const TlHostExpr *e = &k->exprs.data[index];
    int depth = 0;
    for (uint32_t i = 0; i < e->code.len; i++) {
        const tile_hx_ins *x = &e->code.data[i];
        if (x->op >= TILE_HX_COUNT)
            return tl_verify_fault(v, NULL, "expr %u: instruction %u", index, x->op);
        uint64_t limit = x->op == TILE_HX_SYM   ? k->syms.len
                         : x->op == TILE_HX_ARG ? k->params.len
                                                : UINT64_MAX;
        if (tl_hx_has_imm(x->op) && (uint64_t)x->imm >= limit && limit != UINT64_MAX)
            return tl_verify_fault(v, NULL, "expr %u: %s %lld is out of range", index,
                                   tl_hx_name(x->op), (long long)x->imm);
        depth -= tl_hx_pops(x->op);
        if (depth < 0 || depth >= TILE_HX_MAX_STACK) break;
        depth++;
    }
    return depth == 1 || tl_verify_fault(v, NULL, "expr %u does not leave one word", index);
}

static bool check_dim(TlVerify *v, const TlKernelInfo *k, const TlParam *p, const TlDim *d,
                      bool stride)
{
    uint64_t limit = d->kind == TILE_DIM_SYM    ? k->syms.len
                     : d->kind == TILE_DIM_EXPR ? k->exprs.len
                                                : UINT64_MAX;
    if ((unsigned)d->kind > TILE_DIM_DENSE || (d->kind == TILE_DIM_DENSE && !stride))
        return tl_verify_fault(v, NULL, "parameter %s: wrong kind of dimension", p->name);
    return limit == UINT64_MAX || (uint64_t)d->value < limit ||
           tl_verify_fault(v, NULL, "parameter %s: index %lld is out of range", p->name,
                           (long long)d->value);
}

static bool param_fits(const TlParam *p, const TlType *t)
{
    if (t->dtype != p->dtype) return false;
    switch (p->kind) {
    case TILE_PARAM_VIEW:
        return t->kind == TL_VIEW && t->rank == p->rank && t->is_const == p->is_const;
    case TILE_PARAM_POINTER: return tl_is_scalar(t) && t->ptr && t->is_const == p->is_const;
    case TILE_PARAM_SCALAR: return tl_is_scalar(t) && !t->ptr;
    }
    return false;
}

static bool check_params(TlVerify *v, const TlKernelInfo *k)
{
    const TlBlock *body = v->fn->body;
    if (k->params.len != body->nargs)
        return tl_verify_fault(v, NULL, "%u arguments, %u parameters", body->nargs, k->params.len);
    for (uint32_t i = 0; i < k->params.len; i++) {
        const TlParam *p = &k->params.data[i];
        if (!param_fits(p, body->args[i]->type))
            return tl_verify_fault(v, NULL, "parameter %s is not what argument %u says", p->name,
                                   i);
        for (uint32_t d = 0; d < p->rank; d++)
            if (!check_dim(v, k, p, &p->extent[d], false) ||
                !check_dim(v, k, p, &p->stride[d], true))
                return false;
    }
    for (uint32_t i = 0; i < k->syms.len; i++) {
        const TlSym *s = &k->syms.data[i];
        if (s->param >= k->params.len || s->axis >= k->params.data[s->param].rank)
            return tl_verify_fault(v, NULL, "sym %s is of no axis", s->name);
    }
    return true;
}

static bool check_indices(TlVerify *v, const char *what, const uint32_t *data, uint32_t n,
                          uint32_t limit)
{
    for (uint32_t i = 0; i < n; i++)
        if (data[i] >= limit)
            return tl_verify_fault(v, NULL, "%s: index %u is out of range", what, data[i]);
    return true;
}

static bool check_info(TlVerify *v, const TlKernelInfo *k)
{
    if (!check_params(v, k)) return false;
    for (uint32_t i = 0; i < k->exprs.len; i++)
        if (!check_expr(v, k, i)) return false;
    if (k->grid.len > TILE_MAX_GRID)
        return tl_verify_fault(v, NULL, "a grid of %u axes", k->grid.len);
    if (k->group < -1 || k->group >= (int64_t)k->exprs.len)
        return tl_verify_fault(v, NULL, "group: index %d is out of range", (int)k->group);
    for (uint32_t i = 0; i < k->aliases.len; i++)
        if (k->aliases.data[i].a >= k->params.len || k->aliases.data[i].b >= k->params.len)
            return tl_verify_fault(v, NULL, "alias of a parameter that is not there");
    return check_indices(v, "grid", k->grid.data, k->grid.len, k->exprs.len) &&
           check_indices(v, "require", k->requires_.data, k->requires_.len, k->exprs.len) &&
           check_indices(v, "assume", k->assumes.data, k->assumes.len, k->exprs.len);
}

/* ---- entries ---- */

static bool check_arguments(TlVerify *v)
{
    const TlBlock *b = v->fn->body;
    for (uint32_t i = 0; i < b->nargs; i++)
        if (b->args[i]->type->kind != TL_VIEW && b->args[i]->type->rank > 0)
            return tl_verify_fault(v, NULL, "argument %u is a tile", i);
    return true;
}

static void verify(TlVerify *v)
{
    Values vs = {0};
    if (!check_tree(v) || !collect_values(v, &vs) || !check_uses(v, &vs) || !check_arguments(v))
        return;
    check_ops(v, &vs);
    if (v->faults == 0) tl_verify_layouts(v);
    if (v->fn->info) check_info(v, v->fn->info);
}

bool tl_verify_with(const TlFn *fn, TlVerifyReport report, void *user)
{
    TL_ASSERT(fn->body && fn->module, "'%s' has no body", fn->name);
    TlVerify v = {.fn = fn, .report = report, .user = user};
    tl_arena_init(&v.scratch, fn->module->ctx->perm.alloc);
    TlGuard g;
    if (TL_GUARD(&g)) {
        verify(&v);
        tl_guard_pop(&g);
    }
    tl_arena_free(&v.scratch);
    if (g.fault) tl_fault(g.fault, "%s", g.text);
    return v.faults == 0;
}

static void write_line(void *user, const TlFn *fn, const TlOp *op, const char *text)
{
    TlSbuf *out = user;
    if (!out) return;
    tl_sbuf_putf(out, "@%s: %s", fn->name, text);
    if (op && op->loc.line) tl_sbuf_putf(out, " @%u:%u", op->loc.line, op->loc.col);
    tl_sbuf_puts(out, "\n");
}

bool tl_verify_fn(const TlFn *fn, TlSbuf *out) { return tl_verify_with(fn, write_line, out); }

bool tl_verify_module(const TlModule *m, TlSbuf *out)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->fns.len; i++) ok &= tl_verify_fn(m->fns.data[i], out);
    return ok;
}
