"""std.kernels.decode and std.kernels.recurrent against NumPy in f64."""
from kernel_library import Arr, EPS, bytes_as, exact, f64, kernel_row, near, np, poison, within
from values import eps, normal, quantize, rng, spacing, wide

NONE = Arr("f32", np.zeros(0, np.float32))


# ---- one query against a cache of pages ------------------------------------------------------------------------------
def paged(length, page, seed):
    """Pages of sequences in disorder: a table, and the number of slots."""
    counts = [-(-n // page) for n in length]
    order = rng(seed).permutation(sum(counts) + 2)
    table = np.zeros((len(length), max(counts + [1])), np.int32)
    at = 0
    for b, c in enumerate(counts):
        table[b, :c], at = order[at:at + c], at + c
    return Arr("i32", table), (sum(counts) + 2) * page


def part(n, s, parts, bn):
    share = -(-(-(-n // bn)) // parts) * bn
    return min(s * share, n), min(min(s * share, n) + share, n)


def decode(q, keys, values, bounds, scale, left=None, cap=None):
    """O and lse of one head over keys[bounds]."""
    first, end = bounds
    if left is not None:
        first = max(first, len(keys) - 1 - left)
    if first >= end:
        return np.zeros(values.shape[1]), -np.inf
    s = keys[first:end] @ q * scale
    s = cap * np.tanh(s / cap) if cap else s
    p = np.exp(s - s.max())
    return p @ values[first:end] / p.sum(), s.max() + np.log(p.sum())


def slots_of(table, page, n):
    j = np.arange(n)
    return table[j // page] * page + j % page


for t, u, h, hk, d, page, parts, length, o in (
        ("f16", "f16", 4, 2, 20, 8, 3, [37, 1, 0, 64], {}),
        ("bf16", "bf16", 3, 1, 16, 16, 2, [50, 33], {"left": 9}),
        ("f32", "f32", 2, 2, 16, 4, 1, [21], {"cap": 2.0}),
        ("f16", "f8e4m3", 8, 1, 32, 16, 4, [70], {})):
    table, slots = paged(length, page, 1)

    def want(a, t=t, h=h, hk=hk, page=page, parts=parts, length=length, o=o, d=d):
        q, keys, values = f64(a, "q", "K", "V")
        out, lse = np.zeros((len(length), h, parts, d)), np.zeros((len(length), h, parts))
        for b, n in enumerate(length):
            at = slots_of(a["pages"][b], page, n)
            for i in range(h):
                for s in range(parts):
                    out[b, i, s], lse[b, i, s] = decode(q[b, i], keys[at, i // (h // hk)], values[at, i // (h // hk)],
                                                        part(n, s, parts, 16), 0.25, **o)
        return {"part_o": within(out, 8 * eps(t) * np.abs(values).max() + 1e-6), "part_lse": within(lse, 1e-5)}

    kernel_row(
        "decode", "decode_paged", f"{t}_{u}_{h}_{hk}", {
            "q": normal(t, 2, len(length), h, d), "K": normal(u, 3, slots, hk, d), "V": normal(
                u, 4, slots, hk, d), "pages": table, "length": Arr("i32", np.array(length, np.int32)), "part_o": poison(
                    "f32", len(length), h, parts, d), "part_lse": poison("f32", len(length), h, parts), "s.scale": 0.25,
            "s.cap": o.get("cap", 1.0), "s.left": o.get("left", 0)
        }, want, T=t, U=u, D=d, PAGE=page, BN=16, **{"o.window": "left" in o, "o.softcap": "cap" in o})

for t, h, b, parts, d, sinks in (("f16", 3, 2, 5, 20, False), ("f32", 2, 1, 1, 1, True), ("bf16", 1, 2, 7, 33, True)):
    lse = rng(5).standard_normal((b, h, parts)).astype(np.float32)
    lse[0, 0, :] = -np.inf
    lse[-1, -1, 0] = -np.inf
    sink = Arr("f32", np.linspace(-1, 1, h).astype(np.float32)) if sinks else NONE

    def want(a, t=t, sinks=sinks):
        o, l = f64(a, "part_o", "part_lse")
        sink = a["sink"].astype(float)[:, None] if sinks else -np.inf
        top = np.maximum(l.max(-1), sink[..., 0] if sinks else -np.inf)
        top = np.where(np.isfinite(top), top, 0)[..., None]
        w = np.exp(l - top)
        total = w.sum(-1) + (np.exp(sink - top)[..., 0] if sinks else 0)
        with np.errstate(divide="ignore"):
            return {
                "O": near((o * w[..., None]).sum(2) / np.where(total == 0, 1, total)[..., None], 100 * EPS, t),
                "lse": within(top[..., 0] + np.log(total), 1e-5)
            }

    kernel_row(
        "decode", "decode_merge", t, {
            "part_o": normal("f32", 6, b, h, parts, d), "part_lse": Arr("f32", lse), "sink": sink, "O": poison(
                t, b, h, d), "lse": poison("f32", b, h)
        }, want, O_=t, D=d, SINKS=sinks, BS=8)

for t, h, dv, dr, page, parts, length in (("bf16", 20, 64, 16, 8, 2, [37, 0]), ("f16", 3, 32, 8, 4, 1, [9]),
                                          ("f32", 16, 32, 16, 16, 3, [50])):
    table, slots = paged(length, page, 7)

    def want(a, t=t, h=h, dv=dv, page=page, parts=parts, length=length):
        q, cache = f64(a, "q", "cache")
        out, lse = np.zeros((len(length), h, parts, dv)), np.zeros((len(length), h, parts))
        for b, n in enumerate(length):
            keys = cache[slots_of(a["pages"][b], page, n)]
            for i in range(h):
                for s in range(parts):
                    out[b, i, s], lse[b, i, s] = decode(q[b, i], keys, keys[:, :dv], part(n, s, parts, 16), 0.125)
        return {"part_o": within(out, 8 * eps(t) * np.abs(cache).max() + 1e-6), "part_lse": within(lse, 1e-5)}

    kernel_row(
        "decode", "decode_mla", f"{t}_{h}", {
            "q": normal(t, 8, len(length), h, dv + dr), "cache": normal(t, 9, slots, dv + dr),
            "pages": table, "length": Arr("i32", np.array(length, np.int32)), "part_o": poison(
                "f32", len(length), h, parts, dv), "part_lse": poison("f32", len(length), h, parts), "scale": 0.125
        }, want, T=t, DV=dv, DR=dr, PAGE=page, BN=16, BH=16, BV=32)


def written(a, slot, u):
    out = {}
    for x, y in (("K", "K_cache"), ("V", "V_cache")):
        c = a[y].astype(float).copy()
        for i, s in enumerate(slot):
            if s >= 0:
                c[s] = a[x][i]
        out[y] = exact(quantize(c, u))
    return out


for t, u, n, hk, d, slot in (
        ("f16", "f16", 3, 2, 20, [5, -1, 2]), ("bf16", "f8e4m3", 1, 9, 8, [0]), ("f32", "f16", 0, 1, 8, [])):
    kernel_row(
        "decode", "cache_write", f"{t}_{u}", {
            "K": normal(t, 1, n, hk, d), "V": normal(t, 2, n, hk, d), "slot": Arr("i32", np.array(slot, np.int32)),
            "K_cache": normal(u, 3, 8, hk, d), "V_cache": normal(u, 4, 8, hk, d)
        }, lambda a, slot=slot, u=u: written(a, slot, u), T=t, U=u, D=d)


# ---- states ----------------------------------------------------------------------------------------------------------
def scan(q, k, v, g, start, beta=None):
    """Token by token: outputs [L, DV] and the state [D, DV]. beta: the delta rule."""
    S, out = start.copy(), np.zeros(v.shape)
    for t in range(len(q)):
        S = S * np.exp(g[t])
        u = v[t] if beta is None else beta[t] * (v[t] - S.T @ k[t])
        S = S + np.outer(k[t], u)
        out[t] = q[t] @ S
    return out, S


for kernel, C in (("linear_attention", {"C": 16}), ("gated_delta_rule", {}), ("gated_delta_rule_chunks", {"C": 16})):
    delta = kernel != "linear_attention"
    for t, b, h, hk, length, d, dv, gated, start in (
            ("f16", 1, 2, 1, 37, 16, 20, True, True),
            ("f32", 2, 2, 2, 33, 8, 33, False, False),
            ("bf16", 1, 1, 1, 1, 16, 16, True, False),
            ("f32", 1, 3, 1, 16, 20, 5, True, True),
            ("f32", 1, 1, 1, 0, 8, 8, False, True)):
        keys = rng(2).standard_normal((b, hk, length, d))
        keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
        decay = -rng(4).random((b, h, length) if gated else (0, 0, 0)) / 2
        args = {
            "q": normal(t, 1, b, h, length, d), "k": bytes_as(t, keys), "v": normal(t, 3, b, h, length, dv),
            "g": bytes_as("f32", decay), "start": normal("f32", 5, *((b, h, d, dv) if start else (0, 0, d, 0))),
            "o": poison(t, b, h, length, dv), "end": poison("f32", b, h, d, dv), "scale": 0.5
        }
        if delta:
            args = {
                **{n: args[n]
                   for n in ("q", "k", "v", "g")}, "beta": Arr("f32",
                                                               rng(6).random((b, h, length)).astype(np.float32)),
                **{n: args[n]
                   for n in ("start", "o", "end", "scale")}
            }

        def want(a, t=t, b=b, h=h, hk=hk, length=length, gated=gated, start=start, delta=delta, C=C):
            q, k, v = f64(a, "q", "k", "v")
            o, end = np.zeros(v.shape), np.zeros(a["end"].shape)
            for z in range(b):
                for i in range(h):
                    o[z, i], end[z, i] = scan(q[z, i], k[z, i // (h // hk)], v[z, i],
                                              a["g"][z, i].astype(float) if gated else np.zeros(length),
                                              a["start"][z, i].astype(float) if start else np.zeros(end.shape[2:]),
                                              a["beta"][z, i].astype(float) if delta else None)
            size = lambda x: np.abs(x).max(initial=1)
            each = 60 * EPS + (6 * eps(t) if C else 0)
            return {
                "o": within(o / 2,
                            each * size(o) * 4 + spacing(np.abs(o), t)), "end": within(end,
                                                                                       each * size(end) * 4)
            }

        kernel_row("recurrent", kernel, f"{t}_{b}x{h}_{hk}x{length}x{d}x{dv}", args, want, T=t, D=d, GATED=gated,
                   START=start, BV=16, **C)

for t, z, length, h, g, n, p, soft, start in (
        ("f16", 1, 37, 4, 2, 16, 20, True, True),
        ("f32", 2, 20, 2, 1, 8, 5, False, False),
        ("bf16", 1, 1, 1, 1, 16, 16, True, False),
        ("f32", 1, 16, 3, 3, 16, 33, False, True)):
    args = {
        "x": normal(t, 1, z, length, h, p), "dt": bytes_as(t,
                                                           rng(2).random((z, length, h)) - (0.5 if soft else 0)),
        "A": bytes_as("f32", -rng(3).random(h)), "Bt": normal(t, 4, z, length, g, n),
        "Ct": normal(t, 5, z, length, g, n), "D": normal("f32", 6, h), "bias": normal("f32", 7, h) if soft else NONE,
        "start": normal("f32", 8, *((z, h, n, p) if start else
                                    (0, 0, n, 0))), "y": poison(t, z, length, h, p), "end": poison("f32", z, h, n, p)
    }

    def want(a, t=t, z=z, h=h, g=g, soft=soft, start=start):
        x, dt, B, C = f64(a, "x", "dt", "Bt", "Ct")
        y, end = np.zeros(x.shape), np.zeros(a["end"].shape)
        for i in range(z):
            for j in range(h):
                step = np.log1p(np.exp(dt[i, :, j] + a["bias"][j])) if soft else dt[i, :, j]
                y[i, :, j], end[i, j] = scan(C[i, :, j // (h // g)], B[i, :, j // (h // g)], x[i, :, j] * step[:, None],
                                             step * a["A"][j],
                                             a["start"][i, j].astype(float) if start else np.zeros(end.shape[2:]))
                y[i, :, j] += a["D"][j] * x[i, :, j]
        size = lambda v: np.abs(v).max(initial=1)
        return {
            "y": within(y, (60 * EPS + 6 * eps(t)) * 8 * size(y) + spacing(np.abs(y), t)),
            "end": within(end, (60 * EPS + 6 * eps(t)) * 4 * size(end))
        }

    kernel_row("recurrent", "ssd", f"{t}_{z}x{length}x{h}_{g}x{n}x{p}", args, want, T=t, N=n, SOFTPLUS=soft,
               START=start, BP=16, C=16)

for t, z, k, length, n, soft, gate, start in (
        ("f16", 1, 5, 37, 8, True, True, True),
        ("f32", 2, 3, 20, 16, False, False, False),
        ("bf16", 1, 1, 1, 4, True, False, False),
        ("f32", 1, 6, 16, 5, False, True, True)):
    args = {
        "u": normal(t, 1, z, k, length), "dt": bytes_as(t,
                                                        rng(2).random((z, k, length)) - (0.5 if soft else 0)),
        "A": bytes_as("f32", -rng(3).random(
            (k, n)) * 2), "Bt": normal(t, 4, z, n, length), "Ct": normal(t, 5, z, n,
                                                                         length), "skip": normal("f32", 6, k),
        "bias": normal("f32", 7, k) if soft else NONE, "z": normal(t, 8, *((z, k, length) if gate else (0, 0, 0))),
        "start": normal("f32", 9, *((z, k, n) if start else
                                    (0, 0, n))), "y": poison(t, z, k, length), "end": poison("f32", z, k, n)
    }

    def want(a, t=t, soft=soft, gate=gate, start=start):
        u, dt, B, C = f64(a, "u", "dt", "Bt", "Ct")
        step = np.log1p(np.exp(dt + a["bias"][:, None])) if soft else dt
        h = a["start"].astype(float) if start else np.zeros(a["end"].shape)
        y = np.zeros(u.shape)
        for i in range(u.shape[2]):
            h = h * np.exp(step[:, :, i, None] * a["A"]) + (step * u)[:, :, i, None] * B[:, None, :, i]
            y[:, :, i] = (h * C[:, None, :, i]).sum(-1) + a["skip"] * u[:, :, i]
        if gate:
            y = y * a["z"] / (1 + np.exp(-a["z"].astype(float)))
        return {
            "y": near(y, 400 * EPS * np.abs(y).max(initial=1), t), "end": within(h,
                                                                                 200 * EPS * np.abs(h).max(initial=1))
        }

    kernel_row("recurrent", "selective_scan", f"{t}_{z}x{k}x{length}x{n}", args, want, T=t, N=n,
               **{"o.softplus": soft, "o.gate": gate, "o.start": start, "o.C": 16})
