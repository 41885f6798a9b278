#!/usr/bin/env python3
"""AMD code beside Triton's, counted by kind: the kernels of run.py and its rows, on AMD's targets (no GPU is needed).

    amd.py [BUILD] [--targets gfx90a,gfx942,gfx1100,gfx1201] [-k PART] [--python PYTHON] [--json FILE] [--against FILE] [--general]

Of a kernel with a loop what is counted is the shortest way round its main loop, as amdmix.py finds it, else all of it.
Triton's code is what its own LLVM makes of triton_kernels.py, where PYTHON has it and it knows the target. Two stages of
pipelining on both sides. --general: tilec's form for arguments of any alignment. --against: tilec's earlier figures, that
--json wrote.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import run

sys.path.insert(0, os.path.join(run.root, "test", "tools"))
import amdmix  # noqa: E402

TARGETS, STAGES, F16 = run.AMD, run.STAGES_AMD, run.F16
# Those of NVIDIA, but for types that AMD's matrix instructions do not take, with the most warps that they try; and products of 8 warps.
ROWS = [{**r, "warps": r["warps"][-1:]} for r in run.ROWS if set(TARGETS) <= set(r["targets"])] + [
    run.gemm("f16 128x128x32, 8 warps", "gemm", F16, run.F32, 128, 128, 32, 8, STAGES),
    {**run.attention(64, 128, 64, 8, STAGES), "name": "attention 128x64, D = 64, 8 warps"},
]
# Columns: heading, kinds or facts that are summed.
COLUMNS = [("VALU", ("valu", "accvgpr")), ("SALU", ("salu", "smem")), ("matrix", ("matrix",)),
           ("loads", ("buffer_load", "global_load")), ("stores", ("buffer_store", "global_store")), ("LDS reads", ("lds_read",)),
           ("LDS writes", ("lds_write",)), ("LDS lanes", ("lds_lane",)), ("waits", ("wait",))]


def count(path, kernel, last=False):
    """The figures of a kernel's first form, or of its last."""
    found = sorted(amdmix.analyze_file(path, kernel), key=lambda k: k["kernel"])
    if not found:
        raise ValueError(f"{path}: no kernel {kernel}")
    k = found[-1 if last else 0]
    main = [x["short"] for x in k["loops"] if x["main"]]
    part = main[0] if main else k
    return {"trip": bool(main), "all": part["total"], **{name: sum(part["mix"][x] for x in kinds) for name, kinds in COLUMNS},
            "vgprs": k["facts"]["vgprs"], "scratch": k["facts"]["scratch_bytes"]}


def ours(tilec, r, target, folder, general):
    path = os.path.join(folder, "tilec.s")
    words, kernel = run.source(r)
    p = subprocess.run([tilec, *words, "--target", target, "--emit", "asm", "-o", path, "--warps", str(r["warps"][0]), "--stages", str(STAGES)],
                       capture_output=True, text=True, check=False)
    return count(path, kernel, general) if p.returncode == 0 else p.stderr.strip().split("\n")[0]


def triton(python, rows, target, folder):
    answers, version = run.ask_triton(python, rows, target, folder)
    return {name: error or count(os.path.join(folder, name + ".s"), None) for name, error in answers.items()}, version


def line(name, whose, f):
    if isinstance(f, str):
        return f"| {name} | {whose} | {f} |" + " |" * (len(COLUMNS) + 2)
    return f"| {name} | {whose} | {f['all']} | " + " | ".join(str(f[c]) for c, _ in COLUMNS) + f" | {f['vgprs']} | {f['scratch']} |"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(run.root, "build"))
    p.add_argument("--targets", default=",".join(TARGETS))
    p.add_argument("-k", default="")
    p.add_argument("--python", help="a python that has Triton")
    p.add_argument("--json")
    p.add_argument("--against")
    p.add_argument("--general", action="store_true")
    a = p.parse_args()
    before = json.load(open(a.against, encoding="utf-8")) if a.against else {}
    results, rows = {}, [r for r in ROWS if a.k in r["name"]]
    for target in a.targets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            peers, version = triton(a.python, rows, target, folder) if a.python else ({}, "not asked")
            print(f"\n{target}: instructions (of a loop's trip where there is one), vector registers, bytes of scratch; Triton {version}\n")
            print("| kernel | | all | " + " | ".join(c for c, _ in COLUMNS) + " | VGPRs | scratch |\n|" + " --- |" * (len(COLUMNS) + 5))
            for r in rows:
                key = f"{target} {r['name']}"
                results[key] = ours(os.path.join(a.build, "bin", "tilec"), r, target, folder, a.general)
                theirs = peers.get(run.triton_file(r, 0, r["warps"][0]))
                for whose, f in (("before", before.get(key)), ("tilec", results[key]), ("Triton", theirs)):
                    if f:
                        print(line(r["name"], whose, f), flush=True)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
