#!/usr/bin/env python3
"""What the kernels of the library become on GPUs: registers, spills, shared memory, by `tilec explain`, with the tiles that are their defaults.

    explain_kernels.py [--build DIR] [--targets sm_90a,gfx942] [--all] [NAME...]

A row of a table for each kernel (NAME: those whose names contain one), with the types and options of its first row in test/conformance, or,
with --all, of each row that differs in them. Of a kernel's forms the worst counts; spills are bytes on NVIDIA, registers on AMD.
Exit 1 if there are any.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
from check_kernels import kernels  # noqa: E402
from check_stdlib import rows  # noqa: E402


def chosen(row, text):
    """The row's constants, without the tiles that have defaults."""
    head = text[text.index(f"kernel {row.kernel}("):]
    head = head[:head.index("\n{")]
    has_default = lambda n: "." in n or re.search(rf"const int {n} =", head)
    is_tile = lambda n: re.fullmatch(r"(\w+\.)?(B\w?|D|DV|DR|N|C|PAGE)", n)
    return {n: v for n, v in row.consts.items() if not (has_default(n) and is_tile(n))}


def explain(tilec, path, kernel, consts, target):
    words = [tilec, "explain", path, "--kernel", kernel, "--target", target, "--json", "-Wno-unused", "-Wno-scratch", "-Wno-unrequired-tail"]
    p = subprocess.run(words + [w for n, v in consts.items() for w in ("--const", f"{n}={v}")], capture_output=True, text=True)
    if p.returncode:
        return None, p.stderr.strip().splitlines()[0][:150]
    found = json.loads(p.stdout)["targets"][0]["kernels"]
    most = lambda key: max(k[key] for k in found)
    return most("spilled"), f"{found[0]['warps']} warps, {most('registers')} registers, {most('spilled')} spilled, {most('shared_bytes') // 1024} KiB"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    ap.add_argument("--targets", default="sm_90a,gfx942")
    ap.add_argument("--all", action="store_true")
    ap.add_argument("names", nargs="*")
    o = ap.parse_args()
    root, tilec, bad = os.path.join(HERE, "..", ".."), os.path.join(o.build, "bin", "tilec"), 0
    of, targets = {}, o.targets.split(",")
    for r in rows(root):
        of.setdefault((r.source, r.kernel), []).append(r)
    print(f"| kernel | types and options | {' | '.join(targets)} |\n|{' --- |' * (2 + len(targets))}")
    for module, text, kernel, *_ in kernels(root):
        if o.names and not any(n in f"{module}.{kernel}" for n in o.names):
            continue
        sets = []
        for r in of.get((text, kernel), []):
            if chosen(r, text) not in sets:
                sets.append(chosen(r, text))
        for consts in sets if o.all else sets[:1] or [{}]:
            with tempfile.TemporaryDirectory(prefix="tile-explain-") as folder:
                path = os.path.join(folder, module + ".tile")
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
                found = [explain(tilec, path, kernel, consts, t) for t in targets]
            bad += sum(spilled != 0 for spilled, _ in found)
            said = " ".join(f"{n}={v}" for n, v in consts.items() if v != "false")
            print(f"| `{module}.{kernel}` | {said} | {' | '.join(text for _, text in found)} |", flush=True)
    print(f"\n{bad} spill")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
