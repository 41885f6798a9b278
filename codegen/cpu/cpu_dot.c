/* Matrix products on the CPU: a register-blocked microkernel over operands in scratch memory.
 *
 * Operands are brought into homes in the type of the accumulator (rows contiguous; a transposed
 * left operand only needs other strides). The result's home starts as the accumulator. For each
 * block of MR rows and NV vectors of columns, MR * NV vector accumulators stay in registers over
 * the loop along K. */
#include "codegen/cpu/cpu.h"

typedef struct Matrix {
    LLVMValueRef base;
    int64_t batch, row, col; /* strides in elements */
} Matrix;

typedef struct Product {
    TlCpuGen *g;
    TlDtype dtype; /* of the accumulation */
    LLVMTypeRef elem;
    Matrix a, b, c;
    int64_t batches, m, n, k; /* n with padding */
    int width, mr, nv;
    LLVMValueRef batch;
} Product;

static Matrix matrix_at(TlCpuGen *g, int32_t buffer, const TlNestForm *f, bool transposed)
{
    TL_ASSERT(buffer >= 0 && (uint32_t)buffer < g->plan->buffers.len, "buffer %d", (int)buffer);
    Matrix m = {.base = tl_cpu_home_ptr(g, buffer),
                .row = f->stride[f->rank - 2],
                .col = f->stride[f->rank - 1]};
    if (f->rank == 3)
        m.batch = f->stride[0];
    if (transposed) {
        int64_t t = m.row;
        m.row = m.col;
        m.col = t;
    }
    return m;
}

/* The operand of a transposition that swaps the last two axes: other strides have that effect. */
static TlValue *under_transposition(TlValue *v)
{
    if (!v->def || v->def->opcode != TL_OP_TRANS)
        return NULL;
    const int64_t *perm = tl_attr(v->def, TL_ATTR_PERM)->u.ints;
    int r = v->type->rank;
    if (perm[r - 1] != r - 2 || perm[r - 2] != r - 1)
        return NULL;
    return tl_in(v->def, 0);
}

static Matrix operand(TlCpuGen *g, TlValue *v, TlDtype dtype, int32_t pack, bool any_strides)
{
    TlNestForm f = tl_nest_form(v->type);
    TlNestPlace place = g->plan->place[v->id];
    if (place.kind == TL_NEST_HOME && v->type->dtype == dtype)
        return matrix_at(g, place.buffer, &f, false);
    TlValue *x = place.kind == TL_NEST_VIRTUAL ? under_transposition(v) : NULL;
    if (any_strides && x && g->plan->place[x->id].kind == TL_NEST_HOME && x->type->dtype == dtype) {
        TlNestForm fx = tl_nest_form(x->type);
        return matrix_at(g, g->plan->place[x->id].buffer, &fx, true);
    }
    tl_cpu_materialise_as(g, v, dtype, pack);
    return matrix_at(g, pack, &f, false);
}

/* Address of the element at a row and a column of the current batch. */
static LLVMValueRef pointer(Product *p, const Matrix *x, LLVMValueRef row, LLVMValueRef col)
{
    TlCpuGen *g = p->g;
    LLVMValueRef offset =
        LLVMBuildAdd(g->b, LLVMBuildMul(g->b, row, tl_gen_int(&g->gen, x->row), ""),
                     LLVMBuildMul(g->b, col, tl_gen_int(&g->gen, x->col), ""), "");
    if (p->batches > 1)
        offset = LLVMBuildAdd(g->b, offset,
                              LLVMBuildMul(g->b, p->batch, tl_gen_int(&g->gen, x->batch), ""), "");
    return LLVMBuildInBoundsGEP2(g->b, p->elem, x->base, &offset, 1, "");
}

static LLVMValueRef after(Product *p, LLVMValueRef at, LLVMValueRef n, int64_t stride)
{
    n = LLVMBuildMul(p->g->b, n, tl_gen_int(&p->g->gen, stride), "");
    return LLVMBuildInBoundsGEP2(p->g->b, p->elem, at, &n, 1, "");
}

static LLVMValueRef vector_at(Product *p, LLVMValueRef at, int j)
{
    return after(p, at, tl_gen_int(&p->g->gen, j), p->width);
}

static LLVMValueRef aligned(Product *p, LLVMValueRef access, int width)
{
    unsigned bytes = (unsigned)tl_dtype_bytes(p->dtype) * (unsigned)width;
    LLVMSetAlignment(access, bytes > 64 ? 64 : bytes);
    return access;
}

static LLVMValueRef load(Product *p, LLVMValueRef at, int width)
{
    return aligned(p, LLVMBuildLoad2(p->g->b, tl_gen_vec(p->elem, width), at, ""), width);
}

/* Row m0 + i, or the last row if that is past the end: its sums are then computed twice. */
static LLVMValueRef row_of(Product *p, LLVMValueRef m0, int i)
{
    TlCpuGen *g = p->g;
    LLVMValueRef row = LLVMBuildAdd(g->b, m0, tl_gen_int(&g->gen, i), "");
    LLVMValueRef last = tl_gen_int(&g->gen, p->m - 1);
    return p->m % p->mr ? tl_gen_pick(&g->gen, LLVMIntSLT, row, last, row, last) : row;
}

static void micro(Product *p, LLVMValueRef m0, LLVMValueRef n0, int nv)
{
    TL_ASSERT(p->mr > 0 && nv > 0, "a block of %d rows, %d vectors", p->mr, nv);
    TlCpuGen *g = p->g;
    LLVMValueRef acc[64], next[64], a[64], b[8], c[64], zero = tl_gen_int(&g->gen, 0);
    for (int i = 0; i < p->mr; i++) {
        LLVMValueRef row = row_of(p, m0, i);
        a[i] = pointer(p, &p->a, row, zero);
        c[i] = pointer(p, &p->c, row, n0);
        for (int j = 0; j < nv; j++)
            acc[i * nv + j] = load(p, vector_at(p, c[i], j), p->width);
    }
    LLVMValueRef first = pointer(p, &p->b, zero, n0);
    TlCpuLoop l = tl_cpu_loop_begin(g, 0, p->k, 1);
    for (int i = 0; i < p->mr * nv; i++)
        acc[i] = tl_cpu_loop_carry(g, &l, acc[i]);
    for (int j = 0; j < nv; j++)
        b[j] = load(p, vector_at(p, after(p, first, l.iv, p->b.row), j), p->width);
    for (int i = 0; i < p->mr; i++) {
        LLVMValueRef x = load(p, after(p, a[i], l.iv, p->a.col), 1);
        x = tl_gen_splat(&g->gen, x, p->width);
        for (int j = 0; j < nv; j++)
            next[i * nv + j] = tl_gen_multiply_add(&g->gen, p->dtype, x, b[j], acc[i * nv + j]);
    }
    tl_cpu_loop_end(g, &l, next);
    for (int i = 0; i < p->mr; i++)
        for (int j = 0; j < nv; j++)
            aligned(p, LLVMBuildStore(g->b, next[i * nv + j], vector_at(p, c[i], j)), p->width);
}

static void rows(Product *p, LLVMValueRef n0, int nv)
{
    TlCpuLoop l = tl_cpu_loop_begin(p->g, 0, p->m, p->mr);
    micro(p, l.iv, n0, nv);
    tl_cpu_loop_end(p->g, &l, NULL);
}

static void multiply(Product *p)
{
    int64_t vectors = p->n / p->width, whole = vectors / p->nv * p->nv;
    TlCpuLoop batch = tl_cpu_loop_begin(p->g, 0, p->batches, 1);
    p->batch = batch.iv;
    if (whole) {
        TlCpuLoop l = tl_cpu_loop_begin(p->g, 0, whole * p->width, (int64_t)p->nv * p->width);
        rows(p, l.iv, p->nv);
        tl_cpu_loop_end(p->g, &l, NULL);
    }
    if (whole < vectors)
        rows(p, tl_gen_int(&p->g->gen, whole * p->width), (int)(vectors - whole));
    tl_cpu_loop_end(p->g, &batch, NULL);
}

/* The accumulators, one row of b and one broadcast element must fit in registers. All blocks have
 * the same number of rows, the one with the least total cost; a block costs its rows plus one for
 * the loads of b. */
static void choose_block(Product *p, const TlCpuGen *g)
{
    int64_t vectors = p->n / p->width, best = INT64_MAX;
    int most = g->m.nregs >= 32 ? 4 : 2, budget = g->m.nregs >= 32 ? 24 : 12;
    p->nv = (int)(vectors < most ? vectors : most);
    int rows = budget / p->nv < 12 ? budget / p->nv : 12;
    for (int mr = p->m < rows ? (int)p->m : rows; mr > 0; mr--) {
        int64_t cost = (p->m + mr - 1) / mr * (mr + 1);
        if (cost < best) {
            best = cost;
            p->mr = mr;
        }
    }
}

typedef struct Narrow {
    TlValue *out;
    LLVMValueRef from, to;
    TlNestForm form;
    TlType wide;
} Narrow;

static void narrow_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    Narrow *n = user;
    LLVMValueRef x = tl_cpu_home_load(g, &n->wide, n->from, &n->form, at);
    tl_cpu_home_store(
        g, n->out->type, n->to, &n->form, at,
        tl_gen_cast(&g->gen, n->wide.dtype, n->out->type->dtype, x, TL_ROUND_NEAREST, false));
}

static void narrow_result(TlCpuGen *g, TlValue *out, TlDtype dtype, int32_t wide)
{
    Narrow n = {.out = out,
                .from = tl_cpu_home_ptr(g, wide),
                .to = tl_cpu_home_ptr(g, g->plan->place[out->id].buffer),
                .form = tl_nest_form(out->type),
                .wide = *out->type};
    n.wide.dtype = dtype;
    tl_cpu_nest(g, out->type, tl_nest_fit_width(n.form.padded[n.form.lane], g->m.vector_bytes / 4),
                narrow_body, &n);
}

void tl_cpu_lower_dot(TlCpuGen *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_DOT && op->nin == 3,
              "%s is no product", tl_op_info(op->opcode)->text);
    TlValue *out = op->out[0];
    TlDtype d = out->type->dtype, wide = d == TL_F64 || d == TL_I32 ? d : TL_F32;
    uint64_t extra = 0;
    TL_ASSERT(tl_map_get(&g->plan->extra, (uint64_t)(uintptr_t)op, &extra), "dot without room");
    int32_t pack = (int32_t)extra, home = d == wide ? g->plan->place[out->id].buffer : pack + 2;
    TlType type = {.kind = TL_TILE, .dtype = wide};
    TlNestForm fa = tl_nest_form(tl_in(op, 0)->type), fc = tl_nest_form(out->type);
    int r = fc.rank;
    Product p = {.g = g,
                 .dtype = wide,
                 .elem = tl_gen_elem_type(&g->gen, &type),
                 .batches = r == 3 ? fc.extent[0] : 1,
                 .m = fc.extent[r - 2],
                 .n = fc.padded[r - 1],
                 .k = fa.extent[r - 1]};
    p.a = operand(g, tl_in(op, 0), wide, pack, true);
    p.b = operand(g, tl_in(op, 1), wide, pack + 1, false);
    if (wide == d)
        tl_cpu_materialise(g, tl_in(op, 2), home);
    else
        tl_cpu_materialise_as(g, tl_in(op, 2), wide, home);
    p.c = matrix_at(g, home, &fc, false);
    p.width = tl_nest_fit_width(p.n, g->m.vector_bytes / tl_dtype_bytes(wide));
    choose_block(&p, g);
    multiply(&p);
    if (wide != d)
        narrow_result(g, out, wide, home);
}
