/* Rows for the next program, fetched while this one computes: what nest_prefetch.c has decided. */
#include "codegen/cpu/cpu.h"

enum { LOCALITY = 2 }; /* into the second cache */

/* How much v grows when pid(0) grows by as many programs as run at once, as an i64; NULL: it does
 * not. */
static LLVMValueRef growth(TlCpuGen *g, const TlValue *v)
{
    const TlOp *op = v->def;
    LLVMValueRef by[2] = {NULL};
    if (!op)
        return NULL;
    if (op->opcode == TL_OP_PID)
        return tl_attr_int(op, TL_ATTR_AXIS, 0) == 0
                   ? tl_gen_int(&g->gen, g->plan->at_once)
                   : NULL;
    for (uint32_t i = 0; i < op->nin && i < 2; i++)
        by[i] = growth(g, tl_in(op, i));
    if (!by[0] && !by[1])
        return NULL;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef a = by[0] ? by[0] : zero, b = by[1] ? by[1] : zero;
    if (op->opcode == TL_OP_CAST)
        return a;
    if (op->opcode == TL_OP_ADD)
        return LLVMBuildAdd(g->b, a, b, "");
    if (op->opcode == TL_OP_SUB)
        return LLVMBuildSub(g->b, a, b, "");
    TL_ASSERT(op->opcode == TL_OP_MUL, "%s grows", tl_op_info(op->opcode)->text);
    const TlValue *factor = tl_in(op, by[0] ? 1 : 0);
    LLVMValueRef f = tl_gen_to_i64(&g->gen, factor, tl_gen_scalar(&g->gen, factor));
    return LLVMBuildMul(g->b, by[0] ? a : b, f, "");
}

/* Elements from a program's place to the next program's. */
static LLVMValueRef distance(TlCpuGen *g, const TlCpuAccess *a)
{
    LLVMValueRef sum = NULL;
    for (uint32_t i = 0; i < a->a->place.naxes; i++) {
        LLVMValueRef by = growth(g, a->a->place.index[i].value);
        if (!by)
            continue;
        by = LLVMBuildMul(g->b, by, a->view->stride[i], "");
        sum = sum ? LLVMBuildAdd(g->b, sum, by, "") : by;
    }
    TL_ASSERT(sum, "the next program reads the same place");
    return sum;
}

void tl_cpu_prefetch_begin(TlCpuGen *g, TlCpuRow *row)
{
    for (uint32_t i = 0; i < row->nest->next.len; i++)
        tl_vec_push(g->arena, &row->distance,
                    distance(g, tl_cpu_access_of(g, row->nest->next.data[i]->op)));
}

/* Where the next program will be when it is at this position. */
static LLVMValueRef next_address(TlCpuGen *g, const TlCpuAccess *a, LLVMValueRef by,
                                 const TlCpuAt *at)
{
    return tl_gen_address(&g->gen, a->view->dtype, tl_cpu_access_address(g, a, at), by);
}

static LLVMValueRef next_load(TlCpuGen *g, const TlCpuRow *row, uint32_t i, const TlCpuAt *at)
{
    const TlCpuAccess *load = tl_cpu_access_of(g, row->nest->next.data[i]->op);
    return next_address(g, load, row->distance.data[i], at);
}

void tl_cpu_prefetch_store(TlCpuGen *g, TlCpuRow *row, const TlCpuAt *first)
{
    if (!row->nest->ahead)
        return;
    const TlCpuAccess *store = tl_cpu_access_of(g, row->nest->op);
    row->ahead = next_address(g, store, distance(g, store), first);
    if (row->streams) /* no line of that row will be in a cache: ask again for what is read */
        row->ahead = LLVMBuildSelect(g->b, row->streams, next_load(g, row, 0, first), row->ahead,
                                     "");
}

void tl_cpu_prefetch(TlCpuGen *g, const TlCpuAt *at)
{
    const TlCpuRow *row = at->row;
    for (uint32_t i = 0; i < row->nest->next.len; i++)
        tl_cpu_prefetch_line(g, next_load(g, row, i, at), false, LOCALITY);
    if (!row->ahead)
        return;
    const TlCpuAccess *store = tl_cpu_access_of(g, row->nest->op);
    LLVMValueRef p = tl_gen_address(&g->gen, store->view->dtype, row->ahead, at->idx[at->lane]);
    tl_cpu_prefetch_line(g, p, true, LOCALITY);
}
