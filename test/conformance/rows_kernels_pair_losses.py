"""std.kernels.pair_losses against NumPy; derivatives against differences of the losses."""
from kernel_library import EPS, bytes_as, f64, kernel_row, near, np, poison
from values import normal, rng, zeros

LOSSES = {
    "squared_error": (lambda a, b: (a - b)**2, lambda a, b: 2 * (a - b)),
    "absolute_error": (lambda a, b: np.abs(a - b), lambda a, b: np.sign(a - b)),
    "huber": (lambda a, b: np.where(np.abs(a - b) <= 1, (a - b)**2 / 2,
                                    np.abs(a - b) - 0.5), lambda a, b: np.clip(a - b, -1, 1)),
    "hinge": (lambda a, b: np.maximum(1 - a * b, 0), lambda a, b: np.where(a * b < 1, -b, 0)),
    "divergence": (lambda a, b: np.where(b > 0, b * (np.log(np.where(b > 0, b, 1)) - a), 0), lambda a, b: -b),
    "binary_cross_entropy": (lambda a, b: np.logaddexp(0, a) - a * b, lambda a, b: 1 / (1 + np.exp(-a)) - b),
}
for f, g in LOSSES.values():
    x_, y_ = rng(1).standard_normal(50), rng(2).random(50)
    assert np.abs((f(x_ + 1e-6, y_) - f(x_ - 1e-6, y_)) / 2e-6 - g(x_, y_)).max() < 1e-6

for i, (t, n, z) in enumerate((("f32", 1300, 3), ("f16", 33, 2), ("bf16", 1, 1), ("f64", 70, 5), ("f32", 0, 2))):
    A, unit = ("f64", 2.0**-53) if t == "f64" else ("f32", EPS)
    b = rng(i).random(n) * (rng(i + 1).random(n) > 0.2)
    for name, (f, g) in LOSSES.items():
        if t == "f64" and name == "binary_cross_entropy":  # there is no log1p of f64
            continue
        given = {"a": normal(t, i, n), "b": bytes_as(t, b), "scale": 0.5}
        kernel_row("pair_losses",
                   "pair_loss",
                   f"{name}_{t}_{n}", {
                       **given, "parts": poison(A, z),
                       "arrived": zeros("u32", 1),
                       "y": poison(A, 1)
                   },
                   lambda a, f=f, unit=unit:
                   (lambda v: {
                       "y": near(np.array([v.sum() / 2]), 40 * unit * (np.abs(v).sum() + v.size), "f64")
                   })(f(*f64(a, "a", "b"))),
                   T=t,
                   A=A,
                   f=name,
                   B=64)
        kernel_row("pair_losses",
                   "pair_loss_backward",
                   f"{name}_{t}_{n}", {
                       **given, "dy": normal(A, 9, 1),
                       "da": poison(t, n)
                   },
                   lambda a, g=g, unit=unit, t=t: (lambda v: {
                       "da": near(v, 40 * unit * (np.abs(v) + 4), t)
                   })(g(*f64(a, "a", "b")) * (a["dy"].astype(float)[0] / 2)),
                   T=t,
                   A=A,
                   f=name + "_grad",
                   B=64)


def triplets(a):
    x, p, n = f64(a, "anchor", "positive", "negative")
    u, v = x - p + 0.125, x - n + 0.125
    near_, far = np.sqrt((u * u).sum(1)), np.sqrt((v * v).sum(1))
    return u, v, near_, far, np.maximum(near_ - far + a["margin"], 0)


for i, (t, m, n) in enumerate(
    (("f32", 5, 100), ("f16", 3, 33), ("bf16", 1, 1), ("f64", 4, 9), ("f32", 0, 3), ("f32", 2, 0))):
    A, unit = ("f64", 2.0**-53) if t == "f64" else ("f32", EPS)
    given = {name: normal(t, 3 * i + j, m, n) for j, name in enumerate(("anchor", "positive", "negative"))}
    numbers = {"margin": 0.25, "eps": 0.125}

    def losses(a, unit=unit, n=n):
        _, _, p, q, y = triplets(a)
        return {k: near(v, (n + 20) * unit * (p + q + 1), "f64") for k, v in (("near", p), ("far", q), ("y", y))}

    kernel_row("pair_losses",
               "triplet_margin",
               f"{t}_{m}x{n}", {
                   **given, "y": poison(A, m),
                   "near": poison(A, m),
                   "far": poison(A, m),
                   **numbers
               },
               losses,
               T=t,
               A=A,
               B=64)
    wide = {
        k: v.store if v.type != "bf16" else (v.store.astype(np.uint32) << 16).view(np.float32)
        for k, v in given.items()
    }
    _, _, p_, q_, _ = triplets({**wide, **numbers})

    def derivatives(a, t=t, unit=unit):
        u, v, p, q, y = triplets(a)
        p, q = f64(a, "near", "far")
        d = np.where(p - q + a["margin"] > 0, a["dy"].astype(float), 0)[:, None]
        u, v = u * d / np.where(p > 0, p, 1)[:, None], v * d / np.where(q > 0, q, 1)[:, None]
        return {
            k: near(w, 40 * unit * (np.abs(u) + np.abs(v) + 1), t)
            for k, w in (("da", u - v), ("dp", -u), ("dn", v))
        }

    kernel_row("pair_losses",
               "triplet_margin_backward",
               f"{t}_{m}x{n}", {
                   **given, "dy": normal(A, 8, m),
                   "near": bytes_as(A, p_),
                   "far": bytes_as(A, q_),
                   **{
                       k: poison(t, m, n)
                       for k in ("da", "dp", "dn")
                   },
                   **numbers
               },
               derivatives,
               T=t,
               A=A,
               B=64)
