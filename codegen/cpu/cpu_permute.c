/* Lanes of one vector in an order that is known in the run only: what x86 has an instruction for.
 * LLVM has shuffles in an order that is known when code is made, and no other. */
#include "codegen/cpu/cpu.h"

typedef struct Permute {
    int bytes, lanes; /* of an element; of the vector */
    const char *features[2], *name;
} Permute;
static const Permute PERMUTES[] = {
    {4, 16, {"avx512f", "avx512f"}, "llvm.x86.avx512.permvar.si.512"},
    {4, 8, {"avx2", "avx2"}, "llvm.x86.avx2.permd"},
    {8, 8, {"avx512f", "avx512f"}, "llvm.x86.avx512.permvar.di.512"},
    {8, 4, {"avx512f", "avx512vl"}, "llvm.x86.avx512.permvar.di.256"},
    {2, 32, {"avx512bw", "avx512bw"}, "llvm.x86.avx512.permvar.hi.512"},
    {1, 64, {"avx512vbmi", "avx512vbmi"}, "llvm.x86.avx512.permvar.qi.512"},
    {1, 32, {"avx512vbmi", "avx512vl"}, "llvm.x86.avx512.permvar.qi.256"},
    {2, 16, {"avx512bw", "avx512vl"}, "llvm.x86.avx512.permvar.hi.256"},
    {1, 16, {"avx512bw", "avx512vl"}, "llvm.x86.ssse3.pshuf.b.128"}};

static const Permute *permute_of(const TlLlvm *l, int bytes, int lanes)
{
    for (size_t i = 0; i < sizeof PERMUTES / sizeof *PERMUTES; i++) {
        const Permute *p = &PERMUTES[i];
        if (p->bytes == bytes && p->lanes == lanes && tl_llvm_has_feature(l, p->features[0]) &&
            tl_llvm_has_feature(l, p->features[1]))
            return p;
    }
    return NULL;
}

bool tl_cpu_can_permute(const TlCpuGen *g, int bytes, int lanes)
{
    return permute_of(g->l, bytes, lanes) != NULL;
}

LLVMValueRef tl_cpu_permute(TlCpuGen *g, LLVMValueRef x, int bytes, LLVMValueRef index)
{
    enum { BITS = 8 };
    int lanes = tl_gen_width_of(x);
    const Permute *p = permute_of(g->l, bytes, lanes);
    TL_ASSERT(p && tl_gen_width_of(index) == lanes, "%d lanes of %d bytes", lanes, bytes);
    LLVMTypeRef type = LLVMTypeOf(x),
                ints = tl_gen_vec(LLVMIntTypeInContext(g->c, (unsigned)(BITS * bytes)), lanes);
    LLVMValueRef args[2] = {LLVMBuildBitCast(g->b, x, ints, ""),
                            LLVMBuildIntCast2(g->b, index, ints, 0, "")};
    return LLVMBuildBitCast(g->b, tl_gen_intrinsic(&g->gen, p->name, NULL, 0, args, 2), type, "");
}
