#!/usr/bin/env python3
"""The GPU passes on real kernels, against the interpreter: conformance rows, examples and what test/passes has.

    gpu_passes.py [--build DIR] [--targets sm_80,gfx942] [--warps 1,4] [--seeds 0,1] [-k SUBSTRING] [--every N] [--small] [--jobs N] [-v]

Each kernel is lowered to tile IR as before the first laid-out pass. Then, for each target, number of warps and seed of
stress-layouts (0: without), the laid-out passes run with --verify-each, and tile-opt compares what the kernel does to
memory with what it did before. When that differs, the shortest list of passes that does is named: its last is guilty.
reduce-locality and part-dots are left out: they change the order of float sums on purpose. --every N: one in N kernels. --small: not the
rows that take seconds. Needs NumPy (the rows do).
"""
import argparse
import glob
import importlib
import itertools
import os
import re
import resource
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
EXAMPLES = [("01_vector_add/vector_add.tile", []), ("02_softmax/softmax.tile", ["B=64"]),
            ("04_layernorm/layernorm.tile", ["B=64"]), ("03_matmul/matmul.tile", ["BM=32", "BN=16", "BK=16", "epilogue=relu"]),
            ("05_attention/attention.tile", ["BD=16", "BM=16", "BN=32"]),
            ("06_persistent/persistent.tile", ["BM=16", "BN=16", "BK=16"])]
SECONDS = 60
warnings.simplefilter("ignore")  # rows make infinities on purpose
BYTES = 2 << 30  # of one process


def laid_out_passes():
    with open(os.path.join(root, "codegen/target/pipeline.def"), encoding="utf-8") as f:
        passes = re.findall(r'^STEP\("([^"]+)"', f.read(), re.M)  # a GPU runs all of them
    return [p for p in passes[passes.index("bounds"):] if p not in ("reduce-locality", "part-dots")]


def kernels(small):
    """(name, .tile file or text, consts, kernel or None, stages or 0)"""
    for path, consts in EXAMPLES:
        yield "example " + path, os.path.join(root, "examples", path), consts, None, 0
    for path in sorted(glob.glob(os.path.join(root, "test/passes/*/Inputs/*.tile"))):
        yield os.path.relpath(path, root), path, [], None, 0
    sys.path.insert(0, os.path.join(root, "test/conformance"))
    from rows import ROWS
    for file in sorted(glob.glob(os.path.join(root, "test/conformance/rows_*.py"))):
        importlib.import_module(os.path.basename(file)[:-3])
    for row in ROWS:
        if small and row.big:
            continue
        yield "row " + row.name, row.source, [f"{n}={v}" for n, v in row.consts.items()], row.kernel, row.stages


def limit():
    if not os.environ.get("ASAN_OPTIONS"):  # the sanitizer reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def run(words):
    try:
        p = subprocess.run(words, capture_output=True, timeout=SECONDS, preexec_fn=limit)
        return p.returncode, p.stderr.decode("utf-8", "replace").strip()
    except subprocess.TimeoutExpired:
        return -1, f"no end within {SECONDS} s"


def add_args(tir):
    """Views of many axes get few elements (tile-opt's own choice is 37 along each axis)."""
    with open(tir, encoding="utf-8") as f:
        text = f.read()
    views = re.findall(r"%(\w+): view<[^>]*, ([3-8])>", text.split("kernel @", 1)[1].split("\n", 1)[0])
    args = [f"{name}={','.join(['17' if rank == '3' else '3'] * int(rank))}" for name, rank in views]
    with open(tir, "w", encoding="utf-8") as f:
        f.write("// ARGS: " + " ".join(args) + "\n" + text)


def lower(cx, folder, source, consts, kernel):
    """The kernel's tile IR before the laid-out passes, and what is wrong."""
    if "while (atomic_" in source:
        return None, "waits for memory, which tile-opt runs without what it waits for"
    file = source
    if "\n" in source:
        file = os.path.join(folder, "kernel.tile")
        with open(file, "w", encoding="utf-8") as f:
            f.write(source)
    tir = os.path.join(folder, "before.tir")
    words = [cx.tilec, file, "--target", cx.targets[0], "--emit=opt", "--stop-after=dce", "-o", tir]
    words += ["--kernel", kernel] if kernel else []
    words += ["--fp=ring"] if "x3" in source + str(consts) else []  # accelerate-dot splits these, but not in the ring
    for c in consts:
        words += ["--const", c]
    status, text = run(words)
    if status:
        return tir, text or "no text"
    add_args(tir)
    status, text = run([cx.tile_opt, "--run", "--same-as=" + tir, tir])
    return tir, text if status else None


def check(cx, tir, target, warps, stages, seed):
    """What is wrong, or None."""
    def attempt(passes):
        return run([cx.tile_opt, f"--target={target}", f"--warps={warps}", *([f"--stages={stages}"] if stages else []),
                    "--verify-each", "--crash-dir=" + os.path.dirname(tir), "--passes=" + ",".join(passes), "--run",
                    "--same-as=" + tir, tir])
    passes = [p.replace("stress-layouts", "stress-layouts{seed=%d}" % seed) for p in cx.passes]
    status, text = attempt(passes)
    if status == 0 or "E0910" in text or "E0901" in text:  # too large for this machine: said so
        return None
    for n in range(1, len(passes) + 1):
        status, text = attempt(passes[:n])
        if status:
            break
    return f"after {','.join(passes[:n])}: {' / '.join(text.splitlines()[:3])}"


def run_kernel(cx, name, source, consts, kernel, stages):
    with tempfile.TemporaryDirectory(prefix="tile-passes-") as folder:
        tir, wrong = lower(cx, folder, source, consts, kernel)
        if wrong:
            return [(name, "skip", wrong.splitlines()[0])]
        results = []
        for target, warps, seed in itertools.product(cx.targets, cx.warps, cx.seeds):
            label = f"{name} on {target}, {warps} warps, seed {seed}"
            wrong = check(cx, tir, target, warps, stages, seed)
            results.append((label, "fail" if wrong else "pass", wrong or ""))
        return results


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(root, "build"))
    parser.add_argument("--targets", default="sm_80,gfx942")
    parser.add_argument("--warps", default="1,4")
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("-k", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", action="store_true")
    cx = parser.parse_args()
    cx.targets, cx.warps = cx.targets.split(","), [int(w) for w in cx.warps.split(",")]
    cx.seeds, cx.passes = [int(s) for s in cx.seeds.split(",")], laid_out_passes()
    cx.tilec, cx.tile_opt = (os.path.join(cx.build, "bin", n) for n in ("tilec", "tile-opt"))
    chosen = [k for k in kernels(cx.small) if cx.k in k[0]][:: cx.every]
    counts = {"pass": 0, "fail": 0, "skip": 0}
    with ThreadPoolExecutor(cx.jobs) as pool:
        for results in pool.map(lambda k: run_kernel(cx, *k), chosen):
            for label, status, text in results:
                counts[status] += 1
                if status == "fail" or cx.v:
                    print(f"{status} {label} {text}", flush=True)
    print(", ".join(f"{n} {'passed' if s == 'pass' else 'failed' if s == 'fail' else 'skipped'}" for s, n in counts.items()))
    return 1 if counts["fail"] else 0


if __name__ == "__main__":
    sys.exit(main())
