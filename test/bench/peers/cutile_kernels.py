"""The peers of kernels.tile in CUDA Tile's Python (PyPI: cuda-tile[tileiras]), compiled without a GPU:  cutile_kernels.py TARGET OUTDIR

Reads a JSON object a line, a job: name, kernel, types (of arrays, in order), constants, tries (numbers of warps; 0: CUDA Tile's own choice). Writes
OUTDIR/NAME.W.cubin for each try W and prints a JSON object for each: {"name", "warps", "version"} or "error". Arrays are row by row, do not overlap, and
their addresses, strides and extents are divisible by 16 bytes, as tilec's aligned form asks for.
"""
import json
import math
import sys

import cuda.tile as ct
from cuda.tile.compilation import ArrayConstraint, CallingConvention, KernelSignature, ScalarConstraint, export_kernel

ZERO, NEGATIVE = ct.PaddingMode.ZERO, ct.PaddingMode.NEG_INF
Const = ct.Constant[int]
TYPES = {"fp32": ct.float32, "fp16": ct.float16, "i8": ct.int8, "i32": ct.int32, "fp8e4nv": ct.float8_e4m3fn, "u8": ct.uint8, "e8m0": ct.float8_e8m0fnu}
BYTES = {"fp32": 4, "fp16": 2, "i8": 1, "i32": 4, "fp8e4nv": 1, "u8": 1, "e8m0": 1}
LOG2_E = math.log2(math.e)


def add(x, y, o, B: Const):
    p = ct.bid(0)
    ct.store(o, (p,), ct.load(x, (p,), (B,)) + ct.load(y, (p,), (B,)))


def relu(x, o, B: Const):
    p = ct.bid(0)
    ct.store(o, (p,), ct.maximum(ct.load(x, (p,), (B,)), 0.0))


def divide(x, y, o, B: Const):
    p = ct.bid(0)
    ct.store(o, (p,), ct.load(x, (p,), (B,)) / ct.load(y, (p,), (B,)))


def swiglu(x, y, o, B: Const):
    p = ct.bid(0)
    a = ct.astype(ct.load(x, (p,), (B,)), ct.float32)
    b = ct.astype(ct.load(y, (p,), (B,)), ct.float32)
    ct.store(o, (p,), ct.astype(a / (1.0 + ct.exp(-a)) * b, o.dtype))


def place(B):
    return ct.arange(B, dtype=ct.int32)


def softmax(x, o, B: Const):
    r = ct.bid(0)
    v = ct.astype(ct.gather(x, (r, place(B)), padding_value=-math.inf), ct.float32)
    e = ct.exp(v - ct.max(v, 0, keepdims=True))
    ct.scatter(o, (r, place(B)), ct.astype(e / ct.sum(e, 0, keepdims=True), o.dtype))


def layernorm(x, w, b, o, n, eps, B: Const):
    r, at = ct.bid(0), place(B)
    v = ct.gather(x, (r, at))
    mean = ct.sum(v, 0, keepdims=True) / n
    d = ct.where(at < n, v - mean, 0.0)
    scale = 1.0 / ct.sqrt(ct.sum(d * d, 0, keepdims=True) / n + eps)
    ct.scatter(o, (r, at), d * scale * ct.gather(w, at) + ct.gather(b, at))


def rmsnorm_backward(x, w, g, dx, dw, n, eps, B: Const):
    r, at = ct.bid(0), place(B)
    v = ct.astype(ct.gather(x, (r, at)), ct.float32)
    dy = ct.astype(ct.gather(g, (r, at)), ct.float32)
    scale = ct.rsqrt(ct.sum(v * v, 0, keepdims=True) / n + eps)
    h = v * scale
    m = dy * ct.astype(ct.gather(w, at), ct.float32)
    mean = ct.sum(m * h, 0, keepdims=True) / n
    ct.scatter(dx, (r, at), ct.astype((m - h * mean) * scale, dx.dtype))
    ct.scatter(dw, (r, at), dy * h)


def cross_entropy(x, target, loss, dx, B: Const):
    r, at = ct.bid(0), place(B)
    t = ct.gather(target, r, check_bounds=False)
    v = ct.astype(ct.gather(x, (r, at), padding_value=-math.inf), ct.float32)
    top = ct.max(v, 0, keepdims=True)
    e = ct.exp(v - top)
    total = ct.sum(e, 0, keepdims=True)
    ct.scatter(loss, r, ct.reshape(ct.log(total) + top, ()) - ct.astype(ct.gather(x, (r, t)), ct.float32))
    ct.scatter(dx, (r, at), ct.astype(e / total - ct.where(at == t, 1.0, 0.0), dx.dtype))


def row_sum(x, o, n, B: Const):
    r = ct.bid(0)
    total = ct.zeros((1, B), ct.float32)
    for k in range(ct.cdiv(n, B)):
        total += ct.load(x, (r, k), (1, B), padding_mode=ZERO)
    ct.store(o, (r,), ct.sum(total, 1))


def cumsum_rows(x, o, B: Const):
    r = ct.bid(0)
    ct.scatter(o, (r, place(B)), ct.cumsum(ct.gather(x, (r, place(B))), 0))


def embedding(index, w, o, B: Const, BD: Const):
    i, d = ct.bid(0), ct.bid(1)
    at = ct.load(index, (i,), (B,), padding_mode=ZERO)
    place = d * BD + ct.arange(BD, dtype=ct.int32)
    ct.store(o, (i, d), ct.gather(w, (ct.expand_dims(at, 1), ct.expand_dims(place, 0))))


def rope(x, place, cosine, sine, o, BH: Const, I: Const):
    n, h = ct.bid(0), ct.bid(1)
    p = ct.gather(place, n, check_bounds=False)
    c = ct.load(cosine, (p, 0), (1, I)).reshape((1, 1, I))
    s = ct.load(sine, (p, 0), (1, I)).reshape((1, 1, I))
    a = ct.astype(ct.load(x, (n, h, 0), (1, BH, I)), ct.float32)
    b = ct.astype(ct.load(x, (n, h, 1), (1, BH, I)), ct.float32)
    ct.store(o, (n, h, 0), ct.astype(a * c - b * s, o.dtype))
    ct.store(o, (n, h, 1), ct.astype(a * s + b * c, o.dtype))


def gemv_split_k(a, x, o, K, BM: Const, BK: Const, SPLIT: Const):
    m, s = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BK), ct.float32)
    for k in range(s, ct.cdiv(K, BK), SPLIT):
        row = ct.astype(ct.load(x, (k,), (BK,), padding_mode=ZERO), ct.float32)
        acc += ct.astype(ct.load(a, (m, k), (BM, BK), padding_mode=ZERO), ct.float32) * ct.expand_dims(row, 0)
    ct.atomic_add(o, m * BM + ct.arange(BM, dtype=ct.int32), ct.sum(acc, 1), memory_order=ct.MemoryOrder.RELAXED)


def histogram(x, o, B: Const, BINS: Const):
    v = ct.load(x, (ct.bid(0),), (B,))
    ct.atomic_add(o, v, 1, memory_order=ct.MemoryOrder.RELAXED)


def gemm(a, b, c, K, BM: Const, BN: Const, BK: Const, COLUMNS: Const):
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), ct.int32 if a.dtype == ct.int8 else ct.float32)
    for k in range(ct.cdiv(K, BK)):
        x = ct.load(a, (m, k), (BM, BK), padding_mode=ZERO)
        if COLUMNS:
            y = ct.load(b, (k, n), (BK, BN), order="F", padding_mode=ZERO)
        else:
            y = ct.load(b, (k, n), (BK, BN), padding_mode=ZERO)
        acc = ct.mma(x, y, acc, use_fast_acc=a.dtype == ct.float8_e4m3fn)
    ct.store(c, (m, n), ct.astype(acc, c.dtype))


def gemm_tf32(a, b, c, K, BM: Const, BN: Const, BK: Const, COLUMNS: Const):
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(K, BK)):
        x = ct.astype(ct.load(a, (m, k), (BM, BK), padding_mode=ZERO), ct.tfloat32)
        acc = ct.mma(x, ct.astype(ct.load(b, (k, n), (BK, BN), padding_mode=ZERO), ct.tfloat32), acc)
    ct.store(c, (m, n), acc)


def gemm_u4(a, q, scale, zero, c, K, BM: Const, BN: Const, BK: Const, G: Const):
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(K, BK)):
        two = ct.load(q, (n, k), (BN, BK // 2))
        low = ct.astype(ct.expand_dims(two & 15, 2), ct.float16)
        high = ct.astype(ct.expand_dims(two >> 4, 2), ct.float16)
        w = ct.reshape(ct.cat((low, high), 2), (BN, BK))
        w = (w - ct.astype(ct.load(zero, (n, k * BK // G), (BN, 1)), ct.float16)) * ct.load(scale, (n, k * BK // G), (BN, 1))
        acc = ct.mma(ct.load(a, (m, k), (BM, BK), padding_mode=ZERO), ct.transpose(w), acc)
    ct.store(c, (m, n), ct.astype(acc, c.dtype))


def grouped(a, b, expert, c, K, BM: Const, BN: Const, BK: Const):
    m, n = ct.bid(0), ct.bid(1)
    e = ct.gather(expert, m, check_bounds=False)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(K, BK)):
        y = ct.load(b, (e, k, n), (1, BK, BN), order=(0, 2, 1), padding_mode=ZERO).reshape((BK, BN))
        acc = ct.mma(ct.load(a, (m, k), (BM, BK), padding_mode=ZERO), y, acc)
    ct.store(c, (m, n), ct.astype(acc, c.dtype))


def conv(x, w, y, H, W, C, BM: Const, BN: Const, BK: Const, KH: Const, KW: Const):
    m, k = ct.bid(0), ct.bid(1)
    at = m * BM + ct.arange(BM, dtype=ct.int32)
    p, q = at // W % H, at % W
    acc = ct.zeros((BM, BN), ct.float32)
    for t in range(KH * KW):
        dp, dq = t // KW - KH // 2, t % KW - KW // 2
        some = (p + dp >= 0) & (p + dp < H) & (q + dq >= 0) & (q + dq < W)
        pixel = ct.expand_dims(ct.where(some, at + dp * W + dq, -1), 1)
        for c in range(ct.cdiv(C, BK)):
            a = ct.gather(x, (pixel, ct.expand_dims(c * BK + ct.arange(BK, dtype=ct.int32), 0)), padding_value=0.0)
            acc = ct.mma(a, ct.load(w, (t, c, k), (1, BK, BN), padding_mode=ZERO).reshape((BK, BN)), acc)
    ct.store(y, (m, k), ct.astype(acc, y.dtype))


def gemm_mx(a, sa, w, sw, c, K, scale, BM: Const, BN: Const, BK: Const):
    m, n = ct.bid(0), ct.bid(1)
    acc = ct.zeros((BM, BN), ct.float32)
    for k in range(ct.cdiv(K, BK)):
        x = ct.load(a, (m, k), (BM, BK), padding_mode=ZERO)
        y = ct.load(w, (n, k), (BN, BK), padding_mode=ZERO)
        s = ct.load(sa, (m, k), (BM, BK // 32), padding_mode=ZERO)
        t = ct.load(sw, (n, k), (BN, BK // 32), padding_mode=ZERO)
        acc = ct.mma_scaled(x, s, ct.transpose(y), ct.transpose(t), acc)
    ct.store(c, (m, n), ct.astype(acc * scale, c.dtype))


def attention(q, k, v, o, n, scale, BM: Const, BN: Const, BD: Const, CAUSAL: Const):
    h, m = ct.bid(1), ct.bid(0)
    x = ct.load(q, (h, m, 0), (1, BM, BD)).reshape((BM, BD))
    top = ct.full((BM, 1), -math.inf, ct.float32)
    total = ct.zeros((BM, 1), ct.float32)
    acc = ct.zeros((BM, BD), ct.float32)
    by = scale * LOG2_E
    row = m * BM + ct.expand_dims(ct.arange(BM, dtype=ct.int32), 1)
    last = ct.cdiv((m + 1) * BM, BN) if CAUSAL else ct.cdiv(n, BN)
    masked = m * BM // BN if CAUSAL else last
    for j in range(last):
        s = ct.mma(x, ct.load(k, (h, 0, j), (1, BD, BN), order=(0, 2, 1)).reshape((BD, BN)), ct.zeros((BM, BN), ct.float32))
        if CAUSAL and j >= masked:
            s = ct.where(row >= j * BN + ct.expand_dims(ct.arange(BN, dtype=ct.int32), 0), s, -math.inf)
        new = ct.maximum(top, ct.max(s, 1, keepdims=True) * by)
        p = ct.exp2(s * by - new, flush_to_zero=True)
        rescale = ct.exp2(top - new, flush_to_zero=True)
        total = total * rescale + ct.sum(p, 1, keepdims=True)
        acc = ct.mma(ct.astype(p, ct.float16), ct.load(v, (h, j, 0), (1, BN, BD)).reshape((BN, BD)), acc * rescale)
        top = new
    ct.store(o, (h, m, 0), ct.astype(acc / total, o.dtype).reshape((1, BM, BD)))


def attention_dq(q, k, v, do, lse, delta, dq, n, scale, BM: Const, BN: Const, BD: Const):
    h, m = ct.bid(1), ct.bid(0)
    x = ct.load(q, (h, m, 0), (1, BM, BD)).reshape((BM, BD))
    g = ct.load(do, (h, m, 0), (1, BM, BD)).reshape((BM, BD))
    top = ct.load(lse, (h, m), (1, BM)).reshape((BM, 1)) * LOG2_E
    d = ct.load(delta, (h, m), (1, BM)).reshape((BM, 1))
    acc = ct.zeros((BM, BD), ct.float32)
    for j in range(ct.cdiv(n, BN)):
        keys = ct.load(k, (h, j, 0), (1, BN, BD)).reshape((BN, BD))
        s = ct.mma(x, ct.transpose(keys), ct.zeros((BM, BN), ct.float32))
        p = ct.exp2(s * (scale * LOG2_E) - top, flush_to_zero=True)
        values = ct.load(v, (h, 0, j), (1, BD, BN), order=(0, 2, 1)).reshape((BD, BN))
        ds = p * (ct.mma(g, values, ct.zeros((BM, BN), ct.float32)) - d)
        acc = ct.mma(ct.astype(ds, ct.float16), keys, acc)
    ct.store(dq, (h, m, 0), ct.astype(acc * scale, dq.dtype).reshape((1, BM, BD)))


def attention_dkdv(q, k, v, do, lse, delta, dk, dv, m, scale, BM: Const, BN: Const, BD: Const):
    h, n = ct.bid(1), ct.bid(0)
    keys = ct.load(k, (h, n, 0), (1, BN, BD)).reshape((BN, BD))
    values = ct.load(v, (h, n, 0), (1, BN, BD)).reshape((BN, BD))
    acc_k = ct.zeros((BN, BD), ct.float32)
    acc_v = ct.zeros((BN, BD), ct.float32)
    for i in range(ct.cdiv(m, BM)):
        x = ct.load(q, (h, i, 0), (1, BM, BD)).reshape((BM, BD))
        g = ct.load(do, (h, i, 0), (1, BM, BD)).reshape((BM, BD))
        top = ct.load(lse, (h, i), (1, BM)) * LOG2_E
        s = ct.mma(keys, ct.transpose(x), ct.zeros((BN, BM), ct.float32))
        p = ct.exp2(s * (scale * LOG2_E) - top, flush_to_zero=True)
        acc_v = ct.mma(ct.astype(p, ct.float16), g, acc_v)
        dp = ct.mma(values, ct.transpose(g), ct.zeros((BN, BM), ct.float32))
        ds = p * (dp - ct.load(delta, (h, i), (1, BM)))
        acc_k = ct.mma(ct.astype(ds, ct.float16), x, acc_k)
    ct.store(dk, (h, n, 0), ct.astype(acc_k * scale, dk.dtype).reshape((1, BN, BD)))
    ct.store(dv, (h, n, 0), ct.astype(acc_v, dv.dtype).reshape((1, BN, BD)))


# Kernel to numbers of axes of its arrays, in order.
AXES = {add: (1, 1, 1), relu: (1, 1), divide: (1, 1, 1), swiglu: (1, 1, 1), softmax: (2, 2), layernorm: (2, 1, 1, 2), rmsnorm_backward: (2, 1, 2, 2, 2),
        cross_entropy: (2, 1, 1, 2), row_sum: (2, 1), cumsum_rows: (2, 2), embedding: (1, 2, 2), rope: (3, 1, 2, 2, 3), gemv_split_k: (2, 1, 1),
        histogram: (1, 1), gemm: (2, 2, 2), gemm_tf32: (2, 2, 2), gemm_u4: (2, 2, 2, 2, 2), gemm_mx: (2, 2, 2, 2, 2), grouped: (2, 3, 1, 2), conv: (2, 3, 2), attention: (3, 3, 3, 3),
        attention_dq: (3, 3, 3, 3, 2, 2, 3), attention_dkdv: (3, 3, 3, 3, 2, 2, 3, 3)}
KERNELS = {f.__name__: f for f in AXES}
FLOATS = ("eps", "scale")


def array(kind, axes):
    by = 16 // BYTES[kind]
    return ArrayConstraint(TYPES[kind], axes, index_dtype=ct.int32, stride_lower_bound_incl=0, alias_groups=(), may_alias_internally=False,
                           stride_constant=[None] * (axes - 1) + [1], stride_divisible_by=[by] * (axes - 1) + [1], shape_divisible_by=[1] * (axes - 1) + [by],
                           base_addr_divisible_by=16)


def signature(f, types, constants):
    names, arrays, found = f.__code__.co_varnames[:f.__code__.co_argcount], list(zip(types, AXES[f])), []
    for i, name in enumerate(names):
        if i < len(AXES[f]):
            found.append(array(*arrays[i]))
        elif name in f.__annotations__:
            found.append(constants[name])
        else:
            found.append(ScalarConstraint(ct.float32 if name in FLOATS else ct.int32))
    return KernelSignature(found, CallingConvention.cutile_python_v1(), f.__name__)


def build(target, out, job, warps):
    f = KERNELS[job["kernel"]]
    more = {"num_ctas": job["ctas"]} if job.get("ctas", 1) > 1 else {}
    kernel = ct.kernel(f, **({"num_worker_warps": warps} if warps else {}), **more)
    export_kernel(kernel, [signature(f, job["types"], job["constants"])], f"{out}/{job['name']}.{warps}.cubin", gpu_code=target.rstrip("a"), output_format="cubin")


def main(target, out):
    for line in sys.stdin:
        job = json.loads(line)
        for warps in job["tries"]:
            answer = {"name": job["name"], "warps": warps, "version": ct.__version__}
            try:
                build(target, out, job, warps)
            except Exception as e:  # pylint: disable=broad-except
                answer["error"] = (str(e).strip() or type(e).__name__).split("\n")[0]
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
