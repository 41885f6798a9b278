"""What the files torch_*.py share: kernels of the library beside PyTorch, whose autograd differentiates the same function.

A case is a function of a Run, for each entry of its table of options. It draws a shape and numbers, computes them in f64 by torch and by our
kernels in their types, and says what must agree. The bound is absolute, in terms of the largest number of an array: conventions and formulas are compared here, the last bits in
test/conformance.
"""
import types

import numpy as np
import torch

import tile
from tile import calls

BOUND = {"f32": 16 * 2.0**-24, "f64": 1e-12}
TORCH = {"f32": torch.float32, "f64": torch.float64}
CASES = []  # (function, options)
KERNELS = {}


def case(*options):
    """Registers a function of a Run and of options for each of these: dictionaries of keywords."""
    def register(function):
        CASES.extend((function, o) for o in options or ({},))
        return function
    return register


def as_bool(value):
    return str(value).lower() if isinstance(value, bool) else value


def kernel(device, source, name, consts):
    key = (device, source, name, tuple(sorted(consts.items())))
    if key not in KERNELS:
        KERNELS[key] = tile.kernel(source, name, device=device, consts={k: as_bool(v) for k, v in consts.items()})
    return KERNELS[key]


class Run:
    """One case with one shape. T is the type of the kernels' elements."""

    def __init__(self, device, library, seed, T):
        self.device, self.library, self.T, self.worst, self.where, self.compared = device, library, T, 0.0, "", 0
        self.rng = np.random.default_rng(seed)

    def dim(self, most, least=1):
        """An extent: any, and the least more often than its share."""
        return int(self.rng.integers(least, most + 1)) if self.rng.random() > 0.1 else least

    def normal(self, *shape, scale=1.0):
        """A leaf of torch's graph in f64, of numbers that T has."""
        x = torch.from_numpy(scale * self.rng.standard_normal(shape)).to(TORCH[self.T]).double()
        return x.requires_grad_()

    def like(self, x):
        """A derivative to begin with: of x's shape."""
        return self.normal(*x.shape).detach()

    def integers(self, low, high, *shape):
        return torch.from_numpy(self.rng.integers(low, high, shape))

    def array(self, slot, value):
        """An argument, on the device: numbers as they are, a tensor in the parameter's type, a shape as poison, None as an array that is off."""
        if slot.kind == calls.SCALAR:
            return value
        dtype = np.dtype({"f": "float", "i": "int", "u": "uint"}[slot.dtype[0]] + slot.dtype[1:])
        if value is None:
            value = np.zeros((0,) * slot.rank)
        elif isinstance(value, tuple):
            value = np.full(value, np.nan if dtype.kind == "f" else 77)
        elif isinstance(value, torch.Tensor):
            value = value.detach().numpy()
        return tile.upload(value.astype(dtype), self.device)

    def __call__(self, module, name, consts, **args):
        """Launches; what the kernel writes is returned by its names, in f64 where it is not whole numbers."""
        made = kernel(self.device, self.library % module, name, consts)
        slots = {slot.name: slot for slot in made.slots}  # a struct has none of its own
        arrays = {k: self.array(slots[k], v) if k in slots else v for k, v in args.items()}
        made(**arrays)
        written = {s.name: arrays[s.name].download() for s in made.slots if s.kind != calls.SCALAR and not s.const}
        return types.SimpleNamespace(**{k: torch.from_numpy(v.astype(np.int64 if v.dtype.kind in "iu" else np.float64)) for k, v in written.items()})

    def agree(self, what, got, want, times=1.0):
        """The bound is that of T: `times` as much where a formula cancels or sums are long."""
        want = want.detach().double()
        assert got.shape == want.shape, f"{what}: shape {tuple(got.shape)}, torch has {tuple(want.shape)}"
        if not want.numel():
            return
        unit = BOUND[self.T] * times * max(1.0, float(want.nan_to_num(0, 0, 0).abs().max()))
        off = torch.where(got == want, torch.zeros_like(want), (got.double() - want).abs())
        self.compared += want.numel()
        self.worst, self.where = max((self.worst, self.where), (float(off.max()) / unit, what))
        if not bool((off <= unit).all()):
            at = tuple(int(i) for i in np.argwhere(~(off <= unit).numpy())[0])
            raise AssertionError(f"{what}{list(at)} of {list(want.shape)} is {float(got[at]):.9g}, torch has {float(want[at]):.9g}; bound {unit:.2g}")
