"""Memory of 4-bit elements: two per byte, the low one first, rows start on a byte; any start, step, extent, gather,
mask and part.
And products of microscaling formats.

The extents' names are fixed by other parameters, so odd ones are really odd.
"""
import numpy as np

from rows import row
from values import DECODE, PACKED, Arr, eps, exact, ints, poison, quantize, random_bits, store, within

WIDE = {"u4": "i32", "i4": "i32", "f4e2m1": "f32"}


def packed(t, seed, *shape):
    """shape: in elements."""
    return random_bits(t, seed, *shape[:-1], (shape[-1] + 1) // 2)


def part(v, *slices, fill=0):
    """v at (start, width, step) per axis; fill outside."""
    index = [np.arange(w) * s + b for b, w, s in slices]
    inside = np.array(True)
    at = []
    for axis, i in enumerate(index):
        ok = (i >= 0) & (i < v.shape[axis])
        inside = inside[..., None] & ok
        at.append(np.where(ok, i, 0))
    return np.where(inside, v[np.ix_(*at)], np.array(fill, v.dtype))


for k, t in enumerate(PACKED):
    w = WIDE[t]
    for n in (21, 22):
        row(
            f"packed_{t}_{n}", f"""
kernel k(const {t} q[M, N], {w} all[M, N], {w} odd[A, B], {w} step[C, D], {w} pad[E, F], {w} masked[G, H],
         {w} turned[N2, M2], {w} one[3], bool inside[E, F], int at)
    grid(1)
{{
    all[0 +: 5, 0 +: 24] = ({w})q[0 +: 5, 0 +: 24];
    odd[0 +: 4, 0 +: 10] = ({w})q[1 +: 4, at +: 10];
    step[0 +: 3, 0 +: 9] = ({w})q[0 +: 3 : 2, 20 +: 9 : -3];
    auto five = cast(cast(5, u8), u4);
    pad[0 +: 4, 0 +: 8] = ({w})load(q[-1 +: 4, 18 +: 8], pad = bitcast(five, {t}));
    inside[0 +: 4, 0 +: 8] = in(q[-1 +: 4, 18 +: 8]);
    masked[0 +: 4, 0 +: 12] = ({w})load(q[0 +: 4, -4 +: 12], mask = col(iota(4)) != row(iota(12) % 5));
    turned[0 +: 8, 0 +: 5] = ({w})trans(reshape(reshape(q[0 +: 5, 8 +: 8], 40), 5, 8));
    one[0] = ({w})q[3, 20];
    one[1] = ({w})q[at, at + 2];
    one[2] = ({w})q[3, {n}];
}}
""", {
                "q": packed(t, 20 + k, 5, n), "all": poison(w, 5, n), "odd": poison(w, 4, 10), "step": poison(w, 3, 9),
                "pad": poison(w, 4, 8), "masked": poison(w, 4, 12), "turned": poison(w, 8, 5), "one": poison(
                    w, 3), "inside": poison("bool", 4, 8), "at": 3
            }, lambda a, n=n, t=t: (lambda v: {
                "all": exact(v), "odd": exact(part(v, (1, 4, 1),
                                                   (3, 10, 1))), "step": exact(part(v, (0, 3, 2), (20, 9, -3))),
                "pad": exact(part(v, (-1, 4, 1), (18, 8, 1), fill=DECODE[t][5])), "masked": exact(
                    np.where(np.arange(4)[:, None] != np.arange(12) % 5, part(v, (0, 4, 1), (-4, 12, 1)), 0)
                ), "turned": exact(v[:, 8:16].T), "one": exact(np.array([v[3, 20], v[3, 5], 0])), "inside": exact(
                    part(np.ones(v.shape, bool), (-1, 4, 1), (18, 8, 1)))
            })(a["q"][:, :n]))

row(
    "packed_gathers", """
kernel k(const i4 q[A, B, C], const i32 i[I], const i32 j[J], const i32 ij[I, J], i32 x[P, I, J], i32 y[I, J], i32 z[I,
         J, K], i32 u[I, J, K], i32 n[B, C])
    grid(1)
{
    auto r = i[0 +: 6];
    auto c = j[0 +: 5];
    auto rc = ij[0 +: 6, 0 +: 5];
    x[0 +: 3, 0 +: 6, 0 +: 5] = (i32)q[0 +: 3, r, c];
    y[0 +: 6, 0 +: 5] = (i32)q[1, r, c];
    z[0 +: 6, 0 +: 5, 0 +: 8] = (i32)q[rc, 2, 1 +: 8];
    u[0 +: 6, 0 +: 5, 0 +: 8] = (i32)q[rc, col(r), 2 +: 8];
    n[0 +: 4, 0 +: 9] = (i32)q[2, 0 +: 4, 0 +: 9];
}
""", {
        "q": packed("i4", 5, 3, 4, 9), "i": ints("i32", 6, -1, 5, 6), "j": ints("i32", 7, -1, 11, 5), "ij": ints(
            "i32", 8, -1, 4, 6, 5), "x": poison("i32", 3, 6, 5), "y": poison("i32", 6, 5), "z": poison("i32", 6, 5, 8),
        "u": poison("i32", 6, 5, 8), "n": poison("i32", 4, 9)
    }, lambda a: gathers_want(a))


def at(v, *index):
    index = np.broadcast_arrays(*index)
    ok = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, v.shape)])
    return np.where(ok, v[tuple(np.where(ok, i, 0) for i in index)], 0)


def gathers_want(a):
    v, i, j, ij, r = a["q"][:, :, :9], a["i"], a["j"], a["ij"], np.arange
    return {
        "x": exact(at(v,
                      r(3)[:, None, None], i[:, None], j)), "y": exact(at(v, np.array(1), i[:, None], j)),
        "z": exact(at(v, ij[:, :, None], np.array(2),
                      r(8) + 1)), "u": exact(at(v, ij[:, :, None], i[:, None, None],
                                                r(8) + 2)), "n": exact(v[2])
    }


# The function, and parts of parts with odd begins; clipped ones read 0 past their end.
row(
    "packed_parts", """
i32 total(const u4 A[M, N]) { return sum((i32)A[-1 +: 7, -3 +: 32]) + 1000 * M + 100000 * N; }

kernel k(const u4 q[M, N], i32 y[M, N], i32 s[4], i32 z[A, B], int at)
    grid(1)
{
    s[0] = total(q);
    s[1] = total(sub(q, (1, at), (3, 6)));
    s[2] = total(sub(sub(q, (0, 3), (4, 10)), (at, at + 2), (9, 9)));
    s[3] = (i32)sub(q, (0, 3), (4, 10))[0, at];
    auto W = sub(q, (0, 3), (4, 7));
    z[0 +: 4, 0 +: 10] = (i32)W[0 +: 4, 0 +: 10];
    y[0, 0 +: 19] = (i32)sub(q, (2, -5), (3, 99))[0, 0 +: 19];
}
""",
    {"q": packed("u4", 9, 5, 19), "y": poison("i32", 5, 19), "s": poison("i32", 4), "z": poison("i32", 4, 10), "at": 1},
    lambda a: (lambda v, y: {
        "s": exact([total(v), total(v[1:4, 1:7]), total(v[1:4, 6:13]), v[0, 4]]), "z": exact(
            part(v[:4, 3:10], (0, 4, 1), (0, 10, 1))), "y": exact(np.concatenate((v[2:3], y[1:])))
    })(a["q"][:, :19], a["y"]))


def total(v):
    return int(v.sum()) + 1000 * v.shape[0] + 100000 * v.shape[1]


row(
    "packed_product_of_groups", """
/// x times the transpose of weights of 4 bits, each group of 32 with a scale; K may be anything.
kernel k(const f32 x[M, K], const i4 w[N, K], const f32 s[N, G], f32 y[M, N])
    grid(cdiv(N, 16))
{
    int n = pid(0) * 16;
    tile<f32, 8, 16> acc;
    for (int k : range(0, K, 32))
        acc = dot(x[0 +: 8, k +: 32], trans((f32)w[n +: 16, k +: 32] * col(s[n +: 16, k / 32])), acc);
    y[0 +: 8, n +: 16] = acc;
}
""", {
        "x": ints("f32", 10, -3, 4, 7, 77), "w": packed("i4", 11, 21, 77), "s": ints("f32", 12, 1, 4, 21, 3),
        "y": poison("f32", 7, 21)
    }, lambda a: {"y": exact((a["x"].astype(np.float64) @ (a["w"][:, :77] * np.repeat(a["s"], 32, 1)[:, :77]).T))})

# ---- dot_scaled -----------------------------------------------------------------------------------------------------
def scaled(t, seed, rows, k, whole):
    """whole: small integers, so that all sums are exact; else every code but those that are no number."""
    r = np.random.default_rng(seed)
    if t == "f4e2m1":
        codes = r.choice([0, 2, 4, 6, 8, 10, 12, 14] if whole else range(16), (rows, k)).astype(np.uint8)
        return Arr(t, codes[:, ::2] | codes[:, 1::2] << 4)
    if whole:
        return Arr(t, store(r.integers(-4, 5, (rows, k)), t))
    codes = r.integers(0, 256, (rows, k)).astype(np.uint8)
    return Arr(t, np.where(np.isfinite(DECODE[t][codes]), codes, 0).astype(np.uint8))


def scaled_want(a, exactly_):
    x, y = a["a"].astype(np.float64), a["b"].astype(np.float64)
    s, t = (np.repeat(2.0 ** (v.astype(float) - 127), 32, 1) for v in (a["sa"], a["sb"]))
    v = (x * s) @ (y * t).T + a["c"].astype(np.float64)
    if exactly_:
        return {"c": exact(v), "d": exact(v - a["c"])}
    slack = (np.abs(x * s) @ np.abs(y * t).T + np.abs(a["c"])) * (x.shape[1] + 3) * eps("f32")
    return {"c": within(v, slack), "d": within(v - a["c"], slack)}


KERNEL = """
kernel k(const A a[M, K], const %(scale)s sa[M, K / %(block)d], const B b[N, K], const %(scale)s sb[N, K / %(block)d],
         f32 c[M, N], f32 d[M, N], const type A, const type B, const int BK)
    grid(cdiv(M, 16), cdiv(N, 8))
{
    int m = pid(0) * 16;
    int n = pid(1) * 8;
    auto acc = c[m +: 16, n +: 8];
    tile<f32, 16, 8> sum_;
    for (int k : range(0, K, BK)) {
        auto x = a[m +: 16, k +: BK];
        auto y = trans(b[n +: 8, k +: BK]);
        auto sx = sa[m +: 16, k / %(block)d +: BK / %(block)d];
        auto sy = sb[n +: 8, k / %(block)d +: BK / %(block)d];
        acc = dot_scaled(x, sx, y, sy, acc);
        sum_ += dot_scaled(x, sx, y, sy);
    }
    c[m +: 16, n +: 8] = acc;
    d[m +: 16, n +: 8] = sum_;
}
"""
for i, (ta, tb) in enumerate([(p, q) for p in ("f8e4m3", "f8e5m2", "f4e2m1") for q in ("f8e4m3", "f8e5m2", "f4e2m1")]):
    for whole in (True, False):
        k = 96 if i % 2 else 64
        row(
            f"dot_scaled_{ta}_{tb}_{'exact' if whole else 'any'}", KERNEL % {"scale": "u8", "block": 32}, {
                "a": scaled(ta, 30 + i, 21, k, whole), "sa": ints(
                    "u8", 50 + i, 125 if whole else 110, 130 if whole else 145, 21, k // 32), "b": scaled(
                        tb, 70 + i, 13, k, whole), "sb": ints("u8", 90 + i, 125 if whole else 110,
                                                              130 if whole else 145, 13, k // 32), "c": ints(
                                                                  "f32", 9, -9, 10, 21, 13), "d": poison("f32", 21, 13)
            }, lambda a, w=whole: scaled_want(a, w), consts={"A": ta, "B": tb, "BK": 32 if i % 3 else k},
            same_bits=whole)


# nvfp4 and its like: a scale f8e4m3 for 16 elements. Scales of the exact rows are powers of two, those of the others
# any number.
def e4m3_scales(seed, rows, groups, whole):
    r = np.random.default_rng(seed)
    codes = r.choice([0x30, 0x38, 0x40, 0xB8], (rows, groups)) if whole else r.integers(0, 256, (rows, groups))
    return Arr("f8e4m3", np.where(codes % 128 == 127, 0x3A, codes).astype(np.uint8))


def sixteens_want(a, exactly_):
    x, y = (a[v].astype(np.float64) * np.repeat(a[s].astype(float), 16, 1)
            for v, s in (("a", "sa"), ("b", "sb")))
    v = x @ y.T + a["c"].astype(np.float64)
    if exactly_:
        return {"c": exact(v), "d": exact(v - a["c"])}
    slack = (np.abs(x) @ np.abs(y).T + np.abs(a["c"])) * (x.shape[1] + 3) * eps("f32")
    return {"c": within(v, slack), "d": within(v - a["c"], slack)}


SIXTEENS = KERNEL % {"scale": "f8e4m3", "block": 16}
for i, (ta, tb) in enumerate((("f4e2m1", "f4e2m1"), ("f8e4m3", "f4e2m1"), ("f4e2m1", "f8e5m2"), ("f8e4m3", "f8e4m3"),
                              ("f8e5m2", "f8e4m3"), ("f8e4m3fnuz", "f8e5m2fnuz"))):
    for whole in (True, False):
        k = 48 if i % 2 else 112
        row(
            f"dot_scaled_by_16_{ta}_{tb}_{'exact' if whole else 'any'}", SIXTEENS, {
                "a": scaled(ta, 130 + i, 21, k, whole), "sa": e4m3_scales(150 + i, 21, k // 16, whole), "b": scaled(
                    tb, 170 + i, 13, k, whole), "sb": e4m3_scales(190 + i, 13, k // 16, whole), "c": ints(
                        "f32", 9, -9, 10, 21, 13), "d": poison("f32", 21, 13)
            }, lambda a, w=whole: sixteens_want(a, w), consts={"A": ta, "B": tb, "BK": 16 if i % 3 else k},
            same_bits=whole)

# Several warps, steps of K whose scales share words or have more of them, a loop that copies ahead.
DEEP = """
import std.scaled;
kernel k(const A a[M, K], const S sa[M, K / G], const B b[N, K], const S sb[N, K / G], f32 c[M, N], const type A,
         const type B, const type S, const int G, const int BK)
    grid(cdiv(M, 64), cdiv(N, 32))
    warps(4)
{
    int m = pid(0) * 64;
    int n = pid(1) * 32;
    tile<f32, 64, 32> acc = 0;
    for (int k : range(0, K, BK)) pipeline
        acc = dot_scaled(a[m +: 64, k +: BK], scaled.magnitude(sa[m +: 64, k / G +: BK / G]),
                         trans(b[n +: 32, k +: BK]), scaled.magnitude(sb[n +: 32, k / G +: BK / G]), acc);
    c[m +: 64, n +: 32] = acc;
}
"""
number = lambda s, v: 2.0**(v.astype(float) - 127) if s == "u8" else np.abs(v.astype(float))
for i, (ta, tb, s, bk, k) in enumerate((("f8e4m3", "f8e5m2", "u8", 128, 384), ("f8e5m2", "f8e5m2", "u8", 256, 512),
                                        ("f8e5m2", "f8e4m3", "u8", 96, 192), ("f4e2m1", "f4e2m1", "u8", 256, 512),
                                        ("f4e2m1", "f4e2m1", "u8", 96, 288), ("f4e2m1", "f4e2m1", "f8e4m3", 128, 384),
                                        ("f4e2m1", "f4e2m1", "f8e4m3", 80, 160), ("f4e2m1", "f8e4m3", "u8", 128, 256))):
    g = 32 if s == "u8" else 16
    few = lambda seed, rows, s=s, k=k, g=g: (ints("u8", seed, 124, 131, rows, k // g)
                                             if s == "u8" else e4m3_scales(seed, rows, k // g, True))
    for seed in (None, 3, 8) if i % 3 == 0 else (None,):
        row(
            f"dot_scaled_deep_{ta}_{tb}_{s}_{bk}{f'_stress_{seed}' if seed else ''}", DEEP, {
                "a": scaled(ta, 230 + i, 70, k, True), "sa": few(250 + i, 70), "b": scaled(tb, 270 + i, 41, k, True),
                "sb": few(290 + i, 41), "c": poison("f32", 70, 41)
            }, lambda a, s=s, g=g: (lambda x, y: {"c": exact(x @ y.T)})(*(
                a[v].astype(np.float64) * np.repeat(number(s, a[t]), g, 1) for v, t in (("a", "sa"), ("b", "sb")))),
            consts={"A": ta, "B": tb, "S": s, "G": g, "BK": bk}, same_bits=True,
            options=("--stress-layouts", str(seed)) if seed else ())

# Of 128 rows and columns and whole words of scales along K, which tcgen05 takes (sm_100a): one and several of each,
# borders inside of the tile, onto a tile, operands that are computed or lie along M, several products. Then of other
# numbers of columns, of which scales are parts of pieces, and other numbers of scales along K.
WHOLE = """
import std.scaled;
kernel k(const A a[M, K], const S sa[M, K / G], const B b[N, K], const S sb[N, K / G], f32 c[M, N], const type A,
         const type B, const type S, const int G, const int BM, const int BN, const int BK)
    grid(cdiv(M, BM), cdiv(N, BN))
{
    int m = pid(0) * BM;
    int n = pid(1) * BN;
    auto acc = c[m +: BM, n +: BN];
    for (int k : range(0, K, BK)) %(hint)s
        acc = dot_scaled(a[m +: BM, k +: BK], scaled.magnitude(sa[m +: BM, k / G +: BK / G]),
                         trans(b[n +: BN, k +: BK]), scaled.magnitude(sb[n +: BN, k / G +: BK / G]), acc);
    c[m +: BM, n +: BN] = acc;
}
"""
for i, (ta, tb, s, bm, bn, bk, k, hint) in enumerate((
        ("f8e4m3", "f8e4m3", "u8", 128, 128, 128, 384, "pipeline"),
        ("f8e5m2", "f8e4m3", "u8", 128, 256, 128, 256, "pipeline"),
        ("f8e4m3", "f8e5m2", "u8", 256, 128, 256, 512, ""),
        ("f8e5m2", "f8e5m2", "u8", 128, 128, 128, 640, "pipeline specialize"),
        ("f4e2m1", "f4e2m1", "u8", 128, 128, 256, 768, "pipeline"), ("f4e2m1", "f4e2m1", "u8", 128, 256, 128, 256, ""),
        ("f4e2m1", "f4e2m1", "f8e4m3", 128, 128, 128, 384, "pipeline"),
        ("f4e2m1", "f4e2m1", "f8e4m3", 256, 128, 64, 256, "pipeline"),
        ("f8e4m3", "f4e2m1", "u8", 128, 128, 128, 384, "pipeline"),
        ("f4e2m1", "f8e5m2", "u8", 128, 128, 128, 256, "pipeline specialize"),
        ("f4e2m1", "f8e4m3", "u8", 256, 128, 128, 128, ""), ("f8e4m3", "f8e4m3", "u8", 128, 64, 128, 384, "pipeline"),
        ("f4e2m1", "f4e2m1", "u8", 128, 192, 256, 768, "pipeline specialize"),
        ("f4e2m1", "f4e2m1", "f8e4m3", 256, 64, 128, 256, "pipeline"), ("f8e5m2", "f8e4m3", "u8", 256, 96, 64, 256, ""),
        ("f8e4m3", "f8e5m2", "u8", 128, 32, 32, 160, "pipeline"), ("f4e2m1", "f4e2m1", "u8", 256, 192, 64, 320, ""),
        ("f8e4m3", "f8e4m3", "u8", 128, 288, 64, 128, "pipeline"),
        ("f8e4m3", "f8e4m3", "u8", 128, 64, 96, 288, ""))):
    g = 32 if s == "u8" else 16
    few = lambda seed, rows, s=s, k=k, g=g: (ints("u8", seed, 124, 131, rows, k // g)
                                             if s == "u8" else e4m3_scales(seed, rows, k // g, True))
    row(
        f"dot_scaled_whole_{ta}_{tb}_{s}_{bm}x{bn}x{bk}", WHOLE % {"hint": hint}, {
            "a": scaled(ta, 330 + i, 140, k, True), "sa": few(350 + i, 140), "b": scaled(tb, 370 + i, 200, k, True),
            "sb": few(390 + i, 200), "c": ints("f32", 9, -9, 10, 140, 200)
        }, lambda a, s=s, g=g: (lambda x, y: {"c": exact(x @ y.T + a["c"])})(*(
            a[v].astype(np.float64) * np.repeat(number(s, a[t]), g, 1) for v, t in (("a", "sa"), ("b", "sb")))),
        consts={"A": ta, "B": tb, "S": s, "G": g, "BM": bm, "BN": bn, "BK": bk}, same_bits=True,
        warps=8 if bm * bk > 32768 or i % 2 else 4, stages=1 + i % 3)

# B lies along N, of which there are too many for the instruction to read it so.
row(
    "dot_scaled_whole_turned", """
kernel k(const f8e4m3 a[M, K], const u8 sa[M, K / 32], const f8e4m3 b[K, N], const u8 sb[N, K / 32], f32 c[M, N])
    grid(cdiv(M, 128), cdiv(N, 192))
{
    int m = pid(0) * 128;
    int n = pid(1) * 192;
    auto acc = c[m +: 128, n +: 192];
    for (int k : range(0, K, 128)) pipeline
        acc = dot_scaled(a[m +: 128, k +: 128], sa[m +: 128, k / 32 +: 4], b[k +: 128, n +: 192],
                         sb[n +: 192, k / 32 +: 4], acc);
    c[m +: 128, n +: 192] = acc;
}
""", {
        "a": scaled("f8e4m3", 430, 140, 256, True), "sa": ints("u8", 431, 125, 130, 140, 8), "b": scaled(
            "f8e4m3", 432, 256, 208, True), "sb": ints("u8", 433, 125, 130, 208, 8), "c": ints(
                "f32", 9, -9, 10, 140, 208)
    }, lambda a: (lambda x, y: {"c": exact(x @ y.T + a["c"])})(*(
        v.astype(np.float64) * np.repeat(2.0**(a[t].astype(float) - 127), 32, 1)
        for v, t in ((a["a"], "sa"), (a["b"].T, "sb")))), same_bits=True, warps=8, stages=2)

row(
    "dot_scaled_whole_computed_and_shared", """
kernel k(const f8e4m3 a[K, M], const u8 s[M, K / 32], const f32 x[M, K], f32 c[M, M], f32 d[M, M])
    grid(1)
{
    auto e = trans(a[0 +: 128, 0 +: 128]);
    auto t = s[0 +: 128, 0 +: 4];
    auto f = cast(x[0 +: 128, 0 +: 128], f8e4m3);
    auto g = cast(x[0 +: 128, 0 +: 128], f4e2m1);
    c[0 +: 128, 0 +: 128] = dot_scaled(e, t, trans(e), t);
    auto sums = dot_scaled(f, t, trans(e), t, 1.0);
    sums = dot_scaled(g, t, trans(g), t, sums);
    d[0 +: 128, 0 +: 128] = dot_scaled(e, t, trans(g), t, sums);
}
""", {
        "a": scaled("f8e4m3", 410, 128, 120, True), "s": ints("u8", 411, 125, 130, 120, 4), "x": ints(
            "f32", 412, -4, 5, 120, 128), "c": poison("f32", 120, 120), "d": poison("f32", 120, 120)
    }, lambda a: (lambda e, f, t: {
        "c": exact((e * t) @ (e * t).T), "d": exact((f * t) @ (e * t).T + 1 + (f * t) @ (f * t).T + (e * t) @ (f * t).T)
    })(a["a"].astype(np.float64).T, a["x"].astype(np.float64), np.repeat(2.0**(a["s"].astype(float) - 127), 32, 1)))

# f4e2m1 by f8, whose pairs lie along M and along N.
row(
    "dot_scaled_whole_mixed_across", """
kernel k(const f4e2m1 a[K, M], const u8 s[M, K / 32], const f8e5m2 b[M, K], f32 c[M, M], f32 d[M, M])
    grid(1)
{
    tile<f32, 128, 128> c_;
    tile<f32, 128, 128> d_;
    for (int k : range(0, K, 128)) {
        auto t = s[0 +: 128, k / 32 +: 4];
        c_ = dot_scaled(trans(a[k +: 128, 0 +: 128]), t, trans(b[0 +: 128, k +: 128]), t, c_);
        d_ = dot_scaled(b[0 +: 128, k +: 128], t, a[k +: 128, 0 +: 128], t, d_);
    }
    c[0 +: 128, 0 +: 128] = c_;
    d[0 +: 128, 0 +: 128] = d_;
}
""", {
        "a": scaled("f4e2m1", 420, 256, 120, True), "s": ints("u8", 421, 125, 130, 120, 8), "b": scaled(
            "f8e5m2", 422, 120, 256, True), "c": poison("f32", 120, 120), "d": poison("f32", 120, 120)
    }, lambda a: (lambda e, f: {
        "c": exact(e @ f.T), "d": exact(f @ e.T)
    })(*((v * np.repeat(2.0**(a["s"].astype(float) - 127), 32, 1)) for v in (a["a"].astype(np.float64).T, a["b"].astype(
        np.float64)))))

# Rows of an odd number of elements, whose last byte has half of something else; elements that are computed.
row(
    "dot_scaled_odd_rows_and_computed_f4", """
kernel k(const f4e2m1 a[M, K], const u8 s[M, 2], const f32 x[M, K], f32 c[M, M], f32 d[M, M])
    grid(1)
{
    auto e = a[0 +: 16, 0 +: 64];
    auto t = s[0 +: 16, 0 +: 2];
    c[0 +: 16, 0 +: 16] = dot_scaled(e, t, trans(e), t);
    auto f = cast(x[0 +: 16, 0 +: 64], f4e2m1);
    d[0 +: 16, 0 +: 16] = dot_scaled(f, t, trans(e), t, 1.0);
}
""", {
        "a": packed("f4e2m1", 310, 13, 61), "s": ints("u8", 311, 125, 130, 13, 2), "x": ints(
            "f32", 312, -4, 5, 13, 61), "c": poison("f32", 13, 13), "d": poison(
                "f32", 13, 13)
    }, lambda a: (lambda e, t: {
        "c": exact((e * t) @ (e * t).T), "d": exact((a["x"].astype(np.float64) * t) @ (e * t).T + 1)
    })(a["a"].astype(np.float64)[:, :61], np.repeat(2.0**(a["s"].astype(float) - 127), 32, 1)[:, :61]))

row(
    "dot_scaled_by_16_nan_and_zero", """
kernel k(const f4e2m1 a[M, K], const f8e4m3 s[M, 1], const f4e2m1 b[N, K], const f8e4m3 t[N, 1], f32 c[M, N])
    grid(1)
{
    c[0 +: 4, 0 +: 4] = dot_scaled(a[0 +: 4, 0 +: 16], s[0 +: 4, 0 +: 1], trans(b[0 +: 4, 0 +: 16]), t[0 +: 4, 0 +: 1],
            1.5);
}
""", {
        "a": Arr("f4e2m1", np.full(
            (4, 8), 0x22, np.uint8)), "s": Arr("f8e4m3", np.array([[0], [1], [0x7E], [0x7F]], np.uint8)), "b": Arr(
                "f4e2m1", np.full((4, 8), 0x77, np.uint8)), "t": Arr(
                    "f8e4m3", np.array([[0x38], [0xFE], [0x80], [0x08]], np.uint8)), "c": poison("f32", 4, 4)
    }, lambda a: {"c": exact(quantize(96 * a["s"].astype(float) * a["t"].astype(float).T + 1.5, "f32"))})

row(
    "dot_scaled_scales_at_the_ends", """
kernel k(const f8e4m3 a[M, K], const u8 s[M, 1], const f8e4m3 b[N, K], const u8 t[N, 1], f32 c[M, N])
    grid(1)
{
    c[0 +: 4, 0 +: 4] = dot_scaled(a[0 +: 4, 0 +: 32], s[0 +: 4, 0 +: 1], trans(b[0 +: 4, 0 +: 32]), t[0 +: 4, 0 +: 1],
            1.5);
}
""", {
        "a": Arr("f8e4m3", np.full((4, 32), 0x38, np.uint8)), "s": Arr("u8", np.array(
            [[0], [1], [254], [255]], np.uint8)), "b": Arr("f8e4m3", np.full((4, 32), 0x38, np.uint8)), "t": Arr(
                "u8", np.array([[254], [253], [0], [127]], np.uint8)), "c": poison("f32", 4, 4)
    }, lambda a: {"c": exact(ends(a["s"], a["t"]))})

# Sums of 16 columns, which CPUs add up by their instructions for bf16.
row(
    "dot_scaled_sums_of_scales_at_the_ends", """
kernel k(const f8e4m3 a[M, K], const u8 s[M, L], const f8e4m3 b[N, K], const u8 t[N, L], f32 c[M, N]) grid(1)
{
    tile<f32, 8, 16> sum = 0.75;
    for (int i : range(0, L)) {
        auto x = a[0 +: 8, 32 * i +: 32];
        auto y = trans(b[0 +: 16, 32 * i +: 32]);
        sum = dot_scaled(x, s[0 +: 8, i +: 1], y, t[0 +: 16, i +: 1], sum);
    }
    c[0 +: 8, 0 +: 16] = sum;
}
""", {
        "a": Arr("f8e4m3", np.full((8, 64), 0x38, np.uint8)),
        "s": Arr("u8", np.repeat(np.arange(0, 16, 2, dtype=np.uint8), 2).reshape(8, 2)),
        "b": Arr("f8e4m3", np.full((16, 64), 0x38, np.uint8)),
        "t": Arr("u8", np.repeat(np.arange(254, 238, -1, dtype=np.uint8), 2).reshape(16, 2)),
        "c": poison("f32", 8, 16)
    }, lambda a: {"c": exact(2 * ends(a["s"][:, :1], a["t"][:, :1]) - 2.25)})


def ends(s, t):
    p, q = (np.where(v == 255, np.nan, 2.0 ** (v.astype(np.float64) - 127)) for v in (s, t))
    v = 32 * p * q.T + 1.5
    return np.where(np.abs(v) > 3.5e38, np.inf, v.astype(np.float32))
