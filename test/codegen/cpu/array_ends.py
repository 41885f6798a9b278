#!/usr/bin/env python3
"""Kernels on arrays behind which no memory is: nothing beyond an array's elements is read or written.

    array_ends.py [--devices cpu,cpu:x86-64-v3]    with the package on PYTHONPATH; exit 1 if a kernel is wrong or died

Every few elements of rows that end with the last one wanted, in every width, step and size; patterns, channels, shifts, windows, borders.
NumPy says what comes out. Each device runs in a process of its own, as what is wrong dies there.
"""
import argparse
import ctypes
import mmap
import os
import sys
import warnings

import numpy as np

import tile

TYPES = {"u8": np.uint8, "i16": np.int16, "f32": np.float32, "f64": np.float64}
EXPRESSIONS = {  # of x[R, C] whose rows are taken from 0 to 3: the width of the result, its text, its meaning
    "half": (16, "x[0 +: 4, iota(16) / 2]", lambda x: x[:, np.arange(16) // 2]),
    "channel": (4, "pick(reshape(x[0 +: 4, 0 +: 8], 4, 4, 2), 2, 1)", lambda x: x[:, 1::2]),
    "window": (6, "x[0 +: 4, 0 +: 6] + x[0 +: 4, 2 +: 6]", lambda x: x[:, :6] + x[:, 2:8]),
    "shift": (8, "shift(x[0 +: 4, 0 +: 8], 1, -3)", lambda x: np.pad(x[:, 3:8], ((0, 0), (0, 3)))),
    "border": (11, "load(x[0 +: 4, -1 +: 11], border = edge)", lambda x: x[:, np.clip(np.arange(11) - 1, 0, 7)]),
    "flip": (8, "flip(x[0 +: 4, 0 +: 8], 1)", lambda x: x[:, ::-1]),
}
SLIDES = {  # of x[R, N], rows 0 and 1: the width of the result beside N, statements that make v of it, their meaning
    "edge": (0, "auto v = load(x[0 +: 2, -3 +: {w}], border = edge); "
             "static for (int d : range(-2, 4)) v = max(v, load(x[0 +: 2, d +: {w}], border = edge));",
             lambda x: windows(np.pad(x, ((0, 0), (3, 3)), mode="edge"), 7)),
    "inside": (-8, "auto v = x[0 +: 2, 0 +: {w}]; static for (int d : range(1, 9)) v = max(x[0 +: 2, d +: {w}], v);",
               lambda x: windows(x, 9)),
    "zeros": (20, "auto v = x[0 +: 2, 0 - 20 +: {w}]; static for (int d : range(1, 21)) v = max(v, x[0 +: 2, d - 20 +: {w}]);",
              lambda x: windows(np.pad(x, ((0, 0), (20, 20))), 21)),
}


def windows(x, n):
    return np.lib.stride_tricks.sliding_window_view(x, n, axis=1).max(-1)


class Ended:
    """Zeros that end where no memory is, or begin there."""

    def __init__(self, shape, dtype, begins):
        libc, page = ctypes.CDLL(None, use_errno=True), mmap.PAGESIZE
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        pages = -(-size // page) * page
        self.map = mmap.mmap(-1, pages + 2 * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        for at in (address, address + page + pages):
            if libc.mprotect(ctypes.c_void_p(at), page, 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        first = page if begins else page + pages - size
        self.array = np.frombuffer((ctypes.c_uint8 * size).from_address(address + first), dtype).reshape(shape)


def run(device, name, source, x, want):
    for begins in (False, True):
        ins, out = Ended(x.shape, x.dtype, begins), Ended(want.shape, want.dtype, begins)
        ins.array[...] = x
        tile.kernel(source, device=device, cache="off")(ins.array, out.array)
        if not np.array_equal(out.array, want):
            sys.exit(f"{device}: {name}: got {out.array.tolist()}, wanted {want.tolist()}")


def apart(device, t, dtype, row):
    """Rows with gaps between them: the first begins, or the last ends, with the memory."""
    for begins in (False, True):
        rows, gap = 48, 1
        ends = [Ended(((rows - 1) * (row + gap) + row,), dtype, begins) for _ in range(2)]
        ins, out = (np.lib.stride_tricks.as_strided(e.array, (rows, row), ((row + gap) * e.array.itemsize, e.array.itemsize)) for e in ends)
        ends[0].array[...] = np.arange(ends[0].array.size) % 101
        ends[1].array[...] = 7
        tile.kernel(f"""kernel k(const {t} x[H : sx, W], {t} y[H : sy, W]) grid(cdiv(W, {row}), cdiv(H, 16))
{{ y[pid(1) * 16 +: 16, pid(0) * {row} +: {row}] = x[pid(1) * 16 +: 16, pid(0) * {row} +: {row}]; }}""", device=device, cache="off")(ins, out)
        between = ends[1].array[row::row + gap]
        if not np.array_equal(out, ins) or (between != 7).any():
            sys.exit(f"{device}: {t}: rows of {row} with gaps: got {ends[1].array.tolist()}")


def all_of(device):
    """Runs every kernel; returns how many there are."""
    count = 0
    for t, dtype in TYPES.items():
        for width in (1, 2, 3, 4, 5, 8, 13, 16, 96, 256):
            for step in range(2, 9) if width <= 16 else (2, 3, 5, 8):
                columns = (width - 1) * step + 1
                x = (np.arange(4 * columns) % 251).astype(dtype).reshape(4, columns)
                extent = columns if width % 2 else "C"
                run(device, f"{t} {width} by {step}", f"""kernel k(const {t} x[R, {extent}], {t} y[R, D]) grid(1)
{{ y[0 +: 4, 0 +: {width}] = x[0 +: 4, 0 +: {width} : {step}]; }}""", x, x[:, ::step])
                count += 1
        x = (np.arange(3997) * 37 % 251).astype(dtype)
        run(device, f"{t} sorted", f"""kernel k(const {t} x[3997], {t} y[N]) grid(1)
{{ y[0 +: 1000] = sort(x[0 +: 1000 : 4], 0); }}""", x, np.sort(x[::4]))
        count += 1
        for rows in (6, 12, 20):
            x = np.arange(2 * rows).astype(dtype).reshape(rows, 2)
            run(device, f"{t} pairs of {rows}", f"""kernel k(const {t} x[{rows}, 2], {t} y[N]) grid(1)
{{ auto (a, b) = split(x[0 +: {rows}, 0 +: 2]); y[0 +: {rows}] = b; }}""", x, x[:, 1])
            count += 1
        for channels, at in ((2, 0), (2, 1), (4, 0), (4, 3)):
            x = (np.arange(64 * channels) % 251).astype(dtype).reshape(64, channels)
            run(device, f"{t} widened {at} of {channels}", f"""kernel k(const {t} x[R, {channels}], f64 y[N]) grid(1)
{{ y[0 +: 64] = (f64)x[0 +: 64, {at}]; }}""", x, x[:, at].astype(np.float64))
            count += 1
        x, at = np.arange(96).astype(dtype).reshape(16, 6), np.array([3, 1, 7, 0, 5, -1], np.int32)
        for begins in (False, True):
            ins, out = Ended(x.shape, dtype, begins), Ended((10, 16), dtype, begins)
            ins.array[...] = x
            tile.kernel(f"""kernel k(const {t} x[R : 1, C : ld], const i32 i[N], {t} y[H, W]) grid(1)
{{ y[0 +: 10, 0 +: 16] = cat(tile<{t}, 4, 16>(1), x[i[0 +: 6], 0 +: 16], 0); }}""", device=device, cache="off")(ins.array.T, at, out.array)
            want = np.concatenate((np.ones((4, 16), dtype), np.where(((at >= 0) & (at < 6))[:, None], x.T[at % 6], 0)))
            if not np.array_equal(out.array, want):
                sys.exit(f"{device}: {t}: columns of listed rows: got {out.array.tolist()}")
        count += 1
        for name, (more, text, meaning) in SLIDES.items():
            for n in (64, 70, 129, 300):
                x = (np.arange(2 * n) * 37 % 101).astype(dtype).reshape(2, n)
                run(device, f"{t} {name} of {n}", f"""kernel k(const {t} x[R, N], {t} y[R, D]) grid(1)
{{ {text.format(w=n + more)} y[0 +: 2, 0 +: {n + more}] = v; }}""", x, meaning(x))
                count += 1
        for n in (32, 63, 150):
            x = (np.arange(2 * n) * 37 % 101).astype(dtype).reshape(2, n)
            i, k = np.arange(2 * n), np.array((3, 2), dtype)
            far = np.clip(i // 2 - 1 + 2 * (i % 2), 0, n - 1)
            run(device, f"{t} twice {n}", f"""kernel k(const {t} x[R, N], {t} y[D]) grid(1)
{{ auto i = iota({2 * n}); auto c = i / 2; auto d = clamp(i % 2 == 0 ? (i - 1) / 2 : (i + 1) / 2, 0, N - 1);
   y[0 +: {2 * n}] = 2 * (x[0, c] + 3 * x[1, c]) + (x[0, d] + 3 * x[1, d]); }}""", x,
                k[1] * (x[0] + k[0] * x[1])[i // 2] + (x[0] + k[0] * x[1])[far])
            count += 1
        for row in (2, 3, 4, 6):
            apart(device, t, dtype, row)
            count += 1
        for name, (width, text, meaning) in EXPRESSIONS.items():
            x = np.arange(32).astype(dtype).reshape(4, 8)
            run(device, f"{t} {name}", f"""kernel k(const {t} x[R, C], {t} y[R, D]) grid(1)
{{ y[0 +: 4, 0 +: {width}] = {text}; }}""", x, meaning(x))
            count += 1
    return count


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--devices", default="cpu")
    warnings.simplefilter("ignore")
    failed = False
    for device in ap.parse_args().devices.split(","):
        child = os.fork()
        if not child:
            print(f"{device}: {all_of(device)} kernels", flush=True)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status:
            print(f"{device}: status {status}", flush=True)
        failed |= status != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
