#!/usr/bin/env python3
"""Programs of bench_programs by Halide, one thread, the processor's time, in turns with bench_programs.

    halide_programs.py BENCH_PROGRAMS [NAME...]     a row each: tilec's time, plain C's, Halide's, ratio

Needs a Python with Halide and NumPy, and a C compiler. The schedules are those of Halide's apps (blur, unsharp, max_filter, wavelet,
local_laplacian), without `parallel`; what has no app is vectorised as these are. Results are compared with NumPy's.
"""
import os
import statistics
import subprocess
import sys
import tempfile

import halide as hl
import numpy as np

H, W = 120, 640
DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "HalideRuntime.h"
#include "program.h"
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static halide_buffer_t make(halide_dimension_t *dim, int rank, const int *extent, int code, int bits, const char *file)
{
    size_t n = bits / 8;
    for (int d = 0; d < rank; d++) {
        dim[d] = (halide_dimension_t){.extent = extent[d], .stride = d ? dim[d - 1].stride * dim[d - 1].extent : 1};
        n *= extent[d];
    }
    unsigned char *p = aligned_alloc(64, (n + 127) / 64 * 64);
    memset(p, 0, n);
    FILE *f = file ? fopen(file, "rb") : NULL;
    if (f && fread(p, 1, n, f) != n)
        exit(2);
    if (f)
        fclose(f);
    return (halide_buffer_t){.host = p, .type = {code, bits, 1}, .dimensions = rank, .dim = dim};
}
int main(void)
{
    enum { ROUNDS = 15, CALLS = 8 };
    double times[ROUNDS];
    @BUFFERS@
    for (int i = 0; i < ROUNDS; i++) {
        double from = now();
        for (int k = 0; k < CALLS; k++)
            if (program(@ARGS@))
                return 1;
        times[i] = (now() - from) / CALLS;
    }
    qsort(times, ROUNDS, sizeof *times, compare);
    printf("%g\\n", 1e6 * times[ROUNDS / 2]);
    FILE *f = fopen("out", "wb");
    return !f || fwrite(@OUT@.host, @BYTES@, 1, f) != 1 || fclose(f);
}
"""
x, y, c, yo, yi = (hl.Var(n) for n in ("x", "y", "c", "yo", "yi"))


def lanes(t):
    return hl.get_host_target().natural_vector_size(t)


def edge(v):
    return hl.BoundaryConditions.repeat_edge(v)


def zero(v):
    return hl.BoundaryConditions.constant_exterior(v, 0)


def blur(v):
    rows, out = hl.Func("rows"), hl.Func("out")
    rows[x, y] = (v[x, y] + v[x + 1, y] + v[x + 2, y]) / hl.u16(3)
    out[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) / hl.u16(3)
    n = lanes(hl.UInt(16))
    out.split(y, yo, yi, 32).vectorize(x, n)
    rows.store_at(out, yo).compute_at(out, yi).vectorize(x, n)
    return out


def unsharp(v):
    k = [0.26596, 0.21297, 0.10934, 0.03600]
    grey, down, soft, ratio, out = (hl.Func(n) for n in ("grey", "down", "soft", "ratio", "out"))
    e = edge(v)
    taps = lambda f: sum((hl.f32(k[d]) * (f(d) + f(-d)) for d in (3, 2, 1)), hl.f32(k[0]) * f(0))
    grey[x, y] = hl.f32(0.299) * e[x, y, 0] + hl.f32(0.587) * e[x, y, 1] + hl.f32(0.114) * e[x, y, 2]
    down[x, y] = taps(lambda d: grey[x, y + d])
    soft[x, y] = taps(lambda d: down[x + d, y])
    ratio[x, y] = (2 * grey[x, y] - soft[x, y]) / grey[x, y]
    out[x, y, c] = ratio[x, y] * v[x, y, c]
    n = lanes(hl.Float(32))
    out.bound(c, 0, 3).split(y, yo, yi, 32).reorder(x, c, yi, yo).vectorize(x, n)
    for f in (grey, down, ratio):
        f.store_at(out, yo).compute_at(out, yi).vectorize(x, n)
    return out


def max_filter(v):
    rows, out = hl.Func("rows"), hl.Func("out")
    e = edge(v)
    most = lambda f: __import__("functools").reduce(hl.max, [f(d) for d in range(-6, 7)])
    rows[x, y] = most(lambda d: e[x + d, y])
    out[x, y] = most(lambda d: rows[x, hl.clamp(y + d, 0, H - 1)])
    n = lanes(hl.Float(32))
    out.split(y, yo, yi, 32).vectorize(x, n)
    rows.store_at(out, yo).compute_at(out, yi).vectorize(x, n)
    return out


def haar(v):
    out = hl.Func("out")
    half = lambda a, b: hl.f32(0.5) * (a + b)
    out[x, y, c] = hl.select(c == 0, half(v[2 * x, y], v[2 * x + 1, y]), half(v[2 * x, y], -v[2 * x + 1, y]))
    out.bound(c, 0, 2).reorder(c, x, y).unroll(c).vectorize(x, lanes(hl.Float(32)))
    return out


def inverse_haar(v):
    out = hl.Func("out")
    a, b = v[x / 2, y, 0], v[x / 2, y, 1]
    out[x, y] = hl.select(x % 2 == 0, a + b, a - b)
    out.unroll(x, 2).vectorize(x, lanes(hl.Float(32)))
    return out


def pyramid_down(v):
    rows, out = hl.Func("rows"), hl.Func("out")
    e = zero(v)
    fold = lambda f: hl.f32(0.125) * (f(-1) + f(2)) + hl.f32(0.375) * (f(0) + f(1))
    rows[x, y] = fold(lambda d: e[2 * x + d, y])
    out[x, y] = fold(lambda d: rows[x, 2 * y + d])
    n = lanes(hl.Float(32))
    out.split(y, yo, yi, 32).vectorize(x, n)
    rows.store_at(out, yo).compute_at(out, yi).vectorize(x, n)
    return out


def pyramid_up(v):
    rows, out = hl.Func("rows"), hl.Func("out")
    e = edge(v)
    far = lambda i: i / 2 - 1 + 2 * (i % 2)
    rows[x, y] = hl.f32(0.75) * e[x, y / 2] + hl.f32(0.25) * e[x, far(y)]
    out[x, y] = hl.f32(0.75) * rows[x / 2, y] + hl.f32(0.25) * rows[far(x), y]
    n = lanes(hl.Float(32))
    out.unroll(x, 2).vectorize(x, n)
    rows.compute_at(out, y).vectorize(x, n)
    return out


# ---- NumPy's -----------------------------------------------------------------------------------------------------------
def taps_of(v, axis, table, pad):
    """The sum, or what `pad` says, of neighbours along an axis."""
    n = v.shape[axis]
    wide = np.pad(v, [(8, 8) if a == axis else (0, 0) for a in range(v.ndim)], **pad)
    return {d: np.take(wide, np.arange(n) + 8 + d, axis) for d in table}


def np_blur(v):
    rows = (v[:, :W] + v[:, 1:W + 1] + v[:, 2:W + 2]) // 3
    return (rows[:H] + rows[1:H + 1] + rows[2:H + 2]) // 3


def np_unsharp(v):
    k = np.float32([0.26596, 0.21297, 0.10934, 0.03600])
    taps = lambda g, axis: sum(k[abs(d)] * t for d, t in taps_of(g, axis, range(-3, 4), {"mode": "edge"}).items())
    grey = np.float32(0.299) * v[0] + np.float32(0.587) * v[1] + np.float32(0.114) * v[2]
    return (2 * grey - taps(taps(grey, 0), 1)) / grey * v


def np_max_filter(v):
    for axis in (1, 0):
        v = np.maximum.reduce(list(taps_of(v, axis, range(-6, 7), {"mode": "edge"}).values()))
    return v


def np_pyramid_down(v):
    for axis in (1, 0):
        t = taps_of(v, axis, (-1, 0, 1, 2), {"mode": "constant"})
        v = np.take(0.125 * (t[-1] + t[2]) + 0.375 * (t[0] + t[1]), np.arange(0, v.shape[axis], 2), axis)
    return v


def np_pyramid_up(v):
    for axis in (0, 1):
        n = v.shape[axis]
        i = np.arange(2 * n)
        v = 0.75 * np.take(v, i // 2, axis) + 0.25 * np.take(v, np.clip(i // 2 - 1 + 2 * (i % 2), 0, n - 1), axis)
    return v


PROGRAMS = {  # name: Halide's, NumPy's, type, shapes of input and output
    "blur": (blur, np_blur, "uint16", (H + 2, W + 8), (H, W)),
    "unsharp": (unsharp, np_unsharp, "float32", (3, H, W), (3, H, W)),
    "max_filter": (max_filter, np_max_filter, "float32", (H, W), (H, W)),
    "haar": (haar, lambda v: 0.5 * np.stack((v[:, ::2] + v[:, 1::2], v[:, ::2] - v[:, 1::2])), "float32",
             (H, 2 * W), (2, H, W)),
    "inverse_haar": (inverse_haar, lambda v: np.stack((v[0] + v[1], v[0] - v[1]), -1).reshape(H, 2 * W), "float32",
                     (2, H, W), (H, 2 * W)),
    "pyramid_down": (pyramid_down, np_pyramid_down, "float32", (2 * H, 2 * W), (H, W)),
    "pyramid_up": (pyramid_up, np_pyramid_up, "float32", (H, W), (2 * H, 2 * W)),
}


def build(folder, name):
    make, _, dtype, shape, result = PROGRAMS[name]
    of = hl.UInt(16) if dtype == "uint16" else hl.Float(32)
    v = hl.ImageParam(of, len(shape), "v")
    for d, extent in enumerate(reversed(shape)):
        v.dim(d).set_bounds(0, extent)
    out = make(v)
    for d, extent in enumerate(reversed(result)):
        out.output_buffer().dim(d).set_bounds(0, extent)
    out.compile_to_file(os.path.join(folder, "program"), [v], "program", hl.get_host_target())
    code, bits = (1, 16) if dtype == "uint16" else (2, 32)
    ints = lambda s: "(const int[]){" + ", ".join(map(str, reversed(s))) + "}"
    buffers = "".join(f"halide_dimension_t d{i}[4];\n    halide_buffer_t b{i} = make(d{i}, {len(s)}, {ints(s)}, {code}, {bits}, {f});\n    "
                      for i, (s, f) in enumerate(((shape, '"in"'), (result, "NULL"))))
    text = (DRIVER.replace("@BUFFERS@", buffers).replace("@ARGS@", "&b0, &b1").replace("@OUT@", "b1")
            .replace("@BYTES@", str(int(np.prod(result)) * bits // 8)))
    with open(os.path.join(folder, "driver.c"), "w") as f:
        f.write(text)
    include = os.path.join(os.path.dirname(hl.__file__), "include")
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-I", include, "-I.", "driver.c", "program.o", "-o", "driver", "-lpthread", "-ldl", "-lm"],
                   cwd=folder, check=True)


def check(folder, name, v):
    _, numpys, dtype, _, result = PROGRAMS[name]
    got = np.fromfile(os.path.join(folder, "out"), dtype).reshape(result)
    want = numpys(v)
    if not (np.array_equal(got, want) if dtype == "uint16" else np.allclose(got, want, 1e-4, 1e-5)):
        sys.exit(f"{name}: Halide's result differs from NumPy's by {np.abs(got - want).max()}")


def measure(bench, name):
    _, _, dtype, shape, _ = PROGRAMS[name]
    ours, plain, theirs = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        v = np.random.default_rng(1).integers(1, 256, shape)
        v = (4 * v).astype(dtype) if dtype == "uint16" else (v / 512).astype(dtype)
        v.tofile(os.path.join(folder, "in"))
        build(folder, name)
        env = {**os.environ, "HL_NUM_THREADS": "1", "TILE_THREADS": "1"}
        for _ in range(5):
            rows = subprocess.run([bench, "9", name], env=env, check=True, capture_output=True, text=True).stdout
            cells = next(line for line in rows.splitlines() if line.startswith(f"| {name} ")).split("|")
            ours.append(float(cells[2]))
            plain.append(float(cells[3]))
            theirs.append(float(subprocess.run(["./driver"], cwd=folder, env=env, check=True, capture_output=True).stdout))
        check(folder, name, v)
    a, b, h = map(statistics.median, (ours, plain, theirs))
    print(f"| {name} | {a:.1f} | {b:.1f} | {h:.1f} | {min(b, h) / a:.2f} |", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    names = sys.argv[2:] or list(PROGRAMS)
    print("| work | tilec, us | plain C, us | Halide, us | ratio to the best |\n| --- | --- | --- | --- | --- |")
    for name in names:
        measure(os.path.abspath(sys.argv[1]), name)


if __name__ == "__main__":
    main()
