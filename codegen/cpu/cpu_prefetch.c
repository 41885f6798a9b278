/* Rows for the next program, fetched while this one computes: what nest_prefetch.c has decided. */
#include "codegen/cpu/cpu.h"

/* Bytes; into the second cache. */
enum { LINE = 64, LOCALITY = 2 };
/* Arrays that together fill the last cache. A nest that computes little asks for parts of larger
 * ones only: of nearer rows the CPU itself begins the loads in time, and fetches of 8 KiB take 0.15
 * of the time. */
enum { PARTS_OF_CACHE = 1 };

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
                   ? tl_gen_int(&g->gen, tl_nest_at_once(g->plan, 0))
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
    for (uint32_t i = 0; i < row->nest->next.len; i++) {
        const TlCpuAccess *a = tl_cpu_access_of(g, row->nest->next.data[i]->op);
        tl_vec_push(g->arena, &row->distance, distance(g, a));
        if (row->nest->next_near)
            continue;
        LLVMValueRef large = tl_cpu_is_large(g, a, PARTS_OF_CACHE);
        row->asks = row->asks ? LLVMBuildOr(g->b, row->asks, large, "") : large;
    }
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

/* The lines of the vector at the position `at` that begins at p. */
static void prefetch_lines(TlCpuGen *g, const TlCpuAt *at, TlDtype dtype, LLVMValueRef p,
                           bool writes)
{
    int64_t bytes = (int64_t)at->width * tl_dtype_bytes(dtype);
    for (int64_t i = 0; i < bytes; i += LINE)
        tl_cpu_prefetch_line(g, tl_gen_address(&g->gen, TL_U8, p, tl_gen_int(&g->gen, i)), writes,
                             LOCALITY);
}

void tl_cpu_prefetch(TlCpuGen *g, const TlCpuAt *at)
{
    const TlCpuRow *row = at->row;
    for (uint32_t i = 0; i < row->nest->next.len; i++)
        prefetch_lines(g, at, tl_cpu_access_of(g, row->nest->next.data[i]->op)->view->dtype,
                       next_load(g, row, i, at), false);
    if (!row->ahead)
        return;
    const TlCpuAccess *store = tl_cpu_access_of(g, row->nest->op);
    LLVMValueRef p = tl_gen_address(&g->gen, store->view->dtype, row->ahead, at->idx[at->lane]);
    prefetch_lines(g, at, store->view->dtype, p, true);
}

void tl_cpu_prefetch_part(TlCpuGen *g, const TlCpuAccess *a, const TlCpuAt *at)
{
    enum { FIRST_CACHE = 3 };
    const TlNest *n = at->row->nest;
    if (!n->part || !at->whole)
        return;
    LLVMValueRef p = tl_gen_address(&g->gen, TL_U8, tl_cpu_access_address(g, a, at),
                                    tl_gen_int(&g->gen, n->part));
    int64_t bytes = (int64_t)at->width * tl_dtype_bytes(a->view->dtype);
    for (int64_t i = 0; i < bytes; i += LINE)
        tl_cpu_prefetch_line(g, tl_gen_address(&g->gen, TL_U8, p, tl_gen_int(&g->gen, i)), true,
                             FIRST_CACHE);
}

/* ---- the next trip of a loop ---- */

/* Which of the steps of the nest's loops but the innermost this is; *steps: of how many. */
static LLVMValueRef number_of_step(TlCpuGen *g, const TlNest *n, const TlCpuAt *at, int64_t *steps)
{
    LLVMValueRef k = tl_gen_int(&g->gen, 0);
    *steps = 1;
    for (int d = 0; d < at->rank; d++) {
        if (d == n->axis)
            continue;
        int64_t step = d == n->rows_dim ? n->rows : 1, of = (n->form.extent[d] + step - 1) / step;
        LLVMValueRef i = LLVMBuildUDiv(g->b, at->idx[d], tl_gen_int(&g->gen, step), "");
        k = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, k, tl_gen_int(&g->gen, of), ""), i, "");
        *steps *= of;
    }
    return k;
}

/* Bytes from the first to the last of what lies behind an axis, if that is known. */
static int64_t bytes_behind(const TlNestAccess *a, uint32_t axis)
{
    int64_t run = 1;
    for (uint32_t i = a->place.naxes; i-- > axis + 1;)
        if (a->place.axes[i].kind == TL_AXIS_SLICE && a->axis[i].stride > 0)
            run = a->axis[i].stride * tl_nest_axis_width(a, i);
    return run * tl_dtype_bytes(a->place.base->type->dtype);
}

void tl_cpu_prefetch_trip(TlCpuGen *g, const TlNest *n, const TlCpuAt *at)
{
    enum { MOST_LINES = 64 };
    if (!n->trip)
        return;
    const TlNestAccess *a = n->trip;
    const TlCpuAccess *load = tl_cpu_access_of(g, a->op);
    int64_t steps, rows = tl_nest_axis_width(a, n->trip_axis),
                   bytes = bytes_behind(a, n->trip_axis);
    LLVMValueRef k = number_of_step(g, n, at, &steps);
    int64_t pieces = steps > rows ? steps / rows : 1, lines = (bytes + LINE - 1) / LINE;
    int64_t each = (lines + pieces - 1) / pieces;
    if (steps % rows || each > MOST_LINES)
        return;
    TlCpuAt first;
    tl_cpu_at_init(g, &first, (int)a->place.rank, 0, 1);
    for (int d = 0; d < first.rank; d++)
        first.idx[d] = tl_gen_int(&g->gen, 0);
    first.idx[a->axis[n->trip_axis].dim] =
        LLVMBuildAdd(g->b, LLVMBuildUDiv(g->b, k, tl_gen_int(&g->gen, pieces), ""),
                     tl_gen_int(&g->gen, rows), "");
    LLVMValueRef p = tl_cpu_access_address(g, load, &first);
    LLVMValueRef piece = LLVMBuildURem(g->b, k, tl_gen_int(&g->gen, pieces), "");
    p = tl_gen_address(&g->gen, TL_U8, p,
                       LLVMBuildMul(g->b, piece, tl_gen_int(&g->gen, each * LINE), ""));
    for (int64_t i = 0; i < each; i++)
        tl_cpu_prefetch_line(g, tl_gen_address(&g->gen, TL_U8, p, tl_gen_int(&g->gen, i * LINE)),
                             false, LOCALITY);
}
