/* one-place: where all lanes of a loop gather from one place, that is read once for all of them.
 *
 *     while any(%k < n) {
 *         %a = load %x, %k {axes = [t]}              %s = element 0 of %k
 *         %b = load %y, %k {axes = [t]}      =>      %one = all of %k are %s
 *         ...                                        %r = if %one { %k is %s everywhere:
 *         yield %r                                           %a = broadcast (load %x, %s) ... }
 *     }                                                      else { as it was }
 *                                                    yield %r
 *
 * Rays that go through a tree, or a search that many lanes do together, are at one node most of the
 * time, as neighbours do alike. A gather costs a load for each lane; to ask costs a comparison.
 *
 *  1. Loops that go on while any element is not done: there, what lanes do differs.
 *  2. The index tile by which most loads of the loop gather, if that is one that the loop carries,
 *     or computed from one. It is a few vectors: the more lanes, the fewer are at one place.
 *  3. What it costs: the question beside the loads that are saved; code that is there twice.
 *  4. All that comes after the index tile, twice. */
#include "ir/remark.h"
#include "passes/pass.h"
#include "passes/simplify/loops.h"

enum {
    MOST_LANES = 64,
    MOST_OPS = 256,  /* of a loop's body */
    MOST_DEPTH = 24, /* ops between a question and what it asks about */
    ASKS = 12,       /* elements: the question, and the jumps that it guessed wrong */
};

typedef struct OnePlace {
    TlOp *loop;
    TlValue *index;
    int64_t loads; /* that gather by it */
} OnePlace;

/* ---- 1. loops ---- */

/* Does v come from ops of the block that work element by element, or choose, over something that
 * `asks` says yes to? */
typedef bool Asks(const TlValue *v, const TlBlock *block);
static bool comes_from(const TlValue *v, const TlBlock *block, Asks *asks, int depth)
{
    if (asks(v, block))
        return true;
    const TlOp *op = v->def;
    if (!op || op->block != block || depth > MOST_DEPTH ||
        !(tl_op_info(op->opcode)->flags & F_ELEM))
        return false;
    for (uint32_t i = 0; i < op->nin; i++)
        if (comes_from(tl_in(op, i), block, asks, depth + 1))
            return true;
    return false;
}

static bool is_any(const TlValue *v, const TlBlock *block)
{
    const TlOp *op = v->def;
    return op && op->block == block && op->opcode == TL_OP_REDUCE && op->nin == 1 &&
           tl_is_bool(v->type->dtype) && tl_attr_int(op, TL_ATTR_KIND, -1) == TL_COMBINE_OR;
}

static bool is_while_any(const TlOp *op)
{
    if (op->opcode != TL_OP_WHILE)
        return false;
    const TlBlock *before = op->regions[0];
    return comes_from(tl_in(before->last, 0), before, is_any, 0);
}

/* ---- 2. the index tile ---- */

static bool is_carried(const TlValue *v, const TlBlock *block)
{
    return !v->def && v->block == block && v->type->rank > 0;
}

/* A load whose lanes lie where v says, and nothing else. */
static bool gathers_by(const TlOp *op, const TlValue *v)
{
    if (op->opcode != TL_OP_LOAD)
        return false;
    TlPlace p = tl_op_place(op);
    bool is = p.axes && !p.mask && !p.other && p.rank == 1;
    for (uint32_t i = 0; is && i < p.naxes; i++)
        is = p.axes[i].kind == TL_AXIS_SCALAR ||
             (p.axes[i].kind == TL_AXIS_TILE && p.index[i].value == v);
    return is;
}

static int64_t loads_by(const TlValue *v, const TlBlock *body)
{
    int64_t n = 0;
    for (const TlOp *op = body->first; op; op = op->next)
        n += gathers_by(op, v) && op->out[0]->uses;
    return n;
}

static void consider(OnePlace *x, TlValue *v)
{
    const TlBlock *body = x->loop->regions[1];
    const TlType *t = v->type;
    if (t->kind != TL_TILE || t->rank != 1 || !tl_is_int(t->dtype) || t->ptr ||
        tl_type_elems(t) > MOST_LANES || !comes_from(v, body, is_carried, 0))
        return;
    int64_t loads = loads_by(v, body);
    if (loads > x->loads) {
        x->index = v;
        x->loads = loads;
    }
}

static void find_index(OnePlace *x)
{
    TlBlock *body = x->loop->regions[1];
    for (uint32_t i = 0; i < body->nargs; i++)
        consider(x, body->args[i]);
    for (TlOp *op = body->first; op; op = op->next)
        for (uint32_t i = 0; i < op->nout; i++)
            consider(x, op->out[i]);
}

/* ---- 3. what it costs ---- */

static bool pays(const OnePlace *x)
{
    int64_t lanes = x->index ? tl_type_elems(x->index->type) : 0;
    return x->loads * (lanes - 1) > ASKS && tl_loop_size(x->loop) <= MOST_OPS;
}

/* ---- 4. twice ---- */

/* Element 0 (picked.h). */
static TlValue *first_of(TlBuilder *b, TlValue *v)
{
    TlCtx *c = b->fn->module->ctx;
    const TlType *numbers = tl_type_with_dtype(c, v->type, TL_I32),
                 *one = tl_type_scalar(c, v->type->dtype);
    TlValue *iota = tl_op_new(b, TL_OP_IOTA, 0, NULL, 1, &numbers, 0, 0, NULL)->out[0],
            *is = tl_binary(b, TL_OP_EQ, iota, tl_const_int(b, numbers, 0)),
            *chosen = tl_select(b, is, v, tl_const_int(b, v->type, 0));
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = 0}, {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    return tl_op_new(b, TL_OP_REDUCE, 1, &chosen, 1, &one, 0, 2, attrs)->out[0];
}

/* Are no elements of v any other number? */
static TlValue *all_are(TlBuilder *b, TlValue *v, TlValue *number)
{
    TlCtx *c = b->fn->module->ctx;
    TlValue *differs = tl_binary(b, TL_OP_NE, v, tl_broadcast(b, number, 1, v->type->shape));
    const TlType *one = tl_type_scalar(c, TL_BOOL);
    TlAttr attrs[2] = {{.id = TL_ATTR_AXIS, .u.i = 0}, {.id = TL_ATTR_KIND, .u.i = TL_COMBINE_OR}};
    TlValue *any = tl_op_new(b, TL_OP_REDUCE, 1, &differs, 1, &one, 0, 2, attrs)->out[0];
    return tl_binary(b, TL_OP_EQ, any, tl_const_bits(b, one, 0));
}

/* The load of one element, for all lanes. */
static TlValue *load_once(TlBuilder *b, const TlOp *load, TlValue *number, TlMap *map)
{
    TlPlace p = tl_op_place(load);
    TlAxis *axes = TL_NEW_ARRAY(&b->fn->module->arena, TlAxis, p.naxes);
    TlValue *in[1 + TL_MAX_VIEW_RANK] = {tl_mapped(map, p.base)};
    for (uint32_t i = 0; i < p.naxes; i++) {
        bool is_scalar = p.axes[i].kind == TL_AXIS_SCALAR;
        axes[i] = (TlAxis){.kind = TL_AXIS_SCALAR};
        in[1 + i] = is_scalar ? tl_mapped(map, p.index[i].value) : number;
    }
    const TlType *of = load->out[0]->type, *one = tl_type_scalar(b->fn->module->ctx, of->dtype);
    TlOp *op = tl_op_like(b, load, 1 + p.naxes, in, 1, &one);
    tl_attr_set(b->fn, op, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    return tl_broadcast(b, op->out[0], of->rank, of->shape);
}

/* All of the block from `from` on, but its end, where all of the index tile is `number`. */
static void copy_once(TlBuilder *b, const OnePlace *x, const TlOp *from, TlValue *number,
                      TlMap *map)
{
    tl_map_put_ptr(map, x->index, tl_broadcast(b, number, 1, x->index->type->shape));
    for (const TlOp *op = from; op->next; op = op->next) {
        b->loc = op->loc;
        if (gathers_by(op, x->index))
            tl_map_put_ptr(map, op->out[0], load_once(b, op, number, map));
        else
            tl_op_clone(b, op, map);
    }
}

/* The operands of the block's end that are computed from `from` on. */
static uint32_t ends_of(const TlBlock *block, const TlOp *from, TlValue **out, TlArena *scratch)
{
    TlMap own = {.arena = scratch};
    uint32_t n = 0;
    for (const TlOp *op = from; op->next; op = op->next)
        for (uint32_t i = 0; i < op->nout; i++)
            tl_map_put_ptr(&own, op->out[i], op->out[i]);
    for (uint32_t i = 0; i < block->last->nin; i++)
        if (tl_map_get_ptr(&own, tl_in(block->last, i))) {
            out[n] = tl_in(block->last, i);
            tl_map_put_ptr(&own, out[n++], NULL);
        }
    return n;
}

static void split(const OnePlace *x, TlArena *scratch)
{
    TlBlock *body = x->loop->regions[1];
    TlOp *from = x->index->def ? x->index->def->next : body->first, *end = body->last;
    TlBuilder b = tl_builder_before(from);
    TlValue *number = first_of(&b, x->index), *is = all_are(&b, x->index, number);
    TlValue **ends = TL_NEW_ARRAY(scratch, TlValue *, end->nin);
    uint32_t n = ends_of(body, from, ends, scratch);
    const TlType **types = TL_NEW_ARRAY(scratch, const TlType *, n);
    for (uint32_t i = 0; i < n; i++)
        types[i] = ends[i]->type;
    TlOp *branch = tl_op_new(&b, TL_OP_IF, 1, &is, n, types, 2, 0, NULL);
    tl_remark(b.fn, branch, TL_REMARK_ONE_PLACE, x->loads);
    TlMap map = {.arena = scratch};
    TlValue **copies = TL_NEW_ARRAY(scratch, TlValue *, n);
    b = tl_builder_end(branch->regions[0]);
    copy_once(&b, x, from, number, &map);
    for (uint32_t i = 0; i < n; i++)
        copies[i] = tl_mapped(&map, ends[i]);
    tl_yield(&b, TL_OP_YIELD, n, copies);
    b = tl_builder_end(branch->regions[1]);
    TlOp *stop = tl_yield(&b, TL_OP_YIELD, n, ends);
    for (TlOp *op = from, *next; op != end; op = next) {
        next = op->next;
        tl_op_move_before(op, stop);
    }
    for (uint32_t i = 0; i < end->nin; i++)
        for (uint32_t k = 0; k < n; k++)
            if (tl_in(end, i) == ends[k]) {
                tl_set_operand(end, i, branch->out[k]);
                break;
            }
}

TlPassResult tl_pass_one_place(TlFn *fn, TlPassCtx *px)
{
    bool changed = false;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        OnePlace x = {.loop = op};
        if (is_while_any(op))
            find_index(&x);
        if (!pays(&x))
            continue;
        split(&x, px->scratch);
        changed = true;
    }
    return changed ? TL_CHANGED : TL_SAME;
}
