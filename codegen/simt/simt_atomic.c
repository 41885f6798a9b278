/* Atomics in the SIMT lowering: one leaf per register, done by the thread that owns the element.
 * Where others need the old value too (a scalar, or copies in other threads), it goes round through
 * the op's scratch. What hardware has no instruction for is a loop of compare-and-swap. */
#include <string.h>

#include "codegen/simt/simt_access.h"
#include "ir/interp/ring_float.h"
#include "ir/plan/shared_plan.h"

static LLVMTypeRef bits_type(TlSimt *g, const TlSimtAccess *a)
{
    return LLVMIntTypeInContext(g->c, 8 * (unsigned)tl_dtype_bytes(a->elem.dtype));
}

static LLVMValueRef bits_of(TlSimt *g, const TlSimtAccess *a, LLVMValueRef x)
{
    return LLVMBuildBitCast(g->b, tl_gen_to_mem(&g->gen, &a->elem, x), bits_type(g, a), "");
}

static LLVMValueRef element_of(TlSimt *g, const TlSimtAccess *a, LLVMValueRef bits)
{
    LLVMTypeRef type = tl_gen_mem_type(&g->gen, &a->elem);
    return tl_gen_from_mem(&g->gen, &a->elem, LLVMBuildBitCast(g->b, bits, type, ""));
}

static LLVMValueRef leaf(TlSimt *g, const TlSimtAccess *a, LLVMValueRef p, LLVMValueRef pred,
                         tl_atom what, int64_t order, LLVMValueRef value, LLVMValueRef expected)
{
    int64_t scope = tl_attr_int(a->op, TL_ATTR_SCOPE, TL_SCOPE_DEVICE);
    LLVMValueRef none = LLVMConstNull(bits_type(g, a));
    LLVMValueRef args[7] = {p,
                            tl_simt_pred_or_true(g, pred),
                            tl_simt_i32(g, (uint32_t)what),
                            tl_simt_i32(g, (uint32_t)order),
                            tl_simt_i32(g, (uint32_t)scope),
                            value ? value : none,
                            expected ? expected : none};
    uint64_t bytes = (uint64_t)tl_dtype_bytes(a->elem.dtype);
    return tl_simt_leaf(g, tl_simt_sized(TL_LEAF_FAMILY_ATOM, bytes), 7, args);
}

/* old = *p; *p = combine(old, x), or x, repeated until no other thread interfered */
static LLVMValueRef swap_loop(TlSimt *g, const TlSimtAccess *a, LLVMValueRef p, LLVMValueRef pred,
                              TlCombine kind, int64_t order, LLVMValueRef x)
{
    LLVMTypeRef bits = bits_type(g, a);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), first = tl_gen_block(&g->gen, "first"),
                      again = tl_gen_block(&g->gen, "again"), done = tl_gen_block(&g->gen, "done");
    LLVMBuildCondBr(g->b, tl_simt_pred_or_true(g, pred), first, done);
    LLVMPositionBuilderAtEnd(g->b, first);
    LLVMValueRef seen = leaf(g, a, p, NULL, TL_ATOM_LOAD, TL_ORDER_RELAXED, NULL, NULL);
    LLVMBuildBr(g->b, again);
    LLVMPositionBuilderAtEnd(g->b, again);
    LLVMValueRef old = LLVMBuildPhi(g->b, bits, "");
    LLVMAddIncoming(old, &seen, &first, 1);
    LLVMValueRef sum = kind == TL_COMBINE_USER ? x
                                               : tl_gen_combine(&g->gen, kind, a->elem.dtype,
                                                                element_of(g, a, old), x);
    LLVMValueRef now = leaf(g, a, p, NULL, TL_ATOM_CAS, order, bits_of(g, a, sum), old);
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(old, &now, &end, 1);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, now, old, ""), done, again);
    LLVMPositionBuilderAtEnd(g->b, done);
    LLVMValueRef result = LLVMBuildPhi(g->b, bits, ""), values[2] = {LLVMConstNull(bits), now};
    LLVMBasicBlockRef blocks[2] = {from, end};
    LLVMAddIncoming(result, values, blocks, 2);
    return result;
}

static tl_atom atom_of(TlRmw kind, TlDtype d)
{
    bool s = tl_is_signed(d);
    switch (kind) {
    case TL_RMW_ADD: return tl_is_float(d) ? TL_ATOM_FADD : TL_ATOM_ADD;
    case TL_RMW_MIN: return s ? TL_ATOM_MIN_S : TL_ATOM_MIN_U;
    case TL_RMW_MAX: return s ? TL_ATOM_MAX_S : TL_ATOM_MAX_U;
    case TL_RMW_AND: return TL_ATOM_AND;
    case TL_RMW_OR: return TL_ATOM_OR;
    case TL_RMW_XOR: return TL_ATOM_XOR;
    case TL_RMW_XCHG: return TL_ATOM_XCHG;
    case TL_RMW_MUL: break; /* a loop */
    }
    TL_UNREACHABLE("atomic %d", (int)kind);
}

static LLVMValueRef rmw(TlSimt *g, const TlSimtAccess *a, LLVMValueRef p, LLVMValueRef pred,
                        int64_t order, LLVMValueRef x)
{
    TlDtype d = tl_op_dtype(a->op, a->elem.dtype);
    TlRmw kind = (TlRmw)tl_attr_int(a->op, TL_ATTR_RMW, TL_RMW_ADD);
    bool leaf_takes = kind == TL_RMW_XCHG || kind == TL_RMW_ADD ||
                      (!tl_is_float(d) && kind != TL_RMW_MUL);
    if (!leaf_takes || tl_dtype_bytes(d) < 4)
        return swap_loop(g, a, p, pred, tl_rmw_combine(kind), order, x);
    tl_atom what = atom_of(kind, d);
    return leaf(g, a, p, pred, what, order, bits_of(g, a, x), NULL);
}

/* The old value of register r's element; NULL for a store. */
static LLVMValueRef one(TlSimt *g, TlSimtAccess *a, int64_t r, LLVMValueRef pred)
{
    LLVMValueRef p = tl_simt_access_address(g, a, r), old;
    pred = tl_simt_access_ask(g, a, pred, p, tl_gen_elem_bytes(&a->elem));
    LLVMValueRef x = a->place.value ? tl_simt_access_value(g, a, a->place.value, r) : NULL;
    int64_t order = tl_attr_int(a->op, TL_ATTR_ORDER, TL_ORDER_RELAXED);
    if (a->op->opcode == TL_OP_ATOMIC_RMW)
        old = rmw(g, a, p, pred, order, x);
    else if (a->op->opcode == TL_OP_ATOMIC_LOAD)
        old = leaf(g, a, p, pred, TL_ATOM_LOAD, order, NULL, NULL);
    else if (a->op->opcode == TL_OP_ATOMIC_STORE)
        old = leaf(g, a, p, pred, TL_ATOM_STORE, order, bits_of(g, a, x), NULL);
    else
        old = leaf(g, a, p, pred, TL_ATOM_CAS, order, bits_of(g, a, x),
                   bits_of(g, a, tl_simt_access_value(g, a, a->place.expected, r)));
    return element_of(g, a, old);
}

/* Of the elements, in row-major order, those from `first` on are passed on together. */
typedef struct Part {
    uint32_t first, count;
    bool whole;
} Part;

/* Number in the part of register r's element. */
static LLVMValueRef number_in(TlSimt *g, const TlSimtAccess *a, const Part *part, int64_t r)
{
    LLVMValueRef n = tl_simt_i32(g, 0);
    for (int d = 0; d < a->type->rank; d++) {
        n = LLVMBuildMul(g->b, n, tl_simt_i32(g, (uint32_t)a->type->shape[d]), "");
        n = LLVMBuildAdd(g->b, n, tl_simt_coord(g, a->layout, r, d), "");
    }
    return part->first ? LLVMBuildSub(g->b, n, tl_simt_i32(g, part->first), "") : n;
}

/* i1: is register r's element in the part, and inside of the tile? NULL: always. */
static LLVMValueRef is_in(TlSimt *g, const TlSimtAccess *a, const Part *part, int64_t r)
{
    LLVMValueRef in = a->layout ? tl_simt_is_inside(g, a->type, r) : NULL;
    if (part->whole)
        return in;
    LLVMValueRef n = number_in(g, a, part, r);
    return tl_simt_both(
        g, in, LLVMBuildICmp(g->b, LLVMIntULT, n, tl_simt_i32(g, part->count), ""));
}

/* Byte offset in the scratch of register r's element. */
static LLVMValueRef scratch_of(TlSimt *g, const TlSimtAccess *a, const Part *part, int64_t r)
{
    LLVMValueRef n = number_in(g, a, part, r);
    n = LLVMBuildMul(g->b, n, tl_simt_i32(g, (uint32_t)tl_dtype_bytes(a->elem.dtype)), "");
    int64_t at = tl_attr_int(a->op, TL_ATTR_SHARED, -1);
    TL_ASSERT(at >= 0, "an atomic without scratch");
    return LLVMBuildAdd(g->b, n, tl_simt_i32(g, (uint32_t)at), "");
}

static void share_part(TlSimt *g, TlSimtAccess *a, const Part *part, LLVMValueRef owner,
                       LLVMValueRef *out)
{
    for (int64_t r = 0; r < a->nregs; r++) {
        LLVMValueRef mine = tl_simt_both(g, owner, is_in(g, a, part, r));
        tl_simt_shared_store(g, &a->elem, scratch_of(g, a, part, r), mine, 1, &out[r]);
    }
    tl_simt_barrier(g);
    for (int64_t r = 0; r < a->nregs; r++) {
        LLVMValueRef at = scratch_of(g, a, part, r), in = is_in(g, a, part, r), x;
        if (in) /* else: any element that exists */
            at = LLVMBuildSelect(
                g->b, in, at, tl_simt_i32(g, (uint32_t)tl_attr_int(a->op, TL_ATTR_SHARED, 0)), "");
        tl_simt_shared_load(g, &a->elem, at, 1, &x);
        out[r] = part->whole ? x : LLVMBuildSelect(g->b, in, x, out[r], "");
    }
}

/* All threads get the owners' values. */
static void share(TlSimt *g, TlSimtAccess *a, LLVMValueRef *out)
{
    LLVMValueRef owner = tl_simt_access_owner(g, a);
    uint32_t all = (uint32_t)tl_type_elems(a->op->out[0]->type);
    Part part = {0, tl_atomic_part(a->op), false};
    part.whole = part.count == all;
    for (; part.first < all; part.first += part.count) {
        if (part.first > 0)
            tl_simt_barrier(g);
        share_part(g, a, &part, owner, out);
    }
}

void tl_simt_atomic(TlSimt *g, TlOp *op)
{
    TL_ASSERT(tl_op_info(op->opcode)->flags & F_ATOMIC,
              "%s is no atomic", tl_op_info(op->opcode)->text);
    TlSimtAccess a;
    tl_simt_access_begin(g, op, &a);
    tl_simt_access_promise(g, &a);
    LLVMValueRef owner = tl_simt_access_owner(g, &a),
                 *out = TL_NEW_ARRAY(g->arena, LLVMValueRef, a.nregs);
    for (int64_t r = 0; r < a.nregs; r++)
        out[r] = one(g, &a, r, tl_simt_both(g, owner, tl_simt_access_pred(g, &a, r)));
    if (!op->nout || !op->out[0]->uses)
        return;
    if (owner)
        share(g, &a, out);
    if (!a.layout)
        g->scalar[op->out[0]->id] = out[0];
    else
        memcpy(tl_simt_define(g, op->out[0]), out, sizeof *out * (size_t)a.nregs);
}
