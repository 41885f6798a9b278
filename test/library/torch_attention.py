"""std.kernels.attention: whole batches, and sequences of different lengths behind each other."""
import torch

from beside_torch import case


def attended(q, k, v, o, *, scale, left, cap, slope, sink):
    """O and lse of q [H, M, D] over k and v [HK, N, D]; rows that see nothing are 0 and -inf."""
    heads, m, n = q.shape[0], q.shape[1], k.shape[1]
    k, v = (x.repeat_interleave(heads // x.shape[0], 0) for x in (k, v))
    s = q @ k.transpose(1, 2) * scale
    if "softcap" in o:
        s = cap * torch.tanh(s / cap)
    i, j = torch.arange(m)[:, None] + n - m, torch.arange(n)
    if "alibi" in o:
        s = s - (i - j).abs() * slope[:, None, None]
    seen = torch.ones(m, n, dtype=torch.bool)
    if "causal" in o:
        seen = seen & (j <= i)
    if "window" in o:
        seen = seen & (j >= i - left)
    s = s.masked_fill(~seen, -torch.inf)
    if "sinks" in o:
        s = torch.cat([s, sink[:, None, None].expand(heads, m, 1)], 2)
        return torch.softmax(s, 2)[:, :, :n] @ v, torch.logsumexp(s, 2)
    some = seen.any(1)[:, None]
    p = torch.softmax(torch.where(some, s, 0), 2) * some
    return p @ v, torch.logsumexp(s, 2)


class Setup:
    """What both cases draw: numbers of heads and the options' arguments, for torch and for the kernels."""

    def scores(self, longest=0):
        return {f"s.{name}": value for name, value in self.numbers.items()} | {"s.longest": longest, "s.page": 0}

    def __init__(self, run, o):
        self.hk, self.d, self.dv = run.dim(2), 16, 24 if "softcap" in o else 16
        self.h = self.hk * run.dim(3)
        self.slope, self.sink = run.normal(self.h, scale=0.2).detach().abs(), run.normal(self.h)
        self.numbers = {"scale": 0.3, "cap": 1.5, "left": int(run.integers(0, 20, 1))}
        self.consts = {"T": run.T, "t.D": self.d, "t.DV": self.dv, **{f"o.{name}": True for name in o}}
        self.slopes = {"slope": self.slope if "alibi" in o else None}
        self.both = {"sink": self.sink if "sinks" in o else None, **self.slopes}
        self.torch = {"slope": self.slope, "sink": self.sink, **self.numbers}
        self.of_rows = {"T": run.T, "DV": self.dv, "o.sinks": "sinks" in o, "BM": 16}
        self.dsink = torch.zeros(self.h) if "sinks" in o else None
        self.times = 8  # probabilities have the absolute error of scores, some units large


FORWARD, BACKWARD = {"t.BM": 32, "t.BN": 16}, {"t.BM": 16, "t.BN": 16}
COMBINATIONS = ((), ("causal",), ("causal", "window"), ("causal", "window", "softcap", "sinks"), ("alibi", "window"))


@case(*({"o": o} for o in COMBINATIONS))
def attention(run, o):
    s, b, m, n = Setup(run, o), run.dim(2), run.dim(50), run.dim(50)
    q, k, v = run.normal(b, s.h, m, s.d), run.normal(b, s.hk, n, s.d), run.normal(b, s.hk, n, s.dv)
    y, lse = (torch.stack(x) for x in zip(*(attended(*each, o, **s.torch) for each in zip(q, k, v))))
    dy = run.like(y)
    y.backward(dy)
    ours = run("attention", "attention", {**s.consts, **FORWARD}, Q=q, K=k, V=v, O=(b, s.h, m, s.dv), lse=(b, s.h, m), **s.both, **s.scores())
    run.agree("O", ours.O, y, s.times)
    run.agree("lse", ours.lse, lse, s.times)
    of_rows = run("attention", "attention_backward_delta", s.of_rows, O=ours.O, dO=dy, lse=ours.lse, delta=lse.shape, sink=s.both["sink"], dsink=s.dsink)
    both = {"Q": q, "K": k, "V": v, "dO": dy, "lse": ours.lse, "delta": of_rows.delta, **s.slopes, **s.scores()}
    of_q = run("attention", "attention_backward_dq", {**s.consts, **BACKWARD}, dQ=q.shape, **both)
    of_k = run("attention", "attention_backward_dkdv", {**s.consts, **BACKWARD}, dK=k.shape, dV=v.shape, **both)
    for what, got, x in (("dQ", of_q.dQ, q), ("dK", of_k.dK, k), ("dV", of_k.dV, v)):
        run.agree(what, got, x.grad, s.times)
    if "sinks" in o:
        run.agree("dsink", of_rows.dsink, s.sink.grad, s.times)


def starts(lengths):
    return torch.cat([torch.zeros(1, dtype=torch.long), torch.tensor(lengths).cumsum(0)])


@case({"o": ("causal",)}, {"o": ("causal", "window", "sinks")})
def attention_varlen(run, o):
    s, b = Setup(run, o), run.dim(4)
    ms, ns = [run.dim(40, 0) for _ in range(b)], [run.dim(40, 0) for _ in range(b)]
    q, k, v = run.normal(sum(ms), s.h, s.d), run.normal(sum(ns), s.hk, s.d), run.normal(sum(ns), s.hk, s.dv)
    parts = zip(q.split(ms), k.split(ns), v.split(ns))
    each = [attended(*(x.transpose(0, 1) for x in part), o, **s.torch) for part in parts]
    y, lse = torch.cat([x.transpose(0, 1) for x, _ in each]), torch.cat([x for _, x in each], 1)
    dy = run.like(y)
    y.backward(dy)
    places = {"Q": q, "K": k, "V": v, "from_q": starts(ms), "from_k": starts(ns)}
    ours = run("attention", "attention_varlen", {**s.consts, **FORWARD}, O=y.shape, lse=lse.shape, **places, **s.both, **s.scores(max(ms)))
    run.agree("O", ours.O, y, s.times)
    run.agree("lse", ours.lse, lse, s.times)
    batch = {name: x.transpose(0, 1)[None] for name, x in (("O", ours.O), ("dO", dy))} | {"lse": ours.lse[None]}
    of_rows = run("attention", "attention_backward_delta", s.of_rows, delta=(1, *lse.shape), sink=s.both["sink"], dsink=s.dsink, **batch)
    both = {"dO": dy, "lse": ours.lse, "delta": of_rows.delta[0], **places, **s.slopes}
    of_q = run("attention", "attention_varlen_backward_dq", {**s.consts, **BACKWARD}, dQ=q.shape, **both, **s.scores(max(ms)))
    of_k = run("attention", "attention_varlen_backward_dkdv", {**s.consts, **BACKWARD}, dK=k.shape, dV=v.shape, **both, **s.scores(max(ns)))
    for what, got, x in (("dQ", of_q.dQ, q), ("dK", of_k.dK, k), ("dV", of_k.dV, v)):
        run.agree(what, got, x.grad, s.times)
    if "sinks" in o:
        run.agree("dsink", of_rows.dsink, s.sink.grad, s.times)
