"""tile.Array: an array in the memory of a device, with the protocols by which NumPy and torch take it."""
from __future__ import annotations

import html
import weakref
from collections.abc import Iterator, Sequence
from ctypes import c_byte
from typing import Any, Optional, Union

import numpy

from . import dlpack
from .devices import Device, Stream, device_of
from .elements import dense, element_of, numpy_type, size_of
from .errors import ArgumentError
from .native import check, lib, made

SHOWN = 1000  # elements: repr prints the numbers of arrays up to this size
SIDE = 20     # rows and columns of a table in a notebook


class Array:
    """An array in the memory of a device: what kernels of cuda and hip devices take. Made by tile.upload and tile.empty. a[1], a[2:, ::3]
    are the same memory. NumPy and torch see the memory itself where it is the host's (numpy.asarray, torch.from_dlpack), else NumPy gets a copy.
    `element` is the language's name of the type, `dtype` NumPy's; without the package ml_dtypes those of bf16 and f8 are unsigned integers."""

    def __init__(self, shape: Union[int, Sequence[int]], dtype: Any, device: Union[Device, str, None] = None) -> None:
        self.device = device_of(device)
        self.shape = (int(shape),) if hasattr(shape, "__index__") else tuple(int(n) for n in shape)
        self.dtype, self.element = numpy_type(dtype), element_of(dtype)
        self.strides: Optional[tuple[int, ...]] = None  # in elements; None: dense
        self.handle = made(lib.tile_buffer_alloc, self.device.handle, self.nbytes)
        weakref.finalize(self, lib.tile_buffer_free, self.handle)
        self.address = self.start = lib.tile_buffer_ptr(self.handle) or 0
        self.base: Optional[Array] = None  # whose memory it is, if not its own

    @property
    def size(self) -> int:
        return size_of(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * int(self.dtype.itemsize)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    # ---- copies ----

    def upload(self, array: Any, stream: Optional[Stream] = None) -> Array:
        array = numpy.ascontiguousarray(array)
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ArgumentError(f"expected an array of {self.dtype} {self.shape}, got {array.dtype} {array.shape}", "bad argument")
        if self.strides is not None:
            raise ArgumentError("upload needs an array whose elements lie side by side", "bad argument")
        stream = stream or self.device.stream
        check(lib.tile_buffer_upload(self.handle, self.address - self.start, array.ctypes.data, self.nbytes, stream.handle))
        return self

    def download(self, stream: Optional[Stream] = None) -> numpy.ndarray[Any, Any]:
        """A NumPy array with a copy of the elements."""
        stream = stream or self.device.stream
        if self.strides is not None and self.base is not None:
            whole = self.base.download(stream)
            return self.placed(whole.data, self.address - self.start).copy() if self.size else numpy.empty(self.shape, self.dtype)
        array = numpy.empty(self.shape, self.dtype)
        check(lib.tile_buffer_download(self.handle, self.address - self.start, array.ctypes.data, self.nbytes, stream.handle))
        return array

    def placed(self, memory: Any, offset: int) -> numpy.ndarray[Any, Any]:
        strides = None if self.strides is None else [n * self.dtype.itemsize for n in self.strides]
        return numpy.ndarray(self.shape, self.dtype, memory, offset, strides)

    # ---- protocols ----

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> numpy.ndarray[Any, Any]:
        if not self.size:
            return numpy.empty(self.shape, dtype if dtype is not None else self.dtype)
        if self.device.host_memory:
            memory = (c_byte * self.nbytes_of_base).from_address(self.start)
            memory.owner = self  # type: ignore[attr-defined]
            array = self.placed(memory, self.address - self.start)
            return array.astype(dtype if dtype is not None else self.dtype, copy=bool(copy))
        if copy is False:
            raise ValueError(f"the array is in the memory of {self.device.target}: NumPy can have a copy only")
        return self.download().astype(dtype if dtype is not None else self.dtype, copy=False)

    @property
    def nbytes_of_base(self) -> int:
        return (self.base or self).nbytes

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_of(self.device.host_memory, self.device.target, self.device.index)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None) -> object:
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("tile.Array gives its own memory only")
        if not self.device.host_memory:
            self.device.synchronize()  # what any of its streams still writes
        return dlpack.capsule(self.address, self.element, self.shape, self.strides, self.__dlpack_device__(), self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Array:
        """A part of the same memory, by integers, slices and `...`."""
        words = list(index) if isinstance(index, tuple) else [index]
        dots = [i for i, word in enumerate(words) if word is Ellipsis]
        rest = len(self.shape) - len(words) + len(dots)
        if rest < 0 or len(dots) > 1:
            raise IndexError(f"{len(words)} indices for an array of {len(self.shape)} axes")
        place = dots[0] if dots else len(words)
        words[place:place + 1] = [slice(None)] * rest
        return self.part(words)

    def part(self, words: Sequence[Any]) -> Array:
        offset, shape, strides = 0, [], []
        for axis, (word, extent, stride) in enumerate(zip(words, self.shape, self.strides or dense(self.shape))):
            if isinstance(word, slice):
                start, _, step = word.indices(extent)
                shape.append(len(range(*word.indices(extent))))
                strides.append(step * stride)
                offset += start * stride if shape[-1] else 0
            elif hasattr(word, "__index__") and not isinstance(word, bool):
                i = word.__index__()
                if not -extent <= i < extent:
                    raise IndexError(f"index {i} is out of bounds for axis {axis} with size {extent}")
                offset += (i % extent) * stride
            else:
                raise TypeError(f"an index of tile.Array is an integer, a slice or ..., not {type(word).__name__}")
        found = Array.__new__(Array)
        found.__dict__.update(self.__dict__)
        found.shape, found.base, found.address = tuple(shape), self.base or self, self.address + offset * self.dtype.itemsize
        found.strides = None if is_dense(shape, strides) else tuple(strides)
        return found

    def item(self) -> Any:
        """The one element as a number."""
        return self.download().item()

    # ---- for people ----

    def __repr__(self) -> str:
        about = f"{self.element} {list(self.shape)} on {self.device.target}"
        return f"<tile.Array {about}>" if self.size > SHOWN else f"<tile.Array {about}\n{self.download()}>"

    def _repr_html_(self) -> str:
        """A table of the first rows and columns, in notebooks."""
        about = f"tile.Array {self.element} {list(self.shape)} on {self.device.target}"
        if self.ndim not in (1, 2):
            return f"<pre>{html.escape(repr(self))}</pre>"
        shown = self[:SIDE].download().reshape(1, -1) if self.ndim == 1 else self[:SIDE, :SIDE].download()
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(str(x))}</td>" for x in row) + "</tr>" for row in shown)
        more = "" if shown.size == self.size else " (the first rows and columns)"
        return f"<table><caption>{html.escape(about)}{more}</caption>{rows}</table>"


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return all(n == 1 or a == b for n, a, b in zip(shape, strides, dense(shape))) or 0 in shape


def upload(array: Any, device: Union[Device, str, None] = None) -> Array:
    """A copy of a NumPy array, or of what numpy.asarray takes, in the memory of a device."""
    array = numpy.asarray(array)
    return Array(array.shape, array.dtype, device).upload(array)


def empty(shape: Union[int, Sequence[int]], dtype: Any, device: Union[Device, str, None] = None) -> Array:
    """An array in the memory of a device, with arbitrary contents. dtype: NumPy's or ml_dtypes', or a name: "f32", "bf16"."""
    return Array(shape, dtype, device)
