"""The steps of a chain of KernelBench in NumPy, f64: each method gives the function of an array."""
import math
import os
import sys
import types

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
from kernelbench_chain import EPS, three, value, volume  # noqa: E402
from rows_kernels_conv3d import backward, forward  # noqa: E402
from rows_kernels_volumes import pooled  # noqa: E402


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def softplus(v):
    return np.logaddexp(0, v)


def log_sum_exp(u):
    return np.log(np.exp(u).sum(1))


def extreme(f, pointwise):
    def of_one_or_two(x, y=None, axis=None, keep=None, where=None):
        return f(x, axis=1, keepdims=True) if y is None else pointwise(x, y)
    return of_one_or_two


ACTIVATIONS = types.SimpleNamespace(
    relu=lambda v: np.maximum(v, 0), leaky_relu=lambda v, s: np.where(v < 0, s * v, v), silu=lambda v: v * sigmoid(v),
    gelu=lambda v: v * (1 + np.vectorize(math.erf, otypes=[float])(v / math.sqrt(2))) / 2, softplus=softplus,
    mish=lambda v: v * np.tanh(softplus(v)), hard_swish=lambda v: v * np.clip(v + 3, 0, 6) / 6)
WORDS = {
    "activation": ACTIVATIONS, "sigmoid": sigmoid, "tanh": np.tanh, "clamp": np.clip, "min": extreme(np.min, np.minimum),
    "max": extreme(np.max, np.maximum), "expand": lambda x, _axis: np.expand_dims(x, 1), "true": True, "here": None,
    "sum": lambda x, axis, keep, where: x.sum(1, keepdims=True),
    "softmax": types.SimpleNamespace(log_sum_exp=lambda u, _axis: log_sum_exp(u), softmax=lambda u, _axis: np.exp(u) / np.exp(u).sum(1, keepdims=True)),
}


class NumPy:
    def array(self, x):
        return x.astype(float)

    def value(self, text, b, a=None):
        return value(WORDS, text, b.astype(float), a)

    def linear(self, w, bias):
        return lambda v: v @ w.T.astype(float) + bias

    def conv(self, w, bias, stride, pad, _more, transposed, shape):
        """Filters [D, H, W, C, K] or, transposed, [D, H, W, K, C]; shape: of the result, without batch and channels."""
        window, size = (*three(pad, 0), 1, 1, 1), three(shape, 1)

        def f(v):
            x, y = volume(v), (v.shape[0], bias.size, *size)
            sums = backward(y, w.astype(float), x, three(stride, 1), window, 1)[0] if transposed else forward(x, w.astype(float), y, three(stride, 1), window, 1)
            return sums.reshape(*y[:2], *shape) + bias.reshape(1, -1, *(1, ) * len(shape))
        return f

    def norm(self, kind, groups, w, bias):
        def f(v):
            n, c = v.shape[:2]
            x = v if "layer" in kind else v.reshape(n, groups, c // groups, -1) if kind == "group" else v.reshape(n, c, -1)
            along = {"batch": (0, 2), "instance": (2, ), "group": (2, 3)}.get(kind, (x.ndim - 1, ))
            out = ((x - x.mean(along, keepdims=True)) / np.sqrt(x.var(along, keepdims=True) + EPS)).reshape(v.shape)
            full = (-1, ) if "layer" in kind else (1, -1, *(1, ) * (v.ndim - 2))
            return out * w.reshape(full) + bias.reshape(full)
        return f

    def pool(self, kind, size):
        def f(v):
            x = v[:, None, None, None] if v.ndim == 2 else volume(v)
            windows = three(size, 1)
            y = (*x.shape[:2], *(n // s for n, s in zip(x.shape[2:], windows)))
            most, _, total, count = pooled(x, y, windows, windows, (0, 0, 0, 1, 1, 1))
            return (most if kind == "max" else total / count).reshape(*v.shape[:v.ndim - len(size)], *y[5 - len(size):])
        return f

    def reduce(self, f, axes, keep):
        if f == "log sum exp":
            return lambda v: log_sum_exp(v)[:, None]
        of = {"mean": np.mean, "sum": np.sum, "greatest": np.max, "least": np.min}[f]
        return lambda v: of(v, axis=axes, keepdims=keep)

    def softmax(self, n):
        """Of rows of n elements."""
        def f(v):
            rows = v.reshape(-1, n)
            powers = np.exp(rows - rows.max(1, keepdims=True))
            return (powers / powers.sum(1, keepdims=True)).reshape(v.shape)
        return f
