/* Stores that do not pass through the caches.
 *
 * An ordinary store first fetches the line that it writes. Where the whole output is larger than
 * the last cache, that is a third of the traffic of a kernel that reads as much as it writes, for
 * lines that nobody will find in a cache later. So a nest that stores whole vectors side by side
 * has two stores, and at run time rows of large arrays take the non-temporal one. The branch
 * between them goes one way for a whole row, so it costs next to nothing; two nests would take LLVM
 * twice the time.
 *
 * LLVM splits a non-temporal store into pieces of its alignment. Large ones leave more room in the
 * queue of stores, so that loads of the next row begin earlier (32 bytes in place of 16: a fifth
 * of the time of softmax), and one of 64 bytes is a whole line, which nothing has to collect (a
 * tenth). Where rows are aligned less, as malloc's large blocks are, pieces have 16 bytes.
 *
 * Such stores are not ordered with later ones. A fence at the end of the run orders them for
 * whoever waits for the launch; kernels whose programs talk to each other by atomics have none of
 * them. */
#include "codegen/cpu/cpu.h"

#include <string.h>

#include "passes/analysis/facts.h"

/* A nest that computes more values for an element is not limited by memory. Too much of a shorter
 * row, in bytes, is in lines that it does not fill. */
enum { MOST_VALUES = 40, LEAST_ROW = 256, ALIGNMENT = 16 };

static void forbid(TlCpuGen *g, const TlValue *base)
{
    int param = tl_base_param(base);
    if (param < 0)
        memset(g->in_cache, true, g->fn->body->nargs);
    else
        g->in_cache[param] = true;
}

void tl_cpu_stream_plan(TlCpuGen *g)
{
    uint32_t n = g->fn->body->nargs;
    g->in_cache = TL_NEW_ARRAY(g->arena, bool, n + 1);
    memset(g->in_cache, 0, n + 1);
    for (const TlOp *op = g->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        if (tl_op_info(op->opcode)->flags & F_ATOMIC)
            memset(g->in_cache, true, n);
        else if (op->opcode == TL_OP_LOAD)
            forbid(g, tl_op_place(op).base);
    }
}

bool tl_cpu_may_stream(const TlCpuGen *g, const TlCpuAccess *a, int width, uint32_t nvalues)
{
    const TlType *t = a->place.value->type;
    int param = tl_base_param(a->place.base);
    uint64_t bytes = tl_gen_elem_bytes(t);
    TlNestForm f = tl_nest_form(t);
    return a->view && param >= 0 && !g->in_cache[param] && !a->place.mask && !a->asks &&
           nvalues <= MOST_VALUES && (uint64_t)width * bytes % ALIGNMENT == 0 &&
           (uint64_t)f.extent[f.lane] * bytes >= LEAST_ROW && tl_cpu_is_contiguous(a, f.lane);
}

static LLVMValueRef is_aligned(TlCpuGen *g, LLVMValueRef p, int alignment)
{
    LLVMValueRef low = LLVMBuildAnd(g->b, LLVMBuildPtrToInt(g->b, p, g->i64, ""),
                                    tl_gen_int(&g->gen, alignment - 1), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, low, tl_gen_int(&g->gen, 0), "");
}

void tl_cpu_stream_now(TlCpuGen *g, TlCpuAccess *a, int width, LLVMValueRef row)
{
    TL_ASSERT(a->view && a->place.value, "a store through pointers does not stream");
    int64_t bytes = (int64_t)tl_gen_elem_bytes(a->place.value->type);
    LLVMValueRef n = tl_gen_int(&g->gen, bytes);
    for (int i = 0; i < a->view->rank; i++)
        n = LLVMBuildMul(g->b, n, a->view->extent[i], "");
    LLVMValueRef large = LLVMBuildICmp(g->b, LLVMIntUGE, n, g->cache_bytes, "");
    a->streams = LLVMBuildAnd(g->b, large, is_aligned(g, row, ALIGNMENT), "");
    bool may_be_wide = g->m.vector_bytes > ALIGNMENT && width * bytes % g->m.vector_bytes == 0;
    a->streams_wide = may_be_wide ? is_aligned(g, row, g->m.vector_bytes) : NULL;
}

void tl_cpu_stream_store(TlCpuGen *g, LLVMValueRef store, bool wide)
{
    LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(g->i32, 1, 0));
    tl_llvm_set_metadata(g->l, store, "nontemporal", &one, 1);
    LLVMSetAlignment(store, wide ? (unsigned)g->m.vector_bytes : ALIGNMENT);
    g->streams = true;
}

void tl_cpu_stream_end(TlCpuGen *g)
{
    if (!g->streams || tl_llvm_has_feature(g->l, "neon"))
        return; /* AArch64: what publishes the end of the launch orders these stores, too */
    tl_gen_intrinsic(&g->gen, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
}
