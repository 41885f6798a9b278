"""std.kernels.rnn against NumPy in f64, which rounds what the kernels keep in memory; gradients by the recursions of
the forward pass, which central
differences confirm here."""
from kernel_library import Arr, bytes_as, f64, kernel_row, near, np, poison, quantize
from rows_kernels_layers import differ
from values import normal, rng

TYPES = ("f32", "f16", "bf16", "f64")
# of what is kept, in T, and of derivatives, whose terms may be some times as large; a rounding that falls otherwise
# goes on to later steps
LOOSE = {"f64": 1e-14, "f32": 2e-6, "f16": 2.0**-9, "bf16": 2.0**-6}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- one step: arrays [..., gates, H] --------------------------------------------------------------------------------
def lstm(s, c):
    """The gates, the next cell state, the next state."""
    i, f, g, o = sigmoid(s[..., 0, :]), sigmoid(s[..., 1, :]), np.tanh(s[..., 2, :]), sigmoid(s[..., 3, :])
    after = f * c + i * g
    return np.stack([i, f, g, o], -2), after, o * np.tanh(after)


def lstm_back(dh, dc, gates, c, after):
    """By the sums, and by the cell state before."""
    i, f, g, o = (gates[..., k, :] for k in range(4))
    t = np.tanh(after)
    d = dc + dh * o * (1 - t * t)
    return np.stack([d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), dh * t * o * (1 - o)], -2), d * f


def gru(x, u, h):
    """r, z, n and what the state brings to n; the next state."""
    r, z, un = sigmoid(x[..., 0, :] + u[..., 0, :]), sigmoid(x[..., 1, :] + u[..., 1, :]), u[..., 2, :]
    n = np.tanh(x[..., 2, :] + r * un)
    return np.stack([r, z, n, un], -2), (1 - z) * n + z * h


def gru_back(dh, gates, h):
    """By x, by what the state brings, by the state itself."""
    r, z, n, un = (gates[..., k, :] for k in range(4))
    dn = dh * (1 - z) * (1 - n * n)
    dr, dz = dn * un * r * (1 - r), dh * (h - n) * z * (1 - z)
    return np.stack([dr, dz, dn], -2), np.stack([dr, dz, dn * r], -2), dh * z


# ---- all steps: `keep` rounds what goes through memory ---------------------------------------------------------------
def by(h, w, keep):
    return np.einsum("bk,kgj->bgj", keep(h), w)


def lstm_all(x, w, h, c, keep):
    gates, cs, hs = [], [c], [keep(h)]
    for xt in x:
        gate, c, h = lstm(xt + by(hs[-1], w, keep), c)
        gates, cs, hs = gates + [gate], cs + [c], hs + [keep(h)]
    return np.array(hs), np.array(cs), np.array(gates).reshape(len(x), *x.shape[1:])


def lstm_all_back(dy, w, gates, c, dc, keep):
    dz, later = np.zeros_like(gates), np.zeros(dc.shape)
    for t in reversed(range(len(dy))):
        d, dc = lstm_back(dy[t] + later, dc, gates[t], c[t], c[t + 1])
        dz[t] = keep(d)
        later = np.einsum("bgj,kgj->bk", dz[t], w)
    return dz, later, dc


def gru_all(x, w, bias, h, keep):
    gates, hs = [], [keep(h)]
    for xt in x:
        u = by(hs[-1], w, keep)
        u[:, 2] += bias
        gate, h = gru(xt, u, hs[-1])
        gates, hs = gates + [gate], hs + [keep(h)]
    return np.array(hs), np.array(gates).reshape(len(x), x.shape[1], 4, x.shape[3])


def gru_all_back(dy, w, gates, h, keep):
    dx, du, dh = np.zeros((*dy.shape[:2], 3, dy.shape[2])), np.zeros(
        (*dy.shape[:2], 3, dy.shape[2])), np.zeros(dy.shape[1:])
    for t in reversed(range(len(dy))):
        ex, eu, dh = gru_back(dy[t] + dh, gates[t], h[t])
        dx[t], du[t] = keep(ex), keep(eu)
        dh = dh + np.einsum("bgj,kgj->bk", du[t], w)
    return dx, du, dh


# ---- the recursions are the derivatives ------------------------------------------------------------------------------
def same(x):
    return x


x_, w_, h_, c_, dy_, dc_ = (rng(n).standard_normal(s) for n, s in
                            enumerate(((3, 2, 4, 3), (3, 4, 3), (2, 3), (2, 3), (3, 2, 3), (2, 3))))


def lstm_loss(x, h, c):
    hs, cs, _ = lstm_all(x, w_, h, c, same)
    return (hs[1:] * dy_).sum() + (cs[-1] * dc_).sum()


_, cs_, gates_ = lstm_all(x_, w_, h_, c_, same)
dz_, dh_, dc0_ = lstm_all_back(dy_, w_, gates_, cs_, dc_, same)
differ(lambda x: lstm_loss(x, h_, c_), x_, dz_)
differ(lambda h: lstm_loss(x_, h, c_), h_, dh_)
differ(lambda c: lstm_loss(x_, h_, c), c_, dc0_)
hs_, gates_ = gru_all(x_[:, :, :3], w_[:, :3], c_[0], h_, same)
dx_, du_, dh_ = gru_all_back(dy_, w_[:, :3], gates_, hs_, same)
differ(lambda x: (gru_all(x, w_[:, :3], c_[0], h_, same)[0][1:] * dy_).sum(), x_[:, :, :3].copy(), dx_)
differ(lambda h: (gru_all(x_[:, :, :3], w_[:, :3], c_[0], h, same)[0][1:] * dy_).sum(), h_, dh_)
differ(lambda b: (gru_all(x_[:, :, :3], w_[:, :3], b, h_, same)[0][1:] * dy_).sum(), c_[0].copy(), du_[:, :, 2].sum(
    (0, 1)))


# ---- rows ------------------------------------------------------------------------------------------------------------
def rounding(t):
    return {"f32": lambda x: np.asarray(x, np.float32).astype(np.float64), "f64": same}.get(t, lambda x: quantize(x, t))


def wider(t):
    """The type of sums and cell states: A."""
    return "f64" if t == "f64" else "f32"


def close(y, t, kept, times=1):
    """Of type `kept`, from what was rounded to t."""
    return near(y, times * LOOSE[t] * (1 + np.abs(y)), kept)


def cell(n, t, b, h):
    name = f"{t}_{b}x{h}"
    x3, u3, x4, u4 = (normal(t, 10 * n + k, b, g, h) for k, g in enumerate((3, 3, 4, 4)))
    c, after, state, dh, dc = (normal(wider(t) if k in (0, 1, 4) else t, 10 * n + 4 + k, b, h) for k in range(5))
    gates = bytes_as(t, rng(n).uniform(0.05, 0.95, (b, 4, h)))

    def forward(a):
        x, u, c = f64(a, "x", "u", "c")
        gate, after, h = lstm(x + u, c)
        return {
            "gates": close(gate, wider(t), t), "c_next": close(after, wider(t), wider(t)), "h": close(h, wider(t), t)
        }

    def backward(a):
        dz, before = lstm_back(*f64(a, "dh", "dc", "gates", "c", "c_next"))
        return {"dz": close(dz, wider(t), t), "dc_before": close(before, wider(t), wider(t))}

    def gru_forward(a):
        gate, h = gru(*f64(a, "x", "u", "h"))
        return {"gates": close(gate, wider(t), t), "h_next": close(h, wider(t), t)}

    def gru_backward(a):
        dx, du, before = gru_back(*f64(a, "dh", "gates", "h"))
        return {"dx": close(dx, wider(t), t), "du": close(du, wider(t), t), "dh_before": close(before, wider(t), t)}

    kernel_row(
        "rnn", "lstm_cell", name,
        {"x": x4, "u": u4, "c": c, "h": poison(t, b, h), "c_next": poison(wider(t), b, h), "gates": poison(t, b, 4, h)},
        forward, T=t, A=wider(t))
    kernel_row(
        "rnn", "lstm_cell_backward", name, {
            "dh": dh, "dc": dc, "gates": gates, "c": c, "c_next": after, "dz": poison(t, b, 4, h), "dc_before": poison(
                wider(t), b, h)
        }, backward, T=t, A=wider(t))
    kernel_row("rnn", "gru_cell", name,
               {"x": x3, "u": u3, "h": state, "h_next": poison(t, b, h), "gates": poison(t, b, 4, h)}, gru_forward, T=t)
    kernel_row(
        "rnn", "gru_cell_backward", name, {
            "dh": dh, "gates": gates, "h": state, "dx": poison(t, b, 3, h), "du": poison(t, b, 3, h),
            "dh_before": poison(t, b, h)
        }, gru_backward, T=t)


def started(t, first, steps):
    """[steps + 1, ...]: the first place is given."""
    a = poison(t, steps + 1, *first.store.shape)
    store = a.store.copy()
    store[0] = first.store
    return Arr(t, store)


def sequence(n, t, steps, b, h, **blocks):
    name = f"{t}_{steps}x{b}x{h}" + ("_blocks" if blocks else "")
    keep, scale = rounding(t), 0.5 / max(h, 1)**0.5
    x4, x3 = (normal(t, 10 * n + k, steps, b, 4 - k, h) for k in range(2))
    w4, w3 = (bytes_as(t, scale * rng(10 * n + 2 + k).standard_normal((h, 4 - k, h))) for k in range(2))
    first, bias, dy = normal(t, 10 * n + 4, b, h), normal(t, 10 * n + 5, h), normal(t, 10 * n + 6, steps, b, h)
    c0, dc, cs = normal(wider(t), 10 * n + 7, b, h), normal(wider(t), 10 * n + 8, b,
                                                            h), normal(wider(t), 10 * n + 9, steps + 1, b, h)
    gates = bytes_as(t, rng(n).uniform(0.05, 0.95, (steps, b, 4, h)))
    hs = normal(t, n, steps + 1, b, h)

    def forward(a):
        x, w, h, c = f64(a, "x", "w", "h", "c")
        hs, cs, gate = lstm_all(x, w, h[0], c[0], keep)
        return {"h": close(hs, t, t), "c": close(cs, t, wider(t)), "gates": close(gate, t, t)}

    def backward(a):
        dz, dh, dc = lstm_all_back(*f64(a, "dy", "w", "gates", "c", "dc"), keep)
        return {"dz": close(dz, t, t, 4), "dh_start": close(dh, t, t, 4), "dc": close(dc, t, wider(t), 4)}

    def gru_forward(a):
        x, w, bias, h = f64(a, "x", "w", "bias", "h")
        hs, gate = gru_all(x, w, bias, h[0], keep)
        return {"h": close(hs, t, t), "gates": close(gate, t, t, 4)}

    def gru_backward(a):
        dx, du, dh = gru_all_back(*f64(a, "dy", "w", "gates", "h"), keep)
        return {"dx": close(dx, t, t, 4), "du": close(du, t, t, 4), "dh": close(dh, t, wider(t), 4)}

    kernel_row(
        "rnn", "lstm_sequence", name, {
            "x": x4, "w": w4, "h": started(t, first, steps), "c": started(wider(t), c0, steps), "gates": poison(
                t, steps, b, 4, h)
        }, forward, T=t, A=wider(t), **blocks)
    kernel_row("rnn", "lstm_sequence_backward", name, {
        "dy": dy, "w": w4, "gates": gates, "c": cs, "dz": poison(t, steps, b, 4, h), "dh_start": poison(t, b, h),
        "dc": dc
    }, backward, T=t, A=wider(t), **blocks)
    kernel_row("rnn", "gru_sequence", name,
               {"x": x3, "w": w3, "bias": bias, "h": started(t, first, steps), "gates": poison(t, steps, b, 4, h)},
               gru_forward, T=t, A=wider(t), **blocks)
    kernel_row(
        "rnn", "gru_sequence_backward", name, {
            "dy": dy, "w": w3, "gates": gates, "h": hs, "dx": poison(t, steps, b, 3, h), "du": poison(
                t, steps, b, 3, h), "dh": poison(wider(t), b, h)
        }, gru_backward, T=t, A=wider(t), **blocks)


for n_, t_ in enumerate(TYPES):
    cell(110 + n_, t_, 9, 70)
    sequence(210 + n_, t_, 3, 18, 40)
cell(103, "f32", 1, 1)
cell(104, "f16", 0, 5)
sequence(203, "f32", 1, 1, 1)
sequence(204, "f32", 0, 3, 4)
sequence(205, "f16", 4, 5, 33, BB=4, BH=16, BK=16)
sequence(206, "bf16", 2, 0, 8)
