/* Atomics on the CPU: element by element, but for floats that lie side by side. */
#include "codegen/cpu/cpu.h"

static LLVMAtomicOrdering ordering(const TlOp *op)
{
    static const LLVMAtomicOrdering ORDERS[] = {[TL_ORDER_RELAXED] = LLVMAtomicOrderingMonotonic,
                                                [TL_ORDER_ACQUIRE] = LLVMAtomicOrderingAcquire,
                                                [TL_ORDER_RELEASE] = LLVMAtomicOrderingRelease,
                                                [TL_ORDER_ACQ_REL] =
                                                    LLVMAtomicOrderingAcquireRelease};
    return ORDERS[tl_attr_int(op, TL_ATTR_ORDER, TL_ORDER_RELAXED)];
}

/* What is left of an order for what only reads. */
static LLVMAtomicOrdering acquiring(LLVMAtomicOrdering o)
{
    return o == LLVMAtomicOrderingAcquire || o == LLVMAtomicOrderingAcquireRelease
               ? LLVMAtomicOrderingAcquire
               : LLVMAtomicOrderingMonotonic;
}

static LLVMTypeRef bits_type(TlCpuGen *g, const TlType *elem)
{
    return LLVMIntTypeInContext(g->c, 8 * (unsigned)tl_gen_elem_bytes(elem));
}

static LLVMValueRef bits_of(TlCpuGen *g, const TlType *elem, LLVMValueRef x)
{
    return LLVMBuildBitCast(g->b, tl_gen_to_mem(&g->gen, elem, x), bits_type(g, elem), "");
}

static LLVMValueRef element_of(TlCpuGen *g, const TlType *elem, LLVMValueRef bits)
{
    LLVMTypeRef type = tl_gen_mem_type(&g->gen, elem);
    return tl_gen_from_mem(&g->gen, elem, LLVMBuildBitCast(g->b, bits, type, ""));
}

static TlRmw kind_of(const TlOp *op)
{
    return (TlRmw)tl_attr_int(op, TL_ATTR_RMW, TL_RMW_ADD);
}

static LLVMValueRef compare_exchange(TlCpuGen *g, TlOp *op, LLVMValueRef p, LLVMValueRef expected,
                                     LLVMValueRef desired, LLVMValueRef *out_ok)
{
    LLVMAtomicOrdering o = ordering(op);
    LLVMValueRef r = LLVMBuildAtomicCmpXchg(g->b, p, expected, desired, o, acquiring(o), 0);
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

/* The old value of a number, or of the vector of floats that an exchange takes, of which `seen` are
 * the bits that a load gave: by a loop of compare-and-exchange, as LLVM has no products, and its
 * own operations on floats do not compute what ours do. */
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
    case TL_RMW_MUL: break; /* a loop */
    }
    TL_UNREACHABLE("atomic %d", (int)kind);
}

static LLVMValueRef rmw(TlCpuGen *g, TlOp *op, const TlType *elem, LLVMValueRef p, LLVMValueRef x)
{
    bool s = tl_is_signed(elem->dtype);
    TlRmw kind = kind_of(op);
    if (kind == TL_RMW_MUL || (tl_is_float(elem->dtype) && kind != TL_RMW_XCHG))
        return rmw_loop(g, op, elem->dtype, p, relaxed_load(g, bits_type(g, elem), p), x);
    LLVMValueRef old = LLVMBuildAtomicRMW(g->b, operation(kind, s), p, bits_of(g, elem, x),
                                          ordering(op), 0);
    return element_of(g, elem, old);
}

static LLVMAtomicOrdering releasing(LLVMAtomicOrdering o)
{
    bool releases = o == LLVMAtomicOrderingRelease || o == LLVMAtomicOrderingAcquireRelease;
    return releases ? LLVMAtomicOrderingRelease : LLVMAtomicOrderingMonotonic;
}

static LLVMValueRef atomic_element(TlCpuGen *g, const TlCpuAccess *a, TlCpuSpot *s, TlCpuAt *at)
{
    TlOp *op = a->a->op;
    TlType elem = tl_cpu_elem_of(a->a->place.base->type);
    elem.ptr = false;
    LLVMAtomicOrdering order = ordering(op);
    LLVMValueRef x = a->a->place.value ? tl_cpu_eval(g, a->a->place.value, at) : NULL;
    if (op->opcode == TL_OP_ATOMIC_RMW)
        return rmw(g, op, &elem, s->ptr, x);
    if (op->opcode == TL_OP_ATOMIC_CAS) {
        LLVMValueRef e = bits_of(g, &elem, tl_cpu_eval(g, a->a->place.expected, at));
        return element_of(
            g, &elem, compare_exchange(g, op, s->ptr, e, bits_of(g, &elem, x), NULL));
    }
    bool loads = op->opcode == TL_OP_ATOMIC_LOAD;
    TL_ASSERT(loads || op->opcode == TL_OP_ATOMIC_STORE, "%s", tl_op_info(op->opcode)->text);
    LLVMValueRef v = loads ? LLVMBuildLoad2(g->b, bits_type(g, &elem), s->ptr, "")
                           : LLVMBuildStore(g->b, bits_of(g, &elem, x), s->ptr);
    LLVMSetOrdering(v, loads ? acquiring(order) : releasing(order));
    LLVMSetAlignment(v, (unsigned)tl_gen_elem_bytes(&elem));
    return loads ? element_of(g, &elem, v) : NULL;
}

static void atomic_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const TlCpuAccess *a = user;
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    LLVMValueRef ok = tl_cpu_element_ok(g, a, &s);
    TlCpuBranch branch = tl_cpu_branch(g, ok, true, "then", "join");
    LLVMValueRef old = atomic_element(g, a, &s, at);
    if (!old) {
        tl_cpu_join(g, branch);
        return;
    }
    old = tl_cpu_join_value(g, branch, old, LLVMConstNull(LLVMTypeOf(old)));
    TlValue *out = a->a->op->out[0];
    if (out->type->rank)
        tl_cpu_own_store(g, out, at, old);
    else
        g->scalar[out->id] = old;
}

/* ---- floats side by side, 16 bytes at a time ----
 * A locked exchange takes as long for 16 bytes as for one element. It wants aligned addresses, so
 * rows that begin elsewhere go element by element, as what is not inside does. */

enum { GROUP_BYTES = 16 };

static void group_body(TlCpuGen *g, const TlCpuAccess *a, TlCpuAt *at)
{
    TL_ASSERT(at->width > 1, "a group of %d", at->width);
    TlCpuSpot s = tl_cpu_spot_at(g, a, at);
    TlCpuBranch branch = tl_cpu_branch(g, s.uniform, true, "then", "join");
    LLVMTypeRef bits = LLVMIntTypeInContext(g->c, 8 * GROUP_BYTES);
    LLVMValueRef half = tl_gen_int(&g->gen, 1),
                 above = LLVMBuildInBoundsGEP2(g->b, g->i64, s.ptr, &half, 1, "");
    LLVMValueRef halves = LLVMGetPoison(LLVMVectorType(g->i64, 2));
    halves = LLVMBuildInsertElement(g->b, halves, relaxed_load(g, g->i64, s.ptr),
                                    LLVMConstInt(g->i32, 0, 0), "");
    halves = LLVMBuildInsertElement(g->b, halves, relaxed_load(g, g->i64, above),
                                    LLVMConstInt(g->i32, 1, 0), "");
    LLVMValueRef x = tl_cpu_eval(g, a->a->place.value, at);
    rmw_loop(g, a->a->op, a->a->place.base->type->dtype, s.ptr,
             LLVMBuildBitCast(g->b, halves, bits, ""), x);
    tl_cpu_join(g, branch);
}

/* Groups up to `end`, where all is inside, then elements. */
static void lower_row(TlCpuGen *g, const TlNest *n, TlCpuAccess *a, const TlCpuAt *outer,
                      LLVMValueRef end)
{
    TlCpuAt at = *outer;
    TlCpuLoop groups, rest;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0),
                 last = tl_gen_int(&g->gen, n->form.extent[n->form.lane]);
    at.idx[at.lane] = zero;
    LLVMValueRef p = LLVMBuildPtrToInt(g->b, tl_cpu_access_address(g, a, &at), g->i64, "");
    p = LLVMBuildAnd(g->b, p, tl_gen_int(&g->gen, GROUP_BYTES - 1), "");
    end = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, p, zero, ""), end, zero, "");
    tl_map_init(&at.memo, g->arena);
    at.whole = true;
    tl_cpu_loop_begin(g, &groups, zero, end, at.width, 0, NULL);
    at.idx[at.lane] = groups.i;
    group_body(g, a, &at);
    tl_cpu_loop_end(g, &groups, NULL);
    at.whole = false;
    at.width = n->tested;
    tl_map_init(&at.memo, g->arena);
    tl_cpu_loop_begin(g, &rest, end, last, at.width, 0, NULL);
    tl_cpu_loop_is_short(g, &rest);
    at.idx[at.lane] = rest.i;
    atomic_body(g, &at, a);
    tl_cpu_loop_end(g, &rest, NULL);
}

void tl_cpu_atomic(TlCpuGen *g, const TlNest *n)
{
    TL_ASSERT(n->kind == TL_NEST_ATOMIC, "%s is no atomic", tl_op_info(n->op->opcode)->text);
    TlCpuAccess *a = tl_cpu_prepare_access(g, n->op);
    if (!n->groups) {
        tl_cpu_nest(g, n, atomic_body, a);
        return;
    }
    TlCpuBounds bounds = tl_cpu_bounds(g, n, n->width);
    TlCpuAt at;
    tl_cpu_at_init(g, &at, n->form.rank, n->form.lane, n->width);
    TlCpuLoops loops = {.skip = n->form.lane, .dim = -1};
    tl_cpu_loops_begin(g, &loops, &n->form, &at);
    lower_row(g, n, a, &at, bounds.end);
    tl_cpu_loops_end(g, &loops);
}
