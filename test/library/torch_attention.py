"""std.kernels.attention: whole batches, and sequences of different lengths behind each other."""
import torch

from beside_torch import case


def attended(q, k, v, o, *, scale, left, cap, slope, sink):
    """O and lse of q [H, M, D] over k and v [HK, N, D]; rows that see nothing are 0 and -inf."""
    heads, m, n = q.shape[0], q.shape[1], k.shape[1]
    k, v = (x.repeat_interleave(heads // x.shape[0], 0) for x in (k, v))
    s = q @ k.transpose(1, 2) * scale
    if "SOFTCAP" in o:
        s = cap * torch.tanh(s / cap)
    i, j = torch.arange(m)[:, None] + n - m, torch.arange(n)
    if "ALIBI" in o:
        s = s - (i - j).abs() * slope[:, None, None]
    seen = torch.ones(m, n, dtype=torch.bool)
    if "CAUSAL" in o:
        seen = seen & (j <= i)
    if "WINDOW" in o:
        seen = seen & (j >= i - left)
    s = s.masked_fill(~seen, -torch.inf)
    if "SINKS" in o:
        s = torch.cat([s, sink[:, None, None].expand(heads, m, 1)], 2)
        return torch.softmax(s, 2)[:, :, :n] @ v, torch.logsumexp(s, 2)
    some = seen.any(1)[:, None]
    p = torch.softmax(torch.where(some, s, 0), 2) * some
    return p @ v, torch.logsumexp(s, 2)


class Setup:
    """What both cases draw: numbers of heads and the options' arguments, for torch and for the kernels."""

    def __init__(self, run, o):
        self.hk, self.d, self.dv = run.dim(2), 16, 24 if "SOFTCAP" in o else 16
        self.h = self.hk * run.dim(3)
        self.slope, self.sink = run.normal(self.h, scale=0.2).detach().abs(), run.normal(self.h)
        self.numbers = {"scale": 0.3, "cap": 1.5, "left": int(run.integers(0, 20, 1))}
        self.consts = {"T": run.T, "D": self.d, "DV": self.dv, **{name: True for name in o}}
        self.masks = {"slope": self.slope if "ALIBI" in o else None, **self.numbers}
        self.both = {"sink": self.sink if "SINKS" in o else None, **self.masks}
        self.torch = {"slope": self.slope, "sink": self.sink, **self.numbers}
        self.dsink = torch.zeros(self.h) if "SINKS" in o else None
        self.times = 8  # probabilities have the absolute error of scores, some units large


FORWARD, BACKWARD = {"BM": 32, "BN": 16}, {"BM": 16, "BN": 16}
COMBINATIONS = ((), ("CAUSAL",), ("CAUSAL", "WINDOW"), ("CAUSAL", "WINDOW", "SOFTCAP", "SINKS"), ("ALIBI", "WINDOW"))


@case(*({"o": o} for o in COMBINATIONS))
def attention(run, o):
    s, b, m, n = Setup(run, o), run.dim(2), run.dim(50), run.dim(50)
    q, k, v = run.normal(b, s.h, m, s.d), run.normal(b, s.hk, n, s.d), run.normal(b, s.hk, n, s.dv)
    y, lse = (torch.stack(x) for x in zip(*(attended(*each, o, **s.torch) for each in zip(q, k, v))))
    dy = run.like(y)
    y.backward(dy)
    ours = run("attention", "attention", {**s.consts, **FORWARD}, Q=q, K=k, V=v, O=(b, s.h, m, s.dv), lse=(b, s.h, m), **s.both)
    run.agree("O", ours.O, y, s.times)
    run.agree("lse", ours.lse, lse, s.times)
    of_q = run("attention", "attention_backward_dq", {**s.consts, **BACKWARD}, Q=q, K=k, V=v, O=ours.O, dO=dy, lse=ours.lse, dQ=q.shape, delta=(b, s.h, m), dsink=s.dsink, **s.both)
    s.consts.pop("SINKS", None)
    of_k = run("attention", "attention_backward_dkdv", {**s.consts, **BACKWARD}, Q=q, K=k, V=v, dO=dy, lse=ours.lse, delta=of_q.delta, dK=k.shape, dV=v.shape, **s.masks)
    for what, got, x in (("dQ", of_q.dQ, q), ("dK", of_k.dK, k), ("dV", of_k.dV, v)):
        run.agree(what, got, x.grad, s.times)
    if "SINKS" in o:
        run.agree("dsink", of_q.dsink, s.sink.grad, s.times)


def starts(lengths):
    return torch.cat([torch.zeros(1, dtype=torch.long), torch.tensor(lengths).cumsum(0)])


@case({"o": ("CAUSAL",)}, {"o": ("CAUSAL", "WINDOW", "SINKS")})
def attention_varlen(run, o):
    s, b = Setup(run, o), run.dim(4)
    ms, ns = [run.dim(40, 0) for _ in range(b)], [run.dim(40, 0) for _ in range(b)]
    q, k, v = run.normal(sum(ms), s.h, s.d), run.normal(sum(ns), s.hk, s.d), run.normal(sum(ns), s.hk, s.dv)
    parts = zip(q.split(ms), k.split(ns), v.split(ns))
    each = [attended(*(x.transpose(0, 1) for x in part), o, **s.torch) for part in parts]
    y, lse = torch.cat([x.transpose(0, 1) for x, _ in each]), torch.cat([x for _, x in each], 1)
    dy = run.like(y)
    y.backward(dy)
    places = {"from_q": starts(ms), "from_k": starts(ns), "B": b}
    over_q = {"Q": q, "K": k, "V": v, "longest": max(ms), **places, **s.both}
    ours = run("attention", "attention_varlen", {**s.consts, **FORWARD}, O=y.shape, lse=lse.shape, **over_q)
    run.agree("O", ours.O, y, s.times)
    run.agree("lse", ours.lse, lse, s.times)
    of_q = run("attention", "attention_varlen_backward_dq", {**s.consts, **BACKWARD}, O=ours.O, dO=dy, lse=ours.lse, dQ=q.shape, delta=lse.shape, dsink=s.dsink, **over_q)
    s.consts.pop("SINKS", None)
    of_k = run("attention", "attention_varlen_backward_dkdv", {**s.consts, **BACKWARD}, Q=q, K=k, V=v, dO=dy, lse=ours.lse, delta=of_q.delta, dK=k.shape, dV=v.shape, longest=max(ns),
               **places, **s.masks)
    for what, got, x in (("dQ", of_q.dQ, q), ("dK", of_k.dK, k), ("dV", of_k.dV, v)):
        run.agree(what, got, x.grad, s.times)
    if "SINKS" in o:
        run.agree("dsink", of_q.dsink, s.sink.grad, s.times)
