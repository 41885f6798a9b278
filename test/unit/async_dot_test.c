/* Products by warpgroups (ir/plan/async_dot.h): every element of every operand of every instruction
 * of a plan is where PTX says that the instruction takes it from. For operands in buffers the
 * element's address by the descriptor (PTX ISA, "Matrix descriptor", "Strides", "Swizzling modes")
 * is its place in the buffer; for A and accumulators in registers, the instruction's fragments
 * (PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16" and so on) are the registers' layout.
 * The formulas are written out here and come from no plan. Of products into tensor memory likewise
 * (PTX ISA, "Shared memory descriptor", "Instruction descriptor", data path layouts D, and F of 64
 * rows, which a warp takes in the shape .16x256b). */
#include "ir/plan/async_dot.h"
#include "ir/plan/layout_rules.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "test/unit/unit.h"
#include <string.h>

enum {
    GROUP = 128,
    GROUP_BITS = 2,
    ROWS = 64,
    STEP_BYTES = 32,
    PIECE = 16,
    WIDE = 32,
    BASE = 5 * 1024
};

static TlCtx ctx;
static TlArena arena;
static bool apart; /* warps along N have columns side by side */

typedef struct Case {
    const char *mma;
    int32_t m, n, k;
    int warp_bits;
    int row[2], span[2]; /* of A and B in buffers: the axis that rows run along, -1: in registers */
    bool flipped[2];
} Case;

typedef struct Product {
    const Case *c;
    const TlMma *mma;
    TlValue value[2];
    TlAsyncSide side[TL_ASYNC_SIDES];
    const TlType *acc;
    TlAsyncPlan *plan;
    int elem;
    uint64_t *place[2]; /* of element (mn, k) of an operand in a buffer: mn * K + k */
} Product;

/* ---- the product ---- */

static const TlType *buffer(TlDtype dtype, const int32_t *shape, int row, int span, int piece)
{
    int bits[2] = {__builtin_ctz((unsigned)shape[0]), __builtin_ctz((unsigned)shape[1])};
    TlLayout l = *tl_staging_image(&arena, 2, bits, tl_dtype_bytes(dtype), row, span, piece);
    for (int d = 0; d < 2; d++)
        l.reps[d] = shape[d] >> bits[d];
    return tl_type_buf(&ctx, dtype, 2, shape, tl_layout_intern(&ctx, &l), 1);
}

static TlMmaWarps warps_of(const Case *c)
{
    TlMmaWarps w = {.apart = apart};
    int rows = strncmp(c->mma, "tcgen05", 7) || strstr(c->mma, ".m64") ? 16 : 32;
    for (int i = 0; i < c->warp_bits; i++)
        if (c->m > rows << w.m)
            w.m++;
        else
            w.n++;
    w.apart &= w.n > 0 && c->n % (8 << w.n) == 0 && c->n >> w.n > 8;
    return w;
}

static void add_side(Product *p, int i)
{
    const Case *c = p->c;
    int32_t shape[2] = {i ? c->k : c->m, i ? c->n : c->k};
    TlDtype dtype = p->mma->type[i];
    if (c->row[i] < 0) {
        const TlType *t = tl_type_tile(&ctx, dtype, 2, shape);
        const TlLayout *l = tl_mma_layout(&ctx, p->mma, i, t, warps_of(c), c->warp_bits);
        p->value[i].type = tl_type_with_layout(&ctx, t, l);
        p->side[i].tile = &p->value[i];
        return;
    }
    bool f = c->flipped[i];
    int32_t there[2] = {shape[f ? 1 : 0], shape[f ? 0 : 1]};
    bool across = (c->row[i] == (i ? 0 : 1)) == f;
    int piece = across && tl_tensor_mma_of(p->mma) && tl_dtype_bytes(dtype) == 4 ? WIDE : PIECE;
    p->value[i].type = buffer(dtype, there, c->row[i], c->span[i], piece);
    p->side[i] = (TlAsyncSide){.buf = &p->value[i], .flipped = f};
}

/* Where the buffer says that the elements are: asked once for each type of a buffer. */
static void find_places(Product *p, int i)
{
    static TlMap known[2][2]; /* by side and whether it is flipped: a type to its places */
    TlMap *places = &known[i][p->side[i].flipped];
    if (!places->arena)
        tl_map_init(places, &arena);
    p->place[i] = tl_map_get_ptr(places, p->side[i].buf->type);
    if (p->place[i])
        return;
    int32_t count = i == TL_MMA_A ? p->c->m : p->c->n, k_axis = (i == TL_MMA_A ? 1 : 0);
    k_axis ^= p->side[i].flipped ? 1 : 0;
    p->place[i] = TL_NEW_ARRAY(&arena, uint64_t, count * p->c->k);
    for (int32_t mn = 0; mn < count; mn++)
        for (int32_t k = 0; k < p->c->k; k++) {
            int32_t at[TL_LAYOUT_MAX_OUT] = {0};
            at[k_axis] = k;
            at[1 - k_axis] = mn;
            p->place[i][mn * p->c->k + k] = BASE + tl_buf_offset(p->side[i].buf->type, at);
        }
    tl_map_put_ptr(places, p->side[i].buf->type, p->place[i]);
}

static void make(Product *p, const Case *c)
{
    *p = (Product){.c = c, .mma = tl_mma_find(c->mma)};
    p->elem = tl_dtype_bytes(p->mma->type[TL_MMA_A]);
    const TlType *t = tl_type_tile(&ctx, p->mma->type[TL_MMA_C], 2, (int32_t[]){c->m, c->n});
    p->acc = tl_type_with_layout(
        &ctx, t, tl_mma_layout(&ctx, p->mma, TL_MMA_C, t, warps_of(c), c->warp_bits));
    for (int i = 0; i < 2; i++)
        add_side(p, i);
    p->plan = tl_async_plan(&arena, p->mma, p->side, p->acc);
    for (int i = 0; i < 2 && p->plan; i++)
        if (p->side[i].buf)
            find_places(p, i);
}

/* ---- operands in buffers ---- */

typedef struct Descriptor {
    uint32_t start, lead, stride, span, piece;
} Descriptor;

static Descriptor read_descriptor(uint64_t d, bool tensor)
{
    static const uint32_t OF_WGMMA[4] = {0, 128, 64, 32},
                          OF_TENSOR[8] = {[1] = 128, 128, [4] = 64, [6] = 32};
    CHECK((d >> 49 & 0xfff) == 0); /* the pattern begins where addresses do */
    CHECK_INT((int64_t)(d >> 46 & 7), tensor);
    return (Descriptor){.start = (d & 0x3fff) << 4,
                        .lead = (d >> 16 & 0x3fff) << 4,
                        .stride = (d >> 32 & 0x3fff) << 4,
                        .span = tensor ? OF_TENSOR[d >> 61] : OF_WGMMA[d >> 62],
                        .piece = d >> 61 == 1 ? WIDE : PIECE};
}

static bool is_tensor(const Product *p)
{
    return tl_tensor_mma_of(p->mma) != NULL;
}

static int32_t rows_of(const Product *p)
{
    return is_tensor(p) && p->c->m % (2 * ROWS) == 0 ? 2 * ROWS : ROWS;
}

/* One thread does what all warpgroups have. */
static uint32_t groups_of(const Product *p)
{
    return is_tensor(p) ? 1 : 1u << p->plan->warp_bits;
}

/* Where the instruction takes element (mn, k) of an operand from; k counts from its step on. */
static uint32_t address(const Descriptor *d, bool across, int elem, int32_t mn, int32_t k)
{
    uint32_t e = (uint32_t)elem, i = (uint32_t)mn, j = (uint32_t)k, at = d->start;
    if (across) {
        uint32_t atom = d->span / e, rows = d->piece == WIDE ? 4 : 8;
        at += i / atom * d->lead + j / rows * d->stride + j % rows * d->span + i % atom * e;
    } else {
        at += i / 8 * d->stride + i % 8 * d->span + j * e;
    }
    return at ^ (at >> 7 & (d->span / d->piece - 1)) * d->piece;
}

/* As the lowering adds it up: what the warpgroup has, then the strip's and the step's. */
static uint32_t start_of(const Product *p, int i, uint32_t group, int32_t mn, int32_t k)
{
    uint32_t at = 0;
    for (int b = 0; b < p->plan->warp_bits; b++) {
        int32_t x = i == TL_MMA_A ? p->plan->warp_row[b] : p->plan->warp_column[b];
        if (group >> b & 1)
            at ^= tl_async_offset(&p->side[i], i, x, 0);
    }
    return BASE + at + tl_async_offset(&p->side[i], i, mn, k);
}

/* What the warpgroup adds to a row (of A) or column (of B). */
static int32_t group_origin(const Product *p, int i, uint32_t group)
{
    int32_t x = 0;
    for (int b = 0; b < p->plan->warp_bits; b++)
        if (group >> b & 1)
            x += i == TL_MMA_A ? p->plan->warp_row[b] : p->plan->warp_column[b];
    return x;
}

static int wrong_in_buffer(const Product *p, int i, const TlAsyncStrip *s, uint32_t group,
                           int32_t k0)
{
    int32_t first = i == TL_MMA_A ? s->row : s->column,
            count = i == TL_MMA_A ? rows_of(p) : p->plan->n;
    const TlAsyncSlot *slot = &p->plan->slot[i];
    int32_t origin = first + group_origin(p, i, group);
    int wrong = 0;
    uint64_t start = start_of(p, i, group, first, k0);
    wrong += start % PIECE != 0;
    Descriptor d =
        read_descriptor(tl_async_descriptor(p->mma, slot) | start >> 4, is_tensor(p));
    for (int32_t mn = 0; mn < count; mn++)
        for (int32_t k = 0; k < p->mma->k; k++)
            wrong += address(&d, slot->across, p->elem, mn, k) !=
                     p->place[i][(origin + mn) * p->c->k + k0 + k];
    return wrong;
}

/* ---- registers ---- */

/* Is thread t's register r of a tile the element (row, column)? */
static bool holds(const TlLayout *l, uint32_t thread, int64_t r, int32_t row, int32_t column)
{
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[TL_LAYOUT_MAX_OUT];
    in[tl_layout_in_index(l, TL_IN_LANE)] = thread % 32;
    in[tl_layout_in_index(l, TL_IN_WARP)] = thread / 32;
    if (r < 0)
        return false;
    tl_layout_apply_reg(l, r, in, at);
    return at[0] == row && at[1] == column;
}

/* Register i of the accumulator in thread t of the warpgroup. */
static void cell_of_acc(uint32_t t, uint32_t i, int32_t *row, int32_t *column)
{
    *row = (int32_t)(16 * (t / 32) + (t % 32 >> 2) + 8 * (i >> 1 & 1));
    *column = (int32_t)(8 * (i >> 2) + 2 * (t & 3) + (i & 1));
}

/* Element e of register q of A in thread t of the warpgroup, of `per` elements in a register. */
static void cell_of_a(uint32_t t, uint32_t per, uint32_t q, uint32_t e, int32_t *row, int32_t *k)
{
    *row = (int32_t)(16 * (t / 32) + (t % 32 >> 2) + 8 * (q & 1));
    *k = (int32_t)(per * (t & 3) + e + 4 * per * (q >> 1));
}

static int wrong_accumulators(const Product *p, const TlAsyncStrip *s, uint32_t group)
{
    const TlLayout *l = p->acc->layout;
    int32_t row, column, up = group_origin(p, TL_MMA_A, group),
                         right = group_origin(p, TL_MMA_B, group);
    int wrong = 0;
    for (uint32_t i = 0; i < (uint32_t)p->plan->n / 2; i++) {
        cell_of_acc(0, i, &row, &column);
        int64_t r = tl_layout_register_at(l, (int32_t[5]){s->row + row, s->column + column});
        for (uint32_t t = 0; t < GROUP; t++) {
            cell_of_acc(t, i, &row, &column);
            wrong += !holds(l, group * GROUP + t, r, up + s->row + row, right + s->column + column);
        }
    }
    return wrong;
}

static int wrong_in_registers(const Product *p, const TlAsyncStrip *s, uint32_t group, int32_t k0)
{
    enum { REGISTERS = 4 };
    const TlLayout *l = p->side[TL_MMA_A].tile->type->layout;
    uint32_t per = 4 / (uint32_t)p->elem;
    int32_t row, k, up = group_origin(p, TL_MMA_A, group);
    int wrong = 0;
    for (uint32_t q = 0; q < REGISTERS; q++)
        for (uint32_t e = 0; e < per; e++) {
            cell_of_a(0, per, q, e, &row, &k);
            int64_t r = tl_layout_register_at(l, (int32_t[5]){s->row + row, k0 + k});
            for (uint32_t t = 0; t < GROUP; t++) {
                cell_of_a(t, per, q, e, &row, &k);
                wrong += !holds(l, group * GROUP + t, r, up + s->row + row, k0 + k);
            }
        }
    return wrong;
}

/* ---- whole plans ---- */

static int wrong_in_buffers(const Product *p)
{
    int wrong = 0;
    for (uint32_t group = 0; group < groups_of(p); group++)
        for (uint32_t i = 0; i < p->plan->strips.len; i++)
            for (int32_t k = 0; k < p->plan->k; k += p->mma->k)
                for (int side = 0; side < 2; side++)
                    if (p->side[side].buf)
                        wrong += wrong_in_buffer(p, side, &p->plan->strips.data[i], group, k);
    return wrong;
}

/* The column of tensor memory that is a thread's register. */
static int32_t column_of(const Product *p, uint32_t lane, uint32_t warp, int64_t r,
                         int32_t *out_row)
{
    const TlLayout *l = p->acc->layout;
    uint32_t in[TL_LAYOUT_MAX_IN] = {0};
    int32_t at[TL_LAYOUT_MAX_OUT];
    in[tl_layout_in_index(l, TL_IN_LANE)] = lane;
    in[tl_layout_in_index(l, TL_IN_WARP)] = warp;
    tl_layout_apply_reg(l, r, in, at);
    *out_row = at[0];
    return tl_tensor_column(p->acc, at[0], at[1]);
}

/* A thread's register is what its lane has in the register's column, behind its warpgroup's. */
static int wrong_lanes(const Product *p)
{
    enum { WARPS = 16 };
    int64_t registers = tl_layout_registers(p->acc->layout);
    int32_t own[WARPS], row;
    int wrong = 0;
    for (uint32_t w = 0; w < 1u << p->c->warp_bits; w++)
        own[w] = column_of(p, 0, w & ~3u, 0, &row);
    for (int64_t r = 0; r < registers; r++) {
        int32_t first = column_of(p, 0, 0, r, &row);
        for (uint32_t t = 0; t < 32u << p->c->warp_bits; t++) {
            int32_t lane = (int32_t)(t % 128), column = 0;
            if (rows_of(p) == ROWS) { /* of the warp's 16 rows, pairs of columns */
                column = 2 * (lane % 4);
                lane = lane / 32 * 16 + lane % 32 / 4 + (int32_t)(r / 2 % 2 * 8);
            }
            wrong += column_of(p, t % 32, t / 32, r, &row) != first + own[t / 32] + column;
            wrong += row % rows_of(p) != lane;
        }
    }
    return wrong;
}

static int wrong_registers(const Product *p)
{
    int wrong = 0;
    if (is_tensor(p))
        return wrong_lanes(p);
    for (uint32_t group = 0; group < groups_of(p); group++)
        for (uint32_t i = 0; i < p->plan->strips.len; i++) {
            const TlAsyncStrip *s = &p->plan->strips.data[i];
            wrong += wrong_accumulators(p, s, group);
            for (int32_t k = 0; k < p->plan->k && p->side[TL_MMA_A].tile; k += p->mma->k)
                wrong += wrong_in_registers(p, s, group, k);
        }
    return wrong;
}

/* The strips are all of the accumulator, each once. */
static void check_whole(const Product *p)
{
    int64_t cells = (int64_t)p->plan->strips.len * groups_of(p);
    CHECK_INT(cells * rows_of(p) * p->plan->n, (int64_t)p->c->m * p->c->n);
    CHECK(p->plan->k == p->c->k && p->plan->n % 8 == 0 && p->plan->n <= 256);
}

static void say(const Case *c, const char *what)
{
    fprintf(stderr, "    %s %dx%dx%d, %d warps, rows along %d, %d of %d, %d bytes: %s\n", c->mma,
            c->m, c->n, c->k, 1 << c->warp_bits, c->row[0], c->row[1], c->span[0], c->span[1],
            what);
}

/* What a wrong stride or lead makes of the plan is seen. */
static void check_breaks(Product *p)
{
    for (int i = 0; i < 2; i++) {
        TlAsyncSlot *slot = &p->plan->slot[i], was = *slot;
        if (!p->side[i].buf)
            continue;
        slot->stride *= 2;
        CHECK(wrong_in_buffers(p) > 0 || (was.across && p->mma->k <= 8 && was.piece == PIECE));
        *slot = was;
        slot->span = was.span == 32 ? 64 : was.span / 2;
        CHECK(wrong_in_buffers(p) > 0 || was.piece == WIDE); /* which has rows of 128 only */
        *slot = was;
        slot->piece = WIDE + PIECE - was.piece;
        CHECK(!is_tensor(p) || wrong_in_buffers(p) > 0);
        *slot = was;
        slot->lead += 16;
        int32_t count = i == TL_MMA_A ? rows_of(p) : p->plan->n;
        CHECK((wrong_in_buffers(p) > 0) == (was.across && count * p->elem > was.span));
        *slot = was;
    }
}

/* breaks: the wrong plans too, which takes longer. */
static bool check_case(const Case *c, bool breaks)
{
    Product p;
    make(&p, c);
    if (!p.plan)
        return false;
    check_whole(&p);
    if (!CHECK(wrong_in_buffers(&p) == 0 && wrong_registers(&p) == 0))
        say(c, "elements elsewhere");
    if (breaks)
        check_breaks(&p);
    return true;
}

static void expect(const Case *c)
{
    if (!CHECK(check_case(c, true)))
        say(c, "no plan");
}

static void expect_none(const Case *c)
{
    Product p;
    make(&p, c);
    if (!CHECK(p.plan == NULL))
        say(c, "a plan");
}

/* ---- cases ---- */

static const char *const TYPES[] = {
    "mma.m16n8k16.f16",   "mma.m16n8k16.bf16", "mma.m16n8k8.tf32",       "mma.m16n8k32.s8",
    "mma.m16n8k32.u8.s8", "mma.m16n8k32.e4m3", "mma.m16n8k32.e4m3.e5m2", "mma.m16n8k32.e5m2"};
enum { NTYPES = sizeof TYPES / sizeof *TYPES };

static int elem_bytes(const char *mma)
{
    return tl_dtype_bytes(tl_mma_find(mma)->type[TL_MMA_A]);
}

/* Of each type, along K: as memory has it and flipped, A in a buffer and in registers. */
static void check_along_k(void)
{
    for (int t = 0; t < NTYPES; t++)
        for (int span = STEP_BYTES; span <= 128; span *= 2)
            for (int flips = 0; flips < 4; flips++) {
                bool a = flips & 1, b = flips >> 1;
                /* rows go on from one chunk to the next where there is one panel only */
                int32_t k = 128 / elem_bytes(TYPES[t]), n = span == 128 ? 96 : 128;
                Case c = {TYPES[t], 128, n, k, 2, {!a, b}, {span, span}, {a, b}};
                expect(&c);
                c.row[0] = -1;
                expect(&c);
            }
}

/* Along M and N: what has 16 bits can be transposed, nothing else can. */
static void check_across(void)
{
    for (int t = 0; t < NTYPES; t++)
        for (int span = STEP_BYTES; span <= 128; span *= 2)
            for (int which = 1; which < 4; which++) {
                Case c = {TYPES[t],     128, 128, 128, 2, {!(which & 1), which >> 1},
                          {span, span}, {0}};
                if (elem_bytes(TYPES[t]) == 2)
                    expect(&c);
                else
                    expect_none(&c);
            }
}

/* Whatever gets a plan has the right one: several strips, several warpgroups along M and N,
 * repetitions, several panels. */
static void check_all(void)
{
    static const int32_t MS[] = {64, 128, 192}, KS[] = {32, 64, 96},
                         NS[] = {8, 16, 24, 48, 64, 96, 128, 176, 256, 352};
    int plans = 0;
    for (unsigned m = 0; m < sizeof MS / sizeof *MS; m++)
        for (unsigned n = 0; n < sizeof NS / sizeof *NS; n++)
            for (unsigned k = 0; k < sizeof KS / sizeof *KS; k++)
                for (int which = 0; which < 6 * 3; which++) {
                    int bits = GROUP_BITS + which % 3, across = which / 3;
                    const char *mma = TYPES[(m + n + k) % 3 ? 0 : 3];
                    int32_t width[2] = {across & 1 ? MS[m] : KS[k], across & 2 ? NS[n] : KS[k]};
                    Case c = {mma, MS[m], NS[n], KS[k], bits, {!(across & 1), across >> 1 & 1},
                              {0}, {0}};
                    for (int i = 0; i < 2; i++) {
                        c.span[i] = elem_bytes(mma) << __builtin_ctz((unsigned)width[i]);
                        c.span[i] = c.span[i] > 128 ? 128 : c.span[i];
                    }
                    c.row[0] = across >= 4 ? -1 : c.row[0];
                    plans += check_case(&c, false);
                }
    CHECK(plans > (apart ? 420 : 300));
}

/* Two and four warpgroups along N: 64 rows, columns side by side. Of 96 columns each has 16 of 32,
 * by three instructions. */
static void check_apart(void)
{
    static const Case CASES[] = {
        {"mma.m16n8k16.f16", 64, 64, 64, 3, {1, 1}, {128, 128}, {false, true}},
        {"mma.m16n8k16.f16", 64, 128, 64, 3, {1, 1}, {128, 128}, {0}},
        {"mma.m16n8k16.bf16", 64, 256, 64, 4, {-1, 1}, {0, 128}, {0}},
        {"mma.m16n8k16.f16", 64, 96, 64, 3, {1, 1}, {128, 128}, {false, true}},
        {"mma.m16n8k32.e4m3", 64, 128, 128, 3, {1, 1}, {128, 128}, {false, true}},
        {"mma.m16n8k32.s8", 64, 64, 128, 3, {1, 1}, {128, 128}, {false, true}},
        {"mma.m16n8k8.tf32", 64, 64, 32, 3, {1, 1}, {128, 128}, {false, true}},
    };
    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++)
        expect(&CASES[i]);
    expect_none(&(Case){"mma.m16n8k16.f16", 64, 48, 64, 3, {1, 0}, {128, 128}, {0}});
}

/* What no warpgroup can do. */
static void check_not(void)
{
    static const Case NOT[] = {
        {"mma.m16n8k16.f16", 128, 128, 64, 2, {1, -1}, {128, 0}, {0}}, /* B in registers */
        {"mma.m16n8k16.f16", 32, 128, 64, 1, {1, 0}, {128, 128}, {0}}, /* two warps */
        {"mma.m16n8k16.f16", 32, 128, 64, 2, {1, 0}, {128, 128}, {0}}, /* two along M */
        {"mma.m16n8k16.f16", 64, 48, 64, 3, {1, 0}, {128, 128}, {0}},  /* every other 8 columns */
        {"mma.m16n8k16.f16", 128, 128, 8, 2, {-1, 1}, {0, 128}, {0}},  /* half a step of k */
        {"mma.m16n8k16.f16", 128, 96, 64, 2, {1, 0}, {128, 64}, {0}},  /* panels in chunks */
        {"mma.m16n8k32.s8", 128, 40, 128, 2, {1, 1}, {128, 128}, {0, 1}}, /* 40 columns of i32 */
        {"mma.m8n8k4.f64", 128, 64, 16, 2, {1, 0}, {128, 128}, {0}},
        {"mma.m16n8k8.f16", 128, 64, 64, 2, {1, 0}, {128, 128}, {0}},
    };
    for (unsigned i = 0; i < sizeof NOT / sizeof *NOT; i++)
        expect_none(&NOT[i]);
}

/* The constant of CUTLASS for rows of 128 bytes along K. */
static void check_constants(void)
{
    Product p;
    make(&p, &(Case){"mma.m16n8k16.f16", 128, 256, 64, 3, {1, 1}, {128, 128}, {false, true}});
    if (!CHECK(p.plan != NULL))
        return;
    for (int i = 0; i < 2; i++)
        CHECK(tl_async_descriptor(p.mma, &p.plan->slot[i]) == UINT64_C(0x4000004000010000));
}

/* ---- into tensor memory ---- */

/* PTX ISA, "Instruction descriptor": bits 4-5, 7-9, 10-12, 15, 16, 17-22, 24-28. */
static uint32_t instruction_of(const TlMma *mma, int32_t rows, int32_t n, bool a_across,
                               bool b_across)
{
    static const uint32_t CODE[TL_DTYPE_COUNT] = {[TL_BF16] = 1, [TL_F32] = 2, [TL_F8E5M2] = 1,
                                                  [TL_I8] = 1};
    uint32_t sums = mma->type[TL_MMA_C] == TL_I32 ? 2 : 1;
    return sums << 4 | CODE[mma->type[0]] << 7 | CODE[mma->type[1]] << 10 |
           (uint32_t)a_across << 15 | (uint32_t)b_across << 16 | (uint32_t)(n / 8) << 17 |
           (uint32_t)(rows / 16) << 24;
}

/* All types, columns, ways of operands, of 128 and 256 rows, of 64 and 192, by 4 to 16 warps. */
static void check_tensor(void)
{
    static const char *const NAMES[] = {
#define TENSOR(name, ...) name, name ".m64",
#define TENSOR_SCALED(name, ...) /* tensor_scales_test.c */
#include "ir/plan/tensor.def"
    };
    static const int32_t NS[] = {8, 16, 24, 32, 48, 64, 96, 128, 176, 256, 352};
    int plans = 0;
    for (uint32_t row = 0; row < sizeof NAMES / sizeof *NAMES; row++)
        for (unsigned n = 0; n < sizeof NS / sizeof *NS; n++)
            for (int which = 0; which < 4 * 6; which++) {
                const TlMma *mma = tl_mma_find(NAMES[row]);
                int elem = tl_dtype_bytes(mma->type[0]);
                bool half = strstr(mma->name, ".m64");
                int32_t m = half ? (which & 4 ? 192 : 64) : which & 4 ? 256 : 128, k = 128 / elem;
                bool a_across = which & 1, b_across = which & 2;
                int32_t wide = NS[n] & -NS[n];
                Case c = {mma->name, m, NS[n], k, 2 + which / 8, {!a_across, !b_across ? 0 : 1},
                          {128, 128}, {0}};
                if (b_across && wide * elem < 128)
                    c.span[1] = wide * elem;
                if (((a_across || b_across) && elem == 1) || c.span[1] < STEP_BYTES ||
                    (b_across && elem == 4 && c.span[1] < 128))
                    continue;
                Product p;
                make(&p, &c);
                plans += check_case(&c, false);
                if (p.plan)
                    CHECK_INT(tl_tensor_instruction(p.plan, 0),
                              instruction_of(mma, rows_of(&p), p.plan->n, a_across, b_across));
            }
    CHECK(plans > 700);
    for (int across = 1; across < 4; across++)
        for (int flips = 0; flips < 4; flips++) {
            bool f[] = {flips & 1, flips >> 1};
            expect(&(Case){"tcgen05.tf32",
                           128,
                           64,
                           64,
                           2,
                           {!(across & 1) ^ f[0], (across >> 1) ^ f[1]},
                           {128, 128},
                           {f[0], f[1]}});
        }
    expect_none(&(Case){"tcgen05.tf32", 128, 16, 64, 2, {1, 1}, {128, 64}, {0}});
    expect_none(&(Case){"tcgen05.f16", 64, 128, 64, 2, {1, 1}, {128, 128}, {0}});
    expect_none(&(Case){"tcgen05.f16.m64", 128, 128, 64, 3, {1, 1}, {128, 128}, {0}});
    expect_none(&(Case){"tcgen05.f16.m64", 96, 128, 64, 2, {1, 1}, {128, 128}, {0}});
    expect_none(&(Case){"tcgen05.s8.m64", 64, 40, 128, 2, {1, 0}, {128, 128}, {0}});
    expect_none(&(Case){"tcgen05.f16", 128, 24, 64, 2, {1, 0}, {128, 128}, {0}});
    expect_none(&(Case){"tcgen05.f16", 512, 256, 64, 4, {1, 1}, {128, 128}, {0}});
}

/* What Triton 3.9 has in its code for sm_100. */
static void check_tensor_constants(void)
{
    static const struct {
        Case c;
        uint32_t instruction;
    } KNOWN[] = {
        {{"tcgen05.f16", 128, 256, 64, 3, {1, 1}, {128, 128}, {0}}, 0x8410010},
        {{"tcgen05.bf16", 128, 256, 64, 3, {1, 1}, {128, 128}, {0}}, 0x8410490},
        {{"tcgen05.e4m3", 128, 128, 128, 2, {1, 0}, {128, 128}, {0}}, 0x8200010},
        {{"tcgen05.s8", 128, 128, 128, 2, {1, 0}, {128, 128}, {0}}, 0x82004a0},
        {{"tcgen05.f16", 128, 64, 64, 2, {1, 0}, {128, 128}, {0}}, 0x8100010},
        {{"tcgen05.f16.m64", 64, 64, 64, 2, {1, 0}, {128, 128}, {0}}, 0x4100010},
        {{"tcgen05.f16.m64", 64, 128, 64, 2, {1, 1}, {128, 128}, {0}}, 0x4210010},
    };
    for (unsigned i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        Product p;
        make(&p, &KNOWN[i].c);
        if (CHECK(p.plan != NULL)) {
            CHECK_INT(tl_tensor_instruction(p.plan, 0), KNOWN[i].instruction);
            CHECK(tl_async_descriptor(p.mma, &p.plan->slot[0]) == UINT64_C(0x4000404000000000));
        }
    }
}

/* ---- of pairs ---- */

/* B [k, n] of which each program has half of the columns. */
static const TlType *halved(TlDtype dtype, int32_t k, int32_t n, int row, int span)
{
    int piece = row == 1 && tl_dtype_bytes(dtype) == 4 ? WIDE : PIECE;
    TlType both = *buffer(dtype, (int32_t[]){k, n / 2}, row, span, piece);
    TlLayout l = *both.layout;
    l.reps[1] *= 2;
    both.shape[1] = n;
    both.layout = tl_layout_intern(&ctx, &l);
    return tl_type_halved(&ctx, tl_type_buf(&ctx, dtype, 2, both.shape, both.layout, 1), 1);
}

/* How many elements of a program's half are not where its descriptor says. */
static int wrong_in_half(const TlAsyncPlan *plan, const TlAsyncSide *b, int32_t k0)
{
    const TlType *t = b->buf->type;
    int elem = tl_dtype_bytes(t->dtype), wrong = 0;
    uint64_t start = BASE + tl_async_offset(b, TL_MMA_B, 0, k0);
    Descriptor d =
        read_descriptor(tl_async_descriptor(plan->mma, &plan->slot[TL_MMA_B]) | start >> 4, true);
    for (int32_t n = 0; n < plan->n / 2; n++)
        for (int32_t k = 0; k < plan->mma->k; k++)
            wrong += address(&d, plan->slot[TL_MMA_B].across, elem, n, k) !=
                     BASE + tl_buf_offset(t, (int32_t[]){k0 + k, n});
    return wrong;
}

/* PTX ISA 9.7.16.5: 256 rows, N columns, of which each block has N / 2 of B. */
static void check_pair(const char *name, int32_t n, int row, int span, bool can)
{
    Product p;
    const TlMma *mma = tl_mma_find(name);
    int32_t k = 128 / tl_dtype_bytes(mma->type[0]);
    Case c = {name, 128, n, k, 3, {1, row}, {128, span}, {0}};
    make(&p, &c);
    const TlType *whole = p.side[TL_MMA_B].buf->type, *half = halved(mma->type[1], k, n, row, span);
    TlValue b = {.type = half};
    p.side[TL_MMA_B].buf = &b;
    TlAsyncPlan *plan = tl_async_plan(&arena, mma, p.side, p.acc);
    CHECK_INT(tl_buf_slot_bytes(half), tl_buf_slot_bytes(whole) / 2);
    if (!CHECK(can == (plan != NULL)) || !plan)
        return;
    CHECK(plan->pair && plan->n == n && plan->strips.len == 1);
    CHECK_INT(tl_tensor_instruction(plan, 0), instruction_of(mma, 256, n, false, row == 1));
    CHECK(tl_tensor_is_pair(tl_tensor_instruction(plan, 0)));
    for (int32_t k0 = 0; k0 < k; k0 += mma->k)
        CHECK_INT(wrong_in_half(plan, &p.side[TL_MMA_B], k0), 0);
}

static void check_pairs(void)
{
    check_pair("tcgen05.f16", 256, 1, 128, true);
    check_pair("tcgen05.f16", 256, 0, 128, true);
    check_pair("tcgen05.f16", 128, 1, 128, true);
    check_pair("tcgen05.bf16", 64, 1, 64, true);
    check_pair("tcgen05.bf16", 32, 1, 32, true);
    check_pair("tcgen05.f16", 192, 0, 128, true);
    check_pair("tcgen05.tf32", 64, 0, 128, true);
    check_pair("tcgen05.e4m3", 256, 0, 128, true);
    check_pair("tcgen05.e4m3", 256, 1, 128, true);
    check_pair("tcgen05.s8", 96, 0, 128, true);
    check_pair("tcgen05.f16", 16, 0, 128, false);  /* 8 columns of each */
    check_pair("tcgen05.f16", 352, 0, 128, false); /* two instructions */
    Product p;
    make(&p, &(Case){"tcgen05.f16", 128, 256, 64, 3, {1, 1}, {128, 128}, {0}});
    CHECK(p.plan && !p.plan->pair && !tl_tensor_is_pair(tl_tensor_instruction(p.plan, 0)));
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    tl_arena_init(&arena, (TlAlloc){0});
    check_constants();
    check_along_k();
    check_across();
    check_all();
    check_not();
    apart = true;
    check_all();
    check_apart();
    check_tensor();
    apart = false;
    check_tensor_constants();
    check_pairs();
    tl_arena_free(&arena);
    tl_ctx_free(&ctx);
    return unit_result();
}
