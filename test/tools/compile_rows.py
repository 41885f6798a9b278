#!/usr/bin/env python3
"""Every kernel of the conformance suite as code of real GPUs: what the emulator runs, the target's tools take.

    compile_rows.py [--build DIR] [--targets sm_80,gfx942] [-k SUBSTRING] [--every N] [--small] [--large] [--strict] [-v]

For NVIDIA the PTX goes through ptxas when that is on PATH (else it is only emitted, and the last line says so), for AMD an
hsaco is linked. Prints what fails and, last, "N compiled, N failed"; exit 1 if any failed. --small: not the rows
that take seconds. --large: in place of the rows, the examples, products and attention of the sizes that one would use, with a producer
of its own or not, of the form for aligned arguments. --strict: what ptxas spills, and its notes on products of warpgroups (C75..), are failures, too. -v: also ptxas's
registers and spills.
"""
import argparse
import glob
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))
from product_kernel import product_kernel  # noqa: E402
from rows import ROWS, Row  # noqa: E402

ATTENTION = os.path.join(ROOT, "examples", "05_attention", "attention.tile")
EXAMPLES = [("01_vector_add/vector_add", ["B=1024"]), ("02_softmax/softmax", ["B=4096"]), ("03_matmul/matmul", ["BM=128", "BN=128", "BK=64", "T=f16"]),
            ("04_layernorm/layernorm", ["B=4096"]), ("05_attention/attention", ["BD=64", "BM=128", "BN=64", "T=f16"]),
            ("05_attention/attention", ["BD=128", "BM=128", "BN=64", "CAUSAL=true", "T=f16"]), ("06_persistent/persistent", ["BM=128", "BN=128", "BK=64"]),
            ("07_split_k/split_k", ["BM=128", "BN=128", "BK=64"])]
# types of operands and sums, B's columns in one piece, rows, columns, step along k
PRODUCTS = [("bf16", "f32", False, 128, 256, 64), ("bf16", "f32", False, 256, 128, 64), ("f16", "f32", True, 128, 256, 64), ("f16", "f32", False, 128, 128, 64),
            ("f8e4m3", "f32", True, 128, 128, 128), ("f8e5m2", "f32", True, 128, 256, 128), ("i8", "i32", True, 128, 256, 128), ("f16", "f32", False, 64, 256, 64)]


def large():
    """Rows without arguments: nothing runs."""
    def row(name, source, consts=(), warps=0, stages=0):
        return Row(name, source, {}, None, dict(c.split("=") for c in consts), None, ["--forms=aligned"], [], True, False, False, warps, stages)
    for path, consts in EXAMPLES:
        with open(os.path.join(ROOT, "examples", path + ".tile"), encoding="utf-8") as f:
            yield row(f"{os.path.basename(path)}_{'_'.join(consts).replace('=', '')}", f.read(), consts)
    for t, acc, in_columns, m, n, k in PRODUCTS:
        for hint in ("pipeline", "pipeline specialize"):
            source = product_kernel(f"const {t} A[M, K], const {t} B[{'K : 1, N : ldb' if in_columns else 'K, N'}], {acc} C[M, N]",
                                    block=(m, n, k), acc=acc, loop=" " + hint)
            yield row(f"product_{t}_{m}x{n}x{k}{'_alone' if 'special' in hint else ''}", source, warps=4 if m == 64 else 8, stages=3)
    with open(ATTENTION, encoding="utf-8") as f:
        text = f.read()
    for d, bn in ((64, 128), (64, 64), (128, 64), (128, 128), (256, 64)):
        for causal in ("false", "true"):
            yield row(f"attention_{d}_{bn}_causal_{causal}", text, [f"BD={d}", "BM=128", f"BN={bn}", f"CAUSAL={causal}", "T=bf16"], 8, 2)


def first_line(p):
    lines = (p.stderr + p.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[0] if lines else f"exit status {p.returncode}"


def compile_row(row, target, tilec, folder, verbose, strict):
    """What is wrong, or None."""
    path, out = os.path.join(folder, row.name + ".tile"), os.path.join(folder, "out")
    with open(path, "w", encoding="utf-8") as f:
        f.write(row.source)
    nvidia = target.startswith("sm_")
    words = [tilec, path, "--target", target, f"--emit={'ptx' if nvidia else 'hsaco'}", "-o", out]
    words += [o for o in row.options if o in ("-g", "--check") or o.startswith(("-O", "--forms"))]
    words += ["--kernel", row.kernel] if row.kernel else []
    words += ["--warps", str(row.warps)] if row.warps else []
    words += ["--stages", str(row.stages)] if row.stages else []
    for name, value in row.consts.items():
        words += ["--const", f"{name}={value}"]
    p = subprocess.run(words, capture_output=True, timeout=300)
    if p.returncode:
        return first_line(p)
    if nvidia and shutil.which("ptxas"):
        p = subprocess.run(["ptxas", "-v", f"-arch={target}", out, "-o", out + ".cubin"], capture_output=True, timeout=300)
        if p.returncode:
            return "ptxas: " + first_line(p)
        words = p.stderr.decode()
        spills = sum(int(n) for n in re.findall(r"(\d+) bytes spill", words))
        notes = sorted(set(re.findall(r"\(C75\d\d\)|C75\d\d", words + p.stdout.decode())))
        if verbose or spills:
            registers = ", ".join(re.findall(r"Used (\d+) registers", words))
            print(f"{row.name} for {target}: {registers} registers, {spills} bytes spilled")
        if strict and (spills or notes):
            return f"ptxas spills {spills} bytes; notes: {' '.join(notes) or 'none'}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--targets", default="sm_80,gfx942")
    parser.add_argument("-k", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("-v", action="store_true")
    a = parser.parse_args()
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    done = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in [r for r in (large() if a.large else ROWS) if not (a.small and r.big)][::a.every]:
            gpu = not row.devices or "emu" in row.devices
            for target in a.targets.split(",") if gpu and a.k in row.name else []:
                wrong = compile_row(row, target, os.path.join(a.build, "bin", "tilec"), folder, a.v, a.strict)
                done, failed = done + 1, failed + bool(wrong)
                if wrong:
                    print(f"{row.name} for {target}: {wrong}")
    if not shutil.which("ptxas"):
        print("skipped: ptxas, which is not here")
    print(f"{done - failed} compiled, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
