"""std.kernels.norms, layers and gan."""
import torch
import torch.nn.functional as F

from beside_torch import case

EPS = 1e-3


# ---- norms -------------------------------------------------------------------------------------------------------------
def summed(run, parts):
    return run("norms", "sum_parts", {}, part=parts, y=parts.shape[1:]).y


@case({"RESIDUAL": False, "BIAS": True}, {"RESIDUAL": True, "BIAS": False})
def layer_norm(run, RESIDUAL, BIAS):
    m, n, p = run.dim(20), run.dim(128), run.dim(4)
    consts = {"T": run.T, "BN": 128, "RESIDUAL": RESIDUAL, "BIAS": BIAS}
    x, w, residual, bias = run.normal(m, n), run.normal(n), run.normal(m, n), run.normal(n)
    total = x + residual if RESIDUAL else x
    y = F.layer_norm(total, (n,), w, bias if BIAS else None, EPS)
    dy, dtotal = run.like(y), run.like(y)
    ((y * dy).sum() + ((total * dtotal).sum() if RESIDUAL else 0)).backward()
    ours = run("norms", "layer_norm", consts, x=x, residual=residual if RESIDUAL else None, w=w, bias=bias if BIAS else None, y=(m, n), total=(m, n) if RESIDUAL else None,
               mean=(m,), rstd=(m,), eps=EPS)
    run.agree("y", ours.y, y)
    back = run("norms", "layer_norm_backward", consts, dy=dy, s=total, w=w, mean=ours.mean, rstd=ours.rstd, dtotal=dtotal if RESIDUAL else None, dx=(m, n), part_w=(p, n),
               part_bias=(p, n) if BIAS else None)
    run.agree("dx", back.dx, x.grad, 4)
    run.agree("dw", summed(run, back.part_w), w.grad)
    if BIAS:
        run.agree("dbias", summed(run, back.part_bias), bias.grad)


@case({"RESIDUAL": False}, {"RESIDUAL": True})
def rms_norm(run, RESIDUAL):
    m, n, p, offset = run.dim(20), run.dim(128), run.dim(4), float(run.integers(0, 2))
    consts = {"T": run.T, "BN": 128, "RESIDUAL": RESIDUAL}
    x, w, residual = run.normal(m, n), run.normal(n), run.normal(m, n)
    total = x + residual if RESIDUAL else x
    y = total * torch.rsqrt((total * total).mean(-1, keepdim=True) + EPS) * (w + offset)
    dy, dtotal = run.like(y), run.like(y)
    ((y * dy).sum() + ((total * dtotal).sum() if RESIDUAL else 0)).backward()
    ours = run("norms", "rms_norm", consts, x=x, residual=residual if RESIDUAL else None, w=w, y=(m, n), total=(m, n) if RESIDUAL else None, rstd=(m,), eps=EPS, offset=offset)
    run.agree("y", ours.y, y)
    back = run("norms", "rms_norm_backward", consts, dy=dy, s=total, w=w, rstd=ours.rstd, dtotal=dtotal if RESIDUAL else None, dx=(m, n), part_w=(p, n), offset=offset)
    run.agree("dx", back.dx, x.grad, 4)
    run.agree("dw", summed(run, back.part_w), w.grad)


# ---- layers ------------------------------------------------------------------------------------------------------------
def rotated(x, cos, sin, interleaved):
    """The first 2 I elements of each head turned: of pairs as complex numbers."""
    i = cos.shape[-1]
    a, b = (x[..., 0:2 * i:2], x[..., 1:2 * i:2]) if interleaved else (x[..., :i], x[..., i:2 * i])
    z = torch.complex(a, b) * torch.complex(cos, sin)
    turned = torch.stack([z.real, z.imag], -1).flatten(-2) if interleaved else torch.cat([z.real, z.imag], -1)
    return torch.cat([turned, x[..., 2 * i:]], -1)


@case({"D": 24, "I": 12, "INTERLEAVED": False}, {"D": 24, "I": 4, "INTERLEAVED": True})
def rope(run, D, I, INTERLEAVED):
    n, h, places, scaled = run.dim(20), run.dim(11), run.dim(60), INTERLEAVED
    x, place = run.normal(n, h, D), run.integers(0, places, n)
    factor = run.normal(I).detach().abs() + 1 if scaled else None
    angle = place[:, None].double() * 100.0 ** (-torch.arange(I).double() / I) / (factor if scaled else 1)
    y = rotated(x, angle.cos()[:, None], angle.sin()[:, None], INTERLEAVED)
    dy = run.like(y)
    y.backward(dy)
    tables = run("layers", "rope_tables", {"SCALED": scaled}, cosine=(places, I), sine=(places, I), factor=factor, base=100.0)
    consts = {"T": run.T, "D": D, "I": I, "INTERLEAVED": INTERLEAVED}
    both = {"place": place, "cosine": tables.cosine, "sine": tables.sine, "y": (n, h, D)}
    run.agree("y", run("layers", "rope", consts, x=x, **both).y, y, 16)  # an angle of 60 has 2^-18 of an error
    run.agree("dx", run("layers", "rope", {**consts, "BACKWARD": True}, x=dy, **both).y, x.grad, 16)


@case({"act": "silu"}, {"act": "gelu"}, {"act": "gelu_tanh"})
def gated(run, act):
    m, n = run.dim(9), run.dim(1100)
    functions = {"silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}
    x = run.normal(m, 2 * n)
    y = functions[act](x[:, :n]) * x[:, n:]
    dy = run.like(y)
    y.backward(dy)
    run.agree("y", run("layers", "gated", {"T": run.T, "act": f"activation.{act}"}, x=x, y=(m, n)).y, y)
    back = run("layers", "gated_backward", {"T": run.T, "act": f"activation.{act}", "grad": f"activation.{act}_grad"}, dy=dy, x=x, dx=(m, 2 * n))
    run.agree("dx", back.dx, x.grad)


@case()
def embedding(run):
    v, d, n, scale = run.dim(30), run.dim(70), run.dim(90), 1.5
    w, ids, padding = run.normal(v, d), run.integers(0, v, n), int(run.integers(-1, v))
    y = F.embedding(ids, w, padding_idx=padding if padding >= 0 else None) * scale
    dy = run.like(y)
    y.backward(dy)
    run.agree("y", run("layers", "embedding", {"T": run.T}, w=w, id=ids, y=(n, d), scale=scale).y, y)
    back = run("layers", "embedding_backward", {"T": run.T}, dy=dy, id=ids, dw=torch.zeros(v, d), scale=scale, padding=padding)
    run.agree("dw", back.dw, w.grad, 2)
    offsets = torch.bincount(ids, minlength=v).cumsum(0)
    back = run("layers", "embedding_backward_sorted", {"T": run.T}, dy=dy, order=ids.argsort(), offsets=F.pad(offsets, (1, 0)), dw=(v, d), scale=scale)
    if padding >= 0:
        back.dw[padding] = 0
    run.agree("dw, sorted", back.dw, w.grad, 2)


# ---- adversarial networks -----------------------------------------------------------------------------------------------
LOSSES = {
    "logistic": lambda x, t: F.binary_cross_entropy_with_logits(x, torch.full_like(x, t)),
    "least_squares": lambda x, t: F.mse_loss(x, torch.full_like(x, t)) / 2,
    "hinge": lambda x, t: F.relu(1 - t * x).mean(),
    "wasserstein": lambda x, t: -t * x.mean(),
}


@case(*({"loss": name} for name in LOSSES))
def gan_loss(run, loss):
    n, p, scale = run.dim(3000), run.dim(3), 2.0
    for target in (0.25, 1.0) if loss in ("logistic", "least_squares") else (-1.0, 1.0):
        x = run.normal(n, scale=3)
        y = LOSSES[loss](x, target)
        (y * scale).backward()
        ours = run("gan", "gan_loss", {"T": run.T, "loss": loss}, x=x, dx=(n,), part=(p,), target=target, scale=scale)
        run.agree("loss", ours.part.sum(), y)
        run.agree("dx", ours.dx * n, x.grad * n)


@case()
def spectral_norm(run):
    r, c = run.dim(40), run.dim(300)
    layer = torch.nn.Linear(c, r, bias=False).double()
    layer.weight.data = run.normal(r, c).detach()
    u = run.normal(r).detach()
    u /= u.norm()
    torch.nn.utils.spectral_norm(layer, eps=1e-12)
    layer.weight_u.copy_(u)
    w = layer.weight_orig
    for step in range(3):
        layer(torch.zeros(1, c).double())
        t = run("gan", "spectral_columns", {"T": run.T}, w=w, u=u, t=(c,)).t
        rows = run("gan", "spectral_rows", {"T": run.T}, w=w, t=t, v=(c,), s=(r,))
        ours = run("gan", "spectral_apply", {"T": run.T}, w=w, s=rows.s, u=(r,), sigma=(1,), y=(r, c))
        u = ours.u
        run.agree(f"u of step {step}", u, layer.weight_u, 8)
        run.agree(f"v of step {step}", rows.v, layer.weight_v, 8)
        run.agree(f"y of step {step}", ours.y, layer.weight, 8)
        run.agree(f"sigma of step {step}", ours.sigma * ours.y, w, 8)
