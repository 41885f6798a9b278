"""What can go wrong: one class for each kind of status of tile.h."""
from __future__ import annotations

from collections.abc import Iterable


class Error(Exception):
    """A call of the library failed. `status` is the status's name, "driver" for example."""

    def __init__(self, text: str, status: str = "internal error") -> None:
        super().__init__(text)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument does not fit: a wrong element type, rank, extent or stride; the text names the parameter."""


class CompileError(Error):
    """The program is wrong. `diagnostics` is what the compiler says, with the lines of source."""

    def __init__(self, text: str, status: str = "compile error") -> None:
        super().__init__(text, status)
        self.diagnostics = text


class NotFoundError(Error, LookupError):
    """No such kernel, constant or instance; the text lists those that exist."""


class KernelError(Error, RuntimeError):
    """A check or an assertion failed in a kernel. `failures` are all of them, in the order of the programs."""

    def __init__(self, text: str, status: str = "failed in a kernel", failures: Iterable[str] = ()) -> None:
        super().__init__(text, status)
        self.failures = list(failures)


class OutOfMemoryError(Error, MemoryError):
    """No memory, or not enough of another resource of the device."""


class UnavailableError(Error, RuntimeError):
    """Known, but not on this machine."""


class CompileWarning(UserWarning):
    """A warning of the compiler."""


# tile_status, by its number.
BY_STATUS: dict[int, type[Error]] = {
    1: ArgumentError, 2: OutOfMemoryError, 3: OutOfMemoryError, 4: Error, 5: NotFoundError, 6: CompileError, 7: Error,
    8: KernelError, 9: Error, 10: UnavailableError, 11: Error,
}
FAILED = 8
