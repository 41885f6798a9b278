/* split-rows: short rows, each of whose columns becomes a tile of its own.
 *
 * A row of three or four elements does not fill a vector; a column of 128 does. What is computed
 * element by element, reduced along the rows or put together from columns is as well computed
 * column by column:
 *
 *     %v = load %x, %i, 0 {axes = [128, 3]}    %v0 = load %x, %i, 0 {axes = [128, i]}, and 1, 2
 *     %b = broadcast %a : tile<f32, 128, 3>    (%a: tile<f32, 128, 1>, an expand of %c)
 *     %w = mul %v, %b                          %w0 = mul %v0, %c, ...
 *     %s = reduce %w {axis = 1, kind = add} => %s = add (add %w0, %w2), %w1
 *     %t = select (iota == 0), %p, %q          %t0 = %p, %t1 = %q, %t2 = %q
 *     store %y, %i, 0, %t                      store %y, %i, 0, %t0, ...
 *
 * On the CPU, loads of neighbouring columns share what they load, and stores of such are
 * interleaved (codegen/nest/nest_join.c). Where rows only go through, they are one axis with their
 * neighbours there (nest_fold.c), which is better still: so this is done only where columns meet
 * what has none, by a reduction along the rows or a column that they repeat. GPUs keep tiles.
 *
 *   1. groups   values with rows of so many elements, which ops take one from another
 *   2. check    what makes and takes the values of a group works column by column
 *   3. price    vectors of rows, beside those of columns and what takes columns from memory
 *   4. columns  as far as a group's values lead; what nobody uses then is dce's */
#include <string.h>

#include "ir/rewrite.h"
#include "passes/pass.h"

enum {
    MOST_COLUMNS = 4,
    REGISTER = 32 /* bytes of a vector, as most CPUs have */
};

/* Values that go together. */
typedef struct Group {
    bool stays;            /* some op wants rows */
    bool meets;            /* columns meet what has none */
    int64_t rows, columns; /* vectors that are computed, by the one and by the other */
} Group;

typedef struct Split {
    TlFn *fn;
    TlArena *arena;
    uint32_t *parent; /* by value id, of one group: a number that is less, or its own */
    Group *group;     /* by the least value id of it */
    uint32_t nvalues; /* that have such */
    TlMap columns;    /* value to its columns, TlValue ** */
    TlMap only;       /* value with rows of one element to that without their axis */
} Split;

/* So many elements have its rows; 0: it is none with such. */
static int columns_of(const TlType *t)
{
    bool is = t->kind == TL_TILE && t->rank > 0 && !t->ptr && tl_dtype_bits(t->dtype) >= 8;
    int n = is ? t->shape[t->rank - 1] : 0;
    return n > 1 && n <= MOST_COLUMNS ? n : 0;
}

static int last_of(const TlType *t)
{
    return t->rank - 1;
}

static bool is_along_rows(const TlOp *op)
{
    return op->opcode == TL_OP_REDUCE && columns_of(tl_in(op, 0)->type) &&
           tl_attr_int(op, TL_ATTR_AXIS, 0) == last_of(tl_in(op, 0)->type);
}

static bool carries(const TlOp *op)
{
    return op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF || op->opcode == TL_OP_YIELD;
}

/* ---- 1. groups ---- */

static Group *group_of(const Split *s, const TlValue *v)
{
    uint32_t id = v->id;
    while (s->parent[id] != id)
        id = s->parent[id];
    return &s->group[id];
}

static void tie(Split *s, const TlValue *v, const TlValue *w)
{
    uint32_t x = (uint32_t)(group_of(s, v) - s->group), y = (uint32_t)(group_of(s, w) - s->group);
    s->parent[x > y ? x : y] = x < y ? x : y;
}

static uint32_t count_values(const TlOp *op)
{
    return op->nin + op->nout;
}

static TlValue *value_at(const TlOp *op, uint32_t i)
{
    return i < op->nin ? tl_in(op, i) : op->out[i - op->nin];
}

static void tie_op(Split *s, const TlOp *op)
{
    const TlValue *first = NULL;
    if (op->nregions || tl_op_info(op->opcode)->flags & F_TERM) {
        for (uint32_t i = 0; i < op->nin; i++) {
            const TlValue *to = tl_flows_to(op, i);
            if (to && columns_of(to->type))
                tie(s, tl_in(op, i), to);
        }
        for (uint32_t i = 0; op->opcode == TL_OP_FOR && i < op->nout; i++) /* of no trip */
            if (columns_of(op->out[i]->type))
                tie(s, op->regions[0]->args[1 + i], op->out[i]);
        return;
    }
    for (uint32_t i = 0; i < count_values(op) && !is_along_rows(op); i++) {
        const TlValue *v = value_at(op, i);
        if (!columns_of(v->type))
            continue;
        first = first ? first : v;
        tie(s, first, v);
    }
}

/* ---- 2. check ---- */

/* Is the place's last axis the tile's, a slice, and is each row's place found without the column?
 */
static bool has_columns(const TlPlace *p, const TlType *t)
{
    const TlAxis *last = p->axes && p->naxes ? &p->axes[p->naxes - 1] : NULL;
    if (!last || p->pointwise || last->kind != TL_AXIS_SLICE || p->rank != t->rank ||
        memcmp(p->shape, t->shape, sizeof *t->shape * (size_t)t->rank) != 0)
        return false;
    const TlValue *also[] = {p->mask, p->other};
    for (int i = 0; i < 2; i++)
        if (also[i] && also[i]->type->rank && !tl_same_shape(also[i]->type, t))
            return false;
    return true;
}

/* Are all tiles among the operands of that shape? */
static bool has_one_shape(const TlOp *op, const TlType *t)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlType *x = tl_in(op, i)->type;
        if (x->kind != TL_TILE || (x->rank && !tl_same_shape(x, t)))
            return false;
    }
    return true;
}

/* Does an op, one of whose values has columns, work by these? */
static bool works_by_columns(const TlOp *op)
{
    const TlType *out = op->nout ? op->out[0]->type : NULL,
                 *in = op->nin ? tl_in(op, 0)->type : NULL;
    bool makes = out && columns_of(out), takes = in && columns_of(in);
    if (tl_op_info(op->opcode)->flags & F_ELEM)
        return makes && op->opcode != TL_OP_ASM && has_one_shape(op, out);
    switch ((int)op->opcode) {
    case TL_OP_CONST:
    case TL_OP_IOTA: return true;
    case TL_OP_BROADCAST: return makes && (takes || in->rank == 0 || in->shape[last_of(in)] == 1);
    case TL_OP_EXPAND: return makes && takes;
    case TL_OP_RESHAPE: return makes && takes && columns_of(in) == columns_of(out);
    case TL_OP_REDUCE: return takes && op->nin == 1 && !op->nregions;
    case TL_OP_LOAD:
    case TL_OP_STORE:
    case TL_OP_INSIDE: {
        TlPlace p = tl_op_place(op);
        const TlType *t = p.value ? p.value->type : out;
        return t && columns_of(t) && has_columns(&p, t);
    }
    }
    return false;
}

static void keep(Split *s, const TlValue *v)
{
    if (columns_of(v->type))
        group_of(s, v)->stays = true;
}

static void keep_all(Split *s, const TlOp *op)
{
    for (uint32_t i = 0; i < count_values(op); i++)
        keep(s, value_at(op, i));
    for (uint32_t r = 0; r < op->nregions; r++)
        for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
            keep(s, op->regions[r]->args[i]);
}

/* ---- 3. price ---- */

/* The value that says what an op is for its group; NULL: it is of none. */
static const TlValue *main_value(const TlOp *op)
{
    const TlValue *v = op->opcode == TL_OP_STORE            ? tl_op_place(op).value
                       : is_along_rows(op) || op->nout == 0 ? (op->nin ? tl_in(op, 0) : NULL)
                                                            : op->out[0];
    if (v && columns_of(v->type))
        return v;
    return op->nin && columns_of(tl_in(op, 0)->type) ? tl_in(op, 0) : NULL;
}

/* Does it repeat a column, of more than one row? */
static bool repeats_column(const TlOp *op)
{
    const TlType *in = op->opcode == TL_OP_BROADCAST ? tl_in(op, 0)->type : NULL;
    return in && in->rank && in->shape[last_of(in)] == 1 && tl_type_elems(in) > 1;
}

static void price_op(Split *s, const TlOp *op, const TlValue *v)
{
    const TlType *t = v->type;
    Group *g = group_of(s, v);
    int n = columns_of(t);
    int64_t lanes = REGISTER / (tl_dtype_bits(t->dtype) / 8), rows = tl_type_elems(t) / n,
            along = t->rank > 1 ? t->shape[t->rank - 2] : 1,
            vectors = rows / along * n * ((along + lanes - 1) / lanes),
            work = tl_elem_work(op->opcode)->cpu;
    bool moves = op->opcode == TL_OP_LOAD || op->opcode == TL_OP_STORE;
    if (moves) { /* columns are taken from as many vectors side by side */
        g->rows += rows;
        g->columns += vectors * n;
    } else if (is_along_rows(op)) {
        g->meets = true;
        g->rows += rows * n;
        g->columns += vectors;
    } else {
        g->meets |= repeats_column(op);
        g->rows += rows * work;
        g->columns += vectors * work;
    }
}

static bool pays(const Group *g)
{
    return !g->stays && g->meets && g->columns < g->rows;
}

/* Its columns are to be made. */
static bool splits(const Split *s, const TlValue *v)
{
    return v->id < s->nvalues && columns_of(v->type) && pays(group_of(s, v));
}

static bool find_groups(Split *s)
{
    bool any = false;
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL))
        tie_op(s, op);
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        const TlValue *v = main_value(op);
        if (carries(op))
            continue;
        if (v && works_by_columns(op))
            price_op(s, op, v);
        else
            keep_all(s, op);
        if (is_along_rows(op))
            keep(s, op->out[0]);
    }
    for (uint32_t i = 0; i < s->nvalues && !any; i++)
        any = pays(&s->group[i]);
    return any;
}

/* ---- 4. columns ---- */

static const TlType *column_type(const Split *s, const TlType *t)
{
    return tl_type_with_shape(s->fn->module->ctx, t, t->rank - 1, t->shape);
}

static TlValue **columns_in(const Split *s, const TlValue *v)
{
    return tl_map_get_ptr(&s->columns, v);
}

/* The op once more, with types and operands of a column. */
static TlValue *of_column(Split *s, TlBuilder *b, const TlOp *op, int c)
{
    const TlType *t = column_type(s, op->out[0]->type);
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++) {
        TlValue **of = columns_in(s, tl_in(op, i));
        in[i] = of ? of[c] : tl_in(op, i);
    }
    return tl_op_like(b, op, op->nin, in, 1, &t)->out[0];
}

/* A load, store or `inside` of one column. */
static TlOp *access_column(Split *s, TlBuilder *b, const TlOp *op, int64_t c)
{
    TlPlace p = tl_op_place(op);
    uint32_t last = p.naxes - 1, at = (uint32_t)(&p.index[last] - op->in);
    TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
    for (uint32_t i = 0; i < op->nin; i++) {
        TlValue **of = columns_in(s, tl_in(op, i));
        in[i] = of ? of[c] : tl_in(op, i);
    }
    TlAxis *axes = TL_NEW_ARRAY(&s->fn->module->arena, TlAxis, p.naxes);
    memcpy(axes, p.axes, sizeof *axes * p.naxes);
    axes[last] = (TlAxis){.kind = TL_AXIS_SCALAR};
    if (c) { /* in i64: i32 could overflow where the slice did not */
        TlValue *start = tl_cast(b, in[at], in[at]->type->dtype == TL_U64 ? TL_U64 : TL_I64);
        in[at] =
            tl_binary(b, TL_OP_ADD, start, tl_const_int(b, start->type, c * p.axes[last].step));
    }
    const TlType *t = op->nout ? column_type(s, op->out[0]->type) : NULL;
    TlOp *made = tl_op_like(b, op, op->nin, in, op->nout, &t);
    tl_attr_set(s->fn, made, (TlAttr){.id = TL_ATTR_AXES, .n = p.naxes, .u.axes = axes});
    return made;
}

/* A value with rows of one element, without their axis. */
static TlValue *only_column(Split *s, TlValue *v)
{
    TlValue *known = tl_map_get_ptr(&s->only, v);
    if (known)
        return known;
    TlOp *op = v->def;
    TlBuilder b = tl_builder_after(v);
    const TlType *t = column_type(s, v->type);
    bool each = op && tl_op_info(op->opcode)->flags & F_ELEM && op->opcode != TL_OP_ASM &&
                has_one_shape(op, v->type);
    TlPlace p = {0};
    if (op && op->opcode == TL_OP_LOAD)
        p = tl_op_place(op);
    TlValue *made;
    if (op && op->opcode == TL_OP_EXPAND && tl_attr_int(op, TL_ATTR_AXIS, 0) == last_of(v->type)) {
        made = tl_in(op, 0);
    } else if (p.axes && has_columns(&p, v->type) && !(p.mask && p.mask->type->rank) &&
               !(p.other && p.other->type->rank)) {
        made = access_column(s, &b, op, 0)->out[0];
    } else if (each) {
        TlValue **in = TL_NEW_ARRAY(s->arena, TlValue *, op->nin);
        for (uint32_t i = 0; i < op->nin; i++)
            in[i] = tl_in(op, i)->type->rank ? only_column(s, tl_in(op, i)) : tl_in(op, i);
        b = tl_builder_after(v);
        made = tl_op_like(&b, op, op->nin, in, 1, &t)->out[0];
    } else {
        made = tl_op_new(&b, TL_OP_RESHAPE, 1, &v, 1, &t, 0, 0, NULL)->out[0];
    }
    tl_map_put_ptr(&s->only, v, made);
    return made;
}

static TlValue *repeat(TlBuilder *b, TlValue *v, const TlType *t)
{
    return tl_broadcast(b, v, t->rank, t->shape);
}

/* Column c of what op makes. */
static TlValue *make_column(Split *s, TlBuilder *b, const TlOp *op, int c)
{
    const TlType *t = column_type(s, op->out[0]->type);
    TlValue **of = op->nin ? columns_in(s, tl_in(op, 0)) : NULL;
    switch ((int)op->opcode) {
    case TL_OP_CONST: return tl_const_bits(b, t, tl_attr(op, TL_ATTR_VALUE)->u.bits);
    case TL_OP_IOTA: return tl_const_int(b, t, c);
    case TL_OP_BROADCAST:
        return repeat(b,
                      of                              ? of[c]
                      : tl_in(op, 0)->type->rank == 0 ? tl_in(op, 0)
                                                      : only_column(s, tl_in(op, 0)),
                      t);
    case TL_OP_EXPAND:
    case TL_OP_RESHAPE:
        return of[c]->type->rank == 0 ? repeat(b, of[c], t) : of_column(s, b, op, c);
    case TL_OP_LOAD:
    case TL_OP_INSIDE: return access_column(s, b, op, c)->out[0];
    }
    return of_column(s, b, op, c);
}

/* All columns, combined by halves, as the interpreter does it; f16 and bf16 in f32. */
static TlValue *combine(Split *s, TlBuilder *b, const TlOp *reduce)
{
    const TlValue *v = tl_in(reduce, 0);
    TlValue **of = columns_in(s, v), *x[MOST_COLUMNS];
    TlCombine kind = (TlCombine)tl_attr_int(reduce, TL_ATTR_KIND, 0);
    TlDtype dtype = v->type->dtype;
    bool wide = tl_combine_is_wide(kind) && (dtype == TL_F16 || dtype == TL_BF16);
    int n = columns_of(v->type);
    for (int c = 0; c < n; c++)
        x[c] = wide ? tl_cast(b, of[c], TL_F32) : of[c];
    for (; n > 1; n = (n + 1) / 2)
        for (int c = 0; c < n / 2; c++)
            x[c] = tl_binary(b, tl_combine_opcode(kind), x[c], x[(n + 1) / 2 + c]);
    return tl_cast(b, x[0], dtype);
}

static void split_block(Split *s, TlBlock *block);

static void add_columns(const Split *s, TlOp *op, const TlValue *v)
{
    TlValue **of = columns_in(s, v);
    for (int c = 0; c < columns_of(v->type); c++)
        tl_add_operand(s->fn, op, of[c]);
}

/* A loop or branch that carries some: their columns, too. */
static TlOp *split_carried(Split *s, TlOp *op)
{
    TL_VEC(TlValue *) more = {0};
    uint32_t had = op->nout;
    bool loops = op->opcode == TL_OP_FOR;
    bool *split = TL_NEW_ARRAY(s->arena, bool, had + 1);
    for (uint32_t i = 0; i < had; i++) {
        split[i] = splits(s, op->out[i]);
        if (!split[i] || !loops)
            continue;
        TlValue *arg = op->regions[0]->args[1 + i], **of = columns_in(s, tl_in(op, 3 + i)),
                **args = TL_NEW_ARRAY(s->arena, TlValue *, MOST_COLUMNS);
        for (int c = 0; c < columns_of(arg->type); c++) {
            tl_vec_push(s->arena, &more, of[c]);
            args[c] = tl_block_arg(op->regions[0], of[c]->type, arg->name);
        }
        tl_map_put_ptr(&s->columns, arg, args);
    }
    for (uint32_t r = 0; r < op->nregions; r++) {
        split_block(s, op->regions[r]);
        TlOp *yield = op->regions[r]->last;
        for (uint32_t i = 0; i < had; i++)
            if (split[i])
                add_columns(s, yield, tl_in(yield, i));
    }
    if (op->nregions == 0 || op->regions[0]->last->nin == had)
        return op;
    TlOp *made = tl_op_extend(s->arena, op, more.len, more.data);
    uint32_t at = had;
    for (uint32_t i = 0; i < had; i++) {
        if (!split[i])
            continue;
        TlValue **of = TL_NEW_ARRAY(s->arena, TlValue *, MOST_COLUMNS);
        for (int c = 0; c < columns_of(made->out[i]->type); c++)
            of[c] = made->out[at++];
        tl_map_put_ptr(&s->columns, made->out[i], of);
    }
    return made;
}

static void split_op(Split *s, TlOp *op)
{
    TlBuilder b = tl_builder_before(op);
    b.loc = op->loc;
    const TlValue *v = op->opcode == TL_OP_STORE ? tl_op_place(op).value : NULL;
    if (v && columns_in(s, v)) {
        for (int c = 0; c < columns_of(v->type); c++)
            access_column(s, &b, op, c);
        tl_op_erase(op);
    } else if (is_along_rows(op) && columns_in(s, tl_in(op, 0))) {
        TlValue *made = combine(s, &b, op);
        tl_replace_uses(op->out[0], made);
        tl_op_erase(op);
    } else if (op->nout == 1 && splits(s, op->out[0])) {
        TlValue **of = TL_NEW_ARRAY(s->arena, TlValue *, MOST_COLUMNS);
        for (int c = 0; c < columns_of(op->out[0]->type); c++)
            of[c] = make_column(s, &b, op, c);
        tl_map_put_ptr(&s->columns, op->out[0], of);
    }
}

static void split_block(Split *s, TlBlock *block)
{
    for (TlOp *op = block->first, *next; op; op = next) {
        next = op->next;
        if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_IF)
            split_carried(s, op);
        else if (op->nregions)
            for (uint32_t r = 0; r < op->nregions; r++)
                split_block(s, op->regions[r]);
        else
            split_op(s, op);
    }
}

TlPassResult tl_pass_split_rows(TlFn *fn, TlPassCtx *px)
{
    TlArena *arena = px->scratch;
    Split s = {.fn = fn,
               .arena = arena,
               .parent = TL_NEW_ARRAY(arena, uint32_t, fn->nvalues + 1),
               .group = TL_NEW_ARRAY(arena, Group, fn->nvalues + 1),
               .nvalues = fn->nvalues,
               .columns = {.arena = arena},
               .only = {.arena = arena}};
    for (uint32_t i = 0; i < fn->nvalues; i++)
        s.parent[i] = i;
    if (!find_groups(&s))
        return TL_SAME;
    split_block(&s, fn->body);
    return TL_CHANGED;
}
