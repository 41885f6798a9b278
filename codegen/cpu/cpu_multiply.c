/* Multiplies for cpu_matmul.c: a chunk of A's rows, packed or in memory, times packed panels of B.
 * Each block of sums, mr rows by a panel of columns, stays in registers for all k of the chunk. If
 * only a few columns of the last wide panel are needed, they are packed in narrow panels, one
 * vector wide. */
#include "codegen/cpu/cpu_access.h"
#include "codegen/cpu/cpu_matmul.h"

#include <string.h>

static LLVMValueRef align_vector(const TlCpuMultiply *x, LLVMValueRef access)
{
    unsigned bytes = (unsigned)(tl_dtype_bytes(x->dtype) * x->width);
    LLVMSetAlignment(access, bytes > 64 ? 64 : bytes);
    return access;
}

static LLVMValueRef lanes_at(TlCpuMultiply *x, LLVMValueRef base, int64_t offset, int lanes)
{
    LLVMValueRef p = offset ? tl_cpu_elem_at(x, base, tl_gen_int(&x->g->gen, offset)) : base;
    LLVMValueRef v = LLVMBuildLoad2(x->g->b, tl_gen_vec(x->elem, lanes), p, "");
    return align_vector(x, v);
}

static LLVMValueRef vector_at(TlCpuMultiply *x, LLVMValueRef base, int64_t offset)
{
    return lanes_at(x, base, offset, x->width);
}

static LLVMValueRef store_vector(TlCpuMultiply *x, LLVMValueRef v, LLVMValueRef base,
                                 int64_t offset)
{
    LLVMValueRef p = offset ? tl_cpu_elem_at(x, base, tl_gen_int(&x->g->gen, offset)) : base;
    return align_vector(x, LLVMBuildStore(x->g->b, v, p));
}

/* Where b's panel number n begins. */
static LLVMValueRef panel_at(TlCpuMultiply *x, LLVMValueRef b, LLVMValueRef n)
{
    return tl_cpu_elem_at(
        x, b, tl_cpu_times(x->g, LLVMBuildMul(x->g->b, n, x->panel_rows, ""), x->panel));
}

static LLVMValueRef first_panel(TlCpuMultiply *x)
{
    return x->skipped
               ? tl_cpu_elem_at(x, x->b, LLVMBuildMul(x->g->b, x->skipped, x->panel_rows, ""))
               : x->b;
}

LLVMValueRef tl_cpu_panel_of_chunk(TlCpuMultiply *x, LLVMValueRef n)
{
    LLVMValueRef b = panel_at(x, first_panel(x), n);
    return x->b_row ? tl_cpu_elem_at(x, b, tl_cpu_times(x->g, x->b_row, x->panel)) : b;
}

/* The row below the panel at b. */
static LLVMValueRef row_below(TlCpuMultiply *x, LLVMValueRef b)
{
    LLVMValueRef n = LLVMBuildSub(x->g->b, x->panel_rows, tl_gen_int(&x->g->gen, 1), "");
    return tl_cpu_elem_at(x, b, tl_cpu_times(x->g, n, x->panel));
}

LLVMValueRef tl_cpu_multiply_add(TlCpuMultiply *x, LLVMValueRef a, LLVMValueRef b, LLVMValueRef acc)
{
    TlCpuGen *g = x->g;
    return x->p->insn ? tl_cpu_dot_add(&g->gen, x->p->insn, x->p->part[1], a, b, acc)
                      : tl_gen_multiply_add(&g->gen, x->dtype, a, b, acc);
}

static bool goes_by_columns(const TlCpuMultiply *x)
{
    return x->p->a_transposed || x->p->a_by_columns;
}

/* Where the block begins in column k of A. */
static LLVMValueRef column_of(TlCpuMultiply *x, LLVMValueRef k, LLVMValueRef m)
{
    if (!x->a_listed)
        return tl_cpu_part_at(x, x->a,
                              tl_cpu_add(x->g, LLVMBuildMul(x->g->b, k, x->a_row, ""), m));
    LLVMValueRef p = LLVMBuildInBoundsGEP2(x->g->b, x->g->ptr, x->a, &k, 1, "");
    m = x->a_step ? LLVMBuildMul(x->g->b, m, x->a_step, "") : m;
    return tl_cpu_part_at(x, LLVMBuildLoad2(x->g->b, x->g->ptr, p, ""), m);
}

/* The element of A at `a`, in all lanes. */
static LLVMValueRef splat_at(TlCpuMultiply *x, LLVMValueRef a)
{
    LLVMValueRef s = LLVMBuildLoad2(x->g->b, x->elem, a, "");
    LLVMSetAlignment(s, (unsigned)tl_dtype_bytes(x->p->part[0]));
    return tl_gen_splat(&x->g->gen, s, x->width);
}

/* ---- blocks ----
 * Sums of a block: those of row i from i * full_vectors on, and, where two rows share the last
 * vector of their panel, one for each two behind all of these. */

static int full_vectors(const TlCpuMultiply *x)
{
    return x->nv - x->halves;
}

static int sums_of(const TlCpuMultiply *x, int mr)
{
    return mr * full_vectors(x) + (x->halves ? mr / 2 : 0);
}

/* Each element of half a vector twice, side by side. */
static LLVMValueRef doubled(TlCpuMultiply *x, LLVMValueRef half)
{
    LLVMValueRef lane[TL_NEST_LANES];
    for (int i = 0; i < x->width; i++)
        lane[i] = LLVMConstInt(x->g->i32, (uint64_t)i / 2, 0);
    return LLVMBuildShuffleVector(x->g->b, half, half, LLVMConstVector(lane, (unsigned)x->width),
                                  "");
}

/* Lanes of vector j of a panel. */
static int lanes_of(const TlCpuMultiply *x, int j)
{
    return x->ends_half && j == x->nv - 1 ? x->width / 2 : x->width;
}

/* The first lanes of a vector. */
static LLVMValueRef first_lanes(TlCpuMultiply *x, LLVMValueRef v, int n)
{
    LLVMValueRef lane[TL_NEST_LANES];
    for (int i = 0; i < n; i++)
        lane[i] = LLVMConstInt(x->g->i32, (uint64_t)i, 0);
    return n == tl_gen_width_of(v)
               ? v
               : LLVMBuildShuffleVector(x->g->b, v, v, LLVMConstVector(lane, (unsigned)n), "");
}

/* The sums of one of two rows that share a vector: every second lane. */
static LLVMValueRef half_of(TlCpuMultiply *x, LLVMValueRef v, int row)
{
    LLVMValueRef lane[TL_NEST_LANES];
    int half = x->width / 2;
    for (int i = 0; i < half; i++)
        lane[i] = LLVMConstInt(x->g->i32, (uint64_t)(2 * i + row), 0);
    return LLVMBuildShuffleVector(x->g->b, v, v, LLVMConstVector(lane, (unsigned)half), "");
}

/* The other way round. */
static LLVMValueRef shared_by(TlCpuMultiply *x, LLVMValueRef first, LLVMValueRef second)
{
    LLVMValueRef lane[TL_NEST_LANES];
    int half = x->width / 2;
    for (int i = 0; i < x->width; i++)
        lane[i] = LLVMConstInt(x->g->i32, (uint64_t)(i / 2 + i % 2 * half), 0);
    return LLVMBuildShuffleVector(x->g->b, first, second, LLVMConstVector(lane, (unsigned)x->width),
                                  "");
}

/* The elements of A at `a` and `b`, in turns in all lanes. beside: they lie side by side. */
static LLVMValueRef two_at(TlCpuMultiply *x, LLVMValueRef a, LLVMValueRef b, bool beside)
{
    TlCpuGen *g = x->g;
    LLVMValueRef two = LLVMGetUndef(tl_gen_vec(x->elem, 2)), at[] = {a, b}, lane[TL_NEST_LANES];
    if (beside)
        two = LLVMBuildLoad2(g->b, tl_gen_vec(x->elem, 2), a, "");
    for (int i = 0; i < 2; i++) {
        LLVMValueRef e = beside ? two : LLVMBuildLoad2(g->b, x->elem, at[i], "");
        LLVMSetAlignment(e, (unsigned)tl_dtype_bytes(x->p->part[0]));
        two = beside
                  ? two
                  : LLVMBuildInsertElement(g->b, two, e, LLVMConstInt(g->i32, (uint64_t)i, 0), "");
    }
    for (int i = 0; i < x->width; i++)
        lane[i] = LLVMConstInt(g->i32, (uint64_t)i % 2, 0);
    return LLVMBuildShuffleVector(g->b, two, two, LLVMConstVector(lane, (unsigned)x->width), "");
}

static LLVMValueRef align_half(TlCpuMultiply *x, LLVMValueRef access)
{
    LLVMSetAlignment(access, (unsigned)(tl_dtype_bytes(x->dtype) * x->width / 2));
    return access;
}

/* The half that follows the full vectors of the row at base. */
static LLVMValueRef half_at(TlCpuMultiply *x, LLVMValueRef base)
{
    return full_vectors(x)
               ? tl_cpu_elem_at(x, base,
                                tl_gen_int(&x->g->gen, (int64_t)full_vectors(x) * x->width))
               : base;
}

static LLVMValueRef load_half(TlCpuMultiply *x, LLVMValueRef base)
{
    LLVMTypeRef type = tl_gen_vec(x->elem, x->width / 2);
    return align_half(x, LLVMBuildLoad2(x->g->b, type, half_at(x, base), ""));
}

/* Do instructions take two rows of A and two columns of B? Then the sums of rows i and i + 1 are
 * 2 * nv vectors, each of two rows and two columns. */
static bool takes_pairs(const TlCpuMultiply *x)
{
    return x->p->pairs && !x->reads_b;
}

static LLVMValueRef shuffled(TlCpuMultiply *x, LLVMValueRef v, LLVMValueRef w, const int *lanes)
{
    LLVMValueRef lane[4];
    for (int i = 0; i < 4; i++)
        lane[i] = LLVMConstInt(x->g->i32, (unsigned)lanes[i], 0);
    return LLVMBuildShuffleVector(x->g->b, v, w, LLVMConstVector(lane, 4), "");
}

/* Vectors of two rows are made two vectors of pairs, and (`back`) the other way round. */
static void turn_pair(TlCpuMultiply *x, bool back, LLVMValueRef *v, LLVMValueRef *w)
{
    static const int HALVES[2][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}},
                     IN_TURNS[2][4] = {{0, 4, 1, 5}, {2, 6, 3, 7}},
                     EACH_SECOND[2][4] = {{0, 2, 4, 6}, {1, 3, 5, 7}};
    bool turned = tl_cpu_pairs_are_turned(x->p);
    const int(*lanes)[4] = !turned ? HALVES : back ? EACH_SECOND : IN_TURNS;
    LLVMValueRef first = shuffled(x, *v, *w, lanes[0]), second = shuffled(x, *v, *w, lanes[1]);
    *v = first;
    *w = second;
}

/* The sums of rows by the order of pairs, or back. */
static void turn_pairs(TlCpuMultiply *x, int mr, bool back, LLVMValueRef *acc)
{
    LLVMValueRef rows[TL_NEST_ACCUMULATORS], *pairs = acc;
    TL_ASSERT(mr % 2 == 0 && x->width == 4, "pairs of %d rows, %d columns", mr, x->width);
    for (int i = 0; i < mr; i += 2, pairs += 2 * x->nv)
        for (int j = 0; j < x->nv; j++) {
            LLVMValueRef *v = &rows[i * x->nv + j], *w = v + x->nv;
            *v = back ? pairs[2 * j] : acc[i * x->nv + j];
            *w = back ? pairs[2 * j + 1] : acc[(i + 1) * x->nv + j];
            turn_pair(x, back, v, w);
        }
    pairs = acc;
    for (int i = 0; i < mr; i += 2, pairs += 2 * x->nv)
        for (int j = 0; j < x->nv; j++) {
            pairs[back ? j : 2 * j] = rows[i * x->nv + j];
            pairs[back ? x->nv + j : 2 * j + 1] = rows[(i + 1) * x->nv + j];
        }
}

/* The sums of a block: zeros, or what the rows at c have. */
static void load_sums(TlCpuMultiply *x, int mr, const LLVMValueRef *c, LLVMValueRef *acc)
{
    int full = full_vectors(x);
    for (int i = 0; i < sums_of(x, mr) && x->from_zero; i++)
        acc[i] = LLVMConstNull(tl_gen_vec(x->elem, x->width));
    if (x->from_zero)
        return;
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < full; j++)
            acc[i * full + j] = lanes_at(x, c[i], j * x->width, lanes_of(x, j));
    for (int i = 0; i < mr && x->halves; i += 2)
        acc[mr * full + i / 2] = shared_by(x, load_half(x, c[i]), load_half(x, c[i + 1]));
    for (int i = 0; i < sums_of(x, mr) && x->begins; i++)
        acc[i] = LLVMBuildSelect(x->g->b, x->begins, LLVMConstNull(LLVMTypeOf(acc[i])), acc[i], "");
    if (takes_pairs(x))
        turn_pairs(x, mr, false, acc);
}

/* Stores v, vector j of the row at c. */
static void store_sum(TlCpuMultiply *x, LLVMValueRef v, LLVMValueRef c, int j)
{
    LLVMValueRef s = store_vector(x, v, c, j * x->width);
    if (x->out)
        LLVMSetAlignment(s, (unsigned)tl_dtype_bytes(x->dtype));
}

static void store_sums(TlCpuMultiply *x, int mr, LLVMValueRef *acc, const LLVMValueRef *c)
{
    int full = full_vectors(x);
    for (int i = 0; i < sums_of(x, mr) && x->last; i++)
        acc[i] =
            LLVMBuildFAdd(x->g->b, acc[i], first_lanes(x, x->last, tl_gen_width_of(acc[i])), "");
    if (takes_pairs(x))
        turn_pairs(x, mr, true, acc);
    for (int i = 0; i < mr; i++) {
        for (int j = 0; j < full; j++)
            store_sum(x, acc[i * full + j], c[i], j);
        if (x->halves) {
            LLVMValueRef v = half_of(x, acc[mr * full + i / 2], i % 2);
            align_half(x, LLVMBuildStore(x->g->b, v, half_at(x, c[i])));
        }
    }
}

/* acc += A's elements of the rows of a block, which are at `a`, * a row of B: where two rows share
 * a vector, its last vector has each element twice. beside: A's elements lie side by side. */
static void add_rows(TlCpuMultiply *x, int mr, const LLVMValueRef *a, bool beside,
                     const LLVMValueRef *row, LLVMValueRef *acc)
{
    int full = full_vectors(x);
    for (int i = 0; i < mr; i++) {
        LLVMValueRef v = splat_at(x, a[i]);
        for (int j = 0; j < full; j++)
            acc[i * full + j] = tl_cpu_multiply_add(x, first_lanes(x, v, lanes_of(x, j)), row[j],
                                                    acc[i * full + j]);
    }
    for (int i = 0; i < mr && x->halves; i += 2) {
        LLVMValueRef v = two_at(x, a[i], a[i + 1], beside), *sum = &acc[mr * full + i / 2];
        *sum = tl_cpu_multiply_add(x, v, row[full], *sum);
    }
}

/* Asks for n vectors of B that come later. */
static void fetch_ahead(TlCpuMultiply *x, LLVMValueRef b, int n)
{
    for (int j = 0; j < n && x->fetches; j++) {
        LLVMValueRef ahead = tl_gen_int(&x->g->gen, TL_NEST_AHEAD * x->panel + j * x->width);
        tl_cpu_prefetch_line(x->g, tl_cpu_elem_at(x, b, ahead), false, 3);
    }
}

/* What two rows of A have, side by side: as f64, which are loaded to vector registers. */
static LLVMValueRef pair_at(TlCpuMultiply *x, LLVMValueRef a, LLVMValueRef b)
{
    TlCpuGen *g = x->g;
    LLVMTypeRef word = LLVMDoubleTypeInContext(g->c);
    LLVMValueRef both = LLVMGetPoison(tl_gen_vec(word, 2)), at[] = {a, b};
    for (int i = 0; i < 2; i++) {
        LLVMValueRef half = LLVMBuildLoad2(g->b, word, at[i], "");
        LLVMSetAlignment(half, (unsigned)tl_dtype_bytes(x->p->part[0]));
        both = LLVMBuildInsertElement(g->b, both, half, LLVMConstInt(g->i32, (uint64_t)i, 0), "");
    }
    return both;
}

/* acc += A[rows, k, k + 1] * B[k, k + 1, columns], two rows and two columns at a time. */
static void step_of_pairs(TlCpuMultiply *x, int mr, const LLVMValueRef *a, LLVMValueRef k,
                          LLVMValueRef b, LLVMValueRef *acc)
{
    LLVMValueRef pair[TL_NEST_ACCUMULATORS], at = tl_cpu_times(x->g, k, x->per);
    fetch_ahead(x, b, 2 * x->nv);
    for (int i = 0; i < mr / 2; i++)
        pair[i] = pair_at(x, tl_cpu_part_at(x, a[2 * i], at), tl_cpu_part_at(x, a[2 * i + 1], at));
    for (int j = 0; j < 2 * x->nv; j++) {
        LLVMValueRef row = vector_at(x, b, (int64_t)j * x->width);
        for (int i = 0; i < mr / 2; i++) {
            LLVMValueRef *sum = &acc[i * 2 * x->nv + j];
            *sum = tl_cpu_dot_add_pairs(&x->g->gen, x->p, pair[i], row, *sum);
        }
    }
}

/* acc += A[rows, k] * B[k, columns]. a: the rows of A, or as find_a says; b: the row of B. */
static void step(TlCpuMultiply *x, int mr, bool whole, const LLVMValueRef *a, LLVMValueRef k,
                 LLVMValueRef b, LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef row[8], at[TL_NEST_ACCUMULATORS];
    for (int j = 0; j < full_vectors(x); j++)
        row[j] = vector_at(x, b, j * x->width);
    if (x->halves)
        row[full_vectors(x)] = doubled(x, load_half(x, b));
    fetch_ahead(x, b, x->nv);
    LLVMValueRef column = goes_by_columns(x) ? column_of(x, k, a[0]) : NULL;
    bool beside = column && whole && !x->a_step;
    for (int i = 0; i < mr; i++)
        at[i] = column ? (i ? tl_cpu_part_at(x, column, a[i]) : column)
                       : tl_cpu_part_at(x, a[i], tl_cpu_times(g, k, x->per));
    add_rows(x, mr, at, beside, row, acc);
}

/* From the row before to row i of a block, of which so many are left: 0 past the last one, which
 * stands for those that are not there. */
static LLVMValueRef to_row(TlCpuGen *g, LLVMValueRef left, int i, LLVMValueRef stride, bool whole)
{
    if (whole)
        return stride;
    LLVMValueRef more = LLVMBuildICmp(g->b, LLVMIntSGT, left, tl_gen_int(&g->gen, i), "");
    return LLVMBuildSelect(g->b, more, stride, tl_gen_int(&g->gen, 0), "");
}

/* The block's rows in x->out. */
static void find_out(TlCpuMultiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole,
                     LLVMValueRef *c)
{
    TlCpuGen *g = x->g;
    LLVMValueRef left = LLVMBuildSub(g->b, x->to, m, "");
    c[0] = tl_cpu_elem_at(
        x, x->out,
        tl_cpu_add(g, LLVMBuildMul(g->b, m, x->out_row, ""), tl_cpu_times(g, panel, x->panel)));
    for (int i = 1; i < mr; i++)
        c[i] = tl_cpu_elem_at(x, c[i - 1], to_row(g, left, i, x->out_row, whole));
}

/* ---- chunks that are multiplied together ---- */

static LLVMValueRef chunk_word(TlCpuGen *g, LLVMValueRef gathered, LLVMValueRef n, int word)
{
    LLVMValueRef first = tl_cpu_times(g, n, TL_NEST_CHUNK_WORDS),
                 at = tl_cpu_add(g, first, tl_gen_int(&g->gen, word));
    return LLVMBuildInBoundsGEP2(g->b, g->i64, gathered, &at, 1, "");
}

static void words_of(TlCpuMultiply *x, LLVMValueRef **out)
{
    LLVMValueRef *words[TL_NEST_CHUNK_WORDS] = {&x->a,     &x->b,          &x->a_row,
                                                &x->count, &x->panel_rows, &x->b_row};
    memcpy(out, words, sizeof words);
}

void tl_cpu_gather_chunk(TlCpuMultiply *x, LLVMValueRef n)
{
    LLVMValueRef *word[TL_NEST_CHUNK_WORDS];
    words_of(x, word);
    for (int i = 0; i < TL_NEST_CHUNK_WORDS; i++)
        LLVMBuildStore(x->g->b, *word[i], chunk_word(x->g, x->gathered, n, i));
}

TlCpuMultiply tl_cpu_gathered_chunk(const TlCpuMultiply *x, LLVMValueRef n)
{
    TlCpuMultiply y = *x;
    LLVMValueRef *word[TL_NEST_CHUNK_WORDS];
    words_of(&y, word);
    for (int i = 0; i < TL_NEST_CHUNK_WORDS; i++)
        *word[i] =
            LLVMBuildLoad2(x->g->b, LLVMTypeOf(*word[i]), chunk_word(x->g, x->gathered, n, i), "");
    return y;
}

/* ---- blocks of sums ---- */

/* The block's rows of A; if A is transposed, the first one's number, and how far the others are
 * from it. */
static void find_a(TlCpuMultiply *x, LLVMValueRef m, int mr, bool whole, LLVMValueRef *a)
{
    TlCpuGen *g = x->g;
    LLVMValueRef left = LLVMBuildSub(g->b, x->to, m, "");
    LLVMValueRef next = x->a_listed ? tl_gen_int(&g->gen, 1) : x->a_row;
    a[0] = m;
    for (int i = 1; i < mr && goes_by_columns(x); i++) {
        a[i] = tl_gen_int(&g->gen, i);
        if (!whole)
            a[i] = tl_cpu_smaller(g, a[i], LLVMBuildSub(g->b, left, tl_gen_int(&g->gen, 1), ""));
        a[i] = x->a_step ? LLVMBuildMul(g->b, a[i], x->a_step, "") : a[i];
    }
    if (goes_by_columns(x))
        return;
    LLVMTypeRef step = x->a_listed ? g->ptr : x->part;
    LLVMValueRef at = x->a_listed ? m : LLVMBuildMul(g->b, m, x->a_row, "");
    a[0] = LLVMBuildInBoundsGEP2(g->b, step, x->a, &at, 1, "");
    for (int i = 1; i < mr; i++) {
        LLVMValueRef row = to_row(g, left, i, next, whole);
        a[i] = LLVMBuildInBoundsGEP2(g->b, step, a[i - 1], &row, 1, "");
    }
    for (int i = 0; i < mr && x->a_listed; i++)
        a[i] = LLVMBuildLoad2(g->b, g->ptr, a[i], "");
}

/* acc += the chunk's part of the block. */
static void add_chunk(TlCpuMultiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole,
                      LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef a[TL_NEST_ACCUMULATORS], b = tl_cpu_panel_of_chunk(x, panel);
    uint32_t sums = (uint32_t)sums_of(x, mr);
    find_a(x, m, mr, whole, a);
    TlCpuLoop l;
    int64_t by = takes_pairs(x) ? 2 : 1;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), x->count, by, sums, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
    b = tl_cpu_elem_at(x, b, tl_cpu_times(g, l.i, x->panel));
    if (takes_pairs(x))
        step_of_pairs(x, mr, a, l.i, b, acc);
    else
        step(x, mr, whole, a, l.i, b, acc);
    tl_cpu_loop_end(g, &l, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
}

static void add_gathered(TlCpuMultiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole,
                         LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    uint32_t sums = (uint32_t)sums_of(x, mr);
    TlCpuLoop l;
    tl_cpu_loop_begin(g, &l, tl_gen_int(&g->gen, 0), x->ngathered, 1, sums, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
    TlCpuMultiply y = tl_cpu_gathered_chunk(x, l.i);
    add_chunk(&y, m, panel, mr, whole, acc);
    tl_cpu_loop_end(g, &l, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
}

/* ---- B as it is ---- */

/* acc += A[rows, k ..] * what is read of B from row `from` of the iteration on; k: where that is in
 * A's rows. Behind the sums are those of B, where A is flipped. */
static void add_read(TlCpuMultiply *x, int mr, const LLVMValueRef *a, LLVMValueRef k,
                     LLVMValueRef from, LLVMValueRef column, LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef row[TL_NEST_TRANSPOSED], at[TL_NEST_ACCUMULATORS], all[TL_NEST_ACCUMULATORS];
    int rows = x->n->pack[1]->transposed ? x->n->pack[1]->transposed : 1;
    tl_cpu_read_b(x, from, column, row);
    for (int r = 0; r < mr; r++)
        at[r] = tl_cpu_part_at(x, a[r], k);
    for (int i = 0; i < rows; i++) {
        LLVMValueRef *of_b = acc + mr * x->nv;
        for (int r = 0; r < mr; r++)
            all[r] = tl_cpu_part_at(x, at[r], tl_gen_int(&g->gen, (int64_t)i * x->per));
        add_rows(x, mr, all, false, &row[i], acc);
        for (int j = 0; x->p->flips && j < x->nv; j++)
            of_b[j] = tl_cpu_dot_add_ones(&g->gen, x->p->insn, x->p->part[1], row[i + j], of_b[j]);
    }
}

/* The same of one row of A and x->deep rows of B: down them vector by vector, so that lines of
 * several pages are asked for at once. */
static void add_deep(TlCpuMultiply *x, LLVMValueRef a, LLVMValueRef k, LLVMValueRef from,
                     LLVMValueRef column, LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    TlCpuMultiply y = *x;
    LLVMValueRef s[TL_NEST_DEEP], v;
    y.nv = 1;
    TL_ASSERT(x->deep <= TL_NEST_DEEP, "%d rows of B", x->deep);
    for (int i = 0; i < x->deep; i++) {
        LLVMValueRef at = tl_cpu_add(g, k, tl_gen_int(&g->gen, i));
        s[i] = splat_at(x, tl_cpu_part_at(x, a, at));
    }
    for (int n = 0; n < x->nv * x->deep; n++) {
        int j = n / x->deep, i = n % x->deep;
        tl_cpu_read_b(&y, tl_cpu_add(g, from, tl_gen_int(&g->gen, i)),
                      tl_cpu_add(g, column, tl_gen_int(&g->gen, (int64_t)j * x->width)), &v);
        acc[j] = tl_cpu_multiply_add(x, s[i], v, acc[j]);
    }
}

/* acc += the chunk's part of the block, iteration by iteration. */
static void add_trips(TlCpuMultiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole,
                      LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef a[TL_NEST_ACCUMULATORS], column = tl_cpu_times(g, panel, x->panel);
    int64_t rows = x->n->pack[1]->transposed ? x->n->pack[1]->transposed : 1;
    int64_t k = x->n->pack[1]->value->type->shape[0], per = x->per;
    uint32_t sums = (uint32_t)((mr + x->p->flips) * x->nv);
    for (uint32_t i = (uint32_t)(mr * x->nv); i < sums; i++)
        acc[i] = LLVMConstNull(tl_gen_vec(x->elem, x->width));
    find_a(x, m, mr, whole, a);
    TlCpuLoop trips, l;
    tl_cpu_loop_begin(g, &trips, tl_gen_int(&g->gen, 0), x->trips, 1, sums, acc);
    memcpy(acc, trips.carry, sums * sizeof *acc);
    tl_cpu_lower_trip(x, tl_cpu_add(g, x->first, trips.i));
    tl_cpu_loop_known(g, &l, 0, k / per, x->deep ? x->deep : rows, sums, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
    LLVMValueRef from = tl_cpu_times(g, l.i, per);
    LLVMValueRef at = tl_cpu_add(g, tl_cpu_times(g, trips.i, k), from);
    if (x->deep)
        add_deep(x, a[0], at, from, column, acc);
    else
        add_read(x, mr, a, at, from, column, acc);
    tl_cpu_loop_end(g, &l, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
    tl_cpu_loop_end(g, &trips, acc);
    memcpy(acc, trips.carry, sums * sizeof *acc);
    for (int i = 0; x->p->flips && i < mr * x->nv; i++) {
        LLVMValueRef of_b = acc[mr * x->nv + i % x->nv];
        acc[i] = tl_cpu_add(g, acc[i], tl_cpu_dot_correction(&g->gen, x->p->part[0], of_b));
    }
}

/* ---- B up to its ends ---- */

/* Where the panel's vectors are in a row of B, and which of their lanes are inside. A vector of
 * which none is stands where the row begins: masked loads take long where no memory is. */
static void find_lanes(TlCpuMultiply *x, LLVMValueRef panel)
{
    TlCpuGen *g = x->g;
    LLVMValueRef first = tl_cpu_times(g, panel, x->panel), zero = tl_gen_int(&g->gen, 0);
    TL_ASSERT(x->nv <= TL_NEST_PANEL, "a panel of %d vectors", x->nv);
    for (int j = 0; j < x->nv; j++) {
        LLVMValueRef at = tl_cpu_add(g, first, tl_gen_int(&g->gen, (int64_t)j * x->width)),
                     left = LLVMBuildSub(g->b, x->b_inside, at, "");
        LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntSGT, left, zero, "");
        x->b_at[j] = LLVMBuildSelect(g->b, some, at, zero, "");
        left = LLVMBuildTrunc(g->b, left, g->i32, "");
        LLVMValueRef lane = tl_gen_iota(&g->gen, g->i32, lanes_of(x, j));
        x->b_lanes[j] =
            LLVMBuildICmp(g->b, LLVMIntSLT, lane, tl_gen_splat(&g->gen, left, lanes_of(x, j)), "");
    }
}

static LLVMValueRef row_of_b(TlCpuMultiply *x, LLVMValueRef k)
{
    TlDtype d = x->p->b_load->out[0]->type->dtype;
    return tl_gen_address(&x->g->gen, d, x->b_from, LLVMBuildMul(x->g->b, k, x->b_down, ""));
}

static LLVMValueRef vector_of_b(TlCpuMultiply *x, LLVMValueRef row, int j)
{
    TlType elem = tl_cpu_elem_of(x->p->b_load->out[0]->type);
    LLVMValueRef zeros = tl_gen_const(&x->g->gen, &elem, 0, lanes_of(x, j));
    LLVMValueRef p = tl_gen_address(&x->g->gen, elem.dtype, row, x->b_at[j]);
    if (j < x->whole) {
        LLVMValueRef v = LLVMBuildLoad2(x->g->b, tl_gen_vec(x->elem, lanes_of(x, j)), p, "");
        LLVMSetAlignment(v, (unsigned)tl_dtype_bytes(elem.dtype));
        return v;
    }
    return tl_cpu_masked_load(x->g, &elem, p, x->b_lanes[j], zeros, lanes_of(x, j), false);
}

static void ask_for_row(TlCpuMultiply *x, LLVMValueRef row)
{
    TlCpuGen *g = x->g;
    TlDtype d = x->p->b_load->out[0]->type->dtype;
    row = tl_gen_address(&g->gen, d, row, tl_cpu_times(g, x->b_down, TL_CPU_FAR_ROWS));
    for (int j = 0; j < x->nv; j++)
        tl_cpu_prefetch_line(g, tl_gen_address(&g->gen, d, row, x->b_at[j]), false,
                             TL_CPU_SECOND_CACHE);
}

/* acc += A[rows, k ..] * B[k .., columns], as many rows of B as x->deep says, vector by vector, so
 * that lines of several pages are asked for at once. */
static void add_rows_of_b(TlCpuMultiply *x, int mr, int deep, const LLVMValueRef *a, LLVMValueRef k,
                          LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef row[TL_NEST_DEEP], v[TL_NEST_DEEP][TL_NEST_PANEL], at[TL_NEST_ACCUMULATORS];
    for (int i = 0; i < deep; i++)
        row[i] = row_of_b(x, tl_cpu_add(g, k, tl_gen_int(&g->gen, i)));
    LLVMValueRef asks = LLVMBuildICmp(g->b, LLVMIntSLT, k, x->b_asks, "");
    TlCpuBranch ask = tl_cpu_branch(g, asks, true, "ask", "asked");
    for (int i = 0; i < deep; i++)
        ask_for_row(x, row[i]);
    tl_cpu_join(g, ask);
    for (int j = 0; j < x->nv; j++)
        for (int i = 0; i < deep; i++)
            v[i][j] = vector_of_b(x, row[i], j);
    for (int i = 0; i < deep; i++) {
        for (int r = 0; r < mr; r++)
            at[r] = tl_cpu_part_at(x, a[r], tl_cpu_add(g, k, tl_gen_int(&g->gen, i)));
        add_rows(x, mr, at, false, v[i], acc);
    }
}

/* From row `from` of the chunk's to row `to`. Returns acc. */
static void add_part_of_b(TlCpuMultiply *x, int mr, int deep, const LLVMValueRef *a,
                          LLVMValueRef from, LLVMValueRef to, LLVMValueRef *acc)
{
    TlCpuLoop l;
    uint32_t sums = (uint32_t)(mr * x->nv);
    tl_cpu_loop_begin(x->g, &l, from, to, deep, sums, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
    add_rows_of_b(x, mr, deep, a, l.i, acc);
    tl_cpu_loop_end(x->g, &l, acc);
    memcpy(acc, l.carry, sums * sizeof *acc);
}

static void add_to_ends(TlCpuMultiply *x, LLVMValueRef m, int mr, bool whole, LLVMValueRef *acc)
{
    TlCpuGen *g = x->g;
    LLVMValueRef a[TL_NEST_ACCUMULATORS], from = tl_gen_int(&g->gen, 0);
    find_a(x, m, mr, whole, a);
    if (x->deep > 1) {
        TlCpuMultiply y = *x;
        y.whole = x->nv;
        add_part_of_b(&y, mr, x->deep, a, from, x->b_deep, acc);
        from = x->b_deep;
    }
    add_part_of_b(x, mr, 1, a, from, x->count, acc);
}

/* Rows m .. m + mr - 1, `whole`: which are all there; else the last row stands for those past the
 * end: it is computed more than once, with the same result. */
static void block(TlCpuMultiply *x, LLVMValueRef m, LLVMValueRef panel, int mr, bool whole)
{
    TlCpuGen *g = x->g;
    LLVMValueRef c[TL_NEST_ACCUMULATORS], acc[TL_NEST_ACCUMULATORS];
    LLVMValueRef row = tl_gen_int(&g->gen, x->acc_row), left = LLVMBuildSub(g->b, x->to, m, "");
    bool corrects = x->p->flips && !x->reads_b;
    LLVMValueRef b = corrects ? panel_at(x, first_panel(x), panel) : NULL;
    LLVMValueRef cp = tl_cpu_elem_at(
        x, x->acc, tl_cpu_add(g, tl_cpu_times(g, m, x->acc_row), tl_cpu_times(g, panel, x->panel)));
    for (int i = 0; i < mr; i++)
        c[i] = cp = i ? tl_cpu_elem_at(x, cp, to_row(g, left, i, row, whole)) : cp;
    load_sums(x, mr, c, acc);
    for (int i = 0; i < mr * x->nv && corrects; i++)
        acc[i] = tl_cpu_add(g, acc[i], vector_at(x, row_below(x, b), i % x->nv * x->width));
    if (x->reads_b && x->b_from)
        add_to_ends(x, m, mr, whole, acc);
    else if (x->reads_b)
        add_trips(x, m, panel, mr, whole, acc);
    else if (x->gathered)
        add_gathered(x, m, panel, mr, whole, acc);
    else
        add_chunk(x, m, panel, mr, whole, acc);
    if (x->out)
        find_out(x, m, panel, mr, whole, c);
    store_sums(x, mr, acc, c);
}

/* How many blocks have mr rows; the remaining rows are in blocks of `small`. If mr is 6, two rows
 * that remain would be half of a block of 4: so 8 rows go into two small blocks. */
static LLVMValueRef great_blocks(const TlCpuMultiply *x, LLVMValueRef rows, int small)
{
    TlCpuGen *g = x->g;
    LLVMValueRef n = LLVMBuildUDiv(g->b, rows, tl_gen_int(&g->gen, x->mr), "");
    if (x->mr % small == 0)
        return n;
    LLVMValueRef left = LLVMBuildSub(g->b, rows, tl_cpu_times(g, n, x->mr), "");
    LLVMValueRef few =
        LLVMBuildICmp(g->b, LLVMIntEQ, left, tl_gen_int(&g->gen, 2 * small - x->mr), "");
    few =
        LLVMBuildAnd(g->b, few, LLVMBuildICmp(g->b, LLVMIntSGT, n, tl_gen_int(&g->gen, 0), ""), "");
    return LLVMBuildSub(g->b, n, LLVMBuildZExt(g->b, few, g->i64, ""), "");
}

/* Rows from .. to - 1, in blocks of mr, times the panels. */
static void multiply_rows(TlCpuMultiply *x, LLVMValueRef from, LLVMValueRef to, int mr, bool whole,
                          LLVMValueRef first, LLVMValueRef last)
{
    TlCpuLoop rows, panels;
    tl_cpu_loop_begin(x->g, &rows, from, to, mr, 0, NULL);
    tl_cpu_loop_begin(x->g, &panels, first, last, 1, 0, NULL);
    block(x, rows.i, panels.i, mr, whole);
    tl_cpu_loop_end(x->g, &panels, NULL);
    tl_cpu_loop_end(x->g, &rows, NULL);
}

/* All rows times panels first .. last - 1. */
static void multiply_panels(TlCpuMultiply *x, LLVMValueRef first, LLVMValueRef last)
{
    TlCpuGen *g = x->g;
    int small = x->n->small_mr;
    LLVMValueRef great = great_blocks(x, LLVMBuildSub(g->b, x->to, x->from, ""), small);
    LLVMValueRef turn = tl_cpu_add(g, x->from, tl_cpu_times(g, great, x->mr));
    multiply_rows(x, x->from, turn, x->mr, true, first, last);
    multiply_rows(x, turn, x->to, small, false, first, last);
}

/* The last columns: panels of one vector. */
static TlCpuMultiply narrow_of(const TlCpuMultiply *x)
{
    TlCpuMultiply y = *x;
    y.panel = x->width;
    y.panels = x->narrows;
    y.skipped = x->narrow;
    y.acc = tl_cpu_elem_at(x, x->acc, x->narrow);
    y.out = x->out ? tl_cpu_elem_at(x, x->out, x->narrow) : NULL;
    y.nv = 1;
    y.halves = false;
    y.mr = x->n->narrow_mr;
    y.fetches = x->n->narrow_fetches;
    return y;
}

void tl_cpu_multiply(TlCpuMultiply *x)
{
    TlCpuGen *g = x->g;
    int64_t several = x->n->group;
    LLVMValueRef zero = tl_gen_int(&g->gen, 0), most = tl_gen_int(&g->gen, several);
    if (x->narrow) {
        TlCpuMultiply y = narrow_of(x);
        LLVMValueRef to = tl_gen_pick(&g->gen, LLVMIntSGT, y.panels, zero, x->to, x->from);
        multiply_rows(&y, x->from, to, y.mr, false, zero, y.panels);
    }
    if (several * x->panel >= x->acc_row) {
        multiply_panels(x, zero, x->panels);
        return;
    }
    TlCpuLoop groups;
    tl_cpu_loop_begin(g, &groups, zero, x->panels, several, 0, NULL);
    multiply_panels(x, groups.i, tl_cpu_smaller(g, x->panels, tl_cpu_add(g, groups.i, most)));
    tl_cpu_loop_end(g, &groups, NULL);
}

LLVMValueRef tl_cpu_whole_blocks(const TlCpuMultiply *x, int mr)
{
    TlCpuGen *g = x->g;
    if (mr < 2)
        return x->to;
    LLVMValueRef rows = LLVMBuildSub(g->b, x->to, x->from, ""), zero = tl_gen_int(&g->gen, 0);
    LLVMValueRef left = LLVMBuildURem(g->b, rows, tl_gen_int(&g->gen, mr), "");
    LLVMValueRef half = LLVMBuildICmp(g->b, LLVMIntULE, left, tl_gen_int(&g->gen, mr / 2), "");
    return LLVMBuildSub(g->b, x->to, LLVMBuildSelect(g->b, half, left, zero, ""), "");
}

/* Rows from .. to - 1, mr at a time, times a panel of B as it is. */
static void multiply_read_rows(TlCpuMultiply *x, LLVMValueRef from, LLVMValueRef to, int mr,
                               LLVMValueRef panel)
{
    TlCpuLoop rows;
    tl_cpu_loop_begin(x->g, &rows, from, to, mr, 0, NULL);
    block(x, rows.i, panel, mr, false);
    tl_cpu_loop_end(x->g, &rows, NULL);
}

/* The same of a panel up to B's ends, of which so many vectors are inside. */
static void multiply_part(const TlCpuMultiply *x, LLVMValueRef from, LLVMValueRef to, int mr,
                          LLVMValueRef panel, int whole, bool ends_half)
{
    TlCpuMultiply y = *x;
    y.whole = whole;
    y.ends_half = ends_half;
    find_lanes(&y, panel);
    multiply_read_rows(&y, from, to, mr, panel);
}

/* The same of a panel of which not all is seen: all but half a vector, or more. */
static void multiply_seen(TlCpuMultiply *x, LLVMValueRef from, LLVMValueRef to, int mr,
                          LLVMValueRef panel)
{
    TlCpuGen *g = x->g;
    int n = x->nv;
    LLVMValueRef left = LLVMBuildSub(g->b, x->columns, tl_cpu_times(g, panel, x->panel), ""),
                 most = tl_gen_int(&g->gen, x->panel - x->width / 2);
    TlCpuFork is_more = tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntSGT, left, most, ""));
    multiply_part(x, from, to, mr, panel, n - 1, false);
    tl_cpu_fork_else(g, &is_more, NULL);
    multiply_part(x, from, to, mr, panel, n / 2, true);
    tl_cpu_fork_end(g, &is_more, NULL);
}

/* All rows, mr at a time, the last ones half as many, times panels of B up to its ends. Masked
 * loads take as long as a multiplication more than others do, so what is whole is not masked. */
static void multiply_to_ends(TlCpuMultiply *x, LLVMValueRef turn, int mr, LLVMValueRef panel)
{
    TlCpuGen *g = x->g;
    LLVMValueRef end =
        tl_cpu_add(g, tl_cpu_times(g, panel, x->panel), tl_gen_int(&g->gen, x->panel));
    LLVMValueRef all = LLVMBuildICmp(g->b, LLVMIntSGE, x->columns, end, "");
    if (mr == 1) {
        LLVMValueRef rest = LLVMBuildURem(g->b, x->count, tl_gen_int(&g->gen, x->deep), "");
        x->b_deep = LLVMBuildSelect(g->b, all, LLVMBuildSub(g->b, x->count, rest, ""),
                                    tl_gen_int(&g->gen, 0), "");
        multiply_part(x, x->from, x->to, 1, panel, 0, false);
        return;
    }
    TlCpuFork is_all = tl_cpu_fork(g, all);
    multiply_part(x, x->from, turn, mr, panel, x->nv, false);
    multiply_part(x, turn, x->to, mr / 2, panel, x->nv, false);
    tl_cpu_fork_else(g, &is_all, NULL);
    if (x->width > 2)
        multiply_seen(x, x->from, x->to, mr, panel);
    else
        multiply_part(x, x->from, x->to, mr, panel, 0, false);
    tl_cpu_fork_end(g, &is_all, NULL);
}

/* All rows, mr at a time, the last ones half as many, times a panel of nv vectors of B after the
 * other, which stays in a cache meanwhile. Where rows are some, those that great blocks have come
 * first. */
static void multiply_read(const TlCpuMultiply *x, int mr, int nv, int deep)
{
    TlCpuGen *g = x->g;
    TlCpuLoop panels;
    TlCpuMultiply y = *x;
    y.nv = nv;
    y.halves = false;
    y.panel = (int64_t)nv * x->width;
    y.reads_b = true;
    y.deep = deep;
    LLVMValueRef from = x->from;
    if (x->some && mr > 1) {
        LLVMValueRef n = great_blocks(x, LLVMBuildSub(g->b, x->to, x->from, ""), mr);
        n = LLVMBuildSelect(g->b, x->some, n, tl_gen_int(&g->gen, 0), "");
        from = tl_cpu_add(g, from, tl_cpu_times(g, n, x->mr));
    }
    y.from = from;
    LLVMValueRef turn = tl_cpu_whole_blocks(&y, mr);
    if (x->b_from)
        tl_cpu_loop_begin(g, &panels, tl_gen_int(&g->gen, 0),
                          tl_cpu_parts_of(g, x->columns, y.panel), 1, 0, NULL);
    else
        tl_cpu_loop_known(g, &panels, 0, x->acc_row / y.panel, 1, 0, NULL);
    if (x->some && mr > 1)
        multiply_read_rows(&y, x->from, from, x->mr, panels.i);
    if (x->b_from)
        multiply_to_ends(&y, turn, mr, panels.i);
    else
        multiply_read_rows(&y, from, turn, mr, panels.i);
    if (mr > 1 && !x->b_from)
        multiply_read_rows(&y, turn, x->to, mr / 2, panels.i);
    tl_cpu_loop_end(g, &panels, NULL);
}

void tl_cpu_multiply_few(const TlCpuMultiply *x)
{
    TlCpuGen *g = x->g;
    const TlNestFew *f = &x->n->few_rows;
    if (!f->single) {
        multiply_read(x, f->mr, f->nv, 0);
        return;
    }
    LLVMValueRef rows = LLVMBuildSub(g->b, x->to, x->from, "");
    TlCpuFork fork =
        tl_cpu_fork(g, LLVMBuildICmp(g->b, LLVMIntEQ, rows, tl_gen_int(&g->gen, 1), ""));
    multiply_read(x, 1, f->single, f->deep);
    tl_cpu_fork_else(g, &fork, NULL);
    multiply_read(x, f->mr, f->nv, 0);
    tl_cpu_fork_end(g, &fork, NULL);
}

/* The columns that are seen: in panels; where that would be more than half of a panel too many, the
 * last ones in narrow panels. */
void tl_cpu_divide_columns(TlCpuMultiply *x)
{
    TlCpuGen *g = x->g;
    x->panels = tl_cpu_parts_of(g, x->columns, x->panel);
    if (!x->n->narrow)
        return;
    LLVMValueRef panel = tl_gen_int(&g->gen, x->panel), half = tl_gen_int(&g->gen, x->panel / 2);
    LLVMValueRef whole = LLVMBuildUDiv(g->b, x->columns, panel, "");
    x->narrow = tl_cpu_times(g, whole, x->panel);
    LLVMValueRef left = LLVMBuildSub(g->b, x->columns, x->narrow, "");
    LLVMValueRef few = LLVMBuildICmp(g->b, LLVMIntSLE, left, half, "");
    x->panels = LLVMBuildSelect(g->b, few, whole, x->panels, "");
    x->narrow = tl_cpu_times(g, x->panels, x->panel);
    x->narrows =
        LLVMBuildSelect(g->b, few, tl_cpu_parts_of(g, left, x->width), tl_gen_int(&g->gen, 0), "");
}

/* Below each panel, one row: what is to be added to sums, as A's signs are flipped. */
static void correct_panels(TlCpuMultiply *x)
{
    TlCpuGen *g = x->g;
    LLVMValueRef sum[8], zero = tl_gen_int(&g->gen, 0);
    TlCpuLoop panels, rows;
    tl_cpu_loop_begin(g, &panels, zero, x->panels, 1, 0, NULL);
    LLVMValueRef b = panel_at(x, first_panel(x), panels.i);
    for (int j = 0; j < x->nv; j++)
        sum[j] = LLVMConstNull(tl_gen_vec(x->elem, x->width));
    tl_cpu_loop_begin(g, &rows, zero, x->count, 1, (uint32_t)x->nv, sum);
    LLVMValueRef row = tl_cpu_elem_at(x, b, tl_cpu_times(g, rows.i, x->panel));
    for (int j = 0; j < x->nv; j++)
        sum[j] = tl_cpu_dot_add_ones(&g->gen, x->p->insn, x->p->part[1],
                                     vector_at(x, row, j * x->width), rows.carry[j]);
    tl_cpu_loop_end(g, &rows, sum);
    for (int j = 0; j < x->nv; j++)
        store_vector(x, tl_cpu_dot_correction(&g->gen, x->p->part[0], rows.carry[j]),
                     row_below(x, b), j * x->width);
    tl_cpu_loop_end(g, &panels, NULL);
}

void tl_cpu_correct(TlCpuMultiply *x)
{
    if (!x->p->flips || x->p->tile)
        return;
    correct_panels(x);
    if (x->narrow) {
        TlCpuMultiply y = narrow_of(x);
        correct_panels(&y);
    }
}
