/* Products in a loop on the CPU: for (k ...) acc = dot(A[m, k], B[k, n], acc), and nothing else.
 *
 * Done trip by trip, acc would go through memory for each block of k, and the kernel's own block
 * would decide the speed. Here trips are gathered into chunks of some DEPTH along k. A chunk's
 * operands are packed; then each block of acc, mr rows by a panel of columns, stays in registers
 * while the chunk's k go by.
 *
 * - B is packed by panels: for each k the panel's elements side by side. A panel of a chunk stays
 *   in the first cache while all rows of A pass.
 * - Elements are converted while they are packed. Where the CPU has a dot-product instruction for
 *   them (cpu_dot_insn.c), two or four along k are packed together. For i8 and u8 that is exact.
 * - An operand that lies in memory without gaps down its columns, as after a transposition, is
 *   read down the columns, and blocks of it are turned in registers.
 * - A worker's next program often needs the same B, as pid(0) moves first. Where B is a load of
 *   constant memory whose rows are the loop's k, packed chunks stay in scratch memory, each with a
 *   tag that says what it is.
 *   Loops around that pass the sum on, as over the taps of a filter, count chunks, too.
 * - A is read where it lies when it is a load of such elements as are summed, contiguous along k,
 *   and the rows that are computed are inside of it; else it is packed by rows.
 * - Rows and columns of acc that the program stores nowhere, as they are beyond the end of what it
 *   stores to, are not computed. Of wide panels the last one may be needed for a few columns only:
 *   those are in narrow panels, a vector wide.
 * - Where the sums are only stored, and the tile is inside of what it is stored to, the last chunk
 *   does that.
 *
 * Each sum adds its products in the order of k, as the interpreter does, those that are packed
 * together as the instruction does; what is left out would have added zeros. */
#include "codegen/cpu/cpu_matmul.h"

enum {
    TAG_BYTES = TL_CPU_TAG_BYTES,
    SMALL = 4,             /* rows of a small block */
    WIDE_PANEL = 16,       /* columns; where they are more, the last may be in narrow panels */
    FEW_COLUMNS = 16,      /* so few that reading A takes longer than multiplying */
    GROUP_BYTES = 1 << 17, /* of panels that stay in the second cache while all rows are read */
    AHEAD = 8,             /* rows between what packing prefetches and what it loads */
    NARROW_ROWS = 8,       /* of a block in a narrow panel */
    MAX_ROWS = 12,         /* of any block */
    MAX_ACCUMULATORS = 24,
};

/* ---- numbers of the run ---- */

static LLVMValueRef add(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildAdd(g->b, x, y, "");
}

static LLVMValueRef times(TlCpuGen *g, LLVMValueRef x, int64_t n)
{
    return LLVMBuildMul(g->b, x, tl_gen_int(&g->gen, n), "");
}

static LLVMValueRef parts_of(TlCpuGen *g, LLVMValueRef n, int64_t part)
{
    return LLVMBuildUDiv(g->b, add(g, n, tl_gen_int(&g->gen, part - 1)), tl_gen_int(&g->gen, part),
                         "");
}

static LLVMValueRef least(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y)
{
    return tl_gen_pick(&g->gen, LLVMIntSLT, x, y, x, y);
}

/* ---- multiplying ---- */

/* Elements are packed elements, as large as a sum: one, or several parts along k. */
typedef struct Multiply {
    TlCpuGen *g;
    const TlCpuProduct *p;
    TlDtype dtype;          /* of the sums */
    LLVMTypeRef elem, part; /* a packed element; a part of it */
    int per, width, nv, mr;
    int64_t panel;                   /* columns of a panel */
    LLVMValueRef panel_rows;         /* that it has room for, and one more */
    LLVMValueRef panels;             /* how many are multiplied */
    LLVMValueRef narrow, narrows;    /* column where narrow panels begin, how many; NULL: none */
    int64_t depth, rows, acc_row;    /* elements along k in most chunks; acc's rows, their stride */
    LLVMValueRef acc, a, a_row, b;   /* addresses; a_row: row stride of a, in parts */
    LLVMValueRef count;              /* elements along k in this chunk */
    bool is_cut;                     /* at the end of A, where it is read in memory */
    LLVMValueRef from, to, columns;  /* rows from .. to - 1, columns 0 .. columns - 1 */
    LLVMValueRef out, out_row;       /* where sums go, row stride; NULL: to acc, aligned */
    LLVMValueRef last;               /* +0 or -0, added to each sum at the end; NULL: nothing is */
} Multiply;

static LLVMValueRef at(const Multiply *x, LLVMValueRef base, LLVMValueRef offset)
{
    return LLVMBuildInBoundsGEP2(x->g->b, x->elem, base, &offset, 1, "");
}

static LLVMValueRef part_at(Multiply *x, LLVMValueRef base, LLVMValueRef offset)
{
    return LLVMBuildInBoundsGEP2(x->g->b, x->part, base, &offset, 1, "");
}

static LLVMValueRef align_vector(const Multiply *x, LLVMValueRef access)
{
    unsigned bytes = (unsigned)(tl_dtype_bytes(x->dtype) * x->width);
    LLVMSetAlignment(access, bytes > 64 ? 64 : bytes);
    return access;
}

static LLVMValueRef vector_at(Multiply *x, LLVMValueRef base, int64_t offset)
{
    LLVMValueRef p = offset ? at(x, base, tl_gen_int(&x->g->gen, offset)) : base;
    LLVMValueRef v = LLVMBuildLoad2(x->g->b, tl_gen_vec(x->elem, x->width), p, "");
    return align_vector(x, v);
}

static LLVMValueRef store_vector(Multiply *x, LLVMValueRef v, LLVMValueRef base, int64_t offset)
{
    LLVMValueRef p = offset ? at(x, base, tl_gen_int(&x->g->gen, offset)) : base;
    return align_vector(x, LLVMBuildStore(x->g->b, v, p));
}

/* Where b's panel number n begins, or its row number n. */
static LLVMValueRef panel_at(Multiply *x, LLVMValueRef b, LLVMValueRef n)
{
    return at(x, b, times(x->g, LLVMBuildMul(x->g->b, n, x->panel_rows, ""), x->panel));
}

static LLVMValueRef row_below(Multiply *x, LLVMValueRef b)
{
    LLVMValueRef n = LLVMBuildSub(x->g->b, x->panel_rows, tl_gen_int(&x->g->gen, 1), "");
    return at(x, b, times(x->g, n, x->panel));
}

/* acc + a * b of packed elements. */
static LLVMValueRef multiply_add(Multiply *x, LLVMValueRef a, LLVMValueRef b, LLVMValueRef acc)
{
    TlCpuGen *g = x->g;
    return x->p->insn ? tl_cpu_dot_add(&g->gen, x->p->insn, x->p->part[1], a, b, acc)
                      : tl_gen_multiply_add(&g->gen, x->dtype, a, b, acc);
}

/* acc += A[rows, k] * B[k, columns]. a: the rows of A; b: the row of B. */
static void step(Multiply *x, int mr, const LLVMValueRef *a, LLVMValueRef k, LLVMValueRef b,
                 LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef row[8];
    for (int j = 0; j < x->nv; j++) row[j] = vector_at(x, b, j * x->width);
    for (int i = 0; i < mr; i++) {
        LLVMValueRef s = LLVMBuildLoad2(g->b, x->elem, part_at(x, a[i], times(g, k, x->per)), "");
        LLVMSetAlignment(s, (unsigned)tl_dtype_bytes(x->p->part[0]));
        s = tl_gen_splat(&g->gen, s, x->width);
        for (int j = 0; j < x->nv; j++)
            acc[i * x->nv + j] = multiply_add(x, s, row[j], acc[i * x->nv + j]);
    }
}

/* The block's rows in x->out. */
static void find_out(Multiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole,
                     LLVMValueRef *c)
{
    TlCpuGen *g = x->g;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), left = LLVMBuildSub(g->b, x->to, m, "");
    c[0] = at(x, x->out, add(g, LLVMBuildMul(g->b, m, x->out_row, ""), times(g, panel, x->panel)));
    for (int i = 1; i < mr; i++) {
        LLVMValueRef row = x->out_row;
        if (!whole) {
            LLVMValueRef more =
                LLVMBuildICmp(g->b, LLVMIntSGT, left, tl_gen_int(&g->gen, i), "");
            row = LLVMBuildSelect(g->b, more, row, zero, "");
        }
        c[i] = at(x, c[i - 1], row);
    }
}

/* Rows m .. m + mr - 1, `whole`: which are all there; else the last row stands for those past the
 * end: it is computed more than once, with the same result. */
static void block(Multiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole)
{
    TlCpuGen *g = x->g;
    LLVMValueRef a[MAX_ACCUMULATORS], c[MAX_ACCUMULATORS], acc[MAX_ACCUMULATORS];
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), left = LLVMBuildSub(g->b, x->to, m, "");
    LLVMValueRef b = panel_at(x, x->b, panel);
    LLVMValueRef ap = part_at(x, x->a, LLVMBuildMul(g->b, m, x->a_row, ""));
    LLVMValueRef cp = at(x, x->acc, add(g, times(g, m, x->acc_row), times(g, panel, x->panel)));
    for (int i = 0; i < mr; i++) {
        LLVMValueRef a_row = x->a_row, c_row = tl_gen_int(&g->gen, x->acc_row);
        if (i && !whole) {
            LLVMValueRef more =
                LLVMBuildICmp(g->b, LLVMIntSGT, left, tl_gen_int(&g->gen, i), "");
            a_row = LLVMBuildSelect(g->b, more, a_row, zero, "");
            c_row = LLVMBuildSelect(g->b, more, c_row, zero, "");
        }
        ap = i ? part_at(x, ap, a_row) : ap;
        cp = i ? at(x, cp, c_row) : cp;
        a[i] = ap;
        c[i] = cp;
        for (int j = 0; j < x->nv; j++) {
            LLVMValueRef *sum = &acc[i * x->nv + j];
            *sum = vector_at(x, c[i], j * x->width);
            if (x->p->flips)
                *sum = add(g, *sum, vector_at(x, row_below(x, b), j * x->width));
        }
    }
    TlCpuRange l;
    tl_cpu_range_begin(g, &l, tl_gen_int(&g->gen, 0), x->count, mr * x->nv, acc);
    for (int i = 0; i < mr * x->nv; i++) acc[i] = l.carry[i];
    step(x, mr, a, l.i, at(x, b, times(g, l.i, x->panel)), acc);
    tl_cpu_range_end(g, &l, 1, acc);
    if (x->out)
        find_out(x, m, panel, mr, whole, c);
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < x->nv; j++) {
            LLVMValueRef v = l.carry[i * x->nv + j];
            if (x->last)
                v = LLVMBuildFAdd(g->b, v, x->last, "");
            LLVMValueRef s = store_vector(x, v, c[i], j * x->width);
            if (x->out)
                LLVMSetAlignment(s, (unsigned)tl_dtype_bytes(x->dtype));
        }
}

/* How many blocks have mr rows; the remaining rows are in blocks of `small`. If mr is 6, two rows
 * that remain would be half of a block of 4: so 8 rows go into two small blocks. */
static LLVMValueRef great_blocks(Multiply *x, LLVMValueRef rows, int small)
{
    TlCpuGen *g = x->g;
    LLVMValueRef n = LLVMBuildUDiv(g->b, rows, tl_gen_int(&g->gen, x->mr), "");
    if (x->mr % small == 0)
        return n;
    LLVMValueRef left = LLVMBuildSub(g->b, rows, times(g, n, x->mr), "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntEQ, left,
                                     tl_gen_int(&g->gen, 2 * small - x->mr), "");
    few = LLVMBuildAnd(
        g->b, few, LLVMBuildICmp(g->b, LLVMIntSGT, n, tl_gen_int(&g->gen, 0), ""), "");
    return LLVMBuildSub(g->b, n, LLVMBuildZExt(g->b, few, g->i64, ""), "");
}

/* Rows from .. to - 1, in blocks of mr, times the panels. */
static void multiply_rows(Multiply *x, LLVMValueRef from, LLVMValueRef to, int mr, bool whole,
                          LLVMValueRef first, LLVMValueRef last)
{
    TlCpuRange rows, panels;
    tl_cpu_range_begin(x->g, &rows, from, to, 0, NULL);
    tl_cpu_range_begin(x->g, &panels, first, last, 0, NULL);
    block(x, rows.i, panels.i, mr, whole);
    tl_cpu_range_end(x->g, &panels, 1, NULL);
    tl_cpu_range_end(x->g, &rows, mr, NULL);
}

/* All rows times panels first .. last - 1. */
static void multiply_panels(Multiply *x, LLVMValueRef first, LLVMValueRef last)
{
    TlCpuGen *g = x->g;
    int small = x->mr < SMALL ? x->mr : SMALL;
    LLVMValueRef great = great_blocks(x, LLVMBuildSub(g->b, x->to, x->from, ""), small);
    LLVMValueRef turn = add(g, x->from, times(g, great, x->mr));
    multiply_rows(x, x->from, turn, x->mr, true, first, last);
    multiply_rows(x, turn, x->to, small, false, first, last);
}

/* The last columns: panels of one vector. */
static Multiply narrow_of(const Multiply *x)
{
    Multiply y = *x;
    y.panel = x->width;
    y.panels = x->narrows;
    y.b = at(x, x->b, LLVMBuildMul(x->g->b, x->narrow, x->panel_rows, ""));
    y.acc = at(x, x->acc, x->narrow);
    y.out = x->out ? at(x, x->out, x->narrow) : NULL;
    y.nv = 1;
    y.mr = x->rows < NARROW_ROWS ? (int)x->rows : NARROW_ROWS;
    return y;
}

static void multiply(Multiply *x)
{
    TlCpuGen *g = x->g;
    int64_t bytes = x->panel * x->depth * tl_dtype_bytes(x->dtype);
    int64_t several = bytes < GROUP_BYTES ? GROUP_BYTES / bytes : 1;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), most = tl_gen_int(&g->gen, several);
    if (x->narrow) {
        Multiply y = narrow_of(x);
        multiply_rows(&y, x->from, x->to, y.mr, false, zero, y.panels);
    }
    if (several * x->panel >= x->acc_row) {
        multiply_panels(x, zero, x->panels);
        return;
    }
    TlCpuRange groups;
    tl_cpu_range_begin(g, &groups, zero, x->panels, 0, NULL);
    multiply_panels(x, groups.i, least(g, x->panels, add(g, groups.i, most)));
    tl_cpu_range_end(g, &groups, several, NULL);
}

/* The accumulators, one row of b and one broadcast element must fit in registers; panels must
 * divide the columns. */
static void choose_block(Multiply *x, int64_t columns, int64_t rows)
{
    int64_t vectors = columns / x->width;
    x->rows = rows;
    bool many = x->g->nregs >= 32;
    x->nv = many ? 4 : 2;
    while (vectors % x->nv) x->nv--;
    x->mr = (many ? 24 : 12) / x->nv;
    if (x->mr > MAX_ROWS)
        x->mr = MAX_ROWS;
    if (x->mr > rows)
        x->mr = (int)rows;
    x->panel = (int64_t)x->nv * x->width;
    TL_ASSERT(x->mr > 0 && x->mr * x->nv <= MAX_ACCUMULATORS,
              "%d rows of %d vectors", x->mr, x->nv);
}

/* The columns that are seen: in panels; where that would be more than half of a panel too many, the
 * last ones in narrow panels. */
static void divide_columns(Multiply *x)
{
    TlCpuGen *g = x->g;
    x->panels = parts_of(g, x->columns, x->panel);
    if (x->panel <= WIDE_PANEL || LLVMIsConstant(x->columns))
        return;
    LLVMValueRef panel = tl_gen_int(&g->gen, x->panel), half = tl_gen_int(&g->gen, x->panel / 2);
    LLVMValueRef whole = LLVMBuildUDiv(g->b, x->columns, panel, "");
    x->narrow = times(g, whole, x->panel);
    LLVMValueRef left = LLVMBuildSub(g->b, x->columns, x->narrow, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, left, half, "");
    x->panels = LLVMBuildSelect(g->b, few, whole, x->panels, "");
    x->narrow = times(g, x->panels, x->panel);
    x->narrows = LLVMBuildSelect(g->b, few, parts_of(g, left, x->width),
                                 tl_gen_int(&g->gen, 0), "");
}

/* Columns of packed B. */
static LLVMValueRef packed_columns(Multiply *x)
{
    LLVMValueRef n = times(x->g, x->panels, x->panel);
    return x->narrow ? add(x->g, n, times(x->g, x->narrows, x->width)) : n;
}

/* ---- packing ---- */

/* Lowers the ops from which the trip's operands are computed. */
static void lower_trip(TlCpuGen *g, const TlCpuProduct *p, LLVMValueRef lo, LLVMValueRef by,
                       LLVMValueRef trip)
{
    TlBlock *body = p->loop->regions[0];
    LLVMValueRef k = LLVMBuildIntCast2(g->b, trip, LLVMTypeOf(lo), 0, "");
    g->scalar[body->args[0]->id] = LLVMBuildAdd(g->b, lo, LLVMBuildMul(g->b, k, by, ""), "");
    for (TlOp *op = body->first; op != body->last; op = op->next) {
        if (op == p->dot)
            continue;
        tl_cpu_lower_op(g, op);
    }
}

static LLVMValueRef to_part(Multiply *x, TlValue *v, bool is_b, LLVMValueRef e)
{
    TlDtype d = x->p->part[is_b];
    TlGen *g = &x->g->gen;
    e = tl_gen_cast(g, v->type->dtype, d, e, TL_ROUND_NEAREST, false);
    if (x->p->flips && !is_b)
        e = LLVMBuildXor(g->b, e, tl_gen_splat(g, LLVMConstInt(g->i8, 0x80, 0),
                                               tl_gen_width_of(e)), "");
    return e;
}

static void store(Multiply *x, bool is_b, LLVMValueRef e, LLVMValueRef p)
{
    LLVMSetAlignment(LLVMBuildStore(x->g->b, e, p), (unsigned)tl_dtype_bytes(x->p->part[is_b]));
}

/* How many lanes pack v along its columns: a divisor of n. */
static int lanes(Multiply *x, TlValue *v, bool is_b, int64_t n)
{
    bool turned;
    int bytes = tl_dtype_bytes(is_b ? x->dtype : x->p->part[0]);
    int most = 2 * x->g->vector_bytes / bytes, w = most;
    TlOp *load = tl_cpu_load_under(v, &turned);
    if (!load || !turned)
        w = tl_cpu_chain_width(x->g, v, 64);
    else if (tl_cpu_dense_dim(x->g->fn, v) != 1)
        w = 1;
    return tl_cpu_fit_width(n, w < most ? w : most);
}

/* Packing of the operand v of one trip. */
typedef struct Pack {
    Multiply *x;
    TlValue *v;
    LLVMValueRef to, trip; /* where v's chunk is packed; v's first k in it */
    TlOp *load;            /* its later rows are prefetched; NULL: they are not */
    bool is_b;
    bool is_short; /* in what is left of a row: few elements, or none */
    bool is_wide;  /* before narrow panels */
    int lane;      /* dimension of v along which it is read */
    int turn;      /* a block of turn x turn elements is transposed; 0: none */
} Pack;
typedef void PackBody(Pack *p, TlCpuAt *pos);

static LLVMValueRef place_in_row(Pack *p, LLVMValueRef row, LLVMValueRef k)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef n = add(g, times(g, row, p->x->p->a_row * p->x->per), add(g, p->trip, k));
    return part_at(p->x, p->to, n);
}

static LLVMValueRef place_in_panel(Pack *p, LLVMValueRef k, LLVMValueRef column)
{
    Multiply *x = p->x;
    TlCpuGen *g = x->g;
    LLVMValueRef panel = tl_gen_int(&g->gen, x->panel), per = tl_gen_int(&g->gen, x->per);
    LLVMValueRef row = LLVMBuildUDiv(g->b, add(g, p->trip, k), per, "");
    LLVMValueRef i = LLVMBuildURem(g->b, column, panel, "");
    LLVMValueRef begin =
        LLVMBuildMul(g->b, LLVMBuildSub(g->b, column, i, ""), x->panel_rows, "");
    if (x->narrow && !p->is_wide) {
        LLVMValueRef width = tl_gen_int(&g->gen, x->width);
        LLVMValueRef is_wide = LLVMBuildICmp(g->b, LLVMIntSLT, column, x->narrow, "");
        LLVMValueRef j = LLVMBuildURem(g->b, column, width, "");
        LLVMValueRef narrow =
            LLVMBuildMul(g->b, LLVMBuildSub(g->b, column, j, ""), x->panel_rows, "");
        i = LLVMBuildSelect(g->b, is_wide, i, j, "");
        begin = LLVMBuildSelect(g->b, is_wide, begin, narrow, "");
        panel = LLVMBuildSelect(g->b, is_wide, panel, width, "");
    }
    return at(x, p->to, add(g, add(g, begin, i), LLVMBuildMul(g->b, row, panel, "")));
}

static LLVMValueRef place_of(Pack *p, LLVMValueRef row, LLVMValueRef column)
{
    return (p->is_b ? place_in_panel : place_in_row)(p, row, column);
}

static LLVMValueRef eval_at(Pack *p, const TlCpuAt *pos, LLVMValueRef row, LLVMValueRef column)
{
    TlCpuAt at;
    tl_cpu_at_init(p->x->g, &at, 2, pos->lane, pos->width);
    at.idx[0] = row;
    at.idx[1] = column;
    return tl_cpu_eval(p->x->g, p->v, &at);
}

/* a0 b0 a1 b1 ... */
static LLVMValueRef interleave(TlCpuGen *g, LLVMValueRef a, LLVMValueRef b, int w)
{
    LLVMValueRef index[2 * 64];
    if (w == 1) {
        LLVMValueRef r = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(a), 2));
        r = LLVMBuildInsertElement(g->b, r, a, LLVMConstInt(g->i32, 0, 0), "");
        return LLVMBuildInsertElement(g->b, r, b, LLVMConstInt(g->i32, 1, 0), "");
    }
    for (int i = 0; i < 2 * w; i++)
        index[i] = LLVMConstInt(g->i32, (unsigned)(i / 2 + i % 2 * w), 0);
    LLVMValueRef mask = LLVMConstVector(index, 2 * (unsigned)w);
    return LLVMBuildShuffleVector(g->b, a, b, mask, "");
}

/* Prefetches the cache line AHEAD rows below an element. */
static void fetch_below(Pack *p, LLVMValueRef row, LLVMValueRef column)
{
    TlCpuGen *g = p->x->g;
    const TlCpuAccess *a = tl_map_get_ptr(&g->access, p->load);
    int i = tl_cpu_slice_of(&a->place, 0), j = tl_cpu_slice_of(&a->place, 1);
    if (i < 0 || j < 0)
        return;
    row = add(g, row, tl_gen_int(&g->gen, AHEAD));
    LLVMValueRef offset = add(g, LLVMBuildMul(g->b, row, a->stride[i], ""),
                              LLVMBuildMul(g->b, column, a->stride[j], ""));
    tl_cpu_prefetch_line(g, tl_gen_address(&g->gen, a->view->dtype, a->ptr, offset), false, 3);
}

/* n rows of v from `row` on, side by side: for each column its n elements, in two integers. */
static LLVMValueRef pack_rows(Pack *p, TlCpuAt *pos, LLVMValueRef row, int n)
{
    TlCpuGen *g = p->x->g;
    if (n == 1)
        return eval_at(p, pos, row, pos->idx[1]);
    int bits = 8 * tl_dtype_bytes(p->v->type->dtype) * n / 2;
    LLVMTypeRef half = tl_gen_vec(LLVMIntTypeInContext(g->c, (unsigned)bits), pos->width);
    LLVMValueRef above = pack_rows(p, pos, row, n / 2);
    LLVMValueRef below = pack_rows(p, pos, add(g, row, tl_gen_int(&g->gen, n / 2)), n / 2);
    return interleave(g, LLVMBuildBitCast(g->b, above, half, ""),
                      LLVMBuildBitCast(g->b, below, half, ""), pos->width);
}

/* One vector along a row; a packed element of B takes its parts from several rows. */
static void pack_lanes(Pack *p, TlCpuAt *pos)
{
    LLVMValueRef row = pos->idx[0], column = pos->idx[1];
    if (p->load && !p->is_short)
        fetch_below(p, row, column);
    int n = p->is_b ? p->x->per : 1;
    LLVMValueRef e = pack_rows(p, pos, row, n);
    if (n > 1) {
        LLVMTypeRef elem = tl_gen_elem_type(&p->x->g->gen, p->v->type);
        e = LLVMBuildBitCast(p->x->g->b, e, tl_gen_vec(elem, n * pos->width), "");
    }
    store(p->x, p->is_b, to_part(p->x, p->v, p->is_b, e), place_of(p, row, column));
}

/* One block: vectors down its columns, transposed. */
static void pack_turned(Pack *p, TlCpuAt *pos)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef row = pos->idx[0], column = pos->idx[1], e[TL_CPU_TURN];
    int per = p->is_b ? p->x->per : 1;
    for (int i = 0; i < p->turn; i++) {
        LLVMValueRef at = add(g, column, tl_gen_int(&g->gen, i));
        e[i] = to_part(p->x, p->v, p->is_b, eval_at(p, pos, row, at));
        if (per > 1)
            e[i] = LLVMBuildBitCast(g->b, e[i], tl_gen_vec(p->x->elem, p->turn), "");
    }
    tl_cpu_turn(g, e, p->turn);
    for (int i = 0; i < p->turn; i++) {
        LLVMValueRef at = add(g, row, tl_gen_int(&g->gen, i * per));
        store(p->x, p->is_b, e[i], place_of(p, at, column));
    }
}

static void pack_part(Pack *p, const TlCpuAt *outer, LLVMValueRef from, LLVMValueRef to,
                      bool is_short)
{
    TlCpuGen *g = p->x->g;
    TlCpuAt pos = *outer;
    TlCpuRange l;
    p->is_short = is_short;
    tl_cpu_range_begin(g, &l, from, to, 0, NULL);
    if (is_short)
        tl_cpu_range_is_short(g, &l);
    pos.idx[p->lane] = l.i;
    (p->turn ? pack_turned : pack_lanes)(p, &pos);
    tl_cpu_range_end(g, &l, pos.width, NULL);
}

/* How many rows of a trip of B are multiplied. Where A is read in memory, those before its end,
 * which is B's end, too: so they are inside. */
static LLVMValueRef rows_of_b(Pack *p)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef all = tl_gen_int(&g->gen, p->v->type->shape[0]);
    if (!p->x->is_cut)
        return all;
    bool turned;
    TlOp *load = tl_cpu_load_under(p->v, &turned);
    TlCpuAccess *b = tl_map_get_ptr(&g->access, load);
    TL_ASSERT(b, "A's end is not B's");
    int k = tl_cpu_slice_of(&b->place, turned ? 1 : 0);
    b->lo[k] = tl_gen_int(&g->gen, 0);
    b->hi[k] = all;
    return least(g, all, LLVMBuildSub(g->b, p->x->count, p->trip, ""));
}

/* Packs v: `width` elements along p->lane at a time, up to `end`, without tests where they are
 * inside; `step` positions at a time along the other dimension. */
static void pack_all(Pack *p, int width, int64_t end, int64_t step)
{
    TlCpuGen *g = p->x->g;
    const int32_t *shape = p->v->type->shape;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), last = tl_gen_int(&g->gen, end);
    TlCpuInside in;
    TlCpuAt pos;
    bool is_rows = p->is_b && p->lane == 1;
    LLVMValueRef n = is_rows ? rows_of_b(p) : tl_gen_int(&g->gen, shape[1 - p->lane]);
    if (p->is_b)
        *(is_rows ? &last : &n) = least(g, is_rows ? last : n, packed_columns(p->x));
    tl_cpu_inside_begin(g, &in);
    tl_cpu_inside_value(g, &in, p->v, p->lane, false);
    LLVMValueRef inside = tl_cpu_inside_end(g, &in, shape[p->lane], width);
    int tested = p->turn ? width : tl_cpu_tested_width(g, width);
    p->is_wide = is_rows && p->x->narrow;
    if (p->is_wide) { /* no vector may go on from a panel to a narrow one */
        inside = inside ? least(g, inside, p->x->narrow) : p->x->narrow;
        tested = tl_cpu_fit_width(p->x->width, tested);
    }
    tl_cpu_at_init(g, &pos, 2, p->lane, width);
    TlCpuRange l;
    tl_cpu_range_begin(g, &l, zero, n, 0, NULL);
    pos.idx[1 - p->lane] = l.i;
    if (inside) {
        tl_cpu_inside_set(&in, true);
        pack_part(p, &pos, zero, inside, false);
        tl_cpu_inside_set(&in, false);
        pos.width = tested;
        p->is_wide = false;
    }
    pack_part(p, &pos, inside ? inside : zero, last, inside != NULL);
    tl_cpu_range_end(g, &l, step, NULL);
}

/* How many rows (of pairs) and columns a block has, if v's columns are contiguous in memory and its
 * rows are not. 0: v is not read down its columns. */
static int turn_of(Multiply *x, const TlValue *v, bool is_b)
{
    if (tl_cpu_dense_dim(x->g->fn, v) != 0)
        return 0;
    int w = tl_cpu_turn_width(x->g, is_b ? x->dtype : x->p->part[0]);
    w = tl_cpu_fit_width(v->type->shape[0], is_b ? w * x->per : w) / (is_b ? x->per : 1);
    w = w ? tl_cpu_fit_width(v->type->shape[1], w) : 0;
    w = w && is_b ? tl_cpu_fit_width(x->panel, w) : w;
    return w >= 4 ? w : 0;
}

/* Packs an operand of a trip that begins at `k` of the chunk: rows of B, or columns of A. */
static void pack(Multiply *x, TlValue *v, bool is_b, LLVMValueRef to, LLVMValueRef k)
{
    bool turned;
    const int32_t *shape = v->type->shape;
    Pack p = {.x = x, .v = v, .to = to, .trip = k, .is_b = is_b, .lane = 1};
    p.turn = turn_of(x, v, is_b);
    if (p.turn) {
        p.lane = 0;
        pack_all(&p, is_b ? p.turn * x->per : p.turn, shape[0], p.turn);
        return;
    }
    if (!is_b) {
        int w = tl_cpu_form(v->type).lane == 1 ? lanes(x, v, false, shape[1]) : 1;
        pack_all(&p, w, shape[1], 1);
        return;
    }
    int w = lanes(x, v, true, x->panel);
    p.load = tl_cpu_load_under(v, &turned);
    if (turned)
        p.load = NULL;
    pack_all(&p, w, w > 1 ? x->acc_row : shape[1], x->per);
}

/* ---- what stays ---- */

typedef struct Chunk {
    Multiply x;
    const TlCpuProduct *p;
    LLVMValueRef lo, by, n;        /* of the loop over k */
    LLVMValueRef first, trips;     /* the chunk's first trip, how many it has */
    const TlCpuAccess *a, *b;      /* of the first trip: direct A, kept B */
    const TlCpuAccess *c;          /* the store, if the last chunk may do it */
    LLVMValueRef is_whole;         /* direct A ends with a packed element; NULL: it does */
} Chunk;

typedef struct Tag {
    LLVMValueRef word[TAG_BYTES / 8];
    int n;
} Tag;

static void add_word(TlCpuGen *g, Tag *t, LLVMValueRef w)
{
    if (LLVMGetTypeKind(LLVMTypeOf(w)) == LLVMPointerTypeKind)
        w = LLVMBuildPtrToInt(g->b, w, g->i64, "");
    TL_ASSERT(t->n < TAG_BYTES / 8, "a tag of more than %d words", TAG_BYTES / 8);
    t->word[t->n++] = LLVMBuildIntCast2(g->b, w, g->i64, 0, "");
}

/* Does the address follow from the starts of the slices, throughout a launch? */
static bool is_by_starts(const TlCpuAccess *a)
{
    bool only_slices = true;
    for (uint32_t i = 0; i < a->place.naxes; i++) only_slices &= a->start[i] != NULL;
    return only_slices && !a->place.base->def && a->param >= 0;
}

/* Of a chunk for few columns: as many as B's buffer has room for. */
static int64_t most_trips(const Chunk *c)
{
    int64_t deeper = c->x.acc_row / FEW_COLUMNS;
    return c->p->trips * (deeper > 1 ? deeper : 1);
}

/* What identifies a chunk of B: the launch, the room in its panels, how many trips it has and how
 * many columns, the address and the starts of the slices of its first trip. */
static Tag tag_of(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlCpuAccess *a = c->b;
    Tag t = {.n = 0};
    LLVMValueRef offset = tl_gen_int(&g->gen, offsetof(tile_cpu_ctx, launch));
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, g->i8, g->ctx, &offset, 1, "");
    LLVMValueRef w = LLVMBuildLoad2(g->b, g->i64, p, "");
    w = add(g, times(g, w, most_trips(c) * c->x.depth + 2), c->x.panel_rows);
    w = add(g, times(g, w, most_trips(c) + 1), c->trips);
    add_word(g, &t, add(g, times(g, w, c->x.acc_row + 1), c->x.columns));
    if (!is_by_starts(a))
        add_word(g, &t, a->ptr);
    if (a->ok)
        add_word(g, &t, a->ok);
    for (uint32_t i = 0; i < a->place.naxes; i++)
        if (a->start[i])
            add_word(g, &t, a->start[i]);
    return t;
}

static LLVMValueRef word_at(TlCpuGen *g, LLVMValueRef base, int i)
{
    LLVMValueRef offset = tl_gen_int(&g->gen, i);
    return LLVMBuildInBoundsGEP2(g->b, g->i64, base, &offset, 1, "");
}

static LLVMValueRef differs(TlCpuGen *g, const Tag *t, LLVMValueRef kept)
{
    LLVMValueRef any = NULL;
    for (int i = 0; i < t->n; i++) {
        LLVMValueRef was = LLVMBuildLoad2(g->b, g->i64, word_at(g, kept, i), "");
        LLVMValueRef c = LLVMBuildICmp(g->b, LLVMIntNE, was, t->word[i], "");
        any = any ? LLVMBuildOr(g->b, any, c, "") : c;
    }
    return any;
}

/* ---- the loop ---- */

/* Below each panel, one row: what is to be added to sums, as A's signs are flipped. */
static void correct(Multiply *x)
{
    TlCpuGen *g = x->g;
    LLVMValueRef sum[8], zero = tl_gen_int(&g->gen, 0);
    TlCpuRange panels, rows;
    tl_cpu_range_begin(g, &panels, zero, x->panels, 0, NULL);
    LLVMValueRef b = panel_at(x, x->b, panels.i);
    for (int j = 0; j < x->nv; j++) sum[j] = LLVMConstNull(tl_gen_vec(x->elem, x->width));
    tl_cpu_range_begin(g, &rows, zero, x->count, (uint32_t)x->nv, sum);
    LLVMValueRef row = at(x, b, times(g, rows.i, x->panel));
    for (int j = 0; j < x->nv; j++)
        sum[j] = tl_cpu_dot_correction(&g->gen, x->p->insn, x->p->part[1],
                                       vector_at(x, row, j * x->width), rows.carry[j]);
    tl_cpu_range_end(g, &rows, 1, sum);
    for (int j = 0; j < x->nv; j++)
        store_vector(x, rows.carry[j], row_below(x, b), j * x->width);
    tl_cpu_range_end(g, &panels, 1, NULL);
}

/* Packs one operand, for all trips of the chunk. */
static void pack_trips(Chunk *c, bool is_b)
{
    TlCpuGen *g = c->x.g;
    TlValue *v = tl_in(c->p->dot, is_b ? 1 : 0);
    TlCpuRange l;
    tl_cpu_range_begin(g, &l, tl_gen_int(&g->gen, 0), c->trips, 0, NULL);
    lower_trip(g, c->p, c->lo, c->by, add(g, c->first, l.i));
    LLVMValueRef k = times(g, l.i, tl_in(c->p->dot, 1)->type->shape[0]);
    pack(&c->x, v, is_b, is_b ? c->x.b : c->x.a, k);
    tl_cpu_range_end(g, &l, 1, NULL);
    if (!is_b || !c->p->flips)
        return;
    correct(&c->x);
    if (c->x.narrow) {
        Multiply y = narrow_of(&c->x);
        correct(&y);
    }
}

/* Which chunk it is, of those of all trips of the loops around. */
static LLVMValueRef number_of(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlCpuProduct *p = c->p;
    LLVMValueRef trips = tl_gen_int(&g->gen, p->trips), n = NULL;
    for (int i = p->naround - 1; i >= 0; i--) {
        TlOp *loop = p->around[i];
        const TlValue *k = loop->regions[0]->args[0];
        LLVMValueRef bound[3];
        for (uint32_t j = 0; j < 3; j++) bound[j] = tl_gen_scalar(&g->gen, tl_in(loop, j));
        LLVMValueRef all = tl_gen_trip_count(&g->gen, loop, bound[0], bound[1], bound[2]);
        LLVMValueRef lo = tl_gen_to_i64(&g->gen, k, bound[0]),
                     step = tl_gen_to_i64(&g->gen, k, bound[2]),
                     at = tl_gen_to_i64(&g->gen, k, g->scalar[k->id]);
        LLVMValueRef trip = LLVMBuildSDiv(g->b, LLVMBuildSub(g->b, at, lo, ""), step, "");
        n = n ? add(g, LLVMBuildMul(g->b, n, all, ""), trip) : trip;
    }
    LLVMValueRef first = LLVMBuildUDiv(g->b, c->first, trips, "");
    LLVMValueRef chunks = LLVMBuildUDiv(
        g->b, add(g, c->n, tl_gen_int(&g->gen, p->trips - 1)), trips, "");
    return n ? add(g, LLVMBuildMul(g->b, n, chunks, ""), first) : first;
}

static void provide_b(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlCpuProduct *p = c->p;
    LLVMValueRef buffer = tl_cpu_home_ptr(g, p->b);
    c->x.b = buffer;
    if (!p->b_load) {
        pack_trips(c, true);
        return;
    }
    LLVMValueRef n = number_of(c), last = tl_gen_int(&g->gen, (int64_t)p->slots - 1);
    LLVMValueRef slot = tl_gen_pick(&g->gen, LLVMIntULT, n, last, n, last);
    c->x.b = at(&c->x, buffer, times(g, slot, p->panel_rows * c->x.acc_row));
    LLVMValueRef i = add(g, times(g, slot, TAG_BYTES), tl_gen_int(&g->gen, (int64_t)p->tags));
    LLVMValueRef kept = LLVMBuildInBoundsGEP2(g->b, g->i8, g->scratch, &i, 1, "");
    Tag t = tag_of(c);
    LLVMBasicBlockRef pack = tl_gen_block(&g->gen, "pack"), join = tl_gen_block(&g->gen, "packed");
    LLVMBuildCondBr(g->b, differs(g, &t, kept), pack, join);
    LLVMPositionBuilderAtEnd(g->b, pack);
    pack_trips(c, true);
    for (int w = 0; w < t.n; w++) LLVMBuildStore(g->b, t.word[w], word_at(g, kept, w));
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* Reads A in memory, from the chunk's first k to the end of A, unless that is within a packed
 * element. The elements past the end would have added zeros, which turns -0 into +0: x->last does
 * that. Sums that began at +0 do not become -0, but for underflow. */
static void point_at_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->a->place;
    int row = tl_cpu_slice_of(&place, 0), k = tl_cpu_slice_of(&place, 1);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef left = LLVMBuildSub(g->b, c->a->view->extent[k], c->a->start[k], "");
    left = tl_gen_pick(&g->gen, LLVMIntSGT, left, zero, left, zero);
    LLVMValueRef per = tl_gen_int(&g->gen, c->x.per), whole = LLVMBuildUDiv(g->b, left, per, "");
    LLVMValueRef inside = least(g, c->x.count, whole);
    if (c->x.per > 1) {
        LLVMValueRef ends = LLVMBuildICmp(g->b, LLVMIntNE, times(g, whole, c->x.per), left, "");
        ends = LLVMBuildAnd(
            g->b, ends, LLVMBuildICmp(g->b, LLVMIntSLT, whole, c->x.count, ""), "");
        c->is_whole = LLVMBuildNot(g->b, ends, "");
        inside = LLVMBuildSelect(g->b, ends, c->x.count, inside, "");
    }
    c->x.a = c->a->ptr;
    c->x.a_row = c->a->stride[row];
    if (tl_is_float(c->x.dtype) && !g->fn->ring && !c->p->from_zero) {
        LLVMValueRef cut = LLVMBuildICmp(g->b, LLVMIntSLT, inside, c->x.count, "");
        LLVMValueRef z = LLVMBuildSelect(g->b, cut, LLVMConstReal(c->x.elem, 0),
                                         LLVMConstReal(c->x.elem, -0.0), "");
        c->x.last = tl_gen_splat(&g->gen, z, c->x.width);
    }
    c->x.count = inside;
    c->x.is_cut = c->x.per == 1;
}

/* Are the rows of A that are computed inside of it? */
static LLVMValueRef rows_are_inside(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->a->place;
    int row = tl_cpu_slice_of(&place, 0);
    TL_ASSERT(row >= 0, "A's rows are not along an axis");
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef from = add(g, c->a->start[row], c->x.from), to = add(g, c->a->start[row], c->x.to);
    LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntSGE, from, zero, ""),
                 high = LLVMBuildICmp(g->b, LLVMIntSLE, to, c->a->view->extent[row], "");
    LLVMValueRef inside = LLVMBuildAnd(g->b, low, high, "");
    return c->a->ok ? LLVMBuildAnd(g->b, inside, c->a->ok, "") : inside;
}

/* How many trips the chunk has, and the room in its panels. Where the columns are few, it is
 * deeper, so that A is read in long runs; but not if A is packed, for want of room. */
static void set_trips(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef most = tl_gen_int(&g->gen, c->p->trips);
    if (c->a && c->x.per == 1) {
        LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, packed_columns(&c->x),
                                         tl_gen_int(&g->gen, FEW_COLUMNS), "");
        if (c->p->a_may_end)
            few = LLVMBuildAnd(g->b, few, rows_are_inside(c), "");
        most = LLVMBuildSelect(g->b, few, tl_gen_int(&g->gen, most_trips(c)), most, "");
    }
    int64_t k = tl_in(c->p->dot, 1)->type->shape[0] / c->x.per;
    c->x.panel_rows = add(g, times(g, most, k), tl_gen_int(&g->gen, 1));
    c->trips = least(g, LLVMBuildSub(g->b, c->n, c->first, ""), most);
    c->x.count = times(g, c->trips, k);
}

static void provide_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    LLVMValueRef packed = NULL, row = tl_gen_int(&g->gen, c->p->a_row * c->p->per);
    if (c->p->a_bytes)
        packed = tl_cpu_home_ptr(g, c->p->a);
    if (!c->a) {
        c->x.a = packed;
        c->x.a_row = row;
        pack_trips(c, false);
        return;
    }
    if (!c->p->a_may_end)
        return;
    LLVMValueRef direct = rows_are_inside(c), a = c->x.a, a_row = c->x.a_row;
    if (c->is_whole)
        direct = LLVMBuildAnd(g->b, direct, c->is_whole, "");
    LLVMBasicBlockRef pack = tl_gen_block(&g->gen, "pack"), join = tl_gen_block(&g->gen, "packed");
    LLVMBuildCondBr(g->b, direct, join, pack);
    LLVMPositionBuilderAtEnd(g->b, pack);
    c->x.a = packed;
    pack_trips(c, false);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
    c->x.a = LLVMBuildSelect(g->b, direct, a, packed, "");
    c->x.a_row = LLVMBuildSelect(g->b, direct, a_row, row, "");
}

/* Which positions from .. to - 1 of a tile's axis the store writes: those inside. */
static void seen_part(TlCpuGen *g, const TlOp *store, int dim, LLVMValueRef *from,
                      LLVMValueRef *to)
{
    TlPlace p = tl_op_place(store);
    int i = tl_cpu_slice_of(&p, dim);
    const TlValue *index = p.index[i].value;
    LLVMValueRef start = tl_gen_to_i64(&g->gen, index, tl_gen_scalar(&g->gen, index));
    LLVMValueRef extent = tl_gen_view(&g->gen, p.base)->extent[i];
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), width = tl_gen_int(&g->gen, p.axes[i].width);
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntSLT, start, extent, "");
    LLVMValueRef left = LLVMBuildSub(g->b, extent, start, "");
    left = tl_gen_pick(&g->gen, LLVMIntULT, left, width, left, width);
    *to = LLVMBuildSelect(g->b, inside, left, zero, "");
    LLVMValueRef skipped = tl_gen_pick(&g->gen, LLVMIntSLT, start, zero,
                                       LLVMBuildNeg(g->b, start, ""), zero);
    *from = least(g, tl_gen_pick(&g->gen, LLVMIntSGT, skipped, width, width, skipped), *to);
}

static void set_bounds(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlType *acc = c->p->dot->out[0]->type;
    c->x.from = tl_gen_int(&g->gen, 0);
    c->x.to = tl_gen_int(&g->gen, acc->shape[0]);
    c->x.columns = tl_gen_int(&g->gen, c->x.acc_row);
    LLVMValueRef unused;
    if (c->p->store) {
        seen_part(g, c->p->store, 0, &c->x.from, &c->x.to);
        seen_part(g, c->p->store, 1, &unused, &c->x.columns);
    }
    divide_columns(&c->x);
}

/* Prepares the store: is all of the tile inside, and are there chunks? */
static LLVMValueRef can_store(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    tl_cpu_prepare_access(g, c->p->store);
    c->c = tl_map_get_ptr(&g->access, c->p->store);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef can = LLVMBuildICmp(g->b, LLVMIntSGT, c->n, zero, "");
    for (uint32_t i = 0; i < c->c->place.naxes; i++) {
        if (c->c->place.axes[i].kind != TL_AXIS_SLICE)
            continue;
        LLVMValueRef width = tl_gen_int(&g->gen, c->c->place.axes[i].width);
        LLVMValueRef low = LLVMBuildICmp(g->b, LLVMIntEQ, c->c->lo[i], zero, ""),
                     high = LLVMBuildICmp(g->b, LLVMIntEQ, c->c->hi[i], width, "");
        can = LLVMBuildAnd(g->b, can, LLVMBuildAnd(g->b, low, high, ""), "");
    }
    return c->c->ok ? LLVMBuildAnd(g->b, can, c->c->ok, "") : can;
}

/* Where this chunk's sums go. */
static void set_out(Chunk *c, LLVMValueRef stores)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->c->place;
    LLVMValueRef end = add(g, c->first, c->trips);
    LLVMValueRef is_last = LLVMBuildICmp(g->b, LLVMIntSGE, end, c->n, "");
    LLVMValueRef now = LLVMBuildAnd(g->b, stores, is_last, "");
    c->x.out = LLVMBuildSelect(g->b, now, c->c->ptr, c->x.acc, "");
    c->x.out_row = LLVMBuildSelect(g->b, now, c->c->stride[tl_cpu_slice_of(&place, 0)],
                                   tl_gen_int(&g->gen, c->x.acc_row), "");
}

void tl_cpu_lower_product(TlCpuGen *g, const TlCpuProduct *p, LLVMValueRef lo, LLVMValueRef by,
                          LLVMValueRef n)
{
    const TlType *type = p->dot->out[0]->type;
    TlCpuForm f = tl_cpu_form(type);
    Chunk c = {.p = p, .lo = lo, .by = by, .n = n};
    c.x = (Multiply){.g = g, .p = p, .dtype = p->dtype, .per = p->per};
    c.x.depth = p->depth;
    TlType sum = {.kind = TL_TILE, .dtype = p->dtype};
    TlType part = {.kind = TL_TILE, .dtype = p->part[0]};
    c.x.acc_row = f.padded[1];
    c.x.elem = tl_gen_elem_type(&g->gen, &sum);
    c.x.part = tl_gen_elem_type(&g->gen, &part);
    c.x.width = tl_cpu_fit_width(f.padded[1], g->vector_bytes / tl_dtype_bytes(p->dtype));
    c.x.acc = tl_cpu_home_ptr(g, g->plan->place[p->loop->out[0]->id].buffer);
    choose_block(&c.x, f.padded[1], type->shape[0]);
    set_bounds(&c);
    LLVMValueRef stores = p->stores ? can_store(&c) : NULL;
    TlCpuRange chunks;
    tl_cpu_range_begin(g, &chunks, tl_gen_int(&g->gen, 0), n, 0, NULL);
    c.first = chunks.i;
    if (p->a_load || p->b_load) {
        lower_trip(g, p, lo, by, c.first);
        c.a = p->a_load ? tl_map_get_ptr(&g->access, p->a_load) : NULL;
        c.b = p->b_load ? tl_map_get_ptr(&g->access, p->b_load) : NULL;
    }
    set_trips(&c);
    if (stores)
        set_out(&c, stores);
    if (c.a)
        point_at_a(&c);
    provide_b(&c);
    provide_a(&c);
    multiply(&c.x);
    tl_cpu_range_end_by(g, &chunks, c.trips, NULL);
    if (stores)
        tl_map_put_ptr(&g->stored, p->store, stores);
}
