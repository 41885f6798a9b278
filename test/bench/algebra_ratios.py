"""libtilekernels' BLAS, solvers and Fourier transforms beside OpenBLAS (that of NumPy) and LAPACK and transforms of PyTorch (MKL).

    PYTHONPATH=python algebra_ratios.py [--only NAME] [--rounds 7] [--seconds 0.004]

One thread, f32 and f64, the processor's time of a call, the least of the rounds, which take turns. A ratio is the peer's time over ours: below 1 we are
slower. Ours and OpenBLAS's are called from a loop in C, which cc compiles at the start, as calls through ctypes take a microsecond; solvers and transforms
beside PyTorch's, which write to arrays that are there, are calls from Python. Matrices that a call changes are set anew where they would overflow, which is in the time of
both. Run it with a Python that has NumPy and PyTorch, and build/package of this tree, on x86-64 or AArch64.
"""
import argparse
import ctypes
import glob
import os
import struct
import subprocess
import tempfile
import time

for variable in ("OPENBLAS_NUM_THREADS", "TILE_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
if "avx512f" in open("/proc/cpuinfo", encoding="utf-8").read():  # OpenBLAS takes a slower kernel on CPUs that it does not know
    os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")

import numpy as np  # noqa: E402  (after the numbers of threads)
import torch  # noqa: E402
from tile import kernels  # noqa: E402
from tile.devices import device_of  # noqa: E402

DEVICE = device_of(None)
HANDLE, STREAM = kernels.handle_of(DEVICE), DEVICE.stream.handle
TYPES = {np.float32: ("s", kernels.elements.NUMBERS["f32"]), np.float64: ("d", kernels.elements.NUMBERS["f64"])}
ROW, NO, LOWER, NON_UNIT, LEFT = 101, 111, 122, 131, 141  # of CBLAS


def blas(name):
    """A function of NumPy's OpenBLAS, whose integers have 64 bits."""
    found = glob.glob(os.path.join(os.path.dirname(np.__file__), os.pardir, "numpy.libs", "*openblas64*"))
    return getattr(ctypes.CDLL(found[0]), f"scipy_cblas_{name}64_") if found else None


# Integers and addresses go to a function by one list of registers and places, floating-point numbers by another, so any function of C takes this call.
MOST_WORDS, MOST_REALS = 20, 4
LOOP = """
typedef long (*function)(%s);
int loop(function f, long calls, const long *i, const double *d, int synchronizes, long (*synchronize)(void *), void *stream)
{
    for (long n = 0; n < calls; n++) {
        long wrong = f(%s);
        if (synchronizes && ((int)wrong || (int)synchronize(stream))) return 1;
    }
    return 0;
}
""" % (", ".join(["long"] * MOST_WORDS + ["double"] * MOST_REALS),
       ", ".join([f"i[{n}]" for n in range(MOST_WORDS)] + [f"d[{n}]" for n in range(MOST_REALS)]))


def compile_loop():
    with tempfile.TemporaryDirectory() as folder:
        source, made = os.path.join(folder, "loop.c"), os.path.join(folder, "loop.so")
        with open(source, "w", encoding="utf-8") as f:
            f.write(LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, source], check=True)
        return ctypes.CDLL(made).loop


loop = compile_loop()


class Call:
    """A function of C with its arguments; ours is done when it returns."""

    def __init__(self, function, args, synchronizes):
        words, reals = [], []
        for a in args:
            if isinstance(a, ctypes.c_float):
                reals.append(struct.unpack("d", struct.pack("fxxxx", a.value))[0])
            elif isinstance(a, (float, ctypes.c_double)):
                reals.append(float(getattr(a, "value", a)))
            else:
                words.append(a.ctypes.data if isinstance(a, np.ndarray) else int(getattr(a, "value", a) or 0))
        self.function, self.keep, self.synchronizes = ctypes.cast(function, ctypes.c_void_p), args, synchronizes
        self.words = (ctypes.c_long * MOST_WORDS)(*words)
        self.reals = (ctypes.c_double * MOST_REALS)(*reals)
        self.wait = ctypes.cast(kernels.native.lib.tile_stream_synchronize, ctypes.c_void_p)

    def repeat(self, calls):
        if loop(self.function, ctypes.c_long(calls), self.words, self.reals, self.synchronizes, self.wait, ctypes.c_void_p(STREAM)):
            raise SystemExit("a call failed")

    def __call__(self):
        self.repeat(1)


def ours(name, *args):
    return Call(getattr(kernels.lib, "tile_" + name), (HANDLE, STREAM, *args), True)


def theirs(name, *args):
    function = blas(name)
    return Call(function, args, False) if function else None


def vectors(n, t, step):
    letter, code = TYPES[t]
    real = ctypes.c_float if t is np.float32 else ctypes.c_double
    x, y, r = np.random.rand(n * step).astype(t), np.random.rand(n).astype(t), np.zeros(1, t)
    at = np.zeros(1, np.int32)
    return {
        "axpy": (ours("axpy", code, n, 1e-9, x, step, y, 1), theirs(letter + "axpy", n, real(1e-9), x, step, y, 1)),
        "scal": (ours("scal", code, n, 0.999999, x, step), theirs(letter + "scal", n, real(0.999999), x, step)),
        "copy": (ours("copy", code, n, x, step, y, 1), theirs(letter + "copy", n, x, step, y, 1)),
        "swap": (ours("swap", code, n, x, step, y, 1), theirs(letter + "swap", n, x, step, y, 1)),
        "dot": (ours("dot", code, n, x, step, y, 1, r), theirs(letter + "dot", n, x, step, y, 1)),
        "asum": (ours("asum", code, n, x, step, r), theirs(letter + "asum", n, x, step)),
        "nrm2": (ours("nrm2", code, n, x, step, r), theirs(letter + "nrm2", n, x, step)),
        "iamax": (ours("iamax", code, n, x, step, at), theirs(f"i{letter}amax", n, x, step)),
    }


def matrices(n, k, t):
    """n x n with k columns beside, or one."""
    letter, code = TYPES[t]
    real = ctypes.c_float if t is np.float32 else ctypes.c_double
    a = (np.random.rand(n, n) / n + np.eye(n)).astype(t)
    b, c, full = np.random.rand(n, k).astype(t), np.zeros((n, k), t), np.zeros((n, n), t)
    x, y, zeros = np.random.rand(n).astype(t), np.zeros(n, t), np.zeros(n, t)  # zeros stay so however often they are solved for
    tri, cblas = (0, 0, 0, 0), (ROW, LEFT, LOWER, NO, NON_UNIT)
    both = {
        "trmm": (ours("trmm_batched", code, *tri, n, k, 0.5, a, n, 0, b, k, 0, 1), theirs(letter + "trmm", *map(ctypes.c_int, cblas), n, k, real(0.5), a, n, b, k)),
        "trsm": (ours("trsm_batched", code, *tri, n, k, 1.0, a, n, 0, b, k, 0, 1), theirs(letter + "trsm", *map(ctypes.c_int, cblas), n, k, real(1), a, n, b, k)),
        "symm": (ours("symm", code, 0, 0, n, k, 1.0, a, n, b, k, 0.0, c, k),
                 theirs(letter + "symm", *map(ctypes.c_int, (ROW, LEFT, LOWER)), n, k, real(1), a, n, b, k, real(0), c, k)),
        "syrk": (ours("syrk", code, 0, 0, n, k, 1.0, b, k, 0.0, full, n),
                 theirs(letter + "syrk", *map(ctypes.c_int, (ROW, LOWER, NO)), n, k, real(1), b, k, real(0), full, n)),
    }
    if k == 1:
        both = {
            "symv": (ours("symv", code, 0, n, 1.0, a, n, x, 1, 0.0, y, 1),
                     theirs(letter + "symv", ctypes.c_int(ROW), ctypes.c_int(LOWER), n, real(1), a, n, x, 1, real(0), y, 1)),
            "trmv": (ours("trmv", code, 0, 0, 0, n, a, n, x, 1), theirs(letter + "trmv", *map(ctypes.c_int, (ROW, LOWER, NO, NON_UNIT)), n, a, n, x, 1)),
            "trsv": (ours("trsv", code, 0, 0, 0, n, a, n, zeros, 1), theirs(letter + "trsv", *map(ctypes.c_int, (ROW, LOWER, NO, NON_UNIT)), n, a, n, zeros, 1)),
        }
        for name, upper, transposed in (("upper", 1, 0), ("lower^T", 0, 1)):
            flags = [ctypes.c_int(v) for v in (ROW, LOWER - upper, NO + transposed, NON_UNIT)]
            for function in ("trmv", "trsv"):
                both[f"{function} {name}"] = (ours(function, code, upper, transposed, 0, n, a, n, zeros, 1),
                                               theirs(letter + function, *flags, n, a, n, zeros, 1))
    return both


def solvers(batch, n, k, t):
    """Copies of the matrix are in the time of both."""
    code = TYPES[t][1]
    r = np.random.rand(batch, n, n).astype(t)
    spd = (r @ r.swapaxes(1, 2) + n * np.eye(n)).astype(t)
    b, work, right = np.random.rand(batch, n, k).astype(t), spd.copy(), np.empty((batch, n, k), t)
    info, pivots = np.zeros(batch, np.int32), np.zeros((batch, n), np.int32)
    low = np.tril(spd)
    S, L, B = (torch.from_numpy(v) for v in (spd, low, b))
    out, X, lu, piv = torch.empty_like(S), torch.empty_like(B), torch.empty_like(S), torch.empty(batch, n, dtype=torch.int32)
    flag = torch.empty(batch, dtype=torch.int32)
    factor, solve = ours("potrf_batched", code, 0, n, work, n, n * n, info, batch), ours("trsm_batched", code, 0, 0, 0, 0, n, k, 1.0, low, n, n * n, right, k, n * k, batch)
    split = ours("getrf_batched", code, n, n, work, n, n * n, pivots, info, batch)

    tau, reflections, q = np.zeros((batch, n), t), spd.copy(), torch.geqrf(S)
    room = np.zeros(kernels.lib.tile_geqrf_workspace(code, n, n, batch) or 1, np.uint8)
    room_q = np.zeros(kernels.lib.tile_ormqr_workspace(code, n, k, n, batch) or 1, np.uint8)
    reflect = ours("geqrf_batched", code, n, n, work, n, n * n, tau, room, batch)
    kernels.geqrf(reflections)
    given = ours("ormqr_batched", code, 1, n, k, n, reflections, n, n * n, tau, right, k, n * k, room_q, batch)

    def after(copy_to, copy_from, call):
        def both():
            np.copyto(copy_to, copy_from)
            call()
        return both

    return {
        "potrf": (after(work, spd, factor), lambda: torch.linalg.cholesky_ex(S, out=(out, flag))),
        "getrf": (after(work, spd, split), lambda: torch.linalg.lu_factor_ex(S, out=(lu, piv, flag))),
        "trsm by torch": (after(right, b, solve), lambda: torch.linalg.solve_triangular(L, B, upper=False, out=X)),
        "geqrf": (after(work, spd, reflect), lambda: torch.geqrf(S, out=(out, q[1]))),
        "ormqr": (after(right, b, given), lambda: torch.ormqr(q[0], q[1], B, transpose=True, out=X)),
    }


def transforms(m, n, t):
    """Rows of n numbers."""
    code = TYPES[t][1]
    x, y, real = np.random.rand(m, n, 2).astype(t), np.zeros((m, n, 2), t), np.random.rand(m, n).astype(t)
    half, back = np.zeros((m, n // 2 + 1, 2), t), np.zeros((m, n), t)
    w, w_real = kernels.fft_table(n, t), kernels.rfft_table(n, t)
    room, room_real = (np.zeros(f(code, m, n) or 1, np.uint8) for f in (kernels.lib.tile_fft_workspace, kernels.lib.tile_rfft_workspace))
    X, Y, H = (torch.view_as_complex(torch.from_numpy(v)) for v in (x, y.copy(), half.copy()))
    R, B = torch.from_numpy(real), torch.from_numpy(back.copy())
    both = {
        "fft": (ours("fft", code, m, n, x, w, y, room, None), lambda: torch.fft.fft(X, out=Y)),
        "rfft": (ours("rfft", code, m, n, real, w_real, half, room_real), lambda: torch.fft.rfft(R, out=H)),
        "irfft": (ours("irfft", code, m, n, half, w_real, back, room_real), lambda: torch.fft.irfft(H, n, out=B)),
    }
    return {name: (python_call(mine), peer) for name, (mine, peer) in both.items()}


def python_call(call):
    """A call of C as one from Python, as its peer is."""
    return lambda: call()


def cases():
    for t in (np.float32, np.float64):
        for n, step in ((100, 1), (10000, 1), (1000000, 1), (10000, 3)):
            yield f"{np.dtype(t).name} {n}" + (f", {step} apart" if step > 1 else ""), vectors(n, t, step)
        for n, k in ((64, 1), (1000, 1), (64, 64), (256, 64), (256, 256), (1000, 1000)):
            yield f"{np.dtype(t).name} {n}x{n}, {k} columns", matrices(n, k, t)
        for batch, n, k in ((1, 16, 16), (64, 16, 16), (1, 64, 64), (16, 64, 1), (1, 256, 256), (1, 1000, 1000), (1, 1000, 1)):
            yield f"{np.dtype(t).name} {batch} of {n}x{n}, {k} columns", solvers(batch, n, k, t)
        for m, n in ((1, 16), (4096, 16), (2048, 32), (1024, 64), (512, 128), (1, 256), (1, 1024), (64, 1024), (16, 4096), (1, 65536)):
            yield f"{np.dtype(t).name} {m} rows of {n}", transforms(m, n, t)


def time_of(run, seconds):
    """Of one call, in microseconds."""
    calls = 1
    while True:
        start = time.process_time()
        if isinstance(run, Call):
            run.repeat(calls)
        else:
            for _ in range(calls):
                run()
        took = time.process_time() - start
        if took >= seconds:
            return took / calls * 1e6
        calls *= 2


def compare(mine, peer, options):
    best = [1e30, 1e30]
    for run in (mine, peer):
        run()
    for _ in range(options.rounds):
        best = [min(b, time_of(run, options.seconds)) for b, run in zip(best, (mine, peer))]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.004)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ratios: dict[str, list[float]] = {}
    print("| call | ours, us | peer, us | ratio |\n| --- | --- | --- | --- |")
    for text, functions in cases():
        for name, (mine, peer) in functions.items():
            if peer is None or options.only not in f"{name} {text}":
                continue
            took, other = compare(mine, peer, options)
            ratios.setdefault(name, []).append(other / took)
            print(f"| {name} {text} | {took:.2f} | {other:.2f} | {other / took:.2f} |", flush=True)
    print("\n| function | calls | median | least | greatest |\n| --- | --- | --- | --- | --- |")
    for name, of in ratios.items():
        of.sort()
        print(f"| {name} | {len(of)} | {of[len(of) // 2]:.2f} | {of[0]:.2f} | {of[-1]:.2f} |")


if __name__ == "__main__":
    main()
