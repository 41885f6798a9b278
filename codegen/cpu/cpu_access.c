/* Memory on the CPU: loads, stores, gathers, scatters and the tests of their bounds.
 *
 * The uniform part of an access (base address, valid interval of each slice) is computed once
 * where the op stands. In a nest, a position is then (a) contiguous in its lanes: one masked
 * vector access, plain when all lanes are inside, (b) apart: masked gather or scatter, or (c)
 * one element: a conditional scalar access. */
#include "codegen/cpu/cpu_access.h"
#include "passes/analysis/facts.h"

/* ---- services ---- */

LLVMValueRef tl_cpu_service(TlCpuGen *g, unsigned service, LLVMTypeRef type, LLVMValueRef *args,
                            unsigned nargs)
{
    TL_ASSERT(nargs > 0 && args, "service %u without arguments", service);
    LLVMValueRef offset = tl_gen_int(&g->gen, service);
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, g->ptr, g->services, &offset, 1, "");
    return LLVMBuildCall2(g->b, type, LLVMBuildLoad2(g->b, g->ptr, p, ""), args, nargs, "");
}

static LLVMValueRef i32_(TlCpuGen *g, uint64_t v)
{
    return LLVMConstInt(g->i32, v, 0);
}

static LLVMValueRef mul(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildMul(g->b, a, b, "");
}

/* What is built next runs only if `cond` holds. Returns the block to continue in (join_at). */
LLVMBasicBlockRef tl_cpu_branch_if(TlCpuGen *g, LLVMValueRef cond)
{
    LLVMBasicBlockRef then = tl_gen_block(&g->gen, "then"), join = tl_gen_block(&g->gen, "join");
    LLVMBuildCondBr(g->b, cond, then, join);
    LLVMPositionBuilderAtEnd(g->b, then);
    return join;
}

void tl_cpu_join_at(TlCpuGen *g, LLVMBasicBlockRef join)
{
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

void tl_cpu_fail(TlCpuGen *g, LLVMValueRef failed, int kind, TlLoc loc, const char *text)
{
    LLVMTypeRef params[6] = {g->ptr, g->i32, g->i32, g->i32, g->i32, g->ptr};
    LLVMBasicBlockRef join = tl_cpu_branch_if(g, failed);
    LLVMValueRef args[6] = {g->ctx,
                            i32_(g, (unsigned)kind),
                            i32_(g, loc.file),
                            i32_(g, loc.line),
                            i32_(g, loc.col),
                            LLVMBuildGlobalStringPtr(g->b, text, "text")};
    tl_cpu_service(g, TL_CPU_SERVICE(fail), LLVMFunctionType(g->void_, params, 6, 0), args, 6);
    tl_cpu_join_at(g, join);
}

/* --check: asks the runtime whether the element may be accessed. If not, it reports that. */
static LLVMValueRef check_address(TlCpuGen *g, LLVMValueRef p, uint64_t bytes, int param, TlLoc loc)
{
    LLVMTypeRef params[7] = {g->ptr, g->ptr, g->i64, g->i32, g->i32, g->i32, g->i32};
    LLVMValueRef args[7] = {g->ctx,
                            p,
                            tl_gen_int(&g->gen, (int64_t)bytes),
                            LLVMConstInt(g->i32, (unsigned long long)(int64_t)param, 1),
                            i32_(g, loc.file),
                            i32_(g, loc.line),
                            i32_(g, loc.col)};
    LLVMTypeRef type = LLVMFunctionType(g->i32, params, 7, 0);
    LLVMValueRef ok = tl_cpu_service(g, TL_CPU_SERVICE(check), type, args, 7);
    return LLVMBuildICmp(g->b, LLVMIntNE, ok, i32_(g, 0), "");
}

/* ---- the uniform part ---- */

TlCpuAccess *tl_cpu_access_of(TlCpuGen *g, TlOp *op)
{
    return tl_map_get_ptr(&g->access, op);
}

/* [lo, hi): the positions j in 0..width-1 with 0 <= start + j < extent. No start overflows. */
static void slice_interval(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef start,
                           LLVMValueRef extent, int32_t width)
{
    TL_ASSERT(i >= 0 && (uint32_t)i < a->place.naxes && width > 0,
              "a slice of width %d along axis %d", (int)width, i);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), w = tl_gen_int(&g->gen, width);
    a->lo[i] = zero;
    if (tl_axis_facts(g->axis, a->place.index[i].value)->lo < 0) {
        LLVMValueRef neg = LLVMBuildNeg(g->b, start, "");
        LLVMValueRef lo =
            tl_gen_pick(&g->gen, LLVMIntSLE, start, tl_gen_int(&g->gen, -(int64_t)width), w, neg);
        a->lo[i] = tl_gen_pick(&g->gen, LLVMIntSGE, start, zero, zero, lo);
    }
    LLVMValueRef left = LLVMBuildSub(g->b, extent, start, "");
    /* If start is so far below 0 that left overflows, lo is width, and hi does not matter. */
    LLVMValueRef hi = tl_gen_pick(&g->gen, LLVMIntUGT, left, w, w, left);
    a->hi[i] = tl_gen_pick(&g->gen, LLVMIntSGE, start, extent, zero, hi);
}

static void prepare_axis(TlCpuGen *g, TlCpuAccess *a, int i, LLVMValueRef *offset)
{
    TL_ASSERT(i >= 0 && (uint32_t)i < a->place.naxes, "axis %d of %u", i, a->place.naxes);
    const TlAxis *axis = &a->place.axes[i];
    TlValue *index = a->place.index[i].value;
    LLVMValueRef stride = a->view->stride[i];
    a->dim[i] = tl_place_dim(&a->place, (uint32_t)i);
    a->stride[i] = stride;
    if (axis->kind == TL_AXIS_TILE)
        return;
    LLVMValueRef at = tl_gen_to_i64(&g->gen, index, tl_gen_scalar(&g->gen, index));
    LLVMValueRef part = mul(g, at, stride), *sum = LLVMIsAConstantInt(part) ? &a->shift : offset;
    *sum = LLVMBuildAdd(g->b, *sum, part, "");
    if (axis->kind == TL_AXIS_SCALAR) {
        if (!a->bounds)
            return;
        LLVMValueRef in = LLVMBuildICmp(g->b, LLVMIntULT, at, a->view->extent[i], "");
        a->ok = a->ok ? LLVMBuildAnd(g->b, a->ok, in, "") : in;
        return;
    }
    a->start[i] = at;
    a->stride[i] = mul(g, stride, tl_gen_int(&g->gen, axis->step));
    if (!a->bounds) {
        a->lo[i] = tl_gen_int(&g->gen, 0);
        a->hi[i] = tl_gen_int(&g->gen, axis->width);
    } else if (axis->step == 1) {
        slice_interval(g, a, i, at, a->view->extent[i], axis->width);
    }
}

void tl_cpu_prepare_access(TlCpuGen *g, TlOp *op)
{
    TlCpuAccess *a = TL_NEW(g->arena, TlCpuAccess);
    a->place = tl_op_place(op);
    a->loads = op->opcode == TL_OP_LOAD;
    a->param = tl_base_param(a->place.base);
    a->bounds = !tl_attr_flag(op, TL_ATTR_UNCHECKED) || g->options->check;
    a->asks = g->options->check && !tl_is_view_of_launch(a->place.base);
    tl_map_put_ptr(&g->access, op, a);
    if (!a->place.axes)
        return;
    a->view = tl_gen_view(&g->gen, a->place.base);
    LLVMValueRef offset = a->shift = tl_gen_int(&g->gen, 0);
    for (uint32_t i = 0; i < a->place.naxes; i++)
        prepare_axis(g, a, (int)i, &offset);
    a->origin = tl_gen_address(&g->gen, a->view->dtype, a->view->ptr, offset);
    a->ptr = tl_gen_address(&g->gen, a->view->dtype, a->origin, a->shift);
}

/* ---- a position ---- */

static LLVMValueRef both(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b)
{
    return !a ? b : !b ? a : LLVMBuildAnd(g->b, a, b, "");
}

static LLVMValueRef index_tile(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at)
{
    TL_ASSERT((uint32_t)i < a->place.naxes && a->dim[i] >= 0, "axis %d has no index tile", i);
    TlValue *v = a->place.index[i].value;
    TlCpuAt sub;
    if (a->row[i] && at->lane != a->dim[i] && a->row_at[i] == at->idx[a->dim[i]])
        return a->row[i];
    if (a->place.pointwise) {
        bool lanes = at->lane < v->type->rank;
        tl_cpu_at_init(g, &sub, v->type->rank, lanes ? at->lane : 0, lanes ? at->width : 1);
        for (int d = 0; d < sub.rank; d++)
            sub.idx[d] = at->idx[d];
    } else {
        tl_cpu_at_init(g, &sub, 1, 0, at->lane == a->dim[i] ? at->width : 1);
        sub.idx[0] = at->idx[a->dim[i]];
    }
    return tl_gen_to_i64(&g->gen, v, tl_cpu_eval(g, v, &sub));
}

void tl_cpu_read_rows(TlCpuGen *g, const TlCpuInside *in, const TlCpuAt *at)
{
    for (uint32_t k = 0; k < in->accesses.len; k++) {
        TlCpuAccess *a = in->accesses.data[k];
        for (uint32_t i = 0; a->view && i < a->place.naxes; i++) {
            a->row[i] = NULL;
            if (!at || a->place.axes[i].kind != TL_AXIS_TILE || a->place.pointwise ||
                a->dim[i] == at->lane || a->dim[i] >= at->rank)
                continue;
            a->row_at[i] = at->idx[a->dim[i]];
            a->row[i] = index_tile(g, a, (int)i, at);
        }
    }
}

/* c: NULL is true. */
static void add_condition(TlCpuGen *g, TlCpuSpot *s, LLVMValueRef c)
{
    if (!c)
        return;
    if (tl_gen_width_of(c) > 1)
        s->mask = both(g, s->mask, c);
    else
        s->uniform = both(g, s->uniform, c);
}

/* The index along `dim`, as i64; along the lane dimension one for each lane. */
static LLVMValueRef lane_numbers(TlCpuGen *g, const TlCpuAt *at, int dim)
{
    TL_ASSERT(dim >= 0 && dim < at->rank, "axis %d of a tile of rank %d", dim, at->rank);
    if (at->width == 1 || dim != at->lane)
        return at->idx[dim];
    return LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, at->idx[dim], at->width),
                        tl_gen_iota(&g->gen, g->i64, at->width), "");
}

static LLVMValueRef stepped_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j)
{
    TL_ASSERT((uint32_t)i < a->place.naxes, "axis %d of %u", i, a->place.naxes);
    int w = tl_gen_width_of(j);
    LLVMValueRef at = LLVMBuildAdd(
        g->b, tl_gen_splat(&g->gen, a->start[i], w),
        mul(g, j, tl_gen_splat(&g->gen, tl_gen_int(&g->gen, a->place.axes[i].step), w)), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, at, tl_gen_splat(&g->gen, a->view->extent[i], w), "");
}

static bool is_const(LLVMValueRef v, int64_t n)
{
    return LLVMIsAConstantInt(v) && LLVMConstIntGetSExtValue(v) == n;
}

/* lo <= j < hi, for a position j, which is not negative. */
static LLVMValueRef is_between(TlCpuGen *g, LLVMValueRef j, LLVMValueRef lo, LLVMValueRef hi)
{
    int w = tl_gen_width_of(j);
    LLVMValueRef below = LLVMBuildICmp(g->b, LLVMIntSLT, j, tl_gen_splat(&g->gen, hi, w), "");
    if (is_const(lo, 0))
        return below;
    LLVMValueRef above = LLVMBuildICmp(g->b, LLVMIntSGE, j, tl_gen_splat(&g->gen, lo, w), "");
    return LLVMBuildAnd(g->b, above, below, "");
}

/* Position j of a slice of step 1; NULL: all are inside. */
static LLVMValueRef interval_inside(TlCpuGen *g, const TlCpuAccess *a, int i, LLVMValueRef j)
{
    TL_ASSERT((uint32_t)i < a->place.naxes && a->lo[i] && a->hi[i], "no interval of axis %d", i);
    if (is_const(a->lo[i], 0) && is_const(a->hi[i], a->place.axes[i].width))
        return NULL;
    return is_between(g, j, a->lo[i], a->hi[i]);
}

/* The lanes that are inside a slice of step 1: none if the spot's uniform condition does not hold.
 * The interval is within 0..width: 32 bits do. */
static void lane_interval(TlCpuGen *g, const TlCpuAccess *a, int i, const TlCpuAt *at, TlCpuSpot *s)
{
    LLVMValueRef j = at->idx[at->lane], lo = a->lo[i], hi = a->hi[i];
    if (s->uniform)
        hi = LLVMBuildSelect(g->b, s->uniform, hi, tl_gen_int(&g->gen, 0), "");
    s->uniform = NULL;
    LLVMValueRef end = LLVMBuildAdd(g->b, j, tl_gen_int(&g->gen, at->width), "");
    s->full = LLVMBuildAnd(g->b, LLVMBuildICmp(g->b, LLVMIntSGE, j, lo, ""),
                           LLVMBuildICmp(g->b, LLVMIntSLE, end, hi, ""), "");
    LLVMValueRef j32 =
        LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, j, g->i32, ""), at->width),
                     tl_gen_iota(&g->gen, g->i32, at->width), "");
    LLVMValueRef lo32 = LLVMBuildTrunc(g->b, lo, g->i32, ""),
                 hi32 = LLVMBuildTrunc(g->b, hi, g->i32, "");
    LLVMValueRef m = is_between(g, j32, lo32, hi32);
    add_condition(g, s, m);
}

static bool lanes_are_contiguous(const TlCpuAccess *a, const TlCpuAt *at)
{
    if (at->width == 1 || !a->view)
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        TlAxisKind k = a->place.axes[i].kind;
        bool in_lane = k == TL_AXIS_TILE
                           ? (a->place.pointwise ? at->lane < a->place.index[i].value->type->rank
                                                 : a->dim[i] == at->lane)
                           : a->dim[i] == at->lane;
        if (in_lane && (k != TL_AXIS_SLICE || a->place.axes[i].step != 1 ||
                        !is_const(a->stride[i], 1)))
            return false;
    }
    return true;
}

bool tl_cpu_is_contiguous(const TlCpuAccess *a, int lane)
{
    return lanes_are_contiguous(a, &(TlCpuAt){.lane = lane, .width = 2});
}

/* Do lanes read every second element of memory, all inside, as real parts of complex numbers? */
static bool is_every_second(const TlCpuAccess *a, int lane)
{
    bool second = false;
    if (!a->view || !a->loads || a->place.mask || (a->bounds && !a->whole))
        return false;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        if (a->place.axes[i].kind == TL_AXIS_TILE)
            return false;
        if (a->place.axes[i].kind == TL_AXIS_SLICE && a->dim[i] == lane)
            second = is_const(a->stride[i], 2);
    }
    return second;
}

static TlCpuSpot view_spot(TlCpuGen *g, TlCpuAccess *a, const TlCpuAt *at)
{
    TlCpuSpot s = {.uniform = a->whole ? NULL : a->ok};
    bool contiguous = lanes_are_contiguous(a, at);
    int along = -1; /* the axis of the lanes, if their elements are adjacent */
    LLVMValueRef offset = tl_gen_int(&g->gen, 0), lanes = NULL;
    s.apart = at->width > 1 && !contiguous;
    for (uint32_t i = 0; i < a->place.naxes; i++) {
        TlAxisKind k = a->place.axes[i].kind;
        if (k == TL_AXIS_SCALAR)
            continue;
        LLVMValueRef j;
        if (k == TL_AXIS_TILE) {
            j = index_tile(g, a, (int)i, at);
            int w = tl_gen_width_of(j);
            if (a->bounds)
                add_condition(g, &s,
                              LLVMBuildICmp(g->b, LLVMIntULT, j,
                                            tl_gen_splat(&g->gen, a->view->extent[i], w), ""));
        } else if (contiguous && a->dim[i] == at->lane) {
            along = (int)i;
            j = at->idx[at->lane];
        } else {
            j = lane_numbers(g, at, a->dim[i]);
            if (a->bounds && !a->whole)
                add_condition(g, &s,
                              a->place.axes[i].step == 1 ? interval_inside(g, a, (int)i, j)
                                                         : stepped_inside(g, a, (int)i, j));
        }
        LLVMValueRef part = mul(g, j, tl_gen_splat(&g->gen, a->stride[i], tl_gen_width_of(j)));
        if (tl_gen_width_of(part) > 1)
            lanes = lanes ? LLVMBuildAdd(g->b, lanes, part, "") : part;
        else
            offset = LLVMBuildAdd(g->b, offset, part, "");
    }
    if (along >= 0 && !a->whole)
        lane_interval(g, a, along, at, &s);
    s.ptr = tl_gen_address(&g->gen, a->view->dtype, a->origin, offset);
    s.ptr = tl_gen_address(&g->gen, a->view->dtype, s.ptr, a->shift);
    if (s.apart)
        s.ptr = tl_gen_address(&g->gen, a->view->dtype, s.ptr,
                               lanes ? lanes
                                     : tl_gen_splat(&g->gen, tl_gen_int(&g->gen, 0), at->width));
    return s;
}

LLVMValueRef tl_cpu_access_address(TlCpuGen *g, TlCpuAccess *a, const TlCpuAt *at)
{
    TL_ASSERT(a->view && at->width >= 1, "an address of no view");
    return view_spot(g, a, at).ptr;
}

/* Are the lanes of an integer or pointer tile an arithmetic progression, up to wrapping? Then the
 * elements may be adjacent, and a test at run time is worthwhile. */
static bool is_affine(TlCpuGen *g, const TlValue *v, int depth)
{
    if (v->type->rank == 0)
        return true;
    if (!v->def || depth > 24 || g->plan->place[v->id].kind == TL_NEST_HOME)
        return false;
    const TlOp *op = v->def;
    switch (op->opcode) {
    case TL_OP_CONST:
    case TL_OP_IOTA: return true;
    case TL_OP_CAST:
        return tl_is_int(v->type->dtype) && tl_is_int(tl_in(op, 0)->type->dtype) &&
               is_affine(g, tl_in(op, 0), depth + 1);
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND: return is_affine(g, tl_in(op, 0), depth + 1);
    case TL_OP_ADD:
    case TL_OP_SUB:
    case TL_OP_PTR_ADD:
        return is_affine(g, tl_in(op, 0), depth + 1) && is_affine(g, tl_in(op, 1), depth + 1);
    case TL_OP_MUL: {
        uint64_t bits;
        const TlValue *x = tl_in(op, 0), *y = tl_in(op, 1);
        bool cx = tl_value_is_const(x, &bits) || (x->def && x->def->opcode == TL_OP_BROADCAST &&
                                                  tl_in(x->def, 0)->type->rank == 0);
        bool cy = tl_value_is_const(y, &bits) || (y->def && y->def->opcode == TL_OP_BROADCAST &&
                                                  tl_in(y->def, 0)->type->rank == 0);
        return (cx && is_affine(g, y, depth + 1)) || (cy && is_affine(g, x, depth + 1));
    }
    default: return false;
    }
}

static TlCpuSpot pointer_spot(TlCpuGen *g, TlCpuAccess *a, TlCpuAt *at)
{
    return (TlCpuSpot){.ptr = tl_cpu_eval(g, a->place.base, at), .apart = at->width > 1};
}

TlCpuSpot tl_cpu_spot_at(TlCpuGen *g, TlCpuAccess *a, TlCpuAt *at)
{
    TlCpuSpot s = a->view ? view_spot(g, a, at) : pointer_spot(g, a, at);
    if (a->place.mask)
        add_condition(g, &s, tl_cpu_eval(g, a->place.mask, at));
    if (a->place.mask)
        s.full = NULL;
    return s;
}

static LLVMValueRef lane_mask(TlCpuGen *g, TlCpuSpot *s, int width)
{
    LLVMValueRef u = s->uniform ? tl_gen_splat(&g->gen, s->uniform, width) : NULL;
    LLVMValueRef m = both(g, s->mask, u);
    return m ? m : tl_gen_splat(&g->gen, LLVMConstInt(g->i1, 1, 0), width);
}

int tl_cpu_access_width(TlCpuGen *g, TlOp *op, int limit)
{
    TL_ASSERT(limit > 0, "%d lanes at most", limit);
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    if (op->opcode == TL_OP_INSIDE)
        return limit;
    TlDtype d = a->place.base->type->dtype;
    uint64_t bytes = (uint64_t)tl_dtype_bytes(d);
    if (a->asks || (g->options->check && tl_attr_flag(op, TL_ATTR_UNCHECKED)))
        return 1;
    TlCpuAt at = {.lane = 0, .width = 2};
    TlType shape = {.kind = TL_TILE, .dtype = d, .rank = (uint8_t)a->place.rank};
    for (int i = 0; i < a->place.rank; i++)
        shape.shape[i] = a->place.shape[i];
    at.lane = a->place.rank ? tl_nest_form(&shape).lane : 0;
    if (a->view && lanes_are_contiguous(a, &at))
        return limit;
    if (is_every_second(a, at.lane))
        return limit < g->m.vector_bytes / (int)bytes ? limit : g->m.vector_bytes / (int)bytes;
    if (!a->view && is_affine(g, a->place.base, 0))
        return limit;
    if (bytes < 4 || !g->m.gathers || (!a->view && !a->place.base->type->ptr))
        return 1;
    int lanes = g->m.vector_bytes / 8; /* of 8-byte addresses in a register */
    return limit < lanes ? limit : lanes;
}

/* ---- one element ---- */

/* `ok`, and the runtime says that the address is in the argument's array. */
static LLVMValueRef ask_address(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s,
                                LLVMValueRef ok)
{
    uint64_t bytes = (uint64_t)tl_dtype_bytes(a->place.base->type->dtype);
    LLVMValueRef flag = LLVMConstInt(g->i1, 0, 0);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), join = NULL;
    if (ok)
        join = tl_cpu_branch_if(g, ok);
    LLVMValueRef good = check_address(g, s->ptr, bytes, a->param, op->loc);
    if (!join)
        return good;
    LLVMBasicBlockRef then = LLVMGetInsertBlock(g->b);
    tl_cpu_join_at(g, join);
    LLVMValueRef phi = LLVMBuildPhi(g->b, g->i1, "");
    LLVMAddIncoming(phi, &flag, &from, 1);
    LLVMAddIncoming(phi, &good, &then, 1);
    return phi;
}

/* The condition for accessing the element. With --check, code that reports a violation. */
LLVMValueRef tl_cpu_element_ok(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s)
{
    LLVMValueRef ok = both(g, s->uniform, s->mask);
    if (g->options->check && a->view && ok && tl_attr_flag(op, TL_ATTR_UNCHECKED))
        tl_cpu_fail(g, LLVMBuildNot(g->b, ok, ""), 1, op->loc,
                    "the promise of unchecked does not hold");
    return a->asks ? ask_address(g, op, a, s, ok) : ok;
}

static LLVMValueRef outside_value(TlCpuGen *g, const TlCpuAccess *a, const TlType *type,
                                  TlCpuAt *at)
{
    return a->place.other ? tl_cpu_eval(g, a->place.other, at)
                          : tl_gen_const(&g->gen, type, 0, at->width);
}

TlType tl_cpu_elem_of(const TlType *type)
{
    TlType t = {
        .kind = TL_TILE, .dtype = type->dtype, .ptr = type->kind == TL_TILE ? type->ptr : false};
    return t;
}

/* An address that is safe to read instead of an element outside. */
static LLVMValueRef zeros(TlCpuGen *g)
{
    static const char NAME[] = "tl.zeros";
    LLVMValueRef z = LLVMGetNamedGlobal(g->gen.l->module, NAME);
    if (z)
        return z;
    z = LLVMAddGlobal(g->gen.l->module, g->i64, NAME);
    LLVMSetInitializer(z, LLVMConstNull(g->i64));
    LLVMSetGlobalConstant(z, 1);
    LLVMSetLinkage(z, LLVMInternalLinkage);
    LLVMSetAlignment(z, 8);
    return z;
}

static LLVMValueRef read_element(TlCpuGen *g, const TlType *elem, LLVMValueRef p)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_mem_type(&g->gen, elem), p, "");
    LLVMSetAlignment(x, (unsigned)tl_gen_elem_bytes(elem));
    return tl_gen_from_mem(&g->gen, elem, x);
}

static LLVMValueRef load_element(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s, TlCpuAt *at)
{
    TL_ASSERT(at->width == 1 || s, "an element of %d lanes", at->width);
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef ok = tl_cpu_element_ok(g, op, a, s), other = outside_value(g, a, &elem, at);
    if (!ok)
        return read_element(g, &elem, s->ptr);
    if (at->rank == 0) { /* no branch: LLVM's time grows with the square of the number of blocks */
        LLVMValueRef x =
            read_element(g, &elem, LLVMBuildSelect(g->b, ok, s->ptr, zeros(g), ""));
        return LLVMIsNull(other) ? x : LLVMBuildSelect(g->b, ok, x, other, "");
    }
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), join = tl_cpu_branch_if(g, ok);
    LLVMValueRef x = read_element(g, &elem, s->ptr);
    LLVMBasicBlockRef then = LLVMGetInsertBlock(g->b);
    tl_cpu_join_at(g, join);
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(x), "");
    LLVMAddIncoming(phi, &x, &then, 1);
    LLVMAddIncoming(phi, &other, &from, 1);
    return phi;
}

/* ---- vectors ---- */

static LLVMValueRef masked(TlCpuGen *g, const char *name, LLVMTypeRef value, LLVMTypeRef ptrs,
                           LLVMValueRef *args, unsigned n)
{
    LLVMTypeRef types[2] = {value, ptrs};
    return tl_gen_intrinsic(&g->gen, name, types, 2, args, n);
}

static LLVMValueRef masked_load(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef mask,
                                LLVMValueRef other, int width, bool apart)
{
    LLVMTypeRef t = tl_gen_vec(tl_gen_mem_type(&g->gen, elem), width);
    LLVMValueRef args[4] = {p, i32_(g, tl_gen_elem_bytes(elem)), mask,
                            tl_gen_to_mem(&g->gen, elem, other)};
    return tl_gen_from_mem(
        &g->gen, elem,
        masked(g, apart ? "llvm.masked.gather" : "llvm.masked.load", t, LLVMTypeOf(p), args, 4));
}

static LLVMValueRef plain_load(TlCpuGen *g, const TlType *elem, LLVMValueRef p, int width)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_vec(tl_gen_mem_type(&g->gen, elem), width), p, "");
    LLVMSetAlignment(x, (unsigned)tl_gen_elem_bytes(elem));
    return tl_gen_from_mem(&g->gen, elem, x);
}

static LLVMValueRef phi2(TlCpuGen *g, LLVMValueRef a, LLVMBasicBlockRef from_a, LLVMValueRef b,
                         LLVMBasicBlockRef from_b)
{
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(a), "");
    LLVMAddIncoming(phi, &a, &from_a, 1);
    LLVMAddIncoming(phi, &b, &from_b, 1);
    return phi;
}

/* One value computed in two ways: `fast` if the condition holds. */
typedef struct Fork {
    LLVMBasicBlockRef slow, join, fast_end;
    LLVMValueRef fast;
} Fork;

static Fork fork_begin(TlCpuGen *g, LLVMValueRef cond)
{
    Fork f = {.slow = tl_gen_block(&g->gen, "some"), .join = tl_gen_block(&g->gen, "join")};
    LLVMBasicBlockRef fast = tl_gen_block(&g->gen, "all");
    LLVMBuildCondBr(g->b, cond, fast, f.slow);
    LLVMPositionBuilderAtEnd(g->b, fast);
    return f;
}

static void fork_else(TlCpuGen *g, Fork *f, LLVMValueRef fast)
{
    f->fast = fast;
    f->fast_end = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, f->join);
    LLVMPositionBuilderAtEnd(g->b, f->slow);
}

static LLVMValueRef fork_end(TlCpuGen *g, Fork *f, LLVMValueRef slow)
{
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, f->join);
    LLVMPositionBuilderAtEnd(g->b, f->join);
    return slow ? phi2(g, f->fast, f->fast_end, slow, end) : NULL;
}

static bool wants_fork(const TlCpuGen *g, const TlType *elem)
{
    return !(g->m.masks || (g->m.gathers && tl_gen_elem_bytes(elem) >= 4));
}

/* i1: are the elements of all lanes adjacent? *out_first: the address of lane 0. */
static LLVMValueRef pointer_run(TlCpuGen *g, const TlType *elem, LLVMValueRef ptrs, int width,
                                LLVMValueRef *out_first)
{
    TL_ASSERT(width > 1, "a run of %d pointers", width);
    LLVMValueRef first = LLVMBuildExtractElement(g->b, ptrs, i32_(g, 0), "");
    LLVMValueRef run = tl_gen_address(&g->gen, elem->dtype, tl_gen_splat(&g->gen, first, width),
                                      tl_gen_iota(&g->gen, g->i64, width));
    LLVMValueRef same = LLVMBuildICmp(g->b, LLVMIntEQ, ptrs, run, "");
    LLVMTypeRef bits = LLVMIntTypeInContext(LLVMGetTypeContext(g->i64), (unsigned)width);
    *out_first = first;
    return LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildBitCast(g->b, same, bits, ""),
                         LLVMConstAllOnes(bits), "");
}

static LLVMValueRef load_contiguous(TlCpuGen *g, const TlType *elem, TlCpuSpot *s,
                                    LLVMValueRef other, int width)
{
    if (!s->mask && !s->uniform)
        return plain_load(g, elem, s->ptr, width);
    LLVMValueRef mask = lane_mask(g, s, width);
    if (!s->full || !wants_fork(g, elem))
        return masked_load(g, elem, s->ptr, mask, other, width, false);
    Fork f = fork_begin(g, s->uniform ? LLVMBuildAnd(g->b, s->full, s->uniform, "") : s->full);
    fork_else(g, &f, plain_load(g, elem, s->ptr, width));
    return fork_end(g, &f, masked_load(g, elem, s->ptr, mask, other, width, false));
}

/* Every second element from p on: of two vectors that overlap by one, so that nothing behind the
 * last one is read. */
static LLVMValueRef load_every_second(TlCpuGen *g, const TlType *elem, LLVMValueRef p, int width)
{
    TL_ASSERT(width > 1 && width <= 64, "%d lanes", width);
    LLVMValueRef index[64], last = tl_gen_int(&g->gen, width - 1);
    LLVMValueRef a = plain_load(g, elem, p, width),
                 b = plain_load(g, elem, tl_gen_address(&g->gen, elem->dtype, p, last), width);
    for (int i = 0; i < width; i++)
        index[i] = i32_(g, (uint64_t)(2 * i < width ? 2 * i : 2 * i + 1));
    return LLVMBuildShuffleVector(g->b, a, b, LLVMConstVector(index, (unsigned)width), "");
}

LLVMValueRef tl_cpu_eval_load(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(op->opcode == TL_OP_LOAD, "%s is no load", tl_op_info(op->opcode)->text);
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlNestForm form = tl_nest_form(op->out[0]->type);
    if (at->width > 1 && form.extent[at->lane] % at->width == 0 && is_every_second(a, at->lane)) {
        TlCpuAt first = *at;
        first.width = 1;
        TlType element = tl_cpu_elem_of(op->out[0]->type);
        return load_every_second(g, &element, view_spot(g, a, &first).ptr, at->width);
    }
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    if (at->width == 1)
        return load_element(g, op, a, &s, at);
    TlType elem = tl_cpu_elem_of(op->out[0]->type);
    LLVMValueRef other = outside_value(g, a, &elem, at);
    if (!s.apart)
        tl_cpu_prefetch_later(g, a, s.ptr, at->width * (int64_t)tl_gen_elem_bytes(&elem));
    if (!s.apart)
        return load_contiguous(g, &elem, &s, other, at->width);
    LLVMValueRef mask = lane_mask(g, &s, at->width);
    mask = both(g, mask, tl_cpu_lane_mask(g, &form, at));
    if (a->view)
        return masked_load(g, &elem, s.ptr, mask, other, at->width, true);
    LLVMValueRef first, run = pointer_run(g, &elem, s.ptr, at->width, &first);
    Fork f = fork_begin(g, run);
    fork_else(g, &f, masked_load(g, &elem, first, mask, other, at->width, false));
    return fork_end(g, &f, masked_load(g, &elem, s.ptr, mask, other, at->width, true));
}

LLVMValueRef tl_cpu_eval_inside(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(op->opcode == TL_OP_INSIDE, "%s asks for no bounds", tl_op_info(op->opcode)->text);
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    if (at->width > 1)
        return lane_mask(g, &s, at->width);
    LLVMValueRef ok = both(g, s.uniform, s.mask);
    return ok ? ok : LLVMConstInt(g->i1, 1, 0);
}

/* ---- stores ---- */

static LLVMValueRef store_plain(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef x)
{
    LLVMValueRef store = LLVMBuildStore(g->b, tl_gen_to_mem(&g->gen, elem, x), p);
    LLVMSetAlignment(store, (unsigned)tl_gen_elem_bytes(elem));
    return store;
}

/* Past the caches if the row streams. */
static void store_row(TlCpuGen *g, const TlCpuAccess *a, const TlType *elem, LLVMValueRef p,
                      LLVMValueRef x)
{
    Fork f = fork_begin(g, a->streams), wide = {0};
    if (a->streams_wide) {
        wide = fork_begin(g, a->streams_wide);
        tl_cpu_stream_store(g, store_plain(g, elem, p, x), true);
        fork_else(g, &wide, NULL);
    }
    tl_cpu_stream_store(g, store_plain(g, elem, p, x), false);
    if (a->streams_wide)
        fork_end(g, &wide, NULL);
    fork_else(g, &f, NULL);
    store_plain(g, elem, p, x);
    fork_end(g, &f, NULL);
}

static void store_masked(TlCpuGen *g, const TlType *elem, LLVMValueRef p, LLVMValueRef x,
                         LLVMValueRef mask, bool apart)
{
    LLVMValueRef v = tl_gen_to_mem(&g->gen, elem, x);
    LLVMValueRef args[4] = {v, p, i32_(g, tl_gen_elem_bytes(elem)), mask};
    masked(g, apart ? "llvm.masked.scatter" : "llvm.masked.store", LLVMTypeOf(v), LLVMTypeOf(p),
           args, 4);
}

static void store_vector(TlCpuGen *g, TlCpuAccess *a, const TlType *type, TlCpuSpot *s, TlCpuAt *at,
                         LLVMValueRef x)
{
    TlType elem = tl_cpu_elem_of(type);
    TlNestForm form = tl_nest_form(type);
    LLVMValueRef mask = lane_mask(g, s, at->width);
    if (a->streams && a->whole) {
        TL_ASSERT(!s->apart && !s->mask, "a streaming store with a mask");
        /* the row's index may come from a tile, whose elements are anywhere */
        LLVMBasicBlockRef join = s->uniform ? tl_cpu_branch_if(g, s->uniform) : NULL;
        store_row(g, a, &elem, s->ptr, x);
        if (join)
            tl_cpu_join_at(g, join);
        return;
    }
    if (s->apart) {
        mask = both(g, mask, tl_cpu_lane_mask(g, &form, at));
        if (a->view) {
            store_masked(g, &elem, s->ptr, x, mask, true);
            return;
        }
        LLVMValueRef first, run = pointer_run(g, &elem, s->ptr, at->width, &first);
        Fork f = fork_begin(g, run);
        store_masked(g, &elem, first, x, mask, false);
        fork_else(g, &f, NULL);
        store_masked(g, &elem, s->ptr, x, mask, true);
        fork_end(g, &f, NULL);
        return;
    }
    if (!s->full || !wants_fork(g, &elem)) {
        store_masked(g, &elem, s->ptr, x, mask, false);
        return;
    }
    Fork f = fork_begin(g, s->uniform ? LLVMBuildAnd(g->b, s->full, s->uniform, "") : s->full);
    store_plain(g, &elem, s->ptr, x);
    fork_else(g, &f, NULL);
    store_masked(g, &elem, s->ptr, x, mask, false);
    fork_end(g, &f, NULL);
}

static void store_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    TlOp *op = user;
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlType elem = tl_cpu_elem_of(a->place.value->type);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef x = tl_cpu_eval(g, a->place.value, at);
    if (at->width > 1) {
        store_vector(g, a, a->place.value->type, &s, at, x);
        return;
    }
    LLVMValueRef ok = tl_cpu_element_ok(g, op, a, &s);
    LLVMBasicBlockRef join = ok ? tl_cpu_branch_if(g, ok) : NULL;
    store_plain(g, &elem, s.ptr, x);
    if (join)
        tl_cpu_join_at(g, join);
}

static int least_width(TlCpuGen *g, TlOp *op, int limit)
{
    TL_ASSERT(limit > 0, "%d lanes at most", limit);
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    limit = tl_cpu_access_width(g, op, limit);
    limit = tl_cpu_chain_width(g, a->place.value, limit);
    if (a->place.mask)
        limit = tl_cpu_chain_width(g, a->place.mask, limit);
    return limit;
}

void tl_cpu_lower_store(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_STORE, "%s is no store", tl_op_info(op->opcode)->text);
    const TlType *type = tl_cpu_access_of(g, op)->place.value->type;
    int width = 1;
    if (type->rank) {
        TlNestForm f = tl_nest_form(type);
        width = tl_nest_fit_width(f.padded[f.lane], least_width(g, op, 64));
        TlCpuInside in;
        tl_cpu_inside_begin(g, &in);
        tl_cpu_inside_store(g, &in, op, f.lane);
        tl_cpu_inside_value(g, &in, tl_op_place(op).value, f.lane, false);
        LLVMValueRef end = tl_cpu_inside_end(g, &in, f.extent[f.lane], width);
        /* what a product has not stored itself is at edges */
        in.may_stream = end && !tl_map_get(&g->stored, (uint64_t)(uintptr_t)op, NULL) &&
                        tl_cpu_may_stream(g, in.store, width, in.nvalues);
        tl_cpu_nest_split(g, type, width, &in, end, store_body, op);
        return;
    }
    tl_cpu_nest(g, type, width, store_body, op);
}
