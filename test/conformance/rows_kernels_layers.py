"""std.kernels.norms, layers, losses and sampling against NumPy in f64; gradients by closed forms that central
differences confirm here."""
from kernel_library import Arr, EPS, bytes_as, exact, f64, kernel_row, near, np, poison, rounded, within
from values import eps, ints, normal, philox, quantize, rng, small, spacing, store, wide, zeros

NONE, NONE2 = Arr("f32", np.zeros(0, np.float32)), np.zeros((0, 0))


def none(t, *shape):
    return Arr(t, store(np.zeros(shape), t))


def differ(loss, x, want, step=1e-5, bound=1e-7):
    """The derivative `want` of the sum of loss(x) against central differences."""
    for at in np.ndindex(x.shape):
        kept, sides = x[at], []
        for x[at] in (kept + step, kept - step):
            sides.append(loss(x).sum())
        x[at] = kept
        assert abs((sides[0] - sides[1]) / (2 * step) - want[at]) < bound, at


# ---- norms -----------------------------------------------------------------------------------------------------------
EPSILON = 1e-3


def normed(s, centred):
    mean = s.mean(1, keepdims=True) if centred else 0
    rstd = 1 / np.sqrt(((s - mean) ** 2).mean(1, keepdims=True) + EPSILON)
    return (s - mean) * rstd, mean, rstd


def norm_grads(dy, s, w, centred):
    """ds, and the terms of dw and of the bias."""
    n, _, rstd = normed(s, centred)
    g = dy * w
    ds = rstd * (g - n * (g * n).mean(1, keepdims=True) - (g.mean(1, keepdims=True) if centred else 0))
    return ds, dy * n, dy


for centred in (False, True):
    s_, w_, dy_ = (rng(i).standard_normal(shape) for i, shape in enumerate(((2, 5), (5,), (2, 5))))
    differ(lambda s: normed(s, centred)[0] * w_ * dy_, s_, norm_grads(dy_, s_, w_, centred)[0])

for centred in (True, False):
    name = "layer_norm" if centred else "rms_norm"
    for t, w, m, n, bn, residual, offset in (("f16", "f16", 5, 70, 128, True, 1.0),
                                             ("f32", "f32", 3, 33, 33, False, 0.0), ("bf16", "f32", 1, 1, 1, True, 0.0),
                                             ("f32", "f32", 2, 1000, 1024, False, 0.0)):
        bias = centred and w == t
        more = lambda: (m, n) if residual else (0, 0)
        args = {"x": normal(t, 1, m, n), "residual": normal(t, 2, *more()), "w": normal(w, 3, n)}
        args |= {"bias": normal(w, 4, n if bias else 0)} if centred else {}
        args |= {
            "y": poison(t, m, n), "total": poison(t, *more()),
            **({"mean": poison("f32", m)} if centred else {}), "rstd": poison("f32", m), "eps": EPSILON
        }
        args |= {} if centred else {"offset": offset}

        def want(a, t=t, centred=centred, residual=residual, bias=bias, offset=offset):
            s = f64(a, "x")[0] + (f64(a, "residual")[0] if residual else 0)
            normal_, mean, rstd = normed(s, centred)
            y = normal_ * (a["w"].astype(float) + (0 if centred else offset)) + (a["bias"].astype(float) if bias else 0)
            bound = (s.shape[1] + 20) * 2 * EPS * (1 + np.abs(normal_)) * np.abs(a["w"].astype(float) + 1).max()
            out = {"y": near(y, bound, t), "rstd": within(rstd[:, 0], (s.shape[1] + 20) * 2 * EPS * rstd[:, 0] * 4)}
            if residual:
                out["total"] = near(s, EPS * np.abs(s), t)
            if centred:
                out["mean"] = within(mean[:, 0], (s.shape[1] + 4) * 2 * EPS * np.abs(s).mean(1))
            return out

        kernel_row("norms", name, f"{t}_{m}x{n}", args, want, T=t, W=w, BN=bn, RESIDUAL=residual,
                   **({"BIAS": bias} if centred else {}))
        parts = 2
        s = wide(args["x"]).astype(float)
        _, mean, rstd = normed(s, centred)
        back = {
            "dy": normal(t, 5, m, n), "s": args["x"], "w": args["w"],
            **({"mean": Arr("f32", mean[:, 0].astype(np.float32))} if centred else {}), "rstd": Arr(
                "f32", rstd[:, 0].astype(np.float32)), "dtotal": normal(t, 6, *more()), "dx": poison(t, m, n),
            "part_w": poison("f32", parts, n),
            **({"part_bias": poison("f32", parts if bias else 0, n if bias else 0)} if centred else {"offset": offset})
        }

        def grads(a, t=t, centred=centred, residual=residual, bias=bias, offset=offset, parts=parts):
            dy, s = f64(a, "dy", "s")
            ds, dw, db = norm_grads(dy, s, a["w"].astype(float) + (0 if centred else offset), centred)
            share = -(-len(s) // parts)
            by_part = lambda x: np.stack([x[p * share:(p + 1) * share].sum(0) for p in range(parts)])
            slack = (s.shape[1] + len(s) + 40) * 4 * EPS
            ds = ds + (f64(a, "dtotal")[0] if residual else 0)
            out = {
                "dx": near(ds,
                           slack * np.abs(ds).max(initial=1), t),
                "part_w": within(by_part(dw),
                                 slack * np.abs(dw).max(initial=1) * 4)
            }
            if bias:
                out["part_bias"] = within(by_part(db), slack * np.abs(db).max(initial=1))
            return out

        kernel_row("norms", name + "_backward", f"{t}_{m}x{n}", back, grads, T=t, W=w, BN=bn, RESIDUAL=residual,
                   **({"BIAS": bias} if centred else {}))
for t, p, n in (("f32", 3, 70), ("f16", 1, 1), ("bf16", 0, 5)):
    kernel_row("norms", "sum_parts", t, {"part": small("f32", 1, p, n), "y": poison(t, n)},
               lambda a, t=t: {"y": rounded(a["part"].astype(float).sum(0), t)}, T=t, B=32)


# ---- rotary positions ------------------------------------------------------------------------------------------------
def rotate(x, c, s, pairs, interleaved, back):
    s = -s if back else s
    a, b = (x[..., 0:2 * pairs:2], x[..., 1:2 * pairs:2]) if interleaved else (x[..., :pairs], x[..., pairs:2 * pairs])
    y = x.copy()
    p, q = a * c - b * s, a * s + b * c
    if interleaved:
        y[..., 0:2 * pairs:2], y[..., 1:2 * pairs:2] = p, q
    else:
        y[..., :pairs], y[..., pairs:2 * pairs] = p, q
    return y


for p, i, base in ((9, 20, 10000.0), (1, 1, 500000.0)):
    angle = np.arange(p)[:, None] * base ** (-np.arange(i) / i)
    for scaled in (False, True):
        slower = 1 + 31 * rng(3).random(i) if scaled else np.ones(i)
        kernel_row(
            "layers", "rope_tables", f"{p}x{i}" + "_scaled" * scaled, {
                "cosine": poison("f32", p, i), "sine": poison("f32", p, i),
                "factor": bytes_as("f32", slower) if scaled else none("f32", 0), "base": base
            }, lambda a, angle=angle / slower.astype(np.float32):
            {"cosine": within(np.cos(angle), 2e-6 * (1 + angle)), "sine": within(np.sin(angle), 2e-6 *
                                                                                 (1 + angle))}, SCALED=scaled, BI=16)
for t, n, h, d, pairs, interleaved, back in (("f16", 5, 3, 16, 8, False, False), ("f32", 3, 9, 20, 6, True, False),
                                             ("bf16", 1, 1, 8, 4, True, True), ("f32", 7, 2, 12, 4, False, True)):
    place, table = ints("i32", 1, 0, 11, n), rng(2).random((11, pairs)) * 6
    kernel_row(
        "layers", "rope", f"{t}_{n}x{h}x{d}", {
            "x": normal(t, 3, n, h, d), "place": place, "cosine": bytes_as("f32", np.cos(table)), "sine": bytes_as(
                "f32", np.sin(table)), "y": poison(t, n, h, d)
        }, lambda a, t=t, pairs=pairs, interleaved=interleaved, back=back: {
            "y": near(
                rotate(
                    f64(a, "x")[0], *(a[w].astype(float)[a["place"]][:, None]
                                      for w in ("cosine", "sine")), pairs, interleaved, back), 16 * EPS, t)
        }, T=t, D=d, I=pairs, INTERLEAVED=interleaved, BACKWARD=back)
for t, n, h, d, pairs, places, back in (("f16", 5, 3, 40, 20, True, False), ("f32", 3, 9, 25, 6, False, False),
                                        ("bf16", 1, 1, 8, 4, True, True), ("f32", 7, 2, 12, 4, False, True),
                                        ("f32", 0, 2, 4, 2, False, False), ("f16", 2, 1, 6, 1, True, False)):
    place, table = (ints("i32", 1, 0, 11, n) if places else none("i32", 0)), rng(2).random((11, pairs)) * 6
    kernel_row(
        "layers", "rope_any", f"{t}_{n}x{h}x{d}", {
            "x": normal(t, 3, n, h, d), "place": place, "cosine": bytes_as("f32", np.cos(table)), "sine": bytes_as(
                "f32", np.sin(table)), "y": poison(t, n, h, d)
        }, lambda a, t=t, n=n, pairs=pairs, places=places, back=back: {
            "y": near(
                rotate(
                    f64(a, "x")[0], *(a[w].astype(float)[a["place"] if places else np.arange(n)][:, None]
                                      for w in ("cosine", "sine")), pairs, False, back), 16 * EPS, t)
        }, T=t, BI=32, BACKWARD=back)


# ---- gated activations, embeddings, dropout --------------------------------------------------------------------------
def phi(x):
    from math import erf
    return np.vectorize(lambda v: 0.5 * (1 + erf(v / np.sqrt(2))))(x) if x.size else x


ACTS = {"silu": (lambda x: x / (1 + np.exp(-x)), lambda x: (lambda s: s * (1 + x * (1 - s)))(1 / (1 + np.exp(-x)))),
        "gelu_tanh": (lambda x: x / (1 + np.exp(-1.5957691216057308 * (x + 0.044715 * x**3))), None),
        "gelu": (lambda x: x * phi(x), lambda x: phi(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))}
def by_tanh(x):
    s = 1 / (1 + np.exp(-1.5957691216057308 * (x + 0.044715 * x**3)))
    return s + x * s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * x * x)


ACTS["gelu_tanh"] = ACTS["gelu_tanh"][0], by_tanh
for act, (f, df) in ACTS.items():
    x_ = rng(1).standard_normal(9)
    differ(f, x_, df(x_))
    for t, m, n in (("f16", 3, 70), ("f32", 1, 1), ("bf16", 2, 33)) if act != "gelu_tanh" else (("f32", 3, 70),):
        args = {"x": normal(t, 1, m, 2 * n)}
        kernel_row("layers", "gated", f"{act}_{t}_{m}x{n}", {**args, "y": poison(t, m, n)},
                   lambda a, t=t, f=f, n=n: {"y": near(f(f64(a, "x")[0][:, :n]) * f64(a, "x")[0][:, n:], 64 * EPS, t)},
                   T=t, act=f"activation.{act}", B=32)
        kernel_row(
            "layers", "gated_backward", f"{act}_{t}_{m}x{n}",
            {"dy": normal(t, 2, m, n), **args, "dx": poison(t, m, 2 * n)}, lambda a, t=t, f=f, df=df, n=n: {
                "dx": near(
                    np.concatenate([
                        a["dy"] * f64(a, "x")[0][:, n:] * df(f64(a, "x")[0][:, :n]), a["dy"] * f(f64(a, "x")[0][:, :n])
                    ], 1), 200 * EPS, t)
            }, T=t, act=f"activation.{act}", grad=f"activation.{act}_grad", B=32)

for t, i, n, v, d in (("f16", "i32", 9, 5, 40), ("f32", "i64", 1, 1, 1), ("bf16", "i32", 4, 7, 33)):
    ids = ints(i, 1, -1 if v > 1 else 0, v + 1 if v > 1 else 1, n)

    def looked(a, v=v, t=t):
        known = (a["id"] >= 0) & (a["id"] < v)
        return {
            "y": exact(quantize(np.where(known[:, None], 2 * a["w"].astype(float)[np.where(known, a["id"], 0)], 0.0),
                                t))
        }

    kernel_row("layers", "embedding", t, {"w": normal(t, 2, v, d), "id": ids, "y": poison(t, n, d), "scale": 2.0},
               looked, T=t, I_=i, B=32)

    def added(a, v=v, d=d):
        dw = np.zeros((v, d))
        known = (a["id"] >= 0) & (a["id"] < v) & (a["id"] != 2)
        np.add.at(dw, a["id"][known], 2 * a["dy"].astype(float)[known])
        return {"dw": exact(dw)}

    kernel_row("layers", "embedding_backward", t,
               {"dy": small(t, 3, n, d), "id": ids, "dw": zeros("f32", v, d), "scale": 2.0, "padding": 2}, added, T=t,
               I_=i, B=32)

for t, n, v, d in (("f16", 9, 5, 40), ("f32", 1, 1, 1), ("bf16", 0, 3, 33)):
    ids = rng(2).integers(0, v, n)
    order, offsets = np.argsort(ids, kind="stable").astype(np.int32), np.searchsorted(np.sort(ids),
                                                                                      np.arange(v + 1)).astype(np.int32)

    def sums(a, ids=ids, v=v, d=d):
        dw = np.zeros((v, d))
        np.add.at(dw, ids, 2 * a["dy"].astype(float))
        return {"dw": exact(dw)}

    kernel_row(
        "layers", "embedding_backward_sorted", t, {
            "dy": small(t, 3, n, d), "order": Arr("i32", order), "offsets": Arr("i32", offsets), "dw": poison(
                "f32", v, d), "scale": 2.0
        }, sums, T=t, B=32)

for t, n, residual in (("f16", 70, True), ("f32", 1, False), ("bf16", 33, False)):
    keep = np.array([(philox(9, i // 4)[i % 4] >> 8) * 2.0**-24 >= 0.25 for i in range(n)])
    kernel_row(
        "layers", "dropout", t,
        {"x": normal(t, 1, n), "residual": normal(t, 2, n if residual else 0), "y": poison(t, n), "p": 0.25, "seed": 9},
        lambda a, t=t, keep=keep, residual=residual: {
            "y": near(
                np.where(keep, a["x"].astype(float) / 0.75, 0) +
                (a["residual"].astype(float) if residual else 0), 4 * EPS * np.abs(a["x"].astype(float)), t)
        }, T=t, RESIDUAL=residual, B=32)


# ---- losses ----------------------------------------------------------------------------------------------------------
def lse_of(x):
    most = x.max(1, keepdims=True)
    return (most + np.log(np.exp(x - most).sum(1, keepdims=True)))[:, 0]


def cross_entropy(x, label, smoothing, z, ignore):
    l = lse_of(x)
    known = (label >= 0) & (label < x.shape[1])
    target = x[np.arange(len(x)), np.where(known, label, 0)]
    loss = l - (1 - smoothing) * target - smoothing * x.mean(1) + z * l * l
    return np.where(label == ignore, 0, np.where(known, loss, np.nan)), l


def cross_entropy_grad(x, label, smoothing, z, ignore):
    l = lse_of(x)
    g = np.exp(x - l[:, None]) * (1 + 2 * z * l[:, None]) - smoothing / x.shape[1]
    g = g - (1 - smoothing) * (np.arange(x.shape[1]) == label[:, None])
    return np.where(label[:, None] == ignore, 0, g)


x_, label_ = rng(1).standard_normal((3, 6)), np.array([2, -1, 5])
differ(lambda x: cross_entropy(x, label_, 0.1, 0.05, -1)[0], x_, cross_entropy_grad(x_, label_, 0.1, 0.05, -1))
for t, i, m, v, smoothing, z in (("f16", "i32", 5, 70, 0.125, 0.01), ("f32", "i64", 3, 33, 0.0, 0.0),
                                 ("bf16", "i32", 1, 1, 0.0, 0.0), ("f32", "i32", 4, 97, 0.0, 0.5)):
    label = ints(i, 2, 0, v, m)
    if m > 2:
        label.store[1], label.store[2] = -100, (v if i == "i64" else label.store[2])
    args = {"x": normal(t, 3, m, v), "label": label}

    def want(a, smoothing=smoothing, z=z):
        loss, l = cross_entropy(f64(a, "x")[0], a["label"], np.float32(smoothing), np.float32(z), -100)
        return {
            "loss": within(loss, 200 * EPS * (4 + np.abs(np.nan_to_num(loss)))),
            "lse": within(l, 100 * EPS * (4 + np.abs(l)))
        }

    kernel_row(
        "losses", "cross_entropy", f"{t}_{m}x{v}",
        {**args, "loss": poison("f32", m), "lse": poison("f32", m), "smoothing": smoothing, "z": z, "ignore": -100},
        want, T=t, I=i, BV=32)
    lse = Arr("f32", lse_of(wide(args["x"]).astype(float)).astype(np.float32))
    kernel_row(
        "losses", "cross_entropy_backward", f"{t}_{m}x{v}", {
            **args, "lse": lse, "dloss": normal("f32", 4, m), "dx": poison(t, m, v), "smoothing": smoothing, "z": z,
            "ignore": -100
        }, lambda a, t=t, smoothing=smoothing, z=z: {
            "dx": near(
                cross_entropy_grad(f64(a, "x")[0], a["label"], np.float32(smoothing), np.float32(z), -100) * a["dloss"].
                astype(float)[:, None], 200 * EPS, t)
        }, T=t, I=i, BV=32)

for t, m, v, d, s, z in (("f16", 33, 70, 40, 3, 0.01), ("f32", 20, 33, 17, 1, 0.0), ("bf16", 1, 2, 1, 2, 0.0),
                         ("f32", 5, 40, 16, 4, 0.25)):
    label = ints("i32", 5, 0, v, m)
    if m > 2:
        label.store[1] = -100
    h, w = bytes_as(t, rng(6).standard_normal((m, d)) / 2), normal(t, 7, v, d)
    share = -(-(-(-v // 16)) // s) * 16

    def want(a, share=share, s=s):
        x = f64(a, "h")[0] @ f64(a, "W")[0].T
        part = np.full((len(x), s, 2), -np.inf)
        for p in range(s):
            mine = x[:, p * share:(p + 1) * share]
            if mine.shape[1]:
                part[:, p, 0] = lse_of(mine)
                at = a["label"] - p * share
                here = (at >= 0) & (at < mine.shape[1])
                part[here, p, 1] = mine[here, at[here]]
        return {"part": within(part, 100 * EPS * (4 + np.abs(x).max()))}

    kernel_row("losses", "linear_cross_entropy", f"{t}_{m}x{v}x{d}",
               {"h": h, "W": w, "label": label, "part": poison("f32", m, s, 2)}, want, T=t, BM=16, BV=16, BK=16)
    x = wide(h).astype(float) @ wide(w).astype(float).T
    lse = Arr("f32", lse_of(x).astype(np.float32))

    def grads(a, t=t, z=z):
        h, w = f64(a, "h", "W")
        g = cross_entropy_grad(h @ w.T, a["label"], 0, np.float32(z), -100) * a["dloss"].astype(float)[:, None]
        slack = eps(t) * np.abs(g).max() * 2 + 200 * EPS
        return {
            "dh": within(g @ w,
                         slack * np.abs(w).max() * len(w)), "dW": within(g.T @ h,
                                                                         slack * np.abs(h).max() * len(h))
        }

    kernel_row(
        "losses", "linear_cross_entropy_backward", f"{t}_{m}x{v}x{d}", {
            "h": h, "W": w, "label": label, "lse": lse, "dloss": normal("f32", 8, m), "dh": zeros("f32", m, d),
            "dW": zeros("f32", v, d), "z": z, "ignore": -100
        }, grads, T=t, BM=16, BV=16, BK=16)
    part = np.stack([
        np.stack([
            lse_of(x[:, p * share:(p + 1) * share]) if x[:, p * share:].shape[1] else np.full(m, -np.inf)
            for p in range(s)
        ], 1),
        np.stack([
            np.where((label.store // share == p) &
                     (label.store >= 0), x[np.arange(m), np.maximum(label.store, 0)], -np.inf) for p in range(s)
        ], 1)
    ], 2)
    if t != "bf16":
        kernel_row(
            "losses", "linear_cross_entropy_merge", f"{m}x{v}", {
                "part": Arr("f32", part.astype(np.float32)), "label": label, "loss": poison("f32", m), "lse": poison(
                    "f32", m), "z": z, "ignore": -100, "V": v
            }, lambda a, x=x, z=z:
            (lambda loss, l:
             {"loss": within(loss, 100 * EPS * (4 + np.abs(loss))), "lse": within(l, 100 * EPS * (4 + np.abs(l)))})
            (*cross_entropy(x, a["label"], 0, np.float32(z), -100)))


def divergence(x, t, beta, temperature):
    """The loss of rows and its derivative; beta None: p from q."""
    q, p = (np.exp(y / temperature - lse_of(y / temperature)[:, None]) for y in (x, t))
    if beta is None:
        return (p * np.log(p / q)).sum(1), (q - p) / temperature
    r = beta * p + (1 - beta) * q
    g = (1 - beta) * np.log(q / r)
    return (beta * p * np.log(p / r) +
            (1 - beta) * q * np.log(q / r)).sum(1), q * (g - (q * g).sum(1, keepdims=True)) / temperature


for beta in (None, 0.3):
    x_, t_ = rng(1).standard_normal((2, 5)), rng(2).standard_normal((2, 5))
    differ(lambda x: divergence(x, t_, beta, 1.5)[0], x_, divergence(x_, t_, beta, 1.5)[1])
    for t, m, v, temperature in (("f16", 3, 70, 2.0), ("f32", 1, 1, 1.0), ("bf16", 2, 33, 0.5)):
        def want(a, t=t, beta=beta, temperature=temperature):
            loss, dx = divergence(*f64(a, "x", "t"), None if beta is None else np.float32(beta), temperature)
            return {
                "loss": within(loss, 400 * EPS * (4 + np.abs(loss))), "dx": near(dx * a["dloss"].astype(float)[:, None],
                                                                                 400 * EPS, t)
            }

        kernel_row(
            "losses", "kl_divergence" if beta is None else "jsd", f"{t}_{m}x{v}", {
                "x": normal(t, 9, m, v), "t": normal(t, 10, m, v), "dloss": normal("f32", 11, m), "loss": poison(
                    "f32", m), "dx": poison(t, m, v),
                **({} if beta is None else {"beta": beta}), "temperature": temperature
            }, want, T=t, BV=32)

# ---- sampling --------------------------------------------------------------------------------------------------------
for t, m, v in (("f16", 4, 70), ("f32", 1, 1), ("bf16", 3, 33)):
    kernel_row("sampling", "argmax_rows", t, {"x": normal(t, 1, m, v), "token": poison("i32", m)},
               lambda a: {"token": exact(a["x"].argmax(1).astype(np.int32))}, T=t, BV=32)


def sample(x, temperature, k, p, u):
    if temperature == 0:
        return x.argmax(), 1
    w = np.exp((x - x.max()) / temperature)
    if 0 < k < len(x):
        w = np.where(x >= np.sort(x)[-k], w, 0)
    if p < 1:
        order = np.argsort(-x, kind="stable")
        enough = np.flatnonzero(np.cumsum(w[order]) >= p * w.sum())[0]
        w = np.where(x >= x[order[enough]], w, 0)
    return np.flatnonzero((np.cumsum(w) > u * w.sum()) & (w > 0))[0], (w > 0).sum()


for t, v, seed in (("f32", 97, 3), ("f16", 70, 4), ("bf16", 1, 5)):
    rows_ = [(1.0, 0, 1.0), (0.5, 5, 1.0), (2.0, 0, 0.6), (1.0, 20, 0.8), (0.0, 3, 0.5), (1.0, 1, 1.0),
             (1.0, 500, 0.99), (3.0, 7, 0.01)]
    x = normal(t, 12, len(rows_), v)

    def want(a, rows_=rows_, seed=seed):
        got = [
            sample(x, *r, (philox(seed, m)[0] >> 8) * 2.0**-24)
            for m, (x, r) in enumerate(zip(a["x"].astype(float), rows_))
        ]
        return {
            "token": exact(np.array([g[0] for g in got], np.int32)),
            "kept": exact(np.array([g[1] for g in got], np.int32))
        }
    column = lambda i, kind: Arr(kind, np.array([r[i] for r in rows_], np.float32 if kind == "f32" else np.int32))
    kernel_row(
        "sampling", "sample_top_k_top_p", t, {
            "x": x, "temperature": column(0, "f32"), "k": column(1, "i32"), "top_p": column(2, "f32"), "token": poison(
                "i32", len(rows_)), "kept": poison("i32", len(rows_)), "seed": seed
        }, want, T=t, BV=32)
