"""Addresses that are summed: of tiles that lie in rows, planes and blocks, dense and with strides of their own, at
indices that come from memory and lie anywhere, the ends of i32 too."""
import numpy as np

from rows import row
from values import exact, exactly, poison, random_bits, small, zeros

ENDS = [-2**31, -1, 0, 1, 2, 3, 2**31 - 1, -2**30, 2**30, 2**16]
ROWS = [0, 0, 0, 1, 2, 3, 1, 0, 0, 0]
P, H, D = 3, 5, 32


def planes(x, p, at):
    """Rows at .. at + 8 of the planes p; 0 outside."""
    out = np.zeros((len(p), 8, x.shape[-1]), x.dtype)
    for i, n in enumerate(p):
        for h in range(8):
            if 0 <= n < x.shape[0] and 0 <= at[i] + h < x.shape[1]:
                out[i, h] = x[n, at[i] + h]
    return out


def stored(a, x, at):
    out = a["z"].copy()
    for i, n in enumerate(a["p"]):
        for h in range(8):
            if 0 <= n < out.shape[0] and 0 <= at[i] + h < out.shape[1]:
                out[n, at[i] + h] = x[i, h]
    return out


def wanted(a):
    y = planes(a["x"], a["p"], a["at"])
    return {"y": exact(y), "z": exact(stored(a, y, a["at"])), "first": exact(y[:, 0, 1])}


def case(t, seed, shape):
    return random_bits(t, seed, *shape) if t in ("u8", "i16", "i64") else small(t, seed, *shape)


# Planes and rows by indices from memory; a dense view, and one whose strides the launch says.
for t, seed in (("f16", 1), ("f32", 2), ("u8", 3), ("i64", 4), ("bf16", 5)):
    for form, dims in (("dense", "P, H, D"), ("strided", "P : S0, H : S1, D")):
        row(f"sums_of_planes_{t}_{form}", f"""
kernel k(const {t} x[{dims}], {t} z[{dims}], {t} y[N, 8, D], {t} first[N], const i32 p[N],
         const i32 at[N])
    grid(N)
{{
    int n = p[pid(0)];
    int h = at[pid(0)];
    auto v = x[n, h +: 8, 0 +: {D}];
    y[pid(0), 0 +: 8, 0 +: {D}] = v;
    z[n, h +: 8, 0 +: {D}] = v;
    first[pid(0)] = x[n, h, 1];
}}
""", {
            "x": case(t, seed, (P, H, D)), "z": zeros(t, P, H, D), "y": poison(t, len(ENDS), 8, D),
            "first": poison(t, len(ENDS)), "p": exactly("i32", ENDS), "at": exactly("i32", ROWS)
        }, wanted, same_bits=False)
