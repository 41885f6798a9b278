"""std.kernels.solve against NumPy: triangles on either side, with their own or with a diagonal of ones; Cholesky, LU,
QR, exchanges of rows; what must not be used is NaN; pivots that are not positive, or 0; numbers whose squares overflow;
sizes of less than a block, of several, of 1 and of nothing."""
from kernel_library import EPS, Arr, bytes_as, exact, f64, kernel_row, near, np, poison
from values import rng, small

UNIT = {"f32": EPS, "f64": 2.0**-53}


def matrix(seed, *shape):
    return rng(seed).integers(-4, 5, shape).astype(np.float64)


def triangle(t, z, n, unit):
    """Lower triangles, NaN above and, if it is not used, on the diagonal; rows sum to less than the pivot."""
    low = matrix(1, z, n, n) / (4 * max(n, 1)) + 1.25 * np.eye(n)
    return bytes_as(t, np.where(np.tri(n, n, -1 if unit else 0, dtype=bool), low, np.nan))


def solve(t, z, n, k, right=False, unit=0, alpha=1.0, **tiles):
    def want(a):
        low, x = f64(a, "l", "x")
        low = np.tril(np.nan_to_num(low), -1) + (np.eye(n) if unit else np.nan_to_num(low) * np.eye(n))
        y = np.swapaxes(x, 1, 2) if right else x
        y = np.linalg.solve(low, alpha * y) if z * n * k else y
        bound = 16 * (n + 1) * UNIT[t] * (np.abs(y).max(initial=0) + 1)
        return {"x": near(np.swapaxes(y, 1, 2) if right else y, bound, t)}

    name = f"{t}_{z}x{n}x{k}" + "_right" * right + "_unit" * unit
    kernel_row("solve", "solve_triangle", name, {
        "l": triangle(t, z, n, unit), "x": small(t, 2, z, *((k, n) if right else (n, k))), "alpha": alpha,
        "unit": unit
    }, want, T=t, RIGHT=right, **{**dict(BN=8, BK=16, BJ=16), **tiles})


solve("f32", 2, 37, 21)
solve("f32", 1, 16, 16, unit=1, alpha=-0.5)
solve("f64", 1, 19, 5, alpha=2.0)
solve("f32", 2, 35, 18, right=True)
solve("f64", 2, 9, 33, right=True, unit=1)
solve("f32", 1, 1, 1, alpha=3.0)
solve("f64", 1, 1, 7, right=True)
solve("f32", 2, 0, 5)
solve("f32", 2, 5, 0, right=True)
solve("f64", 0, 5, 5)
solve("f32", 2, 30, 9)
solve("f64", 1, 21, 18, right=True, alpha=2.0)
solve("f32", 2, 37, 1, BN=8, BK=1)
solve("f64", 1, 20, 3, right=True, BN=16, BK=1)
solve("f32", 1, 70, 40, BN=16, BK=64, BJ=64)


def multiply(t, z, n, k, right=False, unit=0, alpha=1.0, **tiles):
    def want(a):
        low, x = f64(a, "l", "x")
        low = np.tril(np.nan_to_num(low), -1) + (np.eye(n) if unit else np.nan_to_num(low) * np.eye(n))
        y = alpha * (low @ (np.swapaxes(x, 1, 2) if right else x))
        bound = 8 * (n + 1) * UNIT[t] * (np.abs(y).max(initial=0) + 8)
        return {"x": near(np.swapaxes(y, 1, 2) if right else y, bound, t)}

    name = f"{t}_{z}x{n}x{k}" + "_right" * right + "_unit" * unit
    kernel_row("solve", "multiply_triangle", name, {
        "l": triangle(t, z, n, unit), "x": small(t, 2, z, *((k, n) if right else (n, k))), "alpha": alpha, "unit": unit
    }, want, T=t, RIGHT=right, **{**dict(BN=16, BK=16, BJ=16), **tiles})


multiply("f32", 2, 37, 21)
multiply("f32", 1, 16, 16, unit=1, alpha=-0.5)
multiply("f64", 1, 19, 5, alpha=2.0)
multiply("f32", 2, 35, 18, right=True)
multiply("f64", 2, 9, 33, right=True, unit=1)
multiply("f32", 1, 1, 1, alpha=3.0)
multiply("f32", 2, 0, 5)
multiply("f32", 2, 5, 0, right=True)
multiply("f64", 0, 5, 5)
multiply("f32", 2, 37, 1, BN=8, BK=1, BJ=64)
multiply("f64", 1, 20, 3, right=True, unit=1, BN=16, BK=1)
multiply("f32", 1, 70, 40, BN=64, BK=64, BJ=64)


def vectors(kernel, name, t, z, n, trans, upper, unit=0, alpha=1.0, step=1, **tiles):
    """One column, with either triangle of a as it is stored; elements of x `step` apart, or backwards."""
    solves = kernel == "solve_vector"
    low = triangle(t, z, n, unit).store.astype(np.float64)
    held = np.swapaxes(low, 1, 2) if upper else low
    used = np.tril(np.nan_to_num(low), -1) + (np.eye(n) if unit else np.nan_to_num(low) * np.eye(n))
    used = np.swapaxes(used, 1, 2) if upper != trans else used
    x = small(t, 2, z, n * abs(step))
    x = Arr(t, x.store[:, ::step])

    def want(a):
        (b,) = f64(a, "x")
        y = alpha * (np.linalg.solve(used, b[:, :, None]) if solves and z * n else used @ b[:, :, None])[:, :, 0]
        return {"x": near(y, 16 * (n + 1) * UNIT[t] * (np.abs(y).max(initial=0) + 8), t)}

    kernel_row("solve", kernel, name, {
        "a": bytes_as(t, np.ascontiguousarray(held)), "x": x, "alpha": alpha, "upper": int(upper), "unit": unit
    }, want, T=t, TRANS=trans, **{**dict(BN=8, BJ=16), **tiles})


for kernel in ("solve_vector", "multiply_vector"):
    for trans, upper in ((False, False), (False, True), (True, False), (True, True)):
        form = f"{'t' if trans else 'n'}{'u' if upper else 'l'}"
        vectors(kernel, f"{form}_f32", "f32", 2, 43, trans, upper, alpha=-0.5)
        vectors(kernel, f"{form}_f64_unit", "f64", 1, 24, trans, upper, unit=1)
        vectors(kernel, f"{form}_f32_apart", "f32", 1, 37, trans, upper, step=3 if trans else -2)
        vectors(kernel, f"{form}_wide", "f64", 1, 70, trans, upper, BN=4, BJ=64, alpha=2.0)
    vectors(kernel, "one", "f64", 3, 1, False, True, alpha=3.0)
    vectors(kernel, "nothing", "f32", 2, 0, True, False)
    vectors(kernel, "no_matrix", "f32", 0, 5, False, False)


def cholesky(name, t, z, n, upper=False, first=0, before=0, spoil=None, **consts):
    """The rows behind the first ones of r r^T + a multiple of 1; `spoil`: the place of a pivot that is not positive."""
    r = matrix(3, z, first + n, first + n)
    whole = r @ np.swapaxes(r, 1, 2) + (first + n + 1) * np.eye(first + n)
    low = np.linalg.cholesky(whole) if whole.size else whole
    a, d, low = whole[:, first:, first:], low[:, first:, :first], low[:, first:, first:]
    if spoil is not None:
        a[-1, spoil, spoil] = -5
    used = np.tri(n, dtype=bool)
    held = np.where(used, a, np.nan)

    def turned(x):
        return np.ascontiguousarray(np.swapaxes(x, 1, 2)) if upper else x

    def want(_a):
        info = np.full(z, before, np.int32)
        if spoil is not None:
            info[-1] = before or first + spoil + 1
            return {"info": exact(info)}
        bound = 16 * (first + n + 1) * UNIT[t] * np.sqrt(np.abs(a).max(initial=1))
        return {"a": near(turned(np.where(used, low, np.nan)), bound, t), "info": exact(info)}

    kernel_row("solve", "factor_cholesky", f"{t}_{z}x{n}_{name}", {
        "a": bytes_as(t, turned(held)), "d": bytes_as(t, turned(d)),
        "info": bytes_as("i32", np.full(z, before if first else 99))
    }, want, T=t, UPPER=upper, **{**dict(B=16, BJ=16), **consts})


cholesky("lower", "f32", 3, 13)
cholesky("upper", "f64", 1, 16, upper=True)
cholesky("not_positive", "f32", 2, 9, spoil=4, first=30)
cholesky("upper_behind", "f32", 2, 5, upper=True, first=19)
cholesky("known", "f64", 1, 7, spoil=0, first=3, before=2)
cholesky("one", "f64", 1, 1)
cholesky("nothing", "f32", 2, 0)
cholesky("none", "f32", 0, 4)
cholesky("behind", "f32", 1, 31, first=70, B=32, BJ=64)


def factors(a):
    """By Gauss, of equal pivots the first: factors, places, the first pivot that is 0."""
    a, places, bad = a.copy(), [], 0
    for n in range(min(a.shape)):
        p = n + int(np.argmax(np.abs(a[n:, n])))
        a[[n, p]] = a[[p, n]]
        places.append(p)
        if a[n, n] == 0:
            bad = bad or n + 1
        else:
            a[n + 1:, n] /= a[n, n]
        a[n + 1:, n + 1:] -= np.outer(a[n + 1:, n], a[n, n + 1:])
    return a, places, bad


def lu(name, t, z, m, n, first=0, singular=False, equal=False, kernel="factor_columns", **consts):
    a = matrix(5, z, m, n) + rng(6).uniform(-0.25, 0.25, (z, m, n))
    a = np.asarray(a, np.float32).astype(np.float64)
    if singular:
        a[:, :, 1] = 0
    if equal:  # the last pivot of every matrix is 0, of the factors of none
        a[:, m - 1] = a[:, 0]

    def want(_a):
        all_of = [factors(x) for x in a]
        y = np.array([x[0] for x in all_of]).reshape(z, m, n)
        places = np.array([x[1] for x in all_of], np.int32).reshape(z, min(m, n)) + first
        info = np.array([x[2] + first if x[2] else 0 for x in all_of], np.int32)
        bound = 64 * (n + 1) * UNIT[t] * np.abs(y).max(initial=1)
        return {"a": near(y, bound, t), "pivot": exact(places.astype(np.int32)), "info": exact(info)}

    kernel_row("solve", kernel, f"{t}_{z}x{m}x{n}_{name}", {
        "a": bytes_as(t, a), "pivot": poison("i32", z, min(m, n)),
        "info": bytes_as("i32", np.full(z, 0 if first else 99)), "first": first
    }, want, T=t, **(consts if kernel == "factor_abreast" else {**dict(B=16, BM=8), **consts}))


lu("square", "f32", 2, 13, 13)
lu("high", "f64", 1, 40, 9, first=7)
lu("wide", "f32", 2, 5, 16)
lu("singular", "f64", 2, 11, 6, singular=True, first=2)
lu("one", "f32", 1, 1, 1)
lu("column", "f64", 1, 19, 1)
lu("no_columns", "f32", 2, 7, 0)
lu("no_rows", "f32", 2, 0, 5)
lu("none", "f64", 0, 5, 5)
lu("block", "f32", 1, 50, 32, B=32, BM=16)
for size in ("f32", "f64"):
    for of, high, wide, lanes in ((16, 8, 8, 8), (10, 9, 5, 8), (32, 16, 16, 16), (26, 13, 13, 16), (2, 2, 2, 4),
                                  (3, 7, 3, 4), (1, 1, 1, 2)):
        lu("abreast", size, of, high, wide, kernel="factor_abreast", B=lanes)
lu("abreast", "f32", 32, 32, 32, kernel="factor_abreast", B=32)
lu("abreast", "f64", 17, 20, 17, kernel="factor_abreast", B=32)
lu("abreast_behind", "f32", 14, 7, 7, first=9, kernel="factor_abreast", B=8)
lu("abreast_behind", "f64", 4, 5, 4, first=64, kernel="factor_abreast", B=4)
lu("abreast_singular", "f32", 12, 6, 6, singular=True, kernel="factor_abreast", B=8)
lu("abreast_singular", "f64", 9, 11, 9, singular=True, first=2, kernel="factor_abreast", B=16)
lu("abreast_equal", "f32", 12, 6, 6, equal=True, kernel="factor_abreast", B=8)
lu("abreast_equal", "f64", 9, 9, 9, equal=True, kernel="factor_abreast", B=16)
lu("abreast_none", "f32", 0, 5, 5, kernel="factor_abreast", B=8)


def lost(kernel, t, z, n, **consts):
    """A NaN in the last row of every other matrix is the greatest of its column, and all that follows is NaN: each
    step takes the first."""
    a = np.asarray(matrix(5, z, n, n) + rng(6).uniform(-0.25, 0.25, (z, n, n)), np.float32).astype(np.float64)
    places = np.array([factors(x)[1] for x in a], np.int32)
    a[::2, n - 1, 0] = np.nan
    places[::2] = [n - 1, *range(1, n)]
    kernel_row("solve", kernel, f"{t}_{z}x{n}_lost", {
        "a": bytes_as(t, a), "pivot": poison("i32", z, n), "info": bytes_as("i32", np.full(z, 99)), "first": 0
    }, lambda _a: {"pivot": exact(places), "info": exact(np.zeros(z, np.int32))}, T=t, **consts)


lost("factor_columns", "f32", 3, 9, B=16, BM=8)
lost("factor_abreast", "f32", 8, 8, B=8)
lost("factor_abreast", "f64", 10, 5, B=8)


def swap(t, z, m, n, s, first=0, backwards=0):
    places = np.array([[first + i + int(rng(7 + i + j).integers(m - i)) for i in range(s)] for j in range(z)], np.int32)

    def want(a):
        x = f64(a, "a")[0].copy()
        for y, p in zip(x, places):
            for i in reversed(range(s)) if backwards else range(s):
                y[[i, p[i] - first]] = y[[p[i] - first, i]]
        return {"a": exact(x)}

    kernel_row("solve", "swap_rows", f"{t}_{z}x{m}x{n}_{s}" + "_backwards" * backwards, {
        "a": small(t, 8, z, m, n), "pivot": bytes_as("i32", places.reshape(z, s)), "first": first,
        "backwards": backwards
    }, want, T=t, BN=16)


swap("f32", 2, 9, 37, 9)
swap("f64", 1, 12, 5, 7, first=20)
swap("f32", 1, 20, 16, 11, backwards=1)
swap("f64", 2, 1, 1, 1)
swap("f32", 2, 5, 0, 3)
swap("f32", 1, 5, 7, 0)


# ---- QR --------------------------------------------------------------------------------------------------------------
def reflections(a):
    """R with the reflections below it, and their tau, of one matrix."""
    top, tau = np.abs(a).max(initial=0) or 1, np.zeros(min(a.shape))
    a = a.astype(np.float64) / top
    for n in range(len(tau)):
        if not (a[n + 1:, n] ** 2).sum():
            continue
        norm = -np.copysign(np.sqrt((a[n:, n] ** 2).sum()), a[n, n]) if a[n, n] else np.sqrt((a[n:, n] ** 2).sum())
        tau[n], v = (norm - a[n, n]) / norm, a[n:, n] / (a[n, n] - norm)
        v[0] = 1
        a[n:, n + 1:] -= tau[n] * np.outer(v, v @ a[n:, n + 1:])
        a[n:, n] = np.concatenate([[norm], v[1:]])
    return np.where(np.arange(len(a))[:, None] > np.arange(a.shape[1]), a, a * top), tau


def joined(a):
    """v with ones and zeros."""
    v = np.tril(a[:, :min(a.shape)], -1)
    v[np.arange(min(a.shape)), np.arange(min(a.shape))] = 1
    return v


def agree():
    """The reflections are Q, and Q R is the matrix."""
    a = rng(1).standard_normal((7, 5))
    f, tau = reflections(a)
    q = np.eye(7)
    for t, v in zip(tau, joined(f).T):
        q = q @ (np.eye(7) - t * np.outer(v, v))
    assert np.allclose(q @ np.triu(f), a) and np.allclose(q.T @ q, np.eye(7))


agree()


def qr(name, t, z, m, n, size=1.0, zeros=False, **consts):
    a = rng(11).standard_normal((z, m, n)) * size
    if zeros:  # a column that is 0 below the diagonal, and one that is 0
        a[:, 1:, 0] = 0
        a[:, :, n - 1] = 0
    x = bytes_as(t, a)
    s = min(m, n)

    def want(_a):
        both = [reflections(y) for y in x.store]
        y, tau = np.array([b[0] for b in both]).reshape(z, m, n), np.array([b[1] for b in both]).reshape(z, s)
        bound = 256 * UNIT[t] * np.sqrt(m * n) * (np.abs(x.store.astype(float)).max(initial=0) if s else 0)
        lower = np.arange(m)[:, None] > np.arange(n)  # reflections are of the size of 1
        return {"a": near(y, np.where(lower, bound / size, bound), t), "tau": near(tau, 256 * UNIT[t] * m, t)}

    kernel_row("solve", "factor_reflections", f"{t}_{z}x{m}x{n}_{name}",
               {"a": x, "tau": poison(t, z, s)}, want, T=t, **{**dict(B=16, BM=8), **consts})
    both = [reflections(y) for y in x.store]
    f = bytes_as(t, np.array([b[0] for b in both]).reshape(z, m, n))
    tau = bytes_as(t, np.array([b[1] for b in both]).reshape(z, s))

    def as_one(_a):
        v, out = np.array([joined(y) for y in f.store.astype(float)]).reshape(z, m, s), np.zeros((z, s, s))
        for i in range(z):
            for k in range(s):
                p = float(tau.store[i, k])
                out[i, :k, k] = -p * (out[i, :k, :k] @ (v[i, :, :k].T @ v[i, :, k]))
                out[i, k, k] = p
        bound = 64 * (m + s) * UNIT[t] * np.abs(out).max(initial=0)
        return {"v": exact(v.astype(f.store.dtype)), "t": near(out, bound, t)}

    kernel_row("solve", "join_reflections", f"{t}_{z}x{m}x{n}_{name}",
               {"a": f, "tau": tau, "v": poison(t, z, m, s), "t": poison(t, z, s, s)}, as_one, T=t,
               **{**dict(B=16, BM=8), **consts})
    for transposed, columns in ((0, 3), (1, 1)):
        apply(f"{t}_{z}x{m}x{n}_{name}", t, f, tau, m, s, transposed, columns)


def apply(name, t, f, tau, m, s, transposed, columns):
    """op(Q) C; what of the array is no reflection is not used."""
    v = f.store.astype(np.float64)[:, :, :s]
    z = len(v)
    held = bytes_as(t, np.where(np.arange(m)[:, None] > np.arange(s), v, np.nan))
    c = bytes_as(t, rng(12).standard_normal((z, m, columns)))

    def want(_a):
        y = c.store.astype(np.float64).copy()
        for i in range(z):
            w = joined(v[i])
            for k in range(s) if transposed else reversed(range(s)):
                y[i] -= float(tau.store[i, k]) * np.outer(w[:, k], w[:, k] @ y[i])
        return {"c": near(y, 64 * (m + s) * UNIT[t] * np.abs(y).max(initial=1), t)}

    kernel_row("solve", "apply_reflections", name + "_transposed" * transposed,
               {"a": held, "tau": tau, "c": c, "transposed": transposed}, want, T=t)


qr("high", "f32", 2, 37, 11)
qr("square", "f64", 1, 13, 13)
qr("wide", "f32", 2, 5, 16)
qr("block", "f32", 1, 50, 32, B=32, BM=16)
qr("panels", "f64", 2, 33, 24, B=32, BM=16)
qr("zeros", "f64", 2, 9, 6, zeros=True)
qr("large", "f32", 1, 20, 7, size=1e30)
qr("tiny", "f64", 1, 12, 4, size=1e-200)
qr("one", "f32", 1, 1, 1)
qr("column", "f64", 2, 19, 1)
qr("row", "f32", 1, 1, 9)
qr("no_columns", "f32", 2, 7, 0)
qr("no_rows", "f64", 2, 0, 5)
qr("none", "f32", 0, 5, 5)
