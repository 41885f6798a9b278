"""The element types of the language, by the names and numbers that C, NumPy and ml_dtypes give them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from . import native
from .errors import ArgumentError

# tile_dtype, by its number.
NAMES = ("bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 i4 u4 f4e2m1 f8e4m3fnuz f8e5m2fnuz").split()
NUMBERS = {name: i for i, name in enumerate(NAMES)}
BITS: dict[str, int] = {name: native.lib.tile_dtype_bits(i) for name, i in NUMBERS.items()}
ANY_WORD, ANY_BYTE = -3, -2
PACKED = ("i4", "u4", "f4e2m1")
# NumPy's names, and those of ml_dtypes. As in C, 16-bit words stand for any type of 16 bits and bytes for any of 8 or 4.
NUMPY = {"bool": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint32": "u32", "uint64": "u64", "float16": "f16",
         "float32": "f32", "float64": "f64", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
         "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz"}
CODES = {name: NUMBERS[dtype] for name, dtype in NUMPY.items()} | {"uint16": ANY_WORD, "uint8": ANY_BYTE}
THEIRS = {ours: theirs for theirs, ours in NUMPY.items()} | {"u8": "uint8", "u16": "uint16"}


def numpy_type(dtype: Any) -> numpy.dtype[Any]:
    """NumPy's type for a name of the language or for what numpy.dtype takes; unsigned integers where only ml_dtypes has it and is not there."""
    if not isinstance(dtype, str) or dtype not in NUMBERS:
        given: numpy.dtype[Any] = numpy.dtype(dtype)
        return given
    if dtype in PACKED:
        raise ArgumentError(f'two elements of {dtype} are in a byte: make an array of "u8", and tile.view(x, "{dtype}")', "bad argument")
    if dtype == "bool" or hasattr(numpy, THEIRS[dtype]):
        return numpy.dtype(THEIRS[dtype])
    try:
        import ml_dtypes
        found: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, THEIRS[dtype]))
        return found
    except ImportError:
        return numpy.dtype(f"uint{BITS[dtype]}")


def element_of(dtype: Any) -> str:
    """The language's name of a type of NumPy's or ml_dtypes, or of its own."""
    if isinstance(dtype, str) and dtype in NUMBERS:
        return dtype
    found: numpy.dtype[Any] = numpy.dtype(dtype)
    name = found.name if found.isnative else found.str
    return NUMPY.get(name, {"uint8": "u8", "uint16": "u16"}.get(name, name))


def size_of(shape: Sequence[int]) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array whose elements lie side by side, in elements."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n
    return tuple(strides)
