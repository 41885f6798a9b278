/* Calls of leaves from the SIMT lowering, and values as the words that leaves move. */
#include <string.h>

#include "codegen/leaves.h"
#include "codegen/simt.h"

LLVMValueRef tl_simt_i32(TlSimt *g, uint32_t v)
{
    return LLVMConstInt(g->i32, v, 0);
}

/* ---- calls ---- */

static void mark_convergent(TlSimt *g, LLVMValueRef call)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(g->c, kind, 0));
}

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

LLVMValueRef tl_simt_leaf(TlSimt *g, tl_leaf leaf, unsigned nargs, LLVMValueRef *args)
{
    tl_leaf_class class_ = tl_leaf_class_of(leaf);
    LLVMValueRef all[16], f = tl_leaf_declare(g->l, leaf);
    unsigned n = 0;
    if (class_ != TL_LEAF_CLASS_PURE)
        all[n++] = new_site(g, leaf);
    if (class_ == TL_LEAF_CLASS_DEBUG)
        tl_gen_slot(&g->gen, TILE_SLOT_DEBUG, 0, 0); /* a GPU's expansion finds it there */
    for (unsigned i = 0; i < nargs; i++)
        all[n++] = args[i];
    TL_ASSERT(n == LLVMCountParams(f), "leaf %s with %u operands", tl_leaf_name(leaf), n);
    LLVMValueRef call = LLVMBuildCall2(g->b, LLVMGlobalGetValueType(f), f, all, n, "");
    if (class_ == TL_LEAF_CLASS_WARP || class_ == TL_LEAF_CLASS_BLOCK)
        mark_convergent(g, call);
    return call;
}

void tl_simt_barrier(TlSimt *g)
{
    tl_simt_leaf(g, TL_LEAF_BARRIER, 0, NULL);
}

LLVMValueRef tl_simt_exp2(TlGen *gen, LLVMValueRef x, bool flush)
{
    TlSimt *g = (TlSimt *)gen; /* gen is its first member */
    LLVMValueRef bits = LLVMBuildBitCast(g->b, x, g->i32, "");
    return LLVMBuildBitCast(g->b, tl_simt_leaf(g, flush ? TL_LEAF_EX2_FTZ : TL_LEAF_EX2, 1, &bits),
                            LLVMTypeOf(x), "");
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
    return mask ? shuffle(g, type, TL_LEAF_SHFL_XOR, x, tl_simt_i32(g, mask)) : x;
}

LLVMValueRef tl_simt_shuffle_idx(TlSimt *g, const TlType *type, LLVMValueRef x, LLVMValueRef lane)
{
    return shuffle(g, type, TL_LEAF_SHFL_IDX, x, lane);
}

/* ---- several values as one wide one ---- */

static LLVMTypeRef wide_type(TlSimt *g, uint64_t bytes)
{
    if (bytes <= 4)
        return int_of_bytes(g, bytes);
    return LLVMVectorType(g->i32, (unsigned)bytes / 4);
}

LLVMTypeRef tl_simt_wide_type(TlSimt *g, const TlType *type, int n)
{
    return wide_type(g, tl_gen_elem_bytes(type) * (uint64_t)n);
}

LLVMValueRef tl_simt_pack(TlSimt *g, const TlType *type, int n, LLVMValueRef *x)
{
    uint64_t bytes = tl_gen_elem_bytes(type);
    if (n == 1)
        return LLVMBuildBitCast(g->b, to_int(g, type, x[0]), wide_type(g, bytes), "");
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(int_of_bytes(g, bytes), (unsigned)n));
    for (int i = 0; i < n; i++)
        v = LLVMBuildInsertElement(g->b, v, to_int(g, type, x[i]), tl_simt_i32(g, (uint32_t)i), "");
    return LLVMBuildBitCast(g->b, v, wide_type(g, bytes * (uint64_t)n), "");
}

void tl_simt_unpack(TlSimt *g, const TlType *type, LLVMValueRef wide, int n, LLVMValueRef *out)
{
    LLVMTypeRef elem = int_of_bytes(g, tl_gen_elem_bytes(type));
    if (n == 1) {
        out[0] = from_int(g, type, LLVMBuildBitCast(g->b, wide, elem, ""));
        return;
    }
    LLVMValueRef v = LLVMBuildBitCast(g->b, wide, LLVMVectorType(elem, (unsigned)n), "");
    for (int i = 0; i < n; i++)
        out[i] =
            from_int(g, type, LLVMBuildExtractElement(g->b, v, tl_simt_i32(g, (uint32_t)i), ""));
}

tl_leaf tl_simt_sized(tl_leaf first, uint64_t bytes)
{
    int step = 0;
    while ((uint64_t)1 << step < bytes)
        step++;
    TL_ASSERT((uint64_t)1 << step == bytes && step <= 4, "an access of %u bytes", (unsigned)bytes);
    return (tl_leaf)((int)first + step);
}

void tl_simt_shared_store(TlSimt *g, const TlType *type, LLVMValueRef offset, LLVMValueRef pred,
                          int n, LLVMValueRef *x)
{
    LLVMValueRef args[3] = {offset, pred ? pred : LLVMConstInt(g->i1, 1, 0),
                            tl_simt_pack(g, type, n, x)};
    tl_simt_leaf(g, tl_simt_sized(TL_LEAF_STS_8, tl_gen_elem_bytes(type) * (uint64_t)n), 3, args);
}

void tl_simt_shared_load(TlSimt *g, const TlType *type, LLVMValueRef offset, int n,
                         LLVMValueRef *out)
{
    tl_leaf leaf = tl_simt_sized(TL_LEAF_LDS_8, tl_gen_elem_bytes(type) * (uint64_t)n);
    tl_simt_unpack(g, type, tl_simt_leaf(g, leaf, 1, &offset), n, out);
}
