"""What stands for an argument of a kernel: NumPy arrays, DLPack objects (torch tensors among them), tile.Array, numbers. No element
is copied: the kernel gets the address."""
from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, Callable, Optional

import numpy

from . import dlpack, native
from .device_arrays import Array
from .elements import ANY_BYTE, ANY_WORD, BITS, CODES, NAMES, NUMBERS, NUMPY, PACKED, dense, size_of
from .errors import ArgumentError

WRONG = "bad argument"


class Memory:
    """Where the elements of an argument are. `owner` keeps them."""

    __slots__ = ("address", "code", "itemsize", "shape", "strides", "writable", "on_host", "owner")  # strides: in elements, or None

    def __init__(self, address: int, code: int, itemsize: int, shape: tuple[int, ...], strides: Optional[tuple[int, ...]], writable: bool,
                 on_host: bool, owner: Any) -> None:
        self.address, self.code, self.itemsize, self.shape, self.strides = address, code, itemsize, shape, strides
        self.writable, self.on_host, self.owner = writable, on_host, owner


class View:
    """tile.view(array, "bf16"): the same elements, called by another name of a type of the same size."""

    def __init__(self, array: Any, dtype: str, shape: Optional[tuple[int, ...]] = None) -> None:
        if dtype not in NUMBERS:
            raise ArgumentError(f"unknown element type '{dtype}'; known: {', '.join(NAMES)}", WRONG)
        self.array, self.dtype, self.shape = array, dtype, shape


def view(array: Any, dtype: str, shape: Optional[Sequence[int]] = None) -> View:
    """The elements of an array as another type: uint16 as "bf16", uint8 as "f8e4m3", "i4" ... For two elements in a byte, `shape`
    counts elements (by default twice the bytes of the last axis)."""
    return View(array, dtype, None if shape is None else tuple(int(n) for n in shape))


# ---- memory of an argument ----

@functools.lru_cache(1024)  # names of dtypes are made by Python code
def code_of(dtype: numpy.dtype[Any]) -> int:
    code = CODES.get(dtype.name)
    if code is None or not dtype.isnative:
        raise TypeError(f"no element type of kernels is NumPy's {dtype.str if dtype.isnative else dtype.newbyteorder().str}"
                        + ("" if dtype.isnative else " in the other byte order"))
    return code


def of_numpy(a: numpy.ndarray[Any, Any], writes: bool = False) -> Memory:
    code, strides = code_of(a.dtype), None
    if not a.flags.c_contiguous:
        if any(s % a.itemsize for s in a.strides):
            raise ArgumentError(f"the strides {a.strides} are not whole elements of {a.itemsize} bytes", WRONG)
        strides = tuple(s // a.itemsize for s in a.strides)
    return Memory(a.ctypes.data, code, a.itemsize, a.shape, strides, a.flags.writeable, True, a)


def of_array(a: Array, writes: bool = False) -> Memory:
    code = {"u8": ANY_BYTE, "u16": ANY_WORD}.get(a.element, NUMBERS.get(a.element))
    if code is None:
        raise TypeError(f"no element type of kernels is NumPy's {a.dtype}")
    return Memory(a.address, code, a.dtype.itemsize, a.shape, a.strides, True, a.device.host_memory, a)


def of_dlpack(value: Any, writes: bool = False) -> Memory:
    """The capsule stays unused and keeps the memory: its destructor gives it back."""
    kind = value.__dlpack_device__()[0]
    capsule = value.__dlpack__(stream=-1) if kind in dlpack.GPU else value.__dlpack__()
    t = dlpack.tensor_of(capsule)
    code, shape = dlpack.code_of(t), tuple(t.shape[i] for i in range(t.ndim))
    strides = tuple(t.strides[i] for i in range(t.ndim)) if t.strides else None
    # value too: a capsule does not say whether elements may be written, an owner may know
    return Memory((t.data or 0) + t.byte_offset, code, t.bits // 8, shape, strides, True, kind in dlpack.HOST, (capsule, value))


def of_view(v: View, writes: bool = False) -> Memory:
    m = memory_of(v.array, writes)
    if m is None:
        raise TypeError(f"tile.view takes an array, not {type(v.array).__name__}")
    if m.itemsize * 8 != max(BITS[v.dtype], 8):
        raise ArgumentError(f"elements of {m.itemsize * 8} bits cannot be viewed as {v.dtype}", WRONG)
    m.code = NUMBERS[v.dtype]
    if v.dtype in PACKED:
        return packed(m, v.shape)
    if v.shape not in (None, m.shape):
        raise ArgumentError(f"the view's shape {v.shape} is not the array's, {m.shape}", WRONG)
    return m


Reader = Callable[[Any, bool], Memory]
READERS: dict[type, Optional[Reader]] = {View: of_view, numpy.ndarray: of_numpy, Array: of_array, float: None, int: None, bool: None}


def reader_of(kind: type) -> Optional[Reader]:
    """How the memory of such objects is found; None: they have none (numbers)."""
    if "torch" in sys.modules and issubclass(kind, sys.modules["torch"].Tensor):
        from .torch_tensors import of_torch
        return of_torch
    known = next((READERS[base] for base in kind.__mro__ if base in READERS), None)
    if known is None and hasattr(kind, "__dlpack__") and not issubclass(kind, numpy.generic):
        return of_dlpack
    return known


def memory_of(value: Any, writes: bool = False) -> Optional[Memory]:
    """The Memory of an argument; None: it has none (a number). writes: the kernel may write to it."""
    kind = type(value)
    if kind not in READERS:
        READERS[kind] = reader_of(kind)
    reader = READERS[kind]
    return reader(value, writes) if reader else None


def packed(m: Memory, shape: Optional[tuple[int, ...]]) -> Memory:
    """Bytes as pairs of elements."""
    if m.strides is not None and m.shape and m.shape[-1] > 1 and m.strides[-1] != 1:
        raise ArgumentError("a view of packed elements must be dense along its last axis", WRONG)
    bytes_shape = m.shape
    m.shape = shape if shape is not None else m.shape[:-1] + (2 * m.shape[-1],)
    if len(m.shape) != len(bytes_shape) or m.shape[:-1] != bytes_shape[:-1] or (m.shape[-1] + 1) // 2 != bytes_shape[-1]:
        raise ArgumentError(f"{m.shape} packed elements do not lie in {bytes_shape} bytes", WRONG)
    if m.strides is not None:
        m.strides = tuple(2 * s for s in m.strides[:-1]) + (1,)
    return m


# ---- what is looked at in each call ----

def read_array(a: Array) -> tuple[Any, int]:
    return (a.element, a.shape, a.strides, a.device.host_memory), a.address


# By types, how launcher.c reads what it does not know itself: (what must be equal for calls to be alike, the address).
# Exceptions mean: look at it closely.
READERS_OF_CALLS: dict[type, Callable[[Any], tuple[Any, int]]] = {Array: read_array}
TENSORS: dict[type, tuple[Any, ...]] = {}          # types of torch that it reads by DLPack, with what it asks them first
WRITTEN: dict[type, Callable[[Any], object]] = {}  # by types: what a kernel's writing to such a value is told to


def fits(m: Memory, dtype: str) -> None:
    """An error where the bits are those of the parameter's type and only the sign is not: torch, for one, computes with signed numbers."""
    given = NAMES[m.code] if m.code >= 0 else ""
    if given[:1] == "i" and "u" + given[1:] == dtype:
        raise ArgumentError(f'expects elements of type {dtype}, got {given}: tile.view(x, "{dtype}") has the same bits', WRONG)


def fill_view(arg: native.Arg, m: Memory, dtype: str) -> None:
    """Sets a view's fields. A byte array for a parameter of a packed type counts bytes on its last axis."""
    if dtype in PACKED and m.code == ANY_BYTE and m.shape:
        m = packed(m, None)
    rank = len(m.shape)
    if rank > native.MAX_RANK:
        raise ArgumentError(f"an array of {rank} axes; kernels take at most {native.MAX_RANK}", WRONG)
    arg.kind, arg.dtype, arg.rank, arg.address = 0, m.code, rank, m.address
    arg.extent[:rank] = m.shape
    arg.strided = m.strides is not None
    if arg.strided:
        arg.stride[:rank] = m.strides


def fill_pointer(arg: native.Arg, m: Memory) -> None:
    if m.strides is not None and m.strides != dense(m.shape):
        raise ArgumentError("an array for a pointer must be contiguous", WRONG)
    arg.kind, arg.dtype, arg.address, arg.bytes = 1, m.code, m.address, size_of(m.shape) * m.itemsize


# ---- scalars ----

def bf16_bits(value: float) -> int:
    bits = int(numpy.float32(value).view(numpy.uint32))
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def f8_bits(value: float, dtype: str) -> int:
    try:
        import ml_dtypes
    except ImportError as e:
        raise TypeError(f"a scalar of type {dtype} needs the package ml_dtypes") from e
    name = next(n for n, d in NUMPY.items() if d == dtype)
    return int(numpy.asarray(value, getattr(ml_dtypes, name)).view(numpy.uint8))


def scalar_bits(value: Any, dtype: str) -> int:
    """The bits of a number as a type of the language. Whole numbers must fit; floats are rounded."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()  # a number of NumPy or torch
    if dtype == "bool":
        if not isinstance(value, (bool, numpy.bool_)) and value not in (0, 1):
            raise TypeError(f"expected a bool, got {value!r}")
        return int(bool(value))
    if dtype[0] in "iu":
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"expected a whole number ({dtype}), got {value!r}")
        value, bits = int(value.__index__()), BITS[dtype]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype[0] == "i" else (0, (1 << bits) - 1)
        if not low <= value <= high:
            raise OverflowError(f"{value} does not fit in {dtype}")
        return int(value & (1 << bits) - 1)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"expected a number ({dtype}), got {value!r}")
    value = float(value)
    with numpy.errstate(over="ignore"):
        if dtype == "bf16":
            return bf16_bits(value)
        if dtype.startswith("f8"):
            return f8_bits(value, dtype)
        size = BITS[dtype]
        return int(getattr(numpy, f"float{size}")(value).view(getattr(numpy, f"uint{size}")))
