"""std.kernels.sparse, fft, stencil, simulate, finance, sequence and filter against NumPy in f64."""
from kernel_library import Arr, EPS, exact, f64, kernel_row, near, np, poison, rounded, within
from values import STORE, ints, is_float, normal, rng, small, store, wide, zeros


# ---- sparse ----------------------------------------------------------------------------------------------------------
def csr(t, seed, m, k, lengths):
    """A matrix in CSR with rows of those lengths; columns may repeat. Small integers: sums are exact."""
    offset = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return {
        "value": small(t, seed, offset[-1]), "column": ints("i32", seed + 1, 0, max(k, 1), offset[-1]),
        "offset": Arr("i32", offset)
    }


def dense(a, m, k):
    full = np.zeros((m, k))
    np.add.at(full, (np.repeat(np.arange(m), np.diff(a["offset"])), a["column"]), a["value"].astype(float))
    return full


ROWS_OF = [("f32", "f32", 50, [3, 0, 5, 1, 40, 0, 2, 2, 17]), ("f16", "f32", 7, [1]),
           ("f64", "f64", 9, [0, 0, 100, 3, 0]), ("bf16", "f32", 20, [4] * 33), ("f32", "f32", 1, [0]),
           ("f32", "f64", 3, []), ("f32", "f32", 30, [70, 1, 0, 16, 15, 90, 0])]
for t, a, k, lengths in ROWS_OF:
    m, name = len(lengths), f"{t}_{a}_{len(lengths)}x{k}"
    A, x = csr(t, 1, m, k, lengths), small(t, 3, k)
    for beta in (False, True)[: 1 + (m > 1)]:
        kernel_row(
            "sparse", "spmv_csr", name + ("_beta" if beta else ""),
            {**A, "x": x, "y": small(t, 4, m) if beta else poison(t, m), "alpha": 2.0, "beta": 3.0},
            lambda v, t=t, m=m, k=k, beta=beta:
            {"y": rounded(2 * dense(v, m, k) @ v["x"].astype(float) +
                          (3 * v["y"].astype(float) if beta else 0), t)}, T=t, A_=a, BETA=beta, R=4, W=8)
    kernel_row("sparse", "spmv_csr_balanced", name, {**A, "x": x, "y": zeros(a, m)},
               lambda v, m=m, k=k: {"y": exact(dense(v, m, k) @ v["x"].astype(float))}, T=t, A_=a, B=16)
    n = 33 if m > 1 else 1
    kernel_row("sparse", "spmm_csr", name, {**A, "B": small(t, 5, k, n), "C": poison(t, m, n)},
               lambda v, t=t, m=m, k=k: {"C": rounded(dense(v, m, k) @ v["B"].astype(float), t)}, T=t, A_=a, BN=16)
    d = 20 if m > 1 else 1

    def sampled(v, t=t, m=m):
        of = np.repeat(np.arange(m), np.diff(v["offset"]))
        return {
            "y": rounded(
                v["value"].astype(float) * (v["P"].astype(float)[of] * v["Q"].astype(float)[v["column"]]).sum(1), t)
        }

    kernel_row("sparse", "sddmm_csr", name,
               {**A, "P": small(t, 6, m, d), "Q": small(t, 7, k, d), "y": poison(t, len(A["value"].store))}, sampled,
               T=t, A_=a, W=8, BD=16)

for t, a, m, k, n, lengths in (
        ("f16", "f32", 61, 40, 33, [2, 0, 1, 3]),
        ("f32", "f32", 16, 16, 1, [1]),
        ("bf16", "f32", 20, 50, 17, [4, 0]),
        ("f64", "f64", 3, 5, 4, [1]),
        ("f32", "f32", 5, 9, 0, [0])):
    A = csr(t, 8, len(lengths), -(-k // 16), lengths)
    A["value"] = small(t, 9, len(A["value"].store), 16, 16)

    def product(v, t=t, m=m, k=k):
        q, wide_k = len(v["offset"]) - 1, -(-k // 16) * 16
        full = np.zeros((q * 16, wide_k))
        for r in range(q):
            for i in range(v["offset"][r], v["offset"][r + 1]):
                full[r * 16:r * 16 + 16, v["column"][i] * 16:v["column"][i] * 16 + 16] += v["value"][i]
        return {"C": rounded(full[:m, :k] @ v["B"].astype(float), t)}

    kernel_row("sparse", "spmm_bsr", f"{t}_{m}x{k}x{n}", {**A, "B": small(t, 10, k, n), "C": poison(t, m, n)}, product,
               T=t, A_=a, BM=16, BK=16, BN=16)


# ---- fft -------------------------------------------------------------------------------------------------------------
def pairs(z):
    return np.stack([z.real, z.imag], -1)


def table(n, t="f32"):
    return Arr(t, np.stack([f(-2 * np.pi * np.arange(n) / n) for f in (np.cos, np.sin)]).astype(STORE[t]))


def number(a):
    return a[..., 0].astype(float) + 1j * a[..., 1]


UNITS = {"f32": EPS, "f64": 2.0**-53}


def transformed(z, bits, t="f32"):
    """Within some units of the root mean square."""
    return within(pairs(z), (4 + bits) * 8 * UNITS[t] * (np.sqrt((np.abs(z) ** 2).mean()) if z.size else 0))


def named(t, name, inverse=False):
    return ("f64_" if t == "f64" else "") + name + ("_inverse" if inverse else "")


def ways(n):
    """Rows of n complex numbers: each in a tile, or short ones abreast."""
    return (("", False), ("_abreast", True)) if n <= 32 else (("", False), )


for t, n in (("f32", 1), ("f32", 64), ("f64", 300), ("f32", 300)):
    kernel_row("fft", "fft_table", named(t, str(n)), {"w": poison(t, 2, n)},
               lambda _, t=t, n=n: {"w": within(table(n, t).store.astype(float), 8 * UNITS[t])}, T=t, B=64)
for t, m, n, inverse in (("f32", 3, 32, False), ("f32", 1, 1, False), ("f32", 5, 8, True), ("f64", 3, 16, True),
                         ("f32", 1, 256, True), ("f32", 0, 4, False), ("f64", 1, 128, False), ("f32", 2, 2, True),
                         ("f32", 37, 16, False), ("f64", 19, 4, True), ("f32", 50, 32, True), ("f64", 17, 8, False)):
    go = np.fft.ifft if inverse else np.fft.fft
    for way, abreast in ways(n):
        kernel_row("fft", "fft", named(t, f"{m}x{n}", inverse) + way,
                   {"x": normal(t, 1, m, n, 2), "w": table(n, t), "y": poison(t, m, n, 2)},
                   lambda a, t=t, n=n, go=go: {"y": transformed(go(number(a["x"])), np.log2(n), t)}, T=t, N=n,
                   INVERSE=inverse, R=2 if m < 6 else 24, ABREAST=abreast)
for t, m, n1, n2, inverse in (("f32", 16, 8, 8, False), ("f64", 75, 8, 8, True), ("f32", 147, 8, 8, True),
                              ("f64", 16, 4, 2, False), ("f32", 33, 2, 8, False), ("f64", 130, 8, 8, False),
                              ("f32", 20, 16, 4, True)):
    n, go = n1 * n2, np.fft.ifft if inverse else np.fft.fft
    kernel_row("fft", "fft_blocks", named(t, f"{m}x{n1}x{n2}", inverse),
               {"x": normal(t, 1, m, n, 2), "w": table(n, t), "y": poison(t, m, n, 2)},
               lambda a, t=t, n=n, go=go: {"y": transformed(go(number(a["x"])), np.log2(n), t)}, T=t, N1=n1, N2=n2,
               INVERSE=inverse)
for t, m, n in (("f32", 3, 32), ("f64", 1, 8), ("f32", 1, 2), ("f64", 3, 64), ("f32", 2, 128), ("f32", 0, 8),
                ("f32", 37, 64), ("f64", 25, 16), ("f32", 40, 4)):
    def back(a, t=t, n=n):
        x = np.fft.irfft(number(a["y"]), n)
        return {"x": within(x, (4 + np.log2(n)) * 8 * UNITS[t] * np.abs(x).max(initial=0))}

    for way, abreast in ways(n // 2):
        consts = {"T": t, "N": n, "R": 2 if m < 6 else 24, "ABREAST": abreast}
        kernel_row("fft", "fft_real", named(t, f"{m}x{n}") + way,
                   {"x": normal(t, 2, m, n), "w": table(n, t), "y": poison(t, m, n // 2 + 1, 2)},
                   lambda a, t=t, n=n: {"y": transformed(np.fft.rfft(a["x"].astype(float)), np.log2(n), t)}, **consts)
        kernel_row("fft", "fft_real_inverse", named(t, f"{m}x{n}") + way,
                   {"y": normal(t, 3, m, n // 2 + 1, 2), "w": table(n, t), "x": poison(t, m, n)}, back, **consts)
# the steps of longer rows: halves(z) is what z, the transform of numbers 2 j + i (2 j + 1), becomes
for t, m, h in (("f32", 2, 64), ("f64", 1, 150), ("f32", 3, 1), ("f64", 2, 16), ("f32", 0, 4), ("f32", 1, 0)):
    def halves(a, t=t, m=m, h=h):
        x = np.fft.ifft(number(a["z"])) if h else np.zeros((m, 0))
        x = np.stack([x.real, x.imag], -1).reshape(m, 2 * h)
        return {"y": transformed(np.fft.rfft(x) if h else np.zeros((m, 1)), 4, t)}

    def whole(a, t=t, m=m, h=h):
        y = number(a["y"])
        if not h:
            return {"z": transformed(np.zeros((m, 0)), 4, t)}
        y[:, 0], y[:, h] = y[:, 0].real, y[:, h].real
        x = np.fft.irfft(y, 2 * h).reshape(m, h, 2)
        return {"z": transformed(np.fft.fft(x[..., 0] + 1j * x[..., 1]), 4, t)}
    kernel_row("fft", "fft_real_last", named(t, f"{m}x{h}"),
               {"z": normal(t, 6, m, h, 2), "w": table(2 * h, t) if h else poison(t, 2, 0),
                "y": poison(t, m, h + 1, 2)}, halves, T=t, B=32)
    kernel_row("fft", "fft_real_first", named(t, f"{m}x{h}"),
               {"y": normal(t, 7, m, h + 1, 2), "w": table(2 * h, t) if h else poison(t, 2, 0),
                "z": poison(t, m, h, 2)}, whole, T=t, B=32)
for t, m, n1, n2 in (("f32", 2, 17, 40), ("f64", 1, 33, 3), ("f32", 1, 1, 5), ("f32", 0, 3, 3), ("f64", 2, 0, 4)):
    kernel_row("fft", "fft_turn", named(t, f"{m}x{n1}x{n2}"),
               {"x": normal(t, 8, m, n1, n2, 2), "y": poison(t, m, n2, n1, 2)},
               lambda a: {"y": exact(a["x"].transpose(0, 2, 1, 3))}, T=t)
for t, m, n1, n2, inverse in (("f32", 2, 16, 8, False), ("f32", 1, 4, 64, True), ("f64", 1, 8, 16, False),
                              ("f32", 1, 1, 2, False)):
    x, n = normal(t, 4, m, n1, n2, 2), n1 * n2
    # columns, turned; then rows: together the transform of n numbers
    sign, go = (1, np.fft.ifft) if inverse else (-1, np.fft.fft)
    middle = go(number(x.store), axis=1) * np.exp(sign * 2j * np.pi * np.arange(n1)[:, None] * np.arange(n2) / n)
    name = named(t, f"{m}x{n1}x{n2}", inverse)
    kernel_row("fft", "fft_columns", name, {"x": x, "w": table(n1, t), "t": poison(t, m, n1, n2, 2)},
               lambda _, t=t, z=middle: {"t": transformed(z, 8, t)}, T=t, N1=n1, INVERSE=inverse, B=2)
    whole = go(number(x.store).reshape(m, n)).reshape(m, n2, n1)
    kernel_row("fft", "fft_last", name,
               {"t": Arr(t, pairs(middle).astype(STORE[t])), "w": table(n2, t), "y": poison(t, m, n2, n1, 2)},
               lambda _, t=t, z=whole: {"y": transformed(z, 8, t)}, T=t, N2=n2, INVERSE=inverse, B=2)
for t, m, n1, n2, inverse in (("f32", 2, 32, 5, False), ("f64", 1, 8, 3, True), ("f64", 1, 16, 1, False)):
    go = np.fft.ifft if inverse else np.fft.fft
    kernel_row("fft", "fft_columns", named(t, f"{m}x{n1}x{n2}_image", inverse),
               {"x": normal(t, 9, m, n1, n2, 2), "w": table(n1, t), "t": poison(t, m, n1, n2, 2)},
               lambda a, t=t, go=go: {"t": transformed(go(number(a["x"]), axis=1), 8, t)}, T=t, N1=n1, INVERSE=inverse,
               TURN=False, B=2)
for t, m, n, programs, inverse in (("f32", 3, 64, 2, False), ("f32", 1, 128, 1, True), ("f32", 1, 256, 3, True),
                                   ("f32", 0, 64, 1, False), ("f32", 1, 512, 1, False), ("f32", 1, 1024, 1, True),
                                   ("f64", 2, 64, 1, False), ("f64", 1, 2048, 1, True), ("f64", 1, 128, 1, False)):
    go = np.fft.ifft if inverse else np.fft.fft
    kernel_row("fft", "fft_long", named(t, f"{m}x{n}", inverse), {
        "x": normal(t, 5, m, n, 2), "w": table(n, t), "y": poison(t, m, n, 2), "room": poison(t, programs, 4, n)
    }, lambda a, t=t, n=n, go=go: {"y": transformed(go(number(a["x"])), np.log2(n), t)}, T=t, INVERSE=inverse)
for t, m, n, programs in (("f32", 3, 64, 2), ("f64", 1, 128, 1), ("f32", 1, 256, 3), ("f32", 0, 64, 1),
                          ("f32", 1, 512, 1), ("f64", 2, 64, 1), ("f32", 2, 1024, 1), ("f64", 1, 2048, 1)):
    tables = {"w": table(n, t), "w2": table(2 * n, t)}
    kernel_row("fft", "fft_real_long", named(t, f"{m}x{n}"), {
        "x": normal(t, 5, m, 2 * n), **tables, "y": poison(t, m, n + 1, 2), "room": poison(t, programs, 4, n)
    }, lambda a, t=t, n=n: {"y": transformed(np.fft.rfft(a["x"].astype(float)), np.log2(n), t)}, T=t)

    def back_long(a, t=t, n=n):
        x = np.fft.irfft(number(a["y"]), 2 * n)
        return {"x": within(x, (4 + np.log2(n)) * 8 * UNITS[t] * np.abs(x).max(initial=0))}

    kernel_row("fft", "fft_real_long_inverse", named(t, f"{m}x{n}"), {
        "y": normal(t, 3, m, n + 1, 2), **tables, "x": poison(t, m, 2 * n), "room": poison(t, programs, 4, n)
    }, back_long, T=t)


# ---- stencil ---------------------------------------------------------------------------------------------------------
def neighbours(u, border, outside):
    """The sum of the neighbours along all axes."""
    total = np.zeros(u.shape)
    for axis in range(u.ndim):
        wide_ = np.pad(u, [(1, 1) if i == axis else (0, 0)
                           for i in range(u.ndim)], mode=("constant", "edge", "wrap")[border],
                       **({"constant_values": outside} if border == 0 else {}))
        total += np.take(wide_, range(u.shape[axis]), axis) + np.take(wide_, range(2, u.shape[axis] + 2), axis)
    return total


for i, (t, a, shape, border, source) in enumerate([("f32", "f32", (33, 70), 0, True), ("f16", "f32", (5, 9), 1, False),
                                                   ("f64", "f64", (17, 20), 2, True), ("f32", "f32", (1, 1), 0, False),
                                                   ("bf16", "f32", (1, 40), 1, True), ("f32", "f32", (30, 1), 2, False),
                                                   ("f32", "f32", (0, 3), 0, False),
                                                   ("f32", "f32", (9, 7, 40), 0, True),
                                                   ("f16", "f32", (3, 10, 33), 1, False),
                                                   ("f64", "f64", (6, 9, 5), 2, True),
                                                   ("f32", "f32", (1, 1, 1), 2, False),
                                                   ("bf16", "f32", (1, 9, 2), 0, True),
                                                   ("f32", "f32", (5, 1, 1), 1, False),
                                                   ("f32", "f32", (4, 0, 3), 0, False)]):
    u, f = small(t, 1, *shape), small(t, 2, *(shape if source else (0,) * len(shape)))

    def want(v, t=t, border=border, source=source):
        y = 0.5 * v["u"].astype(float) + 0.25 * neighbours(v["u"].astype(float), border,
                                                           3.0) if v["u"].size else v["u"].astype(float)
        return {"v": rounded(y + (2 * v["f"].astype(float) if source else 0), t)}

    kernel_row("stencil", "stencil_5" if len(shape) == 2 else "stencil_7",
               f"{t}_{'x'.join(map(str, shape))}_{('fixed', 'mirror', 'wrap')[border]}",
               {"u": u, "f": f, "v": poison(t, *shape), "centre": 0.5, "around": 0.25, "source": 2.0, "outside": 3.0},
               want, T=t, A_=a, BORDER=border, SOURCE=source, BH=4, BW=16, **({"BD": 4} if len(shape) == 3 else {}))

# ---- finance, simulate -----------------------------------------------------------------------------------------------
from values import philox  # noqa: E402


def black_scholes(s, k, t, r, v):
    from math import erf
    below = np.vectorize(lambda x: 0.5 * (1 + erf(x / np.sqrt(2))), otypes=[float])
    d1 = (np.log(s / k) + (r + v * v / 2) * t) / (v * np.sqrt(t))
    d2 = d1 - v * np.sqrt(t)
    worth = k * np.exp(-r * t)
    return s * below(d1) - worth * below(d2), worth * below(-d2) - s * below(-d1)


for n in (100, 1, 0):
    numbers = {
        "spot": Arr("f32",
                    rng(1).uniform(5, 30,
                                   n).astype(np.float32)), "strike": Arr("f32",
                                                                         rng(2).uniform(5, 40, n).astype(np.float32)),
        "time": Arr("f32",
                    rng(3).uniform(0.25, 10, n).astype(np.float32))
    }
    of = lambda a: f64(a, "spot", "strike", "time") + [float(np.float32(0.02)), float(np.float32(0.3))]

    def prices(a, of=of):
        return dict(
            zip(("call", "put_"), (within(p, 64 * EPS * (a["spot"] + a["strike"])) for p in black_scholes(*of(a)))))

    kernel_row("finance", "black_scholes", str(n),
               {**numbers, "call": poison("f32", n), "put_": poison("f32", n), "rate": 0.02, "volatility": 0.3}, prices,
               B=32)

    def greeks(a, of=of):
        """Central differences of the prices: no second set of formulas."""
        at, h = of(a), 1e-4
        moved = lambda i, d: black_scholes(*[x + d if j == i else x for j, x in enumerate(at)])
        by = lambda i: [(p - q) / (2 * h) for p, q in zip(moved(i, h), moved(i, -h))]
        gamma = (moved(0, 0.01)[0] - 2 * moved(0, 0)[0] + moved(0, -0.01)[0]) / 1e-4
        y = np.stack([*by(0), gamma, by(4)[0], *(-x for x in by(2)), *by(3)])
        return {"y": within(y, 1e-5 + 3e-5 * np.abs(y))}

    kernel_row("finance", "black_scholes_greeks", str(n),
               {**numbers, "y": poison("f32", 8, n), "rate": 0.02, "volatility": 0.3}, greeks, B=32)


def normal_number(seed, i):
    w = philox(seed, i)
    return np.sqrt(-2 * np.log(((w[0] >> 8) + 1) * 2.0**-24)) * np.cos(2 * np.pi * (w[1] >> 8) * 2.0**-24)


for parts, paths, steps, put in ((3, 100, 4, False), (1, 1, 1, True), (2, 40, 3, True), (2, 0, 2, False)):
    def mean_worth(_, parts=parts, paths=paths, steps=steps, put=put):
        z = np.array([normal_number(5, i) for i in range(paths * steps)]).reshape(paths, steps)
        dt = 2.0 / steps
        mean = (100 * np.exp(np.cumsum((0.03 - 0.2**2 / 2) * dt + 0.2 * np.sqrt(dt) * z, 1))).mean(1)
        worth = np.exp(-0.03 * 2) * np.maximum(105 - mean if put else mean - 105, 0)
        mine = np.arange(paths) // 32 % parts
        part = np.stack([[worth[mine == p].sum(), (worth[mine == p] ** 2).sum()] for p in range(parts)])
        return {"part": within(part, np.array([1e-2, 1.0]) * 1e-3 * 32)}

    kernel_row(
        "finance", "asian_option", f"{paths}x{steps}" + ("_put" if put else ""), {
            "part": poison("f64", parts, 2), "spot": 100.0, "strike": 105.0, "time": 2.0, "rate": 0.03,
            "volatility": 0.2, "steps": steps, "paths": paths, "seed": 5
        }, mean_worth, PUT=put, B=32)

for parts, n in ((3, 200), (1, 1), (2, 0)):
    def hits(_, parts=parts, n=n):
        inside = np.array([sum((w >> 8) ** 2 for w in philox(7, i)[:2]) < 2**48 for i in range(n)], bool)
        return {"hits": exact(np.array([inside[np.arange(n) // 32 % parts == p].sum() for p in range(parts)]))}
    kernel_row("simulate", "monte_carlo_pi", str(n), {"hits": poison("i64", parts), "n": n, "seed": 7}, hits, B=32)
for n in (70, 1, 0):
    def forces(a, n=n):
        x, m = f64(a, "x", "m")
        d = x[:, None, :] - x[:, :, None]
        near = 1 / np.sqrt((d**2).sum(0) + float(np.float32(0.1)) ** 2)
        pull = d * near**3 * m
        potential = -(near * m).sum(1) + m * near.diagonal() if n else np.zeros(0)
        return {
            "a": within(pull.sum(2), (n + 20) * 2 * EPS * np.abs(pull).sum(2)),
            "potential": within(potential, (n + 20) * 4 * EPS * (near * m).sum(1) if n else 0)
        }

    kernel_row(
        "simulate", "nbody_forces", str(n), {
            "x": normal("f32", 1, 3, n), "m": Arr("f32",
                                                  rng(2).random(n).astype(np.float32)), "a": poison("f32", 3, n),
            "potential": poison("f32", n), "soft": 0.1
        }, forces, B=16)


# ---- sequence --------------------------------------------------------------------------------------------------------
def aligned(a, b, match, open_, extend):
    """Gotoh's recurrences, one cell at a time."""
    h, e, f = (np.full((len(a) + 1, len(b) + 1), v) for v in (0, -10**6, -10**6))
    best, at = 0, (0, 0)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            e[i, j] = max(h[i, j - 1] - open_, e[i, j - 1] - extend)
            f[i, j] = max(h[i - 1, j] - open_, f[i - 1, j] - extend)
            h[i, j] = max(0, h[i - 1, j - 1] + match[a[i - 1], b[j - 1]], e[i, j], f[i, j])
            if h[i, j] > best:
                best, at = h[i, j], (i, j)
    return best, at


for seed, letters, lengths in (
        (1, 4, [(20, 33), (1, 1), (0, 5), (5, 0), (40, 17), (16, 16)]),
        (2, 20, [(35, 50), (9, 3)]),
        (3, 2, [])):
    draw = rng(seed)
    a, b = ([draw.integers(0, letters, pair[side]).astype(np.uint8) for pair in lengths] for side in (0, 1))
    if len(a) > 1 and len(a[0]) > 15:  # a part in common, with a gap
        b[0][5:13], b[0][15:20] = a[0][2:10], a[0][10:15]
    match = draw.integers(-4, 0, (letters, letters)) + 8 * np.eye(letters, dtype=np.int64)
    joined = lambda x: Arr("u8", np.concatenate([np.zeros(0, np.uint8), *x]))
    offsets = lambda x: Arr("i32", np.cumsum([0] + [len(y) for y in x]).astype(np.int32))

    def scores(_, a=a, b=b, match=match):
        got = [aligned(x, y, match, 5, 2) for x, y in zip(a, b)]
        return {
            "score": exact(np.array([g[0] for g in got], np.int32)),
            "end": exact(np.array([g[1] for g in got], np.int32).reshape(-1, 2))
        }

    kernel_row(
        "sequence", "smith_waterman", f"{letters}_{len(lengths)}", {
            "a": joined(a), "from_a": offsets(a), "b": joined(b), "from_b": offsets(b), "match": Arr(
                "i32", match.astype(np.int32)), "score": poison("i32", len(a)), "end": poison("i32", len(a), 2),
            "edge": poison("i32", 2, sum(map(len, b))), "open": 5, "extend": 2
        }, scores, B=16)


# ---- filter ----------------------------------------------------------------------------------------------------------
def shifted(x, dy, dx):
    """x[..., h + dy, w + dx], and where that is inside."""
    h, w = np.mgrid[:x.shape[-2], :x.shape[-1]]
    inside = (h + dy >= 0) & (h + dy < x.shape[-2]) & (w + dx >= 0) & (w + dx < x.shape[-1])
    y = np.zeros(x.shape)
    y[..., inside] = x[..., (h + dy)[inside], (w + dx)[inside]]
    return y, inside


def average(x, radius_y, radius_x, weight):
    total, weights = np.zeros(x.shape), np.zeros(x.shape[-2:])
    for dy in range(-radius_y, radius_y + 1):
        for dx in range(-radius_x, radius_x + 1):
            y, inside = shifted(x, dy, dx)
            v = weight(dy, dx, y) * inside
            total, weights = total + v * y, weights + v
    return total / weights


for c, h, w in ((3, 17, 35), (3, 1, 1), (3, 9, 2)):
    x = Arr("f32", rng(1).random((c, h, w)).astype(np.float32))
    size, out = f"{h}x{w}", {"x": x, "y": poison("f32", c, h, w)}
    for down in (False, True):
        kernel_row(
            "filter", "blur", f"{size}_{'down' if down else 'along'}", {**out, "sigma": 1.5}, lambda a, d=down: {
                "y": within(
                    average(f64(a, "x")[0], 3 * d, 3 *
                            (not d), lambda dy, dx, _: np.exp(-(dy * dy + dx * dx) / 4.5)), 32 * EPS)
            }, R=3, DOWN=down, BH=4, BW=16)

    def edges(a):
        v = f64(a, "x")[0]
        light = lambda dy, dx: np.tensordot([0.2126, 0.7152, 0.0722], shifted(v, dy, dx)[0], 1)
        gx, gy = (sum((2 - d * d) * (light(*((d, s) if across else (s, d))) * s) for d in (-1, 0, 1) for s in (1, -1))
                  for across in (True, False))
        y = np.minimum(1, np.sqrt(gx**2 + gy**2))
        y[[0, -1]], y[:, [0, -1]] = 0, 0
        return {"y": within(np.broadcast_to(y, v.shape), 64 * EPS * 8)}
    kernel_row("filter", "sobel", size, out, edges, BH=4, BW=16)

    def smooth(a):
        v = f64(a, "x")[0]
        return {
            "y": within(
                average(
                    v, 2, 2, lambda dy, dx, y: np.exp(-(dx * dx + dy * dy) / 4.5 - ((y - v)**2).sum(0) /
                                                      (2 * np.float32(0.3)**2.0))), 400 * EPS)
        }
    kernel_row("filter", "bilateral", size, {**out, "sigma": 1.5, "range_": 0.3}, smooth, R=2, BH=4, BW=16)
    weight = small("f32", 2, *((3, 4) if h > 1 else (1, 1)))

    def convolved(a):
        k = a["weight"].astype(float)
        terms = [
            k[i, j] * shifted(f64(a, "x")[0], i - k.shape[0] // 2, j - k.shape[1] // 2)[0] for i in range(k.shape[0])
            for j in range(k.shape[1])
        ]
        return {"y": within(sum(terms), 16 * EPS * sum(map(np.abs, terms)))}
    kernel_row("filter", "convolve", size, {**out, "weight": weight}, convolved, BH=4, BW=16)
