#!/usr/bin/env python3
"""Random kernels as users write them, and what NumPy says about them (user_programs.py), in memory with a hole behind or before each array.

    user_kernels.py FIRST COUNT [--ways cpu,emu:sm_90a/w4,...] [--per-program N] [--show] [--used] [--jobs N]

Program number s depends on s only. A way is DEVICE[/wWARPS][/tSTAGES][/s][/c] (s: --fp=strict, c: --check), and each program is run in
--per-program of them, in a process of its own: one that reads or writes outside dies. --show prints the programs. Needs NumPy, and the package `tile` in
PYTHONPATH or beside this folder.
"""
import argparse
import ctypes
import mmap
import os
import sys
import time
import traceback
from collections import Counter

import numpy as np
from user_programs import Program

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import tile  # noqa: E402

WAYS = ["cpu", "cpu", "cpu/s", "ref", "emu:sm_80/w4", "emu:sm_90a/w4", "emu:sm_90a/w8/t3/c", "emu:gfx942/w4", "emu:gfx1100/w2/c", "emu:sm_90/w1"]
SECONDS = 120


def guarded(array, at_end):
    """A copy of the array that ends before a page which nobody may touch, or begins behind one."""
    order = "F" if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    strides = array.strides if array.size else None
    span = sum((n - 1) * s for n, s in zip(array.shape, array.strides)) + array.itemsize if array.size else array.itemsize
    page = mmap.PAGESIZE
    room = -(-span // page) * page
    m = mmap.mmap(-1, room + 2 * page)
    base = ctypes.addressof(ctypes.c_char.from_buffer(m))
    libc = ctypes.CDLL(None, use_errno=True)
    for at in (base, base + page + room):
        if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = page + (room - span if at_end else 0)
    got = np.ndarray(array.shape, array.dtype, m, offset, strides, order)
    got[...] = array
    return got


def words(way):
    device, *more = way.split("/")
    options = {}
    for m in more:
        options.update({"w": {"warps": int(m[1:] or 0)} if m[0] == "w" else {}, "t": {"stages": int(m[1:] or 0)} if m[0] == "t" else {}, "s": {"fp": "strict"}, "c": {"check": True}}[m[0]])
    return device, options


def one(seed, way, show):
    """None, or what is wrong."""
    maker = Program(seed)
    text, arrays, scalars, outs, run = maker.program()
    if show:
        print(text, {n: a.shape for n, a in arrays.items()}, scalars, sep="\n")
    want = {n: a.copy() for n, a in arrays.items()}
    with np.errstate(all="ignore"):
        run(want)
    device, options = words(way)
    here = {n: guarded(a, (seed + k) % 3 != 0) for k, (n, a) in enumerate(arrays.items())}
    kernel = tile.kernel(text, "k", device=device, cache="off", **options)
    kernel(**here, **scalars)
    for n, w in want.items():
        same = here[n] == w if maker.exact or w.dtype.kind != "f" else np.isclose(here[n], w, 2e-5, 2e-6)
        if n in outs and not np.all(same):
            bad = np.argwhere(~same)
            at = tuple(map(int, bad[0]))
            return f"{n}{list(at)} is {here[n][at]}, not {w[at]} ({len(bad)} of {w.size})"
        if n not in outs and not np.array_equal(here[n], arrays[n]):
            return f"{n} was changed"
    return None


def in_child(seed, way, show):
    """What one says, in a process of its own."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(source)
            said = one(seed, way, show)
            os.write(sink, (said or "").encode()[:4000])
            status = 0
        except BaseException as e:  # noqa: B036: whatever it is, the parent prints it
            where = traceback.format_exc(limit=-3) if not isinstance(e, tile.Error) else ""
            os.write(sink, f"{type(e).__name__}: {e} {where}".encode()[:4000])
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    os.close(sink)
    end, said = time.monotonic() + SECONDS, b""
    os.set_blocking(source, False)
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        try:
            said += os.read(source, 4096)
        except BlockingIOError:
            pass
        if done:
            break
        if time.monotonic() > end:
            os.kill(child, 9)
            os.waitpid(child, 0)
            said, status = b"no end", 0
            break
        time.sleep(.002)
    os.close(source)
    return f"died of signal {status & 127}" if status & 127 else said.decode("utf-8", "replace")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("first", type=int)
    ap.add_argument("count", type=int)
    ap.add_argument("--ways")
    ap.add_argument("--per-program", type=int, default=2)
    ap.add_argument("--show", action="store_true")
    ap.add_argument("--used", action="store_true", help="print how many programs each generator is in")
    cx = ap.parse_args()
    ways, used, runs, failed = cx.ways.split(",") if cx.ways else WAYS, Counter(), 0, 0
    for seed in range(cx.first, cx.first + cx.count):
        n = min(cx.per_program or len(ways), len(ways))
        if cx.used:
            maker = Program(seed)
            maker.program()
            used.update(maker.used)
        for way in [ways[(seed * 7 + k * 3) % len(ways)] for k in range(n)] if n < len(ways) else ways:
            said = in_child(seed, way, cx.show)
            runs += 1
            if said:
                failed += 1
                print(f"FAIL {seed} on {way}: {said}", flush=True)
    for name, count in sorted(used.items()):
        print(f"{count:6} {name}")
    print(f"{cx.count} programs, {runs - failed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
