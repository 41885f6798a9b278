/* Memory accesses as linear forms: where two of them may meet (footprint.h). */
#include "passes/analysis/footprint.h"
#include "ir/plan/layout_rules.h"
#include "ir/numeric.h"
#include "ir/rewrite.h"
#include "passes/analysis/facts.h"
#include <stdlib.h>

enum { MAX_DEPTH = 10, MAX_ROOTS = 63, MAX_SOURCES = 64 };
static const uint64_t ANYTHING = 1ull << MAX_ROOTS;
static const int64_t FAR = 1ll << 60;

/* ---- forms ---- */

static TlForm atom(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CONVERT)
        v = tl_in(v->def, 0);
    return (TlForm){.n = 1, .term = {{v, -1, 0, 1}}};
}

static bool same_term(const TlTerm *a, const TlTerm *b)
{
    return a->value == b->value && a->dim == b->dim && a->extent == b->extent;
}

static bool add_term(TlForm *f, TlTerm t)
{
    TL_ASSERT(f->n <= TL_FORM_TERMS, "a form of %u terms", f->n);
    for (uint32_t i = 0; i < f->n; i++) {
        if (!same_term(&f->term[i], &t))
            continue;
        if (__builtin_add_overflow(f->term[i].factor, t.factor, &f->term[i].factor))
            return false;
        if (f->term[i].factor == 0)
            f->term[i] = f->term[--f->n];
        return true;
    }
    if (f->n == TL_FORM_TERMS)
        return false;
    f->term[f->n++] = t;
    return true;
}

/* f += factor * x; false when it does not fit. */
static bool add_form(TlForm *f, const TlForm *x, int64_t factor)
{
    int64_t c;
    if (factor == 0)
        return true;
    if (__builtin_mul_overflow(x->constant, factor, &c) ||
        __builtin_add_overflow(f->constant, c, &f->constant))
        return false;
    for (uint32_t i = 0; i < x->n; i++) {
        TlTerm t = x->term[i];
        if (__builtin_mul_overflow(t.factor, factor, &t.factor) || !add_term(f, t))
            return false;
    }
    return true;
}

static bool is_uniform(const TlTerm *t)
{
    return t->value && t->value->type->rank == 0;
}

/* Moves iotas to other axes; only iotas can be moved. */
static bool rename_dims(TlForm *f, const int *dims)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (is_uniform(&f->term[i]))
            continue;
        if (f->term[i].value)
            return false;
        f->term[i].dim = dims[f->term[i].dim];
    }
    return true;
}

static TlForm form_of(const TlValue *v, int depth);

static bool expanded(const TlOp *op, TlForm *f)
{
    int dims[TL_MAX_RANK], axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    for (int d = 0; d < TL_MAX_RANK; d++)
        dims[d] = d + (d >= axis);
    return rename_dims(f, dims);
}

static bool transposed(const TlOp *op, TlForm *f)
{
    TL_ASSERT(op->opcode == TL_OP_TRANS && tl_attr(op, TL_ATTR_PERM),
              "%s turns nothing", tl_op_info(op->opcode)->text);
    int dims[TL_MAX_RANK] = {0};
    const TlAttr *perm = tl_attr(op, TL_ATTR_PERM);
    for (uint32_t i = 0; i < perm->n; i++)
        dims[perm->u.ints[i]] = (int)i;
    return rename_dims(f, dims);
}

static bool broadcasted(TlForm *f)
{
    int dims[TL_MAX_RANK];
    for (int d = 0; d < TL_MAX_RANK; d++)
        dims[d] = d;
    return rename_dims(f, dims);
}

/* Does the cast preserve values: nothing is cut off, and signs keep their meaning? */
static bool is_widening(TlDtype from, TlDtype to)
{
    if (!tl_is_int(from) || !tl_is_int(to))
        return false;
    if (tl_is_signed(from) == tl_is_signed(to))
        return tl_dtype_bits(from) <= tl_dtype_bits(to);
    return tl_is_signed(to) && tl_dtype_bits(from) < tl_dtype_bits(to);
}

static bool product(const TlOp *op, TlForm *f, int depth)
{
    TlForm a = form_of(tl_in(op, 0), depth), b = form_of(tl_in(op, 1), depth);
    return a.n == 0 ? add_form(f, &b, a.constant) : b.n == 0 && add_form(f, &a, b.constant);
}

static bool shifted(const TlOp *op, TlForm *f, int depth)
{
    TlForm a = form_of(tl_in(op, 0), depth), b = form_of(tl_in(op, 1), depth);
    return b.n == 0 && b.constant >= 0 && b.constant < 32 && add_form(f, &a, 1ll << b.constant);
}

static bool sum(const TlOp *op, TlForm *f, int64_t sign, int depth)
{
    TlForm a = form_of(tl_in(op, 0), depth), b = form_of(tl_in(op, 1), depth);
    return add_form(f, &a, 1) && add_form(f, &b, sign);
}

static bool form_of_op(const TlOp *op, TlForm *f, int depth)
{
    const TlValue *x = op->nin ? tl_in(op, 0) : NULL;
    if (op->opcode == TL_OP_ADD || op->opcode == TL_OP_PTR_ADD)
        return sum(op, f, 1, depth);
    if (op->opcode == TL_OP_SUB)
        return sum(op, f, -1, depth);
    if (op->opcode == TL_OP_MUL)
        return product(op, f, depth);
    if (op->opcode == TL_OP_SHL)
        return shifted(op, f, depth);
    if (op->opcode == TL_OP_IOTA)
        return add_term(f, (TlTerm){NULL, 0, op->out[0]->type->shape[0], 1});
    bool renames = (tl_op_info(op->opcode)->flags & F_VIEWLIKE) && op->opcode != TL_OP_RESHAPE;
    if (!renames && op->opcode != TL_OP_CONVERT && op->opcode != TL_OP_CAST)
        return false;
    *f = form_of(x, depth);
    return op->opcode == TL_OP_BROADCAST ? broadcasted(f)
           : op->opcode == TL_OP_EXPAND  ? expanded(op, f)
           : op->opcode == TL_OP_TRANS   ? transposed(op, f)
           : op->opcode == TL_OP_CAST    ? is_widening(x->type->dtype, op->out[0]->type->dtype)
                                         : true;
}

static TlForm form_of(const TlValue *v, int depth)
{
    uint64_t bits;
    TlForm f = {0};
    bool is_number = !v->type->ptr && tl_is_int(v->type->dtype);
    if (is_number && tl_value_is_const(v, &bits)) {
        f.constant = tl_bits_to_int(v->type->dtype, bits);
        return f;
    }
    if ((is_number || v->type->ptr) && v->def && depth && form_of_op(v->def, &f, depth - 1))
        return f;
    return atom(v);
}

/* ---- loops: by how much a carried value changes from iteration to iteration ---- */

/* The value of region 0 of a while that region 1 receives as this argument. */
static const TlValue *passed(const TlValue *v, const TlOp *loop)
{
    if (loop->opcode != TL_OP_WHILE || v->def || v->block != loop->regions[1])
        return v;
    return tl_in(loop->regions[0]->last, 1 + v->index);
}

static bool carried_step(const TlValue *v, const TlOp *loop, uint32_t index, TlForm *step)
{
    TL_ASSERT(index < loop->regions[loop->nregions - 1]->last->nin,
              "value %u carried by %s", index, tl_op_info(loop->opcode)->text);
    TlForm next = form_of(tl_in(loop->regions[loop->nregions - 1]->last, index), MAX_DEPTH);
    TlForm before = {0};
    for (uint32_t i = 0; i < next.n; i++) /* arguments of region 1 become those of region 0 */
        if (next.term[i].value)
            next.term[i].value = passed(next.term[i].value, loop);
    TlForm self = atom(v);
    if (!add_form(&before, &next, 1) || !add_form(&before, &self, -1))
        return false;
    *step = before;
    return true;
}

/* v is one of the loop's values; its change per iteration, which must be the same in each. */
static bool step_of(const TlValue *v, const TlOp *loop, TlForm *step)
{
    v = passed(v, loop);
    if (v->def || v->block != loop->regions[0])
        return false;
    if (loop->opcode == TL_OP_FOR && v->index == 0)
        *step = form_of(tl_in(loop, 2), MAX_DEPTH);
    else if (!carried_step(v, loop, v->index - (loop->opcode == TL_OP_FOR), step))
        return false;
    for (uint32_t i = 0; i < step->n; i++)
        if (!step->term[i].value || !tl_is_invariant(step->term[i].value, loop))
            return false;
    return true;
}

/* ---- two accesses along one axis ---- */

typedef enum Relation { UNKNOWN, SAME, DISJOINT } Relation;

/* How far the uniform part of b is from that of a: offset + per_trip * m, for some m >= 1; or, when
 * is_symbolic, offset + x for some x of unknown sign with |x| >= per_trip. */
typedef struct Distance {
    int64_t offset, per_trip;
    bool is_symbolic;
} Distance;

static bool is_same_instance(const TlValue *v, const TlOp *crossed)
{
    return !crossed || tl_is_invariant(v, crossed);
}

static int64_t factor_of(const TlForm *f, const TlTerm *t)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (same_term(&f->term[i], t))
            return f->term[i].factor;
    return 0;
}

/* A value that the crossed loop changes, with the same factor in both. */
static bool add_step(Distance *d, const TlTerm *t, const TlOp *crossed)
{
    TlForm step;
    int64_t change;
    if (!step_of(t->value, crossed, &step) || d->is_symbolic)
        return false;
    if (step.n == 0)
        return !__builtin_mul_overflow(step.constant, t->factor, &change) &&
               !__builtin_add_overflow(d->per_trip, change, &d->per_trip);
    /* A loop that has another iteration has a step that is not 0; of a carried value nothing is
     * known. */
    bool is_iv = crossed->opcode == TL_OP_FOR && !t->value->def && t->value->index == 0 &&
                 t->value->block == crossed->regions[0];
    if (!is_iv || d->per_trip)
        return false;
    d->per_trip = t->factor < 0 ? -t->factor : t->factor;
    d->is_symbolic = true;
    return true;
}

static bool is_near(int64_t x)
{
    return x > -FAR && x < FAR;
}

static bool measure(const TlForm *a, const TlForm *b, const TlOp *crossed, Distance *d)
{
    *d = (Distance){0};
    if (__builtin_sub_overflow(b->constant, a->constant, &d->offset))
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (is_uniform(&a->term[i]) && factor_of(b, &a->term[i]) != a->term[i].factor)
            return false;
    for (uint32_t i = 0; i < b->n; i++) {
        const TlTerm *t = &b->term[i];
        if (!is_uniform(t))
            continue;
        if (factor_of(a, t) != t->factor)
            return false;
        if (!is_same_instance(t->value, crossed) && !add_step(d, t, crossed))
            return false;
    }
    return is_near(d->offset) && is_near(d->per_trip); /* sums of a few stay in range */
}

static bool varies_alike(const TlForm *a, const TlForm *b, const TlOp *crossed)
{
    uint32_t na = 0, nb = 0;
    for (uint32_t i = 0; i < a->n; i++)
        na += !is_uniform(&a->term[i]);
    for (uint32_t i = 0; i < b->n; i++) {
        const TlTerm *t = &b->term[i];
        if (is_uniform(t))
            continue;
        nb++;
        if (factor_of(a, t) != t->factor || (t->value && !is_same_instance(t->value, crossed)))
            return false;
    }
    return na == nb;
}

static Relation relate(const TlFootAxis *a, const TlFootAxis *b, const TlOp *crossed)
{
    Distance d;
    if (!measure(&a->form, &b->form, crossed, &d))
        return UNKNOWN;
    if (a->is_ranged && b->is_ranged) {
        int64_t up = a->hi - b->lo, down = a->lo - b->hi; /* beyond: disjoint */
        if (d.is_symbolic && d.offset == 0 && d.per_trip > up && -d.per_trip < down)
            return DISJOINT;
        if (!d.is_symbolic && d.per_trip >= 0 && d.offset > up - d.per_trip)
            return DISJOINT;
        if (!d.is_symbolic && d.per_trip <= 0 && d.offset < down - d.per_trip)
            return DISJOINT;
    }
    bool equal = d.offset == 0 && d.per_trip == 0 && a->how.kind == b->how.kind &&
                 a->how.width == b->how.width && a->how.step == b->how.step;
    return equal && varies_alike(&a->form, &b->form, crossed) ? SAME : UNKNOWN;
}

/* ---- footprints ---- */

static void find_range(TlFootAxis *a)
{
    a->is_ranged = true;
    if (a->how.kind == TL_AXIS_SLICE) {
        int64_t last = (int64_t)a->how.step * (a->how.width - 1);
        a->lo = last < 0 ? last : 0;
        a->hi = last < 0 ? 0 : last;
    }
    for (uint32_t i = 0; i < a->form.n; i++) {
        const TlTerm *t = &a->form.term[i];
        int64_t reach;
        if (is_uniform(t))
            continue;
        if (t->value || __builtin_mul_overflow(t->factor, (int64_t)t->extent - 1, &reach) ||
            reach > INT32_MAX || reach < -INT32_MAX)
            a->is_ranged = false;
        else
            *(reach < 0 ? &a->lo : &a->hi) += reach;
    }
}

/* Do different elements have different numbers? Each axis of more than one element has one iota,
 * and in the order of their factors each factor is beyond what the smaller ones reach. */
static bool is_injective(const TlForm *f, int rank, const int32_t *shape)
{
    TL_ASSERT(rank <= TL_MAX_RANK, "a tile of rank %d", rank);
    uint32_t left = 0;
    for (int d = 0; d < rank; d++)
        left |= shape[d] > 1 ? 1u << d : 0;
    int64_t reach = 0;
    while (left) {
        const TlTerm *least = NULL;
        for (uint32_t i = 0; i < f->n; i++) {
            const TlTerm *t = &f->term[i];
            if (is_uniform(t))
                continue;
            if (t->value)
                return false;
            if ((left >> t->dim & 1) && t->extent == shape[t->dim] &&
                (!least || llabs(t->factor) < llabs(least->factor)))
                least = t;
        }
        if (!least || llabs(least->factor) <= reach)
            return false;
        reach += llabs(least->factor) * (least->extent - 1);
        left &= ~(1u << least->dim);
    }
    return true;
}

/* Elements of a view are places of their own, unless its strides say at once that they are not. */
static bool is_plain_view(const TlValue *base)
{
    TlWideInt stride;
    const TlOp *view = base->def;
    while (view && view->opcode == TL_OP_SUB_VIEW)
        view = tl_in(view, 0)->def;
    if (!view || view->opcode != TL_OP_VIEW)
        return true;
    for (uint32_t i = 1 + (view->nin - 1) / 2; i < view->nin; i++)
        if (tl_const_int_value(tl_in(view, i), &stride) && stride == 0)
            return false;
    return true;
}

static void find_axes(TlFootprint *f, const TlPlace *p)
{
    f->is_distinct = true;
    f->base = p->axes ? p->base : NULL;
    f->naxes = p->axes ? p->naxes : 1;
    TL_ASSERT(f->naxes <= TL_MAX_VIEW_RANK, "an access of %u axes", f->naxes);
    for (uint32_t i = 0; i < f->naxes; i++) {
        TlFootAxis *a = &f->axis[i];
        a->how = p->axes ? p->axes[i] : (TlAxis){TL_AXIS_TILE, 0, 0};
        const TlValue *index = p->axes ? p->index[i].value : p->base;
        a->form = form_of(index, MAX_DEPTH);
        find_range(a);
        if (a->how.kind == TL_AXIS_TILE &&
            (p->pointwise || !is_injective(&a->form, index->type->rank, index->type->shape)))
            f->is_distinct = false;
    }
    f->is_plain = !p->axes || is_plain_view(p->base);
    f->is_distinct &= f->is_plain;
}

static uint64_t with_aliases(const TlKernelInfo *info, uint64_t roots)
{
    uint64_t all = roots;
    for (uint32_t i = 0; info && i < info->aliases.len; i++) {
        uint32_t a = info->aliases.data[i].a, b = info->aliases.data[i].b;
        if (a >= MAX_ROOTS || b >= MAX_ROOTS)
            return ANYTHING;
        if (roots >> a & 1)
            all |= 1ull << b;
        if (roots >> b & 1)
            all |= 1ull << a;
    }
    return all;
}

typedef struct Sources {
    const TlValue *value[MAX_SOURCES];
    uint32_t n;
    bool overflow;
} Sources;

static void add_source(Sources *s, const TlValue *v)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->value[i] == v)
            return;
    if (s->n == MAX_SOURCES)
        s->overflow = true;
    else
        s->value[s->n++] = v;
}

/* Adds what v, carried by a loop or chosen by an if, may be. */
static bool add_carried(Sources *s, const TlValue *v)
{
    const TlOp *op = v->def ? v->def : v->block->parent;
    if (op->opcode == TL_OP_IF && v->def) {
        add_source(s, tl_in(op->regions[0]->last, v->index));
        add_source(s, tl_in(op->regions[1]->last, v->index));
        return true;
    }
    if (op->opcode == TL_OP_WHILE && (v->def || v->block == op->regions[1])) {
        add_source(s, tl_in(op->regions[0]->last, 1 + v->index));
        return true;
    }
    if (!tl_is_loop(op))
        return false;
    uint32_t skip = op->opcode == TL_OP_FOR, index = v->index - (v->def ? 0 : skip);
    add_source(s, tl_in(op, index + 3 * skip));
    add_source(s, tl_in(op->regions[op->nregions - 1]->last, index));
    return true;
}

static bool add_sources(Sources *s, const TlValue *v)
{
    const TlValue *base = tl_leads_into(v);
    if (base) {
        add_source(s, base);
        return true;
    }
    if (!v->def || v->def->opcode != TL_OP_SELECT)
        return add_carried(s, v);
    add_source(s, tl_in(v->def, 2));
    add_source(s, tl_in(v->def, 1));
    return true;
}

static uint64_t roots_of(const TlValue *base)
{
    Sources s = {.n = 0};
    uint64_t roots = 0;
    add_source(&s, base);
    for (uint32_t i = 0; i < s.n; i++) {
        const TlValue *v = s.value[i];
        bool is_param = !v->def && !v->block->parent;
        if (is_param && v->index < MAX_ROOTS)
            roots |= 1ull << v->index;
        else if (is_param || s.overflow || !add_sources(&s, v))
            return ANYTHING;
    }
    const TlBlock *home = base->def ? base->def->block : base->block;
    return s.overflow ? ANYTHING : with_aliases(home->fn->info, roots);
}

static bool has_copies(const TlLayout *l)
{
    uint32_t masks[TL_LAYOUT_MAX_IN];
    tl_layout_free_masks(l, masks);
    for (int i = 0; i < l->nin; i++)
        if (l->in[i] != TL_IN_REG && masks[i])
            return true;
    return false;
}

TlFootprint *tl_footprint(const TlOp *op, TlArena *arena)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    if (!(flags & (F_READ | F_WRITE)) || op->nregions)
        return NULL;
    TlPlace place = tl_op_place(op);
    if (tl_is_constant_memory(place.base))
        return NULL;
    TlFootprint *f = TL_NEW(arena, TlFootprint);
    f->op = op;
    f->writes = flags & F_WRITE;
    f->is_atomic = flags & F_ATOMIC;
    f->once = place.rank == 0 && (f->writes || f->is_atomic);
    f->roots = roots_of(place.base);
    f->is_packed = tl_dtype_bits(place.base->type->dtype) < 8;
    f->layout = tl_op_layout(op);
    f->is_copied = f->layout && has_copies(f->layout);
    find_axes(f, &place);
    return f;
}

/* ---- pairs ---- */

bool tl_footprints_overlap(const TlFootprint *a, const TlFootprint *b)
{
    return (a->roots & b->roots) || ((a->roots | b->roots) & ANYTHING);
}

/* Updates with the same result in any order, whose old values are not used. */
static bool commute(const TlFootprint *a, const TlFootprint *b)
{
    if (a->op->opcode != TL_OP_ATOMIC_RMW || b->op->opcode != TL_OP_ATOMIC_RMW ||
        a->op->out[0]->uses || b->op->out[0]->uses)
        return false;
    int64_t kind = tl_attr_int(a->op, TL_ATTR_RMW, -1);
    return kind != TL_RMW_XCHG && kind == tl_attr_int(b->op, TL_ATTR_RMW, -1);
}

/* If element i of both is at the same address: does the same thread access it? A write is done by
 * the thread whose copy counts, a load by all that hold one. */
static bool is_same_thread(const TlFootprint *a, const TlFootprint *b)
{
    if (!a->layout || a->layout != b->layout || !a->is_distinct || !b->is_distinct)
        return false;
    bool owners = (a->writes || a->is_atomic) && (b->writes || b->is_atomic);
    return owners || !a->is_copied;
}

bool tl_footprints_conflict(const TlFootprint *a, const TlFootprint *b, const TlOp *crossed)
{
    TL_ASSERT(a->naxes <= TL_MAX_VIEW_RANK && b->naxes <= TL_MAX_VIEW_RANK,
              "footprints of %u and %u axes", a->naxes, b->naxes);
    TL_ASSERT(!crossed || crossed->nregions > 0,
              "%s is no loop", tl_op_info(crossed->opcode)->text);
    if (!(a->writes || b->writes) || !tl_footprints_overlap(a, b) || (a->once && b->once) ||
        commute(a, b))
        return false;
    if (a->base != b->base || a->naxes != b->naxes || a->is_packed || b->is_packed)
        return true;
    if (a->base && (!is_same_instance(a->base, crossed) || !a->is_plain))
        return true;
    bool all_same = true;
    for (uint32_t i = 0; i < a->naxes; i++) {
        Relation r = relate(&a->axis[i], &b->axis[i], crossed);
        if (r == DISJOINT)
            return false;
        all_same &= r == SAME;
    }
    return !(all_same && is_same_thread(a, b));
}
