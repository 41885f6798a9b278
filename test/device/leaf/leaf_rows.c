#include "test/device/leaf/leaf_rows.h"
#include <stdio.h>

typedef struct Maker {
    TlLlvm l;
    TlArena *arena;
    LLVMBuilderRef b;
    LLVMValueRef f, tid, ctaid, in, out, map;
    LLVMTypeRef i1, i8, i32, i64, ptr;
    uint32_t nresults, lanes;
    bool rows; /* copies to shared memory are rows of a warp */
} Maker;

/* ---- building ---- */

static LLVMValueRef word(const Maker *m, uint32_t v)
{
    return LLVMConstInt(m->i32, v, 0);
}
static LLVMValueRef yes(const Maker *m)
{
    return LLVMConstInt(m->i1, 1, 0);
}
static LLVMValueRef add(Maker *m, LLVMValueRef a, uint32_t n)
{
    return LLVMBuildAdd(m->b, a, word(m, n), "");
}
static LLVMValueRef mul(Maker *m, LLVMValueRef a, uint32_t n)
{
    return LLVMBuildMul(m->b, a, word(m, n), "");
}
static LLVMValueRef and (Maker * m, LLVMValueRef a, uint32_t n)
{
    return LLVMBuildAnd(m->b, a, word(m, n), "");
}
static LLVMValueRef xor
    (Maker * m, LLVMValueRef a, uint32_t n) { return LLVMBuildXor(m->b, a, word(m, n), ""); }
    /* A word that looks random, another one for each n. */
    static LLVMValueRef mix(Maker *m, uint32_t n)
{
    LLVMValueRef x = LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, "");
    return xor(m, mul(m, add(m, x, 1 + n), 2654435761u), 0x5bd1e995u * n);
}

static LLVMValueRef call(Maker *m, tl_leaf leaf, LLVMValueRef *args, unsigned n)
{
    LLVMValueRef f = tl_leaf_declare(&m->l, leaf);
    return LLVMBuildCall2(m->b, LLVMGlobalGetValueType(f), f, args, n, "");
}
#define CALL(m, leaf, ...)                                                                         \
    call((m), TL_LEAF_##leaf, (LLVMValueRef[]){__VA_ARGS__},                                       \
         sizeof((LLVMValueRef[]){__VA_ARGS__}) / sizeof(LLVMValueRef))

static void barrier(Maker *m)
{
    CALL(m, BARRIER, word(m, 0));
}

/* Address `base` + `at` bytes (i32). */
static LLVMValueRef address(Maker *m, LLVMValueRef base, LLVMValueRef at)
{
    LLVMValueRef wide = LLVMBuildZExt(m->b, at, m->i64, "");
    return LLVMBuildGEP2(m->b, m->i8, base, &wide, 1, "");
}

/* This thread's result number n. */
static LLVMValueRef result_at(Maker *m, uint32_t n)
{
    LLVMValueRef thread = LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, "");
    return address(m, m->out, add(m, mul(m, thread, RESULTS * 16), n * 16));
}

static void keep(Maker *m, LLVMValueRef x)
{
    TL_ASSERT(m->nresults < RESULTS, "more than %d results", RESULTS);
    LLVMValueRef store = LLVMBuildStore(m->b, x, result_at(m, m->nresults++));
    LLVMSetAlignment(store, 16);
}

/* A value of a leaf's letter. */
static LLVMValueRef value(Maker *m, char letter, uint32_t n)
{
    LLVMTypeRef type = tl_leaf_type(m->l.context, letter);
    LLVMValueRef v = LLVMGetUndef(type);
    uint32_t count = letter == '2' ? 2 : letter == '4' ? 4 : 0;
    for (uint32_t i = 0; i < count; i++)
        v = LLVMBuildInsertElement(m->b, v, mix(m, n * 4 + i), word(m, i), "");
    return count ? v : LLVMBuildIntCast2(m->b, mix(m, n), type, 0, "");
}

/* The predicates tried: always, never, two threads of three. */
enum { PREDS = 3 };
static LLVMValueRef pred(Maker *m, int which)
{
    if (which < 2)
        return LLVMConstInt(m->i1, which == 0, 0);
    LLVMValueRef rest = LLVMBuildURem(m->b, m->tid, word(m, 3), "");
    return LLVMBuildICmp(m->b, LLVMIntNE, rest, word(m, 0), "");
}

/* ---- rows ---- */

char leaf_atom_letter(tl_leaf leaf)
{
    switch (leaf) {
    case TL_LEAF_ATOM_8: return 'c';
    case TL_LEAF_ATOM_16: return 'h';
    case TL_LEAF_ATOM_32: return 'i';
    default: return 'l';
    }
}

static bool is_matrix(tl_leaf leaf)
{
    return tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_MMA ||
           tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_MMA_SCALED;
}

/* Products of warpgroups: instruction, columns, bytes of a row in shared memory, TL_WGMMA_* of how.
 */
typedef struct Product {
    const char *mma;
    uint32_t n, span, how;
} Product;
static const Product PRODUCTS[] = {
    {"mma.m16n8k16.f16", 16, 128, 0},
    {"mma.m16n8k16.f16", 64, 64, TL_WGMMA_B_ACROSS},
    {"mma.m16n8k16.bf16", 32, 32, TL_WGMMA_A_ACROSS | TL_WGMMA_B_ACROSS},
    {"mma.m16n8k16.bf16", 96, 64, TL_WGMMA_A_ACROSS},
    {"mma.m16n8k16.f16", 8, 64, TL_WGMMA_A_WORDS},
    {"mma.m16n8k16.bf16", 64, 128, TL_WGMMA_A_WORDS | TL_WGMMA_B_ACROSS},
    {"mma.m16n8k8.tf32", 48, 128, 0},
    {"mma.m16n8k8.tf32", 8, 32, TL_WGMMA_A_WORDS},
    {"mma.m16n8k32.s8", 24, 64, 0},
    {"mma.m16n8k32.u8.s8", 64, 128, TL_WGMMA_A_WORDS},
    {"mma.m16n8k32.e4m3", 40, 128, 0},
    {"mma.m16n8k32.e5m2", 8, 32, TL_WGMMA_A_WORDS},
    {"mma.m16n8k32.e4m3.e5m2", 56, 64, 0},
};
enum { NPRODUCTS = sizeof PRODUCTS / sizeof *PRODUCTS };

static const LeafBox BOXES[] = {
    {"u16 view A:a,B", {30, 60}, {72, 1}, 0, 128, 16, {{4, 0}, {22, 8}}},
    {"u16 view A:a,B:b,C", {4, 10, 40}, {800, 64, 1}, 1, 64, 8, {{3, 1, 8}, {1, -2, 16}}},
    {"u16 view A:a,B:b,C:c,D",
     {3, 12, 2, 40},
     {2000, 160, 48, 1},
     1,
     32,
     8,
     {{2, 3, 1, 24}, {0, 8, 2, 0}}},
    {"u16 view A:a,B:b,C:c,D:d,E",
     {2, 2, 3, 9, 40},
     {2400, 1200, 384, 40, 1},
     3,
     64,
     8,
     {{1, 1, 2, 0, 8}, {1, -1, 2, 4, 24}}},
};

static bool is_of_warpgroups(tl_leaf leaf)
{
    return tl_leaf_info(leaf)->needs &
           (TL_CAN_WARPGROUP | TL_CAN_BULK | TL_CAN_REGISTERS | TL_CAN_TENSOR |
            TL_CAN_TENSOR_SCALED);
}

static bool is_bulk_all(tl_leaf leaf)
{
    return tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_BULK_ALL;
}

/* Commits and waits are for a store of a box of two axes. */
uint32_t leaf_box_rank(tl_leaf leaf)
{
    const tl_leaf_row *row = tl_leaf_info(leaf);
    switch (row->family) {
    case TL_LEAF_FAMILY_BULK:
    case TL_LEAF_FAMILY_BULK_ALL:
    case TL_LEAF_FAMILY_BULK_STORE: return row->size;
    case TL_LEAF_FAMILY_BULK_COMMIT:
    case TL_LEAF_FAMILY_BULK_WAIT: return 2;
    default: return 0;
    }
}

bool leaf_stores_box(tl_leaf leaf)
{
    return leaf >= TL_LEAF_BULK_STORE_1 && leaf <= TL_LEAF_BULK_WAIT;
}

const LeafBox *leaf_box(tl_leaf leaf)
{
    uint32_t rank = leaf_box_rank(leaf);
    return rank ? &BOXES[rank - 2] : NULL;
}

uint32_t leaf_shared_bytes(tl_leaf leaf)
{
    return is_of_warpgroups(leaf) ? GROUP_SHARED_BYTES : SHARED_BYTES;
}

/* How many kernels a row may have. */
uint32_t leaf_operations(tl_leaf leaf)
{
    return is_matrix(leaf)                                  ? tl_mma_count()
           : leaf == TL_LEAF_WGMMA                          ? NPRODUCTS
           : tl_leaf_class_of(leaf) == TL_LEAF_CLASS_ATOMIC ? TL_ATOM_STORE + 1u
                                                            : 1;
}

/* No image has such a map; and no launch of rows is one of pairs of programs. */
static bool is_left_out(tl_leaf leaf)
{
    return leaf_box_rank(leaf) == 1 || tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_BULK_PAIR;
}

static bool is_narrow_atomic(tl_leaf leaf)
{
    return leaf == TL_LEAF_ATOM_8 || leaf == TL_LEAF_ATOM_16;
}

/* Matrix instructions that the target has; on 8 and 16 bits there are these atomics alone, the
 * others are made of them. */
bool leaf_has_operation(const TlTarget *target, TlArena *arena, tl_leaf leaf, uint32_t op)
{
    if (is_matrix(leaf))
        return tl_mma_has(target->matrix, tl_mma_at(op)) &&
               tl_leaf_of_mma(arena, tl_mma_at(op)) == leaf;
    return tl_leaf_is_of(target, leaf) && !is_left_out(leaf) &&
           (!is_narrow_atomic(leaf) || op == TL_ATOM_LOAD || op == TL_ATOM_STORE ||
            op == TL_ATOM_CAS);
}

static const uint32_t HINTS[] = {0, 1, 2, 4, 8, 6};
static const uint32_t WIDTHS[] = {1, 2, 4, 8, 16};
static const char LETTERS[] = "chi24";

static void make_ldg(Maker *m, tl_leaf leaf)
{
    uint32_t w = WIDTHS[leaf - TL_LEAF_LDG_8];
    for (uint32_t h = 0; h < 6; h++)
        for (int p = 0; p < PREDS; p++) {
            LLVMValueRef at = mul(m, LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, ""), w);
            keep(m,
                 call(m, leaf,
                      (LLVMValueRef[]){word(m, 0), address(m, m->in, add(m, at, h * w)), pred(m, p),
                                       word(m, HINTS[h]), word(m, h & 1 ? 0x7f81ff82 : 0)},
                      5));
        }
}

static void make_stg(Maker *m, tl_leaf leaf)
{
    char letter = LETTERS[leaf - TL_LEAF_STG_8];
    for (uint32_t h = 0; h < 6; h++)
        for (int p = 0; p < PREDS; p++)
            call(m, leaf,
                 (LLVMValueRef[]){word(m, 0), result_at(m, m->nresults++), pred(m, p),
                                  word(m, HINTS[h]), value(m, letter, h)},
                 5);
}

/* The ways that LDB and STB are tried: what is there by records (0: all), what is added to every
 * offset. */
static const struct Near {
    uint32_t records, far;
} NEAR[] = {{0, 0}, {0, 4096 + 48}, {60 * 16, 0}};
enum { NEARS = sizeof NEAR / sizeof *NEAR };

static LLVMValueRef records(Maker *m, int n, uint32_t w)
{
    return word(m, NEAR[n].records ? NEAR[n].records / 16 * w : TL_RECORDS_ALL);
}

/* The base is the block's; offsets are of its threads. */
static void make_ldb(Maker *m, tl_leaf leaf)
{
    uint32_t w = WIDTHS[leaf - TL_LEAF_LDB_8];
    LLVMValueRef base = address(m, m->in, mul(m, m->ctaid, THREADS * w));
    for (uint32_t h = 0; h < 2; h++)
        for (int p = 0; p < PREDS; p++)
            for (int n = 0; n < NEARS; n++) {
                LLVMValueRef far = word(m, NEAR[n].far / 16 * w), offset = mul(m, m->tid, w);
                keep(m, call(m, leaf,
                             (LLVMValueRef[]){word(m, 0), base, pred(m, p), word(m, h),
                                              word(m, h ? 0x7f81ff82 : 0), records(m, n, w), far,
                                              offset},
                             8));
            }
}

static void make_stb(Maker *m, tl_leaf leaf)
{
    char letter = LETTERS[leaf - TL_LEAF_STB_8];
    uint32_t pitch = RESULTS * 16;
    LLVMValueRef base = address(m, m->out, mul(m, m->ctaid, THREADS * pitch));
    for (uint32_t h = 0; h < 2; h++)
        for (int p = 0; p < PREDS; p++)
            for (int n = 0; n < NEARS; n++) {
                uint32_t at = 16 * m->nresults++;
                bool tested = NEAR[n].records != 0;
                call(m, leaf,
                     (LLVMValueRef[]){word(m, 0), base, pred(m, p), word(m, h), value(m, letter, h),
                                      word(m, tested ? 60 * pitch : TL_RECORDS_ALL),
                                      word(m, tested ? 0 : at),
                                      add(m, mul(m, m->tid, pitch), tested ? at : 0)},
                     8);
            }
}

/* Each thread fills its 16 bytes of shared memory. */
static void fill_shared(Maker *m)
{
    for (uint32_t j = 0; j < 4; j++)
        CALL(m, STS_32, word(m, 0), add(m, mul(m, m->tid, 16), 4 * j), yes(m), mix(m, j));
    barrier(m);
}

static void make_lds(Maker *m, tl_leaf leaf)
{
    uint32_t w = WIDTHS[leaf - TL_LEAF_LDS_8];
    LLVMValueRef other = mul(m, xor(m, m->tid, 33), 16);
    fill_shared(m);
    for (uint32_t j = 0; j < 16 / w; j++)
        keep(m, call(m, leaf, (LLVMValueRef[]){word(m, 0), add(m, other, j * w)}, 2));
}

static void make_sts(Maker *m, tl_leaf leaf)
{
    uint32_t row = leaf - TL_LEAF_STS_8, w = WIDTHS[row];
    fill_shared(m);
    for (int p = 0; p < PREDS; p++) {
        LLVMValueRef at = add(m, mul(m, m->tid, 16), (uint32_t)p * w % 16);
        call(m, leaf,
             (LLVMValueRef[]){word(m, 0), at, pred(m, p), value(m, LETTERS[row], 9 + (uint32_t)p)},
             4);
        barrier(m);
        for (uint32_t j = 0; j < 4; j++)
            keep(m, CALL(m, LDS_32, word(m, 0), add(m, mul(m, xor(m, m->tid, 33), 16), 4 * j)));
        barrier(m);
    }
}

/* Two threads each, 33 apart, add to a word. */
static void make_adds(Maker *m)
{
    fill_shared(m);
    for (int p = 0; p < PREDS; p++) {
        LLVMValueRef own = mul(m, m->tid, 16), other = mul(m, xor(m, m->tid, 33), 16);
        CALL(m, ADDS, word(m, 0), add(m, own, 4), pred(m, p), mix(m, 9 + (uint32_t)p));
        CALL(m, ADDS, word(m, 0), add(m, other, 4), pred(m, p), mix(m, 19 + (uint32_t)p));
        barrier(m);
        keep(m, CALL(m, LDS_32, word(m, 0), add(m, other, 4)));
        barrier(m);
    }
}

/* Begins a copy of w bytes from this thread's place in the input to its place in shared memory. */
static void begin_copy(Maker *m, uint32_t w, uint32_t at, LLVMValueRef does, LLVMValueRef inside)
{
    tl_leaf leaf = w == 16 ? TL_LEAF_CP_ASYNC_16 : w == 8 ? TL_LEAF_CP_ASYNC_8 : TL_LEAF_CP_ASYNC_4;
    LLVMValueRef thread = LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, "");
    call(m, leaf,
         (LLVMValueRef[]){word(m, 0), does, word(m, at % 16), mul(m, m->tid, 16),
                          address(m, m->in, add(m, mul(m, thread, w), at)), inside, word(m, 0)},
         7);
}

/* The same by a row of the warp's threads. */
static void begin_row(Maker *m, uint32_t at, LLVMValueRef does, LLVMValueRef inside)
{
    LLVMValueRef thread = LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, ""),
                 first = mul(m, and(m, m->tid, ~(m->lanes - 1)), 16);
    CALL(m, CP_ROW, word(m, 0), does, word(m, 0), first,
         address(m, m->in, add(m, mul(m, thread, 16), at)), inside, word(m, 0));
}

static void begin(Maker *m, uint32_t w, uint32_t at, LLVMValueRef does, LLVMValueRef inside)
{
    if (w)
        begin_copy(m, w, at, does, inside);
    else
        begin_row(m, at, does, inside);
}

static void keep_other(Maker *m)
{
    barrier(m);
    keep(m, CALL(m, LDS_128, word(m, 0), mul(m, xor(m, m->tid, 33), 16)));
    barrier(m);
}

/* Some threads copy, some of these zeros. w = 0: 16 bytes, in rows. */
static void make_copies(Maker *m, uint32_t w)
{
    uint32_t bytes = w ? w : 16;
    LLVMValueRef odd = LLVMBuildICmp(m->b, LLVMIntNE, and(m, m->tid, 4), word(m, 0), "");
    fill_shared(m);
    for (int p = 0; p < PREDS; p++)
        for (int inside = 0; inside < PREDS; inside++) {
            begin(m, w, (uint32_t)(3 * p + inside) * bytes, pred(m, p),
                  inside < 2 ? pred(m, inside) : odd);
            CALL(m, CP_COMMIT, word(m, 0));
            CALL(m, CP_WAIT, word(m, 0), word(m, 0));
            keep_other(m);
        }
}

/* From a base that the block shares, what is common to its threads, and the thread's part. */
static void make_near_rows(Maker *m)
{
    LLVMValueRef first = mul(m, and(m, m->tid, ~(m->lanes - 1)), 16), thread = mul(m, m->tid, 16),
                 base = address(m, m->in, mul(m, m->ctaid, THREADS * 16));
    fill_shared(m);
    for (uint32_t at = 0; at < 96; at += 32) {
        CALL(m, CP_ROW_NEAR, word(m, 0), base, word(m, 0), word(m, 0), first, word(m, at / 2),
             add(m, thread, at / 2));
        CALL(m, CP_COMMIT, word(m, 0));
        CALL(m, CP_WAIT, word(m, 0), word(m, 0));
        keep_other(m);
    }
}

/* Two groups of a row each, to the same places; all have arrived. */
static void make_row_groups(Maker *m)
{
    fill_shared(m);
    for (uint32_t at = 0; at < 32; at += 16) {
        CALL(m, CP_COMMIT, word(m, 0));
        begin_row(m, at, yes(m), yes(m));
        CALL(m, CP_COMMIT, word(m, 0));
        CALL(m, CP_WAIT, word(m, 0), word(m, 0));
        keep_other(m);
    }
}

/* Groups of 0, 1 and 2 copies; of each the words are kept that have surely arrived: read back by
 * the thread that copied. */
static void make_groups(Maker *m)
{
    LLVMValueRef mine = mul(m, m->tid, 16);
    fill_shared(m);
    CALL(m, CP_COMMIT, word(m, 0));
    begin_copy(m, 4, 0, yes(m), yes(m));
    CALL(m, CP_COMMIT, word(m, 0));
    begin_copy(m, 4, 4, yes(m), yes(m));
    begin_copy(m, 4, 8, yes(m), yes(m));
    CALL(m, CP_COMMIT, word(m, 0));
    CALL(m, CP_WAIT, word(m, 0), word(m, 1));
    keep(m, CALL(m, LDS_32, word(m, 0), mine));
    keep(m, CALL(m, LDS_32, word(m, 0), add(m, mine, 12)));
    CALL(m, CP_WAIT, word(m, 0), word(m, 0));
    keep_other(m);
}

static void make_ldsm(Maker *m, tl_leaf leaf)
{
    LLVMValueRef rows[] = {m->tid, xor(m, m->tid, 33), and(m, add(m, mul(m, m->tid, 5), 3), 127),
                           and(m, mul(m, m->tid, 8), 127)};
    fill_shared(m);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        keep(m, call(m, leaf, (LLVMValueRef[]){word(m, 0), word(m, 0), mul(m, rows[i], 16)}, 3));
}

static void make_columns(Maker *m, tl_leaf leaf)
{
    LLVMValueRef pieces[] = {m->tid, xor(m, m->tid, 37), and(m, add(m, mul(m, m->tid, 5), 3), 255),
                             and(m, mul(m, m->tid, 8), 255)};
    fill_shared(m);
    for (uint32_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        keep(m, call(m, leaf, (LLVMValueRef[]){word(m, 0), mul(m, pieces[i], 8)}, 2));
}

/* To rows of 16 bytes of which each is one lane's; of other threads, too. */
static void make_stsm(Maker *m, tl_leaf leaf)
{
    LLVMValueRef rows[] = {m->tid, xor(m, m->tid, 33), and(m, add(m, mul(m, m->tid, 5), 3), 127)};
    uint32_t n = tl_leaf_info(leaf)->size;
    fill_shared(m);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        LLVMValueRef args[3 + 4] = {word(m, 0), word(m, 0), mul(m, rows[i], 16)};
        for (uint32_t w = 0; w < n; w++)
            args[3 + w] = mix(m, 20 + 4 * i + w);
        call(m, leaf, args, 3 + n);
        barrier(m);
        keep(m, CALL(m, LDS_128, word(m, 0), mul(m, m->tid, 16)));
        barrier(m);
    }
}

static void make_barrier(Maker *m, tl_leaf leaf)
{
    LLVMValueRef mine = mul(m, m->tid, 4), site = word(m, 0);
    for (uint32_t round = 0; round < 4; round++) {
        LLVMValueRef other = mul(m, and(m, add(m, m->tid, 1 + 40 * round), THREADS - 1), 4);
        CALL(m, STS_32, word(m, 0), mine, yes(m), mix(m, round));
        call(m, leaf, &site, 1);
        keep(m, CALL(m, LDS_32, word(m, 0), other));
        call(m, leaf, &site, 1);
    }
}

static void make_shuffles(Maker *m, tl_leaf leaf)
{
    uint32_t last = m->lanes - 1;
    LLVMValueRef lane = and(m, m->tid, last);
    if (leaf == TL_LEAF_SHFL_XOR) {
        for (uint32_t mask = 1; mask <= last; mask = mask * 2 + (mask == 4))
            keep(m, CALL(m, SHFL_XOR, word(m, 0), mix(m, mask), word(m, mask)));
        keep(m, CALL(m, SHFL_XOR, word(m, 0), mix(m, 77), word(m, last)));
        return;
    }
    if (leaf == TL_LEAF_SHFL_END) {
        for (uint32_t n = 16; n <= 32; n *= 2)
            keep(m, CALL(m, SHFL_END, word(m, 0), mix(m, n), word(m, n)));
        return;
    }
    if (leaf == TL_LEAF_SHFL_SHIFT) {
        for (uint32_t lanes = last + 1; lanes >= 2; lanes /= 2)
            for (uint32_t n = 1; n < lanes; n *= 4) {
                keep(m, CALL(m, SHFL_SHIFT, word(m, 0), mix(m, n), word(m, n), word(m, lanes)));
                keep(m, CALL(m, SHFL_SHIFT, word(m, 0), mix(m, n), word(m, 0 - n), word(m, lanes)));
            }
        return;
    }
    if (leaf == TL_LEAF_REDUX) {
        for (uint32_t how = TL_REDUX_ADD; how <= TL_REDUX_XOR; how++)
            keep(m, CALL(m, REDUX, word(m, 0), mix(m, how), word(m, how)));
        return;
    }
    if (leaf == TL_LEAF_REDUX_F32) {
        keep(m, CALL(m, REDUX_F32, word(m, 0), mix(m, 1), word(m, TL_REDUX_MIN)));
        keep(m, CALL(m, REDUX_F32, word(m, 0), mix(m, 2), word(m, TL_REDUX_MAX)));
        return;
    }
    LLVMValueRef from[] = {and(m, add(m, lane, 1), last),
                           xor(m, lane, 5),
                           word(m, 3),
                           and(m, mul(m, lane, 7), last),
                           word(m, last),
                           LLVMBuildSub(m->b, word(m, last), lane, "")};
    for (uint32_t i = 0; i < sizeof from / sizeof *from; i++)
        keep(m, CALL(m, SHFL_IDX, word(m, 0), mix(m, i), from[i]));
}

/* ---- atomics ---- */

/* What is in cell c (fill_output): c times 257 in 8 and 16 bits, else the float that is c % 100. */
static LLVMValueRef in_cell(Maker *m, LLVMValueRef c, LLVMTypeRef type)
{
    if (LLVMGetIntTypeWidth(type) <= 16)
        return LLVMBuildTrunc(m->b, mul(m, c, 257), type, "");
    LLVMTypeRef f = LLVMGetIntTypeWidth(type) == 64 ? LLVMDoubleTypeInContext(m->l.context)
                                                    : LLVMFloatTypeInContext(m->l.context);
    LLVMValueRef small = LLVMBuildURem(m->b, c, word(m, 100), "");
    return LLVMBuildBitCast(m->b, LLVMBuildUIToFP(m->b, small, f, ""), type, "");
}

static LLVMValueRef operand(Maker *m, tl_atom op, LLVMTypeRef type, uint32_t n)
{
    if (op == TL_ATOM_FADD)
        return in_cell(m, add(m, m->tid, n), type);
    LLVMValueRef low = LLVMBuildZExt(m->b, mix(m, n), m->i64, "");
    LLVMValueRef high = LLVMBuildZExt(m->b, mix(m, n + 50), m->i64, "");
    high = LLVMBuildShl(m->b, high, LLVMConstInt(m->i64, 32, 0), "");
    return LLVMBuildIntCast2(m->b, LLVMBuildOr(m->b, low, high, ""), type, 0, "");
}

static LLVMValueRef atom(Maker *m, tl_leaf leaf, LLVMValueRef cell, LLVMValueRef p, tl_atom op,
                         uint32_t variant, LLVMValueRef v, LLVMValueRef expected)
{
    return call(m, leaf,
                (LLVMValueRef[]){word(m, 0), address(m, m->out, add(m, cell, CELLS_AT)), p,
                                 word(m, op), word(m, variant % 4), word(m, variant / 4), v,
                                 expected},
                8);
}

/* All orders and scopes on cells of one's own, whose old values are kept; then on the shared ones,
 * whose last values are words too. */
static void make_atom(Maker *m, tl_leaf leaf, tl_atom op)
{
    LLVMTypeRef type = tl_leaf_type(m->l.context, leaf_atom_letter(leaf));
    bool any_order = op != TL_ATOM_XCHG && op != TL_ATOM_CAS && op != TL_ATOM_STORE;
    LLVMValueRef thread = LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, "");
    LLVMValueRef odd = LLVMBuildICmp(m->b, LLVMIntNE, and(m, thread, 1), word(m, 0), "");
    for (uint32_t v = 0; v < CELLS; v++) {
        LLVMValueRef c = add(m, mul(m, thread, CELLS), v);
        LLVMValueRef other = LLVMConstInt(type, LLVMGetIntTypeWidth(type) == 8 ? 57 : 12345, 0);
        LLVMValueRef expected = LLVMBuildSelect(m->b, odd, in_cell(m, c, type), other, "");
        LLVMValueRef old = atom(m, leaf, mul(m, c, 8), pred(m, v == 5 ? 2 : 0), op, v,
                                operand(m, op, type, v), expected);
        if (op != TL_ATOM_STORE) /* whose result is nobody's business */
            keep(m, old);
        if (any_order)
            atom(m, leaf, word(m, (ALL_THREADS * CELLS + v) * 8), pred(m, v == 7 ? 2 : 0), op, v,
                 operand(m, op, type, v), other);
    }
}

/* ---- matrix instructions ---- */

/* A number that every type holds and whose sums are exact: -4 to 3, of unsigned ones 0 to 7. */
static LLVMValueRef small_number(Maker *m, TlDtype d, uint32_t n)
{
    /* f8 has no type in LLVM: 0, 1, 2, 3, -4 to -1 in each format */
    static const uint8_t F8[TL_DTYPE_COUNT][8] = {
        [TL_F8E4M3] = {0x00, 0x38, 0x40, 0x44, 0xc8, 0xc4, 0xc0, 0xb8},
        [TL_F8E5M2] = {0x00, 0x3c, 0x40, 0x42, 0xc4, 0xc2, 0xc0, 0xbc},
        [TL_F8E4M3FNUZ] = {0x00, 0x40, 0x48, 0x4c, 0xd0, 0xcc, 0xc8, 0xc0},
        [TL_F8E5M2FNUZ] = {0x00, 0x40, 0x44, 0x46, 0xc8, 0xc6, 0xc4, 0xc0},
    };
    LLVMContextRef c = m->l.context;
    LLVMValueRef v = and(m, LLVMBuildLShr(m->b, mix(m, n), word(m, 9), ""), 7);
    if (tl_is_f8(d)) {
        const uint8_t *bits = F8[d];
        LLVMValueRef x = LLVMConstInt(m->i8, bits[0], 0);
        for (uint32_t i = 1; i < 8; i++)
            x = LLVMBuildSelect(m->b, LLVMBuildICmp(m->b, LLVMIntEQ, v, word(m, i), ""),
                                LLVMConstInt(m->i8, bits[i], 0), x, "");
        return x;
    }
    if (d == TL_F4E2M1) /* a code */
        return LLVMBuildTrunc(m->b, v, m->i8, "");
    if (d != TL_U8)
        v = LLVMBuildSub(m->b, v, word(m, 4), "");
    if (tl_is_int(d))
        return LLVMBuildIntCast2(m->b, v, tl_dtype_bytes(d) == 1 ? m->i8 : m->i32, 0, "");
    LLVMTypeRef f = d == TL_F16   ? LLVMHalfTypeInContext(c)
                    : d == TL_F64 ? LLVMDoubleTypeInContext(c)
                                  : LLVMFloatTypeInContext(c);
    LLVMValueRef x = LLVMBuildSIToFP(m->b, v, f, "");
    if (d != TL_BF16)
        return LLVMBuildBitCast(m->b, x, LLVMIntTypeInContext(c, 8 * (unsigned)tl_dtype_bytes(d)),
                                "");
    LLVMValueRef bits = LLVMBuildBitCast(m->b, x, m->i32, "");
    return LLVMBuildTrunc(m->b, LLVMBuildLShr(m->b, bits, word(m, 16), ""),
                          LLVMInt16TypeInContext(c), "");
}

/* What a lane gives of one operand. WMMA of version 1 wants equal operands in both halves of a
 * warp: there the numbers depend on the lane modulo 16. */
static LLVMValueRef matrix_part(Maker *m, const TlMma *mma, int operand, char letter)
{
    int n = 1 << tl_layout_in_bits(tl_mma_fragment(m->arena, mma, operand), TL_IN_REG);
    LLVMValueRef tid = m->tid, v = NULL;
    tl_mma_kind kind = tl_leaf_mma_kind(mma);
    if ((kind == TL_MMA_WMMA1 || kind == TL_MMA_WMMA1T) && operand < 2)
        m->tid = and(m, tid, 15);
    for (int i = 0; i < n; i++) {
        LLVMValueRef x = small_number(m, mma->type[operand], (uint32_t)(64 * operand + i));
        if (!v)
            v = LLVMGetUndef(LLVMVectorType(LLVMTypeOf(x), (unsigned)n));
        v = LLVMBuildInsertElement(m->b, v, x, word(m, (uint32_t)i), "");
    }
    m->tid = tid;
    return LLVMBuildBitCast(m->b, v, tl_leaf_type(m->l.context, letter), "");
}

/* Scales of 1 and 2. */
static LLVMValueRef scale_word(Maker *m, const TlMma *mma, uint32_t i)
{
    bool e8m0 = mma->type[TL_MMA_SA] == TL_U8;
    LLVMValueRef x = and(m, LLVMBuildLShr(m->b, mix(m, 900 + i), word(m, 5), ""), 0x01010101);
    if (!e8m0)
        x = LLVMBuildShl(m->b, x, word(m, 3), "");
    return LLVMBuildAdd(m->b, x, word(m, e8m0 ? 0x7f7f7f7f : 0x38383838), "");
}

static void make_matrix(Maker *m, tl_leaf leaf, const TlMma *mma)
{
    const char *operands = tl_leaf_info(leaf)->operands;
    const TlDtype *t = mma->type;
    LLVMValueRef args[11] = {word(m, 0), word(m, tl_leaf_mma_kind(mma)), word(m, (uint32_t)mma->k),
                             word(m, TL_MMA_SCALED_TYPES((uint32_t)t[0], (uint32_t)t[1],
                                                         (uint32_t)t[2], (uint32_t)t[TL_MMA_SA])),
                             word(m, 0)};
    for (int i = 0; i < 3; i++)
        args[5 + i] = matrix_part(m, mma, i, operands[5 + i]);
    for (uint32_t i = 0; i < 2 && mma->each; i++)
        args[8 + i] = scale_word(m, mma, i);
    args[10] = word(m, 0); /* the first byte of each */
    LLVMValueRef x = call(m, leaf, args, mma->each ? 11 : 8);
    unsigned n = LLVMGetVectorSize(LLVMTypeOf(x));
    for (unsigned i = 0; i < n; i++)
        keep(m, LLVMBuildExtractElement(m->b, x, word(m, i), ""));
}

static void make_mul_wide(Maker *m, bool has_sign)
{
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef x = has_sign ? CALL(m, MUL_WIDE, mix(m, i), mix(m, i + 7))
                                  : CALL(m, MUL_WIDE_U, mix(m, i), mix(m, i + 7));
        LLVMValueRef high = LLVMBuildLShr(m->b, x, LLVMConstInt(LLVMTypeOf(x), 32, 0), "");
        keep(m, LLVMBuildTrunc(m->b, x, m->i32, ""));
        keep(m, LLVMBuildTrunc(m->b, high, m->i32, ""));
    }
}

/* Powers of two with whole exponents, subnormal ones too, which instructions give exactly. */
static void make_ex2(Maker *m, bool ftz)
{
    LLVMTypeRef f = LLVMFloatTypeInContext(m->l.context);
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef n = LLVMBuildSub(m->b, and(m, mix(m, i), 255), word(m, 140), "");
        n = LLVMBuildBitCast(m->b, LLVMBuildSIToFP(m->b, n, f, ""), m->i32, "");
        keep(m, ftz ? CALL(m, EX2_FTZ, n) : CALL(m, EX2, n));
    }
}

/* The bits of 2^n, n from -62 to 64 in steps of 1 or 2. */
static LLVMValueRef power_of_two(Maker *m, uint32_t n, uint32_t step)
{
    LLVMValueRef exponent = add(m, mul(m, and(m, mix(m, n), 128 / step - 1), step), 65);
    return mul(m, exponent, 1 << 23);
}

/* Of powers of two, which instructions give exactly. */
static void make_quotients(Maker *m)
{
    for (uint32_t i = 0; i < 4; i++)
        keep(m, CALL(m, DIV, power_of_two(m, i, 1), power_of_two(m, i + 7, 1)));
    keep(m, CALL(m, DIV, word(m, 0x3f800000), power_of_two(m, 4, 1)));
}

static void make_big_quotients(Maker *m)
{
    for (uint32_t i = 0; i < 4; i++)
        keep(m, CALL(m, DIV_BIG, power_of_two(m, i, 1), power_of_two(m, i + 7, 1)));
}

static void make_reciprocals(Maker *m)
{
    for (uint32_t i = 0; i < 4; i++)
        keep(m, CALL(m, RCP, power_of_two(m, i, 1)));
}

/* By constants, and by what differs between threads. */
static void make_bytes(Maker *m)
{
    LLVMValueRef from[] = {word(m, 0x05040100), word(m, 0x00020406), word(m, 0x03020706),
                           and(m, mix(m, 9), 0x07070707)};
    for (uint32_t i = 0; i < sizeof from / sizeof *from; i++)
        keep(m, CALL(m, BYTES, mix(m, i), mix(m, i + 4), from[i]));
}

/* Sums below 0, above 1 and between; of infinities, NaN. */
static void make_saturated(Maker *m)
{
    const uint32_t INFINITE = 0x7f800000, SIGN = 0x80000000;
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef sign = and(m, mix(m, i + 3), SIGN);
        keep(m, CALL(m, FMA_SAT, LLVMBuildOr(m->b, power_of_two(m, i, 1), sign, ""),
                     power_of_two(m, i + 7, 1), word(m, 0x3f000000)));
    }
    keep(m, CALL(m, FMA_SAT, word(m, INFINITE), word(m, 0x3f000000), power_of_two(m, 2, 1)));
    keep(m, CALL(m, FMA_SAT, word(m, INFINITE), word(m, 0), power_of_two(m, 2, 1)));
}

static void make_roots(Maker *m, tl_leaf leaf)
{
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef x = power_of_two(m, i, 2);
        keep(m, call(m, leaf, &x, 1));
    }
}

/* Numbers; zeros of both signs; a NaN on either side. */
static void make_extremes(Maker *m, tl_leaf leaf)
{
    const uint32_t FINITE = 0xbfffffff, SIGN = 0x80000000, NAN_BITS = 0x7fffffff;
    LLVMValueRef nan = word(m, NAN_BITS), x = and(m, mix(m, 2), FINITE);
    LLVMValueRef pairs[][2] = {{and(m, mix(m, 0), FINITE), and(m, mix(m, 1), FINITE)},
                               {and(m, mix(m, 0), SIGN), and(m, mix(m, 1), SIGN)},
                               {nan, x},
                               {x, nan}};
    for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        keep(m, call(m, leaf, pairs[i], 2));
}

/* Numbers, ties among them, infinities and NaN. */
static void make_bf16(Maker *m)
{
    const uint32_t ALL = 0xffffffff, TIE = 0xbfff8000, ODD_TIE = 0x18000;
    LLVMValueRef ties = and(m, mix(m, 1), TIE);
    LLVMValueRef of[] = {and(m, mix(m, 0), 0xbfffffff), ties,
                         LLVMBuildOr(m->b, ties, word(m, ODD_TIE), ""),
                         LLVMBuildOr(m->b, and(m, mix(m, 2), ALL), word(m, 0x7f800000), "")};
    for (uint32_t i = 0; i < sizeof of / sizeof *of; i++)
        keep(m, LLVMBuildZExt(m->b, CALL(m, BF16, of[i]), m->i32, ""));
}

static const TlDtype F8[] = {TL_F8E4M3, TL_F8E5M2};

/* All codes. */
static void make_of_small(Maker *m, bool f4)
{
    for (uint32_t i = 0; i < (f4 ? 1 : 2); i++) {
        LLVMValueRef codes = and(m, mix(m, i), f4 ? 0xff : 0xffff);
        keep(m, f4 ? CALL(m, OF_F4, codes) : CALL(m, OF_F8, codes, word(m, F8[i])));
    }
}

/* Numbers of all sizes that the types have, and greater ones, ties, infinities and NaN. */
static void make_to_small(Maker *m, bool f4)
{
    const uint32_t CLOSE = 0x87ffffff, TIES = 0x87f80000;
    for (uint32_t i = 0; i < (f4 ? 1 : 2); i++) {
        LLVMValueRef near = add(m, and(m, mix(m, 0), CLOSE), 0x3b000000),
                     ties = add(m, and(m, mix(m, 1), TIES), 0x3b000000),
                     odd = LLVMBuildOr(m->b, mix(m, 2), word(m, 0x7f800000), "");
        LLVMValueRef pairs[][2] = {{near, ties}, {odd, mix(m, 3)}, {word(m, 0x80000000), near}};
        for (uint32_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
            LLVMValueRef x = pairs[k][0], y = pairs[k][1];
            LLVMValueRef codes = f4 ? CALL(m, TO_F4, x, y) : CALL(m, TO_F8, x, y, word(m, F8[i]));
            keep(m, LLVMBuildZExt(m->b, codes, m->i32, ""));
        }
    }
}

/* Of every magnitude: in range and out of it, NaN and infinities too. */
static void make_f2i(Maker *m)
{
    const uint32_t SMALL = 0xc3ffffff, SOME = 0x3f000000;
    LLVMValueRef of[] = {LLVMBuildOr(m->b, and(m, mix(m, 0), SMALL), word(m, SOME), ""), mix(m, 1)};
    for (uint32_t bits = 8; bits <= 32; bits *= 2)
        for (uint32_t how = 0; how < 4; how++)
            for (uint32_t i = 0; i < sizeof of / sizeof *of; i++)
                keep(m, CALL(m, F2I, of[i], word(m, bits), word(m, how)));
}

/* ---- barriers that count, registers, a part of the block ---- */

static LLVMValueRef is_first(Maker *m)
{
    return LLVMBuildICmp(m->b, LLVMIntEQ, m->tid, word(m, 0), "");
}

static void make_bar(Maker *m, uint32_t arrivals)
{
    CALL(m, MBAR_INIT, word(m, 0), is_first(m), word(m, BARRIER_AT), word(m, arrivals));
    barrier(m);
}

static void end_bar(Maker *m)
{
    barrier(m);
    CALL(m, MBAR_END, word(m, 0), is_first(m), word(m, BARRIER_AT));
}

/* As make_barrier, by phases: all arrive and wait, one with bytes to come, of which there are none;
 * a second phase lets them go on when all have read. `at`: they arrive as programs of a cluster do,
 * of which there is one. */
static void make_phases(Maker *m, bool at)
{
    LLVMValueRef mine = mul(m, m->tid, 4), first = is_first(m);
    make_bar(m, THREADS);
    for (uint32_t phase = 0; phase < 8; phase++) {
        uint32_t round = phase / 2;
        LLVMValueRef other = mul(m, and(m, add(m, m->tid, 1 + 40 * round), THREADS - 1), 4);
        if (phase % 2 == 0)
            CALL(m, STS_32, word(m, 0), mine, yes(m), mix(m, round));
        CALL(m, MBAR_EXPECT, word(m, 0), first, word(m, BARRIER_AT), word(m, 0));
        if (at)
            CALL(m, MBAR_ARRIVE_AT, word(m, 0), LLVMBuildNot(m->b, first, ""), word(m, BARRIER_AT),
                 call(m, TL_LEAF_CLUSTER_RANK, NULL, 0));
        else
            CALL(m, MBAR_ARRIVE, word(m, 0), LLVMBuildNot(m->b, first, ""), word(m, BARRIER_AT));
        CALL(m, MBAR_WAIT, word(m, 0), word(m, BARRIER_AT), word(m, phase % 2));
        if (phase % 2 == 0)
            keep(m, CALL(m, LDS_32, word(m, 0), other));
    }
    end_bar(m);
}

/* Each half of the block exchanges words at a barrier of its own. */
static void make_halves(Maker *m)
{
    enum { HALF = THREADS / 2 };
    LLVMContextRef c = m->l.context;
    LLVMBasicBlockRef half[2] = {LLVMAppendBasicBlockInContext(c, m->f, ""),
                                 LLVMAppendBasicBlockInContext(c, m->f, "")},
                      join = LLVMAppendBasicBlockInContext(c, m->f, "");
    LLVMValueRef upper = LLVMBuildICmp(m->b, LLVMIntUGE, m->tid, word(m, HALF), "");
    LLVMBuildCondBr(m->b, upper, half[1], half[0]);
    for (uint32_t h = 0; h < 2; h++) {
        LLVMPositionBuilderAtEnd(m->b, half[h]);
        m->nresults = 0;
        for (uint32_t round = 0; round < 4; round++) {
            LLVMValueRef other = and(m, add(m, m->tid, 1 + 20 * round), HALF - 1);
            CALL(m, STS_32, word(m, 0), mul(m, m->tid, 4), yes(m), mix(m, round));
            CALL(m, BARRIER_OF, word(m, 0), word(m, 1 + h), word(m, HALF));
            keep(m, CALL(m, LDS_32, word(m, 0), mul(m, add(m, other, h * HALF), 4)));
            CALL(m, BARRIER_OF, word(m, 0), word(m, 1 + h), word(m, HALF));
        }
        LLVMBuildBr(m->b, join);
    }
    LLVMPositionBuilderAtEnd(m->b, join);
}

/* The halves of the block write the same words in turn, and read what the other half wrote. */
static void make_turns(Maker *m)
{
    enum { HALF = THREADS / 2, ROUNDS = 3 };
    LLVMContextRef c = m->l.context;
    LLVMBasicBlockRef half[2] = {LLVMAppendBasicBlockInContext(c, m->f, ""),
                                 LLVMAppendBasicBlockInContext(c, m->f, "")},
                      join = LLVMAppendBasicBlockInContext(c, m->f, "");
    LLVMValueRef upper = LLVMBuildICmp(m->b, LLVMIntUGE, m->tid, word(m, HALF), ""),
                 at = mul(m, and(m, m->tid, HALF - 1), 4);
    LLVMBuildCondBr(m->b, upper, half[1], half[0]);
    for (uint32_t h = 0; h < 2; h++) {
        LLVMPositionBuilderAtEnd(m->b, half[h]);
        m->nresults = 0;
        if (h == 1)
            CALL(m, TURN_PASS, word(m, 0), word(m, 1), word(m, THREADS));
        for (uint32_t round = 0; round < ROUNDS; round++) {
            CALL(m, TURN_TAKE, word(m, 0), word(m, 1 + h), word(m, THREADS));
            if (h || round)
                keep(m, CALL(m, LDS_32, word(m, 0), at));
            else
                keep(m, word(m, 0));
            CALL(m, STS_32, word(m, 0), at, yes(m), mix(m, round));
            CALL(m, TURN_PASS, word(m, 0), word(m, 2 - h), word(m, THREADS));
        }
        if (h == 0)
            CALL(m, TURN_TAKE, word(m, 0), word(m, 1), word(m, THREADS));
        LLVMBuildBr(m->b, join);
    }
    LLVMPositionBuilderAtEnd(m->b, join);
}

/* Fewer, then more: words are kept in between. */
static void make_registers(Maker *m)
{
    LLVMValueRef before = mix(m, 0);
    CALL(m, REGISTERS, word(m, 0), word(m, 40), word(m, 0));
    keep(m, before);
    CALL(m, REGISTERS, word(m, 0), word(m, 232), word(m, 1));
    keep(m, before);
    keep(m, mix(m, 1));
}

/* ---- bulk copies ---- */

/* Where the program's box begins, innermost first. */
static void put_place(Maker *m, const LeafBox *x, uint32_t rank, LLVMValueRef *out)
{
    LLVMValueRef second = LLVMBuildICmp(m->b, LLVMIntNE, m->ctaid, word(m, 0), "");
    for (uint32_t i = 0; i < rank; i++)
        out[i] = LLVMBuildSelect(m->b, second, word(m, (uint32_t)x->at[1][rank - 1 - i]),
                                 word(m, (uint32_t)x->at[0][rank - 1 - i]), "");
}

/* A box over what threads have written; of the second program, with parts outside of the view. */
static void make_bulk(Maker *m, tl_leaf leaf)
{
    uint32_t rank = tl_leaf_info(leaf)->size;
    const LeafBox *x = &BOXES[rank - 2];
    bool all = is_bulk_all(leaf); /* of a cluster, which is one program */
    uint32_t at = 5 + all;
    LLVMValueRef args[11] = {word(m, 0), is_first(m), m->map, word(m, 0), word(m, BARRIER_AT)};
    fill_shared(m);
    CALL(m, FENCE_ASYNC, word(m, 0));
    make_bar(m, 1);
    CALL(m, MBAR_EXPECT, word(m, 0), is_first(m), word(m, BARRIER_AT), word(m, x->span * x->rows));
    put_place(m, x, rank, args + at);
    if (all)
        args[5] = call(m, TL_LEAF_CLUSTER_SIZE, NULL, 0);
    call(m, leaf, args, at + rank);
    CALL(m, MBAR_WAIT, word(m, 0), word(m, BARRIER_AT), word(m, 0));
    keep(m, CALL(m, LDS_128, word(m, 0), mul(m, m->tid, 16)));
    end_bar(m);
}

/* The other way, over results that no thread writes. */
static void make_bulk_store(Maker *m, tl_leaf leaf)
{
    uint32_t rank = leaf_box_rank(leaf);
    LLVMValueRef args[9] = {word(m, 0), is_first(m), m->map, word(m, 0)},
                 written = word(m, leaf == TL_LEAF_BULK_WAIT);
    fill_shared(m);
    CALL(m, FENCE_ASYNC, word(m, 0));
    barrier(m);
    put_place(m, leaf_box(leaf), rank, args + 4);
    call(m, (tl_leaf)(TL_LEAF_BULK_STORE_1 + rank - 1), args, 4 + rank);
    CALL(m, BULK_COMMIT, word(m, 0));
    CALL(m, BULK_WAIT, word(m, 0), word(m, 0), written);
}

/* ---- products of warpgroups ---- */

static LLVMValueRef call_words(Maker *m, tl_leaf leaf, LLVMValueRef *args, unsigned n,
                               unsigned words)
{
    LLVMTypeRef types[16 + TL_LEAF_MOST_WORDS];
    for (unsigned i = 1; i < n; i++) /* but the site */
        types[i - 1] = LLVMTypeOf(args[i]);
    LLVMTypeRef result =
        words ? LLVMStructTypeInContext(m->l.context, types + (n - 1 - words), words, 0)
              : LLVMVoidTypeInContext(m->l.context);
    LLVMValueRef f = tl_leaf_declare_words(&m->l, leaf, result, types, n - 1);
    return LLVMBuildCall2(m->b, LLVMGlobalGetValueType(f), f, args, n, "");
}

static void take_words(const Maker *m, LLVMValueRef from, LLVMValueRef *words, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        words[i] = LLVMBuildExtractValue(m->b, from, i, "");
}

/* A word of elements number first, first + 1, ... as small_number makes them of `n`. */
static LLVMValueRef word_of(Maker *m, TlDtype d, LLVMValueRef first, uint32_t n, bool by_place)
{
    uint32_t per = 4 / (uint32_t)tl_dtype_bytes(d);
    LLVMValueRef tid = m->tid, v = NULL;
    for (uint32_t i = 0; i < per; i++) {
        m->tid = by_place ? add(m, first, i) : tid;
        LLVMValueRef x = small_number(m, d, by_place ? n : n + i);
        if (!v)
            v = LLVMGetUndef(LLVMVectorType(LLVMTypeOf(x), per));
        v = LLVMBuildInsertElement(m->b, v, x, word(m, i), "");
    }
    m->tid = tid;
    return LLVMBuildBitCast(m->b, v, m->i32, "");
}

/* Element i of an operand's bytes is small_number of i, whatever it is in the matrix. */
static void fill_operands(Maker *m, const TlMma *mma)
{
    for (uint32_t operand = 0; operand < 2; operand++)
        for (uint32_t at = 0; at < OPERAND_BYTES; at += THREADS * 4) {
            LLVMValueRef to = add(m, mul(m, m->tid, 4), at);
            uint32_t size = (uint32_t)tl_dtype_bytes(mma->type[operand]);
            LLVMValueRef first = LLVMBuildUDiv(m->b, to, word(m, size), "");
            CALL(m, STS_32, word(m, 0), add(m, to, operand * OPERAND_BYTES), yes(m),
                 word_of(m, mma->type[operand], first, 64 * operand, true));
        }
    CALL(m, FENCE_ASYNC, word(m, 0));
    barrier(m);
}

/* PTX ISA, "Matrix descriptor": rows of span bytes, in panels along K, or, across, of [K] rows. */
static uint64_t upper_of(const Product *p, bool across)
{
    enum { K_ROWS = 32 }; /* both steps of 16 bits */
    uint64_t mode = p->span == 128  ? 1
                    : p->span == 64 ? 2
                                    : 3,
             lead = across ? K_ROWS * p->span : 16;
    return mode << 62 | (uint64_t)(8 * p->span >> 4) << 32 | lead >> 4 << 16;
}

/* Where step 1 of k begins. */
static uint32_t second_step(const Product *p, bool across, uint32_t rows)
{
    enum { STEP = 32, K_OF_STEP = 16 };
    return across ? K_OF_STEP * p->span : p->span > STEP ? STEP : rows * p->span;
}

static void multiply(Maker *m, const Product *p, const TlMma *mma, uint32_t step, uint32_t how,
                     const LLVMValueRef *a, LLVMValueRef *acc)
{
    const TlDtype *t = mma->type;
    bool across_a = p->how & TL_WGMMA_A_ACROSS, across_b = p->how & TL_WGMMA_B_ACROSS;
    uint32_t at[2] = {step ? second_step(p, across_a, 64) : 0,
                      OPERAND_BYTES + (step ? second_step(p, across_b, p->n) : 0)};
    LLVMValueRef args[16 + TL_LEAF_MOST_WORDS] = {
        word(m, 0),
        word(m, p->n),
        word(m, TL_MMA_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2])),
        word(m, how | p->how),
        LLVMConstInt(m->i64, a ? 0 : upper_of(p, across_a), 0),
        word(m, a ? 0 : at[0] / 16),
        LLVMConstInt(m->i64, upper_of(p, across_b), 0),
        word(m, at[1] / 16)};
    unsigned count = 8;
    for (unsigned i = 0; a && i < 4; i++)
        args[count++] = a[4 * step + i];
    for (unsigned i = 0; i < p->n / 2; i++)
        args[count++] = acc[i];
    take_words(m, call_words(m, TL_LEAF_WGMMA, args, count, p->n / 2), acc, p->n / 2);
}

/* Two steps of k onto small numbers. */
static void make_product(Maker *m, const Product *p)
{
    const TlMma *mma = tl_mma_find(p->mma);
    TlDtype of_acc = mma->type[TL_MMA_C];
    uint32_t per = 4 / (uint32_t)tl_dtype_bytes(mma->type[0]), words = p->n / 2;
    LLVMValueRef fenced[1 + 8] = {word(m, 0)},
                            acc[2 + TL_LEAF_MOST_WORDS] = {word(m, 0), word(m, 0)};
    LLVMTypeRef type = of_acc == TL_F32 ? LLVMFloatTypeInContext(m->l.context) : m->i32;
    fill_operands(m, mma);
    for (uint32_t i = 0; i < words; i++)
        acc[2 + i] = LLVMBuildBitCast(m->b, small_number(m, of_acc, 128 + i), type, "");
    for (uint32_t i = 0; i < 8; i++)
        fenced[1 + i] = word_of(m, mma->type[0], NULL, 300 + per * i, false);
    bool in_words = p->how & TL_WGMMA_A_WORDS;
    if (in_words)
        take_words(m, call_words(m, TL_LEAF_WGMMA_FENCE, fenced, 9, 8), fenced + 1, 8);
    LLVMValueRef started[1 + TL_LEAF_MOST_WORDS] = {word(m, 0)};
    memcpy(started + 1, acc + 2, words * sizeof *acc);
    take_words(m, call_words(m, TL_LEAF_WGMMA_FENCE, started, 1 + words, words), acc + 2, words);
    for (uint32_t step = 0; step < 2; step++)
        multiply(m, p, mma, step, step ? TL_WGMMA_COMMIT : 0, in_words ? fenced + 1 : NULL,
                 acc + 2);
    take_words(m, call_words(m, TL_LEAF_WGMMA_WAIT, acc, 2 + words, words), acc + 2, words);
    for (uint32_t i = 0; i < words; i += 4) {
        LLVMValueRef v = LLVMGetUndef(LLVMVectorType(type, 4));
        for (uint32_t k = 0; k < 4; k++)
            v = LLVMBuildInsertElement(m->b, v, acc[2 + i + k], word(m, k), "");
        keep(m, v);
    }
}

/* ---- tensor memory ---- */

/* What the block's threads do with it is over. */
static void meet_tensor(Maker *m)
{
    CALL(m, TENSOR_FENCE, word(m, 0), word(m, 0));
    barrier(m);
    CALL(m, TENSOR_FENCE, word(m, 0), word(m, 1));
}

/* A branch of the first `threads` threads; the block behind it. */
static LLVMBasicBlockRef begin_few(Maker *m, uint32_t threads)
{
    LLVMBasicBlockRef some = LLVMAppendBasicBlockInContext(m->l.context, m->f, ""),
                      join = LLVMAppendBasicBlockInContext(m->l.context, m->f, "");
    LLVMValueRef is = LLVMBuildICmp(m->b, LLVMIntULT, m->tid, word(m, threads), "");
    LLVMBuildCondBr(m->b, is, some, join);
    LLVMPositionBuilderAtEnd(m->b, some);
    return join;
}

static void end_few(Maker *m, LLVMBasicBlockRef join)
{
    LLVMBuildBr(m->b, join);
    LLVMPositionBuilderAtEnd(m->b, join);
}

/* Scales of 128 rows and 4 blocks of A, and of B: 4 bytes of each thread. Behind what B has of its
 * place. */
enum { SCALES_AT = OPERAND_BYTES + 4096, PIECE = 512, SCALES = 32 /* their column */ };

static void fill_scales(Maker *m, const TlMma *mma)
{
    for (uint32_t i = 0; i < 2; i++)
        CALL(m, STS_32, word(m, 0), add(m, mul(m, m->tid, 4), SCALES_AT + i * PIECE), yes(m),
             scale_word(m, mma, i));
    CALL(m, FENCE_ASYNC, word(m, 0));
    barrier(m);
}

/* Pieces of 16 bytes, 8 rows of them, the constant. Step `step` takes byte `step`. */
static void multiply_with_scales(Maker *m, uint32_t step, uint32_t n, uint64_t upper,
                                 LLVMValueRef base)
{
    const uint64_t piece = UINT64_C(1) << 46 | UINT64_C(8) << 32 | 1 << 16;
    const uint32_t instruction = step << 4 | n >> 3 << 17 | 1 << 23 | 8 << 24 | step << 29;
    LLVMValueRef scales[] = {add(m, base, SCALES), add(m, base, SCALES + 4)};
    for (uint32_t i = 0; i < 2 && !step; i++)
        CALL(m, TENSOR_SCALES, word(m, 0), LLVMConstInt(m->i64, piece, 0),
             word(m, (SCALES_AT + i * PIECE) / 16), scales[i]);
    CALL(m, TENSOR_MMA_SCALED, word(m, 0), word(m, instruction),
         word(m, TL_MMA_SCALED_TYPES(TL_F8E4M3, TL_F8E4M3, TL_F32, TL_U8)),
         LLVMConstInt(m->i64, upper, 0), word(m, 2 * step), LLVMConstInt(m->i64, upper, 0),
         word(m, OPERAND_BYTES / 16 + 2 * step), base, yes(m), scales[0], scales[1]);
}

/* Two steps of k of f16, or of f8 with scales, onto small numbers, 32 columns; rows of 64 bytes
 * along k. Of 64 rows each warp has 16. */
static void make_tensor(Maker *m, bool scaled, uint32_t rows)
{
    enum { WARP = 32, N = 32, SPAN = 64, BAR = BARRIER_AT, ADDRESS = BARRIER_AT + 64, ALL = 128 };
    /* f32 += f16 f16, N / 8, rows / 16; 64 bytes, 8 rows of them, the constant */
    const uint32_t instruction = 1 << 4 | N >> 3 << 17 | rows >> 4 << 24,
                   columns = scaled ? 2 * N : N, own = N * rows / ALL;
    const uint64_t upper = UINT64_C(4) << 61 | UINT64_C(1) << 46 |
                           (uint64_t)(8 * SPAN >> 4) << 32 | 1 << 16;
    const TlMma *mma = tl_mma_find(scaled ? "tcgen05.mx.e4m3" : "mma.m16n8k16.f16");
    fill_operands(m, mma);
    if (scaled)
        fill_scales(m, mma);
    CALL(m, MBAR_INIT, word(m, 0), is_first(m), word(m, BAR), word(m, 1));
    LLVMBasicBlockRef join = begin_few(m, WARP);
    CALL(m, TENSOR_ALLOC, word(m, 0), word(m, ADDRESS), word(m, columns), word(m, 1));
    end_few(m, join);
    meet_tensor(m);
    LLVMValueRef base = CALL(m, LDS_32, word(m, 0), word(m, ADDRESS)),
                 warp = LLVMBuildLShr(m->b, m->tid, word(m, 5), ""),
                 lanes = LLVMBuildAdd(m->b, base, mul(m, warp, WARP << 16), ""),
                 words[2 + N] = {word(m, 0), lanes};
    LLVMTypeRef f32 = LLVMFloatTypeInContext(m->l.context);
    tl_leaf store = rows < ALL ? TL_LEAF_TENSOR_ST_16 : TL_LEAF_TENSOR_ST,
            load = rows < ALL ? TL_LEAF_TENSOR_LD_16 : TL_LEAF_TENSOR_LD;
    for (uint32_t i = 0; i < own; i++)
        words[2 + i] = LLVMBuildBitCast(m->b, small_number(m, TL_F32, 128 + i), f32, "");
    take_words(m, call_words(m, store, words, 2 + own, own), words + 2, own);
    meet_tensor(m);
    join = begin_few(m, 1);
    for (uint32_t step = 0; step < 2 && scaled; step++)
        multiply_with_scales(m, step, N, upper, base);
    for (uint32_t step = 0; step < 2 && !scaled; step++)
        CALL(m, TENSOR_MMA, word(m, 0), word(m, instruction),
             word(m, TL_MMA_TYPES(TL_F16, TL_F16, TL_F32)), word(m, 0),
             LLVMConstInt(m->i64, upper, 0), word(m, 2 * step), LLVMConstInt(m->i64, upper, 0),
             word(m, OPERAND_BYTES / 16 + 2 * step), base, yes(m));
    CALL(m, TENSOR_COMMIT, word(m, 0), word(m, BAR), word(m, 1));
    end_few(m, join);
    CALL(m, MBAR_WAIT, word(m, 0), word(m, BAR), word(m, 0));
    CALL(m, TENSOR_FENCE, word(m, 0), word(m, 1));
    take_words(m, call_words(m, load, words, 2 + own, own), words + 2, own);
    for (uint32_t i = 0; i < own; i += 4) {
        LLVMValueRef v = LLVMGetUndef(LLVMVectorType(f32, 4));
        for (uint32_t k = 0; k < 4; k++)
            v = LLVMBuildInsertElement(m->b, v, words[2 + i + k], word(m, k), "");
        keep(m, v);
    }
    meet_tensor(m);
    join = begin_few(m, WARP);
    CALL(m, TENSOR_FREE, word(m, 0), base, word(m, columns), word(m, 1));
    end_few(m, join);
    CALL(m, MBAR_END, word(m, 0), is_first(m), word(m, BAR));
}

/* Of numbers of which few warps have one, and some none. */
static void make_vote(Maker *m)
{
    enum { ROUNDS = 4, ONE_IN = 64 };
    for (uint32_t r = 0; r < ROUNDS; r++) {
        LLVMValueRef is =
            LLVMBuildICmp(m->b, LLVMIntEQ, and(m, mix(m, r), ONE_IN - 1), word(m, r), "");
        keep(m, LLVMBuildZExt(m->b, CALL(m, VOTE_ANY, word(m, 0), is), m->i32, ""));
    }
}

/* ---- what speaks ---- */

static void make_debug(Maker *m, tl_leaf leaf)
{
    LLVMValueRef last = LLVMBuildICmp(m->b, LLVMIntEQ, m->ctaid, word(m, BLOCKS - 1), "");
    LLVMValueRef few = LLVMBuildICmp(m->b, LLVMIntULT, m->tid, word(m, 3), "");
    LLVMValueRef p = LLVMBuildAnd(m->b, last, few, "");
    if (leaf == TL_LEAF_FAIL) {
        CALL(m, FAIL, word(m, 1), p, word(m, TL_RUN_ASSERT), word(m, 2));
        return;
    }
    if (leaf == TL_LEAF_OUTSIDE) { /* all that speak say the same: of one block any may be told */
        LLVMValueRef at = LLVMConstInt(m->i64, INPUT_BYTES + 4, 0);
        at = LLVMBuildGEP2(m->b, m->i8, m->in, &at, 1, "");
        CALL(m, OUTSIDE, word(m, 1), p, word(m, 3), word(m, 1), at, word(m, 16));
        return;
    }
    for (uint32_t r = 0; r < 2; r++) {
        LLVMValueRef bits = LLVMBuildZExt(m->b, mix(m, r), m->i64, "");
        CALL(m, PRINT, word(m, 1), few, word(m, 0), word(m, TILE_U32), word(m, r),
             add(m, mul(m, m->tid, 2), r), bits);
    }
}

static void make_row(Maker *m, tl_leaf leaf, uint32_t op)
{
    const tl_leaf_row *row = tl_leaf_info(leaf);
    switch (row->family) {
    case TL_LEAF_FAMILY_TID: keep(m, m->tid); break;
    case TL_LEAF_FAMILY_CTAID: keep(m, m->ctaid); break;
    case TL_LEAF_FAMILY_BARRIER:
    case TL_LEAF_FAMILY_MEET: make_barrier(m, leaf); break;
    case TL_LEAF_FAMILY_SHFL_IDX:
    case TL_LEAF_FAMILY_SHFL_END:
    case TL_LEAF_FAMILY_SHFL_SHIFT:
    case TL_LEAF_FAMILY_REDUX:
    case TL_LEAF_FAMILY_REDUX_F32:
    case TL_LEAF_FAMILY_SHFL_XOR: make_shuffles(m, leaf); break;
    case TL_LEAF_FAMILY_ATOM: make_atom(m, leaf, (tl_atom)op); break;
    case TL_LEAF_FAMILY_MMA_SCALED:
    case TL_LEAF_FAMILY_MMA: make_matrix(m, leaf, tl_mma_at(op)); break;
    case TL_LEAF_FAMILY_MUL_WIDE: make_mul_wide(m, true); break;
    case TL_LEAF_FAMILY_MUL_WIDE_U: make_mul_wide(m, false); break;
    case TL_LEAF_FAMILY_BYTES: make_bytes(m); break;
    case TL_LEAF_FAMILY_EX2: make_ex2(m, false); break;
    case TL_LEAF_FAMILY_EX2_FTZ: make_ex2(m, true); break;
    case TL_LEAF_FAMILY_DIV: make_quotients(m); break;
    case TL_LEAF_FAMILY_DIV_BIG: make_big_quotients(m); break;
    case TL_LEAF_FAMILY_RCP: make_reciprocals(m); break;
    case TL_LEAF_FAMILY_FMA_SAT: make_saturated(m); break;
    case TL_LEAF_FAMILY_SQRT:
    case TL_LEAF_FAMILY_RSQRT: make_roots(m, leaf); break;
    case TL_LEAF_FAMILY_MIN:
    case TL_LEAF_FAMILY_MAX:
    case TL_LEAF_FAMILY_MIN_NAN:
    case TL_LEAF_FAMILY_MAX_NAN: make_extremes(m, leaf); break;
    case TL_LEAF_FAMILY_BF16: make_bf16(m); break;
    case TL_LEAF_FAMILY_OF_F8:
    case TL_LEAF_FAMILY_OF_F4: make_of_small(m, row->family == TL_LEAF_FAMILY_OF_F4); break;
    case TL_LEAF_FAMILY_TO_F8:
    case TL_LEAF_FAMILY_TO_F4: make_to_small(m, row->family == TL_LEAF_FAMILY_TO_F4); break;
    case TL_LEAF_FAMILY_F2I: make_f2i(m); break;
    case TL_LEAF_FAMILY_CP_ASYNC: make_copies(m, row->size); break;
    case TL_LEAF_FAMILY_CP_ROW: make_copies(m, 0); break;
    case TL_LEAF_FAMILY_CP_ROW_NEAR: make_near_rows(m); break;
    case TL_LEAF_FAMILY_CP_COMMIT:
    case TL_LEAF_FAMILY_CP_WAIT: m->rows ? make_row_groups(m) : make_groups(m); break;
    case TL_LEAF_FAMILY_LDSM:
    case TL_LEAF_FAMILY_LDSM_T:
    case TL_LEAF_FAMILY_LDSM_8: make_ldsm(m, leaf); break;
    case TL_LEAF_FAMILY_FAIL:
    case TL_LEAF_FAMILY_OUTSIDE:
    case TL_LEAF_FAMILY_PRINT: make_debug(m, leaf); break;
    case TL_LEAF_FAMILY_LDG: make_ldg(m, leaf); break;
    case TL_LEAF_FAMILY_STG: make_stg(m, leaf); break;
    case TL_LEAF_FAMILY_LDB: make_ldb(m, leaf); break;
    case TL_LEAF_FAMILY_STB: make_stb(m, leaf); break;
    case TL_LEAF_FAMILY_LDS: make_lds(m, leaf); break;
    case TL_LEAF_FAMILY_STS: make_sts(m, leaf); break;
    case TL_LEAF_FAMILY_ADDS: make_adds(m); break;
    case TL_LEAF_FAMILY_BARRIER_OF: make_halves(m); break;
    case TL_LEAF_FAMILY_TURN_TAKE:
    case TL_LEAF_FAMILY_TURN_PASS: make_turns(m); break;
    case TL_LEAF_FAMILY_REGISTERS: make_registers(m); break;
    case TL_LEAF_FAMILY_VOTE_ANY: make_vote(m); break;
    case TL_LEAF_FAMILY_ELECT:
        keep(m, LLVMBuildZExt(m->b, CALL(m, ELECT, word(m, 0)), m->i32, ""));
        break;
    case TL_LEAF_FAMILY_MBAR_INIT:
    case TL_LEAF_FAMILY_MBAR_END:
    case TL_LEAF_FAMILY_MBAR_ARRIVE:
    case TL_LEAF_FAMILY_MBAR_EXPECT:
    case TL_LEAF_FAMILY_MBAR_WAIT: make_phases(m, false); break;
    case TL_LEAF_FAMILY_MBAR_ARRIVE_AT: make_phases(m, true); break;
    case TL_LEAF_FAMILY_BULK:
    case TL_LEAF_FAMILY_BULK_ALL: make_bulk(m, leaf); break;
    case TL_LEAF_FAMILY_WGMMA: make_product(m, &PRODUCTS[op]); break;
    case TL_LEAF_FAMILY_WGMMA_FENCE:
    case TL_LEAF_FAMILY_WGMMA_WAIT:
    case TL_LEAF_FAMILY_FENCE_ASYNC: make_product(m, &PRODUCTS[0]); break;
    case TL_LEAF_FAMILY_TENSOR_ALLOC:
    case TL_LEAF_FAMILY_TENSOR_FREE:
    case TL_LEAF_FAMILY_TENSOR_MMA:
    case TL_LEAF_FAMILY_TENSOR_COMMIT:
    case TL_LEAF_FAMILY_TENSOR_FENCE: make_tensor(m, false, 128); break;
    case TL_LEAF_FAMILY_TENSOR_LD:
    case TL_LEAF_FAMILY_TENSOR_ST: make_tensor(m, false, 4 * tl_leaf_info(leaf)->size); break;
    case TL_LEAF_FAMILY_TENSOR_SCALES:
    case TL_LEAF_FAMILY_TENSOR_MMA_SCALED: make_tensor(m, true, 128); break;
    case TL_LEAF_FAMILY_CLUSTER_SIZE: keep(m, call(m, TL_LEAF_CLUSTER_SIZE, NULL, 0)); break;
    case TL_LEAF_FAMILY_CLUSTER_RANK: keep(m, call(m, TL_LEAF_CLUSTER_RANK, NULL, 0)); break;
    case TL_LEAF_FAMILY_LDS_T: make_columns(m, leaf); break;
    case TL_LEAF_FAMILY_STSM:
    case TL_LEAF_FAMILY_STSM_T:
    case TL_LEAF_FAMILY_STSM_8: make_stsm(m, leaf); break;
    case TL_LEAF_FAMILY_BULK_STORE:
    case TL_LEAF_FAMILY_BULK_COMMIT:
    case TL_LEAF_FAMILY_BULK_WAIT: make_bulk_store(m, leaf); break;
    case TL_LEAF_FAMILY_BULK_PAIR: /* is_left_out */
    case TL_LEAF_FAMILY_COUNT: break;
    }
}

/* ---- a row's code ---- */

/* The slots of a kernel: in, out; for those that speak, what that takes; a view and its map. */
uint32_t leaf_slots(tl_leaf leaf, tile_image_slot slots[MOST_SLOTS])
{
    uint32_t n = 0, rank = leaf_box_rank(leaf);
    slots[n++] = (tile_image_slot){.kind = TILE_SLOT_POINTER};
    slots[n++] = (tile_image_slot){.kind = TILE_SLOT_POINTER};
    if (tl_leaf_class_of(leaf) == TL_LEAF_CLASS_DEBUG) {
        slots[n++] = (tile_image_slot){.kind = TILE_SLOT_NPID};
        slots[n++] = (tile_image_slot){.kind = TILE_SLOT_GROUP};
        slots[n++] = (tile_image_slot){.kind = TILE_SLOT_DEBUG};
    }
    if (!rank)
        return n;
    slots[n++] = (tile_image_slot){.kind = TILE_SLOT_POINTER};
    for (uint32_t i = 0; i < 2 * rank; i++)
        slots[n++] = (tile_image_slot){.kind = i % 2 ? TILE_SLOT_STRIDE : TILE_SLOT_EXTENT};
    slots[n++] = (tile_image_slot){.kind = TILE_SLOT_MAP};
    return n;
}

static LLVMTypeRef type_of_slot(const Maker *m, tile_slot_kind kind)
{
    return kind == TILE_SLOT_MAP ? LLVMPointerTypeInContext(m->l.context, 0)
           : kind == TILE_SLOT_POINTER || kind == TILE_SLOT_DEBUG ? m->ptr
                                                                  : m->i64;
}

static void begin_kernel(Maker *m, const char *name, bool emulate, const tile_image_slot *slots,
                  uint32_t n)
{
    LLVMTypeRef params[MOST_SLOTS];
    LLVMContextRef c = m->l.context;
    m->i1 = LLVMInt1TypeInContext(c);
    m->i8 = LLVMInt8TypeInContext(c);
    m->i32 = LLVMInt32TypeInContext(c);
    m->i64 = LLVMInt64TypeInContext(c);
    m->ptr = LLVMPointerTypeInContext(c, 1);
    m->b = m->l.builder;
    for (uint32_t i = 0; i < n; i++)
        params[i] = type_of_slot(m, (tile_slot_kind)slots[i].kind);
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(c), params, n, 0);
    m->f = LLVMAddFunction(m->l.module, name, type);
    LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(c, m->f, ""));
    m->in = LLVMGetParam(m->f, 0);
    m->out = LLVMGetParam(m->f, 1);
    m->map = LLVMGetParam(m->f, n - 1);
    if (slots[n - 1].kind == TILE_SLOT_MAP && !emulate)
        tl_llvm_set_byval(&m->l, m->f, n - 1, TL_MAP_BYTES, TL_MAP_ALIGNMENT);
    m->tid = call(m, TL_LEAF_TID, NULL, 0);
    m->ctaid = call(m, TL_LEAF_CTAID, NULL, 0);
}

/* The row's name as PTX takes names: without dots. */
static const char *symbol_of(TlArena *arena, const char *name)
{
    char *symbol = tl_format(arena, "%s", name);
    for (char *p = symbol; *p; p++)
        *p = *p == '.' ? '_' : *p;
    return symbol;
}

LeafCode leaf_make_code(TlArena *arena, const TlTarget *target, bool emulate, TlEmit emit,
                      tl_leaf leaf, uint32_t op, const char *name)
{
    tile_image_slot slots[MOST_SLOTS];
    uint32_t n = leaf_slots(leaf, slots);
    Maker m = {.arena = arena,
               .lanes = (uint32_t)target->lanes,
               .rows = (target->can & TL_CAN_COPY_ROW) != 0};
    TlCodegenOptions o = {.target = target, .opt_level = 2, .emulate = emulate};
    TlKernelCodes kernels = {0};
    TlKernelCode k = {.symbol = symbol_of(arena, name),
                      .threads = THREADS,
                      .warps = THREADS / (uint32_t)target->lanes,
                      .two_flows = leaf == TL_LEAF_REGISTERS,
                      .shared_bytes = leaf_shared_bytes(leaf)};
    LeafCode code = {0};
    for (uint32_t i = 0; i < n; i++)
        tl_vec_push(arena, &k.slots, slots[i]);
    tl_vec_push(arena, &kernels, k);
    tl_llvm_open(&m.l, arena, name, target->family->triple, tl_target_cpu(target), target->features,
                 2);
    begin_kernel(&m, k.symbol, emulate, slots, n);
    make_row(&m, leaf, op);
    LLVMBuildRetVoid(m.b);
    tl_gpu_set_kernel(&m.l, target, &kernels.data[0]);
    code.data = tl_gpu_emit(&m.l, &o, emit, arena, &kernels, &code.size);
    code.symbol = kernels.data[0].symbol;
    tl_llvm_close(&m.l);
    return code;
}

/* ---- names ---- */

/* Matrix instructions have names of their own; "wgmma.N.SPAN.HOW.TYPES": HOW has a and b for rows
 * across, r for A in registers. */
void leaf_name_row(tl_leaf leaf, uint32_t op, char *name, size_t size)
{
    static const char *const ATOMS[] = {"add", "min_s", "min_u", "max_s", "max_u", "and",  "or",
                                        "xor", "xchg",  "cas",   "fadd",  "load",  "store"};
    _Static_assert(sizeof ATOMS / sizeof *ATOMS == TL_ATOM_STORE + 1, "one name for each");
    if (is_matrix(leaf))
        snprintf(name, size, "%s", tl_mma_at(op)->name);
    else if (tl_leaf_class_of(leaf) == TL_LEAF_CLASS_ATOMIC)
        snprintf(name, size, "%s_%s", tl_leaf_name(leaf), ATOMS[op]);
    else if (leaf == TL_LEAF_WGMMA) {
        const Product *p = &PRODUCTS[op];
        snprintf(name, size, "wgmma.%u.%u.x%s%s%s%s", p->n, p->span,
                 p->how & TL_WGMMA_A_ACROSS ? "a" : "", p->how & TL_WGMMA_B_ACROSS ? "b" : "",
                 p->how & TL_WGMMA_A_WORDS ? "r" : "", strchr(strchr(p->mma, '.') + 1, '.'));
    } else
        snprintf(name, size, "%s", tl_leaf_name(leaf));
}
