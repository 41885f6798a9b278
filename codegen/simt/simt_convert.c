/* Lowering of conversions, after the plan of ir/plan/layout_convert.h, which says what each kind
 * does.
 *
 * Elements of less than 32 bits that take the same way in a shuffle travel together: up to 32
 * bools, 4 bytes or 2 halves in one word. */
#include "codegen/simt/simt_exchange.h"
#include "ir/plan/shared_plan.h"

typedef struct Conversion {
    TlSimt *g;
    const TlOp *op;
    const TlConvert *plan;
    const TlType *type;           /* of the result */
    LLVMValueRef *from, *to, any; /* any: what padding holds */
    LLVMValueRef writes, reads;   /* i32: rounds of the thread's own; NULL: the same in all */
} Conversion;

static LLVMValueRef thread_number(TlSimt *g, const TlThreadMap *m)
{
    return tl_simt_thread_xor(g, g->lane_bits, m->lane, g->warp_bits, m->warp);
}

/* ---- own registers and other lanes ---- */

/* x[i] becomes x[i ^ number], the number by m. A register that is missing stays NULL. */
static LLVMValueRef *permute(Conversion *c, LLVMValueRef *x, uint32_t n, const TlThreadMap *m)
{
    TlSimt *g = c->g;
    uint32_t bits = tl_thread_map_bits(m);
    LLVMValueRef number = bits ? thread_number(g, m) : NULL;
    for (int b = 0; bits >> b; b++) {
        if (!(bits >> b & 1))
            continue;
        LLVMValueRef *y = TL_NEW_ARRAY(g->arena, LLVMValueRef, n);
        LLVMValueRef other = tl_simt_bit(g, number, b);
        for (uint32_t i = 0; i < n; i++) {
            LLVMValueRef with = x[i ^ 1u << b];
            y[i] = !with ? x[i] : !x[i] ? with : LLVMBuildSelect(g->b, other, with, x[i], "");
        }
        x = y;
    }
    return x;
}

/* How many bits an element needs in a packed word; 32: it is not packed. */
static unsigned packed_bits(const TlType *type)
{
    uint64_t bytes = tl_gen_elem_bytes(type);
    if (tl_is_bool(type->dtype) && !type->ptr)
        return 1;
    return bytes < 4 ? 8 * (unsigned)bytes : 32;
}

static LLVMValueRef shuffle_word(Conversion *c, LLVMValueRef word, uint32_t lane,
                                 LLVMValueRef from_lane)
{
    static const TlType type = {.kind = TL_TILE, .dtype = TL_U32};
    if (c->plan->is_xor)
        return tl_simt_shuffle_xor(c->g, &type, word, lane);
    LLVMValueRef at = LLVMBuildXor(c->g->b, from_lane, tl_simt_i32(c->g, lane), "");
    return tl_simt_shuffle_idx(c->g, &type, word, at);
}

/* n registers of the result, from one lane. */
static void shuffle_packed(Conversion *c, LLVMValueRef *t, const uint32_t *regs, unsigned n,
                           LLVMValueRef from_lane, LLVMValueRef *u)
{
    TlSimt *g = c->g;
    unsigned bits = packed_bits(c->type);
    LLVMValueRef words[2], all[2] = {tl_simt_i32(g, 0), tl_simt_i32(g, 0)};
    int nwords = 1;
    for (unsigned i = 0; i < n; i++) {
        nwords = tl_simt_to_words(g, c->type, t[c->plan->regs[regs[i]].src], words);
        for (int w = 0; w < nwords; w++) {
            if (i > 0)
                words[w] = LLVMBuildShl(g->b, words[w], tl_simt_i32(g, i * bits), "");
            all[w] = LLVMBuildOr(g->b, all[w], words[w], "");
        }
    }
    for (int w = 0; w < nwords; w++)
        all[w] = shuffle_word(c, all[w], c->plan->regs[regs[0]].lane, from_lane);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef x[2] = {all[0], all[1]};
        if (i > 0)
            x[0] = LLVMBuildLShr(g->b, x[0], tl_simt_i32(g, i * bits), "");
        if (bits == 1)
            x[0] = LLVMBuildAnd(g->b, x[0], tl_simt_i32(g, 1), "");
        u[regs[i]] = tl_simt_from_words(g, c->type, x);
    }
}

/* Registers of the result that come from the same lane are packed together. */
static void shuffle_all(Conversion *c, LLVMValueRef *t, LLVMValueRef *u)
{
    const TlConvert *p = c->plan;
    unsigned most = 32 / packed_bits(c->type);
    LLVMValueRef from_lane = p->is_xor ? NULL : thread_number(c->g, &p->from_lane);
    bool *done = TL_NEW_ARRAY(c->g->arena, bool, p->ndst);
    for (uint32_t r = 0; r < p->ndst; r++) {
        uint32_t regs[32];
        unsigned n = 0;
        for (uint32_t k = r; k < p->ndst && n < most; k++)
            if (!done[k] && p->regs[k].src >= 0 && !p->regs[k].stays &&
                p->regs[k].lane == p->regs[r].lane)
                done[regs[n++] = k] = true;
        if (n > 0)
            shuffle_packed(c, t, regs, n, from_lane, u);
    }
}

/* Which bytes of a word of this lane and of the other's word are two neighbours of the result: the
 * words' lower halves or the upper ones, this lane's first or last. */
static LLVMValueRef neighbours(Conversion *c, LLVMValueRef is_last, bool upper)
{
    static const uint32_t FIRST[2] = {0x05040100, 0x07060302}, LAST[2] = {0x01000504, 0x03020706};
    TlSimt *g = c->g;
    return LLVMBuildSelect(g->b, is_last, tl_simt_i32(g, LAST[upper]), tl_simt_i32(g, FIRST[upper]),
                           "");
}

static void convert_pairs(Conversion *c)
{
    static const TlType word = {.kind = TL_TILE, .dtype = TL_U32};
    TlSimt *g = c->g;
    const TlConvert *p = c->plan;
    LLVMValueRef is_last = tl_simt_bit(g, thread_number(g, &p->to_reg), 0), *mine, *others,
                 from[2] = {neighbours(c, is_last, false), neighbours(c, is_last, true)};
    mine = TL_NEW_ARRAY(g->arena, LLVMValueRef, p->nsrc / 2);
    others = TL_NEW_ARRAY(g->arena, LLVMValueRef, p->nsrc / 2);
    for (uint32_t i = 0; i < p->nsrc / 2; i++) {
        mine[i] = tl_simt_pack(g, c->type, 2, c->from + 2 * i);
        others[i] = tl_simt_shuffle_xor(g, &word, mine[i], p->regs[1].lane);
    }
    for (uint32_t r = 0; r < p->ndst; r += 2) {
        uint32_t src = (uint32_t)p->regs[r].src;
        LLVMValueRef args[3] = {mine[src / 2], others[src / 2], from[src % 2]};
        tl_simt_unpack(g, c->type, tl_simt_leaf(g, TL_LEAF_BYTES, 3, args), 2, c->to + r);
    }
}

static void convert_in_warp(Conversion *c)
{
    const TlConvert *p = c->plan;
    LLVMValueRef *t = c->from, *u = TL_NEW_ARRAY(c->g->arena, LLVMValueRef, p->ndst);
    if (p->kind == TL_CONVERT_SHUFFLE) {
        t = permute(c, t, p->nsrc, &p->from_reg);
        shuffle_all(c, t, u);
    }
    for (uint32_t r = 0; r < p->ndst; r++) {
        const TlConvertReg *x = p->regs ? &p->regs[r] : NULL;
        bool own = p->kind != TL_CONVERT_SHUFFLE || x->stays;
        int64_t src = p->kind == TL_CONVERT_NONE ? r < p->nsrc ? (int64_t)r : -1 : x->src;
        if (own && src >= 0)
            u[r] = t[src];
    }
    if (p->kind == TL_CONVERT_SHUFFLE)
        u = permute(c, u, p->ndst, &p->to_reg);
    for (uint32_t r = 0; r < p->ndst; r++)
        c->to[r] = u[r] ? u[r] : c->any;
}

/* ---- through shared memory ---- */

/* i1: is the register's element past the operand's layout? It is along some axis. */
static LLVMValueRef is_past(Conversion *c, int32_t reg)
{
    TlSimt *g = c->g;
    const TlLayout *from = tl_in(c->op, 0)->type->layout, *to = c->type->layout;
    LLVMValueRef past = LLVMConstInt(g->i1, 0, 0);
    for (int d = 0; d < to->nout; d++) {
        int32_t end = tl_layout_extent(from, d);
        if (tl_layout_extent(to, d) <= end)
            continue;
        LLVMValueRef x = tl_simt_coord(g, to, reg, d), e = tl_simt_i32(g, (uint32_t)end);
        past = LLVMBuildOr(g->b, past, LLVMBuildICmp(g->b, LLVMIntUGE, x, e, ""), "");
    }
    return past;
}

/* i1: does the thread do the access in this round? NULL: all do. */
static LLVMValueRef in_round(Conversion *c, LLVMValueRef own, const TlConvertAccess *a,
                             uint32_t round)
{
    if (!own)
        return NULL;
    return LLVMBuildICmp(c->g->b, LLVMIntEQ, own, tl_simt_i32(c->g, a->round ^ round), "");
}

static void write_round(Conversion *c, uint32_t round, const TlSimtLinear *at, LLVMValueRef pred)
{
    const TlConvertSide *w = &c->plan->write;
    LLVMValueRef x[16];
    for (uint32_t i = 0; i < w->naccesses; i++) {
        const TlConvertAccess *a = &w->accesses[i];
        if (!tl_convert_in_round(w, a, round))
            continue;
        for (int e = 0; e < 1 << w->vec_bits; e++)
            x[e] = a->regs[e] < 0 ? c->any : c->from[a->regs[e]];
        LLVMValueRef to = tl_simt_linear_at(c->g, at, a->offset, tl_simt_scratch(c->op));
        LLVMValueRef who = tl_simt_both(c->g, pred, in_round(c, c->writes, a, round));
        tl_simt_shared_store(c->g, c->type, to, who, 1 << w->vec_bits, x);
    }
}

static void read_access(Conversion *c, const TlConvertAccess *a, uint32_t round,
                        const TlSimtLinear *at)
{
    TlSimt *g = c->g;
    int n = 1 << c->plan->read.vec_bits, first = 0;
    uint32_t scratch = tl_simt_scratch(c->op);
    LLVMValueRef x[16], mine = in_round(c, c->reads, a, round),
                        from = tl_simt_linear_at(g, at, a->offset, scratch),
                        filled = tl_simt_i32(g, scratch + c->plan->fallback[round]);
    while (a->regs[first] < 0)
        first++;
    if (a->guarded)
        from = LLVMBuildSelect(g->b, is_past(c, a->regs[first]), filled, from, "");
    if (mine && !c->plan->all_written)
        from = LLVMBuildSelect(g->b, mine, from, filled, "");
    tl_simt_shared_load(g, c->type, from, n, x);
    for (int e = 0; e < n; e++)
        if (a->regs[e] >= 0)
            c->to[a->regs[e]] =
                mine ? LLVMBuildSelect(g->b, mine, x[e], c->to[a->regs[e]], "") : x[e];
}

static void convert_in_shared(Conversion *c)
{
    TlSimt *g = c->g;
    const TlConvert *p = c->plan;
    TlSimtLinear to = tl_simt_linear(g, &p->write.offset, g->lane_bits, g->warp_bits, 1);
    TlSimtLinear from = tl_simt_linear(g, &p->read.offset, g->lane_bits, g->warp_bits, 1);
    LLVMValueRef pred = tl_simt_without(g, p->write.skip_lanes, 0, p->write.skip_warps);
    bool is_first = true;
    c->writes = p->write.times > 1 ? thread_number(g, &p->write.round) : NULL;
    c->reads = p->read.times > 1 ? thread_number(g, &p->read.round) : NULL;
    for (uint32_t r = 0; r < p->ndst; r++)
        c->to[r] = c->any;
    for (uint32_t round = 0; round < p->nrounds; round++) {
        if (p->fallback[round] == TL_NOT_FILLED)
            continue;
        if (!is_first)
            tl_simt_barrier(g);
        is_first = false;
        write_round(c, round, &to, pred);
        tl_simt_barrier(g);
        for (uint32_t i = 0; i < p->read.naccesses; i++)
            if (tl_convert_in_round(&p->read, &p->read.accesses[i], round))
                read_access(c, &p->read.accesses[i], round, &from);
    }
}

void tl_simt_convert(TlSimt *g, TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_CONVERT && tl_in(op, 0)->type->layout, "%s converts nothing",
              tl_op_info(op->opcode)->text);
    const TlValue *in = tl_in(op, 0), *out = op->out[0];
    Conversion c = {.g = g, .op = op, .type = out->type, .from = tl_simt_regs(g, in)};
    c.plan = tl_op_convert_plan(g->arena, op);
    c.to = tl_simt_define(g, out);
    c.any = LLVMConstNull(tl_gen_elem_type(&g->gen, out->type));
    if (c.plan->kind == TL_CONVERT_SHARED)
        convert_in_shared(&c);
    else if (c.plan->kind == TL_CONVERT_SHUFFLE && c.plan->pairs)
        convert_pairs(&c);
    else
        convert_in_warp(&c);
}
