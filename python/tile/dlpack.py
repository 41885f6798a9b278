"""DLPack: how libraries hand each other arrays. Its structs, and capsules of them."""
from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p, py_object
from typing import Any, Optional

from .elements import ANY_BYTE, ANY_WORD, NUMBERS


class DLTensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
                ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


Deleter = CFUNCTYPE(None, c_void_p)


class Managed(Structure):
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", Deleter)]


HOST = (1, 3, 11)  # CPU memory, and pinned memory of CUDA and ROCm
GPU = {2: "cuda", 10: "hip"}
# (code, bits) of DLPack
TYPES = {(0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64", (1, 32): "u32", (1, 64): "u64", (2, 16): "f16",
         (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (6, 8): "bool", (10, 8): "f8e4m3", (11, 8): "f8e4m3fnuz", (12, 8): "f8e5m2",
         (13, 8): "f8e5m2fnuz"}
NUMBERS_OF = {name: pair for pair, name in TYPES.items()} | {"u8": (1, 8), "u16": (1, 16)}
python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = c_void_p, [py_object, c_char_p]
python.PyCapsule_New.restype, python.PyCapsule_New.argtypes = py_object, [c_void_p, c_char_p, c_void_p]
valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", python))     # these take the address of a capsule
pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", python))  # that is being freed
NAME = b"dltensor"  # of a capsule that nobody has taken
given: dict[int, Any] = {}  # what capsules hold, by the address of the struct


def tensor_of(capsule: object) -> DLTensor:
    return DLTensor.from_address(python.PyCapsule_GetPointer(capsule, NAME))


def code_of(t: DLTensor) -> int:
    """The number of an element type, or those of any of 8 or 16 bits."""
    code = {(1, 8): ANY_BYTE, (1, 16): ANY_WORD}.get((t.code, t.bits), NUMBERS.get(TYPES.get((t.code, t.bits), "")))
    if code is None or t.lanes != 1:
        raise TypeError(f"no element type of kernels is DLPack's (code {t.code}, {t.bits} bits, {t.lanes} lanes)")
    return code


def release(address: int) -> None:
    given.pop(address, None)


def release_unused(capsule: int) -> None:
    if valid(capsule, NAME):
        release(pointer(capsule, NAME))


deleter = Deleter(release)
destructor = ctypes.PYFUNCTYPE(None, c_void_p)(release_unused)


def device_of(host_memory: bool, target: str, index: int) -> tuple[int, int]:
    return (1, 0) if host_memory else (10 if target.startswith("gfx") else 2, index)


def capsule(address: int, element: str, shape: Sequence[int], strides: Optional[Sequence[int]], device: tuple[int, int], owner: object) -> object:
    """A capsule with an array; it and who takes it keep the owner."""
    if element not in NUMBERS_OF:
        raise BufferError(f"DLPack has no element type {element}")
    n, (code, bits) = len(shape), NUMBERS_OF[element]
    extents = (c_int64 * (n + 1))(*shape)
    steps = (c_int64 * (n + 1))(*strides) if strides is not None else None
    t = DLTensor(address, *device, n, code, bits, 1, ctypes.cast(extents, POINTER(c_int64)),
                 ctypes.cast(steps, POINTER(c_int64)) if steps is not None else None, 0)
    managed = Managed(t, None, deleter)
    given[addressof(managed)] = (managed, extents, steps, owner)
    return python.PyCapsule_New(addressof(managed), NAME, ctypes.cast(destructor, c_void_p))
