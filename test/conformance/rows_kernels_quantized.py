"""std.kernels.quantized and std.kernels.moe against NumPy."""
from kernel_library import Arr, EPS, bytes_as, exact, f64, kernel_row, near, np, poison, rounded, within
from values import ints, normal, rng, small, wide

# ---- to few bits ----------------------------------------------------------------------------------------------------
for t, m, k, bk in (("f16", 5, 33, 64), ("bf16", 1, 1, 1), ("f32", 3, 40, 40)):
    def want(a):
        (x,) = f64(a, "x")
        scale = np.abs(x).max(1) / 127
        return {"q": exact(np.rint(x / scale[:, None])), "scale": within(scale, 2 * EPS * scale)}
    x = normal(t, 1, m, k)
    kernel_row("quantized", "quantize_rows_i8", f"{t}_{m}x{k}",
               {"x": x, "q": poison("i8", m, k), "scale": poison("f32", m)}, want, T=t, BK=bk)

for t, q, m, k, g in (("f16", "f8e4m3", 9, 70, 32), ("f32", "f8e5m2", 3, 128, 128), ("bf16", "f8e4m3", 1, 1, 16)):
    def want(a, q=q, g=g):
        (x,) = f64(a, "x")
        groups = np.pad(x, ((0, 0), (0, -x.shape[1] % g))).reshape(len(x), -1, g)
        scale = np.abs(groups).max(2) / {"f8e4m3": 448, "f8e5m2": 57344}[q]
        whole = np.repeat(scale, g, 1)[:, :x.shape[1]]
        return {
            "scale": within(scale, 3 * EPS * scale),
            "q": within(x / whole, 2.0**(-3 if q == "f8e4m3" else -2) * np.abs(x / whole) / 2 * 1.01 + 2.0**-10)
        }

    kernel_row("quantized", "quantize_groups_f8", f"{t}_{q}_{m}x{k}",
               {"x": normal(t, 2, m, k), "q": poison(q, m, k), "scale": poison("f32", m, -(-k // g))}, want, T=t, Q=q,
               G=g)


def to_mx(x, top, greatest):
    """Numbers and exponents of blocks of 32."""
    blocks = x.reshape(len(x), -1, 32)
    e = np.clip(np.frexp(np.abs(blocks).max(2))[1] - 1 + 127 - top, 0, 254 - top)
    return np.clip(blocks / np.ldexp(1.0, e - 127)[..., None], -greatest, greatest).reshape(x.shape), e


for t, q, m, k in (("f16", "f8e4m3", 5, 96), ("f32", "f8e5m2", 9, 160), ("bf16", "f8e4m3", 1, 32)):
    def want(a, q=q):
        (x,) = f64(a, "x")
        y, e = to_mx(x, *((8, 448) if q == "f8e4m3" else (15, 57344)))
        return {
            "q": within(y,
                        np.abs(y) * 2.0**(-4 if q == "f8e4m3" else -3) + 2.0**-10), "scale": exact(e.astype(np.uint8))
        }

    kernel_row("quantized", "quantize_mx", f"{t}_{q}_{m}x{k}",
               {"x": normal(t, 3, m, k), "q": poison(q, m, k), "scale": poison("u8", m, k // 32)}, want, T=t, Q=q)


# ---- 4 bits with scales and zeros ------------------------------------------------------------------------------------
def powers(t, seed, *shape):
    return bytes_as(t, 2.0 ** rng(seed).integers(-3, 2, shape))


for t, m, n, k, g, zero in (("f16", 33, 40, 130, 32, True), ("bf16", 5, 33, 64, 64, False), ("f16", 1, 1, 2, 128, True),
                            ("f16", 20, 7, 128, 128, True)):
    w = rng(4).integers(0, 16, (n, k))
    groups = -(-k // g)
    packed = Arr("u4", (w[:, ::2] | w[:, 1::2] << 4).astype(np.uint8))
    zeros_of = ints("u8", 5, 0, 16, n, groups) if zero else Arr("u8", np.zeros((0, 0), np.uint8))

    def weight(a, w=w, g=g, zero=zero, k=k):
        whole = lambda s: np.repeat(s.astype(float), g, 1)[:, :k]
        return (w - (whole(a["zero"]) if zero else 8)) * whole(a["scale"])

    kernel_row(
        "quantized", "gemm_u4", f"{t}_{m}x{n}x{k}_by_{g}", {
            "A": small(t, 6, m, k, lo=-2, hi=3), "q": packed, "scale": powers(t, 7, n, groups), "zero": zeros_of,
            "C": poison("f32", m, n)
        }, lambda a, weight=weight: {"C": exact(a["A"].astype(float) @ weight(a).T)}, T=t, O="f32", ZERO=zero, G=g,
        BM=32, BN=32)
    kernel_row(
        "quantized", "gemv_u4", f"{t}_{n}x{k}_by_{g}", {
            "x": small(t, 6, k, lo=-2, hi=3), "q": Arr("u8", packed.store), "scale": powers(t, 7, n, groups),
            "zero": zeros_of, "y": poison("f32", n)
        }, lambda a, weight=weight: {"y": exact(weight(a) @ a["x"].astype(float))}, T=t, O="f32", ZERO=zero, G=g,
        BK=2 * g)


# ---- ggml's blocks ---------------------------------------------------------------------------------------------------
def ggml(kind, seed, n, l):
    """Bytes of blocks, and the numbers that they are."""
    d = (2.0 ** rng(seed).integers(-3, 2, (n, l))).astype(np.float16)
    if kind == "q4_0":
        q = rng(seed + 1).integers(0, 16, (n, l, 32))
        data, numbers = (q[..., :16] | q[..., 16:] << 4).astype(np.uint8), q - 8
    else:
        q = rng(seed + 1).integers(-5, 6, (n, l, 32))
        data, numbers = q.astype(np.int8).view(np.uint8), q
    return Arr("u8", np.concatenate([d[..., None].view(np.uint8), data],
                                    2)), (numbers * d[..., None].astype(float)).reshape(n, l * 32)


for kind in ("q4_0", "q8_0"):
    for t, m, n, l in (("f16", 33, 40, 3), ("f32", 1, 1, 1), ("bf16", 5, 33, 4), ("f16", 3, 3, 0)):
        blocks, w = ggml(kind, 8, n, l)
        kernel_row("quantized", f"gemm_{kind}", f"{t}_{m}x{n}x{l}",
                   {"A": small(t, 9, m, 32 * l, lo=-2, hi=3), "W": blocks, "C": poison("f32", m, n)},
                   lambda a, w=w: {"C": exact(a["A"].astype(float) @ w.T)}, T=t, O="f32", BM=16, BN=16)
        kernel_row("quantized", f"gemv_{kind}", f"{t}_{n}x{l}",
                   {"W": blocks, "x": small(t, 9, 32 * l, lo=-2, hi=3), "y": poison("f32", n)},
                   lambda a, w=w: {"y": exact(w @ a["x"].astype(float))}, T=t, O="f32", BL=2)
    # A that i8 holds: each 32 have a 127, so that their scale is 1
    for t, m, n, l, bm, bn in (("f16", 33, 40, 3, 16, 32), ("f32", 1, 1, 1, 16, 16), ("bf16", 5, 33, 4, 8, 48),
                               ("f32", 4, 130, 2, 16, 128), ("f16", 3, 3, 0, 4, 4),
                               ("f32", 2, 131, 133, 16, 128), ("f32", 9, 70, 5, 16, 64),
                               ("f32", 14, 13, 131, 16, 16), ("bf16", 21, 11, 2, 8, 32), ("f32", 13, 3, 0, 16, 16),
                               ("f16", 14, 5, 2, 2, 16),
                               ("f32", 1, 7, 64, 16, 128), ("f16", 2, 5, 165, 16, 16)): # parts of 128 and 32 blocks
        blocks, w = ggml(kind, 8, n, l)
        a8 = rng(9).integers(-127, 128, (m, l, 32))
        a8[..., 5] = 127
        a8 = a8.reshape(m, 32 * l)
        kernel_row("quantized", f"gemm_{kind}", f"{t}_{m}x{n}x{l}_i8",
                   {"A": bytes_as(t, a8), "W": blocks, "C": poison("f32", m, n)},
                   lambda a, w=w, a8=a8: {"C": exact(a8.astype(float) @ w.T)}, T=t, O="f32", A8=True, BM=bm, BN=bn)


def ggml_q4_k(seed, n, l):
    """Bytes of blocks q4_k, and the numbers that they are: all six bits of scales and least numbers are used."""
    gen = rng(seed)
    d, dmin = (2.0 ** gen.integers(-1, 1, (2, n, l))).astype(np.float16)
    s, m = gen.choice([0, 1, 2, 15, 16, 33, 48, 63], (2, n, l, 8)).astype(np.uint8)
    q = gen.integers(0, 16, (n, l, 4, 2, 32)).astype(np.uint8)
    six = [s[..., :4] | s[..., 4:] >> 4 << 6, m[..., :4] | m[..., 4:] >> 4 << 6,
           s[..., 4:] & 15 | (m[..., 4:] & 15) << 4]
    data = (q[..., 0, :] | q[..., 1, :] << 4).reshape(n, l, 128)
    halves = [x[..., None].view(np.uint8) for x in (d, dmin)]
    scale, least = d[..., None] * s.astype(float), dmin[..., None] * m.astype(float)
    numbers = q.reshape(n, l, 8, 32) * scale[..., None] - least[..., None]
    return Arr("u8", np.concatenate([*halves, *six, data], 2)), numbers.reshape(n, 256 * l)


for t, m, n, l in (("f16", 33, 40, 1), ("f32", 5, 33, 2), ("f32", 3, 3, 0)):
    blocks, w = ggml_q4_k(13, n, l)
    kernel_row("quantized", "gemm_q4_k", f"{t}_{m}x{n}x{l}",
               {"A": small(t, 14, m, 256 * l, lo=-2, hi=3), "W": blocks, "C": poison("f32", m, n)},
               lambda a, w=w: {"C": exact(a["A"].astype(float) @ w.T)}, T=t, O="f32", BM=16, BN=16)
for t, m, n, l, bm, bn in (("f32", 1, 130, 3, 16, 128), ("f16", 2, 17, 1, 16, 16), ("f32", 4, 40, 2, 16, 32),
                           ("bf16", 3, 5, 2, 4, 16), ("f32", 21, 33, 1, 16, 32), ("f32", 1, 3, 0, 16, 16),
                           ("f32", 3, 7, 17, 16, 128), ("f32", 1, 6, 33, 16, 4), # parts of 16 and 4
                           ("f32", 14, 13, 17, 16, 16), ("f32", 16, 9, 2, 8, 16), ("f32", 13, 3, 0, 16, 16),
                           ("f16", 14, 5, 1, 2, 16), ("f32", 2, 7, 8, 16, 16), ("f32", 4, 5, 21, 16, 16)):
    blocks, w = ggml_q4_k(15, n, l)
    a8 = rng(16).integers(-3, 4, (m, 8 * l, 32))
    a8[..., 5] = 127
    a8 = a8.reshape(m, 256 * l)
    kernel_row("quantized", "gemm_q4_k", f"{t}_{m}x{n}x{l}_i8",
               {"A": bytes_as(t, a8), "W": blocks, "C": poison("f32", m, n)},
               lambda a, w=w, a8=a8: {"C": exact(a8.astype(float) @ w.T)}, T=t, O="f32", A8=True, BM=bm, BN=bn)


# C of 16 bits is rounded once, whatever the parts that are summed
for kind, l in (("q4_0", 131), ("q8_0", 130), ("q4_k", 17)):
    blocks, w = ggml_q4_k(17, 6, l) if kind == "q4_k" else ggml(kind, 18, 6, l)
    a8 = rng(19).integers(-1, 2, (2, w.shape[1] // 32, 32))
    a8[..., 3] = 127
    a8 = a8.reshape(2, -1)
    kernel_row("quantized", f"gemm_{kind}", f"f32_to_bf16_{l}_i8",
               {"A": bytes_as("f32", a8), "W": blocks, "C": poison("bf16", 2, 6)},
               lambda a, w=w, a8=a8: {"C": rounded(a8.astype(float) @ w.T, "bf16")}, T="f32", O="bf16", A8=True, BM=16,
               BN=16)


# ---- scales of blocks ------------------------------------------------------------------------------------------------
def codes(t, seed, rows, cols):
    """Small numbers of an f8 or f4e2m1 type: the array, and the values."""
    if t == "f4e2m1":
        a = Arr(t, rng(seed).integers(0, 256, (rows, cols // 2)).astype(np.uint8))
        return a, wide(a).astype(float)
    a = small(t, seed, rows, cols, lo=-2, hi=3)
    return a, wide(a).astype(float)


for name, ta, tw, s, g, m, n, k in (
        ("mxfp8", "f8e4m3", "f8e5m2", "u8", 32, 33, 40, 96),
        ("mxfp4", "f4e2m1", "f4e2m1", "u8", 32, 5, 33, 64),
        ("mxfp8_by_fp4", "f8e4m3", "f4e2m1", "u8", 32, 1, 3, 32),
        ("nvfp4", "f4e2m1", "f4e2m1", "f8e4m3", 16, 20, 35, 80),
        ("mxfp8_own_tile", "f8e4m3", "f8e4m3", "u8", 32, 130, 129, 160),
        ("nvfp4_own_tile", "f4e2m1", "f4e2m1", "f8e4m3", 16, 129, 33, 160)):
    tile = {} if name.endswith("own_tile") else {"BM": 32, "BN": 32}
    (x, xv), (w, wv) = codes(ta, 10, m, k), codes(tw, 11, n, k)
    scale = lambda seed, rows: ints("u8", seed, 125, 129, rows, k // g) if s == "u8" else powers(s, seed, rows, k // g)
    number = (lambda v: np.ldexp(1.0, v.astype(int) - 127)) if s == "u8" else (lambda v: v.astype(float))
    kernel_row(
        "quantized", "gemm_mx", name,
        {"A": x, "sa": scale(12, m), "W": w, "sw": scale(13, n), "C": poison("f32", m, n), "alpha": 0.5},
        lambda a, xv=xv, wv=wv, g=g, number=number:
        {"C": exact(0.5 * (xv * np.repeat(number(a["sa"]), g, 1)) @ (wv * np.repeat(number(a["sw"]), g, 1)).T)}, TA=ta,
        gpus=not tile, TW=tw, S=s, G=g, O="f32", **tile)

for t, m, n, k, g, bk in (
        ("f8e4m3", 33, 40, 150, 32, 32), ("f8e5m2", 1, 5, 64, 64, 32), ("f8e4m3", 20, 130, 130, 128, 128)):
    (x, xv), (w, wv) = codes(t, 14, m, k), codes(t, 15, n, k)
    kernel_row(
        "quantized", "gemm_f8_blocks", f"{t}_{m}x{n}x{k}_by_{g}", {
            "A": x, "sa": powers("f32", 16, m, -(-k // g)), "W": w, "sw": powers("f32", 17, -(-n // g), -(-k // g)),
            "C": poison("f32", m, n)
        }, lambda a, xv=xv, wv=wv, g=g: {
            "C": exact((xv * np.repeat(a["sa"].astype(float), g, 1)[:, :xv.shape[1]]) @ (wv * np.repeat(
                np.repeat(a["sw"].astype(float), g, 0), g, 1)[:wv.shape[0], :wv.shape[1]]).T)
        }, T=t, O="f32", G=g, BK=bk, BM=32, BN=32)


# ---- experts ---------------------------------------------------------------------------------------------------------
def align(ids, experts, bm, size):
    order, block = [], []
    for e in range(experts):
        mine = list(np.flatnonzero(ids == e))
        mine += [len(ids)] * (-len(mine) % bm)
        order += mine
        block += [e] * (len(mine) // bm)
    return np.array(order + [len(ids)] * (size - len(order)),
                    np.int32), np.array(block + [experts] * (size // bm - len(block)), np.int32)


def expert_ids(rows, topk, experts, seed):
    return np.concatenate([rng(seed + r).permutation(experts)[:topk] for r in range(rows)] or
                          [np.zeros(0)]).astype(np.int32)


for t, r, experts, topk, whole, sig in (("f32", 5, 7, 3, True, False), ("f16", 1, 1, 1, False, False),
                                        ("bf16", 4, 16, 2, False, True), ("f32", 0, 4, 2, True, True)):
    def want(a, topk=topk, whole=whole, sig=sig):
        (x,) = f64(a, "x")
        at = np.argsort(-x, 1, kind="stable")[:, :topk]
        p = 1 / (1 + np.exp(-x)) if sig else np.exp(x - x.max(1, initial=-np.inf, keepdims=True)) / np.exp(
            x - x.max(1, initial=-np.inf, keepdims=True)).sum(1, keepdims=True)
        w = np.take_along_axis(p, at, 1)
        w = w / w.sum(1, keepdims=True) if whole else w
        return {"ids": exact(at.astype(np.int32)), "weight": within(2.5 * w, 60 * EPS)}

    kernel_row("moe", "moe_route", f"{t}_{r}x{experts}", {
        "x": normal(t, 25, r, experts), "ids": poison("i32", r, topk), "weight": poison("f32", r, topk), "factor": 2.5
    }, want, T=t, TOPK=topk, NORMALISE=whole, SIGMOID=sig, BE=16)

for rows_, topk, experts, bm in ((45, 2, 5, 16), (1, 1, 1, 16), (20, 3, 7, 8), (0, 2, 3, 16)):
    ids = expert_ids(rows_, topk, experts, 20)
    ids[ids == 2] = 1 if experts > 2 else 0  # an expert without rows
    size = -(-(len(ids) + experts * (bm - 1)) // bm) * bm
    order, block = align(ids, experts, bm, size)
    kernel_row("moe", "moe_align", f"{len(ids)}_of_{experts}",
               {"ids": Arr("i32", ids), "order": poison("i32", size), "block": poison("i32", size // bm), "E": experts},
               lambda a, order=order, block=block: {"order": exact(order), "block": exact(block)}, BM=bm, BE=8)
    for t, n, k in (("f16", 33, 40), ("f32", 16, 21)) if rows_ in (45, 20) else ():
        whole = {"order": Arr("i32", order), "block": Arr("i32", block)}

        def layer(a, ids=ids, topk=topk):
            x = a["x"].astype(float)[np.arange(len(ids)) // topk]
            return np.stack([a["W"].astype(float)[e] @ v for e, v in zip(ids, x)])

        kernel_row(
            "moe", "moe_gemm", f"{t}_{len(ids)}", {
                "x": small(t, 21, rows_, k, lo=-2, hi=3), "W": small(t, 22, experts, n, k, lo=-2, hi=3),
                **whole, "weight": powers("f32", 23, len(ids)), "y": poison("f32", len(ids), n)
            }, lambda a, layer=layer: {"y": exact(layer(a) * a["weight"].astype(float)[:, None])}, T=t, O="f32",
            DIV=topk, WEIGHTED=True, BM=bm, BN=16, BK=16)

        def gated(a, layer=layer, n=n):
            gate, up = np.split(layer(a), 2, 1)
            y = gate / (1 + np.exp(-gate)) * up
            return {"y": near(y, 8 * EPS * np.abs(y) + 1e-30, "f32")}

        kernel_row(
            "moe", "moe_gate_up", f"{t}_{len(ids)}", {
                "x": small(t, 21, rows_, k, lo=-1, hi=2), "W": small(t, 22, experts, 2 * n, k, lo=-1, hi=2),
                **whole, "y": poison("f32", len(ids), n)
            }, gated, T=t, O="f32", DIV=topk, BM=bm, BN=16, BK=16)
for t, r, topk, n in (("f16", 5, 3, 45), ("f32", 1, 1, 1), ("bf16", 2, 8, 33)):
    kernel_row("moe", "moe_sum", t, {"z": small(t, 24, r, topk, n), "y": poison(t, r, n)},
               lambda a, t=t: {"y": rounded(a["z"].astype(float).sum(1), t)}, T=t, B=32)
