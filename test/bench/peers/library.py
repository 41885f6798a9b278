#!/usr/bin/env python3
"""Kernels of the library beside the Triton originals of Liger-Kernel, counted: instructions, registers and spills (no GPU is needed).

    library.py [BUILD] --python PYTHON --liger FOLDER [--targets sm_80,sm_90a] [-k PART]

PYTHON has Triton; FOLDER holds liger_kernel, unpacked from its wheel. Its kernels are imported, with a stand-in for torch, which only their launchers
need. Both sides have rows of the same length in one tile, f16, aligned; their kernels do more or less the same: what differs is said by the row.
Counting is that of run.py.
"""
import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
P16, P32, PI, I, F = "*fp16", "*fp32", "*i32", "i32", "fp32"
N = 4096

# name: (module of the library, kernel, constants, (module of Liger, kernel, types in order, constants), what differs)
ROWS = {
    "rms norm": ("norms", "rms_norm", {"BN": N}, ("rms_norm", "_rms_norm_forward_kernel", [P16, I, P16, I, P16, I, P32, I, I, F, F],
                 {"casting_mode": 0, "elementwise_affine": True, "BLOCK_SIZE": N}), ""),
    "rms norm backward": ("norms", "rms_norm_backward", {"BN": N}, ("rms_norm", "_rms_norm_backward_kernel",
                          [P16, I, P16, I, P16, I, None, P16, I, P32, I, P32, I, I, I, F, I],
                          {"X_dtype": "float16", "casting_mode": 0, "elementwise_affine": True, "BLOCK_SIZE": N, "COMPUTE_DW": True}), ""),
    "layer norm": ("norms", "layer_norm", {"BN": N}, ("layer_norm", "_layer_norm_forward_kernel", [P16, I] * 4 + [P32, I, P32, I, I, F],
                   {"BLOCK_SIZE": N}), ""),
    "layer norm backward": ("norms", "layer_norm_backward", {"BN": N}, ("layer_norm", "_layer_norm_backward_kernel",
                            [P16, I, P16, P32, I, P32, I, P16, I, P32, I, P32, I, P16, I, I, I],
                            {"rows_per_program": 64, "BLOCK_SIZE": N, "COMPUTE_DW": True, "COMPUTE_DB": True}), ""),
    "swiglu": ("layers", "gated", {"B": N}, ("swiglu", "_swiglu_forward_kernel_tiled", [P16, P16, P16, I, F, I], {"BLOCK_SIZE": N}),
               "Liger's multiplies by a scalar, too"),
    "embedding backward": ("layers", "embedding_backward", {"B": 512}, ("experimental.embedding", "embedding_backward_kernel",
                           [P16, P32, PI, I], {"embedding_dim": N, "BLOCK_SIZE_M": 1, "BLOCK_SIZE_N": 512}), "ours scales, and leaves a row out"),
}


class Version(tuple):
    """What packaging.version.Version is asked for."""

    def __new__(cls, text):
        return super().__new__(cls, [int(x) for x in text.split("+")[0].split(".")[:2]])


def stand_in(folder):
    from types import ModuleType
    from unittest.mock import MagicMock
    for name in ("torch", "torch.nn", "torch.nn.functional", "torch.distributed", "torch.distributed.tensor", "torch.autograd", "transformers"):
        sys.modules[name] = MagicMock(name=name, __version__="2.9.0")
    version = ModuleType("packaging.version")
    version.Version = version.parse = Version
    sys.modules["packaging"] = ModuleType("packaging")
    sys.modules["packaging.version"] = sys.modules["packaging"].version = version
    for name in ("liger_kernel", "liger_kernel.ops"):  # without what their __init__.py imports
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [os.path.join(folder, *name.split("."))]


def emit(folder, target, out, names):
    """By the python that has Triton: OUT/NAME.ptx, and a line for each."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    stand_in(folder)
    for name in names:
        module, kernel, types, constants = ROWS[name][3]
        try:
            fn = getattr(importlib.import_module("liger_kernel.ops." + module), kernel)
            given = {k: getattr(tl, v) if isinstance(v, str) else v for k, v in constants.items()}
            kinds = {k: "constexpr" if k in given else t for k, t in zip(fn.arg_names, types + [None] * len(fn.arg_names))}
            aligned = {(i,): [["tt.divisibility", 16]] for i, k in enumerate(fn.arg_names) if kinds[k] and (kinds[k][0] == "*" or kinds[k] == I)}
            source = ASTSource(fn, kinds, {(fn.arg_names.index(k),): v for k, v in given.items()}, aligned)
            code = triton.compile(source, target=GPUTarget("cuda", int(target[3:5]), 32), options={"num_warps": 8})
            with open(os.path.join(out, name.replace(" ", "_") + ".ptx"), "w", encoding="utf-8") as f:
                f.write(code.asm["ptx"])
            print(json.dumps([name, None]), flush=True)
        except Exception as e:  # pylint: disable=broad-except
            print(json.dumps([name, repr(e).split("\n", maxsplit=1)[0]]), flush=True)


def ours(run, build, name, target, out):
    module, kernel, constants = ROWS[name][:3]
    ptx = os.path.join(out, name.replace(" ", "_") + ".tilec.ptx")
    words = [w for k, v in constants.items() for w in ("--const", f"{k}={v}")]
    subprocess.run([os.path.join(build, "bin", "tilec"), "std.kernels." + module, "--kernel", kernel, "--target", target, "--emit", "ptx", "-o", ptx,
                    "--warps", "8", "--forms", "aligned;general", *words], check=True)
    return run.count(*run.of_form(*run.assemble(ptx, target), kernel))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(HERE, "..", "..", "..", "build"))
    p.add_argument("--targets", default="sm_80,sm_90a")
    p.add_argument("-k", default="")
    p.add_argument("--python", required=True)
    p.add_argument("--liger", required=True)
    a = p.parse_args()
    import run
    names = [n for n in ROWS if a.k in n]
    for target in a.targets.split(","):
        print(f"\n{target}: instructions (of a loop's trip where there is one)\n\n| kernel | tilec | Liger-Kernel | tilec / Liger | |\n| --- | --- | --- | --- | --- |")
        with tempfile.TemporaryDirectory() as out:
            answers = subprocess.run([a.python, os.path.abspath(__file__), "--emit", a.liger, target, out, *names], capture_output=True, text=True, check=True)
            for name, error in map(json.loads, answers.stdout.splitlines()):
                mine = run.figures(ours(run, a.build, name, target, out))
                peer = (error, None) if error else run.figures(run.counted(os.path.join(out, name.replace(" ", "_") + ".ptx"), target))
                ratio = f"{mine[1] / peer[1]:.2f}" if peer[1] else ""
                print(f"| {name} | {mine[0]} | {peer[0]} | {ratio} | {ROWS[name][4]} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--emit"]:
        emit(*sys.argv[2:5], sys.argv[5:])
    else:
        main()
