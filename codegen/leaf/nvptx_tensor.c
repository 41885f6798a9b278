/* Tensor memory and the products that add to it (tcgen05) in PTX, by one block (cta_group::1). A
 * load and the wait for it are one asm, as are a store and its. */
#include "codegen/leaf/leaf_expand.h"
#include "ir/plan/mma.h"

/* Operands of the leaves. */
enum { OFFSET = 1, COLUMNS, ADDRESS = 1, FIRST_WORD = 2, AFTER = 1 };
enum { INSTRUCTION = 1, TYPES, RING, UPPER_A, AT_A, UPPER_B, AT_B, SUMS, ADD };
/* Of products with scales, behind the types. */
enum { SC_UPPER_A = 3, SC_UPPER_B = 5, SC_SUMS = 7, SC_ADD, SC_A, SC_B };
enum { PIECE_UPPER = 1, PIECE_TO = 3 };

static LLVMValueRef shared_address(TlLeafCall *call, LLVMValueRef offset)
{
    return LLVMBuildPtrToInt(call->b, tl_leaf_shared(call, offset), call->i32, "");
}

/* It needs all threads of a warp, or one: no LLVM pass may split, join or repeat what does it. */
static void end(TlLeafAsm *a)
{
    tl_leaf_asm_end(a, a->call->void_, TL_LEAF_CONVERGENT);
}

static void allocate(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    unsigned to = tl_leaf_asm_operand(&a, shared_address(call, call->args[OFFSET]));
    tl_sbuf_putf(&a.text,
                 "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$%u], %u; "
                 "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
                 to, tl_leaf_constant(call, COLUMNS));
    end(&a);
}

static void give_back(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    unsigned at = tl_leaf_asm_operand(&a, call->args[ADDRESS]);
    tl_sbuf_putf(&a.text, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 $%u, %u;", at,
                 tl_leaf_constant(call, COLUMNS));
    end(&a);
}

static const char *kind_of(const TlLeafCall *call)
{
    uint32_t types = tl_leaf_constant(call, TYPES);
    const TlDtype t[3] = {(TlDtype)(types & 0xff), (TlDtype)(types >> 8 & 0xff),
                          (TlDtype)(types >> 16 & 0xff)};
    const TlMma *mma = tl_tensor_mma_for(t, TL_TENSOR_LANES);
    TL_ASSERT(mma, "no product of %s in tensor memory", tl_dtype_name(t[0]));
    return tl_tensor_mma_of(mma)->kind;
}

static void multiply(TlLeafCall *call)
{
    TL_ASSERT(!tl_leaf_constant(call, RING), "the ring on a real GPU");
    TlLeafAsm a = tl_leaf_asm_begin(call);
    bool there = LLVMIsNull(call->args[UPPER_A]); /* A is in tensor memory */
    LLVMValueRef x = there ? call->args[AT_A] : tl_leaf_descriptor_nvptx(call, UPPER_A),
                 y = tl_leaf_descriptor_nvptx(call, UPPER_B);
    tl_leaf_asm_operand(&a, call->args[SUMS]);
    tl_leaf_asm_operand(&a, x);
    tl_leaf_asm_operand(&a, y);
    tl_leaf_asm_operand(&a, call->args[INSTRUCTION]);
    tl_leaf_asm_operand(&a, call->args[ADD]);
    tl_sbuf_putf(&a.text, "tcgen05.mma.cta_group::1.kind::%s [$0], %s, $2, $3, $4;", kind_of(call),
                 there ? "[$1]" : "$1");
    end(&a);
}

/* From shared memory to tensor memory. */
static void bring_scales(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    LLVMValueRef piece = tl_leaf_descriptor_nvptx(call, PIECE_UPPER);
    tl_leaf_asm_operand(&a, call->args[PIECE_TO]);
    tl_leaf_asm_operand(&a, piece);
    tl_sbuf_puts(&a.text, "tcgen05.cp.cta_group::1.32x128b.warpx4 [$0], $1;");
    end(&a);
}

static void multiply_scaled(TlLeafCall *call)
{
    uint32_t types = tl_leaf_constant(call, TYPES);
    const TlMma *mma = tl_tensor_scaled_for(
        (TlDtype)(types & 0xff), (TlDtype)(types >> 8 & 0xff), (TlDtype)(types >> 24));
    TL_ASSERT(mma, "no product of types %x with scales", types);
    TlLeafAsm a = tl_leaf_asm_begin(call);
    LLVMValueRef x = tl_leaf_descriptor_nvptx(call, SC_UPPER_A),
                 y = tl_leaf_descriptor_nvptx(call, SC_UPPER_B);
    tl_leaf_asm_operand(&a, call->args[SC_SUMS]);
    tl_leaf_asm_operand(&a, x);
    tl_leaf_asm_operand(&a, y);
    tl_leaf_asm_operand(&a, call->args[INSTRUCTION]);
    tl_leaf_asm_operand(&a, call->args[SC_A]);
    tl_leaf_asm_operand(&a, call->args[SC_B]);
    tl_leaf_asm_operand(&a, call->args[SC_ADD]);
    tl_sbuf_putf(&a.text,
                 "tcgen05.mma.cta_group::1.kind::%s.block_scale.block%d [$0], $1, $2, $3, [$4], "
                 "[$5], $6;",
                 tl_tensor_mma_of(mma)->kind, (int)tl_scale_each(mma->type[TL_MMA_SA]));
    end(&a);
}

static void commit(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_operand(&a, shared_address(call, call->args[OFFSET]));
    tl_sbuf_puts(&a.text, "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
                          "[$0];");
    end(&a);
}

static void fence(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_sbuf_putf(&a.text, "tcgen05.fence::%s_thread_sync;",
                 tl_leaf_constant(call, AFTER) ? "after" : "before");
    end(&a);
}

/* 32 lanes, one a thread; or 16, as fragments of mma.sync, 4 words each. */
static void put_shape(TlLeafAsm *a, const char *what, unsigned words)
{
    enum { WORDS = 4 };
    bool half = a->call->leaf == TL_LEAF_TENSOR_LD_16 || a->call->leaf == TL_LEAF_TENSOR_ST_16;
    TL_ASSERT(!half || words % WORDS == 0, "%u words of 16 lanes", words);
    tl_sbuf_putf(&a->text, "tcgen05.%s.sync.aligned.%s.x%u.b32 ", what,
                 half ? "16x256b" : "32x32b", half ? words / WORDS : words);
}

static const char *register_of(const TlLeafCall *call, unsigned word)
{
    return LLVMTypeOf(call->args[FIRST_WORD + word]) == call->f32 ? "=f" : "=r";
}

static LLVMValueRef load(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    unsigned n = call->nargs - FIRST_WORD;
    for (unsigned i = 0; i < n; i++)
        tl_leaf_asm_results(&a, 1, register_of(call, i));
    unsigned at = tl_leaf_asm_operand(&a, call->args[ADDRESS]);
    put_shape(&a, "ld", n);
    tl_leaf_asm_list(&a, 0, n);
    tl_sbuf_putf(&a.text, ", [$%u]; tcgen05.wait::ld.sync.aligned;", at);
    return tl_leaf_asm_end(&a, call->result, TL_LEAF_CONVERGENT);
}

static LLVMValueRef store(TlLeafCall *call)
{
    TlLeafAsm a = tl_leaf_asm_begin(call);
    unsigned n = call->nargs - FIRST_WORD, at = tl_leaf_asm_operand(&a, call->args[ADDRESS]);
    LLVMValueRef same = LLVMGetPoison(call->result);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef x = call->args[FIRST_WORD + i];
        tl_leaf_asm_operand(&a, x);
        same = LLVMBuildInsertValue(call->b, same, x, i, "");
    }
    put_shape(&a, "st", n);
    tl_sbuf_putf(&a.text, "[$%u], ", at);
    tl_leaf_asm_list(&a, at + 1, n);
    tl_sbuf_puts(&a.text, "; tcgen05.wait::st.sync.aligned;");
    end(&a);
    return same;
}

LLVMValueRef tl_leaf_tensor_nvptx(TlLeafCall *call)
{
    static void (*const WITHOUT_RESULT[])(TlLeafCall *) = {
        allocate, give_back, multiply, commit, bring_scales, multiply_scaled, fence};
    if (call->leaf == TL_LEAF_TENSOR_LD || call->leaf == TL_LEAF_TENSOR_LD_16)
        return load(call);
    if (call->leaf == TL_LEAF_TENSOR_ST || call->leaf == TL_LEAF_TENSOR_ST_16)
        return store(call);
    TL_ASSERT(call->leaf >= TL_LEAF_TENSOR_ALLOC && call->leaf <= TL_LEAF_TENSOR_FENCE, "leaf %d",
              (int)call->leaf);
    WITHOUT_RESULT[call->leaf - TL_LEAF_TENSOR_ALLOC](call);
    return NULL;
}
