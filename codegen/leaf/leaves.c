/* The leaf table in LLVM IR: types, names and declarations with the attributes of each class. */
#include "codegen/leaf/leaves.h"

#include <string.h>

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
    case 'm': return LLVMPointerTypeInContext(c, 0);
    case 'p': return LLVMPointerTypeInContext(c, 1);
    }
    TL_UNREACHABLE("leaf type '%c'", letter);
}

tl_leaf_class tl_leaf_class_of(tl_leaf leaf)
{
    TL_ASSERT((unsigned)leaf < TL_LEAF_COUNT, "leaf %d", (int)leaf);
    return tl_leaf_info(leaf)->class_;
}

/* ---- declarations ---- */

/* `memory`: LLVM packs "what may happen" in two bits each (read 1, write 2) for argument memory,
 * inaccessible memory and the rest, lowest first. */
enum { MEMORY_NONE = 0, MEMORY_READ = 1 | 1 << 2 | 1 << 4 };

static void attribute(TlLlvm *l, LLVMValueRef f, const char *name, uint64_t value)
{
    tl_llvm_set_attribute(l, f, LLVMAttributeFunctionIndex, name, value);
}

static bool is_load(tl_leaf leaf)
{
    tl_leaf_class c = tl_leaf_class_of(leaf);
    return (c == TL_LEAF_CLASS_GLOBAL || c == TL_LEAF_CLASS_SHARED) &&
           *tl_leaf_info(leaf)->result != 'v';
}

static void set_attributes(TlLlvm *l, LLVMValueRef f, tl_leaf leaf)
{
    tl_leaf_class c = tl_leaf_class_of(leaf);
    attribute(l, f, "nounwind", 0);
    if (c == TL_LEAF_CLASS_PURE) {
        attribute(l, f, "memory", MEMORY_NONE);
        attribute(l, f, "willreturn", 0);
        attribute(l, f, "speculatable", 0);
    }
    if (c == TL_LEAF_CLASS_WARP) {
        attribute(l, f, "convergent", 0);
        attribute(l, f, "memory",
                  tl_leaf_is_shared_load_of_warp(leaf) ? MEMORY_READ : MEMORY_NONE);
    }
    if (c == TL_LEAF_CLASS_BLOCK || c == TL_LEAF_CLASS_GROUP)
        attribute(l, f, "convergent", 0);
    if (is_load(leaf)) {
        attribute(l, f, "memory", MEMORY_READ);
        attribute(l, f, "willreturn", 0);
    }
}

LLVMValueRef tl_leaf_declare(TlLlvm *l, tl_leaf leaf)
{
    TL_ASSERT((unsigned)leaf < TL_LEAF_COUNT && l->module, "leaf %d", (int)leaf);
    const tl_leaf_row *row = tl_leaf_info(leaf);
    char name[64] = "tl.leaf.";
    strncat(name, row->name, sizeof name - 1 - strlen(name));
    LLVMValueRef f = LLVMGetNamedFunction(l->module, name);
    if (f)
        return f;
    LLVMTypeRef params[16];
    unsigned n = (unsigned)strlen(row->operands);
    TL_ASSERT(n <= 16, "leaf %s has %u operands", row->name, n);
    for (unsigned i = 0; i < n; i++)
        params[i] = tl_leaf_type(l->context, row->operands[i]);
    LLVMTypeRef type = LLVMFunctionType(tl_leaf_type(l->context, *row->result), params, n, 0);
    f = LLVMAddFunction(l->module, name, type);
    set_attributes(l, f, leaf);
    return f;
}

LLVMValueRef tl_leaf_declare_words(TlLlvm *l, tl_leaf leaf, LLVMTypeRef result, LLVMTypeRef *params,
                                   unsigned nparams)
{
    TL_ASSERT(strchr(tl_leaf_info(leaf)->operands, 'w'), "leaf %s takes no words",
              tl_leaf_name(leaf));
    LLVMTypeRef all[TL_LEAF_MOST_WORDS + 16];
    all[0] = LLVMInt32TypeInContext(l->context); /* the site */
    for (unsigned i = 0; i < nparams; i++)
        all[i + 1] = params[i];
    LLVMTypeRef type = LLVMFunctionType(result, all, nparams + 1, 0);
    for (unsigned i = 0;; i++) {
        char *name = tl_format(l->arena, "tl.leaf.%s.%u", tl_leaf_name(leaf), i);
        LLVMValueRef f = LLVMGetNamedFunction(l->module, name);
        if (f && LLVMGlobalGetValueType(f) != type)
            continue;
        if (!f) {
            f = LLVMAddFunction(l->module, name, type);
            set_attributes(l, f, leaf);
        }
        return f;
    }
}
