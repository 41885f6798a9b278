/* Lowering of matrix products by multiply-adds, after the plan of ir/plan/dot_plan.h: as the
 * interpreter has it, sum = fma(a, b, sum) for k = 0, 1, ... in the type of the sum.
 *
 *     for each round
 *         barrier, unless it is the first; write the rows of a and b; barrier
 *         for k = 0 .. rows - 1 by UNROLL: read vectors of row k of a and b; all multiply-adds
 *
 * and so for each pair of parts of a and b (dot_plan.h), of which there is one most often. */
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/dot_plan.h"

typedef struct Dot {
    TlSimt *g;
    TlOp *op;
    const TlDotPlan *p;
    TlType type; /* scalar of the sums */
    uint32_t bytes, scratch;
    LLVMValueRef *sum, *operand[2]; /* by register; operands in the type of the sums */
    uint32_t part[2];
} Dot;

/* ---- writing ---- */

/* The place of a cell in its part. */
static uint32_t in_row(const TlDotSide *s, uint32_t cell)
{
    return s->nparts > 1 ? cell & (s->row - 1) : cell;
}

/* What all writes of an operand have in common. */
typedef struct Writer {
    int side;
    uint32_t first, count; /* rows of this round */
    TlSimtLinear cell, k, row;
    TlSimtLinear part; /* of the cell, if there are several */
    LLVMValueRef owner;
} Writer;

static bool is_single_round(const Dot *d)
{
    return d->p->nrounds == 1;
}

/* i1: is the write's k in the round? NULL: always. *out_never: in no thread. What k has below the
 * unit that rounds begin and end at decides nothing: writes that differ in it share the test. */
static LLVMValueRef in_round(const Dot *d, const Writer *w, uint32_t k, bool *out_never)
{
    LLVMBuilderRef b = d->g->b;
    uint32_t least = k & ~w->k.bits, most = k | w->k.bits;
    *out_never = most < w->first || least >= w->first + w->count;
    if (least >= w->first && most < w->first + w->count)
        return NULL;
    uint32_t unit = (w->first | w->count) & -(w->first | w->count);
    LLVMValueRef x = LLVMBuildXor(b, w->k.thread, tl_simt_i32(d->g, k & -unit), "");
    x = LLVMBuildSub(b, x, tl_simt_i32(d->g, w->first), "");
    return LLVMBuildICmp(b, LLVMIntULT, x, tl_simt_i32(d->g, w->count), "");
}

/* i1: does the accumulator have the cell? NULL: always. */
static LLVMValueRef has_cell(const Dot *d, const Writer *w, int32_t reg)
{
    const TlDotSide *s = &d->p->side[w->side];
    const TlLayout *l = tl_in(d->op, (uint32_t)w->side)->type->layout;
    const TlLayout *acc = d->op->out[0]->type->layout;
    LLVMValueRef all = NULL;
    for (int i = 0; s->checks_cell && i < l->nout; i++) {
        int32_t end = tl_layout_extent(acc, i);
        if (i == d->p->k_dim[w->side] || tl_layout_extent(l, i) <= end)
            continue;
        LLVMValueRef x = tl_simt_coord(d->g, l, reg, i);
        all = tl_simt_both(
            d->g, all, LLVMBuildICmp(d->g->b, LLVMIntULT, x, tl_simt_i32(d->g, (uint32_t)end), ""));
    }
    return all;
}

/* (k mod rows) * row, in bytes, for constant k of the register. */
static LLVMValueRef row_of(const Dot *d, const Writer *w, uint32_t k)
{
    uint32_t unit = d->p->side[w->side].row * d->bytes;
    uint32_t mask = is_single_round(d) ? ~0u : d->p->rows - 1;
    if (!(w->k.bits & k & mask)) {
        uint32_t c = (k & mask) * unit;
        return c ? LLVMBuildAdd(d->g->b, w->row.thread, tl_simt_i32(d->g, c), "") : w->row.thread;
    }
    LLVMValueRef x = LLVMBuildXor(d->g->b, w->k.thread, tl_simt_i32(d->g, k), "");
    x = LLVMBuildAnd(d->g->b, x, tl_simt_i32(d->g, mask), "");
    return LLVMBuildMul(d->g->b, x, tl_simt_i32(d->g, unit), "");
}

/* i1: is the write's cell in the part? NULL: always. *out_never: in no thread. */
static LLVMValueRef in_part(const Dot *d, const Writer *w, uint32_t cell, bool *out_never)
{
    const TlDotSide *s = &d->p->side[w->side];
    uint32_t differs = cell >> s->part_bits ^ d->part[w->side];
    *out_never = s->nparts > 1 && (differs & ~w->part.bits) != 0;
    if (s->nparts == 1 || !w->part.bits)
        return NULL;
    return LLVMBuildICmp(d->g->b, LLVMIntEQ, w->part.thread, tl_simt_i32(d->g, differs), "");
}

static void write_vector(const Dot *d, const Writer *w, const TlDotWrite *x)
{
    const TlDotSide *s = &d->p->side[w->side];
    LLVMValueRef v[16], pred, part;
    bool never;
    part = in_part(d, w, x->cell, &never);
    if (never)
        return;
    pred = tl_simt_both(d->g, w->owner, in_round(d, w, x->k, &never));
    if (never)
        return;
    pred = tl_simt_both(d->g, pred, part);
    pred = tl_simt_both(d->g, pred, has_cell(d, w, x->regs[0]));
    for (int e = 0; e < 1 << s->write_bits; e++)
        v[e] = d->operand[w->side][x->regs[e]];
    uint32_t c = (in_row(s, x->cell) ^ tl_dot_swizzle(s, x->k)) * d->bytes;
    LLVMValueRef at = tl_simt_linear_at(d->g, &w->cell, c, d->scratch + s->base);
    at = LLVMBuildAdd(d->g->b, at, row_of(d, w, x->k), "");
    tl_simt_shared_store(d->g, &d->type, at, pred, 1 << s->write_bits, v);
}

static void write_side(const Dot *d, int side, uint32_t round)
{
    TlSimt *g = d->g;
    const TlDotSide *s = &d->p->side[side];
    Writer w = {.side = side, .first = round * d->p->rows, .count = d->p->rows};
    if (w.first + w.count > d->p->k)
        w.count = d->p->k - w.first;
    TlThreadMap cell = s->write_cell, part = {{0}, {0}};
    for (int i = 0; i < TL_MAX_LANE_BITS; i++) {
        part.lane[i] = cell.lane[i] >> s->part_bits;
        cell.lane[i] = in_row(s, cell.lane[i]);
    }
    for (int i = 0; i < TL_MAX_WARP_BITS; i++) {
        part.warp[i] = cell.warp[i] >> s->part_bits;
        cell.warp[i] = in_row(s, cell.warp[i]);
    }
    if (s->nparts > 1)
        w.part = tl_simt_linear(g, &part, g->lane_bits, g->warp_bits, 1);
    w.cell = tl_simt_linear(g, &cell, g->lane_bits, g->warp_bits, d->bytes);
    w.k = tl_simt_linear(g, &s->write_k, g->lane_bits, g->warp_bits, 1);
    w.owner = tl_simt_without(g, s->skip_lanes, 0, s->skip_warps);
    LLVMValueRef k = w.k.thread;
    if (!is_single_round(d))
        k = LLVMBuildAnd(g->b, k, tl_simt_i32(g, d->p->rows - 1), "");
    w.row.thread = LLVMBuildMul(g->b, k, tl_simt_i32(g, s->row * d->bytes), "");
    for (uint32_t i = 0; i < s->nwrites; i++)
        write_vector(d, &w, &s->writes[i]);
}

/* ---- reading ---- */

/* Where a side's vectors are, without what depends on k. */
typedef struct Reader {
    TlSimtLinear cell;
    LLVMValueRef *guarded; /* by vector: the whole cell, in bytes; NULL: it is linear */
} Reader;

static LLVMValueRef is_inside(const Dot *d, int side, int64_t reg)
{
    const TlType *acc = d->op->out[0]->type;
    LLVMValueRef all = NULL;
    for (int i = 0; i < acc->rank; i++) {
        if (i != d->p->free_dim[side] && !(acc->rank == 3 && i == 0))
            continue;
        LLVMValueRef x = tl_simt_coord(d->g, acc->layout, reg, i);
        LLVMValueRef end = tl_simt_i32(d->g, (uint32_t)acc->shape[i]);
        all = tl_simt_both(d->g, all, LLVMBuildICmp(d->g->b, LLVMIntULT, x, end, ""));
    }
    return all;
}

static Reader make_reader(const Dot *d, int side)
{
    TlSimt *g = d->g;
    const TlDotSide *s = &d->p->side[side];
    Reader r = {tl_simt_linear(g, &s->read_cell, g->lane_bits, g->warp_bits, d->bytes), NULL};
    if (!s->checks_vector)
        return r;
    r.guarded = TL_NEW_ARRAY(g->arena, LLVMValueRef, s->nvectors);
    for (uint32_t i = 0; i < s->nvectors; i++) {
        LLVMValueRef at =
            LLVMBuildXor(g->b, r.cell.thread,
                         tl_simt_i32(g, in_row(s, s->vectors[i]) * d->bytes), "");
        r.guarded[i] =
            LLVMBuildSelect(g->b, is_inside(d, side, s->vector_reg[i]), at, tl_simt_i32(g, 0), "");
    }
    return r;
}

/* The rows k + 0 .. count - 1 of a round that begins at row `first`; k is a multiple of count, and
 * a constant when `loop` is false. */
typedef struct Rows {
    bool loop;
    LLVMValueRef k;
    uint32_t at, count, first; /* at: k when constant */
} Rows;

/* In bytes: of row k + step the part that depends on no loop, and the part that does. */
static uint32_t fixed_swizzle(const Dot *d, const TlDotSide *s, const Rows *rows, uint32_t step)
{
    return tl_dot_swizzle(s, rows->first + rows->at + step) * d->bytes;
}

static TlSimtLinear loop_swizzle(const Dot *d, const TlDotSide *s, const Rows *rows)
{
    TlSimt *g = d->g;
    TlSimtLinear x = {tl_simt_i32(g, 0), 0};
    for (int b = __builtin_ctz(rows->count); rows->loop && (d->p->rows - 1) >> b; b++) {
        uint32_t to = s->swizzle[b] * d->bytes;
        if (!to)
            continue;
        LLVMValueRef bit = LLVMBuildLShr(g->b, rows->k, tl_simt_i32(g, (uint32_t)b), "");
        bit = LLVMBuildAnd(g->b, bit, tl_simt_i32(g, 1), "");
        bit = LLVMBuildMul(g->b, bit, tl_simt_i32(g, to), "");
        x.thread = LLVMBuildXor(g->b, x.thread, bit, "");
        x.bits |= to;
    }
    return x;
}

/* All values of a side in row k + step. */
static LLVMValueRef *read_row(const Dot *d, int side, const Reader *r, const TlSimtLinear *swizzle,
                              const Rows *rows, uint32_t step)
{
    TlSimt *g = d->g;
    const TlDotSide *s = &d->p->side[side];
    uint32_t n = 1u << s->vec_bits, unit = s->row * d->bytes, vector = n * d->bytes;
    uint32_t base = d->scratch + s->base + step * unit;
    uint32_t fixed = fixed_swizzle(d, s, rows, step), turned = fixed % vector / d->bytes;
    LLVMValueRef *out = TL_NEW_ARRAY(g->arena, LLVMValueRef, s->nvectors << s->vec_bits), x[16];
    LLVMValueRef row = LLVMBuildMul(g->b, rows->k, tl_simt_i32(g, unit), "");
    for (uint32_t i = 0; i < s->nvectors; i++) {
        if (s->nparts > 1 && s->vectors[i] >> s->part_bits != d->part[side])
            continue;
        TlSimtLinear cell = {r->cell.thread, r->cell.bits | swizzle->bits};
        uint32_t c = fixed / vector * vector;
        if (r->guarded)
            cell = (TlSimtLinear){r->guarded[i], ~0u};
        else
            c ^= in_row(s, s->vectors[i]) * d->bytes;
        cell.thread = LLVMBuildXor(g->b, cell.thread, swizzle->thread, "");
        LLVMValueRef at = LLVMBuildAdd(g->b, tl_simt_linear_at(g, &cell, c, base), row, "");
        tl_simt_shared_load(g, &d->type, at, (int)n, x);
        for (uint32_t e = 0; e < n; e++)
            out[i * n + e] = x[e ^ turned];
    }
    return out;
}

static void multiply(Dot *d, const Reader *r, const Rows *rows)
{
    const TlDotSide *side = d->p->side;
    TlSimtLinear swizzle[2];
    for (int i = 0; i < 2; i++)
        swizzle[i] = loop_swizzle(d, &side[i], rows);
    for (uint32_t step = 0; step < rows->count; step++) {
        LLVMValueRef *a = read_row(d, 0, &r[0], &swizzle[0], rows, step);
        LLVMValueRef *b = read_row(d, 1, &r[1], &swizzle[1], rows, step);
        for (uint32_t i = 0; i < d->p->nregs; i++)
            if (tl_dot_reg_needs(d->p, i, d->part[0], d->part[1]))
                d->sum[i] = tl_gen_multiply_add(&d->g->gen, d->p->sum, a[side[0].value_of[i]],
                                                b[side[1].value_of[i]], d->sum[i]);
    }
}

/* ---- the loop ---- */

/* Rows 0 .. count - 1, `unroll` at a time. */
static void loop(Dot *d, const Reader *r, uint32_t count, uint32_t first)
{
    TlSimt *g = d->g;
    uint32_t n = d->p->unroll;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef body = tl_gen_block(&g->gen, "dot"), after = tl_gen_block(&g->gen, "dot.end");
    LLVMBuildBr(g->b, body);
    LLVMPositionBuilderAtEnd(g->b, body);
    LLVMValueRef k = LLVMBuildPhi(g->b, g->i32, "k"), zero = tl_simt_i32(g, 0);
    LLVMValueRef *phi = TL_NEW_ARRAY(g->arena, LLVMValueRef, d->p->nregs);
    for (uint32_t i = 0; i < d->p->nregs; i++) {
        phi[i] = LLVMBuildPhi(g->b, LLVMTypeOf(d->sum[i]), "");
        LLVMAddIncoming(phi[i], &d->sum[i], &before, 1);
        d->sum[i] = phi[i];
    }
    multiply(d, r, &(Rows){true, k, 0, n, first});
    LLVMValueRef next = LLVMBuildNUWAdd(g->b, k, tl_simt_i32(g, n), "");
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(k, &zero, &before, 1);
    LLVMAddIncoming(k, &next, &end, 1);
    for (uint32_t i = 0; i < d->p->nregs; i++)
        LLVMAddIncoming(phi[i], &d->sum[i], &end, 1);
    LLVMValueRef more = LLVMBuildICmp(g->b, LLVMIntULT, next, tl_simt_i32(g, count), "");
    LLVMBuildCondBr(g->b, more, body, after);
    LLVMPositionBuilderAtEnd(g->b, after);
}

static void multiply_round(Dot *d, const Reader *r, uint32_t round)
{
    uint32_t first = round * d->p->rows, count = d->p->rows;
    if (first + count > d->p->k)
        count = d->p->k - first;
    uint32_t done = count / d->p->unroll * d->p->unroll;
    if (done > d->p->unroll)
        loop(d, r, done, first);
    else
        done = 0;
    while (done < count) {
        uint32_t n = count - done < d->p->unroll ? count - done : d->p->unroll;
        multiply(d, r, &(Rows){false, tl_simt_i32(d->g, done), done, n, first});
        done += n;
    }
}

/* ---- the op ---- */

static LLVMValueRef *as_sums(const Dot *d, const TlValue *v)
{
    uint32_t n = (uint32_t)tl_layout_registers(v->type->layout);
    LLVMValueRef *from = tl_simt_regs(d->g, v);
    if (v->type->dtype == d->p->sum)
        return from;
    LLVMValueRef *to = TL_NEW_ARRAY(d->g->arena, LLVMValueRef, n);
    for (uint32_t i = 0; i < n; i++)
        to[i] =
            tl_gen_cast(&d->g->gen, v->type->dtype, d->p->sum, from[i], TL_ROUND_NEAREST, false);
    return to;
}

static void define_result(const Dot *d)
{
    const TlValue *out = d->op->out[0];
    LLVMValueRef *to = tl_simt_define(d->g, out);
    for (uint32_t i = 0; i < d->p->nregs; i++)
        to[i] = out->type->dtype == d->p->sum ? d->sum[i]
                                              : tl_gen_cast(&d->g->gen, d->p->sum, out->type->dtype,
                                                            d->sum[i], TL_ROUND_NEAREST, false);
}

static void multiply_parts(Dot *d, const Reader *r, bool *is_first)
{
    bool needed = tl_dot_needs(d->p, d->part[0], d->part[1]);
    for (uint32_t round = 0; needed && round < d->p->nrounds; round++) {
        if (!*is_first)
            tl_simt_barrier(d->g);
        *is_first = false;
        write_side(d, 0, round);
        write_side(d, 1, round);
        tl_simt_barrier(d->g);
        multiply_round(d, r, round);
    }
}

void tl_simt_dot(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_DOT && op->nin == 3,
              "%s is no product", tl_op_info(op->opcode)->text);
    Dot d = {.g = g, .op = op, .p = tl_dot_plan(g->arena, op), .scratch = tl_simt_scratch(op)};
    d.type = (TlType){.kind = TL_TILE, .dtype = d.p->sum};
    d.bytes = (uint32_t)tl_gen_elem_bytes(&d.type);
    for (int i = 0; i < 2; i++)
        d.operand[i] = as_sums(&d, tl_in(op, (uint32_t)i));
    LLVMValueRef *acc = as_sums(&d, tl_in(op, 2));
    d.sum = TL_NEW_ARRAY(g->arena, LLVMValueRef, d.p->nregs);
    for (uint32_t i = 0; i < d.p->nregs; i++)
        d.sum[i] = acc[i];
    Reader r[2] = {make_reader(&d, 0), make_reader(&d, 1)};
    bool is_first = true;
    for (d.part[0] = 0; d.part[0] < d.p->side[0].nparts; d.part[0]++)
        for (d.part[1] = 0; d.part[1] < d.p->side[1].nparts; d.part[1]++)
            multiply_parts(&d, r, &is_first);
    define_result(&d);
}
