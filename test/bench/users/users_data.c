/* Searches, sparse products, codecs, sorting and layers of users.tile in plain C. */
#include "users.h"

static inline int rf(int v, int n)
{
    return v < 0 ? -v : v >= n ? 2 * n - 2 - v : v;
}
void spmv_csr(const i32 *R p, const i32 *R c, const f *R v, const f *R x, f *R y, int N)
{
    for (int r = 0; r < N; r++) {
        f s = 0;
        for (int k = p[r]; k < p[r + 1]; k++)
            s += v[k] * x[c[k]];
        y[r] = s;
    }
}
void spmv_ell(const i32 *R c, const f *R v, const f *R x, f *R y, int K, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = 0;
    for (int k = 0; k < K; k++)
        for (int i = 0; i < N; i++)
            y[i] += v[(size_t)k * N + i] * x[c[(size_t)k * N + i]];
}
void searchsorted(const f *R t, const f *R x, i32 *R y, int M, int N)
{
    for (int i = 0; i < N; i++) {
        int lo = 0, n = M;
        f v = x[i];
        while (n > 0) {
            int h = n / 2;
            int less = t[lo + h] < v;
            lo = less ? lo + h + 1 : lo;
            n = less ? n - h - 1 : h;
        }
        y[i] = lo;
    }
}
void interp(const f *R t, const f *R x, f *R y, float x0, float s, int M, int N)
{
    for (int i = 0; i < N; i++) {
        f u = (x[i] - x0) * s;
        u = u < 0 ? 0 : u > M - 1 - 0.001f ? M - 1 - 0.001f : u;
        int k = (int)u;
        f d = u - k;
        y[i] = t[k] + d * (t[k + 1] - t[k]);
    }
}
#define LF(x, y, z, a, b, c)                                                                       \
    f a = 10 * (y - x), b = x * (28 - (z)) - (y), c = (x) * (y)-8.f / 3 * (z)
void lorenz(const f *R p, f *R q, int T, int N)
{
    for (int i = 0; i < N; i += 16) {
        f X[16], Y[16], Z[16];
        for (int l = 0; l < 16; l++)
            X[l] = p[i + l], Y[l] = p[N + i + l], Z[l] = p[2 * N + i + l];
        for (int t = 0; t < T; t++)
            for (int l = 0; l < 16; l++) {
                f x = X[l], y = Y[l], z = Z[l];
                LF(x, y, z, a0, a1, a2);
                f x1 = x + .005f * a0, y1 = y + .005f * a1, z1 = z + .005f * a2;
                LF(x1, y1, z1, b0, b1, b2);
                f x2 = x + .005f * b0, y2 = y + .005f * b1, z2 = z + .005f * b2;
                LF(x2, y2, z2, c0, c1, c2);
                f x3 = x + .01f * c0, y3 = y + .01f * c1, z3 = z + .01f * c2;
                LF(x3, y3, z3, d0, d1, d2);
                X[l] = x + .01f / 6 * (a0 + 2 * b0 + 2 * c0 + d0);
                Y[l] = y + .01f / 6 * (a1 + 2 * b1 + 2 * c1 + d1);
                Z[l] = z + .01f / 6 * (a2 + 2 * b2 + 2 * c2 + d2);
            }
        for (int l = 0; l < 16; l++)
            q[i + l] = X[l], q[N + i + l] = Y[l], q[2 * N + i + l] = Z[l];
    }
}
void collatz(i32 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u32 n = i + 1;
        int c = 0;
        while (n > 1) {
            n = n & 1 ? 3 * n + 1 : n >> 1;
            c++;
        }
        y[i] = c;
    }
}
void gcds(const u32 *R a, const u32 *R b, u32 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u32 u = a[i], v = b[i];
        while (v) {
            u32 r = u % v;
            u = v;
            v = r;
        }
        y[i] = u;
    }
}
static inline f gr(int h, f a, f b)
{
    return (h & 1 ? -a : a) + (h & 2 ? -b : b);
}
void perlin(f *R y, const i32 *R p, float s, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            f x = s * i, v = s * j;
            f fx = floorf(x), fv = floorf(v);
            int xi = (int)fx & 255, yi = (int)fv & 255;
            f a = x - fx, b = v - fv;
            f u = a * a * a * (a * (a * 6 - 15) + 10), w = b * b * b * (b * (b * 6 - 15) + 10);
            int A = p[xi] + yi, B = p[xi + 1] + yi;
            f n00 = gr(p[A], a, b), n10 = gr(p[B], a - 1, b), n01 = gr(p[A + 1], a, b - 1),
              n11 = gr(p[B + 1], a - 1, b - 1);
            f t = n00 + u * (n10 - n00), l = n01 + u * (n11 - n01);
            y[(size_t)j * W + i] = t + w * (l - t);
        }
}
void raymarch(f *R y, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            f dx = ((f)i / W - .5f) * 1.6f, dy = ((f)j / H - .5f) * 1.6f,
              n = 1 / sqrtf(dx * dx + dy * dy + 1);
            dx *= n;
            dy *= n;
            f dz = n, t = 0;
            for (int k = 0; k < 64; k++) {
                f px = t * dx, py = t * dy, pz = t * dz - 3;
                f q = sqrtf(px * px + pz * pz) - .8f;
                f d = fminf(sqrtf(q * q + py * py) - .3f, py + 1);
                if (!(d > .001f && t < 20))
                    break;
                t += d;
            }
            y[(size_t)j * W + i] = t;
        }
}
void triangles(const f *R o, const f *R d, const f *R v, f *R t, i32 *R hit, int N, int M)
{
    for (int i = 0; i < N; i += 16) {
        f B[16];
        i32 Wh[16];
        f O[3][16], D[3][16];
        for (int l = 0; l < 16; l++) {
            B[l] = 1e30f;
            Wh[l] = -1;
            for (int k = 0; k < 3; k++)
                O[k][l] = o[3 * (i + l) + k], D[k][l] = d[3 * (i + l) + k];
        }
        for (int k = 0; k < M; k++) {
            const f *q = v + 9 * k;
            f ex = q[3] - q[0], ey = q[4] - q[1], ez = q[5] - q[2], fx = q[6] - q[0],
              fy = q[7] - q[1], fz = q[8] - q[2];
            for (int l = 0; l < 16; l++) {
                f dx = D[0][l], dy = D[1][l], dz = D[2][l];
                f px = dy * fz - dz * fy, py = dz * fx - dx * fz, pz = dx * fy - dy * fx;
                f inv = 1 / (ex * px + ey * py + ez * pz);
                f tx = O[0][l] - q[0], ty = O[1][l] - q[1], tz = O[2][l] - q[2];
                f u = (tx * px + ty * py + tz * pz) * inv;
                f qx = ty * ez - tz * ey, qy = tz * ex - tx * ez, qz = tx * ey - ty * ex;
                f w = (dx * qx + dy * qy + dz * qz) * inv, s = (fx * qx + fy * qy + fz * qz) * inv;
                int ok = (u >= 0) & (w >= 0) & (u + w <= 1) & (s > 0) & (s < B[l]);
                B[l] = ok ? s : B[l];
                Wh[l] = ok ? k : Wh[l];
            }
        }
        for (int l = 0; l < 16; l++)
            t[i + l] = B[l], hit[i + l] = Wh[l];
    }
}
void levenshtein(const u8 *R x, const u8 *R q, i32 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        int r[17];
        for (int k = 0; k < 17; k++)
            r[k] = k;
        for (int j = 0; j < 16; j++) {
            u8 c = x[16 * i + j];
            int diag = r[0];
            r[0] = j + 1;
            for (int k = 0; k < 16; k++) {
                int up = r[k + 1], m = (up < r[k] ? up : r[k]) + 1, n = diag + (c != q[k]);
                r[k + 1] = m < n ? m : n;
                diag = up;
            }
        }
        y[i] = r[16];
    }
}
void crc32(const u8 *R x, const u32 *R t, u32 *R y, int N, int L)
{
    for (int i = 0; i < N; i++) {
        u32 c = ~0u;
        for (int k = 0; k < L; k++)
            c = t[(c ^ x[(size_t)i * L + k]) & 255] ^ c >> 8;
        y[i] = ~c;
    }
}
void iou(const f *R a, const f *R b, f *R y, int N, int M)
{
    for (int i = 0; i < N; i++) {
        const f *p = a + 4 * i;
        for (int j = 0; j < M; j++) {
            const f *q = b + 4 * j;
            f w = fminf(p[2], q[2]) - fmaxf(p[0], q[0]), h = fminf(p[3], q[3]) - fmaxf(p[1], q[1]);
            w = w > 0 ? w : 0;
            h = h > 0 ? h : 0;
            f n = w * h;
            y[(size_t)i * M + j] =
                n / ((p[2] - p[0]) * (p[3] - p[1]) + (q[2] - q[0]) * (q[3] - q[1]) - n + 1e-9f);
        }
    }
}
void sad(const u8 *R a, const u8 *R b, u16 *R y, int H, int W)
{
    for (int j = 0; j < H / 8; j++)
        for (int i = 0; i < W / 8; i++)
            for (int u = 0; u < 9; u++)
                for (int v = 0; v < 9; v++) {
                    int s = 0;
                    for (int m = 0; m < 8; m++) {
                        int jj = 8 * j + u - 4 + m;
                        for (int n = 0; n < 8; n++) {
                            int ii = 8 * i + v - 4 + n;
                            int t =
                                jj < 0 || jj >= H || ii < 0 || ii >= W ? 0 : b[(size_t)jj * W + ii];
                            s += abs(a[(size_t)(8 * j + m) * W + 8 * i + n] - t);
                        }
                    }
                    y[((size_t)j * (W / 8) + i) * 81 + u * 9 + v] = s;
                }
}
void sse(const u8 *R a, const u8 *R b, i32 *R y, int N)
{
    for (int g = 0; g < N / 4096; g++) {
        i32 s = 0;
        for (int i = 0; i < 4096; i++) {
            int d = a[g * 4096 + i] - b[g * 4096 + i];
            s += d * d;
        }
        y[g] = s;
    }
}
void demosaic(const u8 *R x, u8 *R y, int H, int W)
{
    for (int j = 0; j < H; j++) {
        const u8 *R a = x + (size_t)rf(j - 1, H) * W, *R b = x + (size_t)j * W,
                    *R c = x + (size_t)rf(j + 1, H) * W;
        u8 *R o = y + (size_t)j * W * 3;
#define PIXEL(i, l, r)                                                                             \
    {                                                                                              \
        int C = b[i], h = (b[l] + b[r] + 1) >> 1, v = (a[i] + c[i] + 1) >> 1,                      \
            d = (a[l] + a[r] + c[l] + c[r] + 2) >> 2, p = (b[l] + b[r] + a[i] + c[i] + 2) >> 2;    \
        int ev = (i) % 2 == 0;                                                                     \
        o[3 * (i)] = j % 2 == 0 ? (ev ? C : h) : (ev ? v : d);                                     \
        o[3 * (i) + 1] = j % 2 == 0 ? (ev ? p : C) : (ev ? C : p);                                 \
        o[3 * (i) + 2] = j % 2 == 0 ? (ev ? d : v) : (ev ? h : C);                                 \
    }
        PIXEL(0, 1, 1)
        for (int i = 1; i < W - 1; i++)
            PIXEL(i, i - 1, i + 1) PIXEL(W - 1, W - 2, W - 2)
    }
}
void yuv420(const u8 *R l, const u8 *R u, const u8 *R v, u8 *R y, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            int U = u[(size_t)(j / 2) * (W / 2) + i / 2] - 128,
                V = v[(size_t)(j / 2) * (W / 2) + i / 2] - 128,
                t = 298 * (l[(size_t)j * W + i] - 16) + 128;
            u8 *o = y + ((size_t)j * W + i) * 3;
            o[0] = c8((t + 409 * V) >> 8);
            o[1] = c8((t - 100 * U - 208 * V) >> 8);
            o[2] = c8((t + 516 * U) >> 8);
        }
}
void dither(const u8 *R x, u8 *R y, const u8 *R m, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++)
            y[(size_t)j * W + i] = x[(size_t)j * W + i] > m[(j & 7) * 8 + (i & 7)] ? 255 : 0;
}
void mulaw(const i16 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        int s = x[i], sg = s < 0 ? 0x80 : 0, m = abs(s);
        m = (m < 32635 ? m : 32635) + 132;
        int e = 24 - __builtin_clz(m), q = (m >> (e + 3)) & 15;
        y[i] = ~(sg | e << 4 | q);
    }
}
void biquad(const f *R x, f *R y, const f *R k, int T, int C)
{
    f *s1 = calloc(C, 4), *s2 = calloc(C, 4);
    for (int t = 0; t < T; t++)
        for (int c = 0; c < C; c++) {
            f v = x[(size_t)t * C + c], o = k[0] * v + s1[c];
            s1[c] = k[1] * v - k[3] * o + s2[c];
            s2[c] = k[2] * v - k[4] * o;
            y[(size_t)t * C + c] = o;
        }
    free(s1);
    free(s2);
}
void resample(const f *R x, f *R y, float r, int N, int M)
{
    for (int i = 0; i < M; i++) {
        f p = i * r;
        int k = (int)p;
        f d = p - k;
        y[i] = x[k] + d * (x[k + 1] - x[k]);
    }
}
void autocorr(const f *R x, f *R y, int N, int L)
{
    for (int l = 0; l < L; l++) {
        f s = 0;
        for (int i = 0; i < N - l; i++)
            s += x[i] * x[i + l];
        y[l] = s;
    }
}
void fdtd(const f *R e, f *R hx, f *R hy, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            size_t k = (size_t)j * W + i;
            hx[k] -= .5f * ((j + 1 < H ? e[k + W] : 0) - e[k]);
            hy[k] += .5f * ((i + 1 < W ? e[k + 1] : 0) - e[k]);
        }
}
void redblack(f *R u, const f *R g, int colour, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = (colour - j) & 1; i < W; i += 2) {
            size_t k = (size_t)j * W + i;
            f n = .25f * ((j ? u[k - W] : 0) + (j + 1 < H ? u[k + W] : 0) + (i ? u[k - 1] : 0) +
                          (i + 1 < W ? u[k + 1] : 0) - g[k]);
            u[k] += 1.5f * (n - u[k]);
        }
}
void restrict3(const f *R x, f *R y, int D, int H, int W)
{
    for (int k = 0; k < D; k++)
        for (int j = 0; j < H; j++)
            for (int i = 0; i < W; i++) {
                f s = 0;
                for (int a = 0; a < 2; a++)
                    for (int b = 0; b < 2; b++)
                        for (int c = 0; c < 2; c++)
                            s += x[((size_t)(2 * k + a) * 2 * H + 2 * j + b) * 2 * W + 2 * i + c];
                y[((size_t)k * H + j) * W + i] = .125f * s;
            }
}
static inline f lp(f a, f b, f t)
{
    return a + t * (b - a);
}
void trilinear(const f *R x, const f *R p, f *R y, int D, int H, int W, int N)
{
    for (int n = 0; n < N; n++) {
        f u = p[3 * n] * (W - 1), v = p[3 * n + 1] * (H - 1), w = p[3 * n + 2] * (D - 1);
        int i = (int)u, j = (int)v, k = (int)w;
        u -= i;
        v -= j;
        w -= k;
        const f *a = x + ((size_t)k * H + j) * W + i, *b = a + W, *c = a + (size_t)H * W,
                *d = c + W;
        y[n] = lp(lp(lp(a[0], a[1], u), lp(b[0], b[1], u), v),
                  lp(lp(c[0], c[1], u), lp(d[0], d[1], u), v), w);
    }
}
void floyd(f *R d, int k, int N)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            f t = d[(size_t)i * N + k] + d[(size_t)k * N + j];
            d[(size_t)i * N + j] = d[(size_t)i * N + j] < t ? d[(size_t)i * N + j] : t;
        }
}
void minplus(const f *R a, const f *R b, f *R c, int N, int K, int M)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < M; j++)
            c[(size_t)i * M + j] = INFINITY;
        for (int k = 0; k < K; k++) {
            f s = a[(size_t)i * K + k];
            for (int j = 0; j < M; j++) {
                f t = s + b[(size_t)k * M + j];
                c[(size_t)i * M + j] = c[(size_t)i * M + j] < t ? c[(size_t)i * M + j] : t;
            }
        }
    }
}
void pack_bits(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u8 v = 0;
        for (int k = 0; k < 8; k++)
            v |= (x[8 * i + k] != 0) << k;
        y[i] = v;
    }
}
void unpack_bits(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 8; k++)
            y[8 * i + k] = x[i] >> k & 1;
}
void quant_rows(const f *R x, i8 *R y, f *R s, int N, int C)
{
    for (int r = 0; r < N; r++) {
        const f *p = x + (size_t)r * C;
        f m = 0;
        for (int c = 0; c < C; c++) {
            f v = fabsf(p[c]);
            m = v > m ? v : m;
        }
        f k = m > 0 ? 127 / m : 0;
        for (int c = 0; c < C; c++)
            y[(size_t)r * C + c] = (i8)(i32)rintf(p[c] * k);
        s[r] = m / 127;
    }
}
void dequant4(const u8 *R x, const f *R s, f *R y, int N, int C2, int G)
{
    for (int r = 0; r < N; r++)
        for (int g = 0; g < G; g++) {
            f k = s[r * G + g];
            for (int c = 0; c < 32; c++) {
                u8 v = x[(size_t)r * C2 + g * 32 + c];
                y[((size_t)r * C2 + g * 32 + c) * 2] = ((v & 15) - 8.f) * k;
                y[((size_t)r * C2 + g * 32 + c) * 2 + 1] = ((v >> 4) - 8.f) * k;
            }
        }
}
void embedding_bag(const f *R e, const i32 *R id, f *R y, int C, int N, int K)
{
    for (int n = 0; n < N; n++) {
        f *R o = y + (size_t)n * C;
        for (int c = 0; c < C; c++)
            o[c] = 0;
        for (int k = 0; k < K; k++) {
            const f *R p = e + (size_t)id[n * K + k] * C;
            for (int c = 0; c < C; c++)
                o[c] += p[c];
        }
    }
}
void rope(const f *R x, const f *R c, const f *R s, f *R y, int T, int E)
{
    for (int t = 0; t < T; t++)
        for (int i = 0; i < E; i++) {
            f a = x[((size_t)t * E + i) * 2], b = x[((size_t)t * E + i) * 2 + 1],
              co = c[(size_t)t * E + i], si = s[(size_t)t * E + i];
            y[((size_t)t * E + i) * 2] = a * co - b * si;
            y[((size_t)t * E + i) * 2 + 1] = a * si + b * co;
        }
}
void top8(const f *R x, f *R v, i32 *R w, int N)
{
    for (int r = 0; r < N; r++) {
        f b[8];
        i32 q[8];
        int n = 0;
        for (int i = 0; i < 128; i++) {
            f t = x[r * 128 + i];
            if (n == 8 && !(t > b[7]))
                continue;
            int k = n < 8 ? n++ : 7;
            while (k > 0 && b[k - 1] < t) {
                b[k] = b[k - 1];
                q[k] = q[k - 1];
                k--;
            }
            b[k] = t;
            q[k] = i;
        }
        memcpy(v + 8 * r, b, 32);
        memcpy(w + 8 * r, q, 32);
    }
}
void sort64(const f *R x, f *R y, int N)
{
    memcpy(y, x, (size_t)N * 256);
    for (int r = 0; r < N; r++) {
        f *a = y + 64 * r;
        for (int i = 1; i < 64; i++) {
            f v = a[i];
            int k = i;
            while (k > 0 && a[k - 1] > v) {
                a[k] = a[k - 1];
                k--;
            }
            a[k] = v;
        }
    }
}
void argmax_rows(const f *R x, i32 *R y, f *R v, int N, int C)
{
    for (int r = 0; r < N; r++) {
        const f *p = x + (size_t)r * C;
        f m = -INFINITY;
        for (int c = 0; c < C; c++)
            m = p[c] > m ? p[c] : m;
        int w = 0;
        while (p[w] != m)
            w++;
        y[r] = w;
        v[r] = m;
    }
}
void hist256(const u8 *R x, i32 *R h, int N)
{
    u32 a[4][256];
    memset(a, 0, sizeof a);
    for (int i = 0; i < N; i += 4) {
        a[0][x[i]]++;
        a[1][x[i + 1]]++;
        a[2][x[i + 2]]++;
        a[3][x[i + 3]]++;
    }
    for (int k = 0; k < 256; k++)
        h[k] += a[0][k] + a[1][k] + a[2][k] + a[3][k];
}
void scan_rows(const i32 *R x, i32 *R y, int N, int C)
{
    for (int r = 0; r < N; r++) {
        i32 s = 0;
        for (int c = 0; c < C; c++)
            y[(size_t)r * C + c] = s += x[(size_t)r * C + c];
    }
}
void compact(const f *R x, f *R y, i32 *R n, float t, int N)
{
    int k = n[0];
    for (int i = 0; i < N; i++) {
        y[k] = x[i];
        k += x[i] > t;
    }
    n[0] = 0;
}
void segment_sum(const f *R x, const i32 *R g, f *R s, int N)
{
    for (int i = 0; i < N; i++)
        s[g[i]] += x[i];
}
void walsh(const f *R x, f *R y, int N)
{
    for (int r = 0; r < N; r++) {
        f t[64];
        memcpy(t, x + 64 * r, 256);
        for (int h = 1; h < 64; h *= 2) {
            f u[64];
            for (int b = 0; b < 64; b += 2 * h)
                for (int k = 0; k < h; k++) {
                    f p = t[b + k], q = t[b + h + k];
                    u[b + k] = p + q;
                    u[b + h + k] = p - q;
                }
            memcpy(t, u, 256);
        }
        memcpy(y + 64 * r, t, 256);
    }
}
static inline f ln(f v)
{
    return v > 0.04045f ? powf((v + 0.055f) / 1.055f, 2.4f) : v / 12.92f;
}
static inline f lf(f t)
{
    return t > 0.008856f ? cbrtf(t) : 7.787f * t + 16.f / 116;
}
void lab(const f *R x, f *R y, int N)
{
    for (int i = 0; i < N; i++) {
        f r = ln(x[3 * i]), g = ln(x[3 * i + 1]), b = ln(x[3 * i + 2]);
        f X = lf((.4124f * r + .3576f * g + .1805f * b) / .95047f),
          Y = lf(.2126f * r + .7152f * g + .0722f * b),
          Z = lf((.0193f * r + .1192f * g + .9505f * b) / 1.08883f);
        y[3 * i] = 116 * Y - 16;
        y[3 * i + 1] = 500 * (X - Y);
        y[3 * i + 2] = 200 * (Y - Z);
    }
}
void normals(const f *R z, f *R n, int H, int W)
{
    for (int j = 0; j < H; j++) {
        const f *R a = z + (size_t)cl(j - 1, H) * W, *R b = z + (size_t)j * W,
                   *R c = z + (size_t)cl(j + 1, H) * W;
        f *R o = n + (size_t)j * W * 3;
        for (int i = 0; i < W; i++) {
            f dx = .5f * (b[cl(i + 1, W)] - b[cl(i - 1, W)]), dy = .5f * (c[i] - a[i]),
              r = 1 / sqrtf(dx * dx + dy * dy + 1);
            o[3 * i] = -dx * r;
            o[3 * i + 1] = -dy * r;
            o[3 * i + 2] = r;
        }
    }
}
void cross3(const f *R a, const f *R b, f *R c, int N)
{
    for (int i = 0; i < N; i++) {
        const f *p = a + 3 * i, *q = b + 3 * i;
        c[3 * i] = p[1] * q[2] - p[2] * q[1];
        c[3 * i + 1] = p[2] * q[0] - p[0] * q[2];
        c[3 * i + 2] = p[0] * q[1] - p[1] * q[0];
    }
}
void mat4(const f *R a, const f *R b, f *R c, int N)
{
    for (int n = 0; n < N; n++)
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                f s = 0;
                for (int k = 0; k < 4; k++)
                    s += a[16 * n + 4 * i + k] * b[16 * n + 4 * k + j];
                c[16 * n + 4 * i + j] = s;
            }
}
void im2col(const f *R x, f *R y, int C, int H, int W)
{
    for (int k = 0; k < 9 * C; k++) {
        int c = k / 9, u = k / 3 % 3 - 1, v = k % 3 - 1;
        for (int j = 0; j < H; j++) {
            f *R o = y + ((size_t)k * H + j) * W;
            int q = j + u;
            if (q < 0 || q >= H) {
                memset(o, 0, 4 * W);
                continue;
            }
            const f *R p = x + ((size_t)c * H + q) * W;
            for (int i = 0; i < W; i++)
                o[i] = i + v < 0 || i + v >= W ? 0 : p[i + v];
        }
    }
}
void maxpool2(const f *R x, f *R y, int C, int H, int W)
{
    for (int c = 0; c < C; c++)
        for (int j = 0; j < H; j++) {
            const f *R a = x + ((size_t)c * 2 * H + 2 * j) * 2 * W, *R b = a + 2 * W;
            for (int i = 0; i < W; i++) {
                f p = a[2 * i] > a[2 * i + 1] ? a[2 * i] : a[2 * i + 1],
                  q = b[2 * i] > b[2 * i + 1] ? b[2 * i] : b[2 * i + 1];
                y[((size_t)c * H + j) * W + i] = p > q ? p : q;
            }
        }
}
void bilinear2(const f *R x, f *R y, int H, int W)
{
    f *t = malloc(4 * (W + 2));
    for (int j = 0; j < 2 * H; j++) {
        int a = j / 2, b = cl(j % 2 ? a + 1 : a - 1, H);
        const f *R p = x + (size_t)a * W, *R q = x + (size_t)b * W;
        for (int i = 0; i < W; i++)
            t[i + 1] = .75f * p[i] + .25f * q[i];
        t[0] = t[1];
        t[W + 1] = t[W];
        f *R o = y + (size_t)j * 2 * W;
        for (int i = 0; i < W; i++) {
            o[2 * i] = .75f * t[i + 1] + .25f * t[i];
            o[2 * i + 1] = .75f * t[i + 1] + .25f * t[i + 2];
        }
    }
    free(t);
}
void logistic(const double *R x, double *R y, int T, int N)
{
    for (int i = 0; i < N; i += 32) {
        double v[32];
        for (int l = 0; l < 32; l++)
            v[l] = x[i + l];
        for (int t = 0; t < T; t++)
            for (int l = 0; l < 32; l++)
                v[l] = 3.9 * v[l] * (1 - v[l]);
        for (int l = 0; l < 32; l++)
            y[i + l] = v[l];
    }
}
static inline f lesser(f a, f b)
{
    return a < b ? a : b;
}
static inline f greater(f a, f b)
{
    return a > b ? a : b;
}
void median5(const f *R x, f *R y, int N)
{
    for (int i = 0; i < N; i++) {
        f a = x[cl(i - 2, N)], b = x[cl(i - 1, N)], c = x[i], d = x[cl(i + 1, N)],
          e = x[cl(i + 2, N)];
        f g = greater(lesser(a, b), lesser(c, d)), h = lesser(greater(a, b), greater(c, d));
        y[i] = greater(lesser(g, h), lesser(greater(g, h), e));
    }
}
void gather_rows(const f *R x, const i32 *R id, f *R y, int C, int N)
{
    for (int n = 0; n < N; n++)
        memcpy(y + (size_t)n * C, x + (size_t)id[n] * C, 4 * C);
}
void nchw_nhwc(const f *R x, f *R y, int C, int P)
{
    for (int p = 0; p < P; p += 16)
        for (int c = 0; c < C; c++)
            for (int l = 0; l < 16; l++)
                y[(size_t)(p + l) * C + c] = x[(size_t)c * P + p + l];
}
void softplus_gate(const f *R x, f *R y, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = x[2 * i] * log1pf(expf(x[2 * i + 1]));
}
void csv_count(const u8 *R x, i32 *R y, int N)
{
    for (int g = 0; g < N / 4096; g++) {
        int a = 0, b = 0;
        for (int i = 0; i < 4096; i++) {
            a += x[g * 4096 + i] == 44;
            b += x[g * 4096 + i] == 10;
        }
        y[g] = a + 65536 * b;
    }
}
void upper(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u8 c = x[i];
        y[i] = c >= 97 && c <= 122 ? c - 32 : c;
    }
}
void find4(const u8 *R x, const u8 *R q, i32 *R n, int N)
{
    for (int g = 0; g < N / 1024; g++) {
        int s = 0;
        for (int i = g * 1024; i < g * 1024 + 1024; i++) {
            if (i + 3 >= N)
                break;
            s += (x[i] == q[0]) & (x[i + 1] == q[1]) & (x[i + 2] == q[2]) & (x[i + 3] == q[3]);
        }
        n[g] = s;
    }
}

#define RS(n)                                                                                      \
    void row_sum##n(const f *R x, f *R y, int N)                                                   \
    {                                                                                              \
        for (int i = 0; i < N; i++) {                                                              \
            f s = 0;                                                                               \
            for (int k = 0; k < n; k++)                                                            \
                s += x[n * i + k];                                                                 \
            y[i] = s;                                                                              \
        }                                                                                          \
    }
RS(8)
RS(16)
RS(32) RS(5)
#define SM(n)                                                                                      \
    void softmax##n(const f *R x, f *R y, int N)                                                   \
    {                                                                                              \
        for (int i = 0; i < N; i++) {                                                              \
            f m = x[n * i], s = 0, e[n];                                                           \
            for (int k = 1; k < n; k++)                                                            \
                m = x[n * i + k] > m ? x[n * i + k] : m;                                           \
            for (int k = 0; k < n; k++)                                                            \
                e[k] = expf(x[n * i + k] - m);                                                     \
            for (int k = 0; k < n; k++)                                                            \
                s += e[k];                                                                         \
            for (int k = 0; k < n; k++)                                                            \
                y[n * i + k] = e[k] / s;                                                           \
        }                                                                                          \
    }
    SM(8) SM(16) void row_max16(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u8 m = 0;
        for (int k = 0; k < 16; k++)
            m = x[16 * i + k] > m ? x[16 * i + k] : m;
        y[i] = m;
    }
}
void byte_sum16(const u8 *R x, uint32_t *R y, int N)
{
    for (int i = 0; i < N; i++) {
        uint32_t m = 0;
        for (int k = 0; k < 16; k++)
            m += x[16 * i + k];
        y[i] = m;
    }
}
void row_dot8(const f *R x, const f *R c, f *R y, int N)
{
    for (int i = 0; i < N; i++) {
        f s = 0;
        for (int k = 0; k < 8; k++)
            s += x[8 * i + k] * c[k];
        y[i] = s;
    }
}
void argmax8(const f *R x, int *R y, int N)
{
    for (int i = 0; i < N; i++) {
        int b = 0;
        for (int k = 1; k < 8; k++)
            b = x[8 * i + k] > x[8 * i + b] ? k : b;
        y[i] = b;
    }
}
void norm8(const f *R x, f *R y, int N)
{
    for (int i = 0; i < N; i++) {
        f s = 0;
        for (int k = 0; k < 8; k++)
            s += x[8 * i + k] * x[8 * i + k];
        s = 1 / sqrtf(s + 1e-6f);
        for (int k = 0; k < 8; k++)
            y[8 * i + k] = x[8 * i + k] * s;
    }
}
