"""Works of several launches, whole, each launch reading what the one before it wrote: python launches.py TILEC DEVICE FOLDER"""
import subprocess
import sys

import numpy as np

TILEC, DEVICE, FOLDER = sys.argv[1:]


def launch(kernel, out, **args):
    """Runs MODULE.KERNEL of the library; capitals are constants, arrays are passed as they are, text is an array for tilec. Returns the arrays named in `out`."""
    module, name = kernel.split(".")
    command = [TILEC, "run", f"std.kernels.{module}", "--kernel", name, "--device", DEVICE]
    for key, value in args.items():
        if isinstance(value, np.ndarray):
            np.save(f"{FOLDER}/{key}.npy", value)
            value = f"@{FOLDER}/{key}.npy"
        command += ["--const", f"{key}={value}"] if key.isupper() else [f"{key}={value}"]
    for key in out:
        command += ["--save", f"{key}={FOLDER}/out_{key}.npy"]
    subprocess.run(command, check=True)
    return [np.load(f"{FOLDER}/out_{key}.npy") for key in out]


def complex_of(a):
    return a[..., 0].astype(float) + 1j * a[..., 1]


def near(name, got, want, bound):
    error = np.sqrt((np.abs(got - want) ** 2).mean() / (np.abs(want) ** 2).mean())
    print(f"{name} {'is right' if error < bound else f'has an error of {error}'}")


def table(n):
    return launch("fft.fft_table", ["w"], w=f"nan[2,{n}]")[0]


def long_rows(n1, n2):
    """Two launches, of columns and then of rows, and back again by one that keeps rows in memory."""
    n = n1 * n2
    x = np.random.default_rng(1).standard_normal((1, n1, n2, 2)).astype(np.float32)
    t, = launch("fft.fft_columns", ["t"], x=x, w=table(n1), t=f"nan[1,{n1},{n2},2]", N1=n1)
    y, = launch("fft.fft_last", ["y"], t=t, w=table(n2), y=f"nan[1,{n2},{n1},2]", N2=n2)
    near("fft_columns, fft_last", complex_of(y).ravel(), np.fft.fft(complex_of(x).ravel()), 1e-6)
    back, = launch("fft.fft_long", ["y"], x=y.reshape(1, n, 2), w=table(n), y=f"nan[1,{n},2]", room=f"nan[1,4,{n}]", INVERSE="true")
    near("and fft_long back", complex_of(back).ravel(), complex_of(x).ravel(), 1e-6)


def real_rows(n):
    x = np.random.default_rng(2).standard_normal((2, n)).astype(np.float32)
    w = table(n)
    y, = launch("fft.fft_real", ["y"], x=x, w=w, y=f"nan[2,{n // 2 + 1},2]", N=n)
    back, = launch("fft.fft_real_inverse", ["x"], y=y, w=w, x=f"nan[2,{n}]", N=n)
    near("fft_real and back", back, x, 1e-6)


def spectral_norm(r, c):
    """Steps of power iteration, three launches each, come to the greatest singular value."""
    rng = np.random.default_rng(3)
    w = (rng.standard_normal((r, c)) + 3 * np.outer(rng.standard_normal(r), rng.standard_normal(c))).astype(np.float32)
    u = rng.standard_normal(r).astype(np.float32)
    for _ in range(3):
        t, = launch("gan.spectral_columns", ["t"], T="f32", w=w, u=u, t=f"nan[{c}]")
        v, s = launch("gan.spectral_rows", ["v", "s"], T="f32", w=w, t=t, v=f"nan[{c}]", s=f"nan[{r}]")
        u, sigma, y = launch("gan.spectral_apply", ["u", "sigma", "y"], T="f32", w=w, s=s, u=u, sigma="nan[1]", y=f"nan[{r},{c}]")
    near("spectral norm", sigma, np.linalg.norm(w.astype(float), 2), 1e-4)
    near("weights by it", y, w / np.linalg.norm(w.astype(float), 2), 1e-4)


long_rows(16, 64)
real_rows(256)
spectral_norm(20, 30)
