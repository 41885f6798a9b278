/* Linear layouts: golden vectors of well-known fragments and shared-memory layouts, and the laws of
 * the algebra. Where a law can be checked by enumeration, it is: every input is applied. */
#include "ir/layout/layout.h"
#include "ir/support/guard.h"
#include "test/unit/shared_layouts.h"
#include "test/unit/unit.h"

static TlArena arena;

static TlLayout *parse(const char *text)
{
    TlLayout *l = tl_layout_parse(&arena, text);
    if (!CHECK(l != NULL))
        fprintf(stderr, "    text %s\n", text);
    return l ? l : tl_layout_empty(&arena, 1);
}

static const char *show(const TlLayout *l)
{
    if (!l)
        return "none";
    TlSbuf s;
    tl_sbuf_init(&s, &arena);
    tl_layout_print(&s, l);
    return s.text;
}

/* ---- golden vectors ---- */

enum { ROWS_FIRST = 0, COLS_FIRST = 1 };
static const int orders[2][2] = {{0, 1}, {1, 0}}; /* orders[COLS_FIRST]: dimension 1 is fastest */

typedef struct FragmentCase {
    const char *fragment;
    int operand; /* -1: accumulator */
    int warps[2], order;
    int32_t shape[2];
    const char *want;
} FragmentCase;

#define MMA_LANES " lane(0,2)(0,4)(1,0)(2,0)(4,0)"
static const FragmentCase fragment_cases[] = {
    {"mma.v2.c", -1, {0, 0}, COLS_FIRST, {16, 16}, "reg(0,1)(8,0)(0,8)" MMA_LANES " warp -> 16x16"},
    {"mma.v2.c",
     -1,
     {0, 0},
     COLS_FIRST,
     {32, 32},
     "reg(0,1)(8,0)(0,8)(0,16)(16,0)" MMA_LANES " warp -> 32x32"},
    {"mma.v3.c",
     -1,
     {2, 0},
     ROWS_FIRST,
     {64, 16},
     "reg(0,1)(8,0)(0,8)" MMA_LANES " warp(16,0)(32,0) -> 64x16"},
    {"mma.v2.a16",
     0,
     {2, 0},
     ROWS_FIRST,
     {128, 32},
     "reg(0,1)(8,0)(0,8)(0,16)(64,0)" MMA_LANES " warp(16,0)(32,0) -> 128x32"},
    {"mma.v2.b16",
     1,
     {1, 0},
     COLS_FIRST,
     {16, 16},
     "reg(1,0)(8,0)(0,8) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(0,0) -> 16x16"},
    {"mfma32.c",
     -1,
     {1, 2},
     COLS_FIRST,
     {128, 128},
     "reg(1,0)(2,0)(8,0)(16,0)(64,0) lane(0,1)(0,2)(0,4)(0,8)(0,16)(4,0) warp(0,32)(0,64)(32,0) -> "
     "128x128"},
    {"mfma16.c",
     -1,
     {1, 2},
     COLS_FIRST,
     {16, 16},
     "reg(1,0)(2,0) lane(0,1)(0,2)(0,4)(0,8)(4,0)(8,0) warp(0,0)(0,0)(0,0) -> 16x16"},
    {"mfma16.c.f64",
     -1,
     {1, 2},
     COLS_FIRST,
     {16, 16},
     "reg(4,0)(8,0) lane(0,1)(0,2)(0,4)(0,8)(1,0)(2,0) warp(0,0)(0,0)(0,0) -> 16x16"},
    {"mfma32.a.k4",
     0,
     {1, 2},
     COLS_FIRST,
     {64, 32},
     "reg(0,1)(0,2)(0,8)(0,16) lane(1,0)(2,0)(4,0)(8,0)(16,0)(0,4) warp(0,0)(0,0)(32,0) -> 64x32"},
    {"mfma16.a.k4",
     0,
     {1, 2},
     COLS_FIRST,
     {64, 32},
     "reg(0,1)(0,2)(0,16)(32,0) lane(1,0)(2,0)(4,0)(8,0)(0,4)(0,8) warp(0,0)(0,0)(16,0) -> 64x32"},
    {"wmma1.c",
     -1,
     {1, 2},
     COLS_FIRST,
     {16, 16},
     "reg(2,0)(4,0)(8,0) lane(0,1)(0,2)(0,4)(0,8)(1,0) warp(0,0)(0,0)(0,0) -> 16x16"},
    {"wmma1.a",
     0,
     {1, 2},
     COLS_FIRST,
     {16, 16},
     "reg(0,1)(0,2)(0,4)(0,8) lane(1,0)(2,0)(4,0)(8,0)(0,0) warp(0,0)(0,0)(0,0) -> 16x16"},
    {"wmma2.c",
     -1,
     {1, 2},
     COLS_FIRST,
     {16, 16},
     "reg(1,0)(2,0)(4,0) lane(0,1)(0,2)(0,4)(0,8)(8,0) warp(0,0)(0,0)(0,0) -> 16x16"},
    {"wmma3.a.k8",
     0,
     {1, 2},
     COLS_FIRST,
     {32, 32},
     "reg(0,1)(0,2)(0,4)(0,16) lane(1,0)(2,0)(4,0)(8,0)(0,8) warp(0,0)(0,0)(16,0) -> 32x32"},
};

/* A dot's operand (0: A [M, K], 1: B [K, N]): warps along the other operand's dimension hold the
 * same data. */
static TlLayout *operand_of(const FragmentCase *c)
{
    TlLayout *l = tl_layout_fragment(&arena, c->fragment, (int[]){0, 0}, orders[c->order]);
    for (int k = 0; l && k < 2; k++) {
        int d = orders[c->order][k], bits = c->warps[d];
        TlLayout *w = d == !c->operand ? tl_layout_zeros(&arena, bits, TL_IN_WARP, 2)
                                       : tl_layout_identity(&arena, bits, TL_IN_WARP, 2, d);
        l = tl_layout_product(&arena, l, w);
    }
    return l;
}

static void golden_fragments(void)
{
    for (size_t i = 0; i < sizeof fragment_cases / sizeof *fragment_cases; i++) {
        const FragmentCase *c = &fragment_cases[i];
        TlLayout *l =
            c->operand < 0
                ? tl_layout_fragment(&arena, c->fragment, c->warps, orders[c->order])
                : operand_of(c);
        if (!CHECK(l != NULL))
            continue;
        TlLayout *tile = tl_layout_cover(&arena, l, c->shape, orders[COLS_FIRST]);
        CHECK_STR(show(tile), c->want);
        CHECK(tl_layout_is_surjective(tile));
    }
    CHECK(!tl_layout_fragment(&arena, "mma.v9.c", (int[]){0, 0}, orders[0]));
}

static TlLayout *grown(TlLayout *l, int32_t rows, int32_t cols)
{
    return tl_layout_cover(&arena, l, (int32_t[]){rows, cols}, orders[COLS_FIRST]);
}

#define COLUMNS_1_TO_16 "offset(0,1)(0,2)(0,4)(0,8)(0,16)"
static void golden_shared(void)
{
    CHECK_STR(show(swizzled_layout(&arena, 5, 5, 2, 2, 4)),
              COLUMNS_1_TO_16 "(1,0)(2,2)(4,4)(8,0)(16,0) -> 32x32");
    CHECK_STR(show(nvmma_layout(&arena, 3, 4, 16, 32)),
              "offset(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8) -> 8x16");
    CHECK_STR(show(nvmma_layout(&arena, 3, 5, 16, 64)),
              COLUMNS_1_TO_16 "(1,0)(2,8)(4,16) -> 8x32");
    CHECK_STR(show(nvmma_layout(&arena, 3, 6, 16, 128)),
              COLUMNS_1_TO_16 "(0,32)(1,8)(2,16)(4,32) -> 8x64");
    CHECK_STR(show(nvmma_layout(&arena, 4, 7, 16, 128)),
              COLUMNS_1_TO_16 "(0,32)(1,8)(2,16)(4,32)(8,0)(0,64) -> 16x128");
    CHECK(is_invertible(swizzled_layout(&arena, 6, 6, 8, 1, 8)));
}

static void blocked(void)
{
    TlLayout *l = tl_layout_blocked(&arena, 2, (int[]){0, 2}, (int[]){3, 2}, (int[]){2, 0},
                                    orders[COLS_FIRST]);
    CHECK_STR(show(l), "reg(0,1)(0,2) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)(16,0) -> 32x16");
    CHECK_INT(tl_layout_consecutive_bits(l, TL_IN_REG), 2);
    CHECK_STR(show(grown(l, 16, 64)),
              "reg(0,1)(0,2)(0,16)(0,32) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)(0,0) -> 16x64");
    CHECK_STR(show(grown(l, 1, 16)),
              "reg(0,1)(0,2) lane(0,4)(0,8)(0,0)(0,0)(0,0) warp(0,0)(0,0) -> 1x16");
    TlLayout *columns = tl_layout_blocked(&arena, 2, (int[]){1, 0}, (int[]){2, 3}, (int[]){0, 1},
                                          orders[ROWS_FIRST]);
    CHECK_STR(show(columns), "reg(1,0) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(0,8) -> 8x16");
}

/* ---- extents that are no power of two ---- */

static void repetitions(void)
{
    TlLayout *c = tl_layout_fragment(&arena, "mma.v3.c", (int[]){2, 0}, orders[ROWS_FIRST]);
    TlLayout *l = grown(
        c, 192, 176); /* 3 x 64 rows; 176 columns are 11 x 16: one register bit, then 11 copies */
    CHECK_STR(show(l), "reg(0,1)(8,0)(0,8)" MMA_LANES " warp(16,0)(32,0) -> 64x16 * 3x11");
    CHECK_INT(tl_layout_extent(l, 0), 192);
    CHECK_INT(tl_layout_extent(l, 1), 176);
    CHECK_INT(tl_layout_registers(l), 8 * 33);
    CHECK(tl_layout_equal(l, parse(show(l))));
    int32_t out[2];
    tl_layout_apply_reg(l, 8 * 12 + 1, (uint32_t[]){0, 0, 0},
                        out); /* repetition 12 of 3 x 11 is (1, 1) */
    CHECK_INT(out[0], 64);
    CHECK_INT(out[1], 17);
    static uint8_t seen[192][176];
    for (int64_t reg = 0; reg < tl_layout_registers(l); reg++)
        for (uint32_t t = 0; t < 128; t++) {
            tl_layout_apply_reg(l, reg, (uint32_t[]){0, t & 31, t >> 5}, out);
            seen[out[0]][out[1]]++;
        }
    int wrong = 0;
    for (int i = 0; i < 192 * 176; i++)
        wrong += seen[i / 176][i % 176] != 1;
    CHECK_INT(wrong, 0);
    CHECK_STR(show(grown(c, 100, 5)), "reg(0,1)(8,0)(64,0)" MMA_LANES
                                      " warp(16,0)(32,0) -> 128x8"); /* rounded up to 2 x 64 */
}

/* ---- making, product ---- */

static void Empty(void)
{
    TlLayout *e = tl_layout_empty(&arena, 0);
    CHECK_STR(show(e), "-> scalar");
    CHECK(is_invertible(e));
    CHECK(tl_layout_equal(e, parse("-> scalar")));
    TlLayout *id = tl_layout_identity(&arena, 3, TL_IN_REG, 1, 0),
             *one = tl_layout_empty(&arena, 1);
    CHECK(tl_layout_equal(tl_layout_product(&arena, one, id), id));
    CHECK(tl_layout_equal(tl_layout_product(&arena, id, one), id));
}

static void Identity1D(void)
{
    CHECK_STR(show(tl_layout_identity(&arena, 5, TL_IN_LANE, 1, 0)), "lane(1)(2)(4)(8)(16) -> 32");
    CHECK_STR(show(tl_layout_identity(&arena, 0, TL_IN_LANE, 1, 0)), "lane -> 1");
    CHECK(!tl_layout_equal(tl_layout_identity(&arena, 0, TL_IN_LANE, 1, 0),
                           tl_layout_empty(&arena, 1)));
}

static void Zeros1D(void)
{
    TlLayout *z = tl_layout_zeros(&arena, 2, TL_IN_WARP, 1);
    CHECK_STR(show(z), "warp(0)(0) -> 1");
    CHECK(tl_layout_is_surjective(z) && !tl_layout_is_injective(z));
}

static void Strided1D(void)
{
    CHECK_STR(show(tl_layout_strided(&arena, 3, 2, TL_IN_REG, 1, 0)), "reg(4)(8)(16) -> 32");
    CHECK(!tl_layout_is_surjective(tl_layout_strided(&arena, 3, 2, TL_IN_REG, 1, 0)));
}

static void MultiplyIdentity(void)
{
    TlLayout *p = tl_layout_product(&arena, tl_layout_identity(&arena, 4, TL_IN_REG, 1, 0),
                                    tl_layout_identity(&arena, 3, TL_IN_REG, 1, 0));
    CHECK(tl_layout_equal(p, tl_layout_identity(&arena, 7, TL_IN_REG, 1, 0)));
}

static void MultiplyDisjoint(void)
{
    TlLayout *p = tl_layout_product(&arena, tl_layout_identity(&arena, 2, TL_IN_REG, 2, 0),
                                    tl_layout_identity(&arena, 3, TL_IN_LANE, 2, 1));
    CHECK_STR(show(p), "reg(1,0)(2,0) lane(0,1)(0,2)(0,4) -> 4x8");
    CHECK(is_invertible(p));
}

static void MultiplyByZeros(void)
{
    TlLayout *id = tl_layout_identity(&arena, 2, TL_IN_REG, 1, 0),
             *z = tl_layout_zeros(&arena, 2, TL_IN_REG, 1);
    CHECK_STR(show(tl_layout_product(&arena, id, z)), "reg(1)(2)(0)(0) -> 4");
    CHECK_STR(show(tl_layout_product(&arena, z, id)), "reg(0)(0)(1)(2) -> 4");
}

static void MultiplyOverlapping(void)
{
    TlLayout *p = tl_layout_product(&arena, tl_layout_identity(&arena, 1, TL_IN_REG, 1, 0),
                                    tl_layout_identity(&arena, 2, TL_IN_LANE, 1, 0));
    p = tl_layout_product(&arena, p, tl_layout_identity(&arena, 1, TL_IN_REG, 1, 0));
    CHECK_STR(show(p), "reg(1)(8) lane(2)(4) -> 16");
}

static void Text(void)
{
    const char *same[] = {"reg(1)(2) lane(4)(0) -> 8", "offset(1,3)(0,5) warp -> 2x8", "-> 1x1",
                          "reg()() -> scalar", "reg(0,0,0,0,1) -> 1x1x1x1x2 * 3x1x1x1x7"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        CHECK_STR(show(parse(same[i])), same[i]);
    CHECK_STR(show(parse(" reg ( 1 , 0 )\n(2,0)  lane(0, 4)")), "reg(1,0)(2,0) lane(0,4) -> 4x8");
    const char *bad[] = {"reg(1)(2,0)",      "reg(1",
                         "reg(-1)",          "reg(1) reg(2)",
                         "reg(4) -> 4",      "reg(1) -> 3",
                         "reg(1) -> 2x2",    "foo(1)",
                         "reg(1) -> 2 * 0",  "reg(1) -> 2 junk",
                         "reg(99999999999)", "reg(1) -> 2 * 2000000000",
                         "reg(1,1,1,1,1,1)"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!CHECK(!tl_layout_parse(&arena, bad[i])))
            fprintf(stderr, "    text %s\n", bad[i]);
}

/* ---- applying ---- */

static void Apply(void)
{
    TlLayout *l = parse("reg(1,0)(2,3) lane(0,4) -> 4x8");
    int32_t out[2];
    tl_layout_apply(l, (uint32_t[]){3, 1}, out);
    CHECK_INT(out[0], 3);
    CHECK_INT(out[1], 7);
    tl_layout_apply(l, (uint32_t[]){0, 0}, out);
    CHECK_INT(out[0] | out[1], 0);
}

/* ---- facts ---- */

static void IsZero(void)
{
    TlLayout *l = parse("reg(1,0)(2,4) lane(0,1)(0,0) -> 4x8");
    CHECK(tl_layout_is_zero(l, 1u << TL_IN_LANE, 1) && !tl_layout_is_zero(l, 1u << TL_IN_LANE, 2));
    CHECK(tl_layout_is_zero(l, 0, ~0u) && tl_layout_is_zero(l, ~0u, 0));
}

static void NumConsecutiveInOut(void)
{
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(1)(2)(4) -> 8"), TL_IN_REG), 3);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(1)(4)(2) -> 8"), TL_IN_REG), 1);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(2)(1) -> 4"), TL_IN_REG), 0);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(0,1)(1,0) -> 2x2"), TL_IN_REG), 2);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(1,0)(0,1) -> 2x2"), TL_IN_REG), 0);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(1)(2) lane(4)(9) -> 16"), TL_IN_REG),
              0); /* a lane starts at an odd place */
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(1)(2) lane(4)(10) -> 16"), TL_IN_REG), 1);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(1)(2) lane(4) -> 8"), TL_IN_WARP), 0);
    CHECK_INT(tl_layout_consecutive_bits(parse("offset(1)(2)(4) -> 8"), TL_IN_OFFSET), 3);
    CHECK_INT(tl_layout_consecutive_bits(parse("reg(0,1)(1,0) -> 2x2 * 1x3"), TL_IN_REG),
              1); /* rows are 6 apart */
}

static void ContiguousElemsAlongOutputDim(void)
{
    TlLayout *l = parse("reg(1,0)(2,0)(0,1) lane(4,0)(0,2) -> 8x4");
    CHECK_INT(tl_layout_contiguous_bits(l, TL_IN_REG, 0), 2);
    CHECK_INT(tl_layout_contiguous_bits(l, TL_IN_REG, 1), 0);
    CHECK_INT(tl_layout_contiguous_bits(parse("reg(1,0)(2,0) lane(1,1) -> 4x2"), TL_IN_REG, 0), 0);
}

static void FreeVariableMasks(void)
{
    uint32_t masks[TL_LAYOUT_MAX_IN];
    tl_layout_free_masks(parse("reg(1)(0)(2) lane(1)(4)(0) warp(7) -> 8"), masks);
    CHECK_INT(masks[0], 2);
    CHECK_INT(masks[1], 5);
    CHECK_INT(masks[2], 1); /* 7 = 1 ^ 2 ^ 4 */
    tl_layout_free_masks(parse("reg(1)(2) lane(4) -> 8"), masks);
    CHECK_INT(masks[0] | masks[1], 0);
}

static void IsSurjectiveInjective(void)
{
    TlLayout *l = parse("reg(1)(2) lane(3) -> 4");
    CHECK(tl_layout_is_surjective(l) && !tl_layout_is_injective(l) && !is_invertible(l));
    l = parse("reg(1)(2) -> 8");
    CHECK(!tl_layout_is_surjective(l) && tl_layout_is_injective(l) && !is_invertible(l));
    l = parse("reg(3)(2) -> 4");
    CHECK(is_invertible(l) && tl_layout_rank(l) == 2);
}

/* ---- misuse is an assertion of ours ---- */

static bool faults(void (*use)(void))
{
    TlGuard g;
    if (!TL_GUARD(&g))
        return g.fault == TL_FAULT_INTERNAL;
    use();
    tl_guard_pop(&g);
    return false;
}
static void use_product(void)
{
    tl_layout_product(&arena, parse("reg(1)"), parse("reg(1,0)"));
}
static void use_repeated(void)
{
    tl_layout_product(&arena, parse("reg(1) -> 2 * 3"), parse("lane(1) -> 2"));
}
static void use_order(void)
{
    tl_layout_cover(&arena, parse("reg(1,0)"), (int32_t[]){4, 4}, (int[]){1, 1});
}

static void Misuse(void)
{
    CHECK(faults(use_order));
    CHECK(faults(use_product));
    CHECK(faults(use_repeated));
}

static void (*const tests[])(void) = {golden_fragments,
                                      golden_shared,
                                      blocked,
                                      repetitions,
                                      Empty,
                                      Identity1D,
                                      Zeros1D,
                                      Strided1D,
                                      MultiplyIdentity,
                                      MultiplyDisjoint,
                                      MultiplyByZeros,
                                      MultiplyOverlapping,
                                      Text,
                                      Apply,
                                      IsZero,
                                      NumConsecutiveInOut,
                                      ContiguousElemsAlongOutputDim,
                                      FreeVariableMasks,
                                      IsSurjectiveInjective,
                                      Misuse};

int main(void)
{
    tl_arena_init(&arena, (TlAlloc){0});
    TlGuard g;
    if (TL_GUARD(&g)) {
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
            tests[i]();
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "fault: %s\n", g.text);
        CHECK(false);
    }
    tl_arena_free(&arena);
    return unit_result();
}
