#!/usr/bin/env python3
"""Stencils whose programs run abreast, in extents of all remainders, on arrays behind which no memory is.

    abreast_rows.py [--devices cpu,cpu:x86-64-v3]    with the package on PYTHONPATH; exit 1 if a kernel is wrong or died

NumPy says what comes out, from zeros around the array. Each device runs in a process of its own, as what is wrong dies there.
"""
import argparse
import os
import subprocess
import sys

import numpy as np
from array_ends import Ended

import tile

SOURCE = """
kernel down(const i32 x[R, C], i32 y[H, W], int from, int by, const int B = 64) grid(cdiv(W, B), H)
{
    int j = 2 * pid(1) + from;
    int i = 2 * pid(0) * B + by;
    tile<i32, B> sum = 0;
    static for (int u : range(4))
        sum = 3 * sum + x[j - 1 + u, i - 1 +: B : 2] + 5 * x[j - 1 + u, i + 2 +: B : 2] + 7 * x[j - 1 + u, i +: B : 2] +
              11 * x[j - 1 + u, i + 1 +: B : 2];
    y[pid(1), pid(0) * B +: B] = sum;
}
kernel cross(const i32 x[R, C], i32 y[H, W], int from, int by, const int B = 64) grid(cdiv(W, B), H)
{
    int j = pid(1) + from;
    int i = pid(0) * B + by;
    tile<i32, B> sum = 0;
    static for (int u : range(-3, 4)) sum = 3 * sum + x[j + u, i +: B];
    y[pid(1), pid(0) * B +: B] = sum + x[j, i - 1 +: B] * 5 + x[j, i + 1 +: B] * 7;
}
kernel taps(const i32 x[R, C, 16], i32 y[H, W, 16], int from, int by, const int B = 8) grid(cdiv(W, B), H)
{
    int j = pid(1) + from;
    int i = pid(0) * B + by;
    tile<i32, B, 16> sum = 0;
    static for (int u : range(3)) {
        static for (int v : range(3)) sum = 3 * sum + x[j + u, i + v +: B, 0 +: 16];
    }
    y[pid(1), pid(0) * B +: B, 0 +: 16] = sum;
}
"""
FAR = (0, -5, 3, 2**31 - 9, -(2**31) + 2)


def wrapped(n):
    return (n + 2**31) % 2**32 - 2**31


def at(x, j, i, columns):
    """Elements of row j from column i on, those outside 0."""
    y = np.zeros((len(columns), *x.shape[2:]), np.int32)
    for n, k in enumerate(columns):
        if 0 <= j < x.shape[0] and 0 <= i + k < x.shape[1]:
            y[n] = x[j, i + k]
    return y


def meaning(name, x, shape, start, by, width):
    y = np.zeros(shape, np.int32)
    step = 2 if name == "down" else 1
    for row in range(shape[0]):
        for first in range(0, shape[1], width):
            j, i, k = wrapped(step * row + start), wrapped(step * first + by), step * np.arange(width)
            t, s = lambda u, v: at(x, wrapped(j + u), wrapped(i + v), k), 0
            if name == "down":
                for u in range(-1, 3):
                    s = 3 * s + t(u, -1) + 5 * t(u, 2) + 7 * t(u, 0) + 11 * t(u, 1)
            elif name == "cross":
                for u in range(-3, 4):
                    s = 3 * s + t(u, 0)
                s = s + 5 * t(0, -1) + 7 * t(0, 1)
            else:
                for u in range(3):
                    for v in range(3):
                        s = 3 * s + t(u, v)
            y[row, first:first + width] = s[:shape[1] - first]
    return y


def all_of(device):
    """Runs every kernel; returns how often."""
    count = 0
    for name, width, sizes in (("down", 64, (40, 64, 200)), ("cross", 64, (40, 64, 200)), ("taps", 8, (5, 24))):
        kernel = tile.kernel(SOURCE, name, device=device, cache="off")
        for rows in (1, 3, 4, 6, 9):
            for columns in sizes:
                for start in FAR:
                    for by in FAR if start in (0, 3) else (0,):
                        step, tail = 2 if name == "down" else 1, (16,) if name == "taps" else ()
                        x = np.random.default_rng(count).integers(-99, 99, (step * rows, step * columns, *tail), np.int32)
                        want = meaning(name, x, (rows, columns, *tail), start, by, width)
                        ins, out = Ended(x.shape, x.dtype, count % 2), Ended(want.shape, want.dtype, count % 2)
                        ins.array[...] = x
                        kernel(ins.array, out.array, start, by)
                        if not np.array_equal(out.array, want):
                            sys.exit(f"{device}: {name}: {rows} x {columns} from {start}, {by} is wrong")
                        count += 1
    return count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--devices", default="cpu")
    p.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.one:
        print(f"{a.devices}: {all_of(a.devices)} launches", flush=True)
        return
    for device in a.devices.split(","):
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--one", "--devices", device])
        if done.returncode:
            sys.exit(f"{device}: ended by {done.returncode}")


if __name__ == "__main__":
    main()
