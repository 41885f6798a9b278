/* Stores that do not pass through the caches, where nest_stream.c lets them: each row asks in the
 * run. The branch between the two stores goes one way for a whole row, so it costs next to nothing;
 * two nests would take LLVM twice the time.
 *
 * LLVM splits a non-temporal store into pieces of its alignment. Large ones leave more room in the
 * queue of stores, so that loads of the next row begin earlier (32 bytes in place of 16: a fifth
 * of the time of softmax), and one of 64 bytes is a whole line, which nothing has to collect (a
 * tenth). Where rows are aligned less, as malloc's large blocks are, pieces have 16 bytes.
 *
 * Such stores are not ordered with later ones. A fence at the end of the run orders them for
 * whoever waits for the launch. */
#include "codegen/cpu/cpu.h"

enum { ALIGNMENT = TL_NEST_STREAM_BYTES, LINE = 64 };

static LLVMValueRef is_aligned(TlCpuGen *g, LLVMValueRef p, int alignment)
{
    LLVMValueRef low = LLVMBuildAnd(g->b, LLVMBuildPtrToInt(g->b, p, g->i64, ""),
                                    tl_gen_int(&g->gen, alignment - 1), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, low, tl_gen_int(&g->gen, 0), "");
}

void tl_cpu_stream_now(TlCpuGen *g, TlCpuRow *row, const TlCpuAccess *a, LLVMValueRef p)
{
    TL_ASSERT(a->view && a->a->place.value, "a store through pointers does not stream");
    LLVMValueRef n = tl_gen_int(&g->gen, (int64_t)tl_gen_elem_bytes(a->a->place.value->type));
    for (int i = 0; i < a->view->rank; i++)
        n = LLVMBuildMul(g->b, n, a->view->extent[i], "");
    LLVMValueRef large = LLVMBuildICmp(g->b, LLVMIntUGE, n, g->cache_bytes, "");
    row->streams = LLVMBuildAnd(g->b, large,
                                is_aligned(g, p, row->nest->streams_lines ? LINE : ALIGNMENT), "");
    row->streams_wide = row->nest->streams_wide ? is_aligned(g, p, g->m.vector_bytes) : NULL;
}

void tl_cpu_stream_store(TlCpuGen *g, LLVMValueRef store, bool wide)
{
    LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(g->i32, 1, 0));
    tl_llvm_set_metadata(g->l, store, "nontemporal", &one, 1);
    LLVMSetAlignment(store, wide ? (unsigned)g->m.vector_bytes : ALIGNMENT);
}

void tl_cpu_stream_end(TlCpuGen *g)
{
    if (!g->plan->streams || tl_llvm_has_feature(g->l, "neon"))
        return; /* AArch64: what publishes the end of the launch orders these stores, too */
    tl_gen_intrinsic(&g->gen, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
}
