/* What differs between LLVM 19 and 22: a few intrinsics, the alignment of masked accesses, and how
 * NVPTX kernels say what they need. Callers use LLVM 19's names and operands. */
#include "codegen/target/llvm.h"
#include <llvm-c/Target.h> /* LLVM_VERSION_MAJOR */
#include <string.h>

enum { IS_NEW = LLVM_VERSION_MAJOR > 19, MOST_ARGS = 4 };

/* What is otherwise in LLVM 22. */
typedef enum Change {
    BY_OPERAND,  /* it is overloaded, by the type of its first operand */
    ZERO_FIRST,  /* an operand i32 0 more, the first one */
    LONG_BUFFER, /* it is overloaded by its result, too, and takes the length as i64 */
} Change;

typedef struct Newer {
    const char *name, *newer;
    Change change;
} Newer;

static const Newer *newer_of(const char *name)
{
    static const Newer ROWS[] = {
        {"llvm.nvvm.barrier0", "llvm.nvvm.barrier.cta.sync.aligned.all", ZERO_FIRST},
        {"llvm.nvvm.ex2.approx.f", "llvm.nvvm.ex2.approx", BY_OPERAND},
        {"llvm.nvvm.ex2.approx.ftz.f", "llvm.nvvm.ex2.approx.ftz", BY_OPERAND},
        {"llvm.amdgcn.make.buffer.rsrc", "llvm.amdgcn.make.buffer.rsrc", LONG_BUFFER},
    };
    for (size_t i = 0; IS_NEW && i < sizeof ROWS / sizeof *ROWS; i++)
        if (!strcmp(name, ROWS[i].name))
            return &ROWS[i];
    return NULL;
}

static LLVMValueRef call(TlLlvm *l, LLVMBuilderRef b, const char *name, LLVMTypeRef *types,
                         unsigned ntypes, LLVMValueRef *args, unsigned nargs)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    TL_ASSERT(id, "LLVM has no intrinsic '%s'", name);
    TL_ASSERT(LLVMIntrinsicIsOverloaded(id) ? ntypes : !ntypes, "'%s' with %u types", name, ntypes);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(l->module, id, types, ntypes);
    TL_ASSERT(LLVMCountParams(f) == nargs, "'%s' with %u operands, not %u", name, nargs,
              LLVMCountParams(f));
    for (unsigned i = 0; i < nargs; i++)
        TL_ASSERT(LLVMTypeOf(args[i]) == LLVMTypeOf(LLVMGetParam(f, i)), "operand %u of '%s'", i,
                  name);
    return LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, args, nargs, "");
}

static LLVMValueRef call_newer(TlLlvm *l, LLVMBuilderRef b, const Newer *row, LLVMTypeRef *types,
                               LLVMValueRef *args, unsigned nargs)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(l->context), i64 = LLVMInt64TypeInContext(l->context);
    LLVMValueRef all[MOST_ARGS + 1];
    TL_ASSERT(nargs <= MOST_ARGS, "'%s' with %u operands", row->name, nargs);
    switch (row->change) {
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
    }
    TL_UNREACHABLE("change %d of an intrinsic", (int)row->change);
}

LLVMValueRef tl_llvm_intrinsic(TlLlvm *l, LLVMBuilderRef b, const char *name, LLVMTypeRef *types,
                               unsigned ntypes, LLVMValueRef *args, unsigned nargs)
{
    const Newer *row = newer_of(name);
    return row ? call_newer(l, b, row, types, args, nargs)
               : call(l, b, name, types, ntypes, args, nargs);
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
