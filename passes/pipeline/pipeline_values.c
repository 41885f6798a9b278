/* Values of a loop's body at other moments (pipeline_expand.c): before the loop, or iterations
 * further on. What a moment needs is made when it is asked for first:
 *
 *   the counter        lo + n * step, or counter + n * step
 *   a carried value    before: the initial one, or what iteration n - 1 yields; in the loop: one
 *                      more carried value that runs n trips ahead
 *   a fetched load     begun at its own moment (`ahead`) under the mask "is there such an
 *                      iteration"; later moments of the same iteration get it through carried
 *                      values, one per trip
 *   anything else      is pure: once more, of operands of the same moment
 *
 * "Is there an iteration n iterations after the one with counter i?" is i < hi - n * step, where
 * the right side is computed once, before the loop, and saturates, so that nothing overflows. A
 * step that is not known is handled by the same in 64 bits. */
#include "ir/remark.h"
#include "passes/pipeline/pipeline_impl.h"

enum { MORE = 6 }; /* operands of a copy besides its load's: mask, other; buffer, slot, barriers,
                    * slot */

static TlBuilder *builder(TlExpand *x, TlMoment m)
{
    return m.in_loop ? &x->start : &x->before;
}

static uint64_t moment_key(TlMoment m, uint64_t what)
{
    return what << 9 | (uint64_t)m.in_loop << 8 | (uint64_t)m.n;
}

void tl_pipeline_say_ahead(TlExpand *x, const TlOp *op, TlMoment m)
{
    if (m.in_loop && m.n)
        tl_remark(x->fn, op, TL_REMARK_AHEAD, m.n);
}

/* An iteration, or (before the loop) number t < 0, which begins work of iterations from 0 on. */
TlMoment tl_pipeline_moment(bool in_loop, int t, int ahead)
{
    TL_ASSERT(ahead >= 0, "%d trips ahead", ahead);
    return (TlMoment){in_loop, in_loop ? ahead : t + ahead};
}

TlValue *tl_pipeline_int(TlExpand *x, const TlType *t, TlWideInt v)
{
    TL_ASSERT(tl_is_int(t->dtype) && t->rank == 0,
              "a constant of type %s", tl_dtype_name(t->dtype));
    int64_t number = (int64_t)v;
    uint64_t key = tl_hash(&t, sizeof t, tl_hash(&number, sizeof number, 0)), known;
    if (tl_map_get(&x->constants, key, &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *made = tl_const_int(&x->before, t, number);
    tl_map_put(&x->constants, key, (uint64_t)(uintptr_t)made);
    return made;
}

/* ---- is there such an iteration? ---- */

static bool fits_type(const TlType *t, TlWideInt v)
{
    TlWideInt lo = tl_is_signed(t->dtype) ? -((TlWideInt)1 << (tl_dtype_bits(t->dtype) - 1)) : 0;
    TlWideInt hi = lo + (((TlWideInt)1 << tl_dtype_bits(t->dtype)) - 1);
    return lo <= v && v <= hi;
}

static TlWideInt type_end(const TlType *t, bool low)
{
    TlWideInt lo = tl_is_signed(t->dtype) ? -((TlWideInt)1 << (tl_dtype_bits(t->dtype) - 1)) : 0;
    return low ? lo : lo + (((TlWideInt)1 << tl_dtype_bits(t->dtype)) - 1);
}

bool tl_pipeline_has_trips(const TlOp *loop)
{
    TL_ASSERT(loop->opcode == TL_OP_FOR, "%s has no trips", tl_op_info(loop->opcode)->text);
    TlWideInt step;
    return tl_const_int_value(tl_in(loop, 2), &step) ||
           tl_dtype_bits(tl_in(loop, 2)->type->dtype) <= 32;
}

/* hi - n * step, no further than the type goes; NULL: no iteration is n iterations before the end.
 */
static TlValue *saturated_limit(TlExpand *x, TlWideInt step, int n)
{
    TlBuilder *b = &x->before;
    TlValue *hi = tl_in(x->loop, 1), *move;
    const TlType *t = hi->type;
    TlWideInt by = step * n, end = type_end(t, step > 0), edge = end + by, known;
    if (!fits_type(t, by > 0 ? by : -by) || !fits_type(t, edge))
        return NULL;
    if (tl_const_int_value(hi, &known))
        return tl_pipeline_int(x, t, fits_type(t, known - by) ? known - by : end);
    move = tl_pipeline_int(x, t, by > 0 ? by : -by);
    TlValue *moved = tl_binary(b, step > 0 ? TL_OP_SUB : TL_OP_ADD, hi, move);
    if (step > 0 ? x->s->bound_lo >= edge : x->s->bound_hi <= edge)
        return moved;
    TlValue *is_far = tl_binary(b, step > 0 ? TL_OP_GT : TL_OP_LT, hi, tl_pipeline_int(x, t, edge));
    return tl_select(b, is_far, moved, tl_pipeline_int(x, t, end));
}

static TlValue *known_step_test(TlExpand *x, TlBuilder *b, TlValue *counter, TlWideInt step, int n)
{
    TlValue *limit = n ? tl_map_get_ptr(&x->limits, (void *)(uintptr_t)n) : tl_in(x->loop, 1);
    if (!limit) {
        limit = saturated_limit(x, step, n);
        if (!limit)
            return tl_pipeline_int(x, tl_type_scalar(x->ctx, TL_BOOL), 0);
        tl_map_put_ptr(&x->limits, (void *)(uintptr_t)n, limit);
    }
    return tl_binary(b, step > 0 ? TL_OP_LT : TL_OP_GT, counter, limit);
}

static TlValue *any_step_test(TlExpand *x, TlBuilder *b, TlValue *counter, int n)
{
    TlValue *step = tl_cast(b, tl_in(x->loop, 2), TL_I64),
            *hi = tl_cast(b, tl_in(x->loop, 1), TL_I64);
    TlValue *i = tl_cast(b, counter, TL_I64), *zero = tl_pipeline_int(x, step->type, 0);
    TlValue *far = tl_binary(b, TL_OP_MUL, step, tl_pipeline_int(x, step->type, n));
    TlValue *limit = tl_binary(b, TL_OP_SUB, hi, far);
    TlValue *up = tl_binary(b, TL_OP_AND, tl_binary(b, TL_OP_GT, step, zero),
                            tl_binary(b, TL_OP_LT, i, limit));
    TlValue *down = tl_binary(b, TL_OP_AND, tl_binary(b, TL_OP_LT, step, zero),
                              tl_binary(b, TL_OP_GT, i, limit));
    return tl_binary(b, TL_OP_OR, up, down);
}

TlValue *tl_pipeline_test(TlExpand *x, TlMoment m)
{
    TlWideInt trips, step = 0;
    uint64_t key = moment_key(m, 0);
    TlValue *known = tl_map_get_ptr(&x->tests, (void *)(uintptr_t)(key + 1));
    if (known)
        return known;
    if (m.in_loop ? m.n == 0 : tl_const_trips(x->loop, &trips) && m.n < trips)
        return NULL;
    TlBuilder *b = builder(x, m);
    TlValue *counter = m.in_loop ? x->body->args[0] : tl_in(x->loop, 0);
    TlValue *test = tl_const_int_value(tl_in(x->loop, 2), &step) && step
                        ? known_step_test(x, b, counter, step, m.n)
                        : any_step_test(x, b, counter, m.n);
    tl_map_put_ptr(&x->tests, (void *)(uintptr_t)(key + 1), test);
    return test;
}

/* ---- values ---- */

TlValue *tl_pipeline_carry(TlExpand *x, const TlType *type, const char *name, TlCarried c)
{
    TL_ASSERT(!c.arg, "a carried value that is in the loop already");
    c.arg = tl_block_arg(x->body, type, name);
    tl_vec_push(x->arena, &x->carried, c);
    return c.arg;
}

/* A counter moved by n steps, but no further than its type goes (a multiple of the step, so that
 * what is known of its divisors stays): what is fetched for an iteration that there is not is not
 * used, and that the sum does not wrap is known to who tests bounds. */
static TlValue *add_saturated(TlExpand *x, TlBuilder *b, TlValue *counter, TlWideInt step, int n)
{
    const TlType *t = counter->type;
    TlWideInt by = step * n, edge = step ? (type_end(t, by < 0) - by) / step * step : 0;
    if (by && fits_type(t, by) && fits_type(t, edge))
        counter =
            tl_binary(b, by > 0 ? TL_OP_MIN : TL_OP_MAX, counter, tl_pipeline_int(x, t, edge));
    return tl_binary(b, TL_OP_ADD, counter, tl_pipeline_int(x, t, by));
}

/* Bulk copies alone take it: they need no bounds, and are begun only for iterations that there are.
 */
static bool is_for_bulk(const TlExpand *x, TlMoment m)
{
    bool is = m.in_loop;
    for (uint32_t i = 0; i < x->s->fetches.len; i++)
        is &= x->s->fetches.data[i].how == TL_FETCH_BULK;
    return is;
}

static TlValue *counter_at(TlExpand *x, TlMoment m)
{
    TlBuilder *b = builder(x, m);
    TlValue *from = m.in_loop ? x->body->args[0] : tl_in(x->loop, 0), *by = tl_in(x->loop, 2);
    TlWideInt step, lo;
    if (m.n == 0)
        return from;
    if (!tl_const_int_value(by, &step))
        return tl_binary(b, TL_OP_ADD, from,
                         tl_binary(b, TL_OP_MUL, by, tl_pipeline_int(x, by->type, m.n)));
    if (tl_const_int_value(from, &lo))
        return tl_pipeline_int(x, by->type, lo + step * m.n);
    if (is_for_bulk(x, m) && fits_type(by->type, step * m.n))
        return tl_binary(b, TL_OP_ADD, from, tl_pipeline_int(x, by->type, step * m.n));
    return add_saturated(x, b, from, step, m.n);
}

void tl_pipeline_remember(TlExpand *x, const TlValue *v, TlMoment m, TlValue *made)
{
    TL_ASSERT(made->type == v->type, "value %u became another type", v->id);
    tl_map_put(&x->values, moment_key(m, v->id), (uint64_t)(uintptr_t)made);
}

/* An argument of the body. */
static TlValue *carried_at(TlExpand *x, TlValue *v, TlMoment m)
{
    TL_ASSERT(!v->def && v->block == x->body && v->index > 0, "value %u is not carried", v->id);
    TlValue *yielded = tl_in(x->body->last, v->index - 1);
    if (!m.in_loop && m.n == 0)
        return tl_in(x->loop, v->index + 2);
    if (!m.in_loop)
        return tl_pipeline_value(x, yielded, (TlMoment){false, m.n - 1});
    TlCarried c = {
        .init = tl_pipeline_value(x, v, (TlMoment){false, m.n}), .of = yielded, .moment = m};
    return tl_pipeline_carry(x, v->type, v->name, c);
}

/* The mask of a fetch: its own, and the moment's test. */
static TlValue *mask_at(TlExpand *x, const TlFetch *f, const TlPlace *p, TlMoment m)
{
    TlBuilder *b = builder(x, m);
    TlValue *test = f->ends && f->how != TL_FETCH_BULK ? NULL : tl_pipeline_test(x, m),
            *mask = p->mask ? tl_pipeline_value(x, p->mask, m) : NULL;
    if (!test || !mask)
        return test ? test : mask;
    if (mask->type->rank)
        test = tl_op_new(b, TL_OP_BROADCAST, 1, &test, 1, &mask->type, 0, 0, NULL)->out[0];
    return tl_binary(b, TL_OP_AND, mask, test);
}

TlAccess tl_pipeline_access(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TL_ASSERT(f->load->opcode == TL_OP_LOAD, "%s is no load", tl_op_info(f->load->opcode)->text);
    TlPlace p = tl_op_place(f->load);
    TlAccess a = {.f = f, .m = m, .in = TL_NEW_ARRAY(x->arena, TlValue *, f->load->nin + MORE)};
    a.n = f->load->nin - (p.mask != NULL) - (p.other != NULL);
    for (uint32_t i = 0; i < a.n; i++)
        a.in[i] = tl_pipeline_value(x, tl_in(f->load, i), m);
    TlValue *mask = mask_at(x, f, &p, m);
    a.masked = mask != NULL;
    if (mask)
        a.in[a.n++] = mask;
    if (p.other && f->how > TL_FETCH_COPY)
        a.in[a.n++] = tl_pipeline_value(x, p.other, m);
    return a;
}

static void set_flag(TlExpand *x, TlOp *op, TlAttrId id, bool on)
{
    if (on)
        tl_attr_set(x->fn, op, (TlAttr){.id = id, .u.i = 1});
    else
        tl_attr_remove(op, id);
}

TlOp *tl_pipeline_begin(TlExpand *x, TlBuilder *b, const TlAccess *a, bool inside)
{
    TL_ASSERT(a->n <= a->f->load->nin + MORE, "%u operands of a load of %u", a->n, a->f->load->nin);
    const TlOp *load = a->f->load;
    const TlType *t = load->out[0]->type;
    bool copies = a->f->how <= TL_FETCH_COPY;
    if (copies)
        t = tl_type_token(x->ctx, t->dtype, t->rank, t->shape, a->f->layout);
    b->loc = load->loc;
    TlOp *made = tl_op_new(b, copies ? TL_OP_COPY : TL_OP_LOAD, a->n, a->in, 1, &t, 0, load->nattrs,
                           load->attrs);
    made->out[0]->name = load->out[0]->name;
    if (copies)
        set_flag(x, made, TL_ATTR_OTHER, false);
    set_flag(x, made, TL_ATTR_MASK, a->masked);
    if (inside)
        set_flag(x, made, TL_ATTR_UNCHECKED, true);
    return made;
}

static TlValue *load_at(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TlAccess a = tl_pipeline_access(x, f, m);
    return tl_pipeline_begin(x, builder(x, m), &a, false)->out[0];
}

/* The result of the load that was begun ahead - n iterations ago. */
static TlValue *waiting_at(TlExpand *x, const TlFetch *f, TlMoment m)
{
    TlValue *v = f->load->out[0];
    TlCarried c = {.init = tl_pipeline_value(x, v, (TlMoment){false, m.n}),
                   .of = v,
                   .moment = {true, m.n + 1}};
    return tl_pipeline_carry(x, v->type, v->name, c);
}

static TlValue *again_at(TlExpand *x, const TlOp *op, uint32_t result, TlMoment m)
{
    TL_ASSERT(result < op->nout, "result %u of %s", result, tl_op_info(op->opcode)->text);
    TlMap map = {.arena = x->arena};
    for (uint32_t i = 0; i < op->nin; i++)
        tl_map_put_ptr(&map, tl_in(op, i), tl_pipeline_value(x, tl_in(op, i), m));
    return tl_op_clone(builder(x, m), op, &map)->out[result];
}

static TlValue *make_at(TlExpand *x, TlValue *v, TlMoment m)
{
    if (!v->def)
        return v->index == 0 ? counter_at(x, m) : carried_at(x, v, m);
    const TlFetch *f = tl_schedule_of(x->s, v->def);
    if (f && m.in_loop && m.n < f->ahead)
        return waiting_at(x, f, m);
    return f ? load_at(x, f, m) : again_at(x, v->def, v->index, m);
}

bool tl_pipeline_is_known(const TlExpand *x, const TlValue *v, TlMoment m)
{
    return tl_map_get(&x->values, moment_key(m, v->id), NULL);
}

TlValue *tl_pipeline_value(TlExpand *x, TlValue *v, TlMoment m)
{
    uint64_t known;
    if (tl_is_invariant(v, x->loop))
        return v;
    if (tl_map_get(&x->values, moment_key(m, v->id), &known))
        return (TlValue *)(uintptr_t)known;
    TlValue *made = make_at(x, v, m);
    tl_pipeline_remember(x, v, m, made);
    return made;
}
