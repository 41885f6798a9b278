"""Kernels on tiles, from Python.

    import numpy as np
    import tile

    softmax = tile.kernel("softmax.tile", "softmax", B=1024)
    x = np.random.rand(128, 1000).astype(np.float32)
    y = np.empty_like(x)
    softmax(x, y)
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .arrays import View, view
from .compiler import Explanation, Output, compile, explain, stages, targets
from .device_arrays import Array, empty, upload
from .devices import Device, Event, Stream
from .errors import (ArgumentError, CompileError, CompileWarning, Error, KernelError, NotFoundError, OutOfMemoryError,
                     UnavailableError)
from .modules import Kernel, Module, kernel, load, load_image
from .tuning import Progress, Tuned, tune

if TYPE_CHECKING:
    from . import kernels as kernels
    from .jax_functions import jax_op as jax_op
    from .operators import op as op


def __getattr__(name: str) -> object:
    """tile.kernels, whose library is loaded when it is first used, tile.op, which needs torch, and tile.jax_op, which needs JAX."""
    if name == "kernels":
        return importlib.import_module(".kernels", __name__)
    if name == "op":
        return importlib.import_module(".operators", __name__).op
    if name == "jax_op":
        return importlib.import_module(".jax_functions", __name__).jax_op
    raise AttributeError(f"module 'tile' has no attribute '{name}'")


__version__ = "0.1.0"
__all__ = ["Array", "ArgumentError", "CompileError", "CompileWarning", "Device", "Error", "Event", "Explanation", "Kernel", "KernelError",
           "Module", "NotFoundError", "OutOfMemoryError", "Output", "Progress", "Stream", "Tuned", "UnavailableError", "View", "compile", "empty",
           "explain", "kernel", "load", "load_image", "stages", "targets", "tune", "upload", "view"]
