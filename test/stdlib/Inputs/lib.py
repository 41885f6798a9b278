"""Runs a kernel by `tilec run` with NumPy arrays in and out, on each device; used by the tests of the library."""
import os
import subprocess
import sys
import tempfile

import numpy as np

DEVICES = sys.argv[1:] or ["cpu", "ref"]


def run(source, args, saved, device, options=()):
    """args: name -> array or text; the arrays named in `saved` come back."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.tile")
        with open(path, "w") as f:
            f.write(source)
        command = ["tilec", "run", path, "--device", device, *options]
        for name, value in args.items():
            if isinstance(value, np.ndarray):
                np.save(os.path.join(folder, name + ".npy"), value)
                value = "@" + os.path.join(folder, name + ".npy")
            command.append(f"{name}={value}")
        for name in saved:
            command += ["--save", f"{name}=" + os.path.join(folder, "out_" + name + ".npy")]
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode != 0:
            sys.exit(f"{device}: status {p.returncode}\n{p.stderr}")
        return [np.load(os.path.join(folder, "out_" + name + ".npy")) for name in saved]


def near(what, device, got, want, bound):
    """Every |got - want| <= bound (an array or a number), NaN where want is NaN; says where not, and exits."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    bad = ~((np.abs(got - want) <= bound) | (got == want) | (np.isnan(got) & np.isnan(want)))
    if bad.any():
        i = tuple(np.argwhere(bad)[0])
        sys.exit(f"{what} on {device}: {bad.sum()} of {bad.size} wrong, first at {i}: {got[i]!r} for {want[i]!r}")


def ulp(x):
    """The distance of f32 numbers at |x|."""
    return np.spacing(np.abs(np.asarray(x, np.float32)).clip(np.float32(1e-37)))
