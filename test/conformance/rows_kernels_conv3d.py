"""std.kernels.conv3d against NumPy, in both layouts: data are small integers, whose sums are exact. A convolution is
linear in each argument, so its gradients are right if <dy, conv(x, w)>, <dx, x> and <dw, w> are equal, which is
asserted for every case."""
from kernel_library import kernel_row, np, poison, rounded
from values import Arr, rng, small

PADS = [f"window.{n}_{a}" for n in ("pad", "dilation") for a in "dhw"]


def taps(x, w, y, stride, window):
    """For each tap: its place, the outputs that read a place inside with it, and these places, as indices of [N, C,
    D, H, W]."""
    for tap in np.ndindex(w.shape[:3]):
        outs, places = [], []
        for a in range(3):
            at = np.arange(y[2 + a]) * stride[a] - window[a] + tap[a] * window[3 + a]
            inside = np.nonzero((at >= 0) & (at < x[2 + a]))[0]
            outs.append(inside)
            places.append(at[inside])
        yield tap, outs, places


def groups_of(w, groups):
    c, k = w.shape[3], w.shape[4] // groups
    return [(np.arange(g * c, g * c + c), np.arange(g * k, g * k + k)) for g in range(groups)]


def at(n, channels, places):
    return np.ix_(np.arange(n), channels, *places)


def forward(x, w, y, stride, window, groups):
    out = np.zeros(y)
    for tap, o, p in taps(x.shape, w, y, stride, window):
        for c, k in groups_of(w, groups):
            out[at(y[0], k, o)] += np.einsum("ncdhw,ck->nkdhw", x[at(y[0], c, p)], w[tap][:, k])
    return out


def backward(x, w, dy, stride, window, groups):
    """dx of the shape x, and dw for x an array."""
    array = x if isinstance(x, np.ndarray) else np.zeros(x)
    dx, dw, n = np.zeros(array.shape), np.zeros(w.shape), dy.shape[0]
    for tap, o, p in taps(array.shape, w, dy.shape, stride, window):
        for c, k in groups_of(w, groups):
            g = dy[at(n, k, o)]
            dx[at(n, c, p)] += np.einsum("nkdhw,ck->ncdhw", g, w[tap][:, k])
            dw[tap][:, k] = np.einsum("ncdhw,nkdhw->ck", array[at(n, c, p)], g)
    return dx, dw


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, 4))


def first(x):
    return np.moveaxis(x, 4, 1)


# types, x, filters, y (both channels outermost), strides, pads and dilations, groups
CASES = [
    ("f32", "f32", (2, 5, 4, 5, 9), (3, 2, 3, 5, 7), (2, 7, 4, 3, 5), (1, 2, 2), (1, 0, 1, 1, 2, 1), 1),
    ("f16", "f32", (1, 6, 1, 7, 8), (1, 3, 3, 3, 4), (1, 4, 1, 7, 8), (1, 1, 1), (0, 1, 1, 1, 1, 1), 2),
    ("bf16", "bf16", (2, 18, 1, 1, 21), (1, 1, 4, 18, 17), (2, 17, 1, 1, 7), (1, 1, 3), (0, 0, 2, 1, 1, 2), 1),
    ("f64", "f64", (1, 3, 3, 4, 3), (2, 3, 2, 1, 6), (1, 6, 2, 4, 4), (2, 1, 1), (1, 1, 1, 1, 1, 1), 3),
    ("f32", "f32", (1, 1, 1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 1, 1, 1), (1, 1, 1), (0, 0, 0, 1, 1, 1), 1),
    ("f32", "f32", (0, 2, 2, 2, 2), (1, 1, 1, 2, 2), (0, 2, 2, 2, 2), (1, 1, 1), (0, 0, 0, 1, 1, 1), 1),
    ("f32", "f32", (1, 3, 5, 6, 19), (3, 4, 5, 3, 19), (1, 19, 3, 4, 15), (1, 1, 1), (0, 1, 0, 1, 1, 1), 1),
    ("f32", "f32", (2, 6, 3, 5, 7), (2, 3, 2, 3, 10), (2, 10, 2, 3, 6), (2, 2, 1), (1, 1, 0, 1, 1, 1), 2),
    ("f16", "f16", (1, 0, 1, 3, 3), (1, 3, 3, 0, 4), (1, 4, 1, 3, 3), (1, 1, 1), (0, 1, 1, 1, 1, 1), 1),
    ("f32", "f32", (1, 5, 2, 4, 37), (2, 3, 5, 5, 40), (1, 40, 1, 2, 37), (1, 1, 1), (0, 0, 2, 1, 1, 1), 1),
    # few channels, row by row: 70 outputs in one program, two blocks of a row and outputs past its end, none inside
    ("f32", "f32", (2, 3, 1, 9, 47), (1, 3, 5, 3, 70), (2, 70, 1, 5, 24), (1, 2, 2), (0, 1, 2, 1, 1, 1), 1),
    ("f64", "f64", (1, 2, 3, 4, 75), (2, 2, 4, 2, 33), (1, 33, 2, 3, 74), (1, 1, 1), (0, 0, 1, 1, 1, 2), 1),
    ("f32", "f32", (1, 3, 1, 3, 2), (1, 3, 5, 3, 20), (1, 20, 1, 1, 2), (1, 1, 1), (0, 0, 2, 1, 1, 1), 1),
    # a filter of more rows than their numbers are divided by as a product
    ("f32", "f32", (1, 1, 1, 352, 3), (1, 350, 1, 1, 5), (1, 5, 1, 3, 5), (1, 1, 1), (0, 0, 1, 1, 1, 1), 1),
    # both phases of a row at once, when transposed: a short row, a long one, groups of one output, 8 outputs and 3
    ("f32", "f32", (1, 16, 2, 5, 37), (2, 3, 5, 8, 10), (1, 10, 1, 3, 19), (1, 2, 2), (0, 1, 2, 1, 1, 1), 2),
    ("f32", "f32", (1, 8, 1, 2, 135), (1, 2, 5, 8, 6), (1, 6, 1, 1, 67), (1, 1, 2), (0, 0, 1, 1, 1, 1), 1),
    ("f32", "f32", (1, 6, 1, 5, 18), (1, 3, 3, 1, 6), (1, 6, 1, 3, 9), (1, 2, 2), (0, 1, 1, 1, 1, 1), 6),
    ("f32", "f32", (2, 11, 1, 4, 31), (1, 2, 4, 11, 5), (2, 5, 1, 2, 16), (1, 2, 2), (0, 0, 2, 1, 1, 1), 1),
    # filters one tap wide, so that rows are one: few channels, in groups, more rows than x has, which are not
    ("f32", "f32", (2, 3, 2, 9, 10), (2, 3, 1, 3, 20), (2, 20, 1, 7, 10), (1, 1, 1), (0, 0, 0, 1, 1, 1), 1),
    ("f32", "f32", (1, 12, 2, 9, 11), (1, 3, 1, 6, 10), (1, 10, 2, 5, 11), (1, 1, 1), (0, 0, 0, 1, 2, 1), 2),
    ("f64", "f64", (1, 5, 1, 9, 10), (1, 3, 1, 5, 6), (1, 6, 1, 9, 10), (1, 1, 1), (0, 0, 0, 1, 1, 1), 1),
    # 17 to 24 outputs, two rows of which share a vector: a row of 64 places and 19, none of 4 and 3
    ("f32", "f32", (1, 20, 1, 4, 83), (1, 3, 3, 20, 24), (1, 24, 1, 4, 83), (1, 1, 1), (0, 1, 1, 1, 1, 1), 1),
    # transposed, taps along a row one by one: several planes, taps apart, outputs that nothing reaches, two blocks of a
    # row, two of outputs, taps that reach no output
    ("f32", "f32", (2, 20, 3, 4, 16), (2, 2, 5, 20, 12), (2, 12, 2, 3, 12), (1, 1, 1), (0, 0, 0, 1, 1, 1), 1),
    ("f64", "f64", (1, 5, 2, 3, 21), (1, 2, 4, 5, 9), (1, 9, 2, 2, 15), (1, 1, 1), (0, 0, 0, 1, 1, 2), 1),
    ("f32", "f32", (1, 40, 1, 2, 30), (1, 3, 7, 40, 24), (1, 24, 1, 2, 20), (1, 1, 1), (0, 1, 2, 1, 1, 1), 1),
    ("f32", "f32", (1, 17, 1, 1, 79), (1, 1, 9, 17, 64), (1, 64, 1, 1, 71), (1, 1, 1), (0, 0, 0, 1, 1, 1), 1),
    ("f32", "f32", (1, 66, 5, 7, 5), (3, 3, 3, 66, 8), (1, 8, 2, 3, 3), (2, 2, 1), (0, 0, 0, 1, 1, 1), 1),
    ("f32", "f32", (1, 3, 1, 1, 2), (1, 1, 3, 3, 5), (1, 5, 1, 1, 3), (1, 1, 1), (0, 0, 4, 1, 1, 1), 1),
]
for i, (t, o, x, w, y, stride, window, groups) in enumerate(CASES):
    X_, W_, Y_ = (rng(j).integers(-2, 3, s).astype(float) for j, s in enumerate((x, w, y)))
    dx_, dw_ = backward(X_, W_, Y_, stride, window, groups)
    assert (Y_ * forward(X_, W_, y, stride, window, groups)).sum() == (dx_ * X_).sum() == (dw_ * W_).sum()
    for LAST in (False, True):
        to, back = (last, first) if LAST else (lambda v: v, lambda v: v)

        def array(element, seed, shape, to=to):
            v = small(element, seed, *shape, lo=-2, hi=3)
            return Arr(element, to(v.store))

        def shape(s, LAST=LAST):
            return (s[0], *s[2:], s[1]) if LAST else s

        scalars = dict(zip(PADS, window))
        name = f"{t}_to_{o}_{'x'.join(map(str, x))}_by_{'x'.join(map(str, w))}" + "_last" * LAST
        consts = {"T": t, "Y": o, "GROUPS": groups, "LAST": LAST}
        consts |= {f"STRIDE_{a}": s for a, s in zip("DHW", stride)}
        bias = i % 2 == 0
        tiles = {"BK": 16, "BC": 16, "BP": 1 + i % 2, "BQ": 16} if i < 6 else {}  # the last: by default
        turned = {"TURN": i % 2 == 0} if i < 6 and not LAST else {}
        by_taps = {"TURN": True, "BP": 1} if i >= len(CASES) - 6 and not LAST else {}  # as on CPUs by default
        wanted = (lambda a, name: np.asarray(a[name], np.float64))
        case = (stride, window, groups)
        kernel_row("conv3d",
                   "conv3d",
                   name, {
                       "x": array(t, 0, x),
                       "w": small(t, 1, *w, lo=-2, hi=3),
                       "bias": small(o, 4, w[4] if bias else 0),
                       "y": poison(o, *shape(y)),
                       **scalars
                   },
                   lambda a, y=y, o=o, case=case, to=to, back=back, bias=bias: {
                       "y":
                       rounded(
                           to(
                               np.maximum(
                                   forward(back(wanted(a, "x")), wanted(a, "w"), y, *case) +
                                   (wanted(a, "bias")[:, None, None, None] if bias else 0), 0)), o)
                   },
                   BIAS=bias,
                   epilogue="activation.relu",
                   **tiles,
                   **turned,
                   **consts)
        bias = i % 2 == 1
        kernel_row("conv3d",
                   "conv3d_transpose",
                   name, {
                       "x": array(t, 2, y),
                       "w": small(t, 1, *w, lo=-2, hi=3),
                       "bias": small(o, 4, x[1] if bias else 0),
                       "y": poison(o, *shape(x)),
                       **scalars
                   },
                   lambda a, x=x, o=o, case=case, to=to, back=back, bias=bias: {
                       "y":
                       rounded(
                           to(
                               backward(x, wanted(a, "w"), back(wanted(a, "x")), *case)[0] +
                               (wanted(a, "bias")[:, None, None, None] if bias else 0)), o)
                   },
                   BIAS=bias,
                   **tiles,
                   **turned,
                   **by_taps,
                   **consts)
        total, z = "f64" if t == "f64" else "f32", 1 + i % 3
        consts = {k: v for k, v in consts.items() if k != "Y"}
        kernel_row("conv3d",
                   "conv3d_backward_weight",
                   name, {
                       "x": array(t, 0, x),
                       "dy": array(t, 2, y),
                       "parts": poison(total, z, *w),
                       **scalars
                   },
                   lambda a, case=case, z=z, w=w, back=back, y=y: {"parts": parts_of(a, case, z, w, back, y)},
                   A=total,
                   BC=16,
                   BK=16,
                   BQ=16,
                   **consts)


def parts_of(a, case, z, w, back, y):
    """Each program's: rows (n, o, p) with the remainder of its number."""
    x, dy = (back(np.asarray(a[n], np.float64)) for n in ("x", "dy"))
    row = np.arange(y[0] * y[2] * y[3]).reshape(y[0], 1, y[2], y[3], 1) % z
    parts = [backward(x, np.zeros(w), dy * (row == i), *case)[1] for i in range(z)]
    return rounded(np.stack(parts), "f64")


DEPTHWISE = [("f32", (2, 3, 3, 7, 9), (2, 3, 2), 1, (2, 4, 4), (1, 2, 2), (0, 1, 0, 1, 1, 2)),
             ("f16", (1, 2, 1, 8, 21), (1, 3, 3), 2, (1, 8, 21), (1, 1, 1), (0, 1, 1, 1, 1, 1)),
             ("bf16", (1, 1, 1, 1, 1), (1, 1, 1), 1, (1, 1, 1), (1, 1, 1), (0, 0, 0, 1, 1, 1)),
             ("f64", (1, 2, 1, 5, 4), (1, 2, 2), 1, (1, 4, 3), (1, 1, 1), (0, 0, 0, 1, 1, 1)),
             ("f32", (0, 2, 1, 5, 4), (1, 2, 2), 1, (1, 4, 3), (1, 1, 1), (0, 0, 0, 1, 1, 1))]
for i, (t, x, size, multiple, extents, stride, window) in enumerate(DEPTHWISE):
    k, bias = x[1] * multiple, i % 2 == 0
    y = (x[0], k, *extents)
    kernel_row("conv3d",
               "depthwise_conv3d",
               f"{t}_{'x'.join(map(str, x))}_by_{'x'.join(map(str, size))}", {
                   "x": small(t, 0, *x),
                   "w": small(t, 1, *size, k),
                   "bias": small(t, 2, k if bias else 0),
                   "y": poison(t, *y),
                   **dict(zip(PADS, window))
               },
               lambda a, y=y, t=t, stride=stride, window=window, c=x[1], bias=bias: {
                   "y":
                   rounded(
                       np.maximum(
                           forward(np.asarray(a["x"], np.float64),
                                   np.asarray(a["w"], np.float64)[..., None, :], y, stride, window, c) +
                           (np.asarray(a["bias"], np.float64)[:, None, None, None] if bias else 0), 0), t)
               },
               T=t,
               MULTIPLE=multiple,
               BIAS=bias,
               epilogue="activation.relu",
               BP=4,
               BQ=16,
               **{
                   f"STRIDE_{a}": s
                   for a, s in zip("DHW", stride)
               })
