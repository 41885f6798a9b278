/* What bench_programs' kernels do, in plain C as one writes it. */
#include "bench_programs.h"
#include <math.h>

#define PROGRAM(name) void program_##name(void *const *p)
#define FOR(i, n)     for (int i = 0; i < (n); i++)

static inline int clamp(int i, int lo, int hi)
{
    return i < lo ? lo : i > hi ? hi : i;
}

PROGRAM(mandelbrot)
{
    int32_t(*restrict count)[W] = p[0];
    FOR(j, H) FOR(k, W)
    {
        float cr = -2.0f + 3.0f / W * (float)k, ci = -1.0f + 2.0f / H * (float)j, r = cr, i = ci;
        int n = 0;
        for (; n < 256 && r * r + i * i <= 4; n++) {
            float s = r * r - i * i + cr;
            i = 2 * r * i + ci;
            r = s;
        }
        count[j][k] = n;
    }
}

PROGRAM(binomial)
{
    const float *S = p[0], *X = p[1];
    float *y = p[2];
    FOR(c, C)
    {
        float v[65];
        FOR(k, 64) v[k] = fmaxf(X[c] - S[c] * expf(0.025f * (2.0f * (float)k - 64)), 0);
        v[64] = 0;
        FOR(j, 64) FOR(k, 64) v[k] = 0.997f * (0.49f * v[k] + 0.51f * v[k + 1]);
        y[c] = v[0];
    }
}

static inline float cnd(float x)
{
    float l = fabsf(x), k = 1 / (1 + 0.2316419f * l);
    float w = ((((1.330274429f * k - 1.821255978f) * k + 1.781477937f) * k - 0.356563782f) * k +
               0.31938153f) *
              k;
    float q = 0.39894228040f * expf(-0.5f * l * l) * w;
    return x > 0 ? 1 - q : q;
}
PROGRAM(black_scholes)
{
    const float *restrict S = p[0], *restrict X = p[1];
    float *restrict y = p[2], T = 2, r = 0.02f, v = 0.3f;
    FOR(i, 8 * C)
    {
        float d1 = (logf(S[i] / X[i]) + (r + 0.5f * v * v) * T) / (v * sqrtf(T)),
              d2 = d1 - v * sqrtf(T);
        y[i] = S[i] * cnd(d1) - X[i] * expf(-r * T) * cnd(d2);
    }
}

static inline float grad(int hash, float x, float y)
{
    int h = hash & 7;
    float u = h < 4 ? x : y, v = h < 4 ? y : x;
    return (h & 1 ? -u : u) + (h & 2 ? -2 * v : 2 * v);
}
PROGRAM(noise)
{
    const int32_t *restrict P = p[0];
    float(*restrict y)[W] = p[1];
    FOR(j, H) FOR(i, W)
    {
        float sum = 0, scale = 1;
        FOR(o, 4)
        {
            float x = 0.037f * (float)i / scale, z = 0.041f * (float)j / scale, fx = floorf(x),
                  fz = floorf(z);
            int X = (int)fx & 255, Z = (int)fz & 255, a = P[X] + Z, b = P[X + 1] + Z;
            float u = x - fx, v = z - fz, su = u * u * u * (u * (u * 6 - 15) + 10),
                  sv = v * v * v * (v * (v * 6 - 15) + 10);
            float n00 = grad(P[a], u, v), n10 = grad(P[b], u - 1, v),
                  n01 = grad(P[a + 1], u, v - 1), n11 = grad(P[b + 1], u - 1, v - 1);
            float low = n00 + su * (n10 - n00), high = n01 + su * (n11 - n01);
            sum += scale * (low + sv * (high - low));
            scale *= 0.5f;
        }
        y[j][i] = sum;
    }
}

PROGRAM(volume)
{
    const float(*restrict d)[64][64] = p[0];
    float(*restrict y)[W] = p[1];
    FOR(j, H) FOR(i, W)
    {
        float x = 2 + 58.0f / W * (float)i, z = 2 + 58.0f / H * (float)j, t = 1, light = 0;
        for (float depth = 1; t > 0.02f && depth < 62; depth += 0.5f) {
            float px = x + 0.01f * depth, pz = z - 0.01f * depth;
            int ix = (int)px, iz = (int)pz, iy = (int)depth;
            float fx = px - (float)ix, fz = pz - (float)iz, fy = depth - (float)iy;
            float a = d[iy][iz][ix] * (1 - fx) + d[iy][iz][ix + 1] * fx;
            float b = d[iy][iz + 1][ix] * (1 - fx) + d[iy][iz + 1][ix + 1] * fx;
            float c = d[iy + 1][iz][ix] * (1 - fx) + d[iy + 1][iz][ix + 1] * fx;
            float e = d[iy + 1][iz + 1][ix] * (1 - fx) + d[iy + 1][iz + 1][ix + 1] * fx;
            float near = a + (b - a) * fz, far = c + (e - c) * fz;
            float density = near + (far - near) * fy;
            light += t * density * 0.4f * depth;
            t *= 1 - 0.4f * density;
        }
        y[j][i] = light;
    }
}

static inline float point(const float (*x)[H][W], int k, int j, int i)
{
    return k < 0 || k >= D || j < 0 || j >= H || i < 0 || i >= W ? 0 : x[k][j][i];
}
static inline float star(const float (*x)[H][W], int k, int j, int i, int inside)
{
    static const float c[] = {0.5f, -0.25f, 0.125f, -0.0625f};
#define AT(k, j, i) (inside ? x[k][j][i] : point(x, k, j, i))
    float sum = c[0] * x[k][j][i];
    for (int d = 1; d < 4; d++)
        sum += c[d] * (AT(k, j, i - d) + AT(k, j, i + d) + AT(k, j - d, i) + AT(k, j + d, i) +
                       AT(k - d, j, i) + AT(k + d, j, i));
    return sum;
#undef AT
}
PROGRAM(stencil_3d)
{
    const float(*restrict x)[H][W] = p[0];
    float(*restrict y)[H][W] = p[1];
    FOR(k, D) FOR(j, H)
    {
        int rows = k >= 3 && k < D - 3 && j >= 3 && j < H - 3, from = rows ? 3 : W;
        FOR(i, from) y[k][j][i] = star(x, k, j, i, 0);
        for (int i = from; i < W - 3; i++)
            y[k][j][i] = star(x, k, j, i, 1);
        for (int i = W - 3; i < W; i++)
            y[k][j][i] = star(x, k, j, i, 0);
    }
}

PROGRAM(tracer)
{
    const float(*restrict lo)[3] = p[0], (*restrict hi)[3] = p[1];
    const int32_t *restrict skip = p[2];
    float(*restrict y)[W] = p[3];
    FOR(j, H) FOR(i, W)
    {
        float dx = 1 / (2.0f / W * (float)i - 0.9991f), dy = 1 / (0.9993f - 2.0f / H * (float)j),
              best = 1e9f;
        for (int k = 0; k < NODES;) {
            float x0 = lo[k][0] * dx, x1 = hi[k][0] * dx, y0 = lo[k][1] * dy, y1 = hi[k][1] * dy;
            float from = fmaxf(fmaxf(fminf(x0, x1), fminf(y0, y1)), lo[k][2]);
            float to = fminf(fminf(fmaxf(x0, x1), fmaxf(y0, y1)), fminf(hi[k][2], best));
            if (from <= to && skip[k] == k + 1)
                best = fminf(best, from);
            k = from <= to ? k + 1 : skip[k];
        }
        y[j][i] = best;
    }
}
PROGRAM(tracer_alone)
{
    program_tracer(p);
}

PROGRAM(blur)
{
    const uint16_t(*restrict x)[W + 8] = p[0];
    uint16_t(*restrict y)[W] = p[1];
    uint16_t rows[3][W];
    FOR(j, H + 2)
    {
        uint16_t *to = rows[j % 3];
        FOR(i, W) to[i] = (uint16_t)(x[j][i] + x[j][i + 1] + x[j][i + 2]) / 3;
        if (j >= 2)
            FOR(i, W)
        y[j - 2][i] = (uint16_t)(rows[0][i] + rows[1][i] + rows[2][i]) / 3;
    }
}

PROGRAM(unsharp)
{
    const float(*restrict x)[H][W] = p[0];
    float(*restrict y)[H][W] = p[1];
    static float grey[H][W];
    const float k0 = 0.26596f, k1 = 0.21297f, k2 = 0.10934f, k3 = 0.03600f;
    FOR(j, H) FOR(i, W)
        grey[j][i] = 0.299f * x[0][j][i] + 0.587f * x[1][j][i] + 0.114f * x[2][j][i];
    FOR(j, H)
    {
        float down[W + 6], ratio[W];
        const float *r[7];
        FOR(d, 7) r[d] = grey[clamp(j + d - 3, 0, H - 1)];
        FOR(i, W)
            down[i + 3] = k3 * (r[0][i] + r[6][i]) + k2 * (r[1][i] + r[5][i]) +
                          k1 * (r[2][i] + r[4][i]) + k0 * r[3][i];
        FOR(i, 3) down[i] = down[3], down[W + 3 + i] = down[W + 2];
        FOR(i, W)
        {
            float soft = k3 * (down[i] + down[i + 6]) + k2 * (down[i + 1] + down[i + 5]) +
                         k1 * (down[i + 2] + down[i + 4]) + k0 * down[i + 3];
            ratio[i] = (2 * grey[j][i] - soft) / grey[j][i];
        }
        FOR(c, 3) FOR(i, W) y[c][j][i] = ratio[i] * x[c][j][i];
    }
}

PROGRAM(nl_means)
{
    enum { EDGE = 3 };
    const float(*restrict x)[W] = p[0];
    float(*restrict y)[W] = p[1];
    static float padded[H + 2 * EDGE][W + 2 * EDGE];
    FOR(j, H + 2 * EDGE) FOR(i, W + 2 * EDGE)
        padded[j][i] = x[clamp(j - EDGE, 0, H - 1)][clamp(i - EDGE, 0, W - 1)];
    FOR(j, H)
    {
        float sum[W] = {0}, weights[W] = {0};
        for (int dy = -2; dy <= 2; dy++)
            for (int dx = -2; dx <= 2; dx++)
                FOR(i, W)
                {
                    float d = 0;
                    for (int u = -1; u <= 1; u++)
                        for (int v = -1; v <= 1; v++) {
                            float e = padded[j + EDGE + u][i + EDGE + v] -
                                      padded[j + EDGE + u + dy][i + EDGE + v + dx];
                            d += e * e;
                        }
                    float w = expf(-8 * d);
                    sum[i] += w * padded[j + EDGE + dy][i + EDGE + dx];
                    weights[i] += w;
                }
        FOR(i, W) y[j][i] = sum[i] / weights[i];
    }
}

PROGRAM(max_filter)
{
    const float(*restrict x)[W] = p[0];
    float(*restrict y)[W] = p[1];
    static float rows[H][W];
    FOR(j, H)
    {
        float padded[W + 12];
        FOR(i, W + 12) padded[i] = x[j][clamp(i - 6, 0, W - 1)];
        FOR(i, W)
        {
            float most = padded[i];
            FOR(d, 13) most = fmaxf(most, padded[i + d]);
            rows[j][i] = most;
        }
    }
    FOR(j, H)
    {
        FOR(i, W) y[j][i] = rows[j][i];
        for (int d = -6; d <= 6; d++) {
            const float *row = rows[clamp(j + d, 0, H - 1)];
            FOR(i, W) y[j][i] = fmaxf(y[j][i], row[i]);
        }
    }
}

PROGRAM(haar)
{
    const float(*restrict x)[2 * W] = p[0];
    float(*restrict y)[H][W] = p[1];
    FOR(j, H) FOR(i, W)
    {
        y[0][j][i] = 0.5f * (x[j][2 * i] + x[j][2 * i + 1]);
        y[1][j][i] = 0.5f * (x[j][2 * i] - x[j][2 * i + 1]);
    }
}
PROGRAM(inverse_haar)
{
    const float(*restrict x)[H][W] = p[0];
    float(*restrict y)[2 * W] = p[1];
    FOR(j, H) FOR(i, W)
    {
        y[j][2 * i] = x[0][j][i] + x[1][j][i];
        y[j][2 * i + 1] = x[0][j][i] - x[1][j][i];
    }
}
static inline void daubechies(const float *x, float before, float after, float *low, float *high)
{
    float a = before, b = x[0], c = x[1], d = after;
    *low = 0.4829629131f * a + 0.8365163037f * b + 0.2241438680f * c - 0.1294095226f * d;
    *high = -0.1294095226f * a - 0.2241438680f * b + 0.8365163037f * c - 0.4829629131f * d;
}
PROGRAM(daubechies)
{
    const float(*restrict x)[2 * W] = p[0];
    float(*restrict y)[H][W] = p[1];
    FOR(j, H)
    {
        daubechies(x[j], 0, x[j][2], &y[0][j][0], &y[1][j][0]);
        for (int i = 1; i < W - 1; i++)
            daubechies(x[j] + 2 * i, x[j][2 * i - 1], x[j][2 * i + 2], &y[0][j][i], &y[1][j][i]);
        daubechies(x[j] + 2 * W - 2, x[j][2 * W - 3], 0, &y[0][j][W - 1], &y[1][j][W - 1]);
    }
}
static inline void back(float a, float b, float c, float d, float *y)
{
    y[0] = 0.2241438680f * a + 0.8365163037f * b + 0.4829629131f * c - 0.1294095226f * d;
    y[1] = -0.1294095226f * a - 0.4829629131f * b + 0.8365163037f * c - 0.2241438680f * d;
}
PROGRAM(inverse_daubechies)
{
    const float(*restrict x)[H][W] = p[0];
    float(*restrict y)[2 * W] = p[1];
    FOR(j, H)
    {
        FOR(i, W - 1) back(x[0][j][i], x[1][j][i], x[0][j][i + 1], x[1][j][i + 1], y[j] + 2 * i);
        back(x[0][j][W - 1], x[1][j][W - 1], 0, 0, y[j] + 2 * W - 2);
    }
}

PROGRAM(pyramid_down)
{
    const float(*restrict x)[2 * W] = p[0];
    float(*restrict y)[W] = p[1];
    FOR(j, H)
    {
        float row[2 * W + 3];
        row[0] = row[2 * W + 1] = row[2 * W + 2] = 0;
        const float zero[2 * W] = {0}, *a = j ? x[2 * j - 1] : zero, *b = x[2 * j],
                    *c = x[2 * j + 1], *d = j < H - 1 ? x[2 * j + 2] : zero;
        FOR(i, 2 * W) row[i + 1] = 0.125f * (a[i] + d[i]) + 0.375f * (b[i] + c[i]);
        FOR(i, W)
            y[j][i] = 0.125f * (row[2 * i] + row[2 * i + 3]) +
                      0.375f * (row[2 * i + 1] + row[2 * i + 2]);
    }
}
PROGRAM(pyramid_up)
{
    const float(*restrict x)[W] = p[0];
    float(*restrict y)[2 * W] = p[1];
    FOR(j, 2 * H)
    {
        const float *near = x[j / 2], *far = x[clamp(j % 2 ? (j + 1) / 2 : (j - 1) / 2, 0, H - 1)];
        float row[W + 2];
        FOR(i, W) row[i + 1] = 0.75f * near[i] + 0.25f * far[i];
        row[0] = row[1], row[W + 1] = row[W];
        FOR(i, W)
        {
            y[j][2 * i] = 0.75f * row[i + 1] + 0.25f * row[i];
            y[j][2 * i + 1] = 0.75f * row[i + 1] + 0.25f * row[i + 2];
        }
    }
}

static inline uint16_t raw(const uint16_t (*x)[W], int j, int i)
{
    return j < 0 || j >= H || i < 0 || i >= W ? 0 : x[j][i];
}
static inline uint16_t most(uint16_t a, uint16_t b)
{
    return a > b ? a : b;
}
static inline uint8_t developed(const uint16_t (*x)[W], const uint8_t *curve, int j, int i,
                                int inside)
{
#define AT(j, i) (inside ? x[j][i] : raw(x, j, i))
    uint16_t here = x[j][i],
             all = most(most(AT(j, i - 2), AT(j, i + 2)), most(AT(j - 2, i), AT(j + 2, i))),
             clean = here < all ? here : all;
    uint16_t l = AT(j, i - 1), r = AT(j, i + 1), u = AT(j - 1, i), d = AT(j + 1, i);
    uint16_t across = l > r ? l - r : r - l, down = u > d ? u - d : d - u;
    uint16_t green = (uint16_t)(down < across ? (u + d + 1) >> 1 : (l + r + 1) >> 1),
             v = (i + j) % 2 ? green : clean;
    return curve[v < 1023 ? v : 1023];
#undef AT
}
PROGRAM(camera)
{
    const uint16_t(*restrict x)[W] = p[0];
    const uint8_t *restrict curve = p[1];
    uint8_t(*restrict y)[W] = p[2];
    FOR(j, H)
    {
        int from = j >= 2 && j < H - 2 ? 2 : W;
        FOR(i, from) y[j][i] = developed(x, curve, j, i, 0);
        for (int i = from; i < W - 2; i++)
            y[j][i] = developed(x, curve, j, i, 1);
        for (int i = W - 2; i < W; i++)
            y[j][i] = developed(x, curve, j, i, 0);
    }
}

static inline float hits(float ox, float oy, float oz, float dx, float dy, float dz, float cx,
                         float cz)
{
    float x = ox - cx, y = oy, z = oz - cz, b = x * dx + y * dy + z * dz,
          d = b * b - (x * x + y * y + z * z - 0.25f), t = -b - sqrtf(fmaxf(d, 0));
    return d > 0 && t > 0 ? t : 1e17f;
}
static inline float nearest(float ox, float oy, float oz, float dx, float dy, float dz)
{
    return fminf(fminf(hits(ox, oy, oz, dx, dy, dz, -1, -2.2f),
                       hits(ox, oy, oz, dx, dy, dz, 0, -2.0f)),
                 hits(ox, oy, oz, dx, dy, dz, 1, -2.2f));
}
PROGRAM(occlusion)
{
    float(*restrict y)[W] = p[0];
    FOR(j, H) FOR(i, W)
    {
        float px = 2.0f / W * (float)i - 1, py = 1 - 2.0f / H * (float)j,
              n = 1 / sqrtf(px * px + py * py + 1), dx = px * n, dy = py * n, dz = -n;
        float hit = fminf(nearest(0, 0, 0, dx, dy, dz), dy < -1e-3f ? -0.5f / dy : 1e17f), open = 0;
        uint32_t seed = (uint32_t)j * 7919 + (uint32_t)i * 104729;
        if (hit < 1e16f)
            FOR(k, 16)
            {
                seed = seed * 1664525 + 1013904223;
                float u = (float)(seed >> 8) * 5.9604645e-8f;
                seed = seed * 1664525 + 1013904223;
                float v = (float)(seed >> 8) * 5.9604645e-8f, r = sqrtf(u);
                float t = nearest(hit * dx, hit * dy + 1e-3f, hit * dz, r * cosf(6.2831853f * v),
                                  sqrtf(1 - u), r * sinf(6.2831853f * v));
                open += t > 1e16f ? 0.0625f : 0;
            }
        y[j][i] = open;
    }
}

PROGRAM(sgemm)
{
    const float(*restrict A)[M] = p[0], (*restrict B)[M] = p[1];
    float(*restrict c)[M] = p[2];
    FOR(i, M)
    {
        FOR(j, M) c[i][j] = 0;
        FOR(k, M) FOR(j, M) c[i][j] += A[i][k] * B[k][j];
    }
}
PROGRAM(conv_layer)
{
    const float(*restrict x)[66][32] = p[0], (*restrict k)[3][32][32] = p[1];
    float(*restrict y)[64][32] = p[2];
    FOR(j, 16) FOR(i, 64)
    {
        float acc[32] = {0};
        FOR(u, 3) FOR(v, 3) FOR(c, 32) FOR(n, 32) acc[n] += x[j + u][i + v][c] * k[u][v][c][n];
        FOR(n, 32) y[j][i][n] = fmaxf(acc[n], 0);
    }
}
PROGRAM(depthwise)
{
    const float(*restrict x)[66][32] = p[0], (*restrict k)[3][32] = p[1];
    float(*restrict y)[64][32] = p[2];
    FOR(j, 16) FOR(i, 64)
    {
        float acc[32] = {0};
        FOR(u, 3) FOR(v, 3) FOR(c, 32) acc[c] += x[j + u][i + v][c] * k[u][v][c];
        FOR(c, 32) y[j][i][c] = fmaxf(acc[c], 0);
    }
}
