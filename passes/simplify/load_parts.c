/* load-parts: loads only those parts of a tile that are used.
 *
 *     %t = load %w, %m, %l, %z {axes = [8, 8, 34]} : tile<u8, 8, 8, 34>
 *     %q = gather %t, (iota + 2) {axis = 2} : tile<u8, 8, 8, 32>        an extract
 *     %d = gather %t, iota {axis = 2} : tile<u8, 8, 8, 2>
 *     %x = reduce (select (iota == 0), %d, 0) {axis = 2, kind = or}     a half of a split
 *  =>
 *     %q = load %w, %m, %l, %z + 2 {axes = [8, 8, 32]} : tile<u8, 8, 8, 32>
 *     %x = load %w, %m, %l, %z {axes = [8, 8, i]} : tile<u8, 8, 8>
 *
 * So blocks that begin with a header, like those of quantised weights, need no gather of the whole
 * block. All parts lie along one axis, which a slice of the view gives. The pass does this only if
 * all uses of the tile are such parts and no element is loaded more often than before. The loads
 * stand where the load stood; outside elements read 0 as before. Starts are i64: i32 could
 * overflow where the slice did not. */
#include "ir/rewrite.h"
#include "passes/analysis/picked.h"
#include "passes/pass.h"

/* A value that is elements first .. first + n - 1 of the load, along the axis. */
typedef struct Part {
    TlValue *value;
    int64_t first, n;
    bool is_one; /* n is 1, and the axis is gone */
} Part;

typedef struct Parts {
    TlOp *load;
    int dim;
    TL_VEC(Part) parts;
    TlArena *arena;
} Parts;

/* ---- parts ---- */

/* The one element that a select of v, else 0, and its reduction by `or` leave. NULL: none. */
static TlValue *one_of(const TlValue *v, const TlOp *select, int dim, int64_t *at)
{
    const TlUse *use = select->opcode == TL_OP_SELECT ? select->out[0]->uses : NULL;
    if (!use || use->next || use->user->opcode != TL_OP_REDUCE ||
        tl_attr_int(use->user, TL_ATTR_AXIS, 0) != dim || tl_picked_from(use->user, at) != v)
        return NULL;
    return use->user->out[0];
}

/* Finds the parts that all uses of v, which begins at `first`, take. False: one takes all of it. */
static bool find_parts(Parts *p, TlValue *v, int64_t first)
{
    for (TlUse *u = v->uses; u; u = u->next) {
        TlOp *op = u->user;
        int64_t at;
        TlValue *one = one_of(v, op, p->dim, &at);
        if (one) {
            tl_vec_push(p->arena, &p->parts, ((Part){one, first + at, 1, true}));
            continue;
        }
        if (op->opcode != TL_OP_GATHER || u != &op->in[0] ||
            tl_attr(op, TL_ATTR_AXIS)->u.i != p->dim || tl_in(op, 1) == v ||
            !tl_counts_along(tl_in(op, 1), p->dim, &at) ||
            at + op->out[0]->type->shape[p->dim] > v->type->shape[p->dim])
            return false;
        uint32_t before = p->parts.len;
        if (find_parts(p, op->out[0], first + at))
            continue;
        p->parts.len = before;
        Part all = {op->out[0], first + at, op->out[0]->type->shape[p->dim], false};
        tl_vec_push(p->arena, &p->parts, all);
    }
    return true;
}

/* ---- loads ---- */

static void load_part(const Parts *p, const TlPlace *place, uint32_t axis, const Part *part)
{
    static const TlAttrId kept[] = {TL_ATTR_UNCHECKED, TL_ATTR_CACHE, TL_ATTR_EVICT};
    TlBuilder b = tl_builder_before(p->load);
    b.loc = p->load->loc;
    TlAxis *axes = TL_NEW_ARRAY(&b.fn->module->arena, TlAxis, place->naxes);
    TlValue *in[1 + TL_MAX_VIEW_RANK];
    TlAttr attrs[1 + sizeof kept / sizeof *kept];
    uint32_t n = 0;
    in[0] = place->base;
    for (uint32_t i = 0; i < place->naxes; i++) {
        axes[i] = place->axes[i];
        in[1 + i] = place->index[i].value;
    }
    TlValue *start = tl_cast(&b, in[1 + axis], TL_I64);
    TlValue *skip = tl_const_int(&b, start->type, part->first * axes[axis].step);
    in[1 + axis] = part->first ? tl_binary(&b, TL_OP_ADD, start, skip) : in[1 + axis];
    axes[axis].width = (int32_t)part->n;
    if (part->is_one)
        axes[axis] = (TlAxis){.kind = TL_AXIS_SCALAR};
    attrs[n++] = (TlAttr){.id = TL_ATTR_AXES, .n = place->naxes, .u.axes = axes};
    for (uint32_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (tl_attr(p->load, kept[i]))
            attrs[n++] = *tl_attr(p->load, kept[i]);
    const TlType *t = part->value->type;
    TlValue *v = tl_op_new(&b, TL_OP_LOAD, 1 + place->naxes, in, 1, &t, 0, n, attrs)->out[0];
    v->name = part->value->name;
    tl_replace_uses(part->value, v);
}

/* The axis of the view of which only parts may be loaded: a slice that gives the dimension. */
static int axis_of(const TlPlace *place, int dim)
{
    for (uint32_t i = 0; i < place->naxes; i++)
        if (place->axes[i].kind == TL_AXIS_SLICE && tl_place_dim(place, i) == dim)
            return (int)i;
    return -1;
}

static bool load_parts(TlArena *arena, TlOp *load)
{
    TL_ASSERT(load->opcode == TL_OP_LOAD, "%s loads nothing", tl_op_info(load->opcode)->text);
    TlPlace place = tl_op_place(load);
    TlValue *v = load->out[0];
    if (!place.axes || place.mask || place.other || place.pointwise || !v->uses ||
        v->type->rank == 0 || tl_dtype_bits(v->type->dtype) < 8)
        return false;
    const TlOp *user = v->uses->user;
    if (user->opcode != TL_OP_GATHER)
        return false;
    Parts p = {.load = load, .dim = (int)tl_attr(user, TL_ATTR_AXIS)->u.i, .arena = arena};
    int axis = axis_of(&place, p.dim);
    if (axis < 0 || !find_parts(&p, v, 0))
        return false;
    int64_t total = 0;
    for (uint32_t i = 0; i < p.parts.len; i++) total += p.parts.data[i].n;
    if (total > v->type->shape[p.dim])
        return false;
    for (uint32_t i = 0; i < p.parts.len; i++)
        load_part(&p, &place, (uint32_t)axis, &p.parts.data[i]);
    return true;
}

TlPassResult tl_pass_load_parts(TlFn *fn, TlPassCtx *px)
{
    TlPassResult result = TL_SAME;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_LOAD && load_parts(px->scratch, op))
            result = TL_CHANGED;
    return result;
}
