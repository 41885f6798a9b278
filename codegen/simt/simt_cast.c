/* Casts from and to floats of 8 and 4 bits, two at a time by an instruction (leaves OF_F8, TO_F8,
 * OF_F4, TO_F4). From: the instruction gives two f16, which have all these numbers, and what is
 * wanted is cast from those. To: it takes two f32, which have all numbers of f16 and bf16.
 *
 * Elements are taken out of words of four as they are loaded, and put into such words, which are
 * stored as they are; so instructions between are few. Others are converted by gen/gen_cast.c:
 * scalars, what does not saturate or is rounded otherwise, f64 and integers, which f32 would round
 * once more. */
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
