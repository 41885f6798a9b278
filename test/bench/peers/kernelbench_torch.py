#!/usr/bin/env python3
"""KernelBench's problems by the kernels that stdlib/kernels/KERNELBENCH.md names, beside PyTorch, on the CPU, one thread.

    kernelbench_torch.py [--level 1|2] [-k N,...] [--rounds 9] [--seconds 0.03] [--slow 1.1] [--json FILE]

Needs torch and NumPy, and the library of tile (TILE_LIBRARY, or build/package). Both sides have the same arrays, in the layouts of
KernelBench (channels outermost), and results are compared. They take turns, a different one first in each round, each for so many
seconds; times are the processor's, of the whole process, and the median counts. Kernels have the constants that they have by
default, but for the operation itself. Filters lie as either side wants them: tilec's are permuted before the clock runs, PyTorch
packs its own as it does in every call.

Sizes are smaller than KernelBench's, so that a problem takes 1 to 50 ms: matrices have a quarter of each extent where none is
special, batches 1 to 8, images and volumes a half to an eighth of each axis, arrays of rows fewer rows, but more than caches hold. Channels, filters, strides,
paddings, groups, and the lengths of rows of softmax, norms and scans are KernelBench's.

Level 2 are the chains of KERNELBENCH.md; PyTorch runs them op by op. Where an op takes a number or an array of its own, this script
has the page's. Products are 256 x 2048 x 2048 where KernelBench has more.
"""
import argparse
import ctypes
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
import types
import warnings

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", TILE_THREADS="1")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "test", "library")]
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import tile  # noqa: E402
from kernelbench import LEVEL_1, LEVEL_2, said  # noqa: E402
from kernelbench_chain import Chain, value  # noqa: E402

warnings.simplefilter("ignore")  # of the library, compiled as source
for option in (-1, -3):  # PyTorch's results come from memory that malloc keeps: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
    ctypes.CDLL(None).mallopt(option, 1 << 30)
torch.set_num_threads(1)
torch.set_grad_enabled(False)
EPS = 1e-5


def rand(*shape):
    """As KernelBench has its inputs: from 0 to 1."""
    return torch.rand(shape)


def launch(name, consts=None, **args):
    """A kernel of the library, ready to run."""
    module, kernel = name.split(".")
    words = {k: str(v).lower() if isinstance(v, bool) else v for k, v in (consts or {}).items()}
    path = os.path.join(ROOT, "stdlib", "kernels", module + ".tile")
    run = tile.kernel(path, kernel, device="cpu", consts=words)
    arrays = {k: v.numpy() if isinstance(v, torch.Tensor) else v for k, v in args.items()}
    return lambda: run(**arrays)


class Problem:
    """PyTorch's function; launches, one after the other, whose result is y."""

    def __init__(self, theirs, ours, y, names, tolerance=1e-4):
        self.theirs, self.ours, self.y, self.names, self.tolerance = theirs, ours, y, names, tolerance

    def run(self):
        for f in self.ours:
            f()


def problem(theirs, y, *steps, tolerance=1e-4):
    """steps: (kernel, constants, arguments)."""
    return Problem(theirs, [launch(n, c, **a) for n, c, a in steps], y, [n for n, _, _ in steps], tolerance)


NONE = torch.empty(0)


# ---- products ----
def gemm(m, n, k, ta=False, tb=False):
    a, b, y = rand(*((k, m) if ta else (m, k))), rand(*((n, k) if tb else (k, n))), torch.empty(m, n)
    return problem(lambda: (a.T if ta else a) @ (b.T if tb else b), y,
                   ("gemm.gemm", {"T": "f32", "TA": ta, "TB": tb}, {"A": a, "B": b, "C": y}))


def rows_gemm(shape, n):
    """An array with several axes of rows."""
    a, b = rand(*shape), rand(shape[-1], n)
    y = torch.empty(*shape[:-1], n)
    return problem(lambda: a @ b, y, ("gemm.gemm", {"T": "f32"}, {"A": a.view(-1, shape[-1]), "B": b, "C": y.view(-1, n)}))


def batched(z, m, n, k):
    a, b, y = rand(z, m, k), rand(z, k, n), torch.empty(z, m, n)
    return problem(lambda: torch.bmm(a, b), y, ("gemm.gemm_batched", {"T": "f32"}, {"A": a, "B": b, "C": y}))


def gemv(m, k):
    a, x, y = rand(m, k), rand(k, 1), torch.empty(m, 1)
    return problem(lambda: a @ x, y, ("blas.blas_gemv", {}, {
        "A": a[None], "x": x.view(1, k), "y": y.view(1, m), "bias": NONE, "alpha": 1.0, "beta": 0.0, "act": 0}))


def split_k(m, n, k, parts=4):
    a, b, y = rand(m, k), rand(k, n), torch.empty(m, n)
    arrived = np.zeros((-(-m // 64), -(-n // 64)), np.uint32)
    return problem(lambda: a @ b, y, ("gemm.gemm_split_k", {"T": "f32"}, {
        "A": a, "B": b, "C": y, "parts": torch.empty(parts, m, n), "arrived": arrived}))


def triangle(n, upper):
    """The kernels of the page, ten lines."""
    def cut(x):
        return torch.triu(x) if upper else torch.tril(x)
    a, b, y = cut(rand(n, n)), cut(rand(n, n)), torch.empty(n, n)
    name = "upper" if upper else "lower"
    with open(os.path.join(ROOT, "stdlib", "kernels", "KERNELBENCH.md"), encoding="utf-8") as f:
        text = next(t for t in re.findall(r"```tile\n(.*?)```", f.read(), re.S) if f"kernel {name}(" in t)
    run = own(text, name)
    arrays = {"A": a.numpy(), "B": b.numpy(), "C": y.numpy()}
    return Problem(lambda: cut(a @ b), [lambda: run(**arrays)], y, [f"`{name}`"])


def own(text, name, consts=None):
    path = os.path.join("/tmp", f"kernelbench-{os.getpid()}-{name}.tile")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    try:
        return tile.kernel(path, name, device="cpu", consts=consts)
    finally:
        os.unlink(path)


def attention(z, h, m, d):
    q, k, v, y = rand(z, h, m, d), rand(z, h, m, d), rand(z, h, m, d), torch.empty(z, h, m, d)
    return problem(lambda: F.scaled_dot_product_attention(q, k, v), y, ("attention.attention", {"T": "f32", "t.D": d}, {
        "Q": q, "K": k, "V": v, "O": y, "lse": torch.empty(z, h, m), "slope": NONE, "sink": NONE, "s.scale": d**-0.5}))


# ---- elementwise ----
def unary(theirs, f, shape=(32, 393216)):
    x = torch.randn(shape)  # both signs, or half of these functions do nothing
    y = torch.empty_like(x)
    return problem(lambda: theirs(x), y, ("elementwise.unary", {"f": f}, {"x": x.view(-1), "y": y.view(-1)}))


def scaled(m, n):
    x, y = rand(m, n), torch.empty(m, n)
    s = np.lib.stride_tricks.as_strided(np.full(1, 3.14, np.float32), (1, 1, m, n), (0, 0, 0, 0))
    return problem(lambda: x * 3.14, y, ("elementwise.binary_strided", {"f": "multiply"}, {"a": x[None, None], "b": s, "y": y[None, None]}))


def diagonal(n):
    d, x, y = rand(n), rand(n, n), torch.empty(n, n)
    return problem(lambda: d.unsqueeze(1) * x, y, ("elementwise.binary_strided", {"f": "multiply"}, {
        "a": d[:, None].expand(n, n)[None, None], "b": x[None, None], "y": y[None, None]}))


# ---- rows, axes ----
def softmax(m, n, log=False):
    x, y = rand(m, n), torch.empty(m, n)
    return problem(lambda: (torch.log_softmax if log else torch.softmax)(x, 1), y, ("rows.softmax_long_rows", {"LOG": log}, {"x": x, "y": y}))


def norm(kind, shape, groups=8):
    x, y = rand(*shape), torch.empty(*shape)
    n, c = shape[:2]
    flat, out = x.view(n, c, -1), y.view(n, c, -1)
    places = flat.shape[2]
    w, b = torch.ones(c), torch.zeros(c)
    if kind == "batch":
        mean, variance, running = torch.zeros(c), torch.ones(c), (torch.zeros(c), torch.ones(c))
        moments = {"mean": torch.empty(1, c), "variance": torch.empty(1, c)}
        turned, turned_y = flat.permute(1, 0, 2)[None], out.permute(1, 0, 2)[None]
        weights = {"w": w[:, None].expand(c, n), "bias": b[:, None].expand(c, n)}
        return problem(lambda: F.batch_norm(x, *running, w, b, True), y,
                       ("axes_norms.axes_moments", {"RUNNING": True},
                        {"x": turned, "running_mean": mean, "running_variance": variance, "momentum": 0.1, **moments}),
                       ("axes_norms.axes_norm", {}, {"x": turned, "y": turned_y, "eps": EPS, **moments, **weights}))
    consts = {}
    if kind == "group":
        view = (n, groups, c // groups, places)
        theirs, weights = lambda: F.group_norm(x, groups, w, b), {"w": w.view(groups, -1), "bias": b.view(groups, -1)}
    elif kind == "instance":
        view = (n, c, 1, places)
        theirs, weights = lambda: F.instance_norm(x), {"w": w[:, None], "bias": b[:, None]}
    else:
        view, consts, size = (n, 1, c, places), {"ELEMENTS": True}, shape[1:]
        w, b = torch.ones(size), torch.zeros(size)
        theirs, weights = lambda: F.layer_norm(x, size, w, b), {"w": w.view(c, -1), "bias": b.view(c, -1)}
    return problem(theirs, y, ("axes_norms.axes_norm_whole", consts, {
        "x": x.view(view), "y": y.view(view), "mean": torch.empty(view[:2]), "variance": torch.empty(view[:2]), "eps": EPS, **weights}))


def rms_norm(shape):
    x, y = rand(*shape), torch.empty(*shape)
    view = (shape[0], 1, shape[1], -1)
    return problem(lambda: x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + EPS), y, ("reductions.normalize_axes", {
        "divisor": "by_root_mean", "LAST": False}, {"x": x.view(view), "y": y.view(view), "neutral": 0.0, "eps": EPS}))


def frobenius(shape):
    x, y = rand(*shape), torch.empty(*shape)
    flat, parts, total = x.view(1, shape[0] * shape[1], 1, -1), torch.empty(1, shape[0] * shape[1]), torch.empty(1, 1)
    return problem(lambda: x / torch.norm(x, p="fro"), y,
                   ("reductions.reduce_axes", {"map": "square"}, {"x": flat, "y": parts, "neutral": 0.0}),
                   ("reductions.reduce_axes", {"finish": "root"}, {"x": parts[:, None, None], "y": total, "neutral": 0.0}),
                   ("elementwise.binary_strided", {"f": "divide"}, {"a": flat.view(1, 1, *flat.shape[1::2]), "b": total.expand(1, 1, *flat.shape[1::2]),
                                                                   "y": y.view(1, 1, *flat.shape[1::2])}),
                   tolerance=1e-3)  # PyTorch adds up millions of numbers one after the other


def normalize(theirs, m, n, **consts):
    x, y = rand(m, n), torch.empty(m, n)
    return problem(lambda: theirs(x), y, ("reductions.normalize_axes", consts, {
        "x": x[None, :, None], "y": y[None, :, None], "neutral": 0.0, "eps": 0.0}))


def reduction(theirs, shape, neutral=0.0, **consts):
    x, y = rand(*shape), torch.empty(shape[0], shape[2])
    return problem(lambda: theirs(x), y, ("reductions.reduce_axes", {"LAST": False, **consts}, {
        "x": x[:, None], "y": y, "neutral": neutral}))


def place(theirs, shape, least):
    x, y = rand(*shape), torch.empty(shape[0], shape[2])
    index = torch.empty(shape[0], shape[2], dtype=torch.int64)
    return problem(lambda: theirs(x, dim=1), index, ("reductions.argmax_axes", {"LAST": False, "LEAST": least}, {"x": x[:, None], "y": y, "index": index}))


def scanned(theirs, m, n, f="add", neutral=0.0, mask=None, **consts):
    x, y = rand(m, n) if f == "add" else rand(m, n) * 0 + 1.0001, torch.empty(m, n)
    none = np.zeros((0, 0, 0), np.uint8)
    return problem(lambda: theirs(x), y, ("scan.scan_axis", {"f": f, "MASK": mask is not None, **consts}, {
        "x": x[None], "mask": none if mask is None else mask.numpy().view(np.uint8)[None], "y": y[None], "neutral": neutral}), tolerance=1e-3)


def masked_sums(m, n):
    mask = torch.randint(0, 2, (m, n)).bool()
    return scanned(lambda x: torch.cumsum(x * mask, 1), m, n, mask=mask)


def exclusive(x):
    return torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x[:, :-1], 1)), 1)


# ---- losses ----
def pair(theirs, a, b, scale=None, f="squared_error", raw=None):
    z = 16
    y = torch.empty(1)
    return problem(lambda: theirs(raw if raw is not None else a, b), y, ("pair_losses.pair_loss", {"f": f}, {
        "a": a.reshape(-1), "b": b.reshape(-1), "parts": torch.empty(z), "arrived": np.zeros(1, np.uint32), "y": y,
        "scale": scale or 1 / a.numel()}))


def divergence(m, n):
    """PyTorch's side takes the logarithm in this problem, so ours does, by a map."""
    p, t = rand(m, n).softmax(-1), rand(m, n).softmax(-1)
    log = torch.empty_like(p)
    q = pair(lambda raw, b: F.kl_div(torch.log(raw), b, reduction="batchmean"), log, t, 1 / m, "divergence", raw=p)
    q.ours.insert(0, launch("elementwise.unary", {"f": "log"}, x=p.view(-1), y=log.view(-1)))
    return q


def hinge(m, n):
    p, t = rand(m, n), torch.randint(0, 2, (n,)).float() * 2 - 1
    spread = torch.empty(m, n)
    q = pair(lambda a, _: torch.mean(torch.clamp(1 - a * t, min=0)), p, spread, f="hinge")
    q.ours.insert(0, launch("elementwise.unary_strided", x=t.expand(1, 1, m, n), y=spread[None, None]))
    return q


def cross_entropy(m, v):
    x, label = rand(m, v), torch.randint(0, v, (m,))
    loss, y = torch.empty(m), torch.empty(1, 1)
    return problem(lambda: F.cross_entropy(x, label), y,
                   ("losses.cross_entropy", {"T": "f32", "I": "i64"}, {"x": x, "label": label, "loss": loss, "lse": torch.empty(m),
                                                                       "smoothing": 0.0, "z": 0.0, "ignore": -100}),
                   ("reductions.reduce_axes", {"finish": "mean"}, {"x": loss[None, None, None], "y": y, "neutral": 0.0}))


def triplet(m, n):
    a, p, q = rand(m, n), rand(m, n), rand(m, n)
    loss, y = torch.empty(m), torch.empty(1, 1)
    return problem(lambda: F.triplet_margin_loss(a, p, q), y,
                   ("pair_losses.triplet_margin", {}, {"anchor": a, "positive": p, "negative": q, "y": loss, "near": torch.empty(m),
                                                       "far": torch.empty(m), "margin": 1.0, "eps": 1e-6}),
                   ("reductions.reduce_axes", {"finish": "mean"}, {"x": loss[None, None, None], "y": y, "neutral": 0.0}))


# ---- images and volumes ----
def three(v, dims, missing):
    """A number, or one for each axis, for depth, rows and columns."""
    v = (v,) * dims if isinstance(v, int) else tuple(v)
    return (missing,) * (3 - dims) + v


def volume(x):
    return x.view(*x.shape[:2], *three(x.shape[2:], x.dim() - 2, 1))


def window_of(pad, dilation):
    return {f"window.{n}_{a}": v for n, values in (("pad", pad), ("dilation", dilation)) for a, v in zip("dhw", values)}


def strides_of(stride):
    return {f"STRIDE_{a}": s for a, s in zip("DHW", stride)}


def conv(shape, outputs, size, stride=1, pad=0, dilation=1, groups=1, transposed=False, more=0, bias=False):
    dims = len(shape) - 2
    x = rand(*shape)
    k = tuple(three(size, dims, 1)[3 - dims:])
    w = torch.randn(*((shape[1], outputs // groups) if transposed else (outputs, shape[1] // groups)), *k) / math.sqrt(shape[1] // groups * math.prod(k))
    b = rand(outputs) if bias else None
    if transposed:
        f = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[dims - 1]
        def theirs(): return f(x, w, b, stride, pad, more, groups, dilation)
    else:
        f = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
        def theirs(): return f(x, w, b, stride, pad, dilation, groups)
    y = torch.empty_like(theirs())
    filters = w.view(*w.shape[:2], *three(k, dims, 1)).permute(2, 3, 4, 1, 0).contiguous()
    consts = {**strides_of(three(stride, dims, 1)), "GROUPS": groups, "BIAS": bias}
    return problem(theirs, y, ("conv3d.conv3d_transpose" if transposed else "conv3d.conv3d", consts, {
        "x": volume(x), "w": filters, "bias": b if bias else NONE, "y": volume(y),
        **window_of(three(pad, dims, 0), three(dilation, dims, 1))}))


def depthwise(shape, size, pad=0):
    x, c = rand(*shape), shape[1]
    w = torch.randn(c, 1, *size) / math.sqrt(math.prod(size))
    def theirs(): return F.conv2d(x, w, None, 1, pad, 1, c)
    y = torch.empty_like(theirs())
    return problem(theirs, y, ("conv3d.depthwise_conv3d", {}, {
        "x": volume(x), "w": w.view(c, 1, *size).permute(1, 2, 3, 0).contiguous(), "bias": NONE, "y": volume(y),
        **window_of((0, pad, pad), (1, 1, 1))}))


def separable(shape, outputs):
    x, w = rand(*shape), torch.randn(shape[1], 1, 3, 3) / 3
    v = torch.randn(outputs, shape[1], 1, 1) / 8
    between, y = torch.empty(shape), torch.empty(shape[0], outputs, *shape[2:])
    return problem(lambda: F.conv2d(F.conv2d(x, w, None, 1, 1, 1, shape[1]), v), y,
                   ("conv3d.depthwise_conv3d", {}, {"x": volume(x), "w": w.permute(1, 2, 3, 0).contiguous(), "bias": NONE, "y": volume(between),
                                                    **window_of((0, 1, 1), (1, 1, 1))}),
                   ("conv3d.conv3d", {}, {"x": volume(between), "w": v.view(outputs, shape[1], 1, 1, 1).permute(2, 3, 4, 1, 0).contiguous(),
                                          "bias": NONE, "y": volume(y), **window_of((0, 0, 0), (1, 1, 1))}))


def pool(kind, shape, size, stride, pad, dilation=1):
    dims = len(shape) - 2
    x = rand(*shape)
    if kind == "max":
        f = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[dims - 1]
        def theirs(): return f(x, size, stride, pad, dilation)
        consts, neutral = {"combine": "reductions.greater", "finish": "reductions.total"}, -math.inf
    else:
        f = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[dims - 1]
        def theirs(): return f(x, size, stride, pad)
        consts, neutral = {"COUNT_PAD": True}, 0.0
    y = torch.empty_like(theirs())
    k, s = three(size, dims, 1), three(stride, dims, 1)
    return problem(theirs, y, ("pool3d.pool3d", {**consts, **strides_of(s)}, {
        "x": volume(x), "y": volume(y), "neutral": neutral, **{f"kernel_{a}": v for a, v in zip("dhw", k)},
        **window_of(three(pad, dims, 0), three(dilation, dims, 1))}))


IMAGES = (2, 64, 256, 256)
PLANES = (1, 4096, 4095)
PROBLEMS = {
    1: lambda: gemm(1024, 1024, 1024), 2: lambda: gemm(512, 1024, 2048), 3: lambda: batched(8, 128, 512, 256), 4: lambda: gemv(64, 131072),
    5: lambda: scaled(1024, 16384), 6: lambda: split_k(256, 256, 16384), 7: lambda: gemm(2048, 2048, 64), 8: lambda: gemm(2051, 1480, 737),
    9: lambda: gemm(2048, 2048, 32), 10: lambda: rows_gemm((4, 256, 2048), 768), 11: lambda: rows_gemm((1, 16, 512, 256), 768),
    12: lambda: diagonal(4096), 13: lambda: gemm(1024, 1024, 1024), 14: lambda: triangle(1024, True), 15: lambda: triangle(1024, False),
    16: lambda: gemm(512, 1024, 2048, ta=True), 17: lambda: gemm(512, 1024, 2048, tb=True), 18: lambda: gemm(512, 1024, 2048, True, True),
    19: lambda: unary(torch.relu, "activation.relu"), 20: lambda: unary(F.leaky_relu, "leaky_relu"), 21: lambda: unary(torch.sigmoid, "sigmoid"),
    22: lambda: unary(torch.tanh, "tanh"), 23: lambda: softmax(32, 393216), 24: lambda: softmax(32, 393216, True),
    25: lambda: unary(lambda x: x * torch.sigmoid(x), "activation.silu"), 26: lambda: unary(F.gelu, "activation.gelu"),
    27: lambda: unary(torch.selu, "selu"), 28: lambda: unary(F.hardsigmoid, "hard_sigmoid"), 29: lambda: unary(F.softplus, "activation.softplus"),
    30: lambda: unary(lambda x: x / (1 + torch.abs(x)), "activation.softsign"), 31: lambda: unary(F.elu, "elu"),
    32: lambda: unary(F.hardtanh, "hard_tanh"), 33: lambda: norm("batch", (2, 64, 256, 256)), 34: lambda: norm("instance", IMAGES),
    35: lambda: norm("group", IMAGES), 36: lambda: rms_norm(IMAGES), 37: lambda: frobenius(IMAGES),
    38: lambda: normalize(lambda x: x / torch.mean(torch.abs(x), dim=1, keepdim=True), 192, 65535, map="magnitude", divisor="by_mean"),
    39: lambda: normalize(lambda x: x / torch.norm(x, p=2, dim=1, keepdim=True), 192, 65535), 40: lambda: norm("layer", (1, 64, 256, 256)),
    41: lambda: pool("max", (1, 192, 8192), 8, 1, 4, 3), 42: lambda: pool("max", (1, 64, 128, 128), 4, 1, 1),
    43: lambda: pool("max", (1, 32, 48, 48, 48), 3, 2, 1, 3), 44: lambda: pool("mean", (1, 128, 8192), 8, 1, 4),
    45: lambda: pool("mean", (1, 64, 512, 512), 11, 11, 0), 46: lambda: pool("mean", (1, 32, 32, 32, 64), 3, 2, 1),
    47: lambda: reduction(lambda x: torch.sum(x, dim=1), PLANES), 48: lambda: reduction(lambda x: torch.mean(x, dim=1), PLANES, finish="mean"),
    49: lambda: reduction(lambda x: torch.max(x, dim=1)[0], PLANES, -math.inf, combine="greater"),
    50: lambda: conv((4, 3, 224, 224), 96, 11, 4, 2, bias=True), 51: lambda: place(torch.argmax, PLANES, False),
    52: lambda: place(torch.argmin, PLANES, True), 53: lambda: reduction(lambda x: torch.min(x, dim=1)[0], PLANES, math.inf, combine="less"),
    54: lambda: conv((1, 3, 32, 32, 32), 64, 3), 55: lambda: conv((1, 64, 64, 128), 128, 3), 56: lambda: conv((1, 64, 32, 32), 128, (5, 7)),
    57: lambda: conv((1, 64, 64, 64), 64, 3, transposed=True), 58: lambda: conv((1, 32, 8, 16, 32), 16, (3, 5, 7), transposed=True),
    59: lambda: conv((1, 3, 64, 64, 10), 64, (3, 3, 1)), 60: lambda: conv((1, 3, 32, 32, 32), 64, (3, 5, 7)),
    61: lambda: conv((1, 48, 16, 16, 16), 48, 3, transposed=True), 62: lambda: conv((1, 32, 64, 64), 64, (5, 9)),
    63: lambda: conv((1, 16, 128, 128), 128, 3), 64: lambda: conv((1, 128, 8192), 128, 3, transposed=True),
    65: lambda: conv((1, 64, 64, 64), 64, (3, 7), transposed=True), 66: lambda: conv((1, 3, 8, 64, 64), 64, (3, 5, 7)),
    67: lambda: conv((1, 64, 16384), 128, 3), 68: lambda: conv((1, 32, 16, 16, 16), 64, (3, 5, 5), transposed=True),
    69: lambda: conv((1, 64, 32, 64), 128, (3, 5), transposed=True), 70: lambda: conv((1, 48, 24, 24, 24), 24, 3, transposed=True),
    71: lambda: conv((1, 32, 64, 128), 32, 3, transposed=True),
    72: lambda: conv((1, 32, 12, 24, 48), 32, (3, 5, 7), 2, (1, 2, 3), groups=4, transposed=True, more=1),
    73: lambda: conv((1, 32, 16, 32, 64), 32, 3, 2, 1, groups=4, transposed=True),
    74: lambda: conv((1, 32, 16384), 64, 5, dilation=3, transposed=True),
    75: lambda: conv((1, 32, 64, 128), 64, (3, 5), (2, 3), (1, 2), (2, 1), 4, True), 76: lambda: conv((1, 64, 65535), 128, 3, 3, dilation=4),
    77: lambda: conv((1, 32, 8, 16, 16), 64, 3, 2, 1, 2, transposed=True), 78: lambda: conv((1, 32, 64, 128), 32, (3, 7), 1, (1, 3), transposed=True),
    79: lambda: conv((1, 32, 32768), 64, 3, 2, 1, 2, transposed=True), 80: lambda: conv((1, 32, 64, 64), 64, (5, 9), 1, (2, 4), (2, 3)),
    81: lambda: conv((1, 32, 64, 128), 64, 3, 5, 1, 2, transposed=True), 82: lambda: depthwise((1, 64, 256, 256), (3, 3)),
    83: lambda: depthwise((8, 8, 256, 256), (3, 1)), 84: lambda: depthwise((1, 128, 128, 256), (3, 3)),
    85: lambda: depthwise((1, 128, 128, 128), (3, 7)), 86: lambda: separable((1, 64, 128, 128), 128), 87: lambda: conv((1, 64, 128, 128), 128, 1),
    88: lambda: unary(lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
                      "activation.gelu_tanh", (1024, 8192)),
    89: lambda: scanned(lambda x: torch.cumsum(x, 1), 256, 32768), 90: lambda: scanned(lambda x: torch.cumprod(x, 1), 256, 32768, "multiply", 1.0),
    91: lambda: scanned(lambda x: torch.cumsum(x.flip(1), 1).flip(1), 256, 32768, REVERSE=True),
    92: lambda: scanned(exclusive, 256, 32768, EXCLUSIVE=True), 93: lambda: masked_sums(256, 32768),
    94: lambda: pair(lambda a, b: torch.mean((a - b)**2), rand(256, 32768), rand(256, 32768)), 95: lambda: cross_entropy(1024, 4096),
    96: lambda: pair(F.smooth_l1_loss, rand(256, 32768), rand(256, 32768), f="huber"), 97: lambda: attention(1, 2, 512, 1024),
    98: lambda: divergence(128, 16384), 99: lambda: triplet(256, 8192), 100: lambda: hinge(256, 32768),
}


# ---- level 2: chains of test/library/kernelbench.py ----
def extreme(f, pointwise):
    def of_one_or_two(x, y=None, axis=None, keep=None, where=None):
        return f(x, 1, keepdim=True)[0] if y is None else pointwise(x, torch.as_tensor(y))
    return of_one_or_two


ACTIVATIONS = types.SimpleNamespace(relu=torch.relu, leaky_relu=F.leaky_relu, silu=F.silu, gelu=F.gelu, softplus=F.softplus, mish=F.mish,
                                    hard_swish=F.hardswish)
WORDS = {"activation": ACTIVATIONS, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "clamp": torch.clamp, "true": True, "here": None,
         "min": extreme(torch.min, torch.minimum), "max": extreme(torch.max, torch.maximum), "expand": lambda x, _axis: x.unsqueeze(1),
         "sum": lambda x, axis, keep, where: torch.sum(x, 1, keepdim=True),
         "softmax": types.SimpleNamespace(softmax=lambda u, _axis: torch.softmax(u, 1), log_sum_exp=lambda u, _axis: torch.logsumexp(u, 1))}


class Torch:
    """The steps of a chain, op by op."""

    def array(self, x):
        return torch.from_numpy(x)

    def value(self, text, b, a=None):
        return value(WORDS, text, torch.from_numpy(b), a)

    def linear(self, w, bias):
        w, bias = torch.from_numpy(w), torch.from_numpy(bias)
        return lambda v: F.linear(v, w, bias)

    def conv(self, w, bias, stride, pad, more, transposed, shape):
        dims = len(shape)
        filters = torch.from_numpy(np.ascontiguousarray(w.transpose(4, 3, 0, 1, 2))).reshape(*w.shape[:2:-1], *w.shape[3 - dims:3])
        f, b = ((F.conv_transpose2d, F.conv_transpose3d) if transposed else (F.conv2d, F.conv3d))[dims - 2], torch.from_numpy(bias)
        return lambda v: f(v, filters, b, stride, pad, *((more, ) if transposed else ()))

    def norm(self, kind, groups, w, bias):
        w, b = torch.from_numpy(w), torch.from_numpy(bias)
        return {"batch": lambda v: F.batch_norm(v, None, None, w, b, True), "instance": lambda v: F.instance_norm(v, weight=w, bias=b),
                "group": lambda v: F.group_norm(v, groups, w, b)}.get(kind, lambda v: F.layer_norm(v, v.shape[-1:], w, b))

    def pool(self, kind, size):
        dims = len(size)
        f = ((F.max_pool1d, F.max_pool2d, F.max_pool3d) if kind == "max" else (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d))[dims - 1]
        return lambda v: f(v, size)

    def reduce(self, f, axes, keep):
        return {"mean": lambda v: torch.mean(v, axes, keepdim=keep), "sum": lambda v: torch.sum(v, axes, keepdim=keep),
                "greatest": lambda v: torch.amax(v, axes, keepdim=keep), "least": lambda v: torch.amin(v, axes, keepdim=keep),
                "log sum exp": lambda v: torch.logsumexp(v, axes, keepdim=keep)}[f]

    def softmax(self, n):
        return lambda v: torch.softmax(v.view(-1, n), 1).view(v.shape)


LINEAR = {"x": (256, 2048), "outputs": (2048, ), "BM": 128, "BN": 128}
SMALL_VOLUME = {"x": (4, 3, 16, 32, 32), "outputs": (16, )}


def image(channels, outputs, **more):
    return {"x": (1, channels, 64, 64), "outputs": (outputs, ), **more}


def volumes(*shape, outputs, **more):
    return {"x": shape, "outputs": (outputs, ), **more}


SECOND = {
    **{n: LINEAR for n in (9, 12, 14, 18, 22, 28, 29, 40, 51, 53, 56, 59, 63, 64, 66, 68, 70, 76, 80, 81, 84, 86, 95, 97, 99)},
    **{n: {**LINEAR, "x": (2048, 1024), "outputs": (1024, )} for n in (33, 39, 41)},
    **{n: {**LINEAR, "groups": 2048 // width} for n, width in {30: 512, 62: 16, 75: 16, 88: 32, 94: 32}.items()},
    37: {**LINEAR, "x": (1024, 1024), "groups": 2048 // 64}, 45: {**LINEAR, "x": (1024, 2048), "outputs": (1024, 1024)},
    55: {**LINEAR, "pool": 2}, 98: {**LINEAR, "pool": 16},
    **{n: image(c, 128 if c == 64 else 64, **m) for n, c, m in (
        (1, 64, {}), (4, 64, {}), (17, 64, {}), (25, 16, {}), (31, 64, {}), (32, 64, {}), (35, 64, {}), (46, 64, {}), (52, 64, {}), (57, 8, {}),
        (65, 8, {"pool": 4}), (67, 8, {}), (69, 8, {}), (71, 8, {}), (73, 8, {}), (82, 8, {"pool": 4}), (85, 8, {"groups": 16, "pool": 4}),
        (87, 8, {}), (92, 8, {"groups": 16}))},
    21: {"x": (1, 8, 128, 128), "outputs": (32, ), "groups": 8}, 54: image(64, 64),
    **{n: image(64, 64, more=1) for n in (2, 16)}, 5: image(64, 64, size=4), 10: image(64, 64, stride=1),
    11: {"x": (2, 64, 32, 32), "outputs": (128, ), "size": 5, "stride": 1, "groups": 8}, 19: image(64, 64, stride=1, pad=0, groups=8),
    36: image(64, 128, more=1), 42: image(64, 128, stride=1, pad=0), 44: image(64, 128, more=1),
    91: {"x": (1, 64, 32, 32), "outputs": (128, ), "size": 4, "more": 1}, 93: {"x": (1, 64, 32, 32), "outputs": (128, ), "size": 4, "pad": 0},
    **{n: volumes(4, 3, 12, 32, 32, outputs=24, groups=8) for n in (23, 24)},
    **{n: SMALL_VOLUME for n in (6, 50, 58, 79, 89, 96)}, 60: {**SMALL_VOLUME, "groups": 4}, 83: {**SMALL_VOLUME, "groups": 8},
    27: {**SMALL_VOLUME, "size": 4, "groups": 4}, 72: {**SMALL_VOLUME, "x": (1, 3, 32, 32, 32)},
    3: volumes(1, 32, 8, 32, 32, outputs=64, more=1), 7: volumes(1, 8, 16, 32, 32, outputs=32), 8: volumes(2, 8, 16, 32, 32, outputs=16),
    13: volumes(1, 16, 16, 32, 32, outputs=64, stride=1), 15: volumes(2, 16, 16, 32, 32, outputs=32),
    **{n: volumes(1, 32, 8, 16, 16, outputs=64, more=1) for n in (20, 26, 49)}, 34: volumes(1, 32, 8, 16, 32, outputs=64, size=4),
    38: volumes(2, 32, 16, 32, 32, outputs=64, more=1), 43: volumes(1, 32, 8, 32, 32, outputs=64, pad=1), 47: volumes(1, 32, 8, 32, 32, outputs=64),
    48: volumes(1, 3, 16, 64, 64, outputs=16), 61: volumes(1, 64, 8, 16, 16, outputs=128, stride=1, pad=0, groups=8),
    74: volumes(1, 16, 16, 32, 32, outputs=32, more=1), 77: volumes(1, 64, 8, 16, 16, outputs=128, size=5, stride=1, pad=0),
    78: volumes(1, 32, 8, 16, 16, outputs=64, size=5, pad=2), 90: volumes(1, 8, 16, 32, 32, outputs=64),
    100: volumes(1, 64, 6, 12, 12, outputs=128),
}


class ChainProblem:
    """A chain as a Problem."""
    tolerance = 1e-4

    def __init__(self, number):
        with tempfile.TemporaryDirectory() as folder:
            self.chain = Chain(ROOT, folder, number, Torch(), **SECOND[number])
            for step in LEVEL_2[number]:
                self.chain.step(*step)
        self.theirs, self.run = self.chain.theirs, self.chain.run
        self.names = [re.match(r"`?([\w.]+)", said(step))[1] for step in LEVEL_2[number]]

    @property
    def y(self):
        return torch.from_numpy(self.chain.got)


# ---- measuring ----
def difference(p):
    """Of the results, by the greatest value."""
    want = p.theirs()
    p.run()
    got, want = p.y.reshape(-1).double(), want.reshape(-1).double()
    if p.y.dtype == torch.int64:
        return float((got != want).sum())
    return float((got - want).abs().max() / max(want.abs().max(), 1e-30))


def milliseconds(f, seconds):
    """Of a run, by as many as fill the time."""
    start, n = time.process_time(), 0
    while True:
        f()
        n += 1
        spent = time.process_time() - start
        if spent >= seconds:
            return 1e3 * spent / n


def compare(level, number, rounds, seconds):
    torch.manual_seed(number)
    p = PROBLEMS[number]() if level == 1 else ChainProblem(number)
    missing = [n for n in p.names if level == 1 and n not in LEVEL_1[number]]
    if missing:
        raise SystemExit(f"{number}: KERNELBENCH.md does not name {missing}")
    error = difference(p)
    if not error <= p.tolerance:
        raise SystemExit(f"{number}: results differ by {error:.1e}")
    times = {p.theirs: [], p.run: []}
    for i in range(rounds):
        for f in list(times)[::1 if i % 2 else -1]:
            times[f].append(milliseconds(f, seconds))
    theirs, ours = (statistics.median(times[f]) for f in times)
    return {"level": level, "problem": number, "kernels": p.names, "torch": theirs, "tilec": ours, "ratio": ours / theirs, "error": error}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("-k", default="")
    ap.add_argument("--level", type=int, default=1)
    ap.add_argument("--rounds", type=int, default=9)
    ap.add_argument("--seconds", type=float, default=0.03)
    ap.add_argument("--slow", type=float, default=1.1)
    ap.add_argument("--json")
    o = ap.parse_args()
    rows = []
    print("| problem | kernels | torch ms | tilec ms | tilec's time over torch's |\n| --- | --- | --- | --- | --- |", flush=True)
    for n in map(int, o.k.split(",")) if o.k else sorted(PROBLEMS if o.level == 1 else SECOND):
        r = compare(o.level, n, o.rounds, o.seconds)
        rows.append(r)
        names = ", ".join(dict.fromkeys(r["kernels"]))
        print(f"| {n} | {names} | {r['torch']:.2f} | {r['tilec']:.2f} | {r['ratio']:.2f} |", flush=True)
    mean = math.exp(statistics.fmean(math.log(r["ratio"]) for r in rows))
    slow = sorted((r for r in rows if r["ratio"] > o.slow), key=lambda r: -r["ratio"])
    print(f"\n{len(rows)} problems, geometric mean {mean:.2f}; over {o.slow}: {len(slow)}: " + ", ".join(f"{r['problem']} ({r['ratio']:.2f})" for r in slow))
    if o.json:
        with open(o.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
