"""Stencils at borders of every kind: rows that programs share or one covers whole, pixels of several elements, volumes,
arrays whose extents are numbers, extents from 1."""
import numpy as np

from rows import row
from rows_borders import BORDERS, bordered
from values import FLOATS, INTS, exact, poison, small

TAPS = ((-1, -3), (0, 0), (1, 2), (0, 1))


def total(b, x, taps, *more):
    """The sum of x moved by every tap, in x's type."""
    s = np.zeros(x.shape, np.int64)
    for tap in taps:
        index = [[i + by for i in range(n)] for n, by in zip(x.shape, tap)]
        s += bordered(b, x, *index, *more).astype(np.int64)
    return s.astype(x.dtype)


def sum_of(taps, place):
    return " + ".join(f"load(x[{place(*tap)}], border = {{b}})" for tap in taps)


def ways(b, t, name, seed, shape, text, expected):
    row(f"border_{b}_stencil_{name}", text, {"x": small(t, seed, *shape), "y": poison(t, *shape)}, expected)


ROWS = """
kernel k(const {t} x[{H}, {W}], {t} y[{H}, {W}], const int A = {h}, const int B = {w}) grid(cdiv({W}, B), cdiv({H}, A))
{{
    int j = pid(1) * A;
    int i = pid(0) * B;
    y[j +: A, i +: B] = """ + sum_of(TAPS, lambda v, u: f"j + {v} +: A, i + {u} +: B") + """;
}}
"""
LINES = """
kernel k(const {t} x[{H}, {W}], {t} y[{H}, {W}], const int A = {h}, const int B = {w}) grid(cdiv({W}, B), cdiv({H}, A))
{{
    int j = pid(1) * A;
    int i = pid(0) * B;
    y[j, i +: B] = """ + sum_of(TAPS, lambda v, u: f"j + {v}, i + {u} +: B") + """;
}}
"""
SHAPES = ((1, 1), (2, 2), (3, 37), (5, 130), (9, 64), (1, 200), (7, 3))

for k, t in enumerate(INTS + FLOATS):
    for n, b in enumerate(BORDERS):
        for m in range(2):
            h, w = SHAPES[(k + 3 * n + 2 * m) % len(SHAPES)]
            known = (k + m) % 3 == 0
            text = (LINES if m else ROWS).format(
                t=t, b=b, h=1 if m else (1, 4, 8)[k % 3], w=(64, 128, 16, 256)[(k + n) % 4], H=h if known else "H",
                W=w if known else "W")
            ways(b, t, f"{t}_{'line' if m else 'rows'}", k, (h, w), text,
                 lambda a, b=b: {"y": exact(total(b, a["x"], TAPS))})

PIXELS = """
kernel k(const {t} x[H, W, {e}], {t} y[H, W, {e}], const int B = 64) grid(cdiv(W, B), H)
{{
    int j = pid(1);
    int i = pid(0) * B;
    y[j, i +: B, 0 +: {e}] = """ + sum_of(TAPS, lambda v, u: f"j + {v}, i + {u} +: B, 0 +: {{e}}") + """;
}}
"""
for k, t in enumerate(("u8", "i16", "f32", "f64", "f16", "i64")):
    for n, b in enumerate(BORDERS):
        for e in (3, 2, 4, 5):
            w = (1, 2, 64, 131, 70)[(k + n + e) % 5]
            ways(b, t, f"{t}_pixels_of_{e}", k, (3, w, e), PIXELS.format(t=t, b=b, e=e),
                 lambda a, b=b, e=e: {"y": exact(total(b, a["x"], TAPS, list(range(e))))})

VOLUME = """
kernel k(const {t} x[D, H, W], {t} y[D, H, W], const int B = {w}) grid(cdiv(W, B), H, D)
{{
    int i = pid(0) * B;
    int j = pid(1);
    int k = pid(2);
    y[k, j, i +: B] = """ + sum_of(
    ((0, 0, -1), (0, 0, 1), (0, -1, 0), (0, 1, 0), (-1, 0, 0), (1, 0, 0)),
    lambda v, u, w: f"k + {v}, j + {u}, i + {w} +: B") + """;
}}
"""
for k, t in enumerate(("f32", "u8", "f64", "i16")):
    for n, b in enumerate(BORDERS):
        for m, shape in enumerate(((2, 3, 128), (1, 1, 1), (3, 2, 70))):
            ways(b, t, f"{t}_volume_{m}", k, shape, VOLUME.format(t=t, b=b, w=(128, 64)[(k + m) % 2]),
                 lambda a, b=b: {"y": exact(total(b, a["x"], (
                     (0, 0, -1), (0, 0, 1), (0, -1, 0), (0, 1, 0), (-1, 0, 0), (1, 0, 0))))})

# far from the array, and starts of 64 bits
for b in BORDERS:
    for w in (1, 2, 3, 80):
        row(
            f"border_{b}_stencil_far_{w}", f"""
kernel k(const u8 x[W], u8 y[N, M], i32 s, i64 far) grid(1)
{{
    y[0, 0 +: 64] = load(x[s +: 64], border = {b}) + load(x[s + 1 +: 64], border = {b});
    y[1, 0 +: 64] = load(x[-s +: 64], border = {b}) + load(x[1 - s +: 64], border = {b});
    y[2, 0 +: 64] = load(x[far +: 64], border = {b});
}}
""", {"x": small("u8", w, w), "y": poison("u8", 3, 64), "s": 1000003, "far": -(1 << 40) - 5},
            lambda a, b=b: {"y": exact(np.stack([
                sum(bordered(b, a["x"], [s + n + i for i in range(64)]) for n in range(m))
                for s, m in ((a["s"], 2), (-a["s"], 2), (a["far"], 1))]))})
