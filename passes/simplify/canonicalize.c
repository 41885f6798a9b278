/* canonicalize: one form for equal things, and less of it.
 *
 *     %c = const 2 : i32                       %c = const 7 : i32
 *     %d = const 5 : i32              =>       %x = add %n, %c
 *     %e = add %c, %d
 *     %x = add %e, %n
 *
 * Ops are visited in program order, again and again until nothing changes. A visit tries, first
 * match wins:
 *  1. a pure op without users goes (dce does this thoroughly; here it keeps later visits short);
 *  2. constant operands: the interpreter's evaluator computes the result, so a folded op means
 *     what a run one means. A tile with equal elements is a const op, and element by element ops
 *     on such are evaluated for one element;
 *  3. the constant of a commutative op goes right;
 *  4. element by element ops on broadcasts of one shape are done before the broadcast, on fewer
 *     elements;
 *  5. the op's rules: arithmetic (canon_arith.c), shapes, casts, views and memory
 *     (canon_shape.c), control (below).
 * What is done to floats is exact for all values, signed zeros and infinities included; only which
 * NaN results is left open. A function at the laid-out level is left as it is: the rules know no
 * layouts. Each rewrite makes the function smaller or moves an op to a place that
 * it does not leave, so the visits end; a cap makes sure. */
#include "ir/numeric.h"
#include "passes/simplify/canon.h"
#include <string.h>

enum { MAX_VISITS = 32, MAX_FOLDED_ELEMS = 4096 };

/* ---- words of the rules ---- */

void canon_touch(Canon *c)
{
    c->touched = true;
}

TlValue *canon_const(Canon *c, uint64_t bits)
{
    TL_ASSERT(c->op->nout == 1, "%s has %u results", tl_op_info(c->op->opcode)->text, c->op->nout);
    return tl_const_bits(&c->b, canon_type(c), bits);
}

bool canon_is_const(const TlValue *v, uint64_t *out_bits)
{
    if (!v->def || v->def->opcode != TL_OP_CONST)
        return false;
    if (out_bits)
        *out_bits = tl_attr(v->def, TL_ATTR_VALUE)->u.bits;
    return true;
}

TlValue *canon_op1(Canon *c, TlOpcode opcode, TlValue *x, const TlType *type)
{
    TL_ASSERT(tl_op_info(opcode)->nin == 1 && x->type->kind == TL_TILE,
              "%s of value %u", tl_op_info(opcode)->text, x->id);
    return tl_op_new(&c->b, opcode, 1, &x, 1, &type, 0, 0, NULL)->out[0];
}

/* ---- 2. folding ---- */

/* The op as it would be on single elements, so that a tile of a million equal elements is folded as
 * one. */
typedef struct Single {
    TlOp op;
    TlUse in[3];
    TlValue in_value[3], out_value;
    TlValue *out;
} Single;

static const TlOp *make_single(Canon *c, Single *s)
{
    s->op = *c->op;
    s->op.in = s->in;
    for (uint32_t i = 0; i < s->op.nin; i++) {
        s->in_value[i] = *canon_in(c, i);
        s->in_value[i].type = tl_type_with_shape(c->px->ctx, s->in_value[i].type, 0, NULL);
        s->in[i] = (TlUse){.value = &s->in_value[i], .user = &s->op};
    }
    s->out_value = *c->op->out[0];
    s->out_value.type = tl_type_with_shape(c->px->ctx, s->out_value.type, 0, NULL);
    s->out = &s->out_value;
    s->op.out = &s->out;
    return &s->op;
}

static TlTileData constant_data(const TlValue *v, uint64_t bits, TlArena *arena)
{
    int64_t n = tl_type_elems(v->type);
    TlTileData t = {v->type, tl_alloc(arena, (size_t)n * 8)};
    for (int64_t i = 0; i < n; i++)
        tl_elem_set(v->type->dtype, t.data, i, bits);
    return t;
}

static bool all_equal(const TlTileData *t, uint64_t *out_bits)
{
    *out_bits = tl_elem_get(t->type->dtype, t->data, 0);
    for (int64_t i = 1; i < tl_type_elems(t->type); i++)
        if (tl_elem_get(t->type->dtype, t->data, i) != *out_bits)
            return false;
    return true;
}

static TlValue *fold(Canon *c)
{
    const TlOp *op = c->op;
    uint64_t bits[3];
    if (op->nin == 0 || op->nin > 3 || op->nout != 1 || op->nregions || op->opcode == TL_OP_ASM ||
        op->out[0]->type->ptr)
        return NULL;
    for (uint32_t i = 0; i < op->nin; i++)
        if (tl_in(op, i)->type->ptr || !canon_is_const(tl_in(op, i), &bits[i]))
            return NULL;
    Single single;
    if (tl_op_info(op->opcode)->flags & F_ELEM)
        op = make_single(c, &single);
    TlTileData in[3], out;
    for (uint32_t i = 0; i < op->nin; i++) {
        if (tl_type_elems(tl_in(op, i)->type) > MAX_FOLDED_ELEMS)
            return NULL;
        in[i] = constant_data(tl_in(op, i), bits[i], c->px->scratch);
    }
    if (tl_type_elems(op->out[0]->type) > MAX_FOLDED_ELEMS)
        return NULL;
    uint64_t result;
    if (!tl_interp_eval(op, in, &out, c->px->scratch) || !all_equal(&out, &result))
        return NULL;
    return canon_const(c, result);
}

/* ---- 3. constants right ---- */

static TlOpcode mirrored(TlOpcode opcode)
{
    return opcode == TL_OP_LT   ? TL_OP_GT
           : opcode == TL_OP_LE ? TL_OP_GE
           : opcode == TL_OP_GT ? TL_OP_LT
           : opcode == TL_OP_GE ? TL_OP_LE
                                : TL_OP_COUNT;
}

static TlValue *constant_right(Canon *c)
{
    bool commutes = tl_op_info(c->op->opcode)->flags & F_COMM;
    TlOpcode mirror = mirrored(c->op->opcode);
    if (!commutes && mirror == TL_OP_COUNT)
        return NULL;
    TlValue *x = canon_in(c, 0), *y = canon_in(c, 1);
    if (!canon_is_const(x, NULL) || canon_is_const(y, NULL))
        return NULL;
    if (!commutes)
        return tl_binary(&c->b, mirror, y, x);
    tl_set_operand(c->op, 0, y);
    tl_set_operand(c->op, 1, x);
    canon_touch(c);
    return NULL;
}

/* ---- 4. broadcasts after element by element ops ---- */

/* The operand's source if it is a broadcast, or NULL. */
static TlValue *broadcast_source(const TlValue *v)
{
    TlOp *op = canon_def(v, TL_OP_BROADCAST);
    return op ? tl_in(op, 0) : NULL;
}

static TlValue *broadcast_late(Canon *c)
{
    TlOp *op = c->op;
    if (!(tl_op_info(op->opcode)->flags & F_ELEM) || op->nin > 3 ||
        tl_attr_int(op, TL_ATTR_ROUND, 0) == TL_ROUND_STOCHASTIC)
        return NULL;
    const TlType *shape = NULL;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *v = canon_in(c, i), *source = broadcast_source(v);
        if (source && !shape)
            shape = source->type;
        if (source ? !tl_same_shape(source->type, shape)
                   : v->type->rank > 0 && !canon_is_const(v, NULL))
            return NULL;
    }
    if (!shape || shape->layout)
        return NULL;
    TlValue *in[3];
    for (uint32_t i = 0; i < op->nin; i++) {
        TlValue *v = canon_in(c, i), *source = broadcast_source(v);
        uint64_t bits;
        in[i] = source ? source : v;
        if (!source && v->type->rank > 0 && canon_is_const(v, &bits))
            in[i] = tl_const_bits(
                &c->b, tl_type_with_shape(c->px->ctx, v->type, shape->rank, shape->shape), bits);
    }
    const TlType *type = tl_type_with_shape(c->px->ctx, canon_type(c), shape->rank, shape->shape);
    TlOp *small = tl_op_like(&c->b, op, op->nin, in, 1, &type);
    return canon_op1(c, TL_OP_BROADCAST, small->out[0], canon_type(c));
}

/* ---- 5. control ---- */

/* The region's ops go before the op, which gets the values that the region's end has from operand
 * `from` on. */
static void inline_region(TlOp *op, TlBlock *region, uint32_t from)
{
    TL_ASSERT(region->parent == op && region->last,
              "a region of another op than %s", tl_op_info(op->opcode)->text);
    TlOp *end = region->last;
    TlOp *keeper = op; /* the end moves along, to be taken apart outside */
    tl_block_move_ops(region, op->block, keeper);
    for (uint32_t i = 0; i < op->nout; i++)
        tl_replace_uses(op->out[i], tl_in(end, from + i));
    tl_op_erase(end);
    tl_op_erase(op);
}

static bool is_defined_outside(const TlValue *v, const TlOp *op)
{
    return tl_is_invariant(v, op);
}

/* Replaces results that are equal on both sides, or equal the condition itself. */
static bool trim_if(Canon *c)
{
    TL_ASSERT(c->op->regions[0]->last->nin == c->op->nout,
              "if yields %u of %u values", c->op->regions[0]->last->nin, c->op->nout);
    TlOp *op = c->op;
    bool changed = false;
    for (uint32_t i = op->nout; i-- > 0;) {
        TlValue *yes = tl_in(op->regions[0]->last, i), *no = tl_in(op->regions[1]->last, i),
                *by = NULL;
        uint64_t y, n;
        if (!op->out[i]->uses)
            continue;
        if (yes == no && is_defined_outside(yes, op))
            by = yes;
        else if (canon_is_const(yes, &y) && canon_is_const(no, &n) && yes->type == no->type) {
            if (y == n)
                by = tl_const_bits(&c->b, yes->type, y);
            else if (tl_is_bool(yes->type->dtype) && tl_is_scalar(yes->type) && !yes->type->ptr)
                by = y ? tl_in(op, 0) : tl_unary(&c->b, TL_OP_NOT, tl_in(op, 0));
        }
        if (!by)
            continue;
        tl_replace_uses(op->out[i], by);
        changed = true;
    }
    return changed;
}

static bool swap_sides(TlOp *op)
{
    TlOp *not = canon_def(tl_in(op, 0), TL_OP_NOT);
    if (!not )
        return false;
    tl_set_operand(op, 0, tl_in(not, 0));
    TlBlock *first = op->regions[0];
    op->regions[0] = op->regions[1];
    op->regions[1] = first;
    return true;
}

static bool control_if(Canon *c)
{
    TL_ASSERT(c->op->nregions == 2 && c->op->nin == 1, "if of %u regions", c->op->nregions);
    uint64_t bits;
    if (canon_is_const(canon_in(c, 0), &bits)) {
        inline_region(c->op, c->op->regions[bits ? 0 : 1], 0);
        return true;
    }
    bool swapped = swap_sides(c->op);
    return trim_if(c) || swapped;
}

/* A carried value that every iteration passes on unchanged is its initial value. */
static bool trim_for(Canon *c)
{
    TL_ASSERT(c->op->regions[0]->nargs == c->op->nout + 1,
              "for carries %u values, has %u results", c->op->regions[0]->nargs, c->op->nout);
    TlOp *op = c->op;
    TlBlock *body = op->regions[0];
    bool changed = false;
    for (uint32_t i = 0; i < op->nout; i++) {
        TlValue *arg = body->args[i + 1], *init = canon_in(c, i + 3);
        if (tl_in(body->last, i) != arg && tl_in(body->last, i) != init)
            continue;
        if (!op->out[i]->uses &&
            (!arg->uses || (arg->uses->user == body->last && !arg->uses->next)))
            continue;
        tl_replace_uses(op->out[i], init);
        tl_replace_uses(arg, init);
        changed = true;
    }
    return changed;
}

static bool control_for(Canon *c)
{
    TL_ASSERT(c->op->nregions == 1 && c->op->nin == c->op->nout + 3,
              "for of %u operands, %u results", c->op->nin, c->op->nout);
    TlOp *op = c->op;
    TlBlock *body = op->regions[0];
    TlWideInt trips;
    if (!tl_const_trips(op, &trips) || trips > 1)
        return trim_for(c);
    if (trips == 0) {
        for (uint32_t i = 0; i < op->nout; i++)
            tl_replace_uses(op->out[i], canon_in(c, i + 3));
        tl_op_erase(op);
        return true;
    }
    tl_replace_uses(body->args[0], canon_in(c, 0));
    for (uint32_t i = 0; i < op->nout; i++)
        tl_replace_uses(body->args[i + 1], canon_in(c, i + 3));
    inline_region(op, body, 0);
    return true;
}

/* while whose condition is false at once: region 0 runs, region 1 never. */
static bool control_while(Canon *c)
{
    TL_ASSERT(c->op->nregions == 2, "while of %u regions", c->op->nregions);
    TlOp *op = c->op;
    TlBlock *before = op->regions[0];
    uint64_t bits;
    if (!canon_is_const(tl_in(before->last, 0), &bits) || bits)
        return false;
    for (uint32_t i = 0; i < before->nargs; i++)
        tl_replace_uses(before->args[i], canon_in(c, i));
    inline_region(op, before, 1);
    return true;
}

static bool canon_control(Canon *c)
{
    TlOpcode opcode = c->op->opcode;
    return opcode == TL_OP_IF      ? control_if(c)
           : opcode == TL_OP_FOR   ? control_for(c)
           : opcode == TL_OP_WHILE ? control_while(c)
                                   : false;
}

/* ---- visiting ---- */

typedef struct Rules {
    CanonRule *by_opcode[TL_OP_COUNT];
} Rules;

static void add_rules(Rules *r, const CanonRow *rows)
{
    for (; rows->rule; rows++)
        r->by_opcode[rows->opcode] = rows->rule;
}

static bool is_unused(const TlOp *op)
{
    if (!(tl_op_info(op->opcode)->flags & F_PURE))
        return false;
    for (uint32_t i = 0; i < op->nout; i++)
        if (op->out[i]->uses)
            return false;
    return true;
}

/* Arithmetic of floats that are a ring: the rules are for those of IEEE. */
static bool is_ring_arithmetic(const TlOp *op)
{
    const TlType *t = op->nin ? tl_in(op, 0)->type : NULL;
    return op->block->fn->ring && (tl_op_info(op->opcode)->flags & F_ELEM) &&
           op->opcode != TL_OP_SELECT && t && !t->ptr && tl_is_float(t->dtype);
}

static TlValue *simplify(Canon *c, const Rules *rules)
{
    TlValue *v = fold(c);
    if (!v)
        v = constant_right(c);
    if (!v && !c->touched)
        v = broadcast_late(c);
    CanonRule *rule = rules->by_opcode[c->op->opcode];
    if (!v && !c->touched && rule && !is_ring_arithmetic(c->op))
        v = rule(c);
    return v;
}

static bool visit(Canon *c, const Rules *rules)
{
    TlOp *op = c->op;
    if (is_unused(op)) {
        tl_op_erase(op);
        return true;
    }
    if (op->nout != 1 || op->nregions || !(tl_op_info(op->opcode)->flags & F_PURE))
        return canon_control(c) || canon_memory(c);
    TlValue *v = simplify(c, rules);
    if (!v)
        return c->touched;
    TL_ASSERT(v->type == op->out[0]->type, "canonicalize: %s became another type",
              tl_op_info(op->opcode)->text);
    if (v->def && !v->name)
        v->name = op->out[0]->name;
    tl_replace_uses(op->out[0], v);
    tl_op_erase(op);
    return true;
}

static bool visit_all(TlFn *fn, TlPassCtx *px, const Rules *rules)
{
    bool changed = false;
    TlOp *op = fn->body->first;
    while (op) {
        TlOp *prev = op->prev, *next = op->next;
        TlBlock *block = op->block;
        Canon c = {.px = px, .fn = fn, .op = op, .b = tl_builder_before(op)};
        changed |= visit(&c, rules);
        if (op->block) { /* still there */
            op = tl_walk_next(op, NULL);
            continue;
        }
        TlOp *first_new =
            prev ? prev->next
                 : block->first; /* what a region left, or the replacement: look at it at once */
        op = first_new ? first_new : next;
    }
    return changed;
}

TlPassResult tl_pass_canonicalize(TlFn *fn, TlPassCtx *px)
{
    Rules rules = {{NULL}};
    if (tl_fn_level(fn) != TL_LEVEL_TILE)
        return TL_SAME;
    add_rules(&rules, canon_arith_rows);
    add_rules(&rules, canon_shape_rows);
    bool changed = false;
    for (int i = 0; i < MAX_VISITS && visit_all(fn, px, &rules); i++)
        changed = true;
    return changed ? TL_CHANGED : TL_SAME;
}
