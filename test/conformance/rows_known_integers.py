"""Integers that the compiler knows become floats beside floats."""
from rows import row
from values import exact, iota, small, zeros

KERNEL = """
const int EIGHT = 8;
T least(tile<T, N> x, T y) {{ return min(max(x), y); }}
T least_turned(T y, tile<T, N> x) {{ return min(max(x), y); }}
{t} result() {{ return EIGHT / 2 + 1; }}
kernel k(const {t} x[N], {t} y[N], {t} z[16], const int B = 16, const u8 U = 3, const i64 L = 2)
    grid(cdiv(N, B))
{{
    int i = pid(0) * B;
    const int n = B / 4 - 1;
    y[i +: B] = x[i +: B] * n + EIGHT - U;
    if (i > 0) return;
    z[0] = n;
    {t} q = EIGHT + U;
    z[1] = q;
    z[2] = least(x[0 +: B], L) + least_turned(L, x[0 +: B]);
    z[3] = result();
    static for (int j : range(3)) z[4 + j] = j * 0.5 + (x[j] - x[j]);
    z[7] = n > 2 ? n : 0.5;
    z[8] = x[0] > 100 ? L : x[0];
    z[9] = fma(x[1], EIGHT, n);
    z[10] = clamp(x[2], -n, U);
    z[11] = x[3] == U && EIGHT / 3.2 == 2.5 ? 1 : 0;
    z[12 +: 2] = L;
    z[13] += n * n;
    z[14] = sum(load(x[-1 +: 1], pad = U)) + L;
    z[15] = x[4] / L;
}}
"""
for _t in ("f16", "bf16", "f32", "f64"):
    def _want(a):
        x = a["x"]
        return {"y": exact(x * 3 + 5),
                "z": exact([3, 11, 4, 5, 0, .5, 1, 3, x[0], x[1] * 8 + 3, 2, 1, 2, 11, 5, 2])}
    row(f"known_integers_beside_{_t}", KERNEL.format(t=_t),
        {"x": iota(_t, 37), "y": zeros(_t, 37), "z": zeros(_t, 16)}, _want)

row("known_integers_beside_narrow_floats", """
kernel k(const f8e4m3 x[N], f16 y[N], f8e4m3 e[N], const int B = 16)
    grid(cdiv(N, B))
{
    int i = pid(0) * B;
    y[i +: B] = (f16)x[i +: B] * B;
    e[i +: B] = B;
}
""", {"x": small("f8e4m3", 7, 21), "y": zeros("f16", 21), "e": zeros("f8e4m3", 21)},
    lambda a: {"y": exact(a["x"] * 16), "e": exact([16] * 21)})

row("known_integers_as_arguments_and_choices", """
const int D = 64;
kernel k(const f32 x[N], f32 y[12], f16 h[4], const int B = 4, const f32 s = 1 / sqrt(D))
    grid(1)
{
    y[0] = s;
    y[1] = sqrt(B) * x[0];
    y[2] = max(B, 4.5) + min(4.5, B) + clamp(B, 0.5, 1.5);
    y[3] = atan2(0, B) + fma(B, 0.5, 1) + fma(B, B, 0.5);
    y[4] = pow(2, B) + pow(B, 0.5);
    y[5] = fmod(B, 2.5);
    y[6] = x[0] > 100 ? 0.5 : B;
    y[7] = x[0] > -100 ? B : 0.5;
    y[8] = sum(x[0 +: 4] > -100 ? B : 0.5);
    y[9] = log2(D) + floor(B) + logaddexp(B, -inf);
    static for (int i : range(2)) y[10 + i] = exp2(i) + cos(i * 0);
    h[0 +: 4] = iota(4) > 1 ? B : 0.5;
}
""", {"x": iota("f32", 5), "y": zeros("f32", 12), "h": zeros("f16", 4)},
    lambda a: {"y": exact([.125, 2 * a["x"][0], 10, 19.5, 18, 1.5, 4, 4, 16, 14, 2, 3]), "h": exact([.5, .5, 4, 4])})
