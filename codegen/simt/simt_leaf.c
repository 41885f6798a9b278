/* Calls of leaves from the SIMT lowering, and values as the words that leaves move. */
#include "codegen/leaf/leaves.h"
#include "codegen/simt/simt.h"

LLVMValueRef tl_simt_i32(TlSimt *g, uint32_t v)
{
    return LLVMConstInt(g->i32, v, 0);
}

/* ---- calls ---- */

static LLVMValueRef new_site(TlSimt *g, tl_leaf leaf)
{
    tile_image_site s = {(uint32_t)leaf, g->loc.file, g->loc.line, g->loc.col, 0, 0};
    tl_leaf_class class_ = tl_leaf_class_of(leaf);
    if (class_ == TL_LEAF_CLASS_GLOBAL || class_ == TL_LEAF_CLASS_ASYNC ||
        class_ == TL_LEAF_CLASS_ATOMIC)
        s.param = (uint32_t)(g->param + 1);
    tl_vec_push(g->arena, &g->code->sites, s);
    return tl_simt_i32(g, (uint32_t)g->code->sites.len - 1);
}

static LLVMValueRef call_leaf(TlSimt *g, tl_leaf leaf, LLVMValueRef f, unsigned nargs,
                              LLVMValueRef *args)
{
    tl_leaf_class class_ = tl_leaf_class_of(leaf);
    LLVMValueRef all[TL_SIMT_MOST_ARGS];
    unsigned n = 0;
    if (class_ != TL_LEAF_CLASS_PURE)
        all[n++] = new_site(g, leaf);
    if (class_ == TL_LEAF_CLASS_DEBUG)
        tl_gen_slot(&g->gen, TILE_SLOT_DEBUG, 0, 0); /* the GPU's expansion finds it there */
    for (unsigned i = 0; i < nargs; i++)
        all[n++] = args[i];
    TL_ASSERT(n == LLVMCountParams(f), "leaf %s with %u operands", tl_leaf_name(leaf), n);
    LLVMValueRef call = LLVMBuildCall2(g->b, LLVMGlobalGetValueType(f), f, all, n, "");
    if (class_ == TL_LEAF_CLASS_WARP || class_ == TL_LEAF_CLASS_BLOCK ||
        class_ == TL_LEAF_CLASS_GROUP)
        tl_llvm_mark_call(g->l, call, "convergent");
    return call;
}

LLVMValueRef tl_simt_leaf(TlSimt *g, tl_leaf leaf, unsigned nargs, LLVMValueRef *args)
{
    return call_leaf(g, leaf, tl_leaf_declare(g->l, leaf), nargs, args);
}

LLVMValueRef tl_simt_leaf_words(TlSimt *g, tl_leaf leaf, unsigned nargs, LLVMValueRef *args,
                                unsigned words)
{
    TL_ASSERT(words <= nargs && nargs < TL_SIMT_MOST_ARGS, "%u words of %u", words, nargs);
    LLVMTypeRef types[TL_SIMT_MOST_ARGS];
    for (unsigned i = 0; i < nargs; i++)
        types[i] = LLVMTypeOf(args[i]);
    LLVMTypeRef result = words ? LLVMStructTypeInContext(g->c, types + (nargs - words), words, 0)
                               : LLVMVoidTypeInContext(g->c);
    return call_leaf(g, leaf, tl_leaf_declare_words(g->l, leaf, result, types, nargs), nargs, args);
}

/* Barriers by number: 0 is that of the whole block. */
enum { OF_CONSUMERS = 1, OF_TURNS = 2, WARPS_OF_GROUP = 4 };

void tl_simt_barrier(TlSimt *g)
{
    uint32_t threads = (1u << g->warp_bits) << g->lane_bits;
    LLVMValueRef args[] = {tl_simt_i32(g, OF_CONSUMERS), tl_simt_i32(g, threads)};
    if (g->role == TL_SIMT_CONSUMERS)
        tl_simt_leaf(g, TL_LEAF_BARRIER_OF, 2, args);
    else
        tl_simt_leaf(g, TL_LEAF_BARRIER, 0, NULL);
}

/* Each warpgroup comes to its own barrier, and so does the one before it when it had its turn. */
void tl_simt_turn(TlSimt *g, const TlOp *op)
{
    uint32_t groups = (1u << g->warp_bits) / WARPS_OF_GROUP;
    bool take = op->opcode == TL_OP_PING_PONG_WAIT, first = tl_attr_flag(op, TL_ATTR_ONE);
    LLVMValueRef threads = tl_simt_i32(g, 2 * WARPS_OF_GROUP << g->lane_bits),
                 bits = tl_simt_i32(g, __builtin_ctz(WARPS_OF_GROUP)),
                 own = LLVMBuildLShr(g->b, tl_simt_uniform_warp(g), bits, "");
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t whose = take ? i : (i + 1) % groups;
        if (first && whose != 0)
            continue;
        LLVMBasicBlockRef mine = tl_gen_block(&g->gen, "turn"),
                          join = tl_gen_block(&g->gen, "join");
        LLVMValueRef is_mine = LLVMBuildICmp(g->b, LLVMIntEQ, own, tl_simt_i32(g, i), "");
        LLVMBuildCondBr(g->b, is_mine, mine, join);
        LLVMPositionBuilderAtEnd(g->b, mine);
        LLVMValueRef args[] = {tl_simt_i32(g, OF_TURNS + whose), threads};
        tl_simt_leaf(g, take ? TL_LEAF_TURN_TAKE : TL_LEAF_TURN_PASS, 2, args);
        LLVMBuildBr(g->b, join);
        LLVMPositionBuilderAtEnd(g->b, join);
    }
}

/* ---- arithmetic of f32 by the GPU's own instructions ---- */

/* The leaf of an op on f32, TL_LEAF_COUNT where LLVM IR can say it. */
static tl_leaf leaf_of_op(const TlOp *op)
{
    bool is_approx = tl_attr_flag(op, TL_ATTR_APPROX);
    int64_t approx = tl_attr_int(op, TL_ATTR_APPROX, TL_APPROX_ANY);
    if (op->opcode == TL_OP_EXP2)
        return approx == TL_APPROX_FLUSH ? TL_LEAF_EX2_FTZ : TL_LEAF_EX2;
    if (op->opcode == TL_OP_DIV && is_approx)
        return approx != TL_APPROX_ANY ? TL_LEAF_DIV_BIG : TL_LEAF_DIV;
    if (op->opcode == TL_OP_SQRT && is_approx)
        return TL_LEAF_SQRT;
    return op->opcode == TL_OP_MIN       ? TL_LEAF_MIN
           : op->opcode == TL_OP_MAX     ? TL_LEAF_MAX
           : op->opcode == TL_OP_MIN_NAN ? TL_LEAF_MIN_NAN
           : op->opcode == TL_OP_MAX_NAN ? TL_LEAF_MAX_NAN
                                         : TL_LEAF_COUNT;
}

static bool is_number(LLVMValueRef x, double number)
{
    LLVMBool lossy;
    return LLVMIsAConstantFP(x) && LLVMConstRealGetDouble(x, &lossy) == number;
}

/* The call of the leaf that x is the result of, or NULL. */
static LLVMValueRef call_of(TlSimt *g, LLVMValueRef x, tl_leaf leaf)
{
    LLVMValueRef call = LLVMIsABitCastInst(x) ? LLVMGetOperand(x, 0) : NULL;
    bool is =
        call && LLVMIsACallInst(call) && LLVMGetCalledValue(call) == tl_leaf_declare(g->l, leaf);
    return is ? call : NULL;
}

/* The bits whose square root x is by the leaf, or NULL. */
static LLVMValueRef under_root(TlSimt *g, LLVMValueRef x)
{
    LLVMValueRef call = call_of(g, x, TL_LEAF_SQRT);
    return call ? LLVMGetOperand(call, 0) : NULL;
}

/* min(max(fma(...), 0), 1) by one instruction, or NULL. What is left of the fma and max is dead. */
static LLVMValueRef saturated_fma(TlSimt *g, LLVMValueRef *in)
{
    enum { FMA_OPERANDS = 3 };
    LLVMValueRef max = is_number(in[1], 1) ? call_of(g, in[0], TL_LEAF_MAX) : NULL, bits[3];
    if (!max || !LLVMIsNull(LLVMGetOperand(max, 1)) || !LLVMIsABitCastInst(LLVMGetOperand(max, 0)))
        return NULL;
    LLVMValueRef fma = LLVMGetOperand(LLVMGetOperand(max, 0), 0);
    if (!LLVMIsAIntrinsicInst(fma) || LLVMGetNumArgOperands(fma) != FMA_OPERANDS ||
        LLVMGetIntrinsicID(LLVMGetCalledValue(fma)) != LLVMLookupIntrinsicID("llvm.fma", 8))
        return NULL;
    for (unsigned i = 0; i < FMA_OPERANDS; i++)
        bits[i] = LLVMBuildBitCast(g->b, LLVMGetOperand(fma, i), g->i32, "");
    LLVMValueRef y = tl_simt_leaf(g, TL_LEAF_FMA_SAT, FMA_OPERANDS, bits);
    return LLVMBuildBitCast(g->b, y, g->f32, "");
}

/* 1 / x for an x that is as the leaf wants it, or NULL. */
static LLVMValueRef easy_reciprocal(TlSimt *g, const TlOp *op, LLVMValueRef *in)
{
    if (!is_number(in[0], 1) || tl_attr_int(op, TL_ATTR_APPROX, TL_APPROX_ANY) != TL_APPROX_NORMAL)
        return NULL;
    LLVMValueRef bits = LLVMBuildBitCast(g->b, in[1], g->i32, "");
    return LLVMBuildBitCast(g->b, tl_simt_leaf(g, TL_LEAF_RCP, 1, &bits), g->f32, "");
}

/* The op, or NULL, by what takes less than its own leaf. */
static LLVMValueRef by_less(TlSimt *g, const TlOp *op, tl_leaf leaf, LLVMValueRef *in)
{
    if (leaf == TL_LEAF_MIN && tl_leaf_is_of(g->options->target, TL_LEAF_FMA_SAT))
        return saturated_fma(g, in);
    if (leaf != TL_LEAF_DIV && leaf != TL_LEAF_DIV_BIG)
        return NULL;
    LLVMValueRef root = is_number(in[0], 1) ? under_root(g, in[1]) : NULL;
    if (!root)
        return easy_reciprocal(g, op, in);
    /* what is left of the root is dead */
    LLVMValueRef y = tl_simt_leaf(g, TL_LEAF_RSQRT, 1, &root);
    return LLVMBuildBitCast(g->b, y, g->f32, "");
}

LLVMValueRef tl_simt_own(TlGen *gen, const TlOp *op, LLVMValueRef *in)
{
    TlSimt *g = (TlSimt *)gen; /* gen is its first member */
    tl_leaf leaf = LLVMTypeOf(in[0]) == g->f32 ? leaf_of_op(op) : TL_LEAF_COUNT;
    if (leaf == TL_LEAF_COUNT || !tl_leaf_is_of(g->options->target, leaf))
        return NULL;
    LLVMValueRef bits[2] = {NULL, NULL}, less = by_less(g, op, leaf, in);
    if (less)
        return less;
    for (uint32_t i = 0; i < op->nin; i++)
        bits[i] = LLVMBuildBitCast(g->b, in[i], g->i32, "");
    return LLVMBuildBitCast(g->b, tl_simt_leaf(g, leaf, op->nin, bits), g->f32, "");
}

LLVMValueRef tl_simt_to_bf16(TlGen *gen, LLVMValueRef x)
{
    TlSimt *g = (TlSimt *)gen;
    if (LLVMTypeOf(x) != g->f32 || !tl_leaf_is_of(g->options->target, TL_LEAF_BF16))
        return NULL;
    LLVMValueRef bits = LLVMBuildBitCast(g->b, x, g->i32, "");
    return tl_simt_leaf(g, TL_LEAF_BF16, 1, &bits);
}

/* The operand where x was rounded to the nearest, ties to even, or NULL. */
static LLVMValueRef before_rint(LLVMValueRef x)
{
    static const char ROUND[] = "llvm.roundeven";
    unsigned id = LLVMIsAIntrinsicInst(x) ? LLVMGetIntrinsicID(LLVMGetCalledValue(x)) : 0;
    bool is = id && id == LLVMLookupIntrinsicID(ROUND, sizeof ROUND - 1);
    return is ? LLVMGetOperand(x, 0) : NULL;
}

LLVMValueRef tl_simt_to_int(TlGen *gen, LLVMValueRef x, TlDtype to)
{
    TlSimt *g = (TlSimt *)gen;
    enum { BYTE = 8, WORD = 32 };
    unsigned bits = (unsigned)tl_dtype_bits(to);
    if (LLVMTypeOf(x) != g->f32 || bits % BYTE || bits > WORD)
        return NULL;
    LLVMValueRef from = before_rint(x);
    uint32_t how = (tl_is_signed(to) ? TL_F2I_SIGNED : 0) | (from ? TL_F2I_NEAREST : 0);
    LLVMValueRef args[3] = {LLVMBuildBitCast(g->b, from ? from : x, g->i32, ""),
                            tl_simt_i32(g, bits), tl_simt_i32(g, how)};
    LLVMValueRef y = tl_simt_leaf(g, TL_LEAF_F2I, 3, args);
    return bits == WORD ? y : LLVMBuildTrunc(g->b, y, LLVMIntTypeInContext(g->c, bits), "");
}

/* ---- values as words ---- */

static LLVMTypeRef int_of_bytes(TlSimt *g, uint64_t bytes)
{
    return LLVMIntTypeInContext(g->c, 8 * (unsigned)bytes);
}

/* The value as an integer of its size in memory. */
static LLVMValueRef to_int(TlSimt *g, const TlType *type, LLVMValueRef x)
{
    LLVMTypeRef t = int_of_bytes(g, tl_gen_elem_bytes(type));
    if (type->ptr)
        return LLVMBuildPtrToInt(g->b, x, t, "");
    return LLVMBuildBitCast(g->b, tl_gen_to_mem(&g->gen, type, x), t, "");
}

static LLVMValueRef from_int(TlSimt *g, const TlType *type, LLVMValueRef x)
{
    if (type->ptr)
        return LLVMBuildIntToPtr(g->b, x, g->ptr, "");
    return tl_gen_from_mem(&g->gen, type,
                           LLVMBuildBitCast(g->b, x, tl_gen_mem_type(&g->gen, type), ""));
}

int tl_simt_to_words(TlSimt *g, const TlType *type, LLVMValueRef x, LLVMValueRef words[2])
{
    LLVMValueRef v = to_int(g, type, x);
    if (tl_gen_elem_bytes(type) < 8) {
        words[0] = LLVMBuildZExt(g->b, v, g->i32, "");
        return 1;
    }
    words[0] = LLVMBuildTrunc(g->b, v, g->i32, "");
    words[1] =
        LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, v, tl_gen_int(&g->gen, 32), ""), g->i32, "");
    return 2;
}

LLVMValueRef tl_simt_from_words(TlSimt *g, const TlType *type, LLVMValueRef *words)
{
    uint64_t bytes = tl_gen_elem_bytes(type);
    if (bytes < 8)
        return from_int(g, type, LLVMBuildTrunc(g->b, words[0], int_of_bytes(g, bytes), ""));
    LLVMValueRef low = LLVMBuildZExt(g->b, words[0], g->i64, ""),
                 high = LLVMBuildZExt(g->b, words[1], g->i64, "");
    high = LLVMBuildShl(g->b, high, tl_gen_int(&g->gen, 32), "");
    return from_int(g, type, LLVMBuildOr(g->b, low, high, ""));
}

static LLVMValueRef shuffle(TlSimt *g, const TlType *type, tl_leaf leaf, LLVMValueRef x,
                            LLVMValueRef how)
{
    LLVMValueRef words[2];
    int n = tl_simt_to_words(g, type, x, words);
    for (int i = 0; i < n; i++) {
        LLVMValueRef args[2] = {words[i], how};
        words[i] = tl_simt_leaf(g, leaf, 2, args);
    }
    return tl_simt_from_words(g, type, words);
}

LLVMValueRef tl_simt_shuffle_xor(TlSimt *g, const TlType *type, LLVMValueRef x, uint32_t mask)
{
    TL_ASSERT(mask < 1u << g->lane_bits, "lane mask %u", mask);
    return mask ? shuffle(g, type, TL_LEAF_SHFL_XOR, x, tl_simt_i32(g, mask)) : x;
}

LLVMValueRef tl_simt_shuffle_end(TlSimt *g, const TlType *type, LLVMValueRef x, uint32_t n)
{
    return shuffle(g, type, TL_LEAF_SHFL_END, x, tl_simt_i32(g, n));
}

LLVMValueRef tl_simt_shuffle_shift(TlSimt *g, const TlType *type, LLVMValueRef x, int n,
                                   uint32_t lanes, LLVMValueRef *there)
{
    LLVMValueRef words[2];
    int count = tl_simt_to_words(g, type, x, words);
    for (int i = count - 1; i >= 0; i--) {
        LLVMValueRef args[3] = {words[i], tl_simt_i32(g, (uint32_t)n), tl_simt_i32(g, lanes)};
        LLVMValueRef both = tl_simt_leaf(g, TL_LEAF_SHFL_SHIFT, 3, args);
        words[i] = LLVMBuildExtractElement(g->b, both, tl_simt_i32(g, 0), "");
        *there = LLVMBuildExtractElement(g->b, both, tl_simt_i32(g, 1), "");
    }
    *there = LLVMBuildICmp(g->b, LLVMIntNE, *there, tl_simt_i32(g, 0), "");
    return tl_simt_from_words(g, type, words);
}

LLVMValueRef tl_simt_shuffle_idx(TlSimt *g, const TlType *type, LLVMValueRef x, LLVMValueRef lane)
{
    return shuffle(g, type, TL_LEAF_SHFL_IDX, x, lane);
}

/* ---- several values as one wide one ----
 *
 * A wide value is a vector of words, a word holds one element or several small ones. What is packed
 * as it was unpacked is the word, or the wide value, that it came from: operands of matrix
 * instructions pass as words. */

enum { WORD = 4, MAX_ELEMENTS = 64 };

static LLVMTypeRef wide_type(TlSimt *g, uint64_t bytes)
{
    if (bytes <= WORD)
        return int_of_bytes(g, bytes);
    return LLVMVectorType(g->i32, (unsigned)bytes / WORD);
}

LLVMTypeRef tl_simt_wide_type(TlSimt *g, const TlType *type, int n)
{
    return wide_type(g, tl_gen_elem_bytes(type) * (uint64_t)n);
}

static LLVMTypeRef element_type(TlSimt *g, const TlType *type)
{
    return type->ptr ? g->i64 : tl_gen_mem_type(&g->gen, type);
}

static LLVMValueRef to_element(TlSimt *g, const TlType *type, LLVMValueRef x)
{
    return type->ptr ? LLVMBuildPtrToInt(g->b, x, g->i64, "") : tl_gen_to_mem(&g->gen, type, x);
}

static LLVMValueRef from_element(TlSimt *g, const TlType *type, LLVMValueRef x)
{
    return type->ptr ? LLVMBuildIntToPtr(g->b, x, g->ptr, "") : tl_gen_from_mem(&g->gen, type, x);
}

/* The number of elements in a word of n. */
static unsigned elements_of_word(const TlType *type, unsigned n)
{
    uint64_t bytes = tl_gen_elem_bytes(type);
    return bytes >= WORD ? 1 : bytes * n < WORD ? n : (unsigned)(WORD / bytes);
}

static LLVMValueRef as_type(TlSimt *g, LLVMValueRef x, LLVMTypeRef type)
{
    if (LLVMIsABitCastInst(x) && LLVMTypeOf(LLVMGetOperand(x, 0)) == type)
        return LLVMGetOperand(x, 0);
    return LLVMBuildBitCast(g->b, x, type, "");
}

static LLVMValueRef element(TlSimt *g, LLVMValueRef vector, unsigned i)
{
    return LLVMBuildExtractElement(g->b, vector, tl_simt_i32(g, i), "");
}

/* The vector of exactly these elements in this order; NULL: there is none. */
static LLVMValueRef vector_of(LLVMValueRef *x, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!LLVMIsAExtractElementInst(x[i]) ||
            LLVMGetOperand(x[i], 0) != LLVMGetOperand(x[0], 0) ||
            !LLVMIsAConstantInt(LLVMGetOperand(x[i], 1)) ||
            LLVMConstIntGetZExtValue(LLVMGetOperand(x[i], 1)) != i)
            return NULL;
    LLVMValueRef v = LLVMGetOperand(x[0], 0);
    return LLVMGetVectorSize(LLVMTypeOf(v)) == n ? v : NULL;
}

static LLVMValueRef join(TlSimt *g, LLVMValueRef *x, unsigned n)
{
    LLVMValueRef v = n > 1 ? vector_of(x, n) : x[0];
    if (v)
        return v;
    v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(x[0]), n));
    for (unsigned i = 0; i < n; i++)
        v = LLVMBuildInsertElement(g->b, v, x[i], tl_simt_i32(g, i), "");
    return v;
}

/* ---- halves of bytes ---- */

/* The byte, of any type of 8 bits, of which the element is bits `shift` to shift + 3; NULL: it is
 * no half of one. */
static LLVMValueRef byte_of_half(LLVMValueRef x, uint64_t shift)
{
    enum { HALF = 15 };
    bool masked = false;
    LLVMValueRef by = NULL;
    while (LLVMIsABinaryOperator(x) && LLVMGetInstructionOpcode(x) == LLVMAnd &&
           LLVMIsAConstantInt(LLVMGetOperand(x, 1)) &&
           LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1)) == HALF) {
        masked = true;
        x = LLVMGetOperand(x, 0);
    }
    if (LLVMIsABinaryOperator(x) && LLVMGetInstructionOpcode(x) == LLVMLShr)
        by = LLVMGetOperand(x, 1);
    if (by && LLVMIsAConstantInt(by) && LLVMConstIntGetZExtValue(by) == shift)
        return masked ? LLVMGetOperand(x, 0) : NULL;
    return masked && shift == 0 ? x : NULL;
}

/* The vector of bytes, of an integer of up to a word, that x is byte *i of; NULL. */
static LLVMValueRef bytes_with(LLVMValueRef x, uint32_t *i)
{
    LLVMValueRef v = LLVMIsAExtractElementInst(x) ? LLVMGetOperand(x, 0) : NULL;
    if (!v || !LLVMIsABitCastInst(v) || !LLVMIsAConstantInt(LLVMGetOperand(x, 1)) ||
        LLVMGetVectorSize(LLVMTypeOf(v)) > WORD)
        return NULL;
    *i = (uint32_t)LLVMConstIntGetZExtValue(LLVMGetOperand(x, 1));
    return LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(v, 0))) == LLVMIntegerTypeKind ? v : NULL;
}

/* Bytes a and b as bytes 0 and 2 of a word, with zeros between. */
static LLVMValueRef bytes_apart(TlSimt *g, LLVMValueRef a, LLVMValueRef b)
{
    enum { ZERO = WORD, HIGH = 16, BYTE = 8 };
    uint32_t i = 0, k = 0;
    LLVMValueRef from = bytes_with(a, &i);
    if (!from || bytes_with(b, &k) != from)
        return LLVMBuildOr(
            g->b, LLVMBuildZExt(g->b, a, g->i32, ""),
            LLVMBuildShl(g->b, LLVMBuildZExt(g->b, b, g->i32, ""), tl_simt_i32(g, HIGH), ""), "");
    LLVMValueRef args[] = {
        LLVMBuildZExt(g->b, LLVMGetOperand(from, 0), g->i32, ""), tl_simt_i32(g, 0),
        tl_simt_i32(g, i | ZERO << BYTE | k << HIGH | (uint32_t)ZERO << (HIGH + BYTE))};
    return tl_simt_leaf(g, TL_LEAF_BYTES, 3, args);
}

/* A word of both halves of two bytes, low ones first, by three instructions; NULL: it is none. */
static LLVMValueRef join_halves(TlSimt *g, LLVMValueRef *x, unsigned n)
{
    enum { BITS = 4, HALVES = 0x0f0f0f0f };
    LLVMValueRef bytes[WORD];
    if (n != WORD || LLVMTypeOf(x[0]) != g->i8)
        return NULL;
    for (unsigned i = 0; i < n; i++)
        bytes[i] = byte_of_half(x[i], i % 2 * BITS);
    if (!bytes[0] || !bytes[2] || bytes[0] != bytes[1] || bytes[2] != bytes[3])
        return NULL;
    LLVMValueRef apart = bytes_apart(g, bytes[0], bytes[2]),
                 both = LLVMBuildOr(g->b, apart,
                                    LLVMBuildShl(g->b, apart, tl_simt_i32(g, BITS), ""), "");
    return LLVMBuildAnd(g->b, both, tl_simt_i32(g, HALVES), "");
}

LLVMValueRef tl_simt_pack(TlSimt *g, const TlType *type, int n, LLVMValueRef *x)
{
    TL_ASSERT(n > 0 && (n & (n - 1)) == 0, "%d values in one", n);
    LLVMValueRef e[MAX_ELEMENTS], words[MAX_ELEMENTS];
    unsigned count = (unsigned)n, in_word = elements_of_word(type, count), nwords = count / in_word;
    uint64_t bytes = tl_gen_elem_bytes(type);
    TL_ASSERT(n <= MAX_ELEMENTS, "%d elements", n);
    for (unsigned i = 0; i < count; i++)
        e[i] = to_element(g, type, x[i]);
    for (unsigned w = 0; w < nwords; w++) {
        words[w] = join_halves(g, e + w * in_word, in_word);
        if (words[w])
            continue;
        words[w] = join(g, e + w * in_word, in_word);
        if (bytes < WORD)
            words[w] = as_type(g, words[w], int_of_bytes(g, bytes * in_word));
    }
    return as_type(g, join(g, words, nwords), wide_type(g, bytes * count));
}

void tl_simt_unpack(TlSimt *g, const TlType *type, LLVMValueRef wide, int n, LLVMValueRef *out)
{
    TL_ASSERT(n > 0 && (n & (n - 1)) == 0, "%d values of one", n);
    LLVMTypeRef elem = element_type(g, type);
    unsigned count = (unsigned)n, in_word = elements_of_word(type, count), nwords = count / in_word;
    LLVMValueRef v = wide;
    if (tl_gen_elem_bytes(type) >= WORD)
        v = as_type(g, wide, tl_gen_vec(elem, n));
    for (unsigned w = 0; w < nwords; w++) {
        LLVMValueRef word = nwords > 1 ? element(g, v, w) : v;
        word = as_type(g, word, tl_gen_vec(elem, (int)in_word));
        for (unsigned i = 0; i < in_word; i++)
            out[w * in_word + i] = from_element(g, type, in_word > 1 ? element(g, word, i) : word);
    }
}

tl_leaf tl_simt_sized(tl_leaf_family family, uint64_t bytes)
{
    tl_leaf leaf = tl_leaf_of_size(family, 8 * (uint32_t)bytes);
    TL_ASSERT(leaf != TL_LEAF_COUNT, "an access of %u bytes", (unsigned)bytes);
    return leaf;
}

void tl_simt_shared_store(TlSimt *g, const TlType *type, LLVMValueRef offset, LLVMValueRef pred,
                          int n, LLVMValueRef *x)
{
    TL_ASSERT(n > 0 && offset, "%d registers to store", n);
    LLVMValueRef args[3] = {offset, pred ? pred : LLVMConstInt(g->i1, 1, 0),
                            tl_simt_pack(g, type, n, x)};
    tl_simt_leaf(g, tl_simt_sized(TL_LEAF_FAMILY_STS, tl_gen_elem_bytes(type) * (uint64_t)n), 3,
                 args);
}

void tl_simt_shared_load(TlSimt *g, const TlType *type, LLVMValueRef offset, int n,
                         LLVMValueRef *out)
{
    TL_ASSERT(n > 0 && offset, "%d registers to load", n);
    tl_leaf leaf = tl_simt_sized(TL_LEAF_FAMILY_LDS, tl_gen_elem_bytes(type) * (uint64_t)n);
    tl_simt_unpack(g, type, tl_simt_leaf(g, leaf, 1, &offset), n, out);
}
