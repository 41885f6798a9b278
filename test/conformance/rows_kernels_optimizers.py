"""std.kernels.optimizers against NumPy in f64, written from the papers and PyTorch's definitions: lists of tensors by
tables of addresses."""
from kernel_library import Arr, EPS, exact, kernel_row, near, np, poison, within
from values import normal, philox, quantize, small, wide, zeros

LENGTHS = ([70, 1, 0, 33], [1], [32, 64, 95], [])  # B is 32: whole blocks and rests
f32 = lambda x: float(np.float32(x))


def table(name, arrays):
    """The table `name` of addresses of the arrays, and these as name0, name1, ..."""
    named = {f"{name}{i}": a for i, a in enumerate(arrays)}
    return {name: f"addresses({','.join(named)})" if named else Arr("u64", np.zeros(0, np.uint64)), **named}


def numbers(values, t="i64"):
    return Arr(t, np.array(values, {"i64": np.int64, "f32": np.float32, "i32": np.int32}[t]))


NO_TABLE, NO_FACTOR, NO_STEPS = Arr("u64", np.zeros(0, np.uint64)), numbers([], "f32"), numbers([], "i32")


def steps_of(kernel, rule, states, scalars, **options):
    """Rows of a kernel that makes steps: rule(w, g, states, scalars) gives new weights, new states and a bound for
    both, in f64."""
    forms = (
        ("f32", "f32", False, False), ("bf16", "bf16", True, True), ("f16", "f16", False, True),
        ("bf16", "f32", True, False))
    for (t, u, master, control), lengths in zip(forms, LENGTHS):
        up = 0.5 if control else 0.25
        w = [normal("f32" if master else t, 10 + i, n) for i, n in enumerate(lengths)]
        args = table("w", [poison(t, n) for n in lengths] if master else w)
        args |= table("g", [normal(u, 20 + i, n) for i, n in enumerate(lengths)])
        for k, name in enumerate(states):
            args |= table(name,
                          [Arr("f32", abs(normal("f32", 30 + 10 * k + i, n).store)) for i, n in enumerate(lengths)])
        args |= table("master", w) if master else {"master": NO_TABLE}
        args |= {"length": numbers(lengths), "factor": numbers([up], "f32") if control else NO_FACTOR}
        if kernel == "adam":
            args["steps"] = numbers([3], "i32") if control else NO_STEPS
        args["s.times"] = 0.25
        if kernel == "adam":
            args["s.step"] = 2
        args |= scalars | {"s.seed": 1}

        def want(a, t=t, master=master, n=len(lengths), up=up, control=control):
            out = {}
            for i in range(n):
                x = a[f"master{i}" if master else f"w{i}"].astype(float)
                x, kept, bound = rule(x, a[f"g{i}"].astype(float) * up, [a[f"{s}{i}"].astype(float) for s in states],
                                      3 if control else 2)
                out[f"w{i}"] = near(x, bound, t)
                out |= {f"{s}{i}": within(y, bound) for s, y in zip(states, kept)}
                out |= {f"master{i}": within(x, bound)} if master else {}
            return out

        name = "_".join([t, u] + [f"{k.removeprefix('o.')}_{v}" for k, v in options.items()])
        kernel_row("optimizers", kernel, name, args, want, T=t, U=u,
                   **{"o.master": master, "o.control": control, "o.B": 32, **options})


# ---- steps -----------------------------------------------------------------------------------------------------------
RATE, DECAY, MOMENTUM = f32(0.1), f32(0.01), f32(0.9)


def sgd(momentum, nesterov):
    def rule(w, g, states, _step):
        g = g + DECAY * w
        if not momentum:
            return w - RATE * g, [], 8 * EPS * (abs(w) + abs(g))
        b = MOMENTUM * states[0] + g
        bound = 8 * EPS * (abs(w) + 2 * abs(g) + 2 * abs(states[0]) + abs(b))
        return w - RATE * (g + MOMENTUM * b if nesterov else b), [b], bound
    return rule


scalars = {"s.rate": RATE, "s.momentum": MOMENTUM, "s.decay": DECAY}
for nesterov in (False, True):
    steps_of("sgd", sgd(True, nesterov), ["b"], scalars, **{"o.momentum": True, "o.nesterov": nesterov})
# Without momentum there is no table of it.
lengths = LENGTHS[0]
kernel_row(
    "optimizers", "sgd", "plain", {
        **table("w", [normal("f32", i, n) for i, n in enumerate(lengths)]),
        **table("g", [normal("f32", 9 + i, n) for i, n in enumerate(lengths)]), "b": NO_TABLE, "master": NO_TABLE,
        "length": numbers(lengths), "factor": NO_FACTOR, "s.times": 1.0, **scalars, "s.seed": 0
    }, lambda a: {
        f"w{i}": within(*(lambda x, _, bound: (x, bound))(*sgd(False, False)
                                                          (a[f"w{i}"].astype(float), a[f"g{i}"].astype(float), [], 1)))
        for i in range(4)
    }, **{"o.momentum": False, "o.B": 32})

BETA1, BETA2, TINY = f32(0.9), f32(0.999), f32(1e-6)


def adam(decoupled):
    def rule(w, g, states, step):
        m, v = states
        x = w
        if decoupled:
            x = w - RATE * DECAY * w
        else:
            g = g + DECAY * w
        m1, v1 = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
        root = np.sqrt(v1 / (1 - BETA2**step)) + TINY
        x = x - RATE * (m1 / (1 - BETA1**step)) / root
        reach = RATE * (abs(m) + abs(g)) / (1 - BETA1**step) / root  # of the terms of the step, before they cancel
        return x, [m1, v1], 40 * EPS * (abs(w) + abs(m) + abs(v) + abs(g) + g * g + reach)
    return rule


scalars = {"s.rate": RATE, "s.beta1": BETA1, "s.beta2": BETA2, "s.eps": TINY, "s.decay": DECAY}
for decoupled in (True, False):
    steps_of("adam", adam(decoupled), ["m", "v"], scalars, **{"o.decoupled": decoupled})


def lion(w, g, states, _step):
    m = states[0]
    way = BETA1 * m + (1 - BETA1) * g
    assert (abs(way) > 8 * EPS * (abs(m) + abs(g))).all()  # no sign hangs on a rounding
    return w - RATE * (np.sign(way) + DECAY * w), [f32(0.99) * m + (1 - f32(0.99)) * g
                                                   ], 8 * EPS * (abs(w) + abs(m) + abs(g) + 1)


steps_of("lion", lion, ["m"], {"s.rate": RATE, "s.beta1": BETA1, "s.beta2": f32(0.99), "s.decay": DECAY})
kernel_row(
    "optimizers", "lion", "nothing_moves", {
        **table("w", [normal("f32", 1, 33)]), **table("g", [zeros("f32", 33)]),
        **table("m", [zeros("f32", 33)]), "master": NO_TABLE, "length": numbers(
            [33]), "factor": NO_FACTOR, "s.times": 1.0, "s.rate": 0.5, "s.beta1": 0.5, "s.beta2": 0.5,
        "s.decay": 0.0, "s.seed": 0
    }, lambda a: {"w0": exact(a["w0"]), "m0": exact(a["m0"])}, **{"o.B": 32})

# factor 0: a step that is left out, whatever the gradients are.
for kernel, tables, scalars in (
        ("sgd", "b", {"s.rate": 1.0, "s.momentum": 0.5, "s.decay": 0.5}),
        ("adam", "mv", {"s.step": 1, "s.rate": 1.0, "s.beta1": 0.5, "s.beta2": 0.5, "s.eps": 0.1, "s.decay": 0.5}),
        ("lion", "m", {"s.rate": 1.0, "s.beta1": 0.5, "s.beta2": 0.5, "s.decay": 0.5})):
    args = {**table("w", [normal("bf16", 1, 40)]), **table("g", [Arr("bf16", np.full(40, 0x7F80, np.uint16))])}
    for name in tables:
        args |= table(name, [normal("f32", 2, 40)])
    args |= {"master": NO_TABLE, "length": numbers([40]), "factor": numbers([0], "f32")
             } | ({"steps": numbers([0], "i32")} if kernel == "adam" else {}) | {"s.times": 1.0, **scalars, "s.seed": 0}
    kernel_row("optimizers", kernel, "left_out", args,
               lambda a, tables=tables: {n: exact(a[n])
                                         for n in
                                         ("w0", *(s + "0" for s in tables))}, T="bf16", U="bf16",
               **{"o.control": True, "o.B": 32})


# ---- rounding by chance ----------------------------------------------------------------------------------------------
def by_chance(x, seed, block, p):
    """x rounded to p bits, up where the draw is below the part of a unit that is cut off: std.random's word of each
    element of a block."""
    unit = 2.0 ** (np.floor(np.log2(abs(x))) - p + 1)
    low = np.floor(abs(x) / unit) * unit
    draw = np.array([(philox((seed << 32) + i // block, i % block)[0] >> 8) * 2.0**-24 for i in range(len(x))])
    return np.sign(x) * (low + unit * (draw * unit < abs(x) - low))


for t, p in (("bf16", 8), ("f16", 11)):
    start, step = 1.0, 5 * 2.0 ** (-p - 3)  # 5/16 of a unit
    n = 700
    want_ = by_chance(np.full(n, start + step), 7, 32, p)
    # The expectation is the number itself: five deviations of the mean of n draws of a unit with probability 5/16.
    assert abs(want_.mean() - (start + step)) < 5 * 2.0 ** (1 - p) * np.sqrt(5 / 16 * 11 / 16 / n), want_.mean()
    kernel_row(
        "optimizers", "sgd", f"by_chance_{t}", {
            **table("w", [Arr(t, np.full(n, 0x3F80 if t == "bf16" else 1, np.uint16 if t == "bf16" else np.float16))]),
            **table("g", [Arr("f32", np.full(n, -step, np.float32))]), "b": NO_TABLE, "master": NO_TABLE,
            "length": numbers(
                [n]), "factor": NO_FACTOR, "s.times": 1.0, "s.rate": 1.0, "s.momentum": 0.0, "s.decay": 0.0,
            "s.seed": 7
        }, lambda a, w=want_: {"w0": exact(w)}, T=t, U="f32", **{"o.momentum": False, "o.stochastic": True, "o.B": 32})

# ---- before and after ------------------------------------------------------------------------------------------------
for u, lengths, p in (("f16", LENGTHS[0], 3), ("f32", LENGTHS[1], 1), ("bf16", LENGTHS[3], 2)):
    def parts(a, lengths=lengths, p=p):
        part, t = np.zeros(p), 0
        for i, n in enumerate(lengths):
            for block in range(0, n, 32):
                part[t % p] += (a[f"g{i}"][block:block + 32].astype(float) ** 2).sum()
                t += 1
        return {"part": exact(part)}

    kernel_row("optimizers", "sum_squares", u, {
        **table("g", [small(u, i, n) for i, n in enumerate(lengths)]), "length": numbers(lengths), "part": poison(
            "f32", p)
    }, parts, U=u, B=32)
    args = {
        **table("total", [small("f32", i, n) for i, n in enumerate(lengths)]),
        **table("g", [small(u, 9 + i, n) for i, n in enumerate(lengths)]), "length": numbers(lengths), "times": 0.5
    }
    kernel_row(
        "optimizers", "accumulate", u, args, lambda a, n=len(lengths):
        {f"total{i}": exact(a[f"total{i}"] + 0.5 * a[f"g{i}"].astype(float))
         for i in range(n)}, U=u, B=32)
    first = args | {k: poison("f32", v.store.size) for k, v in args.items() if k.startswith("total") and k != "total"}
    kernel_row("optimizers", "accumulate", f"first_{u}", first,
               lambda a, n=len(lengths): {f"total{i}": exact(0.5 * a[f"g{i}"].astype(float))
                                          for i in range(n)}, U=u, FIRST=True, B=32)
    kernel_row(
        "optimizers", "average_weights", u, {
            **table("e", [normal("f32", i, n) for i, n in enumerate(lengths)]), **table(
                "w", [normal(u, 9 + i, n) for i, n in enumerate(lengths)]), "length": numbers(lengths),
            "decay": f32(0.99)
        }, lambda a, n=len(lengths): {
            f"e{i}": within(
                f32(0.99) * a[f"e{i}"].astype(float) + (1 - f32(0.99)) * a[f"w{i}"].astype(float), 4 * EPS *
                (abs(a[f"e{i}"]) + abs(a[f"w{i}"])))
            for i in range(n)
        }, T=u, B=32)


def control(part, scale, good, times, most, growth, backoff, interval):
    """norm, factor, whether the step is made, scale and good afterwards: torch's clip_grad_norm_ and GradScaler."""
    norm = np.sqrt(part.astype(float).sum()) * times / scale
    if not norm < np.inf:
        return norm, 0.0, 0, scale * backoff, 0
    factor = times / scale * min(1.0, most / (norm + f32(1e-6)))
    good += 1
    grown = scale * growth if good == interval and scale * growth < 2.0**128 else scale
    return norm, factor, 1, grown, 0 if good == interval else good


for name, part, scale, good, most in (("clips", [9.0, 16.0, 0.0], 1.0, 4, 2.5), ("grows", [4.0] * 40, 1024.0, 9, 1.0),
                                      ("overflow", [4.0, np.inf], 1024.0, 9, 1.0), ("nan", [np.nan], 2.0, 3, 1.0),
                                      ("greatest", [1.0], 2.0**127, 9, np.inf), ("nothing", [], 4.0, 0, 1.0)):
    def want(a):
        norm, factor, made, scale, good = control(a["part"], float(a["scale"][0]), int(a["good"][0]), a["times"],
                                                  a["most"], a["growth"], a["backoff"], a["interval"])
        return {
            "norm": within([norm],
                           abs(np.nan_to_num(norm, posinf=0)) * 50 * EPS), "factor": within([factor],
                                                                                            50 * EPS * factor),
            "steps": exact([5 + made]), "scale": exact([scale]), "good": exact([good])
        }

    kernel_row(
        "optimizers", "step_control", name, {
            "part": numbers(part, "f32"), "factor": poison("f32", 1), "norm": poison("f32", 1), "scale": numbers(
                [scale], "f32"), "steps": numbers([5], "i32"), "good": numbers([good], "i32"), "times": 0.5,
            "most": most, "growth": 2.0, "backoff": 0.5, "interval": 10
        }, want, B=32)

# ---- Muon ------------------------------------------------------------------------------------------------------------
for u, x, lengths, p, nesterov, up in (
        ("f32", "f32", LENGTHS[0], 3, True, 0.5),
        ("bf16", "bf16", LENGTHS[1], 1, False, 0.5),
        ("f16", "f16", LENGTHS[2], 2, True, 0.0),
        ("f32", "bf16", LENGTHS[3], 2, True, 0.5)):
    def want(a, lengths=lengths, p=p, nesterov=nesterov, x=x, up=up):
        out, part = {}, np.zeros((len(lengths), p))
        for i, n in enumerate(lengths):
            g, b = a[f"g{i}"].astype(float) * up, a[f"b{i}"].astype(float)
            b1 = MOMENTUM * b + g if up else b
            d = g + MOMENTUM * b1 if nesterov else b1
            out |= {f"b{i}": within(b1, 8 * EPS * (abs(g) + abs(b)))
                    } | ({f"x{i}": near(d, 8 * EPS * (abs(g) + abs(b)), x)} if up else {f"x{i}": exact(a[f"x{i}"])})
            for block in range(0, n if up else 0, 32):
                part[i, block // 32 % p] += (d[block:block + 32] ** 2).sum()
        return out | {"part": within(part, 100 * EPS * (part + 1))}

    kernel_row(
        "optimizers", "muon_momentum", f"{u}_{x}", {
            **table("g", [normal(u, i, n) for i, n in enumerate(lengths)]),
            **table("b", [normal("f32", 9 + i, n) for i, n in enumerate(lengths)]), **table(
                "x", [normal(x, 20 + i, n) for i, n in enumerate(lengths)]), "length": numbers(lengths), "part": poison(
                "f32", len(lengths), p), "factor": numbers([up], "f32"), "times": 1.0, "momentum": MOMENTUM
        }, want, U=u, X=x, **{"o.nesterov": nesterov, "o.control": True, "o.B": 32})

for x, lengths in (("f32", LENGTHS[0]), ("bf16", LENGTHS[1]), ("f16", LENGTHS[3])):
    tensors = [normal(x, i, n) for i, n in enumerate(lengths)]
    part = np.array([[(wide(v).astype(float) ** 2).sum(), 0.25] for v in tensors], np.float32).reshape(-1, 2)
    kernel_row(
        "optimizers", "muon_normalise", x,
        {**table("x", tensors), "length": numbers(lengths), "part": Arr("f32", part)}, lambda a, n=len(lengths), x=x: {
             f"x{i}": near((y := a[f"x{i}"].astype(float) /
                            (np.sqrt(a["part"][i].astype(float).sum()) + 1e-7)), 16 * EPS * abs(y), x)
             for i in range(n)
         }, X=x, B=32)
    w = [normal("f32", 9 + i, n) for i, n in enumerate(lengths)]
    kernel_row(
        "optimizers", "muon_apply", x, {
            **table("w", w), **table("x", tensors), "master": NO_TABLE, "length": numbers(lengths), "scale": numbers(
                np.arange(len(lengths)) + 0.5, "f32"), "factor": NO_FACTOR, "rate": RATE, "decay": DECAY, "seed": 0
        }, lambda a, n=len(lengths): {
            f"w{i}": within(a[f"w{i}"].astype(float) * (1 - RATE * DECAY) - RATE *
                            (i + 0.5) * a[f"x{i}"].astype(float), 8 * EPS * (abs(a[f"w{i}"]) + 4 * abs(a[f"x{i}"])))
            for i in range(n)
        }, X=x, **{"o.B": 32})

for t, m, n, right in (("f32", 33, 20, False), ("bf16", 20, 33, True), ("f16", 1, 1, False), ("f32", 0, 5, False)):
    k = n if right else m
    kernel_row(
        "optimizers", "newton_schulz", f"{t}_{m}x{n}",
        {"A": small(t, 1, k, k), "X": small(t, 2, m, n), "Y": poison(t, m, n), "alpha": 0.5, "beta": 3.0},
        lambda a, t=t, right=right: {
            "Y": exact(
                quantize(
                    0.5 * (a["X"].astype(float) @ a["A"].astype(float)
                           if right else a["A"].astype(float) @ a["X"].astype(float)) + 3 * a["X"].astype(float), t))
        }, T=t, RIGHT=right, BM=16, BN=16, BK=16)
