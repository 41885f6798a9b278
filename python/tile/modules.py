"""Modules and kernels: a kernel is a function of its arrays and numbers."""
import functools
import inspect
import sys
import threading
import weakref
from collections import namedtuple
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_int64, c_void_p, sizeof

from . import arrays, compiler, declarations, native
from .devices import Stream, device_of
from .elements import NAMES, NUMBERS
from .errors import ArgumentError, NotFoundError
from .native import check, lib, made

VIEW, POINTER, SCALAR = range(3)
# A parameter, as the compiled kernel has it; of a struct one for each field, "s.inner.n". default: bits, or None.
Slot = namedtuple("Slot", "name kind dtype const rank default")
DEFAULT = object()  # a field's value that is not given


def slots_of(handle):
    slots = []
    for i in range(lib.tile_kernel_param_count(handle)):
        info = native.ParamInfo(sizeof(native.ParamInfo))
        check(lib.tile_kernel_param(handle, i, byref(info)))
        slots.append(Slot(info.name.decode(), info.kind, NAMES[info.dtype], bool(info.is_const), info.rank,
                          info.value if info.has_default else None))
    return slots


class Module:
    """The kernels of a source or of an image. It lives as long as it or one of its kernels is used."""

    def __init__(self, handle, device, source=None, options=None, said=None):
        self.handle, self.device, self.source, self.options, self.said = handle, device, source, options, said
        self.lock = threading.Lock()
        weakref.finalize(self, lib.tile_module_free, handle)

    @functools.cached_property
    def declarations(self):
        if self.source is None:
            return {}
        printed = compiler.compile_source(self.source, dict(emit="ast"), {}, self.options["include_dirs"], 5)
        return declarations.read(printed.text)

    @property
    def names(self):
        """The names of the kernels."""
        count = lib.tile_module_kernel_count(self.handle)
        listed = [lib.tile_module_kernel_name(self.handle, i).decode() for i in range(count)]
        return list(dict.fromkeys(listed)) or list(self.declarations)

    def only_name(self):
        if len(self.names) != 1:
            raise NotFoundError(f"say which kernel: {', '.join(self.names) or 'there is none'}", "not found")
        return self.names[0]

    def kernel(self, name=None, /, *, consts=None, **more_consts):
        """The kernel of that name (None: the only one) with these constants; compiled, or found in the cache."""
        return self.find(name, compiler.constants({**(consts or {}), **more_consts}), 3)

    def find(self, name, values, stacklevel):
        name = self.only_name() if name is None else name
        pairs = [(k.encode(), 0, v.encode()) for k, v in values.items()] + [(None, 0, None)]
        with self.lock:
            if self.said:
                self.said.text()
            handle = made(lib.tile_kernel_get, self.handle, name.encode(), (native.Const * len(pairs))(*pairs))
            if self.said:
                self.said.warn(stacklevel + 1)
        return Kernel(self, handle, name, values)


class OfKernel:
    """A property that the class itself does not have, or, __doc__, has as every class: so help() and inspect know the class, too."""

    def __init__(self, function):
        self.function = function

    def __get__(self, kernel, owner):
        if kernel is not None:
            return self.function(kernel)
        if self.function.__name__ == "__doc__":
            return KERNEL
        raise AttributeError(self.function.__name__)


KERNEL = """A compiled kernel. Call it with its arrays and numbers, in order or by name. On the default stream of a device that shares the
    host's memory the call returns when the kernel is done; it raises KernelError if a check or an assertion fails."""


class Kernel:
    def __init__(self, module, handle, name, consts):
        if "torch" in sys.modules:
            hide_from_torch()
        self.module, self.handle, self.device = module, handle, module.device
        self.__name__ = self.__qualname__ = name
        self.consts = consts
        self.slots = slots_of(handle)
        self.places = {slot.name: i for i, slot in enumerate(self.slots)}
        self.parameters = list(dict.fromkeys(name.partition(".")[0] for name in self.places))  # as declared
        self.is_flat = self.parameters == list(self.places)

    @property
    def declaration(self):
        return self.module.declarations.get(self.__name__)

    @OfKernel
    def __doc__(self):
        return declarations.describe(self.declaration) if self.declaration else None

    @OfKernel
    def __signature__(self):
        declared = {p.name: p.type for p in self.declaration.parameters} if self.declaration else {}
        dtypes = {s.name: s.dtype for s in self.slots}
        return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                                    annotation=declared.get(name, dtypes.get(name, "struct"))) for name in self.parameters])

    def __repr__(self):
        consts = "".join(f", {name}={value}" for name, value in self.consts.items())
        return f"<tile.Kernel {self.__name__}({', '.join(self.parameters)}){consts} on {self.device.target}>"

    def explain(self, target=None):
        """What became of it on GPUs, an object that prints; `target` is by default the device's if that is a GPU."""
        if self.module.source is None:
            raise ArgumentError("a kernel of an image has no source to explain", "bad argument")
        own = self.device.target.removeprefix("emu:")
        target = target or (own if own.startswith(("sm_", "gfx")) else "sm_80,gfx942")
        return compiler.explain(self.module.source, kernel=self.__name__, target=target, consts=self.consts,
                                include_dirs=self.module.options["include_dirs"])

    def parts(self, name, value):
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

    def bound(self, args, kwargs):
        """The arguments in order, a struct's by its fields, or TypeError in Python's own words."""
        if not kwargs and len(args) == len(self.slots) and self.is_flat:
            return args
        if len(args) > len(self.parameters):
            raise TypeError(f"{self.__name__}() takes {len(self.parameters)} arguments but {len(args)} were given")
        values = {}
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
            raise TypeError(f"{self.__name__}() missing {len(missing)} arguments: {', '.join(missing)}")
        return [values[name] for name in self.places]

    def fill(self, arg, slot, value):
        """Sets one argument; returns what keeps its memory."""
        if slot.kind == SCALAR:
            bits = slot.default if value is DEFAULT else arrays.scalar_bits(value, slot.dtype)
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
        if m.on_host and not self.device.host_memory:
            raise ArgumentError(f"the array is in the host's memory, the kernel runs on {self.device.target}: use tile.upload", "bad argument")
        if not m.on_host and self.device.host_memory:
            raise ArgumentError(f"the array is in the memory of a GPU, the kernel runs on {self.device.target}", "bad argument")
        arrays.fits(m, slot.dtype)
        if slot.kind == POINTER:
            arrays.fill_pointer(arg, m)
        else:
            arrays.fill_view(arg, m, slot.dtype)
        return m.owner

    def arguments(self, values):
        args, owners = (native.Arg * max(len(self.slots), 1))(), []
        for arg, slot, value in zip(args, self.slots, values):
            try:
                owners.append(self.fill(arg, slot, value))
            except (TypeError, ValueError, OverflowError) as e:
                where = f"kernel '{self.__name__}': parameter '{slot.name}': {e}"
                raise (type(e)(where, e.status) if isinstance(e, ArgumentError) else type(e)(where)) from None
        return args, owners

    def stream_for(self, values):
        """The default stream; for torch's CUDA tensors, torch's current stream of their device."""
        for value in values:
            if getattr(value, "is_cuda", False) and type(value).__module__.partition(".")[0] == "torch":
                from . import torch_tensors
                return self.device.wrap_stream(torch_tensors.stream_of(value.device))
        return self.device.stream

    def room(self, *args, **kwargs):
        """How many programs of a launch with these arguments can run at the same time (`together`); 0: it has none."""
        filled, _owners = self.arguments(self.bound(args, kwargs))
        programs = c_int64()
        check(lib.tile_launch_room(self.handle, filled, len(self.slots), byref(programs)))
        return programs.value

    def __call__(self, *args, stream=None, grid=None, together=False, overlap=False, **kwargs):
        """Launches. `grid`: instead of the kernel's own. `together`: all programs run at the same time, and may wait for each other;
        `overlap`: it may start before the kernel ahead of it has ended, for which it waits itself."""
        values = self.bound(args, kwargs)
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"stream is a tile.Stream, not {type(stream).__name__}")
        stream = stream or self.stream_for(values)
        filled, owners = self.arguments(values)
        with stream.lock:
            if grid is None and not together and not overlap:
                check(lib.tile_launch(self.handle, stream.handle, filled, len(self.slots)))
            else:
                check(lib.tile_launch_with(self.handle, stream.handle, filled, len(self.slots), byref(launch_options(grid, together, overlap))))
            if stream is self.device.stream and self.device.host_memory:
                stream.synchronize()
            else:  # torch keeps its tensors until its own stream has used them
                stream.keep([self.module] if stream is not None and stream.own_device is None else [self.module, *owners])


@functools.cache
def hide_from_torch():
    from . import torch_tensors
    torch_tensors.hide_from_dynamo(Kernel.__call__)


def launch_options(grid, together, overlap):
    axes = () if grid is None else (grid,) if hasattr(grid, "__index__") else tuple(grid)
    own = None if grid is None else (c_int64 * len(axes))(*axes)
    return native.LaunchOptions(sizeof(native.LaunchOptions), own, len(axes), (1 if together else 0) | (2 if overlap else 0))


def jit_options(include_dirs, opt_level, debug, check, fp, warps, stages, cache, said):
    dirs = native.texts(include_dirs)
    return native.JitOptions(sizeof(native.JitOptions), dirs, len(include_dirs), opt_level or native.NONE, debug, check, fp.encode(),
                             warps, stages, said.callback, None, native.os.fsencode(cache) if cache is not None else None)


def load(source, *, device=None, include_dirs=(), opt_level=3, debug=False, check=False, fp="default", warps=0, stages=0, cache=None):
    """A Module of a source: a path, or a text (a str with a { in it). Its kernels are compiled by Module.kernel; for a path, with the
    results of tuning that lie beside it (tile.tune). `debug` keeps asserts, `check` also checks bounds and assumptions; `cache` is a folder or "off" (default: TILE_CACHE, else ~/.cache/tile)."""
    source, device, said = compiler.Source(source), device_of(device), compiler.Diagnostics()
    include_dirs = [native.os.fspath(d) for d in include_dirs]
    options = jit_options(include_dirs, opt_level, debug, check, fp, warps, stages, cache, said)
    name = native.os.fsencode(source.name)
    if source.is_file:  # with the tuning results beside it
        handle = made(lib.tile_module_load_file, device.handle, name, byref(options))
    else:
        handle = made(lib.tile_module_load_source, device.handle, name, source.text, len(source.text), byref(options))
    return Module(handle, device, source, dict(include_dirs=include_dirs), said)


def load_image(image, *, device=None):
    """A Module of an image that tilec or tile.compile has made: bytes, or a path."""
    if not isinstance(image, (bytes, bytearray, memoryview)):
        with open(image, "rb") as f:
            image = f.read()
    device = device_of(device)
    return Module(made(lib.tile_module_load_image, device.handle, bytes(image), len(image)), device)


def kernel(source, name=None, /, *, device=None, include_dirs=(), opt_level=3, debug=False, check=False, fp="default", warps=0, stages=0,
           cache=None, consts=None, **more_consts):
    """The kernel `name` (None: the only one) of a source: a path, or a text. Other keywords are its constants: tile.kernel(
    "softmax.tile", "softmax", B=1024); constants whose names are options go into `consts`. The options are those of tile.load."""
    module = load(source, device=device, include_dirs=include_dirs, opt_level=opt_level, debug=debug, check=check, fp=fp, warps=warps,
                  stages=stages, cache=cache)
    return module.find(name, compiler.constants({**(consts or {}), **more_consts}), 3)
