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
def attention(q, k, v, o, m, n, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, CAUSAL: tl.constexpr):
    h = tl.program_id(1)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, BD)
    x = tl.load(q + (h * m + i[:, None]) * BD + d[None, :], mask=i[:, None] < m, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    by = scale * 1.44269504
    for s in range(0, tl.minimum((tl.program_id(0) + 1) * BM, n) if CAUSAL else n, BN):
        j = h * n + s + tl.arange(0, BN)
        s2 = tl.dot(x, tl.trans(tl.load(k + j[:, None] * BD + d[None, :])))
        if CAUSAL:
            if s + BN > tl.program_id(0) * BM + 1:
                s2 = tl.where(i[:, None] >= s + tl.arange(0, BN)[None, :], s2, -float("inf"))
        new = tl.maximum(top, tl.max(s2, 1) * by)
        p = tl.math.exp2(s2 * by - new[:, None])
        rescale = tl.math.exp2(top - new)
        total = total * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v + j[:, None] * BD + d[None, :]), acc * rescale[:, None])
        top = new
    tl.store(o + (h * m + i[:, None]) * BD + d[None, :], (acc / total[:, None]).to(tl.float16), mask=i[:, None] < m)


@triton.jit
def attention_tma(q, k, v, o, m, n, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, CAUSAL: tl.constexpr):
    h = tl.program_id(1)
    at = tl.program_id(0) * BM
    i = at + tl.arange(0, BM)
    keys = tl.make_tensor_descriptor(k + h * n * BD, [n, BD], [BD, 1], [BN, BD])
    values = tl.make_tensor_descriptor(v + h * n * BD, [n, BD], [BD, 1], [BN, BD])
    x = tl.make_tensor_descriptor(q + h * m * BD, [m, BD], [BD, 1], [BM, BD]).load([at, 0])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    by = scale * 1.44269504
    for s in range(0, tl.minimum(at + BM, n) if CAUSAL else n, BN):
        s2 = tl.dot(x, keys.load([s, 0]).T)
        if CAUSAL:
            if s + BN > at + 1:
                s2 = tl.where(i[:, None] >= s + tl.arange(0, BN)[None, :], s2, -float("inf"))
        new = tl.maximum(top, tl.max(s2, 1) * by)
        p = tl.math.exp2(s2 * by - new[:, None])
        rescale = tl.math.exp2(top - new)
        total = total * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), values.load([s, 0]), acc * rescale[:, None])
        top = new
    tl.make_tensor_descriptor(o + h * m * BD, [m, BD], [BD, 1], [BM, BD]).store([at, 0], (acc / total[:, None]).to(tl.float16))


@triton.jit
def rows_of(p, h, n, at, BN: tl.constexpr, BD: tl.constexpr, TMA: tl.constexpr):
    if TMA:
        return tl.make_tensor_descriptor(p + h * n * BD, [n, BD], [BD, 1], [BN, BD]).load([at, 0])
    return tl.load(p + (h * n + at + tl.arange(0, BN))[:, None] * BD + tl.arange(0, BD)[None, :])


@triton.jit
def attention_dq(q, k, v, g, lse, delta, dq, m, n, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, TMA: tl.constexpr):
    h = tl.program_id(1)
    at = tl.program_id(0) * BM
    i = at + tl.arange(0, BM)
    x = rows_of(q, h, m, at, BM, BD, TMA)
    up = rows_of(g, h, m, at, BM, BD, TMA)
    top = tl.load(lse + h * m + i, mask=i < m, other=0.0) * 1.44269504
    d = tl.load(delta + h * m + i, mask=i < m, other=0.0)
    acc = tl.zeros((BM, BD), tl.float32)
    if TMA:
        keys = tl.make_tensor_descriptor(k + h * n * BD, [n, BD], [BD, 1], [BN, BD])
        values = tl.make_tensor_descriptor(v + h * n * BD, [n, BD], [BD, 1], [BN, BD])
    for s in range(0, n, BN):
        y = keys.load([s, 0]) if TMA else rows_of(k, h, n, s, BN, BD, False)
        z = values.load([s, 0]) if TMA else rows_of(v, h, n, s, BN, BD, False)
        p = tl.math.exp2(tl.dot(x, y.T) * (scale * 1.44269504) - top[:, None])
        ds = p * (tl.dot(up, z.T) - d[:, None])
        acc = tl.dot(ds.to(tl.float16), y, acc)
    tl.store(dq + (h * m + i)[:, None] * BD + tl.arange(0, BD)[None, :], (acc * scale).to(tl.float16), mask=i[:, None] < m)


@triton.jit
def attention_dkdv(q, k, v, g, lse, delta, dk, dv, m, n, scale, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, TMA: tl.constexpr):
    h = tl.program_id(1)
    at = tl.program_id(0) * BN
    j = at + tl.arange(0, BN)
    y = rows_of(k, h, n, at, BN, BD, TMA)
    z = rows_of(v, h, n, at, BN, BD, TMA)
    acc_k = tl.zeros((BN, BD), tl.float32)
    acc_v = tl.zeros((BN, BD), tl.float32)
    if TMA:
        queries = tl.make_tensor_descriptor(q + h * m * BD, [m, BD], [BD, 1], [BM, BD])
        ups = tl.make_tensor_descriptor(g + h * m * BD, [m, BD], [BD, 1], [BM, BD])
    for s in range(0, m, BM):
        x = queries.load([s, 0]) if TMA else rows_of(q, h, m, s, BM, BD, False)
        up = ups.load([s, 0]) if TMA else rows_of(g, h, m, s, BM, BD, False)
        i = h * m + s + tl.arange(0, BM)
        p = tl.math.exp2(tl.dot(y, x.T) * (scale * 1.44269504) - (tl.load(lse + i) * 1.44269504)[None, :])
        acc_v = tl.dot(p.to(tl.float16), up, acc_v)
        ds = p * (tl.dot(z, up.T) - tl.load(delta + i)[None, :])
        acc_k = tl.dot(ds.to(tl.float16), x, acc_k)
    place = (h * n + j)[:, None] * BD + tl.arange(0, BD)[None, :]
    tl.store(dk + place, (acc_k * scale).to(tl.float16), mask=j[:, None] < n)
    tl.store(dv + place, acc_v.to(tl.float16), mask=j[:, None] < n)


@triton.jit
def gemm_tma(a, b, c, M, N, K, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr, P: tl.constexpr,
             S: tl.constexpr):
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), S)
    pa = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    if COLUMNS:
        pb = tl.make_tensor_descriptor(b, [N, K], [sb, 1], [BN, BK])
    else:
        pb = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    for at in range(0, K, BK):
        y = pb.load([j, at]).T if COLUMNS else pb.load([at, j])
        acc = tl.dot(pa.load([i, at]), y, acc, input_precision=P, out_dtype=S)
    tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN]).store([i, j], acc)


@triton.jit
def gemm_u4(a, q, scale, zero, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    half = tl.arange(0, BK // 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + at + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K - at), other=0.0)
        two = tl.load(q + j[:, None] * (K // 2) + at // 2 + half[None, :], mask=j[:, None] < N, other=0)
        w = tl.interleave((two & 15).to(tl.float16), (two >> 4).to(tl.float16))
        group = j * (K // G) + at // G
        s = tl.load(scale + group, mask=j < N, other=0.0)
        z = tl.load(zero + group, mask=j < N, other=0).to(tl.float16)
        acc = tl.dot(x, ((w - z[:, None]) * s[:, None]).T, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def grouped(a, b, expert, c, M, N, K, E, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    e = tl.load(expert + tl.program_id(0))
    acc = tl.zeros((BM, BN), tl.float32)
    pa = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    pb = tl.make_tensor_descriptor(b, [E * N, K], [K, 1], [BN, BK])
    for at in range(0, K, BK):
        acc = tl.dot(pa.load([i, at]), pb.load([e * N + j, at]).T, acc)
    tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN]).store([i, j], acc.to(tl.float16))


@triton.jit
def conv(x, w, y, L, H, W, C, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr):
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * BN + tl.arange(0, BN)
    p = at // W % H
    q = at % W
    acc = tl.zeros((BM, BN), tl.float32)
    for t in range(KH * KW):
        dp = t // KW - KH // 2
        dq = t % KW - KW // 2
        some = (at < L) & (p + dp >= 0) & (p + dp < H) & (q + dq >= 0) & (q + dq < W)
        px = x + (at + dp * W + dq)[:, None] * C
        pw = w + t * C * K + k[None, :]
        for s in range(0, C, BK):
            c = s + tl.arange(0, BK)
            a = tl.load(px + c[None, :], mask=some[:, None] & (c < C)[None, :], other=0.0)
            b = tl.load(pw + c[:, None] * K, mask=(c < C)[:, None] & (k < K)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
    tl.store(y + at[:, None] * K + k[None, :], acc.to(tl.float16), mask=(at < L)[:, None] & (k < K)[None, :])


@triton.jit
def gemm_mx4(a, sa, w, sw, c, scale, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TMA: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK // 2)
    g = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    if TMA:
        pa = tl.make_tensor_descriptor(a, [M, K // 2], [K // 2, 1], [BM, BK // 2])
        pw = tl.make_tensor_descriptor(w, [N, K // 2], [K // 2, 1], [BN, BK // 2])
    for at in range(0, K, BK):
        if TMA:
            x = pa.load([tl.program_id(0) * BM, at // 2])
            y = pw.load([tl.program_id(1) * BN, at // 2])
        else:
            x = tl.load(a + i[:, None] * (K // 2) + at // 2 + k[None, :], mask=(i[:, None] < M) & (k[None, :] < (K - at) // 2), other=0)
            y = tl.load(w + j[:, None] * (K // 2) + at // 2 + k[None, :], mask=(j[:, None] < N) & (k[None, :] < (K - at) // 2), other=0)
        left = (K - at) // 32
        s = tl.load(sa + i[:, None] * (K // 32) + at // 32 + g[None, :], mask=(i[:, None] < M) & (g[None, :] < left), other=0)
        t = tl.load(sw + j[:, None] * (K // 32) + at // 32 + g[None, :], mask=(j[:, None] < N) & (g[None, :] < left), other=0)
        x = x.to(tl.uint8, bitcast=True)
        y = y.to(tl.uint8, bitcast=True)
        acc = tl.dot_scaled(x, s.to(tl.uint8, bitcast=True), "e2m1", y.T, t.to(tl.uint8, bitcast=True), "e2m1", acc)
    tl.store(c + i[:, None] * N + j[None, :], (acc * scale).to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def gemm_mx(a, sa, w, sw, c, scale, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TMA: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    g = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    if TMA:
        pa = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
        pw = tl.make_tensor_descriptor(w, [N, K], [K, 1], [BN, BK])
    for at in range(0, K, BK):
        if TMA:
            x = pa.load([tl.program_id(0) * BM, at])
            y = pw.load([tl.program_id(1) * BN, at])
        else:
            x = tl.load(a + i[:, None] * K + at + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K - at), other=0.0)
            y = tl.load(w + j[:, None] * K + at + k[None, :], mask=(j[:, None] < N) & (k[None, :] < K - at), other=0.0)
        left = (K - at) // 32
        s = tl.load(sa + i[:, None] * (K // 32) + at // 32 + g[None, :], mask=(i[:, None] < M) & (g[None, :] < left), other=0)
        t = tl.load(sw + j[:, None] * (K // 32) + at // 32 + g[None, :], mask=(j[:, None] < N) & (g[None, :] < left), other=0)
        acc = tl.dot_scaled(x, s.to(tl.uint8, bitcast=True), "e4m3", y.T, t.to(tl.uint8, bitcast=True), "e4m3", acc)
    tl.store(c + i[:, None] * N + j[None, :], (acc * scale).to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def rope(x, place, cosine, sine, o, H, P, BH: tl.constexpr, I: tl.constexpr):
    n = tl.program_id(0)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    d = tl.arange(0, I)
    p = tl.load(place + n)
    row = (p >= 0) & (p < P)
    c = tl.load(cosine + p * I + d, mask=row, other=0.0)[None, :]
    s = tl.load(sine + p * I + d, mask=row, other=0.0)[None, :]
    at = (n * H + h)[:, None] * (2 * I) + d[None, :]
    m = (h < H)[:, None]
    a = tl.load(x + at, mask=m, other=0.0).to(tl.float32)
    b = tl.load(x + at + I, mask=m, other=0.0).to(tl.float32)
    tl.store(o + at, (a * c - b * s).to(tl.float16), mask=m)
    tl.store(o + at + I, (a * s + b * c).to(tl.float16), mask=m)


@triton.jit
def gemv_split_k(a, x, o, m, n, BM: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BK), tl.float32)
    for at in range(tl.program_id(1) * BK, n, SPLIT * BK):
        w = tl.load(a + i[:, None] * n + at + k[None, :], mask=(i < m)[:, None] & (at + k < n)[None, :], other=0.0).to(tl.float32)
        acc += w * tl.load(x + at + k, mask=at + k < n, other=0.0).to(tl.float32)[None, :]
    tl.atomic_add(o + i, tl.sum(acc, 1), mask=i < m, sem="relaxed")


@triton.jit
def histogram_of(x, o, n, B: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(o + tl.arange(0, BINS), tl.histogram(v, BINS, mask=i < n), sem="relaxed")


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
        constant = kernel.params[kernel.arg_names.index(a)].is_constexpr
        kinds[a] = "constexpr" if constant else f"*{types[pointers.index(a)]}" if a in pointers else "fp32" if a in FLOATS else "i32"
    return kernel, kinds


POINTERS = {"add": ["x", "y", "o"], "relu": ["x", "o"], "divide": ["x", "y", "o"], "swiglu": ["x", "y", "o"], "softmax": ["x", "o"],
            "layernorm": ["x", "w", "b", "o"], "rmsnorm_backward": ["x", "w", "g", "dx", "dw"],
            "cross_entropy": ["x", "target", "loss", "dx"], "row_sum": ["x", "o"], "cumsum_rows": ["x", "o"],
            "embedding": ["index", "w", "o"], "gemm": ["a", "b", "c"], "gemm_tma": ["a", "b", "c"], "gemm_u4": ["a", "q", "scale", "zero", "c"],
            "fused_moe": ["a", "b", "weight", "order", "expert", "c"], "chunk_scan": ["cb", "x", "dt", "decay", "c", "states", "o"],
            "attention": ["q", "k", "v", "o"], "attention_tma": ["q", "k", "v", "o"],
            "attention_dq": ["q", "k", "v", "g", "lse", "delta", "dq"], "attention_dkdv": ["q", "k", "v", "g", "lse", "delta", "dk", "dv"],
            "grouped": ["a", "b", "expert", "c"], "conv": ["x", "w", "y"], "gemm_mx4": ["a", "sa", "w", "sw", "c"],
            "gemm_mx": ["a", "sa", "w", "sw", "c"], "rope": ["x", "place", "cosine", "sine", "o"], "gemv_split_k": ["a", "x", "o"], "histogram_of": ["x", "o"]}


def build(target, job):
    kernel, kinds = signature(job["kernel"], job["types"])
    constants = {k: getattr(tl, v) if isinstance(v, str) and v in ("float32", "int32") else v for k, v in job["constants"].items()}
    attributes = {(i,): [["tt.divisibility", 16]] for i, k in enumerate(kernel.arg_names) if (kinds[k][0] == "*" or kinds[k] == "i32") and k not in job.get("odd", [])}
    source = ASTSource(kernel, kinds, {(kernel.arg_names.index(k),): v for k, v in constants.items()}, attributes)
    options = dict(num_warps=job["warps"], num_stages=job["stages"], num_ctas=job.get("ctas", 1))
    return triton.compile(source, target=gpu_target(target), options=options)


def is_amd(target):
    return target.startswith("gfx")


def gpu_target(target):
    if is_amd(target):
        return GPUTarget("hip", target, 64 if target.startswith("gfx9") else 32)
    return GPUTarget("cuda", int(target[3:].rstrip("af")), 32)


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
