"""std.softmax, std.activation, std.norm and std.quant against NumPy in double precision."""
import math

import numpy as np
from lib import DEVICES, near, run, ulp

rng = np.random.default_rng(3)
erfc = np.vectorize(math.erfc)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    with np.errstate(invalid="ignore"):
        return np.logaddexp(x, 0)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x**3)))


ACTIVATIONS = dict(
    relu=(lambda x: np.where(x < 0, 0, x), ""),
    leaky_relu=(lambda x: np.where(x < 0, 0.125 * x, x), ", 0.125"),
    relu6=(lambda x: np.clip(x, 0, 6), ""),
    elu=(lambda x: np.where(x < 0, 2 * np.expm1(np.minimum(x, 0)), x), ", 2.0"),
    silu=(lambda x: x * sigmoid(x), ""),
    gelu=(lambda x: 0.5 * x * erfc(-x / math.sqrt(2)), ""),
    gelu_tanh=(gelu_tanh, ""),
    gelu_fast=(lambda x: x * sigmoid(1.702 * x), ""),
    softplus=(softplus, ""),
    mish=(lambda x: x * np.tanh(softplus(x)), ""),
    softsign=(lambda x: x / (1 + np.abs(x)), ""),
    hard_swish=(lambda x: x * np.clip(x + 3, 0, 6) / 6, ""),
)
x = np.concatenate([rng.normal(0, 3, 300), np.linspace(-12, 12, 100), [0, 6, -3, 3, np.nan]]).astype(np.float32)
for device in DEVICES:
    for name, (truth, rest) in ACTIVATIONS.items():
        source = f"""
import std.activation;
kernel k(const f32 x[N], f32 y[N]) grid(cdiv(N, 64))
{{
    int i = pid(0) * 64;
    y[i +: 64] = activation.{name}(x[i +: 64]{rest});
}}
"""
        (y,) = run(source, dict(x=x, y=np.full_like(x, 7)), "y", device)
        want = truth(x.astype(np.float64))
        # relative to the argument of the function inside, which is rounded: x^2 counts where it is large
        near(name, device, y, want, (8 + x**2) * ulp(want) + (2e-7 if name == "gelu_tanh" else 1e-37))
        if rest:
            continue  # a literal alone is f32, and so is the result
        half = source.replace("f32 x[N]", "f16 x[N]").replace("f32 y[N]", "f16 y[N]")
        h = x[:64].astype(np.float16)
        (y,) = run(half, dict(x=h, y=np.full_like(h, 7)), "y", device)
        near(name + " in f16", device, y, truth(h.astype(np.float64)), 0.02 * np.abs(truth(h.astype(np.float64))) + 0.004)

SOFTMAX = """
import std.softmax;
kernel k(const f32 x[R, C], f32 p[R, C], f32 l[R, C], f32 s[R], f32 q[C, R])
    grid(1)
{
    auto v = load(x[0 +: 8, 0 +: 48], pad = -inf);
    p[0 +: 8, 0 +: 48] = softmax.softmax(v, 1);
    l[0 +: 8, 0 +: 48] = softmax.log_softmax(v, 1);
    s[0 +: 8] = softmax.log_sum_exp(v, 1);
    q[0 +: 48, 0 +: 8] = softmax.softmax(trans(v), axis = 0);
}
"""
ONLINE = """
import std.softmax;
kernel k(const f32 x[R, C], f32 m[R], f32 l[R], f32 y[R])
    grid(1)
{
    tile<f32, 8> greatest = -inf;
    tile<f32, 8> total = 0;
    tile<f32, 8> weighted = 0;
    for (int i : range(0, C, 16)) {
        auto v = load(x[0 +: 8, i +: 16], pad = -inf);
        auto (next, sum_of, scale, p) = softmax.online(greatest, total, v);
        weighted = weighted * scale + sum(p * (f32)row(i + iota(16)), axis = 1);
        greatest = next;
        total = sum_of;
    }
    m[0 +: 8] = greatest;
    l[0 +: 8] = total;
    y[0 +: 8] = weighted / total;
}
"""
x = rng.normal(0, 30, (7, 45)).astype(np.float32)
x[2, :20] = -np.inf
x[3] = -np.inf
x[4, 5] = 1000
with np.errstate(all="ignore"):
    d = x.astype(np.float64)
    m = d.max(1, keepdims=True)
    e = np.exp(d - np.where(np.isinf(m), 0, m))
    total = e.sum(1, keepdims=True)
    p = e / np.where(total == 0, 1, total)
    lse = np.where(np.isinf(m), 0, m) + np.log(total)
    for device in DEVICES:
        out = np.full_like(x, 7)
        got = run(SOFTMAX, dict(x=x, p=out, l=out, s=out[:, 0].copy(), q=out.T.copy()), "plsq", device)
        near("softmax", device, got[0], p, 2e-5 * p + 1e-37)
        near("log_softmax", device, got[1], d - lse, 4 * ulp(1000))
        near("log_sum_exp", device, got[2], lse[:, 0], 2 * ulp(1000))
        near("softmax on axis 0", device, got[3], p.T, 2e-5 * p.T + 1e-37)
        got = run(ONLINE, dict(x=x, m=out[:, 0].copy(), l=out[:, 0].copy(), y=out[:, 0].copy()), "mly", device)
        near("online maximum", device, got[0], m[:, 0], 0)
        near("online sum", device, got[1], total[:, 0], 1e-5 * total[:, 0])
        want = (p * np.arange(45)).sum(1)
        want[3] = np.nan
        near("online mean", device, got[2], want, 1e-5 * 45)

NORM = """
import std.norm;
kernel k(const f32 x[R, C], f32 m[R, 2], f32 y[R, C], f32 r[R, C], f32 w[R, 3])
    grid(1)
{
    auto v = x[0 +: 8, 0 +: 48];
    auto inside = in(x[0 +: 8, 0 +: 48]);
    f32 n = (f32)C;
    auto (mean, variance) = norm.moments(v, inside, n, 1);
    m[0 +: 8, 0] = squeeze(mean, 1);
    m[0 +: 8, 1] = squeeze(variance, 1);
    y[0 +: 8, 0 +: 48] = norm.layer_norm(v, inside, n, 0.5, axis = 1);
    r[0 +: 8, 0 +: 48] = norm.rms_norm(v, inside, n, 0.5, 1);
    tile<f32, 8> count = 0;
    tile<f32, 8> average = 0;
    tile<f32, 8> square = 0;
    for (int i : range(0, 48))
        (count, average, square) = norm.welford_add(count, average, square, x[0 +: 8, i], in(x[0 +: 8, i]));
    w[0 +: 8, 0] = count;
    w[0 +: 8, 1] = average;
    w[0 +: 8, 2] = square;
}
"""
x = (rng.normal(0, 3, (7, 45)) + 100).astype(np.float32)
d = x.astype(np.float64)
mean, variance = d.mean(1, keepdims=True), d.var(1, keepdims=True)
for device in DEVICES:
    out = np.full_like(x, 7)
    got = run(NORM, dict(x=x, m=out[:, :2].copy(), y=out, r=out, w=out[:, :3].copy()), "myrw", device)
    near("moments", device, got[0], np.hstack([mean, variance]), [1e-4, 1e-3])
    near("layer_norm", device, got[1], (d - mean) / np.sqrt(variance + 0.5), 1e-4)
    near("rms_norm", device, got[2], d / np.sqrt((d * d).mean(1, keepdims=True) + 0.5), 1e-5)
    near("welford", device, got[3], np.hstack([np.full_like(mean, 45), mean, variance * 45]), [0, 1e-3, 0.1])
QUANT = """
import std.quant;
kernel k(const f32 x[M, K], i8 q[M, K], f32 s[M, L], f32 y[M, K], f32 t[M, L], f32 z[M, K])
    grid(1)
{
    auto v = x[0 +: 8, 0 +: 64];
    auto (n, scale) = quant.to_i8(v, 16);
    q[0 +: 8, 0 +: 64] = n;
    s[0 +: 8, 0 +: 4] = scale;
    y[0 +: 8, 0 +: 64] = quant.dequantize(n, scale);
    auto (f, wide) = quant.to_f8(v, 16);
    t[0 +: 8, 0 +: 4] = wide;
    z[0 +: 8, 0 +: 64] = quant.dequantize(f, wide);
}
"""
x = (rng.normal(0, 1, (8, 64)) * 10.0 ** rng.integers(-3, 4, (8, 1))).astype(np.float32)
x[3, 16:32] = 0
groups = np.abs(x.astype(np.float64)).reshape(8, 4, 16).max(2)
scale = np.where(groups == 0, 1, groups / 127)
wide = np.repeat(scale, 16, 1)
for device in DEVICES:
    out = np.full_like(x, 7)
    args = dict(x=x, q=out.astype(np.int8), s=out[:, :4].copy(), y=out, t=out[:, :4].copy(), z=out)
    q, s, y, t, z = run(QUANT, args, "qsytz", device)
    near("scales of i8", device, s, scale, 1e-6 * scale)
    near("i8", device, q, x / wide, 0.5001)
    near("i8 and back", device, y, x, 0.5001 * wide)
    near("scales of f8", device, t, np.where(groups == 0, 1, groups / 448), 1e-6 * scale)
    near("f8 and back", device, z, x, np.abs(x) / 16 + wide * 127 / 448 * 2.0**-9)
print("modules: ok")
