"""The library's formats of few bits: std.quant, std.ggml, std.scaled. Codes and scales are compared with the same
formulas in
NumPy's f32, dequantised numbers with the original within the bounds of the `///` lines."""
import numpy as np

from rows import row
from rows_stdlib import U, WARPS
from values import F8, FORMATS, Arr, exact, exactly, poison, random_bits, rng, spacing, store, within

F32 = np.float32


def groups_of(seed, m, k, g):
    """Rows of very different size; a group of zeros, one of subnormals, one with a NaN, one constant, one of one
    sign."""
    x = rng(seed).normal(0, 1, (m, k)) * 10.0 ** rng(seed + 1).integers(-3, 4, (m, 1))
    v = x.reshape(m * k // g, g)
    for i, special in enumerate(
        (lambda r: r * 0, lambda r: r * 1e-42, lambda r: np.where(np.arange(g) == g // 2, np.nan, r),
         lambda r: r * 0 - 3.25, np.abs)):
        if len(v) > i + 1:
            v[i + 1] = special(v[i + 1])
    return Arr("f32", x.astype(F32))


def clean(x):
    return np.where(np.isnan(x), 0, x)


def scale_want(x, limit):
    return least_normal((np.nanmax(np.abs(x), 2) / F32(limit)).astype(F32))


def least_normal(s):
    return np.where(s == 0, F32(1), np.maximum(s, F32(2.0**-126)))


def steps(x, s):
    """x / s in f32, and whether a unit in the last place could move it over a half."""
    q = (x / s[:, :, None]).astype(F32)
    return np.rint(clean(q))


def grouped(a, name, g):
    x = a[name]
    return x.reshape(x.shape[0], -1, g)


def close(s):
    return within(s, 2 * spacing(s, "f32"))


def by_groups(v, g):
    return np.repeat(v, g, 1)


# array, tile, group
SHAPES = [((7, 64), (8, 64), 16), ((5, 48), (5, 48), 48), ((3, 9), (4, 9), 3), ((1, 32), (1, 32), 32),
          ((2, 1), (2, 1), 1)]


def plain_want(a, g, limit):
    x = grouped(a, "x", g)
    s = scale_want(x, limit)
    return {"q": exact(steps(x, s).reshape(a["x"].shape).astype(np.int8)), "s": close(s),
            "y": within(clean(a["x"]), by_groups(s.astype(np.float64), g) * (0.5 + 2.0**-15) + 2.0**-149)}


def zero_want(a, g):
    x = grouped(a, "x", g)
    low, high = np.minimum(np.nanmin(x, 2), 0), np.maximum(np.nanmax(x, 2), 0)
    s = least_normal(((high - low).astype(F32) / F32(15)).astype(F32))
    zero = np.rint(-low / s)
    q = np.clip(np.rint((x / s[:, :, None]).astype(F32)) + zero[:, :, None], 0, 15)
    q = np.where(np.isnan(x), zero[:, :, None], q)
    y = clean(a["x"])
    return {"q": exact(q.reshape(a["x"].shape).astype(np.uint8)), "s": close(s), "z": exact(zero.astype(np.uint8)),
            "y": within(y, by_groups(s.astype(np.float64), g) * (0.5 + 2.0**-17) + 2.0**-149)}


for k, (shape, tile, g) in enumerate(SHAPES):
    (m, n), (bm, bn) = shape, tile
    at = f"0 +: {bm}, 0 +: {bn}"
    half = f"0 +: {bm}, 0 +: {bn // g}"
    for bits, limit in ((8, 127), (4, 7)):
        row(
            f"std_quant_i{bits}_{m}x{n}_by_{g}", f"""
import std.quant;

kernel k(const f32 x[M, K], i8 q[M, K], f32 s[M, L], f32 y[M, K])
    grid(1)
{{
    auto (n, scale) = quant.to_i{bits}(x[{at}], {g});
    q[{at}] = n;
    s[{half}] = scale;
    y[{at}] = quant.dequantize(n, scale);
}}
""", {
                "x": groups_of(150 + k, m, n, g), "q": poison("i8", m, n), "s": poison("f32", m, n // g), "y": poison(
                    "f32", m, n)
            }, lambda a, g=g, limit=limit: plain_want(a, g, limit), warps=WARPS[k % 4], stages=2)
    row(
        f"std_quant_u4_{m}x{n}_by_{g}", f"""
import std.quant;

kernel k(const f32 x[M, K], u8 q[M, K], f32 s[M, L], u8 z[M, L], f32 y[M, K])
    grid(1)
{{
    auto (n, scale, zero) = quant.to_u4(x[{at}], {g});
    q[{at}] = n;
    s[{half}] = scale;
    z[{half}] = zero;
    y[{at}] = quant.dequantize_zero(n, scale, zero);
}}
""", {
            "x": groups_of(160 + k, m, n, g), "q": poison("u8", m, n), "s": poison("f32", m, n // g), "z": poison(
                "u8", m, n // g), "y": poison("f32", m, n)
        }, lambda a, g=g: zero_want(a, g), warps=WARPS[k % 4], stages=2)


def f8_want(a, g, t):
    x = grouped(a, "x", g)
    s = scale_want(x, F8[t][np.isfinite(F8[t])].max())
    exactly_ = clean((x / s[:, :, None]).astype(F32)).reshape(a["x"].shape)
    y = np.where(np.isnan(a["x"]), np.nan, a["x"].astype(np.float64))
    least = 2.0 ** (FORMATS[t].emin - FORMATS[t].p)
    slack = np.maximum(np.abs(clean(y)) * (2.0**-FORMATS[t].p + 4 * U),
                       by_groups(s.astype(np.float64), g) * least) + 2.0**-148
    n = F8[t][store(exactly_, t)].astype(np.float64)
    n = np.where(np.isnan(a["x"]), np.nan, n)
    return {"q": exact(n), "s": close(s), "y": within(y, slack)}


for t in ("f8e4m3", "f8e5m2", "f8e4m3fnuz"):
    for k, (shape, tile, g) in enumerate(SHAPES):
        (m, n), (bm, bn) = shape, tile
        at, half = f"0 +: {bm}, 0 +: {bn}", f"0 +: {bm}, 0 +: {bn // g}"
        row(
            f"std_quant_{t}_{m}x{n}_by_{g}", f"""
import std.quant;

kernel k(const f32 x[M, K], {t} q[M, K], f32 s[M, L], f32 y[M, K])
    grid(1)
{{
    auto (n, scale) = quant.to_f8(x[{at}], {g}{'' if t == 'f8e4m3' else ', ' + t});
    q[{at}] = n;
    s[{half}] = scale;
    y[{at}] = quant.dequantize(n, scale);
}}
""", {"x": groups_of(170 + k, m, n, g), "q": poison(t, m, n), "s": poison("f32", m, n // g), "y": poison("f32", m, n)},
            lambda a, g=g, t=t: f8_want(a, g, t), warps=WARPS[k % 4], stages=2)

row("std_quant_infinity", """
import std.quant;

kernel k(const f32 x[M, K], f32 y[M, K])
    grid(1)
{
    auto (n, scale) = quant.to_i8(x[0 +: 2, 0 +: 6], 3);
    y[0 +: 2, 0 +: 6] = quant.dequantize(n, scale);
}
""", {"x": exactly("f32", [[1, np.inf, 2, 3, 4, 127], [127, 0, 1, -np.inf, 5, 5]]), "y": poison("f32", 2, 6)},
    lambda a: {"y": exact(np.array([[np.nan] * 3 + [3, 4, 127], [127, 0, 1] + [np.nan] * 3]))}, warps=1, stages=1)

row(
    "std_quant_pack4", """
import std.quant;

kernel k(const i8 q[M, K], const u4 again[M, K], u8 b[M, L], u8 u[M, K], i8 back[M, K], u8 direct[M, K])
    grid(1)
{
    auto bytes = quant.pack4(q[0 +: 5, 0 +: 22]);
    b[0 +: 5, 0 +: 11] = bytes;
    u[0 +: 5, 0 +: 22] = quant.unpack4(bytes);
    back[0 +: 5, 0 +: 22] = (i8)(quant.unpack4(bytes) ^ 8) - 8;
    direct[0 +: 5, 0 +: 22] = cast(again[0 +: 5, 0 +: 22], u8);
}
""", {
        "q": Arr("i8",
                 rng(180).integers(-8, 8, (5, 22)).astype(np.int8)), "again": random_bits("u4", 181, 5, 11),
        "b": poison("u8", 5, 11), "u": poison("u8", 5, 22), "back": poison("i8", 5, 22), "direct": poison("u8", 5, 22)
    }, lambda a: (lambda q, n: {
        "b": exact((n[:, ::2] | n[:, 1::2] << 4).astype(np.uint8)), "u": exact(n.astype(np.uint8)), "back": exact(q),
        "direct": exact(a["again"].astype(np.uint8))
    })(a["q"], a["q"].astype(np.int32) & 15), warps=4, stages=1)

# int8 product with a scale a row on both sides, and weights of 4 bits with zero points
row(
    "std_quant_int8_product", """
import std.quant;

kernel k(const f32 x[M, K], const f32 w[N, K], f32 y[M, N])
    grid(1)
{
    auto (a, sa) = quant.to_i8(x[0 +: 16, 0 +: 64], 64);
    auto (b, sb) = quant.to_i8(w[0 +: 24, 0 +: 64], 64);
    y[0 +: 16, 0 +: 24] = (f32)dot(a, trans(b)) * sa * trans(sb);
}
""", {
        "x": Arr("f32",
                 rng(182).normal(0, 1, (13, 61)).astype(F32)), "w": Arr("f32",
                                                                        rng(183).normal(0, 1, (21, 61)).astype(F32)),
        "y": poison("f32", 13, 21)
    }, lambda a: (lambda x, w: {
        "y": within(x @ w.T, (np.abs(x).sum(1)[:, None] * np.abs(w).max(1) + np.abs(x).max(1)[:, None] * np.abs(w).sum(
            1)) * 0.503 / 127 + 61 * 0.26 * np.abs(x).max(1)[:, None] * np.abs(w).max(1) / 127**2)
    })(a["x"].astype(np.float64), a["w"].astype(np.float64)), warps=4, stages=2)


# ---- ggml, from ggml-quants.c ---------------------------------------------------------------------------------------
def ggml_scale(d):
    return d.astype(np.float16).view(np.uint8).reshape(*d.shape, 2)


def q4_0(x):
    g = x.reshape(x.shape[0], -1, 32)
    top = np.take_along_axis(g, np.argmax(np.abs(g), 2)[:, :, None], 2)[:, :, 0]
    d = (top / F32(-8)).astype(F32)
    inverse = np.where(d == 0, F32(0), F32(1) / np.where(d == 0, F32(1), d)).astype(F32)
    v = ((g * inverse[:, :, None]).astype(F32) + F32(8.5)).astype(F32)
    q = np.minimum(15, np.trunc(v)).astype(np.uint8)
    return np.concatenate([ggml_scale(d), q[:, :, :16] | q[:, :, 16:] << 4], 2), d


def q8_0(x):
    g = x.reshape(x.shape[0], -1, 32)
    d = (np.abs(g).max(2) / F32(127)).astype(F32)
    inverse = np.where(d == 0, F32(0), F32(1) / np.where(d == 0, F32(1), d)).astype(F32)
    v = (g * inverse[:, :, None]).astype(F32)
    q = (np.sign(v) * np.floor(np.abs(v).astype(np.float64) + 0.5)).astype(np.int8)
    return np.concatenate([ggml_scale(d), q.view(np.uint8)], 2), d


def numbers(blocks, kind):
    d = blocks[:, :, :2].copy().view(np.float16)[:, :, 0]
    b = blocks[:, :, 2:]
    q = np.concatenate([b & 15, b >> 4], 2).astype(np.int8) - np.int8(8) if kind == "q4_0" else b.view(np.int8)
    flat = (blocks.shape[0], -1)
    return q.reshape(flat), d, (q.astype(F32) * d.astype(F32)[:, :, None]).reshape(flat)


for kind, encode, size in (("q4_0", q4_0, 18), ("q8_0", q8_0, 34)):
    for k, (m, n, bm, bn) in enumerate(((7, 96, 8, 96), (1, 32, 1, 32), (5, 160, 5, 256))):
        x = rng(190 + k).normal(0, 1, (m, n)) * 10.0 ** rng(191 + k).integers(-2, 3, (m, 1))
        x[0, 3] = -np.abs(x[0]).max()
        if m > 1:
            x[1, :32], x[2, 5], x[2, 20] = 0, 40000, -40000  # zeros; a tie of magnitudes: the first counts
        x = Arr("f32", x.astype(F32))
        blocks, d = encode(x.store)
        slack = np.repeat(np.abs(d).astype(np.float64), 32, 1) * (1 + 2.0**-7 if kind == "q4_0" else 0.5 +
                                                                  2.0**-4) + 2.0**-25 * (8 if kind == "q4_0" else 127)
        row(
            f"std_ggml_to_{kind}_{m}x{n}", f"""
import std.ggml;

kernel k(const f32 x[M, K], u8 b[M, L, {size}], f32 y[M, K])
    grid(1)
{{
    auto blocks = ggml.to_{kind}(x[0 +: {bm}, 0 +: {bn}]);
    b[0 +: {bm}, 0 +: {bn // 32}, 0 +: {size}] = blocks;
    y[0 +: {bm}, 0 +: {bn}] = ggml.from_{kind}(blocks);
}}
""", {"x": x, "b": poison("u8", m, n // 32, size), "y": poison("f32", m, n)},
            lambda a, e=encode, s=slack: {"b": exact(e(a["x"])[0]), "y": within(a["x"].astype(np.float64), s)},
            warps=WARPS[k], stages=2)
        raw = random_bits("u8", 194 + k, m, n // 32, size)
        raw.store[:, :, 1] &= 0x3F  # finite scales
        row(
            f"std_ggml_from_{kind}_{m}x{n}", f"""
import std.ggml;

kernel k(const u8 b[M, L, {size}], i8 q[M, K], f16 d[M, L], f32 y[M, K])
    grid(1)
{{
    auto blocks = b[0 +: {bm}, 0 +: {bn // 32}, 0 +: {size}];
    auto (n, scale) = ggml.parts_{kind}(blocks);
    q[0 +: {bm}, 0 +: {bn}] = n;
    d[0 +: {bm}, 0 +: {bn // 32}] = scale;
    y[0 +: {bm}, 0 +: {bn}] = ggml.from_{kind}(blocks);
}}
""", {"b": raw, "q": poison("i8", m, n), "d": poison("f16", m, n // 32), "y": poison("f32", m, n)}, lambda a, kind=kind:
            (lambda q, d, y: {"q": exact(q), "d": exact(d), "y": exact(y)})(*numbers(a["b"], kind)), warps=WARPS[k + 1],
            stages=2)

row(
    "std_ggml_product_with_q4_0", """
import std.ggml;

/// y = x w^T, the weights in ggml's blocks; K may be anything that is a multiple of 32.
kernel k(const f16 x[M, K], const u8 w[N, L, 18], f32 y[M, N])
    grid(cdiv(N, 16))
{
    int n = pid(0) * 16;
    tile<f32, 16, 16> acc;
    for (int l : range(0, L, 2))
        acc = dot(x[0 +: 16, l * 32 +: 64], trans((f16)ggml.from_q4_0(w[n +: 16, l +: 2, 0 +: 18])), acc);
    y[0 +: 16, n +: 16] = acc;
}
""", {
        "x": Arr("f16",
                 rng(200).integers(-3, 4, (9, 160)).astype(np.float16)), "w": Arr(
                     "u8",
                     q4_0(rng(201).integers(-8, 8, (21, 160)).astype(F32) * 8)[0]), "y": poison("f32", 9, 21)
    }, lambda a: {"y": exact(a["x"].astype(np.float64) @ numbers(a["w"], "q4_0")[2].astype(np.float64).T)}, warps=4,
    stages=2)


# Rows of blocks times a vector: integers all through, so that any order of the sum is exact. Several rows of a program
# and blocks of a step,
# the last of each not full.
for kind, size in (("q4_0", 18), ("q8_0", 34)):
    for k, (m, l, bm, bl) in enumerate(((5, 39, 1, 16), (7, 16, 4, 8), (3, 9, 2, 32))):
        raw = random_bits("u8", 202 + k, m, l, size)
        raw.store[:, :, :2] = rng(205 + k).integers(-4, 5, (m, l)).astype(np.float16).view(np.uint8).reshape(m, l, 2)
        row(
            f"std_ggml_vector_times_{kind}_{m}x{32 * l}", f"""
import std.ggml;

kernel k(const u8 A[M, L, {size}], const f32 x[N], f32 y[M])
    grid(cdiv(M, {bm}))
{{
    int m = pid(0) * {bm};
    tile<f32, {bm}> total = 0;
    for (int l : range(0, L, {bl}))
        total += sum(ggml.from_{kind}(A[m +: {bm}, l +: {bl}, 0 +: {size}]) * x[32 * l +: 32 * {bl}], axis = 1);
    y[m +: {bm}] = total;
}}
""", {"A": raw, "x": Arr("f32",
                         rng(208 + k).integers(-3, 4, 32 * l).astype(F32)), "y": poison("f32", m)},
            lambda a, kind=kind: {"y": exact(numbers(a["A"], kind)[2].astype(np.float64) @ a["x"].astype(np.float64))},
            warps=WARPS[k], stages=2)


# Formats that are only read, number by number from their descriptions (the structures of ggml-common.h; OCP
# Microscaling Formats 1.0 for
# mxfp4). `b` are the bytes of all blocks, [bytes, blocks], `h` reads an f16 at a byte; each gives (number i) as factors
# whose f32 products
# are exact, so that only a sum rounds.
def nibble(b, base, i):
    """Number i of blocks of 32: the low half of byte i, then the high half of byte i - 16."""
    return (b[base + i % 16] >> 4 * (i // 16)) & 15


def six(b, j):
    """The scale and the least number j of 8, 6 bits each, in the 12 bytes from 4 on."""
    if j < 4:
        return b[4 + j] & 63, b[8 + j] & 63
    return b[8 + j] & 15 | b[j] >> 6 << 4, b[8 + j] >> 4 | b[4 + j] >> 6 << 4


def of_parts(b, h, q, i):
    scale, least = six(b, i // 32)
    return h(0) * scale * q - h(2) * least


def q_k(b, base, i):
    """Number i of 256: of the bytes 32 j to 32 j + 31 the low halves are part 2 j, the high ones part 2 j + 1."""
    return b[base + i // 64 * 32 + i % 32] >> 4 * (i // 32 % 2) & 15


def q6(b, i):
    half, rest = divmod(i, 128)
    low = b[64 * half + rest % 64] >> 4 * (rest // 64) & 15
    return (low | (b[128 + 32 * half + rest % 32] >> 2 * (rest // 32) & 3) << 4).astype(F32) - 32


def two(b, base, i):
    return b[base + 32 * (i // 128) + i % 32] >> 2 * (i // 32 % 4) & 3


def q3(b, i):
    """The number, and its scale: 4 low bits in the halves of 8 bytes, 2 high ones in 4."""
    j = i // 16
    scale = b[96 + j % 8] >> 4 * (j // 8) & 15 | (b[104 + j % 4] >> 2 * (j // 4) & 3) << 4
    return (two(b, 32, i) + 4 * (b[i % 32] >> i // 32 & 1) - 4).astype(F32), (scale - 32).astype(F32)


def xs_scale(b, j):
    return (b[4 + j // 2] >> 4 * (j % 2) & 15 | (b[2 + j // 4] >> 2 * (j % 4) & 3) << 4) - 32


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)
NL = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], F32)
READ = {  # name: (numbers and bytes of a block, where its f16 scales are, number i)
    "q4_1": (32, 20, (0, 2), lambda b, h, i: nibble(b, 4, i) * h(0) + h(2)),
    "q5_0": (32, 22, (0,), lambda b, h, i: (nibble(b, 6, i) + F32(16) * (b[2 + i // 8] >> i % 8 & 1) - 16) * h(0)),
    "q5_1": (32, 24, (0, 2), lambda b, h, i: (nibble(b, 8, i) + F32(16) * (b[4 + i // 8] >> i % 8 & 1)) * h(0) + h(2)),
    "iq4_nl": (32, 18, (0,), lambda b, h, i: NL[nibble(b, 2, i)] * h(0)),
    "mxfp4": (32, 17, (),
              lambda b, h, i: E2M1[nibble(b, 1, i)] * np.where(b[0] == 255, np.nan, 2.0 ** (b[0] - 127.0)).astype(F32)),
    "q4_k": (256, 144, (0, 2), lambda b, h, i: of_parts(b, h, q_k(b, 16, i), i)),
    "q5_k": (256, 176, (0, 2),
             lambda b, h, i: of_parts(b, h, q_k(b, 48, i) + F32(16) * (b[16 + i % 32] >> i // 32 & 1), i)),
    "q2_k": (256, 84, (80, 82), lambda b, h, i: h(80) * (b[i // 16] & 15) * two(b, 16, i) - h(82) * (b[i // 16] >> 4)),
    "q3_k": (256, 110, (108,), lambda b, h, i: (lambda q, scale: h(108) * scale * q)(*q3(b, i))),
    "iq4_xs": (256, 136, (0,),
               lambda b, h, i: h(0) * xs_scale(b, i // 32) *
               NL[b[8 + i // 32 * 16 + i % 16] >> 4 * (i % 32 // 16) & 15]),
    "q6_k": (256, 210, (208,), lambda b, h, i: q6(b, i) * (h(208) * b[192 + i // 16].astype(np.uint8).view(np.int8))),
}


def read_blocks(name, blocks):
    each, size, _, number = READ[name]
    b = blocks.reshape(-1, size).T.astype(np.int64)
    half = lambda at: (b[at] | b[at + 1] << 8).astype(np.uint16).view(np.float16).astype(F32)
    b32 = b.astype(np.int32)
    h = {at: half(at) for at in READ[name][2]}
    return np.stack([number(b32, h.get, i).astype(F32) for i in range(each)], 1).reshape(blocks.shape[0], -1)


for name, (each, size, halves, _) in READ.items():
    for k, (m, l, bm, bl) in enumerate(((7, 3, 8, 3), (1, 1, 1, 1), (3, 2, 4, 4))):
        raw = random_bits("u8", 212 + k, m, l, size)
        for at in halves:
            raw.store[:, :, at + 1] &= 0xBF  # finite scales, of both signs
        if name == "mxfp4":
            raw.store[:, :, 0] = np.where(np.arange(m * l).reshape(m, l) == 4, 255,
                                          raw.store[:, :, 0] % 250 + 3)  # no subnormal numbers
        row(
            f"std_ggml_from_{name}_{m}x{l}", f"""
import std.ggml;

kernel k(const u8 b[M, L, {size}], f32 y[M, K])
    grid(1)
{{
    y[0 +: {bm}, 0 +: {each * bl}] = ggml.from_{name}(b[0 +: {bm}, 0 +: {bl}, 0 +: {size}]);
}}
""", {"b": raw, "y": poison("f32", m, each * l)}, lambda a, name=name: {"y": exact(read_blocks(name, a["b"]))},
            warps=WARPS[k], stages=2)


# ---- microscaling ---------------------------------------------------------------------------------------------------
def mx(x, t):
    g = x.reshape(x.shape[0], -1, 32).astype(np.float64)
    top = np.nanmax(np.abs(g), 2)
    emax = {"f8e4m3": 8, "f8e5m2": 15}[t]
    e = np.where(top > 0, np.frexp(np.where((top > 0) & np.isfinite(top), top, 1))[1] - 1, -127)
    s = np.clip(np.where(np.isinf(top), 128, np.maximum(e, -127)) - emax + 127, 0, 254 - emax)
    q = store(g / 2.0 ** (s[:, :, None] - 127.0), t)
    return s.astype(np.uint8), F8[t][q].reshape(x.shape)


for t in ("f8e4m3", "f8e5m2"):
    for k, (m, n, bm) in enumerate(((7, 96, 8), (1, 32, 1))):
        x = groups_of(210 + k, m, n, 32).store.copy()
        if m > 1:
            x[6, 40], x[5, 70] = np.inf, 3e38
        row(
            f"std_scaled_to_mx_{t}_{m}x{n}", f"""
import std.scaled;

kernel k(const f32 x[M, K], {t} q[M, K], u8 s[M, L], bf16 p[M, L], bf16 w[M, K])
    grid(1)
{{
    auto (n, scale) = scaled.to_mx(x[0 +: {bm}, 0 +: {n}]{'' if t == 'f8e4m3' else ', f8e5m2'});
    q[0 +: {bm}, 0 +: {n}] = n;
    s[0 +: {bm}, 0 +: {n // 32}] = scale;
    p[0 +: {bm}, 0 +: {n // 32}] = scaled.e8m0(scale);
    w[0 +: {bm}, 0 +: {n}] = scaled.widen(n, scale, {bm}, {n});
}}
""", {
                "x": Arr("f32", x), "q": poison(t, m, n), "s": poison("u8", m, n // 32), "p": poison(
                    "bf16", m, n // 32), "w": poison("bf16", m, n)
            }, lambda a, t=t: (lambda s, q: {
                "q": exact(q), "s": exact(s), "p": exact(2.0**(s.astype(float) - 127)), "w": within(
                    q * np.repeat(2.0**(s.astype(float) - 127), 32, 1), 2.0**-134)
            })(*mx(a["x"], t)), warps=WARPS[k], stages=2)

row(
    "std_scaled_scales_of_both_kinds", """
import std.scaled;

kernel k(const f4e2m1 x[M, K], const u8 s[M, 2], const f8e4m3 t[M, 4], bf16 p[M, 2], bf16 q[M, 4], bf16 v[M, K],
         bf16 w[M, K])
    grid(1)
{
    auto e = x[0 +: 4, 0 +: 64];
    auto a = s[0 +: 4, 0 +: 2];
    auto b = t[0 +: 4, 0 +: 4];
    p[0 +: 4, 0 +: 2] = scaled.scales(a);
    q[0 +: 4, 0 +: 4] = scaled.scales(b);
    v[0 +: 4, 0 +: 64] = scaled.widen(e, a, 4, 64);
    w[0 +: 4, 0 +: 64] = scaled.widen(e, b, 4, 64);
}
""", {
        "x": random_bits("u8", 230, 3, 32)._replace(type="f4e2m1"), "s": Arr(
            "u8", np.array([[127, 100], [20, 230], [130, 255]], np.uint8)), "t": Arr(
                "f8e4m3",
                rng(231).integers(0, 127, (3, 4)).astype(np.uint8)), "p": poison("bf16", 3, 2), "q": poison(
                    "bf16", 3, 4), "v": poison("bf16", 3, 64), "w": poison("bf16", 3, 64)
    }, lambda a: (lambda s: {
        "p": exact(s), "q": exact(a["t"].astype(float)), "v": exact(a["x"].astype(float) * np.repeat(s, 32, 1)),
        "w": exact(a["x"].astype(float) * np.repeat(a["t"].astype(float), 16, 1))
    })(np.where(a["s"] == 255, np.nan, 2.0**(a["s"].astype(float) - 127))))

row(
    "std_scaled_product", """
import std.scaled;

kernel k(const f32 x[M, K], const f32 w[N, K], f32 y[M, N], f32 z[M, N])
    grid(1)
{
    auto (a, sa) = scaled.to_mx(x[0 +: 16, 0 +: 64]);
    auto (b, sb) = scaled.to_mx(w[0 +: 8, 0 +: 64], f8e5m2);
    y[0 +: 16, 0 +: 8] = dot_scaled(a, sa, trans(b), sb);
    z[0 +: 16, 0 +: 8] = dot_scaled(a, sa, trans(b), sb, tile<f32, 16, 8>(1.0));
}
""", {
        "x": Arr("f32",
                 rng(220).normal(0, 1, (13, 64)).astype(F32)), "w": Arr("f32",
                                                                        rng(221).normal(0, 1, (7, 64)).astype(F32)),
        "y": poison("f32", 13, 7), "z": poison("f32", 13, 7)
    }, lambda a: (lambda v, r: {"y": within(v, r), "z": within(v + 1, r + 1e-5)})
    (a["x"].astype(np.float64) @ a["w"].T.astype(np.float64), np.abs(a["x"]).astype(np.float64) @ np.abs(a["w"]).T.
     astype(np.float64) * (2.0**-4 + 2.0**-3 + 2.0**-7) + 1e-3), same_bits=False, warps=4, stages=2)
