/* Loads that prefetch what lies further on in memory, at the end of the step that they are in.
 *
 * Where a nest computes much for each vector that it reads, the CPU's own prefetcher runs only a
 * few lines ahead, and it stops at the end of a page. Measured on rows of blocks q8_0: fetching a
 * page ahead is 1.8 times as fast, a quarter of a page 1.3 times; on Zen 4 two pages are 1.03 to
 * 1.08 times as fast as one or four.
 *
 * A nest that computes little waits for memory only. It prefetches a page ahead, into the second
 * cache, unless the array may be in a cache already. Where more is computed, lines in the second
 * cache are too far away: blocks q8_0 take 1.4 times as long. */
#include "codegen/cpu/cpu.h"

enum { LINE = 64, AHEAD = 8192, LIGHT_AHEAD = 4096, PARTS_OF_CACHE = 2 };

void tl_cpu_prefetch_line(TlCpuGen *g, LLVMValueRef p, bool writes, unsigned locality)
{
    enum { DATA = 1 };
    TL_ASSERT(locality <= 3, "prefetch with locality %u", locality);
    LLVMValueRef args[4] = {p, LLVMConstInt(g->i32, writes, 0), LLVMConstInt(g->i32, locality, 0),
                            LLVMConstInt(g->i32, DATA, 0)};
    tl_gen_intrinsic(&g->gen, "llvm.prefetch", &g->ptr, 1, args, 4);
}

/* Is what it loads from so large that most of it is in memory? */
static LLVMValueRef is_large(TlCpuGen *g, const TlCpuAccess *a)
{
    LLVMValueRef n =
        tl_gen_int(&g->gen, PARTS_OF_CACHE * tl_dtype_bytes(a->a->place.base->type->dtype));
    for (int i = 0; i < a->view->rank; i++)
        n = LLVMBuildMul(g->b, n, a->view->extent[i], "");
    return LLVMBuildICmp(g->b, LLVMIntUGT, n, g->cache_bytes, "");
}

/* Once for each vector of the step, and once for each line. */
static bool does_ask(const TlCpuFetch *f, const TlNestAccess *a)
{
    bool listed = false;
    for (uint32_t i = 0; i < f->nest->fetch.len; i++)
        listed |= f->nest->fetch.data[i] == a;
    for (uint32_t i = 0; i < f->done.len; i++)
        listed &= f->done.data[i] != a;
    for (uint32_t i = 0; f->again && i < f->nest->shared.len; i++)
        listed &= f->nest->shared.data[i] != a;
    return listed && f->first * tl_dtype_bytes(a->place.base->type->dtype) % LINE == 0;
}

void tl_cpu_fetch_later(TlCpuGen *g, TlCpuFetch *f, const TlCpuAccess *a, LLVMValueRef p,
                        int64_t bytes)
{
    TL_ASSERT(bytes > 0, "%lld bytes", (long long)bytes);
    if (!f || g->arms != f->arms || !does_ask(f, a->a))
        return;
    tl_vec_push(g->arena, &f->done, a->a);
    int64_t ahead = f->nest->fetch_light ? LIGHT_AHEAD : AHEAD;
    if (f->nest->fetch_light) {
        LLVMValueRef large = is_large(g, a);
        f->large = f->large ? LLVMBuildOr(g->b, f->large, large, "") : large;
    }
    for (int64_t at = 0; at < bytes; at += LINE)
        tl_vec_push(g->arena, &f->later,
                    tl_gen_address(&g->gen, TL_U8, p, tl_gen_int(&g->gen, ahead + at)));
}

void tl_cpu_fetch_now(TlCpuGen *g, TlCpuFetch *f)
{
    enum { FIRST_CACHE = 3, SECOND_CACHE = 2 };
    TlCpuBranch b = {.join = f->large ? tl_gen_block(&g->gen, "on") : NULL};
    if (b.join) { /* what asks stands behind the loop's code, as the block is made later */
        LLVMBasicBlockRef ask = tl_gen_block(&g->gen, "ask");
        LLVMBuildCondBr(g->b, f->large, ask, b.join);
        LLVMPositionBuilderAtEnd(g->b, ask);
    }
    for (uint32_t i = 0; i < f->later.len; i++)
        tl_cpu_prefetch_line(g, f->later.data[i], false, b.join ? SECOND_CACHE : FIRST_CACHE);
    tl_cpu_join(g, b);
}
