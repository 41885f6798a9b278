/* narrow-integers: integers of tiles are computed in as few bits as their users can tell.
 *
 *     %x = cast %a : tile<i32, B>       %x = cast %a : tile<i16, B>     (%a: u8)
 *     %s = mul %x, 57                   %s = mul %x, 57
 *     %t = add %s, 256             =>   %t = add %s, 256
 *     %u = shr %t, 9                    %u = shr %t, 9
 *     %y = cast %u : tile<u8, B>        %y = cast %u : tile<u8, B>
 *
 * A vector of 16-bit elements holds twice as many as one of i32. Whoever writes `(i32)x[i +: B]`
 * to be sure that nothing overflows gets them all the same. A CPU's pass: GPUs compute in 32 bits.
 *
 *  1. How many low bits of each value its users ask for: a cast to u8 asks for 8, and so do the
 *     sums, products and bits below it; a shift right by s asks for s more; a comparison for all.
 *  2. The least width of each op. Either its operands and result are numbers of a type so wide
 *     (their ranges, axis_info.h), and the op gives the same number there; or it is one of those
 *     whose low bits depend on low bits only, and is as wide as what is asked for.
 *  3. Ops that hand integers to each other are a web. One is rewritten as a whole, by cost: the
 *     bytes that all ops work on, and those of the conversions between widths, at the ends of the
 *     web too. Tried are the least widths, and those with a floor of 16 and of 32 bits.
 *  4. A web stays as it is where it counts: elements that go up along an axis, and indices, are
 *     what accesses are made of (codegen/nest looks for their form). Products of bytes that are
 *     summed up stay, too: CPUs have instructions for those. */
#include "ir/numeric.h"
#include "ir/remark.h"
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"
#include "passes/pass.h"

typedef struct Num {
    TlOp *op;      /* in a web; NULL: the value is in none */
    int need;      /* low bits that users ask for, at least 1 */
    TlDtype least; /* what it can be computed as */
    uint32_t web;  /* the next on the way to the web's first */
    TlValue *rep;  /* what it has become */
} Num;

typedef struct Web {
    bool stays;
    int64_t cost[4]; /* as it is; with a floor of 8, 16, 32 bits */
    int floor;       /* the best; 0: as it is */
} Web;

typedef struct Narrow {
    TlFn *fn;
    const TlAxisInfo *axis;
    Num *num; /* by id */
    Web *web;
    uint32_t nvalues;
    TlOp **ops; /* of all webs, in text order */
    uint32_t nops;
} Narrow;

static int bits_of(const TlValue *v)
{
    return tl_dtype_bits(v->type->dtype);
}

static const TlAxisFacts *facts_of(const Narrow *n, const TlValue *v)
{
    return tl_axis_facts(n->axis, v);
}

static bool is_in_web(const Narrow *n, const TlValue *v)
{
    return v->id < n->nvalues && n->num[v->id].op;
}

/* ---- the ops of webs ---- */

static bool is_int_tile(const TlValue *v)
{
    return tl_is_int(v->type->dtype) && !tl_is_packed(v->type->dtype) && v->type->rank > 0;
}

static bool is_comparison(TlOpcode o)
{
    return o >= TL_OP_EQ && o <= TL_OP_GE;
}

/* A conversion that wraps. */
static bool is_wrapping_cast(const TlOp *op)
{
    TlDtype from = tl_in(op, 0)->type->dtype;
    return op->opcode == TL_OP_CAST && tl_is_int(from) && !tl_is_packed(from) &&
           tl_is_int(op->out[0]->type->dtype) && !tl_attr(op, TL_ATTR_ROUND) &&
           !tl_attr(op, TL_ATTR_NOSAT);
}

static bool is_sum(const TlOp *op)
{
    return op->opcode == TL_OP_REDUCE &&
           tl_attr_int(op, TL_ATTR_KIND, TL_COMBINE_USER) == TL_COMBINE_ADD;
}

static bool is_summed(const TlValue *v)
{
    for (const TlUse *u = v->uses; u; u = u->next) {
        const TlOp *op = u->user;
        if (op->opcode == TL_OP_RESHAPE)
            op = tl_only_user(op->out[0]);
        if (op && is_sum(op))
            return true;
    }
    return false;
}

/* The integers that give the op its width: of a comparison, an operand. */
static const TlValue *numbers_of(const TlOp *op)
{
    return is_comparison(op->opcode) ? tl_in(op, 0) : op->out[0];
}

/* Ops of webs, besides comparisons. */
static const bool TAKES_PART[TL_OP_COUNT] = {
    [TL_OP_CONST] = true, [TL_OP_BROADCAST] = true, [TL_OP_EXPAND] = true, [TL_OP_CAST] = true,
    [TL_OP_ADD] = true,   [TL_OP_SUB] = true,       [TL_OP_MUL] = true,    [TL_OP_DIV] = true,
    [TL_OP_REM] = true,   [TL_OP_MIN] = true,       [TL_OP_MAX] = true,    [TL_OP_AND] = true,
    [TL_OP_OR] = true,    [TL_OP_XOR] = true,       [TL_OP_SHL] = true,    [TL_OP_SHR] = true,
    [TL_OP_NEG] = true,   [TL_OP_NOT] = true,       [TL_OP_ABS] = true,    [TL_OP_SELECT] = true};

static bool takes_part(const TlOp *op)
{
    if (op->nout != 1 || !(TAKES_PART[op->opcode] || is_comparison(op->opcode)) ||
        !is_int_tile(numbers_of(op)))
        return false;
    if (op->opcode == TL_OP_MUL)
        return !(tl_multiplies_bytes(op->out[0]) && is_summed(op->out[0]));
    return op->opcode != TL_OP_CAST || is_wrapping_cast(op);
}

/* Which operands are the integers? */
static bool is_number(const TlOp *op, uint32_t i)
{
    return op->opcode != TL_OP_SELECT || i > 0;
}

/* Do low bits of the result depend on low bits of the operands only? */
static bool is_ring(const TlOp *op)
{
    TlOpcode o = op->opcode;
    return o == TL_OP_ADD || o == TL_OP_SUB || o == TL_OP_MUL || o == TL_OP_AND || o == TL_OP_OR ||
           o == TL_OP_XOR || o == TL_OP_NEG || o == TL_OP_NOT || o == TL_OP_SELECT ||
           o == TL_OP_CONST || o == TL_OP_CAST || o == TL_OP_BROADCAST || o == TL_OP_EXPAND;
}

/* The amount of a shift by a constant, within its type; -1: it is none. */
static int amount_of(const Narrow *n, const TlOp *shift)
{
    const TlAxisFacts *f = facts_of(n, tl_in(shift, 1));
    bool is = f->is_known && f->value >= 0 && f->value < bits_of(shift->out[0]);
    return is ? (int)f->value : -1;
}

/* ---- 1. what users ask for ---- */

static int bits_below(int64_t mask)
{
    return mask < 0 ? 64 : 64 - (mask ? __builtin_clzll((unsigned long long)mask) : 64);
}

static int least_int(int a, int b)
{
    return a < b ? a : b;
}

/* What op asks of its operand i, of whose bits all are `all`. */
static int asked(const Narrow *n, const TlOp *op, uint32_t i, int all)
{
    TlOpcode o = op->opcode;
    if (!op->nout || !is_in_web(n, op->out[0]) || is_comparison(o) || !is_number(op, i))
        return all;
    int need = n->num[op->out[0]->id].need, by;
    if (o == TL_OP_CAST)
        return need <= all ? need : all;
    if (o == TL_OP_AND && facts_of(n, tl_in(op, 1 - i))->is_known) {
        int mask = bits_below(facts_of(n, tl_in(op, 1 - i))->value);
        return least_int(need, mask ? mask : 1);
    }
    if (is_ring(op))
        return need;
    if ((o == TL_OP_SHL || o == TL_OP_SHR) && i == 0 && (by = amount_of(n, op)) >= 0)
        return o == TL_OP_SHR ? least_int(need + by, all) : need - by > 1 ? need - by : 1;
    return all;
}

static void find_needs(Narrow *n)
{
    for (uint32_t k = n->nops; k-- > 0;) {
        const TlValue *v = n->ops[k]->out[0];
        int need = 1, all = bits_of(v);
        for (const TlUse *u = v->uses; u; u = u->next) {
            int more = asked(n, u->user, (uint32_t)(u - u->user->in), all);
            need = more > need ? more : need;
        }
        n->num[v->id].need = need;
    }
}

/* ---- 2. the least width ---- */

static const TlDtype SIGNED[] = {TL_I8, TL_I16, TL_I32, TL_I64},
                     UNSIGNED[] = {TL_U8, TL_U16, TL_U32, TL_U64};

static TlDtype with_bits(bool is_signed, int bits)
{
    int i = bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
    return is_signed ? SIGNED[i] : UNSIGNED[i];
}

static bool holds(TlDtype d, int64_t lo, int64_t hi)
{
    int64_t least, most;
    tl_axis_type_range(d, &least, &most);
    return least <= lo && hi <= most;
}

/* The narrowest type below `of` that holds all numbers from lo to hi; of itself: there is none. */
static TlDtype holder(TlDtype of, int64_t lo, int64_t hi)
{
    bool is_signed = tl_is_signed(of);
    for (int bits = 8; bits < tl_dtype_bits(of); bits *= 2)
        for (int other = 0; other < 2; other++) {
            TlDtype d = with_bits(is_signed != (other == 1), bits);
            if (holds(d, lo, hi))
                return d;
        }
    return of;
}

/* Vectors of bytes have no products; shifts of bytes by different amounts and quotients are made of
 * wider ones. */
static int fewest_bits(const Narrow *n, const TlOp *op)
{
    TlOpcode o = op->opcode;
    bool shifts = o == TL_OP_SHL || o == TL_OP_SHR;
    return o == TL_OP_MUL || o == TL_OP_DIV || o == TL_OP_REM || (shifts && amount_of(n, op) < 0)
               ? 16
               : 8;
}

static TlDtype widened(TlDtype d, int bits)
{
    return tl_dtype_bits(d) < bits ? with_bits(tl_is_signed(d), bits) : d;
}

/* Are the amounts of the shift below `bits`, so that they mean the same there? */
static bool shifts_within(const Narrow *n, const TlOp *op, int bits)
{
    const TlAxisFacts *f = facts_of(n, tl_in(op, 1));
    return f->lo >= 0 && f->hi < bits;
}

/* Where the numbers decide. */
static TlDtype exact_type(const Narrow *n, const TlOp *op)
{
    const TlValue *v = numbers_of(op);
    TlDtype of = v->type->dtype;
    const TlAxisFacts *f = facts_of(n, v);
    int64_t lo = f->lo, hi = f->hi;
    bool shifts = op->opcode == TL_OP_SHL || op->opcode == TL_OP_SHR;
    if (!is_ring(op) && op->opcode != TL_OP_SHL)
        for (uint32_t i = 0; i < op->nin && !(shifts && i == 1); i++) {
            const TlAxisFacts *x = facts_of(n, tl_in(op, i));
            lo = tl_axis_min(lo, x->lo);
            hi = tl_axis_max(hi, x->hi);
        }
    if (op->opcode == TL_OP_ABS && lo < 0 && hi > 0 && hi - 1 == -(lo + 1))
        hi--; /* |MIN| is right as a number without a sign */
    TlDtype d = widened(holder(of, lo, hi), fewest_bits(n, op));
    if (op->opcode == TL_OP_ABS && tl_dtype_bits(d) < tl_dtype_bits(of))
        d = with_bits(false, tl_dtype_bits(d));
    while (shifts && tl_dtype_bits(d) < tl_dtype_bits(of) &&
           !shifts_within(n, op, tl_dtype_bits(d)))
        d = with_bits(tl_is_signed(d), 2 * tl_dtype_bits(d));
    return tl_dtype_bits(d) < tl_dtype_bits(of) ? d : of;
}

/* Where users ask for few bits. */
static TlDtype low_type(const Narrow *n, const TlOp *op)
{
    TlDtype of = op->out[0]->type->dtype;
    int need = n->num[op->out[0]->id].need, bits = 8, all = tl_dtype_bits(of);
    bool shifts = op->opcode == TL_OP_SHL || op->opcode == TL_OP_SHR;
    int by = shifts ? amount_of(n, op) : 0;
    if (by < 0 || !(is_ring(op) || shifts))
        return of;
    while (bits < all && (bits < need + (op->opcode == TL_OP_SHR ? by : 0) || bits <= by))
        bits *= 2;
    bits = bits < fewest_bits(n, op) ? fewest_bits(n, op) : bits;
    return bits < all ? with_bits(tl_is_signed(of), bits) : of;
}

static void find_least(Narrow *n)
{
    for (uint32_t k = 0; k < n->nops; k++) {
        Num *x = &n->num[n->ops[k]->out[0]->id];
        TlDtype exact = exact_type(n, n->ops[k]), low = low_type(n, n->ops[k]);
        bool compares = is_comparison(n->ops[k]->opcode);
        x->least = compares || tl_dtype_bits(exact) <= tl_dtype_bits(low) ? exact : low;
    }
}

/* ---- 3. webs ---- */

static uint32_t first_of(Narrow *n, uint32_t id)
{
    while (n->num[id].web != id) {
        n->num[id].web = n->num[n->num[id].web].web;
        id = n->num[id].web;
    }
    return id;
}

static Web *web_of(Narrow *n, const TlOp *op)
{
    return &n->web[first_of(n, op->out[0]->id)];
}

static void tie(Narrow *n)
{
    for (uint32_t k = 0; k < n->nops; k++)
        for (uint32_t i = 0; i < n->ops[k]->nin; i++) {
            const TlValue *in = tl_in(n->ops[k], i);
            if (!is_number(n->ops[k], i) || !is_in_web(n, in) || facts_of(n, in)->is_known)
                continue;
            uint32_t a = first_of(n, in->id), b = first_of(n, n->ops[k]->out[0]->id);
            n->num[a].web = b;
        }
}

/* Elements that count up along an axis. */
static bool counts(const Narrow *n, const TlValue *v)
{
    const TlAxisFacts *f = facts_of(n, v);
    for (int d = 0; d < v->type->rank; d++)
        if (!f->is_known && f->contiguity[d] > 1)
            return true;
    return v->def && v->def->opcode == TL_OP_IOTA;
}

/* May the user, outside of webs, take an integer that was computed in fewer bits? */
static bool takes_narrow(const TlUse *u)
{
    const TlOp *op = u->user;
    TlOpcode o = op->opcode;
    if (o == TL_OP_STORE || o == TL_OP_ATOMIC_RMW || o == TL_OP_ATOMIC_STORE)
        return tl_op_place(op).value == u->value;
    if (o == TL_OP_PTR_ADD || o == TL_OP_POINTER || o == TL_OP_ASM)
        return false;
    return tl_op_info(o)->flags & (F_ELEM | F_TERM) || o == TL_OP_REDUCE || o == TL_OP_SCAN ||
           o == TL_OP_RESHAPE || o == TL_OP_TRANS || o == TL_OP_DOT;
}

/* ---- the cost of a web ---- */

/* What the op's numbers are computed as with a floor; -1: as they are. */
static TlDtype type_with(const Narrow *n, const TlOp *op, int floor)
{
    const TlValue *v = numbers_of(op);
    TlDtype of = v->type->dtype, least = n->num[op->out[0]->id].least;
    int all = tl_dtype_bits(of);
    if (floor < 0 || floor >= all || tl_dtype_bits(least) >= all)
        return of;
    return widened(least, floor);
}

static bool is_free(const TlOp *op)
{
    TlOpcode o = op->opcode;
    return o == TL_OP_CONST || o == TL_OP_CAST || o == TL_OP_BROADCAST || o == TL_OP_EXPAND;
}

static int bits_with(const Narrow *n, const TlValue *v, int floor)
{
    bool in = is_in_web(n, v) && !is_comparison(v->def->opcode);
    return in ? tl_dtype_bits(type_with(n, v->def, floor)) : bits_of(v);
}

/* Bytes that a conversion works on. Narrowing takes two instructions: packing, and putting in
 * order. */
static int64_t conversion(int from, int to)
{
    return from == to ? 0 : from > to ? 2 * from / 8 : to / 8;
}

/* Of an op, with what brings its operands to its width, per element. */
static int64_t op_cost(const Narrow *n, const TlOp *op, int floor)
{
    int bits = tl_dtype_bits(type_with(n, op, floor));
    bool shifts_bytes = (op->opcode == TL_OP_SHL || op->opcode == TL_OP_SHR) && bits == 8;
    int64_t cost = is_free(op) ? 0 : tl_elem_work(op->opcode)->cpu * (bits / 8);
    if (shifts_bytes || (op->opcode == TL_OP_MUL && bits >= 32))
        cost *= 2;
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlValue *in = tl_in(op, i);
        if (is_number(op, i) && in->type->rank && !facts_of(n, in)->is_known)
            cost += conversion(bits_with(n, in, floor), bits);
    }
    return cost;
}

/* Of v for its users outside. */
static int64_t end_cost(const Narrow *n, const TlOp *op, int floor)
{
    const TlValue *v = op->out[0];
    if (is_comparison(op->opcode) || op->opcode == TL_OP_CONST)
        return 0;
    for (const TlUse *u = v->uses; u; u = u->next)
        if (!u->user->nout || !is_in_web(n, u->user->out[0]))
            return conversion(bits_with(n, v, floor), bits_of(v));
    return 0;
}

static const int FLOORS[] = {-1, 8, 16, 32};

static void weigh(Narrow *n)
{
    for (uint32_t k = 0; k < n->nops; k++) {
        const TlOp *op = n->ops[k];
        Web *w = web_of(n, op);
        int64_t elements = tl_type_elems(op->out[0]->type);
        for (int f = 0; f < 4; f++)
            w->cost[f] += elements * (op_cost(n, op, FLOORS[f]) + end_cost(n, op, FLOORS[f]));
        for (uint32_t i = 0; i < op->nin; i++)
            w->stays |= is_number(op, i) && counts(n, tl_in(op, i));
        for (const TlUse *u = op->out[0]->uses; u && op->opcode != TL_OP_CONST; u = u->next)
            w->stays |= !is_comparison(op->opcode) &&
                        !(u->user->nout && is_in_web(n, u->user->out[0])) && !takes_narrow(u);
    }
    for (uint32_t k = 0; k < n->nops; k++) {
        Web *w = web_of(n, n->ops[k]);
        int64_t best = w->cost[0];
        for (int f = 1; f < 4 && !w->stays; f++)
            if (w->cost[f] < best) {
                best = w->cost[f];
                w->floor = FLOORS[f];
            }
    }
}

/* ---- the rewrite ---- */

static TlValue *as_operand(Narrow *n, TlBuilder *b, TlValue *v, TlDtype d)
{
    uint64_t bits;
    TlValue *x = is_in_web(n, v) && n->num[v->id].rep ? n->num[v->id].rep : v;
    if (tl_value_is_const(v, &bits))
        return tl_const_bits(b, tl_type_with_dtype(b->fn->module->ctx, v->type, d),
                             tl_bits_from_int(d, tl_bits_to_int(v->type->dtype, bits)));
    return tl_cast(b, x, d);
}

static void rewrite(Narrow *n, TlOp *op)
{
    TlValue *in[3], *v = op->out[0];
    TlDtype d = type_with(n, op, web_of(n, op)->floor);
    TlBuilder b = tl_builder_before(op);
    if (op->opcode == TL_OP_CONST)
        return;
    TL_ASSERT(op->nin <= 3, "%u operands", op->nin);
    bool negates = op->opcode == TL_OP_ABS && tl_is_signed(v->type->dtype);
    TlDtype within = negates ? with_bits(true, tl_dtype_bits(d)) : d;
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = is_number(op, i) ? as_operand(n, &b, tl_in(op, i), within) : tl_in(op, i);
    const TlType *t = is_comparison(op->opcode)
                          ? v->type
                          : tl_type_with_dtype(b.fn->module->ctx, v->type, within);
    TlValue *x = op->opcode == TL_OP_CAST ? in[0] : tl_op_like(&b, op, op->nin, in, 1, &t)->out[0];
    if (!is_free(op) && within != numbers_of(op)->type->dtype)
        tl_remark(n->fn, x->def, TL_REMARK_BITS, bits_of(numbers_of(op)));
    if (within != d)
        x = tl_cast(&b, x, d);
    if (!x->name)
        x->name = v->name;
    n->num[v->id].rep = x;
    if (is_comparison(op->opcode)) {
        tl_replace_uses(v, x);
        return;
    }
    TlValue *back = NULL;
    for (TlUse *u = v->uses, *next; u; u = next) {
        next = u->next;
        if (u->user->nout && is_in_web(n, u->user->out[0]))
            continue;
        if (!back)
            back = tl_cast(&b, x, v->type->dtype);
        if (back != v)
            tl_set_operand(u->user, (uint32_t)(u - u->user->in), back);
    }
}

TlPassResult tl_pass_narrow_integers(TlFn *fn, TlPassCtx *px)
{
    if (fn->ring)
        return TL_SAME;
    TlArena *arena = px->scratch;
    Narrow n = {.fn = fn,
                .axis = tl_pass_axis_info(fn, px),
                .num = TL_NEW_ARRAY(arena, Num, fn->nvalues + 1),
                .web = TL_NEW_ARRAY(arena, Web, fn->nvalues + 1),
                .nvalues = fn->nvalues};
    uint32_t most = 0;
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        most += takes_part(op);
    n.ops = TL_NEW_ARRAY(arena, TlOp *, most + 1);
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (!takes_part(op))
            continue;
        n.ops[n.nops++] = op;
        n.num[op->out[0]->id] = (Num){.op = op, .web = op->out[0]->id};
    }
    find_needs(&n);
    find_least(&n);
    tie(&n);
    weigh(&n);
    TlPassResult result = TL_SAME;
    for (uint32_t k = 0; k < n.nops; k++)
        if (web_of(&n, n.ops[k])->floor) {
            rewrite(&n, n.ops[k]);
            result = TL_CHANGED;
        }
    return result;
}
