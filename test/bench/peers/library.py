#!/usr/bin/env python3
"""Kernels of the library beside their Triton originals, counted: instructions, registers, spills, bytes (no GPU is needed).

    library.py [BUILD] --python PYTHON --packages FOLDER [--targets sm_80,sm_90a] [-k PART]

PYTHON has Triton; FOLDER holds liger_kernel, vllm, fla, flag_gems and unsloth, unpacked from their wheels. Nothing of theirs is run but their kernels'
compilation (originals.py). The rows are those of library_rows.py: f16, extents that are multiples of 16, aligned. Instructions are counted
as run.py does. Bytes are those that all threads of a program ask for, in a trip or in all: of global memory (copies by TMA too; lanes that ask for
the same count each), and of shared memory.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import library_rows
import run

LANES = 32


def bulk_bytes(ptx, symbol):
    """What a trip of the kernel copies by TMA: as much as one barrier waits for."""
    with open(ptx, encoding="utf-8") as f:
        body = re.split(rf"\.entry {re.escape(symbol)}\(", f.read())[1].split(".entry")[0]
    return max([int(n) for n in re.findall(r"mov.b32 +%r\d+, (\d+);\s+// begin inline asm\s+\S+ mbarrier.arrive.expect_tx", body)], default=0)


def figures(ptx, target, warps, part, kernel=None):
    cubin, log = run.assemble(ptx, target)
    name = run.of_form(cubin, log, kernel)[1] if kernel else None
    k = next(x for x in run.sassmix.analyze_file(cubin) if name in (None, x["kernel"]))
    counts = run.count(cubin, name, log)
    main = [x["short"] for x in k["loops"] if x["main"] and part == "auto"]
    scope = main[0] if main else k
    each = {m: n * LANES * warps for m, n in scope["bytes"].items()}
    return {**counts, "n": scope["total"], "trip": bool(main), "warps": warps, "shared": each["shared"],
            "global": each["global"] + (bulk_bytes(ptx, k["kernel"]) if scope["mix"]["UTMALDG"] or k["mix"]["UTMALDG"] else 0)}


def ours(build, name, target, out):
    r = library_rows.ROWS[name]
    module, kernel, constants = r["ours"]
    ptx = os.path.join(out, file_name(name) + ".tilec.ptx")
    words = [w for k, v in constants.items() for w in ("--const", f"{k}={v}")]
    stages = ["--stages", str(r["stages"])] if r["stages"] else []
    subprocess.run([os.path.join(build, "bin", "tilec"), "std.kernels." + module, "--kernel", kernel, "--target", target, "--emit", "ptx", "-o", ptx,
                    "--warps", str(r["warps"][0]), *stages, "--forms", "aligned;general", *words], check=True)
    return figures(ptx, target, r["warps"][0], r["part"], kernel)


def file_name(name):
    return re.sub(r"\W+", "_", name)


def originals(python, packages, names, target, out):
    """Name to figures, or to what went wrong."""
    jobs = []
    for name in names:
        r = library_rows.ROWS[name]
        path, kernel, types, constants = r["theirs"]
        jobs.append({"name": file_name(name), "path": path, "kernel": kernel, "types": types, "constants": constants, "odd": r["odd"],
                     "warps": r["warps"][1], "stages": r["stages"] or 3})
    p = subprocess.run([python, os.path.join(run.here, "originals.py"), packages, target, out], input="\n".join(map(json.dumps, jobs)),
                       capture_output=True, text=True, check=False)
    answers = dict(map(json.loads, p.stdout.splitlines()))
    found = {}
    for name in names:
        error = answers.get(file_name(name), p.stderr.strip().split("\n")[-1])
        r = library_rows.ROWS[name]
        found[name] = error or figures(os.path.join(out, file_name(name) + ".ptx"), target, r["warps"][1], r["part"])
    return found


def cell(f):
    if isinstance(f, str):
        return f, "", ""
    spills = f", {f['spills']} B spilled" if f["spills"] else ""
    return f"{f['n']}{' a trip' if f['trip'] else ''}, {f['registers']} registers{spills}", f["global"], f["shared"]


def ratio(r, mine, peer, key):
    """Of what each does for the same work; None where there is none."""
    if isinstance(peer, str) or not peer[key]:
        return ""
    threads = (r["warps"][0], r["warps"][1]) if key == "n" else (1, 1)
    return f"{mine[key] * threads[0] / r['work'][0] / (peer[key] * threads[1] / r['work'][1]):.2f}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(run.root, "build"))
    p.add_argument("--targets", default="sm_80,sm_90a")
    p.add_argument("-k", default="")
    p.add_argument("--python", required=True)
    p.add_argument("--packages", required=True)
    a = p.parse_args()
    names = [n for n in library_rows.ROWS if a.k in n]
    for target in a.targets.split(","):
        print(f"\n{target}\n\n| kernel | tilec | original | ratio | global bytes | original | ratio | shared bytes | original |\n|" + " --- |" * 9)
        with tempfile.TemporaryDirectory() as out:
            peers = originals(a.python, a.packages, names, target, out)
            for name in names:
                r = library_rows.ROWS[name]
                mine, peer = ours(a.build, name, target, out), peers[name]
                (text, far, near), (text2, far2, near2) = cell(mine), cell(peer)
                print(f"| {name} | {text} | {text2} | {ratio(r, mine, peer, 'n')} | {far} | {far2} | {ratio(r, mine, peer, 'global')} | {near} | {near2} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
