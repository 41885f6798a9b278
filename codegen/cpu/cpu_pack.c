/* Packs the operands of products (cpu_matmul.c): B by panels, in which the elements of one k lie
 * side by side; A by rows. Elements are converted on the way; if a dot-product instruction takes
 * two or four along k, those are packed together. An operand that is dense along its columns is
 * read down the columns, and blocks of it are transposed in registers. */
#include "codegen/cpu/cpu_matmul.h"

enum {
    NEAR_BYTES = 256,     /* what is asked for is so much further on: many columns are packed, */
    FETCHED_BYTES = 512,  /* a block is transposed, */
    HELD_BYTES = 2 << 20, /* a second cache holds: those are not asked for */
    FIRST_CACHE = 3,      /* locality */
};

/* What flips the signs of A; NULL: they stay. Tiles take them as they are. */
static LLVMValueRef flip(TlCpuMultiply *x)
{
    LLVMValueRef sign = LLVMConstInt(x->g->gen.i8, 0x80, 0);
    if (!x->p->flips || (x->p->tile && !x->reads_now))
        return NULL;
    return x->p->tile
               ? LLVMBuildSelect(x->g->b, x->reads_now, sign, LLVMConstInt(x->g->gen.i8, 0, 0), "")
               : sign;
}

static LLVMValueRef to_part(TlCpuMultiply *x, TlValue *v, bool is_b, LLVMValueRef e)
{
    TlDtype d = x->p->part[is_b];
    TlGen *g = &x->g->gen;
    e = tl_gen_cast(g, v->type->dtype, d, e, TL_ROUND_NEAREST, false);
    LLVMValueRef sign = is_b ? NULL : flip(x);
    return sign ? LLVMBuildXor(g->b, e, tl_gen_splat(g, sign, tl_gen_width_of(e)), "") : e;
}

static void store(TlCpuMultiply *x, bool is_b, LLVMValueRef e, LLVMValueRef p)
{
    LLVMSetAlignment(LLVMBuildStore(x->g->b, e, p), (unsigned)tl_dtype_bytes(x->p->part[is_b]));
}

/* Packing of the operand v of one iteration. */
typedef struct Pack {
    TlCpuMultiply *x;
    const TlNest *n;
    TlValue *v;
    LLVMValueRef to, trip; /* where v's chunk is packed; v's first k in it */
    bool is_b;
    int together;  /* elements along k that lie side by side: of a packed one, or of a pair */
    bool is_short; /* in what is left of a row: few elements, or none */
    bool is_wide;  /* before narrow panels */
} Pack;
typedef void PackBody(Pack *p, TlCpuAt *pos);

static LLVMValueRef place_in_row(Pack *p, LLVMValueRef row, LLVMValueRef k)
{
    TlCpuGen *g = p->x->g;
    k = tl_cpu_add(g, p->trip, k);
    bool columns = p->x->p->a_by_columns;
    LLVMValueRef begin = tl_cpu_times(g, columns ? k : row, p->x->p->a_row * p->x->per),
                 n = tl_cpu_add(g, begin, columns ? row : k);
    return tl_cpu_part_at(p->x, p->to, n);
}

static LLVMValueRef place_in_panel(Pack *p, LLVMValueRef k, LLVMValueRef column)
{
    TlCpuMultiply *x = p->x;
    TlCpuGen *g = x->g;
    LLVMValueRef panel = tl_gen_int(&g->gen, x->panel), per = tl_gen_int(&g->gen, x->per);
    LLVMValueRef row = LLVMBuildUDiv(g->b, tl_cpu_add(g, p->trip, k), per, "");
    row = x->b_row ? tl_cpu_add(g, row, x->b_row) : row;
    LLVMValueRef i = LLVMBuildURem(g->b, column, panel, "");
    LLVMValueRef begin = LLVMBuildMul(g->b, LLVMBuildSub(g->b, column, i, ""), x->panel_rows, "");
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
    i = p->together > x->per ? tl_cpu_times(g, i, 2) : i; /* two rows lie in turns */
    return tl_cpu_elem_at(
        x, p->to, tl_cpu_add(g, tl_cpu_add(g, begin, i), LLVMBuildMul(g->b, row, panel, "")));
}

static LLVMValueRef place_of(Pack *p, LLVMValueRef row, LLVMValueRef column)
{
    return (p->is_b ? place_in_panel : place_in_row)(p, row, column);
}

static LLVMValueRef eval_at(Pack *p, const TlCpuAt *pos, LLVMValueRef row, LLVMValueRef column)
{
    TlCpuAt at;
    tl_cpu_at_under(p->x->g, &at, pos, 2, pos->lane, pos->width);
    at.idx[0] = row;
    at.idx[1] = column;
    return tl_cpu_eval(p->x->g, p->v, &at);
}

/* Is B with all of its batches more than the second cache holds? What that holds is not asked
 * for: a request takes the way between the caches a second time. */
LLVMValueRef tl_cpu_is_far(TlCpuGen *g, const TlCpuAccess *a)
{
    LLVMValueRef n = tl_gen_int(&g->gen, tl_dtype_bytes(a->view->dtype));
    for (int i = 0; i < a->view->rank; i++)
        n = LLVMBuildMul(g->b, n, a->view->extent[i], "");
    return LLVMBuildICmp(g->b, LLVMIntUGT, n, tl_gen_int(&g->gen, HELD_BYTES), "");
}

/* Prefetches the cache line so many rows below an element, of the load. Lines of many rows would
 * drive each other out of the first cache, as rows are often a power of two apart. far: of B where
 * it lies; where nothing is to be asked for, the request is for a line that is in use. */
static void fetch_below(Pack *p, LLVMValueRef row, LLVMValueRef column, bool far)
{
    TlCpuGen *g = p->x->g;
    const TlCpuAccess *a = tl_cpu_access_of(g, p->n->below);
    int i = tl_nest_slice_of(&a->a->place, 0), j = tl_nest_slice_of(&a->a->place, 1);
    if (i < 0 || j < 0)
        return;
    LLVMValueRef stride[] = {a->stride[i], a->stride[j]}, from = a->ptr;
    from = tl_gen_address(&g->gen, a->view->dtype, from,
                          LLVMBuildMul(g->b,
                                       tl_gen_int(&g->gen, far ? TL_CPU_FAR_ROWS : TL_NEST_AHEAD),
                                       stride[0], ""));
    if (far) {
        LLVMValueRef asks = tl_cpu_is_far(g, a), zero = tl_gen_int(&g->gen, 0);
        from = LLVMBuildSelect(g->b, asks, from, p->x->acc, "");
        for (int k = 0; k < 2; k++)
            stride[k] = LLVMBuildSelect(g->b, asks, stride[k], zero, "");
    }
    LLVMValueRef offset = tl_cpu_add(g, LLVMBuildMul(g->b, row, stride[0], ""),
                                     LLVMBuildMul(g->b, column, stride[1], ""));
    LLVMValueRef at = tl_gen_address(&g->gen, a->view->dtype, from, offset);
    tl_cpu_prefetch_line(g, at, false, far ? TL_CPU_SECOND_CACHE : FIRST_CACHE);
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
    LLVMValueRef below = pack_rows(p, pos, tl_cpu_add(g, row, tl_gen_int(&g->gen, n / 2)), n / 2);
    return tl_cpu_interleave(g, LLVMBuildBitCast(g->b, above, half, ""),
                             LLVMBuildBitCast(g->b, below, half, ""), pos->width);
}

/* One vector along a row; a packed element of B takes its parts from several rows. */
static LLVMValueRef parts_of_lanes(Pack *p, TlCpuAt *pos)
{
    LLVMValueRef row = pos->idx[0], column = pos->idx[1];
    if (p->n->below && !p->is_short && p->is_b)
        fetch_below(p, row, column, p->x->reads_b);
    if (p->n->below && !p->is_short && !p->is_b) /* of which A is the transposition */
        fetch_below(p, column, row, false);
    int n = p->together;
    LLVMValueRef e = pack_rows(p, pos, row, n);
    if (n > 1) {
        LLVMTypeRef elem = tl_gen_elem_type(&p->x->g->gen, p->v->type);
        e = LLVMBuildBitCast(p->x->g->b, e, tl_gen_vec(elem, n * pos->width), "");
    }
    return to_part(p->x, p->v, p->is_b, e);
}

static void pack_lanes(Pack *p, TlCpuAt *pos)
{
    LLVMValueRef e = parts_of_lanes(p, pos);
    store(p->x, p->is_b, e, place_of(p, pos->idx[0], pos->idx[1]));
}

/* A vector down a column, as so many packed elements. */
static LLVMValueRef down_column(Pack *p, TlCpuAt *pos, LLVMValueRef column)
{
    LLVMValueRef e = to_part(p->x, p->v, p->is_b, eval_at(p, pos, pos->idx[0], column));
    if (p->is_b && p->x->per > 1)
        e = LLVMBuildBitCast(p->x->g->b, e, tl_gen_vec(p->x->elem, p->n->transposed), "");
    return e;
}

/* One block: vectors down its columns, transposed. */
static void transpose_block(Pack *p, TlCpuAt *pos, LLVMValueRef *e)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef column = pos->idx[1];
    for (int i = 0; i < p->n->transposed; i++)
        e[i] = down_column(p, pos, tl_cpu_add(g, column, tl_gen_int(&g->gen, i)));
    tl_cpu_transpose(g, e, p->n->transposed);
}

/* Asks for what lies so many bytes further on in n columns side by side, if it is computed from one
 * load. Lines far ahead of several columns would drive each other out of the first cache, as
 * columns are often a power of two apart. */
static void fetch_along(Pack *p, LLVMValueRef k, LLVMValueRef column, int n, int64_t bytes)
{
    TlCpuGen *g = p->x->g;
    bool transposed;
    TlOp *load = p->x->p->loop ? tl_nest_load_under(p->v, &transposed)
                               : tl_nest_load_in(p->v, &transposed);
    if (!load)
        return;
    const TlCpuAccess *a = tl_cpu_access_of(g, load);
    int i = tl_nest_slice_of(&a->a->place, transposed),
        j = tl_nest_slice_of(&a->a->place, !transposed);
    if (i < 0 || j < 0)
        return;
    LLVMValueRef further = tl_gen_int(&g->gen, bytes / tl_dtype_bytes(a->view->dtype));
    LLVMValueRef offset =
        tl_cpu_add(g, LLVMBuildMul(g->b, tl_cpu_add(g, k, further), a->stride[i], ""),
                   LLVMBuildMul(g->b, column, a->stride[j], ""));
    LLVMValueRef at = tl_gen_address(&g->gen, a->view->dtype, a->ptr, offset);
    while (n-- > 0) {
        tl_cpu_prefetch_line(g, at, false,
                             bytes > FETCHED_BYTES ? TL_CPU_SECOND_CACHE : FIRST_CACHE);
        at = tl_gen_address(&g->gen, a->view->dtype, at, a->stride[j]);
    }
}

static void pack_transposed(Pack *p, TlCpuAt *pos)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef row = pos->idx[0], column = pos->idx[1], e[TL_NEST_TRANSPOSED];
    int per = p->is_b ? p->x->per : 1;
    transpose_block(p, pos, e);
    if (p->is_b && !p->x->p->loop && !p->is_short) /* the next one reads what is beside it */
        fetch_along(p, row, column, p->n->transposed, NEAR_BYTES);
    int rows = p->is_b ? p->together / per : 1;
    for (int i = 0; i < p->n->transposed; i += rows) {
        LLVMValueRef at = tl_cpu_add(g, row, tl_gen_int(&g->gen, i * per));
        LLVMValueRef v = rows > 1 ? tl_cpu_interleave(g, e[i], e[i + 1], p->n->transposed) : e[i];
        store(p->x, p->is_b, v, place_of(p, at, column));
    }
}

static void pack_part(Pack *p, const TlCpuAt *outer, LLVMValueRef from, LLVMValueRef to,
                      bool is_short)
{
    TlCpuGen *g = p->x->g;
    TlCpuAt pos = *outer;
    TlCpuLoop l;
    p->is_short = is_short;
    tl_cpu_loop_begin(g, &l, from, to, pos.width, 0, NULL);
    if (is_short)
        tl_cpu_loop_is_short(g, &l);
    pos.idx[p->n->lane] = l.i;
    (p->n->transposed ? pack_transposed : pack_lanes)(p, &pos);
    tl_cpu_loop_end(g, &l, NULL);
}

/* How many rows of an iteration of B are multiplied. Where A is read in memory, those before its
 * end, which is B's end, too. */
static LLVMValueRef rows_of_b(Pack *p)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef all = tl_gen_int(&g->gen, p->v->type->shape[0]);
    return p->n->cuts ? tl_cpu_smaller(g, all, LLVMBuildSub(g->b, p->x->count, p->trip, "")) : all;
}

/* Columns of packed B. */
LLVMValueRef tl_cpu_packed_columns(TlCpuMultiply *x)
{
    LLVMValueRef n = tl_cpu_times(x->g, x->panels, x->panel);
    return x->narrow ? tl_cpu_add(x->g, n, tl_cpu_times(x->g, x->narrows, x->width)) : n;
}

/* Packs v: vectors along the nest's lane, up to `end`, without tests where they are inside; `step`
 * positions at a time along the other dimension. */
static void pack_all(Pack *p, int64_t end, int64_t step)
{
    TlCpuGen *g = p->x->g;
    const TlNest *nest = p->n;
    const int32_t *shape = p->v->type->shape;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), last = tl_gen_int(&g->gen, end);
    TlCpuRow row = {.nest = nest};
    TlCpuAt pos;
    bool is_rows = p->is_b && nest->lane == 1;
    LLVMValueRef n = is_rows ? rows_of_b(p) : tl_gen_int(&g->gen, shape[1 - nest->lane]);
    if (p->is_b)
        *(is_rows ? &last : &n) =
            tl_cpu_smaller(g, is_rows ? last : n, tl_cpu_packed_columns(p->x));
    else /* rows that are not seen are not multiplied */
        *(nest->lane == 0 ? &last : &n) = tl_cpu_smaller(g, nest->lane == 0 ? last : n, p->x->to);
    LLVMValueRef inside = tl_cpu_bounds(g, nest, nest->width).end;
    tl_cpu_at_init(g, &pos, 2, nest->lane, nest->width);
    pos.row = &row;
    pos.whole = inside != NULL;
    p->is_wide = is_rows && p->x->narrow;
    if (p->is_wide) /* no vector may go on from a panel to a narrow one */
        inside = inside ? tl_cpu_smaller(g, inside, p->x->narrow) : p->x->narrow;
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, zero, n, step, 0, NULL);
    pos.idx[1 - nest->lane] = l.i;
    if (inside) {
        pack_part(p, &pos, zero, inside, false);
        pos.whole = false;
        pos.width = nest->tested;
        p->is_wide = false;
    }
    pack_part(p, &pos, inside ? inside : zero, last, inside != NULL);
    tl_cpu_loop_end(g, &l, NULL);
}

void tl_cpu_pack(TlCpuMultiply *x, const TlNest *n, LLVMValueRef to, LLVMValueRef k)
{
    Pack p = {.x = x, .n = n, .v = n->value, .to = to, .trip = k, .is_b = n->is_b, .together = 1};
    if (n->is_b)
        p.together = x->p->pairs ? 2 * x->per : x->per;
    const int32_t *shape = n->value->type->shape;
    if (n->transposed)
        pack_all(&p, shape[0], n->transposed);
    else if (n->is_b)
        pack_all(&p, n->width > 1 ? x->acc_row : shape[1], p.together);
    else
        pack_all(&p, shape[n->lane], 1);
}

/* ---- B as it is ---- */

void tl_cpu_lower_trip(const TlCpuMultiply *x, LLVMValueRef trip)
{
    TlCpuGen *g = x->g;
    TlBlock *body = x->p->loop->regions[0];
    LLVMValueRef k = LLVMBuildIntCast2(g->b, trip, LLVMTypeOf(x->lo), 0, "");
    g->scalar[body->args[0]->id] = LLVMBuildAdd(g->b, x->lo, LLVMBuildMul(g->b, k, x->by, ""), "");
    tl_cpu_lower_block(g, body, x->p->dot);
}

void tl_cpu_read_b(TlCpuMultiply *x, LLVMValueRef k, LLVMValueRef column, LLVMValueRef *out)
{
    TlCpuGen *g = x->g;
    const TlNest *n = x->n->pack[1];
    TlCpuRow row = {.nest = n};
    Pack p = {.x = x, .n = n, .v = n->value, .is_b = true, .is_wide = true, .together = x->per};
    for (int j = 0; j < (n->transposed ? 1 : x->nv); j++) {
        TlCpuAt pos;
        tl_cpu_at_init(g, &pos, 2, n->lane, n->transposed ? n->width : x->width);
        pos.row = &row;
        pos.whole = true;
        pos.idx[0] = k;
        pos.idx[1] = tl_cpu_add(g, column, tl_gen_int(&g->gen, (int64_t)j * x->width));
        if (n->transposed) {
            transpose_block(&p, &pos, out);
            fetch_along(&p, k, column, n->transposed, FETCHED_BYTES);
            continue;
        }
        out[j] = parts_of_lanes(&p, &pos);
        if (x->per > 1)
            out[j] = LLVMBuildBitCast(g->b, out[j], tl_gen_vec(x->elem, x->width), "");
    }
}

void tl_cpu_read_along(TlCpuMultiply *x, LLVMValueRef k, const LLVMValueRef *column, int n,
                       LLVMValueRef *out)
{
    TlCpuGen *g = x->g;
    const TlNest *pack = x->n->pack[1];
    TlCpuRow row = {.nest = pack};
    Pack p = {
        .x = x, .n = pack, .v = pack->value, .is_b = true, .is_wide = true, .together = x->per};
    TlCpuAt pos;
    tl_cpu_at_init(g, &pos, 2, pack->lane, pack->width);
    pos.row = &row;
    pos.whole = true;
    pos.idx[0] = k;
    for (int i = 0; i < n; i++)
        out[i] = down_column(&p, &pos, column[i]);
    fetch_along(&p, k, column[0], n, TL_CPU_FAR_BYTES);
}
