"""Gathers from arrays of few elements, which registers may hold: every type, sizes around those of registers,
indices of every width, outside, and rows of tables that are outside."""
import numpy as np

from rows import row
from rows_points import at
from values import PACKED, STORE, exact, ints, poison, random_bits, small

TABLE = """
kernel k(const {i} x[N], const {t} t[{e}], {t} y[N], const int B = {b})
    grid(cdiv(N, B))
{{
    int n = pid(0) * B;
    y[n +: B] = at(t, x[n +: B]);
}}
"""


def values(t, seed, *shape):
    return random_bits(t, seed, *shape) if t[0] in "iu" else small(t, seed, *shape)


def table(t, i, e, n, b, low, high):
    x = ints(i, e, low, high, n)
    row(f"lookup_{t}_{e}_by_{i}_{n}", TABLE.format(t=t, i=i, e=e, b=b), {
        "x": x, "t": values(t, e, e), "y": poison(t, n)
    }, lambda a: {"y": exact(at(a["t"], a["x"].astype(np.int64)))})


EXTENTS = (1, 2, 8, 15, 16, 17, 33, 48, 64, 100, 128, 200, 256, 300, 512, 1024, 1100)
TYPES = [t for t in STORE if t not in ("bool", *PACKED)]
for k, e in enumerate(EXTENTS):
    for j, t in enumerate(TYPES):
        if (k + j) % 3 == 0 or (t in ("u8", "f16", "f32", "f64") and e in (16, 17, 64, 256, 300)):
            n = (1000, 1, 77, 256, 513)[(k + j) % 5]
            if (k + j) % 2:
                table(t, "u8", e, n, 256, 0, 256)
            else:
                table(t, "i32", e, n, (64, 256)[j % 2], -5, e + 5)
table("u8", "u8", 256, 0, 256, 0, 256)
table("u8", "i8", 100, 500, 128, -128, 128)
table("f32", "u16", 200, 500, 256, 0, 300)
table("u8", "i64", 256, 500, 256, -9, 265)
table("i16", "u32", 77, 300, 64, 0, 90)

ROWS = """
kernel k(const u8 x[N], const {t} t[3, {e}], {t} y[3, N], i32 c, const int B = 128)
    grid(cdiv(N, B))
{{
    int n = pid(0) * B;
    auto v = x[n +: B];
    y[0, n +: B] = at(t, c, v);
    y[1, n +: B] = at(t, 1, v);
    store(y[2, n +: B], load(at(t, c + 1, v), mask = v != 3));
}}
"""


def rows_of_tables(a):
    c, v, t = int(a["c"]), a["x"].astype(np.int64), a["t"]

    def of(r):
        return at(t, np.full(v.shape, r), v)
    return {"y": exact(np.stack([of(c), of(1), np.where(v != 3, of(c + 1), 0).astype(t.dtype)]))}


for c in (-1, 0, 2, 5):
    for t, e in (("u8", 256), ("f32", 200), ("i16", 64)):
        row(f"lookup_rows_{t}_{e}_{c + 1}", ROWS.format(t=t, e=e), {
            "x": ints("u8", e, 0, 256, 300), "t": values(t, e, 3, e), "y": poison(t, 3, 300), "c": np.int32(c)
        }, rows_of_tables)

# What is looked up is written before, and by the same program.
row(
    "lookup_of_what_was_written", """
kernel k(const u8 x[N], f32 t[64], f32 y[N])
    grid(1)
{
    t[0 +: 64] = (f32)iota(64) * 2.0;
    y[0 +: 256] = at(t, x[0 +: 256]);
    t[0 +: 64] = t[0 +: 64] + 1.0;
    y[256 +: 256] = at(t, x[256 +: 256]);
}
""", {"x": ints("u8", 1, 0, 80, 512), "t": small("f32", 1, 64), "y": poison("f32", 512)}, lambda a: written(a))


def written(a):
    t = np.arange(64, dtype=np.float32) * 2
    v = a["x"].astype(np.int64)
    return {"t": exact(t + 1), "y": exact(np.concatenate([at(t, v[:256]), at(t + 1, v[256:])]))}
