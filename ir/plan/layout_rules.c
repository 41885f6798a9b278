/* Derived layouts and the layout rules of ops (layout_rules.h).
 *
 * All but reshape choose among the outputs of a layout: one `pick` with a list of which output
 * comes from where. Interning then drops registers that became copies.
 *
 * A reshape keeps row-major numbers. Axes are cut into the smallest groups of equal products
 * ([3, 64] to [3, 8, 8] is 3 to 3 and 64 to 8, 8); a group of one axis each is copied. In the
 * others the group's row-major number must be `reps` copies of a linear map of `bits` bits, on
 * both sides:
 *
 *     axes    | repetitions only ... | chunk and repetitions | chunk only ...  |
 *     number  = (row-major number of the repetitions) << bits | row-major bits of the chunks
 *
 * The first axis of a group may be padded: what is past the end stays past the end. */
#include "ir/plan/layout_rules.h"
#include "ir/plan/mma.h"
#include <string.h>

/* ---- choosing outputs ---- */

/* l's inputs, outputs of chunk 1, all images zero. */
static TlLayout frame(const TlLayout *l, int nout)
{
    TlLayout r = {.nin = l->nin, .nout = (uint8_t)nout};
    TL_ASSERT(nout <= TL_LAYOUT_MAX_OUT, "layout with %d outputs", nout);
    memcpy(r.in, l->in, sizeof r.in);
    memcpy(r.in_bits, l->in_bits, sizeof r.in_bits);
    for (int d = 0; d < TL_LAYOUT_MAX_OUT; d++)
        r.reps[d] = 1;
    return r;
}

/* Output d of r becomes output `from` of l. */
static void copy_output(TlLayout *r, int d, const TlLayout *l, int from)
{
    TL_ASSERT(d < r->nout && from < l->nout, "output %d of %d", from, (int)l->nout);
    r->out_bits[d] = l->out_bits[from];
    r->reps[d] = l->reps[from];
    for (int i = 0; i < l->nin; i++)
        for (int b = 0; b < l->in_bits[i]; b++)
            r->basis[i][b][d] = l->basis[i][b][from];
}

/* Output d is l's from[d]; -1: one element. */
static const TlLayout *pick(TlCtx *ctx, const TlLayout *l, int nout, const int *from)
{
    TlLayout r = frame(l, nout);
    for (int d = 0; d < nout; d++)
        if (from[d] >= 0)
            copy_output(&r, d, l, from[d]);
    return tl_layout_intern(ctx, &r);
}

const TlLayout *tl_layout_restricted(TlCtx *ctx, const TlLayout *l, uint32_t outs)
{
    int from[TL_LAYOUT_MAX_OUT], n = 0;
    for (int d = 0; d < l->nout; d++)
        if (outs >> d & 1)
            from[n++] = d;
    return pick(ctx, l, n, from);
}

const TlLayout *tl_layout_expanded(TlCtx *ctx, const TlLayout *l, int axis)
{
    int from[TL_LAYOUT_MAX_OUT];
    TL_ASSERT(axis >= 0 && axis <= l->nout && l->nout < TL_LAYOUT_MAX_OUT, "axis %d", axis);
    for (int d = 0; d <= l->nout; d++)
        from[d] = d == axis ? -1 : d - (d > axis);
    return pick(ctx, l, l->nout + 1, from);
}

const TlLayout *tl_layout_collapsed(TlCtx *ctx, const TlLayout *l, uint32_t outs)
{
    int from[TL_LAYOUT_MAX_OUT];
    for (int d = 0; d < l->nout; d++)
        from[d] = outs >> d & 1 ? -1 : d;
    return pick(ctx, l, l->nout, from);
}

const TlLayout *tl_layout_permuted(TlCtx *ctx, const TlLayout *l, const int64_t *perm)
{
    int from[TL_LAYOUT_MAX_OUT];
    for (int d = 0; d < l->nout; d++) {
        TL_ASSERT(perm[d] >= 0 && perm[d] < l->nout, "not a permutation");
        from[d] = (int)perm[d];
    }
    return pick(ctx, l, l->nout, from);
}

/* The columns of a layout that lie along one axis and no other. */
static int columns_along(TlLayout *l, int axis, int32_t **out)
{
    static const TlInDim order[] = {TL_IN_REG, TL_IN_LANE, TL_IN_WARP};
    int n = 0;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        int i = tl_layout_in_index(l, order[k]), bits = tl_layout_in_bits(l, order[k]);
        for (int b = 0; b < bits; b++) {
            bool other = false;
            for (int d = 0; d < l->nout; d++)
                other |= d != axis && l->basis[i][b][d];
            if (!other && l->basis[i][b][axis])
                out[n++] = &l->basis[i][b][axis];
        }
    }
    return n;
}

const TlLayout *tl_layout_registers_first(TlCtx *ctx, const TlLayout *l, int axis)
{
    TL_ASSERT(axis >= 0 && axis < l->nout, "axis %d of %d", axis, (int)l->nout);
    TlLayout r = *l;
    int32_t *column[TL_LAYOUT_MAX_IN * TL_LAYOUT_MAX_BITS];
    int n = columns_along(&r, axis, column);
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++)
            if (*column[k] < *column[i]) {
                int32_t least = *column[k];
                *column[k] = *column[i];
                *column[i] = least;
            }
    return tl_layout_intern(ctx, &r);
}

const TlLayout *tl_layout_replicated(TlCtx *ctx, const TlType *type, int lane_bits, int warp_bits)
{
    TL_ASSERT(type->kind == TL_TILE && lane_bits >= 0 && warp_bits >= 0,
              "a tile over 2^%d lanes, 2^%d warps", lane_bits, warp_bits);
    TlLayout l = {.nin = 2, .in = {TL_IN_LANE, TL_IN_WARP}, .nout = type->rank};
    l.in_bits[0] = (uint8_t)lane_bits;
    l.in_bits[1] = (uint8_t)warp_bits;
    for (int d = 0; d < TL_LAYOUT_MAX_OUT; d++)
        l.reps[d] = d < type->rank ? type->shape[d] : 1;
    return tl_layout_intern(ctx, &l);
}

/* ---- reshape ---- */

/* Axes [from, from + n) of a layout or a shape. */
typedef struct Group {
    int from, n;
} Group;

typedef struct Flat {
    int bits;
    int64_t reps;
} Flat;

static bool is_whole_chunk(const TlLayout *l, int d, int32_t extent)
{
    return l->reps[d] == 1 && (int32_t)1 << l->out_bits[d] == extent;
}

/* Is the group's row-major number linear in l? */
static bool flatten(const TlLayout *l, const int32_t *shape, Group g, Flat *out)
{
    int d = g.from + g.n - 1;
    *out = (Flat){0, 1};
    for (; d > g.from && is_whole_chunk(l, d, shape[d]); d--)
        out->bits += l->out_bits[d];
    bool exact = tl_layout_extent(l, d) == shape[d];
    if (!exact && d > g.from)
        return false;
    out->bits += l->out_bits[d];
    out->reps = l->reps[d];
    while (--d >= g.from) {
        if (l->out_bits[d] != 0 || l->reps[d] != shape[d])
            return false;
        out->reps *= l->reps[d];
    }
    return out->bits <= 62;
}

/* Chunks and repetitions of the group's axes whose row-major number is f. */
static bool unflatten(Flat f, const int32_t *shape, Group g, TlLayout *r)
{
    for (int d = g.from + g.n - 1; d >= g.from; d--) {
        int32_t extent = shape[d], chunk = 0;
        while (chunk < f.bits && !(extent >> chunk & 1))
            chunk++;
        bool first = d == g.from, whole = (int32_t)1 << chunk == extent;
        if (first)
            chunk = f.bits;
        else if (!whole && chunk != f.bits)
            return false;
        if (chunk > TL_LAYOUT_MAX_BITS)
            return false;
        int64_t reps = first ? f.reps : extent >> chunk;
        if (f.reps % reps != 0 || reps << chunk < extent || reps > INT32_MAX)
            return false;
        r->out_bits[d] = (uint8_t)chunk;
        r->reps[d] = (int32_t)reps;
        f.bits -= chunk;
        f.reps /= reps;
    }
    return true;
}

/* Moves the images: the group's bits of l, last axis lowest, become the group's bits of r. */
static void move_bits(const TlLayout *l, Group from, TlLayout *r, Group to)
{
    for (int i = 0; i < l->nin; i++)
        for (int b = 0; b < l->in_bits[i]; b++) {
            uint64_t v = 0;
            for (int d = from.from; d < from.from + from.n; d++)
                v = v << l->out_bits[d] | (uint64_t)l->basis[i][b][d];
            for (int d = to.from + to.n - 1; d >= to.from; d--) {
                r->basis[i][b][d] = (int32_t)(v & (((uint64_t)1 << r->out_bits[d]) - 1));
                v >>= r->out_bits[d];
            }
        }
}

static bool reshape_group(const TlLayout *l, const TlType *from, Group a, const TlType *to, Group b,
                          TlLayout *r)
{
    if (a.n == 1 && b.n == 1) {
        copy_output(r, b.from, l, a.from);
        return true;
    }
    Flat flat;
    if (!flatten(l, from->shape, a, &flat) || !unflatten(flat, to->shape, b, r))
        return false;
    move_bits(l, a, r, b);
    return true;
}

/* The smallest groups that begin at a->from and b->from; extents of 1 at the end join the last. */
static void next_group(const TlType *from, Group *a, const TlType *to, Group *b)
{
    int64_t x = from->shape[a->from], y = to->shape[b->from];
    a->n = b->n = 1;
    while (x != y) {
        if (x < y)
            x *= from->shape[a->from + a->n++];
        else
            y *= to->shape[b->from + b->n++];
    }
    int na = a->from + a->n, nb = b->from + b->n;
    int64_t rest = 1;
    for (int d = na; d < from->rank; d++)
        rest *= from->shape[d];
    if (rest > 1)
        return;
    a->n += from->rank - na;
    b->n += to->rank - nb;
}

const TlLayout *tl_layout_reshaped(TlCtx *ctx, const TlLayout *l, const TlType *from,
                                   const TlType *to)
{
    if (from->rank == 0 || to->rank == 0 || l->nout != from->rank)
        return NULL;
    TlLayout r = frame(l, to->rank);
    Group a = {0, 0}, b = {0, 0};
    while (a.from < from->rank && b.from < to->rank) {
        next_group(from, &a, to, &b);
        if (!reshape_group(l, from, a, to, b, &r))
            return NULL;
        a.from += a.n;
        b.from += b.n;
    }
    return tl_layout_intern(ctx, &r);
}

/* ---- registers ---- */

int64_t tl_layout_register_at(const TlLayout *l, const int32_t *coordinate)
{
    int32_t chunk[TL_LAYOUT_MAX_OUT];
    int64_t rep = 0;
    for (int d = 0; d < l->nout; d++) {
        chunk[d] = coordinate[d] & (((int32_t)1 << l->out_bits[d]) - 1);
        int32_t r = coordinate[d] >> l->out_bits[d];
        if (coordinate[d] < 0 || r >= l->reps[d])
            return -1;
        rep = rep * l->reps[d] + r;
    }
    int64_t reg = tl_layout_solve(l, TL_IN_REG, chunk);
    return reg < 0 ? -1 : reg | rep << tl_layout_in_bits(l, TL_IN_REG);
}

/* A coordinate past the end of a group's first axis in thread 0 may be inside in other threads, so
 * its number is carried over too. */
int64_t tl_layout_reshape_source(const TlType *from, const TlType *to, int64_t reg)
{
    TL_ASSERT(from->layout && to->layout && reg >= 0, "register %lld", (long long)reg);
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    int32_t x[TL_LAYOUT_MAX_OUT], y[TL_LAYOUT_MAX_OUT];
    Group a = {0, 0}, b = {0, 0};
    tl_layout_apply_reg(to->layout, reg, origin, x);
    while (a.from < from->rank && b.from < to->rank) {
        int64_t number = 0;
        next_group(from, &a, to, &b);
        for (int d = b.from; d < b.from + b.n; d++)
            number = number * to->shape[d] + x[d];
        for (int d = a.from + a.n - 1; d > a.from; number /= from->shape[d--])
            y[d] = (int32_t)(number % from->shape[d]);
        y[a.from] = (int32_t)number;
        a.from += a.n;
        b.from += b.n;
    }
    return tl_layout_register_at(from->layout, y);
}

/* ---- ops ---- */

/* How the layouts of an op's operands and results are related. */
typedef enum Rule {
    RULE_FREE,      /* nothing */
    RULE_SAME,      /* all are equal */
    RULE_BROADCAST, /* operand: one element where its extent is 1 */
    RULE_EXPAND,
    RULE_TRANS,
    RULE_RESHAPE,
    RULE_REDUCE,
    RULE_DOT,    /* operand 2 and the result are equal; 0 and 1 are free, or given by `mma` */
    RULE_GATHER, /* operand 1 and the result are equal; operand 0 is free */
    RULE_ACCESS  /* index tiles, mask, value, other follow from the accessed tile */
} Rule;

static Rule rule_of(TlOpcode opcode)
{
    static const Rule RULES[TL_OP_COUNT] = {
#define OP(ID, text, nin, nout, nregions, rule, attrs, flags, layout, doc)                         \
    [TL_OP_##ID] = RULE_##layout,
#include "ir/ops.def"
    };
    return RULES[opcode];
}

static bool is_tile(const TlType *t)
{
    return t->kind == TL_TILE && t->rank > 0;
}

/* Is the value spread over threads? */
static bool is_spread(const TlType *t)
{
    return is_tile(t) || tl_is_sums(t);
}

static int axis_of(const TlOp *op)
{
    return (int)tl_attr_int(op, TL_ATTR_AXIS, 0);
}

/* The axes that a broadcast repeats. */
static uint32_t unit_axes(const TlOp *op)
{
    const TlType *t = tl_in(op, 0)->type;
    uint32_t axes = 0;
    for (int d = 0; d < t->rank; d++)
        if (t->shape[d] == 1)
            axes |= 1u << d;
    return axes;
}

static const TlLayout *trans_operand(TlCtx *ctx, const TlOp *op, const TlLayout *layout)
{
    const TlAttr *perm = tl_attr(op, TL_ATTR_PERM);
    int64_t inverse[TL_MAX_RANK];
    for (uint32_t i = 0; i < perm->n; i++)
        inverse[perm->u.ints[i]] = i;
    return tl_layout_permuted(ctx, layout, inverse);
}

/* The outputs of the accessed tile that operand number `operand` of a memory op runs along. */
static uint32_t access_outs(const TlOp *op, uint32_t operand)
{
    TlPlace p = tl_op_place(op);
    uint32_t all = (1u << p.rank) - 1;
    if (operand == 0 || operand > p.naxes)
        return all;
    if (p.pointwise)
        return (1u << tl_in(op, operand)->type->rank) - 1;
    int d = 0;
    for (uint32_t i = 0; i + 1 < operand; i++)
        d += p.axes[i].kind != TL_AXIS_SCALAR;
    return 1u << d;
}

const TlLayout *tl_op_layout(const TlOp *op)
{
    if (op->nout)
        return is_spread(op->out[0]->type) ? op->out[0]->type->layout : NULL;
    if (rule_of(op->opcode) != RULE_ACCESS)
        return NULL;
    const TlValue *value = tl_op_place(op).value;
    return is_tile(value->type) ? value->type->layout : NULL;
}

const TlLayout *tl_layout_for_operand(TlCtx *ctx, const TlOp *op, uint32_t operand,
                                      const TlLayout *layout)
{
    TL_ASSERT(operand < op->nin, "operand %u of %u", operand, op->nin);
    if (!layout || !is_tile(tl_in(op, operand)->type))
        return NULL;
    switch (rule_of(op->opcode)) {
    case RULE_FREE:
    case RULE_REDUCE: return NULL;
    case RULE_SAME: return layout;
    case RULE_BROADCAST: return tl_layout_collapsed(ctx, layout, unit_axes(op));
    case RULE_EXPAND: return tl_layout_restricted(ctx, layout, ~(1u << axis_of(op)));
    case RULE_TRANS: return trans_operand(ctx, op, layout);
    case RULE_RESHAPE: return tl_layout_reshaped(ctx, layout, op->out[0]->type, tl_in(op, 0)->type);
    case RULE_DOT:
        if (operand != 2 && tl_is_warpgroup_dot(op))
            return NULL;
        return operand == 2 ? layout : tl_mma_operand_layout(ctx, op, (int)operand, layout);
    case RULE_GATHER: return operand == 1 ? layout : NULL;
    case RULE_ACCESS: return tl_layout_restricted(ctx, layout, access_outs(op, operand));
    }
    return NULL;
}

const TlLayout *tl_layout_for_result(TlCtx *ctx, const TlOp *op, uint32_t operand,
                                     const TlLayout *layout)
{
    TL_ASSERT(operand < op->nin, "operand %u of %u", operand, op->nin);
    if (!layout || (op->nout && !is_spread(op->out[0]->type)))
        return NULL;
    switch (rule_of(op->opcode)) {
    case RULE_FREE: return NULL;
    case RULE_SAME: return layout;
    case RULE_BROADCAST: return unit_axes(op) ? NULL : layout;
    case RULE_EXPAND: return tl_layout_expanded(ctx, layout, axis_of(op));
    case RULE_TRANS: return tl_layout_permuted(ctx, layout, tl_attr(op, TL_ATTR_PERM)->u.ints);
    case RULE_RESHAPE: return tl_layout_reshaped(ctx, layout, tl_in(op, 0)->type, op->out[0]->type);
    case RULE_REDUCE: return tl_layout_restricted(ctx, layout, ~(1u << axis_of(op)));
    case RULE_GATHER: return operand == 1 ? layout : NULL;
    case RULE_DOT: return operand == 2 ? layout : NULL;
    case RULE_ACCESS:
        return access_outs(op, operand) == (1u << tl_op_place(op).rank) - 1 ? layout : NULL;
    }
    return NULL;
}

int32_t tl_block_warps(const TlBlock *b)
{
    TL_ASSERT(b && b->fn, "a block of no function");
    while (b->warps == 0 && b->parent)
        b = b->parent->block;
    return b->warps;
}
