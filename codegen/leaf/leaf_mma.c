/* Matrix instructions on real GPUs: intrinsics, and inline asm for mma.sync of f8 and with scales,
 * which LLVM 19 has no intrinsics for. Operands of the leaves: site, kind, k, types, ring, a, b, c,
 * in words of a lane; with scales, a word of those of a, of b, and which of its bytes. */
#include "codegen/leaf/leaf_expand.h"
#include "ir/ir.h"

enum { KIND = 1, K, TYPES, RING, OPERANDS, SCALES = OPERANDS + 3, BYTES = SCALES + 2 };

typedef struct Matrix {
    TlLeafCall *call;
    tl_mma_kind kind;
    uint32_t k;
    TlDtype type[3];
    bool scaled;
    TlDtype scale;
    uint32_t byte[2]; /* of the word of scales of a, of b: where the instruction's begin */
} Matrix;

static Matrix read_matrix(TlLeafCall *call)
{
    Matrix m = {.call = call,
                .kind = (tl_mma_kind)tl_leaf_constant(call, KIND),
                .k = tl_leaf_constant(call, K),
                .scaled = tl_leaf_info(call->leaf)->family == TL_LEAF_FAMILY_MMA_SCALED};
    for (int i = 0; i < 3; i++)
        m.type[i] = (TlDtype)(tl_leaf_constant(call, TYPES) >> 8 * i & 0xff);
    TL_ASSERT(!tl_leaf_constant(call, RING), "the ring on a real GPU");
    if (m.scaled) {
        m.scale = (TlDtype)(tl_leaf_constant(call, TYPES) >> 24);
        m.byte[0] = tl_leaf_constant(call, BYTES) & 255;
        m.byte[1] = tl_leaf_constant(call, BYTES) >> 8;
    }
    return m;
}

/* ---- mma.sync ---- */

/* Registers of one operand. */
typedef struct Registers {
    unsigned n;
    LLVMTypeRef type;
} Registers;

const char *tl_leaf_ptx_type(TlDtype d)
{
    switch (d) {
    case TL_I8: return "s8";
    case TL_U8: return "u8";
    case TL_I32: return "s32";
    case TL_F8E4M3: return "e4m3";
    case TL_F8E5M2: return "e5m2";
    case TL_F32: return "tf32";
    case TL_F16:
    case TL_BF16:
    case TL_F64: return tl_dtype_name(d);
    case TL_F8E4M3FNUZ:
    case TL_F8E5M2FNUZ:
    case TL_F4E2M1:
    case TL_BOOL:
    case TL_I4:
    case TL_I16:
    case TL_I64:
    case TL_U4:
    case TL_U16:
    case TL_U32:
    case TL_U64:
    case TL_DTYPE_COUNT: break;
    }
    TL_UNREACHABLE("no matrix instruction of NVIDIA takes %s", tl_dtype_name(d));
}

static const char *ptx_type(const Matrix *m, TlDtype d, bool operand)
{
    bool rounded = operand && m->kind == TL_MMA_M16N8;
    return d == TL_F32 && !rounded ? "f32" : tl_leaf_ptx_type(d);
}

static Registers registers_of(const Matrix *m, int operand)
{
    TL_ASSERT(operand >= 0 && operand < 3, "operand %d", operand);
    LLVMTypeRef wide = LLVMTypeOf(m->call->args[OPERANDS + operand]);
    unsigned n = LLVMGetTypeKind(wide) == LLVMVectorTypeKind ? LLVMGetVectorSize(wide) : 1;
    if (m->type[operand] == TL_F64)
        return (Registers){n / 2, LLVMDoubleTypeInContext(m->call->c)};
    if (m->type[operand] == TL_F32 && operand == 2)
        return (Registers){n, m->call->f32};
    if (m->type[operand] == TL_F16) /* as intrinsics take them */
        return (Registers){n, LLVMVectorType(LLVMHalfTypeInContext(m->call->c), 2)};
    return (Registers){n, m->call->i32};
}

/* The suffix of the intrinsic's name; there is none for f8. */
static const char *nvvm_types(const Matrix *m)
{
    if (m->type[0] == TL_F16)
        return "f32.f32";
    const char *a = ptx_type(m, m->type[0], true), *b = ptx_type(m, m->type[1], true);
    return a == b ? a : tl_format(m->call->l->arena, "%s.%s", a, b);
}

/* Adds the operand's registers to the arguments; returns the number of arguments so far. */
static unsigned add_arguments(const Matrix *m, int operand, const Registers *r, LLVMValueRef *args,
                              unsigned n)
{
    LLVMBuilderRef b = m->call->b;
    LLVMValueRef v = m->call->args[OPERANDS + operand];
    bool pairs = LLVMGetTypeKind(r->type) == LLVMVectorTypeKind; /* vectors have none as elements */
    v = LLVMBuildBitCast(b, v, LLVMVectorType(pairs ? m->call->i32 : r->type, r->n), "");
    for (unsigned i = 0; i < r->n; i++) {
        LLVMValueRef x = LLVMBuildExtractElement(b, v, tl_leaf_i32(m->call, i), "");
        args[n++] = LLVMBuildBitCast(b, x, r->type, "");
    }
    return n;
}

static LLVMValueRef gather(const Matrix *m, const Registers *r, LLVMValueRef x)
{
    TL_ASSERT(r->n > 0, "an operand without registers");
    LLVMBuilderRef b = m->call->b;
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(r->type, r->n));
    for (unsigned i = 0; i < r->n; i++)
        v = LLVMBuildInsertElement(b, v, LLVMBuildExtractValue(b, x, i, ""),
                                   tl_leaf_i32(m->call, i), "");
    return LLVMBuildBitCast(b, v, m->call->result, "");
}

/* An mma.sync by inline asm. args: registers of a, of b, of c. */
static LLVMValueRef multiply_by_asm(const Matrix *m, const Registers *r, const char *shape,
                                    LLVMTypeRef result, LLVMValueRef *args)
{
    unsigned n = r[2].n, done = 0;
    TlLeafAsm a = tl_leaf_asm_begin(m->call);
    tl_leaf_asm_results(&a, n,
                        r[2].type == m->call->f32   ? "=f"
                        : r[2].type == m->call->i32 ? "=r"
                                                    : "=d");
    const char *sums = ptx_type(m, m->type[2], false);
    tl_sbuf_putf(&a.text, "mma.sync.aligned.%s.%s.%s.%s.%s ", shape, sums,
                 ptx_type(m, m->type[0], true), ptx_type(m, m->type[1], true), sums);
    tl_leaf_asm_list(&a, 0, n);
    for (int i = 0; i < 3; i++) {
        tl_sbuf_puts(&a.text, ", ");
        tl_leaf_asm_list(&a, n + done, r[i].n);
        for (unsigned k = 0; k < r[i].n; k++)
            tl_leaf_asm_operand(&a, args[done++]);
    }
    tl_sbuf_puts(&a.text, ";");
    return tl_leaf_asm_end(&a, result, TL_LEAF_PURE);
}

static LLVMValueRef multiply(const Matrix *m)
{
    enum { MOST_REGISTERS = 16 }; /* of all operands of one instruction; of its result */
    TlLeafCall *call = m->call;
    Registers r[3] = {registers_of(m, 0), registers_of(m, 1), registers_of(m, 2)};
    LLVMValueRef args[MOST_REGISTERS];
    LLVMTypeRef results[MOST_REGISTERS];
    unsigned n = 0;
    for (int i = 0; i < 3; i++)
        n = add_arguments(m, i, &r[i], args, n);
    for (unsigned i = 0; i < r[2].n; i++)
        results[i] = r[2].type;
    LLVMTypeRef result = LLVMStructTypeInContext(call->c, results, r[2].n, 0);
    const char *shape = tl_format(call->l->arena, "m%un8k%u.row.col",
                                  m->kind == TL_MMA_M8N8 ? 8 : 16, m->k),
               *name = tl_format(call->l->arena, "llvm.nvvm.mma.%s.%s", shape, nvvm_types(m));
    LLVMValueRef x = tl_is_f8(m->type[0]) ? multiply_by_asm(m, r, shape, result, args)
                                          : tl_leaf_intrinsic(call, name, NULL, 0, args, n);
    tl_llvm_mark_call(call->l, x, "convergent");
    return gather(m, &r[2], x);
}

/* ---- mma.sync with scales ----
 *
 * PTX ISA, "Matrix multiply-accumulate operation using mma instruction with block scaling". All
 * lanes name thread 0 of those that may bring scales, as the compiler's layouts have it. u8 is
 * pairs of e2m1, so k of the instruction is twice that of the leaf. */

/* A word of scales. What the instruction does with the sign of ue4m3 is not said. */
static LLVMValueRef scales_of(const Matrix *m, unsigned i)
{
    enum { CODES = 0x7f7f7f7f };
    LLVMValueRef x = m->call->args[SCALES + i];
    return m->scale == TL_U8 ? x : LLVMBuildAnd(m->call->b, x, tl_leaf_i32(m->call, CODES), "");
}

/* Pairs, or one in a byte, where the instruction has them in bits 2 to 5. */
static bool is_f4(TlDtype d)
{
    return d == TL_U8 || d == TL_F4E2M1;
}

static const char *scaled_shape(const Matrix *m)
{
    if (m->type[0] != TL_U8)
        return "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X";
    return m->scale == TL_U8 ? "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X"
                             : "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X";
}

static LLVMValueRef multiply_scaled(const Matrix *m)
{
    enum { SUMS = 4, MOST_REGISTERS = 16 };
    TlLeafCall *call = m->call;
    Registers r[3] = {registers_of(m, 0), registers_of(m, 1), registers_of(m, 2)};
    LLVMValueRef args[MOST_REGISTERS];
    unsigned done = 0, next = 0;
    for (int i = 0; i < 3; i++) {
        unsigned first = done;
        done = add_arguments(m, i, &r[i], args, done);
        for (unsigned k = first; k < done && m->type[i] == TL_F4E2M1; k++)
            args[k] = LLVMBuildShl(call->b, args[k], tl_leaf_i32(call, 2), "");
    }
    TlLeafAsm a = tl_leaf_asm_begin(call);
    tl_leaf_asm_results(&a, r[2].n, "=f");
    const char *types[2];
    for (int i = 0; i < 2; i++)
        types[i] = is_f4(m->type[i]) ? "e2m1" : tl_leaf_ptx_type(m->type[i]);
    tl_sbuf_putf(&a.text, "mma.sync.aligned.%s.f32.%s.%s.f32.%s ", scaled_shape(m), types[0],
                 types[1], m->scale == TL_U8 ? "ue8m0" : "ue4m3");
    tl_leaf_asm_list(&a, 0, r[2].n);
    for (int i = 0; i < 3; i++) {
        tl_sbuf_puts(&a.text, ", ");
        tl_leaf_asm_list(&a, r[2].n + next, r[i].n);
        for (unsigned k = 0; k < r[i].n; k++)
            tl_leaf_asm_operand(&a, args[next++]);
    }
    for (unsigned i = 0; i < 2; i++)
        tl_sbuf_putf(&a.text, ", {$%u}, {%u,0}", tl_leaf_asm_operand(&a, scales_of(m, i)),
                     m->byte[i]);
    tl_sbuf_puts(&a.text, ";");
    LLVMTypeRef results[SUMS] = {call->f32, call->f32, call->f32, call->f32};
    TL_ASSERT(r[2].n == SUMS, "%u sums", r[2].n);
    LLVMValueRef x =
        tl_leaf_asm_end(&a, LLVMStructTypeInContext(call->c, results, SUMS, 0), TL_LEAF_PURE);
    tl_llvm_mark_call(call->l, x, "convergent");
    return gather(m, &r[2], x);
}

/* ---- mma.sync of f8 by two of f16 ---- */

static bool can(const Matrix *m, tl_gpu_can what)
{
    bool emulate;
    const TlLlvm *l = m->call->l;
    return tl_target_find(l->gpu ? l->gpu : l->cpu, &emulate)->can & what;
}

static LLVMValueRef word_of(const Matrix *m, int operand, unsigned i)
{
    return LLVMBuildExtractElement(m->call->b, m->call->args[OPERANDS + operand],
                                   tl_leaf_i32(m->call, i), "");
}

/* Elements 2 * half and 2 * half + 1 of a word of f8, as a word of two f16. */
static LLVMValueRef widen_by_cvt(const Matrix *m, TlDtype d, LLVMValueRef x, unsigned half)
{
    LLVMBuilderRef b = m->call->b;
    TlLeafAsm a = tl_leaf_asm_begin(m->call);
    tl_leaf_asm_results(&a, 1, "=r");
    tl_sbuf_putf(&a.text, "cvt.rn.f16x2.%sx2 $0, $1;", tl_leaf_ptx_type(d));
    x = LLVMBuildLShr(b, x, tl_leaf_i32(m->call, 16 * half), "");
    tl_leaf_asm_operand(&a, LLVMBuildTrunc(b, x, m->call->i16, ""));
    x = tl_leaf_asm_end(&a, m->call->i32, TL_LEAF_PURE);
    tl_llvm_mark_call(m->call->l, x, "memory"); /* none: one for all products that take the word */
    return x;
}

static LLVMValueRef masked(const Matrix *m, LLVMValueRef x, uint32_t mask)
{
    return LLVMBuildAnd(m->call->b, x, tl_leaf_i32(m->call, mask), "");
}

/* The same by hand. e5m2 is the upper byte of f16. e4m3 has an exponent of 4 bits and one more of
 * the fraction: in place below the sign, it is 2^-8 of the number, but for the largest code, which
 * is NaN: it gets the upper bit of the exponent. */
static LLVMValueRef widen_by_hand(const Matrix *m, TlDtype d, LLVMValueRef x, unsigned half)
{
    LLVMBuilderRef b = m->call->b;
    LLVMValueRef args[3] = {x, tl_leaf_i32(m->call, 0),
                            tl_leaf_i32(m->call, half ? 0x3424 : 0x1404)};
    LLVMValueRef upper = tl_leaf_intrinsic(m->call, "llvm.nvvm.prmt", NULL, 0, args, 3);
    if (d == TL_F8E5M2)
        return upper;
    LLVMTypeRef pair = LLVMVectorType(LLVMHalfTypeInContext(m->call->c), 2);
    LLVMValueRef scale = LLVMConstReal(LLVMHalfTypeInContext(m->call->c), 256.0);
    LLVMValueRef low =
        masked(m, LLVMBuildLShr(b, upper, tl_leaf_i32(m->call, 1), ""), 0x3f803f80);
    LLVMValueRef top =
        masked(m, LLVMBuildAdd(b, low, tl_leaf_i32(m->call, 0x00800080), ""), 0x40004000);
    low = LLVMBuildOr(b, LLVMBuildOr(b, low, top, ""), masked(m, upper, 0x80008000), "");
    low = LLVMBuildFMul(b, LLVMBuildBitCast(b, low, pair, ""),
                        LLVMConstVector((LLVMValueRef[]){scale, scale}, 2), "");
    return LLVMBuildBitCast(b, low, m->call->i32, "");
}

static LLVMValueRef widen(const Matrix *m, int operand, LLVMValueRef word, unsigned half)
{
    TlDtype d = m->type[operand];
    return can(m, TL_CAN_F8) ? widen_by_cvt(m, d, word, half) : widen_by_hand(m, d, word, half);
}

/* Words w, w + 1, ... of an operand, widened: first the lower halves of n words, then the upper. */
static LLVMValueRef widen_words(const Matrix *m, int operand, unsigned w, unsigned n)
{
    LLVMBuilderRef b = m->call->b;
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(m->call->i32, 2 * n));
    for (unsigned i = 0; i < 2 * n; i++)
        v = LLVMBuildInsertElement(b, v, widen(m, operand, word_of(m, operand, w + i % n), i / n),
                                   tl_leaf_i32(m->call, i), "");
    return v;
}

/* On Hopper ptxas would do the same, but add each product to the accumulator by FADD. A lane has
 * elements 4 q to 4 q + 3 along k where m16n8k16 wants 2 q, 2 q + 1, 2 q + 8 and 2 q + 9: the same
 * change of order in a and in b. */
static LLVMValueRef multiply_widened(Matrix *m)
{
    TlLeafCall *call = m->call;
    LLVMValueRef a[2], b[2];
    for (unsigned i = 0; i < 2; i++) {
        a[i] = widen_words(m, 0, 2 * i, 2);
        b[i] = widen_words(m, 1, i, 1);
    }
    m->type[0] = m->type[1] = TL_F16;
    m->k /= 2;
    for (unsigned i = 0; i < 2; i++) {
        call->args[OPERANDS] = a[i];
        call->args[OPERANDS + 1] = b[i];
        call->args[OPERANDS + 2] = multiply(m);
    }
    return call->args[OPERANDS + 2];
}

LLVMValueRef tl_leaf_mma_nvptx(TlLeafCall *call)
{
    Matrix m = read_matrix(call);
    if (m.scaled)
        return multiply_scaled(&m);
    bool whole = !tl_is_f8(m.type[0]) || can(&m, TL_CAN_MMA_F8);
    return whole ? multiply(&m) : multiply_widened(&m);
}

/* ---- MFMA, WMMA ---- */

/* One row per intrinsic, without "llvm.amdgcn.". */
typedef struct Intrinsic {
    tl_mma_kind kind;
    uint32_t k;
    TlDtype a, b;
    const char *name;
} Intrinsic;

static const Intrinsic INTRINSICS[] = {
    {TL_MMA_MFMA32, 8, TL_F16, TL_F16, "mfma.f32.32x32x8f16"},
    {TL_MMA_MFMA16, 16, TL_F16, TL_F16, "mfma.f32.16x16x16f16"},
    {TL_MMA_MFMA32, 8, TL_BF16, TL_BF16, "mfma.f32.32x32x8bf16.1k"},
    {TL_MMA_MFMA16, 16, TL_BF16, TL_BF16, "mfma.f32.16x16x16bf16.1k"},
    {TL_MMA_MFMA32, 4, TL_BF16, TL_BF16, "mfma.f32.32x32x4bf16"},
    {TL_MMA_MFMA16, 8, TL_BF16, TL_BF16, "mfma.f32.16x16x8bf16"},
    {TL_MMA_MFMA32, 2, TL_F32, TL_F32, "mfma.f32.32x32x2f32"},
    {TL_MMA_MFMA16, 4, TL_F32, TL_F32, "mfma.f32.16x16x4f32"},
    {TL_MMA_MFMA64, 4, TL_F64, TL_F64, "mfma.f64.16x16x4f64"},
    {TL_MMA_MFMA32, 8, TL_I8, TL_I8, "mfma.i32.32x32x8i8"},
    {TL_MMA_MFMA16, 16, TL_I8, TL_I8, "mfma.i32.16x16x16i8"},
    {TL_MMA_MFMA32, 16, TL_I8, TL_I8, "mfma.i32.32x32x16.i8"},
    {TL_MMA_MFMA16, 32, TL_I8, TL_I8, "mfma.i32.16x16x32.i8"},
    {TL_MMA_MFMA32, 16, TL_F8E4M3FNUZ, TL_F8E4M3FNUZ, "mfma.f32.32x32x16.fp8.fp8"},
    {TL_MMA_MFMA32, 16, TL_F8E4M3FNUZ, TL_F8E5M2FNUZ, "mfma.f32.32x32x16.fp8.bf8"},
    {TL_MMA_MFMA32, 16, TL_F8E5M2FNUZ, TL_F8E4M3FNUZ, "mfma.f32.32x32x16.bf8.fp8"},
    {TL_MMA_MFMA32, 16, TL_F8E5M2FNUZ, TL_F8E5M2FNUZ, "mfma.f32.32x32x16.bf8.bf8"},
    {TL_MMA_MFMA16, 32, TL_F8E4M3FNUZ, TL_F8E4M3FNUZ, "mfma.f32.16x16x32.fp8.fp8"},
    {TL_MMA_MFMA16, 32, TL_F8E4M3FNUZ, TL_F8E5M2FNUZ, "mfma.f32.16x16x32.fp8.bf8"},
    {TL_MMA_MFMA16, 32, TL_F8E5M2FNUZ, TL_F8E4M3FNUZ, "mfma.f32.16x16x32.bf8.fp8"},
    {TL_MMA_MFMA16, 32, TL_F8E5M2FNUZ, TL_F8E5M2FNUZ, "mfma.f32.16x16x32.bf8.bf8"},
    {TL_MMA_MFMA32, 16, TL_F16, TL_F16, "mfma.f32.32x32x16.f16"},
    {TL_MMA_MFMA16, 32, TL_F16, TL_F16, "mfma.f32.16x16x32.f16"},
    {TL_MMA_MFMA32, 16, TL_BF16, TL_BF16, "mfma.f32.32x32x16.bf16"},
    {TL_MMA_MFMA16, 32, TL_BF16, TL_BF16, "mfma.f32.16x16x32.bf16"},
    {TL_MMA_MFMA32, 32, TL_I8, TL_I8, "mfma.i32.32x32x32.i8"},
    {TL_MMA_MFMA16, 64, TL_I8, TL_I8, "mfma.i32.16x16x64.i8"},
    {TL_MMA_MFMA32, 16, TL_F8E4M3, TL_F8E4M3, "mfma.f32.32x32x16.fp8.fp8"},
    {TL_MMA_MFMA32, 16, TL_F8E4M3, TL_F8E5M2, "mfma.f32.32x32x16.fp8.bf8"},
    {TL_MMA_MFMA32, 16, TL_F8E5M2, TL_F8E4M3, "mfma.f32.32x32x16.bf8.fp8"},
    {TL_MMA_MFMA32, 16, TL_F8E5M2, TL_F8E5M2, "mfma.f32.32x32x16.bf8.bf8"},
    {TL_MMA_MFMA16, 32, TL_F8E4M3, TL_F8E4M3, "mfma.f32.16x16x32.fp8.fp8"},
    {TL_MMA_MFMA16, 32, TL_F8E4M3, TL_F8E5M2, "mfma.f32.16x16x32.fp8.bf8"},
    {TL_MMA_MFMA16, 32, TL_F8E5M2, TL_F8E4M3, "mfma.f32.16x16x32.bf8.fp8"},
    {TL_MMA_MFMA16, 32, TL_F8E5M2, TL_F8E5M2, "mfma.f32.16x16x32.bf8.bf8"},
    {TL_MMA_WMMA1, 16, TL_F16, TL_F16, "wmma.f32.16x16x16.f16"},
    {TL_MMA_WMMA1, 16, TL_BF16, TL_BF16, "wmma.f32.16x16x16.bf16"},
    {TL_MMA_WMMA1T, 16, TL_F16, TL_F16, "wmma.f32.16x16x16.f16"},
    {TL_MMA_WMMA1T, 16, TL_BF16, TL_BF16, "wmma.f32.16x16x16.bf16"},
    {TL_MMA_WMMA2, 16, TL_F16, TL_F16, "wmma.f32.16x16x16.f16"},
    {TL_MMA_WMMA2, 16, TL_BF16, TL_BF16, "wmma.f32.16x16x16.bf16"},
    {TL_MMA_WMMA2, 16, TL_F8E4M3, TL_F8E4M3, "wmma.f32.16x16x16.fp8.fp8"},
    {TL_MMA_WMMA2, 16, TL_F8E4M3, TL_F8E5M2, "wmma.f32.16x16x16.fp8.bf8"},
    {TL_MMA_WMMA2, 16, TL_F8E5M2, TL_F8E4M3, "wmma.f32.16x16x16.bf8.fp8"},
    {TL_MMA_WMMA2, 16, TL_F8E5M2, TL_F8E5M2, "wmma.f32.16x16x16.bf8.bf8"},
    {TL_MMA_WMMA3, 4, TL_F32, TL_F32, "wmma.f32.16x16x4.f32"},
    {TL_MMA_WMMA3, 32, TL_F16, TL_F16, "wmma.f32.16x16x32.f16"},
    {TL_MMA_WMMA3, 32, TL_BF16, TL_BF16, "wmma.f32.16x16x32.bf16"},
    {TL_MMA_WMMA3, 64, TL_F8E4M3, TL_F8E4M3, "wmma.f32.16x16x64.fp8.fp8"},
    {TL_MMA_WMMA3, 64, TL_F8E4M3, TL_F8E5M2, "wmma.f32.16x16x64.fp8.bf8"},
    {TL_MMA_WMMA3, 64, TL_F8E5M2, TL_F8E4M3, "wmma.f32.16x16x64.bf8.fp8"},
    {TL_MMA_WMMA3, 64, TL_F8E5M2, TL_F8E5M2, "wmma.f32.16x16x64.bf8.bf8"},
    {TL_MMA_WMMA3, 128, TL_F8E4M3, TL_F8E4M3, "wmma.f32.16x16x128.fp8.fp8"},
    {TL_MMA_WMMA3, 128, TL_F8E4M3, TL_F8E5M2, "wmma.f32.16x16x128.fp8.bf8"},
    {TL_MMA_WMMA3, 128, TL_F8E5M2, TL_F8E4M3, "wmma.f32.16x16x128.bf8.fp8"},
    {TL_MMA_WMMA3, 128, TL_F8E5M2, TL_F8E5M2, "wmma.f32.16x16x128.bf8.bf8"},
};
static const char IU8[] = "wmma.i32.16x16x16.iu8", IU8_3[] = "wmma.i32.16x16x64.iu8",
                  SCALED[] = "mfma.scale.f32.%ux%ux%u.f8f6f4"; /* of gfx950 */

static bool is_wmma(const Matrix *m)
{
    return m->kind == TL_MMA_WMMA1 || m->kind == TL_MMA_WMMA1T || m->kind == TL_MMA_WMMA2 ||
           m->kind == TL_MMA_WMMA3;
}

/* Is it told the types of its operands, of 4 or 8 words? */
static bool is_told_types(const Matrix *m)
{
    return m->scaled || (!is_wmma(m) && tl_is_f8(m->type[0]) && m->k >= 64);
}

/* The number of a type there. */
static LLVMValueRef told_type(const Matrix *m, TlDtype d)
{
    enum { E4M3, E5M2, E2M1 = 4 };
    return tl_leaf_i32(m->call, d == TL_U8 ? E2M1 : d == TL_F8E5M2 ? E5M2 : E4M3);
}

/* A word of scales. LLVM takes two that are 0 for the instruction that has none, but 0 is
 * 2^-127. */
static LLVMValueRef scale_word(const Matrix *m, unsigned i)
{
    LLVMValueRef x = m->call->args[SCALES + i];
    if (!LLVMIsConstant(x))
        return x;
    TlLeafAsm a = tl_leaf_asm_begin(m->call);
    tl_leaf_asm_results(&a, 1, "=v");
    tl_sbuf_puts(&a.text, "v_mov_b32 $0, $1");
    tl_leaf_asm_operand(&a, x);
    return tl_leaf_asm_end(&a, m->call->i32, TL_LEAF_PURE);
}

/* a, b: of the instruction, of types ta and tb; swap: they are the leaf's b and a. Scales that are
 * 0 make it the instruction without scales. */
static LLVMValueRef multiply_told(const Matrix *m, const char *name, LLVMValueRef *operands,
                                  TlDtype ta, TlDtype tb, bool swap)
{
    LLVMValueRef zero = tl_leaf_i32(m->call, 0);
    LLVMTypeRef types[2] = {LLVMTypeOf(operands[0]), LLVMTypeOf(operands[1])};
    LLVMValueRef args[9] = {operands[0], operands[1], operands[2], told_type(m, ta),
                            told_type(m, tb), zero, zero, zero, zero};
    for (unsigned i = 0; i < 2 && m->scaled; i++) {
        args[5 + 2 * i] = tl_leaf_i32(m->call, m->byte[i ^ swap]);
        args[6 + 2 * i] = scale_word(m, i ^ swap);
    }
    return tl_leaf_intrinsic(m->call, name, types, 2, args, 9);
}

static bool is_byte_integer(TlDtype d)
{
    return d == TL_I8 || d == TL_U8;
}

/* a, b: of the instruction. */
static const char *intrinsic_name(const Matrix *m, TlDtype a, TlDtype b)
{
    for (size_t i = 0; i < sizeof INTRINSICS / sizeof *INTRINSICS && !m->scaled; i++)
        if (INTRINSICS[i].kind == m->kind && INTRINSICS[i].k == m->k && INTRINSICS[i].a == a &&
            INTRINSICS[i].b == b)
            return INTRINSICS[i].name;
    if (is_told_types(m)) {
        unsigned side = m->kind == TL_MMA_MFMA32 ? 32 : 16;
        return tl_format(m->call->l->arena, SCALED, side, side, 2048 / side);
    }
    TL_ASSERT(is_wmma(m) && is_byte_integer(a) && is_byte_integer(b), "no matrix instruction");
    return m->kind == TL_MMA_WMMA3 ? IU8_3 : IU8;
}

/* Converts words to LLVM's type of the operand: a vector of elements, or for bytes one integer. */
static LLVMValueRef as_operand(const Matrix *m, LLVMValueRef x, TlDtype d)
{
    LLVMContextRef c = m->call->c;
    LLVMTypeRef t = LLVMTypeOf(x), elem = m->call->i16;
    unsigned words = LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 1;
    if (tl_dtype_bytes(d) == 1)
        return is_wmma(m) || words != 2 ? x : LLVMBuildBitCast(m->call->b, x, m->call->i64, "");
    if (d == TL_F32)
        return LLVMBuildBitCast(
            m->call->b, x, words == 1 ? m->call->f32 : LLVMVectorType(m->call->f32, words), "");
    if (d == TL_F64)
        return LLVMBuildBitCast(m->call->b, x, LLVMDoubleTypeInContext(c), "");
    TL_ASSERT(d == TL_F16 || d == TL_BF16, "no matrix instruction takes %s", tl_dtype_name(d));
    if (d == TL_F16)
        elem = LLVMHalfTypeInContext(c);
    else if (m->kind == TL_MMA_WMMA3 || (!is_wmma(m) && words == 4))
        elem = LLVMBFloatTypeInContext(c);
    return LLVMBuildBitCast(m->call->b, x, LLVMVectorType(elem, 2 * words), "");
}

static LLVMValueRef as_accumulator(const Matrix *m, LLVMValueRef x)
{
    LLVMContextRef c = m->call->c;
    unsigned words = LLVMGetVectorSize(LLVMTypeOf(x));
    if (m->type[2] == TL_I32)
        return x;
    LLVMTypeRef t = m->type[2] == TL_F64 ? LLVMVectorType(LLVMDoubleTypeInContext(c), words / 2)
                                         : LLVMVectorType(m->call->f32, words);
    return LLVMBuildBitCast(m->call->b, x, t, "");
}

/* WMMA of gfx1250. Operands of 16 and more bits have a modifier before each, the sums before them;
 * integers their signs; two bits, which say that an operand is that of the instruction before, are
 * the last, but for the clamp of integers. */
static LLVMValueRef multiply_gfx1250(const Matrix *m, const char *name, LLVMTypeRef *over,
                                     LLVMValueRef *operands, TlDtype ta, TlDtype tb)
{
    TlLeafCall *call = m->call;
    LLVMValueRef no = LLVMConstInt(call->i1, 0, 0), none = LLVMConstInt(call->i16, 0, 0), args[8];
    bool integers = is_byte_integer(ta), bytes = tl_dtype_bytes(ta) == 1;
    unsigned n = 0;
    for (int i = 0; i < 2; i++) {
        if (integers)
            args[n++] = LLVMConstInt(call->i1, (i ? tb : ta) == TL_I8, 0);
        else if (!bytes)
            args[n++] = no;
        args[n++] = operands[i];
    }
    if (!integers)
        args[n++] = none;
    args[n++] = operands[2];
    args[n++] = no;
    args[n++] = no;
    if (integers)
        args[n++] = no;
    return tl_leaf_intrinsic(call, name, over, 2, args, n);
}

LLVMValueRef tl_leaf_mma_amdgpu(TlLeafCall *call)
{
    Matrix m = read_matrix(call);
    m.kind = m.kind == TL_MMA_MFMA16R   ? TL_MMA_MFMA16 /* by another order of K */
             : m.kind == TL_MMA_MFMA32R ? TL_MMA_MFMA32
                                        : m.kind;
    bool swap = m.kind != TL_MMA_WMMA1; /* the product is transposed */
    TlDtype ta = m.type[swap], tb = m.type[!swap];
    LLVMValueRef a = as_operand(&m, call->args[OPERANDS + swap], ta),
                 b = as_operand(&m, call->args[OPERANDS + !swap], tb),
                 c = as_accumulator(&m, call->args[OPERANDS + 2]), zero = tl_leaf_i32(call, 0), x;
    const char *base = intrinsic_name(&m, ta, tb);
    char *name = tl_format(call->l->arena, "llvm.amdgcn.%s", base);
    LLVMTypeRef over[2] = {LLVMTypeOf(c), LLVMTypeOf(a)};
    if (m.kind == TL_MMA_WMMA3) {
        LLVMValueRef operands[3] = {a, b, c};
        x = multiply_gfx1250(&m, name, over, operands, ta, tb);
    } else if (is_told_types(&m)) {
        LLVMValueRef operands[3] = {a, b, c};
        x = multiply_told(&m, name, operands, ta, tb, swap);
    } else if (base == IU8) {
        LLVMValueRef sa = LLVMConstInt(call->i1, ta == TL_I8, 0),
                     sb = LLVMConstInt(call->i1, tb == TL_I8, 0),
                     args[6] = {sa, a, sb, b, c, LLVMConstInt(call->i1, 0, 0)};
        x = tl_leaf_intrinsic(call, name, over, 2, args, 6);
    } else if (is_wmma(&m)) {
        LLVMValueRef args[3] = {a, b, c};
        x = tl_leaf_intrinsic(call, name, over, 2, args, 3);
    } else {
        LLVMValueRef args[6] = {a, b, c, zero, zero, zero};
        x = tl_leaf_intrinsic(call, name, NULL, 0, args, 6);
    }
    return LLVMBuildBitCast(call->b, x, call->result, "");
}
