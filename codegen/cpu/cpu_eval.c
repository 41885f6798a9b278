/* The value of a tile at a position: from its home, or, for virtual values, by evaluating its op's
 * operands at the position that the op maps to. Equal values at one position are computed once
 * (memo). */
#include <string.h>

#include "codegen/cpu/cpu_access.h"
#include "passes/analysis/facts.h"
#include "passes/analysis/picked.h"

/* ---- positions ---- */

void tl_cpu_at_init(TlCpuGen *g, TlCpuAt *at, int rank, int lane, int width)
{
    TL_ASSERT(rank <= TL_MAX_RANK && width > 0, "%d lanes at rank %d", width, rank);
    memset(at, 0, sizeof *at);
    at->rank = rank;
    at->lane = lane < 0 ? 0 : lane;
    at->width = width;
    tl_map_init(&at->memo, g->arena);
}

void tl_cpu_at_under(TlCpuGen *g, TlCpuAt *sub, const TlCpuAt *at, int rank, int lane, int width)
{
    tl_cpu_at_init(g, sub, rank, lane, width);
    memcpy(sub->idx, at->idx, sizeof at->idx);
    sub->row = at->row;
    sub->column = at->column;
    sub->down = at->down;
    sub->ahead = at->ahead;
    sub->spread = at->spread;
    sub->fetch = at->fetch;
    sub->whole = at->whole;
    sub->shifted = at->shifted;
}

/* ---- ops ---- */

LLVMValueRef tl_cpu_eval_const(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    uint64_t bits = tl_attr(op, TL_ATTR_VALUE)->u.bits;
    return tl_gen_const(&g->gen, op->out[0]->type, bits, at->width);
}

LLVMValueRef tl_cpu_eval_iota(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    LLVMTypeRef t = tl_gen_elem_type(&g->gen, op->out[0]->type);
    LLVMValueRef first = LLVMBuildIntCast2(g->b, at->idx[0], t, 0, "");
    if (at->width == 1)
        return first;
    return LLVMBuildAdd(g->b, tl_gen_splat(&g->gen, first, at->width),
                        tl_gen_iota(&g->gen, t, at->width), "");
}

LLVMValueRef tl_cpu_eval_broadcast(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    TlValue *x = tl_in(op, 0);
    if (x->type->rank == 0)
        return tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, x), at->width);
    TL_ASSERT(x->type->rank <= at->rank, "rank %d becomes %d", (int)x->type->rank, at->rank);
    TlCpuAt sub;
    bool lanes = x->type->shape[at->lane] != 1;
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, lanes ? at->width : 1);
    for (int d = 0; d < at->rank; d++)
        sub.idx[d] = x->type->shape[d] == 1 ? tl_gen_int(&g->gen, 0) : at->idx[d];
    LLVMValueRef r = tl_cpu_eval(g, x, &sub);
    return lanes ? r : tl_gen_splat(&g->gen, r, at->width);
}

LLVMValueRef tl_cpu_eval_expand(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    TlValue *x = tl_in(op, 0);
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank - 1, at->lane > axis ? at->lane - 1 : at->lane,
                   at->lane == axis ? 1 : at->width);
    for (int d = 0, k = 0; d < at->rank; d++)
        if (d != axis)
            sub.idx[k++] = at->idx[d];
    if (sub.lane >= sub.rank)
        sub.lane = sub.rank ? sub.rank - 1 : 0;
    return tl_gen_splat(&g->gen, tl_cpu_eval(g, x, &sub), sub.width == at->width ? 1 : at->width);
}

LLVMValueRef tl_cpu_eval_trans(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    const int64_t *perm = tl_attr(op, TL_ATTR_PERM)->u.ints;
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, (int)perm[at->lane], at->width);
    for (int d = 0; d < at->rank; d++)
        sub.idx[perm[d]] = at->idx[d];
    return tl_cpu_eval(g, tl_in(op, 0), &sub);
}

LLVMValueRef tl_cpu_eval_pick(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    int axis = (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
    int64_t element;
    TlValue *from = tl_picked_from(op, &element);
    TL_ASSERT(from, "a reduction at a position");
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, from->type->rank, at->rank ? at->lane + (axis <= at->lane) : axis,
                    at->width);
    for (int d = 0; d < sub.rank; d++)
        sub.idx[d] = d == axis ? tl_gen_int(&g->gen, element) : at->idx[d - (d > axis)];
    return tl_cpu_eval(g, from, &sub);
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

LLVMValueRef tl_cpu_eval_convert(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    return tl_cpu_eval(g, tl_in(op, 0), at); /* the CPU has no layouts */
}

LLVMValueRef tl_cpu_spread_elements(TlCpuGen *g, TlOp *op, const TlNestSpread *s, const TlCpuAt *at,
                                    int64_t from, int lanes)
{
    TlCpuAt sub;
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, lanes);
    LLVMValueRef period = tl_gen_int(&g->gen, s->like->period),
                 group = LLVMBuildUDiv(g->b, at->idx[at->lane], period, ""),
                 first = LLVMBuildMul(g->b, group, tl_gen_int(&g->gen, s->like->step), "");
    sub.idx[at->lane] = LLVMBuildAdd(g->b, first, tl_gen_int(&g->gen, s->first + from), "");
    sub.spread = s;
    return tl_cpu_eval_elements(g, op, &sub);
}

void tl_cpu_spread_lanes(TlCpuGen *g, const TlNestSpread *s, int width, int64_t by,
                         LLVMValueRef *lane)
{
    for (int k = 0; k < width; k++) {
        const TlNestAffine *f = s->like;
        int64_t e = k / f->period * f->step + f->of[k % f->period] - s->first;
        TL_ASSERT(e >= 0 && e < s->span, "element %lld of %lld", (long long)e, (long long)s->span);
        lane[k] = LLVMConstInt(g->i32, (uint64_t)(e + by), 0);
    }
}

/* The result of an op, computed for elements of memory, of which lanes then take what is theirs.
 * NULL: it is not at this position. */
static LLVMValueRef eval_spread(TlCpuGen *g, TlOp *op, const TlCpuAt *at)
{
    const TlNestSpread *s = tl_map_get_ptr(&g->plan->spreads, op);
    if (!s || at->spread || !at->whole || at->shifted || !at->row || at->row->nest != s->nest ||
        at->lane != s->nest->lane || at->width != s->nest->width)
        return NULL;
    LLVMValueRef x = tl_cpu_spread_elements(g, op, s, at, 0, s->lanes), lane[TL_NEST_LANES];
    tl_cpu_spread_lanes(g, s, at->width, 0, lane);
    if (s->lanes == 1)
        return tl_gen_splat(&g->gen, x, at->width);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(lane, (unsigned)at->width), "");
}

/* Does any lane take that arm of selects? */
static LLVMValueRef is_taken(TlCpuGen *g, const TlOp *select, uint32_t arm, TlCpuAt *at)
{
    LLVMValueRef c = tl_cpu_eval(g, tl_in(select, 0), at);
    c = LLVMBuildICmp(g->b, arm == 1 ? LLVMIntNE : LLVMIntEQ, c, LLVMConstNull(LLVMTypeOf(c)), "");
    if (at->width == 1)
        return c;
    LLVMTypeRef bits = LLVMIntTypeInContext(g->c, (unsigned)at->width);
    return LLVMBuildICmp(g->b, LLVMIntNE, LLVMBuildBitCast(g->b, c, bits, ""), LLVMConstNull(bits),
                         "");
}

/* A select whose nest goes around much work (nest_rare.c), and those that go with it. NULL: it is
 * as others. */
static LLVMValueRef eval_rare(TlCpuGen *g, const TlOp *op, TlCpuAt *at)
{
    const TlNestRare *r = tl_map_get_ptr(&g->plan->rare, op);
    if (!r || at->spread)
        return NULL;
    TlCpuAt sub;
    uint32_t n = r->selects.len;
    LLVMValueRef result = NULL,
                 *some = TL_NEW_ARRAY(g->arena, LLVMValueRef, n), /* the arm taken by some lane */
                     *none = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
    tl_cpu_at_under(g, &sub, at, at->rank, at->lane, at->width);
    for (uint32_t i = 0; i < r->leaves.len; i++)
        tl_map_put(&sub.memo, r->leaves.data[i]->id,
                   (uint64_t)(uintptr_t)tl_cpu_eval(g, r->leaves.data[i], at));
    for (uint32_t i = 0; i < n; i++)
        none[i] = tl_cpu_eval(g, tl_in(r->selects.data[i], 3 - r->arm), at);
    LLVMValueRef cond = tl_cpu_eval(g, tl_in(op, 0), at);
    TlCpuBranch branch = tl_cpu_branch(g, is_taken(g, op, r->arm, at), true, "rare", "common");
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef in[3] = {cond};
        in[3 - r->arm] = none[i];
        in[r->arm] = tl_cpu_eval(g, tl_in(r->selects.data[i], r->arm), &sub);
        some[i] = tl_gen_elementwise(&g->gen, r->selects.data[i], in);
    }
    LLVMBasicBlockRef end = LLVMGetInsertBlock(g->b);
    tl_cpu_join(g, branch);
    for (uint32_t i = 0; i < n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(some[i]), "");
        LLVMAddIncoming(phi, &some[i], &end, 1);
        LLVMAddIncoming(phi, &none[i], &branch.from, 1);
        tl_map_put(&at->memo, r->selects.data[i]->out[0]->id, (uint64_t)(uintptr_t)phi);
        result = r->selects.data[i] == op ? phi : result;
    }
    return result;
}

/* The place of each lane in rows of n elements, iota % n: a vector of a table that begins with the
 * first lane's place. NULL: it is no such op. */
static LLVMValueRef eval_places(TlCpuGen *g, const TlOp *op, const TlCpuAt *at)
{
    enum { MOST = TL_NEST_LANES };
    TlWideInt n;
    const TlOp *of = op->opcode == TL_OP_REM ? tl_in(op, 0)->def : NULL;
    if (!of || of->opcode != TL_OP_IOTA || at->width < 2 || at->lane != 0 ||
        !tl_const_int_value(tl_in(op, 1), &n) || n < 2 || n > MOST)
        return NULL;
    LLVMTypeRef type = tl_gen_elem_type(&g->gen, op->out[0]->type);
    LLVMValueRef number[2 * MOST], table,
        from = LLVMBuildURem(g->b, at->idx[0], tl_gen_int(&g->gen, (int64_t)n), "");
    unsigned long long first = LLVMIsConstant(from) ? LLVMConstIntGetZExtValue(from) : 0,
                       most = (unsigned long long)n - 1 + (unsigned)at->width;
    for (unsigned long long i = 0; i < most; i++)
        number[i] = LLVMConstInt(type, i % (unsigned long long)n, 0);
    if (LLVMIsConstant(from))
        return LLVMConstVector(number + first, (unsigned)at->width);
    table = LLVMAddGlobal(g->gen.l->module, LLVMArrayType2(type, most), "places");
    LLVMSetInitializer(table, LLVMConstArray2(type, number, most));
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(table, 1);
    LLVMValueRef p = LLVMBuildInBoundsGEP2(g->b, type, table, &from, 1, ""),
                 v = LLVMBuildLoad2(g->b, tl_gen_vec(type, at->width), p, "");
    LLVMSetAlignment(v, (unsigned)tl_dtype_bytes(op->out[0]->type->dtype));
    return v;
}

/* A position is inside most often, and a remainder takes longer than all else of a program's
 * beginning: scalars ask first. */
static LLVMValueRef eval_border(TlCpuGen *g, TlOp *op, LLVMValueRef *in)
{
    if (tl_gen_width_of(in[0]) > 1)
        return tl_gen_elementwise(&g->gen, op, in);
    bool is_signed = tl_is_signed(tl_in(op, 0)->type->dtype);
    LLVMValueRef x = LLVMBuildIntCast2(g->b, in[0], g->i64, is_signed, "");
    TlCpuFork f = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntULT, x, in[1], ""));
    tl_cpu_fork_else(g, &f, x);
    return tl_cpu_fork_end(g, &f, tl_gen_elementwise(&g->gen, op, in));
}

LLVMValueRef tl_cpu_eval_elements(TlCpuGen *g, TlOp *op, TlCpuAt *at)
{
    if (op->opcode == TL_OP_PTR_ADD)
        return eval_ptr_add(g, op, at);
    uint64_t seen;
    if (tl_map_get(&at->memo, op->out[0]->id, &seen)) /* of a home's own value, which slides */
        return (LLVMValueRef)(uintptr_t)seen;
    LLVMValueRef r = eval_spread(g, op, at);
    if (!r)
        r = eval_rare(g, op, at);
    if (!r)
        r = eval_places(g, op, at);
    if (r)
        return r;
    LLVMValueRef in[3];
    for (uint32_t i = 0; i < op->nin; i++)
        in[i] = tl_in(op, i)->type->rank == 0 && op->opcode == TL_OP_SELECT && i == 0
                    ? tl_gen_scalar(&g->gen, tl_in(op, i))
                    : tl_cpu_eval(g, tl_in(op, i), at);
    return op->opcode == TL_OP_BORDER ? eval_border(g, op, in)
                                      : tl_gen_elementwise(&g->gen, op, in);
}

LLVMValueRef tl_cpu_eval_own(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    TL_ASSERT(v->def, "value %u has no op", v->id);
    LLVMMetadataRef before = tl_gen_set_loc(&g->gen, v->def->loc);
    LLVMValueRef r = g->eval_op(g, v, at);
    LLVMSetCurrentDebugLocation2(g->b, before);
    return r;
}

/* A row of a home that registers hold, computed when it is first needed. */
static LLVMValueRef of_column(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    LLVMValueRef row = at->idx[at->column->rows], r;
    TL_ASSERT(LLVMIsAConstantInt(row), "a row of value %u that is not known", v->id);
    uint64_t key = (uint64_t)v->id << 32 | (uint64_t)LLVMConstIntGetZExtValue(row), seen;
    if (tl_map_get(&at->column->has, key, &seen))
        return (LLVMValueRef)(uintptr_t)seen;
    r = tl_cpu_eval_own(g, v, at);
    tl_map_put(&at->column->has, key, (uint64_t)(uintptr_t)r);
    return r;
}

/* From its home, or by its op. */
static LLVMValueRef fresh(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    TlNestPlace place = g->plan->place[v->id];
    if (place.kind == TL_NEST_HOME && place.columns && at->column)
        return of_column(g, v, at);
    if (place.kind != TL_NEST_HOME)
        return tl_cpu_eval_own(g, v, at);
    TlType row = tl_nest_row(v->type);
    TlNestForm f = tl_nest_form(at->rank < v->type->rank ? &row : v->type);
    return tl_cpu_home_load(g, v->type, tl_cpu_home_ptr(g, place.buffer), &f, at);
}

/* A value that the nest carries from row to row; NULL: it does not. */
static LLVMValueRef of_down(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    const TlNest *n = at->down ? at->down->nest : NULL;
    for (uint32_t i = 0; n && i < n->down.len; i++) {
        const TlNestDown *d = n->down.data[i];
        if (d->value != v)
            continue;
        TL_ASSERT(at->ahead <= d->ahead, "value %u is %lld rows ahead", v->id,
                  (long long)at->ahead);
        if (at->ahead < d->ahead)
            return at->down->rows[i][at->ahead];
        if (!at->down->next[i])
            at->down->next[i] = fresh(g, v, at);
        return at->down->next[i];
    }
    return NULL;
}

LLVMValueRef tl_cpu_eval(TlCpuGen *g, TlValue *v, TlCpuAt *at)
{
    TL_ASSERT(v->type->kind == TL_TILE && at->width > 0, "value %u is no tile", v->id);
    if (v->type->rank == 0)
        return tl_gen_splat(&g->gen, tl_gen_scalar(&g->gen, v), at->width);
    uint64_t seen;
    if (tl_map_get(&at->memo, v->id, &seen))
        return (LLVMValueRef)(uintptr_t)seen;
    LLVMValueRef r = of_down(g, v, at);
    r = r ? r : fresh(g, v, at);
    tl_map_put(&at->memo, v->id, (uint64_t)(uintptr_t)r);
    return r;
}

void tl_cpu_lower_block(TlCpuGen *g, TlBlock *block, const TlOp *but)
{
    TL_ASSERT(block->fn == g->fn && block->last, "a block of another function than '%s'",
              g->fn->name);
    for (TlOp *op = block->first; op; op = op->next)
        if (op != but) {
            tl_gen_set_loc(&g->gen, op->loc);
            g->lower_op(g, op);
        }
}
