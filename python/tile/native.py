"""The functions of libtilec.so (tile.h, tile_jit.h, tilec.h), called through ctypes, which releases Python's lock meanwhile."""
from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, NoReturn

from . import errors

LIBRARY = "libtilec.so.0.1"
MAX_RANK = 8
TextCallback = CFUNCTYPE(None, c_void_p, c_char_p)


class DeviceInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char * 128), ("target", c_char * 32), ("processors", c_int),
                ("host_memory", c_int), ("memory_bytes", c_uint64)]


class DeviceOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("threads", c_int), ("affinity", c_char_p)]


class Callbacks(Structure):
    _fields_ = [("struct_size", c_size_t), ("print", TextCallback), ("failure", TextCallback), ("user", c_void_p)]


class Const(Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64), ("text", c_char_p)]


class ParamInfo(Structure):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("kind", c_int), ("dtype", c_int), ("is_const", c_int), ("rank", c_int),
                ("has_default", c_int), ("value", c_uint64)]


class Arg(Structure):
    _fields_ = [("kind", c_int32), ("dtype", c_int32), ("rank", c_int32), ("strided", c_int32), ("address", c_void_p),
                ("bytes", c_uint64), ("scalar", c_uint64), ("extent", c_int64 * MAX_RANK), ("stride", c_int64 * MAX_RANK)]


NONE = -(1 << 31)  # TILE_NONE, TILEC_NONE: 0, where 0 stands for the default


class JitOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("include_dirs", POINTER(c_char_p)), ("ninclude_dirs", c_size_t), ("opt_level", c_int),
                ("debug", c_int), ("check", c_int), ("fp", c_char_p), ("warps", c_int), ("stages", c_int),
                ("diagnostic", TextCallback), ("user", c_void_p), ("cache", c_char_p), ("process", c_char_p)]


class TuneProgress(Structure):
    _fields_ = [("struct_size", c_size_t), ("kernel", c_char_p), ("config", c_char_p), ("us", c_double), ("rejected", c_char_p),
                ("step", c_char_p), ("done", c_size_t), ("total", c_size_t), ("best", c_char_p), ("best_us", c_double),
                ("elapsed", c_double), ("left", c_double)]


ProgressCallback = CFUNCTYPE(c_int, c_void_p, POINTER(TuneProgress))


class TuneOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("jit", POINTER(JitOptions)), ("consts", POINTER(Const)), ("budget", c_double),
                ("file", c_char_p), ("progress", ProgressCallback), ("user", c_void_p), ("tolerance", c_double), ("again", c_int),
                ("model", c_int), ("only", POINTER(c_char_p)), ("look", c_int)]


class TuneResult(Structure):
    _fields_ = [("struct_size", c_size_t), ("best", c_char * 512), ("best_us", c_double), ("total", c_size_t), ("timed", c_size_t),
                ("rejected", c_size_t), ("kept", c_size_t), ("complete", c_int), ("standard_us", c_double)]


class CompileConst(Structure):
    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class CompileOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("target", c_char_p), ("emit", c_char_p), ("kernel", c_char_p),
                ("consts", POINTER(CompileConst)), ("nconsts", c_size_t), ("include_dirs", POINTER(c_char_p)),
                ("ninclude_dirs", c_size_t), ("opt_level", c_int), ("debug", c_int), ("check", c_int), ("fp", c_char_p),
                ("werror", c_int), ("diagnostics", c_char_p), ("color", c_int), ("diagnostic", TextCallback),
                ("passes", c_char_p), ("print_after", c_char_p), ("dump_dir", c_char_p), ("stop_after", c_char_p),
                ("skip", c_char_p), ("override", c_char_p), ("crash_dir", c_char_p), ("bisect", c_int), ("time_passes", c_int),
                ("verify_each", c_int), ("print", c_void_p), ("user", c_void_p), ("alloc", c_void_p), ("alloc_user", c_void_p),
                ("warps", c_int), ("stages", c_int), ("one_kernel", c_int), ("stress_layouts", c_uint64), ("report", c_int),
                ("name", c_char_p), ("warnings", POINTER(c_char_p)), ("nwarnings", c_size_t), ("time_trace", c_int),
                ("cache", c_char_p), ("tuned", c_void_p), ("ntuned", c_size_t), ("config", c_char_p),
                ("tunings", c_int), ("forms", c_char_p), ("bound", c_void_p), ("process", c_char_p),
                ("prefix", c_char_p)]


HANDLE, OUT = c_void_p, POINTER(c_void_p)
class LaunchOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("grid", POINTER(c_int64)), ("naxes", c_size_t), ("flags", c_uint)]


# function: (result, parameters). c_int as a result is a tile_status unless the name is in PLAIN.
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "tile_version": (c_int, []),
    "tile_last_error": (c_char_p, []),
    "tile_status_name": (c_char_p, [c_int]),
    "tile_dtype_name": (c_char_p, [c_int]),
    "tile_dtype_bits": (c_int, [c_int]),
    "tile_device_open_with": (c_int, [c_char_p, POINTER(DeviceOptions), OUT]),
    "tile_device_close": (None, [HANDLE]),
    "tile_device_get_info": (c_int, [HANDLE, POINTER(DeviceInfo)]),
    "tile_device_set_callbacks": (c_int, [HANDLE, POINTER(Callbacks)]),
    "tile_device_synchronize": (c_int, [HANDLE]),
    "tile_device_default_stream": (c_int, [HANDLE, OUT]),
    "tile_buffer_alloc": (c_int, [HANDLE, c_uint64, OUT]),
    "tile_buffer_free": (None, [HANDLE]),
    "tile_buffer_ptr": (c_void_p, [HANDLE]),
    "tile_buffer_upload": (c_int, [HANDLE, c_uint64, c_void_p, c_uint64, HANDLE]),
    "tile_buffer_download": (c_int, [HANDLE, c_uint64, c_void_p, c_uint64, HANDLE]),
    "tile_stream_create": (c_int, [HANDLE, OUT]),
    "tile_stream_create_part": (c_int, [HANDLE, c_uint32, c_uint32, OUT]),
    "tile_stream_wrap": (c_int, [HANDLE, c_void_p, OUT]),
    "tile_stream_free": (None, [HANDLE]),
    "tile_stream_synchronize": (c_int, [HANDLE]),
    "tile_event_create": (c_int, [HANDLE, OUT]),
    "tile_event_free": (None, [HANDLE]),
    "tile_event_record": (c_int, [HANDLE, HANDLE]),
    "tile_event_synchronize": (c_int, [HANDLE]),
    "tile_event_elapsed": (c_int, [HANDLE, HANDLE, POINTER(c_double)]),
    "tile_stream_wait_event": (c_int, [HANDLE, HANDLE]),
    "tile_module_load_source": (c_int, [HANDLE, c_char_p, c_char_p, c_size_t, POINTER(JitOptions), OUT]),
    "tile_module_load_file": (c_int, [HANDLE, c_char_p, POINTER(JitOptions), OUT]),
    "tile_tune": (c_int, [HANDLE, c_char_p, c_char_p, POINTER(Arg), c_size_t, POINTER(TuneOptions), POINTER(TuneResult)]),
    "tile_module_load_image": (c_int, [HANDLE, c_char_p, c_size_t, OUT]),
    "tile_module_free": (None, [HANDLE]),
    "tile_module_kernel_count": (c_size_t, [HANDLE]),
    "tile_module_kernel_name": (c_char_p, [HANDLE, c_size_t]),
    "tile_kernel_get": (c_int, [HANDLE, c_char_p, POINTER(Const), OUT]),
    "tile_kernel_prepare": (c_int, [HANDLE]),
    "tile_kernel_name": (c_char_p, [HANDLE]),
    "tile_kernel_param_count": (c_size_t, [HANDLE]),
    "tile_kernel_param": (c_int, [HANDLE, c_size_t, POINTER(ParamInfo)]),
    "tile_xla_register": (c_int, [HANDLE, POINTER(c_int64)]),
    "tile_xla_call": (c_void_p, [c_void_p]),
    "tile_launch": (c_int, [HANDLE, HANDLE, c_void_p, c_size_t]),  # of tile_arg; an address takes less time than POINTER(Arg)
    "tile_launch_with": (c_int, [HANDLE, HANDLE, c_void_p, c_size_t, POINTER(LaunchOptions)]),
    "tile_launch_prepare": (c_int, [HANDLE, POINTER(Arg), c_size_t, POINTER(LaunchOptions)]),
    "tile_launch_room": (c_int, [HANDLE, POINTER(Arg), c_size_t, POINTER(c_int64)]),
    "tilec_compile_source": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(CompileOptions), OUT]),
    "tilec_output_data": (c_void_p, [HANDLE, POINTER(c_size_t)]),
    "tilec_output_message": (c_char_p, [HANDLE]),
    "tilec_output_depends": (c_char_p, [HANDLE]),
    "tilec_output_free": (None, [HANDLE]),
    "tilec_library_text": (c_char_p, [c_char_p, POINTER(c_size_t)]),
    "tilec_targets": (POINTER(c_char_p), []),
    "tilec_stages": (POINTER(c_char_p), []),
    "tilec_version": (c_char_p, []),
}


HERE = os.path.dirname(os.path.abspath(__file__))
IS_SOURCE = os.path.exists(os.path.join(HERE, os.pardir, "build_wheel.py"))  # the tree's folder, which shadows an installed package


def library_path() -> str:
    """TILE_LIBRARY, a file or the folder that has it, else the library in this package (a wheel), else for the source tree that of its build or of an installed package,
    else what the system's loader finds (a .deb)."""
    places = [os.path.join(HERE, "lib")]
    if IS_SOURCE:
        places += [os.path.join(HERE, os.pardir, os.pardir, "build", "package"), *(os.path.join(folder, "tile", "lib") for folder in sys.path)]
    found = (path for path in (os.path.join(place, LIBRARY) for place in places) if os.path.exists(path))
    named = os.environ.get("TILE_LIBRARY")
    if named and os.path.isdir(named):
        named = os.path.join(named, LIBRARY)
    return named or next(found, LIBRARY)


def load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
        for name, (result, parameters) in FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as e:
        source = f"; {HERE} is the source of the package, which has none before ./bootstrap build, and hides an installed one" if IS_SOURCE else ""
        raise ImportError(f"the library of tile cannot be used: {e} (TILE_LIBRARY may name {LIBRARY} or its folder{source})") from e
    if library.tile_version() // 100 != 1:
        raise ImportError(f"{path} is version {library.tile_version()} of the library; this package is for 0.1")
    return library


def load_launcher() -> Any:
    """The module of launcher.c, which lies beside the library. None: it was not built, or this Python has not CPython's stable ABI."""
    path = os.path.join(os.path.dirname(lib._name), "tile_launcher.abi3.so")
    if ".abi3.so" not in importlib.machinery.EXTENSION_SUFFIXES or not os.path.exists(path):
        return None
    loader = importlib.machinery.ExtensionFileLoader("tile_launcher", path)
    spec = importlib.util.spec_from_loader("tile_launcher", loader)
    try:
        module: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        loader.exec_module(module)
    except ImportError:
        return None
    module.configure(*(ctypes.cast(f, c_void_p).value for f in (lib.tile_launch, lib.tile_stream_synchronize)))
    return module


lib = load()
launcher = load_launcher()


def check(status: int, failures: Iterable[str] = ()) -> None:
    """Raises what a status other than TILE_OK means. In the thread that made the call: the text is the thread's."""
    if status == 0:
        return
    fail(status, lib.tile_last_error().decode(errors="replace"), failures)


def fail(status: int, text: str, failures: Iterable[str] = ()) -> NoReturn:
    """Raises the exception of a tile_status."""
    kind, name = errors.BY_STATUS.get(status, errors.Error), lib.tile_status_name(status).decode()
    raise errors.KernelError(text, name, failures) if status == errors.FAILED else kind(text, name)


def made(function: Any, *args: Any) -> int:
    """The handle that a function with out_ as its last parameter makes."""
    out = c_void_p()
    check(function(*args, byref(out)))
    return out.value or 0


def texts(words: Sequence[str | os.PathLike[str]]) -> Any:
    """A C array of texts."""
    return (c_char_p * (len(words) + 1))(*[os.fsencode(w) for w in words])
