"""fma in f16 and bf16 against exact rational arithmetic, rounded once."""
from fractions import Fraction

import numpy as np
from lib import DEVICES, run

FORMATS = dict(f16=(11, -14, 15), bf16=(8, -126, 127))  # digits, least and greatest exponent of normal numbers


def decode(bits, digits, low, high):
    """sign, value: a Fraction, or "inf" or "nan" """
    fields = 16 - digits  # bits of the exponent
    sign, e, m = bits >> 15, bits >> (digits - 1) & (1 << fields) - 1, bits & (1 << (digits - 1)) - 1
    if e == (1 << fields) - 1:
        return sign, "nan" if m else "inf"
    e, m = (e, m | 1 << (digits - 1)) if e else (1, m)
    return sign, Fraction(m) * Fraction(2) ** (e - 1 + low - digits + 1)


def encode(sign, value, digits, low, high):
    """The nearest number, ties to even, as bits."""
    quantum = Fraction(2) ** (low - digits + 1)
    e = low
    while value >= Fraction(2) ** (e + 1):
        e += 1
    n = round(value / (Fraction(2) ** (e - digits + 1)))  # Fraction rounds ties to even
    bits = n + (e - low) * (1 << (digits - 1)) if n else 0
    assert e > low or quantum * n == Fraction(2) ** (e - digits + 1) * n
    return sign << 15 | min(bits, (high - low + 2) << (digits - 1))


def fma(a, b, c, form):
    (sa, a), (sb, b), (sc, c) = (decode(int(v), *form) for v in (a, b, c))
    sp, nan = sa ^ sb, 0x7FFF
    if "nan" in (a, b, c) or ("inf" in (a, b) and 0 in (a, b)):
        return nan
    if "inf" in (a, b):
        return nan if c == "inf" and sc != sp else encode(sp, Fraction(2) ** 200, *form)
    if c == "inf":
        return encode(sc, Fraction(2) ** 200, *form)
    total = (-1) ** sp * a * b + (-1) ** sc * c
    sign = (sp & sc if a * b == 0 and c == 0 else 0) if total == 0 else int(total < 0)
    if a * b == 0 and c == 0 and sp == sc:
        sign = sp
    return encode(sign, abs(total), *form)


KERNEL = """
kernel k(const T a[N], const T b[N], const T c[N], T y[N], const type T) grid(cdiv(N, 64))
{
    int i = pid(0) * 64;
    y[i +: 64] = fma(a[i +: 64], b[i +: 64], c[i +: 64]);
}
"""
rng = np.random.default_rng(7)
for name, form in FORMATS.items():
    n = 3000
    a, b, c = (rng.integers(0, 1 << 16, n).astype(np.uint16) for _ in range(3))
    digits, low, high = form
    one = (-low + 1) << (digits - 1)  # near 1: ties and double roundings are frequent
    for v in (a, b):
        v[: n // 2] = one + rng.integers(0, 1 << digits, n // 2) - (1 << (digits - 1))
    c[: n // 2] = one + (rng.integers(-2 * digits - 2, 3, n // 2) << (digits - 1)) + rng.integers(0, 1 << (digits - 1), n // 2)
    c[n // 4 : n // 2] |= 0x8000
    c[: n // 8] &= ~np.uint16((1 << (digits - 2)) - 1)
    # products on a tie, sums just beside it: what a rounding in between gets wrong
    ties = [(u, v) for u in range(1 << (digits - 1), 1 << digits) for v in range(1 << (digits - 1), 1 << digits)
            if u * v % (1 << (digits - 1)) == 1 << (digits - 2) and u * v < 1 << (2 * digits - 1)]
    for i, (u, v) in enumerate(ties[:: max(1, len(ties) // 300)]):
        a[i], b[i] = one + u - (1 << (digits - 1)), one + v - (1 << (digits - 1))
        c[i] = 1 << i % 3 | i % 2 << 15
    assert len(ties) > 20
    want = np.array([fma(*v, form) for v in zip(a, b, c)], np.uint16)
    as_type = (lambda v: v.view(np.float16)) if name == "f16" else (lambda v: v)
    for device in DEVICES:
        args = dict(zip("abcy", map(as_type, (a, b, c, np.zeros(n, np.uint16)))))
        (y,) = run(KERNEL, args, "y", device, ["--const", "T=" + name])
        y = y.view(np.uint16)
        infinite = 0x7FFF & ~((1 << (digits - 1)) - 1)
        is_nan = (y & 0x7FFF) > infinite
        bad = np.where(want == 0x7FFF, ~is_nan, y != want)
        if bad.any():
            i = int(np.argmax(bad))
            raise SystemExit(f"{name} on {device}: {bad.sum()} wrong, fma({a[i]:#x}, {b[i]:#x}, {c[i]:#x}) = {y[i]:#x}, not {want[i]:#x}")
print("fma: ok")
