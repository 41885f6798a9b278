/* Atomics on the CPU: element by element, but for floats that lie side by side. */
#include "codegen/cpu/cpu_access.h"

static LLVMAtomicOrdering ordering(const TlOp *op)
{
    static const LLVMAtomicOrdering ORDERS[] = {[TL_ORDER_RELAXED] = LLVMAtomicOrderingMonotonic,
                                                [TL_ORDER_ACQUIRE] = LLVMAtomicOrderingAcquire,
                                                [TL_ORDER_RELEASE] = LLVMAtomicOrderingRelease,
                                                [TL_ORDER_ACQ_REL] =
                                                    LLVMAtomicOrderingAcquireRelease};
    return ORDERS[tl_attr_int(op, TL_ATTR_ORDER, TL_ORDER_RELAXED)];
}

static LLVMAtomicOrdering failure_ordering(LLVMAtomicOrdering o)
{
    return o == LLVMAtomicOrderingAcquire || o == LLVMAtomicOrderingAcquireRelease
               ? LLVMAtomicOrderingAcquire
               : LLVMAtomicOrderingMonotonic;
}

static LLVMTypeRef bits_type(TlCpuGen *g, const TlType *elem)
{
    return LLVMIntTypeInContext(g->c, 8 * (unsigned)tl_gen_elem_bytes(elem));
}

static TlRmw kind_of(const TlOp *op)
{
    return (TlRmw)tl_attr_int(op, TL_ATTR_RMW, TL_RMW_ADD);
}

static LLVMValueRef compare_exchange(TlCpuGen *g, TlOp *op, LLVMValueRef p, LLVMValueRef expected,
                                     LLVMValueRef desired, LLVMValueRef *out_ok)
{
    LLVMAtomicOrdering o = ordering(op);
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(g->b, p, expected, desired, o, failure_ordering(o), 0);
    if (out_ok)
        *out_ok = LLVMBuildExtractValue(g->b, r, 1, "");
    return LLVMBuildExtractValue(g->b, r, 0, "");
}

static LLVMValueRef relaxed_load(TlCpuGen *g, LLVMTypeRef bits, LLVMValueRef p)
{
    LLVMValueRef seen = LLVMBuildLoad2(g->b, bits, p, "");
    LLVMSetOrdering(seen, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(seen, LLVMGetIntTypeWidth(bits) / 8);
    return seen;
}

/* The old value of a float, or of the vector of floats that an exchange takes, of which `seen` are
 * the bits that a load gave: by a loop of compare-and-exchange, as LLVM's own operations on floats
 * do not compute what ours do. */
static LLVMValueRef rmw_loop(TlCpuGen *g, TlOp *op, TlDtype dtype, LLVMValueRef p,
                             LLVMValueRef seen, LLVMValueRef x)
{
    LLVMTypeRef bits = LLVMTypeOf(seen), type = LLVMTypeOf(x);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), loop = tl_gen_block(&g->gen, "again"),
                      exit = tl_gen_block(&g->gen, "swapped");
    LLVMBuildBr(g->b, loop);
    LLVMPositionBuilderAtEnd(g->b, loop);
    LLVMValueRef old = LLVMBuildPhi(g->b, bits, ""), ok;
    LLVMAddIncoming(old, &seen, &from, 1);
    LLVMValueRef sum = tl_gen_combine(&g->gen, tl_rmw_combine(kind_of(op)), dtype,
                                      LLVMBuildBitCast(g->b, old, type, ""), x);
    LLVMValueRef now = compare_exchange(g, op, p, old, LLVMBuildBitCast(g->b, sum, bits, ""), &ok);
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(old, &now, &end, 1);
    LLVMBuildCondBr(g->b, ok, exit, loop);
    LLVMPositionBuilderAtEnd(g->b, exit);
    return LLVMBuildBitCast(g->b, now, type, "");
}

/* On integers. */
static LLVMAtomicRMWBinOp operation(TlRmw kind, bool is_signed)
{
    switch (kind) {
    case TL_RMW_ADD: return LLVMAtomicRMWBinOpAdd;
    case TL_RMW_MIN: return is_signed ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
    case TL_RMW_MAX: return is_signed ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
    case TL_RMW_AND: return LLVMAtomicRMWBinOpAnd;
    case TL_RMW_OR: return LLVMAtomicRMWBinOpOr;
    case TL_RMW_XOR: return LLVMAtomicRMWBinOpXor;
    case TL_RMW_XCHG: return LLVMAtomicRMWBinOpXchg;
    }
    TL_UNREACHABLE("atomic %d", (int)kind);
}

static LLVMValueRef rmw(TlCpuGen *g, TlOp *op, const TlType *elem, LLVMValueRef p, LLVMValueRef x)
{
    bool s = tl_is_signed(elem->dtype);
    TlRmw kind = kind_of(op);
    if (kind == TL_RMW_XCHG) {
        LLVMValueRef b = LLVMBuildBitCast(g->b, x, bits_type(g, elem), "");
        LLVMValueRef old = LLVMBuildAtomicRMW(g->b, operation(kind, s), p, b, ordering(op), 0);
        return LLVMBuildBitCast(g->b, old, tl_gen_elem_type(&g->gen, elem), "");
    }
    if (tl_is_float(elem->dtype))
        return rmw_loop(g, op, elem->dtype, p, relaxed_load(g, bits_type(g, elem), p), x);
    return LLVMBuildAtomicRMW(g->b, operation(kind, s), p, x, ordering(op), 0);
}

static LLVMValueRef atomic_element(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuSpot *s, TlCpuAt *at)
{
    TlType elem = tl_cpu_elem_of(a->place.base->type);
    elem.ptr = false;
    LLVMTypeRef bits = bits_type(g, &elem), type = tl_gen_elem_type(&g->gen, &elem);
    LLVMAtomicOrdering order = ordering(op);
    LLVMValueRef x = a->place.value ? tl_cpu_eval(g, a->place.value, at) : NULL;
    switch (op->opcode) {
    case TL_OP_ATOMIC_RMW: return rmw(g, op, &elem, s->ptr, x);
    case TL_OP_ATOMIC_CAS: {
        LLVMValueRef e = LLVMBuildBitCast(g->b, tl_cpu_eval(g, a->place.expected, at), bits, "");
        return LLVMBuildBitCast(
            g->b, compare_exchange(g, op, s->ptr, e, LLVMBuildBitCast(g->b, x, bits, ""), NULL),
            type, "");
    }
    case TL_OP_ATOMIC_LOAD: {
        LLVMValueRef v = LLVMBuildLoad2(g->b, bits, s->ptr, "");
        bool acquire =
            order == LLVMAtomicOrderingAcquire || order == LLVMAtomicOrderingAcquireRelease;
        LLVMSetOrdering(v, acquire ? LLVMAtomicOrderingAcquire : LLVMAtomicOrderingMonotonic);
        LLVMSetAlignment(v, (unsigned)tl_gen_elem_bytes(&elem));
        return LLVMBuildBitCast(g->b, v, type, "");
    }
    default: {
        LLVMValueRef v = LLVMBuildStore(g->b, LLVMBuildBitCast(g->b, x, bits, ""), s->ptr);
        bool release =
            order == LLVMAtomicOrderingRelease || order == LLVMAtomicOrderingAcquireRelease;
        LLVMSetOrdering(v, release ? LLVMAtomicOrderingRelease : LLVMAtomicOrderingMonotonic);
        LLVMSetAlignment(v, (unsigned)tl_gen_elem_bytes(&elem));
        return NULL;
    }
    }
}

static void atomic_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    TlOp *op = user;
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef ok = tl_cpu_element_ok(g, op, a, &s);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), join = ok ? tl_cpu_branch_if(g, ok) : NULL;
    LLVMValueRef old = atomic_element(g, op, a, &s, at);
    if (join) {
        LLVMBasicBlockRef then = LLVMGetInsertBlock(g->b);
        tl_cpu_join_at(g, join);
        if (old) {
            LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(old), "");
            LLVMValueRef none = LLVMConstNull(LLVMTypeOf(old));
            LLVMAddIncoming(phi, &old, &then, 1);
            LLVMAddIncoming(phi, &none, &from, 1);
            old = phi;
        }
    }
    if (!old)
        return;
    TlValue *out = op->out[0];
    if (out->type->rank == 0) {
        g->scalar[out->id] = old;
        return;
    }
    TlNestForm f = tl_nest_form(out->type);
    tl_cpu_home_store(g, out->type, tl_cpu_home_ptr(g, g->plan->place[out->id].buffer), &f, at,
                      old);
}

/* ---- floats side by side, 16 bytes at a time ----
 * A locked exchange takes as long for 16 bytes as for one element. It wants aligned addresses, so
 * rows that begin elsewhere go element by element, as what is not inside does. */

enum { GROUP_BYTES = 16 };

static bool is_grouped(const TlCpuGen *g, const TlOp *op, const TlCpuAccess *a, const TlType *type)
{
    TlRmw kind = kind_of(op);
    int64_t lanes = GROUP_BYTES / tl_dtype_bytes(type->dtype);
    TlNestForm f = tl_nest_form(type);
    return op->opcode == TL_OP_ATOMIC_RMW && kind != TL_RMW_XCHG && tl_is_float(type->dtype) &&
           type->rank && !op->out[0]->uses && !g->options->check && a->view && a->bounds &&
           !a->place.mask && tl_cpu_is_contiguous(a, f.lane) && f.extent[f.lane] % lanes == 0;
}

static void group_body(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuAt *at)
{
    TL_ASSERT(at->width > 1, "a group of %d", at->width);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMBasicBlockRef join = s.uniform ? tl_cpu_branch_if(g, s.uniform) : NULL;
    LLVMTypeRef bits = LLVMIntTypeInContext(g->c, 8 * GROUP_BYTES);
    LLVMValueRef half = tl_gen_int(&g->gen, 1),
                 above = LLVMBuildInBoundsGEP2(g->b, g->i64, s.ptr, &half, 1, "");
    LLVMValueRef halves = LLVMGetPoison(LLVMVectorType(g->i64, 2));
    halves = LLVMBuildInsertElement(g->b, halves, relaxed_load(g, g->i64, s.ptr),
                                    LLVMConstInt(g->i32, 0, 0), "");
    halves = LLVMBuildInsertElement(g->b, halves, relaxed_load(g, g->i64, above),
                                    LLVMConstInt(g->i32, 1, 0), "");
    LLVMValueRef x = tl_cpu_eval(g, a->place.value, at);
    rmw_loop(g, op, a->place.base->type->dtype, s.ptr, LLVMBuildBitCast(g->b, halves, bits, ""),
             x);
    if (join)
        tl_cpu_join_at(g, join);
}

/* Groups up to `end`, then elements. */
static void lower_row(TlCpuGen *g, TlOp *op, TlCpuAccess *a, TlCpuInside *in, const TlCpuAt *outer,
                      LLVMValueRef end, int64_t extent)
{
    TlCpuAt at = *outer;
    TlCpuRange groups, rest;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), last = tl_gen_int(&g->gen, extent);
    at.idx[at.lane] = zero;
    LLVMValueRef p = LLVMBuildPtrToInt(g->b, tl_cpu_access_address(g, a, &at), g->i64, "");
    p = LLVMBuildAnd(g->b, p, tl_gen_int(&g->gen, GROUP_BYTES - 1), "");
    end = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, p, zero, ""), end, zero, "");
    tl_map_init(&at.memo, g->arena);
    tl_cpu_inside_set(in, true);
    tl_cpu_range_begin(g, &groups, zero, end, 0, NULL);
    at.idx[at.lane] = groups.i;
    group_body(g, op, a, &at);
    tl_cpu_range_end(g, &groups, at.width, NULL);
    tl_cpu_inside_set(in, false);
    at.width = 1;
    tl_map_init(&at.memo, g->arena);
    tl_cpu_range_begin(g, &rest, end, last, 0, NULL);
    tl_cpu_range_is_short(g, &rest);
    at.idx[at.lane] = rest.i;
    atomic_body(g, &at, op);
    tl_cpu_range_end(g, &rest, 1, NULL);
}

static void lower_groups(TlCpuGen *g, TlOp *op, TlCpuAccess *a, const TlType *type)
{
    TlNestForm f = tl_nest_form(type);
    int lanes = GROUP_BYTES / tl_dtype_bytes(type->dtype);
    lanes = tl_cpu_chain_width(g, a->place.value, lanes) < lanes ? 1 : lanes;
    TlCpuInside in;
    tl_cpu_inside_begin(g, &in);
    tl_cpu_inside_access(g, &in, op, f.lane);
    tl_cpu_inside_value(g, &in, a->place.value, f.lane, false);
    LLVMValueRef end = lanes > 1 ? tl_cpu_inside_end(g, &in, f.extent[f.lane], lanes) : NULL;
    if (!end) {
        tl_cpu_nest(g, type, 1, atomic_body, op);
        return;
    }
    TlCpuAt at;
    tl_cpu_at_init(g, &at, f.rank, f.lane, lanes);
    TlCpuLoops loops = {.skip = f.lane, .dim = -1};
    tl_cpu_loops_begin(g, &loops, &f, &at);
    lower_row(g, op, a, &in, &at, end, f.extent[f.lane]);
    tl_cpu_loops_end(g, &loops);
}

void tl_cpu_lower_atomic(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(tl_op_info(op->opcode)->flags & F_ATOMIC,
              "%s is no atomic", tl_op_info(op->opcode)->text);
    TlCpuAccess *a = tl_cpu_access_of(g, op);
    TlType type = {
        .kind = TL_TILE, .dtype = a->place.base->type->dtype, .rank = (uint8_t)a->place.rank};
    for (int d = 0; d < a->place.rank; d++)
        type.shape[d] = a->place.shape[d];
    if (is_grouped(g, op, a, &type))
        lower_groups(g, op, a, &type);
    else
        tl_cpu_nest(g, &type, 1, atomic_body, op);
}
