/* Fills homes: computed, copied or transposed values, or one element picked along an axis. */
#include "codegen/cpu/cpu.h"

static LLVMValueRef convert(TlCpuGen *g, TlDtype from, TlDtype to, LLVMValueRef x)
{
    return from == to ? x : tl_gen_cast(&g->gen, from, to, x, TL_ROUND_NEAREST, false);
}

typedef struct Fill {
    const TlNest *n;
    LLVMValueRef to, from; /* homes; NULL: there is none */
} Fill;

static void store(TlCpuGen *g, const Fill *f, TlCpuAt *at, TlDtype dtype, LLVMValueRef x)
{
    const TlNest *n = f->n;
    tl_cpu_home_store(g, &n->type, f->to, &n->form, at, convert(g, dtype, n->type.dtype, x));
}

static void fill_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Fill *f = user;
    TlValue *v = f->n->value;
    TlCpuFetch fetch = {.nest = f->n, .conditional = g->conditional};
    at->fetch = f->n->fetch.len && at->whole ? &fetch : NULL;
    bool chosen = f->n->chosen_row, own = f->n->own && !chosen; /* the condition holds there */
    TlValue *x = chosen ? tl_in(v->def, 1) : v;
    store(g, f, at, v->type->dtype, (own ? tl_cpu_eval_own : tl_cpu_eval)(g, x, at));
    if (at->fetch)
        tl_cpu_fetch_now(g, at->fetch);
    at->fetch = NULL;
}

static void copy_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Fill *f = user;
    TlType from = f->n->type;
    from.dtype = f->n->from_dtype;
    store(g, f, at, from.dtype, tl_cpu_home_load(g, &from, f->from, &f->n->form, at));
}

/* The transposition of another home, block by block in registers: it moves the lane dimension. */
static void transpose(TlCpuGen *g, const Fill *f)
{
    const TlNest *n = f->n;
    const TlOp *op = n->value->def;
    TL_ASSERT(op && op->opcode == TL_OP_TRANS, "value %u is no transposition", n->value->id);
    const TlType *type = tl_in(op, 0)->type;
    const int64_t *perm = tl_attr(op, TL_ATTR_PERM)->u.ints;
    TlNestForm from = tl_nest_form(type);
    int lane = n->form.lane, other = n->transposed_dim, w = n->transposed;
    TlCpuAt to, src;
    tl_cpu_at_init(g, &to, from.rank, lane, w);
    tl_cpu_at_init(g, &src, from.rank, from.lane, w);
    TlCpuLoop loops[TL_MAX_RANK];
    for (int d = 0; d < from.rank; d++) {
        int64_t step = d == lane || d == other ? w : 1;
        tl_cpu_loop_known(g, &loops[d], 0, n->form.extent[d], step, 0, NULL);
        to.idx[d] = src.idx[perm[d]] = loops[d].i;
    }
    LLVMValueRef rows[TL_NEST_TRANSPOSED], at_lane = to.idx[lane], at_other = to.idx[other];
    for (int i = 0; i < w; i++) {
        src.idx[perm[lane]] = LLVMBuildAdd(g->b, at_lane, tl_gen_int(&g->gen, i), "");
        rows[i] = convert(g, type->dtype, n->type.dtype,
                          tl_cpu_home_load(g, type, f->from, &from, &src));
    }
    tl_cpu_transpose(g, rows, w);
    for (int i = 0; i < w; i++) {
        to.idx[other] = LLVMBuildAdd(g->b, at_other, tl_gen_int(&g->gen, i), "");
        store(g, f, &to, n->type.dtype, rows[i]);
    }
    for (int d = from.rank - 1; d >= 0; d--)
        tl_cpu_loop_end(g, &loops[d], NULL);
}

/* Words in another order, all of a vector together. */
static void turn_words(TlCpuGen *g, const Fill *f)
{
    const TlNest *n = f->n;
    LLVMValueRef v[TL_NEST_TURNED];
    TlCpuAt at;
    tl_cpu_at_init(g, &at, n->form.rank, n->form.lane, n->width);
    TlCpuLoops loops = {.skip = -1, .dim = n->words_dim, .step = n->words};
    tl_cpu_loops_begin(g, &loops, &n->form, &at);
    tl_cpu_all_words(g, n->value->def, &at, v);
    LLVMValueRef first = at.idx[n->words_dim];
    for (int i = 0; i < n->words; i++) {
        at.idx[n->words_dim] = LLVMBuildAdd(g->b, first, tl_gen_int(&g->gen, i), "");
        store(g, f, &at, n->value->type->dtype, v[i]);
    }
    tl_cpu_loops_end(g, &loops);
}

/* The element at n->picked along n->axis. */
static void pick_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    const Fill *f = user;
    const TlNest *n = f->n;
    TlValue *out = n->op->out[0];
    LLVMValueRef x = tl_cpu_eval_pick(g, n->op, at);
    if (out->type->rank)
        store(g, f, at, n->type.dtype, x);
    else
        g->scalar[out->id] = x;
}

void tl_cpu_fill(TlCpuGen *g, const TlNest *n)
{
    if (n->columns && g->whole)
        return; /* a store computes it */
    tl_cpu_keep(g, n);
    Fill f = {n, n->home >= 0 ? tl_cpu_home_ptr(g, n->home) : NULL,
              n->from >= 0 ? tl_cpu_home_ptr(g, n->from) : NULL};
    switch (n->kind) {
    case TL_NEST_TRANSPOSE: transpose(g, &f); return;
    case TL_NEST_FILL:
        if (tl_nest_takes_words(n))
            turn_words(g, &f);
        else
            tl_cpu_nest(g, n, fill_body, &f);
        return;
    case TL_NEST_COPY: tl_cpu_nest(g, n, copy_body, &f); return;
    case TL_NEST_PICK: tl_cpu_nest(g, n, pick_body, &f); return;
    case TL_NEST_STORE:
    case TL_NEST_REDUCE:
    case TL_NEST_SCAN:
    case TL_NEST_COUNT:
    case TL_NEST_ADD:
    case TL_NEST_ATOMIC:
    case TL_NEST_EACH:
    case TL_NEST_DOT:
    case TL_NEST_PRODUCT:
    case TL_NEST_PACK:
    case TL_NEST_KINDS: break;
    }
    TL_UNREACHABLE("a nest of kind %d fills no home", (int)n->kind);
}
