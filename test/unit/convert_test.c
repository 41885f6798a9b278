/* Plans of conversions: 30 pairs of layouts, each with the kind and cost that it must have, proved
 * by enumeration in every way that the plan can be made; then random pairs. */
#include "ir/plan/layout_convert.h"
#include "test/unit/unit.h"
#include <stdlib.h>

static TlCtx ctx;

static const TlLayout *lay(const char *text)
{
    TlLayout *l = tl_layout_parse(&ctx.perm, text);
    if (!CHECK(l != NULL))
        fprintf(stderr, "    %s\n", text);
    return tl_layout_intern(&ctx, l ? l : tl_layout_empty(&ctx.perm, 1));
}

static const TlType *type_of(TlDtype d, const char *shape)
{
    int32_t extent[TL_MAX_RANK];
    int rank = 0;
    for (const char *c = shape; *c; c += *c != 0) {
        extent[rank] = (int32_t)strtol(c, (char **)&c, 10);
        rank++;
    }
    return tl_type_tile(&ctx, d, rank, extent);
}

#define NONE    TL_CONVERT_NONE
#define RENAME  TL_CONVERT_RENAME
#define SHUFFLE TL_CONVERT_SHUFFLE
#define SHARED  TL_CONVERT_SHARED

/* 16x16 over 2 warps and 32 lanes, rows and columns fastest */
#define ROWS "reg(0,1)(0,2) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)"
#define COLS "reg(1,0)(2,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,8)"
/* 64x64 over 4 warps */
#define ROWS64  "reg(0,1)(0,2)(16,0)(32,0)(0,32) lane(0,4)(0,8)(0,16)(1,0)(2,0) warp(4,0)(8,0)"
#define COLS64  "reg(1,0)(2,0)(0,16)(0,32)(32,0) lane(4,0)(8,0)(16,0)(0,1)(0,2) warp(0,4)(0,8)"
#define MMA64   "reg(0,1)(8,0)(0,8)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(16,0)(32,0)"
#define MMA_A64 "reg(0,1)(8,0)(0,8)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) warp(16,0)(32,0)"
#define MMA_B64                                                                                    \
    "reg(1,0)(8,0)(16,0)(32,0)(0,8)(0,16)(0,32) lane(2,0)(4,0)(0,1)(0,2)(0,4) warp(0,0)(0,0)"
#define MFMA32  "reg(1,0)(2,0)(8,0)(16,0) lane(0,1)(0,2)(0,4)(0,8)(0,16)(4,0) warp(0,32)(32,0)"
#define ROWS64W "reg(0,1)(0,2)(0,4)(0,8) lane(0,16)(0,32)(1,0)(2,0)(4,0)(8,0) warp(16,0)(32,0)"

/* shuffles: wanted of SHUFFLE. waves: of write and read together, wanted of SHARED unless 0. */
static const struct {
    TlDtype dtype;
    const char *shape, *src, *dst;
    TlConvertKind kind;
    uint32_t shuffles, waves;
} pairs[] = {
    /* the same, and the same in other registers */
    {TL_F32, "16x16", ROWS, ROWS, NONE, 0, 0},
    {TL_F32, "16x16", "reg(0,2)(0,1) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)", ROWS, RENAME, 0, 0},
    {TL_F16, "4x8", "reg(0,1)(0,2)(1,0)(2,0) lane(0,4)", "reg(2,0)(0,2)(1,0)(0,1) lane(0,4)",
     RENAME, 0, 0},
    {TL_F32, "64x64", MMA64, MMA_A64, NONE, 0, 0},
    {TL_F32, "24", "reg(1) lane(2)(4) -> 8 * 3", "reg(1)(8) lane(2)(4) -> 16 * 2", RENAME, 0, 0},
    {TL_F32, "6x10", "lane(0,1)(0,2) -> 1x4 * 6x3", "reg(1,0) lane(0,1)(0,2) -> 2x4 * 3x3", RENAME,
     0, 0},
    /* copies are read from one's own registers */
    {TL_F32, "16", "reg(1)(2) lane(4)(8)(0)(0)(0)", "reg(1)(2) lane(4)(8)(0)(0)(0)", NONE, 0, 0},
    {TL_F32, "16", "reg(1)(2) lane(4)(8)(0)(0)(0)", "lane(4)(8)(1)(2)(0)", SHUFFLE, 0, 0},
    {TL_F32, "16", "reg(1)(2) lane(4)(8)(0)(0)(0)", "lane(4)(8)(0)(1)(2)", SHUFFLE, 0, 0},
    {TL_F32, "8", "lane(1)(2)(4) warp(0)", "reg(4) lane(1)(2)(0) warp(0)", SHUFFLE, 2, 0},
    {TL_F32, "8", "reg(4) lane(1)(2)(0) warp(0)", "reg(1) lane(2)(0)(0) warp(4)", SHUFFLE, 2, 0},
    /* one transposition of a register and a lane bit: half of the registers */
    {TL_F32, "32x4", "reg(0,1)(0,2) lane(1,0)(2,0)(4,0)(8,0)(16,0)",
     "reg(1,0)(0,2) lane(0,1)(2,0)(4,0)(8,0)(16,0)", SHUFFLE, 2, 0},
    {TL_F64, "32x4", "reg(0,1)(0,2) lane(1,0)(2,0)(4,0)(8,0)(16,0)",
     "reg(1,0)(0,2) lane(0,1)(2,0)(4,0)(8,0)(16,0)", SHUFFLE, 4, 0},
    /* a lane has every other column and gets all: those of its own are not shuffled, if they are
     * halves of words */
    {TL_F16, "16x16", "reg(0,2)(0,4)(0,8) lane(1,0)(2,0)(4,0)(8,0)(0,1)",
     "reg(0,1)(0,2)(0,4)(0,8) lane(1,0)(2,0)(4,0)(8,0)(0,0)", SHUFFLE, 4, 0},
    {TL_F32, "16x16", "reg(0,2)(0,4)(0,8) lane(1,0)(2,0)(4,0)(8,0)(0,1)",
     "reg(0,1)(0,2)(0,4)(0,8) lane(1,0)(2,0)(4,0)(8,0)(0,0)", SHUFFLE, 16, 0},
    /* lanes only */
    {TL_F32, "32", "lane(1)(2)(4)(8)(16)", "lane(16)(8)(4)(2)(1)", SHUFFLE, 1, 0},
    {TL_F32, "32x2", "reg(0,1) lane(1,0)(2,0)(4,0)(8,0)(16,0)",
     "reg(0,1) lane(1,1)(2,0)(4,0)(8,0)(16,0)", SHUFFLE, 0, 0},
    /* two transpositions: three quarters */
    {TL_F32, "32x4", "reg(0,1)(0,2) lane(1,0)(2,0)(4,0)(8,0)(16,0)",
     "reg(1,0)(2,0) lane(0,1)(0,2)(4,0)(8,0)(16,0)", SHUFFLE, 3, 0},
    /* through shared memory: transposes */
    {TL_F32, "16x16", ROWS, COLS, SHARED, 0, 8},
    {TL_F32, "64x64", ROWS64, COLS64, SHARED, 0, 64},
    {TL_F16, "64x64", ROWS64, COLS64, SHARED, 0, 0},
    {TL_I8, "64x64", ROWS64, COLS64, SHARED, 0, 0},
    {TL_F64, "64x64", ROWS64, COLS64, SHARED, 0, 128},
    {TL_BOOL, "16x16", ROWS, COLS, SHARED, 0, 0},
    /* blocked to and from fragments */
    {TL_F32, "64x64", ROWS64, MMA64, SHARED, 0, 64},
    {TL_F32, "64x64", MMA64, ROWS64, SHARED, 0, 64},
    {TL_F16, "64x64", ROWS64, MMA_A64, SHARED, 0, 0},
    {TL_F16, "64x64", ROWS64, MMA_B64, SHARED, 0, 0},
    {TL_F32, "64x64", ROWS64W, MFMA32, SHARED, 0, 0},
    {TL_F16, "64x64", MFMA32, ROWS64W, SHARED, 0, 0},
    /* slices: a row of a tile to all warps, and spread */
    {TL_F32, "64", "lane(1)(2)(4)(0)(0) warp(8)(16) reg(32)",
     "reg(1) lane(2)(4)(8)(16)(32) warp(0)(0)", SHARED, 0, 0},
    {TL_F32, "64", "reg(1) lane(2)(4)(8)(16)(32) warp(0)(0)",
     "lane(1)(2)(4)(0)(0) warp(8)(16) reg(32)", SHUFFLE, 2, 0},
    {TL_F32, "4", "lane(0)(0)(0)(0)(0) warp(1)(2)", "reg(1)(2) lane(0)(0)(0)(0)(0) warp(0)(0)",
     SHARED, 0, 0},
    /* odd extents, with repetitions and padding */
    {TL_F32, "48x80", "reg(0,1)(0,2) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0) -> 16x16 * 3x5",
     "reg(1,0)(2,0) lane(4,0)(8,0)(0,1)(0,2)(0,4) warp(0,8) -> 16x16 * 3x5", SHARED, 0, 0},
    {TL_F16, "5x7", "lane(0,1)(0,2)(0,4)(1,0)(2,0) warp(4,0)",
     "reg(1,0) lane(0,1)(0,2)(2,0)(4,0)(0,0) warp(0,4)", SHARED, 0, 0},
    {TL_F32, "17x3", "lane(1,0)(2,0)(4,0)(8,0)(16,0) warp(0,0) -> 32x1 * 1x3",
     "reg(1,0) lane(2,0)(4,0)(8,0)(0,1)(0,2) warp(0,0) -> 16x4 * 2x1", SHARED, 0, 0},
    {TL_F32, "176x48", "reg(0,1) lane(0,2)(0,4)(0,8)(1,0)(2,0) warp(4,0)(8,0) -> 16x16 * 11x3",
     "reg(1,0)(2,0)(64,0)(128,0) lane(4,0)(8,0)(16,0)(32,0)(0,1) warp(0,2)(0,4) -> 256x8 * 1x6",
     SHARED, 0, 0},
    {TL_U8, "1x1", "lane(0,0)(0,0) warp(0,0)", "lane(0,1)(0,0) warp(0,0)", NONE, 0, 0},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static bool prove(const TlConvert *c, const TlType *t, const TlLayout *src, const TlLayout *dst,
                  const char *how)
{
    const char *fault = tl_convert_prove(&ctx.perm, c, t, src, dst);
    if (CHECK(fault == NULL))
        return true;
    fprintf(stderr, "    %s: %s\n", how, fault);
    return false;
}

static void show(const TlConvert *c, size_t i)
{
    static const char *const kinds[] = {"none", "rename", "shuffle", "shared"};
    fprintf(stderr,
            "    pair %zu, %s to %s of %s: %s, %u shuffles %u selects, write %u x %u bytes %u "
            "waves, read %u x %u bytes %u waves, %u rounds %u bytes\n",
            i, pairs[i].src, pairs[i].dst, tl_dtype_name(pairs[i].dtype), kinds[c->kind],
            c->shuffles, c->selects, c->write.naccesses, c->write.vec_bytes, c->write.wavefronts,
            c->read.naccesses, c->read.vec_bytes, c->read.wavefronts, c->nrounds, c->bytes);
}

/* Wavefronts of one access of a warp, counted bank by bank. */
static uint32_t count_wavefronts(const TlConvert *c, const TlConvertSide *s,
                                 const TlConvertAccess *a)
{
    uint32_t unit = s->vec_bytes > 4 ? s->vec_bytes : 4, group = 128 / unit,
             lanes = 1u << c->lane_bits, sum = 0;
    for (uint32_t first = 0; first < lanes; first += group) {
        uint32_t words[32][32], n[32] = {0}, most = 0;
        for (uint32_t lane = first; lane < first + group && lane < lanes; lane++) {
            if (lane & s->skip_lanes)
                continue;
            uint32_t at = a->offset ^ tl_thread_map(&s->offset, lane, 0);
            for (uint32_t w = at / 4; w < at / 4 + unit / 4; w++) {
                uint32_t bank = w % 32, k = 0;
                while (k < n[bank] && words[bank][k] != w)
                    k++;
                if (k == n[bank])
                    words[bank][n[bank]++] = w;
                most = n[bank] > most ? n[bank] : most;
            }
        }
        sum += most;
    }
    return sum;
}

/* The plan's count is right, and, where copies and padding leave no other choice, as low as the
 * accesses' width allows. */
static bool check_wavefronts(const TlConvert *c, const TlConvertSide *s, bool best)
{
    uint32_t sum = 0, lanes = 1u << c->lane_bits, unit = s->vec_bytes > 4 ? s->vec_bytes : 4;
    for (uint32_t i = 0; i < s->naccesses; i++)
        sum += count_wavefronts(c, s, &s->accesses[i]);
    uint32_t least = unit * lanes > 128 ? s->naccesses * unit * lanes / 128 : s->naccesses;
    return CHECK_INT(s->wavefronts, sum) & (!best || CHECK(sum <= least));
}

static bool check_way(const TlType *t, const TlLayout *src, const TlLayout *dst, uint32_t bytes,
                      uint32_t flags, bool best, const char *how)
{
    const TlConvert *c = tl_convert_plan(&ctx.perm, t, src, dst, bytes, flags);
    bool ok = prove(c, t, src, dst, how);
    if (c->kind == SHARED)
        ok &= check_wavefronts(c, &c->write, best) & check_wavefronts(c, &c->read, best);
    return ok;
}

static int told_apart[2]; /* plans whose rounds writers, readers tell apart */

/* What there is is enough, whatever the layouts. */
static bool check_fit(const TlType *t, const TlLayout *src, const TlLayout *dst, uint32_t bytes)
{
    const TlConvert *c = tl_convert_plan(&ctx.perm, t, src, dst, bytes,
                                         TL_CONVERT_NO_SHUFFLE | TL_CONVERT_FIT);
    told_apart[0] += c->write.times > 1;
    told_apart[1] += c->read.times > 1;
    return prove(c, t, src, dst, "in parts") & (c->kind != SHARED || CHECK(c->bytes <= bytes));
}

static bool every_way(const TlType *t, const TlLayout *src, const TlLayout *dst, bool best)
{
    return check_way(t, src, dst, 0, 0, best, "as planned") &
           check_way(t, src, dst, 0, TL_CONVERT_NO_SHUFFLE, best, "without shuffles") &
           check_way(t, src, dst, 512, TL_CONVERT_NO_SHUFFLE, best, "in some rounds") &
           check_way(t, src, dst, 1, TL_CONVERT_NO_SHUFFLE, best, "in as many rounds as it can") &
           check_fit(t, src, dst, 256) & check_fit(t, src, dst, 16);
}

static void one_pair(size_t i)
{
    const TlType *t = type_of(pairs[i].dtype, pairs[i].shape);
    const TlLayout *src = lay(pairs[i].src), *dst = lay(pairs[i].dst);
    const TlConvert *c = tl_convert_plan(&ctx.perm, t, src, dst, 0, 0);
    bool ok = CHECK_INT(c->kind, pairs[i].kind);
    ok &= c->kind != SHUFFLE || CHECK_INT(c->shuffles, pairs[i].shuffles);
    ok &= c->kind != SHARED || !pairs[i].waves ||
          CHECK_INT(c->write.wavefronts + c->read.wavefronts, pairs[i].waves);
    ok &= every_way(t, src, dst, true);
    if (!ok || getenv("CONVERT_TEST_SHOW"))
        show(c, i);
}

/* ---- rounds, and proofs that can fail ---- */

static void rounds_save_memory(void)
{
    const TlType *t = type_of(TL_F32, "64x64");
    const TlLayout *src = lay(ROWS64), *dst = lay(COLS64);
    CHECK_INT(tl_convert_plan(&ctx.perm, t, src, dst, 0, 0)->bytes, 64 * 64 * 4);
    CHECK_INT(tl_convert_plan(&ctx.perm, t, src, dst, 16384, 0)->nrounds, 1);
    const TlConvert *c = tl_convert_plan(&ctx.perm, t, src, dst, 8192, 0);
    CHECK(c->nrounds == 2 && c->bytes == 8192);
    c = tl_convert_plan(&ctx.perm, t, src, dst, 1, 0); /* two register bits are common */
    CHECK(c->nrounds == 4 && c->bytes == 4096);
    CHECK_INT(c->write.wavefronts + c->read.wavefronts, 64);
}

/* Sums of a product that become an operand of the next one (mma.m16n8k16, eight warps): as many
 * wavefronts either way, but registers that the operand has side by side come by one access. */
static void reads_are_in_order(void)
{
    const TlType *t = type_of(TL_F16, "64x64");
    const TlLayout *sums = lay("reg(0,1)(8,0)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) "
                               "warp(16,0)(32,0)(0,8)"),
                   *operand = lay("reg(0,1)(8,0)(0,8)(0,16)(0,32) lane(0,2)(0,4)(1,0)(2,0)(4,0) "
                                  "warp(16,0)(32,0)(0,0)");
    const TlConvert *c = tl_convert_plan(&ctx.perm, t, sums, operand, 0, 0);
    CHECK_INT(c->kind, SHARED);
    CHECK(c->read.vec_bytes >= 8);
    CHECK_INT(c->write.wavefronts + c->read.wavefronts, 24);
    for (uint32_t i = 0; i < c->read.naccesses; i++)
        for (int k = 0; k < 1 << c->read.vec_bits; k++)
            CHECK_INT(c->read.accesses[i].regs[k], c->read.accesses[i].regs[0] + k);
}

static void wrong_plans_are_refused(void)
{
    const TlType *t = type_of(TL_F32, "16x16");
    const TlLayout *rows = lay(ROWS), *cols = lay(COLS),
                   *swapped = lay("reg(0,2)(0,1) lane(0,4)(0,8)(1,0)(2,0)(4,0) warp(8,0)");
    TlConvert *c = tl_convert_plan(&ctx.perm, t, rows, cols, 0, 0);
    c->read.offset.lane[1] ^= 4;
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, cols) != NULL);
    c->read.offset.lane[1] ^= 4;
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, cols) == NULL);
    c->write.offset.lane[3] = c->write.offset.lane[2];
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, cols) != NULL);
    c = tl_convert_plan(&ctx.perm, t, rows, cols, 0, 0);
    c->bytes -= 16;
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, cols) != NULL);
    c = tl_convert_plan(&ctx.perm, t, rows, cols, 0, 0);
    c->read.naccesses--;
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, cols) != NULL);
    c = tl_convert_plan(&ctx.perm, t, rows, swapped, 0, 0);
    CHECK(c->kind == RENAME && tl_convert_prove(&ctx.perm, c, t, rows, swapped) == NULL);
    c->regs[1].src = 1;
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, swapped) != NULL);
    c->kind = NONE;
    CHECK(tl_convert_prove(&ctx.perm, c, t, rows, swapped) != NULL);
    c = tl_convert_plan(&ctx.perm, type_of(TL_F32, "32"), lay("lane(1)(2)(4)(8)(16)"),
                        lay("lane(16)(8)(4)(2)(1)"), 0, 0);
    c->from_lane.lane[0] ^= 1;
    CHECK(tl_convert_prove(&ctx.perm, c, type_of(TL_F32, "32"), lay("lane(1)(2)(4)(8)(16)"),
                           lay("lane(16)(8)(4)(2)(1)")) != NULL);
}

/* ---- random pairs ---- */

static uint64_t random_state = 11;
static uint32_t below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

/* Chunk bits dealt to registers, lanes and warps at random; with `mixed`, lanes and warps XOR other
 * columns in. */
static const TlLayout *random_layout(const TlType *t, int lanes, int warps, bool mixed)
{
    int32_t images[3][16][2] = {{{0}}};
    int limit[3] = {12, lanes, warps}, used[3] = {0}, bits[2];
    TlLayout l = {
        .nin = 3, .in = {TL_IN_REG, TL_IN_LANE, TL_IN_WARP}, .nout = 2, .reps = {1, 1, 1, 1, 1}};
    for (int d = 0; d < 2; d++) {
        int most = 0;
        while (1 << most < t->shape[d])
            most++;
        bits[d] = (int)below((uint32_t)most + 2); /* up to one bit of padding */
        if (bits[d] < most - 3)
            bits[d] = most - 3;
        l.out_bits[d] = (uint8_t)bits[d];
        l.reps[d] = (t->shape[d] + (1 << bits[d]) - 1) >> bits[d];
    }
    for (int left = bits[0] + bits[1]; left > 0; left--) {
        int d = (int)below(2), to = (int)below(3);
        if (bits[d] == 0)
            d = 1 - d;
        if (used[to] == limit[to])
            to = 0;
        images[to][used[to]++][d] = 1 << --bits[d];
        if (to && below(5) == 0 && used[to] < limit[to])
            used[to]++; /* copies */
    }
    l.in_bits[0] = (uint8_t)used[0];
    l.in_bits[1] = (uint8_t)lanes;
    l.in_bits[2] = (uint8_t)warps;
    for (int i = 0; i < 3; i++)
        for (int b = 0; b < l.in_bits[i]; b++)
            memcpy(l.basis[i][b], images[i][b], sizeof images[i][b]);
    for (int n = mixed ? 4 : 0; n > 0; n--) {
        int i = (int)below(3), k = (int)below(3), b = l.in_bits[i] ? (int)below(l.in_bits[i]) : 0,
            o = l.in_bits[k] ? (int)below(l.in_bits[k]) : 0;
        if ((i == k && b == o) || !l.in_bits[i] || !l.in_bits[k])
            continue;
        l.basis[i][b][0] ^= l.basis[k][o][0];
        l.basis[i][b][1] ^= l.basis[k][o][1];
    }
    return tl_layout_intern(&ctx, &l);
}

static const char *text_of(const TlLayout *l)
{
    TlSbuf s;
    tl_sbuf_init(&s, &ctx.perm);
    tl_layout_print(&s, l);
    return s.text;
}

static void random_pairs(void)
{
    static const TlDtype dtypes[] = {TL_I8, TL_F16, TL_F32, TL_F64};
    static const int32_t extents[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 33};
    int kinds[4] = {0};
    for (int i = 0; i < 600; i++) {
        int32_t shape[2] = {extents[below(11)], extents[below(11)]};
        const TlType *t = tl_type_tile(&ctx, dtypes[below(4)], 2, shape);
        int lanes = 3 + (int)below(4), warps = (int)below(3);
        bool mixed = below(2);
        const TlLayout *src = random_layout(t, lanes, warps, mixed),
                       *dst = random_layout(t, lanes, warps, mixed);
        kinds[tl_convert_plan(&ctx.perm, t, src, dst, 0, 0)->kind]++;
        if (!every_way(t, src, dst, false))
            fprintf(stderr, "    %s: %s to %s\n", tl_type_str(&ctx, t), text_of(src), text_of(dst));
    }
    CHECK(told_apart[0] > 100 && told_apart[1] > 100);
    CHECK(kinds[NONE] > 0 && kinds[RENAME] > 0 && kinds[SHUFFLE] > 20 && kinds[SHARED] > 100);
}

static void run(void)
{
    for (size_t i = 0; i < PAIRS; i++)
        one_pair(i);
    rounds_save_memory();
    reads_are_in_order();
    wrong_plans_are_refused();
    random_pairs();
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    TlGuard g;
    if (TL_GUARD(&g)) {
        run();
        tl_guard_pop(&g);
    } else {
        CHECK(!"fault");
        fprintf(stderr, "    %s\n", g.text);
    }
    tl_ctx_free(&ctx);
    return unit_result();
}
