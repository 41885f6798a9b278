"""std.kernels.attention against NumPy in f64: forward, and gradients by the closed form, which is itself checked
against differences."""
import itertools

from kernel_library import Arr, EPS, f64, kernel_row, np, poison, within
from values import eps, normal, philox, rng, spacing, store, wide, zeros


def expanded(x, heads):
    return np.repeat(x, heads // x.shape[1], 1)


def masked(q, k, scale, o):
    """Scores with the options, and the derivative of the cap."""
    s = q @ k.transpose(0, 1, 3, 2) * scale
    slope_of_cap = np.ones_like(s)
    if o.get("cap"):
        t = np.tanh(s / o["cap"])
        s, slope_of_cap = o["cap"] * t, 1 - t * t
    i = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2] + o.get("ahead", 0)
    j = np.arange(k.shape[2])
    if o.get("slope") is not None:
        s = s - np.abs(i - j) * o["slope"][:, None, None]
    if o.get("mask") is not None:
        s = s + o["mask"]
    seen = np.ones(s.shape[2:], bool)
    if o.get("causal"):
        seen &= j <= i
    if o.get("left") is not None:
        seen &= j >= i - o["left"]
    return np.where(seen, s, -np.inf), slope_of_cap


def thinned(p, o):
    """Probabilities with dropout: row i of all has the rows from o["rows"] on, or of sequences its own."""
    if not o.get("drop"):
        return p
    n = np.arange(p.shape[3])
    rows = o["rows"] if "rows" in o else np.arange(np.prod(p.shape[:3])).reshape(p.shape[:3])
    at = (rows[..., None].astype(np.uint64) << np.uint64(29)) + (n // 16 * 4 + n // 2 % 4).astype(np.uint64)
    word = np.choose(n // 8 % 2 * 2 + n % 2, philox(SEED, at)) if p.size else np.zeros(p.shape, np.uint64)
    stays = (word >> np.uint64(8)).astype(float) >= o["drop"] * 2.0**24
    return np.where(stays, p / (1 - o["drop"]) if o["drop"] < 1 else 0, 0)


SEED = 0x123456789ABCDEF0


def forward(q, k, v, scale, o):
    """O, lse, probabilities, and the derivative of the cap: [B, H, M, D] of f64."""
    k, v = expanded(k, q.shape[1]), expanded(v, q.shape[1])
    s, of_cap = masked(q, k, scale, o)
    most = s.max(-1, keepdims=True) if s.shape[-1] else np.full(s.shape[:-1] + (1,), -np.inf)
    sink = o["sink"][:, None, None] if o.get("sink") is not None else -np.inf
    most = np.maximum(most, sink)
    most = np.where(np.isfinite(most), most, 0)
    p = np.exp(s - most)
    total = p.sum(-1, keepdims=True) + np.exp(sink - most)
    with np.errstate(divide="ignore"):
        lse = (most + np.log(total))[..., 0]
    p = p / np.where(total == 0, 1, total)
    return thinned(p, o) @ v, lse, p, of_cap


def backward(q, k, v, g, scale, o):
    """dQ, dK, dV, dsink."""
    out, lse, p, of_cap = forward(q, k, v, scale, o)
    heads, group = q.shape[1], q.shape[1] // k.shape[1]
    delta = (out * g).sum(-1, keepdims=True)
    thin = thinned(np.ones_like(p), o)
    ds = p * (thin * (g @ expanded(v, heads).transpose(0, 1, 3, 2)) - delta) * of_cap * scale
    by_group = lambda x: x.reshape(x.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)
    dsink = -(np.exp(o["sink"][:, None] - lse) * delta[..., 0]).sum((0, 2)) if o.get("sink") is not None else None
    dv = by_group((p * thin).transpose(0, 1, 3, 2) @ g)
    return ds @ expanded(k, heads), by_group(ds.transpose(0, 1, 3, 2) @ q), dv, dsink


def differences_agree():
    """The closed form against central differences of the loss sum(O g), with every option."""
    gen = rng(1)
    q, k, v, g = (gen.standard_normal(shape) for shape in ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4), (1, 2, 3, 4)))
    o = {"causal": True, "left": 3, "cap": 2.0, "slope": np.array([0.5, 0.1]), "sink": np.array([0.3, -1.0]),
         "drop": 0.25, "ahead": 1}
    for x, want in zip((q, k, v, o["sink"]), backward(q, k, v, g, 0.7, o)):
        for at in itertools.product(*map(range, x.shape)):
            kept, step, sides = x[at], 1e-5, []
            for x[at] in (kept + step, kept - step):
                sides.append((forward(q, k, v, 0.7, o)[0] * g).sum())
            x[at] = kept
            assert abs((sides[0] - sides[1]) / (2 * step) - want[at]) < 1e-8, at


differences_agree()


def slack(x, t, n):
    """Of a result whose largest value is about max |x|: probabilities and scores rounded, n terms in a sum."""
    most = np.abs(x).max(initial=1e-3)
    return (4 * eps(t) + (n + 40) * 4 * EPS) * most + spacing(np.abs(x), t)


SHAPES = [  # type, B, H, HK, M, N, D, tile M, tile N, options
    ("f16", 1, 2, 1, 70, 70, 32, 64, 32, {"causal": True}), ("f16", 2, 4, 2, 33, 50, 20, 32, 32, {}),
    ("bf16", 1, 2, 2, 1, 45, 16, 16, 16, {"causal": True}),
    ("f32", 1, 2, 1, 40, 33, 24, 32, 16, {"causal": True, "left": 7}),
    ("f16", 1, 3, 1, 50, 60, 16, 16, 32, {"left": 12, "alibi": True}),
    ("f32", 1, 2, 1, 20, 37, 16, 16, 16, {"cap": 2.0, "causal": True}),
    ("bf16", 1, 2, 1, 35, 35, 16, 16, 16, {"sinks": True, "causal": True, "left": 9}),
    ("f32", 1, 4, 1, 17, 21, 8, 16, 16, {"sinks": True, "alibi": True, "cap": 3.0, "causal": True}),
    ("f16", 1, 1, 1, 3, 1, 1, 16, 16, {}), ("f32", 1, 1, 1, 5, 0, 8, 16, 16, {}),
    ("f16", 1, 2, 1, 33, 70, 128, 128, 64, {}), ("bf16", 1, 2, 1, 20, 33, (24, 16), 16, 16, {"causal": True}),
    # one query, which CPUs multiply by rows
    ("f32", 2, 4, 2, 1, 37, 24, 16, 16, {"causal": True}), ("f32", 1, 1, 1, 1, 0, 8, 16, 16, {}),
    ("f16", 1, 4, 1, 1, 70, 33, 16, 32, {"sinks": True, "alibi": True, "cap": 3.0, "causal": True, "left": 12}),
    ("f32", 1, 2, 1, 1, 65, (128, 64), 64, 64, {}),
    # dropout, and queries elsewhere among the keys
    ("f16", 2, 2, 1, 37, 50, 16, 16, 32, {"drop": 0.25}),
    ("f32", 1, 2, 2, 19, 21, 8, 16, 16, {"drop": 0.9, "causal": True, "ahead": -2}),
    ("bf16", 1, 2, 1, 33, 18, 32, 32, 16, {"drop": 0.1, "sinks": True, "causal": True, "ahead": 20}),
    ("f32", 1, 1, 1, 1, 40, 8, 16, 16, {"drop": 0.5}), ("f16", 1, 1, 1, 5, 3, 16, 16, 16, {"drop": 1.0}),
    ("f32", 1, 2, 1, 30, 20, 8, 16, 16, {"drop": 0.0, "causal": True, "left": 6, "ahead": 12}),
]


def options_of(o, h):
    """Arrays and constants of a row, and what NumPy takes."""
    slope = Arr("f32", (2.0**-np.arange(1, h + 1)).astype(np.float32)) if o.get("alibi") else Arr(
        "f32", np.zeros(0, np.float32))
    sink = Arr("f32",
               np.linspace(-1, 1, h).astype(np.float32)) if o.get("sinks") else Arr("f32", np.zeros(0, np.float32))
    consts = {"o.causal": "causal" in o, "o.window": "left" in o, "o.alibi": "alibi" in o, "o.softcap": "cap" in o,
              "o.sinks": "sinks" in o, "o.dropout": "drop" in o}
    numpy = {
        **o, "slope": slope.store.astype(float) if o.get("alibi") else None,
        "sink": sink.store.astype(float) if o.get("sinks") else None
    }
    numbers = {"s.cap": o.get("cap", 1.0), "s.left": o.get("left", 0), "s.drop": o.get("drop", 0.0), "s.seed": SEED,
               "s.ahead": o.get("ahead", 0)}
    return {"slope": slope, "sink": sink}, numbers, consts, numpy


def tiles(m, n, **given):
    return {"t.BM": m, "t.BN": n, **{f"t.{k}": v for k, v in given.items()}}



for t, b, h, hk, m, n, d, bm, bn, o in SHAPES:
    arrays, numbers, consts, numpy = options_of(o, h)
    d, dv = d if isinstance(d, tuple) else (d, d)
    name = f"{t}_{b}x{h}_{hk}_{m}x{n}x{d}" + "".join("_" + k for k in o)
    q, k, v, g = (normal(t, s, b, *x) for s, x in enumerate(((h, m, d), (hk, n, d), (hk, n, dv), (h, m, dv))))
    scale = float(np.float32(d**-0.5))

    def want(a, t=t, n=n, scale=scale, numpy=numpy):
        out, lse, _, _ = forward(*f64(a, "Q", "K", "V"), scale, numpy)
        return {
            "O": within(out, slack(out, t, n)),
            "lse": within(lse, (n + 40) * 8 * EPS * np.abs(np.where(np.isfinite(lse), lse, 0)).max(initial=1))
        }

    kernel_row(
        "attention", "attention", name, {
            "Q": q, "K": k, "V": v, "O": poison(t, b, h, m, dv), "lse": poison("f32", b, h, m),
            **arrays, "s.scale": scale, **numbers
        }, want, T=t, **tiles(bm, bn, D=d, DV=dv), **consts)
    out, lse, _, _ = forward(*(wide(x).astype(float) for x in (q, k, v)), scale, numpy)
    o_, l_ = Arr(t, store(out, t)), Arr("f32", lse.astype(np.float32))

    def grads(a, t=t, n=n, m=m, scale=scale, numpy=numpy):
        dq, dk, dv, _ = backward(*f64(a, "Q", "K", "V", "dO"), scale, numpy)
        far = 3 * np.sqrt(dv.shape[-1])
        return {"dQ": within(dq, far * slack(dq, t, n))}, {"dK": within(dk, far * slack(dk, t, m)),
                                                           "dV": within(dv, far * slack(dv, t, m))}

    def sums(a, sinks="sinks" in o):
        out, g, lse = f64(a, "O", "dO", "lse")
        delta, bound = (out * g).sum(-1), 64 * EPS * np.abs(out * g).sum(-1)
        both = {"delta": within(delta, bound)}
        if sinks:
            p = np.exp(a["sink"].astype(float)[:, None] - lse)
            both["dsink"] = within(-(p * delta).sum((0, 2)), (p * (bound + 64 * EPS * np.abs(delta))).sum((0, 2)))
        return both
    if n:
        delta = Arr("f32", (wide(o_).astype(float) * wide(g)).sum(-1).astype(np.float32))
        both = {"Q": q, "K": k, "V": v, "dO": g, "lse": l_, "delta": delta, "slope": arrays["slope"], "s.scale": scale,
                **numbers}
        consts = {**consts, **tiles(min(bm, 32), min(bn, 32), D=d, DV=dv)}
        kernel_row(
            "attention", "attention_backward_delta", name, {
                "O": o_, "dO": g, "lse": l_, "delta": poison("f32", b, h, m), "sink": arrays["sink"], "dsink": zeros(
                    "f32", h if "sinks" in o else 0)
            }, sums, T=t, DV=dv, BM=min(bm, 32), **{"o.sinks": "sinks" in o})
        kernel_row("attention", "attention_backward_dq", name, {**both, "dQ": poison(t, b, h, m, d)},
                   lambda a, grads=grads: grads(a)[0], T=t, **consts)
        kernel_row("attention", "attention_backward_dkdv", name,
                   {**both, "dK": poison(t, b, hk, n, d), "dV": poison(t, b, hk, n, dv)},
                   lambda a, grads=grads: grads(a)[1], T=t, **consts)

# ---- heads of any number of elements, and a mask ---------------------------------------------------------------------
for t, b, h, hk, m, n, d, bm, bn, o in SHAPES:
    if "alibi" in o or "sinks" in o or m == 1 or not n:
        continue
    arrays, numbers, consts, numpy = options_of(o, h)
    d, dv = d if isinstance(d, tuple) else (d, d)
    name = f"{t}_{b}x{h}_{hk}_{m}x{n}x{d}" + "".join("_" + k for k in o)
    q, k, v, g = (normal(t, s, b, *x) for s, x in enumerate(((h, m, d), (hk, n, d), (hk, n, dv), (h, m, dv))))
    scale, there = float(np.float32(d**-0.5)), "causal" not in o
    mask = normal(t, 9, b, h, m, n) if there else Arr(t, np.zeros((0, h, m, n), q.store.dtype))
    numpy = {**numpy, "mask": wide(mask).astype(float) if there else None}
    consts = {**consts, "o.mask": there or "drop" in o}  # libtilekernels has both, the mask with no elements
    out, lse, _, _ = forward(*(wide(x).astype(float) for x in (q, k, v)), scale, numpy)
    o_, l_ = Arr(t, store(out, t)), Arr("f32", lse.astype(np.float32))
    delta = Arr("f32", (wide(o_).astype(float) * wide(g)).sum(-1).astype(np.float32))
    size = {"D": 32 if d <= 32 else d, "DV": 32 if dv <= 32 else dv}
    kept = t != "f16"  # lse every other time

    def want(a, t=t, n=n, scale=scale, numpy=numpy, kept=kept):
        out, lse, _, _ = forward(*f64(a, "Q", "K", "V"), scale, numpy)
        sums = {"lse": within(lse, (n + 40) * 8 * EPS * np.abs(np.where(np.isfinite(lse), lse, 0)).max(initial=1))}
        return {"O": within(out, slack(out, t, n)), **(sums if kept else {})}

    def grads(a, which, t=t, n=n, m=m, scale=scale, numpy=numpy):
        of = dict(zip(("dQ", "dK", "dV"), backward(*f64(a, "Q", "K", "V", "dO"), scale, numpy)))
        far = 3 * np.sqrt(of["dV"].shape[-1])
        return {x: within(of[x], far * slack(of[x], t, max(m, n))) for x in which}
    kernel_row(
        "attention", "attention_any", name, {
            "Q": q, "K": k, "V": v, "O": poison(t, b, h, m, dv), "mask": mask,
            "lse": poison("f32", *((b, h, m) if kept else (0, 0, 0))),
            **arrays, "s.scale": scale, **numbers
        }, want, T=t, **tiles(bm, bn, **size), **consts)
    kernel_row("attention", "attention_any_backward_delta", name, {"O": o_, "dO": g, "delta": poison("f32", b, h, m)},
               lambda a: {"delta": within((f64(a, "O", "dO")[0] * f64(a, "O", "dO")[1]).sum(-1),
                                          64 * EPS * np.abs(f64(a, "O", "dO")[0] * f64(a, "O", "dO")[1]).sum(-1))},
               T=t, DV=size["DV"], BM=16)
    both = {"Q": q, "K": k, "V": v, "dO": g, "mask": mask, "lse": l_, "delta": delta, "slope": arrays["slope"],
            "s.scale": scale, **numbers}
    small = {**consts, **tiles(min(bm, 32), min(bn, 32), **size)}
    kernel_row("attention", "attention_any_backward_dq", name, {**both, "dQ": poison(t, b, h, m, d)},
               lambda a, grads=grads: grads(a, ("dQ",)), T=t, **small)
    kernel_row("attention", "attention_any_backward_dkdv", name,
               {**both, "dK": poison(t, b, hk, n, d), "dV": poison(t, b, hk, n, dv)},
               lambda a, grads=grads: grads(a, ("dK", "dV")), T=t, **small)
    kernel_row("attention", "attention_any_backward", name,
               {**both, "dQ": poison("f32", b, h, m, d), "dK": poison(t, b, hk, n, d), "dV": poison(t, b, hk, n, dv)},
               lambda a, grads=grads: grads(a, ("dQ", "dK", "dV")), T=t, **small)

# ---- sequences of different lengths ----------------------------------------------------------------------------------
for t, from_q, from_k, h, hk, d, o in (
        ("f16", [0, 17, 17, 50], [0, 30, 35, 68], 2, 1, 20, {"causal": True}),
        ("f32", [0, 1], [0, 1], 1, 1, 8, {}),
        ("bf16", [0, 40, 41], [0, 40, 73], 4, 2, 16, {"causal": True, "left": 5, "alibi": True, "sinks": True}),
        ("f16", [0, 17, 17, 35], [0, 30, 35, 60], 2, 1, 16, {"causal": True, "drop": 0.25}),
        ("f32", [0, 5, 40], [0, 37, 38], 2, 2, 8, {"drop": 0.5})):
    arrays, numbers, consts, numpy = options_of(o, h)
    tq, tk = from_q[-1], from_k[-1]

    parts = list(zip(zip(from_q, from_q[1:]), zip(from_k, from_k[1:])))
    heads = lambda x: x.transpose(1, 0, 2)[None]
    rows_of = lambda q, i, j, numpy: {**numpy, "rows": np.arange(q.shape[1] * len(q)).reshape(1, -1, len(q))[..., i:j]}

    def whole(q, k, v, parts=parts, numpy=numpy):
        """O and lse of all sequences."""
        out, lse = np.zeros(q.shape[:2] + v.shape[2:]), np.zeros((q.shape[1], len(q)))
        for (i, j), (x, y) in parts:
            r, l, _, _ = forward(heads(q[i:j]), heads(k[x:y]), heads(v[x:y]), 0.25, rows_of(q, i, j, numpy))
            out[i:j], lse[:, i:j] = r[0].transpose(1, 0, 2), l[0]
        return out, lse

    def grads(a, t=t, parts=parts, numpy=numpy, whole=whole):
        q, k, v, g = f64(a, "Q", "K", "V", "dO")
        dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
        for (i, j), (x, y) in parts:
            if j > i and y > x:
                each = backward(heads(q[i:j]), heads(k[x:y]), heads(v[x:y]), heads(g[i:j]), 0.25,
                                rows_of(q, i, j, numpy))
                dq[i:j], dk[x:y], dv[x:y] = (w[0].transpose(1, 0, 2) for w in each[:3])
        far = 3 * np.sqrt(v.shape[-1])
        return {n: within(w, far * slack(w, t, 40)) for n, w in (("dQ", dq), ("dK", dk), ("dV", dv))}

    def want(a, t=t, whole=whole):
        out, lse = whole(*f64(a, "Q", "K", "V"))
        return {"O": within(out, slack(out, t, 40)), "lse": within(lse, 400 * EPS * np.abs(lse).max())}
    q, k, v, g = normal(t, 1, tq, h, d), normal(t, 2, tk, hk, d), normal(t, 3, tk, hk, d), normal(t, 4, tq, h, d)
    starts = {"from_q": Arr("i32", np.array(from_q, np.int32)), "from_k": Arr("i32", np.array(from_k, np.int32))}
    kernel_row(
        "attention", "attention_varlen", f"{t}_{tq}_{tk}", {
            "Q": q, "K": k, "V": v, "O": poison(t, tq, h, d), "lse": poison("f32", h, tq), **starts,
            **arrays, "s.longest": int(np.diff(from_q).max()), "s.scale": 0.25, **numbers
        }, want, T=t, **tiles(32, 16, D=d), **consts)
    o_, l_ = whole(*(wide(x).astype(float) for x in (q, k, v)))
    o_, l_ = Arr(t, store(o_, t)), Arr("f32", l_.astype(np.float32))
    delta = Arr("f32", (wide(o_).astype(float) * wide(g)).sum(-1).T.astype(np.float32).copy())
    both = {"Q": q, "K": k, "V": v, "dO": g, "lse": l_, "delta": delta, **starts, "slope": arrays["slope"],
            "s.scale": 0.25, **numbers}
    for of, longest, outputs in (("dq", from_q, {"dQ": poison(t, tq, h, d)}),
                                 ("dkdv", from_k, {"dK": poison(t, tk, hk, d), "dV": poison(t, tk, hk, d)})):
        kernel_row(
            "attention", "attention_varlen_backward_" + of, f"{t}_{tq}_{tk}",
            {**both, **outputs, "s.longest": int(np.diff(longest).max())},
            lambda a, grads=grads, outputs=outputs: {n: w
                                                     for n, w in grads(a).items() if n in outputs}, T=t,
            **tiles(16, 16, D=d), **consts)

# ---- new queries behind keys in pages --------------------------------------------------------------------------------
for t, u, from_q, length, h, hk, d, page, o in (
        ("f16", "f16", [0, 17, 17, 20], [40, 9, 3], 2, 1, 16, 8, {"causal": True}),
        ("f32", "f32", [0, 1, 6], [1, 37], 2, 2, 8, 4, {"causal": True, "left": 6}),
        ("bf16", "f8e4m3", [0, 33], [50], 4, 2, 16, 16, {"causal": True, "cap": 4.0, "sinks": True})):
    arrays, numbers, consts, numpy = options_of(o, h)
    counts = [-(-n // page) for n in length]
    order, table, at = rng(5).permutation(sum(counts) + 1), np.zeros((len(length), max(counts)), np.int32), 0
    for b, c in enumerate(counts):
        table[b, :c], at = order[at:at + c], at + c
    size = (sum(counts) + 1) * page

    def want(a, t=t, from_q=from_q, length=length, page=page, numpy=numpy):
        q, keys, values = f64(a, "Q", "K", "V")
        out, lse = np.zeros(q.shape), np.zeros((q.shape[1], len(q)))
        for b, (i, j) in enumerate(zip(from_q, from_q[1:])):
            n = np.arange(length[b])
            slots = a["pages"][b][n // page] * page + n % page
            r, l, _, _ = forward(*(x.transpose(1, 0, 2)[None] for x in (q[i:j], keys[slots], values[slots])), 0.25,
                                 numpy)
            out[i:j], lse[:, i:j] = r[0].transpose(1, 0, 2), l[0]
        return {"O": within(out, slack(out, t, 50)), "lse": within(lse, 800 * EPS * (1 + np.abs(lse).max()))}
    cache = [normal(u, s, size, hk, d) for s in (2, 3)]
    cache[1].store[order[-1] * page:(order[-1] + 1) * page] = poison(u, 1).store  # a page that is nobody's
    kernel_row(
        "attention", "attention_paged", f"{t}_{u}_{from_q[-1]}", {
            "Q": normal(t, 1, from_q[-1], h, d), "K": cache[0], "V": cache[1], "pages": Arr("i32", table),
            "length": Arr("i32", np.array(length, np.int32)), "from_q": Arr("i32", np.array(
                from_q, np.int32)), "O": poison(t, from_q[-1], h, d), "lse": poison("f32", h, from_q[-1]),
            **arrays, "s.page": page, "s.longest": int(np.diff(from_q).max()), "s.scale": 0.25, **numbers
        }, want, T=t, U=u, **tiles(16, 16, D=d), **consts)

# ---- f8 --------------------------------------------------------------------------------------------------------------
for t, p, h, hk, m, n, d, causal in (
        ("f8e4m3", "f8e4m3", 2, 1, 33, 40, 32, True),
        ("f8e5m2", "f16", 1, 1, 20, 35, 16, False),
        ("f8e4m3", "f16", 2, 2, 1, 17, 16, True)):
    s = [Arr("f32", (0.5 + rng(7 + i).random((1, x))).astype(np.float32)) for i, x in enumerate((h, hk, hk))]

    def want(a, p=p, n=n, d=d, causal=causal):
        q, k, v = (x * a[y].astype(float)[..., None, None] for x, y in zip(f64(a, "Q", "K", "V"), ("sq", "sk", "sv")))
        out, lse, _, _ = forward(q, k, v, d**-0.5, {"causal": causal})
        return {
            "O": within(out, 2 * eps(p) * np.abs(v).max() + slack(out, "bf16", n)),
            "lse": within(lse, 400 * EPS * np.abs(lse).max(initial=1))
        }

    kernel_row(
        "attention", "attention_f8", f"{t}_{p}_{m}x{n}", {
            "Q": normal(t, 1, 1, h, m, d), "K": normal(t, 2, 1, hk, n, d), "V": normal(t, 3, 1, hk, n, d),
            "O": poison("bf16", 1, h, m, d), "lse": poison("f32", 1, h, m), "sq": s[0], "sk": s[1], "sv": s[2],
            "s.scale": float(np.float32(d**-0.5))
        }, want, T=t, P=p, **tiles(32, 32, D=d), **{"o.causal": causal})
