/* Casts from and to floats of 8 and 4 bits, two at a time by an instruction (leaves OF_F8, TO_F8,
 * OF_F4, TO_F4). From: the instruction gives two f16, which have all these numbers, and what is
 * wanted is cast from those. To: it takes two f32, which have all numbers of f16 and bf16.
 *
 * Elements are taken out of words of four as they are loaded, and put into such words, which are
 * stored as they are; so instructions between are few. Others are converted by gen/gen_cast.c:
 * scalars, what does not saturate or is rounded otherwise, f64 and integers, which f32 would round
 * once more.
 *
 * Integers of 4 bits become f16 two at a time, too, in a word: 1024 + x is a float whose lowest
 * bits are x, and both halves of a byte are in place after one shift. The differences from 1024
 * are left out where such numbers are subtracted (weights of 4 bits and their zero). */
#include "codegen/simt/simt.h"

enum { BYTE = 8, NIBBLE = 4, HALF = 16, WORD = 4 /* elements */ };

typedef struct Small {
    TlSimt *g;
    TlDtype dtype; /* f8 or f4 */
    TlType elem;
    bool nibbles;
} Small;

static bool has_both(const TlTarget *t, TlDtype d)
{
    return d == TL_F4E2M1 ? (t->can & TL_CAN_F4) != 0
                          : (d == TL_F8E4M3 || d == TL_F8E5M2) && t->can & TL_CAN_F8;
}

static LLVMValueRef shifted_right(const Small *s, LLVMValueRef x, unsigned bits)
{
    return bits ? LLVMBuildLShr(s->g->b, x, tl_simt_i32(s->g, bits), "") : x;
}

static LLVMValueRef shifted_left(const Small *s, LLVMValueRef x, unsigned bits)
{
    return bits ? LLVMBuildShl(s->g->b, x, tl_simt_i32(s->g, bits), "") : x;
}

static LLVMValueRef word_of(const Small *s, LLVMValueRef x)
{
    return LLVMBuildZExt(s->g->b, x, s->g->i32, "");
}

/* ---- from ---- */

/* The codes of elements 0 and 1 in one byte or two, as the leaf takes them; n: as many as there
 * are, one or two. */
static LLVMValueRef two_nibbles(const Small *s, LLVMValueRef *x, int n)
{
    LLVMBuilderRef b = s->g->b;
    LLVMValueRef mask = tl_simt_i32(s->g, 15), low = LLVMBuildAnd(b, word_of(s, x[0]), mask, "");
    if (n < 2)
        return low;
    LLVMValueRef high = LLVMBuildAnd(b, word_of(s, x[1]), mask, "");
    return LLVMBuildOr(b, low, shifted_left(s, high, NIBBLE), "");
}

/* Elements r, r + 1, ... n of them, a power of two up to a word, as f16. */
static void to_halves(const Small *s, LLVMValueRef *x, int n, LLVMValueRef *out)
{
    TlSimt *g = s->g;
    LLVMTypeRef pair = LLVMVectorType(g->f16, 2);
    LLVMValueRef word = s->nibbles ? NULL : tl_simt_pack(g, &s->elem, n, x);
    word = word && n < WORD ? word_of(s, word) : word;
    for (int i = 0; i < n; i += 2) {
        LLVMValueRef args[2] = {s->nibbles ? two_nibbles(s, x + i, n - i)
                                           : shifted_right(s, word, (unsigned)i * BYTE),
                                tl_simt_i32(g, (uint32_t)s->dtype)};
        LLVMValueRef two = tl_simt_leaf(g, s->nibbles ? TL_LEAF_OF_F4 : TL_LEAF_OF_F8,
                                        s->nibbles ? 1 : 2, args);
        two = LLVMBuildBitCast(g->b, two, pair, "");
        for (int k = 0; k < 2 && i + k < n; k++)
            out[i + k] = LLVMBuildExtractElement(g->b, two, tl_simt_i32(g, (uint32_t)k), "");
    }
}

/* ---- to ---- */

static LLVMValueRef as_f32(const Small *s, TlDtype from, LLVMValueRef x)
{
    x = tl_gen_cast(&s->g->gen, from, TL_F32, x, TL_ROUND_NEAREST, false);
    return LLVMBuildBitCast(s->g->b, x, s->g->i32, "");
}

/* The codes of elements 0 and 1 in one byte or two. */
static LLVMValueRef two_codes(const Small *s, TlDtype from, LLVMValueRef *x, int n)
{
    LLVMValueRef args[3] = {as_f32(s, from, x[0]),
                            n < 2 ? tl_simt_i32(s->g, 0) : as_f32(s, from, x[1]),
                            tl_simt_i32(s->g, (uint32_t)s->dtype)};
    return tl_simt_leaf(s->g, s->nibbles ? TL_LEAF_TO_F4 : TL_LEAF_TO_F8, s->nibbles ? 2 : 3, args);
}

static void to_codes(const Small *s, TlDtype from, LLVMValueRef *x, int n, LLVMValueRef *out)
{
    TlSimt *g = s->g;
    LLVMTypeRef code = tl_gen_elem_type(&g->gen, &s->elem);
    LLVMValueRef word = NULL;
    for (int i = 0; i < n; i += 2) {
        LLVMValueRef two = word_of(s, two_codes(s, from, x + i, n - i));
        for (int k = 0; s->nibbles && k < 2 && i + k < n; k++) {
            LLVMValueRef one = shifted_right(s, two, (unsigned)k * NIBBLE);
            one = LLVMBuildAnd(g->b, one, tl_simt_i32(g, 15), "");
            out[i + k] = LLVMBuildTrunc(g->b, one, code, "");
        }
        two = shifted_left(s, two, (unsigned)i * BYTE);
        word = word ? LLVMBuildOr(g->b, word, two, "") : two;
    }
    if (s->nibbles)
        return;
    if (n < WORD)
        word = LLVMBuildTrunc(g->b, word, tl_simt_wide_type(g, &s->elem, n), "");
    tl_simt_unpack(g, &s->elem, word, n, out);
}

/* ---- integers of 4 bits ---- */

enum { BITS_OF_1024 = 0x6400, LOW_HALVES = 0x000f000f, SIGNS = 0x00080008, TWO = 0x00010001 };

/* Without masks of four bits and what changes no bit of these; *shift: to the right, on the way. */
static LLVMValueRef source_of(LLVMValueRef x, uint64_t *shift)
{
    for (*shift = 0; LLVMIsAInstruction(x); x = LLVMGetOperand(x, 0)) {
        LLVMOpcode opcode = LLVMGetInstructionOpcode(x);
        LLVMValueRef by = opcode == LLVMAnd || opcode == LLVMLShr ? LLVMGetOperand(x, 1) : NULL;
        if (by && !LLVMIsAConstantInt(by))
            break;
        if (opcode == LLVMLShr)
            *shift += LLVMConstIntGetZExtValue(by);
        else if (opcode != LLVMAnd || LLVMConstIntGetZExtValue(by) != 15)
            break;
        if (opcode == LLVMLShr && *shift > NIBBLE)
            break;
    }
    return x;
}

/* A byte whose halves the two are; NULL: there is none. */
static LLVMValueRef byte_of(LLVMValueRef low, LLVMValueRef high)
{
    uint64_t shift[2];
    LLVMValueRef x = source_of(low, &shift[0]), y = source_of(high, &shift[1]);
    return x == y && shift[0] == 0 && shift[1] == NIBBLE ? x : NULL;
}

/* Two integers, each in the lowest bits of a half of `all`. */
static void two_integers(TlSimt *g, bool is_signed, LLVMValueRef all, LLVMValueRef *out)
{
    LLVMBuilderRef b = g->b;
    all = LLVMBuildAnd(b, all, tl_simt_i32(g, LOW_HALVES), "");
    if (is_signed)
        all = LLVMBuildXor(b, all, tl_simt_i32(g, SIGNS), "");
    all = LLVMBuildOr(b, all, tl_simt_i32(g, BITS_OF_1024 * TWO), "");
    all = LLVMBuildBitCast(b, all, LLVMVectorType(g->f16, 2), "");
    for (unsigned k = 0; k < 2; k++)
        out[k] = LLVMBuildFSub(b, LLVMBuildExtractElement(b, all, tl_simt_i32(g, k), ""),
                               LLVMConstReal(g->f16, is_signed ? 1024 + 8 : 1024), "");
}

/* Each is in a register. */
static LLVMValueRef side_by_side(TlSimt *g, LLVMValueRef *x)
{
    LLVMValueRef low = LLVMBuildZExt(g->b, x[0], g->i32, ""),
                 high = LLVMBuildZExt(g->b, x[1], g->i32, "");
    return LLVMBuildOr(g->b, low, LLVMBuildShl(g->b, high, tl_simt_i32(g, HALF), ""), "");
}

/* The halves of four bytes in a row; false: it is none. */
static bool bytes_of(LLVMValueRef *x, LLVMValueRef *bytes)
{
    for (int i = 0; i < WORD; i++)
        if (!(bytes[i] = byte_of(x[2 * i], x[2 * i + 1])))
            return false;
    return true;
}

/* Of a word's bytes: a byte from it, and that byte from the word shifted to its other half, are one
 * permutation. */
static void of_word(TlSimt *g, bool is_signed, LLVMValueRef *bytes, LLVMValueRef *out)
{
    LLVMBuilderRef b = g->b;
    TlType byte = {.kind = TL_TILE, .dtype = TL_U8};
    LLVMTypeRef four = LLVMVectorType(g->i8, WORD);
    LLVMValueRef word = tl_simt_pack(g, &byte, WORD, bytes),
                 high = LLVMBuildLShr(b, word, tl_simt_i32(g, NIBBLE), "");
    word = LLVMBuildBitCast(b, word, four, "");
    high = LLVMBuildBitCast(b, high, four, "");
    for (uint32_t i = 0; i < WORD; i++) {
        LLVMValueRef from[] = {tl_simt_i32(g, i), tl_simt_i32(g, i), tl_simt_i32(g, WORD + i),
                               tl_simt_i32(g, WORD + i)},
                     all = LLVMBuildShuffleVector(b, word, high, LLVMConstVector(from, WORD), "");
        two_integers(g, is_signed, LLVMBuildBitCast(b, all, g->i32, ""), out + 2 * i);
    }
}

static bool cast_integers(TlSimt *g, const TlOp *op)
{
    const TlValue *x = tl_in(op, 0), *v = op->out[0];
    if (g->options->target->family->by_llvm || tl_dtype_bits(x->type->dtype) != NIBBLE ||
        !tl_is_int(x->type->dtype) || v->type->dtype != TL_F16 || tl_simt_count(v) % 2)
        return false;
    LLVMValueRef *in = tl_simt_regs(g, x), *out = tl_simt_define(g, v), bytes[WORD];
    bool is_signed = tl_is_signed(x->type->dtype);
    for (int64_t r = 0, n = 2; r < tl_simt_count(v); r += n) {
        n = r + 2 * WORD <= tl_simt_count(v) && bytes_of(in + r, bytes) ? 2 * WORD : 2;
        if (n > 2)
            of_word(g, is_signed, bytes, out + r);
        else
            two_integers(g, is_signed, side_by_side(g, in + r), out + r);
    }
    return true;
}

/* The cast from an integer of at most 8 bits that a tile is, in its own form or another; NULL. */
static const TlOp *cast_of_integer(const TlValue *v)
{
    while (v->def && (v->def->opcode == TL_OP_BROADCAST || v->def->opcode == TL_OP_EXPAND))
        v = tl_in(v->def, 0);
    const TlOp *op = v->def && v->def->opcode == TL_OP_CAST ? v->def : NULL;
    const TlDtype from = op ? tl_in(op, 0)->type->dtype : TL_F32;
    return op && tl_is_int(from) && tl_dtype_bits(from) <= BYTE ? op : NULL;
}

static bool is_constant(const TlValue *v)
{
    return v->def && v->def->opcode == TL_OP_CONST;
}

/* Of a difference h - c the h; *c. NULL: it is none from a constant. */
static LLVMValueRef from_constant(LLVMValueRef x, LLVMValueRef *c)
{
    if (!LLVMIsAInstruction(x) || LLVMGetInstructionOpcode(x) != LLVMFSub)
        return NULL;
    *c = LLVMGetOperand(x, 1);
    return LLVMIsAConstantFP(*c) ? LLVMGetOperand(x, 0) : NULL;
}

static LLVMValueRef two_of(TlSimt *g, LLVMValueRef *x)
{
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(g->f16, 2));
    for (uint32_t k = 0; k < 2; k++)
        v = LLVMBuildInsertElement(g->b, v, x[k], tl_simt_i32(g, k), "");
    return v;
}

/* Of two constants that are small integers, so that f16 has it; NULL. */
static LLVMValueRef sum_of_integers(TlSimt *g, LLVMValueRef c, LLVMValueRef x)
{
    enum { MOST = 255 };
    LLVMBool loses;
    double by = LLVMIsAConstantFP(x) ? LLVMConstRealGetDouble(x, &loses) : 0.5;
    if (by < 0 || by > MOST || by != (int)by)
        return NULL;
    return LLVMConstReal(g->f16, LLVMConstRealGetDouble(c, &loses) + by);
}

bool tl_simt_is_of_nibbles(const TlValue *v)
{
    enum { MOST_DEPTH = 4 };
    for (int i = 0; i < MOST_DEPTH && v->def && v->def->nin; i++) {
        if (v->def->opcode == TL_OP_CAST)
            return v->type->dtype == TL_F16 && tl_is_int(tl_in(v->def, 0)->type->dtype) &&
                   tl_dtype_bits(tl_in(v->def, 0)->type->dtype) == NIBBLE;
        if (v->def->opcode != TL_OP_SUB && v->def->opcode != TL_OP_MUL)
            return false;
        v = tl_in(v->def, 0);
    }
    return false;
}

bool tl_simt_subtract_small(TlSimt *g, const TlOp *op)
{
    const TlValue *v = op->out[0];
    if (op->opcode != TL_OP_SUB || v->type->rank == 0 || v->type->dtype != TL_F16 || g->fn->ring ||
        g->options->target->family->by_llvm || tl_simt_count(v) % 2 ||
        !cast_of_integer(tl_in(op, 0)) ||
        !(cast_of_integer(tl_in(op, 1)) || is_constant(tl_in(op, 1))))
        return false;
    LLVMValueRef *x = tl_simt_regs(g, tl_in(op, 0)), *y = tl_simt_regs(g, tl_in(op, 1)),
                 *out = tl_simt_define(g, v);
    for (int64_t r = 0; r < tl_simt_count(v); r += 2) {
        LLVMValueRef a[2], b[2];
        for (int k = 0; k < 2; k++) {
            LLVMValueRef of_x = NULL, of_y = NULL;
            a[k] = from_constant(x[r + k], &of_x);
            b[k] = from_constant(y[r + k], &of_y);
            if (a[k] && !b[k])
                b[k] = sum_of_integers(g, of_x, y[r + k]);
            else if (of_x != of_y)
                b[k] = NULL;
            a[k] = a[k] && b[k] ? a[k] : x[r + k];
            b[k] = a[k] != x[r + k] ? b[k] : y[r + k];
        }
        LLVMValueRef d = LLVMBuildFSub(g->b, two_of(g, a), two_of(g, b), "");
        for (uint32_t k = 0; k < 2; k++)
            out[r + k] = LLVMBuildExtractElement(g->b, d, tl_simt_i32(g, k), "");
    }
    return true;
}

/* ---- both ---- */

static bool is_float_within_f32(TlDtype d)
{
    return d == TL_F32 || d == TL_F16 || d == TL_BF16;
}

static Small small_of(TlSimt *g, TlDtype d)
{
    return (Small){.g = g,
                   .dtype = d,
                   .elem = {.kind = TL_TILE, .dtype = d},
                   .nibbles = d == TL_F4E2M1};
}

bool tl_simt_cast_small(TlSimt *g, const TlOp *op)
{
    const TlTarget *t = g->options->target;
    const TlValue *x = op->opcode == TL_OP_CAST ? tl_in(op, 0) : NULL, *v = op->out[0];
    if (!x || v->type->rank == 0 || g->fn->ring)
        return false;
    if (cast_integers(g, op))
        return true;
    TlDtype from = x->type->dtype, to = v->type->dtype;
    bool widens = has_both(t, from), plain = !tl_attr_flag(op, TL_ATTR_NOSAT) &&
                                             tl_attr_int(op, TL_ATTR_ROUND, TL_ROUND_NEAREST) ==
                                                 TL_ROUND_NEAREST;
    if (!widens && !(has_both(t, to) && is_float_within_f32(from) && plain))
        return false;
    Small s = small_of(g, widens ? from : to);
    LLVMValueRef *in = tl_simt_regs(g, x), *out = tl_simt_define(g, v), halves[WORD];
    int n = 1;
    for (int64_t r = 0; r < tl_simt_count(v); r += n) {
        int64_t left = tl_simt_count(v) - r;
        n = left >= WORD ? WORD : left >= 2 ? 2 : 1;
        if (!widens) {
            to_codes(&s, from, in + r, n, out + r);
            continue;
        }
        to_halves(&s, in + r, n, halves);
        for (int k = 0; k < n; k++)
            out[r + k] = to == TL_F16
                             ? halves[k]
                             : tl_gen_cast(&g->gen, TL_F16, to, halves[k],
                                           (int)tl_attr_int(op, TL_ATTR_ROUND, TL_ROUND_NEAREST),
                                           tl_attr_flag(op, TL_ATTR_NOSAT));
    }
    return true;
}
