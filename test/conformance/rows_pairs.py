"""Matrix products whose programs run as clusters of two: on Blackwell with tensor memory, where both have the same
columns of B and rows of A of their own, they do them together (a pair), each with half of B. Memory of B along K or N,
columns that no power of two divides, one tile or several in turn, onto zeros or what is there, two strips of rows,
no whole clusters, by the kernel's warps or a producer of its own. Elsewhere the clause has its usual effect, or none.
Data are small integers, and bits are compared."""
from rows import row
from values import exact, poison, small

PAIR = """
kernel gemm(const {t} A[M, K], const {t} B[{b}], {o} C[M, N])
    grid(cdiv(M, {m}), cdiv(N, {n}){group}) cluster({cluster}){more}
{{
    int m = pid(0) * {m};
    int n = pid(1) * {n};
    tile<{o}, {m}, {n}> acc = {start};
    for (int k : range(0, K, {k})) pipeline {hint}
        acc = dot(A[m +: {m}, k +: {k}], {of_b}, acc{precision});
    C[m +: {m}, n +: {n}] = acc;
}}
"""
# Each pair goes through all columns.
IN_TURN = """
kernel gemm(const {t} A[M, K], const {t} B[{b}], {o} C[M, N]) grid(cdiv(M, {m})) cluster({cluster})
{{
    int m = pid(0) * {m};
    for (int n : range(0, N, {n})) {{
        tile<{o}, {m}, {n}> acc = {start};
        for (int k : range(0, K, {k})) pipeline {hint}
            acc = dot(A[m +: {m}, k +: {k}], {of_b}, acc{precision});
        C[m +: {m}, n +: {n}] = acc;
    }}
}}
"""


def add(name, shape, block, source=PAIR, t="f16", o="f32", along_k=False, start="0", warps=4, stages=3, **more):
    m, n, k = shape
    bm, bn, bk = block
    onto = start != "0"
    b = (n, k) if along_k else (k, n)
    text = source.format(**{
        "t": t, "o": o, "b": "N, K" if along_k else "K, N", "m": bm, "n": bn, "k": bk,
        "start": start.format(m=bm, n=bn),
        "cluster": "2", "group": "", "more": "", "hint": "", "precision": "",
        "of_b": f"trans(B[n +: {bn}, k +: {bk}])" if along_k else f"B[k +: {bk}, n +: {bn}]", **more})
    row(f"pair_{name}", text,
        {"A": small(t, 1, m, k, lo=-2, hi=3), "B": small(t, 2, *b, lo=-2, hi=3),
         "C": small(o, 3, m, n, lo=-9, hi=9) if onto else poison(o, m, n)},
        lambda a: {"C": exact(a["A"].astype(float) @ (a["B"].astype(float).T if along_k else a["B"].astype(float)) +
                              (a["C"].astype(float) if onto else 0))}, warps=warps, stages=stages)


WHAT_IS_THERE = "C[m +: {m}, n +: {n}]"
for which, hint in enumerate(("specialize(0)", "specialize")):
    alone = "_alone" if which else ""
    add("down" + alone, (256, 136, 200), (128, 128, 64), hint=hint)
    add("along_k" + alone, (248, 200, 136), (128, 64, 64), along_k=True, hint=hint)
    add("onto" + alone, (256, 64, 136), (128, 64, 64), start=WHAT_IS_THERE, hint=hint)
    add("in_turn" + alone, (240, 192, 200), (128, 64, 64), source=IN_TURN, hint=hint)
    add("in_turn_onto" + alone, (256, 128, 136), (128, 64, 64), source=IN_TURN, start=WHAT_IS_THERE, hint=hint)
    add("no_trips" + alone, (256, 64, 0), (128, 64, 64), hint=hint)
add("long", (256, 64, 1032), (128, 64, 64), hint="specialize", stages=2)
add("three", (384, 64, 136), (128, 64, 64))
add("four", (512, 64, 136), (128, 64, 64), cluster="4")
add("across", (128, 256, 136), (128, 128, 64), cluster="1, 2")
add("band", (512, 256, 136), (128, 128, 64), group=", group = 2")
add("parts", (1024, 128, 136), (128, 128, 64), more=" persistent(1)")
add("columns192", (256, 192, 136), (128, 192, 64), along_k=True)
add("strips", (512, 64, 136), (256, 64, 64), warps=8)
add("strips_turns", (512, 128, 136), (256, 64, 64), source=IN_TURN, warps=8, hint="specialize")
add("panels", (256, 64, 264), (128, 64, 128), along_k=True, stages=2)
add("bf16", (256, 64, 136), (128, 64, 64), t="bf16")
add("tf32", (256, 64, 72), (128, 64, 32), t="f32", along_k=True, precision=", precision = tf32")
add("tf32_across", (256, 128, 72), (128, 64, 32), t="f32", precision=", precision = tf32")
add("i8", (256, 64, 272), (128, 64, 128), t="i8", o="i32", along_k=True, hint="specialize")
add("e4m3", (256, 64, 272), (128, 64, 128), t="f8e4m3", along_k=True)
add("e4m3_across", (256, 128, 144), (128, 128, 64), t="f8e4m3")
