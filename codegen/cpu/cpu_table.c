/* Functions of four bits, computed by one instruction.
 *
 * Weights of 4 bits are taken from their bytes, shifted, widened and converted: several
 * instructions for each vector, whether they stand for q - 8 as an f32 or for a small float
 * format. But such a function has only 16 values, and AVX-512 has an instruction that looks up 16
 * elements at once. It reads the low four bits of each index, so no mask is needed.
 *
 *   1. find     values of 32 bits that are computed from constants and one code only: what is left
 *               of an integer after a mask or a shift that leaves four bits or fewer
 *   2. compute  the function for 0 .. 15: LLVM folds it, given constants
 *   3. replace  the value by a look-up */
#include "codegen/cpu/cpu.h"

/* Values of four bits; instructions of a function, at the most (recursion) and at the least. */
enum { CODES = 16, MOST_NODES = 48, LEAST_NODES = 2 };

typedef struct Table {
    TlGen *g;
    LLVMBuilderRef b;
    LLVMValueRef code;
    int nodes; /* visited */
} Table;

static unsigned lanes_of(LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetVectorSize(t) : 0;
}

static bool is(LLVMValueRef x, LLVMOpcode opcode)
{
    return LLVMIsAInstruction(x) && LLVMGetInstructionOpcode(x) == opcode;
}

/* ---- 1. find ---- */

/* The element that all lanes of a constant have; NULL: they differ. */
static LLVMValueRef splat_of(LLVMValueRef x)
{
    unsigned n = lanes_of(x);
    LLVMValueRef first = n && LLVMIsConstant(x) ? LLVMGetAggregateElement(x, 0) : NULL;
    for (unsigned i = 1; i < n && first; i++)
        if (LLVMGetAggregateElement(x, i) != first)
            return NULL;
    return first;
}

static bool splat_int(LLVMValueRef x, uint64_t *out)
{
    LLVMValueRef c = splat_of(x);
    if (!c || !LLVMIsAConstantInt(c))
        return false;
    *out = LLVMConstIntGetZExtValue(c);
    return true;
}

static bool leaves_four_bits(LLVMValueRef x)
{
    uint64_t c;
    if (is(x, LLVMAnd))
        return splat_int(LLVMGetOperand(x, 1), &c) && c < CODES;
    return is(x, LLVMLShr) && splat_int(LLVMGetOperand(x, 1), &c) &&
           LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(x))) <= c + 4;
}

/* A part of a code is none: the code is where the four bits come from. */
static bool is_code(LLVMValueRef x)
{
    return leaves_four_bits(x) && !leaves_four_bits(LLVMGetOperand(x, 0));
}

static bool is_function(LLVMValueRef x)
{
    if (!LLVMIsAInstruction(x))
        return false;
    LLVMOpcode o = LLVMGetInstructionOpcode(x);
    return LLVMIsABinaryOperator(x) || LLVMIsACastInst(x) || o == LLVMSelect || o == LLVMICmp;
}

/* Is x computed from constants and t->code, which is the first code that is found? */
static bool find(Table *t, LLVMValueRef x, unsigned lanes)
{
    if (LLVMIsConstant(x))
        return splat_of(x) != NULL;
    if (lanes_of(x) != lanes)
        return false;
    if (is_code(x)) {
        t->code = t->code ? t->code : x;
        return t->code == x;
    }
    if (++t->nodes > MOST_NODES || !is_function(x))
        return false;
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(x); i++)
        if (!find(t, LLVMGetOperand(x, i), lanes))
            return false;
    return true;
}

/* ---- 2. compute ---- */

static LLVMValueRef value_for(const Table *t, LLVMValueRef x, LLVMValueRef codes)
{
    if (LLVMIsConstant(x) || x == t->code)
        return x == t->code ? codes : x;
    LLVMValueRef in[3] = {NULL};
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(x); i++)
        in[i] = value_for(t, LLVMGetOperand(x, i), codes);
    if (LLVMIsACastInst(x))
        return LLVMBuildCast(t->b, LLVMGetInstructionOpcode(x), in[0], LLVMTypeOf(x), "");
    if (is(x, LLVMSelect))
        return LLVMBuildSelect(t->b, in[0], in[1], in[2], "");
    if (is(x, LLVMICmp))
        return LLVMBuildICmp(t->b, LLVMGetICmpPredicate(x), in[0], in[1], "");
    return LLVMBuildBinOp(t->b, LLVMGetInstructionOpcode(x), in[0], in[1], "");
}

/* The function's values, a vector of 16; NULL: LLVM does not fold it. */
static LLVMValueRef table_of(const Table *t, LLVMValueRef x)
{
    LLVMValueRef codes[TL_NEST_LANES], values[CODES];
    unsigned n = lanes_of(x);
    LLVMTypeRef type = LLVMGetElementType(LLVMTypeOf(t->code));
    for (unsigned i = 0; i < n; i++)
        codes[i] = LLVMConstInt(type, i % CODES, 0);
    LLVMValueRef all = value_for(t, x, LLVMConstVector(codes, n));
    if (!LLVMIsConstant(all))
        return NULL;
    for (unsigned i = 0; i < CODES; i++) {
        values[i] = LLVMGetAggregateElement(all, i);
        if (!LLVMIsAConstantInt(values[i]) && !LLVMIsAConstantFP(values[i]))
            return NULL;
    }
    return LLVMConstVector(values, CODES);
}

/* ---- 3. replace ---- */

/* The code as i32: what is masked without its mask, and what is shifted is widened before that, as
 * the other half of the same byte is. */
static LLVMValueRef index_of(const Table *t)
{
    unsigned n = lanes_of(t->code);
    LLVMTypeRef i32s = LLVMVectorType(t->g->i32, n);
    LLVMValueRef from = LLVMGetOperand(t->code, 0);
    uint64_t c = 0;
    splat_int(LLVMGetOperand(t->code, 1), &c);
    bool shifts = is(t->code, LLVMLShr);
    if (!shifts && c != CODES - 1)
        from = t->code;
    LLVMValueRef wide = LLVMBuildIntCast2(t->b, from, i32s, 0, "");
    LLVMValueRef by = tl_gen_splat(t->g, LLVMConstInt(t->g->i32, c, 0), (int)n);
    return shifts ? LLVMBuildLShr(t->b, wide, by, "") : wide;
}

static LLVMValueRef lanes_from(const Table *t, LLVMValueRef x, LLVMValueRef y, unsigned first,
                               unsigned n)
{
    LLVMValueRef which[TL_NEST_LANES];
    for (unsigned i = 0; i < n; i++)
        which[i] = LLVMConstInt(t->g->i32, first + i, 0);
    return LLVMBuildShuffleVector(t->b, x, y, LLVMConstVector(which, n), "");
}

static LLVMValueRef look_up(const Table *t, LLVMValueRef table, LLVMValueRef index)
{
    LLVMValueRef args[2] = {table, index};
    return tl_llvm_intrinsic(t->g->l, t->b, "llvm.x86.avx512.permvar.sf.512", NULL, 0, args, 2);
}

static LLVMValueRef look_up_all(const Table *t, LLVMValueRef table, LLVMValueRef index)
{
    if (lanes_of(index) == CODES)
        return look_up(t, table, index);
    LLVMValueRef half[2];
    for (unsigned i = 0; i < 2; i++)
        half[i] = look_up(t, table, lanes_from(t, index, index, i * CODES, CODES));
    return lanes_from(t, half[0], half[1], 0, 2 * CODES);
}

static bool may_be_looked_up(LLVMValueRef x)
{
    unsigned n = lanes_of(x);
    return (n == CODES || n == 2 * CODES) && is_function(x) &&
           LLVMGetTypeKind(LLVMGetElementType(LLVMTypeOf(x))) == LLVMFloatTypeKind;
}

static void replace(TlGen *g, LLVMBuilderRef b, LLVMValueRef x)
{
    Table t = {.g = g, .b = b};
    if (!may_be_looked_up(x) || !find(&t, x, lanes_of(x)) || !t.code || t.nodes < LEAST_NODES)
        return;
    LLVMPositionBuilderBefore(b, x);
    LLVMValueRef table = table_of(&t, x);
    if (!table)
        return;
    LLVMReplaceAllUsesWith(x, look_up_all(&t, table, index_of(&t)));
    LLVMInstructionEraseFromParent(x);
}

void tl_cpu_look_up(TlLlvm *l)
{
    if (!tl_llvm_has_feature(l, "avx512f"))
        return;
    TlGen g = {.l = NULL};
    tl_gen_init(&g, l, NULL, l->arena);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(l->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block))
            for (LLVMValueRef x = LLVMGetLastInstruction(block), before; x; x = before) {
                before = LLVMGetPreviousInstruction(x);
                if (is_function(x) && !LLVMGetFirstUse(x)) /* of what was replaced */
                    LLVMInstructionEraseFromParent(x);
                else
                    replace(&g, b, x);
            }
    LLVMDisposeBuilder(b);
}
