/* bench_programs' works: the peers, each of arrays as programs.tile's kernels have them. */
#ifndef TL_BENCH_PROGRAMS_H
#define TL_BENCH_PROGRAMS_H
#include <stdint.h>

enum { H = 120, W = 640, C = 2048, D = 12 }; /* rows, columns; options; planes */
enum { NODES = 63, M = 256 };                /* of a tracer's tree; a side of a product */

/* WORK(name, tolerance, arrays): the arrays' types and extents, the result last. Below 0: so great
 * a part of the elements may differ, as the last bits of a float decide what comes out. */
#define BENCH_PROGRAMS(WORK)                                                                       \
    WORK(mandelbrot, -0.01, I32(H, W))                                                             \
    WORK(occlusion, -0.05, F32(H, W))                                                              \
    WORK(noise, 1e-4, I32(512), F32(H, W))                                                         \
    WORK(volume, -1e-3, F32(64, 64, 64), F32(H, W))                                                \
    WORK(stencil_3d, 1e-5, F32(D, H, W), F32(D, H, W))                                             \
    WORK(tracer, 1e-5, F32(NODES, 3), F32(NODES, 3), I32(NODES), F32(H, W))                        \
    WORK(tracer_alone, 1e-5, F32(NODES, 3), F32(NODES, 3), I32(NODES), F32(H, W))                  \
    WORK(binomial, 1e-4, F32(C), F32(C), F32(C))                                                   \
    WORK(black_scholes, 1e-4, F32(8 * C), F32(8 * C), F32(8 * C))                                  \
    WORK(blur, 0, U16(H + 2, W + 8), U16(H, W))                                                    \
    WORK(unsharp, 1e-4, F32(3, H, W), F32(3, H, W))                                                \
    WORK(nl_means, 1e-4, F32(H, W), F32(H, W))                                                     \
    WORK(max_filter, 0, F32(H, W), F32(H, W))                                                      \
    WORK(haar, 1e-5, F32(H, 2 * W), F32(2, H, W))                                                  \
    WORK(inverse_haar, 1e-5, F32(2, H, W), F32(H, 2 * W))                                          \
    WORK(daubechies, 1e-5, F32(H, 2 * W), F32(2, H, W))                                            \
    WORK(inverse_daubechies, 1e-5, F32(2, H, W), F32(H, 2 * W))                                    \
    WORK(pyramid_down, 1e-5, F32(2 * H, 2 * W), F32(H, W))                                         \
    WORK(pyramid_up, 1e-5, F32(H, W), F32(2 * H, 2 * W))                                           \
    WORK(camera, 0, U16(H, W), U8(1024), U8(H, W))                                                 \
    WORK(sgemm, 1e-4, F32(M, M), F32(M, M), F32(M, M))                                             \
    WORK(conv_layer, 1e-4, F32(18, 66, 32), F32(3, 3, 32, 32), F32(16, 64, 32))                    \
    WORK(depthwise, 1e-4, F32(18, 66, 32), F32(3, 3, 32), F32(16, 64, 32))

#define BENCH_PROGRAM_PEER(name, ...) void program_##name(void *const *p);
BENCH_PROGRAMS(BENCH_PROGRAM_PEER)
#endif
