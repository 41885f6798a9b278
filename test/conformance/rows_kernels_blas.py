"""std.kernels.blas against NumPy: types, forms, alpha and beta, batches, bias, activations, extents of 0 and 1."""
from math import erf, sqrt

from kernel_library import Arr, EPS, bytes_as, kernel_row, near, np, poison, rounded
from values import small

SMALL = dict(BM=32, BN=32, BK=16)
WIDE = {"i8": ("i32", "i32"), "f64": ("f64", "f64")}  # the types of the result and of alpha
ACTIVATE = [lambda v: v, lambda v: np.maximum(v, 0), lambda v: v * 0.5 * (1 + np.vectorize(erf)(v / sqrt(2))),
            lambda v: 0.5 * v * (1 + np.tanh(sqrt(2 / np.pi) * (v + 0.044715 * v**3))), lambda v: v / (1 + np.exp(-v))]


def types(t):
    o, r = WIDE.get(t, (t, "f32"))
    return dict(T=t, O=o, R=r)


def result(t, v, act):
    """Exact sums of small integers; what the activations from gelu on give is near, of values that are not large."""
    if act < 2:
        return rounded(ACTIVATE[act](v), types(t)["O"])
    return near(ACTIVATE[act](v), 32 * EPS * (np.abs(v) + 2), types(t)["O"])


def held(t, seed, z, rows, cols, transposed):
    return small(t, seed, z, *((cols, rows) if transposed else (rows, cols)), lo=-2, hi=3)


def gemm(name, t, form, z, m, n, k, alpha=1, beta=0, act=0, bias=False, **consts):
    ta, tb = form[0] == "t", form[1] == "t"
    o = types(t)["O"]

    def want(a):
        x, y = (np.swapaxes(a[i], 1, 2) if flip else a[i] for i, flip in (("A", ta), ("B", tb)))
        v = alpha * (x.astype(float) @ y.astype(float))
        v = v + (beta * a["C"].astype(float) if beta else 0) + (a["bias"].astype(float) if bias else 0)
        return {"C": result(t, v, act)}

    kernel_row("blas", "blas_gemm", f"{t}_{form}_{name}", {
        "A": held(t, 1, z, m, k, ta), "B": held(t, 2, z, k, n, tb),
        "C": small(o, 3, z, m, n, lo=-2, hi=3) if beta else poison(o, z, m, n), "bias": small(o, 4, n if bias else 0),
        "alpha": alpha, "beta": beta, "act": act
    }, want, TA=ta, TB=tb, **types(t), **{**SMALL, **consts})


gemm("plain", "f32", "nn", 1, 65, 70, 33, BM=64, BN=64, BK=64)
gemm("few_rows", "f32", "nt", 2, 3, 70, 90, BM=4, BN=64, BK=256)
for i, (m, n, k) in enumerate(((1, 64, 70), (2, 130, 200), (3, 15, 90), (5, 64, 128), (6, 100, 129), (7, 128, 640),
                               (17, 70, 333), (33, 64, 64))):
    for t, form in (("f32", "nn"), ("f32", "nt"), (("bf16", "f16", "f64", "i8")[i % 4], ("nn", "nt")[i // 2 % 2])):
        gemm(f"few_rows_{m}x{n}x{k}", t, form, 1 + i % 2, m, n, k, alpha=1 + i % 2, beta=i % 3, act=i // 2 % 2,
             bias=i % 4 == 1, BM=16, BN=64, BK=64)
for t in ("f32", "f64", "f16"):  # columns that end within a block, rows of B one behind the other
    gemm("past_columns_4x10x300", t, "nn", 2, 4, 10, 300, beta=1, BM=16, BN=16, BK=32)
gemm("past_columns_9x40x200", "f32", "nn", 1, 9, 40, 200, BM=16, BN=64, BK=32)
gemm("past_columns_2x96x130", "f32", "nn", 1, 2, 96, 130, bias=True, BM=16, BN=64, BK=32)
gemm("past_columns_1x90x150", "f32", "nn", 1, 1, 90, 150, BM=16, BN=64, BK=32)
gemm("update", "f32", "tn", 2, 33, 40, 17, alpha=2, beta=-1)
gemm("beta_alone", "f16", "tt", 1, 20, 33, 0, alpha=3, beta=2, BK=32)
gemm("bias", "bf16", "nt", 1, 35, 33, 20, bias=True, beta=1)
gemm("relu", "f16", "nn", 3, 33, 5, 40, bias=True, act=1)
gemm("integers", "i8", "nn", 1, 34, 65, 70, alpha=-3, beta=2, act=1, BK=32)
gemm("integers", "i8", "tt", 2, 5, 1, 9, bias=True)
gemm("update", "f64", "nt", 1, 35, 37, 21, alpha=0.5, beta=1)
gemm("nothing", "f32", "nn", 0, 5, 6, 7)
gemm("one", "f32", "tt", 1, 1, 1, 1, alpha=2)
for act, t in ((2, "f32"), (3, "bf16"), (4, "f16")):
    gemm(f"activation_{act}", t, "nn", 1, 9, 20, 2, alpha=0.5, act=act, bias=True)


def gemv(name, t, transposed, z, m, k, alpha=1, beta=0, act=0, bias=False, **consts):
    o = types(t)["O"]

    def want(a):
        x = np.swapaxes(a["A"], 1, 2) if transposed else a["A"]
        v = alpha * np.einsum("zmk,zk->zm", x.astype(float), a["x"].astype(float))
        v = v + (beta * a["y"].astype(float) if beta else 0) + (a["bias"].astype(float) if bias else 0)
        return {"y": result(t, v, act)}

    kernel_row("blas", "blas_gemv_t" if transposed else "blas_gemv", f"{t}_{name}", {
        "A": held(t, 1, z, m, k, transposed), "x": small(t, 2, z, k, lo=-2, hi=3),
        "y": small(o, 3, z, m, lo=-2, hi=3) if beta else poison(o, z, m), "bias": small(o, 4, m if bias else 0),
        "alpha": alpha, "beta": beta, "act": act
    }, want, **types(t), **consts)


gemv("whole", "f32", False, 2, 37, 50, alpha=2, beta=1, bias=True, BM=16, BK=64, WHOLE=True)
gemv("whole", "f16", False, 1, 17, 100, act=1, BM=16, BK=128, WHOLE=True)
gemv("whole", "i8", False, 2, 9, 33, alpha=3, BM=16, BK=64, WHOLE=True)
gemv("whole_no_k", "f64", False, 1, 5, 0, beta=2, BM=16, BK=64, WHOLE=True)
gemv("whole_few", "f32", False, 3, 21, 5, bias=True, BM=16, BK=8, WHOLE=True)
gemv("blocks", "f32", False, 2, 149, 77, alpha=2, beta=1, bias=True, act=1, BM=64, BK=128, WHOLE=True)
gemv("blocks", "i8", False, 3, 7, 33, alpha=3, beta=2, BM=64, BK=64, WHOLE=True)
gemv("blocks", "f64", False, 1, 83, 256, beta=2, BM=64, BK=256, WHOLE=True)
gemv("blocks", "bf16", False, 2, 64, 300, BM=64, BK=4096)
gemv("parts", "f32", False, 2, 13, 70, alpha=2, beta=1, BM=4, BK=32, AT_ONCE=False)
gemv("parts", "bf16", False, 1, 6, 300, BM=4, BK=128, AT_ONCE=False)
gemv("great", "f16", False, 1, 2049, 2048, bias=True)
for transposed, odd in ((False, dict(BM=4, BK=16)), (True, dict(BM=32, BK=4))):
    gemv("plain", "f32", transposed, 1, 37, 130)
    gemv("update", "f64", transposed, 2, 9, 33, alpha=2, beta=-1, **odd)
    gemv("bias", "bf16", transposed, 1, 33, 20, beta=1, bias=True, act=1, **odd)
    gemv("integers", "i8", transposed, 3, 5, 70, alpha=3, beta=1, **odd)
    gemv("beta_alone", "f16", transposed, 1, 33, 0, beta=2, **odd)
    gemv("silu", "f16", transposed, 1, 40, 3, act=4, bias=True, **odd)
    gemv("nothing", "f32", transposed, 1, 0, 7)


def half(t, seed, n, upper, z=None):
    """A matrix, or z, whose other half is NaN."""
    shape = (n, n) if z is None else (z, n, n)
    used = np.tri(n, dtype=bool).T if upper else np.tri(n, dtype=bool)
    return bytes_as(t, np.where(used, small(t, seed, *shape, lo=-2, hi=3).store, np.nan)), used


def whole(a, used):
    low = np.where(used, a.astype(float), 0)
    return low + np.swapaxes(low, -1, -2) - low * np.eye(low.shape[-1])


def syrk(name, t, z, n, k, upper, ta=False, alpha=1, beta=0, **consts):
    C, used = half(t, 3, n, upper, z)

    def want(a):
        v = np.swapaxes(a["A"], 1, 2).astype(float) if ta else a["A"].astype(float)
        v = alpha * (v @ np.swapaxes(v, 1, 2)) + (beta * np.where(used, a["C"].astype(float), 0) if beta else 0)
        return {"C": rounded(np.where(used, v, np.nan), t)}

    kernel_row("blas", "blas_syrk", f"{t}_{name}", {
        "A": held(t, 1, z, n, k, ta), "C": C, "alpha": alpha, "beta": beta, "upper": int(upper)
    }, want, T=t, TA=ta, **{**dict(BN=32, BK=16), **consts})


syrk("lower", "f32", 2, 37, 21, False)
syrk("upper", "f64", 1, 65, 33, True, ta=True, alpha=2, beta=-1, BN=64, BK=64)
syrk("beta", "f32", 1, 33, 5, True, beta=3)
syrk("lower_transposed", "f64", 1, 70, 9, False, ta=True, beta=1)
syrk("no_k", "f32", 1, 20, 0, False, alpha=2, beta=2)
syrk("one", "f32", 1, 1, 1, False)
syrk("nothing", "f64", 1, 0, 7, True)
syrk("none", "f32", 0, 3, 7, True)


def symm(name, t, m, n, upper, right=False, alpha=1, beta=0, **consts):
    A, used = half(t, 1, n if right else m, upper)

    def want(a):
        s, b = whole(a["A"], used), a["B"].astype(float)
        v = alpha * (b @ s if right else s @ b) + (beta * a["C"].astype(float) if beta else 0)
        return {"C": rounded(v, t)}

    kernel_row("blas", "blas_symm", f"{t}_{name}", {
        "A": A, "B": small(t, 2, m, n, lo=-2, hi=3), "C": small(t, 3, m, n) if beta else poison(t, m, n),
        "alpha": alpha, "beta": beta, "upper": int(upper)
    }, want, T=t, RIGHT=right, **{**dict(BM=16, BN=32, BK=16), **consts})


symm("lower", "f32", 37, 21, False)
symm("upper", "f64", 50, 33, True, alpha=2, beta=-1)
symm("right_lower", "f32", 21, 70, False, right=True, alpha=-1, beta=1)
symm("right_upper", "f64", 18, 40, True, right=True)
symm("other_blocks", "f32", 100, 9, True, BM=16, BN=16, BK=64)
symm("right_other_blocks", "f32", 9, 100, False, right=True, BM=64, BN=16, BK=64)
symm("one", "f32", 1, 1, False)
symm("nothing", "f32", 0, 4, True)
symm("no_columns", "f64", 4, 0, False)


def symv(name, t, n, upper, alpha=1, beta=0, step=1, once=False, **consts):
    A, used = half(t, 1, n, upper)

    def want(a):
        v = alpha * (whole(a["A"], used) @ a["x"].astype(float)) + (beta * a["y"].astype(float) if beta else 0)
        return {"y": rounded(v, t)}

    x = Arr(t, small(t, 2, n * step, lo=-2, hi=3).store[::step])
    tiles = dict(BYTES=64) if once else dict(BN=16, BK=16)
    kernel_row("blas", "blas_symv_once" if once else "blas_symv", f"{t}_{name}", {
        "A": A, "x": x, "y": small(t, 3, n) if beta else poison(t, n), "alpha": alpha, "beta": beta, "upper": int(upper)
    }, want, T=t, **{**tiles, **consts})


symv("lower", "f32", 37, False, beta=2, step=3)
symv("upper", "f64", 70, True, alpha=2)
symv("wide_blocks", "f32", 90, True, BN=16, BK=64)
symv("narrow_blocks", "f32", 90, False, BN=64, BK=16, beta=1)
symv("one", "f64", 1, False, beta=1)
symv("nothing", "f32", 0, True)
symv("lower", "f32", 37, False, beta=2, step=3, once=True)
symv("upper", "f32", 93, True, once=True)
symv("lower_64", "f64", 70, False, alpha=2, beta=1, once=True)
symv("upper_64", "f64", 51, True, alpha=-1, step=2, BYTES=32, once=True)
symv("one", "f64", 1, False, beta=1, once=True)
symv("nothing", "f32", 0, True, once=True)
