/* heads.h: what tile_attention and tile_attention_backward share: their sizes, options and arrays
 * [batch, heads, rows, elements]. */
#ifndef TL_LIBRARY_HEADS_H
#define TL_LIBRARY_HEADS_H
#include "stdlib/library/library.h"

/* The sizes of a call, and its options with what stands for 0 filled in: scale, value_size. */
typedef struct TlLibAttention {
    const char *function;
    tile_dtype type;
    int64_t B, H, HK, M, N, D;
    tile_attention_options options;
} TlLibAttention;

/* Takes the options into *a and checks all that is no array. */
tile_status tl_lib_take_attention(const tile_kernels *k, TlLibAttention *a,
                                  const tile_attention_options *options);

/* An array before its address: `strides` are those of the options, all 0 for a dense one. */
typedef struct TlLibHeadsRule {
    const char *name, *strides_name;
    int64_t heads, rows, elements;
    const int64_t *strides;
} TlLibHeadsRule;

TlLibHeadsRule tl_lib_queries(const TlLibAttention *a); /* Q */
TlLibHeadsRule tl_lib_keys(const TlLibAttention *a);    /* K */
TlLibHeadsRule tl_lib_values(const TlLibAttention *a);  /* V */
TlLibHeadsRule tl_lib_outputs(const TlLibAttention *a); /* O */
/* The gradient of an array: its strides are those of the array, or the option's. */
TlLibHeadsRule tl_lib_gradient(TlLibHeadsRule of, const char *name, const char *strides_name,
                               const int64_t *strides);
TlLibArray tl_lib_heads(const TlLibAttention *a, const TlLibHeadsRule *rule, const void *address);
/* The mask [B, H, M, N], or one of no elements. */
TlLibArray tl_lib_mask(const TlLibAttention *a);
/* No row of an output is another one, too. */
tile_status tl_lib_check_rows_apart(const TlLibAttention *a, const TlLibArray *output);

/* Numbers of f32 [B, H, M], or none if there is no address. */
tile_arg tl_lib_numbers_of_rows(const TlLibAttention *a, const float *address);
/* Of the kernels' arguments `scores s`. Returns how many. */
enum { TL_LIB_SCORES = 8 };
void tl_lib_put_scores(const TlLibAttention *a, tile_arg *args);
/* The form of kernels.def: by causal, window and mask. With dropout there are kernels of one form:
 * causal, which queries behind all keys are not, in a window of all, with a mask of no elements. */
int tl_lib_attention_form(const TlLibAttention *a);
bool tl_lib_has_dropout(const TlLibAttention *a);
/* The greater of the elements of a key and of a value. */
int64_t tl_lib_head_size(const TlLibAttention *a);
#endif
