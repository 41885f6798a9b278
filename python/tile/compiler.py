"""The compiler: sources, tile.compile, tile.explain, and what the compiler says."""
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from ctypes import byref, c_char_p, c_size_t, c_void_p, sizeof, string_at

from . import errors, native
from .native import lib

# tilec_status as tile_status
STATUS_NUMBERS = {1: 6, 2: 1, 3: 5, 4: 7, 5: 3, 6: 11, 7: 10}
TOOL = "tilec"


def module_text(name):
    """The text of a module of the library, "std.kernels.gemm"; None where it is none."""
    size = c_size_t()
    found = lib.tilec_library_text(os.fsencode(name), byref(size))
    return found[:size.value] if found else None


def file_text(path):
    with open(path, "rb") as f:
        return f.read()


class Source:
    """A text and the name that messages give it. A str with a { in it is a text, the name of a module of the library that module;
    every other str and every path names a file."""

    def __init__(self, source):
        if isinstance(source, Source):
            self.name, self.text, self.is_file = source.name, source.text, source.is_file
        elif isinstance(source, str) and "{" in source:
            self.name, self.text, self.is_file = "<source>", source.encode(), False
        else:
            self.name, self.is_file = os.fspath(source), True
            self.text = module_text(self.name) or file_text(self.name)


def constant(value):
    """A constant as text."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if hasattr(value, "__index__"):
        return str(value.__index__())
    if isinstance(value, (str, float)):
        return repr(value) if isinstance(value, float) else value
    if isinstance(value, type(None)) or not hasattr(value, "name"):
        raise TypeError(f"a constant is a number, or a str for a type or a function, not {value!r}")
    from .elements import NUMPY  # a NumPy dtype
    return NUMPY.get(value.name, value.name)


def constants(values):
    return {name: constant(value) for name, value in values.items()}


class Diagnostics:
    """Takes what the compiler says, on a thread of the compiler; warnings become Python's when the call is over."""

    def __init__(self):
        self.texts = []
        self.callback = native.TextCallback(self.take)

    def take(self, user, text):
        self.texts.append(text.decode(errors="replace"))

    def text(self):
        texts, self.texts = self.texts, []
        return "".join(texts)

    def warn(self, level):
        text = self.text().rstrip("\n")
        if text:
            warnings.warn(text, errors.CompileWarning, stacklevel=level)


class Output:
    """What tile.compile made: `data` (bytes), `text`, `message`, and `depends`, the files that were read."""

    def __init__(self, handle):
        size = c_size_t()
        data = lib.tilec_output_data(handle, byref(size))
        self.data = string_at(data, size.value) if data else b""
        self.message = lib.tilec_output_message(handle).decode(errors="replace")
        self.depends = lib.tilec_output_depends(handle).decode(errors="replace").splitlines()

    @property
    def text(self):
        return self.data.decode()

    def __repr__(self):
        return f"<tile.Output: {len(self.data)} bytes>"


def compile_source(source, options, consts, include_dirs, stacklevel):
    said = Diagnostics()
    pairs = (native.CompileConst * (len(consts) + 1))(*[(k.encode(), v.encode()) for k, v in consts.items()])
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


def compile(source, *, target="cpu", emit="image", kernel=None, consts=None, include_dirs=(), opt_level=3, debug=False, check=False,
            fp="default", warps=0, stages=0, warnings_as_errors=False, cache=None, **more_consts):
    """Compiles a source (a path, or a text) ahead of time. `emit` is a stage: "image" for tile.load_image, "ptx", "asm", "llvm",
    "hsaco", "obj", "header" ... Constants are keywords, or in `consts`. Returns an Output; raises CompileError."""
    options = dict(target=target, emit=emit, kernel=kernel, opt_level=opt_level or native.NONE, debug=debug, check=check, fp=fp,
                   warps=warps, stages=stages, werror=warnings_as_errors, cache=cache)
    return compile_source(Source(source), {k: v for k, v in options.items() if v is not None},
                          constants({**(consts or {}), **more_consts}), include_dirs, 3)


def names(function):
    """The texts of a NULL-terminated list."""
    found = function()
    out = []
    while found[len(out)]:
        out.append(found[len(out)].decode())
    return out


def targets():
    """The targets that the compiler knows."""
    return names(lib.tilec_targets)


def stages():
    """The stages at which tile.compile can stop."""
    return names(lib.tilec_stages)


# ---- tilec ----

def tool():
    """The path of the program tilec: of this package, beside the library, or on PATH."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", TOOL)
    beside = os.path.join(os.path.dirname(native.library_path()), TOOL)
    for path in (here, beside):
        if os.path.dirname(path) and os.access(path, os.X_OK):
            return path
    path = shutil.which(TOOL)
    if not path:
        raise errors.UnavailableError("the program tilec is not in this package and not on PATH", "unavailable")
    return path


def main():
    """The command tilec that pip installs."""
    os.execv(tool(), [TOOL, *sys.argv[1:]])


class Explanation:
    """What the compiler tells about a kernel on GPUs; print it."""

    def __init__(self, text, warnings_text):
        self.text, self.warnings = text, warnings_text

    def __str__(self):
        return self.text

    __repr__ = __str__


def explain(source, *, kernel=None, target="sm_80,gfx942", consts=None, include_dirs=(), **more_consts):
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
