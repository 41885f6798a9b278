"""std.kernels.conv, pooling and image_norms. torch has the channels in front; filters are its [K, C / groups, R, S], ours [R, S, C / groups, K]."""
import types

import torch
import torch.nn.functional as F

from beside_torch import case

BLOCKS = {"BM": 32, "BN": 16}


def front(x):
    """[N, H, W, C] as torch has it."""
    return x.permute(0, 3, 1, 2).contiguous()


def back(x):
    return x.permute(0, 2, 3, 1)


def window(run, size_h, size_w):
    """A window that has an output, as torch's arguments, as the kernels', and its images' and outputs' extents."""
    o = types.SimpleNamespace(stride=(run.dim(3), run.dim(3)), padding=(run.dim(3, 0), run.dim(2, 0)), dilation=(run.dim(2), run.dim(3)))
    numbers = {}
    for name, pair in (("stride", o.stride), ("pad", o.padding), ("dilation", o.dilation)):
        numbers |= {f"{name}_h": pair[0], f"{name}_w": pair[1]}
    needed = [max(1, d * (size - 1) + 1 - 2 * p) for size, d, p in zip((size_h, size_w), o.dilation, o.padding)]
    h, w = (run.dim(n + 8, n) for n in needed)
    p, q = ((x + 2 * pad - d * (size - 1) - 1) // s + 1 for x, size, s, pad, d in zip((h, w), (size_h, size_w), o.stride, o.padding, o.dilation))
    return vars(o), numbers, h, w, p, q


# ---- convolutions -------------------------------------------------------------------------------------------------------
@case({"T": "f32", "GROUPS": 1}, {"T": "f64", "GROUPS": 1}, {"T": "f32", "GROUPS": 3})
def conv2d(run, T, GROUPS):
    r, s, n, c, k = run.dim(4), run.dim(3), run.dim(2), run.dim(9) * GROUPS, run.dim(9) * GROUPS
    o, numbers, h, w, p, q = window(run, r, s)
    x, f, bias = run.normal(n, h, w, c), run.normal(r, s, c // GROUPS, k), run.normal(k)
    y = back(F.conv2d(front(x), f.permute(3, 2, 0, 1).contiguous(), bias, groups=GROUPS, **o))
    dy = run.like(y)
    y.backward(dy)
    consts, parts = {"T": T, "GROUPS": GROUPS}, run.dim(3)
    ours = run("conv", "conv2d", {**consts, **BLOCKS, "BC": 16, "BIAS": True}, x=x, w=f, bias=bias, y=(n, p, q, k), window=numbers)
    run.agree("y", ours.y, y, 2)
    ours = run("conv", "conv2d_backward_data", {**consts, **BLOCKS, "BK": 16}, dy=dy, w=f, dx=x.shape, window=numbers)
    run.agree("dx", ours.dx, x.grad, 2)
    tiles = torch.zeros(r * s * GROUPS, -(-c // GROUPS // 16), -(-k // GROUPS // 16))
    ours = run("conv", "conv2d_backward_weight", {**consts, "A": T, "BM": 16, "BN": 16, "BK": 16}, x=x, dy=dy, dw=f.shape, parts=(parts, *f.shape), arrived=tiles, window=numbers)
    run.agree("dw", ours.dw, f.grad, 2)
    part = run("conv", "bias_backward", {"T": T, "A": T}, dy=dy.reshape(-1, k), part=(parts, k)).part
    run.agree("dbias", part.sum(0), bias.grad, 2)


@case({"T": "f32"}, {"T": "f64"})
def conv2d_transpose(run, T):
    r, s, n, c, k = run.dim(4), run.dim(3), run.dim(2), run.dim(9), run.dim(9)
    o, numbers, h, w, p, q = window(run, r, s)
    x, f, bias = run.normal(n, p, q, c), run.normal(r, s, k, c), run.normal(k)
    more = [size - ((out - 1) * st - 2 * pad + d * (taps - 1) + 1) for size, out, st, pad, d, taps in zip((h, w), (p, q), o["stride"], o["padding"], o["dilation"], (r, s))]
    if any(m >= max(st, d) for m, st, d in zip(more, o["stride"], o["dilation"])):  # torch wants less
        return conv2d_transpose(run, T)
    y = back(F.conv_transpose2d(front(x), f.permute(3, 2, 0, 1).contiguous(), bias, output_padding=more, **o))
    dy = run.like(y)
    y.backward(dy)
    ours = run("conv", "conv2d_transpose", {"T": T, **BLOCKS, "BK": 16, "BIAS": True}, x=x, w=f, bias=bias, y=(n, h, w, k), window=numbers)
    run.agree("y", ours.y, y, 2)
    ours = run("conv", "conv2d", {"T": T, **BLOCKS, "BC": 16}, x=dy, w=f, bias=None, y=x.shape, window=numbers)
    run.agree("dx", ours.y, x.grad, 2)
    ours = run("conv", "conv2d_backward_weight", {"T": T, "A": T, "BM": 16, "BN": 16, "BK": 16}, x=dy, dy=x, dw=f.shape, parts=(1, *f.shape), arrived=torch.zeros(r * s, 1, 1), window=numbers)
    run.agree("dw", ours.dw, f.grad, 2)


@case({"T": "f32", "MULTIPLE": 1}, {"T": "f64", "MULTIPLE": 1}, {"T": "f32", "MULTIPLE": 3})
def depthwise_conv2d(run, T, MULTIPLE):
    r, s, n, c, parts = run.dim(4), run.dim(3), run.dim(2), run.dim(70), run.dim(3)
    o, numbers, h, w, p, q = window(run, r, s)
    k, consts = c * MULTIPLE, {"T": T, "MULTIPLE": MULTIPLE}
    x, f, bias = run.normal(n, h, w, c), run.normal(r, s, k), run.normal(k)
    y = back(F.conv2d(front(x), f.permute(2, 0, 1)[:, None].contiguous(), bias, groups=c, **o))
    dy = run.like(y)
    y.backward(dy)
    run.agree("y", run("conv", "depthwise_conv2d", {**consts, "BIAS": True}, x=x, w=f, bias=bias, y=(n, p, q, k), window=numbers).y, y)
    run.agree("dx", run("conv", "depthwise_conv2d_backward_data", consts, dy=dy, w=f, dx=x.shape, window=numbers).dx, x.grad)
    run.agree("dw", run("conv", "depthwise_conv2d_backward_weight", {**consts, "A": T}, x=x, dy=dy, parts=(parts, *f.shape), window=numbers).parts.sum(0), f.grad, 2)


# ---- pooling ------------------------------------------------------------------------------------------------------------
@case({"T": "f32"}, {"T": "f64"})
def max_pool2d(run, T):
    r, s, n, c = run.dim(4, 2), run.dim(4, 2), run.dim(2), run.dim(70)
    o, numbers, h, w, p, q = window(run, r, s)
    o["padding"] = tuple(min(pad, size // 2) for pad, size in zip(o["padding"], (r, s)))  # torch wants no more
    numbers |= {"pad_h": o["padding"][0], "pad_w": o["padding"][1]}
    x = run.normal(n, h + 6, w + 6, c)
    y, index = F.max_pool2d(front(x), (r, s), return_indices=True, **o)
    dy = run.like(back(y))
    back(y).backward(dy)
    size = {"kernel_h": r, "kernel_w": s, "window": numbers}
    ours = run("pooling", "max_pool2d", {"T": T}, x=x, y=back(y).shape, index=back(y).shape, **size)
    run.agree("y", ours.y, back(y))
    run.agree("index", ours.index, back(index))
    run.agree("dx", run("pooling", "max_pool2d_backward", {"T": T}, dy=dy, index=ours.index, dx=x.shape, **size).dx, x.grad)


@case({"T": "f32", "COUNT_PAD": False}, {"T": "f64", "COUNT_PAD": True})
def avg_pool2d(run, T, COUNT_PAD):
    r, s, n, c = run.dim(4, 2), run.dim(4, 2), run.dim(2), run.dim(70)
    stride, pad = (run.dim(3), run.dim(3)), (run.dim(r // 2, 0), run.dim(s // 2, 0))
    x = run.normal(n, run.dim(12, r), run.dim(12, s), c)
    y = back(F.avg_pool2d(front(x), (r, s), stride, pad, count_include_pad=COUNT_PAD))
    dy = run.like(y)
    y.backward(dy)
    size = {"kernel_h": r, "kernel_w": s, "window": {"stride_h": stride[0], "stride_w": stride[1], "pad_h": pad[0], "pad_w": pad[1]}}
    run.agree("y", run("pooling", "avg_pool2d", {"T": T, "COUNT_PAD": COUNT_PAD}, x=x, y=y.shape, **size).y, y)
    run.agree("dx", run("pooling", "avg_pool2d_backward", {"T": T, "COUNT_PAD": COUNT_PAD}, dy=dy, dx=x.shape, **size).dx, x.grad)


@case({"T": "f32"}, {"T": "f64"})
def global_avg_pool(run, T):
    n, l, c = run.dim(3), run.dim(70), run.dim(70)
    x = run.normal(n, l, c)
    y = F.adaptive_avg_pool1d(x.transpose(1, 2), 1)[..., 0]
    dy = run.like(y)
    y.backward(dy)
    run.agree("y", run("pooling", "global_avg_pool", {"T": T}, x=x, y=y.shape).y, y)
    run.agree("dx", run("pooling", "global_avg_pool_backward", {"T": T}, dy=dy, dx=x.shape).dx, x.grad)


@case({"T": "f32", "mode": "nearest", "consts": {}}, {"T": "f32", "mode": "bilinear", "consts": {"ALIGN": True}}, {"T": "f64", "mode": "bilinear", "consts": {"ALIGN": False}})
def upsample(run, T, mode, consts):
    n, h, w, c, p, q = run.dim(2), run.dim(9), run.dim(9), run.dim(20), run.dim(25), run.dim(25)
    x = run.normal(n, h, w, c)
    y = back(F.interpolate(front(x), (p, q), mode=mode, align_corners=consts.get("ALIGN")))
    dy = run.like(y)
    y.backward(dy)
    run.agree("y", run("pooling", f"upsample_{mode}", {"T": T, **consts}, x=x, y=y.shape).y, y)
    run.agree("dx", run("pooling", f"upsample_{mode}_backward", {"T": T, **consts}, dy=dy, dx=x.shape).dx, x.grad)


# ---- norms --------------------------------------------------------------------------------------------------------------
@case({"T": "f32"}, {"T": "f64"})
def batch_norm(run, T):
    """Two steps of training, whose running averages inference takes."""
    m, c, parts, eps, momentum = run.dim(90, 2), run.dim(80), run.dim(3), 1e-3, 0.1
    layer = torch.nn.BatchNorm1d(c, eps, momentum).double()
    w, bias = run.normal(c), run.normal(c)
    layer.weight.data, layer.bias.data = w.detach(), bias.detach()
    consts, slots = {"T": T, "W": T, "A": T}, {"parts": (parts, 2, c), "arrived": torch.zeros(-(-c // 64))}
    mean, variance = torch.zeros(c), torch.ones(c)
    for step in range(2):
        x, residual = run.normal(m, c), run.normal(m, c)
        before = layer(x) + residual
        y = F.relu(before)
        dy = run.like(y) * (before > 0)
        layer.zero_grad()
        before.backward(dy)
        ours = run("image_norms", "batch_norm_statistics", {"T": T, "A": T}, x=x, mean=(c,), rstd=(c,), running_mean=mean, running_variance=variance, eps=eps, momentum=momentum, **slots)
        mean, variance = ours.running_mean, ours.running_variance
        run.agree("running mean", mean, layer.running_mean)
        run.agree("running variance", variance, layer.running_var)
        kept = {"mean": ours.mean, "rstd": ours.rstd}
        ours = run("image_norms", "batch_norm", {**consts, "RESIDUAL": True, "epilogue": "activation.relu"}, x=x, w=w, bias=bias, residual=residual, y=(m, c), eps=eps, **kept)
        run.agree("y", ours.y, y, 2)
        sums = run("image_norms", "batch_norm_backward_sums", {"T": T, "A": T}, dy=dy, x=x, dw=(c,), dbias=(c,), **slots, **kept)
        run.agree("dw", sums.dw, layer.weight.grad, 2)
        run.agree("dbias", sums.dbias, layer.bias.grad)
        ours = run("image_norms", "batch_norm_backward", consts, dy=dy, x=x, w=w, dw=sums.dw, dbias=sums.dbias, dx=(m, c), **kept)
        run.agree("dx", ours.dx, x.grad, 8)
    layer.eval()
    ours = run("image_norms", "batch_norm", {**consts, "INFERENCE": True}, x=x, mean=mean, rstd=variance, w=w, bias=bias, residual=None, y=(m, c), eps=eps)
    run.agree("y of inference", ours.y, layer(x), 4)


@case({"T": "f32", "kernel": "group_norm"}, {"T": "f64", "kernel": "group_norm"}, {"T": "f32", "kernel": "instance_norm"}, {"T": "f64", "kernel": "instance_norm"})
def group_norm(run, T, kernel):
    n, l, g, eps = run.dim(3), run.dim(70, 2), run.dim(9), 1e-3
    c = g * (run.dim(9) if kernel == "group_norm" else 1)
    x, w, bias = run.normal(n, l, c), run.normal(c), run.normal(c)
    y = F.group_norm(x.transpose(1, 2), g, w, bias, eps).transpose(1, 2)
    dy = run.like(y)
    y.backward(dy)
    ours = run("image_norms", kernel, {"T": T, "A": T}, x=x, w=w, bias=bias, y=x.shape, mean=(n, g), rstd=(n, g), eps=eps)
    run.agree("y", ours.y, y, 2)
    ours = run("image_norms", f"{kernel}_backward", {"T": T, "A": T}, dy=dy, x=x, w=w, mean=ours.mean, rstd=ours.rstd, dx=x.shape, part_w=(n, c), part_bias=(n, c))
    run.agree("dx", ours.dx, x.grad, 8)
    run.agree("dw", ours.part_w.sum(0), w.grad, 2)
    run.agree("dbias", ours.part_bias.sum(0), bias.grad, 2)
