"""std.kernels.rows against NumPy in f64: types, rows within a tile and longer, what is there and what is not."""
from kernel_library import Arr, EPS, f64, kernel_row, near, np, poison, within
from values import normal


def none(t):
    return Arr(t, np.zeros(0, np.float32 if t == "f32" else np.uint16 if t == "bf16" else np.float16))


def softmax(x, log):
    below = x - x.max(1, keepdims=True, initial=-1e9)
    total = np.exp(below).sum(1, keepdims=True)
    return below - np.log(total) if log else np.exp(below) / total


for t, m, n, log, bn, bm in (("f32", 5, 33, False, 64, 1), ("f16", 9, 7, True, 16, 4), ("bf16", 3, 64, False, 64, 8),
                             ("f32", 1, 1, True, 16, 1), ("f32", 0, 5, False, 16, 2), ("f32", 6, 20, True, 32, 4)):
    kernel_row("rows", "softmax_rows", f"{t}_{m}x{n}", {"x": normal(t, 1, m, n), "y": poison(t, m, n)},
               lambda a, t=t, log=log: {"y": near(softmax(f64(a, "x")[0], log), 200 * EPS, t)}, T=t, LOG=log, BN=bn,
               BM=bm)
for t, m, n, log in (("f32", 3, 100, False), ("f16", 2, 65, True), ("bf16", 1, 1, False), ("f32", 2, 32, True),
                     ("f32", 2, 0, False), ("f32", 0, 3, False)):
    kernel_row("rows", "softmax_long_rows", f"{t}_{m}x{n}", {"x": normal(t, 1, m, n), "y": poison(t, m, n)},
               lambda a, t=t, log=log: {"y": near(softmax(f64(a, "x")[0], log), 400 * EPS, t)}, T=t, LOG=log, BN=32)

for t, m, n, weight, bias, kept, bm in (("f32", 5, 33, True, True, True, 1), ("f16", 9, 20, True, False, False, 4),
                                        ("bf16", 3, 64, False, True, True, 2), ("f32", 1, 1, False, False, True, 1),
                                        ("f32", 0, 5, True, True, True, 4)):
    numbers = {
        "x": normal(t, 1, m, n), "w": normal(t, 2, n) if weight else none(t), "y": poison(t, m, n), "rstd": poison(
            "f32", m if kept else 0), "eps": 0.01
    }

    def layer_norm(a, t=t, n=n, weight=weight, bias=bias, kept=kept):
        x, w, b = f64(a, "x", "w", "bias")
        mean = x.mean(1, keepdims=True)
        r = 1 / np.sqrt(((x - mean)**2).mean(1, keepdims=True) + 0.01)
        out = {"y": near((x - mean) * r * (w if weight else 1) + (b if bias else 0), 400 * EPS * (n**0.5 + 1), t)}
        if kept:
            out |= {"mean": within(mean[:, 0], 50 * EPS), "rstd": within(r[:, 0], 200 * EPS * r[:, 0])}
        return out

    def rms_norm(a, t=t, n=n, weight=weight, kept=kept):
        x, w = f64(a, "x", "w")
        r = 1 / np.sqrt((x * x).mean(1, keepdims=True) + 0.01)
        out = {"y": near(x * r * ((w if weight else 1) + 0.5), 400 * EPS * (n**0.5 + 1), t)}
        if kept:
            out["rstd"] = within(r[:, 0], 200 * EPS * r[:, 0])
        return out

    consts = dict(T=t, BN=64, BM=bm)
    more = {"bias": normal(t, 3, n) if bias else none(t), "mean": poison("f32", m if kept else 0)}
    kernel_row("rows", "layer_norm_rows", f"{t}_{m}x{n}", {**numbers, **more}, layer_norm, **consts)
    kernel_row("rows", "rms_norm_rows", f"{t}_{m}x{n}", {**numbers, "offset": 0.5}, rms_norm, **consts)

for t, m, n, parts, rms, weight, sums in (("f32", 5, 33, 2, False, True, True), ("f16", 9, 20, 4, True, True, True),
                                          ("bf16", 3, 64, 1, False, False, False), ("f32", 1, 1, 1, True, False, True),
                                          ("f32", 2, 7, 5, False, True, False), ("f32", 0, 5, 1, True, True, True)):
    numbers = {
        "dy": normal(t, 4, m, n), "x": normal(t, 1, m, n), "w": normal(t, 2, n) if weight else none(t),
        "mean": normal("f32", 3, 0 if rms else m), "rstd": normal("f32", 5, m), "dx": poison(t, m, n),
        "part_w": poison("f32", parts, n if sums else 0), "offset": 0.5,
        "part_bias": poison("f32", parts, 0 if rms or not sums else n)
    }

    def gradient(a, m=m, n=n, t=t, parts=parts, rms=rms, weight=weight, sums=sums):
        dy, x, w, mean, r = f64(a, "dy", "x", "w", "mean", "rstd")
        v = (x - (0 if rms else mean[:, None])) * r[:, None]
        g = dy * ((w if weight else 1) + 0.5)
        dx = (g - v * (g * v).mean(1, keepdims=True) - (0 if rms else g.mean(1, keepdims=True))) * r[:, None]
        out = {"dx": near(dx, 400 * EPS * (n + 1) * (1 + np.abs(r[:, None])**3), t)}
        share = -(-m // parts)
        each = [slice(min(p * share, m), min(p * share + share, m)) for p in range(parts)]
        if sums:
            out["part_w"] = within(np.stack([(dy * v)[s].sum(0) for s in each]), 200 * EPS * (m + 1))
        if sums and not rms:
            out["part_bias"] = within(np.stack([dy[s].sum(0) for s in each]), 100 * EPS * (m + 1))
        return out

    kernel_row("rows", "norm_backward_rows", f"{t}_{m}x{n}_{parts}", numbers, gradient, T=t, BN=64, RMS=rms)
