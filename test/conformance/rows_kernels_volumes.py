"""std.kernels.pool3d and std.kernels.axes_norms against NumPy, in both layouts."""
from kernel_library import EPS, Arr, bytes_as, exact, f64, kernel_row, near, np, poison, rounded
from rows_kernels_conv3d import PADS, first, last, taps
from values import normal, rng, small, zeros

# types, x and extents of y (channels outermost), windows, strides, pads and dilations, what counts is all of the window
POOLS = [
    ("f32", (2, 3, 4, 5, 9), (2, 3, 5), (2, 3, 2), (2, 2, 2), (0, 1, 1, 1, 1, 1), False),
    ("f16", (1, 6, 1, 7, 8), (1, 7, 4), (1, 3, 3), (1, 1, 2), (0, 1, 1, 1, 1, 1), True),
    ("bf16", (2, 5, 1, 1, 21), (1, 1, 7), (1, 1, 4), (1, 1, 3), (0, 0, 2, 1, 1, 2), False),
    ("f64", (1, 2, 3, 4, 3), (2, 4, 4), (2, 2, 2), (1, 1, 1), (0, 1, 1, 1, 1, 1), True),
    ("f32", (1, 1, 1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0, 1, 1, 1), False),
    ("f32", (0, 2, 2, 2, 2), (1, 1, 1), (2, 2, 2), (2, 2, 2), (0, 0, 0, 1, 1, 1), False),
    ("f32", (1, 3, 2, 4, 4), (2, 5, 5), (1, 2, 2), (1, 1, 1), (0, 1, 1, 1, 3, 3), False),
    ("f32", (1, 2, 1, 3, 39), (1, 3, 39), (1, 1, 3), (1, 1, 1), (0, 0, 1, 1, 1, 1), False),
    ("f32", (1, 2, 1, 14, 40), (1, 2, 4), (1, 9, 11), (1, 5, 9), (0, 2, 3, 1, 1, 1), True),  # wide windows
    ("f16", (1, 1, 2, 3, 50), (2, 2, 3), (1, 2, 19), (1, 1, 12), (0, 0, 2, 1, 1, 1), False),
    ("f64", (2, 1, 3, 2, 30), (2, 3, 5), (2, 1, 8), (1, 1, 7), (0, 1, 5, 1, 1, 1), False),
]


def pooled(x, y, size, stride, window):
    """The maximum, where it is, the sum and how many places are inside, by outputs."""
    most, index = np.full(y, -np.inf), np.full(y, -1)
    total, count = np.zeros(y), np.zeros(y)
    for _, o, p in taps(x.shape, np.zeros((*size, 1, 1)), y, stride, window):
        at = np.ix_(np.arange(y[0]), np.arange(y[1]), *o)
        v = x[np.ix_(np.arange(y[0]), np.arange(y[1]), *p)]
        place = np.broadcast_to(((p[0][:, None] * x.shape[3] + p[1])[:, :, None] * x.shape[4]) + p[2], v.shape)
        more = (v > most[at]) | (index[at] < 0) | np.isnan(v) & ~np.isnan(most[at])
        most[at], index[at] = np.where(more, v, most[at]), np.where(more, place, index[at])
        total[at] += v
        count[at] += 1
    return most, index, total, count


def spread(dy, x, size, stride, window, index=None):
    """What each place of x gets of dy: from all of its windows, or from those whose maximum it is."""
    dx = np.zeros(x)
    for _, o, p in taps(x, np.zeros((*size, 1, 1)), dy.shape, stride, window):
        at = np.ix_(np.arange(x[0]), np.arange(x[1]), *o)
        place = (p[0][:, None] * x[3] + p[1])[:, :, None] * x[4] + p[2]
        dx[np.ix_(np.arange(x[0]), np.arange(x[1]), *p)] += dy[at] * (1 if index is None else index[at] == place)
    return dx


for i, (t, x, extents, size, stride, window, count_pad) in enumerate(POOLS):
    y = (*x[:2], *extents)
    data = rng(i).integers(-4, 5, x).astype(float)
    if i == 0:
        data[0, 1, 2, 2:4, 3] = np.nan
    unit = 2.0**-53 if t == "f64" else EPS
    for LAST in (False, True):
        to, back = (last, first) if LAST else (np.array, np.array)
        name = f"{t}_{'x'.join(map(str, x))}" + "_last" * LAST
        numbers = {**{f"kernel_{a}": s for a, s in zip("dhw", size)}, **dict(zip(PADS, window))}
        consts = {"T": t, "LAST": LAST, "BC": 16 if LAST else 1, **{f"STRIDE_{a}": s for a, s in zip("DHW", stride)}}
        sums = {**consts, "A": "f64" if t == "f64" else "f32"}
        forward, backward = {"BP": 1 + i % 2, "BQ": 4 if LAST else 16}, {"BH": 1 + i % 2, "BW": 4 if LAST else 16}
        X, Y = (to(np.zeros(s)).shape for s in (x, y))
        case = (size, stride, window)
        kernel_row("pool3d",
                   "max_pool3d",
                   name, {
                       "x": bytes_as(t, to(data)),
                       "y": poison(t, *Y),
                       "index": poison("i32", *Y),
                       **numbers
                   },
                   lambda a, y=y, case=case, to=to, back=back: (lambda found: {
                       "y": exact(to(found[0])),
                       "index": exact(to(found[1]))
                   })(pooled(back(a["x"].astype(float)), y, *case)),
                   **forward,
                   **consts)
        means = np.prod(size) if count_pad else None
        kernel_row("pool3d",
                   "pool3d",
                   name, {
                       "x": Arr(t, to(small(t, i, *x).store)),
                       "y": poison(t, *Y),
                       "neutral": 0,
                       **numbers
                   },
                   lambda a, y=y, case=case, to=to, back=back, n=means, unit=unit, t=t: (lambda found: {
                       "y":
                       near(to(found[2] / (n or found[3])), 8 * unit * np.abs(to(found[2] / (n or found[3]))), t)
                   })(pooled(back(a["x"].astype(float)), y, *case)),
                   COUNT_PAD=count_pad,
                   **forward,
                   **sums)
        kernel_row("pool3d",
                   "pool3d",
                   "greatest_" + name, {
                       "x": Arr(t, to(small(t, i, *x).store)),
                       "y": poison(t, *Y),
                       "neutral": -np.inf,
                       **numbers
                   },
                   lambda a, y=y, case=case, to=to, back=back:
                   {"y": exact(to(pooled(back(a["x"].astype(float)), y, *case)[0]))},
                   combine="reductions.greater",
                   finish="reductions.total",
                   **forward,
                   **sums)
        found = pooled(data, y, *case)
        kernel_row("pool3d",
                   "max_pool3d_backward",
                   name, {
                       "dy": Arr(t, to(small(t, 2, *y).store)),
                       "index": Arr("i32",
                                    to(found[1]).astype(np.int32)),
                       "dx": poison(t, *X),
                       **numbers
                   },
                   lambda a, x=x, case=case, to=to, back=back, t=t:
                   {"dx": rounded(to(spread(back(a["dy"].astype(float)), x, *case, back(a["index"]))), t)},
                   **backward,
                   **sums)
        share = np.full(y, 1 / means) if count_pad else 1 / np.maximum(found[3], 1)

        def averages(a, x=x, case=case, to=to, back=back, t=t, unit=unit, share=share):
            d = back(a["dy"].astype(float)) * share
            return {"dx": near(to(spread(d, x, *case)), 40 * unit * to(spread(np.abs(d), x, *case)), t)}

        kernel_row("pool3d",
                   "avg_pool3d_backward",
                   name, {
                       "dy": Arr(t, to(normal(t, 2, *y).store)),
                       "dx": poison(t, *X),
                       **numbers
                   },
                   averages,
                   COUNT_PAD=count_pad,
                   **backward,
                   **sums)

# ---- norms ----
# types, (I, J, R, S), the axes I and R exchanged in memory (as of batch norm), weights by element
NORMS = [("f32", (1, 3, 4, 35), True, False), ("f16", (2, 4, 3, 20), False, False),
         ("bf16", (3, 1, 1, 33), False, True), ("f64", (2, 2, 2, 5), False, False), ("f32", (1, 1, 1, 1), False, False),
         ("f32", (0, 2, 3, 4), False, False), ("f32", (2, 3, 2, 40), False, True)]


def batches(a, axes):
    """[R, J, I, S] in memory, as [I, J, R, S]."""
    return Arr(a.type, a.store.transpose(2, 1, 0, 3)) if axes else a


for i, (t, shape, swapped, elements) in enumerate(NORMS):
    a_type, unit = ("f64", 2.0**-53) if t == "f64" else ("f32", EPS)
    memory = tuple(shape[k] for k in (2, 1, 0, 3)) if swapped else shape
    I, J, R, S = shape
    w = (R, S) if elements else (J, R)
    kept = {"mean": poison(a_type, I, J), "variance": poison(a_type, I, J)}
    given = {
        "x": batches(normal(t, i, *memory), swapped),
        "w": normal(t, 7, *w),
        "bias": normal(t, 8, *w),
        "eps": 0.125
    }
    if swapped:  # a number for each j
        given |= {k: Arr(t, np.broadcast_to(normal(t, 7, J, 1).store, w)) for k in ("w", "bias")}
    y = {"y": batches(poison(t, *memory), swapped)}
    consts = {"T": t, "A": a_type, "BS": 16}
    name = f"{t}_{'x'.join(map(str, shape))}" + "_elements" * elements

    def moments(a):
        x = a["x"].astype(float)
        return x.mean((2, 3)), x.var((2, 3))

    def weight(a, name, elements=elements):
        v = a[name].astype(float)
        return v if elements else v[None, :, :, None]

    def normed(a, relu, mean=None, variance=None, weight=weight):
        m, v = (mean, variance) if mean is not None else moments(a)
        out = (a["x"].astype(float) - m[..., None, None]) / np.sqrt(v + 0.125)[..., None, None] * weight(
            a, "w") + weight(a, "bias")
        return np.maximum(out, 0) if relu else out

    running = {
        "running_mean": normal(a_type, 3, J if I == 1 else 0),
        "running_variance": normal(a_type, 4, J if I == 1 else 0)
    }

    def statistics(a, I=I, unit=unit, n=R * S):
        mean, variance = moments(a)
        out = {"mean": near(mean, 60 * unit, "f64"), "variance": near(variance, 100 * unit * (1 + variance), "f64")}
        if I == 1:
            m, v = (a["running_" + k].astype(float) for k in ("mean", "variance"))
            out["running_mean"] = near(m + 0.25 * (mean[0] - m), 100 * unit, "f64")
            out["running_variance"] = near(v + 0.25 * (variance[0] * (n / max(n - 1, 1)) - v),
                                           200 * unit * (1 + variance[0]), "f64")
        return out

    kernel_row("axes_norms",
               "axes_moments",
               name, {
                   "x": given["x"],
                   **kept,
                   **running, "momentum": 0.25
               },
               statistics,
               RUNNING=I == 1,
               **consts)
    kernel_row("axes_norms",
               "axes_norm_whole",
               name, {
                   **given,
                   **y,
                   **kept
               },
               lambda a, t=t, unit=unit, f=normed, g=statistics: {"y": near(f(a, True), 400 * unit, t)},
               ELEMENTS=elements,
               epilogue="activation.relu",
               **consts)
    fixed = {"mean": normal(a_type, 5, I, J), "variance": Arr(a_type, np.abs(normal(a_type, 6, I, J).store))}
    kernel_row("axes_norms",
               "axes_norm",
               name, {
                   **given,
                   **y,
                   **fixed
               },
               lambda a, t=t, unit=unit, f=normed:
               {"y": near(f(a, False, a["mean"].astype(float), a["variance"].astype(float)), 400 * unit, t)},
               ELEMENTS=elements,
               **consts)

    def gradient(a, t=t, unit=unit, weight=weight):
        dy, x, m, variance = f64(a, "dy", "x", "mean", "variance")
        r = 1 / np.sqrt(variance + 0.125)[..., None, None]
        v, g = (x - m[..., None, None]) * r, dy * weight(a, "w")
        dx = (g - g.mean((2, 3), keepdims=True) - v * (g * v).mean((2, 3), keepdims=True)) * r
        many = x.shape[3] + 4
        return {
            "dx": near(dx, 2000 * unit, t),
            "part_w": near((dy * v).sum(3), 20 * many * unit, "f64"),
            "part_bias": near(dy.sum(3), 20 * many * unit, "f64")
        }

    kernel_row("axes_norms",
               "axes_norm_backward",
               name, {
                   **{
                       k: given[k]
                       for k in ("x", "w", "eps")
                   },
                   **fixed, "dy": batches(normal(t, 9, *memory), swapped),
                   "dx": batches(poison(t, *memory), swapped),
                   "part_w": poison(a_type, I, J, R),
                   "part_bias": poison(a_type, I, J, R)
               },
               gradient,
               ELEMENTS=elements,
               **consts)
