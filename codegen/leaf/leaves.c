/* The leaf table in LLVM IR: types, names and declarations with the attributes of each class. */
#include "codegen/leaf/leaves.h"

#include <string.h>

static const struct {
    const char *name;
    const char *result, *operands;
    tl_leaf_class class_;
} LEAVES[] = {
#define LEAF(ID, name, result, operands, class_, meaning)                                          \
    {name, #result, operands, TL_LEAF_CLASS_##class_},
#include "runtime/contract/leaf.def"
};

LLVMTypeRef tl_leaf_type(LLVMContextRef c, char letter)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(c);
    switch (letter) {
    case 'v': return LLVMVoidTypeInContext(c);
    case 'b': return LLVMInt1TypeInContext(c);
    case 'c': return LLVMInt8TypeInContext(c);
    case 'h': return LLVMInt16TypeInContext(c);
    case 'i': return i32;
    case 'l': return LLVMInt64TypeInContext(c);
    case '2': return LLVMVectorType(i32, 2);
    case '4': return LLVMVectorType(i32, 4);
    case '8': return LLVMVectorType(i32, 8);
    case 'x': return LLVMVectorType(i32, 16);
    case 'p': return LLVMPointerTypeInContext(c, 1);
    }
    TL_UNREACHABLE("leaf type '%c'", letter);
}

const char *tl_leaf_name(tl_leaf leaf)
{
    return LEAVES[leaf].name;
}

tl_leaf_class tl_leaf_class_of(tl_leaf leaf)
{
    return LEAVES[leaf].class_;
}

/* ---- declarations ---- */

/* `memory`: LLVM packs "what may happen" in two bits each (read 1, write 2) for argument memory,
 * inaccessible memory and the rest, lowest first. */
enum { MEMORY_NONE = 0, MEMORY_READ = 1 | 1 << 2 | 1 << 4 };

static void attribute(TlLlvm *l, LLVMValueRef f, const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(l->context, kind, value));
}

static bool is_load(tl_leaf leaf)
{
    tl_leaf_class c = LEAVES[leaf].class_;
    return (c == TL_LEAF_CLASS_GLOBAL || c == TL_LEAF_CLASS_SHARED) && *LEAVES[leaf].result != 'v';
}

static void set_attributes(TlLlvm *l, LLVMValueRef f, tl_leaf leaf)
{
    tl_leaf_class c = LEAVES[leaf].class_;
    attribute(l, f, "nounwind", 0);
    if (c == TL_LEAF_CLASS_PURE) {
        attribute(l, f, "memory", MEMORY_NONE);
        attribute(l, f, "willreturn", 0);
        attribute(l, f, "speculatable", 0);
    }
    if (c == TL_LEAF_CLASS_WARP) {
        attribute(l, f, "convergent", 0);
        attribute(l, f, "memory", tl_leaf_is_ldsm(leaf) ? MEMORY_READ : MEMORY_NONE);
    }
    if (c == TL_LEAF_CLASS_BLOCK)
        attribute(l, f, "convergent", 0);
    if (is_load(leaf)) {
        attribute(l, f, "memory", MEMORY_READ);
        attribute(l, f, "willreturn", 0);
    }
}

LLVMValueRef tl_leaf_declare(TlLlvm *l, tl_leaf leaf)
{
    char name[64] = "tl.leaf.";
    strncat(name, LEAVES[leaf].name, sizeof name - 1 - strlen(name));
    LLVMValueRef f = LLVMGetNamedFunction(l->module, name);
    if (f)
        return f;
    LLVMTypeRef params[16];
    unsigned n = (unsigned)strlen(LEAVES[leaf].operands);
    TL_ASSERT(n <= 16, "leaf %s has %u operands", LEAVES[leaf].name, n);
    for (unsigned i = 0; i < n; i++)
        params[i] = tl_leaf_type(l->context, LEAVES[leaf].operands[i]);
    LLVMTypeRef type =
        LLVMFunctionType(tl_leaf_type(l->context, *LEAVES[leaf].result), params, n, 0);
    f = LLVMAddFunction(l->module, name, type);
    set_attributes(l, f, leaf);
    return f;
}

/* ---- matrix instructions ---- */

tl_mma_kind tl_leaf_mma_kind(const TlMma *mma)
{
    static const tl_mma_kind KINDS[] = {
#define MMA(name, family, kind, m, n, k, a, b, acc, frag_a, frag_b, frag_c) TL_MMA_##kind,
#include "ir/plan/mma.def"
    };
    return KINDS[tl_mma_index(mma)];
}

tl_leaf tl_leaf_of_mma(TlArena *arena, const TlMma *mma)
{
    static const struct {
        uint32_t a, b, c;
        tl_leaf leaf;
    } SIZES[] = {{1, 1, 4, TL_LEAF_MMA_1_1_4},   {1, 1, 16, TL_LEAF_MMA_1_1_16},
                 {2, 2, 4, TL_LEAF_MMA_2_2_4},   {2, 2, 8, TL_LEAF_MMA_2_2_8},
                 {2, 2, 16, TL_LEAF_MMA_2_2_16}, {4, 2, 4, TL_LEAF_MMA_4_2_4},
                 {4, 4, 8, TL_LEAF_MMA_4_4_8},   {8, 8, 8, TL_LEAF_MMA_8_8_8}};
    uint32_t words[3];
    for (int i = 0; i < 3; i++) {
        int bits = tl_layout_in_bits(tl_mma_fragment(arena, mma, i), TL_IN_REG);
        words[i] = ((uint32_t)tl_dtype_bytes(mma->type[i]) << bits) / 4;
    }
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        if (words[0] == SIZES[i].a && words[1] == SIZES[i].b && words[2] == SIZES[i].c)
            return SIZES[i].leaf;
    TL_UNREACHABLE("no leaf for %s", mma->name);
}
