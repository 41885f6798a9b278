"""Matrix products as kernels have them: batches, weights of few bits, nests of loops, conditions, carried operands,
memory
that is written meanwhile. Stages and warps go round. Data are small integers and powers of two, and bits are
compared."""
import numpy as np

from rows import ROWS, row
from values import Arr, exact, ints, poison, quantize, small, store, wide

COUNT = len(ROWS)


def kernel(name, source, args, want, **more):
    turn = len(ROWS) - COUNT
    row(f"gemm_{name}", source, args, want, **{"warps": (4, 8)[turn // 5 % 2], "stages": 1 + turn % 5, **more})


def few(t, seed, *shape):
    return small(t, seed, *shape, lo=-2, hi=3)


def big(x):
    return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)


def product(a, b):
    return big(a) @ big(b)


def fortran(a):
    return Arr(a.type, np.asfortranarray(a.store))


def powers(t, seed, *shape):
    """1/4 to 2."""
    return Arr(t, store(2.0 ** ints("i32", seed, -2, 2, *shape).store, t))


# ---- the language's own example -------------------------------------------------------------------------------------
PAGE = """
auto relu(auto x) { return max(x, 0); }
/// C = epi(A * B), f32 accumulation.
kernel gemm(const f16 A[M, K], const f16 B[K, N], f16 C[M, N],
            const int BM = 128, const int BN = 128, const int BK = 64,
            const fn epi = identity)
    grid(cdiv(M, BM), cdiv(N, BN), group = 8)
    tune(BM in {64, 128, 256}, BN in {64, 128, 256}, BK in {32, 64}, warps in {4, 8}, stages in {2, 3, 4};
         where BM * BN <= 32768)
    key(M, N, K)
{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot(A[m +: BM, k +: BK], B[k +: BK, n +: BN], acc);
    C[m +: BM, n +: BN] = (f16)epi(acc);
}
"""
kernel("page", PAGE, {"A": few("f16", 1, 130, 190), "B": few("f16", 2, 190, 140), "C": poison("f16", 130, 140)},
       lambda a: {"C": exact(product(a["A"], a["B"]))}, warps=8, stages=3)
for group_shape in ((1, 200, 64), (300, 40, 64), (200, 136, 1)):
    m, n, k = group_shape
    kernel(f"page_relu_{m}x{n}x{k}", PAGE,
           {"A": few("f16", 1, m, k), "B": few("f16", 2, k, n), "C": poison("f16", m, n)},
           lambda a: {"C": exact(np.maximum(product(a["A"], a["B"]), 0))},
           consts={"BM": 16, "BN": 32, "BK": 32, "epi": "relu"})

# ---- batches --------------------------------------------------------------------------------------------------------
BATCHED = """
kernel k(const T A[B%s, M%s, K%s], const U W[B, K, N], R C[B, M, N], const type T, const type U, const type R,
         const int BB, const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN), cdiv(B, BB))
{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    int b = pid(2) * BB;
    tile<R, BB, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot(A[b +: BB, m +: BM, k +: BK], W[b +: BB, k +: BK, n +: BN], acc);
    C[b +: BB, m +: BM, n +: BN] = acc;
}
"""
for i, (t, u, r, shape, block) in enumerate(
    (("f16", "f16", "f32", (3, 33, 40, 70), (1, 32, 32, 32)), ("f16", "f16", "f32", (5, 20, 50, 40), (2, 16, 32, 16)),
     ("bf16", "bf16", "f32", (4, 30, 31, 65), (4, 16, 16, 32)), ("f32", "f32", "f32", (3, 17, 20, 30), (3, 16, 24, 8)),
     ("i8", "u8", "i32", (3, 40, 24, 100), (2, 32, 16, 64)), ("f64", "f64", "f64", (2, 19, 18, 21), (2, 16, 16, 8)),
     ("f8e4m3", "f8e5m2", "f32", (9, 17, 9, 40), (8, 16, 8, 32)))):
    b, m, n, k = shape
    strides = (" : sb", " : sm", " : sk") if i in (1, 4) else ("", "", "")
    held = few(t, 1, b, m, k)
    kernel(f"batched_{t}_{b}x{m}x{n}x{k}_by_{block[0]}{'_strided' if strides[0] else ''}", BATCHED % strides,
           {"A": fortran(held) if strides[0] else held, "W": few(u, 2, b, k, n), "C": poison(r, b, m, n)},
           lambda a: {"C": exact(product(a["A"], a["W"]))},
           consts={"T": t, "U": u, "R": r, **dict(zip(("BB", "BM", "BN", "BK"), block))})

kernel(
    "batched_shared_weights", """
kernel k(const f16 A[B, K, M], const f16 W[K, N], f32 C[B, M, N], f16 D[B, N])
    grid(1)
{
    tile<f32, 4, 32, 16> acc = 0;
    for (int k : range(0, K, 16)) {
        auto w = broadcast(expand(W[k +: 16, 0 +: 16], 0), 4, 16, 16);
        acc = dot(trans(A[0 +: 4, k +: 16, 0 +: 32]), w, acc);
    }
    C[0 +: 4, 0 +: 32, 0 +: 16] = acc;
    D[0 +: 4, 0 +: 16] = (f16)sum(acc, axis = 1);
}
""", {
        "A": few("f16", 1, 3, 50, 31), "W": few("f16", 2, 50, 15), "C": poison("f32", 3, 31, 15), "D": poison(
            "f16", 3, 15)
    }, lambda a: (lambda c: {"C": exact(c), "D": exact(quantize(c.sum(1), "f16"))})
    (product(a["A"].transpose(0, 2, 1), a["W"])))

# ---- weights of few bits --------------------------------------------------------------------------------------------
WEIGHTS = """
kernel k(const T A[M, K], const U W[%s], const f32 S[G, N], T C[M, N], const type T, const type U,
         const int BM = 32, const int BN = 64, const int BK = 32)
    grid(cdiv(M, BM), cdiv(N, BN))
{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    tile<f32, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) pipeline {
        %s
    }
    C[m +: BM, n +: BN] = (%s)(acc%s);
}
"""
PLAIN, TRANSPOSED = "W[k +: BK, n +: BN]", "trans(W[n +: BN, k +: BK])"
ROWS_OF_A = "A[m +: BM, k +: BK]"
SCALED = f"({{t}})((f32)((i32){PLAIN} - {{zero}}) * S[k / BK, n +: BN])"
GATHERED = f"({{t}})((f32)(({{t}}){PLAIN} - {{zero}}) * S[(k + iota(BK)) / 32, n +: BN])"
BY_COLUMNS = " * S[0, n +: BN]"
WEIGHTS_BY = (  # name, order of W, the step, what follows the sum, groups, types of A and W, zero
    ("u8_columns", "K, N", f"acc = dot({ROWS_OF_A}, ({{t}}){PLAIN} - {{zero}}, acc);", " * S[0 +: 1, n +: BN]",
     1, "f16", "u8", 2),
    ("i8_columns", "K, N", f"acc = dot({ROWS_OF_A}, ({{t}}){PLAIN}, acc);", BY_COLUMNS, 1, "bf16", "i8", 0),
    ("u8_groups", "K, N", f"acc = dot({ROWS_OF_A}, {SCALED}, acc);", "", 4, "f16", "u8", 2),
    ("i8_groups_transposed", "N, K",
     f"acc = dot({ROWS_OF_A}, ({{t}}){TRANSPOSED} * ({{t}})S[k / BK +: 1, n +: BN], acc);", "", 4, "f16", "i8", 0),
    ("u8_groups_after", "K, N", f"acc += dot({ROWS_OF_A}, ({{t}}){PLAIN} - {{zero}}) * row(S[k / BK, n +: BN]);", "",
     4, "bf16", "u8", 1),
    ("u8_gathered_groups", "K, N", f"acc = dot({ROWS_OF_A}, {GATHERED}, acc);", "", 4, "f16", "u8", 2),
    ("f8", "K, N", f"acc = dot({ROWS_OF_A}, ({{t}}){PLAIN}, acc);", BY_COLUMNS, 1, "f16", "f8e4m3", 0),
    ("f8_transposed", "N, K", f"acc = dot({ROWS_OF_A}, ({{t}})(f32){TRANSPOSED}, acc);", BY_COLUMNS,
     1, "bf16", "f8e5m2", 0),
)
for name, held, body, after, groups, t, u, zero in WEIGHTS_BY:
    m, n, k = 45, 78, 120
    held_shape = (k, n) if held == "K, N" else (n, k)

    def want(a, zero=zero, groups=groups, held=held, t=t):
        w = a["W"].astype(float) if held == "K, N" else a["W"].T.astype(float)
        scales = np.repeat(a["S"].astype(float), -(-len(w) // groups) if groups == 1 else 32, axis=0)[:len(w)]
        return {"C": exact(quantize(a["A"].astype(float) @ ((w - zero) * scales), t))}
    written = WEIGHTS % (held, body.format(t=t, zero=zero), t, after)
    kernel(f"weights_{name}", written,
           {"A": few(t, 1, m, k), "W": few(u, 2, *held_shape), "S": powers("f32", 3, groups, n), "C": poison(t, m, n)},
           want, consts={"T": t, "U": u, **({"BK": 64} if name == "u8_gathered_groups" else {})})

kernel(
    "weights_u4", """
kernel k(const f16 A[M, K], const u4 W[K, N], const f16 S[N], f32 C[M, N])
    grid(cdiv(M, 32), cdiv(N, 32))
{
    int m = pid(0) * 32;
    int n = pid(1) * 32;
    tile<f32, 32, 32> acc = 0;
    for (int k : range(0, K, 32)) pipeline
        acc = dot(A[m +: 32, k +: 32], ((f16)W[k +: 32, n +: 32] - 8) * row(S[n +: 32]), acc);
    C[m +: 32, n +: 32] = acc;
}
""", {
        "A": few("f16", 1, 40, 70), "W": ints("u8", 2, 0, 256, 70, 25), "S": powers("f16", 3, 50), "C": poison(
            "f32", 40, 50)
    }, lambda a: {
        "C": exact(a["A"].astype(float) @ (
            (np.stack([a["W"] & 15, a["W"] >> 4], -1).reshape(70, 50).astype(float) - 8) * a["S"]))
    })

kernel(
    "both_quantised", """
kernel k(const i8 A[M, K], const i8 B[K, N], const f32 SA[M], const f32 SB[K / 32, N], bf16 C[M, N])
    grid(cdiv(M, 32), cdiv(N, 64))
{
    int m = pid(0) * 32;
    int n = pid(1) * 64;
    tile<f32, 32, 64> acc = 0;
    for (int k : range(0, K, 32)) pipeline
        acc += (f32)dot(A[m +: 32, k +: 32], B[k +: 32, n +: 64]) * row(SB[k / 32, n +: 64]);
    C[m +: 32, n +: 64] = (bf16)(acc * col(SA[m +: 32]));
}
""", {
        "A": few("i8", 1, 50, 128), "B": few("i8", 2, 128, 70), "SA": powers("f32", 3, 50), "SB": powers(
            "f32", 4, 4, 70), "C": poison("bf16", 50, 70)
    }, lambda a: {
        "C": exact(
            quantize(
                (a["A"].astype(float) @ (a["B"] * np.repeat(a["SB"].astype(float), 32, 0))) * a["SA"][:, None], "bf16"))
    })

# ---- loops ----------------------------------------------------------------------------------------------------------
HEAD = """
kernel k(const f16 A[M, K], const f16 B[K, N], f32 C[M, N]%s)
    grid(%s)
{
"""
TILE = """    int m = pid(0) * 32;
    int n = pid(1) * 32;
    tile<f32, 32, 32> acc = 0;
"""
BLOCKS = "cdiv(M, 32), cdiv(N, 32)"
A, B = "A[m +: 32, k +: 16]", "B[k +: 16, n +: 32]"
STORE = "\n    C[m +: 32, n +: 32] = acc;\n}\n"


def loops(name, body, want=None, more="", grid=BLOCKS, shape=(50, 40, 90), start=TILE, end=STORE, extra=None,
          **options):
    """A kernel of A, B and C; `body` fills acc."""
    m, n, k = shape
    kernel(name, HEAD % (more, grid) + start + body + end,
           {"A": few("f16", 1, m, k), "B": few("f16", 2, k, n), "C": poison("f32", m, n), **(extra or {})},
           want or (lambda a: {"C": exact(product(a["A"], a["B"]))}), **options)


loops("two_loops", f"""
    int half = K / 2 / 16 * 16;
    for (int k : range(0, half, 16)) pipeline
        acc = dot({A}, {B}, acc);
    acc *= 2;
    for (int k : range(half, K, 16)) pipeline
        acc = dot({A}, {B}, acc);""",
      lambda a: {"C": exact(2 * product(a["A"][:, :32], a["B"][:32]) + product(a["A"][:, 32:], a["B"][32:]))})
loops("loop_backwards", f"    for (int k : range((K - 1) / 16 * 16, -1, -16)) pipeline acc = dot({A}, {B}, acc);")
loops("loop_of_run_time_step", f"    for (int k : range(0, K, step)) pipeline acc = dot({A}, {B}, acc);",
      more=", int step", extra={"step": 16})
loops("loop_never", f"    for (int k : range(0, end, 16)) pipeline acc = dot({A}, {B}, acc);",
      lambda a: {"C": exact(np.zeros((50, 40)))}, more=", int end", extra={"end": 0})
loops(
    "loop_of_trips", f"""
    for (int t : range(trips))
        for (int k : range(0, t * 16, 16)) pipeline acc = dot({A}, {B}, acc);""",
    lambda a: {"C": exact(sum(product(a["A"][:, :16 * t], a["B"][:16 * t]) for t in range(6)))}, more=", int trips",
    extra={"trips": 6})
loops(
    "nest_scaled_between", f"""
    for (int g : range(0, K, 32)) {{
        tile<f32, 32, 32> part = 0;
        for (int k : range(g, min(g + 32, K), 16)) pipeline
            part = dot({A}, {B}, part);
        acc = acc * 0.5 + part;
    }}""", lambda a: {
        "C": exact(
            product(a["A"][:, :32], a["B"][:32]) / 4 + product(a["A"][:, 32:64], a["B"][32:64]) / 2 + product(
                a["A"][:, 64:], a["B"][64:]))
    })
loops("nest_of_tiles", f"""
    for (int t : range(pid(0), cdiv(M, 32) * cdiv(N, 32), npid(0))) {{
        int m = t % cdiv(M, 32) * 32;
        int n = t / cdiv(M, 32) * 32;
        tile<f32, 32, 32> acc = 0;
        for (int k : range(0, K, 16)) pipeline
            acc = dot({A}, {B}, acc);
        C[m +: 32, n +: 32] = acc;
    }}
}}
""", grid="3", start="", end="", shape=(70, 75, 50))
loops("nest_hint_outside", f"""
    for (int t : range(pid(0), cdiv(M, 32) * cdiv(N, 32), npid(0))) pipeline {{
        int m = t % cdiv(M, 32) * 32;
        int n = t / cdiv(M, 32) * 32;
        tile<f32, 32, 32> acc = 0;
        for (int k : range(0, K, 16))
            acc = dot({A}, {B}, acc);
        C[m +: 32, n +: 32] = acc;
    }}
}}
""", grid="2", start="", end="", shape=(70, 75, 50))
loops(
    "under_if", f"""
    for (int k : range(0, K, 16)) pipeline
        if (flags[k / 16] != 0) acc = dot({A}, {B}, acc);
        else acc += 1;""", lambda a: (lambda keep: {"C": exact(product(a["A"] * keep, a["B"]) + 3)})
    (np.repeat(a["flags"], 16)[:90]), more=", const i32 flags[F]",
    extra={"flags": Arr("i32", np.array([1, 0, 1, 1, 0, 0], np.int32))})
loops("in_both_branches", f"""
    for (int k : range(0, K, 16)) pipeline {{
        if (k % 32 == 0) acc = dot({A}, {B}, acc);
        else acc = dot(-{A}, {B}, acc);
    }}""", lambda a: {"C": exact(product(a["A"] * np.where(np.arange(90) // 16 % 2, -1, 1), a["B"]))})
loops("if_around_the_loop", f"""
    if (pid(0) == 0)
        for (int k : range(0, K, 16)) pipeline acc = dot({A}, {B}, acc);""",
      lambda a: {"C": exact(product(a["A"], a["B"]) * (np.arange(50) < 32)[:, None] + 0.0)})
loops("with_break", f"""
    for (int k : range(0, K, 16)) pipeline {{
        if (k >= stop) break;
        acc = dot({A}, {B}, acc);
    }}""", lambda a: {"C": exact(product(a["A"][:, :48], a["B"][:48]))}, more=", int stop", extra={"stop": 40})
loops(
    "with_continue", f"""
    for (int k : range(0, K, 16)) pipeline {{
        auto a = {A};
        if (k == skip) continue;
        acc = dot(a, {B}, acc);
    }}""", lambda a: {"C": exact(product(a["A"], a["B"]) - product(a["A"][:, 32:48], a["B"][32:48]))},
    more=", int skip", extra={"skip": 32})
loops("in_while", f"""
    int k = 0;
    while (k < K) {{
        acc = dot({A}, {B}, acc);
        k += 16;
    }}""")
loops("pipeline_3_unroll_2", f"    for (int k : range(0, K, 16)) pipeline(3) unroll(2) acc = dot({A}, {B}, acc);",
      shape=(33, 35, 130))
loops(
    "by_listed_blocks", f"""
    for (int j : range(listed)) pipeline {{
        int k = list[j] * 16;
        acc = dot({A}, {B}, acc);
    }}""", lambda a:
    {"C": exact(sum(product(a["A"][:, 16 * j:16 * j + 16], a["B"][16 * j:16 * j + 16])
                    for j in (5, 0, 0, 3)))}, more=", const i32 list[L], int listed",
    extra={"list": Arr("i32", np.array([5, 0, 0, 3, 100], np.int32)), "listed": 4})
loops(
    "gathered_rows", """
    auto rows = list[m +: 32];
    for (int k : range(0, K, 16)) pipeline
        acc = dot(A[rows, k +: 16], B[k +: 16, n +: 32], acc);""",
    lambda a: {"C": exact(product(a["A"][a["list"]], a["B"]))}, more=", const i32 list[M]",
    extra={"list": ints("i32", 5, 0, 50, 50)})
loops(
    "padded_with_ones", f"""
    for (int k : range(0, K, 16)) pipeline
        acc = dot(load({A}, pad = 1), load({B}, pad = 2), acc);""",
    lambda a: {"C": exact(product(a["A"], a["B"]) + 2 * 6)})
loops(
    "masked_triangle", f"""
    for (int k : range(0, K, 16)) pipeline
        acc = dot(col(m + iota(32)) >= row(k + iota(16)) ? {A} : 0, {B}, acc);""",
    lambda a: {"C": exact(product(np.tril(a["A"]), a["B"]))})
loops(
    "by_pointers", """
    auto pa = raw(A) + col(m + iota(32)) * K + row(iota(16));
    auto pb = raw(B) + col(iota(16)) * N + row(n + iota(32));
    auto rows = col(m + iota(32)) < M;
    auto cols = row(n + iota(32)) < N;
    for (int k : range(0, K, 16)) pipeline {
        auto left = K - k;
        acc = dot(load(pa, mask = rows && row(iota(16)) < left), load(pb, mask = cols && col(iota(16)) < left,
                other = 5), acc);
        pa += 16;
        pb += N * 16;
    }""")
loops("prefetched_by_hand", f"""
    int k = 0;
    auto a = {A};
    auto b = {B};
    for (int next : range(16, K + 16, 16)) pipeline {{
        k = next;
        auto a2 = {A};
        auto b2 = {B};
        acc = dot(a, b, acc);
        a = a2;
        b = b2;
    }}""")
loops("late_by_two_trips", """
    tile<f16, 32, 16> a1 = 0;
    tile<f16, 32, 16> a2 = 0;
    for (int k : range(0, K + 32, 16)) pipeline {
        acc = dot(a2, B[k - 32 +: 16, n +: 32], acc);
        a2 = a1;
        a1 = A[m +: 32, k +: 16];
    }""")
loops("accumulated_in_place", f"""
    acc = C[m +: 32, n +: 32];
    for (int k : range(0, K, 16)) pipeline acc = dot({A}, {B}, acc);""",
      lambda a: {"C": exact(product(a["A"], a["B"]) + 3)}, extra={"C": Arr("f32", np.full((50, 40), 3, np.float32))})
loops("each_trip_to_memory", f"""
    for (int k : range(0, K, 16)) pipeline
        C[m +: 32, n +: 32] += dot({A}, {B});
}}
""", end="", extra={"C": Arr("f32", np.zeros((50, 40), np.float32))})
loops("split_by_atomics", f"""
    for (int k : range(pid(2) * 32, min(pid(2) * 32 + 32, K), 16)) pipeline acc = dot({A}, {B}, acc);
    atomic_add(C[m +: 32, n +: 32], acc);
}}
""", grid=BLOCKS + ", cdiv(K, 32)", end="", extra={"C": Arr("f32", np.zeros((50, 40), np.float32))})
loops("transposed_store_and_sums", f"""
    for (int k : range(0, K, 16)) pipeline acc = dot({A}, {B}, acc);
    T[n +: 32, m +: 32] = trans(acc);
    best[m +: 32, pid(1)] = argmax(acc, axis = 1);
    running[m +: 32, n +: 32] = cumsum(acc, axis = 1);""", lambda a: (lambda c: {
        "C": exact(c), "T": exact(c.T), "best": exact(np.stack([c[:, :32].argmax(1), c[:, 32:].argmax(1)], 1)),
        "running": exact(np.concatenate([c[:, :32].cumsum(1), c[:, 32:].cumsum(1)], 1))})(product(a["A"], a["B"])),
      more=", f32 T[N, M], i32 best[M, P], f32 running[M, N]",
      extra={"T": poison("f32", 40, 50), "best": poison("i32", 50, 2), "running": poison("f32", 50, 40)})
loops("column_by_outer_products",
      "    for (int k : range(0, K)) pipeline acc = dot(A[m +: 32, k +: 1], B[k +: 1, n +: 32], acc);",
      shape=(40, 33, 11))

# ---- several products -----------------------------------------------------------------------------------------------
loops(
    "two_of_one_operand", f"""
    tile<f32, 32, 32> gate = 0;
    for (int k : range(0, K, 16)) pipeline {{
        auto a = {A};
        acc = dot(a, {B}, acc);
        gate = dot(a, G[k +: 16, n +: 32], gate);
    }}
    acc = max(gate, 0) * acc;""",
    lambda a: {"C": exact(np.maximum(product(a["A"], a["G"]), 0) * product(a["A"], a["B"]))},
    more=", const f16 G[K, N]", extra={"G": few("f16", 3, 90, 40)})
loops(
    "left_and_right_operand", """
    auto a = A[0 +: 64, 0 +: 48];
    C[0 +: 64, 0 +: 64] = dot(a, trans(a)) + dot(a, B[0 +: 48, 0 +: 64]);
}
""", lambda a: {"C": exact(product(a["A"], a["A"].T) + product(a["A"], a["B"]))}, grid="1", start="", end="",
    shape=(60, 60, 45))
loops(
    "square_of_rows", """
    for (int k : range(0, K, 16)) pipeline {
        auto a = A[m +: 32, k +: 16];
        acc = dot(a, trans(A[n +: 32, k +: 16]), acc);
        acc += row(sum((f32)A[n +: 32, k +: 16], axis = 1)) + col(sum((f32)a, axis = 1));
    }""", lambda a: {"C": exact(product(a["A"], a["A"].T) + big(a["A"]).sum(1) + big(a["A"]).sum(1)[:, None])},
    shape=(40, 40, 70))

kernel(
    "low_rank_beside", """
kernel k(const bf16 X[M, K], const bf16 W[K, N], const bf16 D[K, R], const bf16 U[R, N], f32 C[M, N])
    grid(cdiv(M, 32), cdiv(N, 32))
{
    int m = pid(0) * 32;
    int n = pid(1) * 32;
    tile<f32, 32, 32> acc = 0;
    tile<f32, 32, 8> low = 0;
    for (int k : range(0, K, 16)) pipeline {
        auto x = X[m +: 32, k +: 16];
        acc = dot(x, W[k +: 16, n +: 32], acc);
        low = dot(x, D[k +: 16, 0 +: 8], low);
    }
    C[m +: 32, n +: 32] = dot((bf16)low, U[0 +: 8, n +: 32], acc);
}
""", {
        "X": few("bf16", 1, 40, 60), "W": few("bf16", 2, 60, 50), "D": few("bf16", 3, 60, 7), "U": few(
            "bf16", 4, 7, 50), "C": poison("f32", 40, 50)
    }, lambda a: {"C": exact(product(a["X"], a["W"]) + product(quantize(product(a["X"], a["D"]), "bf16"), a["U"]))})

CHAIN = """
kernel k(const T A[M, K], const T B[N, K], const T V[N, D], R C[M, D], const type T, const type R,
         const int BM, const int BN, const int BD, const int BK)
    grid(cdiv(M, BM))
{
    int m = pid(0) * BM;
    auto a = A[m +: BM, 0 +: BK];
    tile<R, BM, BD> acc = 0;
    for (int n : range(0, N, BN)) pipeline
        acc = dot(cast(max(dot(a, trans(B[n +: BN, 0 +: BK])), 0), T), V[n +: BN, 0 +: BD], acc);
    C[m +: BM, 0 +: BD] = acc;
}
"""
for t, r, shape, block in (
        ("f16", "f32", (70, 100, 33, 30), (64, 32, 64, 32)), ("bf16", "f32", (20, 50, 16, 40), (16, 48, 16, 48)),
        ("f16", "f32", (7, 9, 5, 3), (5, 3, 7, 4)), ("f32", "f32", (20, 30, 10, 10), (16, 16, 16, 16)),
        ("f64", "f64", (20, 30, 10, 10), (16, 16, 16, 16))):
    m, n, d, k = shape
    kernel(f"chain_{t}_{m}", CHAIN,
           {"A": small(t, 1, m, k, lo=-1, hi=2), "B": few(t, 2, n, k), "V": few(t, 3, n, d), "C": poison(r, m, d)},
           lambda a, t=t: {"C": exact(product(quantize(np.maximum(product(a["A"], a["B"].T), 0), t), a["V"]))},
           consts={"T": t, "R": r, **dict(zip(("BM", "BN", "BD", "BK"), block))})

kernel(
    "carried_operand", """
kernel k(const f16 W[L, N, N], const f16 X[M, N], f16 Y[M, N], int layers)
    grid(cdiv(M, 16))
{
    int m = pid(0) * 16;
    auto x = X[m +: 16, 0 +: 32];
    for (int i : range(layers)) pipeline
        x = (f16)dot(x, W[i, 0 +: 32, 0 +: 32]);
    Y[m +: 16, 0 +: 32] = x;
}
""", {
        "W": Arr("f16", np.stack(
            [np.roll(np.eye(30, dtype=np.float16), i, 1) * (2, 1, -1, 0.5, 1)[i]
             for i in range(5)])), "X": few("f16", 1, 20, 30), "Y": poison("f16", 20, 30), "layers": 5
    }, lambda a: {"Y": exact(np.linalg.multi_dot([a["X"].astype(float), *a["W"].astype(float)]) + 0.0)})

# ---- memory that is written meanwhile -------------------------------------------------------------------------------
kernel(
    "reads_what_it_wrote", """
kernel k(const f16 L[T, S, S], f16 Y[T, S, N], int steps)
    grid(cdiv(N, 16))
{
    int n = pid(0) * 16;
    for (int t : range(1, steps)) pipeline
        Y[t, 0 +: 16, n +: 16] = (f16)dot(L[t, 0 +: 16, 0 +: 16], Y[t - 1, 0 +: 16, n +: 16]);
}
""", {
        "L": Arr("f16",
                 np.stack([np.roll(np.eye(16, dtype=np.float16), i, 1) * (1, 2, -1, 0.5, 1, -2)[i]
                           for i in range(6)])), "Y": few("f16", 1, 6, 16, 40), "steps": 6
    }, lambda a: {
        "Y": exact(
            np.stack([
                np.linalg.multi_dot([*a["L"][t:0:-1].astype(float), a["Y"][0].astype(float)])
                if t > 1 else (a["L"][1].astype(float) @ a["Y"][0] if t else a["Y"][0].astype(float)) for t in range(6)
            ]) + 0.0)
    })

kernel(
    "writes_what_it_reads", """
kernel k(f16 X[M, N], const f16 W[N, N], int steps)
    grid(1)
{
    for (int i : range(steps)) pipeline
        X[0 +: 16, 0 +: 16] = (f16)dot(X[0 +: 16, 0 +: 16], W[0 +: 16, 0 +: 16]) + X[i * 16 +: 16, 0 +: 16];
}
""", {"X": few("f16", 1, 64, 16), "W": Arr("f16", np.roll(np.eye(16, dtype=np.float16), 3, 1)), "steps": 4},
    lambda a: {"X": exact(scan_rows(a))})


def scan_rows(a):
    x = a["X"].astype(float)
    for i in range(4):
        x[:16] = x[:16] @ a["W"] + x[16 * i:16 * i + 16]
    return x


kernel(
    "convolution", """
kernel k(const f16 X[H, W, C], const f16 F[R, S, C, O], f32 Y[P, Q, O])
    grid(P, cdiv(O, 16))
{
    int p = pid(0);
    int o = pid(1) * 16;
    tile<f32, 32, 16> acc = 0;
    for (int r : range(0, R))
        for (int s : range(0, S))
            for (int c : range(0, C, 16)) pipeline
                acc = dot(X[p + r - 1, s - 1 +: 32, c +: 16], F[r, s, c +: 16, o +: 16], acc);
    Y[p, 0 +: 32, o +: 16] = acc;
}
""", {"X": few("f16", 1, 6, 21, 20), "F": few("f16", 2, 3, 3, 20, 18), "Y": poison("f32", 6, 21, 18)},
    lambda a: {"Y": exact(convolved(a["X"], a["F"]))})


def convolved(x, f):
    padded = np.pad(x.astype(float), ((1, 1), (1, 1), (0, 0)))
    return sum(padded[r:r + x.shape[0], s:s + x.shape[1]] @ f[r, s].astype(float) for r in range(3) for s in range(3))


kernel("operand_reshaped", """
kernel k(const f16 A[M, H, D], const f16 B[H, D, N], f32 C[M, N])
    grid(cdiv(M, 32))
{
    int m = pid(0) * 32;
    tile<f32, 32, 32> acc = 0;
    for (int h : range(0, H, 2)) pipeline
        acc = dot(reshape(A[m +: 32, h +: 2, 0 +: 16], 32, 32), reshape(B[h +: 2, 0 +: 16, 0 +: 32], 32, 32), acc);
    C[m +: 32, 0 +: 32] = acc;
}
""", {"A": few("f16", 1, 40, 5, 13), "B": few("f16", 2, 5, 13, 30), "C": poison("f32", 40, 30)},
       lambda a: {"C": exact(product(a["A"].reshape(40, 65), a["B"].reshape(65, 30)))})

kernel(
    "of_a_vector", """
kernel k(const f32 A[M, K], const f32 x[K], f32 y[M], const i8 P[M, K], const i8 q[K], i32 z[M])
    grid(cdiv(M, 64))
{
    int m = pid(0) * 64;
    tile<f32, 64, 1> acc = 0;
    tile<i32, 64, 1> count = 0;
    for (int k : range(0, K, 32)) pipeline {
        acc = dot(A[m +: 64, k +: 32], col(x[k +: 32]), acc);
        count = dot(P[m +: 64, k +: 32], col(q[k +: 32]), count);
    }
    y[m +: 64] = squeeze(acc, 1);
    z[m +: 64] = squeeze(count, 1);
}
""", {
        "A": few("f32", 1, 100, 70), "x": few("f32", 2, 70), "y": poison("f32", 100), "P": few("i8", 3, 100, 70),
        "q": few("i8", 4, 70), "z": poison("i32", 100)
    }, lambda a: {"y": exact(product(a["A"], a["x"])), "z": exact(product(a["P"], a["q"]))})
