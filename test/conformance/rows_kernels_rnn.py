"""std.kernels.rnn against NumPy in f64; the steps' gradients are confirmed by central differences here. Sequences keep h in T: bounds grow with the steps."""
from kernel_library import Arr, EPS, bytes_as, f64, kernel_row, near, np, poison, within
from rows_kernels_layers import differ
from values import eps, normal, quantize, rng, wide

UNIT = 60 * EPS


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(z, c):
    """gates [B, 4, H], the next c and h."""
    gates = np.stack([sigmoid(z[:, 0]), sigmoid(z[:, 1]), np.tanh(z[:, 2]), sigmoid(z[:, 3])], 1)
    after = gates[:, 1] * c + gates[:, 0] * gates[:, 2]
    return gates, after, gates[:, 3] * np.tanh(after)


def lstm_back(dh, dc, gates, c, after):
    """dz and the derivative by c."""
    i, f, g, o = (gates[:, k] for k in range(4))
    t = np.tanh(after)
    d = dc + dh * o * (1 - t * t)
    return np.stack([d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g), dh * t * o * (1 - o)], 1), d * f


def gru(x, u, h):
    """gates r, z, n and n's u, and the next h."""
    r, z = sigmoid(x[:, 0] + u[:, 0]), sigmoid(x[:, 1] + u[:, 1])
    n = np.tanh(x[:, 2] + r * u[:, 2])
    return np.stack([r, z, n, u[:, 2]], 1), (1 - z) * n + z * h


def gru_back(dh, gates, h):
    """dx, du and the derivative by h itself."""
    r, z, n, u = (gates[:, k] for k in range(4))
    dn = dh * (1 - z) * (1 - n * n)
    dr, dz = dn * u * r * (1 - r), dh * (h - n) * z * (1 - z)
    return np.stack([dr, dz, dn], 1), np.stack([dr, dz, dn * r], 1), dh * z


def times(dz, w):
    """dz w^T over gates."""
    return np.einsum("bgj,kgj->bk", dz, w)


def lstm_all(x, w, h, c, q=lambda v: v):
    """States [L + 1, B, H] and gates [L, B, 4, H]; q rounds what is kept in T."""
    hs, cs, kept = [h], [c], []
    for step in x:
        gates, c, h = lstm(step + np.einsum("bk,kgj->bgj", hs[-1], w), cs[-1])
        hs, cs, kept = hs + [q(h)], cs + [c], kept + [q(gates)]
    return np.stack(hs), np.stack(cs), np.array(kept).reshape(x.shape)


def lstm_all_back(dy, w, gates, c, dc):
    dz, dh = np.zeros(gates.shape), 0
    for t in reversed(range(len(dy))):
        dz[t], dc = lstm_back(dy[t] + dh, dc, gates[t], c[t], c[t + 1])
        dh = times(dz[t], w)
    return dz, dh + np.zeros(dc.shape), dc


def gru_all(x, w, bias, h, q=lambda v: v):
    hs, kept = [h], []
    for step in x:
        u = np.einsum("bk,kgj->bgj", hs[-1], w)
        u[:, 2] += bias
        gates, h = gru(step, u, hs[-1])
        hs, kept = hs + [q(h)], kept + [q(gates)]
    return np.stack(hs), np.array(kept).reshape(*x.shape[:2], 4, x.shape[3])


def gru_all_back(dy, w, gates, h):
    dx, du, dh = np.zeros((*dy.shape[:2], 3, dy.shape[2])), np.zeros((*dy.shape[:2], 3, dy.shape[2])), np.zeros(h.shape[1:])
    for t in reversed(range(len(dy))):
        dx[t], du[t], dh = gru_back(dy[t] + dh, gates[t], h[t])
        dh = dh + times(du[t], w)
    return dx, du, dh


# ---- the closed forms, through whole sequences -------------------------------------------------------------------------
L_, B_, H_ = 3, 2, 3
w4_, w3_, c_, h_, dy_, dc_, bias_ = (rng(i).standard_normal(s) for i, s in enumerate(((H_, 4, H_), (H_, 3, H_), (B_, H_), (B_, H_), (L_, B_, H_), (B_, H_), (H_,))))
x4_, x3_ = rng(8).standard_normal((L_, B_, 4, H_)), rng(9).standard_normal((L_, B_, 3, H_))
hs_, cs_, gates_ = lstm_all(x4_, w4_, h_, c_)
dz_, dh_, dcs_ = lstm_all_back(dy_, w4_, gates_, cs_, dc_)
score = lambda s: (s[0][1:] * dy_).sum() + (s[1][-1] * dc_).sum()
differ(lambda x: score(lstm_all(x, w4_, h_, c_)), x4_, dz_)
differ(lambda h: score(lstm_all(x4_, w4_, h, c_)), h_, dh_)
differ(lambda c: score(lstm_all(x4_, w4_, h_, c)), c_, dcs_)
hs_, gates_ = gru_all(x3_, w3_, bias_, h_)
dx_, du_, dh_ = gru_all_back(dy_, w3_, gates_, hs_)
differ(lambda x: (gru_all(x, w3_, bias_, h_)[0][1:] * dy_).sum(), x3_, dx_)
differ(lambda h: (gru_all(x3_, w3_, bias_, h)[0][1:] * dy_).sum(), h_, dh_)
differ(lambda b: (gru_all(x3_, w3_, b, h_)[0][1:] * dy_).sum(), bias_, du_[:, :, 2].sum((0, 1)))


def some(t, seed, *shape):
    return bytes_as(t, rng(seed).standard_normal(shape) / 2)


# ---- steps --------------------------------------------------------------------------------------------------------------
for t, b, h in (("f16", 9, 40), ("f32", 1, 1), ("bf16", 3, 33), ("f32", 0, 5)):
    name, tiles = f"{t}_{b}x{h}", {"T": t, "BB": 4, "BH": 32}

    def step(a, t=t):
        x, u, c = f64(a, "x", "u", "c")
        gates, after, out = lstm(x + u, c)
        return {"gates": near(gates, UNIT, t), "c_next": within(after, UNIT * (1 + np.abs(c))), "h": near(out, UNIT * (1 + np.abs(c)), t)}
    kernel_row("rnn", "lstm_cell", name, {"x": some(t, 1, b, 4, h), "u": some(t, 2, b, 4, h), "c": normal("f32", 3, b, h), "h": poison(t, b, h), "c_next": poison("f32", b, h), "gates": poison(t, b, 4, h)}, step, **tiles)
    gates, after, _ = lstm(rng(4).standard_normal((b, 4, h)), c := rng(3).standard_normal((b, h)))

    def back(a, t=t):
        dz, before = lstm_back(*f64(a, "dh", "dc", "gates", "c", "c_next"))
        return {"dz": near(dz, UNIT * (1 + np.abs(dz)) * 8, t), "dc_before": within(before, UNIT * (1 + np.abs(before)) * 8)}
    kernel_row("rnn", "lstm_cell_backward", name, {"dh": normal(t, 5, b, h), "dc": normal("f32", 6, b, h), "gates": bytes_as(t, gates), "c": bytes_as("f32", c), "c_next": bytes_as("f32", after), "dz": poison(t, b, 4, h), "dc_before": poison("f32", b, h)}, back, **tiles)

    def step3(a, t=t):
        gates, out = gru(*f64(a, "x", "u", "h"))
        return {"gates": near(gates, UNIT * (1 + np.abs(gates)), t), "h_next": near(out, UNIT * (1 + np.abs(out)), t)}
    kernel_row("rnn", "gru_cell", name, {"x": some(t, 1, b, 3, h), "u": some(t, 2, b, 3, h), "h": some(t, 3, b, h), "h_next": poison(t, b, h), "gates": poison(t, b, 4, h)}, step3, **tiles)
    gates, _ = gru(rng(4).standard_normal((b, 3, h)), rng(5).standard_normal((b, 3, h)), np.zeros((b, h)))

    def back3(a, t=t):
        dx, du, before = gru_back(*f64(a, "dh", "gates", "h"))
        return {"dx": near(dx, UNIT * (1 + np.abs(dx)) * 8, t), "du": near(du, UNIT * (1 + np.abs(du)) * 8, t), "dh_before": near(before, UNIT * (1 + np.abs(before)), t)}
    kernel_row("rnn", "gru_cell_backward", name, {"dh": normal(t, 5, b, h), "gates": bytes_as(t, gates), "h": some(t, 3, b, h), "dx": poison(t, b, 3, h), "du": poison(t, b, 3, h), "dh_before": poison(t, b, h)}, back3, **tiles)


# ---- sequences ----------------------------------------------------------------------------------------------------------
def first(t, start, steps):
    """[L + 1, ...] with the start in place 0."""
    return Arr(t, np.concatenate([start.store[None], poison(t, steps, *start.store.shape).store]))


for t, steps, b, h in (("f16", 3, 19, 40), ("f32", 5, 3, 17), ("bf16", 2, 1, 1), ("f32", 0, 2, 3), ("f32", 2, 0, 3)):
    name, tiles = f"{t}_{steps}x{b}x{h}", {"T": t, "BB": 16, "BH": 16, "BK": 16}
    loose = UNIT * 4 + (eps(t) * 2 * steps if t != "f32" else 0)  # what rounding h differently at a step does to the next
    w, start, c = bytes_as(t, rng(2).standard_normal((h, 4, h)) / 2 / max(h, 1) ** 0.5), some(t, 3, b, h), normal("f32", 4, b, h)

    def run(a, t=t, loose=loose):
        q = (lambda v: quantize(v, t))
        hs, cs, gates = lstm_all(a["x"].astype(float), a["w"].astype(float), a["h"][0].astype(float), a["c"][0].astype(float), q)
        return {"h": near(hs, loose * 2, t), "c": within(cs, loose * (2 + np.abs(cs))), "gates": near(gates, loose * 2, t)}
    kernel_row("rnn", "lstm_sequence", name, {"x": some(t, 1, steps, b, 4, h), "w": w, "h": first(t, start, steps), "c": first("f32", c, steps), "gates": poison(t, steps, b, 4, h)}, run, **tiles)
    hs, cs, gates = lstm_all(wide(some(t, 1, steps, b, 4, h)).astype(float), wide(w).astype(float), wide(start).astype(float), wide(c).astype(float))

    def back(a, t=t, loose=loose):
        dz, dh, dc = lstm_all_back(*f64(a, "dy", "w", "gates", "c", "dc"))
        most = loose * (4 + np.abs(dz).max(initial=0)) * 4
        return {"dz": near(dz, most, t), "dh_start": near(dh, most, t), "dc": within(dc, most)}
    kernel_row("rnn", "lstm_sequence_backward", name, {"dy": normal(t, 5, steps, b, h), "w": w, "gates": bytes_as(t, gates), "c": bytes_as("f32", cs), "dz": poison(t, steps, b, 4, h), "dh_start": poison(t, b, h), "dc": normal("f32", 6, b, h)}, back, **tiles)

    w3, bias = bytes_as(t, wide(w)[:, :3]), some(t, 7, h)

    def run3(a, t=t, loose=loose):
        hs, gates = gru_all(a["x"].astype(float), a["w"].astype(float), a["bias"].astype(float), a["h"][0].astype(float), lambda v: quantize(v, t))
        return {"h": near(hs, loose * 2, t), "gates": near(gates, loose * (2 + np.abs(gates)), t)}
    kernel_row("rnn", "gru_sequence", name, {"x": some(t, 1, steps, b, 3, h), "w": w3, "bias": bias, "h": first(t, start, steps), "gates": poison(t, steps, b, 4, h)}, run3, **tiles)
    hs, gates = gru_all(wide(some(t, 1, steps, b, 3, h)).astype(float), wide(w3).astype(float), wide(bias).astype(float), wide(start).astype(float))

    def back3(a, t=t, loose=loose):
        dx, du, dh = gru_all_back(*f64(a, "dy", "w", "gates", "h"))
        most = loose * (4 + np.abs(dx).max(initial=0)) * 4
        return {"dx": near(dx, most, t), "du": near(du, most, t), "dh": within(dh, most)}
    kernel_row("rnn", "gru_sequence_backward", name, {"dy": normal(t, 5, steps, b, h), "w": w3, "gates": bytes_as(t, gates), "h": bytes_as(t, hs), "dx": poison(t, steps, b, 3, h), "du": poison(t, steps, b, 3, h), "dh": poison("f32", b, h)}, back3, **tiles)
