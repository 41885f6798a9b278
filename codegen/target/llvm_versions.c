/* What differs between LLVM 19 and 22: a few intrinsics (intrinsic.def), the alignment of masked
 * accesses, and how NVPTX kernels say what they need. Callers use LLVM 19's names and operands. */
#include "codegen/target/llvm.h"
#include <llvm-c/Target.h> /* LLVM_VERSION_MAJOR */
#include <stdlib.h>
#include <string.h>

enum { IS_NEW = LLVM_VERSION_MAJOR > 19, MOST_ARGS = 4 };

unsigned tl_llvm_version(void)
{
    return LLVM_VERSION_MAJOR;
}

/* ---- intrinsics ---- */

/* How LLVM 22 wants to be called. */
typedef enum Change {
    SAME,
    BY_OPERAND,  /* it is overloaded, by the type of its first operand */
    ZERO_FIRST,  /* an operand i32 0 more, the first one */
    LONG_BUFFER, /* it is overloaded by its result, too, and takes the length as i64 */
    BYTES,       /* operands that were words are vectors of bytes */
    ALIGN_APART, /* the alignment is no operand: tl_llvm_masked */
} Change;

static const struct Row {
    const char *name, *overloads;
    Change change;
    const char *newer;
} ROWS[] = {
#define INTRINSIC(name, overloads, type)                   {name, overloads, SAME, name},
#define CHANGED(name, overloads, type, change, newer, ...) {name, overloads, change, newer},
#include "codegen/target/intrinsic.def"
};

static int compare(const void *name, const void *row)
{
    return strcmp(name, ((const struct Row *)row)->name);
}

static const struct Row *find(const char *name)
{
    return bsearch(name, ROWS, sizeof ROWS / sizeof *ROWS, sizeof *ROWS, compare);
}

static unsigned count_types(const char *overloads)
{
    unsigned n = *overloads != '\0';
    for (; *overloads; overloads++)
        n += *overloads == ',';
    return n;
}

static LLVMValueRef call(TlLlvm *l, LLVMBuilderRef b, const char *name, LLVMTypeRef *types,
                         unsigned ntypes, LLVMValueRef *args, unsigned nargs)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    TL_ASSERT(id, "LLVM has no intrinsic '%s'", name);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module, id, types, ntypes);
    TL_ASSERT(LLVMCountParams(f) == nargs, "'%s' with %u operands, not %u", name, nargs,
              LLVMCountParams(f));
    for (unsigned i = 0; i < nargs; i++)
        TL_ASSERT(LLVMTypeOf(args[i]) == LLVMTypeOf(LLVMGetParam(f, i)), "operand %u of '%s'", i,
                  name);
    return LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, args, nargs, "");
}

static LLVMValueRef call_newer(TlLlvm *l, LLVMBuilderRef b, const struct Row *row,
                               LLVMTypeRef *types, unsigned ntypes, LLVMValueRef *args,
                               unsigned nargs)
{
    LLVMTypeRef i8 = LLVMInt8TypeInContext(l->context), i32 = LLVMInt32TypeInContext(l->context),
                i64 = LLVMInt64TypeInContext(l->context);
    LLVMValueRef all[MOST_ARGS + 1];
    TL_ASSERT(nargs <= MOST_ARGS || row->change == SAME, "'%s' with %u operands", row->name, nargs);
    switch (row->change) {
    case SAME: return call(l, b, row->name, types, ntypes, args, nargs);
    case BY_OPERAND: {
        LLVMTypeRef type = LLVMTypeOf(args[0]);
        return call(l, b, row->newer, &type, 1, args, nargs);
    }
    case ZERO_FIRST:
        all[0] = LLVMConstInt(i32, 0, 0);
        memcpy(all + 1, args, nargs * sizeof *args);
        return call(l, b, row->newer, NULL, 0, all, nargs + 1);
    case LONG_BUFFER: {
        enum { BUFFER_SPACE = 8, LENGTH = 2 };
        LLVMTypeRef both[2] = {LLVMPointerTypeInContext(l->context, BUFFER_SPACE), types[0]};
        memcpy(all, args, nargs * sizeof *args);
        all[LENGTH] = LLVMBuildZExt(b, args[LENGTH], i64, "");
        return call(l, b, row->newer, both, 2, all, nargs);
    }
    case BYTES:
        all[0] = args[0]; /* the sums */
        for (unsigned i = 1; i < nargs; i++) {
            unsigned words = LLVMGetVectorSize(LLVMTypeOf(args[i]));
            all[i] = LLVMBuildBitCast(b, args[i], LLVMVectorType(i8, 4 * words), "");
        }
        return call(l, b, row->newer, NULL, 0, all, nargs);
    case ALIGN_APART: break;
    }
    TL_UNREACHABLE("a call of '%s'", row->name);
}

LLVMValueRef tl_llvm_intrinsic(TlLlvm *l, LLVMBuilderRef b, const char *name, LLVMTypeRef *types,
                               unsigned ntypes, LLVMValueRef *args, unsigned nargs)
{
    const struct Row *row = find(name);
    TL_ASSERT(row, "'%s' is not in intrinsic.def", name);
    TL_ASSERT(count_types(row->overloads) == ntypes, "'%s' with %u types", name, ntypes);
    return IS_NEW ? call_newer(l, b, row, types, ntypes, args, nargs)
                  : call(l, b, name, types, ntypes, args, nargs);
}

/* ---- machines ---- */

/* LLVM 22 takes these names still, but lists others: all CPUs with AVX-512 have evex512, and all
 * with AVX10 registers of 512 bits. */
const char *tl_llvm_host_name(const char *feature)
{
    if (IS_NEW && !strcmp(feature, "evex512"))
        return "avx512f";
    return IS_NEW && !strcmp(feature, "avx10.1-512") ? "avx10.1" : feature;
}

/* LLVM 22 takes halves of registers for numbers of 16 bits on gfx11 and gfx12 (real-true16), and
 * moves each by itself: in the main loop of a product 28 moves for 16 v_perm_b32. Of the 1024
 * registers of gfx1250 instructions reach 256, and others by a mode that is set before them. */
const char *tl_llvm_features(TlArena *arena, const char *cpu, const char *features)
{
    if (!IS_NEW || (strncmp(cpu, "gfx11", 5) && strncmp(cpu, "gfx12", 5)))
        return features;
    bool high = strcmp(cpu, "gfx1250") == 0;
    return tl_format(arena, "%s%s-real-true16%s", features, *features ? "," : "",
                     high ? ",-1024-addressable-vgprs" : "");
}

/* ---- masked accesses ---- */

enum { HAS_ALIGN = !IS_NEW }; /* as an operand, behind the pointer; else as its attribute */

const TlMaskedAccess tl_masked_accesses[TL_MASKED_COUNT] = {
    [TL_MASKED_LOAD] = {"llvm.masked.load", 0, 1 + HAS_ALIGN, 2 + HAS_ALIGN},
    [TL_MASKED_GATHER] = {"llvm.masked.gather", 0, 1 + HAS_ALIGN, 2 + HAS_ALIGN},
    [TL_MASKED_STORE] = {"llvm.masked.store", 1, 2 + HAS_ALIGN, 0},
    [TL_MASKED_SCATTER] = {"llvm.masked.scatter", 1, 2 + HAS_ALIGN, 0},
};

LLVMValueRef tl_llvm_masked(TlLlvm *l, LLVMBuilderRef b, TlMasked kind, LLVMValueRef p,
                            unsigned align, LLVMValueRef mask, LLVMValueRef data)
{
    const TlMaskedAccess *m = &tl_masked_accesses[kind];
    LLVMTypeRef types[2] = {LLVMTypeOf(data), LLVMTypeOf(p)};
    LLVMValueRef args[3 + HAS_ALIGN];
    args[m->pointer] = p;
    args[m->mask] = mask;
    args[m->data] = data;
    if (HAS_ALIGN)
        args[m->pointer + 1] = LLVMConstInt(LLVMInt32TypeInContext(l->context), align, 0);
    LLVMValueRef x = call(l, b, m->name, types, 2, args, 3 + HAS_ALIGN);
    if (!HAS_ALIGN)
        LLVMSetInstrParamAlignment(x, m->pointer + 1, align);
    return x;
}

/* ---- kernels for NVPTX ---- */

static LLVMMetadataRef number(TlLlvm *l, uint32_t v)
{
    return LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(l->context), v, 0));
}

static void annotate(TlLlvm *l, LLVMValueRef f, const char *key, LLVMMetadataRef value)
{
    LLVMMetadataRef row[3] = {LLVMValueAsMetadata(f),
                              LLVMMDStringInContext2(l->context, key, strlen(key)), value};
    LLVMAddNamedMetadataOperand(
        l->module, "nvvm.annotations",
        LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, row, 3)));
}

void tl_llvm_limit_kernel(TlLlvm *l, LLVMValueRef f, TlKernelLimit limit, uint32_t value)
{
    static const struct {
        const char *annotation, *attribute;
    } NAMES[] = {[TL_KERNEL_THREADS] = {"reqntidx", "nvvm.reqntid"},
                 [TL_KERNEL_REGISTERS] = {"maxnreg", "nvvm.maxnreg"},
                 [TL_KERNEL_BLOCKS] = {"minctasm", "nvvm.minctasm"}};
    if (IS_NEW)
        tl_llvm_set_text_attribute(l, f, LLVMAttributeFunctionIndex, NAMES[limit].attribute,
                                   tl_format(l->arena, "%u", value));
    else
        annotate(l, f, NAMES[limit].annotation, number(l, value));
}

void tl_llvm_read_in_place(TlLlvm *l, LLVMValueRef f, const uint32_t *params, uint32_t n)
{
    LLVMMetadataRef *all = TL_NEW_ARRAY(l->arena, LLVMMetadataRef, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (IS_NEW)
            tl_llvm_set_text_attribute(l, f, params[i], "nvvm.grid_constant", "");
        else
            all[i] = number(l, params[i]);
    if (n && !IS_NEW)
        annotate(l, f, "grid_constant", LLVMMDNodeInContext2(l->context, all, n));
}
