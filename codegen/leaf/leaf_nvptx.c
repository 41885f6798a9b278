/* Leaves in PTX: intrinsics where LLVM 19 has them, else inline asm.
 *
 * Predicated accesses are asm with the predicate as an operand of constraint `b`: no branch, and a
 * load that does not happen gives 0. An access that always happens, without cache hints, is a plain
 * load or store of LLVM. All asm has side effects, so that it stays in order; outputs are early
 * clobbers, as they are set to 0 before the operands are read. */
#include "codegen/leaf/leaf_expand.h"
#include "codegen/target/target.h"
#include "ir/ir.h"

#define TEXT(a, ...) tl_sbuf_putf(&(a)->text, __VA_ARGS__)

/* ---- loads and stores ---- */

/* How an access is split into registers: their number, 1, 2 or 4, and kind. */
typedef struct Shape {
    unsigned n;
    const char *type, *vector, *output;
} Shape;

static Shape shape_of(unsigned bits)
{
    TL_ASSERT(bits >= 8 && bits <= 128 && (bits & (bits - 1)) == 0, "an access of %u bits", bits);
    switch (bits) {
    case 8: return (Shape){1, "b8", "", "=&h"};
    case 16: return (Shape){1, "b16", "", "=&h"};
    case 32: return (Shape){1, "b32", "", "=&r"};
    case 64: return (Shape){2, "b32", ".v2", "=&r"};
    default: return (Shape){4, "b32", ".v4", "=&r"};
    }
}

/* ".cg", ".L1::evict_first": PTX has one or the other. */
static const char *hint_text(uint32_t hints)
{
    static const char *const CACHE[] = {"", ".cg", ".cs"}, *const EVICT[] = {"", ".L1::evict_first",
                                                                             ".L1::evict_last"};
    uint32_t cache = hints & 3, evict = hints >> 2;
    TL_ASSERT(cache <= TL_CACHE_STREAM && evict <= TL_EVICT_LAST, "hints %u", hints);
    return evict != TL_EVICT_NORMAL ? EVICT[evict] : CACHE[cache];
}

static void put_registers(TlLeafAsm *a, unsigned n, unsigned first)
{
    if (n > 1)
        tl_leaf_asm_list(a, first, n);
    else
        TEXT(a, "$%u", first);
}

/* The outputs of an asm as the leaf's result. */
static LLVMValueRef gather(TlLeafCall *call, const Shape *s, LLVMValueRef x)
{
    if (s->n == 1)
        return LLVMTypeOf(x) == call->result ? x : LLVMBuildTrunc(call->b, x, call->result, "");
    LLVMValueRef v = LLVMGetPoison(call->result);
    for (unsigned i = 0; i < s->n; i++)
        v = LLVMBuildInsertElement(call->b, v, LLVMBuildExtractValue(call->b, x, i, ""),
                                   tl_leaf_i32(call, i), "");
    return v;
}

static LLVMTypeRef output_type(TlLeafCall *call, const Shape *s)
{
    LLVMTypeRef each = s->output[2] == 'h' ? call->i16 : call->i32;
    LLVMTypeRef all[4] = {each, each, each, each};
    return s->n == 1 ? each : LLVMStructTypeInContext(call->c, all, s->n, 0);
}

/* site, address, pred, hints, fill */
static LLVMValueRef load_global(TlLeafCall *call)
{
    LLVMValueRef pred = call->args[2];
    uint32_t hints = tl_leaf_constant(call, 3), any = TL_HINT_ANY_FILL;
    const char *hint = hint_text(hints & ~any);
    bool always = tl_leaf_is_true(pred);
    if (tl_leaf_is_false(pred))
        return tl_leaf_fill(call, call->result);
    if (always && !*hint)
        return tl_leaf_load(call, call->args[1]);
    unsigned bits = tl_leaf_bits(call->leaf);
    uint32_t fill = tl_leaf_constant(call, 4) & (bits < 32 ? (1u << bits) - 1 : UINT32_MAX);
    Shape s = shape_of(bits);
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, s.n, s.output);
    TEXT(&a, "{ ");
    for (unsigned i = 0; i < s.n && !always && !(hints & any); i++)
        TEXT(&a, "mov.b%u $%u, %u; ", bits < 32 ? 16u : 32u, i, (unsigned)fill);
    unsigned address = tl_leaf_asm_operand(&a, call->args[1]);
    if (!always)
        TEXT(&a, "@$%u ", tl_leaf_asm_operand(&a, pred));
    TEXT(&a, "ld.global%s%s.%s ", hint, s.vector, s.type);
    put_registers(&a, s.n, 0);
    TEXT(&a, ", [$%u]; }", address);
    return gather(call, &s, tl_leaf_asm_end(&a, output_type(call, &s), TL_LEAF_ORDERED));
}

/* A store by asm, to `space`. */
static void store_asm(TlLeafCall *call, const char *space, const char *hint, LLVMValueRef address,
                      LLVMValueRef pred, LLVMValueRef value)
{
    Shape s = shape_of(tl_leaf_bits(call->leaf));
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_operand(&a, address);
    if (LLVMTypeOf(value) == call->i8)
        value = LLVMBuildZExt(call->b, value, call->i16, "");
    for (unsigned i = 0; i < s.n; i++)
        tl_leaf_asm_operand(
            &a,
            s.n > 1 ? LLVMBuildExtractElement(call->b, value, tl_leaf_i32(call, i), "") : value);
    if (!tl_leaf_is_true(pred))
        TEXT(&a, "@$%u ", tl_leaf_asm_operand(&a, pred));
    TEXT(&a, "st.%s%s%s.%s [$0], ", space, hint, s.vector, s.type);
    put_registers(&a, s.n, 1);
    TEXT(&a, ";");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_ORDERED);
}

/* site, address, pred, hints, value */
static void store_global(TlLeafCall *call)
{
    const char *hint = hint_text(tl_leaf_constant(call, 3));
    LLVMValueRef *x = call->args;
    if (tl_leaf_is_false(x[2]))
        return;
    if (tl_leaf_is_true(x[2]) && !*hint)
        tl_leaf_store(call, x[1], x[4]);
    else
        store_asm(call, "global", hint, x[1], x[2], x[4]);
}

static void store_shared_where(TlLeafCall *call, LLVMValueRef address, LLVMValueRef pred,
                               LLVMValueRef value)
{
    store_asm(call, "shared", "", address, pred, value);
}

/* site, offset, pred, value */
static void add_shared(TlLeafCall *call)
{
    LLVMValueRef *x = call->args;
    if (tl_leaf_is_false(x[2]))
        return;
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_operand(&a, tl_leaf_shared(call, x[1]));
    tl_leaf_asm_operand(&a, x[3]);
    if (!tl_leaf_is_true(x[2]))
        TEXT(&a, "@$%u ", tl_leaf_asm_operand(&a, x[2]));
    TEXT(&a, "red.relaxed.cta.shared.add.u32 [$0], $1;");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_ORDERED);
}

/* ---- asynchronous copies, loads of a warp ---- */

/* site, pred, slot, offset, address, inside. In the asm: $0 to, $1 from, then the flag to read
 * nothing and write zeros, then pred. Rows of 16 bytes bypass the first-level cache. */
static void copy_async(TlLeafCall *call)
{
    unsigned bytes = tl_leaf_info(call->leaf)->size;
    LLVMValueRef pred = call->args[1], inside = call->args[5];
    bool reads = tl_leaf_is_true(inside);
    TlLeafAsm a = tl_leaf_asm_begin(call);
    if (tl_leaf_is_false(pred))
        return;
    tl_leaf_asm_operand(&a, tl_leaf_shared_slot(call, call->args[2], call->args[3]));
    tl_leaf_asm_operand(&a, call->args[4]);
    if (!reads)
        tl_leaf_asm_operand(&a, LLVMBuildNot(call->b, inside, ""));
    if (!tl_leaf_is_true(pred))
        TEXT(&a, "@$%u ", tl_leaf_asm_operand(&a, pred));
    TEXT(&a, "cp.async.%s.shared.global [$0], [$1], %u%s;", bytes == 16 ? "cg" : "ca", bytes,
         reads ? "" : ", $2");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_ORDERED);
}

/* site, slot, offset */
static LLVMValueRef load_matrices(TlLeafCall *call, const char *trans)
{
    unsigned n = tl_leaf_info(call->leaf)->size;
    TL_ASSERT(n == 1 || n == 2 || n == 4, "%u matrices", n);
    LLVMValueRef address = tl_leaf_shared_slot(call, call->args[1], call->args[2]);
    LLVMTypeRef type = LLVMTypeOf(address);
    char *name =
        tl_format(call->l->arena, "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x%u%s.b16", n, trans);
    LLVMValueRef x = tl_leaf_intrinsic(call, name, &type, 1, &address, 1);
    Shape s = {.n = n};
    return gather(call, &s, x);
}

/* site, slot, offset: bytes, transposed */
static LLVMValueRef load_bytes(TlLeafCall *call)
{
    unsigned n = tl_leaf_info(call->leaf)->size;
    Shape s = {.n = 2 * n, .output = "=r"};
    LLVMValueRef p = tl_leaf_shared_slot(call, call->args[1], call->args[2]);
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, s.n, s.output);
    unsigned at = tl_leaf_asm_operand(&a, LLVMBuildPtrToInt(call->b, p, call->i32, ""));
    TEXT(&a, "ldmatrix.sync.aligned.m16n16.x%u.trans.shared.b8 ", n);
    put_registers(&a, s.n, 0);
    TEXT(&a, ", [$%u];", at);
    return gather(call, &s, tl_leaf_asm_end(&a, output_type(call, &s), TL_LEAF_CONVERGENT));
}

static void wait_async(TlLeafCall *call)
{
    LLVMValueRef pending = tl_leaf_i32(call, tl_leaf_constant(call, 1));
    tl_leaf_intrinsic(call, "llvm.nvvm.cp.async.wait.group", NULL, 0, &pending, 1);
}

/* ---- barriers that count, bulk copies ---- */

/* The 32-bit address of a byte of shared memory. The constant part comes first: in a loop, that sum
 * does not change. */
static LLVMValueRef shared_address(TlLeafCall *call, LLVMValueRef offset)
{
    LLVMValueRef none = tl_leaf_i32(call, 0), part = none;
    if (LLVMIsAInstruction(offset) && LLVMGetInstructionOpcode(offset) == LLVMAdd &&
        LLVMIsAConstantInt(LLVMGetOperand(offset, 1))) {
        part = LLVMGetOperand(offset, 0);
        offset = LLVMGetOperand(offset, 1);
    }
    LLVMValueRef p = tl_leaf_shared_slot(call, offset, none);
    return LLVMBuildAdd(call->b, LLVMBuildPtrToInt(call->b, p, call->i32, ""), part, "");
}

/* An instruction of the warp. `operands`: those of the leaf, by number; after `s`, as the address
 * of that byte of shared memory. */
static void instruct(TlLeafCall *call, const char *operands, const char *text)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    for (; *operands; operands++) {
        bool is_shared = *operands == 's';
        operands += is_shared;
        LLVMValueRef x = call->args[*operands - '0'];
        tl_leaf_asm_operand(&a, is_shared ? shared_address(call, x) : x);
    }
    tl_sbuf_puts(&a.text, text);
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_CONVERGENT);
}

/* The leaf's operands from number `first` on, as a list. */
static void put_operands(TlLeafAsm *a, unsigned first, unsigned n)
{
    unsigned number = a->nresults + a->nargs;
    for (unsigned i = 0; i < n; i++)
        tl_leaf_asm_operand(a, a->call->args[first + i]);
    tl_leaf_asm_list(a, number, n);
}

/* site, slot, offset, words; tail: what the instruction says behind how many */
static void store_matrices(TlLeafCall *call, const char *shape, const char *tail)
{
    unsigned n = tl_leaf_info(call->leaf)->size;
    LLVMValueRef p = tl_leaf_shared_slot(call, call->args[1], call->args[2]);
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_operand(&a, LLVMBuildPtrToInt(call->b, p, call->i32, ""));
    TEXT(&a, "stmatrix.sync.aligned.%s.x%u%s [$0], ", shape, n, tail);
    put_operands(&a, 3, n);
    TEXT(&a, ";");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_CONVERGENT);
}

/* site, number, threads */
static void barrier_of(TlLeafCall *call, const char *how)
{
    instruct(call, "",
             tl_format(call->l->arena, "bar.%s %u, %u;", how, tl_leaf_constant(call, 1),
                       tl_leaf_constant(call, 2)));
}

/* site, n, more */
static void set_registers(TlLeafCall *call)
{
    instruct(call, "",
             tl_format(call->l->arena, "setmaxnreg.%s.sync.aligned.u32 %u;",
                       tl_leaf_constant(call, 2) ? "inc" : "dec", tl_leaf_constant(call, 1)));
}

static LLVMValueRef elect(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, "=r");
    TEXT(&a, "{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 $0, 1, 0, p; }");
    LLVMValueRef x = tl_leaf_asm_end(&a, call->i32, TL_LEAF_CONVERGENT);
    return LLVMBuildICmp(call->b, LLVMIntNE, x, tl_leaf_i32(call, 0), "");
}

static LLVMValueRef vote_any(TlLeafCall *call)
{
    enum { IS = 1 };
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, "=r");
    tl_leaf_asm_operand(&a, LLVMBuildZExt(call->b, call->args[IS], call->i32, ""));
    TEXT(&a, "{ .reg .pred p; setp.ne.u32 p, $1, 0; vote.sync.any.pred p, p, 0xffffffff; "
             "selp.u32 $0, 1, 0, p; }");
    LLVMValueRef x = tl_leaf_asm_end(&a, call->i32, TL_LEAF_CONVERGENT);
    return LLVMBuildICmp(call->b, LLVMIntNE, x, tl_leaf_i32(call, 0), "");
}

/* Of barriers that count: site, pred, offset, then a count or bytes or a rank; of a wait: site,
 * offset, parity. */
static const char MBAR_INIT[] = "@$0 mbarrier.init.shared::cta.b64 [$1], $2; "
                                "@$0 fence.mbarrier_init.release.cluster;",
                  MBAR_END[] = "@$0 mbarrier.inval.shared::cta.b64 [$1];",
                  MBAR_EXPECT[] = "@$0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [$1], $2;",
                  MBAR_ARRIVE[] = "@$0 mbarrier.arrive.shared::cta.b64 _, [$1];",
                  MBAR_WAIT[] =
                      "{ .reg .pred p; W${:uid}: "
                      "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1; @!p bra W${:uid}; }";
/* Without `.release.cluster`, which is a fence of all memory: what has to be over before others
 * write is products that the warp has awaited, and no access of its own. */
static const char MBAR_ARRIVE_AT[] = "{ .reg .b32 a; @$0 mapa.shared::cluster.u32 a, $1, $2; "
                                     "@$0 mbarrier.arrive.shared::cluster.b64 _, [a]; }",
                  MEET[] = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;";

/* Where a copy for this program alone goes: to an address of the cluster, of which ptxas for sm_120
 * tests that it is the program's own, with a call of what reports it; or, from PTX 8.6 on, which
 * targets have that LLVM does not know, to one of the block. */
static const char *own_memory(const TlLeafCall *call)
{
    bool emulate;
    const TlLlvm *l = call->l;
    return *tl_target_find(l->gpu ? l->gpu : l->cpu, &emulate)->ptx ? "cta" : "cluster";
}

/* Of a copy from memory: $0 where it is done, $1 to, $2 the map, $3 the barrier. */
static TlLeafAsm begin_bulk(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_operand(&a, call->args[1]);
    LLVMValueRef to = shared_address(call, call->args[3]),
                 barrier = shared_address(call, call->args[4]);
    tl_leaf_asm_operand(&a, to);
    tl_leaf_asm_operand(&a, call->args[2]);
    tl_leaf_asm_operand(&a, barrier);
    return a;
}

/* As copy_bulk; the barrier is that of the pair's first program: addresses of the cluster have the
 * program's rank from bit 24 on. */
static void copy_bulk_pair(TlLeafCall *call)
{
    enum { FIXED = 5 };
    unsigned rank = tl_leaf_info(call->leaf)->size;
    TlLeafAsm a = begin_bulk(call);
    TEXT(&a,
         "{ .reg .b32 first; and.b32 first, $3, 0xfeffffff; "
         "@$0 cp.async.bulk.tensor.%ud.cta_group::2.shared::cluster.global.tile"
         ".mbarrier::complete_tx::bytes [$1], [$2, ",
         rank);
    put_operands(&a, FIXED, rank);
    TEXT(&a, "], [first]; }");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_CONVERGENT);
}

/* site, pred, map, offset, barrier, programs if it is for several, coordinates */
static void copy_bulk(TlLeafCall *call, bool all)
{
    enum { FIXED = 5 };
    unsigned rank = tl_leaf_info(call->leaf)->size;
    TlLeafAsm a = begin_bulk(call);
    TEXT(&a,
         "@$0 cp.async.bulk.tensor.%ud.shared::%s.global.tile"
         ".mbarrier::complete_tx::bytes%s [$1], [$2, ",
         rank, all ? "cluster" : own_memory(call), all ? ".multicast::cluster" : "");
    put_operands(&a, FIXED + all, rank);
    TEXT(&a, "], [$3]");
    if (all)
        TEXT(&a, ", $%u",
             tl_leaf_asm_operand(&a, LLVMBuildTrunc(call->b, call->args[FIXED], call->i16, "")));
    TEXT(&a, ";");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_CONVERGENT);
}

/* site, pred, map, offset, coordinates */
static void store_bulk(TlLeafCall *call)
{
    unsigned rank = tl_leaf_info(call->leaf)->size;
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_operand(&a, call->args[1]);
    tl_leaf_asm_operand(&a, shared_address(call, call->args[3]));
    tl_leaf_asm_operand(&a, call->args[2]);
    TEXT(&a, "@$0 cp.async.bulk.tensor.%ud.global.shared::cta.tile.bulk_group [$2, ", rank);
    put_operands(&a, 4, rank);
    TEXT(&a, "], [$1];");
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_CONVERGENT);
}

/* site, n, written */
static void wait_bulk(TlLeafCall *call)
{
    instruct(call, "",
             tl_format(call->l->arena, "cp.async.bulk.wait_group%s %u;",
                       tl_leaf_constant(call, 2) ? "" : ".read", tl_leaf_constant(call, 1)));
}

/* ---- atomics ---- */

static const char *const SCOPES[] = {
    [TL_SCOPE_BLOCK] = "cta", [TL_SCOPE_DEVICE] = "gpu", [TL_SCOPE_SYSTEM] = "sys"};
static const char *const ORDERS[] = {[TL_ORDER_RELAXED] = "relaxed",
                                     [TL_ORDER_ACQUIRE] = "acquire",
                                     [TL_ORDER_RELEASE] = "release",
                                     [TL_ORDER_ACQ_REL] = "acq_rel"};

static const char *const ATOMS[] = {
    [TL_ATOM_ADD] = "add.u",   [TL_ATOM_MIN_S] = "min.s", [TL_ATOM_MIN_U] = "min.u",
    [TL_ATOM_MAX_S] = "max.s", [TL_ATOM_MAX_U] = "max.u", [TL_ATOM_AND] = "and.b",
    [TL_ATOM_OR] = "or.b",     [TL_ATOM_XOR] = "xor.b",   [TL_ATOM_XCHG] = "exch.b",
    [TL_ATOM_CAS] = "cas.b",   [TL_ATOM_FADD] = "add.f",  [TL_ATOM_LOAD] = NULL,
    [TL_ATOM_STORE] = NULL};

/* Loads acquire or not, stores release or not. */
static const char *access_order(uint32_t order, bool load)
{
    bool strong = order == TL_ORDER_ACQ_REL ||
                  order == (load ? (uint32_t)TL_ORDER_ACQUIRE : (uint32_t)TL_ORDER_RELEASE);
    return !strong ? "relaxed" : load ? "acquire" : "release";
}

/* A compare-and-swap of a byte, by those of the two bytes that it lies in: as often as the other
 * one has changed meanwhile. */
static LLVMValueRef swap_byte(TlLeafCall *call, uint32_t order, uint32_t scope)
{
    LLVMValueRef *x = call->args, args[4] = {x[1], x[2], x[6], x[7]};
    char *name = tl_format(call->l->arena, "tl.cas.8.%s.%s", ORDERS[order], SCOPES[scope]);
    bool is_new;
    LLVMValueRef r = tl_leaf_helper(call, name, call->result, args, 4, &is_new);
    if (!is_new)
        return r;
    tl_sbuf_putf(call->prelude,
                 "define i8 @%s(ptr addrspace(1) %%p, i1 %%pred, i8 %%x, i8 %%e) alwaysinline {\n"
                 "  br i1 %%pred, label %%first, label %%end\n"
                 "first:\n"
                 "  %%byte = ptrtoint ptr addrspace(1) %%p to i64\n"
                 "  %%at = and i64 %%byte, -2\n"
                 "  %%odd = trunc i64 %%byte to i16\n"
                 "  %%eighth = and i16 %%odd, 1\n"
                 "  %%by = shl i16 %%eighth, 3\n"
                 "  %%mask = shl i16 255, %%by\n"
                 "  %%others = xor i16 %%mask, -1\n"
                 "  %%wide.x = zext i8 %%x to i16\n"
                 "  %%wide.e = zext i8 %%e to i16\n"
                 "  %%desired = shl i16 %%wide.x, %%by\n"
                 "  %%expected = shl i16 %%wide.e, %%by\n",
                 name);
    tl_sbuf_putf(call->prelude,
                 "  %%seen = call i16 asm sideeffect \"ld.%s.%s.global.b16 $0, [$1];\", "
                 "\"=h,l,~{memory}\"(i64 %%at)\n"
                 "  br label %%again\n"
                 "again:\n"
                 "  %%old = phi i16 [ %%seen, %%first ], [ %%now, %%swap ]\n"
                 "  %%mine = and i16 %%old, %%mask\n"
                 "  %%same = icmp eq i16 %%mine, %%expected\n"
                 "  br i1 %%same, label %%swap, label %%done\n"
                 "swap:\n"
                 "  %%kept = and i16 %%old, %%others\n"
                 "  %%new = or i16 %%kept, %%desired\n"
                 "  %%now = call i16 asm sideeffect \"atom.%s.%s.global.cas.b16 $0, [$1], $2, $3;\""
                 ", \"=h,l,h,h,~{memory}\"(i64 %%at, i16 %%old, i16 %%new)\n"
                 "  %%swapped = icmp eq i16 %%now, %%old\n"
                 "  br i1 %%swapped, label %%done, label %%again\n",
                 access_order(order, true), SCOPES[scope], ORDERS[order], SCOPES[scope]);
    tl_sbuf_puts(call->prelude,
                 "done:\n"
                 "  %last = lshr i16 %old, %by\n"
                 "  %r = trunc i16 %last to i8\n"
                 "  br label %end\n"
                 "end:\n"
                 "  %result = phi i8 [ 0, %0 ], [ %r, %done ]\n"
                 "  ret i8 %result\n"
                 "}\n");
    return r;
}

/* A byte, by a register of 16 bits, which is what PTX has for it. */
static LLVMValueRef move_byte(TlLeafCall *call, uint32_t op, uint32_t order, uint32_t scope)
{
    TL_ASSERT(op == TL_ATOM_LOAD || op == TL_ATOM_STORE, "atomic %u of a byte", op);
    bool load = op == TL_ATOM_LOAD;
    TlLeafAsm a = tl_leaf_asm_begin(call);
    if (load) {
        tl_leaf_asm_results(&a, 1, "=&h");
        tl_leaf_asm_operand(&a, call->args[1]);
        tl_leaf_asm_operand(&a, call->args[2]);
        TEXT(&a, "{ mov.b16 $0, 0; @$2 ld.%s.%s.global.b8 $0, [$1]; }", access_order(order, true),
             SCOPES[scope]);
        LLVMValueRef r = tl_leaf_asm_end(&a, call->i16, TL_LEAF_ORDERED);
        return LLVMBuildTrunc(call->b, r, call->i8, "");
    }
    tl_leaf_asm_operand(&a, call->args[1]);
    tl_leaf_asm_operand(&a, call->args[2]);
    tl_leaf_asm_operand(&a, LLVMBuildZExt(call->b, call->args[6], call->i16, ""));
    TEXT(&a, "@$1 st.%s.%s.global.b8 [$0], $2;", access_order(order, false), SCOPES[scope]);
    tl_leaf_asm_end(&a, call->void_, TL_LEAF_ORDERED);
    return LLVMConstNull(call->i8);
}

/* site, address, pred, op, order, scope, value, expected. In the asm: $0 result, $1 address, $2
 * value, $3 expected, $4 pred. */
static LLVMValueRef atomic(TlLeafCall *call)
{
    uint32_t op = tl_leaf_constant(call, 3), order = tl_leaf_constant(call, 4),
             scope = tl_leaf_constant(call, 5);
    TL_ASSERT(op <= TL_ATOM_STORE && order <= TL_ORDER_ACQ_REL && scope <= TL_SCOPE_SYSTEM,
              "atomic %u %u %u", op, order, scope);
    unsigned bits = tl_leaf_bits(call->leaf);
    LLVMValueRef *x = call->args;
    if (tl_leaf_is_false(x[2]))
        return LLVMConstNull(call->result);
    if (bits == 8)
        return op == TL_ATOM_CAS ? swap_byte(call, order, scope)
                                 : move_byte(call, op, order, scope);
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, bits == 64 ? "=&l" : bits == 32 ? "=&r" : "=&h");
    tl_leaf_asm_operand(&a, x[1]);
    tl_leaf_asm_operand(&a, x[6]);
    tl_leaf_asm_operand(&a, x[7]);
    tl_leaf_asm_operand(&a, x[2]);
    TEXT(&a, "{ mov.b%u $0, 0; @$4 ", bits);
    if (op == TL_ATOM_LOAD)
        TEXT(&a, "ld.%s.%s.global.b%u $0, [$1]; }", access_order(order, true), SCOPES[scope], bits);
    else if (op == TL_ATOM_STORE)
        TEXT(&a, "st.%s.%s.global.b%u [$1], $2; }", access_order(order, false), SCOPES[scope],
             bits);
    else
        TEXT(&a, "atom.%s.%s.global.%s%u $0, [$1], %s$2; }", ORDERS[order], SCOPES[scope],
             ATOMS[op], bits, op == TL_ATOM_CAS ? "$3, " : "");
    return tl_leaf_asm_end(&a, call->result, TL_LEAF_ORDERED);
}

/* ---- collectives, indices ---- */

static LLVMValueRef special(TlLeafCall *call, const char *name)
{
    return tl_leaf_intrinsic(call, name, NULL, 0, NULL, 0);
}

/* All 32 lanes take part; lanes count modulo 32. */
static LLVMValueRef shuffle(TlLeafCall *call, const char *name)
{
    LLVMValueRef args[4] = {tl_leaf_i32(call, UINT32_MAX), call->args[1], call->args[2],
                            tl_leaf_i32(call, 31)};
    return tl_leaf_intrinsic(call, name, NULL, 0, args, 4);
}

static LLVMValueRef redux(TlLeafCall *call)
{
    static const char *const NAMES[] = {
        [TL_REDUX_ADD] = "llvm.nvvm.redux.sync.add",
        [TL_REDUX_MIN] = "llvm.nvvm.redux.sync.min",
        [TL_REDUX_MAX] = "llvm.nvvm.redux.sync.max",
        [TL_REDUX_UMIN] = "llvm.nvvm.redux.sync.umin",
        [TL_REDUX_UMAX] = "llvm.nvvm.redux.sync.umax",
        [TL_REDUX_AND] = "llvm.nvvm.redux.sync.and",
        [TL_REDUX_OR] = "llvm.nvvm.redux.sync.or",
        [TL_REDUX_XOR] = "llvm.nvvm.redux.sync.xor"};
    LLVMValueRef args[2] = {call->args[1], tl_leaf_i32(call, UINT32_MAX)};
    return tl_leaf_intrinsic(call, NAMES[tl_leaf_constant(call, 2)], NULL, 0, args, 2);
}

static LLVMValueRef redux_f32(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, "=f");
    unsigned x = tl_leaf_asm_operand(&a, LLVMBuildBitCast(call->b, call->args[1], call->f32, ""));
    TEXT(&a, "redux.sync.%s.f32 $0, $%u, 0xffffffff;",
         tl_leaf_constant(call, 2) == TL_REDUX_MIN ? "min" : "max", x);
    return LLVMBuildBitCast(call->b, tl_leaf_asm_end(&a, call->f32, TL_LEAF_CONVERGENT), call->i32,
                            "");
}

/* site, value, n, lanes. The bits above the lanes of a group are the segment's, in which lanes
 * count; the low ones are the last lane, or, up, the first. */
static LLVMValueRef shift(TlLeafCall *call)
{
    int32_t n = (int32_t)tl_leaf_constant(call, 2);
    enum { WARP = 32 };
    uint32_t segment = (WARP - tl_leaf_constant(call, 3)) << 8;
    bool up = n >= 0;
    LLVMValueRef args[4] = {tl_leaf_i32(call, UINT32_MAX), call->args[1],
                            tl_leaf_i32(call, (uint32_t)(up ? n : -n)),
                            tl_leaf_i32(call, segment | (up ? 0 : WARP - 1))};
    LLVMValueRef x = tl_leaf_intrinsic(
        call, up ? "llvm.nvvm.shfl.sync.up.i32p" : "llvm.nvvm.shfl.sync.down.i32p", NULL, 0, args,
        4);
    LLVMValueRef there = LLVMBuildExtractValue(call->b, x, 1, "");
    LLVMValueRef both = LLVMGetPoison(LLVMVectorType(call->i32, 2));
    x = LLVMBuildExtractValue(call->b, x, 0, "");
    there = LLVMBuildZExt(call->b, there, call->i32, "");
    both = LLVMBuildInsertElement(call->b, both, x, tl_leaf_i32(call, 0), "");
    return LLVMBuildInsertElement(call->b, both, there, tl_leaf_i32(call, 1), "");
}

static LLVMValueRef float_of(TlLeafCall *call, unsigned i)
{
    return LLVMBuildBitCast(call->b, call->args[i], call->f32, "");
}

/* An intrinsic on the float that the operand's bits are. */
static LLVMValueRef on_float(TlLeafCall *call, const char *name)
{
    LLVMValueRef x = float_of(call, 0);
    x = tl_leaf_intrinsic(call, name, NULL, 0, &x, 1);
    return LLVMBuildBitCast(call->b, x, call->i32, "");
}

/* An instruction on the floats that the leaf's first n operands' bits are. */
static LLVMValueRef of_floats(TlLeafCall *call, const char *text, unsigned n, LLVMTypeRef result,
                              const char *constraint)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, constraint);
    for (unsigned i = 0; i < n; i++)
        tl_leaf_asm_operand(&a, float_of(call, i));
    tl_sbuf_puts(&a.text, text);
    return tl_leaf_asm_end(&a, result, TL_LEAF_PURE);
}

/* One that gives a float. */
static LLVMValueRef asm_on_floats(TlLeafCall *call, const char *text)
{
    LLVMValueRef x = of_floats(call, text, call->nargs, call->f32, "=f");
    return LLVMBuildBitCast(call->b, x, call->i32, "");
}

/* Of two halves of a word, ptxas makes one instruction. */
static LLVMValueRef to_bf16(TlLeafCall *call)
{
    return of_floats(call, "cvt.rn.bf16.f32 $0, $1;", 1, call->i16, "=h");
}

/* Two of f8; the instruction's first operand is the upper one. NaN and what is too great it treats
 * as the leaf's definition says, also below. */
static LLVMValueRef to_f8(TlLeafCall *call)
{
    char *text = tl_format(call->l->arena, "cvt.rn.satfinite.%sx2.f32 $0, $2, $1;",
                           tl_leaf_ptx_type((TlDtype)tl_leaf_constant(call, 2)));
    return of_floats(call, text, 2, call->i16, "=h");
}

static LLVMValueRef of_f8(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, "=r");
    tl_leaf_asm_operand(&a, LLVMBuildTrunc(call->b, call->args[0], call->i16, ""));
    tl_sbuf_putf(&a.text, "cvt.rn.f16x2.%sx2 $0, $1;",
                 tl_leaf_ptx_type((TlDtype)tl_leaf_constant(call, 1)));
    return tl_leaf_asm_end(&a, call->i32, TL_LEAF_PURE);
}

/* There is no register of 8 bits outside of the asm. */
static LLVMValueRef to_f4(TlLeafCall *call)
{
    LLVMValueRef x = of_floats(
        call, "{ .reg .b8 x; cvt.rn.satfinite.e2m1x2.f32 x, $2, $1; cvt.u32.u8 $0, x; }", 2,
        call->i32, "=r");
    return LLVMBuildTrunc(call->b, x, LLVMInt8TypeInContext(call->c), "");
}

static LLVMValueRef of_f4(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, 1, "=r");
    tl_leaf_asm_operand(&a, call->args[0]);
    tl_sbuf_puts(&a.text, "{ .reg .b8 x; cvt.u8.u32 x, $1; cvt.rn.f16x2.e2m1x2 $0, x; }");
    return tl_leaf_asm_end(&a, call->i32, TL_LEAF_PURE);
}

/* What is out of range, and NaN, the instruction treats as the leaf's definition says. */
static LLVMValueRef to_integer(TlLeafCall *call)
{
    uint32_t how = tl_leaf_constant(call, 2);
    char *text = tl_format(call->l->arena, "cvt.%s.%c%u.f32 $0, $1;",
                           how & TL_F2I_NEAREST ? "rni" : "rzi", how & TL_F2I_SIGNED ? 's' : 'u',
                           (unsigned)tl_leaf_constant(call, 1));
    return of_floats(call, text, 1, call->i32, "=r");
}

/* x / y = x s * (1 / (y s)) with a power of two s about the root of 1 / |y|: y s is between 2^-86
 * and 2^64, whatever y is, and x s overflows only where the quotient does, as s |y| <= 1 for
 * |y| < 1 and >= 1 for others. With a divisor's exponent E, that of s is 190 - E / 2: with the bits
 * of E but the last turned, half of them and a constant, which ptxas adds in one instruction.
 * As div.full.f32 scales by powers of two, too, this has the same bits but for what becomes
 * subnormal on the way; that takes 8 instructions for 6, and four of them change operands where
 * they are, for which ptxas needs them defined. */
static LLVMValueRef divide(TlLeafCall *call)
{
    enum { ONE = 0x3f800000, EXPONENT = 0x7f000000, LEAST = 0x1f800000 };
    LLVMValueRef x = call->args[0], y = call->args[1];
    if (LLVMIsAConstantInt(x) && LLVMConstIntGetZExtValue(x) == ONE) {
        call->args[0] = y;
        call->nargs = 1;
        return asm_on_floats(call, "rcp.approx.f32 $0, $1;");
    }
    LLVMValueRef s = LLVMBuildXor(call->b, y, tl_leaf_i32(call, EXPONENT), "");
    s = LLVMBuildAnd(call->b, s, tl_leaf_i32(call, EXPONENT), "");
    s = LLVMBuildLShr(call->b, s, tl_leaf_i32(call, 1), "");
    s = LLVMBuildAdd(call->b, s, tl_leaf_i32(call, LEAST), "");
    s = LLVMBuildBitCast(call->b, s, call->f32, "");
    x = LLVMBuildFMul(call->b, float_of(call, 0), s, "");
    y = LLVMBuildFMul(call->b, float_of(call, 1), s, "");
    call->args[0] = LLVMBuildBitCast(call->b, y, call->i32, "");
    call->nargs = 1;
    y = of_floats(call, "rcp.approx.ftz.f32 $0, $1;", 1, call->f32, "=f");
    return LLVMBuildBitCast(call->b, LLVMBuildFMul(call->b, x, y, ""), call->i32, "");
}

/* What ptxas makes of div.full.f32, without what that does for divisors below 2^-126: 5. */
static const char DIVIDE_BY_BIG[] = "{ .reg .pred p; .reg .f32 x, y; abs.f32 y, $2; "
                                    "setp.gt.f32 p, y, 0f7E800000; mov.f32 x, $1; mov.f32 y, $2; "
                                    "@p mul.f32 x, x, 0f3E800000; @p mul.f32 y, y, 0f3E800000; "
                                    "rcp.approx.ftz.f32 y, y; mul.f32 $0, y, x; }";

/* prmt has a selector of 4 bits for each byte. */
static LLVMValueRef bytes(TlLeafCall *call)
{
    LLVMValueRef from = call->args[2], all = tl_leaf_i32(call, 0);
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef one = LLVMBuildAnd(call->b, from, tl_leaf_i32(call, 7u << 8 * i), "");
        one = LLVMBuildLShr(call->b, one, tl_leaf_i32(call, 4 * i), "");
        all = LLVMBuildOr(call->b, all, one, "");
    }
    LLVMValueRef args[3] = {call->args[0], call->args[1], all};
    return tl_leaf_intrinsic(call, "llvm.nvvm.prmt", NULL, 0, args, 3);
}

static const char TID[] = "llvm.nvvm.read.ptx.sreg.tid.x",
                  CTAID[] = "llvm.nvvm.read.ptx.sreg.ctaid.x",
                  CLUSTER_SIZE[] = "llvm.nvvm.read.ptx.sreg.cluster.nctarank",
                  CLUSTER_RANK[] = "llvm.nvvm.read.ptx.sreg.cluster.ctarank";

static LLVMValueRef expand(TlLeafCall *call)
{
    switch (tl_leaf_info(call->leaf)->family) {
    case TL_LEAF_FAMILY_TID: return special(call, TID);
    case TL_LEAF_FAMILY_CTAID: return special(call, CTAID);
    case TL_LEAF_FAMILY_CLUSTER_SIZE: return special(call, CLUSTER_SIZE);
    case TL_LEAF_FAMILY_CLUSTER_RANK: return special(call, CLUSTER_RANK);
    case TL_LEAF_FAMILY_MEET: instruct(call, "", MEET); return NULL;
    case TL_LEAF_FAMILY_BARRIER: special(call, "llvm.nvvm.barrier0"); return NULL;
    case TL_LEAF_FAMILY_SHFL_IDX: return shuffle(call, "llvm.nvvm.shfl.sync.idx.i32");
    case TL_LEAF_FAMILY_SHFL_XOR: return shuffle(call, "llvm.nvvm.shfl.sync.bfly.i32");
    case TL_LEAF_FAMILY_SHFL_SHIFT: return shift(call);
    case TL_LEAF_FAMILY_REDUX: return redux(call);
    case TL_LEAF_FAMILY_REDUX_F32: return redux_f32(call);
    case TL_LEAF_FAMILY_MMA_SCALED:
    case TL_LEAF_FAMILY_MMA: return tl_leaf_mma_nvptx(call);
    case TL_LEAF_FAMILY_MUL_WIDE: return tl_leaf_mul_wide(call, true);
    case TL_LEAF_FAMILY_MUL_WIDE_U: return tl_leaf_mul_wide(call, false);
    case TL_LEAF_FAMILY_BYTES: return bytes(call);
    case TL_LEAF_FAMILY_EX2: return on_float(call, "llvm.nvvm.ex2.approx.f");
    case TL_LEAF_FAMILY_EX2_FTZ: return on_float(call, "llvm.nvvm.ex2.approx.ftz.f");
    case TL_LEAF_FAMILY_DIV: return divide(call);
    case TL_LEAF_FAMILY_DIV_BIG: return asm_on_floats(call, DIVIDE_BY_BIG);
    case TL_LEAF_FAMILY_RCP: return asm_on_floats(call, "rcp.approx.ftz.f32 $0, $1;");
    case TL_LEAF_FAMILY_FMA_SAT: return asm_on_floats(call, "fma.rn.sat.f32 $0, $1, $2, $3;");
    case TL_LEAF_FAMILY_SQRT: return on_float(call, "llvm.nvvm.sqrt.approx.f");
    case TL_LEAF_FAMILY_RSQRT: return on_float(call, "llvm.nvvm.rsqrt.approx.f");
    case TL_LEAF_FAMILY_MIN: return asm_on_floats(call, "min.f32 $0, $1, $2;");
    case TL_LEAF_FAMILY_MAX: return asm_on_floats(call, "max.f32 $0, $1, $2;");
    case TL_LEAF_FAMILY_MIN_NAN: return asm_on_floats(call, "min.NaN.f32 $0, $1, $2;");
    case TL_LEAF_FAMILY_MAX_NAN: return asm_on_floats(call, "max.NaN.f32 $0, $1, $2;");
    case TL_LEAF_FAMILY_BF16: return to_bf16(call);
    case TL_LEAF_FAMILY_OF_F8: return of_f8(call);
    case TL_LEAF_FAMILY_TO_F8: return to_f8(call);
    case TL_LEAF_FAMILY_OF_F4: return of_f4(call);
    case TL_LEAF_FAMILY_TO_F4: return to_f4(call);
    case TL_LEAF_FAMILY_F2I: return to_integer(call);
    case TL_LEAF_FAMILY_LDG: return load_global(call);
    case TL_LEAF_FAMILY_STG: store_global(call); return NULL;
    case TL_LEAF_FAMILY_LDS: return tl_leaf_load_shared(call);
    case TL_LEAF_FAMILY_STS: tl_leaf_store_shared(call, store_shared_where); return NULL;
    case TL_LEAF_FAMILY_ADDS: add_shared(call); return NULL;
    case TL_LEAF_FAMILY_ATOM: return atomic(call);
    case TL_LEAF_FAMILY_CP_ASYNC: copy_async(call); return NULL;
    case TL_LEAF_FAMILY_CP_COMMIT: special(call, "llvm.nvvm.cp.async.commit.group"); return NULL;
    case TL_LEAF_FAMILY_CP_WAIT: wait_async(call); return NULL;
    case TL_LEAF_FAMILY_LDSM: return load_matrices(call, "");
    case TL_LEAF_FAMILY_LDSM_T: return load_matrices(call, ".trans");
    case TL_LEAF_FAMILY_LDSM_8: return load_bytes(call);
    case TL_LEAF_FAMILY_STSM: store_matrices(call, "m8n8", ".shared.b16"); return NULL;
    case TL_LEAF_FAMILY_STSM_T: store_matrices(call, "m8n8", ".trans.shared.b16"); return NULL;
    case TL_LEAF_FAMILY_STSM_8: store_matrices(call, "m16n8", ".trans.shared.b8"); return NULL;
    case TL_LEAF_FAMILY_BARRIER_OF:
    case TL_LEAF_FAMILY_TURN_TAKE: barrier_of(call, "sync"); return NULL;
    case TL_LEAF_FAMILY_TURN_PASS: barrier_of(call, "arrive"); return NULL;
    case TL_LEAF_FAMILY_REGISTERS: set_registers(call); return NULL;
    case TL_LEAF_FAMILY_ELECT: return elect(call);
    case TL_LEAF_FAMILY_VOTE_ANY: return vote_any(call);
    case TL_LEAF_FAMILY_MBAR_INIT: instruct(call, "1s23", MBAR_INIT); return NULL;
    case TL_LEAF_FAMILY_MBAR_END: instruct(call, "1s2", MBAR_END); return NULL;
    case TL_LEAF_FAMILY_MBAR_ARRIVE: instruct(call, "1s2", MBAR_ARRIVE); return NULL;
    case TL_LEAF_FAMILY_MBAR_EXPECT: instruct(call, "1s23", MBAR_EXPECT); return NULL;
    case TL_LEAF_FAMILY_MBAR_WAIT: instruct(call, "s12", MBAR_WAIT); return NULL;
    case TL_LEAF_FAMILY_MBAR_ARRIVE_AT: instruct(call, "1s23", MBAR_ARRIVE_AT); return NULL;
    case TL_LEAF_FAMILY_BULK: copy_bulk(call, false); return NULL;
    case TL_LEAF_FAMILY_BULK_ALL: copy_bulk(call, true); return NULL;
    case TL_LEAF_FAMILY_BULK_PAIR: copy_bulk_pair(call); return NULL;
    case TL_LEAF_FAMILY_BULK_STORE: store_bulk(call); return NULL;
    case TL_LEAF_FAMILY_BULK_COMMIT: instruct(call, "", "cp.async.bulk.commit_group;"); return NULL;
    case TL_LEAF_FAMILY_BULK_WAIT: wait_bulk(call); return NULL;
    case TL_LEAF_FAMILY_WGMMA: return tl_leaf_wgmma_nvptx(call);
    case TL_LEAF_FAMILY_WGMMA_FENCE: return tl_leaf_wgmma_fence_nvptx(call);
    case TL_LEAF_FAMILY_WGMMA_WAIT: return tl_leaf_wgmma_wait_nvptx(call);
    case TL_LEAF_FAMILY_TENSOR_ALLOC:
    case TL_LEAF_FAMILY_TENSOR_FREE:
    case TL_LEAF_FAMILY_TENSOR_MMA:
    case TL_LEAF_FAMILY_TENSOR_COMMIT:
    case TL_LEAF_FAMILY_TENSOR_SCALES:
    case TL_LEAF_FAMILY_TENSOR_MMA_SCALED:
    case TL_LEAF_FAMILY_TENSOR_FENCE:
    case TL_LEAF_FAMILY_TENSOR_LD:
    case TL_LEAF_FAMILY_TENSOR_ST: return tl_leaf_tensor_nvptx(call);
    case TL_LEAF_FAMILY_FENCE_ASYNC:
        instruct(call, "", "fence.proxy.async.shared::cta;");
        return NULL;
    case TL_LEAF_FAMILY_FAIL:
    case TL_LEAF_FAMILY_OUTSIDE:
    case TL_LEAF_FAMILY_PRINT:
        tl_leaf_debug(call, special(call, CTAID), special(call, TID));
        return NULL;
    case TL_LEAF_FAMILY_SHFL_END: /* no NVIDIA row of gpu.def has the capability */
    case TL_LEAF_FAMILY_LDB:
    case TL_LEAF_FAMILY_STB:
    case TL_LEAF_FAMILY_LDS_T:
    case TL_LEAF_FAMILY_CP_ROW:
    case TL_LEAF_FAMILY_CP_ROW_NEAR:
    case TL_LEAF_FAMILY_COUNT: break;
    }
    TL_UNREACHABLE("leaf %d", (int)call->leaf);
}

void tl_leaf_expand_nvptx(TlLlvm *l)
{
    if (tl_leaf_expand_each(l, expand))
        tl_llvm_run(l, "always-inline");
    tl_leaf_pairs_nvptx(l);
    tl_work_around(l, TL_FAMILY_NVPTX, TL_WHEN_EXPANDED);
}
