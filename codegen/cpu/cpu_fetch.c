/* Loads that prefetch what lies further on in memory, at the end of the step that they are in.
 *
 * Where a nest computes much for each vector that it reads, the CPU's own prefetcher runs only a
 * few lines ahead, and it stops at the end of a page. Measured on rows of blocks q8_0: fetching a
 * page ahead is 1.8 times as fast, a quarter of a page 1.3 times; on Zen 4 two pages are 1.03 to
 * 1.08 times as fast as one or four.
 *
 * In a loop from rows to rows, what the next trip reads is asked for, if that is further: rows of
 * blocks q4_k from memory take 0.66 of the time that way.
 *
 * A nest that computes little waits for memory only. It prefetches a page ahead, into the second
 * cache, unless the array may be in a cache already. Where more is computed, lines in the second
 * cache are too far away: blocks q8_0 take 1.4 times as long. */
#include "codegen/cpu/cpu.h"

/* Bytes; a larger part of the last cache than one of so many is in memory for the most part. */
enum { LINE = 64, AHEAD = 8192, LIGHT_AHEAD = 4096, PARTS_OF_CACHE = 2 };

void tl_cpu_prefetch_line(TlCpuGen *g, LLVMValueRef p, bool writes, unsigned locality)
{
    enum { DATA = 1 };
    TL_ASSERT(locality <= 3, "prefetch with locality %u", locality);
    LLVMValueRef args[4] = {p, LLVMConstInt(g->i32, writes, 0), LLVMConstInt(g->i32, locality, 0),
                            LLVMConstInt(g->i32, DATA, 0)};
    tl_gen_intrinsic(&g->gen, "llvm.prefetch", &g->ptr, 1, args, 4);
}

LLVMValueRef tl_cpu_is_large(TlCpuGen *g, const TlCpuAccess *a, int parts)
{
    LLVMValueRef n = tl_gen_int(&g->gen, parts * tl_dtype_bytes(a->a->place.base->type->dtype));
    for (int i = 0; i < a->view->rank; i++)
        n = LLVMBuildMul(g->b, n, a->view->extent[i], "");
    return LLVMBuildICmp(g->b, LLVMIntUGT, n, g->cache_bytes, "");
}

/* Bytes from what a load reads to what it asks for. */
static LLVMValueRef how_far(TlCpuGen *g, const TlNest *n, const TlCpuAccess *a)
{
    int64_t trips = n->fetch_from == TL_NEST_FETCH_TRIPS ? 2 : 1;
    LLVMValueRef pages = tl_gen_int(&g->gen, AHEAD);
    switch (n->fetch_from) {
    case TL_NEST_FETCH_LIGHT: return tl_gen_int(&g->gen, LIGHT_AHEAD);
    case TL_NEST_FETCH_PAGES: return pages;
    case TL_NEST_FETCH_PART: return tl_gen_int(&g->gen, n->part);
    case TL_NEST_FETCH_TRIP:
    case TL_NEST_FETCH_TRIPS: break;
    }
    int axis = tl_nest_axis_of_loop(a->a);
    TL_ASSERT(axis >= 0, "a load that no loop moves");
    int64_t step = trips * tl_nest_axis_width(a->a, (uint32_t)axis) *
                   tl_dtype_bytes(a->a->place.base->type->dtype);
    LLVMValueRef on = LLVMBuildMul(g->b, a->view->stride[axis], tl_gen_int(&g->gen, step), "");
    return tl_cpu_larger(g, on, pages);
}

/* Once for each vector of the step, and once for each line. What is computed in a branch, as one
 * side of `cat`, does not ask: at the step's end its address is not known. */
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
    if (!f || f->conditional != g->conditional || !does_ask(f, a->a))
        return;
    tl_vec_push(g->arena, &f->done, a->a);
    if (f->nest->fetch_from == TL_NEST_FETCH_LIGHT) {
        LLVMValueRef large = tl_cpu_is_large(g, a, PARTS_OF_CACHE);
        f->large = f->large ? LLVMBuildOr(g->b, f->large, large, "") : large;
    }
    LLVMValueRef there = tl_gen_address(&g->gen, TL_U8, p, how_far(g, f->nest, a));
    for (int64_t at = 0; at < bytes; at += LINE)
        tl_vec_push(g->arena, &f->later,
                    tl_gen_address(&g->gen, TL_U8, there, tl_gen_int(&g->gen, at)));
}

void tl_cpu_fetch_now(TlCpuGen *g, TlCpuFetch *f)
{
    enum { FIRST_CACHE = 3, SECOND_CACHE = 2 };
    TlNestFetch from = f->nest->fetch_from;
    bool is_near =
        from == TL_NEST_FETCH_PAGES || from == TL_NEST_FETCH_TRIP || from == TL_NEST_FETCH_PART;
    TlCpuBranch b = {.join = f->large ? tl_gen_block(&g->gen, "on") : NULL};
    if (b.join) { /* what asks stands behind the loop's code, as the block is made later */
        LLVMBasicBlockRef ask = tl_gen_block(&g->gen, "ask");
        LLVMBuildCondBr(g->b, f->large, ask, b.join);
        LLVMPositionBuilderAtEnd(g->b, ask);
    }
    for (uint32_t i = 0; i < f->later.len; i++)
        tl_cpu_prefetch_line(g, f->later.data[i], false, is_near ? FIRST_CACHE : SECOND_CACHE);
    tl_cpu_join(g, b);
}
