/* leaf_words: what each row of runtime/contract/leaf.def does on a device, as words.
 *
 *     leaf_words DEVICE --write FILE | --check FILE [-k NAME] [--dump DIR] [--proven FILE] [-v]
 *
 * For each row (atomics: each operation) a small kernel is made from leaf calls alone, brought
 * through the target's expansion as the compiler's kernels are, put into an image and launched. Its
 * results are a function of the row only: every thread has cells of its own, and cells that all
 * threads update are updated by operations whose order does not matter. FILE has a line per row:
 * its name, a hash of all that was written, and some of the words; for rows that speak, the text.
 *
 * expect.py computes the same from the rows' meaning alone and is held against --dump. The words of
 * an emulated device say what the emulator does; written on a GPU they are the hardware's, and
 * --check on the emulator then proves it. --proven: with --check on a GPU, the lines of
 * codegen/target/proven.def for the rows that agreed. A row that fails is reported, the others
 * still run. Exit: 0 all fine, 1 rows differ or failed, 2 usage. */
#include "codegen/gpu/gpu.h"
#include "codegen/leaf/leaf_expand.h"
#include "runtime/driver.h"
#include "test/unit/image_maker.h"
#include <time.h>

enum {
    BLOCKS = 2,
    THREADS = 128,
    RESULTS = 24, /* of 16 bytes, for each thread */
    CELLS = 12,   /* of 8 bytes, for each thread; as many that all threads share */
    SAMPLES = 8,  /* words shown */
    SHARED_BYTES = THREADS * 16,
    INPUT_BYTES = BLOCKS * THREADS * 16 * 4,
    ALL_THREADS = BLOCKS * THREADS,
    CELLS_AT = ALL_THREADS * RESULTS * 16,
    OUT_BYTES = CELLS_AT + (ALL_THREADS + 1) * CELLS * 8,
};

typedef struct Maker {
    TlLlvm l;
    TlArena *arena;
    LLVMBuilderRef b;
    LLVMValueRef f, tid, ctaid, in, out;
    LLVMTypeRef i1, i8, i32, i64, ptr;
    uint32_t nresults, lanes;
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

static char atom_letter(tl_leaf leaf)
{
    return leaf == TL_LEAF_ATOM_16 ? 'h' : leaf == TL_LEAF_ATOM_32 ? 'i' : 'l';
}

static bool is_matrix(tl_leaf leaf)
{
    return tl_leaf_info(leaf)->family == TL_LEAF_FAMILY_MMA;
}

/* How many kernels a row may have. */
static uint32_t operations(tl_leaf leaf)
{
    return is_matrix(leaf)                                  ? tl_mma_count()
           : tl_leaf_class_of(leaf) == TL_LEAF_CLASS_ATOMIC ? TL_ATOM_STORE + 1u
                                                            : 1;
}

/* Matrix instructions that the target has; on 16 bits there are these atomics alone, the others are
 * made of them. */
static bool has_operation(const TlTarget *target, TlArena *arena, tl_leaf leaf, uint32_t op)
{
    if (is_matrix(leaf))
        return tl_mma_has(target->matrix, tl_mma_at(op)) &&
               tl_leaf_of_mma(arena, tl_mma_at(op)) == leaf;
    bool warpgroup = tl_leaf_info(leaf)->needs & (TL_CAN_WARPGROUP | TL_CAN_BULK);
    return tl_leaf_is_of(target, leaf) && !warpgroup &&
           (leaf != TL_LEAF_ATOM_16 || op == TL_ATOM_LOAD || op == TL_ATOM_CAS);
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

static void keep_other(Maker *m)
{
    barrier(m);
    keep(m, CALL(m, LDS_128, word(m, 0), mul(m, xor(m, m->tid, 33), 16)));
    barrier(m);
}

/* Some threads copy, some of these zeros. */
static void make_copies(Maker *m, uint32_t w)
{
    LLVMValueRef odd = LLVMBuildICmp(m->b, LLVMIntNE, and(m, m->tid, 4), word(m, 0), "");
    fill_shared(m);
    for (int p = 0; p < PREDS; p++)
        for (int inside = 0; inside < PREDS; inside++) {
            begin_copy(m, w, (uint32_t)(3 * p + inside) * w, pred(m, p),
                       inside < 2 ? pred(m, inside) : odd);
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

static void make_barrier(Maker *m)
{
    LLVMValueRef mine = mul(m, m->tid, 4);
    for (uint32_t round = 0; round < 4; round++) {
        LLVMValueRef other = mul(m, and(m, add(m, m->tid, 1 + 40 * round), THREADS - 1), 4);
        CALL(m, STS_32, word(m, 0), mine, yes(m), mix(m, round));
        barrier(m);
        keep(m, CALL(m, LDS_32, word(m, 0), other));
        barrier(m);
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

/* What is in cell c (fill_output): c times 257 in 16 bits, else the float that is c % 100. */
static LLVMValueRef in_cell(Maker *m, LLVMValueRef c, LLVMTypeRef type)
{
    if (LLVMGetIntTypeWidth(type) == 16)
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
    LLVMTypeRef type = tl_leaf_type(m->l.context, atom_letter(leaf));
    bool any_order = op != TL_ATOM_XCHG && op != TL_ATOM_CAS && op != TL_ATOM_STORE;
    LLVMValueRef thread = LLVMBuildAdd(m->b, mul(m, m->ctaid, THREADS), m->tid, "");
    LLVMValueRef odd = LLVMBuildICmp(m->b, LLVMIntNE, and(m, thread, 1), word(m, 0), "");
    for (uint32_t v = 0; v < CELLS; v++) {
        LLVMValueRef c = add(m, mul(m, thread, CELLS), v);
        LLVMValueRef other = LLVMConstInt(type, 12345, 0);
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

static void make_matrix(Maker *m, tl_leaf leaf, const TlMma *mma)
{
    const char *operands = tl_leaf_info(leaf)->operands;
    const TlDtype *t = mma->type;
    LLVMValueRef args[8] = {word(m, 0), word(m, tl_leaf_mma_kind(mma)), word(m, (uint32_t)mma->k),
                            word(m, TL_MMA_TYPES((uint32_t)t[0], (uint32_t)t[1], (uint32_t)t[2])),
                            word(m, 0)};
    for (int i = 0; i < 3; i++)
        args[5 + i] = matrix_part(m, mma, i, operands[5 + i]);
    LLVMValueRef x = call(m, leaf, args, 8);
    unsigned n = LLVMGetVectorSize(LLVMTypeOf(x));
    for (unsigned i = 0; i < n; i++)
        keep(m, LLVMBuildExtractElement(m->b, x, word(m, i), ""));
}

static void make_mul_wide(Maker *m)
{
    for (uint32_t i = 0; i < 4; i++) {
        LLVMValueRef x = CALL(m, MUL_WIDE, mix(m, i), mix(m, i + 7));
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
    case TL_LEAF_FAMILY_BARRIER: make_barrier(m); break;
    case TL_LEAF_FAMILY_SHFL_IDX:
    case TL_LEAF_FAMILY_SHFL_XOR: make_shuffles(m, leaf); break;
    case TL_LEAF_FAMILY_ATOM: make_atom(m, leaf, (tl_atom)op); break;
    case TL_LEAF_FAMILY_MMA: make_matrix(m, leaf, tl_mma_at(op)); break;
    case TL_LEAF_FAMILY_MUL_WIDE: make_mul_wide(m); break;
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
    case TL_LEAF_FAMILY_CP_ASYNC: make_copies(m, row->size); break;
    case TL_LEAF_FAMILY_CP_COMMIT:
    case TL_LEAF_FAMILY_CP_WAIT: make_groups(m); break;
    case TL_LEAF_FAMILY_LDSM:
    case TL_LEAF_FAMILY_LDSM_T: make_ldsm(m, leaf); break;
    case TL_LEAF_FAMILY_FAIL:
    case TL_LEAF_FAMILY_OUTSIDE:
    case TL_LEAF_FAMILY_PRINT: make_debug(m, leaf); break;
    case TL_LEAF_FAMILY_LDG: make_ldg(m, leaf); break;
    case TL_LEAF_FAMILY_STG: make_stg(m, leaf); break;
    case TL_LEAF_FAMILY_LDB: make_ldb(m, leaf); break;
    case TL_LEAF_FAMILY_STB: make_stb(m, leaf); break;
    case TL_LEAF_FAMILY_LDS: make_lds(m, leaf); break;
    case TL_LEAF_FAMILY_STS: make_sts(m, leaf); break;
    case TL_LEAF_FAMILY_CLUSTER_SIZE:
    case TL_LEAF_FAMILY_CLUSTER_RANK:
    case TL_LEAF_FAMILY_MEET:
    case TL_LEAF_FAMILY_BARRIER_OF:
    case TL_LEAF_FAMILY_REGISTERS:
    case TL_LEAF_FAMILY_ELECT:
    case TL_LEAF_FAMILY_MBAR_INIT:
    case TL_LEAF_FAMILY_MBAR_END:
    case TL_LEAF_FAMILY_MBAR_ARRIVE:
    case TL_LEAF_FAMILY_MBAR_EXPECT:
    case TL_LEAF_FAMILY_MBAR_WAIT:
    case TL_LEAF_FAMILY_MBAR_ARRIVE_AT:
    case TL_LEAF_FAMILY_BULK:
    case TL_LEAF_FAMILY_BULK_ALL:
    case TL_LEAF_FAMILY_WGMMA:
    case TL_LEAF_FAMILY_WGMMA_FENCE:
    case TL_LEAF_FAMILY_WGMMA_WAIT:
    case TL_LEAF_FAMILY_FENCE_ASYNC:
    case TL_LEAF_FAMILY_COUNT: break;
    }
}

/* ---- a row's code ---- */

typedef struct Code {
    const char *symbol;
    const void *data;
    size_t size;
} Code;

static void begin(Maker *m, const char *name, bool speaks)
{
    LLVMContextRef c = m->l.context;
    m->i1 = LLVMInt1TypeInContext(c);
    m->i8 = LLVMInt8TypeInContext(c);
    m->i32 = LLVMInt32TypeInContext(c);
    m->i64 = LLVMInt64TypeInContext(c);
    m->ptr = LLVMPointerTypeInContext(c, 1);
    m->b = m->l.builder;
    LLVMTypeRef params[5] = {m->ptr, m->ptr, m->i64, m->i64, m->ptr};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(c), params, speaks ? 5 : 2, 0);
    m->f = LLVMAddFunction(m->l.module, name, type);
    LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(c, m->f, ""));
    m->in = LLVMGetParam(m->f, 0);
    m->out = LLVMGetParam(m->f, 1);
    m->tid = call(m, TL_LEAF_TID, NULL, 0);
    m->ctaid = call(m, TL_LEAF_CTAID, NULL, 0);
}

static Code make_code(TlArena *arena, const TlTarget *target, bool emulate, tl_leaf leaf,
                      uint32_t op, const char *name)
{
    static const tile_slot_kind SLOTS[5] = {TILE_SLOT_POINTER, TILE_SLOT_POINTER, TILE_SLOT_NPID,
                                            TILE_SLOT_GROUP, TILE_SLOT_DEBUG};
    bool speaks = tl_leaf_class_of(leaf) == TL_LEAF_CLASS_DEBUG;
    Maker m = {.arena = arena, .lanes = (uint32_t)target->lanes};
    TlCodegenOptions o = {.target = target, .opt_level = 2, .emulate = emulate};
    TlKernelCodes kernels = {0};
    TlKernelCode k = {.symbol = name,
                      .threads = THREADS,
                      .warps = THREADS / (uint32_t)target->lanes,
                      .shared_bytes = SHARED_BYTES};
    Code code = {0};
    for (uint32_t i = 0; i < (speaks ? 5u : 2u); i++)
        tl_vec_push(arena, &k.slots, (tile_image_slot){.kind = SLOTS[i]});
    tl_vec_push(arena, &kernels, k);
    tl_llvm_open(&m.l, arena, name, target->triple, target->cpu, target->features, 2);
    begin(&m, name, speaks);
    make_row(&m, leaf, op);
    LLVMBuildRetVoid(m.b);
    tl_gpu_set_kernel(&m.l, target, &kernels.data[0]);
    code.data = tl_gpu_emit(&m.l, &o, TL_EMIT_OBJ, arena, &kernels, &code.size);
    code.symbol = kernels.data[0].symbol;
    tl_llvm_close(&m.l);
    return code;
}

/* ---- running ---- */

typedef struct Run {
    tile_device *device;
    tile_device_info info;
    const TlTarget *target;
    bool emulate, verbose;
    const char *only, *dump, *proven;
    tile_buffer *in, *out;
    char spoken[1024];
    unsigned char words[OUT_BYTES];
    ImageMaker image;
} Run;

static void on_text(void *user, const char *text)
{
    Run *r = user;
    snprintf(r->spoken + strlen(r->spoken), sizeof r->spoken - strlen(r->spoken), " | %s", text);
}

static bool fails(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tile_last_error());
    return false;
}

/* Results are poisoned, cells hold what in_cell says. */
static void fill_output(Run *r, char letter)
{
    memset(r->words, 0xab, CELLS_AT);
    for (uint32_t c = 0; c < (ALL_THREADS + 1) * CELLS; c++) {
        unsigned char *cell = r->words + CELLS_AT + c * 8;
        double d = c % 100;
        float f = (float)d;
        uint16_t h = (uint16_t)(c * 257);
        memset(cell, 0xcd, 8);
        memcpy(cell,
               letter == 'h'   ? (void *)&h
               : letter == 'i' ? (void *)&f
                               : (void *)&d,
               letter == 'h'   ? 2
               : letter == 'i' ? 4
                               : 8);
    }
}

static tile_status launch(Run *r, const Code *code, bool speaks)
{
    tile_module *m = NULL;
    tile_kernel *k = NULL;
    const KernelSpec spec = {.name = code->symbol,
                             .params = {{"in", "u8 const pointer"}, {"out", "u8 pointer"}},
                             .grid = {"2"},
                             .code = code->data,
                             .ncode = code->size,
                             .warps = THREADS / (uint32_t)r->target->lanes,
                             .threads = THREADS,
                             .shared_bytes = SHARED_BYTES,
                             .gpu = speaks,
                             .texts = {"words", "3,2", "it is so", "load"}};
    make_image(&r->image, r->info.target, &spec, 1);
    tile_status s = tile_module_load_image(r->device, r->image.data, r->image.size, &m);
    if (!s)
        s = tile_kernel_get(m, code->symbol, NULL, &k);
    if (!s)
        s = tile_buffer_upload(r->out, 0, r->words, OUT_BYTES, NULL);
    if (!s)
        s = tile_launch(k, NULL,
                        (tile_arg[]){tile_ptr_sized(tile_buffer_ptr(r->in), INPUT_BYTES),
                                     tile_ptr_sized(tile_buffer_ptr(r->out), OUT_BYTES)},
                        2);
    if (!s)
        s = tile_device_synchronize(r->device);
    if (!s || s == TILE_FAILED)
        s = tile_buffer_download(r->out, 0, r->words, OUT_BYTES, NULL);
    tile_module_free(m);
    return s;
}

static uint64_t hash_of(const Run *r)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof r->words; i++)
        h = (h ^ r->words[i]) * UINT64_C(0x100000001b3);
    for (const char *p = r->spoken; *p; p++)
        h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
    return h;
}

/* "name hash word... text": the words are the first of thread 5 of the last block. */
static void describe(const Run *r, const char *name, char *line, size_t size)
{
    size_t n = (size_t)snprintf(line, size, "%s %016" PRIx64, name, hash_of(r));
    size_t at = ((size_t)(BLOCKS - 1) * THREADS + 5) * RESULTS * 16;
    for (int i = 0; i < SAMPLES; i++) {
        uint32_t w;
        memcpy(&w, r->words + at + (size_t)i * 16, sizeof w);
        n += (size_t)snprintf(line + n, size - n, " %08x", w);
    }
    snprintf(line + n, size - n, "%s", r->spoken);
}

static void dump(const Run *r, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.bin", r->dump, name);
    FILE *f = fopen(path, "wb");
    if (f)
        fwrite(r->words, 1, sizeof r->words, f);
    if (f)
        fclose(f);
}

static bool try_code(Run *r, TlArena *arena, tl_leaf leaf, uint32_t op, const char *name, Code *out)
{
    TlGuard g;
    if (TL_GUARD(&g)) {
        *out = make_code(arena, r->target, r->emulate, leaf, op, name);
        tl_guard_pop(&g);
    } else {
        fprintf(stderr, "%s: %s\n", name, g.text);
        return false;
    }
    if (out->size + 4096 > MAKER_BYTES)
        fprintf(stderr, "%s: code of %zu bytes\n", name, out->size);
    return out->size + 4096 <= MAKER_BYTES;
}

/* A row's line; false when it could not be made or run, which has been said. */
static bool run_row(Run *r, tl_leaf leaf, uint32_t op, const char *name, char *line, size_t size)
{
    TlArena arena;
    Code code;
    tl_arena_init(&arena, (TlAlloc){0});
    r->spoken[0] = 0;
    fill_output(r, atom_letter(leaf));
    bool ran = try_code(r, &arena, leaf, op, name, &code);
    if (ran && launch(r, &code, tl_leaf_class_of(leaf) == TL_LEAF_CLASS_DEBUG) != TILE_OK)
        ran = fails(name);
    if (ran)
        describe(r, name, line, size);
    if (ran && r->dump)
        dump(r, name);
    tl_arena_free(&arena);
    return ran;
}

/* ---- files ---- */

/* The line of `name` in a file of lines; NULL: none. */
static const char *find_line(const char *text, const char *name, size_t *length)
{
    size_t n = strlen(name);
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && at[n] == ' ') {
            *length = strcspn(at, "\n");
            return at;
        }
    return NULL;
}

static bool same(const char *want, size_t length, const char *line, const char *name)
{
    if (want && strlen(line) == length && memcmp(want, line, length) == 0)
        return true;
    printf("%s\n  got  %s\n  want %.*s\n", name, line, want ? (int)length : 6,
           want ? want : "(none)");
    return false;
}

static char *read_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || !fread(text, 1, (1 << 20) - 1, f)) {
        fprintf(stderr, "cannot read %s\n", path);
        free(text);
        text = NULL;
    }
    if (f)
        fclose(f);
    return text;
}

static void write_head(FILE *f, const Run *r)
{
    char day[16] = "";
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t))
        strftime(day, sizeof day, "%Y-%m-%d", &t);
    fprintf(
        f,
        "# Words of the leaf rows (leaf_words.c): name, hash of all, some words, what was said.\n"
        "# %s: %s, target %s, %s\n",
        r->emulate ? "Not hardware" : "Hardware", r->info.name, r->info.target, day);
}

typedef struct Count {
    int rows, bad;
} Count;

static void one_row(Run *r, tl_leaf leaf, uint32_t op, const char *name, const char *want,
                    FILE *out, Count *count)
{
    char line[2048];
    if (r->only && !strstr(name, r->only))
        return;
    count->rows++;
    bool ran = run_row(r, leaf, op, name, line, sizeof line);
    if (ran && out)
        fprintf(out, "%s\n", line);
    size_t length = 0;
    const char *at = want ? find_line(want, name, &length) : NULL;
    bool fine = ran && (!want || same(at, length, line, name));
    count->bad += !fine;
    if (r->verbose)
        printf("%s %s\n", fine ? "ok  " : "FAIL", name);
    fflush(stdout);
}

/* A line of proven.def; on an emulated device nothing is proven. */
static void add_proof(const Run *r, FILE *f, tl_leaf leaf)
{
    static const char *const IDS[] = {
#define LEAF(ID, ...) #ID,
#include "runtime/contract/leaf.def"
    };
    if (f && !r->emulate)
        fprintf(f, "PROVEN(\"%s\", %s)\n", r->target->name, IDS[leaf]);
}

static Count all_rows(Run *r, const char *want, FILE *out, FILE *proven)
{
    static const char *const ATOMS[] = {"add", "min_s", "min_u", "max_s", "max_u", "and",  "or",
                                        "xor", "xchg",  "cas",   "fadd",  "load",  "store"};
    _Static_assert(sizeof ATOMS / sizeof *ATOMS == TL_ATOM_STORE + 1, "one name for each");
    Count count = {0, 0};
    TlArena arena;
    tl_arena_init(&arena, (TlAlloc){0});
    for (int leaf = 0; leaf < TL_LEAF_COUNT; leaf++) {
        bool atomic = tl_leaf_class_of((tl_leaf)leaf) == TL_LEAF_CLASS_ATOMIC;
        Count before = count;
        for (uint32_t op = 0; op < operations((tl_leaf)leaf); op++) {
            char name[64];
            if (!has_operation(r->target, &arena, (tl_leaf)leaf, op))
                continue;
            snprintf(name, sizeof name, "%s%s%s",
                     is_matrix((tl_leaf)leaf) ? tl_mma_at(op)->name : tl_leaf_name((tl_leaf)leaf),
                     atomic ? "_" : "", atomic ? ATOMS[op] : "");
            one_row(r, (tl_leaf)leaf, op, name, want, out, &count);
        }
        if (want && count.rows > before.rows && count.bad == before.bad)
            add_proof(r, proven, (tl_leaf)leaf);
    }
    tl_arena_free(&arena);
    return count;
}

static bool open_device(Run *r, const char *name)
{
    static unsigned char input[INPUT_BYTES];
    tile_callbacks callbacks = TILE_CALLBACKS_INIT;
    callbacks.print = callbacks.failure = on_text;
    callbacks.user = r;
    for (uint32_t i = 0; i < INPUT_BYTES; i++)
        input[i] = (unsigned char)((i * 2654435761u) >> 24);
    r->info = (tile_device_info)TILE_DEVICE_INFO_INIT;
    if (tile_device_open(name, &r->device) || tile_set_default_device(r->device) ||
        tile_device_get_info(r->device, &r->info) ||
        tile_device_set_callbacks(r->device, &callbacks) ||
        tile_buffer_alloc(r->device, INPUT_BYTES, &r->in) ||
        tile_buffer_alloc(r->device, OUT_BYTES, &r->out) ||
        tile_buffer_upload(r->in, 0, input, INPUT_BYTES, NULL))
        return fails(name);
    r->target = tl_target_find(r->info.target, &r->emulate);
    if (!r->target || !tl_target_is_gpu(r->target)) {
        fprintf(stderr, "%s is no GPU, nor emulates one\n", name);
        return false;
    }
    return true;
}

static int usage(void)
{
    fprintf(stderr, "leaf_words DEVICE --write FILE | --check FILE [-k NAME] [--dump DIR] "
                    "[--proven FILE] [-v]\n");
    return 2;
}

static int run(Run *r, const char *device, const char *write, const char *check)
{
    char *want = check ? read_text(check) : NULL;
    if (check && !want)
        return 2;
    FILE *out = NULL, *proven = NULL;
    Count count = {0, 1};
    if (open_device(r, device)) {
        out = write ? fopen(write, "w") : NULL;
        if (out)
            write_head(out, r);
        proven = r->proven ? fopen(r->proven, "w") : NULL;
        count = all_rows(r, want, out, proven);
        printf("%s: %d rows, %d bad\n", r->info.name, count.rows, count.bad);
    }
    bool written = !write || (out && fclose(out) == 0);
    written &= !r->proven || (proven && fclose(proven) == 0);
    tile_buffer_free(r->in);
    tile_buffer_free(r->out);
    tile_set_default_device(NULL);
    tile_device_close(r->device);
    free(want);
    return count.bad || !count.rows || !written;
}

int main(int argc, char **argv)
{
    const char *write = NULL, *check = NULL;
    Run *r = calloc(1, sizeof *r);
    if (!r || argc < 2)
        return usage();
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            r->verbose = true;
        else if (i + 1 == argc)
            return usage();
        else if (strcmp(argv[i], "--write") == 0)
            write = argv[++i];
        else if (strcmp(argv[i], "--check") == 0)
            check = argv[++i];
        else if (strcmp(argv[i], "--dump") == 0)
            r->dump = argv[++i];
        else if (strcmp(argv[i], "--proven") == 0)
            r->proven = argv[++i];
        else if (strcmp(argv[i], "-k") == 0)
            r->only = argv[++i];
        else
            return usage();
    }
    if (!write && !check)
        return usage();
    int status = run(r, argv[1], write, check);
    free(r);
    return status;
}
