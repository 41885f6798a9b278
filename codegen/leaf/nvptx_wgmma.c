/* Products of warpgroups in PTX: inline asm, of which the accumulator's registers are both operands
 * and results, so that LLVM cannot move what reads them in front of the wait. */
#include "codegen/leaf/leaf_expand.h"

/* Operands of the leaf. */
enum { N = 1, TYPES, HOW, UPPER_A, AT_A, UPPER_B, AT_B, WORDS };
enum { STRIP = 64, K_BYTES = 32, WORDS_OF_A = 4 };

typedef struct Wgmma {
    TlLeafCall *call;
    TlSbuf text, constraints;
    LLVMValueRef args[TL_LEAF_MAX_ARGS];
    unsigned nargs, nwords; /* operands of the asm so far, besides results; of the accumulator */
} Wgmma;

static bool is_float(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMFloatTypeKind;
}

static void constrain(Wgmma *w, const char *constraint)
{
    tl_sbuf_putf(&w->constraints, "%s%s", w->constraints.len ? "," : "", constraint);
}

/* The number of the operand in the text. */
static unsigned add_operand(Wgmma *w, LLVMValueRef x, const char *constraint)
{
    w->args[w->nargs] = x;
    constrain(w, constraint);
    return w->nwords + w->nargs++;
}

/* The accumulator: results $0, $1, ... */
static void begin_asm(Wgmma *w, TlLeafCall *call, unsigned first)
{
    *w = (Wgmma){.call = call, .nwords = call->nargs - first};
    tl_sbuf_init(&w->text, call->l->arena);
    tl_sbuf_init(&w->constraints, call->l->arena);
    for (unsigned i = first; i < call->nargs; i++)
        constrain(w, is_float(LLVMTypeOf(call->args[i])) ? "=f" : "=r");
}

/* The accumulator as operands, each where its result goes. */
static void tie_words(Wgmma *w, unsigned first)
{
    for (unsigned i = 0; i < w->nwords; i++)
        add_operand(w, w->call->args[first + i], tl_format(w->call->l->arena, "%u", i));
}

static LLVMValueRef finish_asm(Wgmma *w)
{
    TlLeafCall *call = w->call;
    LLVMTypeRef types[TL_LEAF_MAX_ARGS];
    constrain(w, "~{memory}");
    for (unsigned i = 0; i < w->nargs; i++)
        types[i] = LLVMTypeOf(w->args[i]);
    LLVMTypeRef type = LLVMFunctionType(call->result, types, w->nargs, 0);
    LLVMValueRef f = LLVMGetInlineAsm(type, w->text.text, w->text.len, w->constraints.text,
                                      w->constraints.len, 1, 0, LLVMInlineAsmDialectATT, 0);
    LLVMValueRef x = LLVMBuildCall2(call->b, type, f, w->args, w->nargs, "");
    tl_llvm_mark_call(call->l, x, "convergent");
    return LLVMGetTypeKind(call->result) == LLVMVoidTypeKind ? NULL : x;
}

/* The address of shared memory / 16. */
static LLVMValueRef shared_base(TlLeafCall *call)
{
    LLVMValueRef p = tl_leaf_shared_slot(call, tl_leaf_i32(call, 0), tl_leaf_i32(call, 0));
    return LLVMBuildLShr(call->b, LLVMBuildPtrToInt(call->b, p, call->i32, ""),
                         tl_leaf_i32(call, 4), "");
}

/* A descriptor from its constant part and where the operand begins. */
static LLVMValueRef descriptor(TlLeafCall *call, unsigned upper)
{
    LLVMBuilderRef b = call->b;
    TL_ASSERT(LLVMIsAConstantInt(call->args[upper]), "a descriptor that is not constant");
    uint64_t fixed = LLVMConstIntGetZExtValue(call->args[upper]);
    LLVMValueRef base =
        LLVMBuildAdd(b, shared_base(call), tl_leaf_i32(call, (uint32_t)fixed), "");
    LLVMValueRef at = LLVMBuildAdd(b, call->args[upper + 1], base, "");
    at = LLVMBuildZExt(b, at, call->i64, "");
    return LLVMBuildOr(b, at, LLVMConstInt(call->i64, fixed & ~(uint64_t)UINT32_MAX, 0), "");
}

/* The operand A in the text: registers, or a descriptor. */
static void put_a(Wgmma *w, bool words)
{
    if (!words) {
        tl_sbuf_putf(&w->text, "$%u", add_operand(w, descriptor(w->call, UPPER_A), "l"));
        return;
    }
    for (unsigned i = 0; i < WORDS_OF_A; i++)
        tl_sbuf_putf(&w->text, "%s$%u", i ? "," : "{",
                     add_operand(w, w->call->args[WORDS + i], "r"));
    tl_sbuf_puts(&w->text, "}");
}

LLVMValueRef tl_leaf_wgmma_nvptx(TlLeafCall *call)
{
    uint32_t n = tl_leaf_constant(call, N), types = tl_leaf_constant(call, TYPES),
             how = tl_leaf_constant(call, HOW), a = types & 0xff, b = types >> 8 & 0xff;
    bool integer = a == TL_I8 || a == TL_U8, transposes = a == TL_F16 || a == TL_BF16;
    bool words = how & TL_WGMMA_A_WORDS;
    unsigned first = WORDS + (words ? WORDS_OF_A : 0);
    int bytes = transposes ? 2 : a == TL_F32 ? 4 : 1;
    Wgmma w;
    begin_asm(&w, call, first);
    TL_ASSERT(w.nwords == n / 2, "%u words for %u columns", w.nwords, n);
    if (how & TL_WGMMA_FENCE)
        tl_sbuf_puts(&w.text, "wgmma.fence.sync.aligned; ");
    tl_sbuf_putf(&w.text, "wgmma.mma_async.sync.aligned.m%dn%uk%d.%s.%s.%s ", STRIP, n,
                 K_BYTES / bytes, integer ? "s32" : "f32", tl_leaf_ptx_type((TlDtype)a),
                 tl_leaf_ptx_type((TlDtype)b));
    for (unsigned i = 0; i < w.nwords; i++)
        tl_sbuf_putf(&w.text, "%s$%u", i ? "," : "{", i);
    tl_sbuf_puts(&w.text, "}, ");
    put_a(&w, words);
    tl_sbuf_putf(&w.text, ", $%u, 1", add_operand(&w, descriptor(call, UPPER_B), "l"));
    if (!integer)
        tl_sbuf_puts(&w.text, ", 1, 1");
    if (transposes && !words)
        tl_sbuf_puts(&w.text, how & TL_WGMMA_A_ACROSS ? ", 1" : ", 0");
    if (transposes)
        tl_sbuf_puts(&w.text, how & TL_WGMMA_B_ACROSS ? ", 1" : ", 0");
    tl_sbuf_puts(&w.text, ";");
    if (how & TL_WGMMA_COMMIT)
        tl_sbuf_puts(&w.text, " wgmma.commit_group.sync.aligned;");
    tie_words(&w, first);
    return finish_asm(&w);
}

/* site, words */
LLVMValueRef tl_leaf_wgmma_fence_nvptx(TlLeafCall *call)
{
    enum { FIRST = 1 };
    Wgmma w;
    begin_asm(&w, call, FIRST);
    tl_sbuf_puts(&w.text, "wgmma.fence.sync.aligned;");
    tie_words(&w, FIRST);
    return finish_asm(&w);
}

/* site, pending, words */
LLVMValueRef tl_leaf_wgmma_wait_nvptx(TlLeafCall *call)
{
    enum { PENDING = 1, FIRST };
    Wgmma w;
    begin_asm(&w, call, FIRST);
    tl_sbuf_putf(&w.text, "wgmma.wait_group.sync.aligned %u;", tl_leaf_constant(call, PENDING));
    tie_words(&w, FIRST);
    return finish_asm(&w);
}

void tl_leaf_fence_async_nvptx(TlLeafCall *call)
{
    Wgmma w;
    begin_asm(&w, call, call->nargs);
    tl_sbuf_puts(&w.text, "fence.proxy.async.shared::cta;");
    finish_asm(&w);
}
