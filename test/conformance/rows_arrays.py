"""Local arrays: elements by known indices, by scalars of run time and by tiles of indices, read and assigned; few
elements and many, of all types, tiles of any rank and structs.
"""
import numpy as np

from rows import row
from rows_packed import packed
from values import ALL, F8, PACKED, Arr, exact, ints, poison, small

for t in ALL:
    for n in (3, 40):
        row(
            f"array_{t}_{n}", f"""
kernel k(const {t} x[N], const i32 at[L], {t} known[2, B], {t} one[4], {t} lanes[C], {t} put[D, C], i32 i)
    grid(1)
{{
    {t} a[{n}];
    tile<{t}, 5> V[{n}] = {{x[0], x[1 +: 5]}};
    for (int k : range({n}))
        a[k] = x[k];
    V[2] = x[7 +: 5];
    known[0, 0 +: 5] = V[0];
    known[1, 0 +: 5] = V[2];
    auto b = a;
    b[0] = x[9];
    one[0] = a[0];
    one[1] = a[i];
    one[2] = a[(u8)i + 1];
    one[3] = b[0];
    auto j = at[0 +: 5];
    lanes[0 +: 5] = V[j];
    V[j] = x[2 +: 5];
    V[i] = V[(i64)i + 1];
    for (int k : range({n}))
        put[k, 0 +: 5] = V[k];
}}
""", {
                "x": small(t, 1, 40), "at": ints("i32", 2, 0, n, 5), "known": poison(t, 2, 5), "one": poison(t, 4),
                "lanes": poison(t, 5), "put": poison(t, n, 5), "i": 1
            }, lambda a, n=n: few(a, n))


def few(a, n):
    x, j, r = a["x"], a["at"], np.arange(5)
    V = np.zeros((n, 5), x.dtype)
    V[0], V[1], V[2] = x[0], x[1:6], x[7:12]
    known, lanes = V[[0, 2]].copy(), V[j, r].copy()
    V[j, r] = x[2:7]
    V[1] = V[2].copy()
    return {
        "known": exact(known), "one": exact(np.array([x[0], x[1], x[2], x[9]], x.dtype)), "lanes": exact(lanes),
        "put": exact(V)
    }


# ---- types without arithmetic ---------------------------------------------------------------------------------------
def bits(t, seed, *shape):
    """f8: codes of numbers."""
    if t in PACKED:
        return packed(t, seed, *shape)
    return Arr(t, np.random.default_rng(seed).integers(0, 0x70, shape).astype(np.uint8))


for t in [*F8, *PACKED]:
    for n in (4, 50):
        row(
            f"array_{t}_{n}", f"""
kernel k(const {t} x[4, 8], const i32 at[L], {t} y[6, 8], i32 i)
    grid(1)
{{
    tile<{t}, 8> V[{n}];
    static for (int k : range(4))
        V[k] = x[k, 0 +: 8];
    y[0, 0 +: 8] = V[at[0 +: 8]];
    y[1, 0 +: 8] = V[i];
    V[at[0 +: 8]] = V[1];
    V[i] = V[0];
    for (int k : range(4))
        y[2 + k, 0 +: 8] = V[k];
}}
""", {"x": bits(t, 3, 4, 8), "at": ints("i32", 2, 0, 4, 8), "y": bits(t, 5, 6, 8), "i": 2}, lambda a: storage(a))


def storage(a):
    V, r = a["x"].copy(), np.arange(8)
    first = [V[a["at"], r], V[2].copy()]
    V[a["at"], r] = V[1]
    V[2] = V[0]
    return {"y": exact(np.stack([*first, *V]))}


# ---- lanes of scalars, structs, functions, tiles of any rank --------------------------------------------------------
for n in (7, 33, 1):
    row(
        f"array_lanes_of_scalars_{n}", f"""
kernel k(const f32 x[A], const i16 at[A], f32 y[A], f32 z[N], f32 w[2, C, D])
    grid(1)
    require(A == 13 && N == {n})
{{
    f32 a[{n}];
    static for (int i : range({n}))
        a[i] = -1 - i;
    auto j = at[0 +: 13];
    y[0 +: 13] = a[j];
    a[j] = x[0 +: 13];
    for (int i : range({n}))
        z[i] = a[i];
    w[0, 0 +: 2, 0 +: 3] = a[reshape(at[0 +: 6], 2, 3)];
    a[reshape(at[0 +: 6], 2, 3)] *= 2;
    w[1, 0 +: 2, 0 +: 3] = a[reshape(at[0 +: 6], 2, 3)];
}}
""", {
            "x": small("f32", 5, 13), "at": ints("i16", 6, 0, n, 13), "y": poison("f32", 13), "z": poison("f32", n),
            "w": poison("f32", 2, 2, 3)
        }, lambda a, n=n: lanes(a, n))


def lanes(a, n):
    v, j = -1 - np.arange(n, dtype=np.float32), a["at"]
    y = v[j]
    v[j] = a["x"]
    z, six = v.copy(), j[:6].reshape(2, 3)
    w0 = v[six]
    v[six] = v[six] * 2
    return {"y": exact(y), "z": exact(z), "w": exact(np.stack((w0, v[six])))}


for n in (3, 300):
    row(
        f"array_of_structs_{n}", f"""
struct inner {{
    i32 n;
    tile<f32, 4> v;
}};
struct pair {{
    bool b;
    inner t;
}};
auto fill(auto V, int from)
{{
    for (int i : range(3)) {{
        V[i].t.n = i + from;
        if (i == 1)
            continue;
        V[i].t.v += 1.5 + (f32)iota(4);
        V[i].b = i == 2;
    }}
    return V;
}}
kernel k(i32 n[3], f32 v[3, 4], bool b[3], f32 x[2, 4], int i)
    grid(1)
{{
    struct pair V[{n}];
    auto W = fill(V, 10);
    for (int k : range(3)) {{
        n[k] = W[k].t.n;
        v[k, 0 +: 4] = W[k].t.v;
        b[k] = W[k].b;
    }}
    W[0] = W[i];
    V[i] = (struct pair){{true, (struct inner){{3, (f32)iota(4)}}}};
    x[0, 0 +: 4] = W[0].t.v;
    x[1, 0 +: 4] = V[2].t.v;
}}
""", {
            "n": poison("i32", 3), "v": poison("f32", 3, 4), "b": poison("bool", 3), "x": poison("f32", 2, 4), "i": 2
        }, lambda a: (lambda r: {
            "n": exact(np.array([10, 11, 12])), "v": exact(np.stack([r + 1.5, 0 * r, r + 1.5])), "b":
            exact(np.array([False, False, True])), "x": exact(np.stack([r + 1.5, r]))
        })(np.arange(4, dtype=np.float32)))

for n in (2, 60):
    row(
        f"array_of_ranks_{n}", f"""
kernel k(const i32 x[72], const i32 at[72], i32 y[4, 72], i32 i)
    grid(1)
{{
    tile<i32, 2, 1, 3, 2, 6> V[{n}];
    auto t = reshape(x[0 +: 72], 2, 1, 3, 2, 6);
    auto j = reshape(at[0 +: 72], 2, 1, 3, 2, 6);
    V[i] = t;
    y[0, 0 +: 72] = reshape(V[1 - i], 72);
    y[1, 0 +: 72] = reshape(V[j], 72);
    V[j] = t + 1;
    y[2, 0 +: 72] = reshape(V[0], 72);
    y[3, 0 +: 72] = reshape(V[1], 72);
}}
""", {"x": ints("i32", 1, 0, 99, 72), "at": ints("i32", 2, 0, 2, 72), "y": poison("i32", 4, 72), "i": 1}, lambda a:
        (lambda x, j: {"y": exact(np.stack([0 * x, j * x, np.where(j, 0, x + 1), x + j]))})(a["x"], a["at"]))

# ---- control flow ---------------------------------------------------------------------------------------------------
for n in (4, 64):
    row(
        f"array_in_control_flow_{n}", f"""
auto first(auto V, int stop)
{{
    for (int i : range({n})) {{
        V[i] = V[i] + 100;
        if (i == stop)
            return V;
    }}
    V[0] = -1;
    return V;
}}
kernel k(const i32 x[N], i32 y[3, {n}], int stop)
    grid(1)
{{
    i32 a[{n}];
    for (int i = 0; i < {n}; i += 1)
        a[i] = x[i];
    auto b = first(a, stop);
    int k = 0;
    while (a[k] < 50) {{
        for (int q : range(2))
            a[k + q] += 50;
        if (a[k + 1] > 70)
            a[0] = 7;
        else
            b = a;
        k += 1;
        if (k == {n} - 1)
            break;
    }}
    auto c = stop > 1 ? a : b;
    for (int i : range({n})) {{
        y[0, i] = a[i];
        y[1, i] = b[i];
        y[2, i] = c[i];
    }}
}}
""", {"x": ints("i32", 4, 0, 40, n), "y": poison("i32", 3, n), "stop": 2}, lambda a, n=n: flow(a, n))


def flow(args, n):
    a = args["x"].copy()
    b = a.copy()
    b[:3] += 100
    k = 0
    while a[k] < 50:
        a[k:k + 2] += 50
        if a[k + 1] > 70:
            a[0] = 7
        else:
            b = a.copy()
        k += 1
        if k == n - 1:
            break
    return {"y": exact(np.stack((a, b, a)))}


row(
    "array_of_4096", """
kernel k(const i32 x[N], i32 y[N])
    grid(1)
{
    i32 a[4096];
    for (int i : range(8))
        a[i * 512 + 511] = x[i];
    y[0 +: 8] = a[(7 - iota(8)) * 512 + 511] + a[4095] + a[17];
}
""", {"x": ints("i32", 4, 0, 40, 8), "y": poison("i32", 8)}, lambda a: {"y": exact(a["x"][::-1] + a["x"][7])})
