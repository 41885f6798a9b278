"""std.kernels.image_norms against NumPy in f64; gradients by the closed form, which central differences confirm
here."""
from kernel_library import EPS, bytes_as, exact, f64, kernel_row, near, np, poison, within
from rows_kernels_layers import differ
from values import normal, rng, wide, zeros

EPSILON = 1e-3
UNITS = {"f32": 40 * EPS, "f64": 400 * 2.0**-53}  # of A: f64 is NumPy's, too


def normed(x, axes):
    """(x - mean) rstd, mean and rstd over these axes, kept."""
    mean = x.mean(axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + EPSILON)
    return (x - mean) * rstd, mean, rstd


def gradient(dy, x, w, axes):
    n, _, rstd = normed(x, axes)
    g = dy * w
    return rstd * (g - g.mean(axes, keepdims=True) - n * (g * n).mean(axes, keepdims=True))


def by_group(x, groups):
    return x.reshape(*x.shape[:2], groups, x.shape[2] // groups)


for shape_, axes_ in (((4, 3), (0,)), ((2, 3, 2, 2), (1, 3))):
    x_, dy_, w_ = (rng(i).standard_normal(s) for i, s in enumerate((shape_, shape_, shape_[-1:])))
    differ(lambda x: normed(x, axes_)[0] * w_ * dy_, x_, gradient(dy_, x_, w_, axes_))


def wider(t):
    """The type of sums, A."""
    return "f64" if t == "f64" else "f32"


def most(x):
    return np.abs(x).max(initial=1)


# ---- batch norm ------------------------------------------------------------------------------------------------------
for t, w, m, c, p in (("f16", "f32", 70, 40, 3), ("f32", "f32", 33, 5, 1), ("bf16", "bf16", 2, 1, 3),
                      ("f64", "f64", 21, 33, 2), ("f32", "f16", 9, 65, 2)):
    total, UNIT = wider(t), UNITS[wider(t)]
    name = f"{t}_{m}x{c}"
    x, weight, bias, dy = normal(t, 1, m, c), normal(w, 2, c), normal(w, 3, c), normal(t, 4, m, c)
    x.store[:] = (wide(x) +
                  3).astype(x.store.dtype) if t[0] == "f" else x.store  # means that a sum of squares would lose to
    tiles = {"BM": 8, "BC": 32}
    slots, arrived = poison(total, p, 2, c), zeros("u32", -(-c // 32))
    nothing = exact(np.zeros(arrived.store.shape, np.uint32))

    def statistics(a, nothing=nothing, UNIT=UNIT):
        x, before, spread = f64(a, "x", "running_mean", "running_variance")
        _, mean, rstd = normed(x, 0)
        mean, rstd = mean[0], rstd[0]
        unbiased = x.var(0, ddof=1)
        return {
            "mean": within(mean, UNIT * most(x)), "rstd": within(rstd, UNIT * rstd * (1 + most(x) * rstd)),
            "running_mean": within(0.75 * before + 0.25 * mean,
                                   UNIT * most(x)), "running_variance": within(0.75 * spread + 0.25 * unbiased,
                                                                               UNIT * most(x)**2), "arrived": nothing
        }

    kernel_row(
        "image_norms", "batch_norm_statistics", name, {
            "x": x, "parts": slots, "arrived": arrived, "mean": poison(total, c),
            "rstd": poison(total, c), "running_mean": normal(total, 5, c), "running_variance": bytes_as(
                total,
                rng(6).random(c)), "eps": EPSILON, "momentum": 0.25
        }, statistics, T=t, A=total, **tiles)
    _, mean, rstd = normed(wide(x).astype(float), 0)
    for inference in (False, True):
        spread = 1 / rstd[0] ** 2 - EPSILON if inference else rstd[0]
        residual = not inference

        def applied(a, t=t, rstd=rstd, residual=residual, UNIT=UNIT):
            x, mean, w, b = f64(a, "x", "mean", "w", "bias")
            v = (x - mean) * rstd[0] * w
            y = v + b + (a["residual"].astype(float) if residual else 0)
            return {
                "y": near(np.maximum(y, 0), UNIT * (np.abs(v) + np.abs(y) + np.abs(b) + most(x) * rstd[0] * np.abs(w)),
                          t)
            }

        kernel_row(
            "image_norms", "batch_norm", f"{name}_{'inference' if inference else 'training'}", {
                "x": x, "mean": bytes_as(total, mean[0]), "rstd": bytes_as(total, spread), "w": weight, "bias": bias,
                "residual": normal(t, 7, *((m, c) if residual else (0, 0))), "y": poison(t, m, c), "eps": EPSILON
            }, applied, T=t, W=w, A=total, INFERENCE=inference, RESIDUAL=residual, epilogue="activation.relu", **tiles)
    kept = {"mean": bytes_as(total, mean[0]), "rstd": bytes_as(total, rstd[0])}

    def sums(a, nothing=nothing, UNIT=UNIT):
        dy, x = f64(a, "dy", "x")
        n, _, rstd = normed(x, 0)
        return {
            "dbias": within(dy.sum(0),
                            len(x) * UNIT * most(dy)), "dw": within(
                                (dy * n).sum(0),
                                len(x) * UNIT * most(dy) * (most(n) + most(x) * rstd[0])), "arrived": nothing
        }

    kernel_row("image_norms", "batch_norm_backward_sums", name, {
        "dy": dy, "x": x, **kept, "parts": slots, "arrived": arrived, "dw": poison(total, c), "dbias": poison(total, c)
    }, sums, T=t, A=total, **tiles)
    up = wide(dy).astype(float)
    n = normed(wide(x).astype(float), 0)[0]

    def back(a, t=t, UNIT=UNIT):
        dy, x, w = f64(a, "dy", "x", "w")
        rstd = normed(x, 0)[2]
        return {"dx": near(gradient(dy, x, w, 0), UNIT * rstd * np.abs(w) * most(dy) * (4 + most(x) * rstd) * 4, t)}

    kernel_row(
        "image_norms", "batch_norm_backward", name, {
            "dy": dy, "x": x, **kept, "w": weight, "dw": bytes_as(total, (up * n).sum(0)), "dbias": bytes_as(
                total, up.sum(0)), "dx": poison(t, m, c)
        }, back, T=t, W=w, A=total, **tiles)


# ---- groups and instances --------------------------------------------------------------------------------------------
def arrays(t, w, n, l, c, g, total):
    return {
        "x": normal(t, 1, n, l, c), "w": normal(w, 2, c), "bias": normal(w, 3, c), "y": poison(t, n, l, c),
        "mean": poison(total, n, g), "rstd": poison(total, n, g), "eps": EPSILON
    }


for t, w, n, l, c, g in (
        ("f16", "f16", 2, 20, 84, 2), ("f32", "f32", 3, 9, 6, 3), ("bf16", "f32", 1, 1, 1, 1),
        ("f32", "f32", 0, 3, 4, 2), ("f64", "f64", 2, 9, 10, 5), ("f32", "f16", 2, 35, 40, 40),
        ("f64", "f64", 2, 9, 34, 34), ("f32", "f32", 2, 40, 72, 36), ("f16", "f32", 1, 11, 30, 3),
        # a few groups of few rows, each alone
        ("f32", "f32", 5, 1, 32, 2), ("bf16", "bf16", 2, 3, 160, 16), ("f64", "f64", 3, 2, 50, 5)):
    total, UNIT = wider(t), UNITS[wider(t)]
    names = ["instance_norm", "group_norm"] if g == c else ["group_norm"]
    for kernel in names:
        def want(a, t=t, g=g, UNIT=UNIT):
            x, w, b = f64(a, "x", "w", "bias")
            v, mean, rstd = normed(by_group(x, g), (1, 3))
            v = v.reshape(x.shape)
            return {
                "y": near(v * w + b,
                          UNIT * (1 + np.abs(v)) * (most(w) + most(b)) * 4,
                          t), "mean": within(mean[:, 0, :, 0], UNIT * most(x)),
                "rstd": within(rstd[:, 0, :, 0], UNIT * rstd[:, 0, :, 0] * (1 + rstd[:, 0, :, 0]))
            }
        name, tiles = f"{t}_{n}x{l}x{c}_by_{g}", {"BL": 8, "BC": 32}
        args = arrays(t, w, n, l, c, g, total)
        kernel_row("image_norms", kernel, name, args, want, T=t, W=w, A=total, **tiles)
        ways = {"_together": True, "_apart": False} if kernel == "group_norm" else {}
        for way, value in ways.items():
            kernel_row("image_norms", kernel, name + way, args, want, T=t, W=w, A=total, TOGETHER=value, **tiles)
        _, mean, rstd = normed(by_group(wide(args["x"]).astype(float), g), (1, 3))

        def grads(a, t=t, g=g, UNIT=UNIT):
            dy, x, w = f64(a, "dy", "x", "w")
            groups = by_group(x, g)
            v, _, rstd = normed(groups, (1, 3))
            dx = gradient(by_group(dy, g), groups, w.reshape(g, -1), (1, 3))
            bound = UNIT * (1 + rstd * most(x)) * most(dy) * 8
            return {
                "dx": near(dx.reshape(x.shape),
                           np.broadcast_to(bound * rstd * most(w), groups.shape).reshape(x.shape), t),
                "part_w": within((dy * v.reshape(x.shape)).sum(1),
                                 x.shape[1] * np.broadcast_to(bound, groups[:, :1].shape).reshape(len(x), x.shape[2])),
                "part_bias": within(dy.sum(1), x.shape[1] * UNIT * most(dy))
            }

        for way, value in {"": None, **ways}.items():
            kernel_row(
                "image_norms", kernel + "_backward", name + way, {
                    "dy": normal(t, 4, n, l, c), "x": args["x"], "w": args["w"],
                    "mean": bytes_as(total, mean[:, 0, :, 0]), "rstd": bytes_as(total, rstd[:, 0, :, 0]), "dx": poison(
                        t, n, l, c), "part_w": poison(total, n, c), "part_bias": poison(total, n, c)
                }, grads, T=t, W=w, A=total, **tiles, **({"TOGETHER": value} if way else {}))
