"""Matrix products whose programs run as clusters on Hopper and bring parts of what all of them read to each other:
along either axis, in bands, of whole
clusters and not, by the kernel's warps or a producer of its own, each tile by a program or by a few in turn. Elsewhere
the clause has no effect. Data are
small integers, and bits are compared."""
import numpy as np

from rows import row
from values import exact, poison, small

GEMM = """
kernel gemm(const f16 A[M, K], const f16 B[K, N], f32 C[M, N], const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN){group}) cluster({cluster}){more}
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) {hint}
        acc = dot(A[m +: BM, k +: BK], B[k +: BK, n +: BN], acc);
    C[m +: BM, n +: BN] = acc;
}}
"""
# A cluster does {cluster} tiles of a column at a time; loops between are branched around, and the last column is not
# full.
PERSISTENT = """
kernel persistent(const f16 A[M, K], const f16 B[K, N], f32 C[M, N], const int BM, const int BN, const int BK)
    grid(3 * {cluster}) cluster({cluster})
{{
    int down = cdiv(M, {cluster} * BM);
    for (int t : range(pid(0) / {cluster}, down * cdiv(N, BN), npid(0) / {cluster})) {{
        int m = (t % down * {cluster} + pid(0) % {cluster}) * BM;
        int n = t / down * BN;
        if (t % down * {cluster} * BM < M) {{
            tile<f32, BM, BN> acc = 0;
            for (int k : range(0, K, BK)) {hint}
                acc = dot(A[m +: BM, k +: BK], B[k +: BK, n +: BN], acc);
            C[m +: BM, n +: BN] = acc;
        }}
    }}
}}
"""
# All programs of a head read its keys and values.
ATTENTION = """
kernel attention(const f16 Q[H, M, D], const f16 K[H, N, D], const f16 V[H, N, D], f32 O[H, M, D])
    grid(cdiv(M, 64), H) cluster(2)
    require(D == 64)
{{
    auto q = Q[pid(1), pid(0) * 64 +: 64, 0 +: 64];
    tile<f32, 64, 64> acc = 0;
    for (int n : range(0, N, 32)) {hint} {{
        auto s = dot(q, trans(K[pid(1), n +: 32, 0 +: 64]));
        acc = dot((f16)max(s, 0), V[pid(1), n +: 32, 0 +: 64], acc * 0.5);
    }}
    O[pid(1), pid(0) * 64 +: 64, 0 +: 64] = acc;
}}
"""


def add(name, source, shape, block, warps, stages):
    m, n, k = shape
    row(f"cluster_{name}", source,
        {"A": small("f16", 1, m, k, lo=-2, hi=3), "B": small("f16", 2, k, n, lo=-2, hi=3), "C": poison("f32", m, n)},
        lambda a: {"C": exact(a["A"].astype(float) @ a["B"].astype(float))}, consts=dict(zip(
            ("BM", "BN", "BK"), block)), warps=warps, stages=stages)


def attended(a):
    q, k, v = (a[x].astype(float) for x in "QKV")
    out = np.zeros(q.shape)
    for n in range(0, k.shape[1], 32):
        out = out * 0.5 + np.maximum(q @ k[:, n:n + 32].transpose(0, 2, 1), 0) @ v[:, n:n + 32]
    return out


for which, hint in enumerate(("pipeline", "pipeline specialize")):
    alone = "_alone" if which else ""
    for name, cluster, group, shape in (
            ("down", "2", "", (256, 72, 200)),
            ("odd", "2", "", (136, 72, 136)),
            ("band", "2, 1", ", group = 2", (376, 136, 72)),
            ("across", "1, 2", "", (72, 248, 136)),
            ("band_across", "1, 2", ", group = 3", (264, 248, 72)),
            ("four", "4", "", (200, 64, 104)),
            ("no_trips", "2", "", (128, 64, 0))):
        add(name + alone, GEMM.format(cluster=cluster, group=group, more="", hint=hint), shape, (64, 64, 32), 4,
            2 + which)
    add("rows_of_8" + alone, GEMM.format(cluster="8", group="", more="", hint=hint), (512, 64, 160), (64, 64, 64), 4, 3)
    for name, cluster, group, shape in (
            ("down", "2", ", group = 2", (376, 200, 72)),
            ("across", "1, 2", "", (184, 248, 104))):
        add(f"parts_{name}{alone}", GEMM.format(cluster=cluster, group=group, more=" persistent(1)", hint=hint), shape,
            (64, 64, 32), 4, 3)
    for cluster in (2, 4):
        add(f"persistent_{cluster}{alone}", PERSISTENT.format(cluster=cluster, hint=hint), (328, 200, 104),
            (64, 64, 32), 4, 3)
    row(
        f"cluster_attention{alone}", ATTENTION.format(hint=hint), {
            "Q": small("f16", 1, 2, 100, 64, lo=-1, hi=2), "K": small("f16", 2, 2, 136, 64, lo=-1, hi=2), "V": small(
                "f16", 3, 2, 136, 64, lo=-1, hi=2), "O": poison("f32", 2, 100, 64)
        }, lambda a: {"O": exact(attended(a))}, warps=4, stages=3)
