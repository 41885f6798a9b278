"""tile.tune: the best of the configurations that a kernel lists."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, cast, pointer, sizeof
from typing import Any, Callable, NamedTuple

from . import compiler, modules, native
from .devices import Device
from .errors import ArgumentError
from .native import lib


class Progress(NamedTuple):
    """What a callback gets; times of launches (us) in microseconds, others in seconds."""
    kernel: str | None
    step: str | None
    config: str | None
    us: float | None
    rejected: str | None
    done: int
    total: int
    best: str | None
    best_us: float | None
    elapsed: float
    left: float | None


class Tuned(NamedTuple):
    """best: a configuration, "BM=64 BN=32"; None if nothing can run. Of total: timed and rejected now, kept from earlier. complete: all was
    done. standard_us: the time of what is compiled where there are no results; None if it has none."""
    best: str | None
    best_us: float | None
    total: int
    timed: int
    rejected: int
    kept: int
    complete: bool
    standard_us: float | None



def text(value: bytes | None) -> str | None:
    return value.decode(errors="replace") if value is not None else None


def progress_of(p: native.TuneProgress) -> Progress:
    return Progress(text(p.kernel), text(p.step), text(p.config), p.us or None, text(p.rejected), p.done, p.total, text(p.best),
                    p.best_us or None, p.elapsed, p.left if p.left >= 0 else None)


class Listener:
    """Calls the caller's function from C. An exception there, Ctrl-C too, stops the tuning and is raised when that has ended."""

    def __init__(self, function: Callable[[Progress], object] | None) -> None:
        self.function = function
        self.error: BaseException | None = None
        self.callback = native.ProgressCallback(self.take)

    def take(self, user: object, progress: Any) -> int:
        try:
            return int(bool(self.function(progress_of(progress.contents)))) if self.function else 0
        except BaseException as e:
            self.error = e
            return 1


def const_list(values: Mapping[str, str]) -> Any:
    return (native.Const * (len(values) + 1))(*[native.Const(k.encode(), 0, v.encode()) for k, v in values.items()])


def tune(source: compiler.Path, name: str | None = None, args: Sequence[Any] | Mapping[str, Any] = (), /, *, device: Device | str | None = None,
         file: compiler.Path | None = None, budget: float = 0, progress: Callable[[Progress], object] | None = None, tolerance: float = 0,
         again: bool = False, only: Sequence[str] | None = None, include_dirs: Sequence[compiler.Path] = (), opt_level: int = 3,
         debug: bool = False, check: bool = False, fp: str = "default", warps: int = 0, stages: int = 0,
         consts: Mapping[str, Any] | None = None, **more_consts: Any) -> Tuned:
    """Finds the best configuration of the kernel `name` (None: the only one) in the file `source` for launches with `args`, a sequence
    in order or a dict by name, and enters it in `file` (default: beside the source, where tile.kernel and tilec find it). The kernel
    runs many times; the arrays then hold what they held before. `progress` is called from time to time with a Progress; if it returns
    something true, or raises, what was measured is kept, and a later call goes on. `budget` is in seconds, 0: as many as it takes.
    `only` names configurations; `again` times what is known, too. The other options are those of tile.load. Returns a Tuned."""
    read = compiler.Source(source)
    if not read.is_file:
        raise ArgumentError("tile.tune takes a file: its results belong to one", "bad argument")
    module = modules.load(read, device=device, include_dirs=include_dirs, opt_level=opt_level, debug=debug, check=check, fp=fp, warps=warps,
                          stages=stages)
    values = compiler.constants({**(consts or {}), **more_consts})
    kernel = module.find(name, values, 3)
    given, by_name = ((), args) if isinstance(args, Mapping) else (args, {})
    filled, owners = kernel.arguments(kernel.bound(tuple(given), by_name))
    listener, said = Listener(progress), compiler.Diagnostics()
    jit = modules.jit_options(module.include_dirs, opt_level, debug, check, fp, warps, stages, None, said)
    options = native.TuneOptions(struct_size=sizeof(native.TuneOptions), jit=pointer(jit), consts=const_list(values), budget=budget,
                                 file=os.fsencode(file) if file is not None else None, progress=listener.callback,
                                 tolerance=tolerance, again=again)
    if only is not None:
        options.only = cast((c_char_p * (len(only) + 1))(*[c.encode() for c in only]), POINTER(c_char_p))
    result = native.TuneResult(sizeof(native.TuneResult))
    status = lib.tile_tune(module.device.handle, os.fsencode(read.name), kernel.__name__.encode(), filled, len(kernel.slots),
                           byref(options), byref(result))
    del owners  # kept until here
    if listener.error:
        raise listener.error
    native.check(status)
    return Tuned(text(result.best) or None, result.best_us or None, result.total, result.timed, result.rejected, result.kept,
                 bool(result.complete), result.standard_us or None)
