/* Tiles with a halo, whose rows begin with a register's elements of memory.
 *
 * A filter computes some columns more than it stores: 256 and 6, from 3 columns before the first.
 * Programs begin at multiples of 64, so all its vectors would lie across two lines of memory. With
 * some more columns before, which nobody sees, they begin with lines.
 *
 *     %c = add (broadcast %i - 3), iota : 262   =>   %c = add (broadcast %i - 3), iota - 13 : 275
 *     %v = load %x, %j, %c : 8 x 262            =>   %v = load %x, %j, %c : 8 x 275
 *     %w = gather %v, 6 + iota : 8 x 256        =>   %w = gather %v, 19 + iota : 8 x 256
 *
 *   1. check  tiles whose rows are some elements longer than what is stored: loaded, computed
 *             element by element, moved by numbers that are known
 *   2. lead   how many columns all loads of such begin before a multiple of a register's
 *   3. price  accesses across lines, beside vectors that become more
 *   4. move   such tiles get so many columns more, before their first ones */
#include <string.h>

#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"

enum {
    MOST_HALO = 64, /* columns */
    LINE = 64,      /* bytes of memory */
    ACROSS = 2,     /* accesses that a load takes in addition, of lines that all are across: one of
                       so many */
    MOST_DEPTH = 8
};

typedef struct Halo {
    TlFn *fn;
    const TlNestMachine *m;
    TlArena *arena;
    int64_t step;        /* columns that are stored */
    int64_t lanes;       /* of a register */
    int64_t lead;        /* columns before; -1: not known yet */
    int64_t columns;     /* of the widest tile */
    int64_t loads, work; /* rows that are loaded, ops of rows */
    TlMap starts;        /* of slices, to those that are so many columns before */
} Halo;

/* ---- 1. check ---- */

static int last_of(const TlValue *v)
{
    return v->type->rank - 1;
}

/* Has it some columns more than are stored? */
static bool is_wider(const Halo *h, const TlValue *v)
{
    if (v->type->kind != TL_TILE || v->type->rank < 1)
        return false;
    int64_t n = v->type->shape[last_of(v)];
    return n > h->step && n <= h->step + MOST_HALO;
}

/* The columns of all stores; 0: they differ. */
static int64_t step_of(const TlFn *fn)
{
    int64_t step = 0;
    for (const TlOp *op = fn->body->first; op; op = op->next) {
        if (op->opcode != TL_OP_STORE)
            continue;
        TlPlace p = tl_op_place(op);
        const TlAxis *last = p.axes && p.naxes ? &p.axes[p.naxes - 1] : NULL;
        if (!last || p.pointwise || last->kind != TL_AXIS_SLICE || (step && step != last->width))
            return 0;
        step = last->width;
    }
    return step;
}

/* ---- 2. lead ---- */

/* v as a number more than a multiple of h->lanes; false: it is not known. */
static bool find_start(const Halo *h, const TlValue *v, int64_t *out)
{
    int axis;
    const TlValue *scalar = tl_nest_without_number(v, out);
    return scalar->def && tl_nest_drift_step(scalar->def, &axis) % h->lanes == 0 &&
           tl_nest_drift_step(scalar->def, &axis) > 0;
}

/* The same of the first number of an index tile that counts up, within bounds of one number. */
static bool find_first(const Halo *h, const TlValue *v, int64_t *out, int depth)
{
    const TlOp *op = v->def;
    *out = 0;
    if (!op || depth > MOST_DEPTH)
        return false;
    if (op->opcode == TL_OP_MIN || op->opcode == TL_OP_MAX || op->opcode == TL_OP_CAST)
        return find_first(h, tl_in(op, 0), out, depth + 1) ||
               (op->nin > 1 && find_first(h, tl_in(op, 1), out, depth + 1));
    for (uint32_t i = 0; op->opcode == TL_OP_ADD && i < 2; i++) {
        const TlOp *a = tl_in(op, i)->def, *b = tl_in(op, 1 - i)->def;
        if (a && b && a->opcode == TL_OP_IOTA && b->opcode == TL_OP_BROADCAST &&
            tl_in(b, 0)->type->rank == 0)
            return find_start(h, tl_in(b, 0), out);
    }
    return false;
}

static bool note_lead(Halo *h, int64_t start)
{
    int64_t lead = (start % h->lanes + h->lanes) % h->lanes;
    bool agrees = h->lead < 0 || h->lead == lead;
    h->lead = lead;
    return agrees;
}

/* May a load have columns more before its first ones? */
static bool may_load(Halo *h, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    int last = last_of(op->out[0]);
    if (!p.axes || p.pointwise || p.mask || (p.other && p.other->type->rank) ||
        tl_attr_flag(op, TL_ATTR_UNCHECKED))
        return false;
    bool is = false;
    for (uint32_t i = 0; i < p.naxes; i++) {
        const TlValue *v = p.index[i].value;
        int64_t start = 0;
        bool tile = p.axes[i].kind == TL_AXIS_TILE;
        if (tl_place_dim(&p, i) != last) {
            if (tile && is_wider(h, v))
                return false;
            continue;
        }
        is = i + 1 == p.naxes && (tile ? find_first(h, v, &start, 0) : find_start(h, v, &start)) &&
             (tile || (p.axes[i].kind == TL_AXIS_SLICE && p.axes[i].step == 1)) &&
             note_lead(h, start);
    }
    h->loads += tl_type_elems(op->out[0]->type) / op->out[0]->type->shape[last];
    return is;
}

/* Does an op that renames or repeats axes keep the last one the last? */
static bool keeps_last(const Halo *h, const TlOp *op)
{
    const TlValue *from = tl_in(op, 0), *to = op->out[0];
    if (op->opcode == TL_OP_RESHAPE && !tl_nest_is_renaming(op))
        return false;
    if (!is_wider(h, from)) /* what is repeated has one column */
        return op->opcode == TL_OP_BROADCAST &&
               (from->type->rank == 0 || from->type->shape[last_of(from)] == 1);
    return is_wider(h, to) &&
           (op->opcode == TL_OP_BROADCAST || tl_nest_axis_under(op, last_of(to)) == last_of(from));
}

static bool may_gather(const Halo *h, const TlOp *op)
{
    int64_t first;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    if (!is_wider(h, tl_in(op, 0)))
        return false;
    return axis == last_of(op->out[0]) ? tl_counts_along(tl_in(op, 1), axis, &first)
                                       : is_wider(h, op->out[0]);
}

static bool may_lead(Halo *h, const TlOp *op)
{
    bool wider = op->nregions > 0;
    for (uint32_t i = 0; i < op->nout; i++)
        wider |= is_wider(h, op->out[i]);
    for (uint32_t i = 0; i < op->nin; i++)
        wider |= is_wider(h, tl_in(op, i));
    if (!wider)
        return true;
    if (op->nregions || op->nout != 1 || op->out[0]->type->ptr)
        return false;
    const TlType *t = op->out[0]->type;
    int64_t n = t->shape[t->rank - 1];
    h->columns = n > h->columns ? n : h->columns;
    bool each = tl_op_info(op->opcode)->flags & F_ELEM;
    if (each && tl_dtype_bytes(t->dtype) * h->lanes == h->m->vector_bytes)
        h->work += tl_type_elems(t) / n * tl_elem_work(op->opcode)->cpu;
    if (op->opcode == TL_OP_LOAD)
        return is_wider(h, op->out[0]) && may_load(h, op);
    if (op->opcode == TL_OP_GATHER)
        return may_gather(h, op);
    if (op->opcode == TL_OP_BROADCAST || op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_RESHAPE)
        return keeps_last(h, op);
    return each || op->opcode == TL_OP_CONST || op->opcode == TL_OP_IOTA;
}

/* ---- 3. price ---- */

static bool pays(const Halo *h)
{
    int64_t vectors = (h->columns + h->lanes - 1) / h->lanes,
            more = (h->columns + h->lead + h->lanes - 1) / h->lanes - vectors;
    return h->lead > 0 && h->loads &&
           vectors * h->loads * h->m->vector_bytes >
               more * ACROSS * LINE * (h->work + 2 * h->loads);
}

/* ---- 4. move ---- */

static const TlType *led_type(const Halo *h, const TlType *t)
{
    int32_t shape[TL_MAX_RANK];
    memcpy(shape, t->shape, sizeof shape);
    shape[t->rank - 1] += (int32_t)h->lead;
    return tl_type_with_shape(h->fn->module->ctx, t, t->rank, shape);
}

/* first, first + 1, ... along the last axis of a type. */
static TlValue *count(TlBuilder *b, const TlType *like, int64_t first)
{
    TlCtx *c = b->fn->module->ctx;
    int32_t shape[TL_MAX_RANK], n = like->shape[like->rank - 1];
    const TlType *row = tl_type_with_shape(c, like, 1, &n), *apart;
    TlValue *v = tl_op_new(b, TL_OP_IOTA, 0, NULL, 1, &row, 0, 0, NULL)->out[0];
    if (first)
        v = tl_binary(b, TL_OP_ADD, v, tl_const_int(b, row, first));
    for (int d = 0; d < like->rank; d++)
        shape[d] = d + 1 < like->rank ? 1 : n;
    apart = tl_type_with_shape(c, like, like->rank, shape);
    if (like->rank > 1)
        v = tl_op_new(b, TL_OP_RESHAPE, 1, &v, 1, &apart, 0, 0, NULL)->out[0];
    return tl_broadcast(b, v, like->rank, like->shape);
}

/* Numbers of columns: those of the first ones are less than 0. */
static void move_iota(const Halo *h, TlOp *op)
{
    TlBuilder b = tl_builder_after(op->out[0]);
    TlValue *v = op->out[0], *zero = tl_const_int(&b, v->type, 0), *moved;
    moved = tl_binary(&b, TL_OP_ADD, zero, tl_const_int(&b, v->type, -h->lead));
    tl_replace_uses(v, moved);
    tl_set_operand(moved->def, 0, v);
}

/* The start of a slice, so many columns before: once for all that begin there, and as a scalar and
 * one number, as accesses are compared by that. */
static TlValue *move_start(Halo *h, TlValue *v)
{
    TlValue *known = tl_map_get_ptr(&h->starts, v), *scalar = v;
    TlWideInt number = 0;
    if (known)
        return known;
    for (uint32_t i = 0; v->def->opcode == TL_OP_ADD && scalar == v && i < 2; i++)
        if (tl_const_int_value(tl_in(v->def, i), &number))
            scalar = tl_in(v->def, 1 - i);
    number = scalar == v ? -h->lead : number - h->lead;
    TlBuilder b = tl_builder_after(v);
    TlValue *made = tl_binary(&b, TL_OP_ADD, scalar, tl_const_int(&b, v->type, (int64_t)number));
    tl_map_put_ptr(&h->starts, v, made);
    return made;
}

static void move_slice(Halo *h, TlOp *op)
{
    TlPlace p = tl_op_place(op);
    uint32_t last = p.naxes - 1;
    if (p.axes[last].kind != TL_AXIS_SLICE)
        return;
    TlValue *start = move_start(h, p.index[last].value);
    TlAxis *axes = TL_NEW_ARRAY(&h->fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    axes[last].width += (int32_t)h->lead;
    tl_set_operand(op, (uint32_t)(&p.index[last] - op->in), start);
    tl_attr_set(h->fn, op, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
}

/* Columns of a tile that has more before them; `first` was the first one. */
static void move_gather(const Halo *h, TlOp *op, bool wider, int64_t first)
{
    TlBuilder b = tl_builder_before(op);
    tl_set_operand(op, 1, count(&b, tl_in(op, 1)->type, wider ? first : first + h->lead));
}

typedef struct Move {
    TlOp *op;
    bool wider, along; /* its result; a gather along the columns of such */
    int64_t first;
} Move;

static Move find_move(const Halo *h, TlOp *op)
{
    Move x = {.op = op, .wider = op->nout == 1 && is_wider(h, op->out[0])};
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    x.along = op->opcode == TL_OP_GATHER && is_wider(h, tl_in(op, 0)) &&
              axis == last_of(op->out[0]) && tl_counts_along(tl_in(op, 1), axis, &x.first);
    return x;
}

static void move_all(Halo *h)
{
    TL_VEC(Move) all = {0};
    for (TlOp *op = h->fn->body->first; op; op = op->next)
        tl_vec_push(h->arena, &all, find_move(h, op));
    for (uint32_t i = 0; i < all.len; i++)
        if (all.data[i].wider)
            all.data[i].op->out[0]->type = led_type(h, all.data[i].op->out[0]->type);
    for (uint32_t i = 0; i < all.len; i++) {
        const Move *x = &all.data[i];
        if (x->wider && x->op->opcode == TL_OP_IOTA)
            move_iota(h, x->op);
        if (x->wider && x->op->opcode == TL_OP_LOAD)
            move_slice(h, x->op);
        if (x->along)
            move_gather(h, x->op, x->wider, x->first);
    }
}

TlFn *tl_nest_lead(const TlFn *fn, const TlNestMachine *m, TlArena *arena, int64_t *out_lead)
{
    Halo h = {.m = m,
              .arena = arena,
              .step = step_of(fn),
              .lanes = m->vector_bytes,
              .lead = -1,
              .starts = {.arena = arena}};
    for (const TlOp *op = fn->body->first; op && h.step; op = op->next)
        if (op->opcode == TL_OP_LOAD && op->out[0]->type->rank) {
            int64_t lanes = m->vector_bytes / (int64_t)tl_gen_elem_bytes(op->out[0]->type);
            h.lanes = lanes < h.lanes ? lanes : h.lanes;
        }
    for (const TlOp *op = fn->body->first; op && h.step; op = op->next)
        if (!may_lead(&h, op))
            return NULL;
    if (!h.step || !pays(&h))
        return NULL;
    TlMap copy = {.arena = arena};
    h.fn = tl_nest_copy_function(fn, &copy);
    move_all(&h);
    tl_nest_drop_unused(h.fn, arena);
    TlSbuf fault;
    tl_sbuf_init(&fault, arena);
    TL_ASSERT(tl_verify_fn(h.fn, &fault), "'%s': %s", fn->name, fault.text ? fault.text : "");
    *out_lead = h.lead;
    return h.fn;
}
