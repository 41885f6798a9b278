#!/usr/bin/env python3
"""Registers, spills and main loops of the examples on GPUs, as the targets' own tools and sassmix.py count them.

    gpu_registers.py [TILEC] [TARGET...]     default: build/bin/tilec sm_80 sm_90a gfx942 gfx1100

Prints a table; exit 1 when vector registers are spilled. NVIDIA: `ptxas -v` (on PATH); AMD: the code object's notes, by
llvm-readelf (on PATH, or with a version in its name). Shared memory is given at launch and is not among the figures.
The main loop: its instructions, the most frequent ones by name.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import sassmix

SHOWN = 4
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = [
    ("examples/01_vector_add/vector_add.tile", []),
    ("examples/02_softmax/softmax.tile", ["B=4096"]),
    ("examples/03_matmul/matmul.tile", ["epilogue=relu"]),
    ("examples/04_layernorm/layernorm.tile", ["B=4096"]),
    ("examples/05_attention/attention.tile", ["BD=64", "CAUSAL=1"]),
    ("examples/06_persistent/persistent.tile", ["epilogue=relu"]),
    ("test/bench/gemm.tile", []),
]


def run(words):
    """(output, error): one of them is empty."""
    p = subprocess.run(words, capture_output=True, text=True)
    text = (p.stderr + p.stdout).strip()
    return ("", text.split("\n")[0]) if p.returncode else (text, "")


def main_loops(cubin):
    """Kernel to text."""
    found = {}
    for k in sassmix.analyze_file(cubin):
        for x in k["loops"]:
            if x["main"]:
                found[k["kernel"]] = f"{x['total']}: " + ", ".join(f"{n} {name}" for name, n in x["mix"].most_common(SHOWN))
    return found


def of_nvidia(file, target):
    """Rows (kernel, registers, spilled, bytes spilled, main loop)."""
    if not shutil.which("ptxas"):
        return [], "no ptxas on PATH"
    text, wrong = run(["ptxas", "-v", f"-arch={target}", file, "-o", file + ".cubin"])
    rows, loops = [], {} if wrong else main_loops(file + ".cubin")
    for part in text.split("Compiling entry function '")[1:]:
        name, spills = part.split("'")[0], sum(int(n) for n in re.findall(r"(\d+) bytes spill", part))
        rows.append((name, re.search(r"Used (\d+) registers", part).group(1), f"{spills} bytes", spills, loops.get(name, "")))
    return rows, wrong


def of_amd(file):
    reader = shutil.which("llvm-readelf") or shutil.which("llvm-readelf-19")
    if not reader:
        return [], "no llvm-readelf on PATH"
    text, wrong = run([reader, "--notes", file])
    rows = []
    for part in text.split(".group_segment_fixed_size:")[1:]:
        fact = {k: v for k, v in re.findall(r"\.(name|vgpr_count|agpr_count|vgpr_spill_count|sgpr_spill_count):\s+(\w+)\n", part)}
        spills = int(fact["vgpr_spill_count"])
        rows.append((fact["name"], f"{fact['vgpr_count']}", f"{spills} vector, {fact['sgpr_spill_count']} scalar", spills, ""))
    return rows, wrong


def main(args):
    tilec, targets = args[0] if args else os.path.join(ROOT, "build", "bin", "tilec"), args[1:] or ["sm_80", "sm_90a", "gfx942", "gfx1100"]
    bad = False
    print("| kernel | target | registers | spilled | main loop |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "out")
        for path, consts in KERNELS:
            for target in targets:
                nvidia = target.startswith("sm_")
                words = [tilec, os.path.join(ROOT, path), "--target", target, f"--emit={'ptx' if nvidia else 'hsaco'}", "-o", file]
                _, wrong = run(words + [w for c in consts for w in ("--const", c)])
                rows = []
                if not wrong:
                    rows, wrong = of_nvidia(file, target) if nvidia else of_amd(file)
                if wrong:
                    print(f"| {os.path.basename(path)} | {target} | {wrong} | | |")
                bad |= bool(wrong) or any(r[3] for r in rows)
                for name, registers, spilled, _, loop in rows:
                    print(f"| {name} | {target} | {registers} | {spilled} | {loop} |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
