#!/usr/bin/env python3
"""Long rows, counted: what the kernels of rows.tile, which keep a row in one tile, become as rows grow (no GPU is needed).

    rows.py [BUILD] [--before BUILD] [--targets sm_80,...] [--columns 8192,...] [--warps 4,8] [-k PART] [--python PYTHON]

For each: CPU time from source to PTX (to an hsaco for AMD's targets) and of ptxas, instructions of the aligned form, its registers
and spills (bytes on NVIDIA's, registers on AMD's), and the bytes that one row loads, counted by the emulator. --before: another build, for
comparison. --python: one that has Triton, whose kernels of the same names go through the same ptxas. A compilation ends after half a minute.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile

import run as peers

here = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(here, "rows.tile")
F32, F16, I32 = "fp32", "fp16", "i32"
# name: (Triton's kernel and types of its arguments, or None; arguments of one row)
KERNELS = {
    "softmax": (("softmax", [F32] * 2), "x=normal(1)[1,{C}] o=nan[1,{C}]"),
    "logsumexp": (None, "x=normal(1)[1,{C}] o=nan[1]"),
    "layer_norm": (("layernorm", [F32] * 4), "x=normal(1)[1,{C}] w=normal(2)[{C}] b=normal(3)[{C}] o=nan[1,{C}]"),
    "rms_norm": (None, "x=normal(1)[1,{C}] w=normal(2)[{C}] o=nan[1,{C}]"),
    "rms_norm_backward": (("rmsnorm_backward", [F16] * 4 + [F32]),
                          "x=normal(1)[1,{C}] w=normal(2)[{C}] g=normal(3)[1,{C}] dx=nan[1,{C}] dw=nan[1,{C}]"),
    "cross_entropy": (("cross_entropy", [F16, I32, F32, F16]), "x=normal(1)[1,{C}] target=iota[1] loss=nan[1] dx=nan[1,{C}]"),
    "cumsum_rows": (("cumsum_rows", [F32] * 2), "x=normal(1)[1,{C}] o=nan[1,{C}]"),
    "argmax_rows": (None, "x=normal(1)[1,{C}] o=zeros[1]"),
}
SECONDS = 30


def timed(words, **more):
    """(CPU ms, finished process); raises ValueError with the first line of what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        p = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False, **more)
    except subprocess.TimeoutExpired:
        raise ValueError(f"over {SECONDS} s") from None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if p.returncode:
        raise ValueError((p.stderr + p.stdout).strip().split("\n")[0][:60] or f"status {p.returncode}")
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), p


def nvidia(tilec, words, target, kernel, folder):
    ptx = os.path.join(folder, "k.ptx")
    ms, _ = timed([tilec, *words, "--emit", "ptx", "-o", ptx])
    more, p = timed(["ptxas", "-v", f"-arch={target}", ptx, "-o", ptx + ".cubin"])
    f = peers.count(*peers.of_form(ptx + ".cubin", p.stderr + p.stdout, kernel))
    return f"{ms:.0f} + {more:.0f}", f["all"], f["registers"], f["spills"]


def amd(tilec, words, folder):
    asm = os.path.join(folder, "k.s")
    ms, _ = timed([tilec, *words, "--emit", "asm", "-o", asm])
    with open(asm, encoding="utf-8") as f:
        text = f.read()
    body = text[:text.index("s_endpgm")]
    return (f"{ms:.0f}", len(re.findall(r"^\t[a-z]\w+", body, re.M)), int(re.search(r"\.vgpr_count: *(\d+)", text).group(1)),
            int(re.search(r"\.vgpr_spill_count: *(\d+)", text).group(1)))


def loaded(tilec, words, target, kernel, columns):
    args = KERNELS[kernel][1].format(C=columns).split()
    _, p = timed([tilec, "run", *words, "--device", "emu:" + target, "--stats", *args])
    return re.search(r"global loads: .* (\d+) bytes", p.stdout + p.stderr).group(1)


def cell(build, target, kernel, columns, warps, folder):
    tilec = os.path.join(build, "bin", "tilec")
    words = [SOURCE, "--kernel", kernel, "--const", f"B={columns}", "--warps", str(warps)]
    try:
        compiling = words + ["--target", target]
        ms, n, registers, spills = nvidia(tilec, compiling, target, kernel, folder) if target[:2] == "sm" else amd(tilec, compiling, folder)
        text = f"{ms} ms, {n}, {registers} registers" + (f", {spills} spilled" if spills else "")
    except ValueError as e:
        return str(e)
    try:
        return f"{text}, {int(loaded(tilec, words, target, kernel, columns)) / 1024:.0f} KiB"
    except ValueError as e:
        return f"{text}, {e}"


def triton(python, target, kernel, columns, warps, folder):
    if not python or not KERNELS[kernel][0] or target[:2] != "sm":
        return "-"
    name, types = KERNELS[kernel][0]
    try:
        row = peers.row("k", name, types, {"B": columns}, None, warps)
        found, _ = peers.triton(python, [row], target, folder)
        f = found["k"]
    except (KeyError, ValueError, subprocess.SubprocessError) as e:
        return str(e)[:60]
    return f if isinstance(f, str) else f"{f['all']}, {f['registers']} registers" + (f", {f['spills']} B spilled" if f["spills"] else "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(here, "..", "..", "..", "build"))
    p.add_argument("--before")
    p.add_argument("--targets", default="sm_80,sm_90a,gfx942,gfx1100")
    p.add_argument("--columns", default="8192,16384,32768,65536,131072,262144")
    p.add_argument("--warps", default="4,8")
    p.add_argument("-k", default="")
    p.add_argument("--python", help="a python that has Triton")
    a = p.parse_args()
    os.environ["TILE_CACHE"] = "off"
    for target in a.targets.split(","):
        print(f"\n{target}: CPU ms to compile{' to PTX + by ptxas' if target[:2] == 'sm' else ''}, instructions, registers, spills, loaded for a row\n")
        print("| kernel | columns | warps | before | tilec | Triton |\n| --- | --- | --- | --- | --- | --- |")
        for kernel in (k for k in KERNELS if a.k in k):
            for columns in map(int, a.columns.split(",")):
                for warps in map(int, a.warps.split(",")):
                    with tempfile.TemporaryDirectory() as folder:
                        old = cell(a.before, target, kernel, columns, warps, folder) if a.before else "-"
                        new = cell(a.build, target, kernel, columns, warps, folder)
                        peer = triton(a.python, target, kernel, columns, warps, folder)
                    print(f"| {kernel} | {columns} | {warps} | {old} | {new} | {peer} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
