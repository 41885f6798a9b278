"""std.kernels.rnn beside torch.nn's modules, std.kernels.recurrent beside loops over the tokens."""
import torch
import torch.nn.functional as F

from beside_torch import case


# ---- LSTM and GRU: the modules' input weights are the identity, so that what they get is the kernels' x ------------------------
def module(run, kind, gates, h):
    """kind(gates h, h) of f64 with random weights of states and biases; w [H, gates, H] and the biases [gates, H], as the kernels have them."""
    m = kind(gates * h, h).double()
    parameters = dict(m.named_parameters())
    of = lambda name: next(p for n, p in parameters.items() if n.startswith(name))
    of("weight_ih").data = torch.eye(gates * h).double()
    of("weight_hh").data = run.normal(gates * h, h, scale=0.6 * h**-0.5).detach()
    for name in ("bias_ih", "bias_hh"):
        of(name).data = run.normal(gates * h).detach()
    w = of("weight_hh").data.reshape(gates, h, h).permute(2, 0, 1)
    return m, of("weight_hh"), w, of("bias_ih").data.reshape(gates, h), of("bias_hh").data.reshape(gates, h), of("bias_hh")


def by_weight(before, du):
    """The derivative by torch's weight of states, [gates H, H]."""
    return torch.einsum("lbk,lbgj->gjk", before, du).flatten(0, 1)


@case({"T": "f32"}, {"T": "f64"})
def lstm_cell(run, T):
    b, h = run.dim(20), run.dim(90)
    m, _, _, bias_x, bias_u, _ = module(run, torch.nn.LSTMCell, 4, h)
    x, state, c, dh, dc = run.normal(b, 4 * h), run.normal(b, h).detach(), run.normal(b, h), run.normal(b, h).detach(), run.normal(b, h).detach()
    out, after = m(x, (state, c))
    ((out * dh).sum() + (after * dc).sum()).backward()
    u = (state @ m.weight_hh.T).reshape(b, 4, h) + bias_u
    ours = run("rnn", "lstm_cell", {"T": T, "A": T}, x=x.reshape(b, 4, h) + bias_x, u=u, c=c, h=(b, h), c_next=(b, h), gates=(b, 4, h))
    run.agree("h", ours.h, out)
    run.agree("c", ours.c_next, after)
    back = run("rnn", "lstm_cell_backward", {"T": T, "A": T}, dh=dh, dc=dc, gates=ours.gates, c=c, c_next=ours.c_next, dz=(b, 4, h), dc_before=(b, h))
    run.agree("dz", back.dz, x.grad.reshape(b, 4, h))
    run.agree("dc", back.dc_before, c.grad)


@case({"T": "f32"}, {"T": "f64"})
def gru_cell(run, T):
    b, h = run.dim(20), run.dim(90)
    m, _, _, bias_x, bias_u, _ = module(run, torch.nn.GRUCell, 3, h)
    x, state = run.normal(b, 3 * h), run.normal(b, h)
    out = m(x, state)
    dh = run.like(out)
    out.backward(dh)
    u = (state @ m.weight_hh.T).reshape(b, 3, h) + bias_u
    ours = run("rnn", "gru_cell", {"T": T}, x=x.reshape(b, 3, h) + bias_x, u=u, h=state, h_next=(b, h), gates=(b, 4, h))
    run.agree("h", ours.h_next, out)
    back = run("rnn", "gru_cell_backward", {"T": T}, dh=dh, gates=ours.gates, h=state, dx=(b, 3, h), du=(b, 3, h), dh_before=(b, h))
    run.agree("dx", back.dx, x.grad.reshape(b, 3, h))
    run.agree("dbias of the state's product", back.du.sum(0).flatten(), m.bias_hh.grad, 2)
    run.agree("dh", back.dh_before + back.du.flatten(1) @ m.weight_hh.detach(), state.grad, 4)


def from_first(first, steps):
    return torch.cat([first.detach()[None], torch.zeros(steps, *first.shape)])


@case({"T": "f32"}, {"T": "f64"})
def lstm_sequence(run, T):
    steps, b, h = run.dim(6), run.dim(20), run.dim(50)
    m, weight, w, bias_x, bias_u, bias = module(run, torch.nn.LSTM, 4, h)
    x, first, c, dy, dc = run.normal(steps, b, 4 * h), run.normal(b, h), run.normal(b, h), run.normal(steps, b, h).detach(), run.normal(b, h).detach()
    y, (_, last) = m(x, (first[None], c[None]))
    ((y * dy).sum() + (last[0] * dc).sum()).backward()
    ours = run("rnn", "lstm_sequence", {"T": T, "A": T}, x=x.reshape(steps, b, 4, h) + bias_x + bias_u, w=w, h=from_first(first, steps), c=from_first(c, steps), gates=(steps, b, 4, h))
    run.agree("h", ours.h[1:], y, 2)
    run.agree("c", ours.c[-1], last[0], 2)
    back = run("rnn", "lstm_sequence_backward", {"T": T, "A": T}, dy=dy, w=w, gates=ours.gates, c=ours.c, dz=(steps, b, 4, h), dh_start=(b, h), dc=dc)
    run.agree("dz", back.dz, x.grad.reshape(back.dz.shape), 4)
    run.agree("dh", back.dh_start, first.grad, 4)
    run.agree("dc", back.dc, c.grad, 4)
    run.agree("dw", by_weight(ours.h[:-1], back.dz), weight.grad, 4)
    run.agree("dbias", back.dz.sum((0, 1)).flatten(), bias.grad, 4)


@case({"T": "f32"}, {"T": "f64"})
def gru_sequence(run, T):
    steps, b, h = run.dim(6), run.dim(20), run.dim(50)
    m, weight, w, bias_x, bias_u, bias = module(run, torch.nn.GRU, 3, h)
    x, first, dy = run.normal(steps, b, 3 * h), run.normal(b, h), run.normal(steps, b, h).detach()
    y, _ = m(x, first[None])
    y.backward(dy)
    bias_x[:2] += bias_u[:2]
    ours = run("rnn", "gru_sequence", {"T": T, "A": T}, x=x.reshape(steps, b, 3, h) + bias_x, w=w, bias=bias_u[2], h=from_first(first, steps), gates=(steps, b, 4, h))
    run.agree("h", ours.h[1:], y, 2)
    back = run("rnn", "gru_sequence_backward", {"T": T, "A": T}, dy=dy, w=w, gates=ours.gates, h=ours.h, dx=(steps, b, 3, h), du=(steps, b, 3, h), dh=(b, h))
    run.agree("dx", back.dx, x.grad.reshape(back.dx.shape), 4)
    run.agree("dh", back.dh, first.grad, 4)
    run.agree("dw", by_weight(ours.h[:-1], back.du), weight.grad, 4)
    run.agree("dbias", back.du.sum((0, 1)).flatten(), bias.grad, 4)


# ---- layers with a state ------------------------------------------------------------------------------------------------
def loop(q, k, v, g, beta, state, scale):
    """Outputs and the last state: the delta rule, or without beta plain sums. Heads are repeated before."""
    outputs = []
    for t in range(q.shape[2]):
        state = state * g[:, :, t].exp()[..., None, None]
        u = v[:, :, t] if beta is None else (v[:, :, t] - torch.einsum("bhdv,bhd->bhv", state, k[:, :, t])) * beta[:, :, t, None]
        state = state + k[:, :, t, :, None] * u[:, :, None]
        outputs.append(torch.einsum("bhdv,bhd->bhv", state, q[:, :, t]) * scale)
    return torch.stack(outputs, 2), state


@case({"kernel": "linear_attention"}, {"kernel": "gated_delta_rule"}, {"kernel": "gated_delta_rule_chunks"})
def state_layers(run, kernel):
    b, hk, l, d, dv, scale = run.dim(2), run.dim(2), run.dim(70), 16, run.dim(40), 0.3
    h = hk * run.dim(3)
    q, v, start = run.normal(b, h, l, d), run.normal(b, h, l, dv), run.normal(b, h, d, dv)
    k, g = F.normalize(run.normal(b, hk, l, d).detach(), dim=3), -run.normal(b, h, l, scale=0.3).detach().abs()
    beta = torch.sigmoid(run.normal(b, h, l).detach()) if kernel != "linear_attention" else None
    y, end = loop(q, k.repeat_interleave(h // hk, 1), v, g, beta, start, scale)
    more = {} if beta is None else {"beta": beta}
    ours = run("recurrent", kernel, {"T": run.T, "D": d, "GATED": True, "START": True}, q=q, k=k, v=v, g=g, start=start, o=y.shape, end=end.shape, scale=scale, **more)
    run.agree("o", ours.o, y, 8)
    run.agree("the state", ours.end, end, 8)


@case()
def ssd(run):
    z, l, g, n, p = run.dim(2), run.dim(70), run.dim(2), 16, run.dim(40)
    h = g * run.dim(3)
    x, dt, rate, skip, bias = run.normal(z, l, h, p), run.normal(z, l, h), -run.normal(h).detach().abs(), run.normal(h), run.normal(h)
    b, c, state = run.normal(z, l, g, n, scale=0.3), run.normal(z, l, g, n, scale=0.3), run.normal(z, h, n, p)
    start, outputs, step = state, [], F.softplus(dt + bias)
    of_head = lambda m: m.repeat_interleave(h // g, 2)
    for t in range(l):
        state = state * (step[:, t] * rate).exp()[..., None, None] + (step[:, t, :, None] * of_head(b)[:, t])[..., None] * x[:, t, :, None]
        outputs.append(torch.einsum("zhnp,zhn->zhp", state, of_head(c)[:, t]) + x[:, t] * skip[:, None])
    y = torch.stack(outputs, 1)
    ours = run("recurrent", "ssd", {"T": run.T, "N": n, "SOFTPLUS": True, "START": True}, x=x, dt=dt, A=rate, Bt=b, Ct=c, D=skip, bias=bias, start=start, y=y.shape, end=state.shape)
    run.agree("y", ours.y, y, 8)
    run.agree("the state", ours.end, state, 8)


@case()
def selective_scan(run):
    z, k, l, n = run.dim(2), run.dim(20), run.dim(70), 16
    u, dt, rate = run.normal(z, k, l), run.normal(z, k, l), -run.normal(k, n).detach().abs()
    b, c, skip, bias, gate, state = run.normal(z, n, l), run.normal(z, n, l, scale=0.3), run.normal(k), run.normal(k), run.normal(z, k, l), run.normal(z, k, n)
    start, outputs, step = state, [], F.softplus(dt + bias[:, None])
    for t in range(l):
        s = step[:, :, t, None]
        state = state * (s * rate).exp() + s * u[:, :, t, None] * b[:, None, :, t]
        outputs.append((state * c[:, None, :, t]).sum(2) + skip * u[:, :, t])
    y = torch.stack(outputs, 2) * F.silu(gate)
    consts = {"T": run.T, "N": n, "o.softplus": True, "o.gate": True, "o.start": True}
    ours = run("recurrent", "selective_scan", consts, u=u, dt=dt, A=rate, Bt=b, Ct=c, skip=skip, bias=bias, z=gate, start=start, y=y.shape, end=state.shape)
    run.agree("y", ours.y, y, 8)
    run.agree("the state", ours.end, state, 8)
