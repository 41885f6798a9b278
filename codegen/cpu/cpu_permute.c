/* Lanes of a vector, or of two, in an order that is known in the run only: what x86 has an
 * instruction for. LLVM has shuffles in an order that is known when code is made, and no other. */
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
/* Of two vectors: the index counts on from the first to the second. */
static const Permute OF_TWO[] = {
    {4, 16, {"avx512f", "avx512f"}, "llvm.x86.avx512.vpermi2var.d.512"},
    {4, 8, {"avx512f", "avx512vl"}, "llvm.x86.avx512.vpermi2var.d.256"},
    {8, 8, {"avx512f", "avx512f"}, "llvm.x86.avx512.vpermi2var.q.512"},
    {8, 4, {"avx512f", "avx512vl"}, "llvm.x86.avx512.vpermi2var.q.256"}};

static const Permute *row_of(const Permute *rows, size_t n, const TlLlvm *l, int bytes, int lanes)
{
    for (size_t i = 0; i < n; i++) {
        const Permute *p = &rows[i];
        if (p->bytes == bytes && p->lanes == lanes && tl_llvm_has_feature(l, p->features[0]) &&
            tl_llvm_has_feature(l, p->features[1]))
            return p;
    }
    return NULL;
}

static const Permute *permute_of(const TlLlvm *l, int bytes, int lanes)
{
    return row_of(PERMUTES, sizeof PERMUTES / sizeof *PERMUTES, l, bytes, lanes);
}

static const Permute *of_two(const TlLlvm *l, int bytes, int lanes)
{
    return row_of(OF_TWO, sizeof OF_TWO / sizeof *OF_TWO, l, bytes, lanes);
}

/* The vector of integers that elements of so many bytes are moved as. */
static LLVMTypeRef moved_as(TlCpuGen *g, int bytes, int lanes)
{
    enum { BITS = 8 };
    return tl_gen_vec(LLVMIntTypeInContext(g->c, (unsigned)(BITS * bytes)), lanes);
}

bool tl_cpu_can_permute(const TlCpuGen *g, int bytes, int lanes)
{
    return permute_of(g->l, bytes, lanes) != NULL;
}

LLVMValueRef tl_cpu_permute(TlCpuGen *g, LLVMValueRef x, int bytes, LLVMValueRef index)
{
    int lanes = tl_gen_width_of(x);
    const Permute *p = permute_of(g->l, bytes, lanes);
    TL_ASSERT(p && tl_gen_width_of(index) == lanes, "%d lanes of %d bytes", lanes, bytes);
    LLVMTypeRef type = LLVMTypeOf(x), ints = moved_as(g, bytes, lanes);
    LLVMValueRef args[2] = {LLVMBuildBitCast(g->b, x, ints, ""),
                            LLVMBuildIntCast2(g->b, index, ints, 0, "")};
    return LLVMBuildBitCast(g->b, tl_gen_intrinsic(&g->gen, p->name, NULL, 0, args, 2), type, "");
}

bool tl_cpu_can_permute_two(const TlCpuGen *g, int bytes, int lanes)
{
    return of_two(g->l, bytes, lanes) != NULL;
}

LLVMValueRef tl_cpu_permute_two(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y, int bytes,
                                LLVMValueRef index)
{
    int lanes = tl_gen_width_of(x);
    const Permute *p = of_two(g->l, bytes, lanes);
    TL_ASSERT(p && tl_gen_width_of(index) == lanes, "%d lanes of %d bytes", lanes, bytes);
    LLVMTypeRef type = LLVMTypeOf(x), ints = moved_as(g, bytes, lanes);
    LLVMValueRef args[3] = {LLVMBuildBitCast(g->b, x, ints, ""),
                            LLVMBuildIntCast2(g->b, index, ints, 0, ""),
                            LLVMBuildBitCast(g->b, y, ints, "")};
    return LLVMBuildBitCast(g->b, tl_gen_intrinsic(&g->gen, p->name, NULL, 0, args, 3), type, "");
}
