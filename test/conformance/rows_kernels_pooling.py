"""std.kernels.pooling against NumPy. But for the maximum all kernels are linear, so each is the product with a matrix
(of an image's pixels by its
outputs), and its gradient the product with that matrix transposed; the maximum's gradient is confirmed by differences
of small integers."""
from kernel_library import EPS, bytes_as, exact, kernel_row, near, np, poison, rounded
from rows_kernels_conv import NAMES, ONE
from values import Arr, normal, rng, small

TILES = {"BM": 8, "BC": 32}
# a program has a row of windows, a block of them; a row of one channel at a time
WAYS = {"_by_rows": {"ROWS": True}, "_by_blocks": {"ROWS": False}, "_by_channels": {"ROWS": True, "BC": 1}}


def windows(h, w, p, q, kernel, window):
    """inside[p, q, r, s], and the pixel there as h W + w."""
    sh, sw, ph, pw, dh, dw = window
    a = (np.arange(p)[:, None] * sh - ph + np.arange(kernel[0]) * dh)[:, None, :, None]
    b = (np.arange(q)[:, None] * sw - pw + np.arange(kernel[1]) * dw)[None, :, None, :]
    inside = (a >= 0) & (a < h) & (b >= 0) & (b < w)
    return inside, np.where(inside, a * w + b, 0)


def maxima(x, p, q, kernel, window):
    """y and index; the first NaN, else the first maximum."""
    n, h, w, c = x.shape
    inside, at = windows(h, w, p, q, kernel, window)
    at, inside = (v.reshape(p, q, -1) for v in (at, inside))
    y, index = np.full((n, p, q, c), -np.inf), np.full((n, p, q, c), -1)
    for place in np.ndindex(p, q) if n * c else ():
        mine = at[place][inside[place]]
        if len(mine):
            values = x.reshape(n, h * w, c)[:, mine]
            best = np.argmax(np.where(np.isnan(values), np.inf, values), axis=1)
            y[(slice(None), *place)] = np.take_along_axis(values, best[:, None], 1)[:, 0]
            index[(slice(None), *place)] = mine[best]
    return y, index


def maxima_gradient(dy, index, h, w):
    n, p, q, c = dy.shape
    dx = np.zeros((n, h * w, c))
    for i, a, b, k in np.ndindex(dy.shape):
        if index[i, a, b, k] >= 0:
            dx[i, index[i, a, b, k], k] += dy[i, a, b, k]
    return dx.reshape(n, h, w, c)


def averages(h, w, p, q, kernel, window, count_pad):
    inside, at = windows(h, w, p, q, kernel, window)
    matrix = np.zeros((p * q, h * w))
    for i, (m, a) in enumerate(zip(inside.reshape(p * q, -1), at.reshape(p * q, -1))):
        count = m.size if count_pad else m.sum()
        matrix[i, a[m]] = 1 / count if count else 0
    return matrix


def nearest(h, p):
    return (np.arange(p)[:, None] * h // p == np.arange(h)) * 1.0


def bilinear(h, p, align):
    """What output i has of pixel j."""
    t = np.arange(p) * (h - 1) / max(p - 1, 1) if align else np.maximum((np.arange(p) + 0.5) * h / p - 0.5, 0)
    before = np.minimum(np.floor(t + 1e-12).astype(int), h - 1)
    matrix = np.zeros((p, h))
    np.add.at(matrix, (np.arange(p), before), 1 - (t - before))
    np.add.at(matrix, (np.arange(p), np.minimum(before + 1, h - 1)), t - before)
    return matrix


def by_matrix(x, matrix, p, q):
    n, h, w, c = x.shape
    return np.einsum("ij,njc->nic", matrix, x.reshape(n, h * w, c)).reshape(n, p, q, c)


def pair(kernel, name, t, n, h, w, c, p, q, matrix, scalars=None, **consts):
    """A kernel whose result is matrix x, and its gradient."""
    unit = 2.0**-53 if t == "f64" else EPS
    for back in (False, True):
        m, (a, b), (e, f) = (matrix.T, (p, q), (h, w)) if back else (matrix, (h, w), (p, q))
        given, wanted = ("dy", "dx") if back else ("x", "y")
        kernel_row(
            "pooling", kernel + "_backward" * back, name,
            {given: normal(t, 1, n, a, b, c), wanted: poison(t, n, e, f, c), **(scalars or {})},
            lambda v, m=m, e=e, f=f, given=given, wanted=wanted: {
                wanted: near(by_matrix(v[given].astype(float), m, e, f), 8 *
                             (m.shape[1] + 4) * unit * by_matrix(np.abs(v[given].astype(float)), m, e, f), t)
            }, T=t, **TILES, **consts)


x_ = rng(1).permutation(6 * 5 * 2).astype(float).reshape(1, 6, 5, 2)
y_, index_ = maxima(x_, 3, 3, (3, 2), (2, 2, 1, 0, 1, 1))
dy_ = rng(2).integers(-4, 5, y_.shape).astype(float)
for place_ in np.ndindex(x_.shape):
    moved = x_.copy()
    moved[place_] += 0.5
    assert ((maxima(moved, 3, 3, (3, 2),
                    (2, 2, 1, 0, 1, 1))[0] - y_) * dy_).sum() * 2 == maxima_gradient(dy_, index_, 6, 5)[place_]

WINDOWS = [("f16", 2, 7, 9, 40, 4, 5, (3, 3), (2, 2, 1, 1, 1, 1)),
           ("f32", 1, 8, 5, 17, 5, 4, (2, 3), (2, 1, 2, 0, 1, 2)), ("bf16", 1, 1, 1, 1, 1, 1, (1, 1), ONE),
           ("f64", 1, 4, 4, 3, 2, 2, (2, 2), (2, 2, 0, 0, 1, 1)), ("f32", 0, 4, 4, 3, 2, 2, (2, 2), (2, 2, 0, 0, 1, 1)),
           ("f32", 2, 5, 40, 1, 3, 21, (3, 3), (2, 2, 1, 1, 1, 1)),
           ("f16", 1, 6, 5, 16, 6, 5, (3, 3), (1, 1, 1, 1, 1, 1)),
           ("f32", 1, 3, 30, 3, 3, 30, (3, 3), (1, 1, 1, 1, 1, 1)),
           # one channel, whose pixels lie side by side: every one, every second one
           ("f16", 2, 7, 37, 1, 7, 38, (3, 4), (1, 1, 1, 2, 1, 1)),
           ("bf16", 1, 9, 45, 1, 5, 22, (2, 3), (2, 2, 1, 1, 1, 2))]
for i, (t, n, h, w, c, p, q, kernel, window) in enumerate(WINDOWS):
    scalars = dict(zip(("kernel_h", "kernel_w", *NAMES), (*kernel, *window)))
    name = f"{t}_{n}x{h}x{w}x{c}"
    x = rng(i).integers(-4, 5, (n, h, w, c)).astype(float)  # with ties
    if i == 0:
        x[0, 3, 3:5, :3], x[1, :, :, 5] = np.nan, -np.inf
    kernel_row(
        "pooling", "max_pool2d", name,
        {"x": bytes_as(t, x), "y": poison(t, n, p, q, c), "index": poison("i32", n, p, q, c), **scalars},
        lambda a, p=p, q=q, kernel=kernel, window=window: dict(
            zip(("y", "index"), map(exact, maxima(a["x"].astype(float), p, q, kernel, window)))), T=t, **TILES)
    for way, options in WAYS.items():
        kernel_row(
            "pooling", "max_pool2d", name + way,
            {"x": bytes_as(t, x), "y": poison(t, n, p, q, c), "index": poison("i32", n, p, q, c), **scalars},
            lambda a, p=p, q=q, kernel=kernel, window=window: dict(
                zip(("y", "index"), map(exact, maxima(a["x"].astype(float), p, q, kernel, window)))), T=t,
            **{**TILES, **options})
        means, unit = averages(h, w, p, q, kernel, window, False), 2.0**-53 if t == "f64" else EPS
        kernel_row(
            "pooling", "avg_pool2d", name + way,
            {"x": small(t, 1, n, h, w, c), "y": poison(t, n, p, q, c), **scalars},
            lambda a, p=p, q=q, m=means, unit=unit, t=t: (lambda v: {
                "y": near(by_matrix(v, m, p, q), 8 * (m.shape[1] + 4) * unit * by_matrix(np.abs(v), m, p, q), t)
            })(a["x"].astype(float)), T=t, **{**TILES, **options})
    index = maxima(x, p, q, kernel, window)[1].astype(np.int32)
    kernel_row("pooling", "max_pool2d_backward", name,
               {"dy": small(t, 2, n, p, q, c), "index": Arr("i32", index), "dx": poison(t, n, h, w, c), **scalars},
               lambda a, t=t, h=h, w=w: {"dx": rounded(maxima_gradient(a["dy"].astype(float), a["index"], h, w), t)},
               T=t, **TILES)
    pair("avg_pool2d", name, t, n, h, w, c, p, q, averages(h, w, p, q, kernel, window, i % 2 == 1), scalars,
         COUNT_PAD=i % 2 == 1)

for t, n, l, m in (("f32", 3, 20, 77), ("f64", 2, 9, 1), ("f32", 1, 1, 64), ("f32", 2, 0, 9), ("f32", 2, 7, 0),
                   ("f64", 0, 3, 3)):
    at = np.random.default_rng(l + m).integers(-1, m, (n, l)).astype(np.int32)

    def planes_gradient(a, at=at, n=n, m=m, t=t):
        total = np.zeros((n, m + 1))
        np.add.at(total, (np.arange(n)[:, None], at), a["dy"].astype(float))
        return {"dx": rounded(total[:, :m], t)}

    kernel_row("pooling", "max_pool2d_planes_backward", f"{t}_{n}x{l}x{m}",
               {"dy": small(t, 2, n, l), "index": Arr("i32", at), "dx": poison(t, n, m)}, planes_gradient, T=t, B=16)

for t, n, l, c in (("f16", 2, 49, 40), ("f32", 1, 1, 1), ("bf16", 3, 20, 5), ("f64", 1, 9, 33), ("f32", 0, 4, 3)):
    unit = 2.0**-53 if t == "f64" else EPS
    name = f"{t}_{n}x{l}x{c}"
    kernel_row(
        "pooling", "global_avg_pool", name, {"x": normal(t, 1, n, l, c), "y": poison(t, n, c)},
        lambda a, t=t, unit=unit: (lambda x: {"y": near(x.mean(1), (x.shape[1] + 4) * unit * np.abs(x).mean(1), t)})
        (a["x"].astype(float)), T=t, **TILES)
    kernel_row(
        "pooling", "global_avg_pool_backward", name, {"dy": normal(t, 1, n, c), "dx": poison(t, n, l, c)},
        lambda a, t=t, l=l, unit=unit:
        (lambda d: {"dx": near(np.repeat(d[:, None], l, 1), 4 * unit * np.abs(d[:, None]), t)})
        (a["dy"].astype(float) / l), T=t, **TILES)

SIZES = [("f16", 2, 4, 3, 40, 8, 7), ("f32", 1, 3, 5, 17, 7, 2), ("bf16", 1, 1, 1, 1, 3, 4), ("f64", 1, 5, 4, 3, 1, 9),
         ("f32", 0, 2, 2, 3, 4, 4), ("f32", 1, 6, 6, 2, 3, 3)]
for i, (t, n, h, w, c, p, q) in enumerate(SIZES):
    name = f"{t}_{n}x{h}x{w}x{c}_to_{p}x{q}"
    pair("upsample_nearest", name, t, n, h, w, c, p, q, np.kron(nearest(h, p), nearest(w, q)))
    for align in (False, True):
        pair("upsample_bilinear", f"align_{name}" if align else name, t, n, h, w, c, p, q,
             np.kron(bilinear(h, p, align), bilinear(w, q, align)), ALIGN=align)
