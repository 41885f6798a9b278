// The programs of ../programs.tile as one first writes them in ISPC; ispc_programs.py builds and times them. Sizes as in
// ../bench_programs.h. Rows are a uniform loop, the points of a row a foreach; tiles of points where rays should go together.
static const uniform int H = 120, W = 640, C = 2048, D = 12, NODES = 63, M = 256;

static inline int mandel(float cr, float ci)
{
    float r = cr, i = ci;
    int n;
    for (n = 0; n < 256; ++n) {
        if (r * r + i * i > 4)
            break;
        float s = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = s;
    }
    return n;
}
export void mandelbrot(uniform int count[][W])
{
    for (uniform int j = 0; j < H; j++) {
        foreach (k = 0 ... W)
            count[j][k] = mandel(-2 + 3.0f / W * k, -1 + 2.0f / H * j);
    }
}

// The tree grows narrower by one each step.
export void binomial(const uniform float S[], const uniform float X[], uniform float y[])
{
    foreach (c = 0 ... C) {
        float v[65];
        for (uniform int k = 0; k < 64; k++)
            v[k] = max(X[c] - S[c] * exp(0.025f * (2 * k - 64)), 0.0f);
        v[64] = 0;
        for (uniform int j = 64; j > 0; j--)
            for (uniform int k = 0; k < j; k++)
                v[k] = 0.997f * (0.49f * v[k] + 0.51f * v[k + 1]);
        y[c] = v[0];
    }
}

static inline float cnd(float x)
{
    float l = abs(x);
    float k = 1 / (1 + 0.2316419f * l);
    float w = ((((1.330274429f * k - 1.821255978f) * k + 1.781477937f) * k - 0.356563782f) * k + 0.31938153f) * k;
    float p = 0.39894228040f * exp(-0.5f * l * l) * w;
    if (x > 0)
        p = 1 - p;
    return p;
}
export void black_scholes(const uniform float S[], const uniform float X[], uniform float y[])
{
    uniform float T = 2, r = 0.02f, v = 0.3f;
    foreach (i = 0 ... 8 * C) {
        float d1 = (log(S[i] / X[i]) + (r + 0.5f * v * v) * T) / (v * sqrt(T));
        float d2 = d1 - v * sqrt(T);
        y[i] = S[i] * cnd(d1) - X[i] * exp(-r * T) * cnd(d2);
    }
}

static inline float grad(int hash, float x, float y)
{
    int h = hash & 7;
    float u = h < 4 ? x : y, v = h < 4 ? y : x;
    return ((h & 1) != 0 ? -u : u) + ((h & 2) != 0 ? -2 * v : 2 * v);
}
export void noise(const uniform int P[], uniform float y[][W])
{
    for (uniform int j = 0; j < H; j++) {
        foreach (i = 0 ... W) {
            float sum = 0;
            uniform float scale = 1;
            for (uniform int o = 0; o < 4; o++) {
                float x = 0.037f * i / scale;
                float fx = floor(x);
                float u = x - fx;
                uniform float z = 0.041f * j / scale;
                uniform float fz = floor(z);
                uniform float v = z - fz;
                int X = (int)fx & 255;
                int a = P[X] + ((uniform int)fz & 255), b = P[X + 1] + ((uniform int)fz & 255);
                float su = u * u * u * (u * (u * 6 - 15) + 10);
                uniform float sv = v * v * v * (v * (v * 6 - 15) + 10);
                float n00 = grad(P[a], u, v), n10 = grad(P[b], u - 1, v);
                float n01 = grad(P[a + 1], u, v - 1), n11 = grad(P[b + 1], u - 1, v - 1);
                float low = n00 + su * (n10 - n00), high = n01 + su * (n11 - n01);
                sum += scale * (low + sv * (high - low));
                scale *= 0.5f;
            }
            y[j][i] = sum;
        }
    }
}

static inline float between(const uniform float d[][64], int z, int x, float fx)
{
    return d[z][x] * (1 - fx) + d[z][x + 1] * fx;
}
export void volume(const uniform float d[][64][64], uniform float y[][W])
{
    for (uniform int j = 0; j < H; j++) {
        foreach (i = 0 ... W) {
            float x = 2 + 58.0f / W * i, z = 2 + 58.0f / H * j, t = 1, light = 0;
            for (uniform float depth = 1; depth < 62; depth += 0.5f) {
                if (t <= 0.02f)
                    break;
                float px = x + 0.01f * depth, pz = z - 0.01f * depth;
                int ix = (int)px, iz = (int)pz;
                uniform int iy = (uniform int)depth;
                float fx = px - ix, fz = pz - iz;
                uniform float fy = depth - iy;
                float a = between(d[iy], iz, ix, fx), b = between(d[iy], iz + 1, ix, fx);
                float c = between(d[iy + 1], iz, ix, fx), e = between(d[iy + 1], iz + 1, ix, fx);
                float near = a + (b - a) * fz, far = c + (e - c) * fz;
                float density = near + (far - near) * fy;
                light += t * density * 0.4f * depth;
                t *= 1 - 0.4f * density;
            }
            y[j][i] = light;
        }
    }
}

// Outside is 0: rows near the border ask for each point.
static inline float point(const uniform float x[][H][W], uniform int k, uniform int j, int i)
{
    float v = 0;
    if (k >= 0 && k < D && j >= 0 && j < H && i >= 0 && i < W)
        v = x[k][j][i];
    return v;
}
static const uniform float STAR[4] = {0.5f, -0.25f, 0.125f, -0.0625f};
static inline void star(const uniform float x[][H][W], uniform float y[][H][W], uniform int k, uniform int j,
                        uniform int from, uniform int to)
{
    foreach (i = from ... to) {
        float sum = STAR[0] * x[k][j][i];
        for (uniform int d = 1; d < 4; d++)
            sum += STAR[d] * (x[k][j][i - d] + x[k][j][i + d] + x[k][j - d][i] + x[k][j + d][i] + x[k - d][j][i] +
                              x[k + d][j][i]);
        y[k][j][i] = sum;
    }
}
static void star_at_border(const uniform float x[][H][W], uniform float y[][H][W], uniform int k, uniform int j,
                           uniform int from, uniform int to)
{
    foreach (i = from ... to) {
        float sum = STAR[0] * x[k][j][i];
        for (uniform int d = 1; d < 4; d++)
            sum += STAR[d] * (point(x, k, j, i - d) + point(x, k, j, i + d) + point(x, k, j - d, i) +
                              point(x, k, j + d, i) + point(x, k - d, j, i) + point(x, k + d, j, i));
        y[k][j][i] = sum;
    }
}
export void stencil_3d(const uniform float x[][H][W], uniform float y[][H][W])
{
    for (uniform int k = 0; k < D; k++) {
        for (uniform int j = 0; j < H; j++) {
            uniform bool inside = k >= 3 && k < D - 3 && j >= 3 && j < H - 3;
            uniform int from = inside ? 3 : W;
            star_at_border(x, y, k, j, 0, from);
            if (inside) {
                star(x, y, k, j, 3, W - 3);
                star_at_border(x, y, k, j, W - 3, W);
            }
        }
    }
}

// Rays of a tile go through the boxes together, as in ISPC's rt: what none of them meets is skipped.
export void tracer(const uniform float lo[][3], const uniform float hi[][3], const uniform int skip[],
                   uniform float y[][W])
{
    foreach_tiled (j = 0 ... H, i = 0 ... W) {
        float dx = 1 / (2.0f / W * i - 0.9991f), dy = 1 / (0.9993f - 2.0f / H * j), best = 1e9f;
        for (uniform int k = 0; k < NODES;) {
            float x0 = lo[k][0] * dx, x1 = hi[k][0] * dx, y0 = lo[k][1] * dy, y1 = hi[k][1] * dy;
            float from = max(max(min(x0, x1), min(y0, y1)), lo[k][2]);
            float to = min(min(max(x0, x1), max(y0, y1)), min(hi[k][2], best));
            if (skip[k] == k + 1 && from <= to)
                best = min(best, from);
            k = any(from <= to) ? k + 1 : skip[k];
        }
        y[j][i] = best;
    }
}
// Each ray by itself, as in programs.tile.
export void tracer_alone(const uniform float lo[][3], const uniform float hi[][3], const uniform int skip[],
                         uniform float y[][W])
{
    for (uniform int j = 0; j < H; j++) {
        foreach (i = 0 ... W) {
            float dx = 1 / (2.0f / W * i - 0.9991f), dy = 1 / (0.9993f - 2.0f / H * j), best = 1e9f;
            int k = 0;
            while (k < NODES) {
                float x0 = lo[k][0] * dx, x1 = hi[k][0] * dx, y0 = lo[k][1] * dy, y1 = hi[k][1] * dy;
                float from = max(max(min(x0, x1), min(y0, y1)), lo[k][2]);
                float to = min(min(max(x0, x1), max(y0, y1)), min(hi[k][2], best));
                if (from <= to && skip[k] == k + 1)
                    best = min(best, from);
                k = from <= to ? k + 1 : skip[k];
            }
            y[j][i] = best;
        }
    }
}

export void blur(const uniform unsigned int16 x[][W + 8], uniform unsigned int16 y[][W])
{
    uniform unsigned int16 rows[3][W];
    for (uniform int j = 0; j < H + 2; j++) {
        uniform int to = j % 3;
        foreach (i = 0 ... W)
            rows[to][i] = (x[j][i] + x[j][i + 1] + x[j][i + 2]) / (unsigned int16)3;
        if (j >= 2) {
            foreach (i = 0 ... W)
                y[j - 2][i] = (rows[0][i] + rows[1][i] + rows[2][i]) / (unsigned int16)3;
        }
    }
}

static uniform float grey[H][W];
export void unsharp(const uniform float x[][H][W], uniform float y[][H][W])
{
    const uniform float k0 = 0.26596f, k1 = 0.21297f, k2 = 0.10934f, k3 = 0.03600f;
    for (uniform int j = 0; j < H; j++) {
        foreach (i = 0 ... W)
            grey[j][i] = 0.299f * x[0][j][i] + 0.587f * x[1][j][i] + 0.114f * x[2][j][i];
    }
    for (uniform int j = 0; j < H; j++) {
        uniform float down[W + 6];
        uniform int r[7];
        for (uniform int d = 0; d < 7; d++)
            r[d] = clamp(j + d - 3, 0, H - 1);
        foreach (i = 0 ... W)
            down[i + 3] = k3 * (grey[r[0]][i] + grey[r[6]][i]) + k2 * (grey[r[1]][i] + grey[r[5]][i]) +
                          k1 * (grey[r[2]][i] + grey[r[4]][i]) + k0 * grey[r[3]][i];
        for (uniform int i = 0; i < 3; i++) {
            down[i] = down[3];
            down[W + 3 + i] = down[W + 2];
        }
        foreach (i = 0 ... W) {
            float soft = k3 * (down[i] + down[i + 6]) + k2 * (down[i + 1] + down[i + 5]) +
                         k1 * (down[i + 2] + down[i + 4]) + k0 * down[i + 3];
            float ratio = (2 * grey[j][i] - soft) / grey[j][i];
            for (uniform int c = 0; c < 3; c++)
                y[c][j][i] = ratio * x[c][j][i];
        }
    }
}

static uniform float padded[H + 6][W + 6];
static void pad(const uniform float x[][W])
{
    for (uniform int j = 0; j < H + 6; j++) {
        uniform int r = clamp(j - 3, 0, H - 1);
        foreach (i = 0 ... W)
            padded[j][i + 3] = x[r][i];
        for (uniform int i = 0; i < 3; i++) {
            padded[j][i] = x[r][0];
            padded[j][W + 3 + i] = x[r][W - 1];
        }
    }
}
export void nl_means(const uniform float x[][W], uniform float y[][W])
{
    pad(x);
    for (uniform int j = 0; j < H; j++) {
        foreach (i = 0 ... W) {
            float sum = 0, weights = 0;
            for (uniform int dy = 1; dy < 6; dy++) {
                for (uniform int dx = 1; dx < 6; dx++) {
                    float d = 0;
                    for (uniform int u = -1; u <= 1; u++) {
                        for (uniform int v = -1; v <= 1; v++) {
                            float e = padded[j + 3 + u][i + 3 + v] - padded[j + u + dy][i + v + dx];
                            d += e * e;
                        }
                    }
                    float w = exp(-8 * d);
                    sum += w * padded[j + dy][i + dx];
                    weights += w;
                }
            }
            y[j][i] = sum / weights;
        }
    }
}

static uniform float most_of_row[H][W];
export void max_filter(const uniform float x[][W], uniform float y[][W])
{
    for (uniform int j = 0; j < H; j++) {
        uniform float row[W + 12];
        foreach (i = 0 ... W)
            row[i + 6] = x[j][i];
        for (uniform int i = 0; i < 6; i++) {
            row[i] = x[j][0];
            row[W + 6 + i] = x[j][W - 1];
        }
        foreach (i = 0 ... W) {
            float most = row[i];
            for (uniform int d = 1; d < 13; d++)
                most = max(most, row[i + d]);
            most_of_row[j][i] = most;
        }
    }
    for (uniform int j = 0; j < H; j++) {
        foreach (i = 0 ... W) {
            float most = most_of_row[j][i];
            for (uniform int d = -6; d <= 6; d++)
                most = max(most, most_of_row[clamp(j + d, 0, H - 1)][i]);
            y[j][i] = most;
        }
    }
}

export void haar(uniform float x[][2 * W], uniform float y[][H][W])
{
    for (uniform int j = 0; j < H; j++) {
        for (uniform int i = 0; i < W; i += programCount) {
            float a, b;
            aos_to_soa2(&x[j][2 * i], &a, &b);
            y[0][j][i + programIndex] = 0.5f * (a + b);
            y[1][j][i + programIndex] = 0.5f * (a - b);
        }
    }
}
export void inverse_haar(const uniform float x[][H][W], uniform float y[][2 * W])
{
    for (uniform int j = 0; j < H; j++) {
        for (uniform int i = 0; i < W; i += programCount) {
            float a = x[0][j][i + programIndex], b = x[1][j][i + programIndex];
            soa_to_aos2(a + b, a - b, &y[j][2 * i]);
        }
    }
}

// A row with zeros beside it.
static inline void widen(const uniform float x[], uniform float row[], uniform int n)
{
    row[0] = row[1] = row[n + 2] = row[n + 3] = 0;
    foreach (i = 0 ... n)
        row[i + 2] = x[i];
}
export void daubechies(const uniform float x[][2 * W], uniform float y[][H][W])
{
    uniform float row[2 * W + 4];
    for (uniform int j = 0; j < H; j++) {
        widen(x[j], row, 2 * W);
        for (uniform int i = 0; i < W; i += programCount) {
            float a, b, c, d, unused;
            aos_to_soa2(&row[2 * i], &unused, &a);
            aos_to_soa2(&row[2 * i + 2], &b, &c);
            aos_to_soa2(&row[2 * i + 4], &d, &unused);
            y[0][j][i + programIndex] = 0.4829629131f * a + 0.8365163037f * b + 0.2241438680f * c - 0.1294095226f * d;
            y[1][j][i + programIndex] = -0.1294095226f * a - 0.2241438680f * b + 0.8365163037f * c - 0.4829629131f * d;
        }
    }
}
export void inverse_daubechies(const uniform float x[][H][W], uniform float y[][2 * W])
{
    for (uniform int j = 0; j < H; j++) {
        for (uniform int i = 0; i < W; i += programCount) {
            float a = x[0][j][i + programIndex], b = x[1][j][i + programIndex], c = 0, d = 0;
            if (i + programIndex + 1 < W) {
                c = x[0][j][i + programIndex + 1];
                d = x[1][j][i + programIndex + 1];
            }
            soa_to_aos2(0.2241438680f * a + 0.8365163037f * b + 0.4829629131f * c - 0.1294095226f * d,
                        -0.1294095226f * a - 0.4829629131f * b + 0.8365163037f * c - 0.2241438680f * d, &y[j][2 * i]);
        }
    }
}

export void pyramid_down(const uniform float x[][2 * W], uniform float y[][W])
{
    uniform float row[2 * W + 4], zero[2 * W];
    row[0] = row[1] = row[2 * W + 2] = row[2 * W + 3] = 0;
    foreach (i = 0 ... 2 * W)
        zero[i] = 0;
    for (uniform int j = 0; j < H; j++) {
        const uniform float *uniform a = j > 0 ? &x[2 * j - 1][0] : &zero[0], *uniform b = &x[2 * j][0];
        const uniform float *uniform c = &x[2 * j + 1][0], *uniform d = j < H - 1 ? &x[2 * j + 2][0] : &zero[0];
        foreach (i = 0 ... 2 * W)
            row[i + 2] = 0.125f * (a[i] + d[i]) + 0.375f * (b[i] + c[i]);
        for (uniform int i = 0; i < W; i += programCount) {
            float l, m, n, r, unused;
            aos_to_soa2(&row[2 * i], &unused, &l);
            aos_to_soa2(&row[2 * i + 2], &m, &n);
            aos_to_soa2(&row[2 * i + 4], &r, &unused);
            y[j][i + programIndex] = 0.125f * (l + r) + 0.375f * (m + n);
        }
    }
}
export void pyramid_up(const uniform float x[][W], uniform float y[][2 * W])
{
    uniform float row[W + 2];
    for (uniform int j = 0; j < 2 * H; j++) {
        uniform int near = j / 2, far = clamp(j % 2 != 0 ? (j + 1) / 2 : (j - 1) / 2, 0, H - 1);
        foreach (i = 0 ... W)
            row[i + 1] = 0.75f * x[near][i] + 0.25f * x[far][i];
        row[0] = row[1];
        row[W + 1] = row[W];
        for (uniform int i = 0; i < W; i += programCount) {
            float left = row[i + programIndex], mid = row[i + programIndex + 1], right = row[i + programIndex + 2];
            soa_to_aos2(0.75f * mid + 0.25f * left, 0.75f * mid + 0.25f * right, &y[j][2 * i]);
        }
    }
}

static inline unsigned int16 raw(const uniform unsigned int16 x[][W], uniform int j, int i)
{
    unsigned int16 v = 0;
    if (j >= 0 && j < H && i >= 0 && i < W)
        v = x[j][i];
    return v;
}
static inline unsigned int8 developed(const uniform unsigned int8 curve[], unsigned int16 here, unsigned int16 most,
                                      unsigned int16 l, unsigned int16 r, unsigned int16 u, unsigned int16 d,
                                      bool is_green)
{
    unsigned int16 clean = min(here, most), across = l > r ? l - r : r - l, down = u > d ? u - d : d - u;
    unsigned int16 green = down < across ? avg_up(u, d) : avg_up(l, r);
    unsigned int16 v = is_green ? clean : green;
    return curve[min(v, (uniform unsigned int16)1023)];
}
static void develop_border(const uniform unsigned int16 x[][W], const uniform unsigned int8 curve[],
                           uniform unsigned int8 y[][W], uniform int j, uniform int from, uniform int to)
{
    foreach (i = from ... to)
        y[j][i] = developed(curve, x[j][i],
                            max(max(raw(x, j, i - 2), raw(x, j, i + 2)), max(raw(x, j - 2, i), raw(x, j + 2, i))),
                            raw(x, j, i - 1), raw(x, j, i + 1), raw(x, j - 1, i), raw(x, j + 1, i), (i + j) % 2 == 0);
}
export void camera(const uniform unsigned int16 x[][W], const uniform unsigned int8 curve[],
                   uniform unsigned int8 y[][W])
{
    for (uniform int j = 0; j < H; j++) {
        uniform int from = j >= 2 && j < H - 2 ? 2 : W;
        develop_border(x, curve, y, j, 0, from);
        if (from == 2) {
            foreach (i = 2 ... W - 2)
                y[j][i] = developed(curve, x[j][i], max(max(x[j][i - 2], x[j][i + 2]), max(x[j - 2][i], x[j + 2][i])),
                                    x[j][i - 1], x[j][i + 1], x[j - 1][i], x[j + 1][i], (i + j) % 2 == 0);
            develop_border(x, curve, y, j, W - 2, W);
        }
    }
}

static inline float hits(float ox, float oy, float oz, float dx, float dy, float dz, uniform float cx, uniform float cz)
{
    float x = ox - cx, y = oy, z = oz - cz;
    float b = x * dx + y * dy + z * dz;
    float d = b * b - (x * x + y * y + z * z - 0.25f);
    float t = -b - sqrt(max(d, 0.0f));
    return d > 0 && t > 0 ? t : 1e17f;
}
static inline float nearest(float ox, float oy, float oz, float dx, float dy, float dz)
{
    return min(min(hits(ox, oy, oz, dx, dy, dz, -1, -2.2f), hits(ox, oy, oz, dx, dy, dz, 0, -2)),
               hits(ox, oy, oz, dx, dy, dz, 1, -2.2f));
}
export void occlusion(uniform float y[][W])
{
    foreach_tiled (j = 0 ... H, i = 0 ... W) {
        float px = 2.0f / W * i - 1, py = 1 - 2.0f / H * j;
        float n = rsqrt(px * px + py * py + 1);
        float dx = px * n, dy = py * n, dz = -n, open = 0;
        float hit = min(nearest(0, 0, 0, dx, dy, dz), dy < -1e-3f ? -0.5f / dy : 1e17f);
        unsigned int seed = j * 7919 + i * 104729;
        cif (hit < 1e16f) {
            for (uniform int k = 0; k < 16; k++) {
                seed = seed * 1664525 + 1013904223;
                float u = (seed >> 8) * 5.9604645e-8f;
                seed = seed * 1664525 + 1013904223;
                float v = (seed >> 8) * 5.9604645e-8f, r = sqrt(u), s, c;
                sincos(6.2831853f * v, &s, &c);
                float t = nearest(hit * dx, hit * dy + 1e-3f, hit * dz, r * c, sqrt(1 - u), r * s);
                open += t > 1e16f ? 0.0625f : 0;
            }
        }
        y[j][i] = open;
    }
}

// A part of eight rows in registers, as ISPC's own does with two.
export void sgemm(const uniform float A[][M], const uniform float B[][M], uniform float c[][M])
{
    for (uniform int m = 0; m < M; m += 8) {
        foreach (n = 0 ... M) {
            float acc[8];
            for (uniform int r = 0; r < 8; r++)
                acc[r] = 0;
            for (uniform int k = 0; k < M; k++) {
                float b = B[k][n];
                for (uniform int r = 0; r < 8; r++)
                    acc[r] += A[m + r][k] * b;
            }
            for (uniform int r = 0; r < 8; r++)
                c[m + r][n] = acc[r];
        }
    }
}
// Channels are lanes, eight points in registers.
export void conv_layer(const uniform float x[][66][32], const uniform float k[][3][32][32], uniform float y[][64][32])
{
    for (uniform int j = 0; j < 16; j++) {
        for (uniform int i = 0; i < 64; i += 8) {
            foreach (n = 0 ... 32) {
                float acc[8];
                for (uniform int p = 0; p < 8; p++)
                    acc[p] = 0;
                for (uniform int u = 0; u < 3; u++) {
                    for (uniform int v = 0; v < 3; v++) {
                        for (uniform int c = 0; c < 32; c++) {
                            float w = k[u][v][c][n];
                            for (uniform int p = 0; p < 8; p++)
                                acc[p] += x[j + u][i + p + v][c] * w;
                        }
                    }
                }
                for (uniform int p = 0; p < 8; p++)
                    y[j][i + p][n] = max(acc[p], 0.0f);
            }
        }
    }
}
export void depthwise(const uniform float x[][66][32], const uniform float k[][3][32], uniform float y[][64][32])
{
    for (uniform int j = 0; j < 16; j++) {
        foreach (c = 0 ... 32) {
            for (uniform int i = 0; i < 64; i++) {
                float acc = 0;
                for (uniform int u = 0; u < 3; u++)
                    for (uniform int v = 0; v < 3; v++)
                        acc += x[j + u][i + v][c] * k[u][v][c];
                y[j][i][c] = max(acc, 0.0f);
            }
        }
    }
}
