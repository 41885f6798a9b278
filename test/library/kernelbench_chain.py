"""A chain of KernelBench's level 2: kernels one after the other, beside what a peer (NumPy, PyTorch) computes.

A peer has array(x), its own kind of a NumPy array of f32, and a method for each step, which gives the function of an array that the step
computes: linear, conv, value, norm, pool, reduce, softmax. Chain calls these as the chain is built and keeps the functions, so that both
sides can be run again.
"""
import os
import re

import numpy as np
import tile

# What a kernel of one's own looks like; EXPR stands for the expression. v is the sum with the layer's bias, [channels, places] or
# [rows, columns]; b a number for each channel or column; `here` says which of them there are, and u is -inf where there is none.
FORMS = {
    "linear": """import std.activation;
import std.kernels.gemm;

kernel k(const f32 x[M, K], const f32 w[N, K], const f32 bias[N], const f32 c[N], f32 y[M, N],
         const int BM = 64, const int BN = 64)
    grid(cdiv(M, BM), cdiv(N, BN))
{
    const gemm.product_options o = {tb = true, BM = BM, BN = BN};
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    auto v = gemm.product(x, w, m, n, 0, K, o) + row(bias[n +: BN]);
    auto b = row(c[n +: BN]);
    y[m +: BM, n +: BN] = EXPR;
}
""",
    "conv": """import std.activation;
import std.kernels.conv3d;
import std.softmax;

kernel k(const f32 x[N, C, D, H, W], const f32 w[U, R, S, C, K], const f32 bias[K],
         const f32 c[K], f32 y[N, L, O, P, Q], conv3d.volume_window window, const int BK = 16,
         const int BQ = 32)
    grid(cdiv(Q, BQ), P, O, N)
    require(K <= BK, L <= BK) // a program has all channels of its places
{
    int q = pid(0) * BQ;
    auto here = col(iota(BK)) < K;
    auto v = conv3d.outputs(x, w, pid(3), 0, pid(2), pid(1), q, window, 1, 1, 1, false, false, BK,
                            4, 1, BQ) + col(bias[0 +: BK]);
    auto u = here ? v : -inf;
    auto b = col(c[0 +: BK]);
    y[pid(3), 0 +: BK, pid(2), pid(1), q +: BQ] = EXPR;
}
""",
    "transposed": """import std.activation;
import std.kernels.conv3d;
import std.softmax;

kernel k(const f32 x[N, C, O, P, Q], const f32 w[U, R, S, K, C], const f32 bias[K],
         const f32 c[K], f32 y[N, L, D, H, W], conv3d.volume_window window, const int SD = 2,
         const int SH = 2, const int BK = 16, const int BQ = 32)
    grid(cdiv(cdiv(W, SH), BQ) * SH, cdiv(H, SH), D, N, SH) // strides SD x SH x SH
    require(K <= BK, L <= BK)
{
    int q = pid(0) / SH * BQ;
    int t = pid(0) % SH;
    int at = q * SH + t;
    auto here = col(iota(BK)) < K;
    auto v = conv3d.inputs(x, w, pid(3), 0, pid(2), pid(1), q, pid(4), t, window, SD, SH, SH,
                           false, false, BK, 16, 1, BQ) + col(bias[0 +: BK]);
    auto u = here ? v : -inf;
    auto b = col(c[0 +: BK]);
    y[pid(3), 0 +: BK, pid(2), pid(1) * SH + pid(4), at +: BQ : SH] = EXPR;
}
""",
    "map": """import std.activation;

kernel k(const f32 x[I, J, L], const f32 z[I, J, L], const f32 c[J], f32 y[I, J, L],
         const int BL = 256)
    grid(cdiv(L, BL), J, I)
{
    int l = pid(0) * BL;
    auto v = x[pid(2), pid(1), l +: BL];
    auto a = z[pid(2), pid(1), l +: BL];
    auto b = c[pid(1)];
    y[pid(2), pid(1), l +: BL] = EXPR;
}
""",
    "map_rows": """import std.activation;

kernel k(const f32 x[M, N], const f32 z[M, N], const f32 c[N], f32 y[M, N], const int BN = 256)
    grid(cdiv(N, BN), M)
{
    int m = pid(1);
    int n = pid(0) * BN;
    auto v = x[m, n +: BN];
    auto a = z[m, n +: BN];
    auto b = c[n +: BN];
    y[m, n +: BN] = EXPR;
}
""",
    "columns": """import std.activation;
import std.softmax;

kernel k(const f32 x[I, J, L], const f32 z[I, J, L], const f32 c[J], f32 y[I, E, L],
         const int BJ = 32, const int BL = 64)
    grid(cdiv(L, BL), I)
    require(J <= BJ, E <= BJ) // a program has all channels of its places
{
    int l = pid(0) * BL;
    auto here = col(iota(BJ)) < J;
    auto v = x[pid(1), 0 +: BJ, l +: BL];
    auto a = z[pid(1), 0 +: BJ, l +: BL];
    auto u = here ? v : -inf;
    auto b = col(c[0 +: BJ]);
    y[pid(1), 0 +: BJ, l +: BL] = EXPR;
}
""",
}

EPS = np.float32(1e-5)
REDUCED = {"sum": {}, "mean": {"finish": "mean"}, "greatest": {"combine": "greater"}, "least": {"combine": "less"}}
NEUTRAL = {"greatest": -np.inf, "least": np.inf}


def volume(x):
    """[N, C, (D,) H, W] with a depth."""
    return x if x.ndim == 5 else x.reshape(*x.shape[:2], 1, *x.shape[2:])


def three(n, missing):
    return (missing, ) * (3 - len(n)) + tuple(n)


def value(words, text, b, a=None):
    """The function of an array v of an expression in which all elements are here; b has one number for each of v's axis 1."""
    text = re.sub(r"here \? (.*?) : -inf", r"\1", text)

    def f(v):
        spread = b.reshape(1, -1, *(1, ) * (v.ndim - 2))
        return eval(text, {**words, "v": v, "u": v, "b": spread, "a": a() if a else None})  # pylint: disable=eval-used
    return f


def library_layer(form, text):
    """A convolution with nothing after it, or one function of the library's: the library's kernel, and its constants. Else None."""
    layer, f = {"conv": "conv3d.conv3d", "transposed": "conv3d.conv3d_transpose"}.get(form), re.fullmatch(r"v|(activation\.\w+)\(v\)", text)
    return (layer, {"BIAS": True, **({"epilogue": f[1]} if f[1] else {})}) if layer and f else None


class Chain:
    """The array that is handed from step to step: `got`, which kernels write when run() is called, and `want`, what the peer has for it."""

    def __init__(self, root, folder, number, peer, device="cpu", x=None, outputs=(), size=3, stride=2, pad=None, more=0, groups=4, pool=0, **consts):
        """Extents of the input, and of the layer: its outputs (one number for each `linear`), its filter, a transposed one's stride, padding and
        output padding; groups of norms; size of pooling, 0: of images 2, of rows 4. `consts` are the form's."""
        self.root, self.folder, self.rng, self.device, self.peer = root, folder, np.random.default_rng(number), device, peer
        self.input, self.outputs, self.size, self.stride, self.pad, self.more = x, list(outputs), size, stride, pad, more
        self.groups, self.pooled, self.consts = groups, pool, consts
        self.got = self.want = self.start = self.layer = None
        self.launches, self.functions, self.kept = [], [], {}

    # ---- both sides ----
    def run(self):
        for f in self.launches:
            f()

    def theirs(self):
        v = self.start
        for f in self.functions:
            v = f(v)
        return v

    def difference(self):
        """Of the results, by the greatest value, or 1 if that is less."""
        self.run()
        want = np.asarray(self.theirs(), float)
        return np.abs(self.got - want).max() / max(np.abs(want).max(), 1)

    # ---- steps are made of ----
    def random(self, *shape, scale=1.0):
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def result(self, *shape):
        return np.full(shape, np.nan, np.float32)

    def begin(self, *shape):
        self.got = self.random(*(self.input or shape))
        self.want = self.start = self.peer.array(self.got)

    def then(self, f):
        self.functions.append(f)
        self.want = f(self.want)

    def keep(self, name):
        """What the peer has here, for a later step."""
        def f(v):
            self.kept[name] = v
            return v
        self.then(f)

    def launch(self, path, name, consts, args):
        consts = {k: str(v).lower() if isinstance(v, bool) else v for k, v in consts.items()}
        kernel = tile.kernel(path, name, device=self.device, consts=consts)
        self.launches.append(lambda: kernel(**args))

    def own(self, form, text, consts=None, **args):
        path = os.path.join(self.folder, f"{form}{len(self.launches)}.tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(FORMS[form].replace("EXPR", text))
        self.launch(path, "k", consts or {}, args)

    def library(self, name, consts=None, **args):
        module, kernel = name.split(".")
        self.launch(os.path.join(self.root, "stdlib", "kernels", module + ".tile"), kernel, consts or {}, args)

    # ---- steps ----
    def linear(self, text):
        if self.got is None:
            self.begin(5, 20)
            self.keep("input")
            self.layer = self.got
        x, outputs = self.got, self.outputs.pop(0) if self.outputs else 24
        w, bias, b = self.random(outputs, x.shape[1], scale=x.shape[1]**-0.5), self.random(outputs), self.random(outputs)
        self.then(self.peer.linear(w, bias))
        self.then(self.peer.value(text, b))
        self.got = self.result(x.shape[0], outputs)
        self.own("linear", text, self.consts, x=x, w=w, bias=bias, c=b, y=self.got)

    def conv(self, form, dims, text):
        if self.got is None:
            conv = (2, 3, 7, 9, 10), (2, 3, 3, 4, 5)
            shape = conv[form == "transposed"]
            self.begin(*shape[:2], *shape[5 - dims:])
        k, transposed = self.outputs[0] if self.outputs else 8, form == "transposed"
        x, size = self.got, (self.size, ) * dims if isinstance(self.size, int) else self.size
        stride, pad = (self.stride if transposed else 1, ) * dims, (int(transposed) if self.pad is None else self.pad, ) * dims
        shape = [(n - 1) * s - 2 * p + t + self.more if transposed else n + 2 * p - t + 1 for n, s, p, t in zip(x.shape[2:], stride, pad, size)]
        channels = (k, x.shape[1]) if transposed else (x.shape[1], k)
        w = self.random(*three(size, 1), *channels, scale=(x.shape[1] * np.prod(size))**-0.5)
        b, bias = self.random(k), self.random(k)
        self.then(self.peer.conv(w, bias, stride, pad, self.more, transposed, shape))
        self.keep("layer")
        self.then(self.peer.value(text, b))
        self.got = self.layer = self.result(*self.want.shape)
        args = {"x": volume(x), "w": w, "bias": bias, "y": volume(self.got), "window": dict(zip(("pad_d", "pad_h", "pad_w"), three(pad, 0)))}
        if library_layer(form, text):
            name, consts = library_layer(form, text)
            self.library(name, {**consts, **{f"STRIDE_{a}": s for a, s in zip("DHW", three(stride, 1))}}, **args)
        else:
            consts = {"BK": -(-k // 16) * 16, **({"SD": three(stride, 1)[0], "SH": self.stride} if transposed else {})}
            self.own(form, text, consts, c=b, **args)

    def flat(self, form, text, other=None):
        """map and columns: [I, J, L], or rows; `a` is what the layer gave, or other numbers."""
        i, j = self.got.shape[:2]
        places, b = int(np.prod(self.got.shape[2:])), self.random(j)
        if other:
            a, theirs = self.layer, self.kept[other]
        else:
            a = self.random(*self.got.shape)
            theirs = self.peer.array(a)
        self.then(self.peer.value(text, b, (lambda: self.kept[other]) if other else lambda: theirs))
        x, self.got = self.got, self.result(*self.want.shape)
        if form == "map" and places == 1:
            form, shape = "map_rows", (i, j) if j > 1 else (1, i)
            assert j > 1 or "b" not in text.split(), text
            arrays, b = [v.reshape(shape) for v in (x, a, self.got)], b if j > 1 else self.random(i)
        else:
            arrays = [v.reshape(i, v.shape[1], places) for v in (x, a, self.got)]
        self.own(form, text, {"BJ": -(-j // 32) * 32} if form == "columns" else {}, **dict(zip("xzy", arrays)), c=b)

    def norm(self, kind):
        c, channels = self.got.shape[1], kind in ("batch rows", "group rows")  # innermost
        along = self.got.shape[-1] if "layer" in kind else c
        w, bias, x, y = self.random(along), self.random(along), self.got, self.result(*self.got.shape)
        self.then(self.peer.norm(kind.split(" ")[0], self.groups, w, bias))
        self.got = y
        (self.norm_of_rows if channels else self.norm_of_places)(kind, x, y, w, bias)

    def norm_of_rows(self, kind, x, y, w, bias):
        m, c = x.shape
        if kind == "group rows":
            moments = {k: self.result(m, self.groups) for k in ("mean", "rstd")}
            self.library("image_norms.group_norm", {"T": "f32", "BL": 1}, x=x[:, None], y=y[:, None], w=w, bias=bias, eps=EPS, **moments)
            return
        moments = {"mean": self.result(c), "rstd": self.result(c)}
        self.library("image_norms.batch_norm_statistics", {"T": "f32"}, x=x, parts=self.result(1, 2, c), arrived=np.zeros(-(-c // 64), np.uint32),
                     running_mean=np.zeros(c, np.float32), running_variance=np.ones(c, np.float32), eps=EPS, momentum=0.1, **moments)
        self.library("image_norms.batch_norm", {"T": "f32"}, x=x, y=y, w=w, bias=bias, residual=np.empty((0, 0), np.float32), eps=EPS, **moments)

    def norm_of_places(self, kind, x, y, w, bias):
        n, c = x.shape[:2]
        if kind == "group":
            shape = (self.groups, c // self.groups)
            weights, view = {"w": w.reshape(shape), "bias": bias.reshape(shape)}, (lambda v: v.reshape(n, *shape, -1))
        elif kind == "batch":
            weights, view = {k: np.broadcast_to(v[:, None], (c, n)) for k, v in (("w", w), ("bias", bias))}, (
                lambda v: v.reshape(n, c, -1).transpose(1, 0, 2)[None])
        elif kind == "instance":
            weights, view = {"w": w[:, None], "bias": bias[:, None]}, (lambda v: v.reshape(n, c, 1, -1))
        else:  # over the last axis of what it has, by elements
            weights, view = {"w": w[None], "bias": bias[None]}, (lambda v: v.reshape(-1, 1, 1, w.size))
        x, out = view(x), view(y)
        moments = {"mean": self.result(*x.shape[:2]), "variance": self.result(*x.shape[:2])}
        if kind == "batch":
            none = np.empty(0, np.float32)
            self.library("axes_norms.axes_moments", x=x, running_mean=none, running_variance=none, momentum=0, **moments)
            self.library("axes_norms.axes_norm", x=x, y=out, eps=EPS, **moments, **weights)
        else:
            self.library("axes_norms.axes_norm_whole", {"ELEMENTS": "layer" in kind}, x=x, y=out, eps=EPS, **moments, **weights)

    def pool(self, kind, default):
        if self.got is None:
            self.begin(2, 3, 6, 8, 10)
        size = (self.pooled or default, ) * max(self.got.ndim - 2, 1)
        self.then(self.peer.pool(kind, size))
        x, self.got = self.got, self.result(*self.want.shape)
        arrays = {k: v[:, None, None, None] if v.ndim == 2 else volume(v) for k, v in (("x", x), ("y", self.got))}
        windows = three(size, 1)
        greatest = {"combine": "reductions.greater", "finish": "reductions.total"} if kind == "max" else {}
        self.library("pool3d.pool3d", {**greatest, **{f"STRIDE_{a}": s for a, s in zip("DHW", windows)}}, window={},
                     neutral=-np.inf if kind == "max" else 0, **{f"kernel_{a}": s for a, s in zip("dhw", windows)}, **arrays)

    def collapsed(self, axes):
        """[I, J, R, S] or [I, R, S, J] of axes side by side, and the constant that says which."""
        shape, last = self.got.shape, max(axes) == self.got.ndim - 1
        i, s, j = (int(np.prod(shape[a:b])) for a, b in ((0, min(axes)), (min(axes), max(axes) + 1), (max(axes) + 1, len(shape))))
        return self.got.reshape((1, i, 1, s) if last else (i, 1, s, j)), (1, i) if last else (i, j), {"LAST": last}

    def reduce(self, f, axes, keep=True):
        x, y, last = self.collapsed(axes)
        self.then(self.peer.reduce(f, axes, keep))
        got = self.result(*y)
        if f == "log sum exp":
            self.library("reductions.log_sum_exp_axes", last, x=x, y=got)
        else:
            self.library("reductions.reduce_axes", {**REDUCED[f], **last}, x=x, y=got, neutral=NEUTRAL.get(f, 0))
        self.got = got.reshape(self.want.shape)

    def binary(self, f, a, b, y):
        self.library("elementwise.binary_strided", {"f": f}, a=a, b=b, y=y)

    def step(self, name, *more):
        spatial = tuple(range(2, self.got.ndim)) if self.got is not None else ()
        axes = {"rows": (1, ), "all": (1, *spatial), "depth": (2, ), "height": spatial[-2:-1]}
        if name == "linear":
            self.linear(*more)
        elif name in ("conv", "transposed"):
            self.conv(name, *more)
        elif name in ("map", "columns"):
            self.flat(name, *more)
        elif name == "norm":
            self.norm(*more)
        elif name in ("pool", "pool rows"):
            self.pool(more[0], more[1] if len(more) > 1 else 4)
        elif name == "mean":
            self.reduce("mean", spatial)
        elif name == "least depth":
            self.reduce("least", (2, ), False)
        elif name.split(" ")[-1] in axes and name.rsplit(" ", 1)[0] in (*REDUCED, "log sum exp"):
            f, over = name.rsplit(" ", 1)
            self.reduce(f, axes[over], over != "all")
        elif name == "less mean":
            x = self.got
            self.keep("x")
            self.reduce("mean", spatial)
            self.then(lambda mean: self.kept["x"] - mean)
            flat, y = (1, *x.shape[:2], int(np.prod(x.shape[2:]))), self.result(*x.shape)
            self.binary("subtract", x.reshape(flat), np.broadcast_to(self.got.reshape(*flat[:3], 1), flat), y.reshape(flat))
            self.got = y
        elif name in ("softmax places", "softmax rows"):
            n = int(np.prod(self.got.shape[2:])) if name == "softmax places" else self.got.shape[-1]
            self.then(self.peer.softmax(n))
            x, self.got = self.got, self.result(*self.got.shape)
            if name == "softmax rows":
                self.library("rows.softmax_long_rows", x=x, y=self.got)
            else:
                self.library("reductions.softmax_axes", x=x.reshape(-1, 1, 1, n), y=self.got.reshape(-1, 1, 1, n))
        elif name == "residual":
            x, column = self.layer, self.got
            self.then(lambda v: self.kept["input"] + v)
            self.got = self.result(*x.shape)
            self.binary("add", np.broadcast_to(column, x.shape)[None, None], x[None, None], self.got[None, None])
        elif name == "with each bias":  # [M, 1] and one bias for each of N channels: [N, M]
            m, n = self.got.shape[0], self.outputs[0] if self.outputs else 24
            bias, least = self.random(n), self.got
            spread = self.peer.array(bias)
            self.then(lambda v: spread.reshape(-1, 1) + v.reshape(1, -1))
            self.got = self.result(n, m)
            self.binary("add", np.broadcast_to(least.reshape(1, m), (n, m))[None, None], np.broadcast_to(bias[:, None], (n, m))[None, None], self.got[None, None])
        elif name != "dropout":  # which leaves all as it is in inference
            raise ValueError(name)
