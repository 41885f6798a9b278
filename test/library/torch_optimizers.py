"""std.kernels.optimizers beside torch.optim: several steps over a list of tensors, gradients clipped by their norm, scaled losses."""
import numpy as np
import tile
import torch

from beside_torch import case


class List:
    """Arrays of f32 on the device, which kernels see by a table of addresses."""

    def __init__(self, run, tensors):
        self.run = run
        self.arrays = [tile.upload(x.detach().numpy().astype(np.float32), run.device) for x in tensors]

    @property
    def table(self):
        return np.array([x.address for x in self.arrays], np.uint64)

    def agree(self, what, tensors, times):
        for i, (x, want) in enumerate(zip(self.arrays, tensors)):
            self.run.agree(f"{what} {i}", torch.from_numpy(x.download()).double(), want, times)


class Training:
    """Weights and gradients of some shapes, for torch in f64 and for the kernels."""

    def __init__(self, run):
        self.run = run
        self.shapes = [(run.dim(40), run.dim(60)) for _ in range(run.dim(5))]
        self.torch = [run.normal(*s) for s in self.shapes]
        self.weights = List(run, self.torch)
        self.length = np.array([a * b for a, b in self.shapes])
        self.moments = [List(run, [torch.zeros(s) for s in self.shapes]) for _ in range(2)]

    def gradients(self, scale=1.0, infinite=False):
        """Those of torch; the kernels' ones are of a loss multiplied by `scale`, one of them infinite."""
        for x in self.torch:
            x.grad = self.run.like(x)
        scaled = [x.grad * scale for x in self.torch]
        if infinite:
            scaled[-1][-1, -1] = np.inf
        return List(self.run, scaled)


SGD = {"plain": {"lr": 0.1, "weight_decay": 0.01}, "momentum": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}, "nesterov": {"lr": 0.1, "momentum": 0.8, "nesterov": True}}


@case(*({"kind": kind} for kind in SGD))
def sgd(run, kind):
    t, o = Training(run), SGD[kind]
    optimizer = torch.optim.SGD(t.torch, **o)
    consts = {"o.momentum": "momentum" in o, "o.nesterov": o.get("nesterov", False)}
    for step in range(4):
        g = t.gradients()
        optimizer.step()
        run("optimizers", "sgd", consts, w=t.weights.table, g=g.table, b=t.moments[0].table if "momentum" in o else None, master=None, length=t.length, factor=None,
            s={"rate": o["lr"], "momentum": o.get("momentum", 0), "decay": o.get("weight_decay", 0)})
        t.weights.agree(f"step {step}: weights", t.torch, 1)


ADAM = {"Adam": {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1}, "AdamW": {"lr": 0.02, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.1}}


def numbers_of(o, **own):
    return {"rate": o["lr"], "beta1": o["betas"][0], "beta2": o["betas"][1], "eps": o["eps"], "decay": o["weight_decay"], **own}


@case(*({"kind": kind} for kind in ADAM))
def adam(run, kind):
    t, o = Training(run), ADAM[kind]
    optimizer = getattr(torch.optim, kind)(t.torch, **o)
    for step in range(1, 5):
        g = t.gradients()
        optimizer.step()
        run("optimizers", "adam", {"o.decoupled": kind == "AdamW"}, w=t.weights.table, g=g.table, m=t.moments[0].table, v=t.moments[1].table, master=None, length=t.length, factor=None,
            steps=None, s=numbers_of(o, step=step))
        t.weights.agree(f"step {step}: weights", t.torch, 2)


@case()
def clipped_and_scaled(run):
    """AdamW with clip_grad_norm_ under a GradScaler: one of the steps has an infinity, and is left out. torch's scaler works with CUDA only, so its rule stands here: halve
    at an infinity, double after `interval` steps without one."""
    t, o, most, interval = Training(run), ADAM["AdamW"], 3.0, 2
    optimizer = torch.optim.AdamW(t.torch, **o)
    scale, good, bad = 1024.0, 0, int(run.integers(0, 5, 1))
    state = {"scale": torch.tensor([scale]), "steps": torch.zeros(1), "good": torch.zeros(1)}
    for step in range(5):
        g = t.gradients(scale, step == bad)
        part = run("optimizers", "sum_squares", {}, g=g.table, length=t.length, part=(run.dim(5),)).part
        control = run("optimizers", "step_control", {}, part=part, factor=(1,), norm=(1,), times=1.0, most=most, growth=2.0, backoff=0.5, interval=interval, **state)
        state = {name: getattr(control, name) for name in state}
        if step == bad:
            scale, good = scale / 2, 0
        else:
            norm = torch.nn.utils.clip_grad_norm_(t.torch, most)
            run.agree("norm", control.norm[0], norm, 4)
            optimizer.step()
            scale, good = (scale * 2, 0) if good + 1 == interval else (scale, good + 1)
        run("optimizers", "adam", {"o.control": True}, w=t.weights.table, g=g.table, m=t.moments[0].table, v=t.moments[1].table, master=None, length=t.length, factor=control.factor,
            steps=control.steps, s=numbers_of(o, times=0.0, step=0))
        t.weights.agree(f"step {step}: weights", t.torch, 2)
        run.agree("scale", control.scale, torch.tensor([scale]))
