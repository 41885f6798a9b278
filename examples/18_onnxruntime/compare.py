"""Each operator of libonnxruntime-tile.so beside NumPy, and beside ONNX Runtime's own where it has the same.

    compare.py LIBRARY [--time]

A line for each case: the greatest difference over the greatest value, and what ONNX Runtime's own operator has. The program fails where ours is
more than its type allows, where threads change a bit, or where what cannot be done is not refused in the words that are expected.
"""
import argparse
import math
import sys
import time

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

TYPES = {"f32": (np.float32, TensorProto.FLOAT, 2e-6), "f16": (np.float16, TensorProto.FLOAT16, 1e-3), "bf16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16, 8e-3)}
ELEMENTS = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int32): TensorProto.INT32, np.dtype(np.float64): TensorProto.DOUBLE,
            **{np.dtype(t): e for t, e, _ in TYPES.values()}}
rng = np.random.default_rng(45)
faults = 0


def session(name, inputs, library, domain="tile", threads=2, **attributes):
    """A model of one node. Tensors of bf16, which ONNX Runtime does not take from NumPy, pass as f32. Weights of few bits are constants, as in models: ONNX Runtime's
    operator has them in another order then."""
    nodes, values, names, constants = [], [], [], []
    element = ELEMENTS[inputs[0].dtype]
    for i, x in enumerate(inputs):
        if x is None:
            names.append("")
            continue
        names.append(f"i{i}")
        if name == "MatMulNBits" and i:
            constants.append(helper.make_tensor(f"i{i}", ELEMENTS[x.dtype], x.shape, x.tobytes(), raw=True))
            continue
        narrow = x.dtype == ml_dtypes.bfloat16
        values.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT if narrow else ELEMENTS[x.dtype], x.shape))
        nodes.append(helper.make_node("Cast", [f"x{i}"], [f"i{i}"], to=ELEMENTS[x.dtype]) if narrow else helper.make_node("Identity", [f"x{i}"], [f"i{i}"]))
    nodes.append(helper.make_node(name, names, ["y"], domain=domain, **attributes))
    narrow = element == TensorProto.BFLOAT16
    if narrow:
        nodes.append(helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT))
    out = helper.make_tensor_value_info("z" if narrow else "y", TensorProto.FLOAT if narrow else element, None)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("tile", 1), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, name, values, [out], constants), opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.register_custom_ops_library(library)
    s = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {f"x{i}": x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x for i, x in enumerate(inputs) if f"x{i}" in {v.name for v in values}}
    return lambda: s.run(None, feed)[0]


def difference(y, expected):
    if y.shape != expected.shape:
        return math.inf
    return 0.0 if not y.size else float(np.max(np.abs(y.astype(np.float64) - expected)) / max(np.max(np.abs(expected)), 1e-30))


def check(what, name, inputs, expected, bound, own=None, library=None, **attributes):
    """Ours with one thread and with two, which must give the same bits; `own` is the domain in which ONNX Runtime has the operator."""
    global faults
    run = session(name, inputs, library, **attributes)
    y = run()
    error = difference(y, expected)
    same = np.array_equal(y, session(name, inputs, library, threads=1, **attributes)()) and np.array_equal(y, run())
    wrong = not (error <= bound and same)
    faults += wrong
    theirs, seconds = "", ""
    if own is not None:
        try:
            there = session(name, inputs, library, domain=own, **attributes)
            theirs = f", ONNX Runtime's {difference(there(), expected):.1e}"
            if TIME and y.size > 1000:
                seconds = f", its time over ours {best(there) / best(run):.2f}"
        except Exception as e:  # not of this type, or not in this version
            theirs = ", ONNX Runtime has none" if "NOT_IMPLEMENTED" in str(e) or "No Op registered" in str(e) else f", ONNX Runtime: {str(e)[:60]}"
    print(f"{'WRONG ' if wrong else ''}{what} {error:.1e}{theirs}{seconds}{'' if same else ', other bits with other threads'}")


def best(f):
    least = math.inf
    for _ in range(30):
        t = time.perf_counter()
        f()
        least = min(least, time.perf_counter() - t)
    return least


def refused(words, name, inputs, library, **attributes):
    global faults
    try:
        session(name, inputs, library, **attributes)()
        text = "it was taken"
    except Exception as e:
        text = str(e)
    wrong = words not in text
    faults += wrong
    print(f"{'WRONG ' if wrong else ''}refused: {words}{' BUT ' + text if wrong else ''}")


def random(shape, dtype):
    return rng.standard_normal(shape).astype(dtype)


def gelu(x, approximate):
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * (0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2))))


def elementwise(library):
    for t, (dtype, _, bound) in TYPES.items():
        for shape in ((3, 5, 7), (), (0, 4), (40, 1000)):
            x = random(shape, dtype)
            for approximate in ("none", "tanh"):
                check(f"Gelu {approximate} {t} {list(shape)}", "Gelu", [x], gelu(x.astype(float), approximate), bound, "", library, approximate=approximate)
        gate, value = random((7, 333), dtype), random((7, 333), dtype)
        g, v = gate.astype(float), value.astype(float)
        for act, y in (("silu", g / (1 + np.exp(-g))), ("gelu", gelu(g, "none")), ("gelu_tanh", gelu(g, "tanh")), ("relu", np.maximum(g, 0)), ("sigmoid", 1 / (1 + np.exp(-g)))):
            check(f"Gated {act} {t}", "Gated", [gate, value], y * v, bound, None, library, activation=act)


def norms(library):
    for t, (dtype, _, bound) in TYPES.items():
        for shape, axis in (((5, 1000), -1), ((2, 3, 4, 5), 2), ((1,), 0), ((0, 8), 1), ((64, 2048), -1)):
            x, w = random(shape, dtype), random(shape[axis:], dtype)
            axes = tuple(range(axis % len(shape), len(shape)))
            v = x.astype(float)
            y = v / np.sqrt(np.mean(v * v, axis=axes, keepdims=True) + 1e-6) * w.astype(float)
            check(f"RMSNormalization {t} {list(shape)} axis {axis}", "RMSNormalization", [x, w], y, 2 * bound, "", library, axis=axis, epsilon=1e-6)


def attention(q, k, v, mask, causal, scale, cap):
    """q [B, H, M, D], k and v [B, HK, N, D]."""
    q, k, v = (a.astype(float) for a in (q, k, v))
    k, v = (np.repeat(a, q.shape[1] // a.shape[1], axis=1) for a in (k, v))
    s = q @ k.swapaxes(2, 3) * (scale or 1 / math.sqrt(q.shape[3]))
    if cap:
        s = cap * np.tanh(s / cap)
    if mask is not None:
        s = s + mask.astype(float)
    if causal:
        s = np.where(np.tri(*s.shape[2:], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(3, keepdims=True))
    return p / p.sum(3, keepdims=True) @ v


def attentions(library):
    #        B  H HK  M   N   D   E
    shapes = (1, 1, 1, 1, 1, 8, 8), (2, 4, 2, 33, 70, 40, 24), (1, 8, 8, 128, 128, 64, 64), (1, 4, 1, 1, 300, 128, 128), (2, 2, 2, 17, 5, 256, 16)
    for t, (dtype, _, bound) in TYPES.items():
        for B, H, HK, M, N, D, E in shapes:
            q, k, v = random((B, H, M, D), dtype), random((B, HK, N, D), dtype), random((B, HK, N, E), dtype)
            masks = {"": None, " mask": random((M, N), dtype), " mask of batches": random((B, 1, M, N), dtype), " mask of heads": random((H, 1, N), dtype)}
            for causal, what in [(c, w) for c in (0, 1) for w in masks if t == "f32" or c == (w == "")]:
                mask = masks[what]
                given = [q, k, v] + ([] if mask is None else [mask])
                y = attention(q, k, v, mask, causal, 0, 0)
                label = f"Attention {t} {[B, H, HK, M, N, D, E]}{' causal' if causal else ''}{what}"
                check(label, "Attention", given, y, 4 * bound, "", library, is_causal=causal)
        q, k, v = random((2, 4, 9, 16), dtype), random((2, 2, 11, 16), dtype), random((2, 2, 11, 16), dtype)
        flat = [a.swapaxes(1, 2).reshape(a.shape[0], a.shape[2], -1) for a in (q, k, v)]
        y = attention(q, k, v, None, 0, 0.3, 2.0).swapaxes(1, 2).reshape(2, 9, -1)
        check(f"Attention {t} heads side by side, scale, cap", "Attention", flat, y, 4 * bound, "", library, q_num_heads=4, kv_num_heads=2, scale=0.3, softcap=2.0)


def packed(q, bits):
    """Numbers of 4 bits two to a byte, along the last axis, the low half first."""
    if bits == 8:
        return q.astype(np.uint8)
    if q.shape[-1] % 2:
        q = np.concatenate([q, np.zeros((*q.shape[:-1], 1), q.dtype)], -1)
    return (q[..., ::2] | q[..., 1::2] << 4).astype(np.uint8)


def products(library):
    for t, (dtype, _, bound) in TYPES.items():
        for bits, block, m, n, k, with_zero, with_bias in ((4, 32, 1, 70, 320, 0, 0), (4, 32, 5, 33, 100, 1, 1), (4, 16, 17, 40, 256, 1, 0), (4, 128, 70, 64, 384, 0, 1),
                                                           (8, 32, 3, 20, 96, 1, 0), (8, 64, 1, 9, 70, 0, 1), (4, 256, 2, 12, 700, 1, 0), (4, 32, 0, 8, 64, 0, 0),
                                                           (4, 32, 1, 2048, 2048, 1, 0), (4, 32, 64, 1024, 1024, 1, 0)):
            blocks = -(-k // block)
            q = rng.integers(0, 1 << bits, (n, blocks, block))
            zero = rng.integers(0, 1 << bits, (n, blocks))
            x, scale, bias = random((m, k), dtype), (rng.random((n, blocks)) / (1 << bits)).astype(dtype), random(n, dtype)
            w = (q - (zero[..., None] if with_zero else 1 << bits - 1)) * scale.astype(float)[..., None]
            y = x.astype(float) @ w.reshape(n, -1)[:, :k].T + (bias.astype(float) if with_bias else 0)
            given = [x, packed(q, bits), scale] + ([packed(zero, bits).reshape(-1)] if with_zero else [None]) + [None] + ([bias] if with_bias else [None])
            while given[-1] is None:
                given.pop()
            check(f"MatMulNBits {t} {bits} bits, blocks of {block}, {m} x {n} x {k}{' zeros' if with_zero else ''}{' bias' if with_bias else ''}", "MatMulNBits", given, y,
                  4 * bound, "com.microsoft", library, K=k, N=n, bits=bits, block_size=block)


def refusals(library):
    x = random((2, 64), np.float32)
    q = random((1, 2, 3, 8), np.float32)
    w, scale = np.zeros((8, 2, 16), np.uint8), np.ones((8, 2), np.float32)
    refused('tile::Gelu: approximate is "erf", but "none" and "tanh" are what there is', "Gelu", [x], library, approximate="erf")
    refused("'tensor(double)' of input parameter", "Gelu", [x.astype(np.float64)], library)
    refused("tile::Gated: gate is [2, 64] and value [64, 2], but they must have one shape", "Gated", [x, x.T.copy()], library)
    refused('tile::Gated: activation is "swish", but silu', "Gated", [x, x], library, activation="swish")
    refused("tile::RMSNormalization: scale is [63], but X is [2, 64] and axis -1", "RMSNormalization", [x, x[0, :63]], library)
    refused("tile::RMSNormalization: axis is 2, but X is [2, 64]", "RMSNormalization", [x, x[0]], library, axis=2)
    refused("tile::Attention: Q is [1, 2, 3, 8], K [1, 2, 3, 8] and V [1, 2, 4, 8], which do not go together", "Attention", [q, q, random((1, 2, 4, 8), np.float32)], library)
    refused("tile::Attention: Q is [2, 64], K [2, 64] and V [2, 64], but they must be", "Attention", [x, x, x], library)
    refused("tile::Attention: attn_mask is [3, 2], but there are 3 queries and 3 keys in 2 heads", "Attention", [q, q, q, random((3, 2), np.float32)], library)
    refused("tile::Attention: 3 heads of queries cannot share 2 heads of keys", "Attention", [random((1, 3, 3, 8), np.float32), q, q], library)
    refused("tile::MatMulNBits: A is [2, 64], but K is 60", "MatMulNBits", [x, w, scale], library, K=60, N=8, block_size=32)
    refused("tile::MatMulNBits: B is [8, 2, 16], but it must be [9, 2, 16]", "MatMulNBits", [x, w, scale], library, K=64, N=9, block_size=32)
    refused("tile::MatMulNBits: block_size is 33", "MatMulNBits", [x, w, scale], library, K=64, N=8, block_size=33)
    refused("tile::MatMulNBits: scales is [8, 1], but it must be [8, 2]", "MatMulNBits", [x, w, scale[:, :1].copy()], library, K=64, N=8, block_size=32)
    refused("tile::MatMulNBits: g_idx is given", "MatMulNBits", [x, w, scale, None, np.zeros(64, np.int32)], library, K=64, N=8, block_size=32)


arguments = argparse.ArgumentParser()
arguments.add_argument("library")
arguments.add_argument("--time", action="store_true", help="time both, too")
options = arguments.parse_args()
TIME = options.time
for part in (elementwise, norms, attentions, products, refusals):
    part(options.library)
print(faults, "wrong")
sys.exit(faults != 0)
