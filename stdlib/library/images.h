/* images.h: what the functions of windows of images share: pools, tile_conv2d and its gradients. */
#ifndef TL_LIBRARY_IMAGES_H
#define TL_LIBRARY_IMAGES_H
#include "stdlib/library/library.h"

/* Sizes of a call, and its options with what stands for 0 filled in. */
typedef struct TlLibWindows {
    const char *function;
    tile_dtype type;
    int64_t N, H, W, C, R, S, P, Q; /* windows of R x S taps, P x Q of them */
    tile_window_options options;
} TlLibWindows;

tile_status tl_lib_take_windows(TlLibWindows *w, const tile_window_options *options);
/* The same of a call, which has kernels. */
tile_status tl_lib_begin_windows(const tile_kernels *k, TlLibWindows *w,
                                 const tile_window_options *options);
/* Sizes and what follows from them: P and Q. */
tile_status tl_lib_check_windows(TlLibWindows *w);
/* Kernels count elements in 31 bits. */
tile_status tl_lib_check_images(const TlLibWindows *w, const TlLibArray *arrays, int n);
/* The numbers of conv_window, from args on. Returns how many. */
int tl_lib_put_window(tile_arg *args, const TlLibWindows *w);

/* A convolution, with its arrays as the caller has them. */
typedef struct TlLibConv {
    TlLibWindows w;
    int64_t K, CG; /* channels of an output, channels that each reads */
    TlLibArray x, f, bias, y;
} TlLibConv;

tile_status tl_lib_check_conv(TlLibConv *c);
/* What a call begins with: options, sizes, groups. */
tile_status tl_lib_begin_conv(const tile_kernels *k, TlLibConv *c,
                              const tile_window_options *options);
/* A bias that is NULL has no elements. */
void tl_lib_set_conv(TlLibConv *c, const void *X, const void *F, const void *bias, const void *Y);
bool tl_lib_is_depthwise(const TlLibConv *c);
/* Every pixel for itself; the same with channels outermost. */
bool tl_lib_is_pointwise(const TlLibConv *c);
bool tl_lib_is_of_points(const TlLibConv *c);
/* A kernel of windows.c. */
TlLibCall tl_lib_image_call(const TlLibConv *c, TlLibKernel kernel, int form, int64_t a, int64_t b,
                            int64_t d);

/* Bytes up to a multiple of a line. */
int64_t tl_lib_room(tile_dtype type, int64_t elements);
/* One of the axes has one element: there is nothing to turn. */
bool tl_lib_lies_either_way(int64_t m, int64_t n);
/* to [B, n, m] = from [B, m, n] */
tile_status tl_lib_turn(tile_kernels *k, tile_stream *stream, const TlLibConv *c, const void *from,
                        const void *to, int64_t B, int64_t m, int64_t n);
#endif
