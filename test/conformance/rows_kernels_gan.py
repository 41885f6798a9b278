"""std.kernels.gan against NumPy in f64: the losses' gradients by closed forms that central differences confirm here,
and the three
launches of spectral norm, which together come to the greatest singular value."""
from kernel_library import EPS, bytes_as, f64, kernel_row, near, np, poison, within
from rows_kernels_layers import differ
from values import normal, rng


def sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


LOSSES = {"logistic": (lambda x, t: np.logaddexp(0, x) - t * x, lambda x, t: (1 - t) * sigmoid(x) - t * sigmoid(-x)),
          "least_squares": (lambda x, t: (x - t) ** 2 / 2, lambda x, t: x - t),
          "hinge": (lambda x, t: np.maximum(1 - t * x, 0), lambda x, t: np.where(1 - t * x > 0, -t, 0.0)),
          "wasserstein": (lambda x, t: -t * x, lambda x, t: np.full_like(x, -t))}


def scores(t, n):
    """Among them +-100 and, of odd sizes, the hinge's corner."""
    return bytes_as(
        t,
        np.concatenate([[100.0, -100.0, 1.0, -1.0, 0.0, 30.0, -30.0], 3 * rng(n).standard_normal(max(n - 7, 0))])[:n])


def loss_row(name, t, n, p, target, scale, b):
    f, df = LOSSES[name]

    def want(a):
        x = f64(a, "x")[0]
        shares = [sum(f(x[i:i + b], target).sum() for i in range(q * b, n, p * b)) for q in range(p)]
        d = df(x, target) * scale / max(n, 1)
        terms = np.abs(d) if target in (-1, 0, 1) else scale / max(n, 1)
        size = (np.abs(f(x, target)).sum() + n) / max(n, 1)
        return {
            "part": within(np.array(shares) / max(n, 1), np.full(p, 40 * EPS * size)),
            "dx": near(d, 16 * EPS * terms + 2.0**-140, t)
        }

    kernel_row("gan", "gan_loss", f"{name}_{t}_{n}_{p}_{target}".replace("-", "m").replace(".", "_"),
               {"x": scores(t, n), "dx": poison(t, n), "part": poison("f32", p), "target": target, "scale": scale},
               want, T=t, loss=name, B=b)


for name, (f, df) in LOSSES.items():
    for target in (1.0, -1.0 if name in ("hinge", "wasserstein") else 0.0):
        x_ = 2 * rng(1).standard_normal(9)
        differ(lambda x: f(x, target), x_, df(x_, target))
        for t, n, p, scale in (("f32", 77, 1, 1.0), ("f16", 101, 2, 64.0), ("bf16", 1, 1, 1.0), ("f32", 0, 2, 1.0)):
            loss_row(name, t, n, p, target, scale, 32)
loss_row("logistic", "f32", 35, 3, 0.75, 1.0, 16)


# ---- spectral norm ---------------------------------------------------------------------------------------------------
def unit(x):
    return x / max(np.sqrt((x * x).sum()), 1e-12)


w_, u_ = rng(5).standard_normal((6, 4)), unit(rng(6).standard_normal(6))
for _ in range(200):
    v_ = unit(w_.T @ u_)
    u_ = unit(w_ @ v_)
assert abs(u_ @ w_ @ v_ - np.linalg.norm(w_, 2)) < 1e-12

for t, r, c in (("f32", 37, 70), ("f16", 9, 5), ("bf16", 1, 1), ("f32", 0, 3), ("f16", 5, 0)):
    w, u = normal(t, 1, r, c), normal("f32", 2, r)
    tiles = {"T": t, "BR": 8, "BC": 32}

    def columns(a):
        w, u = f64(a, "w", "u")
        return {"t": within(w.T @ u, (len(u) + 4) * EPS * (np.abs(w).T @ np.abs(u)))}

    def rows(a):
        w, t = f64(a, "w", "t")
        v = unit(t)
        out = {"s": within(w @ v, (2 * len(t) + 12) * EPS * (np.abs(w) @ np.abs(v)))}
        return out | ({"v": within(v, (len(t) + 8) * EPS * np.abs(v))} if len(w) else {})

    def applied(a, t=t):
        w, s = f64(a, "w", "s")
        size = max(np.sqrt((s * s).sum()), 1e-12)
        slack = (len(s) + 8) * EPS
        out = {"y": near(w / size, slack * np.abs(w / size), t)}
        if w.size:
            out |= {
                "u": within(s / size, slack * np.abs(s / size)), "sigma": within(np.array([size]),
                                                                                 np.array([slack * size]))
            }
        return out
    at = f"{t}_{r}x{c}"
    kernel_row("gan", "spectral_columns", at, {"w": w, "u": u, "t": poison("f32", c)}, columns, **tiles)
    kernel_row("gan", "spectral_rows", at,
               {"w": w, "t": normal("f32", 3, c), "v": poison("f32", c), "s": poison("f32", r)}, rows, **tiles)
    kernel_row(
        "gan", "spectral_apply", at,
        {"w": w, "s": normal("f32", 4, r), "u": poison("f32", r), "sigma": poison("f32", 1), "y": poison(t, r, c)},
        applied, **tiles)
kernel_row(
    "gan", "spectral_rows", "zero",
    {"w": normal("f32", 1, 3, 4), "t": bytes_as("f32", np.zeros(4)), "v": poison("f32", 4), "s": poison("f32", 3)},
    lambda a: {"v": within(np.zeros(4), np.zeros(4)), "s": within(np.zeros(3), np.zeros(3))}, T="f32", BR=8, BC=32)
