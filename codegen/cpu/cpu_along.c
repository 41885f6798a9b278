/* Multiplies few rows of A by B as it is, where both lie along k (cpu_matmul.c): so do the lanes of
 * sums. A vector of B is multiplied by those of A's rows at the same place, and nothing is turned:
 *
 *     sum[r, c][lane] += A[r, k + lane] * B[k + lane, c]      a block of rows and columns
 *     C[r, c] += the lanes of sum[r, c]                       once for a chunk
 *
 * A block of one row has more columns, so that as many sums do not wait for each other. */
#include "codegen/cpu/cpu_access.h"
#include "codegen/cpu/cpu_matmul.h"

#include <string.h>

typedef struct Block {
    TlCpuMultiply *x;
    int rows, columns;
    LLVMValueRef row[TL_NEST_ACCUMULATORS], column[TL_NEST_ACCUMULATORS];
    LLVMValueRef a[TL_NEST_ACCUMULATORS];   /* addresses of its rows of A */
    LLVMValueRef sum[TL_NEST_ACCUMULATORS]; /* row by row; behind them, where A is flipped, those of
                                             * B's columns */
} Block;

static uint32_t sums_of(const Block *b)
{
    return (uint32_t)((b->rows + b->x->p->flips) * b->columns);
}

/* `last` stands for those past it: they are computed more than once, with the same result. */
static void number(TlCpuGen *g, LLVMValueRef first, LLVMValueRef last, int n, LLVMValueRef *out)
{
    for (int i = 0; i < n; i++) {
        LLVMValueRef at = i ? tl_cpu_add(g, first, tl_gen_int(&g->gen, i)) : first;
        out[i] = last && i ? tl_cpu_smaller(g, at, last) : at;
    }
}

static void begin_block(Block *b, LLVMValueRef m, LLVMValueRef column)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    LLVMValueRef one = tl_gen_int(&g->gen, 1);
    LLVMTypeRef vector = tl_gen_vec(x->elem, x->width);
    LLVMValueRef none = tl_is_float(x->dtype)
                            ? tl_gen_splat(&g->gen, LLVMConstReal(x->elem, -0.0), x->width)
                            : LLVMConstNull(vector);
    number(g, m, LLVMBuildSub(g->b, x->to, one, ""), b->rows, b->row);
    number(g, column, x->n->few_rows.ends ? LLVMBuildSub(g->b, x->columns, one, "") : NULL,
           b->columns, b->column);
    for (int r = 0; r < b->rows; r++)
        b->a[r] = tl_cpu_part_at(x, x->a, LLVMBuildMul(g->b, b->row[r], x->a_row, ""));
    for (uint32_t i = 0; i < sums_of(b); i++)
        b->sum[i] = none;
}

/* sum += A[rows, k ..] * B[from .., columns]; from: k in the iteration. */
static void add_vectors(Block *b, LLVMValueRef k, LLVMValueRef from)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    LLVMValueRef of_b[TL_NEST_ACCUMULATORS], *ones = b->sum + b->rows * b->columns;
    tl_cpu_read_along(x, from, b->column, b->columns, of_b);
    for (int r = 0; r < b->rows; r++) {
        LLVMValueRef a = LLVMBuildLoad2(g->b, tl_gen_vec(x->elem, x->width),
                                        tl_cpu_part_at(x, b->a[r], k), "");
        LLVMSetAlignment(a, (unsigned)tl_dtype_bytes(x->p->part[0]));
        for (int c = 0; c < b->columns; c++) {
            LLVMValueRef *sum = &b->sum[r * b->columns + c];
            *sum = tl_cpu_multiply_add(x, a, of_b[c], *sum);
        }
    }
    for (int c = 0; x->p->flips && c < b->columns; c++)
        ones[c] = tl_cpu_dot_add_ones(&g->gen, x->p->insn, x->p->part[1], of_b[c], ones[c]);
}

/* sum += the chunk's part of the block, iteration by iteration. */
static void add_trips(Block *b)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    int64_t k = x->n->pack[1]->value->type->shape[0], per = x->per;
    uint32_t n = sums_of(b);
    TlCpuLoop trips, l;
    tl_cpu_loop_begin(g, &trips, tl_gen_int(&g->gen, 0), x->trips, 1, n, b->sum);
    memcpy(b->sum, trips.carry, n * sizeof *b->sum);
    tl_cpu_lower_trip(x, tl_cpu_add(g, x->first, trips.i));
    tl_cpu_loop_known(g, &l, 0, k / per, x->width, n, b->sum);
    memcpy(b->sum, l.carry, n * sizeof *b->sum);
    LLVMValueRef from = tl_cpu_times(g, l.i, per);
    add_vectors(b, tl_cpu_add(g, tl_cpu_times(g, trips.i, k), from), from);
    tl_cpu_loop_end(g, &l, b->sum);
    memcpy(b->sum, l.carry, n * sizeof *b->sum);
    tl_cpu_loop_end(g, &trips, b->sum);
    memcpy(b->sum, trips.carry, n * sizeof *b->sum);
}

/* ---- up to the ends ---- */

/* A vector along k; lanes NULL: all are inside. */
static LLVMValueRef vector_along(TlCpuMultiply *x, LLVMValueRef p, LLVMValueRef lanes)
{
    TlType elem = {.kind = TL_TILE, .dtype = x->dtype};
    if (lanes)
        return tl_cpu_masked_load(x->g, &elem, p, lanes,
                                  tl_gen_const(&x->g->gen, &elem, 0, x->width), x->width, false);
    LLVMValueRef v = LLVMBuildLoad2(x->g->b, tl_gen_vec(x->elem, x->width), p, "");
    LLVMSetAlignment(v, (unsigned)tl_dtype_bytes(x->dtype));
    return v;
}

static void ask_along(Block *b, LLVMValueRef k, const LLVMValueRef *at)
{
    TlCpuGen *g = b->x->g;
    LLVMValueRef further = tl_gen_int(&g->gen, TL_CPU_FAR_BYTES / tl_dtype_bytes(b->x->dtype));
    TlCpuBranch ask = tl_cpu_branch(g, LLVMBuildICmp(g->b, LLVMIntSLT, k, b->x->b_asks, ""), true,
                                    "ask", "asked");
    for (int c = 0; c < b->columns; c++)
        tl_cpu_prefetch_line(g, tl_cpu_elem_at(b->x, at[c], further), false, TL_CPU_SECOND_CACHE);
    tl_cpu_join(g, ask);
}

/* sum += A[rows, k ..] * B[k .., columns], of the chunk's k. */
static void add_lanes_at(Block *b, LLVMValueRef k, LLVMValueRef lanes)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    LLVMValueRef at[TL_NEST_ACCUMULATORS], of_b[TL_NEST_ACCUMULATORS];
    for (int c = 0; c < b->columns; c++)
        at[c] = tl_cpu_elem_at(x, x->b_from,
                               tl_cpu_add(g, LLVMBuildMul(g->b, b->column[c], x->b_down, ""), k));
    if (!lanes)
        ask_along(b, k, at);
    for (int c = 0; c < b->columns; c++)
        of_b[c] = vector_along(x, at[c], lanes);
    for (int r = 0; r < b->rows; r++) {
        LLVMValueRef a = vector_along(x, tl_cpu_part_at(x, b->a[r], k), lanes);
        for (int c = 0; c < b->columns; c++) {
            LLVMValueRef *sum = &b->sum[r * b->columns + c],
                         v = tl_cpu_multiply_add(x, a, of_b[c], *sum);
            *sum = lanes ? LLVMBuildSelect(g->b, lanes, v, *sum, "") : v;
        }
    }
}

static void add_to_ends(Block *b)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    uint32_t n = sums_of(b);
    LLVMValueRef rest = LLVMBuildURem(g->b, x->count, tl_gen_int(&g->gen, x->width), ""),
                 turn = LLVMBuildSub(g->b, x->count, rest, "");
    LLVMValueRef lanes = tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, rest, g->i32, ""), x->width);
    lanes = LLVMBuildICmp(g->b, LLVMIntSLT, tl_gen_iota(&g->gen, g->i32, x->width), lanes, "");
    for (int last = 0; last < 2; last++) {
        TlCpuLoop l;
        tl_cpu_loop_begin(g, &l, last ? turn : tl_gen_int(&g->gen, 0), last ? x->count : turn,
                          x->width, n, b->sum);
        memcpy(b->sum, l.carry, n * sizeof *b->sum);
        add_lanes_at(b, l.i, last ? lanes : NULL);
        tl_cpu_loop_end(g, &l, b->sum);
        memcpy(b->sum, l.carry, n * sizeof *b->sum);
    }
}

/* ---- blocks ---- */

static LLVMValueRef plus(TlCpuMultiply *x, LLVMValueRef a, LLVMValueRef b)
{
    return tl_is_float(x->dtype) ? LLVMBuildFAdd(x->g->b, a, b, "")
                                 : LLVMBuildAdd(x->g->b, a, b, "");
}

/* Every second lane of v and w, which are side by side; w NULL: of v. */
static LLVMValueRef every_second(TlCpuGen *g, LLVMValueRef v, LLVMValueRef w, int first)
{
    LLVMValueRef lane[2 * TL_NEST_LANES];
    int n = tl_gen_width_of(v) / (w ? 1 : 2);
    for (int i = 0; i < n; i++)
        lane[i] = LLVMConstInt(g->i32, (unsigned)(2 * i + first), 0);
    return LLVMBuildShuffleVector(g->b, v, w ? w : LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(lane, (unsigned)n), "");
}

static LLVMValueRef add_neighbours(TlCpuMultiply *x, LLVMValueRef v, LLVMValueRef w)
{
    TlCpuGen *g = x->g;
    LLVMValueRef even = every_second(g, v, w, 0), odd = every_second(g, v, w, 1);
    return plus(x, even, odd);
}

/* The sums of the lanes of n vectors, side by side. */
static LLVMValueRef add_lanes(TlCpuMultiply *x, const LLVMValueRef *of, int n)
{
    LLVMValueRef v[TL_NEST_ACCUMULATORS];
    memcpy(v, of, (size_t)n * sizeof *v);
    for (int left = n; left > 1; left /= 2)
        for (int i = 0; i < left / 2; i++)
            v[i] = add_neighbours(x, v[2 * i], v[2 * i + 1]);
    for (int lanes = x->width; lanes > n; lanes /= 2)
        v[0] = add_neighbours(x, v[0], NULL);
    return v[0];
}

/* The sums that are there, of the block's rows from a column on: all are read before one is stored,
 * as a row may stand for others. */
static void read_sums(Block *b, LLVMValueRef column, unsigned align, LLVMValueRef *out)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    for (int r = 0; r < b->rows; r++) {
        LLVMValueRef at = tl_cpu_add(g, tl_cpu_times(g, b->row[r], x->acc_row), column);
        LLVMValueRef p = tl_cpu_elem_at(x, x->acc, at);
        out[r] = LLVMBuildLoad2(g->b, tl_gen_vec(x->elem, b->columns), p, "");
        LLVMSetAlignment(out[r], align);
        if (x->begins)
            out[r] =
                LLVMBuildSelect(g->b, x->begins, LLVMConstNull(LLVMTypeOf(out[r])), out[r], "");
    }
}

/* What is added to each sum of a row: +0 or -0 at the end; what A's signs ask for. */
static LLVMValueRef addition(Block *b)
{
    TlCpuMultiply *x = b->x;
    LLVMValueRef last = x->last;
    while (last && tl_gen_width_of(last) > b->columns) last = every_second(x->g, last, NULL, 0);
    if (!x->p->flips)
        return last;
    LLVMValueRef of_b = add_lanes(x, b->sum + b->rows * b->columns, b->columns);
    return tl_cpu_dot_correction(&x->g->gen, x->p->part[0], of_b);
}

static void end_block(Block *b, LLVMValueRef column)
{
    TlCpuMultiply *x = b->x;
    TlCpuGen *g = x->g;
    unsigned bytes = (unsigned)tl_dtype_bytes(x->dtype), align = bytes * (unsigned)b->columns;
    LLVMValueRef sum[TL_NEST_ACCUMULATORS], more = addition(b);
    LLVMValueRef row = x->out ? x->out_row : tl_gen_int(&g->gen, x->acc_row);
    read_sums(b, column, align, sum);
    for (int r = 0; r < b->rows; r++) {
        sum[r] = plus(x, sum[r], add_lanes(x, b->sum + r * b->columns, b->columns));
        sum[r] = more ? plus(x, sum[r], more) : sum[r];
        LLVMValueRef at = tl_cpu_add(g, LLVMBuildMul(g->b, b->row[r], row, ""), column);
        LLVMValueRef to = tl_cpu_elem_at(x, x->out ? x->out : x->acc, at);
        LLVMSetAlignment(LLVMBuildStore(g->b, sum[r], to), x->out ? bytes : align);
    }
}

static void multiply_rows(TlCpuMultiply *x, LLVMValueRef from, LLVMValueRef to, int rows,
                          LLVMValueRef column, int columns)
{
    Block b = {.x = x, .rows = rows, .columns = columns};
    TlCpuLoop down;
    tl_cpu_loop_begin(x->g, &down, from, to, rows, 0, NULL);
    begin_block(&b, down.i, column);
    (x->b_from ? add_to_ends : add_trips)(&b);
    end_block(&b, column);
    tl_cpu_loop_end(x->g, &down, NULL);
}

/* All rows times all columns, in blocks, of the last rows half as many. */
static void multiply_blocks(TlCpuMultiply *x, int rows, int columns)
{
    TlCpuGen *g = x->g;
    TlCpuLoop across;
    LLVMValueRef turn = tl_cpu_whole_blocks(x, rows);
    tl_cpu_loop_begin(g, &across, tl_gen_int(&g->gen, 0), x->columns, columns, 0, NULL);
    multiply_rows(x, x->from, turn, rows, across.i, columns);
    if (rows > 1)
        multiply_rows(x, turn, x->to, rows / 2, across.i, columns);
    tl_cpu_loop_end(g, &across, NULL);
}

void tl_cpu_multiply_along(const TlCpuMultiply *few)
{
    TlCpuGen *g = few->g;
    TlCpuMultiply x = *few;
    const TlNestFew *f = &x.n->few_rows;
    LLVMValueRef rows = LLVMBuildSub(g->b, x.to, x.from, "");
    LLVMValueRef one = LLVMBuildICmp(g->b, LLVMIntEQ, rows, tl_gen_int(&g->gen, 1), "");
    TlCpuFork fork = tl_cpu_fork(g, one);
    multiply_blocks(&x, 1, f->single);
    tl_cpu_fork_else(g, &fork, NULL);
    multiply_blocks(&x, f->mr, f->nv);
    tl_cpu_fork_end(g, &fork, NULL);
}
