"""Matrix products that warpgroups of Hopper do (wgmma), of operands that bulk copies bring (TMA), with a producer of
its own or not:
tiles of 64 rows and more, views that a tensor map can take, at their ends too. Data are small integers, and bits are
compared."""
import numpy as np

from product_kernel import product_kernel
from rows import row
from values import Arr, exact, poison, small

TYPES = (("f16", "f32"), ("bf16", "f32"), ("i8", "i32"), ("u8", "i32"), ("f8e4m3", "f32"), ("f8e5m2", "f32"))
# rows, columns, k; warps
BLOCKS = (((64, 64, 64), 4), ((128, 64, 64), 8), ((128, 128, 32), 4), ((64, 256, 64), 4), ((128, 256, 64), 8),
          ((256, 64, 32), 8), ((64, 16, 128), 4), ((64, 48, 64), 8))
HINTS = ("pipeline specialize(0)", "pipeline specialize")


def few(t, seed, *shape):
    return small(t, seed, *shape, lo=-2, hi=3) if t != "u8" else small(t, seed, *shape, lo=0, hi=4)


def big(x):
    return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)


def columns(a):
    return Arr(a.type, np.asfortranarray(a.store))


def add(name, t, acc, block, warps, stages, hint, b_columns, shape):
    m, n, k = shape
    b = few(t, 2, k, n)
    held = "const {0} B[K : 1, N : ldb]" if b_columns else "const {0} B[K, N]"
    source = product_kernel(f"const {t} A[M, K], {held.format(t)}, {acc} C[M, N]", block=block, acc=acc,
                            loop=" " + hint)
    row(f"warpgroup_{name}", source,
        {"A": few(t, 1, m, k), "B": columns(b) if b_columns else b, "C": poison(acc, m, n)},
        lambda a: {"C": exact(big(a["A"]) @ big(a["B"]))}, warps=warps, stages=stages)


TURN = 0
for number, (block, warps) in enumerate(BLOCKS):
    for which, hint in enumerate(HINTS):
        t, acc = TYPES[TURN % len(TYPES)]
        wide = t in ("f16", "bf16")  # others cannot be transposed on the way
        shape = (block[0] + 72, 2 * block[1] - 16, 3 * block[2] + 16) if TURN % 3 else (block[0], block[1],
                                                                                        5 * block[2])
        add(f"{t}_{'x'.join(map(str, block))}_s{1 + TURN % 5}w{warps}{'_alone' if which else ''}", t, acc, block, warps,
            1 + TURN % 5, hint, not wide or number % 2, shape)
        TURN += 1
# Warpgroups along N, where M has no 64 rows for each: columns side by side, of 96 by three instructions.
ALONG_N = (((64, 64, 64), 8, "f16"), ((64, 128, 64), 16, "bf16"), ((192, 64, 32), 8, "f16"), ((64, 96, 64), 8, "bf16"),
           ((128, 128, 32), 16, "f16"), ((64, 64, 128), 8, "f8e4m3"), ((64, 128, 64), 8, "i8"))
for number, (block, warps, t) in enumerate(ALONG_N):
    for which, hint in enumerate(HINTS):
        m, n, k = block
        shape = (m + 72, 2 * n - 16, 3 * k + 16)
        name = f"along_n_{t}_{m}x{n}x{k}_w{warps}{'_alone' if which else ''}"
        add(name, t, "i32" if t == "i8" else "f32", block, warps, 2 + which, hint,
            t not in ("f16", "bf16") or number % 2 == 0, shape)
# Fewer than 64 rows: the product of the transposed operands, whose A is B. Of bytes that is read along k only.
TURNED = (((16, 64, 64), 4, "f16"), ((32, 128, 64), 8, "bf16"), ((8, 64, 32), 4, "f16"), ((24, 128, 16), 4, "bf16"),
          ((32, 64, 64), 4, "f8e5m2"), ((16, 128, 64), 8, "u8"), ((32, 192, 32), 4, "f16"))
for number, (block, warps, t) in enumerate(TURNED):
    for which, hint in enumerate(HINTS):
        m, n, k = block
        name = f"turned_{t}_{m}x{n}x{k}_w{warps}{'_alone' if which else ''}"
        add(name, t, "i32" if t == "u8" else "f32", block, warps, 2 + which, hint,
            t not in ("f16", "bf16") or number % 2 == 0, (2 * m + 8, 2 * n - 16, 3 * k + 16))

# Bytes that memory has along N, or M, and threads put along K.
for block, warps, t in (((64, 64, 64), 4, "i8"), ((128, 128, 32), 8, "f8e4m3"), ((64, 128, 64), 8, "u8"),
                        ((64, 32, 128), 4, "f8e5m2")):
    m, n, k = block
    for which, hint in enumerate(HINTS):
        for more in (0, 16):
            name = f"bytes_{t}_{m}x{n}x{k}_w{warps}{'_ends' if more else ''}{'_alone' if which else ''}"
            acc = "i32" if t in ("i8", "u8") else "f32"
            add(name, t, acc, block, warps, 2 + which, hint, False, (2 * m - more, 2 * n - more, 3 * k - more))
BYTES = """
kernel bytes(const {0} A[K, M], const {0} B[K, N], {1} C[M, N], const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN))
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<{1}, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot(trans(A[k +: BK, m +: BM]), B[k +: BK, n +: BN], acc);
    C[m +: BM, n +: BN] = acc;
}}
"""
for t, acc, (m, n, k), warps in (("i8", "i32", (64, 64, 64), 4), ("f8e4m3", "f32", (128, 64, 32), 8)):
    row(f"warpgroup_bytes_both_{t}_{m}x{n}x{k}_w{warps}", BYTES.format(t, acc),
        {"A": few(t, 1, 2 * k + 16, m + 32), "B": few(t, 2, 2 * k + 16, n + 32), "C": poison(acc, m + 32, n + 32)},
        lambda a: {"C": exact(big(a["A"]).T @ big(a["B"]))}, consts={"BM": m, "BN": n, "BK": k}, warps=warps, stages=2)

# Two loops carry the sums, which are seen only transposed; of each product one side is computed.
NESTED = """
kernel nested(const {0} A[H, K, M], const {0} B[H, K, N], f32 C[M, N], const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN))
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    for (int h : range(0, H))
        for (int k : range(0, K, BK)) pipeline
            acc = dot(trans(({0})(A[h, k +: BK, m +: BM] * 2)), B[h, k +: BK, n +: BN], acc);
    C[m +: BM, n +: BN] = acc;
}}
"""
for t, block, warps in (("f16", (32, 128, 32), 8), ("bf16", (16, 64, 64), 4), ("f16", (64, 64, 32), 8)):
    m, n, k = block
    row(f"warpgroup_nested_{t}_{m}x{n}x{k}_w{warps}", NESTED.format(t),
        {"A": few(t, 1, 3, 2 * k + 8, m + 8), "B": few(t, 2, 3, 2 * k + 8, n + 24), "C": poison("f32", m + 8, n + 24)},
        lambda a: {"C": exact(np.einsum("hkm,hkn->mn", 2 * big(a["A"]), big(a["B"])))},
        consts={"BM": m, "BN": n, "BK": k}, warps=warps, stages=2)
for stages in range(1, 6):
    for which, hint in enumerate(HINTS):
        add(f"stages_{stages}{'_alone' if which else ''}", "f16", "f32", (128, 64, 32), 4 if stages % 2 else 8, stages,
            hint, False, (200, 136, 200))

# A few programs do all tiles in turn; the copies of the next one begin before this one is stored.
PERSISTENT = """
kernel persistent(const {0} A[M, K], const {0} B[K, N], {1} C[M, N], const int BM, const int BN, const int BK)
    grid(3)
{{
    int down = cdiv(M, BM);
    for (int t : range(pid(0), down * cdiv(N, BN), npid(0))) {{
        int m = t % down * BM;
        int n = t / down * BN;
        tile<{1}, BM, BN> acc = 0;
        for (int k : range(0, K, BK)) pipeline specialize
            acc = dot(A[m +: BM, k +: BK], B[k +: BK, n +: BN], acc);
        C[m +: BM, n +: BN] = acc;
    }}
}}
"""
for stages in range(1, 6):
    for warps, t, acc, k in ((4, "f16", "f32", 104), (8, "bf16", "f32", 64), (8, "f16", "f32", 0)):
        rows, columns = (64, 64) if warps == 4 else (128, 32)
        row(f"warpgroup_persistent_{t}_k{k}_s{stages}w{warps}", PERSISTENT.format(t, acc),
            {"A": few(t, 1, 3 * rows - 8, k), "B": few(t, 2, k, 136), "C": poison(acc, 3 * rows - 8, 136)},
            lambda a: {"C": exact(big(a["A"]) @ big(a["B"]))}, consts={"BM": rows, "BN": columns,
                                                                       "BK": 32}, warps=warps, stages=stages)

ATTENTION = """
kernel attention(const f16 Q[H, M, D], const f16 K[H, N, D], const f16 V[H, N, D], f32 O[H, M, D],
                 const int BM, const int BN, const int BD)
    grid(cdiv(M, BM), H)
    require(D == BD)
{{
    int h = pid(1);
    int m = pid(0) * BM;
    auto q = Q[h, m +: BM, 0 +: BD];
    tile<f32, BM, BD> acc = 0;
    for (int n : range(0, N, BN)) {} {{
        auto s = dot(q, trans(K[h, n +: BN, 0 +: BD]));
        acc = dot((f16)max(s, 0), V[h, n +: BN, 0 +: BD], acc * 0.5);
    }}
    O[h, m +: BM, 0 +: BD] = acc;
}}
"""


def attended(a, bn):
    q, k, v = (a[x].astype(np.float64) for x in "QKV")
    out = np.zeros(q.shape)
    for n in range(0, k.shape[1], bn):
        out = out * 0.5 + np.maximum(q @ k[:, n:n + bn].transpose(0, 2, 1), 0) @ v[:, n:n + bn]
    return out


for d, bn, warps, bm in ((64, 32, 4, 64), (128, 64, 8, 128), (32, 64, 4, 64), (64, 64, 8, 64)):
    for way, hint in (("", HINTS[0]), ("_alone", HINTS[1]), ("_turns", "pipeline specialize(2)"))[:2 + warps // 8]:
        row(
            f"warpgroup_attention_{d}{'_along_n' * (bm < 16 * warps)}{way}", ATTENTION.format(hint), {
                "Q": small("f16", 1, 2, 100, d, lo=-1, hi=2), "K": small("f16", 2, 2, 72, d, lo=-1, hi=2), "V": small(
                    "f16", 3, 2, 72, d, lo=-1, hi=2), "O": poison("f32", 2, 100, d)
            }, lambda a, bn=bn: {"O": exact(attended(a, bn))},
            consts={"BM": bm, "BN": bn, "BD": d}, warps=warps, stages=2)

# Operands of 32 bits that memory has along M or N, of which threads put squares along K; of tf32x3 what is computed
# from them, too. One side has
# 13 bits, of which tf32 keeps 11.
CROSSED = """
kernel crossed(const f32 A[{a}], const f32 B[{b}], f32 C[M, N], const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN))
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) {hint}
        acc = dot({x}, {y}, acc, precision = {precision});
    C[m +: BM, n +: BN] = acc;
}}
"""
SIDES = {"n": ("M, K", "A[m +: BM, k +: BK]", "K, N", "B[k +: BK, n +: BN]"),
         "t": ("K, M", "trans(A[k +: BK, m +: BM])", "N, K", "trans(B[n +: BN, k +: BK])")}
for number, (sides, block, warps, stages) in enumerate(
    (("nn", (64, 64, 32), 4, 3), ("tn", (128, 64, 32), 4, 2), ("nn", (128, 128, 32), 4, 3), ("tn", (64, 32, 64), 4, 4),
     ("nn", (128, 64, 64), 8, 1), ("nn", (64, 96, 16), 4, 3), ("tt", (64, 64, 32), 4, 3))):
    for precision in ("tf32", "tf32x3"):
        (a, x, _, _), (_, _, b, y) = SIDES[sides[0]], SIDES[sides[1]]
        m, n, k = block[0] + 24, 2 * block[1] - 12, 2 * block[2] + 8
        wide = [4097 if precision == "tf32x3" and number % 2 == side else 1 for side in range(2)]
        left = Arr("f32", few("f32", 1, m, k).store * np.float32(wide[0]))
        right = Arr("f32", few("f32", 2, k, n).store * np.float32(wide[1]))
        row(
            f"warpgroup_crossed_{precision}_{sides}_{'x'.join(map(str, block))}",
            CROSSED.format(a=a, b=b, x=x, y=y, precision=precision, hint=HINTS[number % 2]), {
                "A": left if sides[0] == "n" else Arr("f32", np.ascontiguousarray(left.store.T)),
                "B": right if sides[1] == "n" else Arr("f32", np.ascontiguousarray(right.store.T)), "C": poison(
                    "f32", m, n)
            }, lambda v, sides=sides: {
                "C": exact((big(v["A"])
                            if sides[0] == "n" else big(v["A"]).T) @ (big(v["B"])
                                                                      if sides[1] == "n" else big(v["B"]).T))
            }, consts=dict(zip(("BM", "BN", "BK"), block)), warps=warps, stages=stages)
