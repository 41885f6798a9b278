#!/usr/bin/env python3
"""The kernels of device_bench by others, on the same machine: PyTorch (cuBLAS for the product) and Triton.

    peers.py '[["softmax", [16384, 4096, 1]], ...]'      prints lines of JSON as device_bench does, with "peer"

Medians of many launches, each between two events. f32 products without TF32. What fails is a row with its text.
"""
import json
import statistics
import sys

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

WARM, REPEAT = 3, 30
torch.backends.cuda.matmul.allow_tf32 = False

if triton:

    @triton.jit
    def add_kernel(x, y, z, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(z + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

    @triton.jit
    def softmax_kernel(x, y, n, B: tl.constexpr):
        i = tl.arange(0, B)
        row = tl.program_id(0).to(tl.int64) * n
        v = tl.load(x + row + i, i < n, other=-float("inf"))
        e = tl.exp(v - tl.max(v, 0))
        tl.store(y + row + i, e / tl.sum(e, 0), i < n)

    @triton.jit
    def norm_kernel(x, w, b, y, n, B: tl.constexpr):
        i = tl.arange(0, B)
        row = tl.program_id(0).to(tl.int64) * n
        v = tl.load(x + row + i, i < n, other=0.0)
        d = tl.where(i < n, v - tl.sum(v, 0) / n, 0.0)
        scale = 1 / tl.sqrt(tl.sum(d * d, 0) / n + 1e-5)
        tl.store(y + row + i, d * scale * tl.load(w + i, i < n) + tl.load(b + i, i < n), i < n)

    @triton.jit
    def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        pid = tl.program_id(0)
        m = (pid % tl.cdiv(M, BM)) * BM + tl.arange(0, BM)
        n = (pid // tl.cdiv(M, BM)) * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            x = tl.load(a + m[:, None] * K + (k0 + k)[None, :], (m[:, None] < M) & ((k0 + k)[None, :] < K), other=0.0)
            y = tl.load(b + (k0 + k)[:, None] * N + n[None, :], ((k0 + k)[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(x, y, acc, input_precision="ieee")
        tl.store(c + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


def median_us(call):
    times = []
    for i in range(WARM + REPEAT):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        if i >= WARM:
            times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def power_of_two(n):
    return 1 << (n - 1).bit_length()


def random(*shape):
    return torch.rand(*shape, device="cuda") * 2 - 1


def vector_add(m, _n, _k):
    x, y, z = random(m), random(m), torch.empty(m, device="cuda")
    yield "torch", lambda: torch.add(x, y, out=z), lambda: z, x + y
    if triton:
        yield "triton", lambda: add_kernel[(triton.cdiv(m, 1024),)](x, y, z, m, B=1024), lambda: z, x + y


def softmax(m, n, _k):
    x = random(m, n)
    y = torch.empty_like(x)
    want = torch.softmax(x, 1)
    yield "torch", lambda: torch.softmax(x, 1, dtype=torch.float32), lambda: want, want
    if triton:
        b = power_of_two(n)
        yield "triton", lambda: softmax_kernel[(m,)](x, y, n, B=b, num_warps=8 if b > 1024 else 4), lambda: y, want


def layernorm(m, n, _k):
    x, w, b = random(m, n), random(n), random(n)
    y = torch.empty_like(x)
    want = torch.nn.functional.layer_norm(x, (n,), w, b)
    yield "torch", lambda: torch.nn.functional.layer_norm(x, (n,), w, b), lambda: want, want
    if triton:
        size = power_of_two(n)
        yield "triton", lambda: norm_kernel[(m,)](x, w, b, y, n, B=size, num_warps=8 if size > 1024 else 4), lambda: y, want


def matmul_f32(m, n, k):
    a, b, c = random(m, k), random(k, n), torch.empty(m, n, device="cuda")
    want = a @ b
    yield "cublas", lambda: torch.mm(a, b, out=c), lambda: c, want
    for bm, bn, bk, warps in ((64, 64, 32, 4), (128, 64, 16, 8)) if triton else ():
        grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
        yield (f"triton {bm}x{bn}x{bk}",
               lambda g=grid, t=(bm, bn, bk), w=warps: matmul_kernel[g](a, b, c, m, n, k, *t, num_warps=w), lambda: c, want)


def figures(what, size):
    """Bytes and operations, as device_bench counts them."""
    m, n, k = size
    return {"vector_add": (12 * m, m), "softmax": (8 * m * n, 5 * m * n), "layernorm": (8 * m * n, 8 * m * n),
            "matmul_f32": (4 * (m * k + k * n + m * n), 2 * m * n * k)}[what]


def one(what, size, peer, call, got, want):
    row = {"what": what, "size": size, "peer": peer}
    try:
        us = median_us(call)
        error = float((got() - want).abs().max() / want.abs().max())
        if not error < 1e-4:
            raise ValueError(f"error {error}")
        bytes_, flops = figures(what, size)
        row.update(us=round(us, 3), gb_s=round(bytes_ / us * 1e-3, 1), gflop_s=round(flops / us * 1e-3, 1))
    except Exception as e:
        row["failed"] = f"{type(e).__name__}: {str(e)[:300]}"
    print(json.dumps(row), flush=True)


def main():
    seen = []
    for what, size in json.loads(sys.argv[1]):
        if (what, size) in seen or what == "launch":
            continue
        seen.append((what, size))
        torch.cuda.empty_cache()
        for peer, call, got, want in globals()[what](*size):
            one(what, size, peer, call, got, want)
    print(f"torch {torch.__version__}, triton {triton.__version__ if triton else 'none'}")


if __name__ == "__main__":
    main()
