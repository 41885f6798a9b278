"""The compiler: sources, tile.compile, tile.explain, and what the compiler says."""
from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from ctypes import byref, c_size_t, c_void_p, sizeof, string_at
from typing import Any, NoReturn, Union

from . import errors, native
from .native import lib

# tilec_status as tile_status
STATUS_NUMBERS = {1: 6, 2: 1, 3: 5, 4: 7, 5: 3, 6: 11, 7: 10}
TOOL = "tilec"
Path = Union[str, "os.PathLike[str]"]  # of a source; a str may be its text, too


@functools.cache
def module_text(name: str) -> bytes | None:
    """The text of a module of the library, "std.kernels.gemm"; None where it is none."""
    size = c_size_t()
    found = lib.tilec_library_text(os.fsencode(name), byref(size))
    return bytes(found[:size.value]) if found else None


def file_text(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


class Source:
    """A text and the name that messages give it. A str with a { in it is a text, the name of a module of the library that module;
    every other str and every path names a file."""

    def __init__(self, source: Source | Path) -> None:
        self.name: str
        self.text: bytes
        self.is_file: bool
        if isinstance(source, Source):
            self.name, self.text, self.is_file = source.name, source.text, source.is_file
        elif isinstance(source, str) and "{" in source:
            self.name, self.text, self.is_file = "<source>", source.encode(), False
        else:
            self.name, self.is_file = os.fspath(source), True
            self.text = module_text(self.name) or file_text(self.name)


def constant(value: Any) -> str:
    """A constant as text."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if hasattr(value, "__index__"):
        return str(int(value.__index__()))
    if isinstance(value, float):
        return repr(value)
    name = value if isinstance(value, str) else type_name(value)
    if name is None:
        raise TypeError(f"a constant is a number, or a str for a type or a function, not {value!r}")
    from .elements import NUMPY
    return {**NUMPY, "uint8": "u8", "uint16": "u16"}.get(name, name)


def type_name(value: Any) -> str | None:
    """"float16" of a type of NumPy's, of ml_dtypes or of torch; None: it is none."""
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":
        return str(value).rpartition(".")[2]
    import numpy
    if isinstance(value, type) and issubclass(value, numpy.generic):
        return str(numpy.dtype(value).name)
    return str(value.name) if hasattr(value, "name") else None  # a NumPy dtype


def constants(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: constant(value) for name, value in values.items()}


class Diagnostics:
    """Takes what the compiler says, on a thread of the compiler; warnings become Python's when the call is over."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.callback = native.TextCallback(self.take)

    def take(self, user: object, text: bytes) -> None:
        self.texts.append(text.decode(errors="replace"))

    def text(self) -> str:
        texts, self.texts = self.texts, []
        return "".join(texts)

    def warn(self, level: int) -> None:
        text = self.text().rstrip("\n")
        if text:
            warnings.warn(text, errors.CompileWarning, stacklevel=level)


class Output:
    """What tile.compile made: `data` (bytes), `text`, `message`, and `depends`, the files that were read."""

    def __init__(self, handle: c_void_p) -> None:
        size = c_size_t()
        data = lib.tilec_output_data(handle, byref(size))
        self.data = string_at(data, size.value) if data else b""
        self.message: str = lib.tilec_output_message(handle).decode(errors="replace")
        self.depends: list[str] = lib.tilec_output_depends(handle).decode(errors="replace").splitlines()

    @property
    def text(self) -> str:
        return self.data.decode()

    def __repr__(self) -> str:
        return f"<tile.Output: {len(self.data)} bytes>"


def compile_source(source: Source, options: Mapping[str, Any], consts: Mapping[str, str], include_dirs: Sequence[Path], stacklevel: int) -> Output:
    said = Diagnostics()
    pairs = (native.CompileConst * (len(consts) + 1))(*[native.CompileConst(k.encode(), v.encode()) for k, v in consts.items()])
    dirs = native.texts(include_dirs)
    o = native.CompileOptions(struct_size=sizeof(native.CompileOptions), consts=pairs, nconsts=len(consts), include_dirs=dirs,
                              ninclude_dirs=len(include_dirs), diagnostic=said.callback)
    for name, value in options.items():
        setattr(o, name, value.encode() if isinstance(value, str) else value)
    handle = c_void_p()
    status = lib.tilec_compile_source(os.fsencode(source.name), source.text, len(source.text), byref(o), byref(handle))
    try:
        if status:
            message = lib.tilec_output_message(handle).decode(errors="replace")
            text = said.text().rstrip("\n") or message if status == 1 else message
            native.fail(STATUS_NUMBERS.get(status, 11), text)
        said.warn(stacklevel + 1)
        return Output(handle)
    finally:
        lib.tilec_output_free(handle)


def compile(source: Path, *, target: str = "cpu", emit: str = "image", kernel: str | None = None, consts: Mapping[str, Any] | None = None,
            include_dirs: Sequence[Path] = (), opt_level: int = 3, debug: bool = False, check: bool = False, fp: str = "default", warps: int = 0,
            stages: int = 0, warnings_as_errors: bool = False, cache: str | None = None, **more_consts: Any) -> Output:
    """Compiles a source (a path, or a text) ahead of time. `emit` is a stage: "image" for tile.load_image, "ptx", "asm", "llvm",
    "hsaco", "obj", "header" ... Constants are keywords, or in `consts`. Returns an Output; raises CompileError."""
    options = dict(target=target, emit=emit, kernel=kernel, opt_level=opt_level or native.NONE, debug=debug, check=check, fp=fp,
                   warps=warps, stages=stages, werror=warnings_as_errors, cache=cache)
    return compile_source(Source(source), {k: v for k, v in options.items() if v is not None},
                          constants({**(consts or {}), **more_consts}), include_dirs, 3)


def names(function: Any) -> list[str]:
    """The texts of a NULL-terminated list."""
    found = function()
    out: list[str] = []
    while found[len(out)]:
        out.append(found[len(out)].decode())
    return out


def targets() -> list[str]:
    """The targets that the compiler knows."""
    return names(lib.tilec_targets)


def stages() -> list[str]:
    """The stages at which tile.compile can stop."""
    return names(lib.tilec_stages)


# ---- tilec ----

def tool() -> str:
    """The path of the program tilec: of this package, beside the library, or on PATH."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", TOOL)
    beside = os.path.join(os.path.dirname(native.library_path()), TOOL)
    for path in (here, beside):
        if os.path.dirname(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(TOOL)
    if not found:
        raise errors.UnavailableError("the program tilec is not in this package and not on PATH", "unavailable")
    return found


def main() -> NoReturn:
    """The command tilec that pip installs."""
    os.execv(tool(), [TOOL, *sys.argv[1:]])


class Explanation:
    """What the compiler tells about a kernel on GPUs; print it."""

    def __init__(self, text: str, warnings_text: str) -> None:
        self.text, self.warnings = text, warnings_text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def explain(source: Source | Path, *, kernel: str | None = None, target: str = "sm_80,gfx942", consts: Mapping[str, Any] | None = None,
            include_dirs: Sequence[Path] = (), **more_consts: Any) -> Explanation:
    """Registers, shared memory, occupancy, memory accesses, conversions and loops of a kernel on GPUs, as `tilec explain` prints."""
    source = Source(source)
    words = ["--target", target, "--color", "never", *(["--kernel", kernel] if kernel else []), *[f"-I{os.fspath(d)}" for d in include_dirs]]
    for name, value in constants({**(consts or {}), **more_consts}).items():
        words += ["--const", f"{name}={value}"]
    with tempfile.TemporaryDirectory() as folder:
        path = source.name
        if not source.is_file:
            path = os.path.join(folder, "source.tile")
            with open(path, "wb") as f:
                f.write(source.text)
        p = subprocess.run([tool(), "explain", path, *words], capture_output=True, text=True, errors="replace")
    said = p.stderr.rstrip("\n")
    if p.returncode:
        native.fail({1: 6, 2: 1}.get(p.returncode, 11), said)
    return Explanation(p.stdout, said)
