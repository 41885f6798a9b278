/* What bench_move's kernels do, in plain C as one writes it. */
#include "bench_move.h"

#define PLAIN(name, from, to)                                                                      \
    static void name##_(const from *restrict x, to *restrict y, int n);                            \
    void plain_##name(const void *x, void *y, int n)                                               \
    {                                                                                              \
        name##_(x, y, n);                                                                          \
    }                                                                                              \
    static void name##_(const from *restrict x, to *restrict y, int n)
#define F32(name) PLAIN(name, float, float)
#define U8(name)  PLAIN(name, uint8_t, uint8_t)
/* In blocks, as the kernels' programs have them: the element of the block's element j. */
#define BLOCKS(B, element)                                                                         \
    for (int i = 0; i < n; i += B)                                                                 \
        for (int j = 0; j < B; j++)                                                                \
    y[i + j] = element

F32(copy)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i];
}
F32(shift1)
{
    BLOCKS(256, j ? x[i + j - 1] : 0);
}
U8(shift1_u8)
{
    BLOCKS(256, j ? x[i + j - 1] : 0);
}
F32(shift_row)
{
    BLOCKS(256, j < 16 ? 0 : x[i + j - 16]);
}
F32(indices)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i];
}
F32(blocked)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i / 16 * 16 + i % 16];
}
F32(shift16)
{
    BLOCKS(256, j < 16 ? 0 : x[i + j - 16]);
}
F32(roll1)
{
    BLOCKS(256, x[i + (j ? j - 1 : 255)]);
}
F32(tree)
{
    for (int i = 0; i < n; i += 256) {
        float v[257];
        for (int j = 0; j < 256; j++)
            v[j] = x[i + j];
        v[256] = 0;
        for (int k = 0; k < 64; k++)
            for (int j = 0; j < 256; j++)
                v[j] = 0.4f * v[j] + 0.6f * v[j + 1];
        for (int j = 0; j < 256; j++)
            y[i + j] = v[j];
    }
}
F32(flip_f32)
{
    BLOCKS(256, x[i + 255 - j]);
}
U8(flip_u8)
{
    BLOCKS(256, x[i + 255 - j]);
}
F32(split_f32)
{
    for (int i = 0; i < n / 2; i++)
        y[i] = x[2 * i] + x[2 * i + 1];
}
F32(interleave_f32)
{
    for (int i = 0; i < n / 2; i++)
        y[2 * i] = x[i], y[2 * i + 1] = x[n / 2 + i];
}
F32(step2_f32)
{
    for (int i = 0; i < n / 2; i++)
        y[i] = x[2 * i];
}
U8(step2_u8)
{
    for (int i = 0; i < n / 2; i++)
        y[i] = x[2 * i];
}
F32(step3_f32)
{
    for (int i = 0; i < n / 3; i++)
        y[i] = x[3 * i];
}
F32(extract_f32)
{
    for (int i = 0; i < n - 3; i++)
        y[i] = x[i] + x[i + 3];
    for (int i = n - 3; i < n; i++)
        y[i] = x[i];
}
F32(cat_f32)
{
    BLOCKS(256, x[i + (j < 240 ? j + 16 : j - 240)]);
}
F32(repeat_f32)
{
    for (int i = 0; i < n; i++)
        y[2 * i] = y[2 * i + 1] = x[i];
}
U8(two_u8)
{
    for (int i = 0; i < n / 2; i++)
        y[i] = (uint8_t)((x[2 * i] + x[2 * i + 1]) >> 1);
}
U8(rgb_u8)
{
    for (int i = 0; i < n / 3; i++)
        y[i] = (uint8_t)((77 * x[3 * i] + 150 * x[3 * i + 1] + 29 * x[3 * i + 2]) >> 8);
}
U8(rgba_u8)
{
    for (int i = 0; i < n / 4; i++)
        y[i] = (uint8_t)((77 * x[4 * i] + 150 * x[4 * i + 1] + 29 * x[4 * i + 2]) >> 8);
}
F32(rgb_f32)
{
    for (int i = 0; i < n / 3; i++)
        y[i] = 0.25f * x[3 * i] + 0.5f * x[3 * i + 1] + 0.125f * x[3 * i + 2];
}
U8(store_rgb_u8)
{
    for (int i = 0; i < n / 3; i++)
        for (int c = 0; c < 3; c++)
            y[3 * i + c] = x[n / 3 * c + i];
}
PLAIN(iota_i32, float, int32_t)
{
    (void)x;
    for (int i = 0; i < n; i++)
        y[i] = i;
}
F32(clamped)
{
    for (int i = 0; i < n; i++) {
        int k = i - 1 < 0 ? 0 : i - 1;
        y[i] = x[k > n - 1 ? n - 1 : k];
    }
}
U8(saturating_u8)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] > 155 ? 255 : (uint8_t)(x[i] + 100);
}
/* The table lies behind the numbers. */
U8(table_u8)
{
    for (int i = 0; i < n; i++)
        y[i] = x[n + x[i]];
}
PLAIN(table_f32, uint8_t, float)
{
    const float *t = (const float *)(x + n);
    for (int i = 0; i < n; i++)
        y[i] = t[x[i]];
}
