/* Histograms on the CPU.
 *
 * Values are counted in several tables by turns, so that a run of equal values does not wait for
 * each sum to arrive in memory; the tables are added up. A value that does not count goes to a bin
 * of its own behind the others. */
#include "codegen/cpu/cpu.h"

typedef struct Bins {
    TlOp *op;
    LLVMValueRef tables;
    int64_t length; /* of a table */
    int ntables, next;
} Bins;

static int64_t table_length(const TlOp *op)
{
    TlCpuForm f = tl_cpu_form(op->out[0]->type);
    return f.padded[f.lane] + 64 / 4;
}

static int count_tables(const TlOp *op)
{
    return tl_type_elems(tl_in(op, 0)->type) >= 2 * tl_type_elems(op->out[0]->type) ? 4 : 1;
}

uint64_t tl_cpu_histogram_bytes(const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_HISTOGRAM, "%s counts nothing", tl_op_info(op->opcode)->text);
    return (uint64_t)(count_tables(op) * table_length(op)) * 4;
}

static LLVMValueRef table_at(TlCpuGen *g, const Bins *h, int table, LLVMValueRef i)
{
    i = LLVMBuildAdd(g->b, i, tl_gen_int(&g->gen, table * h->length), "");
    return LLVMBuildInBoundsGEP2(g->b, g->i32, h->tables, &i, 1, "");
}

static void zero_tables(TlCpuGen *g, const Bins *h)
{
    int width = 64 / 4;
    TlCpuLoop l = tl_cpu_loop_begin(g, 0, h->ntables * h->length, width);
    LLVMValueRef zero = LLVMConstNull(tl_gen_vec(g->i32, width));
    LLVMSetAlignment(LLVMBuildStore(g->b, zero, table_at(g, h, 0, l.iv)), 64);
    tl_cpu_loop_end(g, &l, NULL);
}

static void count_value(TlCpuGen *g, Bins *h, LLVMValueRef bin)
{
    LLVMValueRef p = table_at(g, h, h->next++ % h->ntables, LLVMBuildZExt(g->b, bin, g->i64, ""));
    LLVMValueRef n = LLVMBuildLoad2(g->b, g->i32, p, "");
    LLVMBuildStore(g->b, LLVMBuildAdd(g->b, n, LLVMConstInt(g->i32, 1, 0), ""), p);
}

static LLVMValueRef lane(TlCpuGen *g, LLVMValueRef x, int i)
{
    return LLVMBuildExtractElement(g->b, x, LLVMConstInt(g->i32, (unsigned)i, 0), "");
}

static void count_values(TlCpuGen *g, TlCpuAt *at, void *user)
{
    Bins *h = user;
    TlValue *v = tl_in(h->op, 0);
    TlCpuForm form = tl_cpu_form(v->type);
    LLVMValueRef x = tl_cpu_eval(g, v, at), mask = tl_cpu_lane_mask(g, &form, at);
    LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)h->op->out[0]->type->shape[0], 0);
    LLVMValueRef beyond = tl_gen_splat(&g->gen, n, at->width);
    x = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntULT, x, beyond, ""), x, beyond, "");
    if (mask)
        x = LLVMBuildSelect(g->b, mask, x, beyond, "");
    for (int i = 0; i < at->width; i++)
        count_value(g, h, at->width > 1 ? lane(g, x, i) : x);
}

static void add_tables(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Bins *h = user;
    const TlType *t = h->op->out[0]->type;
    TlCpuForm f = tl_cpu_form(t);
    LLVMTypeRef type = tl_gen_vec(g->i32, at->width);
    LLVMValueRef sum = NULL;
    for (int i = 0; i < h->ntables; i++) {
        LLVMValueRef n = LLVMBuildLoad2(g->b, type, table_at(g, h, i, at->idx[f.lane]), "");
        LLVMSetAlignment(n, 4);
        sum = sum ? LLVMBuildAdd(g->b, sum, n, "") : n;
    }
    tl_cpu_home_store(g, t, tl_cpu_home_ptr(g, g->plan->place[h->op->out[0]->id].buffer), &f, at,
                      sum);
}

void tl_cpu_lower_histogram(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_HISTOGRAM, "%s counts nothing", tl_op_info(op->opcode)->text);
    enum { MOST_LANES = 8 };
    uint64_t buffer = 0;
    bool placed = tl_map_get(&g->plan->extra, (uint64_t)(uintptr_t)op, &buffer);
    TL_ASSERT(placed, "a histogram without tables");
    const TlType *out = op->out[0]->type, *in = tl_in(op, 0)->type;
    TlCpuForm f = tl_cpu_form(out), values = tl_cpu_form(in);
    Bins h = {.op = op,
              .tables = tl_cpu_home_ptr(g, (int32_t)buffer),
              .length = table_length(op),
              .ntables = count_tables(op)};
    zero_tables(g, &h);
    int width = 1;
    TlCpuInside inside = {0};
    LLVMValueRef end = NULL;
    if (in->rank) {
        width = tl_cpu_fit_width(values.padded[values.lane],
                                 tl_cpu_chain_width(g, tl_in(op, 0), MOST_LANES));
        tl_cpu_inside_begin(g, &inside);
        tl_cpu_inside_value(g, &inside, tl_in(op, 0), values.lane, false);
        end = tl_cpu_inside_end(g, &inside, values.extent[values.lane], width);
    }
    tl_cpu_nest_split(g, in, width, &inside, end, count_values, &h);
    tl_cpu_nest(g, out, tl_cpu_fit_width(f.padded[f.lane], g->vector_bytes / 4), add_tables, &h);
}
