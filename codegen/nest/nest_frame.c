/* Programs at the border that read what programs inside do: from a copy with a border of its own.
 *
 *     x[j - 3 +: 7, i - 3 +: 22]     450 loads of a piece, each of which would be tested
 *     0 0 0 0 . . .                  14 vectors: the elements that are inside, and what is read
 *     0 0 0 0 . . .                  outside, zeros or the nearest element
 *     0 0 0 a b c d                  the code for programs of which all is inside reads this
 *
 * Where a program loads much from a small part of an array, again and again, it is less work to
 * copy that part once, with what loads outside give, than to test each load. That is for arrays
 * that nobody writes, of which all loads are slices, scalars or index tiles that are clamped, all
 * asked before any tile, and which are the same outside. How large the part is, is guessed here,
 * as if scalars that nobody knows were 0; the run asks whether it fits
 * (codegen/cpu/cpu_frame.c). */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum {
    MOST_BYTES = 16 << 10, /* half of a first cache */
    MOST_ELEMENTS = 1 << 12,
    LESS = 4,        /* vectors that are loaded for each one that is copied, at least */
    MOST_DEPTH = 24, /* of values that a place follows from */
    GUARD = 128      /* bytes around it, which vectors may read */
};

/* ---- how large ---- */

/* Between which numbers a scalar is, as if what is not known were 0. */
typedef struct Guess {
    int64_t lo, hi;
} Guess;

/* Is it a number, or made of numbers and extents? Then it is a bound, and where a place lies
 * follows from the other operand. */
static bool is_bound(const TlValue *v, int depth)
{
    const TlOp *op = v->def;
    if (!op || depth > MOST_DEPTH)
        return false;
    if (op->opcode == TL_OP_CONST || op->opcode == TL_OP_EXTENT)
        return true;
    for (uint32_t i = 0; i < op->nin; i++)
        if (!is_bound(tl_in(op, i), depth + 1))
            return false;
    return op->nin > 0 && !op->nregions;
}

/* What is farther away than any part that fits is not known. */
static Guess between(TlWideInt lo, TlWideInt hi)
{
    const TlWideInt far = (TlWideInt)1 << 40;
    return lo < -far || hi > far ? (Guess){0, 0} : (Guess){(int64_t)lo, (int64_t)hi};
}

static Guess counter(const TlOp *loop)
{
    TlWideInt from, to, step;
    if (!tl_const_int_value(tl_in(loop, 0), &from) || !tl_const_int_value(tl_in(loop, 1), &to) ||
        !tl_const_int_value(tl_in(loop, 2), &step) || step == 0 || from == to)
        return (Guess){0, 0};
    TlWideInt last = to + (step > 0 ? -1 : 1);
    return from < last ? between(from, last) : between(last, from);
}

static Guess guess(const TlNests *plan, const TlValue *v, int depth)
{
    const TlOp *op = v->def, *loop = op ? NULL : v->block->parent;
    TlWideInt n;
    if (tl_const_int_value(v, &n))
        return between(n, n);
    if (loop && loop->opcode == TL_OP_FOR && v->index == 0 && v->block != plan->asked_in)
        return counter(loop);
    if (!op || depth > MOST_DEPTH || op->nin == 0)
        return (Guess){0, 0};
    Guess a = guess(plan, tl_in(op, 0), depth + 1), b = a;
    if (op->nin > 1)
        b = guess(plan, tl_in(op, 1), depth + 1);
    switch ((int)op->opcode) {
    case TL_OP_CAST: return a;
    case TL_OP_ADD: return between(a.lo + b.lo, a.hi + b.hi);
    case TL_OP_SUB: return between(a.lo - b.hi, a.hi - b.lo);
    case TL_OP_MIN:
    case TL_OP_MAX: return is_bound(tl_in(op, 0), 0) ? b : a;
    case TL_OP_MUL:
        if (b.lo == b.hi)
            return between((TlWideInt)(b.lo < 0 ? a.hi : a.lo) * b.lo,
                           (TlWideInt)(b.lo < 0 ? a.lo : a.hi) * b.lo);
    }
    return (Guess){0, 0};
}

static Guess guess_affine(const TlNests *plan, const TlNestAffine *f)
{
    Guess all = {f->offset, f->offset};
    for (uint32_t k = 0; k < f->nterms; k++) {
        Guess x = guess(plan, f->term[k], 0);
        all.lo += f->minus[k] ? -x.hi : x.lo;
        all.hi += f->minus[k] ? -x.lo : x.hi;
    }
    return (Guess){all.lo >> f->shift, all.hi >> f->shift};
}

int64_t tl_nest_axis_span(const TlNestAccess *a, uint32_t i)
{
    const TlAxis *axis = &a->place.axes[i];
    return axis->kind == TL_AXIS_SCALAR  ? 1
           : axis->kind == TL_AXIS_SLICE ? (tl_nest_axis_width(a, i) - 1) * axis->step + 1
                                         : tl_nest_axis_width(a, i);
}

/* ---- which arrays ---- */

/* Are all loads of the array such? */
static bool may_be_copied(const TlNests *plan, const TlNestAccess *a)
{
    if (!a || !a->loads || !a->constant || !tl_nest_asked(plan, a->op) || a->place.pointwise ||
        a->place.mask)
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        const TlAxis *axis = &a->place.axes[i];
        const TlNestAffine *f = &a->axis[i].affine;
        if (axis->kind == TL_AXIS_TILE ? !f->is || !f->fits || f->period
                                       : axis->kind == TL_AXIS_SLICE && axis->step <= 0)
            return false;
        if (a->place.other && axis->kind != TL_AXIS_TILE)
            return false;
    }
    return true;
}

/* Grows the frame by a load's part; false: outside, it gives something else along an axis. */
static bool add_load(const TlNests *plan, TlNestFrame *f, const TlNestAccess *a, Guess *of,
                     bool first)
{
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        TlAxisKind kind = a->place.axes[i].kind;
        Guess x = a->axis[i].affine.is ? guess_affine(plan, &a->axis[i].affine)
                                       : guess(plan, a->place.index[i].value, 0);
        x.hi += tl_nest_axis_span(a, i);
        of[i].lo = first || x.lo < of[i].lo ? x.lo : of[i].lo;
        of[i].hi = first || x.hi > of[i].hi ? x.hi : of[i].hi;
        if (kind != TL_AXIS_SCALAR && f->known[i] && f->clamps[i] != (kind == TL_AXIS_TILE))
            return false;
        f->known[i] |= kind != TL_AXIS_SCALAR;
        f->clamps[i] |= kind == TL_AXIS_TILE;
    }
    return true;
}

/* Its extents; false: it is too large. The rows are whole vectors. */
static bool set_extents(const TlNests *plan, TlNestFrame *f, const Guess *of)
{
    int64_t bytes = tl_dtype_bytes(f->base->type->dtype), n = 1;
    f->width = (int)(plan->m.vector_bytes / bytes);
    for (int i = f->rank; i-- > 0;) {
        int64_t extent = of[i].hi - of[i].lo;
        if (extent <= 0 || extent > MOST_ELEMENTS)
            return false;
        f->part[i] = extent;
        if (i == f->rank - 1)
            extent = (extent + f->width - 1) / f->width * f->width;
        f->extent[i] = extent;
        n *= extent;
        if (n > MOST_ELEMENTS || n * bytes > MOST_BYTES)
            return false;
    }
    f->vectors = n / f->width;
    f->bytes = (uint64_t)(n * bytes + 63) / 64 * 64;
    return true;
}

static void add_taps(const TlNests *plan, const TlNestSliding *s, TlMap *shared)
{
    for (uint32_t i = 0; i < s->taps.len; i++)
        for (int k = 1; k < s->taps.data[i]->n; k++) {
            const TlNestAccess *a = tl_nest_tap_load(plan, s->taps.data[i]->tap[k]);
            if (a)
                tl_map_put_ptr(shared, a, (void *)a);
        }
}

/* Loads of windows that slide, but for one of each: what they load is there. */
static void find_shared(const TlNests *plan, TlMap *shared)
{
    for (uint32_t i = 0; i < plan->all.len; i++) {
        const TlNest *n = plan->all.data[i];
        for (uint32_t k = 0; k < n->sliding.len; k++)
            add_taps(plan, n->sliding.data[k], shared);
        for (uint32_t k = 0; k < n->sliding_rows.len; k++)
            add_taps(plan, n->sliding_rows.data[k], shared);
    }
}

/* Vectors that a load loads in all. */
static int64_t vectors_of(const TlNests *plan, const TlNestFrame *f, const TlNestAccess *a,
                          const TlMap *shared)
{
    if (tl_map_get_ptr(shared, a))
        return 0;
    int64_t n = 1;
    for (int d = 0; d < a->place.rank; d++)
        n *= a->place.shape[d];
    return (n + f->width - 1) / f->width * tl_nest_times_of(plan, a->op);
}

static bool can_mask(const TlNests *plan, int bytes)
{
    return plan->m.masks || (plan->m.gathers && bytes >= 4);
}

/* NULL: there is one, which is set. */
static const char *find_frame(const TlNests *plan, const TlValue *base, const TlMap *shared,
                              TlNestFrame *f)
{
    Guess of[TL_MAX_VIEW_RANK];
    bool first = true;
    *f = (TlNestFrame){.base = base, .rank = base->type->rank};
    if (tl_dtype_bits(base->type->dtype) < 8 || !can_mask(plan, tl_dtype_bytes(base->type->dtype)))
        return "elements have no masks";
    for (const TlUse *u = base->uses; u; u = u->next) {
        const TlOp *op = u->user;
        if (op->opcode == TL_OP_EXTENT)
            continue;
        const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
        if (op->opcode != TL_OP_LOAD || !may_be_copied(plan, a) || a->place.base != base)
            return "not all of its loads are slices that are asked";
        if (!tl_nest_is_dense(plan->fn, &a->place, f->rank - 1))
            return "rows have gaps";
        if (!add_load(plan, f, a, of, first))
            return "outside, its loads differ";
        first = false;
        f->loads++;
    }
    if (first || !set_extents(plan, f, of))
        return "its part is large";
    for (const TlUse *u = base->uses; u; u = u->next)
        if (u->user->opcode == TL_OP_LOAD)
            f->loaded += vectors_of(plan, f, tl_map_get_ptr(&plan->access, u->user), shared);
    return f->loaded < LESS * f->vectors ? "little is loaded twice" : NULL;
}

void tl_nest_find_frames(TlNests *plan)
{
    TlMap shared = {.arena = plan->arena};
    find_shared(plan, &shared);
    for (uint32_t i = 0; plan->whole && i < plan->fn->body->nargs; i++) {
        const TlValue *v = plan->fn->body->args[i];
        TlNestFrame f;
        if (v->type->kind != TL_VIEW || !v->type->is_const || !v->uses)
            continue;
        plan->unframed = find_frame(plan, v, &shared, &f);
        if (!plan->unframed)
            tl_vec_push(plan->arena, &plan->frames, f);
    }
}

void tl_nest_place_frames(TlNests *plan)
{
    for (uint32_t i = 0; i < plan->frames.len; i++) {
        TlNestFrame *f = &plan->frames.data[i];
        f->offset = plan->scratch_bytes + GUARD;
        plan->scratch_bytes = f->offset + f->bytes + GUARD;
    }
}

const TlNestFrame *tl_nest_frame_of(const TlNests *plan, const TlValue *base)
{
    for (uint32_t i = 0; i < plan->frames.len; i++)
        if (plan->frames.data[i].base == base)
            return &plan->frames.data[i];
    return NULL;
}
