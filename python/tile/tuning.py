"""tile.tune: the best of the configurations that a kernel lists."""
from collections import namedtuple
from ctypes import POINTER, byref, c_char_p, cast, pointer, sizeof

from . import compiler, modules, native
from .errors import ArgumentError
from .native import lib

# What a callback gets: config, us, rejected, best, best_us and left may be None; times of launches in microseconds, others in seconds.
Progress = namedtuple("Progress", "kernel step config us rejected done total best best_us elapsed left")
# best: a configuration, "BM=64 BN=32"; None if nothing can run. Of total: timed and rejected now, kept from earlier. complete: all was done.
Tuned = namedtuple("Tuned", "best best_us total timed rejected kept complete")


def text(value):
    return value.decode(errors="replace") if value is not None else None


def progress_of(p):
    return Progress(text(p.kernel), text(p.step), text(p.config), p.us or None, text(p.rejected), p.done, p.total, text(p.best),
                    p.best_us or None, p.elapsed, p.left if p.left >= 0 else None)


class Listener:
    """Calls the caller's function from C. An exception there, Ctrl-C too, stops the tuning and is raised when that has ended."""

    def __init__(self, function):
        self.function, self.error = function, None
        self.callback = native.ProgressCallback(self.take)

    def take(self, user, progress):
        try:
            return int(bool(self.function(progress_of(progress.contents)))) if self.function else 0
        except BaseException as e:
            self.error = e
            return 1


def const_list(values):
    pairs = [(k.encode(), 0, v.encode()) for k, v in values.items()] + [(None, 0, None)]
    return (native.Const * len(pairs))(*pairs)


def tune(source, name=None, args=(), /, *, device=None, file=None, budget=0, progress=None, tolerance=0, again=False, only=None,
         include_dirs=(), opt_level=3, debug=False, check=False, fp="default", warps=0, stages=0, consts=None, **more_consts):
    """Finds the best configuration of the kernel `name` (None: the only one) in the file `source` for launches with `args`, a sequence
    in order or a dict by name, and enters it in `file` (default: beside the source, where tile.kernel and tilec find it). The kernel
    runs many times; the arrays then hold what they held before. `progress` is called from time to time with a Progress; if it returns
    something true, or raises, what was measured is kept, and a later call goes on. `budget` is in seconds, 0: as many as it takes.
    `only` names configurations; `again` times what is known, too. The other options are those of tile.load. Returns a Tuned."""
    source = compiler.Source(source)
    if not source.is_file:
        raise ArgumentError("tile.tune takes a file: its results belong to one", "bad argument")
    module = modules.load(source, device=device, include_dirs=include_dirs, opt_level=opt_level, debug=debug, check=check, fp=fp, warps=warps,
                          stages=stages)
    values = compiler.constants({**(consts or {}), **more_consts})
    kernel = module.find(name, values, 3)
    by_name = args if hasattr(args, "keys") else {}
    filled, owners = kernel.arguments(kernel.bound(() if by_name else tuple(args), by_name))
    listener, said = Listener(progress), compiler.Diagnostics()
    jit = modules.jit_options(module.options["include_dirs"], opt_level, debug, check, fp, warps, stages, None, said)
    options = native.TuneOptions(struct_size=sizeof(native.TuneOptions), jit=pointer(jit), consts=const_list(values), budget=budget,
                                 file=native.os.fsencode(file) if file is not None else None, progress=listener.callback,
                                 tolerance=tolerance, again=again)
    if only is not None:
        options.only = cast((c_char_p * (len(only) + 1))(*[c.encode() for c in only]), POINTER(c_char_p))
    result = native.TuneResult(sizeof(native.TuneResult))
    status = lib.tile_tune(module.device.handle, native.os.fsencode(source.name), kernel.__name__.encode(), filled, len(kernel.slots),
                           byref(options), byref(result))
    del owners  # kept until here
    if listener.error:
        raise listener.error
    native.check(status)
    return Tuned(text(result.best) or None, result.best_us or None, result.total, result.timed, result.rejected, result.kept,
                 bool(result.complete))
