#!/usr/bin/env python3
"""What tilec explain says of instructions and limits, over many kernels: of the examples and the conformance suite.

    mix_classes.py TILEC [--targets sm_80,gfx942] [--every N] [-k SUBSTRING]

Of each kernel on each target: its instructions are of a class (none is "other"), a trip and what is around it are parts of the whole,
exchanges keep busy what the page has a colour for, loops of products have their matrix instructions, there are roofs in order, and at most eight hints, the most expensive first. Targets: all
GPUs that there are. --every: of the conformance suite, only each Nth row. Prints what is wrong and, last, "N kernels, N wrong".
"""
import argparse
import glob
import importlib
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "conformance"))
EXAMPLES = [("examples/01_vector_add/vector_add.tile", []), ("examples/02_softmax/softmax.tile", ["B=4096"]),
            ("examples/03_matmul/matmul.tile", []), ("examples/04_layernorm/layernorm.tile", ["B=4096"]),
            ("examples/05_attention/attention.tile", ["BD=64", "CAUSAL=1"]), ("examples/06_persistent/persistent.tile", []),
            ("test/bench/gemm.tile", [])]
MOST_HINTS = 8


def suite_rows(every, part):
    """(name, source, words of the command line)"""
    from rows import ROWS
    for path in sorted(glob.glob(os.path.join(ROOT, "test", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    for row in ROWS[::every]:
        words = [w for o in (f"{n}={v}" for n, v in row.consts.items()) for w in ("--const", o)]
        words += [o for o in row.options if o == "--check" or o.startswith("-O")]
        if part in row.name:
            yield row.name, row.source, words + (["--kernel", row.kernel] if row.kernel else [])


def example_rows(part):
    for path, consts in EXAMPLES:
        with open(os.path.join(ROOT, path), encoding="utf-8") as f:
            source = f.read()
        if part in path:
            yield os.path.basename(path)[:-5], source, [w for c in consts for w in ("--const", c)]


def wrong_with(k, kinds):
    """What is wrong with a kernel of the report."""
    count = lambda part, name=None: sum(m[part] for m in k["mix"] if name in (None, m["name"]))
    products = k["main_loop"] >= 0 and any(x["instructions"] for x in k["exchanges"] if x["loop"] == k["main_loop"])
    for x in k["exchanges"]:
        if x["kind"] not in kinds or (x["kind"] in ("matrix", "arith")) != bool(x["macs"]) or (x["kind"] == "matrix") != bool(x["matrix_bits"]):
            yield f"{x['op']} keeps {x['kind']} busy"
    if not k["mix"]:
        yield f"no instructions: {k['mix_from']}"
    if count("all", "other"):
        yield f"{count('all', 'other')} of {count('all')} instructions are of no class"
    if any(m["trip"] > m["all"] for m in k["mix"]) or (count("trip") == 0) != (k["main_loop"] < 0) and k["loops"]:
        yield f"a trip of {count('trip')} of {count('all')} instructions, the main loop is {k['main_loop']}"
    if products and not count("trip", "matrix instructions"):
        yield "a loop of products without matrix instructions"
    if k["unrolled"] <= 0:
        yield f"{k['unrolled']} trips in one"
    of = "trip" if k["main_loop"] >= 0 and not k["loops"][k["main_loop"]]["made"] else "program"
    costs = [r[of] for r in k["roofs"]]
    if not costs or costs != sorted(costs, reverse=True) or k["cycles"] < max(r["program"] for r in k["roofs"]) * 0.999:
        yield f"roofs {costs}, cycles {k['cycles']}"
    hints = [h["cycles"] for h in k["hints"]]
    if hints != sorted(hints, reverse=True) or len(hints) > MOST_HINTS or any(not h["text"] for h in k["hints"]):
        yield f"hints {hints}"


def explain(tilec, name, source, words, target, folder):
    """(number of kernels, what is wrong)"""
    path = os.path.join(folder, name + ".tile")
    with open(path, "w", encoding="utf-8") as f:
        f.write(source)
    p = subprocess.run([tilec, "explain", path, "--json", "--target", target, *words], capture_output=True, text=True, timeout=300, check=False)
    if p.returncode:
        return 0, [p.stderr.strip().split("\n")[0]]
    report = json.loads(p.stdout)
    kernels = report["targets"][0]["kernels"]
    return len(kernels), [f"{k['variant']}: {w}" for k in kernels for w in wrong_with(k, report["kinds"])]


def gpus(tilec):
    text = subprocess.run([tilec, "targets"], capture_output=True, text=True, check=True).stdout
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    return [n for n in names if n.startswith(("sm_", "gfx")) and not n.endswith(":")]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tilec")
    p.add_argument("--targets")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("-k", default="")
    a = p.parse_args()
    kernels, wrong = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for target in a.targets.split(",") if a.targets else gpus(a.tilec):
            for name, source, words in [*example_rows(a.k), *suite_rows(a.every, a.k)]:
                n, said = explain(a.tilec, name, source, words, target, folder)
                kernels, wrong = kernels + n, wrong + len(said)
                for text in said:
                    print(f"{name} for {target}: {text}")
    print(f"{kernels} kernels, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
