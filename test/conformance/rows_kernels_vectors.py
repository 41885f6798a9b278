"""std.kernels.vectors against NumPy: elements side by side and apart, forwards and backwards; one, none, less than a
block, several; sums of small integers, which are exact; norms of numbers whose squares are none."""
from kernel_library import Arr, EPS, bytes_as, exact, kernel_row, near, np, poison, rounded
from values import rng, small

UNIT = {"f32": EPS, "f64": 2.0**-53}


def apart(a, step):
    """The same elements, `step` apart; with a negative step from the last one on."""
    if step == 1:
        return a
    n, far = len(a.store), abs(step)
    room = np.full(max((n - 1) * far + 1, 0), 77).astype(a.store.dtype)
    view = room[::far] if step > 0 else room[::-far][:n]
    view[...] = a.store
    return Arr(a.type, view)


CASES = [("f32", 1000, 1, 1), ("f64", 333, 1, 1), ("f32", 150, 3, 2), ("f64", 70, 1, -2), ("f32", 61, -1, 1),
         ("f32", 1, 1, 1), ("f64", 1, 5, -3), ("f32", 0, 1, 1), ("f64", 0, 2, 2)]
for t, n, incx, incy in CASES:
    for dense in (True, False):
        if dense and (incx, incy) != (1, 1):
            continue
        name = f"{t}_{n}_{incx}_{incy}".replace("-", "m") + "_dense" * dense
        X, Y = apart(small(t, 1, n), incx), apart(small(t, 2, n), incy)
        consts = dict(T=t, DENSE=dense, B=64)
        kernel_row("vectors", "vector_axpy", name, {"x": X, "y": Y, "alpha": -2.0},
                   lambda a, t=t: {"y": rounded(a["y"].astype(float) - 2 * a["x"].astype(float), t)}, **consts)
        kernel_row("vectors", "vector_scale", name, {"x": X, "alpha": 3.0},
                   lambda a, t=t: {"x": rounded(3 * a["x"].astype(float), t)}, **consts)
        kernel_row("vectors", "vector_copy", name, {"x": X, "y": apart(poison(t, n), incy)},
                   lambda a, t=t: {"y": rounded(a["x"].astype(float), t)}, **consts)
        kernel_row("vectors", "vector_swap", name, {"x": X, "y": Y},
                   lambda a, t=t: {"x": rounded(a["y"].astype(float), t), "y": rounded(a["x"].astype(float), t)},
                   **consts)
        kernel_row("vectors", "vector_dot", name, {"x": X, "y": Y, "r": poison(t, 1)},
                   lambda a, t=t: {"r": rounded(np.array([a["x"].astype(float) @ a["y"].astype(float)]), t)}, **consts)
        kernel_row("vectors", "vector_size", name + "_sum", {"x": X, "r": poison(t, 1)},
                   lambda a, t=t: {"r": rounded(np.array([np.abs(a["x"].astype(float)).sum()]), t)}, **consts)
        kernel_row("vectors", "vector_greatest", name, {"x": X, "r": poison("i32", 1)},
                   lambda a: {"r": exact(np.array([np.abs(a["x"].astype(float)).argmax() if len(a["x"]) else -1]))},
                   **consts)


def norm(name, t, values, step=1):
    v = np.asarray(values, np.float64)
    top = np.abs(v).max(initial=0)
    want = top * np.linalg.norm(v / top) if 0 < top < np.inf else np.linalg.norm(v)
    bound = 0 if not np.isfinite(want) else want * UNIT[t] * (len(v) + 8)
    kernel_row("vectors", "vector_size", f"{t}_norm_{name}", {"x": apart(bytes_as(t, v), step), "r": poison(t, 1)},
               lambda a: {"r": near(np.array([want]), np.array([bound]), t)}, T=t, NORM=True, DENSE=step == 1, B=64)


some = rng(3).integers(-9, 10, 201).astype(np.float64)
for t, small_one, large in (("f32", 2.0**-100, 2.0**100), ("f64", 2.0**-600, 2.0**600)):
    norm("some", t, some)
    norm("apart", t, some[:70], -2)
    norm("small", t, some * small_one)
    norm("large", t, some * large, 3)
    norm("both", t, [small_one, large, -large])
    norm("one", t, [-3])
    norm("none", t, [])
    norm("zeros", t, [0] * 5)
    norm("infinite", t, [1, -np.inf, 3])
    norm("nan", t, [1, np.nan, np.inf])

for name, values in (("nan", [1, 5, np.nan, np.inf, np.nan]), ("infinite", [3, -np.inf, np.inf]),
                     ("equal", [0, -4] * 70),
                     ("zeros", [0] * 3)):
    kernel_row("vectors", "vector_greatest", f"f32_{name}", {"x": bytes_as("f32", values), "r": poison("i32", 1)},
               lambda a: {"r": exact(np.array([np.where(np.isnan(a["x"]), np.inf, np.abs(a["x"])).argmax()]))},
               T="f32", DENSE=True, B=64)
