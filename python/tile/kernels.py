"""tile.kernels: ready functions of arrays, compiled ahead of time (libtilekernels, tile_kernels.h): products, softmax, norms, attention,
rotary positions.

    c = tile.kernels.gemm(a, b.T, bias=bias, activation="gelu")
    p = tile.kernels.softmax(c)

Arrays are those that kernels take: of NumPy, DLPack and torch, tile.Array, tile.view(x, "bf16"); nothing is copied. `out` is the array for
the result, which the function returns; None: a new array of NumPy, if the first argument is one, or a tensor of torch; what else is returned
(places, losses, pivots) is of NumPy. `device` is a tile.Device or a name,
`stream` a tile.Stream of it; a call returns when it is done, or with a stream at once, as calls of kernels do.
"""
from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections.abc import MutableMapping, Sequence
from ctypes import Structure, byref, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p, sizeof
from typing import Any, Callable, TypeVar

import numpy

from . import arrays, elements, native
from .devices import Device, Stream, device_of
from .errors import ArgumentError

LIBRARY = "libtilekernels.so.0.1"
U8 = elements.NUMBERS["u8"]
BLOCKS = ("q8_0", "q4_0")
REDUCTIONS = ("sum", "mean", "norm1", "norm2", "max", "min", "argmax", "argmin")
SCANS = ("sum", "product", "max", "min")
ACTIVATIONS = {None: 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "silu": 4}
S = TypeVar("S", bound=Structure)
I8, I32, F32, F64 = (elements.NUMBERS[name] for name in ("i8", "i32", "f32", "f64"))


class GemmOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("bias", c_void_p), ("activation", c_int)]


class NormOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("mean", c_void_p), ("rstd", c_void_p), ("weight_offset", c_double)]


class AttentionOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("scale", c_double), ("causal", c_int), ("window", c_int64), ("value_size", c_int64),
                ("lse", c_void_p), ("q_strides", c_int64 * 3), ("k_strides", c_int64 * 3), ("v_strides", c_int64 * 3),
                ("o_strides", c_int64 * 3), ("mask", c_void_p), ("mask_strides", c_int64 * 3), ("do_strides", c_int64 * 3),
                ("dq_strides", c_int64 * 3), ("dk_strides", c_int64 * 3), ("dv_strides", c_int64 * 3),
                ("dropout", c_double), ("seed", c_uint64)]


class RopeOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("place", c_void_p), ("rotated", c_int64), ("backward", c_int), ("x_strides", c_int64 * 2),
                ("y_strides", c_int64 * 2)]


class CrossEntropyOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("smoothing", c_double), ("z", c_double), ("ignore", c_int32)]


class ReduceOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("x_strides", c_int64 * 2)]


class ScanOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("exclusive", c_int)]


class SortOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("descending", c_int)]


class GemmBlocksOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("round_a", c_int)]


class SgdOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("momentum", c_double), ("decay", c_double), ("gradient_scale", c_double), ("nesterov", c_int)]


class AdamOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("beta1", c_double), ("beta2", c_double), ("eps", c_double), ("decay", c_double),
                ("gradient_scale", c_double), ("coupled", c_int), ("master", c_void_p)]


class FftOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("inverse", c_int)]


class WindowOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("stride", c_int64 * 2), ("pad", c_int64 * 2), ("dilation", c_int64 * 2), ("count_pad", c_int),
                ("layout", c_int), ("groups", c_int64), ("workspace", c_void_p)]


def signature(letters: str) -> list[Any]:
    """h: a handle or address, i: an int, n: an int64, d: a double."""
    return [{"h": c_void_p, "i": c_int, "n": c_int64, "d": c_double}[letter] for letter in letters]


FUNCTIONS = {
    "tile_kernels_open": "hh", "tile_gemm_batched": "hhiiinnndhnnhnndhnnnh", "tile_softmax": "hhinnhnhn", "tile_log_softmax": "hhinnhnhn",
    "tile_layer_norm": "hhinnhnhhdhnh", "tile_rms_norm": "hhinnhnhdhnh", "tile_attention": "hhinnnnnnhhhhh", "tile_attention_backward": "hhinnnnnnhhhhhhhhhh", "tile_rope": "hhinnnhhhnhh",
    "tile_cross_entropy": "hhinnhnhhhh", "tile_cross_entropy_backward": "hhinnhnhhhhnh",
    "tile_reduce": "hhiinnnhhh", "tile_scan": "hhiinnhnhnh", "tile_layer_norm_backward": "hhinnhnhnhhhhnhhh", "tile_rms_norm_backward": "hhinnhnhnhdhhnhh",
    "tile_sort": "hhinnhnhnhhh", "tile_top_k": "hhinnnhnhh", "tile_gemm_blocks": "hhiinnnhhhh", "tile_sgd": "hhinhhhhdh",
    "tile_adam": "hhinhhhhhndh", "tile_fft_table": "hhinh", "tile_fft": "hhinnhhhhh",
    "tile_fft_2d": "hhinnnhhhhhh", "tile_rfft_table": "hhinh", "tile_rfft": "hhinnhhhh", "tile_irfft": "hhinnhhhh", "tile_conv2d": "hhinnnnnnnhhhhh",
    "tile_max_pool2d": "hhinnnnnnhhhh", "tile_avg_pool2d": "hhinnnnnnhhh",
    "tile_max_pool2d_backward": "hhinnnnnnhhhh", "tile_avg_pool2d_backward": "hhinnnnnnhhh",
    "tile_conv2d_backward_data": "hhinnnnnnnhhhh", "tile_conv2d_backward_weights": "hhinnnnnnnhhhhh",
    "tile_axpy": "hhindhnhn", "tile_scal": "hhindhn", "tile_copy": "hhinhnhn", "tile_swap": "hhinhnhn", "tile_dot": "hhinhnhnh",
    "tile_asum": "hhinhnh", "tile_nrm2": "hhinhnh", "tile_iamax": "hhinhnh", "tile_trmm_batched": "hhiiiiinndhnnhnnn", "tile_trsv": "hhiiiinhnhn",
    "tile_trmv": "hhiiiinhnhn", "tile_syrk": "hhiiinndhndhn", "tile_symm": "hhiiinndhnhndhn", "tile_symv": "hhiindhnhndhn",
    "tile_trsm_batched": "hhiiiiinndhnnhnnn", "tile_potrf_batched": "hhiinhnnhn", "tile_potrs_batched": "hhiinnhnnhnnn",
    "tile_getrf_batched": "hhinnhnnhhn", "tile_getrs_batched": "hhiinnhnnhhnnn",
    "tile_geqrf_batched": "hhinnhnnhhn", "tile_ormqr_batched": "hhiinnnhnnhhnnhn",
}
SIZES = {"tile_attention_backward_workspace": "nnn", "tile_norm_backward_workspace": "nn", "tile_sort_workspace": "in",
         "tile_fft_workspace": "inn", "tile_fft_2d_workspace": "innn", "tile_rfft_workspace": "inn",
         "tile_geqrf_workspace": "innn", "tile_ormqr_workspace": "innnn", "tile_conv2d_workspace": "innnnnnnh",
         "tile_conv2d_backward_data_workspace": "innnnnnnh", "tile_conv2d_backward_weights_workspace": "innnnnnnh"}


def load() -> ctypes.CDLL:
    """The library beside libtilec.so, from which it takes the runtime."""
    runtime = native.library_path()
    beside = os.path.join(os.path.dirname(runtime), LIBRARY)
    path = beside if os.path.dirname(runtime) and os.path.exists(beside) else LIBRARY
    try:
        ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)  # loaded already: now its names are seen
        library = ctypes.CDLL(path)
        for name, letters in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = c_int, signature(letters)
        for name, letters in SIZES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = c_size_t, signature(letters)
        library.tile_kernels_close.restype, library.tile_kernels_close.argtypes = None, [c_void_p]
    except (OSError, AttributeError) as e:
        raise ImportError(f"the library of tile.kernels cannot be used: {e} (pip install 'tile[kernels]' brings it)") from e
    return library


lib = load()
opened: MutableMapping[Device, int] = weakref.WeakKeyDictionary()  # tile_kernels handles by device


def handle_of(device: Device) -> int:
    if device not in opened:
        opened[device] = native.made(lib.tile_kernels_open, device.handle)
        weakref.finalize(device, lib.tile_kernels_close, opened[device])
    return opened[device]


# ---- arguments ----

def wrong(text: str) -> ArgumentError:
    return ArgumentError(text, arrays.WRONG)


def operand(value: Any, name: str, axes: Sequence[int], code: int | None = None, writes: bool = False) -> arrays.Memory:
    """The Memory of an argument, with strides; one of `axes` axes, and of the type with that code."""
    try:
        m = arrays.memory_of(value, writes)
    except (ArgumentError, TypeError) as e:
        raise type(e)(f"{name}: {e}") from None
    if m is None:
        raise TypeError(f"{name} is an array, not {type(value).__name__}")
    if len(m.shape) not in axes:
        raise wrong(f"{name} has {len(m.shape)} axes, but should have {' or '.join(map(str, axes))}")
    if m.code == elements.ANY_BYTE and code == U8:
        m.code = U8
    if m.code < 0:
        raise wrong(f'the elements of {name} are words without a type: tile.view({name}, "bf16") gives them one')
    if code is not None and m.code != code:
        raise wrong(f"{name} is of {elements.NAMES[m.code]}, but should be of {elements.NAMES[code]}")
    if m.strides is None:
        m.strides = elements.dense(m.shape)
    return m


def vector(value: Any, name: str, code: int, length: int) -> tuple[int | None, arrays.Memory | None]:
    """The address of a dense vector, with what keeps it; or None."""
    if value is None:
        return None, None
    m = operand(value, name, (1,), code)
    if m.shape != (length,) or (length > 1 and m.strides != (1,)):
        raise wrong(f"{name} should have {length} elements side by side")
    return m.address, m


def new(like: Any, shape: Sequence[int], integers: bool) -> Any:
    """An array of the kind of `like`, of its type or of i32."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return like.new_empty(tuple(shape), dtype=torch.int32 if integers else like.dtype)
    if not isinstance(like, numpy.ndarray):
        raise TypeError("out is missing: results are made for arrays of NumPy and tensors of torch only")
    return numpy.empty(shape, numpy.int32 if integers else like.dtype)


def result(out: Any, like: Any, shape: Sequence[int], name: str, code: int | None) -> tuple[Any, arrays.Memory]:
    """`out`, or a new array for the result."""
    if out is None:
        out = new(like, shape, code == I32)
    m = operand(out, "out", (len(shape),), code, True)
    if m.shape != tuple(shape):
        raise wrong(f"{name} is of {tuple(shape)}, but out of {m.shape}")
    if not m.writable:
        raise wrong("out is read-only")
    return out, m


def strides_of(m: arrays.Memory) -> tuple[int, ...]:
    if m.strides is not None and all(m.shape):
        return m.strides
    return elements.dense(tuple(n or 1 for n in m.shape))  # NumPy's strides of no elements are 0


def rows_of(m: arrays.Memory, name: str) -> tuple[int, bool]:
    """(leading dimension, transposed) of the last two axes."""
    rows, columns = m.shape[-2:]
    down, across = strides_of(m)[-2:]
    if across == 1 or columns <= 1:
        return (down if rows > 1 else max(columns, 1)), False
    if down == 1 or rows <= 1:
        return (across if columns > 1 else max(rows, 1)), True
    raise wrong(f"{name} has no axis whose elements lie side by side")


def flat_rows(m: arrays.Memory, name: str) -> tuple[int, int, int]:
    """(number of rows, elements of one, distance) of an array whose leading axes count rows."""
    *lead, n = m.shape
    *strides, across = strides_of(m)
    if n > 1 and across != 1:
        raise wrong(f"the rows of {name} do not lie side by side")
    step, count = max(n, 1), 1
    for extent, stride in reversed(list(zip(lead, strides))):
        if extent > 1:
            if count == 1:
                step = stride
            elif stride != step * count:
                raise wrong(f"the rows of {name} are not equally far from each other")
        count *= extent
    return count, n, step


def extent_of(shape: Sequence[int], strides: Sequence[int], name: str) -> tuple[int, int]:
    """(elements, distance) of axes that are one axis: each is as far apart as what is behind it is long."""
    count, step = 1, 0
    if not all(shape):
        return 0, 1
    for extent, stride in reversed(list(zip(shape, strides))):
        if extent != 1:
            step = step or stride
            if stride != step * count:
                raise wrong(f"the elements of {name} are not equally far from each other")
        count *= extent
    return count, step


def axis_of(m: arrays.Memory, axis: int, name: str) -> tuple[tuple[int, int, int], tuple[int, int]]:
    """((M, N, L), (distances of M and N)) of an array along an axis: what is before it, it, and what is behind it, side by side."""
    rank = len(m.shape)
    if not -rank <= axis < rank:
        raise wrong(f"axis is {axis}, but {name} has {rank} axes")
    axis %= rank
    strides = strides_of(m)
    before, step_m = extent_of(m.shape[:axis], strides[:axis], name)
    behind, step_l = extent_of(m.shape[axis + 1:], strides[axis + 1:], name)
    if behind > 1 and step_l != 1:
        raise wrong(f"the elements of {name} behind axis {axis} do not lie side by side")
    step_n = strides[axis] if m.shape[axis] > 1 else 0
    if step_m == step_n == 0 and before * m.shape[axis] > 1:
        raise wrong(f"{name} has one element for many")
    return (before, m.shape[axis], behind), (step_m, step_n)


def number_in(names: Sequence[str], value: str, what: str) -> int:
    if value not in names:
        raise wrong(f"{what} is {value!r}, but should be one of {', '.join(map(repr, names))}")
    return names.index(value)


def launched(function: Any, device: Device | str | None, stream: Stream | None, keep: Sequence[Any], *args: Any) -> None:
    """Calls a function of the library on a stream and waits as a call of a kernel does."""
    device = device_of(device)
    if stream is not None and not isinstance(stream, Stream):
        raise TypeError(f"stream is a tile.Stream, not {type(stream).__name__}")
    stream = stream or device.stream
    with stream.lock:
        native.check(function(handle_of(device), stream.handle, *args))
        if stream is device.stream and device.host_memory:
            stream.synchronize()
        else:
            stream.keep(keep)


def room(size: int) -> tuple[Any, int]:
    """A workspace of so many bytes, and its address; devices of host memory only."""
    space = numpy.empty(size // 8 + 1, numpy.int64)
    return space, space.ctypes.data


def lines(size: int) -> tuple[Any, int | None]:
    """The same at a multiple of 64, or nothing."""
    if not size:
        return None, None
    space = numpy.empty(size + 63, numpy.uint8)
    return space, (space.ctypes.data + 63) // 64 * 64


def sized(struct: type[S], **fields: Any) -> S:
    s = struct(**fields)
    setattr(s, "struct_size", sizeof(struct))
    return s


# ---- functions ----

def gemm(a: Any, b: Any, out: Any = None, *, alpha: float = 1.0, beta: float = 0.0, bias: Any = None, activation: str | None = None,
         device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """activation(alpha a b + beta out + bias) of matrices, or of batches with a first axis more, which a or b may lack; a.T and other
    transposed views are taken as they are. bias is one number a column; activation None, "relu", "gelu", "gelu_tanh" or "silu".
    f32, f16, bf16 and f64, whose results are of the same type, and i8, whose results are i32."""
    x = operand(a, "a", (2, 3))
    y = operand(b, "b", (2, 3), x.code)
    z = {m.shape[0] for m in (x, y) if len(m.shape) == 3}
    (m, k), (k_of_b, n) = x.shape[-2:], y.shape[-2:]
    if k != k_of_b or len(z) > 1:
        raise wrong(f"the shapes {x.shape} and {y.shape} do not fit for a product")
    if activation not in ACTIVATIONS:
        raise wrong(f"activation is {activation!r}, but should be one of {', '.join(map(repr, ACTIVATIONS))}")
    if out is None and beta:
        raise wrong("beta is given without out")
    batch = z.pop() if z else 1
    code = I32 if x.code == I8 else None
    out, c = result(out, a, (batch, m, n) if len(x.shape) + len(y.shape) > 4 else (m, n), "the product", code)
    if code is None and c.code != x.code:
        raise wrong(f"out is of {elements.NAMES[c.code]}, but should be of {elements.NAMES[x.code]}")
    (lda, ta), (ldb, tb), (ldc, tc) = rows_of(x, "a"), rows_of(y, "b"), rows_of(c, "out")
    if tc:
        raise wrong("the rows of out do not lie side by side")
    strides = [strides_of(v)[0] if len(v.shape) == 3 else 0 for v in (x, y, c)]
    address, kept = vector(bias, "bias", c.code, n)
    options = sized(GemmOptions, bias=address, activation=ACTIVATIONS[activation])
    launched(lib.tile_gemm_batched, device, stream, [x, y, c, kept], x.code, ta, tb, m, n, k, alpha, x.address, lda, strides[0], y.address, ldb,
             strides[1], beta, c.address, ldc, strides[2], batch, byref(options))
    return out


def by_rows(function: Any, x: Any, out: Any, device: Device | str | None, stream: Stream | None,
            call: Callable[[arrays.Memory, int, int], tuple[Sequence[Any], Sequence[Any], Sequence[Any]]]) -> Any:
    """A function of rows: call(m, to) gives its arguments behind the matrix's."""
    m = operand(x, "x", range(1, native.MAX_RANK + 1))
    out, to = result(out, x, m.shape, "x", m.code)
    (count, n, ldx), (_, _, ldy) = flat_rows(m, "x"), flat_rows(to, "out")
    between, behind, keep = call(m, count, n)
    launched(function, device, stream, [m, to, *keep], m.code, count, n, m.address, ldx, *between, to.address, ldy, *behind)
    return out


def softmax(x: Any, out: Any = None, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """e^x / sum(e^x) along the last axis. out may be x. f32, f16, bf16."""
    return by_rows(lib.tile_softmax, x, out, device, stream, lambda m, count, n: ((), (), ()))


def log_softmax(x: Any, out: Any = None, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """x - ln(sum(e^x)) along the last axis. out may be x. f32, f16, bf16."""
    return by_rows(lib.tile_log_softmax, x, out, device, stream, lambda m, count, n: ((), (), ()))


def layer_norm(x: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, out: Any = None, *, mean: Any = None, rstd: Any = None,
               device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """(x - mean) / sqrt(variance + eps) weight + bias along the last axis. mean and rstd: vectors of f32, one element a row, for what was
    computed. out may be x. f32, f16, bf16."""
    def call(m: arrays.Memory, count: int, n: int) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        w, b = vector(weight, "weight", m.code, n), vector(bias, "bias", m.code, n)
        kept = vector(mean, "mean", F32, count), vector(rstd, "rstd", F32, count)
        options = sized(NormOptions, mean=kept[0][0], rstd=kept[1][0])
        return (w[0], b[0], eps), (byref(options),), (w, b, kept)
    return by_rows(lib.tile_layer_norm, x, out, device, stream, call)


def rms_norm(x: Any, weight: Any = None, eps: float = 1e-5, out: Any = None, *, offset: float = 0.0, rstd: Any = None,
             device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """x / sqrt(mean(x^2) + eps) (weight + offset) along the last axis; offset is 1 in Gemma. rstd as in layer_norm. f32, f16, bf16."""
    def call(m: arrays.Memory, count: int, n: int) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        w, kept = vector(weight, "weight", m.code, n), vector(rstd, "rstd", F32, count)
        options = sized(NormOptions, rstd=kept[0], weight_offset=offset)
        return (w[0], eps), (byref(options),), (w, kept)
    return by_rows(lib.tile_rms_norm, x, out, device, stream, call)


def cross_entropy(x: Any, labels: Any, *, smoothing: float = 0.0, z: float = 0.0, ignore: int = -100, lse: Any = None,
                  device: Device | str | None = None, stream: Stream | None = None) -> numpy.ndarray[Any, Any]:
    """A loss for each row of logits x [M, V]: lse - (1 - smoothing) x[label] - smoothing mean(x) + z lse^2 with lse = ln(sum(e^x)), which goes to
    the array `lse` if there is one. labels: i32; the loss of `ignore` is 0. f32, f16, bf16; losses are arrays of NumPy of f32."""
    m = operand(x, "x", (2,))
    count, n, ldx = flat_rows(m, "x")
    loss, lse = numpy.empty(count, numpy.float32), numpy.empty(count, numpy.float32) if lse is None else lse
    label, first, sums = vector(labels, "labels", I32, count), vector(loss, "loss", F32, count), vector(lse, "lse", F32, count)
    options = sized(CrossEntropyOptions, smoothing=smoothing, z=z, ignore=ignore)
    launched(lib.tile_cross_entropy, device, stream, [m, label, first, sums], m.code, count, n, m.address, ldx, label[0], first[0], sums[0],
             byref(options))
    return loss


def cross_entropy_backward(x: Any, labels: Any, lse: Any, dloss: Any, out: Any = None, *, smoothing: float = 0.0, z: float = 0.0,
                           ignore: int = -100, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The derivative of cross_entropy by x, times dloss; lse is the array from there. out may be x."""
    m = operand(x, "x", (2,))
    out, to = result(out, x, m.shape, "x", m.code)
    (count, n, ldx), (_, _, ldy) = flat_rows(m, "x"), flat_rows(to, "out")
    vectors = [vector(v, name, code, count) for v, name, code in ((labels, "labels", I32), (lse, "lse", F32), (dloss, "dloss", F32))]
    options = sized(CrossEntropyOptions, smoothing=smoothing, z=z, ignore=ignore)
    launched(lib.tile_cross_entropy_backward, device, stream, [m, to, vectors], m.code, count, n, m.address, ldx,
             *(address for address, _ in vectors), to.address, ldy, byref(options))
    return out


def heads_of(m: arrays.Memory, name: str) -> Any:
    """The strides of batch, head and row of [batch, rows, heads, elements]."""
    batch, row, head, element = strides_of(m)
    if m.shape[3] > 1 and element != 1:
        raise wrong(f"the elements of a head of {name} do not lie side by side")
    return (c_int64 * 3)(batch, head, row)


def mask_of(mask: Any, q: arrays.Memory, N: int) -> tuple[arrays.Memory | None, dict[str, Any]]:
    """The mask of attention as an option: [M, N], or with axes before these that count heads, and batches and heads; extents of 1 are for all."""
    if mask is None:
        return None, {}
    (B, M, H, _), m = q.shape, operand(mask, "mask", (2, 3, 4), q.code)
    shape, strides = (1, 1, *m.shape)[-4:], (0, 0, *strides_of(m))[-4:]
    if any(extent not in (1, want) for extent, want in zip(shape[:3], (B, H, M))) or shape[3] != N:
        raise wrong(f"mask is of {m.shape}, but the scores of {(B, H, M, N)}")
    if N > 1 and strides[3] != 1:
        raise wrong("the rows of mask do not lie side by side")
    steps = [stride if extent > 1 else 0 for extent, stride in zip(shape[:3], strides)]
    return m, {"mask": m.address, "mask_strides": (c_int64 * 3)(*steps)}


def numbers_of_rows(value: Any, name: str, q: arrays.Memory) -> arrays.Memory:
    B, M, H, _ = q.shape
    sums = operand(value, name, (3,), F32)
    if sums.shape != (B, H, M) or sums.strides != elements.dense(sums.shape):
        raise wrong(f"{name} should be dense, of {(B, H, M)}")
    return sums


def heads_that_fit(q: Any, k: Any, v: Any) -> tuple[arrays.Memory, arrays.Memory, arrays.Memory]:
    x = operand(q, "q", (4,))
    y, z = operand(k, "k", (4,), x.code), operand(v, "v", (4,), x.code)
    (B, _, _, D), (N, HK) = x.shape, y.shape[1:3]
    if y.shape != (B, N, HK, D) or z.shape[:3] != (B, N, HK):
        raise wrong(f"the shapes {x.shape}, {y.shape} and {z.shape} do not fit for attention")
    return x, y, z


def attention(q: Any, k: Any, v: Any, out: Any = None, *, scale: float | None = None, causal: bool = False, window: int | None = None,
              mask: Any = None, dropout: float = 0.0, seed: int = 0, lse: Any = None, device: Device | str | None = None,
              stream: Stream | None = None) -> Any:
    """softmax(scale q k^T + mask) v by heads: q [B, M, H, D], k [B, N, HK, D], v [B, N, HK, DV], H a multiple of HK; other orders of the axes by
    transposed views, `x.swapaxes(1, 2)`. scale: 1 / sqrt(D) if None. causal: query i sees the keys up to i + N - M; `window` of them.
    mask: [M, N] of q's type, or [H, M, N], [B, H, M, N] with 1 where it is the same for all; -inf: not seen; without causal.
    dropout: the chance of a probability to be 0 in place of its share of 1 - dropout; which ones, the seed (64 bits) says.
    lse: an array [B, H, M] of f32 for ln(sum(e^score)). f32, f16, bf16."""
    x, y, z = heads_that_fit(q, k, v)
    (B, M, H, D), (N, HK), DV = x.shape, y.shape[1:3], z.shape[3]
    out, o = result(out, q, (B, M, H, DV), "the result", x.code)
    sums = None if lse is None else numbers_of_rows(lse, "lse", x)
    added, with_mask = mask_of(mask, x, N)
    options = sized(AttentionOptions, scale=scale or 0.0, causal=causal, window=window or 0, value_size=DV, lse=sums and sums.address,
                    q_strides=heads_of(x, "q"), k_strides=heads_of(y, "k"), v_strides=heads_of(z, "v"), o_strides=heads_of(o, "out"),
                    dropout=dropout, seed=seed, **with_mask)
    launched(lib.tile_attention, device, stream, [x, y, z, o, sums, added], x.code, B, H, HK, M, N, D, x.address, y.address, z.address, o.address,
             byref(options))
    return out


def attention_backward(q: Any, k: Any, v: Any, o: Any, do: Any, lse: Any, *, scale: float | None = None, causal: bool = False,
                       window: int | None = None, mask: Any = None, dropout: float = 0.0, seed: int = 0, out: Any = (None, None, None),
                       device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """(dq, dk, dv), the gradients of attention by q, k and v from `do`, that by its result; o and lse are the arrays that attention gave, and the
    options those of its call. out: arrays for the three."""
    x, y, z = heads_that_fit(q, k, v)
    (B, M, H, D), (N, HK), DV = x.shape, y.shape[1:3], z.shape[3]
    w, g = operand(o, "o", (4,), x.code), operand(do, "do", (4,), x.code)
    if w.shape != (B, M, H, DV) or g.shape != w.shape:
        raise wrong(f"o is of {w.shape} and do of {g.shape}, but both should be of {(B, M, H, DV)}")
    made = [result(a, like, m.shape, name, x.code) for a, like, m, name in zip(out, (q, k, v), (x, y, z), ("dq", "dk", "dv"))]
    dq, dk, dv = (m for _, m in made)
    sums, (added, with_mask) = numbers_of_rows(lse, "lse", x), mask_of(mask, x, N)
    options = sized(AttentionOptions, scale=scale or 0.0, causal=causal, window=window or 0, value_size=DV, lse=sums.address,
                    q_strides=heads_of(x, "q"), k_strides=heads_of(y, "k"), v_strides=heads_of(z, "v"), o_strides=heads_of(w, "o"),
                    do_strides=heads_of(g, "do"), dq_strides=heads_of(dq, "dq"), dk_strides=heads_of(dk, "dk"), dv_strides=heads_of(dv, "dv"),
                    dropout=dropout, seed=seed, **with_mask)
    space, address = room(lib.tile_attention_backward_workspace(B, H, M))
    launched(lib.tile_attention_backward, device, stream, [x, y, z, w, g, dq, dk, dv, sums, added, space], x.code, B, H, HK, M, N, D, x.address,
             y.address, z.address, w.address, g.address, dq.address, dk.address, dv.address, address, byref(options))
    return tuple(a for a, _ in made)


def rope(x: Any, cosine: Any, sine: Any, out: Any = None, *, place: Any = None, rotated: int | None = None, backward: bool = False,
         device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """x [N, H, D] rotated by place: with I = rotated / 2, elements (a, b) = (i, i + I) of a head become (a cos - b sin, a sin + b cos), by the
    tables [P, I] of f32 at place[n] (i32; None: n) and i. rotated: D if None. out may be x. f32, f16, bf16."""
    m = operand(x, "x", (3,))
    (N, H, D), pairs = m.shape, (rotated or m.shape[2]) // 2
    out, to = result(out, x, m.shape, "x", m.code)
    tables = [operand(t, name, (2,), F32) for t, name in ((cosine, "cosine"), (sine, "sine"))]
    for t, name in zip(tables, ("cosine", "sine")):
        if t.shape != (tables[0].shape[0], pairs) or t.strides != elements.dense(t.shape):
            raise wrong(f"{name} should be dense, of {(tables[0].shape[0], pairs)}")
    for t, name in ((m, "x"), (to, "out")):
        if D > 1 and strides_of(t)[2] != 1:
            raise wrong(f"the elements of a head of {name} do not lie side by side")
    address, kept = vector(place, "place", I32, N)
    options = sized(RopeOptions, place=address, rotated=rotated or 0, backward=backward, x_strides=(c_int64 * 2)(*strides_of(m)[:2]),
                    y_strides=(c_int64 * 2)(*strides_of(to)[:2]))
    launched(lib.tile_rope, device, stream, [m, to, kept, *tables], m.code, N, H, D, m.address, tables[0].address, tables[1].address,
             tables[0].shape[0], to.address, byref(options))
    return out


def reduce(x: Any, reduction: str = "sum", axis: int = -1, out: Any = None, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """x reduced along an axis, which goes: "sum", "mean", "norm1" (sum(|x|)), "norm2" (sqrt(sum(x^2))), "max", "min", "argmax", "argmin" (the
    first place, i32). f32, f16, bf16, f64; sums are f32, f64 for f64, and rounded once; NaN as in NumPy."""
    m = operand(x, "x", range(1, native.MAX_RANK + 1))
    which = number_in(REDUCTIONS, reduction, "reduction")
    (M, N, L), steps = axis_of(m, axis, "x")
    axis %= len(m.shape)
    code = I32 if reduction in ("argmax", "argmin") else m.code
    out, to = result(out, x, m.shape[:axis] + m.shape[axis + 1:], "the result", code)
    if to.strides != elements.dense(to.shape) and M * L > 1:
        raise wrong("out should be dense")
    options = sized(ReduceOptions, x_strides=(c_int64 * 2)(*steps))
    launched(lib.tile_reduce, device, stream, [m, to], m.code, which, M, N, L, m.address, to.address, byref(options))
    return out


def scan(x: Any, operation: str = "sum", out: Any = None, *, exclusive: bool = False, device: Device | str | None = None,
         stream: Stream | None = None) -> Any:
    """The running "sum", "product", "max" or "min" along the last axis; exclusive: of the elements before. out may be x. f32, f16, bf16, f64."""
    m = operand(x, "x", range(1, native.MAX_RANK + 1))
    which = number_in(SCANS, operation, "operation")
    out, to = result(out, x, m.shape, "x", m.code)
    (count, n, ldx), (_, _, ldy) = flat_rows(m, "x"), flat_rows(to, "out")
    options = sized(ScanOptions, exclusive=exclusive)
    launched(lib.tile_scan, device, stream, [m, to], m.code, which, count, n, m.address, ldx, to.address, ldy, byref(options))
    return out


def norm_backward(function: Any, x: Any, dy: Any, out: Any, weight: Any, kept: Any, gradients: Any, device: Device | str | None, stream: Stream | None,
                  call: Any) -> Any:
    """The gradient of a norm: call(addresses) gives the arguments between x and dx. gradients: dweight and what follows it."""
    m, up = operand(x, "x", range(1, native.MAX_RANK + 1)), operand(dy, "dy", range(1, native.MAX_RANK + 1))
    out, to = result(out, x, m.shape, "x", m.code)
    if up.shape != m.shape or up.code != m.code:
        raise wrong(f"dy is of {elements.NAMES[up.code]} {up.shape}, but x of {elements.NAMES[m.code]} {m.shape}")
    (count, n, ldx), (_, _, lddy), (_, _, lddx) = flat_rows(m, "x"), flat_rows(up, "dy"), flat_rows(to, "out")
    w = vector(weight, "weight", m.code, n)
    sums = [vector(v, name, F32, count) for name, v in kept]
    parts = [vector(v, name, m.code, n) for name, v in gradients]
    space, address = room(lib.tile_norm_backward_workspace(count, n))
    launched(function, device, stream, [m, up, to, w, sums, parts, space], m.code, count, n, up.address, lddy, m.address, ldx, w[0],
             *call(), *(a for a, _ in sums), to.address, lddx, *(a for a, _ in parts), address)
    return out


def layer_norm_backward(dy: Any, x: Any, mean: Any, rstd: Any, weight: Any = None, out: Any = None, *, dweight: Any = None, dbias: Any = None,
                        device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The gradient of layer_norm by x, with mean and rstd as kept there, and by weight and bias where there are arrays for them. out may be
    dy. f32, f16, bf16."""
    return norm_backward(lib.tile_layer_norm_backward, x, dy, out, weight, (("mean", mean), ("rstd", rstd)),
                         (("dweight", dweight), ("dbias", dbias)), device, stream, lambda: ())


def rms_norm_backward(dy: Any, x: Any, rstd: Any, weight: Any = None, out: Any = None, *, offset: float = 0.0, dweight: Any = None,
                      device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The gradient of rms_norm by x, and by weight where there is an array for it. out may be dy. f32, f16, bf16."""
    return norm_backward(lib.tile_rms_norm_backward, x, dy, out, weight, (("rstd", rstd),), (("dweight", dweight),), device, stream,
                         lambda: (offset,))


def dense_operand(value: Any, name: str, axes: Any, code: Any = None) -> arrays.Memory:
    m = operand(value, name, axes, code)
    if m.strides != elements.dense(m.shape) and all(m.shape):
        raise wrong(f"{name} should be dense")
    return m


def sort(x: Any, out: Any = None, *, descending: bool = False, places: Any = None, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """x sorted along the last axis, NaN last; places: an array of i32 of x's shape for where elements were. f32, f16, bf16, f64."""
    m = operand(x, "x", range(1, native.MAX_RANK + 1))
    out, to = result(out, x, m.shape, "x", m.code)
    (count, n, ldx), (_, _, ldy) = flat_rows(m, "x"), flat_rows(to, "out")
    at = None if places is None else dense_operand(places, "places", (len(m.shape),), I32)
    if at and at.shape != m.shape:
        raise wrong(f"places is of {at.shape}, but x of {m.shape}")
    space, address = room(lib.tile_sort_workspace(m.code, n))
    launched(lib.tile_sort, device, stream, [m, to, at, space], m.code, count, n, m.address, ldx, to.address, ldy, at and at.address, address,
             byref(sized(SortOptions, descending=descending)))
    return out


def argsort(x: Any, *, descending: bool = False, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The places of the elements of x in their order along the last axis, i32; equal ones as they were, NaN last."""
    places = numpy.empty(numpy.shape(x), numpy.int32)
    sort(x, descending=descending, places=places, device=device, stream=stream)
    return places


def top_k(x: Any, k: int, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """(the k greatest along the last axis, greatest first; their places, i32), NaN last; k up to 512. f32, f16, bf16, f64."""
    m = operand(x, "x", range(1, native.MAX_RANK + 1))
    out, to = result(None, x, (*m.shape[:-1], k), "the result", m.code)
    places = numpy.empty(out.shape, numpy.int32)
    (count, n, ldx) = flat_rows(m, "x")
    launched(lib.tile_top_k, device, stream, [m, to, places], m.code, count, n, k, m.address, ldx, to.address, places.ctypes.data)
    return out, places


def gemm_blocks(a: Any, w: Any, blocks: Any, out: Any = None, *, round_a: bool = False, device: Device | str | None = None,
                stream: Stream | None = None) -> Any:
    """a w^T, w [N, K / 32, bytes] of u8 in ggml's blocks "q8_0" (34 bytes) or "q4_0" (18); round_a: a's numbers to i8, as ggml does. f32, f16,
    bf16."""
    which = number_in(BLOCKS, blocks, "blocks")
    x, y = dense_operand(a, "a", (2,)), dense_operand(w, "w", (3,), U8)
    (m, k), (n, count, size) = x.shape, y.shape
    if k != 32 * count or size != (34, 18)[which]:
        raise wrong(f"the shapes {x.shape} and {y.shape} do not fit for a product of {blocks}")
    out, c = result(out, a, (m, n), "the product", x.code)
    if c.strides != elements.dense(c.shape) and m * n > 1:
        raise wrong("out should be dense")
    launched(lib.tile_gemm_blocks, device, stream, [x, y, c], x.code, which, m, n, k, x.address, y.address, c.address,
             byref(sized(GemmBlocksOptions, round_a=round_a)))
    return out


def table_of(tensors: Any, name: str, code: Any, lengths: Any) -> Any:
    """A table of the addresses of dense tensors, with what keeps them."""
    memories = [dense_operand(t, name, range(native.MAX_RANK + 1), code) for t in tensors]
    sizes = [int(numpy.prod(m.shape, dtype=numpy.int64)) for m in memories]
    if lengths is not None and sizes != lengths:
        raise wrong(f"the tensors of {name} have {sizes} elements, those of w {lengths}")
    return (c_void_p * max(len(sizes), 1))(*(m.address for m in memories)), sizes, memories


def step_of(function: Any, w: Any, lists: Any, device: Device | str | None, stream: Stream | None, call: Any) -> Any:
    """A step over a list of tensors: lists are (name, tensors, code or None for w's)."""
    w = list(w)
    code = operand(w[0], "w", range(native.MAX_RANK + 1)).code if w else F32
    weights, lengths, keep = table_of(w, "w", code, None)
    tables = [None if t is None else table_of(t, name, of or code, lengths) for name, t, of in lists]
    sizes = (c_int64 * max(len(lengths), 1))(*lengths)
    addresses = [t and t[0] for t in tables]
    launched(function, device, stream, [keep, tables, weights, sizes], code, len(lengths), sizes, weights, *call(addresses))


def sgd(w: Any, dw: Any, rate: float, *, momenta: Any = None, momentum: float = 0.0, decay: float = 0.0, nesterov: bool = False, scale: float = 1.0,
        device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """w -= rate b, b = momentum b + dw, of lists of tensors, in place; momenta: f32, zeros before the first step. f32, f16, bf16."""
    options = sized(SgdOptions, momentum=momentum, decay=decay, gradient_scale=scale, nesterov=nesterov)
    step_of(lib.tile_sgd, w, (("dw", dw, None), ("momenta", momenta, F32)), device, stream, lambda t: (*t, rate, byref(options)))


def adam(w: Any, dw: Any, means: Any, squares: Any, step: int, rate: float, *, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8,
         decay: float = 0.0, coupled: bool = False, scale: float = 1.0, master: Any = None, device: Device | str | None = None,
         stream: Stream | None = None) -> Any:
    """AdamW, or Adam if coupled, of lists of tensors, in place; means, squares and master, the unrounded weights, are f32. f32, f16, bf16."""
    def call(t: Any) -> Any:
        options = sized(AdamOptions, beta1=beta1, beta2=beta2, eps=eps, decay=decay, gradient_scale=scale, coupled=coupled,
                        master=t[3] and ctypes.addressof(t[3]))
        return (*t[:3], step, rate, byref(options))
    step_of(lib.tile_adam, w, (("dw", dw, None), ("means", means, F32), ("squares", squares, F32), ("master", master, F32)), device, stream, call)


REAL = {F32: numpy.float32, F64: numpy.float64}
COMPLEX = {numpy.dtype(numpy.complex64): numpy.float32, numpy.dtype(numpy.complex128): numpy.float64}


def pairs_of(a: Any) -> Any:
    """An array of complex numbers as one of pairs."""
    real = COMPLEX.get(a.dtype) if isinstance(a, numpy.ndarray) else None
    return a if real is None else a.view(real).reshape(*a.shape, 2)


def complex_array(shape: Sequence[int], real: Any) -> Any:
    return numpy.empty(shape, numpy.result_type(real, numpy.complex64))


def complex_operand(a: Any, name: str, least: int, code: int | None = None) -> arrays.Memory:
    m = dense_operand(pairs_of(a), name, range(least + 1, native.MAX_RANK + 1), code)
    if m.shape[-1] != 2:
        raise wrong(f"{name} is of {m.shape}, but should have pairs in its last axis")
    return m


def count_of(lead: Sequence[int]) -> int:
    return int(numpy.prod(lead, dtype=numpy.int64))


def table_operand(table: Any, name: str, shape: Sequence[int], m: arrays.Memory, make: Any, device: Any) -> arrays.Memory:
    """The table that was given, or one that is made for the call."""
    if m.code not in REAL:
        raise wrong(f"x is of {elements.NAMES[m.code]}, but should be of f32 or f64")
    if table is None:
        table = make(shape[-1] if len(shape) > 1 else shape[0] // 3, REAL[m.code], device=device)
    w = dense_operand(table, name, (len(shape),), m.code)
    if w.shape != tuple(shape):
        raise wrong(f"{name} is of {w.shape}, but should be of {tuple(shape)}")
    return w


def fft(x: Any, out: Any = None, *, inverse: bool = False, table: Any = None, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The Fourier transform along the last axis of complex64 or complex128, or of f32 or f64 [..., N, 2]; N a power of 2. table: that of fft_table(N)."""
    out = numpy.empty_like(x) if out is None and isinstance(x, numpy.ndarray) else out
    m = complex_operand(x, "x", 1)
    to = complex_operand(out, "out", 1, m.code)
    *lead, n, _ = m.shape
    if to.shape != m.shape:
        raise wrong(f"x is of {m.shape} numbers and out of {to.shape}")
    w, count = table_operand(table, "table", (2, n), m, fft_table, device), count_of(lead)
    space, address = room(lib.tile_fft_workspace(m.code, count, n))
    launched(lib.tile_fft, device, stream, [m, to, w, space], m.code, count, n, m.address, w.address, to.address, address,
             byref(sized(FftOptions, inverse=inverse)))
    return out


def fft2(x: Any, out: Any = None, *, inverse: bool = False, tables: Any = (None, None), device: Device | str | None = None,
         stream: Stream | None = None) -> Any:
    """The Fourier transform along the last two axes of arrays as fft takes them. tables: those of both lengths."""
    out = numpy.empty_like(x) if out is None and isinstance(x, numpy.ndarray) else out
    m = complex_operand(x, "x", 2)
    to = complex_operand(out, "out", 2, m.code)
    *lead, n1, n2, _ = m.shape
    if to.shape != m.shape:
        raise wrong(f"x is of {m.shape} numbers and out of {to.shape}")
    w = [table_operand(t, "tables", (2, n), m, fft_table, device) for t, n in zip(tables, (n1, n2))]
    count = count_of(lead)
    space, address = room(lib.tile_fft_2d_workspace(m.code, count, n1, n2))
    launched(lib.tile_fft_2d, device, stream, [m, to, w, space], m.code, count, n1, n2, m.address, w[0].address, w[1].address, to.address, address,
             byref(sized(FftOptions, inverse=inverse)))
    return out


def rfft(x: Any, out: Any = None, *, table: Any = None, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The Fourier transform along the last axis of N real numbers, a power of 2 from 4: N / 2 + 1 complex ones. f32, f64. table: that of rfft_table(N)."""
    m = dense_operand(x, "x", range(1, native.MAX_RANK))
    *lead, n = m.shape
    if out is None and isinstance(x, numpy.ndarray):
        out = complex_array((*lead, n // 2 + 1), x.dtype)
    to = complex_operand(out, "out", 1, m.code)
    if to.shape != (*lead, n // 2 + 1, 2):
        raise wrong(f"x is of {m.shape}, so out should be of {(*lead, n // 2 + 1)} complex numbers")
    w, count = table_operand(table, "table", (3 * n,), m, rfft_table, device), count_of(lead)
    space, address = room(lib.tile_rfft_workspace(m.code, count, n))
    launched(lib.tile_rfft, device, stream, [m, to, w, space], m.code, count, n, m.address, w.address, to.address, address)
    return out


def irfft(x: Any, out: Any = None, *, table: Any = None, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The inverse of rfft."""
    m = complex_operand(x, "x", 1)
    *lead, half, _ = m.shape
    n = 2 * (half - 1)
    if out is None and isinstance(x, numpy.ndarray):
        out = numpy.empty((*lead, n), COMPLEX.get(x.dtype, x.dtype))
    to = dense_operand(out, "out", range(1, native.MAX_RANK), m.code)
    if to.shape != (*lead, n):
        raise wrong(f"x is of {(*lead, half)} complex numbers, so out should be of {(*lead, n)}")
    w, count = table_operand(table, "table", (3 * n,), m, rfft_table, device), count_of(lead)
    space, address = room(lib.tile_rfft_workspace(m.code, count, n))
    launched(lib.tile_irfft, device, stream, [m, to, w, space], m.code, count, n, m.address, w.address, to.address, address)
    return out


def fft_table(n: int, dtype: Any = numpy.float32, *, device: Device | str | None = None) -> Any:
    """What fft of rows of n numbers takes, made once."""
    table = numpy.empty((2, n), dtype)
    launched(lib.tile_fft_table, device, None, [table], operand(table, "table", (2,)).code, n, table.ctypes.data)
    return table


def rfft_table(n: int, dtype: Any = numpy.float32, *, device: Device | str | None = None) -> Any:
    """What rfft and irfft of n real numbers take, made once."""
    table = numpy.empty(3 * n, dtype)
    launched(lib.tile_rfft_table, device, None, [table], operand(table, "table", (1,)).code, n, table.ctypes.data)
    return table


LAYOUTS = ("NHWC", "NCHW")


def images_of(m: arrays.Memory, layout: str) -> tuple[int, int, int, int]:
    """N, H, W and C of images."""
    if number_in(LAYOUTS, layout, "layout"):
        n, c, h, w = m.shape
        return n, h, w, c
    n, h, w, c = m.shape
    return n, h, w, c


def shape_of(layout: str, *sizes: int) -> tuple[int, int, int, int]:
    """The extents of images of sizes N, H, W, C."""
    n, h, w, c = sizes
    return (n, c, h, w) if layout == "NCHW" else (n, h, w, c)


def windows_of(sizes: Any, taps: Any, stride: Any, pad: Any, dilation: Any, layout: str) -> Any:
    """(P, Q) and the options of windows of `taps` over images of sizes N, H, W, C."""
    pairs = [tuple(v) if isinstance(v, (tuple, list)) else (v, v) for v in (stride, pad, dilation)]
    if min(*pairs[0], *pairs[2]) < 1:
        raise wrong(f"stride is {stride} and dilation {dilation}, but both should be 1 or more")
    options = sized(WindowOptions, layout=LAYOUTS.index(layout), **{name: (c_int64 * 2)(*v) for name, v in zip(("stride", "pad", "dilation"), pairs)})
    counts = [max((size + 2 * p - d * (t - 1) - 1) // s + 1, 0) for size, t, s, p, d in zip(sizes[1:3], taps, *pairs)]
    return counts, options


def conv2d(x: Any, f: Any, bias: Any = None, out: Any = None, *, stride: Any = 1, pad: Any = 0, dilation: Any = 1, layout: str = "NHWC",
           groups: int = 1, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """Images x [N, H, W, C] convolved with f [R, S, C / groups, K]: [N, P, Q, K]; with the layout "NCHW" x [N, C, H, W] with f [K, C / groups, R, S]:
    [N, K, P, Q], as in PyTorch. stride, pad and dilation are numbers or pairs. f32, f16, bf16."""
    m = dense_operand(x, "x", (4,))
    w = dense_operand(f, "f", (4,), m.code)
    sizes = images_of(m, layout)
    R, S, CG, K = filters_of(w.shape, layout)
    if groups < 1 or sizes[3] != CG * groups or K % groups:
        raise wrong(f"x has {sizes[3]} channels, but f {CG} in each of {groups} groups, and {K} outputs")
    counts, options = windows_of(sizes, (R, S), stride, pad, dilation, layout)
    out, to = result(out, x, shape_of(layout, sizes[0], *counts, K), "the result", m.code)
    if to.strides != elements.dense(to.shape) and all(to.shape):
        raise wrong("out should be dense")
    b = vector(bias, "bias", m.code, K)
    options.groups = groups
    space, options.workspace = lines(lib.tile_conv2d_workspace(m.code, *sizes, K, R, S, byref(options)))
    launched(lib.tile_conv2d, device, stream, [m, w, b, to, space], m.code, *sizes, K, R, S, m.address, w.address, b[0], to.address, byref(options))
    return out


def filters_of(shape: Sequence[int], layout: str) -> tuple[int, int, int, int]:
    """R, S, C / groups and K of filters."""
    r, s, c, k = shape if layout == "NHWC" else (*shape[2:], shape[1], shape[0])
    return r, s, c, k


def check_outputs(m: arrays.Memory, wanted: Sequence[int]) -> None:
    if m.shape != tuple(wanted):
        raise wrong(f"dy is of {m.shape}, but the result of conv2d of {tuple(wanted)}")


def conv2d_backward_data(dy: Any, f: Any, shape: Sequence[int], out: Any = None, *, stride: Any = 1, pad: Any = 0, dilation: Any = 1,
                         layout: str = "NHWC", groups: int = 1, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The derivative of conv2d by x, which is of `shape`, from that by its result. f32, f16, bf16."""
    m = dense_operand(dy, "dy", (4,))
    w = dense_operand(f, "f", (4,), m.code)
    out, to = result(out, dy, tuple(shape), "the result", m.code)
    if to.strides != elements.dense(to.shape) and all(to.shape):
        raise wrong("out should be dense")
    sizes, (R, S, CG, K) = images_of(to, layout), filters_of(w.shape, layout)
    if groups < 1 or sizes[3] != CG * groups or K % groups:
        raise wrong(f"x has {sizes[3]} channels, but f {CG} in each of {groups} groups, and {K} outputs")
    counts, options = windows_of(sizes, (R, S), stride, pad, dilation, layout)
    check_outputs(m, shape_of(layout, sizes[0], *counts, K))
    options.groups = groups
    space, options.workspace = lines(lib.tile_conv2d_backward_data_workspace(m.code, *sizes, K, R, S, byref(options)))
    launched(lib.tile_conv2d_backward_data, device, stream, [m, w, to, space], m.code, *sizes, K, R, S, m.address, w.address, to.address, byref(options))
    return out


def conv2d_backward_weights(x: Any, dy: Any, size: Any, *, bias: bool = False, stride: Any = 1, pad: Any = 0, dilation: Any = 1, layout: str = "NHWC",
                            groups: int = 1, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The derivative of conv2d by f, which has taps of `size` (R, S); with bias a pair of it and that by the bias. f32, f16, bf16."""
    m = dense_operand(x, "x", (4,))
    g = dense_operand(dy, "dy", (4,), m.code)
    sizes, (R, S) = images_of(m, layout), size
    K = images_of(g, layout)[3]
    if groups < 1 or sizes[3] % groups or K % groups:
        raise wrong(f"groups is {groups}, but x has {sizes[3]} channels and dy {K}")
    counts, options = windows_of(sizes, (R, S), stride, pad, dilation, layout)
    check_outputs(g, shape_of(layout, sizes[0], *counts, K))
    options.groups = groups
    CG = sizes[3] // groups
    df, to = result(None, x, (R, S, CG, K) if layout == "NHWC" else (K, CG, R, S), "the result", m.code)
    db, at = result(None, x, (K,), "the bias", m.code) if bias else (None, None)
    space, options.workspace = lines(lib.tile_conv2d_backward_weights_workspace(m.code, *sizes, K, R, S, byref(options)))
    launched(lib.tile_conv2d_backward_weights, device, stream, [m, g, to, at, space], m.code, *sizes, K, R, S, m.address, g.address, to.address,
             None if at is None else at.address, byref(options))
    return (df, db) if bias else df


def max_pool2d(x: Any, size: Any, *, stride: Any = None, pad: Any = 0, dilation: Any = 1, layout: str = "NHWC", device: Device | str | None = None,
               stream: Stream | None = None) -> Any:
    """(the greatest pixels of windows of x [N, H, W, C] or, with the layout "NCHW", [N, C, H, W], their places h W + w, i32). size: R, S; stride: size if
    None. f32, f16, bf16."""
    m = dense_operand(x, "x", (4,))
    sizes = images_of(m, layout)
    counts, options = windows_of(sizes, size, size if stride is None else stride, pad, dilation, layout)
    out, to = result(None, x, shape_of(layout, sizes[0], *counts, sizes[3]), "the result", m.code)
    places = numpy.empty(out.shape, numpy.int32)
    launched(lib.tile_max_pool2d, device, stream, [m, to, places], m.code, *sizes, *size, m.address, to.address, places.ctypes.data,
             byref(options))
    return out, places


def avg_pool2d(x: Any, size: Any, *, stride: Any = None, pad: Any = 0, dilation: Any = 1, count_pad: bool = False, layout: str = "NHWC",
               device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The means of the pixels of windows of x; with count_pad their sum over R S. Otherwise as max_pool2d."""
    m = dense_operand(x, "x", (4,))
    sizes = images_of(m, layout)
    counts, options = windows_of(sizes, size, size if stride is None else stride, pad, dilation, layout)
    options.count_pad = count_pad
    out, to = result(None, x, shape_of(layout, sizes[0], *counts, sizes[3]), "the result", m.code)
    launched(lib.tile_avg_pool2d, device, stream, [m, to], m.code, *sizes, *size, m.address, to.address, byref(options))
    return out


def pool_backward(function: Any, dy: Any, others: Sequence[arrays.Memory], shape: Sequence[int], size: Any, stride: Any, pad: Any, dilation: Any, count_pad: bool,
                  layout: str, device: Device | str | None, stream: Stream | None) -> Any:
    m = dense_operand(dy, "dy", (4,))
    out, to = result(None, dy, tuple(shape), "the result", m.code)
    sizes = images_of(to, layout)
    counts, options = windows_of(sizes, size, size if stride is None else stride, pad, dilation, layout)
    options.count_pad = count_pad
    for x, name in ((m, "dy"), *((x, "places") for x in others)):
        if x.shape != shape_of(layout, sizes[0], *counts, sizes[3]):
            raise wrong(f"{name} is of {x.shape}, but the windows of x are {shape_of(layout, sizes[0], *counts, sizes[3])}")
    launched(function, device, stream, [m, *others, to], m.code, *sizes, *size, m.address, *(x.address for x in others), to.address, byref(options))
    return out


def max_pool2d_backward(dy: Any, places: Any, shape: Sequence[int], size: Any, *, stride: Any = None, pad: Any = 0, dilation: Any = 1, layout: str = "NHWC",
                        device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The derivative of max_pool2d by x, which is of `shape`, from that by its result and the places that it gave. f32, f16, bf16."""
    return pool_backward(lib.tile_max_pool2d_backward, dy, [dense_operand(places, "places", (4,), I32)], shape, size, stride, pad, dilation, False, layout,
                         device, stream)


def avg_pool2d_backward(dy: Any, shape: Sequence[int], size: Any, *, stride: Any = None, pad: Any = 0, dilation: Any = 1, count_pad: bool = False,
                        layout: str = "NHWC", device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The derivative of avg_pool2d by x, which is of `shape`, from that by its result. f32, f16, bf16."""
    return pool_backward(lib.tile_avg_pool2d_backward, dy, [], shape, size, stride, pad, dilation, count_pad, layout, device, stream)


def matrices_of(value: Any, name: str, code: int | None = None, writes: bool = False) -> tuple[arrays.Memory, tuple[int, int, int], tuple[int, int]]:
    """(the Memory, (batch, rows, columns), (leading dimension, distance)) of a matrix, or of several along a first axis."""
    m = operand(value, name, (2, 3), code, writes)
    if writes and not m.writable:
        raise wrong(f"{name} is read-only")
    ld, transposed = rows_of(m, name)
    if transposed:
        raise wrong(f"the rows of {name} do not lie side by side")
    batch = m.shape[0] if len(m.shape) == 3 else 1
    return m, (batch, m.shape[-2], m.shape[-1]), (ld, strides_of(m)[0] if len(m.shape) == 3 else 0)


def system_of(a: Any, b: Any, right: bool = False) -> Any:
    """matrices_of square a and of b, which fit."""
    (m, (za, n, n_), _), (w, (z, rows, columns), _) = both = matrices_of(a, "a"), matrices_of(b, "b", writes=True)
    if n != n_:
        raise wrong(f"a is of {m.shape}, but should be square")
    if m.code != w.code:
        raise wrong(f"b is of {elements.NAMES[w.code]}, but should be of {elements.NAMES[m.code]}")
    if n != (columns if right else rows) or za not in (1, z):
        raise wrong(f"a of {m.shape} and b of {w.shape} do not fit for a system of equations")
    return both if za == z else ((m, (z, n, n_), (both[0][2][0], 0)), both[1])


def places_of(value: Any, name: str, shape: Sequence[int]) -> arrays.Memory:
    m = dense_operand(value, name, (len(shape),), I32)
    if m.shape != tuple(shape):
        raise wrong(f"{name} is of {m.shape}, but should be of {tuple(shape)}")
    return m


def trsm(a: Any, b: Any, *, lower: bool = True, right: bool = False, transpose: bool = False, unit: bool = False, alpha: float = 1.0,
         device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """b, which becomes alpha op(a)^-1 b, or with right alpha b op(a)^-1: a is a triangle, whose other half (with unit its diagonal, too) is not read, and
    op(a) it or its transpose. Matrices, or several along a first axis. f32, f64."""
    (m, _, (lda, za)), (w, (z, rows, columns), (ldb, zb)) = system_of(a, b, right)
    launched(lib.tile_trsm_batched, device, stream, [m, w], m.code, right, not lower, transpose, unit, rows, columns, alpha, m.address, lda, za, w.address,
             ldb, zb, z)
    return b


def trmm(a: Any, b: Any, *, lower: bool = True, right: bool = False, transpose: bool = False, unit: bool = False, alpha: float = 1.0,
         device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """b, which becomes alpha op(a) b, or with right alpha b op(a). Otherwise as trsm."""
    (m, _, (lda, za)), (w, (z, rows, columns), (ldb, zb)) = system_of(a, b, right)
    launched(lib.tile_trmm_batched, device, stream, [m, w], m.code, right, not lower, transpose, unit, rows, columns, alpha, m.address, lda, za, w.address,
             ldb, zb, z)
    return b


def vector_of(value: Any, name: str, code: int | None = None, length: int | None = None, writes: bool = False) -> tuple[arrays.Memory, int, int | None, int]:
    """(the Memory, its elements, the address of the first in memory, the increment) of a vector, which may run backwards."""
    m = operand(value, name, (1,), code, writes)
    n = m.shape[0]
    if length is not None and n != length:
        raise wrong(f"{name} has {n} elements, but should have {length}")
    if writes and not m.writable:
        raise wrong(f"{name} is read-only")
    step = strides_of(m)[0] if n > 1 else 1
    if step == 0:
        raise wrong(f"{name} has one element for many")
    back = (n - 1) * step if step < 0 else 0
    return m, n, m.address and m.address + back * (elements.BITS[elements.NAMES[m.code]] // 8), step


def axpy(alpha: float, x: Any, y: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """y, which becomes alpha x + y. Vectors of f32 or f64, whose elements may be any distance apart."""
    m, n, x_at, incx = vector_of(x, "x")
    w, _, y_at, incy = vector_of(y, "y", m.code, n, True)
    launched(lib.tile_axpy, device, stream, [m, w], m.code, n, alpha, x_at, incx, y_at, incy)
    return y


def scal(alpha: float, x: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """x, which becomes alpha x. f32, f64."""
    m, n, at, inc = vector_of(x, "x", writes=True)
    launched(lib.tile_scal, device, stream, [m], m.code, n, alpha, at, inc)
    return x


def copy(x: Any, y: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """y, which becomes x. f32, f64."""
    m, n, x_at, incx = vector_of(x, "x")
    w, _, y_at, incy = vector_of(y, "y", m.code, n, True)
    launched(lib.tile_copy, device, stream, [m, w], m.code, n, x_at, incx, y_at, incy)
    return y


def swap(x: Any, y: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> None:
    """Exchanges x and y. f32, f64."""
    m, n, x_at, incx = vector_of(x, "x", writes=True)
    w, _, y_at, incy = vector_of(y, "y", m.code, n, True)
    launched(lib.tile_swap, device, stream, [m, w], m.code, n, x_at, incx, y_at, incy)


def number_of(function: Any, x: Any, y: Any, device: Device | str | None, stream: Stream | None, places: bool = False) -> Any:
    """An array without axes, which is one number."""
    m, n, x_at, incx = vector_of(x, "x")
    others: tuple[Any, ...] = ()
    if y is not None:
        w, _, y_at, incy = vector_of(y, "y", m.code, n)
        others = (y_at, incy)
    out, to = result(None, x, (), "the result", I32 if places else m.code)
    launched(function, device, stream, [m, y, to], m.code, n, x_at, incx, *others, to.address)
    return out


def dot(x: Any, y: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The sum of x[i] y[i], an array without axes. f32, f64."""
    return number_of(lib.tile_dot, x, y, device, stream)


def asum(x: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The sum of |x[i]|, an array without axes. f32, f64."""
    return number_of(lib.tile_asum, x, None, device, stream)


def nrm2(x: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The square root of the sum of x[i]^2, which overflows only where the result does, an array without axes. f32, f64."""
    return number_of(lib.tile_nrm2, x, None, device, stream)


def iamax(x: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """The first i with the greatest |x[i]|, i32, an array without axes; of no elements -1. f32, f64."""
    return number_of(lib.tile_iamax, x, None, device, stream, True)


def square_of(a: Any) -> tuple[arrays.Memory, int, int]:
    """(the Memory, rows, leading dimension) of one square matrix."""
    m, (_, n, n_), (ld, _step) = matrices_of(a, "a")
    if n != n_ or len(m.shape) != 2:
        raise wrong(f"a is of {m.shape}, but should be one square matrix")
    return m, n, ld


def triangle_times(function: Any, a: Any, x: Any, lower: bool, transpose: bool, unit: bool, device: Device | str | None, stream: Stream | None) -> Any:
    m, n, ld = square_of(a)
    w, _, at, inc = vector_of(x, "x", m.code, n, True)
    launched(function, device, stream, [m, w], m.code, not lower, transpose, unit, n, m.address, ld, at, inc)
    return x


def trsv(a: Any, x: Any, *, lower: bool = True, transpose: bool = False, unit: bool = False, device: Device | str | None = None,
         stream: Stream | None = None) -> Any:
    """x, a vector, which becomes op(a)^-1 x, a being a triangle as of trsm. f32, f64."""
    return triangle_times(lib.tile_trsv, a, x, lower, transpose, unit, device, stream)


def trmv(a: Any, x: Any, *, lower: bool = True, transpose: bool = False, unit: bool = False, device: Device | str | None = None,
         stream: Stream | None = None) -> Any:
    """x, a vector, which becomes op(a) x, a being a triangle as of trsm. f32, f64."""
    return triangle_times(lib.tile_trmv, a, x, lower, transpose, unit, device, stream)


def updated(out: Any, like: Any, shape: Sequence[int], code: int, beta: float) -> tuple[Any, arrays.Memory]:
    """`out`, or a new array if beta is 0."""
    if out is None and beta != 0:
        raise wrong("beta is not 0, but out is missing")
    return result(out, like, shape, "the result", code)


def syrk(a: Any, out: Any = None, *, lower: bool = True, transpose: bool = False, alpha: float = 1.0, beta: float = 0.0,
         device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """out, of whose lower or else upper triangle there is alpha a a^T + beta out, or with transpose alpha a^T a + beta out; the other half stays as it
    was, in a new array 0. One matrix of f32 or f64."""
    m, (_, rows, columns), (lda, _step) = matrices_of(a, "a")
    if len(m.shape) != 2:
        raise wrong(f"a is of {m.shape}, but should be one matrix")
    n, k = (columns, rows) if transpose else (rows, columns)
    fresh = out is None
    out, to = updated(out, a, (n, n), m.code, beta)
    if fresh:
        out.fill(0)
    ldc, turned = rows_of(to, "out")
    if turned:
        raise wrong("the rows of out do not lie side by side")
    launched(lib.tile_syrk, device, stream, [m, to], m.code, not lower, transpose, n, k, alpha, m.address, lda, beta, to.address, ldc)
    return out


def symm(a: Any, b: Any, out: Any = None, *, lower: bool = True, right: bool = False, alpha: float = 1.0, beta: float = 0.0,
         device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """alpha a b + beta out, or with right alpha b a + beta out, a being symmetric and known by its lower or else upper triangle. Matrices of f32 or f64."""
    m, n, lda = square_of(a)
    w, (_, rows, columns), (ldb, _step) = matrices_of(b, "b", m.code)
    if len(w.shape) != 2 or n != (columns if right else rows):
        raise wrong(f"a of {m.shape} and b of {w.shape} do not fit for a product")
    out, to = updated(out, b, (rows, columns), m.code, beta)
    ldc, turned = rows_of(to, "out")
    if turned:
        raise wrong("the rows of out do not lie side by side")
    launched(lib.tile_symm, device, stream, [m, w, to], m.code, right, not lower, rows, columns, alpha, m.address, lda, w.address, ldb, beta, to.address, ldc)
    return out


def symv(a: Any, x: Any, out: Any = None, *, lower: bool = True, alpha: float = 1.0, beta: float = 0.0, device: Device | str | None = None,
         stream: Stream | None = None) -> Any:
    """alpha a x + beta out, a being symmetric and known by its lower or else upper triangle, x a vector. f32, f64."""
    m, n, lda = square_of(a)
    v, _, x_at, incx = vector_of(x, "x", m.code, n)
    out, to = updated(out, x, (n,), m.code, beta)
    _, _, y_at, incy = vector_of(out, "out", m.code, n, True)
    launched(lib.tile_symv, device, stream, [m, v, to], m.code, not lower, n, alpha, m.address, lda, x_at, incx, beta, y_at, incy)
    return out


def potrf(a: Any, *, lower: bool = True, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """info, i32: 0, or n if the leading n x n part of a is not positive definite. The lower triangle of a becomes L, a = L L^T (Cholesky), or else the
    upper one U, a = U^T U. Matrices, or several along a first axis. f32, f64."""
    m, (z, n, n_), (ld, step) = matrices_of(a, "a", writes=True)
    if n != n_:
        raise wrong(f"a is of {m.shape}, but should be square")
    info = numpy.empty(m.shape[:-2], numpy.int32)
    launched(lib.tile_potrf_batched, device, stream, [m, info], m.code, not lower, n, m.address, ld, step, info.ctypes.data, z)
    return info


def potrs(a: Any, b: Any, *, lower: bool = True, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """b, which becomes x with (the matrix of potrf) x = b, a being the triangle of potrf."""
    (m, (_, n, _n), (lda, za)), (w, (z, _, k), (ldb, zb)) = system_of(a, b)
    launched(lib.tile_potrs_batched, device, stream, [m, w], m.code, not lower, n, k, m.address, lda, za, w.address, ldb, zb, z)
    return b


def getrf(a: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """(pivots, info), i32: p a = L U, L below the diagonal of a, where it has ones, and U take the place of a. In step n, row n was exchanged with row
    pivots[n]; info: 0, or n if the pivot of step n, from 1, is the first that is 0. Matrices, or several along a first axis. f32, f64."""
    m, (z, rows, columns), (ld, step) = matrices_of(a, "a", writes=True)
    pivots = numpy.empty((*m.shape[:-2], min(rows, columns)), numpy.int32)
    info = numpy.empty(m.shape[:-2], numpy.int32)
    launched(lib.tile_getrf_batched, device, stream, [m, pivots, info], m.code, rows, columns, m.address, ld, step, pivots.ctypes.data, info.ctypes.data, z)
    return pivots, info


def getrs(a: Any, pivots: Any, b: Any, *, transpose: bool = False, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """b, which becomes x with (the matrix of getrf, or its transpose) x = b, a and pivots being those of getrf."""
    (m, (_, n, _n), (lda, za)), (w, (z, _, k), (ldb, zb)) = system_of(a, b)
    if za == 0 and z != 1:
        raise wrong("each matrix of b needs one of a")
    p = places_of(pivots, "pivots", (*m.shape[:-2], n))
    launched(lib.tile_getrs_batched, device, stream, [m, w, p], m.code, transpose, n, k, m.address, lda, za, p.address, w.address, ldb, zb, z)
    return b


def geqrf(a: Any, *, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """tau: a = q r by reflections, r in the upper triangle of a, which with tau is what ormqr takes. Matrices, or several along a first axis. f32, f64."""
    m, (z, rows, columns), (ld, step) = matrices_of(a, "a", writes=True)
    tau = numpy.empty((*m.shape[:-2], min(rows, columns)), REAL.get(m.code, numpy.float64))
    space, address = room(lib.tile_geqrf_workspace(m.code, rows, columns, z))
    launched(lib.tile_geqrf_batched, device, stream, [m, tau, space], m.code, rows, columns, m.address, ld, step, tau.ctypes.data, address, z)
    return tau


def ormqr(a: Any, tau: Any, c: Any, *, transpose: bool = False, device: Device | str | None = None, stream: Stream | None = None) -> Any:
    """c, which becomes q c, or q^T c, with the q of geqrf's a and tau: q is that of a unit matrix. Least squares: trsm with the triangle of a and q^T b."""
    m, (z, rows, columns), (lda, za) = matrices_of(a, "a")
    w, (zc, rows_c, n), (ldc, step) = matrices_of(c, "c", m.code, writes=True)
    t = dense_operand(tau, "tau", (len(m.shape) - 1,), m.code)
    steps = min(rows, columns)
    if zc != z or rows_c != rows or t.shape != (*m.shape[:-2], steps):
        raise wrong(f"the shapes {m.shape}, {t.shape} and {w.shape} do not fit")
    space, address = room(lib.tile_ormqr_workspace(m.code, rows, n, steps, z))
    launched(lib.tile_ormqr_batched, device, stream, [m, t, w, space], m.code, transpose, rows, n, steps, m.address, lda, za, t.address, w.address, ldc,
             step, address, z)
    return c


__all__ = ["adam", "argsort", "asum", "attention", "attention_backward", "avg_pool2d", "avg_pool2d_backward", "axpy", "conv2d",
           "conv2d_backward_data", "conv2d_backward_weights", "copy", "cross_entropy", "cross_entropy_backward", "dot", "fft", "fft2", "fft_table",
           "gemm", "gemm_blocks", "geqrf", "getrf", "getrs", "iamax", "irfft", "layer_norm", "layer_norm_backward", "log_softmax", "max_pool2d",
           "max_pool2d_backward", "nrm2", "ormqr", "potrf", "potrs", "reduce", "rfft", "rfft_table", "rms_norm", "rms_norm_backward", "rope", "scal", "scan", "sgd", "softmax",
           "sort", "swap", "symm", "symv", "syrk", "top_k", "trmm", "trmv", "trsm", "trsv"]
