/* stress-layouts: gives tiles random legal layouts, with converts between them; the meaning stays.
 * It tests conversions and the SIMT lowering with layouts that no heuristic would choose.
 *
 *     %c = add %a, %b : tile<f32, 512, #0>
 *  =>
 *     %d = convert %a : tile<f32, 512, #1>
 *     %e = convert %b : tile<f32, 512, #1>
 *     %c = add %d, %e : tile<f32, 512, #1>
 *
 * With `seed` (the option, else --stress-layouts on the command line; 0: nothing happens), for all
 * ops in program order:
 *  1. existing converts are removed;
 *  2. the op gets a layout: usually a new one, else that of its first tile, or its old one; a
 *     reduction and a store get it through their operands, a reshape on the side that determines
 *     the other; each value that loops and branches carry gets one;
 *  3. operands that need another layout are converted right before the op.
 *
 * A random layout (layout `made`): each axis gets a chunk of 2^k, which may be the smallest that
 * holds it, smaller (then there are repetitions), or rarely twice as large (padding). An
 * invertible matrix over the bits of the chunks is drawn, and its columns are dealt out to
 * registers, lanes and warps in random places; lanes and warps that get none hold copies. If there
 * are enough threads, a value has fewer than MAX_REGISTERS registers. */
#include "ir/plan/mma.h"
#include "passes/pass.h"
#include "passes/layout/relayout.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_REGISTERS = 64, TRIES = 16, MAX_COLUMNS = 32 };

typedef struct Stress {
    TlFn *fn;
    TlCtx *ctx;
    uint64_t state;
    int lane_bits, warp_bits;
} Stress;

static uint32_t draw(Stress *s, uint32_t n)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % n;
}

static int draw_between(Stress *s, int low, int high)
{
    return high <= low ? low : low + (int)draw(s, (uint32_t)(high - low + 1));
}

/* ---- a random layout ---- */

/* Chunks and repetitions; gives the repetitions of all axes. */
static int64_t draw_chunks(Stress *s, const TlType *t, TlLayout *made)
{
    int64_t reps = 1;
    for (int d = 0; d < t->rank; d++) {
        int full = tl_ceil_log2(t->shape[d]), kind = draw_between(s, 0, 9);
        int chunk = kind < 6 ? full : kind < 9 ? draw_between(s, 0, full) : full + 1;
        made->out_bits[d] = (uint8_t)chunk;
        made->reps[d] = (t->shape[d] + ((int32_t)1 << chunk) - 1) >> chunk;
        reps *= made->reps[d];
    }
    return reps;
}

/* An invertible matrix: a permutation, and often columns added to others. */
static void draw_columns(Stress *s, int n, uint32_t *columns)
{
    for (int i = 0; i < n; i++) {
        int j = draw_between(s, 0, i);
        columns[i] = columns[j];
        columns[j] = 1u << i;
    }
    for (int k = n > 1 && draw(s, 2) ? draw_between(s, 1, 2 * n) : 0; k > 0; k--) {
        int i = draw_between(s, 0, n - 1), j = draw_between(s, 0, n - 1);
        columns[i] ^= i == j ? 0 : columns[j];
    }
}

/* Bit i of a column: the bits of the axes' chunks one after the other. */
static void put_column(TlLayout *made, int in, int bit, uint32_t column)
{
    for (int d = 0; d < made->nout; d++) {
        made->basis[in][bit][d] = (int32_t)(column & ((1u << made->out_bits[d]) - 1));
        column >>= made->out_bits[d];
    }
}

/* n columns to different ones of the input's bits. */
static void deal(Stress *s, TlLayout *made, int in, int n, const uint32_t *columns)
{
    int free_bits[TL_LAYOUT_MAX_BITS], nfree = made->in_bits[in];
    for (int i = 0; i < nfree; i++)
        free_bits[i] = i;
    for (int i = 0; i < n; i++) {
        int k = draw_between(s, 0, nfree - 1);
        put_column(made, in, free_bits[k], columns[i]);
        free_bits[k] = free_bits[--nfree];
    }
}

/* False: with these chunks it would take too many registers. */
static bool draw_layout(Stress *s, const TlType *t, int64_t limit, TlLayout *made)
{
    *made = (TlLayout){.nin = 3,
                       .in = {TL_IN_REG, TL_IN_LANE, TL_IN_WARP},
                       .nout = t->rank,
                       .reps = {1, 1, 1, 1, 1}};
    made->in_bits[1] = (uint8_t)s->lane_bits;
    made->in_bits[2] = (uint8_t)s->warp_bits;
    int64_t reps = draw_chunks(s, t, made);
    int n = tl_layout_total_out_bits(made), threads = s->lane_bits + s->warp_bits;
    int least = n > threads ? n - threads : 0, most = least;
    if (n >= MAX_COLUMNS || reps << least > limit)
        return false;
    while (most < n && reps << (most + 1) <= limit)
        most++;
    int regs = draw_between(s, least, most);
    int lanes = draw_between(s, n - regs > s->warp_bits ? n - regs - s->warp_bits : 0,
                             n - regs < s->lane_bits ? n - regs : s->lane_bits);
    uint32_t columns[MAX_COLUMNS];
    draw_columns(s, n, columns);
    made->in_bits[0] = (uint8_t)regs;
    deal(s, made, 0, regs, columns);
    deal(s, made, 1, lanes, columns + regs);
    deal(s, made, 2, n - regs - lanes, columns + regs + lanes);
    return true;
}

static const TlLayout *random_layout(Stress *s, const TlType *t)
{
    TlLayout made;
    for (int64_t limit = MAX_REGISTERS;; limit *= 2)
        for (int i = 0; i < TRIES; i++)
            if (draw_layout(s, t, limit, &made))
                return tl_layout_intern(s->ctx, &made);
}

/* ---- ops ---- */

static void convert_operand(TlOp *op, uint32_t i, const TlLayout *l)
{
    if (!l || l == tl_in(op, i)->type->layout)
        return;
    TlBuilder b = tl_builder_before(op);
    tl_set_operand(op, i, tl_relayout(&b, tl_in(op, i), l));
}

static void fit_operands(TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++)
        convert_operand(op, i, tl_wanted_layout(op, i));
}

static void set_layouts(TlValue *const *values, uint32_t n, const TlLayout *l)
{
    for (uint32_t i = 0; i < n; i++)
        if (tl_has_layout(values[i]->type))
            tl_set_layout(values[i], l);
}

/* The layout of the first operand that has one and from which the result's follows. */
static const TlLayout *following(Stress *s, const TlOp *op)
{
    for (uint32_t i = 0; i < op->nin; i++) {
        const TlType *t = tl_in(op, i)->type;
        const TlLayout *l =
            tl_has_layout(t) ? tl_layout_for_result(s->ctx, op, i, t->layout) : NULL;
        if (l && tl_layout_registers(l) <= MAX_REGISTERS)
            return l;
    }
    return NULL;
}

static const TlLayout *choose(Stress *s, const TlOp *op, const TlType *t)
{
    uint32_t kind = draw(s, 8);
    if (kind == 0)
        return t->layout;
    const TlLayout *l = kind <= 3 ? following(s, op) : NULL;
    return l ? l : random_layout(s, t);
}

/* One layout for the result and the argument that carry the same value. */
static void stress_carried(Stress *s, TlValue *a, TlValue *b)
{
    if (!tl_has_layout(a->type))
        return;
    const TlLayout *l = random_layout(s, a->type);
    tl_set_layout(a, l);
    if (b)
        tl_set_layout(b, l);
}

static void stress_region_op(Stress *s, TlOp *op)
{
    uint32_t nbefore = op->opcode == TL_OP_WHILE ? op->regions[0]->nargs : 0;
    for (uint32_t i = 0; i < nbefore; i++)
        stress_carried(s, op->regions[0]->args[i], NULL);
    for (uint32_t i = 0; i < op->nout; i++)
        stress_carried(s, op->out[i],
                       op->opcode == TL_OP_FOR     ? op->regions[0]->args[i + 1]
                       : op->opcode == TL_OP_WHILE ? op->regions[1]->args[i]
                                                   : NULL);
}

static void stress_reduce(Stress *s, TlOp *op)
{
    const TlLayout *l = choose(s, op, tl_in(op, 0)->type);
    if (draw(s, 3) == 0)
        l = tl_in(op, 0)->type->layout;
    if (l->nout != tl_in(op, 0)->type->rank) /* it follows from the result's */
        l = random_layout(s, tl_in(op, 0)->type);
    for (uint32_t i = 0; i < op->nin; i++)
        convert_operand(op, i, l);
    set_layouts(op->out, op->nout, tl_layout_for_result(s->ctx, op, 0, l));
}

/* A random result, or a random operand; with all elements everywhere when neither gives the
 * other. */
static void stress_reshape(Stress *s, TlOp *op)
{
    const TlType *from = tl_in(op, 0)->type, *to = op->out[0]->type;
    if (!tl_has_layout(from) || !tl_has_layout(to)) {
        set_layouts(op->out, 1, tl_has_layout(to) ? random_layout(s, to) : NULL);
        return;
    }
    for (int i = 0; i < TRIES; i++) {
        const TlLayout *a = random_layout(s, from), *b = random_layout(s, to);
        const TlLayout *result = tl_layout_reshaped(s->ctx, a, from, to),
                       *operand = tl_layout_reshaped(s->ctx, b, to, from);
        if (i % 2 ? !result : !operand)
            continue;
        convert_operand(op, 0, i % 2 ? a : operand);
        tl_set_layout(op->out[0], i % 2 ? result : b);
        return;
    }
    tl_set_layout(op->out[0], tl_layout_replicated(s->ctx, to, s->lane_bits, s->warp_bits));
    convert_operand(op, 0, tl_layout_replicated(s->ctx, from, s->lane_bits, s->warp_bits));
}

/* Operands that the op takes in any layout. */
static void stress_free_operands(Stress *s, TlOp *op)
{
    uint32_t n = op->opcode == TL_OP_DOT ? 2 : op->opcode == TL_OP_GATHER ? 1 : op->nin;
    for (uint32_t i = 0; i < n; i++)
        if (tl_has_layout(tl_in(op, i)->type) && draw(s, 2))
            convert_operand(op, i, random_layout(s, tl_in(op, i)->type));
}

/* Ops that produce or write a tile. */
static void stress_plain(Stress *s, TlOp *op)
{
    const TlLayout *l = tl_op_layout(op);
    if (op->nout && l) {
        set_layouts(op->out, op->nout, choose(s, op, op->out[0]->type));
    } else if (l) {
        const TlValue *value = tl_op_place(op).value;
        for (uint32_t i = 0; i < op->nin; i++)
            if (tl_in(op, i) == value) {
                convert_operand(op, i, choose(s, op, value->type));
                break;
            }
    }
}

static void stress_op(Stress *s, TlOp *op)
{
    bool is_fixed = op->opcode == TL_OP_DOT && tl_mma_of(op); /* by the matrix instruction */
    bool is_table = op->opcode == TL_OP_GATHER || op->opcode == TL_OP_HISTOGRAM ||
                    op->opcode == TL_OP_REGROUP || (op->opcode == TL_OP_DOT && !is_fixed);
    bool is_debug =
        op->opcode == TL_OP_PRINT || op->opcode == TL_OP_ASSERT || op->opcode == TL_OP_ASSUME;
    if (op->opcode == TL_OP_DOT && tl_is_warpgroup_dot(op))
        stress_free_operands(s, op);
    if (op->opcode == TL_OP_FOR || op->opcode == TL_OP_WHILE || op->opcode == TL_OP_IF)
        stress_region_op(s, op);
    else if (op->opcode == TL_OP_REDUCE)
        stress_reduce(s, op);
    else if (op->opcode == TL_OP_RESHAPE)
        stress_reshape(s, op);
    else if (!is_debug && !is_fixed)
        stress_plain(s, op);
    if (is_table || is_debug)
        stress_free_operands(s, op);
    fit_operands(op);
}

/* Lanes and warps, from any tile. False: there is none. */
static bool find_machine(Stress *s)
{
    for (const TlOp *op = s->fn->body->first; op; op = tl_walk_next(op, NULL))
        for (uint32_t i = 0; i < op->nout; i++) {
            const TlLayout *l = op->out[i]->type->layout;
            if (!l)
                continue;
            s->lane_bits = tl_layout_in_bits(l, TL_IN_LANE);
            s->warp_bits = tl_layout_in_bits(l, TL_IN_WARP);
            return true;
        }
    return false;
}

static uint64_t seed_of(const TlPassCtx *px)
{
    const char *option = px->options ? strstr(px->options, "seed=") : NULL;
    return option ? strtoull(option + strlen("seed="), NULL, 0) : px->machine->stress;
}

TlPassResult tl_pass_stress_layouts(TlFn *fn, TlPassCtx *px)
{
    uint64_t seed = seed_of(px);
    Stress s = {.fn = fn, .ctx = px->ctx, .state = tl_hash(fn->name, strlen(fn->name), seed)};
    if (!seed || tl_fn_level(fn) != TL_LEVEL_LAID_OUT || !find_machine(&s))
        return TL_SAME;
    TL_VEC(TlOp *) ops = {0};
    for (TlOp *op = fn->body->first; op; op = tl_walk_next(op, NULL))
        tl_vec_push(px->scratch, &ops, op);
    for (uint32_t i = 0; i < ops.len; i++) {
        if (ops.data[i]->opcode == TL_OP_CONVERT)
            tl_bypass_convert(ops.data[i]);
        else
            stress_op(&s, ops.data[i]);
    }
    return TL_CHANGED;
}
