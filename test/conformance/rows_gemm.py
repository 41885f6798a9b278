"""Matrix products over a pairwise-covering set: types, places, transpositions, tiles, sizes, stages, warps, epilogues.

AXES says what varies. `cover` makes rows such that every pair of values of two axes is in some row (but for pairs that
`possible` denies). A row's kernel is written out for it: C = epilogue(A B), with
    a, b    "n": the rows of the matrix are together; "view": its columns are, by the view's strides; "trans": the array
    holds
            the transposed matrix, and the kernel says trans()
    place   "dense": the array is the matrix; "sub": the matrix is a part of it; "raw": a view of a pointer, with a base
            and a stride. What is beside the matrix is NaN, or 77, and must not be seen.
    align   of extents, offsets and strides, in elements
Data are small integers, then bits are compared, or normal, then the bound is K eps |A||B| and what the precision
allows.
"""
import itertools

import numpy as np

from rows import row
from values import F8, Arr, STORE, eps, is_float, normal, poison, quantize, rng, small, spacing, store, wide, within

TYPES = {  # operands, accumulator, precision
    "f16": ("f16", "f16", "f32", None), "bf16": ("bf16", "bf16", "f32", None), "f64": ("f64", "f64", "f64", None),
    "ieee": ("f32", "f32", "f32", "ieee"), "tf32": ("f32", "f32", "f32", "tf32"),
    "tf32x3": ("f32", "f32", "f32", "tf32x3"),
    "bf16x3": ("f32", "f32", "f32", "bf16x3"),
    "e4m3": ("f8e4m3", "f8e4m3", "f32", None), "e5m2": ("f8e5m2", "f8e5m2", "f32", None),
    "e4m3_e5m2": ("f8e4m3", "f8e5m2", "f32", None),
    "e5m2_e4m3": ("f8e5m2", "f8e4m3", "f32", None), "i8": ("i8", "i8", "i32", None),
    "u8": ("u8", "u8", "i32", None), "i8_u8": ("i8", "u8", "i32", None), "u8_i8": ("u8", "i8", "i32", None),
}
TILES = {  # by turns
    "small": [(16, 16), (32, 32), (16, 64), (64, 16)], "large": [(64, 64), (128, 32), (32, 128), (64, 128), (128, 128)],
    "threes": [(48, 80), (80, 48), (96, 32), (16, 96), (48, 24)],
    "elevens": [(176, 16), (192, 32), (16, 176), (32, 192), (48, 176)],
    "tiny": [(5, 3), (1, 16), (3, 7), (16, 1), (1, 1), (2, 5)], "thin": [(8, 128), (256, 8), (4, 64), (8, 8)],
}
DEPTHS = {"8": [8], "16": [16], "32": [32], "64": [64], "odd": [7, 24, 12, 48, 5, 1]}
AXES = {
    "type": list(TYPES), "tile": list(TILES), "depth": list(DEPTHS), "a": ["n", "view",
                                                                           "trans"], "b": ["n", "view", "trans"],
    "c": ["n", "view"], "place": ["dense", "sub", "raw"], "align": [16, 4, 1], "size": ["even", "odd", "less", "long"],
    "stages": [1, 2, 3, 4, 5], "warps": [4, 8], "epi": ["none", "bias_relu", "scale", "residual", "narrow",
                                                        "out_f16"], "data": ["small", "normal"],
}

# Where operands may be copied to shared memory as they are.
COPIED = {
    **AXES, "type": ["f16", "bf16", "ieee", "tf32", "e4m3", "i8", "u8_i8", "f64"], "tile": ["small", "large", "threes"],
    "depth": ["16", "32", "64"], "place": ["dense"], "align": [16], "epi": ["none", "bias_relu",
                                                                            "narrow"], "data": ["small"]
}


# ---- which rows -----------------------------------------------------------------------------------------------------
def possible(pick):
    r = TYPES[pick["type"]][2] if "type" in pick else None
    u = TYPES[pick["type"]][0] if "type" in pick else None
    return not (r == "i32" and pick.get("data") == "normal") and not (u in ("f32", "f64", "i8", "u8") and
                                                                      pick.get("epi") == "out_f16")


def cover(axes, seed):
    """Rows as {axis: value}. Each begins with a pair not yet met; the other axes, in random order, take what meets
    most."""
    gen, names = rng(seed), list(axes)
    left = {}
    for x, y in itertools.combinations(names, 2):
        for v, w in itertools.product(axes[x], axes[y]):
            if possible({x: v, y: w}):
                left[x, v, y, w] = True
    rows = []
    while left:
        x, v, y, w = next(iter(left))
        pick = {x: v, y: w}
        for name in gen.permutation([n for n in names if n not in pick]):
            def gain(value, name=name):
                return sum((o, p, name, value) in left or (name, value, o, p) in left for o, p in pick.items())

            values = [
                axes[name][i] for i in gen.permutation(len(axes[name])) if possible({**pick, name: axes[name][i]})
            ]
            pick[str(name)] = max(values, key=gain)
        for (x, v), (y, w) in itertools.permutations(pick.items(), 2):
            left.pop((x, v, y, w), None)
        rows.append({n: pick[n] for n in names})
    return rows


# ---- one row --------------------------------------------------------------------------------------------------------
def parameter(name, t, form, place, align, writes):
    """The parameter, and the statement that makes the matrix `name` of it."""
    const, rows, cols = "" if writes else "const ", *{"A": "MK", "B": "KN", "C": "MN"}[name]
    held = (cols, rows) if form == "trans" else (rows, cols)
    strides = (" : 1", f" : ld{name.lower()}") if form == "view" else ("", "")
    if place == "raw":
        s = f"(1, ld{name.lower()})" if form == "view" else f"(ld{name.lower()}, 1)"
        made = f"    auto {name} = view({name}0 + {3 * align}, ({held[0]}, {held[1]}), {s});\n"
        return f"{const}{t} *{name}0, int ld{name.lower()}", made
    if place == "sub":
        view = f"{const}{t} {name}0[{name}r{strides[0]}, {name}c{strides[1]}]"
        start = (3 * align, 1) if form == "view" else (1, 3 * align)
        return view, f"    auto {name} = sub({name}0, {start}, ({held[0]}, {held[1]}));\n"
    return f"{const}{t} {name}[{held[0]}{strides[0]}, {held[1]}{strides[1]}]", ""


def argument(name, matrix, form, place, align):
    """{parameter: array or scalar} that hold the matrix, an Arr."""
    t, x = matrix
    x = x.T if form == "trans" else x
    order = "F" if form == "view" else "C"
    if place == "dense":
        return {name: Arr(t, np.asarray(x, order=order))}
    beside = poison(t).store if is_float(t) else STORE[t](77)
    if place == "sub":
        x = x.T if form == "view" else x
        y = np.full((x.shape[0] + 2, x.shape[1] + 5 * align), beside, x.dtype)
        y[1:-1, 3 * align:-2 * align] = x
        return {name + "0": Arr(t, y.T if form == "view" else y)}
    x = x.T if form == "view" else x
    ld = x.shape[1] + 5 * align
    y = np.full(3 * align + x.shape[0] * ld, beside, x.dtype)
    y[3 * align:].reshape(-1, ld)[:, :x.shape[1]] = x
    return {name + "0": Arr(t, y), f"ld{name.lower()}": ld}


def sizes(kind, bm, bn, bk, align, turn):
    """M, N, K."""
    least = {
        "even": (2 * bm, bn, 3 * bk), "odd": (bm + bm // 2 + 1, 2 * bn - bn // 3 - 1 or 3, 2 * bk + bk // 2 + 1),
        "less": (max(bm - 3, 1), max(bn // 2, 1), (max(bk // 2, 1), 1, bk)[turn % 3]),
        "long": (bm - bm // 4, bn + 1, 7 * bk - bk // 4),
    }[kind]
    return [-(-n // align) * align for n in least]


EPILOGUES = {  # parameters, the value stored, type stored
    "none": ("", "acc", "R"), "bias_relu": (", const {R} bias[{N}]", "max(acc + row(bias[n +: BN]), 0)", "R"),
    "scale": (", const {R} scale[{M}]", "acc * col(scale[m +: BM])", "R"),
    "residual": (", const {R} more[{M}, {N}]", "acc + more[m +: BM, n +: BN]", "R"),
    "narrow": ("", "({O})acc", "O"), "out_f16": ("", "acc", "R"),
}


def source(p, narrow):
    t, u, r, precision = TYPES[p["type"]]
    r = "f16" if p["epi"] == "out_f16" else r
    more, value, stored = EPILOGUES[p["epi"]]
    more = more.format(R=r, **{e: e if p["place"] == "dense" else f"({e})" for e in "MN"})
    out = narrow if stored == "O" else r
    parts = [
        parameter(name, t, form, p["place"], p["align"], name == "C")
        for name, t, form in zip("ABC", (t, u, out), (p["a"], p["b"], p["c"]))
    ]
    views = ", ".join(text for text, _ in parts)
    extents = "" if p["place"] == "dense" else ", int M, int N, int K"
    a = "trans(A[k +: BK, m +: BM])" if p["a"] == "trans" else "A[m +: BM, k +: BK]"
    b = "trans(B[n +: BN, k +: BK])" if p["b"] == "trans" else "B[k +: BK, n +: BN]"
    options = (f", precision = {precision}" if precision else "") + (", out = f16" if p["epi"] == "out_f16" else "")
    return f"""kernel gemm({views}{extents}{more},
            const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN), group = 2)
{{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
{"".join(text for _, text in parts)}    tile<{r}, BM, BN> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot({a}, {b}, acc{options});
    C[m +: BM, n +: BN] = {value.format(O=narrow)};
}}
"""


# What the precision may lose of each product, relative; products per term.
LOSES = {"tf32": (2.0**-9 + 2.0**-20, 1), "tf32x3": (3 * 2.0**-20, 3), "bf16x3": (3 * 2.0**-16, 3)}


def expected(p, x, y, extra, narrow, trips):
    """The exact result and the bound."""
    t, _, r, precision = TYPES[p["type"]]
    big = (lambda v: v.astype(np.float64)) if is_float(t) else (lambda v: v.astype(np.int64))
    v = big(x) @ big(y)
    bound = 0
    if p["data"] == "normal":
        each, products = LOSES.get(precision, (0, 1))
        terms = np.abs(big(x)) @ np.abs(big(y))
        # NVIDIA's units for f8 keep about 14 bits of a sum (hence 2^-13 for each of the instructions, 16 deep or
        # deeper)
        bound = terms * (each + (products * x.shape[1] + 2) * 2 * eps(r) + (2.0**-13 *
                                                                            (x.shape[1] // 16 + 1) if t in F8 else 0))
        bound = bound + (trips * 2.0**-11 * (terms + bound) + trips * 2.0**-25 if p["epi"] == "out_f16" else 0)
    if p["epi"] in ("bias_relu", "residual"):
        v = v + extra
        v = np.maximum(v, 0) if p["epi"] == "bias_relu" else v
    if p["epi"] == "scale":
        v, bound = v * extra[:, None], bound * extra[:, None]
    if p["data"] == "small":
        return within(quantize(v, narrow) if p["epi"] == "narrow" else v, 0)
    bound = bound + (eps(r) * (np.abs(v) + np.abs(extra).max() + bound) if extra is not None else 0)
    return within(v, bound + (spacing(np.abs(v) + bound, narrow) / 2 if p["epi"] == "narrow" else 0))


def add(number, p, bm, bn, bk):
    t, u, r, _ = TYPES[p["type"]]
    narrow = ("f16", "bf16")[number % 2]
    m, n, k = sizes(p["size"], bm, bn, bk, p["align"], number)
    data = (lambda t, seed, *shape: small(t, seed, *shape, lo=-2, hi=3)) if p["data"] == "small" else normal
    a, b = data(t, 2 * number, m, k), data(u, 2 * number + 1, k, n)
    acc = "f16" if p["epi"] == "out_f16" else r
    args = {}
    for name, matrix in (("A", a), ("B", b), ("C", poison(narrow if p["epi"] == "narrow" else acc, m, n))):
        args.update(argument(name, matrix, p[name.lower()], p["place"], p["align"]))
    args.update({} if p["place"] == "dense" else {"M": m, "N": n, "K": k})
    extra = {"bias_relu": ("bias", (n,)), "scale": ("scale", (m,)), "residual": ("more", (m, n))}.get(p["epi"])
    if extra:
        made = data(acc, 3 * number + 1, *extra[1])
        made = Arr(acc, store(np.abs(wide(made)) + 1, acc)) if p["epi"] == "scale" else made
        args[extra[0]] = made
    extra = wide(args[extra[0]]).astype(np.int64 if r == "i32" else np.float64) if extra else None
    c = "C" if p["place"] == "dense" else "C0"

    def want(_):
        w = expected(p, wide(a), wide(b), extra, narrow, -(-k // bk))
        whole = argument("C", Arr("f64", w.value.astype(float)), p["c"], p["place"], p["align"])[c].store
        if not is_float(args[c].type) and p["place"] != "dense":
            whole = np.where(np.isnan(whole), 77, whole)
        bounds = argument("C", Arr("f64", np.broadcast_to(np.asarray(w.bound, float), (m, n))), p["c"], p["place"],
                          p["align"])[c].store
        return {c: within(whole, np.nan_to_num(bounds) if p["data"] == "normal" else 0)}

    name = "_".join(
        str(p[x]) for x in ("type", "a", "b", "place", "align", "epi")) + f"_{bm}x{bn}x{bk}_s{p['stages']}w{p['warps']}"
    row(f"gemm_{number:03}_{name}", source(p, narrow), args, want, consts={"BM": bm, "BN": bn, "BK": bk},
        same_bits=p["data"] == "small", warps=p["warps"], stages=p["stages"])


def add_all():
    turn = {name: 0 for name in (*TILES, *DEPTHS)}

    def take(table, name):
        turn[name] += 1
        return table[name][turn[name] % len(table[name])]
    for number, p in enumerate(cover(AXES, 4) + cover(COPIED, 5)):
        add(number, p, *take(TILES, p["tile"]), take(DEPTHS, p["depth"]))


add_all()
