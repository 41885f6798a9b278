"""Matrix products whose programs run as clusters on Hopper and bring parts of what all of them read to each other: along either axis, in bands, of whole
clusters and not, by the kernel's warps or a producer of its own, each tile by a program or by a few in turn. Elsewhere the clause has no effect. Data are
small integers, and bits are compared."""
import numpy as np

from rows import row
from values import exact, poison, small

GEMM = """
kernel gemm(const f16 A[M, K], const f16 B[K, N], f32 C[M, N], const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN){group}) cluster({cluster})
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) {hint}
        acc = dot(A[m +: BM, k +: BK], B[k +: BK, n +: BN], acc);
    C[m +: BM, n +: BN] = acc;
}}
"""
# A cluster does {cluster} tiles of a column at a time; loops between are branched around, and the last column is not full.
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


def add(name, source, shape, block, warps, stages):
    m, n, k = shape
    row(f"cluster_{name}", source, {"A": small("f16", 1, m, k, lo=-2, hi=3), "B": small("f16", 2, k, n, lo=-2, hi=3), "C": poison("f32", m, n)},
        lambda a: {"C": exact(a["A"].astype(float) @ a["B"].astype(float))}, consts=dict(zip(("BM", "BN", "BK"), block)), warps=warps, stages=stages)


for which, hint in enumerate(("pipeline", "pipeline specialize")):
    alone = "_alone" if which else ""
    for name, cluster, group, shape in (("down", "2", "", (256, 72, 200)), ("odd", "2", "", (136, 72, 136)), ("band", "2, 1", ", group = 2", (376, 136, 72)),
                                        ("across", "1, 2", "", (72, 248, 136)), ("band_across", "1, 2", ", group = 3", (264, 248, 72)),
                                        ("four", "4", "", (200, 64, 104)), ("no_trips", "2", "", (128, 64, 0))):
        add(name + alone, GEMM.format(cluster=cluster, group=group, hint=hint), shape, (64, 64, 32), 4, 2 + which)
    add("rows_of_8" + alone, GEMM.format(cluster="8", group="", hint=hint), (512, 64, 160), (64, 64, 64), 4, 3)
    for cluster in (2, 4):
        add(f"persistent_{cluster}{alone}", PERSISTENT.format(cluster=cluster, hint=hint), (328, 200, 104), (64, 64, 32), 4, 3)
