"""std.kernels.losses."""
import torch
import torch.nn.functional as F

from beside_torch import case

IGNORE = -100


def labels(run, m, v):
    """Some of them ignored."""
    return torch.where(torch.from_numpy(run.rng.random(m)) < 0.2, torch.tensor(IGNORE), run.integers(0, v, m))


def with_z(loss, x, label, z):
    return loss + torch.where(label == IGNORE, 0.0, z * torch.logsumexp(x, 1) ** 2)


@case({"smoothing": 0.0, "z": 0.0}, {"smoothing": 0.1, "z": 0.01})
def cross_entropy(run, smoothing, z):
    m, v = run.dim(20), run.dim(300)
    x, label = run.normal(m, v, scale=3), labels(run, m, v)
    loss = with_z(F.cross_entropy(x, label, reduction="none", ignore_index=IGNORE, label_smoothing=smoothing), x, label, z)
    dloss = run.like(loss)
    loss.backward(dloss)
    numbers = {"smoothing": smoothing, "z": z, "ignore": IGNORE}
    ours = run("losses", "cross_entropy", {"T": run.T, "BV": 128}, x=x, label=label, loss=(m,), lse=(m,), **numbers)
    run.agree("loss", ours.loss, loss, 2)
    run.agree("lse", ours.lse, torch.logsumexp(x, 1))
    back = run("losses", "cross_entropy_backward", {"T": run.T, "BV": 128}, x=x, label=label, lse=ours.lse, dloss=dloss, dx=(m, v), **numbers)
    run.agree("dx", back.dx, x.grad, 2)


@case()
def linear_cross_entropy(run):
    m, v, d, parts, z = run.dim(40), run.dim(150), run.dim(50), run.dim(4), 0.01
    h, w, label = run.normal(m, d), run.normal(v, d, scale=d**-0.5), labels(run, m, v)
    x = h @ w.T
    loss = with_z(F.cross_entropy(x, label, reduction="none", ignore_index=IGNORE), x, label, z)
    dloss = run.like(loss)
    loss.backward(dloss)
    both, blocks = {"label": label, "ignore": IGNORE, "z": z}, {"T": run.T, "BM": 16, "BV": 32, "BK": 16}
    part = run("losses", "linear_cross_entropy", blocks, h=h, W=w, label=label, part=(m, parts, 2)).part
    ours = run("losses", "linear_cross_entropy_merge", {}, part=part, V=v, loss=(m,), lse=(m,), **both)
    run.agree("loss", ours.loss, loss, 2)
    back = run("losses", "linear_cross_entropy_backward", blocks, h=h, W=w, lse=ours.lse, dloss=dloss, dh=torch.zeros(m, d), dW=torch.zeros(v, d), **both)
    run.agree("dh", back.dh, h.grad, 2)
    run.agree("dW", back.dW, w.grad, 2)


@case({"loss": "kl_divergence"}, {"loss": "jsd"})
def two_distributions(run, loss):
    m, v, beta, temperature = run.dim(9), run.dim(300), float(run.rng.uniform(0.1, 0.9)), float(run.rng.uniform(0.5, 3))
    x, t = run.normal(m, v, scale=2), run.normal(m, v, scale=2).detach()
    q, p = F.log_softmax(x / temperature, 1), F.log_softmax(t / temperature, 1)
    far = lambda a, b: F.kl_div(b, a, log_target=True, reduction="none").sum(1)
    middle = torch.log(beta * p.exp() + (1 - beta) * q.exp())
    y = far(p, q) if loss == "kl_divergence" else beta * far(p, middle) + (1 - beta) * far(q, middle)
    dloss = run.like(y)
    y.backward(dloss)
    more = {"beta": beta} if loss == "jsd" else {}
    ours = run("losses", loss, {"T": run.T, "BV": 128}, x=x, t=t, dloss=dloss, loss=(m,), dx=(m, v), temperature=temperature, **more)
    run.agree("loss", ours.loss, y, 4)
    run.agree("dx", ours.dx, x.grad, 4)
