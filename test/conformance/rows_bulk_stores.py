"""Tiles that Hopper's threads put into shared memory and one of them stores as boxes of a tensor map (TMA): of all
widths of elements, rows of 32 to 128
bytes, past the ends of views, across them, of views of three axes, from loops that the kernel's warps feed or others,
of parts of a persistent kernel, trips
of a loop, programs of a cluster; forced (--stress-layouts), where threads have no more work with it. Data are small
integers, and bits are compared."""
import numpy as np

from rows import row
from values import Arr, exact, poison, quantize, small

KERNEL = """
kernel stored(const {t} A[M, K], const {t} B[K : 1, N : ldb], {o} C[{held}], const int BM, const int BN)
    grid(cdiv(M, BM), cdiv(N, BN)){clauses}
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<{acc}, BM, BN> acc = 0;
    for (int k : range(0, K, 32)) {hint}
        acc = dot(A[m +: BM, k +: 32], B[k +: 32, n +: BN], acc);
    {store}
}}
"""
# One program does a band, or three all of them in turn.
TRIPS = """
kernel stored(const f16 A[M, K], const f16 B[K : 1, N : ldb], f16 C[M, N], const int BM, const int BN)
    grid(3)
{{
    int down = cdiv(M, BM);
    for (int t : range(pid(0), down * cdiv(N, BN), npid(0))) {{
        int m = t % down * BM;
        int n = t / down * BN;
        tile<f32, BM, BN> acc = 0;
        for (int k : range(0, K, 32)) {hint}
            acc = dot(A[m +: BM, k +: 32], B[k +: 32, n +: BN], acc);
        C[m +: BM, n +: BN] = (f16)acc;
    }}
}}
"""
PLAIN, ACROSS = "C[m +: BM, n +: BN] = ({o})acc;", "C[n +: BN, m +: BM] = ({o})trans(acc);"
BATCH = "C[1, m +: BM, n +: BN] = ({o})acc;"


def wide(x):
    return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)


def as_type(v, o):
    return exact(quantize(v, o) if o[0] != "i" else v)


def add(name, o, source=KERNEL, held="M, N", clauses="", hint="pipeline", store=PLAIN, m=104, n=112, k=72, bm=64, bn=64,
        warps=4, stages=3, shape=None, columns=False, forced=0):
    t, acc = ("i8", "i32") if o[0] == "i" else ("f16", "f32")
    k += 8 * (t == "i8" and k > 0)  # rows of 16 bytes' multiples, of which there are maps
    b, c = small(t, 2, k, n, lo=-2, hi=3), poison(o, *(shape or (m, n)))
    text = source.format(t=t, acc=acc, o=o, held=held, clauses=clauses, hint=hint, store=store.format(o=o))

    def want(a):
        v = wide(a["A"]) @ wide(a["B"])
        if store is BATCH:
            return {"C": as_type(np.stack([wide(a["C"])[0], v]), o)}
        return {"C": as_type(v.T if store is ACROSS else v, o)}

    if store is BATCH:
        c = small(o, 3, *shape)
    row(
        f"warpgroup_stored_{name}", text, {
            "A": small(t, 1, m, k, lo=-2, hi=3), "B": Arr(t, np.asfortranarray(b.store)),
            "C": Arr(o, np.asfortranarray(c.store)) if columns else c
        }, want, consts={"BM": bm, "BN": bn}, warps=warps, stages=stages,
        options=("--stress-layouts", str(forced)) if forced else ())


for number, o in enumerate(("f16", "bf16", "f32", "i32", "f8e4m3", "i8")):
    add(o, o, hint="pipeline specialize" if number % 2 else "pipeline")
    add(o + "_wide", o, m=232, n=144, bm=128, bn=128, warps=8,
        hint="pipeline" if number % 2 or o == "f32" else "pipeline specialize")
for o, bn in (("f16", 16), ("bf16", 32), ("f8e4m3", 32), ("f32", 16)):
    add(f"{o}_narrow_{bn}", o, bn=bn)
add("across", "f16", held="N, M", store=ACROSS, shape=(112, 104))
add("columns", "f16", held="M : 1, N : ldc", columns=True)
add("batch", "f16", held="H, M, N", store=BATCH, shape=(2, 104, 112))
add("below", "bf16", m=8, n=8)
add("no_k", "f16", k=0)
for clauses, name in (
        (" cluster(2)", "cluster"), (" persistent(1)", "persistent"), (" persistent(1) cluster(2)", "both")):
    for hint, more in (("pipeline", ""), ("pipeline specialize", "_alone")):
        add(f"{name}{more}", "f16", clauses=clauses, hint=hint, m=264, n=136, bm=128, bn=128, warps=8)
for hint, more in (("pipeline", ""), ("pipeline specialize", "_alone")):
    add(f"trips{more}", "f16", source=TRIPS, hint=hint, m=264, n=136, bm=128, bn=128, warps=8)
# Of 8 bits threads store 16 elements at once, and have no more work than with a box.
for seed, (o, bm, bn) in enumerate((("i8", 64, 64), ("f8e4m3", 128, 32), ("f8e5m2", 64, 32), ("i8", 128, 64)), 1):
    add(f"{o}_forced_{bm}x{bn}", o, m=2 * bm - 24, n=2 * bn - 16, bm=bm, bn=bn, warps=bm // 16,
        hint="pipeline specialize" if bm == 128 else "pipeline", stages=2, forced=seed)
add("f8e4m3_forced_across", "f8e4m3", held="N, M", store=ACROSS, shape=(112, 112), m=112, forced=1)
add("i8_forced_below", "i8", m=16, n=16, forced=1)
