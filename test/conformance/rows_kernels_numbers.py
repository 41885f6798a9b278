"""std.kernels.sparse, fft, stencil, simulate, finance, sequence and filter against NumPy in f64."""
from kernel_library import Arr, EPS, exact, f64, kernel_row, near, np, poison, rounded, within
from values import ints, is_float, normal, rng, small, store, wide, zeros

# ---- sparse -----------------------------------------------------------------------------------------------------------
def csr(t, seed, m, k, lengths):
    """A matrix in CSR with rows of those lengths; columns may repeat. Small integers: sums are exact."""
    offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return {"value": small(t, seed, offset[-1]), "column": ints("i32", seed + 1, 0, max(k, 1), offset[-1]), "offset": Arr("i32", offset)}


def dense(a, m, k):
    full = np.zeros((m, k))
    np.add.at(full, (np.repeat(np.arange(m), np.diff(a["offset"])), a["column"]), a["value"].astype(float))
    return full


ROWS_OF = [("f32", "f32", 50, [3, 0, 5, 1, 40, 0, 2, 2, 17]), ("f16", "f32", 7, [1]), ("f64", "f64", 9, [0, 0, 100, 3, 0]), ("bf16", "f32", 20, [4] * 33), ("f32", "f32", 1, [0]), ("f32", "f64", 3, []), ("f32", "f32", 30, [70, 1, 0, 16, 15, 90, 0])]
for t, a, k, lengths in ROWS_OF:
    m, name = len(lengths), f"{t}_{a}_{len(lengths)}x{k}"
    A, x = csr(t, 1, m, k, lengths), small(t, 3, k)
    for beta in (False, True)[: 1 + (m > 1)]:
        kernel_row("sparse", "spmv_csr", name + ("_beta" if beta else ""), {**A, "x": x, "y": small(t, 4, m) if beta else poison(t, m), "alpha": 2.0, "beta": 3.0},
                   lambda v, t=t, m=m, k=k, beta=beta: {"y": rounded(2 * dense(v, m, k) @ v["x"].astype(float) + (3 * v["y"].astype(float) if beta else 0), t)}, T=t, A_=a, BETA=beta, R=4, W=8)
    kernel_row("sparse", "spmv_csr_balanced", name, {**A, "x": x, "y": zeros(a, m)}, lambda v, m=m, k=k: {"y": exact(dense(v, m, k) @ v["x"].astype(float))}, T=t, A_=a, B=16)
    n = 33 if m > 1 else 1
    kernel_row("sparse", "spmm_csr", name, {**A, "B": small(t, 5, k, n), "C": poison(t, m, n)}, lambda v, t=t, m=m, k=k: {"C": rounded(dense(v, m, k) @ v["B"].astype(float), t)}, T=t, A_=a, BN=16)
    d = 20 if m > 1 else 1

    def sampled(v, t=t, m=m):
        of = np.repeat(np.arange(m), np.diff(v["offset"]))
        return {"y": rounded(v["value"].astype(float) * (v["P"].astype(float)[of] * v["Q"].astype(float)[v["column"]]).sum(1), t)}
    kernel_row("sparse", "sddmm_csr", name, {**A, "P": small(t, 6, m, d), "Q": small(t, 7, k, d), "y": poison(t, len(A["value"].store))}, sampled, T=t, A_=a, W=8, BD=16)

for t, a, m, k, n, lengths in (("f16", "f32", 61, 40, 33, [2, 0, 1, 3]), ("f32", "f32", 16, 16, 1, [1]), ("bf16", "f32", 20, 50, 17, [4, 0]), ("f64", "f64", 3, 5, 4, [1]), ("f32", "f32", 5, 9, 0, [0])):
    A = csr(t, 8, len(lengths), -(-k // 16), lengths)
    A["value"] = small(t, 9, len(A["value"].store), 16, 16)

    def product(v, t=t, m=m, k=k):
        q, wide_k = len(v["offset"]) - 1, -(-k // 16) * 16
        full = np.zeros((q * 16, wide_k))
        for r in range(q):
            for i in range(v["offset"][r], v["offset"][r + 1]):
                full[r * 16:r * 16 + 16, v["column"][i] * 16:v["column"][i] * 16 + 16] += v["value"][i]
        return {"C": rounded(full[:m, :k] @ v["B"].astype(float), t)}
    kernel_row("sparse", "spmm_bsr", f"{t}_{m}x{k}x{n}", {**A, "B": small(t, 10, k, n), "C": poison(t, m, n)}, product, T=t, A_=a, BM=16, BK=16, BN=16)

# ---- fft --------------------------------------------------------------------------------------------------------------
def pairs(z):
    return np.stack([z.real, z.imag], -1)


def table(n):
    return Arr("f32", np.stack([f(-2 * np.pi * np.arange(n) / n) for f in (np.cos, np.sin)]).astype(np.float32))


def number(a):
    return a[..., 0].astype(float) + 1j * a[..., 1]


def transformed(z, bits):
    """Within some units of the root mean square."""
    return within(pairs(z), (4 + bits) * 2 * EPS * (np.sqrt((np.abs(z) ** 2).mean()) if z.size else 0) * 4)


for n in (1, 64, 300):
    kernel_row("fft", "fft_table", str(n), {"w": poison("f32", 2, n)}, lambda _, n=n: {"w": within(table(n).store.astype(float), EPS)}, B=64)
for m, n, inverse in ((3, 32, False), (1, 1, False), (5, 8, True), (1, 256, True), (0, 4, False), (2, 2, True)):
    go = np.fft.ifft if inverse else np.fft.fft
    kernel_row("fft", "fft", f"{m}x{n}" + ("_inverse" if inverse else ""), {"x": normal("f32", 1, m, n, 2), "w": table(n), "y": poison("f32", m, n, 2)}, lambda a, n=n, go=go: {"y": transformed(go(number(a["x"])), np.log2(n))}, N=n, INVERSE=inverse, R=2)
for m, n in ((3, 32), (1, 2), (2, 128), (0, 8)):
    kernel_row("fft", "fft_real", f"{m}x{n}", {"x": normal("f32", 2, m, n), "w": table(n), "y": poison("f32", m, n // 2 + 1, 2)}, lambda a, n=n: {"y": transformed(np.fft.rfft(a["x"].astype(float)), np.log2(n))}, N=n, R=2)

    def back(a, n=n):
        x = np.fft.irfft(number(a["y"]), n)
        return {"x": within(x, (4 + np.log2(n)) * 8 * EPS * np.abs(x).max(initial=0))}
    kernel_row("fft", "fft_real_inverse", f"{m}x{n}", {"y": normal("f32", 3, m, n // 2 + 1, 2), "w": table(n), "x": poison("f32", m, n)}, back, N=n, R=2)
for m, n1, n2, inverse in ((2, 16, 8, False), (1, 4, 64, True), (1, 1, 2, False)):
    x, n = normal("f32", 4, m, n1, n2, 2), n1 * n2
    # columns, turned; then rows: together the transform of n numbers
    sign, go = (1, np.fft.ifft) if inverse else (-1, np.fft.fft)
    middle = go(number(x.store), axis=1) * np.exp(sign * 2j * np.pi * np.arange(n1)[:, None] * np.arange(n2) / n)
    name = f"{m}x{n1}x{n2}" + ("_inverse" if inverse else "")
    kernel_row("fft", "fft_columns", name, {"x": x, "w": table(n1), "t": poison("f32", m, n1, n2, 2)}, lambda _, z=middle: {"t": transformed(z, 8)}, N1=n1, INVERSE=inverse, B=2)
    whole = go(number(x.store).reshape(m, n)).reshape(m, n2, n1)
    kernel_row("fft", "fft_last", name, {"t": Arr("f32", pairs(middle).astype(np.float32)), "w": table(n2), "y": poison("f32", m, n2, n1, 2)}, lambda _, z=whole: {"y": transformed(z, 8)}, N2=n2, INVERSE=inverse, B=2)
for m, n, programs, inverse in ((3, 64, 2, False), (1, 128, 1, True), (1, 256, 3, True), (0, 64, 1, False), (1, 512, 1, False)):
    go = np.fft.ifft if inverse else np.fft.fft
    kernel_row("fft", "fft_long", f"{m}x{n}" + ("_inverse" if inverse else ""), {"x": normal("f32", 5, m, n, 2), "w": table(n), "y": poison("f32", m, n, 2), "room": poison("f32", programs, 4, n)},
               lambda a, n=n, go=go: {"y": transformed(go(number(a["x"])), np.log2(n))}, INVERSE=inverse)
