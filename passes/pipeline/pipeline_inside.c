/* One scalar test for everything that an iteration fetches: is every slice completely inside its
 * view?
 *
 *     A[m +: BM, k +: BK], n trips ahead:    0 <= m, m + BM <= M    before the loop
 *                                            k + n * step + BK <= K in it
 *
 * What does not change in the loop is tested once. The loop's counter, which counts up from 0 or
 * above, has a limit: the extent less what is added to the counter. The smallest limit is computed
 * before the loop, and is 0 if a test there failed. So usually one comparison is left in the loop.
 */
#include "passes/analysis/axis_impl.h"
#include "passes/pipeline/pipeline_impl.h"

/* ---- before anything is changed ---- */

static TlInsideHow how_inside(const TlAxisInfo *axis, const TlOp *loop, const TlPlace *p,
                              const TlViewFacts *v, uint32_t i)
{
    TL_ASSERT(i < p->naxes, "axis %u of %u", i, p->naxes);
    const TlValue *index = p->index[i].value, *counter = loop->regions[0]->args[0];
    TlWideInt step;
    if (tl_is_invariant(index, loop) && tl_access_axis_inside(axis, p, v, i))
        return TL_INSIDE_PROVEN;
    bool down = p->axes[i].kind == TL_AXIS_SLICE && p->axes[i].step < 0;
    if (tl_axis_plain(axis, index) == counter && !down &&
        tl_const_int_value(tl_in(loop, 2), &step) && step > 0 &&
        tl_is_signed(counter->type->dtype) && tl_axis_facts(axis, tl_in(loop, 0))->lo >= 0)
        return TL_INSIDE_COUNTER;
    return TL_INSIDE_ASKED;
}

void tl_pipeline_ask(const TlAxisInfo *axis, const TlOp *loop, TlFetch *f, bool copies)
{
    TL_ASSERT(f->load->opcode == TL_OP_LOAD, "%s is no load", tl_op_info(f->load->opcode)->text);
    TlPlace p = tl_op_place(f->load);
    f->asks = false;
    if ((f->how == TL_FETCH_COPY && !copies) || !p.axes || p.rank == 0 ||
        !tl_is_invariant(p.base, loop) || !tl_access_info(axis, f->load).needs_bounds)
        return;
    TlViewFacts v = tl_view_facts(axis, p.base);
    f->asks = true;
    for (uint32_t i = 0; i < p.naxes; i++) {
        f->asks &= p.axes[i].kind != TL_AXIS_TILE;
        f->inside[i] = how_inside(axis, loop, &p, &v, i);
    }
}

/* ---- the test ---- */

typedef struct Inside {
    TlExpand *x;
    TlValue *limit;         /* i64, of the counter; before the loop */
    TlValue *fixed, *other; /* before the loop; in it */
} Inside;

static TlValue *both(TlBuilder *b, TlValue *x, TlValue *y)
{
    return x && y ? tl_binary(b, TL_OP_AND, x, y) : x ? x : y;
}

static TlValue *number(TlExpand *x, TlWideInt n)
{
    return tl_pipeline_int(x, tl_type_scalar(x->ctx, TL_I64), n);
}

static TlValue *extent_of(TlExpand *x, TlValue *view, uint32_t axis)
{
    TlAttr attr = {.id = TL_ATTR_AXIS, .u.i = axis};
    const TlType *t = tl_type_scalar(x->ctx, TL_I64);
    return tl_op_new(&x->before, TL_OP_EXTENT, 1, &view, 1, &t, 0, 1, &attr)->out[0];
}

/* The greatest and the least number that is added to the index. */
static TlWideInt span(const TlAxis *a, bool up)
{
    TL_ASSERT(a->kind != TL_AXIS_SLICE || a->width > 0, "a slice of width %d", (int)a->width);
    TlWideInt far = a->kind == TL_AXIS_SLICE ? (TlWideInt)(a->width - 1) * a->step : 0;
    return (far > 0) == up ? far : 0;
}

static TlValue *less(TlBuilder *b, TlValue *x, TlValue *y)
{
    return tl_select(b, tl_binary(b, TL_OP_LT, x, y), x, y);
}

static void bound_counter(Inside *in, const TlFetch *f, TlValue *extent, const TlAxis *axis)
{
    TlBuilder *b = &in->x->before;
    TlWideInt step = 0;
    tl_const_int_value(tl_in(in->x->loop, 2), &step);
    TlValue *limit =
        tl_binary(b, TL_OP_SUB, extent, number(in->x, span(axis, true) + step * f->ahead));
    in->limit = in->limit ? less(b, in->limit, limit) : limit;
}

static void ask_index(Inside *in, const TlFetch *f, TlValue *index, TlValue *extent,
                      const TlAxis *axis)
{
    TlExpand *x = in->x;
    bool fixed = tl_is_invariant(index, x->loop);
    TlBuilder *b = fixed ? &x->before : &x->start;
    TlValue *end = tl_binary(&x->before, TL_OP_SUB, extent, number(x, span(axis, true)));
    index = tl_cast(b, tl_pipeline_value(x, index, (TlMoment){true, f->ahead}), TL_I64);
    TlValue *low = tl_binary(b, TL_OP_GE, index, number(x, -span(axis, false)));
    TlValue *test = both(b, low, tl_binary(b, TL_OP_LT, index, end));
    if (fixed)
        in->fixed = both(b, in->fixed, test);
    else
        in->other = both(b, in->other, test);
}

static void ask_fetch(Inside *in, const TlFetch *f)
{
    TL_ASSERT(f->asks, "a fetch that does not ask");
    TlPlace p = tl_op_place(f->load);
    for (uint32_t i = 0; i < p.naxes; i++) {
        if (f->inside[i] == TL_INSIDE_PROVEN)
            continue;
        TlValue *extent = extent_of(in->x, p.base, i);
        if (f->inside[i] == TL_INSIDE_COUNTER)
            bound_counter(in, f, extent, &p.axes[i]);
        else
            ask_index(in, f, p.index[i].value, extent, &p.axes[i]);
    }
}

/* The limit in the counter's type; 0, which no counter is below, when what is fixed is not
 * inside. */
static TlValue *settled_limit(Inside *in)
{
    TlExpand *x = in->x;
    TlBuilder *b = &x->before;
    const TlType *t = x->body->args[0]->type;
    TlValue *zero = number(x, 0), *limit = in->limit;
    TlValue *some = both(b, in->fixed, tl_binary(b, TL_OP_GT, limit, zero));
    if (tl_dtype_bits(t->dtype) < 64)
        limit = less(b, limit, number(x, ((TlWideInt)1 << (tl_dtype_bits(t->dtype) - 1)) - 1));
    return tl_cast(b, tl_select(b, some, limit, zero), t->dtype);
}

TlValue *tl_pipeline_inside(TlExpand *x, uint32_t n, const TlFetch *const *fetches)
{
    TL_ASSERT(n > 0, "nobody asks");
    Inside in = {.x = x};
    for (uint32_t i = 0; i < n; i++)
        ask_fetch(&in, fetches[i]);
    TlValue *test = in.limit ? NULL : in.fixed;
    if (in.limit)
        test = tl_binary(&x->start, TL_OP_LT, x->body->args[0], settled_limit(&in));
    test = both(&x->start, test, in.other);
    return test ? test : tl_pipeline_int(x, tl_type_scalar(x->ctx, TL_BOOL), 1);
}
