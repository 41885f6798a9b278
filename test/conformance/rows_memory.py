"""Views, slices, gathers, scatters, pointers, atomics: odd sizes, extent 1, nothing at all, and starts outside."""
import numpy as np

from rows import row
from values import (ALL, FLOATS, INTS, STORE, Arr, exact, exactly, int_range, ints, iota, is_float, normal, poison,
                    random_bits, small, store, wide, zeros)

COPY = """
kernel copy(const {t} A[M, K : sk], {t} B[M, K], {t} Tr[K, M])
    grid(cdiv(M, 16), cdiv(K, 32))
{{
    int m = pid(0) * 16;
    int k = pid(1) * 32;
    B[m +: 16, k +: 32] = A[m +: 16, k +: 32];
    Tr[k +: 32, m +: 16] = trans(A[m +: 16, k +: 32]);
}}
"""
for t in ALL:
    raw = "u8" if t == "bool" else t if not is_float(t) else "u16" if STORE[t](
    ).itemsize == 2 else f"u{8 * STORE[t]().itemsize}"
    x = Arr(t,
            (random_bits("bool", 1, 37, 53).store if t == "bool" else random_bits(raw, 1, 37, 53).store.view(STORE[t])))
    row(f"copy_bits_{t}", COPY.format(t=t), {"A": x, "B": poison(t, 37, 53), "Tr": poison(t, 53, 37)},
        lambda a: {"B": exact(a["A"]), "Tr": exact(a["A"].T)})
for name, shape in (("one", (1, 1)), ("row", (1, 200)), ("column", (200, 1)), ("no_rows", (0, 5)),
                    ("no_columns", (5, 0)), ("nothing", (0, 0)), ("exact", (32, 64))):
    row(f"copy_shape_{name}", COPY.format(t="f32"),
        {"A": normal("f32", 3, *shape), "B": poison("f32", *shape), "Tr": poison("f32", *shape[::-1])},
        lambda a: {"B": exact(a["A"]), "Tr": exact(a["A"].T)})

row(
    "slice_starts_outside", """
kernel k(const i32 x[N], i32 y[M], i32 inside[M], i32 padded[M], i32 w[W], i32 v[V])
    grid(1)
{
    y[0 +: 20] = x[-5 +: 20];
    inside[0 +: 20] = in(x[N - 7 +: 20]) ? 1 : 0;
    padded[0 +: 20] = load(x[N - 7 +: 20], pad = -9);
    w[-3 +: 8] = iota(8);
    w[W - 2 +: 8] = 100 + iota(8);
    w[1000000000 +: 8] = 7;
    v[2147483640 +: 8] = 7;
    v[-2147483648 +: 8] = 7;
    v[0 +: 1] = x[5];
    v[1] = x[-1] + x[N] + load(x[N], pad = 40);
}
""", {
        "x": iota("i32", 13), "y": poison("i32", 20), "inside": poison("i32", 20), "padded": poison("i32", 20),
        "w": zeros("i32", 9), "v": zeros("i32", 3)
    }, lambda a: {
        "y": exact([0] * 5 + list(range(13)) + [0, 0]), "inside": exact([1] * 7 + [0] * 13), "padded": exact(
            list(range(6, 13)) + [-9] * 13), "w": exact([3, 4, 5, 6, 7, 0, 0, 100, 101]), "v": exact([5, 40, 0])
    })

row("slice_with_steps_and_update", """
kernel k(const i32 x[N], i32 y[N], i32 z[R, C])
    grid(1)
{
    y[0 +: 7 : 3] = x[1 +: 7 : 2];
    y[1 +: 5 : 3] += 50;
    z[1 +: 2 : 2, -1 +: 4 : 2] = 9;
    z[0 +: 4, 0] += 1;
    z[2, 0 +: 6] *= 2;
}
""", {"x": iota("i32", 20), "y": zeros("i32", 20), "z": Arr("i32", np.ones((4, 6), np.int32))}, lambda a: steps(a))


def steps(a):
    y, z = a["y"].copy(), a["z"].copy()
    y[0:21:3] = a["x"][1:15:2]
    y[1:14:3] += 50
    z[1:4:2, [1, 3, 5]] = 9
    z[:, 0] += 1
    z[2] *= 2
    return {"y": exact(y), "z": exact(z)}


row(
    "view_strides", """
kernel k(const f32 A[M : lda, N], const f32 B[M : 1, N : ldb], const f32 C[M : sm, N : sn], f32 y[M, N], i32 s[4])
    grid(1)
{
    y[0 +: 16, 0 +: 16] = A[0 +: 16, 0 +: 16] + 100 * B[0 +: 16, 0 +: 16] + 10000 * C[0 +: 16, 0 +: 16];
    s[0] = lda;
    s[1] = ldb;
    s[2] = sm;
    s[3] = sn;
}
""", {
        "A": small("f32", 1, 11, 7), "B": Arr("f32", np.asfortranarray(small("f32", 2, 11, 7).store)), "C": Arr(
            "f32", np.asfortranarray(small("f32", 3, 11, 7).store)), "y": poison("f32", 11, 7), "s": poison("i32", 4)
    }, lambda a: {"y": exact(a["A"] + 100 * a["B"] + 10000 * a["C"]), "s": exact([7, 11, 1, 11])})

row(
    "store_masked", """
kernel k(const i32 x[N], i32 y[N], i32 z[R, C])
    grid(1)
{
    store(y[0 +: 32], x[0 +: 32] * 2, mask = x[0 +: 32] % 3 == 0);
    store(z[0 +: 4, 0 +: 8], 5, mask = col(iota(4)) > row(iota(8)));
}
""", {"x": iota("i32", 27), "y": Arr("i32", np.full(27, -1, np.int32)), "z": zeros("i32", 3, 7)}, lambda a: {
        "y": exact(np.where(a["x"] % 3 == 0, 2 * a["x"], -1)), "z": exact(
            np.where(np.arange(3)[:, None] > np.arange(7), 5, 0))
    })

row(
    "gather_forms", """
kernel k(const f32 X[A, B, C], const i32 i[I], const i64 j[J], f32 rows[I, C], f32 outer[I, J], f32 last[I], bool ok[I],
         f32 padded[I])
    grid(1)
{
    auto p = i[0 +: 9];
    auto q = j[0 +: 5];
    rows[0 +: 9, 0 +: 7] = X[p, 2, 0 +: 7];
    outer[0 +: 9, 0 +: 5] = X[p, q, 3];
    last[0 +: 9] = X[1, 2, p];
    ok[0 +: 9] = in(X[p, 0, 0]);
    padded[0 +: 9] = load(X[p, 0, 1], pad = 77);
}
""", {
        "X": small("f32", 1, 4, 5, 7), "i": exactly("i32", [0, 3, 3, -1, 4, 2, 100, 1, -2147483648]), "j": exactly(
            "i64", [4, 0, 5, -1, 2**40]), "rows": poison("f32", 9, 7), "outer": poison("f32", 9, 5), "last": poison(
                "f32", 9), "ok": poison("bool", 9), "padded": poison("f32", 9)
    }, lambda a: gathers(a))


def gathers(a):
    X, i, j = a["X"], a["i"].astype(int), a["j"].astype(int)
    oki, okj = (i >= 0) & (i < 4), (j >= 0) & (j < 5)
    ci, cj = np.where(oki, i, 0), np.where(okj, j, 0)
    okl = (i >= 0) & (i < 7)
    return {
        "rows": exact(np.where(oki[:, None], X[ci, 2],
                               0)), "outer": exact(np.where(oki[:, None] & okj, X[ci][:, cj, 3], 0)),
        "last": exact(np.where(okl, X[1, 2, np.where(okl, i, 0)],
                               0)), "ok": exact(oki), "padded": exact(np.where(oki, X[ci, 0, 1], 77))
    }


row(
    "scatter_forms", """
kernel k(const i32 to[N], i32 y[M], i32 z[R, C], i32 w[S, D])
    grid(1)
{
    auto p = to[0 +: 8];
    y[p] = 10 + iota(8);
    z[p, 1 +: 3] = col(iota(8)) + 1;
    store(w[0 +: 4, p], 7, mask = broadcast(row(iota(8) % 2 == 0), 4, 8));
}
""", {
        "to": exactly("i32", [4, 0, -3, 9, 2, 3, 50, 1]), "y": zeros("i32", 6), "z": zeros("i32", 5, 5), "w": zeros(
            "i32", 4, 5)
    }, lambda a: scatters(a))


def scatters(a):
    y, z, w = (a[n].copy() for n in "yzw")
    for k, p in enumerate(a["to"]):
        if 0 <= p < 6:
            y[p] = 10 + k
        if 0 <= p < 5:
            z[p, 1:4] = k + 1
            w[:, p] = 7 if k % 2 == 0 else w[:, p]
    return {"y": exact(y), "z": exact(z), "w": exact(w)}


LONG, PLACES = 30 * 41 - 20, np.random.default_rng(7).permutation(30 * 41 + 50).astype(np.int32)[:30 * 41 - 20] - 20
for t in ("f16", "bf16", "i8", "f32", "i64",
          "bool"):  # what a level has no instruction for is a call in code as long as this
    def masked(a):
        x, i = a["x"], np.arange(LONG)
        inside = (PLACES >= 0) & (PLACES < LONG)
        own, taken = i % 41 < 37, np.where(inside, x[np.where(inside, PLACES, 0)], 0)
        y = a["y"].copy()
        y[0, own] = x[own]
        y[1, PLACES[own & inside]] = x[own & inside]
        y[2, own] = taken[own]
        y[3, own & (PLACES % 3 == 0)] = x[own & (PLACES % 3 == 0)]
        return {"y": exact(y)}
    row(
        f"masked_in_long_code_{t}", f"""
kernel k(const {t} x[N], const i32 at[N], {t} y[4, N])
    grid(1)
{{
    static for (int i : range(30)) {{
        auto a = x[41 * i +: 37];
        auto p = at[41 * i +: 37];
        y[0, 41 * i +: 37] = a;
        y[2, 41 * i +: 37] = x[p];
        store(y[1, p], a, mask = 41 * i + iota(37) < N);
        store(y[3, 41 * i +: 37], a, mask = p % 3 == 0);
    }}
}}
""", {
            "x": small(t, 5, LONG) if t != "bool" else random_bits("bool", 5, LONG), "at": Arr("i32", PLACES),
            "y": zeros(t, 4, LONG)
        }, masked)

# Rows longer than 256 bytes, which the CPU may store past its caches; what is outside the part of Y must not be
# written.
row(
    "scatter_of_long_rows_drops_those_outside", """
kernel k(f32 Y[M, N], const i32 to[8], int R)
    grid(1)
{
    auto y = sub(Y, (0, 0), (R, N));
    y[to[0 +: 8], 0 +: 128] = tile<f32, 8, 128>(2) + col((f32)iota(8));
}
""", {"Y": zeros("f32", 9, 130), "to": exactly("i32", [1, 5, 3, -1, 8, 0, 6, 7]), "R": 4}, lambda a: {
        "Y": exact(
            np.pad(
                np.array([7, 2, 0, 4, 0, 0, 0, 0, 0], np.float32)[:, None] * np.ones(128, np.float32), ((0, 0),
                                                                                                        (0, 2))))
    })

row("scatter_where_indices_repeat", """
kernel k(const i32 to[N], f32 y[M], f32 z[M])
    grid(1)
{
    auto p = to[0 +: 256];
    y[p] = 6;
    for (int i = 0; i < 3; i += 1)
        store(raw(z) + (p + i) % 9, (f32)i);
}
""", {"to": ints("i32", 2, 0, 9, 256), "y": zeros("f32", 9), "z": zeros("f32", 9)},
    lambda a: {"y": exact(np.full(9, 6.0)), "z": exact(np.full(9, 2.0))})  # of equal values any, of trips the last


row(
    "gather_pointwise_of_rank_2", """
kernel k(const f32 x[H, W, C], const i32 h[P, Q], const i32 w[P, Q], const i32 at[P, Q], f32 y[P, Q], f32 z[P, Q, 3],
         f32 s[H, W])
    grid(1)
{
    auto i = h[0 +: 4, 0 +: 5];
    auto j = w[0 +: 4, 0 +: 5];
    y[0 +: 4, 0 +: 5] = x[i, j, 1];
    z[0 +: 4, 0 +: 5, 0 +: 3] = x[i, j, 0 +: 3];
    auto n = at[0 +: 4, 0 +: 5];
    s[n / 7, n % 7] = 6;
}
""", {
        "x": small("f32", 1, 6, 7, 3), "at": Arr("i32", (np.arange(20) * 5 % 46).astype("i4").reshape(4, 5)), "h": ints(
            "i32", 2, -1, 7, 4, 5), "w": ints("i32", 3, -2, 9, 4, 5), "y": poison("f32", 4, 5), "z": poison(
                "f32", 4, 5, 3), "s": zeros("f32", 6, 7)
    }, lambda a: pointwise(a))


def pointwise(a):
    i, j, s = a["h"], a["w"], a["s"].copy()
    ok = (i >= 0) & (i < 6) & (j >= 0) & (j < 7)
    ci, cj = np.where(ok, i, 0), np.where(ok, j, 0)
    at = a["at"][a["at"] < 42]  # distinct: two stores to one element would be a race
    s[at // 7, at % 7] = 6
    return {
        "y": exact(np.where(ok, a["x"][ci, cj, 1], 0)), "z": exact(np.where(ok[..., None], a["x"][ci, cj], 0)),
        "s": exact(s)
    }


row(
    "pointer_forms", """
kernel k(const f32 *x, f32 *y, i64 *n, const i32 a[N], f32 z[4], int size)
    grid(cdiv(size, 32))
{
    auto i = pid(0) * 32 + iota(32);
    auto m = i < size;
    store(y + i, load(x + (size - 1 - i), mask = m, other = -1) * 2, mask = m && i % 5 != 0);
    if (pid(0) == 0) {
        store(n + 1, (i64)size);
        n[0] = 12345678901;
        z[0] = load(x + 3);
        z[1] = x[4];
        auto p = raw(a) + 2;
        z[2] = (f32)p[1];
        z[3] = sum(load(x + iota(8), mask = iota(8) < 3));
    }
}
""", {
        "x": iota("f32", 77), "y": zeros("f32", 77), "n": zeros("i64", 2), "a": iota("i32", 9), "z": poison("f32", 4),
        "size": 77
    }, lambda a: {
        "y": exact(np.where(np.arange(77) % 5 != 0, 2 * a["x"][::-1], 0)), "n": exact([12345678901, 77]), "z": exact(
            [3, 4, 3, 3])
    })

row(
    "view_of_pointer_and_sub", """
f32 total(const f32 A[M, N]) {
    f32 t = 0;
    for (int i : range(M)) t += sum(A[i, 0 +: 16]);
    return t;
}
kernel k(const f32 *p, f32 C[R, Q], f32 s[4], int m, int n, int ld)
    grid(1)
{
    auto V = view(p, (m, n), (ld, 1));
    auto W = sub(C, (2, 3), (4, 100));
    s[0] = total(V);
    s[1] = total(sub(V, (1, 1), (2, 3)));
    s[2] = V[m, 0] + V[0, n] + V[m - 1, n - 1];
    s[3] = total(sub(V, (-4, 0), (1, 2)));
    W[0 +: 8, 0 +: 8] = 7;
    W[-1, 0] = 99;
}
""", {"p": small("f32", 1, 60), "C": zeros("f32", 9, 7), "s": poison("f32", 4), "m": 5, "n": 6, "ld": 11},
    lambda a: subs(a))


def subs(a):
    V = np.stack([a["p"][i * 11:i * 11 + 6] for i in range(5)])
    C = a["C"].copy()
    C[2:6, 3:7] = 7
    return {"C": exact(C), "s": exact([V.sum(), V[1:3, 1:4].sum(), V[4, 5], V[0, :2].sum()])}


row("program_order_through_memory", """
kernel k(i32 x[N], i32 y[N], i32 z[N])
    grid(cdiv(N, 16))
{
    int i = pid(0) * 16;
    x[i +: 16] = i + iota(16);
    y[i +: 16] = x[i + 15 - iota(16)];
    x[i + iota(16)] = x[i +: 16] * 2;
    z[i +: 16] = x[i +: 16] + x[i];
    x[i] = -1;
    z[i] += x[i];
}
""", {"x": poison("i32", 64), "y": poison("i32", 64), "z": poison("i32", 64)}, lambda a: program_order())


def program_order():
    n = np.arange(64)
    first = n // 16 * 16
    x = 2 * n
    z = x + 2 * first
    z[::16] -= 1
    y = first + 15 - n % 16
    x[::16] = -1
    return {"x": exact(x), "y": exact(y), "z": exact(z)}


row("alias_in_place", """
kernel k(const f32 x[N], f32 y[N])
    grid(1)
    alias(x, y)
{
    y[1 +: 63] = x[0 +: 63];
}
""", {"x": "&y", "y": iota("f32", 64)},
    lambda a: {"y": exact(np.concatenate([[0], np.arange(63)]))})

row("unchecked_and_i64_extent", """
kernel k(const f32 x[i64 N], f32 y[N])
    grid((i32)cdiv(N, 32))
{
    i64 i = (i64)pid(0) * 32;
    if (i + 32 <= N) unchecked y[i +: 32] = unchecked x[i +: 32] + 1;
    else y[i +: 32] = x[i +: 32] + 1;
}
""", {"x": normal("f32", 1, 1000), "y": poison("f32", 1000)}, lambda a: {"y": exact(a["x"] + np.float32(1))})

AXES = ("kernel k(i32 y[A, B, C, D, E, F])\n    grid(A, B, C, D, E, F)\n{{\n"
        "    y[pid(0), pid(1), pid(2), pid(3), pid(4), pid(5)] = {e};\n}}\n")
row(
    "grid_of_six_axes",
    AXES.format(
        e="pid(0) + 10 * (pid(1) + 10 * (pid(2) + 10 * (pid(3) + 10 * (pid(4) + 10 * pid(5))))) + npid(0) * npid(5)"),
    {"y": poison("i32", 2, 3, 1, 4, 2, 3)},
    lambda a: {"y": exact(sum(np.indices(a["y"].shape)[k] * 10**k for k in range(6)) + 6)})

# ---- atomics --------------------------------------------------------------------------------------------------------
ATOMIC = {
    "add": INTS + FLOATS, "mul": INTS + FLOATS, "min": INTS + ["f32", "f64"], "max": INTS + ["f32", "f64"],
    "and": ["bool"] + INTS, "or": ["bool"] + INTS, "xor": ["bool"] + INTS
}
UFUNC = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor
}
for op, types in ATOMIC.items():
    for t in types:
        x = small(t, 1, 500, lo=0 if t in ("f16", "bf16") else -4, hi=2 if t in ("f16", "bf16") else 5)
        if op == "mul" and is_float(t):  # powers of two, so that products are exact
            x = Arr(t, store(np.resize([1, -1, 2, -1, .5], 500), t))
        if t == "bool":
            x = random_bits(t, 1, 500)
        start = store(np.array([0, 1, 2, 3, 0, 1, 2]), t)

        def want(a, op=op, t=t, start=start):
            s = wide(Arr(t, start)).copy() if is_float(t) else start.copy()
            x, at = a["x"], np.arange(500) % 9
            for i in range(500):
                if at[i] < 7 and i % 3 != 0:
                    s[at[i]] = UFUNC[op](s[at[i]], x[i])
            return {"s": exact(s)}
        row(f"atomic_{op}_{t}", f"""
kernel k(const {t} x[N], {t} s[7])
    grid(cdiv(N, 64))
{{
    auto i = pid(0) * 64 + iota(64);
    atomic_{op}(s[i % 9], x[pid(0) * 64 +: 64], mask = i % 3 != 0 && i < N);
}}
""", {"x": x, "s": Arr(t, start)}, want)

# Narrow ones, each beside others that programs change at the same time: a byte is no word.
for t in ("i8", "u8", "i16", "u16"):
    lo, hi = int_range(t)

    def neighbours(a, t=t, lo=lo, hi=hi):
        n = np.array([(p < 300) * 1 for p in range(300)])
        counts = np.bincount(np.arange(300) % 13, n, 13).astype(np.int64)
        wrap = (counts + 250 - lo) % (hi - lo + 1) + lo
        products = [(3 ** int(c) - lo) % (hi - lo + 1) + lo for c in np.bincount(np.arange(300) % 5, minlength=5)]
        return {"n": exact(wrap), "p": exact(products), "x": exact([lo, 9, 7, 6, -lo // 2 if lo else 100]),
                "old": exact([5, 9, 9, 6, 4, 0])}
    row(f"atomic_neighbours_{t}", f"""
kernel k({t} n[13], {t} p[5], {t} x[5], {t} old[6])
    grid(300)
{{
    int i = pid(0);
    atomic_add(n[i % 13], 1, order = acq_rel);
    while (true) {{
        {t} seen = atomic_load(p[i % 5]);
        if (atomic_cas(p[i % 5], seen, seen * 3) == seen) break;
    }}
    if (i == 7) {{
        old[0] = atomic_xchg(x[0], {lo});
        old[1] = atomic_cas(x[1], 8, 1);
        old[2] = atomic_cas(x[2], 9, 7);
        old[3] = atomic_load(x[3], order = acquire);
        old[4] = atomic_add(x[4], {-lo // 2 if lo else 100} - 4);
        old[5] = atomic_add(x[10], 1);
        atomic_store(x[4], {-lo // 2 if lo else 100}, order = release);
    }}
}}
""", {"n": exactly(t, [int(v) for v in (np.full(13, 250) - lo) % (hi - lo + 1) + lo]), "p": exactly(t, [1] * 5),
      "x": exactly(t, [5, 9, 9, 6, 4]), "old": poison(t, 6)}, neighbours)

row("atomic_bool", """
kernel k(bool b[5], bool old[7], bool seen[N], i32 winners[1])
    grid(40)
{
    int i = pid(0);
    atomic_or(seen[i * 3 % 40], true);
    if (!atomic_xchg(b[4], true)) atomic_add(winners[0], 1);
    if (i == 3) {
        old[0] = atomic_or(b[0], true);
        old[1] = atomic_xor(b[0], true);
        old[2] = atomic_and(b[1], false);
        old[3] = atomic_cas(b[2], false, true);
        old[4] = atomic_cas(b[2], false, true);
        old[5] = atomic_load(b[2]);
        atomic_store(b[3], true);
        old[6] = atomic_xchg(b[9], true);
    }
}
""", {"b": exactly("bool", [False, True, False, False, False]), "old": poison("bool", 7), "seen": zeros("bool", 41),
      "winners": zeros("i32", 1)},
    lambda a: {"b": exact([False, False, True, True, True]),
               "old": exact([False, True, True, False, True, True, False]), "seen": exact(np.arange(41) < 40),
               "winners": exact([1])})

row("atomic_mul_old_values", """
kernel k(f32 p[2], u8 q[3], f32 old[2], u8 was[2], f16 h[3])
    grid(1)
{
    old[0 +: 2] = atomic_mul(p[0 +: 2], 3, mask = iota(2) == 1);
    was[0] = atomic_mul(q[1], 2);
    was[1] = atomic_mul(q[1], 2);
    atomic_mul(raw(h) + iota(3), (f16)0.5);
}
""", {"p": exactly("f32", [5, 7]), "q": exactly("u8", [1, 100, 1]), "old": poison("f32", 2), "was": poison("u8", 2),
      "h": exactly("f16", [1, 2, 3])},
    lambda a: {"p": exact([5, 21]), "q": exact([1, 144, 1]), "old": exact([0, 7]), "was": exact([100, 200]),
               "h": exact([.5, 1, 1.5])})

row("atomic_old_values", """
kernel k(i32 n[1], i32 seen[N], i64 wide_[1], i32 one[2])
    grid(cdiv(N, 32))
{
    auto i = pid(0) * 32 + iota(32);
    auto old = atomic_add(n[iota(32) * 0], 1, mask = i < N);
    store(seen[old], 1, mask = i < N);
    atomic_max(wide_[0], (i64)pid(0) * 4294967296);
    i32 before = atomic_add(one[0], 2, order = acq_rel);
    atomic_xchg(one[1], before >= 0 ? 5 : 6);
}
""", {"n": zeros("i32", 1), "seen": zeros("i32", 333), "wide_": zeros("i64", 1), "one": zeros("i32", 2)},
    lambda a: {"n": exact([333]), "seen": exact(np.ones(333)), "wide_": exact([10 << 32]), "one": exact([22, 5])})

row(
    "atomic_cas_lock_free_float_product", """
kernel k(const f32 x[N], f32 p[2], i32 cas[4])
    grid(N)
{
    f32 old = atomic_load(p[0]);
    while (true) {
        f32 seen = atomic_cas(p[0], old, old * x[pid(0)]);
        if (seen == old) break;
        old = seen;
    }
    if (pid(0) == 0) {
        atomic_store(p[1], 3.5, order = release);
        cas[0] = atomic_cas(cas[2], 8, 1);
        cas[1] = atomic_cas(cas[2], 7, 1);
        cas[3] = atomic_add(cas[10], 5);
    }
}
""", {
        "x": exactly("f32", [2, 0.5, 1, 4, -1, 1, 2, -1, 0.25, 3] * 3), "p": exactly("f32", [1, 0]), "cas": exactly(
            "i32", [0, 0, 7, 9])
    }, lambda a: {"p": exact([np.prod(a["x"].astype(float)), 3.5]), "cas": exact([7, 7, 1, 0])})

row(
    "histogram_of_weights_by_atomics", """
kernel weigh(const u8 x[N], f32 bins[16])
    grid(5)
{
    for (int i : range(pid(0) * 96, N, npid(0) * 96)) {
        auto v = x[i +: 96];
        atomic_add(bins[(i32)v / 16], (f32)v, mask = i + iota(96) < N);
    }
}
""", {"x": random_bits("u8", 4, 10007), "bins": zeros("f32", 16)},
    lambda a: {"bins": exact(np.bincount(a["x"] // 16, a["x"], 16))})
