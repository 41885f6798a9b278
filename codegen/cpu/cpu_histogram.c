/* Histograms on the CPU.
 *
 * Values are computed in vectors, collected, and then counted one by one. A vector that lies in
 * memory already, and whose values all count, is counted in place: collecting it would take a
 * store, and a CPU does about one store a cycle, which counting a value needs. Consecutive values
 * are counted in different tables, so that a run of equal values does not wait for each sum to
 * arrive in memory; the tables are added up at the end. A value that does not count goes to a bin
 * of its own behind the others. With weights, values are not collected: each vector's lanes are
 * added to the tables at once. */
#include "codegen/cpu/cpu.h"

enum { TURNS = 4 };     /* values that are counted at a time */
enum { LINE = 64 / 4 }; /* counts in a cache line */

typedef struct Bins {
    TlOp *op;
    LLVMTypeRef type; /* of a count, or a sum of weights */
    LLVMValueRef tables;
    int64_t length; /* of a table */
    int ntables;
} Bins;

static LLVMValueRef table_at(TlCpuGen *g, const Bins *h, int table, LLVMValueRef i)
{
    i = LLVMBuildAdd(g->b, i, tl_gen_int(&g->gen, table * h->length), "");
    return LLVMBuildInBoundsGEP2(g->b, h->type, h->tables, &i, 1, "");
}

static void zero_tables(TlCpuGen *g, const Bins *h)
{
    TlCpuLoop l;
    tl_cpu_loop_known(g, &l, 0, h->ntables * h->length, LINE, 0, NULL);
    LLVMValueRef zero = LLVMConstNull(tl_gen_vec(h->type, LINE));
    LLVMSetAlignment(LLVMBuildStore(g->b, zero, table_at(g, h, 0, l.i)), 64);
    tl_cpu_loop_end(g, &l, NULL);
}

static LLVMValueRef lane(TlCpuGen *g, LLVMValueRef x, int i)
{
    return LLVMBuildExtractElement(g->b, x, LLVMConstInt(g->i32, (unsigned)i, 0), "");
}

static void add_to_bin(TlCpuGen *g, const Bins *h, int table, LLVMValueRef bin, LLVMValueRef weight)
{
    LLVMValueRef p = table_at(g, h, table, LLVMBuildZExt(g->b, bin, g->i64, ""));
    LLVMValueRef n = LLVMBuildLoad2(g->b, h->type, p, "");
    TlDtype d = h->op->out[0]->type->dtype;
    LLVMBuildStore(g->b, tl_gen_combine(&g->gen, TL_COMBINE_ADD, d, n, weight), p);
}

static void count_value(TlCpuGen *g, const Bins *h, int table, LLVMValueRef bin)
{
    add_to_bin(g, h, table, bin, LLVMConstInt(g->i32, 1, 0));
}

static LLVMValueRef gathered_at(TlCpuGen *g, const Bins *h, LLVMValueRef i)
{
    return table_at(g, h, h->ntables, i);
}

static LLVMValueRef how_many(TlCpuGen *g, const Bins *h)
{
    return gathered_at(g, h, tl_gen_int(&g->gen, TL_NEST_COUNTED));
}

/* Counts the n values at p, in tables by turns; they are read two at a time. */
static void count_at(TlCpuGen *g, const Bins *h, LLVMValueRef p, int n)
{
    TL_ASSERT(n % 2 == 0, "%d values by two", n);
    for (int i = 0; i < n; i += 2) {
        LLVMValueRef at = tl_gen_address(&g->gen, TL_I32, p, tl_gen_int(&g->gen, i));
        LLVMValueRef two = LLVMBuildLoad2(g->b, g->i64, at, "");
        LLVMSetAlignment(two, 4);
        LLVMSetVolatile(two, 1); /* or LLVM would take it out of a vector that it has */
        LLVMValueRef high = LLVMBuildLShr(g->b, two, tl_gen_int(&g->gen, 32), "");
        count_value(g, h, i % h->ntables, LLVMBuildTrunc(g->b, two, g->i32, ""));
        count_value(g, h, (i + 1) % h->ntables, LLVMBuildTrunc(g->b, high, g->i32, ""));
    }
}

/* The same of bytes. */
static void count_bytes(TlCpuGen *g, const Bins *h, LLVMValueRef p, int n)
{
    for (int i = 0; i < n; i++) {
        LLVMValueRef at = tl_gen_address(&g->gen, TL_U8, p, tl_gen_int(&g->gen, i));
        LLVMValueRef byte = LLVMBuildLoad2(g->b, g->i8, at, "");
        LLVMSetVolatile(byte, 1); /* as above */
        count_value(g, h, i % h->ntables, byte);
    }
}

/* Counts n gathered values, a multiple of TURNS. */
static void count_gathered(TlCpuGen *g, const Bins *h, LLVMValueRef n)
{
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), n, TURNS, 0, NULL);
    count_at(g, h, gathered_at(g, h, l.i), TURNS);
    tl_cpu_loop_end(g, &l, NULL);
}

/* Adds a vector of values to those gathered. Where a row's end is tested, vectors are narrower; a
 * row is a multiple of the widest all the same, so each begins at a multiple of its width, and
 * TL_NEST_COUNTED is met. */
static void gather(TlCpuGen *g, const Bins *h, LLVMValueRef x, int width)
{
    LLVMValueRef at = how_many(g, h), n = LLVMBuildLoad2(g->b, g->i64, at, "");
    LLVMSetAlignment(LLVMBuildStore(g->b, x, gathered_at(g, h, n)), 4 * (unsigned)width);
    n = LLVMBuildAdd(g->b, n, tl_gen_int(&g->gen, width), "");
    LLVMBuildStore(g->b, n, at);
    LLVMValueRef all = tl_gen_int(&g->gen, TL_NEST_COUNTED);
    TlCpuBranch full =
        tl_cpu_branch(g, LLVMBuildICmp(g->b, LLVMIntEQ, n, all, ""), true, "then", "join");
    count_gathered(g, h, all);
    LLVMBuildStore(g->b, tl_gen_int(&g->gen, 0), at);
    tl_cpu_join(g, full);
}

/* Where the lanes lie in memory, as they are if all of them count. NULL: some are not there. */
static LLVMValueRef place_of(TlCpuGen *g, TlValue *counted, TlCpuAt *at)
{
    LLVMValueRef x = tl_cpu_eval(g, counted, at);
    return LLVMIsALoadInst(x) ? LLVMGetOperand(x, 0) : NULL;
}

/* Counts the lanes of x; those that do not count, bin `beyond`. */
static void count_bounded(TlCpuGen *g, const Bins *h, LLVMValueRef x, LLVMValueRef counts,
                          LLVMValueRef beyond, int width)
{
    x = LLVMBuildSelect(g->b, counts, x, beyond, "");
    if (width >= TURNS) {
        gather(g, h, x, width);
        return;
    }
    for (int i = 0; i < width; i++)
        count_value(g, h, i % h->ntables, width > 1 ? lane(g, x, i) : x);
}

/* Counts the lanes of x where they lie, at p, if all count. */
static void count_in_place(TlCpuGen *g, const Bins *h, LLVMValueRef p, bool bytes, LLVMValueRef x,
                           LLVMValueRef counts, LLVMValueRef beyond, int width)
{
    LLVMBasicBlockRef all = tl_gen_block(&g->gen, "all"), some = tl_gen_block(&g->gen, "some"),
                      on = tl_gen_block(&g->gen, "counted");
    LLVMTypeRef mask = LLVMIntTypeInContext(g->c, (unsigned)width);
    LLVMValueRef is_all = LLVMBuildICmp(g->b, LLVMIntEQ, LLVMBuildBitCast(g->b, counts, mask, ""),
                                        LLVMConstAllOnes(mask), "");
    LLVMBuildCondBr(g->b, is_all, all, some);
    LLVMPositionBuilderAtEnd(g->b, all);
    (bytes ? count_bytes : count_at)(g, h, p, width);
    LLVMBuildBr(g->b, on);
    LLVMPositionBuilderAtEnd(g->b, some);
    count_bounded(g, h, x, counts, beyond, width);
    tl_cpu_join(g, (TlCpuBranch){.join = on});
}

static void add_weights(TlCpuGen *g, const Bins *h, LLVMValueRef x, LLVMValueRef weights,
                        int width)
{
    for (int i = 0; i < width; i++)
        add_to_bin(g, h, i % h->ntables, width > 1 ? lane(g, x, i) : x,
                   width > 1 ? lane(g, weights, i) : weights);
}

static void count_values(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Bins *h = user;
    TlValue *v = tl_in(h->op, 0);
    TlNestForm form = tl_nest_form(v->type);
    TlCpuFetch fetch = {.nest = at->row->nest, .arms = g->arms};
    at->fetch = &fetch;
    LLVMValueRef x = tl_cpu_eval(g, v, at), mask = tl_cpu_lane_mask(g, &form, at);
    LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)h->op->out[0]->type->shape[0], 0);
    LLVMValueRef beyond = tl_gen_splat(&g->gen, n, at->width);
    LLVMValueRef counts = LLVMBuildICmp(g->b, LLVMIntULT, x, beyond, "");
    if (mask)
        counts = LLVMBuildAnd(g->b, counts, mask, "");
    TlValue *counted = mask || at->width < TURNS ? NULL : at->row->nest->counted;
    LLVMValueRef p = counted ? place_of(g, counted, at) : NULL;
    if (h->op->nin > 1)
        add_weights(g, h, LLVMBuildSelect(g->b, counts, x, beyond, ""),
                    tl_cpu_eval(g, tl_in(h->op, 1), at), at->width);
    else if (p)
        count_in_place(g, h, p, counted->type->dtype == TL_U8, x, counts, beyond, at->width);
    else
        count_bounded(g, h, x, counts, beyond, at->width);
    at->fetch = NULL;
    tl_cpu_fetch_now(g, &fetch);
}

static void add_tables(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Bins *h = user;
    const TlType *t = h->op->out[0]->type;
    TlNestForm f = tl_nest_form(t);
    LLVMTypeRef type = tl_gen_vec(h->type, at->width);
    LLVMValueRef sum = NULL;
    for (int i = 0; i < h->ntables; i++) {
        LLVMValueRef n = LLVMBuildLoad2(g->b, type, table_at(g, h, i, at->idx[f.lane]), "");
        LLVMSetAlignment(n, (unsigned)tl_dtype_bytes(t->dtype));
        sum = sum ? tl_gen_combine(&g->gen, TL_COMBINE_ADD, t->dtype, sum, n) : n;
    }
    tl_cpu_own_store(g, h->op->out[0], at, sum);
}

void tl_cpu_histogram(TlCpuGen *g, const TlNest *count, const TlNest *add)
{
    TL_ASSERT(count->kind == TL_NEST_COUNT && add->kind == TL_NEST_ADD, "%s counts nothing",
              tl_op_info(count->op->opcode)->text);
    Bins h = {.op = count->op,
              .type = tl_gen_elem_type(&g->gen, count->op->out[0]->type),
              .tables = tl_cpu_home_ptr(g, count->home),
              .length = count->tables.length,
              .ntables = count->tables.n};
    zero_tables(g, &h);
    bool gathers = count->op->nin == 1;
    if (gathers)
        LLVMBuildStore(g->b, tl_gen_int(&g->gen, 0), how_many(g, &h));
    tl_cpu_nest(g, count, count_values, &h);
    if (gathers && count->width >= TURNS)
        count_gathered(g, &h, LLVMBuildLoad2(g->b, g->i64, how_many(g, &h), ""));
    tl_cpu_nest(g, add, add_tables, &h);
}
