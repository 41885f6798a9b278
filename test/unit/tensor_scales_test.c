/* Scales of products into tensor memory (ir/plan/tensor_scales.h): each scale of each row is, for
 * each instruction of a plan, in the byte that PTX says (PTX ISA, "Scale factors in tensor
 * memory", "Instruction descriptor" of kinds mxf8f6f4, mxf4, mxf4nvf4). The formulas are written
 * out here. */
#include "ir/plan/tensor_scales.h"
#include "ir/plan/stage_layout.h"
#include "ir/plan/staged.h"
#include "test/unit/unit.h"

enum { LANES = 32, PIECE = 512, COLUMNS = 512 };

static TlCtx ctx;
static TlArena arena;

typedef struct Case {
    const char *mma;
    int32_t m, n, k; /* k: in elements of the operand's type */
} Case;

typedef struct Product {
    const TlMma *mma;
    TlValue value[TL_ASYNC_SIDES];
    TlAsyncSide side[TL_ASYNC_SIDES];
    TlAsyncPlan *plan;
} Product;

static const TlType *tile(TlDtype d, int32_t rows, int32_t k)
{
    return tl_type_tile(&ctx, d, 2, (int32_t[]){rows, k});
}

static void make(Product *p, const Case *c)
{
    TlMmaWarps w = {.m = 2, .n = 1, .apart = true};
    *p = (Product){.mma = tl_mma_find(c->mma)};
    const TlType *acc = tile(TL_F32, c->m, c->n);
    acc = tl_type_with_layout(&ctx, acc, tl_mma_layout(&ctx, p->mma, TL_MMA_C, acc, w, 3));
    for (int i = 0; i < 2; i++) {
        int32_t rows = i ? c->n : c->m;
        TlDtype d = p->mma->type[i], s = p->mma->type[TL_MMA_SA];
        p->value[i].type =
            tl_staging_image_buf(&ctx, &arena, tile(d, rows, c->k), 1, TL_STAGING_PIECE);
        p->value[2 + i].type =
            tl_tensor_scales_buf(&ctx, &arena, tile(s, rows, c->k / p->mma->each));
        p->side[i] = (TlAsyncSide){.buf = &p->value[i], .flipped = i};
        p->side[2 + i] = (TlAsyncSide){.buf = &p->value[2 + i]};
    }
    if (p->value[2].type && p->value[3].type)
        p->plan = tl_async_plan(&arena, p->mma, p->side, acc);
}

/* What tensor memory has of operand i after all of it was brought: of each column, lane and byte
 * the number of the scale (row * L + factor), by what is where in the buffer. */
static void bring(const Product *p, int i, int32_t (*where)[LANES][4])
{
    const TlType *t = p->value[2 + i].type;
    int32_t blocks = t->shape[1], bytes = (int32_t)tl_buf_bytes(t),
            *at = TL_NEW_ARRAY(&arena, int32_t, bytes);
    for (int32_t b = 0; b < bytes; b++)
        at[b] = -1; /* behind the tile */
    for (int32_t r = 0; r < t->shape[0]; r++)
        for (int32_t f = 0; f < blocks; f++)
            at[tl_buf_offset(t, (int32_t[TL_LAYOUT_MAX_OUT]){r, f})] = r * blocks + f;
    for (int32_t row = 0; row < t->shape[0]; row += TL_SCALES_ROWS)
        for (int32_t f = 0; f < blocks; f += TL_SCALES_WORD) {
            uint64_t from = tl_buf_offset(t, (int32_t[TL_LAYOUT_MAX_OUT]){row, f});
            int32_t to = tl_tensor_scales_column(t, row, f);
            CHECK_INT((int64_t)from % PIECE, 0);
            for (int32_t b = 0; b < PIECE; b++)
                where[to + b % 16 / 4][b / 16][b % 4] = at[from + (uint64_t)b];
        }
}

static int32_t blocks_of(const Product *p)
{
    return p->mma->k / p->mma->each;
}

/* Of the instruction of a strip and step. */
static int wrong(const Product *p, int i, int32_t first, int32_t rows, int32_t k,
                 int32_t (*where)[LANES][4])
{
    const TlType *t = p->value[2 + i].type;
    uint32_t word = tl_tensor_instruction(p->plan, k), byte = i ? word >> 4 & 3 : word >> 29 & 3;
    int32_t column = tl_tensor_scales_column(t, first, k / p->mma->each), bad = 0;
    for (int32_t r = 0; r < rows; r++)
        for (int32_t f = 0; f < blocks_of(p); f++)
            bad += where[column + r / LANES][r % LANES][byte + (uint32_t)f] !=
                   (first + r) * t->shape[1] + k / p->mma->each + f;
    return bad;
}

static void check_case(const Case *c)
{
    static int32_t where[2][COLUMNS][LANES][4];
    Product p;
    make(&p, c);
    if (!CHECK(p.plan != NULL))
        return;
    TlAsyncDot d = {.side = {p.side[0], p.side[1], p.side[2], p.side[3]}};
    int32_t pieces = (c->m + 127) / 128 + (c->n + 127) / 128;
    CHECK_INT(tl_tensor_dot_scales(&d), pieces * 4 * ((c->k / p.mma->each + 3) / 4));
    for (int i = 0; i < 2; i++)
        bring(&p, i, where[i]);
    for (uint32_t s = 0; s < p.plan->strips.len; s++)
        for (int32_t k = 0; k < c->k; k += p.mma->k) {
            const TlAsyncStrip *strip = &p.plan->strips.data[s];
            CHECK_INT(wrong(&p, 0, strip->row, TL_TENSOR_LANES, k, where[0]), 0);
            CHECK_INT(wrong(&p, 1, strip->column, p.plan->n, k, where[1]), 0);
        }
}

static void check_all(void)
{
    static const char *const NAMES[] = {
#define TENSOR(name, ...) /* async_dot_test.c */
#define TENSOR_SCALED(name, ...) name,
#include "ir/plan/tensor.def"
    };
    static const int32_t NS[] = {16, 64, 96, 128, 192, 256, 384};
    for (unsigned row = 0; row < sizeof NAMES / sizeof *NAMES; row++)
        for (unsigned n = 0; n < sizeof NS / sizeof *NS; n++)
            for (int32_t m = 128; m <= 256 && m * NS[n] <= 128 * 512; m += 128)
                for (int32_t k = 32; k <= (NS[n] & (NS[n] - 1) ? 128 : 256); k *= 2)
                    check_case(&(Case){NAMES[row], m, NS[n], k});
}

/* What Triton 3.9 has in its code for sm_100 (dot_scaled, 128 x 128), first and second step. */
static void check_constants(void)
{
    static const struct {
        Case c;
        uint32_t first, second;
    } KNOWN[] = {
        {{"tcgen05.mx.e4m3", 128, 128, 128}, 0x8a00000, 0x28a00010},
        {{"tcgen05.mx.e2m1", 128, 128, 128}, 0x8a00480, 0x48a004a0},
        {{"tcgen05.nv.e2m1", 128, 128, 128}, 0x8200480, 0x8200480},
    };
    for (unsigned i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        Product p;
        make(&p, &KNOWN[i].c);
        CHECK_INT(tl_tensor_instruction(p.plan, 0), KNOWN[i].first);
        CHECK_INT(tl_tensor_instruction(p.plan, p.mma->k), KNOWN[i].second);
    }
    CHECK(tl_tensor_scales_descriptor() == UINT64_C(0x0000400800010000));
}

static void check_buffers(void)
{
    CHECK(!tl_tensor_is_scales(
        &arena, tl_staging_image_buf(&ctx, &arena, tile(TL_U8, 128, 128), 1, TL_STAGING_PIECE)));
    CHECK(tl_tensor_is_scales(
        &arena, tl_tensor_scales_buf(&ctx, &arena, tile(TL_F8E4M3, 384, 12))));
    CHECK(tl_tensor_is_scales(&arena, tl_tensor_scales_buf(&ctx, &arena, tile(TL_U8, 80, 3))));
}

/* Of several instructions, each one's columns begin a column of scales. */
static void check_columns(void)
{
    Product p;
    make(&p, &(Case){"tcgen05.mx.e4m3", 128, 288, 128}); /* 3 of 96 */
    CHECK(p.plan && p.plan->n == 96);
}

int main(void)
{
    tl_ctx_init(&ctx, (TlAlloc){0});
    tl_arena_init(&arena, (TlAlloc){0});
    check_all();
    check_constants();
    check_buffers();
    check_columns();
    tl_arena_free(&arena);
    tl_ctx_free(&ctx);
    return unit_result();
}
