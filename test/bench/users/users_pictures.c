/* Pictures, sound, physics and bytes of users.tile in plain C. */
#include "users.h"
static inline u8 mn(u8 a, u8 b)
{
    return a < b ? a : b;
}
static inline u8 mx(u8 a, u8 b)
{
    return a > b ? a : b;
}
/* Rows padded into a line first, as one would write it. */
static void pad8(const u8 *R x, int W, u8 *R t)
{
    for (int k = 0; k < 4; k++)
        t[k] = x[0], t[4 + W + k] = x[W - 1];
    memcpy(t + 4, x, W);
}
void sobel(const u8 *R x, u8 *R y, int H, int W)
{
    u8 *b = malloc(3 * (W + 8));
    for (int j = 0; j < H; j++) {
        for (int k = 0; k < 3; k++)
            pad8(x + (size_t)cl(j - 1 + k, H) * W, W, b + k * (W + 8));
        const u8 *R p = b + 4, *R q = p + W + 8, *R r = q + W + 8;
        u8 *R o = y + (size_t)j * W;
        for (int i = 0; i < W; i++) {
            i16 gx = p[i + 1] - p[i - 1] + 2 * (q[i + 1] - q[i - 1]) + r[i + 1] - r[i - 1];
            i16 gy = r[i - 1] - p[i - 1] + 2 * (r[i] - p[i]) + r[i + 1] - p[i + 1];
            i16 s = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
            o[i] = s > 255 ? 255 : s;
        }
    }
    free(b);
}
static int refl(int i, int n)
{
    return i < 0 ? -i : i >= n ? 2 * n - 2 - i : i;
}
void gauss5(const u8 *R x, u8 *R y, int H, int W)
{
    u16 *b = malloc(5 * 2 * W);
    u8 *t = malloc(W + 8);
    for (int j = -2; j < H + 2; j++) {
        const u8 *s = x + (size_t)refl(j, H) * W;
        memcpy(t + 4, s, W);
        t[3] = s[1];
        t[2] = s[2];
        t[4 + W] = s[W - 2];
        t[5 + W] = s[W - 3];
        u16 *R o = b + (j + 5) % 5 * W;
        for (int i = 0; i < W; i++)
            o[i] = t[i + 2] + 4 * t[i + 3] + 6 * t[i + 4] + 4 * t[i + 5] + t[i + 6];
        if (j < 2)
            continue;
        const u16 *R a = b + (j + 1) % 5 * W, *R c = b + (j + 2) % 5 * W,
                     *R d = b + (j + 3) % 5 * W, *R e = b + (j + 4) % 5 * W, *R f = o;
        u8 *R z = y + (size_t)(j - 2) * W;
        for (int i = 0; i < W; i++)
            z[i] = (u16)(a[i] + 4 * c[i] + 6 * d[i] + 4 * e[i] + f[i] + 128) >> 8;
    }
    free(b);
    free(t);
}
void median(const u8 *R x, u8 *R y, int H, int W)
{
    u8 *b = malloc(6 * (W + 8));
    for (int j = 0; j < H; j++) {
        for (int k = 0; k < 3; k++)
            pad8(x + (size_t)cl(j - 1 + k, H) * W, W, b + k * (W + 8));
        const u8 *R p = b, *R q = p + W + 8, *R r = q + W + 8;
        u8 *R l = b + 3 * (W + 8), *R m = l + W + 8, *R h = m + W + 8;
        for (int i = 0; i < W + 8; i++) {
            u8 a = p[i], c = q[i], d = r[i];
            l[i] = mn(mn(a, c), d);
            h[i] = mx(mx(a, c), d);
            m[i] = mx(mn(a, c), mn(mx(a, c), d));
        }
        u8 *R o = y + (size_t)j * W;
        for (int i = 0; i < W; i++) {
            u8 L = mx(mx(l[i + 3], l[i + 4]), l[i + 5]), G = mn(mn(h[i + 3], h[i + 4]), h[i + 5]);
            u8 M = mx(mn(m[i + 3], m[i + 4]), mn(mx(m[i + 3], m[i + 4]), m[i + 5]));
            o[i] = mx(mn(L, G), mn(mx(L, G), M));
        }
    }
    free(b);
}
void grey(const u8 *R x, u8 *R y, int H, int W)
{
    for (long i = 0; i < (long)H * W; i++)
        y[i] = (u16)(77 * x[3 * i] + 150 * x[3 * i + 1] + 29 * x[3 * i + 2] + 128) >> 8;
}
void blend(const u8 *R s, u8 *R d, int N)
{
    for (int i = 0; i < N; i++) {
        u16 a = 255 - s[4 * i + 3];
        for (int k = 0; k < 4; k++) {
            u16 t = d[4 * i + k] * a + 128;
            d[4 * i + k] = s[4 * i + k] + (u8)((u16)(t + (t >> 8)) >> 8);
        }
    }
}
void resize(const u8 *R x, u8 *R y, int H, int W, int P, int Q, float sy, float sx)
{
    for (int j = 0; j < P; j++) {
        float fy = (j + 0.5f) * sy - 0.5f;
        if (fy < 0)
            fy = 0;
        int iy = fy;
        float v = fy - iy;
        int iy1 = iy + 1 < H ? iy + 1 : H - 1;
        const u8 *R a = x + (size_t)iy * W, *R b = x + (size_t)iy1 * W;
        u8 *R o = y + (size_t)j * Q;
        for (int i = 0; i < Q; i++) {
            float fx = (i + 0.5f) * sx - 0.5f;
            if (fx < 0)
                fx = 0;
            int ix = fx;
            float u = fx - ix;
            int ix1 = ix + 1 < W ? ix + 1 : W - 1;
            float t = a[ix] * (1 - u) + a[ix1] * u, l = b[ix] * (1 - u) + b[ix1] * u;
            o[i] = (u8)(int)(t * (1 - v) + l * v + 0.5f);
        }
    }
}
void turn(const u8 *R x, u8 *R y, int H, int W)
{
    for (int i0 = 0; i0 < H; i0 += 32)
        for (int j0 = 0; j0 < W; j0 += 32)
            for (int j = j0; j < j0 + 32 && j < W; j++)
                for (int i = i0; i < i0 + 32 && i < H; i++)
                    y[(size_t)j * H + H - 1 - i] = x[(size_t)i * W + j];
}
void life(const u8 *R x, u8 *R y, int H, int W)
{
    u8 *b = malloc(3 * (W + 8));
    for (int j = 0; j < H; j++) {
        for (int k = 0; k < 3; k++) {
            const u8 *s = x + (size_t)((j - 1 + k + H) % H) * W;
            u8 *t = b + k * (W + 8);
            memcpy(t + 4, s, W);
            t[3] = s[W - 1];
            t[4 + W] = s[0];
        }
        const u8 *R p = b + 4, *R q = p + W + 8, *R r = q + W + 8;
        u8 *R o = y + (size_t)j * W;
        for (int i = 0; i < W; i++) {
            u8 n = p[i - 1] + p[i] + p[i + 1] + q[i - 1] + q[i + 1] + r[i - 1] + r[i] + r[i + 1];
            o[i] = (n == 3) | ((n == 2) & q[i]);
        }
    }
    free(b);
}
void lbm(const float *R f, float *R g, int H, int W)
{
    size_t P = (size_t)H * W;
    for (int j = 0; j < H; j++) {
#define BODY(i, im, ip)                                                                            \
    do {                                                                                           \
        float q[9], rho = 0, ux = 0, uy = 0;                                                       \
        for (int k = 0; k < 9; k++) {                                                              \
            int cx = k % 3 - 1, cy = k / 3 - 1;                                                    \
            q[k] = f[k * P + (size_t)((j - cy + H) % H) * W +                                      \
                     (cx == 0   ? (i)                                                              \
                      : cx == 1 ? (im)                                                             \
                                : (ip))];                                                          \
            rho += q[k];                                                                           \
            ux += cx * q[k];                                                                       \
            uy += cy * q[k];                                                                       \
        }                                                                                          \
        ux /= rho;                                                                                 \
        uy /= rho;                                                                                 \
        float uu = 1.5f * (ux * ux + uy * uy);                                                     \
        for (int k = 0; k < 9; k++) {                                                              \
            int cx = k % 3 - 1, cy = k / 3 - 1;                                                    \
            float w = cx * cx + cy * cy == 0   ? 4.f / 9                                           \
                      : cx * cx + cy * cy == 1 ? 1.f / 9                                           \
                                               : 1.f / 36;                                         \
            float cu = 3 * (cx * ux + cy * uy), e = w * rho * (1 + cu + 0.5f * cu * cu - uu);      \
            g[k * P + (size_t)j * W + (i)] = q[k] + 0.8f * (e - q[k]);                             \
        }                                                                                          \
    } while (0)
        BODY(0, W - 1, 1);
        for (int i = 1; i < W - 1; i++)
            BODY(i, i - 1, i + 1);
        BODY(W - 1, W - 2, 0);
    }
}
void iir(const float *R x, float *R y, int H, int W)
{
    for (int i = 0; i < W; i++)
        y[i] = 0.3f * x[i];
    for (int j = 1; j < H; j++)
        for (int i = 0; i < W; i++)
            y[(size_t)j * W + i] = 0.3f * x[(size_t)j * W + i] + 0.7f * y[(size_t)(j - 1) * W + i];
}
void iir_row(const float *R x, float *R y, int H, int W)
{
    for (int j = 0; j < H; j += 4) {
        float s[4] = {0};
        for (int i = 0; i < W; i++)
            for (int k = 0; k < 4; k++) {
                s[k] = 0.3f * x[(size_t)(j + k) * W + i] + 0.7f * s[k];
                y[(size_t)(j + k) * W + i] = s[k];
            }
    }
}
void fir(const float *R x, const float *R h, float *R y, int N)
{
    for (int i = 0; i < N; i++) {
        float s = 0;
        if (i >= 15 && i + 15 < N)
            for (int k = 0; k < 31; k++)
                s += h[k] * x[i + k - 15];
        else
            for (int k = 0; k < 31; k++)
                if (i + k >= 15 && i + k - 15 < N)
                    s += h[k] * x[i + k - 15];
        y[i] = s;
    }
}
void integral_rows(const float *R x, float *R y, int H, int W)
{
    for (int j = 0; j < H; j++) {
        float s = 0;
        for (int i = 0; i < W; i++)
            y[(size_t)j * W + i] = s += x[(size_t)j * W + i];
    }
}
void kmeans(const float *R x, const float *R c, int *R a, int N, int K)
{
    for (int i = 0; i < N; i++) {
        float b = INFINITY;
        int w = 0;
        for (int k = 0; k < K; k++) {
            float dx = x[3 * i] - c[3 * k], dy = x[3 * i + 1] - c[3 * k + 1],
                  dz = x[3 * i + 2] - c[3 * k + 2], d = dx * dx + dy * dy + dz * dz;
            w = d < b ? k : w;
            b = d < b ? d : b;
        }
        a[i] = w;
    }
}
void lut(const u8 *R x, const u8 *R t, u8 *R y, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = t[x[i]];
}
void julia(int *R y, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            float a = 3.f / W * i - 1.5f, b = 3.f / H * j - 1.5f;
            int n = 0;
            for (; n < 100 && a * a + b * b < 4; n++) {
                float t = a * a - b * b - 0.8f;
                b = 2 * a * b + 0.156f;
                a = t;
            }
            y[(size_t)j * W + i] = n;
        }
}
void nbody(const float *R p, float *R a, int N)
{
    for (int i = 0; i < N; i++) {
        float x = p[4 * i], y = p[4 * i + 1], z = p[4 * i + 2], ax = 0, ay = 0, az = 0;
        for (int j = 0; j < N; j++) {
            float dx = p[4 * j] - x, dy = p[4 * j + 1] - y, dz = p[4 * j + 2] - z;
            float r = 1 / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f), f = p[4 * j + 3] * r * r * r;
            ax += f * dx;
            ay += f * dy;
            az += f * dz;
        }
        a[3 * i] = ax;
        a[3 * i + 1] = ay;
        a[3 * i + 2] = az;
    }
}
void hamming(const u64 *R x, const u64 *R q, int *R d, int N)
{
    for (int i = 0; i < N; i++) {
        int s = 0;
        for (int k = 0; k < 4; k++)
            s += __builtin_popcountll(x[4 * i + k] ^ q[k]);
        d[i] = s;
    }
}
void base64(const u8 *R x, u8 *R y, const u8 *R t, int N)
{
    for (int i = 0; i < N; i++) {
        u8 a = x[3 * i], b = x[3 * i + 1], c = x[3 * i + 2];
        y[4 * i] = t[a >> 2];
        y[4 * i + 1] = t[(a & 3) << 4 | b >> 4];
        y[4 * i + 2] = t[(b & 15) << 2 | c >> 6];
        y[4 * i + 3] = t[c & 63];
    }
}
static void padf(const float *R x, int W, float *R t)
{
    for (int k = 0; k < 4; k++)
        t[k] = x[0], t[4 + W + k] = x[W - 1];
    memcpy(t + 4, x, 4 * W);
}
void bilateral(const float *R x, float *R y, int H, int W)
{
    float *b = malloc(5 * 4 * (W + 8));
    for (int j = 0; j < H; j++) {
        for (int k = 0; k < 5; k++)
            padf(x + (size_t)cl(j - 2 + k, H) * W, W, b + k * (W + 8));
        float *R o = y + (size_t)j * W;
        for (int i = 0; i < W; i++) {
            float c = b[2 * (W + 8) + 4 + i], s = 0, w = 0;
#pragma GCC unroll 5
            for (int u = -2; u < 3; u++)
#pragma GCC unroll 5
                for (int v = -2; v < 3; v++) {
                    float p = b[(u + 2) * (W + 8) + 4 + i + v], d = p - c,
                          k = expf(-0.1f * (u * u + v * v) - 30 * d * d);
                    s += k * p;
                    w += k;
                }
            o[i] = s / w;
        }
    }
    free(b);
}
void harris(const float *R x, float *R y, int H, int W)
{
    int S = W + 8;
    float *t = malloc(3 * 4 * S), *m = malloc(9 * 4 * S);
    for (int j = -1; j < H + 1; j++) {
        for (int k = 0; k < 3; k++)
            padf(x + (size_t)cl(j - 1 + k, H) * W, W, t + k * S);
        float *R a = m + (j + 3) % 3 * 3 * S, *R b = a + S, *R c = b + S;
        const float *R p = t, *R q = t + S, *R r = q + S;
        for (int i = 1; i < S - 1; i++) {
            float ix = p[i + 1] - p[i - 1] + 2 * (q[i + 1] - q[i - 1]) + r[i + 1] - r[i - 1];
            float iy = r[i - 1] + 2 * r[i] + r[i + 1] - p[i - 1] - 2 * p[i] - p[i + 1];
            a[i] = ix * ix;
            b[i] = iy * iy;
            c[i] = ix * iy;
        }
        if (j < 1)
            continue;
        const float *R e = m, *R f = m + 3 * S, *R g = m + 6 * S;
        float *R o = y + (size_t)(j - 1) * W;
#define BOX(z, i) (e[z * S + i] + f[z * S + i] + g[z * S + i])
        for (int i = 0; i < W; i++) {
            float xx = BOX(0, i + 3) + BOX(0, i + 4) + BOX(0, i + 5),
                  yy = BOX(1, i + 3) + BOX(1, i + 4) + BOX(1, i + 5),
                  xy = BOX(2, i + 3) + BOX(2, i + 4) + BOX(2, i + 5);
            o[i] = xx * yy - xy * xy - 0.04f * (xx + yy) * (xx + yy);
        }
    }
    free(t);
    free(m);
}
void dilate(const u8 *R x, u8 *R y, int H, int W)
{
    u8 *b = calloc(6, W + 8);
    for (int j = 0; j < H; j++) {
        u8 *R m = b;
        memset(m + 4, 0, W);
        for (int u = -2; u < 3; u++)
            if (j + u >= 0 && j + u < H) {
                const u8 *R s = x + (size_t)(j + u) * W;
                for (int i = 0; i < W; i++)
                    m[4 + i] = mx(m[4 + i], s[i]);
            }
        u8 *R o = y + (size_t)j * W;
        for (int i = 0; i < W; i++)
            o[i] = mx(mx(mx(m[i + 2], m[i + 3]), mx(m[i + 4], m[i + 5])), m[i + 6]);
    }
    free(b);
}
void cmul(const float *R a, const float *R b, float *R c, int N)
{
    for (int i = 0; i < N; i++) {
        float ar = a[2 * i], ai = a[2 * i + 1], br = b[2 * i], bi = b[2 * i + 1];
        c[2 * i] = ar * br - ai * bi;
        c[2 * i + 1] = ar * bi + ai * br;
    }
}
static inline int sat(int v)
{
    return v > 32767 ? 32767 : v < -32768 ? -32768 : v;
}
void mix(const i16 *R a, const i16 *R b, i16 *R y, int N, int ga, int gb)
{
    for (int i = 0; i < N; i++)
        y[i] = sat(sat((a[i] * ga + 16384) >> 15) + sat((b[i] * gb + 16384) >> 15));
}
void planes(const i16 *R x, float *R l, float *R r, int N)
{
    for (int i = 0; i < N; i++) {
        l[i] = x[2 * i] * (1 / 32768.f);
        r[i] = x[2 * i + 1] * (1 / 32768.f);
    }
}
void dct(const float *R x, const float *R D, float *R y, int H, int W)
{
    float d[64], e[64];
    memcpy(d, D, 256);
    for (int a = 0; a < 64; a++)
        e[a] = D[a % 8 * 8 + a / 8];
    for (int j = 0; j < H; j += 8)
        for (int i = 0; i < W; i += 8) {
            float t[64], o[64];
            for (int a = 0; a < 8; a++) {
                float s[8] = {0};
                for (int k = 0; k < 8; k++)
                    for (int b = 0; b < 8; b++)
                        s[b] += d[a * 8 + k] * x[(size_t)(j + k) * W + i + b];
                memcpy(t + 8 * a, s, 32);
            }
            for (int a = 0; a < 8; a++) {
                float s[8] = {0};
                for (int k = 0; k < 8; k++)
                    for (int b = 0; b < 8; b++)
                        s[b] += t[a * 8 + k] * e[k * 8 + b];
                memcpy(o + 8 * a, s, 32);
            }
            for (int a = 0; a < 8; a++)
                memcpy(y + (size_t)(j + a) * W + i, o + 8 * a, 32);
        }
}
void jacobi(const float *R x, const float *R f, float *R y, int H, int W)
{
    for (int j = 0; j < H; j++) {
        const float *R q = x + (size_t)j * W, *R p = q - W, *R r = q + W, *R g = f + (size_t)j * W;
        float *R o = y + (size_t)j * W;
        if (j > 0 && j < H - 1)
            for (int i = 1; i < W - 1; i++)
                o[i] = 0.25f * (p[i] + r[i] + q[i - 1] + q[i + 1] - g[i]);
        for (int i = 0; i < W; i += (j > 0 && j < H - 1) ? W - 1 : 1)
            o[i] = 0.25f * ((j > 0 ? p[i] : 0) + (j < H - 1 ? r[i] : 0) + (i > 0 ? q[i - 1] : 0) +
                            (i < W - 1 ? q[i + 1] : 0) - g[i]);
    }
}
void pi(int *R y, int N, int T)
{
    for (int i = 0; i < N; i += 16) {
        u32 s[16];
        int n[16] = {0};
        for (int k = 0; k < 16; k++)
            s[k] = (u32)(i + k) * 2654435761u + 1;
        for (int t = 0; t < T; t++)
            for (int k = 0; k < 16; k++) {
                u32 z = s[k];
                z ^= z << 13;
                z ^= z >> 17;
                z ^= z << 5;
                float u = (int)(z >> 8) * 0x1p-24f;
                z ^= z << 13;
                z ^= z >> 17;
                z ^= z << 5;
                float v = (int)(z >> 8) * 0x1p-24f;
                s[k] = z;
                n[k] += u * u + v * v < 1;
            }
        for (int k = 0; k < 16; k++)
            y[i + k] = n[k];
    }
}
void yuyv(const u8 *R x, u8 *R y, int H, int W)
{
    for (long i = 0; i < (long)H * W; i++) {
        int u = x[4 * i + 1] - 128, v = x[4 * i + 3] - 128;
        for (int k = 0; k < 2; k++) {
            int l = 298 * (x[4 * i + 2 * k] - 16) + 128;
            y[6 * i + 3 * k] = c8((l + 409 * v) >> 8);
            y[6 * i + 3 * k + 1] = c8((l - 100 * u - 208 * v) >> 8);
            y[6 * i + 3 * k + 2] = c8((l + 516 * u) >> 8);
        }
    }
}
void warp(const float *R x, float *R y, int H, int W, float c, float s)
{
#define PX(a, b) ((unsigned)(a) < (unsigned)H && (unsigned)(b) < (unsigned)W ? x[(a)*W + (b)] : 0)
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            float u = c * i - s * j, v = s * i + c * j, gu = floorf(u), gv = floorf(v);
            int iu = gu, iv = gv;
            float fu = u - gu, fv = v - gv;
            float a = PX(iv, iu) * (1 - fu) + PX(iv, iu + 1) * fu,
                  b = PX(iv + 1, iu) * (1 - fu) + PX(iv + 1, iu + 1) * fu;
            y[(size_t)j * W + i] = a * (1 - fv) + b * fv;
        }
}
#define ROTL(x, n) ((x) << (n) | (x) >> (32 - (n)))
void mixing(const u32 *R x, u32 *R y, int N)
{
    for (int i = 0; i < N; i += 16) {
        u32 w[16][16], h[16];
        for (int k = 0; k < 16; k++)
            for (int l = 0; l < 16; l++)
                w[k][l] = x[16 * (i + l) + k];
        for (int l = 0; l < 16; l++)
            h[l] = 0x6a09e667;
        for (int t = 0; t < 64; t++)
            for (int l = 0; l < 16; l++) {
                u32 a = w[(t + 1) % 16][l], b = w[(t + 14) % 16][l];
                u32 n = w[t % 16][l] + (ROTL(a, 25) ^ ROTL(a, 14) ^ a >> 3) + w[(t + 9) % 16][l] +
                        (ROTL(b, 15) ^ ROTL(b, 13) ^ b >> 10);
                w[t % 16][l] = n;
                h[l] = ROTL(h[l], 5) + n;
            }
        for (int l = 0; l < 16; l++)
            y[i + l] = h[l];
    }
}
void window_max(const float *R x, float *R y, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = x[i];
    for (int i0 = 0; i0 < N; i0 += 256)
        for (int k = 1; k < 64; k++)
            for (int i = i0 < k ? k : i0; i < i0 + 256 && i < N; i++)
                y[i] = y[i] > x[i - k] ? y[i] : x[i - k];
}
void stats(const u8 *R x, int *R s, u8 *R lo, u8 *R hi, int H, int W)
{
    for (int j = 0; j < H; j++) {
        int t = 0;
        u8 a = 255, b = 0;
        for (int i = 0; i < W; i++) {
            u8 v = x[(size_t)j * W + i];
            t += v;
            a = mn(a, v);
            b = mx(b, v);
        }
        s[j] = t;
        lo[j] = a;
        hi[j] = b;
    }
}

void blur_rgb(const u8 *R x, u8 *R y, int H, int W)
{
    u16 *t = malloc(2 * 3 * (W + 2));
    for (int j = 0; j < H; j++) {
        const u8 *R a = x + (size_t)cl(j - 1, H) * W * 3, *R b = x + (size_t)j * W * 3,
                    *R c = x + (size_t)cl(j + 1, H) * W * 3;
        for (int i = 0; i < 3 * W; i++)
            t[3 + i] = a[i] + b[i] + c[i];
        for (int k = 0; k < 3; k++)
            t[k] = t[3 + k], t[3 + 3 * W + k] = t[3 * W + k];
        for (int i = 0; i < 3 * W; i++)
            y[(size_t)j * W * 3 + i] = (u16)((t[i] + t[i + 3] + t[i + 6]) * 57u + 256) >> 9;
    }
    free(t);
}
void sepia(const u8 *R x, u8 *R y, const float *R m, int N)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            float s =
                x[3 * i] * m[3 * k] + x[3 * i + 1] * m[3 * k + 1] + x[3 * i + 2] * m[3 * k + 2];
            y[3 * i + k] = (u8)(int)(s < 255 ? s : 255);
        }
}
void down2(const u8 *R x, u8 *R y, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            const u8 *p = x + (size_t)(2 * j) * 2 * W + 2 * i, *q = p + 2 * W;
            y[(size_t)j * W + i] = (u16)(p[0] + p[1] + q[0] + q[1] + 2) >> 2;
        }
}
void up2(const u8 *R x, u8 *R y, int H, int W)
{
    for (int j = 0; j < H; j++) {
        u8 *R o = y + (size_t)(2 * j) * 2 * W;
        for (int i = 0; i < W; i++)
            o[2 * i] = o[2 * i + 1] = x[(size_t)j * W + i];
        memcpy(o + 2 * W, o, 2 * W);
    }
}
void aos_soa(const float *R x, float *R y, int N)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 4; k++)
            y[(size_t)k * N + i] = x[4 * i + k];
}
void soa_aos(const float *R x, float *R y, int N)
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++)
            y[3 * i + k] = x[(size_t)k * N + i];
}
void transform(const float *R x, const float *R m, float *R y, int N)
{
    for (int i = 0; i < N; i++)
        for (int l = 0; l < 4; l++) {
            float s = 0;
            for (int k = 0; k < 4; k++)
                s += x[4 * i + k] * m[4 * k + l];
            y[4 * i + l] = s;
        }
}
void quat(const float *R q, const float *R v, float *R y, int N)
{
    for (int i = 0; i < N; i++) {
        float w = q[4 * i + 3], ux = q[4 * i], uy = q[4 * i + 1], uz = q[4 * i + 2], vx = v[3 * i],
              vy = v[3 * i + 1], vz = v[3 * i + 2];
        float tx = 2 * (uy * vz - uz * vy), ty = 2 * (uz * vx - ux * vz),
              tz = 2 * (ux * vy - uy * vx);
        y[3 * i] = vx + w * tx + uy * tz - uz * ty;
        y[3 * i + 1] = vy + w * ty + uz * tx - ux * tz;
        y[3 * i + 2] = vz + w * tz + ux * ty - uy * tx;
    }
}
void inverse3(const float *R x, float *R y, int N)
{
    for (int i = 0; i < N; i++) {
        const float *p = x + 9 * i;
        float *o = y + 9 * i;
        float a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7],
              k = p[8];
        float r = 1 / (a * (e * k - f * h) - b * (d * k - f * g) + c * (d * h - e * g));
        o[0] = (e * k - f * h) * r;
        o[1] = (c * h - b * k) * r;
        o[2] = (b * f - c * e) * r;
        o[3] = (f * g - d * k) * r;
        o[4] = (a * k - c * g) * r;
        o[5] = (c * d - a * f) * r;
        o[6] = (d * h - e * g) * r;
        o[7] = (b * g - a * h) * r;
        o[8] = (a * e - b * d) * r;
    }
}
void pairs(const float *R x, const float *R z, float *R d, int N, int M)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++) {
            float a = x[3 * i] - z[3 * j], b = x[3 * i + 1] - z[3 * j + 1],
                  c = x[3 * i + 2] - z[3 * j + 2];
            d[(size_t)i * M + j] = sqrtf(a * a + b * b + c * c);
        }
}
void nearest(const float *R x, const float *R z, int *R a, int N, int M)
{
    for (int i = 0; i < N; i++) {
        float b = INFINITY;
        int w = 0;
        for (int j = 0; j < M; j++) {
            float dx = x[2 * i] - z[2 * j], dy = x[2 * i + 1] - z[2 * j + 1], d = dx * dx + dy * dy;
            w = d < b ? j : w;
            b = d < b ? d : b;
        }
        a[i] = w;
    }
}
void count_byte(const u8 *R x, int *R c, int N, int what)
{
    u8 w = what;
    for (int g = 0; g < N / 4096; g++) {
        int s = 0;
        for (int i = 0; i < 4096; i++)
            s += x[g * 4096 + i] == w;
        c[g] = s;
    }
}
void hex(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u8 h = x[i] >> 4, l = x[i] & 15;
        y[2 * i] = h < 10 ? h + 48 : h + 87;
        y[2 * i + 1] = l < 10 ? l + 48 : l + 87;
    }
}
void unhex(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        u8 h = x[2 * i], l = x[2 * i + 1];
        u8 a = h < 58 ? h - 48 : (h | 32) - 87, b = l < 58 ? l - 48 : (l | 32) - 87;
        y[i] = a << 4 | b;
    }
}
void swap(const u32 *R x, u32 *R y, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = __builtin_bswap32(x[i]);
}
void reverse(const float *R x, float *R y, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = x[N - 1 - i];
}
void delta(const i32 *R x, i32 *R y, int N)
{
    u32 d = x[0];
    y[0] = d << 1 ^ (i32)d >> 31;
    for (int i = 1; i < N; i++) {
        u32 e = (u32)x[i] - x[i - 1];
        y[i] = e << 1 ^ (i32)e >> 31;
    }
}
void moving(const float *R x, float *R y, int N)
{
    for (int i = 0; i < 15; i++) {
        float s = 0;
        for (int k = 0; k <= i; k++)
            s += x[i - k];
        y[i] = s / 16;
    }
    for (int i = 15; i < N; i++) {
        float s = 0;
        for (int k = 0; k < 16; k++)
            s += x[i - k];
        y[i] = s * (1 / 16.f);
    }
}
void decimate(const float *R x, const float *R h, float *R y, int N, int M)
{
    for (int i = 0; i < M; i++) {
        float s = 0;
        if (i >= 2 && 4 * i + 8 < N)
            for (int k = 0; k < 16; k++)
                s += h[k] * x[4 * i + k - 8];
        else
            for (int k = 0; k < 16; k++) {
                int p = 4 * i + k - 8;
                if (p >= 0 && p < N)
                    s += h[k] * x[p];
            }
        y[i] = s;
    }
}
void horner(const float *R x, const float *R c, float *R y, int N)
{
    for (int i = 0; i < N; i++) {
        float s = c[8];
        for (int k = 7; k >= 0; k--)
            s = s * x[i] + c[k];
        y[i] = s;
    }
}
void thomas(const float *R a, const float *R b, const float *R c, const float *R d, float *R x,
            float *R w, int K, int N)
{
    for (int i = 0; i < N; i++) {
        w[i] = c[i] / b[i];
        x[i] = d[i] / b[i];
    }
    for (int k = 1; k < K; k++)
        for (int i = 0; i < N; i++) {
            size_t p = (size_t)k * N + i;
            float r = 1 / (b[p] - a[p] * w[p - N]);
            w[p] = c[p] * r;
            x[p] = (d[p] - a[p] * x[p - N]) * r;
        }
    for (int k = K - 2; k >= 0; k--)
        for (int i = 0; i < N; i++) {
            size_t p = (size_t)k * N + i;
            x[p] -= w[p] * x[p + N];
        }
}
void heat3(const float *R x, float *R y, int D, int H, int W)
{
    size_t P = (size_t)H * W;
    for (int k = 0; k < D; k++)
        for (int j = 0; j < H; j++) {
            const float *c = x + k * P + (size_t)j * W,
                        *u = x + k * P + (size_t)((j + H - 1) % H) * W,
                        *d = x + k * P + (size_t)((j + 1) % H) * W,
                        *n = x + (size_t)((k + D - 1) % D) * P + (size_t)j * W,
                        *f = x + (size_t)((k + 1) % D) * P + (size_t)j * W;
            float *R o = y + k * P + (size_t)j * W;
#define S(i, l, r) o[i] = c[i] + 0.1f * (c[l] + c[r] + u[i] + d[i] + n[i] + f[i] - 6 * c[i])
            S(0, W - 1, 1);
            for (int i = 1; i < W - 1; i++)
                S(i, i - 1, i + 1);
            S(W - 1, W - 2, 0);
        }
}
void life_bits(const u64 *R x, u64 *R y, int H, int W)
{
    u64 *b = calloc(3 * (W + 2), 8);
    for (int j = 0; j < H; j++) {
        for (int k = 0; k < 3; k++)
            if (j - 1 + k >= 0 && j - 1 + k < H)
                memcpy(b + k * (W + 2) + 1, x + (size_t)(j - 1 + k) * W, 8 * W);
            else
                memset(b + k * (W + 2) + 1, 0, 8 * W);
        for (int i = 1; i <= W; i++) {
            u64 one = 0, two = 0, four = 0, c;
#define A(v)                                                                                       \
    c = one & (v);                                                                                 \
    one ^= (v);                                                                                    \
    four |= two & c;                                                                               \
    two ^= c
#pragma GCC unroll 3
            for (int u = 0; u < 3; u++) {
                const u64 *p = b + u * (W + 2);
                u64 m = p[i], l = m << 1 | p[i - 1] >> 63, r = m >> 1 | p[i + 1] << 63;
                A(l);
                A(r);
                if (u != 1) {
                    A(m);
                }
            }
            y[(size_t)j * W + i - 1] = two & ~four & (one | b[W + 2 + i]);
        }
    }
    free(b);
}
void worley(float *R y, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            float px = i / 16.f, py = j / 16.f;
            int cx = floorf(px), cy = floorf(py);
            float best = 1e30f;
            for (int u = -1; u < 2; u++)
                for (int v = -1; v < 2; v++) {
                    u32 h = (u32)(cx + v) * 374761393u + (u32)(cy + u) * 668265263u;
                    h = (h ^ h >> 13) * 1274126177u;
                    h ^= h >> 16;
                    float fx = (cx + v) + (int)(h & 0xffff) / 65536.f - px,
                          fy = (cy + u) + (int)(h >> 16) / 65536.f - py, d = fx * fx + fy * fy;
                    best = d < best ? d : best;
                }
            y[(size_t)j * W + i] = sqrtf(best);
        }
}
void newton(int *R y, int H, int W)
{
    for (int j = 0; j < H; j++)
        for (int i = 0; i < W; i++) {
            float a = 4.f / W * i - 2, b = 4.f / H * j - 2;
            int n = 0;
            for (int k = 0; k < 64; k++) {
                float a2 = a * a - b * b, b2 = 2 * a * b, a3 = a2 * a - b2 * b - 1,
                      b3 = a2 * b + b2 * a, r = 1 / (3 * (a2 * a2 + b2 * b2) + 0x1p-60f);
                a -= (a3 * a2 + b3 * b2) * r;
                b -= (b3 * a2 - a3 * b2) * r;
                n++;
                if (!(a3 * a3 + b3 * b3 > 1e-6f))
                    break;
            }
            y[(size_t)j * W + i] = n;
        }
}
void hsv(const u8 *R x, u8 *R y, int N)
{
    for (int i = 0; i < N; i++) {
        float r = x[3 * i], g = x[3 * i + 1], b = x[3 * i + 2], v = r > g ? r : g;
        v = v > b ? v : b;
        float l = r < g ? r : g;
        l = l < b ? l : b;
        float d = v - l, k = 42.5f / (d > 1 ? d : 1),
              h = v == r   ? (g - b) * k
                  : v == g ? (b - r) * k + 85
                           : (r - g) * k + 170;
        y[3 * i] = (int)(h < 0 ? h + 255 : h);
        y[3 * i + 1] = (int)(255 * d / (v > 1 ? v : 1));
        y[3 * i + 2] = (int)v;
    }
}
void banded(const float *R a, const float *R x, float *R y, int N)
{
    for (int i = 0; i < N; i++) {
        float s = 0;
        if (i >= 2 && i < N - 2)
            for (int k = 0; k < 5; k++)
                s += a[5 * i + k] * x[i + k - 2];
        else
            for (int k = 0; k < 5; k++)
                if (i + k >= 2 && i + k - 2 < N)
                    s += a[5 * i + k] * x[i + k - 2];
        y[i] = s;
    }
}
void lut16(const u16 *R x, const u16 *R t, u16 *R y, int N)
{
    for (int i = 0; i < N; i++)
        y[i] = t[x[i]];
}
void sobel3(const float *R x, float *R y, int D, int H, int W)
{
    int S = W + 2;
    float *b = malloc(9 * 4 * S);
    size_t P = (size_t)H * W;
    for (int k = 0; k < D; k++)
        for (int j = 0; j < H; j++) {
            for (int a = 0; a < 3; a++)
                for (int c = 0; c < 3; c++) {
                    const float *s =
                        x + (size_t)cl(k - 1 + a, D) * P + (size_t)cl(j - 1 + c, H) * W;
                    float *t = b + (3 * a + c) * S;
                    memcpy(t + 1, s, 4 * W);
                    t[0] = s[0];
                    t[W + 1] = s[W - 1];
                }
            for (int i = 0; i < W; i++) {
                float gx = 0, gy = 0, gz = 0;
#pragma GCC unroll 3
                for (int a = 0; a < 3; a++)
#pragma GCC unroll 3
                    for (int c = 0; c < 3; c++)
#pragma GCC unroll 3
                        for (int e = 0; e < 3; e++) {
                            float v = b[(3 * a + c) * S + i + e], wa = a == 1 ? 2 : 1,
                                  wb = c == 1 ? 2 : 1, wc = e == 1 ? 2 : 1;
                            gx += wa * wb * (e - 1) * v;
                            gy += wa * wc * (c - 1) * v;
                            gz += wb * wc * (a - 1) * v;
                        }
                y[k * P + (size_t)j * W + i] = sqrtf(gx * gx + gy * gy + gz * gz);
            }
        }
    free(b);
}
