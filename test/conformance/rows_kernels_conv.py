"""std.kernels.conv against NumPy: data are small integers, whose sums are exact. A convolution is linear in each
argument, so its
gradients are right if the dot products <dy, conv(x, w)>, <dx, x> and <dw, w> are equal, which is asserted here for
every case."""
from kernel_library import exact, kernel_row, np, poison, rounded
from values import Arr, rng, small, zeros

NAMES = [f"window.{n}" for n in ("stride_h", "stride_w", "pad_h", "pad_w", "dilation_h", "dilation_w")]
ONE = (1, 1, 1, 1, 1, 1)


def taps(window, w, y, x):
    """For each tap of w: its place, the outputs that read a pixel inside with it, and these pixels, as indices of
    images."""
    sh, sw, ph, pw, dh, dw = window
    for i, j in np.ndindex(w.shape[:2]):
        rows, columns = np.arange(y.shape[1]) * sh - ph + i * dh, np.arange(y.shape[2]) * sw - pw + j * dw
        a, b = np.nonzero((rows >= 0) & (rows < x.shape[1]))[0], np.nonzero((columns >= 0) & (columns < x.shape[2]))[0]
        yield (i, j), (slice(None), *np.ix_(a, b)), (slice(None), *np.ix_(rows[a], columns[b]))


def groups_of(w, groups):
    """For each group: its channels, its outputs."""
    c, k = w.shape[2], w.shape[3] // groups
    return [(slice(g * c, g * c + c), slice(g * k, g * k + k)) for g in range(groups)]


def convolved(x, w, y, window, groups=1):
    y = np.zeros(y.shape)
    for tap, out, at in taps(window, w, y, x):
        for c, k in groups_of(w, groups):
            y[(*out, k)] += x[(*at, c)] @ w[tap][:, k]
    return y


def gradients(x, w, dy, window, groups=1):
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    for tap, out, at in taps(window, w, dy, x):
        for c, k in groups_of(w, groups):
            dx[(*at, c)] += dy[(*out, k)] @ w[tap][:, k].T
            dw[tap][:, k] = np.tensordot(x[(*at, c)], dy[(*out, k)], ([0, 1, 2], [0, 1, 2]))
    return dx, dw


def weight_shares(x, parts, dy, window, groups, block):
    """gradients by w of the outputs of each share, a multiple of `block`."""
    blocks, shares = -(-int(np.prod(dy.shape[:3])) // block), len(parts)
    owner = (np.arange(np.prod(dy.shape[:3])) // block // max(-(-blocks // shares), 1)).reshape(*dy.shape[:3], 1)
    return np.stack([gradients(x, parts[z], dy * (owner == z), window, groups)[1] for z in range(shares)])


def depthwise(x, w, y, window):
    """Each channel as often as it has filters."""
    x, y = np.repeat(x, y.shape[3] // max(x.shape[3], 1), 3), np.zeros(y.shape)
    for tap, out, at in taps(window, w, y, x):
        y[out] += x[at] * w[tap]
    return y


def depthwise_gradients(x, w, dy, window):
    multiple = dy.shape[3] // max(x.shape[3], 1)
    x = np.repeat(x, multiple, 3)
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    for tap, out, at in taps(window, w, dy, x):
        dx[at] += dy[out] * w[tap]
        dw[tap] = (x[at] * dy[out]).sum((0, 1, 2))
    return dx.reshape(*dx.shape[:3], dx.shape[3] // multiple, multiple).sum(4), dw


def adjoint(forward, backward, x, w, y, *more):
    x, w, dy = (rng(i).integers(-4, 5, shape).astype(float) for i, shape in enumerate((x, w, y)))
    dx, dw = backward(x, w, dy, *more)
    assert (dy * forward(x, w, dy, *more)).sum() == (dx * x).sum() == (dw * w).sum()


def of(*names):
    """The named arguments of a row as f64."""
    return lambda a: [a[n].astype(np.float64) for n in names]


# types, images, filters, outputs, window, groups
CASES = [
    ("f16", "f16", (2, 9, 7, 20), (3, 3, 20, 24), (2, 9, 7, 24), ONE, 1),
    ("f32", "f32", (1, 11, 8, 5), (3, 2, 5, 7), (1, 5, 3, 7), (2, 3, 1, 0, 1, 2), 1),
    ("bf16", "f32", (1, 6, 6, 12), (3, 3, 4, 6), (1, 6, 6, 6), ONE, 3),
    ("f64", "f64", (1, 5, 4, 3), (2, 2, 3, 2), (1, 4, 4, 2), (1, 1, 0, 1, 1, 1), 1),
    ("f32", "f32", (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 0, 0, 1, 1), 1),
    ("f32", "f32", (0, 4, 4, 2), (3, 3, 2, 2), (0, 4, 4, 2), ONE, 1),
    ("f16", "f32", (1, 3, 3, 0), (3, 3, 0, 4), (1, 3, 3, 4), ONE, 1),
    ("f16", "f16", (3, 5, 6, 40), (5, 5, 20, 34), (3, 3, 3, 34), (2, 2, 2, 2, 1, 1), 2),
    # groups of few channels: whole blocks, half blocks and parts of them
    ("f32", "f32", (2, 5, 6, 128), (3, 3, 4, 128), (2, 5, 6, 128), ONE, 32),
    ("f16", "f16", (1, 6, 5, 72), (3, 2, 8, 72), (1, 3, 3, 72), (2, 2, 1, 0, 1, 1), 9),
    ("bf16", "f32", (1, 4, 7, 26), (2, 3, 2, 26), (1, 5, 5, 26), (1, 1, 1, 1, 1, 2), 13),
    ("f64", "f64", (1, 3, 4, 20), (3, 3, 4, 20), (1, 3, 4, 20), ONE, 5),
    ("f32", "f32", (0, 3, 3, 8), (3, 3, 4, 8), (0, 3, 3, 8), ONE, 2),
    # pixels inside, four at a time, half as many and one by one; strides, dilations, padding past the image
    ("f32", "f32", (1, 4, 16, 32), (3, 3, 8, 32), (1, 4, 16, 32), ONE, 4),
    ("f32", "f32", (1, 7, 21, 12), (3, 3, 2, 12), (1, 4, 11, 12), (2, 2, 1, 1, 1, 1), 6),
    ("f16", "f32", (2, 5, 19, 20), (3, 2, 4, 20), (2, 7, 20, 20), (1, 1, 3, 2, 2, 3), 5),
    # groups with as many outputs as channels twice and four times, half as many, and three
    ("f32", "f32", (1, 3, 15, 20), (3, 3, 1, 40), (1, 3, 15, 40), ONE, 20),
    ("bf16", "bf16", (1, 5, 9, 9), (3, 2, 1, 36), (1, 5, 5, 36), (1, 2, 1, 1, 1, 1), 9),
    ("f32", "f32", (1, 3, 9, 24), (2, 3, 4, 12), (1, 4, 9, 12), (1, 1, 1, 1, 1, 1), 6),
    ("f32", "f32", (2, 4, 12, 16), (3, 3, 2, 32), (2, 4, 12, 32), ONE, 8),
    ("f64", "f64", (1, 4, 13, 9), (3, 3, 3, 9), (1, 4, 13, 9), ONE, 3),
    ("f32", "f32", (1, 4, 14, 36), (3, 3, 12, 54), (1, 4, 14, 54), ONE, 3),
    # one tap
    ("f32", "f32", (1, 4, 11, 10), (1, 1, 5, 6), (1, 4, 11, 6), (1, 1, 0, 0, 1, 1), 2),
    # few channels: pixels inside, four at a time, and at both ends
    ("f32", "f32", (1, 6, 21, 1), (3, 3, 1, 20), (1, 6, 21, 20), ONE, 1),
    ("bf16", "f32", (2, 5, 19, 2), (3, 2, 2, 33), (2, 3, 21, 33), (2, 1, 1, 2, 1, 2), 1),
]
for i, (t, o, x, w, y, window, groups) in enumerate(CASES):
    adjoint(convolved, gradients, x, w, y, window, groups)
    scalars = dict(zip(NAMES, window))
    name = f"{t}_to_{o}_{'x'.join(map(str, x))}_by_{'x'.join(map(str, w))}"
    X, W, DY = (small(t, j, *shape, lo=-2, hi=3) for j, shape in enumerate((x, w, y)))
    bias = i % 2 == 0
    kernel_row(
        "conv", "conv2d", name,
        {"x": X, "w": W, "bias": small(o, 4, w[3] if bias else 0), "y": poison(o, *y), **scalars},
        lambda a, o=o, window=window, groups=groups, bias=bias:
        (lambda x, w:
         {"y": rounded(np.maximum(convolved(x, w, a["y"], window, groups) + (a["bias"] if bias else 0), 0), o)})
        (*of("x", "w")(a)), T=t, O=o, GROUPS=groups, BIAS=bias, epilogue="activation.relu", BM=32, BN=16, BC=16)
    kernel_row(
        "conv", "conv2d_any", name,
        {"x": X, "w": W, "bias": small(o, 4, w[3] if bias else 0), "y": poison(o, *y), **scalars, "groups": groups},
        lambda a, o=o, window=window, groups=groups, bias=bias:
        (lambda x, w: {"y": rounded(convolved(x, w, a["y"], window, groups) + (a["bias"] if bias else 0), o)})
        (*of("x", "w")(a)), T=t, O=o, BM=32, BN=16, BC=16)
    per_group = w[3] // groups
    if groups > 1 and w[2] in (1, 2, 4, 8) and per_group in (1, 2, 4, 8):
        kernel_row(
            "conv", "conv2d_groups", name,
            {"x": X, "w": W, "bias": small(o, 4, w[3] if bias else 0), "y": poison(o, *y), **scalars},
            lambda a, o=o, window=window, groups=groups, bias=bias:
            (lambda x, w: {"y": rounded(convolved(x, w, a["y"], window, groups) + (a["bias"] if bias else 0), o)})
            (*of("x", "w")(a)), T=t, O=o, G=w[2], M=per_group, BK=16 if i % 2 else 32)
    kernel_row(
        "conv", "conv2d_direct", name,
        {"x": X, "w": W, "bias": small(o, 4, w[3] if bias else 0), "y": poison(o, *y), **scalars, "groups": groups},
        lambda a, o=o, window=window, groups=groups, bias=bias:
        (lambda x, w: {"y": rounded(convolved(x, w, a["y"], window, groups) + (a["bias"] if bias else 0), o)})
        (*of("x", "w")(a)), T=t, O=o, BQ=(4, 6, 1)[i % 3], BN=8 if per_group <= 8 else 16)
    for stride in {0, window[1]} & {0, 1, 2}:  # along rows; 0: any
        kernel_row(
            "conv", "conv2d_planes", f"{name}_stride_{stride}",
            {"x": small(t, 0, x[0], x[3], x[1], x[2], lo=-2, hi=3),
             "w": small(t, 1, w[3], w[2], w[0], w[1], lo=-2, hi=3),
             "bias": small(o, 4, w[3] if bias else 0), "y": poison(o, y[0], y[3], y[1], y[2]), **scalars,
             "groups": groups},
            lambda a, o=o, window=window, groups=groups, bias=bias:
            (lambda x, w: {"y": rounded(
                (convolved(x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), a["y"].transpose(0, 2, 3, 1), window,
                           groups) + (a["bias"] if bias else 0)).transpose(0, 3, 1, 2), o)})
            (*of("x", "w")(a)), T=t, O=o, STRIDE=stride, BK=(4, 3)[i % 2], BP=(4, 3)[i % 2], BQ=(16, 8)[i % 2])
    if groups == 1:
        # each channel and row of a tile of pixels for itself, whatever the device
        kernel_row(
            "conv", "conv2d", name + "_few",
            {"x": X, "w": W, "bias": small(o, 4, w[3]), "y": poison(o, *y), **scalars},
            lambda a, o=o, window=window:
            (lambda x, w: {"y": rounded(np.maximum(convolved(x, w, a["y"], window) + a["bias"], 0), o)})
            (*of("x", "w")(a)), T=t, O=o, BIAS=True, epilogue="activation.relu", BM=32, BN=16, BC=16, FEW=4)
    kernel_row(
        "conv", "conv2d_backward_data", name, {"dy": DY, "w": W, "dx": poison(o, *x), **scalars},
        lambda a, o=o, window=window, groups=groups:
        {"dx": rounded(gradients(np.zeros(a["dx"].shape),
                                 *of("w", "dy")
                                 (a), window, groups)[0], o)}, T=t, O=o, GROUPS=groups, BM=32, BN=16, BK=16)
    total, z = "f64" if t == "f64" else "f32", 1 + i % 3
    arrived = zeros("u32", w[0] * w[1] * groups, -(-w[2] // 16), -(-w[3] // groups // 16))
    kernel_row(
        "conv", "conv2d_backward_weight", name,
        {"x": X, "dy": DY, "dw": poison(o, *w), "parts": poison(total, z, *w), "arrived": arrived, **scalars},
        lambda a, o=o, window=window, groups=groups: {
            "dw": rounded(gradients(*of("x", "dw", "dy")(a), window, groups)[1], o), "arrived": exact(
                np.zeros(a["arrived"].shape, np.uint32))
        }, T=t, O=o, A=total, GROUPS=groups, BM=16, BN=16, BK=16)
    kernel_row(
        "conv", "conv2d_any_backward_data", name,
        {"dy": DY, "w": small(t, 1, *w[:2], w[3], w[2], lo=-2, hi=3), "dx": poison(o, *x), **scalars, "groups": groups},
        lambda a, o=o, window=window, groups=groups: {
            "dx": rounded(
                gradients(np.zeros(a["dx"].shape), a["w"].astype(np.float64).swapaxes(2, 3),
                          *of("dy")
                          (a), window, groups)[0], o)
        }, T=t, O=o, BM=32, BN=16, BK=16)
    kernel_row(
        "conv", "conv2d_any_backward_weight", name,
        {"x": X, "dy": DY, "parts": poison(total, z, *w), **scalars, "groups": groups},
        lambda a, window=window, groups=groups, total=total:
        {"parts": exact(weight_shares(*of("x", "parts", "dy")(a), window, groups, 16).astype(a["parts"].dtype))},
        T=t, A=total, BM=16, BN=16, BK=16)
    if groups == 1:
        kernel_row(
            "conv", "conv2d_transpose", name,
            {"x": DY, "w": W, "bias": small(o, 4, w[2] if bias else 0), "y": poison(o, *x), **scalars},
            lambda a, o=o, window=window, bias=bias: {
                "y": rounded(
                    gradients(np.zeros(a["y"].shape),
                              *of("w", "x")(a), window)[0] + (a["bias"] if bias else 0), o)
            }, T=t, O=o, BIAS=bias, BM=32, BN=16, BK=16)

# Planes: blocks of rows inside, at the borders and past the end; taps after which a row of outputs reads what the next
# one read: 1, 2, none.
for i, (t, o, shape, filter_size, window) in enumerate(
    (("f32", "f32", (1, 2, 24, 70), (3, 3), ONE), ("f32", "f32", (2, 2, 21, 75), (5, 4), (2, 2, 2, 1, 1, 1)),
     ("f16", "f32", (1, 3, 23, 61), (3, 3), (1, 1, 2, 2, 2, 2)),
     ("bf16", "bf16", (1, 2, 30, 80), (3, 2), (2, 2, 2, 2, 2, 2)),
     ("f32", "f32", (1, 2, 25, 40), (5, 3), (2, 1, 2, 1, 1, 1)),
     ("f64", "f64", (1, 2, 19, 33), (4, 7), (1, 1, 0, 3, 1, 1)))):
    (n, c, h, w), (r, s), (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w) = shape, filter_size, window
    p = (h + 2 * pad_h - dilation_h * (r - 1) - 1) // stride_h + 1
    q = (w + 2 * pad_w - dilation_w * (s - 1) - 1) // stride_w + 1
    outer, back, even = (0, 3, 1, 2), (0, 2, 3, 1), stride_h == stride_w
    for way, options in {"by_rows": {"ROWS": True, "BP": 3}, "by_blocks": {"ROWS": False, "BP": 2}}.items():
        kernel_row(
            "conv", "depthwise_planes", f"{t}_to_{o}_{h}x{w}_{way}",
            {"x": small(t, 0, *shape), "w": small(t, 1, c, r, s), "bias": small(o, 4, c if i % 2 else 0),
             "y": poison(o, n, c, p, q), **dict(zip(NAMES, window))},
            lambda a, o=o, window=window, i=i, outer=outer, back=back:
            (lambda x, w: {"y": rounded(
                (depthwise(x.transpose(back), w.transpose(1, 2, 0), a["y"].transpose(back), window) +
                 (a["bias"] if i % 2 else 0)).transpose(outer), o)})(*of("x", "w")(a)), T=t, O=o, BQ=16,
            STRIDE=stride_h if even else 0, **options)

for i, (t, o, n, h, w, c, r, s, p, q, window, multiple) in enumerate(
    (("f16", "f16", 2, 7, 9, 40, 3, 3, 7, 9, ONE, 1), ("f32", "f32", 1, 8, 5, 17, 3, 2, 4, 3, (2, 2, 1, 0, 1, 2), 1),
     ("bf16", "f32", 1, 1, 1, 1, 3, 3, 1, 1, ONE, 1), ("f32", "f32", 2, 5, 7, 15, 3, 2, 3, 3, (2, 2, 1, 0, 1, 1), 3),
     ("f64", "f64", 1, 4, 4, 3, 2, 2, 3, 3, (1, 1, 0, 0, 1, 1), 1), ("f32", "f32", 0, 4, 4, 3, 3, 3, 4, 4, ONE, 1),
     ("f16", "f32", 1, 5, 6, 20, 3, 3, 5, 6, ONE, 2), ("f64", "f64", 1, 3, 3, 1, 1, 1, 3, 3, (1, 1, 0, 0, 1, 1), 5),
     ("f32", "f32", 2, 4, 40, 1, 3, 3, 2, 20, (2, 2, 1, 1, 1, 1), 1), ("f16", "f32", 1, 3, 30, 3, 3, 3, 3, 30, ONE, 1),
     ("f32", "f32", 1, 4, 9, 70, 3, 3, 4, 9, ONE, 1),
     # rows of several vectors of whole pixels, inside and at both ends
     ("f32", "f32", 1, 3, 90, 3, 3, 3, 3, 90, ONE, 1),
     ("f16", "f32", 1, 4, 260, 1, 2, 3, 2, 262, (2, 1, 1, 3, 1, 2), 1),
     ("bf16", "bf16", 2, 2, 50, 7, 1, 4, 2, 45, (1, 1, 0, -1, 1, 1), 1),
     # pixels of many channels, inside and at both ends: blocks that overlap, half blocks, strides, two programs a row
     ("f32", "f32", 1, 5, 12, 40, 3, 3, 5, 12, ONE, 1),
     ("f16", "f32", 2, 4, 14, 24, 2, 4, 5, 13, ONE, 1),
     ("f32", "f32", 1, 6, 17, 33, 3, 3, 3, 9, (2, 2, 1, 1, 1, 1), 1),
     ("bf16", "bf16", 1, 3, 9, 520, 3, 3, 3, 9, ONE, 1))):
    k = c * multiple
    adjoint(depthwise, depthwise_gradients, (n, h, w, c), (r, s, k), (n, p, q, k), window)
    scalars, bias, total = dict(zip(NAMES, window)), i % 2 == 0, "f64" if t == "f64" else "f32"
    name = f"{t}_to_{o}_{n}x{h}x{w}x{c}" + (f"_times_{multiple}" if multiple > 1 else "")
    X, W, DY = (small(t, j, *shape) for j, shape in enumerate(((n, h, w, c), (r, s, k), (n, p, q, k))))
    blocks = {"MULTIPLE": multiple, "BM": 8, "BC": 32}
    kernel_row(
        "conv", "depthwise_conv2d", name,
        {"x": X, "w": W, "bias": small(o, 4, k if bias else 0), "y": poison(o, n, p, q, k), **scalars},
        lambda a, o=o, window=window, bias=bias:
        {"y": rounded(np.maximum(depthwise(*of("x", "w")(a), a["y"], window) +
                                 (a["bias"]
                                  if bias else 0), 0), o)}, T=t, O=o, BIAS=bias, epilogue="activation.relu", **blocks)
    if multiple == 1:
        # a program has a row of outputs, a block of them; a row of one channel at a time
        for way, options in {"_by_rows": {"ROWS": True}, "_by_blocks": {"ROWS": False},
                             "_by_channels": {"ROWS": True, "BC": 1}}.items():
            kernel_row(
                "conv", "depthwise_conv2d", name + way,
                {"x": X, "w": W, "bias": small(o, 4, k), "y": poison(o, n, p, q, k), **scalars},
                lambda a, o=o, window=window:
                {"y": rounded(depthwise(*of("x", "w")(a), a["y"], window) + a["bias"], o)}, T=t, O=o, BIAS=True,
                **{**blocks, **options})
        outer, back = (0, 3, 1, 2), (0, 2, 3, 1)
        kernel_row(
            "conv", "depthwise_planes", name,
            {"x": small(t, 0, n, c, h, w), "w": small(t, 1, c, r, s), "bias": small(o, 4, c if bias else 0),
             "y": poison(o, n, c, p, q), **scalars},
            lambda a, o=o, window=window, bias=bias, outer=outer, back=back:
            (lambda x, w: {"y": rounded(
                (depthwise(x.transpose(back), w.transpose(1, 2, 0), a["y"].transpose(back), window) +
                 (a["bias"] if bias else 0)).transpose(outer), o)})(*of("x", "w")(a)), T=t, O=o, BP=2, BQ=16,
            STRIDE=window[0] if window[0] == window[1] else 0)
    kernel_row(
        "conv", "depthwise_conv2d_backward_data", name, {"dy": DY, "w": W, "dx": poison(o, n, h, w, c), **scalars},
        lambda a, o=o, window=window:
        {"dx": rounded(depthwise_gradients(np.zeros(a["dx"].shape),
                                           *of("w", "dy")(a), window)[0], o)}, T=t, O=o, **blocks)
    parts = 1 + i % 3
    # Program z has the blocks of 8 outputs z, z + parts, ...
    mine = [np.arange(n * p * q) // 8 % parts == z for z in range(parts)]
    kernel_row(
        "conv", "depthwise_conv2d_backward_weight", name,
        {"x": X, "dy": DY, "parts": poison(total, parts, r, s, k), **scalars},
        lambda a, window=window, mine=mine, r=r, s=s: {
            "parts": exact(
                np.stack([
                    depthwise_gradients(*of("x")(a), np.zeros(
                        (r, s, a["dy"].shape[3])), a["dy"] * m.reshape(*a["dy"].shape[:3], 1), window)[1] for m in mine
                ]).astype(a["parts"].dtype))
        }, T=t, A=total, **blocks)

for t, m, k, z in (("f16", 40, 33, 2), ("f64", 1, 1, 1), ("bf16", 0, 5, 2), ("f32", 70, 5, 3)):
    total = "f64" if t == "f64" else "f32"
    kernel_row(
        "conv", "bias_backward", f"{t}_{m}x{k}", {"dy": small(t, 1, m, k), "part": poison(total, z, k)},
        lambda a, z=z: {
            "part": exact(
                np.stack([a["dy"][np.arange(len(a["dy"])) // 8 % z == i].sum(0)
                          for i in range(z)]).astype(a["part"].dtype))
        }, T=t, A=total, BM=8, BN=32)

for t, b, m, n in (("f16", 2, 33, 70), ("f32", 1, 1, 5), ("f64", 3, 40, 17), ("f32", 0, 4, 4), ("bf16", 1, 65, 1)):
    kernel_row("conv", "turn_images", f"{t}_{b}x{m}x{n}", {"x": small(t, 0, b, m, n), "y": poison(t, b, n, m)},
               lambda a, t=t: {"y": rounded(a["x"].astype(float).transpose(0, 2, 1), t)}, T=t, BM=32, BN=32)



def unfolded(x, R, S, P, Q, stride, pad, dilation):
    n, c, h, w = x.shape
    y = np.zeros((n, c, R, S, P, Q))
    for r, s, p, q in np.ndindex(R, S, P, Q):
        at = p * stride[0] - pad[0] + r * dilation[0], q * stride[1] - pad[1] + s * dilation[1]
        if 0 <= at[0] < h and 0 <= at[1] < w:
            y[:, :, r, s, p, q] = x[:, :, at[0], at[1]]
    return y.reshape(n, c * R * S, P * Q)


for t, n, c, h, w, R, S, stride, pad, dilation in (
        ("f32", 2, 5, 7, 9, 3, 3, (1, 1), (1, 1), (1, 1)), ("f16", 1, 3, 12, 8, 4, 4, (4, 4), (0, 0), (1, 1)),
        ("bf16", 1, 2, 9, 11, 2, 3, (2, 1), (3, 0), (1, 2)), ("f32", 1, 1, 1, 1, 1, 1, (1, 1), (0, 0), (1, 1)),
        ("f32", 2, 3, 8, 34, 1, 1, (2, 2), (0, 0), (1, 1)), ("f16", 1, 2, 7, 21, 3, 5, (1, 2), (1, 2), (2, 1))):
    P, Q = ((e + 2 * pad[i] - dilation[i] * (f - 1) - 1) // stride[i] + 1 for i, (e, f) in enumerate(((h, R), (w, S))))
    kernel_row(
        "conv", "unfold_images", f"{t}_{n}x{c}x{h}x{w}_by_{R}x{S}",
        {"x": small(t, 0, n, c, h, w), "y": poison(t, n, c * R * S, P * Q), "window.stride_h": stride[0],
         "window.stride_w": stride[1], "window.pad_h": pad[0], "window.pad_w": pad[1], "window.dilation_h": dilation[0],
         "window.dilation_w": dilation[1], "R": R, "S": S, "Q": Q},
        lambda a, t=t, more=(R, S, P, Q, stride, pad, dilation):
        {"y": rounded(unfolded(a["x"].astype(float), *more), t)}, T=t, B=8,
        STRIDE=stride[1] if stride[1] <= 2 else 0)

for t, o, n, c, p, k, bias in (("f16", "f16", 2, 20, 33, 17, True), ("f32", "f32", 1, 1, 1, 1, False),
                               ("bf16", "f32", 1, 40, 20, 9, False), ("f64", "f64", 2, 3, 70, 5, True)):
    kernel_row(
        "conv", "conv2d_points", f"{t}_{n}x{c}x{p}_to_{k}",
        {"x": small(t, 0, n, c, p), "w": small(t, 1, k, c), "bias": small(o, 4, k if bias else 0),
         "y": poison(o, n, k, p)},
        lambda a, o=o, bias=bias: (lambda x, w: {"y": rounded(w @ x + (a["bias"][:, None] if bias else 0), o)})
        (*of("x", "w")(a)), T=t, O=o, BM=16, BN=32, BC=16)

# few channels row by row, in both layouts: two programs a row, outputs at both ends, rows of taps outside, whose places
# are a stride apart; no place inside; filters as long as indices allow
for i, (t, o, x, w, y, window) in enumerate(
    (("f32", "f32", (2, 6, 75, 3), (3, 3, 3, 20), (2, 6, 75, 20), ONE),
     ("f32", "f32", (1, 9, 141, 3), (5, 7, 3, 70), (1, 5, 72, 70), (2, 2, 2, 4, 1, 1)),
     ("f32", "f32", (1, 14, 250, 4), (5, 5, 4, 33), (1, 4, 63, 33), (4, 4, 2, 2, 1, 1)),
     ("f64", "f64", (1, 8, 48, 3), (4, 4, 3, 17), (1, 2, 12, 17), (4, 4, 0, 0, 1, 1)),
     ("f16", "f32", (1, 5, 9, 3), (2, 3, 3, 9), (1, 5, 5, 9), (1, 1, 1, 0, 2, 2)),
     ("f32", "f32", (1, 3, 2, 3), (3, 5, 3, 20), (1, 1, 2, 20), (1, 1, 0, 2, 1, 1)),
     ("f32", "f32", (0, 3, 4, 3), (3, 3, 3, 20), (0, 3, 4, 20), ONE),
     ("f32", "f32", (1, 110, 4, 2), (120, 1, 2, 5), (1, 3, 6, 5), (1, 1, 6, 1, 1, 1)))):
    for LAST in (True, False):
        outer, back = ((0, 1, 2, 3), ) * 2 if LAST else ((0, 3, 1, 2), (0, 2, 3, 1))

        def turned(a, axes, t=t):
            return Arr(t, np.ascontiguousarray(a.store.transpose(axes)))
        filters = (0, 1, 2, 3) if LAST else (2, 0, 1, 3)
        kernel_row(
            "conv3d", "conv2d_rows", f"{t}_to_{o}_{'x'.join(map(str, x))}_by_{'x'.join(map(str, w))}" + "_last" * LAST,
            {"x": turned(small(t, 0, *x, lo=-2, hi=3), outer), "w": turned(small(t, 1, *w, lo=-2, hi=3), filters),
             "bias": small(o, 4, w[3] if i % 2 else 0), "y": poison(o, *(y[j] for j in outer)),
             **dict(zip(NAMES, window))}, lambda a, o=o, window=window, i=i, outer=outer, back=back, filters=filters:
            (lambda x, w: {"y": rounded(
                (convolved(x.transpose(back), w.transpose(np.argsort(filters)), a["y"].transpose(back), window) +
                 (a["bias"] if i % 2 else 0)).transpose(outer), o)})(*of("x", "w")(a)),
            T=t, Y=o, STRIDE=window[0], LAST=LAST, CHANNELS=x[3], BK=32, BQ=64)
