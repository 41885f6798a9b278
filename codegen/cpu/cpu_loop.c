/* Loops and branches. */
#include <string.h>

#include "codegen/cpu/cpu.h"

/* ---- loops ---- */

/* The loop's head, which has phis. */
static void enter_loop(TlCpuGen *g, TlCpuLoop *l, LLVMValueRef from, const LLVMValueRef *init)
{
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, l->head);
    LLVMPositionBuilderAtEnd(g->b, l->head);
    l->i = LLVMBuildPhi(g->b, g->i64, "i");
    LLVMAddIncoming(l->i, &from, &entry, 1);
    for (uint32_t k = 0; k < l->ncarry; k++) {
        LLVMValueRef x = init[k];
        l->carry[k] = LLVMBuildPhi(g->b, LLVMTypeOf(x), "");
        LLVMAddIncoming(l->carry[k], &x, &entry, 1);
    }
}

static void set_up(TlCpuGen *g, TlCpuLoop *l, int64_t step, uint32_t ncarry)
{
    TL_ASSERT(ncarry <= TL_NEST_SUMS && step > 0, "%u values carried by one loop", ncarry);
    *l = (TlCpuLoop){.by = tl_gen_int(&g->gen, step), .ncarry = ncarry};
}

void tl_cpu_loop_begin(TlCpuGen *g, TlCpuLoop *l, LLVMValueRef from, LLVMValueRef to, int64_t step,
                       uint32_t ncarry, const LLVMValueRef *init)
{
    set_up(g, l, step, ncarry);
    LLVMBasicBlockRef body = tl_gen_block(&g->gen, "body");
    l->head = tl_gen_block(&g->gen, "for");
    l->exit = tl_gen_block(&g->gen, "end");
    enter_loop(g, l, from, init);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, l->i, to, ""), body, l->exit);
    l->marks = g->marks.len;
    g->conditional++;
    LLVMPositionBuilderAtEnd(g->b, body);
}

void tl_cpu_loop_known(TlCpuGen *g, TlCpuLoop *l, int64_t from, int64_t end, int64_t step,
                       uint32_t ncarry, const LLVMValueRef *init)
{
    TL_ASSERT(end > from && step > 0,
              "a loop from %lld to %lld by %lld",
              (long long)from, (long long)end, (long long)step);
    set_up(g, l, step, ncarry);
    l->end = end;
    if (from + step < end) {
        l->head = tl_gen_block(&g->gen, "loop");
        enter_loop(g, l, tl_gen_int(&g->gen, from), init);
        return;
    }
    l->i = tl_gen_int(&g->gen, from);
    for (uint32_t k = 0; k < ncarry; k++)
        l->carry[k] = init[k];
}

/* The block's branch goes its second way four times as often as its first. */
static void prefer_second(TlCpuGen *g, LLVMBasicBlockRef block)
{
    enum { FIRST = 1, SECOND = 4 };
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(g->c, "branch_weights", strlen("branch_weights")),
        LLVMValueAsMetadata(LLVMConstInt(g->i32, FIRST, 0)),
        LLVMValueAsMetadata(LLVMConstInt(g->i32, SECOND, 0))};
    tl_llvm_set_metadata(g->l, LLVMGetBasicBlockTerminator(block), "prof", weights, 3);
}

void tl_cpu_loop_is_short(TlCpuGen *g, const TlCpuLoop *l)
{
    prefer_second(g, l->head);
}

void tl_cpu_loop_end(TlCpuGen *g, TlCpuLoop *l, const LLVMValueRef *next)
{
    TL_ASSERT(!l->ncarry || next, "%u values carried to nowhere", l->ncarry);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMValueRef i = l->head ? LLVMBuildAdd(g->b, l->i, l->by, "") : NULL;
    if (i)
        LLVMAddIncoming(l->i, &i, &latch, 1);
    for (uint32_t k = 0; k < l->ncarry; k++) {
        LLVMValueRef x = next[k];
        if (l->head)
            LLVMAddIncoming(l->carry[k], &x, &latch, 1);
        if (!l->exit)
            l->carry[k] = x;
    }
    if (!l->head)
        return;
    if (l->exit) {
        g->marks.len = l->marks;
        g->conditional--;
        LLVMBuildBr(g->b, l->head);
        LLVMPositionBuilderAtEnd(g->b, l->exit);
        return;
    }
    LLVMBasicBlockRef done = tl_gen_block(&g->gen, "done");
    LLVMValueRef end = tl_gen_int(&g->gen, l->end);
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, i, end, ""), l->head, done);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/* ---- branches ---- */

TlCpuBranch tl_cpu_branch(TlCpuGen *g, LLVMValueRef cond, bool value, const char *then,
                          const char *join)
{
    TlCpuBranch b = {.from = LLVMGetInsertBlock(g->b)};
    if (!cond)
        return b;
    LLVMBasicBlockRef block = tl_gen_block(&g->gen, then);
    b.join = tl_gen_block(&g->gen, join);
    b.counts = true;
    b.marks = g->marks.len;
    g->conditional++;
    LLVMBuildCondBr(g->b, cond, value ? block : b.join, value ? b.join : block);
    LLVMPositionBuilderAtEnd(g->b, block);
    return b;
}

TlCpuBranch tl_cpu_rest(TlCpuGen *g, LLVMValueRef from, LLVMValueRef to)
{
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSLT, from, to, "");
    TlCpuBranch b = tl_cpu_branch(g, some, true, "rest", "rested");
    prefer_second(g, b.from);
    return b;
}

void tl_cpu_join(TlCpuGen *g, TlCpuBranch b)
{
    if (!b.join)
        return;
    if (b.counts)
        g->marks.len = b.marks;
    g->conditional -= b.counts;
    LLVMBuildBr(g->b, b.join);
    LLVMPositionBuilderAtEnd(g->b, b.join);
}

static LLVMValueRef either(TlCpuGen *g, LLVMValueRef x, LLVMBasicBlockRef from_x, LLVMValueRef y,
                           LLVMBasicBlockRef from_y)
{
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(x), "");
    LLVMAddIncoming(phi, &x, &from_x, 1);
    LLVMAddIncoming(phi, &y, &from_y, 1);
    return phi;
}

void tl_cpu_join_values(TlCpuGen *g, TlCpuBranch b, uint32_t n, LLVMValueRef *x,
                        const LLVMValueRef *otherwise)
{
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    tl_cpu_join(g, b);
    for (uint32_t i = 0; b.join && i < n; i++)
        x[i] = either(g, x[i], end, otherwise[i], b.from);
}

LLVMValueRef tl_cpu_join_value(TlCpuGen *g, TlCpuBranch b, LLVMValueRef then,
                               LLVMValueRef otherwise)
{
    tl_cpu_join_values(g, b, 1, &then, &otherwise);
    return then;
}

void tl_cpu_fail(TlCpuGen *g, LLVMValueRef failed, int kind, TlLoc loc, const char *text)
{
    LLVMTypeRef params[6] = {g->ptr, g->i32, g->i32, g->i32, g->i32, g->ptr};
    TlCpuBranch branch = tl_cpu_branch(g, failed, true, "then", "join");
    LLVMValueRef args[6] = {g->ctx,
                            LLVMConstInt(g->i32, (unsigned)kind, 0),
                            LLVMConstInt(g->i32, loc.file, 0),
                            LLVMConstInt(g->i32, loc.line, 0),
                            LLVMConstInt(g->i32, loc.col, 0),
                            LLVMBuildGlobalStringPtr(g->b, text, "text")};
    tl_cpu_service(g, TL_CPU_SERVICE(fail), LLVMFunctionType(g->void_, params, 6, 0), args, 6);
    tl_cpu_join(g, branch);
}

TlCpuFork tl_cpu_fork(TlCpuGen *g, LLVMValueRef cond)
{
    TlCpuFork f = {.slow = tl_gen_block(&g->gen, "some"), .join = tl_gen_block(&g->gen, "join")};
    LLVMBasicBlockRef fast = tl_gen_block(&g->gen, "all");
    LLVMBuildCondBr(g->b, cond, fast, f.slow);
    f.marks = g->marks.len;
    g->conditional++;
    LLVMPositionBuilderAtEnd(g->b, fast);
    return f;
}

TlCpuFork tl_cpu_fork_rarely(TlCpuGen *g, LLVMValueRef cond)
{
    LLVMBasicBlockRef block = LLVMGetInsertBlock(g->b);
    TlCpuFork f = tl_cpu_fork(g, cond);
    prefer_second(g, block);
    return f;
}

void tl_cpu_fork_else(TlCpuGen *g, TlCpuFork *f, LLVMValueRef fast)
{
    f->fast = fast;
    f->fast_end = LLVMGetInsertBlock(g->b);
    g->marks.len = f->marks;
    LLVMBuildBr(g->b, f->join);
    LLVMPositionBuilderAtEnd(g->b, f->slow);
}

LLVMValueRef tl_cpu_fork_end(TlCpuGen *g, TlCpuFork *f, LLVMValueRef slow)
{
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    g->marks.len = f->marks;
    g->conditional--;
    LLVMBuildBr(g->b, f->join);
    LLVMPositionBuilderAtEnd(g->b, f->join);
    return slow ? either(g, f->fast, f->fast_end, slow, end) : NULL;
}
