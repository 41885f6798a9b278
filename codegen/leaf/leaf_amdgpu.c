/* Leaves on AMD GPUs: intrinsics, and prelude functions for operations with a scope or a branch.
 *
 * A predicated load reads from a constant where the predicate is false, so nothing branches and
 * loads can be issued together; stores and atomics branch (the machine masks lanes). A shuffle by
 * a constant mask is one or two data-parallel moves within 16 lanes; on RDNA, a permutation of the
 * other 16; else a swizzle within 32, or a permutation through the LDS crossbar, which needs no
 * memory. All lanes take part, so no lane keeps an old value. */
#include "codegen/leaf/leaf_expand.h"
#include "ir/ir.h"

#include <string.h>

static const char TID[] = "llvm.amdgcn.workitem.id.x", CTAID[] = "llvm.amdgcn.workgroup.id.x";

static LLVMValueRef special(TlLeafCall *call, const char *name)
{
    return tl_leaf_intrinsic(call, name, NULL, 0, NULL, 0);
}

static const char *type_text(unsigned bits)
{
    switch (bits) {
    case 8: return "i8";
    case 16: return "i16";
    case 32: return "i32";
    case 64: return "<2 x i32>";
    default: return "<4 x i32>";
    }
}

/* ---- loads and stores ---- */

/* Hints: data that is used once does not stay in the caches. */
static bool is_streaming(uint32_t hints)
{
    return (hints & 3) == TL_CACHE_STREAM || hints >> 2 == TL_EVICT_FIRST;
}

static void set_streaming(TlLeafCall *call, LLVMValueRef access)
{
    LLVMMetadataRef one = LLVMValueAsMetadata(tl_leaf_i32(call, 1));
    tl_llvm_set_metadata(call->l, access, "nontemporal", &one, 1);
}

LLVMValueRef tl_amd_filled(TlLeafCall *call, uint32_t word)
{
    LLVMTypeRef t = LLVMVectorType(call->i32, 4);
    LLVMValueRef x = tl_leaf_i32(call, word), all[4] = {x, x, x, x};
    char *name = tl_format(call->l->arena, "tl.fill.%x", (unsigned)word);
    LLVMValueRef g = LLVMGetNamedGlobal(call->l->module, name);
    if (g)
        return g;
    g = LLVMAddGlobalInAddressSpace(call->l->module, t, name, 1);
    LLVMSetInitializer(g, LLVMConstVector(all, 4));
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMInternalLinkage);
    LLVMSetAlignment(g, 16);
    return g;
}

/* site, address, pred, hints, fill */
static LLVMValueRef load_global(TlLeafCall *call)
{
    LLVMValueRef address = call->args[1], pred = call->args[2];
    if (tl_leaf_is_false(pred))
        return tl_leaf_fill(call, call->result);
    if (!tl_leaf_is_true(pred))
        address = LLVMBuildSelect(call->b, pred, address,
                                  tl_amd_filled(call, tl_leaf_constant(call, 4)), "");
    LLVMValueRef x = tl_leaf_load(call, address);
    if (is_streaming(tl_leaf_constant(call, 3)))
        set_streaming(call, x);
    return x;
}

/* A predicated store; `space` 1 or 3. */
static void store_where(TlLeafCall *call, int space, bool streaming, LLVMValueRef address,
                        LLVMValueRef pred, LLVMValueRef value)
{
    unsigned bits = tl_leaf_bits(call->leaf);
    const char *name =
        tl_format(call->l->arena, "tl.store.%d.%u%s", space, bits, streaming ? ".once" : "");
    LLVMValueRef args[3] = {address, pred, value};
    bool is_new;
    tl_leaf_helper(call, name, call->void_, args, 3, &is_new);
    if (!is_new)
        return;
    tl_sbuf_putf(call->prelude,
                 "define void @%s(ptr addrspace(%d) %%p, i1 %%pred, %s %%x) alwaysinline {\n"
                 "  br i1 %%pred, label %%do, label %%end\n"
                 "do:\n"
                 "  store %s %%x, ptr addrspace(%d) %%p, align %u%s\n"
                 "  br label %%end\n"
                 "end:\n"
                 "  ret void\n"
                 "}\n",
                 name, space, type_text(bits), type_text(bits), space, bits / 8,
                 streaming ? ", !nontemporal !{i32 1}" : "");
}

/* site, address, pred, hints, value */
static void store_global(TlLeafCall *call)
{
    LLVMValueRef *x = call->args;
    bool streaming = is_streaming(tl_leaf_constant(call, 3));
    if (tl_leaf_is_true(x[2]) && !streaming)
        tl_leaf_store(call, x[1], x[4]);
    else if (!tl_leaf_is_false(x[2]))
        store_where(call, 1, streaming, x[1], x[2], x[4]);
}

/* site, offset */
static LLVMValueRef load_columns(TlLeafCall *call)
{
    bool bytes = tl_leaf_info(call->leaf)->size == 8;
    LLVMTypeRef type = bytes ? call->result : LLVMVectorType(call->i16, 4);
    LLVMValueRef at = tl_leaf_shared(call, call->args[1]);
    const char *name = bytes ? "llvm.amdgcn.ds.read.tr8.b64" : "llvm.amdgcn.ds.read.tr16.b64";
    return LLVMBuildBitCast(call->b, tl_leaf_intrinsic(call, name, &type, 1, &at, 1), call->result,
                            "");
}

static void store_shared_where(TlLeafCall *call, LLVMValueRef address, LLVMValueRef pred,
                               LLVMValueRef value)
{
    store_where(call, 3, false, address, pred, value);
}

/* ---- atomics ---- */

/* site, offset, pred, value */
static void add_shared(TlLeafCall *call)
{
    LLVMValueRef *x = call->args;
    if (tl_leaf_is_false(x[2]))
        return;
    LLVMValueRef args[3] = {tl_leaf_shared(call, x[1]), x[2], x[3]};
    bool is_new;
    tl_leaf_helper(call, "tl.adds", call->void_, args, 3, &is_new);
    if (is_new)
        tl_sbuf_putf(call->prelude,
                     "define void @tl.adds(ptr addrspace(3) %%p, i1 %%pred, i32 %%x) "
                     "alwaysinline {\n"
                     "  br i1 %%pred, label %%do, label %%end\n"
                     "do:\n"
                     "  %%old = atomicrmw add ptr addrspace(3) %%p, i32 %%x "
                     "syncscope(\"workgroup\") monotonic\n"
                     "  br label %%end\n"
                     "end:\n"
                     "  ret void\n"
                     "}\n");
}

static const char *const SCOPES[] = {[TL_SCOPE_BLOCK] = "syncscope(\"workgroup\") ",
                                     [TL_SCOPE_DEVICE] = "syncscope(\"agent\") ",
                                     [TL_SCOPE_SYSTEM] = ""};
static const char *const RMW[] = {
    [TL_ATOM_ADD] = "add",   [TL_ATOM_MIN_S] = "min",  [TL_ATOM_MIN_U] = "umin",
    [TL_ATOM_MAX_S] = "max", [TL_ATOM_MAX_U] = "umax", [TL_ATOM_AND] = "and",
    [TL_ATOM_OR] = "or",     [TL_ATOM_XOR] = "xor",    [TL_ATOM_XCHG] = "xchg",
    [TL_ATOM_FADD] = "fadd"};

/* What is left of an order behind a fence that releases. */
static const char *acquiring(uint32_t order)
{
    bool acquires = order == TL_ORDER_ACQUIRE || order == TL_ORDER_ACQ_REL;
    return acquires ? "acquire" : "monotonic";
}

/* A fence, after which amd_release.c puts the wait. */
static void put_release(TlSbuf *s, uint32_t op, uint32_t order, uint32_t scope)
{
    bool releases = order == TL_ORDER_RELEASE || order == TL_ORDER_ACQ_REL;
    if (releases && op != TL_ATOM_LOAD)
        tl_sbuf_putf(s, "  fence %srelease\n", SCOPES[scope]);
}

/* Of memory that is coarse-grained, as device memory is, all of these are instructions. LLVM 22
 * makes loops of what fine-grained or remote memory might lack if that is not said, LLVM 19 only of
 * floats, by the function's attribute amdgpu-unsafe-fp-atomics. What the whole system shares may be
 * the host's memory. */
static const char *memory_of(uint32_t scope)
{
    return scope == TL_SCOPE_SYSTEM ? "" : ", !amdgpu.no.fine.grained.memory !{}";
}

/* The instruction, from %p, %x, %e to %r, all of bits wide. */
static void put_atomic(TlSbuf *s, tl_atom op, uint32_t order, uint32_t scope, unsigned bits)
{
    TL_ASSERT(bits >= 8 && bits <= 64, "an atomic of %u bits", bits);
    const char *acquire = acquiring(order);
    switch (op) {
    case TL_ATOM_LOAD:
        tl_sbuf_putf(s, "  %%r = load atomic i%u, ptr addrspace(1) %%p %s%s, align %u\n", bits,
                     SCOPES[scope], acquire, bits / 8);
        return;
    case TL_ATOM_STORE:
        tl_sbuf_putf(s,
                     "  store atomic i%u %%x, ptr addrspace(1) %%p %smonotonic, align %u\n"
                     "  %%r = add i%u 0, 0\n",
                     bits, SCOPES[scope], bits / 8, bits);
        return;
    case TL_ATOM_CAS:
        tl_sbuf_putf(s,
                     "  %%c = cmpxchg ptr addrspace(1) %%p, i%u %%e, i%u %%x %s%s %s\n"
                     "  %%r = extractvalue { i%u, i1 } %%c, 0\n",
                     bits, bits, SCOPES[scope], acquire, acquire, bits);
        return;
    case TL_ATOM_FADD: {
        const char *t = bits == 64 ? "double" : "float";
        tl_sbuf_putf(s,
                     "  %%y = bitcast i%u %%x to %s\n"
                     "  %%f = atomicrmw fadd ptr addrspace(1) %%p, %s %%y %s%s%s, "
                     "!amdgpu.ignore.denormal.mode !{}\n"
                     "  %%r = bitcast %s %%f to i%u\n",
                     bits, t, t, SCOPES[scope], acquire, memory_of(scope), t, bits);
        return;
    }
    case TL_ATOM_ADD:
    case TL_ATOM_MIN_S:
    case TL_ATOM_MIN_U:
    case TL_ATOM_MAX_S:
    case TL_ATOM_MAX_U:
    case TL_ATOM_AND:
    case TL_ATOM_OR:
    case TL_ATOM_XOR:
    case TL_ATOM_XCHG:
        tl_sbuf_putf(s, "  %%r = atomicrmw %s ptr addrspace(1) %%p, i%u %%x %s%s%s\n", RMW[op],
                     bits, SCOPES[scope], acquire, memory_of(scope));
    }
}

/* site, address, pred, op, order, scope, value, expected */
static LLVMValueRef atomic(TlLeafCall *call)
{
    uint32_t op = tl_leaf_constant(call, 3), order = tl_leaf_constant(call, 4),
             scope = tl_leaf_constant(call, 5);
    TL_ASSERT(op <= TL_ATOM_STORE && order <= TL_ORDER_ACQ_REL && scope <= TL_SCOPE_SYSTEM,
              "atomic %u %u %u", op, order, scope);
    unsigned bits = tl_leaf_bits(call->leaf);
    LLVMValueRef *x = call->args, args[4] = {x[1], x[2], x[6], x[7]};
    char *name = tl_format(call->l->arena, "tl.atom.%u.%u.%u.%u", bits, op, order, scope);
    bool is_new;
    LLVMValueRef r = tl_leaf_helper(call, name, call->result, args, 4, &is_new);
    if (!is_new)
        return r;
    tl_sbuf_putf(
        call->prelude,
        "define i%u @%s(ptr addrspace(1) %%p, i1 %%pred, i%u %%x, i%u %%e) alwaysinline {\n"
        "  br i1 %%pred, label %%do, label %%end\n"
        "do:\n",
        bits, name, bits, bits);
    put_release(call->prelude, op, order, scope);
    put_atomic(call->prelude, (tl_atom)op, order, scope, bits);
    tl_sbuf_putf(call->prelude,
                 "  br label %%end\n"
                 "end:\n"
                 "  %%old = phi i%u [ 0, %%0 ], [ %%r, %%do ]\n"
                 "  ret i%u %%old\n"
                 "}\n",
                 bits, bits);
    return r;
}

/* ---- collectives ---- */

static const char BARRIER[] = "define void @tl.barrier() alwaysinline convergent {\n"
                              "  fence syncscope(\"workgroup\") release\n"
                              "  call void @llvm.amdgcn.s.barrier()\n"
                              "  fence syncscope(\"workgroup\") acquire\n"
                              "  ret void\n"
                              "}\n"
                              "declare void @llvm.amdgcn.s.barrier() convergent nounwind\n";

static void barrier(TlLeafCall *call)
{
    bool is_new;
    tl_leaf_helper(call, "tl.barrier", call->void_, NULL, 0, &is_new);
    if (is_new)
        tl_sbuf_puts(call->prelude, BARRIER);
}

/* A known lane's value is in a scalar register. */
static LLVMValueRef permute(TlLeafCall *call, LLVMValueRef lane, LLVMValueRef value)
{
    LLVMValueRef args[2] = {value, lane};
    if (LLVMIsAConstantInt(lane))
        return tl_leaf_intrinsic(call, "llvm.amdgcn.readlane", &call->i32, 1, args, 2);
    args[0] = LLVMBuildShl(call->b, lane, tl_leaf_i32(call, 2), "");
    args[1] = value;
    return tl_leaf_intrinsic(call, "llvm.amdgcn.ds.bpermute", NULL, 0, args, 2);
}

/* Controls of data-parallel moves. */
enum { ROW_MASK = 0x160, ROW_BCAST15 = 0x142, ROW_BCAST31 = 0x143 };

static LLVMValueRef move(TlLeafCall *call, LLVMValueRef value, uint32_t control)
{
    LLVMValueRef all = tl_leaf_i32(call, 15),
                 args[6] = {
                     LLVMGetPoison(call->i32),    value, tl_leaf_i32(call, control), all, all,
                     LLVMConstInt(call->i1, 1, 0)};
    return tl_leaf_intrinsic(call, "llvm.amdgcn.update.dpp", &call->i32, 1, args, 6);
}

/* An XOR of the lane by a mask below 16: by one within 4 lanes, and one that turns 8 or 16 around
 * or moves them by 8. RDNA has one for each. */
static LLVMValueRef move_in_row(TlLeafCall *call, LLVMValueRef value, uint32_t mask)
{
    static const struct {
        uint32_t mask, control;
    } FAR[4] = {{0, 0}, {7, 0x141}, {8, 0x128}, {15, 0x140}}; /* half mirror, ror:8, mirror */
    static const uint32_t NEAR[4] = {0, 0xb1, 0x4e, 0x1b};    /* quad_perm */
    uint32_t near = (mask ^ FAR[mask >> 2].mask) & 3;
    TL_ASSERT(mask < 16, "lane mask %u", mask);
    if (near && mask > 3 && tl_amd_generation(call->l) >= 10)
        return move(call, value, ROW_MASK + mask);
    if (mask > 3)
        value = move(call, value, FAR[mask >> 2].control);
    return near ? move(call, value, NEAR[near]) : value;
}

/* Lane i of a row of 16 gets the other row's lane i ^ mask: a digit of the selectors each. */
static LLVMValueRef other_row(TlLeafCall *call, LLVMValueRef value, uint32_t mask)
{
    LLVMValueRef no = LLVMConstInt(call->i1, 0, 0);
    uint32_t select[2] = {0, 0};
    for (uint32_t i = 0; i < 16; i++)
        select[i / 8] |= (i ^ (mask & 15)) << 4 * (i % 8);
    LLVMValueRef args[6] = {LLVMGetPoison(call->i32),     value, tl_leaf_i32(call, select[0]),
                            tl_leaf_i32(call, select[1]), no,    no};
    return tl_leaf_intrinsic(call, "llvm.amdgcn.permlanex16", &call->i32, 1, args, 6);
}

/* site, value, mask */
static LLVMValueRef shuffle_xor(TlLeafCall *call)
{
    LLVMValueRef value = call->args[1];
    uint32_t mask = tl_leaf_constant(call, 2);
    TL_ASSERT(mask < 64, "lane mask %u", mask);
    if (mask < 16)
        return move_in_row(call, value, mask);
    if (tl_amd_generation(call->l) >= 10 && mask < 32)
        return other_row(call, value, mask);
    if (mask < 32) { /* bit mode: lane' = ((lane & 31) | 0) ^ mask, within 32 lanes */
        LLVMValueRef args[2] = {value, tl_leaf_i32(call, mask << 10 | 31)};
        return tl_leaf_intrinsic(call, "llvm.amdgcn.ds.swizzle", NULL, 0, args, 2);
    }
    LLVMValueRef lane = LLVMBuildXor(call->b, special(call, TID), call->args[2], "");
    return permute(call, lane, value); /* counts lanes modulo the warp's */
}

/* site, value, n */
static LLVMValueRef shuffle_end(TlLeafCall *call)
{
    uint32_t n = tl_leaf_constant(call, 2);
    TL_ASSERT(n == 16 || n == 32, "the last of %u lanes", n);
    return move(call, call->args[1], n == 16 ? ROW_BCAST15 : ROW_BCAST31);
}

/* v_perm_b32 counts from its second operand. */
static LLVMValueRef bytes(TlLeafCall *call)
{
    LLVMValueRef args[3] = {call->args[1], call->args[0], call->args[2]};
    return tl_leaf_intrinsic(call, "llvm.amdgcn.perm", NULL, 0, args, 3);
}

static LLVMValueRef float_arg(TlLeafCall *call, unsigned i)
{
    return LLVMBuildBitCast(call->b, call->args[i], call->f32, "");
}

static LLVMValueRef bits_of(TlLeafCall *call, LLVMValueRef x)
{
    return LLVMBuildBitCast(call->b, x, call->i32, "");
}

/* For llvm.exp2, LLVM scales operands whose results v_exp_f32 would flush. */
static LLVMValueRef on_float(TlLeafCall *call, const char *name)
{
    LLVMValueRef x = float_arg(call, 0);
    return bits_of(call, tl_leaf_intrinsic(call, name, &call->f32, 1, &x, 1));
}

/* ---- arithmetic of f32 ---- */

/* Lets LLVM take what is within 2 ulp, and join a root with the division by it. */
static LLVMValueRef within_two_ulp(TlLeafCall *call, LLVMValueRef x)
{
    LLVMMetadataRef bound = LLVMValueAsMetadata(LLVMConstReal(call->f32, 2));
    if (LLVMIsAInstruction(x)) {
        LLVMSetMetadata(x, LLVMGetMDKindIDInContext(call->c, "fpmath", 6),
                        LLVMMetadataAsValue(call->c, LLVMMDNodeInContext2(call->c, &bound, 1)));
        LLVMSetFastMathFlags(x, LLVMFastMathAllowContract);
    }
    return x;
}

static LLVMValueRef divide(TlLeafCall *call, LLVMValueRef x, LLVMValueRef y)
{
    return within_two_ulp(call, LLVMBuildFDiv(call->b, x, y, ""));
}

/* The instruction, which saturates and makes 0 of NaN: LLVM says nothing of what these become, and
 * at this place makes nothing of that. (Asm would be in vector registers, also where all lanes have
 * the same.) */
static LLVMValueRef to_integer(TlLeafCall *call)
{
    enum { WORD = 32 };
    uint32_t bits = tl_leaf_constant(call, 1), how = tl_leaf_constant(call, 2);
    bool is_signed = how & TL_F2I_SIGNED;
    LLVMValueRef x = float_arg(call, 0);
    if (how & TL_F2I_NEAREST)
        x = tl_leaf_intrinsic(call, "llvm.roundeven", &call->f32, 1, &x, 1);
    if (bits == WORD)
        return is_signed ? LLVMBuildFPToSI(call->b, x, call->i32, "")
                         : LLVMBuildFPToUI(call->b, x, call->i32, "");
    uint32_t most = (1u << (bits - is_signed)) - 1;
    LLVMValueRef y[2] = {LLVMBuildFPToSI(call->b, x, call->i32, ""), tl_leaf_i32(call, most)};
    y[0] = tl_leaf_intrinsic(call, "llvm.smin", &call->i32, 1, y, 2);
    y[1] = tl_leaf_i32(call, is_signed ? ~most : 0);
    return tl_leaf_intrinsic(call, "llvm.smax", &call->i32, 1, y, 2);
}

static LLVMValueRef to_bf16(TlLeafCall *call)
{
    LLVMTypeRef bf16 = LLVMBFloatTypeInContext(call->c);
    LLVMValueRef x = LLVMBuildFPTrunc(call->b, float_arg(call, 0), bf16, "");
    return LLVMBuildBitCast(call->b, x, call->i16, "");
}

static LLVMValueRef root(TlLeafCall *call)
{
    LLVMValueRef x = float_arg(call, 0);
    return within_two_ulp(call, tl_leaf_intrinsic(call, "llvm.sqrt", &call->f32, 1, &x, 1));
}

/* v_min_f32 and v_max_f32 order zeros by their signs. */
static LLVMValueRef extreme(TlLeafCall *call, const char *name, bool nan_wins)
{
    LLVMValueRef x[2] = {float_arg(call, 0), float_arg(call, 1)},
                 y = tl_leaf_intrinsic(call, name, &call->f32, 1, x, 2);
    for (int i = 1; i >= 0 && nan_wins; i--) {
        LLVMValueRef is_nan = LLVMBuildFCmp(call->b, LLVMRealUNO, x[i], x[i], "");
        y = LLVMBuildSelect(call->b, is_nan, x[i], y, "");
    }
    return bits_of(call, y);
}

static LLVMValueRef expand(TlLeafCall *call)
{
    switch (tl_leaf_info(call->leaf)->family) {
    case TL_LEAF_FAMILY_TID: return special(call, TID);
    case TL_LEAF_FAMILY_CTAID: return special(call, CTAID);
    case TL_LEAF_FAMILY_BARRIER: barrier(call); return NULL;
    case TL_LEAF_FAMILY_SHFL_IDX: return permute(call, call->args[2], call->args[1]);
    case TL_LEAF_FAMILY_SHFL_XOR: return shuffle_xor(call);
    case TL_LEAF_FAMILY_SHFL_END: return shuffle_end(call);
    case TL_LEAF_FAMILY_MMA_SCALED:
    case TL_LEAF_FAMILY_MMA: return tl_leaf_mma_amdgpu(call);
    case TL_LEAF_FAMILY_MUL_WIDE: return tl_leaf_mul_wide(call, true);
    case TL_LEAF_FAMILY_MUL_WIDE_U: return tl_leaf_mul_wide(call, false);
    case TL_LEAF_FAMILY_BYTES: return bytes(call);
    case TL_LEAF_FAMILY_EX2: return on_float(call, "llvm.exp2");
    case TL_LEAF_FAMILY_EX2_FTZ: return on_float(call, "llvm.amdgcn.exp2");
    case TL_LEAF_FAMILY_DIV:
    case TL_LEAF_FAMILY_DIV_BIG:
        return bits_of(call, divide(call, float_arg(call, 0), float_arg(call, 1)));
    case TL_LEAF_FAMILY_RCP: return on_float(call, "llvm.amdgcn.rcp");
    case TL_LEAF_FAMILY_BF16: return to_bf16(call);
    case TL_LEAF_FAMILY_F2I: return to_integer(call);
    case TL_LEAF_FAMILY_SQRT: return bits_of(call, root(call));
    case TL_LEAF_FAMILY_RSQRT:
        return bits_of(call, divide(call, LLVMConstReal(call->f32, 1), root(call)));
    case TL_LEAF_FAMILY_MIN: return extreme(call, "llvm.minnum", false);
    case TL_LEAF_FAMILY_MAX: return extreme(call, "llvm.maxnum", false);
    case TL_LEAF_FAMILY_MIN_NAN: return extreme(call, "llvm.minnum", true);
    case TL_LEAF_FAMILY_MAX_NAN: return extreme(call, "llvm.maxnum", true);
    case TL_LEAF_FAMILY_LDG: return load_global(call);
    case TL_LEAF_FAMILY_STG: store_global(call); return NULL;
    case TL_LEAF_FAMILY_LDB: return tl_amd_load_buffer(call);
    case TL_LEAF_FAMILY_STB: tl_amd_store_buffer(call); return NULL;
    case TL_LEAF_FAMILY_LDS: return tl_leaf_load_shared(call);
    case TL_LEAF_FAMILY_LDS_T: return load_columns(call);
    case TL_LEAF_FAMILY_STS: tl_leaf_store_shared(call, store_shared_where); return NULL;
    case TL_LEAF_FAMILY_ADDS: add_shared(call); return NULL;
    case TL_LEAF_FAMILY_ATOM: return atomic(call);
    case TL_LEAF_FAMILY_CP_ASYNC:
    case TL_LEAF_FAMILY_CP_ROW: tl_amd_begin_copy(call); return NULL;
    case TL_LEAF_FAMILY_CP_ROW_NEAR: tl_amd_copy_buffer(call); return NULL;
    case TL_LEAF_FAMILY_CP_COMMIT: return NULL; /* tl_amd_count_copies has seen it */
    case TL_LEAF_FAMILY_CP_WAIT: tl_amd_await_copies(call); return NULL;
    case TL_LEAF_FAMILY_FAIL:
    case TL_LEAF_FAMILY_OUTSIDE:
    case TL_LEAF_FAMILY_PRINT:
        tl_leaf_debug(call, special(call, CTAID), special(call, TID));
        return NULL;
    case TL_LEAF_FAMILY_OF_F8:
    case TL_LEAF_FAMILY_TO_F8:
    case TL_LEAF_FAMILY_OF_F4:
    case TL_LEAF_FAMILY_TO_F4:
    case TL_LEAF_FAMILY_FMA_SAT:
    case TL_LEAF_FAMILY_CLUSTER_SIZE:
    case TL_LEAF_FAMILY_CLUSTER_RANK:
    case TL_LEAF_FAMILY_MEET:
    case TL_LEAF_FAMILY_BARRIER_OF:
    case TL_LEAF_FAMILY_TURN_TAKE:
    case TL_LEAF_FAMILY_TURN_PASS:
    case TL_LEAF_FAMILY_REGISTERS:
    case TL_LEAF_FAMILY_ELECT:
    case TL_LEAF_FAMILY_VOTE_ANY:
    case TL_LEAF_FAMILY_MBAR_INIT:
    case TL_LEAF_FAMILY_MBAR_END:
    case TL_LEAF_FAMILY_MBAR_ARRIVE:
    case TL_LEAF_FAMILY_MBAR_EXPECT:
    case TL_LEAF_FAMILY_MBAR_WAIT:
    case TL_LEAF_FAMILY_MBAR_ARRIVE_AT:
    case TL_LEAF_FAMILY_BULK:
    case TL_LEAF_FAMILY_BULK_ALL:
    case TL_LEAF_FAMILY_BULK_PAIR:
    case TL_LEAF_FAMILY_BULK_STORE:
    case TL_LEAF_FAMILY_BULK_COMMIT:
    case TL_LEAF_FAMILY_BULK_WAIT:
    case TL_LEAF_FAMILY_SHFL_SHIFT:
    case TL_LEAF_FAMILY_REDUX:
    case TL_LEAF_FAMILY_REDUX_F32:
    case TL_LEAF_FAMILY_WGMMA:
    case TL_LEAF_FAMILY_WGMMA_FENCE:
    case TL_LEAF_FAMILY_WGMMA_WAIT:
    case TL_LEAF_FAMILY_FENCE_ASYNC:
    case TL_LEAF_FAMILY_TENSOR_ALLOC:
    case TL_LEAF_FAMILY_TENSOR_FREE:
    case TL_LEAF_FAMILY_TENSOR_MMA:
    case TL_LEAF_FAMILY_TENSOR_COMMIT:
    case TL_LEAF_FAMILY_TENSOR_SCALES:
    case TL_LEAF_FAMILY_TENSOR_MMA_SCALED:
    case TL_LEAF_FAMILY_TENSOR_FENCE:
    case TL_LEAF_FAMILY_TENSOR_LD:
    case TL_LEAF_FAMILY_TENSOR_ST:
    case TL_LEAF_FAMILY_LDSM:
    case TL_LEAF_FAMILY_LDSM_T:
    case TL_LEAF_FAMILY_LDSM_8:
    case TL_LEAF_FAMILY_STSM:
    case TL_LEAF_FAMILY_STSM_T:
    case TL_LEAF_FAMILY_STSM_8:
    case TL_LEAF_FAMILY_COUNT: break;
    }
    TL_UNREACHABLE("leaf %s on AMD", tl_leaf_name(call->leaf));
}

void tl_leaf_expand_amdgpu(TlLlvm *l)
{
    tl_amd_count_copies(l);
    tl_leaf_expand_each(l, expand);
    tl_llvm_run(l, "always-inline,function(infer-address-spaces,early-cse,simplifycfg),"
                   "amdgpu-attributor");
    tl_amd_buffer_scalars(l);
    tl_amd_set_copies_apart(l);
    tl_work_around(l, TL_FAMILY_AMDGPU, TL_WHEN_EXPANDED);
}
