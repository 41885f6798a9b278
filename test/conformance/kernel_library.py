"""What the files rows_kernels*.py share: rows whose program is a module of the library of kernels.

Each kernel of stdlib/kernels has rows here, which test/tools/check_kernels.py requires. A row's text is that of the
module's file, so that
all tools that read rows can read these. Small arrays with odd extents; the products' data are small integers, whose
sums are
exact, where nothing else is said.
"""
import os

import numpy as np

from rows import row
from values import Arr, exact, poison, quantize, within, spacing

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "stdlib", "kernels")
EPS = 2.0**-24
SEEN = {}  # kernel: its rows so far, less 1


def source(module):
    with open(os.path.join(FOLDER, module + ".tile"), encoding="utf-8") as f:
        return f.read()


def kernel_row(module, kernel, name, args, want, gpus=False, **consts):
    """A row of a kernel of the module. Every third row of a kernel, its first among them, and what says so, runs on
    emulated GPUs, too."""
    SEEN[kernel] = SEEN.get(kernel, -1) + 1
    emu = gpus or SEEN[kernel] % 3 == 0
    row(f"kernels_{kernel}_{name}" if name else f"kernels_{kernel}", source(module), args, want,
        consts={k: str(v).lower() if isinstance(v, bool) else v for k, v in consts.items()}, kernel=kernel,
        options=["-Wno-unused"], devices=() if emu else ("cpu", "ref"), same_bits=False,
        beside=any(isinstance(v, str) and v.startswith("addresses(") for v in args.values()))


def f64(a, *names):
    return [a[n].astype(np.float64) for n in names]


def bytes_as(t, x):
    """Values as an array of t."""
    from values import store
    return Arr(t, store(np.asarray(x, np.float64), t))


def rounded(y, t):
    """Exact sums, rounded once to t."""
    return exact(quantize(y, t) if t[0] != "i" else y.astype(np.int64))


def near(y, bound, t):
    """Within `bound` before the rounding to t."""
    return within(y, bound + spacing(np.abs(y) + bound, t) / 2)


__all__ = [
    "Arr", "EPS", "bytes_as", "exact", "f64", "kernel_row", "near", "np", "poison", "quantize", "rounded", "within"
]
