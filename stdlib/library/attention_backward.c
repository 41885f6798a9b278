/* attention_backward.c: tile_attention_backward.
 *
 * 1. arrays and checks as of tile_attention; a gradient lies as what it is the gradient of, or as
 *    the options say.
 * 2. delta = sum(O dO) of each row, into the workspace.
 * 3. dQ, a program for some queries; dK and dV, a program for some keys, which adds up what the
 *    query heads of its head have, in order. Or, on CPUs and in f32, all three by a program for a
 *    head of keys, which computes five products where those have seven, and gives the same bits. */
#include "stdlib/library/heads.h"

#include <math.h>

typedef struct Backward {
    TlLibAttention a;
    TlLibArray q, k, v, o, grad, mask; /* grad: dO */
    TlLibArray dq, dk, dv;
    float *delta;
} Backward;

static void set_arrays(Backward *b, const void *Q, const void *K, const void *V, const void *O,
                       const void *dO, const void *dQ, const void *dK, const void *dV)
{
    const TlLibAttention *a = &b->a;
    const tile_attention_options *s = &a->options;
    const TlLibHeadsRule q = tl_lib_queries(a), k = tl_lib_keys(a), v = tl_lib_values(a),
                         o = tl_lib_outputs(a);
    const TlLibHeadsRule
        grad = tl_lib_gradient(o, "dO", "options->do_strides", s->do_strides),
        dq = tl_lib_gradient(q, "dQ", "options->dq_strides", s->dq_strides),
        dk = tl_lib_gradient(k, "dK", "options->dk_strides", s->dk_strides),
        dv = tl_lib_gradient(v, "dV", "options->dv_strides", s->dv_strides);
    b->q = tl_lib_heads(a, &q, Q);
    b->k = tl_lib_heads(a, &k, K);
    b->v = tl_lib_heads(a, &v, V);
    b->o = tl_lib_heads(a, &o, O);
    b->grad = tl_lib_heads(a, &grad, dO);
    b->mask = tl_lib_mask(a);
    b->dq = tl_lib_heads(a, &dq, dQ);
    b->dk = tl_lib_heads(a, &dk, dK);
    b->dv = tl_lib_heads(a, &dv, dV);
}

/* dQ, or dK and dV, may be missing. */
static tile_status check(const Backward *b)
{
    const TlLibAttention *a = &b->a;
    const TlLibArray inputs[] = {b->q, b->k, b->v, b->o, b->grad, b->mask},
                     outputs[] = {b->dq, b->dk, b->dv};
    tile_status status = tl_lib_check_arrays(a->function, inputs, 6);
    for (int i = 0; i < 3 && status == TILE_OK; i++) {
        if (!outputs[i].address)
            continue;
        status = tl_lib_check_arrays(a->function, &outputs[i], 1);
        if (status == TILE_OK)
            status = tl_lib_check_rows_apart(a, &outputs[i]);
    }
    bool rows = a->B && a->H && a->M;
    const char *missing = !b->dk.address != !b->dv.address ? (b->dk.address ? "dV" : "dK")
                          : rows && !a->options.lse        ? "options->lse"
                          : rows && !b->delta              ? "workspace"
                                                           : NULL;
    return status == TILE_OK && missing
               ? tl_lib_fail(TILE_BAD_ARGUMENT, "%s: %s is NULL", a->function, missing)
               : status;
}

static TlLibCall call_of(const Backward *b, TlLibKernel kernel, int form)
{
    return (TlLibCall){.function = b->a.function,
                       .images = tl_lib_attention_backward_images,
                       .kernel = kernel,
                       .type = b->a.type,
                       .form = form,
                       .causal = b->a.options.causal != 0,
                       .sizes = {tl_lib_head_size(&b->a), b->a.M, b->a.N},
                       .batch = b->a.B * b->a.H};
}

static tile_status find_delta(tile_kernels *k, tile_stream *stream, const Backward *b)
{
    TlLibCall call = call_of(b, TL_LIB_attention_delta, 0);
    const tile_arg args[] = {tl_lib_array_view(&b->o), tl_lib_array_view(&b->grad),
                             tl_lib_numbers_of_rows(&b->a, b->delta)};
    return tl_lib_launch(k, stream, &call, args, 3);
}

/* The kernel of these gradients. */
static tile_status find_gradients(tile_kernels *k, tile_stream *stream, const Backward *b,
                                  TlLibKernel kernel, const TlLibArray *const *gradients, int count)
{
    tile_arg args[11 + TL_LIB_SCORES] = {tl_lib_array_view(&b->q),
                                         tl_lib_array_view(&b->k),
                                         tl_lib_array_view(&b->v),
                                         tl_lib_array_view(&b->grad),
                                         tl_lib_array_view(&b->mask),
                                         tl_lib_numbers_of_rows(&b->a, b->a.options.lse),
                                         tl_lib_numbers_of_rows(&b->a, b->delta)};
    size_t n = 7;
    for (int i = 0; i < count; i++)
        args[n++] = tl_lib_array_view(gradients[i]);
    args[n++] = tile_arg_view(NULL, TILE_F32, 1, 0, 0, 0, 0, 0, 0, 0, 0); /* slope */
    tl_lib_put_scores(&b->a, args + n);
    TlLibCall call = call_of(b, kernel, tl_lib_attention_form(&b->a));
    return tl_lib_launch(k, stream, &call, args, n + TL_LIB_SCORES);
}

/* Do the programs of all three gradients, one for a head of keys, take less time than those of dQ,
 * and of dK and dV, which are many? */
static bool takes_one_kernel(const tile_kernels *k, const Backward *b)
{
    const TlLibAttention *a = &b->a;
    if (a->type != TILE_F32 || tl_lib_has_dropout(a) || !b->dq.address || !b->dk.address)
        return false;
    const TlLibCall call = call_of(b, TL_LIB_attention_grads, tl_lib_attention_form(a));
    double programs = (double)a->B * (double)a->HK, processors = tl_lib_processors(k);
    double turns = ceil(programs / processors);
    return tl_lib_fits(k, &call) && 5 * turns * processors <= 7 * programs;
}

static tile_status run(tile_kernels *k, tile_stream *stream, const Backward *b)
{
    const TlLibAttention *a = &b->a;
    const TlLibArray *const all[] = {&b->dq, &b->dk, &b->dv};
    tile_status status = TILE_OK;
    if (!a->B || !a->H)
        return TILE_OK;
    if (a->M)
        status = find_delta(k, stream, b);
    if (status == TILE_OK && takes_one_kernel(k, b))
        return find_gradients(k, stream, b, TL_LIB_attention_grads, all, 3);
    bool drop = tl_lib_has_dropout(a);
    if (status == TILE_OK && a->M && b->dq.address)
        status = find_gradients(k, stream, b, drop ? TL_LIB_attention_drop_dq : TL_LIB_attention_dq,
                                all, 1);
    if (status == TILE_OK && a->N && b->dk.address)
        status = find_gradients(
            k, stream, b, drop ? TL_LIB_attention_drop_dkdv : TL_LIB_attention_dkdv, all + 1, 2);
    return status;
}

size_t tile_attention_backward_workspace(int64_t B, int64_t H, int64_t M)
{
    int64_t rows;
    if (B < 1 || H < 1 || M < 1 || __builtin_mul_overflow(B, H, &rows) ||
        __builtin_mul_overflow(rows, M, &rows) || rows > INT64_MAX / 8)
        return 0;
    return (size_t)rows * sizeof(float);
}

tile_status tile_attention_backward(tile_kernels *kernels, tile_stream *stream, tile_dtype type,
                                    int64_t B, int64_t H, int64_t HK, int64_t M, int64_t N,
                                    int64_t D, const void *Q, const void *K, const void *V,
                                    const void *O, const void *dO, void *dQ, void *dK, void *dV,
                                    void *workspace, const tile_attention_options *options)
{
    Backward b = {.a = {.function = "tile_attention_backward", .type = type, .B = B, .H = H,
                        .HK = HK, .M = M, .N = N, .D = D},
                  .delta = workspace};
    tile_status status = tl_lib_take_attention(kernels, &b.a, options);
    if (status != TILE_OK)
        return status;
    set_arrays(&b, Q, K, V, O, dO, dQ, dK, dV);
    status = check(&b);
    return status == TILE_OK ? run(kernels, stream, &b) : status;
}
