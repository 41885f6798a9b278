#!/usr/bin/env python3
"""The ring mode (--fp=ring): floats are integers modulo 2^width, so every way to run a kernel must give the same bits as
`ref`, on random bits, whatever the layouts, warps and order of sums.

    ring.py [--build DIR] [--products] [--devices cpu,emu:sm_80] [--warps 1,4] [--stages 0,3] [--seeds 0,1] [--round] [--schedules S]
            [-k PATTERN] [--every N] [--jobs N] [-v]

Runs the rows of the conformance suite and the examples, their float inputs replaced by random bits (no expected values:
`ref` says what is right). --products: in place of these, products in every way that Hopper's loops are run (ring_rows.py).
--seeds are those of --stress-layouts, 0 for none, --warps 0 and --stages 0 are what the row says, --schedules are the emulator's;
these are for emu:* only.
Every combination of them runs; with --round each seed once, devices, warps and stages going round over the seeds.
--every N takes one row of N. The last line is "N passed, N failed, N skipped". Needs NumPy.
"""
import argparse
import glob
import importlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from concurrent.futures import ThreadPoolExecutor

here = os.path.dirname(os.path.abspath(__file__))
top = os.path.join(here, "..", "..")
sys.path.insert(0, os.path.join(here, "..", "conformance"))
import numpy as np  # noqa: E402

import ring_rows  # noqa: E402
import run  # noqa: E402
import values  # noqa: E402
from rows import ROWS, Row  # noqa: E402

SECONDS = 120
FLOATS = tuple(values.FORMATS)
# A table of how many floats there are of each; moments that are combined by quotients, in any order.
OF_FLOATS = ("kernels_radix_pass", "kernels_group_norm")


def example(name, file, args, consts, outputs):
    with open(os.path.join(top, "examples", file), encoding="utf-8") as f:
        source = f.read()
    made = {k: values.normal("f32", 1, *v) if type(v) is tuple else v for k, v in args.items()}
    return Row(name, source, made, lambda a: outputs, consts, None, [], [], True, False, False)


def examples():
    square = {"A": (70, 50), "B": (50, 90), "C": (70, 90)}
    half = {name: values.normal("f16", 1, *shape) for name, shape in square.items()}
    split = {**half, "parts": values.poison("f32", 3, 70, 90), "arrived": values.zeros("u32", 3, 3)}
    qkv = {"Q": (2, 40, 20), "K": (2, 50, 20), "V": (2, 50, 20), "O": (2, 40, 20), "scale": 0.25}
    blocks = {"BD": 32, "BM": 16, "BN": 16}
    return [
        example("example_vector_add", "01_vector_add/vector_add.tile", {"x": (999,), "y": (999,), "z": (999,)}, {"B": 256}, ["z"]),
        example("example_softmax", "02_softmax/softmax.tile", {"x": (20, 100), "y": (20, 100)}, {"B": 128}, ["y"]),
        example("example_matmul", "03_matmul/matmul.tile", square, {"BM": 32, "BN": 32, "BK": 16}, ["C"]),
        example("example_layernorm", "04_layernorm/layernorm.tile", {"x": (20, 100), "w": (100,), "b": (100,), "y": (20, 100)}, {"B": 128}, ["y"]),
        example("example_persistent", "06_persistent/persistent.tile", half, {"BM": 32, "BN": 32, "BK": 16}, ["C"]),
        example("example_split_k", "07_split_k/split_k.tile", split, {"BM": 32, "BN": 32, "BK": 16}, ["C", "arrived"]),
        example("example_attention", "05_attention/attention.tile", qkv, blocks, ["O"]),
        example("example_attention_causal", "05_attention/attention.tile", qkv, {**blocks, "CAUSAL": "true"}, ["O"]),
    ]


def random_bits(row):
    """The row with its float arrays full of random bits, but for those of zeros: sums start there. A generator per array, so that rows do not
    depend on another."""
    args = {}
    for name, v in row.args.items():
        if isinstance(v, values.Arr) and v.type in FLOATS and v.store.any():
            rng = np.random.default_rng(zlib.crc32(f"{row.name}.{name}".encode()))
            store = np.frombuffer(rng.bytes(v.store.nbytes), v.store.dtype).reshape(v.store.shape)
            v = values.Arr(v.type, np.asarray(store, order="F" if np.isfortran(v.store) else "C"))
        args[name] = v
    return row._replace(args=args)


def outputs_of(row):
    """Which parameters the row saves; only their names count."""
    return list(row.want({k: values.wide(v) if isinstance(v, values.Arr) else v for k, v in row.args.items()}))


def run_on(row, names, device, options, tilec, folder):
    """(status, what tilec said: the first lines, or of a run that succeeded all; files by name)"""
    os.makedirs(folder, exist_ok=True)
    words = run.command(row, ["--device", device, "--fp=ring", *options], tilec, folder)
    for name in names:
        words += ["--save", f"{name}={os.path.join(folder, 'out_' + name + '.npy')}"]
    try:
        p = subprocess.run(words, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return -1, "no end within the time allowed", {}
    text = (p.stderr + p.stdout).decode("utf-8", "replace").strip()
    text = text if p.returncode == 0 else " / ".join(text.splitlines()[:4])
    files = {}
    for name in names if p.returncode == 0 else []:
        with open(os.path.join(folder, f"out_{name}.npy"), "rb") as f:
            files[name] = f.read()
    return p.returncode, text, files


def combinations(cx):
    """(device, warps, stages, seed) of the emulated devices"""
    lists = [[d for d in cx.devices if d.startswith("emu")], cx.warps, cx.stages]
    if not cx.round:
        return itertools.product(*lists, cx.seeds)
    every = list(itertools.product(*lists))
    return [(*every[n % len(every)], seed) for n, seed in enumerate(cx.seeds) if every]


def ways(row, cx):
    """(label, device, options)"""
    for device in cx.devices:
        if not device.startswith("emu"):
            yield device, device, []
    for device, warps, stages, seed in combinations(cx):
        options = [("warps", warps or row.warps), ("stages", stages or row.stages), ("stress-layouts", seed), ("schedules", cx.schedules)]
        given = [f"--{name}={n}" for name, n in options if n] + ["--stats"] * cx.products
        yield " ".join([device, *given]), device, [*([] if row.beside else ["--check"]), *given]


def run_row(row, cx):
    """[(name, status, text)]"""
    folder = tempfile.mkdtemp(prefix="tile-ring-")
    results = []
    try:
        names = outputs_of(row)
        row = random_bits(row)._replace(options=[o for o in row.options if not o.startswith("--fp=")])
        status, text, want = run_on(row, names, "ref", [], cx.tilec, os.path.join(folder, "ref"))
        if status != 0:  # an assertion about numbers, say: no kernel for the ring
            return [(row.name, "skip", f"ref: {text}")]
        for i, (label, device, options) in enumerate(ways(row, cx)):
            if row.devices and device.split(":")[0] not in row.devices:
                continue
            status, text, got = run_on(row, names, device, options, cx.tilec, os.path.join(folder, str(i)))
            wrong = [n for n in names if got.get(n) != want[n]]
            if "stress" in label and "E0910" in text:  # these layouts want more shared memory than there is: said so
                results.append((f"{row.name} on {label}", "skip", text))
                continue
            why = text if status else f"differs from ref: {', '.join(wrong)}" if wrong else None
            if cx.products and "stress" not in label:  # which may draw layouts that bulk copies do not make
                why = why or ring_rows.fault(row.name, device, text)
            results.append((f"{row.name} on {label}", "fail" if why else "pass", why))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return results


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(top, "build"))
    ap.add_argument("--products", action="store_true")
    ap.add_argument("--devices", default="cpu")
    ap.add_argument("--warps", default="1,2,4,8")
    ap.add_argument("--stages", default="0")
    ap.add_argument("--seeds", default="0")
    ap.add_argument("--round", action="store_true")
    ap.add_argument("--schedules", default="")
    ap.add_argument("-k", default="", help="only rows whose name has this regular expression in it")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--big", action="store_true", help="also rows that take seconds")
    ap.add_argument("-v", action="store_true")
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    cx = ap.parse_args()
    cx.tilec = os.path.abspath(os.path.join(cx.build, "bin", "tilec"))
    cx.devices = cx.devices.split(",")
    cx.warps, cx.stages, cx.seeds = ([int(n) for n in text.split(",")] for text in (cx.warps, cx.stages, cx.seeds))
    return cx


def main():
    cx = parse()
    for path in sorted(glob.glob(os.path.join(here, "..", "conformance", "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    rows = ring_rows.rows(any(map(ring_rows.is_tensor, cx.devices))) if cx.products else [*examples(), *(r for r in ROWS if not r.name.startswith(OF_FLOATS))]
    chosen = [r for r in rows if re.search(cx.k, r.name) and (cx.big or not r.big)]
    results = []
    with ThreadPoolExecutor(max(cx.jobs, 1)) as pool:
        for rows in pool.map(lambda r: run_row(r, cx), chosen[::cx.every]):
            results += rows
            for name, status, text in rows:
                if status == "fail" or cx.v:
                    print(f"{status:4} {name}{': ' + text if text and status != 'pass' else ''}", flush=True)
    count = {s: sum(r[1] == s for r in results) for s in ("pass", "fail", "skip")}
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    return 1 if count["fail"] or not count["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
