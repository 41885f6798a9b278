/* Planning a matrix product (dot_plan.h).
 *
 * Coordinates of a side are packed: the free axis (M or N) low, the batch above, each as wide as
 * the accumulator has it. Places are coordinates in a basis of the accumulator's own columns, in
 * this order, lowest bits first:
 *
 *     [ registers of a vector | lanes | warps | other registers | repetitions ]
 *
 * Lanes then read neighbours, and a lane whose column is 0 the same as another. */
#include "ir/plan/dot_plan.h"
#include "ir/layout/gf2.h"
#include "ir/plan/shared_plan.h"
#include <string.h>

enum {
    VECTOR_BYTES = 16,
    WORD_BYTES = 4,
    BANK_BITS = 5,
    MOST_UNROLL = 8, /* steps along k */
    MOST_STEPS = 256 /* multiply-adds of a loop's body */
};

typedef struct Planner {
    TlArena *arena;
    TlDotPlan *p;
    TlDotSide *s;
    const TlLayout *acc, *l;                             /* l: of the operand */
    const TlType *type;                                  /* of the operand */
    int acc_free, acc_batch, free_dim, batch_dim, k_dim; /* batches -1: none */
    int free_bits, batch_bits;                           /* of packed coordinates */
    uint32_t bytes;
    int cell_of_bit[TL_LAYOUT_MAX_BITS * 2];
    TlBasis basis;
    int chunk_bits; /* cells of one repetition, log2 */
} Planner;

static int axis_bits(const TlLayout *l, int d)
{
    return d < 0 ? 0 : l->out_bits[d] + tl_ceil_log2(l->reps[d]);
}

/* Packs coordinates; those beyond the accumulator's are cut off. */
static uint64_t pack(const Planner *pl, const int32_t *x, int free_dim, int batch_dim)
{
    uint64_t v = (uint64_t)x[free_dim] & ((1ull << pl->free_bits) - 1);
    if (batch_dim >= 0)
        v |= ((uint64_t)x[batch_dim] & ((1ull << pl->batch_bits) - 1)) << pl->free_bits;
    return v;
}

static uint64_t acc_column(const Planner *pl, int in, int bit)
{
    return pack(pl, pl->acc->basis[in][bit], pl->acc_free, pl->acc_batch);
}

/* ---- cells ---- */

static int add_columns(Planner *pl, TlInDim in)
{
    int i = tl_layout_in_index(pl->acc, in), before = pl->basis.n;
    for (int b = 0; b < tl_layout_in_bits(pl->acc, in); b++)
        tl_basis_add(&pl->basis, acc_column(pl, i, b));
    return pl->basis.n - before;
}

/* How many of the first `v` basis vectors are registers alone: no lane, no warp and no sum of
 * several has a part in them. */
static int undisturbed(const Planner *pl, int v)
{
    uint64_t others = 0;
    for (int i = 0; i < pl->acc->nin; i++)
        for (int b = 0; b < pl->acc->in_bits[i]; b++) {
            uint64_t c = tl_basis_coordinates(&pl->basis, acc_column(pl, i, b));
            others |= (c & (c - 1)) ? c : pl->acc->in[i] == TL_IN_REG ? 0 : c;
        }
    while (v > 0 && others & ((1ull << v) - 1))
        v--;
    return v;
}

static void choose_cells(Planner *pl)
{
    TlDotSide *s = pl->s;
    int most = tl_ceil_log2(VECTOR_BYTES / pl->bytes);
    int regs = add_columns(pl, TL_IN_REG), threads = 0;
    threads += add_columns(pl, TL_IN_LANE);
    threads += add_columns(pl, TL_IN_WARP);
    pl->chunk_bits = pl->basis.n;
    s->vec_bits = undisturbed(pl, regs < most ? regs : most);
    for (int i = 0; i < pl->basis.n; i++)
        pl->cell_of_bit[i] = i < s->vec_bits ? i : i < regs ? i + threads : i - regs + s->vec_bits;
    for (int b = 0; b < pl->free_bits + pl->batch_bits; b++)
        if (tl_basis_add(&pl->basis, 1ull << b))
            pl->cell_of_bit[pl->basis.n - 1] = pl->basis.n - 1;
    int32_t free_reps = pl->acc->reps[pl->acc_free];
    int32_t batch_reps = pl->acc_batch < 0 ? 1 : pl->acc->reps[pl->acc_batch];
    s->row = (uint32_t)(batch_reps > 1 ? batch_reps << tl_ceil_log2(free_reps) : free_reps)
             << pl->chunk_bits;
}

static uint32_t cell_of(const Planner *pl, uint64_t packed)
{
    uint64_t c = tl_basis_coordinates(&pl->basis, packed);
    uint32_t cell = 0;
    for (int i = 0; i < pl->basis.n; i++)
        cell |= (uint32_t)(c >> i & 1) << pl->cell_of_bit[i];
    return cell;
}

/* ---- reading ---- */

static void coordinates(const TlLayout *l, int64_t reg, int32_t *x)
{
    static const uint32_t origin[TL_LAYOUT_MAX_IN];
    tl_layout_apply_reg(l, reg, origin, x);
}

static TlThreadMap thread_map(const Planner *pl, const TlLayout *l,
                              uint32_t (*of)(const Planner *pl, const int32_t *image))
{
    TlThreadMap m = {{0}, {0}};
    int lane = tl_layout_in_index(l, TL_IN_LANE), warp = tl_layout_in_index(l, TL_IN_WARP);
    TL_ASSERT(tl_layout_in_bits(l, TL_IN_LANE) <= TL_MAX_LANE_BITS &&
                  tl_layout_in_bits(l, TL_IN_WARP) <= TL_MAX_WARP_BITS,
              "dot of a layout with too many bits");
    for (int b = 0; b < tl_layout_in_bits(l, TL_IN_LANE); b++)
        m.lane[b] = of(pl, l->basis[lane][b]);
    for (int b = 0; b < tl_layout_in_bits(l, TL_IN_WARP); b++)
        m.warp[b] = of(pl, l->basis[warp][b]);
    return m;
}

static uint32_t acc_cell(const Planner *pl, const int32_t *image)
{
    return cell_of(pl, pack(pl, image, pl->acc_free, pl->acc_batch));
}

static void plan_reads(Planner *pl)
{
    TlDotSide *s = pl->s;
    TlMap seen = {.arena = pl->arena};
    s->vectors = TL_NEW_ARRAY(pl->arena, uint32_t, pl->p->nregs);
    s->vector_reg = TL_NEW_ARRAY(pl->arena, int64_t, pl->p->nregs);
    s->value_of = TL_NEW_ARRAY(pl->arena, uint32_t, pl->p->nregs);
    for (uint32_t r = 0; r < pl->p->nregs; r++) {
        int32_t x[TL_LAYOUT_MAX_OUT];
        coordinates(pl->acc, r, x);
        uint32_t cell = acc_cell(pl, x), vector = cell >> s->vec_bits;
        uint64_t at;
        if (!tl_map_get(&seen, vector + 1, &at)) {
            at = s->nvectors++;
            tl_map_put(&seen, vector + 1, at);
            s->vectors[at] = vector << s->vec_bits;
            s->vector_reg[at] = r;
        }
        s->value_of[r] = (uint32_t)at << s->vec_bits | (cell & ((1u << s->vec_bits) - 1));
    }
    s->read_cell = thread_map(pl, pl->acc, acc_cell);
}

/* ---- the swizzle ---- */

static uint32_t operand_place(const Planner *pl, const int32_t *image)
{
    return cell_of(pl, pack(pl, image, pl->free_dim, pl->batch_dim));
}

static uint32_t operand_k(const Planner *pl, const int32_t *image)
{
    return (uint32_t)image[pl->k_dim];
}

uint32_t tl_dot_swizzle(const TlDotSide *s, uint32_t k)
{
    TL_ASSERT(s->swizzle_bits >= 0, "a swizzle of %d bits", s->swizzle_bits);
    uint32_t v = 0;
    for (int b = 0; b < s->swizzle_bits; b++)
        v ^= k >> b & 1 ? s->swizzle[b] : 0;
    return v;
}

/* Of lanes of one wavefront. */
typedef struct Banks {
    TlSpan taken;
    uint32_t mask, settled; /* settled: bits of k whose swizzle is fixed */
    int high;               /* bits of a cell from here on stay */
} Banks;

/* A lane whose cell falls on the banks of others is moved by a bit of its k. */
static void give_bank(const Planner *pl, Banks *banks, uint32_t cell, uint32_t k)
{
    TlDotSide *s = pl->s;
    uint32_t v = cell ^ tl_dot_swizzle(s, k), free_k = k & ~banks->settled;
    int log_row = tl_ceil_log2(s->row), b = free_k ? __builtin_ctz(free_k) : 0;
    v ^= banks->mask >> log_row ? k << log_row : 0;
    for (int bit = 1u << b < pl->p->unroll ? s->write_bits : s->vec_bits;
         bit < banks->high && free_k && tl_span_has(&banks->taken, v & banks->mask); bit++)
        if (!tl_span_has(&banks->taken, (v & banks->mask) ^ 1u << bit)) {
            s->swizzle[b] = 1u << bit;
            v ^= 1u << bit;
        }
    banks->settled |= k;
    tl_span_add(&banks->taken, v & banks->mask, 0);
}

/* Gives each lane of the operand banks of its own as far as possible, beginning with the lanes that
 * no swizzle moves yet. What an access writes at once stays together. */
static void choose_swizzle(Planner *pl)
{
    TlDotSide *s = pl->s;
    int nbanks = BANK_BITS + tl_ceil_log2(WORD_BYTES) - tl_ceil_log2(pl->bytes);
    Banks banks = {.mask = (1u << nbanks) - 1};
    banks.high = pl->chunk_bits < nbanks ? pl->chunk_bits : nbanks;
    if (s->nparts > 1 && s->part_bits < banks.high)
        banks.high = s->part_bits;
    s->swizzle_bits = TL_LAYOUT_MAX_BITS;
    for (int bit = 0; bit < s->write_bits; bit++)
        tl_span_add(&banks.taken, 1ull << bit, 0);
    for (int moved = 0; moved < 2; moved++)
        for (int i = 0; i < nbanks - s->write_bits && i < TL_MAX_LANE_BITS; i++)
            if ((s->write_k.lane[i] != 0) == moved)
                give_bank(pl, &banks, s->write_cell.lane[i], s->write_k.lane[i]);
}

/* ---- writing ---- */

static uint64_t key_of(uint32_t cell, uint32_t k)
{
    return (uint64_t)cell << 32 | (k + 1);
}

typedef struct Registers {
    uint32_t n, *cell, *k;
    TlMap at; /* (cell, k) to register */
} Registers;

static void list_registers(Planner *pl, Registers *r)
{
    r->n = (uint32_t)tl_layout_registers(pl->l);
    r->cell = TL_NEW_ARRAY(pl->arena, uint32_t, r->n);
    r->k = TL_NEW_ARRAY(pl->arena, uint32_t, r->n);
    tl_map_init(&r->at, pl->arena);
    for (uint32_t i = 0; i < r->n; i++) {
        int32_t x[TL_LAYOUT_MAX_OUT];
        coordinates(pl->l, i, x);
        r->cell[i] = operand_place(pl, x);
        r->k[i] = operand_k(pl, x);
        tl_map_put(&r->at, key_of(r->cell[i], r->k[i]), i);
    }
}

/* Does every register have its 1 << bits neighbours? */
static bool are_vectors(const Registers *r, int bits)
{
    uint64_t at;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t e = 0; e < 1u << bits; e++)
            if (!tl_map_get(&r->at, key_of((r->cell[i] >> bits << bits) | e, r->k[i]), &at))
                return false;
    return true;
}

static void find_write_vector(Planner *pl, const Registers *r)
{
    TlDotSide *s = pl->s;
    s->write_cell = thread_map(pl, pl->l, operand_place);
    s->write_k = thread_map(pl, pl->l, operand_k);
    s->write_bits = s->checks_cell ? 0 : s->vec_bits;
    while (s->write_bits > 0 &&
           (tl_thread_map_bits(&s->write_cell) & ((1u << s->write_bits) - 1) ||
            !are_vectors(r, s->write_bits)))
        s->write_bits--;
}

static void find_writers(Planner *pl)
{
    TlDotSide *s = pl->s;
    uint32_t copies[TL_LAYOUT_MAX_IN] = {0};
    for (int i = 0; i < TL_MAX_LANE_BITS; i++)
        s->write_cell.lane[i] ^= tl_dot_swizzle(s, s->write_k.lane[i]);
    for (int i = 0; i < TL_MAX_WARP_BITS; i++)
        s->write_cell.warp[i] ^= tl_dot_swizzle(s, s->write_k.warp[i]);
    tl_layout_free_masks(pl->l, copies);
    for (int i = 0; i < pl->l->nin; i++) {
        s->skip_lanes |= pl->l->in[i] == TL_IN_LANE ? copies[i] : 0;
        s->skip_warps |= pl->l->in[i] == TL_IN_WARP ? copies[i] : 0;
    }
}

static void list_writes(Planner *pl, const Registers *r)
{
    TlDotSide *s = pl->s;
    uint32_t n = 1u << s->write_bits;
    s->writes = TL_NEW_ARRAY(pl->arena, TlDotWrite, r->n >> s->write_bits);
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->cell[i] & (n - 1))
            continue;
        TlDotWrite *w = &s->writes[s->nwrites++];
        *w = (TlDotWrite){r->cell[i], r->k[i], TL_NEW_ARRAY(pl->arena, int32_t, n)};
        w->regs[0] = (int32_t)i;
        for (uint32_t e = 1; e < n; e++) {
            uint64_t reg = 0;
            tl_map_get(&r->at, key_of(r->cell[i] | e, r->k[i]), &reg);
            w->regs[e] = (int32_t)reg;
        }
    }
}

static void plan_writes(Planner *pl)
{
    Registers r;
    list_registers(pl, &r);
    find_write_vector(pl, &r);
    choose_swizzle(pl);
    find_writers(pl);
    list_writes(pl, &r);
}

/* ---- the plan ---- */

static void plan_cells(Planner *pl, const TlOp *op, int operand)
{
    const TlType *acc = op->out[0]->type;
    pl->s = &pl->p->side[operand];
    pl->acc = acc->layout;
    pl->type = tl_in(op, (uint32_t)operand)->type;
    pl->l = pl->type->layout;
    int rank = acc->rank;
    pl->acc_batch = pl->batch_dim = rank == 3 ? 0 : -1;
    pl->acc_free = operand == 0 ? rank - 2 : rank - 1;
    pl->free_dim = pl->p->free_dim[operand] = pl->acc_free;
    pl->k_dim = pl->p->k_dim[operand] = operand == 0 ? rank - 1 : rank - 2;
    pl->free_bits = axis_bits(pl->acc, pl->acc_free);
    pl->batch_bits = axis_bits(pl->acc, pl->acc_batch);
    choose_cells(pl);
    for (int d = 0; d < rank; d++) {
        if (d == pl->k_dim)
            continue;
        int32_t has = tl_layout_extent(pl->l, d), wants = tl_layout_extent(pl->acc, d);
        pl->s->checks_cell |= has > wants;
        pl->s->checks_vector |= has < wants;
    }
    if (pl->s->checks_vector)
        pl->s->vec_bits = 0;
    plan_reads(pl);
}

static uint32_t part_of(const TlDotSide *s, uint32_t reg)
{
    return s->vectors[s->value_of[reg] >> s->vec_bits] >> s->part_bits;
}

bool tl_dot_reg_needs(const TlDotPlan *p, uint32_t reg, uint32_t a, uint32_t b)
{
    return part_of(&p->side[0], reg) == a && part_of(&p->side[1], reg) == b;
}

bool tl_dot_needs(const TlDotPlan *p, uint32_t a, uint32_t b)
{
    for (uint32_t reg = 0; reg < p->nregs; reg++)
        if (tl_dot_reg_needs(p, reg, a, b))
            return true;
    return false;
}

/* Fewer cells of a side at a time. False: threads have all of them in a register. */
static bool halve_row(TlDotSide *s)
{
    int least = s->vec_bits, bits = s->nparts > 1 ? s->part_bits : tl_ceil_log2(s->row);
    while (tl_thread_map_bits(&s->read_cell) >> least)
        least++;
    if (bits - 1 < least)
        return false;
    uint32_t all = s->nparts > 1 ? s->nparts << s->part_bits : s->row;
    s->part_bits = bits - 1;
    s->row = 1u << s->part_bits;
    s->nparts = (all + s->row - 1) >> s->part_bits;
    return true;
}

/* A row of both sides is to fit. */
static void choose_parts(TlDotPlan *p, uint32_t bytes, uint32_t room)
{
    TlDotSide *s = p->side;
    for (bool less = true; less && (uint64_t)(s[0].row + s[1].row) * bytes > room;) {
        int larger = s[1].row > s[0].row;
        less = halve_row(&s[larger]) || halve_row(&s[!larger]);
    }
}

/* As many rows at a time as fit into the budget. */
static void choose_rounds(TlDotPlan *p, uint32_t bytes, uint32_t room)
{
    uint64_t row = (uint64_t)(p->side[0].row + p->side[1].row) * bytes;
    p->rows = p->k;
    if (row * p->k > room) {
        p->rows = 1;
        while (p->rows * 2 < p->k && row * p->rows * 2 <= room)
            p->rows *= 2;
    }
    p->nrounds = (p->k + p->rows - 1) / p->rows;
    p->unroll = MOST_UNROLL;
    while (p->unroll > 1 && (p->unroll > p->rows || p->unroll * p->nregs > MOST_STEPS))
        p->unroll /= 2;
    uint32_t a =
        (p->side[0].row * p->rows * bytes + VECTOR_BYTES - 1) & ~(uint32_t)(VECTOR_BYTES - 1);
    p->side[1].base = a;
    p->bytes = a + p->side[1].row * p->rows * bytes;
}

TlDtype tl_dot_sum_type(TlDtype acc)
{
    if (acc == TL_F64 || acc == TL_F32)
        return acc;
    if (tl_is_float(acc))
        return TL_F32;
    return tl_dtype_bits(acc) == 64 ? TL_I64 : TL_I32;
}

TlDotPlan *tl_dot_plan(TlArena *arena, const TlOp *op)
{
    TL_ASSERT(op->opcode == TL_OP_DOT && op->nin == 3,
              "%s is no product", tl_op_info(op->opcode)->text);
    const TlType *acc = op->out[0]->type, *a = tl_in(op, 0)->type;
    TlDotPlan *p = TL_NEW(arena, TlDotPlan);
    TL_ASSERT(acc->layout && a->layout && tl_in(op, 1)->type->layout, "dot without layouts");
    p->sum = tl_dot_sum_type(acc->dtype);
    p->k = (uint32_t)a->shape[acc->rank - 1];
    p->nregs = (uint32_t)tl_layout_registers(acc->layout);
    uint32_t bytes = (uint32_t)tl_dtype_bytes(p->sum);
    Planner *pl = TL_NEW_ARRAY(arena, Planner, 2);
    for (int i = 0; i < 2; i++) {
        pl[i] = (Planner){.arena = arena, .p = p, .bytes = bytes};
        plan_cells(&pl[i], op, i);
    }
    for (int i = 0; i < 2; i++) {
        p->side[i].nparts = 1;
        p->side[i].part_bits = tl_ceil_log2(p->side[i].row);
    }
    if (tl_op_goes_in_parts(op))
        choose_parts(p, bytes, tl_op_room(op, 0));
    choose_rounds(p, bytes, tl_op_room(op, TL_SHARED_BUDGET));
    for (int i = 0; i < 2; i++)
        plan_writes(&pl[i]);
    return p;
}
