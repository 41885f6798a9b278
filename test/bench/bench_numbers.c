/* More works of bench_data: kernels of the library beside plain C, as gcc makes most of it. */
#include "bench_data.h"

static void nothing(void)
{
}

#define CONSTS(...) (tile_const[]){__VA_ARGS__, {0}}

/* ---- parts of arrays ---- */
enum { MANY = 1 << 22, PARTS = MANY / 2048, BEST = 32, SEGMENTS = MANY / 16 };
static float *many, *chosen, *chosen_plain;
static int32_t *state, *part, *offset, count[1], count_plain[1], best_at[BEST];
static size_t nsegments;
static tile_kernel *top, *selects, *uniques, *sums;

static void parts_make(void)
{
    many = memory(4 * MANY), chosen = memory(4 * MANY), chosen_plain = memory(4 * MANY);
    state = memory(4 * PARTS), part = memory(8 * PARTS), offset = memory(4 * (SEGMENTS * 2 + 1));
    for (size_t i = 0; i < MANY; i++) many[i] = (float)(noise() % 4) - 1;
    for (size_t i = 0; i < MANY / 64; i++) many[noise() % MANY] = (float)noise();
    while (offset[nsegments] < MANY) {
        int32_t end = offset[nsegments] + (int32_t)(8 + noise() % 16);
        offset[++nsegments] = end < MANY ? end : MANY;
    }
    top = kernel("std.kernels.sort", "top_k", CONSTS({"T", 0, "f32"}, {"K", BEST, 0}));
    selects = kernel("std.kernels.select", "select",
                     CONSTS({"T", 0, "f32"}, {"keep", 0, "positive"}));
    uniques = kernel("std.kernels.select", "unique", CONSTS({"T", 0, "f32"}));
    sums = kernel("std.kernels.segments", "segment_sum", CONSTS({"T", 0, "f32"}));
}
static void parts_ready(void)
{
    memset(state, 0, 4 * PARTS);
}
static double parts_error(void)
{
    return count[0] != count_plain[0] ? 1 : differ(chosen, chosen_plain, (size_t)count[0]);
}
static void select_ours(void)
{
    float none[1];
    LAUNCH(selects, tile_view(many, MANY), tile_view((uint8_t *)none, 0), tile_view(chosen, MANY),
           tile_view(none, 0), tile_view((int32_t *)none, 0), tile_view(count, 1),
           tile_view(state, PARTS), tile_view(part, 2, PARTS));
}
static void select_plain(void)
{
    int32_t n = 0;
    for (size_t i = 0; i < MANY; i++) chosen_plain[n] = many[i], n += many[i] > 0;
    count_plain[0] = n;
}
static void unique_ours(void)
{
    LAUNCH(uniques, tile_view(many, MANY), tile_view(chosen, MANY), tile_view(count, 1),
           tile_view(state, PARTS), tile_view(part, 2, PARTS));
}
static void unique_plain(void)
{
    int32_t n = 1;
    chosen_plain[0] = many[0];
    for (size_t i = 1; i < MANY; i++) chosen_plain[n] = many[i], n += many[i] != many[i - 1];
    count_plain[0] = n;
}
static void top_ours(void)
{
    LAUNCH(top, tile_view(many, 1, MANY), tile_view(chosen, 1, 1, BEST),
           tile_view(best_at, 1, 1, BEST));
}
static void top_plain(void) /* what is not greater than the least so far is passed over */
{
    float *best = chosen_plain;
    for (int k = 0; k < BEST; k++) best[k] = -1e38f;
    for (size_t i = 0; i < MANY; i++) {
        if (many[i] <= best[BEST - 1])
            continue;
        int k = BEST - 1;
        for (; k > 0 && best[k - 1] < many[i]; k--) best[k] = best[k - 1];
        best[k] = many[i];
    }
}
static double top_error(void)
{
    return differ(chosen, chosen_plain, BEST);
}
static void sums_ready(void)
{
    memset(chosen, 0, 4 * nsegments);
}
static void sums_ours(void)
{
    LAUNCH(sums, tile_view(many, MANY), tile_view(offset, nsegments + 1),
           tile_view(chosen, nsegments));
}
static void sums_plain(void)
{
    for (size_t s = 0; s < nsegments; s++) {
        float sum = 0;
        for (int32_t i = offset[s]; i < offset[s + 1]; i++) sum += many[i];
        chosen_plain[s] = sum;
    }
}
static double sums_error(void)
{
    return differ(chosen, chosen_plain, nsegments);
}

/* ---- sparse times dense ---- */
enum { SM = 1 << 13, SN = 256 };
static int32_t *sm_offset, *sm_column;
static float *sm_value, *dense, *product, *product_plain;
static tile_kernel *spmm;

static void spmm_make(void)
{
    sm_offset = memory(4 * (SM + 1));
    for (size_t m = 0; m < SM; m++) sm_offset[m + 1] = sm_offset[m] + (int32_t)(8 + noise() % 16);
    size_t z = (size_t)sm_offset[SM];
    sm_column = memory(4 * z), sm_value = memory(4 * z), dense = memory(4ull * SM * SN);
    product = memory(4ull * SM * SN), product_plain = memory(4ull * SM * SN);
    for (size_t i = 0; i < z; i++)
        sm_column[i] = (int32_t)(noise() % SM), sm_value[i] = (float)(noise() % 5) - 2;
    for (size_t i = 0; i < SM * SN; i++) dense[i] = (float)(noise() % 7) - 3;
    spmm = kernel("std.kernels.sparse", "spmm_csr", CONSTS({"T", 0, "f32"}));
}
static void spmm_ours(void)
{
    size_t z = (size_t)sm_offset[SM];
    LAUNCH(spmm, tile_view(sm_value, z), tile_view(sm_column, z), tile_view(sm_offset, SM + 1),
           tile_view(dense, SM, SN), tile_view(product, SM, SN));
}
static void spmm_plain(void)
{
    for (size_t m = 0; m < SM; m++) {
        float sum[SN] = {0};
        for (int32_t i = sm_offset[m]; i < sm_offset[m + 1]; i++) {
            const float v = sm_value[i], *b = dense + (size_t)sm_column[i] * SN;
            for (int n = 0; n < SN; n++) sum[n] += v * b[n];
        }
        memcpy(product_plain + m * SN, sum, sizeof sum);
    }
}
static double spmm_error(void)
{
    return differ(product, product_plain, SM * SN);
}

/* ---- grids: planes of 2048, and cubes of 128; what is past the border is 1 ---- */
enum { SIDE = 2048, CUBE = 128, CELLS = SIDE * SIDE };
static float *grid, *grid_y, *grid_z;
static tile_kernel *stencil5, *stencil7;

static void grids_make(void)
{
    grid = memory(4ull * CELLS), grid_y = memory(4ull * CELLS), grid_z = memory(4ull * CELLS);
    for (size_t i = 0; i < CELLS; i++) grid[i] = (float)(noise() % 1000) / 1000;
    stencil5 = kernel("std.kernels.stencil", "stencil_5", CONSTS({"T", 0, "f32"}));
    stencil7 = kernel("std.kernels.stencil", "stencil_7", CONSTS({"T", 0, "f32"}));
}
static void stencil5_ours(void)
{
    float none[1];
    LAUNCH(stencil5, tile_view(grid, SIDE, SIDE), tile_view(none, 0, 0),
           tile_view(grid_y, SIDE, SIDE), tile_f32(0.2f), tile_f32(0.2f), tile_f32(0), tile_f32(1));
}
static void stencil7_ours(void)
{
    float none[1];
    LAUNCH(stencil7, tile_view(grid, CUBE, CUBE, CUBE), tile_view(none, 0, 0, 0),
           tile_view(grid_y, CUBE, CUBE, CUBE), tile_f32(0.1f), tile_f32(0.15f), tile_f32(0),
           tile_f32(1));
}
/* A row and those around it; rows past the border are of ones. */
static void row_plain(const float *u, const float *const *around, int naround, float *v, int n,
                      float c, float a)
{
    const float *n0 = around[0], *n1 = around[1], *n2 = around[naround > 2 ? 2 : 0],
                *n3 = around[naround > 2 ? 3 : 0];
    float more = naround > 2 ? a : 0;
    for (int i = 1; i < n - 1; i++)
        v[i] = c * u[i] + a * (n0[i] + n1[i] + u[i - 1] + u[i + 1]) + more * (n2[i] + n3[i]);
    for (int i = 0; i < n; i += n - 1) {
        float side = (i ? u[i - 1] : 1) + (i + 1 < n ? u[i + 1] : 1);
        v[i] = c * u[i] + a * (n0[i] + n1[i] + side) + more * (n2[i] + n3[i]);
    }
}
static const float *ones(void)
{
    static float row[SIDE];
    for (int i = 0; i < SIDE && !row[SIDE - 1]; i++) row[i] = 1;
    return row;
}
static void stencil5_plain(void)
{
    const float *one = ones();
    for (int h = 0; h < SIDE; h++) {
        const float *u = grid + (size_t)h * SIDE,
                    *around[] = {h ? u - SIDE : one, h + 1 < SIDE ? u + SIDE : one};
        row_plain(u, around, 2, grid_z + (size_t)h * SIDE, SIDE, 0.2f, 0.2f);
    }
}
static void stencil7_plain(void)
{
    const float *one = ones();
    const int plane = CUBE * CUBE;
    for (int d = 0; d < CUBE; d++)
        for (int h = 0; h < CUBE; h++) {
            size_t at = (size_t)d * plane + (size_t)h * CUBE;
            const float *u = grid + at,
                        *around[] = {h ? u - CUBE : one, h + 1 < CUBE ? u + CUBE : one,
                                     d ? u - plane : one, d + 1 < CUBE ? u + plane : one};
            row_plain(u, around, 4, grid_z + at, CUBE, 0.1f, 0.15f);
        }
}
static double stencil5_error(void)
{
    return differ(grid_y, grid_z, CELLS);
}
static double stencil7_error(void)
{
    return differ(grid_y, grid_z, CUBE * CUBE * CUBE);
}

/* ---- bodies, options, chance ---- */
enum { BODIES = 2048, OPTIONS = 1 << 18, POINTS = 1 << 21 };
static float *bodies, *forces, *forces_plain, *market, *prices, *prices_plain;
static int64_t hits[1], hits_plain[1];
static tile_kernel *nbody, *options, *chance;

static void simulate_make(void)
{
    bodies = memory(16 * BODIES), forces = memory(16 * BODIES), forces_plain = memory(16 * BODIES);
    market = memory(12 * OPTIONS), prices = memory(8 * OPTIONS), prices_plain = memory(8 * OPTIONS);
    for (size_t i = 0; i < 4 * BODIES; i++) bodies[i] = (float)(noise() % 1000) / 1000;
    for (size_t i = 0; i < 3 * OPTIONS; i++) market[i] = 1 + (float)(noise() % 1000) / 500;
    nbody = kernel("std.kernels.simulate", "nbody_forces", NULL);
    options = kernel("std.kernels.finance", "black_scholes", NULL);
    chance = kernel("std.kernels.simulate", "monte_carlo_pi", NULL);
}
static void nbody_ours(void)
{
    LAUNCH(nbody, tile_view(bodies, 3, BODIES), tile_view(bodies + 3 * BODIES, BODIES),
           tile_view(forces, 3, BODIES), tile_view(forces + 3 * BODIES, BODIES), tile_f32(0.1f));
}
static void nbody_plain(void)
{
    const float *x = bodies, *y = x + BODIES, *z = y + BODIES, *m = z + BODIES, soft = 0.1f;
    float *a = forces_plain;
    for (int i = 0; i < BODIES; i++) {
        float a0 = 0, a1 = 0, a2 = 0, p = 0;
        for (int j = 0; j < BODIES; j++) {
            float d0 = x[j] - x[i], d1 = y[j] - y[i], d2 = z[j] - z[i];
            float near = 1 / sqrtf(d0 * d0 + d1 * d1 + d2 * d2 + soft * soft), pull = m[j] * near,
                  along = pull * near * near;
            a0 += along * d0, a1 += along * d1, a2 += along * d2, p -= pull;
        }
        a[i] = a0, a[BODIES + i] = a1, a[2 * BODIES + i] = a2;
        a[3 * BODIES + i] = p + m[i] / soft;
    }
}
static double nbody_error(void)
{
    return differ(forces, forces_plain, 4 * BODIES);
}
static void options_ours(void)
{
    LAUNCH(options, tile_view(market, OPTIONS), tile_view(market + OPTIONS, OPTIONS),
           tile_view(market + 2 * OPTIONS, OPTIONS), tile_view(prices, OPTIONS),
           tile_view(prices + OPTIONS, OPTIONS), tile_f32(0.02f), tile_f32(0.3f));
}
static void options_plain(void)
{
    const float rate = 0.02f, volatility = 0.3f, half = 0.70710678f;
    for (size_t i = 0; i < OPTIONS; i++) {
        float s = market[i], k = market[OPTIONS + i], t = market[2 * OPTIONS + i];
        float spread = volatility * sqrtf(t),
              d1 = (logf(s / k) + (rate + 0.5f * volatility * volatility) * t) / spread,
              d2 = d1 - spread, worth = k * expf(-rate * t);
        prices_plain[i] = 0.5f * (s * erfcf(-d1 * half) - worth * erfcf(-d2 * half));
        prices_plain[OPTIONS + i] = 0.5f * (worth * erfcf(d2 * half) - s * erfcf(d1 * half));
    }
}
static double options_error(void)
{
    return differ(prices, prices_plain, 2 * OPTIONS);
}
static void chance_ours(void)
{
    LAUNCH(chance, tile_view(hits, 1), tile_i64(POINTS), tile_u64(1));
}
static void chance_plain(void) /* Philox-4x32-10 */
{
    int64_t n = 0;
    for (uint32_t i = 0; i < POINTS; i++) {
        uint32_t a = i, b = 0, c = 0, d = 0, k0 = 1, k1 = 0;
        for (int r = 0; r < 10; r++, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
            uint64_t p = (uint64_t)c * 0xCD9E8D57, q = (uint64_t)a * 0xD2511F53;
            a = (uint32_t)(p >> 32) ^ b ^ k0, b = (uint32_t)p;
            c = (uint32_t)(q >> 32) ^ d ^ k1, d = (uint32_t)q;
        }
        uint64_t u = a >> 8, v = b >> 8;
        n += u * u + v * v < 1ull << 48;
    }
    hits_plain[0] = n;
}
static double chance_error(void)
{
    return hits[0] != hits_plain[0];
}

/* ---- pictures ---- */
enum { WIDE = 640, HIGH = 360, PIXELS = WIDE * HIGH, BLUR = 6, NEAR = 4 };
static float *picture, *picture_y, *picture_z;
static tile_kernel *blur, *bilateral;

static void pictures_make(void)
{
    picture = memory(12 * PIXELS), picture_y = memory(12 * PIXELS), picture_z = memory(12 * PIXELS);
    for (size_t i = 0; i < 3 * PIXELS; i++) picture[i] = (float)(noise() % 256) / 255;
    blur = kernel("std.kernels.filter", "blur", NULL);
    bilateral = kernel("std.kernels.filter", "bilateral", NULL);
}
static double picture_error(void)
{
    return differ(picture_y, picture_z, 3 * PIXELS);
}
static void blur_ours(void)
{
    LAUNCH(blur, tile_view(picture, 3, HIGH, WIDE), tile_view(picture_y, 3, HIGH, WIDE),
           tile_f32(2));
}
static void blur_plain(void)
{
    float weight[2 * BLUR + 1], all = 0;
    for (int d = -BLUR; d <= BLUR; d++) all += weight[d + BLUR] = expf(-(float)(d * d) / 8);
    for (int r = 0; r < 3 * HIGH; r++) {
        const float *x = picture + (size_t)r * WIDE;
        float *y = picture_z + (size_t)r * WIDE;
        for (int w = BLUR; w < WIDE - BLUR; w++) {
            float sum = 0;
            for (int d = 0; d <= 2 * BLUR; d++) sum += weight[d] * x[w + d - BLUR];
            y[w] = sum / all;
        }
        for (int w = 0; w < WIDE; w += w == BLUR - 1 ? WIDE - 2 * BLUR + 1 : 1) {
            float sum = 0, weights = 0;
            for (int d = -BLUR; d <= BLUR; d++)
                if (w + d >= 0 && w + d < WIDE)
                    sum += weight[d + BLUR] * x[w + d], weights += weight[d + BLUR];
            y[w] = sum / weights;
        }
    }
}
static void bilateral_ours(void)
{
    LAUNCH(bilateral, tile_view(picture, 3, HIGH, WIDE), tile_view(picture_y, 3, HIGH, WIDE),
           tile_f32(3), tile_f32(0.2f));
}
static void bilateral_plain(void) /* row by row, each neighbour for the whole row */
{
    const float *r = picture, *g = r + PIXELS, *b = g + PIXELS;
    for (int h = 0; h < HIGH; h++) {
        float sum[4][WIDE] = {{0}};
        for (int dy = -NEAR; dy <= NEAR; dy++)
            for (int dx = -NEAR; dx <= NEAR; dx++) {
                if (h + dy < 0 || h + dy >= HIGH)
                    continue;
                float place = (float)(dx * dx + dy * dy) / 18;
                int from = dx < 0 ? -dx : 0, to = dx > 0 ? WIDE - dx : WIDE, at = h * WIDE,
                    other = at + dy * WIDE + dx;
                for (int w = from; w < to; w++) {
                    float r1 = r[other + w], g1 = g[other + w], b1 = b[other + w],
                          dr = r1 - r[at + w], dg = g1 - g[at + w], db = b1 - b[at + w];
                    float weight = expf(-(dr * dr + dg * dg + db * db) / 0.08f - place);
                    sum[0][w] += weight, sum[1][w] += weight * r1;
                    sum[2][w] += weight * g1, sum[3][w] += weight * b1;
                }
            }
        for (int c = 0; c < 3; c++)
            for (int w = 0; w < WIDE; w++)
                picture_z[c * PIXELS + h * WIDE + w] = sum[c + 1][w] / sum[0][w];
    }
}

/* ---- sequences ---- */
enum { PAIRS = 16, LETTERS = 20, LONGEST = 400 };
static uint8_t *letters_a, *letters_b;
static int32_t *from_a, *from_b, *match, *score, *score_plain, *ends, *edge;
static tile_kernel *align;

static void sequences_make(void)
{
    letters_a = memory(PAIRS * LONGEST), letters_b = memory(PAIRS * LONGEST);
    from_a = memory(4 * (PAIRS + 1)), from_b = memory(4 * (PAIRS + 1));
    match = memory(4 * LETTERS * LETTERS), score = memory(4 * PAIRS);
    score_plain = memory(4 * PAIRS), ends = memory(8 * PAIRS), edge = memory(8 * PAIRS * LONGEST);
    for (int s = 0; s < PAIRS; s++) {
        from_a[s + 1] = from_a[s] + 200 + (int32_t)(noise() % 200);
        from_b[s + 1] = from_b[s] + 200 + (int32_t)(noise() % 200);
    }
    for (int i = 0; i < PAIRS * LONGEST; i++)
        letters_a[i] = (uint8_t)(noise() % LETTERS), letters_b[i] = (uint8_t)(noise() % LETTERS);
    for (int i = 0; i < LETTERS * LETTERS; i++)
        match[i] = i % (LETTERS + 1) ? (int32_t)(noise() % 5) - 4 : 5;
    align = kernel("std.kernels.sequence", "smith_waterman", NULL);
}
static void align_ours(void)
{
    size_t na = (size_t)from_a[PAIRS], nb = (size_t)from_b[PAIRS];
    LAUNCH(align, tile_view(letters_a, na), tile_view(from_a, PAIRS + 1), tile_view(letters_b, nb),
           tile_view(from_b, PAIRS + 1), tile_view(match, LETTERS, LETTERS),
           tile_view(score, PAIRS), tile_view(ends, PAIRS, 2), tile_view(edge, 2, nb), tile_i32(11),
           tile_i32(1));
}
#define MAX(a, b) ((a) > (b) ? (a) : (b))
static void align_plain(void)
{
    for (int s = 0; s < PAIRS; s++) {
        static int32_t h[LONGEST], f[LONGEST];
        int n = from_b[s + 1] - from_b[s];
        int32_t best = 0;
        for (int j = 0; j < n; j++) h[j] = 0, f[j] = -0x40000000;
        for (int i = from_a[s]; i < from_a[s + 1]; i++) {
            int32_t diagonal = 0, left = 0, e = -0x40000000;
            const int32_t *row = match + LETTERS * letters_a[i];
            for (int j = 0; j < n; j++) {
                f[j] = MAX(h[j] - 11, f[j] - 1), e = MAX(left - 11, e - 1);
                int32_t x = MAX(diagonal + row[letters_b[from_b[s] + j]], 0), y = MAX(e, f[j]);
                diagonal = h[j], h[j] = left = MAX(x, y), best = MAX(best, left);
            }
        }
        score_plain[s] = best;
    }
}
static double align_error(void)
{
    return memcmp(score, score_plain, 4 * PAIRS) ? 1 : 0;
}

static const Work works[] = {
    {"top_k, 32 of 2^22 f32", "plain C", nothing, top_ours, top_plain, top_error},
    {"select of 2^22 f32", "plain C", parts_ready, select_ours, select_plain, parts_error},
    {"unique of 2^22 f32", "plain C", parts_ready, unique_ours, unique_plain, parts_error},
    {"segment_sum, 8 to 23 each", "plain C", sums_ready, sums_ours, sums_plain, sums_error},
    {"spmm_csr, times 256 columns", "plain C", nothing, spmm_ours, spmm_plain, spmm_error},
    {"stencil_5, 2048^2", "plain C", nothing, stencil5_ours, stencil5_plain, stencil5_error},
    {"stencil_7, 128^3", "plain C", nothing, stencil7_ours, stencil7_plain, stencil7_error},
    {"nbody_forces, 2048", "plain C", nothing, nbody_ours, nbody_plain, nbody_error},
    {"black_scholes, 2^18", "plain C", nothing, options_ours, options_plain, options_error},
    {"monte_carlo_pi, 2^21", "plain C", nothing, chance_ours, chance_plain, chance_error},
    {"blur of 13, 640x360x3", "plain C", nothing, blur_ours, blur_plain, picture_error},
    {"bilateral of 9x9, 640x360", "plain C", nothing, bilateral_ours, bilateral_plain,
     picture_error},
    {"smith_waterman, 16 pairs", "plain C", nothing, align_ours, align_plain, align_error},
};

const Work *numbers_make(size_t *n)
{
    parts_make(), spmm_make(), grids_make(), simulate_make(), pictures_make(), sequences_make();
    *n = sizeof works / sizeof *works;
    return works;
}
