/* tile_attention against f64: types, sizes of heads, more heads of queries than of keys, causal,
 * windows, layouts, what is optional, and every argument that is wrong.
 *
 *     attention_test DEVICE       DEVICE is one of host memory */
#include "test/kernels/library_test.h"

typedef struct Case {
    tile_dtype type;
    int64_t B, H, HK, M, N, D, DV;
    bool causal;
    int64_t window;
    double scale;
    bool heads_first; /* [B, H, rows, D], as PyTorch has it */
    bool lse;
} Case;

/* The place of an element of [B, heads, rows, D] in an array of this layout. */
static int64_t at(const Case *c, int64_t heads, int64_t rows, int64_t D, int64_t b, int64_t h,
                  int64_t row, int64_t d)
{
    return c->heads_first ? ((b * heads + h) * rows + row) * D + d
                          : ((b * rows + row) * heads + h) * D + d;
}

typedef struct Arrays {
    void *q, *k, *v, *o;
    float *lse;
} Arrays;

static bool is_seen(const Case *c, int64_t m, int64_t n)
{
    int64_t place = m + c->N - c->M;
    return !c->causal || (n <= place && (!c->window || n > place - c->window));
}

/* The row of a query: its weights, normalised; ln of their sum. */
static double weigh(const Case *c, const Arrays *x, int64_t b, int64_t h, int64_t m, double *p)
{
    double scale = c->scale != 0 ? c->scale : 1 / sqrt((double)c->D), most = -INFINITY, sum = 0;
    for (int64_t n = 0; n < c->N; n++) {
        double s = 0;
        for (int64_t d = 0; d < c->D; d++)
            s += get(x->q, c->type, at(c, c->H, c->M, c->D, b, h, m, d)) *
                 get(x->k, c->type, at(c, c->HK, c->N, c->D, b, h / (c->H / c->HK), n, d));
        p[n] = is_seen(c, m, n) ? s * scale : -INFINITY;
        most = fmax(most, p[n]);
    }
    for (int64_t n = 0; n < c->N; n++)
        sum += p[n] = most == -INFINITY ? 0 : exp(p[n] - most);
    for (int64_t n = 0; n < c->N; n++)
        p[n] = sum > 0 ? p[n] / sum : 0;
    return most + log(sum);
}

static int64_t count_wrong(const Case *c, const Arrays *x)
{
    double *p = malloc((size_t)c->N * sizeof *p + 8), slack = 8 * rounding(c->type) + 1e-5;
    int64_t wrong = 0;
    for (int64_t i = 0; i < c->B * c->H * c->M; i++) {
        int64_t b = i / c->M / c->H, h = i / c->M % c->H, m = i % c->M;
        double lse = weigh(c, x, b, h, m, p);
        if (c->lse)
            wrong += !(x->lse[i] == lse || fabs(x->lse[i] - lse) <= 1e-4 * (fabs(lse) + 1));
        for (int64_t d = 0; d < c->DV; d++) {
            double want = 0;
            for (int64_t n = 0; n < c->N; n++)
                want += p[n] * get(x->v, c->type,
                                   at(c, c->HK, c->N, c->DV, b, h / (c->H / c->HK), n, d));
            double got = get(x->o, c->type, at(c, c->H, c->M, c->DV, b, h, m, d));
            wrong += !(fabs(got - want) <= slack * 2);
        }
    }
    free(p);
    return wrong;
}

static void set_strides(int64_t *strides, int64_t heads, int64_t rows, int64_t D)
{
    strides[0] = heads * rows * D;
    strides[1] = rows * D;
    strides[2] = D;
}

static void try_case(const Case *c)
{
    Arrays x = {numbers(c->type, c->B * c->H * c->M * c->D),
                numbers(c->type, c->B * c->HK * c->N * c->D),
                numbers(c->type, c->B * c->HK * c->N * c->DV),
                numbers(c->type, c->B * c->H * c->M * c->DV),
                numbers(TILE_F32, c->B * c->H * c->M)};
    tile_attention_options o = TILE_ATTENTION_OPTIONS_INIT;
    o.causal = c->causal;
    o.window = c->window;
    o.scale = c->scale;
    o.value_size = c->DV == c->D ? 0 : c->DV;
    o.lse = c->lse ? x.lse : NULL;
    if (c->heads_first) {
        set_strides(o.q_strides, c->H, c->M, c->D);
        set_strides(o.k_strides, c->HK, c->N, c->D);
        set_strides(o.v_strides, c->HK, c->N, c->DV);
        set_strides(o.o_strides, c->H, c->M, c->DV);
    }
    OK(tile_attention(library, NULL, c->type, c->B, c->H, c->HK, c->M, c->N, c->D, x.q, x.k, x.v,
                      x.o, &o));
    if (!CHECK_INT(count_wrong(c, &x), 0))
        fprintf(stderr, "    %s B = %d, H = %d, HK = %d, M = %d, N = %d, D = %d, DV = %d, causal "
                "%d, window %d\n", tile_dtype_name(c->type), (int)c->B, (int)c->H, (int)c->HK,
                (int)c->M, (int)c->N, (int)c->D, (int)c->DV, c->causal, (int)c->window);
    free(x.q);
    free(x.k);
    free(x.v);
    free(x.o);
    free(x.lse);
}

static void sizes(tile_dtype type)
{
    static const int64_t list[][7] = {
        /* B, H, HK, M, N, D, DV */
        {1, 1, 1, 1, 1, 1, 1},     {2, 3, 3, 5, 7, 8, 8},      {1, 4, 2, 9, 20, 16, 5},
        {1, 2, 1, 3, 0, 4, 4},     {0, 2, 1, 3, 4, 4, 4},      {1, 2, 2, 0, 4, 4, 4},
        {1, 2, 1, 1, 100, 64, 64}, {2, 2, 2, 70, 90, 64, 64},  {1, 4, 1, 33, 65, 80, 80},
        {1, 1, 1, 10, 70, 128, 96}, {1, 2, 1, 65, 65, 96, 128}, {1, 1, 1, 5, 40, 256, 200},
    };
    for (int i = 0; i < (brief ? 6 : 12); i++) {
        const int64_t *s = list[i];
        Case c = {.type = type, .B = s[0], .H = s[1], .HK = s[2], .M = s[3], .N = s[4], .D = s[5],
                  .DV = s[6], .lse = i % 2 == 0, .heads_first = i % 3 == 1};
        try_case(&c);
        c.causal = true;
        c.scale = 0.25;
        c.lse = true;
        try_case(&c);
        c.window = 1 + i;
        c.heads_first = !c.heads_first;
        try_case(&c);
    }
}

/* Queries before the first key see none: zeros, and no sum. */
static void nothing_seen(void)
{
    float q[3] = {1, 1, 1}, k[1] = {2}, v[1] = {5}, o[3], lse[3];
    const tile_attention_options causal = {.struct_size = sizeof causal, .causal = 1, .lse = lse};
    OK(tile_attention(library, NULL, TILE_F32, 1, 1, 1, 3, 1, 1, q, k, v, o, &causal));
    CHECK(o[0] == 0 && o[1] == 0 && o[2] == 5 && lse[0] == -INFINITY && lse[2] == 2);
}

/* ---- wrong arguments ---- */

typedef struct Call {
    tile_kernels *kernels;
    int type;
    int64_t B, H, HK, M, N, D;
    const float *q, *k, *v;
    float *o;
    tile_attention_options options;
} Call;

static float cells[200];

static tile_status make_call(const Call *c)
{
    return tile_attention(c->kernels, NULL, (tile_dtype)c->type, c->B, c->H, c->HK, c->M, c->N,
                          c->D, c->q, c->k, c->v, c->o, &c->options);
}

#define WRONG_CALL(change, text)                                                                   \
    do {                                                                                           \
        Call c = {library, TILE_F32, 1, 4, 2, 2, 3, 4, cells, cells + 40, cells + 80, cells + 120, \
                  TILE_ATTENTION_OPTIONS_INIT};                                                    \
        change;                                                                                    \
        WRONG(make_call(&c), text);                                                                \
    } while (0)

static void wrong_arguments(void)
{
    WRONG_CALL(c.kernels = NULL, "kernels is NULL");
    WRONG_CALL(c.type = TILE_F64, "type is f64");
    WRONG_CALL(c.B = -1, "B is -1");
    WRONG_CALL(c.H = INT64_MAX, "H is 9223372036854775807");
    WRONG_CALL(c.M = -7, "M is -7");
    WRONG_CALL(c.N = INT64_MIN, "N is -9223372036854775808");
    WRONG_CALL(c.HK = 3, "HK is 3, but must be a divisor of H");
    WRONG_CALL(c.HK = 0, "HK is 0, but must be a divisor of H");
    WRONG_CALL(c.D = 0, "D is 0, but must be from 1 to 256");
    WRONG_CALL(c.D = 257, "D is 257");
    WRONG_CALL(c.options.value_size = -1, "options->value_size is -1");
    WRONG_CALL(c.options.window = 5, "options->window is 5, but must be 0 without options->causal");
    WRONG_CALL((c.options.causal = 1, c.options.window = -5), "options->window is -5");
    WRONG_CALL(c.options.k_strides[1] = -4, "options->k_strides has a negative stride");
    WRONG_CALL(c.options.q_strides[2] = INT64_MAX,
               "options->q_strides has a negative stride, or is");
    WRONG_CALL(c.options.o_strides[2] = 4, "options->o_strides lets rows of O overlap");
    WRONG_CALL(c.q = NULL, "Q is NULL");
    WRONG_CALL(c.v = NULL, "V is NULL");
    WRONG_CALL(c.o = NULL, "O is NULL");
    WRONG_CALL(c.o = cells + 41, "overlap");
    WRONG_CALL(c.options.struct_size = 1, "struct_size of tile_attention_options is 1");
}

static void each_type(tile_dtype type, tile_dtype result)
{
    (void)result;
    if (is_float_below_64(type))
        sizes(type);
}

static void once(void)
{
    nothing_seen();
    wrong_arguments();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
