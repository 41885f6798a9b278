"""Modules and kernels: a kernel is a function of its arrays and numbers."""
from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ctypes import addressof, byref, c_int64, sizeof
from typing import Any, Callable, NoReturn

from . import compiler, declarations, native
from .calls import DEFAULT, filled, learn, slots_of
from .devices import Device, Stream, device_of
from .errors import ArgumentError, NotFoundError
from .native import check, lib, made

class Module:
    """The kernels of a source or of an image. It lives as long as it or one of its kernels is used."""

    def __init__(self, handle: int, device: Device, source: compiler.Source | None = None, include_dirs: Sequence[compiler.Path] = (),
                 said: compiler.Diagnostics | None = None) -> None:
        self.handle, self.device, self.source, self.include_dirs, self.said = handle, device, source, include_dirs, said
        self.lock = threading.Lock()
        weakref.finalize(self, lib.tile_module_free, handle)

    @functools.cached_property
    def declarations(self) -> dict[str, declarations.Declaration]:
        if self.source is None:
            return {}
        printed = compiler.compile_source(self.source, dict(emit="ast"), {}, self.include_dirs, 5)
        return declarations.read(printed.text)

    @property
    def names(self) -> list[str]:
        """The names of the kernels."""
        count = lib.tile_module_kernel_count(self.handle)
        listed = [lib.tile_module_kernel_name(self.handle, i).decode() for i in range(count)]
        return list(dict.fromkeys(listed)) or list(self.declarations)

    def only_name(self) -> str:
        if len(self.names) != 1:
            raise NotFoundError(f"say which kernel: {', '.join(self.names) or 'there is none'}", "not found")
        return self.names[0]

    def kernel(self, name: str | None = None, /, *, consts: Mapping[str, Any] | None = None, **more_consts: Any) -> Kernel:
        """The kernel of that name (None: the only one) with these constants; compiled, or found in the cache."""
        return self.find(name, compiler.constants({**(consts or {}), **more_consts}), 3)

    def find(self, name: str | None, values: Mapping[str, str], stacklevel: int) -> Kernel:
        name = self.only_name() if name is None else name
        pairs = (native.Const * (len(values) + 1))(*[native.Const(k.encode(), 0, v.encode()) for k, v in values.items()])
        with self.lock:
            if self.said:
                self.said.text()
            handle = made(lib.tile_kernel_get, self.handle, name.encode(), pairs)
            if self.said:
                self.said.warn(stacklevel + 1)
        return Kernel(self, handle, name, values)


class OfKernel:
    """A property that the class itself does not have, or, __doc__, has as every class: so help() and inspect know the class, too."""

    def __init__(self, function: Callable[[Kernel], Any]) -> None:
        self.function = function

    def __get__(self, kernel: Kernel | None, owner: type) -> Any:
        if kernel is not None:
            return self.function(kernel)
        if self.function.__name__ == "__doc__":
            return KERNEL
        raise AttributeError(self.function.__name__)


KERNEL = """A compiled kernel. Call it with its arrays and numbers, in order or by name. On the default stream of a device that shares the
    host's memory the call returns when the kernel is done; it raises KernelError if a check or an assertion fails."""


class Kernel:
    def __init__(self, module: Module, handle: int, name: str, consts: Mapping[str, str]) -> None:
        if "torch" in sys.modules:
            hide_from_torch()
        self.module, self.handle, self.device = module, handle, module.device
        self.__name__ = self.__qualname__ = name
        self.consts = consts
        self.slots = slots_of(handle)
        self.places = {slot.name: i for i, slot in enumerate(self.slots)}
        self.parameters = list(dict.fromkeys(name.partition(".")[0] for name in self.places))  # as declared
        self.is_flat = self.parameters == list(self.places)
        self.count = len(self.slots)
        self.waits = self.device.host_memory  # a call on the default stream returns when the kernel is done
        stream = self.device.stream
        self.launcher = native.launcher and native.launcher.Launcher(
            handle, self.count, stream.handle if self.waits else 0, stream.lock.acquire, stream.lock.release, stream.outbox,
            stream.running, stream.settle)

    @property
    def declaration(self) -> declarations.Declaration | None:
        return self.module.declarations.get(self.__name__)

    @OfKernel
    def __doc__(self) -> str | None:
        return declarations.describe(self.declaration) if self.declaration else None

    @OfKernel
    def __signature__(self) -> inspect.Signature:
        declared = {p.name: p.type for p in self.declaration.parameters} if self.declaration else {}
        dtypes = {s.name: s.dtype for s in self.slots}
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                                    annotation=declared.get(name, dtypes.get(name, "struct"))) for name in self.parameters])

    def __repr__(self) -> str:
        consts = "".join(f", {name}={value}" for name, value in self.consts.items())
        return f"<tile.Kernel {self.__name__}({', '.join(self.parameters)}){consts} on {self.device.target}>"

    def explain(self, target: str | None = None) -> compiler.Explanation:
        """What became of it on GPUs, an object that prints; `target` is by default the device's if that is a GPU."""
        if self.module.source is None:
            raise ArgumentError("a kernel of an image has no source to explain", "bad argument")
        own = self.device.target.removeprefix("emu:")
        target = target or (own if own.startswith(("sm_", "gfx")) else "sm_80,gfx942")
        return compiler.explain(self.module.source, kernel=self.__name__, target=target, consts=self.consts,
                                include_dirs=self.module.include_dirs)

    def parts(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """A struct's fields, of a mapping or an object, by their slots' names; else the value itself."""
        if isinstance(value, Mapping):
            for field, inner in value.items():
                yield from self.parts(f"{name}.{field}", inner)
            return
        fields = dict.fromkeys(p[len(name) + 1:].partition(".")[0] for p in self.places if p.startswith(name + "."))
        if not fields:
            yield name, value
        elif not any(hasattr(value, field) for field in fields):
            raise TypeError(f"{self.__name__}(): '{name}' is a struct of {', '.join(fields)}, got {type(value).__name__}")
        for field in fields:
            if hasattr(value, field):
                yield from self.parts(f"{name}.{field}", getattr(value, field))

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments in order, a struct's by its fields, or TypeError in Python's own words."""
        if not kwargs and len(args) == self.count and self.is_flat:
            return args
        if len(args) > len(self.parameters):
            raise TypeError(f"{self.__name__}() takes {len(self.parameters)} arguments but {len(args)} were given")
        values: dict[str, Any] = {}
        for parameter, given in [*zip(self.parameters, args), *kwargs.items()]:
            for name, value in self.parts(parameter, given):
                if name not in self.places:
                    raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{name}'; its parameters: {', '.join(self.places)}")
                if name in values:
                    raise TypeError(f"{self.__name__}() got multiple values for argument '{name}'")
                values[name] = value
        for slot in self.slots:
            if slot.default is not None:
                values.setdefault(slot.name, DEFAULT)
        missing = [name for name in self.places if name not in values]
        if missing:
            raise TypeError(f"{self.__name__}() missing {len(missing)} argument{'s' * (len(missing) > 1)}: {', '.join(missing)}{self.unwritten(values)}")
        return [values[name] for name in self.places]

    def unwritten(self, values: Mapping[str, Any]) -> str:
        """For those who wait for a result, and gave none of the arrays that it goes to."""
        declared = self.declaration.parameters if self.declaration else []
        names = [p.name for p in declared if p.name in self.places and "[" in p.type and not p.type.startswith("const ")
                 and isinstance(values.get(p.name, 0), (int, float))]
        return f" (it returns nothing: the caller gives what is written, {', '.join(names)})" if names else ""

    def __getitem__(self, grid: Any) -> NoReturn:
        """Triton's k[grid](...)."""
        raise TypeError(f"{self.__name__}: kernels have grids of their own: call it with its arguments alone, or with grid=... among them")

    __iter__ = None  # what has items would be a sequence, too

    def __copy__(self) -> Kernel:
        """A kernel does not change: copies of what has it share it."""
        return self

    def __deepcopy__(self, _memo: object) -> Kernel:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"kernel '{self.__name__}' cannot be pickled: make it where it is used, by tile.kernel(source, name)")

    def advised(self, error: ArgumentError) -> ArgumentError:
        """The error of a launch, and what to write in Python."""
        text, declared = str(error), {p.name: p for p in self.declaration.parameters} if self.declaration else {}
        if re.search(r"expects a view of 1 axis, got [2-9]", text):
            return ArgumentError(f"{text}; x.reshape(-1) has one", error.status)
        wrong = re.search(r"parameter '(\w+)'(?: expects elements of type \w+, got (\w+)|: stride )", text)
        own = declared.get(wrong[1]) if wrong else None
        if own is None or wrong is None:
            return error
        element = own.type.removeprefix("const ").partition("[")[0]
        if wrong[2] and element in declared:
            return ArgumentError(f'{text}; its type is a constant: make the kernel with {element}="{wrong[2]}"', error.status)
        if not wrong[2] and own.type.startswith("const "):
            return ArgumentError(f"{text}; or give a copy, x.contiguous() or numpy.ascontiguousarray(x)", error.status)
        return error

    def arguments(self, values: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The arguments, and what keeps their memory."""
        return filled(self.__name__, self.slots, values, self.device)

    def stream_for(self, values: Sequence[Any]) -> Stream:
        """The default stream; for torch's CUDA tensors, torch's current stream of their device."""
        for value in () if self.device.host_memory else values:
            if getattr(value, "is_cuda", False) and type(value).__module__.partition(".")[0] == "torch":
                from . import torch_tensors
                return self.device.wrap_stream(torch_tensors.stream_of(value.device))
        return self.device.stream

    def room(self, *args: Any, **kwargs: Any) -> int:
        """How many programs of a launch with these arguments can run at the same time (`together`); 0: it has none."""
        arguments, _owners = self.arguments(self.bound(args, kwargs))
        programs = c_int64()
        check(lib.tile_launch_room(self.handle, arguments, self.count, byref(programs)))
        return programs.value

    def __call__(self, *args: Any, stream: Stream | None = None, grid: int | Sequence[int] | None = None, together: bool = False,
                 overlap: bool = False, **kwargs: Any) -> None:
        """Launches. `grid`: instead of the kernel's own. `together`: all programs run at the same time, and may wait for each other;
        `overlap`: it may start before the kernel ahead of it has ended, for which it waits itself."""
        values = args if self.is_flat and not kwargs and len(args) == self.count else tuple(self.bound(args, kwargs))
        if self.launcher is not None and stream is None and grid is None and not together and not overlap:
            # Most calls end here, and their tenths of microseconds are counted.
            if self.launcher.call(values) if self.waits else self.start(values):
                return
        self.launch(values, stream, grid, together, overlap)

    def start(self, values: tuple[Any, ...]) -> bool:
        """A quick call on a GPU, without waiting."""
        stream = self.stream_for(values)
        with stream.lock:
            status = self.launcher.start(values, stream.handle)
            if status >= 0:
                check(status)
                stream.keep([self.module] if stream.own_device is None else [self.module, *values])
        return bool(status >= 0)

    def launch(self, values: tuple[Any, ...], stream: Stream | None, grid: int | Sequence[int] | None, together: bool, overlap: bool) -> None:
        """A call whose arguments are looked at closely."""
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream is a tile.Stream, not {type(stream).__name__}")
        arguments, owners = self.arguments(values)
        stream = stream or self.stream_for(values)
        with stream.lock:
            if grid is None and not together and not overlap:
                status = lib.tile_launch(self.handle, stream.handle, addressof(arguments), self.count)
            else:
                status = lib.tile_launch_with(self.handle, stream.handle, addressof(arguments), self.count,
                                              byref(launch_options(grid, together, overlap)))
            try:
                check(status)
            except ArgumentError as e:
                raise self.advised(e) from None
            if stream is self.device.stream and self.device.host_memory:
                stream.wait_here()
            else:  # torch keeps its tensors until its own stream has used them
                stream.keep([self.module] if stream.own_device is None else [self.module, *owners])
        if self.launcher is not None:
            learn(self.launcher, self.slots, arguments, values)


@functools.cache
def hide_from_torch() -> None:
    from . import torch_tensors
    torch_tensors.hide_from_dynamo(Kernel.__call__)


def launch_options(grid: int | Sequence[int] | None, together: bool, overlap: bool) -> native.LaunchOptions:
    axes: tuple[Any, ...] = () if grid is None else tuple(grid) if isinstance(grid, Iterable) else (grid,)
    own = None if grid is None else (c_int64 * len(axes))(*axes)
    return native.LaunchOptions(sizeof(native.LaunchOptions), own, len(axes), (1 if together else 0) | (2 if overlap else 0))


def jit_options(include_dirs: Sequence[compiler.Path], opt_level: int, debug: bool, check: bool, fp: str, warps: int, stages: int,
                cache: compiler.Path | None, said: compiler.Diagnostics) -> native.JitOptions:
    dirs = native.texts(include_dirs)
    return native.JitOptions(sizeof(native.JitOptions), dirs, len(include_dirs), opt_level or native.NONE, debug, check, fp.encode(),
                             warps, stages, said.callback, None, os.fsencode(cache) if cache is not None else None)


def load(source: compiler.Source | compiler.Path, *, device: Device | str | None = None, include_dirs: Sequence[compiler.Path] = (),
         opt_level: int = 3, debug: bool = False, check: bool = False, fp: str = "default", warps: int = 0, stages: int = 0,
         cache: compiler.Path | None = None) -> Module:
    """A Module of a source: a path, or a text (a str with a { in it). Its kernels are compiled by Module.kernel; for a path, with the
    results of tuning that lie beside it (tile.tune). `debug` keeps asserts, `check` also checks bounds and assumptions; `cache` is a folder or "off" (default: TILE_CACHE, else ~/.cache/tile)."""
    source, device, said = compiler.Source(source), device_of(device), compiler.Diagnostics()
    include_dirs = [os.fspath(d) for d in include_dirs]
    options = jit_options(include_dirs, opt_level, debug, check, fp, warps, stages, cache, said)
    name = os.fsencode(source.name)
    if source.is_file:  # with the tuning results beside it
        handle = made(lib.tile_module_load_file, device.handle, name, byref(options))
    else:
        handle = made(lib.tile_module_load_source, device.handle, name, source.text, len(source.text), byref(options))
    return Module(handle, device, source, include_dirs, said)


def load_image(image: bytes | bytearray | memoryview | compiler.Path, *, device: Device | str | None = None) -> Module:
    """A Module of an image that tilec or tile.compile has made: bytes, or a path."""
    if not isinstance(image, (bytes, bytearray, memoryview)):
        with open(image, "rb") as f:
            image = f.read()
    device = device_of(device)
    return Module(made(lib.tile_module_load_image, device.handle, bytes(image), len(image)), device)


def kernel(source: compiler.Path, name: str | None = None, /, *, device: Device | str | None = None, include_dirs: Sequence[compiler.Path] = (),
           opt_level: int = 3, debug: bool = False, check: bool = False, fp: str = "default", warps: int = 0, stages: int = 0,
           cache: compiler.Path | None = None, consts: Mapping[str, Any] | None = None, **more_consts: Any) -> Kernel:
    """The kernel `name` (None: the only one) of a source: a path, or a text. Other keywords are its constants: tile.kernel(
    "softmax.tile", "softmax", B=1024); constants whose names are options go into `consts`. The options are those of tile.load. The last
    kernels are remembered, on devices that are given by name: the same call again gives the same kernel, until its file changes."""
    read_source = compiler.Source(source)
    values = compiler.constants({**(consts or {}), **more_consts})
    options: dict[str, Any] = dict(include_dirs=include_dirs, opt_level=opt_level, debug=debug, check=check, fp=fp, warps=warps, stages=stages,
                                   cache=cache)
    key = None
    if isinstance(device, (str, type(None))) and IMPORT.search(read_source.text) is None:
        key = (read_source.name, read_source.text, name, device, *map(repr, options.values()), *values.items(), *surroundings(read_source))
        if key in remembered:
            return remembered[key]
    found = load(read_source, device=device, **options).find(name, values, 3)
    if key is not None:
        if len(remembered) >= REMEMBERED:
            remembered.pop(next(iter(remembered)), None)
        remembered[key] = found
    return found


REMEMBERED = 256
IMPORT = re.compile(rb"import\s*\"")              # of a file, whose changes would not be seen
remembered: dict[tuple[Any, ...], Kernel] = {}


def surroundings(source: compiler.Source) -> Iterator[Any]:
    """What else a kernel depends on: variables of the environment, the folder, results of tuning."""
    yield from ((name, os.environ[name]) for name in os.environ if name.startswith("TILE_"))
    if source.is_file:
        yield os.getcwd()
        try:
            found = os.stat(os.path.splitext(source.name)[0] + ".tune.json")
            yield found.st_mtime_ns, found.st_size
        except OSError:
            pass
