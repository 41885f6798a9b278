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
