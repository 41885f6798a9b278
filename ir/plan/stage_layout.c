/* The layout of a staged tile (stage_layout.h).
 *
 *  1. The frame: per axis a chunk, a power of two, and repetitions: the largest chunk that one of
 *     the layouts has, made larger while repetitions are even; for an image along the row at least
 *     16 bytes. So every layout's chunk divides it, and what they hold beyond the tile has a place.
 *     What fills such a row is in no vector.
 *  2. Two candidates. The image: rows along the axis in which memory counts up, 16-byte pieces
 *     XORed by the row, as bulk copies do on Hopper (address bits 4 to 6 ^= bits 7 to 9, as many
 *     as the row is wide). And the swizzle that layout_swizzle.c computes for the pair of put and
 *     first get, the provably least wavefronts of the two.
 *     For transposing reads also the image with pieces of 16 elements, which are their rows.
 *  3. The fewest wavefronts win, then the fewest accesses, then the image; against transposing
 *     reads only fewer wavefronts, as what a swizzle puts together is taken apart; against bytes
 *     that ldmatrix transposes only half as many, as that cannot be copied either. With
 *     TL_STAGING_IMAGE the swizzle keeps the put's vectors, so that asynchronous copies stay wide;
 *     but not those of less than 4 bytes, which none of them takes.
 *
 * Costs. An access moves a vector: registers that are neighbours in the buffer, in all threads
 * alike. A wavefront serves as many lanes as 128 bytes are enough for. With A the span of these
 * lanes' offsets, they are in 2^rank(A) units, in 2^rank(A in banks) different places of a row of
 * banks; the rest are conflicts. ldmatrix reads 8 rows of 16 bytes at a time; it fits where 4 bytes
 * of a thread are neighbours with those of lanes 0 and 1 (or, .trans, where 2-byte elements go down
 * the row with lanes 2 to 4; or 1-byte elements, and a register is 8 further on), and its rows are
 * what the other bits give. A transposing read
 * is one of 16 lanes with 8 bytes each: where lanes count the elements of 8 bytes up, and register
 * bits the rows. */
#include "ir/plan/stage_layout.h"
#include "ir/plan/convert_impl.h"
#include <string.h>

enum { ROW_BYTES = 128, WORD_BYTES = 4, VECTOR_BYTES = 16, LDMATRIX_LANES = 5 };

/* ---- the image ---- */

static void add_bits(TlInBases *in, int32_t (*images)[TL_LAYOUT_MAX_OUT], int nout, int axis,
                     int from, int to)
{
    int32_t *flat = (int32_t *)images;
    for (int b = from; b < to; b++, in->bits++)
        flat[in->bits * nout + axis] = (int32_t)1 << b;
}

TlLayout *tl_staging_image(TlArena *arena, int rank, const int *chunk_bits, int elem_bytes, int row,
                           int bytes, int piece)
{
    TL_ASSERT(rank > 0 && row >= 0 && row < rank && elem_bytes > 0 && piece >= elem_bytes,
              "rows along axis %d of %d", row, rank);
    int32_t images[TL_LAYOUT_MAX_BITS][TL_LAYOUT_MAX_OUT] = {{0}}, *flat = &images[0][0];
    TlInBases in = {TL_IN_OFFSET, 0, flat};
    int elem = tl_ceil_log2(elem_bytes), inner = tl_ceil_log2(bytes) - elem;
    TL_ASSERT(inner <= chunk_bits[row], "rows of %d bytes in a chunk of 2^%d", bytes,
              chunk_bits[row]);
    add_bits(&in, images, rank, row, 0, inner);
    for (int d = rank - 1; d >= 0; d--)
        if (d != row)
            add_bits(&in, images, rank, d, 0, chunk_bits[d]);
    add_bits(&in, images, rank, row, inner, chunk_bits[row]);
    int low = tl_ceil_log2(piece) - elem, high = tl_ceil_log2(ROW_BYTES) - elem;
    for (int i = 0; low + i < inner && high + i < in.bits; i++)
        for (int d = 0; d < rank; d++)
            flat[(high + i) * rank + d] ^= flat[(low + i) * rank + d];
    return tl_layout_make(arena, rank, chunk_bits, 1, &in);
}

const TlType *tl_staging_image_buf(TlCtx *ctx, TlArena *arena, const TlType *t, int row, int piece)
{
    enum { LEAST_SPAN = 32 }; /* bytes of a row that bulk copies swizzle */
    int bits[TL_MAX_RANK], elem = tl_dtype_bytes(t->dtype);
    TL_ASSERT(t->rank == 2 && (row == 0 || row == 1), "rows along axis %d of %d", row, t->rank);
    for (int d = 0; d < t->rank; d++)
        bits[d] = __builtin_ctz((unsigned)t->shape[d]);
    int span = elem << bits[row] < ROW_BYTES ? elem << bits[row] : ROW_BYTES;
    if (span < LEAST_SPAN || (piece == TL_STAGING_WIDE_PIECE && span < ROW_BYTES))
        return NULL;
    TlLayout l = *tl_staging_image(arena, t->rank, bits, elem, row, span, piece);
    for (int d = 0; d < t->rank; d++)
        l.reps[d] = t->shape[d] >> bits[d];
    return tl_type_buf(ctx, t->dtype, t->rank, t->shape, tl_layout_intern(ctx, &l), 1);
}

bool tl_staging_is_image(TlArena *arena, const TlType *buf, int row, int bytes, int piece)
{
    const TlLayout *l = buf->layout;
    int bits[TL_LAYOUT_MAX_OUT], elem = tl_dtype_bytes(buf->dtype);
    for (int d = 0; d < l->nout; d++)
        bits[d] = l->out_bits[d];
    if (elem << bits[row] < bytes)
        return false;
    TlLayout want = *tl_staging_image(arena, l->nout, bits, elem, row, bytes, piece);
    memcpy(want.reps, l->reps, sizeof want.reps);
    return tl_layout_equal(&want, l);
}

/* ---- the frame ---- */

typedef struct Frame {
    int rank, elem_bytes, bits[TL_LAYOUT_MAX_OUT], shift[TL_LAYOUT_MAX_OUT], all_bits;
    int32_t shape[TL_LAYOUT_MAX_OUT], reps[TL_LAYOUT_MAX_OUT];
} Frame;

static int elem_bytes_of(const TlType *t)
{
    return t->ptr ? 8 : tl_dtype_bytes(t->dtype);
}

static void settle_frame(Frame *f)
{
    f->all_bits = 0;
    for (int d = f->rank - 1; d >= 0; d--) {
        f->shape[d] = (int32_t)1 << f->bits[d];
        f->shift[d] = f->all_bits;
        f->all_bits += f->bits[d];
    }
}

/* least: bytes of a row. */
static Frame frame_of(const TlStagingUse *use, int least)
{
    Frame f = {.rank = use->type->rank, .elem_bytes = elem_bytes_of(use->type)};
    for (int d = 0; d < f.rank; d++) {
        f.bits[d] = use->put->out_bits[d];
        for (int i = 0; i < use->ngets; i++)
            if (use->gets[i]->out_bits[d] > f.bits[d])
                f.bits[d] = use->gets[i]->out_bits[d];
        int row_bits = tl_ceil_log2(least) - tl_ceil_log2(f.elem_bytes);
        if (d == use->row && f.bits[d] < row_bits)
            f.bits[d] = row_bits;
        f.reps[d] = (use->type->shape[d] - 1) / (1 << f.bits[d]) + 1;
        for (; f.reps[d] % 2 == 0; f.reps[d] /= 2)
            f.bits[d]++;
    }
    settle_frame(&f);
    return f;
}

/* The first chunk of a tile's layout, as large as the frame's. */
static const TlLayout *in_frame(TlArena *arena, const Frame *f, const TlLayout *l)
{
    TlLayout *chunk = TL_NEW(arena, TlLayout);
    static const int order[] = {0, 1, 2, 3, 4};
    *chunk = *l;
    for (int d = 0; d < f->rank; d++)
        chunk->reps[d] = 1;
    return tl_layout_cover(arena, chunk, f->shape, order);
}

/* ---- costs ---- */

/* A layout's bits as offsets in the buffer, in elements. */
typedef struct Images {
    uint64_t reg[TL_SIDE_MAX_REGS], lane[TL_MAX_LANE_BITS], warp[TL_MAX_WARP_BITS];
    int nregs, nlanes, nwarps;
} Images;

static uint64_t element_of(const Frame *f, const int32_t *x)
{
    uint64_t e = 0;
    for (int d = 0; d < f->rank; d++)
        e |= (uint64_t)(uint32_t)x[d] << f->shift[d];
    return e;
}

static Frame frame_of_buffer(const TlLayout *shared, int elem_bytes)
{
    Frame f = {.rank = shared->nout, .elem_bytes = elem_bytes};
    for (int d = 0; d < f.rank; d++) {
        f.bits[d] = shared->out_bits[d];
        f.reps[d] = shared->reps[d];
    }
    settle_frame(&f);
    return f;
}

static int offsets_of(const Frame *f, const TlBasis *o, const TlLayout *l, TlInDim in,
                      uint64_t *out)
{
    int i = tl_layout_in_index(l, in), n = tl_layout_in_bits(l, in);
    for (int b = 0; b < n; b++)
        out[b] = tl_basis_coordinates(o, element_of(f, l->basis[i][b]));
    return n;
}

/* Does the register bit lie beyond the layout's own tile? It only fills the frame then. */
static bool is_filling(const TlLayout *l, const int32_t *image)
{
    for (int d = 0; d < l->nout; d++)
        if (image[d] >= tl_layout_extent(l, d))
            return true;
    return false;
}

static int registers_of(const Frame *f, const TlBasis *o, const TlLayout *l, const TlLayout *chunk,
                        uint64_t *out)
{
    int i = tl_layout_in_index(chunk, TL_IN_REG), bits = tl_layout_in_bits(chunk, TL_IN_REG), n = 0;
    for (int b = 0; b < bits; b++)
        if (!is_filling(l, chunk->basis[i][b]))
            out[n++] = tl_basis_coordinates(o, element_of(f, chunk->basis[i][b]));
    return n;
}

static void make_images(TlArena *arena, const Frame *f, const TlLayout *l, const TlLayout *shared,
                        Images *out)
{
    TlBasis *o = TL_NEW(arena, TlBasis);
    int offset = tl_layout_in_index(shared, TL_IN_OFFSET);
    for (int b = 0; b < shared->in_bits[offset]; b++)
        tl_basis_add(o, element_of(f, shared->basis[offset][b]));
    TL_ASSERT(o->n == f->all_bits, "a buffer with 2^%d places for 2^%d elements", o->n,
              f->all_bits);
    const TlLayout *chunk = in_frame(arena, f, l);
    out->nregs = registers_of(f, o, l, chunk, out->reg);
    out->nlanes = offsets_of(f, o, chunk, TL_IN_LANE, out->lane);
    out->nwarps = offsets_of(f, o, chunk, TL_IN_WARP, out->warp);
}

static int vector_bits(const Images *x, int elem_bytes)
{
    TlSpan regs = {0};
    uint64_t disturbed = 0;
    int n = 0;
    for (int i = 0; i < x->nregs; i++)
        tl_span_add(&regs, x->reg[i], 0);
    for (int i = 0; i < x->nlanes; i++)
        disturbed |= x->lane[i];
    for (int i = 0; i < x->nwarps; i++)
        disturbed |= x->warp[i];
    while (elem_bytes << n < VECTOR_BYTES && !(disturbed >> n & 1) && tl_span_has(&regs, 1ull << n))
        n++;
    return n;
}

int tl_staging_vector_bits(TlArena *arena, int elem_bytes, const TlLayout *l,
                           const TlLayout *shared)
{
    TL_ASSERT(l->nout == shared->nout,
              "a tile of rank %d in a buffer of rank %d", (int)l->nout, (int)shared->nout);
    Images x;
    Frame f = frame_of_buffer(shared, elem_bytes);
    make_images(arena, &f, l, shared, &x);
    return vector_bits(&x, elem_bytes);
}

/* Lanes that only hold what registers and lower lanes hold. */
static uint32_t copied_lanes(const Images *x)
{
    TlSpan span = {0};
    uint32_t skip = 0;
    for (int i = 0; i < x->nregs; i++)
        tl_span_add(&span, x->reg[i], 0);
    for (int i = 0; i < x->nlanes; i++)
        if (!tl_span_add(&span, x->lane[i], 0))
            skip |= 1u << i;
    return skip;
}

/* Of one access, log2: `units` different vectors in a wavefront's lanes, in `banks` different
 * places. */
static TlStagingCost plain_cost(const Images *x, int elem_bytes, int64_t registers, bool writes)
{
    int elem = tl_ceil_log2(elem_bytes), vec = vector_bits(x, elem_bytes), word = 2 - elem,
        groups = 0;
    int row = tl_ceil_log2(ROW_BYTES) - elem, unit = vec > word ? vec : word, lanes = row - unit;
    uint64_t bank_mask = (1ull << row) - (1ull << unit);
    uint32_t skip = writes ? copied_lanes(x) : 0;
    TlSpan units = {0}, banks = {0};
    for (int i = 0; i < x->nlanes; i++) {
        if (skip >> i & 1)
            continue;
        if (i >= lanes) {
            groups++;
            continue;
        }
        tl_span_add(&units, x->lane[i] >> unit, 0);
        tl_span_add(&banks, x->lane[i] & bank_mask, 0);
    }
    TlStagingCost c = {.accesses = (uint32_t)(registers >> vec ? registers >> vec : 1)};
    c.wavefronts = c.accesses << (units.rank - banks.rank + groups);
    c.conflicts = c.wavefronts - (c.accesses << groups);
    return c;
}

/* The cost by ldmatrix: `rows` gives the eight rows of a matrix. */
static TlStagingCost matrix_cost(const uint64_t *rows, int elem_bytes, int64_t registers)
{
    int elem = tl_ceil_log2(elem_bytes), unit = 4 - elem;
    uint64_t bank_mask = (1ull << (7 - elem)) - (1ull << unit);
    TlSpan banks = {0};
    for (int i = 0; i < 3; i++)
        tl_span_add(&banks, rows[i] & bank_mask, 0);
    uint32_t matrices = (uint32_t)(registers * elem_bytes / WORD_BYTES);
    TlStagingCost c = {.accesses = (matrices + 3) / 4, .wavefronts = matrices << (3 - banks.rank)};
    c.conflicts = c.wavefronts - matrices;
    return c;
}

static bool is_row(uint64_t offset, int elem_bytes)
{
    return (offset * (uint64_t)elem_bytes) % VECTOR_BYTES == 0;
}

/* Are the vectors the offsets 1 << from, 1 << (from + 1), ...? */
static bool counts_up(const uint64_t *v, int n, int from)
{
    for (int i = 0; i < n; i++)
        if (v[i] != 1ull << (from + i))
            return false;
    return true;
}

static bool ldmatrix_rows(const Images *x, int elem_bytes, uint64_t *rows)
{
    int word = 2 - tl_ceil_log2(elem_bytes);
    if (word < 0 || x->nlanes != LDMATRIX_LANES || vector_bits(x, elem_bytes) < word ||
        !counts_up(x->lane, 2, word))
        return false;
    memcpy(rows, x->lane + 2, 3 * sizeof *rows);
    return is_row(rows[0] | rows[1] | rows[2], elem_bytes);
}

static bool transposing_rows(const Images *x, int elem_bytes, uint64_t *rows)
{
    if (elem_bytes != 2 || x->nlanes != LDMATRIX_LANES || x->nregs < 1 ||
        !counts_up(x->lane + 2, 3, 0))
        return false;
    rows[0] = x->reg[0], rows[1] = x->lane[0], rows[2] = x->lane[1];
    return is_row(rows[0] | rows[1] | rows[2], elem_bytes);
}

/* Of 16 rows the first eight. */
static bool transposing_bytes(const Images *x, int elem_bytes, uint64_t *rows)
{
    enum { HALF = 8 }; /* bytes of a row, from one register to the other */
    int n = 0, halves = 0;
    if (elem_bytes != 1 || x->nlanes != LDMATRIX_LANES || !counts_up(x->lane + 2, 3, 0))
        return false;
    for (int i = 0; i < x->nregs; i++)
        if (x->reg[i] == HALF)
            halves++;
        else if (n < 2)
            rows[n++] = x->reg[i];
    rows[2] = x->lane[0];
    return halves == 1 && n == 2 && is_row(rows[0] | rows[1] | rows[2] | x->lane[1], elem_bytes);
}

/* By transposing reads: 16 lanes take 8 bytes each, of rows of 16 elements. False: they do not
 * fit. */
static bool columns_cost(const Images *x, int elem_bytes, int64_t registers, TlStagingCost *out)
{
    enum { LANES = 4, BYTES = 8 }; /* log2; of a piece */
    int elem = tl_ceil_log2(elem_bytes), bits = tl_ceil_log2(BYTES) - elem;
    uint64_t piece = (1ull << bits) - 1, others = 0;
    TlSpan banks = {0};
    if (elem > 1 || x->nlanes < LANES || x->nregs < bits || !counts_up(x->lane, bits, 0))
        return false;
    for (int i = bits; i < x->nlanes; i++)
        others |= x->lane[i];
    for (int i = 0; i < x->nwarps; i++)
        others |= x->warp[i];
    for (int i = 0; i < x->nregs; i++)
        others |= x->reg[i];
    if (others & piece)
        return false;
    uint64_t bank_mask = (1ull << (7 - elem)) - 1 - piece;
    for (int i = bits; i < LANES; i++)
        tl_span_add(&banks, x->lane[i] & bank_mask, 0);
    for (int i = 0; i < bits; i++)
        tl_span_add(&banks, x->reg[i] & bank_mask, 0);
    out->accesses = (uint32_t)(registers >> bits);
    uint32_t least = out->accesses << (x->nlanes - LANES);
    out->wavefronts = least << (LANES - banks.rank);
    out->conflicts = out->wavefronts - least;
    return true;
}

static TlStagingCost cost_of(const Images *x, int elem_bytes, int64_t registers, bool writes,
                           uint32_t flags)
{
    uint64_t rows[3];
    if (!writes && flags & TL_STAGING_LDMATRIX &&
        (ldmatrix_rows(x, elem_bytes, rows) || transposing_rows(x, elem_bytes, rows)))
        return matrix_cost(rows, elem_bytes, registers);
    if (!writes && flags & TL_STAGING_LDMATRIX_8 && transposing_bytes(x, elem_bytes, rows))
        return matrix_cost(rows, elem_bytes, registers);
    TlStagingCost plain = plain_cost(x, elem_bytes, registers, writes), columns;
    bool better = !writes && flags & TL_STAGING_COLUMNS &&
                  columns_cost(x, elem_bytes, registers, &columns) &&
                  columns.accesses < plain.accesses;
    return better ? columns : plain;
}

TlStagingCost tl_staging_cost(TlArena *arena, int elem_bytes, const TlLayout *l,
                              const TlLayout *shared, bool writes, uint32_t flags)
{
    TL_ASSERT(l->nout == shared->nout && elem_bytes > 0,
              "a tile of rank %d in a buffer of rank %d", (int)l->nout, (int)shared->nout);
    Images x;
    Frame f = frame_of_buffer(shared, elem_bytes);
    make_images(arena, &f, l, shared, &x);
    return cost_of(&x, elem_bytes, tl_layout_registers(l), writes, flags);
}

/* ---- the choice ---- */

TlStagingCost tl_staging_total(TlArena *arena, const TlStagingUse *use, const TlLayout *shared)
{
    int bytes = elem_bytes_of(use->type);
    TlStagingCost sum = tl_staging_cost(arena, bytes, use->put, shared, true, use->flags);
    for (int i = 0; i < use->ngets; i++) {
        TlStagingCost c = tl_staging_cost(arena, bytes, use->gets[i], shared, false, use->flags);
        sum.accesses += c.accesses;
        sum.wavefronts += c.wavefronts;
        sum.conflicts += c.conflicts;
    }
    return sum;
}

static bool is_better(TlStagingCost a, TlStagingCost b)
{
    return a.wavefronts != b.wavefronts ? a.wavefronts < b.wavefronts : a.accesses < b.accesses;
}

static TlLayout *image_in(TlArena *arena, const Frame *f, int row)
{
    int bytes = f->elem_bytes << f->bits[row];
    return tl_staging_image(arena, f->rank, f->bits, f->elem_bytes, row,
                            bytes < ROW_BYTES ? bytes : ROW_BYTES, TL_STAGING_PIECE);
}

/* Rows of 16 elements, as transposing reads take them, in different banks. */
static TlLayout *columns_in(TlArena *arena, const Frame *f, int row)
{
    enum { COLUMNS = 16 };
    int bytes = f->elem_bytes << f->bits[row];
    return tl_staging_image(arena, f->rank, f->bits, f->elem_bytes, row,
                            bytes < ROW_BYTES ? bytes : ROW_BYTES, COLUMNS * f->elem_bytes);
}

static TlLayout *swizzle_in(TlArena *arena, const Frame *f, const TlStagingUse *use)
{
    const TlLayout *put = in_frame(arena, f, use->put), *get = in_frame(arena, f, use->gets[0]);
    int vec = -1;
    if (use->flags & TL_STAGING_IMAGE)
        vec = tl_staging_vector_bits(arena, f->elem_bytes, put, image_in(arena, f, use->row));
    if (vec >= 0 && f->elem_bytes << vec < WORD_BYTES)
        vec = -1;
    return tl_swizzle_layout(arena, f->elem_bytes, f->rank, f->shape, put, get, vec);
}

/* Does ldmatrix give all gets bytes, transposed? */
static bool gives_words(TlArena *arena, const Frame *f, const TlStagingUse *use,
                        const TlLayout *image)
{
    uint64_t rows[3];
    bool all = use->ngets > 0;
    for (int i = 0; i < use->ngets && all; i++) {
        Images x;
        make_images(arena, f, use->gets[i], image, &x);
        all = transposing_bytes(&x, f->elem_bytes, rows);
    }
    return all;
}

static const TlLayout *finish_layout(TlCtx *ctx, const Frame *f, const TlLayout *chunk)
{
    TlLayout l = *chunk;
    memcpy(l.reps, f->reps, sizeof *l.reps * (size_t)f->rank);
    return tl_layout_intern(ctx, &l);
}

const TlLayout *tl_staging_layout(TlCtx *ctx, TlArena *arena, const TlStagingUse *use)
{
    TL_ASSERT(use->ngets >= 0 && use->row >= 0, "rows along axis %d", use->row);
    Frame f = frame_of(use, VECTOR_BYTES), dense = frame_of(use, 1);
    TlLayout *image = image_in(arena, &f, use->row), *best = image;
    TlStagingCost cost = tl_staging_total(arena, use, image);
    if (cost.conflicts == 0 && use->flags & TL_STAGING_IMAGE)
        return finish_layout(ctx, &f, image);
    if (use->flags & TL_STAGING_COLUMNS) {
        TlLayout *columns = columns_in(arena, &f, use->row);
        TlStagingCost other = tl_staging_total(arena, use, columns);
        if (is_better(other, cost)) {
            best = columns;
            cost = other;
        }
    }
    TlLayout *swizzle = swizzle_in(arena, &dense, use);
    TlStagingCost other = tl_staging_total(arena, use, swizzle);
    bool words = use->flags & TL_STAGING_LDMATRIX_8 && gives_words(arena, &f, use, image);
    bool better = words           ? other.wavefronts < cost.wavefronts / 2
                  : best == image ? is_better(other, cost)
                                  : other.wavefronts < cost.wavefronts;
    if (better)
        return finish_layout(ctx, &dense, swizzle);
    return finish_layout(ctx, &f, best);
}
