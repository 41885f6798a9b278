/* What the facts say about memory accesses (axis_info.h).
 *
 * A view's extents and strides are numbers with facts of their own: a parameter's come from its
 * type (dense axes, constants, the form's promise), those of VIEW and SUB_VIEW from their
 * operands. An access runs along one axis of its tile if addresses count up there: a slice of step
 * 1, or an index tile that counts up, on the view's axis of stride 1; or pointers that count up.
 * Its width is the largest power of two, up to 16 bytes, that divides everything that places a
 * run: the slice's start, the base, each other axis's contribution; the extent, so that the bound
 * is not inside a run; the mask's constancy; and the tile, so that padding is not either. */
#include "ir/layout/layout.h"
#include "ir/plan/staged.h"
#include "passes/analysis/axis_impl.h"
#include "passes/analysis/facts.h"

/* ---- views ---- */

static int64_t element_bytes(const TlType *t)
{
    return tl_dtype_bytes(t->dtype);
}

static int64_t known_of(const TlAxisFacts *f)
{
    return f->is_known ? f->value : -1;
}

static int64_t times_known(int64_t a, int64_t b)
{
    return a < 0 || b < 0 || (b && a > INT64_MAX / b) ? -1 : a * b;
}

static TlViewFacts any_view(const TlType *t)
{
    TL_ASSERT(t->kind == TL_VIEW && t->rank <= TL_MAX_VIEW_RANK, "a view of kind %d", (int)t->kind);
    TlViewFacts f = {.base = element_bytes(t)};
    for (int d = 0; d < TL_MAX_VIEW_RANK; d++) {
        f.extent[d] = f.stride[d] = 1;
        f.known_extent[d] = f.known_stride[d] = f.extent_hi[d] = -1;
    }
    return f;
}

static void set_known(int64_t *divisor, int64_t *known, int64_t value)
{
    *known = value;
    if (value >= 0)
        *divisor = tl_axis_divisor(value);
}

static void set_extent(TlViewFacts *f, int d, int64_t value)
{
    set_known(&f->extent[d], &f->known_extent[d], value);
    f->extent_hi[d] = value;
}

/* ends_on_byte: the next axis is a row of 4-bit elements. */
static void set_dense(TlViewFacts *f, int d, bool ends_on_byte)
{
    TL_ASSERT(d >= 0 && d + 1 < TL_MAX_VIEW_RANK, "axis %d has no row", d);
    int64_t row = f->extent[d + 1], known = f->known_extent[d + 1];
    if (ends_on_byte) {
        row = row % 2 ? 2 : row;
        known += known >= 0 ? known % 2 : 0;
    }
    f->stride[d] = tl_axis_times(row, f->stride[d + 1]);
    f->known_stride[d] = times_known(known, f->known_stride[d + 1]);
}

/* ---- what a launch demands ---- */

/* The first instruction of the operand that ends here. */
static uint32_t start_of(const tile_hx_ins *code, uint32_t end)
{
    uint32_t at = end, need = tile_hx_operands((tile_hx_op)code[at].op);
    while (need > 0) {
        TL_ASSERT(at > 0, "an operator of a clause without operands");
        need += tile_hx_operands((tile_hx_op)code[--at].op) - 1;
    }
    return at;
}

/* The constant that the symbol is, where the comparison ends here; -1: it says nothing of it. */
static int64_t compared(const tile_hx_ins *code, uint32_t end, int64_t symbol)
{
    if (code[end].op != TILE_HX_EQ || end < 2 || start_of(code, end) != end - 2)
        return -1;
    const tile_hx_ins *a = &code[end - 2], *b = &code[end - 1];
    if (a->op == TILE_HX_CONST) {
        const tile_hx_ins *other = a;
        a = b;
        b = other;
    }
    return a->op == TILE_HX_SYM && a->imm == symbol && b->op == TILE_HX_CONST ? b->imm : -1;
}

/* The same, of all that must hold where what ends here does: recursion as deep as the clause's
 * stack (TILE_HX_MAX_STACK). */
static int64_t demanded(const tile_hx_ins *code, uint32_t end, int64_t symbol)
{
    while (code[end].op == TILE_HX_AND) {
        int64_t known = demanded(code, end - 1, symbol);
        if (known >= 0)
            return known;
        end = start_of(code, end - 1) - 1;
    }
    return compared(code, end, symbol);
}

/* A launch for which a `require` does not hold is refused: one that says that a symbol is a
 * constant makes it one. -1: none does. */
static int64_t required(const TlAxisInfo *a, int64_t symbol)
{
    const TlKernelInfo *info = a->fn->info;
    int64_t known = -1;
    for (uint32_t i = 0; i < info->requires_.len && known < 0; i++) {
        const TlHostExpr *e = &info->exprs.data[info->requires_.data[i]];
        known = e->code.len ? demanded(e->code.data, e->code.len - 1, symbol) : -1;
    }
    return known;
}

static int64_t known_extent(const TlAxisInfo *a, const TlDim *d)
{
    if (d->kind == TILE_DIM_CONST)
        return d->value;
    return d->kind == TILE_DIM_SYM ? required(a, d->value) : -1;
}

static TlViewFacts parameter_view(const TlAxisInfo *a, const TlValue *v)
{
    TL_ASSERT(!v->def && v->type->kind == TL_VIEW, "value %u is no parameter's view", v->id);
    TlViewFacts f = any_view(v->type);
    const TlKernelInfo *info = a->fn->info;
    if (!info || v->index >= info->params.len)
        return f;
    const TlParam *p = &info->params.data[v->index];
    f.base = tl_axis_max(f.base, tl_axis_promised(a, TILE_TEST_POINTER, v->index, 0));
    for (int d = p->rank - 1; d >= 0; d--) {
        bool last = d == p->rank - 1;
        f.extent[d] = tl_axis_promised(a, TILE_TEST_EXTENT, v->index, d);
        f.stride[d] = tl_axis_promised(a, TILE_TEST_STRIDE, v->index, d);
        f.extent_hi[d] = p->extent[d].is_i64 ? INT64_MAX : INT32_MAX;
        if (known_extent(a, &p->extent[d]) >= 0)
            set_extent(&f, d, known_extent(a, &p->extent[d]));
        if (p->stride[d].kind == TILE_DIM_CONST)
            set_known(&f.stride[d], &f.known_stride[d], p->stride[d].value);
        else if (p->stride[d].kind == TILE_DIM_DENSE && last)
            set_known(&f.stride[d], &f.known_stride[d], 1);
        else if (p->stride[d].kind == TILE_DIM_DENSE)
            set_dense(&f, d, d + 2 == p->rank && tl_dtype_bits(p->dtype) < 8);
    }
    return f;
}

static TlViewFacts made_view(const TlAxisInfo *a, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_VIEW, "%s makes no view", tl_op_info(op->opcode)->text);
    int rank = op->out[0]->type->rank;
    TlViewFacts f = any_view(op->out[0]->type);
    f.base = tl_axis_min(TL_PROMISED_BYTES, tl_axis_facts(a, tl_in(op, 0))->divisibility[0]);
    for (int d = 0; d < rank; d++) {
        const TlAxisFacts *extent = tl_axis_facts(a, tl_in(op, (uint32_t)(1 + d)));
        const TlAxisFacts *stride = tl_axis_facts(a, tl_in(op, (uint32_t)(1 + rank + d)));
        f.extent[d] = extent->divisibility[0];
        f.known_extent[d] = known_of(extent);
        f.extent_hi[d] = extent->lo >= 0 ? extent->hi : -1;
        f.stride[d] = stride->divisibility[0];
        f.known_stride[d] = known_of(stride);
    }
    return f;
}

/* Starts and extents are clipped: each is 0, the requested value, or the remainder. */
static TlViewFacts sub_view(const TlAxisInfo *a, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_SUB_VIEW, "%s makes no part of a view",
              tl_op_info(op->opcode)->text);
    int rank = op->out[0]->type->rank;
    TlViewFacts f = tl_view_facts(a, tl_in(op, 0));
    int64_t bytes = element_bytes(op->out[0]->type);
    for (int d = 0; d < rank; d++) {
        int64_t start = tl_axis_facts(a, tl_in(op, (uint32_t)(1 + d)))->divisibility[0];
        int64_t extent = tl_axis_facts(a, tl_in(op, (uint32_t)(1 + rank + d)))->divisibility[0];
        start = tl_axis_min(start, f.extent[d]);
        f.base = tl_axis_min(f.base, tl_axis_times(bytes, tl_axis_times(start, f.stride[d])));
        f.extent[d] = tl_axis_min(start, extent);
        f.known_extent[d] = -1;
        int64_t asked = tl_axis_facts(a, tl_in(op, (uint32_t)(1 + rank + d)))->hi;
        f.extent_hi[d] =
            tl_axis_min(f.extent_hi[d] < 0 ? INT64_MAX : f.extent_hi[d], tl_axis_max(asked, 0));
    }
    return f;
}

TlViewFacts tl_view_facts(const TlAxisInfo *a, const TlValue *view)
{
    TL_ASSERT(view->type->kind == TL_VIEW, "value %u is no view", view->id);
    if (!view->def)
        return parameter_view(a, view);
    return view->def->opcode == TL_OP_SUB_VIEW ? sub_view(a, view->def) : made_view(a, view->def);
}

/* ---- accesses ---- */

/* The least and greatest index along axis i; the whole range of int64 if nothing is known. */
static void index_range(const TlAxisInfo *a, const TlPlace *p, uint32_t i, TlWideInt *lo,
                        TlWideInt *hi)
{
    TL_ASSERT(p->axes && i < p->naxes, "axis %u of an access of %u", i, p->naxes);
    const TlAxisFacts *f = tl_axis_facts(a, p->index[i].value);
    const TlAxis *axis = &p->axes[i];
    *lo = f->lo;
    *hi = f->hi;
    if (axis->kind == TL_AXIS_SLICE)
        *(axis->step < 0 ? lo : hi) += (TlWideInt)(axis->width - 1) * axis->step;
}

bool tl_access_axis_inside(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v, uint32_t i)
{
    TlWideInt lo, hi;
    index_range(a, p, i, &lo, &hi);
    return lo >= 0 && hi < v->known_extent[i];
}

static bool is_all_inside(const TlAxisInfo *a, const TlOp *op, const TlPlace *p,
                          const TlViewFacts *v)
{
    bool inside = true;
    for (uint32_t i = 0; i < p->naxes; i++)
        inside &= tl_access_axis_inside(a, p, v, i);
    return inside || tl_attr_flag(op, TL_ATTR_UNCHECKED);
}

/* The most elements that the axes from `first` on add to the address of one that is inside: the
 * index is below the extent and below its own bound then. -1: not known, or 2^31 and more. */
static int64_t most_added(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v,
                          uint32_t first)
{
    TlWideInt most = 0;
    for (uint32_t i = first; i < p->naxes; i++) {
        TlWideInt lo, hi;
        index_range(a, p, i, &lo, &hi);
        if (v->extent_hi[i] >= 0 && v->extent_hi[i] - 1 < hi)
            hi = v->extent_hi[i] - 1;
        if (v->known_stride[i] < 0 || hi > INT32_MAX)
            return -1;
        most += (hi < 0 ? 0 : hi) * v->known_stride[i];
    }
    return most <= INT32_MAX ? (int64_t)most : -1;
}

static bool fits_31_bits(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v)
{
    int64_t last = most_added(a, p, v, 0);
    return last >= 0 && (last + 1) * element_bytes(p->base->type) <= INT32_MAX;
}

/* The axes whose bounds can be tested in 32 bits. */
static uint32_t narrow_axes(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v)
{
    enum { MOST_ADDED = 1 << 30 }; /* to an index of 31 bits: the sum fits in 32 unsigned ones */
    uint32_t axes = 0;
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlAxisFacts *f = tl_axis_facts(a, p->index[i].value);
        const TlAxis *axis = &p->axes[i];
        bool fits = axis->kind == TL_AXIS_SLICE && axis->step >= 0 && f->lo >= 0 &&
                    f->hi <= INT32_MAX && v->extent_hi[i] >= 0 && v->extent_hi[i] <= INT32_MAX;
        if (fits && (int64_t)axis->width * axis->step <= MOST_ADDED)
            axes |= 1u << i;
    }
    return axes;
}

/* Elements from a slice's first to its last, where strides that are not known are below
 * TL_LOCAL_STRIDE; negative: it is no slice, or not known. */
static int64_t reach(const TlPlace *p, const TlViewFacts *v, bool small_strides)
{
    int64_t far = 0;
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlAxis *axis = &p->axes[i];
        int64_t stride = v->known_stride[i] >= 0 ? v->known_stride[i] : TL_LOCAL_STRIDE - 1;
        if (axis->kind == TL_AXIS_SCALAR || (axis->kind == TL_AXIS_SLICE && axis->width == 1))
            continue;
        if (axis->kind != TL_AXIS_SLICE || axis->step < 0 || stride > INT32_MAX ||
            (v->known_stride[i] < 0 && !small_strides))
            return -1;
        TlWideInt more = (TlWideInt)(axis->width - 1) * axis->step * stride;
        if (more > INT32_MAX || (far += (int64_t)more) > INT32_MAX)
            return -1;
    }
    return far;
}

/* Does all of a slice lie within 31 bits of its first element? */
static bool is_near(const TlPlace *p, const TlViewFacts *v, bool small_strides)
{
    int64_t far = reach(p, v, small_strides);
    return far >= 0 && (far + 1) * element_bytes(p->base->type) <= INT32_MAX;
}

/* Does the axis start at an element, whatever the others do? */
static bool starts_inside(const TlAxisInfo *a, const TlOp *op, const TlPlace *p,
                          const TlViewFacts *v, uint32_t i)
{
    const TlAxisFacts *f = tl_axis_facts(a, p->index[i].value);
    return (f->lo >= 0 && f->hi < v->known_extent[i]) ||
           (tl_attr_flag(op, TL_ATTR_UNCHECKED) && !p->mask) ||
           tl_axis_starts_inside(a, p->index[i].value, p->base, i);
}

/* Of a parameter's view: an array lies below 2^47, and what does not start at an element starts not
 * too far behind one. Scalar indices are tested. */
static bool is_low_base(const TlAxisInfo *a, const TlOp *op, const TlPlace *p, const TlViewFacts *v,
                        uint32_t local)
{
    const TlWideInt MOST = (TlWideInt)1 << 47;
    TlWideInt behind = 0;
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlAxisFacts *f = tl_axis_facts(a, p->index[i].value);
        int64_t stride = local >> i & 1 ? TL_LOCAL_STRIDE - 1 : v->known_stride[i];
        if (p->axes[i].kind == TL_AXIS_TILE)
            return false;
        bool tested = p->axes[i].kind == TL_AXIS_SCALAR && !tl_attr_flag(op, TL_ATTR_UNCHECKED);
        if (tested || starts_inside(a, op, p, v, i))
            continue;
        if (f->lo < 0 || f->hi > INT32_MAX || stride < 0 || stride > INT32_MAX)
            return false;
        behind += (TlWideInt)f->hi * stride * element_bytes(p->base->type);
    }
    return !p->base->def && behind < MOST;
}

/* A slice of a parameter's view, in the aligned kernel. */
static uint32_t local_axes(const TlAxisInfo *a, const TlPlace *p)
{
    uint32_t axes = 0;
    uint64_t far = 0; /* elements */
    if (!a->fn->info || !a->fn->info->promise.near || p->base->def)
        return 0;
    const TlParam *param = &a->fn->info->params.data[p->base->index];
    for (uint32_t i = 0; i < p->naxes; i++) {
        const TlAxis *axis = &p->axes[i];
        bool known = param->stride[i].kind == TILE_DIM_CONST ||
                     (param->stride[i].kind == TILE_DIM_DENSE && i + 1 == p->naxes);
        if (axis->kind == TL_AXIS_SCALAR)
            continue;
        if (axis->kind != TL_AXIS_SLICE || axis->step < 0)
            return 0;
        if (known && param->stride[i].kind == TILE_DIM_CONST &&
            (param->stride[i].value < 0 || param->stride[i].value >= TL_LOCAL_STRIDE))
            return 0;
        int64_t stride = !known                                    ? TL_LOCAL_STRIDE - 1
                         : param->stride[i].kind == TILE_DIM_CONST ? param->stride[i].value
                                                                   : 1;
        far += (uint64_t)(axis->width - 1) * (uint64_t)axis->step * (uint64_t)stride;
        axes |= (uint32_t)(!known && axis->width > 1) << i;
    }
    return (far + 1) * (uint64_t)element_bytes(p->base->type) <= UINT32_MAX ? axes : 0;
}

/* ---- strides of 32 bits ---- */

/* The parameter whose view an access is of; NULL: of a view that the kernel makes. */
static const TlParam *accessed_param(const TlAxisInfo *a, const TlPlace *p)
{
    const TlKernelInfo *info = a->fn->info;
    return !info || p->base->def || p->base->index >= info->params.len
               ? NULL
               : &info->params.data[p->base->index];
}

int64_t tl_access_most_stride(const TlOp *op)
{
    int64_t fit = ((int64_t)1 << 32) / element_bytes(tl_op_place(op).base->type);
    return tl_axis_min(fit, (int64_t)1 << 31);
}

/* Of an access of a tile that stays where it is: those of scalar axes, which `local` leaves out. Of
 * a matrix with dense rows the stride is an extent, and short without being asked. */
static uint32_t asked_axes(const TlAxisInfo *a, const TlOp *op, const TlPlace *p,
                           const TlViewFacts *v)
{
    const TlParam *param = accessed_param(a, p);
    uint32_t axes = 0;
    if (!param || !a->fn->info->promise.near || p->rank == 0 || op->opcode == TL_OP_COPY ||
        tl_moving_axes(op))
        return 0;
    for (uint32_t i = 0; i < p->naxes; i++)
        if (p->axes[i].kind == TL_AXIS_SCALAR && p->index[i].value->type->dtype == TL_I32 &&
            v->known_stride[i] < 0 && !tl_view_has_short_stride(a, p->base, (int)i))
            axes |= 1u << i;
    return axes;
}

static uint32_t low_axes(const TlOp *op, const TlPlace *p, const TlViewFacts *v,
                         const TlAccessInfo *info)
{
    uint32_t axes = info->local | info->asked;
    int64_t most = tl_access_most_stride(op);
    for (uint32_t i = 0; i < p->naxes; i++)
        axes |= (uint32_t)(v->known_stride[i] >= 0 && v->known_stride[i] < most) << i;
    return axes;
}

/* Is what the axes from i on add less than the stride of the one before, as they are dense, and
 * this below 2^31? */
static bool is_below_stride(const TlAxisInfo *a, const TlPlace *p, const TlAccessInfo *info,
                            uint32_t i)
{
    const TlParam *param = accessed_param(a, p);
    if (!param || i == 0 || tl_dtype_bits(param->dtype) < 8)
        return false;
    for (uint32_t k = i - 1; k < p->naxes; k++)
        if (param->stride[k].kind != TILE_DIM_DENSE)
            return false;
    return info->low >> (i - 1) & 1 || tl_view_has_short_stride(a, p->base, (int)i - 1);
}

static uint32_t first_inner(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v,
                            const TlAccessInfo *info)
{
    uint32_t inner = p->naxes;
    for (uint32_t i = p->naxes; i-- > 0;)
        if (is_below_stride(a, p, info, i) || most_added(a, p, v, i) >= 0)
            inner = i;
    return inner;
}

typedef struct Run {
    int dim;
    int64_t width;
    TlNarrow why;
} Run;

static void limit(Run *r, int64_t width, TlNarrow why)
{
    if (width >= r->width)
        return;
    r->width = width;
    r->why = why;
}

/* ---- what ends runs, for `tilec explain` ---- */

/* The operand that an op's runs along an axis come from; NULL: from several, or from none. */
static const TlValue *run_source(const TlValue *v)
{
    const TlOp *op = v->def;
    bool has_one = op && (op->opcode == TL_OP_CAST || op->opcode == TL_OP_BROADCAST ||
                          op->opcode == TL_OP_EXPAND || op->opcode == TL_OP_CONVERT ||
                          op->opcode == TL_OP_SUB);
    return has_one ? tl_in(op, 0) : NULL;
}

static int64_t longest_run(const TlAxisInfo *a, const TlValue *v)
{
    const TlAxisFacts *f = tl_axis_facts(a, v);
    int64_t longest = 1;
    for (int d = 0; d < v->type->rank; d++)
        longest = tl_axis_max(longest, f->contiguity[d]);
    return longest;
}

/* Are the value's runs as short as they are because a remainder cut a longer one? */
static bool is_cut(const TlAxisInfo *a, const TlValue *v, int depth)
{
    enum { MOST_DEPTH = 16 }; /* of ops: recursion */
    if (!v->def || depth > MOST_DEPTH || v->type->rank == 0)
        return false;
    if (v->def->opcode == TL_OP_REM)
        return longest_run(a, tl_in(v->def, 0)) > longest_run(a, v);
    if (v->def->opcode == TL_OP_ADD || v->def->opcode == TL_OP_PTR_ADD)
        return is_cut(a, tl_in(v->def, 0), depth + 1) || is_cut(a, tl_in(v->def, 1), depth + 1);
    const TlValue *from = run_source(v);
    return from && is_cut(a, from, depth + 1);
}

static TlNarrow why_short(const TlAxisInfo *a, const TlValue *v, TlNarrow otherwise)
{
    return is_cut(a, v, 0) ? TL_NARROW_WRAP : otherwise;
}

/* The pointer from which others are computed. */
static const TlValue *first_pointer(const TlValue *v)
{
    while (v->def && v->def->nin && tl_in(v->def, 0)->type->ptr)
        v = tl_in(v->def, 0);
    return v;
}

/* The alignment of the address from which a view or pointer was made. */
static int64_t array_begin(const TlAxisInfo *a, const TlValue *v)
{
    while (v->type->kind == TL_VIEW && v->def)
        v = tl_in(v->def, 0);
    return v->type->kind == TL_VIEW ? tl_view_facts(a, v).base
                                    : tl_axis_facts(a, first_pointer(v))->divisibility[0];
}

/* Why addresses are not better aligned. */
static TlNarrow why_begun(const TlAxisInfo *a, const TlValue *base)
{
    return array_begin(a, base) < TL_PROMISED_BYTES ? TL_NARROW_BASE : TL_NARROW_OFFSET;
}

/* How long are the runs of consecutive addresses along axis i of the view, and what are multiples
 * of their starts? */
static Run run_of_axis(const TlAxisInfo *a, const TlPlace *p, uint32_t i)
{
    TL_ASSERT(i < p->naxes, "axis %u of an access of %u", i, p->naxes);
    const TlAxis *axis = &p->axes[i];
    const TlValue *index = p->index[i].value;
    const TlAxisFacts *f = tl_axis_facts(a, index);
    int first = tl_place_dim(p, i);
    if (axis->kind == TL_AXIS_SLICE && axis->step == 1)
        return (Run){first, f->divisibility[0], TL_NARROW_START};
    if (axis->kind != TL_AXIS_TILE)
        return (Run){-1, 1, TL_NARROW_AXIS};
    Run best = {-1, 1, why_short(a, index, TL_NARROW_AXIS)};
    int64_t longest = 1;
    for (int d = 0; d < index->type->rank; d++)
        if (f->contiguity[d] > 1 && f->contiguity[d] >= longest) {
            longest = f->contiguity[d];
            bool starts = f->divisibility[d] < longest;
            best = (Run){first + d, tl_axis_min(longest, f->divisibility[d]),
                         starts ? TL_NARROW_START : why_short(a, index, TL_NARROW_START)};
        }
    return best;
}

/* How far along axis `dim` of the tile the index of another axis stays the same. */
static int64_t steady_for(const TlAxisInfo *a, const TlPlace *p, uint32_t i, int dim)
{
    int first = tl_place_dim(p, i);
    if (p->axes[i].kind != TL_AXIS_TILE || dim < first ||
        dim >= first + p->index[i].value->type->rank)
        return TL_AXIS_MAX;
    return tl_axis_facts(a, p->index[i].value)->constancy[dim - first];
}

/* The divisibility, in elements, of what the index of an axis adds to the address. */
static int64_t offset_divisor(const TlAxisInfo *a, const TlPlace *p, const TlViewFacts *v,
                              uint32_t i)
{
    const TlAxisFacts *f = tl_axis_facts(a, p->index[i].value);
    int64_t index = 1;
    if (p->axes[i].kind == TL_AXIS_SCALAR)
        index = f->divisibility[0];
    else if (p->axes[i].kind == TL_AXIS_SLICE)
        index = tl_axis_min(f->divisibility[0],
                            p->axes[i].width > 1 ? tl_axis_divisor(p->axes[i].step) : TL_AXIS_MAX);
    return tl_axis_times(index, v->stride[i]);
}

static int64_t mask_for(const TlAxisInfo *a, const TlPlace *p, int dim)
{
    if (!p->mask || p->mask->type->rank == 0)
        return TL_AXIS_MAX;
    return tl_axis_facts(a, p->mask)->constancy[dim];
}

int64_t tl_access_constancy(const TlAxisInfo *a, const TlPlace *p, int dim)
{
    TL_ASSERT(dim >= 0 && dim < p->rank, "axis %d of a tile of rank %d", dim, (int)p->rank);
    int64_t k = mask_for(a, p, dim);
    if (p->other && p->other->type->rank)
        k = tl_axis_min(k, tl_axis_facts(a, p->other)->constancy[dim]);
    if (!p->axes)
        return tl_axis_min(k, tl_axis_facts(a, p->base)->constancy[dim]);
    for (uint32_t i = 0; i < p->naxes; i++)
        k = tl_axis_min(k, p->axes[i].kind == TL_AXIS_SLICE && tl_place_dim(p, i) == dim
                               ? 1
                               : steady_for(a, p, i, dim));
    return tl_axis_min(k, tl_axis_divisor(p->shape[dim]));
}

static int dense_axis(const TlPlace *p, const TlViewFacts *v)
{
    for (int i = (int)p->naxes - 1; i >= 0; i--)
        if (v->known_stride[i] == 1)
            return i;
    return -1;
}

static Run run_in_view(const TlAxisInfo *a, const TlOp *op, const TlPlace *p, const TlViewFacts *v)
{
    int dense = dense_axis(p, v);
    if (dense < 0)
        return (Run){-1, 1, TL_NARROW_AXIS};
    Run r = run_of_axis(a, p, (uint32_t)dense);
    if (r.dim < 0)
        return r;
    int64_t bytes = element_bytes(p->base->type);
    limit(&r, v->base / tl_axis_min(v->base, bytes), why_begun(a, p->base));
    if (!tl_attr_flag(op, TL_ATTR_UNCHECKED) && !tl_access_axis_inside(a, p, v, (uint32_t)dense))
        limit(&r, v->extent[dense], v->known_extent[dense] < 0 ? TL_NARROW_EXTENT : TL_NARROW_END);
    for (uint32_t i = 0; i < p->naxes; i++) {
        if ((int)i == dense)
            continue;
        limit(&r, offset_divisor(a, p, v, i),
              v->known_stride[i] < 0 ? TL_NARROW_STRIDE : TL_NARROW_PITCH);
        limit(&r, steady_for(a, p, i, r.dim), TL_NARROW_ROWS);
    }
    return r;
}

static Run run_of_pointers(const TlAxisInfo *a, const TlPlace *p)
{
    TL_ASSERT(!p->axes && p->base->type->ptr, "value %u is no pointer", p->base->id);
    const TlAxisFacts *f = tl_axis_facts(a, p->base);
    int64_t bytes = element_bytes(p->base->type), longest = 1;
    Run best = {-1, 1, why_short(a, p->base, TL_NARROW_AXIS)};
    for (int d = 0; d < p->rank; d++)
        if (f->contiguity[d] > 1 && f->contiguity[d] >= longest) {
            longest = f->contiguity[d];
            int64_t aligned = f->divisibility[d] / tl_axis_min(f->divisibility[d], bytes);
            best = (Run){d, tl_axis_min(longest, aligned),
                         aligned < longest ? why_begun(a, p->base)
                                           : why_short(a, p->base, TL_NARROW_START)};
        }
    return best;
}

TlAccessInfo tl_access_info(const TlAxisInfo *a, const TlOp *op)
{
    TlPlace p = tl_op_place(op);
    TL_ASSERT(p.base && p.rank <= TL_MAX_RANK, "%s is no access of memory",
              tl_op_info(op->opcode)->text);
    TlAccessInfo info = {.dim = -1, .width = 1};
    TlViewFacts v;
    if (p.axes) {
        v = tl_view_facts(a, p.base);
        info.needs_bounds = !is_all_inside(a, op, &p, &v);
        info.offset32 = fits_31_bits(a, &p, &v);
        info.narrow = narrow_axes(a, &p, &v);
        info.local = local_axes(a, &p);
        info.near = is_near(&p, &v, info.local != 0);
        info.low_base = is_low_base(a, op, &p, &v, info.local);
        info.asked = asked_axes(a, op, &p, &v);
        info.low = low_axes(op, &p, &v, &info);
        info.inner = first_inner(a, &p, &v, &info);
    }
    if (p.rank == 0)
        return info;
    Run r = p.axes ? run_in_view(a, op, &p, &v) : run_of_pointers(a, &p);
    info.dim = r.dim;
    info.why = r.why;
    if (r.dim < 0)
        return info;
    if (tl_dtype_bits(p.base->type->dtype) < 8)
        limit(&r, 1, TL_NARROW_BITS);
    limit(&r, mask_for(a, &p, r.dim), TL_NARROW_MASK);
    limit(&r, tl_axis_divisor(p.shape[r.dim]), TL_NARROW_SHAPE);
    limit(&r, TL_PROMISED_BYTES / element_bytes(p.base->type), TL_NARROW_NOT);
    info.width = (int)r.width;
    info.why = r.width * element_bytes(p.base->type) < TL_PROMISED_BYTES ? r.why : TL_NARROW_NOT;
    return info;
}

/* ---- accesses of a layout ---- */

/* Is register bit k the coordinate bit k along `dim`, and nothing else? */
static bool is_step(const TlLayout *l, int reg, int k, int dim)
{
    for (int d = 0; d < l->nout; d++)
        if (l->basis[reg][k][d] != (d == dim ? 1 << k : 0))
            return false;
    return true;
}

/* log2 of the number of registers from 0 on that are adjacent along `dim`, with everything else at
 * multiples of them. */
static int neighbour_bits(const TlLayout *l, int dim)
{
    TL_ASSERT(dim < l->nout, "axis %d of a layout of rank %d", dim, (int)l->nout);
    int reg = tl_layout_in_index(l, TL_IN_REG), n = tl_layout_in_bits(l, TL_IN_REG), k = 0;
    while (k < n && is_step(l, reg, k, dim))
        k++;
    for (int i = 0; i < l->nin; i++)
        for (int b = i == reg ? k : 0; b < l->in_bits[i]; b++)
            while (l->basis[i][b][dim] & ((1 << k) - 1))
                k--;
    return k;
}

uint32_t tl_copy_whole_axes(const TlOp *copy, const TlAccessInfo *info, bool check)
{
    if (copy->opcode != TL_OP_COPY || !tl_attr(copy, TL_ATTR_ASYNC) || tl_copy_is_spread(copy) ||
        (tl_attr_flag(copy, TL_ATTR_UNCHECKED) && !check))
        return 0;
    TlPlace p = tl_op_place(copy);
    uint32_t moving = tl_moving_axes(copy), slices = 0;
    for (uint32_t i = 0; i < p.naxes && p.axes; i++)
        if (p.axes[i].kind == TL_AXIS_SLICE)
            slices |= moving & 1u << i;
    return slices & ~info->narrow ? 0 : slices;
}

int tl_access_vector(const TlAccessInfo *info, const TlOp *op, const TlLayout *l)
{
    TL_ASSERT(info->dim < TL_MAX_RANK && info->width >= 1, "a width of %d along axis %d",
              info->width, info->dim);
    if (!l || info->dim < 0)
        return 1;
    TlPlace p = tl_op_place(op);
    int w = 1 << neighbour_bits(l, info->dim);
    while (w > 1 && (w > info->width || w * element_bytes(p.base->type) > TL_PROMISED_BYTES ||
                     p.shape[info->dim] % w))
        w /= 2;
    return w;
}

/* ---- what fits 32 bits ---- */

bool tl_view_is_short(const TlAxisInfo *a, const TlValue *view, int axis)
{
    TL_ASSERT(view->type->kind == TL_VIEW && axis < view->type->rank, "axis %d of no view", axis);
    int64_t most = tl_view_facts(a, view).extent_hi[axis];
    return most >= 0 && most <= INT32_MAX;
}

/* Of an axis whose next one is the last, both dense, it is that one's extent. */
bool tl_view_has_short_stride(const TlAxisInfo *a, const TlValue *view, int axis)
{
    const TlKernelInfo *info = a->fn->info;
    int64_t known = tl_view_facts(a, view).known_stride[axis];
    if (known >= 0 && known <= INT32_MAX)
        return true;
    if (view->def || !info || view->index >= info->params.len || axis + 2 != view->type->rank)
        return false;
    const TlDim *stride = info->params.data[view->index].stride;
    return stride[axis].kind == TILE_DIM_DENSE && stride[axis + 1].kind == TILE_DIM_DENSE &&
           tl_view_is_short(a, view, axis + 1);
}
