/* Facts of the numbers in tiles: the fixed point over a function (axis_info.h).
 *
 * Ops are taken in text order, again and again until nothing changes. What a loop carries starts as
 * its initial value and is joined with what the body yields, so facts only ever get weaker; a range
 * that still moves in the third round goes to the type's bound, and what still changes after
 * MANY_ROUNDS becomes unknown. What each op does to facts is in axis_transfer.c.
 *
 * Two things are known beside the ops: `assume` in the block where a value is made is a promise
 * about it; and a pid is below the grid, whose clause has a bound because extents are below 2^31.
 * That the grid is the clause's own is a promise of forms (ir/form.h); without it the launch may
 * give a grid, of at most 2^31 - 1 programs. */
#include "ir/numeric.h"
#include "ir/rewrite.h"
#include "passes/analysis/axis_impl.h"

/* Of the fixed point: after so many, what still changes becomes unknown; then all is settled. */
enum { MANY_ROUNDS = 8, MAX_ROUNDS = 32 };

int64_t tl_axis_divisor(int64_t x)
{
    uint64_t low = (uint64_t)x & (0 - (uint64_t)x);
    return low == 0 || low > (uint64_t)TL_AXIS_MAX ? TL_AXIS_MAX : (int64_t)low;
}

int64_t tl_axis_times(int64_t a, int64_t b)
{
    TL_ASSERT(a > 0 && b > 0, "%lld times %lld: no powers of two", (long long)a, (long long)b);
    return a >= TL_AXIS_MAX / b ? TL_AXIS_MAX : a * b;
}

/* ---- assumptions ---- */

typedef struct Promise {
    TlAxisInfo *a;
    const TlOp *assume;
} Promise;

/* Does the promise hold wherever v is used? */
static TlAxisFacts *promised(const Promise *p, const TlValue *v)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    return home == p->assume->block && tl_axis_has_numbers(v->type) ? &p->a->assumed[v->id] : NULL;
}

static bool is_number(const TlValue *v, int64_t *out)
{
    uint64_t bits;
    if (!tl_axis_has_numbers(v->type) || !tl_value_is_const(v, &bits))
        return false;
    *out = tl_bits_to_int(v->type->dtype, bits);
    return v->type->dtype != TL_U64 || *out >= 0;
}

/* x % n == 0, x & (n - 1) == 0 */
static void promise_divisible(const Promise *p, const TlOp *op)
{
    int64_t n, zero;
    const TlOp *x = tl_in(op, 0)->def;
    if (!x || !is_number(tl_in(op, 1), &zero) || zero != 0 || x->nin != 2 ||
        !is_number(tl_in(x, 1), &n))
        return;
    TlAxisFacts *f = promised(p, tl_in(x, 0));
    if (!f || !((x->opcode == TL_OP_REM && n != 0) || (x->opcode == TL_OP_AND && n < INT64_MAX)))
        return;
    int64_t by = tl_axis_divisor(x->opcode == TL_OP_REM ? n : n + 1);
    f->divisibility[0] = tl_axis_max(f->divisibility[0], by);
}

/* x < n and the like */
static void promise_bound(const Promise *p, const TlOp *op)
{
    int64_t n;
    bool swapped = is_number(tl_in(op, 0), &n);
    if (!swapped && !is_number(tl_in(op, 1), &n))
        return;
    TlAxisFacts *f = promised(p, tl_in(op, swapped));
    if (!f || tl_in(op, 0)->type->dtype == TL_U64)
        return;
    bool upper = (op->opcode == TL_OP_LT || op->opcode == TL_OP_LE) != swapped;
    bool strict = op->opcode == TL_OP_LT || op->opcode == TL_OP_GT;
    if (upper && !(strict && n == INT64_MIN))
        f->hi = tl_axis_min(f->hi, n - strict);
    if (!upper && !(strict && n == INT64_MAX))
        f->lo = tl_axis_max(f->lo, n + strict);
}

static void promise(const Promise *p, const TlValue *c, int depth)
{
    const TlOp *op = c->def;
    if (!op)
        return;
    if (op->opcode == TL_OP_EQ)
        promise_divisible(p, op);
    if (op->opcode == TL_OP_LT || op->opcode == TL_OP_LE || op->opcode == TL_OP_GT ||
        op->opcode == TL_OP_GE)
        promise_bound(p, op);
    for (uint32_t i = 0; op->opcode == TL_OP_AND && i < 2 && depth < 8; i++)
        promise(p, tl_in(op, i), depth + 1);
}

static void take_assumptions(TlAxisInfo *a, TlArena *arena)
{
    a->assumed = TL_NEW_ARRAY(arena, TlAxisFacts, a->fn->nvalues + 1);
    for (uint32_t i = 0; i < a->fn->nvalues; i++) {
        a->assumed[i].divisibility[0] = 1;
        a->assumed[i].lo = INT64_MIN;
        a->assumed[i].hi = INT64_MAX;
    }
    for (const TlOp *op = a->fn->body->first; op; op = tl_walk_next(op, NULL))
        if (op->opcode == TL_OP_ASSUME)
            promise(&(Promise){a, op}, tl_in(op, 0), 0);
}

/* ---- the grid ---- */

/* The greatest quotient by a divisor that is at least `least`. */
static int64_t quotient_of(int64_t x, int64_t least, bool up)
{
    int64_t y = tl_axis_max(least, 1);
    return x / y + (up && x % y != 0);
}

/* An upper bound of a launch-time expression of names that are at least 0; -1: none known. */
static int64_t upper_bound(const TlKernelInfo *k, const TlHostExpr *e)
{
    int64_t lo[TILE_HX_MAX_STACK], hi[TILE_HX_MAX_STACK];
    TL_ASSERT(e->code.len > 0, "an expression without code");
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->code.len; i++) {
        tile_hx_ins ins = e->code.data[i];
        if (ins.op == TILE_HX_CONST || ins.op == TILE_HX_SYM) {
            bool name = ins.op == TILE_HX_SYM;
            if (n == TILE_HX_MAX_STACK || (!name && (ins.imm < 0 || ins.imm > INT32_MAX)))
                return -1;
            if (name) {
                const TlSym *s = &k->syms.data[ins.imm];
                const TlParam *p = &k->params.data[s->param];
                if (s->is_stride || p->extent[s->axis].is_i64)
                    return -1;
            }
            lo[n] = name ? 0 : ins.imm;
            hi[n++] = name ? INT32_MAX : ins.imm;
            continue;
        }
        if (n < 2)
            return -1;
        n--;
        int64_t x = hi[n - 1], y = hi[n], least = lo[n];
        if (ins.op == TILE_HX_ADD)
            hi[n - 1] = x + y, lo[n - 1] += least;
        else if (ins.op == TILE_HX_MUL)
            hi[n - 1] = x * y, lo[n - 1] *= least;
        else if (ins.op == TILE_HX_MIN)
            hi[n - 1] = tl_axis_min(x, y), lo[n - 1] = 0;
        else if (ins.op == TILE_HX_MAX)
            hi[n - 1] = tl_axis_max(x, y), lo[n - 1] = 0;
        else if (ins.op == TILE_HX_DIV || ins.op == TILE_HX_CDIV)
            hi[n - 1] = quotient_of(x, least, ins.op == TILE_HX_CDIV), lo[n - 1] = 0;
        else
            return -1;
        if (hi[n - 1] > INT32_MAX)
            return -1;
    }
    return n == 1 ? hi[0] : -1;
}

static void bound_pids(TlAxisInfo *a)
{
    const TlKernelInfo *k = a->fn->info;
    for (uint32_t i = 0; i < TILE_MAX_GRID; i++) {
        a->pid_end[i] = INT32_MAX;
        if (!k || !k->promise.grid || i >= k->grid.len)
            continue;
        int64_t end = upper_bound(k, &k->exprs.data[k->grid.data[i]]);
        if (end >= 0)
            a->pid_end[i] = end;
    }
}

/* ---- the fixed point ---- */

typedef struct Flow {
    TlAxisInfo *a;
    bool *reached; /* by value id */
    int round;
    bool changed;
} Flow;

static bool same_facts(const TlAxisFacts *x, const TlAxisFacts *y)
{
    for (int d = 0; d < TL_MAX_RANK; d++)
        if (x->contiguity[d] != y->contiguity[d] || x->divisibility[d] != y->divisibility[d] ||
            x->constancy[d] != y->constancy[d])
            return false;
    return x->is_known == y->is_known && x->value == y->value && x->lo == y->lo && x->hi == y->hi;
}

static void set(Flow *f, const TlValue *v, TlAxisFacts facts)
{
    const TlAxisFacts *sure = &f->a->assumed[v->id];
    facts.lo = tl_axis_max(facts.lo, sure->lo);
    facts.hi = tl_axis_min(facts.hi, sure->hi);
    if (sure->divisibility[0] > 1)
        for (int d = 0; d < TL_MAX_RANK; d++)
            facts.divisibility[d] = tl_axis_max(facts.divisibility[d], sure->divisibility[0]);
    f->a->facts[v->id] = facts;
    f->reached[v->id] = true;
}

/* v may also be what `from` is. */
static void flow(Flow *f, const TlValue *v, const TlValue *from)
{
    TL_ASSERT(v->id < f->a->nvalues && from->id < f->a->nvalues, "value %u is new", v->id);
    if (v->type->kind == TL_VIEW || !f->reached[from->id])
        return;
    const TlAxisFacts *more = &f->a->facts[from->id], *old = &f->a->facts[v->id];
    if (!f->reached[v->id]) {
        set(f, v, *more);
        f->changed = true;
        return;
    }
    TlAxisFacts now = tl_axis_join(v->type, old, more), before = *old, wide;
    if (same_facts(&now, old))
        return;
    tl_axis_type_range(v->type->dtype, &wide.lo, &wide.hi);
    if (f->round > 2 && now.lo != old->lo)
        now.lo = wide.lo;
    if (f->round > 2 && now.hi != old->hi)
        now.hi = wide.hi;
    if (f->round > MANY_ROUNDS)
        now = tl_axis_unknown(v->type);
    set(f, v, now);
    f->changed |= !same_facts(&before, &f->a->facts[v->id]);
}

static void flow_all(Flow *f, TlValue *const *to, const TlOp *from, uint32_t skip, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        flow(f, to[i], tl_in(from, skip + i));
}

/* lo, lo + step, ... before hi. */
static void count(Flow *f, const TlOp *loop)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR && loop->nin >= 3,
              "%s has no counter", tl_op_info(loop->opcode)->text);
    const TlValue *iv = loop->regions[0]->args[0];
    const TlAxisFacts *lo = tl_axis_facts(f->a, tl_in(loop, 0));
    const TlAxisFacts *hi = tl_axis_facts(f->a, tl_in(loop, 1));
    const TlAxisFacts *step = tl_axis_facts(f->a, tl_in(loop, 2));
    TlAxisFacts r = tl_axis_unknown(iv->type);
    r.divisibility[0] = tl_axis_min(lo->divisibility[0], step->divisibility[0]);
    bool fits = iv->type->dtype != TL_U64 || (lo->lo >= 0 && hi->lo >= 0);
    if (fits && step->lo > 0) {
        r.lo = lo->lo;
        r.hi = tl_axis_max(r.lo, hi->hi - (hi->hi > INT64_MIN));
    } else if (fits && step->hi < 0) {
        r.hi = lo->hi;
        r.lo = tl_axis_min(r.hi, hi->lo + (hi->lo < INT64_MAX));
    }
    set(f, iv, r);
}

static void leave(Flow *f, const TlOp *end)
{
    const TlBlock *block = end->block;
    const TlOp *op = block->parent;
    if (!op)
        return;
    if (op->opcode == TL_OP_FOR) {
        flow_all(f, block->args + 1, end, 0, op->nout);
        flow_all(f, op->out, op, 3, op->nout);
        flow_all(f, op->out, end, 0, op->nout);
    } else if (op->opcode == TL_OP_IF) {
        flow_all(f, op->out, end, 0, op->nout);
    } else if (op->opcode == TL_OP_WHILE && end->opcode == TL_OP_CONDITION) {
        flow_all(f, op->regions[1]->args, end, 1, op->nout);
        flow_all(f, op->out, end, 1, op->nout);
    } else if (op->opcode == TL_OP_WHILE) { /* carries other values than it results in */
        flow_all(f, op->regions[0]->args, end, 0, op->nin);
    }
}

static void take_op(Flow *f, const TlOp *op)
{
    if (tl_op_info(op->opcode)->flags & F_TERM) {
        leave(f, op);
    } else if (op->opcode == TL_OP_FOR) {
        count(f, op);
        flow_all(f, op->regions[0]->args + 1, op, 3, op->nout);
    } else if (op->opcode == TL_OP_WHILE) {
        flow_all(f, op->regions[0]->args, op, 0, op->nin);
    } else if (op->opcode != TL_OP_IF) {
        for (uint32_t i = 0; i < op->nout; i++)
            if (op->out[i]->type->kind != TL_VIEW)
                set(f, op->out[i], tl_axis_transfer(f->a, op, i));
        for (uint32_t r = 0; r < op->nregions; r++) /* of a reduction: any elements */
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++)
                set(f, op->regions[r]->args[i], tl_axis_unknown(op->regions[r]->args[i]->type));
    }
}

/* Parameters: a pointer is aligned as its elements are, or as the form promises. */
static TlAxisFacts parameter(const TlAxisInfo *a, uint32_t i)
{
    TL_ASSERT(i < a->fn->body->nargs, "parameter %u of %u", i, a->fn->body->nargs);
    const TlType *t = a->fn->body->args[i]->type;
    TlAxisFacts f = tl_axis_unknown(t);
    if (t->ptr)
        f.divisibility[0] = tl_axis_max(tl_axis_promised(a, TILE_TEST_POINTER, i, 0),
                                        tl_dtype_bytes(t->dtype));
    else if (tl_is_int(t->dtype))
        f.divisibility[0] = tl_axis_promised(a, TILE_TEST_SCALAR, i, 0);
    return f;
}

static void start_flow(Flow *f)
{
    const TlBlock *body = f->a->fn->body;
    for (uint32_t i = 0; i < body->nargs; i++)
        if (body->args[i]->type->kind != TL_VIEW)
            set(f, body->args[i], parameter(f->a, i));
}

/* Everything that loops and branches carry is unknown. */
static void give_up(Flow *f)
{
    for (const TlOp *op = f->a->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        for (uint32_t i = 0; op->nregions && i < op->nout; i++)
            f->a->facts[op->out[i]->id] = tl_axis_unknown(op->out[i]->type);
        for (uint32_t r = 0; r < op->nregions; r++)
            for (uint32_t i = 0; i < op->regions[r]->nargs; i++) {
                const TlValue *v = op->regions[r]->args[i];
                f->a->facts[v->id] = tl_axis_unknown(v->type);
            }
    }
}

int64_t tl_axis_promised(const TlAxisInfo *a, tile_test_kind kind, uint32_t param, int axis)
{
    const TlKernelInfo *info = a->fn->info;
    for (uint32_t i = 0; info && i < info->promise.units.len; i++) {
        const tile_image_test *t = &info->promise.units.data[i];
        uint64_t bit = tl_axis_promise_bit(i);
        if (t->kind != (uint32_t)kind || t->param != param || t->axis != (uint32_t)axis)
            continue;
        if (a->asked)
            *a->asked |= bit;
        return a->promised & bit ? (int64_t)t->mask + 1 : 1;
    }
    return 1;
}

TlAxisInfo *tl_axis_info(const TlFn *fn, TlArena *arena)
{
    return tl_axis_info_promised(fn, arena, ~(uint64_t)0);
}

TlAxisInfo *tl_axis_info_promised(const TlFn *fn, TlArena *arena, uint64_t promised)
{
    TL_ASSERT(fn->body && !fn->body->parent, "'%s' has no body", fn->name);
    TlAxisInfo *a = TL_NEW(arena, TlAxisInfo);
    uint64_t asked = 0;
    a->asked = &asked;
    a->fn = fn;
    a->nvalues = fn->nvalues;
    a->promised = promised;
    a->facts = TL_NEW_ARRAY(arena, TlAxisFacts, fn->nvalues + 1);
    bound_pids(a);
    take_assumptions(a, arena);
    Flow f = {.a = a, .reached = TL_NEW_ARRAY(arena, bool, fn->nvalues + 1), .changed = true};
    start_flow(&f);
    while (f.changed) {
        f.changed = false;
        if (++f.round == MAX_ROUNDS)
            give_up(&f);
        for (const TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
            take_op(&f, op);
    }
    a->rests_on = asked;
    a->asked = NULL;
    return a;
}

TlAxisInfo tl_axis_info_narrowed(const TlAxisInfo *a, uint64_t promised)
{
    TlAxisInfo narrow = *a;
    TL_ASSERT((a->rests_on & (a->promised ^ promised)) == 0, "facts rest on what is taken away");
    narrow.promised = promised;
    return narrow;
}

bool tl_axis_info_holds(const TlAxisInfo *a, TlArena *scratch)
{
    TL_ASSERT(a->fn->nvalues >= a->nvalues, "'%s' lost values", a->fn->name);
    const TlAxisInfo *now = tl_axis_info_promised(a->fn, scratch, a->promised);
    for (uint32_t i = 0; i < a->nvalues; i++)
        if (!same_facts(&now->facts[i], &a->facts[i]))
            return false;
    return now->nvalues == a->nvalues;
}

const TlAxisFacts *tl_axis_facts(const TlAxisInfo *a, const TlValue *v)
{
    TL_ASSERT(v->id < a->nvalues && a->facts[v->id].contiguity[0], "no facts of value %u", v->id);
    return &a->facts[v->id];
}
