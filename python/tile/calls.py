"""The arguments of calls: each is looked at once (`filled`), which makes a Plan; calls with arguments alike in everything but
addresses and numbers (Kernel.__call__) fill in these only."""
from __future__ import annotations

from collections.abc import Sequence
from ctypes import addressof, byref, c_double, c_float, c_uint64, c_void_p, sizeof
from typing import Any, Callable, NamedTuple

from . import arrays, native
from .arrays import QUICK
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
QUICK[Default] = lambda value: (Default, 0)


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
        raise TypeError(f"expected an array of {slot.dtype}, got {type(value).__name__}")
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

def whole_numbers(dtype: str) -> Callable[[int], int]:
    bits = BITS[dtype]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)

    def bits_of(value: int) -> int:
        if low <= value <= high:
            return value & (1 << bits) - 1
        raise OverflowError

    return bits_of


def converter(slot: Slot, value: Any) -> Callable[[Any], int] | None:
    """What makes bits of a number; None: C types do."""
    if isinstance(value, Default):
        return lambda value: slot.default or 0
    if slot.dtype in ("f32", "f64"):
        return None
    return whole_numbers(slot.dtype) if slot.dtype[0] in "iu" else lambda value: arrays.scalar_bits(value, slot.dtype)


class Plan:
    """Filled arguments, with the places of what differs from call to call."""

    __slots__ = ("args", "place", "cells", "numbers", "written")

    def __init__(self, slots: Sequence[Slot], args: Any, values: Sequence[Any]) -> None:
        self.args, self.place = args, c_void_p(addressof(args))
        self.cells: list[Any] = []
        self.numbers: list[tuple[int, Callable[[Any], int]]] = []
        self.written: list[tuple[int, Callable[[Any], object]]] = []
        for i, (slot, value) in enumerate(zip(slots, values)):
            start = i * sizeof(native.Arg)
            if slot.kind != SCALAR:
                self.cells.append(c_void_p.from_buffer(args, start + native.Arg.address.offset))
                note = arrays.WRITTEN.get(type(value))
                if note is not None and not slot.const:
                    self.written.append((i, note))
                continue
            convert = converter(slot, value)
            if convert is not None:
                self.numbers.append((i, convert))
            cell: Any = c_uint64 if convert is not None else c_float if slot.dtype == "f32" else c_double
            self.cells.append(cell.from_buffer(args, start + native.Arg.scalar.offset))

    def fill(self, own: list[Any], values: Sequence[Any]) -> bool:
        """False: a value needs to be looked at closely."""
        try:
            if self.numbers:
                for i, convert in self.numbers:
                    own[i] = convert(own[i])
            for cell, value in zip(self.cells, own):
                cell.value = value
        except NOT_QUICK:
            return False
        if self.written:
            for i, note in self.written:
                note(values[i])
        return True
