/* Masked accesses by SVE's predicates, in vectors of 128 bits, whatever length the CPU's have.
 *
 *     %m = icmp ult <4 x i32> %i, %n
 *     %x = call <4 x i8> @llvm.masked.load(%p, <4 x i1> %m, zeroinitializer)
 *  =>
 *     %g = call <vscale x 4 x i1> @llvm.aarch64.sve.ptrue(vl4)
 *     %k = call <vscale x 4 x i1> @llvm.aarch64.sve.cmphi(%g, insert %n, insert %i)
 *     %y = call <vscale x 4 x i8> @llvm.masked.load(%p, %k, zeroinitializer)
 *     %x = trunc(extract(zext %y to <vscale x 4 x i32>))
 *
 * LLVM has an instruction for such an access only where the vector fills the 128 bits exactly, and
 * none for gathers and scatters, unless it may count on vectors of 256 bits: lane by lane it takes
 * 18 cycles for four elements. So accesses are cut into pieces of at most 128 bits whose lanes are
 * as wide as the register allows (memory has narrower ones: ld1b to words). No more than the first
 * 128 bits' lanes are ever active, so the code is right for vectors of every length. Conditions
 * that hold together are compared one under the other's predicate. */
#include "codegen/workaround/workaround.h"
#include <llvm-c/Target.h>
#include <string.h>

enum { REGISTER = 128, MOST_LANES = 64 };

typedef struct Masked {
    TlLlvm *l;
    LLVMBuilderRef b;
    LLVMTypeRef word; /* i64 */
    unsigned n, bits; /* of a piece: lanes, and bits of a lane in the register */
    unsigned elem;    /* bits of one in memory */
    unsigned at;      /* the piece's first lane */
} Masked;

/* ---- types ---- */

static LLVMTypeRef integer(const Masked *m, unsigned bits)
{
    return LLVMIntTypeInContext(m->l->context, bits);
}

static LLVMTypeRef scalable(const Masked *m, unsigned bits)
{
    return LLVMScalableVectorType(integer(m, bits), m->n);
}

static LLVMTypeRef predicate(const Masked *m)
{
    return scalable(m, 1);
}

/* ---- pieces ---- */

/* The piece's lanes of a vector. */
static LLVMValueRef piece(const Masked *m, LLVMValueRef x)
{
    LLVMValueRef at[MOST_LANES];
    if (LLVMGetVectorSize(LLVMTypeOf(x)) == m->n)
        return x;
    for (unsigned i = 0; i < m->n; i++)
        at[i] = LLVMConstInt(integer(m, 32), m->at + i, 0);
    return LLVMBuildShuffleVector(m->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(at, m->n),
                                  "");
}

/* A vector of the piece's lanes at the start of a register. */
static LLVMValueRef insert(const Masked *m, LLVMValueRef x)
{
    LLVMTypeRef fixed = LLVMTypeOf(x), elem = LLVMGetElementType(fixed),
                types[] = {LLVMScalableVectorType(elem, m->n), fixed};
    LLVMValueRef args[] = {LLVMGetPoison(types[0]), x, LLVMConstInt(m->word, 0, 0)};
    return tl_llvm_intrinsic(m->l, m->b, "llvm.vector.insert", types, 2, args, 3);
}

static LLVMValueRef extract(const Masked *m, LLVMValueRef x)
{
    LLVMTypeRef types[] = {LLVMVectorType(LLVMGetElementType(LLVMTypeOf(x)), m->n), LLVMTypeOf(x)};
    LLVMValueRef args[] = {x, LLVMConstInt(m->word, 0, 0)};
    return tl_llvm_intrinsic(m->l, m->b, "llvm.vector.extract", types, 2, args, 2);
}

/* A piece of data, as integers of memory's bits. */
static LLVMValueRef to_register(const Masked *m, LLVMValueRef data)
{
    if (LLVMIsUndef(data))
        return LLVMGetPoison(scalable(m, m->elem));
    if (LLVMIsNull(data))
        return LLVMConstNull(scalable(m, m->elem));
    LLVMValueRef x = piece(m, data);
    x = LLVMBuildBitCast(m->b, x, LLVMVectorType(integer(m, m->elem), m->n), "");
    if (m->elem == m->bits)
        return insert(m, x);
    x = insert(m, LLVMBuildZExt(m->b, x, LLVMVectorType(integer(m, m->bits), m->n), ""));
    return LLVMBuildTrunc(m->b, x, scalable(m, m->elem), "");
}

/* And back, as lanes of this type. */
static LLVMValueRef from_register(const Masked *m, LLVMValueRef x, LLVMTypeRef elem)
{
    if (m->elem < m->bits)
        x = LLVMBuildZExt(m->b, x, scalable(m, m->bits), "");
    x = extract(m, x);
    if (m->elem < m->bits)
        x = LLVMBuildTrunc(m->b, x, LLVMVectorType(integer(m, m->elem), m->n), "");
    return LLVMBuildBitCast(m->b, x, LLVMVectorType(elem, m->n), "");
}

static LLVMValueRef join(const Masked *m, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef at[MOST_LANES];
    unsigned have = LLVMGetVectorSize(LLVMTypeOf(a)), all = have + m->n;
    LLVMValueRef wide[MOST_LANES]; /* the piece, as long as what is there */
    for (unsigned i = 0; i < have; i++)
        wide[i] = LLVMConstInt(integer(m, 32), i < m->n ? i : 0, 0);
    if (have > m->n)
        b = LLVMBuildShuffleVector(m->b, b, LLVMGetPoison(LLVMTypeOf(b)),
                                   LLVMConstVector(wide, have), "");
    for (unsigned i = 0; i < all; i++)
        at[i] = LLVMConstInt(integer(m, 32), i, 0);
    return LLVMBuildShuffleVector(m->b, a, b, LLVMConstVector(at, all), "");
}

/* ---- predicates ---- */

/* The first `lanes` of the register. The pattern of an instruction: VL1 to VL8, VL16. */
static LLVMValueRef first_lanes(const Masked *m, unsigned lanes)
{
    enum { VL16 = 9 };
    LLVMTypeRef type = predicate(m);
    LLVMValueRef pattern = LLVMConstInt(integer(m, 32), lanes == 16 ? VL16 : lanes, 0);
    return tl_llvm_intrinsic(m->l, m->b, "llvm.aarch64.sve.ptrue", &type, 1, &pattern, 1);
}

static LLVMValueRef compare(const Masked *m, const char *name, LLVMValueRef under, LLVMValueRef x,
                            LLVMValueRef y)
{
    LLVMTypeRef type = scalable(m, m->bits);
    LLVMValueRef args[] = {under, x, y};
    return tl_llvm_intrinsic(m->l, m->b, name, &type, 1, args, 3);
}

/* `reversed`: with the operands exchanged. */
static const char *name_of(LLVMIntPredicate p, bool *reversed)
{
    *reversed = p == LLVMIntULT || p == LLVMIntULE || p == LLVMIntSLT || p == LLVMIntSLE;
    switch (p) {
    case LLVMIntEQ: return "llvm.aarch64.sve.cmpeq";
    case LLVMIntNE: return "llvm.aarch64.sve.cmpne";
    case LLVMIntUGT:
    case LLVMIntULT: return "llvm.aarch64.sve.cmphi";
    case LLVMIntUGE:
    case LLVMIntULE: return "llvm.aarch64.sve.cmphs";
    case LLVMIntSGT:
    case LLVMIntSLT: return "llvm.aarch64.sve.cmpgt";
    case LLVMIntSGE:
    case LLVMIntSLE: return "llvm.aarch64.sve.cmpge";
    }
    TL_UNREACHABLE("a comparison of kind %d", (int)p);
}

/* Does x compare integers as wide as the register's lanes? */
static bool compares_lanes(const Masked *m, LLVMValueRef x)
{
    if (!LLVMIsAICmpInst(x))
        return false;
    LLVMTypeRef elem = LLVMGetElementType(LLVMTypeOf(LLVMGetOperand(x, 0)));
    return LLVMGetTypeKind(elem) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(elem) == m->bits;
}

/* How many of the piece's lanes a constant mask has, which are its first ones; -1: it is none. */
static int count_first(const Masked *m, LLVMValueRef mask)
{
    unsigned lanes = 0;
    if (!LLVMIsConstant(mask))
        return -1;
    for (unsigned i = 0; i < m->n; i++) {
        LLVMValueRef lane = LLVMGetAggregateElement(mask, m->at + i);
        if (!lane || !(LLVMIsAConstantInt(lane) || LLVMIsUndef(lane)))
            return -1;
        if (!LLVMIsAConstantInt(lane) || LLVMConstIntGetZExtValue(lane) == 0)
            continue;
        if (lanes++ != i)
            return -1;
    }
    return (int)lanes;
}

/* Lanes of the register, all of whose bits are set where the mask holds. A comparison gives lanes
 * as wide as what it compares: those are cut and widened, not single bits. */
static LLVMValueRef ones_of(const Masked *m, LLVMValueRef mask)
{
    unsigned bits = m->bits;
    if (LLVMIsACmpInst(mask)) {
        LLVMTypeRef elem = LLVMGetElementType(LLVMTypeOf(LLVMGetOperand(mask, 0)));
        bool is_pointer = LLVMGetTypeKind(elem) == LLVMPointerTypeKind;
        bits = is_pointer
                   ? 64
                   : (unsigned)LLVMSizeOfTypeInBits(LLVMGetModuleDataLayout(m->l->module), elem);
    }
    LLVMTypeRef wide = LLVMVectorType(integer(m, bits), LLVMGetVectorSize(LLVMTypeOf(mask))),
                to = LLVMVectorType(integer(m, m->bits), m->n);
    LLVMValueRef x = piece(m, LLVMBuildSExt(m->b, mask, wide, ""));
    return bits < m->bits   ? LLVMBuildSExt(m->b, x, to, "")
           : bits > m->bits ? LLVMBuildTrunc(m->b, x, to, "")
                            : x;
}

/* Where the mask holds, of the lanes of `under`; NULL stands for all of the piece's lanes. */
static LLVMValueRef lanes_of(const Masked *m, LLVMValueRef mask, LLVMValueRef under)
{
    int first = count_first(m, mask);
    if (first == (int)m->n)
        return under ? under : first_lanes(m, m->n);
    if (first == 0)
        return LLVMConstNull(predicate(m));
    if (first > 0 && first <= 8 && !under)
        return first_lanes(m, (unsigned)first);
    /* a && b; LLVM also writes it as a ? b : false */
    bool both = LLVMIsAInstruction(mask) && LLVMGetInstructionOpcode(mask) == LLVMAnd,
         chosen = LLVMIsASelectInst(mask) && LLVMIsNull(LLVMGetOperand(mask, 2)) &&
                  LLVMTypeOf(LLVMGetOperand(mask, 0)) == LLVMTypeOf(mask);
    if (both || chosen)
        return lanes_of(m, LLVMGetOperand(mask, 1), lanes_of(m, LLVMGetOperand(mask, 0), under));
    under = under ? under : first_lanes(m, m->n);
    if (compares_lanes(m, mask)) {
        bool reversed;
        const char *name = name_of(LLVMGetICmpPredicate(mask), &reversed);
        LLVMValueRef x = insert(m, piece(m, LLVMGetOperand(mask, reversed))),
                     y = insert(m, piece(m, LLVMGetOperand(mask, !reversed)));
        return compare(m, name, under, x, y);
    }
    return compare(m, "llvm.aarch64.sve.cmpne", under, insert(m, ones_of(m, mask)),
                   LLVMConstNull(scalable(m, m->bits)));
}

/* ---- addresses ---- */

/* The scalar that all lanes of x are; NULL. */
static LLVMValueRef splat_of(LLVMValueRef x)
{
    if (!LLVMIsAShuffleVectorInst(x))
        return NULL;
    for (unsigned i = 0; i < LLVMGetNumMaskElements(x); i++)
        if (LLVMGetMaskValue(x, i) != 0)
            return NULL;
    LLVMValueRef in = LLVMGetOperand(x, 0);
    return LLVMIsAInsertElementInst(in) && LLVMIsNull(LLVMGetOperand(in, 2)) ? LLVMGetOperand(in, 1)
                                                                             : NULL;
}

/* Where a piece's lanes lie. Elements of one array: its address, and their numbers in it, as words
 * where they are no more, which the instruction extends. */
static LLVMValueRef addresses(const Masked *m, LLVMValueRef p)
{
    if (LLVMIsAGetElementPtrInst(p) && LLVMGetNumOperands(p) == 2) {
        LLVMValueRef base = LLVMGetOperand(p, 0), index = LLVMGetOperand(p, 1), words = index;
        bool is_vector = LLVMGetTypeKind(LLVMTypeOf(base)) == LLVMVectorTypeKind;
        base = is_vector ? splat_of(base) : base;
        bool is_signed = LLVMIsASExtInst(index), extends = is_signed || LLVMIsAZExtInst(index);
        if (extends)
            words = LLVMGetOperand(index, 0);
        if (base && LLVMGetTypeKind(LLVMTypeOf(index)) == LLVMVectorTypeKind) {
            LLVMValueRef at = insert(m, piece(m, m->bits < 64 ? words : index));
            if (m->bits < 64)
                at = is_signed ? LLVMBuildSExt(m->b, at, scalable(m, 64), "")
                               : LLVMBuildZExt(m->b, at, scalable(m, 64), "");
            return LLVMBuildGEP2(m->b, LLVMGetGEPSourceElementType(p), base, &at, 1, "");
        }
    }
    TL_ASSERT(m->bits == 64, "addresses in %u bits", m->bits);
    LLVMTypeRef pointers = LLVMScalableVectorType(LLVMPointerTypeInContext(m->l->context, 0), m->n);
    LLVMValueRef at = LLVMBuildPtrToInt(m->b, piece(m, p), LLVMVectorType(m->word, m->n), "");
    return LLVMBuildIntToPtr(m->b, insert(m, at), pointers, "");
}

/* Are the lanes' numbers in an array words? */
static bool has_words(LLVMValueRef p)
{
    if (!LLVMIsAGetElementPtrInst(p) || LLVMGetNumOperands(p) != 2)
        return false;
    LLVMValueRef base = LLVMGetOperand(p, 0), index = LLVMGetOperand(p, 1);
    if (LLVMGetTypeKind(LLVMTypeOf(base)) == LLVMVectorTypeKind && !splat_of(base))
        return false;
    if (!LLVMIsASExtInst(index) && !LLVMIsAZExtInst(index))
        return false;
    LLVMTypeRef from = LLVMTypeOf(LLVMGetOperand(index, 0));
    return LLVMGetTypeKind(from) == LLVMVectorTypeKind &&
           LLVMGetIntTypeWidth(LLVMGetElementType(from)) == 32;
}

/* ---- accesses ---- */

static void replace(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef call, TlMasked kind)
{
    const TlMaskedAccess *a = &tl_masked_accesses[kind];
    bool loads = kind == TL_MASKED_LOAD || kind == TL_MASKED_GATHER,
         apart = kind == TL_MASKED_GATHER || kind == TL_MASKED_SCATTER;
    LLVMValueRef data = LLVMGetOperand(call, a->data), mask = LLVMGetOperand(call, a->mask),
                 p = LLVMGetOperand(call, a->pointer), all = NULL;
    LLVMTypeRef elem = LLVMGetElementType(LLVMTypeOf(data));
    unsigned width = LLVMGetVectorSize(LLVMTypeOf(data)),
             bytes = (unsigned)LLVMABISizeOfType(LLVMGetModuleDataLayout(l->module), elem);
    if (width < 2 || width > MOST_LANES || (width & (width - 1)) || bytes > 8 ||
        LLVMGetTypeKind(elem) == LLVMPointerTypeKind)
        return;
    unsigned least = !apart || bytes == 8 || has_words(p) ? bytes : 8, most = REGISTER / 8 / least;
    most = apart && most > 4 ? 4 : most;
    Masked m = {.l = l,
                .b = b,
                .word = LLVMInt64TypeInContext(l->context),
                .n = width < most ? width : most,
                .elem = 8 * bytes};
    m.bits = REGISTER / m.n;
    LLVMPositionBuilderBefore(b, call);
    for (; m.at < width; m.at += m.n) {
        LLVMValueRef lanes = lanes_of(&m, mask, NULL), at = p, x;
        if (apart)
            at = addresses(&m, p);
        else if (m.at) {
            LLVMValueRef by = LLVMConstInt(m.word, m.at, 0);
            at = LLVMBuildGEP2(b, elem, p, &by, 1, "");
        }
        x = tl_llvm_masked(l, b, kind, at, bytes, lanes, to_register(&m, data));
        if (loads) {
            x = from_register(&m, x, elem);
            all = all ? join(&m, all, x) : x;
        }
    }
    if (loads)
        LLVMReplaceAllUsesWith(call, all);
    LLVMInstructionEraseFromParent(call);
}

void tl_arm_masked(TlLlvm *l, LLVMBuilderRef b, LLVMValueRef function)
{
    TL_ASSERT(function, "no function");
    if (!tl_llvm_has_feature(l, "sve"))
        return;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef x = LLVMGetFirstInstruction(block), next; x; x = next) {
            next = LLVMGetNextInstruction(x);
            for (int kind = 0; kind < TL_MASKED_COUNT; kind++)
                if (tl_llvm_is_call_of(x, tl_masked_accesses[kind].name)) {
                    replace(l, b, x, (TlMasked)kind);
                    break;
                }
        }
}
