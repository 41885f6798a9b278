"""std.kernels.gemm against NumPy: types, forms, sizes, strides."""
from kernel_library import Arr, EPS, exact, kernel_row, near, np, poison, rounded
from values import philox, rng, small, zeros

SMALL = dict(BM=32, BN=32, BK=16)
FORMS = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}


def held(t, seed, rows, cols, transposed=False, lo=-2, hi=3):
    """A matrix, or its transpose, of small integers."""
    return small(t, seed, *((cols, rows) if transposed else (rows, cols)), lo=lo, hi=hi)


def product(a, b, ta=False, tb=False):
    return (a.T if ta else a).astype(float) @ (b.T if tb else b).astype(float)


# (type, type of C, form, M, N, K, options): each type; each form; extents of 1 and 0, above and below a tile
CASES = [("f16", "f16", "nn", 65, 70, 33, {}), ("f16", "f32", "tn", 31, 33, 50, SMALL),
         ("bf16", "bf16", "nt", 65, 33, 17, SMALL), ("bf16", "f32", "tt", 1, 40, 19, SMALL),
         ("f32", "f32", "nt", 70, 65, 90, {}), ("f32", "f32", "tn", 33, 1, 40, {**SMALL, "TF32": True}),
         ("f64", "f64", "nn", 35, 37, 21, SMALL), ("f64", "f64", "tt", 20, 65, 1, SMALL),
         ("f8e4m3", "f32", "nt", 33, 40, 64, SMALL), ("f8e5m2", "f16", "nn", 40, 33, 33, {**SMALL, "BK": 32}),
         ("i8", "i32", "nt", 65, 34, 70, {**SMALL, "BK": 32}), ("u8", "i32", "nn", 5, 6, 7, SMALL),
         ("f16", "f32", "nn", 33, 40, 0, SMALL), ("f32", "f32", "nn", 0, 40, 10, SMALL),
         ("f32", "f32", "tt", 1, 1, 1, SMALL), ]
for i, (t, o, form, m, n, k, options) in enumerate(CASES):
    ta, tb = FORMS[form]
    kernel_row("gemm", "gemm", f"{t}_to_{o}_{form}_{m}x{n}x{k}",
               {"A": held(t, 1, m, k, ta), "B": held(t, 2, k, n, tb), "C": poison(o, m, n)},
               lambda a, ta=ta, tb=tb, o=o: {"C": rounded(product(a["A"], a["B"], ta, tb), o)}, T=t, O=o, TA=ta, TB=tb,
               **options)
# Programs of a cluster: whole clusters and not
CLUSTERS = [("gemm", "f16", "f16", "nn", 256, 136, 200), ("gemm", "f16", "f32", "nt", 264, 72, 136),
            ("gemm", "f8e4m3", "f32", "nn", 240, 128, 144), ("gemm", "f32", "f32", "nn", 130, 40, 72),
            ("gemm_update", "f16", "f16", "nt", 248, 72, 136)]
for kernel, t, o, form, m, n, k in CLUSTERS:
    ta, tb = FORMS[form]
    more = {"alpha": 2.0, "beta": 0.0} if kernel == "gemm_update" else {}
    consts = {"BM": 128, "BN": 64, "BK": 64, "CLUSTER": 2, **({} if more else {"O": o})}
    kernel_row(
        "gemm", kernel, f"cluster_{t}_to_{o}_{form}_{m}x{n}x{k}",
        {"A": held(t, 1, m, k, ta), "B": held(t, 2, k, n, tb), "C": poison(o, m, n), **more},
        lambda a, ta=ta, tb=tb, o=o: {"C": rounded(product(a["A"], a["B"], ta, tb) * a.get("alpha", 1), o)},
        gpus=True, T=t, TA=ta, TB=tb, **consts)
# Few rows of C: on CPUs, B is not packed then. Whole tiles, ends along N and K, more rows than a block, than a few
FEW = [("f32", "f32", "nt", 1, 256, 96), ("f32", "f32", "nt", 5, 130, 100), ("f32", "f32", "nt", 16, 128, 64),
       ("f32", "f32", "nt", 17, 128, 64), ("f32", "f32", "nn", 1, 256, 96), ("f32", "f32", "nn", 3, 130, 100),
       ("f32", "f32", "tn", 2, 128, 64), ("f32", "f32", "tt", 4, 128, 70), ("f64", "f64", "nt", 3, 64, 40),
       ("f64", "f64", "nn", 1, 65, 32), ("f16", "f16", "nt", 2, 128, 96), ("f16", "f32", "nn", 3, 128, 64),
       ("bf16", "f32", "nt", 1, 256, 100), ("bf16", "bf16", "nn", 2, 128, 96), ("bf16", "f32", "tt", 6, 130, 64),
       ("i8", "i32", "nt", 1, 128, 320), ("i8", "i32", "nn", 2, 128, 130), ("u8", "i32", "nt", 7, 256, 64),
       ("u8", "i32", "tn", 1, 130, 64), ("f32", "f32", "nt", 2, 128, 0), ]
for t, o, form, m, n, k in FEW:
    ta, tb = FORMS[form]
    kernel_row("gemm", "gemm", f"few_rows_{t}_to_{o}_{form}_{m}x{n}x{k}",
               {"A": held(t, 1, m, k, ta), "B": held(t, 2, k, n, tb), "C": poison(o, m, n)},
               lambda a, ta=ta, tb=tb, o=o: {"C": rounded(product(a["A"], a["B"], ta, tb), o)}, T=t, O=o, TA=ta, TB=tb)
# One column of C: on CPUs its sums have their lanes along K
COLUMN = [("f32", "f32", "nn", 70, 100), ("f32", "f32", "nt", 130, 64), ("f64", "f64", "nn", 33, 130),
          ("f16", "f16", "nn", 129, 257), ("bf16", "f32", "nt", 5, 70), ("f8e4m3", "f32", "nn", 9, 40),
          ("f32", "f32", "nn", 3, 0), ("i8", "i32", "nn", 9, 70)]
for t, o, form, m, k in COLUMN:
    tb = FORMS[form][1]
    kernel_row("gemm", "gemm", f"one_column_{t}_to_{o}_{form}_{m}x{k}",
               {"A": held(t, 1, m, k), "B": held(t, 2, k, 1, tb), "C": poison(o, m, 1)},
               lambda a, tb=tb, o=o: {"C": rounded(np.maximum(product(a["A"], a["B"], tb=tb), 0), o)},
               T=t, O=o, TB=tb, epilogue="activation.relu")
kernel_row("gemm", "gemm", "f8_mixed",
           {"A": held("f8e4m3", 1, 33, 40), "B": held("f8e5m2", 2, 40, 20), "C": poison("f32", 33, 20)},
           lambda a: {"C": exact(product(a["A"], a["B"]))}, T="f8e4m3", U="f8e5m2", O="f32", **SMALL)
kernel_row("gemm", "gemm", "relu",
           {"A": held("f16", 1, 33, 40), "B": held("f16", 2, 40, 20), "C": poison("f16", 33, 20)},
           lambda a: {"C": exact(np.maximum(product(a["A"], a["B"]), 0.0))}, epilogue="activation.relu", **SMALL)

for t, beta in (("f32", 0.5), ("f64", -2.0), ("f16", 0.0)):
    r = "f64" if t == "f64" else "f32"
    kernel_row(
        "gemm", "gemm_update", f"{t}_beta_{beta}", {
            "A": held(t, 1, 40, 33), "B": held(t, 2, 33, 21, True),
            "C": held(t, 3, 40, 21) if beta else poison(t, 40, 21), "alpha": 2.0, "beta": beta
        }, lambda a, beta=beta, t=t:
        {"C": rounded(2 * product(a["A"], a["B"], tb=True) + (beta * a["C"]
                                                              if beta else 0), t)}, T=t, R=r, TB=True, **SMALL)


# ---- epilogues ------------------------------------------------------------------------------------------------------
def fused(name, t, o, on, want, m=40, n=35, k=33, **consts):
    size = lambda flag, *shape: shape if flag in on else (0,) * len(shape)
    args = {
        "A": held(t, 1, m, k), "B": held(t, 2, k,
                                         n), "C": poison(o, m, n), "row_scale": small("f32", 3, *size("row_scale", m)),
        "column_scale": small("f32", 4, *size("column_scale", n)), "bias": small(o, 5, *size("bias", n)),
        "residual": small(o, 6, *size("residual", m, n)), "row_sum": zeros("f32", *size("row_sum", m)),
        "dropout.p": 0.25, "dropout.seed": 7
    }
    kernel_row("gemm", "gemm_fused", name, args, want, T=t, O=o,
               **{f"o.{k}": v for k, v in SMALL.items()}, **{f"fuse.{flag}": True for flag in on}, **consts)


def silu(x):
    return x / (1 + np.exp(-x))


def kept(shape, seed, p):
    words = np.array([philox(seed, i)[0] >> 8 for i in range(shape[0] * shape[1])]).reshape(shape)
    return np.where(words * 2.0**-24 >= p, 1 / (1 - p), 0.0)


fused("none", "f16", "f16", (), lambda a: {"C": rounded(product(a["A"], a["B"]), "f16")})
fused(
    "int8_by_row_and_column", "i8", "f16", ("row_scale", "column_scale", "bias"),
    lambda a: {"C": rounded(product(a["A"], a["B"]) * a["row_scale"][:, None] * a["column_scale"] + a["bias"], "f16")})
fused(
    "bias_silu_residual", "bf16", "f32", ("bias", "residual"), lambda a:
    (lambda v: {"C": near(silu(v) + a["residual"], 16 * EPS *
                          (np.abs(v) + 4), "f32")})(product(a["A"], a["B"]) + a["bias"]), epilogue="activation.silu")
fused("sums_of_rows", "f16", "f32", ("bias", "row_sum"),
      lambda a: (lambda v: {"C": exact(v), "row_sum": exact(v.sum(1))})(product(a["A"], a["B"]) + a["bias"]))
fused(
    "dropout", "f32", "f32", ("dropout", "residual"), lambda a:
    (lambda v: {"C": near(v * kept(v.shape, 7, 0.25) + a["residual"], 4 * EPS * np.abs(v), "f32")})
    (product(a["A"], a["B"])))

# ---- many products --------------------------------------------------------------------------------------------------
for t, o, ta, tb, z, m, n, k in (("f16", "f16", False, True, 3, 33, 20, 40), ("f32", "f32", True, False, 2, 20, 33, 17),
                                 ("i8", "i32", False, False, 1, 5, 65, 32), ("f32", "f32", False, False, 0, 5, 5, 5)):
    kernel_row(
        "gemm", "gemm_batched", f"{t}_{z}", {
            "A": small(t, 1, z, *((k, m) if ta else (m, k)), lo=-2, hi=3), "B": small(
                t, 2, z, *((n, k) if tb else (k, n)), lo=-2, hi=3), "C": poison(o, z, m, n)
        }, lambda a, ta=ta, tb=tb, o=o: {
            "C": rounded((a["A"].transpose(0, 2, 1)
                          if ta else a["A"]).astype(float) @ (a["B"].transpose(0, 2, 1)
                                                              if tb else a["B"]).astype(float), o)
        }, T=t, O=o, TA=ta, TB=tb, **SMALL)


def by_group(a, b, offsets):
    return np.concatenate(
        [a[i:j].astype(float) @ b[g].astype(float) for g, (i, j) in enumerate(zip(offsets, offsets[1:]))])


for name, t, offsets in (
        ("rows", "f16", [0, 17, 17, 90, 91]),
        ("first_and_last_empty", "f32", [0, 0, 40, 40]),
        ("none", "bf16", [0, 0])):
    kernel_row(
        "gemm", "gemm_grouped", name, {
            "A": held(t, 1, offsets[-1], 40), "B": small(t, 2,
                                                         len(offsets) - 1, 40, 70, lo=-2, hi=3),
            "C": poison(t, offsets[-1], 70), "offsets": Arr("i32", np.array(offsets, np.int32))
        }, lambda a, t=t: {"C": rounded(by_group(a["A"], a["B"], a["offsets"]), t)}, T=t, **SMALL)


# ---- long K ---------------------------------------------------------------------------------------------------------
for t, s, m, n, k in (("f16", 3, 33, 40, 130), ("f32", 4, 20, 33, 17), ("f64", 1, 5, 5, 40)):
    r = "f64" if t == "f64" else "f32"
    tiles = -(-m // 32), -(-n // 32)
    kernel_row(
        "gemm", "gemm_split_k", f"{t}_by_{s}", {
            "A": held(t, 1, m, k), "B": held(t, 2, k, n), "C": poison(t, m, n), "parts": poison(r, s, m, n),
            "arrived": zeros("u32", *tiles)
        }, lambda a, t=t:
        {"C": rounded(product(a["A"], a["B"]), t), "arrived": exact(np.zeros(a["arrived"].shape, np.uint32))}, T=t, R=r,
        **SMALL)

for t, p, m, n, k, ta in (("f16", 5, 65, 40, 100, False), ("f32", 7, 33, 20, 130, True), ("bf16", 3, 20, 20, 10, False),
                          ("f32", 1, 40, 70, 33, False), ("f16", 2, 5, 5, 0, False)):
    kernel_row(
        "gemm", "gemm_stream_k", f"{t}_by_{p}_{m}x{n}x{k}", {
            "A": held(t, 1, m, k, ta), "B": held(t, 2, k, n), "C": poison(t, m, n), "parts": poison("f32", p, 32, 32),
            "ready": zeros("u32", p)
        }, lambda a, t=t, ta=ta:
        {"C": rounded(product(a["A"], a["B"], ta), t), "ready": exact(np.zeros(a["ready"].shape, np.uint32))}, T=t,
        TA=ta, **SMALL)

# ---- low rank -------------------------------------------------------------------------------------------------------
for t, m, n, k, r, tw in (("f16", 40, 33, 50, 8, False), ("bf16", 1, 65, 20, 16, True), ("f32", 33, 20, 40, 1, False)):
    kernel_row(
        "gemm", "gemm_lora", f"{t}_rank_{r}", {
            "A": held(t, 1, m, k, lo=-1, hi=2), "W": held(t, 2, k, n, tw), "D": held(t, 3, k, r, lo=-1, hi=2),
            "U": held(t, 4, r, n), "C": poison("f32", m, n), "scale": 0.5
        },
        lambda a, tw=tw: {"C": exact(product(a["A"], a["W"], tb=tw) + product(0.5 * product(a["A"], a["D"]), a["U"]))},
        T=t, O="f32", TW=tw, **SMALL)
