"""Devices, streams, events and arrays on a device."""
from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterable
from ctypes import byref, c_double, c_void_p, sizeof
from types import TracebackType
from typing import Any, Callable

from . import errors, native
from .native import check, lib, made


class Outbox:
    """What the callbacks of a device bring: prints, failures, and what a print function raised. A synchronisation delivers them in
    its own thread, so each thread has its own. The device refers to this object, never the other way."""

    def __init__(self, out: Callable[[str], object]) -> None:
        self.print = out
        self.here = threading.local()
        self.used = False  # something was brought that a synchronisation raises
        self.callbacks = native.Callbacks(sizeof(native.Callbacks), native.TextCallback(self.on_print),
                                          native.TextCallback(self.on_failure), None)

    def on_print(self, user: object, text: bytes) -> None:
        try:
            self.print(text.decode(errors="replace"))
        except BaseException as e:  # it cannot pass through C: the synchronisation raises it
            self.here.raised, self.used = e, True

    def on_failure(self, user: object, text: bytes) -> None:
        self.used = True
        self.here.__dict__.setdefault("failures", []).append(text.decode(errors="replace"))

    def deliver(self, status: int) -> None:
        """Raises what a synchronisation of this thread has brought."""
        failures, raised = self.here.__dict__.pop("failures", []), self.here.__dict__.pop("raised", None)
        if raised is not None:
            raise raised
        check(status, failures)


def print_line(text: str) -> None:
    sys.stdout.write(text + "\n")


class Device:
    """A device by its name: "cpu", "cpu:x86-64-v3", "ref", "emu:sm_90a", "cuda:0" ...; None: what TILE_DEVICE says, else "cpu".

    `print` is called with each text that a kernel prints, when a stream is synchronised; by default it goes to sys.stdout.
    `threads` and `affinity` of a cpu or emu device are those of TILE_THREADS and TILE_AFFINITY: 4, "compact"."""

    def __init__(self, name: str | None = None, print: Callable[[str], object] | None = None, threads: int = 0, affinity: str | None = None) -> None:
        options = native.DeviceOptions(sizeof(native.DeviceOptions), threads, affinity.encode() if affinity is not None else None)
        self.handle = made(lib.tile_device_open_with, name.encode() if name is not None else None, byref(options))
        self.outbox = Outbox(print or print_line)
        # the callbacks live as long as the device: the finalizer holds them
        self.close = weakref.finalize(self, close_device, self.handle, self.outbox)
        check(lib.tile_device_set_callbacks(self.handle, byref(self.outbox.callbacks)))
        info = native.DeviceInfo(sizeof(native.DeviceInfo))
        check(lib.tile_device_get_info(self.handle, byref(info)))
        digits = (name or os.environ.get("TILE_DEVICE") or "").rpartition(":")[2]
        self.index = int(digits) if digits.isdigit() else 0  # of a GPU among those of its kind
        self.name = info.name.decode(errors="replace")
        self.target = info.target.decode()
        self.processors = info.processors
        self.host_memory = bool(info.host_memory)  # kernels accept the memory of this process
        self.memory_bytes = info.memory_bytes
        self.stream = Stream.of_device(self, made(lib.tile_device_default_stream, self.handle), freed=False)
        self.wrapped: dict[int, Stream] = {}  # streams of other libraries, by address

    def synchronize(self) -> None:
        """Waits for every stream; raises the first failure of a kernel."""
        self.outbox.deliver(lib.tile_device_synchronize(self.handle))

    def wrap_stream(self, address: int) -> Stream:
        """The driver's own stream (a CUstream, hipStream_t) as a Stream; it remains the caller's. 0 is the default stream."""
        if not address:
            return self.stream
        if address not in self.wrapped:
            self.wrapped[address] = Stream.of_device(self, made(lib.tile_stream_wrap, self.handle, c_void_p(address)), freed=True)
        return self.wrapped[address]

    def __repr__(self) -> str:
        return f"<tile.Device {self.target}: {self.name}, {self.processors} processors>"


def close_device(handle: int, outbox: Outbox) -> None:
    lib.tile_device_close(handle)


def free_stream(handle: int, running: dict[int, Any]) -> None:
    """Waits: until then the kernels' memory, `running`, is kept."""
    lib.tile_stream_free(handle)
    running.clear()


class Stream:
    """Operations that happen in order. One that is created here runs on its own: the call of a kernel returns at once, and what the
    kernel uses is kept until the stream is synchronised.

    With `parts`, a call of a kernel runs part number `part` (from 0) of that many of its grid: on cpu in the calling thread, before it
    returns. A kernel has run when all parts have."""

    def __init__(self, device: Device | str | None = None, part: int = 0, parts: int = 0) -> None:
        self.own_device: Device | None = device_of(device)
        create = (lib.tile_stream_create_part, self.own_device.handle, part, parts) if parts else (lib.tile_stream_create, self.own_device.handle)
        self.take(self.own_device, made(*create))
        weakref.finalize(self, free_stream, self.handle, self.running)

    @classmethod
    def of_device(cls, device: Device, handle: int, freed: bool) -> Stream:
        """A stream that belongs to the device object, which keeps it: so it does not keep the device."""
        stream = cls.__new__(cls)
        stream.own_device = None
        stream.take(device, handle)
        if freed:
            weakref.finalize(stream, free_stream, handle, stream.running)
        return stream

    def take(self, device: Device, handle: int) -> None:
        self.device_ref = weakref.ref(device)
        self.outbox = device.outbox
        self.handle = handle
        self.lock = threading.RLock()  # a stream takes launches from one thread at a time
        self.running: dict[int, Any] = {}  # by id: what its kernels use

    def keep(self, things: Iterable[Any]) -> None:
        self.running.update((id(thing), thing) for thing in things)

    @property
    def device(self) -> Device | None:
        return self.device_ref()

    def synchronize(self) -> None:
        """Waits until the stream is empty; raises the first failure of a kernel."""
        with self.lock:
            self.wait_here()

    def wait_here(self) -> None:
        """The same, in a thread that has the lock."""
        self.settle(0, lib.tile_stream_synchronize(self.handle))

    def settle(self, launched: int, done: int) -> None:
        """After a launch, or its failure, and a wait: raises what there is to raise."""
        check(launched)
        self.running.clear()
        if done or self.outbox.used:
            self.outbox.deliver(done)

    def wait(self, event: Event) -> None:
        """What follows in this stream waits for the event."""
        check(lib.tile_stream_wait_event(self.handle, event.handle))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.synchronize()


class Event:
    """A mark in a stream."""

    def __init__(self, device: Device | str | None = None) -> None:
        self.device = device_of(device)
        self.handle = made(lib.tile_event_create, self.device.handle)
        weakref.finalize(self, lib.tile_event_free, self.handle)

    def record(self, stream: Stream | None = None) -> Event:
        check(lib.tile_event_record(self.handle, (stream or self.device.stream).handle))
        return self

    def synchronize(self) -> None:
        check(lib.tile_event_synchronize(self.handle))

    def milliseconds_since(self, earlier: Event) -> float:
        out = c_double()
        check(lib.tile_event_elapsed(earlier.handle, self.handle, byref(out)))
        return out.value


opened: dict[str | None, Device] = {}  # devices by name: each is opened once, and stays open
opening = threading.Lock()


def device_of(device: Device | str | None = None) -> Device:
    """A Device from a Device, a name, or None (the default device)."""
    if isinstance(device, Device):
        return device
    if device is not None and not isinstance(device, str):
        raise TypeError(f'a device is a tile.Device or a name, as "cpu" or "cuda:0", not {device!r}')
    with opening:
        if device not in opened:
            opened[device] = Device(device)
        return opened[device]
