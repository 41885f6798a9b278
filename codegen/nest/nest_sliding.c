/* Windows that slide along the lanes: extremes, bits and sums of integers of neighbours.
 *
 *     max(x[i - 2 +: B], x[i - 1 +: B], x[i +: B], x[i + 1 +: B], x[i + 2 +: B])
 *
 * Five loads, of which four cross cache lines, and four maxima. Where all is inside, a vector of
 * the last neighbour is enough: of two neighbours each lane is the maximum of it and of the one
 * before, which is a shuffle with the vector before; of four, the same of those two lanes back; of
 * five, that of four and of four one lane back. So n neighbours take about log2 n steps. The states
 * of the vector before stay in registers. Extremes and bits may have an element twice; sums are of
 * powers of two, each once, and only of integers, as those of floats would round otherwise.
 *
 * Neighbours in other rows of a tile are taken so, too, by a store that goes down columns: there a
 * state of a row before is in a register as it is, and no lane moves.
 *
 *   1. operands   of an op, of its operands that are the same op, and so on
 *   2. shift      which of them are the same value some elements further on
 *   3. steps      runs of these without gaps
 *   4. price      loads that cross lines and ops, beside shuffles and fewer ops; registers */
#include <math.h>

#include "codegen/nest/nest.h"
#include "ir/numeric.h"
#include "passes/analysis/facts.h"

enum {
    MOST_OPERANDS = 160,
    MOST_DEPTH = 64,      /* of operands that are the same op */
    MOST_LEAF_DEPTH = 12, /* of what an operand is computed from */
    HELD = 2,             /* the part of the registers that hold states: one of so many */
    PART = 4,             /* so great a part must be saved */
    TWO_AT_ONCE = 64,     /* bytes of registers of which one instruction takes lanes of two */
    MOST_ROWS = 16,       /* of a column that goes down, */
    MOST_CODE = 384       /* and values of all of them */
};

typedef struct Leaf {
    TlValue *value;
    int group; /* of those that are one value, elsewhere; -1: it is none of these */
    int64_t at;
} Leaf;

typedef struct Chain {
    TlNests *plan;
    TlNest *nest;
    int dim; /* along which neighbours lie: the lanes', or that of rows */
    TlOp *op;
    Leaf leaf[MOST_OPERANDS];
    int n;
    TlValue *floor;
} Chain;

/* ---- 1. operands ---- */

static bool is_for(TlOpcode o, TlDtype d)
{
    bool chooses = o == TL_OP_MIN || o == TL_OP_MAX || o == TL_OP_MIN_NAN || o == TL_OP_MAX_NAN;
    return chooses || o == TL_OP_AND || o == TL_OP_OR || (o == TL_OP_ADD && tl_is_int(d));
}

static bool is_plain(const TlNests *plan, const TlOp *op)
{
    return plan->place[op->out[0]->id].way == TL_NEST_BY_OP && !tl_map_get_ptr(&plan->rare, op) &&
           !tl_map_get_ptr(&plan->spreads, op);
}

static bool is_virtual(const TlNests *plan, const TlValue *v)
{
    return plan->place[v->id].kind == TL_NEST_VIRTUAL;
}

/* The operands in their order; false: they are too many. */
static bool add_leaves(Chain *c, const TlOp *op, int depth)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        TlValue *v = tl_in(op, i);
        const TlOp *def = v->def;
        bool same = def && def->opcode == c->op->opcode && v->type == c->op->out[0]->type &&
                    is_virtual(c->plan, v) && is_plain(c->plan, def) && v->uses && !v->uses->next;
        if (depth > MOST_DEPTH || c->n == MOST_OPERANDS)
            return false;
        if (same && !add_leaves(c, def, depth + 1))
            return false;
        if (!same)
            c->leaf[c->n++] = (Leaf){.value = v, .group = -1};
    }
    return true;
}

/* ---- 2. shift ---- */

typedef struct Shift {
    const TlNests *plan;
    int lane;  /* the dimension along which it is further on */
    bool rows; /* which is not the lanes' */
    bool is_known;
    int64_t by;
} Shift;

static bool is_by(Shift *s, int64_t by)
{
    bool agrees = !s->is_known || s->by == by;
    s->is_known = true;
    s->by = by;
    return agrees;
}

static bool is_affine_further(const TlNestAffine *f, const TlNestAffine *g, int64_t *out)
{
    if (!f->is || !g->is || f->period || g->period || f->unit || g->unit ||
        f->nterms != g->nterms || f->dtype != g->dtype || !f->least != !g->least ||
        !f->most != !g->most || f->mirrored != g->mirrored || f->way != g->way)
        return false;
    *out = g->offset - f->offset;
    for (uint32_t k = 0; k < f->nterms; k++) {
        int64_t by;
        if (f->minus[k] != g->minus[k] || !tl_nest_index_distance(f->term[k], g->term[k], &by))
            return false;
        *out += f->minus[k] ? -by : by;
    }
    return true;
}

static bool is_plain_load(const TlNestAccess *a)
{
    const TlPlace *p = &a->place;
    return a->loads && p->axes && a->has_interval && !a->asks && !p->mask && !p->other &&
           !p->pointwise && tl_dtype_bits(p->base->type->dtype) >= 8;
}

static bool is_load_further(Shift *s, const TlNestAccess *a, const TlNestAccess *b)
{
    const TlPlace *p = &a->place, *q = &b->place;
    int64_t by = 0;
    bool along = false;
    if (!is_plain_load(a) || !is_plain_load(b) || p->base != q->base || p->naxes != q->naxes)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlAxis *x = &p->axes[i], *y = &q->axes[i];
        bool lanes = a->axis[i].dim == s->lane;
        if (x->kind != y->kind || x->width != y->width || x->step != y->step ||
            a->axis[i].dim != b->axis[i].dim)
            return false;
        if (p->index[i].value == q->index[i].value && !lanes)
            continue;
        if (!lanes || along)
            return false;
        along = true;
        bool known = x->kind == TL_AXIS_SLICE
                         ? tl_nest_index_distance(p->index[i].value, q->index[i].value, &by)
                         : is_affine_further(&a->axis[i].affine, &b->axis[i].affine, &by);
        if (!known || (x->kind == TL_AXIS_SLICE && (x->step < 1 || by % x->step)))
            return false;
        by /= x->kind == TL_AXIS_SLICE ? x->step : 1;
    }
    return along && is_by(s, by);
}

/* Elements of a tile, all of them inside. */
static bool is_gather_further(Shift *s, const TlOp *a, const TlOp *b)
{
    const TlNestMove *m = tl_nest_move_of(s->plan, a, s->lane),
                     *o = tl_nest_move_of(s->plan, b, s->lane);
    const TlValue *x = tl_in(a, 0);
    if (s->rows || x != tl_in(b, 0) || !m || !o || m->rows || o->rows || !m->known || !o->known ||
        m->window.step != 1 || o->window.step != 1 || m->window.wraps || o->window.wraps)
        return false;
    int64_t n = a->out[0]->type->shape[s->lane], end = x->type->shape[s->lane] - n;
    return m->window.start >= 0 && m->window.start <= end && o->window.start >= 0 &&
           o->window.start <= end && is_by(s, o->window.start - m->window.start);
}

static bool is_same_op(const TlOp *a, const TlOp *b)
{
    bool same = a && b && a->opcode == b->opcode && a->nin == b->nin && a->nout == 1 &&
                b->nout == 1 && a->nattrs == b->nattrs && a->out[0]->type == b->out[0]->type;
    for (uint32_t i = 0; same && i < a->nattrs; i++) {
        const TlAttr *other = tl_attr(b, a->attrs[i].id);
        same = other && tl_attr_equal(&a->attrs[i], other);
    }
    return same;
}

static bool is_one_number(const TlValue *v)
{
    const TlOp *op = v->def;
    return v->type->rank == 0 ||
           (op && (op->opcode == TL_OP_CONST ||
                   (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0)));
}

/* Is b what a is, elements further on along the lanes? */
static bool is_shifted(Shift *s, const TlValue *a, const TlValue *b, int depth)
{
    if (a == b)
        return is_one_number(a) || is_by(s, 0);
    const TlOp *f = a->def, *g = b->def;
    if (depth > MOST_LEAF_DEPTH || !is_virtual(s->plan, a) || !is_virtual(s->plan, b) || !f || !g ||
        f->opcode != g->opcode)
        return false;
    if (f->opcode == TL_OP_LOAD)
        return is_load_further(s, tl_map_get_ptr(&s->plan->access, f),
                               tl_map_get_ptr(&s->plan->access, g));
    if (f->opcode == TL_OP_GATHER)
        return is_gather_further(s, f, g);
    bool is = is_same_op(f, g) &&
              (f->opcode == TL_OP_CONST ||
               ((tl_op_info(f->opcode)->flags & F_ELEM || f->opcode == TL_OP_CONVERT) &&
                (is_plain(s->plan, f) && is_plain(s->plan, g))));
    for (uint32_t i = 0; is && i < f->nin; i++)
        is = is_shifted(s, tl_in(f, i), tl_in(g, i), depth + 1);
    return is;
}

static void find_groups(Chain *c)
{
    for (int i = 0; i < c->n; i++) {
        Leaf *x = &c->leaf[i];
        if (is_one_number(x->value))
            continue;
        x->group = i;
        for (int k = 0; k < i && x->group == i; k++) {
            Shift s = {.plan = c->plan, .lane = c->dim, .rows = c->dim != c->nest->lane};
            bool first = c->leaf[k].group == k;
            if (first && is_shifted(&s, c->leaf[k].value, x->value, 0) && s.is_known) {
                x->group = k;
                x->at = s.by;
            }
        }
    }
}

/* ---- 3. steps ---- */

static void add_step(TlNestTaps *t, int of, int with, int by)
{
    t->step[t->nsteps++] = (TlNestTapStep){of, with, by};
}

/* State k is of 2^k neighbours, up to all or half of them. */
static void find_steps(TlNestTaps *t, bool once)
{
    int n = 1, top = 0;
    for (; 2 * n <= t->n; n *= 2, top++)
        add_step(t, top, top, n);
    if (!once && n < t->n)
        add_step(t, top, top, t->n - n);
    for (int bit = n / 2, k = top - 1; once && bit; bit /= 2, k--)
        if (t->n & bit) /* behind what there is */
            add_step(t, t->nsteps, k, bit);
}

/* ---- 4. price ---- */

/* Quarters of a cycle, of a register: a load that begins anywhere, an op, a shuffle of two. */
typedef struct Cost {
    int bytes, load, op, shuffle;
} Cost;
static const Cost COSTS[] = {{64, 6, 3, 4}, {32, 3, 2, 8}, {16, 2, 2, 4}};

static const Cost *cost_of(const TlNests *plan)
{
    const Cost *c = COSTS;
    while (c->bytes > plan->m.vector_bytes && c->bytes > 16)
        c++;
    return c;
}

/* Of an op, beside one: extremes of floats ask for NaN and zeros, by an instruction in AVX-512. */
static int work_of(const Chain *c, bool may_be_nan)
{
    enum { RANGE = 1, BITS = 5, NAN_ASKED = 1, NAN_WINS = 2 };
    TlOpcode o = c->op->opcode;
    if (!tl_is_float(c->op->out[0]->type->dtype))
        return 1;
    int work = tl_llvm_has_feature(c->plan->m.l, "avx512dq") ? RANGE : BITS;
    return work + (may_be_nan ? NAN_ASKED : 0) +
           (o == TL_OP_MIN_NAN || o == TL_OP_MAX_NAN ? NAN_WINS : 0);
}

static int cost_of_leaf(const Chain *c, const Cost *k, const TlValue *v, int depth)
{
    const TlOp *op = v->def;
    if (is_one_number(v) || !op || depth > MOST_LEAF_DEPTH)
        return 0;
    if (!(tl_op_info(op->opcode)->flags & F_ELEM))
        return op->opcode == TL_OP_CONVERT ? cost_of_leaf(c, k, tl_in(op, 0), depth + 1) : k->load;
    int cost = k->op * tl_elem_work(op->opcode)->cpu;
    for (uint32_t i = 0; i < op->nin; i++)
        cost += cost_of_leaf(c, k, tl_in(op, i), depth + 1);
    return cost;
}

static bool pays(const Chain *c, const TlNestTaps *t)
{
    const Cost *k = cost_of(c->plan);
    const TlNest *n = c->nest;
    int leaf = cost_of_leaf(c, k, t->tap[0], 0), small = tl_dtype_bytes(n->type.dtype) < 4,
        op = work_of(c, !c->floor) * k->op, chain_op = work_of(c, true) * k->op,
        shuffle = k->shuffle * (k->bytes > 16 && small ? 2 : 1);
    int64_t vectors = n->form.extent[n->lane] / n->width,
            before = (t->n + n->width - 2) / n->width, /* vectors from which a row begins */
        each = (int64_t)t->n * leaf + (t->n - 1) * chain_op,
            sliding = leaf + (c->floor ? k->op : 0) + t->nsteps * (shuffle + op);
    for (int i = 0; i < t->nsteps; i++)
        if (t->step[i].by > n->width)
            return false;
    return sliding * (vectors + before) * PART <= each * vectors * (PART - 1);
}

static int registers_of(const Chain *c, int states);

/* Down a column of so many rows: those of what is loaded, and states of all of these, at most. */
static bool pays_down(const Chain *c, const TlNestTaps *t)
{
    const Cost *k = cost_of(c->plan);
    int leaf = cost_of_leaf(c, k, t->tap[0], 0), op = work_of(c, !c->floor) * k->op,
        chain_op = work_of(c, true) * k->op;
    int64_t rows = c->nest->form.extent[c->dim], loaded = rows + t->n - 1,
            each = rows * ((int64_t)t->n * leaf + (t->n - 1) * chain_op),
            down = loaded * (leaf + (c->floor ? k->op : 0) + (int64_t)t->nsteps * op);
    return down * PART <= each * (PART - 1) && loaded * (t->nsteps + 2) <= MOST_CODE &&
           registers_of(c, t->n - 1) * PART <= c->plan->m.nregs * (PART - 1);
}

static int registers_of(const Chain *c, int states)
{
    int width = c->dim == c->nest->lane ? c->nest->width : c->nest->column_width,
        bytes = width * (int)tl_gen_elem_bytes(c->op->out[0]->type),
        registers = (bytes + c->plan->m.vector_bytes - 1) / c->plan->m.vector_bytes;
    return states * registers;
}

/* ---- elements that are tested ---- */

const TlNestAccess *tl_nest_tap_load(const TlNests *plan, const TlValue *tap)
{
    const TlOp *op = tap->def;
    while (op && op->nin == 1 && tl_op_info(op->opcode)->flags & F_ELEM)
        op = tl_in(op, 0)->def;
    return op && op->opcode == TL_OP_LOAD ? tl_map_get_ptr(&plan->access, op) : NULL;
}

/* Are elements outside of bounds the same for both loads? */
static bool has_same_bounds(const TlNestAccess *a, const TlNestAccess *b)
{
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        const TlNestAffine *f = &a->axis[i].affine, *g = &b->axis[i].affine;
        if (f->least != g->least || f->most != g->most || f->least_wins != g->least_wins ||
            f->mirrored != g->mirrored || f->way != g->way || a->bounds != b->bounds)
            return false;
    }
    return true;
}

/* Is a tap's element, tested, the next tap's, one place before, if starts do not wrap? Of a tile's
 * last vector, elements in the padding are not loaded. */
static bool slide_tested(const TlNests *plan, const TlNest *n, const TlNestSliding *s)
{
    bool may = n->tested > 1 && n->form.extent[n->lane] % n->tested == 0;
    for (uint32_t i = 0; may && i < s->taps.len; i++) {
        const TlNestTaps *t = s->taps.data[i];
        const TlNestAccess *first = tl_nest_tap_load(plan, t->tap[0]);
        for (int k = 0; may && k < t->nsteps; k++)
            may = t->step[k].by <= n->tested;
        for (int k = 0; may && k < t->n; k++) {
            const TlNestAccess *a = tl_nest_tap_load(plan, t->tap[k]);
            may = first && a && has_same_bounds(first, a) && !a->forks;
        }
    }
    return may;
}

/* ---- the pass ---- */

bool tl_nest_slides(const TlNests *plan, const TlNest *n)
{
    bool carries = n->sliding.len != 0;
    for (uint32_t i = 0; i < n->spreads.len; i++) {
        const TlNestSpread *s = tl_map_get_ptr(&plan->spreads, n->spreads.data[i]);
        carries |= s->carried != 0;
    }
    return carries;
}

/* The tap of a group at an element; NULL: there is none. *out_n: how many there are. */
static Leaf *leaf_at(Chain *c, int group, int64_t at, int *out_n)
{
    Leaf *x = NULL;
    *out_n = 0;
    for (int i = 0; i < c->n; i++)
        if (c->leaf[i].group == group && c->leaf[i].at == at) {
            x = x ? x : &c->leaf[i];
            ++*out_n;
        }
    return x;
}

/* Taps from an element on, without gaps. */
static TlNestTaps *find_run(Chain *c, int group, int64_t at)
{
    bool once = c->op->opcode == TL_OP_ADD;
    TlNestTaps *t = TL_NEW(c->plan->arena, TlNestTaps);
    int n;
    for (Leaf *x; t->n < TL_NEST_TAPS && (x = leaf_at(c, group, at + t->n, &n)) != NULL; t->n++) {
        if (once && n > 1)
            break;
        t->tap[t->n] = x->value;
    }
    if (t->n < 2)
        return NULL;
    find_steps(t, once);
    /* Rows that bounds keep inside are asked whether their starts wrap. */
    for (int k = 0; c->dim != c->nest->lane && c->nest->differs && k < t->n; k++)
        if (!tl_nest_tap_load(c->plan, t->tap[k]))
            return NULL;
    return (c->dim == c->nest->lane ? pays : pays_down)(c, t) ? t : NULL;
}

/* Its number among the operands. */
static int place_of(const Chain *c, const TlValue *tap)
{
    int i = 0;
    while (i < c->n && c->leaf[i].value != tap)
        i++;
    return i;
}

static void take(Chain *c, int group, int64_t at, int n)
{
    for (int i = 0; i < c->n; i++)
        if (c->leaf[i].group == group && c->leaf[i].at >= at && c->leaf[i].at < at + n)
            c->leaf[i].value = NULL;
}

/* The operand that is a number, if no float is NaN where it is one of the operands. */
static TlValue *find_floor(const Chain *c)
{
    bool is_extreme = c->op->opcode == TL_OP_MIN || c->op->opcode == TL_OP_MAX;
    uint64_t bits;
    for (int i = 0; i < c->n && is_extreme; i++) {
        TlValue *v = c->leaf[i].value;
        if (tl_is_float(v->type->dtype) && v->def && v->def->opcode == TL_OP_CONST &&
            tl_value_is_const(v, &bits) && !isnan(tl_bits_to_double(v->type->dtype, bits)))
            return v;
    }
    return NULL;
}

static bool slide(Chain *c, int *held)
{
    TlNestSliding *s = TL_NEW(c->plan->arena, TlNestSliding);
    bool down = c->dim != c->nest->lane;
    s->op = c->op;
    if (!add_leaves(c, c->op, 0))
        return false;
    c->floor = s->floor = find_floor(c);
    find_groups(c);
    for (int i = 0; i < c->n; i++) {
        const Leaf *x = &c->leaf[i];
        int unused;
        if (!x->value || x->group < 0 || leaf_at(c, x->group, x->at - 1, &unused))
            continue; /* taken, or not the first of a run */
        int group = x->group;
        int64_t at = x->at;
        TlNestTaps *t = find_run(c, group, at);
        int more = t ? registers_of(c, down ? t->n - 1 : t->nsteps) : 0;
        if (!t || *held + more > (down ? c->plan->m.nregs : c->plan->m.nregs / HELD))
            continue;
        *held += more;
        s->backwards = place_of(c, t->tap[t->n - 1]) < place_of(c, t->tap[0]);
        take(c, group, at, t->n);
        tl_vec_push(c->plan->arena, &s->taps, t);
    }
    for (int i = 0; i < c->n; i++)
        if (c->leaf[i].value && c->leaf[i].value != c->floor)
            tl_vec_push(c->plan->arena, &s->others, c->leaf[i].value);
    s->tested = !down && slide_tested(c->plan, c->nest, s);
    if (s->taps.len && down)
        tl_vec_push(c->plan->arena, &c->nest->sliding_rows, s);
    else if (s->taps.len)
        tl_vec_push(c->plan->arena, &c->nest->sliding, s);
    return s->taps.len > 0;
}

/* Ops at the position of the nest, from what it computes on. */
static void find(TlNests *plan, TlNest *n, int dim, TlValue *v, TlMap *seen, int *held, int depth)
{
    TlOp *op = v->def;
    bool own = depth == 0 && n->own;
    if (!op || v->type->rank == 0 || depth > MOST_DEPTH || (!own && !is_virtual(plan, v)) ||
        tl_map_get(seen, v->id, NULL) || !is_plain(plan, op))
        return;
    tl_map_put(seen, v->id, 1);
    if (!(tl_op_info(op->opcode)->flags & F_ELEM) && op->opcode != TL_OP_CONVERT)
        return;
    if (is_for(op->opcode, v->type->dtype)) {
        Chain *c = TL_NEW(plan->arena, Chain);
        *c = (Chain){.plan = plan, .nest = n, .dim = dim, .op = op};
        if (slide(c, held))
            return;
    }
    for (uint32_t i = 0; i < op->nin; i++)
        find(plan, n, dim, tl_in(op, i), seen, held, depth + 1);
}

/* Elements that are repeated: those that the vector before has had are not computed again, where a
 * vector is put together from two by one instruction. */
static void carry(TlNests *plan, TlNest *n, int *held)
{
    for (uint32_t i = 0; i < n->spreads.len && plan->m.vector_bytes == TWO_AT_ONCE; i++) {
        TlNestSpread *s = tl_map_get_ptr(&plan->spreads, n->spreads.data[i]);
        int64_t on = n->width / s->like->period * s->like->step;
        bool is_power = on > 1 && (on & (on - 1)) == 0;
        if (!is_power || s->span <= on || s->span > 2 * on || on >= s->lanes ||
            *held >= plan->m.nregs / HELD)
            continue;
        s->carried = (int)on;
        ++*held;
    }
}

/* May a row of v be computed before another row is stored? Nobody writes what it loads, and between
 * are only ops that work element by element. */
static bool may_come_before(const TlNests *plan, const TlValue *v, TlMap *seen)
{
    const TlOp *op = v->def;
    if (v->type->rank == 0 || !is_virtual(plan, v) || tl_map_get(seen, v->id, NULL))
        return true;
    tl_map_put(seen, v->id, 1);
    if (!op || !is_plain(plan, op))
        return false;
    if (op->opcode == TL_OP_LOAD) {
        const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
        return a->constant && is_plain_load(a);
    }
    bool is = tl_op_info(op->opcode)->flags & F_ELEM || op->opcode == TL_OP_CONST ||
              op->opcode == TL_OP_CONVERT ||
              (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0);
    for (uint32_t i = 0; is && i < op->nin; i++)
        is = may_come_before(plan, tl_in(op, i), seen);
    return is;
}

/* The dimension of the rows that a store may go down, by whole vectors. -1: it may not. */
static int rows_down(const TlNests *plan, const TlNest *n)
{
    const TlNestForm *f = &n->form;
    TlMap seen = {.arena = plan->arena};
    int rows = -1;
    if (n->kind != TL_NEST_STORE || n->columns || n->stored_by || !tl_nest_is_split(n) ||
        n->width < 2 || n->unrolled || n->joined || n->store->place.mask ||
        f->extent[f->lane] != f->padded[f->lane])
        return -1;
    for (int d = 0; d < f->rank; d++) {
        if (d == f->lane || f->extent[d] == 1)
            continue;
        if (rows >= 0 || f->extent[d] > MOST_ROWS)
            return -1;
        rows = d;
    }
    return may_come_before(plan, n->value, &seen) ? rows : -1;
}

/* By as many lanes as the nest has, or by a register of what is stored, as registers allow. */
static void find_down(TlNests *plan, TlNest *n)
{
    int rows = rows_down(plan, n), lanes = plan->m.vector_bytes / (int)tl_gen_elem_bytes(&n->type);
    for (int width = n->width; rows >= 0 && !n->columns; width = lanes) {
        TlMap seen = {.arena = plan->arena};
        int held = 0;
        n->column_width = width;
        find(plan, n, rows, n->value, &seen, &held, 0);
        if (n->sliding_rows.len) {
            n->columns = n;
            n->rows_dim = rows;
        }
        if (width <= lanes)
            break;
    }
    if (!n->columns)
        n->column_width = 0;
}

void tl_nest_find_sliding(TlNests *plan)
{
    for (uint32_t i = 0; i < plan->all.len && !plan->check; i++) {
        TlNest *n = plan->all.data[i];
        TlMap seen = {.arena = plan->arena};
        int held = 0;
        if ((n->kind == TL_NEST_FILL || n->kind == TL_NEST_STORE) && n->value && n->lane >= 0 &&
            n->lane == n->form.lane && n->split == TL_NEST_SPLIT && n->width > 1 && !n->overlaps &&
            !n->unrolled && !n->columns && !n->joined && !tl_nest_takes_words(n)) {
            carry(plan, n, &held);
            find(plan, n, n->lane, n->value, &seen, &held, 0);
        }
        if (n->lane >= 0 && n->lane == n->form.lane && !tl_nest_slides(plan, n))
            find_down(plan, n);
    }
}
