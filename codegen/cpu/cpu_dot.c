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

static Matrix matrix_at(TlCpuGen *g, int32_t buffer, const TlCpuForm *f, bool transposed)
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

/* Only the last two axes swapped? Then strides can do it. */
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
    TlCpuForm f = tl_cpu_form(v->type);
    TlCpuPlace place = g->plan->place[v->id];
    if (place.kind == TL_CPU_HOME && v->type->dtype == dtype)
        return matrix_at(g, place.buffer, &f, false);
    TlValue *x = place.kind == TL_CPU_VIRTUAL ? under_transposition(v) : NULL;
    if (any_strides && x && g->plan->place[x->id].kind == TL_CPU_HOME && x->type->dtype == dtype) {
        TlCpuForm fx = tl_cpu_form(x->type);
        return matrix_at(g, g->plan->place[x->id].buffer, &fx, true);
    }
    tl_cpu_materialise_as(g, v, dtype, pack);
    return matrix_at(g, pack, &f, false);
}

static LLVMValueRef element(Product *p, const Matrix *x, LLVMValueRef row, LLVMValueRef col,
                            int width, bool store, LLVMValueRef value)
{
    TL_ASSERT(width > 0 && (!store || value), "%d lanes to store", width);
    TlCpuGen *g = p->g;
    LLVMValueRef offset =
        LLVMBuildAdd(g->b, LLVMBuildMul(g->b, row, tl_gen_int(&g->gen, x->row), ""),
                     LLVMBuildMul(g->b, col, tl_gen_int(&g->gen, x->col), ""), "");
    if (p->batches > 1)
        offset = LLVMBuildAdd(g->b, offset,
                              LLVMBuildMul(g->b, p->batch, tl_gen_int(&g->gen, x->batch), ""), "");
    LLVMValueRef ptr = LLVMBuildInBoundsGEP2(g->b, p->elem, x->base, &offset, 1, "");
    LLVMValueRef r = store ? LLVMBuildStore(g->b, value, ptr)
                           : LLVMBuildLoad2(g->b, tl_gen_vec(p->elem, width), ptr, "");
    unsigned bytes = (unsigned)tl_dtype_bytes(p->dtype) * (unsigned)width;
    LLVMSetAlignment(r, bytes > 64 ? 64 : bytes);
    return r;
}

static LLVMValueRef plus(TlCpuGen *g, LLVMValueRef x, int64_t k)
{
    return LLVMBuildAdd(g->b, x, tl_gen_int(&g->gen, k), "");
}

static void micro(Product *p, LLVMValueRef m0, LLVMValueRef n0, int mr, int nv)
{
    TL_ASSERT(mr > 0 && nv > 0, "a block of %d rows, %d vectors", mr, nv);
    TlCpuGen *g = p->g;
    LLVMValueRef acc[64], next[64], b[8];
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            acc[i * nv + j] =
                element(p, &p->c, plus(g, m0, i), plus(g, n0, j * p->width), p->width, false, NULL);
    TlCpuLoop l = tl_cpu_loop_begin(g, 0, p->k, 1);
    for (int i = 0; i < mr * nv; i++)
        acc[i] = tl_cpu_loop_carry(g, &l, acc[i]);
    for (int j = 0; j < nv; j++)
        b[j] = element(p, &p->b, l.iv, plus(g, n0, j * p->width), p->width, false, NULL);
    for (int i = 0; i < mr; i++) {
        LLVMValueRef a = tl_gen_splat(
            &g->gen, element(p, &p->a, plus(g, m0, i), l.iv, 1, false, NULL), p->width);
        for (int j = 0; j < nv; j++)
            next[i * nv + j] = tl_gen_multiply_add(&g->gen, p->dtype, a, b[j], acc[i * nv + j]);
    }
    tl_cpu_loop_end(g, &l, next);
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            element(p, &p->c, plus(g, m0, i), plus(g, n0, j * p->width), p->width, true,
                    next[i * nv + j]);
}

static void rows(Product *p, LLVMValueRef n0, int nv)
{
    int64_t whole = p->m / p->mr * p->mr;
    if (whole) {
        TlCpuLoop l = tl_cpu_loop_begin(p->g, 0, whole, p->mr);
        micro(p, l.iv, n0, p->mr, nv);
        tl_cpu_loop_end(p->g, &l, NULL);
    }
    if (whole < p->m)
        micro(p, tl_gen_int(&p->g->gen, whole), n0, (int)(p->m - whole), nv);
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

/* Accumulators, one row of b and one broadcast must fit the registers; at least 8 accumulators
 * hide the latency. */
static void choose_block(Product *p, const TlCpuGen *g)
{
    int64_t vectors = p->n / p->width;
    int most = g->nregs >= 32 ? 4 : 2, budget = g->nregs >= 32 ? 24 : 12;
    p->nv = (int)(vectors < most ? vectors : most);
    p->mr = budget / p->nv;
    if (p->mr > 12)
        p->mr = 12;
    if (p->mr > p->m)
        p->mr = (int)p->m;
}

typedef struct Narrow {
    TlValue *out;
    LLVMValueRef from, to;
    TlCpuForm form;
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
                .form = tl_cpu_form(out->type),
                .wide = *out->type};
    n.wide.dtype = dtype;
    tl_cpu_nest(g, out->type, tl_cpu_fit_width(n.form.padded[n.form.lane], g->vector_bytes / 4),
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
    TlCpuForm fa = tl_cpu_form(tl_in(op, 0)->type), fc = tl_cpu_form(out->type);
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
    p.width = tl_cpu_fit_width(p.n, g->vector_bytes / tl_dtype_bytes(wide));
    choose_block(&p, g);
    multiply(&p);
    if (wide != d)
        narrow_result(g, out, wide, home);
}
