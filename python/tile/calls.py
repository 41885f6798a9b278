"""The arguments of calls: each is looked at once (`filled`); what it is like is learnt by launcher.c, which makes the next calls that
differ in addresses and numbers only."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from ctypes import addressof, byref, sizeof
from typing import Any, NamedTuple, Tuple

import numpy

from . import arrays, native
from .devices import Device
from .elements import BITS, NAMES, NUMBERS
from .errors import ArgumentError
from .native import check, lib

VIEW, POINTER, SCALAR = range(3)
NOT_QUICK = (KeyError, TypeError, ValueError, OverflowError, BufferError, RuntimeError)  # filled() says what is wrong, if something is


class Slot(NamedTuple):
    """A parameter, as the compiled kernel has it; of a struct one for each field, "s.inner.n". default: bits, or None."""
    name: str
    kind: int
    dtype: str
    const: bool
    rank: int
    default: int | None


class Default:
    """Stands for a value that is not given."""


DEFAULT = Default()


def slots_of(handle: int) -> list[Slot]:
    slots = []
    for i in range(lib.tile_kernel_param_count(handle)):
        info = native.ParamInfo(sizeof(native.ParamInfo))
        check(lib.tile_kernel_param(handle, i, byref(info)))
        slots.append(Slot(info.name.decode(), info.kind, NAMES[info.dtype], bool(info.is_const), info.rank,
                          info.value if info.has_default else None))
    return slots


def fill(arg: native.Arg, slot: Slot, value: Any, device: Device) -> Any:
    """Sets one argument; returns what keeps its memory."""
    if slot.kind == SCALAR:
        bits = slot.default if isinstance(value, Default) else arrays.scalar_bits(value, slot.dtype)
        arg.kind, arg.dtype, arg.scalar = SCALAR, NUMBERS[slot.dtype], bits
        return None
    m = arrays.memory_of(value, not slot.const)
    if m is None and slot.kind == POINTER and hasattr(value, "__index__"):
        arg.kind, arg.dtype, arg.address = POINTER, -1, value.__index__()
        return None
    if m is None:
        make = ": make one, numpy.array(...)" if isinstance(value, (list, tuple)) else ""
        raise TypeError(f"expected an array of {slot.dtype}, got {type(value).__name__}{make}")
    if not slot.const and not m.writable:
        raise ArgumentError("the kernel writes to it, and the array is read-only", "bad argument")
    if m.on_host and not device.host_memory:
        raise ArgumentError(f"the array is in the host's memory, the kernel runs on {device.target}: use tile.upload", "bad argument")
    if not m.on_host and device.host_memory:
        raise ArgumentError(f"the array is in the memory of a GPU, the kernel runs on {device.target}", "bad argument")
    arrays.fits(m, slot.dtype)
    if slot.kind == POINTER:
        arrays.fill_pointer(arg, m)
    else:
        arrays.fill_view(arg, m, slot.dtype)
    return m.owner


def filled(kernel: str, slots: Sequence[Slot], values: Sequence[Any], device: Device) -> tuple[Any, list[Any]]:
    """The arguments of a launch, and what keeps their memory."""
    args, owners = (native.Arg * max(len(slots), 1))(), []
    for arg, slot, value in zip(args, slots, values):
        try:
            owners.append(fill(arg, slot, value, device))
        except (TypeError, ValueError, OverflowError) as e:
            where = f"kernel '{kernel}': parameter '{slot.name}': {e}"
            raise (type(e)(where, e.status) if isinstance(e, ArgumentError) else type(e)(where)) from None
    return args, owners


# ---- quick calls ----

DEFAULTED, NUMBER, CONVERTED, NDARRAY, TENSOR, READ = range(6)  # launcher.c: how
Pattern = Tuple[int, type, Any, Any, Any, str, int]              # take_pattern: how, type, same, reader, written, number, bits


def number_pattern(slot: Slot, kind: type) -> Pattern:
    if slot.kind != SCALAR:
        return NUMBER, kind, None, None, None, "u", 64  # an address
    if slot.dtype[0] in "iu" or slot.dtype in ("f32", "f64"):
        return NUMBER, kind, None, None, None, slot.dtype[0], BITS[slot.dtype]
    if slot.dtype == "bool" and kind is bool:
        return NUMBER, kind, None, None, None, "b", 1
    return CONVERTED, kind, None, functools.partial(arrays.scalar_bits, dtype=slot.dtype), None, " ", 0


def pattern_of(slot: Slot, value: Any) -> Pattern | None:
    """What a value is like whose address or number alone differs from this one's; None: such values are looked at each time."""
    kind = type(value)
    written = None if slot.const else arrays.WRITTEN.get(kind)
    if kind is Default:
        return DEFAULTED, kind, None, None, None, " ", 0
    if kind in (int, float, bool):
        return number_pattern(slot, kind)
    if kind is numpy.ndarray:
        return (NDARRAY, kind, value.dtype, None, None, " ", 0) if arrays_are_known() else None
    if kind in arrays.TENSORS:
        return TENSOR, kind, arrays.TENSORS[kind], None, written, " ", 0
    reader = arrays.READERS_OF_CALLS.get(kind)
    return (READ, kind, reader(value)[0], reader, written, " ", 0) if reader else None


@functools.cache
def arrays_are_known() -> bool:
    """Does launcher.c know where NumPy's arrays have their fields?"""
    a = numpy.zeros((4, 6), numpy.int16)
    b = a[1:4, ::2]
    b.flags.writeable = False
    return all(native.launcher.fields_are_known(x, x.ctypes.data, x.dtype, x.shape, x.strides, x.flags.writeable) for x in (a, b))


def learn(launcher: Any, slots: Sequence[Slot], args: Any, values: tuple[Any, ...]) -> None:
    """Makes the next calls with such arguments quick, if they can be."""
    try:
        patterns = tuple(map(pattern_of, slots, values))
    except NOT_QUICK:
        return
    if None not in patterns:
        launcher.learn(addressof(args), values, patterns)
