/* tile_attention and tile_attention_backward against f64: types, sizes of heads, more heads of
 * queries than of keys, causal, windows, masks, dropout, layouts, what is optional, and every
 * argument that is wrong.
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
    int mask; /* 0: none; 1: [M, N]; 2: [B, H, M, N]; 3: [B, 1, 1, N] */
    double dropout;
} Case;

static const uint64_t seed = 0x123456789ABCDEF0;

/* Word w of Philox-4x32-10 of a counter. */
static uint32_t random_word(uint64_t i, int64_t w)
{
    uint32_t c[4] = {(uint32_t)i, (uint32_t)(i >> 32)}, k[2] = {(uint32_t)seed,
                                                                (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53U, b = (uint64_t)c[2] * 0xCD9E8D57U;
        uint32_t first = (uint32_t)(b >> 32) ^ c[1] ^ k[0],
                 third = (uint32_t)(a >> 32) ^ c[3] ^ k[1];
        c[0] = first;
        c[1] = (uint32_t)b;
        c[2] = third;
        c[3] = (uint32_t)a;
        k[0] += 0x9E3779B9U;
        k[1] += 0xBB67AE85U;
    }
    return c[w];
}

/* What a probability is multiplied by: 0, or 1 / (1 - dropout). */
static double thinning(const Case *c, int64_t b, int64_t h, int64_t m, int64_t n)
{
    if (c->dropout == 0)
        return 1;
    uint64_t row = (uint64_t)((b * c->H + h) * c->M + m);
    uint32_t word = random_word((row << 29) + (uint64_t)(n / 16 * 4 + n / 2 % 4),
                                n / 8 % 2 * 2 + n % 2);
    return (word >> 8) < c->dropout * 0x1p24 ? 0 : 1 / (1 - c->dropout);
}

/* The place of an element of [B, heads, rows, D] in an array of this layout. */
static int64_t at(const Case *c, int64_t heads, int64_t rows, int64_t D, int64_t b, int64_t h,
                  int64_t row, int64_t d)
{
    return c->heads_first ? ((b * heads + h) * rows + row) * D + d
                          : ((b * rows + row) * heads + h) * D + d;
}

typedef struct Arrays {
    void *q, *k, *v, *o, *mask;
    float *lse;
    void *grad, *dq, *dk, *dv; /* of backward, grad: dO */
} Arrays;

static void set_mask_strides(const Case *c, int64_t *strides)
{
    strides[0] = c->mask == 2 ? c->H * c->M * c->N : c->mask == 3 ? c->N : 0;
    strides[1] = c->mask == 2 ? c->M * c->N : 0;
    strides[2] = c->mask == 3 ? 0 : c->N;
}

static double mask_at(const Case *c, const Arrays *x, int64_t b, int64_t h, int64_t m, int64_t n)
{
    int64_t s[3];
    set_mask_strides(c, s);
    return c->mask ? get(x->mask, c->type, b * s[0] + h * s[1] + m * s[2] + n) : 0;
}

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
        p[n] = is_seen(c, m, n) ? s * scale + mask_at(c, x, b, h, m, n) : -INFINITY;
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
                want += p[n] * thinning(c, b, h, m, n) *
                        get(x->v, c->type,
                            at(c, c->HK, c->N, c->DV, b, h / (c->H / c->HK), n, d));
            double got = get(x->o, c->type, at(c, c->H, c->M, c->DV, b, h, m, d));
            wrong += !(fabs(got - want) <= slack * 2 / (1 - fmin(c->dropout, 0.9)));
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

static Arrays arrays_of(const Case *c)
{
    const int64_t queries = c->B * c->H * c->M, keys = c->B * c->HK * c->N;
    Arrays x = {.q = numbers(c->type, queries * c->D), .k = numbers(c->type, keys * c->D),
                .v = numbers(c->type, keys * c->DV), .o = numbers(c->type, queries * c->DV),
                .mask = numbers(c->type, queries * c->N), .lse = numbers(TILE_F32, queries),
                .grad = numbers(c->type, queries * c->DV), .dq = numbers(c->type, queries * c->D),
                .dk = numbers(c->type, keys * c->D), .dv = numbers(c->type, keys * c->DV)};
    for (int64_t i = 0; i < queries * c->N; i += 5)
        put(x.mask, c->type, i, -INFINITY);
    return x;
}

static void free_arrays(const Arrays *x)
{
    void *const all[] = {x->q, x->k, x->v, x->o, x->mask, x->lse, x->grad, x->dq, x->dk, x->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static tile_attention_options options_of(const Case *c, const Arrays *x)
{
    tile_attention_options o = TILE_ATTENTION_OPTIONS_INIT;
    o.causal = c->causal;
    o.window = c->window;
    o.scale = c->scale;
    o.value_size = c->DV == c->D ? 0 : c->DV;
    o.lse = c->lse ? x->lse : NULL;
    o.mask = c->mask ? x->mask : NULL;
    o.dropout = c->dropout;
    o.seed = seed;
    set_mask_strides(c, o.mask_strides);
    if (c->heads_first) {
        set_strides(o.q_strides, c->H, c->M, c->D);
        set_strides(o.k_strides, c->HK, c->N, c->D);
        set_strides(o.v_strides, c->HK, c->N, c->DV);
        set_strides(o.o_strides, c->H, c->M, c->DV);
    }
    return o;
}

static void name_case(const Case *c)
{
    fprintf(stderr, "    %s B = %d, H = %d, HK = %d, M = %d, N = %d, D = %d, DV = %d, causal %d, "
                    "window %d, mask %d, dropout %g\n",
            tile_dtype_name(c->type), (int)c->B, (int)c->H, (int)c->HK, (int)c->M, (int)c->N,
            (int)c->D, (int)c->DV, c->causal, (int)c->window, c->mask, c->dropout);
}

/* ---- gradients ---- */

/* The derivative of sum(O dO) by a score of query m of head h: p (dO V^T - sum(O dO)). */
static void score_gradients(const Case *c, const Arrays *x, int64_t b, int64_t h, int64_t m,
                            double *p, double *ds)
{
    int64_t g = h / (c->H / c->HK);
    double delta = 0;
    weigh(c, x, b, h, m, p);
    for (int64_t n = 0; n < c->N; n++) {
        ds[n] = 0;
        for (int64_t d = 0; d < c->DV; d++)
            ds[n] += get(x->grad, c->type, at(c, c->H, c->M, c->DV, b, h, m, d)) *
                     get(x->v, c->type, at(c, c->HK, c->N, c->DV, b, g, n, d));
        ds[n] *= thinning(c, b, h, m, n);
        delta += p[n] * ds[n];
    }
    for (int64_t n = 0; n < c->N; n++)
        ds[n] = p[n] * (ds[n] - delta);
}

/* What the gradients must be, in f64: dQ [B, H, M, D], dK [B, HK, N, D], dV [B, HK, N, DV]. */
typedef struct Gradients {
    double *dq, *dk, *dv;
} Gradients;

static void add_row(const Case *c, const Arrays *x, int64_t b, int64_t h, int64_t m,
                    const double *p, const double *ds, const Gradients *to)
{
    int64_t g = h / (c->H / c->HK);
    double scale = c->scale != 0 ? c->scale : 1 / sqrt((double)c->D);
    for (int64_t n = 0; n < c->N; n++) {
        for (int64_t d = 0; d < c->D; d++) {
            int64_t query = at(c, c->H, c->M, c->D, b, h, m, d),
                    key = at(c, c->HK, c->N, c->D, b, g, n, d);
            to->dq[query] += scale * ds[n] * get(x->k, c->type, key);
            to->dk[key] += scale * ds[n] * get(x->q, c->type, query);
        }
        for (int64_t d = 0; d < c->DV; d++)
            to->dv[at(c, c->HK, c->N, c->DV, b, g, n, d)] +=
                p[n] * thinning(c, b, h, m, n) *
                get(x->grad, c->type, at(c, c->H, c->M, c->DV, b, h, m, d));
    }
}

static int64_t count_far(const void *got, tile_dtype type, const double *want, int64_t n)
{
    int64_t wrong = 0;
    double most = 1;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        wrong += !(fabs(get(got, type, i) - want[i]) <= most * (16 * rounding(type) + 2e-5));
    return wrong;
}

static void check_gradients(const Case *c, const Arrays *x)
{
    int64_t q = c->B * c->H * c->M * c->D, k = c->B * c->HK * c->N * c->D,
            v = c->B * c->HK * c->N * c->DV;
    Gradients want = {calloc((size_t)q + 1, 8), calloc((size_t)k + 1, 8), calloc((size_t)v + 1, 8)};
    double *p = malloc((size_t)c->N * 8 + 8), *ds = malloc((size_t)c->N * 8 + 8);
    for (int64_t i = 0; i < c->B * c->H * c->M; i++) {
        int64_t b = i / c->M / c->H, h = i / c->M % c->H, m = i % c->M;
        score_gradients(c, x, b, h, m, p, ds);
        add_row(c, x, b, h, m, p, ds, &want);
    }
    if (!CHECK_INT(count_far(x->dq, c->type, want.dq, q), 0) |
        !CHECK_INT(count_far(x->dk, c->type, want.dk, k), 0) |
        !CHECK_INT(count_far(x->dv, c->type, want.dv, v), 0))
        name_case(c);
    free(p);
    free(ds);
    free(want.dq);
    free(want.dk);
    free(want.dv);
}

static tile_status call_backward(const Case *c, const Arrays *x, void *dq, void *dk, void *dv,
                                 void *room)
{
    tile_attention_options o = options_of(c, x);
    return tile_attention_backward(library, NULL, c->type, c->B, c->H, c->HK, c->M, c->N, c->D,
                                   x->q, x->k, x->v, x->o, x->grad, dq, dk, dv, room, &o);
}

/* All three; then dK with dV alone, and dQ alone, which other kernels may compute: with the same
 * bits. */
static void try_backward(const Case *c, const Arrays *x)
{
    int64_t q = c->B * c->H * c->M * c->D, k = c->B * c->HK * c->N * c->D,
            v = c->B * c->HK * c->N * c->DV, bytes = tile_dtype_bits(c->type) / 8;
    size_t size = tile_attention_backward_workspace(c->B, c->H, c->M);
    CHECK_INT(size, c->B * c->H * c->M * 4);
    void *room = malloc(size + 1), *dq = numbers(c->type, q), *dk = numbers(c->type, k),
         *dv = numbers(c->type, v);
    OK(call_backward(c, x, x->dq, x->dk, x->dv, room));
    check_gradients(c, x);
    OK(call_backward(c, x, NULL, dk, dv, room));
    OK(call_backward(c, x, dq, NULL, NULL, room));
    if (!CHECK(memcmp(dq, x->dq, (size_t)(q * bytes)) == 0) |
        !CHECK(memcmp(dk, x->dk, (size_t)(k * bytes)) == 0) |
        !CHECK(memcmp(dv, x->dv, (size_t)(v * bytes)) == 0))
        name_case(c);
    free(dq);
    free(dk);
    free(dv);
    free(room);
}

static void try_case(const Case *c)
{
    Arrays x = arrays_of(c);
    tile_attention_options o = options_of(c, &x);
    OK(tile_attention(library, NULL, c->type, c->B, c->H, c->HK, c->M, c->N, c->D, x.q, x.k, x.v,
                      x.o, &o));
    if (!CHECK_INT(count_wrong(c, &x), 0))
        name_case(c);
    if (c->lse)
        try_backward(c, &x);
    free_arrays(&x);
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
        c.causal = false;
        c.window = 0;
        c.mask = 1 + i % 3;
        try_case(&c);
        c.dropout = i == 4 ? 1 : 0.25;
        try_case(&c);
        c.mask = 0;
        try_case(&c);
        c.causal = i % 2;
        c.window = i % 4 == 1 ? 2 + i : 0;
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

/* The gradient check: central differences of sum(O dO) by each number of Q, K and V, in f32. */
static double loss_of(float *const *x, const float *grad, float *o)
{
    double sum = 0;
    const tile_attention_options causal = {.struct_size = sizeof causal, .causal = 1};
    OK(tile_attention(library, NULL, TILE_F32, 1, 2, 1, 3, 5, 4, x[0], x[1], x[2], o, &causal));
    for (int i = 0; i < 24; i++)
        sum += (double)o[i] * grad[i];
    return sum;
}

static void differences(void)
{
    enum { Q = 24, K = 20 };
    const int sizes[] = {Q, K, K};
    float *x[3], *grad = numbers(TILE_F32, Q), o[Q], lse[6], dx[3][Q], room[6];
    for (int i = 0; i < 3; i++)
        x[i] = numbers(TILE_F32, sizes[i]);
    const tile_attention_options causal = {.struct_size = sizeof causal, .causal = 1, .lse = lse};
    OK(tile_attention(library, NULL, TILE_F32, 1, 2, 1, 3, 5, 4, x[0], x[1], x[2], o, &causal));
    OK(tile_attention_backward(library, NULL, TILE_F32, 1, 2, 1, 3, 5, 4, x[0], x[1], x[2], o,
                               grad, dx[0], dx[1], dx[2], room, &causal));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < sizes[i]; j++) {
            const float step = 1.0F / 64, kept = x[i][j];
            x[i][j] = kept + step;
            double up = loss_of(x, grad, o);
            x[i][j] = kept - step;
            double down = loss_of(x, grad, o);
            x[i][j] = kept;
            if (!CHECK(fabs((up - down) / (2 * step) - dx[i][j]) <= 2e-3 * (1 + fabs(dx[i][j]))))
                fprintf(stderr, "    number %d of array %d: %g, not %g\n", j, i, dx[i][j],
                        (up - down) / (2 * step));
        }
    for (int i = 0; i < 3; i++)
        free(x[i]);
    free(grad);
}

/* A mask of -inf alone: nothing is seen, and all gradients are 0. */
static void all_masked(void)
{
    const float q[2] = {1, 2}, k[3] = {1, 2, 3}, v[3] = {4, 5, 6}, mask[3] = {-INFINITY, -INFINITY,
                                                                              -INFINITY};
    float o[2] = {9, 9}, lse[2], dq[2] = {9, 9}, dk[3] = {9, 9, 9}, dv[3] = {9, 9, 9}, room[2];
    const tile_attention_options all = {.struct_size = sizeof all, .mask = mask, .lse = lse};
    OK(tile_attention(library, NULL, TILE_F32, 1, 1, 1, 2, 3, 1, q, k, v, o, &all));
    CHECK(o[0] == 0 && o[1] == 0 && lse[0] == -INFINITY);
    OK(tile_attention_backward(library, NULL, TILE_F32, 1, 1, 1, 2, 3, 1, q, k, v, o, q, dq, dk,
                               dv, room, &all));
    CHECK(dq[0] == 0 && dq[1] == 0 && dk[0] == 0 && dk[2] == 0 && dv[0] == 0 && dv[2] == 0);
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
    WRONG_BUT(change, make_call(&c), text,                                                         \
              Call c = {library, TILE_F32, 1, 4, 2, 2, 3, 4, cells, cells + 40, cells + 80,        \
                  cells + 120, TILE_ATTENTION_OPTIONS_INIT})

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
    WRONG_CALL((c.options.mask = cells, c.options.causal = 1),
               "options->causal is 1, but must be 0 with options->mask");
    WRONG_CALL(c.options.dropout = -0.5, "options->dropout is -0.5, but must be from 0 to 1");
    WRONG_CALL(c.options.dropout = NAN, "options->dropout is");
    WRONG_CALL((c.options.dropout = 0.5, c.M = INT32_MAX, c.N = 1),
               "M + N is 2147483648, but must be below 2^31 with options->dropout");
    WRONG_CALL((c.options.mask = cells, c.options.mask_strides[2] = -1),
               "options->mask_strides has a negative stride");
}

/* ---- wrong arguments of backward ---- */

typedef struct BackwardCall {
    tile_kernels *kernels;
    int type;
    int64_t HK, D;
    const float *q, *k, *v, *o, *grad;
    float *dq, *dk, *dv, *room;
    tile_attention_options options;
} BackwardCall;

static float more_cells[400];

static tile_status make_backward_call(const BackwardCall *c)
{
    return tile_attention_backward(c->kernels, NULL, (tile_dtype)c->type, 1, 4, c->HK, 2, 3, c->D,
                                   c->q, c->k, c->v, c->o, c->grad, c->dq, c->dk, c->dv, c->room,
                                   &c->options);
}

static BackwardCall right_backward(void)
{
    float *at = more_cells;
    BackwardCall c = {library, TILE_F32, 2, 4, at, at + 32, at + 56, at + 80, at + 112, at + 144,
                      at + 176, at + 200, at + 224, TILE_ATTENTION_OPTIONS_INIT};
    c.options.lse = at + 232;
    return c;
}

#define WRONG_BACKWARD(change, text)                                                               \
    WRONG_BUT(change, make_backward_call(&c), text, BackwardCall c = right_backward())

static void wrong_backward(void)
{
    WRONG_BACKWARD(c.kernels = NULL, "tile_attention_backward: kernels is NULL");
    WRONG_BACKWARD(c.type = TILE_I8, "type is i8");
    WRONG_BACKWARD(c.HK = 3, "HK is 3, but must be a divisor of H");
    WRONG_BACKWARD(c.D = 300, "D is 300");
    WRONG_BACKWARD(c.options.value_size = 257, "options->value_size is 257");
    WRONG_BACKWARD(c.options.window = 2, "options->window is 2");
    WRONG_BACKWARD(c.options.lse = NULL, "options->lse is NULL");
    WRONG_BACKWARD(c.room = NULL, "workspace is NULL");
    WRONG_BACKWARD(c.q = NULL, "Q is NULL");
    WRONG_BACKWARD(c.k = NULL, "K is NULL");
    WRONG_BACKWARD(c.v = NULL, "V is NULL");
    WRONG_BACKWARD(c.o = NULL, "O is NULL");
    WRONG_BACKWARD(c.grad = NULL, "dO is NULL");
    WRONG_BACKWARD(c.dk = NULL, "dK is NULL");
    WRONG_BACKWARD(c.dv = NULL, "dV is NULL");
    WRONG_BACKWARD(c.options.do_strides[1] = -4, "options->do_strides has a negative stride");
    WRONG_BACKWARD(c.options.dq_strides[2] = 4, "options->dq_strides lets rows of dQ overlap");
    WRONG_BACKWARD(c.options.k_strides[0] = 1, "options->k_strides lets rows of dK overlap");
    WRONG_BACKWARD(c.dq = more_cells, "overlap");
    WRONG_BACKWARD(c.options.struct_size = 1, "struct_size of tile_attention_options is 1");
    CHECK_INT(tile_attention_backward_workspace(-1, 2, 3), 0);
    CHECK_INT(tile_attention_backward_workspace(INT64_MAX, 2, 3), 0);
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
    all_masked();
    differences();
    wrong_arguments();
    wrong_backward();
}

int main(int argc, char **argv)
{
    return run_on_device(argc, argv, each_type, once);
}
