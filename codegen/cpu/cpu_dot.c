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
    return p->m % p->mr ? tl_cpu_smaller(g, row, last) : row;
}

static void micro(Product *p, LLVMValueRef m0, LLVMValueRef n0, int nv)
{
    TL_ASSERT(p->mr > 0 && nv > 0, "a block of %d rows, %d vectors", p->mr, nv);
    TlCpuGen *g = p->g;
    LLVMValueRef acc[TL_NEST_ACCUMULATORS], next[TL_NEST_ACCUMULATORS], a[TL_NEST_ACCUMULATORS],
        b[TL_NEST_ACCUMULATORS], c[TL_NEST_ACCUMULATORS], zero = tl_gen_int(&g->gen, 0);
    for (int i = 0; i < p->mr; i++) {
        LLVMValueRef row = row_of(p, m0, i);
        a[i] = pointer(p, &p->a, row, zero);
        c[i] = pointer(p, &p->c, row, n0);
        for (int j = 0; j < nv; j++)
            acc[i * nv + j] = load(p, vector_at(p, c[i], j), p->width);
    }
    LLVMValueRef first = pointer(p, &p->b, zero, n0);
    TlCpuLoop l;
    tl_cpu_loop_known(g, &l, 0, p->k, 1, (uint32_t)(p->mr * nv), acc);
    for (int j = 0; j < nv; j++)
        b[j] = load(p, vector_at(p, after(p, first, l.i, p->b.row), j), p->width);
    for (int i = 0; i < p->mr; i++) {
        LLVMValueRef x = load(p, after(p, a[i], l.i, p->a.col), 1);
        x = tl_gen_splat(&g->gen, x, p->width);
        for (int j = 0; j < nv; j++)
            next[i * nv + j] = tl_gen_multiply_add(&g->gen, p->dtype, x, b[j], l.carry[i * nv + j]);
    }
    tl_cpu_loop_end(g, &l, next);
    for (int i = 0; i < p->mr; i++)
        for (int j = 0; j < nv; j++)
            aligned(p, LLVMBuildStore(g->b, l.carry[i * nv + j], vector_at(p, c[i], j)), p->width);
}

static void rows(Product *p, LLVMValueRef n0, int nv)
{
    TlCpuLoop l;
    tl_cpu_loop_known(p->g, &l, 0, p->m, p->mr, 0, NULL);
    micro(p, l.i, n0, nv);
    tl_cpu_loop_end(p->g, &l, NULL);
}

static void multiply(Product *p)
{
    int64_t vectors = p->n / p->width, whole = vectors / p->nv * p->nv;
    TlCpuLoop batch, l;
    tl_cpu_loop_known(p->g, &batch, 0, p->batches, 1, 0, NULL);
    p->batch = batch.i;
    if (whole) {
        tl_cpu_loop_known(p->g, &l, 0, whole * p->width, (int64_t)p->nv * p->width, 0, NULL);
        rows(p, l.i, p->nv);
        tl_cpu_loop_end(p->g, &l, NULL);
    }
    if (whole < vectors)
        rows(p, tl_gen_int(&p->g->gen, whole * p->width), (int)(vectors - whole));
    tl_cpu_loop_end(p->g, &batch, NULL);
}

void tl_cpu_dot(TlCpuGen *g, const TlNest *n)
{
    TL_ASSERT(n->kind == TL_NEST_DOT, "%s is no product", tl_op_info(n->op->opcode)->text);
    TlType type = {.kind = TL_TILE, .dtype = n->type.dtype};
    TlNestForm f[2];
    int r = n->form.rank;
    for (uint32_t i = 0; i < 2; i++) {
        const TlValue *v = tl_in(n->op, i);
        f[i] = tl_nest_form(n->operand[i].transposed ? tl_in(v->def, 0)->type : v->type);
    }
    Product p = {.g = g,
                 .dtype = n->type.dtype,
                 .elem = tl_gen_elem_type(&g->gen, &type),
                 .batches = r == 3 ? n->form.extent[0] : 1,
                 .m = n->form.extent[r - 2],
                 .n = n->form.padded[r - 1],
                 .k = tl_in(n->op, 0)->type->shape[r - 1],
                 .width = n->width,
                 .mr = n->mr,
                 .nv = n->nv};
    p.a = matrix_at(g, n->operand[0].home, &f[0], n->operand[0].transposed);
    p.b = matrix_at(g, n->operand[1].home, &f[1], false);
    p.c = matrix_at(g, n->home, &n->form, false);
    multiply(&p);
}
