"""std.kernels.elementwise, std.kernels.reductions and scan_axis of std.kernels.scan against NumPy in f64, over both
kinds of axes."""
from kernel_library import EPS, Arr, bytes_as, exact, f64, kernel_row, near, np, poison, rounded
from values import normal, rng, small, zeros

UNIT = {"f64": 2.0**-53}


def accumulator(t):
    return "f64" if t == "f64" else "i32" if t == "i32" else "f32"


# ---- elementwise ----
for t, n in (("f32", 1500), ("f16", 33), ("bf16", 1), ("f64", 70), ("f32", 0), ("i32", 19)):
    a = {"T": t, "A": accumulator(t), "B": 64}
    v = {k: small(t, i, n) for i, k in enumerate("abc")}
    unary_f, want = ("activation.relu", lambda x: np.maximum(x, 0)) if t != "i32" else ("square", lambda x: x * x)
    kernel_row("elementwise",
               "unary",
               f"{t}_{n}", {
                   "x": v["a"],
                   "y": poison(t, n)
               },
               lambda a, t=t, want=want: {"y": rounded(want(a["x"].astype(float)), t)},
               f=unary_f,
               **a)
    kernel_row("elementwise",
               "binary",
               f"{t}_{n}", {
                   "a": v["a"],
                   "b": v["b"],
                   "y": poison(t, n)
               },
               lambda a, t=t: {"y": rounded(a["a"].astype(float) - a["b"], t)},
               f="subtract",
               **a)
    kernel_row("elementwise",
               "ternary",
               f"{t}_{n}", {
                   **v, "y": poison(t, n)
               },
               lambda a, t=t: {"y": rounded(a["a"].astype(float) * a["b"] + a["c"], t)},
               **a)

ACTIVATIONS = {
    "leaky_relu": lambda x: np.where(x < 0, 0.01 * x, x),
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "selu": lambda x: 1.0507009873554805 * np.where(x < 0, 1.6732632423543772 * np.expm1(x), x)
}
for f, want in ACTIVATIONS.items():
    kernel_row("elementwise",
               "unary",
               f"{f}_of_37", {
                   "x": normal("f32", 1, 37),
                   "y": poison("f32", 37)
               },
               lambda a, want=want: {"y": near(want(a["x"].astype(float)), 20 * EPS, "f32")},
               f=f,
               B=64)
DERIVATIVES = {
    "relu": (lambda d, x: d * (x > 0)),
    "silu": (lambda d, x: d * (lambda s: s + x * s * (1 - s))(1 / (1 + np.exp(-x)))),
    "sigmoid": (lambda d, y: d * y * (1 - y)),
    "tanh": (lambda d, y: d * (1 - y * y))
}
for f, want in DERIVATIVES.items():
    kernel_row("elementwise",
               "binary",
               f"{f}_backward_of_37", {
                   "a": normal("f32", 1, 37),
                   "b": normal("f32", 2, 37),
                   "y": poison("f32", 37)
               },
               lambda a, want=want: {"y": near(want(*f64(a, "a", "b")), 100 * EPS, "f32")},
               f=f + "_backward",
               B=64)


def turned(a, *axes):
    """The array with its axes in another order, as strides."""
    return Arr(a.type, a.store.transpose(axes))


def wide_along(a, axis, n):
    """n times along an axis of extent 1: stride 0."""
    shape = list(a.store.shape)
    shape[axis] = n
    return Arr(a.type, np.broadcast_to(a.store, shape))


for t, (i, j, k, l) in (("f32", (2, 3, 17, 70)), ("f16", (1, 1, 5, 1)), ("bf16", (3, 1, 1, 33)), ("f64", (1, 2, 3, 5)),
                        ("f32", (2, 0, 3, 4))):
    consts, name = {"T": t, "A": accumulator(t), "BL": 32}, f"{t}_{i}x{j}x{k}x{l}"
    y = {"y": poison(t, i, j, k, l)}
    kernel_row("elementwise",
               "unary_strided",
               name, {
                   "x": turned(small(t, 1, l, k, j, i), 3, 2, 1, 0),
                   **y
               },
               lambda a, t=t: {"y": rounded(a["x"].astype(float), t)},
               **consts)
    x, b = small(t, 1, i, j, k, l), wide_along(small(t, 2, 1, j, 1, 1), 0, i)
    b = wide_along(wide_along(b, 2, k), 3, l)
    kernel_row("elementwise",
               "binary_strided",
               name, {
                   "a": x,
                   "b": b,
                   **y
               },
               lambda a, t=t: {"y": rounded(a["a"].astype(float) * a["b"], t)},
               f="multiply",
               **consts)
    kernel_row("elementwise",
               "ternary_strided",
               name, {
                   "a": x,
                   "b": b,
                   "c": turned(small(t, 3, i, j, l, k), 0, 1, 3, 2),
                   **y
               },
               lambda a, t=t: {"y": rounded(np.where(a["a"] != 0, a["b"], a["c"]).astype(float), t)},
               f="choose",
               **consts)

# ---- reductions: (I, J, R, S) with LAST, else (I, R, S, J) ----
SHAPES = [("f32", 2, 3, 2, 70, True), ("f16", 1, 37, 3, 9, False), ("bf16", 2, 1, 1, 33, True),
          ("f64", 1, 5, 4, 3, False), ("f32", 1, 1, 1, 1, True), ("f32", 2, 3, 1, 0, True), ("f32", 0, 3, 2, 2, False),
          ("f32", 2, 5, 3, 6, False)]


def axes(last):
    return (2, 3) if last else (1, 2)


def spread(v, last):
    return v[:, :, None, None] if last else v[:, None, None, :]


for n, (t, i, j, r, s, last) in enumerate(SHAPES):
    a, u = accumulator(t), UNIT.get(t, EPS)
    name, ax, shape = f"{t}_{i}x{j}_of_{r}x{s}" + "_last" * last, axes(last), (i, j, r, s) if last else (i, r, s, j)
    consts = {"T": t, "A": a, "LAST": last, "BS": 32 if last else 1 + n % 3, "BJ": 2 if last else 16}
    x = {"x": normal(t, n, *shape), "y": poison(t, i, j)}
    integers = {"x": small(t, n, *shape), "y": poison(t, i, j)}
    kernel_row("reductions",
               "reduce_axes",
               name, {
                   **integers, "neutral": 0
               },
               lambda a, t=t, ax=ax: {"y": rounded(a["x"].astype(float).sum(ax), t)},
               **consts)
    kernel_row("reductions",
               "reduce_axes",
               "greatest_" + name, {
                   **x, "neutral": -np.inf
               },
               lambda a, t=t, ax=ax: {"y": exact(a["x"].astype(float).max(ax, initial=-np.inf))},
               combine="greater",
               **consts)
    if r * s:
        kernel_row("reductions",
                   "reduce_axes",
                   "norm_" + name, {
                       **x, "neutral": 0
                   },
                   lambda a, t=t, ax=ax, u=u: (lambda v: {
                       "y": near(v, 200 * u * v, t)
                   })(np.sqrt((a["x"].astype(float)**2).mean(ax))),
                   map="square",
                   finish="root_mean",
                   **consts)
    for least in (False, True):

        def places(a, t=t, least=least, last=last, shape=shape, ax=ax):
            v = np.moveaxis(a["x"].astype(float), 3, 1) if not last else a["x"].astype(float)
            v = v.reshape(*v.shape[:2], v.shape[2] * v.shape[3])
            if not v.shape[2]:
                return {
                    "index": exact(np.full(v.shape[:2], -1)),
                    "y": exact(np.full(v.shape[:2], np.inf if least else -np.inf))
                }
            at = np.argmin(v, 2) if least else np.argmax(v, 2)
            return {"index": exact(at), "y": exact(np.take_along_axis(v, at[..., None], 2)[..., 0])}

        data = rng(n).integers(-4, 5, shape).astype(float)
        if n == 0:
            data[0, 1, 1, 3], data[1, 2, 0, 2:5] = np.nan, np.nan
        kernel_row("reductions",
                   "argmax_axes", ("least_" if least else "") + name, {
                       **x, "x": bytes_as(t, data),
                       "index": poison("i64", i, j)
                   },
                   places,
                   LEAST=least,
                   **consts)

    def lse(a, ax=ax):
        v = a["x"].astype(float)
        top = v.max(ax, keepdims=True, initial=-1e9)
        return top + np.log(np.exp(v - top).sum(ax, keepdims=True))

    if r * s:
        kernel_row("reductions",
                   "log_sum_exp_axes",
                   name,
                   x,
                   lambda a, t=t, u=u, ax=ax, lse=lse: {"y": near(lse(a).squeeze(ax), 200 * u, t)},
                   **consts)
    like = {"x": x["x"], "y": poison(t, *shape)}
    kernel_row("reductions",
               "softmax_axes",
               name,
               like,
               lambda a, t=t, u=u, lse=lse:
               {"y": near(np.exp(a["x"].astype(float) - lse(a)) if a["x"].size else a["x"], 200 * u, t)},
               **consts)
    kernel_row(
        "reductions",
        "softmax_axes",
        "log_" + name,
        like,
        lambda a, t=t, u=u, lse=lse: {"y": near(a["x"].astype(float) - lse(a) if a["x"].size else a["x"], 400 * u, t)},
        LOG=True,
        **consts)
    for log in (False, True):

        def gradient(a, t=t, u=u, ax=ax, log=log):
            dy, y = f64(a, "dy", "y")
            total = (dy if log else dy * y).sum(ax, keepdims=True)
            size = np.abs(dy if log else dy * y).sum(ax, keepdims=True)
            p = np.exp(y) if log else y
            return {
                "dx":
                near(dy - p * total if log else y * (dy - total),
                     100 * u * (np.abs(dy) + np.abs(p) * size + np.abs(y * dy) + size * np.abs(y)), t)
            }

        kernel_row("reductions",
                   "softmax_axes_backward",
                   "log_" * log + name, {
                       "dy": normal(t, n + 1, *shape),
                       "y": normal(t, n, *shape),
                       "dx": poison(t, *shape)
                   },
                   gradient,
                   LOG=log,
                   **consts)

    def normalized(a, t=t, u=u, ax=ax, kind="by_root"):
        v = a["x"].astype(float)
        m = v.shape[ax[0]] * v.shape[ax[1]]
        total = np.abs(v).sum(ax, keepdims=True) if kind == "by_mean" else (v * v).sum(ax, keepdims=True)
        divisor = {
            "by_root": np.sqrt(total) + 0.25,
            "by_mean": total / max(m, 1) + 0.25,
            "by_root_mean": np.sqrt(total / max(m, 1) + 0.25)
        }[kind]
        return {"y": near(v / divisor, 200 * u * np.abs(v / divisor), t)}

    for kind in ("by_root", "by_mean", "by_root_mean") if n < 2 else ("by_root", ):
        kernel_row("reductions",
                   "normalize_axes",
                   f"{kind}_{name}", {
                       **like, "neutral": 0,
                       "eps": 0.25
                   },
                   lambda a, f=normalized, kind=kind: f(a, kind=kind),
                   divisor=kind,
                   map="magnitude" if kind == "by_mean" else "square",
                   **consts)

kernel_row("reductions",
           "reduce_axes",
           "i32_products", {
               "x": small("i32", 3, 1, 3, 2, 5, lo=1, hi=3),
               "y": poison("i32", 1, 3),
               "neutral": 1
           },
           lambda a: {"y": exact(a["x"].prod((2, 3)))},
           T="i32",
           A="i32",
           combine="multiply")

# ---- scans ----
SCANS = [("f32", 2, 3, 70, True), ("f16", 1, 20, 9, False), ("bf16", 2, 1, 33, True), ("f64", 1, 5, 4, False),
         ("i32", 1, 1, 1, True), ("f32", 2, 3, 0, True), ("f32", 0, 3, 2, False)]
for n, (t, i, j, s, last) in enumerate(SCANS):
    shape = (i, j, s) if last else (i, s, j)
    for exclusive in (False, True):
        for reverse in (False, True):
            masked = exclusive == reverse

            def running(a, t=t, last=last, exclusive=exclusive, reverse=reverse, masked=masked):
                v = np.asarray(a["x"], float) * ((a["mask"] != 0) if masked else 1) + 0.0
                axis = 2 if last else 1
                v = np.flip(v, axis) if reverse else v
                c = np.cumsum(v, axis) - (v if exclusive else 0)
                return {"y": rounded((np.flip(c, axis) if reverse else c) + 0.0, t)}

            name = f"{t}_{i}x{j}_of_{s}" + "_last" * last + "_exclusive" * exclusive + "_reverse" * reverse
            mask = small("u8", 5, *shape, lo=0, hi=2) if masked else zeros("u8", 0, 0, 0)
            kernel_row("scan",
                       "scan_axis",
                       name, {
                           "x": small(t, n, *shape),
                           "mask": mask,
                           "y": poison(t, *shape),
                           "neutral": 0
                       },
                       running,
                       T=t,
                       A=accumulator(t),
                       EXCLUSIVE=exclusive,
                       REVERSE=reverse,
                       MASK=masked,
                       LAST=last,
                       BS=16 if last else 1 + n % 3,
                       BJ=2 if last else 16)
kernel_row("scan",
           "scan_axis",
           "i32_products", {
               "x": small("i32", 1, 2, 1, 37, lo=1, hi=3),
               "mask": zeros("u8", 0, 0, 0),
               "y": poison("i32", 2, 1, 37),
               "neutral": 1
           },
           lambda a: {"y": exact(np.cumprod(a["x"], 2, dtype=np.int32))},
           T="i32",
           f="multiply",
           BS=16)
