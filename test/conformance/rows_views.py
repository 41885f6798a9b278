"""Views: strides, steps, starts far outside, extents near 2^31 and 2^63 on small buffers, parts, every form of index;
what --check sees of them."""
import numpy as np

from rows import row
from values import Arr, exact, exactly, ints, iota, poison, random_bits, small, zeros

# ---- stores that vectors do not fill: every width, step and form of place --------------------------------------------
FORMS = {  # how a function writes x[0 +: w] to every second element of m from 5 on
    "step": "m[5 +: {w} : 2] = {x};",
    "index": "m[iota({w}) * 2 + 5] = {x};",
    "pointer": "auto p = raw(m); store(p + (iota({w}) * 2 + 5), {x});",
    "backwards": "m[2 * {w} + 3 - 2 * iota({w})] = {x};",
    "unchecked": "unchecked m[5 +: {w} : 2] = {x};",
    "column": "auto p = raw(m); auto V = view(p + 5, ({w}, 1), (2, 1)); V[0 +: {w}, 0] = {x};",
}
for form, place in FORMS.items():
    widths = (1, 3, 7, 12, 20, 24, 33, 40, 56, 100)
    params = ", ".join(f"i32 m{w}[N{w}]" for w in widths)
    body = "\n".join(f"    fill_{w}(m{w}, x);" for w in widths)
    functions = "\n".join(f"void fill_{w}(i32 m[N], const i32 x[M]) {{ {place.format(w=w, x=f'x[0 +: {w}]')} }}"
                          for w in widths)

    def want(a, widths=widths, form=form):
        out = {}
        for w in widths:
            m = a[f"m{w}"].copy()
            m[5:5 + 2 * w:2] = a["x"][:w][::-1 if form == "backwards" else 1]
            out[f"m{w}"] = exact(m)
        return out

    row(f"views_store_{form}_of_every_width",
        f"{functions}\nkernel k(const i32 x[M], {params})\n    grid(1)\n{{\n{body}\n}}\n",
        {"x": ints("i32", 1, 1, 1000, 100), **{f"m{w}": poison("i32", 2 * w + 70)
                                               for w in widths}}, want)

row(
    "views_80_parameters", f"""
kernel k({', '.join(f'const i32 x{i}[N]' for i in range(70))}, {', '.join(f'i32 y{i}[N]' for i in range(10))})
    grid(cdiv(N, 8))
    alias(y9, y8)
{{
    int i = pid(0) * 8;
    {' '.join(f'y{i}[i +: 8] = x{i}[i +: 8] + x{69 - i}[i +: 8]; ' for i in range(9))}
    y9[i +: 8] = y8[i +: 8] * 2;
    y9[i +: 8] = y8[i + 7 - iota(8)];
}}
""", {**{f"x{i}": ints("i32", i, -99, 99, 19)
         for i in range(70)}, **{f"y{i}": poison("i32", 19)
                                 for i in range(10)}}, lambda a:
    {**{f"y{i}": exact(a[f"x{i}"] + a[f"x{69 - i}"])
        for i in range(9)}, "y9": exact(turned(a["x8"] + a["x61"]))})


def turned(x):
    y = np.zeros(24, np.int32)
    y[:19] = x
    return y.reshape(3, 8)[:, ::-1].reshape(-1)[:19]


# Pointers whose first and last are as far apart as if they lay in a row, and the rest is not: for vectors of every
# width.
SWAPPED = np.concatenate([
    np.array(v) + at for at, v in ((0, [0, 2, 1, 3]), (4, [0, 5, 2, 3, 4, 1, 6, 7]), (12, [0, *range(14, 0, -1), 15]),
                                   (28, range(8)), (36, [0, 1]), (38, [0, 30, *range(2, 30), 1, 31]))
])
row(
    "views_pointers_with_ends_as_in_a_row", f"""
kernel k(const i64 x[N], const f32 *p, const i32 at[N], i64 y[N], f32 z[N], i64 w[N], i32 v[M])
    grid(1)
{{
    auto i = at[0 +: {len(SWAPPED)}];
    y[0 +: {len(SWAPPED)}] = load(raw(x) + i);
    z[0 +: {len(SWAPPED)}] = load(p + (i & 127), mask = i % 7 != 3, other = -1);
    store(raw(w) + i, x[0 +: {len(SWAPPED)}]);
    auto j = iota(64);
    store(raw(v) + (7 * (i32)(u8)(37 * j) - 2 * j), j);
}}
""", {
        "x": random_bits("i64", 1, len(SWAPPED)), "p": iota("f32", 128), "at": Arr("i32", SWAPPED.astype(
            np.int32)), "y": poison("i64", len(SWAPPED)), "z": poison("f32", len(SWAPPED)), "w": poison(
                "i64", len(SWAPPED)), "v": zeros("i32", 1800)
    }, lambda a: swapped(a))


def swapped(a):
    w, v, j = np.zeros_like(a["x"]), a["v"].copy(), np.arange(64)
    w[SWAPPED] = a["x"]
    to = 7 * (37 * j % 256) - 2 * j
    assert len(set(to)) == 64 and to.min() >= 0 and to.max() < 1800
    v[to] = j
    return {
        "y": exact(a["x"][SWAPPED]), "z": exact(np.where(SWAPPED % 7 != 3, SWAPPED, -1)), "w": exact(w), "v": exact(v)
    }
