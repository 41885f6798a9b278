/* Scales of products into tensor memory (tensor_scales.h). */
#include "ir/plan/tensor_scales.h"
#include "ir/plan/staged.h"

enum { ROW_BITS = 5, GROUP_BITS = 2, WORD_BITS = 2, GROUP_BYTES = 128 };

/* Up to the next multiple of `piece`. */
static int32_t whole(int32_t n, int32_t piece)
{
    return (n + piece - 1) / piece * piece;
}

/* The bits of one axis that are counted from `from` to `to`. */
static void add_bits(TlInBases *in, int32_t (*images)[2], int axis, int from, int to)
{
    for (int b = from; b < to; b++, in->bits++)
        images[in->bits][axis] = (int32_t)1 << b;
}

/* Of a chunk, powers of two of rows and factors: pieces one behind the other. */
static TlLayout *chunk(TlArena *arena, const int *bits)
{
    int32_t images[TL_LAYOUT_MAX_BITS][2] = {{0}};
    TlInBases in = {TL_IN_OFFSET, 0, &images[0][0]};
    add_bits(&in, images, 1, 0, WORD_BITS);
    add_bits(&in, images, 0, ROW_BITS, ROW_BITS + GROUP_BITS);
    add_bits(&in, images, 0, 0, ROW_BITS);
    add_bits(&in, images, 1, WORD_BITS, bits[1]);
    add_bits(&in, images, 0, ROW_BITS + GROUP_BITS, bits[0]);
    return tl_layout_make(arena, 2, bits, 1, &in);
}

const TlType *tl_tensor_scales_buf(TlCtx *ctx, TlArena *arena, const TlType *t)
{
    int bits[2];
    TL_ASSERT(t->rank == 2 && tl_scale_each(t->dtype), "scales of %s", tl_dtype_name(t->dtype));
    int32_t shape[2] = {whole(t->shape[0], TL_SCALES_ROWS), whole(t->shape[1], TL_SCALES_WORD)};
    for (int d = 0; d < 2; d++)
        bits[d] = __builtin_ctz((unsigned)shape[d]);
    TlLayout l = *chunk(arena, bits);
    for (int d = 0; d < 2; d++)
        l.reps[d] = shape[d] >> bits[d];
    return tl_type_buf(ctx, t->dtype, 2, t->shape, tl_layout_intern(ctx, &l), 1);
}

bool tl_tensor_is_scales(TlArena *arena, const TlType *buf)
{
    const TlLayout *l = buf->layout;
    int bits[2] = {l->out_bits[0], l->out_bits[1]};
    if (l->nout != 2 || bits[0] < ROW_BITS + GROUP_BITS || bits[1] < WORD_BITS ||
        tl_dtype_bytes(buf->dtype) != 1)
        return false;
    TlLayout want = *chunk(arena, bits);
    for (int d = 0; d < 2; d++)
        want.reps[d] = l->reps[d];
    return tl_layout_equal(&want, l);
}

int32_t tl_tensor_scales_columns(const TlType *scales)
{
    return tl_tensor_scales_column(scales, 0, whole(scales->shape[1], TL_SCALES_WORD));
}

int32_t tl_tensor_scales_column(const TlType *scales, int32_t row, int32_t factor)
{
    int32_t rows = whole(scales->shape[0], TL_SCALES_ROWS);
    return (factor / TL_SCALES_WORD * rows + row) / TL_SCALES_COLUMN_ROWS;
}

/* Without a swizzle: 8 rows of 16 bytes, then the next 8. */
uint64_t tl_tensor_scales_descriptor(void)
{
    return UINT64_C(1) << 46 | (uint64_t)(GROUP_BYTES >> 4) << 32 | UINT64_C(1) << 16;
}

int32_t tl_tensor_dot_scales(const TlAsyncDot *dot)
{
    int32_t columns = 0;
    for (int i = TL_ASYNC_SCALES; i < TL_ASYNC_SIDES; i++)
        if (dot->side[i].buf)
            columns += tl_tensor_scales_columns(dot->side[i].buf->type);
    return columns;
}
