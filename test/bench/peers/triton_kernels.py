"""The peers of kernels.tile in Triton (PyPI), compiled without a GPU:  triton_kernels.py TARGET OUTDIR NAME...

TARGET is sm_80 or gfx942 and so on. Writes OUTDIR/NAME.ptx, or OUTDIR/NAME.s of AMD, and prints a JSON object for each name. Pointers and sizes are declared
divisible by 16, as what tilec's aligned form asks for, but for those that a row names as odd.
"""
import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def relu(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.maximum(tl.load(x + i, mask=m), 0.0), mask=m)


@triton.jit
def divide(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) / tl.load(y + i, mask=m), mask=m)


@triton.jit
def swiglu(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(x + i, mask=m).to(tl.float32)
    b = tl.load(y + i, mask=m).to(tl.float32)
    tl.store(o + i, a * tl.sigmoid(a) * b, mask=m)


@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * n + c, e / tl.sum(e, 0), mask=c < n)


@triton.jit
def layernorm(x, w, b, o, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * n + c, mask=m, other=0.0)
    mean = tl.sum(v, 0) / n
    d = tl.where(m, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(o + r * n + c, d * scale * tl.load(w + c, mask=m) + tl.load(b + c, mask=m), mask=m)


@triton.jit
def rmsnorm_backward(x, w, g, dx, dw, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    v = tl.load(x + r * n + c, mask=m, other=0.0).to(tl.float32)
    dy = tl.load(g + r * n + c, mask=m, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    h = v * scale
    t = dy * tl.load(w + c, mask=m, other=0.0).to(tl.float32)
    mean = tl.sum(t * h, 0) / n
    tl.store(dx + r * n + c, (t - h * mean) * scale, mask=m)
    tl.store(dw + r * n + c, dy * h, mask=m)


@triton.jit
def cross_entropy(x, target, loss, dx, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    m = c < n
    t = tl.load(target + r)
    v = tl.load(x + r * n + c, mask=m, other=-float("inf")).to(tl.float32)
    top = tl.max(v, 0)
    e = tl.exp(v - top)
    total = tl.sum(e, 0)
    tl.store(loss + r, tl.log(total) + top - tl.load(x + r * n + t).to(tl.float32))
    tl.store(dx + r * n + c, e / total - tl.where(c == t, 1.0, 0.0), mask=m)


@triton.jit
def row_sum(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(0, n, B):
        total += tl.load(x + r * n + k + c, mask=k + c < n, other=0.0)
    tl.store(o + r, tl.sum(total, 0))


@triton.jit
def cumsum_rows(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    tl.store(o + r * n + c, tl.cumsum(v, 0), mask=c < n)


@triton.jit
def embedding(index, w, o, n, v, d, B: tl.constexpr, BD: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * BD + tl.arange(0, BD)
    j = tl.load(index + i, mask=i < n, other=0)
    inside = (i < n)[:, None] & (c < d)[None, :]
    tl.store(o + i[:, None] * d + c[None, :],
             tl.load(w + j[:, None] * d + c[None, :], mask=inside & (j >= 0)[:, None] & (j < v)[:, None], other=0.0), mask=inside)


@triton.jit
def gemm(a, b, c, M, N, K, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr, P: tl.constexpr,
         S: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), S)
    pa = a + i[:, None] * K + k[None, :]
    pb = (b + j[None, :] * sb + k[:, None]) if COLUMNS else (b + k[:, None] * N + j[None, :])
    for at in range(0, K, BK):
        x = tl.load(pa, mask=(i[:, None] < M) & (k[None, :] < K - at), other=0.0)
        y = tl.load(pb, mask=(j[None, :] < N) & (k[:, None] < K - at), other=0.0)
        acc = tl.dot(x, y, acc, input_precision=P, out_dtype=S)
        pa += BK
        pb += BK if COLUMNS else BK * N
    tl.store(c + i[:, None] * N + j[None, :], acc, mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def attention(q, k, v, o, m, n, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    h = tl.program_id(1)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    x = tl.load(q + (h * m + i[:, None]) * BD + d[None, :], mask=i[:, None] < m, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    by = scale * 1.44269504
    for s in range(0, n, BN):
        j = h * n + s + tl.arange(0, BN)
        s2 = tl.dot(x, tl.trans(tl.load(k + j[:, None] * BD + d[None, :])))
        new = tl.maximum(top, tl.max(s2, 1) * by)
        p = tl.math.exp2(s2 * by - new[:, None])
        rescale = tl.math.exp2(top - new)
        total = total * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + j[:, None] * BD + d[None, :]), acc * rescale[:, None])
        top = new
    tl.store(o + (h * m + i[:, None]) * BD + d[None, :], (acc / total[:, None]).to(tl.float16), mask=i[:, None] < m)


@triton.jit
def fused_moe(a, b, weight, order, expert, c, N, K, S, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TOP: tl.constexpr):
    i = tl.load(order + tl.program_id(0) * BM + tl.arange(0, BM))
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    e = tl.load(expert + tl.program_id(0)).to(tl.int64)
    some = i < S
    acc = tl.zeros((BM, BN), tl.float32)
    pa = a + (i[:, None] // TOP) * K + k[None, :]
    pb = b + e * N * K + j[None, :] * K + k[:, None]
    for at in range(0, K, BK):
        x = tl.load(pa, mask=some[:, None] & (k[None, :] < K - at), other=0.0)
        y = tl.load(pb, mask=(j[None, :] < N) & (k[:, None] < K - at), other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK
    acc *= tl.load(weight + i, mask=some, other=0.0)[:, None]
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=some[:, None] & (j[None, :] < N))


@triton.jit
def chunk_scan(cb, x, dt, decay, c, states, o, L, P, D, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BD: tl.constexpr):
    g = tl.program_id(2)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    d = tl.arange(0, BD)
    a = tl.load(decay + g * L + i, mask=i < L, other=0.0)
    y = tl.load(c + (g * L + i[:, None]) * D + d[None, :], mask=(i[:, None] < L) & (d[None, :] < D), other=0.0)
    z = tl.load(states + (g * P + j[None, :]) * D + d[:, None], mask=(j[None, :] < P) & (d[:, None] < D), other=0.0)
    acc = tl.dot(y, z) * tl.exp(a)[:, None]
    for at in range(0, tl.minimum((tl.program_id(0) + 1) * BM, L), BK):
        inside = at + k < L
        w = tl.load(cb + (g * L + i[:, None]) * L + at + k[None, :], mask=(i[:, None] < L) & inside[None, :], other=0.0).to(tl.float32)
        b = tl.load(decay + g * L + at + k, mask=inside, other=0.0)
        w *= tl.exp(a[:, None] - b[None, :]) * tl.load(dt + g * L + at + k, mask=inside, other=0.0)[None, :]
        w = tl.where(i[:, None] >= at + k[None, :], w, 0.0)
        v = tl.load(x + (g * L + at + k[:, None]) * P + j[None, :], mask=inside[:, None] & (j[None, :] < P), other=0.0)
        acc = tl.dot(w.to(tl.float16), v, acc)
    tl.store(o + (g * L + i[:, None]) * P + j[None, :], acc.to(tl.float16), mask=(i[:, None] < L) & (j[None, :] < P))


FLOATS = ("eps", "scale")  # floats


def signature(name, types):
    """Of a kernel whose pointers have these types, in order; what is no pointer is an i32, or a float."""
    kernel, types, kinds = globals()[name], list(types), {}
    pointers = POINTERS[name]
    for a in kernel.arg_names:
        constant = a[0].isupper() and len(a) > 1 or a in ("B", "S", "P") and kernel.params[kernel.arg_names.index(a)].is_constexpr
        kinds[a] = "constexpr" if constant else "fp32" if a in FLOATS else f"*{types[pointers.index(a)]}" if a in pointers else "i32"
    return kernel, kinds


POINTERS = {"add": ["x", "y", "o"], "relu": ["x", "o"], "divide": ["x", "y", "o"], "swiglu": ["x", "y", "o"], "softmax": ["x", "o"],
            "layernorm": ["x", "w", "b", "o"], "rmsnorm_backward": ["x", "w", "g", "dx", "dw"],
            "cross_entropy": ["x", "target", "loss", "dx"], "row_sum": ["x", "o"], "cumsum_rows": ["x", "o"],
            "embedding": ["index", "w", "o"], "gemm": ["a", "b", "c"],
            "fused_moe": ["a", "b", "weight", "order", "expert", "c"], "chunk_scan": ["cb", "x", "dt", "decay", "c", "states", "o"], "attention": ["q", "k", "v", "o"]}


def build(target, job):
    kernel, kinds = signature(job["kernel"], job["types"])
    constants = {k: getattr(tl, v) if isinstance(v, str) and v in ("float32", "int32") else v for k, v in job["constants"].items()}
    attributes = {(i,): [["tt.divisibility", 16]] for i, k in enumerate(kernel.arg_names) if (kinds[k][0] == "*" or kinds[k] == "i32") and k not in job.get("odd", [])}
    source = ASTSource(kernel, kinds, {(kernel.arg_names.index(k),): v for k, v in constants.items()}, attributes)
    options = dict(num_warps=job["warps"], num_stages=job["stages"])
    return triton.compile(source, target=gpu_target(target), options=options)


def is_amd(target):
    return target.startswith("gfx")


def gpu_target(target):
    if is_amd(target):
        return GPUTarget("hip", target, 64 if target.startswith("gfx9") else 32)
    return GPUTarget("cuda", int(target[3:5]), 32)


def main(target, out):
    for line in sys.stdin:
        job = json.loads(line)
        try:
            with open(f"{out}/{job['name']}.{'s' if is_amd(target) else 'ptx'}", "w", encoding="utf-8") as f:
                f.write(build(target, job).asm["amdgcn" if is_amd(target) else "ptx"])
            print(json.dumps({"name": job["name"], "version": triton.__version__}), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print(json.dumps({"name": job["name"], "error": str(e).strip().split("\n")[0]}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
