"""Integers that a compiler may compute in fewer bits than they are written with: every op at the ends of its range.

Operands are bytes and words, widened by hand; results go out whole, as their low bits, and as floats. What is expected
is NumPy's arithmetic of the written type.
"""
import numpy as np

from rows import row
from values import STORE, Arr, exact, int_range, poison


def quotient(a, b):
    """Toward zero."""
    q = abs(a) // abs(b)
    return np.where((a < 0) != (b < 0), -q, q).astype(a.dtype)


def remainder(a, b):
    return a - quotient(a, b) * b


def clz(a):
    bits = a.dtype.itemsize * 8
    return np.array([bits - (int(v) & (2**bits - 1)).bit_length() for v in a.ravel()], a.dtype).reshape(a.shape)


def clamp(a, lo, hi):
    return np.minimum(np.maximum(a, a.dtype.type(lo)), a.dtype.type(hi))


# name: (as it is written, as NumPy has it)
OPS = {
    "sum": ("(a + b) * 57 + 256 >> 9", lambda a, b: ((a + b) * 57 + 256) >> 9),
    "difference": ("a - b", lambda a, b: a - b),
    "square": ("(a - b) * (a - b)", lambda a, b: (a - b) * (a - b)),
    "product": ("a * b", lambda a, b: a * b),
    "products": ("a * b - b * 3 + a * a", lambda a, b: a * b - b * 3 + a * a),
    "magnitude": ("abs(a * 256 + b)", lambda a, b: abs(a * 256 + b)),
    "negative": ("-a", lambda a, b: -a),
    "bits": ("(a ^ b | (a & 12) << 3) & ~b", lambda a, b: ((a ^ b) | ((a & 12) << 3)) & ~b),
    "not": ("~(a | b << 4)", lambda a, b: ~(a | (b << 4))),
    "right": ("a * 128 + 5 >> (b & 7)", lambda a, b: (a * 128 + 5) >> (b & 7)),
    "far_right": ("a * 3 >> (b & 31)", lambda a, b: (a * 3) >> (b & 31)),
    "left": ("a << (b & 15)", lambda a, b: a << (b & 15)),
    "left_and_back": ("(a << 9) >> 5", lambda a, b: (a << 9) >> 5),
    "choice": ("a * 2 < b + 100 ? a : b - a", lambda a, b: np.where(a * 2 < b + 100, a, b - a)),
    "equal": ("(a & 127) == b ? 1 : 2 * a", lambda a, b: np.where((a & 127) == b, 1, 2 * a).astype(a.dtype)),
    "between": ("min(max(a * b >> 8, 3), 90)", lambda a, b: clamp((a * b) >> 8, 3, 90)),
    "quotient": ("(a * 3 + b) / 7", lambda a, b: quotient(a * 3 + b, np.full_like(a, 7))),
    "remainder": ("(a * 3 + b) % 7", lambda a, b: remainder(a * 3 + b, np.full_like(a, 7))),
    "zeros": ("clz((a & 511) + 1) - 16", lambda a, b: clz((a & 511) + 1) - 16),
    "chain": ("((a * 7 - b >> 2) * 5 ^ a) + (b & 3) * 1000",
              lambda a, b: ((((a * 7 - b) >> 2) * 5) ^ a) + (b & 3) * 1000),
    "other_sign": ("cast(a - b, OTHER) >> 3", None),
}


def operands(t, n):
    lo, hi = int_range(t)
    g = np.random.default_rng(n)
    a = g.integers(lo, hi, n, endpoint=True)
    a[:8] = [lo, lo, hi, hi, lo + 1, 0, lo // 2, hi // 2 + 1][:n]
    b = g.integers(lo, hi, n, endpoint=True)
    b[:8] = [lo, hi, lo, hi, lo, 0, hi, lo][:n]
    return Arr(t, a.astype(STORE[t])), Arr(t, b.astype(STORE[t]))


def other_sign(t):
    return ("i" if t[0] == "u" else "u") + t[1:]


def want(x, z, t, outs, spell):
    a, b = x.astype(STORE[t]), z.astype(STORE[t])
    with np.errstate(over="ignore"):
        v = (a - b).astype(STORE[other_sign(t)]) >> 3 if spell is None else spell(a, b)
    return {o: exact(v.astype(np.float64).astype(np.float32) if o == "f32" else v.astype(STORE[o])) for o in outs}


TYPES = (("i8", "i32"), ("u8", "i32"), ("i16", "i32"), ("u16", "i32"), ("u8", "u32"), ("u8", "i16"), ("i16", "i64"),
         ("i8", "i16"))
# what leaves the tile: numbers of every width, or low bits only
OUTS = {"whole": ("i16", "i32", "i64", "f32"), "byte": ("u8",), "word": ("i16",)}
for i, (name, (text, spell)) in enumerate(OPS.items()):
    for k, (way, outs) in enumerate(OUTS.items()):
        short = all(n not in text for n in ("256", "1000", "511", "31", "<< 9"))
        fit = [types for types in TYPES if short or types[1] != "i16"]
        for j in range(2):
            src, t = fit[(3 * i + 5 * k + 3 * j) % len(fit)]
            n = (37, 200, 128, 1)[(i + k + j) % 4]
            x, z = operands(src, n)
            lines = "\n    ".join(f"y_{o}[i +: 64] = ({o})v;" for o in outs)
            row(
                f"few_bits_{name}_{way}_{src}_as_{t}", f"""
kernel k(const {src} x[N], const {src} z[N], {", ".join(f"{o} y_{o}[N]" for o in outs)})
    grid(cdiv(N, 64))
{{
    int i = pid(0) * 64;
    auto a = ({t})x[i +: 64];
    auto b = ({t})z[i +: 64];
    auto v = {text.replace("OTHER", other_sign(t))};
    {lines}
}}
""", {"x": x, "z": z, **{f"y_{o}": poison(o, n)
                         for o in outs}}, lambda a, t=t, outs=outs, spell=spell:
                {f"y_{o}": v
                 for o, v in want(a["x"], a["z"], t, outs, spell).items()})
