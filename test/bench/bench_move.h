/* bench_move's works: the peers, each over n elements of x. */
#ifndef TL_BENCH_MOVE_H
#define TL_BENCH_MOVE_H
#include <stdint.h>

/* WORK(type, name, of x, of y, shape of x, shape of y): y has n * y / x elements, where x has n.
 * Shapes: 0 one axis; k: [n / k, k]; -k: [k, n / k]. */
#define BENCH_MOVES(WORK)                                                                          \
    WORK(float, copy, 1, 1, 0, 0)                                                                  \
    WORK(float, shift1, 1, 1, 0, 0)                                                                \
    WORK(uint8_t, shift1_u8, 1, 1, 0, 0)                                                           \
    WORK(float, shift16, 1, 1, 0, 0)                                                               \
    WORK(float, shift_row, 1, 1, 16, 16)                                                           \
    WORK(float, roll1, 1, 1, 0, 0)                                                                 \
    WORK(float, tree, 1, 1, 0, 0)                                                                  \
    WORK(float, flip_f32, 1, 1, 0, 0)                                                              \
    WORK(uint8_t, flip_u8, 1, 1, 0, 0)                                                             \
    WORK(float, split_f32, 2, 1, 0, 0)                                                             \
    WORK(float, interleave_f32, 1, 1, -2, 0)                                                       \
    WORK(float, step2_f32, 2, 1, 0, 0)                                                             \
    WORK(uint8_t, step2_u8, 2, 1, 0, 0)                                                            \
    WORK(float, step3_f32, 3, 1, 0, 0)                                                             \
    WORK(float, extract_f32, 1, 1, 0, 0)                                                           \
    WORK(float, cat_f32, 1, 1, 0, 0)                                                               \
    WORK(float, repeat_f32, 1, 2, 0, 0)                                                            \
    WORK(uint8_t, two_u8, 2, 1, 2, 0)                                                              \
    WORK(uint8_t, rgb_u8, 3, 1, 3, 0)                                                              \
    WORK(uint8_t, rgba_u8, 4, 1, 4, 0)                                                             \
    WORK(float, rgb_f32, 3, 1, 3, 0)                                                               \
    WORK(uint8_t, store_rgb_u8, 1, 1, -3, 3)                                                       \
    WORK(int32_t, iota_i32, 1, 1, 0, 0)                                                            \
    WORK(float, indices, 1, 1, 0, 0)                                                               \
    WORK(float, clamped, 1, 1, 0, 0)                                                               \
    WORK(float, blocked, 1, 1, 0, 0)                                                               \
    WORK(uint8_t, saturating_u8, 1, 1, 0, 0)                                                       \
    WORK(uint8_t, table_u8, 1, 1, 0, 0)                                                            \
    WORK(uint8_t, table_f32, 1, 1, 0, 0)

#define BENCH_MOVE_PEER(type, name, ...) void plain_##name(const void *x, void *y, int n);
BENCH_MOVES(BENCH_MOVE_PEER)
#endif
