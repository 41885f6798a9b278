/* Loop nests, positions in them, and the value of a tile at a position.
 *
 * tl_cpu_nest runs a body at every position of a shape; tl_cpu_eval gives a value's lanes there:
 * from its home, or, for virtual values, by evaluating its op's operands at the position that
 * the op maps to. Equal values at one position are computed once (memo). */
#include <string.h>

#include "codegen/cpu/cpu.h"

/* ---- loops ---- */

TlCpuLoop tl_cpu_loop_begin(TlCpuGen *g, int64_t begin, int64_t end, int64_t step)
{
    TL_ASSERT(end > begin && step > 0,
              "a loop from %lld to %lld by %lld",
              (long long)begin, (long long)end, (long long)step);
    TlCpuLoop l = {.step = step, .end = end, .single = begin + step >= end};
    if (l.single) {
        l.iv = tl_gen_int(&g->gen, begin);
        return l;
    }
    l.entry = LLVMGetInsertBlock(g->b);
    l.body = tl_gen_block(&g->gen, "loop");
    LLVMBuildBr(g->b, l.body);
    LLVMPositionBuilderAtEnd(g->b, l.body);
    l.iv = LLVMBuildPhi(g->b, g->i64, "i");
    LLVMValueRef first = tl_gen_int(&g->gen, begin);
    LLVMAddIncoming(l.iv, &first, &l.entry, 1);
    return l;
}

LLVMValueRef tl_cpu_loop_carry(TlCpuGen *g, TlCpuLoop *l, LLVMValueRef init)
{
    TL_ASSERT(l->ncarry < 64, "too many values carried by one loop");
    if (!l->single) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(init), "");
        LLVMAddIncoming(phi, &init, &l->entry, 1);
        init = phi;
    }
    l->carry[l->ncarry++] = init;
    return init;
}

void tl_cpu_loop_end(TlCpuGen *g, TlCpuLoop *l, LLVMValueRef *next)
{
    TL_ASSERT(!l->ncarry || next, "%u values carried to nowhere", l->ncarry);
    if (l->single)
        return;
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    for (uint32_t i = 0; i < l->ncarry; i++)
        LLVMAddIncoming(l->carry[i], &next[i], &latch, 1);
    LLVMValueRef iv = LLVMBuildAdd(g->b, l->iv, tl_gen_int(&g->gen, l->step), "");
    LLVMAddIncoming(l->iv, &iv, &latch, 1);
    LLVMBasicBlockRef exit = tl_gen_block(&g->gen, "done");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntULT, iv, tl_gen_int(&g->gen, l->end), ""),
                    l->body, exit);
    LLVMPositionBuilderAtEnd(g->b, exit);
}

void tl_cpu_range_begin(TlCpuGen *g, TlCpuRange *l, LLVMValueRef from, LLVMValueRef to,
                        uint32_t ncarry, const LLVMValueRef *init)
{
    TL_ASSERT(ncarry <= TL_CPU_CARRY, "too many values carried by one loop");
    LLVMBasicBlockRef entry = LLVMGetInsertBlock(g->b), body = tl_gen_block(&g->gen, "body");
    l->head = tl_gen_block(&g->gen, "for");
    l->exit = tl_gen_block(&g->gen, "end");
    l->ncarry = ncarry;
    LLVMBuildBr(g->b, l->head);
    LLVMPositionBuilderAtEnd(g->b, l->head);
    l->i = LLVMBuildPhi(g->b, g->i64, "i");
    LLVMAddIncoming(l->i, &from, &entry, 1);
    for (uint32_t k = 0; k < ncarry; k++) {
        LLVMValueRef x = init[k];
        l->carry[k] = LLVMBuildPhi(g->b, LLVMTypeOf(x), "");
        LLVMAddIncoming(l->carry[k], &x, &entry, 1);
    }
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, l->i, to, ""), body, l->exit);
    LLVMPositionBuilderAtEnd(g->b, body);
}

void tl_cpu_range_is_short(TlCpuGen *g, const TlCpuRange *l)
{
    enum { RUNS = 1, ENDS = 4 };
    LLVMMetadataRef weights[] = {
        LLVMMDStringInContext2(g->c, "branch_weights", strlen("branch_weights")),
        LLVMValueAsMetadata(LLVMConstInt(g->i32, RUNS, 0)),
        LLVMValueAsMetadata(LLVMConstInt(g->i32, ENDS, 0))};
    tl_llvm_set_metadata(g->l, LLVMGetBasicBlockTerminator(l->head), "prof", weights, 3);
}

void tl_cpu_range_end(TlCpuGen *g, TlCpuRange *l, int64_t step, const LLVMValueRef *next)
{
    tl_cpu_range_end_by(g, l, tl_gen_int(&g->gen, step), next);
}

void tl_cpu_range_end_by(TlCpuGen *g, TlCpuRange *l, LLVMValueRef step, const LLVMValueRef *next)
{
    LLVMValueRef i = LLVMBuildAdd(g->b, l->i, step, "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    LLVMAddIncoming(l->i, &i, &latch, 1);
    for (uint32_t k = 0; k < l->ncarry; k++) {
        LLVMValueRef x = next[k];
        LLVMAddIncoming(l->carry[k], &x, &latch, 1);
    }
    LLVMBuildBr(g->b, l->head);
    LLVMPositionBuilderAtEnd(g->b, l->exit);
}

void tl_cpu_at_init(TlCpuGen *g, TlCpuAt *at, int rank, int lane, int width)
{
    TL_ASSERT(rank <= TL_MAX_RANK && width > 0, "%d lanes at rank %d", width, rank);
    memset(at, 0, sizeof *at);
    at->rank = rank;
    at->lane = lane < 0 ? 0 : lane;
    at->width = width;
    tl_map_init(&at->memo, g->arena);
}

void tl_cpu_loops_begin(TlCpuGen *g, TlCpuLoops *l, const TlNestForm *f, TlCpuAt *at)
{
    l->rank = f->rank;
    for (int d = 0; d < f->rank; d++) {
        if (d == l->skip)
            continue;
        if (l->box && l->box->to[d]) {
            tl_cpu_range_begin(g, &l->range[d], l->box->from[d], l->box->to[d], 0, NULL);
            at->idx[d] = l->range[d].i;
            continue;
        }
        bool lanes = d == f->lane && at->width > 1;
        int64_t n = lanes ? f->padded[d] : f->extent[d];
        int64_t step = d == l->dim ? l->step : lanes ? at->width : 1;
        TL_ASSERT(step <= n, "%lld positions of %lld", (long long)step, (long long)n);
        l->loop[d] = tl_cpu_loop_begin(g, 0, n, step);
        LLVMValueRef i = l->loop[d].iv, last = tl_gen_int(&g->gen, n - step);
        at->idx[d] = n % step ? tl_gen_pick(&g->gen, LLVMIntSLT, i, last, i, last) : i;
    }
}

void tl_cpu_loops_end(TlCpuGen *g, TlCpuLoops *l)
{
    for (int d = l->rank - 1; d >= 0; d--)
        if (d != l->skip && l->box && l->box->to[d])
            tl_cpu_range_end(g, &l->range[d], 1, NULL);
        else if (d != l->skip)
            tl_cpu_loop_end(g, &l->loop[d], NULL);
}

static void nest(TlCpuGen *g, const TlType *type, int width, const TlCpuBox *box, TlCpuBody body,
                 void *user)
{
    TL_ASSERT(type->kind == TL_TILE && width > 0,
              "%d lanes over a type of kind %d", width, (int)type->kind);
    TlNestForm f = tl_nest_form(type);
    TlCpuAt at;
    tl_cpu_at_init(g, &at, f.rank, f.lane, width);
    TlCpuLoops loops = {.skip = -1, .dim = -1, .box = box};
    tl_cpu_loops_begin(g, &loops, &f, &at);
    body(g, &at, user);
    tl_cpu_loops_end(g, &loops);
}

void tl_cpu_nest(TlCpuGen *g, const TlType *type, int width, TlCpuBody body, void *user)
{
    nest(g, type, width, NULL, body, user);
}

static void part_of_lanes(TlCpuGen *g, const TlCpuAt *outer, LLVMValueRef from, LLVMValueRef to,
                          bool tested, TlCpuBody body, void *user)
{
    TlCpuAt at = *outer;
    TlCpuRange l;
    tl_map_init(&at.memo, g->arena);
    if (LLVMIsAConstantInt(from) && LLVMIsAConstantInt(to)) {
        int64_t begin = LLVMConstIntGetSExtValue(from), end = LLVMConstIntGetSExtValue(to);
        if (begin >= end)
            return;
        TlCpuLoop known = tl_cpu_loop_begin(g, begin, end, at.width);
        at.idx[at.lane] = known.iv;
        body(g, &at, user);
        tl_cpu_loop_end(g, &known, NULL);
        return;
    }
    tl_cpu_range_begin(g, &l, from, to, 0, NULL);
    if (tested)
        tl_cpu_range_is_short(g, &l);
    at.idx[at.lane] = l.i;
    body(g, &at, user);
    tl_cpu_range_end(g, &l, at.width, NULL);
}

typedef struct WholeBody {
    TlCpuBody body;
    void *user;
    const TlType *type;
    TlCpuAccess *store;
    uint32_t nvalues;
} WholeBody;

static void with_prefetch(TlCpuGen *g, TlCpuAt *at, void *user)
{
    WholeBody *w = user;
    w->body(g, at, w->user);
    tl_cpu_prefetch(g, w->type, at, w->store, w->nvalues);
}

/* The lanes up to `end`, where everything is inside. */
static void whole_part(TlCpuGen *g, const TlCpuAt *outer, const TlType *type, TlCpuInside *in,
                       LLVMValueRef end, TlCpuBody body, void *user)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0);
    WholeBody w = {body, user, type, in->store, in->nvalues};
    TlCpuAt first = *outer;
    first.idx[first.lane] = zero;
    tl_map_init(&first.memo, g->arena);
    if (in->may_stream)
        tl_cpu_stream_now(g, in->store, outer->width,
                          tl_cpu_access_address(g, in->store, &first));
    if (in->store)
        tl_cpu_prefetch_store(g, type, &first, in->store, in->nvalues);
    part_of_lanes(g, outer, zero, end, false, with_prefetch, &w);
}

int tl_cpu_tested_width(const TlCpuGen *g, int width)
{
    int most = g->m.vector_bytes / (int)sizeof(int32_t);
    TL_ASSERT(most > 0 && width > 0, "%d lanes of at most %d", width, most);
    return width < most ? width : most;
}

/* All lanes are one vector: either all is inside, or it is tested. Its place is known, so that what
 * is in registers stays there. */
static void one_vector(TlCpuGen *g, TlCpuAt *at, const TlType *type, TlCpuInside *in,
                       LLVMValueRef end, TlCpuBody body, void *user)
{
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), n = tl_gen_int(&g->gen, at->width);
    LLVMBasicBlockRef whole = tl_gen_block(&g->gen, "whole"), part = tl_gen_block(&g->gen, "part"),
                      join = tl_gen_block(&g->gen, "join");
    LLVMBuildCondBr(g->b, LLVMBuildICmp(g->b, LLVMIntEQ, end, n, ""), whole, part);
    LLVMPositionBuilderAtEnd(g->b, whole);
    tl_cpu_inside_set(in, true);
    whole_part(g, at, type, in, n, body, user);
    tl_cpu_inside_set(in, false);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, part);
    at->width = tl_cpu_tested_width(g, at->width);
    part_of_lanes(g, at, zero, n, true, body, user);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
}

/* Vectors that are inside, then those that are tested. */
static void whole_and_rest(TlCpuGen *g, TlCpuAt *at, const TlType *type, TlCpuInside *in,
                           LLVMValueRef end, TlCpuBody body, void *user)
{
    TlNestForm f = tl_nest_form(type);
    int width = at->width;
    tl_cpu_inside_set(in, true);
    whole_part(g, at, type, in, end, body, user);
    tl_cpu_inside_set(in, false);
    LLVMValueRef last = tl_gen_int(&g->gen, width > 1 ? f.padded[f.lane] : f.extent[f.lane]);
    if (in->last)
        last = tl_gen_pick(&g->gen, LLVMIntSLT, in->last, last, in->last, last);
    at->width = tl_cpu_tested_width(g, width);
    part_of_lanes(g, at, end, last, true, body, user);
}

void tl_cpu_nest_split(TlCpuGen *g, const TlType *type, int width, TlCpuInside *in,
                       LLVMValueRef end, TlCpuBody body, void *user)
{
    TlNestForm f = tl_nest_form(type);
    if (!end || f.rank == 0) {
        int tested = in->accesses.len ? tl_cpu_tested_width(g, width) : width;
        nest(g, type, tested, &in->box, body, user);
        return;
    }
    TlCpuAt at;
    tl_cpu_at_init(g, &at, f.rank, f.lane, width);
    TlCpuLoops loops = {.skip = f.lane, .dim = -1, .box = &in->box};
    tl_cpu_loops_begin(g, &loops, &f, &at);
    tl_cpu_read_rows(g, in, &at);
    if (width > 1 && width == f.padded[f.lane] && !LLVMIsAConstantInt(end))
        one_vector(g, &at, type, in, end, body, user);
    else
        whole_and_rest(g, &at, type, in, end, body, user);
    tl_cpu_read_rows(g, in, NULL);
    tl_cpu_loops_end(g, &loops);
    tl_cpu_prefetch_note(g, in);
}

LLVMValueRef tl_cpu_lane_mask(TlCpuGen *g, const TlNestForm *f, const TlCpuAt *at)
{
    int d = at->lane;
    if (at->width == 1 || f->extent[d] == f->padded[d]) /* no padding, or a nest without it */
        return NULL;
    LLVMValueRef j = tl_gen_splat(&g->gen, LLVMBuildTrunc(g->b, at->idx[d], g->i32, ""), at->width);
    j = LLVMBuildAdd(g->b, j, tl_gen_iota(&g->gen, g->i32, at->width), "");
    LLVMValueRef n =
        tl_gen_splat(&g->gen, LLVMConstInt(g->i32, (unsigned long long)f->extent[d], 0), at->width);
    return LLVMBuildICmp(g->b, LLVMIntSLT, j, n, "");
}

/* ---- homes ---- */

static LLVMValueRef new_variable(TlCpuGen *g, uint64_t bytes)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b),
                      entry = LLVMGetEntryBasicBlock(g->function);
    LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(entry));
    LLVMValueRef v = LLVMBuildAlloca(g->b, LLVMArrayType2(g->i8, bytes), "");
    LLVMSetAlignment(v, 64);
    LLVMPositionBuilderAtEnd(g->b, here);
    return v;
}

LLVMValueRef tl_cpu_home_ptr(TlCpuGen *g, int32_t buffer)
{
    TL_ASSERT(buffer >= 0, "no home");
    TlNestBuffer *b = &g->plan->buffers.data[buffer];
    if (b->small && !g->variable[buffer])
        g->variable[buffer] = new_variable(g, b->bytes);
    if (b->small)
        return g->variable[buffer];
    LLVMValueRef offset = tl_gen_int(&g->gen, (int64_t)b->offset);
    return LLVMBuildInBoundsGEP2(g->b, g->i8, g->scratch, &offset, 1, "");
}

static LLVMValueRef home_offset(TlCpuGen *g, const TlNestForm *f, const TlCpuAt *at, bool skip_lane)
{
    LLVMValueRef sum = tl_gen_int(&g->gen, 0);
    for (int d = 0; d < f->rank; d++) {
        if ((skip_lane && d == at->lane) || f->extent[d] == 1)
            continue;
        sum = LLVMBuildAdd(
            g->b, sum, LLVMBuildMul(g->b, at->idx[d], tl_gen_int(&g->gen, f->stride[d]), ""), "");
    }
    return sum;
}

static unsigned home_align(const TlType *type, int width)
{
    uint64_t bytes = tl_gen_elem_bytes(type) * (uint64_t)width;
    return bytes > 64 ? 64 : (unsigned)bytes;
}

static LLVMValueRef load_at(TlCpuGen *g, const TlType *type, LLVMValueRef base, LLVMValueRef offset,
                            int width)
{
    LLVMValueRef p =
        LLVMBuildInBoundsGEP2(g->b, tl_gen_mem_type(&g->gen, type), base, &offset, 1, "");
    LLVMValueRef x = LLVMBuildLoad2(g->b, tl_gen_vec(tl_gen_mem_type(&g->gen, type), width), p, "");
    LLVMSetAlignment(x, home_align(type, width));
    return tl_gen_from_mem(&g->gen, type, x);
}

/* The lanes' elements are not adjacent: one load each. Lanes in the padding of the nest read the
 * last element. */
static LLVMValueRef load_strided(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                                 const TlNestForm *f, TlCpuAt *at)
{
    TL_ASSERT(at->width > 1, "%d lanes apart", at->width);
    LLVMValueRef rest = home_offset(g, f, at, true);
    LLVMValueRef x = LLVMGetPoison(tl_gen_vec(tl_gen_elem_type(&g->gen, type), at->width));
    for (int i = 0; i < at->width; i++) {
        LLVMValueRef k = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, i), "");
        LLVMValueRef last = tl_gen_int(&g->gen, f->extent[at->lane] - 1);
        k = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntULT, k, last, ""), k, last, "");
        k = LLVMBuildAdd(g->b, rest,
                         LLVMBuildMul(g->b, k, tl_gen_int(&g->gen, f->stride[at->lane]), ""), "");
        x = LLVMBuildInsertElement(g->b, x, load_at(g, type, base, k, 1),
                                   LLVMConstInt(g->i32, (unsigned)i, 0), "");
    }
    return x;
}

LLVMValueRef tl_cpu_home_load(TlCpuGen *g, const TlType *type, LLVMValueRef base,
                              const TlNestForm *f, TlCpuAt *at)
{
    if (at->width == 1)
        return load_at(g, type, base, home_offset(g, f, at, false), 1);
    if (f->extent[at->lane] == 1) { /* the same element in all lanes */
        TlCpuAt one = *at;
        one.width = 1;
        return tl_gen_splat(&g->gen, load_at(g, type, base, home_offset(g, f, &one, false), 1),
                            at->width);
    }
    if (f->stride[at->lane] == 1)
        return load_at(g, type, base, home_offset(g, f, at, false), at->width);
    return load_strided(g, type, base, f, at);
}

void tl_cpu_home_store(TlCpuGen *g, const TlType *type, LLVMValueRef base, const TlNestForm *f,
                       TlCpuAt *at, LLVMValueRef x)
{
    LLVMValueRef offset = home_offset(g, f, at, false);
    LLVMValueRef p =
        LLVMBuildInBoundsGEP2(g->b, tl_gen_mem_type(&g->gen, type), base, &offset, 1, "");
    LLVMSetAlignment(LLVMBuildStore(g->b, tl_gen_to_mem(&g->gen, type, x), p),
                     home_align(type, at->width));
}

/* ---- evaluation ---- */

static LLVMValueRef eval_iota(TlCpuGen *g, const TlType *type, TlCpuAt *at)
{
    LLVMTypeRef t = tl_gen_elem_type(&g->gen, type);
    LLVMValueRef first = LLVMBuildIntCast2(g->b, at->idx[0], t, 0, "");
    if (at->width == 1)
        return first;
    return LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, first, at->width),
                        tl_gen_iota(&g->gen, t, at->width), "");
}

static LLVMValueRef eval_broadcast(TlCpuGen *g, TlValue *x, TlCpuAt *at)
{
    TL_ASSERT(x->type->rank <= at->rank, "rank %d becomes %d", (int)x->type->rank, at->rank);
    TlCpuAt sub;
    bool lanes = x->type->shape[at->lane] != 1;
    tl_cpu_at_init(g, &sub, at->rank, at->lane, lanes ? at->width : 1);
    for (int d = 0; d < at->rank; d++)
        sub.idx[d] = x->type->shape[d] == 1 ? tl_gen_int(&g->gen, 0) : at->idx[d];
    LLVMValueRef r = tl_cpu_eval(g, x, &sub);
    return lanes ? r : tl_gen_splat(&g->gen, r, at->width);
}

static LLVMValueRef eval_expand(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(op->opcode == TL_OP_EXPAND, "%s adds no axis", tl_op_info(op->opcode)->text);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TlValue *x = tl_in(op, 0);
    TlCpuAt sub;
    tl_cpu_at_init(g, &sub, at->rank - 1, at->lane > axis ? at->lane - 1 : at->lane,
                   at->lane == axis ? 1 : at->width);
    for (int d = 0, k = 0; d < at->rank; d++)
        if (d != axis)
            sub.idx[k++] = at->idx[d];
    if (sub.lane >= sub.rank)
        sub.lane = sub.rank ? sub.rank - 1 : 0;
    return tl_gen_splat(&g->gen, tl_cpu_eval(g, x, &sub), sub.width == at->width ? 1 : at->width);
}

static LLVMValueRef eval_trans(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(op->opcode == TL_OP_TRANS && tl_attr(op, TL_ATTR_PERM),
              "%s turns nothing", tl_op_info(op->opcode)->text);
    const int64_t *perm = tl_attr(op, TL_ATTR_PERM)->u.ints;
    TlCpuAt sub;
    tl_cpu_at_init(g, &sub, at->rank, (int)perm[at->lane], at->width);
    for (int d = 0; d < at->rank; d++)
        sub.idx[perm[d]] = at->idx[d];
    return tl_cpu_eval(g, tl_in(op, 0), &sub);
}

/* Axes of extent 1 are added or dropped; the others keep their order. */
static LLVMValueRef eval_renaming(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(tl_nest_is_renaming(op), "%s moves elements", tl_op_info(op->opcode)->text);
    TlValue *x = tl_in(op, 0);
    const TlType *from = x->type, *to = op->out[0]->type;
    TlCpuAt sub;
    tl_cpu_at_init(g, &sub, from->rank, 0, at->width);
    if (from->rank == 0)
        return tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, x), at->width);
    bool lanes = false;
    for (int i = 0, j = 0; i < from->rank; i++) {
        sub.idx[i] = tl_gen_int(&g->gen, 0);
        if (from->shape[i] == 1)
            continue;
        while (to->shape[j] == 1)
            j++;
        if (j == at->lane)
            sub.lane = i, lanes = true;
        sub.idx[i] = at->idx[j++];
    }
    if (lanes)
        return tl_cpu_eval(g, x, &sub);
    sub.width = 1;
    return tl_gen_splat(&g->gen, tl_cpu_eval(g, x, &sub), at->width);
}

LLVMValueRef tl_cpu_lane_index(TlCpuGen *g, const TlCpuAt *at, int lane, int32_t n)
{
    LLVMValueRef i = LLVMBuildAdd(g->b, at->idx[at->lane], tl_gen_int(&g->gen, lane), "");
    LLVMValueRef last = tl_gen_int(&g->gen, n - 1);
    return tl_gen_pick(&g->gen, LLVMIntULT, i, last, i, last);
}

/* Lane `lane` of a gather: element k along the axis, the position's indices along the others. */
static LLVMValueRef gather_lane(TlCpuGen *g, TlValue *x, int axis, LLVMValueRef k,
                                const TlCpuAt *at, int lane)
{
    TL_ASSERT(lane < at->width, "lane %d of %d", lane, at->width);
    TlCpuAt sub;
    tl_cpu_at_init(g, &sub, at->rank, at->lane, 1);
    for (int d = 0; d < at->rank; d++)
        sub.idx[d] = at->idx[d];
    if (at->width > 1 && at->lane != axis)
        sub.idx[at->lane] = tl_cpu_lane_index(g, at, lane, x->type->shape[at->lane]);
    sub.idx[axis] = k;
    return tl_cpu_eval(g, x, &sub);
}

/* Is element i of v, along dimension d, i? */
static bool is_place(const TlValue *v, int d)
{
    const TlOp *op = v->def;
    if (!op)
        return false;
    if (op->opcode == TL_OP_IOTA)
        return true;
    const TlValue *x = op->nin ? tl_in(op, 0) : NULL;
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    switch (op->opcode) {
    case TL_OP_EXPAND: return d != axis && is_place(x, d > axis ? d - 1 : d);
    case TL_OP_RESHAPE: /* axes of extent 1 are added */
        return x->type->rank == 1 && x->type->shape[0] == v->type->shape[d] && is_place(x, 0);
    case TL_OP_BROADCAST: return x->type->rank && x->type->shape[d] != 1 && is_place(x, d);
    default: return false;
    }
}

/* The scalar m where element i of the index along d is i ^ m, as in networks that sort; or NULL. */
static TlValue *partner_mask(const TlValue *index, int d)
{
    const TlOp *op = index->def;
    for (uint32_t i = 0; i < 2 && op && op->opcode == TL_OP_XOR; i++) {
        const TlOp *other = tl_in(op, 1 - i)->def;
        if (is_place(tl_in(op, i), d) && other && other->opcode == TL_OP_BROADCAST &&
            tl_in(other, 0)->type->rank == 0)
            return tl_in(other, 0);
    }
    return NULL;
}

/* How many elements of x along d are there, those of whole vectors in the padding included? */
static int64_t readable(const TlValue *x, int d)
{
    TlNestForm f = tl_nest_form(x->type);
    return f.lane == d ? f.padded[d] : f.extent[d];
}

/* Elements i ^ m of x for the lanes i: of one whole vector, whose lanes change places in pairs, in
 * fours, and so on, as the low bits of m say. What is outside of x is any element. */
static LLVMValueRef partners(TlCpuGen *g, TlValue *x, TlValue *mask, const TlCpuAt *at)
{
    int w = at->width, d = at->lane;
    TL_ASSERT(readable(x, d) % w == 0, "%lld elements by %d", (long long)readable(x, d), w);
    LLVMValueRef m = tl_gen_to_i64(&g->gen, mask, tl_gen_scalar(&g->gen, mask)), order[64];
    LLVMValueRef high = LLVMBuildAnd(g->b, m, tl_gen_int(&g->gen, -w), ""),
                 first = LLVMBuildXor(g->b, at->idx[d], high, ""), zero = tl_gen_int(&g->gen, 0);
    TlCpuAt sub;
    tl_cpu_at_init(g, &sub, at->rank, d, w);
    for (int i = 0; i < at->rank; i++) sub.idx[i] = at->idx[i];
    sub.idx[d] =
        tl_gen_pick(&g->gen, LLVMIntULT, first, tl_gen_int(&g->gen, readable(x, d)), first, zero);
    LLVMValueRef r = tl_cpu_eval(g, x, &sub);
    for (int bit = 1; bit < w; bit *= 2) {
        for (int i = 0; i < w; i++) order[i] = LLVMConstInt(g->i32, (unsigned)(i ^ bit), 0);
        LLVMValueRef turned = LLVMBuildShuffleVector(g->b, r, LLVMGetPoison(LLVMTypeOf(r)),
                                                     LLVMConstVector(order, (unsigned)w), "");
        LLVMValueRef is_set = LLVMBuildAnd(g->b, m, tl_gen_int(&g->gen, bit), "");
        is_set = LLVMBuildICmp(g->b, LLVMIntNE, is_set, zero, "");
        r = LLVMBuildSelect(g->b, is_set, turned, r, "");
    }
    return r;
}

static LLVMValueRef eval_gather(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(op->opcode == TL_OP_GATHER && op->nin == 2,
              "%s is no gather", tl_op_info(op->opcode)->text);
    TlValue *x = tl_in(op, 0), *index = tl_in(op, 1);
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0), w = at->width;
    LLVMTypeRef i64s = tl_gen_vec(g->i64, w);
    LLVMValueRef k = LLVMBuildIntCast2(g->b, tl_cpu_eval(g, index, at), i64s,
                                       tl_is_signed(index->type->dtype), "");
    LLVMValueRef extent = tl_gen_splat(&g->gen, tl_gen_int(&g->gen, x->type->shape[axis]), w);
    LLVMValueRef inside = LLVMBuildICmp(g->b, LLVMIntULT, k, extent, "");
    LLVMValueRef zero = LLVMConstNull(tl_gen_vec(tl_gen_elem_type(&g->gen, x->type), w));
    k = LLVMBuildSelect(g->b, inside, k, LLVMConstNull(i64s), "");
    if (w == 1)
        return LLVMBuildSelect(g->b, inside, gather_lane(g, x, axis, k, at, 0), zero, "");
    bool along = at->lane == axis && readable(x, axis) % w == 0;
    TlValue *mask = along ? partner_mask(index, axis) : NULL;
    if (mask)
        return LLVMBuildSelect(g->b, inside, partners(g, x, mask, at), zero, "");
    LLVMValueRef r = zero;
    for (int i = 0; i < w; i++) {
        LLVMValueRef n = LLVMConstInt(g->i32, (unsigned)i, 0);
        LLVMValueRef e = gather_lane(g, x, axis, LLVMBuildExtractElement(g->b, k, n, ""), at, i);
        r = LLVMBuildInsertElement(g->b, r, e, n, "");
    }
    return LLVMBuildSelect(g->b, inside, r, zero, "");
}

static LLVMValueRef eval_ptr_add(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    TL_ASSERT(tl_in(op, 0)->type->ptr, "%s of no pointer", tl_op_info(op->opcode)->text);
    const TlType *type = tl_in(op, 0)->type;
    LLVMValueRef p = tl_cpu_eval(g, tl_in(op, 0), at), k = tl_cpu_eval(g, tl_in(op, 1), at);
    k = LLVMBuildIntCast2(g->b, k, tl_gen_vec(g->i64, at->width),
                          tl_is_signed(tl_in(op, 1)->type->dtype), "");
    TlType elem = {.kind = TL_TILE, .dtype = type->dtype};
    return LLVMBuildGEP2(g->b, tl_gen_mem_type(&g->gen, &elem), p, &k, 1, "");
}

LLVMValueRef tl_cpu_eval_op(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    TlOp *op = v->def;
    TL_ASSERT(op, "value %u has no op", v->id);
    switch (op->opcode) {
    case TL_OP_CONST:
        return tl_gen_const(&g->gen, v->type, tl_attr(op, TL_ATTR_VALUE)->u.bits, at->width);
    case TL_OP_IOTA: return eval_iota(g, v->type, at);
    case TL_OP_BROADCAST:
        if (tl_in(op, 0)->type->rank == 0)
            return tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, tl_in(op, 0)), at->width);
        return eval_broadcast(g, tl_in(op, 0), at);
    case TL_OP_EXPAND: return eval_expand(g, op, at);
    case TL_OP_TRANS: return eval_trans(g, op, at);
    case TL_OP_RESHAPE:
    case TL_OP_REGROUP:
        return tl_nest_is_renaming(op) ? eval_renaming(g, op, at) : tl_cpu_eval_reshape(g, op, at);
    case TL_OP_GATHER: return eval_gather(g, op, at);
    case TL_OP_LOAD: return tl_cpu_eval_load(g, op, at);
    case TL_OP_INSIDE: return tl_cpu_eval_inside(g, op, at);
    case TL_OP_PTR_ADD: return eval_ptr_add(g, op, at);
    case TL_OP_CONVERT: return tl_cpu_eval(g, tl_in(op, 0), at); /* the CPU has no layouts */
    default: break;
    }
    TL_ASSERT(tl_op_info(op->opcode)->flags & F_ELEM, "cannot evaluate %s at a position",
              tl_op_info(op->opcode)->text);
    LLVMValueRef in[3];
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = tl_in(op, i)->type->rank == 0 && op->opcode == TL_OP_SELECT && i == 0
                    ? tl_gen_scalar(&g->gen, tl_in(op, i))
                    : tl_cpu_eval(g, tl_in(op, i), at);
    return tl_gen_elementwise(&g->gen, op, in);
}

LLVMValueRef tl_cpu_eval(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    TL_ASSERT(v->type->kind == TL_TILE && at->width > 0, "value %u is no tile", v->id);
    if (v->type->rank == 0)
        return tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, v), at->width);
    uint64_t seen;
    if (tl_map_get(&at->memo, v->id, &seen))
        return (LLVMValueRef)(uintptr_t)seen;
    TlNestPlace place = g->plan->place[v->id];
    LLVMValueRef r;
    if (place.kind == TL_NEST_HOME) {
        TlNestForm f = tl_nest_form(v->type);
        r = tl_cpu_home_load(g, v->type, tl_cpu_home_ptr(g, place.buffer), &f, at);
    } else {
        r = tl_cpu_eval_op(g, v, at);
    }
    tl_map_put(&at->memo, v->id, (uint64_t)(uintptr_t)r);
    return r;
}

/* ---- widths ---- */

enum { GATHERED = 16 }; /* most lanes of a gather: each is a load of its own */

static int width_of_op(TlCpuGen *g, TlOp *op, int limit)
{
    TL_ASSERT(limit > 0, "%d lanes at most", limit);
    if (op->opcode == TL_OP_LOAD || op->opcode == TL_OP_INSIDE)
        return tl_cpu_access_width(g, op, limit);
    if (tl_gen_op_is_scalar_only(&g->gen, op))
        return 1;
    if (op->opcode == TL_OP_GATHER)
        return limit < GATHERED ? limit : GATHERED;
    bool regroups = op->opcode == TL_OP_RESHAPE || op->opcode == TL_OP_REGROUP;
    if (regroups && !g->options->check && tl_nest_joins(op))
        return tl_nest_join_width(op, limit);
    if (regroups && !tl_nest_is_renaming(op)) {
        const TlType *a = tl_in(op, 0)->type, *b = op->out[0]->type;
        int w = tl_nest_fit_width(a->shape[tl_nest_form(a).lane], limit);
        return tl_nest_fit_width(b->shape[tl_nest_form(b).lane], w);
    }
    return limit;
}

static int chain_width(TlCpuGen *g, TlValue *v, int limit, bool own, TlMap *seen)
{
    TL_ASSERT(limit > 0 && v->id < g->fn->nvalues, "value %u, %d lanes", v->id, limit);
    if (v->type->kind != TL_TILE || v->type->rank == 0)
        return limit;
    uint64_t bytes = tl_gen_elem_bytes(v->type);
    int w = (int)(2 * (uint64_t)g->m.vector_bytes / bytes);
    if (w < limit)
        limit = w;
    if (!own && g->plan->place[v->id].kind == TL_NEST_HOME)
        return limit;
    if (!v->def || tl_map_get(seen, v->id, NULL))
        return limit;
    tl_map_put(seen, v->id, 1);
    limit = width_of_op(g, v->def, limit);
    if (v->def->opcode == TL_OP_BROADCAST && !tl_nest_keeps_lanes(v->def))
        return limit; /* the operand is evaluated one element at a time */
    for (uint32_t i = 0; i < v->def->nin && limit > 1; i++)
        limit = chain_width(g, tl_in(v->def, i), limit, false, seen);
    return limit;
}

static int start_width(TlCpuGen *g, TlValue *v, int limit, bool own)
{
    TlMap seen;
    tl_map_init(&seen, g->arena);
    int w = chain_width(g, v, limit, own, &seen);
    return w < 1 ? 1 : w;
}

int tl_cpu_chain_width(TlCpuGen *g, TlValue *v, int limit)
{
    return start_width(g, v, limit, false);
}

int tl_cpu_define_width(TlCpuGen *g, TlValue *v, int limit)
{
    return start_width(g, v, limit, true);
}

/* ---- filling homes ---- */

typedef struct Fill {
    TlValue *v;
    const TlType *type; /* of the home: v's, or with another element type */
    LLVMValueRef base;
    TlNestForm form;
    bool own; /* computed by v's op, although v has a home: this one */
} Fill;

static LLVMValueRef convert(TlCpuGen *g, const Fill *f, LLVMValueRef x)
{
    if (f->type->dtype == f->v->type->dtype)
        return x;
    return tl_gen_cast(&g->gen, f->v->type->dtype, f->type->dtype, x, TL_ROUND_NEAREST, false);
}

static void fill_body(TlCpuGen *g, TlCpuAt *at, void *user)
{
    Fill *f = user;
    LLVMValueRef x = f->own ? tl_cpu_eval_op(g, f->v, at) : tl_cpu_eval(g, f->v, at);
    tl_cpu_home_store(g, f->type, f->base, &f->form, at, convert(g, f, x));
}

/* Hides a row, after the first round, from what looks through shuffles: LLVM would spend a third of
 * code generation on ways to do several rounds at once, of which there are none. */
static LLVMValueRef fence(TlCpuGen *g, LLVMValueRef row, int w, bool first)
{
    LLVMTypeRef type = LLVMTypeOf(row), floats = tl_gen_vec(g->f32, w);
    bool is_word = type == floats || type == tl_gen_vec(g->i32, w);
    if (first || !is_word || w * (int)sizeof(float) != g->m.vector_bytes)
        return row;
    LLVMValueRef x = LLVMBuildBitCast(g->b, row, floats, "");
    x = tl_gen_intrinsic(&g->gen, "llvm.arithmetic.fence", &floats, 1, &x, 1);
    return LLVMBuildBitCast(g->b, x, type, "");
}

/* In round s = w/2, ..., 1, rows i and i + s exchange blocks of s lanes: the right blocks of row i
 * for the left blocks of row i + s. */
void tl_cpu_turn(TlCpuGen *g, LLVMValueRef *rows, int w)
{
    TL_ASSERT(w > 1 && w <= TL_CPU_TURN && (w & (w - 1)) == 0, "a block of %d rows", w);
    LLVMValueRef lo[TL_CPU_TURN], hi[TL_CPU_TURN];
    for (int s = w / 2; s >= 1; s /= 2) {
        for (int j = 0; j < w; j++) {
            lo[j] = LLVMConstInt(g->i32, (unsigned)(j & s ? w + j - s : j), 0);
            hi[j] = LLVMConstInt(g->i32, (unsigned)(j & s ? w + j : j + s), 0);
        }
        LLVMValueRef mlo = LLVMConstVector(lo, (unsigned)w);
        LLVMValueRef mhi = LLVMConstVector(hi, (unsigned)w);
        for (int i = 0; i < w; i++) {
            if (i & s)
                continue;
            bool first = s == w / 2;
            LLVMValueRef a = fence(g, rows[i], w, first), b = fence(g, rows[i + s], w, first);
            rows[i] = LLVMBuildShuffleVector(g->b, a, b, mlo, "");
            rows[i + s] = LLVMBuildShuffleVector(g->b, a, b, mhi, "");
        }
    }
}

int tl_cpu_turn_width(const TlCpuGen *g, TlDtype dtype)
{
    int w = g->m.vector_bytes / tl_dtype_bytes(dtype);
    return w < 4 ? 4 : w < TL_CPU_TURN ? w : TL_CPU_TURN;
}

/* Fills a home with the transposition of another home, block by block in registers, if that moves
 * the lane dimension. False: it does not, or blocks do not fit the extents. */
static bool fill_transposed(TlCpuGen *g, Fill *f)
{
    TlOp *op = f->v->def;
    if (!op || op->opcode != TL_OP_TRANS ||
        (g->plan->place[f->v->id].kind == TL_NEST_HOME && !f->own))
        return false;
    TlValue *x = tl_in(op, 0);
    if (g->plan->place[x->id].kind != TL_NEST_HOME || x->type->ptr)
        return false;
    const int64_t *perm = tl_attr(op, TL_ATTR_PERM)->u.ints;
    TlNestForm from = tl_nest_form(x->type);
    int lane = f->form.lane, other = -1; /* dimensions of the result that are swapped */
    for (int d = 0; d < from.rank; d++)
        if (perm[d] == from.lane)
            other = d;
    if (other < 0 || other == lane)
        return false;
    int w = tl_nest_fit_width(from.extent[from.lane], tl_cpu_turn_width(g, f->type->dtype));
    w = tl_nest_fit_width(f->form.extent[lane], w);
    if (w < 4)
        return false;
    TlCpuAt to, src;
    tl_cpu_at_init(g, &to, from.rank, lane, w);
    tl_cpu_at_init(g, &src, from.rank, from.lane, w);
    TlCpuLoop loops[TL_MAX_RANK];
    for (int d = 0; d < from.rank; d++) {
        loops[d] = tl_cpu_loop_begin(g, 0, f->form.extent[d], d == lane || d == other ? w : 1);
        to.idx[d] = src.idx[perm[d]] = loops[d].iv;
    }
    LLVMValueRef rows[TL_CPU_TURN], at_lane = to.idx[lane], at_other = to.idx[other],
                           base = tl_cpu_home_ptr(g, g->plan->place[x->id].buffer);
    for (int i = 0; i < w; i++) {
        src.idx[perm[lane]] = LLVMBuildAdd(g->b, at_lane, tl_gen_int(&g->gen, i), "");
        rows[i] = convert(g, f, tl_cpu_home_load(g, x->type, base, &from, &src));
    }
    tl_cpu_turn(g, rows, w);
    for (int i = 0; i < w; i++) {
        to.idx[other] = LLVMBuildAdd(g->b, at_other, tl_gen_int(&g->gen, i), "");
        tl_cpu_home_store(g, f->type, f->base, &f->form, &to, rows[i]);
    }
    for (int d = from.rank - 1; d >= 0; d--)
        tl_cpu_loop_end(g, &loops[d], NULL);
    return true;
}

/* The type as one row when v's op makes all elements the same: one loop fills it. */
static TlType row_of_equals(const TlValue *v, const TlType *type)
{
    TL_ASSERT(type->kind == TL_TILE, "value %u is no tile", v->id);
    const TlOp *op = v->def;
    bool equal = op && (op->opcode == TL_OP_CONST ||
                        (op->opcode == TL_OP_BROADCAST && tl_in(op, 0)->type->rank == 0));
    TlType row = *type;
    row.rank = 1;
    row.shape[0] = (int32_t)tl_nest_form(type).elems;
    return equal && tl_nest_form(&row).elems == row.shape[0] ? row : *type;
}

static void fill(TlCpuGen *g, TlValue *v, const TlType *type, int32_t buffer, bool own)
{
    TL_ASSERT(buffer >= 0 && (uint32_t)buffer < g->plan->buffers.len,
              "value %u has no home", v->id);
    bool by_op = own || g->plan->place[v->id].kind != TL_NEST_HOME;
    TlType shape = by_op ? row_of_equals(v, type) : *type;
    type = &shape;
    Fill f = {.v = v,
              .type = type,
              .base = tl_cpu_home_ptr(g, buffer),
              .form = tl_nest_form(type),
              .own = own};
    if (fill_transposed(g, &f))
        return;
    int width = start_width(g, v, 64, own);
    int limit = (int)(2 * (uint64_t)g->m.vector_bytes / tl_gen_elem_bytes(type));
    width = tl_nest_fit_width(f.form.padded[f.form.lane], width < limit ? width : limit);
    TlCpuInside in;
    tl_cpu_inside_begin(g, &in);
    tl_cpu_inside_value(g, &in, v, f.form.lane, own);
    LLVMValueRef end = tl_cpu_inside_end(g, &in, f.form.extent[f.form.lane], width);
    tl_cpu_nest_split(g, type, width, &in, end, fill_body, &f);
}

void tl_cpu_define(TlCpuGen *g, TlValue *v)
{
    fill(g, v, v->type, g->plan->place[v->id].buffer, true);
}

void tl_cpu_materialise(TlCpuGen *g, TlValue *v, int32_t buffer)
{
    TlNestPlace place = g->plan->place[v->id];
    if (place.kind == TL_NEST_HOME && place.buffer == buffer)
        return;
    fill(g, v, v->type, buffer, false);
}

void tl_cpu_materialise_as(TlCpuGen *g, TlValue *v, TlDtype dtype, int32_t buffer)
{
    TlType type = *v->type;
    type.dtype = dtype;
    fill(g, v, &type, buffer, false);
}
