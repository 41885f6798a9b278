#!/usr/bin/env python3
"""Kernels of the library beside their Triton originals, counted: instructions, registers, spills, bytes (no GPU is needed).

    library.py [BUILD] --python PYTHON --packages FOLDER [--targets sm_80,sm_90a] [-k PART]

PYTHON has Triton; FOLDER holds liger_kernel, vllm, fla, flag_gems and unsloth, unpacked from their wheels. Nothing of theirs is run but their kernels'
compilation (originals.py). The rows are those of library_rows.py: f16, extents that are multiples of 16, aligned. Instructions are those of a thread
in a trip of the main loop (the way round that moves the most bytes, and the shortest of these) or in all. Bytes are those that all threads of a
program ask for: of global memory (copies by TMA too; lanes that ask for the same count each), and of shared memory.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import amd
import library_rows
import run

LANES = 32


def bulk_bytes(ptx, symbol):
    """What a trip of the kernel copies by TMA: as much as one barrier waits for."""
    with open(ptx, encoding="utf-8") as f:
        body = re.split(rf"\.entry {re.escape(symbol)}\(", f.read())[1].split(".entry")[0]
    numbers, most = {}, 0
    for line in body.splitlines():
        for name, n in re.findall(r"mov\.b32\s+(%r\d+), (\d+);", line):
            numbers[name] = int(n)
        for n in re.findall(r"expect_tx\S* +_, \[[^]]*\], (\S+);", line):
            most = max(most, numbers.get(n, 0))
    return most


def figures(path, target, warps, part, kernel=None):
    return (figures_amd if is_amd(target) else figures_nvidia)(path, target, warps, part, kernel)


def figures_nvidia(ptx, target, warps, part, kernel):
    cubin, log = run.assemble(ptx, target)
    name = run.of_form(cubin, log, kernel)[1] if kernel else None
    k = next(x for x in run.sassmix.analyze_file(cubin) if name in (None, x["kernel"]))
    counts = run.count(cubin, name, log)
    main = [x["moving"] for x in k["loops"] if x["main"] and part == "auto"]
    scope = main[0] if main else k
    each = {m: n * LANES * warps for m, n in scope["bytes"].items()}
    bulk = bulk_bytes(ptx, k["kernel"]) if k["mix"]["UTMALDG"] else 0
    return {**counts, "n": scope["total"], "trip": bool(main), "shared": each["shared"], "global": each["global"] + bulk}


def figures_amd(path, target, warps, part, kernel):
    k = sorted(amd.amdmix.analyze_file(path, kernel), key=lambda x: x["kernel"])[0]
    scope = main_loop(k["loops"]) if part == "auto" else None
    main, scope = scope is not None, scope or k
    each = {m: n * wave(target) * warps for m, n in scope["bytes"].items()}
    return {"n": scope["total"], "trip": bool(main), "registers": k["facts"]["vgprs"], "spills": k["facts"]["scratch_bytes"], **each}


def main_loop(loops):
    """A trip of the main loop, if there is one; that over lanes, whose addresses differ, is none."""
    loops = [x for x in loops if x["names"]["v_readfirstlane_b32"] < 4 or x["mix"]["matrix"]]
    return max(loops, key=amd.amdmix.weight)["moving"] if loops else None


def is_amd(target):
    return target.startswith("gfx")


def wave(target):
    return 64 if target.startswith("gfx9") else LANES


def ours(build, name, target, out):
    r = library_rows.ROWS[name]
    module, kernel, constants = r["ours"]
    path = os.path.join(out, file_name(name) + ".tilec" + ending(target))
    words = [w for k, v in constants.items() for w in ("--const", f"{k}={v}")]
    stages = ["--stages", str(r["stages"])] if r["stages"] else []
    subprocess.run([os.path.join(build, "bin", "tilec"), "std.kernels." + module, "--kernel", kernel, "--target", target, "--emit", "asm" if is_amd(target) else "ptx", "-o", path,
                    "--warps", str(r["warps"][0]), *stages, *([] if is_amd(target) else ["--forms", "aligned;general"]), *words], check=True)
    return figures(path, target, r["warps"][0], r["part"], kernel)


def ending(target):
    return ".s" if is_amd(target) else ".ptx"


def file_name(name):
    return re.sub(r"\W+", "_", name)


def originals(python, packages, names, target, out):
    """Name to figures, or to what went wrong."""
    jobs = []
    for name in names:
        r = library_rows.ROWS[name]
        for i, (path, kernel, types, constants, _times) in enumerate(parts_of(r)):
            jobs.append({"name": file_name(name) + str(i), "path": path, "kernel": kernel, "types": types, "constants": constants, "odd": r["odd"],
                         "warps": r["warps"][1], "stages": r["stages"] or 3})
    p = subprocess.run([python, os.path.join(run.here, "originals.py"), packages, target, out], input="\n".join(map(json.dumps, jobs)),
                       capture_output=True, text=True, check=False)
    answers = dict(map(json.loads, p.stdout.splitlines()))
    found = {}
    for name in names:
        r, each = library_rows.ROWS[name], []
        files = [file_name(name) + str(i) for i in range(len(parts_of(r)))]
        errors = [answers.get(f, p.stderr.strip().split("\n")[-1]) for f in files]
        for f in files if not any(errors) else []:
            try:
                each.append(figures(os.path.join(out, f + ending(target)), target, r["warps"][1], r["part"]))
            except ValueError as e:
                errors.append(str(e))
        found[name] = next(filter(None, errors), None) or summed(each, [x[4] for x in parts_of(r)])
    return found


def parts_of(r):
    """The originals of a row, and how often each runs."""
    return r["theirs"] if isinstance(r["theirs"], list) else [(*r["theirs"], 1)]


def summed(each, times):
    total = {k: sum(f[k] * n for f, n in zip(each, times)) for k in ("n", "global", "shared")}
    return {**each[0], **total, "registers": max(f["registers"] for f in each), "spills": sum(f["spills"] for f in each), "trip": any(f["trip"] for f in each)}


def cell(f):
    if isinstance(f, str):
        return f, "", ""
    spills = f", {f['spills']} B spilled" if f["spills"] else ""  # of AMD's: scratch
    return f"{f['n']}{' a trip' if f['trip'] else ''}, {f['registers']} registers{spills}", f["global"], f["shared"]


def ratio(r, mine, peer, key):
    """Of what each does for the same work; nothing where one has a loop and the other none, and nothing says what each does."""
    if isinstance(peer, str) or not peer[key] or (mine["trip"] != peer["trip"] and r["work"] == (1, 1)):
        return ""
    threads = (r["warps"][0], r["warps"][1]) if key == "n" else (1, 1)
    return f"{mine[key] * threads[0] / r['work'][0] / (peer[key] * threads[1] / r['work'][1]):.2f}"


def what_is_beside(name):
    """Whose kernels the row's originals are, and what differs."""
    r = library_rows.ROWS[name]
    kernels = ", ".join(f"`{kernel}` ({path.split('.')[0]})" for path, kernel, *_ in parts_of(r))
    return f"* {name}: `{r['ours'][0]}.{r['ours'][1]}`, {kernels}" + (f": {r['note']}" if r["note"] else "")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", nargs="?", default=os.path.join(run.root, "build"))
    p.add_argument("--targets", default="sm_80,sm_90a")
    p.add_argument("-k", default="")
    p.add_argument("--python", required=True)
    p.add_argument("--packages", required=True)
    a = p.parse_args()
    for target in a.targets.split(","):
        names = [n for n, r in library_rows.ROWS.items() if a.k in n and target in r["targets"] + (target,) * (not r["targets"])]
        print(f"\n{target}\n\n| kernel | tilec | original | ratio | global bytes | original | ratio | shared bytes | original |\n|" + " --- |" * 9)
        with tempfile.TemporaryDirectory() as out:
            peers = originals(a.python, a.packages, names, target, out)
            for name in names:
                r = library_rows.ROWS[name]
                mine, peer = ours(a.build, name, target, out), peers[name]
                (text, far, near), (text2, far2, near2) = cell(mine), cell(peer)
                print(f"| {name} | {text} | {text2} | {ratio(r, mine, peer, 'n')} | {far} | {far2} | {ratio(r, mine, peer, 'global')} | {near} | {near2} |", flush=True)
    print("\nThe rows:\n\n" + "\n".join(what_is_beside(n) for n in library_rows.ROWS if a.k in n))


if __name__ == "__main__":
    sys.exit(main())
