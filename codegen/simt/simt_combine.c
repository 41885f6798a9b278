/* Addresses of partial results in shared memory, and combining them (simt_exchange.h). */
#include "codegen/simt/simt_exchange.h"

/* ---- numbers that are linear in the thread ---- */

TlSimtLinear tl_simt_linear(TlSimt *g, const TlThreadMap *m, int lane_bits, int warp_bits,
                            uint32_t scale)
{
    TlThreadMap s = {{0}, {0}};
    TlSimtLinear x = {0};
    for (int i = 0; i < lane_bits; i++)
        x.bits |= s.lane[i] = m->lane[i] * scale;
    for (int i = 0; i < warp_bits; i++)
        x.bits |= s.warp[i] = m->warp[i] * scale;
    x.thread = tl_simt_thread_xor(g, lane_bits, s.lane, warp_bits, s.warp);
    return x;
}

LLVMValueRef tl_simt_linear_at(TlSimt *g, const TlSimtLinear *x, uint32_t c, uint32_t base)
{
    LLVMValueRef v = x->thread;
    uint32_t mixed = c & x->bits; /* the other bits of c never meet one of the thread's */
    if (x->bits == 0)
        return tl_simt_i32(g, base + c);
    if (mixed)
        v = LLVMBuildXor(g->b, v, tl_simt_i32(g, mixed), "");
    return base + c == mixed ? v : LLVMBuildNUWAdd(g->b, v, tl_simt_i32(g, base + c - mixed), "");
}

LLVMValueRef tl_simt_linear_below(TlSimt *g, const TlSimtLinear *x, uint32_t c, uint32_t limit)
{
    if ((c | x->bits) < limit)
        return NULL;
    LLVMValueRef v = LLVMBuildXor(g->b, x->thread, tl_simt_i32(g, c), "");
    return LLVMBuildICmp(g->b, LLVMIntULT, v, tl_simt_i32(g, limit), "");
}

LLVMValueRef tl_simt_without(TlSimt *g, uint32_t lanes, uint32_t last, uint32_t warps)
{
    LLVMValueRef any = NULL;
    TL_ASSERT((last & ~lanes) == 0, "lanes with %u of %u", last, lanes);
    if (lanes)
        any = LLVMBuildAnd(g->b, g->thread.lane, tl_simt_i32(g, lanes), "");
    if (last)
        any = LLVMBuildXor(g->b, any, tl_simt_i32(g, last), "");
    if (warps) {
        LLVMValueRef w = LLVMBuildAnd(g->b, g->thread.warp, tl_simt_i32(g, warps), "");
        any = any ? LLVMBuildOr(g->b, any, w, "") : w;
    }
    return any ? LLVMBuildICmp(g->b, LLVMIntEQ, any, tl_simt_i32(g, 0), "") : NULL;
}

LLVMValueRef tl_simt_bit(TlSimt *g, LLVMValueRef x, int bit)
{
    LLVMValueRef v = LLVMBuildAnd(g->b, x, tl_simt_i32(g, 1u << bit), "");
    return LLVMBuildICmp(g->b, LLVMIntNE, v, tl_simt_i32(g, 0), "");
}

uint32_t tl_simt_scratch(const TlOp *op)
{
    int64_t at = tl_attr_int(op, TL_ATTR_SHARED, -1);
    TL_ASSERT(at >= 0, "%s without shared memory", tl_op_info(op->opcode)->text);
    return (uint32_t)at;
}

/* ---- partial results ---- */

TlSimtCombiner tl_simt_combiner(TlSimt *g, const TlOp *op, const TlDtype *work)
{
    TlSimtCombiner c = {.g = g, .op = op, .n = op->nout, .work = work};
    c.user = tl_attr_int(op, TL_ATTR_KIND, 0) == TL_COMBINE_USER;
    c.types = TL_NEW_ARRAY(g->arena, TlType, c.n);
    for (uint32_t i = 0; i < c.n; i++)
        c.types[i] = (TlType){.kind = TL_TILE, .dtype = work[i]};
    return c;
}

static TlSimtPartial new_partial(const TlSimtCombiner *c)
{
    return (TlSimtPartial){TL_NEW_ARRAY(c->g->arena, LLVMValueRef, c->n), NULL};
}

TlSimtPartial tl_simt_partial(const TlSimtCombiner *c, int64_t reg)
{
    TlSimtPartial p = new_partial(c);
    for (uint32_t i = 0; i < c->n; i++) {
        const TlValue *v = tl_in(c->op, i);
        p.v[i] = tl_simt_regs(c->g, v)[reg];
        if (v->type->dtype != c->work[i])
            p.v[i] = tl_gen_cast(&c->g->gen, v->type->dtype, c->work[i], p.v[i], TL_ROUND_NEAREST,
                                 false);
    }
    return p;
}

LLVMValueRef tl_simt_narrow(const TlSimtCombiner *c, uint32_t i, LLVMValueRef x)
{
    TlDtype d = c->op->out[i]->type->dtype;
    if (d == c->work[i])
        return x;
    return tl_gen_cast(&c->g->gen, c->work[i], d, x, TL_ROUND_NEAREST, false);
}

TlSimtPartial tl_simt_choose(const TlSimtCombiner *c, LLVMValueRef cond, TlSimtPartial a,
                             TlSimtPartial b)
{
    TlSimtPartial r = new_partial(c);
    if (LLVMIsConstant(cond))
        return (TlSimtPartial){LLVMConstIntGetZExtValue(cond) ? a.v : b.v, NULL};
    for (uint32_t i = 0; i < c->n; i++)
        r.v[i] = LLVMBuildSelect(c->g->b, cond, a.v[i], b.v[i], "");
    return r;
}

TlSimtPartial tl_simt_join(const TlSimtCombiner *c, TlSimtPartial a, TlSimtPartial b)
{
    TlSimtPartial r = new_partial(c);
    TlCombine kind = (TlCombine)tl_attr_int(c->op, TL_ATTR_KIND, 0);
    if (c->user)
        tl_simt_user_combine(c->g, c->op, c->n, a.v, b.v, r.v);
    else
        r.v[0] = tl_gen_combine(&c->g->gen, kind, c->work[0], a.v[0], b.v[0]);
    if (b.has)
        r = tl_simt_choose(c, b.has, r, a);
    if (a.has)
        r = tl_simt_choose(c, a.has, r, b);
    if (a.has && b.has)
        r.has = LLVMBuildOr(c->g->b, a.has, b.has, "");
    return r;
}

TlSimtPartial tl_simt_partner(const TlSimtCombiner *c, TlSimtPartial x, uint32_t mask)
{
    TlSimtPartial r = new_partial(c);
    for (uint32_t i = 0; i < c->n; i++)
        r.v[i] = tl_simt_shuffle_xor(c->g, &c->types[i], x.v[i], mask);
    return r;
}

TlSimtPartial tl_simt_before(const TlSimtCombiner *c, TlSimtPartial x, uint32_t n)
{
    TlSimtPartial r = new_partial(c);
    for (uint32_t i = 0; i < c->n; i++)
        r.v[i] = tl_simt_shuffle_end(c->g, &c->types[i], x.v[i], n);
    return r;
}

TlSimtPartial tl_simt_of_lane(const TlSimtCombiner *c, TlSimtPartial x, LLVMValueRef lane)
{
    TlSimtPartial r = new_partial(c);
    for (uint32_t i = 0; i < c->n; i++)
        r.v[i] = tl_simt_shuffle_idx(c->g, &c->types[i], x.v[i], lane);
    return r;
}

TlSimtPartial tl_simt_shifted(const TlSimtCombiner *c, TlSimtPartial x, int n, uint32_t lanes)
{
    TlSimtPartial r = new_partial(c);
    for (uint32_t i = 0; i < c->n; i++)
        r.v[i] = tl_simt_shuffle_shift(c->g, &c->types[i], x.v[i], n, lanes, &r.has);
    return r;
}

/* ---- partial results in shared memory ---- */

static void write_operand(const TlSimtCombiner *c, const TlSharedSlots *s, uint32_t i,
                          uint32_t base, uint32_t first, uint32_t n, const TlSimtPartial *x)
{
    TlSimt *g = c->g;
    uint32_t bytes = (uint32_t)tl_gen_elem_bytes(&c->types[i]), together = 1u << s->vec_bits;
    TlSimtLinear at = tl_simt_linear(g, &s->write, g->lane_bits, g->warp_bits, bytes);
    LLVMValueRef pred = tl_simt_without(g, s->skip_lanes, s->last_lanes, s->skip_warps), v[16];
    for (uint32_t k = 0; k < n; k += together) {
        for (uint32_t e = 0; e < together; e++)
            v[e] = x[k + e].v[i];
        uint32_t slot = tl_shared_slot(s, s->write_reg, k) ^ tl_shared_round_class(s, first);
        tl_simt_shared_store(g, &c->types[i], tl_simt_linear_at(g, &at, slot * bytes, base), pred,
                             (int)together, v);
    }
}

void tl_simt_write_slots(const TlSimtCombiner *c, const TlSharedSlots *s, const uint32_t *at,
                         uint32_t first, uint32_t n, const TlSimtPartial *x)
{
    for (uint32_t i = 0; i < c->n; i++)
        write_operand(c, s, i, tl_simt_scratch(c->op) + at[i], first, n, x);
}

static void read_operand(const TlSimtCombiner *c, const TlSharedSlots *s, uint32_t i, uint32_t base,
                         uint32_t k, uint32_t class, TlSimtPartial *out)
{
    TlSimt *g = c->g;
    uint32_t bytes = (uint32_t)tl_gen_elem_bytes(&c->types[i]);
    uint32_t n = 1u << (s->vec_bits + s->class_vec_bits);
    uint32_t slot = tl_shared_slot(s, s->read_reg, k) ^ class << s->class_at;
    TlSimtLinear at = tl_simt_linear(g, &s->read, g->lane_bits, g->warp_bits, bytes);
    LLVMValueRef v[16];
    tl_simt_shared_load(g, &c->types[i], tl_simt_linear_at(g, &at, slot * bytes, base), (int)n, v);
    for (uint32_t e = 0; e < n; e++)
        out[e].v[i] = v[e];
}

TlSimtPartial *tl_simt_read_slots(const TlSimtCombiner *c, const TlSharedSlots *s,
                                  const uint32_t *at, uint32_t k, int class_bits,
                                  const bool *wanted)
{
    uint32_t classes = 1u << class_bits, n = classes << s->vec_bits;
    TlSimtPartial *x = TL_NEW_ARRAY(c->g->arena, TlSimtPartial, n);
    for (uint32_t e = 0; e < n; e++)
        x[e] = new_partial(c);
    for (uint32_t i = 0; i < c->n; i++)
        for (uint32_t class = 0; class < classes; class += 1u << s->class_vec_bits)
            if (!wanted || wanted[class])
                read_operand(c, s, i, tl_simt_scratch(c->op) + at[i], k, class,
                             &x[class << s->vec_bits]);
    return x;
}
