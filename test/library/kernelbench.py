#!/usr/bin/env python3
"""The problems of KernelBench (Ouyang et al. 2025), levels 1 and 2, by kernels of the library or ten lines: writes, or checks, the page
stdlib/kernels/KERNELBENCH.md.

    kernelbench.py ROOT [--write] [-k N] [--device D]    runs what level 2 says (problem N alone) on `cpu`, or D, beside NumPy, and compares
                                                         the page; exit 1 where something differs

LEVEL_1 names kernels; their rows in test/conformance compare them with NumPy. LEVEL_2 has a list of steps for each problem. A step is a form,
below, with the expression that it computes, or a kernel of the library with its constants. NumPy evaluates the same text.
"""
import argparse
import math
import os
import re
import sys
import tempfile
import types

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", d) for d in ("conformance", "tools")]
import tile  # noqa: E402
from check_kernels import kernels  # noqa: E402
from rows_kernels_conv3d import backward, forward  # noqa: E402
from rows_kernels_volumes import pooled  # noqa: E402

PAGE = "stdlib/kernels/KERNELBENCH.md"

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
    "rows": """import std.activation;
import std.kernels.gemm;
import std.softmax;

kernel k(const f32 x[M, K], const f32 w[N, K], const f32 bias[N], const f32 c[N], f32 y[M, L])
    grid(cdiv(M, 16)) // a program has whole rows: N <= 64
{
    const gemm.product_options o = {tb = true, BM = 16, BN = 64};
    int m = pid(0) * 16;
    auto here = row(iota(64)) < N;
    auto v = gemm.product(x, w, m, 0, 0, K, o) + row(bias[0 +: 64]);
    auto u = here ? v : -inf;
    auto b = row(c[0 +: 64]);
    y[m +: 16, 0 +: 64] = EXPR;
}
""",
    "conv": """import std.activation;
import std.kernels.conv3d;
import std.softmax;

kernel k(const f32 x[N, C, D, H, W], const f32 w[U, R, S, C, K], const f32 bias[K],
         const f32 c[K], f32 y[N, L, O, P, Q], conv3d.volume_window window, const int BK = 16,
         const int BQ = 32)
    grid(cdiv(Q, BQ), P, O, N) // a program has all channels of its places: K <= BK
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
    grid(cdiv(cdiv(W, SH), BQ) * SH, cdiv(H, SH), D, N, SH) // strides SD x SH x SH, K <= BK
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

kernel k(const f32 x[I, J, L], const f32 z[I, J, L], const f32 c[J], f32 y[I, J, L])
    grid(cdiv(L, 64), J, I)
{
    int l = pid(0) * 64;
    auto v = x[pid(2), pid(1), l +: 64];
    auto a = z[pid(2), pid(1), l +: 64];
    auto b = c[pid(1)];
    y[pid(2), pid(1), l +: 64] = EXPR;
}
""",
    "columns": """import std.activation;
import std.softmax;

kernel k(const f32 x[I, J, L], const f32 z[I, J, L], const f32 c[J], f32 y[I, E, L])
    grid(cdiv(L, 64), I) // a program has all channels of its places: J <= 32
{
    int l = pid(0) * 64;
    auto here = col(iota(32)) < J;
    auto v = x[pid(1), 0 +: 32, l +: 64];
    auto a = z[pid(1), 0 +: 32, l +: 64];
    auto u = here ? v : -inf;
    auto b = col(c[0 +: 32]);
    y[pid(1), 0 +: 32, l +: 64] = EXPR;
}
""",
}
G, R = "gemm.gemm", "reductions.reduce_axes"
CONV, CONVT, DEPTH = "conv3d.conv3d", "conv3d.conv3d_transpose", "conv3d.depthwise_conv3d"
LEVEL_1 = {
    1: G, 2: G, 3: "gemm.gemm_batched", 4: "blas.blas_gemv", 5: "elementwise.binary_strided of A and a scalar with strides 0, f=multiply",
    6: "gemm.gemm_split_k", 7: G, 8: G, 9: G, 10: G + " of [N M, K]", 11: G + " of [B I J, L]",
    12: "elementwise.binary_strided f=multiply, the diagonal with stride 0 along the columns", 13: G, 14: "ten lines: `upper`",
    15: "ten lines: `lower`", 16: G + " TA", 17: G + " TB", 18: G + " TA, TB",
    **{n: f"elementwise.unary f={f}" for n, f in {
        19: "activation.relu", 20: "leaky_relu", 21: "sigmoid", 22: "tanh", 25: "activation.silu", 26: "activation.gelu", 27: "selu",
        28: "hard_sigmoid", 29: "activation.softplus", 30: "activation.softsign", 31: "elu", 32: "hard_tanh", 88: "activation.gelu_tanh"
    }.items()},
    23: "rows.softmax_long_rows", 24: "rows.softmax_long_rows LOG", 33: "axes_norms.axes_moments then axes_norms.axes_norm",
    34: "axes_norms.axes_norm_whole", 35: "axes_norms.axes_norm_whole", 36: "reductions.normalize_axes divisor=by_root_mean",
    37: R + " twice (map=square; finish=root), then elementwise.binary_strided f=divide",
    38: "reductions.normalize_axes map=magnitude, divisor=by_mean", 39: "reductions.normalize_axes",
    40: "axes_norms.axes_norm_whole ELEMENTS",
    **{n: "pool3d.pool3d combine=reductions.greater, finish=reductions.total" for n in (41, 42, 43)},
    **{n: "pool3d.pool3d COUNT_PAD" for n in (44, 45, 46)},
    47: R, 48: R + " finish=mean", 49: R + " combine=greater", 51: "reductions.argmax_axes", 52: "reductions.argmax_axes LEAST",
    53: R + " combine=less",
    **{n: CONV for n in (50, 54, 55, 56, 59, 60, 62, 63, 66, 67, 76, 80, 87)},
    **{n: CONVT for n in (57, 58, 61, 64, 65, 68, 69, 70, 71, 72, 73, 74, 75, 77, 78, 79, 81)},
    **{n: DEPTH for n in (82, 83, 84, 85)}, 86: DEPTH + " then " + CONV,
    89: "scan.scan_axis", 90: "scan.scan_axis f=multiply", 91: "scan.scan_axis REVERSE", 92: "scan.scan_axis EXCLUSIVE",
    93: "scan.scan_axis MASK", 94: "pair_losses.pair_loss", 95: "losses.cross_entropy then " + R,
    96: "pair_losses.pair_loss f=huber", 97: "attention.attention", 98: "pair_losses.pair_loss f=divergence",
    99: "pair_losses.triplet_margin then " + R, 100: "pair_losses.pair_loss f=hinge",
}

# Steps: (form, dimensions?, expression) or (kernel, ...). Dimensions of convolutions: 2 or 3.
MEAN, GREATEST = ("mean", ), ("pool", "max", 2)


def AV(n):
    return ("pool", "mean", n)


RELU, GELU, MISH, SILU, SWISH = (f"activation.{f}(v)" for f in ("relu", "gelu", "mish", "silu", "hard_swish"))
LSE = "expand(softmax.log_sum_exp(u, 0), 0)"
LSE_ROWS = "expand(softmax.log_sum_exp(u, 1), 1)"
LEAST = "min(v, axis = 0, keep = true, where = here)"


def of(f, x):
    """f of the expression x."""
    return f.replace("(v)", f"({x})")


LEVEL_2 = {
    1: [("conv", 2, RELU + " + b")],
    2: [("transposed", 2, "clamp(clamp(v + b, 0.0, 1.0) * 2.0, 0.0, 1.0) / 2.0")],
    3: [("transposed", 3, "v + 0.5"), ("norm", "layer"), AV(2), ("map", GELU)],
    4: [("conv", 2, of(MISH, MISH))],
    5: [("transposed", 2, "tanh(v - b)")],
    6: [("conv", 3, "softmax.softmax(u, 0)"), GREATEST, GREATEST],
    7: [("conv", 3, "sigmoid(" + of(GELU, f"activation.leaky_relu({RELU}, 0.01)") + ") + b")],
    8: [("conv", 3, "v / 2.0"), GREATEST, MEAN, ("columns", "sum(v + b, axis = 0, keep = true, where = here)")],
    9: [("linear", "activation.relu((v - 2.0) * 1.5)")],
    10: [("transposed", 2, "v"), GREATEST, ("map", "clamp(v, -1.0, 1.0)"), MEAN, ("map", "tanh(v)")],
    11: [("transposed", 2, "v"), ("norm", "batch"), ("map", "tanh(v)"), GREATEST, ("norm", "group")],
    12: [("linear", "activation.leaky_relu(v * 2.0, 0.1)")],
    13: [("transposed", 3, "v"), ("mean depth", ), ("columns", "tanh(softmax.softmax(here ? v + b : -inf, 0)) * 2.0")],
    14: [("rows", "sum(v / 2.0, axis = 1, keep = true, where = here) * 1.5")],
    15: [("transposed", 3, "v"), ("norm", "batch"), ("less mean", )],
    16: [("transposed", 2, "clamp(" + MISH + " + 0.5, -1.0, 1.0) * 2.0")],
    17: [("conv", 2, "v"), ("norm", "instance"), ("map", "v / 2.0")],
    18: [("rows", "sum(v, axis = 1, keep = true, where = here)")],
    19: [("transposed", 2, GELU), ("norm", "group")],
    20: [("transposed", 3, "(v + b + v) * v + v")],
    21: [("conv", 2, "sigmoid((v + b) * b)"), ("norm", "group")],
    22: [("rows", LSE_ROWS.replace("(u,", "(here ? clamp(v * 2.0 + v * 2.0, -10.0, 10.0) : -inf,")), ("map", "v * " + MISH)],
    23: [("conv", 3, "v"), ("norm", "group"), ("mean all", )],
    24: [("conv", 3, "v"), ("least depth", ), ("columns", "softmax.softmax(u, 0)")],
    25: [("conv", 2, f"tanh(tanh({LEAST}))")],
    26: [("transposed", 3, "v"), ("map", "(v + a) * activation.hard_swish(v + a)")],
    27: [("conv", 3, SWISH), ("norm", "group"), MEAN],
    28: [("linear", "v"), ("norm", "layer rows"), ("map", "(v + a) * a")],
    29: [("linear", of(MISH, MISH))],
    30: [("linear", "v"), ("norm", "group"), ("map", "clamp(v, -1.0, 1.0)")],
    31: [("conv", 2, "(min(v, 0.5) + b) * 2.0")],
    32: [("conv", 2, LEAST.replace("v", "v * 2.0", 1))],
    33: [("linear", "v * b"), ("norm", "batch")],
    34: [("transposed", 3, "v"), ("norm", "layer"), ("map", GELU + " * 2.0")],
    35: [("conv", 2, "activation.hard_swish(v - 0.5)"), GREATEST, ("map", MISH)],
    36: [("transposed", 2, LEAST), ("sum height", ), ("map", GELU + " + b")],
    37: [("linear", "sigmoid(v) * v + b"), ("norm", "group")],
    38: [AV(2), ("transposed", 3, "clamp(v, 0.0, 1.0)"), ("softmax places", ), ("map", "v * b")],
    39: [("linear", "v * b"), ("norm", "batch")],
    40: [("linear", "v * 0.5 + v")],
    41: [("linear", "v"), ("norm", "batch"), ("map", of(RELU, GELU))],
    42: [("transposed", 2, "v"), MEAN, ("columns", "expand(softmax.log_sum_exp(here ? v + b : -inf, 0), 0) * 10.0")],
    43: [("conv", 3, "v"), GREATEST, ("columns", of(RELU, LSE))],
    44: [("transposed", 2, "v * 0.5"), MEAN],
    45: [("linear", "sigmoid(v)"), ("rows", LSE_ROWS)],
    46: [("conv", 2, "tanh(v - 0.5) - 0.2"), AV(2)],
    47: [("conv", 3, "tanh(" + MISH + ")")],
    48: [("conv", 3, "sigmoid(tanh(v * b) * b)")],
    49: [("transposed", 3, "sigmoid(softmax.softmax(u, 0))")],
    50: [("transposed", 3, "v * 0.5"), AV(2), ("map", "(v + b) * 2.0")],
    51: [("rows", "activation.gelu(sum(v - b, axis = 1, keep = true, where = here) / (f32)N)"), ("residual", )],
    52: [("conv", 2, "tanh(activation.softplus(v)) * v"), ("norm", "batch")],
    53: [("linear", "activation.gelu(clamp(v * 0.5, -2.0, 2.0))")],
    54: [("conv", 2, "activation.gelu(activation.leaky_relu(v * b, 0.01))")],
    55: [("linear", "v"), ("pool rows", "max"), ("sum rows", ), ("map", "v * 0.5")],
    56: [("rows", "sum(sigmoid(v), axis = 1, keep = true, where = here)")],
    57: [("conv", 2, f"{RELU} * clamp(({RELU} + 3.0) / 6.0, 0.0, 1.0)")],
    58: [("transposed", 3, LSE), ("map", "clamp(v * sigmoid(v + 3.0) / 6.0 - b, -1.0, 1.0)")],
    59: [("linear", "v * sigmoid(v) * 2.0")],
    60: [("transposed", 3, SILU), ("norm", "group"), ("map", SWISH)],
    61: [("transposed", 3, RELU), ("norm", "group")],
    62: [("linear", "v"), ("norm", "group"), ("map", "activation.leaky_relu(v, 0.01) + activation.leaky_relu(v, 0.01)")],
    63: [("linear", RELU + " / 2.0")],
    64: [("rows", LSE_ROWS), ("map", of(GELU, of(GELU, "activation.leaky_relu(activation.leaky_relu(v, 0.01), 0.01)")))],
    65: [("conv", 2, "v"), AV(2), ("map", "sigmoid(v)"), ("sum all", )],
    66: [("linear", "v"), ("dropout", ), ("softmax rows", )],
    67: [("conv", 2, GELU), MEAN],
    68: [("linear", "min(v, 2.0) - 2.0")],
    69: [("conv", 2, of(RELU, SWISH))],
    70: [("linear", "sigmoid(v) * 2.0 + v")],
    71: [("conv", 2, "activation.leaky_relu(v / 2.0, 0.01)")],
    72: [("transposed", 3, "v"), ("norm", "batch"), AV(2), AV(2)],
    73: [("conv", 2, "v"), ("norm", "batch"), ("map", "v * 2.0")],
    74: [("transposed", 3, "activation.leaky_relu(activation.leaky_relu(v, 0.2) * b, 0.2)"), GREATEST],
    75: [("linear", "v"), ("norm", "group"), ("columns", LEAST), ("map", "v + b")],
    76: [("linear", "activation.relu(v + b)")],
    77: [("transposed", 3, "v * 2.0"), ("norm", "batch"), MEAN],
    78: [("transposed", 3, "v"), GREATEST, GREATEST, ("columns", "sum(v, axis = 0, keep = true, where = here)")],
    79: [("conv", 3, "v * b"), ("norm", "instance"), ("columns", "max(clamp(v, -1.0, 1.0) * b, axis = 0, keep = true, where = here)")],
    80: [("rows", "max(v, axis = 1, keep = true, where = here)"), ("map", "activation.gelu(v - v)")],
    81: [("linear", "clamp(tanh(clamp(v * sigmoid(v) / 2.0, -1.0, 1.0)), -1.0, 1.0)")],
    82: [("conv", 2, "tanh(v) * 2.0 + b"), GREATEST],
    83: [("conv", 3, "v"), ("norm", "group"), ("map", "clamp(min(v, 0.0), 0.0, 1.0)"), ("dropout", )],
    84: [("linear", "v"), ("norm", "batch"), ("map", "v * 2.0"), ("softmax rows", )],
    85: [("conv", 2, "v"), ("norm", "group"), ("map", "v * b"), GREATEST, ("map", "clamp(v, 0.0, 1.0)")],
    86: [("linear", "activation.gelu(v / 2.0)")],
    87: [("conv", 2, "activation.mish(v - 0.5 - 0.2)")],
    88: [("linear", "v"), ("norm", "group"), ("map", f"{SILU} * b * sigmoid({SILU} * b)")],
    89: [("transposed", 3, "v"), GREATEST,
         ("columns", "max(activation.silu(softmax.softmax(u, 0) - b), axis = 0, keep = true, where = here)")],
    90: [("conv", 3, "activation.gelu(clamp(activation.leaky_relu(v, 0.2) + b, -1.0, 1.0))")],
    91: [("transposed", 2, "sigmoid((softmax.softmax(u, 0) + b) * 2.0)")],
    92: [("conv", 2, "v"), ("norm", "group"),
         ("columns", "expand(softmax.log_sum_exp(here ? a + activation.hard_swish(tanh(v)) : -inf, 0), 0)")],
    93: [("transposed", 2, "activation.gelu(min(v + 0.5, 0.0)) * 2.0")],
    94: [("linear", "activation.mish(clamp(v + b, -1.0, 1.0))"), ("norm", "group")],
    95: [("linear", "clamp(activation.gelu(tanh(activation.silu(v + b))), -1.0, 1.0)")],
    96: [("transposed", 3, "v * 0.5"), GREATEST, MEAN, ("map", "clamp(v, 0.0, 1.0)")],
    97: [("linear", "v"), ("norm", "batch"), ("map", "activation.silu((v + 0.5) / 2.0)")],
    98: [("linear", "v"), ("pool rows", "mean"), ("map", GELU + " * 2.0"), ("greatest rows", )],
    99: [("rows", "softmax.softmax(here ? " + GELU + " : -inf, 1)")],
    100: [("transposed", 3, "max(v, -0.5) / 2.0")],
}

# What a step of the library is on the page.
WORDS = {
    "norm": {"layer": "axes_norms.axes_norm_whole", "layer rows": "axes_norms.axes_norm_whole", "group": "axes_norms.axes_norm_whole",
             "instance": "axes_norms.axes_norm_whole", "batch": "axes_norms.axes_moments, axes_norms.axes_norm"},
    "pool": {"max": "pool3d.pool3d combine=reductions.greater, finish=reductions.total", "mean": "pool3d.pool3d"},
    "pool rows": {"max": "pool3d.pool3d combine=reductions.greater, finish=reductions.total", "mean": "pool3d.pool3d"},
    "mean": R + " finish=mean", "mean depth": R + " finish=mean", "mean all": R + " finish=mean",
    "less mean": R + " finish=mean, elementwise.binary_strided f=subtract", "least depth": R + " combine=less",
    "sum height": R, "sum rows": R, "sum all": R, "greatest rows": R + " combine=greater",
    "softmax places": "reductions.softmax_axes", "softmax rows": "rows.softmax_long_rows", "dropout": "layers.dropout",
    "residual": "elementwise.binary_strided",
}


# ---- the expressions in NumPy ----
def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def softplus(v):
    return np.logaddexp(0, v)


def lse(u, _axis):
    return np.log(np.exp(u).sum(1))


def extreme(f):
    def of_one_or_two(x, y=None, axis=None, keep=None, where=None):
        return f(x, axis=1, keepdims=True) if y is None else (np.minimum if f is np.min else np.maximum)(x, y)
    return of_one_or_two


activation = types.SimpleNamespace(
    relu=lambda v: np.maximum(v, 0), leaky_relu=lambda v, s: np.where(v < 0, s * v, v), silu=lambda v: v * sigmoid(v),
    gelu=lambda v: v * (1 + np.vectorize(math.erf, otypes=[float])(v / math.sqrt(2))) / 2, softplus=softplus,
    mish=lambda v: v * np.tanh(softplus(v)), hard_swish=lambda v: v * np.clip(v + 3, 0, 6) / 6)
NAMES = {
    "activation": activation, "sigmoid": sigmoid, "tanh": np.tanh, "clamp": np.clip, "min": extreme(np.min), "max": extreme(np.max),
    "expand": lambda x, _axis: np.expand_dims(x, 1), "true": True, "here": None,
    "sum": lambda x, axis, keep, where: x.sum(1, keepdims=True),
    "softmax": types.SimpleNamespace(log_sum_exp=lse, softmax=lambda u, _axis: np.exp(u) / np.exp(u).sum(1, keepdims=True)),
}


def value(text, v, b, a=None):
    """The expression of arrays, of which all elements are here."""
    text = re.sub(r"here \? (.*?) : -inf", r"\1", text).replace("(f32)N", "N")
    b = b.reshape(1, -1, *(1, ) * (v.ndim - 2)) if v.shape[1] == b.size else b
    return eval(text, {**NAMES, "v": v, "u": v, "b": b, "a": v if a is None else a, "N": v.shape[1]})  # pylint: disable=eval-used


# ---- the steps ----
class Chain:
    """An array beside what NumPy has for it, from step to step."""

    def __init__(self, root, folder, number, device):
        self.root, self.folder, self.rng, self.device = root, folder, np.random.default_rng(number), device
        self.got = self.want = self.first = None

    def random(self, *shape, scale=1.0):
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def own(self, form, text, **args):
        path = os.path.join(self.folder, form + ".tile")
        with open(path, "w", encoding="utf-8") as f:
            f.write(FORMS[form].replace("EXPR", text))
        consts = {k: args.pop(k) for k in ("SD", ) if k in args}
        tile.kernel(path, "k", device=self.device, consts=consts)(**args)

    def library(self, name, consts=None, **args):
        module, kernel = name.split(".")
        consts = {k: str(v).lower() if isinstance(v, bool) else v for k, v in (consts or {}).items()}
        tile.kernel(os.path.join(self.root, "stdlib", "kernels", module + ".tile"), kernel, device=self.device, consts=consts)(**args)

    def result(self, *shape):
        return np.full(shape, np.nan, np.float32)

    def linear(self, form, text):
        x = self.random(5, 20) if self.got is None else self.got
        before = x.astype(float) if self.got is None else self.want
        w, bias, b = self.random(24, x.shape[1], scale=0.3), self.random(24), self.random(24)
        self.want = value(text, before @ w.T.astype(float) + bias, b.astype(float))
        self.got, self.first = self.result(*self.want.shape), before
        self.own(form, text, x=x, w=w, bias=bias, c=b, y=self.got)

    def conv(self, form, dims, text):
        size, k = (3 if dims == 3 else 1, 3, 3), 8
        b, bias = self.random(k), self.random(k)
        if form == "conv":
            shape = (2, 3, 5 if dims == 3 else 1, 9, 10)
            x = self.random(*shape)
            w = self.random(*size, 3, k, scale=0.3)
            y = (2, k, shape[2] - size[0] + 1, 7, 8)
            sums, more = forward(x.astype(float), w.astype(float), y, (1, 1, 1), (0, 0, 0, 1, 1, 1), 1), {"window": {}}
        else:
            x = self.random(2, 3, 3 if dims == 3 else 1, 4, 5) if self.got is None else self.got
            w = self.random(*size, k, x.shape[1], scale=0.3)
            stride, pad = (2 if dims == 3 else 1, 2, 2), (1 if dims == 3 else 0, 1, 1)
            y = (2, k, *((n - 1) * s - 2 * p + t for n, s, p, t in zip(x.shape[2:], stride, pad, size)))
            before = x if self.want is None else self.want
            sums = backward(y, w.astype(float), before.astype(float), stride, (*pad, 1, 1, 1), 1)[0]
            more = {"window": dict(zip(("pad_d", "pad_h", "pad_w"), pad)), "SD": stride[0]}
        self.want = value(text, sums + bias.reshape(1, -1, 1, 1, 1), b.astype(float))
        self.got, self.first = self.result(*self.want.shape), self.want
        self.own(form, text, x=x, w=w, bias=bias, c=b, y=self.got, **more)

    def flat(self, form, text):
        """map and columns: [I, J, L]; `a` is what the first step gave, if it has this shape."""
        i, j = self.got.shape[:2]
        b = self.random(j)
        other = self.random(*self.got.shape) if self.first is None or self.first.shape != self.want.shape else self.first.astype(np.float32)
        want = value(text, self.want, b.astype(float), other.astype(float))
        got = self.result(i, want.shape[1], int(np.prod(want.shape[2:])))
        self.own(form, text, x=self.got.reshape(i, j, -1), z=other.reshape(i, j, -1), c=b, y=got)
        self.got, self.want = got.reshape(want.shape), want

    def norm(self, kind):
        n, c = self.got.shape[:2]
        x, want = self.got.reshape(n, c, -1), self.want.reshape(n, c, -1)
        places = x.shape[2]
        y, w, bias = np.empty_like(x), self.random(c), self.random(c)
        spread, eps = (lambda v, *shape: np.broadcast_to(v, shape)), np.float32(1e-5)
        along = {"batch": (0, 2), "instance": (2, ), "group": (2, 3), "layer": (2, ), "layer rows": (1, )}[kind]
        if kind == "group":
            view, want, shape = (lambda v: v.reshape(n, 4, c // 4, places)), want.reshape(n, 4, c // 4, places), (4, c // 4)
            weights = {"w": w.reshape(shape), "bias": bias.reshape(shape)}
        elif kind == "batch":
            view, shape = (lambda v: v.transpose(1, 0, 2)[None]), (c, n)
            weights = {"w": spread(w[:, None], *shape), "bias": spread(bias[:, None], *shape)}
        elif kind == "instance":
            view, weights = (lambda v: v[:, :, None]), {"w": w[:, None], "bias": bias[:, None]}
        else:  # over the last axis of what it has, by elements
            w, bias = self.random(self.got.shape[-1]), self.random(self.got.shape[-1])
            view = lambda v: v.reshape(-1, self.got.shape[-1])[:, None, None]  # noqa: E731
            weights, want, along = {"w": w[None], "bias": bias[None]}, self.want, (self.want.ndim - 1, )
        mean, variance = want.mean(along, keepdims=True), want.var(along, keepdims=True)
        out = ((want - mean) / np.sqrt(variance + eps)).reshape(self.want.shape)
        full = (1, -1, *(1, ) * (out.ndim - 2)) if "layer" not in kind else (*(1, ) * (out.ndim - 1), -1)
        self.want = out * w.reshape(full) + bias.reshape(full)
        moments = {"mean": self.result(*view(x).shape[:2]), "variance": self.result(*view(x).shape[:2])}
        if kind == "batch":
            none = np.empty(0, np.float32)
            self.library("axes_norms.axes_moments", x=view(x), running_mean=none, running_variance=none, momentum=0, **moments)
            self.library("axes_norms.axes_norm", x=view(x), y=view(y), eps=eps, **moments, **weights)
        else:
            self.library("axes_norms.axes_norm_whole", {"ELEMENTS": "layer" in kind}, x=view(x), y=view(y), eps=eps, **moments, **weights)
        self.got = y.reshape(self.want.shape)

    def pool(self, kind, size):
        if self.got is None:
            self.got = self.random(2, 3, 6, 8, 10)
            self.want = self.got.astype(float)
        flat = self.got.ndim == 2
        x, want = (v[:, None, None, None] if flat else v for v in (self.got, self.want))
        windows = (1, 1, size) if flat else (min(size, x.shape[2]), size, size)
        y = (*x.shape[:2], *(n // s for n, s in zip(x.shape[2:], windows)))
        most, _, total, count = pooled(want, y, windows, windows, (0, 0, 0, 1, 1, 1))
        greatest = {"combine": "reductions.greater", "finish": "reductions.total"} if kind == "max" else {}
        got = self.result(*y)
        self.library("pool3d.pool3d", {**greatest, **{f"STRIDE_{a}": s for a, s in zip("DHW", windows)}}, x=x, y=got, window={},
                     neutral=-np.inf if kind == "max" else 0, **{f"kernel_{a}": s for a, s in zip("dhw", windows)})
        want = most if kind == "max" else total / count
        self.got, self.want = (v[:, 0, 0, 0] if flat else v for v in (got, want))

    def reduce(self, axes, keep, f, **consts):
        """Over axes side by side; LAST if they are the last ones."""
        shape, last = self.got.shape, max(axes) == self.got.ndim - 1
        i, s, j = (int(np.prod(shape[a:b])) for a, b in ((0, min(axes)), (min(axes), max(axes) + 1), (max(axes) + 1, len(shape))))
        got = self.result(1, i) if last else self.result(i, j)
        x = self.got.reshape(1, i, 1, s) if last else self.got.reshape(i, 1, s, j)
        neutral = {"greater": -np.inf, "less": np.inf}.get(consts.get("combine"), 0)
        self.library(R, {**consts, "LAST": last}, x=x, y=got, neutral=neutral)
        self.want = f(self.want, axis=axes, keepdims=keep)
        self.got = got.reshape(self.want.shape)

    def step(self, name, *more):
        spatial = tuple(range(2, self.got.ndim)) if self.got is not None else ()
        if name in ("linear", "rows"):
            self.linear(name, *more)
        elif name in ("conv", "transposed"):
            self.conv(name, *more)
        elif name in ("map", "columns"):
            self.flat(name, *more)
        elif name == "norm":
            self.norm(*more)
        elif name in ("pool", "pool rows"):
            self.pool(more[0], more[1] if len(more) > 1 else 4)
        elif name == "mean":
            self.reduce(spatial, True, np.mean, finish="mean")
        elif name == "mean all":
            self.reduce((1, *spatial), False, np.mean, finish="mean")
        elif name == "mean depth":
            self.reduce((2, ), True, np.mean, finish="mean")
        elif name == "least depth":
            self.reduce((2, ), False, np.min, combine="less")
        elif name == "sum height":
            self.reduce((3, ), True, np.sum)
        elif name == "sum all":
            self.reduce((1, *spatial), False, np.sum)
        elif name == "sum rows":
            self.reduce((1, ), True, np.sum)
        elif name == "greatest rows":
            self.reduce((1, ), False, np.max, combine="greater")
        elif name == "less mean":
            x, want = self.got, self.want
            self.reduce(spatial, True, np.mean, finish="mean")
            mean, y = np.broadcast_to(self.got, x.shape), np.empty_like(x)
            flat = (1, x.shape[0], x.shape[1], -1)
            strided = np.lib.stride_tricks.as_strided(self.got, (1, *x.shape[:2], mean[0, 0].size), (0, *self.got.strides[:2], 0))
            self.library("elementwise.binary_strided", {"f": "subtract"}, a=x.reshape(flat), b=strided, y=y.reshape(flat))
            self.got, self.want = y, want - self.want
        elif name in ("softmax places", "softmax rows"):
            shape = self.got.shape
            rows = self.got.reshape(-1, shape[-1]) if name == "softmax rows" else self.got.reshape(shape[0] * shape[1], -1)
            y, want = np.empty_like(rows), self.want.reshape(rows.shape)
            if name == "softmax rows":
                self.library("rows.softmax_long_rows", x=rows, y=y)
            else:
                self.library("reductions.softmax_axes", x=rows[:, None, None], y=y[:, None, None])
            powers = np.exp(want - want.max(1, keepdims=True))
            self.got, self.want = y.reshape(shape), (powers / powers.sum(1, keepdims=True)).reshape(shape)
        elif name == "residual":
            y, x = self.result(1, 1, *self.first.shape), self.first.astype(np.float32)
            self.library("elementwise.binary_strided", a=np.broadcast_to(self.got, x.shape)[None, None], b=x[None, None], y=y)
            self.got, self.want = y[0, 0], self.want + self.first
        elif name != "dropout":  # which leaves all as it is in inference
            raise ValueError(name)


def run(root, number, folder, device):
    """What is wrong with a problem of level 2, or nothing."""
    chain = Chain(root, folder, number, device)
    for step in LEVEL_2[number]:
        chain.step(*step)
    error = np.abs(chain.got - chain.want).max() / max(np.abs(chain.want).max(), 1)
    return "" if error < 2e-5 else f"level 2, problem {number}: error {error:.1e}"


# ---- the page ----
def said(step):
    if step[0] in FORMS:
        return f"{step[0]}: `{step[-1]}`"
    word = WORDS[step[0]]
    return " ".join(f"`{w}`" if "." in w and "=" not in w else w for w in (word[step[1]] if isinstance(word, dict) else word).split(" "))


def level_1(text):
    return " ".join(f"`{w}`" if re.fullmatch(r"[a-z_0-9]+\.[a-z_0-9]+", w) else w for w in text.split(" "))


def written(text):
    """The page with its two tables and its forms."""
    one = "".join(f"| {n} | {level_1(LEVEL_1[n])} |\n" for n in range(1, 101))
    two = "".join(f"| {n} | {'; '.join(map(said, LEVEL_2[n]))} |\n" for n in range(1, 101)).replace("||", "\\|\\|")
    forms = "\n".join(f"`{name}`:\n\n```tile\n{body}```\n" for name, body in FORMS.items()).replace("EXPR", "activation.relu(v + b)")
    for name, body in (("level 1", "| problem | kernel |\n| --- | --- |\n" + one), ("level 2", "| problem | steps |\n| --- | --- |\n" + two), ("forms", forms)):
        text = re.sub(rf"(<!-- {name}: .*? -->\n).*?(<!-- end -->)", lambda m, b=body: f"{m.group(1)}\n{b}\n{m.group(2)}", text, flags=re.S)
    return text


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("root")
    ap.add_argument("--write", action="store_true")
    ap.add_argument("-k", type=int)
    ap.add_argument("--device", default="cpu")
    o = ap.parse_args()
    page = os.path.join(o.root, PAGE)
    with open(page, encoding="utf-8") as f:
        text = f.read()
    if o.write:
        with open(page, "w", encoding="utf-8") as f:
            f.write(written(text))
        return 0
    wrong = [] if written(text) == text else [f"{PAGE} is not what kernelbench.py --write gives"]
    known = {f"{module}.{name}" for module, _, name, _, _ in kernels(o.root)}
    named = set(re.findall(r"`([a-z_0-9]+\.[a-z_0-9]+)`", text))
    wrong += [f"{PAGE}: there is no kernel {n}" for n in sorted(named - known)]
    with tempfile.TemporaryDirectory() as folder:
        for n in [o.k] if o.k else LEVEL_2:
            try:
                wrong += filter(None, [run(o.root, n, folder, o.device)])
            except Exception as e:  # pylint: disable=broad-except
                wrong.append(f"level 2, problem {n}: {e!r}")
    print("\n".join([*wrong, f"{len(LEVEL_1)} and {len(LEVEL_2)} problems, {len(wrong)} faults"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
