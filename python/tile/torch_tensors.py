"""Tensors of torch as arguments of kernels. torch is never imported before a program has: its first tensor brings this file."""
from __future__ import annotations

from typing import Any, Callable

import torch
from torch.autograd import forward_ad

from . import native
from .arrays import READERS_OF_CALLS, TENSORS, WRITTEN, WRONG, Memory
from .elements import ANY_BYTE, ANY_WORD, NUMBERS
from .errors import ArgumentError

NAMES = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "float16": "f16",
         "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
         "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz"}
DTYPES: dict[Any, str] = {getattr(torch, theirs): ours for theirs, ours in NAMES.items() if hasattr(torch, theirs)}
CODES = {dtype: NUMBERS[name] for dtype, name in DTYPES.items()} | {
    getattr(torch, name): code for name, code in (("uint8", ANY_BYTE), ("uint16", ANY_WORD)) if hasattr(torch, name)}
GPU = "hip" if torch.version.hip else "cuda"  # how tile calls the devices that torch calls cuda


# What a kernel writes counts as changed in place: a backward pass that needs what was there says so.
written: Callable[[Any], object] = getattr(torch.autograd.graph, "increment_version", lambda t: None)


unpack_dual: Callable[[Any], Any] = forward_ad.unpack_dual


def wrong(text: str) -> ArgumentError:
    return ArgumentError(text, WRONG)


def has_memory(t: torch.Tensor) -> bool:
    """False for tensors of vmap and grad of torch.func, of meta, and fake ones."""
    if torch._C._functorch.is_functorch_wrapped_tensor(t) or t.is_meta or hasattr(t, "fake_mode"):
        return False
    return t.layout is torch.strided


def in_forward_mode() -> bool:
    """Between forward_ad.dual_level() and its end, or in torch.func.jvp, jacfwd and the like."""
    return getattr(forward_ad, "_current_level", -1) >= 0


def of_torch(t: torch.Tensor, writes: bool = False) -> Memory:
    """No copy is made, but for a lazily negated tensor that the kernel only reads."""
    if in_forward_mode() and unpack_dual(t).tangent is not None:
        raise wrong("the tensor has a tangent (torch.autograd.forward_ad), and none goes through a kernel: pass forward_ad.unpack_dual(x).primal")
    if t.requires_grad and torch.is_grad_enabled():
        raise wrong("the tensor requires grad, and gradients do not go through a kernel: pass x.detach(), call under torch.no_grad(), or make "
                    "an operator of the kernel (tile.op)")
    if not has_memory(t):
        raise wrong(f"{type(t).__name__} of {t.dtype} ({str(t.layout).removeprefix('torch.')}, on {t.device}) has no elements in memory; under "
                    "torch.func, torch.export and fake tensors use an operator (tile.op)")
    code = CODES.get(t.dtype)
    if code is None:
        raise TypeError(f"no element type of kernels is {t.dtype}" + (": torch.view_as_real(x) has pairs of numbers" if t.is_complex() else ""))
    if t.is_neg():
        if writes:
            raise wrong("the kernel writes to it, and the tensor is negated lazily (x.is_neg()): pass x.resolve_neg()")
        t = t.resolve_neg()
    if writes:
        written(t)
    return Memory(t.data_ptr(), code, t.element_size(), tuple(t.shape), None if t.is_contiguous() else t.stride(), True, t.device.type == "cpu", t)


def read_tensor(t: torch.Tensor) -> tuple[Any, Any]:
    """Those that of_torch takes as they are; data_ptr() fails where there is no memory."""
    if t.requires_grad and torch.is_grad_enabled() or t.is_neg() or in_forward_mode():
        raise ValueError
    return (t.dtype, t.shape, t.stride(), t.device), t.data_ptr()


def stream_of(device: torch.device) -> int:
    """The address of torch's current stream."""
    return int(torch.cuda.current_stream(device).cuda_stream)


def hide_from_dynamo(function: Any) -> None:
    """torch.compile breaks the graph at this function, and runs it and what it calls as they are. (torch.compiler.disable would import the
    compiler, which takes seconds, and wrap each call. Where torch lacks what is used here, the same happens slowly.)"""
    function._torchdynamo_disable = True
    code = function.__code__
    try:
        from torch._C._dynamo import eval_frame as frames
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(frames._FrameAction.SKIP, frames._FrameAction.SKIP))
    except (ImportError, AttributeError, TypeError):
        pass


for kind in (torch.Tensor, torch.nn.Parameter):
    WRITTEN[kind] = written
    if native.launcher and native.launcher.has_exchange(kind):
        TENSORS[kind] = (torch.is_grad_enabled, torch.Tensor.is_neg, forward_ad)
    else:
        READERS_OF_CALLS[kind] = read_tensor
