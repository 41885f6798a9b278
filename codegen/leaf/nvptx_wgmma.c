/* Products of warpgroups in PTX: inline asm that has the accumulator's registers both as operands
 * and as results, so that LLVM cannot move a reader of them in front of the wait. */
#include "codegen/leaf/leaf_expand.h"

/* Operands of the leaf. */
enum { N = 1, TYPES, HOW, UPPER_A, AT_A, UPPER_B, AT_B, WORDS };
enum { STRIP = 64, K_BYTES = 32, WORDS_OF_A = 4 };

/* The accumulator, the leaf's operands from number `first` on: results $0, $1, ... */
static TlLeafAsm begin_asm(TlLeafCall *call, unsigned first)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    for (unsigned i = first; i < call->nargs; i++)
        tl_leaf_asm_results(&a, 1, LLVMTypeOf(call->args[i]) == call->f32 ? "=f" : "=r");
    return a;
}

/* The accumulator as operands, each where its result goes. unread: whatever the registers have, so
 * that nothing sets them behind the fence. */
static LLVMValueRef end_asm(TlLeafAsm *a, unsigned first, bool unread)
{
    for (unsigned i = 0; i < a->nresults; i++) {
        LLVMValueRef x = a->call->args[first + i];
        tl_leaf_asm_tie(a, i, unread ? LLVMGetUndef(LLVMTypeOf(x)) : x);
    }
    return tl_leaf_asm_end(a, a->call->result, TL_LEAF_CONVERGENT);
}

/* The lower half of a descriptor of what begins where shared memory does: its address / 16, of 14
 * bits, and what is constant. In a cluster, the address has the program's rank above them, where
 * the descriptor has the distance of panels. At the function's start, so that no loop has it. */
static LLVMValueRef lower_half(TlLeafCall *call, uint32_t constant)
{
    enum { ADDRESS = 0x3fff };
    TlLeafCall first = *call;
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(call->function);
    bool is_there = LLVMGetInsertBlock(call->b) == entry;
    if (!is_there) {
        first.b = LLVMCreateBuilderInContext(call->c);
        LLVMPositionBuilderBefore(first.b, LLVMGetBasicBlockTerminator(entry));
    }
    LLVMValueRef none = tl_leaf_i32(call, 0), p = tl_leaf_shared_slot(&first, none, none),
                 address = LLVMBuildPtrToInt(first.b, p, call->i32, ""),
                 units = LLVMBuildLShr(first.b, address, tl_leaf_i32(call, 4), "");
    units = LLVMBuildAnd(first.b, units, tl_leaf_i32(call, ADDRESS), "");
    LLVMValueRef half = LLVMBuildAdd(first.b, units, tl_leaf_i32(call, constant), "");
    if (!is_there)
        LLVMDisposeBuilder(first.b);
    return half;
}

LLVMValueRef tl_leaf_descriptor_nvptx(TlLeafCall *call, unsigned upper)
{
    LLVMBuilderRef b = call->b;
    TL_ASSERT(LLVMIsAConstantInt(call->args[upper]), "a descriptor that is not constant");
    uint64_t fixed = LLVMConstIntGetZExtValue(call->args[upper]);
    LLVMValueRef at = LLVMBuildAdd(b, call->args[upper + 1], lower_half(call, (uint32_t)fixed), "");
    at = LLVMBuildZExt(b, at, call->i64, "");
    return LLVMBuildOr(b, at, LLVMConstInt(call->i64, fixed & ~(uint64_t)UINT32_MAX, 0), "");
}

/* The operand A in the text: registers, or a descriptor. */
static void put_a(TlLeafAsm *a, bool words)
{
    unsigned first = a->nresults + a->nargs;
    if (!words) {
        LLVMValueRef d = tl_leaf_descriptor_nvptx(a->call, UPPER_A);
        tl_sbuf_putf(&a->text, "$%u", tl_leaf_asm_operand(a, d));
        return;
    }
    for (unsigned i = 0; i < WORDS_OF_A; i++)
        tl_leaf_asm_operand(a, a->call->args[WORDS + i]);
    tl_leaf_asm_list(a, first, WORDS_OF_A);
}

/* Products that add to zeros, as constants, add to nothing: the registers need not be set. */
static bool adds_to_zeros(const TlLeafCall *call, unsigned first)
{
    bool zeros = true;
    for (unsigned i = first; i < call->nargs && zeros; i++)
        zeros = LLVMIsNull(call->args[i]);
    return zeros;
}

LLVMValueRef tl_leaf_wgmma_nvptx(TlLeafCall *call)
{
    uint32_t n = tl_leaf_constant(call, N), types = tl_leaf_constant(call, TYPES),
             how = tl_leaf_constant(call, HOW), a = types & 0xff, b = types >> 8 & 0xff;
    bool integer = a == TL_I8 || a == TL_U8, transposes = a == TL_F16 || a == TL_BF16;
    bool words = how & TL_WGMMA_A_WORDS;
    unsigned first = WORDS + (words ? WORDS_OF_A : 0);
    bool zeros = adds_to_zeros(call, first);
    int bytes = transposes ? 2 : a == TL_F32 ? 4 : 1;
    TlLeafAsm w = begin_asm(call, first);
    TL_ASSERT(w.nresults == n / 2, "%u words for %u columns", w.nresults, n);
    if (how & TL_WGMMA_FENCE)
        tl_sbuf_puts(&w.text, "wgmma.fence.sync.aligned; ");
    tl_sbuf_putf(&w.text, "wgmma.mma_async.sync.aligned.m%dn%uk%d.%s.%s.%s ", STRIP, n,
                 K_BYTES / bytes, integer ? "s32" : "f32", tl_leaf_ptx_type((TlDtype)a),
                 tl_leaf_ptx_type((TlDtype)b));
    tl_leaf_asm_list(&w, 0, w.nresults);
    tl_sbuf_puts(&w.text, ", ");
    put_a(&w, words);
    LLVMValueRef d = tl_leaf_descriptor_nvptx(call, UPPER_B);
    tl_sbuf_putf(&w.text, ", $%u, %d", tl_leaf_asm_operand(&w, d), !zeros);
    if (!integer)
        tl_sbuf_puts(&w.text, ", 1, 1");
    if (transposes && !words)
        tl_sbuf_puts(&w.text, how & TL_WGMMA_A_ACROSS ? ", 1" : ", 0");
    if (transposes)
        tl_sbuf_puts(&w.text, how & TL_WGMMA_B_ACROSS ? ", 1" : ", 0");
    tl_sbuf_puts(&w.text, ";");
    if (how & TL_WGMMA_COMMIT)
        tl_sbuf_puts(&w.text, " wgmma.commit_group.sync.aligned;");
    return end_asm(&w, first, zeros);
}

/* site, words */
LLVMValueRef tl_leaf_wgmma_fence_nvptx(TlLeafCall *call)
{
    enum { FIRST = 1 };
    TlLeafAsm w = begin_asm(call, FIRST);
    tl_sbuf_puts(&w.text, "wgmma.fence.sync.aligned;");
    return end_asm(&w, FIRST, false);
}

/* site, pending, words */
LLVMValueRef tl_leaf_wgmma_wait_nvptx(TlLeafCall *call)
{
    enum { PENDING = 1, FIRST };
    TlLeafAsm w = begin_asm(call, FIRST);
    tl_sbuf_putf(&w.text, "wgmma.wait_group.sync.aligned %u;", tl_leaf_constant(call, PENDING));
    return end_asm(&w, FIRST, false);
}
