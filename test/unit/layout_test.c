/* Linear layouts: golden vectors of well-known fragments and shared-memory layouts, and the laws of
 * the algebra. Where a law can be checked by enumeration, it is: every input is applied. */
#include "ir/layout/layout.h"
#include "ir/support/guard.h"
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

/* The whole function as numbers: all inputs enumerated, first input fastest. */
static void for_all(const TlLayout *l,
                    void (*visit)(const TlLayout *l, const uint32_t *in, const int32_t *out,
                                  void *user),
                    void *user)
{
    for (uint32_t x = 0; x < 1u << tl_layout_total_in_bits(l); x++) {
        uint32_t in[TL_LAYOUT_MAX_IN], rest = x;
        for (int i = 0; i < l->nin; i++) {
            in[i] = rest & ((1u << l->in_bits[i]) - 1);
            rest >>= l->in_bits[i];
        }
        int32_t out[TL_LAYOUT_MAX_OUT] = {0};
        tl_layout_apply(l, in, out);
        visit(l, in, out, user);
    }
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
};

static void golden_fragments(void)
{
    for (size_t i = 0; i < sizeof fragment_cases / sizeof *fragment_cases; i++) {
        const FragmentCase *c = &fragment_cases[i];
        TlLayout *l =
            c->operand < 0
                ? tl_layout_fragment(&arena, c->fragment, c->warps, orders[c->order])
                : tl_layout_operand(&arena, c->fragment, c->operand, c->warps, orders[c->order]);
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

static void golden_operands(void)
{
    CHECK_STR(show(grown(tl_layout_mma_operand(&arena, 0, 3), 16, 64)),
              "reg(0,1)(0,2)(0,4)(8,0)(0,32) lane(0,8)(0,16)(1,0)(2,0)(4,0) -> 16x64");
    CHECK_STR(show(grown(tl_layout_mma_operand(&arena, 1, 3), 64, 8)),
              "reg(1,0)(2,0)(4,0)(32,0) lane(8,0)(16,0)(0,1)(0,2)(0,4) -> 64x8");
    CHECK_STR(show(tl_layout_mma_operand(&arena, 0, 1)),
              "reg(0,1)(8,0)(0,8)" MMA_LANES " -> 16x16");
    CHECK_STR(show(tl_layout_mma_operand(&arena, 0, 2)),
              "reg(0,1)(0,2)(8,0)(0,16) lane(0,4)(0,8)(1,0)(2,0)(4,0) -> 16x32");
    CHECK_STR(
        show(grown(tl_layout_blocked_operand(&arena, 0, 4, (int[]){1, 2}, (int[]){3, 2},
                                             (int[]){1, 2}, orders[COLS_FIRST]),
                   32, 16)),
        "reg(0,1)(0,2)(0,4)(0,8)(1,0) lane(0,0)(0,0)(2,0)(4,0)(8,0) warp(0,0)(0,0)(16,0) -> 32x16");
}

static void golden_slices(void)
{
    TlLayout *mma = tl_layout_fragment(&arena, "mma.v2.c", (int[]){1, 1}, orders[COLS_FIRST]);
    CHECK_STR(show(tl_layout_slice(&arena, grown(mma, 128, 128), 0)),
              "reg(1)(16)(32)(64) lane(2)(4)(0)(0)(0) warp(8)(0) -> 128");
    CHECK_STR(show(tl_layout_slice(&arena, grown(mma, 128, 128), 1)),
              "reg(8)(32)(64) lane(0)(0)(1)(2)(4) warp(0)(16) -> 128");
}

#define COLUMNS_1_TO_16 "offset(0,1)(0,2)(0,4)(0,8)(0,16)"
static void golden_shared(void)
{
    CHECK_STR(show(tl_layout_swizzled(&arena, 5, 5, 2, 2, 4)),
              COLUMNS_1_TO_16 "(1,0)(2,2)(4,4)(8,0)(16,0) -> 32x32");
    CHECK_STR(show(tl_layout_nvmma_shared(&arena, 3, 4, 16, 32)),
              "offset(0,1)(0,2)(0,4)(0,8)(1,0)(2,0)(4,8) -> 8x16");
    CHECK_STR(show(tl_layout_nvmma_shared(&arena, 3, 5, 16, 64)),
              COLUMNS_1_TO_16 "(1,0)(2,8)(4,16) -> 8x32");
    CHECK_STR(show(tl_layout_nvmma_shared(&arena, 3, 6, 16, 128)),
              COLUMNS_1_TO_16 "(0,32)(1,8)(2,16)(4,32) -> 8x64");
    CHECK_STR(show(tl_layout_nvmma_shared(&arena, 4, 7, 16, 128)),
              COLUMNS_1_TO_16 "(0,32)(1,8)(2,16)(4,32)(8,0)(0,64) -> 16x128");
    CHECK(tl_layout_is_invertible(tl_layout_swizzled(&arena, 6, 6, 8, 1, 8)));
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
    CHECK_STR(show(tl_layout_slice(&arena, l, 1)),
              "reg(8) lane(0)(0)(1)(2)(4) warp(16)(32) -> 64 * 3");
    CHECK_STR(show(grown(c, 100, 5)), "reg(0,1)(8,0)(64,0)" MMA_LANES
                                      " warp(16,0)(32,0) -> 128x8"); /* rounded up to 2 x 64 */
}

/* ---- making, product ---- */

static void Empty(void)
{
    TlLayout *e = tl_layout_empty(&arena, 0);
    CHECK_STR(show(e), "-> scalar");
    CHECK(tl_layout_is_invertible(e));
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
    CHECK(tl_layout_is_invertible(p));
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

/* ---- shape of the matrix ---- */

static void TransposeOuts(void)
{
    TlLayout *l = parse("reg(1,0)(2,8) lane(0,4) -> 4x16");
    TlLayout *t = tl_layout_transpose_outs(&arena, l, (int[]){1, 0});
    CHECK_STR(show(t), "reg(0,1)(8,2) lane(4,0) -> 16x4");
    CHECK(tl_layout_equal(tl_layout_transpose_outs(&arena, t, (int[]){1, 0}), l));
    CHECK_STR(show(tl_layout_transpose_outs(&arena, parse("reg(1,0,2) -> 2x1x4 * 3x5x1"),
                                            (int[]){2, 0, 1})),
              "reg(2,1,0) -> 4x2x1 * 1x3x5");
}

static void TransposeIns(void)
{
    TlLayout *l = parse("reg(1)(2) lane(4) warp(8)(0) -> 16");
    CHECK_STR(show(tl_layout_transpose_ins(&arena, l, (int[]){2, 0, 1})),
              "warp(8)(0) reg(1)(2) lane(4) -> 16");
}

static void ReshapeIns(void)
{
    TlLayout *l = parse("reg(1)(2) lane(4)(0)(8) -> 16");
    TlLayout *r = tl_layout_reshape_ins(
        &arena, l, 3, (TlInDim[]){TL_IN_OFFSET, TL_IN_REG, TL_IN_WARP}, (int[]){1, 3, 1});
    CHECK_STR(show(r), "offset(1) reg(2)(4)(0) warp(8) -> 16");
    CHECK_STR(show(tl_layout_flatten_ins(&arena, l, TL_IN_OFFSET)), "offset(1)(2)(4)(0)(8) -> 16");
    CHECK_STR(show(tl_layout_reshape_ins(&arena, l, 2, (TlInDim[]){TL_IN_REG, TL_IN_LANE},
                                         (int[]){5, 0})),
              "reg(1)(2)(4)(0)(8) lane -> 16");
}

static void ReshapeOuts(void)
{
    TlLayout *l = parse("reg(0,1)(0,2)(1,0)(2,3) -> 4x4");
    CHECK_STR(show(tl_layout_flatten_outs(&arena, l)), "reg(1)(2)(4)(11) -> 16");
    TlLayout *r = tl_layout_reshape_outs(&arena, l, 3, (int[]){1, 2, 1});
    CHECK_STR(show(r), "reg(0,0,1)(0,1,0)(0,2,0)(1,1,1) -> 2x4x2");
    CHECK(tl_layout_equal(tl_layout_reshape_outs(&arena, r, 2, (int[]){2, 2}), l));
    CHECK_STR(show(tl_layout_flatten_outs(&arena, parse("reg(1,0)(0,1)"))), "reg(2)(1) -> 4");
}

static void ResizeInDim(void)
{
    TlLayout *l = parse("reg(1)(2)(4) lane(8) -> 16");
    CHECK_STR(show(tl_layout_resize_in(&arena, l, TL_IN_REG, 1)), "reg(1) lane(8) -> 16");
    CHECK_STR(show(tl_layout_resize_in(&arena, l, TL_IN_REG, 4)), "reg(1)(2)(4)(0) lane(8) -> 16");
    CHECK_STR(show(tl_layout_resize_in(&arena, l, TL_IN_WARP, 1)),
              "reg(1)(2)(4) lane(8) warp(0) -> 16");
    CHECK(tl_layout_equal(tl_layout_resize_in(&arena, l, TL_IN_REG, 3), l));
}

static void Sublayout(void)
{
    TlLayout *l = parse("reg(1,0)(2,4) lane(0,1)(0,0) -> 4x8");
    CHECK_STR(show(tl_layout_sublayout(&arena, l, 1u << TL_IN_REG, 1)), "reg(1)(2) -> 4");
    CHECK_STR(show(tl_layout_sublayout(&arena, l, ~0u, 2)), "reg(0)(4) lane(1)(0) -> 8");
    CHECK_STR(show(tl_layout_sublayout(&arena, l, 0, 0)), "-> scalar");
    CHECK(tl_layout_is_zero(l, 1u << TL_IN_LANE, 1) && !tl_layout_is_zero(l, 1u << TL_IN_LANE, 2));
    CHECK(tl_layout_is_zero(l, 0, ~0u) && tl_layout_is_zero(l, ~0u, 0));
}

/* ---- applying and composing ---- */

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

static void ConstructLargeLayout(void)
{
    TlLayout *l = tl_layout_identity(&arena, 10, TL_IN_REG, 2, 0);
    l = tl_layout_product(&arena, l, tl_layout_identity(&arena, 10, TL_IN_OFFSET, 2, 1));
    CHECK(tl_layout_is_invertible(l));
    CHECK(
        tl_layout_equal(tl_layout_invert(&arena, tl_layout_transpose_ins(&arena, l, (int[]){0, 1})),
                        parse("reg(1,0)(2,0)(4,0)(8,0)(16,0)(32,0)(64,0)(128,0)(256,0)(512,0) "
                              "lane(0,1)(0,2)(0,4)(0,8)(0,16)(0,32)(0,64)(0,128)(0,256)(0,512)")));
}

typedef struct ComposeCheck {
    const TlLayout *inner, *outer;
    int wrong;
} ComposeCheck;

static void compose_visit(const TlLayout *l, const uint32_t *in, const int32_t *out, void *user)
{
    ComposeCheck *c = user;
    int32_t middle[TL_LAYOUT_MAX_OUT], want[TL_LAYOUT_MAX_OUT];
    tl_layout_apply(c->inner, in, middle);
    uint32_t x[TL_LAYOUT_MAX_OUT];
    for (int d = 0; d < c->inner->nout; d++)
        x[d] = (uint32_t)middle[d];
    tl_layout_apply(c->outer, x, want);
    for (int d = 0; d < l->nout; d++)
        c->wrong += out[d] != want[d];
}

static void check_compose(const char *inner, const char *outer, const char *want)
{
    TlLayout *a = parse(inner), *b = parse(outer), *l = tl_layout_compose(&arena, a, b);
    CHECK_STR(show(l), want);
    ComposeCheck c = {a, b, 0};
    for_all(l, compose_visit, &c);
    CHECK_INT(c.wrong, 0);
}

static void Compose(void)
{
    check_compose("reg(1,0)(0,2) lane(1,1) -> 2x4", "reg(1) lane(2)(4) -> 8",
                  "reg(1)(4) lane(3) -> 8");
    check_compose("lane(2)(1) -> 4", "offset(1,1)(0,2) -> 2x4", "lane(0,2)(1,1) -> 2x4");
    check_compose("reg(0) -> 1", "reg(3)(1) -> 4",
                  "reg(0) -> 4"); /* smaller outputs fit larger inputs */
}

static void Compose4D(void)
{
    check_compose("reg(1,0,0,0)(0,0,1,2) lane(0,1,0,1)(0,0,0,3) -> 2x2x2x4",
                  "reg(0,1) lane(0,2) warp(1,0) cta(2,0)(0,3) -> 4x4",
                  "reg(0,1)(1,3) lane(2,2)(2,3) -> 4x4");
}

/* dst(X(x)) == src(x) for all x */
static const char *convert(const char *src_text, const char *dst_text)
{
    TlLayout *src = parse(src_text), *dst = parse(dst_text),
             *x = tl_layout_invert_and_compose(&arena, src, dst);
    if (x) {
        TlLayout *back = tl_layout_compose(&arena, x, dst);
        CHECK_INT(back->nin, src->nin);
        for (int i = 0; i < back->nin; i++) {
            CHECK_INT(back->in_bits[i], src->in_bits[i]);
            for (int b = 0; b < back->in_bits[i]; b++)
                CHECK(memcmp(back->basis[i][b], src->basis[i][b], sizeof(int32_t) * src->nout) ==
                      0);
        }
    }
    return show(x);
}

static void InvertAndCompose_Simple(void)
{
    CHECK_STR(convert("reg(2)(1)(4) -> 8", "reg(4)(1)(2) -> 8"), "reg(4)(2)(1) -> 8");
    CHECK_STR(convert("reg(1)(2) lane(4) -> 8", "reg(1)(2) lane(4) -> 8"),
              "reg(1,0)(2,0) lane(0,1) -> 4x2");
    CHECK_STR(convert("reg(1) lane(2) -> 4", "reg(2) lane(1) -> 4"), "reg(0,1) lane(1,0) -> 2x2");
}

static void InvertAndCompose_NonInjective(void)
{
    CHECK_STR(convert("reg(1)(2)(0) -> 4", "lane(2)(0)(1) -> 4"), "reg(4)(1)(0) -> 8");
    CHECK_STR(convert("reg(1) -> 4", "lane(1)(3)(2) -> 4"), "reg(1) -> 8");
    CHECK_STR(convert("reg(2) -> 4", "lane(1)(3)(2) -> 4"),
              "reg(3) -> 8"); /* earliest columns: 2 = 1 ^ 3 */
}

static void InvertAndCompose_NotReachable(void)
{
    CHECK_STR(convert("reg(1)(2) -> 4", "reg(1) -> 4"), "none");
    CHECK_STR(convert("reg(1)(2)(4) -> 8", "reg(1)(2) -> 4"), "none");
}

static void InvertAndCompose_BroadcastedInDim(void)
{
    CHECK_STR(convert("reg(1)(0) lane(2) -> 4", "reg(1) lane(2) -> 4"),
              "reg(1,0)(0,0) lane(0,1) -> 2x2");
}

static void InvertAndCompose_BroadcastAtBeginningOfSecond(void)
{
    CHECK_STR(convert("reg(1)(2) -> 4", "reg(0)(1)(2) -> 4"), "reg(2)(4) -> 8");
}

static void InvertAndCompose_BroadcastAtEndOfSecond(void)
{
    CHECK_STR(convert("reg(1)(2) -> 4", "reg(1)(2)(0) -> 4"), "reg(1)(2) -> 8");
}

static void InvertAndCompose_BroadcastedDims(void)
{ /* both warps hold all: each reads its own copy */
    CHECK_STR(convert("reg(2)(1) warp(0) -> 4", "reg(1)(2) warp(0) -> 4"),
              "reg(2,0)(1,0) warp(0,1) -> 4x2");
}

static void InvertAndCompose_Multidim(void)
{
    CHECK_STR(convert("reg(1,0)(0,1) lane(2,0)(0,2) -> 4x4", "reg(0,1)(0,2) lane(1,0)(2,0) -> 4x4"),
              "reg(0,1)(1,0) lane(0,2)(2,0) -> 4x4");
}

static void InvertAndCompose_IdentityInDim(void)
{
    CHECK_STR(convert("reg(1)(4) lane(0)(2) warp(8) -> 16", "reg(4)(1) lane(0)(2) warp(8) -> 16"),
              "reg(2,0,0)(1,0,0) lane(0,1,0)(0,2,0) warp(0,0,1) -> 4x4x2");
}

static void InvertAndComposeBlockLocal(void)
{ /* blocks of a cluster that agree keep to themselves */
    CHECK_STR(convert("reg(1) lane(2) cta(4)(0) -> 8", "reg(2) lane(1) cta(4)(0) -> 8"),
              "reg(0,1,0) lane(1,0,0) cta(0,0,1)(0,0,2) -> 2x2x4");
}

static void Lstsq(void)
{ /* free variables are 0 and the earliest columns are used */
    CHECK_STR(convert("reg(6) -> 8", "reg(2)(4)(6)(1) -> 8"), "reg(3) -> 16");
    CHECK_STR(convert("reg(5)(0) -> 8", "reg(0)(1)(1)(4)(5)(2) -> 8"), "reg(10)(0) -> 64");
}

static void Invert(void)
{
    CHECK_STR(show(tl_layout_invert(&arena, parse("reg(2)(1) lane(4) -> 8"))),
              "offset(2,0)(1,0)(0,1) -> 4x2");
    CHECK_STR(show(tl_layout_invert(&arena, parse("reg(0,1)(2,0) lane(1,0) -> 4x2"))),
              "reg(0,1)(2,0) lane(1,0) -> 4x2");
    CHECK_STR(show(tl_layout_invert(&arena, parse("reg(1)(0)(2) -> 4"))), "offset(1)(4) -> 8");
    CHECK_STR(show(tl_layout_invert(&arena, parse("reg(1) -> 4"))), "none");
    TlLayout *swizzled = tl_layout_swizzled(&arena, 5, 6, 8, 1, 8),
             *inverse = tl_layout_invert(&arena, swizzled);
    TlLayout *id = tl_layout_compose(&arena, swizzled, inverse);
    CHECK(tl_layout_equal(id, tl_layout_identity(&arena, 11, TL_IN_OFFSET, 1, 0)));
}

/* ---- facts ---- */

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
    CHECK(tl_layout_is_surjective(l) && !tl_layout_is_injective(l) && !tl_layout_is_invertible(l));
    l = parse("reg(1)(2) -> 8");
    CHECK(!tl_layout_is_surjective(l) && tl_layout_is_injective(l) && !tl_layout_is_invertible(l));
    l = parse("reg(3)(2) -> 4");
    CHECK(tl_layout_is_invertible(l) && tl_layout_rank(l) == 2);
}

/* ---- quotients ---- */

static const char *quotient(const char *text, uint32_t mask)
{
    return show(tl_layout_quotient(&arena, parse(text), mask));
}

static void QuotientOneDimension(void)
{
    CHECK_STR(quotient("reg(1,0)(2,0) lane(0,1) -> 4x2", 1), "lane(1) -> 2");
    CHECK_STR(quotient("reg(2,0)(1,0) lane(0,1) -> 4x2", 1), "none");
    CHECK_STR(quotient("reg(1,0) lane(1,1) -> 2x2", 1), "none"); /* lane reaches into reg */
    CHECK_STR(quotient("reg(1,1) lane(0,1) -> 2x2", 1), "none");
}

static void QuotientSeveralDimensions(void)
{
    CHECK_STR(quotient("reg(2,0,0)(1,0,0) lane(0,1,0) warp(0,0,1) -> 4x2x2", 6), "reg(2)(1) -> 4");
    CHECK_STR(quotient("reg(2,0,0)(1,0,0) lane(0,1,0) warp(0,0,1) -> 4x2x2", 7), "none");
}

static void QuotientMultipleTrivialDimensions(void)
{
    CHECK_STR(quotient("reg(1,0,0) lane(0,1,0) warp(0,0,1) -> 2x2x2", 7), "-> scalar");
}

static void QuotientEmptyLayout(void)
{
    CHECK_STR(quotient("-> scalar", 0), "-> scalar");
}

static const char *divide(const char *l, const char *part, bool left)
{
    TlLayout *a = parse(l), *b = parse(part);
    TlLayout *q = left ? tl_layout_divide_left(&arena, a, b) : tl_layout_divide_right(&arena, a, b);
    if (q) /* the law that defines it, up to inputs that became empty */
        CHECK_STR(show(left ? tl_layout_product(&arena, b, q) : tl_layout_product(&arena, q, b)),
                  show(a));
    return show(q);
}

static void Divide_Basic(void)
{
    CHECK_STR(divide("reg(1)(2)(4) -> 8", "reg(1) -> 2", true), "reg(1)(2) -> 4");
    CHECK_STR(divide("reg(1)(2)(4) -> 8", "reg(1) -> 2", false), "reg(1)(2) -> 4");
    CHECK_STR(divide("reg(1)(4)(2) -> 8", "reg(1) -> 2", true), "reg(2)(1) -> 4");
    CHECK_STR(divide("reg(1)(4)(2) -> 8", "reg(1) -> 2", false), "none");
    CHECK_STR(divide("reg(2)(1)(4) -> 8", "reg(2)(1) -> 4", true), "reg(1) -> 2");
    CHECK_STR(divide("reg(1)(3) -> 4", "reg(1) -> 2", true),
              "none"); /* the rest touches the divisor's bits */
    CHECK_STR(divide("reg(1)(2) lane(4) -> 8", "reg(1) lane -> 2", true), "reg(1) lane(2) -> 4");
}

static void Divide_NonMatchingDims(void)
{
    CHECK_STR(divide("reg(1)(2) -> 4", "lane(1) -> 2", true), "none");
    CHECK_STR(divide("reg(1) -> 2", "reg(1)(2) -> 4", true), "none");
    CHECK_STR(divide("reg(1)(2) -> 4", "-> 8", true), "none");
}

static void Divide_2D(void)
{
    CHECK_STR(divide("reg(0,1)(8,0)(0,8) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(16,0) -> 32x16",
                     "reg(0,1) lane(0,2)(0,4)(1,0)(2,0)(4,0) -> 8x8", true),
              "reg(1,0)(0,1) warp(2,0) -> 4x2"); /* the 8 x 8 tile of ldmatrix */
    CHECK_STR(divide("reg(0,1)(1,0) lane(2,0)(0,2) -> 4x4", "lane(1,0)(0,1) -> 2x2", false),
              "reg(0,1)(1,0) -> 2x2");
}

static void Divide_EliminateInDim(void)
{
    CHECK_STR(divide("reg(1) lane(2)(4) -> 8", "reg(1) -> 2", true), "lane(1)(2) -> 4");
    CHECK_STR(divide("reg(1)(2) lane(4) -> 8", "lane(1) -> 2", false), "reg(1)(2) -> 4");
    CHECK_STR(divide("reg(1) lane(2) -> 4", "reg(1) lane(2) -> 4", true), "-> 1");
}

static void Divide_EliminateOutDim(void)
{
    CHECK_STR(divide("reg(1,0)(0,1)(0,2) -> 2x4", "reg(1,0) -> 2x1", true), "reg(0,1)(0,2) -> 1x4");
}

/* ---- column actions ---- */

static void ColumnActionApply(void)
{
    TlLayout *l = parse("reg(1)(0)(2)(0) lane(4) -> 8");
    TlColumns c = tl_columns_keep_nonzero(l, TL_IN_REG);
    CHECK_STR(show(tl_columns_apply(&arena, &c, l)), "reg(1)(2) lane(4) -> 8");
    CHECK(!tl_columns_is_identity(&c));
    CHECK_INT(tl_columns_source(&c, 3), 5);
    CHECK_INT(tl_columns_source(&c, 0), 0);
    TlLayout *none = parse("lane(4) -> 8");
    TlColumns on_none = tl_columns_keep_nonzero(none, TL_IN_REG);
    CHECK(tl_columns_is_identity(&on_none) &&
          tl_layout_equal(tl_columns_apply(&arena, &on_none, none), none));
}

static void ColumnActionCompose(void)
{
    TlColumns turn = {.dim = TL_IN_REG, .from = 3, .n = 3, .col = {1, 2, 0}};
    TlColumns twice = tl_columns_then(&turn, &turn), thrice = tl_columns_then(&twice, &turn),
              back = tl_columns_inverse(&turn);
    CHECK(tl_columns_is_identity(&thrice) && !tl_columns_is_identity(&twice));
    TlLayout *l = parse("reg(1)(2)(4) -> 8");
    CHECK_STR(show(tl_columns_apply(&arena, &turn, l)), "reg(2)(4)(1) -> 8");
    CHECK(tl_layout_equal(tl_columns_apply(&arena, &back, tl_columns_apply(&arena, &turn, l)), l));
    CHECK(tl_layout_equal(tl_columns_apply(&arena, &twice, l),
                          tl_columns_apply(&arena, &turn, tl_columns_apply(&arena, &turn, l))));
    for (uint32_t i = 0; i < 8; i++)
        CHECK_INT(tl_columns_source(&back, tl_columns_source(&turn, i)), i);
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
static void use_compose(void)
{
    tl_layout_compose(&arena, parse("reg(4) -> 8"), parse("reg(1) -> 2"));
}
static void use_reshape(void)
{
    tl_layout_reshape_outs(&arena, parse("reg(1) -> 2"), 1, (int[]){3});
}
static void use_repeated(void)
{
    tl_layout_invert(&arena, parse("reg(1) -> 2 * 3"));
}
static void use_perm(void)
{
    tl_layout_transpose_outs(&arena, parse("reg(1,0)"), (int[]){1, 1});
}
static void use_inverse(void)
{
    TlColumns c = {.dim = TL_IN_REG, .from = 2, .n = 1};
    tl_columns_inverse(&c);
}

static void Misuse(void)
{
    CHECK(faults(use_product));
    CHECK(faults(use_compose));
    CHECK(faults(use_reshape));
    CHECK(faults(use_repeated));
    CHECK(faults(use_perm));
    CHECK(faults(use_inverse));
}

static void (*const tests[])(void) = {golden_fragments,
                                      golden_operands,
                                      golden_slices,
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
                                      TransposeOuts,
                                      TransposeIns,
                                      ReshapeIns,
                                      ReshapeOuts,
                                      ResizeInDim,
                                      Sublayout,
                                      Apply,
                                      ConstructLargeLayout,
                                      Compose,
                                      Compose4D,
                                      InvertAndCompose_Simple,
                                      InvertAndCompose_NonInjective,
                                      InvertAndCompose_NotReachable,
                                      InvertAndCompose_BroadcastedInDim,
                                      InvertAndCompose_BroadcastAtBeginningOfSecond,
                                      InvertAndCompose_BroadcastAtEndOfSecond,
                                      InvertAndCompose_BroadcastedDims,
                                      InvertAndCompose_Multidim,
                                      InvertAndCompose_IdentityInDim,
                                      InvertAndComposeBlockLocal,
                                      Lstsq,
                                      Invert,
                                      NumConsecutiveInOut,
                                      ContiguousElemsAlongOutputDim,
                                      FreeVariableMasks,
                                      IsSurjectiveInjective,
                                      QuotientOneDimension,
                                      QuotientSeveralDimensions,
                                      QuotientMultipleTrivialDimensions,
                                      QuotientEmptyLayout,
                                      Divide_Basic,
                                      Divide_NonMatchingDims,
                                      Divide_2D,
                                      Divide_EliminateInDim,
                                      Divide_EliminateOutDim,
                                      ColumnActionApply,
                                      ColumnActionCompose,
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
