/* Stores that follow each other become one nest, at the last of them, in which values are computed
 * once that several of them need: with no home, and no second pass over what they are computed
 * from. So do stores of tiles of one shape that share work, or vectors that elements are taken
 * from, to places that never meet; and stores of neighbouring channels, which are interleaved.
 *
 *     y[i +: B, 0] = r;
 *     y[i +: B, 1] = g;      y is [N, 3]: elements of each store are 3 apart, and the three
 *     y[i +: B, 2] = b;      together lie side by side */
#include "codegen/nest/nest.h"
#include "passes/analysis/facts.h"

enum { MOST_JOINED = 4 };   /* that share work */
enum { FEW = 4 };           /* channels that are always interleaved */
enum { MOST_WALKED = 256 }; /* values of a store that are looked at */
enum { SHARED = 2 };       /* ops that do some work, and that two stores need */

/* Is a scalar index known to be inside? */
static bool is_inside(const TlNestAxis *x)
{
    return x->is_known && x->hi > 0;
}

/* Is b's element right behind a's, all else being equal? Scalar indices differ by known numbers, or
 * starts of slices: then *one_box is set to false, as what is inside is not the same. */
static bool follows(const TlNestAccess *a, const TlNestAccess *b, bool *one_box)
{
    const TlPlace *p = &a->place, *q = &b->place;
    int64_t by = 0;
    if (!p->axes || !q->axes || p->base != q->base || p->naxes != q->naxes || p->mask || q->mask ||
        p->value->type != q->value->type || p->value->type->rank == 0)
        return false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        TlWideInt from, to;
        int64_t further;
        if (p->axes[i].kind != q->axes[i].kind || p->axes[i].kind == TL_AXIS_TILE ||
            p->axes[i].width != q->axes[i].width || p->axes[i].step != q->axes[i].step)
            return false;
        if (p->index[i].value == q->index[i].value)
            continue;
        if (p->axes[i].kind == TL_AXIS_SLICE) {
            if (p->axes[i].step < 1 || !a->axis[i].stride ||
                !tl_nest_index_distance(p->index[i].value, q->index[i].value, &further))
                return false;
            by += further * (a->axis[i].stride / p->axes[i].step);
            *one_box = false;
            continue;
        }
        if (p->axes[i].kind != TL_AXIS_SCALAR || !a->axis[i].stride ||
            !tl_const_int_value(p->index[i].value, &from) ||
            !tl_const_int_value(q->index[i].value, &to) || !is_inside(&a->axis[i]) ||
            !is_inside(&b->axis[i]))
            return false;
        by += (int64_t)(to - from) * a->axis[i].stride;
    }
    return by == 1;
}

/* May what stands between two stores read what they write, or write? */
static bool is_in_the_way(const TlNests *plan, const TlOp *op, const TlNestAccess *store)
{
    uint32_t effects = tl_op_effects(op);
    if (op->nregions || effects & (F_WRITE | F_ATOMIC))
        return true;
    const TlNestAccess *a = tl_map_get_ptr(&plan->access, op);
    return effects & F_READ && (!a || tl_may_alias(plan->fn, a->place.base, store->place.base));
}

/* The store behind `first` that continues it; NULL: there is none. */
static TlNestAccess *next_store(const TlNests *plan, const TlNestAccess *first)
{
    for (const TlOp *op = first->op->next; op; op = op->next) {
        if (op->opcode == TL_OP_STORE)
            return tl_map_get_ptr(&plan->access, op);
        if (is_in_the_way(plan, op, first))
            return NULL;
    }
    return NULL;
}

/* The stride of a store's elements along the lanes; 0: not known. */
static int64_t lane_stride(const TlNestAccess *a)
{
    int lane = tl_nest_form(a->place.value->type).lane;
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->place.axes[i].kind == TL_AXIS_SLICE && a->axis[i].dim == lane)
            return a->axis[i].stride;
    return 0;
}

static void join_from(TlNests *plan, TlNestAccess *first)
{
    TlNestAccess *all[TL_NEST_STRIDE] = {first};
    int64_t n = first->place.axes && first->place.value->type->rank ? lane_stride(first) : 0;
    bool may = n >= 2 && n <= TL_NEST_STRIDE && first->has_interval && first->bounds &&
               !first->asks && tl_dtype_bits(first->place.base->type->dtype) >= 8;
    may = may && (n <= FEW || tl_nest_zips(&plan->m, tl_dtype_bytes(first->place.base->type->dtype),
                                           (int)n, (int)n));
    bool one_box = true;
    for (int k = 1; may && k < n; k++) {
        all[k] = next_store(plan, all[k - 1]);
        may = all[k] && all[k]->has_interval && all[k]->bounds &&
              follows(all[k - 1], all[k], &one_box);
    }
    if (!may)
        return;
    TlNestJoined *j = TL_NEW(plan->arena, TlNestJoined);
    j->n = (int)n;
    j->one_box = one_box;
    for (int k = 0; k < n; k++) {
        j->store[k] = all[k];
        tl_map_put_ptr(&plan->joined, all[k]->op, j);
    }
}

/* ---- stores that share work ---- */

typedef struct Walk {
    TlNests *plan;
    TlMap seen;
    int left;
    const TlNestAccess *store;
    const TlMap *before; /* what earlier stores need; NULL: nothing */
    const TlNestAccess *apart; /* the first load of elements apart */
    int shared;
    bool meets; /* something is loaded that the store may change, or is no tile's arithmetic */
} Walk;

/* Is it work, or does it only name elements? */
static bool is_work(const TlOp *op)
{
    return op->opcode == TL_OP_LOAD || (tl_op_info(op->opcode)->flags & F_ELEM);
}

static void walk(Walk *w, const TlValue *v, const TlBlock *block)
{
    const TlOp *op = v->def;
    if (v->type->kind != TL_TILE || v->type->rank == 0 || !op || op->block != block ||
        tl_map_get(&w->seen, v->id, NULL) || w->meets)
        return;
    w->meets = --w->left < 0;
    tl_map_put(&w->seen, v->id, 1);
    if (op->opcode == TL_OP_LOAD) {
        const TlNestAccess *a = tl_map_get_ptr(&w->plan->access, op);
        w->meets |= tl_may_alias(w->plan->fn, a->place.base, w->store->place.base);
        if (!w->apart && a->place.rank == 1 && tl_nest_stride(a, 0) > 1)
            w->apart = a;
    }
    w->shared += w->before && is_work(op) && tl_map_get(w->before, v->id, NULL);
    for (uint32_t i = 0; i < op->nin; i++)
        walk(w, tl_in(op, i), block);
}

/* Do the stores never meet: in arrays of their own, or in one that is dense, at scalar indices that
 * differ? */
static bool are_apart(const TlNests *plan, const TlNestAccess *a, const TlNestAccess *b)
{
    const TlPlace *p = &a->place, *q = &b->place;
    if (!tl_may_alias(plan->fn, p->base, q->base))
        return true;
    if (p->base != q->base || p->base->def || p->naxes != q->naxes || !plan->fn->info)
        return false;
    const TlParam *param = &plan->fn->info->params.data[p->base->index];
    bool differ = false;
    for (uint32_t i = 0; i < p->naxes; i++) {
        TlWideInt x, y;
        if (param->stride[i].kind != TILE_DIM_DENSE || p->axes[i].kind != q->axes[i].kind)
            return false;
        differ |= p->axes[i].kind == TL_AXIS_SCALAR &&
                  tl_const_int_value(p->index[i].value, &x) &&
                  tl_const_int_value(q->index[i].value, &y) && x != y;
    }
    return differ;
}

/* Do loads of two stores take elements that lie between each other's? Then vectors are loaded, and
 * taken apart, for both. */
static bool share_vectors(const TlNestAccess *a, const TlNestAccess *b)
{
    int64_t by, n = a && b ? tl_nest_stride(a, 0) : 0;
    TlNest none = {0};
    return n && n == tl_nest_stride(b, 0) && tl_nest_distance(&none, a, b, 0, &by) && by > -n &&
           by < n;
}

/* A store by slices of whole vectors. */
static bool is_plain(const TlNestAccess *a)
{
    const TlPlace *p = &a->place;
    bool plain = p->axes && !p->mask && p->value->type->rank && a->has_interval && a->bounds &&
                 !a->asks && tl_dtype_bits(p->base->type->dtype) >= 8;
    for (uint32_t i = 0; plain && i < p->naxes; i++)
        plain = p->axes[i].kind != TL_AXIS_TILE;
    return plain && tl_nest_is_contiguous(a, tl_nest_form(p->value->type).lane);
}

static bool are_alike(const TlNestAccess *a, const TlNestAccess *b)
{
    const TlType *x = a->place.value->type, *y = b->place.value->type;
    return tl_same_shape(x, y) && tl_gen_elem_bytes(x) == tl_gen_elem_bytes(y);
}

/* Are positions that are inside of one store inside of the other? */
static bool have_one_box(const TlNestAccess *a, const TlNestAccess *b)
{
    const TlPlace *p = &a->place, *q = &b->place;
    bool same = p->base == q->base;
    for (uint32_t i = 0; same && i < p->naxes; i++)
        same = p->axes[i].kind == TL_AXIS_SCALAR || p->index[i].value == q->index[i].value;
    return same;
}

static void join_work(TlNests *plan, TlNestAccess *first)
{
    TlNestJoined all = {.n = 1, .apart = true, .one_box = true, .store = {first}};
    Walk w = {.plan = plan, .left = MOST_WALKED, .store = first};
    tl_map_init(&w.seen, plan->arena);
    if (!is_plain(first))
        return;
    walk(&w, first->place.value, first->op->block);
    while (all.n < MOST_JOINED && !w.meets) {
        TlNestAccess *next = next_store(plan, all.store[all.n - 1]);
        bool may = next && is_plain(next) && are_alike(first, next) &&
                   !tl_nest_joined(plan, next->op);
        for (int k = 0; may && k < all.n; k++)
            may = are_apart(plan, all.store[k], next);
        if (!may)
            break;
        Walk x = {.plan = plan, .left = MOST_WALKED, .store = next, .before = &w.seen};
        tl_map_init(&x.seen, plan->arena);
        walk(&x, next->place.value, next->op->block);
        if (x.meets || (x.shared < SHARED && !share_vectors(w.apart, x.apart)))
            break;
        all.one_box &= have_one_box(first, next);
        all.store[all.n++] = next;
    }
    /* none of them may change what another one needs */
    for (int k = 0; k < all.n && all.n > 1; k++)
        for (int i = 0; i < all.n; i++) {
            Walk x = {.plan = plan, .left = MOST_WALKED, .store = all.store[i]};
            tl_map_init(&x.seen, plan->arena);
            walk(&x, all.store[k]->place.value, first->op->block);
            if (x.meets)
                return;
        }
    if (all.n == 1)
        return;
    TlNestJoined *j = TL_NEW(plan->arena, TlNestJoined);
    *j = all;
    for (int k = 0; k < j->n; k++)
        tl_map_put_ptr(&plan->joined, j->store[k]->op, j);
}

void tl_nest_join_stores(TlNests *plan)
{
    if (plan->check)
        return;
    for (TlOp *op = plan->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        TlNestAccess *a = op->opcode == TL_OP_STORE ? tl_map_get_ptr(&plan->access, op) : NULL;
        if (a && !tl_nest_joined(plan, op))
            join_from(plan, a);
        if (a && !tl_nest_joined(plan, op))
            join_work(plan, a);
    }
}

const TlNestJoined *tl_nest_joined(const TlNests *plan, const TlOp *store)
{
    return tl_map_get_ptr(&plan->joined, store);
}
