/* The report's part on exchanges between threads (explain.h): conversions, reductions, scans,
 * products, buffers, barriers. Shuffles and wavefronts are those of the plans that the lowering
 * follows. */
#include "codegen/leaf/leaves.h"
#include "codegen/report/explain.h"
#include "codegen/report/roof.h"
#include "ir/layout/layout.h"
#include "ir/plan/banks.h"
#include "ir/plan/bulk.h"
#include "ir/plan/dot_plan.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/reduce_plan.h"
#include "ir/plan/scan_plan.h"
#include "ir/plan/shared_plan.h"
#include "ir/plan/staged_plan.h"
#include "ir/plan/table_plan.h"
#include "ir/plan/tensor_scales.h"
#include "ir/remark.h"
#include "passes/analysis/bulk_fault.h"
#include "passes/analysis/cluster.h"
#include "passes/analysis/facts.h"
#include "passes/layout/turn_dot.h"
#include "passes/layout/warpgroup_fault.h"
#include "passes/simplify/scale_dots.h"

enum { WORD = 4 };

static void add_banks(tilec_report_exchange *x, TlBanks one, uint64_t times)
{
    x->wavefronts += (uint32_t)(one.wavefronts * times);
    x->least += (uint32_t)(one.least * times);
}

/* ---- why a tile is converted ---- */

static bool passes_layout_on(const TlOp *op)
{
    return tl_op_info(op->opcode)->flags & (F_ELEM | F_VIEWLIKE);
}

/* What determines a value's layout: an operand with the same layout, or what a loop or branch
 * yields. NULL: the value's own op. */
static const TlValue *layout_from(const TlValue *v)
{
    const TlOp *op = v->def ? v->def : v->block->parent;
    if (!v->def && (!op || op->opcode != TL_OP_FOR || v->index == 0))
        return NULL;
    if (op->opcode == TL_OP_FOR)
        return tl_in(op->regions[0]->last, v->def ? v->index : v->index - 1);
    if (op->opcode == TL_OP_IF)
        return tl_in(op->regions[0]->last, v->index);
    for (uint32_t k = 0; k < op->nin && passes_layout_on(op); k++)
        if (tl_in(op, k)->type->layout)
            return tl_in(op, k);
    return NULL;
}

/* The op that a value's layout is for. */
static const TlOp *origin_of(const TlValue *v)
{
    enum { MOST_OPS = 64 }; /* that are followed: a loop would never end */
    const TlValue *from;
    for (int i = 0; i < MOST_OPS && (from = layout_from(v)); i++)
        v = from;
    return v->def ? v->def : v->block->parent;
}

/* The op for which a value has its layout: forward, by the first user. */
static const TlOp *purpose_of(const TlValue *v)
{
    enum { MOST_OPS = 64 }; /* that are followed: a loop would never end */
    const TlOp *op = v->def;
    for (int i = 0; i < MOST_OPS && v->uses; i++) {
        op = v->uses->user;
        if (!passes_layout_on(op) || op->nout == 0)
            break;
        v = op->out[0];
    }
    return op;
}

static const char *op_text(const TlExplain *e, const TlOp *op)
{
    return op ? tl_format(e->scratch, "%s (line %u)", tl_op_info(op->opcode)->text, op->loc.line)
              : "a parameter";
}

static const char *why_converted(const TlExplain *e, const TlOp *op)
{
    return tl_format(e->out, "from the layout of %s to that of %s",
                     op_text(e, origin_of(tl_in(op, 0))), op_text(e, purpose_of(op->out[0])));
}

/* ---- conversions ---- */

static void add_side(const TlConvert *c, const TlConvertSide *s, tilec_report_exchange *x)
{
    TlBanks one = tl_banks_of_map(&s->offset, 1, c->lane_bits, s->skip_lanes, s->vec_bytes);
    add_banks(x, one, s->naccesses * s->times);
}

static void explain_convert(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    TL_ASSERT(op->opcode == TL_OP_CONVERT, "%s is no conversion", tl_op_info(op->opcode)->text);
    const TlConvert *c = tl_op_convert_plan(e->scratch, op);
    x->why = why_converted(e, op);
    switch (c->kind) {
    case TL_CONVERT_NONE: x->way = "nothing to do"; return;
    case TL_CONVERT_RENAME: x->way = "registers"; return;
    case TL_CONVERT_SHUFFLE:
        x->way = "shuffles";
        x->shuffles = c->shuffles;
        return;
    case TL_CONVERT_SHARED:
        x->way = "shared memory";
        x->barriers = 2 * c->nfilled - 1;
        add_side(c, &c->write, x);
        add_side(c, &c->read, x);
        return;
    }
    TL_UNREACHABLE("convert kind %d", (int)c->kind);
}

/* ---- reductions, scans ---- */

static uint32_t words_of(TlDtype d)
{
    return ((uint32_t)tl_dtype_bytes(d) + WORD - 1) / WORD;
}

/* Accesses that read `classes` classes of n partials each. */
static uint32_t reads_of(const TlSharedSlots *s, uint32_t n, uint32_t classes)
{
    int together = s->vec_bits + s->class_vec_bits;
    return (n * classes + (1u << together) - 1) >> together;
}

/* Counts n partials of every operand written to their slots, and what all threads read, by `reads`
 * accesses. */
static void add_slots(const TlSharedSlots *s, const TlDtype *work, uint32_t noperands, uint32_t n,
                      int lane_bits, uint32_t reads, tilec_report_exchange *x)
{
    for (uint32_t i = 0; i < noperands; i++) {
        uint32_t unit = (uint32_t)tl_dtype_bytes(work[i]);
        uint32_t wide = unit << s->vec_bits, row = unit << s->class_vec_bits;
        TlBanks put = tl_banks_of_map(&s->write, unit, lane_bits, s->skip_lanes, wide);
        uint32_t many = s->class_vec_bits ? row : wide;
        TlBanks get = tl_banks_of_map(&s->read, unit, lane_bits, 0, many);
        add_banks(x, put, (n + (1u << s->vec_bits) - 1) >> s->vec_bits);
        add_banks(x, get, reads);
    }
}

static uint32_t rounds_of(uint32_t n, uint32_t each)
{
    return (n + each - 1) / each;
}

static int lane_bits_of(const TlOp *op)
{
    return tl_layout_in_bits(tl_in(op, 0)->type->layout, TL_IN_LANE);
}

/* Pairs of value and index, or in two steps: what decided it (split-argmax). */
static const char *why_argmax(const TlExplain *e, const TlOp *op)
{
    long long pairs = (long long)tl_remark_of(op, TL_REMARK_PAIRS),
              steps = (long long)tl_remark_of(op, TL_REMARK_STEPS);
    if (!pairs)
        return "";
    return steps < pairs ? tl_format(e->out, "index of the extreme value, taken first: "
                                             "about %lld instructions of a thread, %lld as pairs",
                                     steps, pairs)
                         : tl_format(e->out, "pairs of value and index: about %lld instructions "
                                             "of a thread, %lld in two steps",
                                     pairs, steps);
}

static void explain_reduce(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    TL_ASSERT(op->opcode == TL_OP_REDUCE, "%s is no reduction", tl_op_info(op->opcode)->text);
    const TlReducePlan *p = tl_reduce_plan(e->scratch, op);
    tl_redux how;
    bool at_once = tl_leaf_of_reduce(e->target, e->fn, p, op, &how) != TL_LEAF_COUNT;
    uint32_t shuffles =
        at_once ? 1 : tl_reduce_shuffles(p, tl_leaf_is_of(e->target, TL_LEAF_SHFL_END));
    const char *by = at_once ? "redux" : "shuffles";
    for (uint32_t i = 0; i < p->noperands; i++)
        x->shuffles += shuffles * p->nresults * words_of(p->work[i]);
    x->way = x->shuffles ? by : "registers";
    x->why = why_argmax(e, op);
    if (!p->class_bits)
        return;
    x->way = x->shuffles ? tl_format(e->out, "%s, shared memory", by) : "shared memory";
    x->barriers = 2 * rounds_of(p->nresults, p->each) - 1;
    add_slots(&p->slots, p->work, p->noperands, p->nresults, lane_bits_of(op),
              reads_of(&p->slots, p->nresults, 1u << p->class_bits), x);
}

/* The totals that a step by one bit or by shifts exchanges: one per representative, in every
 * repetition. */
static uint32_t totals_of(const TlScanPlan *p, const TlScanStep *step)
{
    uint32_t n = 0;
    for (uint32_t r = 0; r < p->nregs; r++) {
        uint32_t own = r & ((1u << p->reg_bits) - 1);
        n += step->rep[own] == own;
    }
    return n;
}

/* Does nothing come after the block that a register has after the step, in any thread? */
static bool is_last_block(const TlScanPlan *p, const TlScanStep *step, uint32_t reg, bool reverse)
{
    uint32_t reps = (uint32_t)p->reps,
             above = (1u << p->axis_bits) - (1u << (step->bit + step->nbits));
    uint32_t own = reg & ((1u << p->reg_bits) - 1), at = (uint32_t)tl_images_reg(&p->x, own);
    bool last = reg / p->rep_unit % reps == (reverse ? 0 : reps - 1);
    return last && (tl_images_moving(&p->x) & above) == 0 && (at & above) == (reverse ? 0 : above);
}

/* What a step by classes reads. The total of the last class is not read if nothing comes after
 * it. */
static uint32_t class_reads(const TlScanPlan *p, const TlScanStep *step, bool reverse)
{
    const TlSharedSlots *s = &step->slots;
    uint32_t n = reads_of(s, step->nparts, 1u << step->nbits);
    for (uint32_t i = 0; i < step->nparts && !s->class_vec_bits; i += 1u << s->vec_bits) {
        bool last = true; /* all that are read together */
        for (uint32_t k = 0; k < 1u << s->vec_bits; k++)
            last &= is_last_block(p, step, step->parts[i + k], reverse);
        n -= last;
    }
    return n;
}

static void explain_scan(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    TL_ASSERT(op->opcode == TL_OP_SCAN, "%s is no scan", tl_op_info(op->opcode)->text);
    const TlScanPlan *p =
        tl_scan_plan(e->scratch, op, tl_leaf_is_of(e->target, TL_LEAF_SHFL_SHIFT));
    for (int i = 0; i < p->nsteps; i++) {
        const TlScanStep *step = &p->steps[i];
        if (step->by_classes)
            x->barriers += 2 * rounds_of(step->nparts, step->each) - !(x->barriers && p->in_parts);
        if (step->by_classes)
            add_slots(&step->slots, p->work, op->nout, step->nparts, lane_bits_of(op),
                      class_reads(p, step, tl_attr_flag(op, TL_ATTR_REVERSE)), x);
        for (uint32_t k = 0; k < op->nout; k++)
            x->shuffles += tl_scan_shuffles(step) * totals_of(p, step) * words_of(p->work[k]);
    }
    x->way = x->shuffles   ? x->barriers ? "shuffles, shared memory" : "shuffles"
             : x->barriers ? "shared memory"
                           : "registers";
}

/* ---- products ---- */

/* One write of a side: rows k of the lanes differ. */
static TlBanks dot_write(const TlDotPlan *p, const TlDotSide *s, const TlDotWrite *w, int lane_bits,
                         uint32_t bytes)
{
    uint32_t at[64], k, mask = p->nrounds == 1 ? ~0u : p->rows - 1;
    uint64_t on = 0;
    for (uint32_t lane = 0; lane < 1u << lane_bits; lane++) {
        k = tl_thread_map(&s->write_k, lane, 0) ^ w->k;
        uint32_t cell = tl_thread_map(&s->write_cell, lane, 0) ^ w->cell ^ tl_dot_swizzle(s, w->k);
        at[lane] = (cell + (k & mask) * s->row) * bytes;
        on |= (uint64_t)((lane & s->skip_lanes) == 0) << lane;
    }
    return tl_banks_count(at, 1 << lane_bits, on, bytes << s->write_bits);
}

static uint32_t pairs_of(const TlDotPlan *p)
{
    uint32_t n = 0;
    for (uint32_t a = 0; a < p->side[0].nparts; a++)
        for (uint32_t b = 0; b < p->side[1].nparts; b++)
            n += tl_dot_needs(p, a, b);
    return n;
}

static void explain_multiply_add(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    const TlDotPlan *p = tl_dot_plan(e->scratch, op);
    int lane_bits = tl_layout_in_bits(op->out[0]->type->layout, TL_IN_LANE);
    uint32_t bytes = (uint32_t)tl_dtype_bytes(p->sum);
    x->way = "multiply-adds, operands through shared memory";
    x->barriers = 2 * p->nrounds * pairs_of(p) - 1;
    for (int i = 0; i < 2; i++) {
        const TlDotSide *s = &p->side[i];
        for (uint32_t k = 0; k < s->nwrites; k++)
            add_banks(x, dot_write(p, s, &s->writes[k], lane_bits, bytes), 1);
        TlBanks read = tl_banks_of_map(&s->read_cell, bytes, lane_bits, 0, bytes << s->vec_bits);
        add_banks(x, read, (uint64_t)s->nvectors * p->k);
    }
}

/* The number of instructions of each warp. */
static int64_t instructions_of(const TlOp *op, const TlMma *mma)
{
    TL_ASSERT(mma->m > 0 && mma->n > 0 && mma->k > 0, "%s has no shape", mma->name);
    const TlType *acc = op->out[0]->type, *a = tl_in(op, 0)->type;
    int64_t lanes = (int64_t)1 << tl_layout_in_bits(acc->layout, TL_IN_LANE);
    int64_t each = mma->m * mma->n / lanes, k = a->shape[a->rank - 1];
    return tl_layout_registers(acc->layout) / (each ? each : 1) * ((k + mma->k - 1) / mma->k);
}

/* Of one that became a batch of parts, as it was. */
static TlDotShape shape_of(const TlOp *op, const TlMma *mma, int warps, bool turned)
{
    TlDotShape s = tl_dot_shape(op, mma, warps, turned);
    int64_t parts = tl_remark_of(op, TL_REMARK_PARTS_OF_K);
    if (parts) {
        s.rank = 2;
        s.batch = 1;
        s.k *= (int32_t)parts;
    }
    return s;
}

/* Of a product that each warp does for itself, where one could be into tensor memory. */
static const char *why_not_in_tensor(const TlExplain *e, const TlOp *op, const TlMma *mma)
{
    const TlType *c = op->out[0]->type;
    const TlMma *tensor = mma ? tl_tensor_mma_for(mma->type, c->shape[c->rank - 2]) : NULL;
    bool integer = tensor && tensor->type[TL_MMA_C] == TL_I32;
    if (!tensor || (integer && !(e->target->can & TL_CAN_TENSOR_I8)))
        return tl_warpgroup_fault_text(TL_WARPGROUP_TENSOR_TYPES);
    TlDotShape shape = shape_of(op, tensor, tl_block_warps(op->block), false);
    TlWarpgroupFault fault = tl_warpgroup_fault(e->axis, op, &shape);
    bool full = tl_tensor_columns_of(shape.m, shape.n) > TL_TENSOR_COLUMNS,
         chained = tl_dots_are_chained(e->fn, e->scratch, op->block);
    return tl_warpgroup_fault_text(fault     ? fault
                                   : full    ? TL_WARPGROUP_TENSOR_FULL
                                   : chained ? TL_WARPGROUP_TENSOR_CHAINED
                                             : TL_WARPGROUP_TENSOR_ROOM);
}

/* Of a product that each warp does for itself, where warpgroups could. */
static const char *why_no_warpgroup(const TlExplain *e, const TlOp *op, const TlMma *mma)
{
    if (e->target->can & TL_CAN_TENSOR)
        return why_not_in_tensor(e, op, mma);
    if (!(e->target->can & TL_CAN_WARPGROUP))
        return "";
    if (!mma)
        return tl_warpgroup_fault_text(TL_WARPGROUP_TYPES);
    int warps = tl_block_warps(op->block);
    const TlMma *turned = tl_turned_mma(mma);
    TlDotShape shape = shape_of(op, mma, warps, false),
               other = shape_of(op, turned ? turned : mma, warps, true);
    TlWarpgroupFault fault = tl_warpgroup_fault(e->axis, op, &shape),
                     of_other = tl_warpgroup_fault(e->axis, op, &other);
    const char *why = tl_warpgroup_fault_text(fault ? fault : TL_WARPGROUP_ROOM);
    if (fault != TL_WARPGROUP_ROWS)
        return why;
    return tl_format(e->out, "%s; of the transposed operands': %s", why,
                     of_other ? tl_warpgroup_fault_text(of_other) : "it would cost more");
}

/* Of operands that are multiplied by scales before, or one that is as wide as the other. */
static const char *why_other_operands(const TlExplain *e, const TlOp *op)
{
    static const char *const WORDS[] = {
#define SCALE(ID, text) [TL_SCALE_##ID] = text,
#include "codegen/report/explain.def"
    };
    _Static_assert(sizeof WORDS / sizeof *WORDS == TL_SCALE_COUNT, "words for each TlScaleFault");
    TL_ASSERT(op->opcode == TL_OP_DOT_ASYNC || op->nin == 3 || tl_mma_of(op),
              "scales without an instruction");
    TlScaleFault why = (TlScaleFault)tl_remark_of(op, TL_REMARK_SCALED);
    if (tl_remark_of(op, TL_REMARK_WIDENED))
        return "; f4e2m1 becomes f8e4m3 before it, exactly, as beside f8 it would be no faster";
    return why ? tl_format(e->out, "; operands are multiplied by their scales before, as %s",
                           WORDS[why])
               : "";
}

static void explain_dot(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    const TlMma *mma = tl_mma_of(op);
    const TlType *a = tl_in(op, 0)->type;
    x->macs = (uint64_t)tl_type_elems(op->out[0]->type) * (uint64_t)a->shape[a->rank - 1];
    x->matrix_bits = mma ? tl_dtype_bits(a->dtype) : 0;
    x->why = why_no_warpgroup(e, op, mma);
    if (!mma) {
        explain_multiply_add(e, op, x);
        x->way = tl_format(e->out, "%s%s", x->way, why_other_operands(e, op));
        return;
    }
    x->instructions = (uint32_t)instructions_of(op, mma);
    int64_t parts = tl_remark_of(op, TL_REMARK_PARTS_OF_K);
    x->way = tl_format(e->out, "%u %s in each warp%s%s", x->instructions, mma->name,
                       parts ? tl_format(e->scratch, "; k in %lld parts, as it costs less than "
                                         "warps along m and n", (long long)parts) : "",
                       why_other_operands(e, op));
}

/* What an instruction reads of shared memory: 32 bytes of k of its rows of A, unless that is in
 * registers, and of each column of B that this program has; a warp's share, in 128 bytes. */
static uint32_t async_wavefronts(const TlAsyncDot *d, const TlAsyncPlan *p, uint32_t instructions)
{
    enum { WAVEFRONT = 128 };
    const TlTensorMma *tensor = tl_tensor_mma_of(p->mma);
    int32_t all = tensor ? tensor->rows : TL_GROUP_ROWS,
            rows = (d->side[TL_MMA_A].buf ? all : 0) + (p->pair ? p->n / 2 : p->n);
    return instructions * (uint32_t)rows * TL_GROUP_STEP / (TL_GROUP_WARPS * WAVEFRONT);
}

/* Elements of K that one of the operand's type is: two where it is a pair of f4e2m1. */
static int elements_of(const TlMma *mma)
{
    return mma->each && mma->type[TL_MMA_A] == TL_U8 ? 2 : 1;
}

/* Of A that threads compute: where it is for a product into tensor memory, and what that costs. */
static const char *place_of_a(const TlExplain *e, const TlOp *op, const TlAsyncDot *d)
{
    int64_t there = tl_remark_of(op, TL_REMARK_A_THERE),
            shared = tl_remark_of(op, TL_REMARK_A_SHARED);
    const TlValue *a = d->side[TL_MMA_A].tensor;
    if (!there)
        return "";
    const char *other = shared
                            ? tl_format(e->scratch, "by shared memory %lld", (long long)shared - 1)
                            : "shared memory has no room";
    return tl_format(e->scratch, "%s: there %lld issue slots of a warp, %s",
                     a ? tl_format(e->scratch, ", A in %d", (int)tl_tensor_columns(a->type))
                       : ", A in shared memory",
                     (long long)there - 1, other);
}

/* All four warps of a warpgroup do each instruction together. */
static void explain_dot_async(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    TlAsyncDot d = tl_async_dot(op);
    const TlMma *mma = tl_mma_find(tl_attr(op, TL_ATTR_MMA)->u.s);
    const TlAsyncPlan *p = tl_async_plan(e->out, mma, d.side, d.acc->type);
    x->macs = (uint64_t)tl_type_elems(op->out[0]->type) * (uint64_t)p->k;
    x->matrix_bits = tl_dtype_bits(mma->type[0]);
    x->instructions = p->strips.len * (uint32_t)(p->k / mma->k);
    x->wavefronts = x->least = async_wavefronts(&d, p, x->instructions);
    int32_t scales = tl_tensor_dot_scales(&d);
    const TlTensorMma *tensor = tl_tensor_mma_of(mma);
    if (tensor)
        x->way = tl_format(e->out,
                           "%u tcgen05.mma m%dn%dk%d by one thread%s, sums in %d columns "
                           "of tensor memory%s%s%s",
                           x->instructions, (int)tensor->rows << (int)p->pair, (int)p->n,
                           (int)mma->k * elements_of(mma), p->pair ? " of a pair" : "",
                           (int)tl_tensor_columns(d.acc->type),
                           scales ? tl_format(e->scratch, ", scales in %d", (int)scales) : "",
                           place_of_a(e, op, &d), why_other_operands(e, op));
    else
        x->way = tl_format(e->out, "%u wgmma.m64n%dk%d in each warpgroup%s", x->instructions,
                           (int)p->n, (int)mma->k, why_other_operands(e, op));
}

/* ---- buffers ---- */

/* The bank conflicts of one access of a warp. */
static TlBanks buffer_banks(const TlBufPlan *p, const TlBufAccess *a, int lane_bits, uint32_t skip,
                            uint32_t bytes)
{
    enum { ROWS = 8, MOST_LANES = 64 }; /* of a matrix of ldmatrix; of a warp, on any GPU */
    uint32_t at[MOST_LANES];
    uint64_t on = 0;
    bool each = p->kind == TL_BUF_VECTOR || p->kind == TL_BUF_COLUMNS; /* has a place */
    int lanes = each ? 1 << lane_bits : ROWS * p->words;
    for (int lane = 0; lane < lanes; lane++) {
        at[lane] = a->outer + (tl_thread_map(&p->inner, (uint32_t)lane, 0) ^ a->inner);
        for (int k = 0; k < p->nfar; k++)
            at[lane] += p->far[k].stride *
                        (tl_thread_map(&p->far[k].thread, (uint32_t)lane, 0) ^ a->far_at[k]);
        on |= (uint64_t)((lane & (int)skip) == 0) << lane;
    }
    return tl_banks_count(at, lanes, on, bytes);
}

static const char *buffer_way(const TlExplain *e, const TlBufPlan *p, const TlOp *op)
{
    static const char *const ways[] = {[TL_BUF_VECTOR] = "shared memory",
                                       [TL_BUF_MATRIX] = "ldmatrix",
                                       [TL_BUF_MATRIX_TRANS] = "ldmatrix.trans",
                                       [TL_BUF_MATRIX_8] = "ldmatrix.trans.b8",
                                       [TL_BUF_COLUMNS] = "transposing reads"},
                             *const storing[] = {[TL_BUF_MATRIX] = "stmatrix",
                                                 [TL_BUF_MATRIX_TRANS] = "stmatrix.trans",
                                                 [TL_BUF_MATRIX_8] = "stmatrix.trans.b8"};
    if (tl_copy_is_spread(op))
        return "asynchronously to shared memory, between the instructions of the product";
    if (tl_attr(op, TL_ATTR_ASYNC))
        return "asynchronously to shared memory";
    if (p->kind == TL_BUF_VECTOR)
        return ways[p->kind];
    if (p->kind == TL_BUF_COLUMNS)
        return tl_format(e->out, "%u %s in each warp", p->naccesses, ways[p->kind]);
    const char *way = op->opcode == TL_OP_PUT ? storing[p->kind] : ways[p->kind];
    bool tall = p->kind == TL_BUF_MATRIX_8 && op->opcode == TL_OP_GET; /* 16 rows, not 8 */
    return tl_format(e->out, "%u %s of %d in each warp", p->naccesses, way, p->words >> tall);
}

/* The plan that the lowering follows (simt_staged.c). */
static const TlBufPlan *buffer_plan(const TlExplain *e, const TlOp *op, const TlType *tile,
                                    const TlType *buf)
{
    enum { ANY = 16 };
    if (op->opcode == TL_OP_GET)
        return tl_buf_plan(e->scratch, tile, buf, ANY, tl_leaf_gets(e->target));
    if (op->opcode == TL_OP_PUT)
        return tl_buf_plan(e->scratch, tile, buf, ANY, tl_leaf_puts(e->target));
    return tl_copy_plan(e->scratch, op);
}

static void explain_buffer_use(const TlExplain *e, const TlOp *op, const TlType *tile,
                               const TlValue *buf, tilec_report_exchange *x)
{
    enum { ROW_BYTES = 16 };
    const TlBufPlan *p = buffer_plan(e, op, tile, buf->type);
    uint32_t copies[TL_LAYOUT_MAX_IN], bytes = (uint32_t)tl_dtype_bytes(tile->dtype) * p->nregs;
    int lane = tl_layout_in_index(tile->layout, TL_IN_LANE);
    bool matrices = p->kind != TL_BUF_VECTOR && p->kind != TL_BUF_COLUMNS;
    tl_layout_free_masks(tile->layout, copies);
    x->way = buffer_way(e, p, op);
    for (uint32_t i = 0; i < p->naccesses; i++)
        add_banks(x,
                  buffer_banks(p, &p->accesses[i], tl_layout_in_bits(tile->layout, TL_IN_LANE),
                               op->opcode == TL_OP_GET ? 0 : copies[lane],
                               matrices ? ROW_BYTES : bytes),
                  1);
}

/* ---- bulk copies ---- */

static const char *const BULK_WORDS[] = {
#define BULK(ID, why) [TL_BULK_##ID] = why,
#include "codegen/report/explain.def"
};
_Static_assert(sizeof BULK_WORDS / sizeof *BULK_WORDS == TL_BULK_COUNT,
               "words for each TlBulkFault");

/* Whom the boxes are for; why for this program only. */
static void explain_programs(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    unsigned n = (unsigned)tl_attr_int(op, TL_ATTR_CLUSTER, 1);
    if (tl_attr_flag(op, TL_ATTR_PAIR))
        x->way = tl_format(e->out, "%s; %s, which the barrier of the first program counts", x->way,
                           tl_op_place(op).buf->type->halved
                               ? "this program's half of what a pair multiplies by"
                               : "this program's rows of a pair's product");
    else if (n > 1)
        x->way = tl_format(e->out,
                           "%s; each of the %u programs of a cluster begins 1/%u of them, for all",
                           x->way, n, n);
    else if (tl_cluster_size(e->fn) > 1 && e->target->can & TL_CAN_MULTICAST)
        x->why = tl_format(
            e->out, "each program brings its own: %s",
            tl_share_fault_text(
                tl_share_fault(e->fn, e->scratch, op, tl_op_place(op).buf->type)));
}

/* Nobody's instruction writes them: each warp's share of the wavefronts that they take. */
static void explain_bulk(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    enum { WAVEFRONT = 128 };
    TlBulk b;
    bool known = tl_bulk_plan(e->scratch, op, tl_op_place(op).buf->type, &b);
    TL_ASSERT(known, "a bulk copy that no box makes");
    x->way = tl_format(e->out, "bulk %s, begun by one thread: %u box%s of %d x %d elements",
                       op->opcode == TL_OP_BULK_STORE ? "store" : "copy", b.boxes.len,
                       b.boxes.len == 1 ? "" : "es", b.rows, b.columns);
    int64_t at_once = (int64_t)WAVEFRONT * tl_roof_warps(e->k);
    x->wavefronts = x->least = (b.bytes + at_once - 1) / at_once;
}

/* Of a tile of memory that goes to a buffer by other ways, where the target has bulk copies. */
static const char *why_no_bulk(const TlExplain *e, const TlOp *op)
{
    bool put = op->opcode == TL_OP_PUT;
    const TlOp *access = put ? tl_explain_load_of(op) : op;
    const TlValue *buf = put ? tl_in(op, 0) : tl_op_place(op).buf;
    if (!(e->target->can & TL_CAN_BULK) || !access)
        return "";
    bool shared = put && tl_in(op, 2)->uses->next, /* with what computes */
        warpgroups = e->target->can & TL_CAN_WARPGROUP;
    TlBulkFault fault = shared ? TL_BULK_READERS
                               : tl_bulk_fault(e->scratch, e->axis, access, buf, warpgroups);
    return tl_format(e->out, "no bulk copy: %s", BULK_WORDS[fault]);
}

static void explain_copy(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    if (tl_is_bulk_copy(op)) {
        explain_bulk(e, op, x);
        explain_programs(e, op, x);
        return;
    }
    explain_buffer_use(e, op, op->out[0]->type, tl_op_place(op).buf, x);
    x->why = why_no_bulk(e, op);
}

static void explain_put(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    explain_buffer_use(e, op, tl_in(op, 2)->type, tl_in(op, 0), x);
    x->why = why_no_bulk(e, op);
}

/* ---- tables ---- */

enum { MOST_LANES = 64 };

/* Accesses to the elements of a tile in its table, vector by vector. Of lanes that hold the same
 * the first writes, and all read; those outside read the first element. */
static void add_table_accesses(const TlType *type, const TlTablePlan *p, uint32_t bytes,
                               int vec_bits, bool reads, tilec_report_exchange *x)
{
    const TlLayout *l = type->layout;
    int lanes = 1 << tl_layout_in_bits(l, TL_IN_LANE), lane = tl_layout_in_index(l, TL_IN_LANE);
    uint32_t at[MOST_LANES], in[TL_IN_COUNT] = {0}, same[TL_IN_COUNT] = {0};
    TL_ASSERT(lanes <= MOST_LANES, "a warp of %d lanes", lanes);
    tl_layout_free_masks(l, same);
    for (int64_t r = 0; r < tl_layout_registers(l); r += 1 << vec_bits) {
        uint64_t on = 0;
        for (int k = 0; k < lanes; k++) {
            int32_t coord[TL_MAX_RANK];
            uint32_t number = 0;
            bool inside = true;
            if (lane >= 0)
                in[lane] = (uint32_t)k;
            tl_layout_apply_reg(l, r, in, coord);
            for (int d = 0; d < type->rank; d++) {
                number += (uint32_t)coord[d] * p->stride[d];
                inside = inside && coord[d] < type->shape[d];
            }
            at[k] = inside ? number * bytes : 0;
            bool first = lane < 0 || !((uint32_t)k & same[lane]);
            on |= (uint64_t)(reads || (inside && first)) << k;
        }
        if (on)
            add_banks(x, tl_banks_count(at, lanes, on, bytes << vec_bits), 1);
    }
}

static void add_table_writes(const TlType *type, const TlTablePlan *p, uint32_t bytes, int vec_bits,
                             tilec_report_exchange *x)
{
    add_table_accesses(type, p, bytes, vec_bits, false, x);
}

/* Every thread reads all elements, each at the same time as all others. */
static void add_table_reads(const TlOp *op, const TlTablePlan *p, uint32_t bytes,
                            tilec_report_exchange *x)
{
    int lanes = 1 << lane_bits_of(op);
    uint32_t at[MOST_LANES] = {0};
    uint64_t all = lanes == MOST_LANES ? UINT64_MAX : ((uint64_t)1 << lanes) - 1;
    add_banks(x, tl_banks_count(at, lanes, all, bytes * p->counted_at_once),
              p->elems / p->counted_at_once);
}

static void explain_counting(const TlOp *op, const TlTablePlan *p, tilec_report_exchange *x)
{
    add_table_writes(tl_in(op, 0)->type, p, p->elem_bytes, p->vec_bits, x);
    add_table_reads(op, p, p->elem_bytes, x);
    if (!p->weight_bytes)
        return;
    add_table_writes(tl_in(op, 1)->type, p, p->weight_bytes, p->weight_vec_bits, x);
    add_table_reads(op, p, p->weight_bytes, x);
}

/* Zeros of spare words: a warp's are neighbours. */
static void add_spare_zeros(const TlTablePlan *p, int lanes, tilec_report_exchange *x)
{
    uint32_t at[MOST_LANES];
    TL_ASSERT(0 < lanes && lanes <= MOST_LANES, "a warp of %d lanes", lanes);
    for (int k = 0; k < lanes; k++)
        at[k] = (uint32_t)k * p->elem_bytes;
    uint64_t all = lanes == MOST_LANES ? UINT64_MAX : ((uint64_t)1 << lanes) - 1;
    add_banks(x, tl_banks_count(at, lanes, all, p->elem_bytes), p->nrounds);
}

/* Zeros and results; which bins a warp adds to at once is not known. */
static void explain_adding(const TlOp *op, const TlTablePlan *p, tilec_report_exchange *x)
{
    const TlType *bins = op->out[0]->type;
    add_table_accesses(bins, p, p->elem_bytes, p->vec_bits, false, x);
    add_spare_zeros(p, 1 << lane_bits_of(op), x);
    for (uint32_t i = 0; i < p->nrounds; i++)
        add_table_accesses(bins, p, p->elem_bytes, p->vec_bits, true, x);
    x->barriers = 3 * p->nrounds - 1;
}

static void explain_histogram(const TlExplain *e, const TlOp *op, const TlTablePlan *p,
                              tilec_report_exchange *x)
{
    TlHistogramWay way = tl_histogram_way(op, op->out[0]->type->layout);
    x->way = tl_format(e->out, "%s in shared memory, %u %s",
                       p->adds ? "values add to bins" : "bins count a table of values", p->nrounds,
                       p->nrounds == 1 ? "round" : "rounds");
    x->why = tl_format(e->out, "%lld cycles of a thread by additions, %lld by counting",
                       (long long)way.adding, (long long)way.counting);
    if (*way.why_not)
        x->why = tl_format(e->out, "%s, so no additions", way.why_not);
    if (p->adds)
        explain_adding(op, p, x);
    else
        explain_counting(op, p, x);
}

/* Which elements a warp gathers at once is not known: no wavefronts. */
static void explain_table(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    TlTablePlan p = tl_table_plan(op);
    x->way = tl_format(e->out, "a table in shared memory, %u %s", p.nrounds,
                       p.nrounds == 1 ? "round" : "rounds");
    x->barriers = 2 * p.nrounds - 1;
    if (op->opcode == TL_OP_HISTOGRAM)
        explain_histogram(e, op, &p, x);
}

/* ---- parts ---- */

static const char *why_in_parts(const TlExplain *e, const TlOp *op, const char *why)
{
    if (!tl_op_goes_in_parts(op))
        return why;
    return tl_format(e->out, "%s%sin parts of %u bytes, as shared memory has no room for %u", why,
                     *why ? "; " : "", tl_op_shared_bytes(e->scratch, op),
                     tl_op_whole_bytes(e->scratch, op));
}

/* ---- all ---- */

/* Copies between memory and buffers are accesses of memory; a barrier moves nothing. */
static TlExchangeKind kind_of(const TlOp *op, const tilec_report_exchange *x)
{
    if (x->macs)
        return x->matrix_bits ? TL_EXCHANGE_MATRIX : TL_EXCHANGE_ARITH;
    if (tl_op_info(op->opcode)->flags & (F_READ | F_WRITE))
        return TL_EXCHANGE_MEMORY;
    return op->nout || op->nin ? TL_EXCHANGE_SHARED : TL_EXCHANGE_SYNC;
}

static const TlType *tile_of(const TlOp *op)
{
    if (op->opcode == TL_OP_PUT)
        return tl_in(op, 2)->type;
    if (op->opcode == TL_OP_REDUCE || op->opcode == TL_OP_SCAN)
        return tl_in(op, 0)->type;
    return op->nout ? op->out[0]->type : NULL;
}

/* The alloc of the buffer that it works on; or what has one for itself. */
static const TlOp *buffer_op(const TlOp *op)
{
    if (op->opcode == TL_OP_PUT || op->opcode == TL_OP_GET)
        return tl_buf_alloc(tl_in(op, 0));
    bool placed = op->opcode == TL_OP_COPY || op->opcode == TL_OP_BULK_STORE;
    return placed ? tl_buf_alloc(tl_op_place(op).buf) : op;
}

static void explain_get(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    explain_buffer_use(e, op, op->out[0]->type, tl_in(op, 0), x);
}

static void explain_barrier(const TlExplain *e, const TlOp *op, tilec_report_exchange *x)
{
    (void)e, (void)op;
    x->way = "";
    x->barriers = 1;
}

/* The ops by which threads exchange something. */
static void (*const EXPLAIN[TL_OP_COUNT])(const TlExplain *, const TlOp *,
                                          tilec_report_exchange *) = {
    [TL_OP_CONVERT] = explain_convert,
    [TL_OP_REDUCE] = explain_reduce,
    [TL_OP_SCAN] = explain_scan,
    [TL_OP_DOT] = explain_dot,
    [TL_OP_DOT_ASYNC] = explain_dot_async,
    [TL_OP_GATHER] = explain_table,
    [TL_OP_HISTOGRAM] = explain_table,
    [TL_OP_REGROUP] = explain_table,
    [TL_OP_PUT] = explain_put,
    [TL_OP_GET] = explain_get,
    [TL_OP_COPY] = explain_copy,
    [TL_OP_BULK_STORE] = explain_bulk,
    [TL_OP_BARRIER] = explain_barrier};

void tl_explain_exchanges(TlExplain *e)
{
    TL_VEC(tilec_report_exchange) all = {0};
    for (const TlOp *op = e->fn->body->first; op; op = tl_walk_next(op, NULL)) {
        tilec_report_exchange x = {.op = tl_op_info(op->opcode)->text, .way = "", .why = ""};
        if (!EXPLAIN[op->opcode] || (op->opcode == TL_OP_REDUCE && !tl_in(op, 0)->type->rank))
            continue;
        EXPLAIN[op->opcode](e, op, &x);
        const TlType *t = tile_of(op);
        x.why = why_in_parts(e, op, x.why);
        x.position = tl_explain_position(e, op->loc);
        x.branch = tl_explain_branch(op);
        x.loops = tl_explain_loops(op);
        x.loop = tl_explain_loop(e, op);
        x.order = tl_position_of(&e->order, op).first;
        x.share = tl_explain_share(x.branch);
        x.ahead = op->opcode == TL_OP_PUT || op->opcode == TL_OP_COPY ? tl_explain_ahead(op) : 0;
        x.buffer = tl_explain_buffer(e, buffer_op(op));
        x.kind = tl_exchange_kind_name(kind_of(op, &x));
        x.bytes = t ? (uint64_t)tl_type_elems(t) * (uint64_t)tl_dtype_bytes(t->dtype) : 0;
        tl_vec_push(e->out, &all, x);
    }
    e->k->exchanges = all.data;
    e->k->nexchanges = all.len;
}
