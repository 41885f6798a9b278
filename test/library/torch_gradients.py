"""Kernels of the library, forward and backward, beside PyTorch's CPU build and its autograd.

    python3 torch_gradients.py [--devices cpu] [--library FORMAT] [--shapes N] [--seed N] [-k WORD] [-v]

Each case runs with N shapes drawn at random; a failure prints the seed with which `--shapes 1` repeats it. -k: a part of a case's name. The library is
TILE_LIBRARY, or that of build/; `--library 'stdlib/kernels/%s.tile'` takes the kernels of a folder. Where there is no PyTorch, all is skipped.
"""
import argparse
import importlib.util
import os
import sys
import warnings
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAMILIES = ("torch_attention", "torch_images", "torch_layers", "torch_losses", "torch_optimizers", "torch_recurrent")
sys.path.insert(0, os.path.join(ROOT, "python"))
os.environ.setdefault("TILE_LIBRARY", os.path.join(ROOT, "build", "package", "libtilec.so.0.1"))
if not importlib.util.find_spec("torch"):
    print("torch is not installed\n0 passed, 0 failed, 1 skipped")
    sys.exit(0)

import tile  # noqa: E402
import torch  # noqa: E402
from beside_torch import CASES, Run  # noqa: E402

for family in FAMILIES:
    importlib.import_module(family)


def one(function, options, device, index, cx):
    label = function.__name__ + "".join(f" {k}={v}" for k, v in options.items())
    run = Run(device, cx.library, [zlib.crc32(label.encode()), index], options.get("T", "f32"))
    try:
        function(run, **options)
    except (AssertionError, tile.Error) as e:
        print(f"FAILED: {label} --devices {device} --seed {index}: {e}")
        return 1
    assert run.compared, f"{label} compared nothing"
    if cx.verbose:
        print(f"{label} --seed {index}: {run.compared} numbers, at most {run.worst:.3f} of the bound, {run.where}")
    return 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--devices", default="cpu")
    ap.add_argument("--library", default="std.kernels.%s")
    ap.add_argument("--shapes", type=int, default=2)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("-k", default="")
    ap.add_argument("-v", "--verbose", action="store_true")
    cx = ap.parse_args()
    torch.set_num_threads(1)
    if "/" in cx.library:
        warnings.simplefilter("ignore", tile.CompileWarning)  # a file's functions that one kernel does not use
    seeds = range(cx.seed, cx.seed + cx.shapes)
    chosen = [(f, o, device, i) for device in cx.devices.split(",") for f, o in CASES if cx.k in f.__name__ for i in seeds]
    failed = sum(one(*job, cx) for job in chosen)
    print(f"{len(chosen) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
