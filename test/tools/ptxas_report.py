#!/usr/bin/env python3
"""What ptxas makes of the examples: registers, spilled bytes, shared memory and instructions of each kernel.

    ptxas_report.py TILEC [TARGET...]     default targets: sm_80 sm_90a; prints a table; exit 1 when a kernel spills

Needs ptxas on PATH. The figures are those of `ptxas -v`; shared memory is given at launch and is not among them.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = [
    ("examples/01_vector_add/vector_add.tile", []),
    ("examples/02_softmax/softmax.tile", ["B=4096"]),
    ("examples/03_matmul/matmul.tile", ["epilogue=relu"]),
    ("examples/04_layernorm/layernorm.tile", ["B=4096"]),
    ("examples/05_attention/attention.tile", ["BD=64", "CAUSAL=1"]),
]


def assemble(tilec, path, consts, target, folder):
    """ptxas -v's words, or None when the compiler refuses."""
    ptx, cubin = os.path.join(folder, "k.ptx"), os.path.join(folder, "k.cubin")
    command = [tilec, os.path.join(ROOT, path), "--target", target, "--emit=ptx", "-o", ptx]
    for c in consts:
        command += ["--const", c]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if compiled.returncode:
        return None, compiled.stderr.strip().split("\n")[0]
    done = subprocess.run(["ptxas", "-v", f"-arch={target}", ptx, "-o", cubin], capture_output=True, text=True)
    return (done.stderr, "") if done.returncode == 0 else (None, done.stderr.strip().split("\n")[0])


def figures(words):
    """(kernel, registers, bytes of spill stores and loads) of each entry."""
    for part in words.split("Compiling entry function '")[1:]:
        name = part.split("'")[0]
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
        stack = int(re.search(r"(\d+) bytes stack", part).group(1))
        yield name, registers, spills, stack


def main(args):
    tilec, targets = args[0], args[1:] or ["sm_80", "sm_90a"]
    bad = False
    print("| kernel | target | registers | spilled bytes | stack bytes |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for path, consts in KERNELS:
            for target in targets:
                words, why = assemble(tilec, path, consts, target, folder)
                if words is None:
                    print(f"| {os.path.basename(path)} | {target} | {why} | | |")
                    bad = True
                    continue
                for name, registers, spills, stack in figures(words):
                    print(f"| {name} | {target} | {registers} | {spills} | {stack} |")
                    bad |= spills > 0
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
