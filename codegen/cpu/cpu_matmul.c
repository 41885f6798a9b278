/* Products in a loop on the CPU: for (k ...) acc = dot(A[m, k], B[k, n], acc), and nothing else.
 *
 * Done trip by trip, acc would go through memory for each block of k, and the kernel's own block
 * would decide the speed. Here trips are gathered into chunks of some DEPTH along k. A chunk's
 * operands are packed; then each block of acc, mr rows by a panel of columns, stays in registers
 * while the chunk's k go by.
 *
 * - B is packed by panels: for each k the panel's elements side by side. A panel of a chunk stays
 *   in the first cache while all rows of A pass.
 * - A worker's next program often needs the same B, as pid(0) moves first. Where B is a load of
 *   constant memory whose rows are the loop's k, packed chunks stay in scratch memory, each with a
 *   tag that says what it is.
 * - A is read where it lies when it is a load of such elements as are summed, contiguous along k;
 *   else it is packed by rows.
 * - Rows and columns of acc that the program stores nowhere, as they are beyond the end of what it
 *   stores to, are not computed.
 *
 * Each sum adds its products in the order of k, as the interpreter does; what is left out would
 * have added zeros. */
#include "codegen/cpu/cpu.h"
#include "passes/analysis/axis_info.h"
#include "passes/analysis/facts.h"

enum {
    DEPTH = 256,          /* elements along k of a chunk; one trip at least */
    KEPT_BYTES = 1 << 20, /* of packed chunks that stay */
    MAX_SLOTS = 64,
    TAG_BYTES = TL_CPU_TAG_BYTES,
    SMALL = 4, /* rows of the lesser block */
    GROUP_BYTES = 1 << 17, /* of panels that stay in the second cache while the rows pass */
    AHEAD = 8, /* rows: how far packing fetches before it loads */
    MAX_ACCUMULATORS = 24,
};

/* ---- which loops ---- */

static bool is_virtual_or_scalar(const TlCpuPlan *plan, const TlValue *v)
{
    return v->type->kind == TL_TILE && plan->place[v->id].kind != TL_CPU_HOME;
}

/* An op that may be lowered for each trip anew: it only says how elements are computed. */
static bool is_repeatable(const TlCpuPlan *plan, const TlOp *op)
{
    uint32_t flags = tl_op_info(op->opcode)->flags;
    switch (op->opcode) {
    case TL_OP_CONST:
    case TL_OP_IOTA:
    case TL_OP_BROADCAST:
    case TL_OP_EXPAND:
    case TL_OP_CONVERT:
    case TL_OP_EXTENT:
    case TL_OP_STRIDE:
    case TL_OP_INSIDE:
    case TL_OP_LOAD: break;
    default:
        if (!(flags & F_ELEM))
            return false;
    }
    return op->nout == 1 && !op->nregions && is_virtual_or_scalar(plan, op->out[0]);
}

/* The dot of a loop that does nothing else, with the carried tile as what it adds to. */
static TlOp *only_dot(const TlCpuPlan *plan, const TlOp *loop)
{
    const TlBlock *body = loop->regions[0];
    TlOp *dot = NULL;
    if (loop->nout != 1 || loop->out[0]->type->rank != 2)
        return NULL;
    for (TlOp *op = body->first; op != body->last; op = op->next) {
        if (op->opcode == TL_OP_DOT && !dot)
            dot = op;
        else if (!is_repeatable(plan, op))
            return NULL;
    }
    const TlValue *acc = body->args[1];
    if (!dot || tl_in(body->last, 0) != dot->out[0] || tl_in(dot, 2) != acc || !acc->uses ||
        acc->uses->next || dot->out[0]->uses->next)
        return NULL;
    return dot;
}

/* The load under v: v itself, or what v is a conversion of. Elements outside are zeros. */
static TlOp *load_under(const TlValue *v)
{
    while (v->def && v->def->opcode == TL_OP_CAST)
        v = tl_in(v->def, 0);
    if (!v->def || v->def->opcode != TL_OP_LOAD)
        return NULL;
    TlPlace p = tl_op_place(v->def);
    return p.axes && !p.mask && !p.other && !p.base->def ? v->def : NULL;
}

/* The axis of a view that gives the tile's axis `dim`, when it is a slice of step 1; else -1. */
static int slice_of(const TlPlace *p, int dim)
{
    for (uint32_t i = 0; i < p->naxes; i++)
        if (tl_place_dim(p, i) == dim)
            return p->axes[i].kind == TL_AXIS_SLICE && p->axes[i].step == 1 ? (int)i : -1;
    return -1;
}

static bool same_extent(const TlFn *fn, const TlPlace *p, int i, const TlPlace *q, int j)
{
    const TlDim *x = tl_axis_param_extent(fn, p->base, (uint32_t)i);
    const TlDim *y = tl_axis_param_extent(fn, q->base, (uint32_t)j);
    return x && y && x->kind == y->kind && x->value == y->value;
}

/* Do the slices of p and q along a tile's axis cover the same numbers of axes equally long? */
static bool same_slice(const TlFn *fn, const TlPlace *p, int p_dim, const TlPlace *q, int q_dim)
{
    int i = slice_of(p, p_dim), j = slice_of(q, q_dim);
    return i >= 0 && j >= 0 && p->index[i].value == q->index[j].value &&
           p->axes[i].width == q->axes[j].width && same_extent(fn, p, i, q, j);
}

/* The store that shows which elements of v are seen: all that becomes of v is stored by stores
 * with these slices, element for element. NULL: any element may be seen. */
static TlOp *store_over(const TlFn *fn, const TlValue *v, TlOp *seen, int depth)
{
    if (!v->uses || depth > 32)
        return NULL;
    for (TlUse *u = v->uses; u; u = u->next) {
        TlOp *op = u->user;
        if (op->opcode == TL_OP_STORE && tl_op_place(op).value == v) {
            TlPlace p = tl_op_place(op), q = tl_op_place(seen ? seen : op);
            if (!p.axes || p.mask || p.base->def || !same_slice(fn, &p, 0, &q, 0) ||
                !same_slice(fn, &p, 1, &q, 1))
                return NULL;
            seen = op;
        } else if (op->nout == 1 && op->out[0]->type->kind == TL_TILE &&
                   tl_same_shape(op->out[0]->type, v->type) && op->block == v->def->block &&
                   ((tl_op_info(op->opcode)->flags & F_ELEM) || op->opcode == TL_OP_CONVERT)) {
            seen = store_over(fn, op->out[0], seen, depth + 1);
            if (!seen)
                return NULL;
        } else {
            return NULL;
        }
    }
    return seen;
}

/* Is v there when the loop begins? */
static bool is_before(const TlValue *v, const TlOp *loop)
{
    const TlBlock *home = v->def ? v->def->block : v->block;
    const TlOp *at = loop;
    while (at && at->block != home)
        at = at->block->parent;
    for (const TlOp *x = v->def; at && x && x != at; x = x->next)
        if (!x->next)
            return false;
    return at != NULL;
}

/* The stores' slices must begin at values that are there before the loop. */
static TlOp *find_store(const TlFn *fn, TlOp *loop)
{
    TlOp *store = store_over(fn, loop->out[0], NULL, 0);
    if (!store)
        return NULL;
    TlPlace p = tl_op_place(store);
    for (int dim = 0; dim < 2; dim++)
        if (!is_before(p.index[slice_of(&p, dim)].value, loop))
            return NULL;
    return store;
}

/* Is the slice along a tile's axis the loop's own k, from 0 or more on? */
static bool follows_loop(const TlPlace *p, int dim, const TlOp *loop)
{
    TlWideInt lo, step;
    int i = slice_of(p, dim);
    return i >= 0 && p->index[i].value == loop->regions[0]->args[0] &&
           tl_const_int_value(tl_in(loop, 0), &lo) && lo >= 0 &&
           tl_const_int_value(tl_in(loop, 2), &step) && step == p->axes[i].width;
}

/* Every index that drops an axis of A must drop one of the store, too: then A has the row where
 * the store has it. */
static bool scalars_agree(const TlFn *fn, const TlPlace *a, const TlPlace *c)
{
    for (uint32_t i = 0; i < a->naxes; i++) {
        bool found = a->axes[i].kind != TL_AXIS_SCALAR;
        for (uint32_t j = 0; j < c->naxes && !found; j++)
            found = c->axes[j].kind == TL_AXIS_SCALAR && a->index[i].value == c->index[j].value &&
                    same_extent(fn, a, (int)i, c, (int)j);
        if (!found)
            return false;
    }
    return true;
}

/* Do elements follow each other along the axis of a parameter's view? */
static bool is_dense(const TlFn *fn, const TlPlace *p, int axis)
{
    const TlParam *param = &fn->info->params.data[p->base->index];
    const TlDim *d = &param->stride[axis];
    bool last = axis + 1 == param->rank;
    return (d->kind == TILE_DIM_DENSE && last) || (d->kind == TILE_DIM_CONST && d->value == 1);
}

/* A load of A that can be read where it lies: rows that are computed are inside, and where k is
 * outside of A it is outside of B. */
static TlOp *find_direct(const TlFn *fn, const TlCpuProduct *p)
{
    TlOp *a = load_under(tl_in(p->dot, 0)), *b = load_under(tl_in(p->dot, 1));
    if (!a || a->out[0] != tl_in(p->dot, 0) || a->out[0]->type->dtype != p->dtype || !b ||
        !p->store)
        return NULL;
    TlPlace pa = tl_op_place(a), pb = tl_op_place(b), pc = tl_op_place(p->store);
    bool fine = same_slice(fn, &pa, 0, &pc, 0) && same_slice(fn, &pa, 1, &pb, 0) &&
                follows_loop(&pa, 1, p->loop) && scalars_agree(fn, &pa, &pc);
    return fine && is_dense(fn, &pa, slice_of(&pa, 1)) ? a : NULL;
}

/* A load of B whose packed chunks may stay: the address and the starts of the slices in a chunk's
 * first trip tell all of its trips. */
static TlOp *find_kept(const TlCpuProduct *p)
{
    TlWideInt step;
    TlOp *load = load_under(tl_in(p->dot, 1));
    if (!load || !tl_is_constant_memory(tl_in(load, 0)) ||
        !tl_const_int_value(tl_in(p->loop, 2), &step))
        return NULL;
    TlPlace b = tl_op_place(load);
    int along = slice_of(&b, 0);
    if (along < 0 || slice_of(&b, 1) < 0)
        return NULL;
    for (uint32_t i = 0; i < b.naxes; i++) {
        const TlValue *v = b.index[i].value;
        if ((int)i == along ? v != p->loop->regions[0]->args[0] : !tl_is_invariant(v, p->loop))
            return NULL;
    }
    return load;
}

TlCpuProduct *tl_cpu_product(const TlFn *fn, const TlCpuPlan *plan, TlOp *loop, TlArena *arena)
{
    TlOp *dot = only_dot(plan, loop);
    if (!dot || plan->place[dot->out[0]->id].buffer != plan->place[loop->out[0]->id].buffer ||
        plan->place[loop->out[0]->id].buffer < 0)
        return NULL;
    TlDtype d = dot->out[0]->type->dtype;
    if (d != TL_F32 && d != TL_F64 && d != TL_I32)
        return NULL;
    TlCpuProduct *p = TL_NEW(arena, TlCpuProduct);
    int64_t k = tl_in(dot, 1)->type->shape[0], bytes = tl_dtype_bytes(d);
    *p = (TlCpuProduct){.loop = loop, .dot = dot, .dtype = d, .trips = k < DEPTH ? DEPTH / k : 1};
    p->depth = p->trips * k;
    p->store = find_store(fn, loop);
    p->a_load = find_direct(fn, p);
    p->b_load = find_kept(p);
    p->a_bytes = p->a_load ? 0 : (uint64_t)(tl_in(dot, 0)->type->shape[0] * p->depth * bytes);
    p->b_bytes = (uint64_t)(p->depth * tl_cpu_form(dot->out[0]->type).padded[1] * bytes);
    uint64_t slots = p->b_load ? KEPT_BYTES / p->b_bytes : 1;
    p->slots = slots > MAX_SLOTS ? MAX_SLOTS : slots ? (uint32_t)slots : 1;
    return p;
}

/* ---- numbers of the run ---- */

static LLVMValueRef add(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildAdd(g->b, x, y, "");
}

static LLVMValueRef times(TlCpuGen *g, LLVMValueRef x, int64_t n)
{
    return LLVMBuildMul(g->b, x, tl_gen_int(&g->gen, n), "");
}

static LLVMValueRef least(TlCpuGen *g, LLVMValueRef x, LLVMValueRef y)
{
    return tl_gen_pick(&g->gen, LLVMIntSLT, x, y, x, y);
}

/* ---- multiplying ---- */

typedef struct Multiply {
    TlCpuGen *g;
    TlDtype dtype;
    LLVMTypeRef elem;
    int width, nv, mr;
    int64_t panel, depth, acc_row;   /* columns of a panel; rows it has room for; elements */
    LLVMValueRef acc, a, a_row, b;   /* a_row: elements from row to row */
    LLVMValueRef count;              /* of k */
    LLVMValueRef from, to, columns;  /* rows; columns from 0 on */
    LLVMValueRef last;               /* added at the end: -0 changes nothing. NULL: nothing */
} Multiply;

static LLVMValueRef at(Multiply *x, LLVMValueRef base, LLVMValueRef offset)
{
    return LLVMBuildInBoundsGEP2(x->g->b, x->elem, base, &offset, 1, "");
}

static LLVMValueRef vector_at(Multiply *x, LLVMValueRef base, int64_t offset)
{
    LLVMValueRef p = offset ? at(x, base, tl_gen_int(&x->g->gen, offset)) : base;
    LLVMValueRef v = LLVMBuildLoad2(x->g->b, tl_gen_vec(x->elem, x->width), p, "");
    unsigned bytes = (unsigned)(tl_dtype_bytes(x->dtype) * x->width);
    LLVMSetAlignment(v, bytes > 64 ? 64 : bytes);
    return v;
}

/* acc += the product of one k; pointers to A's rows at that k and to B's row. */
static void step(Multiply *x, int mr, const LLVMValueRef *a, LLVMValueRef k, LLVMValueRef b,
                 LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef row[8];
    for (int j = 0; j < x->nv; j++) row[j] = vector_at(x, b, j * x->width);
    for (int i = 0; i < mr; i++) {
        LLVMValueRef s = LLVMBuildLoad2(g->b, x->elem, at(x, a[i], k), "");
        LLVMSetAlignment(s, (unsigned)tl_dtype_bytes(x->dtype));
        s = tl_gen_splat(&g->gen, s, x->width);
        for (int j = 0; j < x->nv; j++)
            acc[i * x->nv + j] =
                tl_gen_multiply_add(&g->gen, x->dtype, s, row[j], acc[i * x->nv + j]);
    }
}

/* The same pointer. What it was computed from stays out of LLVM's sight, which would spend most of
 * its time with ways to share parts of addresses among loops. */
static LLVMValueRef opaque(TlCpuGen *g, LLVMValueRef p)
{
    return tl_gen_intrinsic(&g->gen, "llvm.strip.invariant.group", &g->ptr, 1, &p, 1);
}

/* Rows m .. m + mr - 1, the last row in place of those from x->to on: computed twice, alike. */
static void block(Multiply *x, LLVMValueRef m, LLVMValueRef panel, int mr)
{
    TlCpuGen *g = x->g;
    LLVMValueRef a[MAX_ACCUMULATORS], c[MAX_ACCUMULATORS], acc[MAX_ACCUMULATORS];
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), left = LLVMBuildSub(g->b, x->to, m, "");
    LLVMValueRef b = opaque(g, at(x, x->b, times(g, panel, x->panel * x->depth)));
    LLVMValueRef ap = at(x, x->a, LLVMBuildMul(g->b, m, x->a_row, ""));
    LLVMValueRef cp = opaque(
        g, at(x, x->acc, add(g, times(g, m, x->acc_row), times(g, panel, x->panel))));
    for (int i = 0; i < mr; i++) {
        if (i) {
            LLVMValueRef more =
                LLVMBuildICmp(g->b, LLVMIntSGT, left, tl_gen_int(&g->gen, i), "");
            ap = at(x, ap, LLVMBuildSelect(g->b, more, x->a_row, zero, ""));
            cp = at(x, cp, LLVMBuildSelect(g->b, more, tl_gen_int(&g->gen, x->acc_row), zero, ""));
        }
        a[i] = opaque(g, ap);
        c[i] = cp;
        for (int j = 0; j < x->nv; j++) acc[i * x->nv + j] = vector_at(x, c[i], j * x->width);
    }
    TlCpuRange l;
    tl_cpu_range_begin(g, &l, tl_gen_int(&g->gen, 0), x->count, mr * x->nv, acc);
    for (int i = 0; i < mr * x->nv; i++) acc[i] = l.carry[i];
    step(x, mr, a, l.i, at(x, b, times(g, l.i, x->panel)), acc);
    tl_cpu_range_end(g, &l, 1, acc);
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < x->nv; j++) {
            LLVMValueRef v = l.carry[i * x->nv + j];
            if (x->last)
                v = LLVMBuildFAdd(g->b, v, x->last, "");
            LLVMValueRef p = at(x, c[i], tl_gen_int(&g->gen, j * x->width));
            unsigned bytes = (unsigned)(tl_dtype_bytes(x->dtype) * x->width);
            LLVMSetAlignment(LLVMBuildStore(g->b, v, p), bytes > 64 ? 64 : bytes);
        }
}

/* How many blocks of mr rows: the rest is done by blocks of SMALL rows, so two rows that are left
 * of sixes take two small blocks, with six of them. */
static LLVMValueRef great_blocks(Multiply *x, LLVMValueRef rows, int small)
{
    TlCpuGen *g = x->g;
    LLVMValueRef mr = tl_gen_int(&g->gen, x->mr), n = LLVMBuildSDiv(g->b, rows, mr, "");
    if (x->mr % small == 0)
        return n;
    LLVMValueRef left = LLVMBuildSRem(g->b, rows, mr, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntEQ, left,
                                     tl_gen_int(&g->gen, 2 * small - x->mr), "");
    few = LLVMBuildAnd(
        g->b, few, LLVMBuildICmp(g->b, LLVMIntSGT, n, tl_gen_int(&g->gen, 0), ""), "");
    return LLVMBuildSub(g->b, n, LLVMBuildZExt(g->b, few, g->i64, ""), "");
}

/* All rows times panels from .. to - 1. */
static void multiply_panels(Multiply *x, LLVMValueRef from, LLVMValueRef to)
{
    TlCpuGen *g = x->g;
    int small = x->mr < SMALL ? x->mr : SMALL;
    LLVMValueRef great = great_blocks(x, LLVMBuildSub(g->b, x->to, x->from, ""), small);
    LLVMValueRef turn = add(g, x->from, times(g, great, x->mr));
    TlCpuRange rows, panels;
    tl_cpu_range_begin(g, &rows, x->from, turn, 0, NULL);
    tl_cpu_range_begin(g, &panels, from, to, 0, NULL);
    block(x, rows.i, panels.i, x->mr);
    tl_cpu_range_end(g, &panels, 1, NULL);
    tl_cpu_range_end(g, &rows, x->mr, NULL);
    tl_cpu_range_begin(g, &rows, turn, x->to, 0, NULL);
    tl_cpu_range_begin(g, &panels, from, to, 0, NULL);
    block(x, rows.i, panels.i, small);
    tl_cpu_range_end(g, &panels, 1, NULL);
    tl_cpu_range_end(g, &rows, small, NULL);
}

static void multiply(Multiply *x)
{
    TlCpuGen *g = x->g;
    int64_t bytes = x->panel * x->depth * tl_dtype_bytes(x->dtype);
    int64_t several = bytes < GROUP_BYTES ? GROUP_BYTES / bytes : 1;
    LLVMValueRef panels = LLVMBuildSDiv(g->b, add(g, x->columns, tl_gen_int(&g->gen, x->panel - 1)),
                                        tl_gen_int(&g->gen, x->panel), "");
    if (several * x->panel >= x->acc_row) {
        multiply_panels(x, tl_gen_int(&g->gen, 0), panels);
        return;
    }
    TlCpuRange groups;
    tl_cpu_range_begin(g, &groups, tl_gen_int(&g->gen, 0), panels, 0, NULL);
    multiply_panels(x, groups.i, least(g, panels, add(g, groups.i, tl_gen_int(&g->gen, several))));
    tl_cpu_range_end(g, &groups, several, NULL);
}

/* Accumulators, one row of b and one broadcast must fit the registers, and panels the columns. */
static void choose_block(Multiply *x, int64_t columns, int64_t rows)
{
    int64_t vectors = columns / x->width;
    bool many = x->g->nregs >= 32;
    x->nv = many ? 4 : 2;
    while (vectors % x->nv) x->nv--;
    x->mr = (many ? 24 : 12) / x->nv;
    if (x->mr > 12)
        x->mr = 12;
    if (x->mr > rows)
        x->mr = (int)rows;
    x->panel = (int64_t)x->nv * x->width;
}

/* ---- packing ---- */

/* Lowers what the trip's operands are made of. */
static void lower_trip(TlCpuGen *g, const TlCpuProduct *p, LLVMValueRef lo, LLVMValueRef by,
                       LLVMValueRef trip)
{
    TlBlock *body = p->loop->regions[0];
    LLVMValueRef k = LLVMBuildIntCast2(g->b, trip, LLVMTypeOf(lo), 0, "");
    g->scalar[body->args[0]->id] = LLVMBuildAdd(g->b, lo, LLVMBuildMul(g->b, k, by, ""), "");
    for (TlOp *op = body->first; op != body->last; op = op->next)
        if (op != p->dot)
            tl_cpu_lower_op(g, op);
}

static void put(Multiply *x, TlValue *v, TlCpuAt *pos, LLVMValueRef base, LLVMValueRef offset)
{
    TlCpuGen *g = x->g;
    LLVMValueRef e = tl_cpu_eval(g, v, pos);
    if (v->type->dtype != x->dtype)
        e = tl_gen_cast(&g->gen, v->type->dtype, x->dtype, e, TL_ROUND_NEAREST, false);
    LLVMSetAlignment(LLVMBuildStore(g->b, e, at(x, base, offset)),
                     (unsigned)tl_dtype_bytes(x->dtype));
}

/* Lanes for packing v, so that they divide n. */
static int lanes(Multiply *x, TlValue *v, int64_t n)
{
    int most = 2 * x->g->vector_bytes / tl_dtype_bytes(x->dtype);
    int w = tl_cpu_chain_width(x->g, v, 64);
    return tl_cpu_fit_width(n, w < most ? w : most);
}

static void fetch(TlCpuGen *g, LLVMValueRef p)
{
    LLVMTypeRef t = g->ptr;
    LLVMValueRef read = LLVMConstInt(g->i32, 0, 0), near = LLVMConstInt(g->i32, 3, 0),
                 data = LLVMConstInt(g->i32, 1, 0), args[] = {p, read, near, data};
    tl_gen_intrinsic(&g->gen, "llvm.prefetch", &t, 1, args, 4);
}

/* The cache line some rows below an element of a load. */
static void fetch_below(TlCpuGen *g, const TlCpuAccess *a, LLVMValueRef row, LLVMValueRef column)
{
    int i = slice_of(&a->place, 0), j = slice_of(&a->place, 1);
    if (i < 0 || j < 0)
        return;
    row = add(g, row, tl_gen_int(&g->gen, AHEAD));
    LLVMValueRef offset = add(g, LLVMBuildMul(g->b, row, a->stride[i], ""),
                              LLVMBuildMul(g->b, column, a->stride[j], ""));
    fetch(g, tl_gen_address(&g->gen, a->view->dtype, a->ptr, offset));
}

/* Runs `body` for rows and, lanes along them, columns of a trip's operand: without tests as far as
 * its elements are inside. */
typedef struct Pack {
    Multiply *x;
    TlValue *v;
    LLVMValueRef to, trip; /* memory; the trip's first row or column there */
    TlOp *load;
} Pack;
typedef void PackBody(Pack *p, TlCpuAt *pos);

static void pack_columns(Pack *p, const TlCpuAt *row, LLVMValueRef from, LLVMValueRef to,
                         PackBody *body)
{
    TlCpuGen *g = p->x->g;
    TlCpuAt pos = *row;
    TlCpuRange l;
    tl_map_init(&pos.memo, g->arena);
    tl_cpu_range_begin(g, &l, from, to, 0, NULL);
    pos.idx[1] = l.i;
    body(p, &pos);
    tl_cpu_range_end(g, &l, pos.width, NULL);
}

static void pack_rows(Pack *p, int width, int64_t rows, int64_t columns, PackBody *body)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), last = tl_gen_int(&g->gen, columns);
    TlCpuInside in;
    TlCpuAt pos;
    tl_cpu_inside_begin(g, &in);
    tl_cpu_inside_value(g, &in, p->v, 1, false);
    LLVMValueRef end = tl_cpu_inside_end(g, &in, p->v->type->shape[1], width);
    tl_cpu_at_init(g, &pos, 2, 1, width);
    TlCpuLoop l = tl_cpu_loop_begin(g, 0, rows, 1);
    pos.idx[0] = l.iv;
    if (end) {
        tl_cpu_inside_set(&in, true);
        pack_columns(p, &pos, zero, end, body);
        tl_cpu_inside_set(&in, false);
    }
    pack_columns(p, &pos, end ? end : zero, last, body);
    tl_cpu_loop_end(g, &l, NULL);
}

static void to_panel(Pack *p, TlCpuAt *pos)
{
    Multiply *x = p->x;
    TlCpuGen *g = x->g;
    if (p->load)
        fetch_below(g, tl_map_get_ptr(&g->access, p->load), pos->idx[0], pos->idx[1]);
    LLVMValueRef n = tl_gen_int(&g->gen, x->panel);
    LLVMValueRef panel = LLVMBuildUDiv(g->b, pos->idx[1], n, "");
    LLVMValueRef offset = add(g, times(g, panel, x->panel * x->depth),
                              LLVMBuildURem(g->b, pos->idx[1], n, ""));
    put(x, p->v, pos, p->to, add(g, offset, times(g, add(g, p->trip, pos->idx[0]), x->panel)));
}

static void to_row(Pack *p, TlCpuAt *pos)
{
    TlCpuGen *g = p->x->g;
    LLVMValueRef row = times(g, pos->idx[0], p->x->depth);
    put(p->x, p->v, pos, p->to, add(g, row, add(g, p->trip, pos->idx[1])));
}

/* The trip's rows of B, from row `row` of the panels on. */
static void pack_b(Multiply *x, TlValue *v, LLVMValueRef row)
{
    int w = lanes(x, v, x->panel);
    Pack p = {.x = x, .v = v, .to = x->b, .trip = row, .load = load_under(v)};
    pack_rows(&p, w, v->type->shape[0], w > 1 ? x->acc_row : v->type->shape[1], to_panel);
}

/* The trip's columns of A, from column `column` on. */
static void pack_a(Multiply *x, TlValue *v, LLVMValueRef base, LLVMValueRef column)
{
    int w = tl_cpu_form(v->type).lane == 1 ? lanes(x, v, v->type->shape[1]) : 1;
    Pack p = {.x = x, .v = v, .to = base, .trip = column};
    pack_rows(&p, w, v->type->shape[0], v->type->shape[1], to_row);
}

/* ---- what stays ---- */

typedef struct Tag {
    LLVMValueRef word[TAG_BYTES / 8];
    int n;
} Tag;

static void add_word(TlCpuGen *g, Tag *t, LLVMValueRef w)
{
    if (LLVMGetTypeKind(LLVMTypeOf(w)) == LLVMPointerTypeKind)
        w = LLVMBuildPtrToInt(g->b, w, g->i64, "");
    t->word[t->n++] = LLVMBuildIntCast2(g->b, w, g->i64, 0, "");
}

/* What tells a chunk of B from all others: the launch, the address and the starts of the slices of
 * its first trip, and how many trips it has. */
static Tag tag_of(TlCpuGen *g, const TlCpuAccess *a, LLVMValueRef trips)
{
    Tag t = {.n = 0};
    LLVMValueRef offset = tl_gen_int(&g->gen, offsetof(tile_cpu_ctx, launch));
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, g->i8, g->ctx, &offset, 1, "");
    add_word(g, &t, LLVMBuildLoad2(g->b, g->i64, p, ""));
    add_word(g, &t, a->ptr);
    add_word(g, &t, trips);
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

typedef struct Chunk {
    Multiply x;
    const TlCpuProduct *p;
    LLVMValueRef lo, by;           /* of the loop over k */
    LLVMValueRef first, trips;     /* the chunk's first trip, how many it has */
    const TlCpuAccess *a, *b;      /* of the first trip: direct A, kept B */
} Chunk;

/* Packs one operand of all trips of the chunk. */
static void pack_trips(Chunk *c, bool is_b, LLVMValueRef a)
{
    TlCpuGen *g = c->x.g;
    TlValue *v = tl_in(c->p->dot, is_b ? 1 : 0);
    TlCpuRange l;
    tl_cpu_range_begin(g, &l, tl_gen_int(&g->gen, 0), c->trips, 0, NULL);
    lower_trip(g, c->p, c->lo, c->by, add(g, c->first, l.i));
    LLVMValueRef k = times(g, l.i, tl_in(c->p->dot, 1)->type->shape[0]);
    if (is_b)
        pack_b(&c->x, v, k);
    else
        pack_a(&c->x, v, a, k);
    tl_cpu_range_end(g, &l, 1, NULL);
}

static void provide_b(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    const TlCpuProduct *p = c->p;
    LLVMValueRef buffer = tl_cpu_home_ptr(g, p->b);
    c->x.b = buffer;
    if (!p->b_load) {
        pack_trips(c, true, NULL);
        return;
    }
    LLVMValueRef n = LLVMBuildUDiv(g->b, c->first, tl_gen_int(&g->gen, p->trips), "");
    LLVMValueRef slot = least(g, n, tl_gen_int(&g->gen, (int64_t)p->slots - 1));
    c->x.b = at(&c->x, buffer, times(g, slot, p->depth * c->x.acc_row));
    LLVMValueRef i = add(g, times(g, slot, TAG_BYTES), tl_gen_int(&g->gen, (int64_t)p->tags));
    LLVMValueRef kept = LLVMBuildInBoundsGEP2(g->b, g->i8, g->scratch, &i, 1, "");
    Tag t = tag_of(g, c->b, c->trips);
    LLVMBasicBlockRef pack = tl_gen_block(&g->gen, "pack"), join = tl_gen_block(&g->gen, "packed");
    LLVMBuildCondBr(g->b, differs(g, &t, kept), pack, join);
    LLVMPositionBuilderAtEnd(g->b, pack);
    pack_trips(c, true, NULL);
    for (int w = 0; w < t.n; w++) LLVMBuildStore(g->b, t.word[w], word_at(g, kept, w));
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* A where it lies: its rows at the chunk's first k, of which those inside count. Adding zeros for
 * the others would make +0 of -0. */
static void point_at_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    TlPlace place = c->a->place;
    int row = slice_of(&place, 0), k = slice_of(&place, 1);
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef left = LLVMBuildSub(g->b, c->a->view->extent[k], c->a->start[k], "");
    left = tl_gen_pick(&g->gen, LLVMIntSGT, left, zero, left, zero);
    LLVMValueRef inside = least(g, c->x.count, left);
    c->x.a = c->a->ptr;
    c->x.a_row = c->a->stride[row];
    if (tl_is_float(c->x.dtype) && !g->fn->ring) {
        LLVMValueRef cut = LLVMBuildICmp(g->b, LLVMIntSLT, inside, c->x.count, "");
        LLVMValueRef z = LLVMBuildSelect(g->b, cut, LLVMConstReal(c->x.elem, 0),
                                         LLVMConstReal(c->x.elem, -0.0), "");
        c->x.last = tl_gen_splat(&g->gen, z, c->x.width);
    }
    c->x.count = inside;
}

static void provide_a(Chunk *c)
{
    TlCpuGen *g = c->x.g;
    if (c->a) {
        point_at_a(c);
        return;
    }
    c->x.a = tl_cpu_home_ptr(g, c->p->a);
    c->x.a_row = tl_gen_int(&g->gen, c->p->depth);
    pack_trips(c, false, c->x.a);
}

/* The part of a tile's axis that is inside of what is stored to: from, to. */
static void seen_part(TlCpuGen *g, const TlOp *store, int dim, LLVMValueRef *from,
                      LLVMValueRef *to)
{
    TlPlace p = tl_op_place(store);
    int i = slice_of(&p, dim);
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
}

void tl_cpu_lower_product(TlCpuGen *g, const TlCpuProduct *p, LLVMValueRef lo, LLVMValueRef by,
                          LLVMValueRef n)
{
    const TlType *type = p->dot->out[0]->type;
    TlType sum = {.kind = TL_TILE, .dtype = p->dtype};
    TlCpuForm f = tl_cpu_form(type);
    Chunk c = {.p = p, .lo = lo, .by = by};
    c.x = (Multiply){.g = g, .dtype = p->dtype, .depth = p->depth, .acc_row = f.padded[1]};
    c.x.elem = tl_gen_elem_type(&g->gen, &sum);
    c.x.width = tl_cpu_fit_width(f.padded[1], g->vector_bytes / tl_dtype_bytes(p->dtype));
    c.x.acc = tl_cpu_home_ptr(g, g->plan->place[p->loop->out[0]->id].buffer);
    choose_block(&c.x, f.padded[1], type->shape[0]);
    set_bounds(&c);
    TlCpuRange chunks;
    tl_cpu_range_begin(g, &chunks, tl_gen_int(&g->gen, 0), n, 0, NULL);
    c.first = chunks.i;
    c.trips = least(g, LLVMBuildSub(g->b, n, chunks.i, ""), tl_gen_int(&g->gen, p->trips));
    c.x.count = times(g, c.trips, tl_in(p->dot, 1)->type->shape[0]);
    if (p->a_load || p->b_load) {
        lower_trip(g, p, lo, by, c.first);
        c.a = p->a_load ? tl_map_get_ptr(&g->access, p->a_load) : NULL;
        c.b = p->b_load ? tl_map_get_ptr(&g->access, p->b_load) : NULL;
    }
    provide_b(&c);
    provide_a(&c);
    multiply(&c.x);
    tl_cpu_range_end(g, &chunks, p->trips, NULL);
}
