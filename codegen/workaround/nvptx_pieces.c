/* Elements of vectors in PTX, which has none: found where they come from.
 *
 *     %w = insertelement %v, float %x, 2            %p = bitcast <2 x half> %h to i32
 *     %b = bitcast <4 x float> %w to <4 x i32>  =>  call @llvm.nvvm.mma...(float %x, ...)
 *     %e = extractelement %b, 2; bitcast to float
 *
 * Leaves take and give vectors: what one gathers the next one takes apart. A matrix instruction by
 * four registers has some forty such ops around it, which LLVM's code generator goes through pass
 * by pass until nothing is left of them: half of its time for attention.
 *
 * An element is a piece of so many bits from a bit of the vector on. It is followed through
 * inserts, shuffles and bitcasts to a value of just these bits; a piece of two elements, each
 * found, is put together. What is dead then goes. */
#include "codegen/workaround/workaround.h"

enum { MOST_STEPS = 64 }; /* from a piece back to where it is made: chains are as long as vectors */

typedef struct Pieces {
    LLVMBuilderRef b;
    LLVMTypeRef i32;
    TlMap casts; /* a scalar to it as another type, right behind it; of the type cast to last */
} Pieces;

/* Bits of a scalar, or of an element of a vector; 0: not looked into. */
static unsigned bits_of(LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(t) % 8 ? 0 : LLVMGetIntTypeWidth(t);
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind: return 16;
    case LLVMFloatTypeKind: return 32;
    case LLVMDoubleTypeKind: return 64;
    case LLVMVectorTypeKind: return bits_of(LLVMGetElementType(t));
    default: return 0;
    }
}

static bool is_vector(LLVMValueRef v)
{
    return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}

static unsigned all_bits_of(LLVMValueRef v)
{
    unsigned n = is_vector(v) ? LLVMGetVectorSize(LLVMTypeOf(v)) : 1;
    return n * bits_of(LLVMTypeOf(v));
}

/* A value that begins at `at`, having `bits`. */
typedef struct Piece {
    LLVMValueRef v;
    unsigned at, bits;
} Piece;

/* Into one element that is inserted, or past it. False: neither. */
static bool step_insert(Piece *p)
{
    LLVMValueRef index = LLVMGetOperand(p->v, 2);
    unsigned bits = bits_of(LLVMTypeOf(p->v));
    if (!LLVMIsAConstantInt(index))
        return false;
    unsigned from = (unsigned)LLVMConstIntGetZExtValue(index) * bits;
    if (p->at >= from && p->at + p->bits <= from + bits)
        *p = (Piece){LLVMGetOperand(p->v, 1), p->at - from, p->bits};
    else if (p->at + p->bits <= from || p->at >= from + bits)
        p->v = LLVMGetOperand(p->v, 0);
    else
        return false;
    return true;
}

static bool step_shuffle(Piece *p)
{
    unsigned bits = bits_of(LLVMTypeOf(p->v)), k = p->at / bits;
    LLVMValueRef first = LLVMGetOperand(p->v, 0);
    unsigned n = LLVMGetVectorSize(LLVMTypeOf(first));
    if (p->at % bits + p->bits > bits || k >= LLVMGetNumMaskElements(p->v))
        return false;
    int from = LLVMGetMaskValue(p->v, k);
    if (from < 0)
        return false;
    bool second = (unsigned)from >= n;
    p->v = second ? LLVMGetOperand(p->v, 1) : first;
    p->at = ((unsigned)from - (second ? n : 0)) * bits + p->at % bits;
    return true;
}

static bool step(Piece *p)
{
    if (!LLVMIsAInstruction(p->v) || !bits_of(LLVMTypeOf(p->v)))
        return false;
    switch (LLVMGetInstructionOpcode(p->v)) {
    case LLVMInsertElement: return step_insert(p);
    case LLVMShuffleVector: return step_shuffle(p);
    case LLVMBitCast: p->v = LLVMGetOperand(p->v, 0); return true;
    default: return false;
    }
}

/* The piece as a value of its own, of any type; NULL: there is none. */
static LLVMValueRef find(const Pieces *x, Piece p, bool in_two)
{
    for (int i = 0; i < MOST_STEPS; i++) {
        if (p.at == 0 && bits_of(LLVMTypeOf(p.v)) && all_bits_of(p.v) == p.bits &&
            !(in_two && is_vector(p.v)))
            return p.v;
        if (!step(&p))
            break;
    }
    if (in_two || !is_vector(p.v) || 2 * bits_of(LLVMTypeOf(p.v)) != p.bits)
        return NULL;
    LLVMTypeRef element = LLVMGetElementType(LLVMTypeOf(p.v));
    LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(element, 2));
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef half = find(x, (Piece){p.v, p.at + i * p.bits / 2, p.bits / 2}, true);
        if (!half)
            return NULL; /* what has been built is dead */
        half = LLVMBuildBitCast(x->b, half, element, "");
        pair = LLVMBuildInsertElement(x->b, pair, half, LLVMConstInt(x->i32, i, 0), "");
    }
    return pair;
}

/* v as another type of equal size: the cast that stands behind v, for all that ask. */
static LLVMValueRef as_type(Pieces *x, LLVMValueRef v, LLVMTypeRef t)
{
    LLVMValueRef cast = tl_map_get_ptr(&x->casts, v);
    if (LLVMTypeOf(v) == t)
        return v;
    if (cast && LLVMTypeOf(cast) == t)
        return cast;
    bool follows = LLVMIsAInstruction(v) && !LLVMIsAPHINode(v);
    if (follows)
        LLVMPositionBuilderBefore(x->b, LLVMGetNextInstruction(v));
    cast = LLVMBuildBitCast(x->b, v, t, "");
    if (follows)
        tl_map_put_ptr(&x->casts, v, cast);
    return cast;
}

static void replace(Pieces *x, LLVMValueRef op)
{
    LLVMValueRef v = LLVMGetOperand(op, 0);
    LLVMTypeRef t = LLVMTypeOf(op);
    unsigned bits = bits_of(t), at = 0;
    if (!bits || !LLVMGetFirstUse(op))
        return;
    if (LLVMIsAExtractElementInst(op)) {
        LLVMValueRef index = LLVMGetOperand(op, 1);
        if (!LLVMIsAConstantInt(index))
            return;
        at = (unsigned)LLVMConstIntGetZExtValue(index) * bits;
    } else if (!LLVMIsABitCastInst(op)) {
        return;
    } else if (LLVMGetTypeKind(t) == LLVMVectorTypeKind) {
        if (!is_vector(v) && LLVMIsAInstruction(v) && !LLVMIsAPHINode(v))
            LLVMReplaceAllUsesWith(op, as_type(x, v, t));
        return;
    }
    LLVMPositionBuilderBefore(x->b, op);
    LLVMValueRef found = find(x, (Piece){v, at, bits}, false);
    if (found && found != v)
        LLVMReplaceAllUsesWith(op, as_type(x, found, t));
}

static bool is_move(LLVMValueRef op)
{
    return LLVMIsAExtractElementInst(op) || LLVMIsAInsertElementInst(op) ||
           LLVMIsAShuffleVectorInst(op) || LLVMIsABitCastInst(op);
}

static void sweep(LLVMBasicBlockRef block)
{
    for (LLVMValueRef op = LLVMGetLastInstruction(block), before; op; op = before) {
        before = LLVMGetPreviousInstruction(op);
        if (is_move(op) && !LLVMGetFirstUse(op))
            LLVMInstructionEraseFromParent(op);
    }
}

void tl_nvptx_pieces(TlLlvm *l, LLVMBuilderRef builder, LLVMValueRef function)
{
    Pieces x = {builder, LLVMInt32TypeInContext(l->context), {0}};
    LLVMBasicBlockRef b;
    tl_map_init(&x.casts, l->arena);
    for (b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef op = LLVMGetFirstInstruction(b); op; op = LLVMGetNextInstruction(op))
            replace(&x, op);
    for (b = LLVMGetLastBasicBlock(function); b; b = LLVMGetPreviousBasicBlock(b))
        sweep(b);
}
